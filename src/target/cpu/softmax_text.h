/* The steps of a softmax that sees its rows block by block, as MLIR functions for f32. */
#ifndef O3_TARGET_CPU_SOFTMAX_TEXT_H
#define O3_TARGET_CPU_SOFTMAX_TEXT_H

/* Most rows of a call. */
enum { O3_SOFTMAX_ROWS = 128 };

/* The functions of the module; all arguments are index but the memref<?xf32>.
 *
 * o3k_f32_softmax_begin(M, m, Z, z, rows): the greatest scores M[m + r] are -inf, the sums Z[z + r] zero.
 *
 * o3k_f32_softmax_clear(Y, y, y_row, rows, width): the results Y[y + r * y_row + i], i < width, are zero.
 *
 * o3k_f32_softmax_greatest(S, s, s_row, H, h, rows, columns): H[h + r] is the greatest of the scores
 * S[s + r * s_row + c]; NaNs do not count.
 *
 * o3k_f32_softmax_block(S, s, s_row, H, h, M, m, Z, z, Y, y, y_row, rows, columns, width): the scores become
 * exp(score - M'), and Z and Y are rescaled from the old M to M', the greatest one with this block, whose own
 * are H; Y is left alone where M was -inf. What a block adds to Y is the caller's to add afterwards.
 *
 * o3k_f32_softmax_end(Z, z, Y, y, y_row, rows, width): Y is divided by Z.
 *
 * A row whose scores are all -inf, and one with a NaN among them, comes out as NaN. */
#define O3_SOFTMAX_BEGIN    "o3k_f32_softmax_begin"
#define O3_SOFTMAX_CLEAR    "o3k_f32_softmax_clear"
#define O3_SOFTMAX_GREATEST "o3k_f32_softmax_greatest"
#define O3_SOFTMAX_BLOCK    "o3k_f32_softmax_block"
#define O3_SOFTMAX_END      "o3k_f32_softmax_end"

/* Results i1, of a block of a mask: elements at + r * row + c * column, r < rows, c < columns.
 *
 * o3k_mask_sees(memory, at, row, column, rows, columns, flip): whether some byte from the address |memory|
 * on, 0 or 1, is not |flip| (i8).
 *
 * o3k_f32_mask_sees(A, at, row, column, rows, columns): whether some element is not -inf.
 *
 * o3k_f32_mask_counts(M, m, rows, hidden): whether exp(hidden - M[m + r]) may be more than 0 in some row. */
#define O3_SOFTMAX_SEES       "o3k_mask_sees"
#define O3_SOFTMAX_SEES_ADDED "o3k_f32_mask_sees"
#define O3_SOFTMAX_COUNTS     "o3k_f32_mask_counts"

/* The module for vectors of |lanes| elements; malloc'ed; NULL when memory is out. */
char *o3_softmax_text(int lanes);

#endif
