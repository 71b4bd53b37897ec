/* Ops that draw random numbers. A compiled model gives the same result for the same input, so there is none;
 * Dropout is the identity outside of training. */
#include "normalize/nz_math.h"

o3_status_t o3_onnx_random(o3_nz_t *nz, o3_node_t *node) {
  (void)node;
  return o3_nz_unsupported(nz, "a compiled model draws no random numbers: make them an input of the model");
}

/* training_mode && ratio != 0 as an i64 scalar that must be 0: known now, or checked when the model runs. */
static o3_status_t require_no_training(o3_nz_t *nz, const o3_node_t *node) {
  MlirValue training = o3_node_input(node, 2), ratio = o3_node_input(node, 1);
  MlirAffineExpr drops;
  if (mlirValueIsNull(training)) return NULL;
  if (!mlirValueIsNull(ratio)) {
    MlirValue some = o3_nz_not(nz, o3_nz_equal(nz, ratio, o3_nz_like(nz, ratio, 0)));
    training = o3_nz_binary(nz, "o3.and", training, some);
  }
  MlirValue flag = o3_nz_cast(nz, training, o3_nz_i64(nz));
  const char *who =
      o3_arena_printf(nz->arena, "%s: training mode, in which random elements are dropped", nz->who);
  O3_TRY_ALLOC(who);
  if (o3_nz_bind_sizes(nz, flag, "training_mode", &drops, 1) != 1) return NULL;
  if (o3_symbols_require_equal(nz->symbols, drops, o3_expr_const(nz->context, 0), who)) return NULL;
  return o3_nz_unsupported(nz, "training mode, in which random elements are dropped, is not supported");
}

/* Before opset 7 is_test says that it is no training. */
static o3_status_t require_test(o3_nz_t *nz, const o3_node_t *node) {
  double ratio = o3_node_float(node, "ratio", 0.5);
  if (o3_node_int(node, "is_test", 0) || ratio == 0) return NULL;
  return o3_nz_unsupported(nz,
                           "is_test 0 with ratio %g (training, in which random elements are dropped) is not "
                           "supported",
                           ratio);
}

/* The mask, when it is wanted, is all true. */
o3_status_t o3_onnx_dropout(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  if (node->opset >= 12) O3_TRY(require_no_training(nz, node));
  if (node->opset < 7) O3_TRY(require_test(nz, node));
  node->outputs[0] = x;
  if (node->num_outputs < 2 || !node->wanted[1]) return NULL;
  MlirType element = node->opset >= 10 ? o3_nz_i1(nz) : o3_nz_element(nz, x);
  node->outputs[1] = o3_nz_filled(nz, &o3_nz_fact(nz, x)->shape, element, 1);
  return NULL;
}
