/* One pass over a tile: the producer (warp 0 of warpgroup 0) waits for an empty stage and asks TMA for a
 * block of A and B; consumers wait for a full one, issue its products, and hand back the stage of the
 * products before these, so that the tensor cores always have work queued. With |split| the blocks of a
 * cluster take turns of k: each leaves its sums in its shared memory in the order of the registers, and
 * finishes a part of the columns with what it reads from the others.
 *
 * Shared memory: [A of each stage][B of each stage][staging of D][barriers full, empty]. */
#include "target/nvptx/gemm_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/nvptx/product_text.h"

enum {
  BLOCK_K = 64,    /* elements of k a stage: rows of 128 bytes, the widest swizzle */
  WARPGROUP = 128, /* threads */
  ROWS = 64,       /* of a warpgroup's product */
  ROW_BYTES = 128, /* of a swizzled row */
  STAGING_BYTES = ROWS * ROW_BYTES,
  PRODUCER_REGISTERS = 40,
  CONSUMER_REGISTERS = 232,
  MAX_COLUMNS = 256
};

typedef struct writer {
  o3_kernel_text_t *t;
  const o3_gemm_t *g;
  const o3_gemm_schedule_t *s;
  const o3_gpu_kernel_t *kernel;
  int a_bytes, b_bytes; /* of a stage */
  int row_tiles, column_tiles, k_blocks;
  int shared, full, empty; /* pointers */
  int thread, block, rank; /* rank: in the cluster */
} writer_t;

static int ceil_div(int64_t a, int64_t b) { return (int)((a + b - 1) / b); }

static int64_t count_batches(const o3_gemm_t *g) { return g->batch[0] * g->batch[1]; }

/* ---- Layout ---- */

static int stage_bytes(const o3_gemm_schedule_t *s) { return (s->consumers * ROWS + s->columns) * ROW_BYTES; }

static int partial_bytes(const o3_gemm_schedule_t *s) {
  return s->split > 1 ? s->consumers * ROWS * s->columns * 4 : 0;
}

static int ring_bytes(const o3_gemm_schedule_t *s) {
  int ring = s->stages * stage_bytes(s), partial = partial_bytes(s);
  return ring > partial ? ring : partial;
}

static int staging_bytes(const o3_gemm_schedule_t *s) {
  return s->store_by_tensor ? s->consumers * 2 * STAGING_BYTES : 0;
}

static int shared_bytes(const o3_gemm_schedule_t *s) {
  return ring_bytes(s) + staging_bytes(s) + 2 * s->stages * 8;
}

/* ---- Tiles ---- */

static o3_gemm_place_t tile_place(writer_t *w, int tile) {
  const o3_gemm_tiling_t tiling = {w->s->consumers * ROWS, w->s->columns, w->s->group_rows};
  return o3_gemm_tile_place(w->t, w->g, &tiling, tile);
}

static int open_tiles(writer_t *w, o3_kt_carried_t turn[2]) {
  o3_kernel_text_t *t = w->t;
  int tiles = o3_kt_i32(t, (int64_t)w->row_tiles * w->column_tiles * count_batches(w->g));
  int step = o3_kt_i32(t, w->kernel->grid[0] / w->s->split), zero = o3_kt_i32(t, 0);
  for (int i = 0; i < 2; ++i) turn[i] = (o3_kt_carried_t){.init = zero, .type = "i32"};
  return o3_kt_for(t, w->block, tiles, step, 2, turn);
}

/* The stage after turn[0] and the parity of its turn after turn[1]. */
static void next_stage(writer_t *w, int stage, int parity, int next[2]) {
  o3_kernel_text_t *t = w->t;
  int up = o3_kt_op_const(t, "addi", stage, 1);
  int wraps = o3_kt_cmp_const(t, "eq", up, w->s->stages);
  next[0] = o3_kt_select(t, wraps, o3_kt_i32(t, 0), up, "i32");
  next[1] = o3_kt_select(t, wraps, o3_kt_op_const(t, "xori", parity, 1), parity, "i32");
}

static int barrier_at(writer_t *w, int barriers, int stage) {
  return o3_kt_shared(w->t, barriers, o3_kt_op_const(w->t, "muli", stage, 8));
}

/* ---- The producer ---- */

/* The stage that is filled: where, and what counts its bytes. */
typedef struct filled {
  int a, b, full;
} filled_t;

static filled_t begin_fill(writer_t *w, int stage) {
  o3_kernel_text_t *t = w->t;
  int b_at = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", stage, w->b_bytes),
                            (int64_t)w->s->stages * w->a_bytes);
  filled_t f = {.a = o3_kt_shared(t, w->shared, o3_kt_op_const(t, "muli", stage, w->a_bytes)),
                .b = b_at,
                .full = barrier_at(w, w->full, stage)};
  o3_kt_mbarrier_expect(t, f.full, w->a_bytes + w->b_bytes);
  return f;
}

/* Rows of B from |k|, in panels of 64 columns. */
static void load_panels(writer_t *w, const filled_t *f, int column, int k, const int batch[2]) {
  o3_kernel_text_t *t = w->t;
  for (int panel = 0; panel < w->s->columns / 64; ++panel) {
    int to = o3_kt_shared(t, w->shared, o3_kt_op_const(t, "addi", f->b, panel * BLOCK_K * ROW_BYTES));
    o3_kt_tensor_load(t, to, "%map1", f->full, 4,
                      (int[]){o3_kt_op_const(t, "addi", column, panel * 64), k, batch[1], batch[0]});
  }
}

static void load_stage(writer_t *w, const o3_gemm_place_t *at, int step, int stage) {
  o3_kernel_text_t *t = w->t;
  int zero = o3_kt_i32(t, 0), k = o3_kt_op_const(t, "muli", step, BLOCK_K);
  filled_t f = begin_fill(w, stage);
  int a_batch[2], b_batch[2];
  for (int i = 0; i < 2; ++i) {
    a_batch[i] = w->g->a_batch[i] ? at->batch[i] : zero;
    b_batch[i] = w->g->b_batch[i] ? at->batch[i] : zero;
  }
  o3_kt_tensor_load(t, f.a, "%map0", f.full, 4, (int[]){k, at->row, a_batch[1], a_batch[0]});
  if (w->g->b_by_rows)
    load_panels(w, &f, at->column, k, b_batch);
  else
    o3_kt_tensor_load(t, o3_kt_shared(t, w->shared, f.b), "%map1", f.full, 4,
                      (int[]){k, at->column, b_batch[1], b_batch[0]});
}

/* x, y and image of the window of |row|: where its first tap is. */
static void window_place(writer_t *w, int row, int place[3]) {
  o3_kernel_text_t *t = w->t;
  const o3_gemm_window_t *window = w->g->window;
  int rest = row;
  for (int i = 0; i < 2; ++i) {
    int at = o3_kt_op_const(t, "remui", rest, window->outputs[i]);
    rest = o3_kt_op_const(t, "divui", rest, window->outputs[i]);
    place[i] = o3_kt_op_const(t, "subi", o3_kt_op_const(t, "muli", at, window->steps[i]), window->lows[i]);
  }
  place[2] = rest;
}

/* Steps walk the channels of a tap, then the taps along x, then along y. Those behind the last, which blocks
 * of a cluster may have, read zeros: channels that are not there. */
static void load_windows(writer_t *w, const int place[3], int column, int step, int stage) {
  o3_kernel_text_t *t = w->t;
  const o3_gemm_window_t *window = w->g->window;
  int blocks = ceil_div(window->channels, BLOCK_K), offsets[2];
  int tap = o3_kt_op_const(t, "divui", step, blocks);
  int channel = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "remui", step, blocks), BLOCK_K);
  int taps[2] = {o3_kt_op_const(t, "remui", tap, window->taps[0]),
                 o3_kt_op_const(t, "divui", tap, window->taps[0])};
  int64_t steps = o3_gemm_steps(w->g);
  if (steps % w->s->split)
    channel = o3_kt_select(t, o3_kt_cmp_const(t, "slt", step, steps), channel,
                           o3_kt_i32(t, (int64_t)blocks * BLOCK_K), "i32");
  for (int i = 0; i < 2; ++i)
    offsets[i] = o3_kt_value(t, "arith.trunci %%v%d : i32 to i16",
                             o3_kt_op_const(t, "muli", taps[i], window->dilations[i]));
  filled_t f = begin_fill(w, stage);
  o3_kt_window_load(t, f.a, "%map0", f.full, (int[]){channel, place[0], place[1], place[2]}, offsets);
  load_panels(w, &f, column, channel, (int[]){o3_kt_i32(t, 0), tap});
}

static void producer(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  o3_kt_carried_t turn[2], inner[2];
  int next[2];
  o3_gemm_place_t at = tile_place(w, open_tiles(w, turn));
  int first = w->s->split > 1 ? o3_kt_op_const(t, "muli", w->rank, w->k_blocks) : o3_kt_i32(t, 0);
  int place[3];
  if (w->g->window) window_place(w, at.row, place);
  for (int i = 0; i < 2; ++i) inner[i] = (o3_kt_carried_t){.init = turn[i].value, .type = "i32"};
  int zero = o3_kt_i32(t, 0), blocks = o3_kt_i32(t, w->k_blocks), one = o3_kt_i32(t, 1);
  int k = o3_kt_for(t, zero, blocks, one, 2, inner), stage = inner[0].value, parity = inner[1].value;
  o3_kt_mbarrier_wait(t, barrier_at(w, w->empty, stage), o3_kt_op_const(t, "xori", parity, 1));
  int step = o3_kt_op(t, "addi", first, k);
  if (w->g->window)
    load_windows(w, place, at.column, step, stage);
  else
    load_stage(w, &at, step, stage);
  next_stage(w, stage, parity, next);
  o3_kt_end_for(t, 2, inner, next);
  o3_kt_end_for(t, 2, turn, (int[]){inner[0].result, inner[1].result});
}

/* ---- Consumers: products ---- */

typedef struct consumer {
  int number;          /* of the warpgroup among the consumers */
  int thread;          /* in the warpgroup */
  int row, pair;       /* of a tile's rows: that of the thread's first sums; of 8 columns: that of its pair */
  int leader;          /* condition: thread 0 */
  int id;              /* of the warpgroup's barrier */
  int staging;         /* pointer */
  int stage_addresses; /* of A's first stage for this warpgroup, shifted by 4 */
  int b_addresses;
} consumer_t;

static int multiply(writer_t *w, const consumer_t *c, int stage, int sums) {
  o3_kernel_text_t *t = w->t;
  o3_wgmma_t m = {.element = w->g->element,
                  .n = w->s->columns,
                  .steps = BLOCK_K / 16,
                  .b_by_rows = w->g->b_by_rows,
                  .b_panel = BLOCK_K * ROW_BYTES,
                  .accumulate = sums >= 0};
  int a = o3_kt_op(t, "addi", c->stage_addresses, o3_kt_op_const(t, "muli", stage, w->a_bytes / 16));
  int b = o3_kt_op(t, "addi", c->b_addresses, o3_kt_op_const(t, "muli", stage, w->b_bytes / 16));
  return o3_kt_wgmma(t, &m, a, b, sums);
}

static void release(writer_t *w, const consumer_t *c, int stage) {
  int barrier = barrier_at(w, w->empty, stage);
  o3_kt_if(w->t, c->leader);
  o3_kt_mbarrier_arrive(w->t, barrier);
  o3_kt_end(w->t);
}

/* All products of a tile, from the stage and parity of |turn|, which it moves on: a struct of sums. */
static int products(writer_t *w, const consumer_t *c, int turn[2]) {
  o3_kernel_text_t *t = w->t;
  char type[24];
  int next[4];
  snprintf(type, sizeof(type), "!sums%d", w->s->columns / 2);
  o3_kt_mbarrier_wait(t, barrier_at(w, w->full, turn[0]), turn[1]);
  int first = multiply(w, c, turn[0], -1);
  next_stage(w, turn[0], turn[1], next);
  o3_kt_carried_t carried[] = {{.init = first, .type = type},
                               {.init = next[0], .type = "i32"},
                               {.init = next[1], .type = "i32"},
                               {.init = turn[0], .type = "i32"}};
  int one = o3_kt_i32(t, 1), blocks = o3_kt_i32(t, w->k_blocks);
  o3_kt_for(t, one, blocks, one, 4, carried);
  int stage = carried[1].value;
  o3_kt_mbarrier_wait(t, barrier_at(w, w->full, stage), carried[2].value);
  next[0] = multiply(w, c, stage, carried[0].value);
  o3_kt_wgmma_wait(t, 1);
  release(w, c, carried[3].value);
  next_stage(w, stage, carried[2].value, &next[1]);
  next[3] = stage;
  o3_kt_end_for(t, 4, carried, next);
  turn[0] = carried[1].result, turn[1] = carried[2].result;
  int sums = o3_kt_wgmma_finish(t, &(o3_wgmma_finish_t){.count = w->s->columns / 2}, carried[0].result);
  release(w, c, carried[3].result);
  return sums;
}

/* ---- Consumers: the epilogue ---- */

/* What the epilogue works on: |pieces| of 8 columns from |column|, the sums of each 4 values: the thread's
 * pair in its row, then that 8 rows below. */
typedef struct part {
  o3_gemm_place_t at;
  int column; /* value: the first, of D */
  int pieces;
  const int *sums;
} part_t;

/* Reads behind the end are of the last row or pair. */
static int clamped(writer_t *w, int at, int64_t size, int64_t tile, int last) {
  return size % tile ? o3_kt_op_const(w->t, "minsi", at, size - last) : at;
}

/* For the thread's pair of D in its row (half 0) or 8 rows below (1). */
static void load_pair(writer_t *w, const consumer_t *c, const part_t *p, int piece, int half,
                      o3_gemm_pair_extras_t *extras) {
  o3_kernel_text_t *t = w->t;
  if (!w->g->num_extras) return;
  int row = o3_kt_op(t, "addi", p->at.row, o3_kt_op_const(t, "addi", c->row, half * 8));
  int column = o3_kt_op(t, "addi", p->column, o3_kt_op_const(t, "addi", c->pair, piece * 8));
  row = clamped(w, row, w->g->m, w->s->consumers * ROWS, 1);
  column = clamped(w, column, w->g->n, w->s->columns, 2);
  o3_gemm_load_extras(t, w->g, (int[]){p->at.batch[0], p->at.batch[1], row, column}, extras);
}

/* The pair, as vector<2 x out>. */
static int finish_pair(writer_t *w, const part_t *p, int piece, int half, o3_gemm_pair_extras_t *extras) {
  o3_kernel_text_t *t = w->t;
  int values[2];
  o3_gemm_finish_pair(t, w->g, w->kernel->name, &p->sums[4 * piece + 2 * half], extras, values);
  return o3_kt_value(t, "vector.from_elements %%v%d, %%v%d : vector<2x%s>", values[0], values[1],
                     o3_gemm_type(w->g->out));
}

/* ---- Consumers: stores ---- */

static void store_pair(writer_t *w, const consumer_t *c, const part_t *p, int piece, int half, int pair) {
  o3_kernel_text_t *t = w->t;
  int row = o3_kt_op(t, "addi", p->at.row, o3_kt_op_const(t, "addi", c->row, half * 8));
  int column = o3_kt_op(t, "addi", p->column, o3_kt_op_const(t, "addi", c->pair, piece * 8));
  bool ragged = w->g->m % (w->s->consumers * ROWS) || w->g->n % w->s->columns;
  if (ragged) {
    int in_row = o3_kt_cmp_const(t, "slt", row, w->g->m),
        in_column = o3_kt_cmp_const(t, "slt", column, w->g->n);
    o3_kt_if(t, o3_kt_value(t, "arith.andi %%v%d, %%v%d : i1", in_row, in_column));
  }
  const int64_t strides[O3_GEMM_DIMS] = {w->g->d_batch[0], w->g->d_batch[1], w->g->d_pitch, 1};
  int index = o3_gemm_element_index(t, strides, (int[]){p->at.batch[0], p->at.batch[1], row, column});
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8",
                         2 + w->g->num_extras);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = %d : i64} : vector<2x%s>, !llvm.ptr<1>", pair,
             o3_kt_global(t, base, index, o3_gemm_type(w->g->out)), 2 * o3_gpu_element_info(w->g->out)->bytes,
             o3_gemm_type(w->g->out));
  if (ragged) o3_kt_end(t);
}

static void store_part(writer_t *w, const consumer_t *c, const part_t *p) {
  for (int piece = 0; piece < p->pieces; ++piece) {
    for (int half = 0; half < 2; ++half) {
      o3_gemm_pair_extras_t extras;
      load_pair(w, c, p, piece, half, &extras);
      store_pair(w, c, p, piece, half, finish_pair(w, p, piece, half, &extras));
    }
  }
}

/* Where stmatrix puts the row of this lane: of the matrices (upper, lower half) x (piece, next piece). */
static int staged_row(writer_t *w, const consumer_t *c, int staging, int piece) {
  o3_kernel_text_t *t = w->t;
  int lane = o3_kt_op_const(t, "andi", c->thread, 31), warp = o3_kt_op_const(t, "shrui", c->thread, 5);
  int row = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", warp, 16), o3_kt_op_const(t, "andi", lane, 15));
  int chunk = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "shrui", lane, 4), piece);
  int swizzled = o3_kt_op(t, "xori", chunk, o3_kt_op_const(t, "andi", lane, 7));
  int at =
      o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", row, ROW_BYTES), o3_kt_op_const(t, "muli", swizzled, 16));
  return o3_kt_shared(t, staging, at);
}

/* A panel of 64 columns: 8 pieces in two halves. */
enum { PANEL_PAIRS = 16 };

static void load_panel(writer_t *w, const consumer_t *c, const part_t *p, int panel,
                       o3_gemm_pair_extras_t *extras) {
  for (int i = 0; i < PANEL_PAIRS; ++i) load_pair(w, c, p, panel * 8 + i / 2, i % 2, &extras[i]);
}

/* Through shared memory, of which there are two buffers. */
static void store_panel(writer_t *w, const consumer_t *c, const part_t *p, int panel,
                        o3_gemm_pair_extras_t *extras) {
  o3_kernel_text_t *t = w->t;
  int words[PANEL_PAIRS], staging = o3_kt_shared(t, c->staging, o3_kt_i32(t, panel % 2 * STAGING_BYTES));
  for (int i = 0; i < PANEL_PAIRS; ++i) {
    int pair = finish_pair(w, p, panel * 8 + i / 2, i % 2, &extras[i]);
    words[i] = o3_kt_value(t, "llvm.bitcast %%v%d : vector<2x%s> to i32", pair, o3_gemm_type(w->g->out));
  }
  int panels = p->pieces / 8, running = panel == 0 && panels % 2 ? 0 : 1; /* that do not read this buffer */
  o3_kt_if(t, c->leader);
  o3_kt_line(t, "nvvm.cp.async.bulk.wait_group %d {read}", running);
  o3_kt_end(t);
  o3_kt_barrier(t, c->id, WARPGROUP);
  for (int i = 0; i < 4; ++i)
    o3_kt_line(t,
               "nvvm.stmatrix %%v%d, %%v%d, %%v%d, %%v%d, %%v%d {layout = #nvvm.mma_layout<row>, eltType = "
               "#nvvm.ld_st_matrix_elt_type<b16>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : "
               "!llvm.ptr<3>, i32, i32, i32, i32",
               staged_row(w, c, staging, 2 * i), words[4 * i], words[4 * i + 1], words[4 * i + 2],
               words[4 * i + 3]);
  o3_kt_line(t, "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}");
  o3_kt_barrier(t, c->id, WARPGROUP);
  o3_kt_if(t, c->leader);
  char map[16];
  snprintf(map, sizeof(map), "%%map%d", 2 + w->g->num_extras);
  int row = o3_kt_op(t, "addi", p->at.row, o3_kt_op_const(t, "muli", c->number, ROWS));
  o3_kt_tensor_store(
      t, map, staging, 4,
      (int[]){o3_kt_op_const(t, "addi", p->column, panel * 64), row, p->at.batch[1], p->at.batch[0]});
  o3_kt_line(t, "nvvm.cp.async.bulk.commit.group");
  o3_kt_end(t);
}

/* What the next panel's epilogue reads is asked for before a panel is stored; |extras|: the first one's. */
static void store_panels(writer_t *w, const consumer_t *c, const part_t *p,
                         const o3_gemm_pair_extras_t *extras) {
  o3_gemm_pair_extras_t now[PANEL_PAIRS], next[PANEL_PAIRS];
  int panels = p->pieces / 8;
  memcpy(now, extras, sizeof(now));
  for (int panel = 0; panel < panels; ++panel) {
    bool last = panel + 1 == panels;
    if (!last) load_panel(w, c, p, panel + 1, next);
    store_panel(w, c, p, panel, now);
    if (!last) memcpy(now, next, sizeof(now));
  }
}

/* ---- Consumers: sums shared by a cluster ---- */

/* The barrier counts warps, so each comes to it as a whole. */
static void cluster_barrier(writer_t *w) {
  o3_kt_line(w->t, "nvvm.bar.warp.sync %%v%d : i32", o3_kt_i32(w->t, -1));
  o3_kt_line(w->t, "nvvm.cluster.arrive {aligned}\nnvvm.cluster.wait {aligned}");
}

/* The place of four sums: piece |piece| (a value) of this thread. */
static int partial_offset(writer_t *w, const consumer_t *c, int piece) {
  o3_kernel_text_t *t = w->t;
  int pieces = w->s->columns / 8;
  int at = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", c->number, pieces), piece);
  at = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", at, WARPGROUP), c->thread);
  return o3_kt_op_const(t, "muli", at, 16);
}

static void leave_sums(writer_t *w, const consumer_t *c, int sums) {
  o3_kernel_text_t *t = w->t;
  int count = w->s->columns / 2;
  o3_kt_barrier(t, o3_kt_i32(t, 1 + w->s->consumers), WARPGROUP * w->s->consumers);
  for (int piece = 0; piece < count / 4; ++piece) {
    int four[4], at = o3_kt_shared(t, w->shared, partial_offset(w, c, o3_kt_i32(t, piece)));
    for (int i = 0; i < 4; ++i) four[i] = o3_kt_member(t, count, sums, 4 * piece + i);
    int vector = o3_kt_value(t, "vector.from_elements %%v%d, %%v%d, %%v%d, %%v%d : vector<4xf32>", four[0],
                             four[1], four[2], four[3]);
    o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>", vector, at);
  }
}

/* Four sums over the blocks of the cluster. */
static void gather_sums(writer_t *w, const consumer_t *c, int piece, int four[4]) {
  o3_kernel_text_t *t = w->t;
  int at = o3_kt_shared(t, w->shared, partial_offset(w, c, piece)), total = -1;
  for (int block = 0; block < w->s->split; ++block) {
    int there =
        o3_kt_value(t, "nvvm.mapa %%v%d, %%v%d : !llvm.ptr<3> -> !llvm.ptr<7>", at, o3_kt_i32(t, block));
    int one = o3_kt_value(t, "llvm.load %%v%d {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xf32>", there);
    total = block ? o3_kt_value(t, "arith.addf %%v%d, %%v%d : vector<4xf32>", total, one) : one;
  }
  for (int i = 0; i < 4; ++i)
    four[i] = o3_kt_value(t, "vector.extract %%v%d[%d] : f32 from vector<4xf32>", total, i);
}

/* Each block of the cluster finishes a part of the columns. */
static void finish_shared(writer_t *w, const consumer_t *c, const o3_gemm_place_t *at, int sums) {
  o3_kernel_text_t *t = w->t;
  int values[MAX_COLUMNS / 2], pieces = w->s->columns / 8 / w->s->split;
  leave_sums(w, c, sums);
  cluster_barrier(w);
  int first = o3_kt_op_const(t, "muli", w->rank, pieces);
  for (int i = 0; i < pieces; ++i) gather_sums(w, c, o3_kt_op_const(t, "addi", first, i), &values[4 * i]);
  int column = o3_kt_op(t, "addi", at->column, o3_kt_op_const(t, "muli", first, 8));
  store_part(w, c, &(part_t){*at, column, pieces, values});
  cluster_barrier(w);
}

/* A tile that this block alone sums: what the first panel's epilogue reads is asked for before the products.
 */
static void own_tile(writer_t *w, const consumer_t *c, const o3_gemm_place_t *at, int stage[2]) {
  int values[MAX_COLUMNS / 2] = {0}, count = w->s->columns / 2;
  o3_gemm_pair_extras_t extras[PANEL_PAIRS] = {0};
  const part_t part = {*at, at->column, count / 4, values};
  if (w->s->store_by_tensor) load_panel(w, c, &part, 0, extras);
  int sums = products(w, c, stage);
  for (int i = 0; i < count; ++i) values[i] = o3_kt_member(w->t, count, sums, i);
  if (w->s->store_by_tensor)
    store_panels(w, c, &part, extras);
  else
    store_part(w, c, &part);
}

/* ---- Roles ---- */

static consumer_t begin_consumer(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  consumer_t c;
  int group = o3_kt_uniform(t, o3_kt_op_const(t, "shrui", w->thread, 7));
  c.number = o3_kt_op_const(t, "subi", group, 1);
  c.thread = o3_kt_op_const(t, "andi", w->thread, WARPGROUP - 1);
  c.leader = o3_kt_cmp_const(t, "eq", c.thread, 0);
  c.id = group;
  int lane = o3_kt_op_const(t, "andi", c.thread, 31), warp = o3_kt_op_const(t, "shrui", c.thread, 5);
  int row = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", warp, 16), o3_kt_op_const(t, "shrui", lane, 2));
  c.row = o3_kt_op(t, "addi", row, o3_kt_op_const(t, "muli", c.number, ROWS));
  c.pair = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "andi", lane, 3), 2);
  /* In a cluster the address has the block's number in its upper bits, which a descriptor has other uses for.
   */
  int base = o3_kt_op_const(t, "andi", o3_kt_op_const(t, "shrui", o3_kt_address(t, w->shared), 4), 0x3fff);
  c.stage_addresses = o3_kt_op(t, "addi", base, o3_kt_op_const(t, "muli", c.number, ROWS * ROW_BYTES / 16));
  c.b_addresses = o3_kt_op_const(t, "addi", base, (int64_t)w->s->stages * w->a_bytes / 16);
  int staging =
      o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", c.number, 2 * STAGING_BYTES), ring_bytes(w->s));
  c.staging = o3_kt_shared(t, w->shared, staging);
  return c;
}

static void consumer(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  o3_kt_carried_t turn[2];
  consumer_t c = begin_consumer(w);
  int tile = open_tiles(w, turn), stage[2] = {turn[0].value, turn[1].value};
  o3_gemm_place_t at = tile_place(w, tile);
  if (w->s->split > 1)
    finish_shared(w, &c, &at, products(w, &c, stage));
  else
    own_tile(w, &c, &at, stage);
  o3_kt_end_for(t, 2, turn, stage);
  if (!w->s->store_by_tensor) return;
  o3_kt_if(t, c.leader);
  o3_kt_line(t, "nvvm.cp.async.bulk.wait_group 0 {read}");
  o3_kt_end(t);
}

static void init_barriers(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int base = ring_bytes(w->s) + staging_bytes(w->s);
  w->full = o3_kt_shared(t, w->shared, o3_kt_i32(t, base));
  w->empty = o3_kt_shared(t, w->shared, o3_kt_i32(t, base + 8 * w->s->stages));
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", w->thread, 0));
  for (int i = 0; i < w->s->stages; ++i) {
    o3_kt_mbarrier_init(t, barrier_at(w, w->full, o3_kt_i32(t, i)), 1);
    o3_kt_mbarrier_init(t, barrier_at(w, w->empty, o3_kt_i32(t, i)), w->s->consumers);
  }
  o3_kt_line(t, "nvvm.fence.mbarrier.init");
  o3_kt_end(t);
  o3_kt_line(t, "nvvm.barrier0");
}

static void body(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  bool moves_registers = w->s->consumers == 2 && w->s->blocks == 1;
  w->shared = o3_kt_value(t, "llvm.mlir.addressof @o3_shared : !llvm.ptr<3>");
  w->thread = o3_kt_thread(t);
  w->block = o3_kt_block(t);
  if (w->s->split > 1) {
    w->rank = o3_kt_op_const(t, "remui", w->block, w->s->split);
    w->block = o3_kt_op_const(t, "divui", w->block, w->s->split);
  }
  init_barriers(w);
  o3_kt_line(t, "nvvm.griddepcontrol wait\nnvvm.griddepcontrol launch_dependents");
  int group = o3_kt_uniform(t, o3_kt_op_const(t, "shrui", w->thread, 7));
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", group, 0));
  if (moves_registers) o3_kt_line(t, "nvvm.setmaxregister decrease %d", PRODUCER_REGISTERS);
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", w->thread, 0));
  producer(w);
  o3_kt_end(t);
  if (w->s->split > 1) {
    cluster_barrier(w);
    cluster_barrier(w);
  }
  o3_kt_else(t);
  if (moves_registers) o3_kt_line(t, "nvvm.setmaxregister increase %d", CONSUMER_REGISTERS);
  consumer(w);
  o3_kt_end(t);
}

/* ---- Launches ---- */

/* Where the last window begins, from the last position of the image. */
static int64_t last_corner(const o3_gemm_window_t *w, int i) {
  return (w->outputs[i] - 1) * w->steps[i] - w->lows[i] - (w->sizes[i] - 1);
}

static o3_gpu_tensor_map_t matrix_map(const o3_gemm_t *g, o3_gpu_element_t element, const int64_t sizes[2],
                                      int64_t pitch, const int64_t batch[2]) {
  int64_t bytes = o3_gpu_element_info(element)->bytes;
  o3_gpu_tensor_map_t map = {
      .element = element,
      .rank = 4,
      .sizes = {sizes[0], sizes[1], 1, 1},
      .strides = {0, pitch * bytes, sizes[1] * pitch * bytes, sizes[1] * pitch * bytes},
      .swizzle = ROW_BYTES};
  for (int i = 0; i < 2; ++i) {
    if (!batch[i]) continue;
    map.sizes[3 - i] = g->batch[i];
    map.strides[3 - i] = batch[i] * bytes;
  }
  return map;
}

static void add_map(o3_gpu_kernel_t *kernel, int buffer, o3_gpu_tensor_map_t map, int columns, int rows) {
  map.box[0] = columns;
  map.box[1] = rows;
  map.box[2] = map.box[3] = 1;
  o3_gpu_kernel_add_map(kernel, buffer, &map);
}

static void add_windows(const o3_gemm_t *g, const o3_gemm_schedule_t *s, o3_gpu_kernel_t *kernel) {
  const o3_gemm_window_t *w = g->window;
  int64_t bytes = o3_gpu_element_info(g->element)->bytes;
  o3_gpu_tensor_map_t map = {.element = g->element,
                             .rank = 4,
                             .sizes = {w->channels},
                             .box = {BLOCK_K, s->consumers * ROWS},
                             .swizzle = ROW_BYTES,
                             .windows = true};
  for (int i = 0; i < 3; ++i) {
    map.sizes[1 + i] = w->sizes[i];
    map.strides[1 + i] = w->strides[i] * bytes;
  }
  for (int i = 0; i < 2; ++i) {
    map.lows[i] = (int32_t)-w->lows[i];
    map.highs[i] = (int32_t)last_corner(w, i);
    map.steps[i] = (int32_t)w->steps[i];
  }
  o3_gpu_kernel_add_map(kernel, 0, &map);
  const int64_t taps[2] = {0, w->channels * g->b_pitch};
  o3_gpu_tensor_map_t weights = matrix_map(g, g->element, (int64_t[]){g->n, w->channels}, g->b_pitch, taps);
  weights.sizes[2] = w->taps[0] * w->taps[1];
  add_map(kernel, 1, weights, 64, BLOCK_K);
}

static void add_factors(const o3_gemm_t *g, const o3_gemm_schedule_t *s, o3_gpu_kernel_t *kernel) {
  if (g->window) {
    add_windows(g, s, kernel);
    return;
  }
  add_map(kernel, 0, matrix_map(g, g->element, (int64_t[]){g->k, g->m}, g->a_pitch, g->a_batch), BLOCK_K,
          s->consumers * ROWS);
  if (g->b_by_rows) {
    add_map(kernel, 1, matrix_map(g, g->element, (int64_t[]){g->n, g->k}, g->b_pitch, g->b_batch), 64,
            BLOCK_K);
  } else {
    add_map(kernel, 1, matrix_map(g, g->element, (int64_t[]){g->k, g->n}, g->b_pitch, g->b_batch), BLOCK_K,
            s->columns);
  }
}

static void add_arguments(const o3_gemm_t *g, const o3_gemm_schedule_t *s, o3_gpu_kernel_t *kernel) {
  int out = 2 + g->num_extras;
  add_factors(g, s, kernel);
  for (int i = 0; i < g->num_extras; ++i) o3_gpu_kernel_add_pointer(kernel, 2 + i);
  if (s->store_by_tensor) {
    add_map(kernel, out, matrix_map(g, g->out, (int64_t[]){g->n, g->m}, g->d_pitch, g->d_batch), 64, ROWS);
  } else {
    o3_gpu_kernel_add_pointer(kernel, out);
  }
}

static void write_module(o3_kernel_text_t *t, void *context) {
  writer_t *w = context;
  w->t = t;
  o3_kt_begin_module(t);
  o3_gemm_write_epilogue(t, w->g, w->kernel->name);
  o3_kt_begin_kernel(t, w->kernel, w->s->blocks);
  body(w);
  o3_kt_end_kernel(t);
}

/* The limits of im2col maps of two spatial dimensions. */
static const char *refuse_window(const o3_gemm_window_t *w) {
  enum { CORNER = 127, STEP = 8, OFFSET = 255, ALIGNMENT = 8 };
  if (w->channels % ALIGNMENT) return "the channels are no multiple of 8";
  for (int i = 0; i < 3; ++i) {
    if (w->strides[i] % ALIGNMENT || w->strides[i] < 1)
      return "a position of the image is at an address that TMA does not take";
  }
  for (int i = 0; i < 2; ++i) {
    int64_t last = last_corner(w, i);
    if (w->lows[i] < 0 || w->lows[i] > CORNER || last > CORNER || last < -CORNER)
      return "the windows reach too far beyond the image, or end too far before its end";
    if (w->steps[i] > STEP || (w->taps[i] - 1) * w->dilations[i] > OFFSET)
      return "the steps or the taps of a window are too far apart";
  }
  return NULL;
}

const char *o3_gemm_refuse(const o3_gemm_t *g) {
  enum { ALIGNMENT = 8 };
  if (g->window) {
    const char *why = refuse_window(g->window);
    if (why) return why;
  }
  if (g->element == O3_GPU_F32) return "the warpgroup product takes f16 and bf16";
  if (g->n % ALIGNMENT || g->k % ALIGNMENT) return "the sizes n and k are no multiples of 8";
  if ((!g->window && g->a_pitch % ALIGNMENT) || g->b_pitch % ALIGNMENT || g->d_pitch % ALIGNMENT)
    return "a row starts at an address that TMA does not take";
  for (int i = 0; i < 2; ++i) {
    if (g->a_batch[i] % ALIGNMENT || g->b_batch[i] % ALIGNMENT || g->d_batch[i] % ALIGNMENT)
      return "a matrix starts at an address that TMA does not take";
  }
  if (g->m < 1 || g->n < 1 || g->k < 1 || count_batches(g) < 1) return "a size is zero";
  if (count_batches(g) * g->m * g->n > INT32_MAX) return "the result has more than 2^31 elements";
  return NULL;
}

static void set_launch(const writer_t *w, int multiprocessors, o3_gpu_kernel_t *kernel) {
  int64_t tiles = (int64_t)w->row_tiles * w->column_tiles * count_batches(w->g);
  int64_t places = (int64_t)multiprocessors * w->s->blocks;
  kernel->grid[0] = (int)(w->s->split > 1 ? tiles * w->s->split : tiles < places ? tiles : places);
  kernel->grid[1] = kernel->grid[2] = 1;
  kernel->block = WARPGROUP * (1 + w->s->consumers);
  kernel->cluster = w->s->split;
  kernel->shared_bytes = shared_bytes(w->s);
  kernel->overlaps = true;
}

o3_status_t o3_gemm_build(const o3_gemm_t *gemm, const o3_gemm_schedule_t *schedule, int multiprocessors,
                          o3_gpu_kernel_t *kernel) {
  writer_t w = {.g = gemm, .s = schedule, .kernel = kernel};
  char stem[96];
  *kernel = (o3_gpu_kernel_t){0};
  w.a_bytes = schedule->consumers * ROWS * ROW_BYTES;
  w.b_bytes = schedule->columns * ROW_BYTES;
  w.row_tiles = ceil_div(gemm->m, schedule->consumers * ROWS);
  w.column_tiles = ceil_div(gemm->n, schedule->columns);
  w.k_blocks = ceil_div(o3_gemm_steps(gemm), schedule->split);
  set_launch(&w, multiprocessors, kernel);
  add_arguments(gemm, schedule, kernel);
  snprintf(stem, sizeof(stem), "o3k_%s_%s_%dx%dx%d__sm90a", o3_gemm_type(gemm->element),
           gemm->window ? "conv" : "gemm", schedule->consumers * ROWS, schedule->columns, BLOCK_K);
  return o3_kt_write(kernel, stem, write_module, &w);
}
