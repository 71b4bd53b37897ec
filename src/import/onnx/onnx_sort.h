/* The order of nodes and the names that they read. */
#ifndef O3_IMPORT_ONNX_ONNX_SORT_H
#define O3_IMPORT_ONNX_ONNX_SORT_H

#include "import/onnx/onnx_scope.h"

/* Adds the names that the graphs in |node|'s attributes read from around them. */
o3_status_t o3_onnx_node_captures(o3_arena_t *arena, const Onnx__NodeProto *node, o3_onnx_names_t *names)
    O3_MUST_USE;

/* |order|: indices of the |count| nodes, |count| in number, each after those whose results it reads; nodes
 * that are in order already stay. INVALID_MODEL names a cycle by |labels|. */
o3_status_t o3_onnx_sort(o3_arena_t *arena, Onnx__NodeProto *const *nodes, size_t count,
                         const char *const *labels, size_t *order) O3_MUST_USE;

#endif
