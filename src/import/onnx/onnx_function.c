/* Model-local functions are inlined while the graph is built: a call's node is never made, the body's nodes
 * are, in a scope where formal inputs stand for the call's operands and parameters for its attributes. */
#include <string.h>

#include "import/onnx/onnx_graph.h"

/* ---- The table ---- */

static o3_status_t function_key(o3_arena_t *arena, const char *domain, const char *name, const char *overload,
                                const char **key) {
  *key = o3_arena_printf(arena, "%s\n%s\n%s", o3_onnx_domain(domain), name, overload);
  O3_TRY_ALLOC(*key);
  return NULL;
}

o3_status_t o3_onnx_opsets_read(o3_arena_t *arena, Onnx__OperatorSetIdProto *const *imports, size_t count,
                                o3_str_map_t **opsets) {
  *opsets = o3_str_map_create(arena);
  O3_TRY_ALLOC(*opsets);
  for (size_t i = 0; i < count; ++i) {
    const char *domain = o3_onnx_domain(imports[i]->domain);
    const char *shown = *domain ? domain : "ai.onnx";
    int64_t version = imports[i]->version;
    const int64_t *before = o3_str_map_get(*opsets, domain, strlen(domain));
    if (before && *before != version) /* merged models list the same one twice */
      return o3_status_create(O3_STATUS_INVALID_MODEL, "opset domain '%s' is imported twice: %lld and %lld",
                              shown, (long long)*before, (long long)version);
    if (version <= 0)
      return o3_status_create(O3_STATUS_INVALID_MODEL, "opset %lld of domain '%s' is no version",
                              (long long)version, shown);
    if (!*domain && (version < O3_ONNX_MIN_OPSET || version > O3_ONNX_MAX_OPSET))
      return o3_status_create(O3_STATUS_UNSUPPORTED, "opset %lld of domain '%s', %d to %d are supported",
                              (long long)version, shown, O3_ONNX_MIN_OPSET, O3_ONNX_MAX_OPSET);
    O3_TRY_ALLOC(o3_str_map_put(*opsets, domain, strlen(domain), &imports[i]->version));
  }
  return NULL;
}

static o3_status_t read_function(o3_onnx_import_t *import, const Onnx__FunctionProto *proto) {
  o3_arena_t *arena = import->storage.arena;
  const char *key;
  O3_TRY(function_key(arena, proto->domain, proto->name, proto->overload, &key));
  if (o3_str_map_get(import->functions, key, strlen(key)))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "it is defined twice");
  o3_onnx_function_t *function = O3_ARENA_NEW(arena, o3_onnx_function_t);
  O3_TRY_ALLOC(function);
  function->proto = proto;
  O3_TRY(o3_onnx_opsets_read(arena, proto->opset_import, proto->n_opset_import, &function->opsets));
  O3_TRY_ALLOC(o3_str_map_put(import->functions, key, strlen(key), function));
  return NULL;
}

o3_status_t o3_onnx_functions_read(o3_onnx_import_t *import, const Onnx__ModelProto *model) {
  for (size_t i = 0; i < model->n_functions; ++i)
    O3_TRY_CONTEXT(read_function(import, model->functions[i]), "function '%s' of domain '%s'",
                   model->functions[i]->name, model->functions[i]->domain);
  return NULL;
}

o3_status_t o3_onnx_function_find(const o3_onnx_node_t *node, const o3_onnx_function_t **function) {
  const o3_onnx_import_t *import = node->import;
  *function = NULL;
  if (o3_str_map_count(import->functions) == 0) return NULL;
  const char *key;
  O3_TRY(
      function_key(import->storage.arena, node->domain, node->proto->op_type, node->proto->overload, &key));
  *function = o3_str_map_get(import->functions, key, strlen(key));
  return NULL;
}

/* ---- Parameters ---- */

enum { ATTRIBUTE_GRAPH = 5, ATTRIBUTE_GRAPHS = 10 };

static o3_status_t bind(o3_str_map_t *attributes, const char *name, const Onnx__AttributeProto *attribute) {
  /* A graph would read names of the caller from inside the body. */
  if (attribute->type == ATTRIBUTE_GRAPH || attribute->type == ATTRIBUTE_GRAPHS)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "it is a call of a function with the graph attribute '%s'",
                            name);
  O3_TRY_ALLOC(o3_str_map_put(attributes, name, strlen(name), (void *)(uintptr_t)attribute));
  return NULL;
}

static bool has_parameter(const Onnx__FunctionProto *function, const char *name) {
  for (size_t i = 0; i < function->n_attribute; ++i)
    if (!strcmp(function->attribute[i], name)) return true;
  for (size_t i = 0; i < function->n_attribute_proto; ++i)
    if (!strcmp(function->attribute_proto[i]->name, name)) return true;
  return false;
}

/* Defaults first, the call's own over them. */
static o3_status_t bind_attributes(const o3_onnx_node_t *node, const Onnx__FunctionProto *function,
                                   o3_str_map_t **attributes) {
  *attributes = o3_str_map_create(node->import->storage.arena);
  O3_TRY_ALLOC(*attributes);
  for (size_t i = 0; i < function->n_attribute_proto; ++i)
    O3_TRY(bind(*attributes, function->attribute_proto[i]->name, function->attribute_proto[i]));
  for (size_t i = 0; i < node->proto->n_attribute; ++i) {
    const Onnx__AttributeProto *given = node->proto->attribute[i], *resolved;
    O3_TRY(o3_onnx_attribute_resolve(node->scope->frame, given, &resolved));
    if (!has_parameter(function, given->name))
      return o3_status_create(O3_STATUS_INVALID_MODEL, "function '%s' has no attribute '%s'", function->name,
                              given->name);
    if (resolved) O3_TRY(bind(*attributes, given->name, resolved));
  }
  return NULL;
}

/* ---- Inlining ---- */

static o3_status_t check_call(const o3_onnx_node_t *node, const o3_onnx_function_t *function) {
  const Onnx__FunctionProto *proto = function->proto;
  for (const o3_onnx_frame_t *frame = node->scope->frame; frame; frame = frame->caller)
    if (frame->function == function)
      return o3_status_create(O3_STATUS_INVALID_MODEL, "function '%s' of domain '%s' calls itself",
                              proto->name, proto->domain);
  if (node->proto->n_input > proto->n_input)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "it has %zu inputs, function '%s' takes %zu",
                            node->proto->n_input, proto->name, proto->n_input);
  if (node->proto->n_output > proto->n_output)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "it has %zu outputs, function '%s' gives %zu",
                            node->proto->n_output, proto->name, proto->n_output);
  return NULL;
}

static o3_status_t define_inputs(const o3_onnx_node_t *node, const Onnx__FunctionProto *function,
                                 o3_onnx_scope_t *body) {
  for (size_t i = 0; i < function->n_input; ++i) {
    const char *name = i < node->proto->n_input ? node->proto->input[i] : "";
    o3_onnx_value_t none = {.absent = true};
    const o3_onnx_value_t *value = &none;
    if (*name) O3_TRY(o3_onnx_scope_read(node->import, node->scope, name, &value));
    if (!value)
      return o3_status_create(O3_STATUS_INVALID_MODEL, "it reads '%s', which nothing defines before it",
                              name);
    O3_TRY_CONTEXT(o3_onnx_scope_define(node->import, body, function->input[i], *value), "function input");
  }
  return NULL;
}

static o3_status_t define_outputs(const o3_onnx_node_t *node, const Onnx__FunctionProto *function,
                                  o3_onnx_scope_t *body) {
  for (size_t i = 0; i < node->proto->n_output; ++i) {
    const char *name = node->proto->output[i];
    if (!*name) continue;
    const o3_onnx_value_t *value;
    O3_TRY(o3_onnx_scope_read(node->import, body, function->output[i], &value));
    if (!value)
      return o3_status_create(O3_STATUS_INVALID_MODEL, "output '%s' of function '%s' is defined by nothing",
                              function->output[i], function->name);
    O3_TRY(o3_onnx_scope_define(node->import, node->scope, name, *value));
  }
  return NULL;
}

o3_status_t o3_onnx_function_inline(const o3_onnx_node_t *node, const o3_onnx_function_t *function) {
  const Onnx__FunctionProto *proto = function->proto;
  O3_TRY(check_call(node, function));
  o3_onnx_frame_t frame = {.caller = node->scope->frame, .function = function, .opsets = function->opsets};
  O3_TRY(bind_attributes(node, proto, &frame.attributes));
  o3_onnx_scope_t body;
  O3_TRY(o3_onnx_scope_init(node->import, node->scope, &body));
  frame.prefix = o3_arena_printf(node->import->storage.arena, "%s/", node->label);
  O3_TRY_ALLOC(frame.prefix);
  body.frame = &frame;
  body.path = frame.prefix;
  body.block = node->scope->block;
  body.last_initializer = node->scope->last_initializer;
  O3_TRY(define_inputs(node, proto, &body));
  O3_TRY(o3_onnx_nodes_build(node->import, &body, proto->node, proto->n_node));
  return define_outputs(node, proto, &body);
}
