/* Emission of matrix products with compressed rows.
 *
 *     scf.parallel (panels, parts of the columns of equal work)
 *       for groups of 16 columns: tiles over the panel: call @o3k_f32_panel_...(...)
 *       what follows the product, over the same rows and columns while they are in the cache
 *
 * A panel of X is read again for each column, from the second cache mostly; the layout pass has made it, once
 * for all products that read the same matrix.
 */
#include "target/cpu/sparse_matrix.h"

#include <stdlib.h>

#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/loops.h"
#include "target/cpu/panel_text.h"
#include "target/cpu/sparse_rows.h"

enum { MAX_SIDES = 4, MAX_SIZES = 5, ROW = 0, COLUMN = 1, IN_PANEL = 2 };

typedef struct emitter {
  o3_pass_env_t *env;
  MlirModule module;
  o3_blocked_t *product;
  int lanes;
  int num_sizes;
  int sizes[MAX_SIZES]; /* of tiles, in vectors, as they are tried on what is left of a panel */
  int num_after;
  o3_blocked_side_t after[MAX_SIDES];
} emitter_t;

/* A part of the columns of a panel. */
typedef struct task {
  emitter_t *self;
  MlirValue x_at;       /* of the panel */
  MlirValue first, end; /* rows */
  MlirValue from, to;   /* columns */
  MlirValue column;     /* the first of 16 */
  int vectors;          /* of the tile */
} task_t;

static MlirValue binary(o3_builder_t *b, const char *op, MlirValue x, int64_t constant) {
  return o3_build2(b, op, x, o3_build_index(b, constant));
}

/* ---- Sizes ---- */

static o3_status_t choose_sizes(emitter_t *self) {
  o3_schedule_csr_t schedule;
  O3_TRY(o3_sparse_rows_read_schedule(self->env->machine, self->product, &schedule));
  self->lanes = (int)schedule.lanes;
  self->sizes[self->num_sizes++] = (int)schedule.vectors;
  for (int rest = (int)schedule.rest; rest; rest /= 2) self->sizes[self->num_sizes++] = rest;
  return NULL;
}

/* ---- Tiles ---- */

static o3_status_t add_tile(const emitter_t *self, const o3_panel_tile_t *tile, const char *name) {
  if (!mlirOperationIsNull(o3_module_func(self->module, name))) return NULL;
  char *text = o3_panel_text(tile);
  O3_TRY_ALLOC(text);
  o3_status_t status = o3_cpu_add_functions(self->module, text, "panel");
  free(text);
  return status;
}

static void fill_arguments(const task_t *task, o3_builder_t *b, MlirValue row, MlirValue *a) {
  const o3_blocked_t *p = task->self->product;
  MlirValue ivs[] = {row, task->column};
  a[O3_PANEL_X] = p->x->flat;
  a[O3_PANEL_X_AT] = o3_build2(b, "arith.addi", task->x_at, o3_build2(b, "arith.subi", row, task->first));
  a[O3_PANEL_W] = p->w->flat;
  a[O3_PANEL_TABLE] = p->nest.operands[O3_SPARSE_COLUMNS].flat;
  a[O3_PANEL_ENDS] = p->nest.operands[O3_SPARSE_ROWS].flat;
  a[O3_PANEL_ENDS_AT] = o3_build2(b, "arith.addi", p->nest.operands[O3_SPARSE_ROWS].offset, task->column);
  a[O3_PANEL_Y] = p->y->flat;
  a[O3_PANEL_Y_AT] = o3_nest_address(&p->nest, p->y, b, ivs);
  a[O3_PANEL_Y_STEP] = p->y->stride_values[ROW];
  a[O3_PANEL_COUNT] = o3_build2(b, "arith.subi", task->end, row);
  MlirValue left = o3_build2(b, "arith.subi", task->to, task->column);
  a[O3_PANEL_COLS] = binary(b, "arith.minui", left, O3_PANEL_COLUMNS);
}

static o3_status_t tile_body(o3_builder_t *b, void *context, MlirValue row, const MlirValue *carried,
                             MlirValue *next) {
  const task_t *task = context;
  emitter_t *self = task->self;
  const o3_panel_tile_t tile = {self->lanes, task->vectors, (int)self->product->x->sizes[IN_PANEL]};
  MlirValue a[O3_PANEL_ARGUMENTS];
  (void)carried, (void)next;
  fill_arguments(task, b, row, a);
  char *name = o3_panel_name(&tile);
  O3_TRY_ALLOC(name);
  o3_cpu_call(b, name, O3_PANEL_ARGUMENTS, a);
  o3_status_t status = add_tile(self, &tile, name);
  free(name);
  return status;
}

/* Tiles of all sizes over the rows that exist: the last of a size may reach beyond them by less than a
 * vector. */
static o3_status_t build_tiles(o3_builder_t *b, void *context, MlirValue column, const MlirValue *carried,
                               MlirValue *next) {
  task_t *task = context;
  const emitter_t *self = task->self;
  MlirValue rows = o3_build2(b, "arith.subi", task->end, task->first), from = task->first;
  MlirValue vectors = binary(b, "arith.divui", binary(b, "arith.addi", rows, self->lanes - 1), self->lanes);
  MlirValue all = o3_build2(b, "arith.addi", from, binary(b, "arith.muli", vectors, self->lanes));
  (void)carried, (void)next;
  task->column = column;
  for (int i = 0; i < self->num_sizes; ++i) {
    task->vectors = self->sizes[i];
    MlirValue step = o3_build_index(b, (int64_t)self->sizes[i] * self->lanes);
    MlirValue count = o3_build2(b, "arith.divui", o3_build2(b, "arith.subi", all, from), step);
    MlirValue end = o3_build2(b, "arith.addi", from, o3_build2(b, "arith.muli", count, step));
    o3_for_t loop = {.lower = from, .upper = end, .step = step, .body = tile_body, .context = task};
    O3_TRY(o3_build_for(b, &loop, NULL));
    from = end;
  }
  return NULL;
}

/* ---- Ops after the product ---- */

typedef struct side_loop {
  const task_t *task;
  o3_blocked_side_t *side;
} side_loop_t;

static o3_status_t side_row(o3_builder_t *b, void *context, MlirValue row, const MlirValue *carried,
                            MlirValue *next) {
  const side_loop_t *loop = context;
  const int *dims = loop->side->dims;
  o3_loops_frame_t frame = {.ranged = dims[COLUMN], .lower = loop->task->from, .upper = loop->task->to};
  (void)carried, (void)next;
  frame.fixed[dims[ROW]] = true;
  frame.ivs[dims[ROW]] = row;
  return o3_loops_build(&loop->side->nest, b, &frame);
}

static o3_status_t build_sides(const task_t *task, o3_builder_t *b) {
  emitter_t *self = task->self;
  for (int i = 0; i < self->num_after; ++i) {
    side_loop_t context = {task, &self->after[i]};
    o3_for_t rows = {.lower = task->first,
                     .upper = task->end,
                     .step = o3_build_index(b, 1),
                     .body = side_row,
                     .context = &context};
    O3_TRY(o3_build_for(b, &rows, NULL));
  }
  return NULL;
}

/* ---- Tasks ---- */

static int64_t task_work(const emitter_t *self) {
  const o3_blocked_t *p = self->product;
  return (p->w->sizes[0] / p->sparse.num_parts + 1) * (p->x->sizes[IN_PANEL] / self->lanes + 1);
}

/* As a constant where it is one, so that a single panel is no loop. */
static MlirValue build_panels(const emitter_t *self, o3_builder_t *b) {
  const o3_blocked_t *p = self->product;
  int64_t panel = p->x->sizes[IN_PANEL], rows = p->nest.sizes[ROW];
  if (rows >= 0) return o3_build_index(b, (rows + panel - 1) / panel);
  return binary(b, "arith.divui", binary(b, "arith.addi", p->nest.size_values[ROW], panel - 1), panel);
}

static o3_status_t build(emitter_t *self, o3_builder_t *b) {
  const o3_blocked_t *p = self->product;
  MlirValue one = o3_build_index(b, 1), at[2];
  int64_t panel = p->x->sizes[IN_PANEL];
  const MlirValue sizes[] = {build_panels(self, b), o3_build_index(b, p->sparse.num_parts)},
                  steps[] = {one, one};
  o3_builder_t in = o3_cpu_parallel(b, 2, sizes, steps, task_work(self), at);
  task_t task = {.self = self};
  task.x_at =
      o3_build2(&in, "arith.addi", p->x->offset, o3_build2(&in, "arith.muli", at[0], p->x->stride_values[0]));
  task.first = binary(&in, "arith.muli", at[0], panel);
  task.end =
      o3_build2(&in, "arith.minui", binary(&in, "arith.addi", task.first, panel), p->nest.size_values[ROW]);
  task.from = o3_sparse_part_start(&p->nest, &p->sparse, &in, at[1]);
  task.to = o3_sparse_part_start(&p->nest, &p->sparse, &in, binary(&in, "arith.addi", at[1], 1));
  o3_for_t columns = {.lower = task.from,
                      .upper = task.to,
                      .step = o3_build_index(&in, O3_PANEL_COLUMNS),
                      .body = build_tiles,
                      .context = &task};
  O3_TRY(o3_build_for(&in, &columns, NULL));
  return build_sides(&task, &in);
}

/* ---- The kernel ---- */

static o3_status_t read_sides(emitter_t *self, const o3_product_kernel_t *kernel) {
  static _Thread_local o3_blocked_side_t before;
  if (kernel->num_before != 1) return o3_product_cannot_take(kernel->product, "its sums start at nothing");
  const char *why = o3_blocked_read_side(self->product, kernel->before[0], &before);
  if (!why && !o3_nest_is_zero(&before.nest)) why = "sums of compressed rows of a matrix start at zero";
  if (why) return o3_product_cannot_take(kernel->before[0], why);
  return o3_blocked_read_sides(self->product, kernel->num_after, kernel->after, self->after);
}

o3_status_t o3_sparse_matrix_emit(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel,
                                  o3_blocked_t *product) {
  static _Thread_local emitter_t self;
  self = (emitter_t){.env = env, .module = module, .product = product, .num_after = kernel->num_after};
  O3_TRY(read_sides(&self, kernel));
  O3_TRY(choose_sizes(&self));
  o3_builder_t b = o3_product_builder(kernel);
  o3_nest_flatten(&product->nest, &b);
  for (int i = 0; i < self.num_after; ++i) o3_nest_flatten(&self.after[i].nest, &b);
  return build(&self, &b);
}
