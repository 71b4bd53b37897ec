/* The GPU targets: rows of schedule/gpus.def, and the card in this machine. Their host is an x86-64 CPU of
 * 2013 and later, as all servers with such cards are. */
#include <stdio.h>
#include <string.h>

#include "runtime/compiled.h"
#include "schedule/gpu.h"
#include "target/nvptx/attention_kernel.h"
#include "target/nvptx/attention_site.h"
#include "target/nvptx/column_kernel.h"
#include "target/nvptx/gemm_site.h"
#include "target/nvptx/generic.h"
#include "target/nvptx/gpu_query.h"
#include "target/nvptx/nvptx.h"
#include "target/nvptx/open_batch.h"
#include "target/nvptx/split_sums.h"

#define O3_NVPTX_SHARED(stage, name, function, level, summary) \
  o3_status_t function(o3_pass_env_t *env, MlirModule module);
#define O3_NVPTX_PASS(stage, name, function, level, summary)
#include "target/nvptx/nvptx_passes.def"
#undef O3_NVPTX_PASS
#undef O3_NVPTX_SHARED

static const o3_target_pass_t PASSES[] = {
#define O3_NVPTX_PASS(stage, name, function, level, summary) {#stage, name, function, level, summary},
#define O3_NVPTX_SHARED                                      O3_NVPTX_PASS
#include "target/nvptx/nvptx_passes.def"
#undef O3_NVPTX_PASS
#undef O3_NVPTX_SHARED
};

/* Generic kernels take every product, and what is done with its result. */
static const char *refuse_product(MlirOperation product) {
  (void)product;
  return NULL;
}
static const char *refuse_epilogue(MlirOperation product, MlirOperation op) {
  (void)product, (void)op;
  return NULL;
}

/* What takes ops of known sizes takes each batch of those whose batch is known only at run time, too. */
typedef const char *(*refuse_ops_fn_t)(o3_arena_t *scratch, const o3_gpu_t *gpu, int num_ops,
                                       const MlirOperation *ops);

static const char *refuse_batches(refuse_ops_fn_t refuse, const o3_gpu_t *gpu, int num_ops,
                                  const MlirOperation *ops) {
  o3_open_batch_t batch;
  o3_arena_t *scratch = o3_arena_create();
  if (!scratch) return "memory is out";
  const char *why = refuse(scratch, gpu, num_ops, ops);
  if (why && o3_open_batch_begin(&batch, scratch, num_ops, ops)) {
    why = refuse(scratch, gpu, num_ops, ops);
    o3_open_batch_end(&batch);
  }
  o3_arena_destroy(scratch);
  return why;
}

/* Sums that are not in the result's memory are those of the fast kernels: in registers. */
static const char *refuse_conversion(const o3_gpu_t *gpu, int num_ops, const MlirOperation *ops) {
  return refuse_batches(o3_gemm_refuse_ops, gpu, num_ops, ops);
}

static const char *refuse_columns(const o3_gpu_t *gpu, int num_ops, const MlirOperation *ops) {
  return refuse_batches(o3_column_refuse_ops, gpu, num_ops, ops);
}

static const char *refuse_border(o3_arena_t *scratch, const o3_gpu_t *gpu, int num_ops,
                                 const MlirOperation *ops) {
  (void)num_ops;
  return o3_gemm_refuse_padding(scratch, gpu, ops[1], ops[0]);
}

static const char *refuse_padding(const o3_gpu_t *gpu, MlirOperation product, MlirOperation padding) {
  return refuse_batches(refuse_border, gpu, 2, (MlirOperation[]){padding, product});
}

/* What TMA asks for, gemm_launch.c. */
static const char *refuse_float8(const o3_gpu_t *gpu, int64_t columns, int64_t depth) {
  if (!(gpu->matrix & O3_GPU_WGMMA)) return "the card's kernels multiply no 8-bit floats";
  if (columns < 1 || columns % 8) return "its columns are no multiple of 8";
  return depth < 1 || depth % 16 ? "its sums are no multiple of 16 long" : NULL;
}

static const char *refuse_attention(const o3_gpu_t *gpu, int num_ops, const MlirOperation *ops) {
  return refuse_batches(o3_attention_refuse_ops, gpu, num_ops, ops);
}

static const o3_kernel_support_t KERNELS = {.prepare = o3_nvptx_split_sums,
                                            .channels_last = true,
                                            .f32_channels_last = true,
                                            .pools_in_place = true,
                                            .reads_attention_parts = o3_gpu_attention_has_width,
                                            .refuse_contraction = refuse_product,
                                            .refuse_epilogue = refuse_epilogue,
                                            .refuse_attention_ops = refuse_attention,
                                            .refuse_conversion = refuse_conversion,
                                            .refuse_columns = refuse_columns,
                                            .refuse_padding = refuse_padding,
                                            .refuse_float8 = refuse_float8};

const o3_target_t *o3_target_x86_64_v3(void);

/* Values of a row lie in shared memory, beside partial sums and what aligning takes, in what needs no asking
 * for. */
static o3_status_t adapt(o3_arena_t *arena, o3_machine_t *machine) {
  const o3_gpu_t *gpu = machine->gpu;
  o3_kernel_support_t *kernels = O3_ARENA_NEW(arena, o3_kernel_support_t);
  O3_TRY_ALLOC(kernels);
  *kernels = KERNELS;
  kernels->tf32_windows = gpu->matrix & O3_GPU_WGMMA;
  int64_t shared = gpu->shared_per_block < O3_GPU_PLAIN_SHARED ? gpu->shared_per_block : O3_GPU_PLAIN_SHARED;
  kernels->row_bytes = shared - 2 * O3_NVPTX_PARTIAL_BYTES;
  machine->kernels = kernels;
  return NULL;
}

static o3_status_t fill_machine(o3_arena_t *arena, const o3_gpu_t *gpu, o3_machine_t *machine) {
  O3_TRY(o3_target_x86_64_v3()->machine(arena, machine));
  machine->gpu = gpu;
  return adapt(arena, machine);
}

#define COMMON                                                                                               \
  .passes = PASSES, .num_passes = sizeof(PASSES) / sizeof(PASSES[0]), .emit_llvm_ir = o3_nvptx_emit_llvm_ir, \
  .adapt = adapt, .emit_object = o3_nvptx_emit_object, .emit_ptx = o3_nvptx_emit_ptx

enum {
#define O3_GPU(id, ...) ROW_##id,
#include "schedule/gpus.def"
#undef O3_GPU
};

#define O3_GPU(id, title, card, ...)                                                         \
  static o3_status_t machine_##id(o3_arena_t *arena, o3_machine_t *machine) {                \
    return fill_machine(arena, o3_gpu_at(ROW_##id), machine);                                \
  }                                                                                          \
  const o3_target_t *o3_target_##id(void);                                                   \
  const o3_target_t *o3_target_##id(void) {                                                  \
    static o3_target_t target = {                                                            \
        .name = title, .summary = "NVIDIA GPU like " card, .machine = machine_##id, COMMON}; \
    target.cpu_features = o3_target_x86_64_v3()->cpu_features;                               \
    return &target;                                                                          \
  }
#include "schedule/gpus.def"
#undef O3_GPU

/* ---- The card in this machine ---- */

static o3_status_t machine_here(o3_arena_t *arena, o3_machine_t *machine) {
  o3_gpu_t *gpu = O3_ARENA_ARRAY(arena, o3_gpu_t, 1);
  O3_TRY_ALLOC(gpu);
  O3_TRY(o3_gpu_query(gpu));
  return fill_machine(arena, gpu, machine);
}

const o3_target_t *o3_target_gpu(void);
const o3_target_t *o3_target_gpu(void) {
  static o3_target_t target = {
      .name = "gpu", .summary = "the NVIDIA GPU in this machine", .machine = machine_here, COMMON};
  target.cpu_features = o3_target_x86_64_v3()->cpu_features;
  return &target;
}
