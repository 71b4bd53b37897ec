/* Which number a channel holds, when it holds one. Arithmetic is that of float, as in the compiled model;
 * what comes out infinite or NaN counts as unknown. */
#include <math.h>
#include <string.h>

#include "analysis/channel_state.h"
#include "analysis/shape.h"

typedef bool (*fact_fn_t)(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel,
                          float *number);

/* ---- Operands ---- */

static MlirValue operand(const o3_channel_relation_t *relation, int index) {
  return mlirOperationGetOperand(relation->op, index);
}

/* The number that a constant holds in all places of a channel of the result that it is broadcast to. */
static bool constant_number(const o3_channels_t *self, const o3_channel_relation_t *relation, int index,
                            int64_t channel, float *number) {
  MlirType type = mlirValueGetType(operand(relation, index));
  const float *data = o3_channel_constant(self, operand(relation, index));
  if (!data || o3_type_count(type) < 1) return false;
  int rank = o3_type_rank(type),
      axis = relation->to->axis - (o3_type_rank(mlirValueGetType(relation->to->value)) - rank);
  int64_t inner = 1, size = axis < 0 ? 1 : o3_type_dim(type, axis);
  for (int i = axis + 1; axis >= 0 && i < rank; ++i) inner *= o3_type_dim(type, i);
  int64_t first = size == 1 ? 0 : channel, outer = o3_type_count(type) / (size * inner);
  *number = data[first * inner];
  for (int64_t i = 0; i < outer * inner; ++i)
    if (data[(i / inner * size + first) * inner + i % inner] != *number) return false;
  return true;
}

static bool operand_number(const o3_channels_t *self, const o3_channel_relation_t *relation, int index,
                           int64_t channel, float *number) {
  for (int i = 0; i < relation->num_links; ++i)
    if (relation->links[i].operand == index)
      return o3_channels_known(self, relation->links[i].from, channel, number);
  return constant_number(self, relation, index, channel, number);
}

/* ---- Products ---- */

static bool fact_product(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel,
                         float *number) {
  const o3_channel_weights_t *weights = &relation->weights;
  int64_t first = channel / weights->outputs * weights->inputs;
  double sum = weights->b ? (double)weights->b[channel] : 0;
  for (int64_t i = 0; i < weights->inputs; ++i) {
    float x;
    if (!o3_channel_weight_nonzero(weights, channel, i)) continue;
    if (!relation->num_links || !o3_channels_known(self, relation->links[0].from, first + i, &x))
      return false;
    if (x == 0) continue;
    if (weights->padded) return false;
    const float *w = weights->w + channel * weights->output_stride + i * weights->input_stride;
    for (int64_t p = 0; p < weights->positions; ++p)
      sum += (double)w[p * weights->position_stride] * (double)x;
  }
  *number = (float)sum;
  return isfinite(*number);
}

/* ---- Elementwise ---- */

#define UNARY(name, expr)                                                                                    \
  static bool fact_##name(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel, \
                          float *number) {                                                                   \
    float x;                                                                                                 \
    if (!operand_number(self, relation, 0, channel, &x)) return false;                                       \
    *number = (expr);                                                                                        \
    return isfinite(*number);                                                                                \
  }
#define BINARY(name, expr)                                                                                   \
  static bool fact_##name(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel, \
                          float *number) {                                                                   \
    float a, b;                                                                                              \
    if (!operand_number(self, relation, 0, channel, &a)) return false;                                       \
    if (!operand_number(self, relation, 1, channel, &b)) return false;                                       \
    *number = (expr);                                                                                        \
    return isfinite(*number);                                                                                \
  }

UNARY(neg, -x)
UNARY(abs, fabsf(x))
UNARY(sqrt, sqrtf(x))
UNARY(exp, expf(x))
UNARY(log, logf(x))
UNARY(sin, sinf(x))
UNARY(cos, cosf(x))
UNARY(tanh, tanhf(x))
UNARY(erf, erff(x))
UNARY(sigmoid, 1 / (1 + expf(-x)))
UNARY(floor, floorf(x))
UNARY(ceil, ceilf(x))
BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a *b)
BINARY(div, a / b)
BINARY(max, a > b ? a : b)
BINARY(min, a < b ? a : b)

static bool fact_unknown(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel,
                         float *number) {
  (void)self, (void)relation, (void)channel, (void)number;
  return false;
}

/* ---- Moving and pooling ---- */

static bool fact_same(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel,
                      float *number) {
  const o3_channel_link_t *link = &relation->links[0];
  return o3_channels_known(self, link->from, channel / link->inner - link->offset, number);
}

/* Interpolation gives zero for zeros, but of other numbers something that is only near them. */
static bool fact_zero(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel,
                      float *number) {
  return fact_same(self, relation, channel, number) && *number == 0;
}

/* A sum, or a mean in which zeros beyond the border count, is another number at each place. */
static bool fact_average(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel,
                         float *number) {
  int64_t pads[2 * O3_IR_MAX_RANK];
  int count = o3_op_ints(relation->op, "pads", pads, 2 * O3_IR_MAX_RANK);
  bool mean = !o3_op_bool(relation->op, "sum", false);
  for (int i = 0; i < count; ++i)
    mean &= pads[i] == 0 || !o3_op_bool(relation->op, "count_include_pad", false);
  return fact_same(self, relation, channel, number) && (mean || *number == 0);
}

static bool fact_reduce(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel,
                        float *number) {
  MlirStringRef kind = o3_op_string(relation->op, "kind");
  bool same = o3_str_equal(kind, "max") || o3_str_equal(kind, "min") || o3_str_equal(kind, "mean"),
       sum = o3_str_equal(kind, "sum") || o3_str_equal(kind, "sum_square");
  return fact_same(self, relation, channel, number) && (same || (sum && *number == 0));
}

/* Beyond the border there is the pad's own number, or one from inside. */
static bool fact_pad(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel,
                     float *number) {
  float beyond;
  if (!fact_same(self, relation, channel, number)) return false;
  if (!o3_str_equal(o3_op_string(relation->op, "mode"), "constant")) return true;
  const float *value = o3_channel_constant(self, operand(relation, 1));
  if (!value) return false;
  memcpy(&beyond, value, sizeof(beyond));
  return beyond == *number;
}

/* Along the channels one part has it; along another dimension all parts must agree. */
static bool fact_join(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel,
                      float *number) {
  bool known = false;
  for (int i = 0; i < relation->num_links; ++i) {
    const o3_channel_link_t *link = &relation->links[i];
    int64_t own = channel - link->offset;
    float other;
    if (own < 0 || own >= link->from->count) continue;
    if (!o3_channels_known(self, link->from, own, &other)) return false;
    if (known && other != *number) return false;
    *number = other;
    known = true;
  }
  return known;
}

/* ---- The table ---- */

static const fact_fn_t FACTS[] = {
#define O3_CHANNEL_RULE(op, relation, fact) fact_##fact,
#include "analysis/channel_rules.def"
#undef O3_CHANNEL_RULE
};

bool o3_channel_fact(const o3_channels_t *self, const o3_channel_relation_t *relation, int64_t channel,
                     float *number) {
  return FACTS[relation->rule](self, relation, channel, number);
}
