/* cpu-outline: scf.parallel becomes a function that threads share.
 *
 *     scf.parallel (%i, %j) = (0, 0) to (%n, 64) step (1, 1) { body } {o3.work = 500}
 * ->  store what body captures in a context on the stack
 *     o3rt_parallel_for(session, @o3k_<label>_<n>, context, count = %n * 64, grain)
 *     func.func private @o3k_<label>_<n>(%context, %lo: i64, %hi: i64) { scf.for %t = %lo to %hi { body } }
 *
 * Needs: @main has its session argument. Guarantees: no scf.parallel is left, and buffers on the stack are
 * made once a call. Loops inside others, and those that may fail (the runtime ends a run on its own thread
 * only), are scf.for. The dims are flattened into one count, so that a batch of one still gives every thread
 * its share; grain is what is worth a thread's start.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/map.h"
#include "schedule/cpu_schedule.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"

enum { MAX_CAPTURES = 256 };

typedef struct outline {
  o3_pass_env_t *env;
  MlirModule module;
  o3_ptr_vec_t loops; /* outermost scf.parallel ops */
  int count;
  MlirOperation context_size; /* the constant under the shared context's alloca */
  MlirValue context_memory;
  int64_t context_bytes;
} outline_t;

typedef struct loop {
  MlirOperation op;
  MlirBlock body;
  int num_dims;
  int num_captures;
  MlirValue captures[MAX_CAPTURES];
  o3_ptr_map_t *seen;
  bool fails; /* holds a call that must stay on the run's own thread, or captures too much */
} loop_t;

/* ---- What a loop captures ---- */

static MlirBlock block_of(MlirValue value) {
  return mlirValueIsABlockArgument(value) ? mlirBlockArgumentGetOwner(value)
                                          : mlirOperationGetBlock(mlirOpResultGetOwner(value));
}

static bool is_defined_inside(MlirValue value, MlirOperation loop) {
  return o3_cpu_is_inside(mlirBlockGetParentOperation(block_of(value)), loop);
}

/* Constants are made anew instead. Addresses of globals are not: functions that differ in nothing else are
 * one (cpu-share-kernels). */
static bool is_remade(MlirValue value) { return o3_op_is(o3_value_def(value), "arith.constant"); }

static o3_status_t capture(loop_t *loop, MlirValue value) {
  if (o3_ptr_map_get(loop->seen, value.ptr) || is_defined_inside(value, loop->op)) return NULL;
  if (!o3_ptr_map_put(loop->seen, value.ptr, loop))
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  bool carried = is_remade(value) || o3_cpu_llvm_type(mlirValueGetType(value)).ptr;
  bool fits = loop->num_captures < MAX_CAPTURES && carried;
  if (fits) loop->captures[loop->num_captures++] = value;
  loop->fails |= !fits;
  return NULL;
}

static o3_status_t capture_operands(MlirOperation op, void *context) {
  loop_t *loop = context;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
    O3_TRY(capture(loop, mlirOperationGetOperand(op, i)));
  loop->fails |= o3_op_is(op, "llvm.call");
  return NULL;
}

static o3_status_t read_loop(outline_t *self, MlirOperation op, loop_t *loop) {
  *loop = (loop_t){.op = op,
                   .body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0)),
                   .num_dims = (int)mlirOperationGetNumOperands(op) / 3,
                   .seen = o3_ptr_map_create(self->env->arena)};
  O3_TRY_ALLOC(loop->seen);
  O3_TRY(o3_walk(op, capture_operands, loop));
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
    O3_TRY(capture(loop, mlirOperationGetOperand(op, i)));
  return NULL;
}

/* ---- The context ---- */

/* One piece of stack serves all loops of @main: a context is dead when its call returns. */
static MlirValue context_memory(outline_t *self) {
  if (self->context_memory.ptr) return self->context_memory;
  MlirContext context = self->env->context;
  MlirBlock entry = o3_func_body(o3_module_func(self->module, "main"));
  o3_builder_t b = o3_builder_before(mlirBlockGetFirstOperation(entry));
  MlirValue size = o3_build_int(&b, o3_cpu_i64_type(context), 0);
  self->context_size = o3_value_def(size);
  self->context_memory = o3_build1_attrs(&b, "llvm.alloca", o3_cpu_ptr_type(context), O3_VALUES(size),
                                         O3_ATTRS({"elem_type", o3_attr_type(mlirIntegerTypeGet(context, 8))},
                                                  {"alignment", o3_attr_i64(context, O3_CPU_ALIGNMENT)}));
  return self->context_memory;
}

static int64_t carried_bytes(MlirType type) {
  if (!mlirTypeIsAMemRef(type)) return 8;
  return 24 + 16 * (int64_t)o3_type_rank(type);
}

/* Each captured value has its own address: offsets are multiples of eight. */
static MlirValue slot(o3_builder_t *b, MlirValue context, int64_t offset) {
  return o3_build1_attrs(
      b, "llvm.getelementptr", o3_cpu_ptr_type(b->context), O3_VALUES(context),
      O3_ATTRS({"rawConstantIndices", mlirDenseI32ArrayGet(b->context, 1, (int32_t[]){(int32_t)offset})},
               {"elem_type", o3_attr_type(mlirIntegerTypeGet(b->context, 8))}));
}

static void store_captures(outline_t *self, o3_builder_t *b, const loop_t *loop, MlirValue memory) {
  int64_t offset = 0;
  for (int i = 0; i < loop->num_captures; ++i) {
    MlirType type = mlirValueGetType(loop->captures[i]);
    if (is_remade(loop->captures[i])) continue;
    MlirValue value = o3_cpu_cast(b, loop->captures[i], o3_cpu_llvm_type(type));
    o3_build0(b, "llvm.store", O3_VALUES(value, slot(b, memory, offset)));
    offset += carried_bytes(type);
  }
  if (offset > self->context_bytes) self->context_bytes = offset;
}

static void load_captures(o3_builder_t *b, const loop_t *loop, MlirValue context, MlirValue *values) {
  int64_t offset = 0;
  for (int i = 0; i < loop->num_captures; ++i) {
    MlirType type = mlirValueGetType(loop->captures[i]);
    if (is_remade(loop->captures[i])) {
      MlirOperation copy = mlirOperationClone(o3_value_def(loop->captures[i]));
      mlirBlockAppendOwnedOperation(b->block, copy);
      values[i] = mlirOperationGetResult(copy, 0);
      continue;
    }
    MlirValue loaded = o3_build1(b, "llvm.load", o3_cpu_llvm_type(type), O3_VALUES(slot(b, context, offset)));
    values[i] = o3_cpu_cast(b, loaded, type);
    offset += carried_bytes(type);
  }
}

/* ---- The function ---- */

static MlirBlock make_function(outline_t *self, const char *name, MlirLocation location) {
  MlirContext context = self->env->context;
  MlirType ptr = o3_cpu_ptr_type(context), i64 = o3_cpu_i64_type(context), inputs[3] = {ptr, i64, i64};
  MlirBlock block = mlirBlockCreate(3, inputs, (MlirLocation[]){location, location, location});
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, block);
  o3_builder_t b = o3_builder_at_end(mlirModuleGetBody(self->module), location);
  MlirType type = mlirFunctionTypeGet(context, 3, inputs, 0, NULL);
  o3_op_spec_t spec = {.name = "func.func",
                       .num_attrs = 3,
                       .attrs = (o3_attr_t[]){{"sym_name", o3_attr_string(context, name)},
                                              {"sym_visibility", o3_attr_string(context, "private")},
                                              {"function_type", o3_attr_type(type)}},
                       .num_regions = 1,
                       .regions = &region};
  o3_build(&b, &spec);
  return block;
}

static MlirValue lookup(const loop_t *loop, const MlirValue *values, MlirValue value) {
  for (int i = 0; i < loop->num_captures; ++i) {
    if (mlirValueEqual(loop->captures[i], value)) return values[i];
  }
  return value;
}

typedef struct rewriter {
  const loop_t *loop;
  const MlirValue *values;
} rewriter_t;

static o3_status_t use_loaded(MlirOperation op, void *context) {
  const rewriter_t *self = context;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    MlirValue value = lookup(self->loop, self->values, operand);
    if (!mlirValueEqual(value, operand)) mlirOperationSetOperand(op, i, value);
  }
  return NULL;
}

/* Iterations of dim |i|: ceil((upper - lower) / step). */
static MlirValue trips(o3_builder_t *b, const loop_t *loop, const MlirValue *values, int i) {
  MlirValue bounds[3];
  for (int k = 0; k < 3; ++k) {
    bounds[k] = mlirOperationGetOperand(loop->op, k * loop->num_dims + i);
    if (values) bounds[k] = lookup(loop, values, bounds[k]);
  }
  MlirValue range = o3_build2(b, "arith.subi", bounds[1], bounds[0]);
  return o3_build2(b, "arith.ceildivsi", range, bounds[2]);
}

typedef struct body_context {
  const loop_t *loop;
  const MlirValue *values;
  const MlirValue *trips;
} body_context_t;

/* The ivs of the flat iteration |t|, then the loop's ops, moved here. */
static o3_status_t fill_body(o3_builder_t *b, void *context, MlirValue t, const MlirValue *carried,
                             MlirValue *next) {
  const body_context_t *it = context;
  const loop_t *loop = it->loop;
  (void)carried, (void)next;
  for (int i = loop->num_dims - 1; i >= 0; --i) {
    MlirValue lower = lookup(loop, it->values, mlirOperationGetOperand(loop->op, i));
    MlirValue step = lookup(loop, it->values, mlirOperationGetOperand(loop->op, 2 * loop->num_dims + i));
    MlirValue at = i ? o3_build2(b, "arith.remui", t, it->trips[i]) : t;
    if (i) t = o3_build2(b, "arith.divui", t, it->trips[i]);
    MlirValue iv = o3_build2(b, "arith.addi", lower, o3_build2(b, "arith.muli", at, step));
    mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(loop->body, i), iv);
  }
  MlirOperation terminator = mlirBlockGetTerminator(loop->body);
  MlirOperation op = mlirBlockGetFirstOperation(loop->body);
  while (!mlirOperationEqual(op, terminator)) {
    MlirOperation following = mlirOperationGetNextInBlock(op);
    mlirOperationRemoveFromParent(op);
    mlirBlockAppendOwnedOperation(b->block, op);
    op = following;
  }
  return NULL;
}

static o3_status_t fill_function(const loop_t *loop, MlirBlock block) {
  o3_builder_t b = o3_builder_at_end(block, mlirOperationGetLocation(loop->op));
  MlirValue values[MAX_CAPTURES], counts[O3_IR_MAX_RANK + 1];
  load_captures(&b, loop, mlirBlockGetArgument(block, 0), values);
  rewriter_t rewriter = {loop, values};
  O3_TRY(o3_walk(loop->op, use_loaded, &rewriter));
  for (int i = 0; i < loop->num_dims; ++i) counts[i] = trips(&b, loop, values, i);
  body_context_t context = {loop, values, counts};
  o3_for_t flat = {.lower = o3_cpu_to_index(&b, mlirBlockGetArgument(block, 1)),
                   .upper = o3_cpu_to_index(&b, mlirBlockGetArgument(block, 2)),
                   .step = o3_build_index(&b, 1),
                   .body = fill_body,
                   .context = &context};
  O3_TRY(o3_build_for(&b, &flat, NULL));
  o3_build0(&b, "func.return", O3_NO_VALUES);
  return NULL;
}

/* ---- The call ---- */

static MlirValue function_address(o3_builder_t *b, const char *name) {
  MlirType ptr = o3_cpu_ptr_type(b->context), i64 = o3_cpu_i64_type(b->context);
  MlirType type = mlirFunctionTypeGet(b->context, 3, (MlirType[]){ptr, i64, i64}, 0, NULL);
  MlirValue function =
      o3_build1_attrs(b, "func.constant", type, O3_NO_VALUES,
                      O3_ATTRS({"value", mlirFlatSymbolRefAttrGet(b->context, O3_STR(name))}));
  return o3_cpu_cast(b, function, ptr);
}

static o3_status_t outline_loop(outline_t *self, MlirOperation op) {
  static _Thread_local loop_t loop;
  char name[96];
  O3_TRY(read_loop(self, op, &loop));
  if (loop.fails || loop.num_dims > O3_IR_MAX_RANK + 1) return NULL;
  o3_cpu_kernel_name(op, self->count++, name, sizeof(name));
  MlirValue memory = context_memory(self);
  o3_builder_t b = o3_builder_before(op);
  int64_t work = o3_op_int(op, "o3.work", 64);
  MlirValue count = o3_build_index(&b, 1);
  for (int i = 0; i < loop.num_dims; ++i)
    count = o3_build2(&b, "arith.muli", count, trips(&b, &loop, NULL, i));
  store_captures(self, &b, &loop, memory);
  int64_t grain = o3_op_int(op, O3_CPU_GRAIN, o3_schedule_rows(work).rows);
  MlirValue operands[5] = {o3_cpu_session(self->module), function_address(&b, name), memory,
                           o3_cpu_to_i64(&b, count), o3_build_int(&b, o3_cpu_i64_type(b.context), grain)};
  o3_cpu_call_runtime(&b, self->module, O3_CPU_RT_PARALLEL_FOR, 5, operands);
  O3_TRY(fill_function(&loop, make_function(self, name, b.location)));
  mlirOperationDestroy(op);
  return NULL;
}

/* ---- Stack memory ---- */

/* A buffer on the stack that a loop's body makes is the same one for all iterations of a thread. */
static o3_status_t move_to_entry(MlirOperation op, void *context) {
  MlirOperation func = *(MlirOperation *)context;
  if (!o3_op_is(op, "memref.alloca") || mlirOperationGetNumOperands(op)) return NULL;
  MlirOperation first = mlirBlockGetFirstOperation(o3_func_body(func));
  if (!mlirOperationEqual(first, op)) mlirOperationMoveBefore(op, first);
  return NULL;
}

static o3_status_t keep_stack_in_entries(MlirModule module) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    bool has_body =
        o3_op_is(op, "func.func") && !mlirBlockIsNull(mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0)));
    if (has_body) O3_TRY(o3_walk(op, move_to_entry, &op));
  }
  return NULL;
}

/* ---- All loops ---- */

static bool is_nested(MlirOperation op) {
  for (op = mlirOperationGetParentOperation(op); !mlirOperationIsNull(op);
       op = mlirOperationGetParentOperation(op)) {
    if (o3_op_is(op, "scf.parallel")) return true;
  }
  return false;
}

static o3_status_t collect(MlirOperation op, void *context) {
  outline_t *self = context;
  if (!o3_op_is(op, "scf.parallel") || mlirOperationGetNumResults(op) || is_nested(op)) return NULL;
  if (o3_ptr_vec_push(&self->loops, op.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

o3_status_t o3_cpu_outline(o3_pass_env_t *env, MlirModule module) {
  outline_t self = {.env = env, .module = module, .loops = o3_ptr_vec(env->arena)};
  o3_cpu_load_dialects(env->context);
  O3_TRY(o3_walk(o3_module_func(module, "main"), collect, &self));
  for (size_t i = 0; i < self.loops.count; ++i)
    O3_TRY(outline_loop(&self, (MlirOperation){self.loops.items[i]}));
  if (self.context_memory.ptr) {
    MlirType i64 = o3_cpu_i64_type(env->context);
    o3_op_attr_set(self.context_size, "value", mlirIntegerAttrGet(i64, self.context_bytes + 8));
  }
  O3_TRY(keep_stack_in_entries(module));
  return o3_ir_run_pipeline(module,
                            "builtin.module(func.func(scf-parallel-for-to-nested-fors),canonicalize,cse)");
}
