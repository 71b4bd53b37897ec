#include "target/cpu/alias.h"

#include "target/cpu/cpu_ir.h"

typedef struct follower {
  o3_aliases_t *aliases;
  o3_ptr_map_t *seen;
} follower_t;

static o3_status_t add_value(follower_t *self, MlirValue value) {
  if (!mlirTypeIsAMemRef(mlirValueGetType(value)) || o3_ptr_map_get(self->seen, value.ptr)) return NULL;
  bool ok = o3_ptr_map_put(self->seen, value.ptr, self) &&
            o3_ptr_vec_push(&self->aliases->values, (void *)(uintptr_t)value.ptr);
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

typedef o3_status_t (*follow_fn_t)(follower_t *self, MlirOperation user, intptr_t operand);

/* The results are the memory itself. */
static o3_status_t follow_results(follower_t *self, MlirOperation user, intptr_t operand) {
  (void)operand;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(user); ++i)
    O3_TRY(add_value(self, mlirOperationGetResult(user, i)));
  return NULL;
}

/* Reads, writes, looks at sizes: the memory is done with after the op. */
static o3_status_t follow_use(follower_t *self, MlirOperation user, intptr_t operand) {
  (void)self, (void)user, (void)operand;
  return NULL;
}

static o3_status_t follow_store(follower_t *self, MlirOperation user, intptr_t operand) {
  (void)user;
  if (operand == 0) self->aliases->escapes = true;
  return NULL;
}

/* A kernel without results keeps nothing. */
static o3_status_t follow_call(follower_t *self, MlirOperation user, intptr_t operand) {
  (void)operand;
  if (mlirOperationGetNumResults(user)) self->aliases->escapes = true;
  return NULL;
}

static o3_status_t follow_return(follower_t *self, MlirOperation user, intptr_t operand) {
  (void)user, (void)operand;
  self->aliases->returned = true;
  return NULL;
}

static MlirBlock region_block(MlirOperation op, int region) {
  return mlirRegionGetFirstBlock(mlirOperationGetRegion(op, region));
}

static o3_status_t follow_for(follower_t *self, MlirOperation loop, intptr_t operand) {
  O3_TRY(add_value(self, mlirBlockGetArgument(region_block(loop, 0), operand - 2)));
  return add_value(self, mlirOperationGetResult(loop, operand - 3));
}

static o3_status_t follow_while(follower_t *self, MlirOperation loop, intptr_t operand) {
  return add_value(self, mlirBlockGetArgument(region_block(loop, 0), operand));
}

/* A yield of what was made outside the loop, such as the carried buffer itself, carries nothing new. */
static void mark_carried(follower_t *self, MlirOperation loop) {
  MlirOperation root = o3_value_def((MlirValue){self->aliases->values.items[0]});
  if (mlirOperationIsNull(root) || o3_cpu_is_inside(root, loop)) self->aliases->carried = true;
}

static o3_status_t follow_yield(follower_t *self, MlirOperation yield, intptr_t operand) {
  MlirOperation parent = mlirOperationGetParentOperation(yield);
  if (o3_op_is(parent, "scf.while")) {
    mark_carried(self, parent);
    return add_value(self, mlirBlockGetArgument(region_block(parent, 0), operand));
  }
  if (o3_op_is(parent, "scf.for")) {
    mark_carried(self, parent);
    O3_TRY(add_value(self, mlirBlockGetArgument(region_block(parent, 0), operand + 1)));
  } else if (!o3_op_is(parent, "scf.if") && !o3_op_is(parent, "scf.index_switch") &&
             !o3_op_is(parent, "scf.execute_region")) {
    self->aliases->escapes = true;
    return NULL;
  }
  return add_value(self, mlirOperationGetResult(parent, operand));
}

static o3_status_t follow_condition(follower_t *self, MlirOperation condition, intptr_t operand) {
  MlirOperation loop = mlirOperationGetParentOperation(condition);
  mark_carried(self, loop);
  O3_TRY(add_value(self, mlirBlockGetArgument(region_block(loop, 1), operand - 1)));
  return add_value(self, mlirOperationGetResult(loop, operand - 1));
}

static const struct {
  const char *op;
  follow_fn_t follow;
} RULES[] = {
    {"memref.subview", follow_results},
    {"memref.cast", follow_results},
    {"memref.reinterpret_cast", follow_results},
    {"memref.expand_shape", follow_results},
    {"memref.collapse_shape", follow_results},
    {"memref.reshape", follow_results},
    {"memref.transpose", follow_results},
    {"memref.view", follow_results},
    {"memref.assume_alignment", follow_results},
    {"memref.extract_strided_metadata", follow_results},
    {"arith.select", follow_results},
    {"memref.load", follow_use},
    {"memref.store", follow_store},
    {"memref.dim", follow_use},
    {"memref.rank", follow_use},
    {"memref.dealloc", follow_use},
    {"memref.copy", follow_use},
    {"memref.extract_aligned_pointer_as_index", follow_use},
    {"vector.load", follow_use},
    {"vector.transfer_read", follow_use},
    {"scf.for", follow_for},
    {"scf.while", follow_while},
    {"scf.yield", follow_yield},
    {"scf.condition", follow_condition},
    {"func.call", follow_call},
    {"func.return", follow_return},
};

static o3_status_t follow(follower_t *self, MlirOperation user, intptr_t operand) {
  MlirStringRef name = o3_op_name(user);
  for (size_t i = 0; i < sizeof(RULES) / sizeof(RULES[0]); ++i) {
    if (o3_str_equal(name, RULES[i].op)) return RULES[i].follow(self, user, operand);
  }
  if (!o3_op_is_of(user, "linalg")) self->aliases->escapes = true;
  return NULL;
}

o3_status_t o3_aliases_of(o3_arena_t *arena, MlirValue buffer, o3_aliases_t *aliases) {
  *aliases = (o3_aliases_t){.values = o3_ptr_vec(arena), .users = o3_ptr_vec(arena)};
  follower_t self = {.aliases = aliases, .seen = o3_ptr_map_create(arena)};
  O3_TRY_ALLOC(self.seen);
  O3_TRY(add_value(&self, buffer));
  for (size_t i = 0; i < aliases->values.count; ++i) {
    MlirOpOperand use = mlirValueGetFirstUse((MlirValue){aliases->values.items[i]});
    for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
      MlirOperation user = mlirOpOperandGetOwner(use);
      if (!o3_ptr_vec_push(&aliases->users, user.ptr))
        return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
      O3_TRY(follow(&self, user, mlirOpOperandGetOperandNumber(use)));
    }
  }
  return NULL;
}

static MlirBlock block_of(MlirValue value) {
  return mlirValueIsABlockArgument(value) ? mlirBlockArgumentGetOwner(value)
                                          : mlirOperationGetBlock(mlirOpResultGetOwner(value));
}

static bool is_block_inside(MlirBlock block, MlirBlock outer) {
  while (!mlirBlockIsNull(block)) {
    if (mlirBlockEqual(block, outer)) return true;
    MlirOperation parent = mlirBlockGetParentOperation(block);
    block = mlirOperationIsNull(parent) ? (MlirBlock){0} : mlirOperationGetBlock(parent);
  }
  return false;
}

bool o3_aliases_leave_block(const o3_aliases_t *aliases, MlirBlock block) {
  if (aliases->escapes || aliases->returned) return true;
  for (size_t i = 0; i < aliases->values.count; ++i) {
    if (!is_block_inside(block_of((MlirValue){aliases->values.items[i]}), block)) return true;
  }
  return false;
}
