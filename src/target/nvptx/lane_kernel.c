/* Memory is busy when about 16 bytes of a thread are on their way: one vector of that size, or as many groups
 * as give it where a result's rows do not start at multiples of a vector. Groups are a block's threads apart,
 * so that neighbouring threads still read neighbouring places. */
#include "target/nvptx/lane_kernel.h"

#include "schedule/gpu.h"
#include "target/cpu/loops.h"
#include "target/nvptx/lane_body.h"
#include "target/nvptx/nvptx_ir.h"

/* Vectors become shorter before threads become fewer than FULL a multiprocessor. Sums of at most UNROLL terms
 * are written out; longer ones take SEVERAL terms a turn. */
enum {
  VECTOR_BYTES = 16,
  MOST_VECTOR = 8,
  FULL = 256,
  UNROLL = 32,
  SEVERAL = 4,
  CLOSE_BYTES = 4,
  FOLLOWED = 4
};
/* Threads that share a sum have at least TERMS terms of it each; those of a warp read LINE bytes in a row. */
enum { TERMS = 8, LINE = 64, MOST_THREADS = 1024 };

/* ---- Plan ---- */

static const o3_nest_operand_t *result_of(const o3_nest_t *nest) { return &nest->operands[nest->num_inputs]; }

static int last_dim(const o3_lane_ops_t *ops, int op) {
  return ops->positions[op][ops->places->dims[ops->places->count - 1]];
}

static int64_t last_size(const o3_lane_ops_t *ops) { return ops->nests[0].sizes[last_dim(ops, 0)]; }

/* Whether |count| elements along |dim| are neighbours that start at a multiple of |count|. */
static bool is_vector(const o3_nest_t *nest, const o3_nest_operand_t *operand, int dim, int count) {
  int64_t strides[O3_IR_MAX_RANK], offset, step;
  MlirType type = mlirValueGetType(operand->value);
  if (count == 1 || o3_type_bits(o3_type_element(type)) < 8) return false;
  if (!mlirLogicalResultIsSuccess(mlirMemRefTypeGetStridesAndOffset(type, strides, &offset))) return false;
  if (mlirShapedTypeIsDynamicStrideOrOffset(offset) || offset % count) return false;
  for (int d = 0; d < nest->num_dims; ++d) {
    if (nest->merged_into[d] >= 0 || nest->sizes[d] == 1) continue;
    if (!o3_nest_step(operand, d, &step) || (d == dim ? step != 1 : step % count != 0)) return false;
  }
  return true;
}

static bool is_still(const o3_nest_operand_t *operand, int dim) {
  return !operand->is_memref || !o3_nest_uses(operand, dim);
}

/* What an op reads of the result it reads where it writes. */
static bool reads_in_place(const o3_nest_t *nest, int input) {
  const o3_nest_operand_t *from = &nest->operands[input], *to = result_of(nest);
  if (!from->is_memref || !mlirValueEqual(from->value, to->value)) return true;
  for (int r = 0; r < to->num_terms; ++r) {
    if (!mlirAffineExprEqual(from->all_exprs[r], to->all_exprs[r])) return false;
  }
  return true;
}

static const char *check_op(const o3_lane_ops_t *ops, int op) {
  const o3_nest_t *nest = &ops->nests[op];
  if (nest->num_operands != nest->num_inputs + 1) return "it has several results";
  for (int d = 0; d < nest->num_dims; ++d) {
    if (nest->sizes[d] < 0) return "a size is known only at run time";
    if (nest->reduction[d] && o3_nest_uses(result_of(nest), d)) return "a result moves along a sum";
  }
  for (int k = 0; k < nest->num_inputs; ++k) {
    if (o3_nest_reads(nest, k) && !reads_in_place(nest, k)) return "it moves elements of its result";
  }
  return NULL;
}

/* Bytes of the narrowest type that the threads walk along. */
static int narrowest(const o3_lane_ops_t *ops) {
  int bits = 64;
  for (int i = 0; i < ops->count; ++i) {
    const o3_nest_t *nest = &ops->nests[i];
    for (int k = 0; k < nest->num_operands; ++k) {
      const o3_nest_operand_t *operand = &nest->operands[k];
      bool read = k == nest->num_inputs || o3_nest_reads(nest, k);
      if (!read || is_still(operand, last_dim(ops, i))) continue;
      int own = o3_type_bits(o3_type_element(mlirValueGetType(operand->value)));
      if (own < bits) bits = own;
    }
  }
  return bits < 8 ? 1 : bits / 8;
}

/* Whether a warp's loads of single elements, |count| of its own apart for each thread, touch no more lines
 * than if threads were neighbours. */
static bool is_close(const o3_nest_operand_t *operand, int dim, int count) {
  int64_t step;
  int bits = o3_type_bits(o3_type_element(mlirValueGetType(operand->value)));
  return o3_nest_step(operand, dim, &step) && step > 0 && step <= CLOSE_BYTES &&
         (step * count == 1 || step * count * bits <= 8 * CLOSE_BYTES);
}

static o3_status_t op_suits(const o3_lane_ops_t *ops, int op, int count, bool *suits) {
  const o3_nest_t *nest = &ops->nests[op];
  int dim = last_dim(ops, op);
  bool scattered;
  O3_TRY(o3_lanes_scatter(nest, dim, count, &scattered));
  *suits = is_vector(nest, result_of(nest), dim, count) && !(scattered && count > CLOSE_BYTES / 2);
  for (int k = 0; k < nest->num_inputs && *suits; ++k) {
    const o3_nest_operand_t *operand = &nest->operands[k];
    if (!o3_nest_reads(nest, k) || is_still(operand, dim)) continue;
    *suits = is_vector(nest, operand, dim, count) || is_close(operand, dim, count);
  }
  return NULL;
}

/* The op that sums, if it is the only one and sums terms whose neighbours lie along the result: the outermost
 * dim of its sums. -1: there is none. */
static int shared_sum(const o3_lane_ops_t *ops, int *op) {
  int sum = -1;
  const char *combiner;
  for (int i = 0; i < ops->count; ++i) {
    const o3_nest_t *nest = &ops->nests[i];
    int outermost = -1, innermost = -1;
    for (int d = 0; d < nest->num_dims; ++d) {
      if (!nest->reduction[d] || nest->merged_into[d] >= 0 || nest->sizes[d] == 1) continue;
      if (outermost < 0) outermost = d;
      innermost = d;
    }
    if (outermost < 0) continue;
    int64_t step;
    if (sum >= 0 || !o3_combiner_fits(nest, &combiner)) return -1;
    for (int k = 0; k < nest->num_inputs; ++k) {
      const o3_nest_operand_t *operand = &nest->operands[k];
      if (!o3_nest_reads(nest, k) || !operand->is_memref) continue;
      if (!o3_nest_step(operand, innermost, &step) || step == 1 || !is_close(operand, last_dim(ops, i), 1))
        return -1;
    }
    sum = outermost;
    *op = i;
  }
  return sum;
}

static int64_t most_parts(const o3_lane_ops_t *ops) {
  int op, dim = shared_sum(ops, &op);
  int64_t parts = dim < 0 ? 1 : ops->nests[op].sizes[dim] / TERMS;
  return parts > 1 ? parts : 1;
}

/* Powers of 2, while the card is not full and threads of a warp still read whole lines. */
static void choose_parts(const o3_lane_ops_t *ops, int64_t full, o3_lane_plan_t *plan) {
  int64_t vectors = ops->places->known / plan->vector, most = most_parts(ops);
  int columns = LINE / (plan->vector * narrowest(ops));
  if (columns < 1) columns = 1;
  plan->parts = 1;
  while (2 * plan->parts <= most && vectors * plan->parts < 4 * full &&
         2 * plan->parts * columns <= MOST_THREADS)
    plan->parts *= 2;
  plan->threads = O3_GPU_BLOCK_THREADS;
  while (plan->threads < plan->parts * columns) plan->threads *= 2;
}

int64_t o3_lanes_a_block(const o3_lane_plan_t *plan) {
  return (int64_t)plan->threads / plan->parts * plan->groups * plan->vector;
}

static o3_status_t choose_vector(const o3_lane_ops_t *ops, int64_t full, o3_lane_plan_t *plan) {
  int64_t size = last_size(ops), most = most_parts(ops);
  for (; plan->vector > 1; plan->vector /= 2) {
    bool suits = size % plan->vector == 0 && ops->places->known / plan->vector * most >= full;
    for (int i = 0; i < ops->count && suits; ++i) O3_TRY(op_suits(ops, i, plan->vector, &suits));
    if (suits) return NULL;
  }
  return NULL;
}

/* What is loaded behind another load comes after twice the time: so much more is to be on its way. */
static o3_status_t choose_groups(const o3_lane_ops_t *ops, int64_t full, int most, o3_lane_plan_t *plan) {
  bool follows = false;
  for (int i = 0; i < ops->count && !follows; ++i) O3_TRY(o3_lanes_follow(&ops->nests[i], &follows));
  if (most > MOST_VECTOR) most = MOST_VECTOR;
  if (follows) most = most * FOLLOWED < O3_LANES_MOST ? most * FOLLOWED : O3_LANES_MOST;
  plan->groups = 1;
  while (plan->parts == 1 && plan->groups * plan->vector < most &&
         ops->places->known / (2 * plan->groups * plan->vector) >= 2 * full)
    plan->groups *= 2;
  return NULL;
}

o3_status_t o3_lanes_plan(const o3_lane_ops_t *ops, int multiprocessors, o3_lane_plan_t *plan,
                          const char **why_not) {
  *why_not = ops->places->count && ops->places->known > 0 ? NULL : "a size is known only at run time";
  for (int i = 0; i < ops->count && !*why_not; ++i) *why_not = check_op(ops, i);
  if (*why_not) return NULL;
  int64_t full = (int64_t)multiprocessors * FULL;
  int most = VECTOR_BYTES / narrowest(ops);
  plan->vector = most < MOST_VECTOR ? most : MOST_VECTOR;
  O3_TRY(choose_vector(ops, full, plan));
  choose_parts(ops, full, plan);
  return choose_groups(ops, full, most, plan);
}

/* ---- Places ---- */

typedef struct lane_code {
  const o3_lane_ops_t *ops;
  const o3_lane_plan_t *plan;
  int count;
  int op;
  MlirValue linear[O3_LANES_MOST];                 /* the vector of each group */
  MlirValue places[O3_LANES_MOST][O3_IR_MAX_RANK]; /* by the numbers of places */
  MlirValue ivs[O3_LANES_MOST][O3_IR_MAX_RANK];    /* of the op's dims */
  MlirValue results[O3_LANES_MOST];                /* null before the first op */
  MlirValue thread, part, shared;                  /* of |parts| */
  int num_sums, sums[O3_IR_MAX_RANK];              /* the op's dims without a place */
  int64_t terms[O3_IR_MAX_RANK + 1];               /* of the sums from there on */
} lane_code_t;

/* The places of vectors: the last one counts them. */
static o3_flat_dims_t vector_places(const lane_code_t *c, o3_builder_t *b) {
  const o3_flat_dims_t *all = c->ops->places;
  o3_flat_dims_t places = {0};
  for (int i = 0; i < all->count; ++i) {
    bool last = i == all->count - 1;
    int64_t size = c->ops->nests[0].sizes[c->ops->positions[0][all->dims[i]]];
    if (last) size /= c->plan->vector;
    o3_flat_dims_add(&places, all->dims[i], o3_build_index(b, size), size);
  }
  o3_flat_dims_finish(&places, b);
  return places;
}

static void find_places(lane_code_t *c, o3_builder_t *b, const o3_flat_dims_t *places) {
  int vector = c->plan->vector, last = places->dims[places->count - 1];
  for (int g = 0; g < c->plan->groups; ++g) {
    MlirValue *first = c->places[g * vector];
    o3_flat_dims_split(places, b, c->linear[g], first);
    if (vector == 1) continue;
    MlirValue start = o3_build2(b, "arith.muli", first[last], o3_build_index(b, vector));
    for (int l = 0; l < vector; ++l) {
      MlirValue *place = c->places[g * vector + l];
      for (int i = 0; i < places->count; ++i) place[places->dims[i]] = first[places->dims[i]];
      place[last] = l ? o3_build2(b, "arith.addi", start, o3_build_index(b, l)) : start;
    }
  }
}

/* ---- Ops ---- */

static void set_sum(lane_code_t *c, int dim, MlirValue at) {
  for (int l = 0; l < c->count; ++l) c->ivs[l][dim] = at;
}

/* Places for the op's dims. Merged dims have none and nothing asks for them. */
static void enter_op(lane_code_t *c, o3_builder_t *b, int op) {
  const o3_nest_t *nest = &c->ops->nests[op];
  bool placed[O3_IR_MAX_RANK] = {false};
  c->op = op;
  for (int l = 0; l < c->count; ++l) {
    for (int d = 0; d < nest->num_dims; ++d) c->ivs[l][d] = nest->size_values[d];
    for (int i = 0; i < c->ops->places->count; ++i) {
      int r = c->ops->places->dims[i], dim = c->ops->positions[op][r];
      if (dim < 0) continue;
      c->ivs[l][dim] = c->places[l][r];
      placed[dim] = true;
    }
  }
  c->num_sums = 0;
  for (int d = 0; d < nest->num_dims; ++d) {
    if (nest->merged_into[d] >= 0 || placed[d]) continue;
    if (nest->sizes[d] == 1) {
      set_sum(c, d, o3_build_index(b, 0));
    } else {
      c->sums[c->num_sums++] = d;
    }
  }
  c->terms[c->num_sums] = 1;
  for (int i = c->num_sums - 1; i >= 0; --i) {
    if (__builtin_mul_overflow(c->terms[i + 1], nest->sizes[c->sums[i]], &c->terms[i]))
      c->terms[i] = INT64_MAX;
  }
}

static void load_operand(lane_code_t *c, o3_builder_t *b, int index, MlirValue *values) {
  const o3_nest_t *nest = &c->ops->nests[c->op];
  const o3_nest_operand_t *operand = &nest->operands[index];
  int vector = c->plan->vector, dim = last_dim(c->ops, c->op);
  bool together = operand->is_memref && is_vector(nest, operand, dim, vector);
  for (int l = 0; l < c->count; l += together ? vector : 1) {
    bool again = l % vector && is_still(operand, dim);
    if (again || !operand->is_memref) {
      values[l] = again ? values[l - 1] : operand->value;
      continue;
    }
    MlirValue address = o3_nest_address(nest, operand, b, c->ivs[l]);
    if (together) {
      o3_lanes_split(b, o3_lanes_load(b, operand->flat, 1, &address, vector), vector, values + l);
    } else {
      values[l] = o3_build1(b, "memref.load", o3_type_element(mlirValueGetType(operand->flat)),
                            O3_VALUES(operand->flat, address));
    }
  }
}

/* The op's next elements of those that |c| has; an operand of the result's buffer is what the result is so
 * far. */
static o3_status_t build_term(lane_code_t *c, o3_builder_t *b) {
  const o3_nest_t *nest = &c->ops->nests[c->op];
  MlirValue arguments[O3_NEST_MAX_OPERANDS][O3_LANES_MOST];
  for (int k = 0; k < nest->num_operands; ++k) {
    bool own = mlirValueEqual(nest->operands[k].value, result_of(nest)->value);
    for (int l = 0; l < c->count; ++l)
      arguments[k][l] = own && o3_nest_reads(nest, k) ? c->results[l] : (MlirValue){0};
    if (o3_nest_reads(nest, k) && mlirValueIsNull(arguments[k][0])) load_operand(c, b, k, arguments[k]);
  }
  o3_lanes_t lanes = {.nest = nest,
                      .count = c->count,
                      .vector = c->plan->vector,
                      .dim = last_dim(c->ops, c->op),
                      .ivs = c->ivs};
  return o3_lanes_clone(&lanes, b, arguments, c->results);
}

typedef struct sum_loop {
  lane_code_t *c;
  int depth, several, step;
} sum_loop_t;

static o3_status_t build_sums(lane_code_t *c, o3_builder_t *b, int depth);

static o3_status_t sum_turn(o3_builder_t *b, void *context, MlirValue at, const MlirValue *carried,
                            MlirValue *next) {
  const sum_loop_t *it = context;
  lane_code_t *c = it->c;
  for (int l = 0; l < c->count; ++l) c->results[l] = carried[l];
  for (int i = 0; i < it->several; ++i) {
    set_sum(c, c->sums[it->depth],
            i ? o3_build2(b, "arith.addi", at, o3_build_index(b, (int64_t)i * it->step)) : at);
    O3_TRY(build_sums(c, b, it->depth + 1));
  }
  for (int l = 0; l < c->count; ++l) next[l] = c->results[l];
  return NULL;
}

/* Of a long sum: terms that one turn takes, |step| apart. */
static int terms_a_turn(const lane_code_t *c, int depth, int step) {
  int several = depth == c->num_sums - 1 ? SEVERAL : 1;
  while (c->ops->nests[c->op].sizes[c->sums[depth]] % (several * step) && several > 1) several /= 2;
  return several;
}

static o3_status_t build_sums(lane_code_t *c, o3_builder_t *b, int depth) {
  if (depth == c->num_sums) return build_term(c, b);
  int64_t size = c->ops->nests[c->op].sizes[c->sums[depth]];
  int step = depth ? 1 : c->plan->parts;
  if (c->terms[depth] <= UNROLL && step == 1) {
    for (int64_t i = 0; i < size; ++i) {
      set_sum(c, c->sums[depth], o3_build_index(b, i));
      O3_TRY(build_sums(c, b, depth + 1));
    }
    return NULL;
  }
  sum_loop_t it = {c, depth, terms_a_turn(c, depth, step), step};
  MlirValue results[O3_LANES_MOST];
  o3_for_t loop = {.lower = step > 1 ? c->part : o3_build_index(b, 0),
                   .upper = o3_build_index(b, size),
                   .step = o3_build_index(b, (int64_t)it.several * step),
                   .num_carried = c->count,
                   .inits = c->results,
                   .body = sum_turn,
                   .context = &it};
  O3_TRY(o3_build_for(b, &loop, results));
  for (int l = 0; l < c->count; ++l) c->results[l] = results[l];
  return NULL;
}

/* ---- Sums that threads of a block share ---- */

static MlirValue columns_of(const lane_code_t *c, o3_builder_t *b) {
  return o3_build_index(b, c->plan->threads / c->plan->parts);
}

/* Element |l| of the thread's partial sums lies |l| times the block's threads behind its first. */
static MlirValue partial_place(const lane_code_t *c, o3_builder_t *b, MlirValue thread, int l) {
  return o3_build2(b, "arith.addi", thread, o3_build_index(b, (int64_t)l * c->plan->threads));
}

typedef struct joining {
  lane_code_t *c;
  const char *combiner;
  int distance; /* in parts */
} joining_t;

static o3_status_t join(o3_builder_t *b, void *context, MlirValue *yields) {
  const joining_t *it = context;
  lane_code_t *c = it->c;
  MlirType type = o3_type_element(mlirValueGetType(c->shared));
  int64_t away = (int64_t)it->distance * (c->plan->threads / c->plan->parts);
  MlirValue other = o3_build2(b, "arith.addi", c->thread, o3_build_index(b, away));
  (void)yields;
  for (int l = 0; l < c->count; ++l) {
    MlirValue place = partial_place(c, b, c->thread, l);
    MlirValue mine = o3_build1(b, "memref.load", type, O3_VALUES(c->shared, place));
    MlirValue theirs = o3_build1(b, "memref.load", type, O3_VALUES(c->shared, partial_place(c, b, other, l)));
    o3_build0(b, "memref.store", O3_VALUES(o3_build2(b, it->combiner, mine, theirs), c->shared, place));
  }
  return NULL;
}

/* The first part goes on from what is there; all others start with nothing. Every part gets the sums. */
static o3_status_t build_shared_sums(lane_code_t *c, o3_builder_t *b) {
  const o3_nest_t *nest = &c->ops->nests[c->op];
  joining_t it = {.c = c};
  if (!o3_combiner_fits(nest, &it.combiner))
    return o3_status_create(O3_STATUS_INTERNAL, "sums that nothing joins cannot be shared");
  MlirType type = mlirValueGetType(c->results[0]);
  MlirValue first = o3_build_cmpi(b, O3_CMPI_EQ, c->part, o3_build_index(b, 0));
  MlirValue nothing = o3_combiner_identity(b, it.combiner, type);
  for (int l = 0; l < c->count; ++l) c->results[l] = o3_build_select(b, first, c->results[l], nothing);
  O3_TRY(build_sums(c, b, 0));
  c->shared = o3_nvptx_shared_view(b, o3_nvptx_shared(b), 0, 1,
                                   (int64_t[]){(int64_t)c->plan->threads * c->count}, type);
  for (int l = 0; l < c->count; ++l)
    o3_build0(b, "memref.store", O3_VALUES(c->results[l], c->shared, partial_place(c, b, c->thread, l)));
  o3_nvptx_barrier(b);
  for (it.distance = c->plan->parts / 2; it.distance; it.distance /= 2) {
    MlirValue limit = o3_build_index(b, it.distance);
    o3_if_t lower = {
        .condition = o3_build_cmpi(b, O3_CMPI_ULT, c->part, limit), .then_body = join, .context = &it};
    O3_TRY(o3_build_if(b, &lower, NULL));
    o3_nvptx_barrier(b);
  }
  MlirValue column = o3_build2(b, "arith.remui", c->thread, columns_of(c, b));
  for (int l = 0; l < c->count; ++l)
    c->results[l] = o3_build1(b, "memref.load", type, O3_VALUES(c->shared, partial_place(c, b, column, l)));
  return NULL;
}

static o3_status_t build_op(lane_code_t *c, o3_builder_t *b, int op) {
  const o3_nest_t *nest = &c->ops->nests[op];
  O3_TRY(o3_lanes_relax(nest));
  enter_op(c, b, op);
  /* Sums start at what is there. */
  if (c->num_sums && mlirValueIsNull(c->results[0])) load_operand(c, b, nest->num_inputs, c->results);
  return c->num_sums && c->plan->parts > 1 ? build_shared_sums(c, b) : build_sums(c, b, 0);
}

/* ---- The kernel ---- */

typedef struct store {
  lane_code_t *c;
  int group;
} store_t;

static o3_status_t store_group(o3_builder_t *b, void *context, MlirValue *yields) {
  const store_t *it = context;
  const lane_code_t *c = it->c;
  const o3_nest_t *nest = &c->ops->nests[c->op];
  int first = it->group * c->plan->vector;
  (void)yields;
  MlirValue address = o3_nest_address(nest, result_of(nest), b, c->ivs[first]);
  o3_lanes_store(b, result_of(nest)->flat, address, c->plan->vector, &c->results[first]);
  return NULL;
}

/* Threads without a group of their own compute the last one again and do not store it: all come to barriers.
 */
static o3_status_t thread_code(o3_builder_t *b, void *context, MlirValue *yields) {
  lane_code_t *c = context;
  (void)yields;
  o3_flat_dims_t places = vector_places(c, b);
  MlirValue last = o3_build2(b, "arith.subi", places.total, o3_build_index(b, 1)), own[O3_LANES_MOST];
  for (int g = 0; g < c->plan->groups; ++g) {
    own[g] = c->linear[g];
    c->linear[g] = o3_build2(b, "arith.minui", own[g], last);
  }
  find_places(c, b, &places);
  for (int i = 0; i < c->ops->count; ++i) O3_TRY(build_op(c, b, i));
  for (int g = 0; g < c->plan->groups; ++g) {
    store_t it = {c, g};
    o3_if_t guard = {.condition = o3_build_cmpi(b, O3_CMPI_ULT, own[g], places.total),
                     .then_body = store_group,
                     .context = &it};
    MlirValue first = o3_build_cmpi(b, O3_CMPI_EQ, c->part, o3_build_index(b, 0));
    if (c->plan->parts > 1) guard.condition = o3_build2(b, "arith.andi", guard.condition, first);
    O3_TRY(o3_build_if(b, &guard, NULL));
  }
  return NULL;
}

/* The thread's vectors: of each group, the one that its column has. */
static void find_vectors(lane_code_t *c, o3_builder_t *b) {
  int columns = c->plan->threads / c->plan->parts;
  c->thread = o3_nvptx_to_index(b, o3_nvptx_thread(b));
  c->part = o3_build2(b, "arith.divui", c->thread, columns_of(c, b));
  MlirValue block = o3_nvptx_to_index(b, o3_nvptx_block(b));
  MlirValue start = o3_build2(b, "arith.muli", block, o3_build_index(b, (int64_t)columns * c->plan->groups));
  start = o3_build2(b, "arith.addi", start, o3_build2(b, "arith.remui", c->thread, columns_of(c, b)));
  for (int g = 0; g < c->plan->groups; ++g)
    c->linear[g] = o3_build2(b, "arith.addi", start, o3_build_index(b, (int64_t)g * columns));
}

static int64_t shared_bytes(const o3_lane_ops_t *ops, const o3_lane_plan_t *plan) {
  MlirType type = o3_type_element(mlirValueGetType(result_of(&ops->nests[0])->value));
  int bits = o3_type_bits(type);
  return plan->parts > 1 ? (int64_t)plan->threads * plan->vector * (bits < 8 ? 1 : bits / 8) : 0;
}

o3_status_t o3_lanes_build(const o3_lane_ops_t *ops, const o3_lane_plan_t *plan, o3_builder_t *b,
                           MlirOperation *launch) {
  static _Thread_local lane_code_t code;
  int64_t a_block = o3_lanes_a_block(plan);
  code = (lane_code_t){.ops = ops, .plan = plan, .count = plan->vector * plan->groups};
  MlirValue grid = o3_build_index(b, (ops->places->known + a_block - 1) / a_block);
  o3_nvptx_region_t region = o3_nvptx_open(b, grid, plan->threads, shared_bytes(ops, plan));
  *launch = region.launch;
  find_vectors(&code, &region.inside);
  if (plan->parts > 1) return thread_code(&region.inside, &code, NULL);
  MlirValue vectors = o3_build_index(&region.inside, ops->places->known / plan->vector);
  o3_if_t guard = {.condition = o3_build_cmpi(&region.inside, O3_CMPI_ULT, code.linear[0], vectors),
                   .then_body = thread_code,
                   .context = &code};
  return o3_build_if(&region.inside, &guard, NULL);
}
