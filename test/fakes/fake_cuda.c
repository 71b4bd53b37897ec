// A stand-in for NVIDIA's libcuda.so.1, for tests without a card: every call is written down and can be made
// to fail. Streams run at once; a capture keeps what it is given for its graph. What runs kernels and has the
// memory is a card (fake_cuda_card.h): functions that the test registers, or the emulator.
#include "fake_cuda.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda_card.h"

#define API       __attribute__((visibility("default")))
#define LOG_BYTES (1 << 16)

// A copy, a fill or a launch: what a graph is made of.
typedef struct operation {
  int (*run)(const struct operation *operation);
  void *to;
  const void *from;
  size_t count;
  fake_cuda_launch_t launch;
  struct operation *next;
} operation_t;

typedef struct graph {
  operation_t *first, **end;
} graph_t;

static struct {
  char log[LOG_BYTES];
  size_t length;
  int calls, fail_at, fail_code;
  const char *fail_name;
  int64_t free_bytes, live_blocks, live_host_blocks, contexts;
  int major, minor, devices;
  graph_t *capture;
} fake = {.free_bytes = INT64_C(1) << 40, .devices = 1};

// ---- For the test ----

API void fake_cuda_reset(void) {
  memset(&fake, 0, sizeof fake);
  fake.free_bytes = INT64_C(1) << 40;
  fake.major = 9;
  fake.devices = 1;
  fake_cuda_card.reset();
}

API void fake_cuda_fail(const char *function, int call, int code) {
  fake.fail_name = function;
  fake.fail_at = call;
  fake.fail_code = code;
  fake.calls = 0;
}

API void fake_cuda_capability(int major, int minor) {
  fake.major = major;
  fake.minor = minor;
}

API void fake_cuda_devices(int count) { fake.devices = count; }
API void fake_cuda_memory(int64_t bytes) { fake.free_bytes = bytes; }
API int64_t fake_cuda_live_blocks(void) { return fake.live_blocks; }
API int64_t fake_cuda_live_host_blocks(void) { return fake.live_host_blocks; }
API int64_t fake_cuda_contexts(void) { return fake.contexts; }
API const char *fake_cuda_log(void) { return fake.log; }

API void fake_cuda_log_clear(void) {
  fake.length = 0;
  fake.log[0] = 0;
}

// ---- Every call ----

static int enter(const char *name, const char *detail) {
  int written =
      snprintf(fake.log + fake.length, LOG_BYTES - fake.length, "%s%s%s\n", name, *detail ? " " : "", detail);
  if (written > 0 && fake.length + (size_t)written < LOG_BYTES) fake.length += (size_t)written;
  bool counts = !fake.fail_name || !strcmp(fake.fail_name, name);
  if (counts && ++fake.calls == fake.fail_at) return fake.fail_code;
  return 0;
}

#define ENTER(detail)                     \
  do {                                    \
    int failed = enter(__func__, detail); \
    if (failed) return failed;            \
  } while (0)

// ---- Devices and contexts ----

API int cuInit(unsigned flags) {
  (void)flags;
  ENTER("");
  return 0;
}
API int cuDriverGetVersion(int *version) {
  ENTER("");
  *version = 12040;
  return 0;
}
API int cuGetErrorName(int code, const char **name) {
  static const struct {
    int code;
    const char *name;
  } kNames[] = {{1, "CUDA_ERROR_INVALID_VALUE"},
                {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                {100, "CUDA_ERROR_NO_DEVICE"},
                {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"}};
  for (size_t i = 0; i < sizeof kNames / sizeof kNames[0]; ++i) {
    if (kNames[i].code != code) continue;
    *name = kNames[i].name;
    return 0;
  }
  return 1;
}
API int cuDeviceGetCount(int *count) {
  ENTER("");
  *count = fake.devices;
  return 0;
}
API int cuDeviceGet(int *device, int ordinal) {
  ENTER("");
  *device = ordinal;
  return 0;
}
API int cuDeviceGetName(char *name, int length, int device) {
  (void)device;
  ENTER("");
  snprintf(name, (size_t)length, "Fake GPU");
  return 0;
}
API int cuDeviceGetAttribute(int *value, int attribute, int device) {
  enum { MAJOR = 75, MINOR = 76 };
  (void)device;
  ENTER("");
  int capability = fake.major ? 10 * fake.major + fake.minor : fake_cuda_card.capability();
  *value = attribute == MAJOR ? capability / 10 : attribute == MINOR ? capability % 10 : 0;
  return 0;
}
API int cuDevicePrimaryCtxRetain(void **context, int device) {
  (void)device;
  ENTER("");
  ++fake.contexts;
  *context = &fake;
  return 0;
}
API int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  --fake.contexts;
  ENTER("");
  return 0;
}
API int cuCtxPushCurrent_v2(void *context) {
  (void)context;
  ENTER("");
  return 0;
}
API int cuCtxPopCurrent_v2(void **context) {
  *context = &fake;
  ENTER("");
  return 0;
}

// ---- Code ----

API int cuModuleLoadData(void **module, const void *image) {
  ENTER(*(const char *)image == '\177' ? "cubin" : "ptx");
  *module = &fake;
  return fake_cuda_card.load();
}
API int cuModuleUnload(void *module) {
  (void)module;
  ENTER("");
  return 0;
}
API int cuModuleGetFunction(void **function, void *module, const char *name) {
  (void)module;
  ENTER(name);
  *function = (void *)(uintptr_t)fake_cuda_card.find(name);
  return *function ? 0 : 500;
}
API int cuFuncSetAttribute(void *function, int attribute, int value) {
  (void)function;
  char detail[32];
  snprintf(detail, sizeof detail, "%d %d", attribute, value);
  ENTER(detail);
  return 0;
}

// ---- Memory ----

API int cuMemAlloc_v2(unsigned long long *address, size_t bytes) {
  char detail[32];
  snprintf(detail, sizeof detail, "%zu", bytes);
  ENTER(detail);
  if ((int64_t)bytes > fake.free_bytes) return 2;
  void *memory = fake_cuda_card.alloc(bytes);
  if (!memory) return 2;
  ++fake.live_blocks;
  *address = (unsigned long long)(uintptr_t)memory;
  return 0;
}
API int cuMemFree_v2(unsigned long long address) {
  fake_cuda_card.free((void *)(uintptr_t)address);
  --fake.live_blocks;
  ENTER("");
  return 0;
}
// As on a card, what the host and the card share has one address.
API int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  (void)flags;
  ENTER("");
  *memory = fake_cuda_card.alloc(bytes);
  if (!*memory) return 2;
  ++fake.live_host_blocks;
  return 0;
}
API int cuMemFreeHost(void *memory) {
  fake_cuda_card.free(memory);
  --fake.live_host_blocks;
  ENTER("");
  return 0;
}
API int cuMemGetInfo_v2(size_t *available, size_t *total) {
  ENTER("");
  *available = (size_t)fake.free_bytes;
  *total = (size_t)1 << 40;
  return 0;
}

// At once, or when the graph that is being captured runs.
static int submit(const operation_t *operation) {
  if (!fake.capture) return operation->run(operation);
  operation_t *kept = malloc(sizeof *kept);
  if (!kept) return 2;
  *kept = *operation;
  kept->next = NULL;
  *fake.capture->end = kept;
  fake.capture->end = &kept->next;
  return 0;
}

static int run_copy(const operation_t *operation) {
  memmove(operation->to, operation->from, operation->count);
  return 0;
}
static int run_launch(const operation_t *operation) { return fake_cuda_card.launch(&operation->launch); }

static int copy(const char *name, void *to, const void *from, size_t bytes) {
  char detail[32];
  snprintf(detail, sizeof detail, "%zu", bytes);
  int failed = enter(name, detail);
  return failed ? failed : submit(&(operation_t){.run = run_copy, .to = to, .from = from, .count = bytes});
}
API int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream) {
  (void)stream;
  return copy(__func__, (void *)(uintptr_t)to, from, bytes);
}
API int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream) {
  (void)stream;
  return copy(__func__, to, (void *)(uintptr_t)from, bytes);
}
API int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void *stream) {
  (void)stream;
  return copy(__func__, (void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
}

// ---- Streams, graphs, launches ----

API int cuStreamCreate(void **stream, unsigned flags) {
  (void)flags;
  ENTER("");
  *stream = &fake.calls;
  return 0;
}
API int cuStreamDestroy_v2(void *stream) {
  (void)stream;
  ENTER("");
  return 0;
}
API int cuStreamSynchronize(void *stream) {
  (void)stream;
  ENTER("");
  return 0;
}
API int cuStreamBeginCapture_v2(void *stream, int mode) {
  (void)stream, (void)mode;
  ENTER("");
  fake.capture = calloc(1, sizeof *fake.capture);
  if (!fake.capture) return 2;
  fake.capture->end = &fake.capture->first;
  return 0;
}
API int cuStreamEndCapture(void *stream, void **graph) {
  (void)stream;
  *graph = fake.capture;
  fake.capture = NULL;
  ENTER("");
  return 0;
}
// What runs it takes the graph's operations over.
API int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
  (void)flags;
  ENTER("");
  graph_t *given = graph, *taken = malloc(sizeof *taken);
  if (!taken) return 2;
  *taken = *given;
  given->first = NULL;
  *exec = taken;
  return 0;
}
static void destroy(graph_t *graph) {
  for (operation_t *next, *o = graph ? graph->first : NULL; o; o = next) {
    next = o->next;
    free(o);
  }
  free(graph);
}
API int cuGraphDestroy(void *graph) {
  destroy(graph);
  ENTER("");
  return 0;
}
API int cuGraphExecDestroy(void *exec) {
  destroy(exec);
  ENTER("");
  return 0;
}
API int cuGraphLaunch(void *exec, void *stream) {
  (void)stream;
  ENTER("");
  int failed = 0;
  const graph_t *graph = exec;
  for (const operation_t *o = graph->first; o && !failed; o = o->next) failed = o->run(o);
  return failed;
}

static int launch(fake_cuda_launch_t *launch, void **arguments) {
  const size_t *sizes = NULL;
  int count = fake_cuda_card.parameters(launch->kernel, &sizes);
  if (count > FAKE_CUDA_MAX_ARGUMENTS) return 1;
  for (int i = 0; i < count; ++i) {
    if (sizes[i] > sizeof launch->arguments[i]) return 1;
    memcpy(&launch->arguments[i], arguments[i], sizes[i]);
  }
  return submit(&(operation_t){.run = run_launch, .launch = *launch});
}

API int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, void *stream, void **arguments, void **extra) {
  (void)stream, (void)extra;
  fake_cuda_launch_t given = {
      .kernel = function, .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = shared, .cluster = 1};
  char detail[160];
  snprintf(detail, sizeof detail, "%s %ux%ux%u %ux%ux%u %u", fake_cuda_card.name(function), gx, gy, gz, bx,
           by, bz, shared);
  ENTER(detail);
  return launch(&given, arguments);
}
// CUlaunchConfig and CUlaunchAttribute as NVIDIA's header has them.
typedef struct attribute {
  int id;
  char padding[4];
  unsigned value[16];
} attribute_t;
typedef struct config {
  unsigned grid[3], block[3], shared;
  void *stream;
  attribute_t *attributes;
  unsigned count;
} config_t;

API int cuLaunchKernelEx(const config_t *config, void *function, void **arguments, void **extra) {
  (void)extra;
  enum { CLUSTER_DIMENSION = 4 };
  fake_cuda_launch_t given = {.kernel = function, .shared = config->shared, .cluster = 1};
  memcpy(given.grid, config->grid, sizeof given.grid);
  memcpy(given.block, config->block, sizeof given.block);
  char detail[160];
  int at = snprintf(detail, sizeof detail, "%s %u %u", fake_cuda_card.name(function), config->grid[0],
                    config->block[0]);
  for (unsigned i = 0; i < config->count; ++i) {
    const attribute_t *attribute = &config->attributes[i];
    at += snprintf(detail + at, sizeof detail - (size_t)at, " %d:%u", attribute->id, attribute->value[0]);
    if (attribute->id == CLUSTER_DIMENSION) given.cluster = attribute->value[0];
  }
  ENTER(detail);
  return launch(&given, arguments);
}
API int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const uint64_t *sizes,
                               const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                               int interleave, int swizzle, int promotion, int fill) {
  (void)promotion;
  char detail[160];
  snprintf(detail, sizeof detail, "type %d rank %u sizes %llu %llu stride %llu box %u %u swizzle %d", type,
           rank, (unsigned long long)sizes[0], (unsigned long long)sizes[1], (unsigned long long)strides[0],
           box[0], box[1], swizzle);
  ENTER(detail);
  return fake_cuda_card.map(map, &(fake_cuda_map_t){.type = type,
                                                    .rank = rank,
                                                    .address = address,
                                                    .sizes = sizes,
                                                    .strides = strides,
                                                    .box = box,
                                                    .steps = steps,
                                                    .interleave = interleave,
                                                    .swizzle = swizzle,
                                                    .fill = fill});
}
API int cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *address, const uint64_t *sizes,
                                const uint64_t *strides, const int *lower, const int *upper,
                                unsigned channels, unsigned pixels, const uint32_t *steps, int interleave,
                                int swizzle, int promotion, int fill) {
  (void)promotion;
  char detail[160];
  snprintf(detail, sizeof detail,
           "type %d rank %u sizes %llu %llu corners %d %d %d %d box %u %u steps %u %u %u %u swizzle %d", type,
           rank, (unsigned long long)sizes[0], (unsigned long long)sizes[1], lower[0], lower[1], upper[0],
           upper[1], channels, pixels, steps[0], steps[1], steps[2], steps[3], swizzle);
  ENTER(detail);
  return fake_cuda_card.map(map, &(fake_cuda_map_t){.type = type,
                                                    .rank = rank,
                                                    .address = address,
                                                    .sizes = sizes,
                                                    .strides = strides,
                                                    .lower = lower,
                                                    .upper = upper,
                                                    .box = (const uint32_t[]){channels, pixels},
                                                    .steps = steps,
                                                    .interleave = interleave,
                                                    .swizzle = swizzle,
                                                    .fill = fill});
}
API int cuEventCreate(void **event, unsigned flags) {
  (void)flags;
  ENTER("");
  *event = &fake.calls;
  return 0;
}
API int cuEventDestroy_v2(void *event) {
  (void)event;
  ENTER("");
  return 0;
}
API int cuEventRecord(void *event, void *stream) {
  (void)event, (void)stream;
  ENTER("");
  return 0;
}
API int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  (void)start, (void)end;
  ENTER("");
  *milliseconds = 0.25F;
  return 0;
}
