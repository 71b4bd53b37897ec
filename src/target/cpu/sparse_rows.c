/* Emission of compressed rows.
 *
 *     scf.parallel (n, pieces of the plane, parts of m of equal work)
 *       for the outputs of the part: tiles over the piece: call @o3k_f32_rows_...(...)
 *       what follows the product, over the same piece while it is in the cache
 *
 * All channels of a piece of X are read again and again while m runs, so a piece is short: as many vectors as
 * a tile has, which differ by one at most when the sizes are known.
 */
#include "target/cpu/sparse_rows.h"

#include <stdlib.h>

#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/loops.h"
#include "target/cpu/rows_text.h"

enum { MAX_SIDES = 4, MAX_SIZES = 5, N = 0, M = 1, RUN = 3 };

typedef struct emitter {
  o3_pass_env_t *env;
  MlirModule module;
  o3_blocked_t *product;
  int lanes, most; /* vectors of a piece */
  int num_sizes;
  int sizes[MAX_SIZES];          /* of tiles, in vectors, as they are tried on what is left of a piece */
  int64_t vectors, pieces;       /* of a plane; -1: known at run time */
  const o3_nest_operand_t *bias; /* of before, or NULL: the sums start at |start| */
  double start;
  o3_blocked_side_t before;
  int num_after;
  o3_blocked_side_t after[MAX_SIDES];
} emitter_t;

/* A piece of a plane. */
typedef struct task {
  emitter_t *self;
  MlirValue image, output; /* n, m */
  MlirValue positions;     /* of the plane */
  MlirValue from, to;      /* vectors of the piece */
  MlirValue a[O3_ROWS_ARGUMENTS];
  o3_rows_tile_t tile;
} task_t;

/* ---- Sizes ---- */

static int64_t positions_of(const o3_blocked_t *p) {
  const int64_t *x = p->x->sizes, *y = p->y->sizes;
  if (x[3] < 0 || y[2] < 0 || y[3] < 0) return -1;
  return y[2] && y[3] ? (y[2] - 1) * x[3] + y[3] : 0;
}

o3_status_t o3_sparse_rows_read_schedule(const o3_machine_t *machine, const o3_blocked_t *p,
                                         o3_schedule_csr_t *schedule) {
  enum { ROW = 0, IN_PANEL = 2 };
  int64_t panel = p->sparse.is_matmul ? p->x->sizes[IN_PANEL] : 0;
  int64_t rows = panel ? p->nest.sizes[ROW] : positions_of(p);
  *schedule = o3_schedule_csr(machine, panel, rows);
  O3_TRY(o3_schedule_read(p->nest.op, O3_SCHEDULE_FAMILY_CSR, schedule));
  int64_t vectors = (panel + schedule->lanes - 1) / schedule->lanes;
  bool leaves = rows < 0 || (panel && (rows % panel || vectors % schedule->vectors));
  if (!leaves || schedule->vectors == 1 || schedule->rest) return NULL;
  return o3_schedule_refuse(p->nest.op, "rest", schedule->rest,
                            "at least 1 where tiles may be filled in part");
}

o3_status_t o3_sparse_rows_schedule(o3_pass_env_t *env, const o3_blocked_t *product) {
  o3_schedule_csr_t schedule;
  O3_TRY(o3_sparse_rows_read_schedule(env->machine, product, &schedule));
  o3_op_attr_set(product->nest.op, O3_SCHEDULE_ATTR,
                 o3_schedule_attr(env->context, O3_SCHEDULE_FAMILY_CSR, &schedule));
  return NULL;
}

static o3_status_t choose_sizes(emitter_t *self) {
  o3_schedule_csr_t schedule;
  O3_TRY(o3_sparse_rows_read_schedule(self->env->machine, self->product, &schedule));
  int64_t positions = positions_of(self->product);
  self->lanes = (int)schedule.lanes;
  self->most = (int)schedule.vectors;
  self->vectors = positions < 0 ? -1 : (positions + self->lanes - 1) / self->lanes;
  self->pieces = positions <= 0 ? -1 : (self->vectors + self->most - 1) / self->most;
  if (self->pieces > 0) {
    int base = (int)(self->vectors / self->pieces);
    if (self->vectors % self->pieces) self->sizes[self->num_sizes++] = base + 1;
    self->sizes[self->num_sizes++] = base;
    return NULL;
  }
  self->sizes[self->num_sizes++] = self->most;
  for (int rest = (int)schedule.rest; rest; rest /= 2) self->sizes[self->num_sizes++] = rest;
  return NULL;
}

static MlirValue binary(o3_builder_t *b, const char *op, MlirValue x, int64_t constant) {
  return o3_build2(b, op, x, o3_build_index(b, constant));
}

static MlirValue rounded_up(o3_builder_t *b, MlirValue x, int64_t to) {
  return binary(b, "arith.divui", binary(b, "arith.addi", x, to - 1), to);
}

/* (height - 1) * pitch + width, none in an empty image. */
static MlirValue build_positions(const emitter_t *self, o3_builder_t *b) {
  const o3_blocked_t *p = self->product;
  MlirValue width = p->y->stride_values[2];
  MlirValue height = o3_build2(b, "arith.divui", p->y->stride_values[1], binary(b, "arith.maxsi", width, 1));
  MlirValue above = o3_build2(b, "arith.muli", binary(b, "arith.subi", height, 1), p->x->stride_values[2]);
  return binary(b, "arith.maxsi", o3_build2(b, "arith.addi", above, width), 0);
}

/* The first vector of piece |i|. */
static MlirValue piece_start(const emitter_t *self, o3_builder_t *b, MlirValue i) {
  if (self->pieces < 0) return binary(b, "arith.muli", i, self->most);
  MlirValue longer = binary(b, "arith.minsi", i, self->vectors % self->pieces);
  return o3_build2(b, "arith.addi", binary(b, "arith.muli", i, self->vectors / self->pieces), longer);
}

/* ---- Tiles ---- */

static o3_status_t add_tile(const emitter_t *self, const o3_rows_tile_t *tile, const char *name) {
  if (!mlirOperationIsNull(o3_module_func(self->module, name))) return NULL;
  char *text = o3_rows_text(tile);
  O3_TRY_ALLOC(text);
  o3_status_t status = o3_cpu_add_functions(self->module, text, "rows");
  free(text);
  return status;
}

static o3_status_t tile_body(o3_builder_t *b, void *context, MlirValue vector, const MlirValue *carried,
                             MlirValue *next) {
  task_t *task = context;
  (void)carried, (void)next;
  task->a[O3_ROWS_POSITION] = binary(b, "arith.muli", vector, task->self->lanes);
  task->a[O3_ROWS_COUNT] = o3_build2(b, "arith.subi", task->positions, task->a[O3_ROWS_POSITION]);
  char *name = o3_rows_name(&task->tile);
  O3_TRY_ALLOC(name);
  o3_cpu_call(b, name, O3_ROWS_ARGUMENTS, task->a);
  o3_status_t status = add_tile(task->self, &task->tile, name);
  free(name);
  return status;
}

/* Tiles of all sizes from |from| to |to|, in vectors. */
static o3_status_t build_tiles(task_t *task, o3_builder_t *b, MlirValue from, MlirValue to) {
  const emitter_t *self = task->self;
  for (int i = 0; i < self->num_sizes; ++i) {
    task->tile = (o3_rows_tile_t){self->lanes, self->sizes[i], self->product->sparse.is_pointwise};
    MlirValue step = o3_build_index(b, self->sizes[i]);
    MlirValue count = o3_build2(b, "arith.divui", o3_build2(b, "arith.subi", to, from), step);
    MlirValue end = o3_build2(b, "arith.addi", from, o3_build2(b, "arith.muli", count, step));
    o3_for_t loop = {.lower = from, .upper = end, .step = step, .body = tile_body, .context = task};
    O3_TRY(o3_build_for(b, &loop, NULL));
    from = end;
  }
  return NULL;
}

/* ---- Ops around the product ---- */

/* Elements of the plane before position |p|. */
static MlirValue elements_before(const task_t *task, o3_builder_t *b, MlirValue position) {
  MlirValue pitch = task->a[O3_ROWS_X_ROW], width = task->a[O3_ROWS_WIDTH];
  if (task->self->product->sparse.is_pointwise) return position;
  MlirValue row = o3_build2(b, "arith.divui", position, pitch);
  MlirValue column = o3_build2(b, "arith.remui", position, pitch);
  return o3_build2(b, "arith.addi", o3_build2(b, "arith.muli", row, width),
                   o3_build2(b, "arith.minsi", column, width));
}

static void side_place(const task_t *task, const o3_blocked_side_t *side, o3_loops_frame_t *frame) {
  const MlirValue places[] = {task->image, task->output};
  for (int d = N; d <= M; ++d) {
    frame->fixed[side->dims[d]] = true;
    frame->ivs[side->dims[d]] = places[d];
  }
}

static o3_status_t build_sides(const task_t *task, o3_builder_t *b, MlirValue from, MlirValue to) {
  emitter_t *self = task->self;
  MlirValue first = binary(b, "arith.muli", from, self->lanes),
            last = binary(b, "arith.muli", to, self->lanes);
  MlirValue lower = elements_before(task, b, first);
  MlirValue upper = elements_before(task, b, o3_build2(b, "arith.minsi", last, task->positions));
  for (int i = 0; i < self->num_after; ++i) {
    o3_loops_frame_t frame = {.ranged = self->after[i].dims[RUN], .lower = lower, .upper = upper};
    side_place(task, &self->after[i], &frame);
    O3_TRY(o3_loops_build(&self->after[i].nest, b, &frame));
  }
  return NULL;
}

/* What the sums start at: the same for all of a plane. */
static MlirValue build_bias(const task_t *task, o3_builder_t *b) {
  emitter_t *self = task->self;
  MlirType f32 = mlirF32TypeGet(b->context);
  o3_loops_frame_t frame = {.ranged = -1};
  if (!self->bias) return o3_build_float(b, f32, self->start);
  for (int d = 0; d < self->before.nest.num_dims; ++d) frame.ivs[d] = o3_build_index(b, 0);
  side_place(task, &self->before, &frame);
  MlirValue at = o3_nest_address(&self->before.nest, self->bias, b, frame.ivs);
  return o3_build1(b, "memref.load", f32, O3_VALUES(self->bias->flat, at));
}

/* ---- Tasks ---- */

static MlirValue row_limit(const o3_blocked_t *p, o3_builder_t *b, MlirValue row) {
  const o3_nest_operand_t *rows = &p->nest.operands[O3_SPARSE_ROWS];
  MlirValue at = o3_build2(b, "arith.addi", row, rows->offset);
  MlirValue limit =
      o3_build1(b, "memref.load", mlirIntegerTypeGet(b->context, 32), O3_VALUES(rows->flat, at));
  return o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(limit));
}

static void fill_arguments(task_t *task, o3_builder_t *b) {
  const o3_blocked_t *p = task->self->product;
  MlirValue ivs[O3_IR_MAX_RANK];
  for (int d = 0; d < p->nest.num_dims; ++d) ivs[d] = o3_build_index(b, 0);
  ivs[N] = task->image;
  ivs[M] = task->output;
  task->a[O3_ROWS_X] = p->x->flat;
  task->a[O3_ROWS_X_AT] = o3_nest_address(&p->nest, p->x, b, ivs);
  task->a[O3_ROWS_X_CHANNEL] = p->x->stride_values[1];
  task->a[O3_ROWS_X_ROW] = p->x->stride_values[2];
  task->a[O3_ROWS_W] = p->w->flat;
  task->a[O3_ROWS_TABLE] = p->nest.operands[O3_SPARSE_COLUMNS].flat;
  task->a[O3_ROWS_FROM] = row_limit(p, b, task->output);
  task->a[O3_ROWS_TO] = row_limit(p, b, binary(b, "arith.addi", task->output, 1));
  task->a[O3_ROWS_BIAS] = build_bias(task, b);
  task->a[O3_ROWS_Y] = p->y->flat;
  task->a[O3_ROWS_Y_AT] = o3_nest_address(&p->nest, p->y, b, ivs);
  task->a[O3_ROWS_WIDTH] = p->y->stride_values[2];
}

static int64_t task_work(const emitter_t *self) {
  const o3_blocked_t *p = self->product;
  return (p->w->sizes[0] / p->sparse.num_rows + 1) * self->most;
}

static o3_status_t build_output(o3_builder_t *b, void *context, MlirValue output, const MlirValue *carried,
                                MlirValue *next) {
  task_t *task = context;
  (void)carried, (void)next;
  task->output = output;
  fill_arguments(task, b);
  O3_TRY(build_tiles(task, b, task->from, task->to));
  return build_sides(task, b, task->from, task->to);
}

static o3_status_t build(emitter_t *self, o3_builder_t *b) {
  const o3_blocked_t *p = self->product;
  task_t task = {.self = self};
  MlirValue one = o3_build_index(b, 1), at[3];
  task.positions = build_positions(self, b);
  MlirValue vectors = rounded_up(b, task.positions, self->lanes);
  MlirValue sizes[] = {p->nest.size_values[N], rounded_up(b, vectors, self->most),
                       o3_build_index(b, p->sparse.num_parts)};
  if (self->pieces >= 0) sizes[1] = o3_build_index(b, self->pieces);
  const MlirValue steps[] = {one, one, one};
  o3_builder_t in = o3_cpu_parallel(b, 3, sizes, steps, task_work(self), at);
  task.image = at[0];
  task.from = piece_start(self, &in, at[1]);
  MlirValue to = piece_start(self, &in, binary(&in, "arith.addi", at[1], 1));
  task.to = o3_build2(&in, "arith.minsi", to, vectors);
  o3_for_t outputs = {
      .lower = o3_sparse_part_start(&p->nest, &p->sparse, &in, at[2]),
      .upper = o3_sparse_part_start(&p->nest, &p->sparse, &in, binary(&in, "arith.addi", at[2], 1)),
      .step = one,
      .body = build_output,
      .context = &task};
  return o3_build_for(&in, &outputs, NULL);
}

/* ---- The kernel ---- */

/* A constant, or a copy of what does not vary along a plane. */
static o3_status_t read_before(emitter_t *self, MlirOperation op) {
  const char *why = o3_blocked_read_side(self->product, op, &self->before);
  if (why) return o3_product_cannot_take(op, why);
  const o3_nest_t *nest = &self->before.nest;
  MlirValue yielded = mlirOperationGetOperand(mlirBlockGetTerminator(nest->body), 0);
  MlirOperation def = o3_value_def(yielded);
  if (!mlirOperationIsNull(def) && o3_op_is(def, "arith.constant")) {
    self->start = mlirFloatAttrGetValueDouble(o3_op_attr(def, "value"));
    return NULL;
  }
  bool copies = nest->num_inputs == 1 && mlirValueEqual(yielded, mlirBlockGetArgument(nest->body, 0)) &&
                !o3_nest_uses(&nest->operands[0], self->before.dims[RUN]);
  if (copies) self->bias = &nest->operands[0];
  return copies ? NULL
                : o3_product_cannot_take(op, "sums of compressed rows start at a constant or at a bias");
}

static o3_status_t read_sides(emitter_t *self, const o3_product_kernel_t *kernel) {
  if (kernel->num_before != 1) return o3_product_cannot_take(kernel->product, "its sums start at nothing");
  O3_TRY(read_before(self, kernel->before[0]));
  return o3_blocked_read_sides(self->product, kernel->num_after, kernel->after, self->after);
}

o3_status_t o3_sparse_rows_emit(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel,
                                o3_blocked_t *product) {
  static _Thread_local emitter_t self;
  self = (emitter_t){.env = env, .module = module, .product = product, .num_after = kernel->num_after};
  O3_TRY(read_sides(&self, kernel));
  O3_TRY(choose_sizes(&self));
  o3_builder_t b = o3_product_builder(kernel);
  o3_nest_flatten(&product->nest, &b);
  o3_nest_flatten(&self.before.nest, &b);
  for (int i = 0; i < self.num_after; ++i) o3_nest_flatten(&self.after[i].nest, &b);
  return build(&self, &b);
}
