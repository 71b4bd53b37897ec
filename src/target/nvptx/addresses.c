/* nvptx-addresses: what lies on the card gets its address there, what moves becomes a call.
 *
 *     %w = memref.get_global @o3w_a       ->  %w = memref.view %weights[offset], of o3rt_gpu_weights(session)
 *     memref.copy %c, %m {o3.to_host}     ->  llvm.call @o3rt_gpu_to_host(session, %m, %c, bytes)
 *
 * Needs: the session argument. Guarantees: the module lists under o3.gpu_weights the symbols that are
 * uploaded, each with its offset in one block of memory. Weights that the host alone reads are not uploaded.
 */
#include <string.h>

#include "base/map.h"
#include "target/cpu/cpu_ir.h"
#include "target/nvptx/nvptx.h"
#include "target/nvptx/nvptx_ir.h"

/* As cuMemAlloc aligns: any vector load and tensor map may start at a weight. */
enum { WEIGHT_ALIGNMENT = 256 };

typedef struct addresses {
  o3_pass_env_t *env;
  MlirModule module;
  o3_str_map_t *offsets; /* symbol -> offset + 1 */
  o3_ptr_vec_t entries;  /* attributes */
  int64_t total;
  MlirValue block; /* memref<?xi8> over all weights; null until needed */
} addresses_t;

static MlirValue weights_block(addresses_t *self) {
  if (self->block.ptr) return self->block;
  MlirBlock entry = o3_func_body(o3_module_func(self->module, "main"));
  o3_builder_t b = o3_builder_before(mlirBlockGetFirstOperation(entry));
  MlirValue session = o3_cpu_session(self->module);
  MlirValue pointer = o3_nvptx_call(&b, self->module, O3_NVPTX_RT_WEIGHTS, 1, &session);
  self->block = o3_cpu_bytes_at(&b, pointer, o3_build_index(&b, INT64_MAX / 16));
  return self->block;
}

static o3_status_t list_weight(addresses_t *self, MlirStringRef symbol, MlirType type, int64_t *offset) {
  MlirContext context = self->env->context;
  void *known = o3_str_map_get(self->offsets, symbol.data, symbol.length);
  *offset = (intptr_t)known - 1;
  if (known) return NULL;
  int64_t bytes = o3_type_count(type) * (o3_type_bits(o3_type_element(type)) / 8);
  *offset = self->total;
  self->total += (bytes + WEIGHT_ALIGNMENT - 1) / WEIGHT_ALIGNMENT * WEIGHT_ALIGNMENT;
  const struct {
    const char *name;
    MlirAttribute value;
  } fields[] = {{"bytes", o3_attr_i64(context, bytes)},
                {"offset", o3_attr_i64(context, *offset)},
                {"symbol", mlirStringAttrGet(context, symbol)}};
  MlirNamedAttribute named[3];
  for (int i = 0; i < 3; ++i)
    named[i] = mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR(fields[i].name)), fields[i].value);
  MlirAttribute entry = mlirDictionaryAttrGet(context, 3, named);
  bool ok = o3_ptr_vec_push(&self->entries, (void *)(uintptr_t)entry.ptr) &&
            o3_str_map_put(self->offsets, symbol.data, symbol.length, (void *)(intptr_t)(*offset + 1));
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static o3_status_t use_weight(addresses_t *self, MlirOperation op) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  MlirStringRef symbol = mlirFlatSymbolRefAttrGetValue(o3_op_attr(op, "name"));
  int64_t offset;
  O3_TRY(list_weight(self, symbol, type, &offset));
  MlirValue block = weights_block(self);
  o3_builder_t b = o3_builder_before(op);
  MlirValue view = o3_build1(&b, "memref.view", type, O3_VALUES(block, o3_build_index(&b, offset)));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), view);
  mlirOperationDestroy(op);
  return NULL;
}

static MlirValue pointer_to(o3_builder_t *b, MlirValue memref) {
  MlirValue address =
      o3_build1(b, "memref.extract_aligned_pointer_as_index", o3_build_index_type(b), O3_VALUES(memref));
  return o3_build1(b, "llvm.inttoptr", o3_cpu_ptr_type(b->context), O3_VALUES(o3_cpu_to_i64(b, address)));
}

static MlirValue bytes_of(o3_builder_t *b, MlirValue memref) {
  MlirType type = mlirValueGetType(memref);
  MlirValue bytes = o3_build_index(b, o3_type_bits(o3_type_element(type)) / 8);
  for (int i = 0; i < o3_type_rank(type); ++i) {
    MlirValue size =
        o3_build1(b, "memref.dim", o3_build_index_type(b), O3_VALUES(memref, o3_build_index(b, i)));
    bytes = o3_build2(b, "arith.muli", bytes, size);
  }
  return o3_cpu_to_i64(b, bytes);
}

static void move(addresses_t *self, MlirOperation op, o3_nvptx_rt_t function) {
  o3_builder_t b = o3_builder_before(op);
  MlirValue from = mlirOperationGetOperand(op, 0), to = mlirOperationGetOperand(op, 1);
  MlirValue operands[4] = {o3_cpu_session(self->module), pointer_to(&b, to), pointer_to(&b, from),
                           bytes_of(&b, from)};
  o3_nvptx_call(&b, self->module, function, 4, operands);
  mlirOperationDestroy(op);
}

static o3_status_t address(MlirOperation op, void *context) {
  addresses_t *self = context;
  if (o3_op_is(op, "memref.get_global")) {
    bool host = !mlirAttributeIsNull(o3_op_attr(op, O3_NVPTX_HOST_ATTR));
    return host ? NULL : use_weight(self, op);
  }
  if (!o3_op_is(op, "memref.copy")) return NULL;
  bool to_host = !mlirAttributeIsNull(o3_op_attr(op, O3_NVPTX_TO_HOST_ATTR));
  move(self, op, to_host ? O3_NVPTX_RT_TO_HOST : O3_NVPTX_RT_TO_DEVICE);
  return NULL;
}

o3_status_t o3_nvptx_addresses(o3_pass_env_t *env, MlirModule module) {
  addresses_t self = {.env = env,
                      .module = module,
                      .offsets = o3_str_map_create(env->arena),
                      .entries = o3_ptr_vec(env->arena)};
  o3_nvptx_load_dialects(env->context);
  O3_TRY_ALLOC(self.offsets);
  O3_TRY(o3_walk(o3_module_func(module, "main"), address, &self));
  MlirAttribute *list = O3_ARENA_ARRAY(env->arena, MlirAttribute, self.entries.count + 1);
  O3_TRY_ALLOC(list);
  for (size_t i = 0; i < self.entries.count; ++i) list[i].ptr = self.entries.items[i];
  o3_op_attr_set(mlirModuleGetOperation(module), O3_NVPTX_WEIGHTS_ATTR,
                 mlirArrayAttrGet(env->context, (intptr_t)self.entries.count, list));
  return NULL;
}
