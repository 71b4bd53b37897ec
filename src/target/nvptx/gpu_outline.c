/* nvptx-outline: the body of a gpu.launch becomes a kernel, and the launch a call of the driver.
 *
 *     gpu.launch blocks(%n, 1, 1) threads(256, 1, 1) { body; gpu.terminator }
 * ->  gpu.module @o3_gpu { llvm.func @o3k_<label>_<n>(captures) attributes {nvvm.kernel} { body } }
 *     llvm.call @o3rt_gpu_launch(session, number, words, ...)
 *
 * Needs: the session argument. Guarantees: no gpu.launch is left; kernels of the same code are one. A memref
 * is passed as its pointer and what of its offset, sizes and strides the type does not tell. Constants are
 * made again inside. Upstream's outlining would pass five words for each row of numbers and sink its size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/strbuf.h"
#include "ir/context.h"
#include "schedule/gpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/nvptx/nvptx.h"
#include "target/nvptx/nvptx_ir.h"

enum { MAX_CAPTURES = 96 };

typedef struct outliner {
  o3_pass_env_t *env;
  MlirModule module;
  o3_ptr_vec_t launches;
  o3_str_map_t *known; /* text of a kernel but for its name -> its name */
  int count;
} outliner_t;

typedef struct captures {
  MlirOperation launch;
  o3_ptr_map_t *seen;
  int count;
  MlirValue values[MAX_CAPTURES]; /* constants too */
  MlirValue inside[MAX_CAPTURES]; /* in the kernel */
} captures_t;

/* ---- What the body captures ---- */

static MlirBlock block_of(MlirValue value) {
  return mlirValueIsABlockArgument(value) ? mlirBlockArgumentGetOwner(value)
                                          : mlirOperationGetBlock(mlirOpResultGetOwner(value));
}

static o3_status_t capture_operands(MlirOperation op, void *context) {
  captures_t *self = context;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue value = mlirOperationGetOperand(op, i);
    if (o3_ptr_map_get(self->seen, value.ptr)) continue;
    if (o3_cpu_is_inside(mlirBlockGetParentOperation(block_of(value)), self->launch)) continue;
    if (self->count == MAX_CAPTURES)
      return o3_status_create(O3_STATUS_UNSUPPORTED,
                              "node '%.*s': its kernel reads more than %d values from outside",
                              O3_STR_ARGS(o3_op_label(self->launch)), MAX_CAPTURES);
    if (!o3_ptr_map_put(self->seen, value.ptr, self))
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
    self->values[self->count++] = value;
  }
  return NULL;
}

static bool is_constant(MlirValue value) { return o3_op_is(o3_value_def(value), "arith.constant"); }

/* Offset, sizes and strides of a memref as its type tells them; -1: not at all. A row as long as any memory
 * (o3_cpu_flat) has a size that nothing asks for. */
typedef struct layout {
  int rank;
  int64_t offset, parts[2][O3_IR_MAX_RANK];
} layout_t;

static layout_t layout_of(MlirType memref) {
  layout_t layout = {.rank = o3_type_rank(memref)};
  int64_t strides[O3_IR_MAX_RANK];
  bool strided =
      mlirLogicalResultIsSuccess(mlirMemRefTypeGetStridesAndOffset(memref, strides, &layout.offset));
  if (!strided || mlirShapedTypeIsDynamicStrideOrOffset(layout.offset)) layout.offset = -1;
  for (int i = 0; i < layout.rank; ++i) {
    bool known = strided && !mlirShapedTypeIsDynamicStrideOrOffset(strides[i]);
    layout.parts[0][i] = o3_type_dim(memref, i);
    layout.parts[1][i] = known ? strides[i] : -1;
  }
  bool flat = layout.rank == 1 && layout.offset == 0 && layout.parts[1][0] == 1;
  if (flat && layout.parts[0][0] < 0) layout.parts[0][0] = INT64_MAX / 16;
  return layout;
}

/* ---- Words on the host ---- */

typedef struct words {
  int count;
  MlirValue values[O3_NVPTX_MAX_ARGUMENTS];
} words_t;

static void add_memref_words(o3_builder_t *b, MlirValue memref, words_t *words) {
  layout_t layout = layout_of(mlirValueGetType(memref));
  int rank = layout.rank;
  MlirOperation metadata = o3_cpu_metadata(b, memref);
  words->values[words->count++] = memref;
  if (layout.offset < 0) words->values[words->count++] = mlirOperationGetResult(metadata, 1);
  for (int i = 0; i < 2 * rank; ++i)
    if (layout.parts[i / rank][i % rank] < 0)
      words->values[words->count++] = mlirOperationGetResult(metadata, 2 + i);
}

static o3_status_t make_words(o3_builder_t *b, const captures_t *captures, words_t *words) {
  words->count = 0;
  for (int i = 0; i < captures->count; ++i) {
    MlirType type = mlirValueGetType(captures->values[i]);
    if (is_constant(captures->values[i])) continue;
    int needed = mlirTypeIsAMemRef(type) ? 2 + 2 * o3_type_rank(type) : 1;
    if (words->count + needed > O3_NVPTX_MAX_ARGUMENTS)
      return o3_status_create(O3_STATUS_UNSUPPORTED, "node '%.*s': its kernel has too many arguments",
                              O3_STR_ARGS(o3_op_label(captures->launch)));
    if (mlirTypeIsAMemRef(type)) {
      add_memref_words(b, captures->values[i], words);
    } else {
      words->values[words->count++] = captures->values[i];
    }
  }
  return NULL;
}

/* ---- The kernel ---- */

static MlirValue insert(o3_builder_t *b, MlirValue into, MlirValue value, int count, const int64_t *at) {
  return o3_build1_attrs(b, "llvm.insertvalue", mlirValueGetType(into), O3_VALUES(into, value),
                         O3_ATTRS({"position", o3_attr_ints(b->context, count, at)}));
}

static MlirValue add_argument(MlirBlock body, MlirType type, MlirLocation location) {
  return mlirBlockAddArgument(body, type, location);
}

static MlirValue number(o3_builder_t *b, int64_t value) {
  MlirType i64 = o3_cpu_i64_type(b->context);
  return o3_build1_attrs(b, "llvm.mlir.constant", i64, O3_NO_VALUES,
                         O3_ATTRS({"value", mlirIntegerAttrGet(i64, value)}));
}

/* What the type tells, or the kernel's next argument. */
static MlirValue part(o3_builder_t *b, MlirBlock body, int64_t known) {
  return known >= 0 ? number(b, known) : add_argument(body, o3_cpu_i64_type(b->context), b->location);
}

static MlirValue rebuild_memref(o3_builder_t *b, MlirBlock body, MlirType type) {
  layout_t layout = layout_of(type);
  MlirValue pointer = add_argument(body, o3_cpu_ptr_type(b->context), b->location);
  MlirValue it = o3_build1(b, "llvm.mlir.poison", o3_cpu_descriptor_type(type), O3_NO_VALUES);
  it = insert(b, it, pointer, 1, (int64_t[]){0});
  it = insert(b, it, pointer, 1, (int64_t[]){1});
  it = insert(b, it, part(b, body, layout.offset), 1, (int64_t[]){2});
  for (int i = 0; i < 2 * layout.rank; ++i) {
    int64_t at[2] = {3 + i / layout.rank, i % layout.rank};
    it = insert(b, it, part(b, body, layout.parts[at[0] - 3][at[1]]), 2, at);
  }
  return o3_cpu_cast(b, it, type);
}

static void make_inside(o3_builder_t *b, MlirBlock body, captures_t *captures) {
  for (int i = 0; i < captures->count; ++i) {
    MlirValue value = captures->values[i];
    MlirType type = mlirValueGetType(value);
    if (is_constant(value)) {
      MlirOperation copy = mlirOperationClone(o3_value_def(value));
      mlirBlockInsertOwnedOperationBefore(b->block, b->before, copy);
      captures->inside[i] = mlirOperationGetResult(copy, 0);
    } else if (mlirTypeIsAMemRef(type)) {
      captures->inside[i] = rebuild_memref(b, body, type);
    } else {
      captures->inside[i] = o3_cpu_cast(b, add_argument(body, o3_cpu_llvm_type(type), b->location), type);
    }
  }
}

static o3_status_t use_inside(MlirOperation op, void *context) {
  const captures_t *self = context;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    if (!o3_ptr_map_get(self->seen, operand.ptr)) continue;
    for (int k = 0; k < self->count; ++k)
      if (mlirValueEqual(self->values[k], operand)) mlirOperationSetOperand(op, i, self->inside[k]);
  }
  return NULL;
}

/* The address of the shared memory, which only the device module has. */
static o3_status_t use_shared(MlirOperation op, void *context) {
  (void)context;
  if (!o3_op_is(op, "builtin.unrealized_conversion_cast") || mlirOperationGetNumOperands(op)) return NULL;
  o3_builder_t b = o3_builder_before(op);
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  MlirType descriptor =
      o3_type_parse(b.context, "!llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)>");
  MlirValue pointer =
      o3_build1_attrs(&b, "llvm.mlir.addressof", o3_type_parse(b.context, "!llvm.ptr<3>"), O3_NO_VALUES,
                      O3_ATTRS({"global_name", mlirFlatSymbolRefAttrGet(b.context, O3_STR("o3_shared"))}));
  MlirValue it = o3_build1(&b, "llvm.mlir.poison", descriptor, O3_NO_VALUES);
  it = insert(&b, it, pointer, 1, (int64_t[]){0});
  it = insert(&b, it, pointer, 1, (int64_t[]){1});
  it = insert(&b, it, number(&b, 0), 1, (int64_t[]){2});
  it = insert(&b, it, number(&b, INT64_MAX / 16), 2, (int64_t[]){3, 0});
  it = insert(&b, it, number(&b, 1), 2, (int64_t[]){4, 0});
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), o3_cpu_cast(&b, it, type));
  mlirOperationDestroy(op);
  return NULL;
}

/* Of a function that takes the arguments of |block|. */
static o3_status_t kernel_type(MlirContext context, MlirBlock block, MlirType *type) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  o3_strbuf_puts(&text, "!llvm.func<void (");
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(block); ++i) {
    char *argument = o3_type_text(mlirValueGetType(mlirBlockGetArgument(block, i)));
    text.failed |= !argument;
    if (argument)
      o3_strbuf_printf(&text, "%s%s", i ? ", " : "", strcmp(argument, "!llvm.ptr") ? argument : "ptr");
    free(argument);
  }
  o3_strbuf_puts(&text, ")>");
  bool failed = text.failed;
  if (!failed) *type = o3_type_parse(context, text.text);
  o3_strbuf_deinit(&text);
  O3_TRY_ALLOC(!failed);
  return NULL;
}

/* The function of that type, not yet in the device module; |block| is its only one. */
static MlirOperation make_function(MlirType type, MlirBlock block, MlirLocation location, int threads) {
  MlirContext context = mlirLocationGetContext(location);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, block);
  MlirOperationState state = mlirOperationStateGet(O3_STR("llvm.func"), location);
  const o3_attr_t attrs[] = {
      {"sym_name", o3_attr_string(context, "k")},
      {"function_type", o3_attr_type(type)},
      {"CConv", o3_attr_parse(context, "#llvm.cconv<ccc>")},
      {"linkage", o3_attr_parse(context, "#llvm.linkage<external>")},
      {"visibility_", o3_attr_i64(context, 0)},
      {"nvvm.kernel", mlirUnitAttrGet(context)},
      {"nvvm.maxntid", mlirDenseI32ArrayGet(context, 1, (int32_t[]){(int32_t)threads})}};
  MlirNamedAttribute named[sizeof(attrs) / sizeof(attrs[0])];
  for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); ++i)
    named[i] = mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR(attrs[i].name)), attrs[i].value);
  mlirOperationStateAddAttributes(&state, sizeof(attrs) / sizeof(attrs[0]), named);
  mlirOperationStateAddOwnedRegions(&state, 1, &region);
  return mlirOperationCreate(&state);
}

/* Where kernels wait by themselves for those before them (o3_gpu_kernel_t.overlaps). */
static bool overlaps(const outliner_t *self) { return self->env->machine->gpu->sm >= 90; }

/* Lets the next kernel start, and waits: the body may read and write anything. */
static void wait_for_others(o3_builder_t *b) {
  static const char *const ACTIONS[] = {"#nvvm<grid_dep_action launch_dependents>",
                                        "#nvvm<grid_dep_action wait>"};
  for (int i = 0; i < 2; ++i) {
    const o3_op_spec_t spec = {.name = "nvvm.griddepcontrol",
                               .num_attrs = 1,
                               .attrs = (o3_attr_t[]){{"kind", o3_attr_parse(b->context, ACTIONS[i])}}};
    o3_build(b, &spec);
  }
}

/* Moves the body into a new function. */
static o3_status_t make_kernel(outliner_t *self, captures_t *captures, int threads, MlirOperation *kernel) {
  MlirBlock from = mlirRegionGetFirstBlock(mlirOperationGetRegion(captures->launch, 0));
  MlirLocation location = mlirOperationGetLocation(captures->launch);
  MlirBlock body = mlirBlockCreate(0, NULL, NULL);
  o3_builder_t b = o3_builder_at_end(body, location);
  MlirOperation end = o3_build0(&b, "llvm.return", O3_NO_VALUES);
  b = o3_builder_before(end);
  make_inside(&b, body, captures);
  MlirType type = {0};
  o3_status_t status = kernel_type(self->env->context, body, &type);
  if (status) {
    mlirBlockDestroy(body);
    return status;
  }
  if (overlaps(self)) wait_for_others(&b);
  MlirOperation op = mlirBlockGetFirstOperation(from);
  while (!mlirOperationIsNull(op) && !o3_op_is(op, "gpu.terminator")) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    mlirOperationMoveBefore(op, end);
    op = next;
  }
  *kernel = make_function(type, body, location, threads);
  O3_TRY(o3_walk(*kernel, use_inside, captures));
  return o3_walk(*kernel, use_shared, NULL);
}

/* The name of the kernel, which is moved into the device module unless one of the same text is there. */
static o3_status_t share_kernel(outliner_t *self, MlirOperation launch, MlirOperation kernel,
                                const char **name) {
  char fresh[96];
  char *text = o3_ir_print_plain(kernel);
  O3_TRY_ALLOC(text);
  *name = o3_str_map_get(self->known, text, strlen(text));
  if (*name) {
    free(text);
    mlirOperationDestroy(kernel);
    return NULL;
  }
  o3_cpu_kernel_name(launch, self->count++, fresh, sizeof(fresh));
  *name = o3_arena_strdup(self->env->arena, fresh);
  bool ok = *name && o3_str_map_put(self->known, text, strlen(text), (void *)(uintptr_t)*name);
  free(text);
  if (!ok) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  o3_op_attr_set(kernel, "sym_name", o3_attr_string(self->env->context, *name));
  mlirBlockAppendOwnedOperation(o3_nvptx_device(self->module), kernel);
  return NULL;
}

/* ---- One launch ---- */

static int64_t constant_of(MlirValue value) { return o3_op_int(o3_value_def(value), "value", 0); }

static const char *label_of(outliner_t *self, MlirOperation launch) {
  MlirStringRef nodes = o3_op_string(launch, "o3.label");
  MlirStringRef label = nodes.length ? nodes : o3_op_label(launch);
  return o3_arena_strndup(self->env->arena, label.data, label.length);
}

static o3_status_t outline(outliner_t *self, MlirOperation launch) {
  static _Thread_local captures_t captures;
  static _Thread_local words_t words;
  captures = (captures_t){.launch = launch, .seen = o3_ptr_map_create(self->env->arena)};
  O3_TRY_ALLOC(captures.seen);
  O3_TRY(o3_walk(launch, capture_operands, &captures));
  MlirOperation kernel;
  const char *name = NULL, *label = label_of(self, launch);
  O3_TRY_ALLOC(label);
  O3_TRY(make_kernel(self, &captures, (int)constant_of(mlirOperationGetOperand(launch, 3)), &kernel));
  O3_TRY(share_kernel(self, launch, kernel, &name));
  o3_builder_t b = o3_builder_before(launch);
  O3_TRY(make_words(&b, &captures, &words));
  const o3_gpu_note_t notes[] = {{"elements", o3_op_int(launch, O3_NVPTX_ELEMENTS_ATTR, 0)}};
  o3_nvptx_launch_t call = {.family = "generic",
                            .name = name,
                            .label = label,
                            .num_notes = 1,
                            .notes = notes,
                            .overlaps = overlaps(self),
                            .cluster = 1,
                            .num_arguments = words.count,
                            .arguments = words.values};
  for (int i = 0; i < 3; ++i) {
    call.grid[i] = mlirOperationGetOperand(launch, i);
    call.block[i] = mlirOperationGetOperand(launch, 3 + i);
  }
  call.shared = o3_build1(&b, "arith.index_cast", o3_build_index_type(&b),
                          O3_VALUES(mlirOperationGetOperand(launch, 6)));
  O3_TRY(o3_nvptx_launch(&b, self->module, &call));
  mlirOperationDestroy(launch);
  return NULL;
}

static o3_status_t collect(MlirOperation op, void *context) {
  outliner_t *self = context;
  if (!o3_op_is(op, "gpu.launch") || o3_ptr_vec_push(&self->launches, op.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

o3_status_t o3_nvptx_outline(o3_pass_env_t *env, MlirModule module) {
  outliner_t self = {.env = env,
                     .module = module,
                     .launches = o3_ptr_vec(env->arena),
                     .known = o3_str_map_create(env->arena)};
  o3_nvptx_load_dialects(env->context);
  O3_TRY_ALLOC(self.known);
  o3_nvptx_device(module);
  O3_TRY(o3_walk(o3_module_func(module, "main"), collect, &self));
  for (size_t i = 0; i < self.launches.count; ++i)
    O3_TRY(outline(&self, (MlirOperation){self.launches.items[i]}));
  return NULL;
}
