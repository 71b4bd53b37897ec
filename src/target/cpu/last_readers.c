/* cpu-last-readers: the kernel that is the last to read a tensor comes right after what reads it before.
 *
 * Needs: @main on tensors, kernels of the fuse stage. Guarantees: the same kernels; no more tensors at a
 * time.
 *
 *     %a = call @k0(...)                            %a = call @k0(...)
 *     %b = call @k1(%a, ...)                        %b = call @k1(%a, ...)
 *     ...                                       ->  %c = call @k9(%a, ...)
 *     %c = call @k9(%a, ...)                        ...
 *
 * Models list the sides of a pyramid after its whole trunk: their inputs, large ones, would be kept in memory
 * until then and come from there, where now a cache still has them. So it is done where the result is no
 * larger than the tensor. Who reads a view reads the tensor. One of unknown size is left where it is. No
 * kernel passes an op without results: what that checks, it may rely on.
 */
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"

/* -1: known at run time only. */
static int64_t bytes_of(MlirType type) {
  if (!mlirTypeIsARankedTensor(type) || !o3_type_is_static(type)) return -1;
  int64_t bytes = (o3_type_bits(o3_type_element(type)) + 7) / 8;
  for (int i = 0; i < o3_type_rank(type); ++i) {
    if (__builtin_mul_overflow(bytes, o3_type_dim(type, i), &bytes)) return -1;
  }
  return bytes;
}

/* Constants and tensors to write into. */
static bool is_free(MlirOperation op) {
  return mlirOperationGetNumOperands(op) == 0 && mlirOperationGetNumRegions(op) == 0;
}

static MlirOperation later(MlirOperation a, MlirOperation b) {
  return mlirOperationIsNull(a) || mlirOperationIsBeforeInBlock(a, b) ? b : a;
}

/* The op of |block| that |op| is or is in. */
static MlirOperation in_block(MlirOperation op, MlirBlock block) {
  while (!mlirBlockEqual(mlirOperationGetBlock(op), block)) op = mlirOperationGetParentOperation(op);
  return op;
}

static bool is_view(MlirOperation op) {
  return o3_op_is(op, "tensor.collapse_shape") || o3_op_is(op, "tensor.expand_shape") ||
         o3_op_is(op, "tensor.extract_slice") || o3_op_is(op, "tensor.reshape") ||
         o3_op_is(op, "tensor.cast");
}

/* The tensor that |value| is a view of, or is. */
static MlirValue viewed(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  for (; !mlirOperationIsNull(def) && is_view(def); def = o3_value_def(value))
    value = mlirOperationGetOperand(def, 0);
  return value;
}

/* The largest tensor that an op of the block computes and |kernel| reads; null: there is none. */
static MlirValue main_operand(MlirOperation kernel) {
  MlirBlock block = mlirOperationGetBlock(kernel);
  MlirValue found = {0};
  int64_t most = -1;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(kernel); ++i) {
    MlirValue operand = viewed(mlirOperationGetOperand(kernel, i));
    MlirOperation def = o3_value_def(operand);
    int64_t bytes = bytes_of(mlirValueGetType(operand));
    bool is_computed =
        !mlirOperationIsNull(def) && mlirBlockEqual(mlirOperationGetBlock(def), block) && !is_free(def);
    if (!is_computed || bytes <= most) continue;
    found = operand;
    most = bytes;
  }
  return found;
}

/* Moves |last| on to the last op before |kernel| that reads |value| or a view of it; false: others read it
 * later.
 */
static bool find_reader(MlirOperation kernel, MlirValue value, MlirOperation *last) {
  MlirOpOperand use = mlirValueGetFirstUse(value);
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation owner = mlirOpOperandGetOwner(use);
    MlirOperation user = in_block(owner, mlirOperationGetBlock(kernel));
    if (mlirOperationEqual(user, kernel)) continue;
    if (is_view(owner) && !find_reader(kernel, mlirOperationGetResult(owner, 0), last)) return false;
    if (is_view(user)) continue;
    if (!mlirOperationIsBeforeInBlock(user, kernel)) return false;
    *last = later(*last, user);
  }
  return true;
}

/* Kernels have operands that are computed in the block, in front of it, or are free. */
static MlirOperation after_operands(MlirOperation kernel, MlirOperation place) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(kernel); ++i) {
    MlirOperation def = o3_value_def(mlirOperationGetOperand(kernel, i));
    bool is_here = !mlirOperationIsNull(def) &&
                   mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(kernel));
    if (is_here && !is_free(def)) place = later(place, def);
  }
  return place;
}

static void move_after(MlirOperation kernel, MlirOperation place) {
  mlirOperationMoveAfter(kernel, place);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(kernel); ++i) {
    MlirOperation def = o3_value_def(mlirOperationGetOperand(kernel, i));
    bool is_here = !mlirOperationIsNull(def) &&
                   mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(kernel));
    if (is_here && mlirOperationIsBeforeInBlock(kernel, def)) mlirOperationMoveBefore(def, kernel);
  }
}

/* |barrier|: the last op without results; null: there is none. */
static void move_up(MlirOperation kernel, MlirOperation barrier) {
  MlirValue read = main_operand(kernel);
  if (mlirOperationGetNumResults(kernel) != 1 || mlirValueIsNull(read)) return;
  int64_t bytes = bytes_of(mlirValueGetType(mlirOperationGetResult(kernel, 0)));
  if (bytes < 0 || bytes > bytes_of(mlirValueGetType(read))) return;
  MlirOperation place = o3_value_def(read);
  if (!find_reader(kernel, read, &place)) return;
  place = after_operands(kernel, place);
  move_after(kernel, mlirOperationIsNull(barrier) ? place : later(place, barrier));
}

o3_status_t o3_cpu_last_readers(o3_pass_env_t *env, MlirModule module) {
  MlirOperation main = o3_module_func(module, "main"), barrier = {0};
  o3_cpu_load_dialects(env->context);
  if (mlirOperationIsNull(main)) return NULL;
  MlirOperation next, op = mlirBlockGetFirstOperation(o3_func_body(main));
  for (; !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (o3_op_is(op, "func.call")) move_up(op, barrier);
    if (mlirOperationGetNumResults(op) == 0) barrier = op;
  }
  return NULL;
}
