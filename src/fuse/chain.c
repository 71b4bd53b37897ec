/* Asked is with the ops as they will be emitted, so the joined kernel is made first, and thrown away where
 * the target refuses it. Nothing but the second kernel reads the first one's result, so that the first may as
 * well run where the second does. */
#include "fuse/chain.h"

#include <string.h>

#include "fuse/kernel_body.h"
#include "fuse/outline_kernel.h"
#include "ir/build.h"

enum { MAX_VALUES = 64 };

/* Two calls: the second's operand |link| is what the first gives. */
typedef struct pair {
  MlirModule module;
  MlirOperation calls[2], kernels[2];
  int link;
  MlirOperation joined;
  int num_operands;
  MlirValue operands[MAX_VALUES]; /* of its call */
} pair_t;

/* ---- Candidates ---- */

static MlirOperation product_kernel(const o3_str_map_t *kernels, MlirOperation call) {
  MlirOperation kernel = o3_fuse_called_kernel(kernels, call);
  bool is_product = !mlirOperationIsNull(kernel) && o3_str_equal(o3_op_string(kernel, O3_KERNEL_KIND),
                                                                 o3_group_kind_name(O3_GROUP_CONTRACTION));
  return is_product ? kernel : (MlirOperation){0};
}

/* Whether the kernel reads the argument in an op's body alone, which is how borders are made. */
static bool is_read_through_border(MlirOperation kernel, int argument) {
  MlirBlock body = o3_func_body(kernel);
  MlirOpOperand use = mlirValueGetFirstUse(mlirBlockGetArgument(body, argument));
  bool found = false;
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    if (mlirBlockEqual(mlirOperationGetBlock(mlirOpOperandGetOwner(use)), body)) return false;
    found = true;
  }
  return found;
}

static bool find_pair(MlirModule module, const o3_str_map_t *kernels, MlirOperation call, pair_t *pair) {
  *pair = (pair_t){.module = module, .calls = {call}, .kernels = {product_kernel(kernels, call)}};
  if (mlirOperationIsNull(pair->kernels[0])) return false;
  MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(call, 0));
  if (mlirOpOperandIsNull(use) || !mlirOpOperandIsNull(mlirOpOperandGetNextUse(use))) return false;
  pair->calls[1] = mlirOpOperandGetOwner(use);
  pair->link = (int)mlirOpOperandGetOperandNumber(use);
  pair->kernels[1] = product_kernel(kernels, pair->calls[1]);
  return !mlirOperationIsNull(pair->kernels[1]) &&
         mlirBlockEqual(mlirOperationGetBlock(call), mlirOperationGetBlock(pair->calls[1])) &&
         is_read_through_border(pair->kernels[1], pair->link) &&
         mlirOperationGetNumOperands(call) + mlirOperationGetNumOperands(pair->calls[1]) <= MAX_VALUES;
}

/* ---- The joined kernel ---- */

static o3_status_t no_memory(bool ok) {
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* The operands of both calls, without the tensor that the first wrote into, which is made inside now, and
 * without what it gave. */
static void list_operands(pair_t *pair) {
  for (int k = 0; k < 2; ++k) {
    int count = (int)mlirOperationGetNumOperands(pair->calls[k]), left_out = k ? pair->link : count - 1;
    for (int i = 0; i < count; ++i) {
      if (i != left_out) pair->operands[pair->num_operands++] = mlirOperationGetOperand(pair->calls[k], i);
    }
  }
}

static o3_status_t fill_body(const pair_t *pair, o3_arena_t *arena, MlirBlock body) {
  o3_ptr_map_t *values = o3_ptr_map_create(arena);
  MlirValue result = {0};
  O3_TRY_ALLOC(values);
  int next = 0;
  for (int k = 0; k < 2; ++k) {
    MlirBlock from = o3_func_body(pair->kernels[k]);
    int count = (int)mlirBlockGetNumArguments(from), left_out = k ? pair->link : count - 1;
    o3_builder_t b = o3_builder_at_end(body, mlirOperationGetLocation(pair->kernels[k]));
    if (!k) {
      MlirType type = mlirValueGetType(mlirBlockGetArgument(from, left_out));
      result = o3_build1(&b, "tensor.empty", type, O3_NO_VALUES);
    }
    for (int i = 0; i < count; ++i)
      O3_TRY(o3_fuse_map_value(values, mlirBlockGetArgument(from, i),
                               i == left_out ? result : mlirBlockGetArgument(body, next++)));
    O3_TRY(o3_fuse_copy_body(pair->kernels[k], body, (MlirOperation){0}, values, &result));
  }
  o3_builder_t b = o3_builder_at_end(body, mlirOperationGetLocation(pair->kernels[1]));
  o3_build0(&b, "func.return", 1, &result);
  return NULL;
}

/* The lists of both kernels, one after the other. */
static MlirAttribute both(const pair_t *pair, const char *attr) {
  MlirAttribute lists[2] = {o3_op_attr(pair->kernels[0], attr), o3_op_attr(pair->kernels[1], attr)};
  MlirAttribute items[2 * O3_DEP_MAX_OPERANDS];
  intptr_t count = 0;
  for (int k = 0; k < 2; ++k) {
    for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(lists[k]); ++i) {
      if (count < (intptr_t)(sizeof(items) / sizeof(items[0])))
        items[count++] = mlirArrayAttrGetElement(lists[k], i);
    }
  }
  return mlirArrayAttrGet(mlirOperationGetContext(pair->kernels[0]), count, items);
}

/* "k3_contraction_Conv_4": "k3_chain_Conv_4". */
static const char *joined_name(const pair_t *pair, o3_arena_t *arena) {
  MlirStringRef name = o3_op_string(pair->kernels[0], "sym_name");
  const char *old = o3_group_kind_name(O3_GROUP_CONTRACTION), *at = strstr(name.data, old);
  size_t before = at ? (size_t)(at - name.data) : 0, after = at ? before + strlen(old) : 0;
  return o3_arena_printf(arena, "%.*s%s%.*s", (int)before, name.data, o3_group_kind_name(O3_GROUP_CHAIN),
                         (int)(name.length - after), name.data + after);
}

static o3_status_t build_joined(pair_t *pair, o3_arena_t *arena) {
  MlirContext context = mlirModuleGetContext(pair->module);
  MlirType types[MAX_VALUES], result = mlirValueGetType(mlirOperationGetResult(pair->calls[1], 0));
  MlirLocation location = mlirOperationGetLocation(pair->kernels[0]), locations[MAX_VALUES];
  const char *name = joined_name(pair, arena);
  O3_TRY_ALLOC(name);
  list_operands(pair);
  for (int i = 0; i < pair->num_operands; ++i)
    types[i] = mlirValueGetType(pair->operands[i]), locations[i] = location;
  MlirBlock body = mlirBlockCreate(pair->num_operands, types, locations);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, body);
  o3_builder_t b = o3_builder_at_end(mlirModuleGetBody(pair->module), location);
  MlirType type = mlirFunctionTypeGet(context, pair->num_operands, types, 1, &result);
  o3_op_spec_t spec = {
      .name = "func.func",
      .num_attrs = 7,
      .attrs = (o3_attr_t[]){{"sym_name", o3_attr_string(context, name)},
                             {"sym_visibility", o3_attr_string(context, "private")},
                             {"function_type", o3_attr_type(type)},
                             {O3_KERNEL_KIND, o3_attr_string(context, o3_group_kind_name(O3_GROUP_CHAIN))},
                             {O3_KERNEL_NODES, both(pair, O3_KERNEL_NODES)},
                             {O3_KERNEL_REASONS, both(pair, O3_KERNEL_REASONS)},
                             {O3_KERNEL_STOP, o3_op_attr(pair->kernels[1], O3_KERNEL_STOP)}},
      .num_regions = 1,
      .regions = &region};
  pair->joined = o3_build(&b, &spec);
  return fill_body(pair, arena, body);
}

/* ---- The target's answer ---- */

static o3_status_t collect_generic(MlirOperation op, void *context) {
  o3_ptr_vec_t *ops = context;
  return o3_op_is(op, "linalg.generic") ? no_memory(o3_ptr_vec_push(ops, op.ptr)) : NULL;
}

static o3_status_t ask(const o3_pass_env_t *env, o3_arena_t *arena, MlirOperation kernel, const char **why) {
  o3_ptr_vec_t ops = o3_ptr_vec(arena);
  O3_TRY(o3_walk(kernel, collect_generic, &ops));
  MlirOperation *list = O3_ARENA_ARRAY(arena, MlirOperation, ops.count + 1);
  O3_TRY_ALLOC(list);
  for (size_t i = 0; i < ops.count; ++i) list[i].ptr = ops.items[i];
  *why = env->machine->kernels->refuse_chain(env->machine, (int)ops.count, list);
  return NULL;
}

/* "Conv_4: its input stays in the cache anyway". */
static o3_status_t note_refusal(const pair_t *pair, o3_arena_t *arena, const char *why) {
  MlirAttribute nodes = o3_op_attr(pair->kernels[1], O3_KERNEL_NODES);
  MlirStringRef node = mlirStringAttrGetValue(mlirArrayAttrGetElement(nodes, 0));
  char *text = o3_arena_printf(arena, "%.*s: %s", O3_STR_ARGS(node), why);
  O3_TRY_ALLOC(text);
  o3_op_attr_set(pair->kernels[0], O3_KERNEL_STOP, o3_attr_string(mlirModuleGetContext(pair->module), text));
  mlirOperationDestroy(pair->joined);
  return NULL;
}

static void call_joined(const pair_t *pair) {
  MlirOperation second = pair->calls[1];
  o3_builder_t b = o3_builder_before(second);
  MlirValue old = mlirOperationGetResult(second, 0);
  MlirAttribute callee = mlirFlatSymbolRefAttrGet(b.context, o3_op_string(pair->joined, "sym_name"));
  MlirValue result = o3_build1_attrs(&b, "func.call", mlirValueGetType(old), pair->num_operands,
                                     pair->operands, O3_ATTRS({"callee", callee}));
  mlirValueReplaceAllUsesOfWith(old, result);
  for (int k = 1; k >= 0; --k) {
    mlirOperationDestroy(pair->calls[k]);
    mlirOperationDestroy(pair->kernels[k]);
  }
}

static bool is_static(const pair_t *pair) {
  return mlirShapedTypeHasStaticShape(mlirValueGetType(mlirOperationGetResult(pair->calls[0], 0)));
}

static o3_status_t join(o3_pass_env_t *env, o3_arena_t *arena, pair_t *pair) {
  const char *why = NULL;
  if (!is_static(pair)) return NULL;
  O3_TRY(build_joined(pair, arena));
  O3_TRY(ask(env, arena, pair->joined, &why));
  if (why) return note_refusal(pair, arena, why);
  call_joined(pair);
  return NULL;
}

static o3_status_t collect_call(MlirOperation op, void *context) {
  return o3_op_is(op, "func.call") ? no_memory(o3_ptr_vec_push(context, op.ptr)) : NULL;
}

/* From the last to the first: the second call of a pair is no first one of another, for it has become part of
 * a chain, which is no product's kernel and not in the list. */
o3_status_t o3_fuse_chains(o3_pass_env_t *env, o3_arena_t *arena, MlirModule module) {
  o3_ptr_vec_t calls = o3_ptr_vec(arena);
  o3_str_map_t *kernels;
  if (!env->machine->kernels->refuse_chain || env->no_fusion) return NULL;
  O3_TRY(o3_fuse_list_kernels(arena, module, &kernels));
  O3_TRY(o3_walk(o3_module_func(module, "main"), collect_call, &calls));
  for (size_t i = calls.count; i-- > 0;) {
    pair_t *pair = O3_ARENA_NEW(arena, pair_t);
    O3_TRY_ALLOC(pair);
    if (find_pair(module, kernels, (MlirOperation){calls.items[i]}, pair)) O3_TRY(join(env, arena, pair));
  }
  return NULL;
}
