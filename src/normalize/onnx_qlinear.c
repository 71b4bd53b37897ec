/* Products and convolutions of quantized tensors: integers summed in i32, scaled in f32. */
#include <math.h>

#include "normalize/onnx_matmul.h"
#include "normalize/onnx_window.h"

static MlirType i32_type(const o3_nz_t *nz) { return mlirIntegerTypeGet(nz->context, 32); }

static bool is_zero(const o3_nz_t *nz, MlirValue value) {
  int64_t numbers[O3_FACT_MAX_ELEMENTS];
  const o3_fact_t *fact = o3_nz_fact(nz, value);
  if (!o3_fact_ints(fact, numbers)) return false;
  for (int i = 0; i < fact->num_elements; ++i) {
    if (numbers[i]) return false;
  }
  return true;
}

/* A vector along dimension |dim| of tensors of |rank|; scalars and vectors of one element stay single. */
static MlirValue along(o3_nz_t *nz, MlirValue vector, int dim, int rank) {
  o3_shape_t shape = {.rank = rank};
  if (o3_nz_rank(nz, vector) != 1) return vector;
  for (int i = 0; i < rank; ++i)
    shape.dims[i] = i == dim ? o3_nz_dim(nz, vector, 0) : o3_expr_const(nz->context, 1);
  return o3_nz_reshape(nz, vector, &shape);
}

/* x - zero_point in i32, or x itself where the zero point is missing or 0. A zero point that is a vector lies
 * along dimension |dim|; one of higher rank broadcasts as it is. */
static MlirValue centered(o3_nz_t *nz, MlirValue x, MlirValue zero_point, int dim) {
  if (mlirValueIsNull(zero_point) || is_zero(nz, zero_point)) return x;
  MlirValue offset = o3_nz_cast(nz, along(nz, zero_point, dim, o3_nz_rank(nz, x)), i32_type(nz));
  return o3_nz_binary(nz, "o3.sub", o3_nz_cast(nz, x, i32_type(nz)), offset);
}

/* saturate(round(sum * scale) + zero_point) in the type of the zero point. |scale| broadcasts to the sum. */
static MlirValue requantized(o3_nz_t *nz, MlirValue sum, MlirValue scale, MlirValue zero_point) {
  MlirType type = o3_nz_element(nz, zero_point), f32 = o3_nz_f32(nz);
  int bits = o3_type_bits(type);
  double low = o3_type_is_unsigned(type) ? 0 : -ldexp(1, bits - 1);
  double high = ldexp(1, o3_type_is_unsigned(type) ? bits : bits - 1) - 1;
  MlirValue scaled = o3_nz_binary(nz, "o3.mul", o3_nz_cast(nz, sum, f32), scale);
  MlirValue shifted =
      o3_nz_binary(nz, "o3.add", o3_nz_unary(nz, "o3.round", scaled), o3_nz_cast(nz, zero_point, f32));
  return o3_nz_cast(nz, o3_nz_clamp(nz, shifted, low, high), type);
}

/* a_scale * b_scale / y_scale, in f32 whatever their type. */
static MlirValue combined(o3_nz_t *nz, MlirValue a_scale, MlirValue b_scale, MlirValue y_scale) {
  MlirType f32 = o3_nz_f32(nz);
  MlirValue both = o3_nz_binary(nz, "o3.mul", o3_nz_cast(nz, a_scale, f32), o3_nz_cast(nz, b_scale, f32));
  return o3_nz_binary(nz, "o3.div", both, o3_nz_cast(nz, y_scale, f32));
}

/* A matrix's zero points and scales are one for all, or a vector: one for each row of a or y, one for each
 * column of b. A vector that is multiplied has one. */
static int row_dim(int rank) { return rank < 2 ? 0 : rank - 2; }
static int column_dim(int rank) { return rank - 1; }

o3_status_t o3_onnx_matmul_integer(o3_nz_t *nz, o3_node_t *node) {
  MlirValue a = o3_node_input(node, 0), b = o3_node_input(node, 1);
  MlirValue x = centered(nz, a, o3_node_input(node, 2), row_dim(o3_nz_rank(nz, a)));
  MlirValue w = centered(nz, b, o3_node_input(node, 3), column_dim(o3_nz_rank(nz, b)));
  node->outputs[0] = o3_nz_product(nz, x, w, i32_type(nz));
  return NULL;
}

/* Inputs: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point. */
o3_status_t o3_onnx_qlinear_matmul(o3_nz_t *nz, o3_node_t *node) {
  MlirValue a = o3_node_input(node, 0), b = o3_node_input(node, 3);
  MlirValue x = centered(nz, a, o3_node_input(node, 2), row_dim(o3_nz_rank(nz, a)));
  MlirValue w = centered(nz, b, o3_node_input(node, 5), column_dim(o3_nz_rank(nz, b)));
  MlirValue sum = o3_nz_product(nz, x, w, i32_type(nz));
  int rank = o3_nz_rank(nz, sum), row = row_dim(rank);
  MlirValue a_scale = along(nz, o3_node_input(node, 1), row, rank);
  MlirValue b_scale = along(nz, o3_node_input(node, 4), column_dim(rank), rank);
  MlirValue y_scale = along(nz, o3_node_input(node, 6), row, rank);
  MlirValue zero_point = along(nz, o3_node_input(node, 7), row, rank);
  node->outputs[0] = requantized(nz, sum, combined(nz, a_scale, b_scale, y_scale), zero_point);
  return NULL;
}

/* Padding stands for the real 0, which is x's zero point: subtract first, then pad with 0. */
o3_status_t o3_onnx_conv_integer(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), w = o3_node_input(node, 1);
  const MlirValue operands[2] = {centered(nz, x, o3_node_input(node, 2), 0),
                                 centered(nz, w, o3_node_input(node, 3), 0)};
  return o3_nz_conv(nz, node, 2, operands, i32_type(nz), &node->outputs[0]);
}

/* Inputs: x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, bias (i32). */
o3_status_t o3_onnx_qlinear_conv(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), w = o3_node_input(node, 3), sum;
  int rank = o3_nz_rank(nz, x), count = o3_node_has_input(node, 8) ? 3 : 2;
  const MlirValue operands[3] = {centered(nz, x, o3_node_input(node, 2), 1),
                                 centered(nz, w, o3_node_input(node, 5), 0), o3_node_input(node, 8)};
  O3_TRY(o3_nz_conv(nz, node, count, operands, i32_type(nz), &sum));
  MlirValue w_scale = along(nz, o3_node_input(node, 4), 1, rank);
  MlirValue scale = combined(nz, o3_node_input(node, 1), w_scale, o3_node_input(node, 6));
  node->outputs[0] = requantized(nz, sum, scale, o3_node_input(node, 7));
  return NULL;
}
