/* Elementwise ops: one linalg.generic each. Most are one scalar op that depends on the kind of number; the
 * others have a function in scalar.h. Half-precision elements are computed in f32 and rounded once. */
#include <string.h>

#include "base/check.h"
#include "target/ref/lowering.h"
#include "target/ref/scalar.h"

/* op -> scalar op for floats, signed and unsigned integers (NULL: there is none), or a function for all or
 * for those that |flags| say. RAW ones take half-precision values as they are. i1 is an integer, but no
 * number. */
typedef struct row {
  const char *op, *scalar[3];
  o3_scalar_fn_t function;
  enum { WIDENED = 0, RAW = 1, FLOATS = 2, INTEGERS = 4, NUMBERS = 8 } flags;
} row_t;

static const row_t ROWS[] = {
    {"o3.neg", {"arith.negf", NULL, NULL}, o3_scalar_neg, WIDENED},
    {"o3.abs", {"math.absf", "math.absi", NULL}, o3_scalar_self, WIDENED},
    {"o3.sqrt", {"math.sqrt"}, NULL, WIDENED},
    {"o3.exp", {"math.exp"}, NULL, WIDENED},
    {"o3.log", {"math.log"}, NULL, WIDENED},
    {"o3.sin", {"math.sin"}, NULL, WIDENED},
    {"o3.cos", {"math.cos"}, NULL, WIDENED},
    {"o3.tan", {"math.tan"}, NULL, WIDENED},
    {"o3.asin", {"math.asin"}, NULL, WIDENED},
    {"o3.acos", {"math.acos"}, NULL, WIDENED},
    {"o3.atan", {"math.atan"}, NULL, WIDENED},
    {"o3.sinh", {"math.sinh"}, NULL, WIDENED},
    {"o3.cosh", {"math.cosh"}, NULL, WIDENED},
    {"o3.tanh", {"math.tanh"}, NULL, WIDENED},
    {"o3.asinh", {"math.asinh"}, NULL, WIDENED},
    {"o3.acosh", {"math.acosh"}, NULL, WIDENED},
    {"o3.atanh", {"math.atanh"}, NULL, WIDENED},
    {"o3.erf", {"math.erf"}, NULL, WIDENED},
    {"o3.sigmoid", {NULL}, o3_scalar_sigmoid, FLOATS},
    {"o3.floor", {"math.floor", NULL, NULL}, o3_scalar_self, WIDENED},
    {"o3.ceil", {"math.ceil", NULL, NULL}, o3_scalar_self, WIDENED},
    {"o3.round", {"math.roundeven", NULL, NULL}, o3_scalar_self, WIDENED},
    {"o3.sign", {NULL}, o3_scalar_sign, WIDENED},
    {"o3.not", {NULL}, o3_scalar_not, RAW | INTEGERS},
    {"o3.is_nan", {NULL}, o3_scalar_is_nan, FLOATS},
    {"o3.is_inf", {NULL}, o3_scalar_is_inf, FLOATS},
    {"o3.cast", {NULL}, o3_scalar_cast, RAW},
    {"o3.bitcast", {NULL}, o3_scalar_bitcast, RAW},
    {"o3.add", {"arith.addf", "arith.addi", "arith.addi"}, NULL, WIDENED},
    {"o3.sub", {"arith.subf", "arith.subi", "arith.subi"}, NULL, WIDENED},
    {"o3.mul", {"arith.mulf", "arith.muli", "arith.muli"}, NULL, WIDENED},
    {"o3.div", {"arith.divf", NULL, NULL}, o3_scalar_div, WIDENED},
    {"o3.mod", {NULL}, o3_scalar_mod, WIDENED},
    {"o3.rem", {"arith.remf", NULL, NULL}, o3_scalar_rem, WIDENED},
    {"o3.pow", {NULL}, o3_scalar_pow, RAW | NUMBERS},
    {"o3.max", {"arith.maximumf", "arith.maxsi", "arith.maxui"}, NULL, WIDENED},
    {"o3.min", {"arith.minimumf", "arith.minsi", "arith.minui"}, NULL, WIDENED},
    {"o3.and", {NULL, "arith.andi", "arith.andi"}, NULL, RAW},
    {"o3.or", {NULL, "arith.ori", "arith.ori"}, NULL, RAW},
    {"o3.xor", {NULL, "arith.xori", "arith.xori"}, NULL, RAW},
    {"o3.shift_left", {NULL}, o3_scalar_shift, RAW | INTEGERS},
    {"o3.shift_right", {NULL}, o3_scalar_shift, RAW | INTEGERS},
    {"o3.equal", {NULL}, o3_scalar_equal, WIDENED},
    {"o3.less", {NULL}, o3_scalar_less, WIDENED},
    {"o3.less_equal", {NULL}, o3_scalar_less_equal, WIDENED},
    {"o3.select", {NULL}, o3_scalar_select, RAW},
};

static bool is_defined(const row_t *row, MlirType element) {
  bool is_float = o3_number_kind(element) == O3_NUMBER_FLOAT;
  if (row->scalar[o3_number_kind(element)]) return true;
  return row->function && !((row->flags & FLOATS && !is_float) || (row->flags & INTEGERS && is_float) ||
                            (row->flags & NUMBERS && o3_type_is_bool(element)));
}

static const row_t *find_row(MlirOperation op) {
  for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); ++i) {
    if (o3_op_is(op, ROWS[i].op)) return &ROWS[i];
  }
  return NULL;
}

/* The old element types of the operands, and of the result. */
static o3_scalar_t scalar_of(const o3_body_args_t *in, MlirValue *args) {
  o3_scalar_t scalar = {.builder = in->builder, .op = in->op, .args = args};
  scalar.type = o3_lw_result_element(in->op, 0);
  scalar.kind = o3_number_kind(o3_lw_old_element(in->op, 0));
  return scalar;
}

/* What the body needs: operands that are constants of one number stand in it as such, not as tensors. */
typedef struct elementwise {
  const row_t *row;
  MlirValue scalars[O3_SCALAR_MAX_ARGS]; /* null where the operand is an input of the generic */
} elementwise_t;

static MlirValue argument(const o3_body_args_t *in, int operand, int *next) {
  const elementwise_t *it = in->context;
  MlirValue value = it->scalars[operand];
  if (mlirValueIsNull(value)) value = in->args[(*next)++];
  return it->row->flags & RAW ? value : o3_scalar_widen(in->builder, value);
}

static void elementwise_body(const o3_body_args_t *in) {
  const row_t *row = ((const elementwise_t *)in->context)->row;
  MlirValue args[O3_SCALAR_MAX_ARGS], result;
  int count = (int)mlirOperationGetNumOperands(in->op), next = 0;
  for (int i = 0; i < count; ++i) args[i] = argument(in, i, &next);
  o3_scalar_t scalar = scalar_of(in, args);
  const char *name = row->scalar[scalar.kind];
  if (name) {
    result = o3_build1(in->builder, name, mlirValueGetType(args[0]), count, args);
  } else {
    result = row->function(&scalar);
  }
  in->results[0] = o3_scalar_narrow(in->builder, result, o3_lw_type(scalar.type));
}

/* The number that fills a small constant, or a null value. */
static MlirValue constant_scalar(o3_lw_t *lw, MlirValue old) {
  MlirOperation def = o3_value_def(old);
  if (!o3_op_is(def, "o3.constant")) return (MlirValue){0};
  MlirAttribute value = o3_op_attr(def, "value");
  if (!mlirAttributeIsADenseElements(value) || !mlirDenseElementsAttrIsSplat(value)) return (MlirValue){0};
  MlirAttribute number = mlirDenseElementsAttrGetSplatValue(value);
  MlirType type = o3_type_element(mlirValueGetType(old));
  if (o3_type_float8(type))
    number = mlirIntegerAttrGet(o3_lw_type(type), *(const int8_t *)mlirDenseElementsAttrGetRawData(value));
  if (!o3_type_is_float(type) && !mlirTypeEqual(type, o3_lw_type(type)))
    number = mlirIntegerAttrGet(o3_lw_type(type), (int64_t)mlirIntegerAttrGetValueUInt(number));
  return o3_build1_attrs(&lw->builder, "arith.constant", o3_lw_type(type), O3_NO_VALUES,
                         O3_ATTRS({"value", number}));
}

static MlirValue map(o3_lw_t *lw, MlirOperation op, const row_t *row, int count, const MlirValue *operands) {
  elementwise_t it = {.row = row};
  MlirValue inputs[O3_SCALAR_MAX_ARGS];
  o3_shape_t shape, shapes[O3_SCALAR_MAX_ARGS];
  int num_inputs = 0;
  for (int i = 0; i < count; ++i) {
    it.scalars[i] = constant_scalar(lw, mlirOperationGetOperand(op, i));
    if (!mlirValueIsNull(it.scalars[i])) continue;
    o3_lw_operand_shape(lw, op, i, &shapes[num_inputs]);
    inputs[num_inputs++] = operands[i];
  }
  o3_lw_result_shape(lw, op, 0, &shape);
  o3_generic_t generic = {.op = op,
                          .iterators = &"pppppppppppppppp"[O3_IR_MAX_RANK - shape.rank],
                          .num_inputs = num_inputs,
                          .num_outputs = 1,
                          .outputs = {o3_lw_empty(lw, &shape, o3_lw_new_element(op, 0))},
                          .body = elementwise_body,
                          .context = &it};
  for (int i = 0; i < num_inputs; ++i) {
    generic.inputs[i] = inputs[i];
    generic.maps[i] = o3_lw_broadcast_map(lw, &shapes[i], &shape);
  }
  generic.maps[num_inputs] = o3_lw_identity(lw, shape.rank);
  MlirValue result;
  o3_lw_generic(lw, &generic, &result);
  return result;
}

o3_status_t o3_lower_elementwise(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                 MlirValue *results) {
  const row_t *row = find_row(op);
  int count = (int)mlirOperationGetNumOperands(op);
  O3_ASSERT(row && count <= O3_SCALAR_MAX_ARGS, "rows of lower.def with this rule are in ROWS");
  if (!is_defined(row, o3_lw_old_element(op, 0)))
    return o3_status_create(O3_STATUS_UNSUPPORTED, "%s: op %.*s is not defined for its element type",
                            o3_lw_who(lw, op), O3_STR_ARGS(o3_op_name(op)));
  results[0] = map(lw, op, row, count, operands);
  return NULL;
}
