/* Builders of the normalizer: every op that they make has its facts noted, and ops whose contents are known
 * already are replaced by constants or by o3.size on the spot. */
#include "normalize/nz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tensorio/half.h"

/* ---- Failing ---- */

void o3_nz_fail(o3_nz_t *nz, o3_status_t status) {
  if (nz->failure) {
    o3_status_destroy(status);
  } else {
    nz->failure = status;
  }
}

static o3_status_t fail(o3_nz_t *nz, o3_status_code_t code, const char *format, va_list args) {
  char text[1024];
  vsnprintf(text, sizeof(text), format, args);
  return o3_status_create(code, "%s: %s", nz->who, text);
}

o3_status_t o3_nz_invalid(o3_nz_t *nz, const char *format, ...) {
  va_list args;
  va_start(args, format);
  o3_status_t status = fail(nz, O3_STATUS_INVALID_MODEL, format, args);
  va_end(args);
  return status;
}

o3_status_t o3_nz_unsupported(o3_nz_t *nz, const char *format, ...) {
  va_list args;
  va_start(args, format);
  o3_status_t status = fail(nz, O3_STATUS_UNSUPPORTED, format, args);
  va_end(args);
  return status;
}

static void out_of_memory(o3_nz_t *nz) {
  o3_nz_fail(nz, o3_status_create(O3_STATUS_OUT_OF_MEMORY, "%s: out of memory", nz->who));
}

/* ---- Types and attributes ---- */

MlirType o3_nz_f32(const o3_nz_t *nz) { return mlirF32TypeGet(nz->context); }
MlirType o3_nz_i64(const o3_nz_t *nz) { return mlirIntegerTypeGet(nz->context, 64); }
MlirType o3_nz_i1(const o3_nz_t *nz) { return mlirIntegerTypeGet(nz->context, 1); }

static const struct {
  int64_t number;
  const char *mlir; /* NULL: named in messages only */
  const char *name;
} ONNX_TYPES[] = {
#define O3_DTYPE(id, name, number, bits, mlir) {number, mlir, name},
#include "base/dtype.def"
#undef O3_DTYPE
#define O3_ONNX_UNREAD_TYPE(number, name) {number, NULL, name},
#include "import/onnx/onnx_unread_types.def"
#undef O3_ONNX_UNREAD_TYPE
};

MlirType o3_nz_onnx_type(o3_nz_t *nz, int64_t data_type) {
  const char *name = "unknown to ONNX";
  for (size_t i = 0; i < sizeof(ONNX_TYPES) / sizeof(ONNX_TYPES[0]); ++i) {
    if (ONNX_TYPES[i].number != data_type) continue;
    if (ONNX_TYPES[i].mlir) return o3_type_parse(nz->context, ONNX_TYPES[i].mlir);
    name = ONNX_TYPES[i].name;
  }
  o3_nz_fail(nz,
             o3_nz_unsupported(nz, "element type %lld (%s) is not supported", (long long)data_type, name));
  return (MlirType){0};
}

MlirAttribute o3_nz_ints_attr(const o3_nz_t *nz, int count, const int64_t *values) {
  return o3_attr_ints(nz->context, count, values);
}

MlirAttribute o3_nz_string_attr(const o3_nz_t *nz, const char *text) {
  return o3_attr_string(nz->context, text);
}

MlirAttribute o3_nz_map_attr(const o3_nz_t *nz, int count, const MlirAffineExpr *exprs) {
  MlirAffineExpr copy[O3_FACT_MAX_ELEMENTS];
  O3_ASSERT(count <= O3_FACT_MAX_ELEMENTS, "maps are no longer than the tensors that are tracked");
  for (int i = 0; i < count; ++i) copy[i] = exprs[i];
  return mlirAffineMapAttrGet(mlirAffineMapGet(nz->context, 0, o3_symbols_count(nz->symbols), count, copy));
}

/* ---- Facts ---- */

const o3_fact_t *o3_nz_fact(const o3_nz_t *nz, MlirValue value) {
  static _Thread_local o3_fact_t none;
  const o3_fact_t *fact = mlirValueIsNull(value) ? NULL : o3_ptr_map_get(nz->facts, value.ptr);
  if (fact) return fact;
  none = (o3_fact_t){.element = o3_nz_f32(nz)};
  return &none;
}

int o3_nz_rank(const o3_nz_t *nz, MlirValue value) { return o3_nz_fact(nz, value)->shape.rank; }
MlirType o3_nz_element(const o3_nz_t *nz, MlirValue value) { return o3_nz_fact(nz, value)->element; }

MlirAffineExpr o3_nz_dim(const o3_nz_t *nz, MlirValue value, int dim) {
  const o3_fact_t *fact = o3_nz_fact(nz, value);
  if (dim < 0 || dim >= fact->shape.rank) return o3_expr_const(nz->context, 1);
  return o3_symbols_resolve(nz->symbols, fact->shape.dims[dim]);
}

int64_t o3_nz_static_dim(o3_nz_t *nz, MlirValue value, int dim, const char *what) {
  int64_t size;
  if (o3_expr_is_const(o3_nz_dim(nz, value, dim), &size)) return size;
  o3_nz_fail(nz,
             o3_nz_unsupported(nz, "%s must be known while compiling (set it with --dim or --shape)", what));
  return 1;
}

int o3_nz_exprs(const o3_nz_t *nz, MlirValue value, MlirAffineExpr *exprs, int capacity) {
  const o3_fact_t *fact = o3_nz_fact(nz, value);
  if (!fact->elements || fact->num_elements > capacity) return -1;
  for (int i = 0; i < fact->num_elements; ++i) {
    if (fact->elements[i].kind != O3_ELEMENT_EXPR) return -1;
    exprs[i] = o3_symbols_resolve(nz->symbols, fact->elements[i].expr);
  }
  return fact->num_elements;
}

int o3_nz_const_ints(o3_nz_t *nz, MlirValue value, const char *what, int64_t *values, int capacity) {
  MlirAffineExpr exprs[O3_FACT_MAX_ELEMENTS];
  int count =
      o3_nz_exprs(nz, value, exprs, capacity < O3_FACT_MAX_ELEMENTS ? capacity : O3_FACT_MAX_ELEMENTS);
  for (int i = 0; i < count; ++i) {
    if (!o3_expr_is_const(exprs[i], &values[i])) count = -1;
  }
  if (count < 0)
    o3_nz_fail(nz, o3_nz_unsupported(nz, "%s must be a constant of at most %d integers", what, capacity));
  return count;
}

int o3_nz_const_floats(o3_nz_t *nz, MlirValue value, const char *what, double *values, int capacity) {
  const o3_fact_t *fact = o3_nz_fact(nz, value);
  if (!o3_fact_is_const(fact) || fact->num_elements > capacity) {
    o3_nz_fail(nz, o3_nz_unsupported(nz, "%s must be a constant of at most %d numbers", what, capacity));
    return -1;
  }
  for (int i = 0; i < fact->num_elements; ++i) {
    const o3_element_t *element = &fact->elements[i];
    values[i] = element->kind == O3_ELEMENT_FLOAT ? element->number
                                                  : (double)mlirAffineConstantExprGetValue(element->expr);
  }
  return fact->num_elements;
}

void o3_nz_note(o3_nz_t *nz, MlirValue value, const o3_fact_t *fact) {
  o3_fact_t *copy = O3_ARENA_NEW(nz->arena, o3_fact_t);
  if (!copy || !o3_ptr_map_put(nz->facts, value.ptr, copy)) {
    out_of_memory(nz);
    return;
  }
  *copy = *fact;
}

/* ---- Constants ---- */

static double load_float(MlirType type, const uint8_t *at) {
  if (mlirTypeIsAF64(type)) {
    double value;
    memcpy(&value, at, sizeof(value));
    return value;
  }
  uint32_t bits = 0;
  memcpy(&bits, at, (size_t)o3_type_bits(type) / 8);
  if (mlirTypeIsAF16(type)) return o3_half_to_float((uint16_t)bits);
  if (mlirTypeIsABF16(type)) return o3_bfloat_to_float((uint16_t)bits);
  return o3_float_from_bits(bits);
}

static int64_t load_int(MlirType type, const uint8_t *at) {
  int bits = o3_type_bits(type);
  uint64_t raw = 0;
  memcpy(&raw, at, (size_t)bits / 8);
  if (o3_type_is_unsigned(type) || bits == 64) return (int64_t)raw;
  return (int64_t)(raw << (64 - bits)) >> (64 - bits);
}

/* Contents of a constant that is small enough to be tracked; 8-bit floats are data. */
static void read_elements(o3_nz_t *nz, MlirAttribute attr, o3_fact_t *fact) {
  int64_t count = o3_type_float8(fact->element) ? -1 : o3_infer_small_count(&fact->shape);
  o3_element_t *elements = count < 0 ? NULL : o3_infer_elements(nz->arena, count);
  const uint8_t *data = elements ? o3_weights_data(nz->weights, attr, NULL) : NULL;
  if (!data) return;
  size_t width = (size_t)o3_type_bits(fact->element) / 8;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t *at = data + (size_t)i * width;
    if (o3_type_is_float(fact->element)) {
      elements[i] = (o3_element_t){.kind = O3_ELEMENT_FLOAT, .number = load_float(fact->element, at)};
    } else {
      int64_t value = load_int(fact->element, at);
      bool beyond = value < 0 && o3_type_is_unsigned(fact->element); /* of int64: stays unknown */
      if (!beyond)
        elements[i] = (o3_element_t){.kind = O3_ELEMENT_EXPR, .expr = o3_expr_const(nz->context, value)};
    }
  }
  fact->elements = elements;
  fact->num_elements = (int)count;
}

MlirValue o3_nz_constant(o3_nz_t *nz, MlirAttribute attr) {
  if (o3_nz_failed(nz)) return (MlirValue){0};
  MlirType type = mlirAttributeGetType(attr);
  o3_fact_t fact = {.element = o3_type_element(type)};
  o3_shape_from_type(type, &fact.shape);
  read_elements(nz, attr, &fact);
  MlirValue value =
      o3_build1_attrs(&nz->builder, "o3.constant", type, O3_NO_VALUES, O3_ATTRS({"value", attr}));
  o3_nz_note(nz, value, &fact);
  return value;
}

/* |value| in the bytes of |element|; through MLIR's own attribute so that rounding is MLIR's. */
static MlirAttribute splat(MlirType type, double value) {
  MlirType element = o3_type_element(type);
  MlirAttribute number =
      o3_type_is_float(element) ? o3_attr_float(element, value) : mlirIntegerAttrGet(element, (int64_t)value);
  return mlirDenseElementsAttrSplatGet(type, number);
}

MlirValue o3_nz_scalar(o3_nz_t *nz, MlirType element, double value) {
  if (o3_nz_failed(nz)) return (MlirValue){0};
  return o3_nz_constant(nz, splat(o3_tensor_type(0, NULL, element), value));
}

MlirValue o3_nz_like(o3_nz_t *nz, MlirValue x, double value) {
  return o3_nz_scalar(nz, o3_nz_element(nz, x), value);
}

MlirValue o3_nz_i64s(o3_nz_t *nz, int count, const int64_t *values) {
  if (o3_nz_failed(nz)) return (MlirValue){0};
  int64_t size = count;
  MlirType type = o3_tensor_type(1, &size, o3_nz_i64(nz));
  return o3_nz_constant(nz, mlirDenseElementsAttrInt64Get(type, count, values));
}

MlirValue o3_nz_filled(o3_nz_t *nz, const o3_shape_t *shape, MlirType element, double value) {
  if (o3_nz_failed(nz)) return (MlirValue){0};
  MlirType type = o3_shape_type(shape, element);
  if (o3_type_is_static(type)) return o3_nz_constant(nz, splat(type, value));
  return o3_nz_broadcast(nz, o3_nz_scalar(nz, element, value), shape);
}

/* ---- Folding ---- */

static void store_number(const o3_element_t *element, MlirType type, uint8_t *at) {
  int64_t integer = element->kind == O3_ELEMENT_FLOAT ? (int64_t)element->number
                                                      : mlirAffineConstantExprGetValue(element->expr);
  double number = element->kind == O3_ELEMENT_FLOAT ? element->number : (double)integer;
  float single = (float)number;
  size_t width = (size_t)o3_type_bits(type) / 8;
  if (mlirTypeIsAF64(type)) {
    memcpy(at, &number, width);
  } else if (mlirTypeIsAF32(type)) {
    memcpy(at, &single, width);
  } else {
    memcpy(at, &integer, width);
  }
}

static MlirAttribute elements_attr(const o3_fact_t *fact) {
  uint8_t bytes[O3_FACT_MAX_ELEMENTS * 8] = {0};
  MlirType type = o3_fact_type(fact);
  size_t width = (size_t)o3_type_bits(fact->element) / 8;
  if (o3_type_is_bool(fact->element)) {
    int values[O3_FACT_MAX_ELEMENTS];
    for (int i = 0; i < fact->num_elements; ++i)
      values[i] = mlirAffineConstantExprGetValue(fact->elements[i].expr) != 0;
    return mlirDenseElementsAttrBoolGet(type, fact->num_elements, values);
  }
  for (int i = 0; i < fact->num_elements; ++i)
    store_number(&fact->elements[i], fact->element, bytes + (size_t)i * width);
  return mlirDenseElementsAttrRawBufferGet(type, (size_t)fact->num_elements * width, bytes);
}

/* Contents that are expressions of symbols become one o3.size; only i64 vectors and scalars are. */
static bool is_size_like(const o3_nz_t *nz, const o3_fact_t *fact) {
  if (fact->shape.rank > 1 || !mlirTypeEqual(fact->element, o3_nz_i64(nz)) || !o3_fact_is_known(fact))
    return false;
  for (int i = 0; i < fact->num_elements; ++i) {
    if (fact->elements[i].kind != O3_ELEMENT_EXPR) return false;
  }
  return true;
}

static MlirValue build_size(o3_nz_t *nz, const o3_fact_t *fact) {
  MlirAffineExpr exprs[O3_FACT_MAX_ELEMENTS];
  for (int i = 0; i < fact->num_elements; ++i) exprs[i] = fact->elements[i].expr;
  MlirValue value = o3_build1_attrs(&nz->builder, "o3.size", o3_fact_type(fact), O3_NO_VALUES,
                                    O3_ATTRS({"map", o3_nz_map_attr(nz, fact->num_elements, exprs)}));
  o3_nz_note(nz, value, fact);
  return value;
}

/* Narrow floats are left to the op: they would need rounding here. */
static bool can_fold(const o3_nz_t *nz, const o3_fact_t *fact) {
  bool narrow = o3_type_is_float(fact->element) && o3_type_bits(fact->element) < 32;
  return (o3_fact_is_const(fact) && !narrow) || is_size_like(nz, fact);
}

static MlirValue fold(o3_nz_t *nz, const o3_fact_t *fact) {
  if (!o3_fact_is_const(fact)) return build_size(nz, fact);
  return o3_nz_constant(nz, elements_attr(fact));
}

MlirValue o3_nz_sizes(o3_nz_t *nz, int count, const MlirAffineExpr *exprs, bool scalar) {
  o3_element_t *elements = o3_infer_elements(nz->arena, count);
  if (o3_nz_failed(nz)) return (MlirValue){0};
  if (!elements) {
    o3_nz_fail(nz, o3_nz_unsupported(nz, "a list of %d sizes, at most %d are", count, O3_FACT_MAX_ELEMENTS));
    return (MlirValue){0};
  }
  for (int i = 0; i < count; ++i) elements[i] = (o3_element_t){.kind = O3_ELEMENT_EXPR, .expr = exprs[i]};
  o3_fact_t fact = {.element = o3_nz_i64(nz), .elements = elements, .num_elements = count};
  if (!scalar) fact.shape = (o3_shape_t){.rank = 1, .dims = {o3_expr_const(nz->context, count)}};
  return fold(nz, &fact);
}

/* ---- Ops ---- */

enum { MAX_OPERANDS = O3_NODE_MAX_INPUTS, MAX_OP_ATTRS = 24 };

static bool any_null(int count, const MlirValue *values) {
  for (int i = 0; i < count; ++i) {
    if (mlirValueIsNull(values[i])) return true;
  }
  return false;
}

/* o3.shape: one map for each result, only where a size is symbolic. */
static MlirAttribute shapes_attr(const o3_nz_t *nz, int count, const o3_fact_t *facts) {
  MlirAttribute maps[O3_NODE_MAX_OUTPUTS];
  bool is_static = true;
  for (int i = 0; i < count; ++i) {
    is_static = is_static && o3_shape_is_static(&facts[i].shape);
    maps[i] = o3_shape_attr(nz->context, &facts[i].shape, o3_symbols_count(nz->symbols));
  }
  return is_static ? mlirAttributeGetNull() : mlirArrayAttrGet(nz->context, count, maps);
}

static void build_guard(o3_nz_t *nz, const o3_guard_t *guard) {
  MlirAffineExpr rhs = guard->rhs.ptr ? guard->rhs : o3_expr_const(nz->context, 0);
  const o3_attr_t attrs[] = {{"lhs", o3_nz_map_attr(nz, 1, &guard->lhs)},
                             {"rhs", o3_nz_map_attr(nz, 1, &rhs)},
                             {"nonnegative", o3_attr_bool(nz->context, !guard->rhs.ptr)},
                             {"text", o3_attr_string(nz->context, guard->text)}};
  o3_op_spec_t spec = {.name = "o3.guard", .num_attrs = 4, .attrs = attrs};
  o3_build(&nz->builder, &spec);
}

void o3_nz_check_guards(o3_nz_t *nz) {
  for (; nz->num_checked < o3_symbols_num_guards(nz->symbols); ++nz->num_checked) {
    const o3_guard_t *guard = o3_symbols_guard_at(nz->symbols, nz->num_checked);
    bool at_run = o3_symbols_needs_data(nz->symbols, guard->lhs) ||
                  (guard->rhs.ptr && o3_symbols_needs_data(nz->symbols, guard->rhs));
    if (at_run || nz->num_conditionals) build_guard(nz, guard);
  }
}

/* Parameters of the model may ask for sizes below 0, or for so many elements that what comes later cannot
 * count their bytes. */
static o3_status_t refuse_shape(o3_nz_t *nz, const o3_shape_t *shape) {
  enum { MAX_ELEMENT_BYTES = 8, COPIES = 16 };
  int64_t size, count = MAX_ELEMENT_BYTES * COPIES;
  bool too_many = false, is_empty = false;
  for (int d = 0; d < shape->rank; ++d) {
    if (!o3_expr_is_const(shape->dims[d], &size)) continue;
    if (size < 0)
      return o3_nz_invalid(nz, "dimension %d of its result would have size %lld", d, (long long)size);
    is_empty |= size == 0;
    too_many |= size && __builtin_mul_overflow(count, size, &count);
  }
  return too_many && !is_empty
             ? o3_nz_invalid(nz, "its result would have more elements than can be addressed")
             : NULL;
}

static bool check_sizes(o3_nz_t *nz, int count, const o3_fact_t *facts) {
  o3_status_t status = NULL;
  for (int i = 0; i < count && !status; ++i) status = refuse_shape(nz, &facts[i].shape);
  if (status) o3_nz_fail(nz, status);
  return !status;
}

static bool takes_float8(const char *name) {
  static const char *const OPS[] = {
#define O3_FLOAT8_OP(name) name,
#include "normalize/float8_ops.def"
#undef O3_FLOAT8_OP
  };
  for (size_t i = 0; i < sizeof(OPS) / sizeof(OPS[0]); ++i) {
    if (strcmp(OPS[i], name) == 0) return true;
  }
  return strncmp(name, "o3.", 3) != 0;
}

/* Nothing computes with 8-bit floats: ONNX casts and dequantises them first. */
static bool check_float8(o3_nz_t *nz, const char *name, int num_operands, const MlirValue *operands) {
  for (int i = 0; i < num_operands; ++i) {
    const o3_float8_t *format = o3_type_float8(o3_nz_element(nz, operands[i]));
    if (!format || takes_float8(name)) continue;
    o3_nz_fail(nz, o3_nz_unsupported(nz,
                                     "operands of type %s are moved, cast and dequantised only, not computed "
                                     "with (%s)",
                                     o3_dtype_info(format->dtype)->name, name));
    return false;
  }
  return true;
}

void o3_nz_op_stated(o3_nz_t *nz, const char *name, int num_operands, const MlirValue *operands,
                     int num_attrs, const o3_attr_t *attrs, int num_results, const o3_fact_t *facts,
                     MlirValue *results) {
  o3_attr_t all[MAX_OP_ATTRS];
  MlirType types[O3_NODE_MAX_OUTPUTS];
  for (int i = 0; i < num_results; ++i) results[i] = (MlirValue){0};
  if (o3_nz_failed(nz)) return;
  if (any_null(num_operands, operands)) {
    o3_nz_fail(nz, o3_nz_invalid(nz, "a required input is missing"));
    return;
  }
  O3_ASSERT(num_attrs < MAX_OP_ATTRS && num_results <= O3_NODE_MAX_OUTPUTS,
            "ops have few attributes and results");
  if (!check_float8(nz, name, num_operands, operands) || !check_sizes(nz, num_results, facts)) return;
  for (int i = 0; i < num_attrs; ++i) all[i] = attrs[i];
  for (int i = 0; i < num_results; ++i) types[i] = o3_fact_type(&facts[i]);
  all[num_attrs] =
      (o3_attr_t){"o3.shape", num_results ? shapes_attr(nz, num_results, facts) : mlirAttributeGetNull()};
  if (num_results == 1 && can_fold(nz, &facts[0])) {
    results[0] = fold(nz, &facts[0]);
    return;
  }
  o3_nz_check_guards(nz);
  o3_op_spec_t spec = {.name = name,
                       .num_operands = num_operands,
                       .operands = operands,
                       .num_results = num_results,
                       .results = types,
                       .num_attrs = num_attrs + 1,
                       .attrs = all};
  MlirOperation op = o3_build(&nz->builder, &spec);
  for (int i = 0; i < num_results; ++i) {
    results[i] = mlirOperationGetResult(op, i);
    o3_nz_note(nz, results[i], &facts[i]);
  }
}

/* Facts may hold symbols that later turned out equal to others: rules see them replaced. */
static const o3_fact_t *resolved_fact(o3_nz_t *nz, MlirValue value) {
  const o3_fact_t *fact = o3_nz_fact(nz, value);
  o3_fact_t *copy = O3_ARENA_NEW(nz->arena, o3_fact_t);
  if (!copy) return fact;
  *copy = *fact;
  for (int i = 0; i < fact->shape.rank; ++i)
    copy->shape.dims[i] = o3_symbols_resolve(nz->symbols, fact->shape.dims[i]);
  return copy;
}

void o3_nz_op_results(o3_nz_t *nz, const char *name, int num_operands, const MlirValue *operands,
                      int num_attrs, const o3_attr_t *attrs, int num_results, MlirValue *results) {
  const o3_fact_t *facts[MAX_OPERANDS];
  for (int i = 0; i < num_results; ++i) results[i] = (MlirValue){0};
  if (o3_nz_failed(nz)) return;
  if (any_null(num_operands, operands)) {
    o3_nz_fail(nz, o3_nz_invalid(nz, "a required input is missing"));
    return;
  }
  for (int i = 0; i < num_operands; ++i) facts[i] = resolved_fact(nz, operands[i]);
  o3_infer_fn_t rule = o3_infer_find(name);
  O3_ASSERT(rule, "ops built by inference have a row in analysis/infer.def");
  o3_infer_t in = {.context = nz->context,
                   .arena = nz->arena,
                   .symbols = nz->symbols,
                   .op = name,
                   .who = nz->who,
                   .num_operands = num_operands,
                   .operands = facts,
                   .num_attrs = num_attrs,
                   .attrs = attrs};
  o3_status_t status = rule(&in);
  if (status) {
    o3_nz_fail(nz, status);
    return;
  }
  O3_ASSERT(in.num_results == num_results, "rules give the results that the op has");
  o3_nz_op_stated(nz, name, num_operands, operands, num_attrs, attrs, num_results, in.results, results);
}

MlirValue o3_nz_op(o3_nz_t *nz, const char *name, int num_operands, const MlirValue *operands, int num_attrs,
                   const o3_attr_t *attrs) {
  MlirValue result;
  o3_nz_op_results(nz, name, num_operands, operands, num_attrs, attrs, 1, &result);
  return result;
}

/* ---- Sizes that only the run knows ---- */

int o3_nz_bind_sizes(o3_nz_t *nz, MlirValue value, const char *what, MlirAffineExpr *exprs, int capacity) {
  int64_t positions[O3_FACT_MAX_ELEMENTS];
  int count = o3_nz_exprs(nz, value, exprs, capacity);
  if (o3_nz_failed(nz)) return -1;
  if (count >= 0) return count;
  const o3_fact_t *fact = o3_nz_fact(nz, value);
  int64_t elements = o3_infer_small_count(&fact->shape);
  if (elements < 0 || elements > capacity || fact->shape.rank > 1 || o3_type_is_float(fact->element)) {
    o3_nz_fail(nz, o3_nz_unsupported(nz, "%s must be a vector of at most %d integers of known length", what,
                                     capacity));
    return -1;
  }
  for (int64_t i = 0; i < elements; ++i) {
    const o3_element_t *known = fact->elements ? &fact->elements[i] : NULL;
    exprs[i] = known && known->kind == O3_ELEMENT_EXPR ? known->expr : o3_symbols_data(nz->symbols, nz->who);
    positions[i] = known && known->kind == O3_ELEMENT_EXPR ? -1 : o3_symbols_count(nz->symbols) - 1;
    if (!exprs[i].ptr) out_of_memory(nz);
  }
  MlirValue wide = o3_nz_cast(nz, value, o3_nz_i64(nz));
  o3_nz_op_stated(nz, "o3.bind", O3_VALUES(wide),
                  O3_ATTRS({"symbols", o3_nz_ints_attr(nz, (int)elements, positions)}), 0, NULL, NULL);
  return (int)elements;
}

/* ---- Common ops ---- */

MlirValue o3_nz_unary(o3_nz_t *nz, const char *name, MlirValue x) {
  return o3_nz_op(nz, name, O3_VALUES(x), 0, NULL);
}

MlirValue o3_nz_binary(o3_nz_t *nz, const char *name, MlirValue a, MlirValue b) {
  return o3_nz_op(nz, name, O3_VALUES(a, b), 0, NULL);
}

MlirValue o3_nz_select(o3_nz_t *nz, MlirValue condition, MlirValue a, MlirValue b) {
  return o3_nz_op(nz, "o3.select", O3_VALUES(condition, a, b), 0, NULL);
}

MlirValue o3_nz_cast(o3_nz_t *nz, MlirValue x, MlirType element) {
  if (o3_nz_failed(nz) || mlirTypeEqual(o3_nz_element(nz, x), element)) return x;
  return o3_nz_op(nz, "o3.cast", O3_VALUES(x), O3_ATTRS({"to", o3_attr_type(element)}));
}

MlirValue o3_nz_cast_float8(o3_nz_t *nz, MlirValue x, MlirType element, bool saturate) {
  if (o3_nz_failed(nz) || saturate || mlirTypeEqual(o3_nz_element(nz, x), element) ||
      !o3_type_float8(element))
    return o3_nz_cast(nz, x, element);
  return o3_nz_op(nz, "o3.cast", O3_VALUES(x),
                  O3_ATTRS({"to", o3_attr_type(element)}, {"saturate", o3_attr_bool(nz->context, false)}));
}

MlirValue o3_nz_clamp(o3_nz_t *nz, MlirValue x, double low, double high) {
  MlirValue above = o3_nz_binary(nz, "o3.max", x, o3_nz_like(nz, x, low));
  return o3_nz_binary(nz, "o3.min", above, o3_nz_like(nz, x, high));
}

static bool same_shape(const o3_shape_t *a, const o3_shape_t *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; ++i) {
    if (!o3_expr_equal(a->dims[i], b->dims[i])) return false;
  }
  return true;
}

MlirValue o3_nz_reshape(o3_nz_t *nz, MlirValue x, const o3_shape_t *shape) {
  if (o3_nz_failed(nz)) return (MlirValue){0};
  const o3_fact_t *from = resolved_fact(nz, x);
  if (same_shape(&from->shape, shape)) return x;
  MlirAffineExpr before = o3_shape_product(nz->context, &from->shape, 0, from->shape.rank);
  MlirAffineExpr after = o3_shape_product(nz->context, shape, 0, shape->rank);
  if (!o3_symbols_require_equal(nz->symbols, before, after, nz->who)) {
    char *a = o3_shape_text(nz->symbols, &from->shape), *b = o3_shape_text(nz->symbols, shape);
    o3_nz_fail(nz, o3_nz_invalid(nz, "a tensor of shape %s cannot take shape %s", a, b));
    free(a);
    free(b);
    return (MlirValue){0};
  }
  o3_fact_t fact = *from;
  fact.shape = *shape;
  if (o3_infer_small_count(shape) != fact.num_elements) fact.elements = NULL; /* sizes are symbols now */
  MlirValue result;
  o3_nz_op_stated(nz, "o3.reshape", O3_VALUES(x), 0, NULL, 1, &fact, &result);
  return result;
}

MlirValue o3_nz_transpose(o3_nz_t *nz, MlirValue x, const int64_t *perm) {
  int rank = o3_nz_rank(nz, x);
  bool identity = true;
  for (int i = 0; i < rank; ++i) identity = identity && perm[i] == i;
  if (o3_nz_failed(nz) || identity) return x;
  return o3_nz_op(nz, "o3.transpose", O3_VALUES(x), O3_ATTRS({"perm", o3_nz_ints_attr(nz, rank, perm)}));
}

MlirValue o3_nz_broadcast(o3_nz_t *nz, MlirValue x, const o3_shape_t *shape) {
  if (o3_nz_failed(nz)) return (MlirValue){0};
  const o3_fact_t *from = resolved_fact(nz, x);
  if (same_shape(&from->shape, shape)) return x;
  o3_fact_t fact = {.element = from->element, .shape = *shape};
  int64_t count = o3_infer_small_count(shape);
  o3_element_t *elements =
      from->num_elements == 1 && from->elements ? o3_infer_elements(nz->arena, count) : NULL;
  for (int64_t i = 0; elements && i < count; ++i) elements[i] = from->elements[0];
  fact.elements = elements;
  fact.num_elements = elements ? (int)count : 0;
  MlirValue result;
  o3_nz_op_stated(nz, "o3.broadcast", O3_VALUES(x), 0, NULL, 1, &fact, &result);
  return result;
}

static bool listed(int count, const int64_t *axes, int axis) {
  for (int i = 0; i < count; ++i) {
    if (axes[i] == axis) return true;
  }
  return false;
}

MlirValue o3_nz_unsqueeze(o3_nz_t *nz, MlirValue x, int count, const int64_t *axes) {
  o3_shape_t shape = {.rank = o3_nz_rank(nz, x) + count};
  int next = 0;
  if (shape.rank > O3_IR_MAX_RANK) {
    o3_nz_fail(nz, o3_nz_unsupported(nz, "a tensor of rank %d, at most %d is", shape.rank, O3_IR_MAX_RANK));
    return (MlirValue){0};
  }
  for (int i = 0; i < shape.rank; ++i)
    shape.dims[i] = listed(count, axes, i) ? o3_expr_const(nz->context, 1) : o3_nz_dim(nz, x, next++);
  return o3_nz_reshape(nz, x, &shape);
}

MlirValue o3_nz_squeeze(o3_nz_t *nz, MlirValue x, int count, const int64_t *axes) {
  o3_shape_t shape = {0};
  for (int i = 0; i < o3_nz_rank(nz, x); ++i) {
    if (!listed(count, axes, i)) shape.dims[shape.rank++] = o3_nz_dim(nz, x, i);
  }
  return o3_nz_reshape(nz, x, &shape);
}

MlirValue o3_nz_reduce(o3_nz_t *nz, MlirValue x, const char *kind, int count, const int64_t *axes,
                       bool keepdims) {
  return o3_nz_op(nz, "o3.reduce", O3_VALUES(x),
                  O3_ATTRS({"kind", o3_nz_string_attr(nz, kind)}, {"axes", o3_nz_ints_attr(nz, count, axes)},
                           {"keepdims", o3_attr_bool(nz->context, keepdims)}));
}

MlirValue o3_nz_matmul(o3_nz_t *nz, MlirValue a, MlirValue b) {
  return o3_nz_op(nz, "o3.matmul", O3_VALUES(a, b), 0, NULL);
}

MlirValue o3_nz_slice(o3_nz_t *nz, MlirValue x, int axis, MlirAffineExpr start, MlirAffineExpr size) {
  int64_t axes[1] = {axis}, steps[1] = {1}, begin, length;
  if (o3_nz_failed(nz)) return (MlirValue){0};
  const o3_fact_t *from = o3_nz_fact(nz, x);
  o3_fact_t fact = {.element = from->element, .shape = from->shape};
  fact.shape.dims[axis] = size;
  bool known = from->elements && from->shape.rank == 1 && o3_expr_is_const(start, &begin) &&
               o3_expr_is_const(size, &length);
  if (known && begin >= 0 && length >= 0 && begin + length <= from->num_elements) {
    fact.elements = from->elements + begin;
    fact.num_elements = (int)length;
  }
  MlirValue result;
  o3_nz_op_stated(nz, "o3.slice", O3_VALUES(x),
                  O3_ATTRS({"axes", o3_nz_ints_attr(nz, 1, axes)}, {"starts", o3_nz_map_attr(nz, 1, &start)},
                           {"steps", o3_nz_ints_attr(nz, 1, steps)}),
                  1, &fact, &result);
  return result;
}

/* Vectors with known contents, as shapes are put together. */
static void concat_elements(o3_nz_t *nz, int count, const MlirValue *values, o3_fact_t *fact) {
  o3_element_t *elements = o3_infer_elements(nz->arena, o3_infer_small_count(&fact->shape));
  int total = 0;
  if (!elements || fact->shape.rank != 1) return;
  for (int i = 0; i < count; ++i) {
    const o3_fact_t *from = o3_nz_fact(nz, values[i]);
    int64_t size = o3_infer_small_count(&from->shape);
    for (int64_t k = 0; k < size; ++k, ++total) {
      if (from->elements) elements[total] = from->elements[k];
    }
  }
  fact->elements = elements;
  fact->num_elements = total;
}

/* Those of |values| that are not certain to be empty along |axis|; the first one when all are. An empty part
 * at the end would be a slice that begins out of bounds. */
static int without_empty(const o3_nz_t *nz, int axis, int count, const MlirValue *values, MlirValue *parts) {
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    if (!o3_expr_equals_const(o3_nz_dim(nz, values[i], axis), 0)) parts[kept++] = values[i];
  }
  if (!kept) parts[kept++] = values[0];
  return kept;
}

/* All shapes agree but along |axis|, where they add up. */
static bool concat_shape(o3_nz_t *nz, int axis, int count, const MlirValue *values, o3_fact_t *fact) {
  for (int i = 1; i < count; ++i) {
    const o3_fact_t *next = resolved_fact(nz, values[i]);
    bool fits = next->shape.rank == fact->shape.rank && mlirTypeEqual(next->element, fact->element);
    for (int d = 0; fits && d < fact->shape.rank; ++d) {
      if (d == axis) continue;
      fits = o3_symbols_require_equal(nz->symbols, fact->shape.dims[d], next->shape.dims[d], nz->who);
    }
    if (!fits) {
      o3_nz_fail(nz, o3_nz_invalid(nz, "input %d does not fit the first one but for axis %d", i, axis));
      return false;
    }
    fact->shape.dims[axis] = o3_expr_add(fact->shape.dims[axis], next->shape.dims[axis]);
  }
  return true;
}

static bool is_empty(const o3_shape_t *shape) {
  for (int i = 0; i < shape->rank; ++i) {
    if (o3_expr_equals_const(shape->dims[i], 0)) return true;
  }
  return false;
}

/* Inputs of no elements are left out: upstream's op does not take them. */
MlirValue o3_nz_concat(o3_nz_t *nz, int axis, int count, const MlirValue *values) {
  MlirValue kept[O3_NODE_MAX_INPUTS];
  int num_kept = 0;
  if (count == 1 || o3_nz_failed(nz)) return count ? values[0] : (MlirValue){0};
  const o3_fact_t *first = resolved_fact(nz, values[0]);
  o3_fact_t fact = {.element = first->element, .shape = first->shape};
  if (!concat_shape(nz, axis, count, values, &fact)) return (MlirValue){0};
  if (is_empty(&fact.shape)) return o3_nz_filled(nz, &fact.shape, fact.element, 0);
  for (int i = 0; i < count; ++i) {
    if (!is_empty(&o3_nz_fact(nz, values[i])->shape)) kept[num_kept++] = values[i];
  }
  if (num_kept == 1) return kept[0];
  concat_elements(nz, count, values, &fact);
  MlirValue parts[MAX_OPERANDS], result;
  int num_parts = without_empty(nz, axis, count, values, parts);
  if (num_parts == 1) return parts[0];
  o3_nz_op_stated(nz, "tensor.concat", num_parts, parts, O3_ATTRS({"dim", o3_attr_i64(nz->context, axis)}), 1,
                  &fact, &result);
  return result;
}
