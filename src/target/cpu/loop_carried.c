/* cpu-loop-carried: a tensor that a loop carries is kept in one buffer from iteration to iteration.
 *
 * Needs: a lowered module on tensors. Guarantees: each carried tensor of static shape is written into the
 * tensor that it replaces, so that bufferization finds the yielded buffer equal to the carried one:
 *
 *     scf.yield %new                       %kept = bufferization.materialize_in_destination %new in %carried
 *                                      ->  scf.yield %kept
 *
 * Else the buffer would be a new one in each iteration. Tensors that change their size must be new ones.
 */
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"

/* What |value| is written over, one step back: the destination of an insert, the output of a linalg op. */
static MlirValue destination_of(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def)) return (MlirValue){0};
  if (o3_op_is(def, "tensor.insert_slice") || o3_op_is(def, "tensor.insert") ||
      o3_op_is(def, "bufferization.materialize_in_destination"))
    return mlirOperationGetOperand(def, 1);
  if (o3_op_is(def, "scf.for")) return mlirOperationGetOperand(def, 3 + mlirOpResultGetResultNumber(value));
  if (o3_op_is_of(def, "linalg"))
    return mlirOperationGetOperand(def, mlirOperationGetNumOperands(def) - mlirOperationGetNumResults(def) +
                                            mlirOpResultGetResultNumber(value));
  return (MlirValue){0};
}

static bool is_written_over(MlirValue value, MlirValue carried) {
  while (!mlirValueIsNull(value) && !mlirValueEqual(value, carried)) value = destination_of(value);
  return !mlirValueIsNull(value);
}

static void keep(MlirOperation terminator, intptr_t operand, MlirValue carried) {
  MlirValue value = mlirOperationGetOperand(terminator, operand);
  MlirType type = mlirValueGetType(value);
  bool applies = mlirTypeIsARankedTensor(type) && o3_type_is_static(type) &&
                 mlirTypeEqual(type, mlirValueGetType(carried)) && !is_written_over(value, carried);
  if (!applies) return;
  o3_builder_t builder = o3_builder_before(terminator);
  MlirValue kept =
      o3_build1(&builder, "bufferization.materialize_in_destination", type, O3_VALUES(value, carried));
  mlirOperationSetOperand(terminator, operand, kept);
}

static void visit_for(MlirOperation loop) {
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(loop, 0));
  MlirOperation yield = mlirBlockGetTerminator(body);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(yield); ++i)
    keep(yield, i, mlirBlockGetArgument(body, i + 1));
}

/* The arguments of both regions share a buffer when the condition hands them on in the same order. */
static void visit_while(MlirOperation loop) {
  MlirBlock before = mlirRegionGetFirstBlock(mlirOperationGetRegion(loop, 0));
  MlirBlock after = mlirRegionGetFirstBlock(mlirOperationGetRegion(loop, 1));
  MlirOperation condition = mlirBlockGetTerminator(before), yield = mlirBlockGetTerminator(after);
  intptr_t carried = mlirBlockGetNumArguments(before);
  for (intptr_t i = 0; i + 1 < mlirOperationGetNumOperands(condition) && i < carried; ++i)
    keep(condition, i + 1, mlirBlockGetArgument(before, i));
  for (intptr_t i = 0; i < carried && i < mlirBlockGetNumArguments(after); ++i)
    keep(yield, i, mlirBlockGetArgument(after, i));
}

static o3_status_t visit(MlirOperation op, void *context) {
  (void)context;
  if (o3_op_is(op, "scf.for")) visit_for(op);
  if (o3_op_is(op, "scf.while")) visit_while(op);
  return NULL;
}

o3_status_t o3_cpu_loop_carried(o3_pass_env_t *env, MlirModule module) {
  o3_cpu_load_dialects(env->context);
  return o3_walk(mlirModuleGetOperation(module), visit, NULL);
}
