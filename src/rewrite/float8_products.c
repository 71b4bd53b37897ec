/* float8-products: products of dequantised 8-bit floats multiply these themselves.
 *
 *     %a = "o3.mul"("o3.cast"(%qa) : f32, %sa)        %p = "o3.matmul_columns"(%qa, %t) {acc = f32}
 *     %b = "o3.mul"("o3.cast"(%qb) : f32, %sb)   =>   %y = "o3.mul"("o3.mul"(%p, %sa), %sb)
 *     %y = "o3.matmul"(%a, %b)                        with %t = "o3.transpose"(%qb)
 *
 * That is how DequantizeLinear comes in. Scales must not depend on what is summed over: they are of the
 * tensor, of the rows of A, or of the columns of B. Casts of the dequantised values and a transposition of
 * B's may follow.
 *
 * Needs: a card, static sizes, dequantised constants not folded yet. Guarantees: where the target has a
 * kernel for products of 8-bit floats and takes this one, they stay what they are, B by columns; elsewhere
 * they are multiplied in f16, which holds all four formats exactly. Either is closer to the exact result than
 * rounding the dequantised values was. --explain says which it is, and why.
 */
#include "rewrite/layout.h"
#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

/* A factor: |codes| times |scale|, both transposed. |scale| is null for none. */
typedef struct factor {
  MlirValue codes, scale;
  bool transposed;
} factor_t;

/* ---- Reading ---- */

static MlirType element_of(MlirValue value) { return o3_type_element(mlirValueGetType(value)); }

/* The op that makes |value|, when it is a |name|. */
static MlirOperation made_by(MlirValue value, const char *name) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_op_is(def, name) ? def : (MlirOperation){0};
}

/* |value| before casts between other floats. */
static MlirValue before_casts(MlirValue value) {
  MlirOperation cast = made_by(value, "o3.cast");
  if (mlirOperationIsNull(cast)) return value;
  MlirValue from = mlirOperationGetOperand(cast, 0);
  bool wide = o3_type_is_float(element_of(from)) && !o3_type_float8(element_of(from)) &&
              o3_type_is_float(element_of(value));
  return wide ? before_casts(from) : value;
}

static bool swaps(MlirOperation transpose) {
  int64_t perm[O3_IR_MAX_RANK];
  return o3_op_ints(transpose, "perm", perm, O3_IR_MAX_RANK) == 2 && perm[0] == 1 && perm[1] == 0;
}

/* The codes that |value| is cast from; null when it is none of a dequantisation. */
static MlirValue codes_of(MlirValue value) {
  MlirOperation cast = made_by(value, "o3.cast");
  if (mlirOperationIsNull(cast)) return (MlirValue){0};
  MlirValue codes = mlirOperationGetOperand(cast, 0);
  return o3_type_float8(element_of(codes)) ? codes : (MlirValue){0};
}

static bool read_factor(MlirValue value, factor_t *factor) {
  *factor = (factor_t){0};
  value = before_casts(value);
  MlirOperation transpose = made_by(value, "o3.transpose");
  if (!mlirOperationIsNull(transpose) && swaps(transpose)) {
    factor->transposed = true;
    value = before_casts(mlirOperationGetOperand(transpose, 0));
  }
  MlirOperation mul = made_by(value, "o3.mul");
  factor->codes = codes_of(value);
  for (int i = 0; i < 2 && !mlirOperationIsNull(mul) && mlirValueIsNull(factor->codes); ++i) {
    factor->codes = codes_of(mlirOperationGetOperand(mul, i));
    factor->scale = mlirOperationGetOperand(mul, 1 - i);
  }
  return !mlirValueIsNull(factor->codes) && o3_type_is_static(mlirValueGetType(factor->codes));
}

/* Whether the scale is the same for all of what is summed over, dimension |depth| of the codes from the last.
 */
static bool is_outside(const factor_t *factor, int depth) {
  if (mlirValueIsNull(factor->scale)) return true;
  MlirType scale = mlirValueGetType(factor->scale), codes = mlirValueGetType(factor->codes);
  int rank = o3_type_rank(scale);
  if (!o3_type_is_static(scale) || rank > o3_type_rank(codes)) return false;
  return rank <= depth || o3_type_dim(scale, rank - 1 - depth) == 1;
}

/* ---- Building ---- */

static MlirValue cast(o3_builder_t *b, MlirValue value, MlirType element) {
  MlirType type = mlirValueGetType(value);
  int64_t sizes[O3_IR_MAX_RANK];
  for (int i = 0; i < o3_type_rank(type); ++i) sizes[i] = o3_type_dim(type, i);
  if (mlirTypeEqual(o3_type_element(type), element)) return value;
  return o3_build1_attrs(b, "o3.cast", o3_tensor_type(o3_type_rank(type), sizes, element), O3_VALUES(value),
                         O3_ATTRS({"to", o3_attr_type(element)}));
}

static MlirValue transpose(o3_builder_t *b, MlirValue value) {
  MlirType type = mlirValueGetType(value);
  const int64_t sizes[2] = {o3_type_dim(type, 1), o3_type_dim(type, 0)}, perm[2] = {1, 0};
  return o3_build1_attrs(b, "o3.transpose", o3_tensor_type(2, sizes, o3_type_element(type)), O3_VALUES(value),
                         O3_ATTRS({"perm", o3_attr_ints(b->context, 2, perm)}));
}

/* A scale of a transposed factor as one of the factor: of rank 2, or of its columns, which become rows. */
static MlirValue turned(o3_builder_t *b, MlirValue scale) {
  MlirType type = mlirValueGetType(scale);
  if (o3_type_rank(type) == 2) return transpose(b, scale);
  if (o3_type_rank(type) == 0) return scale;
  const int64_t sizes[2] = {o3_type_dim(type, 0), 1};
  return o3_build1(b, "o3.reshape", o3_tensor_type(2, sizes, o3_type_element(type)), O3_VALUES(scale));
}

static MlirValue scaled(o3_builder_t *b, MlirValue product, const factor_t *factor) {
  if (mlirValueIsNull(factor->scale)) return product;
  MlirValue scale = factor->transposed ? turned(b, factor->scale) : factor->scale;
  return o3_build1(b, "o3.mul", mlirValueGetType(product),
                   O3_VALUES(product, cast(b, scale, mlirF32TypeGet(b->context))));
}

/* Why the product is not one of 8-bit floats; NULL when it is. */
static const char *refuse(const o3_machine_t *machine, const factor_t *a, const factor_t *b) {
  MlirType rows = mlirValueGetType(b->codes);
  if (!machine->kernels->refuse_float8) return "the target's kernels multiply no 8-bit floats";
  if (!mlirTypeEqual(element_of(a->codes), element_of(b->codes))) return "they are of two formats";
  if (o3_type_float8(element_of(a->codes))->single) return "the card has no FNUZ formats";
  if (o3_type_rank(rows) != 2) return "B is no single matrix";
  if (!b->transposed && !o3_layout_is_constant(b->codes)) return "B lies by rows and is no constant";
  return machine->kernels->refuse_float8(machine->gpu, o3_type_dim(rows, !b->transposed),
                                         o3_type_dim(rows, b->transposed));
}

static o3_status_t rewrite(o3_pass_env_t *env, MlirModule module, MlirOperation op, const factor_t *fa,
                           const factor_t *fb) {
  o3_builder_t builder = o3_builder_before(op), *b = &builder;
  MlirValue y = mlirOperationGetResult(op, 0), f32_result;
  MlirType f32 = mlirF32TypeGet(env->context), f16 = mlirF16TypeGet(env->context);
  const char *why = refuse(env->machine, fa, fb);
  MlirValue left = fa->transposed ? transpose(b, fa->codes) : fa->codes, right = fb->codes;
  if (fb->transposed == (why != NULL)) right = transpose(b, right); /* by columns, or by rows in f16 */
  if (why) left = cast(b, left, f16), right = cast(b, right, f16);
  MlirType type = mlirValueGetType(y);
  int64_t sizes[O3_IR_MAX_RANK];
  for (int i = 0; i < o3_type_rank(type); ++i) sizes[i] = o3_type_dim(type, i);
  f32_result = o3_build1_attrs(b, why ? "o3.matmul" : "o3.matmul_columns",
                               o3_tensor_type(o3_type_rank(type), sizes, f32), O3_VALUES(left, right),
                               O3_ATTRS({"acc", o3_attr_type(f32)}));
  MlirValue made = cast(b, scaled(b, scaled(b, f32_result, fa), fb), o3_type_element(type));
  const char *text = why ? o3_arena_printf(env->arena, "8-bit floats are multiplied as f16: %s", why)
                         : "8-bit floats are multiplied as they are, their scales behind the product";
  O3_TRY_ALLOC(text);
  O3_TRY(o3_choice_note(env->arena, module, op, text));
  o3_op_replace(op, 1, &made);
  return NULL;
}

static bool fits(MlirOperation op, factor_t *a, factor_t *b) {
  if (!o3_op_is(op, "o3.matmul") || !mlirAttributeIsNull(o3_op_attr(op, "acc"))) return false;
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  if (!o3_type_is_static(type) || o3_type_bits(o3_type_element(type)) > 32 ||
      !read_factor(mlirOperationGetOperand(op, 0), a) || !read_factor(mlirOperationGetOperand(op, 1), b))
    return false;
  return is_outside(a, a->transposed) && is_outside(b, !b->transposed);
}

o3_status_t o3_rewrite_float8_products(o3_pass_env_t *env, MlirModule module) {
  MlirOperation main = o3_module_func(module, "main"), next;
  if (mlirOperationIsNull(main) || !env->machine || !env->machine->gpu) return NULL;
  for (MlirOperation op = mlirBlockGetFirstOperation(o3_func_body(main)); !mlirOperationIsNull(op);
       op = next) {
    factor_t a, b;
    next = mlirOperationGetNextInBlock(op);
    if (fits(op, &a, &b)) O3_TRY(rewrite(env, module, op, &a, &b));
  }
  return NULL;
}
