/* Channels that need not be computed.
 *
 * Of each value that a product with constant weights makes, and of all that is computed from it channel by
 * channel, one dimension is the channels. Three facts are found for each channel:
 *
 *     known   it holds one number everywhere, whatever the inputs are (all weights of an output are zero: the
 * bias) needed  something that is not known depends on it (its weights in the next product are not all zero)
 *     kept    it must be there; all others can be left out, with what is known of them carried on
 *
 * known is a forward analysis over the lattice {unknown, number}; needed a backward one. Channels that must
 * stay or go together (both sides of a residual sum, input and output of a depthwise convolution, the parts
 * of a concatenation and the whole) are one class of a union-find: a class is kept when one of its members is
 * needed and not known. Nothing is changed here: src/rewrite/dead_channels.c does that.
 */
#ifndef O3_ANALYSIS_CHANNELS_H
#define O3_ANALYSIS_CHANNELS_H

#include "base/map.h"
#include "ir/weights.h"

/* The channels of a value: its dimension |axis|, of size |count|. */
typedef struct o3_channel_axis {
  MlirValue value;
  int axis;
  int64_t count;
  int64_t base; /* of its facts */
} o3_channel_axis_t;

/* Constant weights: of output m of all, input i of its group and position p at
 * w[m * output_stride + i * input_stride + p * position_stride]. */
typedef struct o3_channel_weights {
  const float *w, *b;                         /* b: NULL for none */
  int64_t groups, outputs, inputs, positions; /* outputs and inputs of a group */
  int64_t output_stride, input_stride, position_stride;
  const uint8_t *nonzero; /* a bit for output of all x input of its group: at some position; NULL: all are */
  bool padded;            /* some windows see zeros beyond the border */
} o3_channel_weights_t;

/* Whether input |input| of its group goes into output |output| of all. */
static inline bool o3_channel_weight_nonzero(const o3_channel_weights_t *weights, int64_t output,
                                             int64_t input) {
  int64_t bit = output * weights->inputs + input;
  return !weights->nonzero || (weights->nonzero[bit / 8] >> (bit % 8) & 1);
}

/* Channel c of |from| is the channels (c + offset) * inner up to the next one's of the result. */
typedef struct o3_channel_link {
  int operand;
  const o3_channel_axis_t *from;
  int64_t offset, inner;
} o3_channel_link_t;

typedef enum o3_channel_relation_kind {
  O3_CHANNELS_MAP,    /* channel by channel, along the links */
  O3_CHANNELS_PRODUCT /* through weights; from operand 0, which has no link when its channels are not tracked
                       */
} o3_channel_relation_kind_t;

typedef struct o3_channel_relation o3_channel_relation_t;
struct o3_channel_relation {
  o3_channel_relation_kind_t kind;
  MlirOperation op; /* with one result */
  const o3_channel_axis_t *to;
  int num_links;
  o3_channel_link_t *links;
  bool elementwise; /* operands broadcast */
  bool joins;       /* a concatenation along the channels */
  o3_channel_weights_t weights;
  int rule; /* private */
};

typedef struct o3_channels o3_channels_t;

/* Of the ops of |body|, the block of @main; what other ops, nested ones and the function's end read is
 * needed. Weights must be constants already. */
o3_status_t o3_channels_analyse(o3_arena_t *arena, o3_weights_t *weights, MlirBlock body,
                                o3_channels_t **channels) O3_MUST_USE;

/* NULL when the value has no channels that are tracked. */
const o3_channel_axis_t *o3_channels_of(const o3_channels_t *channels, MlirValue value);
/* The relation that |op| is; NULL when it is none. */
const o3_channel_relation_t *o3_channels_relation(const o3_channels_t *channels, MlirOperation op);

bool o3_channels_known(const o3_channels_t *channels, const o3_channel_axis_t *axis, int64_t channel,
                       float *number);
bool o3_channels_kept(const o3_channels_t *channels, const o3_channel_axis_t *axis, int64_t channel);
int64_t o3_channels_count_kept(const o3_channels_t *channels, const o3_channel_axis_t *axis);

#endif
