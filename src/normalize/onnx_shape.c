/* The shape of a tensor, and ops that rearrange it. */
#include "normalize/onnx_axes.h"

o3_status_t o3_onnx_identity(o3_nz_t *nz, o3_node_t *node) {
  const o3_binding_t *binding = o3_node_binding(nz, node, 0);
  if (!binding) return o3_nz_invalid(nz, "a required input is missing");
  o3_node_bind(nz, node, 0, binding);
  return NULL;
}

/* Opset 15 added start and end, which are clamped. */
o3_status_t o3_onnx_shape(o3_nz_t *nz, o3_node_t *node) {
  MlirAffineExpr dims[O3_IR_MAX_RANK];
  MlirValue x = o3_node_input(node, 0);
  int rank = o3_nz_rank(nz, x), count = 0;
  int64_t start = o3_node_int(node, "start", 0), end = o3_node_int(node, "end", rank);
  if (start < 0) start += rank;
  if (end < 0) end += rank;
  if (start < 0) start = 0;
  if (end > rank) end = rank;
  for (int64_t i = start; i < end; ++i) dims[count++] = o3_nz_dim(nz, x, (int)i);
  node->outputs[0] = o3_nz_sizes(nz, count, dims, false);
  return NULL;
}

o3_status_t o3_onnx_size(o3_nz_t *nz, o3_node_t *node) {
  const o3_fact_t *fact = o3_nz_fact(nz, o3_node_input(node, 0));
  MlirAffineExpr size = o3_shape_product(nz->context, &fact->shape, 0, fact->shape.rank);
  node->outputs[0] = o3_nz_sizes(nz, 1, &size, true);
  return NULL;
}

/* 0 copies the input's size (unless allowzero), -1 is what is left over. */
static o3_status_t resolve_reshape(o3_nz_t *nz, MlirValue x, bool allow_zero, o3_shape_t *shape) {
  const o3_fact_t *fact = o3_nz_fact(nz, x);
  int unknown = -1;
  MlirAffineExpr known = o3_expr_const(nz->context, 1);
  for (int i = 0; i < shape->rank; ++i) {
    if (o3_expr_equals_const(shape->dims[i], 0) && !allow_zero) {
      if (i >= fact->shape.rank)
        return o3_nz_invalid(nz, "shape entry %d is 0 but the input has rank %d", i, fact->shape.rank);
      shape->dims[i] = o3_nz_dim(nz, x, i);
    }
    if (!o3_expr_equals_const(shape->dims[i], -1)) {
      known = o3_expr_mul(known, shape->dims[i]);
    } else if (unknown >= 0) {
      return o3_nz_invalid(nz, "the shape has more than one -1");
    } else {
      unknown = i;
    }
  }
  if (unknown < 0) return NULL;
  MlirAffineExpr total = o3_expr_const(nz->context, 1);
  for (int i = 0; i < fact->shape.rank; ++i) total = o3_expr_mul(total, o3_nz_dim(nz, x, i));
  if (o3_expr_equals_const(known, 0))
    return o3_nz_invalid(nz, "a -1 beside a 0 in the shape leaves its size open");
  shape->dims[unknown] = o3_expr_floor_div(total, known);
  return NULL;
}

/* A shape that only the run knows: its 0 and -1 are resolved by ops on the vector of sizes. */
static MlirValue resolve_at_run(o3_nz_t *nz, MlirValue x, MlirValue shape, bool allow_zero) {
  MlirAffineExpr sizes[O3_IR_MAX_RANK];
  int count = (int)o3_nz_static_dim(nz, shape, 0, "the length of the shape"), rank = o3_nz_rank(nz, x);
  if (o3_nz_failed(nz) || count > O3_IR_MAX_RANK) return (MlirValue){0};
  for (int i = 0; i < count; ++i) sizes[i] = i < rank ? o3_nz_dim(nz, x, i) : o3_expr_const(nz->context, 0);
  MlirValue own = o3_nz_sizes(nz, count, sizes, false);
  MlirValue zero = o3_nz_like(nz, shape, 0), one = o3_nz_like(nz, shape, 1), open = o3_nz_like(nz, shape, -1);
  if (!allow_zero) shape = o3_nz_select(nz, o3_nz_binary(nz, "o3.equal", shape, zero), own, shape);
  MlirValue is_open = o3_nz_binary(nz, "o3.equal", shape, open);
  MlirValue known = o3_nz_reduce(nz, o3_nz_select(nz, is_open, one, shape), "prod", 1, (int64_t[]){0}, false);
  const o3_fact_t *fact = o3_nz_fact(nz, x);
  MlirAffineExpr total = o3_shape_product(nz->context, &fact->shape, 0, fact->shape.rank);
  MlirValue left =
      o3_nz_binary(nz, "o3.div", o3_nz_sizes(nz, 1, &total, true), o3_nz_binary(nz, "o3.max", known, one));
  return o3_nz_select(nz, is_open, left, shape);
}

o3_status_t o3_onnx_reshape(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  MlirValue wanted = o3_onnx_list_read(nz, node, (o3_onnx_list_t){"shape", 1, 5});
  if (mlirValueIsNull(wanted)) return o3_nz_invalid(nz, "there is no shape");
  bool allow_zero = o3_node_int(node, "allowzero", 0) != 0;
  o3_shape_t shape;
  shape.rank = o3_nz_exprs(nz, wanted, shape.dims, O3_IR_MAX_RANK);
  if (shape.rank < 0) {
    MlirValue resolved = resolve_at_run(nz, x, wanted, allow_zero);
    shape.rank = o3_nz_bind_sizes(nz, resolved, "the shape", shape.dims, O3_IR_MAX_RANK);
  } else {
    O3_TRY(resolve_reshape(nz, x, allow_zero, &shape));
  }
  if (shape.rank >= 0) node->outputs[0] = o3_nz_reshape(nz, x, &shape);
  return NULL;
}

o3_status_t o3_onnx_transpose(o3_nz_t *nz, o3_node_t *node) {
  int64_t perm[O3_IR_MAX_RANK];
  MlirValue x = o3_node_input(node, 0);
  int rank = o3_nz_rank(nz, x);
  int count = o3_node_ints(nz, node, "perm", perm, O3_IR_MAX_RANK);
  for (int i = 0; !o3_node_has_attr(node, "perm") && i < rank; ++i) perm[i] = rank - 1 - i;
  if (o3_node_has_attr(node, "perm") && count != rank)
    return o3_nz_invalid(nz, "perm has %d entries for an input of rank %d", count, rank);
  node->outputs[0] = o3_nz_transpose(nz, x, perm);
  return NULL;
}
