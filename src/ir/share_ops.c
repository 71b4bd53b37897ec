/* Upstream's CSE looks for equal ops by a hash of name, attributes, types and operands: what a region reads
 * from outside is not in it. The copies that give images their borders read the image in their region, so all
 * of one shape have one hash, and each is compared with each: 2,500 of them took 30 s. Each op with regions
 * has therefore a hash of what is in them as an attribute while CSE runs; equal ops have equal ones.
 */
#include "ir/share_ops.h"

#include "base/map.h"
#include "ir/build.h"
#include "ir/context.h"

#define HASH_ATTR "o3.region_hash"

typedef struct hasher {
  o3_ptr_map_t *hashes; /* op -> hash, as a pointer */
} hasher_t;

/* The finalizer of SplitMix64 (Steele et al., 2014). */
static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static uint64_t add(uint64_t hash, uint64_t more) { return mix(hash + 0x9e3779b97f4a7c15u + mix(more)); }

static uint64_t add_pointer(uint64_t hash, const void *pointer) { return add(hash, (uintptr_t)pointer); }

/* Arguments of blocks by their place: those of equal regions are equal. */
static uint64_t hash_of_value(const hasher_t *self, MlirValue value) {
  if (mlirValueIsABlockArgument(value)) return mix((uint64_t)mlirBlockArgumentGetArgNumber(value) + 1);
  MlirOperation def = mlirOpResultGetOwner(value);
  uint64_t hash = (uintptr_t)o3_ptr_map_get(self->hashes, def.ptr);
  return add(hash, (uint64_t)mlirOpResultGetResultNumber(value));
}

static uint64_t hash_of_regions(const hasher_t *self, MlirOperation op) {
  uint64_t hash = 0;
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); ++r) {
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
    for (; !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block)) {
      MlirOperation inner = mlirBlockGetFirstOperation(block);
      for (; !mlirOperationIsNull(inner); inner = mlirOperationGetNextInBlock(inner))
        hash = add(hash, (uintptr_t)o3_ptr_map_get(self->hashes, inner.ptr));
    }
  }
  return hash;
}

/* Operands in any order: those of a commutative op are equal in any. */
static uint64_t hash_of_op(const hasher_t *self, MlirOperation op) {
  uint64_t hash = add_pointer(0, mlirOperationGetName(op).ptr), operands = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); ++i)
    hash = add_pointer(hash, mlirOperationGetAttribute(op, i).attribute.ptr);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    hash = add_pointer(hash, mlirValueGetType(mlirOperationGetResult(op, i)).ptr);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
    operands += mix(hash_of_value(self, mlirOperationGetOperand(op, i)));
  return add(hash, operands);
}

/* After the ops in its regions. */
static o3_status_t note_hash(MlirOperation op, void *context) {
  hasher_t *self = context;
  uint64_t hash = hash_of_op(self, op);
  if (mlirOperationGetNumRegions(op)) {
    uint64_t inside = hash_of_regions(self, op);
    hash = add(hash, inside);
    o3_op_attr_set(op, HASH_ATTR, o3_attr_i64(mlirOperationGetContext(op), (int64_t)inside));
  }
  bool ok = o3_ptr_map_put(self->hashes, op.ptr, (void *)(uintptr_t)hash);
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static o3_status_t drop_hash(MlirOperation op, void *context) {
  (void)context;
  if (mlirOperationGetNumRegions(op)) mlirOperationRemoveAttributeByName(op, O3_STR(HASH_ATTR));
  return NULL;
}

o3_status_t o3_ir_share_ops(o3_arena_t *scratch, MlirModule module) {
  hasher_t self = {.hashes = o3_ptr_map_create(scratch)};
  O3_TRY_ALLOC(self.hashes);
  O3_TRY(o3_ir_run_pipeline(module, "builtin.module(canonicalize)"));
  O3_TRY(o3_walk(mlirModuleGetOperation(module), note_hash, &self));
  O3_TRY(o3_ir_run_pipeline(module, "builtin.module(cse)"));
  return o3_walk(mlirModuleGetOperation(module), drop_hash, NULL);
}
