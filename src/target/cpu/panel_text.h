/* Register tiles of matrix products with compressed rows as MLIR functions: neighbouring rows of the result
 * and up to 16 of its columns, f32.
 *
 *     Y[r, j] = sum over entries e of column j of X[channel(e), r] * W[e]
 *
 * X is a panel: its rows are the depth, and its columns, |panel| of them, rows of the result.
 */
#ifndef O3_TARGET_CPU_PANEL_TEXT_H
#define O3_TARGET_CPU_PANEL_TEXT_H

enum { O3_PANEL_COLUMNS = 16 };

typedef struct o3_panel_tile {
  int lanes, vectors; /* of rows; lanes divide O3_PANEL_COLUMNS */
  int panel;          /* elements from a row of X to the next */
} o3_panel_tile_t;

/* Arguments, all index but the memrefs (memref<?xf32>, TABLE and ENDS memref<?xi32>). */
typedef enum o3_panel_argument {
  O3_PANEL_X,
  O3_PANEL_X_AT, /* of the first row of the result, channel 0 */
  O3_PANEL_W,
  O3_PANEL_TABLE, /* columns of entries */
  O3_PANEL_ENDS,
  O3_PANEL_ENDS_AT, /* where ENDS has the first entry of the first column */
  O3_PANEL_Y,
  O3_PANEL_Y_AT,
  O3_PANEL_Y_STEP, /* from a row to the next */
  O3_PANEL_COUNT,  /* rows that exist from the first one on, at least one for each vector */
  O3_PANEL_COLS,   /* columns that exist, 1 to 16 */
  O3_PANEL_ARGUMENTS
} o3_panel_argument_t;

/* The function's name, e.g. "o3k_f32_panel_8x16_p128", and a module with it; malloc'ed, NULL when memory is
 * out. */
char *o3_panel_name(const o3_panel_tile_t *tile);
char *o3_panel_text(const o3_panel_tile_t *tile);

#endif
