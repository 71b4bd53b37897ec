/* One pass over a tile: the producer (warp 0 of warpgroup 0) waits for an empty stage and asks TMA for a
 * block of A and B; consumers wait for a full one, issue its products, and hand back the stage of the
 * products before these, so that the tensor cores always have work queued. With |split| the blocks of a
 * cluster take turns of k: each leaves its sums in its shared memory in the order of the registers, and
 * finishes a part of the columns with what it reads from the others.
 *
 * Shared memory: [A of each stage][B of each stage][staging of D][barriers full, empty]. */
#include <stdio.h>
#include <string.h>

#include "target/nvptx/gemm_writer.h"

/* Of the 168 that a thread of three warpgroups starts with: the producer's, who needs them for windows,
 * and the consumers'; many sums leave it fewer. */
enum { PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232, FEW_REGISTERS = 24, MANY_REGISTERS = 240 };

static int ceil_div(int64_t a, int64_t b) { return (int)((a + b - 1) / b); }

/* ---- Tiles ---- */

static o3_gemm_tiling_t tiling(const o3_gemm_writer_t *w) {
  return (o3_gemm_tiling_t){o3_gemm_tile_rows(w->s), w->s->columns, w->s->group_rows};
}

static o3_gemm_place_t tile_place(o3_gemm_writer_t *w, int tile) {
  const o3_gemm_tiling_t cut = tiling(w);
  return o3_gemm_tile_place(w->t, w->g, &cut, tile);
}

static int64_t count_tiles(const o3_gemm_writer_t *w) {
  const o3_gemm_tiling_t cut = tiling(w);
  return o3_gemm_tiles(w->g, &cut);
}

/* The kernel is told its rows, or its batches. */
static bool is_told(const o3_gemm_t *g) { return g->rows_at_run_time || g->batches_at_run_time; }

/* The same as a value. */
static int all_tiles(o3_gemm_writer_t *w) {
  if (!is_told(w->g)) return o3_kt_i32(w->t, count_tiles(w));
  int told = o3_gemm_told(w->t, w->g);
  if (w->g->rows_at_run_time) told = o3_gemm_told_tiles(w->t, told, o3_gemm_tile_rows(w->s));
  return o3_kt_op_const(w->t, "muli", told, count_tiles(w));
}

/* Tiles that are worked on at a time. */
static int tiles_at_once(const o3_gemm_writer_t *w) {
  return is_told(w->g) ? w->kernel->rows.blocks : w->kernel->grid[0] / w->s->split;
}

/* Of the block's tiles each |every|th from |first|; opens the loop over them. */
static int open_tiles(o3_gemm_writer_t *w, int first, int every, int count, o3_kt_carried_t *carried) {
  o3_kernel_text_t *t = w->t;
  if (w->s->streams) {
    int range[2];
    o3_gemm_stream_tiles(w, range);
    return o3_kt_for(t, range[0], range[1], o3_kt_i32(t, 1), count, carried);
  }
  if (w->s->split > 1 && is_told(w->g)) { /* each cluster has one */
    int one = o3_kt_i32(t, 1);
    return o3_kt_for(t, first, o3_kt_op(t, "addi", first, one), one, count, carried);
  }
  int tiles = all_tiles(w), step = o3_kt_i32(t, (int64_t)tiles_at_once(w) * every);
  return o3_kt_for(t, first, tiles, step, count, carried);
}

/* The stage after turn[0] and the parity of its turn after turn[1]. */
static void next_stage(o3_gemm_writer_t *w, int stage, int parity, int next[2]) {
  o3_kernel_text_t *t = w->t;
  int up = o3_kt_op_const(t, "addi", stage, 1);
  int wraps = o3_kt_cmp_const(t, "eq", up, w->s->stages);
  next[0] = o3_kt_select(t, wraps, o3_kt_i32(t, 0), up, "i32");
  next[1] = o3_kt_select(t, wraps, o3_kt_op_const(t, "xori", parity, 1), parity, "i32");
}

/* The same after the steps of a whole tile. */
static void skip_tile(o3_gemm_writer_t *w, int turn[2]) {
  o3_kernel_text_t *t = w->t;
  int at = o3_kt_op_const(t, "addi", turn[0], w->k_blocks);
  int wraps = o3_kt_op_const(t, "divui", at, w->s->stages);
  turn[0] = o3_kt_op_const(t, "remui", at, w->s->stages);
  turn[1] = o3_kt_op(t, "xori", turn[1], o3_kt_op_const(t, "andi", wraps, 1));
}

static int barrier_at(o3_gemm_writer_t *w, int barriers, int stage) {
  return o3_kt_shared(w->t, barriers, o3_kt_op_const(w->t, "muli", stage, 8));
}

/* ---- The producer ---- */

/* The stage that is filled: where (b: in bytes), and what counts its bytes; with what step of k. */
typedef struct filled {
  int a, b, full, step;
} filled_t;

static filled_t stage_to_fill(o3_gemm_writer_t *w, int stage, int step) {
  o3_kernel_text_t *t = w->t;
  int b_at = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", stage, w->b_bytes),
                            (int64_t)w->s->stages * w->a_bytes);
  return (filled_t){.a = o3_kt_shared(t, w->shared, o3_kt_op_const(t, "muli", stage, w->a_bytes)),
                    .b = b_at,
                    .full = barrier_at(w, w->full, stage),
                    .step = step};
}

/* Rows of B from |k|, in panels of 64 columns. */
static void load_panels(o3_gemm_writer_t *w, const filled_t *f, int column, int k, const int batch[2]) {
  o3_kernel_text_t *t = w->t;
  for (int panel = 0; panel < w->s->columns / 64; ++panel) {
    int to = o3_kt_shared(t, w->shared,
                          o3_kt_op_const(t, "addi", f->b, panel * O3_GEMM_BLOCK_K * O3_GEMM_ROW_BYTES));
    o3_kt_tensor_load(t, to, "%map1", f->full, 4,
                      (int[]){o3_kt_op_const(t, "addi", column, panel * 64), k, batch[1], batch[0]});
  }
}

static int matrix_k(o3_gemm_writer_t *w, const filled_t *f) {
  return o3_kt_op_const(w->t, "muli", f->step, o3_gemm_block_k(w->g));
}

static void choose_batch(o3_gemm_writer_t *w, const o3_gemm_place_t *at, const int64_t strides[2],
                         int batch[2]) {
  for (int i = 0; i < 2; ++i) batch[i] = strides[i] ? at->batch[i] : o3_kt_i32(w->t, 0);
}

static void load_matrix_a(o3_gemm_writer_t *w, const o3_gemm_place_t *at, const filled_t *f) {
  int batch[2];
  choose_batch(w, at, w->g->a_batch, batch);
  o3_kt_tensor_load(w->t, f->a, "%map0", f->full, 4, (int[]){matrix_k(w, f), at->row, batch[1], batch[0]});
}

static void load_matrix_b(o3_gemm_writer_t *w, const o3_gemm_place_t *at, const filled_t *f) {
  o3_kernel_text_t *t = w->t;
  int batch[2], k = matrix_k(w, f);
  choose_batch(w, at, w->g->b_batch, batch);
  if (w->g->b_by_rows)
    load_panels(w, f, at->column, k, batch);
  else
    o3_kt_tensor_load(t, o3_kt_shared(t, w->shared, f->b), "%map1", f->full, 4,
                      (int[]){k, at->column, batch[1], batch[0]});
}

/* x, y and image of the window of the tile's first row: where its first tap is. */
static void window_place(o3_gemm_writer_t *w, const o3_gemm_place_t *at, int place[3]) {
  o3_kernel_text_t *t = w->t;
  const o3_gemm_window_t *window = w->g->window;
  int rest = at->row;
  for (int i = 0; i < 2; ++i) {
    int output = o3_kt_split(t, &rest, window->outputs[i]);
    place[i] =
        o3_kt_op_const(t, "subi", o3_kt_op_const(t, "muli", output, window->steps[i]), window->lows[i]);
  }
  place[2] = w->g->batches_at_run_time ? o3_kt_op(t, "addi", rest, at->batch[0]) : rest;
}

/* Steps walk the channels of a tap, then the taps along x, then along y. Those behind the last, which blocks
 * of a cluster may have, read zeros: channels that are not there. */
static void split_step(o3_gemm_writer_t *w, int step, int *tap, int *channel) {
  o3_kernel_text_t *t = w->t;
  int each = o3_gemm_block_k(w->g), blocks = ceil_div(w->g->window->channels, each);
  int64_t steps = o3_gemm_steps(w->g);
  *tap = o3_kt_op_const(t, "divui", step, blocks);
  *channel = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "remui", step, blocks), each);
  if (steps % w->s->split)
    *channel = o3_kt_select(t, o3_kt_cmp_const(t, "slt", step, steps), *channel,
                            o3_kt_i32(t, (int64_t)blocks * each), "i32");
}

static void load_windows(o3_gemm_writer_t *w, const int place[3], const filled_t *f) {
  o3_kernel_text_t *t = w->t;
  const o3_gemm_window_t *window = w->g->window;
  int tap, channel, offsets[2];
  split_step(w, f->step, &tap, &channel);
  int taps[2] = {o3_kt_op_const(t, "remui", tap, window->taps[0]),
                 o3_kt_op_const(t, "divui", tap, window->taps[0])};
  for (int i = 0; i < 2; ++i)
    offsets[i] = o3_kt_value(t, "arith.trunci %%v%d : i32 to i16",
                             o3_kt_op_const(t, "muli", taps[i], window->dilations[i]));
  o3_kt_window_load(t, f->a, "%map0", f->full, (int[]){channel, place[0], place[1], place[2]}, offsets);
}

static void load_weights(o3_gemm_writer_t *w, int column, const filled_t *f) {
  int tap, channel;
  split_step(w, f->step, &tap, &channel);
  if (w->g->b_by_rows) {
    load_panels(w, f, column, channel, (int[]){o3_kt_i32(w->t, 0), tap});
    return;
  }
  int64_t along = w->g->window->taps[0];
  o3_kt_tensor_load(w->t, o3_kt_shared(w->t, w->shared, f->b), "%map1", f->full, 4,
                    (int[]){channel, column, o3_kt_op_const(w->t, "remui", tap, along),
                            o3_kt_op_const(w->t, "divui", tap, along)});
}

static void load_b(o3_gemm_writer_t *w, const o3_gemm_place_t *at, const filled_t *f) {
  o3_kt_mbarrier_expect(w->t, f->full, w->a_bytes + w->b_bytes);
  if (w->g->window)
    load_weights(w, at->column, f);
  else
    load_matrix_b(w, at, f);
}

/* Of k, the block's first. */
static int first_step(o3_gemm_writer_t *w) {
  return w->s->split > 1 ? o3_kt_op_const(w->t, "muli", w->rank, w->k_blocks) : o3_kt_i32(w->t, 0);
}

static o3_gemm_segment_t segment_of(o3_gemm_writer_t *w, int tile) {
  if (w->s->streams) return o3_gemm_stream_segment(w, tile);
  return (o3_gemm_segment_t){tile, first_step(w), o3_kt_i32(w->t, w->k_blocks)};
}

/* Stages whose B is loaded before the kernels before this one have ended. */
static int early_stages(const o3_gemm_writer_t *w) {
  if (!w->g->b_is_constant || w->s->streams) return 0;
  return w->s->stages < w->k_blocks ? w->s->stages : w->k_blocks;
}

static void load_early(o3_gemm_writer_t *w) {
  o3_kernel_text_t *t = w->t;
  if (!early_stages(w)) return;
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", w->thread, 0));
  o3_gemm_place_t at = tile_place(w, w->block);
  int zero = o3_kt_i32(t, 0), count = o3_kt_i32(t, early_stages(w)), one = o3_kt_i32(t, 1);
  int first = first_step(w), stage = o3_kt_for(t, zero, count, one, 0, NULL);
  filled_t f = stage_to_fill(w, stage, o3_kt_op(t, "addi", first, stage));
  load_b(w, &at, &f);
  o3_kt_end_for(t, 0, NULL, NULL);
  o3_kt_end(t);
}

/* The stage's B, unless load_early() has asked for it: of the block's first tile, |k| steps behind its first.
 */
static void load_late(o3_gemm_writer_t *w, const o3_gemm_place_t *at, const filled_t *f, int tile, int k) {
  o3_kernel_text_t *t = w->t;
  int early = early_stages(w);
  if (early) {
    int other = o3_kt_value(t, "arith.cmpi ne, %%v%d, %%v%d : i32", tile, w->block);
    int behind = o3_kt_cmp_const(t, "sge", k, early);
    o3_kt_if(t, o3_kt_value(t, "arith.ori %%v%d, %%v%d : i1", other, behind));
  }
  load_b(w, at, f);
  if (early) o3_kt_end(t);
}

static void producer(o3_gemm_writer_t *w) {
  o3_kernel_text_t *t = w->t;
  o3_kt_carried_t turn[2], inner[2];
  int next[2], zero = o3_kt_i32(t, 0);
  for (int i = 0; i < 2; ++i) turn[i] = (o3_kt_carried_t){.init = zero, .type = "i32"};
  int tile = open_tiles(w, w->block, 1, 2, turn), place[3];
  o3_gemm_segment_t segment = segment_of(w, tile);
  int first = segment.first;
  o3_gemm_place_t at = tile_place(w, tile);
  if (w->g->window) window_place(w, &at, place);
  for (int i = 0; i < 2; ++i) inner[i] = (o3_kt_carried_t){.init = turn[i].value, .type = "i32"};
  int one = o3_kt_i32(t, 1);
  int k = o3_kt_for(t, zero, segment.count, one, 2, inner), stage = inner[0].value, parity = inner[1].value;
  o3_kt_mbarrier_wait(t, barrier_at(w, w->empty, stage), o3_kt_op_const(t, "xori", parity, 1));
  filled_t f = stage_to_fill(w, stage, o3_kt_op(t, "addi", first, k));
  load_late(w, &at, &f, tile, k);
  if (w->g->window)
    load_windows(w, place, &f);
  else
    load_matrix_a(w, &at, &f);
  next_stage(w, stage, parity, next);
  o3_kt_end_for(t, 2, inner, next);
  o3_kt_end_for(t, 2, turn, (int[]){inner[0].result, inner[1].result});
}

/* ---- Consumers: products ---- */

/* A step's products, one below the other; |sums| are those so far, or NULL. */
static void multiply(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int stage, const int *sums,
                     int *results) {
  o3_kernel_text_t *t = w->t;
  int a = o3_kt_op(t, "addi", c->stage_addresses, o3_kt_op_const(t, "muli", stage, w->a_bytes / 16));
  int b = o3_kt_op(t, "addi", c->b_addresses, o3_kt_op_const(t, "muli", stage, w->b_bytes / 16));
  for (int i = 0; i < w->s->products; ++i) {
    o3_wgmma_t m = {.element = w->g->element,
                    .n = w->s->columns,
                    .steps = O3_GEMM_ROW_BYTES / O3_GEMM_STEP_BYTES,
                    .b_by_rows = w->g->b_by_rows,
                    .b_panel = O3_GEMM_BLOCK_K * O3_GEMM_ROW_BYTES,
                    .accumulate = sums != NULL,
                    .open = i + 1 < w->s->products};
    int at = i ? o3_kt_op_const(t, "addi", a, (int64_t)i * O3_GEMM_ROWS * O3_GEMM_ROW_BYTES / 16) : a;
    results[i] = o3_kt_wgmma(t, &m, at, b, sums ? sums[i] : -1);
  }
}

static void release(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int stage) {
  int barrier = barrier_at(w, w->empty, stage);
  o3_kt_if(w->t, c->leader);
  o3_kt_mbarrier_arrive(w->t, barrier);
  o3_kt_end(w->t);
}

/* Warpgroups that alternate multiply in turns: one's turn begins when the products of the tile before are
 * issued. It also keeps the next one from taking an old phase of a barrier for the one that it waits for. */
enum { FIRST_TURN = 4 }; /* named barriers */

static void wait_for_turn(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int tile) {
  o3_kernel_text_t *t = w->t;
  o3_kt_if(t, o3_kt_cmp_const(t, "sge", tile, tiles_at_once(w)));
  o3_kt_barrier(t, o3_kt_op_const(t, "addi", c->number, FIRST_TURN), 2 * O3_GEMM_WARPGROUP);
  o3_kt_end(t);
}

static void end_turn(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int tile) {
  o3_kernel_text_t *t = w->t;
  int behind = o3_kt_op_const(t, "addi", tile, tiles_at_once(w));
  o3_kt_if(t, o3_kt_cmp(t, "slt", behind, all_tiles(w)));
  int other = o3_kt_op(t, "subi", o3_kt_i32(t, FIRST_TURN + 1), c->number);
  o3_kt_barrier_arrive(t, other, 2 * O3_GEMM_WARPGROUP);
  o3_kt_end(t);
}

/* Products of a tile that run: the next stage and its parity, the one that is to be released, the sums. */
typedef struct o3_gemm_running {
  int stage, parity, last;
  int sums[O3_GEMM_MAX_PRODUCTS];
} o3_gemm_running_t;

static void advance(o3_gemm_writer_t *w, o3_gemm_running_t *r) {
  int next[2];
  next_stage(w, r->stage, r->parity, next);
  r->last = r->stage, r->stage = next[0], r->parity = next[1];
}

/* A tile's first step, from the stage and parity of |turn|. */
static void first_step_of(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const int turn[2],
                          o3_gemm_running_t *r) {
  *r = (o3_gemm_running_t){.stage = turn[0], .parity = turn[1]};
  o3_kt_mbarrier_wait(w->t, barrier_at(w, w->full, r->stage), r->parity);
  multiply(w, c, r->stage, NULL, r->sums);
  advance(w, r);
}

static void next_step_of(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, o3_gemm_running_t *r) {
  int sums[O3_GEMM_MAX_PRODUCTS];
  o3_kt_mbarrier_wait(w->t, barrier_at(w, w->full, r->stage), r->parity);
  multiply(w, c, r->stage, r->sums, sums);
  memcpy(r->sums, sums, sizeof(sums));
  o3_kt_wgmma_wait(w->t, 1);
  release(w, c, r->last);
  advance(w, r);
}

/* The steps from |first| to before |end| (value). */
static void steps_of(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int first, int end,
                     o3_gemm_running_t *r) {
  enum { STATE = 3 };
  o3_kernel_text_t *t = w->t;
  char type[24];
  int count = w->s->products, *state[STATE] = {&r->stage, &r->parity, &r->last};
  int next[STATE + O3_GEMM_MAX_PRODUCTS];
  o3_kt_carried_t carried[STATE + O3_GEMM_MAX_PRODUCTS];
  snprintf(type, sizeof(type), "!sums%d", w->s->columns / 2);
  for (int i = 0; i < STATE; ++i) carried[i] = (o3_kt_carried_t){.init = *state[i], .type = "i32"};
  for (int i = 0; i < count; ++i) carried[STATE + i] = (o3_kt_carried_t){.init = r->sums[i], .type = type};
  o3_kt_for(t, o3_kt_i32(t, first), end, o3_kt_i32(t, 1), STATE + count, carried);
  for (int i = 0; i < STATE; ++i) *state[i] = carried[i].value;
  for (int i = 0; i < count; ++i) r->sums[i] = carried[STATE + i].value;
  next_step_of(w, c, r);
  for (int i = 0; i < STATE; ++i) next[i] = *state[i];
  for (int i = 0; i < count; ++i) next[STATE + i] = r->sums[i];
  o3_kt_end_for(t, STATE + count, carried, next);
  for (int i = 0; i < STATE; ++i) *state[i] = carried[i].result;
  for (int i = 0; i < count; ++i) r->sums[i] = carried[STATE + i].result;
}

/* The products of |steps| (value) steps of a tile, from the stage and parity of |turn|, which it moves on:
 * structs of sums that are complete once finish() was called. Gives the last stage, which is then to be
 * released. */
static int products(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int steps, int turn[2],
                    int sums[O3_GEMM_MAX_PRODUCTS]) {
  o3_gemm_running_t r;
  first_step_of(w, c, turn, &r);
  steps_of(w, c, 1, steps, &r);
  memcpy(sums, r.sums, sizeof(r.sums));
  turn[0] = r.stage, turn[1] = r.parity;
  return r.last;
}

/* Part |part| of a step's columns alone: the sums of its stage, complete. */
static int multiply_part(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int stage, int part) {
  o3_kernel_text_t *t = w->t;
  int columns = w->s->columns / w->s->promote;
  int a = o3_kt_op(t, "addi", c->stage_addresses, o3_kt_op_const(t, "muli", stage, w->a_bytes / 16));
  int b = o3_kt_op(t, "addi", c->b_addresses, o3_kt_op_const(t, "muli", stage, w->b_bytes / 16));
  const o3_wgmma_t m = {
      .element = w->g->element, .n = columns, .steps = O3_GEMM_ROW_BYTES / O3_GEMM_STEP_BYTES};
  b = o3_kt_op_const(t, "addi", b, (int64_t)part * columns * O3_GEMM_ROW_BYTES / 16);
  return o3_kt_wgmma_finish(t, &(o3_wgmma_finish_t){.count = columns / 2}, o3_kt_wgmma(t, &m, a, b, -1));
}

/* The same with sums of stages that are added up in f32: each is waited for, while the other warpgroup's run.
 */
static void promoted_products(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int turn[2], int *sums) {
  o3_kernel_text_t *t = w->t;
  enum { MOST = O3_GEMM_MAX_COLUMNS / 2 };
  int count = w->s->columns / 2, each = count / w->s->promote, next[MOST + 2], values[MOST];
  o3_kt_carried_t carried[MOST + 2];
  int zero = o3_kt_value(t, "arith.constant 0.0 : f32"), one = o3_kt_i32(t, 1);
  for (int i = 0; i < count; ++i) carried[i] = (o3_kt_carried_t){.init = zero, .type = "f32"};
  for (int i = 0; i < 2; ++i) carried[count + i] = (o3_kt_carried_t){.init = turn[i], .type = "i32"};
  o3_kt_for(t, o3_kt_i32(t, 0), o3_kt_i32(t, w->k_blocks), one, count + 2, carried);
  int stage = carried[count].value, parity = carried[count + 1].value;
  o3_kt_mbarrier_wait(t, barrier_at(w, w->full, stage), parity);
  for (int part = 0; part < w->s->promote; ++part) {
    int some = multiply_part(w, c, stage, part);
    if (part + 1 == w->s->promote) release(w, c, stage);
    for (int i = 0, at = part * each; i < each; ++i, ++at)
      next[at] =
          o3_kt_value(t, "arith.addf %%v%d, %%v%d : f32", carried[at].value, o3_kt_member(t, each, some, i));
  }
  next_stage(w, stage, parity, &next[count]);
  o3_kt_end_for(t, count + 2, carried, next);
  for (int i = 0; i < count; ++i) values[i] = carried[i].result;
  for (int i = 0; i < 2; ++i) turn[i] = carried[count + i].result;
  sums[0] = o3_kt_struct(t, count, values);
}

static void finish(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int last_stage,
                   int sums[O3_GEMM_MAX_PRODUCTS]) {
  for (int i = 0; i < w->s->products; ++i)
    sums[i] = o3_kt_wgmma_finish(w->t, &(o3_wgmma_finish_t){.count = w->s->columns / 2}, sums[i]);
  release(w, c, last_stage);
}

/* A tile that this block alone sums. */
static void own_tile(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_place_t *at, int tile,
                     int stage[2]) {
  o3_gemm_stores_t stores;
  int sums[O3_GEMM_MAX_PRODUCTS];
  o3_gemm_begin_stores(w, c, at, &stores);
  if (w->s->promote) {
    promoted_products(w, c, stage, sums);
  } else {
    if (w->s->alternate) wait_for_turn(w, c, tile);
    int last = products(w, c, o3_kt_i32(w->t, w->k_blocks), stage, sums);
    if (w->s->alternate) end_turn(w, c, tile);
    finish(w, c, last, sums);
  }
  o3_gemm_end_stores(w, c, &stores, sums);
}

/* The same when stores are late: those of the tile before, |late|, run beside the first steps, a panel beside
 * each. The tile takes its place. */
static void late_tile(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int tile, int turn[2],
                      o3_gemm_late_t *late) {
  o3_gemm_stores_t stores;
  o3_gemm_running_t r;
  o3_gemm_place_t at = tile_place(w, tile), before = tile_place(w, late->tile);
  first_step_of(w, c, turn, &r);
  for (int panel = 0; panel < o3_gemm_panels(w->s); ++panel) {
    if (panel) next_step_of(w, c, &r);
    o3_gemm_store_late(w, c, &before, late, panel);
  }
  o3_gemm_begin_stores(w, c, &at, &stores);
  steps_of(w, c, o3_gemm_panels(w->s), o3_kt_i32(w->t, w->k_blocks), &r);
  finish(w, c, r.last, r.sums);
  o3_gemm_keep_results(w, c, &stores, r.sums[0], late->words);
  late->tile = tile;
  turn[0] = r.stage, turn[1] = r.parity;
}

/* A part of a tile's steps, or all of them: other blocks have the rest. */
static void shared_tile(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_place_t *at,
                        const o3_gemm_segment_t *segment, int stage[2]) {
  o3_gemm_stores_t stores;
  int sums[O3_GEMM_MAX_PRODUCTS];
  o3_gemm_begin_stores(w, c, at, &stores);
  finish(w, c, products(w, c, segment->count, stage, sums), sums);
  o3_gemm_stream_finish(w, c, &stores, segment, sums[0]);
}

/* ---- Roles ---- */

static o3_gemm_consumer_t begin_consumer(o3_gemm_writer_t *w) {
  o3_kernel_text_t *t = w->t;
  o3_gemm_consumer_t c;
  int group = o3_kt_uniform(t, o3_kt_op_const(t, "shrui", w->thread, 7));
  c.number = o3_kt_op_const(t, "subi", group, 1);
  c.thread = o3_kt_op_const(t, "andi", w->thread, O3_GEMM_WARPGROUP - 1);
  c.leader = o3_kt_cmp_const(t, "eq", c.thread, 0);
  c.id = group;
  int lane = o3_kt_op_const(t, "andi", c.thread, 31), warp = o3_kt_op_const(t, "shrui", c.thread, 5);
  int row = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", warp, 16), o3_kt_op_const(t, "shrui", lane, 2));
  int rows = w->s->alternate ? 0 : w->s->products * O3_GEMM_ROWS; /* from a warpgroup's to the next one's */
  c.first = o3_kt_op_const(t, "muli", c.number, rows);
  c.row = o3_kt_op(t, "addi", row, c.first);
  c.pair = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "andi", lane, 3), 2);
  /* In a cluster the address has the block's number in its upper bits, which a descriptor has other uses for.
   */
  int base = o3_kt_op_const(t, "andi", o3_kt_op_const(t, "shrui", o3_kt_address(t, w->shared), 4), 0x3fff);
  c.stage_addresses = o3_kt_op(t, "addi", base, o3_kt_op_const(t, "muli", c.first, O3_GEMM_ROW_BYTES / 16));
  c.b_addresses = o3_kt_op_const(t, "addi", base, (int64_t)w->s->stages * w->a_bytes / 16);
  int staging = o3_kt_op_const(
      t, "addi", o3_kt_op_const(t, "muli", c.number, O3_GEMM_STAGING_BUFFERS * O3_GEMM_STAGING_BYTES),
      o3_gemm_ring_bytes(w->s));
  c.staging = o3_kt_shared(t, w->shared, staging);
  return c;
}

/* Where the consumer's tiles begin, and the stage and parity of the first one. */
static int first_tile(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, o3_kt_carried_t turn[2]) {
  o3_kernel_text_t *t = w->t;
  int start[2] = {o3_kt_i32(t, 0), o3_kt_i32(t, 0)}, first = w->block;
  if (w->s->alternate) {
    int steps = w->k_blocks, stages = w->s->stages;
    first = o3_kt_op(t, "addi", first, o3_kt_op_const(t, "muli", c->number, tiles_at_once(w)));
    start[0] = o3_kt_op_const(t, "muli", c->number, steps % stages);
    start[1] = o3_kt_op_const(t, "muli", c->number, steps / stages % 2);
  }
  for (int i = 0; i < 2; ++i) turn[i] = (o3_kt_carried_t){.init = start[i], .type = "i32"};
  return first;
}

/* Tiles of which each is stored under the products of the next one, and the last one behind all. */
static void late_tiles(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c) {
  enum { TURN = 2, STATE = TURN + 1, MOST = STATE + O3_GEMM_MAX_COLUMNS / 64 * O3_GEMM_PANEL_PAIRS };
  o3_kernel_text_t *t = w->t;
  o3_kt_carried_t carried[MOST];
  o3_gemm_late_t late;
  int words = o3_gemm_panels(w->s) * O3_GEMM_PANEL_PAIRS, next[MOST], zero = o3_kt_i32(t, 0);
  for (int i = 0; i < STATE + words; ++i) carried[i] = (o3_kt_carried_t){.init = zero, .type = "i32"};
  carried[TURN].init = o3_kt_i32(t, -1);
  int tile = open_tiles(w, w->block, 1, STATE + words, carried);
  for (int i = 0; i < TURN; ++i) next[i] = carried[i].value;
  late.tile = carried[TURN].value;
  for (int i = 0; i < words; ++i) late.words[i] = carried[STATE + i].value;
  late_tile(w, c, tile, next, &late);
  next[TURN] = late.tile;
  memcpy(&next[STATE], late.words, (size_t)words * sizeof(int));
  o3_kt_end_for(t, STATE + words, carried, next);
  late.tile = carried[TURN].result;
  for (int i = 0; i < words; ++i) late.words[i] = carried[STATE + i].result;
  o3_gemm_place_t at = tile_place(w, late.tile);
  o3_gemm_store_last(w, c, &at, &late);
}

/* Tiles that are stored before the next one's products begin. */
static void stored_tiles(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c) {
  o3_kernel_text_t *t = w->t;
  o3_kt_carried_t turn[2];
  int first = first_tile(w, c, turn), tile = open_tiles(w, first, w->s->alternate ? 2 : 1, 2, turn);
  int stage[2] = {turn[0].value, turn[1].value}, sums[O3_GEMM_MAX_PRODUCTS];
  o3_gemm_place_t at = tile_place(w, tile);
  if (w->s->split > 1) {
    o3_gemm_stores_t stores;
    o3_gemm_begin_stores(w, c, &at, &stores);
    finish(w, c, products(w, c, o3_kt_i32(t, w->k_blocks), stage, sums), sums);
    o3_gemm_finish_shared(w, c, &stores, sums[0]);
  } else if (w->s->streams) {
    o3_gemm_segment_t segment = segment_of(w, tile);
    shared_tile(w, c, &at, &segment, stage);
  } else {
    own_tile(w, c, &at, tile, stage);
  }
  if (w->s->alternate) skip_tile(w, stage);
  o3_kt_end_for(t, 2, turn, stage);
}

static void consumer(o3_gemm_writer_t *w) {
  o3_kernel_text_t *t = w->t;
  o3_gemm_consumer_t c = begin_consumer(w);
  if (w->s->late_stores)
    late_tiles(w, &c);
  else
    stored_tiles(w, &c);
  if (!w->s->store_by_tensor) return;
  o3_kt_if(t, c.leader);
  o3_kt_line(t, "nvvm.cp.async.bulk.wait_group 0 {read}");
  o3_kt_end(t);
}

static void init_barriers(o3_gemm_writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int base = o3_gemm_barrier_offset(w->s);
  int releases = w->s->alternate ? 1 : w->s->consumers;
  w->full = o3_kt_shared(t, w->shared, o3_kt_i32(t, base));
  w->empty = o3_kt_shared(t, w->shared, o3_kt_i32(t, base + 8 * w->s->stages));
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", w->thread, 0));
  for (int i = 0; i < w->kernel->num_arguments; ++i)
    if (w->kernel->arguments[i].kind == O3_GPU_ARG_TENSOR_MAP) o3_kt_prefetch_map(t, i);
  for (int i = 0; i < w->s->stages; ++i) {
    o3_kt_mbarrier_init(t, barrier_at(w, w->full, o3_kt_i32(t, i)), 1);
    o3_kt_mbarrier_init(t, barrier_at(w, w->empty, o3_kt_i32(t, i)), releases);
  }
  o3_kt_line(t, "nvvm.fence.mbarrier.init");
  o3_kt_end(t);
  o3_kt_line(t, "nvvm.barrier0");
}

static void body(o3_gemm_writer_t *w) {
  o3_kernel_text_t *t = w->t;
  bool moves_registers = w->s->consumers == 2 && w->s->blocks == 1;
  bool wide = w->s->products * w->s->columns > O3_GEMM_MAX_COLUMNS;
  w->shared = o3_kt_value(t, "llvm.mlir.addressof @o3_shared : !llvm.ptr<3>");
  w->thread = o3_kt_thread(t);
  w->block = o3_kt_block(t);
  if (w->s->split > 1) {
    w->rank = o3_kt_op_const(t, "remui", w->block, w->s->split);
    w->block = o3_kt_op_const(t, "divui", w->block, w->s->split);
  }
  o3_kt_start_next(t);
  init_barriers(w);
  load_early(w);
  o3_kt_wait_for_others(t);
  int group = o3_kt_uniform(t, o3_kt_op_const(t, "shrui", w->thread, 7));
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", group, 0));
  if (moves_registers)
    o3_kt_line(t, "nvvm.setmaxregister decrease %d", wide ? FEW_REGISTERS : PRODUCER_REGISTERS);
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", w->thread, 0));
  producer(w);
  o3_kt_end(t);
  if (w->s->split > 1) {
    o3_gemm_cluster_barrier(w);
    o3_gemm_cluster_barrier(w);
  }
  o3_kt_else(t);
  if (moves_registers)
    o3_kt_line(t, "nvvm.setmaxregister increase %d", wide ? MANY_REGISTERS : CONSUMER_REGISTERS);
  consumer(w);
  o3_kt_end(t);
}

static void write_module(o3_kernel_text_t *t, void *context) {
  o3_gemm_writer_t *w = context;
  w->t = t;
  o3_kt_begin_module(t);
  o3_gemm_write_epilogue(t, w->g, w->kernel->name);
  o3_kt_begin_kernel(t, w->kernel, w->s->blocks);
  body(w);
  o3_kt_end_kernel(t);
}

static void set_launch(const o3_gemm_writer_t *w, int multiprocessors, o3_gpu_kernel_t *kernel) {
  int64_t tiles = count_tiles(w);
  int64_t places = (int64_t)multiprocessors * w->s->blocks;
  if (w->s->streams) places = tiles = w->s->streams;
  bool own = w->s->split > 1 || is_told(w->g);
  kernel->grid[0] = (int)(own ? tiles * w->s->split : tiles < places ? tiles : places);
  if (is_told(w->g))
    kernel->rows = (o3_gpu_rows_t){.tile = w->g->rows_at_run_time ? o3_gemm_tile_rows(w->s) : 1,
                                   .most = o3_gemm_most_told(w->g),
                                   .blocks = w->s->split > 1 ? 0 : (int)places};
  kernel->grid[1] = kernel->grid[2] = 1;
  kernel->block = O3_GEMM_WARPGROUP * (1 + w->s->consumers);
  kernel->cluster = w->s->split;
  kernel->shared_bytes = o3_gemm_shared_bytes(w->s);
  kernel->overlaps = true;
}

o3_status_t o3_gemm_build(const o3_gemm_t *gemm, const o3_gemm_schedule_t *schedule, int multiprocessors,
                          o3_gpu_kernel_t *kernel) {
  o3_gemm_writer_t w = {.g = gemm, .s = schedule, .kernel = kernel};
  char stem[96];
  *kernel = (o3_gpu_kernel_t){0};
  w.a_bytes = o3_gemm_tile_rows(schedule) * O3_GEMM_ROW_BYTES;
  w.b_bytes = schedule->columns * O3_GEMM_ROW_BYTES;
  w.k_blocks = ceil_div(o3_gemm_steps(gemm), schedule->split);
  set_launch(&w, multiprocessors, kernel);
  o3_gemm_add_arguments(gemm, schedule, kernel);
  snprintf(stem, sizeof(stem), "o3k_%s_%s_%dx%dx%d__sm90a", o3_gpu_element_info(gemm->element)->ptx,
           gemm->window ? "conv" : "gemm", o3_gemm_tile_rows(schedule), schedule->columns,
           o3_gemm_block_k(gemm));
  return o3_kt_write(kernel, stem, write_module, &w);
}
