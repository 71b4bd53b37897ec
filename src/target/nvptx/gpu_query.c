#include "target/nvptx/gpu_query.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct driver {
  int (*init)(unsigned flags);
  int (*device_get)(int *device, int ordinal);
  int (*attribute)(int *value, int attribute, int device);
} driver_t;

/* CUdevice_attribute numbers, and where they go. */
enum { MAJOR = 75, MINOR = 76 };
static const struct {
  int attribute;
  size_t offset;
  int bytes;
} FIGURES[] = {{16, offsetof(o3_gpu_t, multiprocessors), 4},  {39, offsetof(o3_gpu_t, threads_per_sm), 4},
               {82, offsetof(o3_gpu_t, registers_per_sm), 8}, {97, offsetof(o3_gpu_t, shared_per_block), 8},
               {81, offsetof(o3_gpu_t, shared_per_sm), 8},    {38, offsetof(o3_gpu_t, l2_bytes), 8}};

static o3_status_t refuse(const char *what) {
  return o3_status_create(O3_STATUS_UNSUPPORTED, "target 'gpu' is the NVIDIA GPU in this machine: %s", what);
}

/* A function pointer's bytes are those of the address that dlsym gives. */
static bool find(void *library, const char *name, void *function) {
  void *address = dlsym(library, name);
  memcpy(function, &address, sizeof(address));
  return address != NULL;
}

static o3_status_t load(driver_t *driver) {
  *driver = (driver_t){0};
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return refuse("there is no driver (libcuda.so.1 cannot be loaded)");
  bool all = find(library, "cuInit", &driver->init) && find(library, "cuDeviceGet", &driver->device_get) &&
             find(library, "cuDeviceGetAttribute", &driver->attribute);
  return all ? NULL : refuse("libcuda.so.1 is no CUDA driver");
}

static o3_status_t read_figures(const driver_t *driver, int device, o3_gpu_t *gpu) {
  int major, minor;
  if (driver->attribute(&major, MAJOR, device) || driver->attribute(&minor, MINOR, device))
    return refuse("the driver does not tell its compute capability");
  const o3_gpu_t *row = o3_gpu_of_capability(10 * major + minor);
  if (!row)
    return o3_status_create(
        O3_STATUS_UNSUPPORTED,
        "the NVIDIA GPU in this machine has compute capability %d.%d, which no target fits", major, minor);
  *gpu = *row;
  for (size_t i = 0; i < sizeof(FIGURES) / sizeof(FIGURES[0]); ++i) {
    int value;
    char *field = (char *)gpu + FIGURES[i].offset;
    if (driver->attribute(&value, FIGURES[i].attribute, device)) continue;
    if (FIGURES[i].bytes == 4)
      *(int *)(void *)field = value;
    else
      *(int64_t *)(void *)field = value;
  }
  return NULL;
}

o3_status_t o3_gpu_query(o3_gpu_t *gpu) {
  driver_t driver;
  int device;
  O3_TRY(load(&driver));
  if (driver.init(0) || driver.device_get(&device, 0)) return refuse("the driver finds no card");
  return read_figures(&driver, device, gpu);
}
