/* A kernel that was made for one batch (open_batch.h), launched for all. Unless it is told how many there are
 * (o3_gpu_rows_t) a batch has as many blocks as the kernel, which begin where the batch does in what differs
 * from batch to batch. */
#ifndef O3_TARGET_NVPTX_OPEN_BATCH_LAUNCH_H
#define O3_TARGET_NVPTX_OPEN_BATCH_LAUNCH_H

#include "ir/ir.h"
#include "target/nvptx/kernel_launch.h"
#include "target/nvptx/kernel_site.h"
#include "target/nvptx/open_batch.h"

/* Per argument of the kernel: bytes of a batch; 0: it is the same for all. */
typedef struct o3_batch_units {
  int64_t bytes[O3_GPU_MAX_ARGUMENTS];
} o3_batch_units_t;

/* Renames the kernel of |site|, whose types are those of one batch, and gives its tensor maps a dimension for
 * batches, whose size the launch tells. A kernel that is told its rows or batches (o3_gpu_rows_t) keeps its
 * name, code and maps, of which one dimension is told. |why_not|: a static text when it cannot run for all
 * batches, else NULL. */
o3_status_t o3_batch_launch_prepare(const o3_kernel_site_t *site, const o3_open_batch_t *batch,
                                    o3_gpu_kernel_t *kernel, o3_batch_units_t *units, const char **why_not)
    O3_MUST_USE;

/* |function|: the kernel's llvm.func, as parsed; afterwards its blocks are those of all batches. */
o3_status_t o3_batch_launch_code(MlirOperation function, const o3_gpu_kernel_t *kernel,
                                 const o3_batch_units_t *units) O3_MUST_USE;

#endif
