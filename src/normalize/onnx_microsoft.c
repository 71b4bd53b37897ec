/* Attention of com.microsoft, as ONNX Runtime's transformer optimizer writes it: MultiHeadAttention with
 * separate queries, keys and values, and Attention with one product for all three. Masks are integers, 1
 * where a key is seen; what is not seen gets mask_filter_value added. Packed inputs, caches of fixed size and
 * masks given as lengths are refused. */
#include "normalize/nz_attention.h"
#include "normalize/nz_math.h"

typedef struct heads {
  MlirValue q, k, v;   /* B N S D, k and v with the past before them */
  MlirValue mask;      /* B T or B S T, integers; may be null */
  MlirValue bias;      /* added to the scores, broadcast to B N S T; may be null */
  MlirAffineExpr past; /* positions of k before those of q */
} heads_t;

/* (1 - mask) * filter, as B 1 S T or B 1 1 T. */
static MlirValue mask_bias(o3_nz_t *nz, const o3_node_t *node, MlirValue mask, MlirValue scores) {
  int rank = o3_nz_rank(nz, mask);
  MlirValue hidden = o3_nz_binary(nz, "o3.less_equal", mask, o3_nz_like(nz, mask, 0));
  MlirValue filter = o3_nz_like(nz, scores, o3_node_float(node, "mask_filter_value", -10000));
  MlirValue bias = o3_nz_select(nz, hidden, filter, o3_nz_like(nz, scores, 0));
  return o3_nz_unsqueeze(nz, bias, 4 - rank, (int64_t[]){1, 2});
}

static o3_status_t check_mask(o3_nz_t *nz, MlirValue mask) {
  int rank = mlirValueIsNull(mask) ? 2 : o3_nz_rank(nz, mask);
  if (rank == 2 || rank == 3) return NULL;
  return o3_nz_unsupported(nz, "a mask of rank %d, 2 (batch, keys) or 3 (batch, queries, keys) is", rank);
}

/* The result as B S N*D, in the element type of q. */
static o3_status_t attend(o3_nz_t *nz, const o3_node_t *node, const heads_t *h, MlirValue *y) {
  MlirType element = o3_nz_element(nz, h->q), compute = o3_nz_compute_type(nz, element);
  O3_TRY(check_mask(nz, h->mask));
  double scale = o3_nz_attention_scale(nz, node, "scale", h->q);
  MlirValue keys = o3_nz_transpose(nz, o3_nz_cast(nz, h->k, compute), (int64_t[]){0, 1, 3, 2});
  MlirValue scores = o3_nz_matmul(nz, o3_nz_mul_number(nz, o3_nz_cast(nz, h->q, compute), scale), keys);
  if (!mlirValueIsNull(h->mask)) scores = o3_nz_add(nz, scores, mask_bias(nz, node, h->mask, scores));
  if (!mlirValueIsNull(h->bias)) scores = o3_nz_add(nz, scores, o3_nz_cast(nz, h->bias, compute));
  if (o3_node_int(node, "unidirectional", 0))
    scores = o3_nz_mask_scores(nz, scores, o3_nz_causal_mask(nz, scores, h->past));
  MlirValue product = o3_nz_matmul(nz, o3_nz_softmax(nz, scores, 3), o3_nz_cast(nz, h->v, compute));
  *y = o3_nz_join_heads(nz, o3_nz_cast(nz, product, element));
  return NULL;
}

/* Inputs that these converters do not read must be absent. */
static o3_status_t refuse_inputs(o3_nz_t *nz, const o3_node_t *node, int first) {
  for (int i = first; i < node->num_inputs; ++i) {
    if (o3_node_has_input(node, i))
      return o3_nz_unsupported(nz, "input %d (a cache of fixed size) is not supported", i);
  }
  return NULL;
}

static MlirValue after(o3_nz_t *nz, MlirValue past, MlirValue x) {
  MlirValue parts[2] = {past, x};
  return mlirValueIsNull(past) ? x : o3_nz_concat(nz, 2, 2, parts);
}

/* ---- MultiHeadAttention ---- */

/* Input |index|, plus its part of the bias that begins at |*offset|. */
static MlirValue with_bias(o3_nz_t *nz, const o3_node_t *node, int index, MlirAffineExpr *offset) {
  MlirValue x = node->inputs[index], bias = o3_node_input(node, 3);
  MlirAffineExpr width = o3_nz_dim(nz, x, 2);
  if (!mlirValueIsNull(bias)) x = o3_nz_add(nz, x, o3_nz_slice(nz, bias, 0, *offset, width));
  *offset = o3_expr_add(*offset, width);
  return x;
}

o3_status_t o3_onnx_microsoft_multi_head_attention(o3_nz_t *nz, o3_node_t *node) {
  int64_t heads = o3_node_int(node, "num_heads", 0);
  MlirAffineExpr offset = o3_expr_const(nz->context, 0);
  MlirValue parts[3], past_key = o3_node_input(node, 6);
  for (int i = 0; i < 3; ++i) {
    if (!o3_node_has_input(node, i) || o3_nz_rank(nz, node->inputs[i]) != 3)
      return o3_nz_unsupported(nz,
                               "query, key and value that are not three tensors of rank 3 are not supported");
    parts[i] = o3_nz_split_heads(nz, with_bias(nz, node, i, &offset), heads);
  }
  O3_TRY(refuse_inputs(nz, node, 8));
  heads_t h = {.q = parts[0],
               .k = after(nz, past_key, parts[1]),
               .v = after(nz, o3_node_input(node, 7), parts[2]),
               .mask = o3_node_input(node, 4),
               .bias = o3_node_input(node, 5),
               .past = o3_expr_const(nz->context, 0)};
  if (!mlirValueIsNull(past_key)) h.past = o3_nz_dim(nz, past_key, 2);
  node->outputs[1] = h.k;
  node->outputs[2] = h.v;
  return attend(nz, node, &h, &node->outputs[0]);
}

/* ---- Attention ---- */

/* Widths of Q, K and V in the product: equal unless qkv_hidden_sizes says otherwise. */
static o3_status_t read_widths(o3_nz_t *nz, const o3_node_t *node, int64_t *widths) {
  int count = o3_node_ints(nz, node, "qkv_hidden_sizes", widths, 3);
  int64_t total = o3_nz_static_dim(nz, o3_node_input(node, 1), 1, "the width of the weights");
  for (int i = 0; count == 0 && i < 3; ++i) widths[i] = total / 3;
  if (o3_nz_failed(nz) || ((count == 0 || count == 3) && widths[0] + widths[1] + widths[2] == total))
    return NULL;
  return o3_nz_invalid(nz, "weights of width %lld do not hold queries, keys and values", (long long)total);
}

/* past and present are keys, then values, stacked. */
static MlirValue half(o3_nz_t *nz, MlirValue past, int which) {
  if (mlirValueIsNull(past)) return past;
  MlirValue part = o3_nz_slice(nz, past, 0, o3_expr_const(nz->context, which), o3_expr_const(nz->context, 1));
  return o3_nz_squeeze(nz, part, 1, (int64_t[]){0});
}

static MlirValue stacked(o3_nz_t *nz, MlirValue a, MlirValue b) {
  MlirValue parts[2] = {o3_nz_unsqueeze(nz, a, 1, (int64_t[]){0}), o3_nz_unsqueeze(nz, b, 1, (int64_t[]){0})};
  return o3_nz_concat(nz, 0, 2, parts);
}

o3_status_t o3_onnx_microsoft_attention(o3_nz_t *nz, o3_node_t *node) {
  MlirValue past = o3_node_input(node, 4), parts[3];
  int64_t widths[3] = {0}, at = 0, heads = o3_node_int(node, "num_heads", 0);
  if (o3_node_int(node, "do_rotary", 0)) return o3_nz_unsupported(nz, "do_rotary is not supported");
  O3_TRY(refuse_inputs(nz, node, 6));
  O3_TRY(read_widths(nz, node, widths));
  MlirValue all = o3_nz_matmul(nz, o3_node_input(node, 0), o3_node_input(node, 1));
  if (o3_node_has_input(node, 2)) all = o3_nz_add(nz, all, node->inputs[2]);
  for (int i = 0; i < 3; at += widths[i++]) {
    MlirValue part =
        o3_nz_slice(nz, all, 2, o3_expr_const(nz->context, at), o3_expr_const(nz->context, widths[i]));
    parts[i] = o3_nz_split_heads(nz, part, heads);
  }
  heads_t h = {.q = parts[0],
               .k = after(nz, half(nz, past, 0), parts[1]),
               .v = after(nz, half(nz, past, 1), parts[2]),
               .mask = o3_node_input(node, 3),
               .bias = o3_node_input(node, 5),
               .past = o3_expr_const(nz->context, 0)};
  if (!mlirValueIsNull(past)) h.past = o3_nz_dim(nz, past, 3);
  if (node->num_outputs > 1 && node->wanted[1]) node->outputs[1] = stacked(nz, h.k, h.v);
  return attend(nz, node, &h, &node->outputs[0]);
}
