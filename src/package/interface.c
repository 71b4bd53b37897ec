/* The attribute keeps affine maps, not only sizes and symbols, so that dumps show how an output's size comes
 * about; the packaged model has no use for expressions and gets "known after the run". */
#include "package/interface.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Recording ---- */

static MlirAttribute dict_get(MlirAttribute dict, const char *key) {
  if (mlirAttributeIsNull(dict) || !mlirAttributeIsADictionary(dict)) return (MlirAttribute){0};
  return mlirDictionaryAttrGetElementByName(dict, O3_STR(key));
}

static MlirAttribute array_at(MlirAttribute array, intptr_t index) {
  if (mlirAttributeIsNull(array) || !mlirAttributeIsAArray(array)) return (MlirAttribute){0};
  if (index >= mlirArrayAttrGetNumElements(array)) return (MlirAttribute){0};
  return mlirArrayAttrGetElement(array, index);
}

static intptr_t array_count(MlirAttribute array) {
  return mlirAttributeIsNull(array) || !mlirAttributeIsAArray(array) ? 0 : mlirArrayAttrGetNumElements(array);
}

static MlirNamedAttribute named(MlirContext context, const char *name, MlirAttribute value) {
  return mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR(name)), value);
}

/* {name, type, shape} of the argument or result |index|; |attrs| is @main's arg_attrs or res_attrs. */
static MlirAttribute record_tensor(MlirContext context, MlirType type, MlirAttribute attrs, intptr_t index,
                                   const char *kind) {
  MlirAttribute dict = array_at(attrs, index);
  MlirAttribute name = dict_get(dict, "o3.name");
  MlirAttribute shape = dict_get(dict, "o3.shape");
  char fallback[32];
  snprintf(fallback, sizeof(fallback), "%s%d", kind, (int)index);
  if (mlirAttributeIsNull(name)) name = o3_attr_string(context, fallback);
  MlirNamedAttribute fields[3] = {named(context, "name", name), named(context, "type", o3_attr_type(type))};
  intptr_t count = 2;
  if (!mlirAttributeIsNull(shape)) fields[count++] = named(context, "shape", shape);
  return mlirDictionaryAttrGet(context, count, fields);
}

static MlirAttribute record_tensors(o3_pass_env_t *env, MlirType func, bool inputs, MlirAttribute attrs) {
  intptr_t count = inputs ? mlirFunctionTypeGetNumInputs(func) : mlirFunctionTypeGetNumResults(func);
  MlirAttribute *items = O3_ARENA_ARRAY(env->arena, MlirAttribute, (size_t)count + 1);
  if (!items) return (MlirAttribute){0};
  for (intptr_t i = 0; i < count; ++i) {
    MlirType type = inputs ? mlirFunctionTypeGetInput(func, i) : mlirFunctionTypeGetResult(func, i);
    items[i] = record_tensor(env->context, type, attrs, i, inputs ? "input" : "output");
  }
  return mlirArrayAttrGet(env->context, count, items);
}

/* [{name = "N"}, ...] -> ["N", ...] */
static MlirAttribute record_texts(o3_pass_env_t *env, MlirAttribute dicts, const char *key) {
  intptr_t count = array_count(dicts);
  MlirAttribute *items = O3_ARENA_ARRAY(env->arena, MlirAttribute, (size_t)count + 1);
  if (!items) return (MlirAttribute){0};
  for (intptr_t i = 0; i < count; ++i) {
    items[i] = dict_get(array_at(dicts, i), key);
    if (mlirAttributeIsNull(items[i])) items[i] = o3_attr_string(env->context, "");
  }
  return mlirArrayAttrGet(env->context, count, items);
}

o3_status_t o3_interface_record(o3_pass_env_t *env, MlirModule module) {
  MlirOperation func = o3_module_func(module, "main");
  if (mlirOperationIsNull(func))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "the module has no function @main");
  MlirType type = mlirTypeAttrGetValue(o3_op_attr(func, "function_type"));
  MlirAttribute inputs = record_tensors(env, type, true, o3_op_attr(func, "arg_attrs"));
  MlirAttribute outputs = record_tensors(env, type, false, o3_op_attr(func, "res_attrs"));
  MlirAttribute symbols = record_texts(env, o3_op_attr(func, "o3.symbols"), "name");
  MlirAttribute guards = record_texts(env, o3_op_attr(func, "o3.guards"), "text");
  O3_TRY_ALLOC(inputs.ptr && outputs.ptr && symbols.ptr && guards.ptr);
  MlirNamedAttribute fields[] = {
      named(env->context, "inputs", inputs), named(env->context, "outputs", outputs),
      named(env->context, "symbols", symbols), named(env->context, "guards", guards)};
  MlirAttribute dict = mlirDictionaryAttrGet(env->context, 4, fields);
  o3_op_attr_set(mlirModuleGetOperation(module), "o3.interface", dict);
  return NULL;
}

bool o3_interface_is_recorded(MlirModule module) {
  return !mlirAttributeIsNull(o3_op_attr(mlirModuleGetOperation(module), "o3.interface"));
}

/* ---- Reading ---- */

static o3_status_t read_text(o3_arena_t *arena, MlirAttribute attr, const char **text) {
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAString(attr))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "o3.interface holds no text where a name is needed");
  MlirStringRef value = mlirStringAttrGetValue(attr);
  *text = o3_arena_strndup(arena, value.data, value.length);
  O3_TRY_ALLOC(*text);
  return NULL;
}

static o3_status_t read_texts(o3_arena_t *arena, MlirAttribute array, int *count, const char *const **texts) {
  *count = (int)array_count(array);
  const char **items = O3_ARENA_ARRAY(arena, const char *, (size_t)*count + 1);
  O3_TRY_ALLOC(items);
  for (int i = 0; i < *count; ++i) O3_TRY(read_text(arena, array_at(array, i), &items[i]));
  *texts = items;
  return NULL;
}

static o3_status_t read_dtype(MlirType element, o3_dtype_id_t *dtype) {
  char *text = o3_type_text(element);
  O3_TRY_ALLOC(text);
  bool known = o3_dtype_from_mlir(text, dtype);
  o3_status_t status = NULL;
  if (!known) status = o3_status_create(O3_STATUS_UNSUPPORTED, "element type %s cannot leave a model", text);
  free(text);
  return status;
}

/* The symbol's index when entry |dim| of the map is a bare symbol, else -1. */
static int32_t bare_symbol(MlirAttribute shape, int dim) {
  if (mlirAttributeIsNull(shape) || !mlirAttributeIsAAffineMap(shape)) return -1;
  MlirAffineMap map = mlirAffineMapAttrGetValue(shape);
  if (dim >= mlirAffineMapGetNumResults(map)) return -1;
  MlirAffineExpr expr = mlirAffineMapGetResult(map, dim);
  return mlirAffineExprIsASymbol(expr) ? (int32_t)mlirAffineSymbolExprGetPosition(expr) : -1;
}

static o3_status_t read_tensor(o3_arena_t *arena, MlirAttribute dict, o3_interface_tensor_t *tensor) {
  O3_TRY(read_text(arena, dict_get(dict, "name"), &tensor->name));
  MlirAttribute type_attr = dict_get(dict, "type");
  bool has_type = !mlirAttributeIsNull(type_attr) && mlirAttributeIsAType(type_attr);
  MlirType type = has_type ? mlirTypeAttrGetValue(type_attr) : (MlirType){0};
  if (!has_type || !mlirTypeIsARankedTensor(type) || o3_type_rank(type) > O3_IR_MAX_RANK)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "'%s' is no tensor of a rank up to %d", tensor->name,
                            O3_IR_MAX_RANK);
  O3_TRY_CONTEXT(read_dtype(o3_type_element(type), &tensor->dtype), "'%s'", tensor->name);
  tensor->rank = o3_type_rank(type);
  for (int i = 0; i < tensor->rank; ++i) {
    int64_t size = o3_type_dim(type, i);
    int32_t symbol = size < 0 ? bare_symbol(dict_get(dict, "shape"), i) : -1;
    tensor->dims[i] = (o3_interface_dim_t){.size = size, .symbol = symbol};
  }
  return NULL;
}

static o3_status_t read_tensors(o3_arena_t *arena, MlirAttribute array, int *count,
                                o3_interface_tensor_t **tensors) {
  *count = (int)array_count(array);
  *tensors = O3_ARENA_ARRAY(arena, o3_interface_tensor_t, (size_t)*count + 1);
  O3_TRY_ALLOC(*tensors);
  for (int i = 0; i < *count; ++i) O3_TRY(read_tensor(arena, array_at(array, i), &(*tensors)[i]));
  return NULL;
}

/* An input's sizes are static or symbols; marks the symbols that they bind. */
static o3_status_t check_input(const o3_interface_tensor_t *input, int num_symbols, bool *bound) {
  for (int i = 0; i < input->rank; ++i) {
    const o3_interface_dim_t *dim = &input->dims[i];
    if (dim->size >= 0) continue;
    if (dim->symbol < 0 || dim->symbol >= num_symbols)
      return o3_status_create(O3_STATUS_INVALID_MODEL,
                              "input '%s': dimension %d is neither a size nor one of the %d symbols",
                              input->name, i, num_symbols);
    bound[dim->symbol] = true;
  }
  return NULL;
}

static void forget_unbound(o3_interface_tensor_t *output, int num_symbols, const bool *bound) {
  for (int i = 0; i < output->rank; ++i) {
    int32_t symbol = output->dims[i].symbol;
    if (symbol >= num_symbols || (symbol >= 0 && !bound[symbol])) output->dims[i].symbol = -1;
  }
}

o3_status_t o3_interface_read(o3_arena_t *arena, MlirModule module, o3_interface_t *interface) {
  *interface = (o3_interface_t){0};
  MlirAttribute dict = o3_op_attr(mlirModuleGetOperation(module), "o3.interface");
  if (mlirAttributeIsNull(dict))
    return o3_status_create(
        O3_STATUS_INVALID_MODEL,
        "the module has no attribute o3.interface, which the pass record-interface makes");
  o3_interface_tensor_t *inputs, *outputs;
  O3_TRY(read_texts(arena, dict_get(dict, "symbols"), &interface->num_symbols, &interface->symbols));
  O3_TRY(read_texts(arena, dict_get(dict, "guards"), &interface->num_guards, &interface->guards));
  O3_TRY_CONTEXT(read_tensors(arena, dict_get(dict, "inputs"), &interface->num_inputs, &inputs), "input");
  O3_TRY_CONTEXT(read_tensors(arena, dict_get(dict, "outputs"), &interface->num_outputs, &outputs), "output");
  bool *bound = O3_ARENA_ARRAY(arena, bool, (size_t)interface->num_symbols + 1);
  O3_TRY_ALLOC(bound);
  for (int i = 0; i < interface->num_inputs; ++i)
    O3_TRY(check_input(&inputs[i], interface->num_symbols, bound));
  for (int i = 0; i < interface->num_outputs; ++i) forget_unbound(&outputs[i], interface->num_symbols, bound);
  interface->inputs = inputs;
  interface->outputs = outputs;
  return NULL;
}
