/* LSTM, GRU and RNN. The products with the input are one matrix product over all time steps, ahead of the
 * loop over time; the loop does the products with the state. Directions are independent loops. Formulas and
 * the order of gates (i o f c; z r h) are those of the ONNX operator pages. Half precision is computed in
 * f32. ONNX Runtime's DynamicQuantizeLSTM has weights of 8 bits, and rounds what they are multiplied with,
 * the input and each step's state, to 8 bits as DynamicQuantizeLinear does. */
#include <stdlib.h>
#include <strings.h>

#include "normalize/nz_attention.h"
#include "normalize/nz_region.h"
#include "normalize/onnx_quantize.h"

enum { MAX_DIRECTIONS = 2, MAX_FUNCTIONS = 3 };

/* ---- Activation functions ---- */

typedef struct activation activation_t;
typedef MlirValue (*activation_fn_t)(o3_nz_t *nz, const activation_t *f, MlirValue x);

struct activation {
  activation_fn_t apply;
  double alpha, beta;
};

static MlirValue scaled(o3_nz_t *nz, MlirValue x, double factor) {
  return o3_nz_binary(nz, "o3.mul", x, o3_nz_like(nz, x, factor));
}

static MlirValue shifted(o3_nz_t *nz, MlirValue x, double term) {
  return o3_nz_binary(nz, "o3.add", x, o3_nz_like(nz, x, term));
}

static MlirValue where_positive(o3_nz_t *nz, MlirValue x, MlirValue yes, MlirValue no) {
  return o3_nz_select(nz, o3_nz_binary(nz, "o3.less", o3_nz_like(nz, x, 0), x), yes, no);
}

static MlirValue f_relu(o3_nz_t *nz, const activation_t *f, MlirValue x) {
  (void)f;
  return o3_nz_binary(nz, "o3.max", x, o3_nz_like(nz, x, 0));
}
static MlirValue f_tanh(o3_nz_t *nz, const activation_t *f, MlirValue x) {
  (void)f;
  return o3_nz_unary(nz, "o3.tanh", x);
}
static MlirValue f_sigmoid(o3_nz_t *nz, const activation_t *f, MlirValue x) {
  (void)f;
  return o3_nz_unary(nz, "o3.sigmoid", x);
}
static MlirValue f_affine(o3_nz_t *nz, const activation_t *f, MlirValue x) {
  return shifted(nz, scaled(nz, x, f->alpha), f->beta);
}
static MlirValue f_leaky_relu(o3_nz_t *nz, const activation_t *f, MlirValue x) {
  return where_positive(nz, x, x, scaled(nz, x, f->alpha));
}
static MlirValue f_thresholded_relu(o3_nz_t *nz, const activation_t *f, MlirValue x) {
  MlirValue below = o3_nz_binary(nz, "o3.less", x, o3_nz_like(nz, x, f->alpha));
  return o3_nz_select(nz, below, o3_nz_like(nz, x, 0), x);
}
static MlirValue f_scaled_tanh(o3_nz_t *nz, const activation_t *f, MlirValue x) {
  return scaled(nz, o3_nz_unary(nz, "o3.tanh", scaled(nz, x, f->beta)), f->alpha);
}
static MlirValue f_hard_sigmoid(o3_nz_t *nz, const activation_t *f, MlirValue x) {
  return o3_nz_clamp(nz, shifted(nz, scaled(nz, x, f->alpha), f->beta), 0, 1);
}
static MlirValue f_elu(o3_nz_t *nz, const activation_t *f, MlirValue x) {
  MlirValue below = shifted(nz, o3_nz_unary(nz, "o3.exp", x), -1);
  return where_positive(nz, x, x, scaled(nz, below, f->alpha));
}
static MlirValue f_softsign(o3_nz_t *nz, const activation_t *f, MlirValue x) {
  (void)f;
  return o3_nz_binary(nz, "o3.div", x, shifted(nz, o3_nz_unary(nz, "o3.abs", x), 1));
}
/* log(1 + e^x) as max(x, 0) + log(1 + e^-|x|), which does not overflow. */
static MlirValue f_softplus(o3_nz_t *nz, const activation_t *f, MlirValue x) {
  MlirValue small = o3_nz_unary(nz, "o3.exp", o3_nz_unary(nz, "o3.neg", o3_nz_unary(nz, "o3.abs", x)));
  return o3_nz_binary(nz, "o3.add", f_relu(nz, f, x), o3_nz_unary(nz, "o3.log", shifted(nz, small, 1)));
}

static const struct {
  const char *name;
  activation_fn_t apply;
  bool has_alpha, has_beta;
  double alpha, beta; /* defaults */
} ACTIVATIONS[] = {
    {"Relu", f_relu, false, false, 0, 0},
    {"Tanh", f_tanh, false, false, 0, 0},
    {"Sigmoid", f_sigmoid, false, false, 0, 0},
    {"Affine", f_affine, true, true, 1, 0},
    {"LeakyRelu", f_leaky_relu, true, false, 0.01, 0},
    {"ThresholdedRelu", f_thresholded_relu, true, false, 1, 0},
    {"ScaledTanh", f_scaled_tanh, true, true, 1, 1},
    {"HardSigmoid", f_hard_sigmoid, true, true, 0.2, 0.5},
    {"Elu", f_elu, true, false, 1, 0},
    {"Softsign", f_softsign, false, false, 0, 0},
    {"Softplus", f_softplus, false, false, 0, 0},
};

/* ---- The node ---- */

typedef struct rnn rnn_t;

/* Weights for K inputs. Quantised ones are what their scale is multiplied with. */
typedef struct weights {
  MlirValue matrix; /* K G*H */
  MlirValue scale;  /* of quantised ones: one, or G*H; else null */
} weights_t;

/* One direction under construction. Shapes with H the hidden size, G the number of gates, T, B. */
typedef struct direction {
  const rnn_t *rnn;
  bool reverse;
  activation_t f[MAX_FUNCTIONS];
  MlirValue products;     /* T B G*H: input times weights, plus biases */
  weights_t recurrence;   /* of the state */
  MlirValue reset_bias;   /* H, of GRU with linear_before_reset; may be null */
  MlirValue peepholes[3]; /* H each, of LSTM; may be null */
  MlirValue states[2];    /* B H: hidden and cell */
} direction_t;

/* |given|: the step's part of the products with the input, B G*H. */
typedef void (*step_fn_t)(o3_nz_t *nz, const direction_t *d, MlirValue given, const MlirValue *states,
                          MlirValue *next);

typedef struct kind {
  bool is_quantized; /* 8-bit weights, K G*H, with scales and zero points: inputs 8 to 11 */
  int num_gates, num_states, num_functions;
  const char *functions[MAX_FUNCTIONS]; /* defaults */
  step_fn_t step;
} kind_t;

struct rnn {
  const kind_t *kind;
  const o3_node_t *node;
  int num_directions;
  bool backwards; /* the first direction is reverse */
  int64_t hidden;
  double clip; /* 0: none */
  bool input_forget, linear_before_reset, batch_first;
  MlirType element;  /* of the model; computed in f32 when narrower */
  MlirValue x;       /* T B I */
  MlirValue lengths; /* B, or null */
  MlirAffineExpr steps, batch;
  direction_t directions[MAX_DIRECTIONS];
};

static MlirAffineExpr number(const o3_nz_t *nz, int64_t value) { return o3_expr_const(nz->context, value); }

/* Gate |index| of a tensor whose axis |axis| holds all gates. */
static MlirValue gates(o3_nz_t *nz, const rnn_t *rnn, MlirValue x, int axis, int first, int count) {
  return o3_nz_slice(nz, x, axis, number(nz, first * rnn->hidden), number(nz, count * rnn->hidden));
}

static MlirValue activated(o3_nz_t *nz, const direction_t *d, int function, MlirValue x) {
  if (d->rnn->clip > 0) x = o3_nz_clamp(nz, x, -d->rnn->clip, d->rnn->clip);
  return d->f[function].apply(nz, &d->f[function], x);
}

static MlirValue add(o3_nz_t *nz, MlirValue a, MlirValue b) { return o3_nz_binary(nz, "o3.add", a, b); }
static MlirValue mul(o3_nz_t *nz, MlirValue a, MlirValue b) { return o3_nz_binary(nz, "o3.mul", a, b); }
static MlirValue one_minus(o3_nz_t *nz, MlirValue x) {
  return o3_nz_binary(nz, "o3.sub", o3_nz_like(nz, x, 1), x);
}

static MlirValue peeped(o3_nz_t *nz, const direction_t *d, int index, MlirValue gate, MlirValue cell) {
  return mlirValueIsNull(d->peepholes[index]) ? gate : add(nz, gate, mul(nz, d->peepholes[index], cell));
}

/* x (M K) times |weights|. */
static MlirValue product(o3_nz_t *nz, MlirValue x, const weights_t *weights) {
  if (mlirValueIsNull(weights->scale)) return o3_nz_matmul(nz, x, weights->matrix);
  const o3_nz_quantized_t q = o3_nz_dynamic_quantize(nz, x);
  MlirType f32 = o3_nz_f32(nz);
  MlirValue levels =
      o3_nz_binary(nz, "o3.sub", o3_nz_cast(nz, q.bytes, f32), o3_nz_cast(nz, q.zero_point, f32));
  return mul(nz, o3_nz_matmul(nz, levels, weights->matrix), mul(nz, q.scale, weights->scale));
}

/* ---- One time step ---- */

static void step_lstm(o3_nz_t *nz, const direction_t *d, MlirValue given, const MlirValue *states,
                      MlirValue *next) {
  const rnn_t *rnn = d->rnn;
  MlirValue cell = states[1], all = add(nz, given, product(nz, states[0], &d->recurrence));
  MlirValue input = activated(nz, d, 0, peeped(nz, d, 0, gates(nz, rnn, all, 1, 0, 1), cell));
  MlirValue forget = rnn->input_forget
                         ? one_minus(nz, input)
                         : activated(nz, d, 0, peeped(nz, d, 2, gates(nz, rnn, all, 1, 2, 1), cell));
  MlirValue update = activated(nz, d, 1, gates(nz, rnn, all, 1, 3, 1));
  next[1] = add(nz, mul(nz, forget, cell), mul(nz, input, update));
  MlirValue output = activated(nz, d, 0, peeped(nz, d, 1, gates(nz, rnn, all, 1, 1, 1), next[1]));
  next[0] = mul(nz, output, d->f[2].apply(nz, &d->f[2], next[1]));
}

static void step_gru(o3_nz_t *nz, const direction_t *d, MlirValue given, const MlirValue *states,
                     MlirValue *next) {
  const rnn_t *rnn = d->rnn;
  MlirValue h = states[0], candidate = gates(nz, rnn, given, 1, 2, 1), recurrence = d->recurrence.matrix;
  MlirValue first = gates(nz, rnn, recurrence, 1, 0, 2), last = gates(nz, rnn, recurrence, 1, 2, 1);
  MlirValue both = add(nz, gates(nz, rnn, given, 1, 0, 2), o3_nz_matmul(nz, h, first));
  MlirValue update = activated(nz, d, 0, gates(nz, rnn, both, 1, 0, 1));
  MlirValue reset = activated(nz, d, 0, gates(nz, rnn, both, 1, 1, 1));
  MlirValue recurrent;
  if (rnn->linear_before_reset) {
    MlirValue line = o3_nz_matmul(nz, h, last);
    if (!mlirValueIsNull(d->reset_bias)) line = add(nz, line, d->reset_bias);
    recurrent = mul(nz, reset, line);
  } else {
    recurrent = o3_nz_matmul(nz, mul(nz, reset, h), last);
  }
  MlirValue fresh = activated(nz, d, 1, add(nz, candidate, recurrent));
  next[0] = add(nz, mul(nz, one_minus(nz, update), fresh), mul(nz, update, h));
}

static void step_rnn(o3_nz_t *nz, const direction_t *d, MlirValue given, const MlirValue *states,
                     MlirValue *next) {
  next[0] = activated(nz, d, 0, add(nz, given, product(nz, states[0], &d->recurrence)));
}

static const kind_t LSTM = {false, 4, 2, 3, {"Sigmoid", "Tanh", "Tanh"}, step_lstm};
static const kind_t QUANTIZED_LSTM = {true, 4, 2, 3, {"Sigmoid", "Tanh", "Tanh"}, step_lstm};
static const kind_t GRU = {false, 3, 1, 2, {"Sigmoid", "Tanh", NULL}, step_gru};
static const kind_t RNN = {false, 1, 1, 1, {"Tanh", NULL, NULL}, step_rnn};

static bool is_lstm(const rnn_t *rnn) { return rnn->kind->step == step_lstm; }

/* ---- The loop over time ---- */

/* Sequences that are over keep their state and give zeros. A reverse direction starts with the padding, whose
 * steps change nothing, so each sequence begins at its own end. */
static void mask_step(o3_nz_t *nz, const direction_t *d, MlirAffineExpr time, const MlirValue *states,
                      MlirValue *next, MlirValue *output) {
  const rnn_t *rnn = d->rnn;
  MlirValue now = o3_nz_cast(nz, o3_nz_sizes(nz, 1, &time, true), o3_nz_element(nz, rnn->lengths));
  MlirValue active = o3_nz_unsqueeze(nz, o3_nz_binary(nz, "o3.less", now, rnn->lengths), 1, (int64_t[]){1});
  for (int i = 0; i < rnn->kind->num_states; ++i) next[i] = o3_nz_select(nz, active, next[i], states[i]);
  *output = o3_nz_select(nz, active, *output, o3_nz_like(nz, *output, 0));
}

static o3_status_t step(o3_nz_t *nz, void *context, o3_nz_iteration_t *iteration) {
  const direction_t *d = context;
  const rnn_t *rnn = d->rnn;
  MlirAffineExpr last = o3_expr_sub(rnn->steps, number(nz, 1));
  MlirAffineExpr time = d->reverse ? o3_expr_sub(last, iteration->number) : iteration->number;
  MlirValue given = o3_nz_slice(nz, d->products, 0, time, number(nz, 1));
  given = o3_nz_squeeze(nz, given, 1, (int64_t[]){0});
  rnn->kind->step(nz, d, given, iteration->carried, iteration->next);
  iteration->scans[0] = iteration->next[0];
  if (!mlirValueIsNull(rnn->lengths))
    mask_step(nz, d, time, iteration->carried, iteration->next, &iteration->scans[0]);
  return NULL;
}

/* |results|: the states after the last step, then all outputs, T B H. */
static o3_status_t run_direction(o3_nz_t *nz, direction_t *d, MlirValue *results) {
  o3_nz_scan_t scan = {.axis = 0, .reverse = d->reverse};
  o3_nz_loop_t loop = {.trip = d->rnn->steps,
                       .num_carried = d->rnn->kind->num_states,
                       .inits = d->states,
                       .num_scans = 1,
                       .scans = &scan,
                       .body = step,
                       .context = d};
  return o3_nz_loop(nz, &loop, results);
}

/* ---- Reading the node ---- */

static MlirValue widened(o3_nz_t *nz, MlirValue x) {
  if (mlirValueIsNull(x)) return x;
  MlirType element = o3_nz_element(nz, x);
  bool narrow = o3_type_is_float(element) && o3_type_bits(element) < 32;
  return narrow ? o3_nz_cast(nz, x, o3_nz_f32(nz)) : x;
}

/* Direction |index| of input |input|, without that axis; null when omitted. */
static MlirValue of_direction(o3_nz_t *nz, const rnn_t *rnn, int input, int axis, int index) {
  MlirValue x = widened(nz, o3_node_input(rnn->node, input));
  if (mlirValueIsNull(x)) return x;
  MlirValue slice = o3_nz_slice(nz, x, axis, number(nz, index), number(nz, 1));
  return o3_nz_squeeze(nz, slice, 1, (int64_t[]){axis});
}

/* Of direction |index|: |input| is 1 for the weights of the input, 2 for those of the state. Quantised ones
 * are made f32 by the compiler, four times as large: each step would convert them anew. */
static weights_t read_weights(o3_nz_t *nz, const rnn_t *rnn, int input, int index) {
  MlirValue values = of_direction(nz, rnn, input, 0, index);
  if (!rnn->kind->is_quantized) return (weights_t){.matrix = o3_nz_transpose(nz, values, (int64_t[]){1, 0})};
  MlirValue zero_point = of_direction(nz, rnn, 7 + 2 * input, 0, index);
  values = o3_nz_cast(nz, values, o3_nz_f32(nz));
  if (!o3_nz_failed(nz)) o3_op_attr_set(o3_value_def(values), "o3.fold", mlirUnitAttrGet(nz->context));
  if (!mlirValueIsNull(zero_point))
    values = o3_nz_binary(nz, "o3.sub", values, o3_nz_cast(nz, zero_point, o3_nz_f32(nz)));
  return (weights_t){.matrix = values, .scale = of_direction(nz, rnn, 6 + 2 * input, 0, index)};
}

/* The input, with zeros for the steps after the longest sequence: ONNX Runtime drops them before it measures
 * the range of what it quantises. The padding of shorter sequences counts. */
static MlirValue measured_input(o3_nz_t *nz, const rnn_t *rnn) {
  if (!rnn->kind->is_quantized || mlirValueIsNull(rnn->lengths)) return rnn->x;
  MlirValue longest = o3_nz_reduce(nz, rnn->lengths, "max", 1, (int64_t[]){0}, false);
  MlirValue times = o3_nz_positions(nz, 3, 0, rnn->steps);
  MlirValue within = o3_nz_binary(nz, "o3.less", times, o3_nz_cast(nz, longest, o3_nz_i64(nz)));
  return o3_nz_select(nz, within, rnn->x, o3_nz_like(nz, rnn->x, 0));
}

static MlirValue input_products(o3_nz_t *nz, const rnn_t *rnn, const weights_t *weights) {
  MlirAffineExpr width = o3_nz_dim(nz, rnn->x, 2);
  MlirAffineExpr columns = number(nz, rnn->kind->num_gates * rnn->hidden);
  o3_shape_t flat = {.rank = 2, .dims = {o3_expr_mul(rnn->steps, rnn->batch), width}};
  o3_shape_t full = {.rank = 3, .dims = {rnn->steps, rnn->batch, columns}};
  return o3_nz_reshape(nz, product(nz, o3_nz_reshape(nz, measured_input(nz, rnn), &flat), weights), &full);
}

/* Both biases of all gates; the recurrent one of GRU's last gate stays apart where the reset gate scales it.
 */
static void add_biases(o3_nz_t *nz, direction_t *d, MlirValue biases) {
  const rnn_t *rnn = d->rnn;
  int count = rnn->kind->num_gates;
  MlirValue own = gates(nz, rnn, biases, 0, 0, count), recurrent = gates(nz, rnn, biases, 0, count, count);
  MlirValue sum = add(nz, own, recurrent);
  if (rnn->linear_before_reset) {
    d->reset_bias = gates(nz, rnn, recurrent, 0, 2, 1);
    MlirValue parts[2] = {gates(nz, rnn, sum, 0, 0, 2), gates(nz, rnn, own, 0, 2, 1)};
    sum = o3_nz_concat(nz, 0, 2, parts);
  }
  d->products = add(nz, d->products, sum);
}

static MlirValue initial_state(o3_nz_t *nz, const rnn_t *rnn, int input, int index) {
  MlirValue given = of_direction(nz, rnn, input, rnn->batch_first ? 1 : 0, index);
  o3_shape_t shape = {.rank = 2, .dims = {rnn->batch, number(nz, rnn->hidden)}};
  return mlirValueIsNull(given) ? o3_nz_filled(nz, &shape, o3_nz_element(nz, rnn->x), 0) : given;
}

static void read_direction(o3_nz_t *nz, rnn_t *rnn, int index) {
  direction_t *d = &rnn->directions[index];
  d->rnn = rnn;
  d->reverse = index == 1 || rnn->backwards;
  const weights_t weights = read_weights(nz, rnn, 1, index);
  d->products = input_products(nz, rnn, &weights);
  d->recurrence = read_weights(nz, rnn, 2, index);
  if (o3_node_has_input(rnn->node, 3)) add_biases(nz, d, of_direction(nz, rnn, 3, 0, index));
  for (int i = 0; i < rnn->kind->num_states; ++i) d->states[i] = initial_state(nz, rnn, 5 + i, index);
  if (!is_lstm(rnn) || !o3_node_has_input(rnn->node, 7)) return;
  MlirValue peepholes = of_direction(nz, rnn, 7, 0, index);
  for (int i = 0; i < 3; ++i) d->peepholes[i] = gates(nz, rnn, peepholes, 0, i, 1);
}

/* Case does not matter; parameters are taken in order by the functions that have them. */
static o3_status_t find_activation(o3_nz_t *nz, const char *name, const double **alphas, const double **betas,
                                   const double *alphas_end, const double *betas_end, activation_t *f) {
  for (size_t i = 0; i < sizeof(ACTIVATIONS) / sizeof(ACTIVATIONS[0]); ++i) {
    if (strcasecmp(ACTIVATIONS[i].name, name) != 0) continue;
    *f = (activation_t){ACTIVATIONS[i].apply, ACTIVATIONS[i].alpha, ACTIVATIONS[i].beta};
    if (ACTIVATIONS[i].has_alpha && *alphas < alphas_end) f->alpha = *(*alphas)++;
    if (ACTIVATIONS[i].has_beta && *betas < betas_end) f->beta = *(*betas)++;
    return NULL;
  }
  return o3_nz_unsupported(nz, "activation '%s' is not supported", name);
}

static o3_status_t read_activations(o3_nz_t *nz, rnn_t *rnn) {
  MlirAttribute names = o3_node_attr(rnn->node, "activations");
  double alpha[MAX_DIRECTIONS * MAX_FUNCTIONS], beta[MAX_DIRECTIONS * MAX_FUNCTIONS];
  int num_alphas = o3_node_floats(nz, rnn->node, "activation_alpha", alpha, MAX_DIRECTIONS * MAX_FUNCTIONS);
  int num_betas = o3_node_floats(nz, rnn->node, "activation_beta", beta, MAX_DIRECTIONS * MAX_FUNCTIONS);
  int total = rnn->num_directions * rnn->kind->num_functions;
  const double *alphas = alpha, *betas = beta;
  bool given = !mlirAttributeIsNull(names) && mlirAttributeIsAArray(names);
  if (given && mlirArrayAttrGetNumElements(names) != total)
    return o3_nz_invalid(nz, "%ld activations, %d expected", (long)mlirArrayAttrGetNumElements(names), total);
  for (int i = 0; i < total; ++i) {
    int direction = i / rnn->kind->num_functions, function = i % rnn->kind->num_functions;
    const char *name = rnn->kind->functions[function];
    if (given) {
      MlirStringRef text = mlirStringAttrGetValue(mlirArrayAttrGetElement(names, i));
      name = o3_arena_strndup(nz->arena, text.data, text.length);
      O3_TRY_ALLOC(name);
    }
    O3_TRY(find_activation(nz, name, &alphas, &betas, alpha + num_alphas, beta + num_betas,
                           &rnn->directions[direction].f[function]));
  }
  return NULL;
}

static o3_status_t read_direction_attr(o3_nz_t *nz, rnn_t *rnn) {
  const char *text = o3_node_string(nz, rnn->node, "direction", "forward");
  rnn->num_directions = strcasecmp(text, "bidirectional") == 0 ? 2 : 1;
  rnn->backwards = strcasecmp(text, "reverse") == 0;
  if (rnn->num_directions == 1 && !rnn->backwards && strcasecmp(text, "forward") != 0)
    return o3_nz_invalid(nz, "direction '%s' is none of forward, reverse, bidirectional", text);
  return NULL;
}

static o3_status_t check_ranks(o3_nz_t *nz, const o3_node_t *node) {
  static const int RANKS[] = {3, 3, 3, 2, 1, 3, 3, 2};
  for (int i = 0; i < node->num_inputs && i < 8; ++i) {
    bool given = o3_node_has_input(node, i);
    if (!given && i < 3) return o3_nz_invalid(nz, "input %d is missing", i);
    if (given && o3_nz_rank(nz, node->inputs[i]) != RANKS[i])
      return o3_nz_invalid(nz, "input %d has rank %d, %d expected", i, o3_nz_rank(nz, node->inputs[i]),
                           RANKS[i]);
  }
  return node->num_inputs < 3 ? o3_nz_invalid(nz, "%d inputs, at least 3 expected", node->num_inputs) : NULL;
}

static o3_status_t check_type(o3_nz_t *nz, const o3_node_t *node, int input, MlirType expected) {
  MlirType found = o3_nz_element(nz, node->inputs[input]);
  if (mlirTypeEqual(found, expected)) return NULL;
  char *came = o3_type_text(found), *wanted = o3_type_text(expected);
  o3_status_t status = came && wanted
                           ? o3_nz_invalid(nz, "input %d is of %s, %s expected", input, came, wanted)
                           : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  free(came);
  free(wanted);
  return status;
}

/* The types of what is quantised: numbers f32, weights 8 bits, zero points like their weights. */
static o3_status_t check_types(o3_nz_t *nz, const o3_node_t *node) {
  O3_TRY(check_type(nz, node, 0, o3_nz_f32(nz)));
  for (int i = 1; i < 3; ++i) {
    MlirType weights = o3_nz_element(nz, node->inputs[i]);
    bool is_bytes = o3_type_is_integer(weights) && !o3_type_is_bool(weights) && o3_type_bits(weights) == 8;
    if (!is_bytes) return o3_nz_invalid(nz, "input %d is not of 8-bit integers", i);
    O3_TRY(check_type(nz, node, 6 + 2 * i, o3_nz_f32(nz)));
    O3_TRY(check_type(nz, node, 7 + 2 * i, weights));
  }
  return NULL;
}

/* Scales and zero points of quantised weights: one for a direction, or one for each of its columns. */
static o3_status_t check_scale(o3_nz_t *nz, const rnn_t *rnn, int input) {
  const int64_t expected[2] = {rnn->num_directions, rnn->kind->num_gates * rnn->hidden};
  if (!o3_node_has_input(rnn->node, input)) return o3_nz_invalid(nz, "input %d is missing", input);
  MlirValue scale = rnn->node->inputs[input];
  int rank = o3_nz_rank(nz, scale);
  if (rank != 1 && rank != 2) return o3_nz_invalid(nz, "input %d has rank %d, 1 or 2 expected", input, rank);
  for (int i = 0; i < rank; ++i) {
    int64_t found = o3_nz_static_dim(nz, scale, i, "the number of scales");
    if (found != expected[i])
      return o3_nz_invalid(nz, "dimension %d of input %d is %lld, %lld expected", i, input, (long long)found,
                           (long long)expected[i]);
  }
  return NULL;
}

static o3_status_t check_quantized(o3_nz_t *nz, const rnn_t *rnn) {
  for (int i = 8; i < 12; ++i) O3_TRY(check_scale(nz, rnn, i));
  return check_types(nz, rnn->node);
}

/* W is (directions, gates * hidden, input), quantised (directions, input, gates * hidden): other sizes are
 * mistakes of the model. */
static o3_status_t check_sizes(o3_nz_t *nz, const rnn_t *rnn) {
  static const struct {
    int input, dim;
    bool gated;
  } SIZES[] = {{1, 1, true}, {2, 1, true}, {2, 2, false}};
  for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); ++i) {
    int64_t expected = rnn->hidden * (SIZES[i].gated ? rnn->kind->num_gates : 1);
    int dim = rnn->kind->is_quantized ? 3 - SIZES[i].dim : SIZES[i].dim;
    int64_t found = o3_nz_static_dim(nz, rnn->node->inputs[SIZES[i].input], dim, "a size of the weights");
    if (found != expected)
      return o3_nz_invalid(nz, "dimension %d of input %d is %lld, %lld expected", dim, SIZES[i].input,
                           (long long)found, (long long)expected);
  }
  for (int i = 1; i < 3; ++i) {
    int64_t found = o3_nz_static_dim(nz, rnn->node->inputs[i], 0, "the number of directions");
    if (found != rnn->num_directions)
      return o3_nz_invalid(nz, "input %d has weights for %lld directions, %d expected", i, (long long)found,
                           rnn->num_directions);
  }
  return NULL;
}

static o3_status_t read_node(o3_nz_t *nz, const o3_node_t *node, rnn_t *rnn) {
  rnn->node = node;
  O3_TRY(check_ranks(nz, node));
  O3_TRY(read_direction_attr(nz, rnn));
  rnn->element = o3_nz_element(nz, node->inputs[0]);
  rnn->hidden = o3_nz_static_dim(nz, node->inputs[2], rnn->kind->is_quantized ? 1 : 2, "the hidden size");
  rnn->hidden = o3_node_int(node, "hidden_size", rnn->hidden);
  rnn->clip = o3_node_float(node, "clip", 0);
  rnn->input_forget = is_lstm(rnn) && o3_node_int(node, "input_forget", 0) != 0;
  rnn->linear_before_reset = rnn->kind == &GRU && o3_node_int(node, "linear_before_reset", 0) != 0;
  rnn->batch_first = o3_node_int(node, "layout", 0) != 0;
  rnn->lengths = o3_node_input(node, 4);
  O3_TRY(check_sizes(nz, rnn));
  if (rnn->kind->is_quantized) O3_TRY(check_quantized(nz, rnn));
  O3_TRY(read_activations(nz, rnn));
  rnn->x = widened(nz, node->inputs[0]);
  if (rnn->batch_first) rnn->x = o3_nz_transpose(nz, rnn->x, (int64_t[]){1, 0, 2});
  rnn->steps = o3_nz_dim(nz, rnn->x, 0);
  rnn->batch = o3_nz_dim(nz, rnn->x, 1);
  for (int i = 0; i < rnn->num_directions; ++i) read_direction(nz, rnn, i);
  return NULL;
}

/* ---- The results ---- */

/* Directions side by side along |axis|, in the model's element type and layout. */
static MlirValue joined(o3_nz_t *nz, const rnn_t *rnn, MlirValue *parts, int axis,
                        const int64_t *batch_first_perm) {
  for (int i = 0; i < rnn->num_directions; ++i)
    parts[i] = o3_nz_unsqueeze(nz, parts[i], 1, (int64_t[]){axis});
  MlirValue all = o3_nz_cast(nz, o3_nz_concat(nz, axis, rnn->num_directions, parts), rnn->element);
  return rnn->batch_first ? o3_nz_transpose(nz, all, batch_first_perm) : all;
}

static o3_status_t convert(o3_nz_t *nz, o3_node_t *node, const kind_t *kind) {
  rnn_t *rnn = O3_ARENA_NEW(nz->arena, rnn_t);
  MlirValue results[MAX_DIRECTIONS][3], parts[3][MAX_DIRECTIONS];
  O3_TRY_ALLOC(rnn);
  rnn->kind = kind;
  O3_TRY(read_node(nz, node, rnn));
  for (int i = 0; i < rnn->num_directions; ++i) {
    O3_TRY(run_direction(nz, &rnn->directions[i], results[i]));
    parts[0][i] = results[i][kind->num_states];
    for (int k = 0; k < kind->num_states; ++k) parts[k + 1][i] = results[i][k];
  }
  node->outputs[0] = joined(nz, rnn, parts[0], 1, (int64_t[]){2, 0, 1, 3});
  for (int k = 0; k < kind->num_states; ++k)
    node->outputs[k + 1] = joined(nz, rnn, parts[k + 1], 0, (int64_t[]){1, 0, 2});
  return NULL;
}

o3_status_t o3_onnx_lstm(o3_nz_t *nz, o3_node_t *node) { return convert(nz, node, &LSTM); }
o3_status_t o3_onnx_dynamic_quantize_lstm(o3_nz_t *nz, o3_node_t *node) {
  return convert(nz, node, &QUANTIZED_LSTM);
}
o3_status_t o3_onnx_gru(o3_nz_t *nz, o3_node_t *node) { return convert(nz, node, &GRU); }
o3_status_t o3_onnx_rnn(o3_nz_t *nz, o3_node_t *node) { return convert(nz, node, &RNN); }
