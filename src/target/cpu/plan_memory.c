/* cpu-plan-memory: one arena for all buffers whose sizes are known when @main starts.
 *
 * Needs: a bufferized module (cpu-bufferize, cpu-deallocate). Guarantees: @main's first argument is the
 * session (!llvm.ptr); no memref.alloc or memref.dealloc is left.
 *
 *     %a = memref.alloc(%n) : memref<?x64xf32>
 * ->  %p = llvm.call @o3rt_arena(%session, %bytes)            once, at the start
 *     %a = memref.view %arena[%offset][%n] {o3.plan = {...}} : memref<?xi8> to memref<?x64xf32>
 *
 * A buffer lives from the first to the last op of the entry block that uses it or an alias of it, inside
 * regions too; what is returned lives to the end. Buffers whose sizes are fixed numbers times the same
 * product of sizes of arguments form a group; a group is packed in units of that product, so that one plan
 * serves every batch size. Small fixed numbers would waste on alignment: such buffers share slots as large as
 * the largest in them. Others, whose sizes depend on data or which a loop carries on, come from o3rt_alloc.
 */
#include <stdlib.h>
#include <string.h>

#include "target/cpu/alias.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/hoist.h"
#include "target/cpu/pack_intervals.h"

/* Dynamic sizes. Products of the same ones are equal whatever their order; code multiplies them in that of an
 * alloc, which is the same in each compilation, as addresses are not. */
typedef struct dims {
  int count;
  MlirValue listed[O3_IR_MAX_RANK]; /* as the alloc has them */
  MlirValue sorted[O3_IR_MAX_RANK]; /* by address */
} dims_t;

typedef struct buffer {
  MlirOperation alloc;
  MlirValue value;
  o3_aliases_t aliases;
  int64_t first, last; /* positions in the entry block */
  int64_t fixed;       /* bytes but for the dynamic sizes */
  dims_t dims;
  int64_t offset; /* in its group, in units of the product of dims */
  int group;
} buffer_t;

/* Buffers with the same dims; or, if |slot|, any that live one after another. */
typedef struct group {
  bool slot;
  dims_t dims;
  int64_t total, live; /* bytes for each unit */
  int64_t last;        /* of a slot: when its newest buffer ends */
  MlirValue base;      /* result: offset in the arena */
} group_t;

typedef struct plan {
  o3_pass_env_t *env;
  MlirModule module;
  MlirOperation main;
  buffer_t *buffers;
  int num_buffers, capacity;
  group_t *groups;
  int num_groups;
} plan_t;

static int64_t round_up(int64_t bytes) {
  return bytes > INT64_MAX - O3_CPU_ALIGNMENT ? bytes
                                              : (bytes + O3_CPU_ALIGNMENT - 1) & -(int64_t)O3_CPU_ALIGNMENT;
}

/* ---- The session ---- */

static o3_status_t add_session(o3_pass_env_t *env, MlirOperation main) {
  MlirBlock body = o3_func_body(main);
  MlirType type = mlirTypeAttrGetValue(o3_op_attr(main, "function_type"));
  mlirBlockInsertArgument(body, 0, o3_cpu_ptr_type(env->context), mlirOperationGetLocation(main));
  intptr_t num_inputs = mlirBlockGetNumArguments(body), num_results = mlirFunctionTypeGetNumResults(type);
  MlirType *inputs = O3_ARENA_ARRAY(env->arena, MlirType, (size_t)num_inputs);
  MlirType *results = O3_ARENA_ARRAY(env->arena, MlirType, (size_t)num_results + 1);
  O3_TRY_ALLOC(inputs);
  O3_TRY_ALLOC(results);
  for (intptr_t i = 0; i < num_inputs; ++i) inputs[i] = mlirValueGetType(mlirBlockGetArgument(body, i));
  for (intptr_t i = 0; i < num_results; ++i) results[i] = mlirFunctionTypeGetResult(type, i);
  MlirType changed = mlirFunctionTypeGet(env->context, num_inputs, inputs, num_results, results);
  mlirOperationRemoveAttributeByName(main, O3_STR("arg_attrs"));
  o3_op_attr_set(main, "function_type", o3_attr_type(changed));
  return NULL;
}

/* ---- Which buffers ---- */

static int compare_values(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)((const MlirValue *)a)->ptr, y = (uintptr_t)((const MlirValue *)b)->ptr;
  return (x > y) - (x < y);
}

static dims_t dims_of(MlirOperation alloc) {
  dims_t dims = {.count = (int)mlirOperationGetNumOperands(alloc)};
  for (int i = 0; i < dims.count; ++i) dims.listed[i] = dims.sorted[i] = mlirOperationGetOperand(alloc, i);
  qsort(dims.sorted, (size_t)dims.count, sizeof(MlirValue), compare_values);
  return dims;
}

static bool are_same_dims(const dims_t *a, const dims_t *b) {
  return a->count == b->count && !memcmp(a->sorted, b->sorted, (size_t)a->count * sizeof(MlirValue));
}

/* False when the fixed part is absurd. */
static bool measure(buffer_t *buffer) {
  MlirType type = mlirValueGetType(buffer->value);
  buffer->fixed = o3_type_bits(o3_type_element(type)) / 8;
  for (int i = 0; i < o3_type_rank(type); ++i) {
    int64_t size = o3_type_dim(type, i);
    if (size >= 0 && __builtin_mul_overflow(buffer->fixed, size, &buffer->fixed)) return false;
  }
  buffer->dims = dims_of(buffer->alloc);
  return buffer->fixed < INT64_MAX / 4;
}

/* Of a GPU target, a buffer is in the memory of the card unless it is marked. */
static bool is_on_card(const plan_t *plan, MlirOperation op) {
  return plan->env->machine->gpu && mlirAttributeIsNull(o3_op_attr(op, "o3.host"));
}

static bool is_known_at_start(const plan_t *plan, const buffer_t *buffer) {
  for (int i = 0; i < buffer->dims.count; ++i) {
    if (!o3_hoist_is_possible(buffer->dims.listed[i], plan->main)) return false;
  }
  return true;
}

/* A dealloc of the buffer and no other, always run after its alloc, can go; any other must stay. */
static bool has_removable_deallocs(const buffer_t *buffer) {
  for (size_t i = 0; i < buffer->aliases.users.count; ++i) {
    MlirOperation user = {buffer->aliases.users.items[i]};
    if (!o3_op_is(user, "memref.dealloc")) continue;
    MlirValue freed = mlirOperationGetOperand(user, 0);
    MlirOperation def = o3_value_def(freed);
    if (o3_op_is(def, "memref.extract_strided_metadata")) freed = mlirOperationGetOperand(def, 0);
    bool plain = mlirValueEqual(freed, buffer->value) &&
                 mlirBlockEqual(mlirOperationGetBlock(user), mlirOperationGetBlock(buffer->alloc));
    if (!plain) return false;
  }
  return true;
}

static o3_status_t count_alloc(MlirOperation op, void *context) {
  plan_t *plan = context;
  plan->capacity += o3_op_is(op, "memref.alloc");
  return NULL;
}

static o3_status_t collect(MlirOperation op, void *context) {
  plan_t *plan = context;
  if (!o3_op_is(op, "memref.alloc")) return NULL;
  buffer_t *buffer = &plan->buffers[plan->num_buffers];
  *buffer = (buffer_t){.alloc = op, .value = mlirOperationGetResult(op, 0), .first = INT64_MAX, .last = -1};
  O3_TRY(o3_aliases_of(plan->env->arena, buffer->value, &buffer->aliases));
  bool in_arena = !plan->env->machine->gpu || is_on_card(plan, op);
  bool planned = in_arena && measure(buffer) && !buffer->aliases.carried && !buffer->aliases.escapes &&
                 is_known_at_start(plan, buffer) && has_removable_deallocs(buffer);
  plan->num_buffers += planned;
  return NULL;
}

/* ---- Lifetimes ---- */

static MlirOperation top_level(MlirOperation op, MlirBlock entry) {
  while (!mlirBlockEqual(mlirOperationGetBlock(op), entry)) op = mlirOperationGetParentOperation(op);
  return op;
}

static o3_status_t number_entry(const plan_t *plan, o3_ptr_map_t *numbers) {
  intptr_t number = 0;
  MlirOperation op = mlirBlockGetFirstOperation(o3_func_body(plan->main));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (!o3_ptr_map_put(numbers, op.ptr, (void *)++number))
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  return NULL;
}

static void find_lifetime(const plan_t *plan, const o3_ptr_map_t *numbers, buffer_t *buffer) {
  MlirBlock entry = o3_func_body(plan->main);
  for (size_t i = 0; i < buffer->aliases.users.count; ++i) {
    MlirOperation user = {buffer->aliases.users.items[i]};
    if (o3_op_is(user, "memref.dealloc")) continue;
    int64_t at = (intptr_t)o3_ptr_map_get(numbers, top_level(user, entry).ptr);
    if (at < buffer->first) buffer->first = at;
    if (at > buffer->last) buffer->last = at;
  }
  if (buffer->aliases.returned) buffer->last = INT64_MAX;
}

static o3_status_t find_lifetimes(plan_t *plan) {
  o3_ptr_map_t *numbers = o3_ptr_map_create(plan->env->arena);
  O3_TRY_ALLOC(numbers);
  O3_TRY(number_entry(plan, numbers));
  for (int i = 0; i < plan->num_buffers; ++i) find_lifetime(plan, numbers, &plan->buffers[i]);
  return NULL;
}

/* ---- Groups ---- */

static int find_group(const plan_t *plan, const buffer_t *buffer) {
  for (int i = 0; i < plan->num_groups; ++i) {
    const group_t *group = &plan->groups[i];
    if (!group->slot && are_same_dims(&group->dims, &buffer->dims)) return i;
  }
  return -1;
}

/* A free slot, one of the same dims if there is, as its size does not grow then. */
static int find_slot(const plan_t *plan, const buffer_t *buffer) {
  int found = -1;
  for (int i = 0; i < plan->num_groups; ++i) {
    const group_t *group = &plan->groups[i];
    if (!group->slot || group->last >= buffer->first) continue;
    if (are_same_dims(&group->dims, &buffer->dims)) return i;
    if (found < 0) found = i;
  }
  return found;
}

static int add_group(plan_t *plan, const buffer_t *buffer, bool slot) {
  plan->groups[plan->num_groups] = (group_t){.slot = slot, .dims = buffer->dims};
  return plan->num_groups++;
}

static void assign_group(plan_t *plan, buffer_t *buffer) {
  int64_t rounded = round_up(buffer->fixed);
  bool slot = buffer->dims.count > 0 && rounded - buffer->fixed > buffer->fixed / 10;
  int group = slot ? find_slot(plan, buffer) : find_group(plan, buffer);
  if (group < 0) group = add_group(plan, buffer, slot);
  buffer->group = group;
  plan->groups[group].last = buffer->last;
}

static int by_first(const void *a, const void *b) {
  const buffer_t *x = a, *y = b;
  return x->first != y->first ? (x->first < y->first ? -1 : 1) : (x->last > y->last) - (x->last < y->last);
}

static o3_status_t pack_group(plan_t *plan, int index) {
  group_t *group = &plan->groups[index];
  o3_interval_t *intervals = O3_ARENA_ARRAY(plan->env->arena, o3_interval_t, (size_t)plan->num_buffers);
  int count = 0;
  int64_t sum = 0;
  O3_TRY_ALLOC(intervals);
  for (int i = 0; i < plan->num_buffers; ++i) {
    const buffer_t *buffer = &plan->buffers[i];
    if (buffer->group != index) continue;
    intervals[count++] = (o3_interval_t){round_up(buffer->fixed), buffer->first, buffer->last, 0};
    if (__builtin_add_overflow(sum, round_up(buffer->fixed), &sum))
      return o3_status_create(O3_STATUS_UNSUPPORTED, "the buffers of the model take more than 2^63 bytes");
  }
  if (!group->slot) O3_TRY(o3_intervals_pack(plan->env->arena, intervals, count, &group->total));
  group->live = o3_intervals_live_max(intervals, count);
  for (int i = 0, at = 0; i < plan->num_buffers && !group->slot; ++i) {
    if (plan->buffers[i].group == index) plan->buffers[i].offset = intervals[at++].offset;
  }
  return NULL;
}

static o3_status_t make_groups(plan_t *plan) {
  qsort(plan->buffers, (size_t)plan->num_buffers, sizeof(buffer_t), by_first);
  for (int i = 0; i < plan->num_buffers; ++i) assign_group(plan, &plan->buffers[i]);
  for (int i = 0; i < plan->num_groups; ++i) O3_TRY(pack_group(plan, i));
  return NULL;
}

/* ---- Code ---- */

/* A number of bytes computed twice: exactly modulo 2^64, and roughly, to see whether it fits. */
typedef struct amount {
  MlirValue exact; /* index */
  MlirValue rough; /* f64 */
} amount_t;

static amount_t amount_of(o3_builder_t *b, int64_t fixed, const dims_t *dims) {
  MlirType f64 = mlirF64TypeGet(b->context);
  amount_t it = {o3_build_index(b, fixed), o3_build_float(b, f64, (double)fixed)};
  for (int i = 0; i < dims->count; ++i) {
    MlirValue rough = o3_build1(b, "arith.sitofp", f64, O3_VALUES(o3_cpu_to_i64(b, dims->listed[i])));
    it.exact = o3_build2(b, "arith.muli", it.exact, dims->listed[i]);
    it.rough = o3_build2(b, "arith.mulf", it.rough, rough);
  }
  return it;
}

static amount_t aligned(o3_builder_t *b, amount_t it) {
  MlirValue more = o3_build2(b, "arith.addi", it.exact, o3_build_index(b, O3_CPU_ALIGNMENT - 1));
  it.exact = o3_build2(b, "arith.andi", more, o3_build_index(b, -O3_CPU_ALIGNMENT));
  return it;
}

/* Beyond 2^62 bytes the runtime is asked for more than any machine has, and reports it. */
static MlirValue checked_bytes(o3_builder_t *b, amount_t it) {
  MlirValue limit = o3_build_float(b, mlirF64TypeGet(b->context), 0x1p62);
  MlirValue fits = o3_build_cmpf(b, O3_CMPF_OLT, it.rough, limit);
  return o3_build_select(b, fits, it.exact, o3_build_index(b, INT64_MAX / 2));
}

static amount_t slot_amount(plan_t *plan, o3_builder_t *b, int index) {
  amount_t most = {0};
  for (int i = 0; i < plan->num_buffers; ++i) {
    const buffer_t *buffer = &plan->buffers[i];
    if (buffer->group != index) continue;
    amount_t it = aligned(b, amount_of(b, buffer->fixed, &buffer->dims));
    if (!mlirValueIsNull(most.exact)) {
      it.exact = o3_build2(b, "arith.maxui", most.exact, it.exact);
      it.rough = o3_build2(b, "arith.maximumf", most.rough, it.rough);
    }
    most = it;
  }
  return most;
}

/* Lays the groups one after another; gives the bytes of all. */
static MlirValue lay_groups(plan_t *plan, o3_builder_t *b) {
  amount_t total = {o3_build_index(b, 0), o3_build_float(b, mlirF64TypeGet(b->context), 0.0)};
  for (int i = 0; i < plan->num_groups; ++i) {
    group_t *group = &plan->groups[i];
    amount_t it = group->slot ? slot_amount(plan, b, i) : amount_of(b, group->total, &group->dims);
    group->base = total.exact;
    total.exact = o3_build2(b, "arith.addi", total.exact, it.exact);
    total.rough = o3_build2(b, "arith.addf", total.rough, it.rough);
  }
  return checked_bytes(b, total);
}

static MlirAttribute describe(const plan_t *plan, const buffer_t *buffer) {
  MlirContext context = plan->env->context;
  const group_t *group = &plan->groups[buffer->group];
  const struct {
    const char *name;
    int64_t value;
  } fields[] = {{"bytes", buffer->fixed},
                {"first", buffer->first},
                {"group", buffer->group},
                {"last", buffer->last},
                {group->slot ? "slot" : "offset", buffer->offset}};
  MlirNamedAttribute named[5];
  for (int i = 0; i < 5; ++i)
    named[i] = mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR(fields[i].name)),
                                     o3_attr_i64(context, fields[i].value));
  return mlirDictionaryAttrGet(context, 5, named);
}

static void view_instead(MlirOperation alloc, o3_builder_t *b, MlirValue bytes, MlirValue offset,
                         MlirAttribute description) {
  MlirValue operands[O3_IR_MAX_RANK + 2] = {bytes, offset};
  int count = (int)mlirOperationGetNumOperands(alloc);
  for (int i = 0; i < count; ++i) operands[i + 2] = mlirOperationGetOperand(alloc, i);
  MlirType type = mlirValueGetType(mlirOperationGetResult(alloc, 0));
  MlirValue view =
      o3_build1_attrs(b, "memref.view", type, count + 2, operands, O3_ATTRS({"o3.plan", description}));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(alloc, 0), view);
  mlirOperationDestroy(alloc);
}

/* Those among the users free this buffer and no other: has_removable_deallocs. */
static void drop_deallocs(const buffer_t *buffer) {
  for (size_t i = 0; i < buffer->aliases.users.count; ++i) {
    MlirOperation user = {buffer->aliases.users.items[i]};
    if (o3_op_is(user, "memref.dealloc")) mlirOperationDestroy(user);
  }
}

static void place_buffer(plan_t *plan, o3_builder_t *top, MlirValue arena, buffer_t *buffer) {
  const group_t *group = &plan->groups[buffer->group];
  static const dims_t NONE = {0};
  amount_t inside = amount_of(top, buffer->offset, group->slot ? &NONE : &group->dims);
  MlirValue offset = o3_build2(top, "arith.addi", group->base, inside.exact);
  MlirAttribute description = describe(plan, buffer);
  drop_deallocs(buffer);
  o3_builder_t here = o3_builder_before(buffer->alloc);
  view_instead(buffer->alloc, &here, arena, offset, description);
}

/* ---- What is not planned ---- */

static o3_status_t use_heap(MlirOperation op, void *context) {
  plan_t *plan = context;
  o3_builder_t b = o3_builder_before(op);
  if (o3_op_is(op, "memref.alloc")) {
    buffer_t buffer = {.alloc = op, .value = mlirOperationGetResult(op, 0)};
    if (!measure(&buffer)) buffer.fixed = INT64_MAX / 4;
    MlirValue bytes = checked_bytes(&b, amount_of(&b, buffer.fixed, &buffer.dims));
    MlirValue operands[2] = {o3_cpu_session(plan->module), o3_cpu_to_i64(&b, bytes)};
    o3_cpu_rt_t alloc = is_on_card(plan, op) ? O3_CPU_RT_GPU_ALLOC : O3_CPU_RT_ALLOC;
    MlirValue pointer = o3_cpu_call_runtime(&b, plan->module, alloc, 2, operands);
    view_instead(op, &b, o3_cpu_bytes_at(&b, pointer, bytes), o3_build_index(&b, 0),
                 o3_attr_string(plan->env->context, "heap"));
  } else if (o3_op_is(op, "memref.dealloc")) {
    MlirValue address = o3_build1(&b, "memref.extract_aligned_pointer_as_index", o3_build_index_type(&b), 1,
                                  (MlirValue[]){mlirOperationGetOperand(op, 0)});
    MlirValue pointer =
        o3_build1(&b, "llvm.inttoptr", o3_cpu_ptr_type(b.context), O3_VALUES(o3_cpu_to_i64(&b, address)));
    o3_cpu_rt_t give_back = is_on_card(plan, op) ? O3_CPU_RT_GPU_FREE : O3_CPU_RT_FREE;
    o3_cpu_call_runtime(&b, plan->module, give_back, 2, (MlirValue[]){o3_cpu_session(plan->module), pointer});
    mlirOperationDestroy(op);
  }
  return NULL;
}

static o3_status_t write_plan(plan_t *plan) {
  MlirBlock entry = o3_func_body(plan->main);
  MlirOperation anchor = mlirBlockGetFirstOperation(entry);
  int64_t total = 0, live = 0;
  o3_builder_t top = o3_builder_before(anchor);
  for (int i = 0; i < plan->num_buffers; ++i) {
    const dims_t *dims = &plan->buffers[i].dims;
    for (int d = 0; d < dims->count; ++d) o3_hoist(dims->listed[d], anchor);
  }
  MlirValue bytes = lay_groups(plan, &top);
  MlirValue operands[2] = {o3_cpu_session(plan->module), o3_cpu_to_i64(&top, bytes)};
  o3_cpu_rt_t function = plan->env->machine->gpu ? O3_CPU_RT_GPU_ARENA : O3_CPU_RT_ARENA;
  MlirValue pointer = o3_cpu_call_runtime(&top, plan->module, function, 2, operands);
  MlirValue arena = o3_cpu_bytes_at(&top, pointer, bytes);
  for (int i = 0; i < plan->num_buffers; ++i) place_buffer(plan, &top, arena, &plan->buffers[i]);
  for (int i = 0; i < plan->num_groups; ++i) total += plan->groups[i].total, live += plan->groups[i].live;
  o3_op_attr_set(plan->main, "o3.arena_bytes", o3_attr_i64(plan->env->context, total));
  o3_op_attr_set(plan->main, "o3.live_bytes", o3_attr_i64(plan->env->context, live));
  return NULL;
}

/* The anchor of hoisted ops must not be hoisted itself. */
static void add_anchor(plan_t *plan) {
  o3_builder_t top = o3_builder_before(mlirBlockGetFirstOperation(o3_func_body(plan->main)));
  o3_build_index(&top, 0);
}

o3_status_t o3_cpu_plan_memory(o3_pass_env_t *env, MlirModule module) {
  plan_t plan = {.env = env, .module = module, .main = o3_module_func(module, "main")};
  o3_cpu_load_dialects(env->context);
  O3_TRY(add_session(env, plan.main));
  O3_TRY(o3_walk(plan.main, count_alloc, &plan));
  plan.buffers = O3_ARENA_ARRAY(env->arena, buffer_t, (size_t)plan.capacity + 1);
  plan.groups = O3_ARENA_ARRAY(env->arena, group_t, (size_t)plan.capacity + 1);
  O3_TRY_ALLOC(plan.buffers);
  O3_TRY_ALLOC(plan.groups);
  O3_TRY(o3_walk(plan.main, collect, &plan));
  O3_TRY(find_lifetimes(&plan));
  O3_TRY(make_groups(&plan));
  add_anchor(&plan);
  if (plan.num_buffers) O3_TRY(write_plan(&plan));
  return o3_walk(plan.main, use_heap, &plan);
}
