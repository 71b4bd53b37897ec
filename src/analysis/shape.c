#include "analysis/shape.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/strbuf.h"

bool o3_shape_is_static(const o3_shape_t *shape) {
  for (int i = 0; i < shape->rank; ++i) {
    if (!o3_expr_is_const(shape->dims[i], NULL)) return false;
  }
  return true;
}

MlirAffineExpr o3_shape_product(MlirContext context, const o3_shape_t *shape, int first, int last) {
  MlirAffineExpr product = o3_expr_const(context, 1);
  for (int i = first; i < last; ++i) product = o3_expr_mul(product, shape->dims[i]);
  return product;
}

MlirType o3_shape_type(const o3_shape_t *shape, MlirType element) {
  int64_t sizes[O3_IR_MAX_RANK];
  for (int i = 0; i < shape->rank; ++i) {
    if (!o3_expr_is_const(shape->dims[i], &sizes[i])) sizes[i] = -1;
  }
  return o3_tensor_type(shape->rank, sizes, element);
}

MlirAttribute o3_shape_attr(MlirContext context, const o3_shape_t *shape, int num_symbols) {
  MlirAffineExpr dims[O3_IR_MAX_RANK];
  memcpy(dims, shape->dims, sizeof(dims));
  return mlirAffineMapAttrGet(mlirAffineMapGet(context, 0, num_symbols, shape->rank, dims));
}

void o3_shape_from_attr(MlirAttribute attr, o3_shape_t *shape) {
  MlirAffineMap map = mlirAffineMapAttrGetValue(attr);
  shape->rank = (int)mlirAffineMapGetNumResults(map);
  O3_ASSERT(shape->rank <= O3_IR_MAX_RANK, "ranks are checked on import");
  for (int i = 0; i < shape->rank; ++i) shape->dims[i] = mlirAffineMapGetResult(map, i);
}

void o3_shape_from_type(MlirType type, o3_shape_t *shape) {
  shape->rank = o3_type_rank(type);
  for (int i = 0; i < shape->rank; ++i)
    shape->dims[i] = o3_expr_const(mlirTypeGetContext(type), o3_type_dim(type, i));
}

/* ---- Text ---- */

static void append_expr(o3_strbuf_t *text, const o3_symbols_t *symbols, MlirAffineExpr expr, bool nested);

static void append_binary(o3_strbuf_t *text, const o3_symbols_t *symbols, MlirAffineExpr expr, bool nested) {
  MlirAffineExpr left = mlirAffineBinaryOpExprGetLHS(expr), right = mlirAffineBinaryOpExprGetRHS(expr);
  const char *sign = mlirAffineExprIsAAdd(expr)       ? " + "
                     : mlirAffineExprIsAMul(expr)     ? "*"
                     : mlirAffineExprIsAMod(expr)     ? " mod "
                     : mlirAffineExprIsACeilDiv(expr) ? " ceildiv "
                                                      : " / ";
  int64_t constant;
  if (mlirAffineExprIsAAdd(expr) && o3_expr_is_const(right, &constant) && constant < 0) {
    sign = " - ";
    right = o3_expr_const(mlirAffineExprGetContext(expr), -constant);
  }
  if (nested) o3_strbuf_puts(text, "(");
  append_expr(text, symbols, left, true);
  o3_strbuf_puts(text, sign);
  append_expr(text, symbols, right, true);
  if (nested) o3_strbuf_puts(text, ")");
}

/* Names that the compiler has made up tell a reader nothing: "min(N, 5)", "[a size of node 'NonZero_1']". */
static void append_symbol(o3_strbuf_t *text, const o3_symbols_t *symbols, const o3_symbol_t *symbol) {
  if (symbol->kind == O3_SYMBOL_INPUT) {
    o3_strbuf_puts(text, symbol->name);
  } else if (symbol->kind == O3_SYMBOL_DATA) {
    o3_strbuf_printf(text, "[a size of %s]", symbol->origin);
  } else {
    o3_strbuf_puts(text, symbol->kind == O3_SYMBOL_MIN ? "min(" : "max(");
    append_expr(text, symbols, symbol->a, false);
    o3_strbuf_puts(text, ", ");
    append_expr(text, symbols, symbol->b, false);
    o3_strbuf_puts(text, ")");
  }
}

static void append_expr(o3_strbuf_t *text, const o3_symbols_t *symbols, MlirAffineExpr expr, bool nested) {
  int64_t constant;
  if (o3_expr_is_const(expr, &constant)) {
    o3_strbuf_printf(text, "%lld", (long long)constant);
  } else if (mlirAffineExprIsASymbol(expr)) {
    int position = (int)mlirAffineSymbolExprGetPosition(expr);
    append_symbol(text, symbols, o3_symbols_at(symbols, position));
  } else {
    append_binary(text, symbols, expr, nested);
  }
}

char *o3_expr_text(const o3_symbols_t *symbols, MlirAffineExpr expr) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  append_expr(&text, symbols, expr, false);
  return text.text;
}

char *o3_shape_text(const o3_symbols_t *symbols, const o3_shape_t *shape) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  if (shape->rank == 0) o3_strbuf_puts(&text, "scalar");
  for (int i = 0; i < shape->rank; ++i) {
    if (i) o3_strbuf_puts(&text, "x");
    append_expr(&text, symbols, shape->dims[i], true);
  }
  return text.text;
}

/* ---- Facts ---- */

bool o3_fact_is_known(const o3_fact_t *fact) {
  if (!fact->elements) return false;
  for (int i = 0; i < fact->num_elements; ++i) {
    if (fact->elements[i].kind == O3_ELEMENT_UNKNOWN) return false;
  }
  return true;
}

static bool element_is_const(const o3_element_t *element) {
  return element->kind == O3_ELEMENT_FLOAT ||
         (element->kind == O3_ELEMENT_EXPR && mlirAffineExprIsAConstant(element->expr));
}

bool o3_fact_is_const(const o3_fact_t *fact) {
  if (!fact->elements) return false;
  for (int i = 0; i < fact->num_elements; ++i) {
    if (!element_is_const(&fact->elements[i])) return false;
  }
  return true;
}

bool o3_fact_ints(const o3_fact_t *fact, int64_t *values) {
  if (!o3_fact_is_const(fact)) return false;
  for (int i = 0; i < fact->num_elements; ++i) {
    const o3_element_t *element = &fact->elements[i];
    values[i] = element->kind == O3_ELEMENT_FLOAT ? (int64_t)element->number
                                                  : mlirAffineConstantExprGetValue(element->expr);
  }
  return true;
}
