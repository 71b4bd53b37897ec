/* The walk of the lowering: @main is built anew, op by op; ops of upstream dialects are rebuilt with the new
 * types of their operands, loops and branches with their regions. */
#include "target/lower.h"

#include <string.h>

#include "base/check.h"
#include "target/ref/lowering.h"

#define O3_LOWER(op, rule) \
  o3_status_t o3_lower_##rule(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results);
#include "target/ref/lower.def"
#undef O3_LOWER

static const struct {
  const char *op;
  o3_lower_fn_t rule;
} RULES[] = {
#define O3_LOWER(op, rule) {"o3." #op, o3_lower_##rule},
#include "target/ref/lower.def"
#undef O3_LOWER
};

static o3_lower_fn_t find_rule(MlirOperation op) {
  for (size_t i = 0; i < sizeof(RULES) / sizeof(RULES[0]); ++i) {
    if (o3_op_is(op, RULES[i].op)) return RULES[i].rule;
  }
  return NULL;
}

/* ---- Symbols ---- */

static bool all_known(const o3_lw_t *lw, MlirAffineExpr expr) {
  if (mlirAffineExprIsASymbol(expr))
    return !mlirValueIsNull(lw->symbol_values[mlirAffineSymbolExprGetPosition(expr)]);
  if (!mlirAffineExprIsABinary(expr)) return true;
  return all_known(lw, mlirAffineBinaryOpExprGetLHS(expr)) &&
         all_known(lw, mlirAffineBinaryOpExprGetRHS(expr));
}

/* Minima and maxima become values as soon as what they compare is known. */
static void bind_extrema(o3_lw_t *lw) {
  for (int i = 0; i < o3_symbols_count(lw->symbols); ++i) {
    const o3_symbol_t *symbol = o3_symbols_at(lw->symbols, i);
    bool extremum = symbol->kind == O3_SYMBOL_MIN || symbol->kind == O3_SYMBOL_MAX;
    if (!extremum || !mlirValueIsNull(lw->symbol_values[i])) continue;
    if (!all_known(lw, symbol->a) || !all_known(lw, symbol->b)) continue;
    MlirValue a = o3_lw_size(lw, symbol->a), b = o3_lw_size(lw, symbol->b);
    lw->symbol_values[i] =
        o3_build2(&lw->builder, symbol->kind == O3_SYMBOL_MIN ? "arith.minsi" : "arith.maxsi", a, b);
  }
}

void o3_lw_bind_symbol(o3_lw_t *lw, int symbol, MlirValue index) {
  lw->symbol_values[symbol] = index;
  bind_extrema(lw);
}

/* Binds the symbols of |kind| that are the bare sizes of |value|. */
static bool bind_symbols(o3_lw_t *lw, MlirValue value, MlirAffineMap shape, o3_symbol_kind_t kind) {
  bool bound = false;
  for (int i = 0; i < mlirAffineMapGetNumResults(shape); ++i) {
    MlirAffineExpr size = mlirAffineMapGetResult(shape, i);
    if (!mlirAffineExprIsASymbol(size)) continue;
    int position = (int)mlirAffineSymbolExprGetPosition(size);
    if (o3_symbols_at(lw->symbols, position)->kind != kind || !mlirValueIsNull(lw->symbol_values[position]))
      continue;
    MlirValue index = o3_build_index(&lw->builder, i);
    lw->symbol_values[position] =
        o3_build1(&lw->builder, "tensor.dim", o3_build_index_type(&lw->builder), O3_VALUES(value, index));
    bound = true;
  }
  return bound;
}

static void bind_result_symbols(o3_lw_t *lw, MlirOperation op, int count, const MlirValue *results) {
  MlirAttribute shapes = o3_op_attr(op, "o3.shape");
  bool bound = false;
  if (mlirAttributeIsNull(shapes)) return;
  for (int i = 0; i < count; ++i) {
    MlirAffineMap shape = mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(shapes, i));
    bound |= bind_symbols(lw, results[i], shape, O3_SYMBOL_DATA);
  }
  if (bound) bind_extrema(lw);
}

/* ---- Ops ---- */

static MlirValue mapped(const o3_lw_t *lw, MlirValue old) {
  void *value = o3_ptr_map_get(lw->values, old.ptr);
  O3_ASSERT(value, "operands are lowered before the ops that read them");
  return (MlirValue){.ptr = value};
}

static o3_status_t map_value(o3_lw_t *lw, MlirValue old, MlirValue new) {
  if (o3_ptr_map_put(lw->values, old.ptr, (void *)(uintptr_t)new.ptr)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static o3_status_t lower_block(o3_lw_t *lw, MlirBlock old);

/* Loops say on the op which data symbols their block arguments define: o3.arg_shapes, one map for each
 * argument, and o3.iteration, the symbol that stands for argument 0, the number of iterations done. */
static void bind_block_symbols(o3_lw_t *lw, MlirOperation parent, MlirBlock block) {
  MlirAttribute shapes = o3_op_attr(parent, "o3.arg_shapes");
  if (mlirAttributeIsNull(shapes) || !mlirAttributeIsAArray(shapes)) return;
  int64_t iteration = o3_op_int(parent, "o3.iteration", -1);
  if (iteration >= 0) lw->symbol_values[iteration] = mlirBlockGetArgument(block, 0);
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(block); ++i) {
    MlirAffineMap shape = mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(shapes, i));
    bind_symbols(lw, mlirBlockGetArgument(block, i), shape, O3_SYMBOL_DATA);
  }
  bind_extrema(lw);
}

/* A region's blocks with converted argument types. Symbols bound inside are forgotten at its end. */
static o3_status_t lower_region(o3_lw_t *lw, MlirOperation parent, MlirRegion old, MlirRegion new) {
  size_t bytes = (size_t)o3_symbols_count(lw->symbols) * sizeof(MlirValue);
  MlirValue *saved = o3_arena_alloc(lw->arena, 1, bytes + 1);
  O3_TRY_ALLOC(saved);
  memcpy(saved, lw->symbol_values, bytes);
  o3_builder_t outer = lw->builder;
  MlirBlock old_block = mlirRegionGetFirstBlock(old);
  for (; !mlirBlockIsNull(old_block); old_block = mlirBlockGetNextInRegion(old_block)) {
    MlirBlock block = mlirBlockCreate(0, NULL, NULL);
    mlirRegionAppendOwnedBlock(new, block);
    for (intptr_t i = 0; i < mlirBlockGetNumArguments(old_block); ++i) {
      MlirValue arg = mlirBlockGetArgument(old_block, i);
      O3_TRY(
          map_value(lw, arg, mlirBlockAddArgument(block, o3_lw_type(mlirValueGetType(arg)), outer.location)));
    }
    lw->builder = o3_builder_at_end(block, outer.location);
    bind_block_symbols(lw, parent, block);
    O3_TRY(lower_block(lw, old_block));
  }
  lw->builder = outer;
  memcpy(lw->symbol_values, saved, bytes);
  return NULL;
}

/* An op of an upstream dialect: the same with new operands, types and regions. */
static o3_status_t rebuild(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  MlirRegion regions[8];
  int num_results = (int)mlirOperationGetNumResults(op), num_regions = (int)mlirOperationGetNumRegions(op);
  int num_attrs = (int)mlirOperationGetNumAttributes(op), kept = 0;
  o3_attr_t attrs[32];
  MlirType *types = O3_ARENA_ARRAY(lw->arena, MlirType, (size_t)num_results + 1);
  O3_TRY_ALLOC(types);
  O3_ASSERT(num_regions <= 8 && num_attrs <= 32, "upstream ops of this stage are small");
  for (int i = 0; i < num_results; ++i)
    types[i] = o3_lw_type(mlirValueGetType(mlirOperationGetResult(op, i)));
  for (int i = 0; i < num_attrs; ++i) {
    MlirNamedAttribute attr = mlirOperationGetAttribute(op, i);
    MlirStringRef name = mlirIdentifierStr(attr.name);
    if (strncmp(name.data, "o3.", 3) != 0) attrs[kept++] = (o3_attr_t){name.data, attr.attribute};
  }
  for (int i = 0; i < num_regions; ++i) regions[i] = mlirRegionCreate();
  o3_op_spec_t spec = {.name = o3_op_name(op).data,
                       .num_operands = (int)mlirOperationGetNumOperands(op),
                       .operands = operands,
                       .num_results = num_results,
                       .results = types,
                       .num_attrs = kept,
                       .attrs = attrs,
                       .num_regions = num_regions,
                       .regions = regions};
  MlirOperation made = o3_build(&lw->builder, &spec);
  for (int i = 0; i < num_regions; ++i)
    O3_TRY(lower_region(lw, op, mlirOperationGetRegion(op, i), mlirOperationGetRegion(made, i)));
  for (int i = 0; i < num_results; ++i) results[i] = mlirOperationGetResult(made, i);
  return NULL;
}

/* The sizes that a rule leaves `?` or makes static must be those of the op's own result type. */
static void match_types(o3_lw_t *lw, MlirOperation op, int count, MlirValue *results) {
  for (int i = 0; i < count; ++i) {
    MlirType wanted = o3_lw_type(mlirValueGetType(mlirOperationGetResult(op, i)));
    if (mlirTypeIsARankedTensor(wanted)) results[i] = o3_lw_cast(lw, results[i], wanted);
  }
}

static o3_status_t lower_op(o3_lw_t *lw, MlirOperation op) {
  int num_operands = (int)mlirOperationGetNumOperands(op), num_results = (int)mlirOperationGetNumResults(op);
  MlirValue *operands = O3_ARENA_ARRAY(lw->arena, MlirValue, (size_t)num_operands + 1);
  MlirValue *results = O3_ARENA_ARRAY(lw->arena, MlirValue, (size_t)num_results + 1);
  O3_TRY_ALLOC(operands);
  O3_TRY_ALLOC(results);
  lw->builder.location = mlirOperationGetLocation(op);
  for (int i = 0; i < num_operands; ++i) operands[i] = mapped(lw, mlirOperationGetOperand(op, i));
  o3_lower_fn_t rule = find_rule(op);
  bool ours = o3_op_is_of(op, "o3");
  if (ours && !rule)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "%s: op %.*s has no lowering", o3_lw_who(lw, op),
                            O3_STR_ARGS(o3_op_name(op)));
  O3_TRY(rule ? rule(lw, op, operands, results) : rebuild(lw, op, operands, results));
  match_types(lw, op, num_results, results);
  for (int i = 0; i < num_results; ++i) O3_TRY(map_value(lw, mlirOperationGetResult(op, i), results[i]));
  bind_result_symbols(lw, op, num_results, results);
  return NULL;
}

static o3_status_t lower_block(o3_lw_t *lw, MlirBlock old) {
  MlirOperation op = mlirBlockGetFirstOperation(old);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) O3_TRY(lower_op(lw, op));
  return NULL;
}

/* ---- @main and @check ---- */

static MlirOperation create_func(o3_lw_t *lw, const char *name, const char *visibility, MlirType type,
                                 MlirBlock block) {
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, block);
  const o3_attr_t attrs[] = {
      {"sym_name", o3_attr_string(lw->context, name)},
      {"function_type", mlirTypeAttrGet(type)},
      {"sym_visibility", visibility ? o3_attr_string(lw->context, visibility) : mlirAttributeGetNull()}};
  o3_op_spec_t spec = {
      .name = "func.func", .num_attrs = 3, .attrs = attrs, .num_regions = 1, .regions = &region};
  return o3_build(&lw->builder, &spec);
}

/* For guard k from the last to the first: result = holds ? result : k. */
static MlirValue check_guards(o3_lw_t *lw) {
  MlirType i32 = mlirIntegerTypeGet(lw->context, 32);
  MlirValue result = o3_build_int(&lw->builder, i32, -1);
  for (int k = o3_symbols_num_guards(lw->symbols) - 1; k >= 0; --k) {
    const o3_guard_t *guard = o3_symbols_guard_at(lw->symbols, k);
    MlirValue lhs = o3_lw_size(lw, guard->lhs);
    MlirValue rhs = guard->rhs.ptr ? o3_lw_size(lw, guard->rhs) : o3_build_index(&lw->builder, 0);
    MlirValue holds = o3_build_cmpi(&lw->builder, guard->rhs.ptr ? O3_CMPI_EQ : O3_CMPI_SGE, lhs, rhs);
    result = o3_build_select(&lw->builder, holds, result, o3_build_int(&lw->builder, i32, k));
  }
  return result;
}

/* Only the model's own symbols come as arguments, in their order. */
static o3_status_t build_check(o3_lw_t *lw, MlirModule module, MlirLocation location) {
  int count = 0, num_symbols = o3_symbols_count(lw->symbols);
  MlirType *types = O3_ARENA_ARRAY(lw->arena, MlirType, (size_t)num_symbols + 1);
  O3_TRY_ALLOC(types);
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  for (int i = 0; i < num_symbols; ++i) {
    lw->symbol_values[i] = (MlirValue){0};
    if (o3_symbols_at(lw->symbols, i)->kind != O3_SYMBOL_INPUT) continue;
    types[count++] = mlirIndexTypeGet(lw->context);
    lw->symbol_values[i] = mlirBlockAddArgument(block, mlirIndexTypeGet(lw->context), location);
  }
  lw->builder = o3_builder_at_end(block, location);
  bind_extrema(lw);
  MlirValue result = check_guards(lw);
  o3_build0(&lw->builder, "func.return", O3_VALUES(result));
  MlirType i32 = mlirIntegerTypeGet(lw->context, 32);
  lw->builder = o3_builder_at_end(mlirModuleGetBody(module), location);
  create_func(lw, "check", "private", mlirFunctionTypeGet(lw->context, count, types, 1, &i32), block);
  return NULL;
}

static o3_status_t bind_arguments(o3_lw_t *lw, MlirOperation old, MlirBlock block) {
  MlirBlock old_block = o3_func_body(old);
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(old_block); ++i) {
    MlirValue arg = mlirBlockGetArgument(old_block, i);
    MlirLocation location = mlirValueGetLocation(arg);
    O3_TRY(map_value(lw, arg, mlirBlockAddArgument(block, o3_lw_type(mlirValueGetType(arg)), location)));
  }
  MlirAttribute list = o3_op_attr(old, "arg_attrs");
  bool noted = !mlirAttributeIsNull(list); /* modules written by hand may have static types only */
  for (intptr_t i = 0; noted && i < mlirBlockGetNumArguments(old_block); ++i) {
    MlirAttribute shape =
        mlirDictionaryAttrGetElementByName(mlirArrayAttrGetElement(list, i), O3_STR("o3.shape"));
    if (mlirAttributeIsNull(shape)) continue;
    bind_symbols(lw, mlirBlockGetArgument(block, i), mlirAffineMapAttrGetValue(shape), O3_SYMBOL_INPUT);
  }
  bind_extrema(lw);
  return NULL;
}

static o3_status_t lower_function_type(o3_lw_t *lw, MlirType old, MlirType *type) {
  intptr_t num_inputs = mlirFunctionTypeGetNumInputs(old), num_results = mlirFunctionTypeGetNumResults(old);
  MlirType *inputs = O3_ARENA_ARRAY(lw->arena, MlirType, (size_t)(num_inputs + num_results) + 1);
  O3_TRY_ALLOC(inputs);
  MlirType *results = inputs + num_inputs;
  for (intptr_t i = 0; i < num_inputs; ++i) inputs[i] = o3_lw_type(mlirFunctionTypeGetInput(old, i));
  for (intptr_t i = 0; i < num_results; ++i) results[i] = o3_lw_type(mlirFunctionTypeGetResult(old, i));
  *type = mlirFunctionTypeGet(lw->context, num_inputs, inputs, num_results, results);
  return NULL;
}

static o3_status_t lower_main(o3_lw_t *lw, MlirModule module, MlirOperation old) {
  MlirLocation location = mlirOperationGetLocation(old);
  MlirType type;
  O3_TRY(lower_function_type(lw, mlirTypeAttrGetValue(o3_op_attr(old, "function_type")), &type));
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  lw->builder = o3_builder_at_end(block, location);
  o3_status_t status = bind_arguments(lw, old, block);
  if (!status) status = lower_block(lw, o3_func_body(old));
  if (status) {
    mlirBlockDestroy(block);
    return status;
  }
  lw->builder = o3_builder_at_end(mlirModuleGetBody(module), location);
  create_func(lw, "main", NULL, type, block);
  if (o3_symbols_num_guards(lw->symbols)) O3_TRY(build_check(lw, module, location));
  mlirOperationDestroy(old);
  o3_op_attr_set(mlirModuleGetOperation(module), "o3.stage", o3_attr_string(lw->context, "lower"));
  return NULL;
}

o3_status_t o3_lower(o3_pass_env_t *env, MlirModule module) {
  o3_lw_t lw = {
      .env = env, .context = env->context, .arena = env->arena, .values = o3_ptr_map_create(env->arena)};
  MlirOperation old = o3_module_func(module, "main");
  if (mlirOperationIsNull(old)) return o3_status_create(O3_STATUS_INVALID_MODEL, "the module has no @main");
  O3_TRY(o3_symbols_from_func(old, env->arena, &lw.symbols));
  size_t num_symbols = (size_t)o3_symbols_count(lw.symbols);
  lw.symbol_values = O3_ARENA_ARRAY(env->arena, MlirValue, num_symbols + 1);
  lw.used = O3_ARENA_ARRAY(env->arena, bool, num_symbols + 1);
  lw.operands = O3_ARENA_ARRAY(env->arena, MlirValue, num_symbols + 1);
  O3_TRY_ALLOC(lw.values);
  O3_TRY_ALLOC(lw.symbol_values);
  O3_TRY_ALLOC(lw.used);
  O3_TRY_ALLOC(lw.operands);
  return lower_main(&lw, module, old);
}
