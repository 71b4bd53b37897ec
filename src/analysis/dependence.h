/* Dependence graph of the tensor ops in a block: who makes what, who reads it, and through which maps.
 *
 *     o3_dep_graph_t *graph;
 *     O3_TRY(o3_dep_graph_create(arena, block, &graph));
 *     for (int i = 0; i < graph->count; ++i)
 *       if (graph->nodes[i].kind == O3_DEP_CONTRACTION) ...
 *
 * Nodes are the ops of the block itself, in program order; what happens inside an op's regions counts as done
 * by the op. The graph holds while the block is not changed.
 */
#ifndef O3_ANALYSIS_DEPENDENCE_H
#define O3_ANALYSIS_DEPENDENCE_H

#include "base/arena.h"
#include "base/map.h"
#include "ir/ir.h"

enum { O3_DEP_MAX_OPERANDS = 64 };

typedef enum o3_dep_kind {
  O3_DEP_MAP,         /* linalg.generic, one result, all loops parallel, the result's old value is not read */
  O3_DEP_FILL,        /* a map that yields one scalar from outside everywhere */
  O3_DEP_REDUCTION,   /* linalg.generic with reduction loops */
  O3_DEP_CONTRACTION, /* the same, of two inputs: both walk a parallel loop of their own, as in an outer
                         product, or the first is read through a window, as in a depthwise convolution */
  O3_DEP_VIEW,        /* reshapes: the same elements in the same order */
  O3_DEP_SLICE,       /* tensor.extract_slice */
  O3_DEP_EMPTY,       /* tensor.empty */
  O3_DEP_CONSTANT,    /* arith.constant, scalar or tensor */
  O3_DEP_OTHER
} o3_dep_kind_t;

/* A linalg.generic on tensors with one result. */
typedef struct o3_dep_generic {
  MlirOperation op;
  int num_dims, num_inputs, num_operands;  /* operands: inputs, then the result's initial value */
  bool reduction[O3_IR_MAX_RANK];          /* for each loop */
  MlirAffineMap maps[O3_DEP_MAX_OPERANDS]; /* from loops to the operand's positions */
  MlirBlock body;
} o3_dep_generic_t;

typedef struct o3_dep_node {
  MlirOperation op;
  int index; /* in program order */
  o3_dep_kind_t kind;
  o3_dep_generic_t *generic;  /* NULL for other ops, and for generics that are of kind OTHER, those
                                of tensors without elements among them */
  bool captured;              /* some op reads a result in a region of its own */
  int num_users;              /* distinct ops of the block that read its results, the terminator among them */
  struct o3_dep_node **users; /* in program order */
} o3_dep_node_t;

typedef struct o3_dep_graph {
  MlirBlock block;
  int count;
  o3_dep_node_t *nodes;
  o3_ptr_map_t *by_op;
} o3_dep_graph_t;

/* The graph lives in |arena|. */
o3_status_t o3_dep_graph_create(o3_arena_t *arena, MlirBlock block, o3_dep_graph_t **graph) O3_MUST_USE;

/* The node that is |op| or holds it in a region; NULL when it lies outside the block. */
o3_dep_node_t *o3_dep_node_of(const o3_dep_graph_t *graph, MlirOperation op);
/* The node that makes |value|; NULL for arguments and values from outside the block. */
o3_dep_node_t *o3_dep_producer(const o3_dep_graph_t *graph, MlirValue value);

/* Reads |op|; false when it is no linalg.generic on tensors with one result whose map is made of distinct
 * loops. */
bool o3_dep_generic_read(MlirOperation op, o3_dep_generic_t *generic);
o3_dep_kind_t o3_dep_generic_kind(const o3_dep_generic_t *generic);
/* Whether |op| of a body is not to be computed for an element more than once: functions, quotients, reads of
 * tensors and ops with regions. */
bool o3_dep_is_expensive(MlirOperation op);
/* The map of the result. */
MlirAffineMap o3_dep_result_map(const o3_dep_generic_t *generic);

/* The position in |map| that is loop |dim| alone, while no other position depends on it; -1 without one. */
int o3_dep_position(MlirAffineMap map, int dim);
/* The loop that position |position| of |map| is; -1 when it is an expression or a constant. */
int o3_dep_loop(MlirAffineMap map, int position);
/* Whether some position of |map| depends on loop |dim|. */
bool o3_dep_uses(MlirAffineMap map, int dim);

/* The producer's element that the consumer's iteration reads through |operand|: a map from the consumer's
 * loops to the producer's. False when the producer has loops that its result does not tell (reductions). */
bool o3_dep_compose(const o3_dep_generic_t *producer, const o3_dep_generic_t *consumer, int operand,
                    MlirAffineMap *map);

#endif
