/* Reductions and running sums. The contents of small integer tensors are followed: shapes are computed with
 * sums and products. */
#include "analysis/infer.h"

static MlirAffineExpr expr_max(o3_symbols_t *symbols, MlirAffineExpr a, MlirAffineExpr b) {
  return o3_symbols_max(symbols, a, b);
}
static MlirAffineExpr expr_min(o3_symbols_t *symbols, MlirAffineExpr a, MlirAffineExpr b) {
  return o3_symbols_min(symbols, a, b);
}
static MlirAffineExpr expr_sum(o3_symbols_t *symbols, MlirAffineExpr a, MlirAffineExpr b) {
  (void)symbols;
  return o3_expr_add(a, b);
}
static MlirAffineExpr expr_prod(o3_symbols_t *symbols, MlirAffineExpr a, MlirAffineExpr b) {
  (void)symbols;
  return o3_expr_mul(a, b);
}

/* Kinds that can be followed; empty sums and products start at |identity|. */
static const struct {
  const char *kind;
  MlirAffineExpr (*combine)(o3_symbols_t *symbols, MlirAffineExpr a, MlirAffineExpr b);
  bool has_identity;
  int64_t identity;
} FOLLOWED[] = {
    {"sum", expr_sum, true, 0},
    {"prod", expr_prod, true, 1},
    {"max", expr_max, false, 0},
    {"min", expr_min, false, 0},
};

static int find_followed(const o3_infer_t *in) {
  for (int i = 0; i < (int)(sizeof(FOLLOWED) / sizeof(FOLLOWED[0])); ++i) {
    if (o3_infer_string_is(in, "kind", FOLLOWED[i].kind)) return i;
  }
  return -1;
}

/* Narrow integers wrap around, so only 64-bit ones are followed. */
static bool can_follow(const o3_fact_t *x) {
  return x->elements && o3_type_is_integer(x->element) && o3_type_bits(x->element) == 64;
}

/* acc, an expression or unknown, with x. */
static void accumulate(o3_infer_t *in, int kind, bool first, const o3_element_t *x, o3_element_t *acc) {
  if (first && !FOLLOWED[kind].has_identity) {
    *acc = *x;
  } else if (acc->kind == O3_ELEMENT_EXPR && x->kind == O3_ELEMENT_EXPR) {
    acc->expr = FOLLOWED[kind].combine(in->symbols, acc->expr, x->expr);
  } else {
    *acc = (o3_element_t){0};
  }
}

/* Position |index| of a row-major tensor of |shape|, in the result where |reduced| dimensions have size 1. */
static int64_t target_of(const o3_shape_t *shape, const bool *reduced, int64_t index) {
  int64_t target = 0, stride = 1;
  for (int i = shape->rank - 1; i >= 0; --i) {
    int64_t size = mlirAffineConstantExprGetValue(shape->dims[i]);
    if (!reduced[i]) {
      target += index % size * stride;
      stride *= size;
    }
    index /= size;
  }
  return target;
}

static void follow_reduce(o3_infer_t *in, const bool *reduced) {
  const o3_fact_t *x = in->operands[0];
  o3_fact_t *y = &in->results[0];
  int kind = find_followed(in);
  int64_t count = o3_infer_small_count(&y->shape);
  bool seen[O3_FACT_MAX_ELEMENTS] = {false};
  o3_element_t *elements = kind < 0 || !can_follow(x) ? NULL : o3_infer_elements(in->arena, count);
  if (!elements) return;
  for (int64_t i = 0; i < count && FOLLOWED[kind].has_identity; ++i)
    elements[i] =
        (o3_element_t){.kind = O3_ELEMENT_EXPR, .expr = o3_expr_const(in->context, FOLLOWED[kind].identity)};
  for (int i = 0; i < x->num_elements; ++i) {
    int64_t target = target_of(&x->shape, reduced, i);
    accumulate(in, kind, !seen[target], &x->elements[i], &elements[target]);
    seen[target] = true;
  }
  y->elements = elements;
  y->num_elements = (int)count;
}

static void reduce_shape(o3_infer_t *in, const bool *reduced) {
  const o3_shape_t *x = &in->operands[0]->shape;
  o3_shape_t *y = &in->results[0].shape;
  bool keep = o3_infer_bool(in, "keepdims", false);
  for (int i = 0; i < x->rank; ++i) {
    if (!reduced[i]) {
      y->dims[y->rank++] = x->dims[i];
    } else if (keep) {
      y->dims[y->rank++] = o3_expr_const(in->context, 1);
    }
  }
}

static o3_status_t check_axis(o3_infer_t *in, int64_t axis) {
  int rank = in->operands[0]->shape.rank;
  if (axis >= 0 && axis < rank) return NULL;
  return o3_infer_error(in, "axis %lld is out of range for rank %d", (long long)axis, rank);
}

o3_status_t o3_infer_reduce(o3_infer_t *in) {
  int64_t axes[O3_IR_MAX_RANK];
  bool reduced[O3_IR_MAX_RANK] = {false};
  int count = o3_infer_ints(in, "axes", axes, O3_IR_MAX_RANK);
  for (int i = 0; i < count; ++i) {
    O3_TRY(check_axis(in, axes[i]));
    if (reduced[axes[i]]) return o3_infer_error(in, "axis %lld is reduced twice", (long long)axes[i]);
    reduced[axes[i]] = true;
  }
  in->num_results = 1;
  in->results[0].element = in->operands[0]->element;
  reduce_shape(in, reduced);
  follow_reduce(in, reduced);
  return NULL;
}

o3_status_t o3_infer_arg_reduce(o3_infer_t *in) {
  int64_t axis = o3_infer_int(in, "axis", 0);
  bool reduced[O3_IR_MAX_RANK] = {false};
  O3_TRY(check_axis(in, axis));
  reduced[axis] = true;
  in->num_results = 1;
  in->results[0].element = mlirIntegerTypeGet(in->context, 64);
  reduce_shape(in, reduced);
  return NULL;
}

/* Vectors only: that is how offsets are computed from sizes. */
static void follow_cumulate(o3_infer_t *in) {
  const o3_fact_t *x = in->operands[0];
  int kind = find_followed(in);
  bool backwards = o3_infer_bool(in, "reverse", false), exclusive = o3_infer_bool(in, "exclusive", false);
  if (x->shape.rank != 1 || kind < 0 || !FOLLOWED[kind].has_identity || !can_follow(x)) return;
  o3_element_t *elements = o3_infer_elements(in->arena, x->num_elements);
  o3_element_t acc = {.kind = O3_ELEMENT_EXPR, .expr = o3_expr_const(in->context, FOLLOWED[kind].identity)};
  if (!elements) return;
  for (int i = 0; i < x->num_elements; ++i) {
    int at = backwards ? x->num_elements - 1 - i : i;
    if (exclusive) elements[at] = acc;
    accumulate(in, kind, false, &x->elements[at], &acc);
    if (!exclusive) elements[at] = acc;
  }
  in->results[0].elements = elements;
  in->results[0].num_elements = x->num_elements;
}

o3_status_t o3_infer_cumulate(o3_infer_t *in) {
  O3_TRY(check_axis(in, o3_infer_int(in, "axis", 0)));
  in->num_results = 1;
  in->results[0] = (o3_fact_t){.element = in->operands[0]->element, .shape = in->operands[0]->shape};
  follow_cumulate(in);
  return NULL;
}
