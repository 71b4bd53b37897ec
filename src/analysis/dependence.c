#include "analysis/dependence.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* ---- Maps ---- */

int o3_dep_loop(MlirAffineMap map, int position) {
  MlirAffineExpr expr = mlirAffineMapGetResult(map, position);
  return mlirAffineExprIsADim(expr) ? (int)mlirAffineDimExprGetPosition(expr) : -1;
}

int o3_dep_position(MlirAffineMap map, int dim) {
  int found = -1;
  for (int i = 0; i < (int)mlirAffineMapGetNumResults(map); ++i) {
    if (!mlirAffineExprIsFunctionOfDim(mlirAffineMapGetResult(map, i), dim)) continue;
    if (found >= 0 || o3_dep_loop(map, i) != dim) return -1;
    found = i;
  }
  return found;
}

bool o3_dep_uses(MlirAffineMap map, int dim) {
  for (int i = 0; i < (int)mlirAffineMapGetNumResults(map); ++i) {
    if (mlirAffineExprIsFunctionOfDim(mlirAffineMapGetResult(map, i), dim)) return true;
  }
  return false;
}

MlirAffineMap o3_dep_result_map(const o3_dep_generic_t *generic) {
  return generic->maps[generic->num_operands - 1];
}

bool o3_dep_compose(const o3_dep_generic_t *producer, const o3_dep_generic_t *consumer, int operand,
                    MlirAffineMap *map) {
  MlirAffineMap result = o3_dep_result_map(producer);
  MlirAffineExpr loops[O3_IR_MAX_RANK];
  for (int d = 0; d < producer->num_dims; ++d) {
    int position = o3_dep_position(result, d);
    if (position < 0) return false;
    loops[d] = mlirAffineMapGetResult(consumer->maps[operand], position);
  }
  MlirContext context = mlirOperationGetContext(consumer->op);
  *map = mlirAffineMapGet(context, consumer->num_dims, 0, producer->num_dims, loops);
  return true;
}

/* ---- Generics ---- */

static bool is_reduction(MlirAttribute iterator) {
  char *text = o3_attr_text(iterator);
  bool result = text && strstr(text, "reduction") != NULL;
  free(text);
  return result;
}

static bool is_plain_result(const o3_dep_generic_t *generic) {
  MlirAffineMap map = o3_dep_result_map(generic);
  for (int i = 0; i < (int)mlirAffineMapGetNumResults(map); ++i) {
    int loop = o3_dep_loop(map, i);
    if (loop < 0 || o3_dep_position(map, loop) != i || generic->reduction[loop]) return false;
  }
  return true;
}

bool o3_dep_generic_read(MlirOperation op, o3_dep_generic_t *generic) {
  if (!o3_op_is(op, "linalg.generic") || mlirOperationGetNumResults(op) != 1) return false;
  MlirAttribute maps = o3_op_attr(op, "indexing_maps"), iterators = o3_op_attr(op, "iterator_types");
  *generic = (o3_dep_generic_t){.op = op,
                                .num_dims = (int)mlirArrayAttrGetNumElements(iterators),
                                .num_operands = (int)mlirOperationGetNumOperands(op),
                                .body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0))};
  generic->num_inputs = generic->num_operands - 1;
  if (generic->num_dims > O3_IR_MAX_RANK || generic->num_operands > O3_DEP_MAX_OPERANDS) return false;
  for (int d = 0; d < generic->num_dims; ++d)
    generic->reduction[d] = is_reduction(mlirArrayAttrGetElement(iterators, d));
  for (int i = 0; i < generic->num_operands; ++i)
    generic->maps[i] = mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(maps, i));
  return is_plain_result(generic);
}

/* Yields a scalar from outside. */
static bool is_fill(const o3_dep_generic_t *generic) {
  MlirOperation first = mlirBlockGetFirstOperation(generic->body);
  return generic->num_inputs == 0 && mlirOperationEqual(first, mlirBlockGetTerminator(generic->body));
}

static bool is_reduced(const o3_dep_generic_t *generic, int input) {
  for (int d = 0; d < generic->num_dims; ++d) {
    if (generic->reduction[d] && o3_dep_uses(generic->maps[input], d)) return true;
  }
  return false;
}

/* Whether input |i| walks a parallel loop that input |k| does not. */
static bool has_own_loop(const o3_dep_generic_t *generic, int i, int k) {
  for (int d = 0; d < generic->num_dims; ++d) {
    if (!generic->reduction[d] && o3_dep_uses(generic->maps[i], d) && !o3_dep_uses(generic->maps[k], d))
      return true;
  }
  return false;
}

/* Whether one position of an input moves with a parallel loop and with a reduction. */
static bool has_window(const o3_dep_generic_t *generic, int input) {
  MlirAffineMap map = generic->maps[input];
  for (int i = 0; i < (int)mlirAffineMapGetNumResults(map); ++i) {
    MlirAffineExpr expr = mlirAffineMapGetResult(map, i);
    bool used[2] = {false, false};
    for (int d = 0; d < generic->num_dims; ++d)
      used[generic->reduction[d]] |= mlirAffineExprIsFunctionOfDim(expr, d);
    if (used[0] && used[1]) return true;
  }
  return false;
}

static bool is_contraction(const o3_dep_generic_t *generic) {
  if (generic->num_inputs != 2 || !is_reduced(generic, 0) || !is_reduced(generic, 1)) return false;
  bool outer = has_own_loop(generic, 0, 1) && has_own_loop(generic, 1, 0);
  return outer || has_window(generic, 0);
}

/* Its body loops over what it sums: it is a product all the same. */
static bool is_sparse_product(const o3_dep_generic_t *generic) {
  return o3_str_equal(o3_op_string(generic->op, "o3.kernel"), "sparse");
}

bool o3_dep_is_expensive(MlirOperation op) {
  static const char *const DIALECTS[] = {"math", "tensor"};
  static const char *const OPS[] = {"arith.divf", "arith.divsi", "arith.divui"};
  for (size_t i = 0; i < sizeof(DIALECTS) / sizeof(DIALECTS[0]); ++i) {
    if (o3_op_is_of(op, DIALECTS[i])) return true;
  }
  return o3_op_is_one_of(op, OPS, sizeof(OPS) / sizeof(OPS[0])) || mlirOperationGetNumRegions(op) > 0;
}

o3_dep_kind_t o3_dep_generic_kind(const o3_dep_generic_t *generic) {
  bool reduces = false;
  if (is_sparse_product(generic)) return O3_DEP_CONTRACTION;
  for (int d = 0; d < generic->num_dims; ++d) reduces |= generic->reduction[d];
  if (reduces) return is_contraction(generic) ? O3_DEP_CONTRACTION : O3_DEP_REDUCTION;
  MlirValue old = mlirBlockGetArgument(generic->body, generic->num_inputs);
  bool reads_old = !mlirOpOperandIsNull(mlirValueGetFirstUse(old));
  if (reads_old || (int)mlirAffineMapGetNumResults(o3_dep_result_map(generic)) != generic->num_dims)
    return O3_DEP_OTHER;
  return is_fill(generic) ? O3_DEP_FILL : O3_DEP_MAP;
}

/* ---- Nodes ---- */

static const struct {
  const char *op;
  o3_dep_kind_t kind;
} KINDS[] = {
    {"tensor.expand_shape", O3_DEP_VIEW}, {"tensor.collapse_shape", O3_DEP_VIEW},
    {"tensor.cast", O3_DEP_VIEW},         {"tensor.extract_slice", O3_DEP_SLICE},
    {"tensor.empty", O3_DEP_EMPTY},       {"arith.constant", O3_DEP_CONSTANT},
};

/* An op without iterations; simplifications take it away at any time. */
static bool has_nothing_to_do(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirType type = mlirValueGetType(mlirOperationGetOperand(op, i));
    for (int r = 0; mlirTypeIsARankedTensor(type) && r < o3_type_rank(type); ++r) {
      if (o3_type_dim(type, r) == 0) return true;
    }
  }
  return false;
}

static o3_status_t read_node(o3_arena_t *arena, o3_dep_node_t *node) {
  node->kind = O3_DEP_OTHER;
  for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); ++i) {
    if (o3_op_is(node->op, KINDS[i].op)) node->kind = KINDS[i].kind;
  }
  o3_dep_generic_t generic;
  if (!o3_dep_generic_read(node->op, &generic) || has_nothing_to_do(node->op)) return NULL;
  node->kind = o3_dep_generic_kind(&generic);
  if (node->kind == O3_DEP_OTHER) return NULL;
  node->generic = O3_ARENA_NEW(arena, o3_dep_generic_t);
  O3_TRY_ALLOC(node->generic);
  *node->generic = generic;
  return NULL;
}

static int compare_nodes(const void *a, const void *b) {
  const o3_dep_node_t *x = *(o3_dep_node_t *const *)a, *y = *(o3_dep_node_t *const *)b;
  return x->index - y->index;
}

static int count_uses(MlirOperation op) {
  int count = 0;
  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); ++r) {
    MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, r));
    for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) ++count;
  }
  return count;
}

static o3_status_t read_users(o3_arena_t *arena, const o3_dep_graph_t *graph, o3_dep_node_t *node) {
  int count = 0;
  node->users = O3_ARENA_ARRAY(arena, o3_dep_node_t *, (size_t)count_uses(node->op) + 1);
  O3_TRY_ALLOC(node->users);
  for (intptr_t r = 0; r < mlirOperationGetNumResults(node->op); ++r) {
    MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(node->op, r));
    for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
      node->users[count] = o3_dep_node_of(graph, mlirOpOperandGetOwner(use));
      node->captured |= !mlirBlockEqual(mlirOperationGetBlock(mlirOpOperandGetOwner(use)), graph->block);
      O3_ASSERT(node->users[count], "uses lie in the block of the value or deeper");
      ++count;
    }
  }
  qsort(node->users, (size_t)count, sizeof(*node->users), compare_nodes);
  for (int i = 0; i < count; ++i) {
    if (i == 0 || node->users[i] != node->users[i - 1]) node->users[node->num_users++] = node->users[i];
  }
  return NULL;
}

static o3_status_t add_nodes(o3_arena_t *arena, o3_dep_graph_t *graph) {
  MlirOperation op = mlirBlockGetFirstOperation(graph->block);
  for (int i = 0; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op), ++i) {
    graph->nodes[i] = (o3_dep_node_t){.op = op, .index = i};
    if (!o3_ptr_map_put(graph->by_op, op.ptr, &graph->nodes[i]))
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
    O3_TRY(read_node(arena, &graph->nodes[i]));
  }
  for (int i = 0; i < graph->count; ++i) O3_TRY(read_users(arena, graph, &graph->nodes[i]));
  return NULL;
}

o3_status_t o3_dep_graph_create(o3_arena_t *arena, MlirBlock block, o3_dep_graph_t **result) {
  o3_dep_graph_t *graph = O3_ARENA_NEW(arena, o3_dep_graph_t);
  *result = NULL;
  O3_TRY_ALLOC(graph);
  graph->block = block;
  MlirOperation op = mlirBlockGetFirstOperation(block);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) ++graph->count;
  graph->nodes = O3_ARENA_ARRAY(arena, o3_dep_node_t, (size_t)graph->count + 1);
  graph->by_op = o3_ptr_map_create(arena);
  O3_TRY_ALLOC(graph->nodes);
  O3_TRY_ALLOC(graph->by_op);
  O3_TRY(add_nodes(arena, graph));
  *result = graph;
  return NULL;
}

o3_dep_node_t *o3_dep_node_of(const o3_dep_graph_t *graph, MlirOperation op) {
  for (; !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op)) {
    o3_dep_node_t *node = o3_ptr_map_get(graph->by_op, op.ptr);
    if (node) return node;
  }
  return NULL;
}

o3_dep_node_t *o3_dep_producer(const o3_dep_graph_t *graph, MlirValue value) {
  MlirOperation def = o3_value_def(value);
  return mlirOperationIsNull(def) ? NULL : o3_ptr_map_get(graph->by_op, def.ptr);
}
