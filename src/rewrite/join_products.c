/* join-products: queries, keys and values of an attention are one product.
 *
 * Needs: a normalized module, --precision fp16 or bf16, and a card whose kernel of attention reads heads of
 * that width through strides. Guarantees: where softmax(q k^T ...) v has q, k and v made of one value by
 * constant weights and biases of equal shapes, split into heads and transposed, with no other reader on the
 * way, one product makes all three, and each is a part of its heads:
 *
 *     %q = reshape(add(%bq, matmul(%x, %wq)))           %y = matmul(%x, concat(%wq, %wk, %wv))
 *     %k = reshape(add(%bk, matmul(%x, %wk)))     =>    %h = reshape(add(concat(%bq, %bk, %bv), %y))
 *     %v = reshape(add(%bv, matmul(%x, %wv)))           %q = slice(%h), %k = slice(%h), %v = slice(%h)
 *
 * Three small products fill a card badly: of 128 x 768 x 768 each takes as long as that of 128 x 768 x 2304.
 * The concatenated constants are folded later.
 */
#include "analysis/shape.h"
#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

enum { SOURCES = 3, MAX_STEPS = 8 };

/* One of the three: how its heads are made of |x|. */
typedef struct source {
  MlirOperation heads; /* o3.reshape */
  MlirOperation add, product;
  MlirValue weights, bias, x;
} source_t;

/* The op that makes |value| for one reader alone, when it is a |name|. */
static MlirOperation made_for_one(MlirValue value, const char *name) {
  MlirOperation def = o3_value_def(value);
  bool fits =
      !mlirOperationIsNull(def) && o3_op_is(def, name) && !mlirOperationIsNull(o3_value_single_user(value));
  return fits ? def : (MlirOperation){0};
}

static bool is_constant(MlirValue value, int rank) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_op_is(def, "o3.constant") &&
         o3_type_rank(mlirValueGetType(value)) == rank;
}

/* All sizes are known but perhaps the first, of batches. */
static bool has_known_sizes(MlirType type) {
  for (int i = 1; i < o3_type_rank(type); ++i) {
    if (o3_type_dim(type, i) < 0) return false;
  }
  return true;
}

/* Splits the last dimension of its operand in two: two numbers of batches may be unknown and differ. */
static bool splits_heads(MlirOperation reshape) {
  MlirType from = mlirValueGetType(mlirOperationGetOperand(reshape, 0));
  MlirType to = mlirValueGetType(mlirOperationGetResult(reshape, 0));
  int rank = o3_type_rank(from);
  bool same =
      has_known_sizes(from) && has_known_sizes(to) && o3_type_rank(to) == rank + 1 && rank >= 2 && rank <= 3;
  for (int i = 0; same && i < rank - 1; ++i) same = o3_type_dim(from, i) == o3_type_dim(to, i);
  return same && o3_type_dim(from, rank - 1) == o3_type_dim(to, rank - 1) * o3_type_dim(to, rank);
}

static bool read_source(MlirValue value, source_t *s) {
  MlirOperation transpose;
  while (!mlirOperationIsNull(transpose = made_for_one(value, "o3.transpose")))
    value = mlirOperationGetOperand(transpose, 0);
  s->heads = made_for_one(value, "o3.reshape");
  if (mlirOperationIsNull(s->heads) || !splits_heads(s->heads)) return false;
  s->add = made_for_one(mlirOperationGetOperand(s->heads, 0), "o3.add");
  if (mlirOperationIsNull(s->add)) return false;
  int bias = is_constant(mlirOperationGetOperand(s->add, 0), 1) ? 0 : 1;
  s->bias = mlirOperationGetOperand(s->add, bias);
  s->product = made_for_one(mlirOperationGetOperand(s->add, 1 - bias), "o3.matmul");
  if (mlirOperationIsNull(s->product) || !is_constant(s->bias, 1)) return false;
  s->x = mlirOperationGetOperand(s->product, 0);
  s->weights = mlirOperationGetOperand(s->product, 1);
  return is_constant(s->weights, 2);
}

static bool same_type(MlirValue a, MlirValue b) {
  return mlirTypeEqual(mlirValueGetType(a), mlirValueGetType(b));
}

static bool are_alike(const source_t *a, const source_t *b) {
  return mlirValueEqual(a->x, b->x) && same_type(a->weights, b->weights) && same_type(a->bias, b->bias) &&
         same_type(mlirOperationGetResult(a->heads, 0), mlirOperationGetResult(b->heads, 0)) &&
         o3_type_dim(mlirValueGetType(a->bias), 0) == o3_type_dim(mlirValueGetType(a->weights), 1);
}

/* The product that the softmax' operand is made of, by elementwise ops. */
static MlirOperation scores_of(MlirOperation softmax) {
  MlirValue value = mlirOperationGetOperand(softmax, 0);
  for (int step = 0; step < MAX_STEPS; ++step) {
    MlirOperation def = o3_value_def(value);
    if (mlirOperationIsNull(def) || o3_op_is(def, "o3.matmul")) return def;
    bool follows = o3_op_is(def, "o3.div") || o3_op_is(def, "o3.mul") || o3_op_is(def, "o3.add");
    if (!follows) return (MlirOperation){0};
    value = mlirOperationGetOperand(def, 0);
  }
  return (MlirOperation){0};
}

static bool read_sources(MlirOperation softmax, source_t sources[SOURCES]) {
  MlirValue weights = mlirOperationGetResult(softmax, 0);
  MlirOperation mixed = o3_value_single_user(weights), scores = scores_of(softmax);
  if (mlirOperationIsNull(mixed) || mlirOperationIsNull(scores) || !o3_op_is(mixed, "o3.matmul"))
    return false;
  if (!mlirValueEqual(mlirOperationGetOperand(mixed, 0), weights)) return false;
  const MlirValue values[SOURCES] = {mlirOperationGetOperand(scores, 0), mlirOperationGetOperand(scores, 1),
                                     mlirOperationGetOperand(mixed, 1)};
  for (int i = 0; i < SOURCES; ++i) {
    if (!read_source(values[i], &sources[i]) || !are_alike(&sources[0], &sources[i])) return false;
  }
  return true;
}

/* ---- Joining ---- */

static MlirValue concatenate(o3_builder_t *b, const MlirValue values[SOURCES], int dim) {
  MlirType one = mlirValueGetType(values[0]);
  return o3_build1_attrs(b, "tensor.concat", o3_type_with_dim(one, dim, SOURCES * o3_type_dim(one, dim)),
                         SOURCES, values, O3_ATTRS({"dim", o3_attr_i64(b->context, dim)}));
}

static MlirValue build_heads(o3_builder_t *b, const source_t sources[SOURCES]) {
  MlirValue weights[SOURCES], biases[SOURCES];
  for (int i = 0; i < SOURCES; ++i) weights[i] = sources[i].weights, biases[i] = sources[i].bias;
  MlirType sums = mlirValueGetType(mlirOperationGetResult(sources[0].product, 0));
  MlirType heads = mlirValueGetType(mlirOperationGetResult(sources[0].heads, 0));
  int last = o3_type_rank(sums) - 1;
  MlirType all = o3_type_with_dim(sums, last, SOURCES * o3_type_dim(sums, last));
  MlirValue w = concatenate(b, weights, 1), bias = concatenate(b, biases, 0);
  MlirAttribute sizes =
      o3_sizes_with(o3_op_attr(sources[0].product, "o3.shape"), last, o3_type_dim(all, last));
  MlirValue y =
      o3_build1_attrs(b, "o3.matmul", all, O3_VALUES(sources[0].x, w), O3_ATTRS({"o3.shape", sizes}));
  y = o3_build1_attrs(b, "o3.add", all, O3_VALUES(bias, y), O3_ATTRS({"o3.shape", sizes}));
  int64_t count = SOURCES * o3_type_dim(heads, last);
  return o3_build1_attrs(
      b, "o3.reshape", o3_type_with_dim(heads, last, count), O3_VALUES(y),
      O3_ATTRS({"o3.shape", o3_sizes_with(o3_op_attr(sources[0].heads, "o3.shape"), last, count)}));
}

static MlirValue build_part(o3_builder_t *b, MlirValue all, MlirOperation heads, int part) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(heads, 0));
  int dim = o3_type_rank(type) - 2;
  MlirAffineExpr start = mlirAffineConstantExprGet(b->context, part * o3_type_dim(type, dim));
  MlirAttribute map = mlirAffineMapAttrGet(mlirAffineMapGet(b->context, 0, 0, 1, &start));
  return o3_build1_attrs(b, "o3.slice", type, O3_VALUES(all),
                         O3_ATTRS({"axes", o3_attr_ints(b->context, 1, (int64_t[]){dim})}, {"starts", map},
                                  {"steps", o3_attr_ints(b->context, 1, (int64_t[]){1})},
                                  {"o3.shape", o3_op_attr(heads, "o3.shape")}));
}

/* Readers of one source may stand before the product of another: all are made where the first product stands.
 */
static MlirOperation first_product(const source_t sources[SOURCES]) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirOperationGetBlock(sources[0].product));
  for (;; op = mlirOperationGetNextInBlock(op)) {
    for (int i = 0; i < SOURCES; ++i)
      if (mlirOperationEqual(op, sources[i].product)) return op;
  }
}

/* Others may read the constant, before the products, too. */
static void move_to_front(MlirValue constant) {
  MlirOperation op = o3_value_def(constant), front = mlirBlockGetFirstOperation(mlirOperationGetBlock(op));
  if (!mlirOperationEqual(front, op)) mlirOperationMoveBefore(op, front);
}

static void join(const source_t sources[SOURCES]) {
  for (int i = 0; i < SOURCES; ++i) {
    move_to_front(sources[i].weights);
    move_to_front(sources[i].bias);
  }
  MlirOperation first = first_product(sources);
  o3_builder_t b = o3_builder_before(first);
  MlirValue all = build_heads(&b, sources);
  MlirValue parts[SOURCES];
  for (int i = 0; i < SOURCES; ++i) parts[i] = build_part(&b, all, sources[i].heads, i);
  for (int i = 0; i < SOURCES; ++i) {
    o3_op_replace(sources[i].heads, 1, &parts[i]);
    mlirOperationDestroy(sources[i].add);
    mlirOperationDestroy(sources[i].product);
  }
}

/* Of a head. */
static int64_t width_of(const source_t *s) {
  MlirType heads = mlirValueGetType(mlirOperationGetResult(s->heads, 0));
  return o3_type_dim(heads, o3_type_rank(heads) - 1);
}

static bool are_apart(const source_t sources[SOURCES]) {
  bool apart = true;
  for (int i = 0; i < SOURCES; ++i) {
    for (int k = 0; k < i; ++k) apart &= !mlirOperationEqual(sources[i].product, sources[k].product);
    apart &=
        mlirBlockEqual(mlirOperationGetBlock(sources[i].product), mlirOperationGetBlock(sources[0].product));
  }
  return apart;
}

static o3_status_t collect_softmax(MlirOperation op, void *context) {
  if (!o3_op_is(op, "o3.softmax") || o3_ptr_vec_push(context, op.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

o3_status_t o3_rewrite_join_products(o3_pass_env_t *env, MlirModule module) {
  o3_ptr_vec_t ops = o3_ptr_vec(env->arena);
  bool (*reads)(int64_t width) = env->machine->kernels->reads_attention_parts;
  bool half = env->precision == O3_PRECISION_FP16 || env->precision == O3_PRECISION_BF16;
  if (!half || !reads) return NULL;
  O3_TRY(o3_walk(mlirModuleGetOperation(module), collect_softmax, &ops));
  for (size_t i = 0; i < ops.count; ++i) {
    source_t sources[SOURCES];
    bool joins = read_sources((MlirOperation){ops.items[i]}, sources) && are_apart(sources);
    if (joins && reads(width_of(&sources[0]))) join(sources);
  }
  return NULL;
}
