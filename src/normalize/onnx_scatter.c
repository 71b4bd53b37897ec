/* Scatters. */
#include <string.h>

#include "normalize/onnx_axes.h"

static o3_status_t read_reduction(o3_nz_t *nz, const o3_node_t *node, MlirAttribute *attr) {
  static const char *const KINDS[] = {"none", "add", "mul", "max", "min"};
  const char *name = o3_node_string(nz, node, "reduction", "none");
  *attr = o3_nz_string_attr(nz, name);
  for (int i = 0; i < 5; ++i) {
    if (strcmp(KINDS[i], name) == 0) return NULL;
  }
  return o3_nz_invalid(nz, "there is no reduction '%s'", name);
}

/* Scatter is its old name. */
o3_status_t o3_onnx_scatter_elements(o3_nz_t *nz, o3_node_t *node) {
  MlirAttribute reduction;
  MlirValue x = o3_node_input(node, 0);
  O3_TRY(read_reduction(nz, node, &reduction));
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", 0), o3_nz_rank(nz, x));
  node->outputs[0] =
      o3_nz_op(nz, "o3.scatter_elements", O3_VALUES(x, o3_node_input(node, 1), o3_node_input(node, 2)),
               O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)}, {"reduction", reduction}));
  return NULL;
}

o3_status_t o3_onnx_scatter_nd(o3_nz_t *nz, o3_node_t *node) {
  MlirAttribute reduction;
  O3_TRY(read_reduction(nz, node, &reduction));
  node->outputs[0] = o3_nz_op(
      nz, "o3.scatter_nd", O3_VALUES(o3_node_input(node, 0), o3_node_input(node, 1), o3_node_input(node, 2)),
      O3_ATTRS({"reduction", reduction}));
  return NULL;
}

/* Where each element of the update goes along the axis: the batch's first index and on, in a ring if asked
 * for. */
static MlirValue cache_positions(o3_nz_t *nz, MlirValue cache, MlirValue update, MlirValue first, int axis,
                                 bool circular) {
  int rank = o3_nz_rank(nz, update);
  o3_fact_t fact = {.element = o3_nz_i64(nz), .shape.rank = rank};
  o3_shape_t batch = {.rank = rank};
  MlirValue ahead;
  for (int i = 0; i < rank; ++i) {
    fact.shape.dims[i] = o3_nz_dim(nz, update, i);
    batch.dims[i] = i == 0 ? fact.shape.dims[0] : o3_expr_const(nz->context, 1);
  }
  o3_nz_op_stated(nz, "o3.iota", O3_NO_VALUES, O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)}), 1, &fact,
                  &ahead);
  if (!mlirValueIsNull(first)) {
    MlirValue start = o3_nz_reshape(nz, o3_nz_cast(nz, first, o3_nz_i64(nz)), &batch);
    ahead = o3_nz_binary(nz, "o3.add", ahead, start);
  }
  MlirAffineExpr size = o3_nz_dim(nz, cache, axis);
  return circular ? o3_nz_binary(nz, "o3.mod", ahead, o3_nz_sizes(nz, 1, &size, true)) : ahead;
}

o3_status_t o3_onnx_tensor_scatter(o3_nz_t *nz, o3_node_t *node) {
  MlirValue cache = o3_node_input(node, 0), update = o3_node_input(node, 1);
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", -2), o3_nz_rank(nz, cache));
  const char *mode = o3_node_string(nz, node, "mode", "linear");
  bool circular = strcmp(mode, "circular") == 0;
  if (!circular && strcmp(mode, "linear") != 0) return o3_nz_invalid(nz, "there is no mode '%s'", mode);
  if (axis == 0) return o3_nz_invalid(nz, "axis 0 is the batch");
  MlirValue positions = cache_positions(nz, cache, update, o3_node_input(node, 2), axis, circular);
  node->outputs[0] = o3_nz_op(
      nz, "o3.scatter_elements", O3_VALUES(cache, positions, update),
      O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)}, {"reduction", o3_nz_string_attr(nz, "none")}));
  return NULL;
}
