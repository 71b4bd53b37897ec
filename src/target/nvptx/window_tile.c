/* A block that has several rows reads those between them once: for windows of 3 x 3 that step by one, 8 rows
 * read 10 instead of 24. Squares read least; what decides among the rest is how many threads are left
 * without an output. */
#include "target/nvptx/window_tile.h"

#include "schedule/gpu.h"

/* A vector from the second-level cache takes as long as SHARE from the first. */
enum { WARP = O3_GPU_WARP, MOST_LANES = 16, LINE_LANES = 8, SHARE = 4 };

static int64_t up(int64_t count, int64_t by) { return (count + by - 1) / by; }

static int64_t runs_of_row(const o3_window_outputs_t *o) { return up(o->outputs[0], o->run); }

int64_t o3_window_threads(const o3_window_outputs_t *o) {
  return o->images * o->outputs[1] * runs_of_row(o) * o->vectors;
}

/* Small blocks where the threads are few: one for each multiprocessor. */
static int most_threads(const o3_window_outputs_t *o) {
  int64_t threads = o3_window_threads(o);
  return threads < 32768 ? 64 : threads < 131072 ? 128 : 256;
}

/* A line of memory, or else the most that have no rest. */
static int choose_lanes(int64_t vectors) {
  if (vectors % LINE_LANES == 0) return LINE_LANES;
  int lanes = MOST_LANES;
  while (vectors % lanes) --lanes;
  return lanes < 4 && vectors <= 2 * MOST_LANES ? (int)vectors : lanes;
}

/* Positions of the image along an axis that |count| outputs in a row read. */
static int64_t span(const o3_window_outputs_t *o, int axis, int64_t count) {
  return (count - 1) * o->steps[axis] + (o->taps[axis] - 1) * o->dilations[axis] + 1;
}

static int threads_of(const o3_window_tile_t *t) {
  return (int)up((int64_t)t->lanes * t->runs * t->rows, WARP) * WARP;
}

/* Vectors that go through both caches. */
static int64_t cost_of(const o3_window_outputs_t *o, const o3_window_tile_t *t) {
  int64_t tiles = up(runs_of_row(o), t->runs) * up(o->outputs[1], t->rows);
  int64_t read = span(o, 0, (int64_t)t->runs * o->run) * span(o, 1, t->rows) * t->lanes;
  return tiles * (SHARE * read + threads_of(t) * o->taps[1] * span(o, 0, o->run));
}

void o3_window_tile_choose(const o3_window_outputs_t *o, o3_window_tile_t *tile) {
  int most = most_threads(o);
  int64_t best = INT64_MAX;
  o3_window_tile_t t = {.lanes = choose_lanes(o->vectors), .runs_of_row = runs_of_row(o)};
  *tile = t;
  tile->runs = tile->rows = 1;
  for (t.runs = 1; t.runs <= t.runs_of_row && t.lanes * t.runs <= most; ++t.runs) {
    for (t.rows = 1; t.rows <= o->outputs[1] && t.lanes * t.runs * t.rows <= most; ++t.rows) {
      int64_t cost = cost_of(o, &t);
      if (cost >= best) continue;
      best = cost;
      *tile = t;
    }
  }
  tile->block = threads_of(tile);
  tile->counts[0] = o->vectors / tile->lanes;
  tile->counts[1] = up(tile->runs_of_row, tile->runs);
  tile->counts[2] = up(o->outputs[1], tile->rows);
}

int64_t o3_window_tile_blocks(const o3_window_outputs_t *o, const o3_window_tile_t *tile) {
  return tile->counts[0] * tile->counts[1] * tile->counts[2] * o->images;
}

/* |base| * |count| + |at|, and whether it is below |size|, where tiles may reach beyond. */
static int place_of(o3_kernel_text_t *t, int base, int count, int at, int64_t size, int *valid) {
  int place = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", base, count), at);
  if (size % count == 0) return place;
  int fits = o3_kt_cmp_const(t, "slt", place, size);
  *valid = *valid < 0 ? fits : o3_kt_value(t, "arith.andi %%v%d, %%v%d : i1", *valid, fits);
  return place;
}

o3_window_place_t o3_window_tile_place(o3_kernel_text_t *t, const o3_window_outputs_t *o,
                                       const o3_window_tile_t *tile) {
  o3_window_place_t p = {.valid = -1};
  int thread = o3_kt_thread(t), block = o3_kt_block(t), used = tile->lanes * tile->runs * tile->rows;
  if (used < tile->block) p.valid = o3_kt_cmp_const(t, "ult", thread, used);
  int lane = o3_kt_split(t, &thread, tile->lanes), run = o3_kt_split(t, &thread, tile->runs);
  p.vector = o3_kt_op(t, "addi",
                      o3_kt_op_const(t, "muli", o3_kt_split(t, &block, tile->counts[0]), tile->lanes), lane);
  int x = o3_kt_split(t, &block, tile->counts[1]), y = o3_kt_split(t, &block, tile->counts[2]);
  p.x = o3_kt_op_const(t, "muli", place_of(t, x, tile->runs, run, tile->runs_of_row, &p.valid), o->run);
  p.y = place_of(t, y, tile->rows, thread, o->outputs[1], &p.valid);
  p.image = block;
  return p;
}
