/* cpu-to-llvm: the rest of the way, by upstream's conversions.
 *
 * Needs: scf, memref, arith, math, vector and func ops on buffers. Guarantees: llvm dialect only.
 *
 * bf16 is emulated in f32 with integer code for the conversions and f16 likewise with the machine's own:
 * otherwise LLVM would call functions of compiler-rt, which a model is not linked with. Math functions that
 * are instructions become intrinsics, the others calls of libm. Booleans lie in memory as bytes of 0 and 1,
 * and are read and written as such: LLVM vectorises no loop over single bits.
 */
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/reshape.h"

static bool is_half(MlirType type) { return mlirTypeIsAF16(type) || mlirTypeIsABF16(type); }

/* f64 to f32, rounded to odd: when the result is inexact its last bit is 1, so that rounding it again to half
 * precision gives what one rounding would (Boldo and Melquiond, 2008). */
static MlirValue round_to_odd(o3_builder_t *b, MlirValue value) {
  MlirType f32 = mlirF32TypeGet(b->context), f64 = mlirF64TypeGet(b->context);
  MlirType i32 = mlirIntegerTypeGet(b->context, 32);
  MlirValue nearest = o3_build1(b, "arith.truncf", f32, O3_VALUES(value));
  MlirValue back = o3_build1(b, "arith.extf", f64, O3_VALUES(nearest));
  MlirValue inexact = o3_build_cmpf(b, O3_CMPF_UNE, back, value);
  MlirValue beyond = o3_build_cmpf(b, O3_CMPF_OGT, o3_build_unary(b, "math.absf", back),
                                   o3_build_unary(b, "math.absf", value));
  MlirValue bits = o3_build1(b, "arith.bitcast", i32, O3_VALUES(nearest)), one = o3_build_int(b, i32, 1);
  MlirValue truncated = o3_build_select(b, beyond, o3_build2(b, "arith.subi", bits, one), bits);
  MlirValue odd = o3_build_select(b, inexact, o3_build2(b, "arith.ori", truncated, one), bits);
  return o3_build1(b, "arith.bitcast", f32, O3_VALUES(odd));
}

/* Conversions to half precision go through f32, for which there are instructions or integer code. */
static o3_status_t narrow(MlirOperation op, void *context) {
  (void)context;
  bool truncation = o3_op_is(op, "arith.truncf");
  bool integer = o3_op_is(op, "arith.sitofp") || o3_op_is(op, "arith.uitofp");
  if (!truncation && !integer) return NULL;
  MlirValue result = mlirOperationGetResult(op, 0), value = mlirOperationGetOperand(op, 0);
  bool from_double = truncation && mlirTypeIsAF64(mlirValueGetType(value));
  if (!is_half(mlirValueGetType(result)) || (truncation && !from_double)) return NULL;
  o3_builder_t b = o3_builder_before(op);
  const char *convert = o3_op_is(op, "arith.uitofp") ? "arith.uitofp" : "arith.sitofp";
  MlirValue single = from_double ? round_to_odd(&b, value)
                                 : o3_build1(&b, convert, mlirF32TypeGet(b.context), O3_VALUES(value));
  MlirValue half = o3_build1(&b, "arith.truncf", mlirValueGetType(result), O3_VALUES(single));
  mlirValueReplaceAllUsesOfWith(result, half);
  mlirOperationDestroy(op);
  return NULL;
}

static bool is_bit(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  return mlirTypeIsAInteger(type) && mlirIntegerTypeGetWidth(type) == 1;
}

static o3_status_t widen_bit(MlirOperation op, void *context) {
  (void)context;
  o3_builder_t b = o3_builder_before(op);
  MlirType i8 = mlirIntegerTypeGet(b.context, 8);
  if (o3_op_is(op, "llvm.load") && is_bit(mlirOperationGetResult(op, 0))) {
    MlirValue bit = mlirOperationGetResult(op, 0);
    MlirValue byte = o3_build1_attrs(&b, "llvm.load", i8, O3_VALUES(mlirOperationGetOperand(op, 0)),
                                     O3_ATTRS({"alignment", o3_attr_i64(b.context, 1)}));
    mlirValueReplaceAllUsesOfWith(bit, o3_build1(&b, "llvm.trunc", mlirValueGetType(bit), O3_VALUES(byte)));
    mlirOperationDestroy(op);
  } else if (o3_op_is(op, "llvm.store") && is_bit(mlirOperationGetOperand(op, 0))) {
    MlirValue byte = o3_build1(&b, "llvm.zext", i8, O3_VALUES(mlirOperationGetOperand(op, 0)));
    mlirOperationSetOperand(op, 0, byte);
  }
  return NULL;
}

o3_status_t o3_cpu_to_llvm(o3_pass_env_t *env, MlirModule module) {
  o3_cpu_load_dialects(env->context);
  O3_TRY(o3_cpu_replace_reshapes(mlirModuleGetOperation(module)));
  O3_TRY(o3_ir_run_pipeline(
      module,
      "builtin.module("
      "math-extend-to-supported-types,math-expand-ops{ops=fpowi,clampf},convert-math-to-funcs,"
      "arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32},"
      "canonicalize,cse)"));
  /* After the last canonicalization, which would undo it. */
  O3_TRY(o3_walk(mlirModuleGetOperation(module), narrow, NULL));
  O3_TRY(o3_cpu_use_intrinsics(mlirModuleGetOperation(module), env->opt_level > 0));
  O3_TRY(o3_ir_run_pipeline(
      module,
      "builtin.module("
      "arith-expand{include-bf16=true},memref-expand,"
      "convert-vector-to-scf,expand-strided-metadata,lower-affine,"
      "convert-vector-to-llvm,convert-scf-to-cf,"
      "convert-math-to-llvm,convert-math-to-libm,"
      "convert-index-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-arith-to-llvm,"
      "convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts,canonicalize,cse)"));
  return o3_walk(mlirModuleGetOperation(module), widen_bit, NULL);
}
