#include "fuse/merge.h"

#include "fuse/rebuild.h"

/* ---- Producers ---- */

/* The only op that reads |op|, by its operands alone; a null op when there are several or a body reads it. */
static MlirOperation only_user(MlirOperation op) {
  MlirOperation user = {0};
  MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, 0));
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation owner = mlirOpOperandGetOwner(use);
    bool same = mlirOperationIsNull(user) || mlirOperationEqual(user, owner);
    if (!same || !mlirBlockEqual(mlirOperationGetBlock(owner), mlirOperationGetBlock(op)))
      return (MlirOperation){0};
    user = owner;
  }
  return user;
}

static bool is_expensive(MlirBlock body) {
  MlirOperation op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (o3_dep_is_expensive(op)) return true;
  }
  return false;
}

static bool reads(const o3_dep_generic_t *consumer, int operand, const o3_dep_generic_t *producer) {
  return mlirValueEqual(mlirOperationGetOperand(consumer->op, operand),
                        mlirOperationGetResult(producer->op, 0));
}

/* Whether loop |dim| is known to run once. */
static bool runs_once(const o3_dep_generic_t *generic, int dim) {
  for (int i = 0; i < generic->num_operands; ++i) {
    int position = o3_dep_position(generic->maps[i], dim);
    if (position < 0 || o3_dep_loop(generic->maps[i], position) != dim) continue;
    return o3_type_dim(mlirValueGetType(mlirOperationGetOperand(generic->op, i)), position) == 1;
  }
  return false;
}

/* Whether several iterations read the same element: some loop is not in |map|. */
static bool is_repeated(const o3_dep_generic_t *consumer, MlirAffineMap map) {
  for (int d = 0; d < consumer->num_dims; ++d) {
    if (!o3_dep_uses(map, d) && !runs_once(consumer, d)) return true;
  }
  return false;
}

bool o3_fuse_merges(const o3_dep_generic_t *producer, const o3_dep_generic_t *consumer) {
  for (int i = 0; i < consumer->num_inputs; ++i) {
    if (!reads(consumer, i, producer)) continue;
    if (is_repeated(consumer, consumer->maps[i]) && is_expensive(producer->body)) return false;
  }
  return !reads(consumer, consumer->num_inputs, producer);
}

typedef struct merger {
  o3_arena_t *arena;
  const o3_dep_generic_t *producer, *consumer;
  o3_rebuild_t rebuild;
  int kept[O3_DEP_MAX_OPERANDS];                      /* consumer's input -> new input, -1: the producer's */
  int from[O3_DEP_MAX_OPERANDS][O3_DEP_MAX_OPERANDS]; /* consumer's input, producer's input -> new input */
  MlirAffineMap loops[O3_DEP_MAX_OPERANDS];           /* consumer's input -> map to the producer's loops */
} merger_t;

static MlirAffineMap compose(MlirAffineMap outer, MlirAffineMap inner, MlirContext context) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK];
  int count = (int)mlirAffineMapGetNumResults(outer);
  for (int i = 0; i < count; ++i) exprs[i] = mlirAffineExprCompose(mlirAffineMapGetResult(outer, i), inner);
  return mlirAffineMapGet(context, mlirAffineMapGetNumDims(inner), 0, count, exprs);
}

static bool list_inputs(merger_t *m) {
  const o3_dep_generic_t *consumer = m->consumer, *producer = m->producer;
  MlirContext context = mlirOperationGetContext(consumer->op);
  for (int i = 0; i < consumer->num_inputs; ++i) {
    if (!reads(consumer, i, producer)) {
      m->kept[i] = o3_rebuild_input(&m->rebuild, mlirOperationGetOperand(consumer->op, i), consumer->maps[i]);
      if (m->kept[i] < 0) return false;
      continue;
    }
    m->kept[i] = -1;
    if (!o3_dep_compose(producer, consumer, i, &m->loops[i])) return false;
    for (int k = 0; k < producer->num_inputs; ++k) {
      MlirAffineMap map = compose(producer->maps[k], m->loops[i], context);
      m->from[i][k] = o3_rebuild_input(&m->rebuild, mlirOperationGetOperand(producer->op, k), map);
      if (m->from[i][k] < 0) return false;
    }
  }
  return o3_rebuild_knows_loops(&m->rebuild);
}

/* The producer's value for the consumer's input |i|; inputs that read the same element share it. */
static o3_status_t produce(merger_t *m, int i, MlirValue *values) {
  MlirValue args[O3_DEP_MAX_OPERANDS] = {{0}};
  for (int k = 0; k < i; ++k) {
    if (m->kept[k] >= 0 || !mlirAffineMapEqual(m->loops[k], m->loops[i])) continue;
    values[i] = values[k];
    return NULL;
  }
  for (int k = 0; k < m->producer->num_inputs; ++k)
    args[k] = mlirBlockGetArgument(m->rebuild.block, m->from[i][k]);
  return o3_rebuild_clone(&m->rebuild, m->producer->body, args, &m->loops[i], &values[i]);
}

static o3_status_t build_merged(merger_t *m) {
  MlirValue args[O3_DEP_MAX_OPERANDS], result;
  O3_TRY(o3_rebuild_begin(&m->rebuild, m->arena));
  for (int i = 0; i < m->consumer->num_inputs; ++i) {
    if (m->kept[i] >= 0) {
      args[i] = mlirBlockGetArgument(m->rebuild.block, m->kept[i]);
    } else {
      O3_TRY(produce(m, i, args));
    }
  }
  args[m->consumer->num_inputs] = mlirBlockGetArgument(m->rebuild.block, m->rebuild.num_inputs);
  O3_TRY(o3_rebuild_clone(&m->rebuild, m->consumer->body, args, NULL, &result));
  o3_rebuild_finish(&m->rebuild, result);
  mlirOperationDestroy(m->producer->op);
  return NULL;
}

static o3_status_t merge_into_user(o3_arena_t *arena, MlirOperation op) {
  o3_dep_generic_t producer, consumer;
  bool fits = o3_dep_generic_read(op, &producer) && o3_dep_generic_kind(&producer) == O3_DEP_MAP;
  MlirOperation user = fits ? only_user(op) : (MlirOperation){0};
  if (mlirOperationIsNull(user) || !o3_dep_generic_read(user, &consumer)) return NULL;
  o3_dep_kind_t kind = o3_dep_generic_kind(&consumer);
  if ((kind != O3_DEP_MAP && kind != O3_DEP_REDUCTION) || !o3_fuse_merges(&producer, &consumer)) return NULL;
  merger_t *m = O3_ARENA_NEW(arena, merger_t);
  O3_TRY_ALLOC(m);
  m->arena = arena;
  m->producer = &producer;
  m->consumer = &consumer;
  m->rebuild.like = &consumer;
  m->rebuild.out = mlirOperationGetOperand(user, consumer.num_inputs);
  m->rebuild.out_map = o3_dep_result_map(&consumer);
  return list_inputs(m) ? build_merged(m) : NULL;
}

/* ---- Constants ---- */

/* The one value of a tensor: an attribute, or a scalar outside of the fill that makes it. */
typedef struct splat {
  MlirAttribute attr;
  MlirValue value;
} splat_t;

static bool is_filled(MlirOperation def, splat_t *splat) {
  o3_dep_generic_t fill;
  if (!o3_dep_generic_read(def, &fill) || o3_dep_generic_kind(&fill) != O3_DEP_FILL) return false;
  splat->value = mlirOperationGetOperand(mlirBlockGetTerminator(fill.body), 0);
  return true;
}

static bool is_splat(MlirValue tensor, splat_t *splat) {
  MlirOperation def = o3_value_def(tensor);
  *splat = (splat_t){{0}, {0}};
  if (mlirOperationIsNull(def)) return false;
  if (!o3_op_is(def, "arith.constant")) return is_filled(def, splat);
  MlirAttribute attr = o3_op_attr(def, "value");
  if (!mlirAttributeIsADenseElements(attr) || !mlirDenseElementsAttrIsSplat(attr)) return false;
  splat->attr = mlirDenseElementsAttrGetSplatValue(attr);
  return true;
}

static MlirValue build_scalar(o3_builder_t *b, const splat_t *splat) {
  if (!mlirValueIsNull(splat->value)) return splat->value;
  return o3_build1_attrs(b, "arith.constant", mlirAttributeGetType(splat->attr), O3_NO_VALUES,
                         O3_ATTRS({"value", splat->attr}));
}

static o3_status_t fold_splats(o3_arena_t *arena, MlirOperation op) {
  o3_dep_generic_t generic;
  splat_t splats[O3_DEP_MAX_OPERANDS];
  int places[O3_DEP_MAX_OPERANDS], found = 0;
  bool fits = o3_dep_generic_read(op, &generic);
  o3_dep_kind_t kind = fits ? o3_dep_generic_kind(&generic) : O3_DEP_OTHER;
  if (kind != O3_DEP_MAP && kind != O3_DEP_REDUCTION) return NULL;
  o3_rebuild_t r = {.like = &generic,
                    .out = mlirOperationGetOperand(op, generic.num_inputs),
                    .out_map = o3_dep_result_map(&generic)};
  for (int i = 0; i < generic.num_inputs; ++i) {
    MlirValue input = mlirOperationGetOperand(op, i);
    bool splat = is_splat(input, &splats[i]);
    found += splat;
    places[i] = splat ? -1 : o3_rebuild_input(&r, input, generic.maps[i]);
  }
  if (!found || !o3_rebuild_knows_loops(&r)) return NULL;
  MlirValue args[O3_DEP_MAX_OPERANDS], result;
  O3_TRY(o3_rebuild_begin(&r, arena));
  o3_builder_t b = o3_builder_at_end(r.block, mlirOperationGetLocation(op));
  for (int i = 0; i < generic.num_inputs; ++i)
    args[i] = places[i] >= 0 ? mlirBlockGetArgument(r.block, places[i]) : build_scalar(&b, &splats[i]);
  args[generic.num_inputs] = mlirBlockGetArgument(r.block, r.num_inputs);
  O3_TRY(o3_rebuild_clone(&r, generic.body, args, NULL, &result));
  o3_rebuild_finish(&r, result);
  return NULL;
}

/* What a body takes from a tensor of one value, wherever it takes it. */
static o3_status_t fold_extract(MlirOperation op, void *context) {
  splat_t splat;
  (void)context;
  if (!o3_op_is(op, "tensor.extract") || !is_splat(mlirOperationGetOperand(op, 0), &splat)) return NULL;
  o3_builder_t b = o3_builder_before(op);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), build_scalar(&b, &splat));
  mlirOperationDestroy(op);
  return NULL;
}

/* From the last op to the first, so that when an op is looked at its readers are merged already. */
o3_status_t o3_fuse_merge(o3_arena_t *arena, MlirBlock block) {
  o3_ptr_vec_t ops = o3_ptr_vec(arena);
  MlirOperation op = mlirBlockGetFirstOperation(block);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (!o3_ptr_vec_push(&ops, op.ptr)) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  for (size_t i = ops.count; i-- > 0;) O3_TRY(merge_into_user(arena, (MlirOperation){ops.items[i]}));
  for (op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    O3_TRY(o3_walk(op, fold_extract, NULL));
    O3_TRY(fold_splats(arena, op));
    op = next;
  }
  return NULL;
}

/* ---- Places ---- */

/* Whether |op| is the last op of its block that reads |value|. */
static bool is_last_reader(MlirOperation op, MlirValue value) {
  MlirOperation after = mlirOperationGetNextInBlock(op);
  for (; !mlirOperationIsNull(after); after = mlirOperationGetNextInBlock(after)) {
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(after); ++i) {
      if (mlirValueEqual(mlirOperationGetOperand(after, i), value)) return false;
    }
  }
  return true;
}

/* An input of the generic that can be its initial value: of its type, walked like it, made by a generic here,
 * and not read any more. */
static int overwritable_input(const o3_dep_generic_t *generic) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(generic->op, 0));
  for (int i = 0; i < generic->num_inputs; ++i) {
    MlirValue input = mlirOperationGetOperand(generic->op, i);
    o3_dep_generic_t made_by;
    MlirOperation def = o3_value_def(input);
    bool fits = !mlirOperationIsNull(def) && mlirTypeEqual(mlirValueGetType(input), type) &&
                mlirAffineMapEqual(generic->maps[i], o3_dep_result_map(generic)) &&
                o3_dep_generic_read(def, &made_by) && is_last_reader(generic->op, input);
    if (fits) return i;
  }
  return -1;
}

static o3_status_t overwrite_input(o3_arena_t *arena, const o3_dep_generic_t *generic, int input) {
  MlirValue args[O3_DEP_MAX_OPERANDS], result;
  int places[O3_DEP_MAX_OPERANDS];
  MlirValue old = mlirOperationGetOperand(generic->op, input);
  o3_rebuild_t r = {.like = generic, .out = old, .out_map = o3_dep_result_map(generic)};
  for (int i = 0; i < generic->num_inputs; ++i) {
    MlirValue value = mlirOperationGetOperand(generic->op, i);
    bool overwritten = mlirValueEqual(value, old) && mlirAffineMapEqual(generic->maps[i], r.out_map);
    places[i] = overwritten ? -1 : o3_rebuild_input(&r, value, generic->maps[i]);
  }
  O3_TRY(o3_rebuild_begin(&r, arena));
  for (int i = 0; i < generic->num_inputs; ++i)
    args[i] = mlirBlockGetArgument(r.block, places[i] >= 0 ? places[i] : r.num_inputs);
  args[generic->num_inputs] = (MlirValue){0};
  O3_TRY(o3_rebuild_clone(&r, generic->body, args, NULL, &result));
  o3_rebuild_finish(&r, result);
  return NULL;
}

/* The fill |def| that |reader| takes as operand |index|, in a copy of its own where others read it too: two
 * products of one shape begin with the same zeros, and only one of them writes into the kernel's result. */
static MlirOperation own_fill(MlirOperation def, MlirOperation reader, intptr_t index) {
  o3_dep_generic_t fill;
  bool is_fill = !mlirOperationIsNull(def) && o3_dep_generic_read(def, &fill) &&
                 o3_dep_generic_kind(&fill) == O3_DEP_FILL;
  if (!is_fill ||
      mlirOpOperandIsNull(mlirOpOperandGetNextUse(mlirValueGetFirstUse(mlirOperationGetResult(def, 0)))))
    return def;
  MlirOperation copy = mlirOperationClone(def);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(reader), reader, copy);
  mlirOperationSetOperand(reader, index, mlirOperationGetResult(copy, 0));
  return copy;
}

o3_status_t o3_fuse_place(o3_arena_t *arena, MlirValue root, MlirValue out) {
  MlirOperation op = o3_value_def(root);
  o3_dep_generic_t generic;
  while (o3_dep_generic_read(op, &generic)) {
    MlirValue initial = mlirOperationGetOperand(op, generic.num_inputs);
    bool is_map = o3_dep_generic_kind(&generic) == O3_DEP_MAP;
    int input = is_map ? overwritable_input(&generic) : -1;
    if (input >= 0) {
      initial = mlirOperationGetOperand(op, input);
      O3_TRY(overwrite_input(arena, &generic, input));
    }
    MlirOperation def = o3_value_def(initial);
    if (input < 0 && (is_map || mlirOperationIsNull(def) || o3_dep_generic_kind(&generic) == O3_DEP_FILL ||
                      o3_op_is(def, "tensor.empty"))) {
      mlirOperationSetOperand(op, generic.num_inputs, out);
      return NULL;
    }
    op = input < 0 ? own_fill(def, op, generic.num_inputs) : def;
  }
  return o3_status_create(O3_STATUS_INTERNAL, "the result of op '%.*s' has no initial value",
                          O3_STR_ARGS(o3_op_label(op)));
}

/* What |value| is a view of. */
static MlirValue viewed(MlirValue value) {
  for (;;) {
    MlirOperation def = o3_value_def(value);
    bool is_view = !mlirOperationIsNull(def) && mlirOperationGetNumOperands(def) &&
                   (o3_op_is(def, "tensor.expand_shape") || o3_op_is(def, "tensor.collapse_shape"));
    if (!is_view) return value;
    value = mlirOperationGetOperand(def, 0);
  }
}

/* The generic with |out| as its initial value, and what that was as one more input. */
static o3_status_t read_initial(o3_arena_t *arena, const o3_dep_generic_t *generic, MlirValue out) {
  MlirValue args[O3_DEP_MAX_OPERANDS + 1], result;
  MlirValue old = mlirOperationGetOperand(generic->op, generic->num_inputs);
  o3_rebuild_t r = {.like = generic, .out = out, .out_map = o3_dep_result_map(generic)};
  int places[O3_DEP_MAX_OPERANDS + 1];
  for (int i = 0; i <= generic->num_inputs; ++i) {
    MlirValue value = mlirOperationGetOperand(generic->op, i);
    places[i] = o3_rebuild_input(&r, value, i < generic->num_inputs ? generic->maps[i] : r.out_map);
    if (places[i] < 0) return NULL;
  }
  if (!mlirTypeEqual(mlirValueGetType(old), mlirValueGetType(out))) return NULL;
  O3_TRY(o3_rebuild_begin(&r, arena));
  for (int i = 0; i <= generic->num_inputs; ++i) args[i] = mlirBlockGetArgument(r.block, places[i]);
  O3_TRY(o3_rebuild_clone(&r, generic->body, args, NULL, &result));
  o3_rebuild_finish(&r, result);
  return NULL;
}

o3_status_t o3_fuse_spare_arguments(o3_arena_t *arena, MlirBlock body) {
  MlirValue out = mlirBlockGetArgument(body, mlirBlockGetNumArguments(body) - 1);
  MlirOperation op = o3_value_def(viewed(mlirOperationGetOperand(mlirBlockGetTerminator(body), 0)));
  o3_dep_generic_t generic;
  while (!mlirOperationIsNull(op) && o3_dep_generic_read(op, &generic)) {
    MlirValue initial = viewed(mlirOperationGetOperand(op, generic.num_inputs));
    op = o3_value_def(initial);
    bool is_given = mlirOperationIsNull(op) && !mlirValueEqual(initial, out);
    if (is_given && o3_dep_generic_kind(&generic) == O3_DEP_OTHER) return read_initial(arena, &generic, out);
  }
  return NULL;
}
