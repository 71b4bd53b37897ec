#include "rewrite/rewrite_ir.h"

#include "analysis/shape.h"

bool o3_op_is_pure(MlirOperation op) {
  static const char *const IMPURE[] = {"o3.guard", "o3.bind", "o3.node", "o3.initializer"};
  static const char *const UPSTREAM[] = {"tensor.concat", "tensor.cast"};
  MlirStringRef name = o3_op_name(op);
  for (size_t i = 0; i < sizeof(IMPURE) / sizeof(IMPURE[0]); ++i) {
    if (o3_str_equal(name, IMPURE[i])) return false;
  }
  for (size_t i = 0; i < sizeof(UPSTREAM) / sizeof(UPSTREAM[0]); ++i) {
    if (o3_str_equal(name, UPSTREAM[i])) return true;
  }
  return o3_op_is_of(op, "o3");
}

static bool has_symbol(MlirAffineExpr expr) {
  if (!mlirAffineExprIsABinary(expr)) return mlirAffineExprIsASymbol(expr);
  return has_symbol(mlirAffineBinaryOpExprGetLHS(expr)) || has_symbol(mlirAffineBinaryOpExprGetRHS(expr));
}

bool o3_op_reads_sizes(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); ++i) {
    MlirAttribute attr = mlirOperationGetAttribute(op, i).attribute;
    if (!mlirAttributeIsAAffineMap(attr)) continue;
    MlirAffineMap map = mlirAffineMapAttrGetValue(attr);
    for (intptr_t r = 0; r < mlirAffineMapGetNumResults(map); ++r) {
      if (has_symbol(mlirAffineMapGetResult(map, r))) return true;
    }
  }
  return false;
}

bool o3_value_has_uses(MlirValue value) { return !mlirOpOperandIsNull(mlirValueGetFirstUse(value)); }

MlirOperation o3_value_single_user(MlirValue value) {
  MlirOpOperand use = mlirValueGetFirstUse(value);
  if (mlirOpOperandIsNull(use) || !mlirOpOperandIsNull(mlirOpOperandGetNextUse(use)))
    return (MlirOperation){0};
  return mlirOpOperandGetOwner(use);
}

static o3_status_t collect(MlirOperation op, void *ops) {
  if (o3_ptr_vec_push(ops, op.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

o3_status_t o3_collect_ops(MlirOperation root, o3_ptr_vec_t *ops) { return o3_walk(root, collect, ops); }

o3_status_t o3_choices_append(o3_arena_t *arena, MlirModule module, intptr_t count,
                              const MlirAttribute *list) {
  MlirOperation root = mlirModuleGetOperation(module);
  MlirAttribute old = o3_op_attr(root, "o3.choices");
  intptr_t known = mlirAttributeIsNull(old) ? 0 : mlirArrayAttrGetNumElements(old);
  MlirAttribute *all = O3_ARENA_ARRAY(arena, MlirAttribute, (size_t)(known + count) + 1);
  O3_TRY_ALLOC(all);
  for (intptr_t i = 0; i < known; ++i) all[i] = mlirArrayAttrGetElement(old, i);
  for (intptr_t i = 0; i < count; ++i) all[known + i] = list[i];
  if (count)
    o3_op_attr_set(root, "o3.choices", mlirArrayAttrGet(mlirModuleGetContext(module), known + count, all));
  return NULL;
}

o3_status_t o3_choice_note(o3_arena_t *arena, MlirModule module, MlirOperation op, const char *text) {
  MlirContext context = mlirModuleGetContext(module);
  MlirAttribute pair[2] = {mlirStringAttrGet(context, o3_op_label(op)), o3_attr_string(context, text)};
  MlirAttribute both = mlirArrayAttrGet(context, 2, pair);
  return o3_choices_append(arena, module, 1, &both);
}

void o3_op_replace(MlirOperation op, int count, const MlirValue *values) {
  for (int i = 0; i < count; ++i) mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, i), values[i]);
  mlirOperationDestroy(op);
}

/* The map of the sizes of |value|, which an op that makes one like it needs; null when they are all static.
 */
static MlirAttribute shape_of(MlirValue value) {
  if (mlirValueIsABlockArgument(value)) {
    MlirOperation parent = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
    MlirAttribute attrs = o3_op_attr(parent, "arg_attrs"), carried = o3_op_attr(parent, "o3.arg_shapes");
    intptr_t index = mlirBlockArgumentGetArgNumber(value);
    if (!mlirAttributeIsNull(carried)) {
      MlirAttribute own = mlirArrayAttrGetElement(carried, index);
      return mlirArrayAttrGet(mlirAttributeGetContext(own), 1, &own);
    }
    if (mlirAttributeIsNull(attrs) || index >= mlirArrayAttrGetNumElements(attrs)) return (MlirAttribute){0};
    MlirAttribute map =
        mlirDictionaryAttrGetElementByName(mlirArrayAttrGetElement(attrs, index), O3_STR("o3.shape"));
    return mlirAttributeIsNull(map) ? map : mlirArrayAttrGet(mlirAttributeGetContext(map), 1, &map);
  }
  MlirAttribute shapes = o3_op_attr(o3_value_def(value), "o3.shape");
  intptr_t result = mlirOpResultGetResultNumber(value);
  if (mlirAttributeIsNull(shapes) || !mlirAttributeIsAArray(shapes)) return shapes;
  if (result >= mlirArrayAttrGetNumElements(shapes)) return (MlirAttribute){0};
  MlirAttribute own = mlirArrayAttrGetElement(shapes, result);
  return mlirArrayAttrGet(mlirAttributeGetContext(own), 1, &own);
}

MlirType o3_type_with_dim(MlirType type, int dim, int64_t size) {
  int64_t sizes[O3_IR_MAX_RANK];
  int rank = o3_type_rank(type);
  for (int i = 0; i < rank; ++i) sizes[i] = i == dim ? size : o3_type_dim(type, i);
  return o3_tensor_type(rank, sizes, o3_type_element(type));
}

MlirAttribute o3_sizes_with(MlirAttribute sizes, int dim, int64_t size) {
  o3_shape_t shape;
  if (mlirAttributeIsNull(sizes)) return sizes;
  MlirAttribute first = mlirArrayAttrGetElement(sizes, 0);
  MlirContext context = mlirAttributeGetContext(first);
  o3_shape_from_attr(first, &shape);
  shape.dims[dim] = o3_expr_const(context, size);
  int symbols = (int)mlirAffineMapGetNumSymbols(mlirAffineMapAttrGetValue(first));
  MlirAttribute resized = o3_shape_attr(context, &shape, symbols);
  return mlirArrayAttrGet(context, 1, &resized);
}

MlirValue o3_value_slice(o3_builder_t *b, MlirValue value, int axis, int64_t start, int64_t count) {
  MlirAffineExpr first = mlirAffineConstantExprGet(b->context, start);
  MlirAttribute starts = mlirAffineMapAttrGet(mlirAffineMapGet(b->context, 0, 0, 1, &first));
  return o3_build1_attrs(b, "o3.slice", o3_type_with_dim(mlirValueGetType(value), axis, count),
                         O3_VALUES(value),
                         O3_ATTRS({"axes", o3_attr_ints(b->context, 1, (int64_t[]){axis})},
                                  {"starts", starts}, {"steps", o3_attr_ints(b->context, 1, (int64_t[]){1})},
                                  {"o3.shape", o3_sizes_with(shape_of(value), axis, count)}));
}

MlirValue o3_value_cast(o3_builder_t *b, MlirValue value, MlirType element) {
  return o3_build1_attrs(b, "o3.cast", o3_type_with_element(mlirValueGetType(value), element),
                         O3_VALUES(value),
                         O3_ATTRS({"to", o3_attr_type(element)}, {"o3.shape", shape_of(value)}));
}

void o3_value_replace_except(MlirValue value, MlirValue other, MlirOperation except) {
  MlirOpOperand use = mlirValueGetFirstUse(value);
  while (!mlirOpOperandIsNull(use)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    intptr_t operand = mlirOpOperandGetOperandNumber(use);
    use = mlirOpOperandGetNextUse(use);
    if (!mlirOperationEqual(user, except)) mlirOperationSetOperand(user, operand, other);
  }
}

/* Of the function whose body ends in a func.return. */
static o3_status_t type_of_main(o3_arena_t *arena, MlirBlock block, MlirType *type) {
  MlirOperation end = mlirBlockGetTerminator(block);
  intptr_t num_inputs = mlirBlockGetNumArguments(block), num_results = mlirOperationGetNumOperands(end);
  MlirType *types = O3_ARENA_ARRAY(arena, MlirType, (size_t)(num_inputs + num_results) + 1);
  O3_TRY_ALLOC(types);
  for (intptr_t i = 0; i < num_inputs; ++i) types[i] = mlirValueGetType(mlirBlockGetArgument(block, i));
  for (intptr_t i = 0; i < num_results; ++i)
    types[num_inputs + i] = mlirValueGetType(mlirOperationGetOperand(end, i));
  *type =
      mlirFunctionTypeGet(mlirOperationGetContext(end), num_inputs, types, num_results, types + num_inputs);
  return NULL;
}

o3_status_t o3_main_build(o3_arena_t *arena, MlirModule module, MlirBlock block, int count,
                          const MlirValue *results) {
  MlirContext context = mlirModuleGetContext(module);
  MlirLocation location = mlirLocationUnknownGet(context);
  MlirAttribute none = mlirArrayAttrGet(context, 0, NULL);
  MlirRegion region = mlirRegionCreate();
  MlirType type = {0};
  o3_builder_t inner = o3_builder_at_end(block, location),
               outer = o3_builder_at_end(mlirModuleGetBody(module), location);
  mlirRegionAppendOwnedBlock(region, block);
  o3_build0(&inner, "func.return", count, results);
  o3_status_t status = type_of_main(arena, block, &type);
  if (status) {
    mlirRegionDestroy(region);
    return status;
  }
  const o3_attr_t attrs[] = {{"sym_name", o3_attr_string(context, "main")},
                             {"function_type", mlirTypeAttrGet(type)},
                             {"o3.symbols", none},
                             {"o3.guards", none}};
  o3_op_spec_t spec = {
      .name = "func.func", .num_attrs = 4, .attrs = attrs, .num_regions = 1, .regions = &region};
  o3_build(&outer, &spec);
  return NULL;
}
