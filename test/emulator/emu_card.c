// The card behind the stand-in for libcuda: its kernels are those of the library that $O3_EMULATOR_KERNELS
// names, its compute capability $O3_EMULATOR_SM (80: 8.0).
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator.h"
#include "hopper_map.h"
#include "test/fakes/fake_cuda_card.h"

enum { NO_BINARY = 209 };  // CUDA_ERROR_NO_BINARY_FOR_GPU

static const emu_kernel_t *kernels;

static void reset(void) {}

static int capability(void) {
  const char *text = getenv("O3_EMULATOR_SM");
  return text ? atoi(text) : 0;
}

static int load(void) {
  const char *path = getenv("O3_EMULATOR_KERNELS");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  kernels = library ? dlsym(library, EMU_KERNELS) : NULL;
  if (kernels) return 0;
  fprintf(stderr, "emulator: O3_EMULATOR_KERNELS: %s\n", path ? dlerror() : "it is not set");
  return NO_BINARY;
}

static bool look_up(const emu_kernel_t *kernel) {
  for (int64_t i = 0; i < kernel->num_sites; ++i) {
    emu_site_t *site = kernel->sites[i];
    site->op = emu_op_find(site->name);
    if (site->op) continue;
    fprintf(stderr, "emulator: %s: %s is not known\n", kernel->name, site->name);
    return false;
  }
  return true;
}

static const void *find(const char *name) {
  const emu_kernel_t *kernel = kernels;
  while (kernel->name && strcmp(kernel->name, name) != 0) ++kernel;
  if (kernel->name) return look_up(kernel) ? kernel : NULL;
  fprintf(stderr, "emulator: there is no kernel %s\n", name);
  return NULL;
}

static const char *name_of(const void *kernel) { return ((const emu_kernel_t *)kernel)->name; }

static int parameters(const void *kernel, const size_t **bytes) {
  const emu_kernel_t *given = kernel;
  *bytes = given->parameters;
  return (int)given->num_parameters;
}

static int launch(const fake_cuda_launch_t *given) {
  void *arguments[FAKE_CUDA_MAX_ARGUMENTS];
  emu_launch_t launch = {
      .kernel = given->kernel, .arguments = arguments, .cluster = given->cluster, .shared = given->shared};
  for (int i = 0; i < FAKE_CUDA_MAX_ARGUMENTS; ++i)
    arguments[i] = (void *)(uintptr_t)given->arguments[i].bytes;
  memcpy(launch.grid, given->grid, sizeof launch.grid);
  memcpy(launch.block, given->block, sizeof launch.block);
  return emu_run(&launch);
}

const fake_cuda_card_t fake_cuda_card = {.reset = reset,
                                         .capability = capability,
                                         .load = load,
                                         .find = find,
                                         .name = name_of,
                                         .parameters = parameters,
                                         .launch = launch,
                                         .alloc = emu_memory_alloc,
                                         .free = emu_memory_free,
                                         .map = emu_map_encode};
