/* The ops of arith take vectors where they take scalars: an op is cloned with vectors for operands and vector
 * types for results. Values from outside of the body are broadcast. */
#include "target/cpu/vector_body.h"

#include "base/map.h"

MlirType o3_vector_type(int width, MlirType element) {
  return mlirVectorTypeGet(1, (int64_t[]){width}, element);
}

MlirValue o3_vector_broadcast(o3_builder_t *b, int width, MlirValue scalar) {
  return o3_build1(b, "vector.broadcast", o3_vector_type(width, mlirValueGetType(scalar)), O3_VALUES(scalar));
}

static bool is_number(MlirType type) { return o3_type_is_float(type) || mlirTypeIsAInteger(type); }

static bool fits(MlirOperation op) {
  if (!o3_op_is_of(op, "arith") || mlirOperationGetNumRegions(op)) return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    if (!is_number(mlirValueGetType(mlirOperationGetOperand(op, i)))) return false;
  }
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i) {
    if (!is_number(mlirValueGetType(mlirOperationGetResult(op, i)))) return false;
  }
  return true;
}

bool o3_vector_body_fits(const o3_nest_t *nest) {
  MlirOperation op = mlirBlockGetFirstOperation(nest->body), end = mlirBlockGetTerminator(nest->body);
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op)) {
    if (!fits(op)) return false;
  }
  return true;
}

typedef struct cloner {
  o3_builder_t *builder;
  int width;
  o3_ptr_map_t *map; /* MlirValue.ptr: scalar -> vector */
} cloner_t;

static o3_status_t put(cloner_t *self, MlirValue scalar, MlirValue vector) {
  if (o3_ptr_map_put(self->map, scalar.ptr, (void *)(uintptr_t)vector.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static o3_status_t vector_of(cloner_t *self, MlirValue scalar, MlirValue *vector) {
  vector->ptr = o3_ptr_map_get(self->map, scalar.ptr);
  if (!mlirValueIsNull(*vector)) return NULL;
  *vector = o3_vector_broadcast(self->builder, self->width, scalar);
  return put(self, scalar, *vector);
}

/* Constants stay scalars, to be broadcast. */
static o3_status_t clone_op(cloner_t *self, MlirOperation op) {
  bool constant = o3_op_is(op, "arith.constant");
  MlirValue operands[8];
  intptr_t count = mlirOperationGetNumOperands(op);
  if (count > 8) return o3_status_create(O3_STATUS_INTERNAL, "an arith op has %d operands", (int)count);
  for (intptr_t i = 0; i < count; ++i) O3_TRY(vector_of(self, mlirOperationGetOperand(op, i), &operands[i]));
  MlirOperation copy = mlirOperationClone(op);
  if (mlirOperationIsNull(self->builder->before)) {
    mlirBlockAppendOwnedOperation(self->builder->block, copy);
  } else {
    mlirBlockInsertOwnedOperationBefore(self->builder->block, self->builder->before, copy);
  }
  for (intptr_t i = 0; i < count; ++i) mlirOperationSetOperand(copy, i, operands[i]);
  MlirValue result = mlirOperationGetResult(copy, 0);
  if (constant) {
    result = o3_vector_broadcast(self->builder, self->width, result);
  } else {
    mlirValueSetType(result, o3_vector_type(self->width, mlirValueGetType(result)));
  }
  return put(self, mlirOperationGetResult(op, 0), result);
}

static o3_status_t clone_body(cloner_t *self, const o3_nest_t *nest, const MlirValue *arguments,
                              MlirValue *yields) {
  O3_TRY_ALLOC(self->map);
  for (int i = 0; i < nest->num_operands; ++i)
    O3_TRY(put(self, mlirBlockGetArgument(nest->body, i), arguments[i]));
  MlirOperation op = mlirBlockGetFirstOperation(nest->body), end = mlirBlockGetTerminator(nest->body);
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op)) O3_TRY(clone_op(self, op));
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(end); ++i)
    O3_TRY(vector_of(self, mlirOperationGetOperand(end, i), &yields[i]));
  return NULL;
}

o3_status_t o3_vector_body_build(const o3_nest_t *nest, o3_builder_t *builder, int width,
                                 const MlirValue *arguments, MlirValue *yields) {
  o3_arena_t *scratch = o3_arena_create();
  O3_TRY_ALLOC(scratch);
  cloner_t self = {builder, width, o3_ptr_map_create(scratch)};
  o3_status_t status = clone_body(&self, nest, arguments, yields);
  o3_arena_destroy(scratch);
  return status;
}
