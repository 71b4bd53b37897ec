/* A fast GPU kernel as a family gives it: its code as MLIR text and how the host launches it.
 *
 * The text is a module of the llvm, nvvm, arith, scf and vector dialects with one nvvm.kernel; ptx.h makes
 * PTX of it. Arguments are device pointers and TMA tensor maps, in the order of |arguments|; each speaks of a
 * buffer by its number. What the numbers stand for is the family's to say: for a fused kernel of the fuse
 * stage they are the positions of the kernel function's arguments, the result being the last.
 */
#ifndef O3_TARGET_NVPTX_KERNEL_LAUNCH_H
#define O3_TARGET_NVPTX_KERNEL_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Element types of kernels: name, MLIR type, bytes, CUtensorMapDataType, name in PTX and in kernels' names.
 */
typedef enum o3_gpu_element {
#define O3_GPU_ELEMENT(id, mlir, bytes, tensor_map, ptx) O3_GPU_##id,
#include "target/nvptx/gpu_elements.def"
#undef O3_GPU_ELEMENT
  O3_GPU_ELEMENTS
} o3_gpu_element_t;

typedef struct o3_gpu_element_info {
  const char *mlir; /* "f16" */
  int bytes;
  int tensor_map; /* CUtensorMapDataType */
  const char *ptx;
} o3_gpu_element_info_t;

const o3_gpu_element_info_t *o3_gpu_element_info(o3_gpu_element_t element);

/* What cuTensorMapEncodeTiled is given: dimension 0 is the contiguous one. Of windows, what
 * cuTensorMapEncodeIm2col is: dimensions are channels, x, y and the image, and a box is box[0] channels of
 * box[1] positions, which are those that are |lows| before the first to |highs| behind the last, in steps. */
enum { O3_GPU_MAP_RANK = 5 };
typedef struct o3_gpu_tensor_map {
  o3_gpu_element_t element;
  int rank;
  int64_t sizes[O3_GPU_MAP_RANK];   /* elements */
  int64_t strides[O3_GPU_MAP_RANK]; /* bytes, multiples of 16; [0] is not used */
  int32_t box[O3_GPU_MAP_RANK];     /* elements */
  int swizzle;                      /* bytes: 0, 32, 64 or 128 */
  int told; /* the size of this dimension is that of a batch, of which the launch tells
               the number (open_batch_launch.h); 0: none is */
  bool windows;
  int32_t lows[2], highs[2], steps[2]; /* of windows, along x and y */
} o3_gpu_tensor_map_t;

typedef enum o3_gpu_argument_kind {
  O3_GPU_ARG_POINTER,
  O3_GPU_ARG_TENSOR_MAP,
  O3_GPU_ARG_ROWS,   /* i32: elements of the buffer / |columns| */
  O3_GPU_ARG_SCRATCH /* memory of the session, see o3_gpu_kernel_add_scratch() */
} o3_gpu_argument_kind_t;

typedef struct o3_gpu_argument {
  o3_gpu_argument_kind_t kind;
  int buffer;
  int64_t offset; /* bytes from the buffer's start to the map's, a multiple of 16 */
  o3_gpu_tensor_map_t map;
  int64_t columns;
  int64_t bytes; /* of scratch */
} o3_gpu_argument_t;

/* Of a kernel whose rows, or batches, are known only at run time: its last argument is O3_GPU_ARG_ROWS. */
typedef struct o3_gpu_rows {
  int tile;     /* grid[0] is the blocks for so many rows; 0: rows are known */
  int64_t most; /* with more a run fails */
  int blocks;   /* there are no more than these, which take what there is in turns; 0: there may be any number
                 */
} o3_gpu_rows_t;

/* What was chosen for a kernel: "stages", 4. */
typedef struct o3_gpu_note {
  const char *field; /* static */
  int64_t value;
} o3_gpu_note_t;

enum { O3_GPU_MAX_ARGUMENTS = 16, O3_GPU_MAX_NOTES = 12 };
typedef struct o3_gpu_kernel {
  char *name;                  /* of the function: o3k_<type>_<op>_<tile>__<arch>_<variant>; malloc'ed */
  char *text;                  /* malloc'ed */
  int grid[3], block, cluster; /* cluster: blocks along x, 1 for none */
  o3_gpu_rows_t rows;
  int shared_bytes; /* dynamic */
  /* It waits by itself for the kernels before it, and lets the next one start (griddepcontrol): it may be
   * launched with programmatic stream serialization, on cards of compute capability 9.0 and later. */
  bool overlaps;
  int num_arguments;
  o3_gpu_argument_t arguments[O3_GPU_MAX_ARGUMENTS];
  const char *family; /* that made it; static, set by o3_fast_kernel_make */
  /* Its schedule besides block, cluster and shared memory; they become fields of o3.schedule. */
  int num_notes;
  o3_gpu_note_t notes[O3_GPU_MAX_NOTES];
} o3_gpu_kernel_t;

void o3_gpu_kernel_deinit(o3_gpu_kernel_t *kernel);

/* Appends an argument. */
void o3_gpu_kernel_add_pointer(o3_gpu_kernel_t *kernel, int buffer);
void o3_gpu_kernel_add_map(o3_gpu_kernel_t *kernel, int buffer, const o3_gpu_tensor_map_t *map);
void o3_gpu_kernel_add_rows(o3_gpu_kernel_t *kernel, int buffer, int64_t columns);

/* Memory that kernels have one after the other: O3_GPU_COUNTERS i32, which are 0 when one begins and which it
 * leaves so, then |bytes| of any contents: o3rt_gpu_scratch() of runtime/compiled.h, which has as many. */
enum { O3_GPU_COUNTERS = 4096 };
void o3_gpu_kernel_add_scratch(o3_gpu_kernel_t *kernel, int64_t bytes);

/* Appends notes: |count| of them. */
void o3_gpu_kernel_note(o3_gpu_kernel_t *kernel, int count, const o3_gpu_note_t *notes);
#define O3_GPU_KERNEL_NOTE(kernel, ...)                                                      \
  o3_gpu_kernel_note(kernel, sizeof((o3_gpu_note_t[]){__VA_ARGS__}) / sizeof(o3_gpu_note_t), \
                     (o3_gpu_note_t[]){__VA_ARGS__})

#endif
