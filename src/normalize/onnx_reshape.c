/* Ops that give a tensor another shape: the same elements in the same order, or repeated, or in blocks. */
#include <string.h>

#include "normalize/onnx_axes.h"

/* ---- Flatten, Squeeze, Unsqueeze ---- */

o3_status_t o3_onnx_flatten(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  const o3_fact_t *fact = o3_nz_fact(nz, x);
  int rank = fact->shape.rank;
  int64_t axis = o3_node_int(node, "axis", 1);
  if (axis < -rank || axis > rank)
    return o3_nz_invalid(nz, "axis %lld is out of range for rank %d", (long long)axis, rank);
  if (axis < 0) axis += rank;
  o3_shape_t shape = {.rank = 2,
                      .dims = {o3_shape_product(nz->context, &fact->shape, 0, (int)axis),
                               o3_shape_product(nz->context, &fact->shape, (int)axis, rank)}};
  node->outputs[0] = o3_nz_reshape(nz, x, &shape);
  return NULL;
}

static int dims_of_one(const o3_nz_t *nz, MlirValue x, int64_t *axes) {
  int count = 0;
  for (int i = 0; i < o3_nz_rank(nz, x); ++i) {
    if (o3_expr_equals_const(o3_nz_dim(nz, x, i), 1)) axes[count++] = i;
  }
  return count;
}

/* Without axes the result's rank follows from the sizes. */
static o3_status_t squeeze_all(o3_nz_t *nz, o3_node_t *node, MlirValue x) {
  int64_t axes[O3_IR_MAX_RANK];
  for (int i = 0; i < o3_nz_rank(nz, x); ++i) {
    if (!o3_expr_is_const(o3_nz_dim(nz, x, i), NULL))
      return o3_nz_unsupported(
          nz,
          "without axes every size must be known while compiling, dimension %d is not (set it with --dim or "
          "--shape)",
          i);
  }
  int count = dims_of_one(nz, x, axes);
  node->outputs[0] = o3_nz_squeeze(nz, x, count, axes);
  return NULL;
}

/* The sizes of x's dimensions that are not among |axes|, in order: each goes to the place that the kept ones
 * before it leave. */
static MlirValue squeezed_sizes(o3_nz_t *nz, MlirValue x, MlirValue axes, int rank) {
  int64_t places[O3_IR_MAX_RANK];
  int x_rank = o3_nz_rank(nz, x);
  MlirValue zero = o3_onnx_i64(nz, 0), one = o3_onnx_i64(nz, 1), place = zero, dims = o3_onnx_dims(nz, x);
  MlirValue dropped = o3_nz_broadcast(nz, zero, &o3_nz_fact(nz, axes)->shape);
  MlirValue kept =
      o3_onnx_axes_spread(nz, axes, dropped, o3_nz_broadcast(nz, one, &o3_nz_fact(nz, dims)->shape), x_rank);
  for (int i = 0; i < rank; ++i) places[i] = i;
  MlirValue all = o3_nz_i64s(nz, rank, places), sizes = all;
  for (int i = 0; i < x_rank; ++i) {
    MlirValue own = o3_onnx_entry(nz, kept, i);
    MlirValue here = o3_nz_binary(nz, "o3.and", o3_nz_binary(nz, "o3.equal", all, place),
                                  o3_nz_binary(nz, "o3.equal", own, one));
    sizes = o3_nz_select(nz, here, o3_onnx_entry(nz, dims, i), sizes);
    place = o3_nz_binary(nz, "o3.add", place, own);
  }
  return sizes;
}

static o3_status_t squeeze_at_run(o3_nz_t *nz, o3_node_t *node, MlirValue x, MlirValue axes) {
  o3_shape_t shape;
  int64_t rank = o3_nz_rank(nz, x) - o3_nz_static_dim(nz, axes, 0, "the number of axes");
  if (o3_nz_failed(nz)) return NULL;
  if (rank < 0) return o3_nz_invalid(nz, "more axes than dimensions");
  MlirValue sizes = squeezed_sizes(nz, x, axes, (int)rank);
  shape.rank = o3_nz_bind_sizes(nz, sizes, "the shape", shape.dims, O3_IR_MAX_RANK);
  if (shape.rank >= 0) node->outputs[0] = o3_nz_reshape(nz, x, &shape);
  return NULL;
}

o3_status_t o3_onnx_squeeze(o3_nz_t *nz, o3_node_t *node) {
  int64_t axes[O3_IR_MAX_RANK];
  MlirValue x = o3_node_input(node, 0);
  MlirValue list = o3_onnx_list_read(nz, node, (o3_onnx_list_t){"axes", 1, 13});
  if (mlirValueIsNull(list)) return squeeze_all(nz, node, x);
  int count = o3_onnx_axes_const(nz, list, o3_nz_rank(nz, x), axes);
  if (count < 0) return squeeze_at_run(nz, node, x, list);
  for (int i = 0; i < count && !o3_nz_failed(nz); ++i) {
    MlirAffineExpr one = o3_expr_const(nz->context, 1);
    if (!o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, x, (int)axes[i]), one, nz->who))
      return o3_nz_invalid(nz, "dimension %lld cannot be squeezed: its size is not 1", (long long)axes[i]);
  }
  node->outputs[0] = o3_nz_squeeze(nz, x, count, axes);
  return NULL;
}

/* The result's sizes, of which those at |axes| are 1 and the others x's, in order. */
static MlirValue unsqueezed_sizes(o3_nz_t *nz, MlirValue x, MlirValue axes, int rank) {
  MlirValue zero = o3_onnx_i64(nz, 0), one = o3_onnx_i64(nz, 1), position = zero, sizes[O3_IR_MAX_RANK];
  MlirValue kept =
      o3_onnx_axes_spread(nz, axes, o3_nz_broadcast(nz, zero, &o3_nz_fact(nz, axes)->shape), one, rank);
  MlirValue padded[2] = {o3_onnx_dims(nz, x), o3_nz_i64s(nz, 1, (int64_t[]){1})};
  MlirValue dims = o3_nz_concat(nz, 0, 2, padded);
  for (int i = 0; i < rank; ++i) {
    MlirValue own = o3_onnx_entry(nz, kept, i);
    MlirValue size =
        o3_nz_op(nz, "o3.gather", O3_VALUES(dims, position), O3_ATTRS({"axis", o3_attr_i64(nz->context, 0)}));
    MlirValue chosen = o3_nz_select(nz, o3_nz_binary(nz, "o3.equal", own, one), size, one);
    sizes[i] = o3_nz_unsqueeze(nz, chosen, 1, (int64_t[]){0});
    position = o3_nz_binary(nz, "o3.add", position, own);
  }
  return o3_nz_concat(nz, 0, rank, sizes);
}

static MlirValue unsqueeze_at_run(o3_nz_t *nz, MlirValue x, MlirValue axes, int rank) {
  o3_shape_t shape;
  MlirValue sizes = unsqueezed_sizes(nz, x, axes, rank);
  shape.rank = o3_nz_bind_sizes(nz, sizes, "the shape", shape.dims, O3_IR_MAX_RANK);
  return shape.rank < 0 ? (MlirValue){0} : o3_nz_reshape(nz, x, &shape);
}

o3_status_t o3_onnx_unsqueeze(o3_nz_t *nz, o3_node_t *node) {
  int64_t axes[O3_IR_MAX_RANK];
  MlirValue x = o3_node_input(node, 0);
  MlirValue list = o3_onnx_list_read(nz, node, (o3_onnx_list_t){"axes", 1, 13});
  if (mlirValueIsNull(list)) return o3_nz_invalid(nz, "there are no axes");
  int64_t added = o3_nz_static_dim(nz, list, 0, "the number of axes");
  if (o3_nz_rank(nz, x) + added > O3_IR_MAX_RANK)
    return o3_nz_unsupported(nz, "a tensor of rank %lld, at most %d is",
                             (long long)(o3_nz_rank(nz, x) + added), O3_IR_MAX_RANK);
  int rank = o3_nz_rank(nz, x) + (int)added, count = o3_onnx_axes_const(nz, list, rank, axes);
  node->outputs[0] = count < 0 ? unsqueeze_at_run(nz, x, list, rank) : o3_nz_unsqueeze(nz, x, count, axes);
  return NULL;
}

/* ---- Expand, Tile ---- */

/* At run time a size of 1 asks for nothing: x's own is put in its place. */
static MlirValue wanted_sizes(o3_nz_t *nz, MlirValue x, MlirValue shape) {
  MlirAffineExpr own[O3_IR_MAX_RANK];
  int64_t rank = o3_nz_static_dim(nz, shape, 0, "the length of the shape");
  int lead = (int)rank - o3_nz_rank(nz, x);
  if (o3_nz_failed(nz) || rank > O3_IR_MAX_RANK) return shape;
  for (int i = 0; i < rank; ++i)
    own[i] = i < lead ? o3_expr_const(nz->context, 1) : o3_nz_dim(nz, x, i - lead);
  if (lead < 0) {
    for (int i = 0; i < rank; ++i) own[i] = o3_nz_dim(nz, x, i - lead);
  }
  MlirValue one = o3_nz_binary(nz, "o3.equal", shape, o3_nz_like(nz, shape, 1));
  return o3_nz_select(nz, one, o3_nz_sizes(nz, (int)rank, own, false), shape);
}

o3_status_t o3_onnx_expand(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), sizes = o3_node_input(node, 1);
  o3_shape_t wanted, shape;
  if (o3_nz_exprs(nz, sizes, wanted.dims, O3_IR_MAX_RANK) < 0) sizes = wanted_sizes(nz, x, sizes);
  wanted.rank = o3_nz_bind_sizes(nz, sizes, "the shape", wanted.dims, O3_IR_MAX_RANK);
  if (wanted.rank < 0) return NULL;
  O3_TRY(o3_infer_broadcast(nz->symbols, nz->who, &o3_nz_fact(nz, x)->shape, &wanted, &shape));
  node->outputs[0] = o3_nz_broadcast(nz, x, &shape);
  return NULL;
}

/* Before opset 6: how often (input 1) along which axis (input 2), both numbers of x's type. */
static o3_status_t legacy_repeats(o3_nz_t *nz, const o3_node_t *node, int rank, MlirAffineExpr *repeats) {
  MlirValue tiles = o3_node_input(node, 1), where = o3_node_input(node, 2);
  MlirAffineExpr times;
  int64_t axis;
  if (mlirValueIsNull(tiles) || mlirValueIsNull(where)) return o3_nz_invalid(nz, "tiles or axis is missing");
  MlirType i64 = o3_nz_i64(nz);
  int num_axes = o3_nz_const_ints(nz, o3_nz_cast(nz, where, i64), "axis", &axis, 1);
  int num_times = o3_nz_bind_sizes(nz, o3_nz_cast(nz, tiles, i64), "tiles", &times, 1);
  if (o3_nz_failed(nz)) return NULL;
  if (num_axes != 1 || num_times != 1) return o3_nz_invalid(nz, "tiles and axis must be one number each");
  for (int i = 0; i < rank; ++i) repeats[i] = o3_expr_const(nz->context, 1);
  repeats[o3_nz_axis(nz, axis, rank)] = times;
  return NULL;
}

static o3_status_t read_repeats(o3_nz_t *nz, const o3_node_t *node, int rank, MlirAffineExpr *repeats) {
  if (node->opset < 6) return legacy_repeats(nz, node, rank, repeats);
  int count = o3_nz_bind_sizes(nz, o3_node_input(node, 1), "the repeats", repeats, O3_IR_MAX_RANK);
  if (count >= 0 && count != rank)
    return o3_nz_invalid(nz, "%d repeats for a tensor of rank %d", count, rank);
  return NULL;
}

/* Each repeated dimension gets a new one in front of it, along which it is broadcast. */
o3_status_t o3_onnx_tile(o3_nz_t *nz, o3_node_t *node) {
  MlirAffineExpr repeats[O3_IR_MAX_RANK];
  MlirValue x = o3_node_input(node, 0);
  int rank = o3_nz_rank(nz, x);
  o3_shape_t split = {0}, repeated = {0}, joined = {.rank = rank};
  O3_TRY(read_repeats(nz, node, rank, repeats));
  if (o3_nz_failed(nz)) return NULL;
  for (int i = 0; i < rank; ++i) {
    MlirAffineExpr size = o3_nz_dim(nz, x, i);
    bool once = o3_expr_equals_const(repeats[i], 1);
    if (split.rank + 2 > O3_IR_MAX_RANK)
      return o3_nz_unsupported(nz, "more than %d dimensions to repeat", O3_IR_MAX_RANK / 2);
    if (!once) {
      split.dims[split.rank++] = o3_expr_const(nz->context, 1);
      repeated.dims[repeated.rank++] = repeats[i];
    }
    split.dims[split.rank++] = repeated.dims[repeated.rank++] = size;
    joined.dims[i] = o3_expr_mul(size, repeats[i]);
  }
  node->outputs[0] = o3_nz_reshape(nz, o3_nz_broadcast(nz, o3_nz_reshape(nz, x, &split), &repeated), &joined);
  return NULL;
}

/* ---- DepthToSpace, SpaceToDepth ---- */

static o3_status_t read_block(o3_nz_t *nz, const o3_node_t *node, MlirValue x, MlirAffineExpr *block) {
  int64_t size = o3_node_int(node, "blocksize", 0);
  if (o3_nz_rank(nz, x) != 4) return o3_nz_invalid(nz, "an input of rank %d, 4 expected", o3_nz_rank(nz, x));
  if (size < 1) return o3_nz_invalid(nz, "a block size of %lld", (long long)size);
  *block = o3_expr_const(nz->context, size);
  return NULL;
}

/* |whole| / |part|, which must be exact. */
static o3_status_t quotient(o3_nz_t *nz, MlirAffineExpr whole, MlirAffineExpr part, MlirAffineExpr *result) {
  *result = o3_expr_floor_div(whole, part);
  if (o3_symbols_require_equal(nz->symbols, o3_expr_mul(*result, part), whole, nz->who)) return NULL;
  return o3_nz_invalid(nz, "a dimension is no multiple of the block");
}

o3_status_t o3_onnx_depth_to_space(o3_nz_t *nz, o3_node_t *node) {
  static const int64_t DCR[] = {0, 3, 4, 1, 5, 2}, CRD[] = {0, 1, 4, 2, 5, 3};
  MlirValue x = o3_node_input(node, 0);
  MlirAffineExpr block, channels;
  O3_TRY(read_block(nz, node, x, &block));
  O3_TRY(quotient(nz, o3_nz_dim(nz, x, 1), o3_expr_mul(block, block), &channels));
  bool dcr = strcmp(o3_node_string(nz, node, "mode", "DCR"), "DCR") == 0;
  MlirAffineExpr n = o3_nz_dim(nz, x, 0), h = o3_nz_dim(nz, x, 2), w = o3_nz_dim(nz, x, 3);
  o3_shape_t blocks = {.rank = 6, .dims = {n, block, block, channels, h, w}};
  if (!dcr) blocks = (o3_shape_t){.rank = 6, .dims = {n, channels, block, block, h, w}};
  o3_shape_t space = {.rank = 4, .dims = {n, channels, o3_expr_mul(h, block), o3_expr_mul(w, block)}};
  node->outputs[0] =
      o3_nz_reshape(nz, o3_nz_transpose(nz, o3_nz_reshape(nz, x, &blocks), dcr ? DCR : CRD), &space);
  return NULL;
}

o3_status_t o3_onnx_space_to_depth(o3_nz_t *nz, o3_node_t *node) {
  static const int64_t PERM[] = {0, 3, 5, 1, 2, 4};
  MlirValue x = o3_node_input(node, 0);
  MlirAffineExpr block, h, w;
  O3_TRY(read_block(nz, node, x, &block));
  O3_TRY(quotient(nz, o3_nz_dim(nz, x, 2), block, &h));
  O3_TRY(quotient(nz, o3_nz_dim(nz, x, 3), block, &w));
  MlirAffineExpr n = o3_nz_dim(nz, x, 0), channels = o3_nz_dim(nz, x, 1);
  o3_shape_t blocks = {.rank = 6, .dims = {n, channels, h, block, w, block}};
  o3_shape_t depth = {.rank = 4, .dims = {n, o3_expr_mul(channels, o3_expr_mul(block, block)), h, w}};
  node->outputs[0] = o3_nz_reshape(nz, o3_nz_transpose(nz, o3_nz_reshape(nz, x, &blocks), PERM), &depth);
  return NULL;
}
