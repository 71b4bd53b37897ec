/* What becomes of the sums, which lie in registers as wgmma leaves them: a thread has pairs of neighbours in
 * a row, and the same 8 rows below. */
#include <stdio.h>
#include <string.h>

#include "target/nvptx/gemm_writer.h"

/* Reads behind the end are of the last row or pair. */
static int clamped(o3_gemm_writer_t *w, int at, int64_t size, int64_t tile, int last) {
  return size % tile ? o3_kt_op_const(w->t, "minsi", at, size - last) : at;
}

static int clamped_row(o3_gemm_writer_t *w, const o3_gemm_part_t *p, int row) {
  if (!w->g->rows_at_run_time) return clamped(w, row, w->g->m, o3_gemm_tile_rows(w->s), 1);
  return o3_kt_op(w->t, "minsi", row, o3_kt_op_const(w->t, "subi", p->at.rows, 1));
}

/* For the thread's pair of D in its row (half 0) or 8 rows below (1). */
static void load_pair(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_part_t *p, int piece,
                      int half, o3_gemm_pair_extras_t *extras) {
  o3_kernel_text_t *t = w->t;
  if (!w->g->num_extras) return;
  int row = o3_kt_op(t, "addi", p->at.row, o3_kt_op_const(t, "addi", c->row, half * 8));
  int column = o3_kt_op(t, "addi", p->column, o3_kt_op_const(t, "addi", c->pair, piece * 8));
  row = clamped_row(w, p, row);
  column = clamped(w, column, w->g->n, w->s->columns, 2);
  o3_gemm_load_extras(t, w->g, (int[]){p->at.batch[0], p->at.batch[1], row, column}, extras);
}

/* The pair, as vector<2 x out>. */
static int finish_pair(o3_gemm_writer_t *w, const o3_gemm_part_t *p, int piece, int half,
                       o3_gemm_pair_extras_t *extras) {
  o3_kernel_text_t *t = w->t;
  int values[2];
  o3_gemm_finish_pair(t, w->g, w->kernel->name, &p->sums[4 * piece + 2 * half], extras, values);
  return o3_kt_value(t, "vector.from_elements %%v%d, %%v%d : vector<2x%s>", values[0], values[1],
                     o3_gemm_type(w->g->out));
}

/* ---- Stores ---- */

static void store_pair(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_part_t *p, int piece,
                       int half, int pair) {
  o3_kernel_text_t *t = w->t;
  int row = o3_kt_op(t, "addi", p->at.row, o3_kt_op_const(t, "addi", c->row, half * 8));
  int column = o3_kt_op(t, "addi", p->column, o3_kt_op_const(t, "addi", c->pair, piece * 8));
  bool told = w->g->rows_at_run_time;
  bool ragged = told || w->g->m % o3_gemm_tile_rows(w->s) || w->g->n % w->s->columns;
  if (ragged) {
    int in_row = told ? o3_kt_cmp(t, "slt", row, p->at.rows) : o3_kt_cmp_const(t, "slt", row, w->g->m),
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

enum { PANEL_PIECES = 8 };

/* A part's columns may end within its last panel. */
static int panels_of(const o3_gemm_part_t *p) { return (p->pieces + PANEL_PIECES - 1) / PANEL_PIECES; }

static int pairs_of(const o3_gemm_part_t *p, int panel) {
  int pieces = p->pieces - panel * PANEL_PIECES;
  return 2 * (pieces < PANEL_PIECES ? pieces : PANEL_PIECES);
}

static void load_panel(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_part_t *p, int panel,
                       o3_gemm_pair_extras_t *extras) {
  for (int i = 0; i < pairs_of(p, panel); ++i)
    load_pair(w, c, p, panel * PANEL_PIECES + i / 2, i % 2, &extras[i]);
}

/* From registers. */
static void store_pairs(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_part_t *p, int panel,
                        o3_gemm_pair_extras_t *extras) {
  for (int i = 0; i < pairs_of(p, panel); ++i) {
    int piece = panel * PANEL_PIECES + i / 2;
    store_pair(w, c, p, piece, i % 2, finish_pair(w, p, piece, i % 2, &extras[i]));
  }
}

/* The words of a panel's pairs. */
static void finish_panel(o3_gemm_writer_t *w, const o3_gemm_part_t *p, int panel,
                         o3_gemm_pair_extras_t *extras, int words[O3_GEMM_PANEL_PAIRS]) {
  o3_kernel_text_t *t = w->t;
  for (int i = 0; i < O3_GEMM_PANEL_PAIRS; ++i) {
    int pair = finish_pair(w, p, panel * PANEL_PIECES + i / 2, i % 2, &extras[i]);
    words[i] = o3_kt_value(t, "llvm.bitcast %%v%d : vector<2x%s> to i32", pair, o3_gemm_type(w->g->out));
  }
}

/* Puts a panel's words into shared memory. */
static void stage_panel(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int staging,
                        const int words[O3_GEMM_PANEL_PAIRS]) {
  o3_kernel_text_t *t = w->t;
  int lane = o3_kt_op_const(t, "andi", c->thread, 31), warp = o3_kt_op_const(t, "shrui", c->thread, 5);
  for (int i = 0; i < 4; ++i) o3_kt_store_matrices(t, staging, warp, lane, 2 * i, words + 4 * i);
}

/* From there to D, by one thread. */
static void ask_for_store(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_part_t *p,
                          int panel, int staging) {
  o3_kernel_text_t *t = w->t;
  char map[16];
  snprintf(map, sizeof(map), "%%map%d", 2 + w->g->num_extras);
  int row = o3_kt_op(t, "addi", p->at.row, c->first);
  o3_kt_tensor_store(
      t, map, staging, 4,
      (int[]){o3_kt_op_const(t, "addi", p->column, panel * 64), row, p->at.batch[1], p->at.batch[0]});
  o3_kt_line(t, "nvvm.cp.async.bulk.commit.group");
}

/* Waits until at most |running| stores still read their buffers, for the whole warpgroup. */
static void wait_for_buffers(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int running) {
  o3_kt_if(w->t, c->leader);
  o3_kt_line(w->t, "nvvm.cp.async.bulk.wait_group %d {read}", running);
  o3_kt_end(w->t);
  o3_kt_barrier(w->t, c->id, O3_GEMM_WARPGROUP);
}

/* What the warpgroup has put into shared memory can be read by TMA. */
static void publish_buffers(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c) {
  o3_kt_line(w->t,
             "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}");
  o3_kt_barrier(w->t, c->id, O3_GEMM_WARPGROUP);
}

static int staging_buffer(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int number) {
  return o3_kt_shared(w->t, c->staging, o3_kt_i32(w->t, (int64_t)number * O3_GEMM_STAGING_BYTES));
}

/* A panel through shared memory, of which there are two buffers; |stores|: condition, of the thread that asks
 * TMA for it. */
static void send_panel(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_part_t *p, int panel,
                       const int words[O3_GEMM_PANEL_PAIRS], int stores) {
  int number = p->first_panel + panel, panels = w->s->products * panels_of(p);
  int staging = staging_buffer(w, c, number % O3_GEMM_STAGING_BUFFERS);
  bool alone = number == 0 && panels % O3_GEMM_STAGING_BUFFERS; /* the store before reads this buffer */
  wait_for_buffers(w, c, alone ? 0 : O3_GEMM_STAGING_BUFFERS - 1);
  stage_panel(w, c, staging, words);
  publish_buffers(w, c);
  o3_kt_if(w->t, stores);
  ask_for_store(w, c, p, panel, staging);
  o3_kt_end(w->t);
}

static void store_panel(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_part_t *p, int panel,
                        o3_gemm_pair_extras_t *extras) {
  int words[O3_GEMM_PANEL_PAIRS];
  finish_panel(w, p, panel, extras, words);
  send_panel(w, c, p, panel, words, c->leader);
}

/* What the next panel's epilogue reads is asked for before a panel is stored, where registers are left: no
 * load moves up across a store. */
static void store_panels(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_stores_t *stores) {
  o3_gemm_pair_extras_t now[O3_GEMM_PANEL_PAIRS], next[O3_GEMM_PANEL_PAIRS];
  int panels = panels_of(stores->parts), total = w->s->products * panels;
  memcpy(next, stores->extras, sizeof(next));
  for (int i = 0; i < total; ++i) {
    const o3_gemm_part_t *part = &stores->parts[i / panels], *after = &stores->parts[(i + 1) / panels];
    if (!stores->early) load_panel(w, c, part, i % panels, next);
    memcpy(now, next, sizeof(now));
    if (stores->early && i + 1 < total) load_panel(w, c, after, (i + 1) % panels, next);
    if (w->s->store_by_tensor)
      store_panel(w, c, part, i % panels, now);
    else
      store_pairs(w, c, part, i % panels, now);
  }
}

/* Columns whose sums are in registers while products run. */
static int columns_in_registers(const o3_gemm_schedule_t *s) {
  return s->promote ? s->columns + s->columns / s->promote : s->products * s->columns;
}

/* A residual in f32 takes two registers a pair. */
static bool reads_wide_residual(const o3_gemm_t *g) {
  for (int i = 0; i < g->num_extras; ++i) {
    const o3_gemm_extra_t *e = &g->extras[i];
    if (o3_gpu_element_info(e->element)->bytes == 4 && e->strides[O3_GEMM_ROW] && e->strides[O3_GEMM_COLUMN])
      return true;
  }
  return false;
}

/* Blocks of a cluster that shares the sums finish a part of the columns each. What the first panel's epilogue
 * reads is asked for before the products where registers are left. */
void o3_gemm_begin_stores(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_place_t *at,
                          o3_gemm_stores_t *stores) {
  int pieces = w->s->columns / 8 / w->s->split, column = at->column;
  if (w->s->split > 1)
    column = o3_kt_op(w->t, "addi", column, o3_kt_op_const(w->t, "muli", w->rank, (int64_t)pieces * 8));
  int most = O3_GEMM_MAX_COLUMNS - (reads_wide_residual(w->g) ? 64 : 0);
  *stores = (o3_gemm_stores_t){.early = columns_in_registers(w->s) <= most};
  for (int i = 0; i < w->s->products; ++i) {
    o3_gemm_part_t *part = &stores->parts[i];
    *part = (o3_gemm_part_t){*at, column, pieces, i * w->s->columns / 64, stores->values[i]};
    if (i) part->at.row = o3_kt_op_const(w->t, "addi", at->row, (int64_t)i * O3_GEMM_ROWS);
  }
  if (stores->early) load_panel(w, c, stores->parts, 0, stores->extras);
}

void o3_gemm_end_stores(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, o3_gemm_stores_t *stores,
                        const int *sums) {
  int count = w->s->columns / 2;
  for (int p = 0; p < w->s->products; ++p)
    for (int i = 0; i < count; ++i) stores->values[p][i] = o3_kt_member(w->t, count, sums[p], i);
  store_panels(w, c, stores);
}

/* ---- Late stores ---- */

int o3_gemm_panels(const o3_gemm_schedule_t *s) { return s->columns / 64; }

void o3_gemm_keep_results(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, o3_gemm_stores_t *stores,
                          int sums, int *words) {
  const o3_gemm_part_t *part = stores->parts;
  o3_gemm_pair_extras_t extras[O3_GEMM_PANEL_PAIRS];
  int count = w->s->columns / 2;
  for (int i = 0; i < count; ++i) stores->values[0][i] = o3_kt_member(w->t, count, sums, i);
  for (int panel = 0; panel < o3_gemm_panels(w->s); ++panel) {
    bool asked = panel == 0 && stores->early;
    if (!asked) load_panel(w, c, part, panel, extras);
    finish_panel(w, part, panel, asked ? stores->extras : extras, words + panel * O3_GEMM_PANEL_PAIRS);
  }
}

/* Condition: this thread asks for the stores of |late|. */
static int sends_late(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_late_t *late) {
  int is_there = o3_kt_cmp_const(w->t, "sge", late->tile, 0);
  return o3_kt_value(w->t, "arith.andi %%v%d, %%v%d : i1", c->leader, is_there);
}

static o3_gemm_part_t late_part(const o3_gemm_writer_t *w, const o3_gemm_place_t *at) {
  return (o3_gemm_part_t){.at = *at, .column = at->column, .pieces = w->s->columns / 8};
}

void o3_gemm_store_late(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_place_t *at,
                        const o3_gemm_late_t *late, int panel) {
  const o3_gemm_part_t part = late_part(w, at);
  send_panel(w, c, &part, panel, late->words + panel * O3_GEMM_PANEL_PAIRS, sends_late(w, c, late));
}

/* Behind the last products the warpgroup's rows of A in each stage are free, and as large as a panel. */
static int last_buffer(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int panel) {
  o3_kernel_text_t *t = w->t;
  if (panel < O3_GEMM_STAGING_BUFFERS) return staging_buffer(w, c, panel);
  int rows = o3_kt_op_const(t, "muli", c->first, O3_GEMM_ROW_BYTES);
  return o3_kt_shared(
      t, w->shared, o3_kt_op_const(t, "addi", rows, (int64_t)(panel - O3_GEMM_STAGING_BUFFERS) * w->a_bytes));
}

void o3_gemm_store_last(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_place_t *at,
                        const o3_gemm_late_t *late) {
  const o3_gemm_part_t part = late_part(w, at);
  int panels = o3_gemm_panels(w->s), buffers[O3_GEMM_MAX_COLUMNS / 64];
  wait_for_buffers(w, c, 0);
  for (int i = 0; i < panels; ++i) {
    buffers[i] = last_buffer(w, c, i);
    stage_panel(w, c, buffers[i], late->words + i * O3_GEMM_PANEL_PAIRS);
  }
  publish_buffers(w, c);
  o3_kt_if(w->t, sends_late(w, c, late));
  for (int i = 0; i < panels; ++i) ask_for_store(w, c, &part, i, buffers[i]);
  o3_kt_end(w->t);
}

/* ---- Sums shared by a cluster ---- */

/* The barrier counts warps, so each comes to it as a whole. */
void o3_gemm_cluster_barrier(o3_gemm_writer_t *w) {
  o3_kt_line(w->t, "nvvm.bar.warp.sync %%v%d : i32", o3_kt_i32(w->t, -1));
  o3_kt_line(w->t, "nvvm.cluster.arrive {aligned}\nnvvm.cluster.wait {aligned}");
}

/* The place of four sums: piece |piece| (a value) of this thread. */
static int partial_offset(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int piece) {
  o3_kernel_text_t *t = w->t;
  int pieces = w->s->columns / 8;
  int at = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", c->number, pieces), piece);
  at = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", at, O3_GEMM_WARPGROUP), c->thread);
  return o3_kt_op_const(t, "muli", at, 16);
}

static void leave_sums(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int sums) {
  o3_kernel_text_t *t = w->t;
  int count = w->s->columns / 2;
  o3_kt_barrier(t, o3_kt_i32(t, 1 + w->s->consumers), O3_GEMM_WARPGROUP * w->s->consumers);
  for (int piece = 0; piece < count / 4; ++piece) {
    int four[4], at = o3_kt_shared(t, w->shared, partial_offset(w, c, o3_kt_i32(t, piece)));
    for (int i = 0; i < 4; ++i) four[i] = o3_kt_member(t, count, sums, 4 * piece + i);
    int vector = o3_kt_value(t, "vector.from_elements %%v%d, %%v%d, %%v%d, %%v%d : vector<4xf32>", four[0],
                             four[1], four[2], four[3]);
    o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>", vector, at);
  }
}

/* Four sums over the blocks of the cluster. */
static void gather_sums(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int piece, int four[4]) {
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
void o3_gemm_finish_shared(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, o3_gemm_stores_t *stores,
                           int sums) {
  o3_kernel_text_t *t = w->t;
  int pieces = stores->parts->pieces;
  leave_sums(w, c, sums);
  o3_gemm_cluster_barrier(w);
  int first = o3_kt_op_const(t, "muli", w->rank, pieces);
  for (int i = 0; i < pieces; ++i)
    gather_sums(w, c, o3_kt_op_const(t, "addi", first, i), &stores->values[0][4 * i]);
  store_panels(w, c, stores);
  o3_gemm_cluster_barrier(w);
}
