/* The walk over the import stage's module. Each function's nodes are converted in order into a fresh @main;
 * bodies of subgraphs are converted where the node that owns them stands. */
#include "normalize/normalize.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "normalize/nz.h"

#define O3_ONNX_OP(domain, op, converter) o3_status_t o3_onnx_##converter(o3_nz_t *nz, o3_node_t *node);
#include "normalize/onnx_ops.def"
#undef O3_ONNX_OP

static const struct {
  const char *domain, *op;
  o3_convert_fn_t convert;
} CONVERTERS[] = {
#define O3_ONNX_OP(domain, op, converter) {domain, #op, o3_onnx_##converter},
#include "normalize/onnx_ops.def"
#undef O3_ONNX_OP
};

enum { MAX_DEPTH = 64, MAX_FUNC_VALUES = 1024 };

static o3_convert_fn_t find_converter(const o3_node_t *node) {
  for (size_t i = 0; i < sizeof(CONVERTERS) / sizeof(CONVERTERS[0]); ++i) {
    if (strcmp(CONVERTERS[i].op, node->op_type) == 0 && strcmp(CONVERTERS[i].domain, node->domain) == 0)
      return CONVERTERS[i].convert;
  }
  return NULL;
}

/* ---- Bindings ---- */

static o3_status_t bind(o3_nz_t *nz, MlirValue old, const o3_binding_t *binding) {
  o3_binding_t *copy = O3_ARENA_NEW(nz->arena, o3_binding_t);
  O3_TRY_ALLOC(copy);
  *copy = *binding;
  if (!o3_ptr_map_put(nz->values, old.ptr, copy))
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  return NULL;
}

static o3_status_t bind_tensor(o3_nz_t *nz, MlirValue old, MlirValue tensor) {
  return bind(nz, old, &(o3_binding_t){.kind = O3_BINDING_TENSOR, .tensor = tensor});
}

static MlirValue bound_tensor(const o3_nz_t *nz, MlirValue old) {
  const o3_binding_t *binding = o3_ptr_map_get(nz->values, old.ptr);
  return binding && binding->kind == O3_BINDING_TENSOR ? binding->tensor : (MlirValue){0};
}

/* Operands hold only the inputs that are present. */
static int operand_of_input(MlirOperation op, int input) {
  MlirAttribute present = o3_op_attr(op, "present");
  if (mlirAttributeIsNull(present)) return input;
  int operand = 0;
  if (input >= mlirArrayAttrGetNumElements(present) ||
      !mlirBoolAttrGetValue(mlirArrayAttrGetElement(present, input)))
    return -1;
  for (int i = 0; i < input; ++i) operand += mlirBoolAttrGetValue(mlirArrayAttrGetElement(present, i));
  return operand;
}

const o3_binding_t *o3_node_binding(const o3_nz_t *nz, const o3_node_t *node, int index) {
  int operand = operand_of_input(node->op, index);
  if (operand < 0 || operand >= mlirOperationGetNumOperands(node->op) - node->num_captures) return NULL;
  return o3_ptr_map_get(nz->values, mlirOperationGetOperand(node->op, operand).ptr);
}

void o3_node_bind(o3_nz_t *nz, o3_node_t *node, int output, const o3_binding_t *binding) {
  o3_status_t status = bind(nz, mlirOperationGetResult(node->op, output), binding);
  if (status) o3_nz_fail(nz, status);
}

/* ---- Nodes ---- */

static o3_status_t read_names(o3_nz_t *nz, o3_node_t *node) {
  MlirStringRef op_type = o3_op_string(node->op, "op"), domain = o3_op_string(node->op, "domain");
  MlirStringRef label = o3_op_label(node->op);
  node->op_type = o3_arena_strndup(nz->arena, op_type.data, op_type.length);
  node->domain = o3_arena_strndup(nz->arena, domain.data ? domain.data : "", domain.length);
  node->label = o3_arena_strndup(nz->arena, label.data, label.length);
  O3_TRY_ALLOC(node->op_type);
  O3_TRY_ALLOC(node->domain);
  O3_TRY_ALLOC(node->label);
  node->opset = o3_op_int(node->op, "opset", 0);
  nz->who = o3_arena_printf(nz->arena, "node '%s' (%s)", node->label, node->op_type);
  O3_TRY_ALLOC(nz->who);
  return NULL;
}

static o3_status_t read_inputs(o3_nz_t *nz, o3_node_t *node) {
  MlirAttribute present = o3_op_attr(node->op, "present");
  node->num_captures = (int)o3_op_int(node->op, "captures", 0);
  int operands = (int)mlirOperationGetNumOperands(node->op) - node->num_captures;
  node->num_inputs = mlirAttributeIsNull(present) ? operands : (int)mlirArrayAttrGetNumElements(present);
  if (node->num_inputs > O3_NODE_MAX_INPUTS)
    return o3_nz_unsupported(nz, "%d inputs, at most %d are", node->num_inputs, O3_NODE_MAX_INPUTS);
  for (int i = 0; i < node->num_inputs; ++i) {
    int operand = operand_of_input(node->op, i);
    if (operand >= 0) node->inputs[i] = bound_tensor(nz, mlirOperationGetOperand(node->op, operand));
  }
  while (node->num_inputs && operand_of_input(node->op, node->num_inputs - 1) < 0) --node->num_inputs;
  return NULL;
}

static o3_status_t read_outputs(o3_nz_t *nz, o3_node_t *node) {
  MlirAttribute names = o3_op_attr(node->op, "outputs");
  node->num_outputs = (int)mlirOperationGetNumResults(node->op);
  if (node->num_outputs > O3_NODE_MAX_OUTPUTS)
    return o3_nz_unsupported(nz, "%d outputs, at most %d are", node->num_outputs, O3_NODE_MAX_OUTPUTS);
  for (int i = 0; i < node->num_outputs; ++i)
    node->wanted[i] = mlirStringAttrGetValue(mlirArrayAttrGetElement(names, i)).length > 0;
  return NULL;
}

static o3_status_t bind_outputs(o3_nz_t *nz, const o3_node_t *node) {
  for (int i = 0; i < node->num_outputs; ++i) {
    MlirValue old = mlirOperationGetResult(node->op, i);
    if (!mlirValueIsNull(node->outputs[i])) {
      O3_TRY(bind_tensor(nz, old, node->outputs[i]));
    } else if (node->wanted[i] && !o3_ptr_map_get(nz->values, old.ptr)) {
      return o3_nz_unsupported(nz, "its output %d is not supported", i);
    }
  }
  return NULL;
}

static o3_status_t take_failure(o3_nz_t *nz, o3_status_t status) {
  o3_status_t failure = nz->failure;
  nz->failure = NULL;
  if (failure && status) o3_status_destroy(status);
  return failure ? failure : status;
}

static o3_status_t convert_node(o3_nz_t *nz, MlirOperation op) {
  o3_node_t *node = O3_ARENA_NEW(nz->arena, o3_node_t);
  O3_TRY_ALLOC(node);
  node->op = op;
  const char *outer = nz->who;
  O3_TRY(read_names(nz, node));
  O3_TRY(read_inputs(nz, node));
  O3_TRY(read_outputs(nz, node));
  o3_convert_fn_t convert = find_converter(node);
  if (!convert)
    return o3_nz_unsupported(nz, "op %s%s%s of opset %lld is not supported", node->domain,
                             node->domain[0] ? "." : "", node->op_type, (long long)node->opset);
  nz->builder.location = mlirOperationGetLocation(op);
  O3_TRY(take_failure(nz, convert(nz, node)));
  O3_TRY(bind_outputs(nz, node));
  nz->who = outer;
  return NULL;
}

static o3_status_t convert_initializer(o3_nz_t *nz, MlirOperation op) {
  nz->builder.location = mlirOperationGetLocation(op);
  MlirAttribute value = o3_op_attr(op, "value");
  bool sparse = !mlirAttributeIsNull(value) && mlirAttributeIsADictionary(value);
  if (!sparse && (mlirAttributeIsNull(value) || !mlirAttributeIsAElements(value))) {
    MlirStringRef name = o3_op_string(op, "name");
    return o3_status_create(O3_STATUS_UNSUPPORTED, "initializer '%.*s' is no tensor of numbers",
                            O3_STR_ARGS(name));
  }
  MlirValue constant = sparse ? o3_nz_sparse_constant(nz, value) : o3_nz_constant(nz, value);
  O3_TRY(take_failure(nz, NULL));
  return bind_tensor(nz, mlirOperationGetResult(op, 0), constant);
}

/* Converts all ops of |block|; its terminator is left to the caller. */
static o3_status_t convert_block(o3_nz_t *nz, MlirBlock block) {
  MlirOperation op = mlirBlockGetFirstOperation(block);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (o3_op_is(op, "o3.node")) {
      O3_TRY(convert_node(nz, op));
    } else if (o3_op_is(op, "o3.initializer")) {
      O3_TRY(convert_initializer(nz, op));
    } else if (!o3_op_is(op, "func.return")) {
      return o3_status_create(O3_STATUS_INTERNAL, "op '%.*s' is not of the import stage",
                              O3_STR_ARGS(o3_op_name(op)));
    }
  }
  return NULL;
}

/* ---- Subgraphs ---- */

static o3_status_t subgraph_func(o3_nz_t *nz, const o3_node_t *node, const char *attr, MlirOperation *func) {
  MlirAttribute symbol = o3_node_attr(node, attr);
  if (mlirAttributeIsNull(symbol) || !mlirAttributeIsAFlatSymbolRef(symbol))
    return o3_nz_invalid(nz, "attribute %s is no graph", attr);
  MlirStringRef name = mlirFlatSymbolRefAttrGetValue(symbol);
  char *copy = o3_arena_strndup(nz->arena, name.data, name.length);
  O3_TRY_ALLOC(copy);
  *func = o3_module_func(nz->module, copy);
  if (mlirOperationIsNull(*func))
    return o3_nz_invalid(nz, "there is no function '%s' for attribute %s", copy, attr);
  return NULL;
}

o3_status_t o3_nz_subgraph_arity(o3_nz_t *nz, const o3_node_t *node, const char *attr, int *num_inputs,
                                 int *num_outputs) {
  MlirOperation func;
  O3_TRY(subgraph_func(nz, node, attr, &func));
  MlirBlock body = o3_func_body(func);
  *num_inputs = (int)mlirBlockGetNumArguments(body) - node->num_captures;
  *num_outputs = (int)mlirOperationGetNumOperands(mlirBlockGetTerminator(body));
  return NULL;
}

static o3_status_t bind_subgraph_inputs(o3_nz_t *nz, const o3_node_t *node, MlirBlock body, int num_inputs,
                                        const o3_binding_t *inputs) {
  int total = (int)mlirBlockGetNumArguments(body);
  if (total != num_inputs + node->num_captures)
    return o3_nz_invalid(nz, "a subgraph takes %d inputs, %d are given", total - node->num_captures,
                         num_inputs);
  for (int i = 0; i < num_inputs; ++i) O3_TRY(bind(nz, mlirBlockGetArgument(body, i), &inputs[i]));
  int first = (int)mlirOperationGetNumOperands(node->op) - node->num_captures;
  for (int i = 0; i < node->num_captures; ++i) {
    const o3_binding_t *binding =
        o3_ptr_map_get(nz->values, mlirOperationGetOperand(node->op, first + i).ptr);
    if (!binding) return o3_nz_invalid(nz, "a value that a subgraph captures is not defined");
    O3_TRY(bind(nz, mlirBlockGetArgument(body, num_inputs + i), binding));
  }
  return NULL;
}

o3_status_t o3_nz_subgraph(o3_nz_t *nz, const o3_node_t *node, const char *attr, int num_inputs,
                           const o3_binding_t *inputs, int capacity, o3_binding_t *outputs,
                           int *num_outputs) {
  MlirOperation func;
  const char *who = nz->who;
  MlirLocation location = nz->builder.location;
  O3_TRY(subgraph_func(nz, node, attr, &func));
  MlirBlock body = o3_func_body(func);
  if (++nz->depth > MAX_DEPTH)
    return o3_nz_unsupported(nz, "subgraphs are nested more than %d deep", MAX_DEPTH);
  O3_TRY(bind_subgraph_inputs(nz, node, body, num_inputs, inputs));
  O3_TRY(convert_block(nz, body));
  nz->who = who;
  nz->builder.location = location;
  MlirOperation terminator = mlirBlockGetTerminator(body);
  *num_outputs = (int)mlirOperationGetNumOperands(terminator);
  if (*num_outputs > capacity) return o3_nz_unsupported(nz, "a subgraph with %d outputs", *num_outputs);
  for (int i = 0; i < *num_outputs; ++i) {
    const o3_binding_t *binding = o3_ptr_map_get(nz->values, mlirOperationGetOperand(terminator, i).ptr);
    if (!binding) return o3_nz_invalid(nz, "output %d of a subgraph is not defined", i);
    outputs[i] = *binding;
  }
  --nz->depth;
  return NULL;
}

/* ---- @main ---- */

/* One input or output of the old @main: its dictionary of attributes. */
static MlirAttribute slot_attrs(MlirOperation func, const char *list, int index) {
  MlirAttribute array = o3_op_attr(func, list);
  if (mlirAttributeIsNull(array) || index >= mlirArrayAttrGetNumElements(array))
    return mlirAttributeGetNull();
  return mlirArrayAttrGetElement(array, index);
}

static MlirAttribute slot_attr(MlirOperation func, const char *list, int index, const char *name) {
  MlirAttribute dictionary = slot_attrs(func, list, index);
  if (mlirAttributeIsNull(dictionary)) return dictionary;
  return mlirDictionaryAttrGetElementByName(dictionary, O3_STR(name));
}

static o3_status_t slot_name(o3_nz_t *nz, MlirOperation func, const char *list, int index,
                             const char **name) {
  MlirAttribute attr = slot_attr(func, list, index, "o3.name");
  MlirStringRef text = mlirAttributeIsNull(attr) ? O3_STR("?") : mlirStringAttrGetValue(attr);
  *name = o3_arena_strndup(nz->arena, text.data, text.length);
  O3_TRY_ALLOC(*name);
  return NULL;
}

static const o3_shape_override_t *find_override(const o3_nz_t *nz, const char *input) {
  for (int i = 0; i < nz->env->num_shapes; ++i) {
    if (strcmp(nz->env->shapes[i].input, input) == 0) return &nz->env->shapes[i];
  }
  return NULL;
}

/* What exporters write for a size of which nothing is known: dimensions called so are not the same. */
static bool is_placeholder(MlirStringRef text) {
  static const char *const PLACEHOLDERS[] = {"", "?", "-1", "None"};
  for (size_t i = 0; i < sizeof(PLACEHOLDERS) / sizeof(PLACEHOLDERS[0]); ++i) {
    if (o3_str_equal(text, PLACEHOLDERS[i])) return true;
  }
  return false;
}

/* The size of a named dimension: --dim's, or its symbol. NULL expression when memory is out. */
static MlirAffineExpr named_dim(o3_nz_t *nz, MlirAttribute names, int dim, const char *input) {
  MlirAttribute item = mlirAttributeIsNull(names) || dim >= mlirArrayAttrGetNumElements(names)
                           ? mlirAttributeGetNull()
                           : mlirArrayAttrGetElement(names, dim);
  MlirStringRef text = mlirAttributeIsNull(item) ? O3_STR("") : mlirStringAttrGetValue(item);
  const char *name = is_placeholder(text) ? o3_arena_printf(nz->arena, "%s.d%d", input, dim)
                                          : o3_arena_strndup(nz->arena, text.data, text.length);
  for (int i = 0; name && i < nz->env->num_dims; ++i) {
    if (strcmp(nz->env->dims[i].name, name) == 0) return o3_expr_const(nz->context, nz->env->dims[i].size);
  }
  return name ? o3_symbols_input(nz->symbols, name) : (MlirAffineExpr){0};
}

static o3_status_t declared_shape(o3_nz_t *nz, MlirOperation func, int index, const char *name, MlirType type,
                                  o3_shape_t *shape) {
  const o3_shape_override_t *override = find_override(nz, name);
  bool ranked = mlirTypeIsARankedTensor(type);
  if (!ranked && !override)
    return o3_status_create(O3_STATUS_UNSUPPORTED,
                            "input '%s' has no declared shape: give one with --shape %s:...", name, name);
  shape->rank = ranked ? o3_type_rank(type) : override->rank;
  if (override && override->rank != shape->rank)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "--shape %s: rank %d given, the model declares rank %d", name, override->rank,
                            shape->rank);
  MlirAttribute names = slot_attr(func, "arg_attrs", index, "o3.dims");
  for (int i = 0; i < shape->rank; ++i) {
    int64_t declared = ranked ? o3_type_dim(type, i) : -1;
    int64_t given = override ? override->sizes[i] : -1;
    if (declared >= 0 && given >= 0 && given != declared)
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                              "--shape %s: dimension %d is %lld, the model fixes it to %lld", name, i,
                              (long long)given, (long long)declared);
    int64_t size = given >= 0 ? given : declared;
    shape->dims[i] = size >= 0 ? o3_expr_const(nz->context, size) : named_dim(nz, names, i, name);
    O3_TRY_ALLOC(shape->dims[i].ptr);
  }
  return NULL;
}

/* Exactly, also as the number that scalars are made from. */
static bool holds(MlirType element, int64_t value) {
  const int64_t exact = INT64_C(1) << 53;
  int bits = o3_type_bits(element) - !mlirIntegerTypeIsUnsigned(element);
  return value <= exact && (bits >= 63 || value >> bits == 0);
}

/* What stands for the input: its argument, or the value that the user says it has, which a guard checks. */
static o3_status_t fix_value(o3_nz_t *nz, const char *name, MlirValue *value) {
  const o3_fact_t *fact = o3_nz_fact(nz, *value);
  const o3_value_override_t *given = NULL;
  MlirAffineExpr element;
  for (int i = 0; i < nz->env->num_values; ++i) {
    if (strcmp(nz->env->values[i].input, name) == 0) given = &nz->env->values[i];
  }
  if (!given) return NULL;
  if (o3_type_is_float(fact->element) || o3_type_bits(fact->element) < 8 || fact->shape.rank > 1 ||
      o3_infer_small_count(&fact->shape) != 1)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "--value %s: the input is no single integer, of rank 0 or 1", name);
  if (!holds(fact->element, given->value))
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--value %s=%" PRId64 ": %s", name, given->value,
                            "the input's type, or a double, does not hold the number");
  nz->who = o3_arena_printf(nz->arena, "input '%s', which --value has fixed", name);
  O3_TRY_ALLOC(nz->who);
  (void)o3_nz_bind_sizes(nz, *value, "it", &element, 1);
  O3_TRY(take_failure(nz, NULL));
  MlirAffineExpr number = o3_expr_const(nz->context, given->value);
  if (!o3_symbols_require_equal(nz->symbols, element, number, nz->who))
    return o3_status_create(O3_STATUS_INTERNAL, "%s cannot be checked", nz->who);
  MlirValue scalar = o3_nz_scalar(nz, fact->element, (double)given->value);
  *value = fact->shape.rank ? o3_nz_reshape(nz, scalar, &fact->shape) : scalar;
  nz->who = "the model";
  return take_failure(nz, NULL);
}

static MlirNamedAttribute named(MlirContext context, const char *name, MlirAttribute value) {
  return mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR(name)), value);
}

static MlirAttribute interface_attr(o3_nz_t *nz, const char *name, const o3_shape_t *shape,
                                    MlirType element) {
  MlirNamedAttribute items[3] = {
      named(nz->context, "o3.element", o3_attr_type(element)),
      named(nz->context, "o3.name", o3_attr_string(nz->context, name)),
      named(nz->context, "o3.shape", o3_shape_attr(nz->context, shape, o3_symbols_count(nz->symbols)))};
  return mlirDictionaryAttrGet(nz->context, 3, items);
}

/* The interface of the new @main, gathered before the op can be made. */
typedef struct main_builder {
  MlirOperation old;
  MlirBlock block;
  int num_args, num_results;
  MlirType arg_types[MAX_FUNC_VALUES], result_types[MAX_FUNC_VALUES];
  o3_shape_t *arg_shapes;
  MlirAttribute arg_attrs[MAX_FUNC_VALUES], result_attrs[MAX_FUNC_VALUES];
} main_builder_t;

static o3_status_t add_input(o3_nz_t *nz, main_builder_t *main, int index) {
  const char *name;
  O3_TRY(slot_name(nz, main->old, "arg_attrs", index, &name));
  MlirAttribute declared = slot_attr(main->old, "arg_attrs", index, "o3.type");
  if (mlirAttributeIsNull(declared) || !mlirAttributeIsAType(declared)) {
    MlirStringRef text =
        mlirAttributeIsNull(declared) ? O3_STR("an unknown type") : mlirStringAttrGetValue(declared);
    return o3_status_create(O3_STATUS_UNSUPPORTED, "input '%s' is of type %.*s, which is not supported", name,
                            O3_STR_ARGS(text));
  }
  MlirType type = mlirTypeAttrGetValue(declared);
  o3_fact_t *fact = O3_ARENA_NEW(nz->arena, o3_fact_t);
  O3_TRY_ALLOC(fact);
  fact->element = o3_type_element(type);
  if (!o3_type_bits(fact->element))
    return o3_status_create(O3_STATUS_UNSUPPORTED, "input '%s' has an element type that is not supported",
                            name);
  O3_TRY(declared_shape(nz, main->old, index, name, type, &fact->shape));
  MlirLocation location = mlirLocationNameGet(nz->context, O3_STR(name), mlirOperationGetLocation(main->old));
  MlirValue arg = mlirBlockAddArgument(main->block, o3_fact_type(fact), location);
  main->arg_types[index] = o3_fact_type(fact);
  main->arg_shapes[index] = fact->shape;
  if (!o3_ptr_map_put(nz->facts, arg.ptr, fact))
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  O3_TRY(fix_value(nz, name, &arg));
  return bind_tensor(nz, mlirBlockGetArgument(o3_func_body(main->old), index), arg);
}

static o3_status_t add_output(o3_nz_t *nz, main_builder_t *main, int index, MlirValue *value) {
  const char *name;
  O3_TRY(slot_name(nz, main->old, "res_attrs", index, &name));
  MlirOperation terminator = mlirBlockGetTerminator(o3_func_body(main->old));
  *value = bound_tensor(nz, mlirOperationGetOperand(terminator, index));
  if (mlirValueIsNull(*value))
    return o3_status_create(O3_STATUS_UNSUPPORTED, "output '%s' is no tensor, which is not supported", name);
  const o3_fact_t *fact = o3_nz_fact(nz, *value);
  main->result_types[index] = mlirValueGetType(*value);
  main->result_attrs[index] = interface_attr(nz, name, &fact->shape, fact->element);
  return NULL;
}

static MlirOperation create_main(o3_nz_t *nz, main_builder_t *main) {
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, main->block);
  MlirType type = mlirFunctionTypeGet(nz->context, main->num_args, main->arg_types, main->num_results,
                                      main->result_types);
  const o3_attr_t attrs[] = {
      {"sym_name", o3_attr_string(nz->context, "main")},
      {"function_type", mlirTypeAttrGet(type)},
      {"arg_attrs", mlirArrayAttrGet(nz->context, main->num_args, main->arg_attrs)},
      {"res_attrs", mlirArrayAttrGet(nz->context, main->num_results, main->result_attrs)},
  };
  o3_builder_t builder =
      o3_builder_at_end(mlirModuleGetBody(nz->module), mlirOperationGetLocation(main->old));
  o3_op_spec_t spec = {
      .name = "func.func", .num_attrs = 4, .attrs = attrs, .num_regions = 1, .regions = &region};
  return o3_build(&builder, &spec);
}

static o3_status_t convert_main(o3_nz_t *nz, main_builder_t *main) {
  MlirValue outputs[MAX_FUNC_VALUES];
  MlirBlock old_body = o3_func_body(main->old);
  main->num_args = (int)mlirBlockGetNumArguments(old_body);
  main->num_results = (int)mlirOperationGetNumOperands(mlirBlockGetTerminator(old_body));
  if (main->num_args > MAX_FUNC_VALUES || main->num_results > MAX_FUNC_VALUES)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "the model has more than %d inputs or outputs",
                            MAX_FUNC_VALUES);
  main->arg_shapes = O3_ARENA_ARRAY(nz->arena, o3_shape_t, (size_t)main->num_args + 1);
  O3_TRY_ALLOC(main->arg_shapes);
  for (int i = 0; i < main->num_args; ++i) O3_TRY(add_input(nz, main, i));
  O3_TRY(convert_block(nz, old_body));
  nz->builder.location = mlirOperationGetLocation(main->old);
  o3_nz_check_guards(nz);
  for (int i = 0; i < main->num_results; ++i) O3_TRY(add_output(nz, main, i, &outputs[i]));
  o3_build0(&nz->builder, "func.return", main->num_results, outputs);
  for (int i = 0; i < main->num_args; ++i) {
    const char *name;
    O3_TRY(slot_name(nz, main->old, "arg_attrs", i, &name));
    main->arg_attrs[i] = interface_attr(nz, name, &main->arg_shapes[i], o3_type_element(main->arg_types[i]));
  }
  return NULL;
}

/* Unknown names in --dim, --shape and --value are mistakes, not wishes. */
static o3_status_t check_input(MlirOperation old, const char *option, const char *input) {
  for (int k = 0; k < mlirBlockGetNumArguments(o3_func_body(old)); ++k) {
    MlirAttribute name = slot_attr(old, "arg_attrs", k, "o3.name");
    if (o3_str_equal(mlirStringAttrGetValue(name), input)) return NULL;
  }
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s: the model has no input '%s'", option, input);
}

static o3_status_t check_overrides(const o3_nz_t *nz, MlirOperation old) {
  for (int i = 0; i < nz->env->num_shapes; ++i) O3_TRY(check_input(old, "--shape", nz->env->shapes[i].input));
  for (int i = 0; i < nz->env->num_values; ++i) O3_TRY(check_input(old, "--value", nz->env->values[i].input));
  return NULL;
}

static bool names_dim(MlirOperation func, const char *name) {
  for (int k = 0; k < mlirBlockGetNumArguments(o3_func_body(func)); ++k) {
    MlirAttribute names = slot_attr(func, "arg_attrs", k, "o3.dims");
    intptr_t count = mlirAttributeIsNull(names) ? 0 : mlirArrayAttrGetNumElements(names);
    for (intptr_t d = 0; d < count; ++d) {
      MlirStringRef text = mlirStringAttrGetValue(mlirArrayAttrGetElement(names, d));
      if (o3_str_equal(text, name) && !is_placeholder(text)) return true;
    }
  }
  return false;
}

static o3_status_t check_dims(const o3_nz_t *nz, MlirOperation old) {
  for (int i = 0; i < nz->env->num_dims; ++i) {
    if (!names_dim(old, nz->env->dims[i].name))
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--dim: the model has no dimension '%s'",
                              nz->env->dims[i].name);
  }
  return NULL;
}

static void erase_functions(MlirModule module, MlirOperation keep) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    if (o3_op_is(op, "func.func") && !mlirOperationEqual(op, keep)) mlirOperationDestroy(op);
    op = next;
  }
}

static o3_status_t run(o3_nz_t *nz, main_builder_t *main) {
  O3_TRY(check_overrides(nz, main->old));
  O3_TRY(check_dims(nz, main->old));
  main->block = mlirBlockCreate(0, NULL, NULL);
  nz->builder = o3_builder_at_end(main->block, mlirOperationGetLocation(main->old));
  o3_status_t status = convert_main(nz, main);
  if (status) {
    mlirBlockDestroy(main->block);
    return status;
  }
  MlirOperation func = create_main(nz, main);
  O3_TRY(o3_symbols_to_func(nz->symbols, func));
  erase_functions(nz->module, func);
  o3_op_attr_set(mlirModuleGetOperation(nz->module), "o3.stage", o3_attr_string(nz->context, "normalize"));
  return NULL;
}

o3_status_t o3_normalize(o3_pass_env_t *env, MlirModule module) {
  o3_nz_t nz = {.env = env,
                .context = env->context,
                .module = module,
                .arena = env->arena,
                .weights = env->weights,
                .symbols = o3_symbols_create(env->context, env->arena),
                .facts = o3_ptr_map_create(env->arena),
                .values = o3_ptr_map_create(env->arena),
                .who = "the model"};
  main_builder_t *main = O3_ARENA_NEW(env->arena, main_builder_t);
  if (!nz.symbols || !nz.facts || !nz.values || !main)
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  main->old = o3_module_func(module, "main");
  if (mlirOperationIsNull(main->old))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "the module has no @main");
  return run(&nz, main);
}
