/* Elementwise ops: the result's shape is the broadcast of the operands', and the contents of small tensors
 * are computed as far as they are known, so that arithmetic on shapes turns into affine expressions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/infer.h"

/* ---- One element ---- */

typedef double (*number_fn_t)(const double *x);
typedef MlirAffineExpr (*expr_fn_t)(MlirAffineExpr a, MlirAffineExpr b);

static double n_neg(const double *x) { return -x[0]; }
static double n_abs(const double *x) { return fabs(x[0]); }
static double n_sqrt(const double *x) { return sqrt(x[0]); }
static double n_exp(const double *x) { return exp(x[0]); }
static double n_log(const double *x) { return log(x[0]); }
static double n_floor(const double *x) { return floor(x[0]); }
static double n_ceil(const double *x) { return ceil(x[0]); }
static double n_round(const double *x) { return nearbyint(x[0]); }
static double n_sign(const double *x) { return isnan(x[0]) ? x[0] : (x[0] > 0) - (x[0] < 0); }
static double n_not(const double *x) { return x[0] == 0; }
static double n_add(const double *x) { return x[0] + x[1]; }
static double n_sub(const double *x) { return x[0] - x[1]; }
static double n_mul(const double *x) { return x[0] * x[1]; }
static double n_div(const double *x) { return x[0] / x[1]; }
static double n_pow(const double *x) { return pow(x[0], x[1]); }
static double n_max(const double *x) { return isnan(x[0]) || x[0] > x[1] ? x[0] : x[1]; }
static double n_min(const double *x) { return isnan(x[0]) || x[0] < x[1] ? x[0] : x[1]; }
static double n_and(const double *x) { return x[0] != 0 && x[1] != 0; }
static double n_or(const double *x) { return x[0] != 0 || x[1] != 0; }
static double n_equal(const double *x) { return x[0] == x[1]; }
static double n_less(const double *x) { return x[0] < x[1]; }
static double n_less_equal(const double *x) { return x[0] <= x[1]; }

/* What can be computed here: for numbers, and for expressions where they stay expressions. `logical` ops are
 * known for i1 only; `real` ones for floats only (integers follow other rules there). */
static const struct {
  const char *op;
  number_fn_t number;
  expr_fn_t expr;
  enum { ANY, LOGICAL, REAL } domain;
} EVALUATORS[] = {
    {"o3.neg", n_neg, NULL, ANY},        {"o3.abs", n_abs, NULL, ANY},
    {"o3.sqrt", n_sqrt, NULL, REAL},     {"o3.exp", n_exp, NULL, REAL},
    {"o3.log", n_log, NULL, REAL},       {"o3.floor", n_floor, NULL, REAL},
    {"o3.ceil", n_ceil, NULL, REAL},     {"o3.round", n_round, NULL, REAL},
    {"o3.sign", n_sign, NULL, ANY},      {"o3.not", n_not, NULL, LOGICAL},
    {"o3.add", n_add, o3_expr_add, ANY}, {"o3.sub", n_sub, o3_expr_sub, ANY},
    {"o3.mul", n_mul, o3_expr_mul, ANY}, {"o3.div", n_div, o3_expr_floor_div, ANY},
    {"o3.pow", n_pow, NULL, REAL},       {"o3.max", n_max, NULL, ANY},
    {"o3.min", n_min, NULL, ANY},        {"o3.and", n_and, NULL, LOGICAL},
    {"o3.or", n_or, NULL, LOGICAL},      {"o3.equal", n_equal, NULL, ANY},
    {"o3.less", n_less, NULL, ANY},      {"o3.less_equal", n_less_equal, NULL, ANY},
};

static int find_evaluator(const char *op) {
  for (int i = 0; i < (int)(sizeof(EVALUATORS) / sizeof(EVALUATORS[0])); ++i) {
    if (strcmp(EVALUATORS[i].op, op) == 0) return i;
  }
  return -1;
}

static bool element_number(const o3_element_t *element, double *number) {
  int64_t constant;
  if (element->kind == O3_ELEMENT_FLOAT) {
    *number = element->number;
    return true;
  }
  if (element->kind != O3_ELEMENT_EXPR || !o3_expr_is_const(element->expr, &constant)) return false;
  *number = (double)constant;
  /* Larger ones would lose digits: they stay unknown. */
  return constant <= (INT64_C(1) << 53) && constant >= -(INT64_C(1) << 53);
}

/* An integer as |type| holds it: modulo 2^bits. */
static int64_t wrap(MlirType type, int64_t value) {
  int bits = o3_type_bits(type);
  if (o3_type_is_bool(type) || bits >= 64) return value;
  uint64_t low = (uint64_t)value << (64 - bits);
  return o3_type_is_unsigned(type) ? (int64_t)(low >> (64 - bits)) : (int64_t)low >> (64 - bits);
}

/* Half-precision numbers would have to be rounded: they stay unknown. */
static void set_number(MlirContext context, MlirType type, double number, o3_element_t *out) {
  if (o3_type_is_float(type)) {
    if (o3_type_bits(type) < 32) return;
    double rounded = mlirTypeIsAF32(type) ? (double)(float)number : number;
    *out = (o3_element_t){.kind = O3_ELEMENT_FLOAT, .number = rounded};
  } else if (fabs(number) < 0x1p53) {
    int64_t value = wrap(type, (int64_t)number);
    if (value < 0 && o3_type_is_unsigned(type)) return; /* beyond int64 */
    *out = (o3_element_t){.kind = O3_ELEMENT_EXPR, .expr = o3_expr_const(context, value)};
  }
}

static void set_bool(MlirContext context, bool value, o3_element_t *out) {
  *out = (o3_element_t){.kind = O3_ELEMENT_EXPR, .expr = o3_expr_const(context, value)};
}

/* Comparisons are decided when the difference has a bound on the right side of 0. */
static void compare_exprs(const char *op, MlirContext context, MlirAffineExpr a, MlirAffineExpr b,
                          o3_element_t *out) {
  MlirAffineExpr behind = o3_expr_sub(b, a), ahead = o3_expr_sub(a, b);
  bool less = o3_expr_at_least(behind, 1), greater = o3_expr_at_least(ahead, 1);
  bool at_most = o3_expr_at_least(behind, 0), at_least = o3_expr_at_least(ahead, 0);
  if (strcmp(op, "o3.equal") == 0) {
    if (less || greater || o3_expr_equal(a, b)) set_bool(context, o3_expr_equal(a, b), out);
  } else if (strcmp(op, "o3.less") == 0) {
    if (less || at_least) set_bool(context, less, out);
  } else if (strcmp(op, "o3.less_equal") == 0) {
    if (at_most || greater) set_bool(context, at_most, out);
  }
}

/* Sizes are followed through floats too, where exporters scale them: as long as they stay whole numbers. */
static bool element_expr(MlirContext context, const o3_element_t *element, MlirAffineExpr *expr) {
  bool whole = element->kind == O3_ELEMENT_FLOAT && fabs(element->number) < 0x1p53 &&
               trunc(element->number) == element->number;
  if (element->kind == O3_ELEMENT_EXPR) *expr = element->expr;
  if (whole) *expr = o3_expr_const(context, (int64_t)element->number);
  return whole || element->kind == O3_ELEMENT_EXPR;
}

/* Symbolic division is exact only for integers that cannot be negative. */
static void evaluate_exprs(int evaluator, o3_infer_t *in, MlirAffineExpr a, MlirAffineExpr b,
                           o3_element_t *out) {
  const char *op = EVALUATORS[evaluator].op;
  bool is_float = o3_type_is_float(in->operands[0]->element);
  MlirAffineExpr result = {0};
  if (strcmp(op, "o3.max") == 0) {
    result = o3_symbols_max(in->symbols, a, b);
  } else if (strcmp(op, "o3.min") == 0) {
    result = o3_symbols_min(in->symbols, a, b);
  } else if (strcmp(op, "o3.div") == 0) {
    bool exact = !is_float && o3_expr_at_least(a, 0) && o3_expr_at_least(b, 1);
    if (exact) result = o3_expr_floor_div(a, b);
  } else if (EVALUATORS[evaluator].expr) {
    result = EVALUATORS[evaluator].expr(a, b);
  }
  if (result.ptr) *out = (o3_element_t){.kind = O3_ELEMENT_EXPR, .expr = result};
  compare_exprs(op, in->context, a, b, out);
}

static void evaluate_expr(int evaluator, MlirAffineExpr x, o3_element_t *out) {
  static const char *const ROUNDING[] = {"o3.floor", "o3.ceil", "o3.round"};
  const char *op = EVALUATORS[evaluator].op;
  for (int i = 0; i < 3; ++i) {
    if (strcmp(op, ROUNDING[i]) == 0) *out = (o3_element_t){.kind = O3_ELEMENT_EXPR, .expr = x};
  }
  MlirAffineExpr negated = o3_expr_sub(o3_expr_const(mlirAffineExprGetContext(x), 0), x);
  if (strcmp(op, "o3.neg") == 0) *out = (o3_element_t){.kind = O3_ELEMENT_EXPR, .expr = negated};
  if (strcmp(op, "o3.abs") != 0) return;
  if (o3_expr_at_least(x, 0)) *out = (o3_element_t){.kind = O3_ELEMENT_EXPR, .expr = x};
  if (o3_expr_at_least(negated, 0)) *out = (o3_element_t){.kind = O3_ELEMENT_EXPR, .expr = negated};
}

static void evaluate(int evaluator, o3_infer_t *in, const o3_element_t *const *operands, o3_element_t *out) {
  MlirContext context = in->context;
  MlirType operand_type = in->operands[0]->element, type = in->results[0].element;
  MlirAffineExpr exprs[2];
  int arity = in->num_operands;
  double numbers[2];
  bool known = true;
  bool is_bool = o3_type_is_bool(operand_type), is_float = o3_type_is_float(operand_type);
  if (EVALUATORS[evaluator].domain == LOGICAL && !is_bool) return;
  if (EVALUATORS[evaluator].domain == REAL && !is_float) return;
  for (int i = 0; i < arity; ++i) known = known && element_number(operands[i], &numbers[i]);
  bool division = EVALUATORS[evaluator].number == n_div;
  if (known && division && !is_float) {
    if (numbers[1] == 0) return;
    set_number(context, type, trunc(numbers[0] / numbers[1]), out);
  } else if (known) {
    set_number(context, type, EVALUATORS[evaluator].number(numbers), out);
  } else if (arity == 2 && element_expr(context, operands[0], &exprs[0]) &&
             element_expr(context, operands[1], &exprs[1])) {
    evaluate_exprs(evaluator, in, exprs[0], exprs[1], out);
  } else if (arity == 1 && operands[0]->kind == O3_ELEMENT_EXPR) {
    evaluate_expr(evaluator, operands[0]->expr, out);
  }
}

/* ---- Whole tensors ---- */

/* The element of |fact| under position |index| of |shape|, to which it is broadcast. */
static const o3_element_t *element_at(const o3_fact_t *fact, const o3_shape_t *shape, int64_t index) {
  int64_t offset = 0, stride = 1;
  for (int i = shape->rank - 1; i >= 0; --i) {
    int64_t size = mlirAffineConstantExprGetValue(shape->dims[i]);
    int64_t position = size ? index % size : 0;
    int own = i - (shape->rank - fact->shape.rank);
    index = size ? index / size : 0;
    if (own < 0) continue;
    int64_t own_size = mlirAffineConstantExprGetValue(fact->shape.dims[own]);
    if (own_size != 1) offset += position * stride;
    stride *= own_size;
  }
  return &fact->elements[offset];
}

static bool all_tracked(const o3_infer_t *in) {
  for (int i = 0; i < in->num_operands; ++i) {
    if (!in->operands[i]->elements) return false;
  }
  return true;
}

static void compute_elements(o3_infer_t *in) {
  o3_fact_t *result = &in->results[0];
  int evaluator = find_evaluator(in->op);
  int64_t count = o3_infer_small_count(&result->shape);
  if (evaluator < 0 || count < 0 || in->num_operands > 2 || !all_tracked(in)) return;
  o3_element_t *elements = o3_infer_elements(in->arena, count);
  if (!elements) return;
  for (int64_t i = 0; i < count; ++i) {
    const o3_element_t *operands[2];
    for (int k = 0; k < in->num_operands; ++k) operands[k] = element_at(in->operands[k], &result->shape, i);
    evaluate(evaluator, in, operands, &elements[i]);
  }
  result->elements = elements;
  result->num_elements = (int)count;
}

/* ONNX lets the exponent of a power be of another type; everything else wants one type. */
static o3_status_t check_elements(o3_infer_t *in) {
  int first = strcmp(in->op, "o3.select") == 0 ? 1 : 0;
  if (strcmp(in->op, "o3.pow") == 0) return NULL;
  for (int i = first + 1; i < in->num_operands; ++i) {
    if (mlirTypeEqual(in->operands[i]->element, in->operands[first]->element)) continue;
    char *a = o3_type_text(in->operands[first]->element), *b = o3_type_text(in->operands[i]->element);
    o3_status_t status = o3_infer_error(in, "operands have element types %s and %s, one type expected", a, b);
    free(a);
    free(b);
    return status;
  }
  return NULL;
}

static o3_status_t broadcast_all(o3_infer_t *in, o3_shape_t *shape) {
  *shape = in->operands[0]->shape;
  for (int i = 1; i < in->num_operands; ++i)
    O3_TRY(o3_infer_broadcast(in->symbols, in->who, shape, &in->operands[i]->shape, shape));
  return NULL;
}

static o3_status_t infer_with_element(o3_infer_t *in, MlirType element) {
  in->num_results = 1;
  in->results[0].element = element;
  O3_TRY(check_elements(in));
  O3_TRY(broadcast_all(in, &in->results[0].shape));
  compute_elements(in);
  return NULL;
}

o3_status_t o3_infer_elementwise(o3_infer_t *in) { return infer_with_element(in, in->operands[0]->element); }

o3_status_t o3_infer_predicate(o3_infer_t *in) {
  return infer_with_element(in, mlirIntegerTypeGet(in->context, 1));
}

static void cast_element(MlirContext context, MlirType to, const o3_element_t *x, o3_element_t *out) {
  double number;
  bool to_bool = o3_type_is_bool(to);
  if (element_number(x, &number)) {
    bool integer = !o3_type_is_float(to);
    if (to_bool) number = number != 0;
    if (integer && !(fabs(number) < 0x1p53)) return;
    set_number(context, to, integer ? trunc(number) : number, out);
  } else if (x->kind == O3_ELEMENT_EXPR && !to_bool && o3_type_bits(to) >= 32) {
    *out = *x;
  }
}

/* Narrow integers wrap, so only wide ones are followed; sizes are far from 2^31. */
o3_status_t o3_infer_cast(o3_infer_t *in) {
  const o3_fact_t *x = in->operands[0];
  MlirType to = mlirTypeAttrGetValue(o3_infer_attr(in, "to"));
  in->num_results = 1;
  in->results[0] = (o3_fact_t){.element = to, .shape = x->shape};
  bool value_cast = strcmp(in->op, "o3.cast") == 0;
  bool narrow = o3_type_is_integer(to) && !o3_type_is_bool(to) && o3_type_bits(to) < 32;
  if (!value_cast || narrow || !x->elements) return NULL;
  o3_element_t *elements = o3_infer_elements(in->arena, x->num_elements);
  if (!elements) return NULL;
  for (int i = 0; i < x->num_elements; ++i) cast_element(in->context, to, &x->elements[i], &elements[i]);
  in->results[0].elements = elements;
  in->results[0].num_elements = x->num_elements;
  return NULL;
}

o3_status_t o3_infer_select(o3_infer_t *in) {
  O3_TRY(infer_with_element(in, in->operands[1]->element));
  o3_fact_t *result = &in->results[0];
  int64_t count = o3_infer_small_count(&result->shape);
  if (count < 0 || !all_tracked(in)) return NULL;
  o3_element_t *elements = o3_infer_elements(in->arena, count);
  if (!elements) return NULL;
  for (int64_t i = 0; i < count; ++i) {
    double condition;
    if (element_number(element_at(in->operands[0], &result->shape, i), &condition))
      elements[i] = *element_at(in->operands[condition != 0 ? 1 : 2], &result->shape, i);
  }
  result->elements = elements;
  result->num_elements = (int)count;
  return NULL;
}
