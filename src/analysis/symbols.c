#include <stdlib.h>
#include <string.h>

#include "analysis/shape.h"
#include "base/map.h"

struct o3_symbols {
  MlirContext context;
  o3_arena_t *arena;
  o3_ptr_vec_t symbols;      /* o3_symbol_t */
  o3_ptr_vec_t guards;       /* o3_guard_t */
  o3_ptr_vec_t replacements; /* per symbol: the expression's pointer that it equals, or NULL */
};

o3_symbols_t *o3_symbols_create(MlirContext context, o3_arena_t *arena) {
  o3_symbols_t *self = O3_ARENA_NEW(arena, o3_symbols_t);
  if (!self) return NULL;
  *self = (o3_symbols_t){.context = context,
                         .arena = arena,
                         .symbols = o3_ptr_vec(arena),
                         .guards = o3_ptr_vec(arena),
                         .replacements = o3_ptr_vec(arena)};
  return self;
}

int o3_symbols_count(const o3_symbols_t *self) { return (int)self->symbols.count; }
const o3_symbol_t *o3_symbols_at(const o3_symbols_t *self, int index) { return self->symbols.items[index]; }
int o3_symbols_num_guards(const o3_symbols_t *self) { return (int)self->guards.count; }
const o3_guard_t *o3_symbols_guard_at(const o3_symbols_t *self, int index) {
  return self->guards.items[index];
}

static MlirAffineExpr add_symbol(o3_symbols_t *self, const o3_symbol_t *symbol) {
  o3_symbol_t *copy = O3_ARENA_NEW(self->arena, o3_symbol_t);
  if (!copy || !o3_ptr_vec_push(&self->symbols, copy) || !o3_ptr_vec_push(&self->replacements, NULL))
    return (MlirAffineExpr){0};
  *copy = *symbol;
  return mlirAffineSymbolExprGet(self->context, (intptr_t)self->symbols.count - 1);
}

MlirAffineExpr o3_symbols_input(o3_symbols_t *self, const char *name) {
  for (int i = 0; i < o3_symbols_count(self); ++i) {
    const o3_symbol_t *symbol = o3_symbols_at(self, i);
    if (symbol->kind == O3_SYMBOL_INPUT && strcmp(symbol->name, name) == 0)
      return mlirAffineSymbolExprGet(self->context, i);
  }
  const char *copy = o3_arena_strdup(self->arena, name);
  if (!copy) return (MlirAffineExpr){0};
  return add_symbol(self, &(o3_symbol_t){.name = copy, .kind = O3_SYMBOL_INPUT});
}

static const char *fresh_name(o3_symbols_t *self) {
  const char *name = o3_arena_printf(self->arena, "$%zu", self->symbols.count);
  return name ? name : "$";
}

MlirAffineExpr o3_symbols_data(o3_symbols_t *self, const char *who) {
  const char *origin = o3_arena_strdup(self->arena, who);
  if (!origin) return (MlirAffineExpr){0};
  return add_symbol(self, &(o3_symbol_t){.name = fresh_name(self), .kind = O3_SYMBOL_DATA, .origin = origin});
}

/* Models write the largest integer for "to the end": no size comes near it. */
static bool exceeds_sizes(MlirAffineExpr expr) {
  int64_t value;
  return o3_expr_is_const(expr, &value) && value >= INT64_MAX / 2;
}

static bool is_at_most(MlirAffineExpr a, MlirAffineExpr b) {
  return exceeds_sizes(b) || o3_expr_at_least(o3_expr_sub(b, a), 0);
}

static MlirAffineExpr extremum(o3_symbols_t *self, o3_symbol_kind_t kind, MlirAffineExpr a,
                               MlirAffineExpr b) {
  bool minimum = kind == O3_SYMBOL_MIN;
  if (is_at_most(a, b)) return minimum ? a : b;
  if (is_at_most(b, a)) return minimum ? b : a;
  for (int i = 0; i < o3_symbols_count(self); ++i) {
    const o3_symbol_t *symbol = o3_symbols_at(self, i);
    if (symbol->kind == kind && o3_expr_equal(symbol->a, a) && o3_expr_equal(symbol->b, b))
      return mlirAffineSymbolExprGet(self->context, i);
  }
  return add_symbol(self, &(o3_symbol_t){.name = fresh_name(self), .kind = kind, .a = a, .b = b});
}

MlirAffineExpr o3_symbols_min(o3_symbols_t *self, MlirAffineExpr a, MlirAffineExpr b) {
  return extremum(self, O3_SYMBOL_MIN, o3_symbols_resolve(self, a), o3_symbols_resolve(self, b));
}

MlirAffineExpr o3_symbols_max(o3_symbols_t *self, MlirAffineExpr a, MlirAffineExpr b) {
  return extremum(self, O3_SYMBOL_MAX, o3_symbols_resolve(self, a), o3_symbols_resolve(self, b));
}

/* ---- Constraints ---- */

static MlirAffineExpr rebuild(MlirAffineExpr expr, MlirAffineExpr left, MlirAffineExpr right) {
  if (mlirAffineExprIsAAdd(expr)) return o3_expr_add(left, right);
  if (mlirAffineExprIsAMul(expr)) return o3_expr_mul(left, right);
  if (mlirAffineExprIsAMod(expr)) return o3_expr_mod(left, right);
  if (mlirAffineExprIsACeilDiv(expr)) return o3_expr_ceil_div(left, right);
  return o3_expr_floor_div(left, right);
}

MlirAffineExpr o3_symbols_resolve(const o3_symbols_t *self, MlirAffineExpr expr) {
  if (mlirAffineExprIsASymbol(expr)) {
    void *replacement = self->replacements.items[mlirAffineSymbolExprGetPosition(expr)];
    return replacement ? o3_symbols_resolve(self, (MlirAffineExpr){.ptr = replacement}) : expr;
  }
  if (!mlirAffineExprIsABinary(expr)) return expr;
  MlirAffineExpr left = mlirAffineBinaryOpExprGetLHS(expr), right = mlirAffineBinaryOpExprGetRHS(expr);
  MlirAffineExpr new_left = o3_symbols_resolve(self, left), new_right = o3_symbols_resolve(self, right);
  if (o3_expr_equal(left, new_left) && o3_expr_equal(right, new_right)) return expr;
  return rebuild(expr, new_left, new_right);
}

static bool uses_symbol(MlirAffineExpr expr, intptr_t position) {
  if (mlirAffineExprIsASymbol(expr)) return mlirAffineSymbolExprGetPosition(expr) == position;
  if (!mlirAffineExprIsABinary(expr)) return false;
  return uses_symbol(mlirAffineBinaryOpExprGetLHS(expr), position) ||
         uses_symbol(mlirAffineBinaryOpExprGetRHS(expr), position);
}

/* Replaces the later symbol by the earlier one or by an expression that does not contain it. */
static void substitute(o3_symbols_t *self, MlirAffineExpr a, MlirAffineExpr b) {
  bool a_symbol = mlirAffineExprIsASymbol(a), b_symbol = mlirAffineExprIsASymbol(b);
  if (a_symbol && b_symbol && mlirAffineSymbolExprGetPosition(a) < mlirAffineSymbolExprGetPosition(b))
    a_symbol = false;
  if (a_symbol && !uses_symbol(b, mlirAffineSymbolExprGetPosition(a))) {
    self->replacements.items[mlirAffineSymbolExprGetPosition(a)] = (void *)(uintptr_t)b.ptr;
  } else if (b_symbol && !uses_symbol(a, mlirAffineSymbolExprGetPosition(b))) {
    self->replacements.items[mlirAffineSymbolExprGetPosition(b)] = (void *)(uintptr_t)a.ptr;
  }
}

static bool add_guard(o3_symbols_t *self, MlirAffineExpr lhs, MlirAffineExpr rhs, const char *text) {
  for (size_t i = 0; i < self->guards.count; ++i) {
    const o3_guard_t *guard = self->guards.items[i];
    if (o3_expr_equal(guard->lhs, lhs) && guard->rhs.ptr == rhs.ptr) return true;
  }
  o3_guard_t *guard = O3_ARENA_NEW(self->arena, o3_guard_t);
  if (!guard || !text) return false;
  *guard = (o3_guard_t){.lhs = lhs, .rhs = rhs, .text = text};
  return o3_ptr_vec_push(&self->guards, guard);
}

bool o3_symbols_require_equal(o3_symbols_t *self, MlirAffineExpr a, MlirAffineExpr b, const char *who) {
  a = o3_symbols_resolve(self, a);
  b = o3_symbols_resolve(self, b);
  if (o3_expr_equal(a, b)) return true;
  int64_t difference;
  if (o3_expr_is_const(o3_expr_sub(a, b), &difference)) return difference == 0;
  char *a_text = o3_expr_text(self, a), *b_text = o3_expr_text(self, b);
  const char *text = o3_arena_printf(self->arena, "%s: %s must equal %s", who, a_text, b_text);
  free(a_text);
  free(b_text);
  if (!add_guard(self, a, b, text)) return false;
  substitute(self, a, b);
  return true;
}

bool o3_symbols_require_nonnegative(o3_symbols_t *self, MlirAffineExpr expr, const char *who) {
  expr = o3_symbols_resolve(self, expr);
  if (o3_expr_at_least(expr, 0)) return true;
  if (o3_expr_is_const(expr, NULL)) return false;
  char *expr_text = o3_expr_text(self, expr);
  const char *text = o3_arena_printf(self->arena, "%s: %s must not be negative", who, expr_text);
  free(expr_text);
  return add_guard(self, expr, (MlirAffineExpr){0}, text);
}

struct o3_symbols_scope {
  size_t num_symbols, num_guards;
  void **replacements;
};

o3_symbols_scope_t *o3_symbols_enter(o3_symbols_t *self) {
  o3_symbols_scope_t *scope = O3_ARENA_NEW(self->arena, o3_symbols_scope_t);
  void **replacements = O3_ARENA_ARRAY(self->arena, void *, self->symbols.count + 1);
  if (!scope || !replacements) return NULL;
  for (size_t i = 0; i < self->symbols.count; ++i) replacements[i] = self->replacements.items[i];
  *scope = (o3_symbols_scope_t){self->symbols.count, self->guards.count, replacements};
  return scope;
}

void o3_symbols_leave(o3_symbols_t *self, const o3_symbols_scope_t *scope) {
  for (size_t i = 0; i < scope->num_symbols; ++i) self->replacements.items[i] = scope->replacements[i];
  self->guards.count = scope->num_guards;
}

bool o3_symbols_needs_data(const o3_symbols_t *self, MlirAffineExpr expr) {
  if (mlirAffineExprIsASymbol(expr)) {
    const o3_symbol_t *symbol = o3_symbols_at(self, (int)mlirAffineSymbolExprGetPosition(expr));
    if (symbol->kind == O3_SYMBOL_INPUT) return false;
    return symbol->kind == O3_SYMBOL_DATA || o3_symbols_needs_data(self, symbol->a) ||
           o3_symbols_needs_data(self, symbol->b);
  }
  if (!mlirAffineExprIsABinary(expr)) return false;
  return o3_symbols_needs_data(self, mlirAffineBinaryOpExprGetLHS(expr)) ||
         o3_symbols_needs_data(self, mlirAffineBinaryOpExprGetRHS(expr));
}

/* ---- As attributes ---- */

static const char *const KINDS[] = {
    [O3_SYMBOL_INPUT] = "input", [O3_SYMBOL_DATA] = "data", [O3_SYMBOL_MIN] = "min", [O3_SYMBOL_MAX] = "max"};

static MlirNamedAttribute named(MlirContext context, const char *name, MlirAttribute value) {
  return mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR(name)), value);
}

static MlirAttribute pair_attr(const o3_symbols_t *self, MlirAffineExpr a, MlirAffineExpr b) {
  o3_shape_t pair = {.rank = b.ptr ? 2 : 1, .dims = {a, b}};
  return o3_shape_attr(self->context, &pair, o3_symbols_count(self));
}

static MlirAttribute symbol_attr(const o3_symbols_t *self, const o3_symbol_t *symbol) {
  MlirNamedAttribute items[3] = {
      named(self->context, "name", o3_attr_string(self->context, symbol->name)),
      named(self->context, "kind", o3_attr_string(self->context, KINDS[symbol->kind]))};
  bool extremal = symbol->kind == O3_SYMBOL_MIN || symbol->kind == O3_SYMBOL_MAX;
  if (extremal) items[2] = named(self->context, "of", pair_attr(self, symbol->a, symbol->b));
  return mlirDictionaryAttrGet(self->context, extremal ? 3 : 2, items);
}

static MlirAttribute guard_attr(const o3_symbols_t *self, const o3_guard_t *guard) {
  MlirNamedAttribute items[2] = {named(self->context, "of", pair_attr(self, guard->lhs, guard->rhs)),
                                 named(self->context, "text", o3_attr_string(self->context, guard->text))};
  return mlirDictionaryAttrGet(self->context, 2, items);
}

o3_status_t o3_symbols_to_func(const o3_symbols_t *self, MlirOperation func) {
  size_t most = self->symbols.count > self->guards.count ? self->symbols.count : self->guards.count;
  MlirAttribute *items = calloc(most + 1, sizeof(MlirAttribute));
  O3_TRY_ALLOC(items);
  for (size_t i = 0; i < self->symbols.count; ++i) items[i] = symbol_attr(self, self->symbols.items[i]);
  o3_op_attr_set(func, "o3.symbols", mlirArrayAttrGet(self->context, (intptr_t)self->symbols.count, items));
  int count = 0;
  for (size_t i = 0; i < self->guards.count; ++i) {
    const o3_guard_t *guard = self->guards.items[i];
    bool needs_data = o3_symbols_needs_data(self, guard->lhs) ||
                      (guard->rhs.ptr && o3_symbols_needs_data(self, guard->rhs));
    if (!needs_data) items[count++] = guard_attr(self, guard);
  }
  o3_op_attr_set(func, "o3.guards", mlirArrayAttrGet(self->context, count, items));
  free(items);
  return NULL;
}

static o3_status_t read_symbol(o3_symbols_t *self, MlirAttribute attr) {
  MlirAttribute name = mlirDictionaryAttrGetElementByName(attr, O3_STR("name"));
  MlirAttribute kind = mlirDictionaryAttrGetElementByName(attr, O3_STR("kind"));
  MlirAttribute of = mlirDictionaryAttrGetElementByName(attr, O3_STR("of"));
  o3_symbol_t symbol = {0};
  if (mlirAttributeIsNull(name) || mlirAttributeIsNull(kind))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "o3.symbols: an entry lacks its name or kind");
  MlirStringRef text = mlirStringAttrGetValue(name);
  symbol.name = o3_arena_strndup(self->arena, text.data, text.length);
  O3_TRY_ALLOC(symbol.name);
  for (int i = 0; i < 4; ++i) {
    if (o3_str_equal(mlirStringAttrGetValue(kind), KINDS[i])) symbol.kind = (o3_symbol_kind_t)i;
  }
  if (!mlirAttributeIsNull(of)) {
    o3_shape_t pair;
    o3_shape_from_attr(of, &pair);
    symbol.a = pair.dims[0];
    symbol.b = pair.dims[1];
  }
  if (!add_symbol(self, &symbol).ptr) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  return NULL;
}

static o3_status_t read_guard(o3_symbols_t *self, MlirAttribute attr) {
  MlirAttribute of = mlirDictionaryAttrGetElementByName(attr, O3_STR("of"));
  MlirAttribute text = mlirDictionaryAttrGetElementByName(attr, O3_STR("text"));
  if (mlirAttributeIsNull(of) || mlirAttributeIsNull(text))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "o3.guards: an entry lacks its map or text");
  o3_shape_t pair;
  o3_shape_from_attr(of, &pair);
  MlirStringRef ref = mlirStringAttrGetValue(text);
  const char *copy = o3_arena_strndup(self->arena, ref.data, ref.length);
  MlirAffineExpr rhs = pair.rank == 2 ? pair.dims[1] : (MlirAffineExpr){0};
  if (!add_guard(self, pair.dims[0], rhs, copy))
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  return NULL;
}

typedef o3_status_t (*read_fn_t)(o3_symbols_t *self, MlirAttribute attr);

static o3_status_t read_array(o3_symbols_t *self, MlirAttribute array, read_fn_t read) {
  if (mlirAttributeIsNull(array) || !mlirAttributeIsAArray(array)) return NULL;
  for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(array); ++i) {
    MlirAttribute item = mlirArrayAttrGetElement(array, i);
    if (!mlirAttributeIsADictionary(item))
      return o3_status_create(O3_STATUS_INVALID_MODEL, "o3.symbols and o3.guards hold dictionaries");
    O3_TRY(read(self, item));
  }
  return NULL;
}

o3_status_t o3_symbols_from_func(MlirOperation func, o3_arena_t *arena, o3_symbols_t **symbols) {
  *symbols = o3_symbols_create(mlirOperationGetContext(func), arena);
  O3_TRY_ALLOC(*symbols);
  O3_TRY(read_array(*symbols, o3_op_attr(func, "o3.symbols"), read_symbol));
  return read_array(*symbols, o3_op_attr(func, "o3.guards"), read_guard);
}
