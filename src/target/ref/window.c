#include "target/ref/window.h"

#include <string.h>

void o3_lw_window_read(MlirOperation op, o3_lw_window_t *window) {
  int64_t pads[2 * O3_IR_MAX_RANK] = {0};
  memset(window, 0, sizeof(*window));
  window->rank = o3_op_ints(op, "strides", window->strides, O3_IR_MAX_RANK);
  o3_op_ints(op, "dilations", window->dilations, O3_IR_MAX_RANK);
  o3_op_ints(op, "kernel", window->kernel, O3_IR_MAX_RANK);
  o3_op_ints(op, "pads", pads, 2 * O3_IR_MAX_RANK);
  for (int i = 0; i < window->rank; ++i) {
    window->lows[i] = pads[i];
    window->highs[i] = pads[window->rank + i];
  }
}

/* ---- Padding ---- */

static bool is_plain(const o3_lw_spread_t *spread, int rank) {
  for (int i = 0; i < rank; ++i) {
    if (spread->lows[i] || spread->highs[i] || spread->steps[i] != 1) return false;
  }
  return true;
}

/* (size - 1) * step + 1 + low + high, and 0 elements spread to none. */
static MlirAffineExpr spread_size(MlirAffineExpr size, int64_t step, int64_t around) {
  MlirContext context = mlirAffineExprGetContext(size);
  MlirAffineExpr steps = o3_expr_mul(size, o3_expr_const(context, step));
  return o3_expr_add(steps, o3_expr_const(context, around - step + 1));
}

static MlirValue insert(o3_lw_t *lw, MlirValue x, MlirValue into, const o3_shape_t *shape,
                        const o3_lw_spread_t *spread) {
  MlirValue operands[O3_IR_MAX_RANK + 2] = {x, into};
  int64_t sizes[O3_IR_MAX_RANK];
  int dynamic = 0;
  for (int i = 0; i < shape->rank; ++i) {
    if (o3_expr_is_const(shape->dims[i], &sizes[i])) continue;
    sizes[i] = mlirShapedTypeGetDynamicSize();
    operands[2 + dynamic++] = o3_lw_size(lw, shape->dims[i]);
  }
  const int32_t segments[5] = {1, 1, 0, dynamic, 0};
  return o3_build1_attrs(&lw->builder, "tensor.insert_slice", mlirValueGetType(into), 2 + dynamic, operands,
                         O3_ATTRS({"static_offsets", o3_attr_ints(lw->context, shape->rank, spread->lows)},
                                  {"static_sizes", o3_attr_ints(lw->context, shape->rank, sizes)},
                                  {"static_strides", o3_attr_ints(lw->context, shape->rank, spread->steps)},
                                  {"operandSegmentSizes", mlirDenseI32ArrayGet(lw->context, 5, segments)}));
}

static bool is_empty(const o3_shape_t *shape) {
  for (int i = 0; i < shape->rank; ++i) {
    if (o3_expr_equals_const(shape->dims[i], 0)) return true;
  }
  return false;
}

/* MLIR takes no slice of nothing, and there is nothing to insert. */
MlirValue o3_lw_spread(o3_lw_t *lw, MlirValue x, const o3_lw_spread_t *spread, MlirValue fill,
                       o3_shape_t *shape) {
  o3_shape_t from = *shape;
  if (is_plain(spread, shape->rank)) return x;
  for (int i = 0; i < shape->rank; ++i)
    shape->dims[i] = spread_size(from.dims[i], spread->steps[i], spread->lows[i] + spread->highs[i]);
  MlirValue filled = o3_lw_fill(lw, shape, fill);
  return is_empty(&from) ? filled : insert(lw, x, filled, &from, spread);
}

/* ---- Groups ---- */

/* [[0], ..., [dim, ..., dim + length - 1], ..., [rank - 1]] for |rank| dimensions of the longer shape. */
static MlirAttribute run_at(MlirContext context, int rank, int dim, int length) {
  MlirAttribute groups[O3_IR_MAX_RANK], items[O3_IR_MAX_RANK];
  int count = 0;
  for (int i = 0; i < rank;) {
    int size = i == dim ? length : 1;
    for (int k = 0; k < size; ++k) items[k] = o3_attr_i64(context, i + k);
    groups[count++] = mlirArrayAttrGet(context, size, items);
    i += size;
  }
  return mlirArrayAttrGet(context, count, groups);
}

/* |x| with its dimension |dim| split into |length| of those of |shape|. */
static MlirValue expand(o3_lw_t *lw, MlirValue x, int dim, int length, const o3_shape_t *shape) {
  MlirValue operands[O3_IR_MAX_RANK + 1] = {x};
  int64_t sizes[O3_IR_MAX_RANK];
  int dynamic = 0;
  for (int i = 0; i < shape->rank; ++i) {
    if (o3_expr_is_const(shape->dims[i], &sizes[i])) continue;
    sizes[i] = mlirShapedTypeGetDynamicSize();
    operands[1 + dynamic++] = o3_lw_size(lw, shape->dims[i]);
  }
  MlirType type = o3_shape_type(shape, o3_type_element(mlirValueGetType(x)));
  return o3_build1_attrs(&lw->builder, "tensor.expand_shape", type, 1 + dynamic, operands,
                         O3_ATTRS({"reassociation", run_at(lw->context, shape->rank, dim, length)},
                                  {"static_output_shape", o3_attr_ints(lw->context, shape->rank, sizes)}));
}

MlirValue o3_lw_split_dim(o3_lw_t *lw, MlirValue x, int dim, int64_t outer, o3_shape_t *shape) {
  MlirAffineExpr count = o3_expr_const(lw->context, outer), whole = shape->dims[dim];
  memmove(&shape->dims[dim + 1], &shape->dims[dim], (size_t)(shape->rank - dim) * sizeof(shape->dims[0]));
  ++shape->rank;
  shape->dims[dim] = count;
  shape->dims[dim + 1] = o3_expr_floor_div(whole, count);
  return expand(lw, x, dim, 2, shape);
}

MlirValue o3_lw_join_dims(o3_lw_t *lw, MlirValue x, int dim, o3_shape_t *shape) {
  MlirAttribute groups = run_at(lw->context, shape->rank, dim, 2);
  shape->dims[dim] = o3_expr_mul(shape->dims[dim], shape->dims[dim + 1]);
  --shape->rank;
  memmove(&shape->dims[dim + 1], &shape->dims[dim + 2],
          (size_t)(shape->rank - dim - 1) * sizeof(shape->dims[0]));
  MlirType type = o3_shape_type(shape, o3_type_element(mlirValueGetType(x)));
  return o3_build1_attrs(&lw->builder, "tensor.collapse_shape", type, O3_VALUES(x),
                         O3_ATTRS({"reassociation", groups}));
}

MlirValue o3_lw_unjoin_dims(o3_lw_t *lw, MlirValue x, int dim, const o3_shape_t *shape) {
  return expand(lw, x, dim, shape->rank - dim, shape);
}

/* ---- Element types ---- */

MlirType o3_lw_sum_element(MlirType element) {
  bool half = o3_type_is_float(element) && o3_type_bits(element) < 32;
  return half ? mlirF32TypeGet(mlirTypeGetContext(element)) : element;
}

static void convert_body(const o3_body_args_t *in) {
  const MlirType *types = in->context;
  in->results[0] = o3_lw_convert(in->builder, in->args[0], types[0], types[1]);
}

MlirValue o3_lw_convert_all(o3_lw_t *lw, MlirValue x, const o3_shape_t *shape, MlirType from, MlirType to) {
  MlirType types[2] = {from, to};
  if (mlirTypeEqual(from, to)) return x;
  return o3_lw_map_shaped(lw, shape, o3_lw_type(to), 1, &x, shape, convert_body, types);
}
