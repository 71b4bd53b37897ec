/* Joining ops brings folds to light that nothing saw while they were apart: Where(c, x, x) is x once both
 * values are known to be one, and a triangle of a matrix of size 1 is the matrix. The identity that is left
 * is erased, and the kernel would return its argument.
 */
#include "fuse/dissolve.h"

#include "fuse/kernel_body.h"
#include "fuse/outline_kernel.h"
#include "ir/build.h"

typedef struct dissolver {
  o3_arena_t *arena;
  o3_str_map_t *kernels;
} dissolver_t;

/* Behind views it is a computing op, which writes into the last argument, or that argument. */
static bool computes(MlirOperation kernel) {
  MlirBlock body = o3_func_body(kernel);
  MlirValue returned = mlirOperationGetOperand(mlirBlockGetTerminator(body), 0), value = returned;
  for (;;) {
    MlirOperation op = o3_value_def(value);
    MlirValue last = mlirBlockGetArgument(body, mlirBlockGetNumArguments(body) - 1);
    if (mlirOperationIsNull(op)) return mlirValueEqual(value, last) && !mlirValueEqual(value, returned);
    if (o3_op_is_of(op, "linalg")) return true;
    bool is_view = o3_op_is_of(op, "tensor") && !o3_op_is(op, "tensor.empty");
    if (!is_view || !mlirOperationGetNumOperands(op)) return false;
    value = mlirOperationGetOperand(op, 0);
  }
}

static o3_status_t dissolve_call(MlirOperation call, void *context) {
  const dissolver_t *self = context;
  MlirOperation kernel = o3_fuse_called_kernel(self->kernels, call);
  if (mlirOperationIsNull(kernel) || computes(kernel)) return NULL;
  MlirBlock body = o3_func_body(kernel);
  o3_ptr_map_t *values = o3_ptr_map_create(self->arena);
  MlirValue result;
  O3_TRY_ALLOC(values);
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(body); ++i)
    O3_TRY(o3_fuse_map_value(values, mlirBlockGetArgument(body, i), mlirOperationGetOperand(call, i)));
  O3_TRY(o3_fuse_copy_body(kernel, mlirOperationGetBlock(call), call, values, &result));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(call, 0), result);
  mlirOperationDestroy(call);
  return NULL;
}

o3_status_t o3_fuse_dissolve(o3_arena_t *arena, MlirModule module) {
  dissolver_t self = {.arena = arena};
  O3_TRY(o3_fuse_list_kernels(arena, module, &self.kernels));
  O3_TRY(o3_walk(o3_module_func(module, "main"), dissolve_call, &self));
  MlirOperation next, func = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(func); func = next) {
    next = mlirOperationGetNextInBlock(func);
    if (o3_op_string(func, O3_KERNEL_KIND).data && !computes(func)) mlirOperationDestroy(func);
  }
  return NULL;
}
