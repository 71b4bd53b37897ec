/* A result is a block's at most, and a card has many: 16 rows of 4 million numbers would keep 16
 * multiprocessors busy. The outermost loop of a sum is split; what is left may be split again. */
#include "target/nvptx/split_sums.h"

#include "analysis/dependence.h"
#include "fuse/rebuild.h"
#include "schedule/gpu.h"
#include "target/nvptx/thread_code.h"

/* Sums are split when results are fewer than FEW for each multiprocessor, until they are MANY; parts have at
 * least PART terms. Of softmax and LayerNorm, whose kernel reads a row once, only what is longer than ROW, a
 * block's registers. */
enum { FEW = 2, MANY = 64, PART = 256, LONG = 4096, LEAST_PARTS = 4, ROW = 32768 };

typedef struct sum {
  o3_arena_t *arena;
  int multiprocessors;
  o3_dep_generic_t generic;
  const char *combiner;
  int loop, position; /* the loop to split; where the input has it */
  int64_t parts, length;
} sum_t;

/* ---- Whether ---- */

static bool tells_places(MlirBlock body) {
  MlirOperation op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (o3_op_is(op, "linalg.index") || mlirOperationGetNumRegions(op)) return true;
  }
  return false;
}

/* The largest number of parts that divides the loop. */
static int64_t choose_parts(int64_t length, int64_t terms, int64_t results, int64_t wanted) {
  int64_t most = wanted / results;
  if (most > terms / PART) most = terms / PART;
  if (most > length) most = length;
  while (most >= LEAST_PARTS && length % most) --most;
  return most >= LEAST_PARTS ? most : 1;
}

static bool reads(MlirOperation op, MlirValue value) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    if (mlirValueEqual(mlirOperationGetOperand(op, i), value)) return true;
  }
  return false;
}

/* Whether |op| reads what is summed, or what that is computed from element by element. */
static bool reads_terms(MlirOperation op, MlirValue terms) {
  MlirOperation def = o3_value_def(terms);
  if (reads(op, terms)) return true;
  if (mlirOperationIsNull(def) || !o3_op_is(def, "linalg.generic")) return false;
  for (intptr_t i = 0; i + 1 < mlirOperationGetNumOperands(def); ++i) {
    if (reads(op, mlirOperationGetOperand(def, i))) return true;
  }
  return false;
}

/* Whether the terms of the row sum |op| meet what is made of it, as in softmax and LayerNorm. */
static bool normalizes(MlirOperation op) {
  enum { MAX_STEPS = 8 };
  MlirValue terms = mlirOperationGetOperand(op, 0), value = mlirOperationGetResult(op, 0);
  for (int step = 0; step < MAX_STEPS; ++step) {
    MlirOpOperand use = mlirValueGetFirstUse(value);
    if (mlirOpOperandIsNull(use)) return false;
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (reads_terms(user, terms)) return true;
    if (mlirOperationGetNumResults(user) != 1) return false;
    value = mlirOperationGetResult(user, 0);
  }
  return false;
}

/* A sum along the last dimension of its terms. */
static bool is_row(const o3_dep_generic_t *g) {
  int rank = (int)mlirAffineMapGetNumResults(g->maps[0]),
      last = rank ? o3_dep_loop(g->maps[0], rank - 1) : -1;
  return last >= 0 && g->reduction[last];
}

static bool read_sum(sum_t *s, MlirOperation op) {
  static _Thread_local o3_nest_t nest;
  const o3_dep_generic_t *g = &s->generic;
  if (!o3_dep_generic_read(op, &s->generic) || g->num_inputs != 1 || tells_places(g->body)) return false;
  if (!o3_nest_read_any(op, &nest) || !o3_combiner_fits(&nest, &s->combiner)) return false;
  int64_t results = 1, terms = 1;
  s->loop = -1;
  for (int d = 0; d < nest.num_dims; ++d) {
    if (nest.sizes[d] < 1) return false;
    if (__builtin_mul_overflow(g->reduction[d] ? terms : results, nest.sizes[d],
                               g->reduction[d] ? &terms : &results))
      return false;
    if (g->reduction[d] && s->loop < 0 && nest.sizes[d] > 1) s->loop = d;
  }
  if (s->loop < 0 || terms < LONG || results >= (int64_t)FEW * s->multiprocessors) return false;
  if (terms <= ROW && is_row(g) && normalizes(op)) return false;
  s->length = nest.sizes[s->loop];
  s->parts = choose_parts(s->length, terms, results, (int64_t)MANY * s->multiprocessors);
  s->position = o3_dep_position(g->maps[0], s->loop);
  return s->parts > 1 && s->position >= 0;
}

/* ---- How ---- */

static MlirAttribute iterators(MlirContext context, int count, const bool *reduction) {
  MlirAttribute items[O3_IR_MAX_RANK + 1];
  for (int i = 0; i < count; ++i)
    items[i] = o3_attr_parse(
        context, reduction[i] ? "#linalg.iterator_type<reduction>" : "#linalg.iterator_type<parallel>");
  return mlirArrayAttrGet(context, count, items);
}

static MlirAffineMap loops_from(MlirContext context, int count, int first) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK + 1];
  for (int i = first; i < count; ++i) exprs[i - first] = mlirAffineDimExprGet(context, i);
  return mlirAffineMapGet(context, count, 0, count - first, exprs);
}

/* [16, 4096] as [16, 64, 64]. */
static MlirValue split_input(const sum_t *s, o3_builder_t *b) {
  MlirValue input = mlirOperationGetOperand(s->generic.op, 0);
  MlirType type = mlirValueGetType(input);
  MlirAttribute groups[O3_IR_MAX_RANK];
  int64_t sizes[O3_IR_MAX_RANK + 1];
  int rank = o3_type_rank(type), at = 0;
  for (int r = 0; r < rank; ++r) {
    int count = r == s->position ? 2 : 1;
    MlirAttribute items[2] = {o3_attr_i64(b->context, at), o3_attr_i64(b->context, at + 1)};
    groups[r] = mlirArrayAttrGet(b->context, count, items);
    sizes[at++] = count == 2 ? s->parts : o3_type_dim(type, r);
    if (count == 2) sizes[at++] = s->length / s->parts;
  }
  return o3_build1_attrs(b, "tensor.expand_shape", o3_tensor_type(at, sizes, o3_type_element(type)),
                         O3_VALUES(input),
                         O3_ATTRS({"reassociation", mlirArrayAttrGet(b->context, rank, groups)},
                                  {"static_output_shape", o3_attr_ints(b->context, at, sizes)}));
}

/* |map| of the old loops, which follow the loop over parts; the split position becomes two. */
static MlirAffineMap split_map(const sum_t *s, MlirContext context, MlirAffineMap map, int position,
                               bool leads) {
  int loops = s->generic.num_dims + 1, count = 0;
  MlirAffineMap shift = loops_from(context, loops, 1);
  MlirAffineExpr exprs[O3_IR_MAX_RANK + 1];
  if (leads) exprs[count++] = mlirAffineDimExprGet(context, 0);
  for (int r = 0; r < (int)mlirAffineMapGetNumResults(map); ++r) {
    if (r == position) exprs[count++] = mlirAffineDimExprGet(context, 0);
    exprs[count++] = mlirAffineExprCompose(mlirAffineMapGetResult(map, r), shift);
  }
  return mlirAffineMapGet(context, loops, 0, count, exprs);
}

/* Parts start with nothing. */
static o3_status_t fill_parts(const sum_t *s, o3_builder_t *b, MlirType type, MlirValue *filled) {
  int rank = o3_type_rank(type);
  const bool parallel[O3_IR_MAX_RANK + 1] = {false};
  MlirValue empty = o3_build1(b, "tensor.empty", type, O3_NO_VALUES);
  MlirValue nothing = o3_combiner_identity(b, s->combiner, o3_type_element(type));
  o3_rebuild_t fill = {.like = &s->generic, .out = empty, .out_map = loops_from(b->context, rank, 0)};
  O3_TRY(o3_rebuild_begin(&fill, s->arena));
  *filled =
      mlirOperationGetResult(o3_rebuild_build(&fill, nothing, iterators(b->context, rank, parallel)), 0);
  return NULL;
}

static o3_status_t sum_parts(const sum_t *s, o3_builder_t *b, MlirOperation *made) {
  const o3_dep_generic_t *g = &s->generic;
  MlirType whole = mlirValueGetType(mlirOperationGetResult(g->op, 0));
  int64_t sizes[O3_IR_MAX_RANK + 1] = {s->parts};
  bool reduction[O3_IR_MAX_RANK + 1] = {false};
  int rank = o3_type_rank(whole);
  for (int r = 0; r < rank; ++r) sizes[r + 1] = o3_type_dim(whole, r);
  for (int d = 0; d < g->num_dims; ++d) reduction[d + 1] = g->reduction[d];
  MlirValue filled, result;
  O3_TRY(fill_parts(s, b, o3_tensor_type(rank + 1, sizes, o3_type_element(whole)), &filled));
  o3_rebuild_t sum = {.like = g, .out = filled};
  sum.out_map = split_map(s, b->context, o3_dep_result_map(g), -1, true);
  o3_rebuild_input(&sum, split_input(s, b), split_map(s, b->context, g->maps[0], s->position, false));
  O3_TRY(o3_rebuild_begin(&sum, s->arena));
  MlirValue arguments[2] = {mlirBlockGetArgument(sum.block, 0), mlirBlockGetArgument(sum.block, 1)};
  O3_TRY(o3_rebuild_clone(&sum, g->body, arguments, NULL, &result));
  *made = o3_rebuild_build(&sum, result, iterators(b->context, g->num_dims + 1, reduction));
  return NULL;
}

static o3_status_t join_parts(const sum_t *s, o3_builder_t *b, MlirValue parts) {
  MlirOperation old = s->generic.op;
  MlirValue initial = mlirOperationGetOperand(old, 1);
  int loops = o3_type_rank(mlirValueGetType(parts));
  bool reduction[O3_IR_MAX_RANK + 1] = {true};
  o3_rebuild_t join = {.like = &s->generic, .out = initial, .out_map = loops_from(b->context, loops, 1)};
  o3_rebuild_input(&join, parts, loops_from(b->context, loops, 0));
  O3_TRY(o3_rebuild_begin(&join, s->arena));
  o3_builder_t body = o3_builder_at_end(join.block, b->location);
  MlirValue both =
      o3_build2(&body, s->combiner, mlirBlockGetArgument(join.block, 1), mlirBlockGetArgument(join.block, 0));
  MlirOperation made = o3_rebuild_build(&join, both, iterators(b->context, loops, reduction));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(old, 0), mlirOperationGetResult(made, 0));
  mlirOperationDestroy(old);
  return NULL;
}

static o3_status_t split(sum_t *s, MlirOperation op) {
  MlirOperation made;
  while (read_sum(s, op)) {
    if (s->generic.num_dims == O3_IR_MAX_RANK ||
        o3_type_rank(mlirValueGetType(mlirOperationGetOperand(op, 0))) == O3_IR_MAX_RANK)
      return NULL;
    o3_builder_t b = o3_builder_before(op);
    O3_TRY(sum_parts(s, &b, &made));
    O3_TRY(join_parts(s, &b, mlirOperationGetResult(made, 0)));
    op = made;
  }
  return NULL;
}

static o3_status_t collect(MlirOperation op, void *context) {
  if (!o3_op_is(op, "linalg.generic") || o3_ptr_vec_push(context, op.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

o3_status_t o3_nvptx_split_sums(o3_pass_env_t *env, MlirModule module) {
  sum_t sum = {.arena = env->arena, .multiprocessors = env->machine->gpu->multiprocessors};
  o3_ptr_vec_t ops = o3_ptr_vec(env->arena);
  O3_TRY(o3_walk(o3_module_func(module, "main"), collect, &ops));
  for (size_t i = 0; i < ops.count; ++i) O3_TRY(split(&sum, (MlirOperation){ops.items[i]}));
  return NULL;
}
