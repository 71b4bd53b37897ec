/* cpu-loops: linalg as loops that LLVM vectorises and threads share.
 *
 * Needs: bufferized linalg ops; cpu-contract has taken the products. Guarantees: no linalg op is left.
 *
 * Neighbouring dims that all operands walk as one are merged. The innermost loop is the one along which the
 * most operands are contiguous or constant. If it is parallel, the reductions run around it, over a block of
 * it; if it is a reduction, the results stay in registers:
 *
 *     scf.parallel (others, blocks of v)        scf.parallel (others)
 *       scf.for reductions                        acc = load out
 *         scf.for v in block                      scf.for reductions, v iter_args(acc)
 *           out = body(ins, out)                    acc = body(ins, acc)
 *                                                 store acc, out
 *
 * Float ops may be contracted to FMAs, those of reductions reassociated; which zero is the greatest or least
 * value of a reduction is open.
 */

#include "target/cpu/loops.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/loop_schedule.h"
#include "target/cpu/vector_body.h"

typedef struct span {
  int dim;
  MlirValue lower, upper;
} span_t;

typedef struct loops {
  o3_nest_t *nest;
  const o3_loops_frame_t *frame; /* NULL: all iterations */
  o3_schedule_loops_t schedule;  /* its dims are none that became parts of others */
  int num_outer, num_reduced;    /* parallel dims around; reductions, the inner dim left out */
  int outer[O3_IR_MAX_RANK], reduced[O3_IR_MAX_RANK];
  MlirValue ivs[O3_IR_MAX_RANK];
  MlirValue zero, one;
  int num_spans; /* loops inside the parallel one, when the inner dim is parallel */
  span_t spans[O3_IR_MAX_RANK];
} loops_t;

/* ---- Order ---- */

static bool is_fixed(const loops_t *self, int dim) { return self->frame && self->frame->fixed[dim]; }

/* The loops around those of the schedule, or, in a frame, around the one that suits it best. */
static void order(loops_t *self) {
  const o3_nest_t *nest = self->nest;
  if (self->frame) {
    self->schedule = (o3_schedule_loops_t){.inner = self->frame->ranged, .across = -1};
    if (self->frame->ranged < 0) self->schedule.inner = o3_loop_schedule_inner(nest, self->frame->fixed);
  }
  for (int d = 0; d < nest->num_dims; ++d) {
    bool is_inside = d == self->schedule.inner || d == self->schedule.across;
    if (nest->merged_into[d] >= 0 || is_inside || is_fixed(self, d)) continue;
    if (nest->reduction[d]) {
      self->reduced[self->num_reduced++] = d;
    } else {
      self->outer[self->num_outer++] = d;
    }
  }
}

/* ---- Flags ---- */

static bool is_float_arith(MlirOperation op) {
  bool known = o3_op_is_of(op, "arith") || o3_op_is_of(op, "math");
  return known && mlirOperationHasInherentAttributeByName(op, O3_STR("fastmath"));
}

/* Conversions round where the model says so: with contract, a number that becomes a half and a float again
 * would stay as it is. f64 is rounded to f32 for what is lost to be looked at (target/ref/convert_scalar.c).
 */
static bool is_conversion(MlirOperation op) {
  return o3_op_is(op, "arith.truncf") || o3_op_is(op, "arith.extf");
}

o3_status_t o3_loops_relax(MlirOperation op, void *context) {
  const o3_nest_t *nest = context;
  if (!is_float_arith(op) || is_conversion(op)) return NULL;
  bool reduction = false;
  for (int d = 0; d < nest->num_dims; ++d) reduction |= nest->reduction[d];
  bool is_extreme = o3_op_is(op, "arith.maximumf") || o3_op_is(op, "arith.minimumf");
  const char *flags = !reduction   ? "#arith.fastmath<contract>"
                      : is_extreme ? "#arith.fastmath<reassoc,contract,nsz>"
                                   : "#arith.fastmath<reassoc,contract>";
  o3_op_attr_set(op, "fastmath", o3_attr_parse(mlirOperationGetContext(op), flags));
  return NULL;
}

/* ---- Loops ---- */

static MlirValue load(o3_builder_t *b, const loops_t *self, const o3_nest_operand_t *operand) {
  MlirValue value = operand->value;
  int64_t step = 0;
  int lanes = (int)self->schedule.lanes;
  if (operand->is_memref) {
    MlirValue address = o3_nest_address(self->nest, operand, b, self->ivs);
    MlirType element = o3_type_element(mlirValueGetType(operand->flat));
    bool along = lanes && o3_nest_step(operand, (int)self->schedule.inner, &step) && step == 1;
    MlirType type = along ? o3_vector_type(lanes, element) : element;
    value = o3_build1(b, along ? "vector.load" : "memref.load", type, O3_VALUES(operand->flat, address));
  }
  return lanes && step == 0 ? o3_vector_broadcast(b, lanes, value) : value;
}

static void store(o3_builder_t *b, const loops_t *self, const o3_nest_operand_t *operand, MlirValue value) {
  MlirValue address = o3_nest_address(self->nest, operand, b, self->ivs);
  o3_build0(b, self->schedule.lanes ? "vector.store" : "memref.store",
            O3_VALUES(value, operand->flat, address));
}

/* One iteration; |outs| holds the outputs' old values and receives the new ones. */
static o3_status_t build_iteration(loops_t *self, o3_builder_t *b, MlirValue *outs) {
  const o3_nest_t *nest = self->nest;
  MlirValue arguments[O3_NEST_MAX_OPERANDS], yields[O3_NEST_MAX_OPERANDS];
  int num_outs = nest->num_operands - nest->num_inputs;
  for (int i = 0; i < nest->num_inputs; ++i) arguments[i] = load(b, self, &nest->operands[i]);
  for (int i = 0; i < num_outs; ++i) arguments[nest->num_inputs + i] = outs[i];
  if (self->schedule.lanes) {
    O3_TRY(o3_vector_body_build_along(nest, (int)self->schedule.inner, self->ivs, b,
                                      (int)self->schedule.lanes, arguments, yields));
  } else {
    O3_TRY(o3_nest_clone_body(nest, b, arguments, self->ivs, yields));
  }
  for (int i = 0; i < num_outs; ++i) outs[i] = yields[i];
  return NULL;
}

static void load_outs(loops_t *self, o3_builder_t *b, MlirValue *outs) {
  const o3_nest_t *nest = self->nest;
  for (int i = nest->num_inputs; i < nest->num_operands; ++i)
    outs[i - nest->num_inputs] = load(b, self, &nest->operands[i]);
}

static void store_outs(loops_t *self, o3_builder_t *b, const MlirValue *outs) {
  const o3_nest_t *nest = self->nest;
  for (int i = nest->num_inputs; i < nest->num_operands; ++i)
    store(b, self, &nest->operands[i], outs[i - nest->num_inputs]);
}

static o3_status_t build_in_memory(loops_t *self, o3_builder_t *b) {
  MlirValue outs[O3_NEST_MAX_OPERANDS];
  load_outs(self, b, outs);
  O3_TRY(build_iteration(self, b, outs));
  store_outs(self, b, outs);
  return NULL;
}

typedef struct level {
  loops_t *self;
  int depth;
} level_t;

/* The inner dim is parallel (or a running sum's): reductions or the tiled dim outside, then the inner loop
 * over memory. */
static o3_status_t build_spans(o3_builder_t *b, loops_t *self, int depth);

static o3_status_t span_body(o3_builder_t *b, void *context, MlirValue iv, const MlirValue *carried,
                             MlirValue *next) {
  const level_t *level = context;
  (void)carried, (void)next;
  level->self->ivs[level->self->spans[level->depth].dim] = iv;
  return build_spans(b, level->self, level->depth + 1);
}

static o3_status_t build_spans(o3_builder_t *b, loops_t *self, int depth) {
  level_t level = {self, depth};
  if (depth == self->num_spans) return build_in_memory(self, b);
  o3_for_t loop = {.lower = self->spans[depth].lower,
                   .upper = self->spans[depth].upper,
                   .step = self->one,
                   .body = span_body,
                   .context = &level};
  return o3_build_for(b, &loop, NULL);
}

/* |start| is where a block of the dim, of |block| iterations, starts, or null for the whole dim. */
static void add_span(loops_t *self, o3_builder_t *b, int dim, MlirValue start, int64_t block) {
  span_t span = {.dim = dim, .lower = self->zero, .upper = self->nest->size_values[dim]};
  if (self->frame && self->frame->ranged == dim) span = (span_t){dim, self->frame->lower, self->frame->upper};
  if (!mlirValueIsNull(start)) {
    MlirValue end = o3_build2(b, "arith.addi", start, o3_build_index(b, block));
    span.lower = start;
    span.upper = o3_build2(b, "arith.minsi", end, span.upper);
  }
  self->spans[self->num_spans++] = span;
}

/* The inner dim is a reduction, or one vector: all reductions carry the results in registers. */
static o3_status_t build_carried(o3_builder_t *b, loops_t *self, int depth, MlirValue *outs);

static o3_status_t carried_body(o3_builder_t *b, void *context, MlirValue iv, const MlirValue *carried,
                                MlirValue *next) {
  const level_t *level = context;
  loops_t *self = level->self;
  bool innermost = level->depth + 1 == self->num_reduced + (self->schedule.lanes == 0);
  int num_outs = self->nest->num_operands - self->nest->num_inputs;
  MlirValue outs[O3_NEST_MAX_OPERANDS];
  for (int i = 0; i < num_outs; ++i) outs[i] = carried[i];
  self->ivs[level->depth == self->num_reduced ? (int)self->schedule.inner : self->reduced[level->depth]] = iv;
  O3_TRY(innermost ? build_iteration(self, b, outs) : build_carried(b, self, level->depth + 1, outs));
  for (int i = 0; i < num_outs; ++i) next[i] = outs[i];
  return NULL;
}

static o3_status_t build_carried(o3_builder_t *b, loops_t *self, int depth, MlirValue *outs) {
  level_t level = {.self = self, .depth = depth};
  MlirValue results[O3_NEST_MAX_OPERANDS];
  int dim = depth == self->num_reduced ? (int)self->schedule.inner : self->reduced[depth];
  int num_outs = self->nest->num_operands - self->nest->num_inputs;
  o3_for_t loop = {.lower = self->zero,
                   .upper = self->nest->size_values[dim],
                   .step = self->one,
                   .num_carried = num_outs,
                   .inits = outs,
                   .body = carried_body,
                   .context = &level};
  O3_TRY(o3_build_for(b, &loop, results));
  for (int i = 0; i < num_outs; ++i) outs[i] = results[i];
  return NULL;
}

/* |starts|: where the blocks of the dim across and of the inner one start, null for whole dims. */
static o3_status_t build_inside(loops_t *self, o3_builder_t *b, const MlirValue *starts) {
  MlirValue outs[O3_NEST_MAX_OPERANDS];
  const o3_schedule_loops_t *s = &self->schedule;
  int inner = (int)s->inner, across = (int)s->across;
  if (inner < 0) return build_in_memory(self, b);
  bool carries = self->nest->reduction[inner] && !o3_loop_schedule_shows_sums(self->nest);
  if (s->lanes) self->ivs[inner] = self->zero;
  if (!s->lanes && !carries) {
    for (int i = 0; i < self->num_reduced; ++i) add_span(self, b, self->reduced[i], (MlirValue){0}, 0);
    if (across >= 0) add_span(self, b, across, starts[0], s->across_block);
    add_span(self, b, inner, starts[1], s->block);
    return build_spans(b, self, 0);
  }
  load_outs(self, b, outs);
  bool is_vector = s->lanes && !self->num_reduced;
  O3_TRY(is_vector ? build_iteration(self, b, outs) : build_carried(b, self, 0, outs));
  store_outs(self, b, outs);
  return NULL;
}

static double body_work(const o3_nest_t *nest) {
  double work = 1;
  MlirOperation op = mlirBlockGetFirstOperation(nest->body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op))
    work += o3_op_is_of(op, "math") ? 10 : 1;
  return work;
}

/* A rough number of operations of one iteration of the outer loops. */
static int64_t inside_work(const loops_t *self) {
  const o3_nest_t *nest = self->nest;
  const o3_schedule_loops_t *s = &self->schedule;
  double work = body_work(nest);
  for (int i = 0; i < self->num_reduced; ++i) {
    int64_t size = nest->sizes[self->reduced[i]];
    work *= size < 0 ? 64 : (double)size;
  }
  if (s->inner >= 0) {
    int64_t size = nest->sizes[s->inner];
    work *= s->block ? (double)s->block : size < 0 ? 64 : (double)size;
  }
  if (s->across >= 0) work *= (double)s->across_block;
  return work < 1 ? 1 : work > 1e15 ? (int64_t)1e15 : (int64_t)work;
}

static o3_status_t build_nest(loops_t *self, o3_builder_t *b) {
  MlirValue sizes[O3_IR_MAX_RANK + 1], steps[O3_IR_MAX_RANK + 1], ivs[O3_IR_MAX_RANK + 1],
      starts[2] = {{0}, {0}};
  const MlirValue *size_values = self->nest->size_values;
  const o3_schedule_loops_t *s = &self->schedule;
  int count = self->num_outer;
  self->zero = o3_build_index(b, 0);
  self->one = o3_build_index(b, 1);
  for (int i = 0; i < count; ++i) sizes[i] = size_values[self->outer[i]], steps[i] = self->one;
  if (s->across >= 0)
    sizes[count] = size_values[s->across], steps[count++] = o3_build_index(b, s->across_block);
  if (s->block) sizes[count] = size_values[s->inner], steps[count++] = o3_build_index(b, s->block);
  if (!count) return build_inside(self, b, starts);
  o3_builder_t inside = o3_cpu_parallel(b, count, sizes, steps, inside_work(self), ivs);
  for (int i = 0; i < self->num_outer; ++i) self->ivs[self->outer[i]] = ivs[i];
  if (s->block) starts[1] = ivs[count - 1];
  if (s->across >= 0) starts[0] = ivs[count - 2];
  return build_inside(self, &inside, starts);
}

static o3_status_t replace_generic(MlirOperation op, void *context) {
  static _Thread_local o3_nest_t nest;
  const o3_pass_env_t *env = context;
  if (!o3_nest_read(op, &nest)) return NULL;
  loops_t self = {.nest = &nest};
  o3_builder_t b = o3_builder_before(op);
  o3_nest_merge(&nest);
  O3_TRY(o3_loop_schedule_read(env->machine, &nest, &self.schedule));
  order(&self);
  O3_TRY(o3_walk(op, o3_loops_relax, &nest));
  o3_nest_flatten(&nest, &b);
  /* Merged dims have no iv of their own and no index op asks for it. */
  for (int d = 0; d < nest.num_dims; ++d) self.ivs[d] = nest.size_values[d];
  O3_TRY(build_nest(&self, &b));
  mlirOperationDestroy(op);
  return NULL;
}

o3_status_t o3_loops_build(o3_nest_t *nest, o3_builder_t *b, const o3_loops_frame_t *frame) {
  loops_t self = {.nest = nest, .frame = frame};
  order(&self);
  O3_TRY(o3_walk(nest->op, o3_loops_relax, nest));
  for (int d = 0; d < nest->num_dims; ++d)
    self.ivs[d] = frame->fixed[d] ? frame->ivs[d] : nest->size_values[d];
  return build_nest(&self, b);
}

int64_t o3_loops_work(const o3_nest_t *nest, const bool *fixed) {
  double work = body_work(nest);
  for (int d = 0; d < nest->num_dims; ++d) {
    if (fixed[d] || nest->merged_into[d] >= 0) continue;
    work *= nest->sizes[d] < 0 ? 64 : (double)nest->sizes[d];
  }
  return work < 1 ? 1 : work > 1e15 ? (int64_t)1e15 : (int64_t)work;
}

o3_status_t o3_cpu_loops(o3_pass_env_t *env, MlirModule module) {
  o3_cpu_load_dialects(env->context);
  O3_TRY(o3_walk(mlirModuleGetOperation(module), replace_generic, env));
  return o3_ir_run_pipeline(module,
                            "builtin.module(func.func(convert-linalg-to-parallel-loops),canonicalize,cse)");
}
