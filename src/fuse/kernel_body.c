#include "fuse/kernel_body.h"

#include "fuse/outline_kernel.h"
#include "ir/build.h"

o3_status_t o3_fuse_list_kernels(o3_arena_t *arena, MlirModule module, o3_str_map_t **kernels) {
  *kernels = o3_str_map_create(arena);
  O3_TRY_ALLOC(*kernels);
  MlirOperation func = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(func); func = mlirOperationGetNextInBlock(func)) {
    if (!o3_op_string(func, O3_KERNEL_KIND).data) continue;
    MlirStringRef name = o3_op_string(func, "sym_name");
    if (!o3_str_map_put(*kernels, name.data, name.length, func.ptr))
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  return NULL;
}

MlirOperation o3_fuse_called_kernel(const o3_str_map_t *kernels, MlirOperation op) {
  if (!o3_op_is(op, "func.call")) return (MlirOperation){0};
  MlirStringRef callee = mlirFlatSymbolRefAttrGetValue(o3_op_attr(op, "callee"));
  return (MlirOperation){o3_str_map_get(kernels, callee.data, callee.length)};
}

o3_status_t o3_fuse_map_value(o3_ptr_map_t *values, MlirValue from, MlirValue to) {
  bool ok = o3_ptr_map_put(values, from.ptr, (void *)(uintptr_t)to.ptr);
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static o3_status_t use_new_operands(MlirOperation op, void *context) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    const void *to = o3_ptr_map_get(context, mlirOperationGetOperand(op, i).ptr);
    if (to) mlirOperationSetOperand(op, i, (MlirValue){to});
  }
  return NULL;
}

o3_status_t o3_fuse_copy_body(MlirOperation kernel, MlirBlock block, MlirOperation before,
                              o3_ptr_map_t *values, MlirValue *result) {
  MlirBlock body = o3_func_body(kernel);
  MlirOperation end = mlirBlockGetTerminator(body), op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op)) {
    MlirOperation copy = mlirOperationClone(op);
    mlirBlockInsertOwnedOperationBefore(block, before, copy);
    O3_TRY(use_new_operands(copy, values));
    O3_TRY(o3_walk(copy, use_new_operands, values));
    for (intptr_t r = 0; r < mlirOperationGetNumResults(op); ++r)
      O3_TRY(o3_fuse_map_value(values, mlirOperationGetResult(op, r), mlirOperationGetResult(copy, r)));
  }
  result->ptr = o3_ptr_map_get(values, mlirOperationGetOperand(end, 0).ptr);
  return NULL;
}
