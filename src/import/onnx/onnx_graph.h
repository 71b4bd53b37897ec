/* Graphs, nodes, attributes and function calls of the import stage's module. */
#ifndef O3_IMPORT_ONNX_ONNX_GRAPH_H
#define O3_IMPORT_ONNX_ONNX_GRAPH_H

#include "import/onnx/onnx_scope.h"

/* A node being built. */
typedef struct o3_onnx_node {
  o3_onnx_import_t *import;
  o3_onnx_scope_t *scope;
  const Onnx__NodeProto *proto;
  const char *label; /* its name, made up where the file gives none */
  const char *domain;
  MlirLocation location;
  o3_onnx_names_t captures; /* what its graphs read from |scope|, without what is absent there */
  o3_onnx_names_t absent;   /* what they read and is absent there */
} o3_onnx_node_t;

/* Builds |count| nodes in |scope|. */
o3_status_t o3_onnx_nodes_build(o3_onnx_import_t *import, o3_onnx_scope_t *scope,
                                Onnx__NodeProto *const *nodes, size_t count) O3_MUST_USE;

/* The function @main of the model's graph. */
o3_status_t o3_onnx_main_build(o3_onnx_import_t *import, const o3_onnx_frame_t *frame,
                               const Onnx__GraphProto *graph) O3_MUST_USE;

/* A private function of the graph |graph|, attribute |attribute| of |node|, called *|symbol|. Its arguments
 * are the graph's inputs and the node's captures. */
o3_status_t o3_onnx_subgraph_build(const o3_onnx_node_t *node, const char *attribute,
                                   const Onnx__GraphProto *graph, const char **symbol) O3_MUST_USE;

/* The dictionary of |node|'s attributes, parameters of the function replaced. */
o3_status_t o3_onnx_attributes_import(const o3_onnx_node_t *node, MlirAttribute *attrs) O3_MUST_USE;

/* The attribute that |attribute| stands for: itself, or the argument of the call when it is a parameter of
 * the function; NULL when the call leaves it out. */
o3_status_t o3_onnx_attribute_resolve(const o3_onnx_frame_t *frame, const Onnx__AttributeProto *attribute,
                                      const Onnx__AttributeProto **resolved) O3_MUST_USE;

/* Reads the model's functions into |import->functions|. */
o3_status_t o3_onnx_functions_read(o3_onnx_import_t *import, const Onnx__ModelProto *model) O3_MUST_USE;

/* The function that |node| calls; NULL when it is an operator. */
o3_status_t o3_onnx_function_find(const o3_onnx_node_t *node, const o3_onnx_function_t **function)
    O3_MUST_USE;

/* Builds the body of |function| in place of |node|. */
o3_status_t o3_onnx_function_inline(const o3_onnx_node_t *node, const o3_onnx_function_t *function)
    O3_MUST_USE;

/* The imports as a map from domain to version; refuses versions of ONNX's own domain that o3c does not read.
 */
o3_status_t o3_onnx_opsets_read(o3_arena_t *arena, Onnx__OperatorSetIdProto *const *imports, size_t count,
                                o3_str_map_t **opsets) O3_MUST_USE;

#endif
