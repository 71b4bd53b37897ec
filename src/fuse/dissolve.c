/* Joining ops brings folds to light that nothing saw while they were apart: Where(c, x, x) is x once both
 * values are known to be one, and a triangle of a matrix of size 1 is the matrix. The identity that is left
 * is erased, and the kernel would return its argument.
 */
#include "fuse/dissolve.h"

#include <string.h>

#include "base/map.h"
#include "fuse/outline_kernel.h"
#include "ir/build.h"

typedef struct dissolver {
  o3_arena_t *arena;
  MlirModule module;
} dissolver_t;

static o3_status_t no_memory(bool ok) {
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static bool is_kernel(MlirOperation func) { return o3_op_string(func, O3_KERNEL_KIND).data != NULL; }

/* The kernel of a call; a null op for others. */
static MlirOperation called_kernel(MlirModule module, MlirOperation call) {
  MlirOperation func = {0};
  if (!o3_op_is(call, "func.call")) return func;
  MlirStringRef callee = mlirFlatSymbolRefAttrGetValue(o3_op_attr(call, "callee"));
  func = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  while (!mlirOperationIsNull(func) && !mlirStringRefEqual(o3_op_string(func, "sym_name"), callee))
    func = mlirOperationGetNextInBlock(func);
  return mlirOperationIsNull(func) || !is_kernel(func) ? (MlirOperation){0} : func;
}

/* Behind ops that write into a tensor, and views, is the last argument. */
static bool writes_in_place(MlirOperation kernel) {
  MlirBlock body = o3_func_body(kernel);
  MlirValue value = mlirOperationGetOperand(mlirBlockGetTerminator(body), 0);
  for (;;) {
    MlirOperation op = o3_value_def(value);
    if (mlirOperationIsNull(op))
      return mlirValueEqual(value, mlirBlockGetArgument(body, mlirBlockGetNumArguments(body) - 1)) &&
             !mlirValueEqual(value, mlirOperationGetOperand(mlirBlockGetTerminator(body), 0));
    intptr_t count = mlirOperationGetNumOperands(op);
    MlirStringRef name = o3_op_name(op);
    bool is_linalg = name.length > 7 && strncmp(name.data, "linalg.", 7) == 0;
    if (!count || (!is_linalg && strncmp(name.data, "tensor.", 7) != 0)) return false;
    value = mlirOperationGetOperand(op, is_linalg ? count - 1 : 0);
  }
}

static o3_status_t use_new_operands(MlirOperation op, void *context) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    const void *to = o3_ptr_map_get(context, mlirOperationGetOperand(op, i).ptr);
    if (to) mlirOperationSetOperand(op, i, (MlirValue){to});
  }
  return NULL;
}

static o3_status_t map_value(o3_ptr_map_t *values, MlirValue from, MlirValue to) {
  return no_memory(o3_ptr_map_put(values, from.ptr, (void *)(uintptr_t)to.ptr));
}

static o3_status_t copy_before(MlirOperation call, MlirOperation op, o3_ptr_map_t *values) {
  MlirOperation copy = mlirOperationClone(op);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(call), call, copy);
  O3_TRY(use_new_operands(copy, values));
  O3_TRY(o3_walk(copy, use_new_operands, values));
  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); ++r)
    O3_TRY(map_value(values, mlirOperationGetResult(op, r), mlirOperationGetResult(copy, r)));
  return NULL;
}

static o3_status_t dissolve_call(MlirOperation call, void *context) {
  const dissolver_t *self = context;
  MlirOperation kernel = called_kernel(self->module, call);
  if (mlirOperationIsNull(kernel) || writes_in_place(kernel)) return NULL;
  MlirBlock body = o3_func_body(kernel);
  o3_ptr_map_t *values = o3_ptr_map_create(self->arena);
  O3_TRY_ALLOC(values);
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(body); ++i)
    O3_TRY(map_value(values, mlirBlockGetArgument(body, i), mlirOperationGetOperand(call, i)));
  MlirOperation end = mlirBlockGetTerminator(body), op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op))
    O3_TRY(copy_before(call, op, values));
  const void *result = o3_ptr_map_get(values, mlirOperationGetOperand(end, 0).ptr);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(call, 0), (MlirValue){result});
  mlirOperationDestroy(call);
  return NULL;
}

o3_status_t o3_fuse_dissolve(o3_arena_t *arena, MlirModule module) {
  dissolver_t self = {arena, module};
  O3_TRY(o3_walk(o3_module_func(module, "main"), dissolve_call, &self));
  MlirOperation next, func = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(func); func = next) {
    next = mlirOperationGetNextInBlock(func);
    if (is_kernel(func) && !writes_in_place(func)) mlirOperationDestroy(func);
  }
  return NULL;
}
