/* A convolution in groups, or one that puts its results between one another, has more dimensions than its
 * result. An elementwise op that alone reads the joined result is built on all dimensions; then the next one
 * can follow. So has a product whose phases are put between one another by a copy, which is then done with
 * what follows. */
#include "fuse/move_collapse.h"

#include "base/map.h"
#include "fuse/rebuild.h"

typedef struct mover {
  o3_arena_t *arena;
  o3_ptr_map_t *products; /* ops that are products, or computed or copied from one element by element */
} mover_t;

/* An elementwise op, and how many loops each of its loops becomes. */
typedef struct split {
  o3_dep_generic_t generic;
  MlirOperation collapse;
  int num_groups, num_loops;
  int size[O3_IR_MAX_RANK], first[O3_IR_MAX_RANK]; /* for each old loop: its new ones */
} split_t;

/* ---- Whether ---- */

static bool is_product(const mover_t *self, MlirValue value) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_ptr_map_get(self->products, def.ptr);
}

static bool has_index_ops(MlirBlock body) {
  MlirOperation op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (o3_op_is(op, "linalg.index") || mlirOperationGetNumRegions(op)) return true;
  }
  return false;
}

/* Positions are loops or constants. */
static bool is_plain(MlirAffineMap map) {
  for (int r = 0; r < (int)mlirAffineMapGetNumResults(map); ++r) {
    if (o3_dep_loop(map, r) < 0 && !mlirAffineExprIsAConstant(mlirAffineMapGetResult(map, r))) return false;
  }
  return true;
}

static bool is_only_reader(MlirValue value) {
  MlirOpOperand use = mlirValueGetFirstUse(value);
  return !mlirOpOperandIsNull(use) && mlirOpOperandIsNull(mlirOpOperandGetNextUse(use));
}

static bool find_collapse(const mover_t *self, split_t *s) {
  MlirAffineMap result = o3_dep_result_map(&s->generic);
  for (int i = 0; i < s->generic.num_inputs; ++i) {
    MlirValue value = mlirOperationGetOperand(s->generic.op, i);
    s->collapse = o3_value_def(value);
    bool found = !mlirOperationIsNull(s->collapse) && o3_op_is(s->collapse, "tensor.collapse_shape") &&
                 mlirAffineMapEqual(s->generic.maps[i], result) && is_only_reader(value) &&
                 is_product(self, mlirOperationGetOperand(s->collapse, 0));
    if (found) return true;
  }
  return false;
}

static void read_groups(split_t *s) {
  MlirAttribute groups = o3_op_attr(s->collapse, "reassociation");
  MlirAffineMap result = o3_dep_result_map(&s->generic);
  s->num_groups = (int)mlirArrayAttrGetNumElements(groups);
  s->num_loops = 0;
  for (int g = 0; g < s->num_groups; ++g) {
    int loop = o3_dep_loop(result, g);
    s->size[loop] = (int)mlirArrayAttrGetNumElements(mlirArrayAttrGetElement(groups, g));
    s->first[loop] = s->num_loops;
    s->num_loops += s->size[loop];
  }
}

static bool read_split(const mover_t *self, MlirOperation op, split_t *s) {
  if (!o3_dep_generic_read(op, &s->generic) || o3_dep_generic_kind(&s->generic) != O3_DEP_MAP) return false;
  if (!find_collapse(self, s) || has_index_ops(s->generic.body)) return false;
  MlirOperation empty = o3_value_def(mlirOperationGetOperand(op, s->generic.num_inputs));
  if (mlirOperationIsNull(empty) || !o3_op_is(empty, "tensor.empty")) return false;
  for (int i = 0; i < s->generic.num_operands; ++i) {
    bool is_tensor = mlirTypeIsARankedTensor(mlirValueGetType(mlirOperationGetOperand(op, i)));
    if (!is_tensor || !is_plain(s->generic.maps[i])) return false;
  }
  read_groups(s);
  return s->num_loops <= O3_IR_MAX_RANK;
}

/* ---- Building ---- */

static MlirValue wide_value(const split_t *s) { return mlirOperationGetOperand(s->collapse, 0); }

static MlirAffineMap split_map(const split_t *s, MlirContext context, MlirAffineMap map) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK * 2];
  int count = 0;
  for (int r = 0; r < (int)mlirAffineMapGetNumResults(map); ++r) {
    int loop = o3_dep_loop(map, r);
    if (loop < 0) exprs[count++] = mlirAffineMapGetResult(map, r);
    for (int i = 0; loop >= 0 && i < s->size[loop]; ++i)
      exprs[count++] = mlirAffineDimExprGet(context, s->first[loop] + i);
  }
  return mlirAffineMapGet(context, s->num_loops, 0, count, exprs);
}

static MlirValue size_of(o3_builder_t *b, MlirValue value, int dim) {
  return o3_build1(b, "tensor.dim", o3_build_index_type(b), O3_VALUES(value, o3_build_index(b, dim)));
}

static MlirValue split_empty(const split_t *s, o3_builder_t *b, MlirType element) {
  MlirType wide = mlirValueGetType(wide_value(s));
  int64_t dims[O3_IR_MAX_RANK];
  MlirValue sizes[O3_IR_MAX_RANK];
  int count = 0;
  for (int d = 0; d < s->num_loops; ++d) {
    dims[d] = o3_type_dim(wide, d);
    if (dims[d] >= 0) continue;
    dims[d] = mlirShapedTypeGetDynamicSize();
    sizes[count++] = size_of(b, wide_value(s), d);
  }
  return o3_build1(b, "tensor.empty", o3_tensor_type(s->num_loops, dims, element), count, sizes);
}

/* Operand |i| with the dimensions that its loops become. */
static MlirValue split_value(const split_t *s, o3_builder_t *b, int i) {
  MlirValue value = mlirOperationGetOperand(s->generic.op, i), operands[O3_IR_MAX_RANK + 1] = {value};
  MlirAffineMap map = s->generic.maps[i];
  MlirType old = mlirValueGetType(value), wide = mlirValueGetType(wide_value(s));
  int64_t dims[O3_IR_MAX_RANK];
  MlirAttribute groups[O3_IR_MAX_RANK], places[O3_IR_MAX_RANK];
  int rank = 0, count = 1, old_rank = (int)mlirAffineMapGetNumResults(map);
  if (mlirOperationEqual(o3_value_def(value), s->collapse)) return wide_value(s);
  for (int r = 0; r < old_rank; ++r) {
    int loop = o3_dep_loop(map, r), parts = loop < 0 ? 1 : s->size[loop];
    for (int k = 0; k < parts; ++k, ++rank) {
      places[k] = o3_attr_i64(b->context, rank);
      dims[rank] = parts == 1 ? o3_type_dim(old, r) : o3_type_dim(wide, s->first[loop] + k);
      if (dims[rank] >= 0) continue;
      dims[rank] = mlirShapedTypeGetDynamicSize();
      operands[count++] = parts == 1 ? size_of(b, value, r) : size_of(b, wide_value(s), s->first[loop] + k);
    }
    groups[r] = mlirArrayAttrGet(b->context, parts, places);
  }
  if (rank == old_rank) return value;
  return o3_build1_attrs(b, "tensor.expand_shape", o3_tensor_type(rank, dims, o3_type_element(old)), count,
                         operands,
                         O3_ATTRS({"reassociation", mlirArrayAttrGet(b->context, old_rank, groups)},
                                  {"static_output_shape", o3_attr_ints(b->context, rank, dims)}));
}

static MlirAttribute parallel_loops(MlirContext context, int count) {
  MlirAttribute items[O3_IR_MAX_RANK];
  for (int i = 0; i < count; ++i) items[i] = o3_attr_parse(context, "#linalg.iterator_type<parallel>");
  return mlirArrayAttrGet(context, count, items);
}

static o3_status_t move(mover_t *self, split_t *s) {
  MlirOperation op = s->generic.op;
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  o3_builder_t b = o3_builder_before(op);
  o3_rebuild_t r = {.like = &s->generic, .num_inputs = s->generic.num_inputs};
  for (int i = 0; i < r.num_inputs; ++i) {
    r.maps[i] = split_map(s, b.context, s->generic.maps[i]);
    r.inputs[i] = split_value(s, &b, i);
  }
  r.out = split_empty(s, &b, o3_type_element(type));
  r.out_map = split_map(s, b.context, o3_dep_result_map(&s->generic));
  MlirValue args[O3_DEP_MAX_OPERANDS], value;
  O3_TRY(o3_rebuild_begin(&r, self->arena));
  for (int i = 0; i <= r.num_inputs; ++i) args[i] = mlirBlockGetArgument(r.block, i);
  O3_TRY(o3_rebuild_clone(&r, s->generic.body, args, NULL, &value));
  MlirOperation made = o3_rebuild_build(&r, value, parallel_loops(b.context, s->num_loops));
  MlirValue joined =
      o3_build1_attrs(&b, "tensor.collapse_shape", type, O3_VALUES(mlirOperationGetResult(made, 0)),
                      O3_ATTRS({"reassociation", o3_op_attr(s->collapse, "reassociation")}));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), joined);
  mlirOperationDestroy(op);
  mlirOperationDestroy(s->collapse);
  return o3_ptr_map_put(self->products, made.ptr, made.ptr)
             ? NULL
             : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* What |value| is another shape or a part of. */
static MlirValue before_views(MlirValue value) {
  static const char *const VIEWS[] = {"tensor.expand_shape", "tensor.collapse_shape", "tensor.extract_slice"};
  MlirOperation def = o3_value_def(value);
  for (int i = 0; i < 3 && !mlirOperationIsNull(def); ++i) {
    if (o3_op_is(def, VIEWS[i])) return before_views(mlirOperationGetOperand(def, 0));
  }
  return value;
}

/* Puts the elements of a product into another order or a narrower type, and nothing else. */
static bool copies_product(const mover_t *self, const o3_dep_generic_t *generic) {
  if (o3_dep_generic_kind(generic) != O3_DEP_MAP || generic->num_inputs != 1) return false;
  MlirValue value = mlirOperationGetOperand(mlirBlockGetTerminator(generic->body), 0);
  MlirOperation def = o3_value_def(value);
  if (!mlirOperationIsNull(def) && o3_op_is(def, "arith.truncf")) value = mlirOperationGetOperand(def, 0);
  return mlirValueEqual(value, mlirBlockGetArgument(generic->body, 0)) &&
         is_product(self, before_views(mlirOperationGetOperand(generic->op, 0)));
}

static o3_status_t visit(mover_t *self, MlirOperation op) {
  split_t split;
  if (read_split(self, op, &split)) return move(self, &split);
  if (!o3_dep_generic_read(op, &split.generic)) return NULL;
  bool follows =
      o3_dep_generic_kind(&split.generic) == O3_DEP_CONTRACTION || copies_product(self, &split.generic);
  if (!follows) return NULL;
  return o3_ptr_map_put(self->products, op.ptr, op.ptr)
             ? NULL
             : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

o3_status_t o3_fuse_move_collapses(o3_arena_t *arena, MlirBlock block) {
  mover_t self = {arena, o3_ptr_map_create(arena)};
  O3_TRY_ALLOC(self.products);
  MlirOperation op = mlirBlockGetFirstOperation(block);
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    O3_TRY(visit(&self, op));
    op = next;
  }
  return NULL;
}
