#include "cuda_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"

static const struct {
  const char *symbol;
  size_t offset;
} kFunctions[] = {
#define O3_CUDA(name, symbol, arguments) {symbol, offsetof(o3rt_cuda_api_t, name)},
#include "cuda_api.def"
#undef O3_CUDA
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static o3rt_cuda_api_t driver;
static o3rt_text_t failure; /* "" when the driver is there */

// Added with CUDA 11.8 and 12.0: models for older cards need neither.
static bool is_optional(const char *symbol) {
  return !strcmp(symbol, "cuLaunchKernelEx") || !strncmp(symbol, "cuTensorMapEncode", 17);
}

static bool find_functions(void *library) {
  for (size_t i = 0; i < sizeof kFunctions / sizeof kFunctions[0]; ++i) {
    void *address = dlsym(library, kFunctions[i].symbol);
    if (!address && !is_optional(kFunctions[i].symbol)) {
      o3rt_text_printf(&failure, "the NVIDIA driver is too old: " LIBRARY " has no %s", kFunctions[i].symbol);
      return false;
    }
    memcpy((char *)&driver + kFunctions[i].offset, &address, sizeof address);
  }
  return true;
}

// The library stays loaded: contexts of other users in the process live in it.
static void load(void) {
  void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    o3rt_text_printf(&failure, "no NVIDIA driver: %s", dlerror());
    return;
  }
  if (!find_functions(library)) return;
  int code = driver.init(0);
  if (code == CUDA_OK) code = driver.driver_version(&driver.version);
  if (code == CUDA_OK) return;
  o3rt_text_printf(&failure, code == CUDA_NO_DEVICE ? "the NVIDIA driver finds no card: "
                                                    : "the NVIDIA driver does not start: ");
  o3rt_cuda_print_error(&driver, code, &failure);
}

const o3rt_cuda_api_t *o3rt_cuda_api(o3rt_text_t *error) {
  (void)pthread_once(&once, load);
  if (failure.length == 0) return &driver;
  o3rt_text_printf(error, "%s", failure.text);
  return NULL;
}

void o3rt_cuda_print_error(const o3rt_cuda_api_t *api, int code, o3rt_text_t *text) {
  const char *name = NULL;
  if (api->error_name(code, &name) != CUDA_OK || !name) name = "an unknown error";
  o3rt_text_printf(text, "%s (%d)", name, code);
}
