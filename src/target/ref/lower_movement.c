/* Ops that move data. */
#include "target/ref/lowering.h"

o3_status_t o3_lower_reshape(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  o3_shape_t from, to;
  o3_lw_operand_shape(lw, op, 0, &from);
  o3_lw_result_shape(lw, op, 0, &to);
  results[0] = o3_lw_reshape(lw, operands[0], &from, &to);
  return NULL;
}

static void copy_body(const o3_body_args_t *in) { in->results[0] = in->args[0]; }

o3_status_t o3_lower_transpose(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  int64_t perm[O3_IR_MAX_RANK], inverse[O3_IR_MAX_RANK];
  o3_shape_t shape;
  int rank = o3_op_ints(op, "perm", perm, O3_IR_MAX_RANK);
  for (int i = 0; i < rank; ++i) inverse[perm[i]] = i;
  o3_lw_result_shape(lw, op, 0, &shape);
  o3_generic_t generic = {.op = op,
                          .iterators = &"pppppppppppppppp"[O3_IR_MAX_RANK - rank],
                          .num_inputs = 1,
                          .inputs = {operands[0]},
                          .num_outputs = 1,
                          .outputs = {o3_lw_empty(lw, &shape, o3_lw_new_element(op, 0))},
                          .maps = {o3_lw_projection(lw, rank, rank, inverse), o3_lw_identity(lw, rank)},
                          .body = copy_body};
  o3_lw_generic(lw, &generic, results);
  return NULL;
}

o3_status_t o3_lower_broadcast(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  results[0] = o3_lw_map(lw, op, 0, 1, operands, copy_body, NULL);
  return NULL;
}
