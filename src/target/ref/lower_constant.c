/* Constants, sizes and guards. */
#include <stdlib.h>
#include <string.h>

#include "target/ref/lowering.h"

/* The same bytes as signless elements. */
static o3_status_t signless(o3_lw_t *lw, MlirAttribute value, MlirAttribute *out) {
  MlirType type = mlirAttributeGetType(value), wanted = o3_lw_type(type);
  size_t bytes;
  *out = value;
  if (mlirTypeEqual(type, wanted)) return NULL;
  const void *data = o3_weights_data(lw->env->weights, value, &bytes);
  O3_TRY_ALLOC(data);
  const char *name = o3_weights_name(lw->env->weights, value);
  return o3_weights_add(lw->env->weights, name ? name : "constant", wanted, data, bytes, out);
}

o3_status_t o3_lower_constant(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  (void)operands;
  MlirAttribute value;
  O3_TRY(signless(lw, o3_op_attr(op, "value"), &value));
  results[0] = o3_build1_attrs(&lw->builder, "arith.constant", mlirAttributeGetType(value), O3_NO_VALUES,
                               O3_ATTRS({"value", value}));
  return NULL;
}

/* tensor.from_elements of the sizes. */
o3_status_t o3_lower_size(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  (void)operands;
  MlirAffineMap map = mlirAffineMapAttrGetValue(o3_op_attr(op, "map"));
  int count = (int)mlirAffineMapGetNumResults(map);
  MlirType i64 = mlirIntegerTypeGet(lw->context, 64);
  MlirValue *elements = O3_ARENA_ARRAY(lw->arena, MlirValue, (size_t)count + 1);
  O3_TRY_ALLOC(elements);
  for (int i = 0; i < count; ++i) {
    MlirValue size = o3_lw_size(lw, o3_symbols_resolve(lw->symbols, mlirAffineMapGetResult(map, i)));
    elements[i] = o3_build1(&lw->builder, "arith.index_cast", i64, O3_VALUES(size));
  }
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  results[0] = o3_build1(&lw->builder, "tensor.from_elements", type, count, elements);
  return NULL;
}

/* Negative sizes can only come from bad data: they end the run here, before anything is allocated by them. */
o3_status_t o3_lower_bind(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  (void)results;
  int64_t symbols[O3_FACT_MAX_ELEMENTS];
  int count = o3_op_ints(op, "symbols", symbols, O3_FACT_MAX_ELEMENTS);
  int rank = o3_type_rank(mlirValueGetType(operands[0]));
  for (int i = 0; i < count; ++i) {
    if (symbols[i] < 0) continue;
    MlirValue position = o3_build_index(&lw->builder, i);
    MlirValue element = o3_lw_extract(&lw->builder, operands[0], rank, &position);
    MlirValue size =
        o3_build1(&lw->builder, "arith.index_cast", o3_build_index_type(&lw->builder), O3_VALUES(element));
    MlirValue zero = o3_build_index(&lw->builder, 0);
    o3_lw_assert(lw, op, o3_build_cmpi(&lw->builder, O3_CMPI_SGE, size, zero), "a size is negative");
    o3_lw_bind_symbol(lw, (int)symbols[i], size);
  }
  return NULL;
}

o3_status_t o3_lower_guard(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  (void)operands;
  (void)results;
  MlirAffineExpr lhs = mlirAffineMapGetResult(mlirAffineMapAttrGetValue(o3_op_attr(op, "lhs")), 0);
  MlirAffineExpr rhs = mlirAffineMapGetResult(mlirAffineMapAttrGetValue(o3_op_attr(op, "rhs")), 0);
  bool nonnegative = o3_op_bool(op, "nonnegative", false);
  MlirValue holds = o3_build_cmpi(&lw->builder, nonnegative ? O3_CMPI_SGE : O3_CMPI_EQ, o3_lw_size(lw, lhs),
                                  o3_lw_size(lw, rhs));
  const o3_attr_t attrs[] = {{"msg", o3_op_attr(op, "text")}};
  o3_op_spec_t spec = {
      .name = "cf.assert", .num_operands = 1, .operands = &holds, .num_attrs = 1, .attrs = attrs};
  o3_build(&lw->builder, &spec);
  return NULL;
}
