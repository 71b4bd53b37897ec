/* Two products; what is done with the scores between the first one and its softmax is a linear function of a
 * score and of one mask, found by walking the bodies with a, b, c of a * score + b * mask + c (c changes no
 * softmax); behind the second one the result is rounded, and perhaps written in another order, which becomes
 * strides. Loops are known by the positions of the scores' dimensions, which both products name. Heads that
 * share keys and values are two loops, of groups and of their members, which K and V do not have. */
#include "target/nvptx/attention_site.h"

#include <math.h>
#include <string.h>

#include "fuse/mark_causal.h"
#include "schedule/gpu.h"
#include "target/cpu/nest.h"
#include "target/nvptx/attention_mma.h"
#include "target/nvptx/gemm_site.h"

/* Positions of the scores. */
enum { BATCH, HEAD, MEMBER, ROW, COLUMN, POSITIONS };
enum { NO_ARGUMENT = -1, MAX_BODY = 32, MAX_WIDTH = 1024 };
#define HIDDEN (-1e30) /* scores of so little have no probability beside others */

/* Of a score and the mask. */
typedef struct linear {
  double score, mask, constant;
  bool boolean, causal;    /* it is a mask of i1, and which one */
  bool selected, of_false; /* |hidden| took the place of scores where the mask is true, or false */
  double hidden;
} linear_t;

typedef struct reader {
  const o3_kernel_site_t *site;
  o3_nest_t *scores, *mixed, *other;
  const o3_nest_operand_t *q, *k, *v, *weights; /* weights: the probabilities that the second product reads */
  int first, softmax, last; /* ops: first product, first reduction of the softmax, second product */
  int at[POSITIONS];        /* position in the scores' shape; -1: of size 1 */
  int64_t members;          /* heads of a group */
  int width, depth;         /* loops of the second and of the first product */
  linear_t so_far;          /* what became of a score */
  MlirValue mask;
  MlirValue out;
  o3_gpu_attention_t a;
} reader_t;

static bool on_tensors(const reader_t *r) { return r->site->num_arguments < 0; }

static bool read_nest(const reader_t *r, int op, o3_nest_t *nest) {
  return on_tensors(r) ? o3_nest_read_any(r->site->ops[op], nest) : o3_nest_read(r->site->ops[op], nest);
}

static int dim_at(const o3_nest_operand_t *operand, int position) {
  MlirAffineExpr expr = operand->all_exprs[position];
  return mlirAffineExprIsADim(expr) ? (int)mlirAffineDimExprGetPosition(expr) : -1;
}

static bool reduces(const o3_nest_t *nest) {
  bool any = false;
  for (int d = 0; d < nest->num_dims; ++d) any |= nest->reduction[d];
  return any;
}

static bool is_used(const o3_nest_t *nest, int operand) {
  return !mlirOpOperandIsNull(mlirValueGetFirstUse(mlirBlockGetArgument(nest->body, operand)));
}

static bool is_fill(const o3_nest_t *nest) {
  bool used = false;
  for (int i = 0; i < nest->num_operands; ++i) used |= is_used(nest, i);
  return !used;
}

/* What |nest| writes: a tensor, or the buffer of whatever shape. */
static MlirValue written(const reader_t *r, const o3_nest_t *nest) {
  return on_tensors(r) ? mlirOperationGetResult(nest->op, 0)
                       : o3_kernel_site_base(nest->operands[nest->num_operands - 1].value);
}

static bool is_value(const reader_t *r, MlirValue value, MlirValue other) {
  return mlirValueEqual(on_tensors(r) ? value : o3_kernel_site_base(value), other);
}

/* ---- The ops ---- */

static const char *find_ops(reader_t *r) {
  r->first = r->softmax = r->last = -1;
  for (int i = 0; i < r->site->num_ops; ++i) {
    if (!read_nest(r, i, r->other)) return "an op is no loop nest on buffers";
    if (r->other->num_operands != r->other->num_inputs + 1) return "an op has several results";
    if (!reduces(r->other)) continue;
    bool product = r->other->num_inputs == 2;
    if (product && r->last >= 0) return "it has more than two products";
    if (product) *(r->first < 0 ? &r->first : &r->last) = i;
    if (!product && r->softmax < 0) r->softmax = i;
  }
  return r->first >= 0 && r->first < r->softmax && r->softmax < r->last
             ? NULL
             : "it is no product, softmax, product";
}

/* ---- The products ---- */

/* The input of the second product that an op of the kernel has made. */
static const char *find_weights(reader_t *r) {
  for (int i = r->softmax; i < r->last; ++i) {
    if (!read_nest(r, i, r->other)) return "an op is no loop nest on buffers";
    for (int k = 0; k < 2; ++k) {
      if (!is_value(r, r->mixed->operands[k].value, written(r, r->other))) continue;
      r->weights = &r->mixed->operands[k];
      r->v = &r->mixed->operands[1 - k];
    }
  }
  return r->weights ? NULL : "the second product does not read the probabilities";
}

/* Loops of one turn are none: products name the batch of one by a loop in the result alone. */
static int count_loops(const o3_nest_t *nest) {
  int count = 0;
  for (int d = 0; d < nest->num_dims; ++d) count += nest->sizes[d] != 1;
  return count;
}

static const char *place_position(reader_t *r, int position) {
  int inner = dim_at(r->weights, position);
  if (inner < 0 || dim_at(&r->scores->operands[2], position) < 0)
    return "the probabilities are not walked as the scores are";
  int64_t size = r->mixed->sizes[inner];
  if (size < 0) return "a size is known only at run time";
  bool column = r->mixed->reduction[inner], outer = !column && o3_nest_uses(r->v, inner);
  int which = column ? COLUMN : outer ? HEAD : ROW, outside = outer ? BATCH : MEMBER;
  int64_t *const sizes[POSITIONS] = {&r->a.batch, &r->a.heads, &r->members, &r->a.rows, &r->a.columns};
  if (r->at[which] >= 0) { /* the one that came first is the outer one */
    if (column || r->at[outside] >= 0) return "it has more than two loops of batches";
    r->at[outside] = r->at[which];
    *sizes[outside] = *sizes[which];
  }
  r->at[which] = position;
  *sizes[which] = size;
  return NULL;
}

static const char *place_positions(reader_t *r) {
  const o3_nest_operand_t *c = &r->scores->operands[2];
  int rank = c->num_terms, loops = 1;
  for (int i = 0; i < POSITIONS; ++i) r->at[i] = -1;
  r->a.batch = r->a.heads = r->a.rows = r->a.columns = r->members = 1;
  if (r->weights->num_terms != rank) return "the probabilities are not walked as the scores are";
  for (int p = 0; p < rank; ++p) {
    if (c->sizes[p] == 1) continue;
    const char *why = place_position(r, p);
    if (why) return why;
    ++loops;
  }
  if (count_loops(r->scores) != loops || count_loops(r->mixed) != loops)
    return "the products' loops are not those of scores, depth and width";
  if (r->at[MEMBER] >= 0 && r->at[BATCH] < 0) { /* one group a batch: then groups need not be evenly apart */
    r->at[BATCH] = r->at[HEAD];
    r->a.batch = r->a.heads;
    r->at[HEAD] = -1;
    r->a.heads = 1;
  }
  r->a.kv_heads = r->a.heads;
  r->a.heads *= r->members;
  return r->at[COLUMN] < 0 ? "the scores have no columns" : NULL;
}

static const char *find_loops(reader_t *r) {
  r->depth = r->width = -1;
  for (int d = 0; d < r->scores->num_dims; ++d) {
    if (r->scores->reduction[d]) r->depth = d;
  }
  for (int d = 0; d < r->mixed->num_dims; ++d) {
    if (!r->mixed->reduction[d] && r->mixed->sizes[d] != 1 && !o3_nest_uses(r->weights, d)) r->width = d;
  }
  if (r->depth < 0 || r->width < 0) return "a product has no depth or no width";
  int64_t depth = r->scores->sizes[r->depth], width = r->mixed->sizes[r->width];
  r->a.width = depth > 0 && depth <= MAX_WIDTH ? (int)depth : 0;
  r->a.value_width = width > 0 && width <= MAX_WIDTH ? (int)width : 0;
  return NULL;
}

/* The loop of |nest| at a position of the scores; -1: none. */
static int loop_at(const reader_t *r, const o3_nest_operand_t *scores, int which) {
  return r->at[which] < 0 ? -1 : dim_at(scores, r->at[which]);
}

/* Elements from a batch, a head and a row to the next; the width is contiguous. Outer loops of one turn have
 * any step that fits. */
static const char *read_strides(const o3_nest_operand_t *operand, const int loops[3], int inner, int width,
                                int64_t strides[3]) {
  int64_t step;
  if (!o3_nest_step(operand, inner, &step) || step != 1)
    return "a row of Q, K, V or the result is not contiguous";
  for (int i = 2; i >= 0; --i) {
    strides[i] = i == 2 ? width : strides[2];
    if (loops[i] >= 0 && !o3_nest_step(operand, loops[i], &strides[i]))
      return "an operand is not linear in the loops";
  }
  return NULL;
}

/* A head is a group and its member: |step| from a group to the next becomes that from a head to the next. */
static const char *join_heads(const reader_t *r, int64_t of_member, int64_t *step) {
  if (r->at[MEMBER] < 0) return NULL;
  if (r->at[HEAD] >= 0 && *step != r->members * of_member) return "the heads are not evenly apart";
  *step = of_member;
  return NULL;
}

static const char *join_q_heads(reader_t *r, int member) {
  int64_t step = 0;
  if (r->at[MEMBER] < 0) return NULL;
  if (member < 0 || o3_nest_uses(r->k, member) || !o3_nest_step(r->q, member, &step))
    return "the scores are no product of rows and columns";
  return join_heads(r, step, &r->a.q_strides[1]);
}

static const char *read_sources(reader_t *r) {
  const o3_nest_operand_t *c = &r->scores->operands[2];
  int row = loop_at(r, c, ROW), column = loop_at(r, c, COLUMN);
  bool swapped = o3_nest_uses(&r->scores->operands[0], column);
  r->q = &r->scores->operands[swapped];
  r->k = &r->scores->operands[!swapped];
  if (o3_nest_uses(r->q, column) || !o3_nest_uses(r->k, column) || (row >= 0 && o3_nest_uses(r->k, row)))
    return "the scores are no product of rows and columns";
  const int of_q[3] = {loop_at(r, c, BATCH), loop_at(r, c, HEAD), row};
  const int of_k[3] = {of_q[0], of_q[1], column};
  const int of_v[3] = {loop_at(r, r->weights, BATCH), loop_at(r, r->weights, HEAD),
                       loop_at(r, r->weights, COLUMN)};
  const char *why = read_strides(r->q, of_q, r->depth, r->a.width, r->a.q_strides);
  if (!why) why = read_strides(r->k, of_k, r->depth, r->a.width, r->a.k_strides);
  if (!why) why = read_strides(r->v, of_v, r->width, r->a.value_width, r->a.v_strides);
  if (!why) why = join_q_heads(r, loop_at(r, c, MEMBER));
  return why;
}

/* The argument that |value| is all of, or a part of: |offset| in elements. */
static int argument_of(const reader_t *r, MlirValue value, int64_t *offset) {
  int64_t strides[O3_IR_MAX_RANK];
  MlirType type = mlirValueGetType(value);
  MlirValue base = o3_kernel_site_base(value);
  MlirOperation def = o3_value_def(base);
  bool known = mlirLogicalResultIsSuccess(mlirMemRefTypeGetStridesAndOffset(type, strides, offset)) &&
               !mlirShapedTypeIsDynamicStrideOrOffset(*offset);
  if (!mlirOperationIsNull(def) && o3_op_is(def, "memref.subview")) base = mlirOperationGetOperand(def, 0);
  return known ? o3_kernel_site_argument(r->site, base) : -1;
}

static const char *read_elements(reader_t *r) {
  const o3_nest_operand_t *const sources[] = {r->q, r->k, r->v};
  for (int i = 0; i < 3; ++i) {
    o3_gpu_element_t element;
    bool known = o3_kernel_site_element(sources[i]->value, &element) && element != O3_GPU_F32;
    if (!known || (i && element != r->a.element)) return "Q, K and V are not of one of the types f16, bf16";
    r->a.element = element;
    int64_t offset = 0;
    if (!on_tensors(r) && argument_of(r, sources[i]->value, &offset) < 0)
      return "Q, K or V is computed in the kernel";
    r->a.offsets[i] = offset;
  }
  return NULL;
}

static const char *read_products(reader_t *r) {
  if (!read_nest(r, r->first, r->scores) || !read_nest(r, r->last, r->mixed))
    return "an op is no loop nest on buffers";
  if (!o3_gemm_multiplies_halves(r->scores) || !o3_gemm_multiplies_halves(r->mixed))
    return "it is no product of two factors in half precision";
  const char *why = find_weights(r);
  if (!why) why = place_positions(r);
  if (!why) why = find_loops(r);
  if (!why) why = read_sources(r);
  if (!why) why = read_elements(r);
  return why;
}

/* ---- What is done with the scores ---- */

typedef struct body {
  int count;
  struct {
    MlirValue value;
    linear_t linear;
  } known[MAX_BODY];
} body_t;

static bool constant_of(MlirValue value, double *number) {
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def) || !o3_op_is(def, "arith.constant")) return false;
  MlirAttribute attr = o3_op_attr(def, "value");
  bool splat = mlirAttributeIsADenseElements(attr) && mlirDenseElementsAttrIsSplat(attr);
  if (splat) attr = mlirDenseElementsAttrGetSplatValue(attr);
  if (!mlirAttributeIsAFloat(attr)) return false;
  *number = mlirFloatAttrGetValueDouble(attr);
  return true;
}

/* A tensor of one number: a constant, or the result of a fill. */
static bool is_number(MlirValue value, double *number) {
  MlirOperation def = o3_value_def(value);
  if (constant_of(value, number)) return true;
  if (mlirOperationIsNull(def) || !o3_op_is(def, "linalg.generic") || mlirOperationGetNumOperands(def) != 1)
    return false;
  MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(def, 0));
  return constant_of(mlirOperationGetOperand(mlirBlockGetTerminator(block), 0), number);
}

static bool find(const body_t *body, MlirValue value, linear_t *linear) {
  double number;
  for (int i = 0; i < body->count; ++i) {
    if (!mlirValueEqual(body->known[i].value, value)) continue;
    *linear = body->known[i].linear;
    return true;
  }
  if (!constant_of(value, &number)) return false;
  *linear = (linear_t){.constant = number};
  return true;
}

static bool know(body_t *body, MlirValue value, linear_t linear) {
  if (body->count == MAX_BODY) return false;
  body->known[body->count].value = value;
  body->known[body->count++].linear = linear;
  return true;
}

static linear_t combine(linear_t a, double times_a, linear_t b, double times_b) {
  return (linear_t){.score = a.score * times_a + b.score * times_b,
                    .mask = a.mask * times_a + b.mask * times_b,
                    .constant = a.constant * times_a + b.constant * times_b};
}

static bool is_constant(linear_t a) { return a.score == 0 && a.mask == 0; }

/* A constant in the place of some scores. */
static bool walk_select(body_t *body, MlirOperation op) {
  linear_t mask, values[2];
  if (!find(body, mlirOperationGetOperand(op, 0), &mask) || !mask.boolean) return false;
  for (int i = 0; i < 2; ++i) {
    if (!find(body, mlirOperationGetOperand(op, 1 + i), &values[i])) return false;
  }
  bool of_false = is_constant(values[1]);
  linear_t result = values[!of_false], hidden = values[of_false];
  if (!is_constant(hidden) || result.score == 0 || result.mask != 0 || result.selected) return false;
  if (mask.causal) {
    result.causal = true; /* hides_all */
    return know(body, mlirOperationGetResult(op, 0), result);
  }
  result.selected = true;
  result.of_false = of_false;
  result.hidden = hidden.constant;
  return know(body, mlirOperationGetResult(op, 0), result);
}

static bool is_masked(linear_t a) { return a.boolean || a.selected || a.causal; }

static bool walk_op(body_t *body, MlirOperation op) {
  linear_t a = {0}, b = {0}, result;
  intptr_t operands = mlirOperationGetNumOperands(op);
  if (o3_op_is(op, "arith.select")) return walk_select(body, op);
  bool rounds = o3_op_is(op, "arith.extf") || o3_op_is(op, "arith.truncf");
  if (o3_op_is(op, "arith.constant")) return true;
  if (operands < 1 || operands > 2 || !find(body, mlirOperationGetOperand(op, 0), &a)) return false;
  if (operands == 2 && !find(body, mlirOperationGetOperand(op, 1), &b)) return false;
  if (rounds)
    result = a;
  else if (is_masked(a) || is_masked(b))
    return false;
  else if (o3_op_is(op, "arith.negf"))
    result = combine(a, -1, b, 0);
  else if (o3_op_is(op, "arith.addf") || o3_op_is(op, "arith.subf"))
    result = combine(a, 1, b, o3_op_is(op, "arith.addf") ? 1 : -1);
  else if (o3_op_is(op, "arith.mulf") && (is_constant(a) || is_constant(b)))
    result = is_constant(b) ? combine(a, b.constant, b, 0) : combine(b, a.constant, a, 0);
  else if (o3_op_is(op, "arith.divf") && is_constant(b))
    result = combine(a, 1 / b.constant, b, 0);
  else
    return false;
  return know(body, mlirOperationGetResult(op, 0), result);
}

static bool is_boolean(MlirValue value) { return o3_type_is_bool(o3_type_element(mlirValueGetType(value))); }

static const char *read_mask(reader_t *r, const o3_nest_operand_t *operand) {
  const o3_nest_operand_t *out = &r->other->operands[r->other->num_operands - 1];
  int64_t steps[POSITIONS] = {0};
  bool again = !mlirValueIsNull(r->mask);
  if (again && !is_value(r, operand->value, r->mask)) return "the scores have two masks";
  if (!o3_kernel_site_element(operand->value, &r->a.mask_element) && !is_boolean(operand->value))
    return "the mask is none of i1, f16, bf16, f32";
  for (int i = 0; i < POSITIONS; ++i) {
    int loop = loop_at(r, out, i);
    if (loop >= 0 && !o3_nest_step(operand, loop, &steps[i])) return "the mask is not linear in the loops";
  }
  if (steps[COLUMN] != 1 && r->a.columns > 1) return "the mask is not contiguous along the columns";
  if (!on_tensors(r) && o3_kernel_site_argument(r->site, operand->value) < 0)
    return "the mask is computed in the kernel";
  const char *why = join_heads(r, steps[MEMBER], &steps[HEAD]);
  if (why) return why;
  const int64_t strides[3] = {steps[BATCH], steps[HEAD], steps[ROW]};
  if (again && memcmp(r->a.mask_strides, strides, sizeof(strides)) != 0)
    return "the scores have a mask that is read in two ways";
  r->mask = on_tensors(r) ? operand->value : o3_kernel_site_base(operand->value);
  memcpy(r->a.mask_strides, strides, sizeof(strides));
  return NULL;
}

/* What stands in the body for a number: a constant, or an argument whose operand is one. */
static bool is_number_of(const reader_t *r, MlirValue value, double *number) {
  if (constant_of(value, number)) return true;
  if (!mlirValueIsABlockArgument(value)) return false;
  return is_number(r->other->operands[mlirBlockArgumentGetArgNumber(value)].value, number);
}

/* Whether all that a mask does is to put numbers of at most HIDDEN where it is false. */
static bool hides_all(const reader_t *r, int index) {
  MlirOpOperand use = mlirValueGetFirstUse(mlirBlockGetArgument(r->other->body, index));
  for (double number; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation op = mlirOpOperandGetOwner(use);
    if (!o3_op_is(op, "arith.select") || mlirOpOperandGetOperandNumber(use) != 0) return false;
    if (!is_number_of(r, mlirOperationGetOperand(op, 2), &number) || !(number <= HIDDEN)) return false;
  }
  return true;
}

/* The fuse stage has found that this mask shows what is not above the diagonal of the scores. */
static bool is_up_to_diagonal(const reader_t *r, int index) {
  const o3_nest_operand_t *operand = &r->other->operands[index];
  const o3_nest_operand_t *out = &r->other->operands[r->other->num_operands - 1];
  int64_t places[2];
  int booleans = 0;
  for (int i = 0; i < r->other->num_inputs; ++i) booleans += is_boolean(r->other->operands[i].value);
  if (!is_boolean(operand->value) || booleans != 1 ||
      o3_op_ints(r->other->op, O3_UP_TO_DIAGONAL, places, 2) != 2)
    return false;
  return r->a.rows == r->a.columns && r->a.rows > 1 && hides_all(r, index) &&
         dim_at(operand, (int)places[0]) == loop_at(r, out, ROW) &&
         dim_at(operand, (int)places[1]) == loop_at(r, out, COLUMN);
}

static const char *read_operand(reader_t *r, body_t *body, int index, MlirValue before) {
  const o3_nest_operand_t *operand = &r->other->operands[index];
  double number;
  linear_t linear = {0};
  if (!is_used(r->other, index)) return NULL;
  if (is_value(r, operand->value, before)) {
    linear = r->so_far;
  } else if (is_up_to_diagonal(r, index)) {
    linear.boolean = linear.causal = true;
  } else if (is_number(operand->value, &number)) {
    linear.constant = number;
  } else {
    const char *why = read_mask(r, operand);
    if (why) return why;
    linear.mask = 1;
    linear.boolean = is_boolean(operand->value);
  }
  return know(body, mlirBlockGetArgument(r->other->body, index), linear) ? NULL
                                                                         : "an op on the scores is too long";
}

/* |before|: what the op before it wrote. */
static const char *read_side(reader_t *r, MlirValue before) {
  body_t body = {0};
  const o3_nest_operand_t *out = &r->other->operands[r->other->num_operands - 1];
  if (out->num_terms != r->scores->operands[2].num_terms)
    return "an op on the scores has another shape than they";
  for (int i = 0; i < r->other->num_operands; ++i) {
    const char *why = read_operand(r, &body, i, before);
    if (why) return why;
  }
  MlirOperation end = mlirBlockGetTerminator(r->other->body), op = mlirBlockGetFirstOperation(r->other->body);
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op)) {
    if (!walk_op(&body, op)) return "the scores are changed by more than a factor and a mask that is added";
  }
  return find(&body, mlirOperationGetOperand(end, 0), &r->so_far) ? NULL
                                                                  : "an op on the scores yields no score";
}

static const char *read_sides(reader_t *r) {
  MlirValue before = written(r, r->scores);
  r->so_far = (linear_t){.score = 1};
  for (int i = r->first + 1; i < r->softmax; ++i) {
    if (!read_nest(r, i, r->other)) return "an op is no loop nest on buffers";
    if (is_fill(r->other)) continue;
    const char *why = read_side(r, before);
    if (why) return why;
    before = written(r, r->other);
  }
  if (r->so_far.selected && r->so_far.constant != 0 && isfinite(r->so_far.hidden))
    return "a number is added to scores of which a mask hides some";
  r->a.scale = r->so_far.score;
  r->a.causal = r->so_far.causal;
  r->a.masked = r->so_far.mask != 0 || r->so_far.selected;
  r->a.mask_factor = r->so_far.mask;
  r->a.mask_selects = r->so_far.selected;
  r->a.mask_hides_false = r->so_far.of_false;
  r->a.mask_hidden = r->so_far.hidden;
  return NULL;
}

/* ---- The result ---- */

static bool only_rounds(const o3_nest_t *nest) {
  MlirOperation end = mlirBlockGetTerminator(nest->body), op = mlirBlockGetFirstOperation(nest->body);
  bool rounds = true;
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op))
    rounds &= o3_op_is(op, "arith.truncf") || o3_op_is(op, "arith.extf");
  return rounds;
}

/* An op behind the second product; |places|: where each of its dimensions is by now. */
static const char *read_behind(reader_t *r, int places[O3_IR_MAX_RANK], int rank) {
  const o3_nest_t *nest = r->other;
  const o3_nest_operand_t *in = NULL, *out = &nest->operands[nest->num_operands - 1];
  for (int i = 0; i < nest->num_operands; ++i) {
    if (is_used(nest, i) && in) return "the result is combined with something";
    if (is_used(nest, i)) in = &nest->operands[i];
  }
  if (!in || !is_value(r, in->value, r->out) || !only_rounds(nest) || in->num_terms != rank ||
      out->num_terms != rank)
    return "the result is more than rounded";
  int moved[O3_IR_MAX_RANK];
  for (int p = 0; p < rank; ++p) {
    int loop = dim_at(in, p);
    moved[p] = in->sizes[p] == 1 ? p : -1;
    for (int q = 0; q < rank && loop >= 0; ++q) {
      if (dim_at(out, q) == loop) moved[p] = q;
    }
    if (moved[p] < 0) return "the result is written in no order of its dimensions";
  }
  for (int p = 0; p < rank; ++p) places[p] = moved[places[p]];
  r->out = written(r, nest);
  return NULL;
}

/* |in_product|: the second product's result; |places|: where its dimensions are in |out|. */
static const char *read_out_strides(reader_t *r, const o3_nest_operand_t *in_product, const int *places,
                                    const o3_nest_operand_t *out) {
  enum { WIDTH = 3, OF_MEMBER, LOOPS };
  const int loops[LOOPS] = {loop_at(r, r->weights, BATCH), loop_at(r, r->weights, HEAD),
                            loop_at(r, r->weights, ROW), r->width, loop_at(r, r->weights, MEMBER)};
  int64_t strides[LOOPS] = {0, 0, r->a.value_width, 0, 0};
  for (int i = 0; i < LOOPS; ++i) {
    for (int p = 0; p < in_product->num_terms; ++p) {
      if (loops[i] >= 0 && dim_at(in_product, p) == loops[i]) strides[i] = out->strides[places[p]];
    }
  }
  if (strides[WIDTH] != 1) return "a row of Q, K, V or the result is not contiguous";
  for (int i = 0; i < 3; ++i) r->a.o_strides[i] = loops[i] < 0 ? strides[2] : strides[i];
  return join_heads(r, strides[OF_MEMBER], &r->a.o_strides[1]);
}

static const char *read_result(reader_t *r) {
  const o3_nest_operand_t *c = &r->mixed->operands[2];
  o3_gpu_element_t element;
  int places[O3_IR_MAX_RANK];
  for (int p = 0; p < c->num_terms; ++p) places[p] = p;
  r->out = written(r, r->mixed);
  *r->other = *r->mixed;
  for (int i = r->last + 1; i < r->site->num_ops; ++i) {
    if (!read_nest(r, i, r->other)) return "an op is no loop nest on buffers";
    const char *why = read_behind(r, places, c->num_terms);
    if (why) return why;
  }
  if (!on_tensors(r) && o3_kernel_site_argument(r->site, r->out) < 0) return "its result is no argument";
  if (!o3_kernel_site_element(r->out, &element) || element != r->a.element)
    return "its result is not of the type of Q, K and V";
  return read_out_strides(r, c, places, &r->other->operands[r->other->num_operands - 1]);
}

/* ---- The kernel ---- */

static const char *read_all(reader_t *r) {
  const char *why = find_ops(r);
  if (!why) why = read_products(r);
  if (!why) why = read_sides(r);
  if (!why) why = read_result(r);
  if (!why) why = o3_gpu_attention_refuse_shape(&r->a);
  if (!why) o3_gpu_attention_join_rows(&r->a);
  return why;
}

static reader_t *create_reader(const o3_kernel_site_t *site) {
  reader_t *r = O3_ARENA_NEW(site->arena, reader_t);
  if (!r) return NULL;
  *r = (reader_t){.site = site,
                  .scores = O3_ARENA_NEW(site->arena, o3_nest_t),
                  .mixed = O3_ARENA_NEW(site->arena, o3_nest_t),
                  .other = O3_ARENA_NEW(site->arena, o3_nest_t)};
  return r->scores && r->mixed && r->other ? r : NULL;
}

const char *o3_attention_refuse_ops(o3_arena_t *arena, const o3_gpu_t *gpu, int num_ops,
                                    const MlirOperation *ops) {
  const o3_kernel_site_t site = {
      .arena = arena, .gpu = gpu, .num_ops = num_ops, .ops = ops, .num_arguments = NO_ARGUMENT};
  reader_t *r = create_reader(&site);
  if (!r) return "memory is out";
  const char *why = read_all(r);
  if (why) return why;
  bool warpgroups = (gpu->matrix & O3_GPU_WGMMA) && !o3_gpu_attention_refuse(&r->a);
  return warpgroups ? NULL : o3_gpu_attention_mma_refuse(&r->a, gpu);
}

/* The kernel numbers its buffers Q, K, V, the mask if there is one, the result; the site's are its arguments.
 */
static void number_arguments(const reader_t *r, o3_gpu_kernel_t *kernel) {
  const MlirValue buffers[] = {r->q->value, r->k->value, r->v->value, r->a.masked ? r->mask : r->out, r->out};
  for (int i = 0; i < kernel->num_arguments; ++i) {
    o3_gpu_argument_t *argument = &kernel->arguments[i];
    int64_t offset;
    bool source = argument->buffer < 3;
    MlirValue value = buffers[argument->buffer];
    argument->buffer = source ? argument_of(r, value, &offset) : o3_kernel_site_argument(r->site, value);
    if (argument->kind == O3_GPU_ARG_TENSOR_MAP && source)
      argument->offset = offset * o3_gpu_element_info(r->a.element)->bytes;
  }
}

/* |why_not| without a reader's fault: the family goes on with |*reader|. */
static o3_status_t read_site(const o3_kernel_site_t *site, reader_t **reader, const char **why_not) {
  *why_not = "it is no attention";
  if (!site->kind.data || !o3_str_equal(site->kind, "attention")) return NULL;
  *reader = create_reader(site);
  O3_TRY_ALLOC(*reader);
  *why_not = read_all(*reader);
  (*reader)->a.multiprocessors = site->multiprocessors;
  return NULL;
}

o3_status_t o3_attention_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not) {
  reader_t *r = NULL;
  *kernel = (o3_gpu_kernel_t){0};
  O3_TRY(read_site(site, &r, why_not));
  if (!*why_not) *why_not = o3_gpu_attention_refuse(&r->a);
  if (!*why_not && o3_gpu_attention_is_for_warps(&r->a, site->gpu))
    *why_not = "its rows are too few for warpgroups";
  if (*why_not) return NULL;
  o3_gpu_attention_schedule(&r->a);
  O3_TRY(o3_gpu_attention_build(&r->a, kernel));
  number_arguments(r, kernel);
  return NULL;
}

o3_status_t o3_attention_mma_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel,
                                  const char **why_not) {
  reader_t *r = NULL;
  *kernel = (o3_gpu_kernel_t){0};
  O3_TRY(read_site(site, &r, why_not));
  if (!*why_not) *why_not = o3_gpu_attention_mma_refuse(&r->a, site->gpu);
  if (*why_not) return NULL;
  const o3_attention_warps_t p = o3_gpu_attention_mma_schedule(&r->a, site->gpu);
  O3_TRY(o3_gpu_attention_mma_build(&r->a, &p, site->gpu, kernel));
  O3_GPU_KERNEL_NOTE(kernel, {"warps", p.warps}, {"rows", p.rows}, {"columns", p.columns},
                     {"slices", p.slices}, {"stages", p.stages}, {"split", p.split});
  number_arguments(r, kernel);
  return NULL;
}
