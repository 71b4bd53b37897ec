#include "import/onnx/onnx_type.h"

#include <string.h>

#include "base/strbuf.h"
#include "import/onnx/onnx_dtype.h"

/* ---- Text ---- */

static o3_status_t dtype_get(int32_t number, const o3_onnx_dtype_t **dtype) {
  *dtype = o3_onnx_dtype_get(number);
  if (*dtype) return NULL;
  return o3_status_create(O3_STATUS_INVALID_MODEL, "element type %d is none that ONNX defines", number);
}

static o3_status_t append_type(o3_strbuf_t *text, const Onnx__TypeProto *type);

static o3_status_t append_element_type(o3_strbuf_t *text, const char *kind,
                                       const Onnx__ElementTypeProto *type) {
  o3_strbuf_printf(text, "%s(", kind);
  O3_TRY(append_type(text, type->elem_type));
  o3_strbuf_puts(text, ")");
  return NULL;
}

static o3_status_t append_tensor_type(o3_strbuf_t *text, const char *kind,
                                      const Onnx__TensorTypeProto *type) {
  const o3_onnx_dtype_t *dtype;
  O3_TRY(dtype_get(type->elem_type, &dtype));
  o3_strbuf_printf(text, "%s(%s)", kind, dtype->name);
  return NULL;
}

static o3_status_t append_map_type(o3_strbuf_t *text, const Onnx__MapTypeProto *type) {
  const o3_onnx_dtype_t *key;
  O3_TRY(dtype_get(type->key_type, &key));
  o3_strbuf_printf(text, "map(%s, ", key->name);
  O3_TRY(append_type(text, type->value_type));
  o3_strbuf_puts(text, ")");
  return NULL;
}

/* |type| may be NULL: a sequence may leave its element type open. */
static o3_status_t append_type(o3_strbuf_t *text, const Onnx__TypeProto *type) {
  if (type && type->tensor_type) return append_tensor_type(text, "tensor", type->tensor_type);
  if (type && type->sparse_tensor_type)
    return append_tensor_type(text, "sparse_tensor", type->sparse_tensor_type);
  if (type && type->sequence_type) return append_element_type(text, "sequence", type->sequence_type);
  if (type && type->optional_type) return append_element_type(text, "optional", type->optional_type);
  if (type && type->map_type) return append_map_type(text, type->map_type);
  if (type && type->opaque_type) {
    o3_strbuf_printf(text, "opaque(%s, %s)", type->opaque_type->domain, type->opaque_type->name);
  } else {
    o3_strbuf_puts(text, "?");
  }
  return NULL;
}

o3_status_t o3_onnx_type_text(o3_arena_t *arena, const Onnx__TypeProto *type, const char **text) {
  o3_strbuf_t buffer = O3_STRBUF_INIT;
  *text = NULL;
  o3_status_t status = append_type(&buffer, type);
  if (!status && !buffer.failed) *text = o3_arena_strndup(arena, buffer.text, buffer.length);
  o3_strbuf_deinit(&buffer);
  if (!status && !*text) status = o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  return status;
}

/* ---- Inputs and outputs ---- */

typedef struct value_info {
  MlirContext context;
  o3_arena_t *arena;
  o3_str_map_t *symbols;
  const char *name;
} value_info_t;

static bool is_declared(const Onnx__TypeProto *type) {
  if (!type) return false;
  if (type->tensor_type) return type->tensor_type->elem_type != O3_ONNX_UNDEFINED;
  return type->sparse_tensor_type || type->sequence_type || type->optional_type || type->map_type ||
         type->opaque_type;
}

static o3_status_t put_symbol(o3_str_map_t *symbols, const char *name) {
  O3_TRY_ALLOC(o3_str_map_put(symbols, name, strlen(name), symbols));
  return NULL;
}

static o3_status_t fresh_symbol(const value_info_t *info, size_t dim, const char **name) {
  *name = o3_arena_printf(info->arena, "%s.d%zu", info->name, dim);
  for (size_t i = 1; *name && o3_str_map_get(info->symbols, *name, strlen(*name)); ++i)
    *name = o3_arena_printf(info->arena, "%s.d%zu_%zu", info->name, dim, i);
  O3_TRY_ALLOC(*name);
  return put_symbol(info->symbols, *name);
}

/* A size of -1 is how some exporters (Paddle's) write an unknown one, against ONNX's rules. */
static o3_status_t import_dim(const value_info_t *info, const Onnx__DimensionProto *dim, size_t index,
                              int64_t *size, MlirAttribute *symbol) {
  const char *name = dim->dim_param;
  *size = -1;
  if (dim->has_dim_value && dim->dim_value != -1) {
    if (dim->dim_value < 0)
      return o3_status_create(O3_STATUS_INVALID_MODEL, "dimension %zu is %lld, which is negative", index,
                              (long long)dim->dim_value);
    *size = dim->dim_value;
    name = "";
  } else if (!*name) {
    O3_TRY(fresh_symbol(info, index, &name));
  }
  *symbol = o3_attr_string(info->context, name);
  return NULL;
}

static o3_status_t import_shape(const value_info_t *info, const Onnx__TensorShapeProto *shape,
                                MlirType element, MlirAttribute *type, MlirAttribute *dims) {
  int64_t sizes[O3_IR_MAX_RANK], count = 1;
  MlirAttribute symbols[O3_IR_MAX_RANK];
  if (shape->n_dim > O3_IR_MAX_RANK)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "rank is %zu, at most %d is supported", shape->n_dim,
                            O3_IR_MAX_RANK);
  for (size_t i = 0; i < shape->n_dim; ++i) {
    O3_TRY(import_dim(info, shape->dim[i], i, &sizes[i], &symbols[i]));
    if (sizes[i] > 0 && __builtin_mul_overflow(count, sizes[i], &count))
      return o3_status_create(O3_STATUS_INVALID_MODEL, "the product of the dimensions overflows 64 bits");
  }
  *type = o3_attr_type(o3_tensor_type((int)shape->n_dim, sizes, element));
  *dims = mlirArrayAttrGet(info->context, (intptr_t)shape->n_dim, symbols);
  return NULL;
}

static o3_status_t import_tensor_type(const value_info_t *info, const Onnx__TypeProto *type,
                                      MlirAttribute *attr, MlirAttribute *dims) {
  const Onnx__TensorTypeProto *tensor = type->tensor_type;
  const o3_onnx_dtype_t *dtype = NULL;
  if (tensor) O3_TRY(dtype_get(tensor->elem_type, &dtype));
  if (!dtype || !dtype->mlir) {
    const char *text;
    O3_TRY(o3_onnx_type_text(info->arena, type, &text));
    *attr = o3_attr_string(info->context, text);
    return NULL;
  }
  MlirType element = o3_type_parse(info->context, dtype->mlir);
  if (tensor->shape) return import_shape(info, tensor->shape, element, attr, dims);
  *attr = o3_attr_type(mlirUnrankedTensorTypeGet(element));
  return NULL;
}

o3_status_t o3_onnx_value_info_import(MlirContext context, o3_arena_t *arena, o3_str_map_t *symbols,
                                      const Onnx__ValueInfoProto *info, MlirAttribute *attrs) {
  value_info_t self = {context, arena, symbols, info->name};
  MlirAttribute type = mlirAttributeGetNull(), dims = mlirAttributeGetNull();
  if (is_declared(info->type))
    O3_TRY_CONTEXT(import_tensor_type(&self, info->type, &type, &dims), "'%s'", info->name);
  MlirNamedAttribute named[3];
  intptr_t count = 0;
  named[count++] = mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR("o3.name")),
                                         o3_attr_string(context, info->name));
  if (!mlirAttributeIsNull(type))
    named[count++] = mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR("o3.type")), type);
  if (!mlirAttributeIsNull(dims))
    named[count++] = mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR("o3.dims")), dims);
  *attrs = mlirDictionaryAttrGet(context, count, named);
  return NULL;
}

o3_status_t o3_onnx_value_info_symbols(o3_str_map_t *symbols, const Onnx__ValueInfoProto *info) {
  const Onnx__TensorTypeProto *tensor = info->type ? info->type->tensor_type : NULL;
  if (!tensor || !tensor->shape) return NULL;
  for (size_t i = 0; i < tensor->shape->n_dim; ++i) {
    const char *name = tensor->shape->dim[i]->dim_param;
    if (*name) O3_TRY(put_symbol(symbols, name));
  }
  return NULL;
}
