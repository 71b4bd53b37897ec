// The card whose kernels are functions of the test, registered by name; its memory is the heap.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda.h"
#include "fake_cuda_card.h"

#define MAX_KERNELS 16

typedef struct kernel {
  char name[64];
  fake_cuda_kernel_t *function;
} kernel_t;

static kernel_t kernels[MAX_KERNELS];
static int num_kernels;

__attribute__((visibility("default"))) void fake_cuda_kernel(const char *name, fake_cuda_kernel_t *function) {
  kernel_t *kernel = &kernels[num_kernels++];
  snprintf(kernel->name, sizeof kernel->name, "%s", name);
  kernel->function = function;
}

static void reset(void) { num_kernels = 0; }

static int capability(void) { return 90; }

static int load(void) { return 0; }

static const void *find(const char *name) {
  for (int i = 0; i < num_kernels; ++i)
    if (!strcmp(kernels[i].name, name)) return &kernels[i];
  return NULL;
}

static const char *name_of(const void *kernel) { return ((const kernel_t *)kernel)->name; }

static int parameters(const void *kernel, const size_t **bytes) {
  static const size_t kWords[] = {sizeof(int64_t), sizeof(int64_t)};
  (void)kernel;
  *bytes = kWords;
  return 2;
}

static int launch(const fake_cuda_launch_t *launch) {
  const kernel_t *kernel = launch->kernel;
  int64_t words[2];
  for (int i = 0; i < 2; ++i) memcpy(&words[i], &launch->arguments[i], sizeof words[i]);
  if (kernel->function) kernel->function(words);
  return 0;
}

static void *alloc(size_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 256, bytes) != 0) return NULL;
  return memset(memory, 0xa5, bytes);  // a card's memory is not cleared
}

static int map(void *map, const fake_cuda_map_t *given) {
  (void)map, (void)given;
  return 0;
}

const fake_cuda_card_t fake_cuda_card = {.reset = reset,
                                         .capability = capability,
                                         .load = load,
                                         .find = find,
                                         .name = name_of,
                                         .parameters = parameters,
                                         .launch = launch,
                                         .alloc = alloc,
                                         .free = free,
                                         .map = map};
