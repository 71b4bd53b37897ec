/* cpu-divisions: divisions of vectors become multiplications in kernels of the fuse stage.
 *
 *     %q = arith.divf %x, %sum          ->  %q = (%x * s) * (1 / (%sum * s))    %sum: the same for a row
 *     %q = arith.divf %x, %constant     ->  %q = %x * (1 / constant)            beside an exponential, a
 * product
 *
 * Needs: kernels whose bodies are linalg on buffers. Guarantees: what is multiplied in place of divided is at
 * most 1 ULP away; nothing else changes.
 *
 * A division of 16 numbers takes as long as ten multiplications, and a normalisation or softmax has one for
 * each element. LLVM takes what depends on the row alone out of the loop along it. The factor s is 1, or 2^30
 * where the divisor is below the least normal number and its reciprocal could be infinite, or 2^-30 where the
 * reciprocal would be below it and lose bits; a divisor of 0, an infinite one and NaN give what the division
 * gives. A kernel that rounds to whole numbers is left alone: there the last bit may decide between two of
 * them.
 */
#include <math.h>
#include <string.h>

#include "fuse/kernel_body.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/nest.h"

static const char *const ROUNDING[] = {"math.round", "math.roundeven", "math.floor",  "math.ceil",
                                       "math.trunc", "arith.fptosi",   "arith.fptoui"};
static const char *const TRANSCENDENTAL[] = {"math.exp", "math.erf", "math.tanh", "math.log"};
/* Kinds of kernels (fuse/group_kinds.def). */
static const char *const PRODUCTS[] = {"contraction", "winograd", "chain"};

typedef struct kernel {
  bool rounds, is_inexact; /* is_inexact: it has more errors than that of the division */
  o3_nest_t *nest;         /* of the op whose body is walked */
} kernel_t;

static bool is_one_of(MlirOperation op, size_t count, const char *const *names) {
  for (size_t i = 0; i < count; ++i) {
    if (o3_op_is(op, names[i])) return true;
  }
  return false;
}

static o3_status_t look_at(MlirOperation op, void *context) {
  kernel_t *self = context;
  self->rounds |= is_one_of(op, sizeof(ROUNDING) / sizeof(ROUNDING[0]), ROUNDING);
  self->is_inexact |= is_one_of(op, sizeof(TRANSCENDENTAL) / sizeof(TRANSCENDENTAL[0]), TRANSCENDENTAL);
  return NULL;
}

static void replace(MlirOperation op, MlirValue value) {
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), value);
  mlirOperationDestroy(op);
}

/* ---- By a constant ---- */

static bool reciprocal_of(MlirOperation constant, bool is_f32, double *reciprocal) {
  MlirAttribute attr = o3_op_attr(constant, "value");
  if (!mlirAttributeIsAFloat(attr)) return false;
  double value = mlirFloatAttrGetValueDouble(attr);
  *reciprocal = 1 / value;
  return is_f32 ? isnormal((float)value) && isnormal((float)*reciprocal)
                : isnormal(value) && isnormal(*reciprocal);
}

static void divide_by_constant(MlirOperation op, MlirOperation constant) {
  MlirValue x = mlirOperationGetOperand(op, 0);
  MlirType type = mlirValueGetType(x);
  double reciprocal;
  if (!reciprocal_of(constant, mlirTypeIsAF32(type), &reciprocal)) return;
  o3_builder_t b = o3_builder_before(op);
  replace(op, o3_build2(&b, "arith.mulf", x, o3_build_float(&b, type, reciprocal)));
}

/* ---- By what a row has one of ---- */

/* Whether body argument |index| is read from memory of the kernel's own, the same along the result's last
 * dimension. */
static bool is_of_row(const o3_nest_t *nest, int index) {
  if (index >= nest->num_inputs || nest->num_operands != nest->num_inputs + 1) return false;
  const o3_nest_operand_t *operand = &nest->operands[index], *out = &nest->operands[nest->num_inputs];
  MlirAffineExpr last = out->num_terms ? out->exprs[out->num_terms - 1] : (MlirAffineExpr){0};
  MlirOperation def = o3_value_def(operand->value);
  return last.ptr && mlirAffineExprIsADim(last) && !mlirOperationIsNull(def) &&
         o3_op_is(def, "memref.alloc") && operand->is_memref &&
         !o3_nest_uses(operand, (int)mlirAffineDimExprGetPosition(last));
}

static MlirValue build_factor(o3_builder_t *b, MlirValue divisor) {
  MlirType type = mlirValueGetType(divisor);
  double least = mlirTypeIsAF32(type) ? 0x1p-126 : 0x1p-1022;
  MlirValue size = o3_build_unary(b, "math.absf", divisor), one = o3_build_float(b, type, 1);
  MlirValue small = o3_build_cmpf(b, O3_CMPF_OLT, size, o3_build_float(b, type, least));
  MlirValue large = o3_build_cmpf(b, O3_CMPF_OGT, size, o3_build_float(b, type, 1 / least));
  MlirValue usual = o3_build_select(b, large, o3_build_float(b, type, 0x1p-30), one);
  return o3_build_select(b, small, o3_build_float(b, type, 0x1p30), usual);
}

static void divide_by_row(MlirOperation op, MlirValue divisor) {
  o3_builder_t b = o3_builder_before(op);
  MlirValue one = o3_build_float(&b, mlirValueGetType(divisor), 1), factor = build_factor(&b, divisor);
  MlirValue inverse = o3_build2(&b, "arith.divf", one, o3_build2(&b, "arith.mulf", divisor, factor));
  MlirValue x = o3_build2(&b, "arith.mulf", mlirOperationGetOperand(op, 0), factor);
  replace(op, o3_build2(&b, "arith.mulf", x, inverse));
}

/* ---- All ---- */

static void replace_division(const kernel_t *self, MlirOperation op) {
  MlirValue divisor = mlirOperationGetOperand(op, 1);
  MlirType type = mlirValueGetType(divisor);
  if (!mlirTypeIsAF32(type) && !mlirTypeIsAF64(type)) return;
  if (mlirValueIsABlockArgument(divisor)) {
    bool own = mlirBlockEqual(mlirBlockArgumentGetOwner(divisor), self->nest->body);
    if (own && is_of_row(self->nest, (int)mlirBlockArgumentGetArgNumber(divisor))) divide_by_row(op, divisor);
    return;
  }
  MlirOperation def = o3_value_def(divisor);
  if (self->is_inexact && o3_op_is(def, "arith.constant")) divide_by_constant(op, def);
}

static o3_status_t visit(MlirOperation op, void *context) {
  kernel_t *self = context;
  if (!o3_nest_read(op, self->nest)) return NULL;
  MlirOperation inner = mlirBlockGetFirstOperation(self->nest->body);
  while (!mlirOperationIsNull(inner)) {
    MlirOperation next = mlirOperationGetNextInBlock(inner);
    if (o3_op_is(inner, "arith.divf")) replace_division(self, inner);
    inner = next;
  }
  return NULL;
}

static bool is_product(MlirStringRef kind) {
  for (size_t i = 0; i < sizeof(PRODUCTS) / sizeof(PRODUCTS[0]); ++i) {
    if (o3_str_equal(kind, PRODUCTS[i])) return true;
  }
  return false;
}

o3_status_t o3_cpu_divisions(o3_pass_env_t *env, MlirModule module) {
  static _Thread_local o3_nest_t nest;
  o3_cpu_load_dialects(env->context);
  MlirOperation func = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(func); func = mlirOperationGetNextInBlock(func)) {
    MlirStringRef kind = o3_op_string(func, O3_KERNEL_KIND);
    kernel_t self = {.nest = &nest, .is_inexact = is_product(kind)};
    if (!kind.data) continue;
    O3_TRY(o3_walk(func, look_at, &self));
    if (!self.rounds) O3_TRY(o3_walk(func, visit, &self));
  }
  return NULL;
}
