/* How the threads of a block bring a stage of A or B from global to shared memory, in pieces as large as what
 * lies together and the addresses allow; what is outside of a matrix or an image becomes zero. */
#ifndef O3_TARGET_NVPTX_MMA_COPY_H
#define O3_TARGET_NVPTX_MMA_COPY_H

#include "target/nvptx/mma_unit.h"
#include "target/nvptx/product_text.h"

enum { O3_MMA_MAX_ITEMS = 64 };

typedef struct o3_mma_copy {
  const o3_gemm_t *gemm;
  bool is_a, by_rows; /* by_rows: a line is a row of B */
  int skipped;        /* arguments of the kernel between A and B */
  o3_mma_block_t block;
  int depth;   /* elements of k a stage */
  int first;   /* value: row or column of the tile */
  int end;     /* value: rows of A, of o3_gemm_t's rows_at_run_time */
  int threads; /* of the block */
  int access;  /* elements of a piece */
  /* Set by o3_mma_copy_begin: values. */
  int line, chunk, position;
  int places[O3_MMA_MAX_ITEMS]; /* in a stage, of each chunk */
  int windows[O3_MMA_MAX_ITEMS],
      rows[O3_MMA_MAX_ITEMS][2]; /* of windows: element, x and y of the first tap */
} o3_mma_copy_t;

/* The elements of the largest piece, a power of 2, of operand A or B. */
int o3_mma_copy_access(const o3_gemm_t *gemm, bool is_a);

/* What does not change from stage to stage. */
void o3_mma_copy_begin(o3_kernel_text_t *t, o3_mma_copy_t *copy, int thread, const o3_gemm_place_t *place);

/* Asks for the stage of k from |k| (value) on, into the stage at |base|, by cp.async. */
void o3_mma_copy_issue(o3_kernel_text_t *t, const o3_mma_copy_t *copy, int k, int base);

/* The same in two: reads it into values, and writes those. Both give the number of values. */
int o3_mma_copy_fetch(o3_kernel_text_t *t, const o3_mma_copy_t *copy, int k, int *values);
int o3_mma_copy_deposit(o3_kernel_text_t *t, const o3_mma_copy_t *copy, int base, const int *values);

#endif
