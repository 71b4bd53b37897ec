#include "target/nvptx/kernel_launch.h"

#include <stdlib.h>

#include "base/check.h"

const o3_gpu_element_info_t *o3_gpu_element_info(o3_gpu_element_t element) {
  static const o3_gpu_element_info_t INFOS[] = {
#define O3_GPU_ELEMENT(id, mlir, bytes, tensor_map, ptx) {mlir, bytes, tensor_map, ptx},
#include "target/nvptx/gpu_elements.def"
#undef O3_GPU_ELEMENT
  };
  return &INFOS[element];
}

void o3_gpu_kernel_deinit(o3_gpu_kernel_t *kernel) {
  free(kernel->name);
  free(kernel->text);
  *kernel = (o3_gpu_kernel_t){0};
}

static o3_gpu_argument_t *add(o3_gpu_kernel_t *kernel) {
  O3_ASSERT(kernel->num_arguments < O3_GPU_MAX_ARGUMENTS, "families have few arguments");
  return &kernel->arguments[kernel->num_arguments++];
}

void o3_gpu_kernel_add_pointer(o3_gpu_kernel_t *kernel, int buffer) {
  *add(kernel) = (o3_gpu_argument_t){.kind = O3_GPU_ARG_POINTER, .buffer = buffer};
}

void o3_gpu_kernel_add_map(o3_gpu_kernel_t *kernel, int buffer, const o3_gpu_tensor_map_t *map) {
  *add(kernel) = (o3_gpu_argument_t){.kind = O3_GPU_ARG_TENSOR_MAP, .buffer = buffer, .map = *map};
}

void o3_gpu_kernel_add_scratch(o3_gpu_kernel_t *kernel, int64_t bytes) {
  *add(kernel) = (o3_gpu_argument_t){
      .kind = O3_GPU_ARG_SCRATCH, .buffer = -1, .bytes = O3_GPU_COUNTERS * (int64_t)sizeof(int32_t) + bytes};
}

void o3_gpu_kernel_add_rows(o3_gpu_kernel_t *kernel, int buffer, int64_t columns) {
  *add(kernel) = (o3_gpu_argument_t){.kind = O3_GPU_ARG_ROWS, .buffer = buffer, .columns = columns};
}

void o3_gpu_kernel_note(o3_gpu_kernel_t *kernel, int count, const o3_gpu_note_t *notes) {
  O3_ASSERT(kernel->num_notes + count <= O3_GPU_MAX_NOTES, "schedules have few fields");
  for (int i = 0; i < count; ++i) kernel->notes[kernel->num_notes++] = notes[i];
}
