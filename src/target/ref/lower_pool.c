/* Pooling: the input padded with what changes nothing, then a reduction over the positions of the window.
 * Linalg wants an operand that has the window's sizes: an empty tensor which nothing reads. */
#include <math.h>

#include "target/ref/lower_image.h"
#include "target/ref/window.h"

enum { MAX_LOOPS = 2 * O3_IR_MAX_RANK };

typedef struct pool {
  MlirOperation op;
  o3_lw_window_t window;
  o3_shape_t x_shape, padded, y_shape;
  bool ceil, include_pad, column_major;
  MlirType element; /* old */
  MlirType sum;
  MlirValue sizes[O3_IR_MAX_RANK]; /* x's, as index values */
} pool_t;

static void read_pool(o3_lw_t *lw, MlirOperation op, pool_t *pool) {
  *pool = (pool_t){.op = op,
                   .ceil = o3_op_bool(op, "ceil_mode", false),
                   .include_pad = o3_op_bool(op, "count_include_pad", false),
                   .column_major = o3_op_bool(op, "column_major", false),
                   .element = o3_lw_old_element(op, 0)};
  pool->sum = o3_lw_sum_element(pool->element);
  o3_lw_window_read(op, &pool->window);
  o3_lw_operand_shape(lw, op, 0, &pool->x_shape);
  o3_lw_result_shape(lw, op, 0, &pool->y_shape);
  for (int i = 0; i < pool->x_shape.rank; ++i) pool->sizes[i] = o3_lw_size(lw, pool->x_shape.dims[i]);
}

/* With ceil_mode the last window may hang over the end by less than a stride. */
static MlirValue pad(o3_lw_t *lw, pool_t *pool, MlirValue x, MlirValue fill) {
  o3_lw_spread_t spread = {.steps = {1, 1}};
  for (int i = 0; i < pool->window.rank; ++i) {
    spread.steps[2 + i] = 1;
    spread.lows[2 + i] = pool->window.lows[i];
    spread.highs[2 + i] = pool->window.highs[i] + (pool->ceil ? pool->window.strides[i] - 1 : 0);
  }
  pool->padded = pool->x_shape;
  return o3_lw_spread(lw, x, &spread, fill, &pool->padded);
}

/* ---- The reduction ---- */

static MlirAffineMap input_map(const pool_t *pool, MlirContext context) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK];
  int rank = pool->y_shape.rank;
  for (int i = 0; i < rank; ++i) {
    exprs[i] = mlirAffineDimExprGet(context, i);
    if (i < 2) continue;
    MlirAffineExpr stride = o3_expr_const(context, pool->window.strides[i - 2]);
    MlirAffineExpr dilation = o3_expr_const(context, pool->window.dilations[i - 2]);
    MlirAffineExpr tap = mlirAffineMulExprGet(mlirAffineDimExprGet(context, rank + i - 2), dilation);
    exprs[i] = mlirAffineAddExprGet(mlirAffineMulExprGet(exprs[i], stride), tap);
  }
  return mlirAffineMapGet(context, rank + pool->window.rank, 0, rank, exprs);
}

static MlirValue window_operand(o3_lw_t *lw, const pool_t *pool, MlirType element) {
  o3_shape_t shape = {.rank = pool->window.rank};
  for (int i = 0; i < shape.rank; ++i) shape.dims[i] = o3_expr_const(lw->context, pool->window.kernel[i]);
  return o3_lw_empty(lw, &shape, element);
}

/* |inits| reduced over the windows of |x|, which is padded. */
static void reduce(o3_lw_t *lw, const pool_t *pool, MlirValue x, int count, const MlirValue *inits,
                   o3_body_fn_t body, const char *kernel, MlirValue *results) {
  char iterators[MAX_LOOPS + 1] = {0};
  int64_t outer[O3_IR_MAX_RANK], inner[O3_IR_MAX_RANK];
  int rank = pool->y_shape.rank, loops = rank + pool->window.rank;
  for (int i = 0; i < loops; ++i) iterators[i] = i < rank ? 'p' : 'r';
  for (int i = 0; i < rank; ++i) outer[i] = i;
  for (int i = 0; i < pool->window.rank; ++i) inner[i] = rank + i;
  o3_generic_t generic = {
      .op = pool->op,
      .iterators = iterators,
      .num_inputs = 2,
      .inputs = {x, window_operand(lw, pool, o3_type_element(mlirValueGetType(x)))},
      .num_outputs = count,
      .maps = {input_map(pool, lw->context), o3_lw_projection(lw, loops, pool->window.rank, inner)},
      .body = body,
      .context = (void *)(uintptr_t)pool,
      .kernel = kernel};
  for (int i = 0; i < count; ++i) {
    generic.outputs[i] = inits[i];
    generic.maps[2 + i] = o3_lw_projection(lw, loops, rank, outer);
  }
  o3_lw_generic(lw, &generic, results);
}

/* ---- Maxima ---- */

/* The smallest value of the old type |element|. */
static MlirValue lowest(o3_builder_t *b, MlirType element) {
  MlirType type = o3_lw_type(element);
  o3_number_kind_t kind = o3_number_kind(element);
  if (kind == O3_NUMBER_FLOAT) return o3_build_float(b, type, -INFINITY);
  return o3_build_int(b, type, kind == O3_NUMBER_UNSIGNED ? 0 : INT64_MIN >> (64 - o3_type_bits(element)));
}

static void max_body(const o3_body_args_t *in) {
  static const char *const NAMES[] = {"arith.maximumf", "arith.maxsi", "arith.maxui"};
  const pool_t *pool = in->context;
  in->results[0] = o3_build2(in->builder, NAMES[o3_number_kind(pool->element)], in->args[2], in->args[0]);
}

o3_status_t o3_lower_max_pool(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  pool_t pool;
  if (o3_lw_pool_in_place(lw, op, operands[0], results)) return NULL;
  read_pool(lw, op, &pool);
  MlirValue low = lowest(&lw->builder, pool.element);
  MlirValue init = o3_lw_fill(lw, &pool.y_shape, low);
  reduce(lw, &pool, pad(lw, &pool, operands[0], low), 1, &init, max_body, "max_pool", results);
  return NULL;
}

/* ---- Maxima with their positions ---- */

static MlirValue mul(o3_builder_t *b, MlirValue x, MlirValue y) { return o3_build2(b, "arith.muli", x, y); }
static MlirValue add(o3_builder_t *b, MlirValue x, MlirValue y) { return o3_build2(b, "arith.addi", x, y); }

/* The position in spatial dimension |i| of the unpadded input: o * stride + k * dilation - low. */
static MlirValue input_position(o3_builder_t *b, const pool_t *pool, int i) {
  const o3_lw_window_t *window = &pool->window;
  MlirValue start = mul(b, o3_lw_index(b, 2 + i), o3_build_index(b, window->strides[i]));
  MlirValue tap = mul(b, o3_lw_index(b, pool->y_shape.rank + i), o3_build_index(b, window->dilations[i]));
  return add(b, add(b, start, tap), o3_build_index(b, -window->lows[i]));
}

/* Row-major over N and C, then over the spatial dimensions in either order. */
static MlirValue flat_position(o3_builder_t *b, const pool_t *pool, const MlirValue *positions) {
  int rank = pool->window.rank;
  MlirValue flat = add(b, mul(b, o3_lw_index(b, 0), pool->sizes[1]), o3_lw_index(b, 1));
  MlirValue spatial = o3_build_index(b, 0), volume = o3_build_index(b, 1);
  for (int i = 0; i < rank; ++i) {
    int dim = pool->column_major ? rank - 1 - i : i;
    spatial = add(b, mul(b, spatial, pool->sizes[2 + dim]), positions[dim]);
    volume = mul(b, volume, pool->sizes[2 + dim]);
  }
  MlirValue index = add(b, mul(b, flat, volume), spatial);
  return o3_build1(b, "arith.index_cast", mlirIntegerTypeGet(b->context, 64), O3_VALUES(index));
}

/* x > best, NaN above all. */
static MlirValue is_better(o3_builder_t *b, o3_number_kind_t kind, MlirValue x, MlirValue best) {
  if (kind == O3_NUMBER_SIGNED) return o3_build_cmpi(b, O3_CMPI_SGT, x, best);
  if (kind == O3_NUMBER_UNSIGNED) return o3_build_cmpi(b, O3_CMPI_UGT, x, best);
  MlirValue nan = o3_build_cmpf(b, O3_CMPF_UNO, x, x),
            best_number = o3_build_cmpf(b, O3_CMPF_ORD, best, best);
  MlirValue above = o3_build_cmpf(b, O3_CMPF_OGT, x, best);
  return o3_build2(b, "arith.ori", above, o3_build2(b, "arith.andi", nan, best_number));
}

/* Elements of the padding never win, not even where all others are the smallest value. */
static void max_indices_body(const o3_body_args_t *in) {
  const pool_t *pool = in->context;
  o3_builder_t *b = in->builder;
  MlirValue positions[O3_IR_MAX_RANK], x = in->args[0], best = in->args[2], index = in->args[3];
  MlirType i64 = mlirIntegerTypeGet(b->context, 64);
  MlirValue first = o3_build_cmpi(b, O3_CMPI_SLT, index, o3_build_int(b, i64, 0));
  MlirValue better = o3_build2(b, "arith.ori", first, is_better(b, o3_number_kind(pool->element), x, best));
  for (int i = 0; i < pool->window.rank; ++i) {
    positions[i] = input_position(b, pool, i);
    MlirValue inside = o3_build_cmpi(b, O3_CMPI_ULT, positions[i], pool->sizes[2 + i]);
    better = o3_build2(b, "arith.andi", better, inside);
  }
  in->results[0] = o3_build_select(b, better, x, best);
  in->results[1] = o3_build_select(b, better, flat_position(b, pool, positions), index);
}

o3_status_t o3_lower_max_pool_indices(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                      MlirValue *results) {
  pool_t pool;
  read_pool(lw, op, &pool);
  MlirValue low = lowest(&lw->builder, pool.element);
  MlirValue none = o3_build_int(&lw->builder, mlirIntegerTypeGet(lw->context, 64), -1);
  MlirValue inits[2] = {o3_lw_fill(lw, &pool.y_shape, low), o3_lw_fill(lw, &pool.y_shape, none)};
  reduce(lw, &pool, pad(lw, &pool, operands[0], low), 2, inits, max_indices_body, NULL, results);
  return NULL;
}

/* ---- Averages ---- */

static void sum_body(const o3_body_args_t *in) {
  const pool_t *pool = in->context;
  MlirValue x = o3_lw_convert(in->builder, in->args[0], pool->element, pool->sum);
  in->results[0] = o3_build2(in->builder, "arith.addf", in->args[2], x);
}

/* How many of the taps start, start + dilation, ... (kernel of them) are below |limit|; all values are
 * indices. */
static MlirValue taps_below(o3_builder_t *b, const o3_lw_window_t *window, int i, MlirValue start,
                            MlirValue limit) {
  MlirValue zero = o3_build_index(b, 0), kernel = o3_build_index(b, window->kernel[i]);
  MlirValue room = o3_build2(b, "arith.maxsi", o3_build2(b, "arith.subi", limit, start), zero);
  MlirValue rounded = add(b, room, o3_build_index(b, window->dilations[i] - 1));
  MlirValue count = o3_build2(b, "arith.divui", rounded, o3_build_index(b, window->dilations[i]));
  return o3_build2(b, "arith.minsi", count, kernel);
}

/* The taps of this window inside the input, or inside the padded input. */
static MlirValue count_taps(o3_builder_t *b, const pool_t *pool) {
  const o3_lw_window_t *window = &pool->window;
  MlirValue total = o3_build_index(b, 1), zero = o3_build_index(b, 0);
  for (int i = 0; i < window->rank; ++i) {
    MlirValue low = o3_build_index(b, -window->lows[i]);
    MlirValue start = add(b, mul(b, o3_lw_index(b, 2 + i), o3_build_index(b, window->strides[i])), low);
    MlirValue end = pool->sizes[2 + i];
    if (pool->include_pad) end = add(b, end, o3_build_index(b, window->highs[i]));
    MlirValue below_end = taps_below(b, window, i, start, end);
    MlirValue below_begin = taps_below(b, window, i, start, pool->include_pad ? low : zero);
    total = mul(b, total, o3_build2(b, "arith.subi", below_end, below_begin));
  }
  return o3_build2(b, "arith.maxsi", total, o3_build_index(b, 1));
}

static bool counts_vary(const pool_t *pool) {
  bool padded = false;
  for (int i = 0; i < pool->window.rank; ++i) padded |= pool->window.lows[i] || pool->window.highs[i];
  return pool->ceil || (padded && !pool->include_pad);
}

static void divide_body(const o3_body_args_t *in) {
  const pool_t *pool = in->context;
  o3_builder_t *b = in->builder;
  MlirType i64 = mlirIntegerTypeGet(b->context, 64);
  MlirValue count;
  if (counts_vary(pool)) {
    MlirValue taps = o3_build1(b, "arith.index_cast", i64, O3_VALUES(count_taps(b, pool)));
    count = o3_build1(b, "arith.sitofp", pool->sum, O3_VALUES(taps));
  } else {
    double volume = 1;
    for (int i = 0; i < pool->window.rank; ++i) volume *= (double)pool->window.kernel[i];
    count = o3_build_float(b, pool->sum, volume);
  }
  MlirValue mean = o3_build2(b, "arith.divf", in->args[0], count);
  in->results[0] = o3_lw_convert(b, mean, pool->sum, pool->element);
}

o3_status_t o3_lower_avg_pool(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  pool_t pool;
  read_pool(lw, op, &pool);
  if (!o3_type_is_float(pool.element))
    return o3_status_create(O3_STATUS_UNSUPPORTED, "%s: averages of windows are taken of floats only",
                            o3_lw_who(lw, op));
  if (o3_lw_pool_in_place(lw, op, operands[0], results)) return NULL;
  MlirValue zero = o3_lw_scalar(&lw->builder, pool.element, 0), sum;
  MlirValue init = o3_lw_fill(lw, &pool.y_shape, o3_lw_scalar(&lw->builder, pool.sum, 0));
  reduce(lw, &pool, pad(lw, &pool, operands[0], zero), 1, &init, sum_body, "sum_pool", &sum);
  if (o3_op_bool(op, "sum", false)) {
    results[0] = o3_lw_convert_all(lw, sum, &pool.y_shape, pool.sum, pool.element);
  } else {
    results[0] =
        o3_lw_map_shaped(lw, &pool.y_shape, pool.element, 1, &sum, &pool.y_shape, divide_body, &pool);
  }
  return NULL;
}
