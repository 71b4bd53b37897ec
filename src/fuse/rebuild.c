#include "fuse/rebuild.h"

#include "fuse/mark_causal.h"

#include <string.h>

int o3_rebuild_input(o3_rebuild_t *rebuild, MlirValue value, MlirAffineMap map) {
  for (int i = 0; i < rebuild->num_inputs; ++i) {
    if (mlirValueEqual(rebuild->inputs[i], value) && mlirAffineMapEqual(rebuild->maps[i], map)) return i;
  }
  if (rebuild->num_inputs == O3_DEP_MAX_OPERANDS - 1) return -1;
  rebuild->inputs[rebuild->num_inputs] = value;
  rebuild->maps[rebuild->num_inputs] = map;
  return rebuild->num_inputs++;
}

bool o3_rebuild_knows_loops(const o3_rebuild_t *r) {
  for (int d = 0; d < r->like->num_dims; ++d) {
    bool found = o3_dep_position(r->out_map, d) >= 0;
    for (int i = 0; i < r->num_inputs && !found; ++i) {
      for (int p = 0; p < (int)mlirAffineMapGetNumResults(r->maps[i]) && !found; ++p)
        found = o3_dep_loop(r->maps[i], p) == d;
    }
    if (!found) return false;
  }
  return true;
}

o3_status_t o3_rebuild_begin(o3_rebuild_t *rebuild, o3_arena_t *arena) {
  MlirType types[O3_DEP_MAX_OPERANDS];
  MlirLocation locations[O3_DEP_MAX_OPERANDS], location = mlirOperationGetLocation(rebuild->like->op);
  for (int i = 0; i <= rebuild->num_inputs; ++i) {
    MlirType type = mlirValueGetType(i < rebuild->num_inputs ? rebuild->inputs[i] : rebuild->out);
    types[i] = mlirTypeIsARankedTensor(type) ? o3_type_element(type) : type;
    locations[i] = location;
  }
  rebuild->arena = arena;
  rebuild->block = mlirBlockCreate(rebuild->num_inputs + 1, types, locations);
  return NULL;
}

/* ---- Cloning ---- */

typedef struct cloner {
  o3_rebuild_t *rebuild;
  const MlirAffineMap *loops;
  o3_ptr_map_t *values;
} cloner_t;

static o3_status_t put(cloner_t *self, MlirValue from, MlirValue to) {
  bool ok = o3_ptr_map_put(self->values, from.ptr, (void *)(uintptr_t)to.ptr);
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static o3_status_t use_new_operands(MlirOperation op, void *context) {
  const cloner_t *self = context;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    const void *to = o3_ptr_map_get(self->values, mlirOperationGetOperand(op, i).ptr);
    if (to) mlirOperationSetOperand(op, i, (MlirValue){to});
  }
  return NULL;
}

static MlirValue index_of_loop(o3_builder_t *b, int loop) {
  return o3_build1_attrs(b, "linalg.index", o3_build_index_type(b), O3_NO_VALUES,
                         O3_ATTRS({"dim", o3_attr_i64(b->context, loop)}));
}

/* The old op's position |dim| as an expression of the new op's. */
static MlirValue position(const cloner_t *self, o3_builder_t *b, int dim) {
  MlirAffineExpr symbols[O3_IR_MAX_RANK], expr = mlirAffineMapGetResult(*self->loops, dim);
  MlirValue values[O3_IR_MAX_RANK];
  int count = self->rebuild->like->num_dims;
  for (int d = 0; d < count; ++d) {
    symbols[d] = mlirAffineSymbolExprGet(b->context, d);
    values[d] = index_of_loop(b, d);
  }
  MlirAffineMap to_symbols = mlirAffineMapGet(b->context, 0, count, count, symbols);
  return o3_build_affine(b, mlirAffineExprCompose(expr, to_symbols), count, values);
}

static o3_status_t clone_op(cloner_t *self, o3_builder_t *b, MlirOperation op) {
  if (self->loops && o3_op_is(op, "linalg.index"))
    return put(self, mlirOperationGetResult(op, 0), position(self, b, (int)o3_op_int(op, "dim", 0)));
  MlirOperation copy = mlirOperationClone(op);
  mlirBlockAppendOwnedOperation(b->block, copy);
  O3_TRY(use_new_operands(copy, self));
  O3_TRY(o3_walk(copy, use_new_operands, self));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    O3_TRY(put(self, mlirOperationGetResult(op, i), mlirOperationGetResult(copy, i)));
  return NULL;
}

o3_status_t o3_rebuild_clone(o3_rebuild_t *rebuild, MlirBlock body, const MlirValue *args,
                             const MlirAffineMap *loops, MlirValue *result) {
  cloner_t self = {rebuild, loops, o3_ptr_map_create(rebuild->arena)};
  O3_TRY_ALLOC(self.values);
  o3_builder_t b = o3_builder_at_end(rebuild->block, mlirOperationGetLocation(rebuild->like->op));
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(body); ++i) {
    if (!mlirValueIsNull(args[i])) O3_TRY(put(&self, mlirBlockGetArgument(body, i), args[i]));
  }
  MlirOperation end = mlirBlockGetTerminator(body), op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op)) O3_TRY(clone_op(&self, &b, op));
  *result = mlirOperationGetOperand(end, 0);
  const void *mapped = o3_ptr_map_get(self.values, result->ptr);
  if (mapped) *result = (MlirValue){mapped};
  return NULL;
}

/* ---- The op ---- */

MlirOperation o3_rebuild_build(o3_rebuild_t *rebuild, MlirValue result, MlirAttribute iterator_types) {
  MlirOperation like = rebuild->like->op;
  MlirContext context = mlirOperationGetContext(like);
  o3_builder_t b = o3_builder_before(like), inner = o3_builder_at_end(rebuild->block, b.location);
  MlirAttribute maps[O3_DEP_MAX_OPERANDS];
  MlirType type = mlirValueGetType(rebuild->out);
  int count = rebuild->num_inputs;
  o3_build0(&inner, "linalg.yield", 1, &result);
  for (int i = 0; i < count; ++i) maps[i] = mlirAffineMapAttrGet(rebuild->maps[i]);
  maps[count] = mlirAffineMapAttrGet(rebuild->out_map);
  rebuild->inputs[count] = rebuild->out;
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, rebuild->block);
  int32_t segments[2] = {count, 1};
  o3_op_spec_t spec = {
      .name = "linalg.generic",
      .num_operands = count + 1,
      .operands = rebuild->inputs,
      .num_results = 1,
      .results = &type,
      .num_attrs = 5,
      .attrs = (o3_attr_t[]){{"indexing_maps", mlirArrayAttrGet(context, count + 1, maps)},
                             {"iterator_types", iterator_types},
                             {"operandSegmentSizes", mlirDenseI32ArrayGet(context, 2, segments)},
                             {"o3.kernel", o3_op_attr(like, "o3.kernel")},
                             {O3_UP_TO_DIAGONAL, o3_op_attr(like, O3_UP_TO_DIAGONAL)}},
      .num_regions = 1,
      .regions = &region};
  return o3_build(&b, &spec);
}

MlirOperation o3_rebuild_finish(o3_rebuild_t *rebuild, MlirValue result) {
  MlirOperation like = rebuild->like->op;
  MlirOperation op = o3_rebuild_build(rebuild, result, o3_op_attr(like, "iterator_types"));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(like, 0), mlirOperationGetResult(op, 0));
  mlirOperationDestroy(like);
  return op;
}
