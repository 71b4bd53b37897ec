/* What depends on constants alone is computed now, by the compiler's own code.
 *
 * The ops are gathered into a function without arguments, compiled for this machine and run (env->evaluate);
 * so folding has no second definition of any op that could differ from the first.
 * Needs: a normalized module. Guarantees: no pure op has constant operands only, except where the result
 * would be much larger than what it is made from (a broadcast scalar, a range).
 *
 *     %w2 = "o3.mul"(%w, %s)   // both o3.constant     =>     %w2 = "o3.constant"() {value = ...}
 */
#include <string.h>

#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

/* Results up to this size are always worth it; larger ones when they are at most twice their operands. */
enum { SMALL_RESULT_BYTES = 1 << 16 };
/* What is computed at once is in memory twice. Of ops whose results would make it more than so many bytes the
 * next turn takes care; what it takes in, and made an earlier one, is freed. */
enum { TURN_BYTES = 12 << 20 };
/* Nor does a turn take more ops: LLVM's time for a function of so many results grows with their square. */
enum { TURN_OPS = 128 };

static int64_t value_bytes(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  int64_t count = mlirTypeIsARankedTensor(type) ? o3_type_count(type) : -1;
  return count < 0 ? -1 : count * (o3_type_bits(o3_type_element(type)) / 8);
}

static int64_t result_bytes(MlirOperation op) {
  int64_t bytes = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    bytes += value_bytes(mlirOperationGetResult(op, i));
  return bytes;
}

/* The growth of transformed weights, and of what has o3.fold, was weighed when they were chosen. */
static bool is_worth_it(MlirOperation op) {
  int64_t from = 0, to = 0;
  if (o3_op_is(op, "o3.winograd_weights") || !mlirAttributeIsNull(o3_op_attr(op, "o3.fold"))) return true;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
    from += value_bytes(mlirOperationGetOperand(op, i));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i) {
    int64_t bytes = value_bytes(mlirOperationGetResult(op, i));
    if (bytes < 0) return false;
    to += bytes;
  }
  return to <= SMALL_RESULT_BYTES || to <= 2 * from;
}

typedef struct folding {
  o3_pass_env_t *env;
  o3_ptr_map_t *known; /* op -> itself: constants and ops that will be computed */
  o3_ptr_vec_t ops;    /* to compute, in order */
  int64_t bytes;       /* of their results */
  o3_ptr_vec_t roots;  /* values of them that the rest reads */
} folding_t;

static bool operands_known(const folding_t *self, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirOperation def = o3_value_def(mlirOperationGetOperand(op, i));
    if (mlirOperationIsNull(def) || !o3_ptr_map_get(self->known, def.ptr)) return false;
  }
  return mlirOperationGetNumOperands(op) > 0;
}

static o3_status_t visit(MlirOperation op, void *context) {
  folding_t *self = context;
  bool constant = o3_op_is(op, "o3.constant");
  if (!constant &&
      !(o3_op_is_pure(op) && operands_known(self, op) && !o3_op_reads_sizes(op) && is_worth_it(op)))
    return NULL;
  int64_t bytes = constant ? 0 : result_bytes(op);
  bool full = self->bytes && self->bytes + bytes > TURN_BYTES;
  if (!constant && (full || self->ops.count >= TURN_OPS)) return NULL;
  self->bytes += bytes;
  if (!o3_ptr_map_put(self->known, op.ptr, op.ptr) || (!constant && !o3_ptr_vec_push(&self->ops, op.ptr)))
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  return NULL;
}

static bool is_read_outside(const folding_t *self, MlirValue value) {
  MlirOpOperand use = mlirValueGetFirstUse(value);
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    if (!o3_ptr_map_get(self->known, mlirOpOperandGetOwner(use).ptr)) return true;
  }
  return false;
}

static o3_status_t find_roots(folding_t *self) {
  for (size_t i = 0; i < self->ops.count; ++i) {
    MlirOperation op = {.ptr = self->ops.items[i]};
    for (intptr_t r = 0; r < mlirOperationGetNumResults(op); ++r) {
      MlirValue value = mlirOperationGetResult(op, r);
      if (is_read_outside(self, value) && !o3_ptr_vec_push(&self->roots, (void *)(uintptr_t)value.ptr))
        return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
    }
  }
  return NULL;
}

/* ---- The function to run ---- */

typedef struct cloner {
  MlirBlock block;
  o3_ptr_map_t *values; /* old value -> new value */
} cloner_t;

/* Constants are cloned where they are first read; everything else was cloned before its readers. */
static o3_status_t clone(cloner_t *self, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue old = mlirOperationGetOperand(op, i);
    if (!o3_ptr_map_get(self->values, old.ptr)) O3_TRY(clone(self, o3_value_def(old)));
  }
  MlirOperation copy = mlirOperationClone(op);
  mlirBlockAppendOwnedOperation(self->block, copy);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    void *value = o3_ptr_map_get(self->values, mlirOperationGetOperand(op, i).ptr);
    mlirOperationSetOperand(copy, i, (MlirValue){.ptr = value});
  }
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i) {
    void *made = (void *)(uintptr_t)mlirOperationGetResult(copy, i).ptr;
    if (!o3_ptr_map_put(self->values, mlirOperationGetResult(op, i).ptr, made))
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  return NULL;
}

static o3_status_t build_module(const folding_t *self, MlirModule module) {
  cloner_t cloner = {.block = mlirBlockCreate(0, NULL, NULL), .values = o3_ptr_map_create(self->env->arena)};
  MlirValue *roots = O3_ARENA_ARRAY(self->env->arena, MlirValue, self->roots.count + 1);
  o3_status_t status =
      cloner.values && roots ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  for (size_t i = 0; !status && i < self->ops.count; ++i)
    status = clone(&cloner, (MlirOperation){.ptr = self->ops.items[i]});
  if (status) {
    mlirBlockDestroy(cloner.block);
    return status;
  }
  for (size_t i = 0; i < self->roots.count; ++i)
    roots[i] = (MlirValue){.ptr = o3_ptr_map_get(cloner.values, self->roots.items[i])};
  return o3_main_build(self->env->arena, module, cloner.block, (int)self->roots.count, roots);
}

/* ---- Putting the results in ---- */

static void replace_roots(const folding_t *self, const MlirAttribute *values) {
  for (size_t i = 0; i < self->roots.count; ++i) {
    MlirValue root = {.ptr = self->roots.items[i]};
    MlirOperation op = mlirOpResultGetOwner(root);
    o3_builder_t builder = o3_builder_after(op);
    MlirValue constant = o3_build1_attrs(&builder, "o3.constant", mlirValueGetType(root), O3_NO_VALUES,
                                         O3_ATTRS({"value", values[i]}));
    mlirValueReplaceAllUsesOfWith(root, constant);
  }
  for (size_t i = self->ops.count; i-- > 0;) mlirOperationDestroy((MlirOperation){.ptr = self->ops.items[i]});
}

static o3_status_t evaluate(const folding_t *self) {
  MlirModule module = mlirModuleCreateEmpty(mlirLocationUnknownGet(self->env->context));
  MlirAttribute *values = O3_ARENA_ARRAY(self->env->arena, MlirAttribute, self->roots.count + 1);
  o3_status_t status =
      values ? build_module(self, module) : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  if (!status) status = self->env->evaluate(self->env, module, (int)self->roots.count, values);
  mlirModuleDestroy(module);
  if (status) return o3_status_annotate(status, "folding constants");
  replace_roots(self, values);
  return NULL;
}

/* Constants that only went into others keep their memory as long as they stand there. */
static o3_status_t erase_unread(MlirOperation op, void *context) {
  (void)context;
  bool unread =
      o3_op_is(op, "o3.constant") && mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(op, 0)));
  if (unread) mlirOperationDestroy(op);
  return NULL;
}

/* |more| is set when something was computed. */
static o3_status_t fold_turn(o3_pass_env_t *env, MlirModule module, bool *more) {
  folding_t self = {.env = env,
                    .known = o3_ptr_map_create(env->arena),
                    .ops = o3_ptr_vec(env->arena),
                    .roots = o3_ptr_vec(env->arena)};
  O3_TRY_ALLOC(self.known);
  O3_TRY(o3_walk(mlirModuleGetOperation(module), visit, &self));
  *more = self.ops.count > 0;
  if (!*more) return NULL;
  O3_TRY(find_roots(&self));
  return evaluate(&self);
}

o3_status_t o3_rewrite_fold_constants(o3_pass_env_t *env, MlirModule module) {
  bool more = env->evaluate != NULL;
  while (more) {
    size_t first = o3_weights_count(env->weights);
    O3_TRY(fold_turn(env, module, &more));
    O3_TRY(o3_walk(mlirModuleGetOperation(module), erase_unread, NULL));
    O3_TRY(o3_weights_drop_unused(env->weights, module, first));
    o3_weights_trim(env->weights);
  }
  return NULL;
}
