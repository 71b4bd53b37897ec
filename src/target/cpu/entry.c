/* cpu-entry: the two functions that the runtime calls (runtime/compiled.h).
 *
 *     o3m_run(session, inputs, outputs): loads the inputs' descriptors, calls @main
 *     o3m_check(symbols):                loads the sizes, calls @check; -1 when there is no @check
 *
 * Needs: @main(session, memrefs...) -> memrefs..., @check(index...) -> i32 or none.
 * Guarantees: @main(session, memrefs..., outputs) stores its results' descriptors itself. Returned, they were
 * one value of all their fields, and LLVM's time for it grows with the square of their number
 * (docs/design/cpu-backend.md).
 */
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"

static MlirBlock make_function(MlirModule module, const char *name, int num_inputs, int num_results,
                               const MlirType *results) {
  MlirContext context = mlirModuleGetContext(module);
  MlirLocation location = mlirLocationUnknownGet(context);
  MlirType inputs[3];
  MlirLocation locations[3];
  for (int i = 0; i < 3; ++i) inputs[i] = o3_cpu_ptr_type(context), locations[i] = location;
  MlirBlock block = mlirBlockCreate(num_inputs, inputs, locations);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, block);
  o3_builder_t builder = o3_builder_at_end(mlirModuleGetBody(module), location);
  MlirType type = mlirFunctionTypeGet(context, num_inputs, inputs, num_results, results);
  o3_op_spec_t spec = {.name = "func.func",
                       .num_attrs = 2,
                       .attrs = (o3_attr_t[]){{"sym_name", o3_attr_string(context, name)},
                                              {"function_type", o3_attr_type(type)}},
                       .num_regions = 1,
                       .regions = &region};
  o3_build(&builder, &spec);
  return block;
}

static MlirValue load(o3_builder_t *b, MlirType type, MlirValue address) {
  return o3_build1(b, "llvm.load", type, O3_VALUES(address));
}

/* address + index * size of |element| */
static MlirValue element_address(o3_builder_t *b, MlirValue address, int index, MlirType element) {
  return o3_build1_attrs(
      b, "llvm.getelementptr", o3_cpu_ptr_type(b->context), O3_VALUES(address),
      O3_ATTRS({"rawConstantIndices", mlirDenseI32ArrayGet(b->context, 1, (int32_t[]){index})},
               {"elem_type", o3_attr_type(element)}));
}

static MlirOperation call(o3_builder_t *b, const char *callee, int num_operands, const MlirValue *operands,
                          int num_results, const MlirType *results) {
  o3_op_spec_t spec = {
      .name = "func.call",
      .num_operands = num_operands,
      .operands = operands,
      .num_results = num_results,
      .results = results,
      .num_attrs = 1,
      .attrs = (o3_attr_t[]){{"callee", mlirFlatSymbolRefAttrGet(b->context, O3_STR(callee))}}};
  return o3_build(b, &spec);
}

/* Stores what |end| returns through the pointers at |outputs|. */
static void store_results(MlirOperation end, MlirValue outputs) {
  o3_builder_t b = o3_builder_before(end);
  MlirType ptr = o3_cpu_ptr_type(b.context);
  for (int i = 0; i < (int)mlirOperationGetNumOperands(end); ++i) {
    MlirValue value = mlirOperationGetOperand(end, i);
    MlirValue at = load(&b, ptr, element_address(&b, outputs, i, ptr));
    o3_build0(&b, "llvm.store",
              O3_VALUES(o3_cpu_cast(&b, value, o3_cpu_descriptor_type(mlirValueGetType(value))), at));
  }
  o3_build0(&b, "func.return", O3_NO_VALUES);
  mlirOperationDestroy(end);
}

/* @main returns nothing and has one argument more. */
static o3_status_t take_outputs(o3_pass_env_t *env, MlirOperation main) {
  MlirType type = mlirTypeAttrGetValue(o3_op_attr(main, "function_type"));
  int num_inputs = (int)mlirFunctionTypeGetNumInputs(type);
  MlirType *inputs = O3_ARENA_ARRAY(env->arena, MlirType, (size_t)num_inputs + 1);
  O3_TRY_ALLOC(inputs);
  for (int i = 0; i < num_inputs; ++i) inputs[i] = mlirFunctionTypeGetInput(type, i);
  inputs[num_inputs] = o3_cpu_ptr_type(env->context);
  MlirBlock body = o3_func_body(main);
  MlirValue outputs = mlirBlockAddArgument(body, inputs[num_inputs], mlirOperationGetLocation(main));
  store_results(mlirBlockGetTerminator(body), outputs);
  o3_op_attr_set(main, "function_type",
                 o3_attr_type(mlirFunctionTypeGet(env->context, num_inputs + 1, inputs, 0, NULL)));
  mlirOperationRemoveAttributeByName(main, O3_STR("res_attrs"));
  return NULL;
}

static o3_status_t make_run(o3_pass_env_t *env, MlirModule module) {
  MlirOperation main = o3_module_func(module, "main");
  MlirType ptr = o3_cpu_ptr_type(env->context);
  O3_TRY(take_outputs(env, main));
  MlirType type = mlirTypeAttrGetValue(o3_op_attr(main, "function_type"));
  int num_inputs = (int)mlirFunctionTypeGetNumInputs(type);
  MlirValue *operands = O3_ARENA_ARRAY(env->arena, MlirValue, (size_t)num_inputs);
  O3_TRY_ALLOC(operands);
  MlirBlock block = make_function(module, "o3m_run", 3, 0, NULL);
  o3_builder_t b = o3_builder_at_end(block, mlirLocationUnknownGet(env->context));
  operands[0] = mlirBlockGetArgument(block, 0);
  for (int i = 1; i < num_inputs - 1; ++i) {
    MlirType memref = mlirFunctionTypeGetInput(type, i);
    MlirValue at = load(&b, ptr, element_address(&b, mlirBlockGetArgument(block, 1), i - 1, ptr));
    operands[i] = o3_cpu_cast(&b, load(&b, o3_cpu_descriptor_type(memref), at), memref);
  }
  operands[num_inputs - 1] = mlirBlockGetArgument(block, 2);
  call(&b, "main", num_inputs, operands, 0, NULL);
  o3_build0(&b, "func.return", O3_NO_VALUES);
  return NULL;
}

/* Calls @check on the sizes in |symbols|; gives its result. */
static o3_status_t call_check(o3_pass_env_t *env, o3_builder_t *b, MlirOperation check, MlirValue symbols,
                              MlirValue *result) {
  MlirType i32 = mlirIntegerTypeGet(env->context, 32), i64 = o3_cpu_i64_type(env->context);
  int count = (int)mlirBlockGetNumArguments(o3_func_body(check));
  MlirValue *operands = O3_ARENA_ARRAY(env->arena, MlirValue, (size_t)count + 1);
  O3_TRY_ALLOC(operands);
  for (int i = 0; i < count; ++i)
    operands[i] = o3_cpu_to_index(b, load(b, i64, element_address(b, symbols, i, i64)));
  *result = mlirOperationGetResult(call(b, "check", count, operands, 1, &i32), 0);
  return NULL;
}

static o3_status_t make_check(o3_pass_env_t *env, MlirModule module) {
  MlirOperation check = o3_module_func(module, "check");
  MlirType i32 = mlirIntegerTypeGet(env->context, 32);
  MlirBlock block = make_function(module, "o3m_check", 1, 1, &i32);
  o3_builder_t b = o3_builder_at_end(block, mlirLocationUnknownGet(env->context));
  MlirValue result = {0};
  if (mlirOperationIsNull(check)) {
    result = o3_build_int(&b, i32, -1);
  } else {
    O3_TRY(call_check(env, &b, check, mlirBlockGetArgument(block, 0), &result));
  }
  o3_build0(&b, "func.return", O3_VALUES(result));
  return NULL;
}

o3_status_t o3_cpu_entry(o3_pass_env_t *env, MlirModule module) {
  o3_cpu_load_dialects(env->context);
  O3_TRY(make_run(env, module));
  return make_check(env, module);
}
