/* Gathers, and what can be said as one. */
#include <string.h>

#include "normalize/onnx_axes.h"

static MlirValue gather(o3_nz_t *nz, const char *name, MlirValue x, MlirValue indices, int64_t axis) {
  return o3_nz_op(nz, name, O3_VALUES(x, indices), O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)}));
}

o3_status_t o3_onnx_gather(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", 0), o3_nz_rank(nz, x));
  node->outputs[0] = gather(nz, "o3.gather", x, o3_node_input(node, 1), axis);
  return NULL;
}

o3_status_t o3_onnx_gather_elements(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", 0), o3_nz_rank(nz, x));
  node->outputs[0] = gather(nz, "o3.gather_elements", x, o3_node_input(node, 1), axis);
  return NULL;
}

o3_status_t o3_onnx_gather_nd(o3_nz_t *nz, o3_node_t *node) {
  MlirAttribute batch = o3_attr_i64(nz->context, o3_node_int(node, "batch_dims", 0));
  node->outputs[0] = o3_nz_op(nz, "o3.gather_nd", O3_VALUES(o3_node_input(node, 0), o3_node_input(node, 1)),
                              O3_ATTRS({"batch_dims", batch}));
  return NULL;
}

static MlirValue flat(o3_nz_t *nz, MlirValue x) {
  const o3_fact_t *fact = o3_nz_fact(nz, x);
  o3_shape_t shape = {.rank = 1, .dims = {o3_shape_product(nz->context, &fact->shape, 0, fact->shape.rank)}};
  return o3_nz_reshape(nz, x, &shape);
}

/* Positions of non-zero elements; a scalar counts as a vector of one. */
o3_status_t o3_onnx_nonzero(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  node->outputs[0] = o3_nz_unary(nz, "o3.nonzero", o3_nz_rank(nz, x) ? x : flat(nz, x));
  return NULL;
}

/* The entries of x (or of x as a vector) where the condition holds. */
o3_status_t o3_onnx_compress(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), condition = o3_node_input(node, 1);
  if (o3_nz_rank(nz, condition) != 1)
    return o3_nz_invalid(nz, "a condition of rank %d, 1 expected", o3_nz_rank(nz, condition));
  bool whole = !o3_node_has_attr(node, "axis");
  if (whole) x = flat(nz, x);
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", 0), o3_nz_rank(nz, x));
  MlirValue chosen = o3_nz_squeeze(nz, o3_nz_unary(nz, "o3.nonzero", condition), 1, (int64_t[]){0});
  node->outputs[0] = gather(nz, "o3.gather", x, chosen, axis);
  return NULL;
}

/* ---- ReverseSequence ---- */

static MlirValue iota(o3_nz_t *nz, const o3_shape_t *shape, int axis) {
  o3_fact_t fact = {.element = o3_nz_i64(nz), .shape = *shape};
  MlirValue result;
  o3_nz_op_stated(nz, "o3.iota", O3_NO_VALUES, O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)}), 1, &fact,
                  &result);
  return result;
}

/* y[t] = x[t < length ? length - 1 - t : t], with a length for each batch. */
o3_status_t o3_onnx_reverse_sequence(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), lengths = o3_node_input(node, 1);
  int rank = o3_nz_rank(nz, x);
  int time = o3_nz_axis(nz, o3_node_int(node, "time_axis", 0), rank);
  int batch = o3_nz_axis(nz, o3_node_int(node, "batch_axis", 1), rank);
  if (o3_nz_failed(nz)) return NULL;
  o3_shape_t shape = {.rank = rank}, along = {.rank = rank};
  for (int i = 0; i < rank; ++i) {
    shape.dims[i] = o3_nz_dim(nz, x, i);
    along.dims[i] = i == batch ? shape.dims[i] : o3_expr_const(nz->context, 1);
  }
  MlirValue length = o3_nz_reshape(nz, o3_nz_cast(nz, lengths, o3_nz_i64(nz)), &along);
  MlirValue t = iota(nz, &shape, time), one = o3_onnx_i64(nz, 1);
  MlirValue back = o3_nz_binary(nz, "o3.sub", o3_nz_binary(nz, "o3.sub", length, one), t);
  MlirValue source = o3_nz_select(nz, o3_nz_binary(nz, "o3.less", t, length), back, t);
  node->outputs[0] = gather(nz, "o3.gather_elements", x, source, time);
  return NULL;
}

/* ---- TopK ---- */

o3_status_t o3_onnx_top_k(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), results[2];
  MlirAffineExpr k;
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", -1), o3_nz_rank(nz, x));
  if (node->opset < 10) {
    k = o3_expr_const(nz->context, o3_node_int(node, "k", 0));
  } else if (o3_nz_bind_sizes(nz, o3_node_input(node, 1), "k", &k, 1) != 1) {
    return o3_nz_failed(nz) ? NULL : o3_nz_invalid(nz, "k is not one number");
  }
  if (!o3_symbols_require_nonnegative(nz->symbols, k, nz->who) ||
      !o3_symbols_require_nonnegative(nz->symbols, o3_expr_sub(o3_nz_dim(nz, x, axis), k), nz->who))
    return o3_nz_invalid(nz, "k is negative or larger than the dimension");
  o3_fact_t facts[2] = {{.element = o3_nz_element(nz, x), .shape = o3_nz_fact(nz, x)->shape}};
  facts[0].shape.dims[axis] = k;
  facts[1] = (o3_fact_t){.element = o3_nz_i64(nz), .shape = facts[0].shape};
  MlirAttribute largest = o3_attr_bool(nz->context, o3_node_int(node, "largest", 1) != 0);
  o3_nz_op_stated(nz, "o3.top_k", O3_VALUES(x),
                  O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)}, {"largest", largest}), 2, facts,
                  results);
  for (int i = 0; i < 2 && i < node->num_outputs; ++i) node->outputs[i] = results[i];
  return NULL;
}

/* ---- Unique ---- */

/* x as a matrix whose rows are what must differ: x's entries along the axis, or all its elements. |front|
 * gets x with the axis in front. */
static MlirValue rows_of(o3_nz_t *nz, MlirValue x, int axis, int64_t *perm, MlirValue *front) {
  int rank = o3_nz_rank(nz, x), next = 1;
  perm[0] = axis;
  for (int i = 0; i < rank; ++i) {
    if (i != axis) perm[next++] = i;
  }
  *front = o3_nz_transpose(nz, x, perm);
  const o3_fact_t *fact = o3_nz_fact(nz, *front);
  o3_shape_t matrix = {.rank = 2,
                       .dims = {fact->shape.dims[0], o3_shape_product(nz->context, &fact->shape, 1, rank)}};
  return o3_nz_reshape(nz, *front, &matrix);
}

o3_status_t o3_onnx_unique(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), results[3], front;
  int64_t perm[O3_IR_MAX_RANK], inverse[O3_IR_MAX_RANK];
  if (!o3_node_has_attr(node, "axis")) x = flat(nz, x);
  int rank = o3_nz_rank(nz, x), axis = o3_nz_axis(nz, o3_node_int(node, "axis", 0), rank);
  if (o3_nz_failed(nz)) return NULL;
  MlirValue rows = rows_of(nz, x, axis, perm, &front);
  for (int i = 0; i < rank; ++i) inverse[perm[i]] = i;
  MlirAttribute sorted = o3_attr_bool(nz->context, o3_node_int(node, "sorted", 1) != 0);
  o3_nz_op_results(nz, "o3.unique", O3_VALUES(rows), O3_ATTRS({"sorted", sorted}), 3, results);
  node->outputs[0] = o3_nz_transpose(nz, gather(nz, "o3.gather", front, results[0], 0), inverse);
  for (int i = 1; i < node->num_outputs && i < 4; ++i) node->outputs[i] = results[i - 1];
  return NULL;
}
