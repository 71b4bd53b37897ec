#include <string.h>

#include "import/import.h"
#include "import/onnx/onnx_decode.h"
#include "import/onnx/onnx_graph.h"

/* ---- The module ---- */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static size_t stem_length(const char *file) {
  static const char SUFFIX[] = ".onnx";
  size_t length = strlen(file), suffix = sizeof(SUFFIX) - 1;
  return length > suffix && !strcmp(file + length - suffix, SUFFIX) ? length - suffix : length;
}

/* MLIR's text has no empty attribute names, so ONNX's own domain is spelt out. Of one that is imported twice,
 * |opsets| has one. */
static o3_status_t opset_attr(o3_onnx_import_t *import, const Onnx__ModelProto *model,
                              const o3_str_map_t *opsets, MlirAttribute *attr) {
  MlirContext context = import->storage.context;
  MlirNamedAttribute *entries =
      O3_ARENA_ARRAY(import->storage.arena, MlirNamedAttribute, model->n_opset_import);
  O3_TRY_ALLOC(entries);
  intptr_t count = 0;
  for (size_t i = 0; i < model->n_opset_import; ++i) {
    const char *domain = o3_onnx_domain(model->opset_import[i]->domain);
    const int64_t *version = &model->opset_import[i]->version;
    if (o3_str_map_get(opsets, domain, strlen(domain)) != version) continue;
    MlirIdentifier name = mlirIdentifierGet(context, O3_STR(*domain ? domain : "ai.onnx"));
    entries[count++] = mlirNamedAttributeGet(name, o3_attr_i64(context, *version));
  }
  *attr = mlirDictionaryAttrGet(context, count, entries);
  return NULL;
}

static o3_status_t set_module_attributes(o3_onnx_import_t *import, const Onnx__ModelProto *model,
                                         const o3_str_map_t *map) {
  MlirContext context = import->storage.context;
  MlirOperation op = mlirModuleGetOperation(import->module);
  MlirAttribute opsets;
  O3_TRY(opset_attr(import, model, map, &opsets));
  o3_op_attr_set(op, "o3.stage", o3_attr_string(context, "import"));
  o3_op_attr_set(op, "o3.model",
                 mlirStringAttrGet(context, mlirStringRefCreate(import->file, stem_length(import->file))));
  o3_op_attr_set(op, "o3.opset", opsets);
  o3_op_attr_set(op, "o3.ir_version", o3_attr_i64(context, model->ir_version));
  return NULL;
}

static o3_status_t build_module(o3_onnx_import_t *import, const Onnx__ModelProto *model) {
  o3_onnx_frame_t frame = {.prefix = ""};
  O3_TRY(
      o3_onnx_opsets_read(import->storage.arena, model->opset_import, model->n_opset_import, &frame.opsets));
  O3_TRY(o3_onnx_functions_read(import, model));
  O3_TRY(set_module_attributes(import, model, frame.opsets));
  return o3_onnx_main_build(import, &frame, model->graph);
}

/* ---- The model ---- */

static o3_status_t check_model(const Onnx__ModelProto *model) {
  if (model->ir_version < O3_ONNX_MIN_IR || model->ir_version > O3_ONNX_MAX_IR)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "it has IR version %lld, %d to %d are supported",
                            (long long)model->ir_version, O3_ONNX_MIN_IR, O3_ONNX_MAX_IR);
  if (!model->graph) return o3_status_create(O3_STATUS_INVALID_MODEL, "it has no graph");
  return NULL;
}

static o3_status_t decode_model(o3_arena_t *arena, const o3_onnx_buffer_t *buffer,
                                const Onnx__ModelProto **model) {
  if (buffer->size == 0) return o3_status_create(O3_STATUS_INVALID_MODEL, "'%s' is empty", buffer->name);
  O3_TRY_CONTEXT(o3_onnx_decode(arena, buffer->data, buffer->size, model), "'%s' is not an ONNX model",
                 buffer->name);
  if (!(*model)->graph && !(*model)->ir_version)
    return o3_status_create(O3_STATUS_INVALID_MODEL,
                            "'%s' is not an ONNX model: it has neither IR version nor graph", buffer->name);
  O3_TRY_CONTEXT(check_model(*model), "'%s'", buffer->name);
  return NULL;
}

static o3_status_t create_import(MlirContext context, o3_arena_t *arena, o3_weights_t *weights,
                                 const o3_onnx_buffer_t *buffer, o3_onnx_import_t *import) {
  *import = (o3_onnx_import_t){
      .storage = {.context = context,
                  .arena = arena,
                  .weights = weights,
                  .data = buffer->data,
                  .folder = buffer->folder,
                  .external = o3_str_map_create(arena)},
      .file = base_name(buffer->name),
      .value_type = o3_type_parse(context, "!o3.value"),
      .functions = o3_str_map_create(arena),
      .func_names = o3_str_map_create(arena),
      .dim_symbols = o3_str_map_create(arena),
  };
  O3_TRY_ALLOC(import->storage.external);
  O3_TRY_ALLOC(import->functions);
  O3_TRY_ALLOC(import->func_names);
  O3_TRY_ALLOC(import->dim_symbols);
  return NULL;
}

o3_status_t o3_import_onnx_buffer(MlirContext context, o3_arena_t *arena, o3_weights_t *weights,
                                  const o3_onnx_buffer_t *buffer, MlirModule *module) {
  *module = (MlirModule){0};
  const Onnx__ModelProto *model;
  o3_onnx_import_t import;
  O3_TRY(decode_model(arena, buffer, &model));
  O3_TRY(create_import(context, arena, weights, buffer, &import));
  mlirContextGetOrLoadDialect(context, O3_STR("func"));
  import.module = mlirModuleCreateEmpty(o3_onnx_location(&import, "", 0));
  o3_status_t status = build_module(&import, model);
  if (status) {
    mlirModuleDestroy(import.module);
    return o3_status_annotate(status, "'%s'", buffer->name);
  }
  *module = import.module;
  return NULL;
}

static o3_status_t folder_of(o3_arena_t *arena, const char *path, const char **folder) {
  const char *slash = strrchr(path, '/');
  if (!slash) {
    *folder = ".";
    return NULL;
  }
  *folder = slash == path ? "/" : o3_arena_strndup(arena, path, (size_t)(slash - path));
  O3_TRY_ALLOC(*folder);
  return NULL;
}

o3_status_t o3_import_onnx(MlirContext context, o3_arena_t *arena, o3_weights_t *weights, const char *path,
                           MlirModule *module) {
  *module = (MlirModule){0};
  o3_onnx_buffer_t buffer = {.name = path};
  O3_TRY(folder_of(arena, path, &buffer.folder));
  o3_mapped_file_t file;
  O3_TRY(o3_file_map(path, &file));
  buffer.data = file.data;
  buffer.size = file.size;
  O3_TRY(o3_weights_keep_file(weights, &file));
  return o3_import_onnx_buffer(context, arena, weights, &buffer, module);
}
