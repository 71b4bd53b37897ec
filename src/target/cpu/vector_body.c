/* The ops of arith take vectors where they take scalars: an op is cloned with vectors for operands and vector
 * types for results. What is the same for all lanes, such as values from outside of the body, is computed as
 * a scalar, and broadcast where a vector needs it; elements that lie beside each other for the lanes are
 * loaded at once. */
#include "target/cpu/vector_body.h"

#include "base/check.h"
#include "base/map.h"

MlirType o3_vector_type(int width, MlirType element) {
  return mlirVectorTypeGet(1, (int64_t[]){width}, element);
}

MlirValue o3_vector_broadcast(o3_builder_t *b, int width, MlirValue scalar) {
  return o3_build1(b, "vector.broadcast", o3_vector_type(width, mlirValueGetType(scalar)), O3_VALUES(scalar));
}

/* ---- What fits ---- */

/* What an op of the body gives. */
typedef enum kind {
  KIND_NONE,    /* nothing that a vector can be made of */
  KIND_UNIFORM, /* one value for all lanes: a scalar */
  KIND_LANE,    /* the number of the lane */
  KIND_VECTOR
} kind_t;

typedef struct lanes {
  const o3_nest_t *nest;
  int dim;             /* that the lanes are, or -1: the body is arith ops on numbers alone */
  o3_ptr_map_t *kinds; /* MlirValue.ptr -> address of a kind_t */
} lanes_t;

static bool is_number(MlirType type) { return o3_type_is_float(type) || mlirTypeIsAInteger(type); }

static bool is_of_numbers(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    if (!is_number(mlirValueGetType(mlirOperationGetOperand(op, i)))) return false;
  }
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i) {
    if (!is_number(mlirValueGetType(mlirOperationGetResult(op, i)))) return false;
  }
  return true;
}

/* What is not of the body is there for all lanes. */
static kind_t kind_of(const lanes_t *self, MlirValue value) {
  bool argument =
      mlirValueIsABlockArgument(value) && mlirBlockEqual(mlirBlockArgumentGetOwner(value), self->nest->body);
  const kind_t *kind = o3_ptr_map_get(self->kinds, value.ptr);
  return argument ? KIND_VECTOR : kind ? *kind : KIND_UNIFORM;
}

static bool is_of_function(MlirValue value) {
  return mlirValueIsABlockArgument(value) &&
         o3_op_is(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value)), "func.func");
}

/* Whether neighbours along the last dimension lie beside each other: in memory, and where a tensor will be:
 * arguments and results of ops that are not views get row-major buffers. */
static bool is_contiguous(MlirValue source) {
  MlirType type = mlirValueGetType(source);
  int64_t strides[O3_IR_MAX_RANK], offset;
  if (mlirTypeIsAMemRef(type))
    return mlirLogicalResultIsSuccess(mlirMemRefTypeGetStridesAndOffset(type, strides, &offset)) &&
           strides[o3_type_rank(type) - 1] == 1;
  return is_of_function(source) || o3_op_is_of(o3_value_def(source), "linalg");
}

/* Of elements of f32 at places that the lanes share, but for the last index. */
static kind_t kind_of_read(const lanes_t *self, MlirOperation op) {
  MlirValue source = mlirOperationGetOperand(op, 0);
  intptr_t last = mlirOperationGetNumOperands(op) - 1;
  for (intptr_t i = 1; i <= last; ++i) {
    kind_t kind = kind_of(self, mlirOperationGetOperand(op, i));
    if (kind == KIND_UNIFORM) continue;
    bool along = kind == KIND_LANE && i == last && is_contiguous(source) &&
                 mlirTypeIsAF32(o3_type_element(mlirValueGetType(source)));
    return along ? KIND_VECTOR : KIND_NONE;
  }
  return KIND_UNIFORM;
}

static kind_t kind_of_arith(const lanes_t *self, MlirOperation op) {
  bool uniform = true;
  if (mlirOperationGetNumRegions(op) || mlirOperationGetNumResults(op) != 1) return KIND_NONE;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    kind_t kind = kind_of(self, mlirOperationGetOperand(op, i));
    if (kind == KIND_LANE) return KIND_NONE;
    uniform &= kind == KIND_UNIFORM;
  }
  if (uniform && self->dim >= 0) return KIND_UNIFORM;
  if (!is_of_numbers(op)) return KIND_NONE;
  return uniform ? KIND_UNIFORM : KIND_VECTOR;
}

static kind_t kind_of_result(const lanes_t *self, MlirOperation op) {
  if (o3_op_is_of(op, "arith")) return kind_of_arith(self, op);
  if (self->dim < 0) return KIND_NONE;
  if (o3_op_is(op, "linalg.index")) return o3_op_int(op, "dim", -1) == self->dim ? KIND_LANE : KIND_UNIFORM;
  bool reads = o3_op_is(op, "memref.load") || o3_op_is(op, "tensor.extract");
  return reads ? kind_of_read(self, op) : KIND_NONE;
}

static bool note_kind(const lanes_t *self, MlirOperation op, kind_t kind) {
  static const kind_t KINDS[] = {KIND_NONE, KIND_UNIFORM, KIND_LANE, KIND_VECTOR};
  MlirValue result = mlirOperationGetResult(op, 0);
  return o3_ptr_map_put(self->kinds, result.ptr, (void *)(uintptr_t)&KINDS[kind]);
}

static bool fits(const lanes_t *self) {
  MlirBlock body = self->nest->body;
  MlirOperation op = mlirBlockGetFirstOperation(body), end = mlirBlockGetTerminator(body);
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op)) {
    kind_t kind = kind_of_result(self, op);
    if (kind == KIND_NONE || !note_kind(self, op, kind)) return false;
  }
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(end); ++i) {
    if (kind_of(self, mlirOperationGetOperand(end, i)) == KIND_LANE) return false;
  }
  return true;
}

bool o3_vector_body_fits_along(const o3_nest_t *nest, int dim) {
  o3_arena_t *scratch = o3_arena_create();
  lanes_t self = {nest, dim, scratch ? o3_ptr_map_create(scratch) : NULL};
  bool all = self.kinds && fits(&self);
  o3_arena_destroy(scratch);
  return all;
}

bool o3_vector_body_fits(const o3_nest_t *nest) { return o3_vector_body_fits_along(nest, -1); }

/* ---- Cloning ---- */

typedef struct cloner {
  lanes_t lanes;
  o3_builder_t *builder;
  int width;
  const MlirValue *ivs;            /* of the nest's dims; what that of the lanes is does not matter */
  o3_ptr_map_t *scalars, *vectors; /* MlirValue.ptr: of the body -> what stands for it */
} cloner_t;

static o3_status_t put(o3_ptr_map_t *map, MlirValue old, MlirValue made) {
  if (o3_ptr_map_put(map, old.ptr, (void *)(uintptr_t)made.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static MlirValue scalar_of(const cloner_t *self, MlirValue old) {
  MlirValue made = {.ptr = o3_ptr_map_get(self->scalars, old.ptr)};
  return mlirValueIsNull(made) ? old : made;
}

static o3_status_t vector_of(cloner_t *self, MlirValue old, MlirValue *vector) {
  vector->ptr = o3_ptr_map_get(self->vectors, old.ptr);
  if (!mlirValueIsNull(*vector)) return NULL;
  *vector = o3_vector_broadcast(self->builder, self->width, scalar_of(self, old));
  return put(self->vectors, old, *vector);
}

static void insert(const o3_builder_t *builder, MlirOperation op) {
  if (mlirOperationIsNull(builder->before)) {
    mlirBlockAppendOwnedOperation(builder->block, op);
  } else {
    mlirBlockInsertOwnedOperationBefore(builder->block, builder->before, op);
  }
}

static o3_status_t clone_scalar(cloner_t *self, MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0);
  if (o3_op_is(op, "linalg.index")) return put(self->scalars, result, self->ivs[o3_op_int(op, "dim", 0)]);
  MlirOperation copy = mlirOperationClone(op);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
    mlirOperationSetOperand(copy, i, scalar_of(self, mlirOperationGetOperand(op, i)));
  insert(self->builder, copy);
  return put(self->scalars, result, mlirOperationGetResult(copy, 0));
}

/* From the first lane's place on. */
static o3_status_t load_vector(cloner_t *self, MlirOperation op) {
  MlirValue operands[O3_IR_MAX_RANK + 1], result = mlirOperationGetResult(op, 0);
  int count = (int)mlirOperationGetNumOperands(op);
  for (int i = 0; i < count - 1; ++i) operands[i] = scalar_of(self, mlirOperationGetOperand(op, i));
  operands[count - 1] = o3_build_index(self->builder, 0);
  MlirType type = o3_vector_type(self->width, mlirValueGetType(result));
  return put(self->vectors, result, o3_build1(self->builder, "vector.load", type, count, operands));
}

static o3_status_t clone_vector(cloner_t *self, MlirOperation op) {
  MlirValue operands[8];
  intptr_t count = mlirOperationGetNumOperands(op);
  if (o3_op_is(op, "memref.load")) return load_vector(self, op);
  if (count > 8) return o3_status_create(O3_STATUS_INTERNAL, "an arith op has %d operands", (int)count);
  for (intptr_t i = 0; i < count; ++i) O3_TRY(vector_of(self, mlirOperationGetOperand(op, i), &operands[i]));
  MlirOperation copy = mlirOperationClone(op);
  insert(self->builder, copy);
  for (intptr_t i = 0; i < count; ++i) mlirOperationSetOperand(copy, i, operands[i]);
  MlirValue result = mlirOperationGetResult(copy, 0);
  mlirValueSetType(result, o3_vector_type(self->width, mlirValueGetType(result)));
  return put(self->vectors, mlirOperationGetResult(op, 0), result);
}

static o3_status_t clone_op(cloner_t *self, MlirOperation op) {
  kind_t kind = kind_of_result(&self->lanes, op);
  O3_ASSERT(kind != KIND_NONE, "o3_vector_body_fits has said yes");
  if (!note_kind(&self->lanes, op, kind)) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  if (kind == KIND_LANE) return NULL;
  return kind == KIND_UNIFORM ? clone_scalar(self, op) : clone_vector(self, op);
}

static o3_status_t clone_body(cloner_t *self, const MlirValue *arguments, MlirValue *yields) {
  const o3_nest_t *nest = self->lanes.nest;
  O3_TRY_ALLOC(self->lanes.kinds && self->scalars && self->vectors);
  for (int i = 0; i < nest->num_operands; ++i)
    O3_TRY(put(self->vectors, mlirBlockGetArgument(nest->body, i), arguments[i]));
  MlirOperation op = mlirBlockGetFirstOperation(nest->body), end = mlirBlockGetTerminator(nest->body);
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op)) O3_TRY(clone_op(self, op));
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(end); ++i)
    O3_TRY(vector_of(self, mlirOperationGetOperand(end, i), &yields[i]));
  return NULL;
}

o3_status_t o3_vector_body_build_along(const o3_nest_t *nest, int dim, const MlirValue *ivs,
                                       o3_builder_t *builder, int width, const MlirValue *arguments,
                                       MlirValue *yields) {
  o3_arena_t *scratch = o3_arena_create();
  O3_TRY_ALLOC(scratch);
  cloner_t self = {.lanes = {nest, dim, o3_ptr_map_create(scratch)},
                   .builder = builder,
                   .width = width,
                   .ivs = ivs,
                   .scalars = o3_ptr_map_create(scratch),
                   .vectors = o3_ptr_map_create(scratch)};
  o3_status_t status = clone_body(&self, arguments, yields);
  o3_arena_destroy(scratch);
  return status;
}

o3_status_t o3_vector_body_build(const o3_nest_t *nest, o3_builder_t *builder, int width,
                                 const MlirValue *arguments, MlirValue *yields) {
  return o3_vector_body_build_along(nest, -1, NULL, builder, width, arguments, yields);
}
