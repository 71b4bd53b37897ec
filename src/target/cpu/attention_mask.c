/* The mask itself is looked at, whatever it is made of: below a diagonal, a window, the keys that a sequence
 * has. Reading a block of it takes less than a hundredth of the time of the block's products.
 *
 * A score that -inf stands for adds exp(-inf) = 0. One that another constant stands for (exporters take the
 * lowest number) adds exp(constant - greatest), which is 0 once each row has a score so far above: a row that
 * the mask hides as a whole is the average of all values, and comes out so. Scores are finite where -inf is
 * added to them; a NaN there stays one in the rows that see it.
 */
#include "target/cpu/attention_mask.h"

#include <math.h>

#include "target/cpu/softmax_text.h"

static int argument_of(const o3_gemm_side_t *side, MlirValue value) {
  if (!mlirValueIsABlockArgument(value)) return -1;
  if (!mlirBlockEqual(mlirBlockArgumentGetOwner(value), side->nest.body)) return -1;
  return (int)mlirBlockArgumentGetArgNumber(value);
}

static bool is_number(MlirValue value, double *number) {
  MlirOperation def = o3_value_def(value);
  MlirAttribute attr = {0};
  if (!mlirOperationIsNull(def) && o3_op_is(def, "arith.constant")) attr = o3_op_attr(def, "value");
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAFloat(attr)) return false;
  *number = mlirFloatAttrGetValueDouble(attr);
  return true;
}

/* select(mask, score, constant), or the other way round. */
static bool read_select(const o3_gemm_side_t *side, MlirOperation op, o3_attention_mask_t *mask) {
  mask->operand = argument_of(side, mlirOperationGetOperand(op, 0));
  mask->hides_true = is_number(mlirOperationGetOperand(op, 1), &mask->hidden);
  return mask->operand >= 0 && (mask->hides_true || is_number(mlirOperationGetOperand(op, 2), &mask->hidden));
}

/* Whether body argument |index| is a score: what the op overwrites, or memory that the product writes. */
static bool is_score(const o3_gemm_product_t *p, const o3_gemm_side_t *side, int index) {
  const o3_nest_operand_t *operand = &side->nest.operands[index];
  return index >= side->nest.num_inputs || mlirValueEqual(operand->value, p->c->value);
}

/* score + mask, in any order. */
static bool read_add(const o3_gemm_product_t *p, const o3_gemm_side_t *side, MlirOperation op,
                     o3_attention_mask_t *mask) {
  mask->is_added = true;
  mask->hidden = -INFINITY;
  for (int i = 0; i < 2; ++i) {
    mask->operand = argument_of(side, mlirOperationGetOperand(op, i));
    if (mask->operand >= 0 && !is_score(p, side, mask->operand)) return true;
  }
  return false;
}

static bool is_linear(const o3_gemm_product_t *p, const o3_gemm_side_t *side,
                      const o3_nest_operand_t *operand) {
  bool is_f32 = mlirTypeIsAF32(o3_type_element(mlirValueGetType(operand->value)));
  bool is_bool = mlirTypeIsAInteger(o3_type_element(mlirValueGetType(operand->value)));
  return (is_f32 || is_bool) && o3_nest_is_linear(operand, side->dims[p->rows.at[0]]) &&
         o3_nest_is_linear(operand, side->dims[p->columns.at[0]]);
}

bool o3_attention_mask_read(const o3_gemm_product_t *p, const o3_gemm_side_t *side,
                            o3_attention_mask_t *mask) {
  MlirOperation op = o3_value_def(mlirOperationGetOperand(mlirBlockGetTerminator(side->nest.body), 0));
  *mask = (o3_attention_mask_t){0};
  if (mlirOperationIsNull(op)) return false;
  bool found = o3_op_is(op, "arith.select") ? read_select(side, op, mask)
                                            : o3_op_is(op, "arith.addf") && read_add(p, side, op, mask);
  if (!found || mask->operand >= side->nest.num_inputs) return false;
  const o3_nest_operand_t *operand = &side->nest.operands[mask->operand];
  return operand->is_memref && is_linear(p, side, operand);
}

static MlirValue call(o3_builder_t *b, const char *name, int num, const MlirValue *operands) {
  return o3_build1_attrs(b, "func.call", mlirIntegerTypeGet(b->context, 1), num, operands,
                         O3_ATTRS({"callee", mlirFlatSymbolRefAttrGet(b->context, O3_STR(name))}));
}

MlirValue o3_attention_mask_build(const o3_gemm_product_t *p, const o3_gemm_side_t *side,
                                  const o3_attention_mask_t *mask, o3_builder_t *b,
                                  const o3_attention_block_t *block) {
  const o3_nest_operand_t *operand = &side->nest.operands[mask->operand];
  MlirValue at = o3_nest_address(&side->nest, operand, b, block->ivs), zero = o3_build_index(b, 0);
  MlirValue row = o3_nest_step_value(operand, side->dims[p->rows.at[0]], b);
  MlirValue column = o3_nest_step_value(operand, side->dims[p->columns.at[0]], b);
  if (mask->is_added)
    return call(b, O3_SOFTMAX_SEES_ADDED,
                O3_VALUES(operand->flat, at, row, column, block->rows, block->columns));
  MlirValue memory = o3_build1(b, "memref.extract_aligned_pointer_as_index", o3_build_index_type(b),
                               O3_VALUES(operand->flat));
  MlirValue flip = o3_build_int(b, mlirIntegerTypeGet(b->context, 8), mask->hides_true);
  MlirValue sees =
      call(b, O3_SOFTMAX_SEES, O3_VALUES(memory, at, row, column, block->rows, block->columns, flip));
  MlirValue hidden = o3_build_float(b, mlirF32TypeGet(b->context), mask->hidden);
  MlirValue counts = call(b, O3_SOFTMAX_COUNTS, O3_VALUES(block->greatest, zero, block->rows, hidden));
  return o3_build2(b, "arith.ori", sees, counts);
}
