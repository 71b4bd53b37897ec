/* Ops of detectors and spatial transformers. */
#include <math.h>
#include <string.h>

#include "normalize/nz_attention.h"
#include "normalize/onnx_window.h"

static MlirAffineExpr number(const o3_nz_t *nz, int64_t value) { return o3_expr_const(nz->context, value); }

static MlirValue as_scalar(o3_nz_t *nz, MlirValue x) { return o3_nz_reshape(nz, x, &(o3_shape_t){0}); }

/* ---- Sampling ---- */

/* "bilinear" and "bicubic" are the names before opset 20. */
static const char *sample_mode(o3_nz_t *nz, const o3_node_t *node) {
  static const char *const NAMES[][2] = {{"bilinear", "linear"},
                                         {"linear", "linear"},
                                         {"bicubic", "cubic"},
                                         {"cubic", "cubic"},
                                         {"nearest", "nearest"}};
  const char *mode = o3_node_string(nz, node, "mode", "linear");
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i) {
    if (strcmp(NAMES[i][0], mode) == 0) return NAMES[i][1];
  }
  o3_nz_fail(nz, o3_nz_invalid(nz, "mode is '%s'; linear, nearest or cubic expected", mode));
  return "linear";
}

static const char *sample_padding(o3_nz_t *nz, const o3_node_t *node) {
  const char *padding = o3_node_string(nz, node, "padding_mode", "zeros");
  bool known =
      strcmp(padding, "zeros") == 0 || strcmp(padding, "border") == 0 || strcmp(padding, "reflection") == 0;
  if (!known)
    o3_nz_fail(nz, o3_nz_invalid(nz, "padding_mode is '%s'; zeros, border or reflection expected", padding));
  return padding;
}

o3_status_t o3_onnx_grid_sample(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), grid = o3_node_input(node, 1);
  int rank = o3_nz_rank(nz, x);
  o3_fact_t fact = {.element = o3_nz_element(nz, x), .shape.rank = rank};
  if (rank < 3 || o3_nz_rank(nz, grid) != rank)
    return o3_nz_invalid(nz, "input and grid of ranks %d and %d, equal ones of at least 3 expected", rank,
                         o3_nz_rank(nz, grid));
  bool fits =
      o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, grid, 0), o3_nz_dim(nz, x, 0), nz->who) &&
      o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, grid, rank - 1), number(nz, rank - 2), nz->who);
  if (!fits)
    return o3_nz_invalid(nz, "the grid needs the input's batch size first and %d coordinates last", rank - 2);
  for (int i = 0; i < rank; ++i)
    fact.shape.dims[i] = i < 2 ? o3_nz_dim(nz, x, i) : o3_nz_dim(nz, grid, i - 1);
  bool align = o3_node_int(node, "align_corners", 0) != 0;
  o3_nz_op_stated(nz, "o3.grid_sample", O3_VALUES(x, grid),
                  O3_ATTRS({"mode", o3_nz_string_attr(nz, sample_mode(nz, node))},
                           {"padding", o3_nz_string_attr(nz, sample_padding(nz, node))},
                           {"align_corners", o3_attr_bool(nz->context, align)}),
                  1, &fact, node->outputs);
  return NULL;
}

/* (2 i + 1 - size) / size, or (2 i + 1 - size) / (size - 1) with aligned corners: -1 .. 1 along |axis|. */
static MlirValue ramp(o3_nz_t *nz, int rank, int axis, MlirAffineExpr size, bool align, MlirType element) {
  MlirAffineExpr one = number(nz, 1), less = o3_expr_sub(size, one);
  MlirValue i = o3_nz_positions(nz, rank, axis, size),
            twice = o3_nz_binary(nz, "o3.mul", i, o3_nz_like(nz, i, 2));
  MlirValue top = o3_nz_binary(nz, "o3.sub", twice, o3_nz_sizes(nz, 1, &less, true));
  MlirValue bottom = o3_nz_sizes(nz, 1, align ? &less : &size, true);
  bottom = o3_nz_binary(nz, "o3.max", bottom, o3_nz_like(nz, bottom, 1));
  return o3_nz_binary(nz, "o3.div", o3_nz_cast(nz, top, element), o3_nz_cast(nz, bottom, element));
}

/* theta (N, d, d + 1): column |column| as N 1 ... 1 d. */
static MlirValue column(o3_nz_t *nz, MlirValue theta, int column, int spatial) {
  o3_shape_t shape = {.rank = spatial + 2, .dims = {o3_nz_dim(nz, theta, 0)}};
  for (int i = 1; i <= spatial; ++i) shape.dims[i] = number(nz, 1);
  shape.dims[spatial + 1] = number(nz, spatial);
  return o3_nz_reshape(nz, o3_nz_slice(nz, theta, 2, number(nz, column), number(nz, 1)), &shape);
}

/* Each position of the grid, last dimension first, times theta. */
o3_status_t o3_onnx_affine_grid(o3_nz_t *nz, o3_node_t *node) {
  MlirAffineExpr sizes[O3_IR_MAX_RANK];
  MlirValue theta = o3_node_input(node, 0);
  int count = o3_nz_bind_sizes(nz, o3_node_input(node, 1), "size", sizes, O3_IR_MAX_RANK),
      spatial = count - 2;
  bool align = o3_node_int(node, "align_corners", 0) != 0;
  if (o3_nz_failed(nz)) return NULL;
  if (spatial < 1 || spatial > 3 || o3_nz_rank(nz, theta) != 3)
    return o3_nz_invalid(nz, "theta of rank %d for %d sizes", o3_nz_rank(nz, theta), count);
  bool fits =
      o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, theta, 0), sizes[0], nz->who) &&
      o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, theta, 1), number(nz, spatial), nz->who) &&
      o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, theta, 2), number(nz, spatial + 1), nz->who);
  if (!fits) return o3_nz_invalid(nz, "theta must have the shape N x %d x %d", spatial, spatial + 1);
  MlirType element = o3_nz_element(nz, theta);
  MlirValue sum = column(nz, theta, spatial, spatial);
  for (int i = 0; i < spatial; ++i) {
    int dim = spatial - 1 - i;
    MlirValue x = ramp(nz, spatial + 2, 1 + dim, sizes[2 + dim], align, element);
    sum = o3_nz_binary(nz, "o3.add", o3_nz_binary(nz, "o3.mul", column(nz, theta, i, spatial), x), sum);
  }
  node->outputs[0] = sum;
  return NULL;
}

/* ---- Regions of interest ---- */

static o3_status_t roi_shape(o3_nz_t *nz, MlirValue x, MlirValue rois, int64_t columns, const int64_t *pooled,
                             o3_fact_t *fact) {
  if (o3_nz_rank(nz, x) != 4 || o3_nz_rank(nz, rois) != 2)
    return o3_nz_invalid(nz, "input and regions of ranks %d and %d, 4 and 2 expected", o3_nz_rank(nz, x),
                         o3_nz_rank(nz, rois));
  if (!o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, rois, 1), number(nz, columns), nz->who))
    return o3_nz_invalid(nz, "regions must have %lld columns", (long long)columns);
  if (pooled[0] < 1 || pooled[1] < 1)
    return o3_nz_invalid(nz, "a result of %lld x %lld elements a region", (long long)pooled[0],
                         (long long)pooled[1]);
  *fact = (o3_fact_t){.element = o3_nz_element(nz, x),
                      .shape = {.rank = 4,
                                .dims = {o3_nz_dim(nz, rois, 0), o3_nz_dim(nz, x, 1), number(nz, pooled[0]),
                                         number(nz, pooled[1])}}};
  return NULL;
}

/* Opset 16 made half_pixel the default. */
o3_status_t o3_onnx_roi_align(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), rois = o3_node_input(node, 1), batches = o3_node_input(node, 2);
  const int64_t pooled[2] = {o3_node_int(node, "output_height", 1), o3_node_int(node, "output_width", 1)};
  const char *mode = o3_node_string(nz, node, "mode", "avg");
  const char *coordinates = o3_node_string(nz, node, "coordinate_transformation_mode",
                                           node->opset < 16 ? "output_half_pixel" : "half_pixel");
  o3_fact_t fact;
  O3_TRY(roi_shape(nz, x, rois, 4, pooled, &fact));
  if (o3_nz_rank(nz, batches) != 1 ||
      !o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, batches, 0), fact.shape.dims[0], nz->who))
    return o3_nz_invalid(nz, "batch_indices must have one entry for each region");
  o3_nz_op_stated(
      nz, "o3.roi_align", O3_VALUES(x, rois, batches),
      O3_ATTRS({"mode", o3_nz_string_attr(nz, mode)}, {"pooled", o3_nz_ints_attr(nz, 2, pooled)},
               {"scale", o3_attr_f32(nz->context, o3_node_float(node, "spatial_scale", 1))},
               {"half_pixel", o3_attr_bool(nz->context, strcmp(coordinates, "half_pixel") == 0)},
               {"sampling_ratio", o3_attr_i64(nz->context, o3_node_int(node, "sampling_ratio", 0))}),
      1, &fact, node->outputs);
  return NULL;
}

o3_status_t o3_onnx_max_roi_pool(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), rois = o3_node_input(node, 1);
  int64_t pooled[2];
  o3_fact_t fact;
  if (o3_node_ints(nz, node, "pooled_shape", pooled, 2) != 2)
    return o3_nz_invalid(nz, "pooled_shape must have two entries");
  O3_TRY(roi_shape(nz, x, rois, 5, pooled, &fact));
  o3_nz_op_stated(nz, "o3.max_roi_pool", O3_VALUES(x, rois),
                  O3_ATTRS({"pooled", o3_nz_ints_attr(nz, 2, pooled)},
                           {"scale", o3_attr_f32(nz->context, o3_node_float(node, "spatial_scale", 1))}),
                  1, &fact, node->outputs);
  return NULL;
}

static MlirValue scalar_or(o3_nz_t *nz, const o3_node_t *node, int index, MlirType element, double fallback) {
  if (!o3_node_has_input(node, index)) return o3_nz_scalar(nz, element, fallback);
  return o3_nz_cast(nz, as_scalar(nz, o3_node_input(node, index)), element);
}

/* Without max_output_boxes_per_class nothing is selected, without score_threshold everything qualifies. */
o3_status_t o3_onnx_non_max_suppression(o3_nz_t *nz, o3_node_t *node) {
  MlirValue boxes = o3_node_input(node, 0), scores = o3_node_input(node, 1);
  MlirType element = o3_nz_element(nz, boxes);
  if (o3_nz_rank(nz, boxes) != 3 || o3_nz_rank(nz, scores) != 3)
    return o3_nz_invalid(nz, "boxes and scores of ranks %d and %d, 3 expected", o3_nz_rank(nz, boxes),
                         o3_nz_rank(nz, scores));
  bool fits =
      o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, boxes, 0), o3_nz_dim(nz, scores, 0), nz->who) &&
      o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, boxes, 1), o3_nz_dim(nz, scores, 2), nz->who) &&
      o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, boxes, 2), number(nz, 4), nz->who);
  if (!fits) return o3_nz_invalid(nz, "boxes must be N x B x 4 where scores are N x C x B");
  MlirValue most = scalar_or(nz, node, 2, o3_nz_i64(nz), 0);
  MlirValue overlap = scalar_or(nz, node, 3, element, 0);
  MlirValue least = scalar_or(nz, node, 4, o3_nz_element(nz, scores), -INFINITY);
  o3_fact_t fact = {.element = o3_nz_i64(nz),
                    .shape = {.rank = 2, .dims = {o3_symbols_data(nz->symbols, nz->who), number(nz, 3)}}};
  O3_TRY_ALLOC(fact.shape.dims[0].ptr);
  bool centered = o3_node_int(node, "center_point_box", 0) != 0;
  o3_nz_op_stated(nz, "o3.nms", O3_VALUES(boxes, scores, most, overlap, least),
                  O3_ATTRS({"centered", o3_attr_bool(nz->context, centered)}), 1, &fact, node->outputs);
  return NULL;
}

/* ---- Deformable convolution ---- */

/* The sampled columns (N, C * kernel, spatial...) as the input of a 1x1 convolution. */
static MlirValue contract_columns(o3_nz_t *nz, const o3_node_t *node, const o3_window_t *window,
                                  MlirValue columns, MlirValue w) {
  int64_t ones[O3_IR_MAX_RANK], zeros[2 * O3_IR_MAX_RANK] = {0};
  int rank = window->rank, count = o3_node_has_input(node, 3) ? 3 : 2;
  o3_shape_t shape = {.rank = rank + 2, .dims = {o3_nz_dim(nz, w, 0), o3_nz_dim(nz, w, 1)}};
  for (int i = 0; i < rank; ++i) {
    ones[i] = 1;
    shape.dims[1] = o3_expr_mul(shape.dims[1], number(nz, window->kernel[i]));
    shape.dims[2 + i] = number(nz, 1);
  }
  const MlirValue operands[3] = {columns, o3_nz_reshape(nz, w, &shape), o3_node_input(node, 3)};
  return o3_nz_op(
      nz, "o3.conv", count, operands,
      O3_ATTRS({"strides", o3_nz_ints_attr(nz, rank, ones)}, {"dilations", o3_nz_ints_attr(nz, rank, ones)},
               {"pads", o3_nz_ints_attr(nz, 2 * rank, zeros)},
               {"group", o3_attr_i64(nz->context, o3_node_int(node, "group", 1))}));
}

static o3_status_t check_offsets(o3_nz_t *nz, MlirValue offset, int64_t channels, int rank,
                                 const char *what) {
  if (o3_nz_rank(nz, offset) == rank &&
      o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, offset, 1), number(nz, channels), nz->who))
    return NULL;
  return o3_nz_invalid(nz, "%s must have rank %d and %lld channels", what, rank, (long long)channels);
}

/* Inputs: x, w, offset, bias, mask. */
o3_status_t o3_onnx_deform_conv(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), w = o3_node_input(node, 1), offset = o3_node_input(node, 2), columns;
  int64_t groups = o3_node_int(node, "offset_group", 1), volume = groups;
  o3_window_t window;
  O3_TRY(o3_window_read(nz, node, x, w, &window));
  if (o3_nz_failed(nz)) return NULL;
  int rank = window.rank, count = o3_node_has_input(node, 4) ? 3 : 2;
  if (window.symbolic || groups < 1)
    return o3_nz_invalid(nz, "pads and offset_group must be positive constants");
  o3_fact_t fact = {.element = o3_nz_element(nz, x), .shape = o3_nz_fact(nz, offset)->shape};
  fact.shape.dims[1] = o3_nz_dim(nz, x, 1);
  for (int i = 0; i < rank; ++i) {
    volume *= window.kernel[i];
    fact.shape.dims[1] = o3_expr_mul(fact.shape.dims[1], number(nz, window.kernel[i]));
  }
  O3_TRY(check_offsets(nz, offset, volume * rank, rank + 2, "the offset"));
  if (count > 2) O3_TRY(check_offsets(nz, o3_node_input(node, 4), volume, rank + 2, "the mask"));
  const MlirValue operands[3] = {x, offset, o3_node_input(node, 4)};
  o3_nz_op_stated(nz, "o3.deform_columns", count, operands,
                  O3_ATTRS({"kernel", o3_nz_ints_attr(nz, rank, window.kernel)},
                           {"strides", o3_nz_ints_attr(nz, rank, window.strides)},
                           {"dilations", o3_nz_ints_attr(nz, rank, window.dilations)},
                           {"pads", o3_nz_ints_attr(nz, 2 * rank, window.pads)},
                           {"offset_group", o3_attr_i64(nz->context, groups)}),
                  1, &fact, &columns);
  node->outputs[0] = contract_columns(nz, node, &window, columns, w);
  return NULL;
}

/* ---- Images ---- */

static MlirValue size_scalar(o3_nz_t *nz, MlirAffineExpr size) { return o3_nz_sizes(nz, 1, &size, true); }

typedef struct col2im {
  int rank;
  MlirAffineExpr image[O3_IR_MAX_RANK], block[O3_IR_MAX_RANK], counts[O3_IR_MAX_RANK], padded[O3_IR_MAX_RANK];
  int64_t strides[O3_IR_MAX_RANK], dilations[O3_IR_MAX_RANK], pads[2 * O3_IR_MAX_RANK];
} col2im_t;

static o3_status_t read_list(o3_nz_t *nz, const o3_node_t *node, const char *name, int count,
                             int64_t fallback, int64_t *values) {
  int found = o3_node_ints(nz, node, name, values, 2 * O3_IR_MAX_RANK);
  if (found && found != count) return o3_nz_invalid(nz, "%s has %d entries, %d expected", name, found, count);
  for (int i = found; i < count; ++i) values[i] = fallback;
  return NULL;
}

/* floor((padded - (block - 1) * dilation - 1) / stride) + 1 windows along each dimension. */
static o3_status_t read_col2im(o3_nz_t *nz, const o3_node_t *node, col2im_t *c) {
  int64_t strides[2 * O3_IR_MAX_RANK], dilations[2 * O3_IR_MAX_RANK];
  c->rank = o3_nz_bind_sizes(nz, o3_node_input(node, 1), "image_shape", c->image, O3_IR_MAX_RANK);
  int count = o3_nz_bind_sizes(nz, o3_node_input(node, 2), "block_shape", c->block, O3_IR_MAX_RANK);
  if (o3_nz_failed(nz)) return NULL;
  if (count != c->rank)
    return o3_nz_invalid(nz, "image_shape has %d entries, block_shape %d", c->rank, count);
  O3_TRY(read_list(nz, node, "strides", c->rank, 1, strides));
  O3_TRY(read_list(nz, node, "dilations", c->rank, 1, dilations));
  O3_TRY(read_list(nz, node, "pads", 2 * c->rank, 0, c->pads));
  for (int i = 0; i < c->rank; ++i) {
    c->strides[i] = strides[i];
    c->dilations[i] = dilations[i];
    c->padded[i] = o3_expr_add(c->image[i], number(nz, c->pads[i] + c->pads[c->rank + i]));
    MlirAffineExpr reach = o3_expr_mul(o3_expr_sub(c->block[i], number(nz, 1)), number(nz, dilations[i]));
    MlirAffineExpr room = o3_expr_sub(o3_expr_sub(c->padded[i], reach), number(nz, 1));
    if (!o3_symbols_require_nonnegative(nz->symbols, room, nz->who))
      return o3_nz_invalid(nz, "the block is larger than the padded image in dimension %d", i);
    c->counts[i] = o3_expr_add(o3_expr_floor_div(room, number(nz, strides[i])), number(nz, 1));
  }
  return NULL;
}

/* Flat position in the padded image of each block position and window: block... x windows..., joined into
 * one. */
static MlirValue flat_positions(o3_nz_t *nz, const col2im_t *c) {
  int rank = 2 * c->rank;
  MlirValue flat = o3_nz_scalar(nz, o3_nz_i64(nz), 0);
  o3_shape_t shape = {.rank = rank}, joined = {.rank = 1, .dims = {number(nz, 1)}};
  for (int i = 0; i < c->rank; ++i) {
    MlirValue start = o3_nz_positions(nz, rank, c->rank + i, c->counts[i]);
    MlirValue tap = o3_nz_positions(nz, rank, i, c->block[i]);
    start = o3_nz_binary(nz, "o3.mul", start, o3_nz_like(nz, start, (double)c->strides[i]));
    tap = o3_nz_binary(nz, "o3.mul", tap, o3_nz_like(nz, tap, (double)c->dilations[i]));
    flat = o3_nz_binary(nz, "o3.mul", flat, size_scalar(nz, c->padded[i]));
    flat = o3_nz_binary(nz, "o3.add", flat, o3_nz_binary(nz, "o3.add", start, tap));
    shape.dims[i] = c->block[i];
    shape.dims[c->rank + i] = c->counts[i];
    joined.dims[0] = o3_expr_mul(joined.dims[0], o3_expr_mul(c->block[i], c->counts[i]));
  }
  return o3_nz_reshape(nz, o3_nz_broadcast(nz, flat, &shape), &joined);
}

static MlirValue cut_pads(o3_nz_t *nz, const col2im_t *c, MlirValue y) {
  MlirAffineExpr lows[O3_IR_MAX_RANK], highs[O3_IR_MAX_RANK];
  bool any = false;
  lows[0] = lows[1] = highs[0] = highs[1] = number(nz, 0);
  for (int i = 0; i < c->rank; ++i) {
    lows[2 + i] = number(nz, -c->pads[i]);
    highs[2 + i] = number(nz, -c->pads[c->rank + i]);
    any |= c->pads[i] || c->pads[c->rank + i];
  }
  return any ? o3_nz_pad(nz, y, lows, highs, o3_nz_like(nz, y, 0)) : y;
}

/* Every element is added to where it came from, in an image with its pads, which are then cut off. */
o3_status_t o3_onnx_col2im(o3_nz_t *nz, o3_node_t *node) {
  col2im_t c = {0};
  MlirValue x = o3_node_input(node, 0);
  if (o3_nz_rank(nz, x) != 3) return o3_nz_invalid(nz, "input of rank %d, 3 expected", o3_nz_rank(nz, x));
  O3_TRY(read_col2im(nz, node, &c));
  if (o3_nz_failed(nz)) return NULL;
  MlirAffineExpr volume = number(nz, 1), area = number(nz, 1), n = o3_nz_dim(nz, x, 0);
  for (int i = 0; i < c.rank; ++i) {
    volume = o3_expr_mul(volume, c.block[i]);
    area = o3_expr_mul(area, c.padded[i]);
  }
  MlirAffineExpr channels = o3_expr_floor_div(o3_nz_dim(nz, x, 1), volume), images = o3_expr_mul(n, channels);
  MlirValue positions = flat_positions(nz, &c);
  o3_shape_t list = {.rank = 2, .dims = {images, o3_nz_dim(nz, positions, 0)}};
  o3_shape_t flat = {.rank = 2, .dims = {images, area}};
  MlirValue updates = o3_nz_reshape(nz, x, &list), indices = o3_nz_broadcast(nz, positions, &list);
  MlirValue zeros = o3_nz_filled(nz, &flat, o3_nz_element(nz, x), 0);
  MlirValue sums =
      o3_nz_op(nz, "o3.scatter_elements", O3_VALUES(zeros, indices, updates),
               O3_ATTRS({"axis", o3_attr_i64(nz->context, 1)}, {"reduction", o3_nz_string_attr(nz, "add")}));
  o3_shape_t shape = {.rank = c.rank + 2, .dims = {n, channels}};
  for (int i = 0; i < c.rank; ++i) shape.dims[2 + i] = c.padded[i];
  node->outputs[0] = cut_pads(nz, &c, o3_nz_reshape(nz, sums, &shape));
  return NULL;
}

/* Half of the difference goes to the begin, rounded towards zero, whether elements are added or taken. */
o3_status_t o3_onnx_center_crop_pad(o3_nz_t *nz, o3_node_t *node) {
  MlirAffineExpr wanted[O3_IR_MAX_RANK], lows[O3_IR_MAX_RANK], highs[O3_IR_MAX_RANK];
  MlirValue x = o3_node_input(node, 0);
  int64_t axes[O3_IR_MAX_RANK];
  int rank = o3_nz_rank(nz, x), count = o3_node_ints(nz, node, "axes", axes, O3_IR_MAX_RANK);
  int sizes = o3_nz_bind_sizes(nz, o3_node_input(node, 1), "shape", wanted, O3_IR_MAX_RANK);
  if (o3_nz_failed(nz)) return NULL;
  if (!o3_node_has_attr(node, "axes")) {
    count = rank;
    for (int i = 0; i < rank; ++i) axes[i] = i;
  }
  if (sizes != count) return o3_nz_invalid(nz, "shape has %d entries for %d axes", sizes, count);
  for (int i = 0; i < rank; ++i) lows[i] = highs[i] = number(nz, 0);
  for (int i = 0; i < count; ++i) {
    int axis = o3_nz_axis(nz, axes[i], rank);
    MlirAffineExpr zero = number(nz, 0), two = number(nz, 2);
    MlirAffineExpr more = o3_expr_sub(wanted[i], o3_nz_dim(nz, x, axis));
    MlirAffineExpr grown = o3_symbols_max(nz->symbols, more, zero);
    MlirAffineExpr shrunk = o3_symbols_max(nz->symbols, o3_expr_sub(zero, more), zero);
    lows[axis] = o3_expr_sub(o3_expr_floor_div(grown, two), o3_expr_floor_div(shrunk, two));
    highs[axis] = o3_expr_sub(more, lows[axis]);
  }
  node->outputs[0] = o3_nz_pad(nz, x, lows, highs, o3_nz_like(nz, x, 0));
  return NULL;
}

o3_status_t o3_onnx_image_decoder(o3_nz_t *nz, o3_node_t *node) {
  (void)node;
  return o3_nz_unsupported(nz, "compressed images are decoded outside of the model: give it the pixels");
}

/* ---- Determinants ---- */

o3_status_t o3_onnx_det(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  o3_fact_t fact = {.element = o3_nz_element(nz, x), .shape = o3_nz_fact(nz, x)->shape};
  int rank = fact.shape.rank;
  if (rank < 2 ||
      !o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, x, rank - 1), o3_nz_dim(nz, x, rank - 2), nz->who))
    return o3_nz_invalid(nz, "the last two dimensions must make a square matrix");
  fact.shape.rank -= 2;
  o3_nz_op_stated(nz, "o3.det", O3_VALUES(x), 0, NULL, 1, &fact, node->outputs);
  return NULL;
}
