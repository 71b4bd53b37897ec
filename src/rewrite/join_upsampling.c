/* join-upsampling: two transposed convolutions whose windows do not overlap are two convolutions of single
 * pixels.
 *
 * Needs: a normalized module. Guarantees: where a transposed convolution with a window as large as its stride
 * reads another one, perhaps through ops on each element, both are 1x1 convolutions on the first one's
 * pixels, and what lies between them is an image of that size: its channels are (a, b, m), the places of a
 * window and then the outputs, and the second one's weights are zero but for the place that they belong to.
 * What follows on each element comes before the pixels are spread.
 *
 *     %t = conv_transpose(%x, %v)  [n,c,h,w] -> [n,m,2h,2w]      %t = conv(%x, %v')           [n,4m,h,w]
 *     %r = max(%t, 0)                                       =>   %s = conv(max(%t, 0), %w')   [n,16,h,w]
 *     %y = conv_transpose(%r, %w)  [n,m,2h,2w] -> [n,1,4h,4w]    %y = reshape(transpose(reshape(%s)))
 *
 * That is done where all places of the second result are one block of lanes: the zeros then cost nothing. */
#include "base/check.h"
#include "rewrite/layout.h"
#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

enum { RANK = 4, SIDES = 2, MAX_STEPS = 8, MAX_PLACES = 16 };

/* A transposed convolution: weights are inputs x outputs x window. */
typedef struct spread {
  MlirOperation op;
  int64_t inputs, outputs, window[SIDES];
} spread_t;

/* Ops on each element, and which operand the image is. */
typedef struct steps {
  int count;
  struct {
    MlirOperation op;
    int image;
  } items[MAX_STEPS];
} steps_t;

typedef struct match {
  spread_t first, second;
  steps_t between, behind; /* in the order of a run */
} match_t;

/* ---- Reading ---- */

static bool reads_spread(MlirOperation op, spread_t *s) {
  int64_t dilations[SIDES], strides[SIDES], more[SIDES], pads[2 * SIDES];
  o3_shape_t x, w;
  if (mlirOperationIsNull(op) || !o3_op_is(op, "o3.conv_transpose")) return false;
  *s = (spread_t){.op = op};
  bool known = o3_layout_shape(mlirOperationGetOperand(op, 0), &x) &&
               o3_layout_shape(mlirOperationGetOperand(op, 1), &w) && x.rank == RANK && w.rank == RANK;
  if (!known || !o3_layout_is_f32(mlirOperationGetOperand(op, 0)) || o3_op_int(op, "group", 1) != 1)
    return false;
  for (intptr_t i = 1; i < mlirOperationGetNumOperands(op); ++i) {
    if (!o3_layout_is_constant(mlirOperationGetOperand(op, i))) return false;
  }
  bool whole = o3_op_ints(op, "dilations", dilations, SIDES) == SIDES &&
               o3_op_ints(op, "strides", strides, SIDES) == SIDES &&
               o3_op_ints(op, "output_padding", more, SIDES) == SIDES &&
               o3_op_ints(op, "pads", pads, 2 * SIDES) == 2 * SIDES;
  s->inputs = o3_layout_size(&w, 0);
  s->outputs = o3_layout_size(&w, 1);
  for (int i = 0; whole && i < SIDES; ++i) {
    s->window[i] = o3_layout_size(&w, 2 + i);
    whole = s->window[i] > 0 && s->window[i] == strides[i] && dilations[i] == 1 && !more[i] && !pads[i] &&
            !pads[SIDES + i];
  }
  return whole && s->inputs > 0 && s->outputs > 0;
}

/* The operand of |op| that is the image, when |op| computes each element from that and from single numbers;
 * or -1. Ops that make infinities of usual numbers are none: zeros of the second one's weights meet them, and
 * NaN would be in all places of a window. */
static int image_operand(MlirOperation op) {
  static const char *const NAMES[] = {"o3.add", "o3.sub", "o3.mul", "o3.div", "o3.max",  "o3.min",
                                      "o3.neg", "o3.abs", "o3.exp", "o3.erf", "o3.tanh", "o3.sigmoid"};
  bool takes = false;
  int image = -1;
  if (mlirOperationIsNull(op)) return -1;
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i) takes |= o3_op_is(op, NAMES[i]);
  MlirType type = takes ? mlirValueGetType(mlirOperationGetResult(op, 0)) : (MlirType){0};
  for (int i = 0; takes && i < mlirOperationGetNumOperands(op); ++i) {
    MlirType operand = mlirValueGetType(mlirOperationGetOperand(op, i));
    bool single = o3_type_is_static(operand) && o3_type_count(operand) == 1 && o3_type_rank(operand) <= RANK;
    if (single && o3_type_rank(operand) < RANK) continue;
    if (image >= 0 || !mlirTypeEqual(type, operand)) return -1;
    image = i;
  }
  if (image >= 0 && (o3_op_is(op, "o3.exp") || (o3_op_is(op, "o3.div") && image == 1))) return -1;
  return image;
}

static bool push(steps_t *steps, MlirOperation op, int image) {
  if (steps->count == MAX_STEPS) return false;
  steps->items[steps->count].op = op;
  steps->items[steps->count++].image = image;
  return true;
}

/* From the first one on. */
static bool follow(MlirOperation op, match_t *m) {
  *m = (match_t){.behind = {0}};
  if (!reads_spread(op, &m->first)) return false;
  MlirOperation user = o3_value_single_user(mlirOperationGetResult(op, 0));
  for (int image; (image = image_operand(user)) >= 0;) {
    if (!push(&m->between, user, image)) return false;
    user = o3_value_single_user(mlirOperationGetResult(user, 0));
  }
  if (!reads_spread(user, &m->second)) return false;
  user = o3_value_single_user(mlirOperationGetResult(user, 0));
  for (int image; (image = image_operand(user)) >= 0 && push(&m->behind, user, image);)
    user = o3_value_single_user(mlirOperationGetResult(user, 0));
  const int64_t *s = m->first.window, *t = m->second.window;
  return s[0] * s[1] <= MAX_PLACES && s[0] * s[1] * t[0] * t[1] * m->second.outputs <= O3_BLOCK_LANES;
}

/* ---- Building ---- */

static MlirType element_of(MlirValue value) { return o3_type_element(mlirValueGetType(value)); }

static MlirValue reshape(o3_layout_t *self, MlirValue value, int rank, const int64_t *sizes) {
  o3_shape_t shape = {.rank = rank};
  for (int i = 0; i < rank; ++i) shape.dims[i] = o3_expr_const(self->context, sizes[i]);
  return o3_layout_reshape(self, value, &shape);
}

/* Each of the |count| numbers |copies| times: one after the other, or all of them again and again. Null for
 * none. */
static MlirValue repeat(o3_layout_t *self, MlirOperation op, int64_t count, int64_t copies, bool together) {
  if (mlirOperationGetNumOperands(op) < 3) return (MlirValue){0};
  MlirValue b = mlirOperationGetOperand(op, 2);
  o3_shape_t wide = {.rank = 2};
  wide.dims[!together] = o3_expr_const(self->context, count);
  wide.dims[together] = o3_expr_const(self->context, copies);
  b = reshape(self, b, 2, together ? (int64_t[]){count, 1} : (int64_t[]){1, count});
  b = o3_layout_op(self, "o3.broadcast", &wide, element_of(b), 1, &b, 0, NULL);
  return reshape(self, b, 1, (int64_t[]){count * copies});
}

/* A convolution of single pixels. */
static MlirValue build_conv(o3_layout_t *self, MlirValue x, MlirValue w, MlirValue b, int64_t outputs) {
  const int64_t ones[] = {1, 1}, none[] = {0, 0, 0, 0};
  const MlirValue operands[] = {x, w, b};
  o3_shape_t shape = {0};
  bool known = o3_layout_shape(x, &shape);
  O3_ASSERT(known, "reads_spread has read the shape");
  shape.dims[1] = o3_expr_const(self->context, outputs);
  return o3_layout_op(self, "o3.conv", &shape, element_of(x), mlirValueIsNull(b) ? 2 : 3, operands,
                      O3_ATTRS({"strides", o3_attr_ints(self->context, SIDES, ones)},
                               {"dilations", o3_attr_ints(self->context, SIDES, ones)},
                               {"pads", o3_attr_ints(self->context, 2 * SIDES, none)},
                               {"group", o3_attr_i64(self->context, 1)}));
}

/* C M A B to (A, B, M) C 1 1. */
static MlirValue build_first(o3_layout_t *self, const spread_t *s) {
  int64_t places = s->window[0] * s->window[1], outputs = places * s->outputs;
  self->builder.location = mlirOperationGetLocation(s->op);
  MlirValue w = o3_layout_transpose(self, mlirOperationGetOperand(s->op, 1), (int64_t[]){2, 3, 1, 0});
  w = reshape(self, w, RANK, (int64_t[]){outputs, s->inputs, 1, 1});
  return build_conv(self, mlirOperationGetOperand(s->op, 0), w,
                    repeat(self, s->op, s->outputs, places, false), outputs);
}

/* M P T U to (P, A, T, B, U) (A, B, M) 1 1: the weights of place (a, b) begin at row a T and column b U. */
static MlirValue place_weights(o3_layout_t *self, const match_t *m) {
  const spread_t *s = &m->second;
  const int64_t *outer = m->first.window, *inner = s->window;
  int64_t rows = outer[0] * inner[0], columns = outer[1] * inner[1], places = outer[0] * outer[1];
  MlirValue parts[MAX_PLACES], w = mlirOperationGetOperand(s->op, 1);
  for (int64_t i = 0; i < places; ++i) {
    int64_t top = i / outer[1] * inner[0], left = i % outer[1] * inner[1];
    MlirValue part = o3_layout_pad_ends(self, w, 2, top, rows - inner[0] - top, 0);
    parts[i] = o3_layout_pad_ends(self, part, 3, left, columns - inner[1] - left, 0);
  }
  const int64_t sizes[] = {places * s->inputs, s->outputs, rows, columns};
  o3_shape_t shape = {.rank = RANK};
  for (int i = 0; i < RANK; ++i) shape.dims[i] = o3_expr_const(self->context, sizes[i]);
  w = places == 1 ? parts[0]
                  : o3_layout_op(self, "tensor.concat", &shape, element_of(w), (int)places, parts,
                                 O3_ATTRS({"dim", o3_attr_i64(self->context, 0)}));
  w = o3_layout_transpose(self, w, (int64_t[]){1, 2, 3, 0});
  return reshape(self, w, RANK, (int64_t[]){s->outputs * rows * columns, places * s->inputs, 1, 1});
}

static MlirValue build_second(o3_layout_t *self, const match_t *m, MlirValue x) {
  const spread_t *s = &m->second;
  int64_t places = m->first.window[0] * m->first.window[1] * s->window[0] * s->window[1];
  self->builder.location = mlirOperationGetLocation(s->op);
  return build_conv(self, x, place_weights(self, m), repeat(self, s->op, s->outputs, places, true),
                    s->outputs * places);
}

static MlirValue build_steps(o3_layout_t *self, const steps_t *steps, MlirValue x) {
  enum { MAX_OPERANDS = 2 };
  for (int i = 0; i < steps->count; ++i) {
    MlirOperation op = steps->items[i].op;
    MlirValue operands[MAX_OPERANDS];
    o3_shape_t shape = {0};
    int count = (int)mlirOperationGetNumOperands(op);
    bool known = count <= MAX_OPERANDS && o3_layout_shape(x, &shape);
    O3_ASSERT(known, "image_operand takes ops of one or two operands");
    for (int k = 0; k < count; ++k)
      operands[k] = k == steps->items[i].image ? x : mlirOperationGetOperand(op, k);
    self->builder.location = mlirOperationGetLocation(op);
    x = o3_layout_op(self, o3_op_name(op).data, &shape, element_of(x), count, operands, 0, NULL);
  }
  return x;
}

/* N (P, R, S) H W to N P (H R) (W S), of |full|. */
static MlirValue spread_pixels(o3_layout_t *self, const match_t *m, MlirValue x, const o3_shape_t *full) {
  o3_shape_t shape = {0}, wide = {.rank = RANK + SIDES};
  bool known = o3_layout_shape(x, &shape);
  O3_ASSERT(known, "build_conv says the shape");
  wide.dims[0] = shape.dims[0];
  wide.dims[1] = o3_expr_const(self->context, m->second.outputs);
  for (int i = 0; i < SIDES; ++i) {
    wide.dims[2 + i] = o3_expr_const(self->context, m->first.window[i] * m->second.window[i]);
    wide.dims[RANK + i] = shape.dims[2 + i];
  }
  x = o3_layout_reshape(self, x, &wide);
  return o3_layout_reshape(self, o3_layout_transpose(self, x, (int64_t[]){0, 1, 4, 2, 5, 3}), full);
}

static void join(o3_layout_t *self, const match_t *m) {
  const steps_t *behind = &m->behind;
  MlirOperation last = behind->count ? behind->items[behind->count - 1].op : m->second.op;
  o3_shape_t full;
  if (!o3_layout_shape(mlirOperationGetResult(last, 0), &full)) return;
  self->builder = o3_builder_before(last);
  MlirValue x = build_steps(self, &m->between, build_first(self, &m->first));
  x = build_steps(self, behind, build_second(self, m, x));
  x = spread_pixels(self, m, x, &full);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(last, 0), x);
}

/* What was read before stays for simplify to remove, as nobody reads it: the list of ops still has it. */
o3_status_t o3_rewrite_join_upsampling(o3_pass_env_t *env, MlirModule module) {
  MlirOperation main = o3_module_func(module, "main");
  if (mlirOperationIsNull(main) || !env->machine->kernels->channel_blocks) return NULL;
  MlirAttribute symbols = o3_op_attr(main, "o3.symbols");
  o3_layout_t self = {.env = env, .context = env->context};
  self.num_symbols = mlirAttributeIsNull(symbols) ? 0 : (int)mlirArrayAttrGetNumElements(symbols);
  o3_ptr_vec_t ops = o3_ptr_vec(env->arena);
  O3_TRY(o3_collect_ops(main, &ops));
  for (size_t i = 0; i < ops.count; ++i) {
    MlirOperation op = {.ptr = ops.items[i]};
    match_t m;
    if (o3_op_is(op, "o3.conv_transpose") && follow(op, &m)) join(&self, &m);
  }
  return NULL;
}
