// A stand-in for NVIDIA's libcuda.so.1, for tests without a card: device memory is host memory, kernels are
// functions that the test registers by name, every call is written down and can be made to fail. Streams run
// at once; a capture keeps launches for its graph.
#include "fake_cuda.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API          __attribute__((visibility("default")))
#define MAX_KERNELS  16
#define MAX_LAUNCHES 64
#define LOG_BYTES    (1 << 16)

typedef struct kernel {
  char name[64];
  fake_cuda_kernel_t *function;
} kernel_t;

typedef struct launch {
  const kernel_t *kernel;
  int64_t arguments[8];
} launch_t;

typedef struct graph {
  int count;
  launch_t launches[MAX_LAUNCHES];
} graph_t;

static struct {
  char log[LOG_BYTES];
  size_t length;
  int calls, fail_at, fail_code;
  const char *fail_name;
  int64_t free_bytes, live_blocks, contexts;
  int major, minor, devices;
  kernel_t kernels[MAX_KERNELS];
  int num_kernels;
  graph_t *capture;
} fake;

// ---- For the test ----

API void fake_cuda_reset(void) {
  memset(&fake, 0, sizeof fake);
  fake.free_bytes = INT64_C(1) << 40;
  fake.major = 9;
  fake.devices = 1;
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
API int64_t fake_cuda_contexts(void) { return fake.contexts; }
API const char *fake_cuda_log(void) { return fake.log; }

API void fake_cuda_log_clear(void) {
  fake.length = 0;
  fake.log[0] = 0;
}

API void fake_cuda_kernel(const char *name, fake_cuda_kernel_t *function) {
  kernel_t *kernel = &fake.kernels[fake.num_kernels++];
  snprintf(kernel->name, sizeof kernel->name, "%s", name);
  kernel->function = function;
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
  (void)device;
  ENTER("");
  *value = attribute == 75 ? fake.major : attribute == 76 ? fake.minor : 0;
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
  ENTER(*(const char *)image == '.' ? "ptx" : "cubin");
  *module = &fake;
  return 0;
}
API int cuModuleUnload(void *module) {
  (void)module;
  ENTER("");
  return 0;
}
API int cuModuleGetFunction(void **function, void *module, const char *name) {
  (void)module;
  ENTER(name);
  for (int i = 0; i < fake.num_kernels; ++i) {
    if (strcmp(fake.kernels[i].name, name) != 0) continue;
    *function = &fake.kernels[i];
    return 0;
  }
  return 500;
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
  void *memory = NULL;
  if (posix_memalign(&memory, 256, bytes) != 0) return 2;
  ++fake.live_blocks;
  *address = (unsigned long long)(uintptr_t)memory;
  return 0;
}
API int cuMemFree_v2(unsigned long long address) {
  free((void *)(uintptr_t)address);
  --fake.live_blocks;
  ENTER("");
  return 0;
}
API int cuMemGetInfo_v2(size_t *available, size_t *total) {
  ENTER("");
  *available = (size_t)fake.free_bytes;
  *total = (size_t)1 << 40;
  return 0;
}
static int copy(const char *name, void *to, const void *from, size_t bytes) {
  char detail[32];
  snprintf(detail, sizeof detail, "%zu", bytes);
  int failed = enter(name, detail);
  if (!failed) memmove(to, from, bytes);
  return failed;
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
API int cuMemsetD32Async(unsigned long long to, unsigned value, size_t count, void *stream) {
  (void)stream;
  ENTER("");
  for (size_t i = 0; i < count; ++i) ((unsigned *)(uintptr_t)to)[i] = value;
  return 0;
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
  return fake.capture ? 0 : 2;
}
API int cuStreamEndCapture(void *stream, void **graph) {
  (void)stream;
  *graph = fake.capture;
  fake.capture = NULL;
  ENTER("");
  return 0;
}
API int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
  (void)flags;
  ENTER("");
  graph_t *copy = malloc(sizeof *copy);
  if (!copy) return 2;
  memcpy(copy, graph, sizeof *copy);
  *exec = copy;
  return 0;
}
API int cuGraphDestroy(void *graph) {
  free(graph);
  ENTER("");
  return 0;
}
API int cuGraphExecDestroy(void *exec) {
  free(exec);
  ENTER("");
  return 0;
}
static void run(const launch_t *launch) {
  if (launch->kernel->function) launch->kernel->function(launch->arguments);
}
API int cuGraphLaunch(void *exec, void *stream) {
  (void)stream;
  ENTER("");
  const graph_t *graph = exec;
  for (int i = 0; i < graph->count; ++i) run(&graph->launches[i]);
  return 0;
}
API int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, void *stream, void **arguments, void **extra) {
  (void)stream, (void)extra;
  const kernel_t *kernel = function;
  char detail[160];
  snprintf(detail, sizeof detail, "%s %ux%ux%u %ux%ux%u %u", kernel->name, gx, gy, gz, bx, by, bz, shared);
  ENTER(detail);
  launch_t launch = {.kernel = kernel};
  for (int i = 0; i < 2; ++i) launch.arguments[i] = *(int64_t *)arguments[i];
  if (fake.capture)
    fake.capture->launches[fake.capture->count++] = launch;
  else
    run(&launch);
  return 0;
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
  (void)arguments, (void)extra;
  const kernel_t *kernel = function;
  char detail[160];
  int at = snprintf(detail, sizeof detail, "%s %u %u", kernel->name, config->grid[0], config->block[0]);
  for (unsigned i = 0; i < config->count; ++i)
    at += snprintf(detail + at, sizeof detail - (size_t)at, " %d:%u", config->attributes[i].id,
                   config->attributes[i].value[0]);
  ENTER(detail);
  return 0;
}
API int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const uint64_t *sizes,
                               const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                               int interleave, int swizzle, int promotion, int fill) {
  (void)map, (void)address, (void)steps, (void)interleave, (void)promotion, (void)fill;
  char detail[160];
  snprintf(detail, sizeof detail, "type %d rank %u sizes %llu %llu stride %llu box %u %u swizzle %d", type,
           rank, (unsigned long long)sizes[0], (unsigned long long)sizes[1], (unsigned long long)strides[0],
           box[0], box[1], swizzle);
  ENTER(detail);
  return 0;
}
API int cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *address, const uint64_t *sizes,
                                const uint64_t *strides, const int *lower, const int *upper,
                                unsigned channels, unsigned pixels, const uint32_t *steps, int interleave,
                                int swizzle, int promotion, int fill) {
  (void)map, (void)address, (void)strides, (void)interleave, (void)promotion, (void)fill;
  char detail[160];
  snprintf(detail, sizeof detail,
           "type %d rank %u sizes %llu %llu corners %d %d %d %d box %u %u steps %u %u %u %u swizzle %d", type,
           rank, (unsigned long long)sizes[0], (unsigned long long)sizes[1], lower[0], lower[1], upper[0],
           upper[1], channels, pixels, steps[0], steps[1], steps[2], steps[3], swizzle);
  ENTER(detail);
  return 0;
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
