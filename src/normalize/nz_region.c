/* How loops get their types: the body is converted under the assumption that nothing changes its size and
 * that the loop never ends early. Where the result contradicts that, the body is dropped and converted again
 * with less assumed; each round gives something up, so a few are enough.
 *
 * scf.for is for loops of a known number of iterations in which no size changes: upstream's canonicalization
 * relies on the latter when it moves casts of the initial values into the loop. All others are scf.while. */
#include "normalize/nz_region.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* ---- Blocks under construction ---- */

typedef struct region {
  MlirBlock block;
  o3_builder_t outer;
  o3_symbols_scope_t *scope;
  int first_symbol; /* data symbols from here on are defined inside */
} region_t;

static o3_status_t open_region(o3_nz_t *nz, region_t *region) {
  o3_nz_check_guards(nz);
  *region = (region_t){.outer = nz->builder,
                       .scope = o3_symbols_enter(nz->symbols),
                       .first_symbol = o3_symbols_count(nz->symbols)};
  O3_TRY_ALLOC(region->scope);
  region->block = mlirBlockCreate(0, NULL, NULL);
  nz->builder = o3_builder_at_end(region->block, nz->builder.location);
  ++nz->num_conditionals;
  return NULL;
}

/* The block belongs to the caller now. */
static void close_region(o3_nz_t *nz, const region_t *region) {
  o3_symbols_leave(nz->symbols, region->scope);
  nz->num_checked = o3_symbols_num_guards(nz->symbols);
  nz->builder = region->outer;
  --nz->num_conditionals;
}

static void drop_region(o3_nz_t *nz, region_t *region) {
  close_region(nz, region);
  mlirBlockDestroy(region->block);
}

static o3_status_t take_failure(o3_nz_t *nz) {
  o3_status_t failure = nz->failure;
  nz->failure = NULL;
  return failure;
}

/* Whether |expr| means something outside of the block whose own symbols start at |first|. */
static bool known_outside(const o3_nz_t *nz, MlirAffineExpr expr, int first) {
  if (mlirAffineExprIsASymbol(expr)) {
    int position = (int)mlirAffineSymbolExprGetPosition(expr);
    const o3_symbol_t *symbol = o3_symbols_at(nz->symbols, position);
    if (position < first || symbol->kind == O3_SYMBOL_INPUT) return true;
    return symbol->kind != O3_SYMBOL_DATA && known_outside(nz, symbol->a, first) &&
           known_outside(nz, symbol->b, first);
  }
  if (!mlirAffineExprIsABinary(expr)) return true;
  return known_outside(nz, mlirAffineBinaryOpExprGetLHS(expr), first) &&
         known_outside(nz, mlirAffineBinaryOpExprGetRHS(expr), first);
}

/* ---- Values of upstream ops ---- */

bool o3_nz_is_known_bool(const o3_nz_t *nz, MlirValue value, bool *known) {
  const o3_fact_t *fact = o3_nz_fact(nz, value);
  int64_t number;
  if (fact->num_elements != 1 || !o3_fact_ints(fact, &number)) return false;
  *known = number != 0;
  return true;
}

/* The only element of a tensor. */
static MlirValue build_element(o3_nz_t *nz, MlirValue value) {
  MlirValue scalar = o3_nz_reshape(nz, value, &(o3_shape_t){.rank = 0});
  if (o3_nz_failed(nz)) return (MlirValue){0};
  return o3_build1(&nz->builder, "tensor.extract", o3_nz_element(nz, value), O3_VALUES(scalar));
}

static MlirValue build_size(o3_nz_t *nz, MlirAffineExpr expr) {
  int64_t constant;
  if (o3_expr_is_const(expr, &constant)) return o3_build_index(&nz->builder, constant);
  MlirValue number = build_element(nz, o3_nz_sizes(nz, 1, &expr, true));
  if (o3_nz_failed(nz)) return (MlirValue){0};
  return o3_build1(&nz->builder, "arith.index_cast", mlirIndexTypeGet(nz->context), O3_VALUES(number));
}

static MlirValue cast_to(o3_nz_t *nz, MlirValue value, MlirType type) {
  if (mlirTypeEqual(mlirValueGetType(value), type)) return value;
  return o3_build1(&nz->builder, "tensor.cast", type, O3_VALUES(value));
}

static MlirAttribute shape_map(const o3_nz_t *nz, const o3_shape_t *shape) {
  return o3_shape_attr(nz->context, shape, o3_symbols_count(nz->symbols));
}

static void resolved_shape(const o3_nz_t *nz, MlirValue value, o3_shape_t *shape) {
  *shape = o3_nz_fact(nz, value)->shape;
  for (int i = 0; i < shape->rank; ++i) shape->dims[i] = o3_nz_dim(nz, value, i);
}

static MlirAffineExpr new_symbol(o3_nz_t *nz) {
  MlirAffineExpr symbol = o3_symbols_data(nz->symbols, nz->who);
  if (symbol.ptr) return symbol;
  o3_nz_fail(nz, o3_status_create(O3_STATUS_OUT_OF_MEMORY, "%s: out of memory", nz->who));
  return o3_expr_const(nz->context, 1);
}

/* ---- Branches ---- */

typedef struct branch {
  region_t region;
  int count;
  MlirValue results[O3_NZ_MAX_CARRIED];
  o3_shape_t shapes[O3_NZ_MAX_CARRIED]; /* as known outside; a null dim is not */
} branch_t;

static o3_status_t convert_branch(o3_nz_t *nz, o3_nz_branch_fn_t convert, void *context, bool taken,
                                  branch_t *branch) {
  O3_TRY(open_region(nz, &branch->region));
  o3_status_t status = convert(nz, context, taken, branch->results, &branch->count);
  if (!status) o3_nz_check_guards(nz);
  o3_status_t failure = take_failure(nz);
  if (status || failure) {
    drop_region(nz, &branch->region);
    if (status && failure) o3_status_destroy(status);
    return failure ? failure : status;
  }
  for (int i = 0; i < branch->count; ++i) {
    o3_shape_t *shape = &branch->shapes[i];
    resolved_shape(nz, branch->results[i], shape);
    for (int d = 0; d < shape->rank; ++d) {
      if (!known_outside(nz, shape->dims[d], branch->region.first_symbol)) shape->dims[d].ptr = NULL;
    }
  }
  close_region(nz, &branch->region);
  return NULL;
}

static o3_status_t unify_result(o3_nz_t *nz, const branch_t *yes, const branch_t *no, int index,
                                o3_fact_t *fact) {
  const o3_shape_t *a = &yes->shapes[index], *b = &no->shapes[index];
  MlirType element = o3_nz_element(nz, yes->results[index]);
  if (!mlirTypeEqual(element, o3_nz_element(nz, no->results[index])))
    return o3_nz_invalid(nz, "output %d has different element types in the two branches", index);
  if (a->rank != b->rank)
    return o3_nz_unsupported(
        nz,
        "output %d has rank %d in one branch and %d in the other, which only a condition that is "
        "known while compiling can have (set what it follows from with --dim, --shape or --value)",
        index, a->rank, b->rank);
  *fact = (o3_fact_t){.element = element, .shape.rank = a->rank};
  for (int d = 0; d < a->rank; ++d) {
    bool same = a->dims[d].ptr && b->dims[d].ptr && o3_expr_equal(a->dims[d], b->dims[d]);
    fact->shape.dims[d] = same ? a->dims[d] : new_symbol(nz);
  }
  return NULL;
}

static o3_status_t unify(o3_nz_t *nz, const branch_t *yes, const branch_t *no, o3_fact_t *facts) {
  if (yes->count != no->count)
    return o3_nz_invalid(nz, "one branch gives %d values, the other %d", yes->count, no->count);
  for (int i = 0; i < yes->count; ++i) O3_TRY(unify_result(nz, yes, no, i, &facts[i]));
  return NULL;
}

static void yield_branch(o3_nz_t *nz, branch_t *branch, const MlirType *types) {
  o3_builder_t outer = nz->builder;
  nz->builder = o3_builder_at_end(branch->region.block, outer.location);
  for (int i = 0; i < branch->count; ++i) branch->results[i] = cast_to(nz, branch->results[i], types[i]);
  o3_build0(&nz->builder, "scf.yield", branch->count, branch->results);
  nz->builder = outer;
}

/* Takes the blocks of both. */
static void build_if(o3_nz_t *nz, MlirValue condition, branch_t *yes, branch_t *no, const o3_fact_t *facts,
                     MlirValue *results) {
  MlirType types[O3_NZ_MAX_CARRIED];
  MlirAttribute shapes[O3_NZ_MAX_CARRIED];
  MlirRegion regions[2] = {mlirRegionCreate(), mlirRegionCreate()};
  for (int i = 0; i < yes->count; ++i) {
    types[i] = o3_fact_type(&facts[i]);
    shapes[i] = shape_map(nz, &facts[i].shape);
  }
  yield_branch(nz, yes, types);
  yield_branch(nz, no, types);
  mlirRegionAppendOwnedBlock(regions[0], yes->region.block);
  mlirRegionAppendOwnedBlock(regions[1], no->region.block);
  const o3_attr_t attrs[] = {{"o3.shape", mlirArrayAttrGet(nz->context, yes->count, shapes)}};
  o3_op_spec_t spec = {.name = "scf.if",
                       .num_operands = 1,
                       .operands = &condition,
                       .num_results = yes->count,
                       .results = types,
                       .num_attrs = 1,
                       .attrs = attrs,
                       .num_regions = 2,
                       .regions = regions};
  MlirOperation op = o3_build(&nz->builder, &spec);
  for (int i = 0; i < yes->count; ++i) {
    results[i] = mlirOperationGetResult(op, i);
    o3_nz_note(nz, results[i], &facts[i]);
  }
}

o3_status_t o3_nz_branch(o3_nz_t *nz, MlirValue condition, o3_nz_branch_fn_t convert, void *context,
                         MlirValue *results, int *count) {
  branch_t *yes = O3_ARENA_NEW(nz->arena, branch_t), *no = O3_ARENA_NEW(nz->arena, branch_t);
  o3_fact_t *facts = O3_ARENA_ARRAY(nz->arena, o3_fact_t, O3_NZ_MAX_CARRIED);
  O3_TRY_ALLOC(yes);
  O3_TRY_ALLOC(no);
  O3_TRY_ALLOC(facts);
  MlirValue chosen = build_element(nz, condition);
  O3_TRY(take_failure(nz));
  O3_TRY(convert_branch(nz, convert, context, true, yes));
  o3_status_t status = convert_branch(nz, convert, context, false, no);
  if (status) {
    mlirBlockDestroy(yes->region.block);
    return status;
  }
  status = unify(nz, yes, no, facts);
  if (status) {
    mlirBlockDestroy(yes->region.block);
    mlirBlockDestroy(no->region.block);
    return status;
  }
  build_if(nz, chosen, yes, no, facts, results);
  *count = yes->count;
  return NULL;
}

/* ---- Loops ---- */

/* Block arguments of both kinds: the iteration's number (index); of scf.while also the condition; the carried
 * values; the scan results so far. */
typedef struct loop {
  const o3_nz_loop_t *spec;
  bool is_while;
  o3_shape_t shapes[O3_NZ_MAX_CARRIED];        /* of the carried values; a null dim changes */
  o3_shape_t inner[2 * O3_NZ_MAX_CARRIED + 2]; /* of the block arguments */
  o3_fact_t scans[O3_NZ_MAX_CARRIED];          /* whole scan results; a null dim is known after the loop */
  MlirType types[2 * O3_NZ_MAX_CARRIED + 2];   /* of the block arguments */
  MlirValue yields[2 * O3_NZ_MAX_CARRIED + 2];
  int num_args, num_fixed; /* num_fixed: those before the carried values */
  region_t region;
  o3_nz_iteration_t iteration;
  MlirValue carried[O3_NZ_MAX_CARRIED], next[O3_NZ_MAX_CARRIED], slices[O3_NZ_MAX_CARRIED];
} loop_t;

static MlirValue add_arg(o3_nz_t *nz, loop_t *loop, const o3_shape_t *shape, MlirType type) {
  MlirValue arg = mlirBlockAddArgument(loop->region.block, type, nz->builder.location);
  loop->inner[loop->num_args] = *shape;
  loop->types[loop->num_args++] = type;
  return arg;
}

static MlirValue add_tensor_arg(o3_nz_t *nz, loop_t *loop, const o3_shape_t *shape, MlirType element) {
  o3_fact_t fact = {.element = element, .shape = *shape};
  MlirValue arg = add_arg(nz, loop, shape, o3_fact_type(&fact));
  o3_nz_note(nz, arg, &fact);
  return arg;
}

static void add_args(o3_nz_t *nz, loop_t *loop) {
  o3_shape_t scalar = {.rank = 0};
  loop->num_args = 0;
  add_arg(nz, loop, &scalar, mlirIndexTypeGet(nz->context));
  if (loop->is_while) {
    loop->iteration.condition = add_tensor_arg(nz, loop, &scalar, o3_nz_i1(nz));
  } else {
    loop->iteration.condition = o3_nz_scalar(nz, o3_nz_i1(nz), 1);
  }
  loop->num_fixed = loop->num_args;
  for (int i = 0; i < loop->spec->num_carried; ++i) {
    o3_shape_t shape = loop->shapes[i];
    for (int d = 0; d < shape.rank; ++d) {
      if (!shape.dims[d].ptr) shape.dims[d] = new_symbol(nz);
    }
    loop->carried[i] = add_tensor_arg(nz, loop, &shape, o3_nz_element(nz, loop->spec->inits[i]));
  }
}

/* Gives up what iteration |next| contradicts; |changed| tells whether there was something. */
static o3_status_t compare_carried(o3_nz_t *nz, loop_t *loop, int index, bool *changed) {
  MlirValue next = loop->next[index];
  o3_shape_t *shape = &loop->shapes[index];
  if (mlirValueIsNull(next))
    return o3_nz_invalid(nz, "the loop's body does not give carried value %d", index);
  if (!mlirTypeEqual(o3_nz_element(nz, next), o3_nz_element(nz, loop->spec->inits[index])))
    return o3_nz_invalid(nz, "the loop's body changes the element type of carried value %d", index);
  if (o3_nz_rank(nz, next) != shape->rank)
    return o3_nz_unsupported(
        nz, "carried value %d starts with rank %d and comes out of the loop's body with rank %d", index,
        shape->rank, o3_nz_rank(nz, next));
  for (int d = 0; d < shape->rank; ++d) {
    if (!shape->dims[d].ptr) continue;
    if (o3_expr_equal(o3_symbols_resolve(nz->symbols, shape->dims[d]), o3_nz_dim(nz, next, d))) continue;
    shape->dims[d].ptr = NULL;
    loop->is_while = true;
    *changed = true;
  }
  return NULL;
}

static bool scans_known_outside(const o3_nz_t *nz, const loop_t *loop) {
  for (int i = 0; i < loop->spec->num_scans; ++i) {
    for (int d = 0; d < o3_nz_rank(nz, loop->slices[i]); ++d) {
      if (!known_outside(nz, o3_nz_dim(nz, loop->slices[i], d), loop->region.first_symbol)) return false;
    }
  }
  return true;
}

static o3_status_t compare(o3_nz_t *nz, loop_t *loop, bool *changed) {
  MlirValue condition = loop->iteration.next_condition;
  bool known;
  for (int i = 0; i < loop->spec->num_carried; ++i) O3_TRY(compare_carried(nz, loop, i, changed));
  if (loop->is_while) return NULL;
  bool goes_on = mlirValueIsNull(condition) || (o3_nz_is_known_bool(nz, condition, &known) && known);
  if (goes_on && scans_known_outside(nz, loop)) return NULL;
  loop->is_while = true;
  *changed = true;
  return NULL;
}

static MlirValue insert(o3_nz_t *nz, MlirValue whole, MlirValue part, int count, const int64_t *axes,
                        const MlirAffineExpr *starts) {
  o3_fact_t fact = *o3_nz_fact(nz, whole);
  MlirValue result;
  o3_nz_op_stated(
      nz, "o3.insert_slice", O3_VALUES(whole, part),
      O3_ATTRS({"axes", o3_nz_ints_attr(nz, count, axes)}, {"starts", o3_nz_map_attr(nz, count, starts)}), 1,
      &fact, &result);
  return result;
}

/* What a growing scan result becomes in one iteration. */
typedef struct growth {
  MlirValue so_far, part;
  int axis;
  bool reverse;
} growth_t;

static MlirValue appended(o3_nz_t *nz, const growth_t *growth) {
  MlirValue parts[2] = {growth->so_far, growth->part};
  if (growth->reverse) parts[0] = growth->part, parts[1] = growth->so_far;
  return o3_nz_concat(nz, growth->axis, 2, parts);
}

static o3_status_t first_or_appended(o3_nz_t *nz, void *context, bool first, MlirValue *results, int *count) {
  const growth_t *growth = context;
  results[0] = first ? growth->part : appended(nz, growth);
  *count = 1;
  return NULL;
}

/* Before the first slice nothing is known of its other sizes when they depend on what the loop computes: the
 * first one replaces the empty result, later ones must fit it. */
static o3_status_t grow(o3_nz_t *nz, growth_t *growth, MlirAffineExpr number, bool sizes_known,
                        MlirValue *grown) {
  int count;
  if (sizes_known) {
    *grown = appended(nz, growth);
    return NULL;
  }
  MlirValue zero = o3_nz_scalar(nz, o3_nz_i64(nz), 0);
  MlirValue first = o3_nz_binary(nz, "o3.equal", o3_nz_sizes(nz, 1, &number, true), zero);
  return o3_nz_branch(nz, first, first_or_appended, growth, grown, &count);
}

/* The block argument of a scan result, and in scans[index] its shape after the loop, without what is known
 * only then. */
static MlirValue add_scan_arg(o3_nz_t *nz, loop_t *loop, int index, MlirValue part, int axis,
                              bool *sizes_known) {
  o3_fact_t *whole = &loop->scans[index];
  *whole = (o3_fact_t){.element = o3_nz_element(nz, part)};
  resolved_shape(nz, part, &whole->shape);
  o3_shape_t inner = whole->shape;
  *sizes_known = true;
  for (int d = 0; d < inner.rank; ++d) {
    if (d == axis || known_outside(nz, inner.dims[d], loop->region.first_symbol)) continue;
    *sizes_known = false;
    whole->shape.dims[d].ptr = NULL;
    inner.dims[d] = new_symbol(nz);
  }
  inner.dims[axis] = loop->is_while ? loop->iteration.number : loop->spec->trip;
  whole->shape.dims[axis] = loop->is_while ? (MlirAffineExpr){0} : loop->spec->trip;
  return add_tensor_arg(nz, loop, &inner, whole->element);
}

/* A loop of a known number of iterations writes into a result that is there from the start. Another one
 * appends to what it has: that result's size along the axis is the iteration's number. */
static o3_status_t add_scan(o3_nz_t *nz, loop_t *loop, int index, MlirValue *grown) {
  const o3_nz_scan_t *scan = &loop->spec->scans[index];
  MlirValue slice = loop->slices[index];
  MlirAffineExpr number = loop->iteration.number;
  bool sizes_known;
  if (mlirValueIsNull(slice)) return o3_nz_invalid(nz, "the loop's body does not give scan output %d", index);
  int axis = o3_nz_axis(nz, scan->axis, o3_nz_rank(nz, slice) + 1);
  MlirValue part = o3_nz_unsqueeze(nz, slice, 1, (int64_t[]){axis});
  O3_TRY(take_failure(nz));
  MlirValue so_far = add_scan_arg(nz, loop, index, part, axis, &sizes_known);
  if (loop->is_while) {
    growth_t growth = {.so_far = so_far, .part = part, .axis = axis, .reverse = scan->reverse};
    return grow(nz, &growth, number, sizes_known, grown);
  }
  MlirAffineExpr last = o3_expr_sub(loop->spec->trip, o3_expr_const(nz->context, 1));
  MlirAffineExpr start = scan->reverse ? o3_expr_sub(last, number) : number;
  *grown = insert(nz, so_far, part, 1, (int64_t[]){axis}, &start);
  return NULL;
}

static o3_status_t add_scans(o3_nz_t *nz, loop_t *loop) {
  for (int i = 0; i < loop->spec->num_scans; ++i) {
    MlirValue grown = {0};
    O3_TRY(add_scan(nz, loop, i, &grown));
    loop->yields[loop->num_fixed + loop->spec->num_carried + i] = grown;
  }
  return NULL;
}

/* A value of symbolic sizes that stay the same is written over the one that it replaces, so that one buffer
 * serves all iterations. With static sizes the back end sees that by itself. */
static MlirValue kept(o3_nz_t *nz, const loop_t *loop, int index) {
  const o3_shape_t *shape = &loop->shapes[index];
  MlirValue next = loop->next[index], carried = loop->carried[index];
  for (int d = 0; d < shape->rank; ++d) {
    if (!shape->dims[d].ptr) return next;
  }
  if (o3_nz_failed(nz) || mlirValueEqual(next, carried) || o3_shape_is_static(shape)) return next;
  return insert(nz, carried, next, 0, NULL, NULL);
}

/* The terminator: the body's values in the types of the block arguments. */
static void build_yield(o3_nz_t *nz, loop_t *loop) {
  MlirValue condition = loop->iteration.next_condition;
  if (loop->is_while) {
    MlirValue one = o3_build_index(&nz->builder, 1);
    loop->yields[0] = o3_build2(&nz->builder, "arith.addi", mlirBlockGetArgument(loop->region.block, 0), one);
    if (mlirValueIsNull(condition)) condition = o3_nz_scalar(nz, o3_nz_i1(nz), 1);
    loop->yields[1] = o3_nz_reshape(nz, condition, &(o3_shape_t){.rank = 0});
  }
  for (int i = 0; i < loop->spec->num_carried; ++i) loop->yields[loop->num_fixed + i] = kept(nz, loop, i);
  if (o3_nz_failed(nz)) return;
  for (int i = loop->num_fixed; i < loop->num_args; ++i)
    loop->yields[i] = cast_to(nz, loop->yields[i], loop->types[i]);
  int first = loop->is_while ? 0 : 1;
  o3_nz_check_guards(nz);
  o3_build0(&nz->builder, "scf.yield", loop->num_args - first, loop->yields + first);
}

static o3_status_t convert_body(o3_nz_t *nz, loop_t *loop, bool *changed) {
  loop->iteration = (o3_nz_iteration_t){
      .number = new_symbol(nz), .carried = loop->carried, .next = loop->next, .scans = loop->slices};
  memset(loop->next, 0, sizeof(loop->next));
  memset(loop->slices, 0, sizeof(loop->slices));
  add_args(nz, loop);
  O3_TRY(loop->spec->body(nz, loop->spec->context, &loop->iteration));
  O3_TRY(take_failure(nz));
  *changed = false;
  O3_TRY(compare(nz, loop, changed));
  if (*changed) return NULL;
  O3_TRY(add_scans(nz, loop));
  build_yield(nz, loop);
  return take_failure(nz);
}

/* Until the body agrees with what is assumed of it. */
static o3_status_t convert_bodies(o3_nz_t *nz, loop_t *loop) {
  bool changed = true;
  while (changed) {
    O3_TRY(open_region(nz, &loop->region));
    o3_status_t status = convert_body(nz, loop, &changed);
    if (status) o3_status_destroy(take_failure(nz));
    if (status || changed) {
      drop_region(nz, &loop->region);
    } else {
      close_region(nz, &loop->region);
    }
    O3_TRY(status);
  }
  return NULL;
}

/* The values of the block arguments before the first iteration. */
static void gather_inits(o3_nz_t *nz, loop_t *loop, MlirValue *inits) {
  const o3_nz_loop_t *spec = loop->spec;
  MlirValue condition = spec->condition;
  if (loop->is_while) {
    if (mlirValueIsNull(condition)) condition = o3_nz_scalar(nz, o3_nz_i1(nz), 1);
    inits[0] = o3_build_index(&nz->builder, 0);
    inits[1] = o3_nz_reshape(nz, condition, &(o3_shape_t){.rank = 0});
  }
  int at = loop->num_fixed;
  for (int i = 0; i < spec->num_carried; ++i) inits[at++] = spec->inits[i];
  for (int i = 0; i < spec->num_scans; ++i) {
    o3_fact_t fact = loop->scans[i];
    for (int d = 0; d < fact.shape.rank; ++d) {
      if (!fact.shape.dims[d].ptr) fact.shape.dims[d] = o3_expr_const(nz->context, 0);
    }
    o3_nz_op_stated(nz, "o3.empty", O3_NO_VALUES, 0, NULL, 1, &fact, &inits[at++]);
  }
  if (o3_nz_failed(nz)) return;
  for (int i = loop->num_fixed; i < loop->num_args; ++i) inits[i] = cast_to(nz, inits[i], loop->types[i]);
}

/* Sizes that change are known after the loop from its results. */
static void result_facts(o3_nz_t *nz, loop_t *loop, o3_fact_t *facts) {
  int num_carried = loop->spec->num_carried;
  for (int i = 0; i < loop->num_fixed; ++i) facts[i] = (o3_fact_t){.element = o3_nz_i1(nz)};
  for (int i = 0; i < loop->num_args - loop->num_fixed; ++i) {
    o3_fact_t *fact = &facts[loop->num_fixed + i];
    if (i < num_carried) {
      *fact = (o3_fact_t){.element = o3_nz_element(nz, loop->spec->inits[i]), .shape = loop->shapes[i]};
    } else {
      *fact = loop->scans[i - num_carried];
    }
    for (int d = 0; d < fact->shape.rank; ++d) {
      if (!fact->shape.dims[d].ptr) fact->shape.dims[d] = new_symbol(nz);
    }
  }
}

/* scf.while's first region: whether to go on. */
static MlirBlock build_test(o3_nz_t *nz, const loop_t *loop, MlirValue trip) {
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  MlirValue operands[2 * O3_NZ_MAX_CARRIED + 3];
  MlirLocation location = nz->builder.location;
  o3_builder_t inner = o3_builder_at_end(block, location);
  for (int i = 0; i < loop->num_args; ++i)
    operands[i + 1] = mlirBlockAddArgument(block, loop->types[i], location);
  MlirValue go = o3_build1(&inner, "tensor.extract", o3_nz_i1(nz), O3_VALUES(operands[2]));
  if (!mlirValueIsNull(trip))
    go = o3_build2(&inner, "arith.andi", o3_build_cmpi(&inner, O3_CMPI_SLT, operands[1], trip), go);
  operands[0] = go;
  o3_build0(&inner, "scf.condition", loop->num_args + 1, operands);
  return block;
}

static MlirAttribute shapes_attr(const o3_nz_t *nz, const loop_t *loop) {
  MlirAttribute maps[2 * O3_NZ_MAX_CARRIED + 2];
  for (int i = 0; i < loop->num_args; ++i) maps[i] = shape_map(nz, &loop->inner[i]);
  return mlirArrayAttrGet(nz->context, loop->num_args, maps);
}

/* Operands of scf.for: its bounds and step, then the initial values but for the number. */
static MlirOperation build_loop(o3_nz_t *nz, loop_t *loop, MlirValue trip, const MlirValue *inits,
                                int num_results, const MlirType *types, const o3_fact_t *facts) {
  MlirValue operands[2 * O3_NZ_MAX_CARRIED + 5];
  MlirAttribute maps[2 * O3_NZ_MAX_CARRIED + 2];
  MlirRegion regions[2] = {mlirRegionCreate()};
  int num_operands = 0, num_regions = 0;
  for (int i = 0; i < num_results; ++i) maps[i] = shape_map(nz, &facts[i].shape);
  if (loop->is_while) {
    regions[1] = mlirRegionCreate();
    mlirRegionAppendOwnedBlock(regions[num_regions++], build_test(nz, loop, trip));
  } else {
    operands[num_operands++] = o3_build_index(&nz->builder, 0);
    operands[num_operands++] = trip;
    operands[num_operands++] = o3_build_index(&nz->builder, 1);
  }
  for (int i = loop->num_args - num_results; i < loop->num_args; ++i) operands[num_operands++] = inits[i];
  mlirRegionAppendOwnedBlock(regions[num_regions++], loop->region.block);
  const o3_attr_t attrs[] = {
      {"o3.shape", mlirArrayAttrGet(nz->context, num_results, maps)},
      {"o3.arg_shapes", shapes_attr(nz, loop)},
      {"o3.iteration", o3_attr_i64(nz->context, mlirAffineSymbolExprGetPosition(loop->iteration.number))}};
  o3_op_spec_t spec = {.name = loop->is_while ? "scf.while" : "scf.for",
                       .num_operands = num_operands,
                       .operands = operands,
                       .num_results = num_results,
                       .results = types,
                       .num_attrs = 3,
                       .attrs = attrs,
                       .num_regions = num_regions,
                       .regions = regions};
  return o3_build(&nz->builder, &spec);
}

static o3_status_t finish_loop(o3_nz_t *nz, loop_t *loop, MlirValue *results) {
  MlirValue inits[2 * O3_NZ_MAX_CARRIED + 2], trip = {0};
  MlirType types[2 * O3_NZ_MAX_CARRIED + 2];
  o3_fact_t *facts = O3_ARENA_ARRAY(nz->arena, o3_fact_t, 2 * O3_NZ_MAX_CARRIED + 2);
  int first = loop->is_while ? 0 : 1, num_results = loop->num_args - first;
  O3_TRY_ALLOC(facts);
  if (loop->spec->trip.ptr) trip = build_size(nz, loop->spec->trip);
  gather_inits(nz, loop, inits);
  result_facts(nz, loop, facts);
  O3_TRY(take_failure(nz));
  for (int i = 0; i < loop->num_args; ++i)
    types[i] = i < loop->num_fixed ? loop->types[i] : o3_fact_type(&facts[i]);
  MlirOperation op = build_loop(nz, loop, trip, inits, num_results, types + first, facts + first);
  loop->region.block = (MlirBlock){0};
  for (int i = loop->num_fixed; i < loop->num_args; ++i) {
    results[i - loop->num_fixed] = mlirOperationGetResult(op, i - first);
    o3_nz_note(nz, results[i - loop->num_fixed], &facts[i]);
  }
  return NULL;
}

/* A loop of one iteration is its body. */
static o3_status_t run_once(o3_nz_t *nz, const o3_nz_loop_t *spec, MlirValue *results) {
  MlirValue slices[O3_NZ_MAX_CARRIED] = {{0}};
  o3_nz_iteration_t iteration = {.number = o3_expr_const(nz->context, 0),
                                 .condition = o3_nz_scalar(nz, o3_nz_i1(nz), 1),
                                 .carried = spec->inits,
                                 .next = results,
                                 .scans = slices};
  for (int i = 0; i < spec->num_carried; ++i) results[i] = (MlirValue){0};
  O3_TRY(spec->body(nz, spec->context, &iteration));
  for (int i = 0; i < spec->num_carried; ++i) {
    if (mlirValueIsNull(results[i]))
      return o3_nz_invalid(nz, "the loop's body does not give carried value %d", i);
  }
  for (int i = 0; i < spec->num_scans; ++i) {
    int axis = o3_nz_axis(nz, spec->scans[i].axis, o3_nz_rank(nz, slices[i]) + 1);
    results[spec->num_carried + i] = o3_nz_unsqueeze(nz, slices[i], 1, (int64_t[]){axis});
  }
  return NULL;
}

o3_status_t o3_nz_loop(o3_nz_t *nz, const o3_nz_loop_t *spec, MlirValue *results) {
  loop_t *loop = O3_ARENA_NEW(nz->arena, loop_t);
  bool known = false;
  O3_TRY_ALLOC(loop);
  O3_TRY(take_failure(nz));
  if (spec->num_carried > O3_NZ_MAX_CARRIED || spec->num_scans > O3_NZ_MAX_CARRIED)
    return o3_nz_unsupported(nz, "a loop that carries %d values and gathers %d, at most %d are",
                             spec->num_carried, spec->num_scans, O3_NZ_MAX_CARRIED);
  bool runs = mlirValueIsNull(spec->condition) || (o3_nz_is_known_bool(nz, spec->condition, &known) && known);
  if (runs && spec->trip.ptr && o3_expr_equals_const(spec->trip, 1)) return run_once(nz, spec, results);
  loop->spec = spec;
  loop->is_while = !spec->trip.ptr || !runs;
  for (int i = 0; i < spec->num_carried; ++i) {
    if (mlirValueIsNull(spec->inits[i])) return o3_nz_invalid(nz, "carried value %d has no initial value", i);
    resolved_shape(nz, spec->inits[i], &loop->shapes[i]);
  }
  O3_TRY(convert_bodies(nz, loop));
  o3_status_t status = finish_loop(nz, loop, results);
  if (!mlirBlockIsNull(loop->region.block)) mlirBlockDestroy(loop->region.block);
  return status;
}
