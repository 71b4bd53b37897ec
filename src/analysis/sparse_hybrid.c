/* A part without entries is not computed, so it costs nothing: the other alone is what remains. */
#include "analysis/sparse_hybrid.h"

#include <string.h>

static const o3_sparse_block_t ROWS = {.lanes = 1, .depth = 1};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

typedef struct splitter {
  const o3_zero_mask_t *mask;
  const o3_sparse_block_t *block;
  int64_t full; /* numbers from which on a block is stored whole */
  uint8_t *part;
  o3_sparse_split_t *split;
} splitter_t;

/* The block of matrix |matrix| (a group and a position) from output |m| and input |c| on. */
static void split_block(const splitter_t *self, int64_t matrix, int64_t m, int64_t c) {
  const o3_zero_mask_t *mask = self->mask;
  int64_t num_m = least(self->block->lanes, mask->outputs - m), count = 0;
  int64_t num_c = least(self->block->depth, mask->inputs - c);
  int64_t first = (matrix * mask->outputs + m) * mask->inputs + c;
  for (int64_t l = 0; l < num_m; ++l)
    for (int64_t k = 0; k < num_c; ++k) count += mask->nonzero[first + l * mask->inputs + k];
  bool whole = count >= self->full;
  self->split->blocks += whole;
  self->split->entries += whole ? 0 : count;
  for (int64_t l = 0; self->part && l < num_m; ++l)
    memset(self->part + first + l * mask->inputs, whole, (size_t)num_c);
}

void o3_sparse_hybrid_split(const o3_zero_mask_t *mask, const o3_sparse_block_t *block, uint8_t *part,
                            o3_sparse_split_t *split) {
  const splitter_t self = {mask, block, o3_sparse_cost_full(block), part, split};
  *split = (o3_sparse_split_t){0};
  for (int64_t matrix = 0; matrix < mask->groups * mask->positions; ++matrix)
    for (int64_t m = 0; m < mask->outputs; m += block->lanes)
      for (int64_t c = 0; c < mask->inputs; c += block->depth) split_block(&self, matrix, m, c);
}

double o3_sparse_hybrid_cost(const o3_sparse_layer_t *layer, const o3_sparse_block_t *block,
                             const o3_sparse_split_t *split) {
  double blocks = split->blocks ? o3_sparse_cost(layer, block, split->blocks) : 0;
  double rows = split->entries ? o3_sparse_cost(layer, &ROWS, split->entries) : 0;
  return blocks + rows + (split->blocks && split->entries ? o3_sparse_cost_join(layer) : 0);
}

int64_t o3_sparse_hybrid_bytes(const o3_sparse_layer_t *layer, const o3_sparse_block_t *block,
                               const o3_sparse_split_t *split) {
  return (split->blocks ? o3_sparse_bytes(layer, block, split->blocks) : 0) +
         (split->entries ? o3_sparse_bytes(layer, &ROWS, split->entries) : 0);
}
