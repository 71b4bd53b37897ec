/* What a product with constant weights costs, dense and in sparse formats. A model, to choose by: right to
 * some ten per cent where it was calibrated (sparse_rates.def). */
#ifndef O3_ANALYSIS_SPARSE_COST_H
#define O3_ANALYSIS_SPARSE_COST_H

#include "analysis/sparse_storage.h"

/* A product as the model sees it. */
typedef struct o3_sparse_layer {
  o3_sparse_weight_t weight; /* its form; no data */
  int64_t columns;           /* pixels of the result of all images, or rows of the matrix */
  bool columns_known;        /* false: a symbolic size was taken to be something usual */
  int64_t moved;             /* bytes of input and result */
  double dense_gain; /* how much faster than the plain dense kernel dense is: by Winograd's way; or 1 */
} o3_sparse_layer_t;

/* Formats that auto considers: the text and true, or false past the end. */
bool o3_sparse_candidate(int index, const char **format);

/* Microseconds of one thread. */
double o3_sparse_cost_dense(const o3_sparse_layer_t *layer);
double o3_sparse_cost(const o3_sparse_layer_t *layer, const o3_sparse_block_t *block, int64_t entries);

/* Numbers other than zero from which on a block costs less than its numbers do in compressed rows, which read
 * their input from the second cache mostly. */
int64_t o3_sparse_cost_full(const o3_sparse_block_t *block);

/* What adding the result of compressed rows to that of blocks costs: another pass over the result, and an
 * image in both layouts. */
double o3_sparse_cost_join(const o3_sparse_layer_t *layer);

/* Bytes of the weights. */
int64_t o3_sparse_bytes_dense(const o3_sparse_layer_t *layer);
int64_t o3_sparse_bytes(const o3_sparse_layer_t *layer, const o3_sparse_block_t *block, int64_t entries);

#endif
