/* What the passes of the GPU back end build again and again: the device module, kernels, launches. */
#ifndef O3_TARGET_NVPTX_NVPTX_IR_H
#define O3_TARGET_NVPTX_NVPTX_IR_H

#include "ir/build.h"
#include "ir/pass.h"
#include "target/nvptx/kernel_launch.h"

/* The address space of a block's shared memory. */
enum { O3_NVPTX_SHARED_SPACE = 3 };

void o3_nvptx_load_dialects(MlirContext context);

/* The block of gpu.module @o3_gpu, made when it is not there yet. */
MlirBlock o3_nvptx_device(MlirModule module);
/* The gpu.module op, or a null op. */
MlirOperation o3_nvptx_device_op(MlirModule module);

/* The number of a text of a device assert. */
o3_status_t o3_nvptx_message_number(MlirModule module, MlirStringRef text, int *number) O3_MUST_USE;

/* A launch, from host code. */
enum { O3_NVPTX_MAX_ARGUMENTS = 256 };
typedef struct o3_nvptx_launch {
  const char *family;          /* of kernels, for those who ask */
  const char *name, *label;    /* the kernel's function; its nodes */
  MlirValue grid[3], block[3]; /* index */
  MlirValue shared;            /* index: bytes of dynamic shared memory */
  bool overlaps;               /* it waits for the kernels before it by itself */
  int cluster;                 /* blocks along x; 1 for none */
  int num_arguments;
  const MlirValue *arguments; /* memrefs (their pointer), index, integers, floats, !llvm.ptr */
  const bool *is_map;         /* pointers to a tensor map in host memory, passed by value; NULL: none */
  int num_notes;              /* of its schedule */
  const o3_gpu_note_t *notes;
} o3_nvptx_launch_t;
/* The call has the attributes
 *     o3.schedule = {family = "gemm", block = 384, cluster = 1, shared = 164000, notes ...}
 *     o3.kernel = "o3k_...", its function in the device module; o3.label = "MatMul_3, Add_4"
 * where block and shared are there if they are known. */
#define O3_NVPTX_KERNEL_ATTR "o3.kernel"

/* On a gpu.launch: how many elements of the result a block has, one a thread; 1: its threads share one, or a
 * row. */
#define O3_NVPTX_ELEMENTS_ATTR "o3.elements"
o3_status_t o3_nvptx_launch(o3_builder_t *builder, MlirModule module, const o3_nvptx_launch_t *launch)
    O3_MUST_USE;

/* Calls of the driver (runtime/compiled.h). */
typedef enum o3_nvptx_rt {
  O3_NVPTX_RT_LAUNCH,     /* (session, kernel, words, arguments, maps) */
  O3_NVPTX_RT_MAP,        /* (session, map, pointer, spec) */
  O3_NVPTX_RT_WEIGHTS,    /* (session) -> ptr */
  O3_NVPTX_RT_TO_HOST,    /* (session, host, device, bytes) */
  O3_NVPTX_RT_TO_DEVICE,  /* (session, device, host, bytes) */
  O3_NVPTX_RT_ERROR_WORD, /* (session) -> ptr */
  O3_NVPTX_RT_SCRATCH,    /* (session, bytes) -> ptr */
  O3_NVPTX_RT_COUNT
} o3_nvptx_rt_t;
MlirValue o3_nvptx_call(o3_builder_t *builder, MlirModule module, o3_nvptx_rt_t function, int num_operands,
                        const MlirValue *operands);

/* Stack of @main, made once: |bytes| (i8), for one use at a time of what |tag| says. */
MlirValue o3_nvptx_stack(MlirModule module, const char *tag, int64_t bytes);

/* An opened gpu.launch: what is built is code of one thread. */
typedef struct o3_nvptx_region {
  MlirOperation launch;
  o3_builder_t inside;
} o3_nvptx_region_t;
/* |grid|: blocks along x (index); |threads| a block, along x; |shared| bytes. */
o3_nvptx_region_t o3_nvptx_open(o3_builder_t *builder, MlirValue grid, int threads, int64_t shared);

/* Numbers of the running thread in its block, and of the block, along x, as i32. */
MlirValue o3_nvptx_thread(o3_builder_t *builder);
MlirValue o3_nvptx_block(o3_builder_t *builder);
void o3_nvptx_barrier(o3_builder_t *builder);
/* memref<?xi8, 3>: the block's shared memory. */
MlirValue o3_nvptx_shared(o3_builder_t *builder);
/* A static memref of |element| of |rank| and |sizes| at |offset| bytes into the shared memory. */
MlirValue o3_nvptx_shared_view(o3_builder_t *builder, MlirValue shared, int64_t offset, int rank,
                               const int64_t *sizes, MlirType element);
/* An i32 as index, not negative. */
MlirValue o3_nvptx_to_index(o3_builder_t *builder, MlirValue value);

#endif
