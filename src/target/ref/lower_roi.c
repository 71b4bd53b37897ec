/* Pooling over regions of interest, whose corners are data. */
#include <math.h>

#include "target/ref/body_math.h"
#include "target/ref/lower_index.h"

typedef struct roi {
  MlirOperation op;
  MlirValue x, rois, batches; /* batches: null when they are the rois' first column */
  MlirType element, roi_element, real;
  MlirValue sizes[4], lengths[4]; /* of x: index, and in |real| */
  int64_t pooled[2];
  double scale;
  bool half_pixel, maximum;
  int64_t sampling_ratio;
} roi_t;

/* One element of the result: N C spatial positions, its region along each dimension. */
typedef struct bin {
  const roi_t *roi;
  MlirValue image, channel;      /* index */
  MlirValue start[2], size[2];   /* of the bin, in elements of x */
  MlirValue grid[2], spacing[2]; /* samples: how many (index), and how far apart */
  MlirValue outer;               /* position in the first dimension while the second loop is built */
  MlirValue begins[2], ends[2];  /* max_roi_pool: the bin's elements, index */
} bin_t;

static void read_roi(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, roi_t *roi) {
  o3_shape_t x;
  *roi = (roi_t){.op = op,
                 .x = operands[0],
                 .rois = operands[1],
                 .element = o3_lw_old_element(op, 0),
                 .roi_element = o3_lw_old_element(op, 1),
                 .scale = o3_op_float(op, "scale", 1)};
  roi->real = mlirTypeIsAF64(roi->element) ? roi->element : mlirF32TypeGet(lw->context);
  o3_op_ints(op, "pooled", roi->pooled, 2);
  o3_lw_operand_shape(lw, op, 0, &x);
  for (int i = 0; i < 4; ++i) {
    roi->sizes[i] = o3_lw_size(lw, x.dims[i]);
    roi->lengths[i] = o3_index_to_float(&lw->builder, roi->sizes[i], roi->real);
  }
}

/* Column |column| of this result's region, in |real|. */
static MlirValue corner(o3_builder_t *b, const roi_t *roi, int column) {
  const MlirValue positions[2] = {o3_lw_index(b, 0), o3_build_index(b, column)};
  return o3_lw_convert(b, o3_lw_extract(b, roi->rois, 2, positions), roi->roi_element, roi->real);
}

/* ---- RoiAlign ---- */

/* Regions are x1 y1 x2 y2: dimension 0 (y) has columns 1 and 3. */
static void align_bin(o3_builder_t *b, const roi_t *roi, int dim, bin_t *bin) {
  double offset = roi->half_pixel ? -0.5 : 0;
  MlirValue begin = o3_addf_number(b, o3_mulf_number(b, corner(b, roi, 1 - dim), roi->scale), offset);
  MlirValue end = o3_addf_number(b, o3_mulf_number(b, corner(b, roi, 3 - dim), roi->scale), offset);
  MlirValue length = o3_subf(b, end, begin);
  if (!roi->half_pixel) length = o3_maxf(b, length, o3_number_like(b, length, 1));
  bin->size[dim] = o3_divf(b, length, o3_number_like(b, length, (double)roi->pooled[dim]));
  MlirValue number = o3_index_to_float(b, o3_lw_index(b, 2 + dim), roi->real);
  bin->start[dim] = o3_addf(b, begin, o3_mulf(b, number, bin->size[dim]));
  MlirValue samples = o3_number_like(b, length, (double)roi->sampling_ratio);
  if (roi->sampling_ratio < 1) {
    MlirValue whole = o3_build_unary(b, "math.ceil", bin->size[dim]);
    samples = o3_maxf(b, whole, o3_number_like(b, whole, 0));
  }
  bin->grid[dim] = o3_float_to_index(b, samples);
  bin->spacing[dim] = o3_divf(b, bin->size[dim], samples);
}

/* The elements around a sample along one dimension. */
typedef struct around {
  MlirValue low, high; /* index */
  MlirValue part;      /* of high */
  MlirValue inside;    /* i1 */
} around_t;

static around_t locate(o3_builder_t *b, const bin_t *bin, int dim, MlirValue sample) {
  const roi_t *roi = bin->roi;
  MlirValue number = o3_addf_number(b, o3_index_to_float(b, sample, roi->real), 0.5);
  MlirValue x = o3_addf(b, bin->start[dim], o3_mulf(b, number, bin->spacing[dim]));
  MlirValue length = roi->lengths[2 + dim], last = o3_addf_number(b, length, -1);
  around_t around;
  around.inside = o3_both(b, o3_build_cmpf(b, O3_CMPF_OGE, x, o3_number_like(b, x, -1)),
                          o3_build_cmpf(b, O3_CMPF_OLE, x, length));
  x = o3_minf(b, o3_maxf(b, x, o3_number_like(b, x, 0)), last);
  MlirValue floor = o3_floorf(b, x);
  around.part = o3_subf(b, x, floor);
  around.low = o3_index_clamp(b, o3_float_to_index(b, floor), roi->sizes[2 + dim]);
  MlirValue next = o3_build2(b, "arith.addi", around.low, o3_build_index(b, 1));
  around.high = o3_index_clamp(b, next, roi->sizes[2 + dim]);
  return around;
}

static MlirValue element_at(o3_builder_t *b, const bin_t *bin, MlirValue y, MlirValue x) {
  const MlirValue positions[4] = {bin->image, bin->channel, y, x};
  return o3_lw_convert(b, o3_lw_extract(b, bin->roi->x, 4, positions), bin->roi->element, bin->roi->real);
}

/* The sum of the four weighted neighbours, or for maxima the largest of them; outside 0. */
static MlirValue sample(o3_builder_t *b, const bin_t *bin, const around_t *y, const around_t *x) {
  MlirValue one = o3_number_like(b, y->part, 1), total = {0};
  for (int i = 0; i < 4; ++i) {
    MlirValue y_weight = i & 2 ? y->part : o3_subf(b, one, y->part);
    MlirValue x_weight = i & 1 ? x->part : o3_subf(b, one, x->part);
    MlirValue value = element_at(b, bin, i & 2 ? y->high : y->low, i & 1 ? x->high : x->low);
    MlirValue term = o3_mulf(b, o3_mulf(b, y_weight, x_weight), value);
    total = !total.ptr ? term : bin->roi->maximum ? o3_maxf(b, total, term) : o3_addf(b, total, term);
  }
  MlirValue inside = o3_both(b, y->inside, x->inside);
  return o3_build_select(b, inside, total, o3_number_like(b, total, 0));
}

static o3_status_t inner_sample(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                                MlirValue *next) {
  const bin_t *bin = context;
  around_t y = locate(b, bin, 0, bin->outer), x = locate(b, bin, 1, index);
  MlirValue value = sample(b, bin, &y, &x);
  next[0] = bin->roi->maximum ? o3_maxf(b, carried[0], value) : o3_addf(b, carried[0], value);
  return NULL;
}

static o3_status_t outer_sample(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                                MlirValue *next) {
  bin_t bin = *(const bin_t *)context;
  bin.outer = index;
  o3_for_t loop = {.lower = o3_build_index(b, 0),
                   .upper = bin.grid[1],
                   .step = o3_build_index(b, 1),
                   .num_carried = 1,
                   .inits = carried,
                   .body = inner_sample,
                   .context = &bin};
  return o3_build_for(b, &loop, next);
}

/* Runs the two loops over the samples; they cannot fail to be built. */
static MlirValue over_samples(o3_builder_t *b, bin_t *bin, MlirValue init) {
  MlirValue result;
  o3_for_t loop = {.lower = o3_build_index(b, 0),
                   .upper = bin->grid[0],
                   .step = o3_build_index(b, 1),
                   .num_carried = 1,
                   .inits = &init,
                   .body = outer_sample,
                   .context = bin};
  o3_status_destroy(o3_build_for(b, &loop, &result));
  return result;
}

static void align_body(const o3_body_args_t *in) {
  const roi_t *roi = in->context;
  o3_builder_t *b = in->builder;
  bin_t bin = {.roi = roi, .channel = o3_lw_index(b, 1)};
  MlirValue number = o3_lw_index(b, 0);
  bin.image = o3_lw_wrap_index(b, o3_lw_extract(b, roi->batches, 1, &number), roi->sizes[0]);
  for (int i = 0; i < 2; ++i) align_bin(b, roi, i, &bin);
  MlirValue total = over_samples(b, &bin, o3_build_float(b, roi->real, roi->maximum ? -INFINITY : 0));
  MlirValue count = o3_build2(b, "arith.muli", bin.grid[0], bin.grid[1]), zero = o3_number_like(b, total, 0);
  MlirValue none = o3_build_cmpi(b, O3_CMPI_EQ, count, o3_build_index(b, 0));
  if (!roi->maximum) {
    MlirValue at_least_one = o3_build2(b, "arith.maxsi", count, o3_build_index(b, 1));
    total = o3_divf(b, total, o3_index_to_float(b, at_least_one, roi->real));
  }
  in->results[0] = o3_lw_convert(b, o3_build_select(b, none, zero, total), roi->real, roi->element);
}

o3_status_t o3_lower_roi_align(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  roi_t roi;
  o3_shape_t x, shape;
  read_roi(lw, op, operands, &roi);
  roi.batches = operands[2];
  roi.half_pixel = o3_op_bool(op, "half_pixel", false);
  roi.maximum = o3_str_equal(o3_op_string(op, "mode"), "max");
  roi.sampling_ratio = o3_op_int(op, "sampling_ratio", 0);
  o3_lw_operand_shape(lw, op, 0, &x);
  o3_lw_result_shape(lw, op, 0, &shape);
  o3_lw_check_indices(lw, op, 2, operands[2], 1, &x.dims[0]);
  results[0] = o3_lw_generate(lw, &shape, o3_lw_new_element(op, 0), align_body, &roi);
  return NULL;
}

/* ---- MaxRoiPool ---- */

/* Regions are image x1 y1 x2 y2, in whole elements, both ends included; bins are rounded outwards. */
static void pool_bin(o3_builder_t *b, const roi_t *roi, int dim, bin_t *bin) {
  MlirValue begin = o3_build_unary(b, "math.round", o3_mulf_number(b, corner(b, roi, 2 - dim), roi->scale));
  MlirValue end = o3_build_unary(b, "math.round", o3_mulf_number(b, corner(b, roi, 4 - dim), roi->scale));
  MlirValue length = o3_addf_number(b, o3_subf(b, end, begin), 1);
  length = o3_maxf(b, length, o3_number_like(b, length, 1));
  MlirValue size = o3_divf(b, length, o3_number_like(b, length, (double)roi->pooled[dim]));
  MlirValue number = o3_index_to_float(b, o3_lw_index(b, 2 + dim), roi->real);
  MlirValue from = o3_addf(b, o3_floorf(b, o3_mulf(b, number, size)), begin);
  MlirValue up = o3_build_unary(b, "math.ceil", o3_mulf(b, o3_addf_number(b, number, 1), size));
  MlirValue to = o3_addf(b, up, begin), zero = o3_number_like(b, to, 0), limit = roi->lengths[2 + dim];
  bin->begins[dim] = o3_float_to_index(b, o3_minf(b, o3_maxf(b, from, zero), limit));
  bin->ends[dim] = o3_float_to_index(b, o3_minf(b, o3_maxf(b, to, zero), limit));
}

static o3_status_t inner_max(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                             MlirValue *next) {
  const bin_t *bin = context;
  next[0] = o3_maxf(b, carried[0], element_at(b, bin, bin->outer, index));
  return NULL;
}

static o3_status_t outer_max(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                             MlirValue *next) {
  bin_t bin = *(const bin_t *)context;
  bin.outer = index;
  o3_for_t loop = {.lower = bin.begins[1],
                   .upper = bin.ends[1],
                   .step = o3_build_index(b, 1),
                   .num_carried = 1,
                   .inits = carried,
                   .body = inner_max,
                   .context = &bin};
  return o3_build_for(b, &loop, next);
}

static void max_body(const o3_body_args_t *in) {
  const roi_t *roi = in->context;
  o3_builder_t *b = in->builder;
  bin_t bin = {.roi = roi, .channel = o3_lw_index(b, 1)};
  MlirValue lowest = o3_build_float(b, roi->real, -INFINITY), best;
  bin.image = o3_index_clamp(b, o3_float_to_index(b, corner(b, roi, 0)), roi->sizes[0]);
  for (int i = 0; i < 2; ++i) pool_bin(b, roi, i, &bin);
  o3_for_t loop = {.lower = bin.begins[0],
                   .upper = bin.ends[0],
                   .step = o3_build_index(b, 1),
                   .num_carried = 1,
                   .inits = &lowest,
                   .body = outer_max,
                   .context = &bin};
  o3_status_destroy(o3_build_for(b, &loop, &best));
  MlirValue empty = o3_either(b, o3_build_cmpi(b, O3_CMPI_SGE, bin.begins[0], bin.ends[0]),
                              o3_build_cmpi(b, O3_CMPI_SGE, bin.begins[1], bin.ends[1]));
  MlirValue y = o3_build_select(b, empty, o3_number_like(b, best, 0), best);
  in->results[0] = o3_lw_convert(b, y, roi->real, roi->element);
}

o3_status_t o3_lower_max_roi_pool(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                  MlirValue *results) {
  roi_t roi;
  o3_shape_t shape;
  read_roi(lw, op, operands, &roi);
  o3_lw_result_shape(lw, op, 0, &shape);
  results[0] = o3_lw_generate(lw, &shape, o3_lw_new_element(op, 0), max_body, &roi);
  return NULL;
}
