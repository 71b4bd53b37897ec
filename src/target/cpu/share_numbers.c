/* cpu-share-numbers: functions that differ in numbers alone become one, which is told the numbers.
 *
 *     call @o3k_tile_a1(%x, ...)    // * 0.4 + 0.1   =>   call @o3k_tile_a1(%x, ..., %0.4, %0.1)
 *     call @o3k_tile_a2(%x, ...)    // * 0.7 + 0.2   =>   call @o3k_tile_a1(%x, ..., %0.7, %0.2)
 *
 * Needs: functions for the tiles of products (cpu-kernels), called by func.call. Guarantees: no two of them
 * that give no results, call none of the others and are only called have the same text but for up to
 * MAX_NUMBERS factors and terms. Networks scale and shift by other numbers after each layer; a tile is code
 * of hundreds of ops. Other numbers stay: limits and what sums start from are better known.
 */
#include <string.h>

#include "base/map.h"
#include "base/strbuf.h"
#include "ir/build.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"

/* Factors and terms of one function that differ in another. More of them, and the functions stay apart. */
enum { MAX_NUMBERS = 8 };

typedef struct function {
  MlirOperation op;
  o3_ptr_vec_t numbers; /* MlirOperation.ptr of its arith.constants that are factors and terms, in order */
  o3_ptr_vec_t calls;   /* MlirOperation.ptr */
  bool is_referred;     /* not only called */
  bool is_caller;       /* of others among them: its calls are in their lists, and have to stay */
} function_t;

/* Functions of the same text. */
typedef struct family {
  o3_ptr_vec_t members; /* function_t */
} family_t;

typedef struct parameters {
  int count;
  size_t first[MAX_NUMBERS]; /* place of each among the numbers */
} parameters_t;

typedef struct share {
  o3_arena_t *arena;
  o3_str_map_t *by_name; /* function_t */
  o3_ptr_vec_t functions, families;
  o3_str_map_t *by_text; /* family_t */
} share_t;

static o3_status_t no_memory(bool ok) {
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* ---- Factors and terms ---- */

static bool is_f32(MlirType type) {
  return mlirTypeIsAF32(mlirTypeIsAVector(type) ? mlirShapedTypeGetElementType(type) : type);
}

/* The number of a constant, a vector of equal ones included; a null attribute when it is something else. */
static MlirAttribute number_of(MlirOperation constant) {
  MlirAttribute value = o3_op_attr(constant, "value");
  if (mlirAttributeIsAFloat(value)) return value;
  bool is_splat = mlirAttributeIsADenseElements(value) && mlirDenseElementsAttrIsSplat(value);
  return is_splat ? mlirDenseElementsAttrGetSplatValue(value) : (MlirAttribute){0};
}

/* Whether |value| is but multiplied and added, in all lanes of vectors or alone. */
static bool is_factor_or_term(MlirValue value) {
  static const char *const USERS[] = {"arith.mulf", "arith.addf", "arith.subf"};
  MlirOpOperand use = mlirValueGetFirstUse(value);
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    bool fits = o3_op_is(user, "vector.broadcast") && is_factor_or_term(mlirOperationGetResult(user, 0));
    for (size_t i = 0; i < sizeof(USERS) / sizeof(USERS[0]); ++i) fits |= o3_op_is(user, USERS[i]);
    if (!fits) return false;
  }
  return true;
}

static bool is_number(MlirOperation op) {
  if (!o3_op_is(op, "arith.constant")) return false;
  MlirValue value = mlirOperationGetResult(op, 0);
  return is_f32(mlirValueGetType(value)) && !mlirAttributeIsNull(number_of(op)) && is_factor_or_term(value);
}

static o3_status_t collect_number(MlirOperation op, void *context) {
  function_t *function = context;
  return is_number(op) ? no_memory(o3_ptr_vec_push(&function->numbers, op.ptr)) : NULL;
}

static MlirOperation number_at(const function_t *function, size_t index) {
  return (MlirOperation){function->numbers.items[index]};
}

/* ---- Functions and their calls ---- */

static o3_status_t list_function(share_t *self, MlirOperation op) {
  function_t *function = O3_ARENA_NEW(self->arena, function_t);
  MlirStringRef name = o3_op_string(op, "sym_name");
  O3_TRY_ALLOC(function);
  *function = (function_t){.op = op, .numbers = o3_ptr_vec(self->arena), .calls = o3_ptr_vec(self->arena)};
  O3_TRY(o3_walk(op, collect_number, function));
  if (!function->numbers.count) return NULL;
  O3_TRY(no_memory(o3_str_map_put(self->by_name, name.data, name.length, function)));
  return no_memory(o3_ptr_vec_push(&self->functions, function));
}

static o3_status_t list_functions(share_t *self, MlirModule module) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    bool is_private = o3_str_equal(o3_op_string(op, "sym_visibility"), "private");
    if (o3_op_is(op, "func.func") && is_private && !mlirBlockIsNull(o3_func_body(op)))
      O3_TRY(list_function(self, op));
  }
  return NULL;
}

static function_t *find_function(const share_t *self, MlirStringRef name) {
  return o3_str_map_get(self->by_name, name.data, name.length);
}

/* The function around |op|, or NULL when its numbers are not looked at. */
static function_t *function_around(const share_t *self, MlirOperation op) {
  while (!mlirOperationIsNull(op) && !o3_op_is(op, "func.func")) op = mlirOperationGetParentOperation(op);
  return mlirOperationIsNull(op) ? NULL : find_function(self, o3_op_string(op, "sym_name"));
}

static o3_status_t collect_call(MlirOperation op, void *context) {
  const share_t *self = context;
  const char *attr = o3_op_is(op, "func.constant") ? "value" : o3_op_is(op, "func.call") ? "callee" : NULL;
  if (!attr) return NULL;
  function_t *function = find_function(self, mlirFlatSymbolRefAttrGetValue(o3_op_attr(op, attr)));
  if (!function) return NULL;
  function_t *caller = function_around(self, op);
  if (caller) caller->is_caller = true;
  function->is_referred |= o3_op_is(op, "func.constant");
  return no_memory(o3_ptr_vec_push(&function->calls, op.ptr));
}

/* ---- Families ---- */

static void append(MlirStringRef text, void *buffer) { o3_strbuf_append(buffer, text.data, text.length); }

/* The function from the parameters on, with all its numbers the same. */
static char *masked_text(share_t *self, const function_t *function) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  MlirAttribute *values = O3_ARENA_ARRAY(self->arena, MlirAttribute, function->numbers.count);
  if (!values) return NULL;
  for (size_t i = 0; i < function->numbers.count; ++i) {
    MlirType type = mlirValueGetType(mlirOperationGetResult(number_at(function, i), 0));
    MlirAttribute zero = o3_attr_f32(mlirOperationGetContext(function->op), 0.0);
    values[i] = o3_op_attr(number_at(function, i), "value");
    o3_op_attr_set(number_at(function, i), "value",
                   mlirTypeIsAVector(type) ? mlirDenseElementsAttrSplatGet(type, zero) : zero);
  }
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsUseLocalScope(flags);
  mlirOperationPrintWithFlags(function->op, flags, append, &text);
  mlirOpPrintingFlagsDestroy(flags);
  for (size_t i = 0; i < function->numbers.count; ++i)
    o3_op_attr_set(number_at(function, i), "value", values[i]);
  const char *from = text.failed ? NULL : strchr(text.text, '(');
  char *copy = from ? o3_arena_strdup(self->arena, from) : NULL;
  o3_strbuf_deinit(&text);
  return copy;
}

static o3_status_t find_family(share_t *self, function_t *function) {
  char *text = masked_text(self, function);
  O3_TRY_ALLOC(text);
  family_t *family = o3_str_map_get(self->by_text, text, strlen(text));
  if (!family) {
    family = O3_ARENA_NEW(self->arena, family_t);
    O3_TRY_ALLOC(family);
    family->members = o3_ptr_vec(self->arena);
    O3_TRY(no_memory(o3_ptr_vec_push(&self->families, family) &&
                     o3_str_map_put(self->by_text, text, strlen(text), family)));
  }
  return no_memory(o3_ptr_vec_push(&family->members, function));
}

static MlirAttribute member_number(const family_t *family, size_t member, size_t index) {
  return number_of(number_at(family->members.items[member], index));
}

static bool differs(const family_t *family, size_t index) {
  for (size_t i = 1; i < family->members.count; ++i)
    if (!mlirAttributeEqual(member_number(family, 0, index), member_number(family, i, index))) return true;
  return false;
}

/* Whether the numbers at two places are the same in each member: a tile has a copy for each of its stores. */
static bool agree(const family_t *family, size_t a, size_t b) {
  for (size_t i = 0; i < family->members.count; ++i)
    if (!mlirAttributeEqual(member_number(family, i, a), member_number(family, i, b))) return false;
  return true;
}

/* A parameter for each number that differs; false when there are too many. */
static bool find_parameters(const family_t *family, parameters_t *parameters) {
  *parameters = (parameters_t){.count = 0};
  size_t num_numbers = ((const function_t *)family->members.items[0])->numbers.count;
  for (size_t i = 0; i < num_numbers; ++i) {
    int p = 0;
    while (p < parameters->count && !agree(family, parameters->first[p], i)) ++p;
    if (p < parameters->count || !differs(family, i)) continue;
    if (p == MAX_NUMBERS) return false;
    parameters->first[parameters->count++] = i;
  }
  return true;
}

/* ---- One of a family ---- */

/* The calls of |from| become calls of |to|, with the numbers of |from|. */
static o3_status_t redirect(share_t *self, const function_t *from, MlirAttribute to,
                            const parameters_t *parameters) {
  int count = parameters->count;
  for (size_t c = 0; c < from->calls.count; ++c) {
    MlirOperation call = {from->calls.items[c]};
    int num_operands = (int)mlirOperationGetNumOperands(call);
    MlirValue *operands = O3_ARENA_ARRAY(self->arena, MlirValue, (size_t)(num_operands + count));
    O3_TRY_ALLOC(operands);
    o3_builder_t b = o3_builder_before(call);
    for (int i = 0; i < num_operands; ++i) operands[i] = mlirOperationGetOperand(call, i);
    for (int i = 0; i < count; ++i) {
      MlirAttribute number = number_of(number_at(from, parameters->first[i]));
      operands[num_operands + i] = o3_build1_attrs(&b, "arith.constant", mlirF32TypeGet(b.context),
                                                   O3_NO_VALUES, O3_ATTRS({"value", number}));
    }
    o3_op_spec_t spec = {.name = "func.call",
                         .num_operands = num_operands + count,
                         .operands = operands,
                         .num_attrs = 1,
                         .attrs = (o3_attr_t[]){{"callee", to}}};
    o3_build(&b, &spec);
    mlirOperationDestroy(call);
  }
  return NULL;
}

static void use_parameter(MlirOperation constant, MlirValue parameter) {
  MlirValue old = mlirOperationGetResult(constant, 0);
  o3_builder_t b = o3_builder_before(constant);
  if (mlirTypeIsAVector(mlirValueGetType(old)))
    parameter = o3_build1(&b, "vector.broadcast", mlirValueGetType(old), O3_VALUES(parameter));
  mlirValueReplaceAllUsesOfWith(old, parameter);
}

/* Attributes of the parameters there were stay; |count| more have none. */
static o3_status_t extend_attrs(share_t *self, MlirOperation function, int count) {
  MlirAttribute old = o3_op_attr(function, "arg_attrs");
  if (mlirAttributeIsNull(old)) return NULL;
  intptr_t had = mlirArrayAttrGetNumElements(old);
  MlirContext context = mlirOperationGetContext(function);
  MlirAttribute *attrs = O3_ARENA_ARRAY(self->arena, MlirAttribute, (size_t)(had + count));
  O3_TRY_ALLOC(attrs);
  for (intptr_t i = 0; i < had; ++i) attrs[i] = mlirArrayAttrGetElement(old, i);
  for (int i = 0; i < count; ++i) attrs[had + i] = mlirDictionaryAttrGet(context, 0, NULL);
  o3_op_attr_set(function, "arg_attrs", mlirArrayAttrGet(context, had + count, attrs));
  return NULL;
}

/* The first function of the family gets them. */
static o3_status_t add_parameters(share_t *self, const family_t *family, const parameters_t *parameters) {
  const function_t *function = family->members.items[0];
  MlirBlock body = o3_func_body(function->op);
  MlirContext context = mlirOperationGetContext(function->op);
  MlirLocation location = mlirOperationGetLocation(function->op);
  for (int p = 0; p < parameters->count; ++p) {
    MlirValue parameter = mlirBlockAddArgument(body, mlirF32TypeGet(context), location);
    for (size_t i = parameters->first[p]; i < function->numbers.count; ++i)
      if (agree(family, parameters->first[p], i)) use_parameter(number_at(function, i), parameter);
  }
  intptr_t num_inputs = mlirBlockGetNumArguments(body);
  MlirType *inputs = O3_ARENA_ARRAY(self->arena, MlirType, (size_t)num_inputs + 1);
  O3_TRY_ALLOC(inputs);
  for (intptr_t i = 0; i < num_inputs; ++i) inputs[i] = mlirValueGetType(mlirBlockGetArgument(body, i));
  o3_op_attr_set(function->op, "function_type",
                 o3_attr_type(mlirFunctionTypeGet(context, num_inputs, inputs, 0, NULL)));
  return extend_attrs(self, function->op, parameters->count);
}

static bool can_change(const family_t *family) {
  for (size_t i = 0; i < family->members.count; ++i) {
    const function_t *function = family->members.items[i];
    MlirType type = mlirTypeAttrGetValue(o3_op_attr(function->op, "function_type"));
    if (function->is_referred || function->is_caller || mlirFunctionTypeGetNumResults(type)) return false;
  }
  return family->members.count > 1;
}

static o3_status_t join(share_t *self, const family_t *family) {
  parameters_t parameters;
  if (!can_change(family) || !find_parameters(family, &parameters)) return NULL;
  const function_t *first = family->members.items[0];
  MlirAttribute name =
      mlirFlatSymbolRefAttrGet(mlirOperationGetContext(first->op), o3_op_string(first->op, "sym_name"));
  for (size_t i = 0; i < family->members.count; ++i)
    O3_TRY(redirect(self, family->members.items[i], name, &parameters));
  O3_TRY(add_parameters(self, family, &parameters));
  for (size_t i = 1; i < family->members.count; ++i)
    mlirOperationDestroy(((const function_t *)family->members.items[i])->op);
  return NULL;
}

o3_status_t o3_cpu_share_numbers(o3_pass_env_t *env, MlirModule module) {
  share_t self = {.arena = env->arena,
                  .by_name = o3_str_map_create(env->arena),
                  .functions = o3_ptr_vec(env->arena),
                  .families = o3_ptr_vec(env->arena),
                  .by_text = o3_str_map_create(env->arena)};
  O3_TRY_ALLOC(self.by_name && self.by_text);
  o3_cpu_load_dialects(env->context);
  O3_TRY(list_functions(&self, module));
  O3_TRY(o3_walk(mlirModuleGetOperation(module), collect_call, &self));
  for (size_t i = 0; i < self.functions.count; ++i) O3_TRY(find_family(&self, self.functions.items[i]));
  for (size_t i = 0; i < self.families.count; ++i) O3_TRY(join(&self, self.families.items[i]));
  return NULL;
}
