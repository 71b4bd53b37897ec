/* A thread has the same chunk of some lines, as far apart as there are threads for: addresses within a matrix
 * differ by constants. Positions of k that are channels of a tap of a window are found once a stage for all
 * lines. */
#include "target/nvptx/mma_copy.h"

#include <stdio.h>

static int bytes_of(const o3_mma_copy_t *c) { return o3_gpu_element_info(c->block.element)->bytes; }
static int elements_of_chunk(const o3_mma_copy_t *c) { return O3_MMA_CHUNK / bytes_of(c); }
static int chunks_of_line(const o3_mma_copy_t *c) {
  return c->block.line_bytes * c->block.panels / O3_MMA_CHUNK;
}
static int pieces_of_chunk(const o3_mma_copy_t *c) { return elements_of_chunk(c) / c->access; }

/* From an item of a thread to its next one. */
static int lines_apart(const o3_mma_copy_t *c) { return c->threads / chunks_of_line(c); }
static int count_items(const o3_mma_copy_t *c) {
  return (c->block.lines + lines_apart(c) - 1) / lines_apart(c);
}

static const o3_gemm_window_t *window_of(const o3_mma_copy_t *c) { return c->is_a ? c->gemm->window : NULL; }
static int64_t pitch_of(const o3_mma_copy_t *c) { return c->is_a ? c->gemm->a_pitch : c->gemm->b_pitch; }

/* ---- Sizes of copies ---- */

static int64_t alignment(int64_t so_far, int64_t value) {
  while (value % so_far) so_far /= 2;
  return so_far;
}

int o3_mma_copy_access(const o3_gemm_t *g, bool is_a) {
  int64_t access = O3_MMA_CHUNK / o3_gpu_element_info(g->element)->bytes;
  const o3_gemm_window_t *w = is_a ? g->window : NULL;
  if (w) {
    access = alignment(access, w->channels);
    for (int i = 0; i < 3; ++i) access = alignment(access, w->strides[i]);
    return (int)access;
  }
  access = alignment(access, !is_a && g->b_by_rows ? g->n : g->k);
  access = alignment(access, is_a ? g->a_pitch : g->b_pitch);
  for (int i = 0; i < 2; ++i) access = alignment(access, is_a ? g->a_batch[i] : g->b_batch[i]);
  return (int)access;
}

/* ---- What stays ---- */

static int scaled(o3_kernel_text_t *t, int value, int64_t by) {
  return by == 1 ? value : o3_kt_op_const(t, "muli", value, by);
}

static int batch_offset(o3_kernel_text_t *t, const o3_mma_copy_t *c, const int batch[2], int position) {
  const int64_t *strides = c->is_a ? c->gemm->a_batch : c->gemm->b_batch;
  for (int i = 0; i < 2; ++i) {
    if (strides[i]) position = o3_kt_op(t, "addi", position, scaled(t, batch[i], strides[i]));
  }
  return position;
}

/* Of the window of |row|: the element of its first tap, which may be outside, and where that is. */
static void begin_window(o3_kernel_text_t *t, o3_mma_copy_t *c, int item, int row) {
  const o3_gemm_window_t *w = window_of(c);
  int rest = row, element = -1;
  for (int i = 0; i < 2; ++i) {
    int at = o3_kt_split(t, &rest, w->outputs[i]);
    c->rows[item][i] = o3_kt_op_const(t, "subi", scaled(t, at, w->steps[i]), w->lows[i]);
    int offset = scaled(t, c->rows[item][i], w->strides[i]);
    element = i ? o3_kt_op(t, "addi", element, offset) : offset;
  }
  c->windows[item] = o3_kt_op(t, "addi", element, scaled(t, rest, w->strides[2]));
}

void o3_mma_copy_begin(o3_kernel_text_t *t, o3_mma_copy_t *c, int thread, const o3_gemm_place_t *place) {
  int chunks = chunks_of_line(c);
  c->chunk = o3_kt_op_const(t, "remui", thread, chunks);
  c->line = o3_kt_op_const(t, "divui", thread, chunks);
  int element = scaled(t, c->chunk, elements_of_chunk(c));
  int outer = c->by_rows ? c->line : o3_kt_op(t, "addi", c->first, c->line);
  if (c->by_rows) element = o3_kt_op(t, "addi", element, c->first);
  if (!window_of(c))
    c->position =
        batch_offset(t, c, place->batch, o3_kt_op(t, "addi", scaled(t, outer, pitch_of(c)), element));
  for (int i = 0; i < count_items(c); ++i) {
    int line = o3_kt_op_const(t, "addi", c->line, (int64_t)i * lines_apart(c));
    c->places[i] = o3_mma_chunk_byte(t, &c->block, line, c->chunk);
    if (window_of(c)) begin_window(t, c, i, o3_kt_op(t, "addi", c->first, line));
  }
}

/* ---- Sources ---- */

/* Pieces number |piece| of the chunks of a thread: an element that their addresses count from; whether they
 * are inside as far as that is the same for all (-1: they are); of windows: how far the tap is from the
 * first.
 */
typedef struct source {
  int element, inside, tap[2];
} source_t;

static int both(o3_kernel_text_t *t, int a, int b) {
  if (a < 0 || b < 0) return a < 0 ? b : a;
  return o3_kt_value(t, "arith.andi %%v%d, %%v%d : i1", a, b);
}

/* -1 when |size| is a whole number of tiles. */
static int below(o3_kernel_text_t *t, int at, int64_t size, int64_t tile) {
  return size % tile ? o3_kt_cmp_const(t, "slt", at, size) : -1;
}

static void find_tap(o3_kernel_text_t *t, const o3_mma_copy_t *c, int k, source_t *s) {
  const o3_gemm_window_t *w = window_of(c);
  int tap = o3_kt_op_const(t, "divui", k, w->channels);
  s->element = o3_kt_op_const(t, "remui", k, w->channels);
  int taps[2] = {o3_kt_op_const(t, "remui", tap, w->taps[0]), o3_kt_op_const(t, "divui", tap, w->taps[0])};
  for (int i = 0; i < 2; ++i) {
    s->tap[i] = scaled(t, taps[i], w->dilations[i]);
    s->element = o3_kt_op(t, "addi", s->element, scaled(t, s->tap[i], w->strides[i]));
  }
}

static source_t find_source(o3_kernel_text_t *t, const o3_mma_copy_t *c, int k, int piece) {
  source_t s = {.inside = -1};
  int further = piece * c->access;
  int own = o3_kt_op_const(t, "addi", scaled(t, c->chunk, elements_of_chunk(c)), further);
  if (c->by_rows) {
    int row = o3_kt_op_const(t, "addi", scaled(t, k, pitch_of(c)), further);
    s.element = o3_kt_op(t, "addi", c->position, row);
    int columns = chunks_of_line(c) * elements_of_chunk(c);
    s.inside = below(t, o3_kt_op(t, "addi", c->first, own), c->gemm->n, columns);
    return s;
  }
  int at = o3_kt_op(t, "addi", k, own);
  s.inside = below(t, at, c->gemm->k, c->depth);
  if (window_of(c))
    find_tap(t, c, at, &s);
  else
    s.element = o3_kt_op(t, "addi", c->position, o3_kt_op_const(t, "addi", k, further));
  return s;
}

/* Whether a tap may be outside of the image along dimension |i|. */
static bool reaches_out(const o3_gemm_window_t *w, int i) {
  int64_t last = (w->outputs[i] - 1) * w->steps[i] + (w->taps[i] - 1) * w->dilations[i] - w->lows[i];
  return w->lows[i] > 0 || last >= w->sizes[i];
}

/* Whether the piece of item |item| is inside; -1: it is. */
static int is_inside(o3_kernel_text_t *t, const o3_mma_copy_t *c, const source_t *s, int k, int item) {
  const o3_gemm_window_t *w = window_of(c);
  int line = o3_kt_op_const(t, "addi", c->line, (int64_t)item * lines_apart(c));
  if (c->by_rows) return both(t, s->inside, below(t, o3_kt_op(t, "addi", k, line), c->gemm->k, c->depth));
  int64_t size = c->is_a ? c->gemm->m : c->gemm->n;
  int own = o3_kt_op(t, "addi", c->first, line);
  bool told = c->is_a && c->gemm->rows_at_run_time;
  int inside =
      both(t, s->inside, told ? o3_kt_cmp(t, "slt", own, c->end) : below(t, own, size, c->block.lines));
  for (int i = 0; w && i < 2; ++i) {
    if (!reaches_out(w, i)) continue;
    int at = o3_kt_op(t, "addi", c->rows[item][i], s->tap[i]);
    inside = both(t, inside, o3_kt_cmp_const(t, "ult", at, w->sizes[i]));
  }
  return inside;
}

/* A pointer to element |element|, a value, and |further|, a number. */
static int pointer(o3_kernel_text_t *t, const o3_mma_copy_t *c, int element, int64_t further) {
  const char *type = o3_gemm_type(c->block.element);
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8",
                         c->is_a ? 0 : 1 + c->skipped);
  int at = o3_kt_global(t, base, element, type);
  return further ? o3_kt_value(t, "llvm.getelementptr %%v%d[%lld] : (!llvm.ptr<1>) -> !llvm.ptr<1>, %s", at,
                               (long long)further, type)
                 : at;
}

static int item_element(o3_kernel_text_t *t, const o3_mma_copy_t *c, const source_t *s, int item,
                        int64_t *further) {
  *further = window_of(c) ? 0 : (int64_t)item * lines_apart(c) * pitch_of(c);
  return window_of(c) ? o3_kt_op(t, "addi", c->windows[item], s->element) : s->element;
}

/* Opens a condition where not all threads have item |item|. */
static bool begin_item(o3_kernel_text_t *t, const o3_mma_copy_t *c, int item) {
  int first = item * lines_apart(c);
  if (first + lines_apart(c) <= c->block.lines) return false;
  o3_kt_if(t, o3_kt_cmp_const(t, "slt", c->line, c->block.lines - first));
  return true;
}

static int piece_place(o3_kernel_text_t *t, const o3_mma_copy_t *c, int base, int item, int piece) {
  int at = o3_kt_shared(t, base, c->places[item]);
  return piece ? o3_kt_shared(t, at, o3_kt_i32(t, (int64_t)piece * c->access * bytes_of(c))) : at;
}

/* ---- Copies ---- */

static void issue_one(o3_kernel_text_t *t, const o3_mma_copy_t *c, int to, int from, int inside) {
  int bytes = c->access * bytes_of(c);
  const char *cache = bytes == O3_MMA_CHUNK ? "cg" : "ca";
  if (inside < 0) {
    o3_kt_line(t, "nvvm.cp.async.shared.global %%v%d, %%v%d, %d, cache = %s : !llvm.ptr<3>, !llvm.ptr<1>", to,
               from, bytes, cache);
    return;
  }
  int size = o3_kt_select(t, inside, o3_kt_i32(t, bytes), o3_kt_i32(t, 0), "i32");
  o3_kt_line(
      t, "nvvm.cp.async.shared.global %%v%d, %%v%d, %d, cache = %s, %%v%d : !llvm.ptr<3>, !llvm.ptr<1>, i32",
      to, from, bytes, cache, size);
}

void o3_mma_copy_issue(o3_kernel_text_t *t, const o3_mma_copy_t *c, int k, int base) {
  for (int piece = 0; piece < pieces_of_chunk(c); ++piece) {
    source_t s = find_source(t, c, k, piece);
    for (int i = 0; i < count_items(c); ++i) {
      int64_t further;
      bool part = begin_item(t, c, i);
      int element = item_element(t, c, &s, i, &further);
      issue_one(t, c, piece_place(t, c, base, i, piece), pointer(t, c, element, further),
                is_inside(t, c, &s, k, i));
      if (part) o3_kt_end(t);
    }
  }
}

static void piece_type(const o3_mma_copy_t *c, char type[24]) {
  const char *element = o3_gemm_type(c->block.element);
  if (c->access == 1)
    snprintf(type, 24, "%s", element);
  else
    snprintf(type, 24, "vector<%dx%s>", c->access, element);
}

/* Nothing is read from outside: the first element is instead. */
static int fetch_one(o3_kernel_text_t *t, const o3_mma_copy_t *c, int element, int64_t further, int inside) {
  char type[24];
  piece_type(c, type);
  if (inside >= 0) {
    element = o3_kt_select(t, inside, further ? o3_kt_op_const(t, "addi", element, further) : element,
                           o3_kt_i32(t, 0), "i32");
    further = 0;
  }
  int value = o3_kt_value(t, "llvm.load %%v%d {alignment = %d : i64} : !llvm.ptr<1> -> %s",
                          pointer(t, c, element, further), c->access * bytes_of(c), type);
  if (inside < 0) return value;
  int zero = c->access == 1 ? o3_kt_value(t, "arith.constant 0.0 : %s", type)
                            : o3_kt_value(t, "arith.constant dense<0.0> : %s", type);
  return o3_kt_select(t, inside, value, zero, type);
}

int o3_mma_copy_fetch(o3_kernel_text_t *t, const o3_mma_copy_t *c, int k, int *values) {
  int count = 0;
  for (int piece = 0; piece < pieces_of_chunk(c); ++piece) {
    source_t s = find_source(t, c, k, piece);
    for (int i = 0; i < count_items(c); ++i) {
      int64_t further;
      int element = item_element(t, c, &s, i, &further), inside = is_inside(t, c, &s, k, i);
      int last = c->block.lines - i * lines_apart(c);
      if (last < lines_apart(c)) inside = both(t, inside, o3_kt_cmp_const(t, "slt", c->line, last));
      values[count++] = fetch_one(t, c, element, further, inside);
    }
  }
  return count;
}

int o3_mma_copy_deposit(o3_kernel_text_t *t, const o3_mma_copy_t *c, int base, const int *values) {
  char type[24];
  int count = 0;
  piece_type(c, type);
  for (int piece = 0; piece < pieces_of_chunk(c); ++piece) {
    for (int i = 0; i < count_items(c); ++i) {
      bool part = begin_item(t, c, i);
      o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = %d : i64} : %s, !llvm.ptr<3>", values[count++],
                 piece_place(t, c, base, i, piece), c->access * bytes_of(c), type);
      if (part) o3_kt_end(t);
    }
  }
  return count;
}
