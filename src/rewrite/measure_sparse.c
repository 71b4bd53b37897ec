/* The cost model is right to some ten per cent, so that what it likes best is tried, and dense. A layer's
 * kernels count; kernels that only move data between layouts do not, for in a network the neighbours have the
 * same layout. Compressed rows are another matter: they read and write plain images, and half of what the
 * change of layouts costs is charged to them, for one neighbour or the other may have blocks. A hybrid has
 * its input and the sum of its parts in both layouts whatever the neighbours have. */
#include "rewrite/measure_sparse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build.h"

enum { MAX_TRIED = 3 };
/* Of dense's time: what is expected to take longer is not tried. */
static const double WORTH_TRYING = 1.5;
/* Layers of one form whose formats are expected to differ by at most this factor are measured once: the times
 * of one, times what the model makes of the difference, are the other's. */
static const double NEARLY_EQUAL = 1.15;
static const double ROWS_CHARGE = 0.5;

typedef struct layer {
  const char *text; /* of the op's attributes and types */
  const o3_sparse_choice_t *row;
} layer_t;

static bool is_static(MlirOperation op) {
  return o3_type_is_static(mlirValueGetType(mlirOperationGetOperand(op, 0))) &&
         o3_type_is_static(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

/* ---- Layers that were measured before ---- */

static bool same_zeros(const o3_sparse_choice_t *a, const o3_sparse_choice_t *b) {
  bool same = a->num_options == b->num_options;
  for (int i = 0; same && i < a->num_options; ++i) {
    const o3_sparse_option_t *x = &a->options[i], *y = &b->options[i];
    same = !strcmp(x->format, y->format) && x->predicted <= NEARLY_EQUAL * y->predicted &&
           y->predicted <= NEARLY_EQUAL * x->predicted;
  }
  return same;
}

/* "o3.conv) {strides = ...} : (types) -> type": what the op's text tells after the names of its operands. */
static o3_status_t describe(o3_arena_t *arena, MlirOperation op, const char **text) {
  char *printed = o3_ir_print_plain(op);
  O3_TRY_ALLOC(printed);
  const char *rest = strchr(printed, ')');
  *text = o3_arena_printf(arena, "%.*s%s", O3_STR_ARGS(o3_op_name(op)), rest ? rest : "");
  free(printed);
  O3_TRY_ALLOC(*text);
  return NULL;
}

static const o3_sparse_choice_t *find_equal(const o3_measured_layers_t *known, const char *text,
                                            const o3_sparse_choice_t *row) {
  for (size_t i = 0; i < known->items.count; ++i) {
    const layer_t *layer = known->items.items[i];
    if (!strcmp(layer->text, text) && same_zeros(layer->row, row)) return layer->row;
  }
  return NULL;
}

static void copy_times(o3_sparse_choice_t *row, const o3_sparse_choice_t *from) {
  row->dense_measured = from->dense_measured;
  for (int i = 0; i < row->num_options; ++i) {
    const o3_sparse_option_t *option = &from->options[i];
    if (option->measured > 0)
      row->options[i].measured = option->measured * row->options[i].predicted / option->predicted;
  }
}

/* ---- Measuring ---- */

static bool is_worth_trying(const o3_sparse_choice_t *row, int index, int count,
                            o3_sparse_option_t *const *tried) {
  const o3_sparse_option_t *option = &row->options[index];
  bool worth = !option->refused && option->predicted <= WORTH_TRYING * row->dense_predicted;
  /* Blocks that a layer's sizes round to the same ones are one format. */
  for (int i = 0; worth && i < count; ++i)
    worth =
        tried[i] != option && (tried[i]->bytes != option->bytes || tried[i]->predicted != option->predicted);
  return worth;
}

static int pick_options(const o3_sparse_choice_t *row, o3_sparse_option_t **tried) {
  int count = 0;
  for (; count < MAX_TRIED; ++count) {
    o3_sparse_option_t *best = NULL;
    for (int i = 0; i < row->num_options; ++i) {
      if (!is_worth_trying(row, i, count, tried)) continue;
      if (!best || row->options[i].predicted < best->predicted) best = &row->options[i];
    }
    if (!best) return count;
    tried[count] = best;
  }
  return count;
}

static bool is_rows(const o3_sparse_option_t *option) { return !strcmp(option->format, "csr"); }

static o3_status_t measure(o3_pass_env_t *env, const o3_measured_layers_t *known, MlirOperation op,
                           o3_sparse_choice_t *row) {
  o3_sparse_option_t *tried[MAX_TRIED];
  MlirAttribute values[MAX_TRIED + 1] = {{0}};
  o3_measured_t times[MAX_TRIED + 1];
  int count = pick_options(row, tried);
  if (!count) return NULL;
  for (int i = 0; i < count; ++i) values[i + 1] = o3_attr_string(env->context, tried[i]->format);
  const o3_measure_t request = {.op = op,
                                .what = o3_arena_printf(env->arena, "rewrite: measuring %s, product %d of %d",
                                                        row->node, known->num_seen, known->num_ops),
                                .after = "choose-sparse",
                                .cold = known->cold,
                                .attr = O3_SPARSE_FORMAT_ATTR,
                                .count = count + 1,
                                .values = values,
                                .times = times};
  O3_TRY_ALLOC(request.what);
  O3_TRY(env->measure(env, &request));
  row->dense_measured = times[0].total - times[0].moved;
  for (int i = 0; i < count; ++i) {
    const o3_measured_t *time = &times[i + 1];
    tried[i]->measured = time->total - (tried[i]->parts ? 0 : time->moved);
    if (is_rows(tried[i])) tried[i]->measured = time->total + ROWS_CHARGE * times[0].moved;
  }
  return NULL;
}

static o3_status_t keep(o3_arena_t *arena, o3_measured_layers_t *known, const char *text,
                        const o3_sparse_choice_t *row) {
  layer_t *layer = O3_ARENA_NEW(arena, layer_t);
  O3_TRY_ALLOC(layer);
  *layer = (layer_t){text, row};
  O3_TRY_ALLOC(o3_ptr_vec_push(&known->items, layer));
  return NULL;
}

o3_status_t o3_sparse_measure(o3_pass_env_t *env, o3_measured_layers_t *known, MlirOperation op,
                              o3_sparse_choice_t *row) {
  if (!is_static(op)) {
    ++known->num_symbolic;
    return NULL;
  }
  const char *text;
  O3_TRY(describe(env->arena, op, &text));
  const o3_sparse_choice_t *equal = find_equal(known, text, row);
  if (equal) {
    copy_times(row, equal);
    return NULL;
  }
  O3_TRY(measure(env, known, op, row));
  return keep(env->arena, known, text, row);
}
