/* Building blocks of the lowering. */
#include "target/ref/lowering.h"

#include <string.h>

#include "base/check.h"

/* ---- Types and shapes ---- */

MlirType o3_lw_type(MlirType type) {
  if (mlirTypeIsAInteger(type))
    return mlirIntegerTypeGet(mlirTypeGetContext(type), mlirIntegerTypeGetWidth(type));
  if (o3_type_float8(type)) return mlirIntegerTypeGet(mlirTypeGetContext(type), 8);
  if (!mlirTypeIsARankedTensor(type)) return type;
  int64_t sizes[O3_IR_MAX_RANK];
  for (int i = 0; i < o3_type_rank(type); ++i) sizes[i] = o3_type_dim(type, i);
  return o3_tensor_type(o3_type_rank(type), sizes, o3_lw_type(o3_type_element(type)));
}

MlirType o3_lw_old_element(MlirOperation op, int operand) {
  return o3_type_element(mlirValueGetType(mlirOperationGetOperand(op, operand)));
}

MlirType o3_lw_result_element(MlirOperation op, int result) {
  return o3_type_element(mlirValueGetType(mlirOperationGetResult(op, result)));
}

MlirType o3_lw_new_element(MlirOperation op, int result) {
  return o3_lw_type(o3_lw_result_element(op, result));
}

/* A value's shape is noted where it is made: on its op, or on @main for arguments. Values of upstream ops in
 * loops and branches may have none; static types say it all. */
static void value_shape(const o3_lw_t *lw, MlirValue value, o3_shape_t *shape) {
  MlirType type = mlirValueGetType(value);
  MlirAttribute attr = mlirAttributeGetNull();
  if (mlirValueIsAOpResult(value)) {
    attr = o3_op_attr(mlirOpResultGetOwner(value), "o3.shape");
    if (!mlirAttributeIsNull(attr)) attr = mlirArrayAttrGetElement(attr, mlirOpResultGetResultNumber(value));
  } else {
    MlirOperation func = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
    MlirAttribute list = o3_op_attr(func, "arg_attrs");
    intptr_t index = mlirBlockArgumentGetArgNumber(value);
    if (!mlirAttributeIsNull(list) && mlirAttributeIsAArray(list) &&
        index < mlirArrayAttrGetNumElements(list))
      attr = mlirDictionaryAttrGetElementByName(mlirArrayAttrGetElement(list, index), O3_STR("o3.shape"));
    if (mlirAttributeIsNull(attr)) attr = o3_op_attr(func, "o3.arg_shapes");
    if (!mlirAttributeIsNull(attr) && mlirAttributeIsAArray(attr))
      attr = mlirArrayAttrGetElement(attr, index);
  }
  if (!mlirAttributeIsNull(attr) && mlirAttributeIsAAffineMap(attr)) {
    o3_shape_from_attr(attr, shape);
    for (int i = 0; i < shape->rank; ++i) shape->dims[i] = o3_symbols_resolve(lw->symbols, shape->dims[i]);
  } else {
    O3_ASSERT(o3_type_is_static(type), "dynamic values have o3.shape on the op or block that makes them");
    o3_shape_from_type(type, shape);
  }
}

void o3_lw_result_shape(const o3_lw_t *lw, MlirOperation op, int result, o3_shape_t *shape) {
  value_shape(lw, mlirOperationGetResult(op, result), shape);
}

void o3_lw_operand_shape(const o3_lw_t *lw, MlirOperation op, int operand, o3_shape_t *shape) {
  value_shape(lw, mlirOperationGetOperand(op, operand), shape);
}

/* ---- Values ---- */

static void collect_symbols(MlirAffineExpr expr, bool *used) {
  if (mlirAffineExprIsASymbol(expr)) {
    used[mlirAffineSymbolExprGetPosition(expr)] = true;
  } else if (mlirAffineExprIsABinary(expr)) {
    collect_symbols(mlirAffineBinaryOpExprGetLHS(expr), used);
    collect_symbols(mlirAffineBinaryOpExprGetRHS(expr), used);
  }
}

/* Symbols that the expression does not use are passed as 0: canonicalization drops them. */
MlirValue o3_lw_size(o3_lw_t *lw, MlirAffineExpr expr) {
  int count = o3_symbols_count(lw->symbols);
  int64_t constant;
  if (o3_expr_is_const(expr, &constant)) return o3_build_index(&lw->builder, constant);
  for (int i = 0; i < count; ++i) lw->used[i] = false;
  collect_symbols(expr, lw->used);
  MlirValue zero = o3_build_index(&lw->builder, 0);
  for (int i = 0; i < count; ++i) {
    O3_ASSERT(!lw->used[i] || !mlirValueIsNull(lw->symbol_values[i]),
              "a symbol's value is known before it is used");
    lw->operands[i] = lw->used[i] ? lw->symbol_values[i] : zero;
  }
  return o3_build_affine(&lw->builder, expr, count, lw->operands);
}

static int dynamic_sizes(o3_lw_t *lw, const o3_shape_t *shape, MlirValue *sizes) {
  int count = 0;
  for (int i = 0; i < shape->rank; ++i) {
    if (!o3_expr_is_const(shape->dims[i], NULL)) sizes[count++] = o3_lw_size(lw, shape->dims[i]);
  }
  return count;
}

MlirValue o3_lw_empty(o3_lw_t *lw, const o3_shape_t *shape, MlirType element) {
  MlirValue sizes[O3_IR_MAX_RANK];
  int count = dynamic_sizes(lw, shape, sizes);
  return o3_build1(&lw->builder, "tensor.empty", o3_shape_type(shape, element), count, sizes);
}

static void yield_outer(const o3_body_args_t *in) { in->results[0] = *(MlirValue *)in->context; }

MlirValue o3_lw_fill(o3_lw_t *lw, const o3_shape_t *shape, MlirValue scalar) {
  return o3_lw_generate(lw, shape, mlirValueGetType(scalar), yield_outer, &scalar);
}

MlirValue o3_lw_cast(o3_lw_t *lw, MlirValue value, MlirType type) {
  if (mlirTypeEqual(mlirValueGetType(value), type)) return value;
  return o3_build1(&lw->builder, "tensor.cast", type, O3_VALUES(value));
}

const char *o3_lw_who(o3_lw_t *lw, MlirOperation op) {
  MlirStringRef label = o3_op_label(op);
  const char *text = o3_arena_printf(lw->arena, "node '%.*s'", O3_STR_ARGS(label));
  return text ? text : "a node";
}

void o3_lw_assert(o3_lw_t *lw, MlirOperation op, MlirValue condition, const char *message) {
  const char *text = o3_arena_printf(lw->arena, "%s: %s", o3_lw_who(lw, op), message);
  const o3_attr_t attrs[] = {{"msg", o3_attr_string(lw->context, text ? text : message)}};
  o3_op_spec_t spec = {
      .name = "cf.assert", .num_operands = 1, .operands = &condition, .num_attrs = 1, .attrs = attrs};
  o3_build(&lw->builder, &spec);
}

/* ---- Maps ---- */

MlirAffineMap o3_lw_identity(const o3_lw_t *lw, int rank) {
  return mlirAffineMapMultiDimIdentityGet(lw->context, rank);
}

MlirAffineMap o3_lw_projection(const o3_lw_t *lw, int loops, int count, const int64_t *list) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK * 2];
  for (int i = 0; i < count; ++i) exprs[i] = mlirAffineDimExprGet(lw->context, list[i]);
  return mlirAffineMapGet(lw->context, loops, 0, count, exprs);
}

MlirAffineMap o3_lw_broadcast_map(const o3_lw_t *lw, const o3_shape_t *from, const o3_shape_t *to) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK];
  int lead = to->rank - from->rank;
  for (int i = 0; i < from->rank; ++i) {
    bool repeated = o3_expr_equals_const(from->dims[i], 1) && !o3_expr_equals_const(to->dims[lead + i], 1);
    exprs[i] = repeated ? o3_expr_const(lw->context, 0) : mlirAffineDimExprGet(lw->context, lead + i);
  }
  return mlirAffineMapGet(lw->context, to->rank, 0, from->rank, exprs);
}

/* ---- linalg.generic ---- */

static MlirAttribute iterators_attr(MlirContext context, const char *letters) {
  MlirAttribute items[O3_IR_MAX_RANK * 2];
  int count = (int)strlen(letters);
  MlirAttribute parallel = o3_attr_parse(context, "#linalg.iterator_type<parallel>");
  MlirAttribute reduction = o3_attr_parse(context, "#linalg.iterator_type<reduction>");
  for (int i = 0; i < count; ++i) items[i] = letters[i] == 'p' ? parallel : reduction;
  return mlirArrayAttrGet(context, count, items);
}

static MlirRegion generic_region(o3_lw_t *lw, const o3_generic_t *generic) {
  int total = generic->num_inputs + generic->num_outputs;
  MlirType types[O3_GENERIC_MAX_OPERANDS];
  MlirLocation locations[O3_GENERIC_MAX_OPERANDS];
  MlirValue args[O3_GENERIC_MAX_OPERANDS], results[2];
  for (int i = 0; i < total; ++i) {
    MlirValue value =
        i < generic->num_inputs ? generic->inputs[i] : generic->outputs[i - generic->num_inputs];
    types[i] = o3_type_element(mlirValueGetType(value));
    locations[i] = lw->builder.location;
  }
  MlirBlock block = mlirBlockCreate(total, types, locations);
  for (int i = 0; i < total; ++i) args[i] = mlirBlockGetArgument(block, i);
  o3_builder_t inner = o3_builder_at_end(block, lw->builder.location);
  generic->body(&(o3_body_args_t){
      .builder = &inner, .context = generic->context, .op = generic->op, .args = args, .results = results});
  o3_build0(&inner, "linalg.yield", generic->num_outputs, results);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, block);
  return region;
}

void o3_lw_generic(o3_lw_t *lw, const o3_generic_t *generic, MlirValue *results) {
  int total = generic->num_inputs + generic->num_outputs;
  MlirValue operands[O3_GENERIC_MAX_OPERANDS];
  MlirAttribute maps[O3_GENERIC_MAX_OPERANDS];
  MlirType types[2];
  O3_ASSERT(total <= O3_GENERIC_MAX_OPERANDS, "generics have few operands");
  for (int i = 0; i < total; ++i) {
    operands[i] = i < generic->num_inputs ? generic->inputs[i] : generic->outputs[i - generic->num_inputs];
    maps[i] = mlirAffineMapAttrGet(generic->maps[i]);
  }
  for (int i = 0; i < generic->num_outputs; ++i) types[i] = mlirValueGetType(generic->outputs[i]);
  int32_t segments[2] = {generic->num_inputs, generic->num_outputs};
  const o3_attr_t attrs[] = {
      {"indexing_maps", mlirArrayAttrGet(lw->context, total, maps)},
      {"iterator_types", iterators_attr(lw->context, generic->iterators)},
      {"operandSegmentSizes", mlirDenseI32ArrayGet(lw->context, 2, segments)},
      {"o3.kernel", generic->kernel ? o3_attr_string(lw->context, generic->kernel) : mlirAttributeGetNull()},
  };
  MlirRegion region = generic_region(lw, generic);
  o3_op_spec_t spec = {.name = "linalg.generic",
                       .num_operands = total,
                       .operands = operands,
                       .num_results = generic->num_outputs,
                       .results = types,
                       .num_attrs = 4,
                       .attrs = attrs,
                       .num_regions = 1,
                       .regions = &region};
  MlirOperation op = o3_build(&lw->builder, &spec);
  for (int i = 0; i < generic->num_outputs; ++i) results[i] = mlirOperationGetResult(op, i);
}

static const char ALL_PARALLEL[] = "pppppppppppppppp";

MlirValue o3_lw_map_shaped(o3_lw_t *lw, const o3_shape_t *shape, MlirType element, int count,
                           const MlirValue *inputs, const o3_shape_t *shapes, o3_body_fn_t body,
                           void *context) {
  o3_generic_t generic = {.iterators = ALL_PARALLEL + O3_IR_MAX_RANK - shape->rank,
                          .num_inputs = count,
                          .num_outputs = 1,
                          .outputs = {o3_lw_empty(lw, shape, element)},
                          .body = body,
                          .context = context};
  for (int i = 0; i < count; ++i) {
    generic.inputs[i] = inputs[i];
    generic.maps[i] = o3_lw_broadcast_map(lw, &shapes[i], shape);
  }
  generic.maps[count] = o3_lw_identity(lw, shape->rank);
  MlirValue result;
  o3_lw_generic(lw, &generic, &result);
  return result;
}

typedef struct op_body {
  MlirOperation op;
  o3_body_fn_t body;
  void *context;
} op_body_t;

static void call_with_op(const o3_body_args_t *in) {
  const op_body_t *inner = in->context;
  o3_body_args_t args = *in;
  args.op = inner->op;
  args.context = inner->context;
  inner->body(&args);
}

MlirValue o3_lw_map(o3_lw_t *lw, MlirOperation op, int index, int count, const MlirValue *inputs,
                    o3_body_fn_t body, void *context) {
  o3_shape_t shape, shapes[O3_GENERIC_MAX_OPERANDS];
  op_body_t inner = {.op = op, .body = body, .context = context};
  o3_lw_result_shape(lw, op, index, &shape);
  for (int i = 0; i < count; ++i) o3_lw_operand_shape(lw, op, i, &shapes[i]);
  return o3_lw_map_shaped(lw, &shape, o3_lw_new_element(op, index), count, inputs, shapes, call_with_op,
                          &inner);
}

MlirValue o3_lw_generate(o3_lw_t *lw, const o3_shape_t *shape, MlirType element, o3_body_fn_t body,
                         void *context) {
  return o3_lw_map_shaped(lw, shape, element, 0, NULL, NULL, body, context);
}

MlirValue o3_lw_index(o3_builder_t *builder, int loop) {
  return o3_build1_attrs(builder, "linalg.index", o3_build_index_type(builder), O3_NO_VALUES,
                         O3_ATTRS({"dim", o3_attr_i64(builder->context, loop)}));
}

MlirValue o3_lw_extract(o3_builder_t *builder, MlirValue tensor, int rank, const MlirValue *position) {
  MlirValue operands[O3_IR_MAX_RANK + 1] = {tensor};
  for (int i = 0; i < rank; ++i) operands[i + 1] = position[i];
  return o3_build1(builder, "tensor.extract", o3_type_element(mlirValueGetType(tensor)), rank + 1, operands);
}

/* ---- Reshaping ---- */

/* [[0, 1, ..., rank-1]], or [] for a scalar. */
static MlirAttribute one_group(MlirContext context, int rank) {
  MlirAttribute items[O3_IR_MAX_RANK];
  for (int i = 0; i < rank; ++i) items[i] = o3_attr_i64(context, i);
  MlirAttribute group = mlirArrayAttrGet(context, rank, items);
  return mlirArrayAttrGet(context, rank ? 1 : 0, &group);
}

static MlirValue flatten(o3_lw_t *lw, MlirValue value, const o3_shape_t *from, const o3_shape_t *flat) {
  MlirType element = o3_type_element(mlirValueGetType(value));
  if (from->rank == 1) return value;
  if (from->rank == 0)
    return o3_build1_attrs(&lw->builder, "tensor.expand_shape", o3_shape_type(flat, element),
                           O3_VALUES(value),
                           O3_ATTRS({"reassociation", one_group(lw->context, 0)},
                                    {"static_output_shape", o3_attr_ints(lw->context, 1, (int64_t[]){1})}));
  return o3_build1_attrs(&lw->builder, "tensor.collapse_shape", o3_shape_type(flat, element),
                         O3_VALUES(value), O3_ATTRS({"reassociation", one_group(lw->context, from->rank)}));
}

/* Upstream's expansion of one dimension into several can have one dynamic size only. */
static MlirValue reshape_at_run(o3_lw_t *lw, MlirValue value, const o3_shape_t *to) {
  MlirType index = o3_build_index_type(&lw->builder), element = o3_type_element(mlirValueGetType(value));
  MlirValue sizes[O3_IR_MAX_RANK];
  int64_t rank = to->rank;
  for (int i = 0; i < to->rank; ++i) sizes[i] = o3_lw_size(lw, to->dims[i]);
  MlirValue shape =
      o3_build1(&lw->builder, "tensor.from_elements", o3_tensor_type(1, &rank, index), to->rank, sizes);
  return o3_build1(&lw->builder, "tensor.reshape", o3_shape_type(to, element), O3_VALUES(value, shape));
}

static MlirValue unflatten(o3_lw_t *lw, MlirValue value, const o3_shape_t *to) {
  MlirType element = o3_type_element(mlirValueGetType(value));
  MlirValue operands[O3_IR_MAX_RANK + 1] = {value};
  int64_t sizes[O3_IR_MAX_RANK];
  if (to->rank == 1) return value;
  if (to->rank == 0)
    return o3_build1_attrs(&lw->builder, "tensor.collapse_shape", o3_shape_type(to, element),
                           O3_VALUES(value), O3_ATTRS({"reassociation", one_group(lw->context, 0)}));
  int count = dynamic_sizes(lw, to, operands + 1);
  if (count > 1) return reshape_at_run(lw, value, to);
  for (int i = 0; i < to->rank; ++i) {
    if (!o3_expr_is_const(to->dims[i], &sizes[i])) sizes[i] = mlirShapedTypeGetDynamicSize();
  }
  return o3_build1_attrs(&lw->builder, "tensor.expand_shape", o3_shape_type(to, element), count + 1, operands,
                         O3_ATTRS({"reassociation", one_group(lw->context, to->rank)},
                                  {"static_output_shape", o3_attr_ints(lw->context, to->rank, sizes)}));
}

/* Through one dimension: row-major order is all that a reshape keeps. A dynamic size that is stated as
 * another (equal) expression gets a cast in between. */
static MlirValue reshape_through_one(o3_lw_t *lw, MlirValue value, const o3_shape_t *from,
                                     const o3_shape_t *to) {
  MlirType element = o3_type_element(mlirValueGetType(value));
  o3_shape_t flat_from = {.rank = 1, .dims = {o3_shape_product(lw->context, from, 0, from->rank)}};
  o3_shape_t flat_to = {.rank = 1, .dims = {o3_shape_product(lw->context, to, 0, to->rank)}};
  MlirValue flat = flatten(lw, value, from, &flat_from);
  flat = o3_lw_cast(lw, flat, o3_shape_type(&flat_to, element));
  return unflatten(lw, flat, to);
}

/* Neighbouring dimensions of both sides whose products are equal: a reshape within each part. */
typedef struct parts {
  o3_shape_t middle;                            /* one dimension a part */
  int from[O3_IR_MAX_RANK], to[O3_IR_MAX_RANK]; /* dimensions of each side in the part */
} parts_t;

static bool are_units(const o3_shape_t *shape, int first) {
  for (int i = first; i < shape->rank; ++i) {
    if (!o3_expr_equals_const(shape->dims[i], 1)) return false;
  }
  return true;
}

/* MLIR expands a dimension into at most one of dynamic size. */
static bool can_expand(const o3_shape_t *shape, int first, int count) {
  int dynamic = 0;
  for (int i = first; i < first + count; ++i) dynamic += !o3_expr_is_const(shape->dims[i], NULL);
  return dynamic <= 1 || count == 1;
}

/* The shortest part that starts at dimensions |f| and |t|. */
static bool find_part(o3_lw_t *lw, const o3_shape_t *from, const o3_shape_t *to, int f, int t, int *num_from,
                      int *num_to) {
  for (int sum = 2; sum <= from->rank - f + to->rank - t; ++sum) {
    for (*num_from = 1; *num_from < sum; ++*num_from) {
      *num_to = sum - *num_from;
      if (f + *num_from > from->rank || t + *num_to > to->rank) continue;
      MlirAffineExpr product = o3_shape_product(lw->context, from, f, f + *num_from);
      if (mlirAffineExprEqual(product, o3_shape_product(lw->context, to, t, t + *num_to))) return true;
    }
  }
  return false;
}

static bool find_parts(o3_lw_t *lw, const o3_shape_t *from, const o3_shape_t *to, parts_t *parts) {
  int f = 0, t = 0;
  *parts = (parts_t){.middle.rank = 0};
  while (f < from->rank && t < to->rank) {
    int at = parts->middle.rank++, *num_from = &parts->from[at], *num_to = &parts->to[at];
    if (!find_part(lw, from, to, f, t, num_from, num_to)) return false;
    parts->middle.dims[at] = o3_shape_product(lw->context, to, t, t + *num_to);
    f += *num_from;
    t += *num_to;
    /* What is left of one side when the other has ended is of size 1. */
    if (f < from->rank && t == to->rank && are_units(from, f)) *num_from += from->rank - f, f = from->rank;
    if (t < to->rank && f == from->rank && are_units(to, t)) *num_to += to->rank - t, t = to->rank;
    if (!can_expand(to, t - *num_to, *num_to)) return false;
  }
  return parts->middle.rank && f == from->rank && t == to->rank;
}

static MlirAttribute part_groups(MlirContext context, int count, const int *sizes) {
  MlirAttribute groups[O3_IR_MAX_RANK], items[O3_IR_MAX_RANK];
  for (int g = 0, at = 0; g < count; ++g) {
    for (int i = 0; i < sizes[g]; ++i) items[i] = o3_attr_i64(context, at++);
    groups[g] = mlirArrayAttrGet(context, sizes[g], items);
  }
  return mlirArrayAttrGet(context, count, groups);
}

static MlirValue reshape_by_parts(o3_lw_t *lw, MlirValue value, const o3_shape_t *from, const o3_shape_t *to,
                                  const parts_t *parts) {
  MlirType element = o3_type_element(mlirValueGetType(value));
  int count = parts->middle.rank;
  if (count < from->rank)
    value = o3_build1_attrs(&lw->builder, "tensor.collapse_shape", o3_shape_type(&parts->middle, element),
                            O3_VALUES(value),
                            O3_ATTRS({"reassociation", part_groups(lw->context, count, parts->from)}));
  value = o3_lw_cast(lw, value, o3_shape_type(&parts->middle, element));
  if (count == to->rank) return value;
  MlirValue operands[O3_IR_MAX_RANK + 1] = {value};
  int64_t sizes[O3_IR_MAX_RANK];
  int dynamic = dynamic_sizes(lw, to, operands + 1);
  for (int i = 0; i < to->rank; ++i) {
    if (!o3_expr_is_const(to->dims[i], &sizes[i])) sizes[i] = mlirShapedTypeGetDynamicSize();
  }
  return o3_build1_attrs(&lw->builder, "tensor.expand_shape", o3_shape_type(to, element), dynamic + 1,
                         operands,
                         O3_ATTRS({"reassociation", part_groups(lw->context, count, parts->to)},
                                  {"static_output_shape", o3_attr_ints(lw->context, to->rank, sizes)}));
}

/* By parts where there are some, so that later stages see which dimensions stay. Nothing stays nothing:
 * beside a size of 0 others may be unknown, which MLIR's reshapes do not take. */
MlirValue o3_lw_reshape(o3_lw_t *lw, MlirValue value, const o3_shape_t *from, const o3_shape_t *to) {
  parts_t parts;
  MlirAffineExpr before = o3_shape_product(lw->context, from, 0, from->rank);
  MlirAffineExpr after = o3_shape_product(lw->context, to, 0, to->rank);
  if (o3_expr_equals_const(before, 0) || o3_expr_equals_const(after, 0))
    return o3_lw_empty(lw, to, o3_type_element(mlirValueGetType(value)));
  if (find_parts(lw, from, to, &parts)) return reshape_by_parts(lw, value, from, to, &parts);
  return reshape_through_one(lw, value, from, to);
}

/* ---- Scalars ---- */

MlirValue o3_lw_scalar(o3_builder_t *builder, MlirType element, double value) {
  return o3_build_number(builder, element, value);
}

o3_number_kind_t o3_number_kind(MlirType old_element) {
  if (o3_type_is_float(old_element)) return O3_NUMBER_FLOAT;
  return o3_type_is_unsigned(old_element) ? O3_NUMBER_UNSIGNED : O3_NUMBER_SIGNED;
}
