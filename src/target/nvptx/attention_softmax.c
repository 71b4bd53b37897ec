/* A thread has two rows of a block of scores, of 8 columns a pair of neighbours each. The powers of two are
 * the narrow place of narrow heads: MUFU gives 16 a cycle, while the tensor cores want as many scores. What
 * probabilities are relative to may lag behind the greatest score by 2^8, which spares most rescaling: halves
 * hold such probabilities as exactly as those up to 1. */
#include "target/nvptx/attention_text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#define CHAINS    2   /* of maxima in a row: their latency is longer than the pipe's time */
#define THRESHOLD 8.0 /* log2 */

typedef o3_attention_writer_t writer_t;
typedef o3_attention_consumer_t consumer_t;
typedef o3_attention_state_t state_t;

static int f32(o3_kernel_text_t *t, const char *value) {
  return o3_kt_value(t, "arith.constant %s : f32", value);
}

int o3_attention_number(o3_kernel_text_t *t, double value) {
  char text[32];
  if (isinf(value))
    snprintf(text, sizeof(text), "%s", value > 0 ? "0x7F800000" : "0xFF800000");
  else
    snprintf(text, sizeof(text), "%.9e", value);
  return f32(t, text);
}

static int number(o3_kernel_text_t *t, double value) { return o3_attention_number(t, value); }

int o3_attention_binary(o3_kernel_text_t *t, const char *op, int a, int b) {
  return o3_kt_value(t, "arith.%s %%v%d, %%v%d : f32", op, a, b);
}

static int binary(o3_kernel_text_t *t, const char *op, int a, int b) {
  return o3_attention_binary(t, op, a, b);
}

static int multiply_add(o3_kernel_text_t *t, int a, int b, int c) {
  return o3_kt_value(t, "math.fma %%v%d, %%v%d, %%v%d : f32", a, b, c);
}

int o3_attention_over_row(writer_t *w, const char *op, int value) {
  o3_kernel_text_t *t = w->t;
  for (int i = 0; i < 2; ++i) {
    int all = o3_kt_i32(t, -1), distance = o3_kt_i32(t, w->row_lanes[i]), last = o3_kt_i32(t, 31);
    int other = o3_kt_value(t, "nvvm.shfl.sync bfly %%v%d, %%v%d, %%v%d, %%v%d : f32 -> f32", all, value,
                            distance, last);
    value = binary(t, op, value, other);
  }
  return value;
}

int o3_attention_pack(writer_t *w, int low, int high) {
  o3_kernel_text_t *t = w->t;
  const char *type = o3_gpu_element_info(w->a->element)->mlir;
  int a = o3_kt_value(t, "arith.truncf %%v%d : f32 to %s", low, type);
  int b = o3_kt_value(t, "arith.truncf %%v%d : f32 to %s", high, type);
  int pair = o3_kt_value(t, "vector.from_elements %%v%d, %%v%d : vector<2x%s>", a, b, type);
  return o3_kt_value(t, "llvm.bitcast %%v%d : vector<2x%s> to i32", pair, type);
}

/* ---- Masks ---- */

/* The column of the tensor of score |i|. */
static int column_of(writer_t *w, const consumer_t *c, int step, int i) {
  o3_kernel_text_t *t = w->t;
  int block = o3_kt_op(t, "subi", o3_kt_op_const(t, "addi", w->steps, -1), step);
  int first = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", block, w->s->columns), c->pair);
  return o3_kt_op_const(t, "addi", first, i / 4 * 8 + i % 2);
}

static void cut(writer_t *w, const consumer_t *c, int step, int *scores) {
  o3_kernel_text_t *t = w->t;
  int lowest = f32(t, "0xFF800000");
  for (int i = 0; i < w->s->columns / 2; ++i) {
    int column = column_of(w, c, step, i), row = o3_kt_op_const(t, "addi", c->row, i % 4 / 2 * w->row_step),
        keep;
    if (w->a->causal)
      keep = o3_kt_cmp(t, "sle", column, row);
    else
      keep = o3_kt_cmp_const(t, "slt", column, w->a->columns);
    scores[i] = o3_kt_select(t, keep, scores[i], lowest, "f32");
  }
}

/* The mask's element of the row that is |down| below the thread's first: f32, or i1 of what is hidden. */
static int mask_at(writer_t *w, const consumer_t *c, int base, int column, int down) {
  o3_kernel_text_t *t = w->t;
  const int64_t *strides = w->a->mask_strides;
  const char *type = w->a->mask_selects ? "i8" : o3_gpu_element_info(w->a->mask_element)->mlir;
  int at = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", w->batch, strides[0]),
                    o3_kt_op_const(t, "muli", w->head, strides[1]));
  int row = o3_kt_op_const(t, "minsi", o3_kt_op_const(t, "addi", c->row, down), w->a->rows - 1);
  at = o3_kt_op(t, "addi", at, o3_kt_op_const(t, "muli", row, strides[2]));
  int place = o3_kt_global(t, base, o3_kt_op(t, "addi", at, column), type);
  int value = o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<1> -> %s", place, type);
  if (w->a->mask_selects) {
    int zero = o3_kt_value(t, "arith.constant 0 : i8");
    return o3_kt_value(t, "arith.cmpi %s, %%v%d, %%v%d : i8", w->a->mask_hides_false ? "eq" : "ne", value,
                       zero);
  }
  if (w->a->mask_element != O3_GPU_F32) value = o3_kt_value(t, "arith.extf %%v%d : %s to f32", value, type);
  return w->a->mask_factor == 1 ? value : binary(t, "mulf", value, number(t, w->a->mask_factor));
}

static int masked(writer_t *w, int score, int scale, int mask) {
  o3_kernel_text_t *t = w->t;
  if (!w->a->mask_selects) return multiply_add(t, score, scale, mask);
  return o3_kt_select(t, mask, number(t, w->a->mask_hidden), binary(t, "mulf", score, scale), "f32");
}

/* Scales the scores and adds the mask, or puts what stands for hidden scores. Its numbers may be the lowest
 * there are, which no factor must touch after this. */
static void add_mask(writer_t *w, const consumer_t *c, int step, int *scores) {
  o3_kernel_text_t *t = w->t;
  bool by_rows = w->a->mask_strides[2] != 0;
  int scale = number(t, w->a->scale);
  int base = o3_kt_value(t, "llvm.getelementptr %%arg3[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8");
  for (int i = 0; i < w->s->columns / 2; i += 4) {
    for (int k = 0; k < 2; ++k) {
      int column = o3_kt_op_const(t, "minsi", column_of(w, c, step, i + k), w->a->columns - 1);
      int first = mask_at(w, c, base, column, 0),
          second = by_rows ? mask_at(w, c, base, column, w->row_step) : first;
      scores[i + k] = masked(w, scores[i + k], scale, first);
      scores[i + k + 2] = masked(w, scores[i + k + 2], scale, second);
    }
  }
}

void o3_attention_limit(writer_t *w, const consumer_t *c, int step, bool cuts, int *scores) {
  if (w->a->masked) add_mask(w, c, step, scores);
  if (cuts) cut(w, c, step, scores);
}

/* ---- Powers ---- */

static int exp2_of(o3_kernel_text_t *t, int x) {
  return o3_kt_value(t, "llvm.inline_asm \"ex2.approx.ftz.f32 $0, $1;\", \"=f,f\" %%v%d : (f32) -> f32", x);
}

/* The exponent of |x| relative to |reference|, by one FMA where that cannot overflow. */
static int exponent_of(writer_t *w, const consumer_t *c, int x, int reference) {
  if (!w->a->masked) return multiply_add(w->t, x, c->factor, reference);
  return binary(w->t, "mulf", binary(w->t, "subf", x, reference), c->factor);
}

/* ---- Softmax ---- */

static int reference_of(writer_t *w, const consumer_t *c, int largest) {
  return w->a->masked ? largest : binary(w->t, "mulf", largest, c->opposed);
}

int o3_attention_larger(writer_t *w, int a, int b) {
  return binary(w->t, w->a->masked ? "maxnumf" : "minnumf", a, b);
}

int o3_attention_moved(writer_t *w, const consumer_t *c, int before, int after) {
  o3_kernel_text_t *t = w->t;
  if (!w->a->masked) return exp2_of(t, binary(t, "subf", after, before));
  return exp2_of(t, binary(t, "mulf", binary(t, "subf", before, after), c->factor));
}

/* The largest of the thread's scores of a row. */
static int own_largest(writer_t *w, const int *scores, int row) {
  int chains[CHAINS], count = w->s->columns / 4;
  for (int i = 0; i < count; ++i) {
    int score = scores[i / 2 * 4 + 2 * row + i % 2], *chain = &chains[i % CHAINS];
    *chain = i < CHAINS ? score : binary(w->t, "maxnumf", *chain, score);
  }
  for (int i = 1; i < CHAINS; ++i) chains[0] = binary(w->t, "maxnumf", chains[0], chains[i]);
  return chains[0];
}

/* The powers of a row's scores, and their sum. */
static int powers(writer_t *w, const consumer_t *c, int *scores, int row, int reference) {
  o3_kernel_text_t *t = w->t;
  int total = -1;
  for (int i = 0; i < w->s->columns / 4; ++i) {
    int *score = &scores[i / 2 * 4 + 2 * row + i % 2];
    *score = exp2_of(t, exponent_of(w, c, *score, reference));
    total = total < 0 ? *score : binary(t, "addf", total, *score);
  }
  return total;
}

/* Relative to the greatest score of the first block. A mask may be infinite in all of its columns: relative
 * to a finite number, their probabilities are 0. */
static void softmax_first(writer_t *w, const consumer_t *c, state_t *s) {
  o3_kernel_text_t *t = w->t;
  for (int row = 0; row < 2; ++row) {
    int largest = o3_attention_over_row(w, "maxnumf", own_largest(w, s->scores, row));
    if (w->a->masked) largest = binary(t, "maxnumf", largest, number(t, -FLT_MAX));
    s->reference[row] = reference_of(w, c, largest);
    s->rescale[row] = f32(t, "1.0");
    s->total[row] = powers(w, c, s->scores, row, s->reference[row]);
  }
  s->grown = o3_kt_value(t, "arith.constant false");
}

/* Whether a thread of the warp has a score far above its row's reference. */
static int is_far(writer_t *w, const consumer_t *c, const state_t *s, const int largest[2]) {
  o3_kernel_text_t *t = w->t;
  int limit = number(t, THRESHOLD), far[2];
  for (int row = 0; row < 2; ++row)
    far[row] = o3_kt_value(t, "arith.cmpf ogt, %%v%d, %%v%d : f32",
                           exponent_of(w, c, largest[row], s->reference[row]), limit);
  int either = o3_kt_value(t, "arith.ori %%v%d, %%v%d : i1", far[0], far[1]);
  int mine = o3_kt_value(t, "arith.extui %%v%d : i1 to i32", either);
  int any = o3_kt_value(
      t,
      "llvm.inline_asm has_side_effects \"{ .reg .pred p; setp.ne.u32 p, $1, 0; vote.sync.any.pred p, p, -1; "
      "selp.u32 $0, 1, 0, p; }\", \"=r,r\" %%v%d : (i32) -> i32",
      mine);
  return o3_kt_cmp_const(t, "ne", any, 0);
}

/* Opens scf.if with |count| results of f32 and gives the first's number; the others follow. */
static int open_if(o3_kernel_text_t *t, int condition, int count) {
  int first = t->next;
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s%%v%d", i ? ", " : "", o3_kt_name(t));
  o3_strbuf_printf(&t->out, " = scf.if %%v%d -> (", condition);
  for (int i = 0; i < count; ++i) o3_strbuf_puts(&t->out, i ? ", f32" : "f32");
  o3_kt_line(t, ") {");
  return first;
}

static void yield(o3_kernel_text_t *t, int count, const int *values) {
  o3_strbuf_puts(&t->out, "scf.yield ");
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s%%v%d", i ? ", " : "", values[i]);
  o3_strbuf_puts(&t->out, " : f32");
  for (int i = 1; i < count; ++i) o3_strbuf_puts(&t->out, ", f32");
  o3_strbuf_puts(&t->out, "\n");
}

enum { MOVED = 4 }; /* two references, two factors */

/* New references and what they mean for the sums, in |moved|. */
static void move_references(writer_t *w, const consumer_t *c, const state_t *s, const int largest[2],
                            int moved[MOVED]) {
  for (int row = 0; row < 2; ++row) {
    int reference = reference_of(w, c, o3_attention_over_row(w, "maxnumf", largest[row]));
    moved[row] = o3_attention_larger(w, reference, s->reference[row]);
    moved[2 + row] = o3_attention_moved(w, c, s->reference[row], moved[row]);
  }
}

static void keep_references(writer_t *w, const state_t *s, int moved[MOVED]) {
  moved[0] = s->reference[0], moved[1] = s->reference[1];
  moved[2] = moved[3] = f32(w->t, "1.0");
}

static void softmax_lazily(writer_t *w, const consumer_t *c, state_t *s) {
  o3_kernel_text_t *t = w->t;
  int largest[2], moved[MOVED];
  for (int row = 0; row < 2; ++row) largest[row] = own_largest(w, s->scores, row);
  s->grown = is_far(w, c, s, largest);
  int first = open_if(t, s->grown, MOVED);
  move_references(w, c, s, largest, moved);
  yield(t, MOVED, moved);
  o3_kt_else(t);
  keep_references(w, s, moved);
  yield(t, MOVED, moved);
  o3_kt_end(t);
  for (int row = 0; row < 2; ++row) {
    s->reference[row] = first + row;
    s->rescale[row] = first + 2 + row;
    int total = powers(w, c, s->scores, row, s->reference[row]);
    s->total[row] = multiply_add(t, s->total[row], s->rescale[row], total);
  }
}

/* The powers relative to the references so far are there when it turns out, seldom, that they are not wanted.
 */
static void softmax_speculating(writer_t *w, const consumer_t *c, state_t *s) {
  o3_kernel_text_t *t = w->t;
  int count = w->s->columns / 2, largest[2];
  int guessed[O3_ATTENTION_MAX_SCORES + 2 + MOVED], moved[O3_ATTENTION_MAX_SCORES + 2 + MOVED];
  for (int i = 0; i < count; ++i) guessed[i] = moved[i] = s->scores[i];
  for (int row = 0; row < 2; ++row) {
    largest[row] = own_largest(w, s->scores, row);
    guessed[count + row] = powers(w, c, guessed, row, s->reference[row]);
  }
  s->grown = is_far(w, c, s, largest);
  int first = open_if(t, s->grown, count + 2 + MOVED);
  move_references(w, c, s, largest, moved + count + 2);
  for (int row = 0; row < 2; ++row) moved[count + row] = powers(w, c, moved, row, moved[count + 2 + row]);
  yield(t, count + 2 + MOVED, moved);
  o3_kt_else(t);
  keep_references(w, s, guessed + count + 2);
  yield(t, count + 2 + MOVED, guessed);
  o3_kt_end(t);
  for (int i = 0; i < count; ++i) s->scores[i] = first + i;
  for (int row = 0; row < 2; ++row) {
    s->reference[row] = first + count + 2 + row;
    s->rescale[row] = first + count + 4 + row;
    s->total[row] = multiply_add(t, s->total[row], s->rescale[row], first + count + row);
  }
}

void o3_attention_begin(writer_t *w, state_t *s) {
  o3_kernel_text_t *t = w->t;
  int lowest = number(t, w->a->masked ? -FLT_MAX : FLT_MAX), zero = number(t, 0), one = number(t, 1);
  for (int row = 0; row < 2; ++row) {
    s->reference[row] = lowest;
    s->total[row] = zero;
    s->rescale[row] = one;
  }
}

void o3_attention_softmax(writer_t *w, const consumer_t *c, bool first, state_t *s) {
  if (first)
    softmax_first(w, c, s);
  else if (w->s->speculates)
    softmax_speculating(w, c, s);
  else
    softmax_lazily(w, c, s);
}

/* ---- Sums as a struct ---- */

void o3_attention_members(o3_kernel_text_t *t, int count, int sums, int *values) {
  for (int i = 0; i < count; ++i) values[i] = o3_kt_member(t, count, sums, i);
}

int o3_attention_zeros(o3_kernel_text_t *t, int count) {
  int values[O3_ATTENTION_MAX_SCORES], zero = number(t, 0);
  for (int i = 0; i < count; ++i) values[i] = zero;
  return o3_kt_struct(t, count, values);
}

static int rescaled(writer_t *w, int count, int output, const int rescale[2]) {
  int values[O3_ATTENTION_MAX_SCORES];
  o3_attention_members(w->t, count, output, values);
  for (int i = 0; i < count; ++i) values[i] = binary(w->t, "mulf", values[i], rescale[i % 4 / 2]);
  return o3_kt_struct(w->t, count, values);
}

int o3_attention_rescale(writer_t *w, int count, int output, const state_t *s) {
  o3_kernel_text_t *t = w->t;
  int result = o3_kt_value(t, "scf.if %%v%d -> (!sums%d) {", s->grown, count);
  int changed = rescaled(w, count, output, s->rescale);
  o3_kt_line(t, "scf.yield %%v%d : !sums%d", changed, count);
  o3_kt_else(t);
  o3_kt_line(t, "scf.yield %%v%d : !sums%d", output, count);
  o3_kt_end(t);
  return result;
}
