/* Emission of blocked products (blocked.h).
 *
 *     scf.parallel (outer pixels, strips of rows, pieces of the run, around, blocks in groups)
 *       for rows of the strip
 *         tiles over the piece: call @o3k_f32_tile_...(...)
 *         what follows the product, over the same piece while it is in the cache
 *
 * A task reads all of the depth for pieces of some rows and one group of blocks. A thread has neighbouring
 * tasks (o3rt_parallel_for), and so the same part of the image in each layer, which is in its own cache then.
 * Weights that are more than a core's cache holds would come from memory for each piece and each core: then
 * blocks go before the rows and pieces.
 *
 * A run that fits one piece is cut into tiles of nearly equal size: few pixels would leave the accumulators
 * too few to hide the latency of an FMA.
 */
#include "target/cpu/blocked.h"

#include <stdlib.h>

#include "schedule/cpu_schedule.h"
#include "target/cpu/blocked_match.h"
#include "target/cpu/blocked_row.h"
#include "target/cpu/blocked_tiles.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/loops.h"
#include "target/cpu/sparse_matrix.h"
#include "target/cpu/sparse_rows.h"
#include "target/cpu/tile_after.h"
#include "target/cpu/tile_text.h"
#include "target/cpu/vector_row.h"

enum { MAX_SIDES = 4 };
/* Strips of rows whose number is known at run time only. */
enum { STRIPS_PER_CORE = 4 };

typedef struct o3_blocked_emitter {
  o3_pass_env_t *env;
  MlirModule module;
  o3_blocked_t product;
  o3_schedule_tiles_t schedule;
  o3_tile_t tile;               /* the full one */
  int64_t run, piece;           /* pixels of the run (-1: known at run time) and of a piece */
  int64_t blocks, last_columns; /* whole and partial ones; columns of the last, 16 for convolutions */
  int num_parts;                /* of the last block of channels; 0: it is as others */
  o3_tile_part_t parts[O3_TILE_MAX_PARTS];
  bool joined;              /* the last block, in parts, is computed with the one before it */
  MlirValue strip;          /* rows of a strip */
  MlirValue row_choices[2]; /* of tiles for rows of an image without its border, full blocks and the last
                               one; null if sizes are known */
  int num_before, num_after;
  int num_in_tile; /* of the first ops after: they are part of the tiles */
  o3_blocked_side_t before[MAX_SIDES], after[MAX_SIDES];
  int start;                     /* O3_TILE_ZERO, ... */
  const o3_nest_operand_t *bias; /* of before[0] */
  int64_t row_length;            /* of a chain's first product, whose rows are built one by one; else 0 */
  int64_t chain_rows;            /* of a chain's second product: rows at a time; 0: as chosen for one alone */
} emitter_t;

/* A task: where it is. */
typedef struct task {
  emitter_t *self;
  MlirValue ivs[O3_IR_MAX_RANK]; /* of the product; the run's and the columns' are the first ones */
  MlirValue run_from, run_to;    /* pixels of the run */
  MlirValue strip_to;            /* where the strip ends */
  MlirValue block;               /* the first of the task */
  bool has_strip;                /* rows of it ... */
  MlirValue first;               /* ... from this one on, or pixels of a row */
  MlirValue first_row, num_rows; /* of the window, where the image is cut off at its edge */
  o3_blocked_side_t *side;
} task_t;

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- Tiles ---- */

/* Of the operand's dims from |first| on; -1 when known only at run time. */
static int64_t bytes_from(const o3_nest_operand_t *operand, int first) {
  int64_t bytes = (int64_t)sizeof(float);
  for (int d = first; d < operand->num_terms; ++d) {
    if (operand->sizes[d] < 0) return -1;
    bytes *= operand->sizes[d];
  }
  return bytes;
}

/* What few outputs of a last block read is read while it is in the first-level cache. */
static bool joins_parts(const emitter_t *self, const o3_tile_part_t *parts, int num_parts) {
  bool is_split = num_parts && parts[num_parts - 1].tile.split;
  return is_split && self->blocks > 1 && !self->row_length && !self->chain_rows;
}

/* How often the image is read, a block of results, or the last two, at a time. */
static int64_t reads_of_image(const emitter_t *self, bool joined) {
  const o3_blocked_t *p = &self->product;
  int64_t reads = self->blocks - joined;
  for (int i = 0; i < p->around.count && !p->lanewise; ++i) {
    if (!o3_nest_uses(p->x, p->around.at[i])) reads *= p->nest.sizes[p->around.at[i]];
  }
  return reads;
}

static o3_status_t read_schedule(emitter_t *self) {
  const o3_blocked_t *p = &self->product;
  const o3_sparse_form_t *form = &p->sparse;
  const o3_tile_t any = {.lanes = self->env->machine->vector_bytes / (int)sizeof(float),
                         .width = O3_BLOCK_LANES};
  o3_tile_part_t parts[O3_TILE_MAX_PARTS];
  int num_parts = o3_blocked_parts(p, &any, parts);
  bool joined = joins_parts(self, parts, num_parts);
  const o3_schedule_blocks_t product = {
      .run = self->run,
      .blocks = num_parts && self->blocks > 1 ? self->blocks - 1 : self->blocks,
      .steps = o3_blocked_innermost_steps(p),
      .last_steps = p->last_inputs,
      .pixel_turns = o3_blocked_pixel_turns(p),
      .is_matrix = form->lanes ? form->is_matmul : p->columns >= 0,
      .is_lanewise = p->lanewise,
      .inside = p->inside,
      .entry_lanes = form->lanes,
      .is_groups = form->parts > 0,
      .weight_bytes = form->lanes ? p->w->sizes[0] * form->lanes * form->depth * (int64_t)sizeof(float)
                                  : bytes_from(p->w, 0),
      .rows = o3_blocked_row_dim(p) < 0 ? 0 : p->nest.sizes[o3_blocked_row_dim(p)],
      .image_bytes = bytes_from(p->x, 1),
      .reads = reads_of_image(self, joined),
      .is_joined = joined || num_parts > 1,
      .streams = o3_blocked_streams(p),
      .is_row = self->row_length > 0,
      .chain_rows = self->chain_rows};
  self->schedule = o3_schedule_tiles(self->env->machine, &product);
  O3_TRY(o3_schedule_read(p->nest.op, O3_SCHEDULE_FAMILY_TILES, &self->schedule));
  const o3_schedule_tiles_t *s = &self->schedule;
  if (product.steps % s->unroll || (p->inside && s->unroll != product.steps))
    return o3_schedule_refuse(p->nest.op, "unroll", s->unroll, "a divisor of the innermost sum's length");
  if (form->lanes && form->lanes % s->lanes)
    return o3_schedule_refuse(p->nest.op, "lanes", s->lanes, "a divisor of an entry's lanes");
  if (form->parts && s->lanes != O3_BLOCK_LANES && s->lanes != O3_BLOCK_LANES / 2)
    return o3_schedule_refuse(p->nest.op, "lanes", s->lanes, "8 or 16, which N:M permutes");
  if (self->run > s->piece && s->piece % s->pixels)
    return o3_schedule_refuse(p->nest.op, "piece", s->piece, "a multiple of pixels in longer runs");
  if (!s->strip_rows && product.rows >= 0)
    return o3_schedule_refuse(p->nest.op, "strip_rows", 0, "at least 1 where the number of rows is known");
  if (self->run > s->strip_pixels && s->strip_pixels % s->pixels)
    return o3_schedule_refuse(p->nest.op, "strip_pixels", s->strip_pixels,
                              "a multiple of pixels in longer runs");
  if (p->inside && self->run > s->strip_pixels)
    return o3_schedule_refuse(p->nest.op, "strip_pixels", s->strip_pixels,
                              "the whole run where windows are cut off");
  if (s->ahead && !product.streams)
    return o3_schedule_refuse(p->nest.op, "ahead", s->ahead, "0 but for convolutions without a window");
  if (s->blocks > 1 && (form->lanes || p->lanewise || s->blocks > self->blocks))
    return o3_schedule_refuse(p->nest.op, "blocks", s->blocks, "1, or at most the number of blocks");
  return NULL;
}

static o3_tile_t full_tile(const emitter_t *self) {
  const o3_blocked_t *p = &self->product;
  const o3_schedule_tiles_t *s = &self->schedule;
  o3_tile_t tile = {.lanes = (int)s->lanes,
                    .blocks = (int)s->blocks,
                    .pixels = (int)s->pixels,
                    .x_step = p->x_step,
                    .unroll = (int)s->unroll,
                    .lanewise = p->lanewise,
                    .ahead = s->ahead != 0,
                    .shared = o3_blocked_shares_weights(self->env->machine, p, s, self->run),
                    .width = O3_BLOCK_LANES,
                    .used = O3_BLOCK_LANES};
  if (p->sparse.lanes) {
    tile.width = tile.used = (int)p->sparse.lanes;
    tile.depth = (int)p->sparse.depth;
    tile.parts = (int)p->sparse.parts;
    tile.tail = tile.parts && p->sparse.is_matmul && p->x->sizes[p->x->num_terms - 1] % O3_BLOCK_LANES != 0;
  }
  if (p->inside) {
    tile.taps = tile.unroll;
    tile.tap_step = p->depth[p->num_depth - 1].step;
  }
  return tile;
}

static o3_status_t add_tile(const emitter_t *self, const o3_tile_t *tile, const char *name) {
  if (!mlirOperationIsNull(o3_module_func(self->module, name))) return NULL;
  char *text = o3_tile_text(tile);
  O3_TRY_ALLOC(text);
  o3_status_t status = o3_cpu_add_functions(self->module, text, "tile");
  free(text);
  for (int i = 0; !status && i < self->num_in_tile; ++i)
    status =
        o3_tile_after_insert(o3_module_func(self->module, name), o3_tile_stored(tile), &self->after[i].nest);
  return status;
}

static MlirValue scaled(o3_builder_t *b, MlirValue base, MlirValue count, MlirValue step);

static MlirValue depth_step(const o3_blocked_t *p, const o3_blocked_depth_t *part, o3_builder_t *b) {
  return part->is_known ? o3_build_index(b, part->step) : o3_nest_step_value(p->x, part->dim, b);
}

/* The loops of the depth from the outside; those that are missing have one turn. */
static void depth_arguments(const emitter_t *self, const o3_tile_t *tile, o3_builder_t *b,
                            MlirValue *arguments) {
  const o3_blocked_t *p = &self->product;
  for (int i = 0; i < 3; ++i) {
    int at = o3_blocked_depth_at(p, i);
    const o3_blocked_depth_t *part = &p->depth[at < 0 ? 0 : at];
    arguments[O3_TILE_N2 + 2 * i] = o3_build_index(b, at < 0 ? 1 : part->size);
    arguments[O3_TILE_S2 + 2 * i] = at < 0 ? o3_build_index(b, 0) : depth_step(p, part, b);
  }
  int64_t channels = p->lanewise ? 1 : p->depth[p->num_depth - 1].size;
  arguments[O3_TILE_C] = arguments[O3_TILE_C_LAST] = o3_build_index(b, channels);
  if (p->last_inputs)
    arguments[O3_TILE_C_LAST] = o3_build_index(b, divide_up(p->last_inputs, tile->unroll) * tile->unroll);
}

/* The same for a window that is cut off: from its first row inside. */
static void row_arguments(const task_t *task, o3_builder_t *b, const o3_tile_t *tile, MlirValue pixel,
                          MlirValue *a) {
  const o3_blocked_t *p = &task->self->product;
  const o3_blocked_depth_t *channels = p->lanewise ? NULL : &p->depth[0];
  const o3_blocked_depth_t *rows = &p->depth[p->num_depth - 2], *columns = rows + 1;
  a[O3_TILE_N2] = o3_build_index(b, channels ? channels->size : 1);
  a[O3_TILE_S2] = channels ? depth_step(p, channels, b) : o3_build_index(b, 0);
  a[O3_TILE_N1] = task->num_rows;
  a[O3_TILE_S1] = depth_step(p, rows, b);
  a[O3_TILE_N0] = o3_build_index(b, rows->size);
  a[O3_TILE_S0] = tile->late ? o3_blocked_row_limit(p, b, pixel) : o3_build_index(b, 0);
  a[O3_TILE_C] = a[O3_TILE_C_LAST] = o3_build_index(b, columns->size);
  a[O3_TILE_X_AT] = scaled(b, a[O3_TILE_X_AT], task->first_row, a[O3_TILE_S1]);
  a[O3_TILE_W_AT] =
      scaled(b, a[O3_TILE_W_AT], task->first_row, o3_build_index(b, columns->size * O3_BLOCK_LANES));
}

static int64_t depth_of(const emitter_t *self) {
  int64_t depth = 1;
  const o3_blocked_t *p = &self->product;
  if (p->sparse.lanes) {
    return (p->w->sizes[0] / p->sparse.num_rows + 1) * p->sparse.depth;
  }
  for (int i = 0; i < self->product.num_depth; ++i) depth *= self->product.depth[i].size;
  return depth;
}

static MlirValue scaled(o3_builder_t *b, MlirValue base, MlirValue count, MlirValue step) {
  return o3_build2(b, "arith.addi", base, o3_build2(b, "arith.muli", count, step));
}

/* Y's step from a pixel to the next and from a block to the next. */
static MlirValue y_step(const emitter_t *self, o3_builder_t *b) {
  int run = o3_blocked_run_dim(&self->product);
  return run < 0 ? o3_build_index(b, 0) : o3_nest_step_value(self->product.y, run, b);
}

static MlirValue y_next(const emitter_t *self, o3_builder_t *b) {
  const o3_blocked_t *p = &self->product;
  if (p->columns >= 0) return o3_build_index(b, O3_BLOCK_LANES);
  return p->block < 0 ? o3_build_index(b, 0) : o3_nest_step_value(p->y, p->block, b);
}

/* W from a block to the next. */
static int64_t w_next(const emitter_t *self) {
  int64_t step = 0;
  const o3_blocked_t *p = &self->product;
  if (p->sparse.lanes) return 0;
  if (p->columns >= 0) return p->w->strides[0];
  if (p->block >= 0) o3_nest_step(p->w, p->block, &step);
  return step;
}

/* Where the lanes of the block |block| begin in the bias, which runs along blocks and lanes, or columns. */
static void side_ivs(const task_t *task, const o3_blocked_side_t *side, o3_builder_t *b, MlirValue pixel,
                     MlirValue block, MlirValue *ivs) {
  o3_blocked_side_ivs(&task->self->product, side, b, &(o3_blocked_place_t){task->ivs, pixel, block}, ivs);
}

static MlirValue bias_address(const task_t *task, o3_builder_t *b, MlirValue block) {
  MlirValue ivs[O3_IR_MAX_RANK];
  const o3_blocked_side_t *side = &task->self->before[0];
  side_ivs(task, side, b, task->run_from, block, ivs);
  return o3_nest_address(&side->nest, task->self->bias, b, ivs);
}

/* Which entries a tile of sparse weights sums, and how far they make it step in X; its block are the lanes
 * from |lane| on of the 16. */
static void sparse_arguments(const task_t *task, o3_builder_t *b, const o3_tile_t *tile, MlirValue block,
                             int lane, MlirValue *a) {
  const o3_blocked_t *p = &task->self->product;
  const o3_sparse_form_t *form = &p->sparse;
  const o3_nest_operand_t *rows = &p->nest.operands[O3_SPARSE_ROWS];
  MlirType i32 = mlirIntegerTypeGet(b->context, 32);
  MlirValue row = scaled(b, o3_build_index(b, lane / tile->width), block,
                         o3_build_index(b, O3_BLOCK_LANES / tile->width));
  for (int i = 0; i < 2; ++i) {
    MlirValue at =
        o3_build2(b, "arith.addi", o3_build2(b, "arith.addi", row, rows->offset), o3_build_index(b, i));
    MlirValue limit = o3_build1(b, "memref.load", i32, O3_VALUES(rows->flat, at));
    a[i ? O3_TILE_TO : O3_TILE_FROM] =
        o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(limit));
  }
  a[O3_TILE_COLS] = o3_build_index(b, task->self->last_columns - lane);
  a[O3_TILE_TABLE] = p->nest.operands[O3_SPARSE_COLUMNS].flat;
  a[O3_TILE_N0] = a[O3_TILE_C] = a[O3_TILE_C_LAST] = o3_build_index(b, 0);
  a[O3_TILE_S2] = form->is_matmul ? o3_build_index(b, O3_BLOCK_LANES) : p->x->stride_values[1];
  if (tile->tail) a[O3_TILE_C] = o3_build_index(b, p->x->sizes[p->x->num_terms - 1]);
  for (int i = 0; i < 2; ++i) {
    MlirValue step = form->is_matmul ? a[O3_TILE_N0]
                                     : o3_build2(b, "arith.muli", p->x->stride_values[2 + i],
                                                 o3_build_index(b, form->dilations[i]));
    a[i ? O3_TILE_S0 : O3_TILE_S1] = step;
  }
}

static MlirValue ask_ahead(const task_t *task, o3_builder_t *b, const o3_tile_t *tile, MlirValue pixel) {
  const emitter_t *self = task->self;
  int row = o3_blocked_row_dim(&self->product);
  MlirValue before = {0}, in_row = o3_build_index(b, o3_blocked_tiles_of(&self->schedule, self->run));
  if (row >= 0) before = o3_build2(b, "arith.muli", task->ivs[row], in_row);
  MlirValue own = o3_build_index(b, w_next(self)), next = o3_build_index(b, tile->blocks * w_next(self));
  return o3_blocked_ask_ahead(tile, b, pixel, before, next, own);
}

/* One call for |pixel| and those after it, and the lanes of |block| from |lane| on. */
static o3_status_t call_tile(const task_t *task, o3_builder_t *b, const o3_tile_t *tile, MlirValue pixel,
                             MlirValue block, int lane) {
  const emitter_t *self = task->self;
  const o3_blocked_t *p = &self->product;
  MlirValue a[O3_TILE_SPARSE_ARGUMENTS], zero = o3_build_index(b, 0), ivs[O3_IR_MAX_RANK];
  for (int d = 0; d < p->nest.num_dims; ++d) ivs[d] = task->ivs[d];
  if (o3_blocked_run_dim(p) >= 0) ivs[o3_blocked_run_dim(p)] = pixel;
  if (p->block >= 0) ivs[p->block] = block;
  MlirValue next = o3_build_index(b, w_next(self));
  bool packed = p->columns >= 0;
  a[O3_TILE_X] = p->x->flat;
  a[O3_TILE_X_AT] = o3_nest_address(&p->nest, p->x, b, ivs);
  a[O3_TILE_W] = p->w->flat;
  a[O3_TILE_W_AT] = tile->depth ? p->w->offset
                    : packed    ? scaled(b, p->w->offset, block, next)
                                : o3_nest_address(&p->nest, p->w, b, ivs);
  a[O3_TILE_W_NEXT] = next;
  a[O3_TILE_W_AHEAD] = zero;
  if (tile->shared) a[O3_TILE_W_AHEAD] = ask_ahead(task, b, tile, pixel);
  a[O3_TILE_Y] = p->y->flat;
  if (packed) ivs[p->columns] = o3_build2(b, "arith.muli", block, o3_build_index(b, O3_BLOCK_LANES));
  a[O3_TILE_Y_AT] = o3_nest_address(&p->nest, p->y, b, ivs);
  a[O3_TILE_Y_STEP] = y_step(self, b);
  a[O3_TILE_Y_NEXT] = y_next(self, b);
  a[O3_TILE_B] = self->bias ? self->bias->flat : p->w->flat;
  a[O3_TILE_B_AT] = self->bias ? bias_address(task, b, block) : zero;
  a[O3_TILE_START] = o3_build_index(b, self->start);
  a[O3_TILE_COLS] = o3_build_index(b, self->last_columns);
  if (lane) {
    static const o3_tile_argument_t AT[] = {O3_TILE_Y_AT, O3_TILE_B_AT, O3_TILE_W_AT};
    for (int i = 0; i < (tile->depth ? 2 : 3); ++i)
      a[AT[i]] = o3_build2(b, "arith.addi", a[AT[i]], o3_build_index(b, lane));
  }
  if (tile->depth) sparse_arguments(task, b, tile, block, lane, a);
  if (tile->taps) row_arguments(task, b, tile, pixel, a);
  if (!tile->depth && !tile->taps) depth_arguments(self, tile, b, a);
  char *name = o3_tile_name(tile);
  O3_TRY_ALLOC(name);
  o3_cpu_call(b, name, tile->depth ? O3_TILE_SPARSE_ARGUMENTS : O3_TILE_ARGUMENTS, a);
  o3_status_t status = add_tile(self, tile, name);
  free(name);
  return status;
}

/* ---- A run of tiles ---- */

typedef struct tiles {
  const task_t *task;
  o3_tile_t tile;
  MlirValue block;
  int lane; /* of the block, the first */
} tiles_t;

/* What the ops behind the tiles of a piece read beside them would be waited for where the second-level cache
 * does not hold such an image and the result: a tile asks for that of its pixels, which comes while it is
 * computed. */
static void ask_for_sides(const tiles_t *tiles, o3_builder_t *b, MlirValue pixel) {
  const emitter_t *self = tiles->task->self;
  const o3_blocked_place_t at = {tiles->task->ivs, pixel, tiles->block};
  if (bytes_from(self->product.y, 0) <= self->env->machine->l2_bytes / 2) return;
  for (int i = self->num_in_tile; i < self->num_after; ++i)
    o3_blocked_side_ask(&self->product, &self->after[i], b, &at, &tiles->tile);
}

static o3_status_t tile_body(o3_builder_t *b, void *context, MlirValue pixel, const MlirValue *carried,
                             MlirValue *next) {
  const tiles_t *tiles = context;
  (void)carried, (void)next;
  ask_for_sides(tiles, b, pixel);
  for (int lane = tiles->lane; lane < O3_BLOCK_LANES; lane += tiles->tile.width) {
    bool exists = !tiles->tile.masked || lane < tiles->task->self->last_columns;
    if (exists) O3_TRY(call_tile(tiles->task, b, &tiles->tile, pixel, tiles->block, lane));
  }
  return NULL;
}

/* Tiles of |pixels| from |from| as long as they fit before |to|; |from| moves to the end of the last. */
static o3_status_t build_tiles(tiles_t *tiles, o3_builder_t *b, int pixels, MlirValue *from, MlirValue to) {
  MlirValue step = o3_build_index(b, pixels);
  tiles->tile.pixels = pixels;
  tiles->tile.x_step = pixels == 1 ? 0 : tiles->task->self->product.x_step;
  MlirValue count = o3_build2(b, "arith.divui", o3_build2(b, "arith.subi", to, *from), step);
  MlirValue end = scaled(b, *from, count, step);
  o3_for_t loop = {.lower = *from, .upper = end, .step = step, .body = tile_body, .context = tiles};
  O3_TRY(o3_build_for(b, &loop, NULL));
  *from = end;
  return NULL;
}

/* One piece that is the whole run: tiles of two sizes that differ by one. */
static o3_status_t build_whole_run(tiles_t *tiles, o3_builder_t *b, int64_t run) {
  const task_t *task = tiles->task;
  int most = tiles->tile.pixels;
  int64_t count = (run + most - 1) / most, larger = run % count;
  MlirValue zero = o3_build_index(b, 0), from = task->self->row_length ? task->run_from : zero;
  MlirValue middle = o3_build2(b, "arith.addi", from, o3_build_index(b, larger * (run / count + 1)));
  MlirValue end = o3_build2(b, "arith.addi", from, o3_build_index(b, run));
  if (larger) O3_TRY(build_tiles(tiles, b, (int)(run / count + 1), &from, middle));
  return build_tiles(tiles, b, (int)(run / count), &from, end);
}

/* Where tiles of |size| begin so that they end at |to|. Few pixels are slow: when the last tile would be
 * filled by more than the next |smaller| one covers, the tiles begin before |from| and compute some pixels
 * again, with the same results, as long as that stays in the piece. */
static MlirValue earlier_start(const task_t *task, o3_builder_t *b, int size, int smaller, MlirValue from,
                               MlirValue to) {
  MlirValue left = o3_build2(b, "arith.subi", to, from), step = o3_build_index(b, size);
  MlirValue rounded = o3_build2(b, "arith.addi", left, o3_build_index(b, size - smaller - 1));
  MlirValue covered = o3_build2(b, "arith.muli", o3_build2(b, "arith.divui", rounded, step), step);
  MlirValue length = o3_build2(b, "arith.subi", to, task->run_from);
  MlirValue more = o3_build_cmpi(b, O3_CMPI_UGT, covered, left);
  MlirValue fits = o3_build_cmpi(b, O3_CMPI_ULE, covered, length);
  return o3_build_select(b, o3_build2(b, "arith.andi", more, fits), o3_build2(b, "arith.subi", to, covered),
                         from);
}

/* What is left of a piece whose size is known at run time only, in ever smaller tiles. */
static o3_status_t build_rest(tiles_t *tiles, o3_builder_t *b, MlirValue *from, MlirValue to) {
  static const int SIZES[] = {14, 7, 4, 2, 1, 0};
  int most = tiles->tile.pixels;
  bool adds = tiles->task->self->start == O3_TILE_OLD;
  for (int i = 0; SIZES[i]; ++i) {
    if (SIZES[i] >= most) continue;
    if (!adds) *from = earlier_start(tiles->task, b, SIZES[i], SIZES[i + 1], *from, to);
    O3_TRY(build_tiles(tiles, b, SIZES[i], from, to));
  }
  return NULL;
}

/* A piece of a longer run: full tiles, then what is left. */
static o3_status_t build_piece(tiles_t *tiles, o3_builder_t *b, const emitter_t *self) {
  MlirValue from = tiles->task->run_from, to = tiles->task->run_to;
  int most = tiles->tile.pixels;
  O3_TRY(build_tiles(tiles, b, most, &from, to));
  if (self->run < 0) return build_rest(tiles, b, &from, to);
  int pixels = (int)self->schedule.pixels, left = (int)(self->run % pixels);
  if (pixels < most) O3_TRY(build_tiles(tiles, b, pixels, &from, to));
  return left ? build_tiles(tiles, b, left, &from, to) : NULL;
}

static o3_status_t row_tile(o3_builder_t *b, void *context, const o3_tile_t *tile, MlirValue pixel) {
  const tiles_t *tiles = context;
  return call_tile(tiles->task, b, tile, pixel, tiles->block, tiles->lane);
}

static o3_status_t build_row(tiles_t *tiles, o3_builder_t *b) {
  const emitter_t *self = tiles->task->self;
  bool is_part = tiles->tile.used < self->tile.used;
  const o3_blocked_row_t row = {.product = &self->product,
                                .tile = tiles->tile,
                                .adds = self->start == O3_TILE_OLD,
                                .choice = self->row_choices[is_part],
                                .call = row_tile,
                                .context = tiles};
  return o3_blocked_row_build(&row, b);
}

static o3_status_t build_run(const task_t *task, o3_builder_t *b, o3_tile_t tile, MlirValue block, int lane) {
  const emitter_t *self = task->self;
  tiles_t tiles = {task, tile, block, lane};
  if (self->product.inside) return build_row(&tiles, b);
  bool whole = self->row_length || (self->run <= self->piece && self->run <= self->schedule.strip_pixels);
  if (self->run >= 0 && whole) return build_whole_run(&tiles, b, self->run);
  return build_piece(&tiles, b, self);
}

/* ---- The blocks of a task ---- */

static o3_status_t full_blocks(o3_builder_t *b, void *context, MlirValue *yields) {
  const task_t *task = context;
  (void)yields;
  return build_run(task, b, task->self->tile, task->block, 0);
}

static o3_status_t build_parts(const task_t *task, o3_builder_t *b, MlirValue block) {
  const emitter_t *self = task->self;
  for (int i = 0; i < self->num_parts; ++i) {
    o3_tile_t tile = self->parts[i].tile;
    tile.after = self->tile.after;
    O3_TRY(build_run(task, b, tile, block, self->parts[i].lane));
  }
  return NULL;
}

/* The last blocks: one by one, the last of all perhaps masked or in parts. */
static o3_status_t last_blocks(o3_builder_t *b, void *context, MlirValue *yields) {
  const task_t *task = context;
  const emitter_t *self = task->self;
  o3_tile_t tile = self->tile;
  int64_t left = self->blocks % tile.blocks;
  (void)yields;
  left = self->joined ? 2 : left ? left : tile.blocks;
  tile.blocks = 1;
  for (int64_t i = 0; i < left; ++i) {
    MlirValue block = o3_build2(b, "arith.addi", task->block, o3_build_index(b, i));
    tile.masked = i + 1 == left && self->last_columns < O3_BLOCK_LANES;
    bool in_parts = i + 1 == left && self->num_parts;
    O3_TRY(in_parts ? build_parts(task, b, block) : build_run(task, b, tile, block, 0));
  }
  return NULL;
}

static o3_status_t build_blocks(task_t *task, o3_builder_t *b) {
  const emitter_t *self = task->self;
  bool is_part = self->last_columns < O3_BLOCK_LANES || self->num_parts;
  if (!is_part && self->blocks % self->tile.blocks == 0) return full_blocks(b, task, NULL);
  if (self->blocks <= self->tile.blocks + self->joined) return last_blocks(b, task, NULL);
  int64_t whole = self->blocks - is_part - self->joined;
  MlirValue end = o3_build2(b, "arith.addi", task->block, o3_build_index(b, self->tile.blocks));
  o3_if_t branch = {.condition = o3_build_cmpi(b, O3_CMPI_ULE, end, o3_build_index(b, whole)),
                    .then_body = full_blocks,
                    .else_body = last_blocks,
                    .context = task};
  return o3_build_if(b, &branch, NULL);
}

/* ---- Ops around the product ---- */

typedef struct side_loops {
  const task_t *task;
  o3_blocked_side_t *side;
  MlirValue block;
} side_loops_t;

/* The loops of the op around its innermost one are at |pixel|. */
static o3_status_t side_scalars(const side_loops_t *loops, o3_builder_t *b, MlirValue pixel, int ranged,
                                MlirValue lower, MlirValue upper) {
  const emitter_t *self = loops->task->self;
  const o3_blocked_t *p = &self->product;
  o3_loops_frame_t frame = {.ranged = ranged, .lower = lower, .upper = upper};
  side_ivs(loops->task, loops->side, b, pixel, loops->block, frame.ivs);
  for (int d = 0; d < p->nest.num_dims; ++d) {
    if (loops->side->dims[d] >= 0) frame.fixed[loops->side->dims[d]] = d != p->lane && d != p->columns;
  }
  return o3_loops_build(&loops->side->nest, b, &frame);
}

/* The op for one pixel: lanes, or the columns of the task's blocks. */
static o3_status_t side_pixel(o3_builder_t *b, void *context, MlirValue pixel, const MlirValue *carried,
                              MlirValue *next) {
  const side_loops_t *loops = context;
  const emitter_t *self = loops->task->self;
  const o3_blocked_t *p = &self->product;
  MlirValue none = {0};
  (void)carried, (void)next;
  if (loops->side->vectors) {
    MlirValue ivs[O3_IR_MAX_RANK];
    side_ivs(loops->task, loops->side, b, pixel, loops->block, ivs);
    return o3_blocked_side_vectors(loops->side, b, p->lane, (int)self->schedule.lanes, ivs);
  }
  if (p->columns < 0) return side_scalars(loops, b, pixel, -1, none, none);
  MlirValue lanes = o3_build_index(b, (int64_t)self->tile.blocks * O3_BLOCK_LANES);
  MlirValue lower = o3_build2(b, "arith.muli", loops->block, o3_build_index(b, O3_BLOCK_LANES));
  MlirValue end = o3_build2(b, "arith.addi", lower, lanes);
  MlirValue upper = o3_build2(b, "arith.minsi", end, p->nest.size_values[p->columns]);
  const o3_nest_t *nest = &loops->side->nest;
  int dim = loops->side->dims[p->columns];
  if (o3_vector_row_fits(nest, dim)) {
    MlirValue ivs[O3_IR_MAX_RANK];
    side_ivs(loops->task, loops->side, b, pixel, loops->block, ivs);
    const o3_vector_row_t row = {nest, dim, (int)self->schedule.lanes, ivs, lower, upper};
    return o3_vector_row_build(&row, b, NULL);
  }
  return side_scalars(loops, b, pixel, dim, lower, upper);
}

/* The lanes of all pixels of the piece, as one loop. */
static o3_status_t side_merged(const side_loops_t *loops, o3_builder_t *b) {
  const task_t *task = loops->task;
  MlirValue lanes = o3_build_index(b, O3_BLOCK_LANES);
  return side_scalars(loops, b, task->run_from, loops->side->dims[task->self->product.lane],
                      o3_build2(b, "arith.muli", task->run_from, lanes),
                      o3_build2(b, "arith.muli", task->run_to, lanes));
}

static o3_status_t side_block(o3_builder_t *b, void *context, MlirValue block, const MlirValue *carried,
                              MlirValue *next) {
  side_loops_t *loops = context;
  loops->block = block;
  if (loops->side->merged) return side_merged(loops, b);
  if (o3_blocked_run_dim(&loops->task->self->product) < 0)
    return side_pixel(b, loops, loops->task->run_from, carried, next);
  o3_for_t pixels = {.lower = loops->task->run_from,
                     .upper = loops->task->run_to,
                     .step = o3_build_index(b, 1),
                     .body = side_pixel,
                     .context = loops};
  return o3_build_for(b, &pixels, NULL);
}

static MlirValue end_of_blocks(const task_t *task, o3_builder_t *b) {
  const emitter_t *self = task->self;
  MlirValue all = o3_build_index(b, self->blocks), last = o3_build_index(b, self->blocks - self->joined);
  MlirValue end = o3_build2(b, "arith.addi", task->block, o3_build_index(b, self->tile.blocks));
  return o3_build_select(b, o3_build_cmpi(b, O3_CMPI_ULT, end, last), end, all);
}

static o3_status_t build_side(const task_t *task, o3_builder_t *b, o3_blocked_side_t *side) {
  const emitter_t *self = task->self;
  side_loops_t loops = {task, side, task->block};
  if (self->product.block < 0) return side_block(b, &loops, task->block, NULL, NULL);
  o3_for_t blocks = {.lower = task->block,
                     .upper = end_of_blocks(task, b),
                     .step = o3_build_index(b, 1),
                     .body = side_block,
                     .context = &loops};
  return o3_build_for(b, &blocks, NULL);
}

/* ---- Tasks ---- */

static int64_t task_work(const emitter_t *self) {
  double pixels =
      (double)(self->run < 0 || self->run > self->schedule.strip_pixels ? self->schedule.strip_pixels
                                                                        : self->run);
  double work = pixels * (double)depth_of(self) * self->tile.blocks * O3_BLOCK_LANES / self->tile.lanes;
  if (self->schedule.strip_rows > 0) work *= (double)self->schedule.strip_rows;
  return work > 1e15 ? (int64_t)1e15 : (int64_t)work;
}

static MlirValue run_size(const emitter_t *self, o3_builder_t *b) {
  int run = o3_blocked_run_dim(&self->product);
  return run < 0 ? o3_build_index(b, 1) : self->product.nest.size_values[run];
}

/* Axes of a grid that are no dims of the product. */
enum { AXIS_BLOCKS = -1, AXIS_PIECES = -2, AXIS_STRIPS = -3 };

typedef struct grid {
  int count;
  MlirValue sizes[O3_IR_MAX_RANK + 1], steps[O3_IR_MAX_RANK + 1];
  int dims[O3_IR_MAX_RANK + 1];
} grid_t;

static void add_axis(grid_t *grid, int dim, MlirValue size, MlirValue step) {
  grid->sizes[grid->count] = size;
  grid->steps[grid->count] = step;
  grid->dims[grid->count++] = dim;
}

static void add_blocks(const emitter_t *self, o3_builder_t *b, grid_t *grid) {
  const o3_sparse_form_t *sparse = &self->product.sparse;
  int64_t count = sparse->lanes ? sparse->num_parts : self->blocks - self->joined;
  add_axis(grid, AXIS_BLOCKS, o3_build_index(b, count), o3_build_index(b, self->tile.blocks));
}

static void add_around(const emitter_t *self, o3_builder_t *b, grid_t *grid) {
  const o3_blocked_dims_t *around = &self->product.around;
  for (int i = 0; i < around->count; ++i)
    add_axis(grid, around->at[i], self->product.nest.size_values[around->at[i]], o3_build_index(b, 1));
}

static void make_grid(const emitter_t *self, o3_builder_t *b, grid_t *grid) {
  const o3_blocked_t *p = &self->product;
  const MlirValue *sizes = p->nest.size_values;
  int row = o3_blocked_row_dim(p), outer = p->pixels.count - 1;
  if (!self->schedule.piece_first) add_around(self, b, grid);
  for (int i = 0; i < outer; ++i) {
    if (!self->schedule.piece_first && i + 1 == outer) add_blocks(self, b, grid);
    bool strips = self->schedule.piece_first && p->pixels.at[i] == row;
    add_axis(grid, strips ? AXIS_STRIPS : p->pixels.at[i], sizes[p->pixels.at[i]],
             strips ? self->strip : o3_build_index(b, 1));
  }
  if (!self->schedule.piece_first && outer <= 0) add_blocks(self, b, grid);
  if (!p->inside && (!self->schedule.piece_first || row < 0))
    add_axis(grid, AXIS_PIECES, run_size(self, b), o3_build_index(b, self->schedule.strip_pixels));
  if (!self->schedule.piece_first) return;
  add_around(self, b, grid);
  add_blocks(self, b, grid);
}

static MlirValue strip_size(const emitter_t *self, o3_builder_t *b) {
  if (self->schedule.strip_rows > 0) return o3_build_index(b, self->schedule.strip_rows);
  MlirValue rows = self->product.nest.size_values[o3_blocked_row_dim(&self->product)];
  MlirValue strips = o3_build_index(b, (int64_t)STRIPS_PER_CORE * self->env->machine->cores);
  return o3_build2(b, "arith.maxui", o3_build2(b, "arith.ceildivui", rows, strips), o3_build_index(b, 1));
}

static o3_status_t build_task(task_t *task, o3_builder_t *b) {
  emitter_t *self = task->self;
  if (self->product.inside)
    o3_blocked_row_cut(&self->product, b, task->ivs, &task->first_row, &task->num_rows);
  bool only_bias = self->bias || self->start == O3_TILE_ZERO;
  for (int i = 0; !only_bias && i < self->num_before; ++i) O3_TRY(build_side(task, b, &self->before[i]));
  O3_TRY(build_blocks(task, b));
  for (int i = self->num_in_tile; i < self->num_after; ++i) O3_TRY(build_side(task, b, &self->after[i]));
  return NULL;
}

static o3_status_t piece_body(o3_builder_t *b, void *context, MlirValue piece, const MlirValue *carried,
                              MlirValue *next) {
  task_t *task = context;
  (void)carried, (void)next;
  MlirValue end = o3_build2(b, "arith.addi", piece, o3_build_index(b, task->self->piece));
  task->run_from = piece;
  task->run_to =
      task->self->product.inside ? task->strip_to : o3_build2(b, "arith.minsi", end, task->strip_to);
  return build_task(task, b);
}

/* Pixels from |from| to |to|, which may be one piece. */
static o3_status_t build_pieces(task_t *task, o3_builder_t *b, MlirValue from, MlirValue to, bool one) {
  task->strip_to = to;
  if (one) return piece_body(b, task, from, NULL, NULL);
  o3_for_t loop = {.lower = from,
                   .upper = to,
                   .step = o3_build_index(b, task->self->piece),
                   .body = piece_body,
                   .context = task};
  return o3_build_for(b, &loop, NULL);
}

static o3_status_t row_body(o3_builder_t *b, void *context, MlirValue row, const MlirValue *carried,
                            MlirValue *next) {
  task_t *task = context;
  const emitter_t *self = task->self;
  (void)carried, (void)next;
  task->ivs[o3_blocked_row_dim(&self->product)] = row;
  bool one = self->product.inside || (self->run >= 0 && self->run <= self->piece);
  return build_pieces(task, b, o3_build_index(b, 0), run_size(self, b), one);
}

/* The rows from |first| to the end of its strip. */
static o3_status_t build_rows(task_t *task, o3_builder_t *b, MlirValue first) {
  const emitter_t *self = task->self;
  MlirValue end = o3_build2(b, "arith.addi", first, self->strip);
  MlirValue rows = self->product.nest.size_values[o3_blocked_row_dim(&self->product)];
  if (self->schedule.strip_rows == 1) return row_body(b, task, first, NULL, NULL);
  o3_for_t loop = {.lower = first,
                   .upper = o3_build2(b, "arith.minsi", end, rows),
                   .step = o3_build_index(b, 1),
                   .body = row_body,
                   .context = task};
  return o3_build_for(b, &loop, NULL);
}

/* The rows of the task's strip, or the pieces of its row. */
static o3_status_t build_strip(task_t *task, o3_builder_t *b) {
  const emitter_t *self = task->self;
  if (task->has_strip) return build_rows(task, b, task->first);
  if (self->product.inside) return build_pieces(task, b, task->first, run_size(self, b), true);
  MlirValue end = o3_build2(b, "arith.addi", task->first, o3_build_index(b, self->schedule.strip_pixels));
  return build_pieces(task, b, task->first, o3_build2(b, "arith.minsi", end, run_size(self, b)),
                      self->schedule.strip_pixels == self->piece);
}

static o3_status_t block_of_part(o3_builder_t *b, void *context, MlirValue block, const MlirValue *carried,
                                 MlirValue *next) {
  task_t *task = context;
  (void)carried, (void)next;
  task->block = block;
  return build_strip(task, b);
}

/* Blocks of sparse weights differ in work: the task's block is a part of them. */
static o3_status_t build_part(task_t *task, o3_builder_t *b) {
  const o3_blocked_t *p = &task->self->product;
  MlirValue one = o3_build_index(b, 1), next = o3_build2(b, "arith.addi", task->block, one);
  o3_for_t blocks = {.lower = o3_sparse_part_start(&p->nest, &p->sparse, b, task->block),
                     .upper = o3_sparse_part_start(&p->nest, &p->sparse, b, next),
                     .step = one,
                     .body = block_of_part,
                     .context = task};
  return o3_build_for(b, &blocks, NULL);
}

static o3_status_t build(emitter_t *self, o3_builder_t *b) {
  grid_t grid = {0};
  MlirValue at[O3_IR_MAX_RANK + 1];
  task_t task = {.self = self};
  self->strip = strip_size(self, b);
  make_grid(self, b, &grid);
  o3_builder_t in = o3_cpu_parallel(b, grid.count, grid.sizes, grid.steps, task_work(self), at);
  MlirValue zero = o3_build_index(&in, 0);
  for (int d = 0; d < self->product.nest.num_dims; ++d) task.ivs[d] = zero;
  task.first = zero;
  for (int i = 0; i < grid.count; ++i) {
    if (grid.dims[i] >= 0) task.ivs[grid.dims[i]] = at[i];
    if (grid.dims[i] == AXIS_BLOCKS) task.block = at[i];
    if (grid.dims[i] == AXIS_PIECES || grid.dims[i] == AXIS_STRIPS) task.first = at[i];
    task.has_strip |= grid.dims[i] == AXIS_STRIPS;
  }
  return self->product.sparse.lanes ? build_part(&task, &in) : build_strip(&task, &in);
}

/* ---- The kernel ---- */

/* What needs the sums alone is done before they are stored. */
static void take_into_tile(emitter_t *self) {
  for (int i = 0; i < self->num_after; ++i) {
    const o3_blocked_side_t *side = &self->after[i];
    if (!side->vectors || !o3_tile_after_fits(&side->nest)) return;
    self->tile.after = o3_tile_after_hash(self->tile.after, &side->nest);
    ++self->num_in_tile;
  }
}

static o3_status_t read_sizes(emitter_t *self) {
  const o3_blocked_t *p = &self->product;
  int run = o3_blocked_run_dim(p);
  self->run = self->row_length ? self->row_length : run < 0 ? 1 : p->nest.sizes[run];
  self->last_columns = O3_BLOCK_LANES;
  self->blocks = p->block < 0 ? 1 : p->nest.sizes[p->block];
  if (p->columns >= 0) {
    int64_t columns = p->nest.sizes[p->columns];
    self->blocks = (columns + O3_BLOCK_LANES - 1) / O3_BLOCK_LANES;
    if (columns % O3_BLOCK_LANES) self->last_columns = columns % O3_BLOCK_LANES;
  }
  O3_TRY(read_schedule(self));
  self->tile = full_tile(self);
  self->num_parts = o3_blocked_parts(p, &self->tile, self->parts);
  self->joined = self->tile.blocks == 1 && joins_parts(self, self->parts, self->num_parts);
  self->piece = self->schedule.piece;
  return NULL;
}

bool o3_blocked_takes(MlirOperation op) {
  static _Thread_local o3_blocked_t product;
  return o3_blocked_match(op, &product);
}

bool o3_blocked_needs_start(MlirOperation op) {
  static _Thread_local o3_blocked_t product;
  return o3_blocked_match(op, &product) && o3_sparse_is_rows(&product.sparse);
}

const char *o3_blocked_refuse_padding(MlirOperation product, MlirOperation padding) {
  static _Thread_local o3_blocked_t read;
  return o3_blocked_match_inside(product, padding, &read);
}

const char *o3_blocked_refuse_epilogue(MlirOperation op, MlirOperation other) {
  static _Thread_local o3_blocked_t product;
  static _Thread_local o3_blocked_side_t side;
  if (!o3_blocked_match(op, &product)) return "the register tiles do not take the product";
  const char *why = o3_blocked_read_side(&product, other, &side);
  return why ? why : o3_blocked_read_side_of_copy(&product, other, &side);
}

static o3_status_t match(emitter_t *self, MlirOperation product, MlirOperation padding) {
  const char *why = mlirOperationIsNull(padding)
                        ? o3_blocked_match(product, &self->product) ? NULL : "it is no product in blocks"
                        : o3_blocked_match_inside(product, padding, &self->product);
  if (!why) return NULL;
  return o3_status_create(O3_STATUS_INTERNAL, "op '%.*s' is in a kernel of blocked products: %s",
                          O3_STR_ARGS(o3_op_label(product)), why);
}

o3_status_t o3_blocked_schedule(o3_pass_env_t *env, MlirOperation product, MlirOperation padding,
                                const o3_blocked_part_t *part) {
  static _Thread_local emitter_t self;
  self = (emitter_t){.env = env, .row_length = part->row_length, .chain_rows = part->chain_rows};
  O3_TRY(match(&self, product, padding));
  if (o3_sparse_is_rows(&self.product.sparse)) return o3_sparse_rows_schedule(env, &self.product);
  O3_TRY(read_sizes(&self));
  o3_op_attr_set(product, O3_SCHEDULE_ATTR,
                 o3_schedule_attr(env->context, O3_SCHEDULE_FAMILY_TILES, &self.schedule));
  return NULL;
}

/* An operand in the buffer |moved| is not flattened: there is no such memory. */
static void flatten(o3_nest_t *nest, o3_builder_t *b, MlirValue moved) {
  bool absent[O3_NEST_MAX_OPERANDS];
  for (int i = 0; i < nest->num_operands; ++i) {
    absent[i] = !mlirValueIsNull(moved) && mlirValueEqual(nest->operands[i].value, moved);
    if (absent[i]) nest->operands[i].is_memref = false;
  }
  o3_nest_flatten(nest, b);
  for (int i = 0; i < nest->num_operands; ++i) nest->operands[i].is_memref |= absent[i];
}

/* Which tiles a row gets whose length only the run knows. */
static void choose_row_tiles(emitter_t *self, o3_builder_t *b) {
  self->row_choices[0] = o3_blocked_row_choose(&self->product, self->tile.pixels, b);
  if (self->num_parts)
    self->row_choices[1] = o3_blocked_row_choose(&self->product, self->parts[0].tile.pixels, b);
}

/* All that precedes the loops. */
static o3_status_t begin(emitter_t *self, o3_builder_t *b, const o3_product_kernel_t *kernel,
                         MlirValue moved) {
  O3_TRY(o3_blocked_read_sides(&self->product, kernel->num_before, kernel->before, self->before));
  O3_TRY(o3_blocked_read_sides(&self->product, kernel->num_after, kernel->after, self->after));
  O3_TRY(read_sizes(self));
  take_into_tile(self);
  self->start = o3_blocked_read_start(&self->product, self->num_before, self->before, &self->bias);
  flatten(&self->product.nest, b, moved);
  for (int i = 0; i < self->num_before; ++i) flatten(&self->before[i].nest, b, moved);
  for (int i = 0; i < self->num_after; ++i) flatten(&self->after[i].nest, b, moved);
  if (self->product.inside && !o3_blocked_row_is_known(&self->product)) choose_row_tiles(self, b);
  return NULL;
}

o3_status_t o3_blocked_emit(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel) {
  static _Thread_local emitter_t self;
  const MlirValue none = {0};
  self = (emitter_t){
      .env = env, .module = module, .num_before = kernel->num_before, .num_after = kernel->num_after};
  O3_TRY(match(&self, kernel->product, kernel->padding));
  if (o3_sparse_is_rows(&self.product.sparse))
    return self.product.sparse.is_matmul ? o3_sparse_matrix_emit(env, module, kernel, &self.product)
                                         : o3_sparse_rows_emit(env, module, kernel, &self.product);
  o3_builder_t b = o3_product_builder(kernel);
  O3_TRY(begin(&self, &b, kernel, none));
  return build(&self, &b);
}

/* ---- Products of a chain ---- */

const char *o3_blocked_refuse_part(const o3_blocked_t *product, const o3_product_kernel_t *kernel) {
  static _Thread_local o3_blocked_side_t sides[MAX_SIDES];
  const o3_nest_operand_t *bias;
  const char *why = NULL;
  for (int i = 0; i < kernel->num_before && !why; ++i)
    why = o3_blocked_read_side(product, kernel->before[i], &sides[i]);
  if (why) return why;
  if (o3_blocked_read_start(product, kernel->num_before, sides, &bias) == O3_TILE_OLD)
    return "its sums start at neither zero nor a bias";
  for (int i = 0; i < kernel->num_after && !why; ++i) {
    why = o3_blocked_read_side(product, kernel->after[i], &sides[0]);
    if (!why && (!sides[0].vectors || !o3_tile_after_fits(&sides[0].nest)))
      why = "what follows its sums is not done in registers";
  }
  return why;
}

o3_status_t o3_blocked_open(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel,
                            const o3_blocked_part_t *part, o3_builder_t *b, o3_blocked_emitter_t **result) {
  emitter_t *self = O3_ARENA_NEW(env->arena, emitter_t);
  *result = NULL;
  O3_TRY_ALLOC(self);
  *self = (emitter_t){.env = env,
                      .module = module,
                      .num_before = kernel->num_before,
                      .num_after = kernel->num_after,
                      .row_length = part->row_length,
                      .chain_rows = part->chain_rows};
  O3_TRY(match(self, kernel->product, kernel->padding));
  O3_TRY(begin(self, b, kernel, part->moved));
  *result = self;
  return NULL;
}

void o3_blocked_move(o3_blocked_emitter_t *self, o3_builder_t *b, const o3_blocked_part_t *part,
                     MlirValue memory, MlirValue row0) {
  o3_nest_t *nest = &self->product.nest;
  for (int i = 0; i < nest->num_operands; ++i) {
    o3_nest_operand_t *operand = &nest->operands[i];
    if (!mlirValueEqual(operand->value, part->moved)) continue;
    operand->flat = memory;
    operand->offset = row0;
    for (int r = 0; r < operand->num_terms; ++r)
      operand->stride_values[r] = o3_build_index(b, r == O3_BLOCKED_BLOCKS ? 0 : operand->strides[r]);
  }
}

o3_status_t o3_blocked_build_row(o3_blocked_emitter_t *self, o3_builder_t *b, MlirValue row,
                                 MlirValue block) {
  const o3_blocked_t *p = &self->product;
  MlirValue zero = o3_build_index(b, 0);
  task_t task = {.self = self, .block = p->block < 0 ? zero : block};
  for (int d = 0; d < p->nest.num_dims; ++d) task.ivs[d] = zero;
  for (int i = 0; i < p->around.count; ++i) task.ivs[p->around.at[i]] = block;
  if (!self->row_length) return row_body(b, &task, row, NULL, NULL);
  MlirValue length = o3_build_index(b, self->row_length);
  bool is_joined = o3_blocked_row_dim(p) < 0;
  if (!is_joined) task.ivs[o3_blocked_row_dim(p)] = row;
  task.run_from = is_joined ? o3_build2(b, "arith.muli", row, length) : zero;
  task.run_to = o3_build2(b, "arith.addi", task.run_from, length);
  return build_task(&task, b);
}
