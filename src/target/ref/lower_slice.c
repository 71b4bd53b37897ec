/* Slices and padding. What is a box of the input, or puts one into the output, is a tensor.extract_slice or
 * insert_slice, which cost no arithmetic; steps backwards and padding by copies of the input read element by
 * element. */
#include <stdlib.h>
#include <string.h>

#include "target/ref/lowering.h"

/* ---- Boxes ---- */

/* Offsets, sizes and strides as MLIR wants them: numbers where they are known, index values where not. */
typedef struct box {
  int rank, num_dynamic[3];
  int64_t numbers[3][O3_IR_MAX_RANK];
  MlirValue dynamic[3][O3_IR_MAX_RANK];
} box_t;

enum { OFFSETS, SIZES, STRIDES };

static void box_number(box_t *box, int what, int dim, int64_t number) { box->numbers[what][dim] = number; }

static void box_value(box_t *box, int what, int dim, MlirValue value) {
  box->numbers[what][dim] = mlirShapedTypeGetDynamicSize();
  box->dynamic[what][box->num_dynamic[what]++] = value;
}

static void box_expr(o3_lw_t *lw, box_t *box, int what, int dim, MlirAffineExpr expr) {
  int64_t number;
  if (o3_expr_is_const(expr, &number)) {
    box_number(box, what, dim, number);
  } else {
    box_value(box, what, dim, o3_lw_size(lw, expr));
  }
}

static MlirValue build_box(o3_lw_t *lw, const char *name, MlirType type, int count, const MlirValue *tensors,
                           const box_t *box) {
  MlirValue operands[2 + 3 * O3_IR_MAX_RANK];
  int32_t segments[5];
  int num_segments = 0, total = 0;
  for (int i = 0; i < count; ++i) {
    operands[total++] = tensors[i];
    segments[num_segments++] = 1;
  }
  for (int what = OFFSETS; what <= STRIDES; ++what) {
    for (int i = 0; i < box->num_dynamic[what]; ++i) operands[total++] = box->dynamic[what][i];
    segments[num_segments++] = box->num_dynamic[what];
  }
  return o3_build1_attrs(
      &lw->builder, name, type, total, operands,
      O3_ATTRS({"static_offsets", o3_attr_ints(lw->context, box->rank, box->numbers[OFFSETS])},
               {"static_sizes", o3_attr_ints(lw->context, box->rank, box->numbers[SIZES])},
               {"static_strides", o3_attr_ints(lw->context, box->rank, box->numbers[STRIDES])},
               {"operandSegmentSizes", mlirDenseI32ArrayGet(lw->context, num_segments, segments)}));
}

/* MLIR's verifier refuses a start behind the end, even of a slice of nothing. */
static bool takes_nothing(const o3_shape_t *x, const o3_shape_t *y, int dim, MlirAffineExpr start) {
  int64_t size, at;
  if (o3_expr_equals_const(y->dims[dim], 0)) return true;
  return o3_expr_is_const(x->dims[dim], &size) && o3_expr_is_const(start, &at) && at >= size;
}

/* ---- Slices ---- */

/* y's position i along dimension d is x's starts[d] + i * steps[d]; null values stand for 0 and 1. */
typedef struct strided {
  MlirValue x;
  int rank;
  MlirValue starts[O3_IR_MAX_RANK], steps[O3_IR_MAX_RANK];
} strided_t;

static void strided_body(const o3_body_args_t *in) {
  const strided_t *slice = in->context;
  MlirValue position[O3_IR_MAX_RANK];
  for (int i = 0; i < slice->rank; ++i) {
    position[i] = o3_lw_index(in->builder, i);
    if (!mlirValueIsNull(slice->steps[i]))
      position[i] = o3_build2(in->builder, "arith.muli", position[i], slice->steps[i]);
    if (!mlirValueIsNull(slice->starts[i]))
      position[i] = o3_build2(in->builder, "arith.addi", position[i], slice->starts[i]);
  }
  in->results[0] = o3_lw_extract(in->builder, slice->x, slice->rank, position);
}

static bool all_positive(int count, const int64_t *values) {
  for (int i = 0; i < count; ++i) {
    if (values[i] <= 0) return false;
  }
  return true;
}

static MlirValue slice_box(o3_lw_t *lw, MlirValue x, const o3_shape_t *shape, const MlirAffineExpr *starts,
                           const int64_t *steps) {
  box_t box = {.rank = shape->rank};
  for (int i = 0; i < shape->rank; ++i) {
    box_expr(lw, &box, OFFSETS, i, starts[i]);
    box_expr(lw, &box, SIZES, i, shape->dims[i]);
    box_number(&box, STRIDES, i, steps[i]);
  }
  MlirType type = o3_shape_type(shape, o3_type_element(mlirValueGetType(x)));
  return build_box(lw, "tensor.extract_slice", type, 1, &x, &box);
}

static MlirValue slice_elements(o3_lw_t *lw, MlirValue x, const o3_shape_t *shape,
                                const MlirAffineExpr *starts, const int64_t *steps) {
  strided_t slice = {.x = x, .rank = shape->rank};
  for (int i = 0; i < shape->rank; ++i) {
    slice.starts[i] = o3_lw_size(lw, starts[i]);
    slice.steps[i] = o3_build_index(&lw->builder, steps[i]);
  }
  return o3_lw_generate(lw, shape, o3_type_element(mlirValueGetType(x)), strided_body, &slice);
}

/* Start and step for every dimension. */
static void read_slice(o3_lw_t *lw, MlirOperation op, int rank, MlirAffineExpr *starts, int64_t *steps) {
  int64_t axes[O3_IR_MAX_RANK], given[O3_IR_MAX_RANK];
  int count = o3_op_ints(op, "axes", axes, O3_IR_MAX_RANK);
  MlirAffineMap map = mlirAffineMapAttrGetValue(o3_op_attr(op, "starts"));
  o3_op_ints(op, "steps", given, O3_IR_MAX_RANK);
  for (int i = 0; i < rank; ++i) {
    starts[i] = o3_expr_const(lw->context, 0);
    steps[i] = 1;
  }
  for (int i = 0; i < count; ++i) {
    starts[axes[i]] = o3_symbols_resolve(lw->symbols, mlirAffineMapGetResult(map, i));
    steps[axes[i]] = given[i];
  }
}

o3_status_t o3_lower_slice(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  int64_t steps[O3_IR_MAX_RANK];
  MlirAffineExpr starts[O3_IR_MAX_RANK];
  o3_shape_t x, y;
  bool nothing = false;
  o3_lw_operand_shape(lw, op, 0, &x);
  o3_lw_result_shape(lw, op, 0, &y);
  read_slice(lw, op, y.rank, starts, steps);
  for (int i = 0; i < y.rank; ++i) nothing = nothing || takes_nothing(&x, &y, i, starts[i]);
  if (nothing) {
    results[0] = o3_lw_empty(lw, &y, o3_lw_new_element(op, 0));
  } else {
    bool forward = all_positive(y.rank, steps);
    results[0] = (forward ? slice_box : slice_elements)(lw, operands[0], &y, starts, steps);
  }
  return NULL;
}

static MlirValue index_at(o3_lw_t *lw, MlirValue vector, int64_t i) {
  MlirValue position = o3_build_index(&lw->builder, i);
  MlirValue number = o3_lw_extract(&lw->builder, vector, 1, &position);
  return o3_build1(&lw->builder, "arith.index_cast", o3_build_index_type(&lw->builder), O3_VALUES(number));
}

o3_status_t o3_lower_dynamic_slice(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                   MlirValue *results) {
  int64_t axes[O3_IR_MAX_RANK];
  o3_shape_t shape;
  int count = o3_op_ints(op, "axes", axes, O3_IR_MAX_RANK);
  o3_lw_result_shape(lw, op, 0, &shape);
  strided_t slice = {.x = operands[0], .rank = shape.rank};
  for (int i = 0; i < count; ++i) {
    slice.starts[axes[i]] = index_at(lw, operands[1], i);
    slice.steps[axes[i]] = index_at(lw, operands[2], i);
  }
  results[0] = o3_lw_generate(lw, &shape, o3_lw_new_element(op, 0), strided_body, &slice);
  return NULL;
}

o3_status_t o3_lower_reverse(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  int64_t axes[O3_IR_MAX_RANK];
  o3_shape_t shape;
  int count = o3_op_ints(op, "axes", axes, O3_IR_MAX_RANK);
  o3_lw_result_shape(lw, op, 0, &shape);
  strided_t slice = {.x = operands[0], .rank = shape.rank};
  for (int i = 0; i < count; ++i) {
    MlirAffineExpr last = o3_expr_sub(shape.dims[axes[i]], o3_expr_const(lw->context, 1));
    slice.starts[axes[i]] = o3_lw_size(lw, last);
    slice.steps[axes[i]] = o3_build_index(&lw->builder, -1);
  }
  results[0] = o3_lw_generate(lw, &shape, o3_lw_new_element(op, 0), strided_body, &slice);
  return NULL;
}

/* ---- Padding ---- */

typedef struct padding {
  MlirValue x, zero, one;
  int rank;
  const char *mode;
  MlirValue lows[O3_IR_MAX_RANK];  /* how far x lies behind y's start; may be negative */
  MlirValue sizes[O3_IR_MAX_RANK]; /* of x */
} padding_t;

static MlirValue maximum(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.maxsi", x, y);
}
static MlirValue minimum(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.minsi", x, y);
}

/* Remainder with the sign of the divisor, which is positive. */
static MlirValue floor_mod(o3_builder_t *b, MlirValue x, MlirValue y, MlirValue zero) {
  MlirValue rest = o3_build2(b, "arith.remsi", x, y);
  MlirValue negative = o3_build_cmpi(b, O3_CMPI_SLT, rest, zero);
  return o3_build_select(b, negative, o3_build2(b, "arith.addi", rest, y), rest);
}

static MlirValue edge_position(o3_builder_t *b, const padding_t *pad, MlirValue at, MlirValue size) {
  MlirValue last = o3_build2(b, "arith.subi", size, pad->one);
  return maximum(b, minimum(b, at, last), pad->zero);
}

static MlirValue wrap_position(o3_builder_t *b, const padding_t *pad, MlirValue at, MlirValue size) {
  return floor_mod(b, at, size, pad->zero);
}

/* 0 1 2 3 2 1 0 1 ...: a period of 2 * (size - 1), or all 0 for one element. */
static MlirValue reflect_position(o3_builder_t *b, const padding_t *pad, MlirValue at, MlirValue size) {
  MlirValue last = o3_build2(b, "arith.subi", size, pad->one);
  MlirValue period = maximum(b, o3_build2(b, "arith.addi", last, last), pad->one);
  MlirValue folded = floor_mod(b, at, period, pad->zero);
  MlirValue back = o3_build2(b, "arith.subi", period, folded);
  return minimum(b, folded, back);
}

static const struct {
  const char *mode;
  MlirValue (*position)(o3_builder_t *b, const padding_t *pad, MlirValue at, MlirValue size);
} MODES[] = {{"edge", edge_position}, {"reflect", reflect_position}, {"wrap", wrap_position}};

static void copying_body(const o3_body_args_t *in) {
  const padding_t *pad = in->context;
  MlirValue position[O3_IR_MAX_RANK];
  int mode = 0;
  while (strcmp(MODES[mode].mode, pad->mode)) ++mode;
  for (int i = 0; i < pad->rank; ++i) {
    MlirValue at = o3_build2(in->builder, "arith.subi", o3_lw_index(in->builder, i), pad->lows[i]);
    position[i] = MODES[mode].position(in->builder, pad, at, pad->sizes[i]);
  }
  in->results[0] = o3_lw_extract(in->builder, pad->x, pad->rank, position);
}

/* Copies of nothing do not exist: x may be empty only where y is. */
static void require_source(o3_lw_t *lw, MlirOperation op, const padding_t *pad, const o3_shape_t *x,
                           const o3_shape_t *y) {
  for (int i = 0; i < pad->rank; ++i) {
    if (o3_expr_at_least(x->dims[i], 1)) continue;
    MlirValue size = o3_lw_size(lw, y->dims[i]);
    MlirValue source = o3_build_cmpi(&lw->builder, O3_CMPI_SGT, pad->sizes[i], pad->zero);
    MlirValue empty = o3_build_cmpi(&lw->builder, O3_CMPI_EQ, size, pad->zero);
    o3_lw_assert(lw, op, o3_build2(&lw->builder, "arith.ori", source, empty),
                 "an empty dimension has nothing to pad with");
  }
}

/* y is full of the value, then gets the part of x that lies in it. */
static MlirValue pad_constant(o3_lw_t *lw, const padding_t *pad, const o3_shape_t *y, MlirValue value) {
  box_t from = {.rank = pad->rank}, to = {.rank = pad->rank};
  int64_t sizes[O3_IR_MAX_RANK];
  for (int i = 0; i < pad->rank; ++i) {
    o3_builder_t *b = &lw->builder;
    MlirValue start =
        minimum(b, maximum(b, o3_build2(b, "arith.subi", pad->zero, pad->lows[i]), pad->zero), pad->sizes[i]);
    MlirValue y_end = o3_build2(b, "arith.subi", o3_lw_size(lw, y->dims[i]), pad->lows[i]);
    MlirValue end = minimum(b, pad->sizes[i], y_end);
    MlirValue size = maximum(b, o3_build2(b, "arith.subi", end, start), pad->zero);
    sizes[i] = -1;
    box_value(&from, OFFSETS, i, start);
    box_value(&to, OFFSETS, i, maximum(b, pad->lows[i], pad->zero));
    box_value(&from, SIZES, i, size);
    box_value(&to, SIZES, i, size);
    box_number(&from, STRIDES, i, 1);
    box_number(&to, STRIDES, i, 1);
  }
  MlirType element = o3_type_element(mlirValueGetType(pad->x));
  MlirValue position = {0};
  MlirValue full = o3_lw_fill(lw, y, o3_lw_extract(&lw->builder, value, 0, &position));
  MlirValue part =
      build_box(lw, "tensor.extract_slice", o3_tensor_type(pad->rank, sizes, element), 1, &pad->x, &from);
  MlirValue tensors[2] = {part, full};
  return build_box(lw, "tensor.insert_slice", mlirValueGetType(full), 2, tensors, &to);
}

static o3_status_t lower_padding(o3_lw_t *lw, MlirOperation op, padding_t *pad, MlirValue value,
                                 MlirValue *results) {
  o3_shape_t x, y;
  MlirStringRef mode = o3_op_string(op, "mode");
  pad->mode = o3_arena_strndup(lw->arena, mode.data, mode.length);
  O3_TRY_ALLOC(pad->mode);
  o3_lw_operand_shape(lw, op, 0, &x);
  o3_lw_result_shape(lw, op, 0, &y);
  pad->rank = y.rank;
  pad->zero = o3_build_index(&lw->builder, 0);
  pad->one = o3_build_index(&lw->builder, 1);
  for (int i = 0; i < x.rank; ++i) pad->sizes[i] = o3_lw_size(lw, x.dims[i]);
  if (o3_str_equal(mode, "constant")) {
    results[0] = pad_constant(lw, pad, &y, value);
    return NULL;
  }
  require_source(lw, op, pad, &x, &y);
  results[0] = o3_lw_generate(lw, &y, o3_lw_new_element(op, 0), copying_body, pad);
  return NULL;
}

o3_status_t o3_lower_pad(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  padding_t pad = {.x = operands[0]};
  MlirAffineMap lows = mlirAffineMapAttrGetValue(o3_op_attr(op, "lows"));
  for (int i = 0; i < mlirAffineMapGetNumResults(lows); ++i)
    pad.lows[i] = o3_lw_size(lw, o3_symbols_resolve(lw->symbols, mlirAffineMapGetResult(lows, i)));
  return lower_padding(lw, op, &pad, operands[1], results);
}

o3_status_t o3_lower_dynamic_pad(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                 MlirValue *results) {
  padding_t pad = {.x = operands[0]};
  int rank = o3_type_rank(mlirValueGetType(operands[0]));
  for (int i = 0; i < rank; ++i) pad.lows[i] = index_at(lw, operands[2], i);
  return lower_padding(lw, op, &pad, operands[1], results);
}
