/* Weights of two kinds: blocks that are full enough are stored whole, numbers elsewhere as compressed rows.
 *
 *     o3_sparse_split_t split;
 *     o3_sparse_hybrid_split(&mask, &block, part, &split);
 *
 * The weights are the sum of both parts; each number is in one of them.
 */
#ifndef O3_ANALYSIS_SPARSE_HYBRID_H
#define O3_ANALYSIS_SPARSE_HYBRID_H

#include "analysis/sparse_cost.h"
#include "analysis/sparsity.h"

typedef struct o3_sparse_split {
  int64_t blocks, entries; /* blocks stored whole; numbers other than zero outside of them */
} o3_sparse_split_t;

/* Sets |part|, of the mask's size and order, to 1 where a weight is of a block that is stored whole, else to
 * 0; it may be NULL. |block| is that of o3_sparse_supported. */
void o3_sparse_hybrid_split(const o3_zero_mask_t *mask, const o3_sparse_block_t *block, uint8_t *part,
                            o3_sparse_split_t *split);

/* Microseconds of one thread, and bytes, of both parts and of the sum of their results. */
double o3_sparse_hybrid_cost(const o3_sparse_layer_t *layer, const o3_sparse_block_t *block,
                             const o3_sparse_split_t *split);
int64_t o3_sparse_hybrid_bytes(const o3_sparse_layer_t *layer, const o3_sparse_block_t *block,
                               const o3_sparse_split_t *split);

#endif
