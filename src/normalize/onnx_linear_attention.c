/* Attention with a state in place of a cache of keys (opset 27): LinearAttention, a recurrence over time, and
 * CausalConvWithState. Both compute narrow floats in f32. */
#include <string.h>

#include "normalize/nz_attention.h"
#include "normalize/nz_math.h"
#include "normalize/nz_region.h"

/* q: B H T K; k: B G T K; v: B G T M; decay: B G T 1 or K; beta: B 1 or G T 1; state: B G K M. */
typedef struct linear {
  MlirValue q, k, v, decay, beta, state; /* decay and beta may be null */
  double scale;
} linear_t;

/* ---- The recurrence ---- */

/* B N T D at time |t|: B N 1 D. */
static MlirValue at_time(o3_nz_t *nz, MlirValue x, MlirAffineExpr t) {
  return o3_nz_slice(nz, x, 2, t, o3_expr_const(nz->context, 1));
}

/* B N 1 D -> B N D 1 */
static MlirValue column(o3_nz_t *nz, MlirValue row) {
  return o3_nz_transpose(nz, row, (int64_t[]){0, 1, 3, 2});
}

static o3_status_t step(o3_nz_t *nz, void *context, o3_nz_iteration_t *iteration) {
  const linear_t *l = context;
  MlirAffineExpr t = iteration->number;
  MlirValue state = iteration->carried[0], k = at_time(nz, l->k, t), v = at_time(nz, l->v, t);
  if (!mlirValueIsNull(l->decay))
    state = o3_nz_mul(nz, state, column(nz, o3_nz_unary(nz, "o3.exp", at_time(nz, l->decay, t))));
  if (!mlirValueIsNull(l->beta)) /* only what the state does not give for k already */
    v = o3_nz_mul(nz, at_time(nz, l->beta, t), o3_nz_sub(nz, v, o3_nz_matmul(nz, k, state)));
  state = o3_nz_add(nz, state, o3_nz_mul(nz, column(nz, k), v));
  MlirValue read = o3_nz_grouped_matmul(nz, at_time(nz, l->q, t), state);
  iteration->next[0] = state;
  iteration->scans[0] = o3_nz_squeeze(nz, o3_nz_mul_number(nz, read, l->scale), 1, (int64_t[]){2});
  return NULL;
}

/* |results|: the last state, and B H T M. */
static o3_status_t run(o3_nz_t *nz, linear_t *l, MlirValue *results) {
  static const o3_nz_scan_t ALONG_TIME = {.axis = 2};
  o3_nz_loop_t loop = {.trip = o3_nz_dim(nz, l->q, 2),
                       .num_carried = 1,
                       .inits = &l->state,
                       .num_scans = 1,
                       .scans = &ALONG_TIME,
                       .body = step,
                       .context = l};
  return o3_nz_loop(nz, &loop, results);
}

/* ---- The node ---- */

/* Which of decay and beta the update rule takes. */
static const struct {
  const char *name;
  bool decay, beta;
} RULES[] = {
    {"linear", false, false}, {"gated", true, false}, {"delta", false, true}, {"gated_delta", true, true}};

static o3_status_t check_rule(o3_nz_t *nz, const o3_node_t *node) {
  const char *name = o3_node_string(nz, node, "update_rule", "gated_delta");
  for (size_t i = 0; i < sizeof(RULES) / sizeof(RULES[0]); ++i) {
    if (strcmp(RULES[i].name, name) != 0) continue;
    if (RULES[i].decay == o3_node_has_input(node, 4) && RULES[i].beta == o3_node_has_input(node, 5))
      return NULL;
    return o3_nz_invalid(nz, "update rule '%s' %s decay and %s beta", name,
                         RULES[i].decay ? "needs" : "forbids", RULES[i].beta ? "needs" : "forbids");
  }
  return o3_nz_invalid(nz, "update rule '%s' is unknown", name);
}

static MlirValue split(o3_nz_t *nz, const o3_node_t *node, int input, int64_t heads) {
  MlirValue x = o3_node_input(node, input);
  if (mlirValueIsNull(x)) return x;
  if (o3_nz_rank(nz, x) != 3) {
    o3_nz_fail(nz, o3_nz_invalid(nz, "input %d has rank %d, 3 expected", input, o3_nz_rank(nz, x)));
    return x;
  }
  return o3_nz_split_heads(nz, o3_nz_cast(nz, x, o3_nz_compute_type(nz, o3_nz_element(nz, x))), heads);
}

static MlirValue initial_state(o3_nz_t *nz, const o3_node_t *node, const linear_t *l) {
  MlirValue given = o3_node_input(node, 3);
  MlirType compute = o3_nz_element(nz, l->q);
  o3_shape_t shape = {.rank = 4,
                      .dims = {o3_nz_dim(nz, l->k, 0), o3_nz_dim(nz, l->k, 1), o3_nz_dim(nz, l->k, 3),
                               o3_nz_dim(nz, l->v, 3)}};
  if (mlirValueIsNull(given)) return o3_nz_filled(nz, &shape, compute, 0);
  return o3_nz_reshape(nz, o3_nz_cast(nz, given, compute), &shape);
}

o3_status_t o3_onnx_linear_attention(o3_nz_t *nz, o3_node_t *node) {
  int64_t q_heads = o3_node_int(node, "q_num_heads", 0), heads = o3_node_int(node, "kv_num_heads", 0);
  MlirValue given = o3_node_input(node, 3), results[2];
  linear_t l = {.scale = 0};
  O3_TRY(check_rule(nz, node));
  if (q_heads < 1 || heads < 1) return o3_nz_invalid(nz, "q_num_heads and kv_num_heads must be given");
  l.q = split(nz, node, 0, q_heads);
  l.k = split(nz, node, 1, heads);
  l.v = split(nz, node, 2, heads);
  l.decay = split(nz, node, 4, heads);
  int64_t betas =
      o3_node_has_input(node, 5) ? o3_nz_static_dim(nz, node->inputs[5], 2, "the size of beta") : 1;
  l.beta = split(nz, node, 5, betas);
  l.scale = o3_nz_attention_scale(nz, node, "scale", l.q);
  if (o3_nz_failed(nz)) return NULL;
  l.state = initial_state(nz, node, &l);
  O3_TRY(run(nz, &l, results));
  MlirType element = o3_nz_element(nz, node->inputs[0]);
  node->outputs[0] = o3_nz_cast(nz, o3_nz_join_heads(nz, results[1]), element);
  node->outputs[1] = o3_nz_cast(nz, results[0], mlirValueIsNull(given) ? element : o3_nz_element(nz, given));
  return NULL;
}

/* ---- CausalConvWithState ---- */

/* A depthwise convolution: x (B C L) after its state (B C K-1) with w (C 1 K). */
static MlirValue depthwise(o3_nz_t *nz, const o3_node_t *node, MlirValue padded, int64_t channels) {
  int64_t ones[1] = {1}, zeros[2] = {0};
  MlirValue operands[3] = {padded, o3_node_input(node, 1), o3_node_input(node, 2)};
  return o3_nz_op(
      nz, "o3.conv", o3_node_has_input(node, 2) ? 3 : 2, operands,
      O3_ATTRS({"strides", o3_nz_ints_attr(nz, 1, ones)}, {"dilations", o3_nz_ints_attr(nz, 1, ones)},
               {"pads", o3_nz_ints_attr(nz, 2, zeros)}, {"group", o3_attr_i64(nz->context, channels)}));
}

static MlirValue with_state(o3_nz_t *nz, const o3_node_t *node, MlirAffineExpr length) {
  MlirValue x = o3_node_input(node, 0);
  MlirValue parts[2] = {o3_node_input(node, 3), x};
  if (mlirValueIsNull(parts[0])) {
    o3_shape_t shape = {.rank = 3, .dims = {o3_nz_dim(nz, x, 0), o3_nz_dim(nz, x, 1), length}};
    parts[0] = o3_nz_filled(nz, &shape, o3_nz_element(nz, x), 0);
  }
  return o3_nz_concat(nz, 2, 2, parts);
}

o3_status_t o3_onnx_causal_conv_with_state(o3_nz_t *nz, o3_node_t *node) {
  const char *activation = o3_node_string(nz, node, "activation", "none");
  bool silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
  MlirValue x = o3_node_input(node, 0), w = o3_node_input(node, 1);
  if (!silu && strcmp(activation, "none") != 0)
    return o3_nz_invalid(nz, "activation '%s' is none of none, silu, swish", activation);
  if (o3_nz_rank(nz, x) != 3 || o3_nz_rank(nz, w) != 3)
    return o3_nz_invalid(nz, "input and weight have ranks %d and %d, 3 expected", o3_nz_rank(nz, x),
                         o3_nz_rank(nz, w));
  int64_t channels = o3_nz_static_dim(nz, w, 0, "the number of channels");
  MlirAffineExpr kept = o3_expr_sub(o3_nz_dim(nz, w, 2), o3_expr_const(nz->context, 1));
  MlirValue padded = with_state(nz, node, kept), y = depthwise(nz, node, padded, channels);
  MlirType element = o3_nz_element(nz, x);
  MlirValue wide = o3_nz_cast(nz, y, o3_nz_compute_type(nz, element));
  if (silu) y = o3_nz_cast(nz, o3_nz_mul(nz, wide, o3_nz_unary(nz, "o3.sigmoid", wide)), element);
  node->outputs[0] = y;
  node->outputs[1] = o3_nz_slice(nz, padded, 2, o3_nz_dim(nz, x, 2), kept);
  return NULL;
}
