/* weight-columns: constant matrices by columns, for kernels of GPUs that want their k contiguous.
 *
 *     %y = "o3.matmul"(%x, %w)    =>    %t = "o3.transpose"(%w) {perm = [1, 0]}
 *                                       %y = "o3.matmul_columns"(%x, %t)
 *
 * These are products of few rows, which a warp reads along k, and with --precision tf32 all products, as
 * tensor cores take tf32 by columns alone. Needs: precision reduced, sparse formats chosen; fold-constants
 * follows and computes the transposition. Guarantees: nothing is transposed in a run. */
#include "rewrite/layout.h"
#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

/* As many as kernels that stream weights take. */
enum { FEW_ROWS = 8 };

/* All dimensions but the last are rows; -1 when a size is known only at run time. */
static int64_t count_rows(MlirType a) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < o3_type_rank(a); ++i) {
    if (o3_type_dim(a, i) < 0 || __builtin_mul_overflow(rows, o3_type_dim(a, i), &rows)) return -1;
  }
  return rows;
}

static bool wants_columns(const o3_pass_env_t *env, MlirOperation op) {
  if (!o3_op_is(op, "o3.matmul")) return false;
  MlirValue a = mlirOperationGetOperand(op, 0), b = mlirOperationGetOperand(op, 1);
  MlirType type = mlirValueGetType(b);
  if (!o3_type_is_float(o3_type_element(type)) || o3_type_rank(type) != 2 || !o3_layout_is_constant(b))
    return false;
  if (o3_type_dim(type, 0) < 0 || o3_type_dim(type, 1) < 0) return false;
  if (env->precision == O3_PRECISION_TF32) return true;
  int64_t rows = count_rows(mlirValueGetType(a));
  return rows >= 0 && rows <= FEW_ROWS;
}

static void transpose(MlirOperation op) {
  o3_builder_t b = o3_builder_before(op);
  MlirValue w = mlirOperationGetOperand(op, 1), y = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(w);
  const int64_t sizes[2] = {o3_type_dim(type, 1), o3_type_dim(type, 0)}, perm[2] = {1, 0};
  MlirValue columns = o3_build1_attrs(&b, "o3.transpose", o3_tensor_type(2, sizes, o3_type_element(type)),
                                      O3_VALUES(w), O3_ATTRS({"perm", o3_attr_ints(b.context, 2, perm)}));
  MlirValue made = o3_build1_attrs(
      &b, "o3.matmul_columns", mlirValueGetType(y), O3_VALUES(mlirOperationGetOperand(op, 0), columns),
      O3_ATTRS({"acc", o3_op_attr(op, "acc")}, {"o3.shape", o3_op_attr(op, "o3.shape")}));
  o3_op_replace(op, 1, &made);
}

o3_status_t o3_rewrite_weight_columns(o3_pass_env_t *env, MlirModule module) {
  MlirOperation main = o3_module_func(module, "main"), next;
  if (mlirOperationIsNull(main) || !env->machine || !env->machine->gpu) return NULL;
  for (MlirOperation op = mlirBlockGetFirstOperation(o3_func_body(main)); !mlirOperationIsNull(op);
       op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (wants_columns(env, op)) transpose(op);
  }
  return NULL;
}
