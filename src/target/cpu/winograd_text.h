/* The transforms of Winograd convolutions (analysis/winograd.h) as MLIR functions on channel blocks, f32. */
#ifndef O3_TARGET_CPU_WINOGRAD_TEXT_H
#define O3_TARGET_CPU_WINOGRAD_TEXT_H

#include <stdbool.h>

/* Arguments of the input transform of one tile and block, all index but the memrefs, which are memref<?xf32>:
 *
 *     V[v + (a * p + b) * v_point + lane] = B d B^T    for all lanes
 *     d[i][j] = X[x + (top + i) * x_row + (left + j) * 16 + lane], 0 outside of h rows and w columns
 */
typedef enum o3_winograd_input_argument {
  O3_WINOGRAD_IN_X,
  O3_WINOGRAD_IN_X_AT,
  O3_WINOGRAD_IN_X_ROW,
  O3_WINOGRAD_IN_H,
  O3_WINOGRAD_IN_W,
  O3_WINOGRAD_IN_TOP, /* may be negative */
  O3_WINOGRAD_IN_LEFT,
  O3_WINOGRAD_IN_V,
  O3_WINOGRAD_IN_V_AT,
  O3_WINOGRAD_IN_V_POINT,
  O3_WINOGRAD_IN_ARGUMENTS
} o3_winograd_input_argument_t;

/* Arguments of the output transform of one tile and block:
 *
 *     Y[y + u * y_row + v * 16 + lane] = s + (A P A^T)[u][v]    for u below rows, v below columns, all lanes
 *     P[a][b] = P[p + (a * p + b) * p_point + lane]
 *
 * where s is 0, B[b + lane] or what Y has, by start (tile_text.h). */
typedef enum o3_winograd_output_argument {
  O3_WINOGRAD_OUT_P,
  O3_WINOGRAD_OUT_P_AT,
  O3_WINOGRAD_OUT_P_POINT,
  O3_WINOGRAD_OUT_Y,
  O3_WINOGRAD_OUT_Y_AT,
  O3_WINOGRAD_OUT_Y_ROW,
  O3_WINOGRAD_OUT_B,
  O3_WINOGRAD_OUT_B_AT,
  O3_WINOGRAD_OUT_ROWS,
  O3_WINOGRAD_OUT_COLUMNS,
  O3_WINOGRAD_OUT_ARGUMENTS
} o3_winograd_output_argument_t;

typedef struct o3_winograd_function {
  int tile;  /* 2 or 4 */
  int lanes; /* of a vector register; divides 16 */
  bool output;
  int start; /* of an output transform: O3_TILE_ZERO, ... */
} o3_winograd_function_t;

/* The function's name, e.g. "o3k_f32_winograd4_input", and a module with it; malloc'ed, NULL when memory is
 * out. */
char *o3_winograd_function_name(const o3_winograd_function_t *function);
char *o3_winograd_function_text(const o3_winograd_function_t *function);

#endif
