/* nvptx-limits: what a launch asks of the card is what the card gives.
 *
 *     llvm.call @o3rt_gpu_launch(...) {o3.kernel = "k", o3.schedule = {block = 384, cluster = 2, shared =
 * 200000}}
 *
 * Threads, shared memory and blocks of a cluster are the launch's; how many blocks are to be side by side on
 * a multiprocessor (nvvm.minctasm) and how many registers its warpgroups take (nvvm.setmaxregister) are the
 * kernel's. Shared memory beyond 48 KiB is asked for by the runtime when it launches. Needs nvptx-outline.
 * Changes nothing; a driver would refuse the launch, or run it slower than the schedule means, and name no
 * node.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/context.h"
#include "schedule/gpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/nvptx/nvptx.h"
#include "target/nvptx/nvptx_ir.h"

/* No kernel does with fewer registers a thread; warpgroups of 128 threads change theirs together. */
enum { LEAST_REGISTERS = 16, WARPGROUP = 128 };

/* What a kernel's function says. */
typedef struct demands {
  MlirBlock device;
  int64_t static_shared; /* bytes */
  int64_t fewest, most;  /* registers a thread of nvvm.setmaxregister; 0: there is none */
  int64_t blocks;        /* side by side */
} demands_t;

typedef struct checker {
  const o3_gpu_t *gpu;
  MlirBlock device;
} checker_t;

static MlirOperation find_symbol(MlirBlock device, MlirStringRef name) {
  MlirOperation op = mlirBlockGetFirstOperation(device);
  while (!mlirOperationIsNull(op) && !mlirStringRefEqual(o3_op_string(op, "sym_name"), name))
    op = mlirOperationGetNextInBlock(op);
  return op;
}

/* Bytes of a global that is an array of numbers; the C API tells the length of one by its text alone. */
static int64_t bytes_of(MlirOperation global) {
  char *text = o3_type_text(mlirTypeAttrGetValue(o3_op_attr(global, "global_type")));
  long long count = 0, bits = 0;
  bool array = text && sscanf(text, "!llvm.array<%lld x %*[a-z]%lld", &count, &bits) == 2;
  free(text);
  return array ? count * bits / 8 : 0;
}

static o3_status_t read_demand(MlirOperation op, void *context) {
  demands_t *it = context;
  if (o3_op_is(op, "llvm.mlir.addressof")) {
    MlirAttribute name = o3_op_attr(op, "global_name");
    MlirOperation global = find_symbol(it->device, mlirFlatSymbolRefAttrGetValue(name));
    bool shared = !mlirOperationIsNull(global) && o3_op_int(global, "addr_space", 0) == O3_NVPTX_SHARED_SPACE;
    if (shared) it->static_shared += bytes_of(global);
  }
  if (!o3_op_is(op, "nvvm.setmaxregister")) return NULL;
  int64_t count = o3_op_int(op, "regCount", 0);
  if (!it->most || count > it->most) it->most = count;
  if (!it->fewest || count < it->fewest) it->fewest = count;
  return NULL;
}

/* Registers of a block: one warpgroup copies and has the fewest, the others the most. */
static int64_t registers_of(const demands_t *it, int64_t threads) {
  if (!it->most) return threads * LEAST_REGISTERS;
  return WARPGROUP * it->fewest + (threads - WARPGROUP) * it->most;
}

typedef struct limit {
  const char *what;
  int64_t found, most;
} limit_t;

static o3_status_t check(const checker_t *self, MlirOperation call, int count, const limit_t *limits) {
  for (int i = 0; i < count; ++i) {
    if (limits[i].found <= limits[i].most) continue;
    return o3_status_create(O3_STATUS_UNSUPPORTED,
                            "node '%.*s': its kernel '%.*s' has %" PRId64 " %s, target '%s' gives %" PRId64,
                            O3_STR_ARGS(o3_op_string(call, "o3.label")),
                            O3_STR_ARGS(o3_op_string(call, O3_NVPTX_KERNEL_ATTR)), limits[i].found,
                            limits[i].what, self->gpu->name, limits[i].most);
  }
  return NULL;
}

static int64_t field(MlirOperation call, const char *name) {
  MlirAttribute value = mlirDictionaryAttrGetElementByName(o3_op_attr(call, "o3.schedule"), O3_STR(name));
  return mlirAttributeIsNull(value) ? 0 : mlirIntegerAttrGetValueInt(value);
}

static o3_status_t check_launch(MlirOperation call, void *context) {
  const checker_t *self = context;
  if (!o3_op_is(call, "llvm.call") || mlirAttributeIsNull(o3_op_attr(call, O3_NVPTX_KERNEL_ATTR)))
    return NULL;
  MlirOperation kernel = find_symbol(self->device, o3_op_string(call, O3_NVPTX_KERNEL_ATTR));
  if (mlirOperationIsNull(kernel))
    return o3_status_create(O3_STATUS_INTERNAL, "node '%.*s': its kernel is not in the device module",
                            O3_STR_ARGS(o3_op_string(call, "o3.label")));
  demands_t it = {.device = self->device, .blocks = o3_op_int(kernel, "nvvm.minctasm", 1)};
  O3_TRY(o3_walk(kernel, read_demand, &it));
  const o3_gpu_t *gpu = self->gpu;
  int64_t threads = field(call, "block"), shared = field(call, "shared") + it.static_shared;
  const limit_t limits[] = {
      {"threads a block", threads, O3_GPU_MAX_BLOCK_THREADS},
      {"bytes of shared memory a block", shared, gpu->shared_per_block},
      {"blocks a cluster", field(call, "cluster"), gpu->cluster},
      {"threads a multiprocessor", threads * it.blocks, gpu->threads_per_sm},
      {"bytes of shared memory a multiprocessor", shared * it.blocks, gpu->shared_per_sm},
      {"registers a multiprocessor", registers_of(&it, threads) * it.blocks, gpu->registers_per_sm}};
  return check(self, call, sizeof(limits) / sizeof(limits[0]), limits);
}

o3_status_t o3_nvptx_limits(o3_pass_env_t *env, MlirModule module) {
  checker_t self = {.gpu = env->machine->gpu, .device = o3_nvptx_device(module)};
  return o3_walk(mlirModuleGetOperation(module), check_launch, &self);
}
