/* A product's operand may lie in memory in any order: strides cost nothing beside the sums, and packing a
 * right operand that runs along the sum is as much work as the copy that a transposition is. Only what the
 * inner loops walk one by one has to stay contiguous. The rest of the road is asked by its own rule,
 * refuse_contraction: a product that it would not take any more stays as it was. */
#include "fuse/fold_transposes.h"

#include "fuse/rebuild.h"

typedef struct folder {
  o3_arena_t *arena;
  const o3_machine_t *machine;
} folder_t;

/* ---- Transpositions ---- */

/* Each position is a loop of its own. */
static bool is_injective(MlirAffineMap map) {
  int count = (int)mlirAffineMapGetNumResults(map);
  for (int i = 0; i < count; ++i) {
    int loop = o3_dep_loop(map, i);
    if (loop < 0 || o3_dep_position(map, loop) != i) return false;
  }
  return true;
}

static bool is_permutation(MlirAffineMap map, int loops) {
  return (int)mlirAffineMapGetNumResults(map) == loops && is_injective(map);
}

/* Each position is a loop of its own, or the only place of a dimension of one. */
static bool reads_apart(MlirAffineMap map) {
  int count = (int)mlirAffineMapGetNumResults(map);
  for (int i = 0; i < count; ++i) {
    MlirAffineExpr expr = mlirAffineMapGetResult(map, i);
    int loop = o3_dep_loop(map, i);
    bool place = loop < 0 && mlirAffineExprIsAConstant(expr) && mlirAffineConstantExprGetValue(expr) == 0;
    if (!place && (loop < 0 || o3_dep_position(map, loop) != i)) return false;
  }
  return true;
}

/* A copy in another order of dimensions, perhaps with further ones along which it repeats. */
static bool read_copy(MlirOperation op, o3_dep_generic_t *copy) {
  if (mlirOperationIsNull(op) || !o3_dep_generic_read(op, copy)) return false;
  if (copy->num_inputs != 1 || o3_dep_generic_kind(copy) != O3_DEP_MAP) return false;
  MlirOperation first = mlirBlockGetFirstOperation(copy->body);
  bool copies = mlirOperationEqual(first, mlirBlockGetTerminator(copy->body)) &&
                mlirValueEqual(mlirOperationGetOperand(first, 0), mlirBlockGetArgument(copy->body, 0));
  return copies && reads_apart(copy->maps[0]) && is_permutation(o3_dep_result_map(copy), copy->num_dims);
}

static bool read_transposition(MlirOperation op, o3_dep_generic_t *copy) {
  return read_copy(op, copy) && is_permutation(copy->maps[0], copy->num_dims);
}

static MlirAffineMap compose(MlirAffineMap outer, MlirAffineMap inner, MlirContext context) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK];
  int count = (int)mlirAffineMapGetNumResults(outer);
  for (int i = 0; i < count; ++i) exprs[i] = mlirAffineExprCompose(mlirAffineMapGetResult(outer, i), inner);
  return mlirAffineMapGet(context, mlirAffineMapGetNumDims(inner), 0, count, exprs);
}

/* The loops of |from| as the loops of |to| that name the same positions: from's map composed with it is to's.
 */
static MlirAffineMap loops_of(MlirAffineMap from, MlirAffineMap to, MlirContext context) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK];
  int count = (int)mlirAffineMapGetNumResults(from);
  for (int i = 0; i < count; ++i) exprs[o3_dep_loop(from, i)] = mlirAffineMapGetResult(to, i);
  return mlirAffineMapGet(context, mlirAffineMapGetNumDims(to), 0, count, exprs);
}

/* ---- Names ---- */

static void add_name(MlirOperation op, MlirOperation product, MlirOperation copy, const char *attr) {
  MlirContext context = mlirOperationGetContext(op);
  MlirAttribute names[O3_IR_MAX_RANK], old = o3_op_attr(product, attr);
  intptr_t count = mlirAttributeIsNull(old) ? 0 : mlirArrayAttrGetNumElements(old);
  for (intptr_t i = 0; i < count; ++i) names[i] = mlirArrayAttrGetElement(old, i);
  if (count < O3_IR_MAX_RANK) names[count++] = mlirStringAttrGet(context, o3_op_label(copy));
  o3_op_attr_set(op, attr, mlirArrayAttrGet(context, count, names));
}

static void keep_names(MlirOperation op, MlirOperation product, const char *attr) {
  MlirAttribute old = o3_op_attr(product, attr);
  if (!mlirAttributeIsNull(old)) o3_op_attr_set(op, attr, old);
}

/* ---- The product ---- */

static bool takes(const folder_t *self, MlirOperation op) {
  return !self->machine->kernels->refuse_contraction(op);
}

/* The product with other inputs or another result, before the old one. */
static o3_status_t build_product(const folder_t *self, const o3_dep_generic_t *product, o3_rebuild_t *r,
                                 MlirOperation *op) {
  MlirValue args[O3_DEP_MAX_OPERANDS], value;
  O3_TRY(o3_rebuild_begin(r, self->arena));
  for (int i = 0; i <= product->num_inputs; ++i) args[i] = mlirBlockGetArgument(r->block, i);
  O3_TRY(o3_rebuild_clone(r, product->body, args, NULL, &value));
  *op = o3_rebuild_build(r, value, o3_op_attr(product->op, "iterator_types"));
  return NULL;
}

static o3_rebuild_t same_product(const o3_dep_generic_t *product) {
  o3_rebuild_t r = {.like = product,
                    .num_inputs = product->num_inputs,
                    .out = mlirOperationGetOperand(product->op, product->num_inputs),
                    .out_map = o3_dep_result_map(product)};
  for (int i = 0; i < product->num_inputs; ++i) {
    r.inputs[i] = mlirOperationGetOperand(product->op, i);
    r.maps[i] = product->maps[i];
  }
  return r;
}

static int last_loop(MlirAffineMap map) {
  int count = (int)mlirAffineMapGetNumResults(map);
  return count ? o3_dep_loop(map, count - 1) : -1;
}

/* The operand with the result's columns may run along them or along the sum, the other along the sum. */
static bool stays_contiguous(const o3_dep_generic_t *product, int input, MlirAffineMap map) {
  int last = last_loop(map), columns = last_loop(o3_dep_result_map(product));
  if (last < 0 || columns < 0) return false;
  return product->reduction[last] || (last == columns && o3_dep_uses(product->maps[input], columns));
}

/* ---- Operands ---- */

/* One transposition; |folded| tells whether it was one that could be. */
static o3_status_t read_through(const folder_t *self, MlirOperation *op, int input, bool *folded) {
  o3_dep_generic_t product, copy;
  MlirContext context = mlirOperationGetContext(*op);
  MlirOperation def = o3_value_def(mlirOperationGetOperand(*op, input)), built;
  *folded = false;
  if (!o3_dep_generic_read(*op, &product) || !read_copy(def, &copy)) return NULL;
  MlirAffineMap loops = loops_of(o3_dep_result_map(&copy), product.maps[input], context);
  MlirAffineMap map = compose(copy.maps[0], loops, context);
  if (!stays_contiguous(&product, input, map)) return NULL;
  o3_rebuild_t r = same_product(&product);
  r.inputs[input] = mlirOperationGetOperand(def, 0);
  r.maps[input] = map;
  if (!o3_rebuild_knows_loops(&r)) return NULL;
  O3_TRY(build_product(self, &product, &r, &built));
  if (!takes(self, built)) {
    mlirOperationDestroy(built);
    return NULL;
  }
  add_name(built, *op, def, O3_READS_TRANSPOSED);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(*op, 0), mlirOperationGetResult(built, 0));
  mlirOperationDestroy(*op);
  *op = built;
  *folded = true;
  return NULL;
}

/* ---- The result ---- */

static MlirOperation only_user(MlirOperation op) {
  MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, 0));
  bool only = !mlirOpOperandIsNull(use) && mlirOpOperandIsNull(mlirOpOperandGetNextUse(use));
  return only ? mlirOpOperandGetOwner(use) : (MlirOperation){0};
}

/* A fill of |out| with what fills the tensor of |fill|; made before |before|. */
static o3_status_t build_fill(const folder_t *self, const o3_dep_generic_t *fill, MlirValue out,
                              MlirAffineMap map, MlirOperation before, MlirValue *result) {
  o3_rebuild_t r = {.like = fill, .out = out, .out_map = map};
  MlirValue args[O3_DEP_MAX_OPERANDS] = {{0}}, value;
  O3_TRY(o3_rebuild_begin(&r, self->arena));
  O3_TRY(o3_rebuild_clone(&r, fill->body, args, NULL, &value));
  MlirOperation op = o3_rebuild_build(&r, value, o3_op_attr(fill->op, "iterator_types"));
  mlirOperationMoveBefore(op, before);
  *result = mlirOperationGetResult(op, 0);
  return NULL;
}

static o3_status_t write_through(const folder_t *self, MlirOperation op) {
  o3_dep_generic_t product, copy, fill;
  MlirOperation user = only_user(op), built;
  if (!read_transposition(user, &copy) ||
      !mlirBlockEqual(mlirOperationGetBlock(user), mlirOperationGetBlock(op)) ||
      !o3_dep_generic_read(op, &product))
    return NULL;
  MlirValue old = mlirOperationGetOperand(op, product.num_inputs), out = mlirOperationGetOperand(user, 1);
  MlirOperation start = o3_value_def(old);
  bool fills = !mlirOperationIsNull(start) && o3_dep_generic_read(start, &fill) &&
               o3_dep_generic_kind(&fill) == O3_DEP_FILL;
  if (!fills) return NULL;
  MlirContext context = mlirOperationGetContext(op);
  MlirAffineMap loops = loops_of(copy.maps[0], o3_dep_result_map(&product), context);
  o3_rebuild_t r = same_product(&product);
  r.out_map = compose(o3_dep_result_map(&copy), loops, context);
  if (last_loop(r.out_map) != last_loop(o3_dep_result_map(&product))) return NULL;
  O3_TRY(build_fill(self, &fill, out, o3_dep_result_map(&fill), user, &r.out));
  mlirOperationMoveBefore(op, user); /* its operands are made before it, the new initial value later */
  O3_TRY(build_product(self, &product, &r, &built));
  if (!takes(self, built)) {
    mlirOperationDestroy(built);
    return NULL;
  }
  keep_names(built, op, O3_READS_TRANSPOSED);
  add_name(built, op, user, O3_WRITES_TRANSPOSED);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(user, 0), mlirOperationGetResult(built, 0));
  mlirOperationDestroy(user);
  mlirOperationDestroy(op);
  return NULL;
}

/* ---- All ---- */

static o3_status_t fold_around(const folder_t *self, MlirOperation op) {
  o3_dep_generic_t product;
  bool fits = o3_dep_generic_read(op, &product) && o3_dep_generic_kind(&product) == O3_DEP_CONTRACTION &&
              product.num_inputs == 2; /* sparse ones read their operands in the body */
  if (!fits || !takes(self, op)) return NULL;
  for (int i = 0; i < 2; ++i) {
    bool folded = true;
    while (folded) O3_TRY(read_through(self, &op, i, &folded));
  }
  return write_through(self, op);
}

o3_status_t o3_fuse_fold_transposes(o3_arena_t *arena, MlirBlock block, const o3_machine_t *machine) {
  const folder_t self = {arena, machine};
  o3_ptr_vec_t ops = o3_ptr_vec(arena);
  MlirOperation op = mlirBlockGetFirstOperation(block);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    o3_dep_generic_t generic;
    bool product = o3_dep_generic_read(op, &generic) && o3_dep_generic_kind(&generic) == O3_DEP_CONTRACTION;
    if (product && !o3_ptr_vec_push(&ops, op.ptr))
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  for (size_t i = 0; i < ops.count; ++i) O3_TRY(fold_around(&self, (MlirOperation){ops.items[i]}));
  return NULL;
}
