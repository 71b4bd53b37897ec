/* Nodes become o3.node ops, or what the function that they call consists of. */
#include <string.h>

#include "import/onnx/onnx_graph.h"
#include "import/onnx/onnx_sort.h"
#include "ir/build.h"

/* A name for messages and locations, never empty. Nodes without one are called after their op and place. */
static o3_status_t make_label(const o3_onnx_import_t *import, const o3_onnx_scope_t *scope,
                              const Onnx__NodeProto *node, size_t index, const char **label) {
  o3_arena_t *arena = import->storage.arena;
  *label = *node->name ? o3_arena_printf(arena, "%s%s", scope->frame->prefix, node->name)
                       : o3_arena_printf(arena, "%s%s#%zu", scope->path, node->op_type, index);
  O3_TRY_ALLOC(*label);
  return NULL;
}

/* ---- Operands ---- */

static o3_status_t undefined_error(const char *name) {
  return o3_status_create(O3_STATUS_INVALID_MODEL, "it reads '%s', which nothing defines before it", name);
}

static o3_status_t collect_captures(o3_onnx_node_t *node) {
  o3_arena_t *arena = node->import->storage.arena;
  o3_onnx_names_t all = o3_onnx_names(arena);
  node->captures = o3_onnx_names(arena);
  node->absent = o3_onnx_names(arena);
  O3_TRY(o3_onnx_node_captures(arena, node->proto, &all));
  for (size_t i = 0; i < all.list.count; ++i) {
    const o3_onnx_value_t *value;
    O3_TRY(o3_onnx_scope_read(node->import, node->scope, all.list.items[i], &value));
    if (!value) return undefined_error(all.list.items[i]);
    O3_TRY(o3_onnx_names_add(value->absent ? &node->absent : &node->captures, all.list.items[i]));
  }
  return NULL;
}

/* The values of |names|; an omitted one is null. */
static o3_status_t read_values(const o3_onnx_node_t *node, char *const *names, size_t count,
                               MlirValue *values) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = (MlirValue){0};
    if (!*names[i]) continue;
    const o3_onnx_value_t *value;
    O3_TRY(o3_onnx_scope_read(node->import, node->scope, names[i], &value));
    if (!value) return undefined_error(names[i]);
    values[i] = value->value;
  }
  return NULL;
}

typedef struct operands {
  MlirValue *values; /* inputs that are there, then captures */
  size_t count;
  MlirAttribute present; /* null when no input is omitted */
} operands_t;

/* Moves the values that are there to the front and says which they were. */
static o3_status_t drop_omitted(const o3_onnx_node_t *node, MlirValue *values, size_t count,
                                operands_t *operands) {
  MlirAttribute *flags = O3_ARENA_ARRAY(node->import->storage.arena, MlirAttribute, count);
  O3_TRY_ALLOC(flags);
  MlirContext context = node->import->storage.context;
  for (size_t i = 0; i < count; ++i) {
    bool there = !mlirValueIsNull(values[i]);
    flags[i] = o3_attr_bool(context, there);
    if (there) values[operands->count++] = values[i];
  }
  if (operands->count < count) operands->present = mlirArrayAttrGet(context, (intptr_t)count, flags);
  return NULL;
}

static o3_status_t read_operands(const o3_onnx_node_t *node, operands_t *operands) {
  size_t num_inputs = node->proto->n_input, num_captures = node->captures.list.count;
  MlirValue *values = O3_ARENA_ARRAY(node->import->storage.arena, MlirValue, num_inputs + num_captures);
  O3_TRY_ALLOC(values);
  *operands = (operands_t){.values = values, .present = mlirAttributeGetNull()};
  O3_TRY(read_values(node, node->proto->input, num_inputs, values));
  O3_TRY(drop_omitted(node, values, num_inputs, operands));
  O3_TRY(read_values(node, (char *const *)node->captures.list.items, num_captures, values + operands->count));
  operands->count += num_captures;
  return NULL;
}

/* ---- Results ---- */

static o3_status_t output_names(const o3_onnx_node_t *node, MlirAttribute *names) {
  size_t count = node->proto->n_output;
  MlirAttribute *items = O3_ARENA_ARRAY(node->import->storage.arena, MlirAttribute, count);
  O3_TRY_ALLOC(items);
  MlirContext context = node->import->storage.context;
  for (size_t i = 0; i < count; ++i) items[i] = o3_attr_string(context, node->proto->output[i]);
  *names = mlirArrayAttrGet(context, (intptr_t)count, items);
  return NULL;
}

static o3_status_t define_results(const o3_onnx_node_t *node, MlirOperation op) {
  for (size_t i = 0; i < node->proto->n_output; ++i) {
    const char *name = node->proto->output[i];
    if (*name)
      O3_TRY(o3_onnx_scope_define_value(node->import, node->scope, name,
                                        mlirOperationGetResult(op, (intptr_t)i)));
  }
  return NULL;
}

static o3_status_t result_types(const o3_onnx_node_t *node, MlirType **types) {
  size_t count = node->proto->n_output;
  *types = O3_ARENA_ARRAY(node->import->storage.arena, MlirType, count);
  O3_TRY_ALLOC(*types);
  for (size_t i = 0; i < count; ++i) (*types)[i] = node->import->value_type;
  return NULL;
}

/* ---- The op ---- */

static o3_status_t build_op(const o3_onnx_node_t *node, int64_t opset) {
  const Onnx__NodeProto *proto = node->proto;
  MlirContext context = node->import->storage.context;
  operands_t operands = {0};
  MlirAttribute attributes, outputs, captures = mlirAttributeGetNull();
  MlirType *types;
  O3_TRY(read_operands(node, &operands));
  O3_TRY(o3_onnx_attributes_import(node, &attributes));
  O3_TRY(output_names(node, &outputs));
  O3_TRY(result_types(node, &types));
  if (node->captures.list.count) captures = o3_attr_i64(context, (int64_t)node->captures.list.count);
  const o3_attr_t attrs[] = {
      {"op", o3_attr_string(context, proto->op_type)},
      {"domain", o3_attr_string(context, node->domain)},
      {"opset", o3_attr_i64(context, opset)},
      {"name", o3_attr_string(context, node->label)},
      {"present", operands.present},
      {"captures", captures},
      {"outputs", outputs},
      {"attrs", attributes},
  };
  o3_op_spec_t spec = {.name = "o3.node",
                       .num_operands = (int)operands.count,
                       .operands = operands.values,
                       .num_results = (int)proto->n_output,
                       .results = types,
                       .num_attrs = sizeof(attrs) / sizeof(attrs[0]),
                       .attrs = attrs};
  o3_builder_t builder = o3_builder_at_end(node->scope->block, node->location);
  return define_results(node, o3_build(&builder, &spec));
}

static o3_status_t build_operator(o3_onnx_node_t *node) {
  int64_t opset = o3_onnx_opset_get(node->scope->frame, node->domain);
  if (!opset)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "it is of domain '%s', of which no opset is imported",
                            *node->domain ? node->domain : "ai.onnx");
  O3_TRY(collect_captures(node));
  return build_op(node, opset);
}

static o3_status_t build_node(o3_onnx_node_t *node) {
  if (node->scope->frame->function && ++node->import->num_inlined > O3_ONNX_MAX_INLINED)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "inlining the model's functions makes more than %d nodes",
                            O3_ONNX_MAX_INLINED);
  if (!*node->proto->op_type) return o3_status_create(O3_STATUS_INVALID_MODEL, "it has no op_type");
  const o3_onnx_function_t *function;
  O3_TRY(o3_onnx_function_find(node, &function));
  return function ? o3_onnx_function_inline(node, function) : build_operator(node);
}

o3_status_t o3_onnx_nodes_build(o3_onnx_import_t *import, o3_onnx_scope_t *scope,
                                Onnx__NodeProto *const *protos, size_t count) {
  o3_arena_t *arena = import->storage.arena;
  const char **labels = O3_ARENA_ARRAY(arena, const char *, count);
  size_t *order = O3_ARENA_ARRAY(arena, size_t, count);
  O3_TRY_ALLOC(labels);
  O3_TRY_ALLOC(order);
  for (size_t i = 0; i < count; ++i) O3_TRY(make_label(import, scope, protos[i], i, &labels[i]));
  O3_TRY(o3_onnx_sort(arena, protos, count, labels, order));
  for (size_t i = 0; i < count; ++i) {
    size_t index = order[i];
    o3_onnx_node_t node = {.import = import,
                           .scope = scope,
                           .proto = protos[index],
                           .label = labels[index],
                           .domain = o3_onnx_domain(protos[index]->domain),
                           .location = o3_onnx_location(import, labels[index], index + 1)};
    O3_TRY_CONTEXT(build_node(&node), "node '%s' (%s)", node.label, node.proto->op_type);
  }
  return NULL;
}
