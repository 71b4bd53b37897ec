/* Linear quantisation. Rounding and saturation to integers are written out in floating point, where they are
 * exact for 8 and 16 bits; the emitters of quantised kernels find the pattern. To 8-bit floats they are a
 * cast's.
 */
#include <stdlib.h>

#include "normalize/nz_math.h"
#include "normalize/onnx_quantize.h"

/* ---- Scales and zero points that broadcast to x ---- */

/* One parameter a block of |block| entries along |axis|, repeated and cut to x's size. */
static MlirValue repeat_blocks(o3_nz_t *nz, MlirValue parameter, MlirValue x, int axis, int64_t block) {
  int64_t inserted = axis + 1;
  MlirValue column = o3_nz_unsqueeze(nz, parameter, 1, &inserted);
  o3_shape_t wide = o3_nz_fact(nz, column)->shape, flat = o3_nz_fact(nz, parameter)->shape;
  wide.dims[inserted] = o3_expr_const(nz->context, block);
  flat.dims[axis] = o3_expr_mul(flat.dims[axis], wide.dims[inserted]);
  MlirValue repeated = o3_nz_reshape(nz, o3_nz_broadcast(nz, column, &wide), &flat);
  MlirAffineExpr size = o3_nz_dim(nz, x, axis);
  if (o3_expr_equal(size, o3_nz_dim(nz, repeated, axis))) return repeated;
  return o3_nz_slice(nz, repeated, axis, o3_expr_const(nz->context, 0), size);
}

/* Per tensor: a scalar (or one entry). Per axis: a vector along axis. Blocked: x's rank, a block in each
 * entry. */
static MlirValue spread(o3_nz_t *nz, const o3_node_t *node, MlirValue parameter, MlirValue x) {
  int rank = o3_nz_rank(nz, x), own = o3_nz_rank(nz, parameter), count = 0;
  int64_t block = o3_node_int(node, "block_size", 0), axes[O3_IR_MAX_RANK];
  bool single = own == 0 || (own == 1 && o3_expr_equals_const(o3_nz_dim(nz, parameter, 0), 1));
  if (single) return o3_nz_reshape(nz, parameter, &(o3_shape_t){.rank = 0});
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", 1), rank);
  if (block > 0 && own == rank) return repeat_blocks(nz, parameter, x, axis, block);
  if (own != 1) {
    o3_nz_fail(nz,
               o3_nz_invalid(nz, "a scale of rank %d for an input of rank %d without block_size", own, rank));
    return (MlirValue){0};
  }
  for (int i = axis + 1; i < rank; ++i) axes[count++] = i - axis;
  return count ? o3_nz_unsqueeze(nz, parameter, count, axes) : parameter;
}

/* ---- QuantizeLinear ---- */

typedef struct range {
  double low, high;
} range_t;

/* The numbers of a quantised type: 8 or 16 bits. */
static range_t range_of(o3_nz_t *nz, MlirType element) {
  int bits = o3_type_bits(element);
  bool fits = o3_type_is_integer(element) && !o3_type_is_bool(element) && bits <= 16;
  if (!fits) {
    char *text = o3_type_text(element);
    o3_nz_fail(nz, o3_nz_unsupported(nz,
                                     "quantisation to %s is not supported, only to 8 and 16-bit integers "
                                     "and 8-bit floats",
                                     text));
    free(text);
    return (range_t){0, 0};
  }
  double span = (double)(1 << bits), low = o3_type_is_unsigned(element) ? 0 : -span / 2;
  return (range_t){low, low + span - 1};
}

/* saturate(round(x / scale) + zero point) */
static MlirValue quantize_integers(o3_nz_t *nz, MlirValue ratio, MlirValue zero, MlirType to) {
  range_t range = range_of(nz, to);
  MlirValue y = o3_nz_unary(nz, "o3.round", o3_nz_cast(nz, ratio, o3_nz_f32(nz)));
  if (!mlirValueIsNull(zero)) y = o3_nz_add(nz, y, o3_nz_cast(nz, zero, o3_nz_f32(nz)));
  return o3_nz_cast(nz, o3_nz_clamp(nz, y, range.low, range.high), to);
}

/* Zero points of 8-bit floats are zero, says ONNX: of a constant one that is all that can be seen. */
static bool is_zero_constant(o3_nz_t *nz, MlirValue value) {
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def) || !o3_op_is(def, "o3.constant")) return false;
  size_t bytes;
  const uint8_t *data = o3_weights_data(nz->weights, o3_op_attr(def, "value"), &bytes);
  for (size_t i = 0; data && i < bytes; ++i) {
    if (data[i]) return false;
  }
  return data != NULL;
}

/* The zero point as something to add; null when it adds nothing. */
static MlirValue offset_of(o3_nz_t *nz, const o3_node_t *node, MlirValue x) {
  MlirValue zero = o3_node_input(node, 2);
  if (o3_nz_failed(nz) || mlirValueIsNull(zero)) return (MlirValue){0};
  if (o3_type_float8(o3_nz_element(nz, zero)) && is_zero_constant(nz, zero)) return (MlirValue){0};
  return spread(nz, node, zero, x);
}

static MlirValue quantize(o3_nz_t *nz, const o3_node_t *node, MlirValue ratio, MlirValue zero, MlirType to) {
  if (!o3_type_float8(to)) return quantize_integers(nz, ratio, zero, to);
  if (!mlirValueIsNull(zero))
    ratio = o3_nz_add(nz, o3_nz_cast(nz, ratio, o3_nz_f32(nz)), o3_nz_cast(nz, zero, o3_nz_f32(nz)));
  return o3_nz_cast_float8(nz, ratio, to, o3_node_int(node, "saturate", 1) != 0);
}

/* The result has the zero point's type, else output_dtype, else ui8. */
static MlirType quantized_type(o3_nz_t *nz, const o3_node_t *node) {
  if (o3_node_has_input(node, 2)) return o3_nz_element(nz, o3_node_input(node, 2));
  int64_t number = o3_node_int(node, "output_dtype", 0);
  return number ? o3_nz_onnx_type(nz, number) : mlirIntegerTypeUnsignedGet(nz->context, 8);
}

/* The division is that of the wider of x's and scale's types, or of `precision`. */
o3_status_t o3_onnx_quantize(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), scale = o3_node_input(node, 1);
  int64_t precision = o3_node_int(node, "precision", 0);
  MlirType to = quantized_type(nz, node),
           type = precision ? o3_nz_onnx_type(nz, precision) : o3_nz_element(nz, scale);
  if (o3_nz_failed(nz)) return NULL;
  if (!o3_type_is_float(type)) type = o3_nz_f32(nz);
  scale = spread(nz, node, o3_nz_cast(nz, scale, type), x);
  MlirValue ratio = o3_nz_div(nz, o3_nz_cast(nz, x, type), scale);
  node->outputs[0] = quantize(nz, node, ratio, offset_of(nz, node, x), to);
  return NULL;
}

/* (x - zero point) * scale, in f32 or wider; scale's type unless output_dtype says another. */
o3_status_t o3_onnx_dequantize(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), scale = o3_node_input(node, 1);
  int64_t number = o3_node_int(node, "output_dtype", 0);
  MlirType to = number ? o3_nz_onnx_type(nz, number) : o3_nz_element(nz, scale), f32 = o3_nz_f32(nz);
  if (o3_nz_failed(nz)) return NULL;
  MlirValue y = o3_nz_cast(nz, x, f32);
  MlirValue zero = offset_of(nz, node, x);
  if (!mlirValueIsNull(zero)) y = o3_nz_sub(nz, y, o3_nz_cast(nz, zero, f32));
  y = o3_nz_mul(nz, y, spread(nz, node, o3_nz_cast(nz, scale, f32), x));
  node->outputs[0] = o3_nz_cast(nz, y, to);
  return NULL;
}

/* ---- DynamicQuantizeLinear ---- */

static MlirValue extreme_with_zero(o3_nz_t *nz, MlirValue x, const char *kind, const char *op) {
  int64_t axes[O3_IR_MAX_RANK];
  int rank = o3_nz_rank(nz, x);
  for (int i = 0; i < rank; ++i) axes[i] = i;
  MlirValue extreme = o3_nz_reduce(nz, x, kind, rank, axes, false);
  return o3_nz_binary(nz, op, extreme, o3_nz_like(nz, x, 0));
}

o3_nz_quantized_t o3_nz_dynamic_quantize(o3_nz_t *nz, MlirValue x) {
  MlirType ui8 = mlirIntegerTypeUnsignedGet(nz->context, 8);
  MlirValue high = extreme_with_zero(nz, x, "max", "o3.max"), low = extreme_with_zero(nz, x, "min", "o3.min");
  MlirValue span = o3_nz_div(nz, o3_nz_sub(nz, high, low), o3_nz_like(nz, x, 255));
  MlirValue flat = o3_nz_equal(nz, span, o3_nz_like(nz, span, 0));
  MlirValue scale = o3_nz_select(nz, flat, o3_nz_like(nz, span, 1), span);
  MlirValue offset = o3_nz_div(nz, o3_nz_unary(nz, "o3.neg", low), scale);
  MlirValue zero = quantize_integers(nz, offset, (MlirValue){0}, ui8);
  return (o3_nz_quantized_t){quantize_integers(nz, o3_nz_div(nz, x, scale), zero, ui8), scale, zero};
}

o3_status_t o3_onnx_dynamic_quantize(o3_nz_t *nz, o3_node_t *node) {
  const o3_nz_quantized_t q = o3_nz_dynamic_quantize(nz, o3_node_input(node, 0));
  node->outputs[0] = q.bytes;
  node->outputs[1] = q.scale;
  node->outputs[2] = q.zero_point;
  return NULL;
}
