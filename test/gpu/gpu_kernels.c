/* gpu_kernels CARD IN.mlir FOLDER [MULTIPROCESSORS]: writes the kernels of the functions in IN.mlir as the
 * families make them.
 *
 * Each function is a kernel of the fuse stage on buffers: func.func @name(memref...) of linalg.generic ops;
 * or, with o3.attention = array<i64: causal, masked>, attention of Q, K, V, perhaps a mask, and the result,
 * [batch, heads, rows, width] each, the mask [batch, columns]. For each, FOLDER/name.mlir is its code,
 * FOLDER/name.ptx as PTX, and FOLDER/name.json how it is launched. A function that no family takes is an
 * error that says why. For a card of so many MULTIPROCESSORS there is LLVM IR in the place of PTX, name.ll,
 * for the emulator (test/emulator). */
#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ir/context.h"
#include "schedule/gpu.h"
#include "target/nvptx/attention_kernel.h"
#include "target/nvptx/attention_mma.h"
#include "target/nvptx/fast_kernels.h"
#include "target/nvptx/ptx.h"

enum { MAX_OPS = 64, MAX_ARGUMENTS = 16 };

static const char PIPELINE[] =
    "builtin.module(convert-math-to-llvm,convert-nvvm-to-llvm,convert-scf-to-cf,convert-vector-to-llvm,"
    "convert-arith-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)";

typedef struct job {
  const o3_gpu_t *gpu;
  bool for_emulator;
  const char *folder;
  o3_arena_t *arena;
  MlirContext context;
} job_t;

static o3_status_t write_file(const job_t *job, const char *name, const char *ending, const char *text) {
  const char *path = o3_arena_printf(job->arena, "%s/%s.%s", job->folder, name, ending);
  O3_TRY_ALLOC(path);
  return o3_file_write(path, text, strlen(text));
}

/* ---- Launches as JSON ---- */

static cJSON *numbers(int count, const int64_t *values) {
  cJSON *array = cJSON_CreateArray();
  for (int i = 0; i < count; ++i) cJSON_AddItemToArray(array, cJSON_CreateNumber((double)values[i]));
  return array;
}

static cJSON *argument_json(const o3_gpu_argument_t *argument) {
  cJSON *object = cJSON_CreateObject();
  if (argument->kind == O3_GPU_ARG_SCRATCH) {
    cJSON_AddNumberToObject(object, "scratch", (double)argument->bytes);
    return object;
  }
  cJSON_AddNumberToObject(object, "buffer", argument->buffer);
  if (argument->kind != O3_GPU_ARG_TENSOR_MAP) return object;
  const o3_gpu_tensor_map_t *map = &argument->map;
  int64_t box[O3_GPU_MAP_RANK];
  for (int i = 0; i < map->rank; ++i) box[i] = map->box[i];
  cJSON_AddNumberToObject(object, "type", o3_gpu_element_info(map->element)->tensor_map);
  cJSON_AddItemToObject(object, "sizes", numbers(map->rank, map->sizes));
  cJSON_AddItemToObject(object, "strides", numbers(map->rank, map->strides));
  cJSON_AddItemToObject(object, "box", numbers(map->rank, box));
  cJSON_AddNumberToObject(object, "swizzle", map->swizzle);
  if (!map->windows) return object;
  const int32_t *const pairs[] = {map->lows, map->highs, map->steps};
  static const char *const NAMES[] = {"lows", "highs", "steps"};
  for (int i = 0; i < 3; ++i)
    cJSON_AddItemToObject(object, NAMES[i], numbers(2, (int64_t[]){pairs[i][0], pairs[i][1]}));
  return object;
}

static o3_status_t write_launch(const job_t *job, const char *name, const o3_gpu_kernel_t *kernel) {
  cJSON *object = cJSON_CreateObject(), *arguments = cJSON_AddArrayToObject(object, "arguments");
  cJSON_AddStringToObject(object, "kernel", kernel->name);
  cJSON_AddItemToObject(object, "grid",
                        numbers(3, (int64_t[]){kernel->grid[0], kernel->grid[1], kernel->grid[2]}));
  cJSON_AddNumberToObject(object, "block", kernel->block);
  cJSON_AddNumberToObject(object, "cluster", kernel->cluster);
  cJSON_AddNumberToObject(object, "shared", kernel->shared_bytes);
  cJSON_AddBoolToObject(object, "overlaps", kernel->overlaps);
  for (int i = 0; i < kernel->num_arguments; ++i)
    cJSON_AddItemToArray(arguments, argument_json(&kernel->arguments[i]));
  char *text = cJSON_Print(object);
  cJSON_Delete(object);
  O3_TRY_ALLOC(text);
  o3_status_t status = write_file(job, name, "json", text);
  free(text);
  return status;
}

/* ---- Kernels ---- */

static o3_status_t write_code(const job_t *job, const char *name, const o3_gpu_kernel_t *kernel) {
  MlirModule module;
  o3_artifact_t code;
  O3_TRY(write_file(job, name, "mlir", kernel->text));
  O3_TRY(o3_ir_parse(job->context, kernel->text, strlen(kernel->text), kernel->name, &module));
  o3_status_t status = o3_ir_run_pipeline(module, PIPELINE);
  o3_status_t (*emit)(const o3_gpu_t *, bool, MlirModule, o3_artifact_t *) =
      job->for_emulator ? o3_ptx_emit_llvm_ir : o3_ptx_emit;
  if (!status) status = emit(job->gpu, job->gpu->sm >= 90, module, &code);
  mlirModuleDestroy(module);
  O3_TRY(status);
  status = write_file(job, name, job->for_emulator ? "ll" : "ptx", code.data);
  free(code.data);
  return status;
}

static void row_major(MlirType type, int64_t strides[3]) {
  strides[2] = o3_type_dim(type, 3);
  strides[1] = strides[2] * o3_type_dim(type, 2);
  strides[0] = strides[1] * o3_type_dim(type, 1);
}

static void read_schedule(MlirOperation func, o3_gpu_attention_t *a) {
  int64_t n[8];
  o3_gpu_attention_schedule(a);
  if (o3_op_ints(func, "o3.schedule", n, 8) != 8) return;
  a->schedule = (o3_attention_schedule_t){.consumers = (int)n[0],
                                          .columns = (int)n[1],
                                          .stages = (int)n[2],
                                          .queries = (int)n[3],
                                          .resident = (int)n[4],
                                          .persistent = n[5] != 0,
                                          .ordered = n[6] != 0,
                                          .speculates = n[7] != 0};
}

/* On warps: where warpgroups do not multiply, and where o3.warps says how. */
static o3_status_t make_on_warps(const job_t *job, MlirOperation func, const o3_gpu_attention_t *a,
                                 o3_gpu_kernel_t *kernel) {
  int64_t n[7];
  const char *why = o3_gpu_attention_mma_refuse(a, job->gpu);
  if (why) return o3_status_create(O3_STATUS_UNSUPPORTED, "attention: %s", why);
  o3_attention_warps_t warps = o3_gpu_attention_mma_schedule(a, job->gpu);
  if (o3_op_ints(func, "o3.warps", n, 7) == 7)
    warps =
        (o3_attention_warps_t){(int)n[0], (int)n[1], (int)n[2], (int)n[3], (int)n[4], (int)n[5], (int)n[6]};
  return o3_gpu_attention_mma_build(a, &warps, job->gpu, kernel);
}

static o3_status_t make_attention(const job_t *job, MlirOperation func, const int64_t flags[2],
                                  o3_gpu_kernel_t *kernel) {
  MlirValue q = mlirBlockGetArgument(o3_func_body(func), 0);
  MlirType rows = mlirValueGetType(q);
  MlirType columns = mlirValueGetType(mlirBlockGetArgument(o3_func_body(func), 1));
  MlirType values = mlirValueGetType(mlirBlockGetArgument(o3_func_body(func), 2));
  MlirType result = mlirValueGetType(mlirBlockGetArgument(o3_func_body(func), 3 + (flags[1] != 0)));
  o3_gpu_attention_t a = {.batch = o3_type_dim(rows, 0),
                          .heads = o3_type_dim(rows, 1),
                          .kv_heads = o3_type_dim(columns, 1),
                          .rows = o3_type_dim(rows, 2),
                          .columns = o3_type_dim(columns, 2),
                          .width = (int)o3_type_dim(rows, 3),
                          .value_width = (int)o3_type_dim(values, 3),
                          .causal = flags[0] != 0,
                          .masked = flags[1] != 0,
                          .multiprocessors = job->gpu->multiprocessors,
                          .mask_factor = 1,
                          .mask_strides = {o3_type_dim(columns, 2), 0, 0}};
  a.scale = 1.0 / sqrt((double)a.width);
  if (a.masked) o3_kernel_site_element(mlirBlockGetArgument(o3_func_body(func), 3), &a.mask_element);
  o3_kernel_site_element(q, &a.element);
  row_major(rows, a.q_strides);
  row_major(result, a.o_strides);
  row_major(columns, a.k_strides);
  row_major(values, a.v_strides);
  o3_gpu_attention_join_rows(&a);
  if (!(job->gpu->matrix & O3_GPU_WGMMA) || !mlirAttributeIsNull(o3_op_attr(func, "o3.warps")))
    return make_on_warps(job, func, &a, kernel);
  const char *why = o3_gpu_attention_refuse(&a);
  if (why) return o3_status_create(O3_STATUS_UNSUPPORTED, "attention: %s", why);
  read_schedule(func, &a);
  return o3_gpu_attention_build(&a, kernel);
}

static o3_status_t make_kernel(const job_t *job, MlirOperation func, o3_gpu_kernel_t *kernel) {
  int64_t flags[2];
  if (o3_op_ints(func, "o3.attention", flags, 2) == 2) return make_attention(job, func, flags, kernel);
  MlirOperation ops[MAX_OPS], op = mlirBlockGetFirstOperation(o3_func_body(func));
  MlirValue arguments[MAX_ARGUMENTS];
  o3_kernel_site_t site = {.arena = job->arena,
                           .gpu = job->gpu,
                           .sm = job->gpu->sm,
                           .multiprocessors = job->gpu->multiprocessors,
                           .shared_bytes = (int)job->gpu->shared_per_block,
                           .rounds_to_tf32 = !mlirAttributeIsNull(o3_op_attr(func, "o3.tf32")),
                           .ops = ops,
                           .arguments = arguments};
  int64_t constants[MAX_ARGUMENTS];
  int num_constants = o3_op_ints(func, "o3.constants", constants, MAX_ARGUMENTS);
  for (int i = 0; i < num_constants; ++i) site.constants |= UINT64_C(1) << constants[i];
  site.num_arguments = (int)mlirBlockGetNumArguments(o3_func_body(func));
  if (site.num_arguments > MAX_ARGUMENTS)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "too many arguments");
  for (int i = 0; i < site.num_arguments; ++i) arguments[i] = mlirBlockGetArgument(o3_func_body(func), i);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (!o3_op_is(op, "linalg.generic")) continue;
    if (site.num_ops == MAX_OPS) return o3_status_create(O3_STATUS_UNSUPPORTED, "too many ops");
    ops[site.num_ops++] = op;
  }
  return o3_fast_kernel_make(&site, kernel, NULL);
}

static o3_status_t write_function(const job_t *job, MlirOperation func) {
  o3_gpu_kernel_t kernel = {0};
  MlirStringRef symbol = o3_op_string(func, "sym_name");
  const char *name = o3_arena_printf(job->arena, "%.*s", O3_STR_ARGS(symbol));
  O3_TRY_ALLOC(name);
  o3_status_t status = make_kernel(job, func, &kernel);
  if (!status) status = write_launch(job, name, &kernel);
  if (!status) status = write_code(job, name, &kernel);
  o3_gpu_kernel_deinit(&kernel);
  return o3_status_annotate(status, "function '%s'", name);
}

static o3_status_t run(job_t *job, const char *path) {
  o3_mapped_file_t file;
  MlirModule module;
  O3_TRY(o3_context_create(&job->context));
  O3_TRY(o3_file_map(path, &file));
  O3_TRY(o3_ir_parse(job->context, (const char *)file.data, file.size, path, &module));
  MlirOperation func = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(func); func = mlirOperationGetNextInBlock(func))
    O3_TRY(write_function(job, func));
  return NULL;
}

static o3_status_t read_multiprocessors(const char *text, int *number) {
  char *end;
  long value = strtol(text, &end, 10);
  if (*end || value < 1 || value > INT_MAX)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "multiprocessors: '%s' is not a number from 1 on",
                            text);
  *number = (int)value;
  return NULL;
}

static o3_status_t find_card(const char *name, const char *multiprocessors, o3_gpu_t *gpu) {
  for (int i = 0; o3_gpu_at(i); ++i) {
    if (strcmp(o3_gpu_at(i)->name, name) != 0) continue;
    *gpu = *o3_gpu_at(i);
    return multiprocessors ? read_multiprocessors(multiprocessors, &gpu->multiprocessors) : NULL;
  }
  return o3_status_create(O3_STATUS_UNSUPPORTED, "there is no card '%s'", name);
}

int main(int argc, char **argv) {
  if (argc != 4 && argc != 5) {
    fprintf(stderr, "usage: gpu_kernels CARD IN.mlir FOLDER [MULTIPROCESSORS]\n");
    return 2;
  }
  o3_gpu_t gpu;
  job_t job = {.gpu = &gpu, .for_emulator = argc == 5, .folder = argv[3], .arena = o3_arena_create()};
  o3_status_t status = find_card(argv[1], argc == 5 ? argv[4] : NULL, &gpu);
  if (!status) status = run(&job, argv[2]);
  if (status) fprintf(stderr, "gpu_kernels: %s\n", o3_status_message(status));
  int code = status != NULL;
  o3_status_destroy(status);
  o3_arena_destroy(job.arena);
  return code;
}
