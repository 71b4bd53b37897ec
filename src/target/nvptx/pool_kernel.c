/* A thread has a run of outputs along x. Vectors of memory, 16 bytes where rows allow, are channels of a
 * position, or neighbouring positions where channels come first. Each vector of a row that the run's windows
 * cover is loaded once and joined with those of the window's other rows; then each output joins what is
 * below its taps. What is outside of the image is read at its first position and not used, and what is known
 * to be inside is not asked for. */
#include "target/nvptx/pool_kernel.h"

#include <stdio.h>
#include <string.h>

#include "schedule/gpu.h"
#include "target/nvptx/kernel_text.h"
#include "target/nvptx/window_tile.h"
#include "target/ref/lower_image.h"

enum { VECTOR_BYTES = 16, MAX_RUN = 8, MAX_VECTORS = 256, FULL = 256, THREADS = 256 };
enum { X, Y };

typedef struct pool {
  bool last; /* channels */
  o3_pool_kind_t kind;
  o3_gpu_element_t element;
  int64_t planes, channels; /* planes: images, or channels of all images; channels: 1 where they come first */
  int64_t sizes[2], outputs[2];
  int64_t taps[2], steps[2], dilations[2], lows[2], first[2], end[2];
  int vector, run;           /* elements of a vector, outputs of a thread */
  o3_window_outputs_t shape; /* of channels last */
  o3_window_tile_t tile;
  int x, y; /* arguments */
} pool_t;

typedef struct writer {
  o3_kernel_text_t *t;
  const pool_t *p;
  const o3_gpu_kernel_t *kernel;
  char vector[24], wide[24]; /* types of vectors in memory, and of those that are joined */
  char scalar[8], wide_scalar[8];
  int thread_x, thread_y, plane, channel; /* first output; first channel */
} writer_t;

static const char *type_of(o3_gpu_element_t element) { return o3_gpu_element_info(element)->mlir; }

/* ---- Reading ---- */

static const char *read_window(MlirOperation op, pool_t *pool) {
  int64_t w[8], p[5];
  if (o3_op_ints(op, "o3.window", w, 8) != 8 || o3_op_ints(op, "o3.pool", p, 5) != 5)
    return "its window is not known";
  pool->kind = (o3_pool_kind_t)p[0];
  for (int i = 0; i < 2; ++i) {
    pool->taps[!i] = w[i];
    pool->steps[!i] = w[2 + i];
    pool->dilations[!i] = w[4 + i];
    pool->lows[!i] = w[6 + i];
    pool->first[!i] = p[1 + i];
    pool->end[!i] = p[3 + i];
  }
  return pool->taps[X] * pool->taps[Y] <= O3_POOL_MAX_TAPS ? NULL : "its window is large";
}

static const char *read_shapes(MlirType x, MlirType y, pool_t *pool) {
  int rank = o3_type_rank(x), spatial = 2;
  if ((rank != 4 && rank != 5) || o3_type_rank(y) != rank) return "its images have another rank";
  if (!o3_type_is_static(x) || !o3_type_is_static(y)) return "a size is known only at run time";
  if (o3_type_count(x) > INT32_MAX || o3_type_count(y) > INT32_MAX || o3_type_count(x) < 1 ||
      o3_type_count(y) < 1)
    return "an image has none, or more than 2^31 elements";
  pool->last = rank == 5;
  pool->planes = o3_type_dim(x, 0) * o3_type_dim(x, 1);
  pool->channels = pool->last ? o3_type_dim(x, 4) : 1;
  for (int i = 0; i < 2; ++i) {
    pool->sizes[!i] = o3_type_dim(x, spatial + i);
    pool->outputs[!i] = o3_type_dim(y, spatial + i);
  }
  return NULL;
}

static int64_t span(const pool_t *p, int axis, int64_t count) {
  return (count - 1) * p->steps[axis] + (p->taps[axis] - 1) * p->dilations[axis] + 1;
}

/* Runs of windows that step share little; they are long where threads are more than the card holds. */
static const char *choose_last(pool_t *p, int multiprocessors) {
  p->vector = VECTOR_BYTES / o3_gpu_element_info(p->element)->bytes;
  if (p->channels % p->vector) return "the channels are no multiple of 16 bytes";
  p->run = p->steps[X] == 1 && p->taps[X] > 1 ? MAX_RUN / 2 : 1;
  p->shape = (o3_window_outputs_t){.vectors = p->channels / p->vector, .images = p->planes};
  for (int i = 0; i < 2; ++i) {
    p->shape.outputs[i] = p->outputs[i];
    p->shape.taps[i] = p->taps[i];
    p->shape.steps[i] = p->steps[i];
    p->shape.dilations[i] = p->dilations[i];
  }
  for (;; p->run /= 2) {
    p->shape.run = p->run;
    bool full = o3_window_threads(&p->shape) >= (int64_t)FULL * multiprocessors;
    if (p->run == 1 || (full && span(p, X, p->run) <= MAX_VECTORS)) break;
  }
  o3_window_tile_choose(&p->shape, &p->tile);
  return span(p, X, p->run) > MAX_VECTORS ? "its window is large" : NULL;
}

static int64_t threads_first(const pool_t *p) {
  return p->planes * p->outputs[Y] * ((p->outputs[X] + p->run - 1) / p->run);
}

/* A vector of the result is a run; vectors of rows start at multiples of theirs. */
static const char *choose_first(pool_t *p, int multiprocessors) {
  int most = VECTOR_BYTES / o3_gpu_element_info(p->element)->bytes;
  for (p->run = most; p->run > 1; p->run /= 2) {
    bool filled = (p->outputs[X] + p->run - 1) / p->run * p->run <= p->outputs[X] + p->outputs[X] / 8;
    if (filled && threads_first(p) >= (int64_t)FULL * multiprocessors) break;
  }
  for (p->vector = most; p->sizes[X] % p->vector || p->run * p->steps[X] % p->vector;) p->vector /= 2;
  return span(p, X, p->run) / p->vector + 2 > MAX_VECTORS ? "its window is large" : NULL;
}

static const char *read_site(const o3_kernel_site_t *site, pool_t *pool) {
  MlirOperation op = site->ops[0];
  *pool = (pool_t){0};
  if (site->num_ops != 1 || !o3_str_equal(o3_op_string(op, "o3.kernel"), "pool")) return "it is no pool";
  MlirValue x = o3_kernel_site_loaded(op), y = mlirOperationGetOperand(op, 0);
  o3_gpu_element_t to;
  if (mlirOperationGetNumOperands(op) != 1 || mlirValueIsNull(x)) return "it reads several buffers";
  pool->x = o3_kernel_site_argument(site, x);
  pool->y = o3_kernel_site_argument(site, y);
  if (pool->x < 0 || pool->y < 0) return "an image is no argument";
  if (!o3_kernel_site_element(x, &pool->element) || !o3_kernel_site_element(y, &to) || to != pool->element)
    return "its images are not both of f16, bf16 or f32";
  const char *why = read_window(op, pool);
  if (!why) why = read_shapes(mlirValueGetType(x), mlirValueGetType(y), pool);
  if (why) return why;
  return pool->last ? choose_last(pool, site->gpu->multiprocessors)
                    : choose_first(pool, site->gpu->multiprocessors);
}

/* ---- Loading ---- */

static int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/* Positions of x that a vector covers. */
static int64_t positions_of(const pool_t *p) { return p->last ? 1 : p->vector; }

/* From the run's first window on: the first vector that is read. */
static int64_t first_vector(const pool_t *p) { return floor_div(-p->lows[X], positions_of(p)); }

static int count_vectors(const pool_t *p) {
  return (int)(floor_div(span(p, X, p->run) - 1 - p->lows[X], positions_of(p)) - first_vector(p) + 1);
}

/* Whether |offset| behind the place of every output along |axis|, the last |extent| positions included, is
 * inside; |places| of them |step| apart. */
static bool is_inside(const pool_t *p, int axis, int64_t offset, int64_t extent, int64_t places,
                      int64_t step) {
  return offset >= 0 && (places - 1) * step + offset + extent <= p->sizes[axis];
}

/* |at| where it is inside, else 0; |inside|: -1 when it always is. */
static int place(writer_t *w, int axis, int from, int64_t offset, bool always, int *inside) {
  o3_kernel_text_t *t = w->t;
  int at = o3_kt_op_const(t, "addi", from, offset);
  *inside = -1;
  if (always) return at;
  *inside = o3_kt_cmp_const(t, "ult", at, w->p->sizes[axis]);
  return o3_kt_select(t, *inside, at, o3_kt_i32(t, 0), "i32");
}

/* The first element of row |k| of the windows. */
static int row_start(writer_t *w, int64_t k, int *inside) {
  o3_kernel_text_t *t = w->t;
  const pool_t *p = w->p;
  int64_t offset = k * p->dilations[Y] - p->lows[Y];
  bool always = is_inside(p, Y, offset, 1, p->outputs[Y], p->steps[Y]);
  int y = place(w, Y, o3_kt_op_const(t, "muli", w->thread_y, p->steps[Y]), offset, always, inside);
  int row = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", w->plane, p->sizes[Y]), y);
  row = o3_kt_op_const(t, "muli", row, p->sizes[X] * p->channels);
  return p->last ? o3_kt_op(t, "addi", row, w->channel) : row;
}

static const char *neutral(const pool_t *p) {
  if (p->kind != O3_POOL_MAXIMA) return "0.0";
  return p->element == O3_GPU_F32 ? "0xFF800000" : p->element == O3_GPU_F16 ? "0xFC00" : "0xFF80";
}

static int both(writer_t *w, int a, int b) {
  if (a < 0 || b < 0) return a < 0 ? b : a;
  return o3_kt_value(w->t, "arith.andi %%v%d, %%v%d : i1", a, b);
}

/* Vector |index| of a row, as it is joined. */
static int load(writer_t *w, int row, int row_inside, int index) {
  o3_kernel_text_t *t = w->t;
  const pool_t *p = w->p;
  int inside;
  int64_t offset = (first_vector(p) + index) * positions_of(p);
  int64_t runs = (p->outputs[X] + p->run - 1) / p->run;
  bool always = is_inside(p, X, offset, positions_of(p), runs, p->run * p->steps[X]);
  int x = place(w, X, o3_kt_op_const(t, "muli", w->thread_x, p->steps[X]), offset, always, &inside);
  int at = o3_kt_op(t, "addi", row, o3_kt_op_const(t, "muli", x, p->channels));
  int base = o3_kt_value(t, "llvm.getelementptr %%arg0[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8");
  int value = o3_kt_value(t, "llvm.load %%v%d {alignment = %d : i64} : !llvm.ptr<1> -> %s",
                          o3_kt_global(t, base, at, w->scalar),
                          p->vector * o3_gpu_element_info(p->element)->bytes, w->vector);
  inside = both(w, inside, row_inside);
  if (inside >= 0) {
    int none = o3_kt_value(t, "arith.constant dense<%s> : %s", neutral(p), w->vector);
    value = o3_kt_select(t, inside, value, none, w->vector);
  }
  if (!strcmp(w->vector, w->wide)) return value;
  return o3_kt_value(t, "arith.extf %%v%d : %s to %s", value, w->vector, w->wide);
}

static int join(writer_t *w, int a, int b, const char *type) {
  const char *op = w->p->kind == O3_POOL_MAXIMA ? "maximumf" : "addf";
  return a < 0 ? b : o3_kt_value(w->t, "arith.%s %%v%d, %%v%d : %s", op, a, b, type);
}

/* All rows of the windows, joined. */
static void load_columns(writer_t *w, int *columns) {
  const pool_t *p = w->p;
  int count = count_vectors(p), loaded[MAX_VECTORS];
  for (int i = 0; i < count; ++i) columns[i] = -1;
  for (int64_t k = 0; k < p->taps[Y]; ++k) {
    int inside, row = row_start(w, k, &inside);
    for (int i = 0; i < count; ++i) loaded[i] = load(w, row, inside, i);
    for (int i = 0; i < count; ++i) columns[i] = join(w, columns[i], loaded[i], w->wide);
  }
}

/* ---- Results ---- */

static int element_of(writer_t *w, int vector, int index) {
  return o3_kt_value(w->t, "vector.extract %%v%d[%d] : %s from %s", vector, index, w->wide_scalar, w->wide);
}

/* What is below tap |k| of output |r|: a vector of channels, or an element. */
static int below(writer_t *w, const int *columns, int64_t r, int64_t k) {
  const pool_t *p = w->p;
  int64_t at = r * p->steps[X] + k * p->dilations[X] - p->lows[X] - first_vector(p) * positions_of(p);
  if (p->last) return columns[at];
  return element_of(w, columns[at / p->vector], (int)(at % p->vector));
}

/* Taps along an axis of the window that starts at |start| that a mean counts. */
static int count_along(writer_t *w, int axis, int start) {
  o3_kernel_text_t *t = w->t;
  const pool_t *p = w->p;
  if (p->dilations[axis] == 1) {
    int end = o3_kt_op_const(t, "minsi", o3_kt_op_const(t, "addi", start, p->taps[axis]), p->end[axis]);
    return o3_kt_op(t, "subi", end, o3_kt_op_const(t, "maxsi", start, p->first[axis]));
  }
  int count = o3_kt_i32(t, 0), zero = count, one = o3_kt_i32(t, 1);
  for (int64_t k = 0; k < p->taps[axis]; ++k) {
    int from = o3_kt_op_const(t, "addi", start, k * p->dilations[axis] - p->first[axis]);
    int counts = o3_kt_cmp_const(t, "ult", from, p->end[axis] - p->first[axis]);
    count = o3_kt_op(t, "addi", count, o3_kt_select(t, counts, one, zero, "i32"));
  }
  return count;
}

static bool counts_all(const pool_t *p) {
  for (int i = 0; i < 2; ++i) {
    if (p->first[i] > -p->lows[i]) return false;
    if (span(p, i, p->outputs[i]) - p->lows[i] > p->end[i]) return false;
  }
  return true;
}

/* The number of elements that output |r|'s mean is over, as f32. */
static int count_of(writer_t *w, int r) {
  o3_kernel_text_t *t = w->t;
  const pool_t *p = w->p;
  if (counts_all(p))
    return o3_kt_value(t, "arith.constant %lld.0 : f32", (long long)(p->taps[X] * p->taps[Y]));
  int x = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", w->thread_x, p->steps[X]),
                         r * p->steps[X] - p->lows[X]);
  int y = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", w->thread_y, p->steps[Y]), -p->lows[Y]);
  int all = o3_kt_op(t, "muli", o3_kt_op_const(t, "maxsi", count_along(w, X, x), 0),
                     o3_kt_op_const(t, "maxsi", count_along(w, Y, y), 0));
  return o3_kt_value(t, "arith.sitofp %%v%d : i32 to f32", o3_kt_op_const(t, "maxsi", all, 1));
}

/* |value| / |count|, of |type|. Rounding to half precision hides that a reciprocal is not exact. */
static int divide(writer_t *w, int value, int count, const char *type) {
  o3_kernel_text_t *t = w->t;
  bool exact = w->p->element == O3_GPU_F32;
  if (!exact) {
    int one = o3_kt_value(t, "arith.constant 1.0 : f32");
    count = o3_kt_value(t, "arith.divf %%v%d, %%v%d fastmath<arcp,afn> : f32", one, count);
  }
  if (w->p->last) count = o3_kt_value(t, "vector.broadcast %%v%d : f32 to %s", count, type);
  return o3_kt_value(t, "arith.%s %%v%d, %%v%d : %s", exact ? "divf" : "mulf", value, count, type);
}

/* Output |r| of the run: a vector of channels, or an element. */
static int output(writer_t *w, const int *columns, int r) {
  const pool_t *p = w->p;
  const char *wide = p->last ? w->wide : w->wide_scalar, *narrow = p->last ? w->vector : w->scalar;
  int value = -1;
  for (int64_t k = 0; k < p->taps[X]; ++k) value = join(w, value, below(w, columns, r, k), wide);
  if (p->kind == O3_POOL_MEANS) value = divide(w, value, count_of(w, r), wide);
  if (!strcmp(wide, narrow)) return value;
  return o3_kt_value(w->t, "arith.truncf %%v%d : %s to %s", value, wide, narrow);
}

/* |bytes| of |type| at output |x| of the thread's row. */
static void store(writer_t *w, int value, int x, const char *type, int bytes) {
  o3_kernel_text_t *t = w->t;
  const pool_t *p = w->p;
  int row = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", w->plane, p->outputs[Y]), w->thread_y);
  int at = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", row, p->outputs[X]), x);
  if (p->last) at = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", at, p->channels), w->channel);
  int base = o3_kt_value(t, "llvm.getelementptr %%arg1[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8");
  o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = %d : i64} : %s, !llvm.ptr<1>", value,
             o3_kt_global(t, base, at, w->scalar), bytes, type);
}

static void store_run(writer_t *w, const int *outputs) {
  o3_kernel_text_t *t = w->t;
  const pool_t *p = w->p;
  int bytes = o3_gpu_element_info(p->element)->bytes;
  bool whole = p->outputs[X] % p->run == 0;
  if (!p->last && whole && p->run > 1) {
    int all = o3_kt_name(t);
    char type[24];
    snprintf(type, sizeof(type), "vector<%dx%s>", p->run, w->scalar);
    o3_strbuf_printf(&t->out, "%%v%d = vector.from_elements ", all);
    for (int r = 0; r < p->run; ++r) o3_strbuf_printf(&t->out, "%s%%v%d", r ? ", " : "", outputs[r]);
    o3_kt_line(t, " : %s", type);
    store(w, all, w->thread_x, type, p->run * bytes);
    return;
  }
  for (int r = 0; r < p->run; ++r) {
    bool ragged = r > 0 && !whole;
    if (ragged) o3_kt_if(t, o3_kt_cmp_const(t, "slt", w->thread_x, p->outputs[X] - r));
    store(w, outputs[r], o3_kt_op_const(t, "addi", w->thread_x, r), p->last ? w->vector : w->scalar,
          p->last ? p->vector * bytes : bytes);
    if (ragged) o3_kt_end(t);
  }
}

/* ---- The kernel ---- */

static void find_last(writer_t *w, int *valid) {
  o3_window_place_t place = o3_window_tile_place(w->t, &w->p->shape, &w->p->tile);
  w->thread_x = place.x;
  w->thread_y = place.y;
  w->plane = place.image;
  w->channel = o3_kt_op_const(w->t, "muli", place.vector, w->p->vector);
  *valid = place.valid;
}

static void find_first(writer_t *w, int *valid) {
  o3_kernel_text_t *t = w->t;
  const pool_t *p = w->p;
  int64_t threads = threads_first(p);
  int rest =
      o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", o3_kt_block(t), w->kernel->block), o3_kt_thread(t));
  *valid = threads % w->kernel->block ? o3_kt_cmp_const(t, "ult", rest, threads) : -1;
  w->thread_x =
      o3_kt_op_const(t, "muli", o3_kt_split(t, &rest, (p->outputs[X] + p->run - 1) / p->run), p->run);
  w->thread_y = o3_kt_split(t, &rest, p->outputs[Y]);
  w->plane = rest;
}

static void write_module(o3_kernel_text_t *t, void *context) {
  writer_t *w = context;
  int columns[MAX_VECTORS], outputs[MAX_RUN], valid;
  w->t = t;
  o3_kt_begin_module(t);
  o3_kt_begin_kernel(t, w->kernel, 1);
  if (w->kernel->overlaps) {
    o3_kt_start_next(t);
    o3_kt_wait_for_others(t);
  }
  (w->p->last ? find_last : find_first)(w, &valid);
  if (valid >= 0) o3_kt_if(t, valid);
  load_columns(w, columns);
  for (int r = 0; r < w->p->run; ++r) outputs[r] = output(w, columns, r);
  store_run(w, outputs);
  if (valid >= 0) o3_kt_end(t);
  o3_kt_end_kernel(t);
}

static void set_launch(const pool_t *p, int sm, o3_gpu_kernel_t *kernel) {
  int64_t blocks =
      p->last ? o3_window_tile_blocks(&p->shape, &p->tile) : (threads_first(p) + THREADS - 1) / THREADS;
  kernel->block = p->last ? p->tile.block : THREADS;
  kernel->grid[0] = (int)blocks;
  kernel->grid[1] = kernel->grid[2] = kernel->cluster = 1;
  kernel->overlaps = sm >= 90;
  o3_gpu_kernel_add_pointer(kernel, p->x);
  o3_gpu_kernel_add_pointer(kernel, p->y);
  O3_GPU_KERNEL_NOTE(kernel, {"vector", p->vector}, {"run", p->run});
  if (p->last)
    O3_GPU_KERNEL_NOTE(kernel, {"lanes", p->tile.lanes}, {"runs", p->tile.runs}, {"rows", p->tile.rows});
}

o3_status_t o3_pool_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not) {
  static const char *const NAMES[] = {"maxpool", "meanpool", "sumpool"};
  pool_t pool;
  char stem[64];
  *kernel = (o3_gpu_kernel_t){0};
  *why_not = read_site(site, &pool);
  if (*why_not) return NULL;
  set_launch(&pool, site->sm, kernel);
  writer_t w = {.p = &pool, .kernel = kernel};
  const char *wide = pool.kind == O3_POOL_MAXIMA ? type_of(pool.element) : "f32";
  snprintf(w.scalar, sizeof(w.scalar), "%s", type_of(pool.element));
  snprintf(w.wide_scalar, sizeof(w.wide_scalar), "%s", wide);
  snprintf(w.vector, sizeof(w.vector), "vector<%dx%s>", pool.vector, w.scalar);
  snprintf(w.wide, sizeof(w.wide), "vector<%dx%s>", pool.vector, wide);
  snprintf(stem, sizeof(stem), "o3k_%s_%s_%dx%d__sm80", w.scalar, NAMES[pool.kind], (int)pool.taps[Y],
           (int)pool.taps[X]);
  return o3_kt_write(kernel, stem, write_module, &w);
}
