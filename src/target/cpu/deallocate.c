/* cpu-deallocate: what a loop allocates does not pile up.
 *
 * Needs: a bufferized module. Guarantees: a buffer that is allocated inside a loop and not carried out of its
 * block has a memref.dealloc at the block's end. When some loop carries buffers that it makes (they change
 * their size), upstream's ownership-based deallocation does it for all, for it follows ownership at run time;
 * it is not the default because it clones what @main hands out without owning it.
 */
#include "target/cpu/alias.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"

static bool is_loop(MlirOperation op) {
  return o3_op_is(op, "scf.for") || o3_op_is(op, "scf.while") || o3_op_is(op, "scf.parallel");
}

static o3_status_t find_carried(MlirOperation op, void *context) {
  bool *found = context;
  if (!is_loop(op)) return NULL;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    *found |= mlirTypeIsAMemRef(mlirValueGetType(mlirOperationGetResult(op, i)));
  return NULL;
}

static bool is_in_loop(MlirOperation op) {
  for (op = mlirOperationGetParentOperation(op); !mlirOperationIsNull(op);
       op = mlirOperationGetParentOperation(op)) {
    if (is_loop(op)) return true;
  }
  return false;
}

static o3_status_t free_at_block_end(MlirOperation op, void *context) {
  o3_pass_env_t *env = context;
  if (!o3_op_is(op, "memref.alloc") || !is_in_loop(op)) return NULL;
  o3_aliases_t aliases;
  O3_TRY(o3_aliases_of(env->arena, mlirOperationGetResult(op, 0), &aliases));
  if (aliases.escapes || o3_aliases_leave_block(&aliases, mlirOperationGetBlock(op))) return NULL;
  o3_builder_t builder = o3_builder_before(mlirBlockGetTerminator(mlirOperationGetBlock(op)));
  o3_build0(&builder, "memref.dealloc", 1, (MlirValue[]){mlirOperationGetResult(op, 0)});
  return NULL;
}

o3_status_t o3_cpu_deallocate(o3_pass_env_t *env, MlirModule module) {
  bool carried = false;
  MlirOperation main = o3_module_func(module, "main");
  o3_cpu_load_dialects(env->context);
  O3_TRY(o3_walk(main, find_carried, &carried));
  if (!carried) return o3_walk(main, free_at_block_end, env);
  return o3_ir_run_pipeline(
      module,
      "builtin.module(ownership-based-buffer-deallocation,canonicalize,"
      "buffer-deallocation-simplification,bufferization-lower-deallocations,cse,canonicalize)");
}
