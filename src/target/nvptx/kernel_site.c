#include "target/nvptx/kernel_site.h"

MlirValue o3_kernel_site_base(MlirValue buffer) {
  static const char *const SHAPES[] = {"memref.expand_shape", "memref.collapse_shape", "memref.cast"};
  MlirOperation op = o3_value_def(buffer);
  for (int i = 0; i < 3 && !mlirOperationIsNull(op); ++i) {
    if (o3_op_is(op, SHAPES[i])) return o3_kernel_site_base(mlirOperationGetOperand(op, 0));
  }
  return buffer;
}

int o3_kernel_site_argument(const o3_kernel_site_t *site, MlirValue buffer) {
  buffer = o3_kernel_site_base(buffer);
  for (int i = 0; i < site->num_arguments; ++i) {
    if (mlirValueEqual(site->arguments[i], buffer)) return i;
  }
  return -1;
}

bool o3_kernel_site_is_constant(const o3_kernel_site_t *site, int argument) {
  return argument >= 0 && argument < 64 && (site->constants >> argument & 1);
}

bool o3_kernel_site_element(MlirValue buffer, o3_gpu_element_t *element) {
  MlirType type = o3_type_element(mlirValueGetType(buffer));
  bool f16 = mlirTypeIsAF16(type), bf16 = mlirTypeIsABF16(type);
  *element = f16 ? O3_GPU_F16 : bf16 ? O3_GPU_BF16 : O3_GPU_F32;
  return f16 || bf16 || mlirTypeIsAF32(type);
}

MlirValue o3_kernel_site_loaded(MlirOperation generic) {
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(generic, 0));
  MlirValue found = {0};
  MlirOperation op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (!o3_op_is(op, "memref.load")) continue;
    MlirValue buffer = mlirOperationGetOperand(op, 0);
    if (!mlirValueIsNull(found) && !mlirValueEqual(found, buffer)) return (MlirValue){0};
    found = buffer;
  }
  return found;
}
