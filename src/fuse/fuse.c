/* fuse: kernels from @main's ops; see fuse.h.
 *
 * Dimensions of size 1 are dropped first: a reduction that keeps its dimension and one that does not are then
 * the same, and so are the layers of a batch of one. Blocks of branches and loops have kernels of their own.
 */
#include "fuse/fuse.h"

#include "fuse/chain.h"
#include "fuse/dissolve.h"
#include "fuse/fold_transposes.h"
#include "fuse/group.h"
#include "fuse/mark_causal.h"
#include "fuse/merge.h"
#include "fuse/move_collapse.h"
#include "fuse/move_reshapes.h"
#include "fuse/outline_kernel.h"
#include "fuse/share_casts.h"
#include "ir/share_ops.h"

/* The ops of all groups, from the last to the first: readers go before what they read. */
static void erase_members(const o3_groups_t *groups) {
  for (int i = groups->graph->count - 1; i >= 0; --i) {
    if (groups->owner[i]) mlirOperationDestroy(groups->graph->nodes[i].op);
  }
}

typedef struct fuser {
  o3_pass_env_t *env;
  o3_arena_t *scratch;
  MlirModule module;
  int count; /* of kernels so far */
} fuser_t;

static o3_status_t find_groups(fuser_t *self, MlirBlock block, o3_groups_t **groups) {
  o3_dep_graph_t *graph;
  O3_TRY(o3_dep_graph_create(self->scratch, block, &graph));
  return o3_groups_create(self->scratch, graph, self->env->machine, self->env->no_fusion, groups);
}

/* Cards wait for memory: their kernels cast what they read. */
static o3_status_t fuse_block(fuser_t *self, MlirBlock block) {
  o3_groups_t *groups;
  bool changed = false;
  O3_TRY(find_groups(self, block, &groups));
  if (self->env->machine->gpu && !self->env->no_fusion) o3_fuse_share_casts(groups, &changed);
  if (changed) O3_TRY(find_groups(self, block, &groups));
  for (size_t i = 0; i < groups->list.count; ++i)
    O3_TRY(o3_fuse_outline(groups, groups->list.items[i], self->count++, self->module));
  erase_members(groups);
  return NULL;
}

/* A product reads what is filled with one value from memory like any operand: its kernel is not to make it,
 * even where the sums start at the same value. */
static o3_status_t mark_filled_operands(MlirOperation op, void *context) {
  o3_dep_generic_t product, fill;
  (void)context;
  if (!o3_dep_generic_read(op, &product) || o3_dep_generic_kind(&product) != O3_DEP_CONTRACTION) return NULL;
  for (int i = 0; i < product.num_inputs; ++i) {
    MlirOperation def = o3_value_def(mlirOperationGetOperand(op, i));
    bool is_filled = !mlirOperationIsNull(def) && o3_dep_generic_read(def, &fill) &&
                     o3_dep_generic_kind(&fill) == O3_DEP_FILL;
    if (!is_filled) continue;
    MlirOperation own = mlirOperationClone(def);
    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(op), op, own);
    o3_op_attr_set(own, O3_FILLED_OPERAND, mlirUnitAttrGet(mlirOperationGetContext(op)));
    mlirOperationSetOperand(op, i, mlirOperationGetResult(own, 0));
  }
  return NULL;
}

/* Blocks of branches and loops, whose op is there still. */
static o3_status_t fuse_nested(MlirOperation op, void *context) {
  if (!o3_op_is_of(op, "scf")) return NULL;
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); ++r) {
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
    if (!mlirBlockIsNull(block)) O3_TRY(fuse_block(context, block));
  }
  return NULL;
}

/* An op that had been overwritten may have been found to compute nothing. */
static o3_status_t spare_arguments(o3_arena_t *arena, MlirModule module) {
  MlirOperation func = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(func); func = mlirOperationGetNextInBlock(func)) {
    if (o3_op_string(func, O3_KERNEL_KIND).data) O3_TRY(o3_fuse_spare_arguments(arena, o3_func_body(func)));
  }
  return NULL;
}

static o3_status_t find_kernels(fuser_t *self) {
  o3_pass_env_t *env = self->env;
  MlirModule module = self->module;
  O3_TRY(o3_ir_share_ops(self->scratch, module));
  const o3_kernel_support_t *kernels = env->machine->kernels;
  if (kernels && kernels->prepare) O3_TRY(kernels->prepare(env, module));
  MlirBlock body = o3_func_body(o3_module_func(module, "main"));
  O3_TRY(o3_fuse_move_collapses(self->scratch, body));
  O3_TRY(o3_fuse_move_reshapes(self->scratch, body));
  O3_TRY(o3_ir_share_ops(self->scratch, module));
  O3_TRY(o3_fuse_fold_transposes(self->scratch, body, env->machine));
  O3_TRY(o3_ir_share_ops(self->scratch, module));
  o3_fuse_mark_causal(body);
  O3_TRY(o3_walk(o3_module_func(module, "main"), mark_filled_operands, NULL));
  O3_TRY(fuse_block(self, body));
  O3_TRY(o3_walk(o3_module_func(module, "main"), fuse_nested, self));
  O3_TRY(o3_fuse_chains(env, self->scratch, module));
  O3_TRY(o3_ir_run_pipeline(module, "builtin.module(canonicalize,cse)"));
  O3_TRY(spare_arguments(self->scratch, module));
  return o3_fuse_dissolve(self->scratch, module);
}

o3_status_t o3_fuse(o3_pass_env_t *env, MlirModule module) {
  if (mlirOperationIsNull(o3_module_func(module, "main")))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "the module has no function @main");
  o3_arena_t *scratch = o3_arena_create();
  O3_TRY_ALLOC(scratch);
  fuser_t self = {env, scratch, module, 0};
  o3_status_t status = find_kernels(&self);
  o3_arena_destroy(scratch);
  return status;
}
