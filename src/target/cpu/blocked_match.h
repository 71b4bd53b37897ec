/* Inside the emitter of blocked products: what a product is, and how the ops around it walk its result. */
#ifndef O3_TARGET_CPU_BLOCKED_MATCH_H
#define O3_TARGET_CPU_BLOCKED_MATCH_H

#include "target/cpu/nest.h"
#include "target/cpu/sparse_match.h"
#include "target/cpu/tile_text.h"

enum { O3_BLOCKED_MAX_DEPTH = 4 };

typedef struct o3_blocked_dims {
  int count;
  int at[O3_IR_MAX_RANK];
} o3_blocked_dims_t;

/* A loop of the sums; outermost first, the weights are contiguous over all of them. */
typedef struct o3_blocked_depth {
  int64_t size;
  int dim;       /* of which it is, or is the innermost part */
  bool is_known; /* whether the step is constant */
  int64_t step;  /* elements of X */
} o3_blocked_depth_t;

/* Dimension |dim| of an image without its border, in which a window lies at stride * pixel + distance * tap -
 * low. */
typedef struct o3_blocked_edge {
  bool exists;
  int dim, pixel; /* of X; of the nest */
  int64_t stride, distance, low;
  int64_t size; /* -1: known at run time only */
} o3_blocked_edge_t;

/* The dims of a product, by who uses them. */
typedef struct o3_blocked {
  o3_nest_t nest;
  const o3_nest_operand_t *x, *w, *y;
  bool lanewise;            /* X has lanes too */
  int lane;                 /* 16 of them; -1 for packed columns */
  int columns;              /* packed: the dim n, whose block is n / 16 and whose lane is n mod 16; else -1 */
  int block;                /* blocks of lanes, in W and Y; -1 when there is one */
  o3_blocked_dims_t pixels; /* in X and Y; the last is the run, of constant step in X */
  o3_blocked_dims_t around; /* in all three, or in W and Y besides the block */
  int64_t x_step;           /* of the run; 0 when there is none */
  int outputs;          /* channels of the result, of which the last block has few; 0: all blocks are full */
  int last_inputs;      /* channels of the last block of the sum, which is not full; 0: it is */
  bool outer_is_blocks; /* with last_inputs: depth[0] are the blocks; else there is one */
  int num_depth;
  o3_blocked_depth_t depth[O3_BLOCKED_MAX_DEPTH];
  bool inside; /* X has no border: windows are cut off where it ends, in rows and along the run; these, the
                  last two of the depth, are all there is beside single channels */
  o3_blocked_edge_t rows, run_edge;
  o3_sparse_form_t sparse; /* W holds entries then, and there are no depth and no steps in W */
} o3_blocked_t;

bool o3_blocked_match(MlirOperation op, o3_blocked_t *product);
/* The product of what |padding| reads, which makes its first input: NULL, or why that has to be made. */
const char *o3_blocked_match_inside(MlirOperation op, MlirOperation padding, o3_blocked_t *product);

/* Steps of the innermost sum, of which a turn of its loop takes a part. */
int64_t o3_blocked_innermost_steps(const o3_blocked_t *p);
/* Turns of the innermost sum that the step to the next pixel is as long as; 0 where there are none. */
int64_t o3_blocked_pixel_turns(const o3_blocked_t *p);
/* Blocks of channels that are summed, where the sums have no window; else 0. */
int64_t o3_blocked_streams(const o3_blocked_t *p);
/* Of the depth, that is loop |i| of a tile, or -1. Loops that are missing are the outer ones; blocks of
 * which the last one has few channels are the outermost all the same. */
int o3_blocked_depth_at(const o3_blocked_t *p, int i);

/* An op on the elements of the product's result. */
typedef struct o3_blocked_side {
  o3_nest_t nest;
  int dims[O3_IR_MAX_RANK]; /* for each dim of the product: that of the op, or -1 */
  bool vectors; /* of lanes: its body is arithmetic, and its operands are contiguous along them or constant */
  bool merged;  /* its operands walk the run and the lanes as one, which is the dim of the lanes */
} o3_blocked_side_t;

/* NULL, or why the op does not fit. */
const char *o3_blocked_read_side(const o3_blocked_t *product, MlirOperation op, o3_blocked_side_t *side);
/* The same if X, a slice that is reshaped, is copied, as it is for a kernel: more pixels may be one run then.
 */
const char *o3_blocked_read_side_of_copy(o3_blocked_t *product, MlirOperation op, o3_blocked_side_t *side);
/* Of |count| ops of the product's kernel: one that does not fit is an error. */
o3_status_t o3_blocked_read_sides(const o3_blocked_t *product, int count, const MlirOperation *ops,
                                  o3_blocked_side_t *sides) O3_MUST_USE;

/* What the sums start at by the ops that write it: O3_TILE_ZERO, O3_TILE_BIAS, a copy of the lanes of one
 * input that is the same for all pixels, which |bias| is then, or O3_TILE_OLD, what the ops have written. */
int o3_blocked_read_start(const o3_blocked_t *product, int count, const o3_blocked_side_t *before,
                          const o3_nest_operand_t **bias);

/* Builds the op, whose operands are flattened, for the lanes of one pixel, a register of |lanes| at a time;
 * |side->vectors| must hold. |ivs|: where the op's dims are, overwritten for the dim of the product's |lane|.
 */
o3_status_t o3_blocked_side_vectors(const o3_blocked_side_t *side, o3_builder_t *builder, int lane, int lanes,
                                    MlirValue *ivs) O3_MUST_USE;

/* The innermost dim of the pixels, or -1. */
int o3_blocked_run_dim(const o3_blocked_t *product);

/* A pixel of the run and a block of the product, whose other dims are at |ivs|. */
typedef struct o3_blocked_place {
  const MlirValue *ivs;
  MlirValue pixel, block;
} o3_blocked_place_t;

/* The same for the op's dims: |ivs|, with the block's first lane. */
void o3_blocked_side_ivs(const o3_blocked_t *product, const o3_blocked_side_t *side, o3_builder_t *builder,
                         const o3_blocked_place_t *place, MlirValue *ivs);

/* Asks for what the op will read of other images than its result for the pixels and blocks of |tile|, from
 * |at| on. */
void o3_blocked_side_ask(const o3_blocked_t *product, const o3_blocked_side_t *side, o3_builder_t *builder,
                         const o3_blocked_place_t *at, const o3_tile_t *tile);

#endif
