/* Shapes with symbolic sizes, and what is known of the contents of small tensors.
 *
 * A size is an MLIR affine expression over symbols s0, s1, ...: the named sizes of the model's inputs ("N"),
 * sizes that exist only at run time, and minima or maxima of other expressions. Affine expressions are unique
 * in their context, so equal sizes are equal pointers after o3_expr_* has simplified them.
 */
#ifndef O3_ANALYSIS_SHAPE_H
#define O3_ANALYSIS_SHAPE_H

#include "base/arena.h"
#include "ir/ir.h"

/* ---- Expressions ---- */

MlirAffineExpr o3_expr_const(MlirContext context, int64_t value);
MlirAffineExpr o3_expr_add(MlirAffineExpr a, MlirAffineExpr b);
MlirAffineExpr o3_expr_sub(MlirAffineExpr a, MlirAffineExpr b);
MlirAffineExpr o3_expr_mul(MlirAffineExpr a, MlirAffineExpr b);
/* Rounded towards minus infinity (floor) or plus infinity (ceil). Common factors are cancelled, so
 * (s0 * s1 * 768) / (s0 * 64) is s1 * 12. The divisor must not be the constant 0. */
MlirAffineExpr o3_expr_floor_div(MlirAffineExpr a, MlirAffineExpr b);
MlirAffineExpr o3_expr_ceil_div(MlirAffineExpr a, MlirAffineExpr b);
MlirAffineExpr o3_expr_mod(MlirAffineExpr a, MlirAffineExpr b);
bool o3_expr_is_const(MlirAffineExpr expr, int64_t *value); /* value may be NULL */
bool o3_expr_equals_const(MlirAffineExpr expr, int64_t value);
static inline bool o3_expr_equal(MlirAffineExpr a, MlirAffineExpr b) { return mlirAffineExprEqual(a, b); }

/* ---- Shapes ---- */

typedef struct o3_shape {
  int rank;
  MlirAffineExpr dims[O3_IR_MAX_RANK];
} o3_shape_t;

bool o3_shape_is_static(const o3_shape_t *shape);
/* Product of the dims first..last-1. */
MlirAffineExpr o3_shape_product(MlirContext context, const o3_shape_t *shape, int first, int last);
/* A tensor type with `?` where a size is not constant. */
MlirType o3_shape_type(const o3_shape_t *shape, MlirType element);
/* From and to the attribute o3.shape: affine_map<()[s0, ...] -> (sizes)>. */
MlirAttribute o3_shape_attr(MlirContext context, const o3_shape_t *shape, int num_symbols);
void o3_shape_from_attr(MlirAttribute attr, o3_shape_t *shape);
void o3_shape_from_type(MlirType type, o3_shape_t *shape); /* static types only */
/* "Nx64x(N + 1)" with the names of symbols; malloc'ed. */
struct o3_symbols;
char *o3_shape_text(const struct o3_symbols *symbols, const o3_shape_t *shape);
char *o3_expr_text(const struct o3_symbols *symbols, MlirAffineExpr expr);

/* ---- Symbols and the constraints between them ---- */

typedef enum o3_symbol_kind {
  O3_SYMBOL_INPUT, /* a size of an input, named by the model */
  O3_SYMBOL_DATA, /* known when an op has run: the first result whose shape has this bare symbol defines it */
  O3_SYMBOL_MIN,  /* the minimum of expressions of earlier symbols */
  O3_SYMBOL_MAX
} o3_symbol_kind_t;

typedef struct o3_symbol {
  const char *name;
  o3_symbol_kind_t kind;
  MlirAffineExpr a, b; /* MIN and MAX */
  const char *origin;  /* DATA: who gives it, "node 'NonZero_1' (NonZero)" */
} o3_symbol_t;

/* Something that must hold at run time: lhs == rhs, or lhs >= 0 when rhs is null. */
typedef struct o3_guard {
  MlirAffineExpr lhs, rhs;
  const char *text; /* who needs it and why */
} o3_guard_t;

typedef struct o3_symbols o3_symbols_t;

o3_symbols_t *o3_symbols_create(MlirContext context, o3_arena_t *arena);
int o3_symbols_count(const o3_symbols_t *symbols);
const o3_symbol_t *o3_symbols_at(const o3_symbols_t *symbols, int index);
int o3_symbols_num_guards(const o3_symbols_t *symbols);
const o3_guard_t *o3_symbols_guard_at(const o3_symbols_t *symbols, int index);

/* The symbol of an input's size called |name|: one for each name. NULL expression when memory is out. */
MlirAffineExpr o3_symbols_input(o3_symbols_t *symbols, const char *name);
/* A size that only the run knows. Messages call it "[a size of |who|]". */
MlirAffineExpr o3_symbols_data(o3_symbols_t *symbols, const char *who);
/* The smaller or larger of two, folded where that is certain. */
MlirAffineExpr o3_symbols_min(o3_symbols_t *symbols, MlirAffineExpr a, MlirAffineExpr b);
MlirAffineExpr o3_symbols_max(o3_symbols_t *symbols, MlirAffineExpr a, MlirAffineExpr b);

/* Whether |expr| is certainly >= |bound| for all symbols >= 0 (they are sizes). */
bool o3_expr_at_least(MlirAffineExpr expr, int64_t bound);

/* Requires a == b: true when proven or noted as a guard (a symbol is then replaced by the other side in what
 * follows), false when it can never hold. |who| goes into the guard's text, "node 'Add_3'". */
bool o3_symbols_require_equal(o3_symbols_t *symbols, MlirAffineExpr a, MlirAffineExpr b, const char *who);
/* Requires expr >= 0, likewise. */
bool o3_symbols_require_nonnegative(o3_symbols_t *symbols, MlirAffineExpr expr, const char *who);
/* |expr| with the equalities found so far put in. */
MlirAffineExpr o3_symbols_resolve(const o3_symbols_t *symbols, MlirAffineExpr expr);

/* What is required inside of a branch or loop body holds only there: leaving forgets the guards and
 * equalities that were added since entering. Symbols stay. NULL when memory is out. */
typedef struct o3_symbols_scope o3_symbols_scope_t;
o3_symbols_scope_t *o3_symbols_enter(o3_symbols_t *symbols);
void o3_symbols_leave(o3_symbols_t *symbols, const o3_symbols_scope_t *scope);

/* Function attributes o3.symbols and o3.guards, written and read. Guards with data symbols are left out: the
 * normalizer writes those as ops. */
o3_status_t o3_symbols_to_func(const o3_symbols_t *symbols, MlirOperation func) O3_MUST_USE;
o3_status_t o3_symbols_from_func(MlirOperation func, o3_arena_t *arena, o3_symbols_t **symbols) O3_MUST_USE;
/* Whether |expr| uses a DATA symbol, directly or through minima and maxima. */
bool o3_symbols_needs_data(const o3_symbols_t *symbols, MlirAffineExpr expr);

/* ---- Facts about values ---- */

typedef enum o3_element_kind { O3_ELEMENT_UNKNOWN, O3_ELEMENT_EXPR, O3_ELEMENT_FLOAT } o3_element_kind_t;

/* One element of a small tensor: an integer or boolean as an expression, or a floating-point number. */
typedef struct o3_element {
  o3_element_kind_t kind;
  MlirAffineExpr expr;
  double number;
} o3_element_t;

/* Contents are tracked for tensors of at most this many elements and rank. */
#define O3_FACT_MAX_ELEMENTS 256

/* What is known of a tensor before it runs. */
typedef struct o3_fact {
  MlirType element;
  o3_shape_t shape;
  const o3_element_t *elements; /* row-major, num_elements of them; NULL when nothing is known */
  int num_elements;
} o3_fact_t;

static inline MlirType o3_fact_type(const o3_fact_t *fact) {
  return o3_shape_type(&fact->shape, fact->element);
}
/* Constant elements as numbers; false when one is unknown or symbolic. |values| holds num_elements. */
bool o3_fact_ints(const o3_fact_t *fact, int64_t *values);
/* All elements known, as expressions or numbers. */
bool o3_fact_is_known(const o3_fact_t *fact);
bool o3_fact_is_const(const o3_fact_t *fact);

#endif
