#include "analysis/channels.h"

#include <string.h>

#include "analysis/channel_state.h"

/* Joined parts stay whole blocks of this many channels, which blocked layouts can join without moving them.
 */
enum { JOIN_MULTIPLE = O3_BLOCK_LANES };

/* ---- Facts ---- */

static o3_status_t grow(o3_channels_t *self, int64_t needed) {
  if (needed <= self->capacity) return NULL;
  int64_t capacity = 2 * needed;
  size_t size = (size_t)capacity, used = (size_t)self->count;
  int64_t *parent = O3_ARENA_ARRAY(self->arena, int64_t, size);
  bool *flags = O3_ARENA_ARRAY(self->arena, bool, 4 * size);
  float *number = O3_ARENA_ARRAY(self->arena, float, size);
  O3_TRY_ALLOC(parent && flags && number);
  bool *old[] = {self->known, self->needed, self->pinned, self->kept};
  for (size_t i = 0; i < 4; ++i)
    if (used) memcpy(flags + i * size, old[i], used * sizeof(*flags));
  if (used) memcpy(parent, self->parent, used * sizeof(*parent));
  if (used) memcpy(number, self->number, used * sizeof(*number));
  self->parent = parent;
  self->number = number;
  self->known = flags;
  self->needed = flags + size;
  self->pinned = flags + 2 * size;
  self->kept = flags + 3 * size;
  self->capacity = capacity;
  return NULL;
}

o3_status_t o3_channel_axis_add(o3_channels_t *self, MlirValue value, int axis, bool pinned,
                                const o3_channel_axis_t **made) {
  MlirType type = mlirValueGetType(value);
  o3_channel_axis_t *found = o3_ptr_map_get(self->axes, value.ptr);
  *made = found && found->axis == axis ? found : NULL;
  if (found || axis < 0 || axis >= o3_type_rank(type) || o3_type_dim(type, axis) < 1) return NULL;
  found = O3_ARENA_NEW(self->arena, o3_channel_axis_t);
  O3_TRY_ALLOC(found);
  *found = (o3_channel_axis_t){value, axis, o3_type_dim(type, axis), self->count};
  O3_TRY(grow(self, self->count + found->count));
  for (int64_t c = 0; c < found->count; ++c) {
    self->parent[self->count + c] = self->count + c;
    self->pinned[self->count + c] = pinned;
  }
  self->count += found->count;
  O3_TRY_ALLOC(o3_ptr_map_put(self->axes, value.ptr, found));
  O3_TRY_ALLOC(o3_ptr_vec_push(&self->values, found));
  *made = found;
  return NULL;
}

static void pin(o3_channels_t *self, const o3_channel_axis_t *axis) {
  for (int64_t c = 0; c < axis->count; ++c)
    self->needed[axis->base + c] = self->pinned[axis->base + c] = true;
}

/* ---- Relations ---- */

static void pin_value(o3_channels_t *self, MlirValue value) {
  const o3_channel_axis_t *axis = o3_ptr_map_get(self->axes, value.ptr);
  if (axis) pin(self, axis);
}

/* Results may be tracked already when a relation turns out to be none. */
static void pin_all(o3_channels_t *self, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
    pin_value(self, mlirOperationGetOperand(op, i));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    pin_value(self, mlirOperationGetResult(op, i));
}

static o3_status_t add_op(o3_channels_t *self, MlirOperation op) {
  bool related = false;
  int rule = o3_channel_rule_find(op);
  o3_channel_relation_t *relation = O3_ARENA_NEW(self->arena, o3_channel_relation_t);
  O3_TRY_ALLOC(relation);
  relation->op = op;
  relation->rule = rule;
  if (rule >= 0 && mlirOperationGetNumResults(op) == 1) O3_TRY(o3_channel_relate(self, relation, &related));
  if (!related) {
    pin_all(self, op);
    return NULL;
  }
  O3_TRY_ALLOC(o3_ptr_map_put(self->relations, op.ptr, relation));
  O3_TRY_ALLOC(o3_ptr_vec_push(&self->order, relation));
  return NULL;
}

/* Loops and branches read values of @main without having them as operands. */
static void pin_captured(o3_channels_t *self, MlirBlock body) {
  for (size_t i = 0; i < self->values.count; ++i) {
    const o3_channel_axis_t *axis = self->values.items[i];
    MlirOpOperand use = mlirValueGetFirstUse(axis->value);
    for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
      if (!mlirBlockEqual(mlirOperationGetBlock(mlirOpOperandGetOwner(use)), body)) pin(self, axis);
    }
  }
}

/* An operand's relation is found when the op is met, by which time another op may not have tracked it yet:
 * what is read by an op without links to it is pinned here. */
static const o3_channel_link_t *link_of(const o3_channel_relation_t *relation, intptr_t operand) {
  for (int i = 0; i < relation->num_links; ++i)
    if (relation->links[i].operand == operand) return &relation->links[i];
  return NULL;
}

static void pin_unlinked(o3_channels_t *self, const o3_channel_relation_t *relation) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(relation->op); ++i) {
    const o3_channel_axis_t *axis = o3_ptr_map_get(self->axes, mlirOperationGetOperand(relation->op, i).ptr);
    if (axis && !link_of(relation, i)) pin(self, axis);
  }
}

/* ---- Forwards: what is known ---- */

static void find_known(o3_channels_t *self) {
  for (size_t i = 0; i < self->order.count; ++i) {
    const o3_channel_relation_t *relation = self->order.items[i];
    for (int64_t c = 0; c < relation->to->count; ++c) {
      int64_t at = relation->to->base + c;
      self->known[at] = o3_channel_fact(self, relation, c, &self->number[at]);
    }
  }
}

/* ---- Backwards: what is needed ---- */

static bool matters(const o3_channels_t *self, const o3_channel_axis_t *axis, int64_t channel) {
  return self->needed[axis->base + channel] && !self->known[axis->base + channel];
}

static void need_along_link(o3_channels_t *self, const o3_channel_relation_t *relation,
                            const o3_channel_link_t *link) {
  for (int64_t c = 0; c < link->from->count; ++c)
    for (int64_t k = 0; k < link->inner; ++k)
      self->needed[link->from->base + c] |= matters(self, relation->to, (c + link->offset) * link->inner + k);
}

static void need_through_weights(o3_channels_t *self, const o3_channel_relation_t *relation) {
  const o3_channel_weights_t *weights = &relation->weights;
  if (!relation->num_links) return;
  const o3_channel_axis_t *from = relation->links[0].from;
  for (int64_t m = 0; m < weights->groups * weights->outputs; ++m) {
    if (!matters(self, relation->to, m)) continue;
    int64_t first = m / weights->outputs * weights->inputs;
    for (int64_t i = 0; i < weights->inputs; ++i) {
      int64_t at = from->base + first + i;
      if (!o3_channel_weight_nonzero(weights, m, i)) continue;
      self->needed[at] = true;
      /* What a window sees beyond the border is zero, not the number: no bias stands for it. */
      self->pinned[at] |= weights->padded && self->known[at] && self->number[at] != 0;
    }
  }
}

static void find_needed(o3_channels_t *self) {
  for (size_t i = self->order.count; i-- > 0;) {
    const o3_channel_relation_t *relation = self->order.items[i];
    if (relation->kind == O3_CHANNELS_PRODUCT) {
      need_through_weights(self, relation);
      continue;
    }
    for (int k = 0; k < relation->num_links; ++k) need_along_link(self, relation, &relation->links[k]);
  }
}

/* ---- Classes ---- */

static int64_t root_of(o3_channels_t *self, int64_t node) {
  while (self->parent[node] != node) node = self->parent[node] = self->parent[self->parent[node]];
  return node;
}

static void join(o3_channels_t *self, int64_t a, int64_t b) {
  self->parent[root_of(self, a)] = root_of(self, b);
}

/* All channels of a group, of both sides. */
static void join_groups(o3_channels_t *self, const o3_channel_relation_t *relation) {
  const o3_channel_weights_t *weights = &relation->weights;
  if (weights->groups == 1 || !relation->num_links) return;
  for (int64_t g = 0; g < weights->groups; ++g) {
    int64_t first = relation->to->base + g * weights->outputs;
    for (int64_t m = 1; m < weights->outputs; ++m) join(self, first, first + m);
    for (int64_t i = 0; i < weights->inputs; ++i)
      join(self, first, relation->links[0].from->base + g * weights->inputs + i);
  }
}

static void join_classes(o3_channels_t *self) {
  for (size_t i = 0; i < self->order.count; ++i) {
    const o3_channel_relation_t *relation = self->order.items[i];
    if (relation->kind == O3_CHANNELS_PRODUCT) join_groups(self, relation);
    for (int k = 0; relation->kind == O3_CHANNELS_MAP && k < relation->num_links; ++k) {
      const o3_channel_link_t *link = &relation->links[k];
      for (int64_t c = 0; c < link->from->count; ++c)
        for (int64_t r = 0; r < link->inner; ++r)
          join(self, link->from->base + c, relation->to->base + (c + link->offset) * link->inner + r);
    }
  }
}

static void keep_one(o3_channels_t *self, int64_t node) { self->kept[root_of(self, node)] = true; }

/* Of a value at least one channel stays, and of the parts of a concatenation whole blocks. */
static bool keep_enough(o3_channels_t *self, const o3_channel_axis_t *axis, int64_t multiple) {
  int64_t kept = o3_channels_count_kept(self, axis);
  bool changed = false;
  if (axis->count % multiple) multiple = 1;
  for (int64_t c = 0; c < axis->count && (kept == 0 || kept % multiple); ++c) {
    if (o3_channels_kept(self, axis, c)) continue;
    keep_one(self, axis->base + c);
    kept = o3_channels_count_kept(self, axis);
    changed = true;
  }
  return changed;
}

static bool keep_more(o3_channels_t *self) {
  bool changed = false;
  for (size_t i = 0; i < self->values.count; ++i) changed |= keep_enough(self, self->values.items[i], 1);
  for (size_t i = 0; i < self->order.count; ++i) {
    const o3_channel_relation_t *relation = self->order.items[i];
    for (int k = 0; relation->joins && k < relation->num_links; ++k)
      changed |= keep_enough(self, relation->links[k].from, JOIN_MULTIPLE);
  }
  return changed;
}

static void find_kept(o3_channels_t *self) {
  for (int64_t node = 0; node < self->count; ++node)
    if (self->pinned[node] || (self->needed[node] && !self->known[node])) keep_one(self, node);
  while (keep_more(self)) continue;
}

/* ---- The analysis ---- */

o3_status_t o3_channels_analyse(o3_arena_t *arena, o3_weights_t *weights, MlirBlock body,
                                o3_channels_t **channels) {
  o3_channels_t *self = O3_ARENA_NEW(arena, o3_channels_t);
  O3_TRY_ALLOC(self);
  *self = (o3_channels_t){.arena = arena,
                          .weights = weights,
                          .axes = o3_ptr_map_create(arena),
                          .relations = o3_ptr_map_create(arena),
                          .order = o3_ptr_vec(arena),
                          .values = o3_ptr_vec(arena)};
  O3_TRY_ALLOC(self->axes && self->relations);
  MlirOperation op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) O3_TRY(add_op(self, op));
  for (size_t i = 0; i < self->order.count; ++i) pin_unlinked(self, self->order.items[i]);
  pin_captured(self, body);
  find_known(self);
  find_needed(self);
  join_classes(self);
  find_kept(self);
  *channels = self;
  return NULL;
}

const o3_channel_axis_t *o3_channels_of(const o3_channels_t *channels, MlirValue value) {
  return o3_ptr_map_get(channels->axes, value.ptr);
}

const o3_channel_relation_t *o3_channels_relation(const o3_channels_t *channels, MlirOperation op) {
  return o3_ptr_map_get(channels->relations, op.ptr);
}

bool o3_channels_known(const o3_channels_t *channels, const o3_channel_axis_t *axis, int64_t channel,
                       float *number) {
  *number = channels->number[axis->base + channel];
  return channels->known[axis->base + channel];
}

bool o3_channels_kept(const o3_channels_t *channels, const o3_channel_axis_t *axis, int64_t channel) {
  int64_t node = axis->base + channel;
  while (channels->parent[node] != node) node = channels->parent[node];
  return channels->kept[node];
}

int64_t o3_channels_count_kept(const o3_channels_t *channels, const o3_channel_axis_t *axis) {
  int64_t kept = 0;
  for (int64_t c = 0; c < axis->count; ++c) kept += o3_channels_kept(channels, axis, c);
  return kept;
}
