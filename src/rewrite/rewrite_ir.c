#include "rewrite/rewrite_ir.h"

#include <string.h>

bool o3_op_is_pure(MlirOperation op) {
  static const char *const IMPURE[] = {"o3.guard", "o3.bind", "o3.node", "o3.initializer"};
  static const char *const UPSTREAM[] = {"tensor.concat", "tensor.cast"};
  MlirStringRef name = o3_op_name(op);
  for (size_t i = 0; i < sizeof(IMPURE) / sizeof(IMPURE[0]); ++i) {
    if (o3_str_equal(name, IMPURE[i])) return false;
  }
  for (size_t i = 0; i < sizeof(UPSTREAM) / sizeof(UPSTREAM[0]); ++i) {
    if (o3_str_equal(name, UPSTREAM[i])) return true;
  }
  return name.length > 3 && strncmp(name.data, "o3.", 3) == 0;
}

bool o3_value_has_uses(MlirValue value) { return !mlirOpOperandIsNull(mlirValueGetFirstUse(value)); }

MlirOperation o3_value_single_user(MlirValue value) {
  MlirOpOperand use = mlirValueGetFirstUse(value);
  if (mlirOpOperandIsNull(use) || !mlirOpOperandIsNull(mlirOpOperandGetNextUse(use)))
    return (MlirOperation){0};
  return mlirOpOperandGetOwner(use);
}

static o3_status_t collect(MlirOperation op, void *ops) {
  if (o3_ptr_vec_push(ops, op.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

o3_status_t o3_collect_ops(MlirOperation root, o3_ptr_vec_t *ops) { return o3_walk(root, collect, ops); }

void o3_op_replace(MlirOperation op, int count, const MlirValue *values) {
  for (int i = 0; i < count; ++i) mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, i), values[i]);
  mlirOperationDestroy(op);
}
