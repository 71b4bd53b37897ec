#include "analysis/infer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define O3_INFER(op, rule) o3_status_t o3_infer_##rule(o3_infer_t *in);
#include "analysis/infer.def"
#undef O3_INFER

static const struct {
  const char *op;
  o3_infer_fn_t rule;
} RULES[] = {
#define O3_INFER(op, rule) {"o3." #op, o3_infer_##rule},
#include "analysis/infer.def"
#undef O3_INFER
};

o3_infer_fn_t o3_infer_find(const char *op) {
  for (size_t i = 0; i < sizeof(RULES) / sizeof(RULES[0]); ++i) {
    if (strcmp(RULES[i].op, op) == 0) return RULES[i].rule;
  }
  return NULL;
}

MlirAttribute o3_infer_attr(const o3_infer_t *in, const char *name) {
  for (int i = 0; i < in->num_attrs; ++i) {
    if (strcmp(in->attrs[i].name, name) == 0) return in->attrs[i].value;
  }
  return mlirAttributeGetNull();
}

int64_t o3_infer_int(const o3_infer_t *in, const char *name, int64_t fallback) {
  MlirAttribute attr = o3_infer_attr(in, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAInteger(attr)) return fallback;
  return mlirIntegerAttrGetValueInt(attr);
}

bool o3_infer_bool(const o3_infer_t *in, const char *name, bool fallback) {
  MlirAttribute attr = o3_infer_attr(in, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsABool(attr)) return fallback;
  return mlirBoolAttrGetValue(attr);
}

bool o3_infer_string_is(const o3_infer_t *in, const char *name, const char *text) {
  MlirAttribute attr = o3_infer_attr(in, name);
  return !mlirAttributeIsNull(attr) && mlirAttributeIsAString(attr) &&
         o3_str_equal(mlirStringAttrGetValue(attr), text);
}

int o3_infer_ints(const o3_infer_t *in, const char *name, int64_t *values, int capacity) {
  MlirAttribute attr = o3_infer_attr(in, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsADenseI64Array(attr)) return 0;
  int count = (int)mlirDenseArrayGetNumElements(attr);
  O3_ASSERT(count <= capacity, "builders pass lists no longer than the rank allows");
  for (int i = 0; i < count; ++i) values[i] = mlirDenseI64ArrayGetElement(attr, i);
  return count;
}

o3_status_t o3_infer_error(const o3_infer_t *in, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return o3_status_create(O3_STATUS_INVALID_MODEL, "%s: %s", in->who, text);
}

/* ---- Broadcasting ---- */

static bool broadcast_dim(o3_symbols_t *symbols, const char *who, MlirAffineExpr a, MlirAffineExpr b,
                          MlirAffineExpr *result) {
  a = o3_symbols_resolve(symbols, a);
  b = o3_symbols_resolve(symbols, b);
  *result = o3_expr_is_const(b, NULL) ? b : a;
  if (o3_expr_equal(a, b)) return true;
  if (o3_expr_equals_const(a, 1)) {
    *result = b;
    return true;
  }
  if (o3_expr_equals_const(b, 1)) {
    *result = a;
    return true;
  }
  return o3_symbols_require_equal(symbols, a, b, who);
}

o3_status_t o3_infer_broadcast(o3_symbols_t *symbols, const char *who, const o3_shape_t *a,
                               const o3_shape_t *b, o3_shape_t *result) {
  const o3_shape_t *longer = a->rank >= b->rank ? a : b, *shorter = a->rank >= b->rank ? b : a;
  int lead = longer->rank - shorter->rank;
  o3_shape_t shape = *longer;
  for (int i = 0; i < shorter->rank; ++i) {
    if (broadcast_dim(symbols, who, longer->dims[lead + i], shorter->dims[i], &shape.dims[lead + i]))
      continue;
    char *a_text = o3_shape_text(symbols, a), *b_text = o3_shape_text(symbols, b);
    o3_status_t status = o3_status_create(
        O3_STATUS_INVALID_MODEL, "%s: shapes %s and %s do not broadcast (dimension %d from the end differs)",
        who, a_text, b_text, shorter->rank - i);
    free(a_text);
    free(b_text);
    return status;
  }
  *result = shape;
  return NULL;
}

/* ---- Elements ---- */

o3_element_t *o3_infer_elements(o3_arena_t *arena, int64_t count) {
  if (count < 0 || count > O3_FACT_MAX_ELEMENTS) return NULL;
  return O3_ARENA_ARRAY(arena, o3_element_t, (size_t)count + 1);
}

int64_t o3_infer_small_count(const o3_shape_t *shape) {
  int64_t count = 1;
  for (int i = 0; i < shape->rank; ++i) {
    int64_t size;
    if (!o3_expr_is_const(shape->dims[i], &size)) return -1;
    if (size < 0 || size > O3_FACT_MAX_ELEMENTS) return -1;
    count *= size;
    if (count > O3_FACT_MAX_ELEMENTS) return -1;
  }
  return count;
}
