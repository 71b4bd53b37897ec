/* Register tiles of blocked products as MLIR functions: some pixels times 16-lane blocks of weights, f32.
 *
 *     Y[p, j, l] (=|+=) sum over i2, i1, i0, k of X[p, i2, i1, i0, k] * W[j, ((i2 * n1 + i1) * n0 + i0) * c +
 * k, l]
 *
 * The convolution in channel blocks is one of these (i2: block of channels, i1, i0: window, k: channel), a
 * matrix product with packed weights another (k only). Lanewise tiles are depthwise: X has lanes too, and no
 * k.
 */
#ifndef O3_TARGET_CPU_TILE_TEXT_H
#define O3_TARGET_CPU_TILE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/block_lanes.h"

typedef struct o3_tile {
  int lanes;      /* elements of a vector register; divides O3_BLOCK_LANES */
  int blocks;     /* j */
  int pixels;     /* p */
  int64_t x_step; /* elements of X from a pixel to the next */
  int unroll;     /* turns of k in one; c is a multiple of it */
  bool lanewise;
  bool ahead;  /* asks for what the next tile reads */
  bool shared; /* one of several that take the same weights in turn: see below */
  bool masked; /* one block, of which only the lanes below %cols exist in Y and B */
  int width;   /* lanes of a block: O3_BLOCK_LANES, or fewer in sparse tiles */
  int used;    /* of them those that are computed, a multiple of |lanes| but in split tiles */
  int zeros;   /* of the lanes after these, how many become zeros */
  int split;   /* 0, or how many outputs share a vector: their sums, see below */
  int depth;   /* sparse tiles: inputs of an entry; 0 for dense ones */
  int parts;   /* N:M tiles: depth of 16 inputs are stored, in so many parts; 0 for other ones */
  bool tail;   /* N:M: the inputs of the last entry end at %c */
  /* Tiles on an image without its border: all of the window's columns in one turn, as k, of which rows there
   * are %n1 in the image and %n0 in the weights; %n2 and %s2 are the channels'. */
  int taps;           /* columns; 0 for other tiles; unroll is the same */
  int64_t tap_step;   /* elements of X from one to the next */
  int64_t first, end; /* elements of X before |first| and from |end| on, counted from tap 0 of pixel 0, are
                         outside of the row and not read */
  bool late;          /* those from |end| on are read if they are before %s0, which only the run knows */
  uint64_t after;     /* of what is done with the sums before they are stored (tile_after.h); 0: nothing */
} o3_tile_t;

/* A sparse tile (depth > 0; one block) sums the entries %from to %to of sparse weights whose values are W and
 * whose columns are %table (analysis/sparse_storage.h):
 *
 *     Y[p, l] (=|+=) sum over entries e, k < depth of
 *         X[p, channel(e) / 16 * s2 + channel(e) % 16 + k + row(e) * s1 + column(e) * s0] * W[e, k, l]
 *
 * In an N:M tile (parts > 0) place(e, k, l) stands for k in X; lanes are 8, with AVX2, or 16, with AVX-512.
 */

/* A split tile (one block; |split| of |lanes|) computes 2 or 4 outputs. A vector holds, for each of them, the
 * sums over every s-th k, s = lanes / split, which is |unroll|: X is loaded as it lies, s numbers at a time.
 * What it stores are half a block's lanes, of which those behind |split| are zeros. */

/* A shared tile asks for weights, from %w_ahead after the first of each block of its own on a block's lanes
 * in each turn of |unroll| steps. As many tiles in turn, each with a %w_ahead that is an unroll-th of a
 * block's weights more, ask for all of those that come next. */

/* What the sums start at. */
enum { O3_TILE_ZERO, O3_TILE_BIAS, O3_TILE_OLD };

/* Arguments of a tile, all index but the memrefs, which are memref<?xf32>. */
typedef enum o3_tile_argument {
  O3_TILE_X,
  O3_TILE_X_AT, /* of pixel 0 */
  O3_TILE_W,
  O3_TILE_W_AT,
  O3_TILE_W_NEXT,  /* from a block to the next */
  O3_TILE_W_AHEAD, /* from a weight to the one that a shared tile asks for beside it */
  O3_TILE_Y,
  O3_TILE_Y_AT,
  O3_TILE_Y_STEP, /* from a pixel to the next */
  O3_TILE_Y_NEXT, /* from a block to the next */
  O3_TILE_B,
  O3_TILE_B_AT,  /* the lanes of block 0; the next block's follow */
  O3_TILE_START, /* O3_TILE_ZERO, ... */
  O3_TILE_N2,
  O3_TILE_S2, /* sizes of i2, i1, i0 and their steps in X */
  O3_TILE_N1,
  O3_TILE_S1,
  O3_TILE_N0,
  O3_TILE_S0,
  O3_TILE_C,      /* size of k */
  O3_TILE_C_LAST, /* the same in the last turn of i2; W has steps for c all the same */
  O3_TILE_COLS,
  O3_TILE_ARGUMENTS,
  /* sparse tiles, in the place of others: */
  O3_TILE_FROM = O3_TILE_N2,
  O3_TILE_TO = O3_TILE_N1,
  O3_TILE_TABLE = O3_TILE_ARGUMENTS, /* memref<?xi32>, one argument more */
  O3_TILE_SPARSE_ARGUMENTS
} o3_tile_argument_t;

/* Of |outputs| channels, of which the last block may have few, those of that block that are computed: parts
 * of half a block or, with |lanes| of a register, less. All of it for 0 outputs. */
int o3_tile_last_lanes(int lanes, int outputs);

/* Elements of the vectors that it stores. */
int o3_tile_stored(const o3_tile_t *tile);

/* The function's name, e.g. "o3k_f32_tile_14x32_s16_u4" or "o3k_f32_sparse_28x16_d16_s16_u4"
 * or "o3k_f32_nm_12x16_d8_p2_s16_u1", and a module
 * with it; malloc'ed, NULL when memory is out. */
char *o3_tile_name(const o3_tile_t *tile);
char *o3_tile_text(const o3_tile_t *tile);

#endif
