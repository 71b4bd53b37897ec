/* Softmax is known by what it does, not by a name: exp(x - max(x)) / sum of these. Its sum may be taken in
 * blocks, each with the greatest score so far, and the product with v, too (Milakov and Gimelshein, "Online
 * normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022):
 *
 *     m' = max(m, max(x))   z' = z exp(m - m') + sum exp(x - m')   y' = y exp(m - m') + exp(x - m') v
 *
 * so the scores need never be in memory as a whole. Legal where a row of scores is read by its own softmax
 * alone, and the probabilities by one product that sums along the row.
 */
#include "fuse/group_attention.h"

#include <string.h>

enum { MAX_SIDES = 8, MAX_OPS = 32, MAX_BEHIND = 3 };

typedef struct matcher {
  o3_groups_t *groups;
  o3_dep_node_t *scores; /* the first product */
  int num_sides;
  MlirOperation sides[MAX_SIDES];
  o3_dep_node_t *at; /* what makes the values that are followed */
  const o3_dep_node_t *stopped;
  const char *why;
  o3_group_t *group;
} matcher_t;

/* ---- Bodies ---- */

/* The op that yields, when it is a |name|. */
static MlirOperation yielded(const o3_dep_generic_t *generic, const char *name) {
  MlirOperation op = o3_value_def(mlirOperationGetOperand(mlirBlockGetTerminator(generic->body), 0));
  return !mlirOperationIsNull(op) && o3_op_is(op, name) ? op : (MlirOperation){0};
}

static int argument_number(const o3_dep_generic_t *generic, MlirValue value) {
  if (!mlirValueIsABlockArgument(value)) return -1;
  return mlirBlockEqual(mlirBlockArgumentGetOwner(value), generic->body)
             ? (int)mlirBlockArgumentGetArgNumber(value)
             : -1;
}

static int operand_argument(const o3_dep_generic_t *generic, MlirOperation op, int operand) {
  return argument_number(generic, mlirOperationGetOperand(op, operand));
}

static int count_body(const o3_dep_generic_t *generic) {
  int count = -1; /* the terminator */
  MlirOperation op = mlirBlockGetFirstOperation(generic->body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) ++count;
  return count;
}

/* Whether the generic combines its only input with what it has so far by |name|. */
static bool accumulates(const o3_dep_generic_t *generic, const char *name) {
  MlirOperation op = yielded(generic, name);
  if (generic->num_inputs != 1 || count_body(generic) != 1 || mlirOperationIsNull(op)) return false;
  int a = operand_argument(generic, op, 0), b = operand_argument(generic, op, 1);
  return (a == 0 && b == 1) || (a == 1 && b == 0);
}

/* ---- Maps ---- */

static MlirValue result_of(const o3_dep_node_t *node) { return mlirOperationGetResult(node->op, 0); }

/* The input of |node| that is |producer|'s result; -1 unless there is just one. */
static int input_from(const o3_dep_node_t *node, const o3_dep_node_t *producer) {
  int found = -1;
  for (int i = 0; i < node->generic->num_operands; ++i) {
    if (!mlirValueEqual(mlirOperationGetOperand(node->op, i), result_of(producer))) continue;
    if (found >= 0 || i == node->generic->num_inputs) return -1;
    found = i;
  }
  return found;
}

static bool reads_in_place(const o3_dep_node_t *node, int input) {
  return input >= 0 && mlirAffineMapEqual(node->generic->maps[input], o3_dep_result_map(node->generic));
}

/* The loops of |generic| that its result's positions are, but for the last. */
static bool is_row_of(const o3_dep_generic_t *generic, MlirAffineMap row) {
  MlirAffineMap result = o3_dep_result_map(generic);
  int count = (int)mlirAffineMapGetNumResults(row);
  if (count != (int)mlirAffineMapGetNumResults(result) - 1) return false;
  for (int i = 0; i < count; ++i) {
    if (!mlirAffineExprEqual(mlirAffineMapGetResult(row, i), mlirAffineMapGetResult(result, i))) return false;
  }
  return true;
}

/* |node| reduces the last dimension of what |producer| makes, and keeps the order of the others. */
static bool reduces_last(const o3_dep_node_t *node, const o3_dep_node_t *producer) {
  const o3_dep_generic_t *generic = node->generic;
  if (node->kind != O3_DEP_REDUCTION || input_from(node, producer) != 0) return false;
  MlirAffineMap input = generic->maps[0], result = o3_dep_result_map(generic);
  int rank = (int)mlirAffineMapGetNumResults(input);
  if (generic->num_dims != rank || (int)mlirAffineMapGetNumResults(result) != rank - 1) return false;
  for (int r = 0; r < rank; ++r) {
    int loop = o3_dep_loop(input, r);
    bool last = r == rank - 1;
    if (loop < 0 || generic->reduction[loop] != last) return false;
    if (!last && o3_dep_loop(result, r) != loop) return false;
  }
  return true;
}

/* |node| is elementwise on |wide| and, for each row, |narrow|. */
static bool is_map_of(const o3_dep_node_t *node, const o3_dep_node_t *wide, const o3_dep_node_t *narrow,
                      int *wide_input, int *narrow_input) {
  if (node->kind != O3_DEP_MAP || node->generic->num_inputs != 2) return false;
  *wide_input = input_from(node, wide);
  *narrow_input = input_from(node, narrow);
  return *narrow_input >= 0 && reads_in_place(node, *wide_input) &&
         is_row_of(node->generic, node->generic->maps[*narrow_input]);
}

/* ---- The group ---- */

static o3_status_t add(matcher_t *self, o3_dep_node_t *node, const char *reason) {
  bool ok = o3_ptr_vec_push(&self->group->members, node) &&
            o3_ptr_vec_push(&self->group->reasons, (void *)(uintptr_t)reason);
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static bool stop(matcher_t *self, const o3_dep_node_t *node, const char *why) {
  self->stopped = node;
  self->why = why;
  return false;
}

static o3_dep_node_t *user_of(const o3_dep_node_t *node, int index, int count) {
  return node->num_users == count && !node->captured ? node->users[index] : NULL;
}

/* ---- Steps ---- */

static bool starts_at(const matcher_t *self, const o3_dep_node_t *product, double value) {
  MlirValue initial = mlirOperationGetOperand(product->op, product->generic->num_inputs);
  o3_dep_node_t *fill = o3_dep_producer(self->groups->graph, initial);
  if (!fill || fill->kind != O3_DEP_FILL) return false;
  MlirOperation def = o3_value_def(mlirOperationGetOperand(mlirBlockGetTerminator(fill->generic->body), 0));
  if (mlirOperationIsNull(def) || !o3_op_is(def, "arith.constant")) return false;
  MlirAttribute number = o3_op_attr(def, "value");
  return mlirAttributeIsAFloat(number) && mlirFloatAttrGetValueDouble(number) == value;
}

/* A target that is asked with all ops judges types by itself; the others have one type. */
static bool converts(const matcher_t *self) {
  return self->groups->machine->kernels->refuse_attention_ops != NULL;
}

/* Elementwise ops on the scores, as far as they are read by one op alone. */
static o3_status_t follow_scores(matcher_t *self) {
  MlirType type = mlirValueGetType(result_of(self->scores));
  self->at = self->scores;
  O3_TRY(add(self, self->scores, "product"));
  for (;;) {
    o3_dep_node_t *user = user_of(self->at, 0, 1);
    bool fits = user && user->kind == O3_DEP_MAP && self->num_sides < MAX_SIDES &&
                !self->groups->owner[user->index] && reads_in_place(user, input_from(user, self->at)) &&
                (converts(self) || mlirTypeEqual(mlirValueGetType(result_of(user)), type));
    if (!fits) return NULL;
    self->sides[self->num_sides++] = user->op;
    self->at = user;
    O3_TRY(add(self, user, "elementwise on the scores"));
  }
}

/* exp(x - max), by one op or two. */
static o3_dep_node_t *match_exp(const o3_dep_node_t *x, const o3_dep_node_t *max, o3_dep_node_t *difference,
                                bool *two) {
  int wide, narrow;
  if (!is_map_of(difference, x, max, &wide, &narrow)) return NULL;
  MlirOperation exp = yielded(difference->generic, "math.exp");
  *two = mlirOperationIsNull(exp);
  MlirOperation sub =
      *two ? yielded(difference->generic, "arith.subf") : o3_value_def(mlirOperationGetOperand(exp, 0));
  bool subtracts = !mlirOperationIsNull(sub) && o3_op_is(sub, "arith.subf") &&
                   operand_argument(difference->generic, sub, 0) == wide &&
                   operand_argument(difference->generic, sub, 1) == narrow &&
                   count_body(difference->generic) == (*two ? 1 : 2);
  if (!subtracts || !*two) return subtracts ? difference : NULL;
  o3_dep_node_t *user = user_of(difference, 0, 1);
  bool fits = user && user->kind == O3_DEP_MAP && user->generic->num_inputs == 1 &&
              reads_in_place(user, input_from(user, difference)) && count_body(user->generic) == 1 &&
              !mlirOperationIsNull(yielded(user->generic, "math.exp"));
  return fits ? user : NULL;
}

static bool divides(const o3_dep_node_t *node, const o3_dep_node_t *exp, const o3_dep_node_t *sum) {
  int wide, narrow;
  if (!is_map_of(node, exp, sum, &wide, &narrow)) return false;
  MlirOperation div = yielded(node->generic, "arith.divf");
  return !mlirOperationIsNull(div) && count_body(node->generic) == 1 &&
         operand_argument(node->generic, div, 0) == wide && operand_argument(node->generic, div, 1) == narrow;
}

/* The softmax of what |at| makes; |at| becomes its last op. */
static o3_status_t follow_softmax(matcher_t *self, bool *found) {
  o3_dep_node_t *x = self->at, *max = user_of(x, 0, 2), *difference = user_of(x, 1, 2), *exp;
  bool two;
  *found = max && difference && reduces_last(max, x) && accumulates(max->generic, "arith.maximumf") &&
           max->num_users == 1 && (exp = match_exp(x, max, difference, &two)) != NULL;
  if (!*found) return NULL;
  o3_dep_node_t *sum = user_of(exp, 0, 2), *quotient = user_of(exp, 1, 2);
  *found = sum && quotient && reduces_last(sum, exp) && accumulates(sum->generic, "arith.addf") &&
           sum->num_users == 1 && divides(quotient, exp, sum);
  if (!*found) return NULL;
  self->at = quotient;
  O3_TRY(add(self, max, "greatest score of a row, so far"));
  O3_TRY(add(self, difference, "within the row"));
  if (two) O3_TRY(add(self, exp, "within the row"));
  O3_TRY(add(self, sum, "sum of a row, rescaled when the greatest score grows"));
  return add(self, quotient, "within the row: done to the product's result instead");
}

/* The only reader of |node|, when it rounds what it reads or stores it in another order. */
static o3_dep_node_t *converter_of(const matcher_t *self, const o3_dep_node_t *node) {
  o3_dep_node_t *user = user_of(node, 0, 1);
  bool fits = user && user->kind == O3_DEP_MAP && user->generic->num_inputs == 1 &&
              !self->groups->owner[user->index] && input_from(user, node) == 0 &&
              (!self->groups->one_node || mlirStringRefEqual(o3_op_label(user->op), o3_op_label(node->op)));
  if (!fits) return NULL;
  bool rounds =
      count_body(user->generic) == 1 && !mlirOperationIsNull(yielded(user->generic, "arith.truncf"));
  bool moves = count_body(user->generic) == 0 &&
               argument_number(user->generic,
                               mlirOperationGetOperand(mlirBlockGetTerminator(user->generic->body), 0)) == 0;
  return rounds || moves ? user : NULL;
}

static o3_status_t follow_rounding(matcher_t *self) {
  o3_dep_node_t *user = converts(self) ? converter_of(self, self->at) : NULL;
  if (!user || !reads_in_place(user, 0)) return NULL;
  self->at = user;
  return add(self, user, "within the row");
}

static bool fits_product(matcher_t *self, const o3_dep_node_t *product) {
  if (!product) return stop(self, self->at, "another op reads the probabilities");
  if (product->kind != O3_DEP_CONTRACTION || self->groups->owner[product->index])
    return stop(self, product, "it is no product with the probabilities");
  if (input_from(product, self->at) < 0 || !starts_at(self, product, 0))
    return stop(self, product, "its sums do not start at zero");
  return true;
}

/* Asks with all ops, and as many of those behind the product as the target takes; their number. */
static bool asks_with_ops(matcher_t *self, const o3_dep_node_t *product, o3_dep_node_t *behind[MAX_BEHIND],
                          int *count) {
  const o3_kernel_support_t *kernels = self->groups->machine->kernels;
  MlirOperation ops[MAX_OPS];
  int num_ops = 0;
  for (size_t i = 0; i < self->group->members.count; ++i)
    ops[num_ops++] = ((const o3_dep_node_t *)self->group->members.items[i])->op;
  ops[num_ops++] = product->op;
  const o3_dep_node_t *last = product;
  for (*count = 0; *count < MAX_BEHIND && (behind[*count] = converter_of(self, last)); ++*count)
    last = behind[*count];
  for (int i = 0; i < *count; ++i) ops[num_ops + i] = behind[i]->op;
  const char *why = NULL, *first = NULL;
  for (;; --*count) {
    why = kernels->refuse_attention_ops(self->groups->machine->gpu, num_ops + *count, ops);
    if (!first) first = why;
    if (!why || *count == 0) break;
  }
  return why ? stop(self, product, first) : true;
}

static bool ends(matcher_t *self, o3_dep_node_t *product, o3_dep_node_t *behind[MAX_BEHIND], int *count) {
  const o3_kernel_support_t *kernels = self->groups->machine->kernels;
  *count = 0;
  if (!fits_product(self, product)) return false;
  if (converts(self)) return asks_with_ops(self, product, behind, count);
  const char *why = kernels->refuse_attention(self->scores->op, product->op, self->num_sides, self->sides);
  return why ? stop(self, product, why) : true;
}

/* With --no-fusion an op of another node than the product's is not taken. */
static bool is_one_node(matcher_t *self, const o3_dep_node_t *product) {
  for (size_t i = 0; self->groups->one_node && i < self->group->members.count; ++i) {
    const o3_dep_node_t *node = self->group->members.items[i];
    if (!mlirStringRefEqual(o3_op_label(node->op), o3_op_label(product->op)))
      return stop(self, node, "it is another node: --no-fusion");
  }
  return true;
}

static const char *stop_text(const matcher_t *self, const o3_dep_node_t *root) {
  if (root->num_users == 0) return "nothing reads the result";
  if (mlirOperationIsNull(mlirOperationGetNextInBlock(root->users[0]->op))) return "the result is an output";
  MlirStringRef label = o3_op_label(root->users[0]->op);
  return o3_arena_printf(self->groups->arena, "%.*s: a kernel of attention ends with its product",
                         O3_STR_ARGS(label));
}

static o3_status_t finish(matcher_t *self, o3_dep_node_t *product, o3_dep_node_t *const *behind, int count) {
  o3_groups_t *groups = self->groups;
  O3_TRY(add(self, product, "product, block by block with the probabilities"));
  for (int i = 0; i < count; ++i) O3_TRY(add(self, behind[i], "how the result is stored"));
  self->group->root = count ? behind[count - 1] : product;
  self->group->stop = stop_text(self, self->group->root);
  O3_TRY_ALLOC(self->group->stop);
  for (size_t i = 0; i < self->group->members.count; ++i) {
    const o3_dep_node_t *node = self->group->members.items[i];
    groups->owner[node->index] = self->group;
  }
  return o3_ptr_vec_push(&groups->list, self->group)
             ? NULL
             : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

o3_status_t o3_group_attention(o3_groups_t *groups, o3_dep_node_t *seed, const o3_dep_node_t **stopped,
                               const char **why) {
  matcher_t self = {.groups = groups, .scores = seed};
  const o3_kernel_support_t *kernels = groups->machine->kernels;
  o3_dep_node_t *behind[MAX_BEHIND];
  bool found;
  int count;
  *stopped = NULL;
  *why = NULL;
  if (!kernels->refuse_attention && !kernels->refuse_attention_ops) return NULL;
  if (!starts_at(&self, seed, 0)) return NULL;
  self.group = O3_ARENA_NEW(groups->arena, o3_group_t);
  O3_TRY_ALLOC(self.group);
  *self.group = (o3_group_t){
      .kind = O3_GROUP_ATTENTION, .members = o3_ptr_vec(groups->arena), .reasons = o3_ptr_vec(groups->arena)};
  O3_TRY(follow_scores(&self));
  O3_TRY(follow_softmax(&self, &found));
  if (!found) return NULL;
  O3_TRY(follow_rounding(&self));
  o3_dep_node_t *product = user_of(self.at, 0, 1);
  if (ends(&self, product, behind, &count) && is_one_node(&self, product))
    return finish(&self, product, behind, count);
  *stopped = self.stopped;
  *why = self.why;
  return NULL;
}
