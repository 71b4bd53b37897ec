/* ONNX asks for sorted nodes, and not all writers obey. A depth-first walk in the file's order leaves a
 * sorted list as it is. Names that no node defines play no part: whether they exist is found when the node is
 * built. */
#include "import/onnx/onnx_sort.h"

#include <string.h>

/* ---- Captures ---- */

/* The names defined in a graph and in those around it, up to the node's own. */
typedef struct locals {
  o3_str_map_t *names;
  const struct locals *outer;
} locals_t;

static bool is_local(const locals_t *locals, const char *name) {
  for (; locals; locals = locals->outer)
    if (o3_str_map_get(locals->names, name, strlen(name))) return true;
  return false;
}

static o3_status_t add_local(const locals_t *locals, const char *name) {
  O3_TRY_ALLOC(o3_str_map_put(locals->names, name, strlen(name), locals->names));
  return NULL;
}

static o3_status_t collect_locals(const Onnx__GraphProto *graph, const locals_t *locals) {
  for (size_t i = 0; i < graph->n_input; ++i) O3_TRY(add_local(locals, graph->input[i]->name));
  for (size_t i = 0; i < graph->n_initializer; ++i) O3_TRY(add_local(locals, graph->initializer[i]->name));
  for (size_t i = 0; i < graph->n_sparse_initializer; ++i)
    if (graph->sparse_initializer[i]->values)
      O3_TRY(add_local(locals, graph->sparse_initializer[i]->values->name));
  for (size_t i = 0; i < graph->n_node; ++i)
    for (size_t k = 0; k < graph->node[i]->n_output; ++k)
      O3_TRY(add_local(locals, graph->node[i]->output[k]));
  return NULL;
}

static o3_status_t add_if_free(const locals_t *locals, const char *name, o3_onnx_names_t *names) {
  return *name && !is_local(locals, name) ? o3_onnx_names_add(names, name) : NULL;
}

static o3_status_t node_captures(o3_arena_t *arena, const Onnx__NodeProto *node, const locals_t *locals,
                                 o3_onnx_names_t *names);

static o3_status_t graph_captures(o3_arena_t *arena, const Onnx__GraphProto *graph, const locals_t *outer,
                                  o3_onnx_names_t *names) {
  locals_t locals = {o3_str_map_create(arena), outer};
  O3_TRY_ALLOC(locals.names);
  O3_TRY(collect_locals(graph, &locals));
  for (size_t i = 0; i < graph->n_node; ++i) {
    const Onnx__NodeProto *node = graph->node[i];
    for (size_t k = 0; k < node->n_input; ++k) O3_TRY(add_if_free(&locals, node->input[k], names));
    O3_TRY(node_captures(arena, node, &locals, names));
  }
  for (size_t i = 0; i < graph->n_output; ++i) O3_TRY(add_if_free(&locals, graph->output[i]->name, names));
  return NULL;
}

static o3_status_t node_captures(o3_arena_t *arena, const Onnx__NodeProto *node, const locals_t *locals,
                                 o3_onnx_names_t *names) {
  for (size_t i = 0; i < node->n_attribute; ++i) {
    const Onnx__AttributeProto *attribute = node->attribute[i];
    if (attribute->g) O3_TRY(graph_captures(arena, attribute->g, locals, names));
    for (size_t k = 0; k < attribute->n_graphs; ++k)
      O3_TRY(graph_captures(arena, attribute->graphs[k], locals, names));
  }
  return NULL;
}

o3_status_t o3_onnx_node_captures(o3_arena_t *arena, const Onnx__NodeProto *node, o3_onnx_names_t *names) {
  return node_captures(arena, node, NULL, names);
}

/* ---- Order ---- */

typedef enum mark { UNSEEN, OPEN, DONE } mark_t;

typedef struct sort_node {
  mark_t mark;
  size_t next, num_reads; /* the next of |reads| to visit */
  struct sort_node **reads;
} sort_node_t;

typedef struct sorter {
  o3_arena_t *arena;
  Onnx__NodeProto *const *protos;
  sort_node_t *nodes;
  o3_str_map_t *producers; /* name -> sort_node_t * */
} sorter_t;

static o3_status_t collect_producers(sorter_t *sorter, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const Onnx__NodeProto *proto = sorter->protos[i];
    for (size_t k = 0; k < proto->n_output; ++k) {
      const char *name = proto->output[k];
      if (*name) O3_TRY_ALLOC(o3_str_map_put(sorter->producers, name, strlen(name), &sorter->nodes[i]));
    }
  }
  return NULL;
}

static void add_read(const sorter_t *sorter, sort_node_t *node, const char *name) {
  sort_node_t *producer = *name ? o3_str_map_get(sorter->producers, name, strlen(name)) : NULL;
  if (producer) node->reads[node->num_reads++] = producer;
}

static o3_status_t collect_reads(sorter_t *sorter, size_t index) {
  const Onnx__NodeProto *proto = sorter->protos[index];
  sort_node_t *node = &sorter->nodes[index];
  o3_onnx_names_t captures = o3_onnx_names(sorter->arena);
  O3_TRY(o3_onnx_node_captures(sorter->arena, proto, &captures));
  node->reads = O3_ARENA_ARRAY(sorter->arena, sort_node_t *, proto->n_input + captures.list.count);
  O3_TRY_ALLOC(node->reads);
  for (size_t k = 0; k < proto->n_input; ++k) add_read(sorter, node, proto->input[k]);
  for (size_t k = 0; k < captures.list.count; ++k) add_read(sorter, node, captures.list.items[k]);
  return NULL;
}

static o3_status_t cycle_error(const sorter_t *sorter, const char *const *labels, const sort_node_t *reader,
                               const sort_node_t *read) {
  size_t from = (size_t)(reader - sorter->nodes), to = (size_t)(read - sorter->nodes);
  return o3_status_create(
      O3_STATUS_INVALID_MODEL,
      "the graph has a cycle: node '%s' (%s) reads a result of node '%s' (%s), which needs it first",
      labels[from], sorter->protos[from]->op_type, labels[to], sorter->protos[to]->op_type);
}

/* Appends |root|, which is unseen, and what it needs. The stack is explicit: a chain of nodes can be as long
 * as the model. */
static o3_status_t visit(sorter_t *sorter, sort_node_t *root, sort_node_t **stack, const char *const *labels,
                         size_t *order, size_t *num_ordered) {
  size_t depth = 0;
  stack[depth++] = root;
  root->mark = OPEN;
  while (depth > 0) {
    sort_node_t *node = stack[depth - 1];
    if (node->next == node->num_reads) {
      node->mark = DONE;
      order[(*num_ordered)++] = (size_t)(node - sorter->nodes);
      --depth;
      continue;
    }
    sort_node_t *read = node->reads[node->next++];
    if (read->mark == OPEN) return cycle_error(sorter, labels, node, read);
    if (read->mark == DONE) continue;
    read->mark = OPEN;
    stack[depth++] = read;
  }
  return NULL;
}

o3_status_t o3_onnx_sort(o3_arena_t *arena, Onnx__NodeProto *const *nodes, size_t count,
                         const char *const *labels, size_t *order) {
  sorter_t sorter = {arena, nodes, O3_ARENA_ARRAY(arena, sort_node_t, count), o3_str_map_create(arena)};
  sort_node_t **stack = O3_ARENA_ARRAY(arena, sort_node_t *, count);
  O3_TRY_ALLOC(sorter.nodes);
  O3_TRY_ALLOC(stack);
  O3_TRY_ALLOC(sorter.producers);
  O3_TRY(collect_producers(&sorter, count));
  for (size_t i = 0; i < count; ++i) O3_TRY(collect_reads(&sorter, i));
  size_t num_ordered = 0;
  for (size_t i = 0; i < count; ++i)
    if (sorter.nodes[i].mark == UNSEEN)
      O3_TRY(visit(&sorter, &sorter.nodes[i], stack, labels, order, &num_ordered));
  return NULL;
}
