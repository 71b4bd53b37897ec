/* A softmax is found by its ops, whether an exporter wrote it out or not: a greatest value of x, and exp(x -
 * m) with both read from the same buffers in the same order. */
#include "target/cpu/row_marks.h"

#include "target/cpu/cpu_ir.h"

static MlirOperation def_in(MlirBlock body, MlirValue value, const char *name) {
  MlirOperation def = o3_value_def(value);
  bool inside = !mlirOperationIsNull(def) && mlirBlockEqual(mlirOperationGetBlock(def), body);
  return inside && o3_op_is(def, name) ? def : (MlirOperation){0};
}

/* The operand of the op that |value| is, as the body sees it, or widened; null when it is none. */
static MlirValue operand_of(MlirOperation op, MlirBlock body, MlirValue value) {
  MlirOperation wide = def_in(body, value, "arith.extf");
  if (!mlirOperationIsNull(wide)) value = mlirOperationGetOperand(wide, 0);
  if (!mlirValueIsABlockArgument(value) || !mlirBlockEqual(mlirBlockArgumentGetOwner(value), body))
    return (MlirValue){0};
  return mlirOperationGetOperand(op, mlirBlockArgumentGetArgNumber(value));
}

static bool has_same_map(MlirOperation a, MlirOperation b, MlirValue value) {
  MlirAttribute maps[2] = {{0}, {0}};
  MlirOperation ops[] = {a, b};
  for (int k = 0; k < 2; ++k) {
    MlirAttribute list = o3_op_attr(ops[k], "indexing_maps");
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(ops[k]); ++i) {
      if (mlirValueEqual(mlirOperationGetOperand(ops[k], i), value))
        maps[k] = mlirArrayAttrGetElement(list, i);
    }
  }
  return !mlirAttributeIsNull(maps[0]) && mlirAttributeEqual(maps[0], maps[1]);
}

static bool writes(MlirOperation op, MlirValue buffer) {
  intptr_t count = mlirOperationGetNumOperands(op);
  return count && mlirValueEqual(mlirOperationGetOperand(op, count - 1), buffer);
}

/* Whether |op| makes |greatest| the greatest of |x|. */
static bool is_greatest(MlirOperation op, MlirValue x, MlirValue greatest) {
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
  MlirOperation max =
      def_in(body, mlirOperationGetOperand(mlirBlockGetTerminator(body), 0), "arith.maximumf");
  if (!writes(op, greatest) || mlirOperationIsNull(max)) return false;
  MlirValue a = operand_of(op, body, mlirOperationGetOperand(max, 0)),
            b = operand_of(op, body, mlirOperationGetOperand(max, 1));
  return (mlirValueEqual(a, x) && mlirValueEqual(b, greatest)) ||
         (mlirValueEqual(b, x) && mlirValueEqual(a, greatest));
}

/* Whether |greatest| was made so before op |index|, and |x| not written since. */
static bool is_made(const o3_inlined_t *self, int index, MlirValue x, MlirValue greatest) {
  bool made = false;
  for (int i = 0; i < index; ++i) {
    MlirOperation op = self->ops[i];
    if (writes(op, x)) made = false;
    if (!writes(op, greatest)) continue;
    made = is_greatest(op, x, greatest) && has_same_map(op, self->ops[index], x) &&
           has_same_map(op, self->ops[index], greatest);
  }
  return made;
}

static void mark(const o3_inlined_t *self, int index) {
  MlirOperation op = self->ops[index];
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
  for (MlirOperation exp = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(exp);
       exp = mlirOperationGetNextInBlock(exp)) {
    if (!o3_op_is(exp, "math.exp")) continue;
    MlirOperation sub = def_in(body, mlirOperationGetOperand(exp, 0), "arith.subf");
    if (mlirOperationIsNull(sub)) continue;
    MlirValue x = operand_of(op, body, mlirOperationGetOperand(sub, 0)),
              greatest = operand_of(op, body, mlirOperationGetOperand(sub, 1));
    if (mlirValueIsNull(x) || mlirValueIsNull(greatest) || !is_made(self, index, x, greatest)) continue;
    o3_op_attr_set(exp, O3_CPU_NOT_POSITIVE, mlirUnitAttrGet(mlirOperationGetContext(exp)));
  }
}

void o3_row_marks_set(const o3_inlined_t *inlined) {
  for (int i = 0; i < inlined->num_ops; ++i) mark(inlined, i);
}
