/* What loops build their results with. */
#include "target/ref/lowering.h"

o3_status_t o3_lower_empty(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  o3_shape_t shape;
  (void)operands;
  o3_lw_result_shape(lw, op, 0, &shape);
  results[0] = o3_lw_empty(lw, &shape, o3_lw_new_element(op, 0));
  return NULL;
}

/* Offsets or sizes as tensor.insert_slice takes them: static ones as numbers, others as operands. */
static int split_static(o3_lw_t *lw, int rank, const MlirAffineExpr *exprs, int64_t *numbers,
                        MlirValue *values) {
  int count = 0;
  for (int i = 0; i < rank; ++i) {
    if (o3_expr_is_const(exprs[i], &numbers[i])) continue;
    numbers[i] = mlirShapedTypeGetDynamicSize();
    values[count++] = o3_lw_size(lw, exprs[i]);
  }
  return count;
}

o3_status_t o3_lower_insert_slice(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                  MlirValue *results) {
  o3_shape_t update;
  int64_t axes[O3_IR_MAX_RANK], offsets[O3_IR_MAX_RANK], sizes[O3_IR_MAX_RANK], strides[O3_IR_MAX_RANK];
  MlirAffineExpr starts[O3_IR_MAX_RANK];
  MlirValue all[2 + 2 * O3_IR_MAX_RANK] = {operands[1], operands[0]};
  o3_lw_operand_shape(lw, op, 1, &update);
  int rank = update.rank, count = o3_op_ints(op, "axes", axes, O3_IR_MAX_RANK);
  MlirAffineMap map = mlirAffineMapAttrGetValue(o3_op_attr(op, "starts"));
  for (int i = 0; i < rank; ++i) {
    starts[i] = o3_expr_const(lw->context, 0);
    strides[i] = 1;
  }
  for (int i = 0; i < count; ++i) starts[axes[i]] = mlirAffineMapGetResult(map, i);
  int num_offsets = split_static(lw, rank, starts, offsets, all + 2);
  int num_sizes = split_static(lw, rank, update.dims, sizes, all + 2 + num_offsets);
  int32_t segments[5] = {1, 1, num_offsets, num_sizes, 0};
  results[0] = o3_build1_attrs(
      &lw->builder, "tensor.insert_slice", mlirValueGetType(operands[0]), 2 + num_offsets + num_sizes, all,
      O3_ATTRS({"static_offsets", o3_attr_ints(lw->context, rank, offsets)},
               {"static_sizes", o3_attr_ints(lw->context, rank, sizes)},
               {"static_strides", o3_attr_ints(lw->context, rank, strides)},
               {"operandSegmentSizes", mlirDenseI32ArrayGet(lw->context, 5, segments)}));
  return NULL;
}
