/* Resize and Upsample. What they have as scales, sizes or a policy becomes one op with an f32 scale for each
 * axis that changes; scales and sizes that only the run knows are tensors until then. */
#include <math.h>
#include <string.h>

#include "normalize/nz.h"

typedef struct resize {
  MlirValue x;
  int count; /* of axes */
  int64_t axes[O3_IR_MAX_RANK];
  MlirAffineExpr in[O3_IR_MAX_RANK], out[O3_IR_MAX_RANK];
  MlirValue scales; /* f32, one for each axis; null: out / in */
  bool crops;       /* tf_crop_and_resize: an axis changes even where its size does not */
  bool known;       /* whether all scales are the constants */
  double values[O3_IR_MAX_RANK];
} resize_t;

static MlirValue f32_vector(o3_nz_t *nz, int count, const double *values) {
  float floats[O3_IR_MAX_RANK];
  int64_t size = count;
  if (o3_nz_failed(nz)) return (MlirValue){0};
  for (int i = 0; i < count; ++i) floats[i] = (float)values[i];
  return o3_nz_constant(
      nz, mlirDenseElementsAttrFloatGet(o3_tensor_type(1, &size, o3_nz_f32(nz)), count, floats));
}

static MlirValue f32_sizes(o3_nz_t *nz, int count, const MlirAffineExpr *sizes) {
  return o3_nz_cast(nz, o3_nz_sizes(nz, count, sizes, false), o3_nz_f32(nz));
}

static o3_status_t read_axes(o3_nz_t *nz, const o3_node_t *node, resize_t *r) {
  int rank = o3_nz_rank(nz, r->x);
  r->count = o3_node_ints(nz, node, "axes", r->axes, O3_IR_MAX_RANK);
  if (!o3_node_has_attr(node, "axes")) {
    r->count = rank;
    for (int i = 0; i < rank; ++i) r->axes[i] = i;
  }
  for (int i = 0; i < r->count; ++i) {
    r->axes[i] = o3_nz_axis(nz, r->axes[i], rank);
    r->in[i] = r->out[i] = o3_nz_dim(nz, r->x, (int)r->axes[i]);
  }
  return NULL;
}

/* Omitted, or given as a tensor without elements. */
static bool is_absent(const o3_nz_t *nz, MlirValue value) {
  if (mlirValueIsNull(value)) return true;
  return o3_nz_rank(nz, value) == 1 && o3_expr_equals_const(o3_nz_dim(nz, value, 0), 0);
}

/* ---- Sizes from scales ---- */

/* The fraction of small numbers that |scale| was rounded from: 0.7f is 7/10. */
static bool find_fraction(float scale, int64_t *top, int64_t *bottom) {
  for (int64_t q = 1; q <= 4096; ++q) {
    double p = nearbyint((double)scale * (double)q);
    if (p > 0x1p30 || (float)(p / (double)q) != scale) continue;
    *top = (int64_t)p;
    *bottom = q;
    return true;
  }
  return false;
}

/* floor(in * scale); false when only the run can tell. */
static bool scaled_size(o3_nz_t *nz, MlirAffineExpr in, float scale, MlirAffineExpr *out) {
  int64_t size, top, bottom;
  if (o3_expr_is_const(in, &size)) {
    *out = o3_expr_const(nz->context, (int64_t)floorf((float)size * scale));
    return true;
  }
  if (!find_fraction(scale, &top, &bottom)) return false;
  MlirAffineExpr product = o3_expr_mul(in, o3_expr_const(nz->context, top));
  *out = o3_expr_floor_div(product, o3_expr_const(nz->context, bottom));
  return true;
}

/* floor(|sizes|), which are f32 numbers, as symbols of the run. */
static o3_status_t bind_floor(o3_nz_t *nz, MlirValue sizes, resize_t *r) {
  MlirValue whole = o3_nz_cast(nz, o3_nz_unary(nz, "o3.floor", sizes), o3_nz_i64(nz));
  int count = o3_nz_bind_sizes(nz, whole, "the sizes of the result", r->out, O3_IR_MAX_RANK);
  if (!o3_nz_failed(nz) && count != r->count)
    return o3_nz_invalid(nz, "%d scales or sizes for %d axes", count, r->count);
  return NULL;
}

static o3_status_t from_scales(o3_nz_t *nz, MlirValue scales, resize_t *r) {
  const o3_fact_t *fact = o3_nz_fact(nz, scales);
  bool sized = true;
  r->scales = o3_nz_cast(nz, scales, o3_nz_f32(nz));
  if (fact->shape.rank != 1 || !o3_expr_equals_const(fact->shape.dims[0], r->count))
    return o3_nz_invalid(nz, "scales must be a vector of %d numbers", r->count);
  r->known = o3_fact_is_const(fact);
  if (r->known) o3_nz_const_floats(nz, scales, "scales", r->values, O3_IR_MAX_RANK);
  for (int i = 0; r->known && i < r->count; ++i) {
    if (!(r->values[i] > 0) || r->values[i] > 0x1p30)
      return o3_nz_invalid(nz, "scale %d is %g, it must be positive", i, r->values[i]);
    sized &= scaled_size(nz, r->in[i], (float)r->values[i], &r->out[i]);
  }
  if (r->known && sized) return NULL;
  return bind_floor(nz, o3_nz_binary(nz, "o3.mul", r->scales, f32_sizes(nz, r->count, r->in)), r);
}

/* ---- Scales from sizes ---- */

static MlirValue ratio(o3_nz_t *nz, int count, const MlirAffineExpr *out, const MlirAffineExpr *in) {
  return o3_nz_binary(nz, "o3.div", f32_sizes(nz, count, out), f32_sizes(nz, count, in));
}

/* One scale for all axes: the smallest or largest of those wanted. Sizes are rounded, halves upwards. */
static o3_status_t keep_aspect(o3_nz_t *nz, const char *policy, resize_t *r) {
  bool larger = strcmp(policy, "not_smaller") == 0, constant = true;
  double scale = larger ? 0 : INFINITY;
  if (!larger && strcmp(policy, "not_larger") != 0)
    return o3_nz_invalid(nz, "keep_aspect_ratio_policy is '%s'; stretch, not_larger or not_smaller expected",
                         policy);
  for (int i = 0; i < r->count; ++i) {
    int64_t in, out;
    constant = constant && o3_expr_is_const(r->in[i], &in) && o3_expr_is_const(r->out[i], &out) && in > 0;
    if (constant)
      scale = larger ? fmax(scale, (double)out / (double)in) : fmin(scale, (double)out / (double)in);
  }
  if (constant) {
    for (int i = 0; i < r->count; ++i) {
      double size = (double)mlirAffineConstantExprGetValue(r->in[i]) * scale;
      r->out[i] = o3_expr_const(nz->context, (int64_t)floor(size + 0.5));
      r->values[i] = scale;
    }
    r->known = true;
    r->scales = f32_vector(nz, r->count, r->values);
    return NULL;
  }
  MlirValue all = ratio(nz, r->count, r->out, r->in);
  MlirValue one = o3_nz_reduce(nz, all, larger ? "max" : "min", 1, (int64_t[]){0}, true);
  o3_shape_t shape = {.rank = 1, .dims = {o3_expr_const(nz->context, r->count)}};
  r->scales = o3_nz_broadcast(nz, one, &shape);
  MlirValue sizes = o3_nz_binary(nz, "o3.mul", r->scales, f32_sizes(nz, r->count, r->in));
  return bind_floor(nz, o3_nz_binary(nz, "o3.add", sizes, o3_nz_like(nz, sizes, 0.5)), r);
}

static o3_status_t from_sizes(o3_nz_t *nz, const o3_node_t *node, MlirValue sizes, resize_t *r) {
  int count = o3_nz_bind_sizes(nz, sizes, "sizes", r->out, O3_IR_MAX_RANK);
  if (o3_nz_failed(nz)) return NULL;
  if (count != r->count) return o3_nz_invalid(nz, "%d sizes for %d axes", count, r->count);
  const char *policy = o3_node_string(nz, node, "keep_aspect_ratio_policy", "stretch");
  return strcmp(policy, "stretch") == 0 ? NULL : keep_aspect(nz, policy, r);
}

/* ---- The op ---- */

/* Axes that stay as they are need no resizing. */
static void drop_unchanged(resize_t *r) {
  int kept = 0;
  for (int i = 0; i < r->count; ++i) {
    bool same_scale = r->known ? r->values[i] == 1 : mlirValueIsNull(r->scales);
    if (!r->crops && same_scale && o3_expr_equal(r->in[i], r->out[i])) continue;
    r->axes[kept] = r->axes[i];
    r->in[kept] = r->in[i];
    r->out[kept] = r->out[i];
    r->values[kept++] = r->values[i];
  }
  r->count = kept;
}

static MlirValue scales_of(o3_nz_t *nz, const resize_t *r) {
  if (r->known) return f32_vector(nz, r->count, r->values);
  return mlirValueIsNull(r->scales) ? ratio(nz, r->count, r->out, r->in) : r->scales;
}

typedef struct modes {
  const char *mode, *coordinates, *nearest;
  double cubic_a, extrapolation;
  bool exclude_outside, antialias;
} modes_t;

static o3_status_t check_text(o3_nz_t *nz, const char *name, const char *text, const char *const *known) {
  for (; *known; ++known) {
    if (strcmp(*known, text) == 0) return NULL;
  }
  return o3_nz_invalid(nz, "%s is '%s', which is not known", name, text);
}

/* Upsample, and Resize of opset 10, count from the corner and round down. */
static o3_status_t read_modes(o3_nz_t *nz, const o3_node_t *node, modes_t *modes) {
  static const char *const MODES[] = {"nearest", "linear", "cubic", NULL};
  static const char *const COORDINATES[] = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
      "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
  static const char *const NEAREST[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
  bool old = node->opset < 11 || strcmp(node->op_type, "Upsample") == 0;
  const char *mode = o3_node_string(nz, node, "mode", "nearest");
  *modes =
      (modes_t){.mode = strcmp(mode, "bilinear") == 0 ? "linear" : mode,
                .coordinates = o3_node_string(nz, node, "coordinate_transformation_mode",
                                              old ? "asymmetric" : "half_pixel"),
                .nearest = o3_node_string(nz, node, "nearest_mode", old ? "floor" : "round_prefer_floor"),
                .cubic_a = o3_node_float(node, "cubic_coeff_a", -0.75),
                .extrapolation = o3_node_float(node, "extrapolation_value", 0),
                .exclude_outside = o3_node_int(node, "exclude_outside", 0) != 0,
                .antialias = o3_node_int(node, "antialias", 0) != 0};
  O3_TRY(check_text(nz, "mode", modes->mode, MODES));
  O3_TRY(check_text(nz, "coordinate_transformation_mode", modes->coordinates, COORDINATES));
  O3_TRY(check_text(nz, "nearest_mode", modes->nearest, NEAREST));
  if (modes->antialias && strcmp(modes->mode, "nearest") == 0)
    return o3_nz_invalid(nz, "antialias is for the modes linear and cubic");
  return NULL;
}

static MlirValue build(o3_nz_t *nz, const resize_t *r, const modes_t *modes, MlirValue roi) {
  o3_fact_t fact = {.element = o3_nz_element(nz, r->x), .shape = o3_nz_fact(nz, r->x)->shape};
  const MlirValue operands[3] = {r->x, scales_of(nz, r), roi};
  MlirValue result;
  for (int i = 0; i < r->count; ++i) fact.shape.dims[r->axes[i]] = r->out[i];
  o3_nz_op_stated(nz, "o3.resize", r->crops ? 3 : 2, operands,
                  O3_ATTRS({"mode", o3_nz_string_attr(nz, modes->mode)},
                           {"coordinates", o3_nz_string_attr(nz, modes->coordinates)},
                           {"nearest", o3_nz_string_attr(nz, modes->nearest)},
                           {"axes", o3_nz_ints_attr(nz, r->count, r->axes)},
                           {"cubic_a", o3_attr_f32(nz->context, modes->cubic_a)},
                           {"extrapolation", o3_attr_f32(nz->context, modes->extrapolation)},
                           {"exclude_outside", o3_attr_bool(nz->context, modes->exclude_outside)},
                           {"antialias", o3_attr_bool(nz->context, modes->antialias)}),
                  1, &fact, &result);
  return result;
}

static o3_status_t check_roi(o3_nz_t *nz, MlirValue roi, const resize_t *r) {
  if (is_absent(nz, roi)) return o3_nz_invalid(nz, "tf_crop_and_resize needs the input roi");
  if (o3_nz_rank(nz, roi) != 1 || !o3_expr_equals_const(o3_nz_dim(nz, roi, 0), 2 * r->count))
    return o3_nz_invalid(nz, "roi must be a vector of %d numbers: starts, then ends", 2 * r->count);
  return NULL;
}

static o3_status_t convert(o3_nz_t *nz, o3_node_t *node, MlirValue roi, MlirValue scales, MlirValue sizes) {
  resize_t r = {.x = o3_node_input(node, 0)};
  modes_t modes;
  O3_TRY(read_modes(nz, node, &modes));
  O3_TRY(read_axes(nz, node, &r));
  if (o3_nz_failed(nz)) return NULL;
  r.crops = strcmp(modes.coordinates, "tf_crop_and_resize") == 0;
  if (r.crops) O3_TRY(check_roi(nz, roi, &r));
  if (is_absent(nz, scales) == is_absent(nz, sizes))
    return o3_nz_invalid(nz, "either scales or sizes must be given");
  O3_TRY(is_absent(nz, sizes) ? from_scales(nz, scales, &r) : from_sizes(nz, node, sizes, &r));
  if (o3_nz_failed(nz)) return NULL;
  drop_unchanged(&r);
  MlirValue corners = r.crops ? o3_nz_cast(nz, roi, o3_nz_f32(nz)) : (MlirValue){0};
  node->outputs[0] = r.count ? build(nz, &r, &modes, corners) : r.x;
  return NULL;
}

/* Opset 10 has x and scales only. */
o3_status_t o3_onnx_resize(o3_nz_t *nz, o3_node_t *node) {
  MlirValue none = {0};
  if (node->opset < 11) return convert(nz, node, none, o3_node_input(node, 1), none);
  return convert(nz, node, o3_node_input(node, 1), o3_node_input(node, 2), o3_node_input(node, 3));
}

/* Before opset 7 there is one number for each of the two dimensions of an image. */
static o3_status_t legacy_scales(o3_nz_t *nz, const o3_node_t *node, double *values, int *count) {
  static const char *const NAMES[] = {"height_scale", "width_scale"};
  int rank = o3_nz_rank(nz, o3_node_input(node, 0));
  if (rank != 4) return o3_nz_invalid(nz, "an input of rank %d, 4 expected before opset 7", rank);
  values[0] = values[1] = 1;
  for (int i = 0; i < 2; ++i) {
    if (!o3_node_has_attr(node, NAMES[i])) return o3_nz_invalid(nz, "the attribute %s is missing", NAMES[i]);
    values[2 + i] = o3_node_float(node, NAMES[i], 1);
  }
  *count = rank;
  return NULL;
}

/* Scales were an attribute before opset 9. */
o3_status_t o3_onnx_upsample(o3_nz_t *nz, o3_node_t *node) {
  double values[O3_IR_MAX_RANK];
  MlirValue none = {0};
  if (node->opset >= 9) return convert(nz, node, none, o3_node_input(node, 1), none);
  int count = o3_node_floats(nz, node, "scales", values, O3_IR_MAX_RANK);
  if (node->opset < 7) O3_TRY(legacy_scales(nz, node, values, &count));
  return convert(nz, node, none, f32_vector(nz, count, values), none);
}
