/* Optimizers of ai.onnx.preview.training: elementwise updates of n tensors by their gradients. Inputs are the
 * learning rate, the update count T, then n tensors of each kind; outputs likewise, kind by kind. */
#include <string.h>

#include "normalize/nz_math.h"

/* What all tensors share; scalars of the element type. */
typedef struct optimizer {
  const o3_node_t *node;
  MlirValue rate, count; /* T as a number */
  MlirValue is_first;    /* i1: T is 0 */
} optimizer_t;

/* |x|: the tensor, its gradient, its states; |y|: the new tensor, its new states. */
typedef void (*update_fn_t)(o3_nz_t *nz, const optimizer_t *o, const MlirValue *x, MlirValue *y);

static double attr(const optimizer_t *o, const char *name, double fallback) {
  return o3_node_float(o->node, name, fallback);
}

static MlirValue square_root_plus(o3_nz_t *nz, MlirValue x, double epsilon) {
  return o3_nz_add_number(nz, o3_nz_unary(nz, "o3.sqrt", x), epsilon);
}

/* norm_coefficient * x + g */
static MlirValue regularized(o3_nz_t *nz, const optimizer_t *o, const MlirValue *x) {
  return o3_nz_add(nz, o3_nz_mul_number(nz, x[0], attr(o, "norm_coefficient", 0)), x[1]);
}

static MlirValue one_minus_power(o3_nz_t *nz, double base, MlirValue exponent) {
  MlirValue power = o3_nz_binary(nz, "o3.pow", o3_nz_like(nz, exponent, base), exponent);
  return o3_nz_sub(nz, o3_nz_like(nz, exponent, 1), power);
}

/* The rate with the bias of both averages taken out; as it is for T = 0. */
static MlirValue adam_rate(o3_nz_t *nz, const optimizer_t *o, double alpha, double beta) {
  MlirValue second = o3_nz_unary(nz, "o3.sqrt", one_minus_power(nz, beta, o->count));
  MlirValue corrected = o3_nz_div(nz, o3_nz_mul(nz, o->rate, second), one_minus_power(nz, alpha, o->count));
  return o3_nz_select(nz, o->is_first, o->rate, corrected);
}

static void update_adam(o3_nz_t *nz, const optimizer_t *o, const MlirValue *x, MlirValue *y) {
  double alpha = attr(o, "alpha", 0.9), beta = attr(o, "beta", 0.999);
  MlirValue g = regularized(nz, o, x);
  MlirValue squared = o3_nz_mul(nz, g, g);
  y[1] = o3_nz_add(nz, o3_nz_mul_number(nz, x[2], alpha), o3_nz_mul_number(nz, g, 1 - alpha));
  y[2] = o3_nz_add(nz, o3_nz_mul_number(nz, x[3], beta), o3_nz_mul_number(nz, squared, 1 - beta));
  MlirValue direction = o3_nz_div(nz, y[1], square_root_plus(nz, y[2], attr(o, "epsilon", 1e-6)));
  MlirValue next = o3_nz_sub(nz, x[0], o3_nz_mul(nz, adam_rate(nz, o, alpha, beta), direction));
  y[0] = o3_nz_mul_number(nz, next, 1 - attr(o, "norm_coefficient_post", 0));
}

static void update_adagrad(o3_nz_t *nz, const optimizer_t *o, const MlirValue *x, MlirValue *y) {
  MlirValue g = regularized(nz, o, x);
  MlirValue decay = o3_nz_add_number(nz, o3_nz_mul_number(nz, o->count, attr(o, "decay_factor", 0)), 1);
  y[1] = o3_nz_add(nz, x[2], o3_nz_mul(nz, g, g));
  MlirValue step = o3_nz_mul(nz, o3_nz_div(nz, o->rate, decay), g);
  y[0] = o3_nz_sub(nz, x[0], o3_nz_div(nz, step, square_root_plus(nz, y[1], attr(o, "epsilon", 1e-6))));
}

/* The first gradient counts in full. */
static void update_momentum(o3_nz_t *nz, const optimizer_t *o, const MlirValue *x, MlirValue *y) {
  bool nesterov = strcmp(o3_node_string(nz, o->node, "mode", "standard"), "nesterov") == 0;
  double alpha = attr(o, "alpha", 0);
  MlirValue g = regularized(nz, o, x);
  MlirValue beta =
      o3_nz_select(nz, o->is_first, o3_nz_like(nz, o->rate, 1), o3_nz_like(nz, o->rate, attr(o, "beta", 0)));
  y[1] = o3_nz_add(nz, o3_nz_mul_number(nz, x[2], alpha), o3_nz_mul(nz, beta, g));
  MlirValue direction = nesterov ? o3_nz_add(nz, g, o3_nz_mul_number(nz, y[1], alpha)) : y[1];
  y[0] = o3_nz_sub(nz, x[0], o3_nz_mul(nz, o->rate, direction));
}

enum { MAX_KINDS = 4 };

/* The rate and count may have one element in any rank. */
static MlirValue scalar_input(o3_nz_t *nz, const o3_node_t *node, int index, MlirType element) {
  MlirValue x = o3_nz_reshape(nz, o3_node_input(node, index), &(o3_shape_t){.rank = 0});
  return o3_nz_cast(nz, x, element);
}

static o3_status_t convert(o3_nz_t *nz, o3_node_t *node, int num_kinds, update_fn_t update) {
  int tensors = (node->num_inputs - 2) / num_kinds;
  MlirValue x[MAX_KINDS], y[MAX_KINDS];
  if (tensors < 1 || node->num_inputs != 2 + tensors * num_kinds ||
      node->num_outputs != tensors * (num_kinds - 1))
    return o3_nz_invalid(nz, "%d inputs and %d outputs do not make whole tensors", node->num_inputs,
                         node->num_outputs);
  MlirType element = o3_nz_element(nz, node->inputs[2]);
  optimizer_t o = {
      .node = node, .rate = scalar_input(nz, node, 0, element), .count = scalar_input(nz, node, 1, element)};
  o.is_first = o3_nz_equal(nz, o.count, o3_nz_like(nz, o.count, 0));
  for (int i = 0; i < tensors; ++i) {
    for (int k = 0; k < num_kinds; ++k) x[k] = node->inputs[2 + k * tensors + i];
    update(nz, &o, x, y);
    for (int k = 0; k < num_kinds - 1; ++k) node->outputs[k * tensors + i] = y[k];
  }
  return NULL;
}

o3_status_t o3_onnx_adam(o3_nz_t *nz, o3_node_t *node) { return convert(nz, node, 4, update_adam); }
o3_status_t o3_onnx_adagrad(o3_nz_t *nz, o3_node_t *node) { return convert(nz, node, 3, update_adagrad); }
o3_status_t o3_onnx_momentum(o3_nz_t *nz, o3_node_t *node) { return convert(nz, node, 3, update_momentum); }
