/* Register tiles of compressed rows as MLIR functions: neighbouring positions of one plane of the result,
 * f32.
 *
 *     sum[p] = bias + sum over entries e of X[x + channel(e) * x_channel + row(e) * x_row + column(e) + p] *
 * W[e]
 *
 * Positions count along the rows of X, whose pitch is x_row; those that lie between two rows of the result
 * are not stored. Where X and the result have the same pitch there are none (direct).
 */
#ifndef O3_TARGET_CPU_ROWS_TEXT_H
#define O3_TARGET_CPU_ROWS_TEXT_H

#include <stdbool.h>

typedef struct o3_rows_tile {
  int lanes, vectors; /* of positions */
  bool direct;
} o3_rows_tile_t;

/* Arguments, all index but the memrefs (memref<?xf32>, TABLE memref<?xi32>) and BIAS (f32). */
typedef enum o3_rows_argument {
  O3_ROWS_X,
  O3_ROWS_X_AT, /* of the plane's position 0 and channel 0 */
  O3_ROWS_X_CHANNEL,
  O3_ROWS_X_ROW,
  O3_ROWS_W,
  O3_ROWS_TABLE,
  O3_ROWS_FROM, /* entries */
  O3_ROWS_TO,
  O3_ROWS_BIAS,
  O3_ROWS_Y,
  O3_ROWS_Y_AT,  /* of the plane */
  O3_ROWS_WIDTH, /* of the result */
  O3_ROWS_POSITION,
  O3_ROWS_COUNT, /* positions from there to the end of the plane, at least one for each vector */
  O3_ROWS_ARGUMENTS
} o3_rows_argument_t;

/* The function's name, e.g. "o3k_f32_rows_14x16_direct", and a module with it; malloc'ed, NULL when memory is
 * out. */
char *o3_rows_name(const o3_rows_tile_t *tile);
char *o3_rows_text(const o3_rows_tile_t *tile);

#endif
