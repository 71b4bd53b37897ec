/* How sparse constant weights are stored for kernels, and which weights and formats have one.
 *
 *     values   entries x depth x lanes, f32: the weights of |lanes| neighbouring outputs and |depth|
 * neighbouring inputs at one position of the window columns  entries, i32: first input channel + (row of the
 * window << 16) + (its column << 24) rows     i32: entries rows[r] to rows[r + 1] belong to the outputs r *
 * lanes to r * lanes + lanes
 *
 * Behind the limits |rows| has where parts of equal work begin, and the end: of 16 outputs each on average,
 * of one for the compressed rows of a convolution and of 64 for those of a matrix. They count blocks of 16
 * outputs, with compressed rows outputs. A part is empty where one of its neighbours has its share.
 *
 * Compressed rows read an image N C H W in which steps and dilations are gone: with steps s0 x s1 channel c,
 * row h and column w of the input are channel (c * s0 + h % s0) * s1 + w % s1, row h / s0, column w / s1;
 * windows of 1 x 1 read what a slice with these steps leaves. Those of a matrix product read panels of up to
 * O3_SPARSE_PANEL rows of the left matrix, ceil(M / P) x K x P, the rows beyond M any finite numbers.
 *
 * A block format stores blocks that hold a number other than zero; its block shape is rounded to what
 * registers take (o3_sparse_block). Compressed rows are the case of one lane and a depth of one.
 *
 * N:M stores of 16 neighbouring inputs of each output the |depth| that may be other than zero: values have
 * the dimensions entries x parts x depth / parts x lanes, and columns 1 + 2 depth numbers for each entry.
 * Behind the column stand two words for each of the depth, which have a place among the 16 inputs, four bits,
 * for each lane: lane l's is in word l % 2 from bit 4 * (l / 2) on. With M of 2, 4 and 8 the first half of
 * the stored numbers is of the first eight inputs (two parts), which is what permutations of eight numbers
 * want.
 *
 * The choice of a format asks o3_sparse_supported, sets the string attribute O3_SPARSE_FORMAT_ATTR on the
 * o3.conv or o3.matmul, whose weights must be an o3.constant, and the layout pass does the rest.
 */
#ifndef O3_ANALYSIS_SPARSE_STORAGE_H
#define O3_ANALYSIS_SPARSE_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* On o3.conv and o3.matmul: "bsr-16x16", "csr"; absent or "dense" for dense ones. */
#define O3_SPARSE_FORMAT_ATTR "o3.sparse_format"

enum { O3_SPARSE_PANEL = 128 };

typedef enum o3_sparse_kind {
  O3_SPARSE_AUTO,
  O3_SPARSE_DENSE,
  O3_SPARSE_CSR,
  O3_SPARSE_BSR,   /* blocks of outputs x inputs */
  O3_SPARSE_NM,    /* |rows| of |columns| neighbouring inputs */
  O3_SPARSE_HYBRID /* full blocks, the rest in compressed rows */
} o3_sparse_kind_t;

typedef struct o3_sparse_format {
  o3_sparse_kind_t kind;
  int64_t rows, columns;
} o3_sparse_format_t;

/* INVALID_ARGUMENT for what is no format. */
o3_status_t o3_sparse_format_parse(const char *text, o3_sparse_format_t *format) O3_MUST_USE;

/* The weights of a product: m of |outputs|, c of |channels| inputs of a group, positions of the window. A
 * matrix product has a window of 1 x 1 and one group; its outputs are columns of the result. */
typedef struct o3_sparse_weight {
  bool is_matmul, is_f32;
  int64_t outputs, channels, group;
  int64_t window[2];
  int64_t steps[2], dilations[2]; /* of the convolution; 0 counts as 1. Compressed rows only, see below */
  const float *data;              /* NULL when only the form is asked about */
  int64_t strides[4];             /* elements between outputs, channels, rows and columns of the window */
} o3_sparse_weight_t;

/* Outputs and inputs of an entry; of N:M those that are stored of each output, which |places| tells. */
typedef struct o3_sparse_block {
  int64_t lanes, depth;
  int64_t span;     /* inputs that an N:M entry is of; 0 for other formats */
  int64_t parts;    /* of these inputs: each has depth / parts of the stored numbers */
  int64_t kept, of; /* N and M */
} o3_sparse_block_t;

/* NULL, and the block that entries of the format have (the whole ones of a hybrid, which must have kernels
 * for both parts); UNSUPPORTED with the reason. |block| may be NULL. */
o3_status_t o3_sparse_supported(const o3_sparse_weight_t *weight, const o3_sparse_format_t *format,
                                o3_sparse_block_t *block) O3_MUST_USE;

typedef struct o3_sparse_packed {
  int64_t num_rows, num_entries; /* blocks of outputs; entries, at least one */
  int32_t *rows, *columns;
  float *values;
} o3_sparse_packed_t;

/* Whether the weights (with data) are what the format says: no more than N of M numbers other than zero. */
o3_status_t o3_sparse_check(const o3_sparse_weight_t *weight, const o3_sparse_block_t *block) O3_MUST_USE;

/* 32-bit numbers of an entry in |columns|. */
int64_t o3_sparse_columns_of_entry(const o3_sparse_block_t *block);

/* How many entries the weights have in blocks of this form. */
int64_t o3_sparse_count(const o3_sparse_weight_t *weight, const o3_sparse_block_t *block);

/* Numbers in |rows|. */
int64_t o3_sparse_rows_size(const o3_sparse_weight_t *weight, const o3_sparse_block_t *block);

/* Fills the three arrays, whose memory is the caller's: o3_sparse_rows_size, num_entries + 1 times
 * o3_sparse_columns_of_entry zeroed ones, and num_entries * depth * lanes zeroed elements. Weights without
 * any entry get one of zeros that no row has. The last column is no entry's and differs from the one before:
 * MLIR folds a constant of equal numbers into its readers, and what reads no columns would not be known as a
 * sparse product. */
void o3_sparse_pack(const o3_sparse_weight_t *weight, const o3_sparse_block_t *block,
                    o3_sparse_packed_t *packed);

#endif
