#include "target/nvptx/nvptx_ir.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "target/cpu/cpu_ir.h"
#include "target/nvptx/nvptx.h"

void o3_nvptx_load_dialects(MlirContext context) {
  o3_cpu_load_dialects(context);
  mlirContextGetOrLoadDialect(context, O3_STR("gpu"));
  mlirContextGetOrLoadDialect(context, O3_STR("nvvm"));
}

/* ---- The device module ---- */

#define DEVICE "o3_gpu"

MlirOperation o3_nvptx_device_op(MlirModule module) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  while (!mlirOperationIsNull(op) && !o3_op_is(op, "gpu.module")) op = mlirOperationGetNextInBlock(op);
  return op;
}

/* Dynamic shared memory is one external array of no known size. */
static void declare_shared(MlirContext context, MlirBlock block) {
  MlirOperation global = mlirOperationCreateParse(
      context,
      O3_STR("llvm.mlir.global external @o3_shared() {addr_space = 3 : i32, alignment = 128 : i64} : "
             "!llvm.array<0 x i8>"),
      O3_STR("device"));
  O3_ASSERT(!mlirOperationIsNull(global), "the declaration is our own text");
  mlirBlockAppendOwnedOperation(block, global);
}

MlirBlock o3_nvptx_device(MlirModule module) {
  MlirOperation op = o3_nvptx_device_op(module);
  if (mlirOperationIsNull(op)) {
    MlirContext context = mlirModuleGetContext(module);
    MlirBlock block = mlirBlockCreate(0, NULL, NULL);
    MlirRegion region = mlirRegionCreate();
    mlirRegionAppendOwnedBlock(region, block);
    o3_builder_t b = o3_builder_at_end(mlirModuleGetBody(module), mlirLocationUnknownGet(context));
    o3_op_spec_t spec = {.name = "gpu.module",
                         .num_attrs = 1,
                         .attrs = (o3_attr_t[]){{"sym_name", o3_attr_string(context, DEVICE)}},
                         .num_regions = 1,
                         .regions = &region};
    op = o3_build(&b, &spec);
    declare_shared(context, block);
  }
  return mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
}

/* ---- Numbered lists on the module ---- */

static o3_status_t append_entry(MlirOperation op, const char *name, MlirAttribute list, intptr_t count,
                                MlirAttribute entry) {
  MlirAttribute *items = calloc((size_t)count + 1, sizeof(*items));
  O3_TRY_ALLOC(items);
  for (intptr_t i = 0; i < count; ++i) items[i] = mlirArrayAttrGetElement(list, i);
  items[count] = entry;
  o3_op_attr_set(op, name, mlirArrayAttrGet(mlirOperationGetContext(op), count + 1, items));
  free(items);
  return NULL;
}

/* The place of |entry| in the array |name|, at whose end it is put when it is not there. */
static o3_status_t number_in(MlirModule module, const char *name, MlirAttribute entry, int *number) {
  MlirOperation op = mlirModuleGetOperation(module);
  MlirAttribute list = o3_op_attr(op, name);
  intptr_t count = mlirAttributeIsNull(list) ? 0 : mlirArrayAttrGetNumElements(list), i = 0;
  while (i < count && !mlirAttributeEqual(mlirArrayAttrGetElement(list, i), entry)) ++i;
  *number = (int)i;
  return i < count ? NULL : append_entry(op, name, list, count, entry);
}

/* The number of the kernel |name| of the nodes |label|, noted under O3_NVPTX_KERNELS_ATTR when it is new:
 * code that several layers share has a number a layer, so that errors name the right one. */
static o3_status_t kernel_number(MlirModule module, const char *name, const char *label, int *number) {
  MlirContext context = mlirModuleGetContext(module);
  MlirNamedAttribute fields[2] = {
      mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR("label")), o3_attr_string(context, label)),
      mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR("name")), o3_attr_string(context, name))};
  return number_in(module, O3_NVPTX_KERNELS_ATTR, mlirDictionaryAttrGet(context, 2, fields), number);
}

o3_status_t o3_nvptx_message_number(MlirModule module, MlirStringRef text, int *number) {
  MlirAttribute entry = mlirStringAttrGet(mlirModuleGetContext(module), text);
  return number_in(module, O3_NVPTX_MESSAGES_ATTR, entry, number);
}

/* ---- Calls of the driver ---- */

static const struct {
  const char *name, *declaration;
  bool has_result;
} DRIVER[O3_NVPTX_RT_COUNT] = {
    [O3_NVPTX_RT_LAUNCH] = {"o3rt_gpu_launch",
                            "llvm.func hidden @o3rt_gpu_launch(!llvm.ptr, i32, !llvm.ptr, i32, i64)", false},
    [O3_NVPTX_RT_MAP] = {"o3rt_gpu_tensor_map",
                         "llvm.func hidden @o3rt_gpu_tensor_map(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr)",
                         false},
    [O3_NVPTX_RT_WEIGHTS] = {"o3rt_gpu_weights", "llvm.func hidden @o3rt_gpu_weights(!llvm.ptr) -> !llvm.ptr",
                             true},
    [O3_NVPTX_RT_TO_HOST] = {"o3rt_gpu_to_host",
                             "llvm.func hidden @o3rt_gpu_to_host(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64)",
                             false},
    [O3_NVPTX_RT_TO_DEVICE] = {"o3rt_gpu_to_device",
                               "llvm.func hidden @o3rt_gpu_to_device(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64)",
                               false},
    [O3_NVPTX_RT_ERROR_WORD] = {"o3rt_gpu_error_word",
                                "llvm.func hidden @o3rt_gpu_error_word(!llvm.ptr) -> !llvm.ptr", true},
    [O3_NVPTX_RT_SCRATCH] = {"o3rt_gpu_scratch",
                             "llvm.func hidden @o3rt_gpu_scratch(!llvm.ptr, i64) -> !llvm.ptr", true},
};

MlirValue o3_nvptx_call(o3_builder_t *b, MlirModule module, o3_nvptx_rt_t function, int num_operands,
                        const MlirValue *operands) {
  o3_cpu_declare(module, DRIVER[function].name, DRIVER[function].declaration);
  return o3_cpu_call_declared(b, DRIVER[function].name, DRIVER[function].has_result, num_operands, operands);
}

MlirValue o3_nvptx_stack(MlirModule module, const char *tag, int64_t bytes) {
  MlirContext context = mlirModuleGetContext(module);
  MlirBlock entry = o3_func_body(o3_module_func(module, "main"));
  MlirOperation op = mlirBlockGetFirstOperation(entry);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (o3_op_is(op, "llvm.alloca") && o3_str_equal(o3_op_string(op, "o3.use"), tag))
      return mlirOperationGetResult(op, 0);
  }
  o3_builder_t b = o3_builder_before(mlirBlockGetFirstOperation(entry));
  MlirValue size = o3_build_int(&b, o3_cpu_i64_type(context), bytes);
  return o3_build1_attrs(&b, "llvm.alloca", o3_cpu_ptr_type(context), O3_VALUES(size),
                         O3_ATTRS({"elem_type", o3_attr_type(mlirIntegerTypeGet(context, 8))},
                                  {"alignment", o3_attr_i64(context, O3_CPU_ALIGNMENT)},
                                  {"o3.use", o3_attr_string(context, tag)}));
}

/* ---- Launches ---- */

/* grid, block, shared bytes and cluster stand before the arguments, all as 64-bit words. */
enum { FIRST_ARGUMENT = 10 };

static MlirValue pointer_word(o3_builder_t *b, MlirValue memref) {
  return o3_cpu_to_i64(
      b, o3_build1(b, "memref.extract_aligned_pointer_as_index", o3_build_index_type(b), O3_VALUES(memref)));
}

static MlirValue word_of(o3_builder_t *b, MlirValue value) {
  MlirType type = mlirValueGetType(value), i64 = o3_cpu_i64_type(b->context);
  if (mlirTypeIsAMemRef(type)) return pointer_word(b, value);
  if (mlirTypeIsAIndex(type)) return o3_cpu_to_i64(b, value);
  if (o3_type_is_float(type)) {
    MlirType bits = mlirIntegerTypeGet(b->context, (unsigned)o3_type_bits(type));
    value = o3_build1(b, "arith.bitcast", bits, O3_VALUES(value));
    type = bits;
  }
  if (mlirTypeEqual(type, i64)) return value;
  bool integer = o3_type_is_integer(type);
  return o3_build1(b, integer ? "arith.extui" : "llvm.ptrtoint", i64, O3_VALUES(value));
}

static void store_word(o3_builder_t *b, MlirValue words, int index, MlirValue value) {
  MlirValue at = o3_build1_attrs(
      b, "llvm.getelementptr", o3_cpu_ptr_type(b->context), O3_VALUES(words),
      O3_ATTRS({"rawConstantIndices", mlirDenseI32ArrayGet(b->context, 1, (int32_t[]){(int32_t)index})},
               {"elem_type", o3_attr_type(o3_cpu_i64_type(b->context))}));
  o3_build0(b, "llvm.store", O3_VALUES(value, at));
}

static bool known(MlirValue value, int64_t *number) {
  MlirOperation def = o3_value_def(value);
  if (!mlirOperationIsNull(def) && o3_op_is(def, "arith.index_cast"))
    def = o3_value_def(mlirOperationGetOperand(def, 0));
  bool constant = !mlirOperationIsNull(def) && o3_op_is(def, "arith.constant");
  if (constant) *number = o3_op_int(def, "value", 0);
  return constant;
}

/* The attributes that tell what is launched. */
static void tell(MlirOperation call, const o3_nvptx_launch_t *launch) {
  enum { MOST = 4 + O3_GPU_MAX_NOTES };
  MlirContext context = mlirOperationGetContext(call);
  MlirNamedAttribute fields[MOST];
  int64_t block, shared;
  o3_gpu_note_t notes[MOST];
  int count = 0;
  if (known(launch->block[0], &block)) notes[count++] = (o3_gpu_note_t){"block", block};
  notes[count++] = (o3_gpu_note_t){"cluster", launch->cluster};
  if (known(launch->shared, &shared)) notes[count++] = (o3_gpu_note_t){"shared", shared};
  for (int i = 0; i < launch->num_notes; ++i) notes[count++] = launch->notes[i];
  for (int i = 0; i < count; ++i)
    fields[i] = mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR(notes[i].field)),
                                      o3_attr_i64(context, notes[i].value));
  fields[count++] = mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR("family")),
                                          o3_attr_string(context, launch->family));
  o3_op_attr_set(call, "o3.schedule", mlirDictionaryAttrGet(context, count, fields));
  o3_op_attr_set(call, O3_NVPTX_KERNEL_ATTR, o3_attr_string(context, launch->name));
  o3_op_attr_set(call, "o3.label", o3_attr_string(context, launch->label));
}

o3_status_t o3_nvptx_launch(o3_builder_t *b, MlirModule module, const o3_nvptx_launch_t *launch) {
  MlirType i32 = mlirIntegerTypeGet(b->context, 32), i64 = o3_cpu_i64_type(b->context);
  MlirValue cluster = o3_build_index(b, launch->cluster), overlaps = o3_build_index(b, launch->overlaps);
  const MlirValue shape[FIRST_ARGUMENT] = {
      launch->grid[0],  launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
      launch->block[2], launch->shared,  cluster,         overlaps,         o3_build_index(b, 0)};
  uint64_t maps = 0;
  int number;
  O3_TRY(kernel_number(module, launch->name, launch->label, &number));
  O3_ASSERT(launch->num_arguments <= O3_NVPTX_MAX_ARGUMENTS, "callers count the arguments of a kernel");
  MlirValue words =
      o3_nvptx_stack(module, "launch", (FIRST_ARGUMENT + O3_NVPTX_MAX_ARGUMENTS) * (int64_t)sizeof(int64_t));
  for (int i = 0; i < FIRST_ARGUMENT; ++i) store_word(b, words, i, o3_cpu_to_i64(b, shape[i]));
  for (int i = 0; i < launch->num_arguments; ++i) {
    store_word(b, words, FIRST_ARGUMENT + i, word_of(b, launch->arguments[i]));
    if (launch->is_map && launch->is_map[i]) maps |= UINT64_C(1) << i;
  }
  MlirValue operands[5] = {o3_cpu_session(module), o3_build_int(b, i32, number), words,
                           o3_build_int(b, i32, launch->num_arguments), o3_build_int(b, i64, (int64_t)maps)};
  o3_cpu_declare(module, DRIVER[O3_NVPTX_RT_LAUNCH].name, DRIVER[O3_NVPTX_RT_LAUNCH].declaration);
  tell(o3_cpu_build_call(b, DRIVER[O3_NVPTX_RT_LAUNCH].name, false, 5, operands), launch);
  return NULL;
}

/* ---- Code of a thread ---- */

o3_nvptx_region_t o3_nvptx_open(o3_builder_t *b, MlirValue grid, int threads, int64_t shared) {
  MlirType index = o3_build_index_type(b), types[12];
  MlirLocation locations[12];
  for (int i = 0; i < 12; ++i) types[i] = index, locations[i] = b->location;
  MlirValue one = o3_build_index(b, 1), block = o3_build_index(b, threads);
  MlirValue bytes = o3_build_int(b, mlirIntegerTypeGet(b->context, 32), shared);
  MlirBlock body = mlirBlockCreate(12, types, locations);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, body);
  const int32_t segments[11] = {0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1};
  o3_op_spec_t spec = {
      .name = "gpu.launch",
      .num_operands = 7,
      .operands = (MlirValue[]){grid, one, one, block, one, one, bytes},
      .num_attrs = 1,
      .attrs = (o3_attr_t[]){{"operandSegmentSizes", mlirDenseI32ArrayGet(b->context, 11, segments)}},
      .num_regions = 1,
      .regions = &region};
  o3_nvptx_region_t it = {.launch = o3_build(b, &spec)};
  o3_builder_t inside = o3_builder_at_end(body, b->location);
  it.inside = o3_builder_before(o3_build0(&inside, "gpu.terminator", O3_NO_VALUES));
  return it;
}

static MlirValue special_register(o3_builder_t *b, const char *op) {
  return o3_build1(b, op, mlirIntegerTypeGet(b->context, 32), O3_NO_VALUES);
}

MlirValue o3_nvptx_thread(o3_builder_t *b) { return special_register(b, "nvvm.read.ptx.sreg.tid.x"); }
MlirValue o3_nvptx_block(o3_builder_t *b) { return special_register(b, "nvvm.read.ptx.sreg.ctaid.x"); }
void o3_nvptx_barrier(o3_builder_t *b) { o3_build0(b, "nvvm.barrier0", O3_NO_VALUES); }

static MlirType in_shared(int rank, const int64_t *sizes, MlirType element) {
  MlirAttribute space =
      mlirIntegerAttrGet(mlirIntegerTypeGet(mlirTypeGetContext(element), 64), O3_NVPTX_SHARED_SPACE);
  int64_t shape[O3_IR_MAX_RANK];
  for (int i = 0; i < rank; ++i) shape[i] = sizes[i] < 0 ? mlirShapedTypeGetDynamicSize() : sizes[i];
  return mlirMemRefTypeGet(element, rank, shape, (MlirAttribute){0}, space);
}

MlirValue o3_nvptx_shared(o3_builder_t *b) {
  MlirType type = in_shared(1, (int64_t[]){-1}, mlirIntegerTypeGet(b->context, 8));
  return o3_build1(b, "builtin.unrealized_conversion_cast", type, O3_NO_VALUES);
}

MlirValue o3_nvptx_shared_view(o3_builder_t *b, MlirValue shared, int64_t offset, int rank,
                               const int64_t *sizes, MlirType element) {
  return o3_build1(b, "memref.view", in_shared(rank, sizes, element),
                   O3_VALUES(shared, o3_build_index(b, offset)));
}

MlirValue o3_nvptx_to_index(o3_builder_t *b, MlirValue value) {
  return o3_build1(b, "arith.index_castui", o3_build_index_type(b), O3_VALUES(value));
}
