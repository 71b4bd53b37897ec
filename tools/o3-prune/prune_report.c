#include "prune_report.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <string.h>

static double share(int64_t part, int64_t whole) { return whole ? (double)part / (double)whole : 0; }

static prune_layer_t total_of(const prune_model_t *model) {
  prune_layer_t total = {.node = "all of these", .op = ""};
  for (int i = 0; i < model->num_layers; ++i) {
    const prune_layer_t *layer = &model->layers[i];
    if (layer->skipped) continue;
    total.elements += layer->elements;
    total.zeros_before += layer->zeros_before;
    total.zeros_after += layer->zeros_after;
    total.units += layer->units;
    total.dropped += layer->dropped;
  }
  return total;
}

/* ---- Text ---- */

static char *shape_text(o3_arena_t *arena, const Onnx__TensorProto *tensor) {
  char *text = o3_arena_strdup(arena, "");
  for (size_t i = 0; text && i < tensor->n_dims; ++i)
    text = o3_arena_printf(arena, "%s%s%" PRId64, text, i ? "x" : "", tensor->dims[i]);
  return text;
}

static void print_row(FILE *stream, const prune_layer_t *layer, const char *shape) {
  fprintf(stream, "%-36s %-7s %-16s %10" PRId64 " %10" PRId64 "  %5.1f %% -> %5.1f %%\n", layer->node,
          layer->op, shape, layer->units, layer->dropped, 100 * share(layer->zeros_before, layer->elements),
          100 * share(layer->zeros_after, layer->elements));
}

bool prune_report_text(FILE *stream, const prune_options_t *options, const prune_model_t *model) {
  const bool nm = options->pattern.kind == PRUNE_NM;
  prune_layer_t total = total_of(model);
  fprintf(stream, "%-36s %-7s %-16s %10s %10s  %s\n", "layer", "op", "weights", nm ? "groups" : "blocks",
          nm ? "dropped" : "zero", "zeros");
  for (int i = 0; i < model->num_layers; ++i) {
    const prune_layer_t *layer = &model->layers[i];
    const char *shape = shape_text(model->arena, layer->tensor);
    if (!layer->skipped)
      print_row(stream, layer, shape ? shape : "");
    else
      fprintf(stream, "%-36s %-7s %-16s left as it is: %s\n", layer->node, layer->op, shape ? shape : "",
              layer->skipped);
  }
  print_row(stream, &total, "");
  const char *pattern = prune_pattern_text(model->arena, &options->pattern);
  fprintf(stream, "\n%s, %s.%s%s\n", pattern ? pattern : "",
          options->has_seed ? "chosen at random" : "the smallest are zero now",
          options->output ? " Written to " : " Nothing is written without --output.",
          options->output ? options->output : "");
  fputs(
      "The model computes something else now, and its accuracy has suffered: fine-tune it with these zeros\n"
      "held in place, then measure it, before it is used.\n",
      stream);
  return !fflush(stream) && !ferror(stream);
}

/* ---- JSON ---- */

static void add_counts(cJSON *object, const prune_layer_t *layer) {
  cJSON_AddNumberToObject(object, "elements", (double)layer->elements);
  cJSON_AddNumberToObject(object, "units", (double)layer->units);
  cJSON_AddNumberToObject(object, "dropped", (double)layer->dropped);
  cJSON_AddNumberToObject(object, "zeros_before", (double)layer->zeros_before);
  cJSON_AddNumberToObject(object, "zeros_after", (double)layer->zeros_after);
}

static cJSON *layer_json(const prune_layer_t *layer) {
  cJSON *object = cJSON_CreateObject(), *shape = cJSON_CreateArray();
  cJSON_AddStringToObject(object, "node", layer->node);
  cJSON_AddStringToObject(object, "op", layer->op);
  cJSON_AddStringToObject(object, "weight", layer->weight);
  for (size_t i = 0; i < layer->tensor->n_dims; ++i)
    cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)layer->tensor->dims[i]));
  cJSON_AddItemToObject(object, "shape", shape);
  if (layer->skipped)
    cJSON_AddStringToObject(object, "skipped", layer->skipped);
  else
    add_counts(object, layer);
  return object;
}

bool prune_report_json(FILE *stream, const prune_options_t *options, const prune_model_t *model) {
  cJSON *object = cJSON_CreateObject();
  prune_layer_t total = total_of(model);
  const char *pattern = prune_pattern_text(model->arena, &options->pattern);
  cJSON_AddStringToObject(object, "pattern", pattern ? pattern : "");
  cJSON_AddItemToObject(object, "output",
                        options->output ? cJSON_CreateString(options->output) : cJSON_CreateNull());
  cJSON *layers = cJSON_AddArrayToObject(object, "layers");
  for (int i = 0; i < model->num_layers; ++i) cJSON_AddItemToArray(layers, layer_json(&model->layers[i]));
  cJSON *sum = cJSON_AddObjectToObject(object, "total");
  add_counts(sum, &total);
  cJSON_AddStringToObject(object, "note", "accuracy has suffered: fine-tune the model before it is used");
  char *text = cJSON_PrintUnformatted(object);
  cJSON_Delete(object);
  bool ok = text && fprintf(stream, "%s\n", text) > 0 && !fflush(stream);
  cJSON_free(text);
  return ok;
}
