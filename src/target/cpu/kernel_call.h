/* Kernels of the fuse stage at their calls: the body's ops, copied to where the kernel is called, for an
 * emitter to make code of. */
#ifndef O3_TARGET_CPU_KERNEL_CALL_H
#define O3_TARGET_CPU_KERNEL_CALL_H

#include "base/map.h"
#include "ir/pass.h"
#include "target/cpu/loops.h"

enum { O3_KERNEL_MAX_OPS = 64 };

/* The body at its call. The emitter replaces |ops| and |buffers|; the call is destroyed after it. */
typedef struct o3_inlined {
  o3_pass_env_t *env;
  MlirModule module;
  MlirOperation kernel, call;
  o3_ptr_map_t *values; /* MlirValue.ptr in the kernel -> at the call */
  int num_ops, num_buffers;
  MlirOperation ops[O3_KERNEL_MAX_OPS];     /* linalg.generic, in order */
  MlirOperation buffers[O3_KERNEL_MAX_OPS]; /* memref.alloc */
} o3_inlined_t;

typedef o3_status_t (*o3_kernel_emit_fn_t)(o3_inlined_t *inlined, void *context);

/* Copies the body of each kernel that @main calls to the call, lets |emit| have it, and removes the kernels.
 */
o3_status_t o3_kernels_emit(o3_pass_env_t *env, MlirModule module, o3_kernel_emit_fn_t emit, void *context)
    O3_MUST_USE;

/* INTERNAL, with the kernel's name. */
o3_status_t o3_kernel_internal(const o3_inlined_t *inlined, const char *what) O3_MUST_USE;

/* ---- Rows (kind "rows"): attribute o3.rows tells the dimensions of the result that count them ---- */

/* The dimensions of a buffer that count the rows. */
typedef struct o3_row_dims {
  MlirValue buffer;
  int at[O3_IR_MAX_RANK];
} o3_row_dims_t;

typedef struct o3_rows {
  o3_inlined_t *inlined;
  int num_rows;
  MlirValue ivs[O3_IR_MAX_RANK];
  int num_known;
  o3_row_dims_t known[O3_KERNEL_MAX_OPS + 1];   /* the result, then the kernel's own buffers */
  int loops[O3_KERNEL_MAX_OPS][O3_IR_MAX_RANK]; /* for each op, its loops over the rows */
  o3_loops_frame_t frames[O3_KERNEL_MAX_OPS];
} o3_rows_t;

/* Sets all but |ivs|, of which frames[i].fixed are the loops that |ivs| will stand for. */
o3_status_t o3_rows_trace(o3_rows_t *self, MlirValue out) O3_MUST_USE;
/* NULL when |buffer| is neither the result nor the kernel's own. */
const o3_row_dims_t *o3_rows_find(const o3_rows_t *self, MlirValue buffer);

#endif
