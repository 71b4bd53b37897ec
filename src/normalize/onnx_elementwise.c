/* ONNX's elementwise ops. */
#include <string.h>

#include "normalize/nz.h"

/* ONNX op -> op of the dialect, for those that are the same. */
static const struct {
  const char *onnx, *name;
} SAME[] = {{"Add", "o3.add"}, {"Sub", "o3.sub"}, {"Mul", "o3.mul"}, {"Div", "o3.div"}};

static const char *same_op(const o3_node_t *node) {
  for (size_t i = 0; i < sizeof(SAME) / sizeof(SAME[0]); ++i) {
    if (strcmp(SAME[i].onnx, node->op_type) == 0) return SAME[i].name;
  }
  return NULL;
}

o3_status_t o3_onnx_binary(o3_nz_t *nz, o3_node_t *node) {
  node->outputs[0] = o3_nz_binary(nz, same_op(node), o3_node_input(node, 0), o3_node_input(node, 1));
  return NULL;
}

o3_status_t o3_onnx_relu(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  node->outputs[0] = o3_nz_binary(nz, "o3.max", x, o3_nz_like(nz, x, 0));
  return NULL;
}

/* max(0, min(1, alpha * x + beta)) */
o3_status_t o3_onnx_hard_sigmoid(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  MlirValue alpha = o3_nz_like(nz, x, o3_node_float(node, "alpha", 0.2));
  MlirValue beta = o3_nz_like(nz, x, o3_node_float(node, "beta", 0.5));
  MlirValue line = o3_nz_binary(nz, "o3.add", o3_nz_binary(nz, "o3.mul", x, alpha), beta);
  node->outputs[0] = o3_nz_clamp(nz, line, 0, 1);
  return NULL;
}
