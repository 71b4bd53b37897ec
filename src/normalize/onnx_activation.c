/* Activation functions, written out in the arithmetic of the dialect. */
#include <math.h>
#include <string.h>

#include "normalize/nz_math.h"
#include "normalize/onnx_legacy.h"

static MlirValue sigmoid(o3_nz_t *nz, MlirValue x) { return o3_nz_unary(nz, "o3.sigmoid", x); }

static MlirValue relu(o3_nz_t *nz, MlirValue x) { return o3_nz_max(nz, x, o3_nz_like(nz, x, 0)); }

static MlirValue is_negative(o3_nz_t *nz, MlirValue x) { return o3_nz_less(nz, x, o3_nz_like(nz, x, 0)); }

/* e^x - 1 */
static MlirValue exp_minus_one(o3_nz_t *nz, MlirValue x) {
  return o3_nz_add_number(nz, o3_nz_unary(nz, "o3.exp", x), -1);
}

o3_status_t o3_onnx_relu(o3_nz_t *nz, o3_node_t *node) {
  node->outputs[0] = relu(nz, o3_node_input(node, 0));
  return NULL;
}

o3_status_t o3_onnx_leaky_relu(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  MlirValue below = o3_nz_mul_number(nz, x, o3_node_float(node, "alpha", 0.01));
  node->outputs[0] = o3_nz_select(nz, is_negative(nz, x), below, x);
  return NULL;
}

/* Before opset 7 a slope is one number, or one for each channel. */
static o3_status_t legacy_slope(o3_nz_t *nz, MlirValue x, MlirValue *slope) {
  int rank = o3_nz_rank(nz, x);
  if (o3_onnx_legacy_is_single(nz, *slope)) {
    *slope = o3_nz_reshape(nz, *slope, &(o3_shape_t){.rank = 0});
    return NULL;
  }
  if (o3_nz_rank(nz, *slope) != 1 || rank < 2)
    return o3_nz_unsupported(
        nz,
        "a slope of rank %d for an input of rank %d; before opset 7 one number or one for "
        "each channel is",
        o3_nz_rank(nz, *slope), rank);
  if (!o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, *slope, 0), o3_nz_dim(nz, x, 1), nz->who))
    return o3_nz_invalid(nz, "before opset 7 there must be one slope, or one for each channel");
  *slope = o3_onnx_legacy_extend(nz, *slope, rank - 2);
  return NULL;
}

o3_status_t o3_onnx_prelu(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), slope = o3_node_input(node, 1);
  if (node->opset < 7 && !mlirValueIsNull(slope)) O3_TRY(legacy_slope(nz, x, &slope));
  node->outputs[0] = o3_nz_select(nz, is_negative(nz, x), o3_nz_mul(nz, x, slope), x);
  return NULL;
}

o3_status_t o3_onnx_thresholded_relu(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  MlirValue above = o3_nz_less(nz, o3_nz_like(nz, x, o3_node_float(node, "alpha", 1)), x);
  node->outputs[0] = o3_nz_select(nz, above, x, o3_nz_like(nz, x, 0));
  return NULL;
}

/* x, below 0: alpha * (e^x - 1) */
static MlirValue elu(o3_nz_t *nz, MlirValue x, double alpha) {
  return o3_nz_select(nz, is_negative(nz, x), o3_nz_mul_number(nz, exp_minus_one(nz, x), alpha), x);
}

o3_status_t o3_onnx_elu(o3_nz_t *nz, o3_node_t *node) {
  node->outputs[0] = elu(nz, o3_node_input(node, 0), o3_node_float(node, "alpha", 1));
  return NULL;
}

/* gamma * elu(x, alpha). Opset 6 stated the defaults with more digits. */
o3_status_t o3_onnx_selu(o3_nz_t *nz, o3_node_t *node) {
  bool old = node->opset < 6;
  double alpha = o3_node_float(node, "alpha", old ? 1.6732 : 1.67326319217681884765625);
  double gamma = o3_node_float(node, "gamma", old ? 1.0507 : 1.05070102214813232421875);
  node->outputs[0] = o3_nz_mul_number(nz, elu(nz, o3_node_input(node, 0), alpha), gamma);
  return NULL;
}

/* max(0, x) + min(0, alpha * (e^(x / alpha) - 1)) */
o3_status_t o3_onnx_celu(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  double alpha = o3_node_float(node, "alpha", 1);
  MlirValue ratio = alpha == 1 ? x : o3_nz_div(nz, x, o3_nz_like(nz, x, alpha));
  MlirValue below = o3_nz_mul_number(nz, exp_minus_one(nz, ratio), alpha);
  node->outputs[0] = o3_nz_add(nz, relu(nz, x), o3_nz_min(nz, below, o3_nz_like(nz, x, 0)));
  return NULL;
}

/* max(0, min(1, alpha * x + beta)) */
static MlirValue hard_sigmoid(o3_nz_t *nz, MlirValue x, double alpha, double beta) {
  return o3_nz_clamp(nz, o3_nz_add_number(nz, o3_nz_mul_number(nz, x, alpha), beta), 0, 1);
}

o3_status_t o3_onnx_hard_sigmoid(o3_nz_t *nz, o3_node_t *node) {
  double alpha = o3_node_float(node, "alpha", 0.2), beta = o3_node_float(node, "beta", 0.5);
  node->outputs[0] = hard_sigmoid(nz, o3_node_input(node, 0), alpha, beta);
  return NULL;
}

o3_status_t o3_onnx_hard_swish(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  node->outputs[0] = o3_nz_mul(nz, x, hard_sigmoid(nz, x, 1.0 / 6, 0.5));
  return NULL;
}

/* x * sigmoid(alpha * x); com.microsoft calls it QuickGelu, with another alpha. */
o3_status_t o3_onnx_swish(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  double alpha = o3_node_float(node, "alpha", strcmp(node->op_type, "QuickGelu") == 0 ? 1.702 : 1);
  node->outputs[0] = o3_nz_mul(nz, x, sigmoid(nz, alpha == 1 ? x : o3_nz_mul_number(nz, x, alpha)));
  return NULL;
}

/* log(1 + e^x) as max(x, 0) + log(1 + e^-|x|), which never overflows. */
static MlirValue softplus(o3_nz_t *nz, MlirValue x) {
  MlirValue size = o3_nz_unary(nz, "o3.neg", o3_nz_unary(nz, "o3.abs", x));
  MlirValue rest = o3_nz_unary(nz, "o3.log", o3_nz_add_number(nz, o3_nz_unary(nz, "o3.exp", size), 1));
  return o3_nz_add(nz, relu(nz, x), rest);
}

o3_status_t o3_onnx_softplus(o3_nz_t *nz, o3_node_t *node) {
  node->outputs[0] = softplus(nz, o3_node_input(node, 0));
  return NULL;
}

o3_status_t o3_onnx_mish(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  node->outputs[0] = o3_nz_mul(nz, x, o3_nz_unary(nz, "o3.tanh", softplus(nz, x)));
  return NULL;
}

/* x / (1 + |x|) */
o3_status_t o3_onnx_softsign(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  node->outputs[0] = o3_nz_div(nz, x, o3_nz_add_number(nz, o3_nz_unary(nz, "o3.abs", x), 1));
  return NULL;
}

/* x + bias below -lambd, x - bias above lambd, else 0. Integers go through f32: lambd is a fraction. */
o3_status_t o3_onnx_shrink(o3_nz_t *nz, o3_node_t *node) {
  MlirType element = o3_nz_element(nz, o3_node_input(node, 0));
  MlirValue x = o3_node_input(node, 0);
  if (!o3_type_is_float(element)) x = o3_nz_cast(nz, x, o3_nz_f32(nz));
  double lambd = o3_node_float(node, "lambd", 0.5), bias = o3_node_float(node, "bias", 0);
  MlirValue below = o3_nz_less(nz, x, o3_nz_like(nz, x, -lambd)),
            above = o3_nz_less(nz, o3_nz_like(nz, x, lambd), x);
  MlirValue inner = o3_nz_select(nz, above, o3_nz_add_number(nz, x, -bias), o3_nz_like(nz, x, 0));
  node->outputs[0] = o3_nz_cast(nz, o3_nz_select(nz, below, o3_nz_add_number(nz, x, bias), inner), element);
  return NULL;
}

/* ---- Gelu ---- */

/* 0.5 * x * (1 + erf(x / sqrt(2))) */
static MlirValue gelu(o3_nz_t *nz, MlirValue x) {
  MlirValue erf = o3_nz_unary(nz, "o3.erf", o3_nz_mul_number(nz, x, M_SQRT1_2));
  return o3_nz_mul(nz, o3_nz_mul_number(nz, x, 0.5), o3_nz_add_number(nz, erf, 1));
}

/* 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) */
static MlirValue gelu_tanh(o3_nz_t *nz, MlirValue x) {
  MlirValue cube = o3_nz_mul(nz, o3_nz_mul(nz, x, x), x);
  MlirValue inner =
      o3_nz_mul_number(nz, o3_nz_add(nz, x, o3_nz_mul_number(nz, cube, 0.044715)), sqrt(2 / M_PI));
  MlirValue tanh = o3_nz_unary(nz, "o3.tanh", inner);
  return o3_nz_mul(nz, o3_nz_mul_number(nz, x, 0.5), o3_nz_add_number(nz, tanh, 1));
}

o3_status_t o3_onnx_gelu(o3_nz_t *nz, o3_node_t *node) {
  const char *approximate = o3_node_string(nz, node, "approximate", "none");
  bool tanh = strcmp(approximate, "tanh") == 0;
  if (!tanh && strcmp(approximate, "none") != 0)
    return o3_nz_invalid(nz, "approximate is '%s', none or tanh expected", approximate);
  node->outputs[0] = tanh ? gelu_tanh(nz, o3_node_input(node, 0)) : gelu(nz, o3_node_input(node, 0));
  return NULL;
}

static MlirValue biased(o3_nz_t *nz, const o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  return o3_node_has_input(node, 1) ? o3_nz_add(nz, x, o3_node_input(node, 1)) : x;
}

o3_status_t o3_onnx_bias_gelu(o3_nz_t *nz, o3_node_t *node) {
  node->outputs[0] = gelu(nz, biased(nz, node));
  return NULL;
}

o3_status_t o3_onnx_fast_gelu(o3_nz_t *nz, o3_node_t *node) {
  node->outputs[0] = gelu_tanh(nz, biased(nz, node));
  return NULL;
}
