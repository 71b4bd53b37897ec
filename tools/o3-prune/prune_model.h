/* A model file as o3-prune sees it: the layers whose weights can be pruned. */
#ifndef O3_TOOLS_PRUNE_MODEL_H
#define O3_TOOLS_PRUNE_MODEL_H

#include "base/file.h"
#include "import/onnx/onnx_decode.h"
#include "import/onnx/onnx_tensor.h"
#include "ir/context.h"
#include "prune_options.h"

/* A weight as |groups| x |rows| (outputs of a group) x |cols| (inputs of a group) x positions, wherever its
 * elements lie: positions are the kernel's, or the matrices of a stack. Strides are in elements. */
typedef struct prune_view {
  int64_t groups, rows, cols, group_stride, row_stride, col_stride;
  int num_positions; /* dimensions */
  int64_t sizes[O3_IR_MAX_RANK], strides[O3_IR_MAX_RANK];
  int64_t positions; /* their product */
} prune_view_t;

typedef struct prune_layer {
  const char *node, *op, *weight; /* names */
  const char *skipped;            /* why it is left as it is, or NULL */
  const Onnx__TensorProto *tensor;
  uint8_t *data; /* the weight's bytes, to be changed */
  size_t bytes;
  int dtype; /* O3_ONNX_F32, ... */
  int64_t elements, zeros_before, zeros_after;
  int64_t units, dropped; /* blocks or groups of M, and how many blocks are zero (of N:M: zeros set) */
  prune_view_t view;
} prune_layer_t;

typedef struct prune_model {
  o3_arena_t *arena;
  o3_mapped_file_t file;
  const Onnx__ModelProto *proto;
  o3_onnx_storage_t storage;
  o3_ptr_map_t *tensors; /* position in the file + 1 -> Onnx__TensorProto *, of all at any depth */
  int num_layers;
  prune_layer_t *layers; /* in the order of the file's nodes; each weight once */
} prune_model_t;

/* Reads the model and finds the layers that |options| asks for. Call prune_model_close either way. */
o3_status_t prune_model_open(const prune_options_t *options, o3_arena_t *arena, prune_model_t *model)
    O3_MUST_USE;
void prune_model_close(prune_model_t *model);

/* The bytes of a tensor of the model, borrowed from it. */
o3_status_t prune_tensor_data(prune_model_t *model, const Onnx__TensorProto *tensor, const void **data,
                              size_t *bytes) O3_MUST_USE;

#endif
