/* A thread has 8 channels, 16 bytes of half precision or 32 of f32, and a run of outputs along x, whose
 * windows overlap: each position of a row of the image is loaded once, and each row of weights. What is
 * outside of the image is read at its first position and becomes zero. Long runs save loads, short ones fill
 * a card. */
#include "target/nvptx/depthwise_kernel.h"

#include <stdio.h>

#include "schedule/gpu.h"
#include "target/nvptx/product_text.h"
#include "target/nvptx/window_tile.h"

enum { LANES = 8, MAX_TAPS = 64, MAX_RUN = 8, MAX_SPAN = 64 };
enum { X, Y, IMAGE };

typedef struct writer {
  o3_kernel_text_t *t;
  const o3_gemm_t *g;
  const o3_gemm_window_t *win;
  const o3_gpu_kernel_t *kernel;
  int run, multiprocessors;
  o3_window_outputs_t outputs;
  o3_window_tile_t tile;
  char factor[24], wide[16]; /* the types of 8 factors and of 8 sums */
} writer_t;

/* Where a thread computes: its first channel, output and image; whether there is one, or -1. */
typedef struct place {
  int channel, x, y, image, valid;
} place_t;

/* ---- Places ---- */

static o3_window_outputs_t outputs_of(const o3_gemm_t *g, int run) {
  const o3_gemm_window_t *w = g->window;
  o3_window_outputs_t o = {.vectors = g->n / LANES, .images = w->outputs[IMAGE], .run = run};
  for (int i = 0; i < 2; ++i) {
    o.outputs[i] = w->outputs[i];
    o.taps[i] = w->taps[i];
    o.steps[i] = w->steps[i];
    o.dilations[i] = w->dilations[i];
  }
  return o;
}

static int64_t count_threads(const o3_gemm_t *g, int run) {
  o3_window_outputs_t outputs = outputs_of(g, run);
  return o3_window_threads(&outputs);
}

static place_t thread_place(writer_t *w) {
  o3_window_place_t found = o3_window_tile_place(w->t, &w->outputs, &w->tile);
  int channel = o3_kt_op_const(w->t, "muli", found.vector, LANES);
  return (place_t){channel, found.x, found.y, found.image, found.valid};
}

static int load_vector(writer_t *w, int argument, int index, o3_gpu_element_t element) {
  o3_kernel_text_t *t = w->t;
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8", argument);
  int at = o3_kt_global(t, base, index, o3_gemm_type(element));
  return o3_kt_value(t, "llvm.load %%v%d {alignment = 16 : i64} : !llvm.ptr<1> -> vector<%dx%s>", at, LANES,
                     o3_gemm_type(element));
}

static int widen(writer_t *w, int value) {
  if (w->g->element == O3_GPU_F32) return value;
  return o3_kt_value(w->t, "arith.extf %%v%d : %s to %s", value, w->factor, w->wide);
}

/* ---- Sums ---- */

/* A row of the image below one of the windows: where it starts, and whether it is inside. */
typedef struct row {
  int inside, start;
} row_t;

static row_t window_row(writer_t *w, const place_t *p, int64_t tap) {
  o3_kernel_text_t *t = w->t;
  const o3_gemm_window_t *win = w->win;
  row_t row;
  int y = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", p->y, win->steps[Y]),
                         tap * win->dilations[Y] - win->lows[Y]);
  row.inside = o3_kt_cmp_const(t, "ult", y, win->sizes[Y]);
  y = o3_kt_select(t, row.inside, y, o3_kt_i32(t, 0), "i32");
  int image = o3_kt_op_const(t, "muli", p->image, win->strides[IMAGE]);
  row.start = o3_kt_op(t, "addi", image, o3_kt_op_const(t, "muli", y, win->strides[Y]));
  row.start = o3_kt_op(t, "addi", row.start, p->channel);
  return row;
}

/* The position |offset| behind the first one of the run's windows, as f32. */
static int load_position(writer_t *w, const place_t *p, const row_t *row, int64_t offset) {
  o3_kernel_text_t *t = w->t;
  const o3_gemm_window_t *win = w->win;
  int x = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", p->x, win->steps[X]), offset - win->lows[X]);
  int fits = o3_kt_cmp_const(t, "ult", x, win->sizes[X]);
  int inside = o3_kt_value(t, "arith.andi %%v%d, %%v%d : i1", fits, row->inside);
  x = o3_kt_select(t, fits, x, o3_kt_i32(t, 0), "i32");
  int index = o3_kt_op(t, "addi", row->start, o3_kt_op_const(t, "muli", x, win->strides[X]));
  int zero = o3_kt_value(t, "arith.constant dense<0.0> : %s", w->factor);
  return widen(w, o3_kt_select(t, inside, load_vector(w, 0, index, w->g->element), zero, w->factor));
}

/* Adds a row of taps to the sums of the run. */
static void add_row(writer_t *w, const place_t *p, int64_t tap, int *sums) {
  o3_kernel_text_t *t = w->t;
  const o3_gemm_window_t *win = w->win;
  int positions[MAX_SPAN];
  row_t row = window_row(w, p, tap);
  for (int i = 0; i < MAX_SPAN; ++i) positions[i] = -1;
  for (int64_t k = 0; k < win->taps[X]; ++k) {
    int at = o3_kt_op_const(t, "addi", p->channel, (tap * win->taps[X] + k) * w->g->b_pitch);
    int weights = widen(w, load_vector(w, 1, at, w->g->element));
    for (int r = 0; r < w->run; ++r) {
      int64_t offset = r * win->steps[X] + k * win->dilations[X];
      if (positions[offset] < 0) positions[offset] = load_position(w, p, &row, offset);
      sums[r] =
          o3_kt_value(t, "math.fma %%v%d, %%v%d, %%v%d : %s", positions[offset], weights, sums[r], w->wide);
    }
  }
}

/* ---- The result ---- */

/* Whether 8 channels of it lie side by side at a multiple of 16 bytes. */
static bool is_vector(const o3_gemm_extra_t *e) {
  return e->strides[O3_GEMM_COLUMN] == 1 && e->strides[O3_GEMM_ROW] % LANES == 0;
}

/* The extra operand |number| for the 8 channels of row |row| of the result. */
static void load_extra(writer_t *w, const place_t *p, int number, int row, o3_gemm_pair_extras_t *pairs) {
  o3_kernel_text_t *t = w->t;
  const o3_gemm_extra_t *e = &w->g->extras[number];
  const char *type = o3_gemm_type(e->element);
  int index = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", row, e->strides[O3_GEMM_ROW]),
                       o3_kt_op_const(t, "muli", p->channel, e->strides[O3_GEMM_COLUMN]));
  int vector = is_vector(e) ? load_vector(w, 2 + number, index, e->element) : -1;
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8", 2 + number);
  for (int i = 0; i < LANES; ++i) {
    int *value = &pairs[i / 2].values[number][i % 2];
    if (vector >= 0) {
      *value =
          o3_kt_value(t, "vector.extract %%v%d[%d] : %s from vector<%dx%s>", vector, i, type, LANES, type);
      continue;
    }
    int at = o3_kt_op_const(t, "addi", index, i * e->strides[O3_GEMM_COLUMN]);
    *value = o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<1> -> %s", o3_kt_global(t, base, at, type), type);
  }
}

/* |row|: of the result. */
static void store_sums(writer_t *w, const place_t *p, int row, int sums) {
  o3_kernel_text_t *t = w->t;
  o3_gemm_pair_extras_t pairs[LANES / 2];
  int v[LANES];
  const char *out = o3_gemm_type(w->g->out);
  for (int i = 0; i < w->g->num_extras; ++i) load_extra(w, p, i, row, pairs);
  for (int i = 0; i < LANES; i += 2) {
    int two[2];
    for (int k = 0; k < 2; ++k)
      two[k] = o3_kt_value(t, "vector.extract %%v%d[%d] : f32 from %s", sums, i + k, w->wide);
    o3_gemm_finish_pair(t, w->g, w->kernel->name, two, &pairs[i / 2], v + i);
  }
  int all = o3_kt_value(
      t, "vector.from_elements %%v%d, %%v%d, %%v%d, %%v%d, %%v%d, %%v%d, %%v%d, %%v%d : vector<%dx%s>", v[0],
      v[1], v[2], v[3], v[4], v[5], v[6], v[7], LANES, out);
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8",
                         2 + w->g->num_extras);
  int index = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", row, w->g->n), p->channel);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 16 : i64} : vector<%dx%s>, !llvm.ptr<1>", all,
             o3_kt_global(t, base, index, out), LANES, out);
}

static void write_thread(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  const o3_gemm_window_t *win = w->win;
  place_t p = thread_place(w);
  int sums[MAX_RUN];
  if (p.valid >= 0) o3_kt_if(t, p.valid);
  int zero = o3_kt_value(t, "arith.constant dense<0.0> : %s", w->wide);
  for (int r = 0; r < w->run; ++r) sums[r] = zero;
  for (int64_t tap = 0; tap < win->taps[Y]; ++tap) add_row(w, &p, tap, sums);
  int first = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", p.image, win->outputs[Y]), p.y);
  first = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", first, win->outputs[X]), p.x);
  for (int r = 0; r < w->run; ++r) {
    bool ragged = r > 0 && win->outputs[X] % w->run != 0;
    if (ragged) o3_kt_if(t, o3_kt_cmp_const(t, "slt", p.x, win->outputs[X] - r));
    store_sums(w, &p, o3_kt_op_const(t, "addi", first, r), sums[r]);
    if (ragged) o3_kt_end(t);
  }
  if (p.valid >= 0) o3_kt_end(t);
}

/* ---- The kernel ---- */

/* Left to itself the assembler takes 190 registers for a run of 4, to have all loads in flight: that suits
 * few threads. Many are to fit on a multiprocessor, so that some compute while others wait; large windows
 * would spill what 512 threads leave them. */
static int blocks_of(const writer_t *w) {
  enum { MANY = 512, SOME = 384, SMALL = 50 };
  const o3_gemm_window_t *win = w->win;
  int block = w->kernel->block;
  int64_t bytes = win->taps[X] * win->taps[Y] * o3_gpu_element_info(w->g->element)->bytes;
  if (count_threads(w->g, w->run) < (int64_t)MANY * w->multiprocessors) return 1;
  if (bytes > SMALL) return SOME / block;
  return (MANY + block - 1) / block;
}

static void write_module(o3_kernel_text_t *t, void *context) {
  writer_t *w = context;
  w->t = t;
  o3_kt_begin_module(t);
  o3_gemm_write_epilogue(t, w->g, w->kernel->name);
  o3_kt_begin_kernel(t, w->kernel, blocks_of(w));
  if (w->kernel->overlaps) {
    o3_kt_start_next(t);
    o3_kt_wait_for_others(t);
  }
  write_thread(w);
  o3_kt_end_kernel(t);
}

/* Positions that a run reads of a row. */
static int64_t span(const o3_gemm_window_t *w, int run) {
  return (run - 1) * w->steps[X] + (w->taps[X] - 1) * w->dilations[X] + 1;
}

const char *o3_depthwise_refuse(const o3_gemm_t *g) {
  const o3_gemm_window_t *w = g->window;
  if (g->n % LANES || g->b_pitch % LANES) return "the channels are no multiple of 8";
  if (w->taps[X] * w->taps[Y] > MAX_TAPS || span(w, 1) > MAX_SPAN) return "its window is large";
  if (g->m < 1 || g->n < 1 || w->sizes[X] < 1 || w->sizes[Y] < 1) return "a size is zero";
  if (g->m * g->n > INT32_MAX || w->sizes[IMAGE] * w->strides[IMAGE] > INT32_MAX)
    return "an image has more than 2^31 elements";
  return NULL;
}

/* Windows that step do not overlap much. */
int o3_depthwise_run(const o3_gemm_t *g, int multiprocessors) {
  enum { ENOUGH = 64 }; /* threads a multiprocessor: fewer leave it waiting for each other's loads */
  int run = g->window->steps[X] == 1 ? 4 : 1;
  while (run > 1 &&
         (count_threads(g, run) < (int64_t)ENOUGH * multiprocessors || span(g->window, run) > MAX_SPAN))
    run /= 2;
  return run;
}

const char *o3_depthwise_refuse_run(const o3_gemm_t *g, int run) {
  bool fits = run >= 1 && run <= MAX_RUN && span(g->window, run) <= MAX_SPAN;
  return fits ? NULL : "a thread's outputs are not 1 to 8, or read too wide a part of the image";
}

o3_status_t o3_depthwise_build(const o3_gemm_t *gemm, int run, const o3_gpu_t *gpu, o3_gpu_kernel_t *kernel) {
  writer_t w = {
      .g = gemm, .win = gemm->window, .kernel = kernel, .run = run, .multiprocessors = gpu->multiprocessors};
  char stem[64];
  *kernel = (o3_gpu_kernel_t){0};
  snprintf(w.factor, sizeof(w.factor), "vector<%dx%s>", LANES, o3_gemm_type(gemm->element));
  snprintf(w.wide, sizeof(w.wide), "vector<%dxf32>", LANES);
  w.outputs = outputs_of(gemm, run);
  o3_window_tile_choose(&w.outputs, &w.tile);
  kernel->block = w.tile.block;
  kernel->grid[0] = (int)o3_window_tile_blocks(&w.outputs, &w.tile);
  kernel->grid[1] = kernel->grid[2] = kernel->cluster = 1;
  kernel->overlaps = gpu->sm >= 90;
  O3_GPU_KERNEL_NOTE(kernel, {"run", run}, {"lanes", w.tile.lanes}, {"runs", w.tile.runs},
                     {"rows", w.tile.rows});
  for (int i = 0; i < 3 + gemm->num_extras; ++i) o3_gpu_kernel_add_pointer(kernel, i);
  snprintf(stem, sizeof(stem), "o3k_%s_depthwise_%dx%d__sm80", o3_gemm_type(gemm->out), (int)w.win->taps[Y],
           (int)w.win->taps[X]);
  return o3_kt_write(kernel, stem, write_module, &w);
}
