/* Each dimension of the image but the last and those of size 1 is walked by at most one loop of the result,
 * in steps, and one of the sum, in dilations: from the last to the first these are x, y and the image. Where
 * an image has no border along x and few channels, a row of a window is one run of memory: its taps become
 * channels. */
#include "target/nvptx/window_site.h"

enum { X, Y, IMAGE, AXES, RUN = 64 };

typedef struct axis {
  int outer, tap; /* loops; -1: none */
  int64_t step, dilation, low, size, stride;
  bool bordered;
} axis_t;

typedef struct reader {
  const o3_nest_t *nest;
  const o3_nest_operand_t *x, *w, *y;
  axis_t axes[AXES];
  int num_axes;
  int channel, column; /* loops */
  bool depthwise;      /* which are one then */
  int64_t channels;
} reader_t;

static bool turns(const reader_t *r, int dim) { return r->nest->sizes[dim] != 1; }

static int64_t turns_of(const reader_t *r, int dim) { return dim < 0 ? 1 : r->nest->sizes[dim]; }

/* Whether the expression is zero where all loops are. */
static bool starts_at_zero(MlirAffineExpr expr) {
  if (mlirAffineExprIsAConstant(expr)) return mlirAffineConstantExprGetValue(expr) == 0;
  if (!mlirAffineExprIsAAdd(expr)) return true;
  return starts_at_zero(mlirAffineBinaryOpExprGetLHS(expr)) &&
         starts_at_zero(mlirAffineBinaryOpExprGetRHS(expr));
}

/* ---- The image ---- */

static bool read_axis(const reader_t *r, MlirAffineExpr expr, axis_t *axis) {
  *axis = (axis_t){.outer = -1, .tap = -1, .step = 1, .dilation = 1};
  if (!starts_at_zero(expr)) return false;
  for (int d = 0; d < r->nest->num_dims; ++d) {
    int64_t by;
    if (!turns(r, d) || !mlirAffineExprIsFunctionOfDim(expr, d)) continue;
    int *loop = r->nest->reduction[d] ? &axis->tap : &axis->outer;
    if (*loop >= 0 || !o3_nest_coefficient(expr, d, &by) || by < 1) return false;
    *loop = d;
    *(r->nest->reduction[d] ? &axis->dilation : &axis->step) = by;
  }
  return true;
}

static const char *read_channels(reader_t *r, MlirType type, const o3_halo_t *halo) {
  axis_t channels;
  int last = r->x->num_terms - 1;
  bool walked = last >= 1 && read_axis(r, r->x->all_exprs[last], &channels) && channels.dilation == 1 &&
                channels.step == 1 && (channels.outer < 0) != (channels.tap < 0);
  if (!walked) return "the channels of the image are not its last dimension";
  r->depthwise = channels.outer >= 0;
  r->channel = r->depthwise ? channels.outer : channels.tap;
  r->channels = o3_type_dim(type, last);
  if (halo && halo->clamped[last]) return "the border is around channels";
  return r->channels == turns_of(r, r->channel) ? NULL : "it reads a part of the channels";
}

/* The dimension |p|, in memory |stride| elements from one position to the next. */
static const char *read_position(reader_t *r, int p, int64_t size, int64_t stride, const o3_halo_t *halo) {
  axis_t axis;
  if (size < 1) return "a size of the image is known only at run time";
  if (!read_axis(r, r->x->all_exprs[p], &axis)) return "the windows of the image are irregular";
  axis.size = size;
  axis.stride = stride;
  if (halo) axis.low = halo->lows[p], axis.bordered = halo->clamped[p] && (axis.outer >= 0 || axis.tap >= 0);
  if (size == 1 && axis.outer < 0 && axis.tap < 0) return NULL;
  if (r->num_axes == AXES) return "the image has too many dimensions";
  r->axes[r->num_axes++] = axis;
  return NULL;
}

/* Of what is in memory: the image without its border. */
static const char *read_image(reader_t *r, const o3_halo_t *halo) {
  MlirType type = mlirValueGetType(halo ? halo->from : r->x->value);
  bool whole = o3_type_rank(type) == r->x->num_terms && (halo || !r->x->is_memref || r->x->is_contiguous);
  const char *why = whole ? read_channels(r, type, halo) : "the image is not row by row in memory";
  int64_t stride = r->channels;
  for (int p = r->x->num_terms - 2; p >= 0 && !why; --p) {
    why = read_position(r, p, o3_type_dim(type, p), stride, halo);
    stride *= o3_type_dim(type, p);
  }
  if (why) return why;
  for (; r->num_axes < AXES; ++r->num_axes)
    r->axes[r->num_axes] =
        (axis_t){.outer = -1, .tap = -1, .step = 1, .dilation = 1, .size = 1, .stride = stride};
  const axis_t *image = &r->axes[IMAGE];
  bool flat = image->tap < 0 && image->step == 1 && !image->bordered;
  return flat ? NULL : "the windows are of three dimensions";
}

/* ---- Weights and the result ---- */

static bool step_is(const o3_nest_operand_t *operand, int loop, int64_t expected) {
  int64_t step;
  return loop < 0 || (o3_nest_step(operand, loop, &step) && step == expected);
}

static const char *find_column(reader_t *r) {
  r->column = -1;
  for (int d = 0; d < r->nest->num_dims; ++d) {
    bool known = d == r->channel || !turns(r, d);
    for (int i = 0; i < AXES; ++i) known |= d == r->axes[i].outer || d == r->axes[i].tap;
    if (known) continue;
    if (r->column >= 0 || r->nest->reduction[d]) return "it has loops besides those of a convolution";
    r->column = d;
  }
  if (r->depthwise && r->column >= 0) return "an output is of one channel";
  if (r->depthwise) r->column = r->channel;
  return r->column < 0 ? "it has one output only" : NULL;
}

/* Outputs of a row of taps one after the other, each with its taps and their channels. */
static const char *read_columns(reader_t *r, o3_gemm_t *g) {
  int64_t taps = turns_of(r, r->axes[X].tap);
  g->b_pitch = taps * r->channels;
  bool ordered = step_is(r->w, r->column, g->b_pitch) && step_is(r->w, r->axes[X].tap, r->channels) &&
                 step_is(r->w, r->axes[Y].tap, g->b_pitch * turns_of(r, r->column));
  for (int i = 0; i < AXES; ++i)
    ordered = ordered && (r->axes[i].outer < 0 || !o3_nest_uses(r->w, r->axes[i].outer));
  return ordered ? NULL : "the weights are not in the order of the windows";
}

static const char *read_weights(reader_t *r, o3_gemm_t *g) {
  int64_t pitch;
  if (!r->depthwise && step_is(r->w, r->channel, 1) && !step_is(r->w, r->column, 1))
    return read_columns(r, g);
  if (!step_is(r->w, r->column, 1) || !o3_nest_step(r->w, r->channel, &pitch))
    return "the outputs are not the last dimension of the weights";
  if (r->depthwise) pitch = r->channels;
  int64_t tap = r->depthwise ? pitch : pitch * r->channels;
  bool ordered =
      step_is(r->w, r->axes[X].tap, tap) && step_is(r->w, r->axes[Y].tap, tap * turns_of(r, r->axes[X].tap));
  for (int i = 0; i < AXES; ++i)
    ordered = ordered && (r->axes[i].outer < 0 || !o3_nest_uses(r->w, r->axes[i].outer));
  g->b_pitch = pitch;
  g->b_by_rows = true;
  return ordered ? NULL : "the weights are not in the order of the windows";
}

static const char *read_result(reader_t *r, o3_gemm_t *g) {
  g->n = turns_of(r, r->column);
  g->d_pitch = g->n;
  g->m = 1;
  bool ordered = step_is(r->y, r->column, 1);
  for (int i = 0; i < AXES; ++i) {
    ordered = ordered && step_is(r->y, r->axes[i].outer, g->d_pitch * g->m);
    g->m *= turns_of(r, r->axes[i].outer);
  }
  return ordered ? NULL : "the result is not row by row";
}

/* ---- All ---- */

/* The taps along x as channels: positions are then those of the windows. */
static void join_taps(reader_t *r, o3_gemm_window_t *window) {
  const axis_t *x = &r->axes[X];
  if (x->bordered || x->tap < 0 || x->dilation != 1 || x->step > RUN || r->channels % RUN == 0) return;
  if (x->stride != r->channels) return;
  window->channels = r->channels * turns_of(r, x->tap);
  window->taps[X] = 1;
}

/* Without border and taps, steps are strides. */
static void join_steps(const reader_t *r, o3_gemm_window_t *window) {
  for (int i = X; i <= Y; ++i) {
    if (r->axes[i].bordered || window->taps[i] > 1) continue;
    window->sizes[i] = window->outputs[i];
    window->strides[i] *= window->steps[i];
    window->steps[i] = window->dilations[i] = 1;
  }
}

static void fill(reader_t *r, o3_gemm_t *g, o3_gemm_window_t *window) {
  *window = (o3_gemm_window_t){.channels = r->channels};
  for (int i = 0; i < AXES; ++i) {
    window->sizes[i] = r->axes[i].size;
    window->strides[i] = r->axes[i].stride;
    window->outputs[i] = turns_of(r, r->axes[i].outer);
  }
  for (int i = X; i <= Y; ++i) {
    window->taps[i] = turns_of(r, r->axes[i].tap);
    window->steps[i] = r->axes[i].step;
    window->dilations[i] = r->axes[i].dilation;
    window->lows[i] = r->axes[i].low;
  }
  g->k = (r->depthwise ? 1 : r->channels) * window->taps[X] * window->taps[Y];
  window->depthwise = r->depthwise;
  if (!r->depthwise) join_taps(r, window);
  join_steps(r, window);
  g->batch[0] = g->batch[1] = 1;
  g->window = window;
}

static void sort(const reader_t *r, int groups[O3_IR_MAX_RANK]) {
  for (int d = 0; d < O3_IR_MAX_RANK; ++d) groups[d] = -1;
  groups[r->channel] = O3_GEMM_DIMS;
  groups[r->column] = O3_GEMM_COLUMN;
  for (int i = 0; i < AXES; ++i) {
    if (r->axes[i].outer >= 0) groups[r->axes[i].outer] = O3_GEMM_ROW;
    if (r->axes[i].tap >= 0) groups[r->axes[i].tap] = O3_GEMM_DIMS;
  }
}

const char *o3_window_site_read(const o3_nest_t *nest, const o3_halo_t *halo, o3_gemm_t *gemm,
                                o3_gemm_window_t *window, int groups[O3_IR_MAX_RANK]) {
  reader_t r = {.nest = nest, .x = &nest->operands[0], .w = &nest->operands[1], .y = &nest->operands[2]};
  const char *why = read_image(&r, halo);
  if (!why) why = find_column(&r);
  if (!why) why = read_weights(&r, gemm);
  if (!why) why = read_result(&r, gemm);
  if (why) return why;
  fill(&r, gemm, window);
  sort(&r, groups);
  return NULL;
}
