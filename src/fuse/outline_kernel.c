/* What is free comes along, whoever else reads it: constants of one value, fills, and reshapes and slices of
 * values from outside, which are only other ways to look at memory. */
#include "fuse/outline_kernel.h"

#include <stdio.h>
#include <string.h>

#include "fuse/fold_transposes.h"
#include "fuse/merge.h"
#include "ir/build.h"

typedef struct outliner {
  const o3_groups_t *groups;
  const o3_group_t *group;
  MlirModule module;
  bool *taken;            /* for each node: is in the kernel */
  o3_ptr_vec_t captures;  /* MlirValue.ptr */
  o3_ptr_vec_t constants; /* MlirOperation.ptr, of blocks around the group's */
  o3_ptr_map_t *values;   /* MlirValue.ptr outside -> inside */
} outliner_t;

static o3_status_t no_memory(bool ok) {
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* ---- What the kernel needs ---- */

static bool is_small_constant(MlirOperation op) {
  MlirAttribute value = o3_op_attr(op, "value");
  return !mlirAttributeIsAElements(value) ||
         (mlirAttributeIsADenseElements(value) && mlirDenseElementsAttrIsSplat(value));
}

/* A reshape of a slice is a copy when the slice has gaps. */
static bool is_free_view(const outliner_t *self, const o3_dep_node_t *node) {
  const o3_dep_node_t *source = o3_dep_producer(self->groups->graph, mlirOperationGetOperand(node->op, 0));
  return !source || source->kind != O3_DEP_SLICE;
}

static bool comes_along(const outliner_t *self, const o3_dep_node_t *node) {
  switch (node->kind) {
    case O3_DEP_FILL:
      return mlirAttributeIsNull(o3_op_attr(node->op, O3_FILLED_OPERAND));
    case O3_DEP_EMPTY:
      return true;
    case O3_DEP_CONSTANT:
      return is_small_constant(node->op);
    case O3_DEP_VIEW:
    case O3_DEP_SLICE:
      return is_free_view(self, node);
    default:
      return false;
  }
}

static o3_status_t need_operands(MlirOperation op, void *context);

/* What a loop has before it is a constant in it, too. */
static bool is_outer_constant(const o3_dep_node_t *node, MlirOperation def) {
  return !node && !mlirOperationIsNull(def) && o3_op_is(def, "arith.constant") && is_small_constant(def);
}

static o3_status_t need(outliner_t *self, MlirValue value) {
  const o3_dep_graph_t *graph = self->groups->graph;
  o3_dep_node_t *node = o3_dep_producer(graph, value);
  if (node && self->taken[node->index]) return NULL;
  if (node && comes_along(self, node)) {
    self->taken[node->index] = true;
    O3_TRY(need_operands(node->op, self));
    return o3_walk(node->op, need_operands, self);
  }
  bool inside =
      !node && o3_dep_node_of(graph, mlirValueIsABlockArgument(value)
                                         ? mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value))
                                         : mlirOpResultGetOwner(value));
  if (inside || o3_ptr_map_get(self->values, value.ptr)) return NULL;
  MlirOperation def = o3_value_def(value);
  if (is_outer_constant(node, def))
    return no_memory(o3_ptr_map_put(self->values, value.ptr, self) &&
                     o3_ptr_vec_push(&self->constants, def.ptr));
  return no_memory(o3_ptr_map_put(self->values, value.ptr, self) &&
                   o3_ptr_vec_push(&self->captures, (void *)(uintptr_t)value.ptr));
}

static o3_status_t need_operands(MlirOperation op, void *context) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
    O3_TRY(need(context, mlirOperationGetOperand(op, i)));
  return NULL;
}

static o3_status_t find_needs(outliner_t *self) {
  for (size_t i = 0; i < self->group->members.count; ++i) {
    const o3_dep_node_t *node = self->group->members.items[i];
    self->taken[node->index] = true;
  }
  for (size_t i = 0; i < self->group->members.count; ++i) {
    const o3_dep_node_t *node = self->group->members.items[i];
    O3_TRY(need_operands(node->op, self));
    O3_TRY(o3_walk(node->op, need_operands, self));
  }
  return NULL;
}

/* ---- The function ---- */

static o3_status_t use_inner_values(MlirOperation op, void *context) {
  const outliner_t *self = context;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    const void *to = o3_ptr_map_get(self->values, mlirOperationGetOperand(op, i).ptr);
    if (to) mlirOperationSetOperand(op, i, (MlirValue){to});
  }
  return NULL;
}

static o3_status_t clone_into(outliner_t *self, MlirBlock block, MlirOperation op) {
  MlirOperation copy = mlirOperationClone(op);
  mlirBlockAppendOwnedOperation(block, copy);
  O3_TRY(use_inner_values(copy, self));
  O3_TRY(o3_walk(copy, use_inner_values, self));
  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); ++r) {
    void *to = (void *)(uintptr_t)mlirOperationGetResult(copy, r).ptr;
    O3_TRY(no_memory(o3_ptr_map_put(self->values, mlirOperationGetResult(op, r).ptr, to)));
  }
  return NULL;
}

/* The op that names the kernel: the product, or else the last. */
static MlirOperation main_op(const o3_group_t *group) {
  for (size_t i = 0; i < group->members.count; ++i) {
    const o3_dep_node_t *node = group->members.items[i];
    if (node->kind == O3_DEP_CONTRACTION) return node->op;
  }
  return group->root->op;
}

static const char *kernel_name(const outliner_t *self, int index) {
  MlirStringRef label = o3_op_label(main_op(self->group));
  char *name =
      o3_arena_printf(self->groups->arena, "k%d_%s_%.*s", index, o3_group_kind_name(self->group->kind),
                      label.length < 64 ? (int)label.length : 64, label.data);
  for (char *c = name; c && *c; ++c) {
    bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (!plain) *c = '_';
  }
  return name;
}

/* What is in the kernel, and why: the members, and the transpositions that they do. */
typedef struct notes {
  int count;
  MlirAttribute *names, *reasons;
} notes_t;

static void add_note(notes_t *notes, MlirAttribute name, MlirAttribute reason) {
  notes->names[notes->count] = name;
  notes->reasons[notes->count++] = reason;
}

static intptr_t count_names(MlirOperation op, const char *attr) {
  MlirAttribute names = o3_op_attr(op, attr);
  return mlirAttributeIsNull(names) ? 0 : mlirArrayAttrGetNumElements(names);
}

static void add_names(notes_t *notes, MlirOperation op, const char *attr, const char *reason) {
  MlirAttribute names = o3_op_attr(op, attr), text = o3_attr_string(mlirOperationGetContext(op), reason);
  for (intptr_t i = 0; i < count_names(op, attr); ++i)
    add_note(notes, mlirArrayAttrGetElement(names, i), text);
}

static o3_status_t list_notes(const outliner_t *self, notes_t *notes) {
  MlirContext context = mlirModuleGetContext(self->module);
  const o3_ptr_vec_t *members = &self->group->members;
  size_t count = members->count;
  for (size_t i = 0; i < members->count; ++i) {
    MlirOperation op = ((const o3_dep_node_t *)members->items[i])->op;
    count += (size_t)(count_names(op, O3_READS_TRANSPOSED) + count_names(op, O3_WRITES_TRANSPOSED));
  }
  *notes = (notes_t){.names = O3_ARENA_ARRAY(self->groups->arena, MlirAttribute, count + 1),
                     .reasons = O3_ARENA_ARRAY(self->groups->arena, MlirAttribute, count + 1)};
  O3_TRY_ALLOC(notes->names);
  O3_TRY_ALLOC(notes->reasons);
  for (size_t i = 0; i < members->count; ++i) {
    MlirOperation op = ((const o3_dep_node_t *)members->items[i])->op;
    add_names(notes, op, O3_READS_TRANSPOSED, "the product reads through its order of dimensions");
    add_note(notes, mlirStringAttrGet(context, o3_op_label(op)),
             o3_attr_string(context, self->group->reasons.items[i]));
    add_names(notes, op, O3_WRITES_TRANSPOSED, "the product writes in its order of dimensions");
  }
  return NULL;
}

static MlirAttribute row_dims(const outliner_t *self) {
  int64_t rows[O3_IR_MAX_RANK];
  for (int i = 0; i < self->group->num_rows; ++i) rows[i] = self->group->rows[i];
  bool has_rows = self->group->kind == O3_GROUP_ROWS;
  return has_rows ? o3_attr_ints(mlirModuleGetContext(self->module), self->group->num_rows, rows)
                  : mlirAttributeGetNull();
}

static o3_status_t build_function(const outliner_t *self, const char *name, MlirType type, MlirBlock body) {
  MlirContext context = mlirModuleGetContext(self->module);
  notes_t notes;
  O3_TRY(list_notes(self, &notes));
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, body);
  o3_builder_t b =
      o3_builder_at_end(mlirModuleGetBody(self->module), mlirOperationGetLocation(main_op(self->group)));
  o3_op_spec_t spec = {
      .name = "func.func",
      .num_attrs = 8,
      .attrs = (o3_attr_t[]){{"sym_name", o3_attr_string(context, name)},
                             {"sym_visibility", o3_attr_string(context, "private")},
                             {"function_type", o3_attr_type(type)},
                             {O3_KERNEL_KIND, o3_attr_string(context, o3_group_kind_name(self->group->kind))},
                             {O3_KERNEL_NODES, mlirArrayAttrGet(context, notes.count, notes.names)},
                             {O3_KERNEL_REASONS, mlirArrayAttrGet(context, notes.count, notes.reasons)},
                             {O3_KERNEL_STOP, o3_attr_string(context, self->group->stop)},
                             {O3_KERNEL_ROWS, row_dims(self)}},
      .num_regions = 1,
      .regions = &region};
  o3_build(&b, &spec);
  return NULL;
}

static o3_status_t fill_body(outliner_t *self, MlirBlock body) {
  o3_arena_t *arena = self->groups->arena;
  const o3_dep_node_t *root = self->group->root;
  size_t count = self->captures.count;
  for (size_t i = 0; i < count; ++i) {
    void *to = (void *)(uintptr_t)mlirBlockGetArgument(body, (intptr_t)i).ptr;
    O3_TRY(no_memory(o3_ptr_map_put(self->values, self->captures.items[i], to)));
  }
  for (size_t i = 0; i < self->constants.count; ++i)
    O3_TRY(clone_into(self, body, (MlirOperation){self->constants.items[i]}));
  for (int i = 0; i <= root->index; ++i) {
    if (self->taken[i]) O3_TRY(clone_into(self, body, self->groups->graph->nodes[i].op));
  }
  MlirValue result = {o3_ptr_map_get(self->values, mlirOperationGetResult(root->op, 0).ptr)};
  o3_builder_t b = o3_builder_at_end(body, mlirOperationGetLocation(root->op));
  MlirOperation end = o3_build0(&b, "func.return", 1, &result);
  O3_TRY(o3_fuse_merge(arena, body));
  return o3_fuse_place(arena, mlirOperationGetOperand(end, 0), mlirBlockGetArgument(body, (intptr_t)count));
}

/* ---- The call ---- */

/* The tensor that the result is written into; its sizes are found where the ops' own initial value has them.
 */
static MlirValue build_empty(const outliner_t *self, o3_builder_t *b) {
  const o3_dep_node_t *node = self->group->root;
  MlirValue like = {0}, sizes[O3_IR_MAX_RANK];
  MlirType type = mlirValueGetType(mlirOperationGetResult(node->op, 0));
  int count = 0;
  while (node && node->generic) {
    like = mlirOperationGetOperand(node->op, node->generic->num_inputs);
    node = o3_dep_producer(self->groups->graph, like);
  }
  bool is_empty = node && node->kind == O3_DEP_EMPTY;
  for (int d = 0; d < o3_type_rank(type); ++d) {
    if (o3_type_dim(type, d) >= 0) continue;
    sizes[count] =
        is_empty ? mlirOperationGetOperand(node->op, count)
                 : o3_build1(b, "tensor.dim", o3_build_index_type(b), O3_VALUES(like, o3_build_index(b, d)));
    ++count;
  }
  return o3_build1(b, "tensor.empty", type, count, sizes);
}

static o3_status_t replace_by_call(outliner_t *self, const char *name) {
  MlirOperation root = self->group->root->op;
  o3_builder_t b = o3_builder_before(root);
  size_t count = self->captures.count;
  MlirValue *operands = O3_ARENA_ARRAY(self->groups->arena, MlirValue, count + 1);
  O3_TRY_ALLOC(operands);
  for (size_t i = 0; i < count; ++i) operands[i].ptr = self->captures.items[i];
  operands[count] = build_empty(self, &b);
  MlirAttribute callee = mlirFlatSymbolRefAttrGet(b.context, O3_STR(name));
  MlirValue result = o3_build1_attrs(&b, "func.call", mlirValueGetType(operands[count]), (int)count + 1,
                                     operands, O3_ATTRS({"callee", callee}));
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(root, 0), result);
  return NULL;
}

static MlirType argument_types(const outliner_t *self, MlirType *types, MlirLocation *locations) {
  MlirContext context = mlirModuleGetContext(self->module);
  size_t count = self->captures.count;
  MlirType result = mlirValueGetType(mlirOperationGetResult(self->group->root->op, 0));
  for (size_t i = 0; i <= count; ++i) {
    types[i] = i < count ? mlirValueGetType((MlirValue){self->captures.items[i]}) : result;
    locations[i] = mlirOperationGetLocation(self->group->root->op);
  }
  return mlirFunctionTypeGet(context, (intptr_t)count + 1, types, 1, &result);
}

o3_status_t o3_fuse_outline(const o3_groups_t *groups, const o3_group_t *group, int index,
                            MlirModule module) {
  o3_arena_t *arena = groups->arena;
  outliner_t self = {.groups = groups,
                     .group = group,
                     .module = module,
                     .taken = O3_ARENA_ARRAY(arena, bool, (size_t)groups->graph->count + 1),
                     .captures = o3_ptr_vec(arena),
                     .constants = o3_ptr_vec(arena),
                     .values = o3_ptr_map_create(arena)};
  O3_TRY_ALLOC(self.taken);
  O3_TRY_ALLOC(self.values);
  O3_TRY(find_needs(&self));
  MlirType *types = O3_ARENA_ARRAY(arena, MlirType, self.captures.count + 1);
  MlirLocation *locations = O3_ARENA_ARRAY(arena, MlirLocation, self.captures.count + 1);
  const char *name = kernel_name(&self, index);
  O3_TRY_ALLOC(types);
  O3_TRY_ALLOC(locations);
  O3_TRY_ALLOC(name);
  MlirType type = argument_types(&self, types, locations);
  MlirBlock body = mlirBlockCreate((intptr_t)self.captures.count + 1, types, locations);
  O3_TRY(build_function(&self, name, type, body));
  O3_TRY(fill_body(&self, body));
  return replace_by_call(&self, name);
}
