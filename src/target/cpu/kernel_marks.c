/* cpu-kernel-marks: numbers what @main does, for profiles.
 *
 *     linalg.generic ... {"Relu_3"}      ->  llvm.call @o3rt_kernel_begin(%session, 7, operations, bytes)
 *                                            linalg.generic ... {"Relu_3"}
 *     func.call @k3_rows_Softmax(...)    ->  func.call @k3_rows_Softmax(...) {o3.kernel = 7}
 *
 * The latter is marked by cpu-kernels, when the call becomes the kernel's loops.
 *
 * Needs: @main has its session argument. Guarantees: the module's o3.kernels lists {name, kind, nodes} of
 * each number. Loops that hold no other kernel are marked as one. Nothing inside of parallel loops is marked.
 * Work is counted here and not in a table of expressions: sizes are at hand as values, whatever they depend
 * on.
 */
#include "target/cpu/kernel_marks.h"

#include <string.h>

#include "base/map.h"
#include "fuse/kernel_body.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/nest.h"
#include "target/cpu/sparse_match.h"

typedef struct marker {
  o3_pass_env_t *env;
  MlirModule module;
  o3_str_map_t *kernels;
  o3_ptr_vec_t entries; /* MlirAttribute.ptr */
} marker_t;

/* ---- Counting ---- */

/* A number times sizes that are known at run time only; the sum of such. */
typedef struct amount {
  int64_t fixed;
  MlirValue rest; /* index; null: nothing */
} amount_t;

static int64_t product(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

static void add(o3_builder_t *b, amount_t *sum, int64_t fixed, MlirValue factor) {
  if (mlirValueIsNull(factor)) {
    if (__builtin_add_overflow(sum->fixed, fixed, &sum->fixed)) sum->fixed = INT64_MAX;
    return;
  }
  MlirValue term = o3_build2(b, "arith.muli", factor, o3_build_index(b, fixed));
  sum->rest = mlirValueIsNull(sum->rest) ? term : o3_build2(b, "arith.addi", sum->rest, term);
}

static void multiply(o3_builder_t *b, MlirValue *factor, MlirValue by) {
  *factor = mlirValueIsNull(*factor) ? by : o3_build2(b, "arith.muli", *factor, by);
}

static MlirValue total(o3_builder_t *b, const amount_t *sum) {
  MlirType i64 = o3_cpu_i64_type(b->context);
  if (mlirValueIsNull(sum->rest)) return o3_build_int(b, i64, sum->fixed);
  MlirValue all =
      sum->fixed ? o3_build2(b, "arith.addi", sum->rest, o3_build_index(b, sum->fixed)) : sum->rest;
  return o3_cpu_to_i64(b, all);
}

/* What an op of a body counts: arithmetic on numbers; conversions, comparisons and selections are free. */
static int64_t operations_of(MlirOperation op) {
  static const char *const COUNTED[] = {"arith.add", "arith.sub", "arith.mul", "arith.div", "arith.neg",
                                        "arith.max", "arith.min", "arith.rem", "math."};
  MlirStringRef name = o3_op_name(op);
  bool number = mlirOperationGetNumResults(op) == 1 &&
                !mlirTypeIsAIndex(mlirValueGetType(mlirOperationGetResult(op, 0)));
  for (size_t i = 0; number && i < sizeof(COUNTED) / sizeof(COUNTED[0]); ++i) {
    size_t length = strlen(COUNTED[i]);
    if (name.length >= length && !strncmp(name.data, COUNTED[i], length))
      return o3_op_is(op, "math.fma") ? 2 : 1;
  }
  return 0;
}

/* Blocks of channels that are not full are counted for what they hold: of |channels| 16 of each block are
 * among the dims. */
static int64_t without_padding(MlirOperation op, int64_t all) {
  enum { LANES = O3_BLOCK_LANES };
  int64_t channels[2];
  if (o3_op_ints(op, "o3.channels", channels, 2) != 2) return all;
  for (int i = 0; i < 2; ++i) {
    int64_t padded = (channels[i] + LANES - 1) / LANES * LANES;
    if (padded && all % padded == 0) all = product(all / padded, channels[i]);
  }
  return all;
}

/* |fixed| operations for each iteration of the dims that |left_out| does not hold. */
static void count_iterations(o3_builder_t *b, const o3_nest_t *nest, int64_t fixed, const bool *left_out,
                             amount_t *sum) {
  MlirValue factor = {0};
  for (int d = 0; d < nest->num_dims; ++d) {
    if (left_out[d]) continue;
    if (nest->sizes[d] >= 0) {
      fixed = product(fixed, nest->sizes[d]);
    } else {
      multiply(b, &factor, o3_nest_own_size(nest, d, b));
    }
  }
  add(b, sum, without_padding(nest->op, fixed), factor);
}

/* What is stored is multiplied, for each position of the result; zeros that are not stored cost nothing. */
static bool count_stored(o3_builder_t *b, MlirOperation op, amount_t *sum) {
  static _Thread_local o3_nest_t nest;
  bool outputs[O3_IR_MAX_RANK] = {false};
  o3_sparse_form_t form;
  if (!o3_sparse_match(op, &nest, &form)) return false;
  outputs[form.is_matmul ? nest.num_dims - 1 : 1] = true;
  if (!form.is_matmul) outputs[4] = true; /* lanes of blocks */
  int64_t entries = nest.operands[O3_SPARSE_VALUES].sizes[0];
  count_iterations(b, &nest, product(2 * form.lanes * form.depth, entries), outputs, sum);
  return true;
}

static void count_operations(o3_builder_t *b, MlirOperation op, amount_t *sum) {
  static _Thread_local o3_nest_t nest;
  const bool none[O3_IR_MAX_RANK] = {false};
  int64_t fixed = 0;
  if (count_stored(b, op, sum) || !o3_nest_read(op, &nest)) return;
  MlirOperation inner = mlirBlockGetFirstOperation(nest.body);
  for (; !mlirOperationIsNull(inner); inner = mlirOperationGetNextInBlock(inner))
    fixed += operations_of(inner);
  if (fixed != 0) count_iterations(b, &nest, fixed, none, sum);
}

static void count_bytes(o3_builder_t *b, MlirValue value, amount_t *sum) {
  MlirType type = mlirValueGetType(value);
  MlirValue factor = {0};
  if (!mlirTypeIsAMemRef(type)) return;
  int64_t fixed = o3_type_bits(o3_type_element(type)) / 8;
  for (int r = 0; r < o3_type_rank(type); ++r) {
    int64_t size = o3_type_dim(type, r);
    if (size >= 0) {
      fixed = product(fixed, size);
    } else {
      MlirValue index = o3_build_index(b, r);
      multiply(b, &factor, o3_build1(b, "memref.dim", o3_build_index_type(b), O3_VALUES(value, index)));
    }
  }
  add(b, sum, fixed, factor);
}

static bool is_repeated(const o3_kernel_work_t *work, int index) {
  for (int i = 0; i < index; ++i) {
    if (mlirValueEqual(work->values[i], work->values[index])) return true;
  }
  return false;
}

void o3_cpu_kernel_begin(o3_builder_t *b, MlirModule module, int64_t number, const o3_kernel_work_t *work) {
  amount_t operations = {0}, bytes = {0};
  for (int i = 0; i < work->num_ops; ++i) count_operations(b, work->ops[i], &operations);
  for (int i = 0; i < work->num_values; ++i) {
    if (!is_repeated(work, i)) count_bytes(b, work->values[i], &bytes);
  }
  MlirValue id = o3_build_int(b, mlirIntegerTypeGet(b->context, 32), number);
  MlirValue operands[] = {o3_cpu_session(module), id, total(b, &operations), total(b, &bytes)};
  o3_cpu_call_runtime(b, module, O3_CPU_RT_KERNEL_BEGIN, 4, operands);
}

/* ---- The list ---- */

/* |names| without repetitions. */
static o3_status_t distinct(marker_t *self, MlirAttribute names, MlirAttribute *result) {
  intptr_t count = mlirArrayAttrGetNumElements(names), kept = 0;
  MlirAttribute *items = O3_ARENA_ARRAY(self->env->arena, MlirAttribute, (size_t)count + 1);
  O3_TRY_ALLOC(items);
  for (intptr_t i = 0; i < count; ++i) {
    MlirAttribute name = mlirArrayAttrGetElement(names, i);
    bool seen = false;
    for (intptr_t k = 0; k < kept; ++k) seen |= mlirAttributeEqual(items[k], name);
    if (!seen) items[kept++] = name;
  }
  *result = mlirArrayAttrGet(self->env->context, kept, items);
  return NULL;
}

static o3_status_t list(marker_t *self, MlirStringRef name, MlirStringRef kind, MlirAttribute nodes,
                        int64_t *number) {
  MlirContext context = self->env->context;
  MlirNamedAttribute fields[] = {
      mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR("name")), mlirStringAttrGet(context, name)),
      mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR("kind")), mlirStringAttrGet(context, kind)),
      mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR("nodes")), nodes)};
  MlirAttribute entry = mlirDictionaryAttrGet(context, 3, fields);
  *number = (int64_t)self->entries.count;
  if (o3_ptr_vec_push(&self->entries, (void *)(uintptr_t)entry.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* ---- The walk ---- */

static o3_status_t mark_call(marker_t *self, MlirOperation call, MlirOperation kernel) {
  MlirAttribute nodes;
  int64_t number;
  O3_TRY(distinct(self, o3_op_attr(kernel, O3_KERNEL_NODES), &nodes));
  O3_TRY(list(self, o3_op_string(kernel, "sym_name"), o3_op_string(kernel, O3_KERNEL_KIND), nodes, &number));
  o3_op_attr_set(call, O3_CPU_KERNEL_NUMBER, o3_attr_i64(self->env->context, number));
  return NULL;
}

/* One op alone; |kind| says what of. */
static o3_status_t mark_op(marker_t *self, MlirOperation op, const char *kind, const o3_kernel_work_t *work) {
  MlirAttribute label = mlirStringAttrGet(self->env->context, o3_op_label(op));
  int64_t number;
  O3_TRY(list(self, o3_op_label(op), O3_STR(kind), mlirArrayAttrGet(self->env->context, 1, &label), &number));
  o3_builder_t b = o3_builder_before(op);
  o3_cpu_kernel_begin(&b, self->module, number, work);
  return NULL;
}

static o3_status_t mark_generic(marker_t *self, MlirOperation op) {
  static _Thread_local o3_nest_t nest;
  MlirValue values[O3_NEST_MAX_OPERANDS];
  bool reduces = false, multiplies = false, read = o3_nest_read(op, &nest);
  for (int d = 0; read && d < nest.num_dims; ++d) reduces |= nest.reduction[d];
  MlirOperation inner = read ? mlirBlockGetFirstOperation(nest.body) : (MlirOperation){0};
  for (; !mlirOperationIsNull(inner); inner = mlirOperationGetNextInBlock(inner))
    multiplies |= o3_op_is(inner, "arith.mulf") || o3_op_is(inner, "arith.muli");
  for (int i = 0; read && i < nest.num_operands; ++i) values[i] = nest.operands[i].value;
  o3_kernel_work_t work = {1, &op, read ? nest.num_operands : 0, values};
  return mark_op(self, op, !reduces ? "elementwise" : multiplies ? "contraction" : "reduction", &work);
}

static o3_status_t is_work(MlirOperation op, void *context) {
  bool *found = context;
  *found |= o3_op_is(op, "linalg.generic") || o3_op_is(op, "func.call");
  return NULL;
}

static o3_status_t mark_block(marker_t *self, MlirBlock block);

static o3_status_t mark_regions(marker_t *self, MlirOperation op) {
  static const o3_kernel_work_t NOTHING = {0};
  bool has_work = false, is_parallel = o3_op_is(op, "scf.parallel"), is_branch = o3_op_is(op, "scf.if");
  O3_TRY(o3_walk(op, is_work, &has_work));
  if (!has_work || is_parallel) return is_branch ? NULL : mark_op(self, op, "loop", &NOTHING);
  for (intptr_t i = 0; i < mlirOperationGetNumRegions(op); ++i) {
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, i));
    for (; !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block)) O3_TRY(mark_block(self, block));
  }
  return NULL;
}

static o3_status_t mark_block(marker_t *self, MlirBlock block) {
  MlirOperation op = mlirBlockGetFirstOperation(block);
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op), kernel = o3_fuse_called_kernel(self->kernels, op);
    if (!mlirOperationIsNull(kernel)) {
      O3_TRY(mark_call(self, op, kernel));
    } else if (o3_op_is(op, "linalg.generic")) {
      O3_TRY(mark_generic(self, op));
    } else if (mlirOperationGetNumRegions(op)) {
      O3_TRY(mark_regions(self, op));
    }
    op = next;
  }
  return NULL;
}

o3_status_t o3_cpu_kernel_marks(o3_pass_env_t *env, MlirModule module) {
  marker_t self = {.env = env, .module = module, .entries = o3_ptr_vec(env->arena)};
  o3_cpu_load_dialects(env->context);
  O3_TRY(o3_fuse_list_kernels(env->arena, module, &self.kernels));
  O3_TRY(mark_block(&self, o3_func_body(o3_module_func(module, "main"))));
  MlirAttribute *items = O3_ARENA_ARRAY(env->arena, MlirAttribute, self.entries.count + 1);
  O3_TRY_ALLOC(items);
  for (size_t i = 0; i < self.entries.count; ++i) items[i].ptr = self.entries.items[i];
  o3_op_attr_set(mlirModuleGetOperation(module), "o3.kernels",
                 mlirArrayAttrGet(env->context, (intptr_t)self.entries.count, items));
  return NULL;
}
