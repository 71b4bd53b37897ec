/* Where the zeros of constant weights are.
 *
 *     o3_zero_mask_t mask;
 *     O3_TRY(o3_zero_mask_of_product(arena, weights, conv, &mask));
 *     if (mask.nonzero) O3_TRY(o3_sparsity_count(arena, &mask, &sparsity));
 *
 * The weights of o3.conv (M C/g K...) and o3.matmul (...KxN) are seen in one form: for each group and
 * position (of the window, or of the stack of matrices) a matrix of outputs x inputs. Weights must be an
 * o3.constant; what lies between a constant and its reader (transpose, reshape, cast, dequantization, the
 * factors of a normalisation) is gone once constants are folded.
 */
#ifndef O3_ANALYSIS_SPARSITY_H
#define O3_ANALYSIS_SPARSITY_H

#include "base/arena.h"
#include "ir/weights.h"

/* One byte an element, 1 where the weight is not zero (of either sign): group, position, output, input, the
 * last fastest. |outputs| and |inputs| are those of a group. */
typedef struct o3_zero_mask {
  int64_t groups, positions, outputs, inputs;
  const uint8_t *nonzero;
} o3_zero_mask_t;

/* The mask of the weights that |op| multiplies by, in |arena|; |mask->nonzero| is NULL when |op| is no
 * product with a constant. */
o3_status_t o3_zero_mask_of_product(o3_arena_t *arena, o3_weights_t *weights, MlirOperation op,
                                    o3_zero_mask_t *mask) O3_MUST_USE;

enum {
#define O3_SPARSITY_SHAPE(outputs, inputs) O3_SPARSITY_##outputs##x##inputs,
#define O3_SPARSITY_GROUP(m)
#include "analysis/sparsity_tables.def"
#undef O3_SPARSITY_SHAPE
#undef O3_SPARSITY_GROUP
  O3_SPARSITY_NUM_SHAPES
};
enum {
#define O3_SPARSITY_SHAPE(outputs, inputs)
#define O3_SPARSITY_GROUP(m) O3_SPARSITY_OF_##m,
#include "analysis/sparsity_tables.def"
#undef O3_SPARSITY_SHAPE
#undef O3_SPARSITY_GROUP
  O3_SPARSITY_NUM_GROUPS
};
typedef struct o3_sparsity_shape {
  int64_t outputs, inputs;
} o3_sparsity_shape_t;
extern const o3_sparsity_shape_t O3_SPARSITY_SHAPES[O3_SPARSITY_NUM_SHAPES];
extern const int64_t O3_SPARSITY_GROUPS[O3_SPARSITY_NUM_GROUPS];

/* Along one axis: numbers other than zero of each output (or input), over all positions. */
typedef struct o3_sparsity_axis {
  int64_t count, dead; /* outputs (inputs) of all groups; those that are all zero */
  int64_t least, most;
  double mean, deviation;
  int64_t most_of[O3_SPARSITY_NUM_GROUPS]; /* among M neighbours along the axis; the last ones may be fewer */
} o3_sparsity_axis_t;

typedef struct o3_sparsity {
  int64_t elements, zeros;
  int64_t blocks[O3_SPARSITY_NUM_SHAPES]; /* all; those at the edges are cut off */
  int64_t stored[O3_SPARSITY_NUM_SHAPES]; /* that hold a number other than zero */
  o3_sparsity_axis_t outputs, inputs;     /* inputs.most_of is what N:M formats want: groups of inputs */
} o3_sparsity_t;

o3_status_t o3_sparsity_count(o3_arena_t *arena, const o3_zero_mask_t *mask, o3_sparsity_t *sparsity)
    O3_MUST_USE;

/* The share of the blocks of a shape that is stored; 0 for a weight without elements. */
double o3_sparsity_occupancy(const o3_sparsity_t *sparsity, int shape);

/* The most numbers other than zero among |m| neighbouring inputs of an output, for any m. */
int64_t o3_sparsity_most_of_inputs(const o3_zero_mask_t *mask, int64_t m);

/* Blocks of any other shape, as in |stored|. */
int64_t o3_sparsity_count_blocks(const o3_zero_mask_t *mask, int64_t outputs, int64_t inputs);

#endif
