/* Normalisations. Those over the trailing dimensions are o3.layer_norm, which computes half precision in f32;
 * the others are written out. */
#include <string.h>

#include "normalize/nz_math.h"
#include "normalize/onnx_legacy.h"

/* ---- Shared pieces ---- */

/* A vector with an entry for each channel, as C x 1 x ... x 1 so that it broadcasts to x = N x C x ... */
static MlirValue per_channel(o3_nz_t *nz, MlirValue vector, MlirValue x) {
  int64_t axes[O3_IR_MAX_RANK];
  int rank = o3_nz_rank(nz, x), count = rank > 2 ? rank - 2 : 0;
  for (int i = 0; i < count; ++i) axes[i] = i + 1;
  return count ? o3_nz_unsqueeze(nz, vector, count, axes) : vector;
}

/* layer_norm over the dimensions axis...; |bias| may be null. */
static MlirValue layer_norm(o3_nz_t *nz, MlirValue x, MlirValue scale, MlirValue bias, int axis,
                            double epsilon) {
  const MlirValue operands[] = {x, scale, bias};
  return o3_nz_op(nz, "o3.layer_norm", mlirValueIsNull(bias) ? 2 : 3, operands,
                  O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)},
                           {"epsilon", o3_attr_float(mlirF64TypeGet(nz->context), epsilon)}));
}

static MlirValue rms_norm(o3_nz_t *nz, MlirValue x, MlirValue scale, int axis, double epsilon) {
  return o3_nz_op(nz, "o3.layer_norm", O3_VALUES(x, scale),
                  O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)},
                           {"epsilon", o3_attr_float(mlirF64TypeGet(nz->context), epsilon)},
                           {"rms", o3_attr_bool(nz->context, true)}));
}

static int axes_from(int axis, int rank, int64_t *axes) {
  int count = 0;
  for (int i = axis; i < rank; ++i) axes[count++] = i;
  return count;
}

static MlirValue square(o3_nz_t *nz, MlirValue x) { return o3_nz_mul(nz, x, x); }

/* f32 for half precision. */
static MlirValue widened(o3_nz_t *nz, MlirValue x) {
  return o3_type_bits(o3_nz_element(nz, x)) < 32 ? o3_nz_cast(nz, x, o3_nz_f32(nz)) : x;
}

/* ---- LayerNormalization ---- */

/* Mean and 1 / sqrt(var + epsilon), which only training wants. */
static void statistics(o3_nz_t *nz, MlirValue x, int axis, double epsilon, bool centered, MlirValue *mean,
                       MlirValue *inverse) {
  int64_t axes[O3_IR_MAX_RANK];
  int count = axes_from(axis, o3_nz_rank(nz, x), axes);
  MlirValue wide = widened(nz, x);
  *mean = o3_nz_reduce(nz, wide, "mean", count, axes, true);
  MlirValue deviation = centered ? o3_nz_sub(nz, wide, *mean) : wide;
  MlirValue variance = o3_nz_reduce(nz, square(nz, deviation), "mean", count, axes, true);
  MlirValue root = o3_nz_unary(nz, "o3.sqrt", o3_nz_add_number(nz, variance, epsilon));
  *inverse = o3_nz_div(nz, o3_nz_like(nz, root, 1), root);
}

static void add_statistics(o3_nz_t *nz, o3_node_t *node, MlirValue x, int axis, double epsilon, int first) {
  bool any = false;
  MlirValue both[2];
  for (int i = 0; i < 2; ++i) any = any || (first + i < node->num_outputs && node->wanted[first + i]);
  if (!any) return;
  statistics(nz, x, axis, epsilon, true, &both[0], &both[1]);
  for (int i = 0; i < 2 && first + i < node->num_outputs; ++i) node->outputs[first + i] = both[i];
}

o3_status_t o3_onnx_layer_norm(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", -1), o3_nz_rank(nz, x));
  double epsilon = o3_node_float(node, "epsilon", 1e-5);
  node->outputs[0] = layer_norm(nz, x, o3_node_input(node, 1), o3_node_input(node, 2), axis, epsilon);
  add_statistics(nz, node, x, axis, epsilon, 1);
  return NULL;
}

/* RMSNormalization, and SimplifiedLayerNormalization with its second output 1 / rms. */
o3_status_t o3_onnx_rms_norm(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), mean;
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", -1), o3_nz_rank(nz, x));
  double epsilon = o3_node_float(node, "epsilon", 1e-5);
  node->outputs[0] = rms_norm(nz, x, o3_node_input(node, 1), axis, epsilon);
  if (node->num_outputs > 1 && node->wanted[1])
    statistics(nz, x, axis, epsilon, false, &mean, &node->outputs[1]);
  return NULL;
}

/* com.microsoft: input, skip, gamma, [beta], [bias]; the sum input + skip + bias is output 3. The simplified
 * one has no beta and normalises by the root mean square. */
o3_status_t o3_onnx_skip_layer_norm(o3_nz_t *nz, o3_node_t *node) {
  bool simplified = strcmp(node->op_type, "SkipSimplifiedLayerNormalization") == 0;
  MlirValue x = o3_nz_add(nz, o3_node_input(node, 0), o3_node_input(node, 1)), gamma = o3_node_input(node, 2);
  int bias = simplified ? 3 : 4, axis = o3_nz_rank(nz, x) - 1;
  double epsilon = o3_node_float(node, "epsilon", 1e-12);
  if (o3_node_has_input(node, bias)) x = o3_nz_add(nz, x, o3_node_input(node, bias));
  node->outputs[0] = simplified ? rms_norm(nz, x, gamma, axis, epsilon)
                                : layer_norm(nz, x, gamma, o3_node_input(node, 3), axis, epsilon);
  if (!simplified) add_statistics(nz, node, x, axis, epsilon, 1);
  if (node->num_outputs > 3) node->outputs[3] = x;
  return NULL;
}

/* ---- InstanceNormalization, GroupNormalization ---- */

o3_status_t o3_onnx_instance_norm(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  if (o3_nz_rank(nz, x) < 3)
    return o3_nz_invalid(nz, "an input of rank %d, at least 3 expected", o3_nz_rank(nz, x));
  MlirValue scale = per_channel(nz, o3_node_input(node, 1), x),
            bias = per_channel(nz, o3_node_input(node, 2), x);
  node->outputs[0] = layer_norm(nz, x, scale, bias, 2, o3_node_float(node, "epsilon", 1e-5));
  return NULL;
}

/* x as N x groups x C/groups x rest: a group is two dimensions. Scale and bias have an entry for each
 * channel; in opset 18, for each group. */
static MlirValue group_parameter(o3_nz_t *nz, MlirValue vector, int64_t groups, bool by_group) {
  MlirAffineExpr count = o3_nz_dim(nz, vector, 0), number = o3_expr_const(nz->context, groups);
  MlirAffineExpr inner = by_group ? o3_expr_const(nz->context, 1) : o3_expr_floor_div(count, number);
  o3_shape_t shape = {.rank = 3, .dims = {number, inner, o3_expr_const(nz->context, 1)}};
  return o3_nz_reshape(nz, vector, &shape);
}

o3_status_t o3_onnx_group_norm(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  const o3_shape_t shape = o3_nz_fact(nz, x)->shape;
  int64_t groups = o3_node_int(node, "num_groups", 0);
  if (shape.rank < 2 || groups < 1)
    return o3_nz_invalid(nz, "rank %d and num_groups %lld, at least 2 and 1 expected", shape.rank,
                         (long long)groups);
  MlirAffineExpr number = o3_expr_const(nz->context, groups);
  o3_shape_t grouped = {.rank = 4,
                        .dims = {o3_nz_dim(nz, x, 0), number, o3_expr_floor_div(o3_nz_dim(nz, x, 1), number),
                                 o3_shape_product(nz->context, &shape, 2, shape.rank)}};
  MlirValue scale = group_parameter(nz, o3_node_input(node, 1), groups, node->opset < 21);
  MlirValue bias = group_parameter(nz, o3_node_input(node, 2), groups, node->opset < 21);
  MlirValue y =
      layer_norm(nz, o3_nz_reshape(nz, x, &grouped), scale, bias, 2, o3_node_float(node, "epsilon", 1e-5));
  node->outputs[0] = o3_nz_reshape(nz, y, &shape);
  return NULL;
}

/* ---- BatchNormalization ---- */

/* x * a + (bias - mean * a) with a = scale / sqrt(var + epsilon): two ops on the whole tensor. */
static MlirValue batch_norm(o3_nz_t *nz, const o3_node_t *node, MlirValue mean, MlirValue variance) {
  MlirValue x = o3_node_input(node, 0);
  MlirType element = o3_nz_element(nz, variance);
  MlirValue scale = o3_nz_cast(nz, o3_node_input(node, 1), element),
            bias = o3_nz_cast(nz, o3_node_input(node, 2), element);
  MlirValue shifted = o3_nz_add_number(nz, variance, o3_node_float(node, "epsilon", 1e-5));
  MlirValue factor = o3_nz_div(nz, scale, o3_nz_unary(nz, "o3.sqrt", shifted));
  MlirValue rest = o3_nz_sub(nz, bias, o3_nz_mul(nz, mean, factor));
  MlirValue scaled = o3_nz_mul(nz, o3_nz_cast(nz, x, element), per_channel(nz, factor, x));
  return o3_nz_cast(nz, o3_nz_add(nz, scaled, per_channel(nz, rest, x)), o3_nz_element(nz, x));
}

/* old * momentum + new * (1 - momentum), in old's type. */
static MlirValue running(o3_nz_t *nz, MlirValue old, MlirValue new, double momentum) {
  MlirType element = o3_nz_element(nz, old);
  MlirValue kept = o3_nz_mul_number(nz, o3_nz_cast(nz, old, o3_nz_element(nz, new)), momentum);
  return o3_nz_cast(nz, o3_nz_add(nz, kept, o3_nz_mul_number(nz, new, 1 - momentum)), element);
}

/* Statistics of this batch, over all dimensions but the channels'; the variance is that of the population. */
static void batch_norm_training(o3_nz_t *nz, o3_node_t *node) {
  int64_t axes[O3_IR_MAX_RANK] = {0};
  MlirValue x = widened(nz, o3_node_input(node, 0));
  double momentum = o3_node_float(node, "momentum", 0.9);
  int count = 1 + axes_from(2, o3_nz_rank(nz, x), axes + 1);
  MlirValue mean = o3_nz_reduce(nz, x, "mean", count, axes, false);
  MlirValue deviation = o3_nz_sub(nz, x, per_channel(nz, mean, x));
  MlirValue variance = o3_nz_reduce(nz, square(nz, deviation), "mean", count, axes, false);
  node->outputs[0] = batch_norm(nz, node, mean, variance);
  node->outputs[1] = running(nz, o3_node_input(node, 3), mean, momentum);
  node->outputs[2] = running(nz, o3_node_input(node, 4), variance, momentum);
  if (node->opset >= 14) return; /* before, saved_mean and saved_var are outputs too */
  node->outputs[3] = mean;
  node->outputs[4] = variance;
}

static bool has_training_outputs(const o3_node_t *node) {
  for (int i = 1; i < node->num_outputs; ++i) {
    if (node->wanted[i]) return true;
  }
  return false;
}

/* Before opset 7 is_test says which mode it is, and the number of outputs says it too. */
static o3_status_t read_mode(o3_nz_t *nz, const o3_node_t *node, bool *training) {
  *training = node->opset >= 14 ? o3_node_int(node, "training_mode", 0) != 0 : has_training_outputs(node);
  if (node->opset >= 7) return NULL;
  bool test = o3_node_int(node, "is_test", 0) != 0;
  if (test && *training) return o3_nz_invalid(nz, "is_test 1 with more than one output");
  if (!test && !*training)
    return o3_nz_unsupported(
        nz, "is_test 0 (statistics of the batch) with one output only, which is of test mode");
  return NULL;
}

o3_status_t o3_onnx_batch_norm(o3_nz_t *nz, o3_node_t *node) {
  bool training;
  MlirValue x = o3_node_input(node, 0);
  if (o3_nz_rank(nz, x) < 2)
    return o3_nz_invalid(nz, "an input of rank %d, at least 2 expected", o3_nz_rank(nz, x));
  O3_TRY(read_mode(nz, node, &training));
  if (node->opset < 9 && !o3_node_int(node, "spatial", 1))
    return o3_nz_unsupported(nz, "spatial 0 (statistics for each element) is not supported");
  if (training) {
    batch_norm_training(nz, node);
  } else {
    node->outputs[0] =
        batch_norm(nz, node, widened(nz, o3_node_input(node, 3)), widened(nz, o3_node_input(node, 4)));
  }
  return NULL;
}

/* ---- Others ---- */

/* x / (sum of |x|^p)^(1/p) along axis; rows of zeros stay zeros. */
o3_status_t o3_onnx_lp_norm(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  int64_t axis = o3_nz_axis(nz, o3_node_int(node, "axis", -1), o3_nz_rank(nz, x)),
          p = o3_node_int(node, "p", 2);
  if (p != 1 && p != 2) return o3_nz_invalid(nz, "p is %lld, 1 or 2 expected", (long long)p);
  MlirValue norm = p == 1 ? o3_nz_reduce(nz, o3_nz_unary(nz, "o3.abs", x), "sum", 1, &axis, true)
                          : o3_nz_unary(nz, "o3.sqrt", o3_nz_reduce(nz, x, "sum_square", 1, &axis, true));
  MlirValue zero = o3_nz_equal(nz, norm, o3_nz_like(nz, norm, 0));
  node->outputs[0] = o3_nz_div(nz, x, o3_nz_select(nz, zero, o3_nz_like(nz, norm, 1), norm));
  return NULL;
}

/* (x - mean) / (sqrt(mean((x - mean)^2)) + 1e-9) */
o3_status_t o3_onnx_mean_variance_norm(o3_nz_t *nz, o3_node_t *node) {
  int64_t axes[O3_IR_MAX_RANK] = {0, 2, 3};
  O3_TRY(o3_onnx_legacy_since(nz, node, 9)); /* before, it was an experiment with other attributes */
  MlirValue x = widened(nz, o3_node_input(node, 0));
  int count = o3_node_has_attr(node, "axes") ? o3_node_ints(nz, node, "axes", axes, O3_IR_MAX_RANK) : 3;
  for (int i = 0; i < count; ++i) axes[i] = o3_nz_axis(nz, axes[i], o3_nz_rank(nz, x));
  MlirValue deviation = o3_nz_sub(nz, x, o3_nz_reduce(nz, x, "mean", count, axes, true));
  MlirValue variance = o3_nz_reduce(nz, square(nz, deviation), "mean", count, axes, true);
  MlirValue root = o3_nz_add_number(nz, o3_nz_unary(nz, "o3.sqrt", variance), 1e-9);
  node->outputs[0] =
      o3_nz_cast(nz, o3_nz_div(nz, deviation, root), o3_nz_element(nz, o3_node_input(node, 0)));
  return NULL;
}

/* Sums of |size| neighbours among the channels, zeros outside: |size| slices of the padded tensor. */
static MlirValue channel_windows(o3_nz_t *nz, MlirValue x, int64_t size) {
  MlirAffineExpr channels = o3_nz_dim(nz, x, 1), zero = o3_expr_const(nz->context, 0);
  int64_t before = (size - 1) / 2, after = size - 1 - before;
  o3_shape_t shape = o3_nz_fact(nz, x)->shape;
  MlirValue parts[3], padded = x;
  shape.dims[1] = o3_expr_const(nz->context, before);
  parts[0] = o3_nz_filled(nz, &shape, o3_nz_element(nz, x), 0);
  parts[1] = x;
  shape.dims[1] = o3_expr_const(nz->context, after);
  parts[2] = o3_nz_filled(nz, &shape, o3_nz_element(nz, x), 0);
  if (size > 1) padded = o3_nz_concat(nz, 1, after && before ? 3 : 2, before ? parts : parts + 1);
  MlirValue sum = o3_nz_slice(nz, padded, 1, zero, channels);
  for (int64_t i = 1; i < size; ++i)
    sum = o3_nz_add(nz, sum, o3_nz_slice(nz, padded, 1, o3_expr_const(nz->context, i), channels));
  return sum;
}

/* x / (bias + alpha / size * windows(x^2))^beta */
o3_status_t o3_onnx_lrn(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  int64_t size = o3_node_int(node, "size", 0);
  if (size < 1 || o3_nz_rank(nz, x) < 2)
    return o3_nz_invalid(nz, "size %lld and rank %d, at least 1 and 2 expected", (long long)size,
                         o3_nz_rank(nz, x));
  MlirValue sums = channel_windows(nz, square(nz, x), size);
  double alpha = o3_node_float(node, "alpha", 1e-4) / (double)size;
  MlirValue base = o3_nz_add_number(nz, o3_nz_mul_number(nz, sums, alpha), o3_node_float(node, "bias", 1));
  MlirValue power = o3_nz_binary(nz, "o3.pow", base, o3_nz_like(nz, base, o3_node_float(node, "beta", 0.75)));
  node->outputs[0] = o3_nz_div(nz, x, power);
  return NULL;
}
