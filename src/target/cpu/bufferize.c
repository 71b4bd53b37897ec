/* cpu-bufferize: upstream's one-shot bufferization, with @main's tensors as plain row-major memrefs.
 *
 * Needs: a lowered module on tensors. Guarantees: no tensor is left; @main's arguments are not written to;
 * memref.copy, linalg.fill and other named linalg ops are linalg.generic, so that all loops are made in one
 * place and no copy becomes a call of a library.
 */

#include "analysis/dependence.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"

static o3_status_t protect_arguments(o3_pass_env_t *env, MlirModule module) {
  MlirOperation main = o3_module_func(module, "main");
  intptr_t count = mlirBlockGetNumArguments(o3_func_body(main));
  MlirAttribute *attrs = O3_ARENA_ARRAY(env->arena, MlirAttribute, (size_t)count + 1);
  O3_TRY_ALLOC(attrs);
  MlirIdentifier writable = mlirIdentifierGet(env->context, O3_STR("bufferization.writable"));
  MlirNamedAttribute read_only = mlirNamedAttributeGet(writable, o3_attr_bool(env->context, false));
  for (intptr_t i = 0; i < count; ++i) attrs[i] = mlirDictionaryAttrGet(env->context, 1, &read_only);
  o3_op_attr_set(main, "arg_attrs", mlirArrayAttrGet(env->context, count, attrs));
  return NULL;
}

static MlirAttribute identity_maps(MlirContext context, int rank, int count) {
  MlirAttribute map = mlirAffineMapAttrGet(mlirAffineMapMultiDimIdentityGet(context, rank));
  MlirAttribute maps[2] = {map, map};
  return mlirArrayAttrGet(context, count, maps);
}

static MlirAttribute parallel_iterators(MlirContext context, int rank) {
  MlirAttribute iterators[O3_IR_MAX_RANK];
  for (int i = 0; i < rank; ++i) iterators[i] = o3_attr_parse(context, "#linalg.iterator_type<parallel>");
  return mlirArrayAttrGet(context, rank, iterators);
}

/* memref.copy %a, %b -> a generic of identity maps. Copies of a buffer onto itself are left by in-place
 * inserts. */
static o3_status_t replace_copy(MlirOperation op, void *unused) {
  (void)unused;
  if (!o3_op_is(op, "memref.copy")) return NULL;
  MlirValue from = mlirOperationGetOperand(op, 0), to = mlirOperationGetOperand(op, 1);
  MlirContext context = mlirOperationGetContext(op);
  int rank = o3_type_rank(mlirValueGetType(to));
  MlirType element = o3_type_element(mlirValueGetType(to));
  if (!mlirValueEqual(from, to)) {
    o3_builder_t builder = o3_builder_before(op);
    MlirBlock block = mlirBlockCreate(2, (MlirType[]){element, element},
                                      (MlirLocation[]){builder.location, builder.location});
    MlirRegion region = mlirRegionCreate();
    mlirRegionAppendOwnedBlock(region, block);
    o3_op_spec_t spec = {
        .name = "linalg.generic",
        .num_operands = 2,
        .operands = (MlirValue[]){from, to},
        .num_attrs = 3,
        .attrs = (o3_attr_t[]){{"indexing_maps", identity_maps(context, rank, 2)},
                               {"iterator_types", parallel_iterators(context, rank)},
                               {"operandSegmentSizes", mlirDenseI32ArrayGet(context, 2, (int32_t[]){1, 1})}},
        .num_regions = 1,
        .regions = &region};
    o3_build(&builder, &spec);
    o3_builder_t inner = o3_builder_at_end(block, builder.location);
    o3_build0(&inner, "linalg.yield", 1, (MlirValue[]){mlirBlockGetArgument(block, 0)});
  }
  mlirOperationDestroy(op);
  return NULL;
}

/* Strides that are not known may still be said to differ: those of a row-major type follow from its sizes,
 * which a cast from a part of a larger buffer does not have. */
static bool is_false_cast(MlirOperation op) {
  if (!o3_op_is(op, "memref.cast")) return false;
  MlirType from = mlirValueGetType(mlirOperationGetOperand(op, 0));
  MlirType to = mlirValueGetType(mlirOperationGetResult(op, 0));
  if (!mlirTypeIsAMemRef(from) || !mlirTypeIsAMemRef(to)) return false;
  bool row_major = mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(to));
  if (!row_major || mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(from))) return false;
  for (int i = 1; i < o3_type_rank(to); ++i) {
    if (o3_type_dim(to, i) < 0) return true;
  }
  return false;
}

/* Upstream casts a subview to a row-major type with `?` sizes where it should copy. */
static o3_status_t copy_false_cast(MlirOperation op, void *unused) {
  (void)unused;
  if (!is_false_cast(op)) return NULL;
  MlirValue from = mlirOperationGetOperand(op, 0), cast = mlirOperationGetResult(op, 0),
            sizes[O3_IR_MAX_RANK];
  MlirType type = mlirValueGetType(cast);
  o3_builder_t builder = o3_builder_before(op);
  int count = 0;
  for (int i = 0; i < o3_type_rank(type); ++i) {
    if (o3_type_dim(type, i) >= 0) continue;
    MlirValue dim = o3_build_index(&builder, i);
    sizes[count++] = o3_build1(&builder, "memref.dim", o3_build_index_type(&builder), O3_VALUES(from, dim));
  }
  const int32_t segments[2] = {count, 0};
  MlirValue copy =
      o3_build1_attrs(&builder, "memref.alloc", type, count, sizes,
                      O3_ATTRS({"alignment", o3_attr_i64(builder.context, O3_CPU_ALIGNMENT)},
                               {"operandSegmentSizes", mlirDenseI32ArrayGet(builder.context, 2, segments)}));
  o3_build0(&builder, "memref.copy", O3_VALUES(from, copy));
  mlirValueReplaceAllUsesOfWith(cast, copy);
  mlirOperationDestroy(op);
  return NULL;
}

/* ---- A tensor of its own for each op that writes into one ----
 *
 * What ops share, a tensor of no contents or a filled one, is one memory to upstream's analysis, which
 * compares each read and write of it with all others: 500 ops took 12 s. Each now has its own; which memory
 * serves again is the plan's to say (cpu-plan-memory), and filling one is less than copying a filled one. */

static bool writes_into(MlirOperation op, intptr_t operand) {
  if (o3_op_is(op, "tensor.insert_slice")) return operand == 1;
  if (o3_op_is(op, "scf.for")) return operand >= 3;
  bool last = operand >= mlirOperationGetNumOperands(op) - mlirOperationGetNumResults(op);
  return last && o3_op_is_of(op, "linalg");
}

/* Filled with one value: what is computed, or reads what it overwrites, is not made twice. */
static bool is_fill(MlirOperation op) {
  o3_dep_generic_t generic;
  return o3_dep_generic_read(op, &generic) && o3_dep_generic_kind(&generic) == O3_DEP_FILL;
}

/* A copy before each user but one; of fills only for those that write over them. */
static void give_own(MlirOperation op, bool empty) {
  MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, 0));
  while (!mlirOpOperandIsNull(use) && !mlirOpOperandIsNull(mlirOpOperandGetNextUse(use))) {
    MlirOpOperand next = mlirOpOperandGetNextUse(use);
    MlirOperation user = mlirOpOperandGetOwner(use);
    intptr_t operand = mlirOpOperandGetOperandNumber(use);
    if (empty || writes_into(user, operand)) {
      MlirOperation own = mlirOperationClone(op), place = empty ? op : user;
      mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(place), place, own);
      mlirOperationSetOperand(user, operand, mlirOperationGetResult(own, 0));
    }
    use = next;
  }
}

static o3_status_t give_own_fill(MlirOperation op, void *unused) {
  (void)unused;
  if (is_fill(op)) give_own(op, false);
  return NULL;
}

static o3_status_t give_own_empty(MlirOperation op, void *unused) {
  (void)unused;
  if (o3_op_is(op, "tensor.empty")) give_own(op, true);
  return NULL;
}

o3_status_t o3_cpu_bufferize(o3_pass_env_t *env, MlirModule module) {
  if (mlirOperationIsNull(o3_module_func(module, "main")))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "the module has no function @main");
  o3_cpu_load_dialects(env->context);
  O3_TRY(protect_arguments(env, module));
  O3_TRY(o3_ir_run_pipeline(module, "builtin.module(canonicalize,cse)"));
  O3_TRY(o3_walk(mlirModuleGetOperation(module), give_own_fill, NULL));
  O3_TRY(o3_walk(mlirModuleGetOperation(module), give_own_empty, NULL));
  O3_TRY(o3_ir_run_pipeline(module,
                            "builtin.module(eliminate-empty-tensors,"
                            "one-shot-bufferize{bufferize-function-boundaries "
                            "function-boundary-type-conversion=identity-layout-map "
                            "allow-return-allocs-from-loops buffer-alignment=64},"
                            "canonicalize,cse)"));
  O3_TRY(o3_walk(mlirModuleGetOperation(module), copy_false_cast, NULL));
  O3_TRY(o3_walk(mlirModuleGetOperation(module), replace_copy, NULL));
  return o3_ir_run_pipeline(module, "builtin.module(linalg-generalize-named-ops,canonicalize,cse)");
}
