/* cpu-kernel-results and cpu-kernels: from kernels as functions to loops in @main.
 *
 * Between the two the memory plan sees a call as one use of the buffers that it is given. Then the body of
 * each kernel is copied to its call, and emitted by its kind (o3.kernel_kind):
 *
 *     elementwise, movement   one linalg op, for cpu-loops
 *     contraction             see product.h
 *     winograd                see winograd_kernel.h; its memory beside the result is the first argument, made
 *                             by cpu-kernel-results so that it is planned like other buffers
 *     chain                   see blocked_chain.h; with such memory, too
 *     attention               see attention.h
 *     rows                    scf.parallel over the rows (o3.rows: dimensions of the result); inside it the
 *                             loops of one op after another, over what is left of their dims
 *
 * A buffer of a rows kernel's own is one row on the stack: its dimensions that count the rows have the stride
 * 0.
 */
#include <string.h>

#include "base/map.h"
#include "fuse/kernel_body.h"
#include "schedule/cpu_schedule.h"
#include "target/cpu/attention.h"
#include "target/cpu/blocked_chain.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/kernel_call.h"
#include "target/cpu/kernel_marks.h"
#include "target/cpu/loops.h"
#include "target/cpu/product.h"
#include "target/cpu/row_marks.h"
#include "target/cpu/rows_ahead.h"
#include "target/cpu/winograd_kernel.h"

enum { MAX_OPS = O3_KERNEL_MAX_OPS };
/* Of a call; a kernel has one more that needs memory beside its result. */
enum { MAX_ARGUMENTS = 4 * O3_NEST_MAX_OPERANDS };

static bool is_kernel(MlirOperation func) { return o3_op_string(func, O3_KERNEL_KIND).data != NULL; }

/* ---- cpu-kernel-results ---- */

static MlirValue last_operand(MlirOperation op) {
  return mlirOperationGetOperand(op, mlirOperationGetNumOperands(op) - 1);
}

static o3_status_t collect_generic(MlirOperation op, void *context) {
  o3_ptr_vec_t *ops = context;
  if (!o3_op_is(op, "linalg.generic") || o3_ptr_vec_push(ops, op.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static bool is_of_kind(MlirOperation kernel, const char *kind) {
  return o3_str_equal(o3_op_string(kernel, O3_KERNEL_KIND), kind);
}

static bool is_winograd(MlirOperation kernel) { return is_of_kind(kernel, "winograd"); }

static o3_status_t not_winograd(MlirOperation kernel) {
  return o3_status_create(O3_STATUS_INTERNAL,
                          "kernel '%.*s': its ops are not those of a winograd convolution",
                          O3_STR_ARGS(o3_op_string(kernel, "sym_name")));
}

/* How many floats of memory a kernel needs beside its result. */
static o3_status_t count_scratch(o3_pass_env_t *env, MlirOperation kernel, int64_t *floats) {
  o3_winograd_kernel_t winograd;
  o3_ptr_vec_t ops = o3_ptr_vec(env->arena);
  bool is_chain = is_of_kind(kernel, "chain");
  *floats = 0;
  if (!is_chain && !is_winograd(kernel)) return NULL;
  O3_TRY(o3_walk(kernel, collect_generic, &ops));
  MlirOperation *list = O3_ARENA_ARRAY(env->arena, MlirOperation, ops.count + 1);
  O3_TRY_ALLOC(list);
  for (size_t i = 0; i < ops.count; ++i) list[i].ptr = ops.items[i];
  if (is_chain) return o3_chain_scratch(env->machine, (int)ops.count, list, floats);
  if (!o3_winograd_read((int)ops.count, list, &winograd)) return not_winograd(kernel);
  return o3_winograd_scratch(env->machine, &winograd, floats);
}

/* That memory, as the kernel's first argument; null when it needs none. */
static o3_status_t add_scratch(o3_pass_env_t *env, MlirOperation kernel, o3_builder_t *b,
                               MlirValue *scratch) {
  const int32_t none[2] = {0, 0};
  int64_t floats;
  *scratch = (MlirValue){0};
  O3_TRY(count_scratch(env, kernel, &floats));
  if (!floats) return NULL;
  MlirType type = o3_memref_type(1, &floats, mlirF32TypeGet(env->context));
  *scratch = o3_build1_attrs(b, "memref.alloc", type, O3_NO_VALUES,
                             O3_ATTRS({"alignment", o3_attr_i64(env->context, O3_CPU_ALIGNMENT)},
                                      {"operandSegmentSizes", mlirDenseI32ArrayGet(env->context, 2, none)}));
  mlirBlockInsertArgument(o3_func_body(kernel), 0, type, mlirOperationGetLocation(kernel));
  return NULL;
}

typedef struct results {
  o3_pass_env_t *env;
  o3_str_map_t *kernels;
} results_t;

static o3_status_t use_argument(MlirOperation op, void *context) {
  const results_t *self = context;
  MlirOperation kernel = o3_fuse_called_kernel(self->kernels, op);
  if (mlirOperationIsNull(kernel) || mlirOperationGetNumResults(op) == 0) return NULL;
  o3_builder_t b = o3_builder_before(op);
  MlirValue operands[MAX_ARGUMENTS + 1];
  int count = (int)mlirOperationGetNumOperands(op);
  if (count > MAX_ARGUMENTS)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "kernel '%.*s' has %d arguments, at most %d are supported",
                            O3_STR_ARGS(o3_op_string(kernel, "sym_name")), count, MAX_ARGUMENTS);
  O3_TRY(add_scratch(self->env, kernel, &b, &operands[0]));
  int first = mlirValueIsNull(operands[0]) ? 0 : 1;
  for (int i = 0; i < count; ++i) operands[first + i] = mlirOperationGetOperand(op, i);
  count += first;
  o3_op_spec_t spec = {.name = "func.call",
                       .num_operands = count,
                       .operands = operands,
                       .num_attrs = 1,
                       .attrs = (o3_attr_t[]){{"callee", o3_op_attr(op, "callee")}}};
  o3_build(&b, &spec);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), last_operand(op));
  mlirOperationDestroy(op);
  return NULL;
}

static o3_status_t drop_result(MlirOperation kernel) {
  MlirBlock body = o3_func_body(kernel);
  MlirOperation end = mlirBlockGetTerminator(body);
  MlirType inputs[MAX_ARGUMENTS + 1];
  intptr_t count = mlirBlockGetNumArguments(body);
  bool in_place = count >= 1 && count <= MAX_ARGUMENTS + 1 && mlirOperationGetNumOperands(end) == 1 &&
                  mlirValueEqual(mlirOperationGetOperand(end, 0), mlirBlockGetArgument(body, count - 1));
  if (!in_place)
    return o3_status_create(O3_STATUS_INTERNAL, "kernel '%.*s' does not write its result in place",
                            O3_STR_ARGS(o3_op_string(kernel, "sym_name")));
  for (intptr_t i = 0; i < count; ++i) inputs[i] = mlirValueGetType(mlirBlockGetArgument(body, i));
  o3_op_attr_set(kernel, "function_type",
                 o3_attr_type(mlirFunctionTypeGet(mlirOperationGetContext(kernel), count, inputs, 0, NULL)));
  o3_builder_t b = o3_builder_before(end);
  o3_build0(&b, "func.return", O3_NO_VALUES);
  mlirOperationDestroy(end);
  return NULL;
}

o3_status_t o3_cpu_kernel_results(o3_pass_env_t *env, MlirModule module) {
  o3_cpu_load_dialects(env->context);
  results_t self = {.env = env};
  O3_TRY(o3_fuse_list_kernels(env->arena, module, &self.kernels));
  O3_TRY(o3_walk(o3_module_func(module, "main"), use_argument, &self));
  MlirOperation func = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(func); func = mlirOperationGetNextInBlock(func)) {
    if (is_kernel(func)) O3_TRY(drop_result(func));
  }
  return NULL;
}

/* ---- The body at its call ---- */

typedef o3_inlined_t inlined_t;

o3_status_t o3_kernel_internal(const inlined_t *self, const char *what) {
  return o3_status_create(O3_STATUS_INTERNAL, "kernel '%.*s': %s",
                          O3_STR_ARGS(o3_op_string(self->kernel, "sym_name")), what);
}

static o3_status_t put(inlined_t *self, MlirValue from, MlirValue to) {
  bool ok = o3_ptr_map_put(self->values, from.ptr, (void *)(uintptr_t)to.ptr);
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static o3_status_t use_new_operands(MlirOperation op, void *context) {
  const inlined_t *self = context;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    const void *to = o3_ptr_map_get(self->values, mlirOperationGetOperand(op, i).ptr);
    if (to) mlirOperationSetOperand(op, i, (MlirValue){to});
  }
  return NULL;
}

/* Views and sizes depend on no data: they go before the first op, where the kernel's work is counted. */
static MlirOperation place_for(const inlined_t *self, MlirOperation op) {
  bool is_view = !o3_op_is(op, "linalg.generic") && !o3_op_is(op, "memref.load");
  return is_view && self->num_ops ? self->ops[0] : self->call;
}

static o3_status_t inline_op(inlined_t *self, MlirOperation op) {
  if (o3_op_is(op, "func.return") || o3_op_is(op, "memref.dealloc")) return NULL;
  MlirOperation copy = mlirOperationClone(op);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(self->call), place_for(self, op), copy);
  O3_TRY(use_new_operands(copy, self));
  O3_TRY(o3_walk(copy, use_new_operands, self));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    O3_TRY(put(self, mlirOperationGetResult(op, i), mlirOperationGetResult(copy, i)));
  bool is_generic = o3_op_is(op, "linalg.generic"), is_buffer = o3_op_is(op, "memref.alloc");
  if (self->num_ops + is_generic > MAX_OPS || self->num_buffers + is_buffer > MAX_OPS)
    return o3_kernel_internal(self, "it has more ops than an emitter takes");
  if (is_generic) self->ops[self->num_ops++] = copy;
  if (is_buffer) self->buffers[self->num_buffers++] = copy;
  return NULL;
}

static o3_status_t inline_body(inlined_t *self) {
  MlirBlock body = o3_func_body(self->kernel);
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(body); ++i)
    O3_TRY(put(self, mlirBlockGetArgument(body, i), mlirOperationGetOperand(self->call, i)));
  MlirOperation op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) O3_TRY(inline_op(self, op));
  return NULL;
}

/* The size that an alloc gives its dimension |index|. */
static MlirValue alloc_size(o3_builder_t *b, MlirOperation alloc, int64_t index) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(alloc, 0));
  if (o3_type_dim(type, (int)index) >= 0) return o3_build_index(b, o3_type_dim(type, (int)index));
  int operand = 0;
  for (int r = 0; r < index; ++r) operand += o3_type_dim(type, r) < 0;
  return mlirOperationGetOperand(alloc, operand);
}

/* Sizes that were asked of a buffer of the kernel's own: the buffer gives way to a part of it. */
static void fold_sizes(MlirOperation alloc) {
  MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(alloc, 0));
  while (!mlirOpOperandIsNull(use)) {
    MlirOperation dim = mlirOpOperandGetOwner(use);
    use = mlirOpOperandGetNextUse(use);
    if (!o3_op_is(dim, "memref.dim")) continue;
    int64_t index = o3_op_int(o3_value_def(mlirOperationGetOperand(dim, 1)), "value", -1);
    if (index < 0 || index >= o3_type_rank(mlirValueGetType(mlirOperationGetResult(alloc, 0)))) continue;
    o3_builder_t b = o3_builder_before(dim);
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(dim, 0), alloc_size(&b, alloc, index));
    mlirOperationDestroy(dim);
  }
}

/* The transforms of a winograd convolution are not the loops that they are written as: its product counts.
 * Their buffers exist where its last op is. */
static o3_status_t begin(const inlined_t *self) {
  o3_winograd_kernel_t winograd;
  MlirValue values[MAX_ARGUMENTS + 1];
  int64_t number = o3_op_int(self->call, O3_CPU_KERNEL_NUMBER, -1);
  o3_kernel_work_t work = {self->num_ops, self->ops, (int)mlirOperationGetNumOperands(self->call), values};
  if (number < 0) return o3_kernel_internal(self, "its call has no number");
  for (int i = 0; i < work.num_values; ++i) values[i] = mlirOperationGetOperand(self->call, i);
  o3_builder_t b = o3_builder_before(self->num_ops ? self->ops[0] : self->call);
  if (is_winograd(self->kernel)) {
    if (!self->num_ops || !o3_winograd_read(self->num_ops, self->ops, &winograd))
      return not_winograd(self->kernel);
    work.num_ops = 1;
    work.ops = &winograd.product;
    b = o3_builder_before(self->ops[self->num_ops - 1]);
  }
  o3_cpu_kernel_begin(&b, self->module, number, &work);
  for (int i = 0; i < self->num_buffers; ++i) fold_sizes(self->buffers[i]);
  return NULL;
}

/* ---- Single ops ---- */

static o3_status_t emit_single(inlined_t *self) {
  bool single = self->num_ops == 1 && self->num_buffers == 0;
  return single ? NULL : o3_kernel_internal(self, "its ops did not become one");
}

/* ---- Products ---- */

static bool reduces(MlirOperation op) {
  static _Thread_local o3_nest_t nest;
  bool found = o3_str_equal(o3_op_string(op, "o3.kernel"), "sparse");
  if (!o3_nest_read(op, &nest)) return false;
  for (int d = 0; d < nest.num_dims; ++d) found |= nest.reduction[d];
  return found;
}

/* The op that writes the kernel's own buffer: the product's input with its border. */
static bool is_padding(const inlined_t *self, MlirOperation op) {
  MlirValue out = mlirOperationGetOperand(op, mlirOperationGetNumOperands(op) - 1);
  return self->num_buffers && mlirValueEqual(out, mlirOperationGetResult(self->buffers[0], 0));
}

static o3_status_t emit_contraction(inlined_t *self) {
  o3_product_kernel_t kernel = {.num_before = 0};
  if (self->num_buffers > 1) return o3_kernel_internal(self, "a product has no buffer but its padded input");
  for (int i = 0; i < self->num_ops; ++i) {
    bool found = !mlirOperationIsNull(kernel.product);
    if (is_padding(self, self->ops[i])) {
      kernel.padding = self->ops[i];
    } else if (!found && reduces(self->ops[i])) {
      kernel.product = self->ops[i];
    } else if (found ? kernel.num_after == 4 : kernel.num_before == 4) {
      return o3_kernel_internal(self, "too many ops around the product");
    } else if (found) {
      kernel.after[kernel.num_after++] = self->ops[i];
    } else {
      kernel.before[kernel.num_before++] = self->ops[i];
    }
  }
  if (mlirOperationIsNull(kernel.product)) return o3_kernel_internal(self, "it has no product");
  if (self->num_buffers && mlirOperationIsNull(kernel.padding))
    return o3_kernel_internal(self, "nothing writes the buffer of its own");
  O3_TRY(o3_product_emit(self->env, self->module, &kernel));
  for (int i = 0; i < self->num_buffers; ++i) mlirOperationDestroy(self->buffers[i]);
  return NULL;
}

/* The buffers between its ops are parts of the scratch memory. */
static void destroy_body(inlined_t *self) {
  for (int i = 0; i < self->num_ops; ++i) mlirOperationDestroy(self->ops[i]);
  for (int i = 0; i < self->num_buffers; ++i) mlirOperationDestroy(self->buffers[i]);
}

static o3_status_t emit_winograd(inlined_t *self) {
  o3_winograd_kernel_t kernel;
  if (!o3_winograd_read(self->num_ops, self->ops, &kernel)) return not_winograd(self->kernel);
  O3_TRY(o3_winograd_emit(self->env, self->module, &kernel, mlirOperationGetOperand(self->call, 0)));
  destroy_body(self);
  return NULL;
}

static o3_status_t emit_chain(inlined_t *self) {
  O3_TRY(o3_chain_emit(self->env, self->module, self->num_ops, self->ops,
                       mlirOperationGetOperand(self->call, 0)));
  destroy_body(self);
  return NULL;
}

static o3_status_t emit_attention(inlined_t *self) {
  return o3_attention_emit(self->env, self->module, self->num_ops, self->ops, self->num_buffers,
                           self->buffers);
}

/* ---- Rows ---- */

typedef o3_row_dims_t row_dims_t;
typedef o3_rows_t rows_t;

const row_dims_t *o3_rows_find(const rows_t *self, MlirValue buffer) {
  for (int i = 0; i < self->num_known; ++i) {
    if (mlirValueEqual(self->known[i].buffer, buffer)) return &self->known[i];
  }
  return NULL;
}

static bool is_own_buffer(const rows_t *self, MlirValue value) {
  for (int i = 0; i < self->inlined->num_buffers; ++i) {
    if (mlirValueEqual(mlirOperationGetResult(self->inlined->buffers[i], 0), value)) return true;
  }
  return false;
}

static int dim_at(const o3_nest_operand_t *operand, int position) {
  MlirAffineExpr expr = operand->all_exprs[position];
  return mlirAffineExprIsADim(expr) ? (int)mlirAffineDimExprGetPosition(expr) : -1;
}

static int position_of(const o3_nest_operand_t *operand, int dim) {
  for (int r = 0; r < operand->num_terms; ++r) {
    if (dim_at(operand, r) == dim) return r;
  }
  return -1;
}

/* What the op writes tells which of its dims count the rows, and these what the buffers are that it reads. */
static o3_status_t trace_op(rows_t *self, int index) {
  static _Thread_local o3_nest_t nest;
  if (!o3_nest_read(self->inlined->ops[index], &nest))
    return o3_kernel_internal(self->inlined, "an op is no loop nest");
  const o3_nest_operand_t *out = &nest.operands[nest.num_inputs];
  const row_dims_t *written = o3_rows_find(self, out->value);
  if (!written) return o3_kernel_internal(self->inlined, "an op writes what no later op reads");
  int dims[O3_IR_MAX_RANK];
  for (int i = 0; i < self->num_rows; ++i) {
    dims[i] = dim_at(out, written->at[i]);
    if (dims[i] < 0) return o3_kernel_internal(self->inlined, "an op has no loop over the rows");
    self->frames[index].fixed[dims[i]] = true;
    self->loops[index][i] = dims[i];
  }
  for (int k = 0; k < nest.num_operands; ++k) {
    row_dims_t dims_of = {.buffer = nest.operands[k].value};
    if (!is_own_buffer(self, dims_of.buffer) || o3_rows_find(self, dims_of.buffer)) continue;
    for (int i = 0; i < self->num_rows; ++i) {
      dims_of.at[i] = position_of(&nest.operands[k], dims[i]);
      if (dims_of.at[i] < 0) return o3_kernel_internal(self->inlined, "a buffer is shared by rows");
    }
    self->known[self->num_known++] = dims_of;
  }
  return NULL;
}

/* memref<8x12x128xf32>, rows 0 and 1: memref<1x1x128xf32> on the stack. */
static o3_status_t build_stack(rows_t *self, o3_builder_t *b, row_dims_t *buffer) {
  MlirType type = mlirValueGetType(buffer->buffer);
  int64_t sizes[O3_IR_MAX_RANK];
  int rank = o3_type_rank(type);
  for (int r = 0; r < rank; ++r) sizes[r] = o3_type_dim(type, r);
  for (int i = 0; i < self->num_rows; ++i) sizes[buffer->at[i]] = 1;
  for (int r = 0; r < rank; ++r) {
    if (sizes[r] < 0)
      return o3_kernel_internal(self->inlined, "a row of unknown length cannot be on the stack");
  }
  int32_t none[2] = {0, 0};
  MlirValue row =
      o3_build1_attrs(b, "memref.alloca", o3_memref_type(rank, sizes, o3_type_element(type)), O3_NO_VALUES,
                      O3_ATTRS({"alignment", o3_attr_i64(b->context, O3_CPU_ALIGNMENT)},
                               {"operandSegmentSizes", mlirDenseI32ArrayGet(b->context, 2, none)}));
  mlirValueReplaceAllUsesOfWith(buffer->buffer, row);
  buffer->buffer = row;
  return NULL;
}

static void stay_in_row(const rows_t *self, o3_nest_t *nest) {
  for (int k = 0; k < nest->num_operands; ++k) {
    o3_nest_operand_t *operand = &nest->operands[k];
    const row_dims_t *dims = o3_rows_find(self, operand->value);
    MlirOperation def = dims ? o3_value_def(operand->value) : (MlirOperation){0};
    if (mlirOperationIsNull(def) || !o3_op_is(def, "memref.alloca")) continue;
    operand->is_contiguous = false;
    for (int i = 0; i < self->num_rows; ++i) operand->strides[dims->at[i]] = 0;
  }
}

o3_status_t o3_rows_read_op(const rows_t *self, int index, o3_nest_t *nest) {
  if (!o3_nest_read(self->inlined->ops[index], nest))
    return o3_kernel_internal(self->inlined, "an op is no loop nest");
  stay_in_row(self, nest);
  o3_nest_merge_around(nest, self->frames[index].fixed);
  return NULL;
}

static o3_status_t emit_row_op(rows_t *self, o3_builder_t *b, int index, const o3_rows_ahead_t *ahead) {
  static _Thread_local o3_nest_t nest;
  o3_loops_frame_t *frame = &self->frames[index];
  frame->ranged = -1;
  for (int i = 0; i < self->num_rows; ++i) frame->ivs[self->loops[index][i]] = self->ivs[i];
  O3_TRY(o3_rows_read_op(self, index, &nest));
  o3_nest_flatten(&nest, b);
  if (index == ahead->op) {
    O3_TRY(o3_rows_ahead_build(ahead, b, &nest, frame));
  } else {
    O3_TRY(o3_loops_build(&nest, b, frame));
  }
  mlirOperationDestroy(self->inlined->ops[index]);
  return NULL;
}

static o3_status_t rows_work(rows_t *self, int64_t *work) {
  static _Thread_local o3_nest_t nest;
  *work = 0;
  for (int i = 0; i < self->inlined->num_ops; ++i) {
    if (!o3_nest_read(self->inlined->ops[i], &nest))
      return o3_kernel_internal(self->inlined, "an op is no loop nest");
    *work += o3_loops_work(&nest, self->frames[i].fixed);
  }
  return NULL;
}

o3_status_t o3_rows_trace(rows_t *self, MlirValue out) {
  int64_t at[O3_IR_MAX_RANK];
  self->num_rows = o3_op_ints(self->inlined->kernel, O3_KERNEL_ROWS, at, O3_IR_MAX_RANK);
  if (self->num_rows < 0) return o3_kernel_internal(self->inlined, "o3.rows is missing");
  self->known[self->num_known++].buffer = out;
  for (int i = 0; i < self->num_rows; ++i) self->known[0].at[i] = (int)at[i];
  for (int i = self->inlined->num_ops - 1; i >= 0; --i) O3_TRY(trace_op(self, i));
  return NULL;
}

/* The last op of a kernel says how its rows are shared. */
static o3_status_t read_rows_schedule(const rows_t *self, int64_t work, o3_schedule_rows_t *schedule) {
  *schedule = o3_schedule_rows(work);
  if (self->inlined->num_ops < 1) return NULL;
  return o3_schedule_read(self->inlined->ops[self->inlined->num_ops - 1], O3_SCHEDULE_FAMILY_ROWS, schedule);
}

static o3_builder_t build_rows(rows_t *self, o3_builder_t *b, MlirValue out, int64_t work,
                               const o3_schedule_rows_t *schedule) {
  MlirValue sizes[O3_IR_MAX_RANK], steps[O3_IR_MAX_RANK];
  MlirType type = mlirValueGetType(out);
  if (!self->num_rows) return *b;
  for (int i = 0; i < self->num_rows; ++i) {
    int r = self->known[0].at[i];
    int64_t size = o3_type_dim(type, r);
    sizes[i] = size >= 0
                   ? o3_build_index(b, size)
                   : o3_build1(b, "memref.dim", o3_build_index_type(b), O3_VALUES(out, o3_build_index(b, r)));
    steps[i] = o3_build_index(b, 1);
  }
  o3_builder_t inside = o3_cpu_parallel(b, self->num_rows, sizes, steps, work, self->ivs);
  o3_op_attr_set(mlirBlockGetParentOperation(inside.block), O3_CPU_GRAIN,
                 o3_attr_i64(b->context, schedule->rows));
  return inside;
}

static o3_status_t emit_rows(inlined_t *inlined) {
  static _Thread_local rows_t self;
  int64_t work;
  o3_schedule_rows_t schedule;
  o3_rows_ahead_t ahead;
  MlirValue out = last_operand(inlined->call);
  self = (rows_t){.inlined = inlined};
  o3_row_marks_set(inlined);
  O3_TRY(o3_rows_trace(&self, out));
  O3_TRY(rows_work(&self, &work));
  O3_TRY(read_rows_schedule(&self, work, &schedule));
  o3_builder_t b = o3_builder_before(inlined->call);
  o3_builder_t inside = build_rows(&self, &b, out, work, &schedule);
  for (int i = 0; i < inlined->num_ops; ++i) mlirOperationMoveBefore(inlined->ops[i], inside.before);
  inside.before = inlined->num_ops ? inlined->ops[0] : inside.before;
  for (int i = 1; i < self.num_known; ++i) O3_TRY(build_stack(&self, &inside, &self.known[i]));
  O3_TRY(o3_rows_ahead_find(&self, &schedule, &inside, &ahead));
  for (int i = 0; i < inlined->num_ops; ++i) {
    o3_builder_t at = o3_builder_before(inlined->ops[i]);
    O3_TRY(emit_row_op(&self, &at, i, &ahead));
  }
  for (int i = 0; i < inlined->num_buffers; ++i) mlirOperationDestroy(inlined->buffers[i]);
  return NULL;
}

/* ---- All calls ---- */

static const struct {
  const char *kind;
  o3_status_t (*emit)(inlined_t *self);
} EMITTERS[] = {
    {"elementwise", emit_single}, {"movement", emit_single},     {"contraction", emit_contraction},
    {"winograd", emit_winograd},  {"attention", emit_attention}, {"rows", emit_rows},
    {"chain", emit_chain}};

static o3_status_t emit_by_kind(inlined_t *self, void *context) {
  MlirStringRef kind = o3_op_string(self->kernel, O3_KERNEL_KIND);
  (void)context;
  for (size_t i = 0; i < sizeof(EMITTERS) / sizeof(EMITTERS[0]); ++i)
    if (o3_str_equal(kind, EMITTERS[i].kind)) return EMITTERS[i].emit(self);
  return o3_kernel_internal(self, "there is no emitter for its o3.kernel_kind");
}

typedef struct calls {
  o3_pass_env_t *env;
  MlirModule module, kernels;
  o3_str_map_t *by_name; /* the kernels */
  o3_ptr_vec_t list;
  o3_kernel_emit_fn_t emit;
  void *context;
} calls_t;

static o3_status_t emit_call(const calls_t *calls, MlirOperation call) {
  static _Thread_local inlined_t self;
  self = (inlined_t){.env = calls->env,
                     .module = calls->module,
                     .kernel = o3_fuse_called_kernel(calls->by_name, call),
                     .call = call,
                     .values = o3_ptr_map_create(calls->env->arena)};
  O3_TRY_ALLOC(self.values);
  O3_TRY(inline_body(&self));
  O3_TRY(begin(&self));
  O3_TRY(calls->emit(&self, calls->context));
  mlirOperationDestroy(call);
  return NULL;
}

static o3_status_t collect_call(MlirOperation op, void *context) {
  calls_t *calls = context;
  if (mlirOperationIsNull(o3_fuse_called_kernel(calls->by_name, op)) || o3_ptr_vec_push(&calls->list, op.ptr))
    return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* Into a module of their own: emitters look for functions that they have in common, and thousands of kernels
 * would stand before them. */
static void take_kernels(const calls_t *calls) {
  MlirOperation next, func = mlirBlockGetFirstOperation(mlirModuleGetBody(calls->module));
  for (; !mlirOperationIsNull(func); func = next) {
    next = mlirOperationGetNextInBlock(func);
    if (!is_kernel(func)) continue;
    mlirOperationRemoveFromParent(func);
    mlirBlockAppendOwnedOperation(mlirModuleGetBody(calls->kernels), func);
  }
}

static o3_status_t emit_calls(calls_t *calls) {
  O3_TRY(o3_fuse_list_kernels(calls->env->arena, calls->module, &calls->by_name));
  O3_TRY(o3_walk(o3_module_func(calls->module, "main"), collect_call, calls));
  take_kernels(calls);
  for (size_t i = 0; i < calls->list.count; ++i)
    O3_TRY(emit_call(calls, (MlirOperation){calls->list.items[i]}));
  return NULL;
}

o3_status_t o3_kernels_emit(o3_pass_env_t *env, MlirModule module, o3_kernel_emit_fn_t emit, void *context) {
  calls_t calls = {.env = env,
                   .module = module,
                   .kernels = mlirModuleCreateEmpty(mlirLocationUnknownGet(env->context)),
                   .list = o3_ptr_vec(env->arena),
                   .emit = emit,
                   .context = context};
  o3_status_t status = emit_calls(&calls);
  mlirModuleDestroy(calls.kernels);
  return status;
}

o3_status_t o3_cpu_kernels(o3_pass_env_t *env, MlirModule module) {
  o3_cpu_load_dialects(env->context);
  return o3_kernels_emit(env, module, emit_by_kind, NULL);
}
