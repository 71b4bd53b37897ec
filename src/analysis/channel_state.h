/* The state of the channel analysis, shared by its three files. */
#ifndef O3_ANALYSIS_CHANNEL_STATE_H
#define O3_ANALYSIS_CHANNEL_STATE_H

#include "analysis/channels.h"

struct o3_channels {
  o3_arena_t *arena;
  o3_weights_t *weights;
  o3_ptr_map_t *axes;      /* value -> o3_channel_axis_t * */
  o3_ptr_map_t *relations; /* op -> o3_channel_relation_t * */
  o3_ptr_vec_t order;      /* of relations, in the order of the ops */
  o3_ptr_vec_t values;     /* of o3_channel_axis_t * */
  int64_t count, capacity; /* of facts */
  int64_t *parent;         /* union-find; a root is its own */
  bool *known, *needed, *pinned, *kept;
  float *number;
};

/* Tracks dimension |axis| of |value|. NULL in |made| when it is tracked along another dimension or has no
 * constant size. |pinned|: all its channels stay. */
o3_status_t o3_channel_axis_add(o3_channels_t *self, MlirValue value, int axis, bool pinned,
                                const o3_channel_axis_t **made) O3_MUST_USE;

/* Fills |relation|, whose op and rule are set, with links and the result's axis; |*related| tells whether the
 * op is one of channels at all. */
o3_status_t o3_channel_relate(o3_channels_t *self, o3_channel_relation_t *relation, bool *related)
    O3_MUST_USE;

/* The row of channel_rules.def for |op|, or -1. */
int o3_channel_rule_find(MlirOperation op);

/* Whether channel |channel| of the result is known, and its number. */
bool o3_channel_fact(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel,
                     float *number);

/* The data of an o3.constant of element type f32; NULL for other values and when memory is out. */
const float *o3_channel_constant(const o3_channels_t *self, MlirValue value);

#endif
