/* An element of an integer tensor is followed to the positions that it is a sum of, across the ops that made
 * it. The mask itself stays: who knows what it is need not read it. */
#include "fuse/mark_causal.h"

#include "analysis/dependence.h"

/* constant + factors * positions of the tensor, or loops of an op. */
typedef struct sum {
  int64_t constant, factors[O3_IR_MAX_RANK];
} sum_t;

static bool sum_of_tensor(MlirValue tensor, int depth, sum_t *sum);

static void add(sum_t *a, const sum_t *b, int64_t times) {
  a->constant += times * b->constant;
  for (int i = 0; i < O3_IR_MAX_RANK; ++i) a->factors[i] += times * b->factors[i];
}

/* Positions of a tensor become the loops that |map| says. */
static bool through_map(MlirAffineMap map, const sum_t *positions, sum_t *loops) {
  *loops = (sum_t){.constant = positions->constant};
  for (int i = 0; i < (int)mlirAffineMapGetNumResults(map); ++i) {
    int loop = o3_dep_loop(map, i);
    if (positions->factors[i] && loop < 0 && !mlirAffineExprIsAConstant(mlirAffineMapGetResult(map, i)))
      return false; /* a constant position is 0, of a dimension of size 1 */
    if (loop >= 0) loops->factors[loop] += positions->factors[i];
  }
  return true;
}

static bool constant_of(MlirOperation op, int64_t *value) {
  MlirAttribute attr = o3_op_attr(op, "value");
  bool splat = mlirAttributeIsADenseElements(attr) && mlirDenseElementsAttrIsSplat(attr);
  if (splat) attr = mlirDenseElementsAttrGetSplatValue(attr);
  if (!mlirAttributeIsAInteger(attr)) return false;
  *value = mlirIntegerAttrGetValueInt(attr);
  return true;
}

static bool sum_of_op(const o3_dep_generic_t *generic, MlirOperation op, int depth, sum_t *sum);

/* A value in the body of |generic|, in its loops. */
static bool sum_of_value(const o3_dep_generic_t *generic, MlirValue value, int depth, sum_t *sum) {
  MlirOperation def = o3_value_def(value);
  *sum = (sum_t){0};
  if (depth == 0) return false;
  if (!mlirOperationIsNull(def)) return sum_of_op(generic, def, depth - 1, sum);
  int operand = (int)mlirBlockArgumentGetArgNumber(value);
  sum_t positions;
  return mlirBlockEqual(mlirBlockArgumentGetOwner(value), generic->body) && operand < generic->num_inputs &&
         sum_of_tensor(mlirOperationGetOperand(generic->op, operand), depth - 1, &positions) &&
         through_map(generic->maps[operand], &positions, sum);
}

static bool sum_of_op(const o3_dep_generic_t *generic, MlirOperation op, int depth, sum_t *sum) {
  sum_t a, b;
  bool adds = o3_op_is(op, "arith.addi"), subtracts = o3_op_is(op, "arith.subi");
  if (o3_op_is(op, "arith.constant")) return constant_of(op, &sum->constant);
  if (o3_op_is(op, "linalg.index")) {
    sum->factors[o3_op_int(op, "dim", 0)] = 1;
    return true;
  }
  if (o3_op_is(op, "arith.index_cast") || o3_op_is(op, "arith.extsi"))
    return sum_of_value(generic, mlirOperationGetOperand(op, 0), depth, sum);
  if ((!adds && !subtracts) || !sum_of_value(generic, mlirOperationGetOperand(op, 0), depth, &a) ||
      !sum_of_value(generic, mlirOperationGetOperand(op, 1), depth, &b))
    return false;
  add(sum, &a, 1);
  add(sum, &b, adds ? 1 : -1);
  return true;
}

/* What a map yields, in the loops that its result's positions are. */
static bool read_map(MlirValue tensor, o3_dep_generic_t *generic, MlirValue *yielded) {
  MlirOperation def = o3_value_def(tensor);
  if (mlirOperationIsNull(def) || !o3_dep_generic_read(def, generic)) return false;
  o3_dep_kind_t kind = o3_dep_generic_kind(generic);
  *yielded = mlirOperationGetOperand(mlirBlockGetTerminator(generic->body), 0);
  return (kind == O3_DEP_MAP || kind == O3_DEP_FILL) && mlirAffineMapIsIdentity(o3_dep_result_map(generic));
}

static bool sum_of_tensor(MlirValue tensor, int depth, sum_t *sum) {
  o3_dep_generic_t generic;
  MlirValue yielded;
  MlirOperation def = o3_value_def(tensor);
  *sum = (sum_t){0};
  if (!mlirOperationIsNull(def) && o3_op_is(def, "arith.constant")) return constant_of(def, &sum->constant);
  return read_map(tensor, &generic, &yielded) && sum_of_value(&generic, yielded, depth, sum);
}

/* For each predicate of integers: how often it has left - right, and what it has more than that, in
 * "the sum is not negative". */
static const struct {
  int left, more;
} SIGNED[] = {{0, 0}, {0, 0}, {-1, -1}, {-1, 0}, {1, -1}, {1, 0}}; /* eq, ne, slt, sle, sgt, sge */

/* The sum that is not negative where |mask| is true. */
static bool read_comparison(MlirValue mask, sum_t *sum) {
  enum { MAX_DEPTH = 8, PREDICATES = sizeof(SIGNED) / sizeof(SIGNED[0]) };
  o3_dep_generic_t generic;
  MlirValue yielded;
  sum_t left, right;
  if (!read_map(mask, &generic, &yielded)) return false;
  MlirOperation op = o3_value_def(yielded);
  if (mlirOperationIsNull(op) || !o3_op_is(op, "arith.cmpi")) return false;
  int64_t predicate = o3_op_int(op, "predicate", 0);
  if (predicate >= PREDICATES || SIGNED[predicate].left == 0 ||
      !sum_of_value(&generic, mlirOperationGetOperand(op, 0), MAX_DEPTH, &left) ||
      !sum_of_value(&generic, mlirOperationGetOperand(op, 1), MAX_DEPTH, &right))
    return false;
  *sum = (sum_t){.constant = SIGNED[predicate].more};
  add(sum, &left, SIGNED[predicate].left);
  add(sum, &right, -SIGNED[predicate].left);
  return true;
}

/* The positions of rows and columns when the sum is row - column. */
static bool is_diagonal(const sum_t *sum, int64_t *row, int64_t *column) {
  *row = *column = -1;
  if (sum->constant != 0) return false;
  for (int i = 0; i < O3_IR_MAX_RANK; ++i) {
    int64_t factor = sum->factors[i], *place = factor > 0 ? row : column;
    if (factor == 0) continue;
    if (factor * factor != 1 || *place >= 0) return false;
    *place = i;
  }
  return *row >= 0 && *column >= 0;
}

/* The only input of i1. */
static bool find_mask(const o3_dep_generic_t *generic, MlirValue *mask) {
  int count = 0;
  for (int i = 0; i < generic->num_inputs; ++i) {
    MlirValue input = mlirOperationGetOperand(generic->op, i);
    if (!o3_type_is_bool(o3_type_element(mlirValueGetType(input)))) continue;
    *mask = input;
    ++count;
  }
  return count == 1;
}

static void mark(const o3_dep_generic_t *generic) {
  MlirValue mask;
  sum_t sum;
  int64_t places[2];
  if (!find_mask(generic, &mask) || !read_comparison(mask, &sum) ||
      !is_diagonal(&sum, &places[0], &places[1]))
    return;
  o3_op_attr_set(generic->op, O3_UP_TO_DIAGONAL,
                 o3_attr_ints(mlirOperationGetContext(generic->op), 2, places));
}

void o3_fuse_mark_causal(MlirBlock block) {
  MlirOperation op = mlirBlockGetFirstOperation(block);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    o3_dep_generic_t generic;
    if (o3_dep_generic_read(op, &generic) && o3_dep_generic_kind(&generic) == O3_DEP_MAP) mark(&generic);
  }
}
