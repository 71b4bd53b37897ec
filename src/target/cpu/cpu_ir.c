#include "target/cpu/cpu_ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ir/context.h"

void o3_cpu_load_dialects(MlirContext context) {
  static const char *const NAMES[] = {"affine", "arith",  "bufferization", "func", "linalg",
                                      "llvm",   "memref", "scf",           "math", "vector"};
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i)
    mlirContextGetOrLoadDialect(context, O3_STR(NAMES[i]));
}

MlirType o3_cpu_ptr_type(MlirContext context) { return o3_type_parse(context, "!llvm.ptr"); }
MlirType o3_cpu_i64_type(MlirContext context) { return mlirIntegerTypeGet(context, 64); }

MlirType o3_cpu_descriptor_type(MlirType memref) {
  char text[128] = "!llvm.struct<(ptr, ptr, i64)>";
  int rank = o3_type_rank(memref);
  if (rank)
    snprintf(text, sizeof(text), "!llvm.struct<(ptr, ptr, i64, array<%d x i64>, array<%d x i64>)>", rank,
             rank);
  return o3_type_parse(mlirTypeGetContext(memref), text);
}

MlirType o3_cpu_llvm_type(MlirType type) {
  if (mlirTypeIsAMemRef(type)) return o3_cpu_descriptor_type(type);
  if (mlirTypeIsAIndex(type)) return o3_cpu_i64_type(mlirTypeGetContext(type));
  bool same = mlirTypeEqual(type, o3_cpu_ptr_type(mlirTypeGetContext(type))) || o3_type_is_float(type) ||
              o3_type_is_integer(type);
  return same ? type : (MlirType){0};
}

MlirValue o3_cpu_cast(o3_builder_t *builder, MlirValue value, MlirType type) {
  if (mlirTypeEqual(mlirValueGetType(value), type)) return value;
  return o3_build1(builder, "builtin.unrealized_conversion_cast", type, O3_VALUES(value));
}

MlirValue o3_cpu_to_i64(o3_builder_t *builder, MlirValue index) {
  return o3_build1(builder, "arith.index_cast", o3_cpu_i64_type(builder->context), O3_VALUES(index));
}

MlirValue o3_cpu_to_index(o3_builder_t *builder, MlirValue integer) {
  return o3_build1(builder, "arith.index_cast", o3_build_index_type(builder), O3_VALUES(integer));
}

/* ---- Functions of the runtime ---- */

static const struct {
  const char *name, *declaration;
  bool has_result;
} RUNTIME[O3_CPU_RT_COUNT] = {
    [O3_CPU_RT_ARENA] = {"o3rt_arena", "llvm.func hidden @o3rt_arena(!llvm.ptr, i64) -> !llvm.ptr", true},
    [O3_CPU_RT_ALLOC] = {"o3rt_alloc", "llvm.func hidden @o3rt_alloc(!llvm.ptr, i64) -> !llvm.ptr", true},
    [O3_CPU_RT_FREE] = {"o3rt_free", "llvm.func hidden @o3rt_free(!llvm.ptr, !llvm.ptr)", false},
    [O3_CPU_RT_FAIL] = {"o3rt_fail", "llvm.func hidden @o3rt_fail(!llvm.ptr, !llvm.ptr)", false},
    [O3_CPU_RT_GPU_ARENA] = {"o3rt_gpu_arena",
                             "llvm.func hidden @o3rt_gpu_arena(!llvm.ptr, i64) -> !llvm.ptr", true},
    [O3_CPU_RT_GPU_ALLOC] = {"o3rt_gpu_alloc",
                             "llvm.func hidden @o3rt_gpu_alloc(!llvm.ptr, i64) -> !llvm.ptr", true},
    [O3_CPU_RT_GPU_FREE] = {"o3rt_gpu_free", "llvm.func hidden @o3rt_gpu_free(!llvm.ptr, !llvm.ptr)", false},
    [O3_CPU_RT_PARALLEL_FOR] =
        {"o3rt_parallel_for",
         "llvm.func hidden @o3rt_parallel_for(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64)", false},
    [O3_CPU_RT_KERNEL_BEGIN] = {"o3rt_kernel_begin",
                                "llvm.func hidden @o3rt_kernel_begin(!llvm.ptr, i32, i64, i64)", false},
};

static bool has_symbol(MlirModule module, MlirStringRef name) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (mlirStringRefEqual(o3_op_string(op, "sym_name"), name)) return true;
  }
  return false;
}

/* The hidden visibility makes the calls direct ones. */
void o3_cpu_declare(MlirModule module, const char *name, const char *declaration) {
  if (has_symbol(module, O3_STR(name))) return;
  MlirOperation op =
      mlirOperationCreateParse(mlirModuleGetContext(module), O3_STR(declaration), O3_STR("runtime"));
  O3_ASSERT(!mlirOperationIsNull(op), "the declaration is our own text");
  mlirBlockInsertOwnedOperation(mlirModuleGetBody(module), 0, op);
}

MlirOperation o3_cpu_build_call(o3_builder_t *builder, const char *name, bool has_result, int num_operands,
                                const MlirValue *operands) {
  MlirContext context = builder->context;
  MlirType ptr = o3_cpu_ptr_type(context);
  int32_t sizes[2] = {num_operands, 0};
  o3_op_spec_t spec = {
      .name = "llvm.call",
      .num_operands = num_operands,
      .operands = operands,
      .num_results = has_result,
      .results = &ptr,
      .num_attrs = 3,
      .attrs = (o3_attr_t[]){{"callee", mlirFlatSymbolRefAttrGet(context, O3_STR(name))},
                             {"operandSegmentSizes", mlirDenseI32ArrayGet(context, 2, sizes)},
                             {"op_bundle_sizes", mlirDenseI32ArrayGet(context, 0, NULL)}}};
  return o3_build(builder, &spec);
}

MlirValue o3_cpu_call_declared(o3_builder_t *builder, const char *name, bool has_result, int num_operands,
                               const MlirValue *operands) {
  MlirOperation call = o3_cpu_build_call(builder, name, has_result, num_operands, operands);
  return has_result ? mlirOperationGetResult(call, 0) : (MlirValue){0};
}

MlirValue o3_cpu_call_runtime(o3_builder_t *builder, MlirModule module, o3_cpu_rt_t function,
                              int num_operands, const MlirValue *operands) {
  o3_cpu_declare(module, RUNTIME[function].name, RUNTIME[function].declaration);
  return o3_cpu_call_declared(builder, RUNTIME[function].name, RUNTIME[function].has_result, num_operands,
                              operands);
}

void o3_cpu_call(o3_builder_t *builder, const char *callee, int num_operands, const MlirValue *operands) {
  o3_op_spec_t spec = {
      .name = "func.call",
      .num_operands = num_operands,
      .operands = operands,
      .num_attrs = 1,
      .attrs = (o3_attr_t[]){{"callee", mlirFlatSymbolRefAttrGet(builder->context, O3_STR(callee))}}};
  o3_build(builder, &spec);
}

/* ---- Memory ---- */

static MlirValue insert(o3_builder_t *builder, MlirValue into, MlirValue value, int count,
                        const int64_t *position) {
  return o3_build1_attrs(builder, "llvm.insertvalue", mlirValueGetType(into), O3_VALUES(into, value),
                         O3_ATTRS({"position", o3_attr_ints(builder->context, count, position)}));
}

static MlirValue llvm_constant(o3_builder_t *builder, int64_t value) {
  MlirType i64 = o3_cpu_i64_type(builder->context);
  return o3_build1_attrs(builder, "llvm.mlir.constant", i64, O3_NO_VALUES,
                         O3_ATTRS({"value", mlirIntegerAttrGet(i64, value)}));
}

MlirValue o3_cpu_bytes_at(o3_builder_t *builder, MlirValue pointer, MlirValue bytes) {
  MlirType memref = o3_memref_type(1, (int64_t[]){-1}, mlirIntegerTypeGet(builder->context, 8));
  MlirValue it = o3_build1(builder, "llvm.mlir.poison", o3_cpu_descriptor_type(memref), O3_NO_VALUES);
  it = insert(builder, it, pointer, 1, (int64_t[]){0});
  it = insert(builder, it, pointer, 1, (int64_t[]){1});
  it = insert(builder, it, llvm_constant(builder, 0), 1, (int64_t[]){2});
  it = insert(builder, it, o3_cpu_to_i64(builder, bytes), 2, (int64_t[]){3, 0});
  it = insert(builder, it, llvm_constant(builder, 1), 2, (int64_t[]){4, 0});
  return o3_cpu_cast(builder, it, memref);
}

MlirOperation o3_cpu_metadata(o3_builder_t *builder, MlirValue memref) {
  MlirType type = mlirValueGetType(memref), results[2 + 2 * O3_IR_MAX_RANK];
  int count = 2 + 2 * o3_type_rank(type);
  results[0] = mlirMemRefTypeGet(o3_type_element(type), 0, NULL, (MlirAttribute){0},
                                 mlirMemRefTypeGetMemorySpace(type));
  for (int i = 1; i < count; ++i) results[i] = o3_build_index_type(builder);
  o3_op_spec_t spec = {.name = "memref.extract_strided_metadata",
                       .num_operands = 1,
                       .operands = &memref,
                       .num_results = count,
                       .results = results};
  return o3_build(builder, &spec);
}

MlirValue o3_cpu_flat(o3_builder_t *builder, MlirValue memref) {
  MlirContext context = builder->context;
  MlirType given = mlirValueGetType(memref);
  MlirType type = mlirMemRefTypeGet(o3_type_element(given), 1, (int64_t[]){mlirShapedTypeGetDynamicSize()},
                                    (MlirAttribute){0}, mlirMemRefTypeGetMemorySpace(given));
  MlirValue extent = o3_build_index(builder, INT64_MAX / 16);
  return o3_build1_attrs(
      builder, "memref.reinterpret_cast", type, O3_VALUES(memref, extent),
      O3_ATTRS({"static_offsets", o3_attr_ints(context, 1, (int64_t[]){0})},
               {"static_sizes", o3_attr_ints(context, 1, (int64_t[]){INT64_MIN})},
               {"static_strides", o3_attr_ints(context, 1, (int64_t[]){1})},
               {"operandSegmentSizes", mlirDenseI32ArrayGet(context, 4, (int32_t[]){1, 0, 1, 0})}));
}

static MlirOperation find_text(MlirModule module, MlirAttribute value) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (o3_op_is(op, "llvm.mlir.global") && mlirAttributeEqual(o3_op_attr(op, "value"), value)) break;
  }
  return op;
}

/* Names are numbered by the count of globals: it only grows. */
static MlirStringRef make_text(MlirModule module, MlirAttribute value, size_t length) {
  MlirContext context = mlirModuleGetContext(module);
  int count = 0;
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op))
    count += o3_op_is(op, "llvm.mlir.global");
  char name[32], type[64];
  snprintf(name, sizeof(name), "o3t_%d", count);
  snprintf(type, sizeof(type), "!llvm.array<%zu x i8>", length);
  MlirRegion region = mlirRegionCreate();
  o3_builder_t builder = o3_builder_at_end(mlirModuleGetBody(module), mlirLocationUnknownGet(context));
  builder.before = mlirBlockGetFirstOperation(builder.block);
  o3_op_spec_t spec = {.name = "llvm.mlir.global",
                       .num_attrs = 6,
                       .attrs = (o3_attr_t[]){{"sym_name", o3_attr_string(context, name)},
                                              {"global_type", o3_attr_type(o3_type_parse(context, type))},
                                              {"constant", mlirUnitAttrGet(context)},
                                              {"value", value},
                                              {"addr_space", o3_attr_i32(context, 0)},
                                              {"linkage", o3_attr_parse(context, "#llvm.linkage<internal>")}},
                       .num_regions = 1,
                       .regions = &region};
  return o3_op_string(o3_build(&builder, &spec), "sym_name");
}

MlirValue o3_cpu_text(o3_builder_t *builder, MlirModule module, MlirStringRef text) {
  MlirContext context = builder->context;
  char copy[1024];
  size_t length = text.length < sizeof(copy) - 1 ? text.length : sizeof(copy) - 1;
  memcpy(copy, text.data, length);
  copy[length] = 0;
  MlirAttribute value = mlirStringAttrGet(context, mlirStringRefCreate(copy, length + 1));
  MlirOperation global = find_text(module, value);
  MlirStringRef name =
      mlirOperationIsNull(global) ? make_text(module, value, length + 1) : o3_op_string(global, "sym_name");
  return o3_build1_attrs(builder, "llvm.mlir.addressof", o3_cpu_ptr_type(context), O3_NO_VALUES,
                         O3_ATTRS({"global_name", mlirFlatSymbolRefAttrGet(context, name)}));
}

/* ---- Loops ---- */

/* A size that is known, -1 else: an arith.constant, or a product of such that nobody has folded yet (merged
 * dims). */
static int64_t constant_size(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  int64_t product;
  if (mlirOperationIsNull(def)) return -1;
  if (o3_op_is(def, "arith.constant")) return o3_op_int(def, "value", -1);
  if (!o3_op_is(def, "arith.muli")) return -1;
  int64_t a = constant_size(mlirOperationGetOperand(def, 0)),
          b = constant_size(mlirOperationGetOperand(def, 1));
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

static bool iterates_once(MlirValue size, MlirValue step) {
  int64_t end = constant_size(size);
  return end > 0 && end <= constant_size(step);
}

/* Dims of one iteration are left out: canonicalization would build the loop anew to drop them, without
 * o3.work. */
static int dims_that_iterate(int count, const MlirValue *sizes, const MlirValue *steps, int *dims) {
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    if (!iterates_once(sizes[i], steps[i])) dims[kept++] = i;
  }
  if (!kept && count) dims[kept++] = 0;
  return kept;
}

o3_builder_t o3_cpu_parallel(o3_builder_t *builder, int count, const MlirValue *sizes, const MlirValue *steps,
                             int64_t work, MlirValue *ivs) {
  O3_ASSERT(count <= O3_IR_MAX_RANK + 1, "a nest has at most the dims of a tensor and one block");
  int dims[O3_IR_MAX_RANK + 1], kept = dims_that_iterate(count, sizes, steps, dims);
  MlirType types[O3_IR_MAX_RANK + 1];
  MlirLocation locations[O3_IR_MAX_RANK + 1];
  MlirValue operands[3 * (O3_IR_MAX_RANK + 1)], zero = o3_build_index(builder, 0);
  for (int i = 0; i < kept; ++i) {
    types[i] = o3_build_index_type(builder);
    locations[i] = builder->location;
    operands[i] = zero;
    operands[kept + i] = sizes[dims[i]];
    operands[2 * kept + i] = steps[dims[i]];
  }
  MlirBlock block = mlirBlockCreate(kept, types, locations);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, block);
  int32_t segments[4] = {kept, kept, kept, 0};
  o3_op_spec_t spec = {
      .name = "scf.parallel",
      .num_operands = 3 * kept,
      .operands = operands,
      .num_attrs = 2,
      .attrs = (o3_attr_t[]){{"operandSegmentSizes", mlirDenseI32ArrayGet(builder->context, 4, segments)},
                             {"o3.work", o3_attr_i64(builder->context, work)}},
      .num_regions = 1,
      .regions = &region};
  o3_build(builder, &spec);
  o3_builder_t inside = o3_builder_at_end(block, builder->location);
  MlirOperation end = o3_build0(&inside, "scf.reduce", O3_NO_VALUES);
  for (int i = 0; i < count; ++i) ivs[i] = zero;
  for (int i = 0; i < kept; ++i) ivs[dims[i]] = mlirBlockGetArgument(block, i);
  return o3_builder_before(end);
}

MlirValue o3_cpu_session(MlirModule module) {
  return mlirBlockGetArgument(o3_func_body(o3_module_func(module, "main")), 0);
}

/* ---- Names ---- */

void o3_cpu_kernel_name(MlirOperation op, int number, char *name, size_t size) {
  MlirStringRef label = o3_location_name(mlirOperationGetLocation(op));
  char text[64];
  size_t length = label.length < sizeof(text) - 1 ? label.length : sizeof(text) - 1;
  for (size_t i = 0; i < length; ++i) {
    char c = label.data[i];
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    text[i] = plain ? c : '_';
  }
  text[length] = 0;
  snprintf(name, size, "o3k_%s_%d", length ? text : "loop", number);
}

int o3_cpu_count_functions(MlirModule module) {
  int count = 0;
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) count += o3_op_is(op, "func.func");
  return count;
}

/* ---- Edits ---- */

bool o3_cpu_is_inside(MlirOperation op, MlirOperation ancestor) {
  for (; !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op)) {
    if (mlirOperationEqual(op, ancestor)) return true;
  }
  return false;
}

o3_status_t o3_cpu_add_functions(MlirModule module, const char *text, const char *what) {
  MlirModule parsed;
  O3_TRY(o3_ir_parse(mlirModuleGetContext(module), text, strlen(text), what, &parsed));
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(parsed));
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    if (!has_symbol(module, o3_op_string(op, "sym_name"))) {
      mlirOperationRemoveFromParent(op);
      mlirBlockAppendOwnedOperation(mlirModuleGetBody(module), op);
    }
    op = next;
  }
  mlirModuleDestroy(parsed);
  return NULL;
}

/* Intrinsics, which are instructions and have vector reductions; arith-expand would make compares and selects
 * of them. */
static const struct {
  const char *op, *intrinsic;
} EXTREMES[] = {{"arith.maximumf", "llvm.intr.maximum"},
                {"arith.minimumf", "llvm.intr.minimum"},
                {"arith.maxnumf", "llvm.intr.maxnum"},
                {"arith.minnumf", "llvm.intr.minnum"}};

/* A limit that is a constant takes one instruction, which gives the number if that is NaN, unless the sign of
 * a zero has to be right, too. */
static bool has_limit(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirOperation def = o3_value_def(mlirOperationGetOperand(op, i));
    if (!mlirOperationIsNull(def) && o3_op_is(def, "arith.constant")) return true;
  }
  return false;
}

/* Of a reduction the sign of a zero is open (o3_loops_relax). */
static bool has_open_zero(MlirOperation op) {
  char *flags = o3_attr_text(o3_op_attr(op, "fastmath"));
  bool is_open = flags && strstr(flags, "nsz");
  free(flags);
  return is_open;
}

static o3_status_t use_intrinsic(MlirOperation op, void *context) {
  const bool *any_zero = context;
  for (size_t i = 0; i < sizeof(EXTREMES) / sizeof(EXTREMES[0]); ++i) {
    if (!o3_op_is(op, EXTREMES[i].op)) continue;
    o3_builder_t b = o3_builder_before(op);
    bool is_open = *any_zero && (has_limit(op) || has_open_zero(op));
    const char *flags = is_open ? "#llvm.fastmath<nsz>" : "#llvm.fastmath<none>";
    MlirValue result =
        o3_build1_attrs(&b, EXTREMES[i].intrinsic, mlirValueGetType(mlirOperationGetResult(op, 0)),
                        O3_VALUES(mlirOperationGetOperand(op, 0), mlirOperationGetOperand(op, 1)),
                        O3_ATTRS({"fastmathFlags", o3_attr_parse(b.context, flags)}));
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), result);
    mlirOperationDestroy(op);
    return NULL;
  }
  return NULL;
}

o3_status_t o3_cpu_use_intrinsics(MlirOperation root, bool any_zero) {
  return o3_walk(root, use_intrinsic, &any_zero);
}

void o3_cpu_prefetch(o3_builder_t *b, MlirValue memref, MlirValue at, int level) {
  enum { TO_L1 = 3, TO_L2 = 2 };
  o3_attr_t attrs[] = {{"isWrite", o3_attr_bool(b->context, false)},
                       {"localityHint", o3_attr_i32(b->context, level == 1 ? TO_L1 : TO_L2)},
                       {"isDataCache", o3_attr_bool(b->context, true)}};
  o3_op_spec_t spec = {.name = "memref.prefetch",
                       .num_operands = 2,
                       .operands = (MlirValue[]){memref, at},
                       .num_attrs = sizeof(attrs) / sizeof(attrs[0]),
                       .attrs = attrs};
  o3_build(b, &spec);
}
