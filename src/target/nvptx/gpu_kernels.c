/* nvptx-kernels: every linalg op becomes code of the card.
 *
 * Kernels of the fuse stage are offered to the families of fast kernels (fast_kernels.def) first; what none
 * takes, and ops outside kernels, become generic kernels (generic.h). A check in a kernel's body notes the
 * number of its text in the session's error word and ends its thread, before anything is read out of bounds:
 *
 *     cf.assert %ok, "text"  ->  scf.if %not_ok { llvm.store %number, %error_word; exit }
 *
 * Guarantees: no linalg op and no call of a kernel is left.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "fuse/kernel_body.h"
#include "ir/context.h"
#include "schedule/gpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/nvptx/fast_kernels.h"
#include "target/nvptx/gemm_kernel.h"
#include "target/nvptx/generic.h"
#include "target/nvptx/merge_padding.h"
#include "target/nvptx/nvptx.h"
#include "target/nvptx/nvptx_ir.h"
#include "target/nvptx/open_batch_launch.h"

/* ---- Kernels of families ---- */

typedef struct body_ops {
  int num_ops;
  MlirOperation ops[O3_KERNEL_MAX_OPS];
  int num_arguments;
  MlirValue arguments[O3_NVPTX_MAX_ARGUMENTS];
} body_ops_t;

static void read_body(MlirOperation kernel, body_ops_t *body) {
  MlirBlock block = o3_func_body(kernel);
  *body = (body_ops_t){.num_arguments = (int)mlirBlockGetNumArguments(block)};
  for (int i = 0; i < body->num_arguments && i < O3_NVPTX_MAX_ARGUMENTS; ++i)
    body->arguments[i] = mlirBlockGetArgument(block, i);
  MlirOperation op = mlirBlockGetFirstOperation(block);
  for (; !mlirOperationIsNull(op) && body->num_ops < O3_KERNEL_MAX_OPS; op = mlirOperationGetNextInBlock(op))
    if (o3_op_is(op, "linalg.generic")) body->ops[body->num_ops++] = op;
}

/* Of |op| and those behind it. */
static MlirOperation find_kernel(MlirOperation op) {
  while (!mlirOperationIsNull(op) && mlirAttributeIsNull(o3_op_attr(op, "nvvm.kernel")))
    op = mlirOperationGetNextInBlock(op);
  O3_ASSERT(!mlirOperationIsNull(op), "families write one kernel");
  return op;
}

static bool has_symbol(MlirBlock device, MlirStringRef name) {
  MlirOperation op = mlirBlockGetFirstOperation(device);
  while (!mlirOperationIsNull(op) && !mlirStringRefEqual(o3_op_string(op, "sym_name"), name))
    op = mlirOperationGetNextInBlock(op);
  return !mlirOperationIsNull(op);
}

/* The family's functions and globals, into the device module. What is there already is the same: of a kernel
 * that is, the text need not be read. */
static o3_status_t add_code(MlirModule module, const o3_gpu_kernel_t *kernel, const o3_batch_units_t *units) {
  MlirModule parsed;
  MlirBlock device = o3_nvptx_device(module);
  if (has_symbol(device, mlirStringRefCreateFromCString(kernel->name))) return NULL;
  O3_TRY(
      o3_ir_parse(mlirModuleGetContext(module), kernel->text, strlen(kernel->text), kernel->name, &parsed));
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(parsed));
  o3_status_t status = units ? o3_batch_launch_code(find_kernel(op), kernel, units) : NULL;
  while (!mlirOperationIsNull(op) && !status) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    if (!has_symbol(device, o3_op_string(op, "sym_name"))) {
      mlirOperationRemoveFromParent(op);
      mlirBlockAppendOwnedOperation(device, op);
    }
    op = next;
  }
  mlirModuleDestroy(parsed);
  return status;
}

/* What the encoder is given, in memory of the host. See o3rt_gpu_tensor_map. |batches|: index, or null. */
static MlirValue map_spec(o3_builder_t *b, MlirModule module, const o3_gpu_tensor_map_t *map,
                          MlirValue batches) {
  int64_t words[4 + 3 * O3_GPU_MAP_RANK + 6];
  int count = 0, told = -1;
  words[count++] = o3_gpu_element_info(map->element)->tensor_map;
  words[count++] = map->rank;
  words[count++] = map->swizzle;
  words[count++] = map->windows;
  if (map->told) told = count + map->told;
  for (int i = 0; i < map->rank; ++i) words[count++] = map->sizes[i];
  for (int i = 0; i < map->rank; ++i) words[count++] = map->strides[i];
  for (int i = 0; i < map->rank; ++i) words[count++] = map->box[i];
  const int32_t *const windows[] = {map->lows, map->highs, map->steps};
  for (int i = 0; i < 6; ++i) words[count++] = windows[i / 2][i % 2];
  MlirType i64 = o3_cpu_i64_type(b->context);
  MlirValue memory = o3_nvptx_stack(module, "map", (int64_t)sizeof(words));
  for (int i = 0; i < count; ++i) {
    MlirValue at = o3_build1_attrs(
        b, "llvm.getelementptr", o3_cpu_ptr_type(b->context), O3_VALUES(memory),
        O3_ATTRS({"rawConstantIndices", mlirDenseI32ArrayGet(b->context, 1, (int32_t[]){(int32_t)i})},
                 {"elem_type", o3_attr_type(i64)}));
    MlirValue word = o3_build_int(b, i64, words[i]);
    if (i == told) word = o3_build2(b, "arith.muli", word, o3_cpu_to_i64(b, batches));
    o3_build0(b, "llvm.store", O3_VALUES(word, at));
  }
  return memory;
}

enum { MAP_BYTES = 128 };

/* The tensor map of argument |index|, encoded on the stack. */
static MlirValue encode_map(o3_builder_t *b, MlirModule module, int index, const o3_gpu_argument_t *argument,
                            MlirValue buffer, MlirValue batches) {
  MlirValue all = o3_nvptx_stack(module, "maps", MAP_BYTES * O3_GPU_MAX_ARGUMENTS);
  MlirValue map = o3_build1_attrs(
      b, "llvm.getelementptr", o3_cpu_ptr_type(b->context), O3_VALUES(all),
      O3_ATTRS({"rawConstantIndices", mlirDenseI32ArrayGet(b->context, 1, (int32_t[]){MAP_BYTES * index})},
               {"elem_type", o3_attr_type(mlirIntegerTypeGet(b->context, 8))}));
  MlirValue address =
      o3_build1(b, "memref.extract_aligned_pointer_as_index", o3_build_index_type(b), O3_VALUES(buffer));
  if (argument->offset) address = o3_build2(b, "arith.addi", address, o3_build_index(b, argument->offset));
  MlirValue pointer =
      o3_build1(b, "llvm.inttoptr", o3_cpu_ptr_type(b->context), O3_VALUES(o3_cpu_to_i64(b, address)));
  MlirValue operands[4] = {o3_cpu_session(module), map, pointer,
                           map_spec(b, module, &argument->map, batches)};
  o3_nvptx_call(b, module, O3_NVPTX_RT_MAP, 4, operands);
  return map;
}

/* Elements of |buffer| / |columns|, index. */
static MlirValue count_rows(o3_builder_t *b, MlirValue buffer, int64_t columns) {
  MlirType type = mlirValueGetType(buffer);
  MlirValue count = o3_build_index(b, 1);
  for (int i = 0; i < o3_type_rank(type); ++i) {
    MlirValue size =
        o3_build1(b, "memref.dim", o3_build_index_type(b), O3_VALUES(buffer, o3_build_index(b, i)));
    count = o3_build2(b, "arith.muli", count, size);
  }
  return o3_build2(b, "arith.divui", count, o3_build_index(b, columns));
}

typedef struct too_large {
  MlirModule module;
  const char *label;
} too_large_t;

static o3_status_t fail_too_large(o3_builder_t *b, void *context, MlirValue *yields) {
  const too_large_t *it = context;
  char text[256];
  (void)yields;
  snprintf(text, sizeof(text),
           "node '%.150s': an operand or the result of all batches has 2^31 elements or more", it->label);
  MlirValue message = o3_cpu_text(b, it->module, mlirStringRefCreateFromCString(text));
  MlirValue operands[2] = {o3_cpu_session(it->module), message};
  o3_cpu_call_runtime(b, it->module, O3_CPU_RT_FAIL, 2, operands);
  return NULL;
}

/* The blocks for |rows|, which must not be too many. */
static o3_status_t grid_of_rows(o3_builder_t *b, const too_large_t *label, const o3_gpu_kernel_t *kernel,
                                MlirValue rows, MlirValue *grid) {
  MlirValue over = o3_build_cmpi(b, O3_CMPI_ULT, o3_build_index(b, kernel->rows.most), rows);
  o3_if_t branch = {.condition = over, .then_body = fail_too_large, .context = (void *)(uintptr_t)label};
  O3_TRY(o3_build_if(b, &branch, NULL));
  MlirValue tiles = o3_build2(b, "arith.ceildivui", rows, o3_build_index(b, kernel->rows.tile));
  *grid = o3_build2(b, "arith.muli", tiles, o3_build_index(b, kernel->grid[0]));
  if (kernel->rows.blocks) *grid = o3_build2(b, "arith.minui", *grid, o3_build_index(b, kernel->rows.blocks));
  return NULL;
}

static MlirValue scratch(o3_builder_t *b, MlirModule module, int64_t bytes) {
  MlirValue size = o3_build_int(b, o3_cpu_i64_type(b->context), bytes);
  return o3_nvptx_call(b, module, O3_NVPTX_RT_SCRATCH, 2, (MlirValue[]){o3_cpu_session(module), size});
}

/* |batches|: how many there are, index, of a kernel made for one; null: it is for all. */
static o3_status_t launch_family(o3_builder_t *b, const o3_inlined_t *at, const o3_gpu_kernel_t *kernel,
                                 MlirValue batches, const char *label) {
  MlirValue arguments[O3_GPU_MAX_ARGUMENTS];
  bool is_map[O3_GPU_MAX_ARGUMENTS];
  for (int i = 0; i < kernel->num_arguments; ++i) {
    const o3_gpu_argument_t *argument = &kernel->arguments[i];
    is_map[i] = false;
    if (argument->kind == O3_GPU_ARG_SCRATCH) {
      arguments[i] = scratch(b, at->module, argument->bytes);
      continue;
    }
    MlirValue buffer = mlirOperationGetOperand(at->call, argument->buffer);
    is_map[i] = argument->kind == O3_GPU_ARG_TENSOR_MAP;
    arguments[i] = is_map[i] ? encode_map(b, at->module, i, argument, buffer, batches) : buffer;
    if (argument->kind == O3_GPU_ARG_ROWS) arguments[i] = count_rows(b, buffer, argument->columns);
  }
  o3_nvptx_launch_t launch = {.family = kernel->family,
                              .name = kernel->name,
                              .label = label,
                              .num_notes = kernel->num_notes,
                              .notes = kernel->notes,
                              .shared = o3_build_index(b, kernel->shared_bytes),
                              .overlaps = kernel->overlaps,
                              .cluster = kernel->cluster,
                              .num_arguments = kernel->num_arguments,
                              .arguments = arguments,
                              .is_map = is_map};
  for (int i = 0; i < 3; ++i) {
    launch.grid[i] = o3_build_index(b, kernel->grid[i]);
    launch.block[i] = o3_build_index(b, i ? 1 : kernel->block);
  }
  if (batches.ptr && !kernel->rows.tile) launch.grid[0] = o3_build2(b, "arith.muli", launch.grid[0], batches);
  if (kernel->rows.tile)
    O3_TRY(grid_of_rows(b, &(too_large_t){at->module, label}, kernel, arguments[kernel->num_arguments - 1],
                        &launch.grid[0]));
  return o3_nvptx_launch(b, at->module, &launch);
}

static void destroy_copies(o3_inlined_t *at) {
  for (int i = at->num_ops - 1; i >= 0; --i) mlirOperationDestroy(at->ops[i]);
  for (int i = at->num_buffers - 1; i >= 0; --i) mlirOperationDestroy(at->buffers[i]);
}

/* Instructions of one architecture alone are told by the kernel's name: o3k_..._sm90a_... */
static void note_architecture(MlirModule module, const o3_gpu_kernel_t *kernel) {
  const char *arch = strstr(kernel->name, "__sm");
  if (!arch) return;
  arch += strlen("__sm");
  if (arch[strspn(arch, "0123456789")] != 'a') return;
  o3_nvptx_device(module);
  o3_op_attr_set(o3_nvptx_device_op(module), O3_NVPTX_SPECIFIC_ATTR,
                 mlirUnitAttrGet(mlirModuleGetContext(module)));
}

/* The arguments that are weights. */
static uint64_t find_constants(const o3_inlined_t *at, int count) {
  uint64_t constants = 0;
  for (int i = 0; i < count && i < 64; ++i) {
    MlirOperation def = o3_value_def(o3_kernel_site_base(mlirOperationGetOperand(at->call, i)));
    if (!mlirOperationIsNull(def) && o3_op_is(def, "memref.get_global")) constants |= UINT64_C(1) << i;
  }
  return constants;
}

static o3_kernel_site_t site_of(const o3_inlined_t *at, const body_ops_t *body) {
  const o3_gpu_t *gpu = at->env->machine->gpu;
  o3_precision_t precision = at->env->precision;
  return (o3_kernel_site_t){
      .arena = at->env->arena,
      .gpu = gpu,
      .card = gpu,
      .sm = gpu->sm,
      .multiprocessors = gpu->multiprocessors,
      .shared_bytes = (int)gpu->shared_per_block,
      .rounds_to_tf32 = precision == O3_PRECISION_TF32,
      .rounds_to_half = precision == O3_PRECISION_FP16 || precision == O3_PRECISION_BF16,
      .kind = o3_op_string(at->kernel, O3_KERNEL_KIND),
      .num_ops = body->num_ops,
      .ops = body->ops,
      .num_arguments = body->num_arguments,
      .arguments = body->arguments,
      .constants = find_constants(at, body->num_arguments)};
}

/* UNSUPPORTED becomes |taken| = false. */
static o3_status_t note_refused(o3_status_t status, const char *label, const char *of, bool *taken) {
  *taken = !status;
  if (!status || o3_status_code(status) != O3_STATUS_UNSUPPORTED) return status;
  o3_log(O3_LOG_DEBUG, "%s%s: %s", label, of, o3_status_message(status));
  o3_status_destroy(status);
  return NULL;
}

/* ---- Kernels of one batch, for all ---- */

/* What is best depends on how many batches there are: a kernel is made for each of these, and a run takes the
 * one for the fewest that is for as many as it has. Those that are equal are one, and a product has no other
 * kernel where the one for more batches is nearly as quick. The last is for any number, of which the usual
 * one is only a beginning. */
static const struct {
  int usual;
  int64_t most;
} COUNTS[] = {{1, 1}, {4, 4}, {8, 16}, {32, 64}, {256, INT64_MAX}};

enum { NUM_COUNTS = sizeof(COUNTS) / sizeof(COUNTS[0]) };

typedef struct variant {
  o3_gpu_kernel_t kernel;
  o3_batch_units_t units;
  int64_t most; /* batches that it is for */
} variant_t;

/* |variants|: for the most batches first. |unit|: elements of a batch of the result, |rows| of it. */
typedef struct each_batch {
  int count;
  variant_t variants[NUM_COUNTS];
  int64_t unit, rows;
} each_batch_t;

static void deinit_each(each_batch_t *each) {
  while (each->count > 0) o3_gpu_kernel_deinit(&each->variants[--each->count].kernel);
}

/* A batch's share of the card. */
static o3_gpu_t share_of_batch(const o3_gpu_t *gpu, int batches) {
  o3_gpu_t share = *gpu;
  share.multiprocessors = (gpu->multiprocessors + batches - 1) / batches;
  share.fp16_tflops = gpu->fp16_tflops * share.multiprocessors / gpu->multiprocessors;
  return share;
}

static bool are_launched_alike(const o3_gpu_kernel_t *a, const o3_gpu_kernel_t *b) {
  return !strcmp(a->name, b->name) && a->grid[0] == b->grid[0] && a->rows.tile == b->rows.tile;
}

/* Appends the kernel for COUNTS[number], unless there is none: those for more batches then are for these,
 * too. |site|: of one batch. */
static o3_status_t add_variant(o3_kernel_site_t site, int number, const char *label, each_batch_t *each) {
  const o3_gpu_t share = share_of_batch(site.card, COUNTS[number].usual);
  variant_t *variant = &each->variants[each->count];
  bool taken;
  *variant = (variant_t){.most = COUNTS[number].most};
  site.gpu = &share;
  site.usual_batches = COUNTS[number].usual;
  site.any_batches = COUNTS[number].most == INT64_MAX;
  o3_status_t status = o3_fast_kernel_make(&site, &variant->kernel, &variant->units);
  O3_TRY(note_refused(status, label, " for each batch", &taken));
  if (taken && each->count && are_launched_alike(&variant[-1].kernel, &variant->kernel))
    o3_gpu_kernel_deinit(&variant->kernel);
  else if (taken)
    ++each->count;
  return NULL;
}

/* Offers the kernel of one batch to the families, if it is one of batches; |each| has variants when they take
 * it. */
static o3_status_t make_each(const o3_kernel_site_t *whole, const char *label, each_batch_t *each) {
  o3_kernel_site_t site = *whole;
  o3_open_batch_t batch;
  o3_gemm_schedules_t schedules = {0};
  o3_status_t status = NULL;
  if (!o3_open_batch_begin(&batch, site.arena, site.num_ops, site.ops)) return NULL;
  site.batch = &batch;
  site.taken = &schedules;
  MlirValue result = site.arguments[site.num_arguments - 1];
  MlirType type = mlirValueGetType(result);
  each->unit = o3_open_batch_unit(&batch, result);
  each->rows = each->unit / o3_type_dim(type, o3_type_rank(type) - 1);
  for (int i = NUM_COUNTS - 1; i >= 0 && !status; --i) {
    schedules.num_next = i;
    for (int j = 0; j < i; ++j) schedules.next[j] = COUNTS[i - 1 - j].usual;
    status = add_variant(site, i, label, each);
  }
  o3_open_batch_end(&batch);
  return status;
}

/* Warpgroups that are full are better than one kernel for all batches whose rows are told: with the rows of a
 * batch, or with those of several where tiles reach from one into the next. */
static bool fills_warpgroups(const each_batch_t *each) {
  enum { ROWS = 64, BATCHES = 8 };
  for (int i = 0; i < each->count; ++i) {
    const o3_gpu_kernel_t *kernel = &each->variants[i].kernel;
    int batches = kernel->rows.tile > 1 ? BATCHES : 1;
    if (strcmp(kernel->family, "gemm") != 0 || each->rows * batches < ROWS) return false;
  }
  return each->count > 0;
}

typedef struct chosen {
  const o3_inlined_t *at;
  const each_batch_t *each;
  int left; /* variants */
  MlirValue batches;
  const char *label;
} chosen_t;

static o3_status_t launch_variants(o3_builder_t *b, const chosen_t *it);

static o3_status_t launch_first(o3_builder_t *b, void *context, MlirValue *yields) {
  const chosen_t *it = context;
  (void)yields;
  return launch_family(b, it->at, &it->each->variants[it->left - 1].kernel, it->batches, it->label);
}

static o3_status_t launch_rest(o3_builder_t *b, void *context, MlirValue *yields) {
  chosen_t rest = *(const chosen_t *)context;
  (void)yields;
  --rest.left;
  return launch_variants(b, &rest);
}

/* The last of the variants that is for as many batches as there are. */
static o3_status_t launch_variants(o3_builder_t *b, const chosen_t *it) {
  chosen_t context = *it;
  if (it->left == 1) return launch_first(b, &context, NULL);
  MlirValue most = o3_build_index(b, it->each->variants[it->left - 1].most);
  o3_if_t branch = {.condition = o3_build_cmpi(b, O3_CMPI_ULE, it->batches, most),
                    .then_body = launch_first,
                    .else_body = launch_rest,
                    .context = &context};
  return o3_build_if(b, &branch, NULL);
}

/* Kernels but the one for any number tell the most batches that they are for. */
static void note_batches(each_batch_t *each) {
  for (int i = 1; i < each->count; ++i)
    O3_GPU_KERNEL_NOTE(&each->variants[i].kernel, {"batches", each->variants[i].most});
}

static o3_status_t add_each(const o3_inlined_t *at, const each_batch_t *each, const char *label) {
  o3_builder_t b = o3_builder_before(at->call);
  MlirValue result = mlirOperationGetOperand(at->call, mlirOperationGetNumOperands(at->call) - 1);
  for (int i = 0; i < each->count; ++i) {
    const variant_t *variant = &each->variants[i];
    O3_TRY(add_code(at->module, &variant->kernel, variant->kernel.rows.tile ? NULL : &variant->units));
    note_architecture(at->module, &variant->kernel);
  }
  return launch_variants(&b, &(chosen_t){at, each, each->count, count_rows(&b, result, each->unit), label});
}

/* ---- Kernels of all ---- */

static o3_status_t add_whole(const o3_inlined_t *at, const o3_gpu_kernel_t *kernel, const char *label) {
  o3_builder_t b = o3_builder_before(at->call);
  O3_TRY(add_code(at->module, kernel, NULL));
  note_architecture(at->module, kernel);
  return launch_family(&b, at, kernel, (MlirValue){0}, label);
}

static o3_status_t try_whole(const o3_inlined_t *at, const o3_kernel_site_t *site, const char *label,
                             bool *taken) {
  o3_gpu_kernel_t kernel = {0};
  o3_status_t status = note_refused(o3_fast_kernel_make(site, &kernel, NULL), label, "", taken);
  if (*taken) status = add_whole(at, &kernel, label);
  o3_gpu_kernel_deinit(&kernel);
  return status;
}

/* |each| is the caller's to deinit. Without warpgroups it is made for what nothing else takes. */
static o3_status_t choose_kernel(const o3_inlined_t *at, const o3_kernel_site_t *site, const char *label,
                                 each_batch_t *each, bool *taken) {
  bool warpgroups = site->gpu->matrix & O3_GPU_WGMMA;
  if (warpgroups) O3_TRY(make_each(site, label, each));
  if (!fills_warpgroups(each)) O3_TRY(try_whole(at, site, label, taken));
  if (*taken) return NULL;
  if (!warpgroups) O3_TRY(make_each(site, label, each));
  *taken = each->count > 0;
  note_batches(each);
  return *taken ? add_each(at, each, label) : NULL;
}

/* Offers the kernel to the families. */
static o3_status_t try_families(o3_inlined_t *at, const char *label, bool *taken) {
  static _Thread_local body_ops_t body;
  read_body(at->kernel, &body);
  const o3_kernel_site_t site = site_of(at, &body);
  each_batch_t each = {0};
  *taken = false;
  o3_status_t status = choose_kernel(at, &site, label, &each, taken);
  deinit_each(&each);
  if (!status && *taken) destroy_copies(at);
  return status;
}

/* "Conv_3, Relu_4" */
static const char *label_of(const o3_inlined_t *at) {
  MlirAttribute nodes = o3_op_attr(at->kernel, O3_KERNEL_NODES);
  o3_strbuf_t text = O3_STRBUF_INIT;
  intptr_t count = mlirAttributeIsNull(nodes) ? 0 : mlirArrayAttrGetNumElements(nodes);
  for (intptr_t i = 0; i < count; ++i) {
    MlirStringRef node = mlirStringAttrGetValue(mlirArrayAttrGetElement(nodes, i));
    o3_strbuf_printf(&text, "%s%.*s", i ? ", " : "", O3_STR_ARGS(node));
  }
  const char *label = text.failed ? NULL : o3_arena_strdup(at->env->arena, text.length ? text.text : "");
  o3_strbuf_deinit(&text);
  return label;
}

static o3_status_t emit_kernel(o3_inlined_t *at, void *context) {
  bool taken;
  (void)context;
  const char *label = label_of(at);
  O3_TRY_ALLOC(label);
  O3_TRY(try_families(at, label, &taken));
  return taken ? NULL : o3_nvptx_generic_kernel(at, label);
}

/* ---- Checks in bodies ---- */

typedef struct failure {
  MlirModule module;
  MlirValue word;
  MlirStringRef text;
} failure_t;

static o3_status_t build_failure(o3_builder_t *b, void *context, MlirValue *yields) {
  const failure_t *it = context;
  MlirType i32 = mlirIntegerTypeGet(b->context, 32);
  (void)yields;
  int number;
  O3_TRY(o3_nvptx_message_number(it->module, it->text, &number));
  o3_build0(b, "llvm.store", O3_VALUES(o3_build_int(b, i32, number + 1), it->word));
  const o3_op_spec_t spec = {
      .name = "llvm.call_intrinsic",
      .num_attrs = 3,
      .attrs = (o3_attr_t[]){{"intrin", o3_attr_string(b->context, "llvm.nvvm.exit")},
                             {"operandSegmentSizes", mlirDenseI32ArrayGet(b->context, 2, (int32_t[]){0, 0})},
                             {"op_bundle_sizes", mlirDenseI32ArrayGet(b->context, 0, NULL)}}};
  o3_build(b, &spec);
  return NULL;
}

static MlirValue error_word(MlirModule module) {
  MlirBlock entry = o3_func_body(o3_module_func(module, "main"));
  o3_builder_t b = o3_builder_before(mlirBlockGetFirstOperation(entry));
  MlirValue session = o3_cpu_session(module);
  return o3_nvptx_call(&b, module, O3_NVPTX_RT_ERROR_WORD, 1, &session);
}

static bool is_in_launch(MlirOperation op) {
  while (!mlirOperationIsNull(op) && !o3_op_is(op, "gpu.launch")) op = mlirOperationGetParentOperation(op);
  return !mlirOperationIsNull(op);
}

static o3_status_t replace_check(MlirOperation op, void *context) {
  failure_t *it = context;
  if (!o3_op_is(op, "cf.assert") || !is_in_launch(op)) return NULL;
  if (!it->word.ptr) it->word = error_word(it->module);
  it->text = o3_op_string(op, "msg");
  o3_builder_t b = o3_builder_before(op);
  MlirType i1 = mlirIntegerTypeGet(b.context, 1);
  MlirValue fails = o3_build2(&b, "arith.xori", mlirOperationGetOperand(op, 0), o3_build_int(&b, i1, 1));
  o3_if_t branch = {.condition = fails, .then_body = build_failure, .context = it};
  O3_TRY(o3_build_if(&b, &branch, NULL));
  mlirOperationDestroy(op);
  return NULL;
}

/* ---- The pass ---- */

static o3_status_t collect_op(MlirOperation op, void *context) {
  if (!o3_op_is(op, "linalg.generic") || o3_ptr_vec_push(context, op.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

o3_status_t o3_nvptx_kernels(o3_pass_env_t *env, MlirModule module) {
  MlirOperation main = o3_module_func(module, "main");
  o3_ptr_vec_t ops = o3_ptr_vec(env->arena);
  failure_t failure = {.module = module};
  o3_nvptx_load_dialects(env->context);
  O3_TRY(o3_nvptx_merge_padding(main));
  O3_TRY(o3_kernels_emit(env, module, emit_kernel, NULL));
  O3_TRY(o3_walk(main, collect_op, &ops));
  for (size_t i = 0; i < ops.count; ++i) O3_TRY(o3_nvptx_generic_op(env, (MlirOperation){ops.items[i]}));
  O3_TRY(o3_walk(main, replace_check, &failure));
  return o3_ir_run_pipeline(module, "builtin.module(canonicalize,cse)");
}
