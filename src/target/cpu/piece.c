#include "target/cpu/piece.h"

#include "target/cpu/cpu_ir.h"

/* While the operands of an op and of those inside it are looked at. */
typedef struct taking {
  o3_piece_t *piece;
  MlirOperation op;
} taking_t;

static o3_status_t no_memory(bool ok) {
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

o3_status_t o3_piece_begin(o3_arena_t *arena, bool (*is_remade)(MlirOperation def), o3_piece_t *piece) {
  *piece = (o3_piece_t){.block = mlirBlockCreate(0, NULL, NULL),
                        .is_remade = is_remade,
                        .inside = o3_ptr_map_create(arena),
                        .operands = o3_ptr_vec(arena),
                        .arena = arena};
  return no_memory(piece->inside != NULL);
}

/* ---- Operands ---- */

static MlirOperation owner_of(MlirValue value) {
  return mlirValueIsABlockArgument(value) ? mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value))
                                          : mlirOpResultGetOwner(value);
}

static o3_status_t map(o3_piece_t *piece, MlirValue value, MlirValue *inside);

/* A copy of the op, of operands that are copies, too, or arguments. */
static o3_status_t remake(o3_piece_t *piece, MlirOperation def) {
  MlirOperation copy = mlirOperationClone(def);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(def); ++i) {
    MlirValue operand;
    O3_TRY(map(piece, mlirOperationGetOperand(def, i), &operand));
    mlirOperationSetOperand(copy, i, operand);
  }
  mlirBlockAppendOwnedOperation(piece->block, copy);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(def); ++i)
    O3_TRY(no_memory(o3_ptr_map_put(piece->inside, mlirOperationGetResult(def, i).ptr,
                                    (void *)(uintptr_t)mlirOperationGetResult(copy, i).ptr)));
  return NULL;
}

static o3_status_t map(o3_piece_t *piece, MlirValue value, MlirValue *inside) {
  inside->ptr = o3_ptr_map_get(piece->inside, value.ptr);
  if (!mlirValueIsNull(*inside)) return NULL;
  MlirOperation def = o3_value_def(value);
  if (!mlirOperationIsNull(def) && piece->is_remade(def)) {
    O3_TRY(remake(piece, def));
    inside->ptr = o3_ptr_map_get(piece->inside, value.ptr);
    return NULL;
  }
  MlirLocation location = mlirLocationUnknownGet(mlirTypeGetContext(mlirValueGetType(value)));
  *inside = mlirBlockAddArgument(piece->block, mlirValueGetType(value), location);
  O3_TRY(no_memory(o3_ptr_vec_push(&piece->operands, (void *)(uintptr_t)value.ptr)));
  return no_memory(o3_ptr_map_put(piece->inside, value.ptr, (void *)(uintptr_t)inside->ptr));
}

static o3_status_t map_operands(MlirOperation op, void *context) {
  const taking_t *self = context;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue value = mlirOperationGetOperand(op, i), inside;
    if (o3_cpu_is_inside(owner_of(value), self->op)) continue;
    O3_TRY(map(self->piece, value, &inside));
    mlirOperationSetOperand(op, i, inside);
  }
  return NULL;
}

o3_status_t o3_piece_take(o3_piece_t *piece, MlirOperation op) {
  taking_t taking = {piece, op};
  O3_TRY(map_operands(op, &taking));
  O3_TRY(o3_walk(op, map_operands, &taking));
  mlirOperationRemoveFromParent(op);
  mlirBlockAppendOwnedOperation(piece->block, op);
  return NULL;
}

/* ---- The function ---- */

static o3_status_t add_function(o3_piece_t *piece, MlirModule module, const char *name,
                                MlirLocation location) {
  MlirContext context = mlirModuleGetContext(module);
  intptr_t count = mlirBlockGetNumArguments(piece->block);
  MlirType *types = O3_ARENA_ARRAY(piece->arena, MlirType, (size_t)count + 1);
  O3_TRY_ALLOC(types);
  for (intptr_t i = 0; i < count; ++i) types[i] = mlirValueGetType(mlirBlockGetArgument(piece->block, i));
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, piece->block);
  MlirAttribute noinline_ = o3_attr_string(context, "noinline");
  MlirType type = mlirFunctionTypeGet(context, count, types, 0, NULL);
  o3_op_spec_t spec = {.name = "func.func",
                       .num_attrs = 4,
                       .attrs = (o3_attr_t[]){{"sym_name", o3_attr_string(context, name)},
                                              {"sym_visibility", o3_attr_string(context, "private")},
                                              {"function_type", o3_attr_type(type)},
                                              {"passthrough", mlirArrayAttrGet(context, 1, &noinline_)}},
                       .num_regions = 1,
                       .regions = &region};
  o3_builder_t b = o3_builder_at_end(mlirModuleGetBody(module), location);
  o3_build(&b, &spec);
  return NULL;
}

o3_status_t o3_piece_finish(o3_piece_t *piece, MlirModule module, const char *name, o3_builder_t *caller) {
  size_t count = piece->operands.count;
  MlirValue *operands = O3_ARENA_ARRAY(piece->arena, MlirValue, count + 1);
  O3_TRY_ALLOC(operands);
  for (size_t i = 0; i < count; ++i) operands[i].ptr = piece->operands.items[i];
  o3_builder_t b = o3_builder_at_end(piece->block, caller->location);
  o3_build0(&b, "func.return", O3_NO_VALUES);
  o3_cpu_call(caller, name, (int)count, operands);
  return add_function(piece, module, name, caller->location);
}
