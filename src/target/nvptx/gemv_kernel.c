/* Every thread sums what it reads of B for all rows of A, whose elements it takes from the caches; threads
 * that have the same columns then add up, in a warp by shuffles, over the warps of a block in shared memory,
 * and the block's threads finish an element each. Loops end where a thread's part of k does: nothing is
 * masked.
 *
 * Shared memory: sums [sharing warps][rows][columns of the block]. */
#include "target/nvptx/gemv_kernel.h"

#include <stdio.h>

#include "schedule/gpu.h"
#include "target/nvptx/product_text.h"

enum {
  WARP = O3_GPU_WARP,
  LOAD_BYTES = 16,
  MAX_DEPTH = 8,
  MAX_WARPS = 32,
  MAX_COLUMNS = 8,
  MAX_SUMS = O3_GEMV_MAX_ROWS * MAX_COLUMNS
};

typedef struct writer {
  o3_kernel_text_t *t;
  const o3_gemm_t *g;
  const o3_gemv_schedule_t *s;
  const o3_gpu_kernel_t *kernel;
  int shared;                     /* pointer */
  int thread, lane, warp;         /* of the block, of the warp */
  int first;                      /* column of the block */
  int batch[2];                   /* values, where there are several */
  int a_base, b_base;             /* elements from the buffers' starts to this batch's matrices */
  int columns[MAX_COLUMNS];       /* by columns: those of this warp; by rows: the first of the thread */
  int own;                        /* the first of these among the columns of the block */
  int group;                      /* the warp's number among those that share columns */
  o3_kt_carried_t sums[MAX_SUMS]; /* [row][column] */
} writer_t;

static int bytes_of(o3_gpu_element_t element) { return o3_gpu_element_info(element)->bytes; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Columns that a thread sums. */
static int thread_columns(const o3_gemm_t *g, const o3_gemv_schedule_t *s) {
  return g->b_by_rows ? s->vector : s->columns;
}

static int block_columns(const o3_gemm_t *g, const o3_gemv_schedule_t *s) {
  return g->b_by_rows ? s->lanes * s->vector : s->warps / s->sharing * s->columns;
}

/* Sums of a block that each of the warps that share columns has, in whole turns of the banks. */
static int group_sums(const o3_gemm_t *g, const o3_gemv_schedule_t *s) {
  return (int)ceil_div(g->m * block_columns(g, s), WARP) * WARP;
}

static int count_sums(const writer_t *w) { return (int)w->g->m * thread_columns(w->g, w->s); }

/* ---- Places ---- */

static int batch_base(writer_t *w, const int64_t strides[2]) {
  o3_kernel_text_t *t = w->t;
  int base = o3_kt_i32(t, 0);
  for (int i = 0; i < 2; ++i) {
    if (strides[i] && w->g->batch[i] > 1)
      base = o3_kt_op(t, "addi", base, o3_kt_op_const(t, "muli", w->batch[i], strides[i]));
  }
  return base;
}

static void place_block(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int64_t tiles = ceil_div(w->g->n, block_columns(w->g, w->s));
  int block = o3_kt_block(t), batch = o3_kt_op_const(t, "divui", block, tiles);
  w->thread = o3_kt_thread(t);
  w->lane = o3_kt_op_const(t, "andi", w->thread, WARP - 1);
  w->warp = o3_kt_uniform(t, o3_kt_op_const(t, "shrui", w->thread, 5));
  w->first = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "remui", block, tiles), block_columns(w->g, w->s));
  w->batch[0] = o3_kt_op_const(t, "divui", batch, w->g->batch[1]);
  w->batch[1] = o3_kt_op_const(t, "remui", batch, w->g->batch[1]);
  w->a_base = batch_base(w, w->g->a_batch);
  w->b_base = batch_base(w, w->g->b_batch);
}

/* Columns behind the last are read as the last ones, and not stored. */
static void place_columns(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  const o3_gemv_schedule_t *s = w->s;
  if (w->g->b_by_rows) {
    w->group = w->warp;
    w->own = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "andi", w->lane, s->lanes - 1), s->vector);
  } else {
    w->group = o3_kt_op_const(t, "remui", w->warp, s->sharing);
    w->own = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "divui", w->warp, s->sharing), s->columns);
  }
  int first = o3_kt_op(t, "addi", w->first, w->own);
  int step = w->g->b_by_rows ? s->vector : 1;
  for (int c = 0; c < (w->g->b_by_rows ? 1 : s->columns); ++c)
    w->columns[c] = o3_kt_op_const(t, "minsi", o3_kt_op_const(t, "addi", first, c), w->g->n - step);
}

/* ---- Sums ---- */

/* |count| elements of argument |argument| at |index|, as f32 scalars. */
static void load(writer_t *w, int argument, int index, int count, int *values) {
  o3_kernel_text_t *t = w->t;
  const char *type = o3_gemm_type(w->g->element);
  int bytes = count * bytes_of(w->g->element);
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8", argument);
  int vector =
      o3_kt_value(t, "llvm.load %%v%d {alignment = %d : i64} : !llvm.ptr<1> -> vector<%dx%s>",
                  o3_kt_global(t, base, index, type), bytes < LOAD_BYTES ? bytes : LOAD_BYTES, count, type);
  if (w->g->element != O3_GPU_F32)
    vector = o3_kt_value(t, "arith.extf %%v%d : vector<%dx%s> to vector<%dxf32>", vector, count, type, count);
  for (int i = 0; i < count; ++i)
    values[i] = o3_kt_value(t, "vector.extract %%v%d[%d] : f32 from vector<%dxf32>", vector, i, count);
}

/* |count| elements of row |row| of A from |k|. */
static void load_a(writer_t *w, int row, int k, int count, int *values) {
  int index = o3_kt_op_const(w->t, "addi", o3_kt_op(w->t, "addi", w->a_base, k), row * w->g->a_pitch);
  load(w, 0, index, count, values);
}

static void load_b(writer_t *w, int row, int column, int count, int *values) {
  o3_kernel_text_t *t = w->t;
  int index = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", row, w->g->b_pitch), column);
  load(w, 1, o3_kt_op(t, "addi", w->b_base, index), count, values);
}

static int multiply_add(writer_t *w, int a, int b, int sum) {
  return o3_kt_value(w->t, "llvm.intr.fma(%%v%d, %%v%d, %%v%d) : (f32, f32, f32) -> f32", a, b, sum);
}

/* B by rows: |depth| rows of k, a vector of columns of each. */
static void rows_step(writer_t *w, int k, int *next) {
  int a[O3_GEMV_MAX_ROWS][MAX_DEPTH], b[MAX_DEPTH][MAX_COLUMNS], columns = w->s->vector;
  for (int m = 0; m < w->g->m; ++m) load_a(w, m, k, w->s->depth, a[m]);
  for (int r = 0; r < w->s->depth; ++r)
    load_b(w, o3_kt_op_const(w->t, "addi", k, r), w->columns[0], columns, b[r]);
  for (int r = 0; r < w->s->depth; ++r) {
    for (int i = 0; i < w->g->m * columns; ++i)
      next[i] = multiply_add(w, a[i / columns][r], b[r][i % columns], next[i]);
  }
}

/* B by columns: |depth| vectors along k, |span| apart, of each column. */
static void columns_step(writer_t *w, int k, int depth, int span, int *next) {
  int a[O3_GEMV_MAX_ROWS][MAX_DEPTH], b[MAX_COLUMNS][MAX_DEPTH], columns = w->s->columns,
                                                                 vector = w->s->vector;
  for (int u = 0; u < depth; ++u) {
    int at = o3_kt_op_const(w->t, "addi", k, (int64_t)u * span);
    for (int m = 0; m < w->g->m; ++m) load_a(w, m, at, vector, a[m]);
    for (int c = 0; c < columns; ++c) load_b(w, w->columns[c], at, vector, b[c]);
    for (int i = 0; i < w->g->m * columns * vector; ++i) {
      int sum = i / vector;
      next[sum] = multiply_add(w, a[sum / columns][i % vector], b[sum % columns][i % vector], next[sum]);
    }
  }
}

/* Sums from |lower| to |upper|; behind the loop they start the next one. */
static void sum_range(writer_t *w, int lower, int64_t upper, int64_t step, int depth) {
  o3_kernel_text_t *t = w->t;
  int count = count_sums(w), next[MAX_SUMS];
  int k = o3_kt_for(t, lower, o3_kt_i32(t, upper), o3_kt_i32(t, step), count, w->sums);
  for (int i = 0; i < count; ++i) next[i] = w->sums[i].value;
  if (w->g->b_by_rows)
    rows_step(w, k, next);
  else
    columns_step(w, k, depth, (int)(step / depth), next);
  o3_kt_end_for(t, count, w->sums, next);
  for (int i = 0; i < count; ++i) w->sums[i].init = w->sums[i].result;
}

static void sum_rows(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  const o3_gemv_schedule_t *s = w->s;
  int groups = WARP / s->lanes;
  int group = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", w->warp, groups),
                       o3_kt_op_const(t, "divui", w->lane, s->lanes));
  sum_range(w, o3_kt_op_const(t, "muli", group, s->depth), w->g->k, (int64_t)s->warps * groups * s->depth, 1);
}

static void sum_columns(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  const o3_gemv_schedule_t *s = w->s;
  int64_t span = (int64_t)s->sharing * WARP * s->vector, step = span * s->depth,
          whole = w->g->k / step * step;
  int place = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", w->group, WARP), w->lane);
  place = o3_kt_op_const(t, "muli", place, s->vector);
  if (whole) sum_range(w, place, whole, step, s->depth);
  if (whole < w->g->k) sum_range(w, o3_kt_op_const(t, "addi", place, whole), w->g->k, span, 1);
}

/* ---- Over threads ---- */

/* Lanes that are |nearest| and more apart have the same columns. */
static int over_lanes(writer_t *w, int sum, int nearest) {
  o3_kernel_text_t *t = w->t;
  for (int far = WARP / 2; far >= nearest; far /= 2) {
    int all = o3_kt_i32(t, -1), distance = o3_kt_i32(t, far), last = o3_kt_i32(t, WARP - 1);
    int other = o3_kt_value(t, "nvvm.shfl.sync bfly %%v%d, %%v%d, %%v%d, %%v%d : f32 -> f32", all, sum,
                            distance, last);
    sum = o3_kt_value(t, "arith.addf %%v%d, %%v%d : f32", sum, other);
  }
  return sum;
}

/* Where sum |index| is: a word is left out behind every 32, so that lanes that have 8 columns each write to
 * different banks. */
static int sum_address(writer_t *w, int index) {
  o3_kernel_text_t *t = w->t;
  int padded = o3_kt_op(t, "addi", index, o3_kt_op_const(t, "shrui", index, 5));
  return o3_kt_shared(t, w->shared, o3_kt_op_const(t, "muli", padded, 4));
}

static void leave_sums(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int lanes = w->g->b_by_rows ? w->s->lanes : 1, columns = thread_columns(w->g, w->s), sums[MAX_SUMS];
  int width = block_columns(w->g, w->s);
  for (int i = 0; i < count_sums(w); ++i) sums[i] = over_lanes(w, w->sums[i].init, lanes);
  int base = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", w->group, group_sums(w->g, w->s)), w->own);
  o3_kt_if(t, o3_kt_cmp_const(t, "slt", w->lane, lanes));
  for (int i = 0; i < count_sums(w); ++i)
    o3_kt_line(t, "llvm.store %%v%d, %%v%d : f32, !llvm.ptr<3>", sums[i],
               sum_address(w, o3_kt_op_const(t, "addi", base, i / columns * width + i % columns)));
  o3_kt_end(t);
  o3_kt_line(t, "nvvm.barrier0");
}

static int load_scalar(writer_t *w, int argument, o3_gpu_element_t element,
                       const int64_t strides[O3_GEMM_DIMS], const int at[O3_GEMM_DIMS]) {
  o3_kernel_text_t *t = w->t;
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8", argument);
  int from = o3_kt_global(t, base, o3_gemm_element_index(t, strides, at), o3_gemm_type(element));
  return o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<1> -> %s", from, o3_gemm_type(element));
}

static void store(writer_t *w, int value, const int at[O3_GEMM_DIMS]) {
  o3_kernel_text_t *t = w->t;
  const o3_gemm_t *g = w->g;
  const int64_t strides[O3_GEMM_DIMS] = {g->d_batch[0], g->d_batch[1], g->d_pitch, 1};
  int base =
      o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8", 2 + g->num_extras);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d : %s, !llvm.ptr<1>", value,
             o3_kt_global(t, base, o3_gemm_element_index(t, strides, at), o3_gemm_type(g->out)),
             o3_gemm_type(g->out));
}

/* Element |index| of the block's. */
static void finish(writer_t *w, int index) {
  o3_kernel_text_t *t = w->t;
  int width = block_columns(w->g, w->s), sum = -1;
  o3_gemm_pair_extras_t extras = {0};
  int groups = w->g->b_by_rows ? w->s->warps : w->s->sharing;
  int column = o3_kt_op(t, "addi", w->first, o3_kt_op_const(t, "remui", index, width));
  const int at[O3_GEMM_DIMS] = {w->batch[0], w->batch[1], o3_kt_op_const(t, "divui", index, width), column};
  bool ragged = w->g->n % width != 0;
  if (ragged) o3_kt_if(t, o3_kt_cmp_const(t, "slt", column, w->g->n));
  for (int i = 0; i < w->g->num_extras; ++i)
    extras.values[i][0] = load_scalar(w, 2 + i, w->g->extras[i].element, w->g->extras[i].strides, at);
  for (int i = 0; i < groups; ++i) {
    int from = sum_address(w, o3_kt_op_const(t, "addi", index, (int64_t)i * group_sums(w->g, w->s)));
    int part = o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<3> -> f32", from);
    sum = i ? o3_kt_value(t, "arith.addf %%v%d, %%v%d : f32", sum, part) : part;
  }
  store(w, o3_gemm_finish(t, w->g, w->kernel->name, sum, &extras, 0), at);
  if (ragged) o3_kt_end(t);
}

static void finish_all(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  int count = (int)w->g->m * block_columns(w->g, w->s), threads = w->kernel->block;
  for (int from = 0; from < count; from += threads) {
    int index = o3_kt_op_const(t, "addi", w->thread, from);
    bool ragged = count - from < threads;
    if (ragged) o3_kt_if(t, o3_kt_cmp_const(t, "slt", index, count));
    finish(w, index);
    if (ragged) o3_kt_end(t);
  }
}

/* ---- The kernel ---- */

static void write_kernel(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  w->shared = o3_kt_value(t, "llvm.mlir.addressof @o3_shared : !llvm.ptr<3>");
  place_block(w);
  place_columns(w);
  if (w->kernel->overlaps) {
    o3_kt_start_next(t);
    o3_kt_wait_for_others(t);
  }
  int zero = o3_kt_value(t, "arith.constant 0.0 : f32");
  for (int i = 0; i < count_sums(w); ++i) w->sums[i] = (o3_kt_carried_t){.init = zero, .type = "f32"};
  if (w->g->b_by_rows)
    sum_rows(w);
  else
    sum_columns(w);
  leave_sums(w);
  finish_all(w);
}

static void write_module(o3_kernel_text_t *t, void *context) {
  writer_t *w = context;
  w->t = t;
  o3_kt_begin_module(t);
  o3_gemm_write_epilogue(t, w->g, w->kernel->name);
  o3_kt_begin_kernel(t, w->kernel, 1);
  write_kernel(w);
  o3_kt_end_kernel(t);
}

static void set_launch(const o3_gemm_t *g, const o3_gemv_schedule_t *s, o3_gpu_kernel_t *kernel) {
  int width = block_columns(g, s), groups = g->b_by_rows ? s->warps : s->sharing;
  kernel->grid[0] = (int)(ceil_div(g->n, width) * g->batch[0] * g->batch[1]);
  kernel->grid[1] = kernel->grid[2] = kernel->cluster = 1;
  kernel->block = s->warps * WARP;
  int sums = groups * group_sums(g, s);
  kernel->shared_bytes = (sums + sums / 32) * 4;
  for (int i = 0; i < 3 + g->num_extras; ++i) o3_gpu_kernel_add_pointer(kernel, i);
}

o3_status_t o3_gemv_build(const o3_gemm_t *gemm, const o3_gemv_schedule_t *schedule, bool overlaps,
                          o3_gpu_kernel_t *kernel) {
  char stem[96];
  *kernel = (o3_gpu_kernel_t){.overlaps = overlaps};
  set_launch(gemm, schedule, kernel);
  writer_t w = {.g = gemm, .s = schedule, .kernel = kernel};
  snprintf(stem, sizeof(stem), "o3k_%s_gemv_%dx%dx%d__sm70", o3_gemm_type(gemm->element), (int)gemm->m,
           block_columns(gemm, schedule), schedule->depth);
  return o3_kt_write(kernel, stem, write_module, &w);
}

/* ---- What it takes ---- */

/* Elements from the start of a buffer to the end of its last matrix. */
static int64_t extent(const o3_gemm_t *g, const int64_t batch[2], int64_t rows, int64_t pitch) {
  return (g->batch[0] - 1) * batch[0] + (g->batch[1] - 1) * batch[1] + rows * pitch;
}

const char *o3_gemv_refuse(const o3_gemm_t *g) {
  if (g->window) return "it is a convolution";
  if (g->rows_at_run_time) return "its rows are known only at run time";
  if (g->m > O3_GEMV_MAX_ROWS) return "it has more than 8 rows";
  if (g->m < 1 || g->n < 1 || g->k < 1 || g->batch[0] * g->batch[1] < 1) return "a size is zero";
  int64_t largest = extent(g, g->b_batch, g->b_by_rows ? g->k : g->n, g->b_pitch);
  int64_t others[] = {extent(g, g->a_batch, g->m, g->a_pitch), extent(g, g->d_batch, g->m, g->d_pitch)};
  for (int i = 0; i < 2; ++i) largest = others[i] > largest ? others[i] : largest;
  return largest > INT32_MAX ? "a matrix has more than 2^31 elements" : NULL;
}

/* ---- Schedules ---- */

/* The most elements of a vector, a power of two, at whose multiples all rows of an operand start. */
static int aligned(int most, int64_t size, int64_t pitch, const int64_t batch[2]) {
  while (most > 1 && (size % most || pitch % most || batch[0] % most || batch[1] % most)) most /= 2;
  return most;
}

static int64_t count_blocks(const o3_gemm_t *g, const o3_gemv_schedule_t *s) {
  return ceil_div(g->n, block_columns(g, s)) * g->batch[0] * g->batch[1];
}

/* 64 bytes of a row are the least that memory gives at once: so narrow blocks, of many threads, unless that
 * were more blocks than the card runs at a time. Measured on an H200 with 768 to 11,008 columns: 3.0 to 4.0
 * TB/s of those that memory cannot keep in the caches. */
static o3_gemv_schedule_t schedule_rows(const o3_gemm_t *g, const o3_gpu_t *gpu) {
  enum { LINE_BYTES = 64 };
  int most = LOAD_BYTES / bytes_of(g->element);
  o3_gemv_schedule_t s = {.warps = 16, .columns = 1, .sharing = 1};
  s.vector = aligned(most, g->n, g->b_pitch, g->b_batch);
  s.depth = aligned(MAX_DEPTH, g->k, g->m > 1 ? g->a_pitch : 0, g->a_batch);
  s.lanes = LINE_BYTES / (s.vector * bytes_of(g->element));
  if (s.lanes > WARP) s.lanes = WARP;
  while (s.lanes < WARP && 2 * count_blocks(g, &s) > 3 * (int64_t)gpu->multiprocessors) s.lanes *= 2;
  if (count_blocks(g, &s) > gpu->multiprocessors || g->m * s.vector > MAX_SUMS / 2) s.warps = 8;
  return s;
}

/* Few rows: four vectors of a column at a time, and as many warps for it as have four. More rows, whose
 * elements are read for each column: columns share them. Measured with 768 to 11,008 columns: up to 4.2 TB/s.
 */
static o3_gemv_schedule_t schedule_columns(const o3_gemm_t *g, const o3_gpu_t *gpu) {
  enum { FEW_ROWS = 2, MOST = 4 };
  int most = LOAD_BYTES / bytes_of(g->element), a;
  o3_gemv_schedule_t s = {.warps = 8, .lanes = WARP, .columns = MOST, .depth = 1, .sharing = 1};
  s.vector = aligned(most, g->k, g->b_pitch, g->b_batch);
  a = aligned(most, g->k, g->m > 1 ? g->a_pitch : 0, g->a_batch);
  s.vector = a < s.vector ? a : s.vector;
  int64_t vectors = ceil_div(g->k, (int64_t)WARP * s.vector); /* of a lane of a warp that shares nothing */
  if (g->m <= FEW_ROWS) {
    while (s.depth < MOST && 2 * s.depth <= vectors) s.depth *= 2;
    s.columns = MOST / s.depth;
    while (s.sharing < s.warps && 2 * s.sharing * s.depth <= vectors && s.sharing < MOST) s.sharing *= 2;
    return s;
  }
  s.sharing = 2;
  while (s.sharing < s.warps && 2 * s.sharing <= vectors &&
         count_blocks(g, &s) < 2 * (int64_t)gpu->multiprocessors)
    s.sharing *= 2;
  return s;
}

o3_gemv_schedule_t o3_gemv_schedule(const o3_gemm_t *gemm, const o3_gpu_t *gpu) {
  return gemm->b_by_rows ? schedule_rows(gemm, gpu) : schedule_columns(gemm, gpu);
}

static bool is_power(int value, int most) {
  return value >= 1 && value <= most && (value & (value - 1)) == 0;
}

/* Vectors are as long as alignment allows at most, and so is by rows of B what is read of A at a time. */
const char *o3_gemv_refuse_schedule(const o3_gemm_t *g, const o3_gemv_schedule_t *s, const o3_gpu_t *gpu) {
  const o3_gemv_schedule_t own = o3_gemv_schedule(g, gpu);
  if (!is_power(s->warps, MAX_WARPS) || !is_power(s->lanes, WARP))
    return "its warps or lanes are not 1, 2, 4, 8, 16 or 32";
  if (!is_power(s->vector, own.vector)) return "its vectors are longer than the operands are aligned";
  if (!is_power(s->depth, g->b_by_rows ? own.depth : MAX_DEPTH))
    return "its depth is not 1, 2, 4 or 8, or not aligned";
  if (!is_power(s->columns, MAX_COLUMNS)) return "its columns are not 1, 2, 4 or 8";
  return is_power(s->sharing, s->warps) ? NULL : "more warps share columns than there are";
}
