/* The numeric ops of ai.onnx.ml: what scikit-learn's preprocessing and linear models export to. Strings have
 * no tensor here. */
#include <string.h>

#include "normalize/nz_attention.h"
#include "normalize/nz_math.h"

/* ---- Attributes as constants ---- */

/* The list of floats in |name| as a tensor of |rows| rows, or of rank 1 when rows is 0; null when absent. */
static MlirValue floats(o3_nz_t *nz, const o3_node_t *node, const char *name, int64_t rows) {
  MlirAttribute attr = o3_node_attr(node, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsADenseF32Array(attr)) return (MlirValue){0};
  int64_t count = mlirDenseArrayGetNumElements(attr),
          sizes[2] = {rows ? rows : count, rows ? count / rows : 0};
  float *values = O3_ARENA_ARRAY(nz->arena, float, (size_t)count + 1);
  if (!values || !count || (rows && count % rows)) {
    o3_nz_fail(nz, o3_nz_invalid(nz, "attribute %s has %lld numbers", name, (long long)count));
    return (MlirValue){0};
  }
  for (int64_t i = 0; i < count; ++i) values[i] = mlirDenseF32ArrayGetElement(attr, i);
  return o3_nz_constant(
      nz, mlirDenseElementsAttrFloatGet(o3_tensor_type(rows ? 2 : 1, sizes, o3_nz_f32(nz)), count, values));
}

static MlirValue f32_input(o3_nz_t *nz, const o3_node_t *node) {
  return o3_nz_cast(nz, o3_node_input(node, 0), o3_nz_f32(nz));
}

/* ---- Preprocessing ---- */

/* (x - offset) * scale, each given for all features or for each of them. */
o3_status_t o3_onnx_ml_scaler(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = f32_input(nz, node);
  MlirValue offset = floats(nz, node, "offset", 0), scale = floats(nz, node, "scale", 0);
  if (!mlirValueIsNull(offset)) x = o3_nz_sub(nz, x, offset);
  if (!mlirValueIsNull(scale)) x = o3_nz_mul(nz, x, scale);
  node->outputs[0] = x;
  return NULL;
}

o3_status_t o3_onnx_ml_binarizer(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  MlirValue above = o3_nz_less(nz, o3_nz_like(nz, x, o3_node_float(node, "threshold", 0)), x);
  node->outputs[0] = o3_nz_cast(nz, above, o3_nz_element(nz, x));
  return NULL;
}

/* Rows over their norm, which for MAX is the largest entry as it is; rows whose norm is 0 stay. */
o3_status_t o3_onnx_ml_normalizer(o3_nz_t *nz, o3_node_t *node) {
  const char *norm = o3_node_string(nz, node, "norm", "MAX");
  MlirValue x = f32_input(nz, node), size;
  int64_t axis = o3_nz_rank(nz, x) - 1;
  if (axis < 0) return o3_nz_invalid(nz, "a scalar has no norm");
  if (strcmp(norm, "MAX") == 0) {
    size = o3_nz_reduce(nz, x, "max", 1, &axis, true);
  } else if (strcmp(norm, "L1") == 0) {
    size = o3_nz_reduce(nz, o3_nz_unary(nz, "o3.abs", x), "sum", 1, &axis, true);
  } else if (strcmp(norm, "L2") == 0) {
    size = o3_nz_unary(nz, "o3.sqrt", o3_nz_reduce(nz, x, "sum_square", 1, &axis, true));
  } else {
    return o3_nz_invalid(nz, "norm '%s' is none of MAX, L1, L2", norm);
  }
  MlirValue none = o3_nz_equal(nz, size, o3_nz_like(nz, size, 0));
  node->outputs[0] = o3_nz_div(nz, x, o3_nz_select(nz, none, o3_nz_like(nz, size, 1), size));
  return NULL;
}

/* Entries of the last axis by one list of indices; a vector counts as a row. */
o3_status_t o3_onnx_ml_array_feature_extractor(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), indices = o3_node_input(node, 1);
  const o3_fact_t *fact = o3_nz_fact(nz, indices);
  o3_shape_t flat = {.rank = 1, .dims = {o3_shape_product(nz->context, &fact->shape, 0, fact->shape.rank)}};
  if (o3_nz_rank(nz, x) < 1) return o3_nz_invalid(nz, "a scalar has no features");
  if (o3_nz_rank(nz, x) == 1) x = o3_nz_unsqueeze(nz, x, 1, (int64_t[]){0});
  node->outputs[0] = o3_nz_op(nz, "o3.gather", O3_VALUES(x, o3_nz_reshape(nz, indices, &flat)),
                              O3_ATTRS({"axis", o3_attr_i64(nz->context, o3_nz_rank(nz, x) - 1)}));
  return NULL;
}

/* ---- Linear models ---- */

static MlirValue logistic(o3_nz_t *nz, MlirValue x) { return o3_nz_unary(nz, "o3.sigmoid", x); }
static MlirValue softmax(o3_nz_t *nz, MlirValue x) { return o3_nz_softmax(nz, x, 1); }

static o3_status_t post_transform(o3_nz_t *nz, const o3_node_t *node, MlirValue *scores) {
  static const struct {
    const char *name;
    MlirValue (*apply)(o3_nz_t *nz, MlirValue x);
  } TRANSFORMS[] = {{"NONE", NULL}, {"LOGISTIC", logistic}, {"SOFTMAX", softmax}};
  const char *name = o3_node_string(nz, node, "post_transform", "NONE");
  for (size_t i = 0; i < sizeof(TRANSFORMS) / sizeof(TRANSFORMS[0]); ++i) {
    if (strcmp(TRANSFORMS[i].name, name) != 0) continue;
    if (TRANSFORMS[i].apply) *scores = TRANSFORMS[i].apply(nz, *scores);
    return NULL;
  }
  return o3_nz_unsupported(nz, "post_transform '%s' is not supported", name);
}

/* x times the coefficients of |rows| linear functions, plus their intercepts: one row a sample. */
static o3_status_t linear(o3_nz_t *nz, const o3_node_t *node, int64_t rows, MlirValue *scores) {
  MlirValue x = f32_input(nz, node), coefficients = floats(nz, node, "coefficients", rows);
  MlirValue intercepts = floats(nz, node, "intercepts", 0);
  if (o3_nz_failed(nz)) return NULL;
  if (mlirValueIsNull(coefficients)) return o3_nz_invalid(nz, "attribute coefficients is missing");
  if (o3_nz_rank(nz, x) == 1) x = o3_nz_unsqueeze(nz, x, 1, (int64_t[]){0});
  *scores = o3_nz_matmul(nz, x, o3_nz_transpose(nz, coefficients, (int64_t[]){1, 0}));
  if (!mlirValueIsNull(intercepts)) *scores = o3_nz_add(nz, *scores, intercepts);
  return NULL;
}

o3_status_t o3_onnx_ml_linear_regressor(o3_nz_t *nz, o3_node_t *node) {
  O3_TRY(linear(nz, node, o3_node_int(node, "targets", 1), &node->outputs[0]));
  return post_transform(nz, node, &node->outputs[0]);
}

/* One function for two classes gives the score of the second, its negation that of the first. */
o3_status_t o3_onnx_ml_linear_classifier(o3_nz_t *nz, o3_node_t *node) {
  int64_t labels[O3_FACT_MAX_ELEMENTS];
  int classes = o3_node_ints(nz, node, "classlabels_ints", labels, O3_FACT_MAX_ELEMENTS);
  MlirValue scores = {0}, table;
  if (!classes) return o3_nz_unsupported(nz, "labels that are no integers are not supported");
  int64_t width = o3_nz_static_dim(nz, o3_node_input(node, 0), o3_nz_rank(nz, o3_node_input(node, 0)) - 1,
                                   "the number of features");
  MlirAttribute coefficients = o3_node_attr(node, "coefficients");
  if (mlirAttributeIsNull(coefficients) || width < 1)
    return o3_nz_invalid(nz, "attribute coefficients is missing or there are no features");
  int64_t rows = mlirDenseArrayGetNumElements(coefficients) / width;
  bool binary = rows == 1 && classes == 2;
  if (rows != classes && !binary)
    return o3_nz_invalid(nz, "%lld linear functions for %d classes", (long long)rows, classes);
  if (rows == 1 && !binary) return o3_nz_unsupported(nz, "a classifier of one class is not supported");
  O3_TRY(linear(nz, node, rows, &scores));
  if (binary) {
    MlirValue both[2] = {o3_nz_unary(nz, "o3.neg", scores), scores};
    scores = o3_nz_concat(nz, 1, 2, both);
  }
  O3_TRY(post_transform(nz, node, &scores));
  table = o3_nz_i64s(nz, classes, labels);
  MlirValue best =
      o3_nz_op(nz, "o3.arg_reduce", O3_VALUES(scores),
               O3_ATTRS({"kind", o3_nz_string_attr(nz, "max")}, {"axis", o3_attr_i64(nz->context, 1)},
                        {"keepdims", o3_attr_bool(nz->context, false)},
                        {"select_last", o3_attr_bool(nz->context, false)}));
  node->outputs[0] =
      o3_nz_op(nz, "o3.gather", O3_VALUES(table, best), O3_ATTRS({"axis", o3_attr_i64(nz->context, 0)}));
  node->outputs[1] = scores;
  return NULL;
}
