/* What the parts of the attention kernel share: the place of everything in shared memory, the values of a
 * consumer thread, and the softmax of a block of scores. */
#ifndef O3_TARGET_NVPTX_ATTENTION_TEXT_H
#define O3_TARGET_NVPTX_ATTENTION_TEXT_H

#include "target/nvptx/attention_kernel.h"
#include "target/nvptx/kernel_text.h"

enum { O3_ATTENTION_MAX_SCORES = 128 };

typedef struct o3_attention_writer {
  o3_kernel_text_t *t;
  const o3_gpu_attention_t *a;
  const o3_attention_schedule_t *s;
  const o3_gpu_kernel_t *kernel;
  int row_step;     /* from a thread's row of scores to its other one */
  int row_lanes[2]; /* bits of the numbers of the lanes that share a row */
  int shared, thread, block_of_threads;
  int full_q, empty_q, full_k, empty_k, full_v, empty_v; /* pointers */
  /* Of the tile: its number among those of this block of threads, how many blocks of K came before it; the
   * rows' block, head, batch, and how many blocks of K it has. */
  int turn, before, block, head, batch, steps;
} o3_attention_writer_t;

typedef struct o3_attention_consumer {
  int number, leader;  /* of the warpgroup; condition: its thread 0 */
  int lane, warp;      /* of the warpgroup */
  int row, pair;       /* of the tensor; of 8 columns */
  int q, k, v;         /* addresses, shifted by 4 */
  int factor, opposed; /* scale * log2(e), and its negative; the scale is 1 when a mask was added */
} o3_attention_consumer_t;

/* What goes from step to step. |reference|: what probabilities are relative to, for the thread's two rows:
 * the greatest score, or with no mask -factor times it. |total|: the thread's part of the sum; |rescale|:
 * what the output is to be multiplied with, |grown| (i1) whether it is. */
typedef struct o3_attention_state {
  int reference[2], total[2], rescale[2], grown;
  int scores[O3_ATTENTION_MAX_SCORES];
} o3_attention_state_t;

/* Adds the mask, if there is one, and if it |cuts| those that are behind the end or above the diagonal.
 * |step| counts from the last block of columns. */
void o3_attention_limit(o3_attention_writer_t *w, const o3_attention_consumer_t *c, int step, bool cuts,
                        int *scores);

/* The state before there were any scores, for kernels whose first step is like the others. */
void o3_attention_begin(o3_attention_writer_t *w, o3_attention_state_t *s);

/* Turns |s->scores| into probabilities. */
void o3_attention_softmax(o3_attention_writer_t *w, const o3_attention_consumer_t *c, bool first,
                          o3_attention_state_t *s);

/* The reference of the larger score; what sums relative to |before| are multiplied with to be relative to
 * |after|. */
int o3_attention_larger(o3_attention_writer_t *w, int a, int b);
int o3_attention_moved(o3_attention_writer_t *w, const o3_attention_consumer_t *c, int before, int after);

/* |count| sums of a row's products with V, as a !sums<count>: relative to the new reference. */
int o3_attention_rescale(o3_attention_writer_t *w, int count, int output, const o3_attention_state_t *s);

/* The members of such a struct, and one of zeros. */
void o3_attention_members(o3_kernel_text_t *t, int count, int sums, int *values);
int o3_attention_zeros(o3_kernel_text_t *t, int count);

/* Two f32 as halves, the first in the lower bits. */
int o3_attention_pack(o3_attention_writer_t *w, int low, int high);

/* Over the four threads that share a row; |op|: arith.<op> on f32. */
int o3_attention_over_row(o3_attention_writer_t *w, const char *op, int value);

int o3_attention_number(o3_kernel_text_t *t, double value);
int o3_attention_binary(o3_kernel_text_t *t, const char *op, int a, int b);

#endif
