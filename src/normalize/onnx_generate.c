/* Tensors made from little: constants, ramps and masks. */
#include <math.h>
#include <string.h>

#include "normalize/onnx_axes.h"

/* ---- Constant ---- */

static MlirAttribute floats_attr(o3_nz_t *nz, const o3_node_t *node) {
  MlirAttribute attr = o3_node_attr(node, "value_floats");
  int64_t count = mlirDenseArrayGetNumElements(attr);
  float *values = O3_ARENA_ARRAY(nz->arena, float, (size_t)count + 1);
  MlirAttribute result = {0};
  if (!values) {
    o3_nz_fail(nz, o3_status_create(O3_STATUS_OUT_OF_MEMORY, "%s: out of memory", nz->who));
    return result;
  }
  for (int64_t i = 0; i < count; ++i) values[i] = mlirDenseF32ArrayGetElement(attr, i);
  return mlirDenseElementsAttrFloatGet(o3_tensor_type(1, &count, o3_nz_f32(nz)), count, values);
}

static MlirAttribute ints_attr(o3_nz_t *nz, const o3_node_t *node) {
  MlirAttribute attr = o3_node_attr(node, "value_ints");
  int64_t count = mlirDenseArrayGetNumElements(attr);
  int64_t *values = O3_ARENA_ARRAY(nz->arena, int64_t, (size_t)count + 1);
  MlirAttribute result = {0};
  if (!values) {
    o3_nz_fail(nz, o3_status_create(O3_STATUS_OUT_OF_MEMORY, "%s: out of memory", nz->who));
    return result;
  }
  for (int64_t i = 0; i < count; ++i) values[i] = mlirDenseI64ArrayGetElement(attr, i);
  return mlirDenseElementsAttrInt64Get(o3_tensor_type(1, &count, o3_nz_i64(nz)), count, values);
}

static bool is_list(const o3_node_t *node, const char *name, bool (*is_a)(MlirAttribute)) {
  MlirAttribute attr = o3_node_attr(node, name);
  return !mlirAttributeIsNull(attr) && is_a(attr);
}

/* One of: value, sparse_value, value_float(s), value_int(s); strings have no tensor here. */
o3_status_t o3_onnx_constant(o3_nz_t *nz, o3_node_t *node) {
  MlirAttribute value = o3_node_attr(node, "value"), sparse = o3_node_attr(node, "sparse_value");
  if (!mlirAttributeIsNull(value) && mlirAttributeIsAElements(value)) {
    node->outputs[0] = o3_nz_constant(nz, value);
  } else if (!mlirAttributeIsNull(sparse) && mlirAttributeIsADictionary(sparse)) {
    node->outputs[0] = o3_nz_sparse_constant(nz, sparse);
  } else if (o3_node_has_attr(node, "value_float")) {
    node->outputs[0] = o3_nz_scalar(nz, o3_nz_f32(nz), o3_node_float(node, "value_float", 0));
  } else if (o3_node_has_attr(node, "value_int")) {
    node->outputs[0] = o3_onnx_i64(nz, o3_node_int(node, "value_int", 0));
  } else if (is_list(node, "value_floats", mlirAttributeIsADenseF32Array)) {
    MlirAttribute attr = floats_attr(nz, node);
    if (!o3_nz_failed(nz)) node->outputs[0] = o3_nz_constant(nz, attr);
  } else if (is_list(node, "value_ints", mlirAttributeIsADenseI64Array)) {
    MlirAttribute attr = ints_attr(nz, node);
    if (!o3_nz_failed(nz)) node->outputs[0] = o3_nz_constant(nz, attr);
  } else {
    return o3_nz_unsupported(nz, "a constant that is no tensor of numbers is not supported");
  }
  return NULL;
}

o3_status_t o3_onnx_constant_of_shape(o3_nz_t *nz, o3_node_t *node) {
  o3_shape_t shape;
  MlirAttribute attr = o3_node_attr(node, "value");
  if (!mlirAttributeIsNull(attr) && !mlirAttributeIsAElements(attr))
    return o3_nz_invalid(nz, "the value is no tensor of numbers");
  shape.rank = o3_nz_bind_sizes(nz, o3_node_input(node, 0), "the shape", shape.dims, O3_IR_MAX_RANK);
  if (shape.rank < 0) return NULL;
  for (int i = 0; i < shape.rank; ++i) {
    if (!o3_symbols_require_nonnegative(nz->symbols, shape.dims[i], nz->who))
      return o3_nz_invalid(nz, "size %d of the shape is negative", i);
  }
  MlirValue value = mlirAttributeIsNull(attr) ? o3_nz_scalar(nz, o3_nz_f32(nz), 0) : o3_nz_constant(nz, attr);
  node->outputs[0] = o3_nz_broadcast(nz, o3_nz_reshape(nz, value, &(o3_shape_t){0}), &shape);
  return NULL;
}

/* ---- Ramps ---- */

/* Positions along |axis|, 1 in all other dimensions: it broadcasts to the shape it is for. */
static MlirValue ramp(o3_nz_t *nz, int rank, int axis, MlirAffineExpr size, MlirType element) {
  o3_fact_t fact = {.element = element, .shape.rank = rank};
  MlirValue result;
  for (int i = 0; i < rank; ++i) fact.shape.dims[i] = i == axis ? size : o3_expr_const(nz->context, 1);
  o3_nz_op_stated(nz, "o3.iota", O3_NO_VALUES, O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)}), 1, &fact,
                  &result);
  return result;
}

typedef struct range_in {
  MlirValue start, limit, delta; /* scalars */
  MlirType element;
} range_in_t;

static MlirValue rounded_up(o3_nz_t *nz, const range_in_t *in) {
  MlirType f64 = mlirF64TypeGet(nz->context);
  MlirValue length =
      o3_nz_binary(nz, "o3.sub", o3_nz_cast(nz, in->limit, f64), o3_nz_cast(nz, in->start, f64));
  MlirValue count =
      o3_nz_unary(nz, "o3.ceil", o3_nz_binary(nz, "o3.div", length, o3_nz_cast(nz, in->delta, f64)));
  return o3_nz_cast(nz, count, o3_nz_i64(nz));
}

/* ceil(length / delta) from C's division; a delta of 0 gives -1, which ends the run. */
static MlirValue quotient_up(o3_nz_t *nz, const range_in_t *in) {
  MlirType i64 = o3_nz_i64(nz);
  MlirValue zero = o3_onnx_i64(nz, 0), one = o3_onnx_i64(nz, 1), bad = o3_onnx_i64(nz, -1);
  MlirValue delta = o3_nz_cast(nz, in->delta, i64);
  MlirValue length =
      o3_nz_binary(nz, "o3.sub", o3_nz_cast(nz, in->limit, i64), o3_nz_cast(nz, in->start, i64));
  MlirValue none = o3_nz_binary(nz, "o3.equal", delta, zero);
  MlirValue down = o3_nz_binary(nz, "o3.less", delta, zero);
  MlirValue magnitude = o3_nz_select(nz, none, one, o3_nz_unary(nz, "o3.abs", delta));
  MlirValue way = o3_nz_select(nz, down, o3_nz_unary(nz, "o3.neg", length), length);
  MlirValue most = o3_nz_binary(nz, "o3.add", o3_nz_binary(nz, "o3.max", way, zero),
                                o3_nz_binary(nz, "o3.sub", magnitude, one));
  return o3_nz_select(nz, none, bad, o3_nz_binary(nz, "o3.div", most, magnitude));
}

static MlirValue counted(o3_nz_t *nz, const range_in_t *in) {
  if (!o3_type_is_float(in->element)) return quotient_up(nz, in);
  return o3_nz_binary(nz, "o3.max", rounded_up(nz, in), o3_onnx_i64(nz, 0));
}

/* Small ranges of known integers are known themselves. */
static void range_known(o3_nz_t *nz, const range_in_t *in, o3_fact_t *fact) {
  MlirAffineExpr start, delta;
  int64_t count = o3_infer_small_count(&fact->shape);
  bool known = !o3_type_is_float(in->element) && o3_nz_exprs(nz, in->start, &start, 1) == 1 &&
               o3_nz_exprs(nz, in->delta, &delta, 1) == 1;
  o3_element_t *elements = known ? o3_infer_elements(nz->arena, count) : NULL;
  if (!elements) return;
  for (int64_t i = 0; i < count; ++i) {
    MlirAffineExpr ahead = o3_expr_mul(delta, o3_expr_const(nz->context, i));
    elements[i] = (o3_element_t){.kind = O3_ELEMENT_EXPR, .expr = o3_expr_add(start, ahead)};
  }
  fact->elements = elements;
  fact->num_elements = (int)count;
}

static MlirValue as_scalar(o3_nz_t *nz, MlirValue x) { return o3_nz_reshape(nz, x, &(o3_shape_t){0}); }

o3_status_t o3_onnx_range(o3_nz_t *nz, o3_node_t *node) {
  range_in_t in = {as_scalar(nz, o3_node_input(node, 0)), as_scalar(nz, o3_node_input(node, 1)),
                   as_scalar(nz, o3_node_input(node, 2)), o3_nz_element(nz, o3_node_input(node, 0))};
  o3_fact_t fact = {.element = in.element, .shape.rank = 1};
  if (o3_nz_bind_sizes(nz, counted(nz, &in), "the length of a range", fact.shape.dims, 1) != 1) return NULL;
  if (!o3_symbols_require_nonnegative(nz->symbols, fact.shape.dims[0], nz->who))
    return o3_nz_invalid(nz, "a range with a step of 0");
  range_known(nz, &in, &fact);
  o3_nz_op_stated(nz, "o3.range", O3_VALUES(in.start, in.delta), 0, NULL, 1, &fact, &node->outputs[0]);
  return NULL;
}

/* ---- Masks ---- */

/* Ones where column - row is k. */
o3_status_t o3_onnx_eye_like(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  MlirType i64 = o3_nz_i64(nz), element = o3_nz_element(nz, x);
  if (o3_node_has_attr(node, "dtype")) element = o3_nz_onnx_type(nz, o3_node_int(node, "dtype", 1));
  if (o3_nz_rank(nz, x) != 2) return o3_nz_invalid(nz, "an input of rank %d, 2 expected", o3_nz_rank(nz, x));
  if (o3_nz_failed(nz)) return NULL;
  MlirValue row = ramp(nz, 2, 0, o3_nz_dim(nz, x, 0), i64), column = ramp(nz, 2, 1, o3_nz_dim(nz, x, 1), i64);
  MlirValue diagonal = o3_nz_binary(nz, "o3.add", row, o3_onnx_i64(nz, o3_node_int(node, "k", 0)));
  node->outputs[0] = o3_nz_cast(nz, o3_nz_binary(nz, "o3.equal", column, diagonal), element);
  return NULL;
}

/* Upper: column - row >= k; lower: column - row <= k. */
o3_status_t o3_onnx_trilu(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), k = o3_node_input(node, 1);
  MlirType i64 = o3_nz_i64(nz);
  int rank = o3_nz_rank(nz, x);
  bool upper = o3_node_int(node, "upper", 1) != 0;
  if (rank < 2) return o3_nz_invalid(nz, "an input of rank %d, at least 2 expected", rank);
  k = mlirValueIsNull(k) ? o3_onnx_i64(nz, 0) : as_scalar(nz, o3_nz_cast(nz, k, i64));
  MlirValue row = ramp(nz, 2, 0, o3_nz_dim(nz, x, rank - 2), i64);
  MlirValue column = ramp(nz, 2, 1, o3_nz_dim(nz, x, rank - 1), i64);
  MlirValue diagonal = o3_nz_binary(nz, "o3.add", row, k);
  MlirValue kept = o3_nz_binary(nz, "o3.less_equal", upper ? diagonal : column, upper ? column : diagonal);
  node->outputs[0] = o3_nz_select(nz, kept, x, o3_nz_like(nz, x, 0));
  return NULL;
}

/* values[1] at the index along the axis, values[0] elsewhere; indices out of range give no hit. */
o3_status_t o3_onnx_one_hot(o3_nz_t *nz, o3_node_t *node) {
  MlirValue indices = o3_node_input(node, 0), values = o3_node_input(node, 2);
  MlirType i64 = o3_nz_i64(nz);
  MlirValue depth = as_scalar(nz, o3_nz_cast(nz, o3_node_input(node, 1), i64));
  int rank = o3_nz_rank(nz, indices) + 1, axis = o3_nz_axis(nz, o3_node_int(node, "axis", -1), rank);
  MlirAffineExpr size;
  if (rank > O3_IR_MAX_RANK)
    return o3_nz_unsupported(nz, "a result of rank %d, at most %d is", rank, O3_IR_MAX_RANK);
  if (!o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, values, 0), o3_expr_const(nz->context, 2),
                                nz->who))
    return o3_nz_invalid(nz, "the values are not two");
  if (o3_nz_bind_sizes(nz, depth, "the depth", &size, 1) != 1) return NULL;
  MlirValue wide = o3_onnx_from_end(nz, o3_nz_cast(nz, indices, i64), depth);
  MlirValue hit = o3_nz_binary(nz, "o3.equal", o3_nz_unsqueeze(nz, wide, 1, (int64_t[]){axis}),
                               ramp(nz, rank, axis, size, i64));
  node->outputs[0] = o3_nz_select(nz, hit, o3_onnx_entry(nz, values, 1), o3_onnx_entry(nz, values, 0));
  return NULL;
}
