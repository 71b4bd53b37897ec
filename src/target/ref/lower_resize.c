/* Resizing: the nearest element by one gather over all axes; interpolation axis by axis, since it is
 * separable, in f32 (f64 for f64) until the end; two axes at once where that is less to do. Coordinates are
 * f32, as in other implementations, so that ties fall alike. */
#include <math.h>
#include <string.h>

#include "target/ref/window.h"

typedef struct axis {
  int dim;
  MlirValue scale;        /* f32 */
  MlirValue in, in_float; /* size of the input: index, f32 */
  MlirValue out_float;    /* scale * in, f32: not always whole */
  MlirValue out_size;     /* size of the result, f32 */
  MlirValue start, end;   /* region of interest; null unless it is used */
  int64_t times;          /* the scale, if it is a whole number that is known; else 0 */
  bool fits;              /* the result has |times| times the input's elements, whatever these are */
} axis_t;

typedef struct resize {
  MlirOperation op;
  MlirStringRef mode, coordinates, nearest;
  double cubic_a, extrapolation;
  bool exclude_outside, antialias;
  int count;
  axis_t axes[O3_IR_MAX_RANK];
  int current;                    /* interpolation: the axis of this pass */
  MlirValue here[O3_IR_MAX_RANK]; /* and the loops' positions: not to be asked for inside of inner loops */
  MlirValue x;                    /* what it reads */
  int rank;
  MlirType from, to; /* old element types: of x, and of the interpolation */
} resize_t;

/* ---- f32 arithmetic ---- */

typedef o3_builder_t *b_t;
static MlirType f32(b_t b) { return mlirF32TypeGet(b->context); }
static MlirValue num(b_t b, double value) { return o3_build_float(b, f32(b), value); }
static MlirValue add(b_t b, MlirValue x, MlirValue y) { return o3_build2(b, "arith.addf", x, y); }
static MlirValue sub(b_t b, MlirValue x, MlirValue y) { return o3_build2(b, "arith.subf", x, y); }
static MlirValue mul(b_t b, MlirValue x, MlirValue y) { return o3_build2(b, "arith.mulf", x, y); }
static MlirValue quotient(b_t b, MlirValue x, MlirValue y) { return o3_build2(b, "arith.divf", x, y); }
static MlirValue plus(b_t b, MlirValue x, double y) { return add(b, x, num(b, y)); }
static MlirValue times(b_t b, MlirValue x, double y) { return mul(b, x, num(b, y)); }
static MlirValue if_one(b_t b, MlirValue x, MlirValue then, MlirValue otherwise) {
  return o3_build_select(b, o3_build_cmpf(b, O3_CMPF_OEQ, x, num(b, 1)), then, otherwise);
}

static MlirValue to_float(b_t b, MlirValue index) {
  MlirValue wide = o3_build1(b, "arith.index_cast", mlirIntegerTypeGet(b->context, 64), O3_VALUES(index));
  return o3_build1(b, "arith.sitofp", f32(b), O3_VALUES(wide));
}

/* A whole f32 as an index; what no index can hold is cut off (it is clamped to the input anyway). */
static MlirValue to_index(b_t b, MlirValue x) {
  MlirType i64 = mlirIntegerTypeGet(b->context, 64);
  MlirValue wide = o3_lw_convert(b, x, f32(b), i64);
  return o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(wide));
}

static MlirValue clamp_index(b_t b, MlirValue index, MlirValue size) {
  MlirValue last = o3_build2(b, "arith.subi", size, o3_build_index(b, 1));
  MlirValue below = o3_build2(b, "arith.minsi", index, last);
  return o3_build2(b, "arith.maxsi", below, o3_build_index(b, 0));
}

/* ---- Coordinates ---- */

typedef MlirValue (*coordinate_fn_t)(b_t b, const axis_t *axis, MlirValue o);

/* (o + 0.5) / scale - 0.5 */
static MlirValue half_pixel(b_t b, const axis_t *axis, MlirValue o) {
  return plus(b, quotient(b, plus(b, o, 0.5), axis->scale), -0.5);
}

static MlirValue half_pixel_symmetric(b_t b, const axis_t *axis, MlirValue o) {
  MlirValue adjustment = quotient(b, axis->out_size, axis->out_float);
  MlirValue offset = mul(b, times(b, axis->in_float, 0.5), sub(b, num(b, 1), adjustment));
  return add(b, offset, half_pixel(b, axis, o));
}

static MlirValue pytorch_half_pixel(b_t b, const axis_t *axis, MlirValue o) {
  return if_one(b, axis->out_float, num(b, -0.5), half_pixel(b, axis, o));
}

static MlirValue align_corners(b_t b, const axis_t *axis, MlirValue o) {
  MlirValue last = plus(b, axis->in_float, -1), last_out = plus(b, axis->out_float, -1);
  return if_one(b, axis->out_float, num(b, 0), quotient(b, mul(b, o, last), last_out));
}

static MlirValue asymmetric(b_t b, const axis_t *axis, MlirValue o) { return quotient(b, o, axis->scale); }

static MlirValue tf_half_pixel(b_t b, const axis_t *axis, MlirValue o) {
  return quotient(b, plus(b, o, 0.5), axis->scale);
}

static MlirValue crop_and_resize(b_t b, const axis_t *axis, MlirValue o) {
  MlirValue last = plus(b, axis->in_float, -1), last_out = plus(b, axis->out_float, -1);
  MlirValue length = mul(b, sub(b, axis->end, axis->start), last);
  MlirValue inside = quotient(b, mul(b, o, length), last_out);
  return add(b, if_one(b, axis->out_float, times(b, length, 0.5), inside), mul(b, axis->start, last));
}

static const struct {
  const char *name;
  coordinate_fn_t fn;
} COORDINATES[] = {{"half_pixel", half_pixel},
                   {"half_pixel_symmetric", half_pixel_symmetric},
                   {"pytorch_half_pixel", pytorch_half_pixel},
                   {"align_corners", align_corners},
                   {"asymmetric", asymmetric},
                   {"tf_half_pixel_for_nn", tf_half_pixel},
                   {"tf_crop_and_resize", crop_and_resize}};

/* Position in the input of the result's position along the axis. */
static MlirValue coordinate(b_t b, const resize_t *r, const axis_t *axis) {
  MlirValue o = to_float(b, o3_lw_index(b, axis->dim));
  for (size_t i = 0; i < sizeof(COORDINATES) / sizeof(COORDINATES[0]); ++i) {
    if (o3_str_equal(r->coordinates, COORDINATES[i].name)) return COORDINATES[i].fn(b, axis, o);
  }
  return half_pixel(b, axis, o);
}

/* i1: the position is outside of the input, where a crop has the extrapolation value. */
static MlirValue is_outside(b_t b, const axis_t *axis, MlirValue position) {
  MlirValue before = o3_build_cmpf(b, O3_CMPF_OLT, position, num(b, 0));
  MlirValue behind = o3_build_cmpf(b, O3_CMPF_OGT, position, plus(b, axis->in_float, -1));
  return o3_build2(b, "arith.ori", before, behind);
}

/* ---- The nearest element ---- */

static MlirValue rounded(b_t b, const resize_t *r, MlirValue position) {
  if (o3_str_equal(r->nearest, "floor")) return o3_build_unary(b, "math.floor", position);
  if (o3_str_equal(r->nearest, "ceil")) return o3_build_unary(b, "math.ceil", position);
  if (o3_str_equal(r->nearest, "round_prefer_ceil"))
    return o3_build_unary(b, "math.floor", plus(b, position, 0.5));
  return o3_build_unary(b, "math.ceil", plus(b, position, -0.5));
}

static MlirValue extrapolated(b_t b, const resize_t *r, MlirValue outside, MlirValue y) {
  MlirValue value = o3_lw_convert(b, num(b, r->extrapolation), f32(b), r->to);
  return o3_build_select(b, outside, value, y);
}

/* Upscaling by a whole number, asymmetric and with floor, is a division of whole numbers, which costs less
 * than the general way and gives the same as long as f32 holds the position. It stays in the input; with
 * sizes left open nothing after here would see that. */
static MlirValue nearest_position(b_t b, const resize_t *r, const axis_t *axis, MlirValue position) {
  bool divides = axis->times && mlirValueIsNull(axis->start) && o3_str_equal(r->nearest, "floor") &&
                 o3_str_equal(r->coordinates, "asymmetric");
  if (!divides) return clamp_index(b, to_index(b, rounded(b, r, position)), axis->in);
  MlirValue index = o3_build2(b, "arith.divui", o3_lw_index(b, axis->dim), o3_build_index(b, axis->times));
  return axis->fits ? index : clamp_index(b, index, axis->in);
}

static void nearest_body(const o3_body_args_t *in) {
  const resize_t *r = in->context;
  b_t b = in->builder;
  MlirValue positions[O3_IR_MAX_RANK], outside = {0};
  for (int i = 0; i < r->rank; ++i) positions[i] = o3_lw_index(b, i);
  for (int i = 0; i < r->count; ++i) {
    const axis_t *axis = &r->axes[i];
    MlirValue position = coordinate(b, r, axis);
    positions[axis->dim] = nearest_position(b, r, axis, position);
    if (mlirValueIsNull(axis->start)) continue;
    MlirValue here = is_outside(b, axis, position);
    outside = mlirValueIsNull(outside) ? here : o3_build2(b, "arith.ori", outside, here);
  }
  MlirValue y = o3_lw_extract(b, r->x, r->rank, positions);
  in->results[0] = mlirValueIsNull(outside) ? y : extrapolated(b, r, outside, y);
}

/* ---- Interpolation ---- */

/* Convolution weights by distance: 1 - |t|, or Keys' cubic with parameter a. */
static MlirValue linear_weight(b_t b, MlirValue t) {
  MlirValue weight = sub(b, num(b, 1), o3_build_unary(b, "math.absf", t));
  return o3_build2(b, "arith.maximumf", weight, num(b, 0));
}

static MlirValue cubic_weight(b_t b, double a, MlirValue t) {
  MlirValue x = o3_build_unary(b, "math.absf", t);
  /* ((a + 2) x - (a + 3)) x^2 + 1 up to 1, ((a x - 5 a) x + 8 a) x - 4 a up to 2. */
  MlirValue near = plus(b, mul(b, mul(b, plus(b, times(b, x, a + 2), -(a + 3)), x), x), 1);
  MlirValue far = plus(b, mul(b, plus(b, mul(b, plus(b, times(b, x, a), -5 * a), x), 8 * a), x), -4 * a);
  MlirValue tail = o3_build_select(b, o3_build_cmpf(b, O3_CMPF_OLT, x, num(b, 2)), far, num(b, 0));
  return o3_build_select(b, o3_build_cmpf(b, O3_CMPF_OLE, x, num(b, 1)), near, tail);
}

static bool is_cubic(const resize_t *r) { return o3_str_equal(r->mode, "cubic"); }

/* One element's part in the sum: its weight, and the weighted element in the type of the interpolation. */
typedef struct tap {
  MlirValue weight, product;
} tap_t;

static tap_t take(b_t b, const resize_t *r, MlirValue position, MlirValue stretch, MlirValue whole) {
  const axis_t *axis = &r->axes[r->current];
  MlirValue positions[O3_IR_MAX_RANK], distance = sub(b, whole, position);
  if (!mlirValueIsNull(stretch)) distance = mul(b, distance, stretch);
  MlirValue weight = is_cubic(r) ? cubic_weight(b, r->cubic_a, distance) : linear_weight(b, distance);
  MlirValue index = to_index(b, whole);
  if (r->exclude_outside) {
    MlirValue inside = o3_build_cmpi(b, O3_CMPI_ULT, index, axis->in);
    weight = o3_build_select(b, inside, weight, num(b, 0));
  }
  memcpy(positions, r->here, sizeof(positions));
  positions[axis->dim] = clamp_index(b, index, axis->in);
  MlirValue x = o3_lw_convert(b, o3_lw_extract(b, r->x, r->rank, positions), r->from, r->to);
  MlirValue scaled = o3_lw_convert(b, weight, f32(b), r->to);
  return (tap_t){.weight = weight, .product = o3_build2(b, "arith.mulf", scaled, x)};
}

static tap_t join(b_t b, tap_t x, tap_t y) {
  return (tap_t){.weight = add(b, x.weight, y.weight), .product = add(b, x.product, y.product)};
}

/* The taps around the position: 2 or 4 of them. */
static tap_t take_fixed(b_t b, const resize_t *r, MlirValue position) {
  int first = is_cubic(r) ? -1 : 0, last = is_cubic(r) ? 2 : 1;
  MlirValue floor = o3_build_unary(b, "math.floor", position);
  tap_t sum = take(b, r, position, (MlirValue){0}, plus(b, floor, first));
  for (int i = first + 1; i <= last; ++i)
    sum = join(b, sum, take(b, r, position, (MlirValue){0}, plus(b, floor, i)));
  return sum;
}

typedef struct stretched {
  const resize_t *r;
  MlirValue position, stretch, first; /* f32: first tap */
} stretched_t;

static o3_status_t stretched_tap(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                                 MlirValue *next) {
  const stretched_t *s = context;
  tap_t tap = take(b, s->r, s->position, s->stretch, add(b, s->first, to_float(b, index)));
  tap_t sum = join(b, (tap_t){carried[0], carried[1]}, tap);
  next[0] = sum.weight;
  next[1] = sum.product;
  return NULL;
}

/* Antialiasing: when shrinking, the kernel is stretched over all elements that one of the result stands for.
 */
static tap_t take_stretched(b_t b, const resize_t *r, MlirValue position) {
  double radius = is_cubic(r) ? 2 : 1;
  MlirValue stretch = o3_build2(b, "arith.minimumf", r->axes[r->current].scale, num(b, 1));
  MlirValue reach = o3_build_unary(b, "math.ceil", quotient(b, num(b, radius), stretch));
  MlirValue floor = o3_build_unary(b, "math.floor", position);
  stretched_t s = {.r = r, .position = position, .stretch = stretch, .first = sub(b, floor, reach)};
  MlirValue zeros[2] = {num(b, 0), o3_lw_scalar(b, o3_lw_type(r->to), 0)}, results[2];
  o3_for_t loop = {.lower = o3_build_index(b, 0),
                   .upper = to_index(b, plus(b, times(b, reach, 2), 2)),
                   .step = o3_build_index(b, 1),
                   .num_carried = 2,
                   .inits = zeros,
                   .body = stretched_tap,
                   .context = &s};
  o3_status_destroy(o3_build_for(b, &loop, results));
  return (tap_t){results[0], results[1]};
}

static void interpolate_body(const o3_body_args_t *in) {
  resize_t *r = in->context;
  b_t b = in->builder;
  for (int i = 0; i < r->rank; ++i) r->here[i] = o3_lw_index(b, i);
  const axis_t *axis = &r->axes[r->current];
  MlirValue position = coordinate(b, r, axis);
  tap_t sum = r->antialias ? take_stretched(b, r, position) : take_fixed(b, r, position);
  MlirValue y = sum.product;
  if (r->antialias || r->exclude_outside)
    y = quotient(b, sum.product, o3_lw_convert(b, sum.weight, f32(b), r->to));
  in->results[0] = mlirValueIsNull(axis->start) ? y : extrapolated(b, r, is_outside(b, axis, position), y);
}

/* ---- Two axes at once ---- */

/* The nearest position of the axis to a whole one; f32 holds both. */
static MlirValue nearest_inside(b_t b, const axis_t *axis, MlirValue whole) {
  MlirValue last = plus(b, axis->in_float, -1);
  MlirValue at = o3_build2(b, "arith.maxnumf", o3_build2(b, "arith.minnumf", whole, last), num(b, 0));
  MlirValue number = o3_build1(b, "arith.fptosi", mlirIntegerTypeGet(b->context, 32), O3_VALUES(at));
  return o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(number));
}

/* Linear along axis |number|, of what is so along those before it. */
static MlirValue linear_along(b_t b, const resize_t *r, int number, const MlirValue *here) {
  if (number < 0) return o3_lw_convert(b, o3_lw_extract(b, r->x, r->rank, here), r->from, r->to);
  const axis_t *axis = &r->axes[number];
  MlirValue position = coordinate(b, r, axis), sum = {0};
  MlirValue floor = o3_build_unary(b, "math.floor", position), behind = sub(b, position, floor);
  for (int i = 0; i < 2; ++i) {
    MlirValue positions[O3_IR_MAX_RANK];
    memcpy(positions, here, sizeof(positions));
    positions[axis->dim] = nearest_inside(b, axis, i ? plus(b, floor, 1) : floor);
    MlirValue weight = i ? behind : sub(b, num(b, 1), behind);
    MlirValue part = mul(b, weight, linear_along(b, r, number - 1, positions));
    sum = i ? add(b, sum, part) : part;
  }
  return sum;
}

static void linear_body(const o3_body_args_t *in) {
  const resize_t *r = in->context;
  MlirValue here[O3_IR_MAX_RANK];
  for (int i = 0; i < r->rank; ++i) here[i] = o3_lw_index(in->builder, i);
  in->results[0] = linear_along(in->builder, r, r->count - 1, here);
}

/* Integers take what fits and forget the fraction. */
static void narrow_body(const o3_body_args_t *in) {
  const resize_t *r = in->context;
  b_t b = in->builder;
  MlirType to = o3_lw_result_element(r->op, 0), from = r->to;
  MlirValue y = in->args[0];
  if (o3_type_is_integer(to) && !o3_type_is_bool(to) && o3_type_bits(to) < 64) {
    int bits = o3_type_bits(to);
    double low = o3_type_is_unsigned(to) ? 0 : -ldexp(1, bits - 1);
    double high = ldexp(1, o3_type_is_unsigned(to) ? bits : bits - 1) - 1;
    y = o3_build2(b, "arith.maximumf", y, o3_build_float(b, from, low));
    y = o3_build2(b, "arith.minimumf", y, o3_build_float(b, from, high));
  }
  in->results[0] = o3_lw_convert(b, y, from, to);
}

/* ---- The op ---- */

static MlirValue extract_at(o3_lw_t *lw, MlirValue vector, int index) {
  MlirValue position = o3_build_index(&lw->builder, index);
  return o3_lw_extract(&lw->builder, vector, 1, &position);
}

/* Scale |index| of the op as a whole number, or 0. */
static int64_t whole_scale(const o3_lw_t *lw, MlirOperation op, int index) {
  size_t bytes;
  MlirOperation def = o3_value_def(mlirOperationGetOperand(op, 1));
  if (mlirOperationIsNull(def) || !o3_op_is(def, "o3.constant")) return 0;
  const float *scales = o3_weights_data(lw->env->weights, o3_op_attr(def, "value"), &bytes);
  if (!scales || bytes < (size_t)(index + 1) * sizeof(*scales)) return 0;
  float scale = scales[index];
  return scale >= 1 && scale < 1 << 20 && scale == floorf(scale) ? (int64_t)scale : 0;
}

static void read_axes(o3_lw_t *lw, const MlirValue *operands, const o3_shape_t *in, const o3_shape_t *out,
                      resize_t *r) {
  int64_t dims[O3_IR_MAX_RANK];
  b_t b = &lw->builder;
  r->count = o3_op_ints(r->op, "axes", dims, O3_IR_MAX_RANK);
  for (int i = 0; i < r->count; ++i) {
    axis_t *axis = &r->axes[i];
    axis->dim = (int)dims[i];
    axis->scale = extract_at(lw, operands[1], i);
    axis->times = whole_scale(lw, r->op, i);
    MlirAffineExpr all = o3_expr_mul(in->dims[axis->dim], o3_expr_const(lw->context, axis->times));
    axis->fits = axis->times && o3_expr_equal(out->dims[axis->dim], all);
    axis->in = o3_lw_size(lw, in->dims[axis->dim]);
    axis->in_float = to_float(b, axis->in);
    axis->out_float = mul(b, axis->scale, axis->in_float);
    axis->out_size = to_float(b, o3_lw_size(lw, out->dims[axis->dim]));
    if (mlirOperationGetNumOperands(r->op) < 3) continue;
    axis->start = extract_at(lw, operands[2], i);
    axis->end = extract_at(lw, operands[2], r->count + i);
  }
}

/* Whether both axes in one pass cost less, on cards, which read images in place: four loads of what lies in a
 * cache of a card are less than a pass over memory for what is between, unless that is a small part of the
 * result. */
static bool suits_at_once(o3_lw_t *lw, const resize_t *r, const o3_shape_t *in, const o3_shape_t *out) {
  enum { MOST_TIMES = 4, MOST_SIZE = 1 << 23 };
  const o3_kernel_support_t *kernels = lw->env->machine ? lw->env->machine->kernels : NULL;
  int64_t from = 0, to = 0;
  if (!lw->env->opt_level || !kernels || !kernels->pools_in_place || r->count != 2) return false;
  if (!o3_str_equal(r->mode, "linear") || r->antialias || r->exclude_outside || !mlirTypeIsAF32(r->to))
    return false;
  for (int i = 0; i < 2; ++i) {
    int dim = r->axes[i].dim;
    bool known = o3_expr_is_const(in->dims[dim], &from) && o3_expr_is_const(out->dims[dim], &to);
    if (!known || !mlirValueIsNull(r->axes[i].start) || from < 1 || from > MOST_SIZE || to > MOST_SIZE)
      return false;
  }
  return to <= MOST_TIMES * from;
}

static void interpolate(o3_lw_t *lw, resize_t *r, o3_shape_t shape, const o3_shape_t *out,
                        MlirValue *results) {
  MlirType element = o3_lw_old_element(r->op, 0);
  r->from = element;
  r->to = mlirTypeIsAF64(element) ? element : mlirF32TypeGet(lw->context);
  if (suits_at_once(lw, r, &shape, out)) {
    r->x = o3_lw_generate(lw, out, r->to, linear_body, r);
    r->count = 0;
  }
  for (r->current = 0; r->current < r->count; ++r->current) {
    int dim = r->axes[r->current].dim;
    shape.dims[dim] = out->dims[dim];
    r->x = o3_lw_generate(lw, &shape, r->to, interpolate_body, r);
    r->from = r->to;
  }
  results[0] = r->x;
  if (!mlirTypeEqual(element, r->to))
    results[0] = o3_lw_map_shaped(lw, out, o3_lw_type(element), 1, &r->x, out, narrow_body, r);
}

o3_status_t o3_lower_resize(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  o3_shape_t in, out;
  resize_t r = {.op = op,
                .mode = o3_op_string(op, "mode"),
                .coordinates = o3_op_string(op, "coordinates"),
                .nearest = o3_op_string(op, "nearest"),
                .cubic_a = o3_op_float(op, "cubic_a", -0.75),
                .extrapolation = o3_op_float(op, "extrapolation", 0),
                .exclude_outside = o3_op_bool(op, "exclude_outside", false),
                .antialias = o3_op_bool(op, "antialias", false),
                .x = operands[0]};
  o3_lw_operand_shape(lw, op, 0, &in);
  o3_lw_result_shape(lw, op, 0, &out);
  r.rank = in.rank;
  read_axes(lw, operands, &in, &out, &r);
  if (o3_str_equal(r.mode, "nearest")) {
    r.to = o3_lw_old_element(op, 0);
    results[0] = o3_lw_generate(lw, &out, o3_lw_new_element(op, 0), nearest_body, &r);
  } else {
    interpolate(lw, &r, in, &out, results);
  }
  return NULL;
}
