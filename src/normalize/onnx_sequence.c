/* Sequences and optionals. They are lists of tensors while compiling and leave no trace in the module, so
 * what depends on a sequence's length or on an index must be known while compiling. */
#include "normalize/nz.h"

enum { MAX_ITEMS = 4096, MAX_SEQUENCES = O3_NODE_MAX_OUTPUTS };

static o3_status_t sequence_input(o3_nz_t *nz, const o3_node_t *node, int index,
                                  const o3_binding_t **sequence) {
  *sequence = o3_node_binding(nz, node, index);
  if (*sequence && (*sequence)->kind == O3_BINDING_SEQUENCE) return NULL;
  return o3_nz_invalid(nz, "input %d is no sequence", index);
}

static o3_status_t bind_sequence(o3_nz_t *nz, o3_node_t *node, int output, int count, const MlirValue *items,
                                 MlirType element) {
  if (count > MAX_ITEMS)
    return o3_nz_unsupported(nz, "a sequence of %d tensors, at most %d are", count, MAX_ITEMS);
  MlirValue *copy = O3_ARENA_ARRAY(nz->arena, MlirValue, (size_t)count + 1);
  O3_TRY_ALLOC(copy);
  for (int i = 0; i < count; ++i) copy[i] = items[i];
  o3_node_bind(
      nz, node, output,
      &(o3_binding_t){.kind = O3_BINDING_SEQUENCE, .count = count, .items = copy, .element = element});
  return NULL;
}

o3_status_t o3_onnx_sequence_construct(o3_nz_t *nz, o3_node_t *node) {
  MlirValue first = o3_node_input(node, 0);
  for (int i = 0; i < node->num_inputs; ++i) {
    if (mlirValueIsNull(node->inputs[i])) return o3_nz_invalid(nz, "input %d is no tensor", i);
  }
  return bind_sequence(nz, node, 0, node->num_inputs, node->inputs, o3_nz_element(nz, first));
}

o3_status_t o3_onnx_sequence_empty(o3_nz_t *nz, o3_node_t *node) {
  return bind_sequence(nz, node, 0, 0, NULL, o3_nz_onnx_type(nz, o3_node_int(node, "dtype", 1)));
}

/* A position that counts from the end when negative; |limit| is the first one that is out of range. */
static o3_status_t position(o3_nz_t *nz, MlirValue value, int count, int limit, int *result) {
  int64_t number;
  if (o3_nz_const_ints(nz, value, "a position in a sequence", &number, 1) != 1) return NULL;
  int64_t positive = number < 0 ? number + count : number;
  if (positive < 0 || positive >= limit)
    return o3_nz_invalid(nz, "position %lld is out of range for a sequence of %d", (long long)number, count);
  *result = (int)positive;
  return NULL;
}

o3_status_t o3_onnx_sequence_at(o3_nz_t *nz, o3_node_t *node) {
  const o3_binding_t *sequence;
  int at = 0;
  O3_TRY(sequence_input(nz, node, 0, &sequence));
  O3_TRY(position(nz, o3_node_input(node, 1), sequence->count, sequence->count, &at));
  if (!o3_nz_failed(nz)) node->outputs[0] = sequence->items[at];
  return NULL;
}

o3_status_t o3_onnx_sequence_insert(o3_nz_t *nz, o3_node_t *node) {
  const o3_binding_t *sequence;
  O3_TRY(sequence_input(nz, node, 0, &sequence));
  int count = sequence->count, at = count;
  MlirValue tensor = o3_node_input(node, 1);
  if (mlirValueIsNull(tensor)) return o3_nz_invalid(nz, "input 1 is no tensor");
  if (o3_node_has_input(node, 2)) O3_TRY(position(nz, o3_node_input(node, 2), count, count + 1, &at));
  MlirValue *items = O3_ARENA_ARRAY(nz->arena, MlirValue, (size_t)count + 1);
  O3_TRY_ALLOC(items);
  for (int i = 0; i <= count; ++i) items[i] = i == at ? tensor : sequence->items[i < at ? i : i - 1];
  return bind_sequence(nz, node, 0, count + 1, items, o3_nz_element(nz, tensor));
}

o3_status_t o3_onnx_sequence_erase(o3_nz_t *nz, o3_node_t *node) {
  const o3_binding_t *sequence;
  O3_TRY(sequence_input(nz, node, 0, &sequence));
  int count = sequence->count, at = count - 1, kept = 0;
  if (!count) return o3_nz_invalid(nz, "there is nothing to erase in an empty sequence");
  if (o3_node_has_input(node, 1)) O3_TRY(position(nz, o3_node_input(node, 1), count, count, &at));
  MlirValue *items = O3_ARENA_ARRAY(nz->arena, MlirValue, (size_t)count + 1);
  O3_TRY_ALLOC(items);
  for (int i = 0; i < count; ++i) {
    if (i != at) items[kept++] = sequence->items[i];
  }
  return bind_sequence(nz, node, 0, kept, items, sequence->element);
}

o3_status_t o3_onnx_sequence_length(o3_nz_t *nz, o3_node_t *node) {
  const o3_binding_t *sequence;
  O3_TRY(sequence_input(nz, node, 0, &sequence));
  node->outputs[0] = o3_nz_scalar(nz, o3_nz_i64(nz), sequence->count);
  return NULL;
}

/* ---- SequenceMap: the body for each position ---- */

static o3_status_t map_position(o3_nz_t *nz, const o3_node_t *node, int at, o3_binding_t *outputs) {
  o3_binding_t inputs[MAX_SEQUENCES];
  int count;
  for (int i = 0; i < node->num_inputs; ++i) {
    const o3_binding_t *binding = o3_node_binding(nz, node, i);
    if (!binding) return o3_nz_invalid(nz, "input %d is missing", i);
    inputs[i] = *binding;
    if (binding->kind != O3_BINDING_SEQUENCE) continue;
    if (at >= binding->count) return o3_nz_invalid(nz, "input %d is shorter than the first sequence", i);
    inputs[i] = (o3_binding_t){.kind = O3_BINDING_TENSOR, .tensor = binding->items[at]};
  }
  O3_TRY(o3_nz_subgraph(nz, node, "body", node->num_inputs, inputs, MAX_SEQUENCES, outputs, &count));
  for (int i = 0; i < count; ++i) {
    if (outputs[i].kind != O3_BINDING_TENSOR)
      return o3_nz_invalid(nz, "output %d of the body is no tensor", i);
  }
  return count == node->num_outputs ? NULL : o3_nz_invalid(nz, "its body gives %d outputs", count);
}

o3_status_t o3_onnx_sequence_map(o3_nz_t *nz, o3_node_t *node) {
  const o3_binding_t *first;
  o3_binding_t outputs[MAX_SEQUENCES];
  O3_TRY(sequence_input(nz, node, 0, &first));
  if (node->num_inputs > MAX_SEQUENCES) return o3_nz_unsupported(nz, "more than %d inputs", MAX_SEQUENCES);
  MlirValue *items = O3_ARENA_ARRAY(nz->arena, MlirValue, (size_t)(first->count * node->num_outputs) + 1);
  O3_TRY_ALLOC(items);
  for (int at = 0; at < first->count; ++at) {
    O3_TRY(map_position(nz, node, at, outputs));
    for (int i = 0; i < node->num_outputs; ++i) items[i * first->count + at] = outputs[i].tensor;
  }
  for (int i = 0; i < node->num_outputs; ++i) {
    MlirType element = first->count ? o3_nz_element(nz, items[i * first->count]) : first->element;
    O3_TRY(bind_sequence(nz, node, i, first->count, items + i * first->count, element));
  }
  return NULL;
}

/* ---- Splitting and joining ---- */

/* Sizes of the parts: equal ones from a scalar (the last may be smaller), as listed by a vector, or 1 each.
 */
static o3_status_t part_sizes(o3_nz_t *nz, MlirValue split, int64_t total, int64_t *sizes, int *count) {
  int64_t step = 1;
  *count = 0;
  if (!mlirValueIsNull(split) && o3_nz_rank(nz, split) == 1) {
    int64_t sum = 0;
    *count = o3_nz_const_ints(nz, split, "the sizes of the parts", sizes, MAX_ITEMS);
    for (int i = 0; i < *count; ++i) sum += sizes[i];
    if (*count < 0 || sum == total) return NULL;
    return o3_nz_invalid(nz, "the parts have %lld entries together, the input %lld", (long long)sum,
                         (long long)total);
  }
  if (!mlirValueIsNull(split) && o3_nz_const_ints(nz, split, "the size of the parts", &step, 1) != 1)
    return NULL;
  if (step < 1) return o3_nz_invalid(nz, "parts of %lld entries", (long long)step);
  if ((total + step - 1) / step > MAX_ITEMS) return o3_nz_unsupported(nz, "more than %d parts", MAX_ITEMS);
  for (int64_t at = 0; at < total; at += step) sizes[(*count)++] = at + step > total ? total - at : step;
  return NULL;
}

o3_status_t o3_onnx_split_to_sequence(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), split = o3_node_input(node, 1);
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", 0), o3_nz_rank(nz, x)), count;
  int64_t total = o3_nz_static_dim(nz, x, axis, "the size that is split into a sequence"), at = 0;
  int64_t *sizes = O3_ARENA_ARRAY(nz->arena, int64_t, MAX_ITEMS);
  MlirValue *items = O3_ARENA_ARRAY(nz->arena, MlirValue, MAX_ITEMS);
  bool squeezed = mlirValueIsNull(split) && o3_node_int(node, "keepdims", 1) == 0;
  O3_TRY_ALLOC(sizes);
  O3_TRY_ALLOC(items);
  O3_TRY(part_sizes(nz, split, total, sizes, &count));
  for (int i = 0; i < count; at += sizes[i++]) {
    items[i] = o3_nz_slice(nz, x, axis, o3_expr_const(nz->context, at), o3_expr_const(nz->context, sizes[i]));
    if (squeezed) items[i] = o3_nz_squeeze(nz, items[i], 1, (int64_t[]){axis});
  }
  return o3_nz_failed(nz) ? NULL : bind_sequence(nz, node, 0, count, items, o3_nz_element(nz, x));
}

o3_status_t o3_onnx_concat_from_sequence(o3_nz_t *nz, o3_node_t *node) {
  const o3_binding_t *sequence;
  bool stacks = o3_node_int(node, "new_axis", 0) != 0;
  O3_TRY(sequence_input(nz, node, 0, &sequence));
  if (!sequence->count) return o3_nz_invalid(nz, "an empty sequence has nothing to join");
  int rank = o3_nz_rank(nz, sequence->items[0]) + (stacks ? 1 : 0);
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", 0), rank);
  MlirValue *items = O3_ARENA_ARRAY(nz->arena, MlirValue, (size_t)sequence->count);
  O3_TRY_ALLOC(items);
  for (int i = 0; i < sequence->count; ++i)
    items[i] = stacks ? o3_nz_unsqueeze(nz, sequence->items[i], 1, (int64_t[]){axis}) : sequence->items[i];
  node->outputs[0] = o3_nz_concat(nz, axis, sequence->count, items);
  return NULL;
}

/* ---- Optionals ---- */

o3_status_t o3_onnx_optional(o3_nz_t *nz, o3_node_t *node) {
  const o3_binding_t *binding = o3_node_binding(nz, node, 0);
  o3_node_bind(nz, node, 0, binding ? binding : &(o3_binding_t){.kind = O3_BINDING_NONE});
  return NULL;
}

o3_status_t o3_onnx_optional_get_element(o3_nz_t *nz, o3_node_t *node) {
  const o3_binding_t *binding = o3_node_binding(nz, node, 0);
  if (!binding || binding->kind == O3_BINDING_NONE) return o3_nz_invalid(nz, "the optional is empty");
  o3_node_bind(nz, node, 0, binding);
  return NULL;
}

o3_status_t o3_onnx_optional_has_element(o3_nz_t *nz, o3_node_t *node) {
  const o3_binding_t *binding = o3_node_binding(nz, node, 0);
  bool has = binding && binding->kind != O3_BINDING_NONE;
  node->outputs[0] = o3_nz_scalar(nz, o3_nz_i1(nz), has ? 1 : 0);
  return NULL;
}
