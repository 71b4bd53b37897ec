/* cpu-split-main: @main of a network of hundreds of kernels becomes a row of functions.
 *
 *     store ...; llvm.call @o3rt_parallel_for(...) ...   ->   func.call @o3k_main<n>(%session, %arena, ...)
 *
 * Needs: cpu-outline, cpu-outline-serial. Guarantees: pieces of @main's entry block of PIECE ops without
 * results are functions; what gives values stays: the arena, reads that decide a branch. Views and a little
 * arithmetic on sizes are made anew in each piece; more arithmetic, such as the places of buffers of sizes
 * that are not known, is done once, and given to the pieces. The register allocation of LLVM and its search
 * for stores that nobody reads take a time that grows with the square of a function: 2,000 calls of kernels
 * took 10 s.
 */
#include <stdio.h>

#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/hoist.h"
#include "target/cpu/piece.h"

/* Ops of arithmetic that a piece makes anew for one value: an argument takes about as long. */
enum { PIECE = 256, REMADE_OPS = 3 };

typedef struct split {
  o3_pass_env_t *env;
  MlirModule module;
  int number; /* of the next function */
  o3_ptr_vec_t ops;
} split_t;

static bool is_view(MlirOperation op) {
  static const char *const VIEWS[] = {"memref.view",
                                      "memref.cast",
                                      "memref.subview",
                                      "memref.reinterpret_cast",
                                      "memref.expand_shape",
                                      "memref.collapse_shape",
                                      "memref.extract_strided_metadata",
                                      "memref.get_global",
                                      "func.constant",
                                      "llvm.mlir.addressof",
                                      "llvm.mlir.constant",
                                      "llvm.mlir.poison",
                                      "llvm.insertvalue",
                                      "llvm.getelementptr",
                                      "builtin.unrealized_conversion_cast"};
  return o3_op_is_one_of(op, VIEWS, sizeof(VIEWS) / sizeof(VIEWS[0]));
}

/* Whether |op| may run before what is written before it. */
static bool is_movable(MlirOperation op) {
  static const char *const ROUGH_SIZES[] = {"arith.sitofp", "arith.addf", "arith.mulf", "arith.cmpf"};
  return is_view(op) || o3_hoist_is_total(op) ||
         o3_op_is_one_of(op, ROUGH_SIZES, sizeof(ROUGH_SIZES) / sizeof(ROUGH_SIZES[0]));
}

/* Ops of arithmetic that |value| is made with; only some of those beyond |limit| are counted. */
static int count_arithmetic(MlirValue value, int limit) {
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def) || o3_op_is(def, "arith.constant") || !o3_hoist_is_total(def)) return 0;
  int count = 1;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(def) && count <= limit; ++i)
    count += count_arithmetic(mlirOperationGetOperand(def, i), limit - count);
  return count;
}

static bool is_remade(MlirOperation def) {
  bool total = o3_hoist_is_total(def) && mlirOperationGetNumResults(def) == 1;
  return is_view(def) ||
         (total && count_arithmetic(mlirOperationGetResult(def, 0), REMADE_OPS) <= REMADE_OPS);
}

/* The ops of |self->ops| become a function, called before |next|. */
static o3_status_t make_piece(split_t *self, MlirOperation next) {
  o3_piece_t piece;
  char name[32];
  snprintf(name, sizeof(name), "o3k_main%d", self->number++);
  O3_TRY(o3_piece_begin(self->env->arena, is_remade, &piece));
  for (size_t i = 0; i < self->ops.count; ++i)
    O3_TRY(o3_piece_take(&piece, (MlirOperation){self->ops.items[i]}));
  o3_builder_t b = o3_builder_before(next);
  self->ops.count = 0;
  return o3_piece_finish(&piece, self->module, name, &b);
}

static o3_status_t visit(split_t *self, MlirOperation op) {
  if (is_movable(op)) return NULL;
  bool ends = mlirOperationGetNumResults(op) || mlirOperationIsNull(mlirOperationGetNextInBlock(op));
  if ((ends || self->ops.count == PIECE) && self->ops.count > 1) O3_TRY(make_piece(self, op));
  if (ends) {
    self->ops.count = 0;
  } else if (!o3_ptr_vec_push(&self->ops, op.ptr)) {
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  return NULL;
}

static int count_parts(MlirBlock entry) {
  int count = 0;
  MlirOperation op = mlirBlockGetFirstOperation(entry);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op))
    count += !mlirOperationGetNumResults(op);
  return count;
}

o3_status_t o3_cpu_split_main(o3_pass_env_t *env, MlirModule module) {
  split_t self = {.env = env, .module = module, .ops = o3_ptr_vec(env->arena)};
  o3_cpu_load_dialects(env->context);
  MlirBlock entry = o3_func_body(o3_module_func(module, "main"));
  if (count_parts(entry) < 4 * PIECE) return NULL;
  MlirOperation op = mlirBlockGetFirstOperation(entry);
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    O3_TRY(visit(&self, op));
    op = next;
  }
  return o3_ir_run_pipeline(module, "builtin.module(func.func(canonicalize,cse))");
}
