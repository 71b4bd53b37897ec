/* A part grows as ops are met that read it, and parts that an op reads become one. Two parts are of a kind
 * when their ops have equal names, attributes and types and read the same places: attributes and types are
 * unique in a context, so that addresses are compared. */
#include "rewrite/fold_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/strbuf.h"
#include "rewrite/rewrite_ir.h"

/* Results up to this size are always worth it; larger ones when they are at most twice their operands. */
enum { SMALL_RESULT_BYTES = 1 << 16 };

static int64_t value_bytes(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  int64_t count = mlirTypeIsARankedTensor(type) ? o3_type_count(type) : -1;
  return count < 0 ? -1 : count * (o3_type_bits(o3_type_element(type)) / 8);
}

static int64_t result_bytes(MlirOperation op) {
  int64_t bytes = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    bytes += value_bytes(mlirOperationGetResult(op, i));
  return bytes;
}

/* The growth of transformed weights, and of what has o3.fold, was weighed when they were chosen. */
static bool is_worth_it(MlirOperation op) {
  int64_t from = 0, to = 0;
  if (o3_op_is(op, "o3.winograd_weights") || !mlirAttributeIsNull(o3_op_attr(op, "o3.fold"))) return true;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
    from += value_bytes(mlirOperationGetOperand(op, i));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i) {
    int64_t bytes = value_bytes(mlirOperationGetResult(op, i));
    if (bytes < 0) return false;
    to += bytes;
  }
  return to <= SMALL_RESULT_BYTES || to <= 2 * from;
}

/* ---- Parts ---- */

/* An op that is known: a constant, or one that will be computed. */
typedef struct known {
  MlirOperation op;
  size_t order;         /* in the module */
  struct growing *part; /* NULL: a constant */
} known_t;

typedef struct growing {
  struct growing *into; /* the part that this one has become one with, or NULL */
  o3_ptr_vec_t ops;     /* known_t */
  int64_t bytes;
} growing_t;

typedef struct finder {
  o3_arena_t *arena;
  o3_weights_t *weights;
  o3_ptr_map_t *known;  /* op -> known_t */
  o3_ptr_vec_t growing; /* growing_t */
  size_t order;
} finder_t;

static growing_t *part_of(const known_t *known) {
  growing_t *part = known->part;
  while (part && part->into) part = part->into;
  return part;
}

/* The producer of operand |i|, null when it is not known. */
static known_t *operand_known(const finder_t *self, MlirOperation op, intptr_t i) {
  MlirOperation def = o3_value_def(mlirOperationGetOperand(op, i));
  return mlirOperationIsNull(def) ? NULL : o3_ptr_map_get(self->known, def.ptr);
}

static bool operands_known(const finder_t *self, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
    if (!operand_known(self, op, i)) return false;
  return mlirOperationGetNumOperands(op) > 0;
}

static bool join(growing_t *to, growing_t *from) {
  for (size_t i = 0; i < from->ops.count; ++i)
    if (!o3_ptr_vec_push(&to->ops, from->ops.items[i])) return false;
  to->bytes += from->bytes;
  from->into = to;
  return true;
}

/* Of the parts that |op| reads: whether they and |op| keep the limits as one. */
static bool fits(const finder_t *self, MlirOperation op) {
  size_t ops = 1;
  int64_t bytes = 0;
  const growing_t *seen[O3_FOLD_MAX_OPS];
  size_t num_seen = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    const growing_t *part = part_of(operand_known(self, op, i));
    size_t at = 0;
    while (at < num_seen && seen[at] != part) ++at;
    if (!part || at < num_seen) continue;
    if (num_seen == O3_FOLD_MAX_OPS) return false;
    seen[num_seen++] = part;
    ops += part->ops.count;
    bytes += part->bytes;
  }
  return ops <= O3_FOLD_MAX_OPS && (!bytes || bytes + result_bytes(op) <= O3_FOLD_MAX_BYTES);
}

static o3_status_t add_op(finder_t *self, known_t *known) {
  growing_t *part = NULL;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(known->op); ++i) {
    growing_t *other = part_of(operand_known(self, known->op, i));
    if (!part) part = other;
    if (other && other != part) O3_TRY_ALLOC(join(part, other));
  }
  if (!part) {
    part = O3_ARENA_NEW(self->arena, growing_t);
    O3_TRY_ALLOC(part);
    *part = (growing_t){.ops = o3_ptr_vec(self->arena)};
    O3_TRY_ALLOC(o3_ptr_vec_push(&self->growing, part));
  }
  known->part = part;
  part->bytes += result_bytes(known->op);
  O3_TRY_ALLOC(o3_ptr_vec_push(&part->ops, known));
  return NULL;
}

static o3_status_t visit(MlirOperation op, void *context) {
  finder_t *self = context;
  bool constant = o3_op_is(op, "o3.constant");
  if (!constant && !(o3_op_is_pure(op) && operands_known(self, op) && !o3_op_reads_sizes(op) &&
                     is_worth_it(op) && fits(self, op)))
    return NULL;
  known_t *known = O3_ARENA_NEW(self->arena, known_t);
  O3_TRY_ALLOC(known);
  *known = (known_t){.op = op, .order = self->order++};
  if (!constant) O3_TRY(add_op(self, known));
  O3_TRY_ALLOC(o3_ptr_map_put(self->known, op.ptr, known));
  return NULL;
}

static int by_order(const void *a, const void *b) {
  const known_t *x = *(known_t *const *)a, *y = *(known_t *const *)b;
  return (x->order > y->order) - (x->order < y->order);
}

/* ---- What a part reads and what reads it ---- */

static bool is_read_outside(const finder_t *self, const growing_t *part, MlirValue value) {
  MlirOpOperand use = mlirValueGetFirstUse(value);
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    const known_t *user = o3_ptr_map_get(self->known, mlirOpOperandGetOwner(use).ptr);
    if (!user || part_of(user) != part) return true;
  }
  return false;
}

/* What can be told to a function of the runtime's: small constants, and those of other types, are in its
 * code. */
static bool is_input(const finder_t *self, MlirOperation constant) {
  o3_dtype_id_t dtype;
  char *element = o3_type_text(o3_type_element(mlirValueGetType(mlirOperationGetResult(constant, 0))));
  bool known = element && o3_dtype_from_mlir(element, &dtype);
  free(element);
  return known && o3_weights_name(self->weights, o3_op_attr(constant, "value"));
}

static size_t index_of(const o3_ptr_vec_t *vec, const void *item) {
  size_t at = 0;
  while (at < vec->count && vec->items[at] != item) ++at;
  return at;
}

static o3_status_t describe_operand(const finder_t *self, o3_fold_part_t *part, MlirValue operand,
                                    o3_strbuf_t *key) {
  MlirOperation def = mlirOpResultGetOwner(operand);
  const void *constant = o3_op_is(def, "o3.constant") ? o3_op_attr(def, "value").ptr : NULL;
  void *value = (void *)(uintptr_t)operand.ptr;
  if (!constant) {
    o3_strbuf_printf(key, " %zu.%ld", index_of(&part->ops, def.ptr),
                     (long)mlirOpResultGetResultNumber(operand));
    return NULL;
  }
  if (!is_input(self, def)) {
    o3_strbuf_printf(key, " =%p", constant);
    return NULL;
  }
  size_t at = index_of(&part->inputs, value);
  if (at == part->inputs.count) O3_TRY_ALLOC(o3_ptr_vec_push(&part->inputs, value));
  o3_strbuf_printf(key, " #%zu:%p", at, mlirValueGetType(operand).ptr);
  return NULL;
}

/* An op with regions is like no other. */
static void describe_op(MlirOperation op, o3_strbuf_t *key) {
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  o3_strbuf_append(key, name.data, name.length);
  if (mlirOperationGetNumRegions(op)) o3_strbuf_printf(key, " %p", op.ptr);
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); ++i) {
    MlirNamedAttribute attr = mlirOperationGetAttribute(op, i);
    o3_strbuf_printf(key, " %p=%p", attr.name.ptr, attr.attribute.ptr);
  }
}

static o3_status_t describe_part(const finder_t *self, const growing_t *grown, o3_fold_part_t *part,
                                 o3_strbuf_t *key) {
  for (size_t i = 0; i < part->ops.count; ++i) {
    MlirOperation op = {.ptr = part->ops.items[i]};
    describe_op(op, key);
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); ++k)
      O3_TRY(describe_operand(self, part, mlirOperationGetOperand(op, k), key));
    for (intptr_t r = 0; r < mlirOperationGetNumResults(op); ++r) {
      MlirValue result = mlirOperationGetResult(op, r);
      bool root = is_read_outside(self, grown, result);
      if (root) O3_TRY_ALLOC(o3_ptr_vec_push(&part->roots, (void *)(uintptr_t)result.ptr));
      o3_strbuf_printf(key, " %s%p", root ? ">" : "", mlirValueGetType(result).ptr);
    }
    o3_strbuf_puts(key, "\n");
  }
  O3_TRY_ALLOC(!key->failed);
  return NULL;
}

/* ---- Kinds ---- */

static o3_status_t add_part(const finder_t *self, const growing_t *grown, o3_str_map_t *by_key,
                            o3_strbuf_t *key, o3_ptr_vec_t *kinds) {
  o3_fold_part_t *part = O3_ARENA_NEW(self->arena, o3_fold_part_t);
  O3_TRY_ALLOC(part);
  *part = (o3_fold_part_t){.ops = o3_ptr_vec(self->arena),
                           .bytes = grown->bytes,
                           .inputs = o3_ptr_vec(self->arena),
                           .roots = o3_ptr_vec(self->arena)};
  qsort(grown->ops.items, grown->ops.count, sizeof(void *), by_order);
  for (size_t i = 0; i < grown->ops.count; ++i)
    O3_TRY_ALLOC(o3_ptr_vec_push(&part->ops, ((const known_t *)grown->ops.items[i])->op.ptr));
  O3_TRY(describe_part(self, grown, part, key));
  o3_fold_kind_t *kind = o3_str_map_get(by_key, key->text, key->length);
  if (!kind) {
    kind = O3_ARENA_NEW(self->arena, o3_fold_kind_t);
    O3_TRY_ALLOC(kind);
    *kind = (o3_fold_kind_t){.parts = o3_ptr_vec(self->arena)};
    O3_TRY_ALLOC(o3_str_map_put(by_key, key->text, key->length, kind) && o3_ptr_vec_push(kinds, kind));
  }
  O3_TRY_ALLOC(o3_ptr_vec_push(&kind->parts, part));
  return NULL;
}

o3_status_t o3_fold_kinds_find(o3_arena_t *arena, o3_weights_t *weights, MlirModule module,
                               o3_ptr_vec_t *kinds) {
  finder_t self = {
      .arena = arena, .weights = weights, .known = o3_ptr_map_create(arena), .growing = o3_ptr_vec(arena)};
  o3_str_map_t *by_key = o3_str_map_create(arena);
  *kinds = o3_ptr_vec(arena);
  O3_TRY_ALLOC(self.known && by_key);
  O3_TRY(o3_walk(mlirModuleGetOperation(module), visit, &self));
  o3_status_t status = NULL;
  for (size_t i = 0; i < self.growing.count && !status; ++i) {
    const growing_t *grown = self.growing.items[i];
    o3_strbuf_t key = O3_STRBUF_INIT;
    if (!grown->into) status = add_part(&self, grown, by_key, &key, kinds);
    o3_strbuf_deinit(&key);
  }
  return status;
}
