/* Old opsets. Where they ask for less than today's ops give (equal shapes, say), it is checked: a model that
 * breaks a rule of its own opset would otherwise compute something that nobody stated. */
#include "normalize/onnx_legacy.h"

#include <stdlib.h>

MlirValue o3_onnx_legacy_extend(o3_nz_t *nz, MlirValue x, int count) {
  int64_t axes[O3_IR_MAX_RANK];
  int rank = o3_nz_rank(nz, x);
  if (count <= 0 || rank + count > O3_IR_MAX_RANK) return x;
  for (int i = 0; i < count; ++i) axes[i] = rank + i;
  return o3_nz_unsqueeze(nz, x, count, axes);
}

bool o3_onnx_legacy_is_single(const o3_nz_t *nz, MlirValue x) {
  for (int i = 0; i < o3_nz_rank(nz, x); ++i) {
    if (!o3_expr_equals_const(o3_nz_dim(nz, x, i), 1)) return false;
  }
  return true;
}

o3_status_t o3_onnx_legacy_since(o3_nz_t *nz, const o3_node_t *node, int64_t since) {
  if (node->opset >= since) return NULL;
  return o3_nz_unsupported(nz, "op %s of opset %lld is not supported, %lld or later is", node->op_type,
                           (long long)node->opset, (long long)since);
}

/* ---- Shapes ---- */

static o3_status_t mismatch(o3_nz_t *nz, const o3_node_t *node, MlirValue a, MlirValue b, const char *rule) {
  char *a_text = o3_shape_text(nz->symbols, &o3_nz_fact(nz, a)->shape);
  char *b_text = o3_shape_text(nz->symbols, &o3_nz_fact(nz, b)->shape);
  o3_status_t status = o3_nz_invalid(nz, "shapes [%s] and [%s] in opset %lld, %s", a_text ? a_text : "?",
                                     b_text ? b_text : "?", (long long)node->opset, rule);
  free(a_text);
  free(b_text);
  return status;
}

static o3_status_t require_same(o3_nz_t *nz, const o3_node_t *node, MlirValue a, MlirValue b,
                                const char *rule) {
  int rank = o3_nz_rank(nz, a);
  if (o3_nz_rank(nz, b) != rank) return mismatch(nz, node, a, b, rule);
  for (int i = 0; i < rank; ++i) {
    if (!o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, a, i), o3_nz_dim(nz, b, i), nz->who))
      return mismatch(nz, node, a, b, rule);
  }
  return NULL;
}

o3_status_t o3_onnx_legacy_same_shapes(o3_nz_t *nz, const o3_node_t *node) {
  for (int i = 1; i < node->num_inputs; ++i)
    O3_TRY(require_same(nz, node, node->inputs[0], node->inputs[i], "they must be equal before opset 8"));
  return NULL;
}

/* ---- broadcast and axis ---- */

/* The specification has no dimensions of 1 that are repeated, exporters wrote them. */
static o3_status_t align(o3_nz_t *nz, const o3_node_t *node, MlirValue a, MlirValue b, MlirValue *aligned) {
  int a_rank = o3_nz_rank(nz, a), b_rank = o3_nz_rank(nz, b), axis = a_rank - b_rank;
  if (axis >= 0 && o3_node_has_attr(node, "axis"))
    axis = o3_nz_axis(nz, o3_node_int(node, "axis", 0), a_rank);
  if (o3_nz_failed(nz)) return NULL;
  if (axis < 0 || axis + b_rank > a_rank)
    return mismatch(nz, node, a, b, "the second must lie within the first from axis on");
  for (int i = 0; i < b_rank; ++i) {
    MlirAffineExpr size = o3_nz_dim(nz, b, i), room = o3_nz_dim(nz, a, axis + i);
    if (o3_expr_equals_const(size, 1)) continue;
    if (!o3_symbols_require_equal(nz->symbols, size, room, nz->who))
      return mismatch(nz, node, a, b, "the second must be equal to a part of the first");
  }
  *aligned = o3_onnx_legacy_extend(nz, b, a_rank - axis - b_rank);
  return NULL;
}

o3_status_t o3_onnx_legacy_broadcast(o3_nz_t *nz, const o3_node_t *node, MlirValue a, MlirValue b,
                                     MlirValue *aligned) {
  *aligned = b;
  if (node->opset >= 7 || mlirValueIsNull(a) || mlirValueIsNull(b)) return NULL;
  if (!o3_node_int(node, "broadcast", 0))
    return require_same(nz, node, a, b, "without broadcast=1 they must be equal");
  bool fits = o3_nz_rank(nz, b) <= o3_nz_rank(nz, a);
  return fits && o3_onnx_legacy_is_single(nz, b) ? NULL : align(nz, node, a, b, aligned);
}
