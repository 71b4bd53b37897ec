/* ONNX's arithmetic, comparisons and logic, element by element. */
#include <float.h>
#include <string.h>

#include "base/check.h"
#include "normalize/nz_math.h"
#include "normalize/onnx_legacy.h"

/* ONNX op -> op of the dialect, for those that are the same or, with several inputs, a chain of it. */
static const struct {
  const char *onnx, *name;
} SAME[] = {
    {"Abs", "o3.abs"},         {"Acos", "o3.acos"},      {"Acosh", "o3.acosh"},
    {"Add", "o3.add"},         {"And", "o3.and"},        {"Asin", "o3.asin"},
    {"Asinh", "o3.asinh"},     {"Atan", "o3.atan"},      {"Atanh", "o3.atanh"},
    {"BitwiseAnd", "o3.and"},  {"BitwiseNot", "o3.not"}, {"BitwiseOr", "o3.or"},
    {"BitwiseXor", "o3.xor"},  {"Ceil", "o3.ceil"},      {"Cos", "o3.cos"},
    {"Cosh", "o3.cosh"},       {"Div", "o3.div"},        {"Equal", "o3.equal"},
    {"Erf", "o3.erf"},         {"Exp", "o3.exp"},        {"Floor", "o3.floor"},
    {"IsNaN", "o3.is_nan"},    {"Less", "o3.less"},      {"LessOrEqual", "o3.less_equal"},
    {"Log", "o3.log"},         {"Max", "o3.max"},        {"Min", "o3.min"},
    {"Mul", "o3.mul"},         {"Neg", "o3.neg"},        {"Not", "o3.not"},
    {"Or", "o3.or"},           {"Pow", "o3.pow"},        {"Round", "o3.round"},
    {"Sigmoid", "o3.sigmoid"}, {"Sign", "o3.sign"},      {"Sin", "o3.sin"},
    {"Sinh", "o3.sinh"},       {"Sqrt", "o3.sqrt"},      {"Sub", "o3.sub"},
    {"Sum", "o3.add"},         {"Tan", "o3.tan"},        {"Tanh", "o3.tanh"},
    {"Xor", "o3.xor"},
};

static const char *same_op(const o3_node_t *node) {
  size_t i = 0, count = sizeof(SAME) / sizeof(SAME[0]);
  while (i < count && strcmp(SAME[i].onnx, node->op_type) != 0) ++i;
  O3_ASSERT(i < count, "ops with these converters have a row in SAME");
  return SAME[i].name;
}

o3_status_t o3_onnx_unary(o3_nz_t *nz, o3_node_t *node) {
  node->outputs[0] = o3_nz_unary(nz, same_op(node), o3_node_input(node, 0));
  return NULL;
}

o3_status_t o3_onnx_binary(o3_nz_t *nz, o3_node_t *node) {
  MlirValue a = o3_node_input(node, 0), b;
  O3_TRY(o3_onnx_legacy_broadcast(nz, node, a, o3_node_input(node, 1), &b));
  node->outputs[0] = o3_nz_binary(nz, same_op(node), a, b);
  return NULL;
}

static o3_status_t chain(o3_nz_t *nz, const o3_node_t *node, const char *op, MlirValue *y) {
  if (node->num_inputs == 0) return o3_nz_invalid(nz, "no inputs, at least one expected");
  if (node->opset < 8) O3_TRY(o3_onnx_legacy_same_shapes(nz, node));
  *y = o3_node_input(node, 0);
  for (int i = 1; i < node->num_inputs; ++i) *y = o3_nz_binary(nz, op, *y, o3_node_input(node, i));
  return NULL;
}

o3_status_t o3_onnx_variadic(o3_nz_t *nz, o3_node_t *node) {
  return chain(nz, node, same_op(node), &node->outputs[0]);
}

o3_status_t o3_onnx_mean(o3_nz_t *nz, o3_node_t *node) {
  MlirValue sum;
  O3_TRY(chain(nz, node, "o3.add", &sum));
  node->outputs[0] = node->num_inputs == 1 ? sum : o3_nz_div(nz, sum, o3_nz_like(nz, sum, node->num_inputs));
  return NULL;
}

/* The dialect has only less and less_equal. */
o3_status_t o3_onnx_greater(o3_nz_t *nz, o3_node_t *node) {
  MlirValue a = o3_node_input(node, 0), b;
  O3_TRY(o3_onnx_legacy_broadcast(nz, node, a, o3_node_input(node, 1), &b));
  node->outputs[0] = o3_nz_less(nz, b, a);
  return NULL;
}

o3_status_t o3_onnx_greater_equal(o3_nz_t *nz, o3_node_t *node) {
  node->outputs[0] = o3_nz_binary(nz, "o3.less_equal", o3_node_input(node, 1), o3_node_input(node, 0));
  return NULL;
}

o3_status_t o3_onnx_reciprocal(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  node->outputs[0] = o3_nz_div(nz, o3_nz_like(nz, x, 1), x);
  return NULL;
}

/* fmod chooses C's remainder; floats have no other. */
o3_status_t o3_onnx_mod(o3_nz_t *nz, o3_node_t *node) {
  MlirValue a = o3_node_input(node, 0);
  bool fmod = o3_node_int(node, "fmod", 0) != 0;
  if (!fmod && o3_type_is_float(o3_nz_element(nz, a)))
    return o3_nz_invalid(nz, "floating-point inputs with fmod 0, ONNX wants 1 for them");
  node->outputs[0] = o3_nz_binary(nz, fmod ? "o3.rem" : "o3.mod", a, o3_node_input(node, 1));
  return NULL;
}

o3_status_t o3_onnx_where(o3_nz_t *nz, o3_node_t *node) {
  node->outputs[0] = o3_nz_select(nz, o3_node_input(node, 0), o3_node_input(node, 1), o3_node_input(node, 2));
  return NULL;
}

o3_status_t o3_onnx_bit_shift(o3_nz_t *nz, o3_node_t *node) {
  const char *direction = o3_node_string(nz, node, "direction", "");
  bool left = strcmp(direction, "LEFT") == 0;
  if (!left && strcmp(direction, "RIGHT") != 0)
    return o3_nz_invalid(nz, "direction is '%s', LEFT or RIGHT expected", direction);
  node->outputs[0] = o3_nz_binary(nz, left ? "o3.shift_left" : "o3.shift_right", o3_node_input(node, 0),
                                  o3_node_input(node, 1));
  return NULL;
}

o3_status_t o3_onnx_is_inf(o3_nz_t *nz, o3_node_t *node) {
  bool positive = o3_node_int(node, "detect_positive", 1) != 0;
  bool negative = o3_node_int(node, "detect_negative", 1) != 0;
  node->outputs[0] = o3_nz_op(nz, "o3.is_inf", O3_VALUES(o3_node_input(node, 0)),
                              O3_ATTRS({"positive", o3_attr_bool(nz->context, positive)},
                                       {"negative", o3_attr_bool(nz->context, negative)}));
  return NULL;
}

/* A bound of Clip: an attribute before opset 11, an input since; a null value when there is none. In opsets 6
 * to 10 there always is one: by default the largest float, to which infinities are clipped. */
static MlirValue clip_bound(o3_nz_t *nz, const o3_node_t *node, int input, const char *attr,
                            double fallback) {
  MlirValue x = o3_node_input(node, 0);
  if (node->opset >= 11) return o3_node_input(node, input);
  if (node->opset < 6 && !o3_node_has_attr(node, attr)) return (MlirValue){0};
  return o3_nz_like(nz, x, o3_node_float(node, attr, fallback));
}

/* With min above max, all is max. */
o3_status_t o3_onnx_clip(o3_nz_t *nz, o3_node_t *node) {
  MlirValue y = o3_node_input(node, 0);
  MlirValue low = clip_bound(nz, node, 1, "min", -FLT_MAX), high = clip_bound(nz, node, 2, "max", FLT_MAX);
  if (!mlirValueIsNull(low)) y = o3_nz_max(nz, y, low);
  if (!mlirValueIsNull(high)) y = o3_nz_min(nz, y, high);
  node->outputs[0] = y;
  return NULL;
}
