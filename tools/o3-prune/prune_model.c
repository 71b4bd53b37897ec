/* Weights are followed through Identity and Transpose to the initializer or Constant that holds them. The
 * permutation is applied to the strides, so that blocks lie where the product sees them. */
#include "prune_model.h"

#include <fnmatch.h>
#include <string.h>

#include "import/onnx/onnx_dtype.h"

/* ---- Reading ---- */

static o3_status_t note_tensor(prune_model_t *model, const Onnx__TensorProto *tensor) {
  void *key = (void *)(uintptr_t)(tensor->mapped_start + 1);
  O3_TRY_ALLOC(o3_ptr_map_put(model->tensors, key, (void *)(uintptr_t)tensor));
  return NULL;
}

/* All tensors inside |message|, by the schema that protobuf-c keeps: graphs in attributes and functions, too.
 * The decoder has bounded the depth. */
static o3_status_t note_tensors(prune_model_t *model, const ProtobufCMessage *message) {
  const ProtobufCMessageDescriptor *type = message->descriptor;
  if (type == &onnx__tensor_proto__descriptor)
    O3_TRY(note_tensor(model, (const Onnx__TensorProto *)(const void *)message));
  for (unsigned i = 0; i < type->n_fields; ++i) {
    const ProtobufCFieldDescriptor *field = &type->fields[i];
    const char *base = (const char *)message;
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) continue;
    const void *member;
    memcpy(&member, base + field->offset, sizeof(member));
    size_t count = member != NULL;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
      memcpy(&count, base + field->quantifier_offset, sizeof(count));
    for (size_t k = 0; k < count; ++k) {
      const void *child = field->label == PROTOBUF_C_LABEL_REPEATED ? ((void *const *)member)[k] : member;
      O3_TRY(note_tensors(model, child));
    }
  }
  return NULL;
}

o3_status_t prune_tensor_data(prune_model_t *model, const Onnx__TensorProto *tensor, const void **data,
                              size_t *bytes) {
  MlirAttribute attr;
  O3_TRY_CONTEXT(o3_onnx_tensor_import(&model->storage, tensor, tensor->name, &attr), "tensor '%s'",
                 tensor->name);
  *data = o3_weights_data(model->storage.weights, attr, bytes);
  O3_TRY_ALLOC(*data);
  return NULL;
}

/* ---- From a node's input to its data ---- */

typedef struct finder {
  prune_model_t *model;
  const prune_options_t *options;
  o3_str_map_t *tensors; /* name -> Onnx__TensorProto *: initializers */
  o3_str_map_t *makers;  /* name -> Onnx__NodeProto * that makes it */
  o3_ptr_map_t *taken;   /* tensors that a layer has */
  bool *used;            /* of only, then skip: the pattern has matched */
  bool first_conv_seen;
} finder_t;

/* Where a value's elements lie: dimension i has |dims[i]| of them, |strides[i]| apart. */
typedef struct located {
  const Onnx__TensorProto *tensor;
  int rank;
  int64_t dims[O3_IR_MAX_RANK], strides[O3_IR_MAX_RANK];
} located_t;

static const Onnx__AttributeProto *find_attribute(const Onnx__NodeProto *node, const char *name) {
  for (size_t i = 0; i < node->n_attribute; ++i)
    if (!strcmp(node->attribute[i]->name, name)) return node->attribute[i];
  return NULL;
}

static int64_t int_attribute(const Onnx__NodeProto *node, const char *name, int64_t fallback) {
  const Onnx__AttributeProto *attribute = find_attribute(node, name);
  return attribute ? attribute->i : fallback;
}

static bool locate_tensor(const Onnx__TensorProto *tensor, located_t *at) {
  if (tensor->n_dims > O3_IR_MAX_RANK) return false;
  *at = (located_t){.tensor = tensor, .rank = (int)tensor->n_dims};
  int64_t stride = 1;
  for (int i = at->rank; i-- > 0;) {
    at->dims[i] = tensor->dims[i];
    at->strides[i] = stride;
    if (at->dims[i] < 0 || __builtin_mul_overflow(stride, at->dims[i], &stride)) return false;
  }
  return true;
}

/* Without |perm| dimensions are reversed. */
static bool permute(const Onnx__NodeProto *node, located_t *at) {
  const Onnx__AttributeProto *perm = find_attribute(node, "perm");
  located_t from = *at;
  if (perm && perm->n_ints != (size_t)at->rank) return false;
  for (int i = 0; i < at->rank; ++i) {
    int64_t source = perm ? perm->ints[i] : at->rank - 1 - i;
    if (source < 0 || source >= at->rank) return false;
    at->dims[i] = from.dims[source];
    at->strides[i] = from.strides[source];
  }
  return true;
}

enum { MAX_STEPS = 64 };

/* False when |name| is no constant, or is one that is computed. */
static bool locate(const finder_t *finder, const char *name, located_t *at) {
  const Onnx__NodeProto *transposes[MAX_STEPS];
  int count = 0;
  for (int step = 0; step < MAX_STEPS; ++step) {
    const Onnx__TensorProto *tensor = o3_str_map_get(finder->tensors, name, strlen(name));
    const Onnx__NodeProto *maker = o3_str_map_get(finder->makers, name, strlen(name));
    if (!tensor && maker && !strcmp(maker->op_type, "Constant")) {
      const Onnx__AttributeProto *value = find_attribute(maker, "value");
      tensor = value ? value->t : NULL;
      if (!tensor) return false;
    }
    if (tensor) {
      bool fits = locate_tensor(tensor, at);
      while (fits && count-- > 0) fits = permute(transposes[count], at);
      return fits;
    }
    if (!maker || maker->n_input != 1) return false;
    if (!strcmp(maker->op_type, "Transpose"))
      transposes[count++] = maker;
    else if (strcmp(maker->op_type, "Identity"))
      return false;
    name = maker->input[0];
  }
  return false;
}

/* ---- Views ---- */

static void add_positions(prune_view_t *view, const located_t *at, int from, int to) {
  view->positions = 1;
  for (int i = from; i < to; ++i) {
    view->sizes[view->num_positions] = at->dims[i];
    view->strides[view->num_positions++] = at->strides[i];
    view->positions *= at->dims[i];
  }
}

static const char *view_conv(const Onnx__NodeProto *node, const located_t *at, prune_view_t *view) {
  int64_t groups = int_attribute(node, "group", 1);
  if (at->rank < 3 || groups < 1 || at->dims[0] % groups) return "its shape is not a convolution's";
  *view = (prune_view_t){.groups = groups,
                         .rows = at->dims[0] / groups,
                         .cols = at->dims[1],
                         .group_stride = at->dims[0] / groups * at->strides[0],
                         .row_stride = at->strides[0],
                         .col_stride = at->strides[1]};
  add_positions(view, at, 2, at->rank);
  return NULL;
}

/* The last two dimensions are inputs x outputs, or the other way round when |outputs_first|. */
static const char *view_matrix(bool outputs_first, const located_t *at, prune_view_t *view) {
  if (at->rank < 2) return "it is no matrix";
  int out = outputs_first ? at->rank - 2 : at->rank - 1, in = outputs_first ? at->rank - 1 : at->rank - 2;
  *view = (prune_view_t){.groups = 1,
                         .rows = at->dims[out],
                         .cols = at->dims[in],
                         .row_stride = at->strides[out],
                         .col_stride = at->strides[in]};
  add_positions(view, at, 0, at->rank - 2);
  return NULL;
}

/* ---- Which layers ---- */

static const struct {
  const char *op;
  unsigned bit;
} OPS[] = {{"Conv", PRUNE_CONV}, {"Gemm", PRUNE_GEMM}, {"MatMul", PRUNE_MATMUL}};

static unsigned op_bit(const Onnx__NodeProto *node) {
  if (*node->domain && strcmp(node->domain, "ai.onnx")) return 0;
  for (size_t i = 0; i < sizeof(OPS) / sizeof(OPS[0]); ++i)
    if (!strcmp(node->op_type, OPS[i].op)) return OPS[i].bit;
  return 0;
}

static bool matches(finder_t *finder, const o3_ptr_vec_t *globs, size_t first, const prune_layer_t *layer) {
  bool any = false;
  for (size_t i = 0; i < globs->count; ++i) {
    if (fnmatch(globs->items[i], layer->node, 0) && fnmatch(globs->items[i], layer->weight, 0)) continue;
    finder->used[first + i] = any = true;
  }
  return any;
}

static bool has_kernel(finder_t *finder, const prune_view_t *view) {
  char *text = o3_arena_strdup(finder->model->arena, "");
  for (int i = 0; text && i < view->num_positions; ++i)
    text = o3_arena_printf(finder->model->arena, "%s%s%lld", text, i ? "x" : "", (long long)view->sizes[i]);
  return text && !strcmp(text, finder->options->kernel);
}

static bool is_float(int dtype) {
  return dtype == O3_ONNX_F32 || dtype == O3_ONNX_F64 || dtype == O3_ONNX_F16 || dtype == O3_ONNX_BF16;
}

static const char *why_skipped(finder_t *finder, const Onnx__NodeProto *node, const prune_layer_t *layer) {
  const prune_options_t *options = finder->options;
  unsigned bit = op_bit(node);
  bool first_conv = bit == PRUNE_CONV && !finder->first_conv_seen;
  finder->first_conv_seen |= bit == PRUNE_CONV;
  /* Both lists are asked in any case, so that a pattern that matches counts as used. */
  bool skip = matches(finder, &options->skip, options->only.count, layer);
  bool only = !options->only.count || matches(finder, &options->only, 0, layer);
  if (skip) return "--skip";
  if (!only) return "not in --only";
  if (options->ops && !(options->ops & bit)) return "not in --ops";
  if (first_conv && options->skip_first) return "--skip-first";
  if (bit == PRUNE_CONV && options->kernel && !has_kernel(finder, &layer->view)) return "not of --kernel";
  if (bit == PRUNE_CONV && layer->view.groups > 1 && layer->view.cols == 1 && !options->depthwise)
    return "depthwise";
  if (!is_float(layer->dtype)) return "its weights are no floating-point numbers";
  return NULL;
}

static o3_status_t load(prune_model_t *model, prune_layer_t *layer) {
  const void *data;
  O3_TRY_CONTEXT(prune_tensor_data(model, layer->tensor, &data, &layer->bytes), "node '%s'", layer->node);
  layer->data = o3_arena_alloc(model->arena, layer->bytes + 1, 1);
  O3_TRY_ALLOC(layer->data);
  memcpy(layer->data, data, layer->bytes);
  return NULL;
}

/* The operand that is the weight: the second, or the first of a product from the left. */
static bool find_weight(const finder_t *finder, const Onnx__NodeProto *node, located_t *at, bool *left) {
  *left = false;
  if (node->n_input < 2) return false;
  if (locate(finder, node->input[1], at)) return true;
  *left = op_bit(node) != PRUNE_CONV && locate(finder, node->input[0], at);
  return *left;
}

static o3_status_t add_layer(finder_t *finder, const Onnx__NodeProto *node, size_t index) {
  located_t at;
  bool left;
  if (!op_bit(node) || !find_weight(finder, node, &at, &left) || o3_ptr_map_get(finder->taken, at.tensor))
    return NULL;
  o3_arena_t *arena = finder->model->arena;
  prune_layer_t *layer = &finder->model->layers[finder->model->num_layers++];
  *layer = (prune_layer_t){
      .node = *node->name ? node->name : o3_arena_printf(arena, "%s#%zu", node->op_type, index),
      .op = node->op_type,
      .weight = at.tensor->name,
      .tensor = at.tensor,
      .dtype = at.tensor->data_type};
  O3_TRY_ALLOC(layer->node);
  O3_TRY_ALLOC(o3_ptr_map_put(finder->taken, at.tensor, layer));
  bool transposed = int_attribute(node, left ? "transA" : "transB", 0) != 0;
  layer->skipped = op_bit(node) == PRUNE_CONV ? view_conv(node, &at, &layer->view)
                                              : view_matrix(left != transposed, &at, &layer->view);
  if (!layer->skipped) layer->skipped = why_skipped(finder, node, layer);
  return layer->skipped ? NULL : load(finder->model, layer);
}

static o3_status_t check_globs(const finder_t *finder) {
  const prune_options_t *options = finder->options;
  for (size_t i = 0; i < options->only.count + options->skip.count; ++i) {
    if (finder->used[i]) continue;
    bool only = i < options->only.count;
    const char *glob = only ? options->only.items[i] : options->skip.items[i - options->only.count];
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "'%s': --%s '%s' matches no layer", options->model,
                            only ? "only" : "skip", glob);
  }
  return NULL;
}

static o3_status_t index_graph(finder_t *finder, const Onnx__GraphProto *graph) {
  o3_arena_t *arena = finder->model->arena;
  finder->tensors = o3_str_map_create(arena);
  finder->makers = o3_str_map_create(arena);
  finder->taken = o3_ptr_map_create(arena);
  finder->used = O3_ARENA_ARRAY(arena, bool, finder->options->only.count + finder->options->skip.count + 1);
  O3_TRY_ALLOC(finder->tensors && finder->makers && finder->taken && finder->used);
  for (size_t i = 0; i < graph->n_initializer; ++i) {
    Onnx__TensorProto *tensor = graph->initializer[i];
    O3_TRY_ALLOC(o3_str_map_put(finder->tensors, tensor->name, strlen(tensor->name), tensor));
  }
  for (size_t i = 0; i < graph->n_node; ++i) {
    Onnx__NodeProto *node = graph->node[i];
    for (size_t k = 0; k < node->n_output; ++k)
      O3_TRY_ALLOC(o3_str_map_put(finder->makers, node->output[k], strlen(node->output[k]), node));
  }
  return NULL;
}

static o3_status_t find_layers(finder_t *finder) {
  const Onnx__GraphProto *graph = finder->model->proto->graph;
  O3_TRY(index_graph(finder, graph));
  finder->model->layers = O3_ARENA_ARRAY(finder->model->arena, prune_layer_t, graph->n_node + 1);
  O3_TRY_ALLOC(finder->model->layers);
  for (size_t i = 0; i < graph->n_node; ++i) O3_TRY(add_layer(finder, graph->node[i], i));
  O3_TRY(check_globs(finder));
  for (int i = 0; i < finder->model->num_layers; ++i)
    if (!finder->model->layers[i].skipped) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                          "'%s': there is no layer to prune (%d have constant weights, all are left out)",
                          finder->options->model, finder->model->num_layers);
}

/* ---- Opening ---- */

static o3_status_t create_storage(const prune_options_t *options, prune_model_t *model) {
  const char *slash = strrchr(options->model, '/');
  const char *folder = !slash ? "."
                       : slash == options->model
                           ? "/"
                           : o3_arena_strndup(model->arena, options->model, (size_t)(slash - options->model));
  O3_TRY_ALLOC(folder);
  model->storage.arena = model->arena;
  model->storage.data = model->file.data;
  model->storage.folder = folder;
  model->storage.external = o3_str_map_create(model->arena);
  O3_TRY_ALLOC(model->storage.external);
  O3_TRY(o3_context_create(&model->storage.context));
  return o3_weights_create(model->storage.context, &model->storage.weights);
}

o3_status_t prune_model_open(const prune_options_t *options, o3_arena_t *arena, prune_model_t *model) {
  *model = (prune_model_t){.arena = arena, .tensors = o3_ptr_map_create(arena)};
  O3_TRY_ALLOC(model->tensors);
  O3_TRY(o3_file_map(options->model, &model->file));
  O3_TRY_CONTEXT(o3_onnx_decode(arena, model->file.data, model->file.size, &model->proto),
                 "'%s' is not an ONNX model", options->model);
  if (!model->proto->graph)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "'%s' is not an ONNX model: it has no graph",
                            options->model);
  O3_TRY(create_storage(options, model));
  O3_TRY(note_tensors(model, &model->proto->base));
  finder_t finder = {.model = model, .options = options};
  return find_layers(&finder);
}

void prune_model_close(prune_model_t *model) {
  o3_weights_destroy(model->storage.weights);
  if (!mlirContextIsNull(model->storage.context)) o3_context_destroy(model->storage.context);
  o3_file_unmap(&model->file);
}
