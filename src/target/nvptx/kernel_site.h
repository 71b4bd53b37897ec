/* What a kernel family is asked to write: the ops of a kernel function on buffers. */
#ifndef O3_TARGET_NVPTX_KERNEL_SITE_H
#define O3_TARGET_NVPTX_KERNEL_SITE_H

#include "base/arena.h"
#include "ir/ir.h"
#include "target/nvptx/kernel_launch.h"

/* |ops| are linalg.generic in order; |arguments| the function's, row-major without gaps and 64-byte aligned.
 * The kernel's buffers are the arguments by position. */
typedef struct o3_kernel_site {
  o3_arena_t *arena;
  const struct o3_gpu *gpu;          /* to choose by: the card, or of a kernel of one batch its share of it */
  const struct o3_gpu *card;         /* the whole card */
  int usual_batches;                 /* to choose for, of a kernel of one batch */
  bool any_batches;                  /* that may be run for any number */
  struct o3_gemm_schedules *taken;   /* for other numbers of batches; a product adds its own. May be NULL */
  int sm;                            /* compute capability: 90 is 9.0 */
  int multiprocessors, shared_bytes; /* of the whole card; the most that a block can have */
  bool rounds_to_tf32;               /* products of f32 may take 10 bits of each factor behind the point */
  bool rounds_to_half;               /* the model is computed in half precision, whatever its results' type */
  MlirStringRef kind;                /* o3.kernel_kind, which the fuse stage gave it */
  int num_ops;
  const MlirOperation *ops;
  int num_arguments;
  const MlirValue *arguments;
  const struct o3_open_batch *batch; /* whose types the ops have (open_batch.h); NULL: their own */
  uint64_t
      constants; /* bit i: nothing writes argument i, so it may be read before earlier kernels have ended */
} o3_kernel_site_t;

/* A family: writes the kernel; |why_not| is a static text when it does not take the site, else NULL. */
typedef o3_status_t (*o3_kernel_make_fn_t)(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel,
                                           const char **why_not);

/* The buffer that |buffer| is, under another shape perhaps: all of it, in the same order. */
MlirValue o3_kernel_site_base(MlirValue buffer);

/* The position of |buffer|, whatever its shape, among the arguments, or -1. */
int o3_kernel_site_argument(const o3_kernel_site_t *site, MlirValue buffer);

/* Whether that argument is one of the constants; false for a negative number. */
bool o3_kernel_site_is_constant(const o3_kernel_site_t *site, int argument);

/* The buffer that the body of |generic| loads from; null when it loads from several, or none. */
MlirValue o3_kernel_site_loaded(MlirOperation generic);

/* False when it is none of the types of kernels. */
bool o3_kernel_site_element(MlirValue buffer, o3_gpu_element_t *element);

#endif
