/* cpu-outline-serial: of a network of hundreds of loops that one thread runs, each becomes a function.
 *
 *     scf.for %i = ... { body }  ->  func.call @o3k_<label>_<n>(what the body captures)
 *
 * Needs: cpu-outline. Guarantees: where @main holds more than FEW such loops, none is left that does not call
 * the runtime. LLVM's time grows with the square of a function: 1,000 loops in @main took 22 s. And loops
 * that repeat become one function (cpu-share-kernels). Few loops stay where they are: they need no call, and
 * LLVM sees where their buffers lie.
 */
#include "base/map.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/piece.h"

enum { FEW = 64 };

typedef struct serial {
  o3_pass_env_t *env;
  MlirModule module;
  o3_ptr_vec_t loops;
  int number; /* of the next function */
} serial_t;

static o3_status_t find_call(MlirOperation op, void *context) {
  bool *found = context;
  *found |= o3_op_is(op, "llvm.call");
  return NULL;
}

/* Calls of the runtime stay in @main: they tell where kernels start, or end a run that fails. */
static o3_status_t is_candidate(MlirOperation op, bool *answer) {
  bool calls = false;
  *answer = false;
  if (!o3_op_is(op, "scf.for") || mlirOperationGetNumResults(op)) return NULL;
  O3_TRY(o3_walk(op, find_call, &calls));
  *answer = !calls;
  return NULL;
}

static o3_status_t collect(serial_t *self, MlirBlock block) {
  MlirOperation op = mlirBlockGetFirstOperation(block);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    bool found;
    O3_TRY(is_candidate(op, &found));
    if (found && !o3_ptr_vec_push(&self->loops, op.ptr))
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
    for (intptr_t i = 0; !found && i < mlirOperationGetNumRegions(op); ++i) {
      MlirBlock inner = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, i));
      for (; !mlirBlockIsNull(inner); inner = mlirBlockGetNextInRegion(inner)) O3_TRY(collect(self, inner));
    }
  }
  return NULL;
}

/* What differs between loops of equal code are the buffers, which are arguments for that. */
static bool is_constant(MlirOperation def) { return o3_op_is(def, "arith.constant"); }

static o3_status_t outline(serial_t *self, MlirOperation loop) {
  o3_piece_t piece;
  char name[96];
  o3_cpu_kernel_name(loop, self->number++, name, sizeof(name));
  MlirOperation next = mlirOperationGetNextInBlock(loop); /* a loop ends no block */
  o3_builder_t b = o3_builder_before(next);
  b.location = mlirOperationGetLocation(loop);
  O3_TRY(o3_piece_begin(self->env->arena, is_constant, &piece));
  O3_TRY(o3_piece_take(&piece, loop));
  return o3_piece_finish(&piece, self->module, name, &b);
}

o3_status_t o3_cpu_outline_serial(o3_pass_env_t *env, MlirModule module) {
  serial_t self = {.env = env,
                   .module = module,
                   .loops = o3_ptr_vec(env->arena),
                   .number = o3_cpu_count_functions(module)};
  o3_cpu_load_dialects(env->context);
  O3_TRY(collect(&self, o3_func_body(o3_module_func(module, "main"))));
  for (size_t i = 0; self.loops.count > FEW && i < self.loops.count; ++i)
    O3_TRY(outline(&self, (MlirOperation){self.loops.items[i]}));
  return NULL;
}
