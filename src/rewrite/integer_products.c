/* integer-products: products and convolutions of 8-bit integers are computed in f32, exactly.
 *
 *     %a = "o3.sub"("o3.cast"(%x) : i32, %z)          %a = "o3.sub"("o3.cast"(%x) : f32, %z)
 *     %y = "o3.matmul"(%a, %w) : i32            =>    %y = "o3.matmul"(%a, "o3.cast"(%w)) : f32
 *     %r = "o3.cast"(%y) : f32                        %r = %y
 *
 * That is how MatMulInteger, ConvInteger and the QLinear ops come in; zero points are 8-bit integers. A sum
 * of integers is exact in f32 in whatever order it is taken while the sum of their absolute values is at most
 * 2^24. Of constant weights each column's sum is known; a sum that may be larger is taken in parts, which are
 * added in i32.
 *
 * Needs: a CPU, constants not folded yet. Guarantees: results are those of the integers, bit for bit.
 * Convolutions have o3.exact, for Winograd's transforms would round. Weights are made f32 by the compiler,
 * four times as large.
 */
#include <string.h>

#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

enum { EXACT_SUM = 1 << 24, MAX_PARTS = 16 };

/* |codes|, 8-bit integers, less |zero|, which is null for none. |difference|: the op that subtracts. */
typedef struct factor {
  MlirValue codes, zero;
  MlirOperation difference;
} factor_t;

/* The right factor as outer x depth x inner numbers, |depth| those of one sum; |joined|: with the inner ones.
 */
typedef struct weights {
  const uint8_t *data; /* NULL where they are not known */
  bool is_signed, joined;
  int zero_low, zero_high; /* extremes of the zero points */
  int top;                 /* the greatest absolute value, if nothing else is known */
  int64_t outer, depth, inner;
} weights_t;

typedef struct product {
  MlirOperation op;
  factor_t left, right;
  weights_t weights;
  int left_axis, right_axis; /* of what is summed over */
  bool convolution;
  int64_t *sums; /* |inner| */
} product_t;

/* ---- Reading ---- */

static MlirType element_of(MlirValue value) { return o3_type_element(mlirValueGetType(value)); }

static bool is_bytes(MlirValue value) {
  MlirType element = element_of(value);
  return o3_type_is_integer(element) && !o3_type_is_bool(element) && o3_type_bits(element) == 8;
}

static bool is_byte_signed(MlirValue value) { return !o3_type_is_unsigned(element_of(value)); }

/* The 8-bit integers that |value| is cast from; null when it is cast from none. */
static MlirValue bytes_before(MlirValue value) {
  MlirOperation cast = o3_value_def(value);
  if (mlirOperationIsNull(cast) || !o3_op_is(cast, "o3.cast")) return (MlirValue){0};
  MlirValue from = mlirOperationGetOperand(cast, 0);
  return is_bytes(from) ? from : (MlirValue){0};
}

static bool same_shape(MlirValue x, MlirValue y) {
  MlirType type = o3_type_with_element(mlirValueGetType(x), element_of(y));
  return mlirTypeEqual(type, mlirValueGetType(y));
}

static bool is_i32(MlirValue value) {
  MlirType element = element_of(value);
  return o3_type_is_integer(element) && o3_type_bits(element) == 32 && !o3_type_is_unsigned(element);
}

/* A difference lies within 255 of zero where both have one type, and has the codes' shape where zero points
 * are no larger. */
static bool read_factor(MlirValue value, factor_t *factor) {
  *factor = (factor_t){.codes = value};
  if (is_bytes(value)) return true;
  MlirOperation sub = o3_value_def(value);
  if (mlirOperationIsNull(sub) || !o3_op_is(sub, "o3.sub") || !is_i32(value)) return false;
  *factor = (factor_t){bytes_before(mlirOperationGetOperand(sub, 0)),
                       bytes_before(mlirOperationGetOperand(sub, 1)), sub};
  if (mlirValueIsNull(factor->codes) || mlirValueIsNull(factor->zero)) return false;
  return mlirTypeEqual(element_of(factor->codes), element_of(factor->zero)) &&
         same_shape(factor->codes, value);
}

static int greatest(const factor_t *factor) {
  bool plain_signed = mlirValueIsNull(factor->zero) && is_byte_signed(factor->codes);
  return plain_signed ? 128 : 255;
}

/* The data of a constant, reshaped or not; NULL when it is none. */
static const uint8_t *constant_bytes(o3_pass_env_t *env, MlirValue value, size_t *count) {
  MlirOperation def = o3_value_def(value);
  while (!mlirOperationIsNull(def) && o3_op_is(def, "o3.reshape"))
    def = o3_value_def(mlirOperationGetOperand(def, 0));
  if (mlirOperationIsNull(def) || !o3_op_is(def, "o3.constant")) return NULL;
  return o3_weights_data(env->weights, o3_op_attr(def, "value"), count);
}

static int byte_at(const uint8_t *data, bool is_signed, size_t i) {
  return is_signed ? (int8_t)data[i] : data[i];
}

static bool read_zeros(o3_pass_env_t *env, const factor_t *factor, weights_t *w) {
  size_t count = 0;
  if (mlirValueIsNull(factor->zero)) return true;
  const uint8_t *data = constant_bytes(env, factor->zero, &count);
  if (!data || count == 0) return false;
  bool is_signed = is_byte_signed(factor->zero);
  w->zero_low = w->zero_high = byte_at(data, is_signed, 0);
  for (size_t i = 1; i < count; ++i) {
    int zero = byte_at(data, is_signed, i);
    if (zero < w->zero_low) w->zero_low = zero;
    if (zero > w->zero_high) w->zero_high = zero;
  }
  return true;
}

static void read_weights(o3_pass_env_t *env, product_t *p) {
  MlirType type = mlirValueGetType(p->right.codes);
  size_t bytes = 0;
  weights_t *w = &p->weights;
  *w = (weights_t){.is_signed = is_byte_signed(p->right.codes),
                   .joined = p->convolution,
                   .top = greatest(&p->right),
                   .outer = 1,
                   .depth = o3_type_dim(type, p->right_axis),
                   .inner = 1};
  for (int i = p->right_axis + 1; i < o3_type_rank(type); ++i) w->inner *= o3_type_dim(type, i);
  const uint8_t *data = constant_bytes(env, p->right.codes, &bytes);
  if (!data || !read_zeros(env, &p->right, w)) return;
  for (int i = 0; i < p->right_axis; ++i) w->outer *= o3_type_dim(type, i);
  w->data = data;
}

static bool read_product(o3_pass_env_t *env, MlirOperation op, product_t *p) {
  *p = (product_t){.op = op, .convolution = o3_op_is(op, "o3.conv")};
  if (!is_i32(mlirOperationGetResult(op, 0)) || !read_factor(mlirOperationGetOperand(op, 0), &p->left) ||
      !read_factor(mlirOperationGetOperand(op, 1), &p->right))
    return false;
  MlirType left = mlirValueGetType(p->left.codes), right = mlirValueGetType(p->right.codes);
  p->left_axis = p->convolution ? 1 : o3_type_rank(left) - 1;
  p->right_axis = p->convolution ? 1 : o3_type_rank(right) < 2 ? 0 : o3_type_rank(right) - 2;
  for (int i = p->right_axis; i < o3_type_rank(right); ++i) {
    if (o3_type_dim(right, i) <= 0 && (i == p->right_axis || p->convolution)) return false;
  }
  read_weights(env, p);
  return true;
}

/* ---- How large a sum may be ---- */

/* Of absolute values of weights, for those |from| to |to| of a sum. */
static int64_t greatest_sum(const product_t *p, int64_t from, int64_t to) {
  const weights_t *w = &p->weights;
  int64_t greatest = 0, columns = w->joined ? 1 : w->inner;
  if (!w->data) return (to - from) * (w->joined ? w->inner : 1) * w->top;
  for (int64_t o = 0; o < w->outer; ++o) {
    memset(p->sums, 0, (size_t)columns * sizeof(*p->sums));
    for (int64_t k = from; k < to; ++k) {
      const uint8_t *row = w->data + (o * w->depth + k) * w->inner;
      for (int64_t i = 0; i < w->inner; ++i) {
        int value = byte_at(row, w->is_signed, (size_t)i), low = value - w->zero_high,
            high = value - w->zero_low;
        p->sums[w->joined ? 0 : i] += -low > high ? -low : high;
      }
    }
    for (int64_t i = 0; i < columns; ++i) greatest = p->sums[i] > greatest ? p->sums[i] : greatest;
  }
  return greatest;
}

/* How many entries a part of the sum has; 0 when there would be too many parts. */
static int64_t part_size(const product_t *p) {
  int64_t depth = p->weights.depth;
  for (int64_t parts = 1; parts <= MAX_PARTS && parts <= depth; ++parts) {
    int64_t size = (depth + parts - 1) / parts;
    bool fits = true;
    for (int64_t from = 0; from < depth && fits; from += size) {
      int64_t to = from + size < depth ? from + size : depth;
      fits = greatest_sum(p, from, to) <= EXACT_SUM / greatest(&p->left);
    }
    if (fits) return size;
  }
  return 0;
}

/* ---- Building ---- */

/* In f32: constants are worth it, though they grow. */
static MlirValue floats(o3_builder_t *b, MlirValue bytes) {
  MlirValue wide = o3_value_cast(b, bytes, mlirF32TypeGet(b->context));
  o3_op_attr_set(o3_value_def(wide), "o3.fold", mlirUnitAttrGet(b->context));
  return wide;
}

static MlirValue build_factor(o3_builder_t *b, const factor_t *factor) {
  MlirValue wide = floats(b, factor->codes);
  if (mlirValueIsNull(factor->zero)) return wide;
  MlirType type = mlirValueGetType(mlirOperationGetResult(factor->difference, 0));
  return o3_build1_attrs(b, "o3.sub", o3_type_with_element(type, mlirF32TypeGet(b->context)),
                         O3_VALUES(wide, floats(b, factor->zero)),
                         O3_ATTRS({"o3.shape", o3_op_attr(factor->difference, "o3.shape")}));
}

/* A part's |count| entries of |value|, from |from| on; all where there is one part. */
static MlirValue part_of(o3_builder_t *b, const product_t *p, MlirValue value, int axis, int64_t from,
                         int64_t count) {
  return count == p->weights.depth ? value : o3_value_slice(b, value, axis, from, count);
}

/* The product of two factors in f32, for all that the original says of it but its bias. */
static MlirValue build_part(o3_builder_t *b, const product_t *p, MlirValue left, MlirValue right) {
  MlirOperation made = mlirOperationClone(p->op);
  const MlirValue operands[2] = {left, right};
  MlirValue y = mlirOperationGetResult(made, 0);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(p->op), p->op, made);
  mlirOperationSetOperands(made, 2, operands);
  mlirOperationRemoveAttributeByName(made, O3_STR("acc"));
  if (p->convolution) o3_op_attr_set(made, "o3.exact", mlirBoolAttrGet(b->context, true));
  mlirValueSetType(y, o3_type_with_element(mlirValueGetType(y), mlirF32TypeGet(b->context)));
  return y;
}

static MlirValue added(o3_builder_t *b, const product_t *p, MlirValue x, MlirValue y) {
  return o3_build1_attrs(b, "o3.add", mlirValueGetType(x), O3_VALUES(x, y),
                         O3_ATTRS({"o3.shape", o3_op_attr(p->op, "o3.shape")}));
}

/* A convolution's bias, along the channels. */
static MlirValue with_bias(o3_builder_t *b, const product_t *p, MlirValue sum) {
  MlirValue bias = mlirOperationGetOperand(p->op, 2);
  MlirType type = mlirValueGetType(bias);
  int rank = o3_type_rank(mlirValueGetType(sum));
  int64_t sizes[O3_IR_MAX_RANK] = {o3_type_dim(type, 0)};
  for (int i = 1; i < rank - 1; ++i) sizes[i] = 1;
  MlirType column = o3_tensor_type(rank - 1, sizes, o3_type_element(type));
  return added(b, p, sum, o3_build1(b, "o3.reshape", column, O3_VALUES(bias)));
}

/* Casts of |integers| to f32 are what these were cast from. */
static void drop_casts(MlirValue integers, MlirValue exact) {
  MlirOpOperand use = mlirValueGetFirstUse(integers);
  while (!mlirOpOperandIsNull(use)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    use = mlirOpOperandGetNextUse(use);
    if (o3_op_is(user, "o3.cast") && mlirTypeIsAF32(element_of(mlirOperationGetResult(user, 0))))
      o3_op_replace(user, 1, &exact);
  }
}

static void rewrite(const product_t *p, int64_t size) {
  o3_builder_t builder = o3_builder_before(p->op), *b = &builder;
  MlirType i32 = element_of(mlirOperationGetResult(p->op, 0));
  MlirValue left = build_factor(b, &p->left), right = build_factor(b, &p->right), sum = {0}, part = {0};
  int64_t depth = p->weights.depth;
  for (int64_t from = 0; from < depth; from += size) {
    int64_t count = from + size < depth ? size : depth - from;
    part = build_part(b, p, part_of(b, p, left, p->left_axis, from, count),
                      part_of(b, p, right, p->right_axis, from, count));
    MlirValue integers = o3_value_cast(b, part, i32);
    sum = from ? added(b, p, sum, integers) : integers;
  }
  bool has_bias = mlirOperationGetNumOperands(p->op) > 2;
  if (has_bias) sum = with_bias(b, p, sum);
  o3_op_replace(p->op, 1, &sum);
  if (size == depth && !has_bias) drop_casts(sum, part);
}

static o3_status_t collect(MlirOperation op, void *products) {
  bool product = o3_op_is(op, "o3.matmul") || o3_op_is(op, "o3.conv");
  if (!product || o3_ptr_vec_push(products, op.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static o3_status_t visit(o3_pass_env_t *env, MlirOperation op) {
  product_t p;
  if (!read_product(env, op, &p)) return NULL;
  p.sums = O3_ARENA_ARRAY(env->arena, int64_t, (size_t)p.weights.inner + 1);
  O3_TRY_ALLOC(p.sums);
  int64_t size = part_size(&p);
  bool whole = size == p.weights.depth, grouped = p.convolution && o3_op_int(op, "group", 1) > 1;
  if (whole || (size && !grouped)) rewrite(&p, size);
  return NULL;
}

o3_status_t o3_rewrite_integer_products(o3_pass_env_t *env, MlirModule module) {
  o3_ptr_vec_t products = o3_ptr_vec(env->arena);
  if (env->machine->gpu) return NULL;
  O3_TRY(o3_walk(mlirModuleGetOperation(module), collect, &products));
  for (size_t i = 0; i < products.count; ++i) O3_TRY(visit(env, (MlirOperation){products.items[i]}));
  return NULL;
}
