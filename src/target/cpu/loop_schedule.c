/* Any order is right: iterations of a linalg op depend on each other through its reductions alone. */
#include "target/cpu/loop_schedule.h"

#include "target/cpu/vector_body.h"

/* Fewer iterations than this are not worth a vector loop. */
enum { SHORT_LOOP = 8 };

/* ---- Dims ---- */

static int64_t operand_cost(const o3_nest_operand_t *operand, int dim, bool output) {
  int64_t step;
  if (!operand->is_memref) return 0;
  if (!o3_nest_step(operand, dim, &step)) return 8;
  if (step == 0) return 0;
  return step == 1 ? 1 : output ? 12 : 8;
}

/* Lower is better. */
static int64_t inner_cost(const o3_nest_t *nest, int dim) {
  int64_t cost = nest->reduction[dim] ? 1 : 0;
  if (nest->sizes[dim] >= 0 && nest->sizes[dim] < SHORT_LOOP) cost += 4 * (SHORT_LOOP - nest->sizes[dim]);
  for (int i = 0; i < nest->num_operands; ++i)
    cost += operand_cost(&nest->operands[i], dim, i >= nest->num_inputs);
  return cost;
}

int o3_loop_schedule_inner(const o3_nest_t *nest, const bool *fixed) {
  int64_t best = INT64_MAX;
  int inner = -1;
  for (int d = nest->num_dims - 1; d >= 0; --d) {
    if (nest->merged_into[d] >= 0 || fixed[d]) continue;
    int64_t cost = inner_cost(nest, d);
    if (cost < best) best = cost, inner = d;
  }
  return inner;
}

static bool has_reduction(const o3_nest_t *nest) {
  bool found = false;
  for (int d = 0; d < nest->num_dims; ++d) found |= nest->reduction[d];
  return found;
}

/* In a transposition one operand is contiguous along another dim: blocks of both let each cache line that is
 * read be used whole. */
static int choose_across(const o3_nest_t *nest, int inner) {
  int64_t step;
  int across = -1;
  if (has_reduction(nest)) return -1;
  for (int i = 0; i < nest->num_operands; ++i) {
    const o3_nest_operand_t *operand = &nest->operands[i];
    if (!operand->is_memref || operand_cost(operand, inner, false) < 8) continue;
    for (int d = 0; d < nest->num_dims; ++d) {
      bool long_enough = nest->sizes[d] < 0 || nest->sizes[d] >= SHORT_LOOP;
      bool other = d != inner && nest->merged_into[d] < 0 && long_enough;
      if (other && o3_nest_step(operand, d, &step) && step == 1) across = d;
    }
  }
  return across;
}

/* A running sum shows what it has at each step of its reduction: the results cannot stay in registers. */
bool o3_loop_schedule_shows_sums(const o3_nest_t *nest) {
  for (int d = 0; d < nest->num_dims; ++d) {
    for (int i = nest->num_inputs; i < nest->num_operands; ++i) {
      const o3_nest_operand_t *output = &nest->operands[i];
      if (nest->reduction[d] && output->is_memref && o3_nest_uses(output, d)) return true;
    }
  }
  return false;
}

/* ---- Vectors ---- */

/* Whether all of the inner dim can be one vector, which reductions keep in registers. */
static bool can_be_vector(const o3_nest_t *nest, int inner) {
  bool fits = nest->num_operands == nest->num_inputs + 1 && !nest->reduction[inner] &&
              !o3_loop_schedule_shows_sums(nest) && o3_vector_body_fits_along(nest, inner);
  for (int i = 0; i < nest->num_operands && fits; ++i) {
    const o3_nest_operand_t *operand = &nest->operands[i];
    int64_t step = 0;
    MlirType type = mlirValueGetType(operand->value);
    bool is_f32 = mlirTypeIsAF32(operand->is_memref ? o3_type_element(type) : type);
    bool known = !operand->is_memref || o3_nest_step(operand, inner, &step);
    fits = is_f32 && known && (step == 1 || (step == 0 && i < nest->num_inputs));
  }
  return fits;
}

/* As short as a vector of 16: the lanes of channel-blocked images. A reduction around it need not go through
 * memory, and LLVM, which does not know that the result's memory is not an operand's, computes lane by lane.
 * Half or a quarter of that is a vector with nothing around it, too: of loops so short LLVM makes one over
 * the pixels, with gathers. */
static int64_t choose_lanes(const o3_nest_t *nest, const o3_schedule_loops_t *s) {
  enum { LANES = O3_BLOCK_LANES };
  if (s->inner < 0 || s->across >= 0) return 0;
  int64_t size = nest->sizes[s->inner];
  bool is_short = size == LANES || (!has_reduction(nest) && (size == LANES / 2 || size == LANES / 4));
  return is_short && can_be_vector(nest, (int)s->inner) ? size : 0;
}

/* ---- All ---- */

static o3_schedule_nest_t describe(const o3_nest_t *nest, const o3_schedule_loops_t *s) {
  o3_schedule_nest_t it = {.inner = s->inner < 0 ? 1 : nest->sizes[s->inner],
                           .around = 1,
                           .is_reduced = has_reduction(nest),
                           .is_sum = s->inner >= 0 && nest->reduction[s->inner]};
  for (int i = 0; i < nest->num_operands; ++i) {
    MlirType type = mlirValueGetType(nest->operands[i].value);
    MlirType element = nest->operands[i].is_memref ? o3_type_element(type) : type;
    int bits = mlirTypeIsAIndex(element) ? 64 : o3_type_bits(element);
    if (bits > it.bits) it.bits = bits;
  }
  for (int i = 0; i < nest->num_operands && s->across >= 0; ++i) {
    const o3_nest_operand_t *operand = &nest->operands[i];
    int64_t step, jump;
    bool is_read_across = operand->is_memref && o3_nest_step(operand, (int)s->across, &step) && step == 1;
    if (is_read_across && o3_nest_step(operand, (int)s->inner, &jump)) it.jump = jump * it.bits / 8;
  }
  for (int d = 0; d < nest->num_dims; ++d) {
    if (nest->merged_into[d] >= 0 || nest->reduction[d] || d == s->inner) continue;
    it.around = it.around < 0 || nest->sizes[d] < 0 ? -1 : it.around * nest->sizes[d];
  }
  return it;
}

/* A dim by hand may be one that has become a part of another. */
static int64_t merged_dim(const o3_nest_t *nest, int64_t dim) {
  while (dim >= 0 && dim < nest->num_dims && nest->merged_into[dim] >= 0) dim = nest->merged_into[dim];
  return dim;
}

static o3_status_t check(const o3_nest_t *nest, const o3_schedule_loops_t *s) {
  MlirOperation op = nest->op;
  bool has_dims = o3_loop_schedule_inner(nest, (bool[O3_IR_MAX_RANK]){false}) >= 0;
  if (s->inner >= nest->num_dims || (s->inner < 0) == has_dims)
    return o3_schedule_refuse(op, "inner", s->inner, "one of the op's dims, -1 when it has none");
  bool is_sum = s->inner >= 0 && nest->reduction[s->inner];
  if (s->block && (s->inner < 0 || is_sum))
    return o3_schedule_refuse(op, "block", s->block, "0 where the innermost loop is a sum or none");
  if (s->across >= nest->num_dims || (s->across >= 0 && (s->across == s->inner || has_reduction(nest))))
    return o3_schedule_refuse(op, "across", s->across, "another dim than inner, -1 where there are sums");
  if (s->across >= 0 && !s->block)
    return o3_schedule_refuse(op, "block", s->block, "at least 1 beside a dim across");
  if ((s->across >= 0) != (s->across_block > 0))
    return o3_schedule_refuse(op, "across_block", s->across_block, "0 without a dim across, else at least 1");
  if (!s->lanes) return NULL;
  bool fits = s->inner >= 0 && s->across < 0 && !s->block && nest->sizes[s->inner] == s->lanes &&
              can_be_vector(nest, (int)s->inner);
  return fits ? NULL
              : o3_schedule_refuse(op, "lanes", s->lanes,
                                   "0, or all of an inner dim along which f32 operands are contiguous");
}

o3_status_t o3_loop_schedule_read(const o3_machine_t *machine, const o3_nest_t *nest,
                                  o3_schedule_loops_t *s) {
  const bool none[O3_IR_MAX_RANK] = {false};
  *s = (o3_schedule_loops_t){.inner = o3_loop_schedule_inner(nest, none), .across = -1};
  if (s->inner >= 0) s->across = choose_across(nest, (int)s->inner);
  const o3_schedule_nest_t it = describe(nest, s);
  o3_schedule_loops(machine, &it, s);
  s->lanes = choose_lanes(nest, s);
  O3_TRY(o3_schedule_read(nest->op, O3_SCHEDULE_FAMILY_LOOPS, s));
  s->inner = merged_dim(nest, s->inner);
  s->across = merged_dim(nest, s->across);
  return check(nest, s);
}

o3_status_t o3_loop_schedule_write(o3_pass_env_t *env, MlirOperation op) {
  static _Thread_local o3_nest_t nest;
  o3_schedule_loops_t schedule;
  if (!o3_nest_read_any(op, &nest)) return NULL;
  o3_nest_merge(&nest);
  O3_TRY(o3_loop_schedule_read(env->machine, &nest, &schedule));
  o3_op_attr_set(op, O3_SCHEDULE_ATTR, o3_schedule_attr(env->context, O3_SCHEDULE_FAMILY_LOOPS, &schedule));
  return NULL;
}
