/* Matrix products: one contraction, its sum in f32 where the elements are halves. */
#include "target/ref/window.h"

/* acc + a * b in the accumulator's type. */
static void matmul_body(const o3_body_args_t *in) {
  MlirType acc = *(const MlirType *)in->context;
  MlirType a_old = o3_lw_old_element(in->op, 0), b_old = o3_lw_old_element(in->op, 1);
  MlirValue a = o3_lw_convert(in->builder, in->args[0], a_old, acc);
  MlirValue b = o3_lw_convert(in->builder, in->args[1], b_old, acc);
  bool is_float = o3_type_is_float(acc);
  MlirValue product = o3_build2(in->builder, is_float ? "arith.mulf" : "arith.muli", a, b);
  in->results[0] = o3_build2(in->builder, is_float ? "arith.addf" : "arith.addi", product, in->args[2]);
}

/* Loops: the result's dimensions, then k. |rows|: the operand has rows of k's, which A has and B by columns.
 */
static MlirAffineMap operand_map(const o3_lw_t *lw, const o3_shape_t *shape, const o3_shape_t *result,
                                 bool is_a, bool rows) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK];
  int lead = result->rank - shape->rank, last = shape->rank - 1, k = result->rank;
  for (int i = 0; i < last - 1; ++i) {
    bool repeated = o3_expr_equals_const(shape->dims[i], 1);
    exprs[i] = repeated ? o3_expr_const(lw->context, 0) : mlirAffineDimExprGet(lw->context, lead + i);
  }
  exprs[rows ? last - 1 : last] =
      mlirAffineDimExprGet(lw->context, is_a ? result->rank - 2 : result->rank - 1);
  exprs[rows ? last : last - 1] = mlirAffineDimExprGet(lw->context, k);
  return mlirAffineMapGet(lw->context, k + 1, 0, shape->rank, exprs);
}

o3_status_t o3_lower_matmul(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  static const char ITERATORS[] = "ppppppppppppppppr";
  o3_shape_t a, b, y;
  o3_lw_operand_shape(lw, op, 0, &a);
  o3_lw_operand_shape(lw, op, 1, &b);
  o3_lw_result_shape(lw, op, 0, &y);
  int64_t list[O3_IR_MAX_RANK];
  for (int i = 0; i < y.rank; ++i) list[i] = i;
  MlirType element = o3_lw_result_element(op, 0), sum = o3_lw_sum_element(element);
  MlirValue zero = o3_lw_scalar(&lw->builder, o3_lw_type(sum), 0), product;
  o3_generic_t generic = {.op = op,
                          .iterators = ITERATORS + O3_IR_MAX_RANK - y.rank,
                          .num_inputs = 2,
                          .inputs = {operands[0], operands[1]},
                          .num_outputs = 1,
                          .outputs = {o3_lw_fill(lw, &y, zero)},
                          .maps = {operand_map(lw, &a, &y, true, true),
                                   operand_map(lw, &b, &y, false, o3_op_is(op, "o3.matmul_columns")),
                                   o3_lw_projection(lw, y.rank + 1, y.rank, list)},
                          .body = matmul_body,
                          .context = &sum,
                          .kernel = "matmul"};
  o3_lw_generic(lw, &generic, &product);
  results[0] = o3_lw_convert_all(lw, product, &y, sum, element);
  return NULL;
}
