/* cpu-weights: constants beyond O3_WEIGHTS_INLINE_BYTES leave the module.
 *
 * Needs: a lowered module on tensors. Guarantees: such a constant is the read-only tensor of an external
 * memref.global, and the module lists its value under O3_CPU_WEIGHTS_ATTR:
 *
 *     %w = arith.constant dense_resource<conv1> : tensor<64x3xf32>
 * ->  memref.global @o3w_conv1 : memref<64x3xf32>
 *     %m = memref.get_global @o3w_conv1 : memref<64x3xf32>
 *     %w = bufferization.to_tensor %m restrict : memref<64x3xf32> to tensor<64x3xf32>
 *
 * Inside the object LLVM would hold a second copy of every weight in memory, and in the file.
 *
 * They are listed, and so lie in memory, in the order in which they are used first: what a kernel asks for
 * ahead of where it reads is, at the end of its weights, the beginning of the next kernel's.
 */
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"

typedef struct weights_pass {
  o3_pass_env_t *env;
  MlirModule module;
  o3_ptr_map_t *symbols; /* by attribute: name of the symbol */
  o3_str_map_t *names;   /* names taken */
  o3_ptr_vec_t entries;  /* attributes {symbol, value}, as their pointers */
} weights_pass_t;

/* All of them for a GPU: what lies in the module is out of its reach. */
static int64_t inline_bytes(const o3_pass_env_t *env) {
  return env->machine && env->machine->gpu ? -1 : O3_WEIGHTS_INLINE_BYTES;
}

static bool is_big_constant(const o3_pass_env_t *env, MlirOperation op) {
  if (!o3_op_is(op, "arith.constant")) return false;
  MlirAttribute value = o3_op_attr(op, "value");
  if (!mlirAttributeIsAElements(value)) return false;
  MlirType type = mlirAttributeGetType(value);
  return mlirTypeIsARankedTensor(type) &&
         o3_type_count(type) * (o3_type_bits(o3_type_element(type)) / 8) > inline_bytes(env);
}

/* The weight's own name, else that of the node, made unique by a number. */
static const char *symbol_for(weights_pass_t *pass, MlirOperation op, MlirAttribute value) {
  o3_arena_t *arena = pass->env->arena;
  const char *name = pass->env->weights ? o3_weights_name(pass->env->weights, value) : NULL;
  MlirStringRef label = o3_location_name(mlirOperationGetLocation(op));
  char *base = name ? o3_arena_printf(arena, "o3w_%s", name)
                    : o3_arena_printf(arena, "o3w_%.*s", label.length ? (int)label.length : 8,
                                      label.length ? label.data : "constant");
  const char *symbol = base;
  for (char *c = base; c && *c; ++c) {
    if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.", *c)) *c = '_';
  }
  for (int i = 1; symbol && o3_str_map_get(pass->names, symbol, strlen(symbol)); ++i)
    symbol = o3_arena_printf(arena, "%s_%d", base, i);
  return symbol;
}

static void declare_global(weights_pass_t *pass, MlirLocation location, const char *symbol, MlirType memref) {
  MlirContext context = pass->env->context;
  o3_builder_t builder = o3_builder_at_end(mlirModuleGetBody(pass->module), location);
  builder.before = mlirBlockGetFirstOperation(builder.block);
  o3_op_spec_t spec = {.name = "memref.global",
                       .num_attrs = 3,
                       .attrs = (o3_attr_t[]){{"sym_name", o3_attr_string(context, symbol)},
                                              {"type", o3_attr_type(memref)},
                                              {"alignment", o3_attr_i64(context, O3_CPU_ALIGNMENT)}}};
  o3_build(&builder, &spec);
}

static o3_status_t list_weight(weights_pass_t *pass, const char *symbol, MlirAttribute value) {
  MlirContext context = pass->env->context;
  MlirNamedAttribute fields[2] = {
      mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR("symbol")), o3_attr_string(context, symbol)),
      mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR("value")), value)};
  MlirAttribute entry = mlirDictionaryAttrGet(context, 2, fields);
  bool ok = o3_ptr_vec_push(&pass->entries, (void *)(uintptr_t)entry.ptr) &&
            o3_ptr_map_put(pass->symbols, value.ptr, (void *)(uintptr_t)symbol) &&
            o3_str_map_put(pass->names, symbol, strlen(symbol), pass);
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static o3_status_t move_out(weights_pass_t *pass, MlirOperation op) {
  MlirAttribute value = o3_op_attr(op, "value");
  MlirType tensor = mlirAttributeGetType(value);
  int64_t sizes[O3_IR_MAX_RANK];
  for (int i = 0; i < o3_type_rank(tensor); ++i) sizes[i] = o3_type_dim(tensor, i);
  MlirType memref = o3_memref_type(o3_type_rank(tensor), sizes, o3_type_element(tensor));
  const char *symbol = o3_ptr_map_get(pass->symbols, value.ptr);
  if (!symbol) {
    symbol = symbol_for(pass, op, value);
    O3_TRY_ALLOC(symbol);
    declare_global(pass, mlirOperationGetLocation(op), symbol, memref);
    O3_TRY(list_weight(pass, symbol, value));
  }
  o3_builder_t builder = o3_builder_before(op);
  MlirAttribute name = mlirFlatSymbolRefAttrGet(pass->env->context, O3_STR(symbol));
  MlirValue data =
      o3_build1_attrs(&builder, "memref.get_global", memref, O3_NO_VALUES, O3_ATTRS({"name", name}));
  MlirValue result = o3_build1_attrs(&builder, "bufferization.to_tensor", tensor, O3_VALUES(data),
                                     O3_ATTRS({"restrict", mlirUnitAttrGet(pass->env->context)}));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), result);
  mlirOperationDestroy(op);
  return NULL;
}

static o3_status_t move_operands(MlirOperation op, void *context) {
  weights_pass_t *pass = context;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirOperation def = o3_value_def(mlirOperationGetOperand(op, i));
    if (!mlirOperationIsNull(def) && is_big_constant(pass->env, def)) O3_TRY(move_out(pass, def));
  }
  return NULL;
}

o3_status_t o3_cpu_weights(o3_pass_env_t *env, MlirModule module) {
  weights_pass_t pass = {.env = env,
                         .module = module,
                         .symbols = o3_ptr_map_create(env->arena),
                         .names = o3_str_map_create(env->arena),
                         .entries = o3_ptr_vec(env->arena)};
  o3_cpu_load_dialects(env->context);
  O3_TRY_ALLOC(pass.symbols);
  O3_TRY_ALLOC(pass.names);
  O3_TRY(o3_walk(mlirModuleGetOperation(module), move_operands, &pass));
  MlirAttribute *list = O3_ARENA_ARRAY(env->arena, MlirAttribute, pass.entries.count + 1);
  O3_TRY_ALLOC(list);
  for (size_t i = 0; i < pass.entries.count; ++i) list[i].ptr = pass.entries.items[i];
  o3_op_attr_set(mlirModuleGetOperation(module), O3_CPU_WEIGHTS_ATTR,
                 mlirArrayAttrGet(env->context, (intptr_t)pass.entries.count, list));
  return NULL;
}
