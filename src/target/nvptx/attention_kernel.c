/* A block has 128 rows of Q, two consumer warpgroups with 64 each, and walks K and V in blocks of 128 from
 * the last to the first, so that only the first step needs the mask of a ragged end or of the diagonal. The
 * scores of a step are multiplied while the products of the step before with V run (FlashAttention 3):
 * softmax then works on scores that are ready, with the tensor cores busy. Probabilities go from the sums'
 * registers into A's: they have the same places.
 *
 * Shared memory: [Q][K of two stages][V of two stages][barriers: Q, then full and empty of K, of V]; each in
 * panels of 64 elements of the width. */
#include "target/nvptx/attention_kernel.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "target/nvptx/kernel_text.h"

enum {
  CONSUMERS = 2,
  ROWS = 64,
  BLOCK_ROWS = CONSUMERS * ROWS,
  BLOCK_COLUMNS = 128,
  SCORES = BLOCK_COLUMNS / 2, /* of a thread */
  PACKED = SCORES / 2,        /* registers of A that hold its probabilities */
  STAGES = 2,
  PANEL = 64,
  ROW_BYTES = 128,
  Q_PANEL_BYTES = BLOCK_ROWS * ROW_BYTES,
  KV_PANEL_BYTES = BLOCK_COLUMNS * ROW_BYTES,
  PRODUCER_REGISTERS = 24,
  CONSUMER_REGISTERS = 240,
  WARPGROUP = 128
};

typedef struct writer {
  o3_kernel_text_t *t;
  const o3_gpu_attention_t *a;
  const o3_gpu_kernel_t *kernel;
  int shared, thread;
  int q_ready, full_k, empty_k, full_v, empty_v; /* pointers */
  int block, head, batch, steps;                 /* of rows; steps: blocks of columns */
} writer_t;

static int panels(const o3_gpu_attention_t *a) { return a->width / PANEL; }
static int q_bytes(const o3_gpu_attention_t *a) { return panels(a) * Q_PANEL_BYTES; }
static int kv_bytes(const o3_gpu_attention_t *a) { return panels(a) * KV_PANEL_BYTES; }
static int k_offset(const o3_gpu_attention_t *a) { return q_bytes(a); }
static int v_offset(const o3_gpu_attention_t *a) { return q_bytes(a) + STAGES * kv_bytes(a); }
static int barrier_offset(const o3_gpu_attention_t *a) { return q_bytes(a) + 2 * STAGES * kv_bytes(a); }
static int shared_bytes(const o3_gpu_attention_t *a) { return barrier_offset(a) + 8 * (1 + 4 * STAGES); }

static int ceil_div(int64_t a, int64_t b) { return (int)((a + b - 1) / b); }

static const char *type_of(const o3_gpu_attention_t *a) { return o3_gpu_element_info(a->element)->mlir; }

static int barrier_at(writer_t *w, int barriers, int stage) {
  return o3_kt_shared(w->t, barriers, o3_kt_op_const(w->t, "muli", stage, 8));
}

/* The stage and the parity of its turn in step |step|. */
static int stage_of(writer_t *w, int step) { return o3_kt_op_const(w->t, "andi", step, STAGES - 1); }
static int parity_of(writer_t *w, int step) {
  return o3_kt_op_const(w->t, "andi", o3_kt_op_const(w->t, "shrui", step, 1), 1);
}

/* ---- The producer ---- */

static void load_panels(writer_t *w, const char *map, int offset, int panel_bytes, int barrier,
                        const int at[3]) {
  o3_kernel_text_t *t = w->t;
  for (int p = 0; p < panels(w->a); ++p) {
    int to = o3_kt_shared(t, w->shared, o3_kt_op_const(t, "addi", offset, p * panel_bytes));
    o3_kt_tensor_load(t, to, map, barrier, 4, (int[]){o3_kt_i32(t, p * PANEL), at[0], at[1], at[2]});
  }
}

static void load_kv(writer_t *w, bool is_v, int step) {
  o3_kernel_text_t *t = w->t;
  int group = (int)(w->a->heads / w->a->kv_heads), stage = stage_of(w, step);
  int full = barrier_at(w, is_v ? w->full_v : w->full_k, stage);
  int empty = barrier_at(w, is_v ? w->empty_v : w->empty_k, stage);
  int head = group > 1 ? o3_kt_op_const(t, "divui", w->head, group) : w->head;
  int block = o3_kt_op(t, "subi", o3_kt_op_const(t, "addi", w->steps, -1), step);
  int offset = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", stage, kv_bytes(w->a)),
                              is_v ? v_offset(w->a) : k_offset(w->a));
  o3_kt_mbarrier_wait(t, empty, o3_kt_op_const(t, "xori", parity_of(w, step), 1));
  o3_kt_mbarrier_expect(t, full, kv_bytes(w->a));
  load_panels(w, is_v ? "%map2" : "%map1", offset, KV_PANEL_BYTES, full,
              (int[]){o3_kt_op_const(t, "muli", block, BLOCK_COLUMNS), head, w->batch});
}

static void producer(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int zero = o3_kt_i32(t, 0), one = o3_kt_i32(t, 1);
  o3_kt_mbarrier_expect(t, w->q_ready, q_bytes(w->a));
  load_panels(w, "%map0", zero, Q_PANEL_BYTES, w->q_ready,
              (int[]){o3_kt_op_const(t, "muli", w->block, BLOCK_ROWS), w->head, w->batch});
  int step = o3_kt_for(t, zero, w->steps, one, 0, NULL);
  load_kv(w, false, step);
  load_kv(w, true, step);
  o3_kt_end_for(t, 0, NULL, NULL);
}

/* ---- Consumers ---- */

typedef struct consumer {
  int leader;          /* condition: thread 0 of the warpgroup */
  int row, pair;       /* of the tensor; of 8 columns */
  int q, k, v;         /* addresses, shifted by 4 */
  int factor, opposed; /* scale * log2(e), and its negative; the scale is 1 when a mask was added */
} consumer_t;

/* What goes from step to step: for the thread's two rows the largest score so far and its part of the sum;
 * the probabilities in A's registers. */
typedef struct state {
  int largest[2], total[2], packed[PACKED], output;
} state_t;

static void release(writer_t *w, const consumer_t *c, int barriers, int step) {
  int barrier = barrier_at(w, barriers, stage_of(w, step));
  o3_kt_if(w->t, c->leader);
  o3_kt_mbarrier_arrive(w->t, barrier);
  o3_kt_end(w->t);
}

static void wait_full(writer_t *w, int barriers, int step) {
  o3_kt_mbarrier_wait(w->t, barrier_at(w, barriers, stage_of(w, step)), parity_of(w, step));
}

/* Q K^T of a step, committed as one group. */
static int multiply_scores(writer_t *w, const consumer_t *c, int step) {
  o3_kernel_text_t *t = w->t;
  int sums = -1,
      k = o3_kt_op(t, "addi", c->k, o3_kt_op_const(t, "muli", stage_of(w, step), kv_bytes(w->a) / 16));
  wait_full(w, w->full_k, step);
  for (int p = 0; p < panels(w->a); ++p) {
    o3_wgmma_t m = {.element = w->a->element,
                    .n = BLOCK_COLUMNS,
                    .steps = PANEL / 16,
                    .accumulate = p > 0,
                    .open = p + 1 < panels(w->a)};
    sums = o3_kt_wgmma(t, &m, o3_kt_op_const(t, "addi", c->q, p * Q_PANEL_BYTES / 16),
                       o3_kt_op_const(t, "addi", k, p * KV_PANEL_BYTES / 16), sums);
  }
  return sums;
}

/* O += P V of a step. */
static int multiply_values(writer_t *w, const consumer_t *c, int step, const int *packed, int output) {
  o3_kernel_text_t *t = w->t;
  int v = o3_kt_op(t, "addi", c->v, o3_kt_op_const(t, "muli", stage_of(w, step), kv_bytes(w->a) / 16));
  wait_full(w, w->full_v, step);
  o3_wgmma_t m = {.element = w->a->element,
                  .n = w->a->width,
                  .steps = BLOCK_COLUMNS / 16,
                  .b_by_rows = true,
                  .b_panel = KV_PANEL_BYTES,
                  .accumulate = true,
                  .a_registers = packed};
  return o3_kt_wgmma(t, &m, -1, v, output);
}

static int f32(o3_kernel_text_t *t, const char *value) {
  return o3_kt_value(t, "arith.constant %s : f32", value);
}

static int binary(o3_kernel_text_t *t, const char *op, int a, int b) {
  return o3_kt_value(t, "arith.%s %%v%d, %%v%d : f32", op, a, b);
}

static int multiply_add(o3_kernel_text_t *t, int a, int b, int c) {
  return o3_kt_value(t, "math.fma %%v%d, %%v%d, %%v%d : f32", a, b, c);
}

static int exp2_of(o3_kernel_text_t *t, int x) {
  return o3_kt_value(t, "llvm.inline_asm \"ex2.approx.ftz.f32 $0, $1;\", \"=f,f\" %%v%d : (f32) -> f32", x);
}

/* Over the four threads that share a row. */
static int over_row(o3_kernel_text_t *t, const char *op, int value) {
  for (int far = 1; far < 4; far *= 2) {
    int all = o3_kt_i32(t, -1), distance = o3_kt_i32(t, far), last = o3_kt_i32(t, 31);
    int other = o3_kt_value(t, "nvvm.shfl.sync bfly %%v%d, %%v%d, %%v%d, %%v%d : f32 -> f32", all, value,
                            distance, last);
    value = binary(t, op, value, other);
  }
  return value;
}

/* The column of the tensor of score |i|. */
static int column_of(writer_t *w, const consumer_t *c, int step, int i) {
  o3_kernel_text_t *t = w->t;
  int block = o3_kt_op(t, "subi", o3_kt_op_const(t, "addi", w->steps, -1), step);
  int first = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", block, BLOCK_COLUMNS), c->pair);
  return o3_kt_op_const(t, "addi", first, i / 4 * 8 + i % 2);
}

/* Scores of the first step behind the end or above the diagonal. */
static void cut_scores(writer_t *w, const consumer_t *c, int step, int *scores) {
  o3_kernel_text_t *t = w->t;
  bool ragged = w->a->columns % BLOCK_COLUMNS != 0;
  if (!ragged && !w->a->causal) return;
  int lowest = f32(t, "0xFF800000");
  for (int i = 0; i < SCORES; ++i) {
    int column = column_of(w, c, step, i), row = o3_kt_op_const(t, "addi", c->row, i % 4 / 2 * 8), keep;
    if (w->a->causal)
      keep = o3_kt_cmp(t, "sle", column, row);
    else
      keep = o3_kt_cmp_const(t, "slt", column, w->a->columns);
    scores[i] = o3_kt_select(t, keep, scores[i], lowest, "f32");
  }
}

static int constant(o3_kernel_text_t *t, double value) {
  char text[32];
  snprintf(text, sizeof(text), "%.9e", value);
  return f32(t, text);
}

/* The mask's element of the row that is |down| below the thread's first. */
static int mask_at(writer_t *w, const consumer_t *c, int base, int column, int down) {
  o3_kernel_text_t *t = w->t;
  const int64_t *strides = w->a->mask_strides;
  const char *type = o3_gpu_element_info(w->a->mask_element)->mlir;
  int at = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", w->batch, strides[0]),
                    o3_kt_op_const(t, "muli", w->head, strides[1]));
  int row = o3_kt_op_const(t, "minsi", o3_kt_op_const(t, "addi", c->row, down), w->a->rows - 1);
  at = o3_kt_op(t, "addi", at, o3_kt_op_const(t, "muli", row, strides[2]));
  int place = o3_kt_global(t, base, o3_kt_op(t, "addi", at, column), type);
  int value = o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<1> -> %s", place, type);
  if (w->a->mask_element != O3_GPU_F32) value = o3_kt_value(t, "arith.extf %%v%d : %s to f32", value, type);
  return w->a->mask_factor == 1 ? value : binary(t, "mulf", value, constant(t, w->a->mask_factor));
}

/* Scales the scores and adds the mask. Its numbers may be the lowest there are, which no factor must touch
 * after this. */
static void mask_scores(writer_t *w, const consumer_t *c, int step, int *scores) {
  o3_kernel_text_t *t = w->t;
  if (!w->a->masked) return;
  bool by_rows = w->a->mask_strides[2] != 0;
  int scale = constant(t, w->a->scale);
  int base = o3_kt_value(t, "llvm.getelementptr %%arg3[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8");
  for (int i = 0; i < SCORES; i += 4) {
    for (int k = 0; k < 2; ++k) {
      int column = o3_kt_op_const(t, "minsi", column_of(w, c, step, i + k), w->a->columns - 1);
      int first = mask_at(w, c, base, column, 0), second = by_rows ? mask_at(w, c, base, column, 8) : first;
      scores[i + k] = multiply_add(t, scores[i + k], scale, first);
      scores[i + k + 2] = multiply_add(t, scores[i + k + 2], scale, second);
    }
  }
}

static int row_extreme(o3_kernel_text_t *t, const int *scores, int row) {
  int largest = scores[2 * row];
  for (int i = 0; i < SCORES; ++i) {
    if (i % 4 / 2 == row && i != 2 * row) largest = binary(t, "maxnumf", largest, scores[i]);
  }
  return over_row(t, "maxnumf", largest);
}

static int pack(writer_t *w, int low, int high) {
  o3_kernel_text_t *t = w->t;
  int a = o3_kt_value(t, "arith.truncf %%v%d : f32 to %s", low, type_of(w->a));
  int b = o3_kt_value(t, "arith.truncf %%v%d : f32 to %s", high, type_of(w->a));
  int pair = o3_kt_value(t, "vector.from_elements %%v%d, %%v%d : vector<2x%s>", a, b, type_of(w->a));
  return o3_kt_value(t, "llvm.bitcast %%v%d : vector<2x%s> to i32", pair, type_of(w->a));
}

/* 2^((x - largest) factor), by one FMA and |shift| = -largest factor where that cannot overflow. */
static int power_of(writer_t *w, const consumer_t *c, int x, int largest, int shift) {
  o3_kernel_text_t *t = w->t;
  if (!w->a->masked) return exp2_of(t, multiply_add(t, x, c->factor, shift));
  return exp2_of(t, binary(t, "mulf", binary(t, "subf", x, largest), c->factor));
}

/* Turns scores into probabilities relative to the largest so far. |rescale|: what the sums so far are
 * multiplied with, for each row. A mask may be infinite in all columns so far: relative to a finite number,
 * their probabilities are 0. */
static void softmax(writer_t *w, const consumer_t *c, int *scores, bool first, state_t *s, int rescale[2]) {
  o3_kernel_text_t *t = w->t;
  for (int row = 0; row < 2; ++row) {
    int largest = row_extreme(t, scores, row), total = -1;
    if (first && w->a->masked) largest = binary(t, "maxnumf", largest, constant(t, -FLT_MAX));
    if (!first) largest = binary(t, "maxnumf", largest, s->largest[row]);
    int shift = binary(t, "mulf", largest, c->opposed);
    if (!first) rescale[row] = power_of(w, c, s->largest[row], largest, shift);
    for (int i = 0; i < SCORES; ++i) {
      if (i % 4 / 2 != row) continue;
      scores[i] = power_of(w, c, scores[i], largest, shift);
      total = total < 0 ? scores[i] : binary(t, "addf", total, scores[i]);
    }
    s->total[row] = first ? total : multiply_add(t, s->total[row], rescale[row], total);
    s->largest[row] = largest;
  }
  for (int i = 0; i < PACKED; ++i) s->packed[i] = pack(w, scores[2 * i], scores[2 * i + 1]);
}

static void members(o3_kernel_text_t *t, int count, int sums, int *values) {
  for (int i = 0; i < count; ++i) values[i] = o3_kt_member(t, count, sums, i);
}

static int make_struct(o3_kernel_text_t *t, int count, const int *values) {
  int sums = o3_kt_value(t, "llvm.mlir.undef : !sums%d", count);
  for (int i = 0; i < count; ++i)
    sums = o3_kt_value(t, "llvm.insertvalue %%v%d, %%v%d[%d] : !sums%d", values[i], sums, i, count);
  return sums;
}

static int zeros(o3_kernel_text_t *t, int count) {
  int values[128], zero = f32(t, "0.0");
  for (int i = 0; i < count; ++i) values[i] = zero;
  return make_struct(t, count, values);
}

static int rescale_output(writer_t *w, int output, const int rescale[2]) {
  int count = w->a->width / 2, values[128];
  members(w->t, count, output, values);
  for (int i = 0; i < count; ++i) values[i] = binary(w->t, "mulf", values[i], rescale[i % 4 / 2]);
  return make_struct(w->t, count, values);
}

static void first_step(writer_t *w, const consumer_t *c, state_t *s) {
  o3_kernel_text_t *t = w->t;
  int zero = o3_kt_i32(t, 0), scores[SCORES];
  int sums = multiply_scores(w, c, zero);
  sums = o3_kt_wgmma_finish(t, &(o3_wgmma_finish_t){.count = SCORES}, sums);
  release(w, c, w->empty_k, zero);
  members(t, SCORES, sums, scores);
  mask_scores(w, c, zero, scores);
  cut_scores(w, c, zero, scores);
  softmax(w, c, scores, true, s, NULL);
  s->output = zeros(t, w->a->width / 2);
}

static void next_step(writer_t *w, const consumer_t *c, int step, state_t *s) {
  o3_kernel_text_t *t = w->t;
  int scores[SCORES], rescale[2], packed[PACKED], before = o3_kt_op_const(t, "addi", step, -1);
  memcpy(packed, s->packed, sizeof(packed));
  int sums = multiply_scores(w, c, step);
  int output = multiply_values(w, c, before, packed, s->output);
  sums = o3_kt_wgmma_finish(t, &(o3_wgmma_finish_t){.groups = 1, .count = SCORES}, sums);
  release(w, c, w->empty_k, step);
  members(t, SCORES, sums, scores);
  mask_scores(w, c, step, scores);
  softmax(w, c, scores, false, s, rescale);
  const o3_wgmma_finish_t finish = {.count = w->a->width / 2, .num_pinned = PACKED, .pinned = packed};
  output = o3_kt_wgmma_finish(t, &finish, output);
  release(w, c, w->empty_v, before);
  s->output = rescale_output(w, output, rescale);
}

enum { CARRIED = 5 + PACKED };

static void list_state(state_t *s, int *values[CARRIED]) {
  int count = 0;
  values[count++] = &s->output;
  for (int i = 0; i < 2; ++i) values[count++] = &s->largest[i], values[count++] = &s->total[i];
  for (int i = 0; i < PACKED; ++i) values[count++] = &s->packed[i];
}

static void all_steps(writer_t *w, const consumer_t *c, state_t *s) {
  o3_kernel_text_t *t = w->t;
  o3_kt_carried_t carried[CARRIED];
  int *values[CARRIED], next[CARRIED];
  char type[24];
  snprintf(type, sizeof(type), "!sums%d", w->a->width / 2);
  first_step(w, c, s);
  list_state(s, values);
  for (int i = 0; i < CARRIED; ++i)
    carried[i] = (o3_kt_carried_t){.init = *values[i], .type = i == 0 ? type : i < 5 ? "f32" : "i32"};
  int one = o3_kt_i32(t, 1), step = o3_kt_for(t, one, w->steps, one, CARRIED, carried);
  for (int i = 0; i < CARRIED; ++i) *values[i] = carried[i].value;
  next_step(w, c, step, s);
  for (int i = 0; i < CARRIED; ++i) next[i] = *values[i];
  o3_kt_end_for(t, CARRIED, carried, next);
  for (int i = 0; i < CARRIED; ++i) *values[i] = carried[i].result;
  int output = multiply_values(w, c, o3_kt_op_const(t, "addi", w->steps, -1), s->packed, s->output);
  const o3_wgmma_finish_t finish = {.count = w->a->width / 2, .num_pinned = PACKED, .pinned = s->packed};
  s->output = o3_kt_wgmma_finish(t, &finish, output);
}

static void store_row(writer_t *w, const consumer_t *c, const int *values, int half, int inverse) {
  o3_kernel_text_t *t = w->t;
  int row = o3_kt_op_const(t, "addi", c->row, half * 8);
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8",
                         w->kernel->num_arguments - 1);
  int start = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", w->batch, w->a->o_strides[0]),
                       o3_kt_op_const(t, "muli", w->head, w->a->o_strides[1]));
  start = o3_kt_op(t, "addi", start, o3_kt_op_const(t, "muli", row, w->a->o_strides[2]));
  start = o3_kt_op(t, "addi", start, c->pair);
  o3_kt_if(t, o3_kt_cmp_const(t, "slt", row, w->a->rows));
  for (int i = 0; i < w->a->width / 8; ++i) {
    int word = pack(w, binary(t, "mulf", values[4 * i + 2 * half], inverse),
                    binary(t, "mulf", values[4 * i + 2 * half + 1], inverse));
    o3_kt_line(t, "llvm.store %%v%d, %%v%d : i32, !llvm.ptr<1>", word,
               o3_kt_global(t, base, o3_kt_op_const(t, "addi", start, 8 * i), type_of(w->a)));
  }
  o3_kt_end(t);
}

static void store_output(writer_t *w, const consumer_t *c, const state_t *s) {
  o3_kernel_text_t *t = w->t;
  int values[128];
  members(t, w->a->width / 2, s->output, values);
  for (int half = 0; half < 2; ++half) {
    int total = over_row(t, "addf", s->total[half]);
    int inverse = o3_kt_value(t, "arith.divf %%v%d, %%v%d : f32", f32(t, "1.0"), total);
    store_row(w, c, values, half, inverse);
  }
}

static void consumer(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  consumer_t c;
  state_t s;
  const double factor = (w->a->masked ? 1 : w->a->scale) * 1.4426950408889634;
  int group = o3_kt_uniform(t, o3_kt_op_const(t, "shrui", w->thread, 7)),
      number = o3_kt_op_const(t, "subi", group, 1);
  int thread = o3_kt_op_const(t, "andi", w->thread, WARPGROUP - 1),
      lane = o3_kt_op_const(t, "andi", thread, 31);
  c.leader = o3_kt_cmp_const(t, "eq", thread, 0);
  int row = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", o3_kt_op_const(t, "shrui", thread, 5), 16),
                     o3_kt_op_const(t, "shrui", lane, 2));
  row = o3_kt_op(t, "addi", row, o3_kt_op_const(t, "muli", number, ROWS));
  c.row = o3_kt_op(t, "addi", row, o3_kt_op_const(t, "muli", w->block, BLOCK_ROWS));
  c.pair = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "andi", lane, 3), 2);
  int base = o3_kt_op_const(t, "andi", o3_kt_op_const(t, "shrui", o3_kt_address(t, w->shared), 4), 0x3fff);
  c.q = o3_kt_op(t, "addi", base, o3_kt_op_const(t, "muli", number, ROWS * ROW_BYTES / 16));
  c.k = o3_kt_op_const(t, "addi", base, k_offset(w->a) / 16);
  c.v = o3_kt_op_const(t, "addi", base, v_offset(w->a) / 16);
  c.factor = constant(t, factor);
  c.opposed = constant(t, -factor);
  o3_kt_mbarrier_wait(t, w->q_ready, o3_kt_i32(t, 0));
  all_steps(w, &c, &s);
  store_output(w, &c, &s);
}

/* ---- The kernel ---- */

static void init_barriers(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int *const barriers[] = {&w->full_k, &w->empty_k, &w->full_v, &w->empty_v};
  int at = barrier_offset(w->a);
  w->q_ready = o3_kt_shared(t, w->shared, o3_kt_i32(t, at));
  for (int i = 0; i < 4; ++i)
    *barriers[i] = o3_kt_shared(t, w->shared, o3_kt_i32(t, at + 8 + i * 8 * STAGES));
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", w->thread, 0));
  o3_kt_mbarrier_init(t, w->q_ready, 1);
  for (int i = 0; i < 4 * STAGES; ++i)
    o3_kt_mbarrier_init(t, barrier_at(w, *barriers[i / STAGES], o3_kt_i32(t, i % STAGES)),
                        i / STAGES % 2 ? CONSUMERS : 1);
  o3_kt_line(t, "nvvm.fence.mbarrier.init");
  o3_kt_end(t);
  o3_kt_line(t, "nvvm.barrier0\nnvvm.griddepcontrol wait\nnvvm.griddepcontrol launch_dependents");
}

/* Blocks of one head run together, for its K and V; causal: the longest first. */
static void find_place(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int blocks = ceil_div(w->a->rows, BLOCK_ROWS), number = o3_kt_block(t);
  int plane = o3_kt_op_const(t, "divui", number, blocks), block = o3_kt_op_const(t, "remui", number, blocks);
  w->block = w->a->causal ? o3_kt_op(t, "subi", o3_kt_i32(t, blocks - 1), block) : block;
  w->head = o3_kt_op_const(t, "remui", plane, w->a->heads);
  w->batch = o3_kt_op_const(t, "divui", plane, w->a->heads);
  w->steps = w->a->causal ? o3_kt_op_const(t, "addi", w->block, 1)
                          : o3_kt_i32(t, ceil_div(w->a->columns, BLOCK_COLUMNS));
}

static void write_module(o3_kernel_text_t *t, void *context) {
  writer_t *w = context;
  w->t = t;
  o3_kt_begin_module(t);
  o3_kt_begin_kernel(t, w->kernel, 1);
  w->shared = o3_kt_value(t, "llvm.mlir.addressof @o3_shared : !llvm.ptr<3>");
  w->thread = o3_kt_thread(t);
  find_place(w);
  init_barriers(w);
  int group = o3_kt_uniform(t, o3_kt_op_const(t, "shrui", w->thread, 7));
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", group, 0));
  o3_kt_line(t, "nvvm.setmaxregister decrease %d", PRODUCER_REGISTERS);
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", w->thread, 0));
  producer(w);
  o3_kt_end(t);
  o3_kt_else(t);
  o3_kt_line(t, "nvvm.setmaxregister increase %d", CONSUMER_REGISTERS);
  consumer(w);
  o3_kt_end(t);
  o3_kt_end_kernel(t);
}

static void add_map(const o3_gpu_attention_t *a, o3_gpu_kernel_t *kernel, int buffer,
                    const int64_t strides[3]) {
  int64_t bytes = o3_gpu_element_info(a->element)->bytes;
  bool is_q = buffer == 0;
  o3_gpu_tensor_map_t map = {
      .element = a->element,
      .rank = 4,
      .sizes = {a->width, is_q ? a->rows : a->columns, is_q ? a->heads : a->kv_heads, a->batch},
      .strides = {0, strides[2] * bytes, strides[1] * bytes, strides[0] * bytes},
      .box = {PANEL, is_q ? BLOCK_ROWS : BLOCK_COLUMNS, 1, 1},
      .swizzle = ROW_BYTES};
  o3_gpu_kernel_add_map(kernel, buffer, &map);
}

static const char *refuse_strides(const int64_t strides[3]) {
  for (int i = 0; i < 3; ++i) {
    if (strides[i] % 8 || strides[i] <= 0) return "a row starts at an address that TMA does not take";
  }
  return NULL;
}

/* Where the last row begins. */
static int64_t last_place(const o3_gpu_attention_t *a, const int64_t strides[3]) {
  return (a->batch - 1) * strides[0] + (a->heads - 1) * strides[1] + (a->rows - 1) * strides[2];
}

bool o3_gpu_attention_has_width(int64_t width) { return width == 64 || width == 128; }

const char *o3_gpu_attention_refuse(const o3_gpu_attention_t *a) {
  if (a->element == O3_GPU_F32) return "the warpgroup product takes f16 and bf16";
  if (!o3_gpu_attention_has_width(a->width)) return "a head is neither 64 nor 128 wide";
  if (a->batch < 1 || a->heads < 1 || a->rows < 1 || a->columns < 1) return "a size is zero";
  if (a->kv_heads < 1 || a->heads % a->kv_heads) return "the heads of Q are no multiple of those of K and V";
  if (a->causal && a->rows != a->columns) return "causal attention has as many rows as columns";
  if (!a->masked && !(a->scale > 0)) return "the scale is not positive";
  const int64_t *const strides[] = {a->q_strides, a->k_strides, a->v_strides, a->o_strides};
  for (int i = 0; i < 4; ++i) {
    const char *why = refuse_strides(strides[i]);
    if (why) return why;
  }
  if (last_place(a, a->o_strides) + a->width > INT32_MAX) return "the result has more than 2^31 elements";
  if (last_place(a, a->mask_strides) + a->columns > INT32_MAX) return "the mask has more than 2^31 elements";
  return NULL;
}

o3_status_t o3_gpu_attention_build(const o3_gpu_attention_t *a, o3_gpu_kernel_t *kernel) {
  char stem[96];
  *kernel = (o3_gpu_kernel_t){0};
  kernel->grid[0] = (int)(ceil_div(a->rows, BLOCK_ROWS) * a->heads * a->batch);
  kernel->grid[1] = kernel->grid[2] = kernel->cluster = 1;
  kernel->block = WARPGROUP * (1 + CONSUMERS);
  kernel->shared_bytes = shared_bytes(a);
  kernel->overlaps = true;
  add_map(a, kernel, 0, a->q_strides);
  add_map(a, kernel, 1, a->k_strides);
  add_map(a, kernel, 2, a->v_strides);
  if (a->masked) o3_gpu_kernel_add_pointer(kernel, 3);
  o3_gpu_kernel_add_pointer(kernel, 3 + a->masked);
  writer_t w = {.a = a, .kernel = kernel};
  snprintf(stem, sizeof(stem), "o3k_%s_attention_%dx%dx%d__sm90a%s", type_of(a), BLOCK_ROWS, BLOCK_COLUMNS,
           a->width, a->causal ? "_causal" : "");
  return o3_kt_write(kernel, stem, write_module, &w);
}
