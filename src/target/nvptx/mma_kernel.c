/* Shared memory: [A, B of each stage]; behind the products, sums of the other slices, or the staging of D. */
#include "target/nvptx/mma_kernel.h"

#include <stdio.h>

#include "schedule/gpu.h"
#include "target/nvptx/mma_copy.h"
#include "target/nvptx/product_text.h"

enum { WARP = O3_GPU_WARP, MAX_SUMS = 256, MAX_COPIES = 2048, ASYNC_CARDS = 80 };
enum { A, B };

typedef struct writer {
  o3_kernel_text_t *t;
  const o3_gemm_t *g;
  const o3_mma_schedule_t *s;
  const o3_mma_card_t *card;
  const o3_mma_unit_t *u;
  const o3_gpu_kernel_t *kernel;
  o3_mma_block_t blocks[2];
  int depth, steps; /* elements of k a stage; stages of all of k */
  int num_sums;
  /* Values: */
  int shared, thread, lane, slice, warp[2]; /* warp: first row and column of the tile */
  o3_gemm_place_t place;
  o3_mma_copy_t copies[2];
  o3_mma_reader_t readers[2];
} writer_t;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int larger(int a, int b) { return a > b ? a : b; }

/* ---- Layout ---- */

static int element_bytes(const o3_gemm_t *g) { return o3_gpu_element_info(g->element)->bytes; }

static int tile_rows(const o3_mma_unit_t *u, const o3_mma_schedule_t *s) {
  return s->warps[0] * s->pieces[0] * u->rows;
}
static int tile_columns(const o3_mma_unit_t *u, const o3_mma_schedule_t *s) {
  return s->warps[1] * s->pieces[1] * u->columns;
}

static o3_mma_block_t block_of(const o3_gemm_t *g, const o3_mma_unit_t *u, const o3_mma_schedule_t *s,
                               int operand) {
  enum { LINE = 128 };
  bool by_rows = operand == B && g->b_by_rows;
  o3_mma_block_t block = {.fragment = &u->fragments[operand == A ? O3_MMA_A
                                                    : by_rows    ? O3_MMA_B_BY_ROWS
                                                                 : O3_MMA_B_BY_COLUMNS],
                          .element = g->element,
                          .lines = operand == A ? tile_rows(u, s) : tile_columns(u, s),
                          .line_bytes = s->line_bytes,
                          .panels = 1};
  if (!by_rows) return block;
  int row = tile_columns(u, s) * element_bytes(g);
  block.lines = s->line_bytes / element_bytes(g);
  block.line_bytes = row < LINE ? row : LINE;
  block.panels = row / block.line_bytes;
  return block;
}

static int stage_bytes(const o3_gemm_t *g, const o3_mma_unit_t *u, const o3_mma_schedule_t *s) {
  const o3_mma_block_t a = block_of(g, u, s, A), b = block_of(g, u, s, B);
  return o3_mma_block_bytes(&a) + o3_mma_block_bytes(&b);
}

int o3_mma_shared_bytes(const o3_gemm_t *g, const o3_mma_unit_t *u, const o3_mma_schedule_t *s) {
  int tile = tile_rows(u, s) * tile_columns(u, s);
  int ring = s->stages * stage_bytes(g, u, s), sums = (s->slices - 1) * tile * 4;
  return larger(larger(ring, sums), s->staged ? tile * 2 : 0);
}

bool o3_mma_is_async(const o3_gemm_t *g, int sm) {
  enum { LEAST = 4 };
  return sm >= ASYNC_CARDS && o3_mma_copy_access(g, true) * element_bytes(g) >= LEAST &&
         o3_mma_copy_access(g, false) * element_bytes(g) >= LEAST;
}

/* ---- Products ---- */

static int stage_at(writer_t *w, int stage) {
  int bytes = stage_bytes(w->g, w->u, w->s);
  return o3_kt_shared(w->t, w->shared, o3_kt_op_const(w->t, "muli", stage, bytes));
}

static int b_of_stage(writer_t *w, int stage) {
  return o3_kt_shared(w->t, stage, o3_kt_i32(w->t, o3_mma_block_bytes(&w->blocks[A])));
}

/* What a warp reads of the stage for its pieces in step |step| of its slice. */
typedef struct fragments {
  int a[8][O3_MMA_MAX_VALUES], b[8][O3_MMA_MAX_VALUES];
} fragments_t;

static void read_fragments(writer_t *w, const int bases[2], int step, fragments_t *f) {
  int depth = step * w->s->slices * w->u->depth;
  int chunk = depth * element_bytes(w->g) / O3_MMA_CHUNK;
  int across = w->u->columns * element_bytes(w->g) / O3_MMA_CHUNK;
  for (int i = 0; i < w->s->pieces[0]; ++i)
    o3_mma_read(w->t, &w->readers[A], bases[A], i * w->u->rows, chunk, f->a[i]);
  for (int i = 0; i < w->s->pieces[1]; ++i) {
    if (w->g->b_by_rows)
      o3_mma_read(w->t, &w->readers[B], bases[B], depth, i * across, f->b[i]);
    else
      o3_mma_read(w->t, &w->readers[B], bases[B], i * w->u->columns, chunk, f->b[i]);
  }
}

/* Every other row of pieces is walked backwards: the operand that stays is read again at once. */
static void multiply_fragments(writer_t *w, const fragments_t *f, int *sums) {
  int columns = w->s->pieces[1];
  for (int i = 0; i < w->s->pieces[0]; ++i) {
    for (int j = 0; j < columns; ++j) {
      int column = i % 2 ? columns - 1 - j : j;
      w->u->multiply(w->t, w->g->element, w->g->b_by_rows, f->a[i], f->b[column],
                     &sums[(i * columns + column) * 2 * w->u->num_pairs]);
    }
  }
}

/* Adds a stage's products to |sums|: the next step's fragments are read before a step is multiplied. */
static void multiply_stage(writer_t *w, int stage, int *sums) {
  fragments_t f[2];
  int steps = w->depth / w->u->depth / w->s->slices, bases[2] = {stage, b_of_stage(w, stage)};
  read_fragments(w, bases, 0, &f[0]);
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) read_fragments(w, bases, step + 1, &f[(step + 1) % 2]);
    multiply_fragments(w, &f[step % 2], sums);
  }
}

/* ---- The walk along k ---- */

static void issue_stage(writer_t *w, int step, int stage) {
  int k = o3_kt_op_const(w->t, "muli", step, w->depth);
  o3_mma_copy_issue(w->t, &w->copies[A], k, stage);
  o3_mma_copy_issue(w->t, &w->copies[B], k, b_of_stage(w, stage));
}

static int next_stage(writer_t *w, int stage) {
  int up = o3_kt_op_const(w->t, "addi", stage, 1);
  return o3_kt_select(w->t, o3_kt_cmp_const(w->t, "eq", up, w->s->stages), o3_kt_i32(w->t, 0), up, "i32");
}

/* Carried: the sums, then two stages. */
static int open_walk(writer_t *w, const int stages[2], o3_kt_carried_t *carried, int *sums) {
  o3_kernel_text_t *t = w->t;
  int zero = o3_kt_value(t, "arith.constant 0.0 : f32");
  for (int i = 0; i < w->num_sums; ++i) carried[i] = (o3_kt_carried_t){.init = zero, .type = "f32"};
  for (int i = 0; i < 2; ++i) carried[w->num_sums + i] = (o3_kt_carried_t){.init = stages[i], .type = "i32"};
  int first = o3_kt_i32(t, 0), last = o3_kt_i32(t, w->steps), one = o3_kt_i32(t, 1);
  int step = o3_kt_for(t, first, last, one, w->num_sums + 2, carried);
  for (int i = 0; i < w->num_sums; ++i) sums[i] = carried[i].value;
  return step;
}

static void close_walk(writer_t *w, const int stages[2], o3_kt_carried_t *carried, int *sums) {
  for (int i = 0; i < 2; ++i) sums[w->num_sums + i] = stages[i];
  o3_kt_end_for(w->t, w->num_sums + 2, carried, sums);
  for (int i = 0; i < w->num_sums; ++i) sums[i] = carried[i].result;
}

/* Stages are asked for as far ahead as there are; a stage is free when all warps are behind the barrier after
 * its products. */
static void walk_async(writer_t *w, int *sums) {
  o3_kernel_text_t *t = w->t;
  o3_kt_carried_t carried[MAX_SUMS + 2];
  int ahead = w->s->stages - 1;
  for (int i = 0; i < ahead; ++i) {
    if (i < w->steps) issue_stage(w, o3_kt_i32(t, i), stage_at(w, o3_kt_i32(t, i)));
    o3_kt_line(t, "nvvm.cp.async.commit.group");
  }
  int step = open_walk(w, (int[]){o3_kt_i32(t, 0), o3_kt_i32(t, ahead)}, carried, sums);
  int now = carried[w->num_sums].value, then = carried[w->num_sums + 1].value;
  o3_kt_line(t, "nvvm.cp.async.wait.group %d\nnvvm.barrier0", ahead - 1);
  int coming = o3_kt_op_const(t, "addi", step, ahead);
  o3_kt_if(t, o3_kt_cmp_const(t, "slt", coming, w->steps));
  issue_stage(w, coming, stage_at(w, then));
  o3_kt_end(t);
  o3_kt_line(t, "nvvm.cp.async.commit.group");
  multiply_stage(w, stage_at(w, now), sums);
  close_walk(w, (int[]){next_stage(w, now), next_stage(w, then)}, carried, sums);
  o3_kt_line(t, "nvvm.cp.async.wait.group 0");
}

static int fetch_stage(writer_t *w, int step, int *values) {
  int k = o3_kt_op_const(w->t, "muli", step, w->depth);
  int count = o3_mma_copy_fetch(w->t, &w->copies[A], k, values);
  return count + o3_mma_copy_fetch(w->t, &w->copies[B], k, values + count);
}

static void deposit_stage(writer_t *w, int stage, const int *values) {
  int count = o3_mma_copy_deposit(w->t, &w->copies[A], stage, values);
  o3_mma_copy_deposit(w->t, &w->copies[B], b_of_stage(w, stage), values + count);
}

/* Two stages: the next one is in registers while one is multiplied. The last one is fetched twice. */
static void walk_registers(writer_t *w, int *sums) {
  o3_kernel_text_t *t = w->t;
  o3_kt_carried_t carried[MAX_SUMS + 2];
  int values[MAX_COPIES];
  fetch_stage(w, o3_kt_i32(t, 0), values);
  deposit_stage(w, stage_at(w, o3_kt_i32(t, 0)), values);
  o3_kt_line(t, "nvvm.barrier0");
  int step = open_walk(w, (int[]){o3_kt_i32(t, 0), o3_kt_i32(t, 1)}, carried, sums);
  int now = carried[w->num_sums].value, then = carried[w->num_sums + 1].value;
  int coming = o3_kt_op_const(t, "minsi", o3_kt_op_const(t, "addi", step, 1), w->steps - 1);
  fetch_stage(w, coming, values);
  multiply_stage(w, stage_at(w, now), sums);
  deposit_stage(w, stage_at(w, then), values);
  o3_kt_line(t, "nvvm.barrier0");
  close_walk(w, (int[]){then, now}, carried, sums);
}

/* ---- Slices ---- */

static int slice_threads(const writer_t *w) { return w->s->warps[0] * w->s->warps[1] * WARP; }

/* The place of sum |number| that slice |slice| (a value, from 1 on) leaves. */
static int sum_place(writer_t *w, int slice, int number) {
  o3_kernel_text_t *t = w->t;
  int first =
      o3_kt_op_const(t, "muli", o3_kt_op_const(t, "subi", slice, 1), (int64_t)w->num_sums * slice_threads(w));
  int thread = o3_kt_op_const(t, "remui", w->thread, slice_threads(w));
  int at = o3_kt_op_const(t, "addi", o3_kt_op(t, "addi", first, thread), (int64_t)number * slice_threads(w));
  return o3_kt_shared(t, w->shared, o3_kt_op_const(t, "muli", at, 4));
}

/* Slice 0 has all sums behind it, and goes on alone: opens a condition. */
static void add_slices(writer_t *w, int *sums) {
  o3_kernel_text_t *t = w->t;
  o3_kt_line(t, "nvvm.barrier0");
  o3_kt_if(t, o3_kt_cmp_const(t, "ne", w->slice, 0));
  for (int i = 0; i < w->num_sums; ++i)
    o3_kt_line(t, "llvm.store %%v%d, %%v%d : f32, !llvm.ptr<3>", sums[i], sum_place(w, w->slice, i));
  o3_kt_end(t);
  o3_kt_line(t, "nvvm.barrier0");
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", w->slice, 0));
  for (int slice = 1; slice < w->s->slices; ++slice) {
    int number = o3_kt_i32(t, slice);
    for (int i = 0; i < w->num_sums; ++i) {
      int other = o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<3> -> f32", sum_place(w, number, i));
      sums[i] = o3_kt_value(t, "arith.addf %%v%d, %%v%d : f32", sums[i], other);
    }
  }
}

/* ---- The result ---- */

/* A pair of the warp's part: numbers, and the values of its row and column in the result. */
typedef struct pair {
  int row, column; /* from the warp's first */
  int at[O3_GEMM_DIMS];
  int lane_row, lane_column;
  const int *sums;
} pair_t;

/* Reads behind the end are of the last row or columns. */
static int clamped(writer_t *w, int at, int64_t size, int64_t tile, int64_t last) {
  return size % tile ? o3_kt_op_const(w->t, "minsi", at, size - last) : at;
}

static int clamped_row(writer_t *w, int at) {
  if (!w->g->rows_at_run_time) return clamped(w, at, w->g->m, tile_rows(w->u, w->s), 1);
  return o3_kt_op(w->t, "minsi", at, o3_kt_op_const(w->t, "subi", w->place.rows, 1));
}

static void finish_pair(writer_t *w, const pair_t *p, int results[2]) {
  o3_gemm_pair_extras_t extras;
  int at[O3_GEMM_DIMS] = {p->at[0], p->at[1]};
  at[O3_GEMM_ROW] = clamped_row(w, p->at[O3_GEMM_ROW]);
  at[O3_GEMM_COLUMN] = clamped(w, p->at[O3_GEMM_COLUMN], w->g->n, tile_columns(w->u, w->s), 2 - w->g->n % 2);
  o3_gemm_load_extras(w->t, w->g, at, &extras);
  o3_gemm_finish_pair(w->t, w->g, w->kernel->name, p->sums, &extras, results);
}

static int d_pointer(writer_t *w, const int at[O3_GEMM_DIMS]) {
  o3_kernel_text_t *t = w->t;
  const int64_t strides[O3_GEMM_DIMS] = {w->g->d_batch[0], w->g->d_batch[1], w->g->d_pitch, 1};
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8",
                         2 + w->g->num_extras);
  return o3_kt_global(t, base, o3_gemm_element_index(t, strides, at), o3_gemm_type(w->g->out));
}

/* Opens a condition where rows or columns may be outside. */
static bool begin_inside(writer_t *w, int row, int column) {
  o3_kernel_text_t *t = w->t;
  bool told = w->g->rows_at_run_time;
  if (!told && w->g->m % tile_rows(w->u, w->s) == 0 && w->g->n % tile_columns(w->u, w->s) == 0) return false;
  int in_row = told ? o3_kt_cmp(t, "slt", row, w->place.rows) : o3_kt_cmp_const(t, "slt", row, w->g->m),
      in_column = o3_kt_cmp_const(t, "slt", column, w->g->n);
  o3_kt_if(t, o3_kt_value(t, "arith.andi %%v%d, %%v%d : i1", in_row, in_column));
  return true;
}

/* Whether pairs of D lie at multiples of their size. */
static bool stores_pairs(const o3_gemm_t *g) {
  return !(g->n % 2 || g->d_pitch % 2 || g->d_batch[0] % 2 || g->d_batch[1] % 2);
}

static void store_single(writer_t *w, const pair_t *p, int value, int which) {
  o3_kernel_text_t *t = w->t;
  int at[O3_GEMM_DIMS] = {p->at[0], p->at[1], p->at[O3_GEMM_ROW],
                          o3_kt_op_const(t, "addi", p->at[O3_GEMM_COLUMN], which)};
  bool open = begin_inside(w, at[O3_GEMM_ROW], at[O3_GEMM_COLUMN]);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d : %s, !llvm.ptr<1>", value, d_pointer(w, at),
             o3_gemm_type(w->g->out));
  if (open) o3_kt_end(t);
}

static void store_pair(writer_t *w, const pair_t *p) {
  o3_kernel_text_t *t = w->t;
  const char *out = o3_gemm_type(w->g->out);
  int values[2];
  finish_pair(w, p, values);
  if (!stores_pairs(w->g)) {
    for (int i = 0; i < 2; ++i) store_single(w, p, values[i], i);
    return;
  }
  int both = o3_kt_value(t, "vector.from_elements %%v%d, %%v%d : vector<2x%s>", values[0], values[1], out);
  bool open = begin_inside(w, p->at[O3_GEMM_ROW], p->at[O3_GEMM_COLUMN]);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = %d : i64} : vector<2x%s>, !llvm.ptr<1>", both,
             d_pointer(w, p->at), 2 * o3_gpu_element_info(w->g->out)->bytes, out);
  if (open) o3_kt_end(t);
}

/* Of D, as the warp stages it: a line a row. */
static o3_mma_block_t staging_block(const writer_t *w) {
  return (o3_mma_block_t){.fragment = &w->u->staged,
                          .element = w->g->out,
                          .lines = w->s->pieces[0] * w->u->rows,
                          .line_bytes = w->s->pieces[1] * w->u->columns * 2,
                          .panels = 1};
}

static void stage_pair(writer_t *w, const o3_mma_block_t *block, int region, const pair_t *p) {
  o3_kernel_text_t *t = w->t;
  const char *out = o3_gemm_type(w->g->out);
  int values[2];
  finish_pair(w, p, values);
  int line = o3_kt_op_const(t, "addi", p->lane_row, p->row);
  int column = o3_kt_op_const(t, "addi", p->lane_column, p->column);
  int at = o3_mma_chunk_byte(t, block, line, o3_kt_op_const(t, "shrui", column, 3));
  at = o3_kt_op(t, "addi", at, o3_kt_op_const(t, "muli", o3_kt_op_const(t, "andi", column, 7), 2));
  int both = o3_kt_value(t, "vector.from_elements %%v%d, %%v%d : vector<2x%s>", values[0], values[1], out);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 4 : i64} : vector<2x%s>, !llvm.ptr<3>", both,
             o3_kt_shared(t, region, at), out);
}

/* Rows of 16 bytes a lane. */
static void store_staged(writer_t *w, const o3_mma_block_t *block, int region) {
  o3_kernel_text_t *t = w->t;
  const char *out = o3_gemm_type(w->g->out);
  int chunks = block->line_bytes / O3_MMA_CHUNK, apart = WARP / chunks;
  int chunk = o3_kt_op_const(t, "remui", w->lane, chunks),
      first = o3_kt_op_const(t, "divui", w->lane, chunks);
  int column = o3_kt_op_const(t, "muli", chunk, 8);
  column = o3_kt_op(t, "addi", column, o3_kt_op(t, "addi", w->place.column, w->warp[1]));
  for (int i = 0; i < block->lines / apart; ++i) {
    int line = o3_kt_op_const(t, "addi", first, (int64_t)i * apart);
    int from = o3_kt_shared(t, region, o3_mma_chunk_byte(t, block, line, chunk));
    int row = o3_kt_op(t, "addi", line, o3_kt_op(t, "addi", w->place.row, w->warp[0]));
    int all =
        o3_kt_value(t, "llvm.load %%v%d {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8x%s>", from, out);
    bool open = begin_inside(w, row, column);
    int to = d_pointer(w, (int[]){w->place.batch[0], w->place.batch[1], row, column});
    o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 16 : i64} : vector<8x%s>, !llvm.ptr<1>", all, to,
               out);
    if (open) o3_kt_end(t);
  }
}

static pair_t pair_of(writer_t *w, const pair_t *lane, int piece, int number, const int *sums) {
  o3_kernel_text_t *t = w->t;
  pair_t p = *lane;
  int columns = w->s->pieces[1];
  p.row = piece / columns * w->u->rows + number % w->u->pair_rows * w->u->row_step;
  p.column = piece % columns * w->u->columns + w->u->column_at[number / w->u->pair_rows];
  p.at[O3_GEMM_ROW] = o3_kt_op_const(t, "addi", lane->at[O3_GEMM_ROW], p.row);
  p.at[O3_GEMM_COLUMN] = o3_kt_op_const(t, "addi", lane->at[O3_GEMM_COLUMN], p.column);
  p.sums = &sums[2 * (piece * w->u->num_pairs + number)];
  return p;
}

/* A lane's first pair. */
static pair_t first_pair(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  pair_t p = {.at = {w->place.batch[0], w->place.batch[1]},
              .lane_row = o3_mma_bits(t, &w->u->row, w->lane),
              .lane_column = o3_mma_bits(t, &w->u->column, w->lane)};
  p.at[O3_GEMM_ROW] = o3_kt_op(t, "addi", o3_kt_op(t, "addi", w->place.row, w->warp[0]), p.lane_row);
  p.at[O3_GEMM_COLUMN] = o3_kt_op(t, "addi", o3_kt_op(t, "addi", w->place.column, w->warp[1]), p.lane_column);
  return p;
}

static void store_sums(writer_t *w, const int *sums) {
  o3_kernel_text_t *t = w->t;
  const pair_t lane = first_pair(w);
  const o3_mma_block_t block = staging_block(w);
  int region = w->shared;
  if (w->s->staged) {
    int warp = o3_kt_uniform(
        t, o3_kt_op_const(t, "shrui", o3_kt_op_const(t, "remui", w->thread, slice_threads(w)), 5));
    o3_kt_barrier(t, o3_kt_i32(t, 1), slice_threads(w));
    region = o3_kt_shared(t, w->shared, o3_kt_op_const(t, "muli", warp, o3_mma_block_bytes(&block)));
  }
  for (int piece = 0; piece < w->s->pieces[0] * w->s->pieces[1]; ++piece) {
    for (int i = 0; i < w->u->num_pairs; ++i) {
      pair_t p = pair_of(w, &lane, piece, i, sums);
      if (w->s->staged)
        stage_pair(w, &block, region, &p);
      else
        store_pair(w, &p);
    }
  }
  if (!w->s->staged) return;
  o3_kt_line(t, "nvvm.bar.warp.sync %%v%d : i32", o3_kt_i32(t, -1));
  store_staged(w, &block, region);
}

/* ---- The kernel ---- */

static void begin_warps(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int warps = w->s->warps[0] * w->s->warps[1];
  int warp = o3_kt_uniform(t, o3_kt_op_const(t, "shrui", w->thread, 5));
  w->lane = o3_kt_op_const(t, "andi", w->thread, WARP - 1);
  w->slice = o3_kt_op_const(t, "divui", warp, warps);
  int own = o3_kt_op_const(t, "remui", warp, warps);
  int row = o3_kt_op_const(t, "remui", own, w->s->warps[0]),
      column = o3_kt_op_const(t, "divui", own, w->s->warps[0]);
  w->warp[0] = o3_kt_op_const(t, "muli", row, (int64_t)w->s->pieces[0] * w->u->rows);
  w->warp[1] = o3_kt_op_const(t, "muli", column, (int64_t)w->s->pieces[1] * w->u->columns);
}

/* A slice's first step of a stage is that of its number. */
static void begin_readers(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int bytes = element_bytes(w->g), zero = o3_kt_i32(t, 0);
  int depth = o3_kt_op_const(t, "muli", w->slice, w->u->depth);
  int chunk =
      w->s->slices > 1 ? o3_kt_op_const(t, "muli", w->slice, w->u->depth * bytes / O3_MMA_CHUNK) : zero;
  w->readers[A] = o3_mma_reader(t, &w->blocks[A], w->lane, w->warp[0], chunk);
  if (!w->g->b_by_rows) {
    w->readers[B] = o3_mma_reader(t, &w->blocks[B], w->lane, w->warp[1], chunk);
    return;
  }
  int across = o3_kt_op_const(t, "divui", w->warp[1], O3_MMA_CHUNK / bytes);
  w->readers[B] = o3_mma_reader(t, &w->blocks[B], w->lane, w->s->slices > 1 ? depth : zero, across);
}

static void begin_copies(writer_t *w) {
  for (int i = A; i <= B; ++i) {
    w->copies[i] = (o3_mma_copy_t){.gemm = w->g,
                                   .is_a = i == A,
                                   .by_rows = i == B && w->g->b_by_rows,
                                   .block = w->blocks[i],
                                   .depth = w->depth,
                                   .first = i == A ? w->place.row : w->place.column,
                                   .end = w->place.rows,
                                   .threads = w->kernel->block,
                                   .access = o3_mma_copy_access(w->g, i == A)};
    o3_mma_copy_begin(w->t, &w->copies[i], w->thread, &w->place);
  }
}

static o3_gemm_tiling_t tiling_of(const o3_mma_unit_t *u, const o3_mma_schedule_t *s) {
  return (o3_gemm_tiling_t){tile_rows(u, s), tile_columns(u, s), s->group_rows};
}

static void body(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  const o3_gemm_tiling_t tiling = tiling_of(w->u, w->s);
  int sums[MAX_SUMS + 2];
  w->shared = o3_kt_value(t, "llvm.mlir.addressof @o3_shared : !llvm.ptr<3>");
  w->thread = o3_kt_thread(t);
  w->place = o3_gemm_tile_place(t, w->g, &tiling, o3_kt_block(t));
  begin_warps(w);
  begin_readers(w);
  begin_copies(w);
  if (o3_mma_is_async(w->g, w->card->sm))
    walk_async(w, sums);
  else
    walk_registers(w, sums);
  if (w->s->slices > 1) add_slices(w, sums);
  store_sums(w, sums);
  if (w->s->slices > 1) o3_kt_end(t);
}

static void write_module(o3_kernel_text_t *t, void *context) {
  writer_t *w = context;
  w->t = t;
  o3_kt_begin_module(t);
  o3_gemm_write_epilogue(t, w->g, w->kernel->name);
  /* Told how many blocks are to fit, the assembler of these cards takes all registers that this leaves, and
   * spills some; by itself it takes fewer. */
  o3_kt_begin_kernel(t, w->kernel, o3_mma_is_async(w->g, w->card->sm) ? w->s->blocks : 0);
  body(w);
  o3_kt_end_kernel(t);
}

/* ---- Launches ---- */

static int64_t extent(const o3_gemm_t *g, int64_t outer, int64_t pitch, const int64_t batch[2]) {
  int64_t last = (outer - 1) * pitch;
  for (int i = 0; i < 2; ++i) last += (g->batch[i] - 1) * batch[i];
  return last + pitch;
}

/* Places of elements are 32-bit numbers, of rows behind the end too, which are not read. */
static int64_t most_rows(const o3_gemm_t *g, int tile) {
  int64_t pitch = g->a_pitch > g->d_pitch ? g->a_pitch : g->d_pitch;
  if (pitch < 1) pitch = 1; /* where only the product has been read */
  for (int i = 0; i < g->num_extras; ++i) {
    if (g->extras[i].strides[O3_GEMM_ROW] > pitch) pitch = g->extras[i].strides[O3_GEMM_ROW];
  }
  return INT32_MAX / pitch - tile;
}

const char *o3_mma_refuse(const o3_gemm_t *g, int sm) {
  if (g->window && g->window->depthwise) return "its windows are of one channel each";
  if (!o3_mma_unit(sm, g->element)) return "the card multiplies no numbers of the type";
  if (g->m < 1 || g->n < 1 || g->k < 1 || g->batch[0] * g->batch[1] < 1) return "a size is zero";
  if (g->rows_at_run_time && g->batch[0] * g->batch[1] > 1)
    return "rows of batches are known only at run time";
  int64_t a =
      g->window ? g->window->strides[2] * g->window->sizes[2] : extent(g, g->m, g->a_pitch, g->a_batch);
  int64_t b = extent(g, g->b_by_rows ? g->k : g->n, g->b_pitch, g->b_batch);
  int64_t d = extent(g, g->m, g->d_pitch, g->d_batch);
  if (a > INT32_MAX || b > INT32_MAX || d > INT32_MAX || g->batch[0] * g->batch[1] * g->m * g->n > INT32_MAX)
    return "a factor or the result has more than 2^31 elements";
  if (g->rows_at_run_time && most_rows(g, 0) < g->m)
    return "rows known only at run time are so far apart that few of them have 2^31 elements";
  return NULL;
}

static void set_launch(const o3_gemm_t *g, const o3_mma_unit_t *u, const o3_mma_schedule_t *s,
                       o3_gpu_kernel_t *kernel) {
  const o3_gemm_tiling_t tiling = tiling_of(u, s);
  kernel->grid[0] = (int)o3_gemm_tiles(g, &tiling);
  kernel->grid[1] = kernel->grid[2] = kernel->cluster = 1;
  kernel->block = WARP * s->warps[0] * s->warps[1] * s->slices;
  kernel->shared_bytes = o3_mma_shared_bytes(g, u, s);
  for (int i = 0; i < 3 + g->num_extras; ++i) o3_gpu_kernel_add_pointer(kernel, i);
  if (!g->rows_at_run_time) return;
  o3_gpu_kernel_add_rows(kernel, 2 + g->num_extras, g->n);
  kernel->rows = (o3_gpu_rows_t){.tile = tiling.rows, .most = most_rows(g, tiling.rows)};
}

o3_status_t o3_mma_build(const o3_gemm_t *g, const o3_mma_schedule_t *s, const o3_mma_card_t *card,
                         o3_gpu_kernel_t *kernel) {
  const o3_mma_unit_t *u = o3_mma_unit(card->sm, g->element);
  writer_t w = {.g = g, .s = s, .card = card, .u = u, .kernel = kernel};
  char stem[96];
  *kernel = (o3_gpu_kernel_t){0};
  for (int i = A; i <= B; ++i) w.blocks[i] = block_of(g, u, s, i);
  w.depth = s->line_bytes / element_bytes(g);
  w.steps = (int)ceil_div(g->k, w.depth);
  w.num_sums = s->pieces[0] * s->pieces[1] * u->num_pairs * 2;
  set_launch(g, u, s, kernel);
  snprintf(stem, sizeof(stem), "o3k_%s_%s_%dx%dx%d__%s", o3_gemm_type(g->element),
           g->window ? "conv" : "gemm", tile_rows(u, s), tile_columns(u, s), w.depth, u->name);
  return o3_kt_write(kernel, stem, write_module, &w);
}
