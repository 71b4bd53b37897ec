#include "normalize/onnx_axes.h"

MlirValue o3_onnx_i64(o3_nz_t *nz, int64_t value) {
  MlirAffineExpr expr = o3_expr_const(nz->context, value);
  return o3_nz_sizes(nz, 1, &expr, true);
}

MlirValue o3_onnx_dims(o3_nz_t *nz, MlirValue x) {
  MlirAffineExpr dims[O3_IR_MAX_RANK];
  int rank = o3_nz_rank(nz, x);
  for (int i = 0; i < rank; ++i) dims[i] = o3_nz_dim(nz, x, i);
  return o3_nz_sizes(nz, rank, dims, false);
}

/* Old exporters write a scalar where the specification wants a vector. */
static MlirValue as_vector(o3_nz_t *nz, MlirValue x) {
  return o3_nz_rank(nz, x) == 0 ? o3_nz_unsqueeze(nz, x, 1, (int64_t[]){0}) : x;
}

MlirValue o3_onnx_list_read(o3_nz_t *nz, const o3_node_t *node, o3_onnx_list_t list) {
  int64_t values[O3_FACT_MAX_ELEMENTS];
  if (node->opset >= list.since) {
    MlirValue input = o3_node_input(node, list.input);
    if (mlirValueIsNull(input)) return input;
    return as_vector(nz, o3_nz_cast(nz, input, o3_nz_i64(nz)));
  }
  if (!o3_node_has_attr(node, list.attr)) return (MlirValue){0};
  int count = o3_node_ints(nz, node, list.attr, values, O3_FACT_MAX_ELEMENTS);
  return o3_nz_i64s(nz, count, values);
}

int o3_onnx_axes_const(o3_nz_t *nz, MlirValue vector, int rank, int64_t *axes) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK];
  int count = o3_nz_exprs(nz, vector, exprs, O3_IR_MAX_RANK);
  for (int i = 0; i < count; ++i) {
    if (!o3_expr_is_const(exprs[i], &axes[i])) return -1;
    axes[i] = o3_nz_axis(nz, axes[i], rank);
    for (int k = 0; k < i; ++k) {
      if (axes[k] == axes[i])
        o3_nz_fail(nz, o3_nz_invalid(nz, "axis %lld is given twice", (long long)axes[i]));
    }
  }
  return count;
}

MlirValue o3_onnx_entry(o3_nz_t *nz, MlirValue vector, int index) {
  MlirValue one =
      o3_nz_slice(nz, vector, 0, o3_expr_const(nz->context, index), o3_expr_const(nz->context, 1));
  return o3_nz_reshape(nz, one, &(o3_shape_t){0});
}

MlirValue o3_onnx_from_end(o3_nz_t *nz, MlirValue x, MlirValue size) {
  MlirValue negative = o3_nz_binary(nz, "o3.less", x, o3_nz_like(nz, x, 0));
  return o3_nz_select(nz, negative, o3_nz_binary(nz, "o3.add", x, size), x);
}

MlirValue o3_onnx_axes_spread(o3_nz_t *nz, MlirValue axes, MlirValue values, MlirValue others, int rank) {
  int64_t positions[O3_IR_MAX_RANK];
  int64_t count = o3_nz_static_dim(nz, axes, 0, "the number of axes");
  for (int i = 0; i < rank; ++i) positions[i] = i;
  MlirValue all = o3_nz_i64s(nz, rank, positions), result = others;
  MlirValue wrapped = o3_onnx_from_end(nz, axes, o3_onnx_i64(nz, rank));
  for (int i = 0; i < count && !o3_nz_failed(nz); ++i) {
    MlirValue here = o3_nz_binary(nz, "o3.equal", all, o3_onnx_entry(nz, wrapped, i));
    result = o3_nz_select(nz, here, o3_onnx_entry(nz, values, i), result);
  }
  return result;
}
