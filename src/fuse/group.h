/* Groups: which ops of a block become one kernel, and why. Legality is read from the access maps. */
#ifndef O3_FUSE_GROUP_H
#define O3_FUSE_GROUP_H

#include "analysis/dependence.h"
#include "ir/pass.h"

typedef enum o3_group_kind {
#define O3_GROUP_KIND(id, name) O3_GROUP_##id,
#include "fuse/group_kinds.def"
#undef O3_GROUP_KIND
} o3_group_kind_t;

typedef struct o3_group {
  o3_group_kind_t kind;
  o3_dep_node_t *root;  /* the last op; its result is the only one that leaves the group */
  o3_ptr_vec_t members; /* o3_dep_node_t *, in program order */
  o3_ptr_vec_t reasons; /* const char *: why each member is here */
  const char *stop;     /* why the op that reads the result is not, or why there is none */
  int num_rows;         /* of a ROWS group: the dimensions of the root's result that count the rows */
  int rows[O3_IR_MAX_RANK];
} o3_group_t;

typedef struct o3_groups {
  o3_arena_t *arena;
  const o3_dep_graph_t *graph;
  const o3_machine_t *machine;
  bool one_node;
  o3_group_t **owner; /* for each node; NULL: none */
  o3_ptr_vec_t list;  /* o3_group_t * */
} o3_groups_t;

/* "contraction", ... */
const char *o3_group_kind_name(o3_group_kind_t kind);

/* Groups the ops of the graph's block; all of it lives in |arena|. With |one_node| only ops that come from
 * one node of the model file are joined (and what a product's sums start at). */
o3_status_t o3_groups_create(o3_arena_t *arena, const o3_dep_graph_t *graph, const o3_machine_t *machine,
                             bool one_node, o3_groups_t **groups) O3_MUST_USE;

#endif
