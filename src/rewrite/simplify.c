/* Dead ops, equal ops, tensors repeated for ops that do so by themselves, logarithms of softmaxes, and
 * squares.
 *
 * IRDL ops carry no traits, so upstream's canonicalize and CSE leave them alone; this is the same for ours.
 * Needs: a normalized module. Guarantees: no pure op without readers; within a block no two pure ops with the
 * same name, operands, attributes and result types; no o3.broadcast of static size directly before an add,
 * sub, mul, div or select of which another operand has the result's shape; no o3.log of an o3.softmax; no
 * o3.pow of a float and the constant 2.
 *
 *     %a = "o3.exp"(%x)
 *     %b = "o3.exp"(%x)         =>   %a = "o3.exp"(%x)
 *     "o3.add"(%a, %b)               "o3.add"(%a, %a)
 */
#include <string.h>

#include "ir/weights.h"
#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

/* ---- Dead ops ---- */

static bool is_dead(MlirOperation op) {
  if (!o3_op_is_pure(op)) return false;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i) {
    if (o3_value_has_uses(mlirOperationGetResult(op, i))) return false;
  }
  return true;
}

/* Backwards, so that what only dead ops read is dead too. A result whose bare size defines a data symbol is
 * still needed by all sizes that use the symbol, so ops with such results stay. */
static o3_status_t erase_dead(MlirModule module, o3_arena_t *arena) {
  o3_ptr_vec_t ops = o3_ptr_vec(arena);
  O3_TRY(o3_collect_ops(mlirModuleGetOperation(module), &ops));
  for (size_t i = ops.count; i-- > 0;) {
    MlirOperation op = {.ptr = ops.items[i]};
    bool defines_symbols = o3_op_is(op, "o3.nonzero") || o3_op_bool(op, "o3.defines_symbols", false);
    if (!defines_symbols && is_dead(op)) mlirOperationDestroy(op);
  }
  return NULL;
}

/* ---- Equal ops ---- */

enum { MAX_KEY = 4096 };

/* Everything that makes two ops equal, as bytes: MLIR's attributes, types and names are unique pointers. */
typedef struct op_key {
  size_t length;
  const void *words[MAX_KEY / sizeof(void *)];
  bool too_long;
} op_key_t;

static void add_word(op_key_t *key, const void *word) {
  if (key->length == sizeof(key->words) / sizeof(key->words[0])) {
    key->too_long = true;
  } else {
    key->words[key->length++] = word;
  }
}

/* The sizes that o3.shape states, without the number of symbols known when it was written. They do not always
 * follow from the rest: an o3.iota or o3.broadcast has the size that it was given. */
static void add_shapes(op_key_t *key, MlirAttribute shapes) {
  for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(shapes); ++i) {
    MlirAffineMap map = mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(shapes, i));
    for (intptr_t k = 0; k < mlirAffineMapGetNumResults(map); ++k)
      add_word(key, mlirAffineMapGetResult(map, k).ptr);
    add_word(key, NULL);
  }
}

static void make_key(MlirOperation op, op_key_t *key) {
  key->length = 0;
  key->too_long = false;
  add_word(key, o3_op_name(op).data);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
    add_word(key, mlirOperationGetOperand(op, i).ptr);
  add_word(key, NULL);
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); ++i) {
    MlirNamedAttribute attr = mlirOperationGetAttribute(op, i);
    add_word(key, attr.name.ptr);
    if (o3_str_equal(mlirIdentifierStr(attr.name), "o3.shape")) {
      add_shapes(key, attr.attribute);
    } else {
      add_word(key, attr.attribute.ptr);
    }
  }
  add_word(key, NULL);
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    add_word(key, mlirValueGetType(mlirOperationGetResult(op, i)).ptr);
}

static void replace_by(MlirOperation op, MlirOperation by) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, i), mlirOperationGetResult(by, i));
  mlirOperationDestroy(op);
}

/* Ops with data-dependent sizes own their symbols and are never merged. */
static bool may_merge(MlirOperation op) {
  return o3_op_is_pure(op) && !o3_op_is(op, "o3.nonzero") && mlirOperationGetNumResults(op) > 0 &&
         !o3_op_bool(op, "o3.defines_symbols", false);
}

static o3_status_t merge_block(MlirBlock block, o3_arena_t *arena);

static o3_status_t merge_regions(MlirOperation op, o3_arena_t *arena) {
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); ++r) {
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
    for (; !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block))
      O3_TRY(merge_block(block, arena));
  }
  return NULL;
}

static o3_status_t merge_block(MlirBlock block, o3_arena_t *arena) {
  op_key_t key;
  o3_str_map_t *seen = o3_str_map_create(arena);
  O3_TRY_ALLOC(seen);
  MlirOperation op = mlirBlockGetFirstOperation(block);
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    O3_TRY(merge_regions(op, arena));
    if (may_merge(op)) {
      make_key(op, &key);
      size_t bytes = key.length * sizeof(void *);
      void *first = key.too_long ? NULL : o3_str_map_get(seen, (const char *)key.words, bytes);
      if (first) {
        replace_by(op, (MlirOperation){.ptr = first});
      } else if (!key.too_long && !o3_str_map_put(seen, (const char *)key.words, bytes, op.ptr)) {
        return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
      }
    }
    op = next;
  }
  return NULL;
}

/* ---- Broadcasts ---- */

static bool is_elementwise(MlirOperation op) {
  static const char *const NAMES[] = {"o3.add", "o3.sub", "o3.mul", "o3.div", "o3.select"};
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i) {
    if (o3_op_is(op, NAMES[i])) return true;
  }
  return false;
}

static bool has_shape(MlirValue value, MlirType shape) {
  MlirType type = mlirValueGetType(value);
  bool same = o3_type_is_static(type) && o3_type_rank(type) == o3_type_rank(shape);
  for (int i = 0; same && i < o3_type_rank(type); ++i) same = o3_type_dim(type, i) == o3_type_dim(shape, i);
  return same;
}

/* One operand of the result's shape stays. */
static void drop_broadcasts(MlirOperation op) {
  MlirType shape = mlirValueGetType(mlirOperationGetResult(op, 0));
  intptr_t count = mlirOperationGetNumOperands(op), whole = -1;
  if (!o3_type_is_static(shape)) return;
  for (intptr_t i = 0; i < count; ++i) {
    MlirOperation def = o3_value_def(mlirOperationGetOperand(op, i));
    bool repeated = !mlirOperationIsNull(def) && o3_op_is(def, "o3.broadcast");
    if (!repeated && has_shape(mlirOperationGetOperand(op, i), shape)) whole = i;
  }
  for (intptr_t i = 0; whole >= 0 && i < count; ++i) {
    MlirOperation def = o3_value_def(mlirOperationGetOperand(op, i));
    if (!mlirOperationIsNull(def) && o3_op_is(def, "o3.broadcast"))
      mlirOperationSetOperand(op, i, mlirOperationGetOperand(def, 0));
  }
}

static o3_status_t drop_all_broadcasts(MlirModule module, o3_arena_t *arena) {
  o3_ptr_vec_t ops = o3_ptr_vec(arena);
  O3_TRY(o3_collect_ops(mlirModuleGetOperation(module), &ops));
  for (size_t i = 0; i < ops.count; ++i) {
    MlirOperation op = {.ptr = ops.items[i]};
    if (is_elementwise(op)) drop_broadcasts(op);
  }
  return NULL;
}

/* ---- Logarithms ---- */

/* A probability that f32 does not hold has a logarithm that it does: x - max - log(sum). The softmax stays if
 * something else reads it. */
static void take_log_of_softmax(MlirOperation op) {
  MlirOperation softmax = o3_value_def(mlirOperationGetOperand(op, 0));
  bool fits =
      !mlirOperationIsNull(softmax) && o3_op_is(softmax, "o3.softmax") && !o3_op_bool(softmax, "log", false);
  if (!fits) return;
  o3_builder_t b = o3_builder_before(op);
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  MlirValue y =
      o3_build1_attrs(&b, "o3.softmax", type, O3_VALUES(mlirOperationGetOperand(softmax, 0)),
                      O3_ATTRS({"axis", o3_op_attr(softmax, "axis")}, {"log", mlirBoolAttrGet(b.context, 1)},
                               {"o3.shape", o3_op_attr(op, "o3.shape")}));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), y);
  mlirOperationDestroy(op);
}

static o3_status_t take_logs(MlirModule module, o3_arena_t *arena) {
  o3_ptr_vec_t ops = o3_ptr_vec(arena);
  O3_TRY(o3_collect_ops(mlirModuleGetOperation(module), &ops));
  for (size_t i = 0; i < ops.count; ++i) {
    MlirOperation op = {.ptr = ops.items[i]};
    if (o3_op_is(op, "o3.log")) take_log_of_softmax(op);
  }
  return NULL;
}

/* ---- Squares ---- */

/* |value| is a constant of one float, which is 2. */
static bool is_two(o3_weights_t *weights, MlirValue value) {
  enum { TWO = 0x4000 }; /* as f16 and as bf16 */
  MlirOperation def = o3_value_def(value);
  MlirType type = mlirValueGetType(value), element = o3_type_element(type);
  bool fits = !mlirOperationIsNull(def) && o3_op_is(def, "o3.constant") && o3_type_count(type) == 1;
  const void *data = fits ? o3_weights_data(weights, o3_op_attr(def, "value"), NULL) : NULL;
  if (!data) return false;
  if (mlirTypeIsAF32(element)) return *(const float *)data == 2.0F;
  if (mlirTypeIsAF64(element)) return *(const double *)data == 2.0;
  return (mlirTypeIsAF16(element) || mlirTypeIsABF16(element)) && *(const uint16_t *)data == TWO;
}

/* Exporters of LayerNorm write x^2 so. No kernel of rows has powers, and their logarithm is a long way. */
static void square(MlirOperation op) {
  MlirValue x = mlirOperationGetOperand(op, 0);
  o3_builder_t b = o3_builder_before(op);
  MlirValue y = o3_build1_attrs(&b, "o3.mul", mlirValueGetType(mlirOperationGetResult(op, 0)),
                                O3_VALUES(x, x), O3_ATTRS({"o3.shape", o3_op_attr(op, "o3.shape")}));
  o3_op_replace(op, 1, &y);
}

static o3_status_t square_all(o3_weights_t *weights, MlirModule module, o3_arena_t *arena) {
  o3_ptr_vec_t ops = o3_ptr_vec(arena);
  O3_TRY(o3_collect_ops(mlirModuleGetOperation(module), &ops));
  for (size_t i = 0; i < ops.count; ++i) {
    MlirOperation op = {.ptr = ops.items[i]};
    if (!o3_op_is(op, "o3.pow") || !is_two(weights, mlirOperationGetOperand(op, 1))) continue;
    MlirType from = mlirValueGetType(mlirOperationGetOperand(op, 0));
    bool same = mlirTypeEqual(from, mlirValueGetType(mlirOperationGetResult(op, 0)));
    if (same && o3_type_is_float(o3_type_element(from))) square(op);
  }
  return NULL;
}

o3_status_t o3_rewrite_simplify(o3_pass_env_t *env, MlirModule module) {
  o3_arena_t *arena = o3_arena_create();
  O3_TRY_ALLOC(arena);
  o3_status_t status = drop_all_broadcasts(module, arena);
  if (!status) status = take_logs(module, arena);
  if (!status) status = square_all(env->weights, module, arena);
  if (!status) status = merge_regions(mlirModuleGetOperation(module), arena);
  if (!status) status = erase_dead(module, arena);
  o3_arena_destroy(arena);
  return status;
}
