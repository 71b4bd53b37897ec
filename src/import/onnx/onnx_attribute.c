#include <string.h>

#include "import/onnx/onnx_graph.h"
#include "import/onnx/onnx_type.h"

/* An attribute of a node, being converted. */
typedef struct source {
  const o3_onnx_node_t *node;
  const char *name; /* as the node has it, whatever the parameter's name */
  const Onnx__AttributeProto *proto;
  MlirContext context;
} source_t;

typedef o3_status_t (*convert_fn_t)(const source_t *source, MlirAttribute *attr);
typedef o3_status_t (*convert_item_fn_t)(const source_t *source, size_t index, MlirAttribute *attr);

static o3_status_t missing(const char *what) {
  return o3_status_create(O3_STATUS_INVALID_MODEL, "it is a %s attribute without one", what);
}

static o3_status_t convert_items(const source_t *source, size_t count, convert_item_fn_t convert,
                                 MlirAttribute *attr) {
  MlirAttribute *items = O3_ARENA_ARRAY(source->node->import->storage.arena, MlirAttribute, count);
  O3_TRY_ALLOC(items);
  for (size_t i = 0; i < count; ++i) O3_TRY(convert(source, i, &items[i]));
  *attr = mlirArrayAttrGet(source->context, (intptr_t)count, items);
  return NULL;
}

/* ---- Numbers and strings ---- */

static o3_status_t convert_int(const source_t *source, MlirAttribute *attr) {
  *attr = o3_attr_i64(source->context, source->proto->i);
  return NULL;
}

static o3_status_t convert_ints(const source_t *source, MlirAttribute *attr) {
  *attr = mlirDenseI64ArrayGet(source->context, (intptr_t)source->proto->n_ints, source->proto->ints);
  return NULL;
}

static o3_status_t convert_float(const source_t *source, MlirAttribute *attr) {
  *attr = o3_attr_f32(source->context, source->proto->f);
  return NULL;
}

static o3_status_t convert_floats(const source_t *source, MlirAttribute *attr) {
  *attr = mlirDenseF32ArrayGet(source->context, (intptr_t)source->proto->n_floats, source->proto->floats);
  return NULL;
}

static MlirAttribute string_attr(MlirContext context, ProtobufCBinaryData bytes) {
  return mlirStringAttrGet(context, mlirStringRefCreate((const char *)bytes.data, bytes.len));
}

static o3_status_t convert_string(const source_t *source, MlirAttribute *attr) {
  *attr = string_attr(source->context, source->proto->s);
  return NULL;
}

static o3_status_t convert_strings_item(const source_t *source, size_t index, MlirAttribute *attr) {
  *attr = string_attr(source->context, source->proto->strings[index]);
  return NULL;
}

static o3_status_t convert_strings(const source_t *source, MlirAttribute *attr) {
  return convert_items(source, source->proto->n_strings, convert_strings_item, attr);
}

/* ---- Tensors ---- */

/* Weights of attributes are called after their node. */
static o3_status_t weight_name(const source_t *source, const char **name) {
  *name = o3_arena_printf(source->node->import->storage.arena, "%s.%s", source->node->label, source->name);
  O3_TRY_ALLOC(*name);
  return NULL;
}

static o3_status_t import_tensor(const source_t *source, const Onnx__TensorProto *tensor,
                                 MlirAttribute *attr) {
  const char *name;
  O3_TRY(weight_name(source, &name));
  return o3_onnx_tensor_import(&source->node->import->storage, tensor, name, attr);
}

static o3_status_t convert_tensor(const source_t *source, MlirAttribute *attr) {
  return source->proto->t ? import_tensor(source, source->proto->t, attr) : missing("tensor");
}

static o3_status_t convert_tensors_item(const source_t *source, size_t index, MlirAttribute *attr) {
  return import_tensor(source, source->proto->tensors[index], attr);
}

static o3_status_t convert_tensors(const source_t *source, MlirAttribute *attr) {
  return convert_items(source, source->proto->n_tensors, convert_tensors_item, attr);
}

static o3_status_t import_sparse(const source_t *source, const Onnx__SparseTensorProto *tensor,
                                 MlirAttribute *attr) {
  const char *name;
  O3_TRY(weight_name(source, &name));
  return o3_onnx_sparse_tensor_import(&source->node->import->storage, tensor, name, attr);
}

static o3_status_t convert_sparse(const source_t *source, MlirAttribute *attr) {
  return source->proto->sparse_tensor ? import_sparse(source, source->proto->sparse_tensor, attr)
                                      : missing("sparse tensor");
}

static o3_status_t convert_sparses_item(const source_t *source, size_t index, MlirAttribute *attr) {
  return import_sparse(source, source->proto->sparse_tensors[index], attr);
}

static o3_status_t convert_sparses(const source_t *source, MlirAttribute *attr) {
  return convert_items(source, source->proto->n_sparse_tensors, convert_sparses_item, attr);
}

/* ---- Graphs and types ---- */

static o3_status_t import_graph(const source_t *source, const Onnx__GraphProto *graph, MlirAttribute *attr) {
  const char *symbol;
  O3_TRY(o3_onnx_subgraph_build(source->node, source->name, graph, &symbol));
  *attr = mlirFlatSymbolRefAttrGet(source->context, O3_STR(symbol));
  return NULL;
}

static o3_status_t convert_graph(const source_t *source, MlirAttribute *attr) {
  return source->proto->g ? import_graph(source, source->proto->g, attr) : missing("graph");
}

static o3_status_t convert_graphs_item(const source_t *source, size_t index, MlirAttribute *attr) {
  return import_graph(source, source->proto->graphs[index], attr);
}

static o3_status_t convert_graphs(const source_t *source, MlirAttribute *attr) {
  return convert_items(source, source->proto->n_graphs, convert_graphs_item, attr);
}

static o3_status_t import_type(const source_t *source, const Onnx__TypeProto *type, MlirAttribute *attr) {
  const char *text;
  O3_TRY(o3_onnx_type_text(source->node->import->storage.arena, type, &text));
  *attr = o3_attr_string(source->context, text);
  return NULL;
}

static o3_status_t convert_type(const source_t *source, MlirAttribute *attr) {
  return source->proto->tp ? import_type(source, source->proto->tp, attr) : missing("type");
}

static o3_status_t convert_types_item(const source_t *source, size_t index, MlirAttribute *attr) {
  return import_type(source, source->proto->type_protos[index], attr);
}

static o3_status_t convert_types(const source_t *source, MlirAttribute *attr) {
  return convert_items(source, source->proto->n_type_protos, convert_types_item, attr);
}

/* ---- All of a node's ---- */

/* By AttributeProto.AttributeType. */
static const convert_fn_t CONVERTERS[] = {
    NULL,           convert_float,  convert_int,     convert_string,  convert_tensor,
    convert_graph,  convert_floats, convert_ints,    convert_strings, convert_tensors,
    convert_graphs, convert_sparse, convert_sparses, convert_type,    convert_types,
};

static o3_status_t convert(const source_t *source, MlirAttribute *attr) {
  int32_t type = source->proto->type;
  if (type <= 0 || (size_t)type >= sizeof(CONVERTERS) / sizeof(CONVERTERS[0]))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "it has attribute type %d, which ONNX does not define",
                            type);
  return CONVERTERS[type](source, attr);
}

o3_status_t o3_onnx_attribute_resolve(const o3_onnx_frame_t *frame, const Onnx__AttributeProto *attribute,
                                      const Onnx__AttributeProto **resolved) {
  *resolved = attribute;
  const char *parameter = attribute->ref_attr_name;
  if (!*parameter) return NULL;
  if (!frame->attributes)
    return o3_status_create(O3_STATUS_INVALID_MODEL,
                            "attribute '%s' refers to parameter '%s' outside of a function", attribute->name,
                            parameter);
  *resolved = o3_str_map_get(frame->attributes, parameter, strlen(parameter));
  if (*resolved && (*resolved)->type != attribute->type)
    return o3_status_create(O3_STATUS_INVALID_MODEL,
                            "attribute '%s' has type %d, the call gives '%s' of type %d", attribute->name,
                            attribute->type, parameter, (*resolved)->type);
  return NULL;
}

/* MLIR sorts the dictionary, and takes it for granted that no name comes twice. */
static o3_status_t check_name(const Onnx__NodeProto *node, size_t index) {
  const char *name = node->attribute[index]->name;
  if (!*name) return o3_status_create(O3_STATUS_INVALID_MODEL, "attribute %zu has no name", index);
  return NULL;
}

static o3_status_t import_attribute(const o3_onnx_node_t *node, const Onnx__AttributeProto *attribute,
                                    MlirNamedAttribute *named, intptr_t *count) {
  const Onnx__AttributeProto *proto;
  O3_TRY(o3_onnx_attribute_resolve(node->scope->frame, attribute, &proto));
  if (!proto) return NULL;
  MlirContext context = node->import->storage.context;
  source_t source = {node, attribute->name, proto, context};
  MlirAttribute attr;
  O3_TRY_CONTEXT(convert(&source, &attr), "attribute '%s'", attribute->name);
  named[(*count)++] = mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR(attribute->name)), attr);
  return NULL;
}

o3_status_t o3_onnx_attributes_import(const o3_onnx_node_t *node, MlirAttribute *attrs) {
  const Onnx__NodeProto *proto = node->proto;
  o3_arena_t *arena = node->import->storage.arena;
  MlirNamedAttribute *named = O3_ARENA_ARRAY(arena, MlirNamedAttribute, proto->n_attribute);
  O3_TRY_ALLOC(named);
  o3_onnx_names_t names = o3_onnx_names(arena);
  intptr_t count = 0;
  for (size_t i = 0; i < proto->n_attribute; ++i) {
    O3_TRY(check_name(proto, i));
    O3_TRY(o3_onnx_names_add(&names, proto->attribute[i]->name));
    if (names.list.count <= i)
      return o3_status_create(O3_STATUS_INVALID_MODEL, "attribute '%s' is given twice",
                              proto->attribute[i]->name);
    O3_TRY(import_attribute(node, proto->attribute[i], named, &count));
  }
  *attrs = mlirDictionaryAttrGet(node->import->storage.context, count, named);
  return NULL;
}
