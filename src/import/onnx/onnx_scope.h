/* What the importer knows while it builds: the model, the function being inlined, the names in sight. */
#ifndef O3_IMPORT_ONNX_ONNX_SCOPE_H
#define O3_IMPORT_ONNX_ONNX_SCOPE_H

#include "import/onnx/onnx_tensor.h"

/* Graphs in graphs and functions in functions, together, at most this deep. */
#define O3_ONNX_MAX_DEPTH 64
/* Nodes that come from inlined functions: a small file can ask for an exponential number. */
#define O3_ONNX_MAX_INLINED 250000
#define O3_ONNX_MIN_OPSET   1
#define O3_ONNX_MAX_OPSET   28
#define O3_ONNX_MIN_IR      3
#define O3_ONNX_MAX_IR      14

/* One import. */
typedef struct o3_onnx_import {
  o3_onnx_storage_t storage;
  const char *file; /* its base name, for locations */
  MlirModule module;
  MlirType value_type;       /* !o3.value */
  o3_str_map_t *functions;   /* o3_onnx_function_key -> o3_onnx_function_t * */
  o3_str_map_t *func_names;  /* symbols of the module */
  o3_str_map_t *dim_symbols; /* names of dimensions */
  size_t num_inlined;        /* nodes of functions built so far */
} o3_onnx_import_t;

/* A model-local function. */
typedef struct o3_onnx_function {
  const Onnx__FunctionProto *proto;
  o3_str_map_t *opsets;
} o3_onnx_function_t;

/* The model itself, or one call of a function. */
typedef struct o3_onnx_frame {
  const struct o3_onnx_frame *caller;
  const o3_onnx_function_t *function; /* NULL: the model */
  o3_str_map_t *opsets;               /* domain -> int64_t * */
  o3_str_map_t *attributes;           /* parameter -> Onnx__AttributeProto *; NULL for the model */
  const char *prefix;                 /* of its nodes' names: "call/" */
} o3_onnx_frame_t;

/* What a name stands for. An initializer's op is made when it is first read. A formal input of a function
 * that the call leaves out is |absent|: whoever reads it has an omitted input too. */
typedef struct o3_onnx_value {
  MlirValue value; /* null: absent, or an initializer not read yet */
  bool absent;
  const Onnx__TensorProto *initializer;
  const Onnx__SparseTensorProto *sparse;
} o3_onnx_value_t;

/* The names of one graph or function body. Nothing outside is in sight: what a graph captures comes in as
 * arguments. */
typedef struct o3_onnx_scope {
  const o3_onnx_frame_t *frame;
  o3_str_map_t *values; /* o3_onnx_value_t * */
  MlirBlock block;
  MlirOperation *last_initializer; /* of the block; null before the first */
  const char *path;                /* prefix of the labels of nodes without a name */
  int depth;
} o3_onnx_scope_t;

/* A set of names in the order in which they were added. */
typedef struct o3_onnx_names {
  o3_ptr_vec_t list;  /* char * */
  o3_str_map_t *seen; /* NULL while empty */
} o3_onnx_names_t;

/* An empty set; it costs nothing until something is added, as most nodes' sets stay empty. */
o3_onnx_names_t o3_onnx_names(o3_arena_t *arena);
o3_status_t o3_onnx_names_add(o3_onnx_names_t *names, const char *name) O3_MUST_USE;

/* Domain "ai.onnx" is "". */
const char *o3_onnx_domain(const char *domain);

/* The opset that |frame| imports for |domain|; 0: none. */
int64_t o3_onnx_opset_get(const o3_onnx_frame_t *frame, const char *domain);

/* An empty scope inside |outer| (NULL: the main graph). */
o3_status_t o3_onnx_scope_init(o3_onnx_import_t *import, const o3_onnx_scope_t *outer, o3_onnx_scope_t *scope)
    O3_MUST_USE;

/* Enters |value|; INVALID_MODEL when the name is taken. */
o3_status_t o3_onnx_scope_define(o3_onnx_import_t *import, o3_onnx_scope_t *scope, const char *name,
                                 o3_onnx_value_t value) O3_MUST_USE;
o3_status_t o3_onnx_scope_define_value(o3_onnx_import_t *import, o3_onnx_scope_t *scope, const char *name,
                                       MlirValue value) O3_MUST_USE;

/* What |name| stands for, its initializer built; NULL when nothing defines it. */
o3_status_t o3_onnx_scope_read(o3_onnx_import_t *import, o3_onnx_scope_t *scope, const char *name,
                               const o3_onnx_value_t **value) O3_MUST_USE;

MlirLocation o3_onnx_location(const o3_onnx_import_t *import, const char *label, size_t line);

#endif
