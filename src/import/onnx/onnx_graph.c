/* A graph becomes a function: the model's @main, those in attributes private ones, which take what they read
 * from outside as further arguments, for a function sees nothing around it. */
#include "import/onnx/onnx_graph.h"

#include <string.h>

#include "import/onnx/onnx_type.h"
#include "ir/build.h"

/* A function in the making. */
typedef struct func {
  o3_onnx_import_t *import;
  o3_onnx_scope_t *scope;
  const Onnx__GraphProto *graph;
  const char *name;
  const o3_onnx_node_t *owner; /* of a graph in an attribute; NULL for @main */
  size_t num_args;
  const char **arg_names;
  MlirAttribute *arg_attrs;
} func_t;

/* ---- Arguments ---- */

/* The names of the graph's initializers. */
static o3_status_t initialized_names(const func_t *func, o3_str_map_t **names) {
  const Onnx__GraphProto *graph = func->graph;
  *names = o3_str_map_create(func->import->storage.arena);
  O3_TRY_ALLOC(*names);
  for (size_t i = 0; i < graph->n_initializer; ++i) {
    const char *name = graph->initializer[i]->name;
    O3_TRY_ALLOC(o3_str_map_put(*names, name, strlen(name), *names));
  }
  for (size_t i = 0; i < graph->n_sparse_initializer; ++i) {
    const Onnx__TensorProto *values = graph->sparse_initializer[i]->values;
    if (values) O3_TRY_ALLOC(o3_str_map_put(*names, values->name, strlen(values->name), *names));
  }
  return NULL;
}

static o3_status_t check_info(const Onnx__ValueInfoProto *info, const char *what, size_t index) {
  if (*info->name) return NULL;
  return o3_status_create(O3_STATUS_INVALID_MODEL, "graph %s %zu has no name", what, index);
}

static o3_status_t info_attrs(const func_t *func, const Onnx__ValueInfoProto *info, MlirAttribute *attrs) {
  o3_onnx_import_t *import = func->import;
  return o3_onnx_value_info_import(import->storage.context, import->storage.arena, import->dim_symbols, info,
                                   attrs);
}

static o3_status_t add_input(func_t *func, const Onnx__ValueInfoProto *info) {
  func->arg_names[func->num_args] = info->name;
  O3_TRY_CONTEXT(info_attrs(func, info, &func->arg_attrs[func->num_args]), "graph input");
  ++func->num_args;
  return NULL;
}

/* An input of the main graph that has an initializer is a constant: models before IR version 4 list all their
 * weights so, and later ones give the input a default. */
static o3_status_t add_inputs(func_t *func) {
  const Onnx__GraphProto *graph = func->graph;
  o3_str_map_t *initialized;
  O3_TRY(initialized_names(func, &initialized));
  for (size_t i = 0; i < graph->n_input; ++i) {
    const Onnx__ValueInfoProto *info = graph->input[i];
    O3_TRY(check_info(info, "input", i));
    if (!func->owner && o3_str_map_get(initialized, info->name, strlen(info->name))) continue;
    O3_TRY(add_input(func, info));
  }
  return NULL;
}

static o3_status_t add_captures(func_t *func) {
  size_t count = func->owner ? func->owner->captures.list.count : 0;
  for (size_t i = 0; i < count; ++i) {
    Onnx__ValueInfoProto info = ONNX__VALUE_INFO_PROTO__INIT;
    info.name = func->owner->captures.list.items[i];
    O3_TRY(add_input(func, &info));
  }
  return NULL;
}

static o3_status_t collect_args(func_t *func) {
  const Onnx__GraphProto *graph = func->graph;
  o3_arena_t *arena = func->import->storage.arena;
  size_t most = graph->n_input + (func->owner ? func->owner->captures.list.count : 0);
  func->arg_names = O3_ARENA_ARRAY(arena, const char *, most);
  func->arg_attrs = O3_ARENA_ARRAY(arena, MlirAttribute, most);
  O3_TRY_ALLOC(func->arg_names);
  O3_TRY_ALLOC(func->arg_attrs);
  o3_str_map_t *symbols = func->import->dim_symbols;
  for (size_t i = 0; i < graph->n_input; ++i) O3_TRY(o3_onnx_value_info_symbols(symbols, graph->input[i]));
  for (size_t i = 0; i < graph->n_output; ++i) O3_TRY(o3_onnx_value_info_symbols(symbols, graph->output[i]));
  O3_TRY(add_inputs(func));
  return add_captures(func);
}

/* ---- The function ---- */

static o3_status_t result_attrs(const func_t *func, MlirAttribute *attrs) {
  size_t count = func->graph->n_output;
  if (count == 0)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "graph '%s' has no outputs", func->graph->name);
  MlirAttribute *items = O3_ARENA_ARRAY(func->import->storage.arena, MlirAttribute, count);
  O3_TRY_ALLOC(items);
  for (size_t i = 0; i < count; ++i) {
    O3_TRY(check_info(func->graph->output[i], "output", i));
    O3_TRY_CONTEXT(info_attrs(func, func->graph->output[i], &items[i]), "graph output");
  }
  *attrs = mlirArrayAttrGet(func->import->storage.context, (intptr_t)count, items);
  return NULL;
}

static void make_func_op(const func_t *func, const MlirType *types, MlirAttribute results,
                         MlirRegion region) {
  MlirContext context = func->import->storage.context;
  MlirType type =
      mlirFunctionTypeGet(context, (intptr_t)func->num_args, types, (intptr_t)func->graph->n_output, types);
  MlirAttribute none = mlirAttributeGetNull();
  const o3_attr_t attrs[] = {
      {"sym_name", o3_attr_string(context, func->name)},
      {"sym_visibility", func->owner ? o3_attr_string(context, "private") : none},
      {"function_type", o3_attr_type(type)},
      {"arg_attrs",
       func->num_args ? mlirArrayAttrGet(context, (intptr_t)func->num_args, func->arg_attrs) : none},
      {"res_attrs", results},
  };
  o3_op_spec_t spec = {.name = "func.func",
                       .num_attrs = sizeof(attrs) / sizeof(attrs[0]),
                       .attrs = attrs,
                       .num_regions = 1,
                       .regions = &region};
  const char *label = func->owner ? func->name : func->graph->name;
  o3_builder_t builder =
      o3_builder_at_end(mlirModuleGetBody(func->import->module), o3_onnx_location(func->import, label, 0));
  o3_build(&builder, &spec);
}

/* All arguments and results are of one type, so one array serves both. */
static o3_status_t create_func(func_t *func) {
  MlirAttribute results;
  O3_TRY(result_attrs(func, &results));
  size_t num_results = func->graph->n_output,
         most = func->num_args > num_results ? func->num_args : num_results;
  MlirType *types = O3_ARENA_ARRAY(func->import->storage.arena, MlirType, most);
  MlirLocation *locations = O3_ARENA_ARRAY(func->import->storage.arena, MlirLocation, func->num_args);
  O3_TRY_ALLOC(types);
  O3_TRY_ALLOC(locations);
  for (size_t i = 0; i < most; ++i) types[i] = func->import->value_type;
  for (size_t i = 0; i < func->num_args; ++i)
    locations[i] = o3_onnx_location(func->import, func->arg_names[i], 0);
  func->scope->block = mlirBlockCreate((intptr_t)func->num_args, types, locations);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, func->scope->block);
  make_func_op(func, types, results, region);
  return NULL;
}

static o3_status_t define_initializer(const func_t *func, const char *name, o3_onnx_value_t value) {
  if (!*name) return o3_status_create(O3_STATUS_INVALID_MODEL, "an initializer has no name");
  O3_TRY_CONTEXT(o3_onnx_scope_define(func->import, func->scope, name, value), "initializer");
  return NULL;
}

static o3_status_t define_names(const func_t *func) {
  const Onnx__GraphProto *graph = func->graph;
  for (size_t i = 0; i < func->num_args; ++i) {
    MlirValue value = mlirBlockGetArgument(func->scope->block, (intptr_t)i);
    O3_TRY_CONTEXT(o3_onnx_scope_define_value(func->import, func->scope, func->arg_names[i], value),
                   "graph input");
  }
  size_t num_absent = func->owner ? func->owner->absent.list.count : 0;
  for (size_t i = 0; i < num_absent; ++i)
    O3_TRY(o3_onnx_scope_define(func->import, func->scope, func->owner->absent.list.items[i],
                                (o3_onnx_value_t){.absent = true}));
  for (size_t i = 0; i < graph->n_initializer; ++i)
    O3_TRY(define_initializer(func, graph->initializer[i]->name,
                              (o3_onnx_value_t){.initializer = graph->initializer[i]}));
  for (size_t i = 0; i < graph->n_sparse_initializer; ++i) {
    const Onnx__SparseTensorProto *sparse = graph->sparse_initializer[i];
    O3_TRY(define_initializer(func, sparse->values ? sparse->values->name : "",
                              (o3_onnx_value_t){.sparse = sparse}));
  }
  return NULL;
}

static o3_status_t build_return(const func_t *func) {
  size_t count = func->graph->n_output;
  MlirValue *values = O3_ARENA_ARRAY(func->import->storage.arena, MlirValue, count);
  O3_TRY_ALLOC(values);
  for (size_t i = 0; i < count; ++i) {
    const char *name = func->graph->output[i]->name;
    const o3_onnx_value_t *value;
    O3_TRY(o3_onnx_scope_read(func->import, func->scope, name, &value));
    if (!value || value->absent)
      return o3_status_create(O3_STATUS_INVALID_MODEL, "graph output '%s' is defined by nothing", name);
    values[i] = value->value;
  }
  o3_builder_t builder =
      o3_builder_at_end(func->scope->block, o3_onnx_location(func->import, func->graph->name, 0));
  o3_build0(&builder, "func.return", (int)count, values);
  return NULL;
}

static o3_status_t build_func(func_t *func) {
  O3_TRY(collect_args(func));
  O3_TRY(create_func(func));
  O3_TRY(define_names(func));
  O3_TRY(o3_onnx_nodes_build(func->import, func->scope, func->graph->node, func->graph->n_node));
  return build_return(func);
}

static o3_status_t take_symbol(o3_onnx_import_t *import, const char *name, const char **symbol) {
  *symbol = name;
  for (size_t i = o3_str_map_count(import->func_names);
       *symbol && o3_str_map_get(import->func_names, *symbol, strlen(*symbol)); ++i)
    *symbol = o3_arena_printf(import->storage.arena, "%s_%zu", name, i);
  O3_TRY_ALLOC(*symbol);
  O3_TRY_ALLOC(o3_str_map_put(import->func_names, *symbol, strlen(*symbol), import));
  return NULL;
}

o3_status_t o3_onnx_main_build(o3_onnx_import_t *import, const o3_onnx_frame_t *frame,
                               const Onnx__GraphProto *graph) {
  o3_onnx_scope_t scope;
  func_t func = {.import = import, .scope = &scope, .graph = graph};
  O3_TRY(o3_onnx_scope_init(import, NULL, &scope));
  scope.frame = frame;
  O3_TRY(take_symbol(import, "main", &func.name));
  return build_func(&func);
}

o3_status_t o3_onnx_subgraph_build(const o3_onnx_node_t *node, const char *attribute,
                                   const Onnx__GraphProto *graph, const char **symbol) {
  o3_onnx_import_t *import = node->import;
  o3_onnx_scope_t scope;
  func_t func = {.import = import, .scope = &scope, .graph = graph, .owner = node};
  O3_TRY(o3_onnx_scope_init(import, node->scope, &scope));
  scope.path = o3_arena_printf(import->storage.arena, "%s/%s/", node->label, attribute);
  const char *name = o3_arena_printf(import->storage.arena, "%s.%s", node->label, attribute);
  O3_TRY_ALLOC(scope.path);
  O3_TRY_ALLOC(name);
  O3_TRY(take_symbol(import, name, &func.name));
  *symbol = func.name;
  return build_func(&func);
}
