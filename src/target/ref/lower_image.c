/* The taps of a window are written out: a body that has them all needs no buffer for its border and no loop
 * of the reduction. What is outside of the image is read at the nearest position and not used. */
#include "target/ref/lower_image.h"

#include <math.h>

#include "base/check.h"
#include "target/ref/window.h"

typedef struct image {
  MlirOperation op;
  MlirValue x, outside; /* what is there outside of x */
  int rank;
  o3_pool_kind_t kind; /* of a pool */
  int64_t channels, taps[2], steps[2], dilations[2], lows[2];
  int64_t first[2], end[2]; /* positions that a mean is over */
  MlirValue sizes[2];
} image_t;

/* |at| where it is below |size|, else the nearest place that is; |inside| takes in which of them it was. */
static MlirValue clamped(o3_builder_t *b, MlirValue at, MlirValue size, MlirValue *inside) {
  MlirValue fits = o3_build_cmpi(b, O3_CMPI_ULT, at, size);
  MlirValue last = o3_build2(b, "arith.subi", size, o3_build_index(b, 1));
  *inside = mlirValueIsNull(*inside) ? fits : o3_build2(b, "arith.andi", *inside, fits);
  return o3_build2(b, "arith.maxsi", o3_build2(b, "arith.minsi", at, last), o3_build_index(b, 0));
}

/* Where tap |k| of a window is along y (0) or x (1). */
static MlirValue tap_position(o3_builder_t *b, const image_t *image, int i, int64_t k) {
  MlirValue at = o3_build2(b, "arith.muli", o3_lw_index(b, 2 + i), o3_build_index(b, image->steps[i]));
  return o3_build2(b, "arith.addi", at, o3_build_index(b, k * image->dilations[i] - image->lows[i]));
}

static MlirValue tap_at(o3_builder_t *b, const image_t *image, int i, int64_t k, MlirValue *inside) {
  return clamped(b, tap_position(b, image, i, k), image->sizes[i], inside);
}

/* ---- Conversions ---- */

static void pack_body(const o3_body_args_t *in) {
  const image_t *pack = in->context;
  o3_builder_t *b = in->builder;
  MlirValue inside = {0}, at[4] = {o3_lw_index(b, 0), o3_lw_index(b, 4)};
  at[1] = clamped(b, at[1], o3_build_index(b, pack->channels), &inside);
  for (int i = 0; i < 2; ++i) at[2 + i] = tap_at(b, pack, i, 0, &inside);
  MlirValue value = o3_lw_convert(b, o3_lw_extract(b, pack->x, 4, at), o3_lw_old_element(pack->op, 0),
                                  o3_lw_result_element(pack->op, 0));
  in->results[0] = o3_build_select(b, inside, value, pack->outside);
}

/* ---- Pools ---- */

static MlirValue load_tap(o3_builder_t *b, const image_t *pool, int64_t tap) {
  MlirValue inside = {0}, at[O3_IR_MAX_RANK];
  for (int r = 0; r < pool->rank; ++r)
    if (r != 2 && r != 3) at[r] = o3_lw_index(b, r);
  at[2] = tap_at(b, pool, 0, tap / pool->taps[1], &inside);
  at[3] = tap_at(b, pool, 1, tap % pool->taps[1], &inside);
  return o3_build_select(b, inside, o3_lw_extract(b, pool->x, pool->rank, at), pool->outside);
}

static void max_body(const o3_body_args_t *in) {
  const image_t *pool = in->context;
  in->results[0] = pool->outside;
  for (int64_t tap = 0; tap < pool->taps[0] * pool->taps[1]; ++tap)
    in->results[0] =
        o3_build2(in->builder, "arith.maximumf", in->results[0], load_tap(in->builder, pool, tap));
}

/* Taps of the window that the mean is over, of which there is always one. */
static MlirValue count_taps(o3_builder_t *b, const image_t *pool) {
  MlirValue total = o3_build_index(b, 1);
  for (int i = 0; i < 2; ++i) {
    MlirValue count = o3_build_index(b, 0), zero = count, one = o3_build_index(b, 1);
    for (int64_t k = 0; k < pool->taps[i]; ++k) {
      MlirValue from =
          o3_build2(b, "arith.subi", tap_position(b, pool, i, k), o3_build_index(b, pool->first[i]));
      MlirValue counts =
          o3_build_cmpi(b, O3_CMPI_ULT, from, o3_build_index(b, pool->end[i] - pool->first[i]));
      count = o3_build2(b, "arith.addi", count, o3_build_select(b, counts, one, zero));
    }
    total = o3_build2(b, "arith.muli", total, count);
  }
  return o3_build2(b, "arith.maxsi", total, o3_build_index(b, 1));
}

static void mean_body(const o3_body_args_t *in) {
  const image_t *pool = in->context;
  o3_builder_t *b = in->builder;
  MlirType element = o3_lw_old_element(pool->op, 0), wide = o3_lw_sum_element(element);
  MlirValue sum = o3_lw_scalar(b, wide, 0);
  for (int64_t tap = 0; tap < pool->taps[0] * pool->taps[1]; ++tap)
    sum = o3_build2(b, "arith.addf", sum, o3_lw_convert(b, load_tap(b, pool, tap), element, wide));
  if (pool->kind == O3_POOL_MEANS) {
    MlirValue count =
        o3_build1(b, "arith.index_cast", mlirIntegerTypeGet(b->context, 64), O3_VALUES(count_taps(b, pool)));
    sum = o3_build2(b, "arith.divf", sum, o3_build1(b, "arith.sitofp", wide, O3_VALUES(count)));
  }
  in->results[0] = o3_lw_convert(b, sum, wide, element);
}

static MlirValue generate(o3_lw_t *lw, const image_t *image, const char *kernel, o3_body_fn_t body) {
  o3_shape_t to;
  o3_lw_result_shape(lw, image->op, 0, &to);
  MlirValue y = o3_lw_generate(lw, &to, o3_lw_new_element(image->op, 0), body, (void *)(uintptr_t)image);
  int64_t window[8];
  for (int i = 0; i < 2; ++i) {
    window[i] = image->taps[i];
    window[2 + i] = image->steps[i];
    window[4 + i] = image->dilations[i];
    window[6 + i] = image->lows[i];
  }
  o3_op_attr_set(o3_value_def(y), "o3.kernel", o3_attr_string(lw->context, kernel));
  o3_op_attr_set(o3_value_def(y), "o3.window", o3_attr_ints(lw->context, 8, window));
  return y;
}

static MlirValue generate_pool(o3_lw_t *lw, const image_t *pool) {
  MlirValue y = generate(lw, pool, "pool", pool->kind == O3_POOL_MAXIMA ? max_body : mean_body);
  const int64_t what[5] = {pool->kind, pool->first[0], pool->first[1], pool->end[0], pool->end[1]};
  o3_op_attr_set(o3_value_def(y), "o3.pool", o3_attr_ints(lw->context, 5, what));
  return y;
}

/* ---- Reading ---- */

static image_t read_image(o3_lw_t *lw, MlirOperation op, MlirValue x, double outside) {
  o3_shape_t from;
  o3_lw_window_t window;
  image_t image = {
      .op = op, .x = x, .outside = o3_lw_scalar(&lw->builder, o3_lw_new_element(op, 0), outside)};
  o3_lw_window_read(op, &window);
  o3_lw_operand_shape(lw, op, 0, &from);
  image.rank = from.rank;
  for (int i = 0; i < 2; ++i) {
    image.sizes[i] = o3_lw_size(lw, from.dims[2 + i]);
    image.taps[i] = window.kernel[i];
    image.steps[i] = window.strides[i];
    image.dilations[i] = window.dilations[i];
    image.lows[i] = window.lows[i];
  }
  return image;
}

o3_status_t o3_lower_pack_last(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  o3_shape_t from;
  image_t pack = read_image(lw, op, operands[0], 0);
  o3_lw_operand_shape(lw, op, 0, &from);
  bool known = o3_expr_is_const(from.dims[1], &pack.channels);
  O3_ASSERT(known, "the layout pass takes images with a constant number of channels only");
  results[0] = generate(lw, &pack, "pack_last", pack_body);
  return NULL;
}

o3_status_t o3_lower_max_pool_last(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                   MlirValue *results) {
  const image_t pool = read_image(lw, op, operands[0], -INFINITY);
  results[0] = generate_pool(lw, &pool);
  return NULL;
}

/* Windows along two dimensions, behind which there may be channels; an image of one window is a plain sum. */
static bool suits(o3_lw_t *lw, MlirOperation op) {
  o3_shape_t from, to;
  o3_lw_window_t window;
  MlirType element = o3_lw_new_element(op, 0);
  const o3_kernel_support_t *kernels = lw->env->machine ? lw->env->machine->kernels : NULL;
  if (!lw->env->opt_level || !kernels || !kernels->pools_in_place) return false;
  if (!mlirTypeIsAF16(element) && !mlirTypeIsABF16(element) && !mlirTypeIsAF32(element)) return false;
  o3_lw_window_read(op, &window);
  o3_lw_operand_shape(lw, op, 0, &from);
  o3_lw_result_shape(lw, op, 0, &to);
  int64_t size, outputs = 1;
  for (int i = 2; i < window.rank; ++i)
    if (window.kernel[i] != 1 || window.strides[i] != 1 || window.lows[i] || window.highs[i]) return false;
  for (int r = 0; r < from.rank; ++r) {
    if (!o3_expr_is_const(from.dims[r], &size) || size < 1) return false;
    if (!o3_expr_is_const(to.dims[r], &size) || size < 1) return false;
    if (r == 2 || r == 3) outputs *= size;
  }
  return (window.rank == 2 || window.rank == 3) && window.kernel[0] * window.kernel[1] <= O3_POOL_MAX_TAPS &&
         outputs > 1;
}

bool o3_lw_pool_in_place(o3_lw_t *lw, MlirOperation op, MlirValue x, MlirValue *y) {
  o3_shape_t from;
  o3_lw_window_t window;
  bool max = o3_op_is(op, "o3.max_pool"), around = o3_op_bool(op, "count_include_pad", false);
  if (!suits(lw, op)) return false;
  image_t pool = read_image(lw, op, x, max ? -INFINITY : 0);
  o3_lw_window_read(op, &window);
  o3_lw_operand_shape(lw, op, 0, &from);
  pool.kind = max ? O3_POOL_MAXIMA : o3_op_bool(op, "sum", false) ? O3_POOL_SUMS : O3_POOL_MEANS;
  for (int i = 0; i < 2; ++i) {
    bool known = o3_expr_is_const(from.dims[2 + i], &pool.end[i]);
    O3_ASSERT(known, "its sizes are constant");
    if (around) pool.end[i] += window.highs[i];
    if (around) pool.first[i] = -window.lows[i];
  }
  *y = generate_pool(lw, &pool);
  return true;
}
