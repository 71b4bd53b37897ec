/* Counting reads the mask once: blocks of 1, 2, 4, ... 64 outputs are ORed together, each height from the one
 * before it, and each strip is then read at all widths. */
#include "analysis/sparsity.h"

#include <math.h>
#include <string.h>

const o3_sparsity_shape_t O3_SPARSITY_SHAPES[] = {
#define O3_SPARSITY_SHAPE(outputs, inputs) {outputs, inputs},
#define O3_SPARSITY_GROUP(m)
#include "analysis/sparsity_tables.def"
#undef O3_SPARSITY_SHAPE
#undef O3_SPARSITY_GROUP
};
const int64_t O3_SPARSITY_GROUPS[] = {
#define O3_SPARSITY_SHAPE(outputs, inputs)
#define O3_SPARSITY_GROUP(m) m,
#include "analysis/sparsity_tables.def"
#undef O3_SPARSITY_SHAPE
#undef O3_SPARSITY_GROUP
};

enum { MAX_HEIGHT = 64 };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- Masks ---- */

/* The bits that tell a number from zero: all but the sign of floating-point numbers with two zeros. */
static uint64_t magnitude_bits(MlirType element) {
  uint64_t all = UINT64_MAX >> (64 - o3_type_bits(element));
  const o3_float8_t *format = o3_type_float8(element);
  return o3_type_is_float(element) && !(format && format->single) ? all >> 1 : all;
}

/* For each size of elements, which may lie anywhere: PART at once are a loop of vectors to a compiler. */
enum { PART = 64 };
#define O3_FILL_MASK(bits)                                                                           \
  static void fill_mask##bits(const uint8_t *data, uint64_t magnitude, int64_t count, uint8_t *to) { \
    uint##bits##_t part[PART], mask = (uint##bits##_t)magnitude;                                     \
    for (; count >= PART; count -= PART, data += sizeof(part), to += PART) {                         \
      memcpy(part, data, sizeof(part));                                                              \
      for (int i = 0; i < PART; ++i) to[i] = (part[i] & mask) != 0;                                  \
    }                                                                                                \
    memcpy(part, data, (size_t)count * sizeof(*part));                                               \
    for (int i = 0; i < (int)count; ++i) to[i] = (part[i] & mask) != 0;                              \
  }
O3_FILL_MASK(8)
O3_FILL_MASK(16)
O3_FILL_MASK(32)
O3_FILL_MASK(64)
#undef O3_FILL_MASK

/* The mask in the data's own order. False for element types that are no numbers. */
static bool fill_mask(MlirType element, const void *data, int64_t count, uint8_t *nonzero) {
  static const struct {
    int bits;
    void (*fill)(const uint8_t *data, uint64_t magnitude, int64_t count, uint8_t *nonzero);
  } SIZES[] = {{8, fill_mask8}, {16, fill_mask16}, {32, fill_mask32}, {64, fill_mask64}};
  int bits = o3_type_bits(element) / 8 * 8;
  for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); ++i) {
    if (SIZES[i].bits != bits) continue;
    SIZES[i].fill(data, magnitude_bits(element), count, nonzero);
    return true;
  }
  return false;
}

/* The weights as a matrix for each group and position; strides in elements. */
typedef struct form {
  int64_t group_stride, position_stride, output_stride, input_stride;
} form_t;

static bool conv_form(MlirOperation op, MlirType type, o3_zero_mask_t *mask, form_t *form) {
  int rank = o3_type_rank(type);
  int64_t groups = o3_op_int(op, "group", 1), outputs = o3_type_dim(type, 0), inputs = o3_type_dim(type, 1);
  if (rank < 3 || groups < 1 || outputs % groups) return false;
  mask->groups = groups;
  mask->outputs = outputs / groups;
  mask->inputs = inputs;
  mask->positions = 1;
  for (int i = 2; i < rank; ++i) mask->positions *= o3_type_dim(type, i);
  *form = (form_t){.group_stride = mask->outputs * inputs * mask->positions,
                   .position_stride = 1,
                   .output_stride = inputs * mask->positions,
                   .input_stride = mask->positions};
  return true;
}

static bool matmul_form(MlirType type, o3_zero_mask_t *mask, form_t *form) {
  int rank = o3_type_rank(type);
  mask->groups = mask->positions = 1;
  mask->inputs = o3_type_dim(type, rank - 2);
  mask->outputs = o3_type_dim(type, rank - 1);
  for (int i = 0; i < rank - 2; ++i) mask->positions *= o3_type_dim(type, i);
  *form = (form_t){
      .position_stride = mask->inputs * mask->outputs, .output_stride = 1, .input_stride = mask->outputs};
  return true;
}

/* In squares, as outputs or inputs lie far apart: lines of the cache are read once. */
static void arrange_matrix(const o3_zero_mask_t *mask, const form_t *form, const uint8_t *from, uint8_t *to) {
  enum { SIDE = 64 };
  for (int64_t o = 0; o < mask->outputs; o += SIDE)
    for (int64_t i = 0; i < mask->inputs; i += SIDE)
      for (int64_t m = o; m < smaller(o + SIDE, mask->outputs); ++m)
        for (int64_t k = i; k < smaller(i + SIDE, mask->inputs); ++k)
          to[m * mask->inputs + k] = from[m * form->output_stride + k * form->input_stride];
}

static void arrange(const o3_zero_mask_t *mask, const form_t *form, const uint8_t *from, uint8_t *to) {
  for (int64_t g = 0; g < mask->groups; ++g)
    for (int64_t p = 0; p < mask->positions; ++p, to += mask->outputs * mask->inputs)
      arrange_matrix(mask, form, from + g * form->group_stride + p * form->position_stride, to);
}

o3_status_t o3_zero_mask_of_product(o3_arena_t *arena, o3_weights_t *weights, MlirOperation op,
                                    o3_zero_mask_t *mask) {
  *mask = (o3_zero_mask_t){0};
  bool conv = o3_op_is(op, "o3.conv");
  form_t form;
  if (!conv && !o3_op_is(op, "o3.matmul")) return NULL;
  MlirValue weight = mlirOperationGetOperand(op, 1);
  MlirOperation def = o3_value_def(weight);
  MlirType type = mlirValueGetType(weight);
  if (mlirOperationIsNull(def) || !o3_op_is(def, "o3.constant")) return NULL;
  if (!(conv ? conv_form(op, type, mask, &form) : matmul_form(type, mask, &form))) return NULL;
  int64_t count = o3_type_count(type);
  const void *data = o3_weights_data(weights, o3_op_attr(def, "value"), NULL);
  uint8_t *plain = O3_ARENA_ARRAY(arena, uint8_t, (size_t)count + 1);
  uint8_t *nonzero = O3_ARENA_ARRAY(arena, uint8_t, (size_t)count + 1);
  O3_TRY_ALLOC(data && plain && nonzero);
  if (!fill_mask(o3_type_element(type), data, count, plain)) return NULL;
  arrange(mask, &form, plain, nonzero);
  mask->nonzero = nonzero;
  return NULL;
}

/* ---- Blocks ---- */

static void or_rows(uint8_t *to, const uint8_t *from, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t a, b;
    memcpy(&a, to + i, 8);
    memcpy(&b, from + i, 8);
    a |= b;
    memcpy(to + i, &a, 8);
  }
  for (; i < count; ++i) to[i] |= from[i];
}

static bool any_set(const uint8_t *row, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t a;
    memcpy(&a, row + i, 8);
    if (a) return true;
  }
  for (; i < count; ++i)
    if (row[i]) return true;
  return false;
}

static int64_t count_strip(const uint8_t *strip, int64_t inputs, int64_t width) {
  int64_t stored = 0;
  for (int64_t i = 0; i < inputs; i += width) stored += any_set(strip + i, smaller(width, inputs - i));
  return stored;
}

int64_t o3_sparsity_count_blocks(const o3_zero_mask_t *mask, int64_t outputs, int64_t inputs) {
  int64_t stored = 0, rows = mask->groups * mask->positions;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < mask->outputs; o += outputs) {
      const uint8_t *strip = mask->nonzero + (r * mask->outputs + o) * mask->inputs;
      int64_t height = smaller(outputs, mask->outputs - o);
      for (int64_t i = 0; i < mask->inputs; i += inputs) {
        bool set = false;
        for (int64_t k = 0; k < height && !set; ++k)
          set = any_set(strip + k * mask->inputs + i, smaller(inputs, mask->inputs - i));
        stored += set;
      }
    }
  return stored;
}

/* |strips| are |count| rows that stand for |height| outputs each. */
static void count_height(const uint8_t *strips, int64_t count, int64_t inputs, int64_t height,
                         o3_sparsity_t *sparsity) {
  for (int s = 0; s < O3_SPARSITY_NUM_SHAPES; ++s) {
    if (O3_SPARSITY_SHAPES[s].outputs != height) continue;
    int64_t width = O3_SPARSITY_SHAPES[s].inputs;
    sparsity->blocks[s] += count * divide_up(inputs, width);
    for (int64_t k = 0; k < count; ++k)
      sparsity->stored[s] += count_strip(strips + k * inputs, inputs, width);
  }
}

/* |rows| is a copy of one matrix, which is folded onto itself. */
static void count_blocks(uint8_t *rows, int64_t outputs, int64_t inputs, o3_sparsity_t *sparsity) {
  int64_t count = outputs;
  for (int64_t height = 1; height <= MAX_HEIGHT; height *= 2) {
    count_height(rows, count, inputs, height, sparsity);
    int64_t next = divide_up(count, 2);
    for (int64_t k = 0; k < next; ++k) {
      memmove(rows + k * inputs, rows + 2 * k * inputs, (size_t)inputs);
      if (2 * k + 1 < count) or_rows(rows + k * inputs, rows + (2 * k + 1) * inputs, inputs);
    }
    count = next;
  }
}

/* Weights without zeros, as most of networks that nobody has pruned. */
static void count_full_blocks(const o3_zero_mask_t *mask, o3_sparsity_t *sparsity) {
  for (int s = 0; s < O3_SPARSITY_NUM_SHAPES; ++s) {
    sparsity->blocks[s] = mask->groups * mask->positions *
                          divide_up(mask->outputs, O3_SPARSITY_SHAPES[s].outputs) *
                          divide_up(mask->inputs, O3_SPARSITY_SHAPES[s].inputs);
    sparsity->stored[s] = sparsity->blocks[s];
  }
}

/* ---- Axes ---- */

static void finish_axis(o3_sparsity_axis_t *axis, const int64_t *counts, int64_t count) {
  double sum = 0, squares = 0;
  axis->count = count;
  axis->least = count ? INT64_MAX : 0;
  for (int64_t i = 0; i < count; ++i) {
    axis->dead += counts[i] == 0;
    axis->least = smaller(axis->least, counts[i]);
    axis->most = larger(axis->most, counts[i]);
    sum += (double)counts[i];
    squares += (double)counts[i] * (double)counts[i];
  }
  if (!count) return;
  axis->mean = sum / (double)count;
  axis->deviation = sqrt(fmax(0, squares / (double)count - axis->mean * axis->mean));
}

static void count_full_axes(const o3_zero_mask_t *mask, int64_t *outputs, int64_t *inputs) {
  for (int64_t i = 0; i < mask->groups * mask->outputs; ++i) outputs[i] = mask->positions * mask->inputs;
  for (int64_t i = 0; i < mask->groups * mask->inputs; ++i) inputs[i] = mask->positions * mask->outputs;
}

static void count_axes(const o3_zero_mask_t *mask, int64_t *outputs, int64_t *inputs) {
  const uint8_t *at = mask->nonzero;
  for (int64_t g = 0; g < mask->groups; ++g)
    for (int64_t p = 0; p < mask->positions; ++p)
      for (int64_t o = 0; o < mask->outputs; ++o)
        for (int64_t i = 0; i < mask->inputs; ++i) {
          outputs[g * mask->outputs + o] += *at;
          inputs[g * mask->inputs + i] += *at++;
        }
}

/* The most of |m| neighbours; |count| of them lie |stride| apart. */
static int64_t most_of(const uint8_t *at, int64_t count, int64_t stride, int64_t m) {
  int64_t most = 0;
  for (int64_t i = 0; i < count; i += m) {
    int64_t set = 0;
    for (int64_t k = i; k < smaller(i + m, count); ++k) set += at[k * stride];
    most = larger(most, set);
  }
  return most;
}

int64_t o3_sparsity_most_of_inputs(const o3_zero_mask_t *mask, int64_t m) {
  int64_t most = 0, rows = mask->groups * mask->positions * mask->outputs;
  for (int64_t r = 0; r < rows && most < m; ++r)
    most = larger(most, most_of(mask->nonzero + r * mask->inputs, mask->inputs, 1, m));
  return most;
}

/* Stops early where all M are set: nothing more can be learnt. */
static void count_groups(const o3_zero_mask_t *mask, o3_sparsity_t *sparsity) {
  int64_t matrices = mask->groups * mask->positions, size = mask->outputs * mask->inputs;
  for (int m = 0; m < O3_SPARSITY_NUM_GROUPS; ++m) {
    int64_t of = O3_SPARSITY_GROUPS[m], *in = &sparsity->inputs.most_of[m],
            *out = &sparsity->outputs.most_of[m];
    for (int64_t r = 0; r < matrices && *in < of; ++r)
      for (int64_t o = 0; o < mask->outputs && *in < of; ++o)
        *in = larger(*in, most_of(mask->nonzero + r * size + o * mask->inputs, mask->inputs, 1, of));
    for (int64_t r = 0; r < matrices && *out < of; ++r)
      for (int64_t i = 0; i < mask->inputs && *out < of; ++i)
        *out = larger(*out, most_of(mask->nonzero + r * size + i, mask->outputs, mask->inputs, of));
  }
}

o3_status_t o3_sparsity_count(o3_arena_t *arena, const o3_zero_mask_t *mask, o3_sparsity_t *sparsity) {
  int64_t size = mask->outputs * mask->inputs, matrices = mask->groups * mask->positions;
  *sparsity = (o3_sparsity_t){.elements = matrices * size};
  bool full = !memchr(mask->nonzero, 0, (size_t)(matrices * size));
  uint8_t *rows = O3_ARENA_ARRAY(arena, uint8_t, full ? 1 : (size_t)size);
  int64_t *outputs = O3_ARENA_ARRAY(arena, int64_t, (size_t)(mask->groups * mask->outputs) + 1);
  int64_t *inputs = O3_ARENA_ARRAY(arena, int64_t, (size_t)(mask->groups * mask->inputs) + 1);
  O3_TRY_ALLOC(rows && outputs && inputs);
  if (full) count_full_blocks(mask, sparsity);
  for (int64_t r = 0; r < matrices && size && !full; ++r) {
    memcpy(rows, mask->nonzero + r * size, (size_t)size);
    count_blocks(rows, mask->outputs, mask->inputs, sparsity);
  }
  sparsity->zeros = sparsity->elements - sparsity->stored[O3_SPARSITY_1x1];
  (full ? count_full_axes : count_axes)(mask, outputs, inputs);
  finish_axis(&sparsity->outputs, outputs, mask->groups * mask->outputs);
  finish_axis(&sparsity->inputs, inputs, mask->groups * mask->inputs);
  count_groups(mask, sparsity);
  return NULL;
}

double o3_sparsity_occupancy(const o3_sparsity_t *sparsity, int shape) {
  return sparsity->blocks[shape] ? (double)sparsity->stored[shape] / (double)sparsity->blocks[shape] : 0;
}
