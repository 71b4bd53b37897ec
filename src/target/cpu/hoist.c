#include "target/cpu/hoist.h"

#include "target/cpu/cpu_ir.h"

/* Pure and total ops: they may run earlier than written, whatever the sizes are. */
static const char *const TOTAL[] = {
    "arith.constant", "arith.addi",   "arith.subi",  "arith.muli",       "arith.maxsi",
    "arith.minsi",    "arith.maxui",  "arith.minui", "arith.index_cast", "arith.cmpi",
    "arith.select",   "affine.apply", "affine.max",  "affine.min",       "memref.dim",
};
/* Ops that are so when their second operand is a constant (canonicalized: not zero). */
static const char *const DIVISIONS[] = {"arith.divsi",    "arith.divui",      "arith.remsi",
                                        "arith.remui",    "arith.floordivsi", "arith.ceildivsi",
                                        "arith.ceildivui"};

static bool is_nonzero_constant(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  return o3_op_is(def, "arith.constant") && o3_op_int(def, "value", 0) != 0;
}

static bool is_argument(MlirValue value, MlirOperation func) {
  return mlirValueIsABlockArgument(value) &&
         mlirBlockEqual(mlirBlockArgumentGetOwner(value), o3_func_body(func));
}

bool o3_hoist_is_total(MlirOperation op) {
  if (o3_op_is_one_of(op, DIVISIONS, sizeof(DIVISIONS) / sizeof(DIVISIONS[0])))
    return is_nonzero_constant(mlirOperationGetOperand(op, 1));
  return o3_op_is_one_of(op, TOTAL, sizeof(TOTAL) / sizeof(TOTAL[0]));
}

bool o3_hoist_is_possible(MlirValue value, MlirOperation func) {
  if (is_argument(value, func)) return true;
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def) || !o3_hoist_is_total(def)) return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(def); ++i) {
    if (!o3_hoist_is_possible(mlirOperationGetOperand(def, i), func)) return false;
  }
  return true;
}

static bool is_before(MlirOperation op, MlirOperation anchor) {
  return mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(anchor)) &&
         mlirOperationIsBeforeInBlock(op, anchor);
}

void o3_hoist(MlirValue value, MlirOperation anchor) {
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def) || is_before(def, anchor)) return;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(def); ++i)
    o3_hoist(mlirOperationGetOperand(def, i), anchor);
  mlirOperationMoveBefore(def, anchor);
}
