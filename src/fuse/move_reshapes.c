/* A reshape that splits dimensions goes behind an elementwise op, one that joins them before it; two that
 * meet cancel. An op can be without the split when all its operands walk the parts of each split dimension as
 * one: the same way as the result, or not at all. */
#include "fuse/move_reshapes.h"

#include "fuse/rebuild.h"

/* Which loops of an elementwise op become one: its result's positions in runs, as a reassociation says. */
typedef struct joined {
  o3_dep_generic_t generic;
  MlirAttribute groups;           /* [[0], [1, 2]] over the result's dimensions */
  int num_groups;                 /* loops after joining, one for each group */
  int loop_group[O3_IR_MAX_RANK]; /* old loop -> group */
  int loop_place[O3_IR_MAX_RANK]; /* old loop -> place in its group */
  int group_size[O3_IR_MAX_RANK];
} joined_t;

/* ---- Whether ---- */

static bool reads_positions(MlirBlock body) {
  MlirOperation op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (o3_op_is(op, "linalg.index") || mlirOperationGetNumRegions(op)) return true;
  }
  return false;
}

static bool read_groups(joined_t *j) {
  MlirAffineMap result = o3_dep_result_map(&j->generic);
  int position = 0;
  j->num_groups = (int)mlirArrayAttrGetNumElements(j->groups);
  for (int g = 0; g < j->num_groups; ++g) {
    MlirAttribute group = mlirArrayAttrGetElement(j->groups, g);
    j->group_size[g] = (int)mlirArrayAttrGetNumElements(group);
    for (int i = 0; i < j->group_size[g]; ++i) {
      int loop = o3_dep_loop(result, position++);
      j->loop_group[loop] = g;
      j->loop_place[loop] = i;
    }
  }
  return position == j->generic.num_dims && j->num_groups > 0;
}

/* Each position of |map| is either a part of a whole group in order, or a constant. */
static bool walks_groups(const joined_t *j, MlirAffineMap map) {
  int count = (int)mlirAffineMapGetNumResults(map);
  for (int r = 0; r < count;) {
    int loop = o3_dep_loop(map, r);
    if (loop < 0 && !mlirAffineExprIsAConstant(mlirAffineMapGetResult(map, r))) return false;
    if (loop < 0) {
      ++r;
      continue;
    }
    int group = j->loop_group[loop];
    for (int i = 0; i < j->group_size[group]; ++i, ++r) {
      loop = r < count ? o3_dep_loop(map, r) : -1;
      if (loop < 0 || j->loop_group[loop] != group || j->loop_place[loop] != i) return false;
    }
  }
  return true;
}

static bool is_empty(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_op_is(def, "tensor.empty");
}

static bool can_join(joined_t *j, MlirOperation op, MlirAttribute groups) {
  if (!o3_dep_generic_read(op, &j->generic)) return false;
  o3_dep_kind_t kind = o3_dep_generic_kind(&j->generic);
  j->groups = groups;
  bool fits = (kind == O3_DEP_MAP || kind == O3_DEP_FILL) && !reads_positions(j->generic.body) &&
              is_empty(mlirOperationGetOperand(op, j->generic.num_inputs)) && read_groups(j);
  for (int i = 0; i < j->generic.num_operands && fits; ++i) {
    bool is_tensor = mlirTypeIsARankedTensor(mlirValueGetType(mlirOperationGetOperand(op, i)));
    fits = is_tensor && walks_groups(j, j->generic.maps[i]);
  }
  return fits;
}

/* ---- Building ---- */

static MlirAttribute reassociation(MlirContext context, int count, const int *sizes) {
  MlirAttribute groups[O3_IR_MAX_RANK], items[O3_IR_MAX_RANK];
  for (int g = 0, at = 0; g < count; ++g) {
    for (int i = 0; i < sizes[g]; ++i) items[i] = o3_attr_i64(context, at++);
    groups[g] = mlirArrayAttrGet(context, sizes[g], items);
  }
  return mlirArrayAttrGet(context, count, groups);
}

static MlirType joined_type(MlirType type, int count, const int *sizes) {
  int64_t dims[O3_IR_MAX_RANK];
  for (int g = 0, at = 0; g < count; ++g) {
    dims[g] = 1;
    for (int i = 0; i < sizes[g]; ++i, ++at) {
      int64_t size = o3_type_dim(type, at);
      bool known = size >= 0 && dims[g] >= 0;
      if (!known || __builtin_mul_overflow(dims[g], size, &dims[g])) dims[g] = mlirShapedTypeGetDynamicSize();
    }
  }
  return o3_tensor_type(count, dims, o3_type_element(type));
}

/* |value| with its dimensions joined: what an expand of the same groups came from, or a collapse. */
static MlirValue join_value(o3_builder_t *b, MlirValue value, int count, const int *sizes) {
  MlirType old = mlirValueGetType(value), type = joined_type(old, count, sizes);
  MlirAttribute groups = reassociation(b->context, count, sizes);
  MlirOperation def = o3_value_def(value);
  if (count == o3_type_rank(old)) return value;
  if (!mlirOperationIsNull(def) && o3_op_is(def, "tensor.expand_shape") &&
      mlirAttributeEqual(o3_op_attr(def, "reassociation"), groups) &&
      mlirTypeEqual(mlirValueGetType(mlirOperationGetOperand(def, 0)), type))
    return mlirOperationGetOperand(def, 0);
  return o3_build1_attrs(b, "tensor.collapse_shape", type, O3_VALUES(value),
                         O3_ATTRS({"reassociation", groups}));
}

/* The map over the new loops, and how many positions each of its results stands for. */
static MlirAffineMap join_map(const joined_t *j, MlirContext context, MlirAffineMap map, int *count,
                              int *sizes) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK];
  *count = 0;
  for (int r = 0; r < (int)mlirAffineMapGetNumResults(map); r += sizes[*count - 1]) {
    int loop = o3_dep_loop(map, r);
    exprs[*count] =
        loop < 0 ? mlirAffineMapGetResult(map, r) : mlirAffineDimExprGet(context, j->loop_group[loop]);
    sizes[(*count)++] = loop < 0 ? 1 : j->group_size[j->loop_group[loop]];
  }
  return mlirAffineMapGet(context, j->num_groups, 0, *count, exprs);
}

static MlirValue join_empty(const joined_t *j, o3_builder_t *b, MlirOperation empty) {
  MlirType old = mlirValueGetType(mlirOperationGetResult(empty, 0));
  MlirType type = joined_type(old, j->num_groups, j->group_size);
  MlirValue sizes[O3_IR_MAX_RANK];
  int count = 0, operand = 0;
  for (int g = 0, at = 0; g < j->num_groups; ++g) {
    MlirValue size = o3_build_index(b, 1);
    for (int i = 0; i < j->group_size[g]; ++i, ++at) {
      int64_t fixed = o3_type_dim(old, at);
      MlirValue part = fixed >= 0 ? o3_build_index(b, fixed) : mlirOperationGetOperand(empty, operand++);
      size = j->group_size[g] == 1 ? part : o3_build2(b, "arith.muli", size, part);
    }
    if (o3_type_dim(type, g) < 0) sizes[count++] = size;
  }
  return o3_build1(b, "tensor.empty", type, count, sizes);
}

static MlirAttribute parallel_loops(MlirContext context, int count) {
  MlirAttribute items[O3_IR_MAX_RANK];
  for (int i = 0; i < count; ++i) items[i] = o3_attr_parse(context, "#linalg.iterator_type<parallel>");
  return mlirArrayAttrGet(context, count, items);
}

/* The op on joined dimensions, before the old one, which stays. */
static o3_status_t build_joined(joined_t *j, o3_arena_t *arena, MlirValue *result) {
  MlirOperation op = j->generic.op;
  MlirContext context = mlirOperationGetContext(op);
  o3_builder_t b = o3_builder_before(op);
  int count, sizes[O3_IR_MAX_RANK], inputs = j->generic.num_inputs;
  o3_rebuild_t r = {.like = &j->generic, .num_inputs = inputs};
  for (int i = 0; i < inputs; ++i) {
    r.maps[i] = join_map(j, context, j->generic.maps[i], &count, sizes);
    r.inputs[i] = join_value(&b, mlirOperationGetOperand(op, i), count, sizes);
  }
  r.out_map = join_map(j, context, o3_dep_result_map(&j->generic), &count, sizes);
  r.out = join_empty(j, &b, o3_value_def(mlirOperationGetOperand(op, inputs)));
  MlirValue args[O3_DEP_MAX_OPERANDS], value;
  O3_TRY(o3_rebuild_begin(&r, arena));
  for (int i = 0; i <= inputs; ++i) args[i] = mlirBlockGetArgument(r.block, i);
  O3_TRY(o3_rebuild_clone(&r, j->generic.body, args, NULL, &value));
  *result = mlirOperationGetResult(o3_rebuild_build(&r, value, parallel_loops(context, j->num_groups)), 0);
  return NULL;
}

/* ---- Moving ---- */

static void expand_again(const joined_t *j, MlirValue result) {
  MlirOperation op = j->generic.op, empty = o3_value_def(mlirOperationGetOperand(op, j->generic.num_inputs));
  o3_builder_t b = o3_builder_before(op);
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  MlirValue operands[O3_IR_MAX_RANK + 1] = {result};
  int64_t sizes[O3_IR_MAX_RANK];
  int count = 1 + (int)mlirOperationGetNumOperands(empty), rank = o3_type_rank(type);
  for (int i = 1; i < count; ++i) operands[i] = mlirOperationGetOperand(empty, i - 1);
  for (int r = 0; r < rank; ++r)
    sizes[r] = o3_type_dim(type, r) < 0 ? mlirShapedTypeGetDynamicSize() : o3_type_dim(type, r);
  MlirValue expanded = o3_build1_attrs(
      &b, "tensor.expand_shape", type, count, operands,
      O3_ATTRS({"reassociation", j->groups}, {"static_output_shape", o3_attr_ints(b.context, rank, sizes)}));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), expanded);
  mlirOperationDestroy(op);
}

/* An input that is an expand, read like the result. */
static o3_status_t move_behind(o3_arena_t *arena, MlirOperation op) {
  o3_dep_generic_t generic;
  joined_t j;
  MlirValue result;
  if (!o3_dep_generic_read(op, &generic)) return NULL;
  for (int i = 0; i < generic.num_inputs; ++i) {
    MlirOperation def = o3_value_def(mlirOperationGetOperand(op, i));
    bool expands = !mlirOperationIsNull(def) && o3_op_is(def, "tensor.expand_shape") &&
                   mlirAffineMapEqual(generic.maps[i], o3_dep_result_map(&generic));
    if (!expands || !can_join(&j, op, o3_op_attr(def, "reassociation"))) continue;
    O3_TRY(build_joined(&j, arena, &result));
    expand_again(&j, result);
    return NULL;
  }
  return NULL;
}

/* Whether joining costs no new reshape: what varies along the joined loops comes from an expand of the same
 * groups. */
static bool joins_for_free(const joined_t *j) {
  for (int i = 0; i < j->generic.num_inputs; ++i) {
    MlirOperation def = o3_value_def(mlirOperationGetOperand(j->generic.op, i));
    bool expands = !mlirOperationIsNull(def) && o3_op_is(def, "tensor.expand_shape") &&
                   mlirAttributeEqual(o3_op_attr(def, "reassociation"), j->groups);
    for (int d = 0; d < j->generic.num_dims && !expands; ++d) {
      if (j->group_size[j->loop_group[d]] > 1 && o3_dep_uses(j->generic.maps[i], d)) return false;
    }
  }
  return true;
}

/* A collapse, the only reader of what an elementwise op makes; or of a fill, which costs nothing to have
 * twice. */
static o3_status_t move_before(o3_arena_t *arena, MlirOperation collapse) {
  joined_t j;
  MlirValue result;
  if (!o3_op_is(collapse, "tensor.collapse_shape")) return NULL;
  MlirOperation op = o3_value_def(mlirOperationGetOperand(collapse, 0));
  if (mlirOperationIsNull(op) || !mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(collapse)))
    return NULL;
  MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetOperand(collapse, 0));
  bool only = mlirOpOperandIsNull(mlirOpOperandGetNextUse(use));
  bool fits = can_join(&j, op, o3_op_attr(collapse, "reassociation")) &&
              (only || o3_dep_generic_kind(&j.generic) == O3_DEP_FILL) && joins_for_free(&j);
  if (!fits) return NULL;
  O3_TRY(build_joined(&j, arena, &result));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(collapse, 0), result);
  mlirOperationDestroy(collapse);
  if (only) mlirOperationDestroy(op);
  return NULL;
}

/* ---- Dimensions of size 1 ---- */

/* A reshape that only adds or drops dimensions of size 1, from the side that has them. */
typedef struct units {
  MlirValue source; /* what is reshaped */
  bool adds;
  int num_groups;
  int group_size[O3_IR_MAX_RANK],
      kept[O3_IR_MAX_RANK]; /* kept: the position that is not of size 1, -1 without one */
} units_t;

static bool read_units(MlirOperation op, units_t *u) {
  if (mlirOperationIsNull(op)) return false;
  u->adds = o3_op_is(op, "tensor.expand_shape");
  if (!u->adds && !o3_op_is(op, "tensor.collapse_shape")) return false;
  u->source = mlirOperationGetOperand(op, 0);
  MlirType wide = mlirValueGetType(u->adds ? mlirOperationGetResult(op, 0) : u->source);
  MlirAttribute groups = o3_op_attr(op, "reassociation");
  u->num_groups = (int)mlirArrayAttrGetNumElements(groups);
  int position = 0;
  for (int g = 0; g < u->num_groups; ++g) {
    u->group_size[g] = (int)mlirArrayAttrGetNumElements(mlirArrayAttrGetElement(groups, g));
    u->kept[g] = -1;
    for (int i = 0; i < u->group_size[g]; ++i, ++position) {
      if (o3_type_dim(wide, position) == 1) continue;
      if (u->kept[g] >= 0) return false;
      u->kept[g] = position;
    }
  }
  return position == o3_type_rank(wide);
}

/* What walks a group of the reshaped value that has positions of size 1 alone, which |count| of |map|'s are:
 * a loop where there is one, so that values of one row have one map; else 0. */
static MlirAffineExpr unit_loop(MlirContext context, MlirAffineMap map, int at, int count) {
  for (int i = at; i < at + count; ++i) {
    if (o3_dep_loop(map, i) >= 0) return mlirAffineMapGetResult(map, i);
  }
  return mlirAffineConstantExprGet(context, 0);
}

/* |map| of the reshaped value as a map of its source. */
static MlirAffineMap map_of_source(const units_t *u, MlirContext context, MlirAffineMap map) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK], zero = mlirAffineConstantExprGet(context, 0);
  int count = 0;
  for (int g = 0, at = 0; g < u->num_groups; at += u->group_size[g++]) {
    if (u->adds) {
      exprs[count++] = u->kept[g] < 0 ? unit_loop(context, map, at, u->group_size[g])
                                      : mlirAffineMapGetResult(map, u->kept[g]);
      continue;
    }
    int kept = u->kept[g] < 0 ? at : u->kept[g];
    for (int i = 0; i < u->group_size[g]; ++i)
      exprs[count++] = at + i == kept ? mlirAffineMapGetResult(map, g) : zero;
  }
  return mlirAffineMapGet(context, mlirAffineMapGetNumDims(map), 0, count, exprs);
}

/* Inputs that are such reshapes are read where they come from. */
static o3_status_t read_sources(o3_arena_t *arena, MlirOperation op) {
  o3_dep_generic_t generic;
  units_t units;
  bool found = false;
  if (!o3_dep_generic_read(op, &generic)) return NULL;
  o3_dep_kind_t kind = o3_dep_generic_kind(&generic);
  if (kind != O3_DEP_MAP && kind != O3_DEP_REDUCTION) return NULL;
  o3_rebuild_t r = {.like = &generic,
                    .num_inputs = generic.num_inputs,
                    .out = mlirOperationGetOperand(op, generic.num_inputs),
                    .out_map = o3_dep_result_map(&generic)};
  for (int i = 0; i < generic.num_inputs; ++i) {
    r.inputs[i] = mlirOperationGetOperand(op, i);
    r.maps[i] = generic.maps[i];
    if (!read_units(o3_value_def(r.inputs[i]), &units)) continue;
    r.inputs[i] = units.source;
    r.maps[i] = map_of_source(&units, mlirOperationGetContext(op), generic.maps[i]);
    found = true;
  }
  if (!found || !o3_rebuild_knows_loops(&r)) return NULL;
  MlirValue args[O3_DEP_MAX_OPERANDS], result;
  O3_TRY(o3_rebuild_begin(&r, arena));
  for (int i = 0; i <= generic.num_inputs; ++i) args[i] = mlirBlockGetArgument(r.block, i);
  O3_TRY(o3_rebuild_clone(&r, generic.body, args, NULL, &result));
  o3_rebuild_finish(&r, result);
  return NULL;
}

/* ---- All ---- */

static o3_status_t list_ops(MlirBlock block, o3_ptr_vec_t *ops) {
  MlirOperation op = mlirBlockGetFirstOperation(block);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (!o3_ptr_vec_push(ops, op.ptr)) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  return NULL;
}

o3_status_t o3_fuse_move_reshapes(o3_arena_t *arena, MlirBlock block) {
  o3_ptr_vec_t forward = o3_ptr_vec(arena), backward = o3_ptr_vec(arena), all = o3_ptr_vec(arena);
  O3_TRY(list_ops(block, &forward));
  for (size_t i = 0; i < forward.count; ++i) O3_TRY(move_behind(arena, (MlirOperation){forward.items[i]}));
  O3_TRY(list_ops(block, &backward));
  for (size_t i = backward.count; i-- > 0;) O3_TRY(move_before(arena, (MlirOperation){backward.items[i]}));
  O3_TRY(list_ops(block, &all));
  for (size_t i = 0; i < all.count; ++i) O3_TRY(read_sources(arena, (MlirOperation){all.items[i]}));
  return NULL;
}
