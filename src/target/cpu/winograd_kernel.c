/* Emission of Winograd convolutions.
 *
 *     scf.parallel (strips of tiles)
 *       for panels of tiles
 *         scf.parallel (chunks, blocks of channels)  V: the transformed input of the panel, in scratch memory
 *           for tiles: call @o3k_f32_winograd<m>_input(...)
 *         scf.parallel (chunks of tiles, blocks)
 *           P, on the stack: the products of a chunk and a block, or several
 *           for points, depth: call @o3k_f32_tile_...(...)   the register tiles of the direct convolution
 *           for tiles: call @o3k_f32_winograd<m>_output(...), what follows the convolution on its pixels
 *
 * Where all weights stay in a core's cache, and each core gets a chunk, threads share strips: each strip has
 * a V of its own, one chunk, which never leaves its core. Else there is one strip, and threads share each
 * panel: then a core reads its part of the weights alone.
 *
 * Tiles of all images are one sequence. V is chunk, block of channels, point, tile, lane; a panel is as many
 * chunks as let V stay in the second-level cache, so that it never goes to memory. A chunk is what one
 * register tile computes: P is then at most 64 KB. A chunk that is not full is computed with what lies in V
 * from earlier: tiles do not mix. The points of a chunk and block are written together and lie in few pages;
 * a cache line lies between blocks, so that those of one place do not fall into the same sets. */
#include "target/cpu/winograd_kernel.h"

#include <stdlib.h>

#include "analysis/winograd.h"
#include "schedule/cpu_schedule.h"
#include "target/cpu/blocked_tiles.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/halo.h"
#include "target/cpu/loops.h"
#include "target/cpu/tile_text.h"
#include "target/cpu/winograd_parts.h"
#include "target/cpu/winograd_text.h"

enum { LANES = O3_BLOCK_LANES, UNROLL = 4, MOST_SUMS = 28 };

/* ---- Sizes ---- */

typedef struct plan {
  o3_schedule_winograd_t schedule;
  int64_t tiles;                              /* of all images; -1 when known only at run time */
  int64_t blocks, outputs;                    /* blocks of channels; of results */
  int64_t point_step, block_step, chunk_step; /* floats of V from one to the next */
  int last_inputs;                            /* channels of the last block that are summed */
  int last_lanes;                             /* outputs of the last block that are computed */
} plan_t;

/* Tiles of all images, or -1. */
static int64_t tile_count(MlirOperation product) {
  MlirType v = mlirValueGetType(mlirOperationGetOperand(product, 0));
  int64_t count = 1;
  static const int DIMS[] = {0, 4, 5};
  for (size_t i = 0; i < sizeof(DIMS) / sizeof(DIMS[0]); ++i) {
    int64_t size = o3_type_dim(v, DIMS[i]);
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) return -1;
  }
  return count;
}

static int64_t weight_dim(MlirOperation product, int dim) {
  return o3_type_dim(mlirValueGetType(mlirOperationGetOperand(product, 1)), dim);
}

static o3_status_t make_plan(const o3_machine_t *machine, MlirOperation product, plan_t *plan) {
  int64_t channels[2], tiles = tile_count(product), points = weight_dim(product, 1) * weight_dim(product, 2);
  *plan = (plan_t){.tiles = tiles, .blocks = weight_dim(product, 3)};
  plan->outputs = weight_dim(product, 0);
  plan->last_inputs = plan->last_lanes = LANES;
  if (o3_op_ints(product, "o3.channels", channels, 2) == 2) {
    plan->last_inputs -= (int)(-channels[0] & (LANES - 1)) / UNROLL * UNROLL;
    plan->last_lanes = o3_tile_last_lanes(machine->vector_bytes / (int)sizeof(float), (int)channels[1]);
  }
  plan->schedule = o3_schedule_winograd(machine, tiles, points, plan->blocks, plan->outputs);
  O3_TRY(o3_schedule_read(product, O3_SCHEDULE_FAMILY_WINOGRAD, &plan->schedule));
  plan->point_step = plan->schedule.chunk * LANES;
  plan->block_step = points * plan->point_step + LANES;
  plan->chunk_step = plan->blocks * plan->block_step;
  const o3_schedule_winograd_t *s = &plan->schedule;
  if (s->blocks == 1) return NULL;
  if (plan->outputs % s->blocks)
    return o3_schedule_refuse(product, "blocks", s->blocks, "a divisor of the blocks of results");
  if (s->pixels != s->chunk || s->whole != s->chunk)
    return o3_schedule_refuse(product, "pixels", s->pixels, "the chunk in tiles of several blocks");
  if (s->pixels > MOST_SUMS / s->blocks)
    return o3_schedule_refuse(product, "pixels", s->pixels, "28 or less when multiplied by blocks");
  plan->last_lanes = LANES;
  return NULL;
}

o3_status_t o3_winograd_schedule(o3_pass_env_t *env, MlirOperation product) {
  plan_t plan;
  O3_TRY(make_plan(env->machine, product, &plan));
  o3_op_attr_set(product, O3_SCHEDULE_ATTR,
                 o3_schedule_attr(env->context, O3_SCHEDULE_FAMILY_WINOGRAD, &plan.schedule));
  return NULL;
}

/* Of V. */
static int64_t panel_floats(const plan_t *plan) {
  return plan->schedule.panel / plan->schedule.chunk * plan->chunk_step;
}

o3_status_t o3_winograd_scratch(const o3_machine_t *machine, const o3_winograd_kernel_t *kernel,
                                int64_t *floats) {
  plan_t plan;
  O3_TRY(make_plan(machine, kernel->product, &plan));
  *floats = plan.schedule.strips * panel_floats(&plan);
  return NULL;
}

/* ---- Buffers ---- */

typedef struct view {
  MlirValue flat, offset, sizes[O3_IR_MAX_RANK], strides[O3_IR_MAX_RANK];
} view_t;

static void read_view(o3_builder_t *b, MlirValue memref, view_t *view) {
  int rank = o3_type_rank(mlirValueGetType(memref));
  MlirOperation metadata = o3_cpu_metadata(b, memref);
  view->flat = o3_cpu_flat(b, mlirOperationGetResult(metadata, 0));
  view->offset = mlirOperationGetResult(metadata, 1);
  for (int r = 0; r < rank; ++r) {
    view->sizes[r] = mlirOperationGetResult(metadata, 2 + r);
    view->strides[r] = mlirOperationGetResult(metadata, 2 + rank + r);
  }
}

/* ---- The emitter ---- */

typedef struct emitter {
  o3_pass_env_t *env;
  MlirModule module;
  const o3_winograd_t *form;
  o3_blocked_t output;
  int num_before, num_after;
  o3_blocked_side_t before[O3_WINOGRAD_MAX_SIDES], after[O3_WINOGRAD_MAX_SIDES];
  int start; /* O3_TILE_ZERO, ... */
  const o3_nest_operand_t *bias;
  plan_t plan;
  int lanes;
  int64_t lows[2]; /* zeros before the first row and column */
  view_t x, w, v;
  MlirValue rows, columns, tiles; /* of tiles in an image; all tiles */
  MlirValue panel_from, panel_size;
} emitter_t;

typedef struct place {
  MlirValue image, row, column; /* of the first output of a tile */
} place_t;

static MlirValue add(o3_builder_t *b, MlirValue x, MlirValue y) { return o3_build2(b, "arith.addi", x, y); }
static MlirValue mul(o3_builder_t *b, MlirValue x, MlirValue y) { return o3_build2(b, "arith.muli", x, y); }
static MlirValue times(o3_builder_t *b, MlirValue x, int64_t y) { return mul(b, x, o3_build_index(b, y)); }
static MlirValue least(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.minsi", x, y);
}

static place_t place_of(const emitter_t *self, o3_builder_t *b, MlirValue tile) {
  MlirValue row = o3_build2(b, "arith.divui", tile, self->columns);
  return (place_t){.image = o3_build2(b, "arith.divui", row, self->rows),
                   .row = times(b, o3_build2(b, "arith.remui", row, self->rows), self->form->tile),
                   .column = times(b, o3_build2(b, "arith.remui", tile, self->columns), self->form->tile)};
}

/* Takes |name| and |text|. */
static o3_status_t call_function(const emitter_t *self, o3_builder_t *b, char *name, char *text, int count,
                                 const MlirValue *arguments) {
  o3_status_t status = NULL;
  if (!name || !text) status = o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  if (!status) o3_cpu_call(b, name, count, arguments);
  if (!status && mlirOperationIsNull(o3_module_func(self->module, name)))
    status = o3_cpu_add_functions(self->module, text, "winograd");
  free(name);
  free(text);
  return status;
}

static o3_status_t call_transform(const emitter_t *self, o3_builder_t *b, bool output, int count,
                                  const MlirValue *arguments) {
  const o3_winograd_function_t function = {
      .tile = self->form->tile, .lanes = self->lanes, .output = output, .start = self->start};
  return call_function(self, b, o3_winograd_function_name(&function), o3_winograd_function_text(&function),
                       count, arguments);
}

/* ---- Input ---- */

static MlirValue shifted(o3_builder_t *b, MlirValue at, int64_t low) {
  return low ? o3_build2(b, "arith.subi", at, o3_build_index(b, low)) : at;
}

/* Where in V the tiles of a chunk are; |from|: its first tile in the panel. */
static MlirValue chunk_address(const emitter_t *self, o3_builder_t *b, MlirValue from) {
  MlirValue chunk = o3_build2(b, "arith.divui", from, o3_build_index(b, self->plan.schedule.chunk));
  return add(b, self->v.offset, times(b, chunk, self->plan.chunk_step));
}

typedef struct input {
  const emitter_t *self;
  MlirValue chunk_from, block;
} input_t;

static o3_status_t build_input_tile(o3_builder_t *b, void *context, MlirValue tile, const MlirValue *carried,
                                    MlirValue *next) {
  enum { N, C, H, W };
  const input_t *input = context;
  const emitter_t *self = input->self;
  MlirValue a[O3_WINOGRAD_IN_ARGUMENTS];
  (void)carried, (void)next;
  place_t place = place_of(self, b, add(b, add(b, self->panel_from, input->chunk_from), tile));
  MlirValue image = add(b, self->x.offset, mul(b, place.image, self->x.strides[N]));
  MlirValue block =
      add(b, chunk_address(self, b, input->chunk_from), times(b, input->block, self->plan.block_step));
  a[O3_WINOGRAD_IN_X] = self->x.flat;
  a[O3_WINOGRAD_IN_X_AT] = add(b, image, mul(b, input->block, self->x.strides[C]));
  a[O3_WINOGRAD_IN_X_ROW] = self->x.strides[H];
  a[O3_WINOGRAD_IN_H] = self->x.sizes[H];
  a[O3_WINOGRAD_IN_W] = self->x.sizes[W];
  a[O3_WINOGRAD_IN_TOP] = shifted(b, place.row, self->lows[0]);
  a[O3_WINOGRAD_IN_LEFT] = shifted(b, place.column, self->lows[1]);
  a[O3_WINOGRAD_IN_V] = self->v.flat;
  a[O3_WINOGRAD_IN_V_AT] = add(b, block, times(b, tile, LANES));
  a[O3_WINOGRAD_IN_V_POINT] = o3_build_index(b, self->plan.point_step);
  return call_transform(self, b, false, O3_WINOGRAD_IN_ARGUMENTS, a);
}

static MlirValue tiles_of_chunk(const emitter_t *self, o3_builder_t *b, MlirValue from) {
  return least(b, o3_build2(b, "arith.subi", self->panel_size, from),
               o3_build_index(b, self->plan.schedule.chunk));
}

/* Block by block: the processor's own prefetching follows the rows of one patch, not of all blocks'. */
static o3_status_t build_input(const emitter_t *self, o3_builder_t *b) {
  const plan_t *plan = &self->plan;
  MlirValue one = o3_build_index(b, 1), chunk = o3_build_index(b, plan->schedule.chunk), at[2];
  const MlirValue sizes[] = {self->panel_size, o3_build_index(b, plan->blocks)}, steps[] = {chunk, one};
  int64_t work = plan->schedule.chunk * self->form->points * self->form->points * 8;
  o3_builder_t in = o3_cpu_parallel(b, 2, sizes, steps, work, at);
  input_t input = {.self = self, .chunk_from = at[0], .block = at[1]};
  o3_for_t tiles = {.lower = o3_build_index(&in, 0),
                    .upper = tiles_of_chunk(self, &in, at[0]),
                    .step = o3_build_index(&in, 1),
                    .body = build_input_tile,
                    .context = &input};
  return o3_build_for(&in, &tiles, NULL);
}

/* ---- Products ---- */

typedef struct task {
  emitter_t *self;
  MlirValue chunk_from, count; /* tiles: in the panel, and how many */
  MlirValue block;             /* the first of the register tile's */
  view_t p;
  MlirValue point;
  MlirValue p_at;   /* of the block whose results are computed; none: 0 */
  MlirValue input;  /* the first block of channels that is summed */
  int pixels, used; /* of the register tiles to build: rows, and lanes of the block */
} task_t;

static int64_t num_points(const emitter_t *self) { return (int64_t)self->form->points * self->form->points; }

/* Floats of P for a block. */
static int64_t block_products(const emitter_t *self) {
  return num_points(self) * self->plan.schedule.chunk * LANES;
}

/* A piece of the sums: those after the first one are added to P. */
static void depth_arguments(const task_t *task, o3_builder_t *b, MlirValue *a) {
  const plan_t *plan = &task->self->plan;
  MlirValue blocks = o3_build_index(b, plan->blocks), lanes = o3_build_index(b, LANES);
  a[O3_TILE_START] = o3_build_index(b, O3_TILE_ZERO);
  a[O3_TILE_N2] = blocks;
  a[O3_TILE_C] = lanes;
  a[O3_TILE_C_LAST] = o3_build_index(b, plan->last_inputs);
  if (mlirValueIsNull(task->input)) return;
  MlirValue first = o3_build_cmpi(b, O3_CMPI_EQ, task->input, o3_build_index(b, 0));
  MlirValue end = add(b, task->input, o3_build_index(b, plan->schedule.depth));
  MlirValue is_last = o3_build_cmpi(b, O3_CMPI_UGE, end, blocks);
  a[O3_TILE_START] = o3_build_select(b, first, a[O3_TILE_START], o3_build_index(b, O3_TILE_OLD));
  a[O3_TILE_N2] = o3_build2(b, "arith.subi", least(b, end, blocks), task->input);
  a[O3_TILE_C_LAST] = o3_build_select(b, is_last, a[O3_TILE_C_LAST], lanes);
  a[O3_TILE_X_AT] = add(b, a[O3_TILE_X_AT], mul(b, task->input, a[O3_TILE_S2]));
  a[O3_TILE_W_AT] = add(b, a[O3_TILE_W_AT], times(b, task->input, LANES * LANES));
}

static o3_status_t call_product(o3_builder_t *b, void *context, MlirValue from, const MlirValue *carried,
                                MlirValue *next) {
  const task_t *task = context;
  const emitter_t *self = task->self;
  const plan_t *plan = &self->plan;
  const o3_tile_t tile = {.lanes = self->lanes < task->used ? self->lanes : task->used,
                          .blocks = (int)plan->schedule.blocks,
                          .pixels = task->pixels,
                          .x_step = LANES,
                          .shared = plan->schedule.chunk / task->pixels >= UNROLL,
                          .unroll = UNROLL,
                          .width = LANES,
                          .used = task->used,
                          .zeros = LANES - task->used};
  MlirValue zero = o3_build_index(b, 0), one = o3_build_index(b, 1), a[O3_TILE_ARGUMENTS];
  (void)carried, (void)next;
  MlirValue point = add(b, times(b, task->block, num_points(self)), task->point);
  for (int i = 0; i < O3_TILE_ARGUMENTS; ++i) a[i] = zero;
  a[O3_TILE_X] = self->v.flat;
  a[O3_TILE_X_AT] = add(b, chunk_address(self, b, task->chunk_from),
                        add(b, times(b, task->point, plan->point_step), times(b, from, LANES)));
  a[O3_TILE_W] = self->w.flat;
  a[O3_TILE_W_AT] = add(b, self->w.offset, times(b, point, plan->blocks * LANES * LANES));
  a[O3_TILE_Y] = task->p.flat;
  a[O3_TILE_Y_AT] = add(b, times(b, task->point, plan->schedule.chunk * LANES), times(b, from, LANES));
  a[O3_TILE_Y_STEP] = o3_build_index(b, LANES);
  if (tile.blocks > 1) {
    a[O3_TILE_W_NEXT] = o3_build_index(b, num_points(self) * plan->blocks * LANES * LANES);
    a[O3_TILE_Y_NEXT] = o3_build_index(b, block_products(self));
  }
  a[O3_TILE_B] = self->w.flat;
  a[O3_TILE_S2] = o3_build_index(b, plan->block_step);
  a[O3_TILE_N1] = a[O3_TILE_N0] = one;
  a[O3_TILE_COLS] = o3_build_index(b, LANES);
  depth_arguments(task, b, a);
  if (tile.shared) {
    MlirValue weights = times(b, a[O3_TILE_N2], LANES * LANES);
    a[O3_TILE_W_AHEAD] = o3_blocked_ask_ahead(&tile, b, from, (MlirValue){0}, weights, weights);
  }
  return call_function(self, b, o3_tile_name(&tile), o3_tile_text(&tile), O3_TILE_ARGUMENTS, a);
}

static o3_status_t build_piece(o3_builder_t *b, void *context, MlirValue input, const MlirValue *carried,
                               MlirValue *next) {
  task_t *task = context;
  (void)carried, (void)next;
  task->input = input;
  o3_for_t loop = {.lower = o3_build_index(b, 0),
                   .upper = task->count,
                   .step = o3_build_index(b, task->pixels),
                   .body = call_product,
                   .context = task};
  return o3_build_for(b, &loop, NULL);
}

static o3_status_t build_tiles(task_t *task, o3_builder_t *b, int pixels) {
  const plan_t *plan = &task->self->plan;
  MlirValue all = {0};
  task->pixels = pixels;
  if (plan->schedule.depth >= plan->blocks) return build_piece(b, task, all, NULL, NULL);
  o3_for_t loop = {.lower = o3_build_index(b, 0),
                   .upper = o3_build_index(b, plan->blocks),
                   .step = o3_build_index(b, plan->schedule.depth),
                   .body = build_piece,
                   .context = task};
  return o3_build_for(b, &loop, NULL);
}

static o3_status_t whole_chunk(o3_builder_t *b, void *context, MlirValue *yields) {
  task_t *task = context;
  (void)yields;
  return build_tiles(task, b, (int)task->self->plan.schedule.whole);
}

static o3_status_t part_of_chunk(o3_builder_t *b, void *context, MlirValue *yields) {
  task_t *task = context;
  (void)yields;
  return build_tiles(task, b, (int)task->self->plan.schedule.pixels);
}

static o3_status_t build_chunk(task_t *task, o3_builder_t *b, int used) {
  const plan_t *plan = &task->self->plan;
  task->used = used;
  if (plan->schedule.whole == plan->schedule.pixels) return whole_chunk(b, task, NULL);
  MlirValue chunk = o3_build_index(b, plan->schedule.chunk);
  o3_if_t branch = {.condition = o3_build_cmpi(b, O3_CMPI_EQ, task->count, chunk),
                    .then_body = whole_chunk,
                    .else_body = part_of_chunk,
                    .context = task};
  return o3_build_if(b, &branch, NULL);
}

static o3_status_t full_block(o3_builder_t *b, void *context, MlirValue *yields) {
  (void)yields;
  return build_chunk(context, b, LANES);
}

static o3_status_t last_block(o3_builder_t *b, void *context, MlirValue *yields) {
  task_t *task = context;
  (void)yields;
  return build_chunk(task, b, task->self->plan.last_lanes);
}

static o3_status_t build_point(o3_builder_t *b, void *context, MlirValue point, const MlirValue *carried,
                               MlirValue *next) {
  task_t *task = context;
  const plan_t *plan = &task->self->plan;
  (void)carried, (void)next;
  task->point = point;
  if (plan->outputs == 1 || plan->last_lanes == LANES) return last_block(b, task, NULL);
  MlirValue last = o3_build_index(b, plan->outputs - 1);
  o3_if_t branch = {.condition = o3_build_cmpi(b, O3_CMPI_EQ, task->block, last),
                    .then_body = last_block,
                    .else_body = full_block,
                    .context = task};
  return o3_build_if(b, &branch, NULL);
}

/* ---- Output ---- */

typedef struct output {
  const task_t *task;
  place_t place;
  const o3_blocked_side_t *side;
  MlirValue row;
} output_t;

static void side_ivs(const output_t *out, const o3_blocked_side_t *side, o3_builder_t *b, MlirValue row,
                     MlirValue column, MlirValue *ivs) {
  const MlirValue at[] = {out->place.image, out->task->block, row, column, o3_build_index(b, 0)};
  for (int d = 0; d < side->nest.num_dims; ++d) ivs[d] = at[4];
  for (int d = 0; d < 5; ++d) {
    if (side->dims[d] >= 0) ivs[side->dims[d]] = at[d];
  }
}

static o3_status_t side_pixel(o3_builder_t *b, void *context, MlirValue column, const MlirValue *carried,
                              MlirValue *next) {
  const output_t *out = context;
  const emitter_t *self = out->task->self;
  o3_loops_frame_t frame = {.ranged = -1};
  (void)carried, (void)next;
  side_ivs(out, out->side, b, out->row, column, frame.ivs);
  if (out->side->vectors)
    return o3_blocked_side_vectors(out->side, b, self->output.lane, self->lanes, frame.ivs);
  for (int d = 0; d < self->output.lane; ++d) {
    if (out->side->dims[d] >= 0) frame.fixed[out->side->dims[d]] = true;
  }
  return o3_loops_build((o3_nest_t *)&out->side->nest, b, &frame);
}

/* From a tile's first row or column to its last one that the result has. */
static MlirValue end_of(const output_t *out, o3_builder_t *b, MlirValue from, int dim) {
  const emitter_t *self = out->task->self;
  return least(b, add(b, from, o3_build_index(b, self->form->tile)), self->output.nest.size_values[dim]);
}

static o3_status_t side_row(o3_builder_t *b, void *context, MlirValue row, const MlirValue *carried,
                            MlirValue *next) {
  output_t *out = context;
  (void)carried, (void)next;
  out->row = row;
  o3_for_t loop = {.lower = out->place.column,
                   .upper = end_of(out, b, out->place.column, 3),
                   .step = o3_build_index(b, 1),
                   .body = side_pixel,
                   .context = out};
  return o3_build_for(b, &loop, NULL);
}

static o3_status_t build_side(output_t *out, o3_builder_t *b, const o3_blocked_side_t *side) {
  out->side = side;
  o3_for_t loop = {.lower = out->place.row,
                   .upper = end_of(out, b, out->place.row, 2),
                   .step = o3_build_index(b, 1),
                   .body = side_row,
                   .context = out};
  return o3_build_for(b, &loop, NULL);
}

static MlirValue bias_address(const output_t *out, o3_builder_t *b) {
  const emitter_t *self = out->task->self;
  MlirValue ivs[O3_IR_MAX_RANK];
  side_ivs(out, &self->before[0], b, out->place.row, out->place.column, ivs);
  return o3_nest_address(&self->before[0].nest, self->bias, b, ivs);
}

static o3_status_t call_output(const output_t *out, o3_builder_t *b, MlirValue tile) {
  const emitter_t *self = out->task->self;
  const o3_nest_operand_t *y = self->output.y;
  MlirValue a[O3_WINOGRAD_OUT_ARGUMENTS], zero = o3_build_index(b, 0), ivs[O3_IR_MAX_RANK];
  for (int d = 0; d < self->output.nest.num_dims; ++d) ivs[d] = zero;
  ivs[0] = out->place.image, ivs[1] = out->task->block, ivs[2] = out->place.row, ivs[3] = out->place.column;
  a[O3_WINOGRAD_OUT_P] = out->task->p.flat;
  a[O3_WINOGRAD_OUT_P_AT] = times(b, tile, LANES);
  if (!mlirValueIsNull(out->task->p_at))
    a[O3_WINOGRAD_OUT_P_AT] = add(b, a[O3_WINOGRAD_OUT_P_AT], out->task->p_at);
  a[O3_WINOGRAD_OUT_P_POINT] = o3_build_index(b, self->plan.schedule.chunk * LANES);
  a[O3_WINOGRAD_OUT_Y] = y->flat;
  a[O3_WINOGRAD_OUT_Y_AT] = o3_nest_address(&self->output.nest, y, b, ivs);
  a[O3_WINOGRAD_OUT_Y_ROW] = y->stride_values[2];
  a[O3_WINOGRAD_OUT_B] = self->bias ? self->bias->flat : y->flat;
  a[O3_WINOGRAD_OUT_B_AT] = self->bias ? bias_address(out, b) : zero;
  a[O3_WINOGRAD_OUT_ROWS] = o3_build2(b, "arith.subi", self->output.nest.size_values[2], out->place.row);
  a[O3_WINOGRAD_OUT_COLUMNS] =
      o3_build2(b, "arith.subi", self->output.nest.size_values[3], out->place.column);
  return call_transform(self, b, true, O3_WINOGRAD_OUT_ARGUMENTS, a);
}

static o3_status_t build_output(o3_builder_t *b, void *context, MlirValue tile, const MlirValue *carried,
                                MlirValue *next) {
  const task_t *task = context;
  const emitter_t *self = task->self;
  output_t out = {.task = task};
  (void)carried, (void)next;
  out.place = place_of(self, b, add(b, add(b, self->panel_from, task->chunk_from), tile));
  for (int i = 0; i < self->num_before && self->start == O3_TILE_OLD; ++i)
    O3_TRY(build_side(&out, b, &self->before[i]));
  O3_TRY(call_output(&out, b, tile));
  for (int i = 0; i < self->num_after; ++i) O3_TRY(build_side(&out, b, &self->after[i]));
  return NULL;
}

static o3_status_t build_outputs(const task_t *task, o3_builder_t *b) {
  o3_for_t tiles = {.lower = o3_build_index(b, 0),
                    .upper = task->count,
                    .step = o3_build_index(b, 1),
                    .body = build_output,
                    .context = (void *)task};
  return o3_build_for(b, &tiles, NULL);
}

/* Of one block of the register tile's. */
static o3_status_t build_block_outputs(o3_builder_t *b, void *context, MlirValue number,
                                       const MlirValue *carried, MlirValue *next) {
  task_t task = *(const task_t *)context;
  (void)carried, (void)next;
  task.block = add(b, task.block, number);
  task.p_at = times(b, number, block_products(task.self));
  return build_outputs(&task, b);
}

/* ---- Tasks ---- */

static MlirValue build_stack(const emitter_t *self, o3_builder_t *b) {
  const int32_t none[2] = {0, 0};
  int64_t floats = self->plan.schedule.blocks * block_products(self);
  return o3_build1_attrs(b, "memref.alloca", o3_memref_type(1, &floats, mlirF32TypeGet(b->context)),
                         O3_NO_VALUES,
                         O3_ATTRS({"alignment", o3_attr_i64(b->context, O3_CPU_ALIGNMENT)},
                                  {"operandSegmentSizes", mlirDenseI32ArrayGet(b->context, 2, none)}));
}

static o3_status_t build_products(emitter_t *self, o3_builder_t *b) {
  const o3_schedule_winograd_t *s = &self->plan.schedule;
  MlirValue at[2], sizes[2], steps[2], zero = o3_build_index(b, 0);
  /* A dim of one chunk would be none. */
  int first = s->panel > s->chunk ? 0 : 1, chunks = s->weights_first && !first ? 1 : 0;
  sizes[chunks] = self->panel_size, sizes[!chunks] = self->output.nest.size_values[self->output.block];
  steps[chunks] = o3_build_index(b, s->chunk), steps[!chunks] = o3_build_index(b, s->blocks);
  int64_t work = s->blocks * num_points(self) * s->chunk * self->plan.blocks * LANES;
  at[0] = zero;
  o3_builder_t in = o3_cpu_parallel(b, 2 - first, sizes + first, steps + first, work, at + first);
  task_t task = {.self = self, .chunk_from = at[chunks], .block = at[!chunks]};
  task.count = tiles_of_chunk(self, &in, at[chunks]);
  read_view(&in, build_stack(self, &in), &task.p);
  o3_for_t points = {.lower = zero,
                     .upper = o3_build_index(&in, num_points(self)),
                     .step = o3_build_index(&in, 1),
                     .body = build_point,
                     .context = &task};
  O3_TRY(o3_build_for(&in, &points, NULL));
  if (s->blocks == 1) return build_outputs(&task, &in);
  o3_for_t blocks = {.lower = zero,
                     .upper = steps[!chunks],
                     .step = o3_build_index(&in, 1),
                     .body = build_block_outputs,
                     .context = &task};
  return o3_build_for(&in, &blocks, NULL);
}

static o3_status_t build_panel(o3_builder_t *b, void *context, MlirValue from, const MlirValue *carried,
                               MlirValue *next) {
  emitter_t *self = context;
  (void)carried, (void)next;
  self->panel_from = from;
  const plan_t *plan = &self->plan;
  bool single = plan->schedule.strips == 1 && plan->tiles >= 0 && plan->tiles <= plan->schedule.panel;
  self->panel_size = o3_build_index(b, single ? plan->tiles : plan->schedule.panel);
  if (plan->tiles < 0 || plan->schedule.strips > 1 || (!single && plan->tiles % plan->schedule.panel))
    self->panel_size = least(b, o3_build2(b, "arith.subi", self->tiles, from), self->panel_size);
  O3_TRY(build_input(self, b));
  return build_products(self, b);
}

/* A strip's chunks, one by one. */
static o3_status_t build_strips(emitter_t *self, o3_builder_t *b) {
  const plan_t *plan = &self->plan;
  MlirValue strip, strips = o3_build_index(b, plan->schedule.strips), one = o3_build_index(b, 1);
  MlirValue chunk = o3_build_index(b, plan->schedule.chunk), tiles = self->tiles;
  MlirValue chunks = o3_build2(b, "arith.ceildivui", tiles, chunk);
  int64_t work = num_points(self) * plan->schedule.chunk * plan->blocks * LANES;
  o3_builder_t in = o3_cpu_parallel(b, 1, &strips, &one, work, &strip);
  MlirValue first = o3_build2(&in, "arith.divui", mul(&in, chunks, strip), strips);
  MlirValue end = o3_build2(&in, "arith.divui", mul(&in, chunks, add(&in, strip, one)), strips);
  self->v.offset = add(&in, self->v.offset, times(&in, strip, panel_floats(plan)));
  self->tiles = least(&in, mul(&in, end, chunk), tiles);
  o3_for_t panels = {.lower = mul(&in, first, chunk),
                     .upper = self->tiles,
                     .step = o3_build_index(&in, plan->schedule.panel),
                     .body = build_panel,
                     .context = self};
  return o3_build_for(&in, &panels, NULL);
}

static o3_status_t build_panels(emitter_t *self, o3_builder_t *b) {
  MlirValue zero = o3_build_index(b, 0);
  if (self->plan.tiles >= 0 && self->plan.tiles <= self->plan.schedule.panel)
    return build_panel(b, self, zero, NULL, NULL);
  o3_for_t panels = {.lower = zero,
                     .upper = self->tiles,
                     .step = o3_build_index(b, self->plan.schedule.panel),
                     .body = build_panel,
                     .context = self};
  return o3_build_for(b, &panels, NULL);
}

/* ---- The kernel ---- */

/* A bias is the same for all images and pixels. */
static void read_start(emitter_t *self) {
  self->start = o3_blocked_read_start(&self->output, self->num_before, self->before, &self->bias);
  static const int PIXELS[] = {0, 2, 3};
  for (size_t i = 0; i < sizeof(PIXELS) / sizeof(PIXELS[0]) && self->bias; ++i) {
    if (!o3_nest_uses(self->bias, self->before[0].dims[PIXELS[i]])) continue;
    self->bias = NULL;
    self->start = O3_TILE_OLD;
  }
}

static o3_status_t read_kernel(emitter_t *self, const o3_winograd_kernel_t *kernel) {
  self->form = o3_winograd_find(weight_dim(kernel->product, 1) - O3_WINOGRAD_TAPS + 1);
  if (!self->form || !o3_winograd_read_output(kernel->output, &self->output))
    return o3_status_create(O3_STATUS_INTERNAL, "op '%.*s' is no winograd convolution",
                            O3_STR_ARGS(o3_op_label(kernel->output)));
  O3_TRY(o3_blocked_read_sides(&self->output, kernel->num_before, kernel->before, self->before));
  O3_TRY(o3_blocked_read_sides(&self->output, kernel->num_after, kernel->after, self->after));
  O3_TRY(make_plan(self->env->machine, kernel->product, &self->plan));
  self->lanes = (int)self->plan.schedule.lanes;
  read_start(self);
  return NULL;
}

static void flatten(emitter_t *self, o3_builder_t *b, const o3_winograd_kernel_t *kernel, MlirValue scratch) {
  MlirValue x = mlirOperationGetOperand(kernel->input, 0), one = o3_build_index(b, 1);
  o3_halo_t halo;
  bool bordered = !mlirOperationIsNull(kernel->border) && o3_halo_read(kernel->border, &halo);
  if (bordered) {
    x = halo.from;
    self->lows[0] = halo.lows[2], self->lows[1] = halo.lows[3];
  }
  read_view(b, x, &self->x);
  read_view(b, mlirOperationGetOperand(kernel->product, 1), &self->w);
  read_view(b, scratch, &self->v);
  o3_nest_flatten(&self->output.nest, b);
  for (int i = 0; i < self->num_before; ++i) o3_nest_flatten(&self->before[i].nest, b);
  for (int i = 0; i < self->num_after; ++i) o3_nest_flatten(&self->after[i].nest, b);
  const MlirValue *sizes = self->output.nest.size_values;
  MlirValue tile = o3_build_index(b, self->form->tile), around = o3_build_index(b, self->form->tile - 1);
  self->rows = o3_build2(b, "arith.divui", add(b, sizes[2], around), tile);
  self->columns = o3_build2(b, "arith.divui", add(b, sizes[3], around), tile);
  self->rows = o3_build2(b, "arith.maxsi", self->rows, one);
  self->columns = o3_build2(b, "arith.maxsi", self->columns, one);
  self->tiles = mul(b, sizes[0], mul(b, self->rows, self->columns));
}

o3_status_t o3_winograd_emit(o3_pass_env_t *env, MlirModule module, const o3_winograd_kernel_t *kernel,
                             MlirValue scratch) {
  static _Thread_local emitter_t self;
  self = (emitter_t){
      .env = env, .module = module, .num_before = kernel->num_before, .num_after = kernel->num_after};
  O3_TRY(read_kernel(&self, kernel));
  MlirOperation last = kernel->num_after ? kernel->after[kernel->num_after - 1] : kernel->output;
  o3_builder_t b = o3_builder_before(last);
  flatten(&self, &b, kernel, scratch);
  return self.plan.schedule.strips > 1 ? build_strips(&self, &b) : build_panels(&self, &b);
}
