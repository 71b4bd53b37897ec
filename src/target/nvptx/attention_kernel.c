/* A block of threads has a tile of 64 rows of Q for each of its consumer warpgroups, and walks K and V in
 * blocks of columns from the last to the first, so that only a warpgroup's first step needs the cut of a
 * ragged end or of the diagonal. The scores of a step and the products of the step before with V are
 * multiplied one after the other, and while the latter run, softmax works on the former (FlashAttention 3);
 * the other warpgroups' products run under the rest of it, the more so when they take turns. Probabilities go
 * from the sums' registers into A's: they have the same places.
 *
 * The wait for the products with V is the first thing in the loop and softmax the last: in one basic block
 * ptxas would move it before the powers, which do not need it, and nothing would overlap.
 *
 * Shared memory: [tiles of Q][blocks of K][blocks of V][barriers: full and empty of Q, of K, of V]; each in
 * panels of 64 elements of the width, of which copies fill with zeros what a head does not have. A tile of
 * the result leaves from where its rows of Q were, as much of it as there is. */
#include "target/nvptx/attention_kernel.h"

#include <stdio.h>
#include <string.h>

#include "target/nvptx/attention_text.h"

enum {
  ROWS = O3_ATTENTION_ROWS,
  PANEL = 64,
  ROW_BYTES = 128,
  PRODUCER_REGISTERS = 24,
  MOST_REGISTERS = 240,
  ALL_REGISTERS = 65536,
  WARPGROUP = 128,
  MAX_PACKED = O3_ATTENTION_MAX_SCORES / 2,
  L2_SHARE = 24 << 20 /* bytes of K and V that tiles at work at a time may have */
};

typedef o3_attention_writer_t writer_t;
typedef o3_attention_consumer_t consumer_t;
typedef o3_attention_state_t state_t;

static int ceil_div(int64_t a, int64_t b) { return (int)((a + b - 1) / b); }

/* ---- Places and sizes ---- */

static int tile_rows(const o3_gpu_attention_t *a) { return a->schedule.consumers * ROWS; }
static int key_panels(const o3_gpu_attention_t *a) { return ceil_div(a->width, PANEL); }
static int value_panels(const o3_gpu_attention_t *a) { return ceil_div(a->value_width, PANEL); }
/* Of the result, that a warpgroup multiplies. */
static int value_columns(const o3_gpu_attention_t *a) { return ceil_div(a->value_width, 16) * 16; }
static int outputs(const o3_gpu_attention_t *a) { return value_columns(a) / 2; }
static int q_panel_bytes(const o3_gpu_attention_t *a) { return tile_rows(a) * ROW_BYTES; }
static int kv_panel_bytes(const o3_gpu_attention_t *a) { return a->schedule.columns * ROW_BYTES; }
static int q_bytes(const o3_gpu_attention_t *a) { return key_panels(a) * q_panel_bytes(a); }
static int tile_bytes(const o3_gpu_attention_t *a) {
  int panels = key_panels(a) > value_panels(a) ? key_panels(a) : value_panels(a);
  return panels * q_panel_bytes(a);
}
static int k_bytes(const o3_gpu_attention_t *a) { return key_panels(a) * kv_panel_bytes(a); }
static int v_bytes(const o3_gpu_attention_t *a) { return value_panels(a) * kv_panel_bytes(a); }
static int k_offset(const o3_gpu_attention_t *a) { return a->schedule.queries * tile_bytes(a); }
static int v_offset(const o3_gpu_attention_t *a) { return k_offset(a) + a->schedule.stages * k_bytes(a); }
static int barrier_offset(const o3_gpu_attention_t *a) {
  return v_offset(a) + a->schedule.stages * v_bytes(a);
}
static int shared_bytes(const o3_gpu_attention_t *a) {
  return barrier_offset(a) + 8 * (2 * a->schedule.queries + 4 * a->schedule.stages);
}

static int row_blocks(const o3_gpu_attention_t *a) { return ceil_div(a->rows, tile_rows(a)); }
static int64_t tiles(const o3_gpu_attention_t *a) { return row_blocks(a) * a->heads * a->batch; }

static int threads(const o3_attention_schedule_t *s) { return WARPGROUP * (1 + s->consumers); }

/* Of a consumer thread: what the producer's leave of those that all start with. */
static int consumer_registers(const o3_attention_schedule_t *s) {
  int at_start = ALL_REGISTERS / (s->resident * threads(s)) / 8 * 8;
  int left = (at_start * threads(s) - PRODUCER_REGISTERS * WARPGROUP) / (s->consumers * WARPGROUP) / 8 * 8;
  return left < MOST_REGISTERS ? left : MOST_REGISTERS;
}

static const char *type_of(const o3_gpu_attention_t *a) { return o3_gpu_element_info(a->element)->mlir; }

/* ---- Rings: |turn| counts all uses of a ring of |count|, a power of two ---- */

static int stage_of(writer_t *w, int turn, int count) {
  return o3_kt_op_const(w->t, "andi", turn, count - 1);
}

static int parity_of(writer_t *w, int turn, int count) {
  int shift = count == 4 ? 2 : count == 2 ? 1 : 0;
  return o3_kt_op_const(w->t, "andi", o3_kt_op_const(w->t, "shrui", turn, shift), 1);
}

static int barrier_at(writer_t *w, int barriers, int turn, int count) {
  return o3_kt_shared(w->t, barriers, o3_kt_op_const(w->t, "muli", stage_of(w, turn, count), 8));
}

static void wait_full(writer_t *w, int barriers, int turn, int count) {
  o3_kt_mbarrier_wait(w->t, barrier_at(w, barriers, turn, count), parity_of(w, turn, count));
}

static void wait_empty(writer_t *w, int barriers, int turn, int count) {
  int parity = o3_kt_op_const(w->t, "xori", parity_of(w, turn, count), 1);
  o3_kt_mbarrier_wait(w->t, barrier_at(w, barriers, turn, count), parity);
}

/* ---- Tiles ---- */

/* How many of |count| things this block of threads has when they are dealt out, the first to |place|. */
static int share_of(writer_t *w, int64_t count, int place) {
  o3_kernel_text_t *t = w->t;
  int across = w->kernel->grid[0];
  int one_more = o3_kt_cmp_const(t, "slt", place, count % across);
  return o3_kt_select(t, one_more, o3_kt_i32(t, count / across + 1), o3_kt_i32(t, count / across), "i32");
}

static int dealt(writer_t *w, int turn, int place) {
  return o3_kt_op(w->t, "addi", o3_kt_op_const(w->t, "muli", turn, w->kernel->grid[0]), place);
}

static int64_t planes(const o3_gpu_attention_t *a) { return a->batch * a->heads; }

/* Tiles of a causal head differ in length: they are dealt out in pairs, the last with the first, which are
 * all of one length, and tiles in the middle after them, to those first that have fewer pairs. */
static bool in_pairs(const writer_t *w) { return w->a->causal && w->kernel->grid[0] < tiles(w->a); }

static int64_t pairs(const writer_t *w) { return planes(w->a) * (row_blocks(w->a) / 2); }

static int place_of_single(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int behind = o3_kt_op_const(t, "addi", w->block_of_threads, -(pairs(w) % w->kernel->grid[0]));
  int around = o3_kt_op_const(t, "addi", behind, w->kernel->grid[0]);
  return o3_kt_select(t, o3_kt_cmp_const(t, "slt", behind, 0), around, behind, "i32");
}

static int count_tiles(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  if (!in_pairs(w)) return share_of(w, tiles(w->a), w->block_of_threads);
  int count = o3_kt_op_const(t, "muli", share_of(w, pairs(w), w->block_of_threads), 2);
  if (row_blocks(w->a) % 2 == 0) return count;
  return o3_kt_op(t, "addi", count, share_of(w, planes(w->a), place_of_single(w)));
}

static int place_in_pairs(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int blocks = row_blocks(w->a), half = blocks / 2 ? blocks / 2 : 1;
  int pair = dealt(w, o3_kt_op_const(t, "shrui", w->turn, 1), w->block_of_threads);
  int plane = o3_kt_op_const(t, "divui", pair, half), first = o3_kt_op_const(t, "remui", pair, half);
  int odd = o3_kt_cmp_const(t, "ne", o3_kt_op_const(t, "andi", w->turn, 1), 0);
  w->block = o3_kt_select(t, odd, first, o3_kt_op(t, "subi", o3_kt_i32(t, blocks - 1), first), "i32");
  if (blocks % 2 == 0) return plane;
  int paired = o3_kt_op_const(t, "muli", share_of(w, pairs(w), w->block_of_threads), 2);
  int single = o3_kt_cmp(t, "sge", w->turn, paired);
  int alone = dealt(w, o3_kt_op(t, "subi", w->turn, paired), place_of_single(w));
  w->block = o3_kt_select(t, single, o3_kt_i32(t, blocks / 2), w->block, "i32");
  return o3_kt_select(t, single, alone, plane, "i32");
}

/* A tile for each block of threads: the longest first, of as many heads as have their K and V in L2. */
static int place_by_length(writer_t *w, int tile) {
  o3_kernel_text_t *t = w->t;
  const o3_gpu_attention_t *a = w->a;
  int blocks = row_blocks(a);
  int64_t bytes = a->columns * (a->width + a->value_width) * o3_gpu_element_info(a->element)->bytes;
  int64_t at_a_time = L2_SHARE / bytes * (a->heads / a->kv_heads);
  at_a_time = at_a_time < 1 ? 1 : at_a_time > planes(a) ? planes(a) : at_a_time;
  int first = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "divui", tile, at_a_time * blocks), at_a_time);
  int rest = o3_kt_op(t, "subi", tile, o3_kt_op_const(t, "muli", first, blocks));
  int left = o3_kt_op(t, "subi", o3_kt_i32(t, planes(a)), first);
  int count = o3_kt_op(t, "minui", left, o3_kt_i32(t, at_a_time));
  w->block = o3_kt_op(t, "subi", o3_kt_i32(t, blocks - 1), o3_kt_op(t, "divui", rest, count));
  return o3_kt_op(t, "addi", first, o3_kt_op(t, "remui", rest, count));
}

static int place_in_order(writer_t *w, int tile) {
  w->block = o3_kt_op_const(w->t, "remui", tile, row_blocks(w->a));
  return o3_kt_op_const(w->t, "divui", tile, row_blocks(w->a));
}

static void find_place(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int plane;
  if (in_pairs(w))
    plane = place_in_pairs(w);
  else if (w->a->causal)
    plane = place_by_length(w, dealt(w, w->turn, w->block_of_threads));
  else
    plane = place_in_order(w, dealt(w, w->turn, w->block_of_threads));
  w->head = o3_kt_op_const(t, "remui", plane, w->a->heads);
  w->batch = o3_kt_op_const(t, "divui", plane, w->a->heads);
  w->steps = o3_kt_i32(t, ceil_div(w->a->columns, w->s->columns));
  if (!w->a->causal) return;
  int behind = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "addi", w->block, 1), tile_rows(w->a));
  behind = o3_kt_op_const(t, "minui", behind, w->a->rows);
  w->steps = o3_kt_op_const(t, "divui", o3_kt_op_const(t, "addi", behind, w->s->columns - 1), w->s->columns);
}

/* Opens the loop over this block's tiles; it carries how many blocks of K there were. */
static void open_tiles(writer_t *w, o3_kt_carried_t *before) {
  o3_kernel_text_t *t = w->t;
  int zero = o3_kt_i32(t, 0), one = o3_kt_i32(t, 1);
  *before = (o3_kt_carried_t){.init = zero, .type = "i32"};
  w->turn = o3_kt_for(t, zero, count_tiles(w), one, 1, before);
  w->before = before->value;
  find_place(w);
}

static void close_tiles(writer_t *w, const o3_kt_carried_t *before) {
  int next = o3_kt_op(w->t, "addi", w->before, w->steps);
  o3_kt_end_for(w->t, 1, before, &next);
}

/* ---- The producer ---- */

static void load_panels(writer_t *w, const char *map, int offset, int panels, int panel_bytes, int barrier,
                        const int at[3]) {
  o3_kernel_text_t *t = w->t;
  for (int p = 0; p < panels; ++p) {
    int to = o3_kt_shared(t, w->shared, o3_kt_op_const(t, "addi", offset, p * panel_bytes));
    o3_kt_tensor_load(t, to, map, barrier, 4, (int[]){o3_kt_i32(t, p * PANEL), at[0], at[1], at[2]});
  }
}

static void load_q(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int count = w->s->queries, full = barrier_at(w, w->full_q, w->turn, count);
  wait_empty(w, w->empty_q, w->turn, count);
  o3_kt_mbarrier_expect(t, full, q_bytes(w->a));
  load_panels(w, "%map0", o3_kt_op_const(t, "muli", stage_of(w, w->turn, count), tile_bytes(w->a)),
              key_panels(w->a), q_panel_bytes(w->a), full,
              (int[]){o3_kt_op_const(t, "muli", w->block, tile_rows(w->a)), w->head, w->batch});
}

static void load_kv(writer_t *w, bool is_v, int step) {
  o3_kernel_text_t *t = w->t;
  int group = (int)(w->a->heads / w->a->kv_heads), turn = o3_kt_op(t, "addi", w->before, step);
  int full = barrier_at(w, is_v ? w->full_v : w->full_k, turn, w->s->stages);
  int head = group > 1 ? o3_kt_op_const(t, "divui", w->head, group) : w->head;
  int block = o3_kt_op(t, "subi", o3_kt_op_const(t, "addi", w->steps, -1), step);
  int bytes = is_v ? v_bytes(w->a) : k_bytes(w->a);
  int offset = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", stage_of(w, turn, w->s->stages), bytes),
                              is_v ? v_offset(w->a) : k_offset(w->a));
  wait_empty(w, is_v ? w->empty_v : w->empty_k, turn, w->s->stages);
  o3_kt_mbarrier_expect(t, full, bytes);
  load_panels(w, is_v ? "%map2" : "%map1", offset, bytes / kv_panel_bytes(w->a), kv_panel_bytes(w->a), full,
              (int[]){o3_kt_op_const(t, "muli", block, w->s->columns), head, w->batch});
}

static void producer(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  o3_kt_carried_t before;
  open_tiles(w, &before);
  load_q(w);
  int step = o3_kt_for(t, o3_kt_i32(t, 0), w->steps, o3_kt_i32(t, 1), 0, NULL);
  load_kv(w, false, step);
  load_kv(w, true, step);
  o3_kt_end_for(t, 0, NULL, NULL);
  close_tiles(w, &before);
}

/* ---- Turns of the warpgroups: each opens the next one's ---- */

static void open_turn(writer_t *w, int number) {
  o3_kt_barrier_arrive(w->t, o3_kt_op_const(w->t, "addi", number, 1), 2 * WARPGROUP);
}

static void begin_turn(writer_t *w, const consumer_t *c) {
  if (w->s->ordered) o3_kt_barrier(w->t, o3_kt_op_const(w->t, "addi", c->number, 1), 2 * WARPGROUP);
}

static void end_turn(writer_t *w, const consumer_t *c) {
  o3_kernel_text_t *t = w->t;
  if (!w->s->ordered) return;
  int last = o3_kt_cmp_const(t, "eq", c->number, w->s->consumers - 1);
  open_turn(w, o3_kt_select(t, last, o3_kt_i32(t, 0), o3_kt_op_const(t, "addi", c->number, 1), "i32"));
}

/* The last warpgroup opens the first one's turn, which at the end takes the one that is left. */
static void start_turns(writer_t *w, const consumer_t *c, bool at_start) {
  o3_kernel_text_t *t = w->t;
  if (!w->s->ordered) return;
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", c->number, at_start ? w->s->consumers - 1 : 0));
  if (at_start)
    open_turn(w, o3_kt_i32(t, 0));
  else
    begin_turn(w, c);
  o3_kt_end(t);
}

/* ---- Consumers ---- */

static void release(writer_t *w, int condition, int barriers, int turn, int count) {
  int barrier = barrier_at(w, barriers, turn, count);
  o3_kt_if(w->t, condition);
  o3_kt_mbarrier_arrive(w->t, barrier);
  o3_kt_end(w->t);
}

/* Q K^T of a turn, committed as one group. */
static int multiply_scores(writer_t *w, const consumer_t *c, int turn) {
  o3_kernel_text_t *t = w->t;
  int sums = -1, stage = stage_of(w, turn, w->s->stages);
  int k = o3_kt_op(t, "addi", c->k, o3_kt_op_const(t, "muli", stage, k_bytes(w->a) / 16));
  for (int p = 0; p < key_panels(w->a); ++p) {
    int steps = ceil_div(w->a->width - p * PANEL, 16);
    o3_wgmma_t m = {.element = w->a->element,
                    .n = w->s->columns,
                    .steps = steps < PANEL / 16 ? steps : PANEL / 16,
                    .accumulate = p > 0,
                    .open = p + 1 < key_panels(w->a)};
    sums = o3_kt_wgmma(t, &m, o3_kt_op_const(t, "addi", c->q, p * q_panel_bytes(w->a) / 16),
                       o3_kt_op_const(t, "addi", k, p * kv_panel_bytes(w->a) / 16), sums);
  }
  return sums;
}

/* O += P V of a turn. */
static int multiply_values(writer_t *w, const consumer_t *c, int turn, const int *packed, int output) {
  o3_kernel_text_t *t = w->t;
  int stage = stage_of(w, turn, w->s->stages);
  int v = o3_kt_op(t, "addi", c->v, o3_kt_op_const(t, "muli", stage, v_bytes(w->a) / 16));
  wait_full(w, w->full_v, turn, w->s->stages);
  o3_wgmma_t m = {.element = w->a->element,
                  .n = value_columns(w->a),
                  .steps = w->s->columns / 16,
                  .b_by_rows = true,
                  .b_panel = kv_panel_bytes(w->a),
                  .accumulate = true,
                  .a_registers = packed};
  return o3_kt_wgmma(t, &m, -1, v, output);
}

static void first_step(writer_t *w, const consumer_t *c, int step, state_t *s) {
  o3_kernel_text_t *t = w->t;
  int turn = o3_kt_op(t, "addi", w->before, step), count = w->s->columns / 2;
  wait_full(w, w->full_k, turn, w->s->stages);
  begin_turn(w, c);
  int sums = multiply_scores(w, c, turn);
  end_turn(w, c);
  sums = o3_kt_wgmma_finish(t, &(o3_wgmma_finish_t){.count = count}, sums);
  release(w, c->leader, w->empty_k, turn, w->s->stages);
  o3_attention_members(t, count, sums, s->scores);
  o3_attention_limit(w, c, step, w->a->causal || w->a->columns % w->s->columns, s->scores);
  o3_attention_softmax(w, c, true, s);
}

/* What runs across the end of a step: the products with V of the step before, and what they read. */
typedef struct running {
  int output, packed[MAX_PACKED];
} running_t;

/* Waits for the products with V of the turn before |turn|, if there are any, and makes all ready for those of
 * |turn|. */
static void settle(writer_t *w, int turn, int condition, state_t *s, running_t *r) {
  o3_kernel_text_t *t = w->t;
  int num_packed = w->s->columns / 4;
  const o3_wgmma_finish_t finish = {.count = outputs(w->a), .num_pinned = num_packed, .pinned = r->packed};
  r->output = o3_kt_wgmma_finish(t, &finish, r->output);
  release(w, condition, w->empty_v, o3_kt_op_const(t, "addi", turn, -1), w->s->stages);
  r->output = o3_attention_rescale(w, outputs(w->a), r->output, s);
  for (int i = 0; i < num_packed; ++i)
    r->packed[i] = o3_attention_pack(w, s->scores[2 * i], s->scores[2 * i + 1]);
}

/* |first|: the number of the warpgroup's first step. */
static void next_step(writer_t *w, const consumer_t *c, int first, int step, state_t *s, running_t *r) {
  o3_kernel_text_t *t = w->t;
  int turn = o3_kt_op(t, "addi", w->before, step), before = o3_kt_op_const(t, "addi", turn, -1);
  int second = o3_kt_cmp(t, "sgt", step, o3_kt_op_const(t, "addi", first, 1)), count = w->s->columns / 2;
  settle(w, before, o3_kt_value(t, "arith.andi %%v%d, %%v%d : i1", c->leader, second), s, r);
  wait_full(w, w->full_k, turn, w->s->stages);
  begin_turn(w, c);
  int sums = multiply_scores(w, c, turn);
  r->output = multiply_values(w, c, before, r->packed, r->output);
  end_turn(w, c);
  sums = o3_kt_wgmma_finish(t, &(o3_wgmma_finish_t){.groups = 1, .count = count}, sums);
  release(w, c->leader, w->empty_k, turn, w->s->stages);
  o3_attention_members(t, count, sums, s->scores);
  o3_attention_limit(w, c, step, false, s->scores);
  o3_attention_softmax(w, c, false, s);
}

enum { MAX_CARRIED = 9 + MAX_PACKED };

/* Values that the loop carries, and their types. */
static int list_state(writer_t *w, int *scores, state_t *s, running_t *r, int *values[MAX_CARRIED],
                      const char *types[MAX_CARRIED], char text[2][20]) {
  int count = 0;
  snprintf(text[0], sizeof(text[0]), "!sums%d", outputs(w->a));
  snprintf(text[1], sizeof(text[1]), "!sums%d", w->s->columns / 2);
  types[count] = text[0], values[count++] = &r->output;
  types[count] = text[1], values[count++] = scores;
  types[count] = "i1", values[count++] = &s->grown;
  for (int i = 0; i < 2; ++i) {
    int *const rows[] = {&s->reference[i], &s->total[i], &s->rescale[i]};
    for (int k = 0; k < 3; ++k) types[count] = "f32", values[count++] = rows[k];
  }
  for (int i = 0; i < w->s->columns / 4; ++i) types[count] = "i32", values[count++] = &r->packed[i];
  return count;
}

static void loop_steps(writer_t *w, const consumer_t *c, int first, state_t *s, running_t *r) {
  o3_kernel_text_t *t = w->t;
  o3_kt_carried_t carried[MAX_CARRIED];
  int *values[MAX_CARRIED], next[MAX_CARRIED], num_scores = w->s->columns / 2;
  int scores = o3_kt_struct(t, num_scores, s->scores), one = o3_kt_i32(t, 1);
  const char *types[MAX_CARRIED];
  char text[2][20];
  int count = list_state(w, &scores, s, r, values, types, text);
  for (int i = 0; i < count; ++i) carried[i] = (o3_kt_carried_t){.init = *values[i], .type = types[i]};
  int step = o3_kt_for(t, o3_kt_op(t, "addi", first, one), w->steps, one, count, carried);
  for (int i = 0; i < count; ++i) *values[i] = carried[i].value;
  o3_attention_members(t, num_scores, scores, s->scores);
  next_step(w, c, first, step, s, r);
  scores = o3_kt_struct(t, num_scores, s->scores);
  for (int i = 0; i < count; ++i) next[i] = *values[i];
  o3_kt_end_for(t, count, carried, next);
  for (int i = 0; i < count; ++i) *values[i] = carried[i].result;
  o3_attention_members(t, num_scores, scores, s->scores);
}

static void all_steps(writer_t *w, const consumer_t *c, int first, state_t *s, running_t *r) {
  o3_kernel_text_t *t = w->t;
  int zero = o3_kt_i32(t, 0);
  first_step(w, c, first, s);
  r->output = o3_attention_zeros(t, outputs(w->a));
  for (int i = 0; i < w->s->columns / 4; ++i) r->packed[i] = zero;
  loop_steps(w, c, first, s, r);
  int last = o3_kt_op(t, "addi", w->before, o3_kt_op_const(t, "addi", w->steps, -1));
  int several = o3_kt_cmp(t, "sgt", o3_kt_op_const(t, "addi", w->steps, -1), first);
  settle(w, last, o3_kt_value(t, "arith.andi %%v%d, %%v%d : i1", c->leader, several), s, r);
  int output = multiply_values(w, c, last, r->packed, r->output);
  const o3_wgmma_finish_t finish = {
      .count = outputs(w->a), .num_pinned = w->s->columns / 4, .pinned = r->packed};
  r->output = o3_kt_wgmma_finish(t, &finish, output);
  release(w, c->leader, w->empty_v, last, w->s->stages);
}

/* The number of the barrier that the warpgroup's threads alone come to. */
static int own_barrier(writer_t *w, const consumer_t *c) {
  return o3_kt_op_const(w->t, "addi", c->number, 1 + w->s->consumers);
}

/* Blocks of columns that are behind the diagonal for all rows of this warpgroup are the others' alone; their
 * number. Of rows behind the end, all but one block are skipped. All warps have seen a block before it is
 * handed back: one that is late would take the next block's phase for this one's. */
static int skip_blocks(writer_t *w, const consumer_t *c) {
  o3_kernel_text_t *t = w->t;
  int zero = o3_kt_i32(t, 0);
  if (!w->a->causal) return zero;
  int above = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", w->block, tile_rows(w->a)),
                       o3_kt_op_const(t, "muli", c->number, ROWS));
  int last = o3_kt_op_const(t, "minui", o3_kt_op_const(t, "addi", above, ROWS - 1), w->a->rows - 1);
  int needed = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "divui", last, w->s->columns), 1);
  int behind = o3_kt_cmp_const(t, "sge", above, w->a->rows);
  int skip = o3_kt_op(t, "subi", w->steps, o3_kt_select(t, behind, o3_kt_i32(t, 1), needed, "i32"));
  int step = o3_kt_for(t, zero, skip, o3_kt_i32(t, 1), 0, NULL), turn = o3_kt_op(t, "addi", w->before, step);
  begin_turn(w, c);
  end_turn(w, c);
  wait_full(w, w->full_k, turn, w->s->stages);
  wait_full(w, w->full_v, turn, w->s->stages);
  o3_kt_barrier(t, own_barrier(w, c), WARPGROUP);
  release(w, c->leader, w->empty_k, turn, w->s->stages);
  release(w, c->leader, w->empty_v, turn, w->s->stages);
  o3_kt_end_for(t, 0, NULL, NULL);
  return skip;
}

/* ---- The result ---- */

/* |columns| of a panel of 64, a multiple of 16. */
static void stage_panel(writer_t *w, const consumer_t *c, int staging, int columns, const int *values,
                        const int inverse[2]) {
  o3_kernel_text_t *t = w->t;
  int words[PANEL / 4];
  for (int i = 0; i < columns / 4; ++i) {
    int low = o3_attention_binary(t, "mulf", values[2 * i], inverse[i % 2]);
    words[i] = o3_attention_pack(w, low, o3_attention_binary(t, "mulf", values[2 * i + 1], inverse[i % 2]));
  }
  for (int i = 0; i < columns / 16; ++i)
    o3_kt_store_matrices(t, staging, c->warp, c->lane, 2 * i, words + 4 * i);
}

static void store_panels(writer_t *w, int staging, int row) {
  o3_kernel_text_t *t = w->t;
  char map[16];
  snprintf(map, sizeof(map), "%%map%d", w->kernel->num_arguments - 1);
  for (int p = 0; p < value_panels(w->a); ++p)
    o3_kt_tensor_store(t, map, o3_kt_shared(t, staging, o3_kt_i32(t, p * q_panel_bytes(w->a))), 4,
                       (int[]){o3_kt_i32(t, p * PANEL), row, w->head, w->batch});
  o3_kt_line(t, "nvvm.cp.async.bulk.commit.group\nnvvm.cp.async.bulk.wait_group 0 {read}");
  o3_kt_mbarrier_arrive(t, barrier_at(w, w->empty_q, w->turn, w->s->queries));
}

static void store_output(writer_t *w, const consumer_t *c, const state_t *s, int output) {
  o3_kernel_text_t *t = w->t;
  int values[O3_ATTENTION_MAX_SCORES], inverse[2], one = o3_attention_number(t, 1);
  int id = own_barrier(w, c);
  int offset = o3_kt_op_const(t, "muli", stage_of(w, w->turn, w->s->queries), tile_bytes(w->a));
  offset = o3_kt_op(t, "addi", offset, o3_kt_op_const(t, "muli", c->number, ROWS * ROW_BYTES));
  int staging = o3_kt_shared(t, w->shared, offset);
  int row = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", w->block, tile_rows(w->a)),
                     o3_kt_op_const(t, "muli", c->number, ROWS));
  o3_attention_members(t, outputs(w->a), output, values);
  for (int half = 0; half < 2; ++half) {
    int total = o3_attention_over_row(w, "addf", s->total[half]);
    inverse[half] = o3_attention_binary(t, "divf", one, total);
  }
  o3_kt_barrier(t, id, WARPGROUP);
  for (int p = 0; p < value_panels(w->a); ++p) {
    int columns = value_columns(w->a) - p * PANEL;
    stage_panel(w, c, o3_kt_shared(t, staging, o3_kt_i32(t, p * q_panel_bytes(w->a))),
                columns < PANEL ? columns : PANEL, values + p * PANEL / 2, inverse);
  }
  o3_kt_line(t, "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}");
  o3_kt_barrier(t, id, WARPGROUP);
  o3_kt_if(t, c->leader);
  store_panels(w, staging, row);
  o3_kt_end(t);
}

static void tile(writer_t *w, consumer_t *c) {
  o3_kernel_text_t *t = w->t;
  state_t s;
  running_t r;
  int in_group =
      o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", c->warp, 16), o3_kt_op_const(t, "shrui", c->lane, 2));
  int row = o3_kt_op(t, "addi", in_group, o3_kt_op_const(t, "muli", c->number, ROWS));
  c->row = o3_kt_op(t, "addi", row, o3_kt_op_const(t, "muli", w->block, tile_rows(w->a)));
  int base = o3_kt_op_const(t, "andi", o3_kt_op_const(t, "shrui", o3_kt_address(t, w->shared), 4), 0x3fff);
  int stage = o3_kt_op_const(t, "muli", stage_of(w, w->turn, w->s->queries), tile_bytes(w->a) / 16);
  c->q = o3_kt_op(t, "addi", o3_kt_op(t, "addi", base, stage),
                  o3_kt_op_const(t, "muli", c->number, ROWS * ROW_BYTES / 16));
  c->k = o3_kt_op_const(t, "addi", base, k_offset(w->a) / 16);
  c->v = o3_kt_op_const(t, "addi", base, v_offset(w->a) / 16);
  wait_full(w, w->full_q, w->turn, w->s->queries);
  int first = skip_blocks(w, c);
  all_steps(w, c, first, &s, &r);
  store_output(w, c, &s, r.output);
}

static void consumer(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  consumer_t c;
  o3_kt_carried_t before;
  const double factor = (w->a->masked ? 1 : w->a->scale) * 1.4426950408889634;
  int group = o3_kt_uniform(t, o3_kt_op_const(t, "shrui", w->thread, 7));
  int thread = o3_kt_op_const(t, "andi", w->thread, WARPGROUP - 1);
  c.number = o3_kt_op_const(t, "subi", group, 1);
  c.leader = o3_kt_cmp_const(t, "eq", thread, 0);
  c.lane = o3_kt_op_const(t, "andi", thread, 31);
  c.warp = o3_kt_op_const(t, "shrui", thread, 5);
  c.pair = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "andi", c.lane, 3), 2);
  c.factor = o3_attention_number(t, factor);
  c.opposed = o3_attention_number(t, -factor);
  start_turns(w, &c, true);
  open_tiles(w, &before);
  tile(w, &c);
  close_tiles(w, &before);
  start_turns(w, &c, false);
}

/* ---- The kernel ---- */

static void init_ring(writer_t *w, int count, int *at, int *full, int *empty) {
  o3_kernel_text_t *t = w->t;
  *full = o3_kt_shared(t, w->shared, o3_kt_i32(t, *at));
  *empty = o3_kt_shared(t, w->shared, o3_kt_i32(t, *at + 8 * count));
  *at += 16 * count;
}

static void init_barriers(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int at = barrier_offset(w->a);
  const struct {
    int count, *full, *empty;
  } rings[] = {{w->s->queries, &w->full_q, &w->empty_q},
               {w->s->stages, &w->full_k, &w->empty_k},
               {w->s->stages, &w->full_v, &w->empty_v}};
  for (int r = 0; r < 3; ++r) init_ring(w, rings[r].count, &at, rings[r].full, rings[r].empty);
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", w->thread, 0));
  for (int r = 0; r < 3; ++r) {
    for (int i = 0; i < rings[r].count; ++i) {
      int bytes = o3_kt_i32(t, 8 * i);
      o3_kt_mbarrier_init(t, o3_kt_shared(t, *rings[r].full, bytes), 1);
      o3_kt_mbarrier_init(t, o3_kt_shared(t, *rings[r].empty, bytes), w->s->consumers);
    }
  }
  o3_kt_line(t, "nvvm.fence.mbarrier.init");
  o3_kt_end(t);
  o3_kt_line(t, "nvvm.barrier0");
  o3_kt_start_next(t);
  o3_kt_wait_for_others(t);
}

static void write_module(o3_kernel_text_t *t, void *context) {
  writer_t *w = context;
  w->t = t;
  o3_kt_begin_module(t);
  o3_kt_begin_kernel(t, w->kernel, w->s->resident);
  w->shared = o3_kt_value(t, "llvm.mlir.addressof @o3_shared : !llvm.ptr<3>");
  w->thread = o3_kt_thread(t);
  w->block_of_threads = o3_kt_block(t);
  init_barriers(w);
  int group = o3_kt_uniform(t, o3_kt_op_const(t, "shrui", w->thread, 7));
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", group, 0));
  o3_kt_line(t, "nvvm.setmaxregister decrease %d", PRODUCER_REGISTERS);
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", w->thread, 0));
  producer(w);
  o3_kt_end(t);
  o3_kt_else(t);
  o3_kt_line(t, "nvvm.setmaxregister increase %d", consumer_registers(w->s));
  consumer(w);
  o3_kt_end(t);
  o3_kt_end_kernel(t);
}

static void add_map(const o3_gpu_attention_t *a, o3_gpu_kernel_t *kernel, int buffer, int width, int rows,
                    const int64_t strides[3], bool of_q) {
  int64_t bytes = o3_gpu_element_info(a->element)->bytes;
  o3_gpu_tensor_map_t map = {
      .element = a->element,
      .rank = 4,
      .sizes = {width, of_q ? a->rows : a->columns, of_q ? a->heads : a->kv_heads, a->batch},
      .strides = {0, strides[2] * bytes, strides[1] * bytes, strides[0] * bytes},
      .box = {PANEL, rows, 1, 1},
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

bool o3_gpu_attention_has_width(int64_t width) { return width > 0 && width <= O3_ATTENTION_MAX_WIDTH; }

const char *o3_gpu_attention_refuse_shape(const o3_gpu_attention_t *a) {
  if (a->element == O3_GPU_F32) return "attention is of f16 and bf16";
  if (!o3_gpu_attention_has_width(a->width) || !o3_gpu_attention_has_width(a->value_width))
    return "a head is more than 256 wide";
  if (a->batch < 1 || a->heads < 1 || a->rows < 1 || a->columns < 1) return "a size is zero";
  if (a->kv_heads < 1 || a->heads % a->kv_heads) return "the heads of Q are no multiple of those of K and V";
  if (a->causal && a->rows != a->columns) return "causal attention has as many rows as columns";
  if (!a->masked && !(a->scale > 0)) return "the scale is not positive";
  if (last_place(a, a->o_strides) + a->value_width > INT32_MAX)
    return "the result has more than 2^31 elements";
  if (last_place(a, a->mask_strides) + a->columns > INT32_MAX) return "the mask has more than 2^31 elements";
  return NULL;
}

const char *o3_gpu_attention_refuse(const o3_gpu_attention_t *a) {
  const char *why = o3_gpu_attention_refuse_shape(a);
  const int64_t *const strides[] = {a->q_strides, a->k_strides, a->v_strides, a->o_strides};
  for (int i = 0; i < 4 && !why; ++i) why = refuse_strides(strides[i]);
  for (int i = 0; i < 3 && !why; ++i) {
    if (a->offsets[i] % 8) why = "Q, K or V starts at an address that TMA does not take";
  }
  return why;
}

o3_status_t o3_gpu_attention_build(const o3_gpu_attention_t *a, o3_gpu_kernel_t *kernel) {
  char stem[96];
  int64_t room = a->multiprocessors * a->schedule.resident;
  *kernel = (o3_gpu_kernel_t){0};
  kernel->grid[0] = (int)(a->schedule.persistent && tiles(a) > 2 * room ? room : tiles(a));
  kernel->grid[1] = kernel->grid[2] = kernel->cluster = 1;
  kernel->block = threads(&a->schedule);
  kernel->shared_bytes = shared_bytes(a);
  kernel->overlaps = true;
  add_map(a, kernel, 0, a->width, tile_rows(a), a->q_strides, true);
  add_map(a, kernel, 1, a->width, a->schedule.columns, a->k_strides, false);
  add_map(a, kernel, 2, a->value_width, a->schedule.columns, a->v_strides, false);
  if (a->masked) o3_gpu_kernel_add_pointer(kernel, 3);
  add_map(a, kernel, 3 + a->masked, a->value_width, ROWS, a->o_strides, true);
  writer_t w = {.a = a, .s = &a->schedule, .kernel = kernel, .row_step = 8, .row_lanes = {1, 2}};
  snprintf(stem, sizeof(stem), "o3k_%s_attention_%dx%dx%d__sm90a%s", type_of(a), tile_rows(a),
           a->schedule.columns, value_columns(a), a->causal ? "_causal" : "");
  return o3_kt_write(kernel, stem, write_module, &w);
}
