/* The inputs become constants; what is left is a module such as constant folding runs, on the O0 road. */
#include "opt_equal.h"

#include <stdlib.h>

#include "base/dtype.h"
#include "ir/build.h"
#include "tensorio/compare.h"
#include "tensorio/tensor.h"

/* Sums of many products, added in another order. */
static const o3_tolerance_t TOLERANCE = {.rtol = 1e-4, .atol = 1e-5};

/* A tensor of |type| without data. */
static o3_status_t tensor_of(MlirType type, o3_tensor_t *tensor) {
  char *text = o3_type_text(o3_type_element(type));
  o3_dtype_id_t dtype;
  bool known = text && o3_dtype_from_mlir(text, &dtype);
  free(text);
  *tensor = (o3_tensor_t){.rank = o3_type_rank(type)};
  if (!known || !o3_type_is_static(type))
    return o3_status_create(
        O3_STATUS_UNSUPPORTED,
        "modules are compared with static sizes and numbers as elements: fix the others by "
        "--dim or --shape when the module is made");
  tensor->dtype = (o3_dtype_t)o3_dtype_info(dtype)->onnx;
  for (int i = 0; i < tensor->rank; ++i) tensor->shape[i] = o3_type_dim(type, i);
  return NULL;
}

static o3_status_t random_constant(o3_pass_env_t *env, MlirType type, uint64_t seed, MlirAttribute *value) {
  o3_tensor_t tensor;
  size_t bytes;
  O3_TRY(tensor_of(type, &tensor));
  O3_TRY(o3_tensorio_measure(&tensor, NULL, &bytes));
  tensor.data = o3_weights_alloc(env->weights, bytes + 1);
  O3_TRY_ALLOC(tensor.data);
  o3_tensorio_random_fill(&tensor, seed, 0, 9);
  return o3_weights_add(env->weights, "input", type, tensor.data, bytes, value);
}

/* Puts constants in place of the arguments of @main. */
static o3_status_t close_main(o3_pass_env_t *env, MlirOperation func, uint64_t seed) {
  MlirBlock body = o3_func_body(func);
  MlirType type = mlirTypeAttrGetValue(o3_op_attr(func, "function_type"));
  int count = (int)mlirFunctionTypeGetNumResults(type);
  MlirType *results = O3_ARENA_ARRAY(env->arena, MlirType, (size_t)count + 1);
  O3_TRY_ALLOC(results);
  for (int i = 0; i < count; ++i) results[i] = mlirFunctionTypeGetResult(type, i);
  for (intptr_t i = mlirBlockGetNumArguments(body); i-- > 0;) {
    MlirValue argument = mlirBlockGetArgument(body, i);
    MlirAttribute value;
    O3_TRY(random_constant(env, mlirValueGetType(argument), seed + (uint64_t)i, &value));
    o3_builder_t builder = o3_builder_before(mlirBlockGetFirstOperation(body));
    MlirValue made = o3_build1_attrs(&builder, "o3.constant", mlirValueGetType(argument), O3_NO_VALUES,
                                     O3_ATTRS({"value", value}));
    mlirValueReplaceAllUsesOfWith(argument, made);
    mlirBlockEraseArgument(body, (unsigned)i);
  }
  mlirOperationRemoveAttributeByName(func, O3_STR("arg_attrs"));
  o3_op_attr_set(func, "function_type",
                 mlirTypeAttrGet(mlirFunctionTypeGet(env->context, 0, NULL, count, results)));
  return NULL;
}

typedef struct results {
  int count;
  MlirAttribute *values;
} results_t;

static o3_status_t evaluate(o3_pass_env_t *env, MlirModule module, uint64_t seed, results_t *results) {
  MlirModule copy = mlirModuleFromOperation(mlirOperationClone(mlirModuleGetOperation(module)));
  MlirOperation func = o3_module_func(copy, "main");
  o3_status_t status = mlirOperationIsNull(func)
                           ? o3_status_create(O3_STATUS_INVALID_ARGUMENT, "the module has no function @main")
                           : close_main(env, func, seed);
  if (!status) {
    results->count =
        (int)mlirFunctionTypeGetNumResults(mlirTypeAttrGetValue(o3_op_attr(func, "function_type")));
    results->values = O3_ARENA_ARRAY(env->arena, MlirAttribute, (size_t)results->count + 1);
    const o3_evaluation_t evaluation = {
        .module = copy, .num_runs = 1, .num_results = results->count, .results = results->values};
    status = results->values ? env->evaluate(env, &evaluation)
                             : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  mlirModuleDestroy(copy);
  return status;
}

static o3_status_t compare(o3_pass_env_t *env, int index, MlirAttribute before, MlirAttribute after) {
  o3_tensor_t expected, got;
  o3_comparison_t comparison;
  O3_TRY(tensor_of(mlirAttributeGetType(before), &expected));
  O3_TRY(tensor_of(mlirAttributeGetType(after), &got));
  expected.data = (void *)(uintptr_t)o3_weights_data(env->weights, before, NULL);
  got.data = (void *)(uintptr_t)o3_weights_data(env->weights, after, NULL);
  O3_TRY_ALLOC(expected.data && got.data);
  O3_TRY(o3_tensorio_compare(&got, &expected, &TOLERANCE, &comparison));
  if (comparison.ok) return NULL;
  if (!comparison.same_type || !comparison.same_shape)
    return o3_status_create(O3_STATUS_INTERNAL, "result %d has another type or shape than before the passes",
                            index);
  return o3_status_create(O3_STATUS_INTERNAL,
                          "result %d differs in %lld of %lld elements; the worst, %lld, is %.9g and was %.9g",
                          index, (long long)comparison.outside, (long long)comparison.count,
                          (long long)comparison.worst, comparison.worst_got, comparison.worst_expected);
}

o3_status_t opt_equal_check(o3_pass_env_t *env, MlirModule before, MlirModule after, uint64_t seed) {
  results_t expected = {0}, got = {0};
  O3_TRY_CONTEXT(evaluate(env, before, seed, &expected), "running the module before the passes");
  O3_TRY_CONTEXT(evaluate(env, after, seed, &got), "running the module after the passes");
  if (got.count != expected.count)
    return o3_status_create(O3_STATUS_INTERNAL, "there are %d results, before the passes there were %d",
                            got.count, expected.count);
  for (int i = 0; i < got.count; ++i) O3_TRY(compare(env, i, expected.values[i], got.values[i]));
  return NULL;
}
