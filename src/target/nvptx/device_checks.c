/* nvptx-checks: a check of a flag that the card computes stays on the card.
 *
 * Needs: a bufferized module; what comes after the check of a flag must be harmless when it fails (indices
 * are brought into range, target/ref/lower_index.h). Guarantees: no cf.assert of @main depends on a flag
 * alone that a linalg op or a kernel made; the check is in the body of an op that runs on the card, where
 * nvptx-kernels makes a note in the error word of it. The host then need not wait for the flag, and runs can
 * be recorded.
 *
 *     linalg.generic outs(%f : memref<i1>)           linalg.generic outs(%f : memref<i1>)
 *     %ok = memref.load %f[]                   =>    linalg.generic outs(%f : memref<i1>) { ^(%ok: i1):
 *     cf.assert %ok, "text"                            cf.assert %ok, "text"
 *                                                      linalg.yield %ok }
 *
 * Where a kernel of rows makes the flag, the new op is its last one.
 */
#include "fuse/kernel_body.h"
#include "ir/build.h"
#include "ir/pass.h"
#include "target/nvptx/nvptx.h"

static bool has_one_use(MlirValue value) {
  MlirOpOperand use = mlirValueGetFirstUse(value);
  return !mlirOpOperandIsNull(use) && mlirOpOperandIsNull(mlirOpOperandGetNextUse(use));
}

/* The flag that is all |check| looks at; a null value when there is more to it. */
static MlirValue flag_of(MlirOperation check) {
  MlirValue condition = mlirOperationGetOperand(check, 0);
  MlirOperation load = o3_value_def(condition);
  bool only = !mlirOperationIsNull(load) && o3_op_is(load, "memref.load") &&
              mlirOperationGetNumOperands(load) == 1 && has_one_use(condition) &&
              mlirBlockEqual(mlirOperationGetBlock(load), mlirOperationGetBlock(check));
  return only ? mlirOperationGetOperand(load, 0) : (MlirValue){0};
}

static bool runs_on_card(const o3_str_map_t *kernels, MlirOperation op) {
  bool kernel = !mlirOperationIsNull(o3_fuse_called_kernel(kernels, op));
  return kernel || o3_op_is(op, "linalg.generic");
}

/* What last touched |flag| before |check|, its own load apart, where that runs on the card and writes it, as
 * its last operand; else null. */
static MlirOperation maker_on_card(const o3_str_map_t *kernels, MlirOperation check, MlirValue flag) {
  MlirOperation load = o3_value_def(mlirOperationGetOperand(check, 0)), maker = {0};
  MlirOperation op = mlirBlockGetFirstOperation(mlirOperationGetBlock(check));
  for (; !mlirOperationEqual(op, load); op = mlirOperationGetNextInBlock(op)) {
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
      if (mlirValueEqual(mlirOperationGetOperand(op, i), flag)) maker = op;
  }
  intptr_t count = mlirOperationIsNull(maker) ? 0 : mlirOperationGetNumOperands(maker);
  bool made = count && runs_on_card(kernels, maker) &&
              mlirValueEqual(mlirOperationGetOperand(maker, count - 1), flag);
  return made ? maker : (MlirOperation){0};
}

/* Where the check's op goes: behind the flag's load, or to the end of the kernel that |maker| calls, with the
 * flag as the kernel knows it. */
static o3_builder_t find_place(const o3_str_map_t *kernels, MlirOperation maker, MlirOperation load,
                               MlirValue *flag) {
  MlirOperation kernel = o3_fuse_called_kernel(kernels, maker);
  bool rows = !mlirOperationIsNull(kernel) && o3_str_equal(o3_op_string(kernel, O3_KERNEL_KIND), "rows");
  if (!rows) return o3_builder_after(load);
  MlirBlock body = o3_func_body(kernel);
  *flag = mlirBlockGetArgument(body, mlirBlockGetNumArguments(body) - 1);
  return o3_builder_before(mlirBlockGetTerminator(body));
}

static void move_check(const o3_str_map_t *kernels, MlirOperation check, MlirValue flag,
                       MlirOperation maker) {
  MlirContext context = mlirOperationGetContext(check);
  MlirOperation load = o3_value_def(mlirOperationGetOperand(check, 0));
  MlirType i1 = mlirIntegerTypeGet(context, 1);
  o3_builder_t b = o3_builder_before(check);
  MlirBlock body = mlirBlockCreate(1, &i1, &b.location);
  MlirValue value = mlirBlockGetArgument(body, 0);
  MlirAttribute map = mlirAffineMapAttrGet(mlirAffineMapEmptyGet(context));
  const int32_t segments[2] = {0, 1};
  mlirOperationSetOperand(check, 0, value);
  mlirOperationRemoveFromParent(check);
  mlirBlockAppendOwnedOperation(body, check);
  o3_builder_t inner = o3_builder_at_end(body, b.location);
  o3_build0(&inner, "linalg.yield", O3_VALUES(value));
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, body);
  b = find_place(kernels, maker, load, &flag);
  const o3_op_spec_t spec = {
      .name = "linalg.generic",
      .num_operands = 1,
      .operands = &flag,
      .num_attrs = 3,
      .attrs = (o3_attr_t[]){{"indexing_maps", mlirArrayAttrGet(context, 1, &map)},
                             {"iterator_types", mlirArrayAttrGet(context, 0, NULL)},
                             {"operandSegmentSizes", mlirDenseI32ArrayGet(context, 2, segments)}},
      .num_regions = 1,
      .regions = &region};
  o3_build(&b, &spec);
  mlirOperationDestroy(load);
}

o3_status_t o3_nvptx_checks(o3_pass_env_t *env, MlirModule module) {
  o3_str_map_t *kernels;
  O3_TRY(o3_fuse_list_kernels(env->arena, module, &kernels));
  MlirBlock block = o3_func_body(o3_module_func(module, "main"));
  MlirOperation op = mlirBlockGetFirstOperation(block);
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    MlirValue flag = o3_op_is(op, "cf.assert") ? flag_of(op) : (MlirValue){0};
    MlirOperation maker = mlirValueIsNull(flag) ? (MlirOperation){0} : maker_on_card(kernels, op, flag);
    if (!mlirOperationIsNull(maker)) move_check(kernels, op, flag, maker);
    op = next;
  }
  return NULL;
}
