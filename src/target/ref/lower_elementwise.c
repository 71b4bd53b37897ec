/* Elementwise ops: one linalg.generic each, the scalar op by the kind of number. */
#include <string.h>

#include "base/check.h"
#include "target/ref/lowering.h"

/* op -> scalar op for floats, signed and unsigned integers; NULL: no such op. */
static const struct {
  const char *op, *scalar[3];
} SCALARS[] = {
    {"o3.add", {"arith.addf", "arith.addi", "arith.addi"}},
    {"o3.sub", {"arith.subf", "arith.subi", "arith.subi"}},
    {"o3.mul", {"arith.mulf", "arith.muli", "arith.muli"}},
    {"o3.div", {"arith.divf", "arith.divsi", "arith.divui"}},
    {"o3.max", {"arith.maximumf", "arith.maxsi", "arith.maxui"}},
    {"o3.min", {"arith.minimumf", "arith.minsi", "arith.minui"}},
};

static const char *scalar_op(MlirOperation op) {
  o3_number_kind_t kind = o3_number_kind(o3_lw_old_element(op, 0));
  for (size_t i = 0; i < sizeof(SCALARS) / sizeof(SCALARS[0]); ++i) {
    if (o3_op_is(op, SCALARS[i].op)) return SCALARS[i].scalar[kind];
  }
  return NULL;
}

static void elementwise_body(const o3_body_args_t *in) {
  int count = (int)mlirOperationGetNumOperands(in->op);
  in->results[0] = o3_build1(in->builder, in->context, mlirValueGetType(in->args[0]), count, in->args);
}

o3_status_t o3_lower_elementwise(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  const char *scalar = scalar_op(op);
  if (!scalar)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "%s: op %.*s is not defined for its element type",
                            o3_lw_who(lw, op), O3_STR_ARGS(o3_op_name(op)));
  int count = (int)mlirOperationGetNumOperands(op);
  results[0] = o3_lw_map(lw, op, 0, count, operands, elementwise_body, (void *)(uintptr_t)scalar);
  return NULL;
}
