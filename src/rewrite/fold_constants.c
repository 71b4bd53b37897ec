/* What depends on constants alone is computed now, by the compiler's own code.
 *
 * The ops are gathered into functions, compiled for this machine and run (env->evaluate); so folding has no
 * second definition of any op that could differ from the first. Layers whose weights are packed in the same
 * way share one. Needs: a normalized module. Guarantees: no pure op has constant operands only, except where
 * the result would be much larger than what it is made from (a broadcast scalar, a range).
 *
 *     %w2 = "o3.mul"(%w, %s)   // both o3.constant     =>     %w2 = "o3.constant"() {value = ...}
 */
#include "rewrite/fold_parts.h"
#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

/* So many parts of a kind are worth a function of their own, which is given their constants in turn; fewer
 * are compiled together with others. */
enum { SHARED_PARTS = 4 };

/* What is compiled at once: all parts run one after another, or, if |shared|, the first with the inputs of
 * each. */
typedef struct batch {
  o3_pass_env_t *env;
  o3_ptr_vec_t parts; /* o3_fold_part_t */
  bool shared;
  size_t ops;
  int64_t bytes;
} batch_t;

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

static size_t num_parts_built(const batch_t *self) { return self->shared ? 1 : self->parts.count; }

static o3_status_t clone_parts(const batch_t *self, cloner_t *cloner) {
  for (size_t i = 0; i < num_parts_built(self); ++i) {
    const o3_fold_part_t *part = self->parts.items[i];
    for (size_t k = 0; k < part->ops.count; ++k)
      O3_TRY(clone(cloner, (MlirOperation){.ptr = part->ops.items[k]}));
  }
  return NULL;
}

/* The inputs of a shared function stand for constants. */
static o3_status_t add_inputs(const batch_t *self, cloner_t *cloner) {
  const o3_fold_part_t *part = self->parts.items[0];
  for (size_t i = 0; self->shared && i < part->inputs.count; ++i) {
    MlirValue constant = {.ptr = part->inputs.items[i]};
    MlirValue input = mlirBlockAddArgument(cloner->block, mlirValueGetType(constant),
                                           mlirLocationUnknownGet(self->env->context));
    if (!o3_ptr_map_put(cloner->values, constant.ptr, (void *)(uintptr_t)input.ptr))
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  return NULL;
}

/* The roots of all parts that are built, one part after another: |results|, if any, get their values. */
static size_t list_roots(const batch_t *self, const cloner_t *cloner, MlirValue *results) {
  size_t count = 0;
  for (size_t i = 0; i < num_parts_built(self); ++i) {
    const o3_fold_part_t *part = self->parts.items[i];
    for (size_t k = 0; k < part->roots.count; ++k, ++count)
      if (results) results[count] = (MlirValue){.ptr = o3_ptr_map_get(cloner->values, part->roots.items[k])};
  }
  return count;
}

static o3_status_t build_module(const batch_t *self, MlirModule module) {
  cloner_t cloner = {.block = mlirBlockCreate(0, NULL, NULL), .values = o3_ptr_map_create(self->env->arena)};
  size_t count = list_roots(self, NULL, NULL);
  MlirValue *roots = O3_ARENA_ARRAY(self->env->arena, MlirValue, count + 1);
  o3_status_t status =
      cloner.values && roots ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  if (!status) status = add_inputs(self, &cloner);
  if (!status) status = clone_parts(self, &cloner);
  if (status) {
    mlirBlockDestroy(cloner.block);
    return status;
  }
  list_roots(self, &cloner, roots);
  return o3_main_build(self->env->arena, module, cloner.block, (int)count, roots);
}

/* ---- Putting the results in ---- */

/* Readers go before what they read. */
static void erase_part(const o3_fold_part_t *part) {
  for (size_t k = part->ops.count; k-- > 0;) mlirOperationDestroy((MlirOperation){.ptr = part->ops.items[k]});
}

/* |values| are the results of all runs, as those of the parts one after another are without runs. */
static void replace_roots(const batch_t *self, const MlirAttribute *values) {
  for (size_t i = 0; i < self->parts.count; ++i) {
    const o3_fold_part_t *part = self->parts.items[i];
    for (size_t k = 0; k < part->roots.count; ++k) {
      MlirValue root = {.ptr = part->roots.items[k]};
      o3_builder_t builder = o3_builder_after(mlirOpResultGetOwner(root));
      MlirValue constant = o3_build1_attrs(&builder, "o3.constant", mlirValueGetType(root), O3_NO_VALUES,
                                           O3_ATTRS({"value", *values++}));
      mlirValueReplaceAllUsesOfWith(root, constant);
    }
    erase_part(part);
  }
}

/* The constants that the parts of a shared function read, part after part. */
static o3_status_t list_inputs(const batch_t *self, o3_evaluation_t *evaluation) {
  const o3_fold_part_t *first = self->parts.items[0];
  evaluation->num_inputs = (int)first->inputs.count;
  MlirAttribute *inputs = O3_ARENA_ARRAY(self->env->arena, MlirAttribute,
                                         self->parts.count * first->inputs.count + 1),
                *at = inputs;
  O3_TRY_ALLOC(inputs);
  for (size_t i = 0; i < self->parts.count; ++i) {
    const o3_fold_part_t *part = self->parts.items[i];
    for (size_t k = 0; k < part->inputs.count; ++k)
      *at++ = o3_op_attr(mlirOpResultGetOwner((MlirValue){.ptr = part->inputs.items[k]}), "value");
  }
  evaluation->inputs = inputs;
  return NULL;
}

static o3_status_t run_batch(const batch_t *self) {
  o3_evaluation_t evaluation = {.num_runs = self->shared ? (int)self->parts.count : 1,
                                .num_results = (int)list_roots(self, NULL, NULL)};
  size_t results = (size_t)evaluation.num_runs * (size_t)evaluation.num_results;
  evaluation.results = O3_ARENA_ARRAY(self->env->arena, MlirAttribute, results + 1);
  O3_TRY_ALLOC(evaluation.results);
  if (self->shared) O3_TRY(list_inputs(self, &evaluation));
  evaluation.module = mlirModuleCreateEmpty(mlirLocationUnknownGet(self->env->context));
  o3_status_t status = build_module(self, evaluation.module);
  if (!status) status = self->env->evaluate(self->env, &evaluation);
  mlirModuleDestroy(evaluation.module);
  if (status) return o3_status_annotate(status, "folding constants");
  replace_roots(self, evaluation.results);
  return NULL;
}

/* ---- Batches ---- */

static o3_status_t flush(batch_t *self) {
  if (self->parts.count) O3_TRY(run_batch(self));
  *self = (batch_t){.env = self->env, .parts = o3_ptr_vec(self->env->arena)};
  return NULL;
}

/* Of a kind that is not shared. */
static o3_status_t add_parts(batch_t *self, const o3_fold_kind_t *kind) {
  for (size_t i = 0; i < kind->parts.count; ++i) {
    o3_fold_part_t *part = kind->parts.items[i];
    bool full = self->ops + part->ops.count > O3_FOLD_MAX_OPS ||
                (self->bytes && self->bytes + part->bytes > O3_FOLD_MAX_BYTES);
    if (full) O3_TRY(flush(self));
    O3_TRY_ALLOC(o3_ptr_vec_push(&self->parts, part));
    self->ops += part->ops.count;
    self->bytes += part->bytes;
  }
  return NULL;
}

/* Nothing reads what they compute: such parts are of one kind, as roots are told by it. */
static bool is_unread(const o3_fold_kind_t *kind) {
  const o3_fold_part_t *part = kind->parts.items[0];
  return part->roots.count == 0;
}

static void erase_parts(const o3_fold_kind_t *kind) {
  for (size_t i = 0; i < kind->parts.count; ++i) erase_part(kind->parts.items[i]);
}

static o3_status_t fold_kinds(o3_pass_env_t *env, const o3_ptr_vec_t *kinds) {
  batch_t mixed = {.env = env, .parts = o3_ptr_vec(env->arena)};
  for (size_t i = 0; i < kinds->count; ++i) {
    const o3_fold_kind_t *kind = kinds->items[i];
    batch_t shared = {.env = env, .parts = kind->parts, .shared = true};
    if (is_unread(kind)) {
      erase_parts(kind);
      continue;
    }
    O3_TRY(kind->parts.count < SHARED_PARTS ? add_parts(&mixed, kind) : run_batch(&shared));
  }
  return flush(&mixed);
}

/* Constants that only went into others keep their memory as long as they stand there. */
static o3_status_t erase_unread(MlirOperation op, void *context) {
  (void)context;
  bool unread =
      o3_op_is(op, "o3.constant") && mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(op, 0)));
  if (unread) mlirOperationDestroy(op);
  return NULL;
}

o3_status_t o3_rewrite_fold_constants(o3_pass_env_t *env, MlirModule module) {
  bool more = env->evaluate != NULL;
  while (more) {
    o3_ptr_vec_t kinds;
    size_t first = o3_weights_count(env->weights);
    O3_TRY(o3_fold_kinds_find(env->arena, env->weights, module, &kinds));
    O3_TRY(fold_kinds(env, &kinds));
    O3_TRY(o3_walk(mlirModuleGetOperation(module), erase_unread, NULL));
    O3_TRY(o3_weights_drop_unused(env->weights, module, first));
    o3_weights_trim(env->weights);
    more = kinds.count > 0;
  }
  return NULL;
}
