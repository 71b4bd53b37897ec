/* The tile's function exists already, and others may share it: its name has the hash of what was put in. */
#include "target/cpu/tile_after.h"

#include <stdlib.h>

#include "ir/build.h"
#include "target/cpu/vector_body.h"

/* ---- Closed bodies ---- */

static bool is_inside(MlirBlock body, MlirValue value) {
  if (mlirValueIsABlockArgument(value)) return mlirBlockEqual(mlirBlockArgumentGetOwner(value), body);
  return mlirBlockEqual(mlirOperationGetBlock(mlirOpResultGetOwner(value)), body);
}

/* False when the operand is something from outside that is no constant. */
static bool take_constant(MlirBlock body, MlirOperation op, intptr_t operand) {
  MlirValue value = mlirOperationGetOperand(op, operand);
  if (is_inside(body, value)) return true;
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def) || !o3_op_is(def, "arith.constant")) return false;
  MlirOperation copy = mlirOperationClone(def);
  mlirBlockInsertOwnedOperation(body, 0, copy);
  mlirOperationSetOperand(op, operand, mlirOperationGetResult(copy, 0));
  return true;
}

bool o3_tile_after_fits(const o3_nest_t *nest) {
  if (nest->num_inputs != 0 || nest->num_operands != 1 || !o3_vector_body_fits(nest)) return false;
  MlirOperation op = mlirBlockGetFirstOperation(nest->body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
      if (!take_constant(nest->body, op, i)) return false;
    }
  }
  return true;
}

/* ---- Hashes ---- */

/* FNV-1a */
static uint64_t add_bytes(uint64_t hash, const void *data, size_t count) {
  const unsigned char *bytes = data;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
  return hash;
}

static uint64_t add_attr(uint64_t hash, MlirAttribute attr) {
  char *text = o3_attr_text(attr);
  for (const char *c = text; c && *c; ++c) hash = add_bytes(hash, c, 1);
  free(text);
  return hash;
}

/* The place of the op that makes |value| in the body; -1: the element. */
static int place_of(MlirBlock body, MlirValue value) {
  if (mlirValueIsABlockArgument(value)) return -1;
  int place = 0;
  MlirOperation op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationEqual(op, mlirOpResultGetOwner(value)); op = mlirOperationGetNextInBlock(op)) ++place;
  return place;
}

static uint64_t add_op(uint64_t hash, MlirBlock body, MlirOperation op) {
  MlirStringRef name = o3_op_name(op);
  hash = add_bytes(hash, name.data, name.length);
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); ++i) {
    MlirNamedAttribute attr = mlirOperationGetAttribute(op, i);
    MlirStringRef key = mlirIdentifierStr(attr.name);
    hash = add_attr(add_bytes(hash, key.data, key.length), attr.attribute);
  }
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    int place = place_of(body, mlirOperationGetOperand(op, i));
    hash = add_bytes(hash, &place, sizeof(place));
  }
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    hash = add_attr(hash, o3_attr_type(mlirValueGetType(mlirOperationGetResult(op, i))));
  return hash;
}

uint64_t o3_tile_after_hash(uint64_t before, const o3_nest_t *nest) {
  uint64_t hash = before ? before : UINT64_C(14695981039346656037);
  MlirOperation op = mlirBlockGetFirstOperation(nest->body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) hash = add_op(hash, nest->body, op);
  return hash ? hash : 1;
}

/* ---- Insertion ---- */

typedef struct inserter {
  const o3_nest_t *nest;
  int lanes;
} inserter_t;

static o3_status_t visit(MlirOperation op, void *context) {
  const inserter_t *self = context;
  if (!o3_op_is(op, "vector.store")) return NULL;
  o3_builder_t b = o3_builder_before(op);
  MlirValue sum = mlirOperationGetOperand(op, 0), result;
  O3_TRY(o3_vector_body_build(self->nest, &b, self->lanes, &sum, &result));
  mlirOperationSetOperand(op, 0, result);
  return NULL;
}

o3_status_t o3_tile_after_insert(MlirOperation tile, int lanes, const o3_nest_t *nest) {
  inserter_t self = {nest, lanes};
  return o3_walk(tile, visit, &self);
}
