/* choose-sparse: the format of each constant weight.
 *
 * Needs: constants folded, before the layout pass. Guarantees: o3.conv and o3.matmul in @main whose f32
 * constant weights are to be sparse carry O3_SPARSE_FORMAT_ATTR, a format that o3_sparse_supported has said
 * yes to; the choices are noted in env->sparse_report.
 *
 * A line of --sparse-config that matches the node comes first, then --sparse-format; auto takes the format
 * that the cost model (or measuring) finds fastest, if it beats dense by a margin. A format that was asked
 * for is obeyed, with a warning when it costs more than dense.
 *
 *     %y = "o3.conv"(%x, %w)    =>    %y = "o3.conv"(%x, %w) {o3.sparse_format = "bsr-16x16"}
 */
#include <fnmatch.h>
#include <string.h>

#include "analysis/shape.h"
#include "analysis/sparse_choice.h"
#include "analysis/winograd.h"
#include "base/log.h"
#include "rewrite/measure_sparse.h"
#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

/* What the model predicts is not exact, nor are clocks: a gain below this is none. */
#define MARGIN          0.9
#define MEASURED_MARGIN 0.97
/* Microseconds: of less, calling the kernel is the larger part. */
#define LEAST_TIME 1.0

/* Symbolic sizes: networks halve an image as they double its channels, 64 of 56 x 56; a sequence of 128. */
enum { USUAL_IMAGE = 64 * 56, LEAST_SIDE = 7, MOST_SIDE = 112, USUAL_ROWS = 128, MAX_OPTIONS = 24 };

typedef struct chooser {
  o3_pass_env_t *env;
  o3_arena_t *scratch; /* of one weight */
  bool *used;          /* lines of the config that matched */
  o3_measured_layers_t layers;
  int num_dense; /* products that have no kernel for the format that all should get */
} chooser_t;

/* ---- The product ---- */

static bool is_constant(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_op_is(def, "o3.constant");
}

static int64_t known_size(MlirType type, int dim, int64_t usual, bool *known) {
  int64_t size = o3_type_dim(type, dim);
  *known &= size >= 0;
  return size >= 0 ? size : usual;
}

static int64_t usual_side(int64_t channels) {
  int64_t side = USUAL_IMAGE / channels;
  return side < LEAST_SIDE ? LEAST_SIDE : side > MOST_SIDE ? MOST_SIDE : side;
}

/* Of dimension |dim| of a value of |rank|: one image, one sequence. */
static int64_t usual_size(bool conv, int rank, int dim, int64_t channels) {
  if (dim == 0 && rank > 2) return 1;
  return conv ? usual_side(channels) : USUAL_ROWS;
}

static void read_sizes(MlirOperation op, bool conv, o3_sparse_layer_t *layer) {
  MlirType y = mlirValueGetType(mlirOperationGetResult(op, 0)),
           x = mlirValueGetType(mlirOperationGetOperand(op, 0));
  int rank = o3_type_rank(y);
  int64_t inputs = 1;
  layer->columns = 1;
  layer->columns_known = true;
  for (int i = 0; i < rank; ++i) {
    bool channels = i == (conv ? 1 : rank - 1);
    int64_t usual = usual_size(conv, rank, i, layer->weight.outputs);
    if (!channels) layer->columns *= known_size(y, i, usual, &layer->columns_known);
  }
  for (int i = 0; i < o3_type_rank(x); ++i) {
    int64_t usual = usual_size(conv, rank, i, layer->weight.outputs);
    inputs *= known_size(x, i, usual, &layer->columns_known);
  }
  layer->moved = (inputs + layer->columns * layer->weight.outputs) * (int64_t)sizeof(float);
}

static bool is_ones(MlirOperation op, const char *name) {
  int64_t values[O3_IR_MAX_RANK];
  int count = o3_op_ints(op, name, values, O3_IR_MAX_RANK);
  bool ones = count == 2;
  for (int i = 0; i < count; ++i) ones &= values[i] == 1;
  return ones;
}

/* The layout pass takes Winograd's way where that is faster, which sparse kernels have to beat. */
static double dense_gain(const o3_pass_env_t *env, MlirOperation op, const o3_sparse_weight_t *weight) {
  o3_winograd_choice_t choice;
  MlirType y = mlirValueGetType(mlirOperationGetResult(op, 0));
  bool fits = !weight->is_matmul && weight->group == 1 && weight->channels >= 16 &&
              weight->window[0] == O3_WINOGRAD_TAPS && weight->window[1] == O3_WINOGRAD_TAPS &&
              is_ones(op, "strides") && is_ones(op, "dilations");
  if (!fits || !env->machine->kernels->winograd) return 1;
  const o3_winograd_layer_t layer = {.images = o3_type_dim(y, 0),
                                     .height = o3_type_dim(y, 2),
                                     .width = o3_type_dim(y, 3),
                                     .channels = weight->channels,
                                     .outputs = weight->outputs,
                                     .model_bytes = o3_winograd_model_bytes(op)};
  o3_winograd_choose(&layer, env->machine, &choice);
  return choice.likely_gain;
}

/* False when |op| is no product with f32 constant weights that the layout pass knows. */
static bool read_layer(const o3_pass_env_t *env, MlirOperation op, o3_sparse_layer_t *layer) {
  bool conv = o3_op_is(op, "o3.conv");
  if ((!conv && !o3_op_is(op, "o3.matmul")) || !is_constant(mlirOperationGetOperand(op, 1))) return false;
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, 1));
  int rank = o3_type_rank(type);
  if (!mlirTypeIsAF32(o3_type_element(type)) || o3_type_count(type) <= 0) return false;
  if (conv ? rank < 3 || rank > 4 : rank != 2) return false;
  if (conv && mlirOperationGetNumOperands(op) > 2 && !is_constant(mlirOperationGetOperand(op, 2)))
    return false;
  layer->weight = (o3_sparse_weight_t){
      .is_matmul = !conv,
      .is_f32 = true,
      .outputs = o3_type_dim(type, conv ? 0 : 1),
      .channels = o3_type_dim(type, conv ? 1 : 0),
      .group = conv ? o3_op_int(op, "group", 1) : 1,
      .window = {rank > 3 ? o3_type_dim(type, 2) : 1, conv ? o3_type_dim(type, rank - 1) : 1}};
  if (conv) {
    o3_op_ints(op, "strides", &layer->weight.steps[4 - rank], 2);
    o3_op_ints(op, "dilations", &layer->weight.dilations[4 - rank], 2);
  }
  read_sizes(op, conv, layer);
  layer->dense_gain = dense_gain(env, op, &layer->weight);
  return true;
}

static const char *shape_text(o3_arena_t *arena, MlirType type) {
  const char *text = "";
  for (int i = 0; text && i < o3_type_rank(type); ++i)
    text = o3_arena_printf(arena, "%s%s%lld", text, i ? "x" : "", (long long)o3_type_dim(type, i));
  return text;
}

/* ---- The options ---- */

static int64_t inputs_of(const o3_sparse_block_t *block) { return block->span ? block->span : block->depth; }

static int64_t count_entries(const o3_sparsity_t *sparsity, const o3_zero_mask_t *mask,
                             const o3_sparse_block_t *block) {
  int64_t inputs = inputs_of(block);
  for (int i = 0; i < O3_SPARSITY_NUM_SHAPES; ++i)
    if (O3_SPARSITY_SHAPES[i].outputs == block->lanes && O3_SPARSITY_SHAPES[i].inputs == inputs)
      return sparsity->stored[i];
  return o3_sparsity_count_blocks(mask, block->lanes, inputs);
}

static int64_t count_blocks(const o3_zero_mask_t *mask, const o3_sparse_block_t *block) {
  return mask->groups * mask->positions * ((mask->outputs + block->lanes - 1) / block->lanes) *
         ((mask->inputs + inputs_of(block) - 1) / inputs_of(block));
}

static o3_status_t weigh_hybrid(chooser_t *self, const o3_sparse_choice_t *row, const o3_zero_mask_t *mask,
                                const o3_sparse_block_t *block, o3_sparse_option_t *option) {
  o3_sparse_split_t split;
  o3_sparse_hybrid_split(mask, block, NULL, &split);
  int64_t stored = split.blocks * block->lanes * block->depth + split.entries;
  option->occupancy = (double)stored / (double)row->sparsity.elements;
  option->predicted = o3_sparse_hybrid_cost(&row->layer, block, &split);
  option->bytes = o3_sparse_hybrid_bytes(&row->layer, block, &split);
  option->parts =
      o3_arena_printf(self->env->arena, "%lld blocks of %lldx%lld + %lld entries", (long long)split.blocks,
                      (long long)block->lanes, (long long)block->depth, (long long)split.entries);
  O3_TRY_ALLOC(option->parts);
  return NULL;
}

static o3_status_t add_option(chooser_t *self, o3_sparse_choice_t *row, const o3_zero_mask_t *mask,
                              const char *format) {
  o3_sparse_option_t *option = &row->options[row->num_options++];
  o3_sparse_format_t parsed;
  o3_sparse_block_t block;
  *option = (o3_sparse_option_t){.format = format};
  O3_TRY(o3_sparse_format_parse(format, &parsed));
  o3_status_t refusal = o3_sparse_supported(&row->layer.weight, &parsed, &block);
  if (refusal) {
    option->refused = o3_arena_strdup(self->env->arena, o3_status_message(refusal));
    o3_status_destroy(refusal);
    O3_TRY_ALLOC(option->refused);
    return NULL;
  }
  int64_t kept = block.span ? o3_sparsity_most_of_inputs(mask, block.of) : 0;
  if (kept > block.kept) {
    option->refused =
        o3_arena_printf(self->env->arena, "%lld of %lld neighbouring inputs hold a number somewhere",
                        (long long)kept, (long long)block.of);
    O3_TRY_ALLOC(option->refused);
    return NULL;
  }
  if (parsed.kind == O3_SPARSE_HYBRID) return weigh_hybrid(self, row, mask, &block, option);
  int64_t entries = count_entries(&row->sparsity, mask, &block);
  option->occupancy = (double)entries / (double)count_blocks(mask, &block);
  option->predicted = o3_sparse_cost(&row->layer, &block, entries);
  option->bytes = o3_sparse_bytes(&row->layer, &block, entries);
  return NULL;
}

/* N:M formats that hold for the weight. */
static o3_status_t add_groups(chooser_t *self, o3_sparse_choice_t *row, const o3_zero_mask_t *mask) {
  for (int i = 0; i < O3_SPARSITY_NUM_GROUPS; ++i) {
    long long n = row->sparsity.inputs.most_of[i], m = O3_SPARSITY_GROUPS[i];
    if (n < 1 || 2 * n > m) continue;
    const char *format = o3_arena_printf(self->env->arena, "nm-%lld:%lld", n, m);
    O3_TRY_ALLOC(format);
    O3_TRY(add_option(self, row, mask, format));
  }
  return NULL;
}

static o3_status_t add_options(chooser_t *self, o3_sparse_choice_t *row, const o3_zero_mask_t *mask,
                               const char *forced) {
  row->options = O3_ARENA_ARRAY(self->env->arena, o3_sparse_option_t, MAX_OPTIONS);
  O3_TRY_ALLOC(row->options);
  const char *format;
  for (int i = 0; o3_sparse_candidate(i, &format); ++i) O3_TRY(add_option(self, row, mask, format));
  O3_TRY(add_groups(self, row, mask));
  O3_TRY(add_option(self, row, mask, "hybrid"));
  for (int i = 0; forced && i < row->num_options; ++i)
    if (!strcmp(row->options[i].format, forced)) return NULL;
  return forced ? add_option(self, row, mask, forced) : NULL;
}

/* ---- The choice ---- */

static const o3_sparse_option_t *find_option(const o3_sparse_choice_t *row, const char *format) {
  for (int i = 0; i < row->num_options; ++i)
    if (!strcmp(row->options[i].format, format)) return &row->options[i];
  return NULL;
}

/* Of an option, or of dense without one: measured where it was asked for, else predicted. */
static double time_of(const o3_sparse_choice_t *row, const o3_sparse_option_t *option) {
  if (row->dense_measured > 0) return option ? option->measured : row->dense_measured;
  return option ? option->predicted : row->dense_predicted;
}

/* Two kernels instead of one have to be worth it. */
static double rank_of(const o3_sparse_choice_t *row, const o3_sparse_option_t *option) {
  return time_of(row, option) / (option->parts ? MARGIN : 1);
}

static const o3_sparse_option_t *fastest(const o3_sparse_choice_t *row) {
  const o3_sparse_option_t *best = NULL;
  for (int i = 0; i < row->num_options; ++i) {
    const o3_sparse_option_t *option = &row->options[i];
    if (option->refused || time_of(row, option) <= 0) continue;
    if (!best || rank_of(row, option) < rank_of(row, best)) best = option;
  }
  return best;
}

/* What of the weights is stored. */
static const char *stored_text(const o3_sparse_option_t *option) {
  if (option->parts) return "numbers are stored";
  return strcmp(option->format, "csr") != 0 ? "blocks hold a number" : "numbers are not zero";
}

/* ": 12 blocks of 16x16 + 345 entries"; nothing for formats of one kind of entries. */
static const char *parts_text(o3_arena_t *arena, const o3_sparse_option_t *option) {
  return option->parts ? o3_arena_printf(arena, ": %s", option->parts) : "";
}

static o3_status_t choose_fastest(chooser_t *self, MlirOperation op, o3_sparse_choice_t *row) {
  if (self->env->measure) O3_TRY(o3_sparse_measure(self->env, &self->layers, op, row));
  bool measured = row->dense_measured > 0;
  const o3_sparse_option_t *best = fastest(row);
  o3_arena_t *arena = self->env->arena;
  double part = best ? time_of(row, best) / time_of(row, NULL) : 0;
  if (!best) {
    row->why = "there is no sparse kernel for it";
  } else if (part > (measured ? MEASURED_MARGIN : MARGIN)) {
    row->why =
        o3_arena_printf(arena, "the best, %s, %s %.2f of dense's time: %.0f %% of its %s", best->format,
                        measured ? "takes" : "would take", part, 100 * best->occupancy, stored_text(best));
  } else {
    row->chosen = best;
    row->format = best->format;
    const char *parts = parts_text(arena, best);
    O3_TRY_ALLOC(parts);
    row->why = o3_arena_printf(
        arena, measured ? "it takes %.2f of dense's time%s" : "%.2f of dense's time is expected%s", part,
        parts);
  }
  O3_TRY_ALLOC(row->why);
  return NULL;
}

static void warn_of_cost(const o3_sparse_choice_t *row) {
  const o3_sparse_option_t *option = row->chosen;
  if (option->predicted <= row->dense_predicted && option->bytes <= row->dense_bytes) return;
  o3_log(O3_LOG_WARNING,
         "node '%s': %s, as asked for, stores %.0f %% of its %s: about %.2f times dense's time and %.2f "
         "times its "
         "bytes",
         row->node, row->format, 100 * option->occupancy, option->parts ? "numbers" : "blocks",
         option->predicted / row->dense_predicted, (double)option->bytes / (double)row->dense_bytes);
}

/* |named|: by a line of --sparse-config, which cannot be obeyed by leaving the node dense. */
static o3_status_t obey(chooser_t *self, o3_sparse_choice_t *row, const char *format, bool named) {
  const o3_sparse_option_t *option = find_option(row, format);
  row->forced = true;
  if (option->refused && named)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "node '%s' cannot have sparse format '%s': %s", row->node,
                            format, option->refused);
  if (option->refused) {
    ++self->num_dense;
    row->why = o3_arena_printf(self->env->arena, "not %s: %s", format, option->refused);
    O3_TRY_ALLOC(row->why);
    return NULL;
  }
  row->chosen = option;
  row->format = option->format;
  const char *parts = parts_text(self->env->arena, option);
  O3_TRY_ALLOC(parts);
  row->why = o3_arena_printf(self->env->arena, "as asked for%s", parts);
  O3_TRY_ALLOC(row->why);
  warn_of_cost(row);
  return NULL;
}

/* The format that the user wants for the node; |named| when a line of --sparse-config says so. The last one
 * holds. */
static const char *wanted_format(chooser_t *self, const char *node, bool *named) {
  const char *format = self->env->sparse_format ? self->env->sparse_format : "auto";
  *named = false;
  for (int i = 0; i < self->env->num_sparse_overrides; ++i) {
    if (fnmatch(self->env->sparse_overrides[i].glob, node, 0)) continue;
    format = self->env->sparse_overrides[i].format;
    self->used[i] = *named = true;
  }
  return format;
}

static o3_status_t decide(chooser_t *self, MlirOperation op, o3_sparse_choice_t *row,
                          const o3_zero_mask_t *mask) {
  bool named, automatic;
  const char *format = wanted_format(self, row->node, &named);
  automatic = !strcmp(format, "auto");
  bool dense = !strcmp(format, "dense");
  row->format = "dense";
  row->dense_predicted = o3_sparse_cost_dense(&row->layer);
  row->dense_bytes = o3_sparse_bytes_dense(&row->layer);
  O3_TRY(add_options(self, row, mask, automatic || dense ? NULL : format));
  row->forced = !automatic;
  row->why = dense ? "as asked for" : "it has no zeros";
  if (dense || (row->sparsity.zeros == 0 && !named)) return NULL;
  if (automatic && row->dense_predicted < LEAST_TIME) {
    row->why = "it is too small to gain";
    return NULL;
  }
  return automatic ? choose_fastest(self, op, row) : obey(self, row, format, named);
}

/* ---- The pass ---- */

static o3_status_t choose(chooser_t *self, MlirOperation op) {
  o3_arena_t *arena = self->env->arena;
  o3_sparse_layer_t layer = {0};
  o3_zero_mask_t mask;
  if (!read_layer(self->env, op, &layer)) return NULL;
  ++self->layers.num_seen;
  O3_TRY(o3_zero_mask_of_product(self->scratch, self->env->weights, op, &mask));
  if (!mask.nonzero) return NULL;
  o3_sparse_choice_t *row = O3_ARENA_NEW(arena, o3_sparse_choice_t);
  O3_TRY_ALLOC(row);
  MlirStringRef label = o3_op_label(op);
  *row = (o3_sparse_choice_t){.node = o3_arena_strndup(arena, label.data, label.length),
                              .op = layer.weight.is_matmul ? "matmul" : "conv",
                              .shape = shape_text(arena, mlirValueGetType(mlirOperationGetOperand(op, 1))),
                              .layer = layer};
  O3_TRY_ALLOC(row->node);
  O3_TRY_ALLOC(row->shape);
  O3_TRY(o3_sparsity_count(self->scratch, &mask, &row->sparsity));
  O3_TRY(decide(self, op, row, &mask));
  if (row->chosen) o3_op_attr_set(op, O3_SPARSE_FORMAT_ATTR, o3_attr_string(self->env->context, row->format));
  if (self->env->sparse_report) O3_TRY_ALLOC(o3_ptr_vec_push(&self->env->sparse_report->rows, row));
  return NULL;
}

/* Products with constant weights, and whether caches hold these from run to run. */
static void count_products(chooser_t *self, MlirBlock body) {
  o3_sparse_layer_t layer;
  int64_t bytes = 0;
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    layer = (o3_sparse_layer_t){0};
    if (!read_layer(self->env, op, &layer)) continue;
    ++self->layers.num_ops;
    bytes += o3_sparse_bytes_dense(&layer);
  }
  /* They come from memory in every run then. */
  self->layers.cold = bytes > self->env->machine->l3_bytes;
}

static void warn_of_counts(const chooser_t *self) {
  if (self->num_dense)
    o3_log(O3_LOG_WARNING, "%d products have no kernel for %s and stay dense; --explain tells why",
           self->num_dense, self->env->sparse_format);
  if (self->layers.num_symbolic)
    o3_log(O3_LOG_WARNING,
           "%d products have symbolic sizes and are not measured; --dim and --shape fix the sizes",
           self->layers.num_symbolic);
}

static o3_status_t check_used(const chooser_t *self) {
  for (int i = 0; i < self->env->num_sparse_overrides; ++i) {
    if (self->used[i]) continue;
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "'%s' of the sparse configuration matches no product with "
                            "constant weights",
                            self->env->sparse_overrides[i].glob);
  }
  return NULL;
}

/* The target has no kernels for sparse weights: what asks for some cannot be obeyed. */
static o3_status_t refuse_wish(const o3_pass_env_t *env) {
  const char *format = env->sparse_format ? env->sparse_format : "auto";
  if (!env->num_sparse_overrides && (!strcmp(format, "auto") || !strcmp(format, "dense"))) return NULL;
  return o3_status_create(O3_STATUS_UNSUPPORTED,
                          "the target has no kernels for sparse weights: '%s' is for CPUs",
                          env->num_sparse_overrides ? env->sparse_overrides[0].format : format);
}

o3_status_t o3_rewrite_choose_sparse(o3_pass_env_t *env, MlirModule module) {
  MlirOperation main = o3_module_func(module, "main"), next;
  chooser_t self = {.env = env,
                    .layers.items = o3_ptr_vec(env->arena),
                    .used = O3_ARENA_ARRAY(env->arena, bool, (size_t)env->num_sparse_overrides + 1)};
  O3_TRY_ALLOC(self.used);
  if (mlirOperationIsNull(main)) return NULL;
  if (!env->machine->kernels || !env->machine->kernels->channel_blocks) return refuse_wish(env);
  MlirOperation op = mlirBlockGetFirstOperation(o3_func_body(main));
  count_products(&self, o3_func_body(main));
  o3_status_t status = NULL;
  for (; !status && !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    self.scratch = o3_arena_create();
    O3_TRY_ALLOC(self.scratch);
    status = choose(&self, op);
    o3_arena_destroy(self.scratch);
  }
  O3_TRY(status);
  warn_of_counts(&self);
  return check_used(&self);
}
