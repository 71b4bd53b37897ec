/* Matrix products on warpgroups (sm_90a): D = epilogue(A B), f16, bf16, tf32 or 8-bit float operands, f32
 * sums.
 *
 *     D[b, c, m, n] = epilogue(sum over k of A[b, c, m, k] * B[b, c, k, n], extra operands at (b, c, m, n))
 *
 * A may also be the windows of an image with the channels last, which is a convolution:
 *
 *     D[(n, y, x), m] = epilogue(sum over taps (j, i) and channels c of
 *                                X[n, y * step + j * dilation - low, x * step + i * dilation - low, c] *
 *                                B[(j, i, c), m])       X is zero outside of the image
 *
 * A producer warp fills a ring of shared memory by TMA; one or two consumer warpgroups multiply 64 or 128
 * rows each, apply the epilogue to the sums in registers and store. Buffers: 0 is A, 1 is B, then the extra
 * operands, D is the last.
 */
#ifndef O3_TARGET_NVPTX_GEMM_KERNEL_H
#define O3_TARGET_NVPTX_GEMM_KERNEL_H

#include "target/nvptx/kernel_text.h"

enum { O3_GEMM_MAX_EXTRAS = 8 };

/* Dimensions of the result, as operands are addressed by them. */
enum { O3_GEMM_OUTER, O3_GEMM_INNER, O3_GEMM_ROW, O3_GEMM_COLUMN, O3_GEMM_DIMS };

/* An operand of the epilogue: element (b, c, m, n) lies at the sum of each index times its stride. */
typedef struct o3_gemm_extra {
  o3_gpu_element_t element;
  int64_t strides[O3_GEMM_DIMS]; /* elements; 0 where it does not depend on the dimension */
} o3_gemm_extra_t;

/* Along x, then y, then from image to image; what has two members is along x and y. */
typedef struct o3_gemm_window {
  int64_t channels;
  int64_t sizes[3], strides[3]; /* of the image: positions, elements from one to the next */
  int64_t outputs[3];           /* positions of the result */
  int64_t taps[2], steps[2], dilations[2], lows[2];
  bool depthwise; /* an output is of the windows of its own channel: see depthwise_kernel.h */
} o3_gemm_window_t;

/* Rows that a product of warps is scheduled for when they are known only at run time. */
enum { O3_GEMM_USUAL_ROWS = 1024 };

typedef struct o3_gemm {
  int64_t batch[2], m, n, k;         /* outer and inner batch */
  bool rows_at_run_time;             /* the kernel is told: m is a usual number, without batches */
  int64_t rows_of_batch;             /* what they are a multiple of, for warpgroups */
  bool any_rows;                     /* blocks go on from tile to tile, so that none share sums over k */
  bool one_of_batches;               /* kernels for others run at the same time */
  bool batches_at_run_time;          /* of warpgroups without |split|, that are told batch[0], which is 1 */
  o3_gpu_element_t element, out;     /* of A and B; of D */
  bool b_is_constant;                /* no kernel writes B: it is loaded before earlier ones end */
  bool b_by_rows;                    /* B is [k, n], else [n, k] */
  const o3_gemm_window_t *window;    /* what A is; NULL: a matrix */
  int64_t a_pitch, b_pitch, d_pitch; /* elements from a row to the next; a_pitch: of a matrix */
  int64_t a_batch[2], b_batch[2], d_batch[2]; /* from a batch to the next; 0: the same for all */
  int num_extras;
  o3_gemm_extra_t extras[O3_GEMM_MAX_EXTRAS];
  /* Writes what becomes of a sum: values are scalars, |extras| of the extras' elements; gives the element of
   * D as a value of |out|. NULL: the sum itself. Called once, inside a function of its own. */
  int (*epilogue)(o3_kernel_text_t *t, void *context, int sum, const int *extras);
  bool epilogue_computes; /* more than another type of a sum */
  void *epilogue_context;
} o3_gemm_t;

/* Of 8-bit floats the tensor cores keep some 14 bits of a sum. |promote| adds up in f32 what they give for
 * each stage, of 128 products, one part of the columns after the other. */
typedef struct o3_gemm_schedule {
  int consumers; /* warpgroups */
  int products;  /* of 64 rows that a warpgroup multiplies one below the other: 1 or 2 */
  int columns;   /* of a tile: a multiple of 64 up to 256; of 16 when B is [n, k] and D is stored directly */
  int stages;
  int split;            /* blocks of a cluster that share the sums over k: 1, 2, 4, 8 */
  int blocks;           /* of the grid that run side by side on a multiprocessor */
  int group_rows;       /* tiles of rows that are visited before the next tile of columns */
  bool store_by_tensor; /* D by TMA from shared memory, else from registers */
  bool alternate;       /* two consumers have tiles of their own: one multiplies while the other stores */
  int promote;          /* parts of the columns whose sums are added to others in f32: see above; 0: none */
  int streams;          /* blocks that share the steps of all tiles evenly (stream-K), or 0: gemm_stream.c */
  bool late_stores;     /* by TMA, under the products of the block's next tile: results wait in registers */
} o3_gemm_schedule_t;

/* Why the family does not take the product; NULL when it does. Static text. */
const char *o3_gemm_refuse(const o3_gemm_t *gemm);

/* The steps along k: of 64, which for windows are channels of one tap. */
int64_t o3_gemm_steps(const o3_gemm_t *gemm);

int64_t o3_gemm_batches(const o3_gemm_t *gemm);

/* Rows or batches that a kernel can be told at most; below 1 where not even one has 32-bit places. */
int64_t o3_gemm_most_told(const o3_gemm_t *gemm);

/* Rows of a tile; what a block takes of shared memory. */
int o3_gemm_tile_rows(const o3_gemm_schedule_t *schedule);
int o3_gemm_shared_bytes(const o3_gemm_schedule_t *schedule);

/* The schedule for a card (schedule/gpu.h): by its multiprocessors, tensor cores, shared memory and clusters.
 * No columns: the stages of no tile fit. */
struct o3_gpu;
o3_gemm_schedule_t o3_gemm_schedule(const o3_gemm_t *gemm, const struct o3_gpu *gpu);

/* The same, or one that is nearly as quick: of those in |taken|, for code that is there already costs
 * nothing, else one that will do for the batches that kernels are made for next. Adds what it gives. */
enum { O3_GEMM_MAX_SCHEDULES = 8 };
typedef struct o3_gemm_schedules {
  int count;
  o3_gemm_schedule_t items[O3_GEMM_MAX_SCHEDULES];
  int num_next, next[O3_GEMM_MAX_SCHEDULES]; /* batches, of products whose rows are told */
} o3_gemm_schedules_t;
o3_gemm_schedule_t o3_gemm_schedule_again(const o3_gemm_t *gemm, const struct o3_gpu *gpu,
                                          o3_gemm_schedules_t *taken);

/* Why there is no such kernel on a card with |shared_bytes| a block; NULL when there is. Static text. */
const char *o3_gemm_refuse_schedule(const o3_gemm_t *gemm, const o3_gemm_schedule_t *schedule,
                                    int shared_bytes);

o3_status_t o3_gemm_build(const o3_gemm_t *gemm, const o3_gemm_schedule_t *schedule, int multiprocessors,
                          o3_gpu_kernel_t *kernel) O3_MUST_USE;

#endif
