/* The first reduction tells which loops are reduced; neighbours among the loops before it, of it and behind
 * it must be one loop to every operand. A value that an op has written must be read as it was written, for
 * then a thread has the element in a register. On tensors each result is a value of its own, and what a sum
 * starts at is not looked at: on buffers an op of its own writes it. */
#include "target/nvptx/column_plan.h"

#include <string.h>

#include "base/arena.h"
#include "schedule/gpu.h"
#include "target/nvptx/body_text.h"

enum { OUTER = O3_COLUMN_OUTER, ALONG = O3_COLUMN_ALONG, INNER = O3_COLUMN_INNER, AXES = O3_COLUMN_AXES };

/* A thread's neighbours are at most VECTOR columns; of fewer bytes than LINE in a row memory would give whole
 * sectors for parts of them. */
enum {
  VECTOR = 4,
  WARP = O3_GPU_WARP,
  MAX_THREADS = 1024,
  LINE = 64,
  FULL = 512,
  FULL_SUMS = 1024,
  LEAST_CHUNKS = 2
};
/* Sums of columns alone: a thread has SUMMED elements in registers at a time. */
enum { SUMMED = 16 };

typedef struct reader {
  const o3_kernel_site_t *site; /* NULL: tensors */
  o3_column_plan_t *p;
  int rank, ends[AXES]; /* loops of each axis end there */
} reader_t;

/* ---- Shape ---- */

static int count_reductions(const o3_nest_t *nest) {
  int count = 0;
  for (int d = 0; d < nest->num_dims; ++d) count += nest->reduction[d];
  return count;
}

static const char *read_shape(reader_t *r) {
  o3_column_plan_t *p = r->p;
  const o3_nest_t *first = NULL;
  for (int i = 0; i < p->num_ops && !first; ++i)
    if (count_reductions(p->ops[i].nest)) first = p->ops[i].nest;
  if (!first) return "nothing is reduced";
  r->rank = first->num_dims;
  for (int a = 0; a < AXES; ++a) p->sizes[a] = 1;
  for (int d = 0, axis = OUTER; d < r->rank; ++d) {
    if (first->sizes[d] < 1) return "a size is zero, or known only at run time";
    if (axis == OUTER && first->reduction[d]) axis = ALONG;
    if (axis == ALONG && !first->reduction[d]) axis = INNER;
    if (axis == INNER && first->reduction[d]) return "it reduces dimensions that are apart";
    p->sizes[axis] *= first->sizes[d];
    for (int a = axis; a < AXES; ++a) r->ends[a] = d + 1;
  }
  if (r->ends[ALONG] == r->rank) return "it reduces the last dimension";
  int64_t all = p->sizes[OUTER] * p->sizes[ALONG];
  return all > INT32_MAX / p->sizes[INNER] ? "it has more than 2^31 elements" : NULL;
}

static int start_of(const reader_t *r, int axis) { return axis ? r->ends[axis - 1] : 0; }

/* The op's loop that is loop |d| of the shape: those of an op of single columns lack what is reduced. */
static int own_loop(const reader_t *r, const o3_column_op_t *op, int d) {
  if (op->whole || d < start_of(r, ALONG)) return d;
  return d < r->ends[ALONG] ? -1 : d - (r->ends[ALONG] - start_of(r, ALONG));
}

static const char *check_loops(const reader_t *r, o3_column_op_t *op) {
  const o3_nest_t *nest = op->nest;
  int along = r->ends[ALONG] - start_of(r, ALONG), reduced = count_reductions(nest);
  op->whole = nest->num_dims == r->rank;
  if (!op->whole && nest->num_dims != r->rank - along) return "an op has other loops than the columns";
  const o3_nest_t *like = NULL;
  for (int i = 0; i < r->p->num_ops && !like; ++i)
    if (count_reductions(r->p->ops[i].nest)) like = r->p->ops[i].nest;
  for (int d = 0; d < r->rank; ++d) {
    int own = own_loop(r, op, d);
    if (own < 0) continue;
    if (nest->sizes[own] != like->sizes[d]) return "an op has other loops than the columns";
    if (nest->reduction[own] && !like->reduction[d]) return "an op reduces over columns";
  }
  if (reduced && reduced != along) return "an op reduces a part of a column";
  op->combiner = reduced ? o3_body_combiner(nest) : NULL;
  return reduced && !op->combiner ? "a reduction combines in a way that fast kernels do not have" : NULL;
}

/* ---- Values ---- */

static const char *find_value(reader_t *r, MlirValue key, int *index) {
  o3_column_plan_t *p = r->p;
  if (r->site) key = o3_kernel_site_base(key);
  for (*index = 0; *index < p->num_values; ++*index)
    if (mlirValueEqual(p->values[*index].key, key)) return NULL;
  if (p->num_values == (int)(sizeof(p->values) / sizeof(p->values[0]))) return "it has too many buffers";
  o3_column_value_t *value = &p->values[p->num_values++];
  *value = (o3_column_value_t){.key = key, .argument = -1};
  if (r->site) value->argument = o3_kernel_site_argument(r->site, key);
  MlirOperation def = o3_value_def(key);
  bool own = !mlirOperationIsNull(def) && o3_op_is(def, "memref.alloc");
  if (r->site && value->argument < 0 && !own) return "it reads a view of a buffer";
  return o3_kernel_site_element(key, &value->element) ? NULL : "an element type is none of f16, bf16, f32";
}

/* The steps along each axis, whose loops must be one to the operand. */
static const char *read_steps(const reader_t *r, const o3_column_op_t *op, const o3_nest_operand_t *from,
                              int64_t *steps) {
  for (int a = 0; a < AXES; ++a) {
    int64_t inside = 1; /* turns of the loops of the axis behind this one that turn at all */
    steps[a] = 0;
    for (int d = r->ends[a] - 1, first = 1; d >= start_of(r, a); --d) {
      int own = own_loop(r, op, d);
      int64_t step;
      if (own < 0 || op->nest->sizes[own] == 1) continue;
      if (!o3_nest_step(from, own, &step)) return "an operand is not linear in the loops";
      if (first) steps[a] = step;
      if (!first && step != steps[a] * inside) return "an operand is not walked as columns are";
      first = 0;
      inside *= op->nest->sizes[own];
    }
  }
  return steps[INNER] == 0 || steps[INNER] == 1 ? NULL : "an operand is not contiguous across columns";
}

static const char *read_operand(reader_t *r, o3_column_op_t *op, int index) {
  o3_column_operand_t *operand = &op->operands[index];
  const o3_nest_operand_t *from = &op->nest->operands[index];
  bool result = index == op->num_operands - 1;
  MlirValue key = result && !r->site ? mlirOperationGetResult(op->nest->op, 0) : from->value;
  const char *why = find_value(r, key, &operand->value);
  if (!why) why = read_steps(r, op, from, operand->steps);
  if (why) return why;
  const o3_column_value_t *value = &r->p->values[operand->value];
  operand->used = o3_nest_reads(op->nest, index);
  if (!operand->used || (result && !r->site)) return NULL;
  if (!value->written) return value->argument < 0 && r->site ? "it reads what nothing wrote" : NULL;
  bool same = memcmp(value->steps, operand->steps, sizeof(value->steps)) == 0;
  return same ? NULL : "an op reads a value in another order than it was written";
}

/* Each element once, in the order in which it is stored. */
static const char *check_result(const o3_column_plan_t *p, const o3_column_op_t *op) {
  const o3_column_operand_t *out = &op->operands[op->num_operands - 1];
  int64_t step = 1;
  for (int a = INNER; a >= OUTER; --a) {
    if (a == ALONG && (!op->whole || op->combiner)) continue;
    if (out->steps[a] != step && p->sizes[a] != 1) return "a result is not in the order of the loops";
    step *= p->sizes[a];
  }
  return NULL;
}

static const char *read_op(reader_t *r, o3_column_op_t *op) {
  const o3_nest_t *nest = op->nest;
  if (nest->num_operands > O3_COLUMN_MAX_OPERANDS || nest->num_operands != nest->num_inputs + 1)
    return "an op has too many operands";
  const char *why = check_loops(r, op);
  op->num_operands = nest->num_operands;
  for (int i = 0; i < op->num_operands && !why; ++i) why = read_operand(r, op, i);
  if (!why) why = check_result(r->p, op);
  if (why) return why;
  const o3_column_operand_t *out = &op->operands[op->num_operands - 1];
  o3_column_value_t *value = &r->p->values[out->value];
  value->written = true;
  value->whole = op->whole && !op->combiner;
  memcpy(value->steps, out->steps, sizeof(value->steps));
  r->p->num_reductions += op->combiner != NULL;
  return o3_body_refuse(nest, value->element != O3_GPU_F32, NULL);
}

/* ---- Threads ---- */

/* Columns that a thread can load at once from all that it loads. */
static int widest_vector(const o3_column_plan_t *p) {
  int vector = VECTOR;
  while (p->sizes[INNER] % vector) vector /= 2;
  return vector;
}

/* Threads along a column are as few as leave each no more elements than it has registers for, and more where
 * columns alone do not fill the card. */
static const char *share_columns(o3_column_plan_t *p, int bytes, int multiprocessors) {
  if (p->sizes[INNER] * bytes < LINE) return "neighbours of its columns are few";
  for (p->vector = widest_vector(p); p->vector; p->vector /= 2) {
    int64_t columns = p->sizes[INNER] / p->vector;
    for (p->lanes = WARP; p->lanes > 8 && p->lanes / 2 >= columns;) p->lanes /= 2;
    for (p->parts = 1; (p->sizes[ALONG] + p->parts - 1) / p->parts * p->vector > O3_COLUMN_MAX_ELEMENTS;)
      p->parts *= 2;
    if (p->lanes * p->parts <= MAX_THREADS) break;
  }
  if (!p->vector) return "a column is longer than the registers of a block";
  int64_t columns = p->sizes[OUTER] * (p->sizes[INNER] / p->vector);
  while (columns * p->parts < (int64_t)FULL * multiprocessors && p->lanes * p->parts < MAX_THREADS / 2 &&
         p->sizes[ALONG] >= 2 * LEAST_CHUNKS * p->parts)
    p->parts *= 2;
  while (p->lanes * p->parts < WARP) p->parts *= 2;
  p->chunks = (int)((p->sizes[ALONG] + p->parts - 1) / p->parts);
  p->turns = 1;
  return NULL;
}

/* Bytes of the narrowest element that is loaded or stored. */
static int narrowest(const o3_column_plan_t *p) {
  int bytes = 4;
  for (int v = 0; v < p->num_values; ++v) {
    int own = o3_gpu_element_info(p->values[v].element)->bytes;
    if ((p->values[v].argument >= 0 || !p->values[v].written) && own < bytes) bytes = own;
  }
  return bytes;
}

static bool gives_elements(const o3_column_plan_t *p) {
  const o3_column_op_t *last = &p->ops[p->num_ops - 1];
  return last->whole && !last->combiner;
}

/* Sums of columns, of which no element is read again once it is summed: what is done with whole columns comes
 * before the only reduction, and nothing of it is stored. */
static const char *refuse_sums(const o3_column_plan_t *p) {
  bool summed = false;
  if (p->num_reductions != 1) return "its result has one element a column, and it reduces several times";
  for (int i = 0; i < p->num_ops; ++i) {
    const o3_column_op_t *op = &p->ops[i];
    if (op->whole && summed) return "it reads columns again behind their sum";
    summed |= op->combiner != NULL;
  }
  for (int v = 0; v < p->num_values; ++v)
    if (p->values[v].whole && p->values[v].argument >= 0) return "it stores whole columns and a sum";
  return NULL;
}

/* Blocks are narrow while they are few, as long as what neighbours read is whole lines, and their threads are
 * as many as leave each LEAST_CHUNKS elements. Few columns lie one behind the other: those of all threads are
 * lines. */
static void share_sums(o3_column_plan_t *p, int bytes, int multiprocessors) {
  p->vector = widest_vector(p);
  int64_t vectors = p->sizes[INNER] / p->vector;
  for (p->lanes = WARP; p->lanes > 1 && p->lanes / 2 >= vectors;) p->lanes /= 2;
  while (p->lanes / 2 * p->vector * bytes >= LINE &&
         p->sizes[OUTER] * ((vectors + p->lanes - 1) / p->lanes) < multiprocessors)
    p->lanes /= 2;
  p->parts = 1;
  while (p->sizes[OUTER] * vectors * p->parts < (int64_t)FULL_SUMS * multiprocessors &&
         p->lanes * p->parts < MAX_THREADS && p->sizes[ALONG] >= 2 * LEAST_CHUNKS * p->parts)
    p->parts *= 2;
  while (p->lanes * p->parts < WARP) p->parts *= 2;
  int64_t each = (p->sizes[ALONG] + p->parts - 1) / p->parts;
  p->chunks = each * p->vector < SUMMED ? (int)each : SUMMED / p->vector;
  p->turns = (int)((each + p->chunks - 1) / p->chunks);
}

static const char *share_threads(o3_column_plan_t *p, int multiprocessors) {
  if (gives_elements(p)) return share_columns(p, narrowest(p), multiprocessors);
  const char *why = refuse_sums(p);
  if (!why) share_sums(p, narrowest(p), multiprocessors);
  return why;
}

const char *o3_column_plan(o3_arena_t *arena, int num_ops, const MlirOperation *ops,
                           const o3_kernel_site_t *site, int multiprocessors, o3_column_plan_t *plan) {
  reader_t r = {.site = site, .p = plan};
  *plan = (o3_column_plan_t){.num_ops = num_ops};
  if (num_ops > O3_COLUMN_MAX_OPS) return "it has too many ops";
  for (int i = 0; i < num_ops; ++i) {
    plan->ops[i].nest = O3_ARENA_NEW(arena, o3_nest_t);
    if (!plan->ops[i].nest) return "memory is out";
    if (!o3_nest_read_any(ops[i], plan->ops[i].nest)) return "an op is no loop nest";
  }
  const char *why = read_shape(&r);
  for (int i = 0; i < num_ops && !why; ++i) why = read_op(&r, &plan->ops[i]);
  if (!why && !site && num_ops + plan->num_reductions > O3_COLUMN_MAX_OPS) why = "it has too many ops";
  return why ? why : share_threads(plan, multiprocessors);
}
