#include "target/nvptx/body_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "target/ref/lowering.h"

/* Values of a body as numbers of the text, plus one: NULL is none. */
typedef struct scope {
  o3_kernel_text_t *t;
  o3_ptr_map_t *numbers; /* MlirValue.ptr */
} scope_t;

static o3_status_t put(scope_t *s, MlirValue value, int number) {
  bool ok = o3_ptr_map_put(s->numbers, value.ptr, (void *)((uintptr_t)number + 1));
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static int find(const scope_t *s, MlirValue value) {
  return (int)(uintptr_t)o3_ptr_map_get(s->numbers, value.ptr) - 1;
}

/* ---- Math ---- */

static int constant(o3_kernel_text_t *t, const char *value) {
  return o3_kt_value(t, "arith.constant %s : f32", value);
}

static int times(o3_kernel_text_t *t, int a, int b) {
  return o3_kt_value(t, "arith.mulf %%v%d, %%v%d fastmath<contract> : f32", a, b);
}

static int fma_of(o3_kernel_text_t *t, int a, int b, int c) {
  return o3_kt_value(t, "math.fma %%v%d, %%v%d, %%v%d : f32", a, b, c);
}

/* A special function of the GPU; not an op with side effects, so it may move and vanish. */
static int special(o3_kernel_text_t *t, const char *instruction, int x) {
  return o3_kt_value(t, "llvm.inline_asm \"%s $0, $1;\", \"=f,f\" %%v%d : (f32) -> f32", instruction, x);
}

typedef int (*math_fn_t)(o3_kernel_text_t *t, MlirOperation op, const int *operands);

static int write_exp2(o3_kernel_text_t *t, MlirOperation op, const int *x) {
  (void)op;
  return special(t, "ex2.approx.ftz.f32", x[0]);
}

static int write_exp(o3_kernel_text_t *t, MlirOperation op, const int *x) {
  (void)op;
  return special(t, "ex2.approx.ftz.f32", times(t, x[0], constant(t, "1.4426950408889634")));
}

static int write_log2(o3_kernel_text_t *t, MlirOperation op, const int *x) {
  (void)op;
  return special(t, "lg2.approx.f32", x[0]);
}

static int write_log(o3_kernel_text_t *t, MlirOperation op, const int *x) {
  return times(t, write_log2(t, op, x), constant(t, "0.6931471805599453"));
}

static int write_sqrt(o3_kernel_text_t *t, MlirOperation op, const int *x) {
  (void)op;
  return special(t, "sqrt.approx.f32", x[0]);
}

static int write_rsqrt(o3_kernel_text_t *t, MlirOperation op, const int *x) {
  (void)op;
  return special(t, "rsqrt.approx.f32", x[0]);
}

static int write_tanh(o3_kernel_text_t *t, MlirOperation op, const int *x) {
  (void)op;
  int two = times(t, x[0], constant(t, "2.885390081777927"));
  int up = o3_kt_value(t, "arith.addf %%v%d, %%v%d : f32", special(t, "ex2.approx.ftz.f32", two),
                       constant(t, "1.0"));
  int part = o3_kt_value(t, "arith.divf %%v%d, %%v%d fastmath<afn,arcp> : f32", constant(t, "2.0"), up);
  return o3_kt_value(t, "arith.subf %%v%d, %%v%d : f32", constant(t, "1.0"), part);
}

/* erf is within 3e-5 of v P(v^2), v = x / 5.94 cut off at +-1/2; the coefficients minimise the largest error.
 * The multiply-add that saturates at 0 and 1 cuts off for nothing; of NaN it makes 0. */
static int write_erf(o3_kernel_text_t *t, MlirOperation op, const int *x) {
  static const char *const POWERS[] = {"6.194794893e+05",  "-8.245418846e+05", "4.861555215e+05",
                                       "-1.693491610e+05", "3.939981196e+04",  "-6.577697425e+03",
                                       "8.224204689e+02",  "-7.867607941e+01", "6.701986526e+00"};
  (void)op;
  int up =
      o3_kt_value(t,
                  "llvm.inline_asm \"fma.rn.sat.f32 $0, $1, $2, $3;\", \"=f,f,f,f\" %%v%d, %%v%d, %%v%d : "
                  "(f32, f32, f32) -> f32",
                  x[0], constant(t, "0.16835016835016836"), constant(t, "0.5"));
  int v = o3_kt_value(t, "arith.addf %%v%d, %%v%d : f32", up, constant(t, "-0.5"));
  int square = times(t, v, v), sum = constant(t, POWERS[0]);
  for (size_t i = 1; i < sizeof(POWERS) / sizeof(POWERS[0]); ++i)
    sum = fma_of(t, sum, square, constant(t, POWERS[i]));
  return times(t, v, sum);
}

/* x / 2 (1 + erf(x / sqrt 2)) as max(x, 0) + v 2^P(v), v = -|x|: P is near the logarithm of the tail of the
 * normal distribution, so the error is at most 0.19 units in the last place of f16 for either sign; half
 * the instructions of erf. Beyond -16 the tail is none, infinity included; NaN stays. */
static int write_gelu(o3_kernel_text_t *t, int x) {
  static const char *const POWERS[] = {"3.28896597e-04",  "5.90425169e-03", "4.84767064e-02",
                                       "-4.63830356e-01", "1.14928597e+00", "-1.0001317e+00"};
  int size = o3_kt_value(t, "math.absf %%v%d : f32", x);
  int below = o3_kt_value(t, "arith.negf %%v%d : f32", size), power = constant(t, POWERS[0]);
  int v = o3_kt_value(t, "arith.maxnumf %%v%d, %%v%d : f32", below, constant(t, "-16.0"));
  for (size_t i = 1; i < sizeof(POWERS) / sizeof(POWERS[0]); ++i)
    power = fma_of(t, power, v, constant(t, POWERS[i]));
  int up = o3_kt_value(t, "arith.maximumf %%v%d, %%v%d : f32", x, constant(t, "0.0"));
  return fma_of(t, v, special(t, "ex2.approx.ftz.f32", power), up);
}

static void append_operands(o3_kernel_text_t *t, MlirOperation op, const int *operands) {
  int count = (int)mlirOperationGetNumOperands(op);
  o3_strbuf_puts(&t->out, "(");
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s%%v%d", i ? ", " : "", operands[i]);
  o3_strbuf_puts(&t->out, ")");
}

static void append_type(o3_kernel_text_t *t, MlirType type) {
  char *text = o3_type_text(type);
  t->out.failed |= !text;
  if (text) o3_strbuf_puts(&t->out, text);
  free(text);
}

static void append_attributes(o3_kernel_text_t *t, MlirOperation op, const char *flags) {
  intptr_t count = mlirOperationGetNumAttributes(op);
  o3_strbuf_puts(&t->out, " {");
  if (flags) o3_strbuf_printf(&t->out, "fastmath = #arith.fastmath<%s>", flags);
  for (intptr_t i = 0, written = flags != NULL; i < count; ++i) {
    MlirNamedAttribute named = mlirOperationGetAttribute(op, i);
    MlirStringRef name = mlirIdentifierStr(named.name);
    if (o3_str_equal(name, "fastmath")) continue;
    char *text = o3_attr_text(named.attribute);
    t->out.failed |= !text;
    if (text) o3_strbuf_printf(&t->out, "%s%.*s = %s", written++ ? ", " : "", O3_STR_ARGS(name), text);
    free(text);
  }
  o3_strbuf_puts(&t->out, "}");
}

/* The op in generic form, as |name|. */
static int write_generic(o3_kernel_text_t *t, MlirOperation op, const int *operands, const char *flags) {
  int result = o3_kt_name(t), count = (int)mlirOperationGetNumOperands(op);
  o3_strbuf_printf(&t->out, "%%v%d = \"%.*s\"", result, O3_STR_ARGS(o3_op_name(op)));
  append_operands(t, op, operands);
  append_attributes(t, op, flags);
  o3_strbuf_puts(&t->out, " : (");
  for (int i = 0; i < count; ++i) {
    if (i) o3_strbuf_puts(&t->out, ", ");
    append_type(t, mlirValueGetType(mlirOperationGetOperand(op, i)));
  }
  o3_strbuf_puts(&t->out, ") -> ");
  append_type(t, mlirValueGetType(mlirOperationGetResult(op, 0)));
  o3_strbuf_puts(&t->out, "\n");
  return result;
}

static int write_as_is(o3_kernel_text_t *t, MlirOperation op, const int *operands) {
  return write_generic(t, op, operands, NULL);
}

typedef struct math_row {
  const char *op;
  math_fn_t write;
  bool half_only;
} math_row_t;

static const math_row_t MATH[] = {
#define O3_BODY_MATH(op, write, half_only) {op, write, half_only},
#include "target/nvptx/body_math.def"
#undef O3_BODY_MATH
};

static const math_row_t *find_math(MlirOperation op) {
  for (size_t i = 0; i < sizeof(MATH) / sizeof(MATH[0]); ++i) {
    if (o3_op_is(op, MATH[i].op)) return &MATH[i];
  }
  return NULL;
}

/* ---- Ops ---- */

enum { MAX_OPERANDS = 4 };

static bool is_scalar(MlirType type) { return o3_type_is_float(type) || mlirTypeIsAInteger(type); }

/* f32 for special functions; no f64, which has none. */
static const char *refuse_types(MlirOperation op, bool is_math) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirType type = mlirValueGetType(mlirOperationGetOperand(op, i));
    if (!is_scalar(type)) return "its body has operands that are no numbers";
    if (is_math && !mlirTypeIsAF32(type)) return "its body has a function of another type than f32";
  }
  return NULL;
}

static const char *refuse_outside(const o3_nest_t *nest, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue value = mlirOperationGetOperand(op, i);
    MlirOperation def = o3_value_def(value);
    bool argument = mlirOperationIsNull(def);
    bool inside = argument ? mlirBlockEqual(mlirBlockArgumentGetOwner(value), nest->body)
                           : mlirBlockEqual(mlirOperationGetBlock(def), nest->body);
    if (!inside && (argument || !o3_op_is(def, "arith.constant")))
      return "its body uses a value from outside";
  }
  return NULL;
}

int o3_body_bound_number(const o3_body_bound_t *bound, MlirOperation op) {
  for (int i = 0; bound && i < bound->count; ++i) {
    if (mlirOperationEqual(bound->ops[i], op)) return i;
  }
  return -1;
}

static bool reads_bound(const o3_body_bound_t *bound, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirOperation def = o3_value_def(mlirOperationGetOperand(op, i));
    int number = mlirOperationIsNull(def) ? -1 : o3_body_bound_number(bound, def);
    if (number >= 0 && !bound->given[number]) return true;
  }
  return false;
}

static const char *refuse_op(const o3_nest_t *nest, MlirOperation op, bool half) {
  const math_row_t *math = find_math(op);
  if (!math && !o3_op_is_of(op, "arith")) return "its body has an op that fast kernels do not have";
  if (mlirOperationGetNumRegions(op) || mlirOperationGetNumResults(op) != 1 ||
      mlirOperationGetNumOperands(op) > MAX_OPERANDS)
    return "its body has an op that fast kernels do not have";
  if (math && math->half_only && !half)
    return "its body has a function that is exact enough for half precision only";
  const char *why = refuse_types(op, math != NULL);
  return why ? why : refuse_outside(nest, op);
}

const char *o3_body_refuse(const o3_nest_t *nest, bool half, const o3_body_bound_t *bound) {
  MlirOperation op = mlirBlockGetFirstOperation(nest->body), end = mlirBlockGetTerminator(nest->body);
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op)) {
    if (o3_body_bound_number(bound, op) >= 0) continue;
    const char *why = reads_bound(bound, op) ? "its body computes with indices" : refuse_op(nest, op, half);
    if (why) return why;
  }
  if (mlirOperationGetNumOperands(end) != 1) return "it has several results";
  return refuse_outside(nest, end);
}

/* Rounding that the model does not ask for. */
static bool is_free_rounding(MlirOperation op) {
  return !mlirOperationIsNull(op) && o3_op_is(op, "arith.truncf") &&
         mlirAttributeIsNull(o3_op_attr(op, O3_LW_ROUNDS));
}

/* ---- GELU ---- */

/* A product: a constant times values. */
typedef struct factors {
  double constant;
  int count;
  MlirValue values[2];
} factors_t;

static MlirValue operand(MlirOperation op, int index) { return mlirOperationGetOperand(op, index); }

/* |value| before a rounding that is left out. */
static MlirValue unrounded(MlirValue value) {
  MlirOperation wide = o3_value_def(value);
  if (mlirOperationIsNull(wide) || !o3_op_is(wide, "arith.extf")) return value;
  MlirOperation narrow = o3_value_def(operand(wide, 0));
  if (!is_free_rounding(narrow)) return value;
  return mlirTypeEqual(mlirValueGetType(value), mlirValueGetType(operand(narrow, 0))) ? operand(narrow, 0)
                                                                                      : value;
}

static bool is_number(MlirValue value, double *number) {
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def) || !o3_op_is(def, "arith.constant")) return false;
  *number = o3_op_float(def, "value", NAN);
  return isfinite(*number) && *number != 0;
}

/* More than two are as good as any number: a body of squares would have exponentially many. */
static void collect(MlirValue value, factors_t *f) {
  double number;
  if (f->count > 2) return;
  value = unrounded(value);
  MlirOperation def = o3_value_def(value);
  bool computed = !mlirOperationIsNull(def);
  if (is_number(value, &number)) {
    f->constant *= number;
  } else if (computed && o3_op_is(def, "arith.mulf")) {
    for (int i = 0; i < 2; ++i) collect(operand(def, i), f);
  } else if (computed && o3_op_is(def, "arith.divf") && is_number(unrounded(operand(def, 1)), &number)) {
    f->constant /= number;
    collect(operand(def, 0), f);
  } else {
    if (f->count < 2) f->values[f->count] = value;
    ++f->count;
  }
}

static bool is_near(double value, double expected) { return fabs(value / expected - 1) < 2e-4; }

/* What |value| is extended from, or itself. */
static MlirValue narrow(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_op_is(def, "arith.extf") ? operand(def, 0) : value;
}

/* |value| is erf(x / sqrt 2) + 1; constants may be rounded to f16. */
static bool is_twice_normal(MlirValue value, MlirValue x) {
  double one;
  factors_t f = {.constant = 1};
  MlirOperation add = o3_value_def(value);
  if (mlirOperationIsNull(add) || !o3_op_is(add, "arith.addf")) return false;
  bool swapped = is_number(unrounded(operand(add, 0)), &one);
  if (!swapped && !is_number(unrounded(operand(add, 1)), &one)) return false;
  MlirOperation erf = o3_value_def(unrounded(operand(add, swapped)));
  if (one != 1 || mlirOperationIsNull(erf) || !o3_op_is(erf, "math.erf")) return false;
  collect(operand(erf, 0), &f);
  return f.count == 1 && is_near(f.constant, M_SQRT1_2) && mlirValueEqual(narrow(f.values[0]), narrow(x));
}

/* Whether |op| gives x / 2 (erf(x / sqrt 2) + 1) in f32, in any order of its factors. */
static bool is_gelu(MlirOperation op, MlirValue *x) {
  factors_t f = {.constant = 1};
  MlirValue result = mlirOperationGetResult(op, 0);
  if (!o3_op_is(op, "arith.mulf") && !o3_op_is(op, "arith.divf")) return false;
  if (!mlirTypeIsAF32(mlirValueGetType(result))) return false;
  collect(result, &f);
  if (f.count != 2 || !is_near(f.constant, 0.5)) return false;
  for (int i = 0; i < 2; ++i) {
    *x = f.values[i];
    if (is_twice_normal(f.values[!i], *x)) return true;
  }
  return false;
}

static const char *flags_of(MlirOperation op) {
  static const char *const CONTRACT[] = {"arith.addf", "arith.subf", "arith.mulf"};
  for (size_t i = 0; i < sizeof(CONTRACT) / sizeof(CONTRACT[0]); ++i) {
    if (o3_op_is(op, CONTRACT[i])) return "contract";
  }
  return o3_op_is(op, "arith.divf") ? "contract,arcp,afn" : NULL;
}

static o3_status_t write_op(scope_t *s, MlirOperation op);

static o3_status_t number_of(scope_t *s, MlirValue value, int *number) {
  *number = find(s, value);
  if (*number >= 0) return NULL;
  O3_TRY(write_op(s, o3_value_def(value)));
  *number = find(s, value);
  return NULL;
}

static o3_status_t put_same(scope_t *s, MlirValue value, MlirValue as) {
  int number;
  O3_TRY(number_of(s, as, &number));
  return put(s, value, number);
}

static o3_status_t write_op(scope_t *s, MlirOperation op) {
  int operands[MAX_OPERANDS], number;
  MlirValue result = mlirOperationGetResult(op, 0), x = unrounded(result);
  if (!mlirValueEqual(x, result)) return put_same(s, result, x);
  if (is_gelu(op, &x)) {
    O3_TRY(number_of(s, x, &number));
    return put(s, result, write_gelu(s->t, number));
  }
  for (int i = 0; i < (int)mlirOperationGetNumOperands(op); ++i)
    O3_TRY(number_of(s, mlirOperationGetOperand(op, i), &operands[i]));
  const math_row_t *math = find_math(op);
  number = math ? math->write(s->t, op, operands) : write_generic(s->t, op, operands, flags_of(op));
  return put(s, result, number);
}

/* What the result is computed from, and that alone: bodies which differ in what goes unused are one text. */
static o3_status_t write_body(scope_t *s, const o3_nest_t *nest, const int *arguments,
                              const o3_body_bound_t *bound, const int *given, int *result) {
  O3_TRY_ALLOC(s->numbers);
  for (int i = 0; i < nest->num_operands; ++i)
    O3_TRY(put(s, mlirBlockGetArgument(nest->body, i), arguments[i]));
  for (int i = 0; bound && i < bound->count; ++i)
    if (bound->given[i]) O3_TRY(put(s, mlirOperationGetResult(bound->ops[i], 0), given[i]));
  return number_of(s, mlirOperationGetOperand(mlirBlockGetTerminator(nest->body), 0), result);
}

o3_status_t o3_body_write(o3_kernel_text_t *t, const o3_nest_t *nest, const int *arguments,
                          const o3_body_bound_t *bound, const int *given, int *result) {
  o3_arena_t *scratch = o3_arena_create();
  O3_TRY_ALLOC(scratch);
  scope_t scope = {t, o3_ptr_map_create(scratch)};
  o3_status_t status = write_body(&scope, nest, arguments, bound, given, result);
  o3_arena_destroy(scratch);
  return status;
}

/* ---- Reductions ---- */

void o3_body_begin_function(o3_kernel_text_t *t, const o3_body_function_t *f, int *arguments) {
  o3_strbuf_printf(&t->out, "llvm.func internal @%s_op%d(", f->kernel, f->number);
  for (int i = 0; i < f->count; ++i) {
    arguments[i] = o3_kt_name(t);
    o3_strbuf_printf(&t->out, "%s%%v%d: %s", i ? ", " : "", arguments[i], f->types[i]);
  }
  o3_kt_line(t, ") -> %s attributes {always_inline} {", f->result);
}

void o3_body_end_function(o3_kernel_text_t *t, const o3_body_function_t *f, int result) {
  o3_kt_line(t, "llvm.return %%v%d : %s\n}", result, f->result);
}

int o3_body_call_function(o3_kernel_text_t *t, const o3_body_function_t *f, const int *arguments) {
  int result = o3_kt_name(t);
  o3_strbuf_printf(&t->out, "%%v%d = llvm.call @%s_op%d(", result, f->kernel, f->number);
  for (int i = 0; i < f->count; ++i) o3_strbuf_printf(&t->out, "%s%%v%d", i ? ", " : "", arguments[i]);
  o3_strbuf_puts(&t->out, ") : (");
  for (int i = 0; i < f->count; ++i) o3_strbuf_printf(&t->out, "%s%s", i ? ", " : "", f->types[i]);
  o3_kt_line(t, ") -> %s", f->result);
  return result;
}

typedef struct combiner {
  const char *op, *neutral;
} combiner_t;

static const combiner_t COMBINERS[] = {{"arith.addf", "0.0"},
                                       {"arith.mulf", "1.0"},
                                       {"arith.maximumf", "0xFF800000"},
                                       {"arith.maxnumf", "0xFF800000"},
                                       {"arith.minimumf", "0x7F800000"},
                                       {"arith.minnumf", "0x7F800000"}};

static const combiner_t *find_combiner(MlirStringRef name) {
  for (size_t i = 0; i < sizeof(COMBINERS) / sizeof(COMBINERS[0]); ++i) {
    if (o3_str_equal(name, COMBINERS[i].op)) return &COMBINERS[i];
  }
  return NULL;
}

static bool used_once(MlirValue value) {
  MlirOpOperand use = mlirValueGetFirstUse(value);
  return !mlirOpOperandIsNull(use) && mlirOpOperandIsNull(mlirOpOperandGetNextUse(use));
}

const char *o3_body_combiner(const o3_nest_t *nest) {
  MlirOperation end = mlirBlockGetTerminator(nest->body);
  MlirValue so_far = mlirBlockGetArgument(nest->body, nest->num_operands - 1);
  MlirOperation def = o3_value_def(mlirOperationGetOperand(end, 0));
  const combiner_t *combiner = mlirOperationIsNull(def) ? NULL : find_combiner(o3_op_name(def));
  if (!combiner || !mlirTypeIsAF32(mlirValueGetType(so_far)) || !used_once(so_far)) return NULL;
  for (int i = 0; i < 2; ++i) {
    if (mlirValueEqual(mlirOperationGetOperand(def, i), so_far)) return combiner->op;
  }
  return NULL;
}

const char *o3_body_neutral(const char *combiner) {
  const combiner_t *row = find_combiner(O3_STR(combiner));
  return row ? row->neutral : NULL;
}
