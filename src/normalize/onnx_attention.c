/* Attention (opset 23 on) and FlexAttention:
 *
 *     softmax(softcap(scale * Q K^T) + mask) V
 *
 * Narrow floats are computed in f32. Masks that say whether a key is seen are selects against -inf. */
#include <math.h>
#include <string.h>

#include "normalize/nz_attention.h"
#include "normalize/nz_math.h"

/* What output qk_matmul_output shows. */
typedef enum qk_mode { QK_PRODUCT, QK_CAPPED, QK_MASKED, QK_SOFTMAX } qk_mode_t;

typedef struct attention {
  const o3_node_t *node;
  bool packed; /* Q, K and V are B S N*D */
  MlirType element, compute;
  MlirValue q, k, v;   /* B N S D; k and v with the past before them */
  MlirAffineExpr past; /* how many positions of k are earlier ones */
} attention_t;

/* ---- Inputs ---- */

static o3_status_t read_heads(o3_nz_t *nz, attention_t *a) {
  static const char *const ATTRS[] = {"q_num_heads", "kv_num_heads", "kv_num_heads"};
  MlirValue *const values[] = {&a->q, &a->k, &a->v};
  a->packed = o3_nz_rank(nz, o3_node_input(a->node, 0)) == 3;
  for (int i = 0; i < 3; ++i) {
    MlirValue x = o3_node_input(a->node, i);
    if (mlirValueIsNull(x)) return o3_nz_invalid(nz, "input %d is missing", i);
    if (o3_nz_rank(nz, x) != (a->packed ? 3 : 4))
      return o3_nz_invalid(nz, "input %d has rank %d; Q, K and V have rank 3 or 4 together", i,
                           o3_nz_rank(nz, x));
    if (a->packed && !o3_node_has_attr(a->node, ATTRS[i]))
      return o3_nz_invalid(nz, "inputs of rank 3 need attribute %s", ATTRS[i]);
    *values[i] = a->packed ? o3_nz_split_heads(nz, x, o3_node_int(a->node, ATTRS[i], 1)) : x;
  }
  return NULL;
}

static MlirValue after_past(o3_nz_t *nz, MlirValue past, MlirValue x) {
  MlirValue parts[2] = {past, x};
  return mlirValueIsNull(past) ? x : o3_nz_concat(nz, 2, 2, parts);
}

static o3_status_t read_past(o3_nz_t *nz, attention_t *a) {
  MlirValue key = o3_node_input(a->node, 4), value = o3_node_input(a->node, 5);
  for (int i = 4; i < 6; ++i) {
    if (o3_node_has_input(a->node, i) && o3_nz_rank(nz, a->node->inputs[i]) != 4)
      return o3_nz_invalid(nz, "input %d has rank %d, 4 expected", i, o3_nz_rank(nz, a->node->inputs[i]));
  }
  a->past = mlirValueIsNull(key) ? o3_expr_const(nz->context, 0) : o3_nz_dim(nz, key, 2);
  a->k = after_past(nz, key, a->k);
  a->v = after_past(nz, value, a->v);
  return NULL;
}

/* ---- Scores ---- */

static MlirValue product_of(o3_nz_t *nz, const attention_t *a) {
  double scale = o3_nz_attention_scale(nz, a->node, "scale", a->q);
  MlirValue q = o3_nz_mul_number(nz, o3_nz_cast(nz, a->q, a->compute), scale);
  return o3_nz_grouped_scores(nz, q, o3_nz_cast(nz, a->k, a->compute));
}

/* Scores keep the groups of heads as a dimension, so that they go from product to product as they are, unless
 * the mask has a number of heads that is not known. */
static bool keeps_groups(o3_nz_t *nz, MlirValue mask) {
  int64_t heads;
  int rank = mlirValueIsNull(mask) ? 0 : o3_nz_rank(nz, mask);
  return rank < 3 || o3_expr_is_const(o3_nz_dim(nz, mask, rank - 3), &heads);
}

/* cap * tanh(x / cap) */
static MlirValue capped(o3_nz_t *nz, MlirValue x, double cap) {
  if (cap <= 0) return x;
  return o3_nz_mul_number(nz, o3_nz_unary(nz, "o3.tanh", o3_nz_mul_number(nz, x, 1 / cap)), cap);
}

/* A mask for fewer keys than there are hides the rest. */
static MlirValue padded_mask(o3_nz_t *nz, MlirValue mask, MlirAffineExpr keys) {
  int last = o3_nz_rank(nz, mask) - 1;
  int64_t missing;
  MlirAffineExpr rest = o3_expr_sub(keys, o3_nz_dim(nz, mask, last));
  if (o3_nz_failed(nz) || !o3_expr_is_const(rest, &missing) || missing <= 0) return mask;
  MlirType element = o3_nz_element(nz, mask);
  o3_shape_t shape = o3_nz_fact(nz, mask)->shape;
  shape.dims[last] = rest;
  MlirValue parts[2] = {mask,
                        o3_nz_filled(nz, &shape, element, o3_type_is_bool(element) ? 0 : -(double)INFINITY)};
  return o3_nz_concat(nz, last, 2, parts);
}

static MlirValue with_mask(o3_nz_t *nz, MlirValue scores, MlirValue mask) {
  if (mlirValueIsNull(mask)) return scores;
  int rank = o3_nz_rank(nz, scores);
  mask = padded_mask(nz, mask, o3_nz_dim(nz, scores, rank - 1));
  if (rank == 5) mask = o3_nz_group_heads(nz, mask, o3_nz_static_dim(nz, scores, 1, "the number of heads"));
  if (o3_type_is_bool(o3_nz_element(nz, mask))) return o3_nz_mask_scores(nz, scores, mask);
  return o3_nz_add(nz, scores, o3_nz_cast(nz, mask, o3_nz_element(nz, scores)));
}

/* Each sample sees its own number of keys. */
static MlirValue with_lengths(o3_nz_t *nz, MlirValue scores, MlirValue lengths) {
  if (mlirValueIsNull(lengths)) return scores;
  int rank = o3_nz_rank(nz, scores);
  MlirValue columns = o3_nz_positions(nz, rank, rank - 1, o3_nz_dim(nz, scores, rank - 1));
  MlirValue ends =
      o3_nz_unsqueeze(nz, o3_nz_cast(nz, lengths, o3_nz_i64(nz)), rank - 1, (int64_t[]){1, 2, 3, 4});
  return o3_nz_mask_scores(nz, scores, o3_nz_less(nz, columns, ends));
}

static MlirValue masked(o3_nz_t *nz, const attention_t *a, MlirValue scores) {
  scores = with_mask(nz, scores, o3_node_input(a->node, 3));
  if (o3_node_int(a->node, "is_causal", 0))
    scores = o3_nz_mask_scores(nz, scores, o3_nz_causal_mask(nz, scores, a->past));
  return with_lengths(nz, scores, o3_node_input(a->node, 6));
}

/* Precision asked for below the one computed in changes nothing but accuracy. */
static MlirType softmax_type(o3_nz_t *nz, const attention_t *a) {
  if (!o3_node_has_attr(a->node, "softmax_precision")) return a->compute;
  MlirType wanted = o3_nz_onnx_type(nz, o3_node_int(a->node, "softmax_precision", 1));
  if (o3_nz_failed(nz)) return a->compute;
  return o3_type_bits(wanted) > o3_type_bits(a->compute) ? wanted : a->compute;
}

static o3_status_t finish(o3_nz_t *nz, o3_node_t *node, const attention_t *a, MlirValue y) {
  y = o3_nz_cast(nz, y, a->element);
  node->outputs[0] = a->packed ? o3_nz_join_heads(nz, y) : y;
  return NULL;
}

o3_status_t o3_onnx_attention(o3_nz_t *nz, o3_node_t *node) {
  attention_t a = {.node = node, .element = o3_nz_element(nz, o3_node_input(node, 0))};
  int64_t mode = o3_node_int(node, "qk_matmul_output_mode", QK_PRODUCT);
  MlirValue stages[4];
  a.compute = o3_nz_compute_type(nz, a.element);
  if (mode < QK_PRODUCT || mode > QK_SOFTMAX)
    return o3_nz_invalid(nz, "qk_matmul_output_mode is %lld, 0 to 3 expected", (long long)mode);
  O3_TRY(read_heads(nz, &a));
  O3_TRY(read_past(nz, &a));
  stages[QK_PRODUCT] = product_of(nz, &a);
  if (o3_nz_failed(nz)) return NULL;
  if (!keeps_groups(nz, o3_node_input(node, 3)))
    stages[QK_PRODUCT] = o3_nz_ungroup_heads(nz, stages[QK_PRODUCT]);
  stages[QK_CAPPED] = capped(nz, stages[QK_PRODUCT], o3_node_float(node, "softcap", 0));
  stages[QK_MASKED] = masked(nz, &a, stages[QK_CAPPED]);
  MlirValue wide = o3_nz_cast(nz, stages[QK_MASKED], softmax_type(nz, &a));
  stages[QK_SOFTMAX] = o3_nz_cast(nz, o3_nz_softmax(nz, wide, o3_nz_rank(nz, wide) - 1), a.compute);
  node->outputs[1] = a.k;
  node->outputs[2] = a.v;
  node->outputs[3] = o3_nz_cast(nz, o3_nz_ungroup_heads(nz, stages[mode]), a.element);
  return finish(nz, node, &a, o3_nz_grouped_matmul(nz, stages[QK_SOFTMAX], o3_nz_cast(nz, a.v, a.compute)));
}

/* ---- FlexAttention ---- */

/* Scores or probabilities through a subgraph of the node, where there is one. */
static o3_status_t modified(o3_nz_t *nz, const o3_node_t *node, const char *attr, MlirValue *scores) {
  o3_binding_t input = {.kind = O3_BINDING_TENSOR, .tensor = *scores}, output;
  int count;
  if (!o3_node_has_attr(node, attr)) return NULL;
  O3_TRY(o3_nz_subgraph(nz, node, attr, 1, &input, 1, &output, &count));
  if (count != 1 || output.kind != O3_BINDING_TENSOR)
    return o3_nz_invalid(nz, "%s must give one tensor", attr);
  if (o3_nz_rank(nz, output.tensor) != 4)
    return o3_nz_invalid(nz, "%s gives a tensor of rank %d, 4 expected", attr, o3_nz_rank(nz, output.tensor));
  *scores = o3_nz_cast(nz, output.tensor, o3_nz_element(nz, *scores));
  return NULL;
}

o3_status_t o3_onnx_flex_attention(o3_nz_t *nz, o3_node_t *node) {
  attention_t a = {.node = node, .element = o3_nz_element(nz, o3_node_input(node, 0))};
  a.compute = o3_nz_compute_type(nz, a.element);
  O3_TRY(read_heads(nz, &a));
  if (a.packed) return o3_nz_invalid(nz, "Q, K and V have rank 3, 4 expected");
  MlirType precise = a.compute;
  if (o3_node_has_attr(node, "softmax_precision"))
    precise = o3_nz_onnx_type(nz, o3_node_int(node, "softmax_precision", 1));
  if (o3_nz_failed(nz)) return NULL;
  MlirValue scores = o3_nz_cast(nz, o3_nz_ungroup_heads(nz, product_of(nz, &a)), precise);
  O3_TRY(modified(nz, node, "score_mod", &scores));
  MlirValue probabilities = o3_nz_softmax(nz, scores, 3);
  O3_TRY(modified(nz, node, "prob_mod", &probabilities));
  return finish(nz, node, &a, o3_nz_grouped_matmul(nz, probabilities, o3_nz_cast(nz, a.v, precise)));
}
