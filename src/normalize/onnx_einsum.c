/* Einsum: repeated letters become diagonals, then operands are joined two at a time, left to right, each time
 * as a matrix product over the letters that nothing behind needs any more. */
#include <string.h>

#include "normalize/nz_attention.h"

/* Letters are numbers: 0..51 for the alphabet in ASCII order, from 52 on the dimensions of `...`, counted so
 * that the last ones of all operands have the same number. */
enum { LETTERS = 52, MAX_LABELS = LETTERS + O3_IR_MAX_RANK };

typedef struct term {
  MlirValue value;
  int count;
  int labels[O3_IR_MAX_RANK];
} term_t;

typedef struct einsum {
  const char *equation;
  int num_terms;
  term_t terms[O3_NODE_MAX_INPUTS];
  term_t output;
  int uses[MAX_LABELS]; /* in the operands of the equation */
} einsum_t;

static int position_of(const term_t *term, int label) {
  for (int i = 0; i < term->count; ++i) {
    if (term->labels[i] == label) return i;
  }
  return -1;
}

static bool has(const term_t *term, int label) { return position_of(term, label) >= 0; }

/* ---- Reading the equation ---- */

static int letter(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  return c >= 'a' && c <= 'z' ? 26 + c - 'a' : -1;
}

/* One term up to |end|; `...` stands for |rank| less the letters, or for |dots| dimensions when rank is -1.
 */
static o3_status_t read_term(o3_nz_t *nz, const einsum_t *e, const char *at, const char *end, int rank,
                             int dots, term_t *term) {
  int letters = 0;
  bool has_dots = false;
  for (const char *c = at; c < end; ++c) letters += letter(*c) >= 0;
  if (rank >= 0) dots = rank - letters;
  for (; at < end; ++at) {
    if (*at == ' ') continue;
    int label = letter(*at), added = label >= 0 ? 1 : dots;
    bool is_dots = label < 0 && !has_dots && end - at >= 3 && strncmp(at, "...", 3) == 0;
    if ((label < 0 && !is_dots) || added < 0 || term->count + added > O3_IR_MAX_RANK)
      return o3_nz_invalid(nz, "equation '%s' does not fit its inputs at '%s'", e->equation, at);
    for (int i = 0; i < added; ++i) term->labels[term->count++] = is_dots ? MAX_LABELS - added + i : label;
    if (!is_dots) continue;
    has_dots = true;
    at += 2;
  }
  if (rank >= 0 && term->count != rank)
    return o3_nz_invalid(nz, "equation '%s' has a term of %d letters for an input of rank %d", e->equation,
                         term->count, rank);
  return NULL;
}

/* Without `->`: the dimensions of `...`, then the letters that occur once, in alphabetical order. */
static void implicit_output(einsum_t *e) {
  for (int i = 0; i < MAX_LABELS; ++i) {
    int label = (i + LETTERS) % MAX_LABELS;
    bool kept = label >= LETTERS ? e->uses[label] > 0 : e->uses[label] == 1;
    if (kept && e->output.count < O3_IR_MAX_RANK) e->output.labels[e->output.count++] = label;
  }
}

static o3_status_t explicit_output(o3_nz_t *nz, einsum_t *e, const char *at) {
  int dots = 0;
  for (int i = LETTERS; i < MAX_LABELS; ++i) dots += e->uses[i] > 0;
  O3_TRY(read_term(nz, e, at, at + strlen(at), -1, dots, &e->output));
  for (int i = 0; i < e->output.count; ++i) {
    int label = e->output.labels[i];
    if (e->uses[label] == 0 || position_of(&e->output, label) != i)
      return o3_nz_invalid(nz, "equation '%s': letter %d of the output is in no input, or repeated",
                           e->equation, i);
  }
  return NULL;
}

static o3_status_t read_equation(o3_nz_t *nz, const o3_node_t *node, einsum_t *e) {
  e->equation = o3_node_string(nz, node, "equation", "");
  const char *arrow = strstr(e->equation, "->");
  const char *at = e->equation, *end = arrow ? arrow : at + strlen(at);
  for (; e->num_terms < node->num_inputs; ++e->num_terms) {
    term_t *term = &e->terms[e->num_terms];
    const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
    bool last = e->num_terms + 1 == node->num_inputs;
    if ((comma == NULL) != last)
      return o3_nz_invalid(nz, "equation '%s' does not have %d terms", e->equation, node->num_inputs);
    term->value = node->inputs[e->num_terms];
    O3_TRY(read_term(nz, e, at, stop, o3_nz_rank(nz, term->value), 0, term));
    for (int i = 0; i < term->count; ++i) ++e->uses[term->labels[i]];
    at = stop + 1;
  }
  if (arrow) return explicit_output(nz, e, arrow + 2);
  implicit_output(e);
  return NULL;
}

/* ---- One operand ---- */

static void drop_label(term_t *term, int position) {
  --term->count;
  for (int i = position; i < term->count; ++i) term->labels[i] = term->labels[i + 1];
}

static void sum_over(o3_nz_t *nz, term_t *term, int position) {
  term->value = o3_nz_reduce(nz, term->value, "sum", 1, (int64_t[]){position}, false);
  drop_label(term, position);
}

/* Elements off the diagonal of dimensions i and j are taken as 0, then summed away along j. */
static void take_diagonal(o3_nz_t *nz, term_t *term, int i, int j) {
  MlirAffineExpr size = o3_nz_dim(nz, term->value, i);
  if (!o3_symbols_require_equal(nz->symbols, size, o3_nz_dim(nz, term->value, j), nz->who))
    o3_nz_fail(
        nz,
        o3_nz_invalid(nz, "dimensions %d and %d of an input have the same letter but different sizes", i, j));
  MlirValue rows = o3_nz_positions(nz, term->count, i, size),
            columns = o3_nz_positions(nz, term->count, j, size);
  MlirValue on = o3_nz_binary(nz, "o3.equal", rows, columns);
  term->value = o3_nz_select(nz, on, term->value, o3_nz_like(nz, term->value, 0));
  sum_over(nz, term, j);
}

static void take_diagonals(o3_nz_t *nz, term_t *term) {
  for (int j = 1; j < term->count;) {
    int i = position_of(term, term->labels[j]);
    if (i == j) {
      ++j;
    } else {
      take_diagonal(nz, term, i, j);
    }
  }
}

/* Whether the output or a term from |next| on still needs the label. */
static bool is_needed(const einsum_t *e, int next, int label) {
  if (has(&e->output, label)) return true;
  for (int i = next; i < e->num_terms; ++i) {
    if (has(&e->terms[i], label)) return true;
  }
  return false;
}

/* A size of 1 broadcasts against the other's: the letter is then the other's alone. */
static void drop_repeated(o3_nz_t *nz, term_t *term, const term_t *other) {
  for (int i = term->count - 1; i >= 0; --i) {
    int at = position_of(other, term->labels[i]);
    bool one = o3_expr_equals_const(o3_nz_dim(nz, term->value, i), 1);
    if (at < 0 || !one || o3_expr_equals_const(o3_nz_dim(nz, other->value, at), 1)) continue;
    term->value = o3_nz_squeeze(nz, term->value, 1, (int64_t[]){i});
    drop_label(term, i);
  }
}

static void sum_unneeded(o3_nz_t *nz, const einsum_t *e, int next, term_t *term, const term_t *other) {
  for (int i = term->count - 1; i >= 0; --i) {
    if (!has(other, term->labels[i]) && !is_needed(e, next, term->labels[i])) sum_over(nz, term, i);
  }
}

/* ---- Two operands ---- */

typedef struct group {
  int count;
  int labels[O3_IR_MAX_RANK];
} group_t;

static void append(group_t *group, int label) { group->labels[group->count++] = label; }

/* The term with its dimensions in the order of the groups: batch stays, the others are joined into one each.
 */
static MlirValue arrange(o3_nz_t *nz, const term_t *term, const group_t *batch, const group_t *rows,
                         const group_t *columns) {
  int64_t perm[O3_IR_MAX_RANK];
  int count = 0;
  const group_t *const groups[3] = {batch, rows, columns};
  o3_shape_t shape = {0};
  for (int g = 0; g < 3; ++g) {
    MlirAffineExpr product = o3_expr_const(nz->context, 1);
    for (int i = 0; i < groups[g]->count; ++i) {
      perm[count] = position_of(term, groups[g]->labels[i]);
      MlirAffineExpr size = o3_nz_dim(nz, term->value, (int)perm[count++]);
      if (g == 0) shape.dims[shape.rank++] = size;
      product = o3_expr_mul(product, size);
    }
    if (g > 0) shape.dims[shape.rank++] = product;
  }
  return o3_nz_reshape(nz, o3_nz_transpose(nz, term->value, perm), &shape);
}

/* batch a-only contracted times batch contracted b-only: batch a-only b-only. */
static void multiply(o3_nz_t *nz, const einsum_t *e, int next, term_t *a, const term_t *b) {
  group_t batch = {0}, a_only = {0}, b_only = {0}, contracted = {0};
  for (int i = 0; i < a->count; ++i) {
    int label = a->labels[i];
    bool shared = has(b, label);
    append(!shared ? &a_only : is_needed(e, next, label) ? &batch : &contracted, label);
  }
  for (int i = 0; i < b->count; ++i) {
    if (!has(a, b->labels[i])) append(&b_only, b->labels[i]);
  }
  if (batch.count + 2 > O3_IR_MAX_RANK || batch.count + a_only.count + b_only.count > O3_IR_MAX_RANK) {
    o3_nz_fail(nz, o3_nz_unsupported(nz, "a product of rank above %d", O3_IR_MAX_RANK));
    return;
  }
  MlirValue left = arrange(nz, a, &batch, &a_only, &contracted);
  MlirValue right = arrange(nz, b, &batch, &contracted, &b_only);
  MlirValue product =
      contracted.count ? o3_nz_matmul(nz, left, right) : o3_nz_binary(nz, "o3.mul", left, right);
  term_t result = {0};
  o3_shape_t shape = {0};
  const group_t *const groups[3] = {&batch, &a_only, &b_only};
  for (int g = 0; g < 3; ++g) {
    for (int i = 0; i < groups[g]->count; ++i) {
      int label = groups[g]->labels[i];
      const term_t *from = g == 2 ? b : a;
      result.labels[result.count++] = label;
      shape.dims[shape.rank++] = o3_nz_dim(nz, from->value, position_of(from, label));
    }
  }
  result.value = o3_nz_reshape(nz, product, &shape);
  *a = result;
}

static void join(o3_nz_t *nz, const einsum_t *e, int next, term_t *a, term_t *b) {
  drop_repeated(nz, a, b);
  drop_repeated(nz, b, a);
  sum_unneeded(nz, e, next, a, b);
  sum_unneeded(nz, e, next, b, a);
  multiply(nz, e, next, a, b);
}

/* ---- The op ---- */

static MlirValue ordered(o3_nz_t *nz, const einsum_t *e, const term_t *term) {
  int64_t perm[O3_IR_MAX_RANK];
  for (int i = 0; i < e->output.count; ++i) perm[i] = position_of(term, e->output.labels[i]);
  return o3_nz_transpose(nz, term->value, perm);
}

o3_status_t o3_onnx_einsum(o3_nz_t *nz, o3_node_t *node) {
  einsum_t *e = O3_ARENA_NEW(nz->arena, einsum_t);
  O3_TRY_ALLOC(e);
  if (node->num_inputs < 1) return o3_nz_invalid(nz, "an input is missing");
  O3_TRY(read_equation(nz, node, e));
  for (int i = 0; i < e->num_terms; ++i) take_diagonals(nz, &e->terms[i]);
  term_t result = e->terms[0], none = {0};
  for (int i = 1; i < e->num_terms && !o3_nz_failed(nz); ++i) join(nz, e, i + 1, &result, &e->terms[i]);
  sum_unneeded(nz, e, e->num_terms, &result, &none);
  if (!o3_nz_failed(nz)) node->outputs[0] = ordered(nz, e, &result);
  return NULL;
}
