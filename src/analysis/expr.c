/* Sizes are products of symbols and numbers far more often than anything else, so products are kept as sorted
 * lists of factors where MLIR's own simplification would give up on symbol times symbol. */
#include <stdlib.h>

#include "analysis/shape.h"

enum { MAX_FACTORS = 32 };

/* constant * factors[0] * factors[1] ... */
typedef struct product {
  int64_t constant;
  int count;
  MlirAffineExpr factors[MAX_FACTORS];
  bool too_long;
} product_t;

MlirAffineExpr o3_expr_const(MlirContext context, int64_t value) {
  return mlirAffineConstantExprGet(context, value);
}

bool o3_expr_is_const(MlirAffineExpr expr, int64_t *value) {
  if (!mlirAffineExprIsAConstant(expr)) return false;
  if (value) *value = mlirAffineConstantExprGetValue(expr);
  return true;
}

bool o3_expr_equals_const(MlirAffineExpr expr, int64_t value) {
  int64_t found;
  return o3_expr_is_const(expr, &found) && found == value;
}

static void collect_factors(MlirAffineExpr expr, product_t *product) {
  int64_t constant;
  if (o3_expr_is_const(expr, &constant)) {
    product->too_long |= __builtin_mul_overflow(product->constant, constant, &product->constant);
  } else if (mlirAffineExprIsAMul(expr)) {
    collect_factors(mlirAffineBinaryOpExprGetLHS(expr), product);
    collect_factors(mlirAffineBinaryOpExprGetRHS(expr), product);
  } else if (product->count < MAX_FACTORS) {
    product->factors[product->count++] = expr;
  } else {
    product->too_long = true;
  }
}

static product_t factorize(MlirAffineExpr expr) {
  product_t product = {.constant = 1};
  collect_factors(expr, &product);
  return product;
}

/* A stable order, so that s0 * s1 and s1 * s0 become one expression: symbols by number, then the rest by
 * address (the same within one context). */
static int compare_factors(const void *left, const void *right) {
  const MlirAffineExpr *a = left, *b = right;
  bool a_symbol = mlirAffineExprIsASymbol(*a), b_symbol = mlirAffineExprIsASymbol(*b);
  if (a_symbol != b_symbol) return a_symbol ? -1 : 1;
  if (a_symbol) {
    intptr_t x = mlirAffineSymbolExprGetPosition(*a), y = mlirAffineSymbolExprGetPosition(*b);
    return (x > y) - (x < y);
  }
  return (a->ptr > b->ptr) - (a->ptr < b->ptr);
}

static MlirAffineExpr multiply_out(MlirContext context, product_t *product) {
  qsort(product->factors, (size_t)product->count, sizeof(product->factors[0]), compare_factors);
  if (product->count == 0 || product->constant == 0) return o3_expr_const(context, product->constant);
  MlirAffineExpr result = product->factors[0];
  for (int i = 1; i < product->count; ++i) result = mlirAffineMulExprGet(result, product->factors[i]);
  return product->constant == 1 ? result
                                : mlirAffineMulExprGet(result, o3_expr_const(context, product->constant));
}

MlirAffineExpr o3_expr_mul(MlirAffineExpr a, MlirAffineExpr b) {
  product_t product = factorize(a);
  collect_factors(b, &product);
  return product.too_long ? mlirAffineMulExprGet(a, b) : multiply_out(mlirAffineExprGetContext(a), &product);
}

/* ---- Sums ---- */

typedef struct sum {
  int64_t constant;
  int count;
  MlirAffineExpr terms[MAX_FACTORS]; /* without their constant factor */
  int64_t factors[MAX_FACTORS];
  bool too_long;
} sum_t;

static void add_term(sum_t *sum, MlirAffineExpr term, int64_t factor) {
  for (int i = 0; i < sum->count; ++i) {
    if (o3_expr_equal(sum->terms[i], term)) {
      sum->too_long |= __builtin_add_overflow(sum->factors[i], factor, &sum->factors[i]);
      return;
    }
  }
  if (sum->count == MAX_FACTORS) {
    sum->too_long = true;
    return;
  }
  sum->terms[sum->count] = term;
  sum->factors[sum->count++] = factor;
}

static void collect_terms(MlirAffineExpr expr, int64_t sign, sum_t *sum) {
  int64_t constant;
  if (mlirAffineExprIsAAdd(expr)) {
    collect_terms(mlirAffineBinaryOpExprGetLHS(expr), sign, sum);
    collect_terms(mlirAffineBinaryOpExprGetRHS(expr), sign, sum);
  } else if (o3_expr_is_const(expr, &constant)) {
    sum->too_long |= __builtin_mul_overflow(constant, sign, &constant) ||
                     __builtin_add_overflow(sum->constant, constant, &sum->constant);
  } else {
    product_t product = factorize(expr);
    int64_t factor = 0;
    sum->too_long |= product.too_long || __builtin_mul_overflow(product.constant, sign, &factor);
    bool is_sum = product.count == 1 && mlirAffineExprIsAAdd(product.factors[0]);
    product.constant = 1;
    if (sum->too_long) return;
    if (is_sum) { /* (s0 - 1) * 2 + 2 is s0 * 2 */
      collect_terms(product.factors[0], factor, sum);
      return;
    }
    add_term(sum, multiply_out(mlirAffineExprGetContext(expr), &product), factor);
  }
}

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

/* What all terms are multiples of stands before the sum, so that s0 * 16 + 16 and (s0 * 8 + 8) * 2 are one
 * expression, and products cancel it. */
static MlirAffineExpr add_up(MlirContext context, const sum_t *sum) {
  MlirAffineExpr total = {0};
  int64_t common = sum->constant;
  for (int i = 0; i < sum->count; ++i) common = greatest_common_divisor(common, sum->factors[i]);
  for (int i = 0; i < sum->count; ++i) {
    if (sum->factors[i] == 0) continue;
    MlirAffineExpr term = o3_expr_mul(sum->terms[i], o3_expr_const(context, sum->factors[i] / common));
    total = total.ptr ? mlirAffineAddExprGet(total, term) : term;
  }
  if (!total.ptr) return o3_expr_const(context, sum->constant);
  if (sum->constant) total = mlirAffineAddExprGet(total, o3_expr_const(context, sum->constant / common));
  return o3_expr_mul(total, o3_expr_const(context, common));
}

static MlirAffineExpr sum_of(MlirAffineExpr a, MlirAffineExpr b, int64_t sign) {
  MlirContext context = mlirAffineExprGetContext(a);
  sum_t sum = {0};
  collect_terms(a, 1, &sum);
  collect_terms(b, sign, &sum);
  if (!sum.too_long) return add_up(context, &sum);
  return mlirAffineAddExprGet(a, sign < 0 ? mlirAffineMulExprGet(b, o3_expr_const(context, -1)) : b);
}

MlirAffineExpr o3_expr_add(MlirAffineExpr a, MlirAffineExpr b) { return sum_of(a, b, 1); }
MlirAffineExpr o3_expr_sub(MlirAffineExpr a, MlirAffineExpr b) { return sum_of(a, b, -1); }

/* ---- Quotients ---- */

/* Removes from both what stands in both. */
static void cancel(product_t *a, product_t *b) {
  for (int i = 0; i < b->count;) {
    int j = 0;
    while (j < a->count && !o3_expr_equal(a->factors[j], b->factors[i])) ++j;
    if (j == a->count) {
      ++i;
      continue;
    }
    a->factors[j] = a->factors[--a->count];
    b->factors[i] = b->factors[--b->count];
  }
  int64_t common = greatest_common_divisor(a->constant, b->constant);
  if (common > 1) {
    a->constant /= common;
    b->constant /= common;
  }
}

typedef MlirAffineExpr (*divide_fn_t)(MlirAffineExpr, MlirAffineExpr);

/* (x * c + d) / c is exact in each term when c divides all of them: MLIR knows this for constants; products
 * of symbols are cancelled here. Cancelling is right since sizes in a divisor are positive wherever the
 * quotient is used. */
static MlirAffineExpr divide(MlirAffineExpr a, MlirAffineExpr b, divide_fn_t divide_fn) {
  MlirContext context = mlirAffineExprGetContext(a);
  product_t numerator = factorize(a), divisor = factorize(b);
  if (numerator.too_long || divisor.too_long || divisor.constant == 0) return divide_fn(a, b);
  if (numerator.constant == 0) return o3_expr_const(context, 0);
  cancel(&numerator, &divisor);
  MlirAffineExpr top = multiply_out(context, &numerator), bottom = multiply_out(context, &divisor);
  return o3_expr_equals_const(bottom, 1) ? top : divide_fn(top, bottom);
}

MlirAffineExpr o3_expr_floor_div(MlirAffineExpr a, MlirAffineExpr b) {
  return divide(a, b, mlirAffineFloorDivExprGet);
}

MlirAffineExpr o3_expr_ceil_div(MlirAffineExpr a, MlirAffineExpr b) {
  return divide(a, b, mlirAffineCeilDivExprGet);
}

MlirAffineExpr o3_expr_mod(MlirAffineExpr a, MlirAffineExpr b) { return mlirAffineModExprGet(a, b); }

/* An upper bound of |factor| * |term| without its division: k * (x / c) is at most x for k <= c, and x * (k /
 * c) when c divides k. Null when |term| is no such quotient, or that of something that may be negative. */
static MlirAffineExpr bound_of_quotient(MlirAffineExpr term, int64_t factor) {
  bool floor = mlirAffineExprIsAFloorDiv(term), ceil = mlirAffineExprIsACeilDiv(term);
  int64_t divisor;
  if (!floor && !ceil) return (MlirAffineExpr){0};
  MlirContext context = mlirAffineExprGetContext(term);
  MlirAffineExpr top = mlirAffineBinaryOpExprGetLHS(term);
  if (!o3_expr_is_const(mlirAffineBinaryOpExprGetRHS(term), &divisor) || divisor <= 0)
    return (MlirAffineExpr){0};
  if (!o3_expr_at_least(top, 0)) return (MlirAffineExpr){0};
  if (factor == 1 || (floor && factor <= divisor)) return top;
  if (factor % divisor) return (MlirAffineExpr){0};
  if (ceil) top = o3_expr_add(top, o3_expr_const(context, divisor - 1));
  return o3_expr_mul(top, o3_expr_const(context, factor / divisor));
}

/* |expr| or something smaller, with fewer quotients taken away from it. */
static MlirAffineExpr bound_from_below(MlirAffineExpr expr) {
  MlirContext context = mlirAffineExprGetContext(expr);
  sum_t sum = {0};
  collect_terms(expr, 1, &sum);
  MlirAffineExpr result = expr;
  for (int i = 0; i < sum.count && !sum.too_long; ++i) {
    if (sum.factors[i] >= 0) continue;
    MlirAffineExpr bound = bound_of_quotient(sum.terms[i], -sum.factors[i]);
    if (!bound.ptr) continue;
    MlirAffineExpr term = o3_expr_mul(sum.terms[i], o3_expr_const(context, -sum.factors[i]));
    result = o3_expr_sub(o3_expr_add(result, term), bound);
  }
  return result;
}

static bool sum_at_least(MlirAffineExpr expr, int64_t bound) {
  MlirAffineExpr left = mlirAffineBinaryOpExprGetLHS(expr), right = mlirAffineBinaryOpExprGetRHS(expr);
  int64_t constant, rest;
  bool plain = o3_expr_is_const(right, &constant)
                   ? !__builtin_sub_overflow(bound, constant, &rest) && o3_expr_at_least(left, rest)
                   : o3_expr_at_least(left, 0) && o3_expr_at_least(right, bound);
  if (plain) return true;
  MlirAffineExpr below = bound_from_below(expr);
  return !o3_expr_equal(below, expr) && o3_expr_at_least(below, bound);
}

bool o3_expr_at_least(MlirAffineExpr expr, int64_t bound) {
  int64_t constant;
  if (o3_expr_is_const(expr, &constant)) return constant >= bound;
  if (mlirAffineExprIsASymbol(expr) || mlirAffineExprIsAMod(expr)) return bound <= 0;
  if (!mlirAffineExprIsABinary(expr)) return false;
  MlirAffineExpr left = mlirAffineBinaryOpExprGetLHS(expr), right = mlirAffineBinaryOpExprGetRHS(expr);
  if (mlirAffineExprIsAAdd(expr)) return sum_at_least(expr, bound);
  bool both = o3_expr_at_least(left, 0) && o3_expr_at_least(right, 0);
  return both && (bound <= 0 || (mlirAffineExprIsAMul(expr) && o3_expr_at_least(left, bound) &&
                                 o3_expr_at_least(right, 1)));
}
