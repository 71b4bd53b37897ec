#include "import/onnx/onnx_scope.h"

#include <string.h>

#include "ir/build.h"

o3_onnx_names_t o3_onnx_names(o3_arena_t *arena) { return (o3_onnx_names_t){.list = o3_ptr_vec(arena)}; }

o3_status_t o3_onnx_names_add(o3_onnx_names_t *names, const char *name) {
  size_t length = strlen(name);
  if (!names->seen) names->seen = o3_str_map_create(names->list.arena);
  O3_TRY_ALLOC(names->seen);
  if (o3_str_map_get(names->seen, name, length)) return NULL;
  O3_TRY_ALLOC(o3_ptr_vec_push(&names->list, (void *)(uintptr_t)name));
  O3_TRY_ALLOC(o3_str_map_put(names->seen, name, length, names));
  return NULL;
}

const char *o3_onnx_domain(const char *domain) { return strcmp(domain, "ai.onnx") ? domain : ""; }

int64_t o3_onnx_opset_get(const o3_onnx_frame_t *frame, const char *domain) {
  const int64_t *version = o3_str_map_get(frame->opsets, domain, strlen(domain));
  return version ? *version : 0;
}

o3_status_t o3_onnx_scope_init(o3_onnx_import_t *import, const o3_onnx_scope_t *outer,
                               o3_onnx_scope_t *scope) {
  o3_arena_t *arena = import->storage.arena;
  *scope = (o3_onnx_scope_t){.values = o3_str_map_create(arena),
                             .last_initializer = O3_ARENA_NEW(arena, MlirOperation),
                             .frame = outer ? outer->frame : NULL,
                             .path = "",
                             .depth = outer ? outer->depth + 1 : 1};
  O3_TRY_ALLOC(scope->values);
  O3_TRY_ALLOC(scope->last_initializer);
  if (scope->depth > O3_ONNX_MAX_DEPTH)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "graphs and functions are nested deeper than %d",
                            O3_ONNX_MAX_DEPTH);
  return NULL;
}

o3_status_t o3_onnx_scope_define(o3_onnx_import_t *import, o3_onnx_scope_t *scope, const char *name,
                                 o3_onnx_value_t value) {
  size_t length = strlen(name);
  if (o3_str_map_get(scope->values, name, length))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "'%s' is defined twice", name);
  o3_onnx_value_t *copy = O3_ARENA_NEW(import->storage.arena, o3_onnx_value_t);
  O3_TRY_ALLOC(copy);
  *copy = value;
  O3_TRY_ALLOC(o3_str_map_put(scope->values, name, length, copy));
  return NULL;
}

o3_status_t o3_onnx_scope_define_value(o3_onnx_import_t *import, o3_onnx_scope_t *scope, const char *name,
                                       MlirValue value) {
  return o3_onnx_scope_define(import, scope, name,
                              (o3_onnx_value_t){.value = value, .absent = mlirValueIsNull(value)});
}

/* Initializers stand at the top of the function, in the order in which they are first read. */
static MlirValue build_initializer(o3_onnx_import_t *import, o3_onnx_scope_t *scope, const char *name,
                                   MlirAttribute data) {
  MlirContext context = import->storage.context;
  o3_builder_t builder = o3_builder_at_end(scope->block, o3_onnx_location(import, name, 0));
  builder.before = mlirOperationIsNull(*scope->last_initializer)
                       ? mlirBlockGetFirstOperation(scope->block)
                       : mlirOperationGetNextInBlock(*scope->last_initializer);
  MlirValue value = o3_build1_attrs(&builder, "o3.initializer", import->value_type, O3_NO_VALUES,
                                    O3_ATTRS({"name", o3_attr_string(context, name)}, {"value", data}));
  *scope->last_initializer = o3_value_def(value);
  return value;
}

o3_status_t o3_onnx_scope_read(o3_onnx_import_t *import, o3_onnx_scope_t *scope, const char *name,
                               const o3_onnx_value_t **out) {
  o3_onnx_value_t *value = o3_str_map_get(scope->values, name, strlen(name));
  *out = value;
  if (!value || value->absent || !mlirValueIsNull(value->value)) return NULL;
  MlirAttribute data;
  if (value->sparse) {
    O3_TRY_CONTEXT(o3_onnx_sparse_tensor_import(&import->storage, value->sparse, name, &data),
                   "initializer '%s'", name);
  } else {
    O3_TRY_CONTEXT(o3_onnx_tensor_import(&import->storage, value->initializer, name, &data),
                   "initializer '%s'", name);
  }
  value->value = build_initializer(import, scope, name, data);
  return NULL;
}

MlirLocation o3_onnx_location(const o3_onnx_import_t *import, const char *label, size_t line) {
  MlirContext context = import->storage.context;
  unsigned row = line > UINT32_MAX ? UINT32_MAX : (unsigned)line;
  MlirLocation place = mlirLocationFileLineColGet(context, O3_STR(import->file), row, 0);
  return *label ? mlirLocationNameGet(context, O3_STR(label), place) : place;
}
