/* Matrix products. */
#include "normalize/onnx_matmul.h"

#include "normalize/onnx_legacy.h"

MlirValue o3_nz_product(o3_nz_t *nz, MlirValue a, MlirValue b, MlirType acc) {
  int a_rank = o3_nz_rank(nz, a), b_rank = o3_nz_rank(nz, b);
  if (!o3_nz_failed(nz) && (a_rank == 0 || b_rank == 0)) {
    o3_nz_fail(nz, o3_nz_invalid(nz, "a matrix product takes no scalars"));
    return (MlirValue){0};
  }
  if (a_rank == 1) a = o3_nz_unsqueeze(nz, a, 1, (int64_t[]){0});
  if (b_rank == 1) b = o3_nz_unsqueeze(nz, b, 1, (int64_t[]){1});
  MlirValue y = o3_nz_op(nz, "o3.matmul", O3_VALUES(a, b),
                         O3_ATTRS({"acc", acc.ptr ? o3_attr_type(acc) : mlirAttributeGetNull()}));
  int rank = o3_nz_rank(nz, y), count = 0;
  int64_t axes[2];
  if (a_rank == 1) axes[count++] = rank - 2;
  if (b_rank == 1) axes[count++] = rank - 1;
  return count ? o3_nz_squeeze(nz, y, count, axes) : y;
}

o3_status_t o3_onnx_matmul(o3_nz_t *nz, o3_node_t *node) {
  node->outputs[0] = o3_nz_product(nz, o3_node_input(node, 0), o3_node_input(node, 1), (MlirType){0});
  return NULL;
}

static MlirValue maybe_transpose(o3_nz_t *nz, const o3_node_t *node, const char *attr, MlirValue x) {
  return o3_node_int(node, attr, 0) ? o3_nz_transpose(nz, x, (int64_t[]){1, 0}) : x;
}

static MlirValue scaled(o3_nz_t *nz, MlirValue x, double factor) {
  return factor == 1 ? x : o3_nz_binary(nz, "o3.mul", x, o3_nz_like(nz, x, factor));
}

/* alpha * A' * B' + beta * C */
o3_status_t o3_onnx_gemm(o3_nz_t *nz, o3_node_t *node) {
  MlirValue a = o3_node_input(node, 0), b = o3_node_input(node, 1);
  if (o3_nz_rank(nz, a) != 2 || o3_nz_rank(nz, b) != 2)
    return o3_nz_invalid(nz, "inputs of ranks %d and %d, 2 expected", o3_nz_rank(nz, a), o3_nz_rank(nz, b));
  MlirValue product =
      o3_nz_matmul(nz, maybe_transpose(nz, node, "transA", a), maybe_transpose(nz, node, "transB", b));
  MlirValue y = scaled(nz, product, o3_node_float(node, "alpha", 1));
  if (o3_node_has_input(node, 2)) {
    MlirValue c;
    O3_TRY(o3_onnx_legacy_broadcast(nz, node, y, o3_node_input(node, 2), &c));
    y = o3_nz_binary(nz, "o3.add", y, scaled(nz, c, o3_node_float(node, "beta", 1)));
  }
  node->outputs[0] = y;
  return NULL;
}
