/* ONNX Runtime's fused products (com.microsoft): the plain op, then the activation. */
#include <float.h>
#include <string.h>

#include "normalize/onnx_matmul.h"
#include "normalize/onnx_window.h"

/* ---- Activations ---- */

typedef MlirValue (*activation_fn_t)(o3_nz_t *nz, MlirValue x, const double *params);

static MlirValue relu(o3_nz_t *nz, MlirValue x, const double *params) {
  (void)params;
  return o3_nz_binary(nz, "o3.max", x, o3_nz_like(nz, x, 0));
}

static MlirValue leaky_relu(o3_nz_t *nz, MlirValue x, const double *params) {
  MlirValue zero = o3_nz_like(nz, x, 0);
  MlirValue scaled = o3_nz_binary(nz, "o3.mul", x, o3_nz_like(nz, x, params[0]));
  return o3_nz_select(nz, o3_nz_binary(nz, "o3.less", x, zero), scaled, x);
}

static MlirValue sigmoid(o3_nz_t *nz, MlirValue x, const double *params) {
  (void)params;
  return o3_nz_unary(nz, "o3.sigmoid", x);
}

static MlirValue hyperbolic(o3_nz_t *nz, MlirValue x, const double *params) {
  (void)params;
  return o3_nz_unary(nz, "o3.tanh", x);
}

static MlirValue clip(o3_nz_t *nz, MlirValue x, const double *params) {
  return o3_nz_clamp(nz, x, params[0], params[1]);
}

static MlirValue hard_sigmoid(o3_nz_t *nz, MlirValue x, const double *params) {
  MlirValue line = o3_nz_binary(nz, "o3.mul", x, o3_nz_like(nz, x, params[0]));
  return o3_nz_clamp(nz, o3_nz_binary(nz, "o3.add", line, o3_nz_like(nz, x, params[1])), 0, 1);
}

static const struct {
  const char *name;
  activation_fn_t fn;
  double defaults[2];
} ACTIVATIONS[] = {
    {"Relu", relu, {0, 0}},
    {"LeakyRelu", leaky_relu, {0.01, 0}},
    {"Sigmoid", sigmoid, {0, 0}},
    {"Tanh", hyperbolic, {0, 0}},
    {"Clip", clip, {-FLT_MAX, FLT_MAX}},
    {"HardSigmoid", hard_sigmoid, {0.2, 0.5}},
};

static o3_status_t activate(o3_nz_t *nz, const o3_node_t *node, MlirValue x, MlirValue *y) {
  const char *name = o3_node_string(nz, node, "activation", "");
  double params[8];
  *y = x;
  if (name[0] == 0) return NULL;
  int count = o3_node_floats(nz, node, "activation_params", params, 8);
  for (size_t i = 0; i < sizeof(ACTIVATIONS) / sizeof(ACTIVATIONS[0]); ++i) {
    if (strcmp(ACTIVATIONS[i].name, name) != 0) continue;
    for (int k = count; k < 2; ++k) params[k] = ACTIVATIONS[i].defaults[k];
    *y = ACTIVATIONS[i].fn(nz, x, params);
    return NULL;
  }
  return o3_nz_unsupported(nz, "activation '%s' is not supported", name);
}

/* ---- The ops ---- */

/* Inputs: x, w, bias, and what is added before the activation. */
o3_status_t o3_onnx_fused_conv(o3_nz_t *nz, o3_node_t *node) {
  int count = o3_node_has_input(node, 2) ? 3 : 2;
  const MlirValue operands[3] = {o3_node_input(node, 0), o3_node_input(node, 1), o3_node_input(node, 2)};
  MlirValue y;
  O3_TRY(o3_nz_conv(nz, node, count, operands, (MlirType){0}, &y));
  if (o3_node_has_input(node, 3)) y = o3_nz_binary(nz, "o3.add", y, o3_node_input(node, 3));
  return activate(nz, node, y, &node->outputs[0]);
}

/* |x| with its last two dimensions exchanged where |swap|, and its first moved behind the other batch
 * dimensions where |batch|. */
static MlirValue arranged(o3_nz_t *nz, MlirValue x, bool swap, bool batch) {
  int64_t perm[O3_IR_MAX_RANK];
  int rank = o3_nz_rank(nz, x);
  for (int i = 0; i < rank; ++i) perm[i] = i;
  if (batch && rank > 2) {
    for (int i = 0; i < rank - 2; ++i) perm[i] = i + 1;
    perm[rank - 2] = 0;
  }
  if (swap && rank > 1) {
    int64_t last = perm[rank - 1];
    perm[rank - 1] = perm[rank - 2];
    perm[rank - 2] = last;
  }
  return o3_nz_transpose(nz, x, perm);
}

o3_status_t o3_onnx_fused_matmul(o3_nz_t *nz, o3_node_t *node) {
  double alpha = o3_node_float(node, "alpha", 1);
  MlirValue a = arranged(nz, o3_node_input(node, 0), o3_node_int(node, "transA", 0),
                         o3_node_int(node, "transBatchA", 0));
  MlirValue b = arranged(nz, o3_node_input(node, 1), o3_node_int(node, "transB", 0),
                         o3_node_int(node, "transBatchB", 0));
  MlirValue y = o3_nz_product(nz, a, b, (MlirType){0});
  node->outputs[0] = alpha == 1 ? y : o3_nz_binary(nz, "o3.mul", y, o3_nz_like(nz, y, alpha));
  return NULL;
}
