/* share-heads: attention whose heads share keys and values reads them without copies.
 *
 * Needs: a normalized module, and a card whose kernel of attention reads heads of that width through strides.
 * Guarantees: where softmax(f(q k^T)) v has keys and values that are repeated for the heads of a group, the
 * products have a loop of groups and one of their members, which keys and values do not depend on:
 *
 *     %k = reshape(broadcast(%x))  [b,4,1,n,d] -> [b,4,8,n,d] -> [b,32,n,d]
 *     %s = matmul(%q, transpose(%k))        =>   %s = matmul(reshape(%q), transpose(%x))   [b,4,8,m,n]
 *     %y = matmul(softmax(%s), %v)               %y = reshape(matmul(softmax(%s), %w))
 *
 * Heads are split before they are transposed, and joined behind: products read through an order of
 * dimensions.
 */
#include "base/check.h"
#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

enum { MAX_STEPS = 8, RANK = 4, WIDE = RANK + 1, HEAD = 1, GROUP = 1, MEMBER = 2 };

/* An elementwise op between the scores and their softmax, and which operand the scores are. */
typedef struct step {
  MlirOperation op;
  int scores;
} step_t;

typedef struct match {
  MlirOperation softmax, scores, mixed;
  int num_steps;
  step_t steps[MAX_STEPS]; /* from the softmax back */
  MlirOperation rounding;  /* of the probabilities, or null */
  int64_t groups, members;
  MlirValue keys, values; /* [b, groups, n, d] */
  bool transposed;        /* keys are, behind the repetition */
} match_t;

/* ---- Reading ---- */

static bool is_op(MlirOperation op, const char *name) {
  return !mlirOperationIsNull(op) && o3_op_is(op, name);
}

static MlirType type_of(MlirOperation op) { return mlirValueGetType(mlirOperationGetResult(op, 0)); }

static bool is_combining(MlirOperation op) {
  static const char *const NAMES[] = {"o3.add", "o3.sub", "o3.mul", "o3.div", "o3.select", "o3.cast"};
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i) {
    if (is_op(op, NAMES[i])) return true;
  }
  return false;
}

static bool same_shape(MlirType a, MlirType b) {
  bool same = o3_type_is_static(a) && o3_type_is_static(b) && o3_type_rank(a) == o3_type_rank(b);
  for (int i = 0; same && i < o3_type_rank(a); ++i) same = o3_type_dim(a, i) == o3_type_dim(b, i);
  return same;
}

/* The operand of |op| that scores come from: of its result's shape, read by it alone, and itself a product or
 * combined. */
static int scores_operand(MlirOperation op) {
  for (int i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue value = mlirOperationGetOperand(op, i);
    MlirOperation def = o3_value_def(value);
    bool alone =
        same_shape(mlirValueGetType(value), type_of(op)) && !mlirOperationIsNull(o3_value_single_user(value));
    if (alone && (is_op(def, "o3.matmul") || is_combining(def))) return i;
  }
  return -1;
}

/* The product that reads the probabilities. */
static bool find_mixed(match_t *m) {
  MlirOperation last = m->softmax;
  m->mixed = o3_value_single_user(mlirOperationGetResult(last, 0));
  if (is_op(m->mixed, "o3.cast")) {
    m->rounding = last = m->mixed;
    m->mixed = o3_value_single_user(mlirOperationGetResult(last, 0));
  }
  return is_op(m->mixed, "o3.matmul") &&
         mlirValueEqual(mlirOperationGetOperand(m->mixed, 0), mlirOperationGetResult(last, 0));
}

/* From the softmax to the products before and behind it. */
static bool follow(MlirOperation softmax, match_t *m) {
  MlirType type = type_of(softmax);
  *m = (match_t){.softmax = softmax};
  if (!o3_type_is_static(type) || o3_type_rank(type) != RANK || o3_op_int(softmax, "axis", -1) != RANK - 1 ||
      o3_op_bool(softmax, "log", false))
    return false;
  if (!find_mixed(m)) return false;
  MlirOperation op = softmax;
  for (;;) {
    int operand = scores_operand(op);
    if (operand < 0) return false;
    if (m->num_steps) m->steps[m->num_steps - 1].scores = operand;
    op = o3_value_def(mlirOperationGetOperand(op, operand));
    if (is_op(op, "o3.matmul")) break;
    if (m->num_steps == MAX_STEPS) return false;
    m->steps[m->num_steps++].op = op;
  }
  m->scores = op;
  return true;
}

/* What has one head a group. */
static MlirValue without_members(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  const MlirValue none = {0};
  if (!is_op(def, "o3.reshape")) return none;
  MlirValue source = mlirOperationGetOperand(def, 0);
  MlirType from = mlirValueGetType(source), to = mlirValueGetType(value);
  bool same = o3_type_is_static(from) && o3_type_rank(from) == RANK;
  for (int i = 0; same && i < RANK; ++i)
    same = o3_type_dim(from, i) == o3_type_dim(to, i < MEMBER ? i : i + 1);
  return same ? source : none;
}

/* What is repeated to make |value| [b, groups * members, ...]; null when it is not. */
static MlirValue repeated(MlirValue value, int64_t *groups, int64_t *members) {
  MlirOperation joins = o3_value_def(value);
  const MlirValue none = {0};
  if (!is_op(joins, "o3.reshape")) return none;
  MlirOperation repeats = o3_value_def(mlirOperationGetOperand(joins, 0));
  if (!is_op(repeats, "o3.broadcast")) return none;
  MlirValue source = mlirOperationGetOperand(repeats, 0);
  MlirType from = mlirValueGetType(source), wide = type_of(repeats), to = mlirValueGetType(value);
  bool static_sizes = o3_type_is_static(from) && o3_type_is_static(wide) && o3_type_is_static(to);
  if (!static_sizes || o3_type_rank(from) != WIDE || o3_type_rank(wide) != WIDE || o3_type_rank(to) != RANK)
    return none;
  for (int i = 0; i < WIDE; ++i) {
    if (o3_type_dim(from, i) != (i == MEMBER ? 1 : o3_type_dim(wide, i))) return none;
  }
  *groups = o3_type_dim(wide, GROUP);
  *members = o3_type_dim(wide, MEMBER);
  bool joined = o3_type_dim(to, 0) == o3_type_dim(wide, 0) && o3_type_dim(to, HEAD) == *groups * *members;
  for (int i = 2; i < RANK; ++i) joined &= o3_type_dim(to, i) == o3_type_dim(wide, i + 1);
  return joined && *members > 1 ? without_members(source) : none;
}

static bool swaps_last(MlirOperation transpose) {
  int64_t order[RANK];
  return o3_op_ints(transpose, "perm", order, RANK) == RANK && order[0] == 0 && order[1] == 1 &&
         order[2] == 3 && order[3] == 2;
}

/* Whether an operand that is combined with scores is one for all heads. Of another one, unless it is known,
 * splitting would be left to the op that combines, which then is apart from the softmax. */
static bool fits_heads(MlirValue value, int64_t heads) {
  MlirType type = mlirValueGetType(value);
  int rank = o3_type_rank(type), head = rank - (RANK - HEAD);
  if (!o3_type_is_static(type) || rank > RANK) return false;
  if (head < 0 || o3_type_dim(type, head) == 1) return true;
  return o3_type_dim(type, head) == heads && is_op(o3_value_def(value), "o3.constant");
}

static bool are_sides_fit(const match_t *m) {
  for (int i = 0; i < m->num_steps; ++i) {
    for (int k = 0; k < mlirOperationGetNumOperands(m->steps[i].op); ++k) {
      MlirValue value = mlirOperationGetOperand(m->steps[i].op, k);
      if (k != m->steps[i].scores && !fits_heads(value, m->groups * m->members)) return false;
    }
  }
  return true;
}

static bool read_repeated(match_t *m) {
  int64_t groups, members;
  MlirValue k = mlirOperationGetOperand(m->scores, 1);
  MlirOperation def = o3_value_def(k);
  m->transposed = is_op(def, "o3.transpose") && swaps_last(def);
  if (m->transposed) k = mlirOperationGetOperand(def, 0);
  m->keys = repeated(k, &m->groups, &m->members);
  m->values = repeated(mlirOperationGetOperand(m->mixed, 1), &groups, &members);
  if (mlirValueIsNull(m->keys) || mlirValueIsNull(m->values)) return false;
  MlirType q = mlirValueGetType(mlirOperationGetOperand(m->scores, 0));
  bool whole = o3_type_is_static(q) && o3_type_rank(q) == RANK &&
               o3_type_dim(q, 0) == o3_type_dim(type_of(m->scores), 0) &&
               o3_type_dim(q, HEAD) == m->groups * m->members;
  return whole && groups == m->groups && members == m->members && are_sides_fit(m);
}

/* ---- Writing ---- */

/* |type| with the heads as groups and members; 1 where there is one for all. */
static MlirType split_type(const match_t *m, MlirType type) {
  int64_t sizes[RANK + 1];
  int rank = o3_type_rank(type), head = rank - (RANK - HEAD), count = 0;
  for (int i = 0; i < rank; ++i) {
    bool splits = i == head && o3_type_dim(type, i) != 1;
    sizes[count++] = splits ? m->groups : o3_type_dim(type, i);
    if (i == head) sizes[count++] = splits ? m->members : 1;
  }
  return o3_tensor_type(count, sizes, o3_type_element(type));
}

static MlirValue split(o3_builder_t *b, const match_t *m, MlirValue value) {
  MlirType type = mlirValueGetType(value);
  if (o3_type_rank(type) < RANK - HEAD) return value;
  return o3_build1(b, "o3.reshape", split_type(m, type), O3_VALUES(value));
}

static MlirValue transpose(o3_builder_t *b, MlirValue value, const int64_t order[WIDE]) {
  MlirType type = mlirValueGetType(value);
  int64_t sizes[WIDE];
  for (int i = 0; i < WIDE; ++i) sizes[i] = o3_type_dim(type, (int)order[i]);
  return o3_build1_attrs(b, "o3.transpose", o3_tensor_type(WIDE, sizes, o3_type_element(type)),
                         O3_VALUES(value), O3_ATTRS({"perm", o3_attr_ints(b->context, WIDE, order)}));
}

/* Dimension |dim| of |value| becomes two. */
static MlirValue split_dim(o3_builder_t *b, MlirValue value, int dim, int64_t outer, int64_t inner) {
  MlirType type = mlirValueGetType(value);
  int64_t sizes[WIDE];
  for (int i = 0; i < WIDE; ++i)
    sizes[i] = i == dim ? outer : i == dim + 1 ? inner : o3_type_dim(type, i - (i > dim));
  return o3_build1(b, "o3.reshape", o3_tensor_type(WIDE, sizes, o3_type_element(type)), O3_VALUES(value));
}

/* [b, heads, ...] as [b, groups, members, ...], where it was transposed before that. */
static MlirValue split_heads(o3_builder_t *b, MlirValue value, int64_t groups, int64_t members) {
  MlirOperation def = o3_value_def(value);
  int64_t order[RANK], wide[WIDE];
  if (!is_op(def, "o3.transpose") || o3_op_ints(def, "perm", order, RANK) != RANK)
    return split_dim(b, value, HEAD, groups, members);
  int from = (int)order[HEAD], count = 0;
  for (int i = 0; i < RANK; ++i) {
    wide[count++] = order[i] + (order[i] > from);
    if (i == HEAD) wide[count++] = from + 1;
  }
  return transpose(b, split_dim(b, mlirOperationGetOperand(def, 0), from, groups, members), wide);
}

static MlirValue build_like(o3_builder_t *b, const match_t *m, MlirOperation op, int count,
                            const MlirValue *operands) {
  enum { MAX_ATTRS = 4 };
  o3_attr_t attrs[MAX_ATTRS];
  int num_attrs = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); ++i) {
    MlirNamedAttribute attr = mlirOperationGetAttribute(op, i);
    if (o3_str_equal(mlirIdentifierStr(attr.name), "o3.shape")) continue;
    O3_ASSERT(num_attrs < MAX_ATTRS);
    attrs[num_attrs++] = (o3_attr_t){mlirIdentifierStr(attr.name).data, attr.attribute};
  }
  b->location = mlirOperationGetLocation(op);
  return o3_build1_attrs(b, o3_op_name(op).data, split_type(m, type_of(op)), count, operands, num_attrs,
                         attrs);
}

static MlirValue build_step(o3_builder_t *b, const match_t *m, const step_t *step, MlirValue scores) {
  enum { MAX_OPERANDS = 3 };
  MlirValue operands[MAX_OPERANDS];
  int count = (int)mlirOperationGetNumOperands(step->op);
  b->location = mlirOperationGetLocation(step->op);
  for (int i = 0; i < count; ++i)
    operands[i] = i == step->scores ? scores : split(b, m, mlirOperationGetOperand(step->op, i));
  return build_like(b, m, step->op, count, operands);
}

/* Pure ops that nobody reads any more, from |op| back. */
static void erase(MlirOperation op) {
  enum { MAX_OPERANDS = 4 };
  MlirValue operands[MAX_OPERANDS];
  int count = (int)mlirOperationGetNumOperands(op);
  if (count > MAX_OPERANDS || !o3_op_is_pure(op) || o3_value_has_uses(mlirOperationGetResult(op, 0))) return;
  for (int i = 0; i < count; ++i) operands[i] = mlirOperationGetOperand(op, i);
  mlirOperationDestroy(op);
  for (int i = 0; i < count; ++i) {
    MlirOperation def = o3_value_def(operands[i]);
    bool again = false;
    for (int k = 0; k < i; ++k) again |= mlirValueEqual(operands[i], operands[k]);
    if (!again && !mlirOperationIsNull(def)) erase(def);
  }
}

static MlirValue build_scores(o3_builder_t *b, const match_t *m) {
  b->location = mlirOperationGetLocation(m->scores);
  MlirValue q = split_heads(b, mlirOperationGetOperand(m->scores, 0), m->groups, m->members);
  MlirValue k = split_heads(b, m->keys, m->groups, 1);
  if (m->transposed) k = transpose(b, k, (int64_t[]){0, 1, 2, 4, 3});
  return build_like(b, m, m->scores, O3_VALUES(q, k));
}

/* The only reader of |value| whose result is read. */
static MlirOperation live_reader(MlirValue value) {
  MlirOperation reader = {0};
  MlirOpOperand use = mlirValueGetFirstUse(value);
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    if (o3_op_is_pure(op) && !o3_value_has_uses(mlirOperationGetResult(op, 0))) continue;
    if (!mlirOperationIsNull(reader)) return (MlirOperation){0};
    reader = op;
  }
  return reader;
}

/* The groups' results as those of the heads; a transpose that reads them comes first. */
static void replace_result(o3_builder_t *b, MlirOperation mixed, MlirValue x) {
  MlirOperation reader = live_reader(mlirOperationGetResult(mixed, 0)), replaced = mixed;
  int64_t order[RANK], wide[WIDE];
  if (is_op(reader, "o3.transpose") && o3_op_ints(reader, "perm", order, RANK) == RANK) {
    int count = 0;
    for (int i = 0; i < RANK; ++i) {
      wide[count++] = order[i] + (order[i] > HEAD);
      if (order[i] == HEAD) wide[count++] = MEMBER;
    }
    b->location = mlirOperationGetLocation(reader);
    x = transpose(b, x, wide);
    replaced = reader;
  }
  x = o3_build1(b, "o3.reshape", type_of(replaced), O3_VALUES(x));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(replaced, 0), x);
  erase(replaced);
}

static void share(const match_t *m) {
  o3_builder_t b = o3_builder_before(m->mixed);
  MlirValue x = build_scores(&b, m);
  for (int i = m->num_steps; i-- > 0;) x = build_step(&b, m, &m->steps[i], x);
  b.location = mlirOperationGetLocation(m->softmax);
  x = o3_build1_attrs(&b, "o3.softmax", split_type(m, type_of(m->softmax)), O3_VALUES(x),
                      O3_ATTRS({"axis", o3_attr_i64(b.context, RANK)}));
  if (!mlirOperationIsNull(m->rounding)) x = build_like(&b, m, m->rounding, O3_VALUES(x));
  b.location = mlirOperationGetLocation(m->mixed);
  MlirValue v = split_heads(&b, m->values, m->groups, 1);
  x = build_like(&b, m, m->mixed, O3_VALUES(x, v));
  replace_result(&b, m->mixed, x);
}

static o3_status_t collect_softmax(MlirOperation op, void *context) {
  if (!o3_op_is(op, "o3.softmax") || o3_ptr_vec_push(context, op.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

o3_status_t o3_rewrite_share_heads(o3_pass_env_t *env, MlirModule module) {
  o3_ptr_vec_t ops = o3_ptr_vec(env->arena);
  bool (*reads)(int64_t width) = env->machine->kernels->reads_attention_parts;
  if (!reads) return NULL;
  O3_TRY(o3_walk(mlirModuleGetOperation(module), collect_softmax, &ops));
  for (size_t i = 0; i < ops.count; ++i) {
    match_t m;
    if (!follow((MlirOperation){ops.items[i]}, &m) || !read_repeated(&m)) continue;
    if (reads(o3_type_dim(mlirValueGetType(m.values), RANK - 1))) share(&m);
  }
  return NULL;
}
