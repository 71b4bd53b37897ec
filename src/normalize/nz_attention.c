#include "normalize/nz_attention.h"

#include <math.h>

#include "normalize/nz_math.h"

static MlirAffineExpr number(const o3_nz_t *nz, int64_t value) { return o3_expr_const(nz->context, value); }

MlirValue o3_nz_split_heads(o3_nz_t *nz, MlirValue x, int64_t heads) {
  MlirAffineExpr width = o3_nz_dim(nz, x, 2);
  int64_t known;
  if (o3_nz_failed(nz)) return (MlirValue){0};
  if (heads < 1 || (o3_expr_is_const(width, &known) && known % heads != 0)) {
    o3_nz_fail(nz, o3_nz_invalid(nz, "a hidden size that %lld heads cannot share", (long long)heads));
    return (MlirValue){0};
  }
  o3_shape_t shape = {.rank = 4,
                      .dims = {o3_nz_dim(nz, x, 0), o3_nz_dim(nz, x, 1), number(nz, heads),
                               o3_expr_floor_div(width, number(nz, heads))}};
  return o3_nz_transpose(nz, o3_nz_reshape(nz, x, &shape), (int64_t[]){0, 2, 1, 3});
}

MlirValue o3_nz_join_heads(o3_nz_t *nz, MlirValue x) {
  MlirValue y = o3_nz_transpose(nz, x, (int64_t[]){0, 2, 1, 3});
  o3_shape_t shape = {.rank = 3,
                      .dims = {o3_nz_dim(nz, y, 0), o3_nz_dim(nz, y, 1),
                               o3_expr_mul(o3_nz_dim(nz, y, 2), o3_nz_dim(nz, y, 3))}};
  return o3_nz_reshape(nz, y, &shape);
}

MlirValue o3_nz_group_heads(o3_nz_t *nz, MlirValue x, int64_t groups) {
  int rank = o3_nz_rank(nz, x), axis = rank - 3;
  int64_t heads = axis < 0 ? groups : o3_nz_static_dim(nz, x, axis, "the number of heads");
  if (o3_nz_failed(nz) || axis < 0) return x;
  if (heads == 1) return o3_nz_unsqueeze(nz, x, 1, (int64_t[]){axis + 1});
  if (groups < 1 || heads % groups != 0) {
    o3_nz_fail(nz, o3_nz_invalid(nz, "%lld query heads cannot share %lld key heads", (long long)heads,
                                 (long long)groups));
    return (MlirValue){0};
  }
  o3_shape_t split = {.rank = rank + 1};
  for (int i = 0; i < axis; ++i) split.dims[i] = o3_nz_dim(nz, x, i);
  split.dims[axis] = number(nz, groups);
  split.dims[axis + 1] = number(nz, heads / groups);
  for (int i = axis + 1; i < rank; ++i) split.dims[i + 1] = o3_nz_dim(nz, x, i);
  return o3_nz_reshape(nz, x, &split);
}

MlirValue o3_nz_ungroup_heads(o3_nz_t *nz, MlirValue x) {
  if (o3_nz_rank(nz, x) != 5) return x;
  int64_t groups = o3_nz_static_dim(nz, x, 1, "the number of heads");
  int64_t members = o3_nz_static_dim(nz, x, 2, "the number of heads");
  o3_shape_t joined = {
      .rank = 4,
      .dims = {o3_nz_dim(nz, x, 0), number(nz, groups * members), o3_nz_dim(nz, x, 3), o3_nz_dim(nz, x, 4)}};
  return o3_nz_reshape(nz, x, &joined);
}

/* a times b with the heads that share one of b's as a dimension of their own: B G N/G M L, or B N M L when N
 * is G; a may have them so already. b is broadcast along the heads of a group, not copied. */
static MlirValue grouped_product(o3_nz_t *nz, MlirValue a, MlirValue b) {
  int64_t groups = o3_nz_static_dim(nz, b, 1, "the number of heads");
  if (o3_nz_failed(nz)) return (MlirValue){0};
  if (o3_nz_rank(nz, a) == 4) {
    int64_t heads = o3_nz_static_dim(nz, a, 1, "the number of heads");
    if (o3_nz_failed(nz) || heads == groups) return o3_nz_matmul(nz, a, b);
    a = o3_nz_group_heads(nz, a, groups);
  }
  return o3_nz_matmul(nz, a, o3_nz_unsqueeze(nz, b, 1, (int64_t[]){2}));
}

/* Keys are transposed beside the product, which may then read them through their order of dimensions. */
MlirValue o3_nz_grouped_scores(o3_nz_t *nz, MlirValue q, MlirValue k) {
  int64_t groups = o3_nz_static_dim(nz, k, 1, "the number of heads");
  int64_t heads = o3_nz_static_dim(nz, q, 1, "the number of heads");
  if (o3_nz_failed(nz)) return (MlirValue){0};
  if (heads == groups) return o3_nz_matmul(nz, q, o3_nz_transpose(nz, k, (int64_t[]){0, 1, 3, 2}));
  k = o3_nz_transpose(nz, o3_nz_unsqueeze(nz, k, 1, (int64_t[]){2}), (int64_t[]){0, 1, 2, 4, 3});
  return o3_nz_matmul(nz, o3_nz_group_heads(nz, q, groups), k);
}

MlirValue o3_nz_grouped_matmul(o3_nz_t *nz, MlirValue a, MlirValue b) {
  return o3_nz_ungroup_heads(nz, grouped_product(nz, a, b));
}

MlirType o3_nz_compute_type(o3_nz_t *nz, MlirType element) {
  return o3_type_is_float(element) && o3_type_bits(element) < 32 ? o3_nz_f32(nz) : element;
}

MlirValue o3_nz_positions(o3_nz_t *nz, int rank, int axis, MlirAffineExpr size) {
  o3_fact_t fact = {.element = o3_nz_i64(nz), .shape.rank = rank};
  for (int i = 0; i < rank; ++i) fact.shape.dims[i] = i == axis ? size : number(nz, 1);
  MlirValue result;
  o3_nz_op_stated(nz, "o3.iota", O3_NO_VALUES, O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)}), 1, &fact,
                  &result);
  return result;
}

MlirValue o3_nz_mask_scores(o3_nz_t *nz, MlirValue scores, MlirValue allowed) {
  return o3_nz_select(nz, allowed, scores, o3_nz_like(nz, scores, -(double)INFINITY));
}

MlirValue o3_nz_causal_mask(o3_nz_t *nz, MlirValue scores, MlirAffineExpr past) {
  int rank = o3_nz_rank(nz, scores);
  MlirValue rows = o3_nz_positions(nz, 2, 0, o3_nz_dim(nz, scores, rank - 2));
  MlirValue columns = o3_nz_positions(nz, 2, 1, o3_nz_dim(nz, scores, rank - 1));
  MlirValue last = o3_nz_add(nz, rows, o3_nz_sizes(nz, 1, &past, true));
  return o3_nz_binary(nz, "o3.less_equal", columns, last);
}

MlirValue o3_nz_softmax(o3_nz_t *nz, MlirValue x, int axis) {
  return o3_nz_op(nz, "o3.softmax", O3_VALUES(x), O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)}));
}

double o3_nz_attention_scale(o3_nz_t *nz, const o3_node_t *node, const char *name, MlirValue q) {
  double scale = o3_node_float(node, name, 0);
  return scale != 0 ? scale : 1 / sqrt((double)o3_nz_static_dim(nz, q, 3, "the head size"));
}
