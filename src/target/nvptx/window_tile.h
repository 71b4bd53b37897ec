/* How blocks share out the outputs of windows over images with the channels last: a block has a tile of
 * outputs for some channels, so that rows of the image that its windows share come from the cache of its
 * multiprocessor.
 */
#ifndef O3_TARGET_NVPTX_WINDOW_TILE_H
#define O3_TARGET_NVPTX_WINDOW_TILE_H

#include "target/nvptx/kernel_text.h"

/* What there is; [0]: along x, [1]: along y. A thread has a vector of channels of |run| outputs along x. */
typedef struct o3_window_outputs {
  int64_t vectors, images, outputs[2];
  int64_t taps[2], steps[2], dilations[2];
  int run;
} o3_window_outputs_t;

typedef struct o3_window_tile {
  int lanes, runs, rows; /* of a block: vectors of channels, runs of outputs, rows */
  int block;             /* threads, a multiple of 32 that may be more than the tile has */
  int64_t runs_of_row;   /* of the whole */
  int64_t counts[3];     /* tiles along channels, x and y */
} o3_window_tile_t;

/* Threads in all. */
int64_t o3_window_threads(const o3_window_outputs_t *outputs);

/* The tile of least traffic. */
void o3_window_tile_choose(const o3_window_outputs_t *outputs, o3_window_tile_t *tile);

/* Blocks in all. */
int64_t o3_window_tile_blocks(const o3_window_outputs_t *outputs, const o3_window_tile_t *tile);

/* Values of the text: the thread's vector, first output along x, row and image; |valid|: whether it has any,
 * -1 when all have. */
typedef struct o3_window_place {
  int vector, x, y, image, valid;
} o3_window_place_t;
o3_window_place_t o3_window_tile_place(o3_kernel_text_t *t, const o3_window_outputs_t *outputs,
                                       const o3_window_tile_t *tile);

#endif
