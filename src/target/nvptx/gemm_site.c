/* The product's loops are sorted by who walks them: both inputs and the result (batch), A and the result
 * (rows), B and the result (columns), A and B (k). The ops before it give what the sums start at, those
 * behind it are the epilogue: each is a function of the result's element so far and of other operands,
 * addressed by the same loops. */
#include "target/nvptx/gemm_site.h"

#include <string.h>

#include "target/cpu/nest.h"
#include "target/nvptx/body_text.h"
#include "target/nvptx/gemm_kernel.h"

/* Groups of loops; the first are O3_GEMM_OUTER to O3_GEMM_COLUMN. */
enum { OUTER, INNER, ROWS, COLUMNS, DEPTH, GROUPS };
enum { MAX_SIDES = 8 };

/* An op besides the product, with its operands as numbers of extras; SO_FAR is the result's element. */
enum { SO_FAR = -1, UNUSED = -2 };
typedef struct side {
  o3_nest_t *nest;
  int operands[O3_NEST_MAX_OPERANDS];
} side_t;

typedef struct reader {
  const o3_kernel_site_t *site;
  o3_nest_t *product, *whole; /* dims merged; as they are in the op */
  const o3_nest_operand_t *a, *b, *c;
  int dims[GROUPS]; /* -1: of size 1 */
  int num_before, num_after;
  side_t sides[MAX_SIDES];             /* before, then after */
  MlirValue so_far[2 * MAX_SIDES + 2]; /* buffers or tensors that hold the result's elements */
  int num_so_far;
  int extra_arguments[O3_GEMM_MAX_EXTRAS];
  o3_status_t status; /* of the epilogue */
  o3_gemm_t gemm;
} reader_t;

/* Ops on tensors are read as they will be on buffers: every operand is an argument then, and the values that
 * an op writes are its initial value and its result. */
static bool on_tensors(const reader_t *r) { return r->site->num_arguments < 0; }

static bool read_nest(const reader_t *r, MlirOperation op, o3_nest_t *nest) {
  return on_tensors(r) ? o3_nest_read_any(op, nest) : o3_nest_read(op, nest);
}

static bool is_argument(const reader_t *r, MlirValue value) {
  return on_tensors(r) || o3_kernel_site_argument(r->site, value) >= 0;
}

static void add_so_far(reader_t *r, const o3_nest_t *nest) {
  r->so_far[r->num_so_far++] = o3_kernel_site_base(nest->operands[nest->num_operands - 1].value);
  if (on_tensors(r)) r->so_far[r->num_so_far++] = mlirOperationGetResult(nest->op, 0);
}

/* ---- The product ---- */

static bool reduces(const o3_nest_t *nest) {
  for (int d = 0; d < nest->num_dims; ++d) {
    if (nest->reduction[d]) return true;
  }
  return false;
}

static int group_of(const reader_t *r, int dim) {
  bool a = o3_nest_uses(r->a, dim), b = o3_nest_uses(r->b, dim), c = o3_nest_uses(r->c, dim);
  if (a && b) return c ? INNER : DEPTH;
  return a && c ? ROWS : b && c ? COLUMNS : GROUPS;
}

static const char *sort_dims(reader_t *r) {
  for (int g = 0; g < GROUPS; ++g) r->dims[g] = -1;
  for (int d = 0; d < r->product->num_dims; ++d) {
    if (r->product->merged_into[d] >= 0 || r->product->sizes[d] == 1) continue;
    if (r->product->sizes[d] < 0) return "a size is known only at run time";
    int group = group_of(r, d);
    if (group == GROUPS) return "a loop is neither of rows, columns, depth nor batch";
    if (group == INNER && r->dims[INNER] >= 0 && r->dims[OUTER] < 0)
      r->dims[OUTER] = r->dims[INNER];
    else if (r->dims[group] >= 0)
      return "rows, columns, depth or batches are too many loops";
    r->dims[group] = d;
  }
  return NULL;
}

static int64_t size_of(const reader_t *r, int group) {
  return r->dims[group] < 0 ? 1 : r->product->sizes[r->dims[group]];
}

static bool step_of(const reader_t *r, const o3_nest_operand_t *operand, int group, int64_t *step) {
  *step = 0;
  return r->dims[group] < 0 || o3_nest_step(operand, r->dims[group], step);
}

/* Row-major in A: |outer| by |inner|; a missing loop has any step that fits. */
static bool read_matrix(const reader_t *r, const o3_nest_operand_t *operand, int outer, int inner,
                        int64_t *pitch, int64_t batch[2]) {
  int64_t step;
  if (!step_of(r, operand, inner, &step) || (step != 1 && r->dims[inner] >= 0)) return false;
  if (!step_of(r, operand, outer, pitch)) return false;
  for (int i = OUTER; i <= INNER; ++i) {
    if (!step_of(r, operand, i, &batch[i])) return false;
  }
  if (r->dims[outer] < 0) *pitch = size_of(r, inner);
  return true;
}

static const char *read_operands(reader_t *r) {
  o3_gemm_t *g = &r->gemm;
  for (int i = OUTER; i <= INNER; ++i) g->batch[i] = size_of(r, i);
  g->m = size_of(r, ROWS), g->n = size_of(r, COLUMNS), g->k = size_of(r, DEPTH);
  o3_gpu_element_t other;
  if (!o3_kernel_site_element(r->a->value, &g->element) || !o3_kernel_site_element(r->b->value, &other) ||
      other != g->element)
    return "the factors are not of one of the types f16, bf16";
  if (!mlirTypeIsAF32(o3_type_element(mlirValueGetType(r->c->value)))) return "the sums are not in f32";
  if (!read_matrix(r, r->a, ROWS, DEPTH, &g->a_pitch, g->a_batch)) return "A is not row-major";
  g->b_by_rows = read_matrix(r, r->b, DEPTH, COLUMNS, &g->b_pitch, g->b_batch);
  if (!g->b_by_rows && !read_matrix(r, r->b, COLUMNS, DEPTH, &g->b_pitch, g->b_batch))
    return "B is neither row- nor column-major";
  if (!read_matrix(r, r->c, ROWS, COLUMNS, &g->d_pitch, g->d_batch)) return "the result is not row-major";
  return NULL;
}

/* |value| is the argument |index| of the body, extended to f32. */
static bool is_extended(const o3_nest_t *nest, MlirValue value, int index) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_op_is(def, "arith.extf") &&
         mlirValueEqual(mlirOperationGetOperand(def, 0), mlirBlockGetArgument(nest->body, index));
}

/* Whether the body is so_far + extf(a) * extf(b), in any order. */
static bool multiplies_halves(const o3_nest_t *nest) {
  MlirValue so_far = mlirBlockGetArgument(nest->body, 2);
  MlirOperation add = o3_value_def(mlirOperationGetOperand(mlirBlockGetTerminator(nest->body), 0));
  if (mlirOperationIsNull(add) || !o3_op_is(add, "arith.addf")) return false;
  bool left = mlirValueEqual(mlirOperationGetOperand(add, 0), so_far);
  if (!left && !mlirValueEqual(mlirOperationGetOperand(add, 1), so_far)) return false;
  MlirOperation mul = o3_value_def(mlirOperationGetOperand(add, left));
  if (mlirOperationIsNull(mul) || !o3_op_is(mul, "arith.mulf")) return false;
  MlirValue x = mlirOperationGetOperand(mul, 0), y = mlirOperationGetOperand(mul, 1);
  return (is_extended(nest, x, 0) && is_extended(nest, y, 1)) ||
         (is_extended(nest, x, 1) && is_extended(nest, y, 0));
}

static const char *read_product(reader_t *r, MlirOperation op) {
  if (!read_nest(r, op, r->product) || !read_nest(r, op, r->whole)) return "an op is no loop nest on buffers";
  o3_nest_merge(r->product);
  if (r->product->num_inputs != 2 || r->product->num_operands != 3 || !multiplies_halves(r->product))
    return "it is no product of two factors in half precision";
  const char *why = NULL;
  for (int swapped = 0; swapped < 2; ++swapped) {
    r->a = &r->product->operands[swapped];
    r->b = &r->product->operands[!swapped];
    r->c = &r->product->operands[2];
    why = sort_dims(r);
    if (!why) why = read_operands(r);
    if (!why) break;
  }
  if (why) return why;
  return is_argument(r, r->a->value) && is_argument(r, r->b->value) ? NULL
                                                                    : "a factor is computed in the kernel";
}

/* ---- Other ops ---- */

static int dim_at(const o3_nest_operand_t *operand, int position) {
  MlirAffineExpr expr = operand->all_exprs[position];
  return mlirAffineExprIsADim(expr) ? (int)mlirAffineDimExprGetPosition(expr) : -1;
}

static bool is_so_far(const reader_t *r, MlirValue buffer) {
  buffer = o3_kernel_site_base(buffer);
  for (int i = 0; i < r->num_so_far; ++i) {
    if (mlirValueEqual(r->so_far[i], buffer)) return true;
  }
  return false;
}

/* The loop of |op| that walks where the product's loop |dim| does, by how both address the result's shape; -1
 * when none does. */
static int loop_of(const reader_t *r, const o3_nest_operand_t *result, int dim) {
  const o3_nest_operand_t *c = &r->whole->operands[2];
  for (int p = 0; p < c->num_terms && c->num_terms == result->num_terms; ++p) {
    if (dim_at(c, p) == dim) return dim_at(result, p);
  }
  return -1;
}

/* How far |operand| of a side op moves along a group of the product's loops; false when it does not move
 * evenly. */
static bool step_along(const reader_t *r, const side_t *s, const o3_nest_operand_t *operand, int group,
                       int64_t *step) {
  const o3_nest_operand_t *result = &s->nest->operands[s->nest->num_operands - 1];
  int64_t covered = 1;
  bool first = true;
  *step = 0;
  for (int d = r->whole->num_dims - 1; d >= 0; --d) {
    bool member =
        d == r->dims[group] || (r->dims[group] >= 0 && r->product->merged_into[d] == r->dims[group]);
    int64_t own;
    if (!member || r->whole->sizes[d] == 1) continue;
    int loop = loop_of(r, result, d);
    if (loop < 0 || !o3_nest_step(operand, loop, &own)) return false;
    if (first) *step = own;
    if (!first && own != *step * covered) return false;
    covered *= r->whole->sizes[d];
    first = false;
  }
  return true;
}

static bool is_used(const o3_nest_t *nest, int operand) {
  return !mlirOpOperandIsNull(mlirValueGetFirstUse(mlirBlockGetArgument(nest->body, operand)));
}

static const char *read_extra(reader_t *r, side_t *s, int index) {
  const o3_nest_operand_t *operand = &s->nest->operands[index];
  o3_gemm_extra_t extra;
  if (!is_argument(r, operand->value)) return "an operand of the epilogue is computed in the kernel";
  if (!o3_kernel_site_element(operand->value, &extra.element))
    return "an element type is none of f16, bf16, f32";
  for (int i = 0; i < O3_GEMM_DIMS; ++i) {
    if (!step_along(r, s, operand, i, &extra.strides[i]))
      return "an operand of the epilogue does not walk evenly";
  }
  if (r->gemm.num_extras == O3_GEMM_MAX_EXTRAS) return "the epilogue has too many operands";
  s->operands[index] = r->gemm.num_extras;
  r->extra_arguments[r->gemm.num_extras] = o3_kernel_site_argument(r->site, operand->value);
  r->gemm.extras[r->gemm.num_extras++] = extra;
  return NULL;
}

/* The buffer that an op writes is the result's from then on. */
static const char *read_result(reader_t *r, side_t *s) {
  const o3_nest_operand_t *out = &s->nest->operands[s->nest->num_operands - 1];
  const o3_nest_operand_t *c = &r->whole->operands[2];
  if (out->num_terms != c->num_terms) return "an op of the epilogue has another shape than the product";
  int64_t step = 1;
  for (int p = out->num_terms - 1; p >= 0; --p) {
    int64_t own;
    if (out->sizes[p] != c->sizes[p]) return "an op of the epilogue has another shape than the product";
    if (out->sizes[p] == 1) continue;
    if (dim_at(out, p) < 0 || !o3_nest_step(out, dim_at(out, p), &own) || own != step)
      return "the result is written in another order than row by row";
    step *= out->sizes[p];
  }
  add_so_far(r, s->nest);
  return NULL;
}

static const char *read_side(reader_t *r, MlirOperation op, bool before) {
  if (r->num_before + r->num_after == MAX_SIDES) return "it has too many ops";
  side_t *s = &r->sides[r->num_before + r->num_after];
  s->nest = O3_ARENA_NEW(r->site->arena, o3_nest_t);
  if (!s->nest) return "memory is out";
  if (!read_nest(r, op, s->nest) || s->nest->num_operands != s->nest->num_inputs + 1 || reduces(s->nest))
    return "an op of the epilogue is no elementwise op";
  const char *why = NULL;
  for (int i = 0; i < s->nest->num_operands && !why; ++i) {
    s->operands[i] = UNUSED;
    if (!is_used(s->nest, i)) continue;
    if (is_so_far(r, s->nest->operands[i].value))
      s->operands[i] = SO_FAR;
    else
      why = read_extra(r, s, i);
  }
  if (!why) why = read_result(r, s);
  o3_gpu_element_t last = O3_GPU_F32;
  o3_kernel_site_element(r->so_far[r->num_so_far - 1], &last);
  if (!why) why = o3_body_refuse(s->nest, last != O3_GPU_F32);
  ++*(before ? &r->num_before : &r->num_after);
  return why;
}

static const char *find_product(reader_t *r, int *product) {
  *product = -1;
  for (int i = 0; i < r->site->num_ops; ++i) {
    if (!read_nest(r, r->site->ops[i], r->product)) return "an op is no loop nest on buffers";
    if (!reduces(r->product)) continue;
    if (*product >= 0) return "it has two reductions";
    *product = i;
  }
  return *product < 0 ? "it has no product" : NULL;
}

/* The product must start at what the ops before it wrote. */
static const char *check_start(const reader_t *r) {
  return is_so_far(r, r->c->value) ? NULL : "the sums start at something from outside of the kernel";
}

static const char *read_ops(reader_t *r) {
  int product;
  const char *why = find_product(r, &product);
  if (!why) why = read_product(r, r->site->ops[product]);
  for (int i = 0; i < product && !why; ++i) why = read_side(r, r->site->ops[i], true);
  if (!why) why = check_start(r);
  if (why) return why;
  r->num_so_far = 0;
  add_so_far(r, r->whole);
  for (int i = product + 1; i < r->site->num_ops && !why; ++i) why = read_side(r, r->site->ops[i], false);
  return why;
}

static const char *read_output(reader_t *r) {
  MlirValue out = r->so_far[r->num_so_far - 1];
  if (!is_argument(r, out)) return "its result is no argument";
  if (!o3_kernel_site_element(out, &r->gemm.out)) return "an element type is none of f16, bf16, f32";
  return NULL;
}

/* ---- The epilogue ---- */

static int write_side(reader_t *r, o3_kernel_text_t *t, const side_t *s, int so_far, const int *extras) {
  int arguments[O3_NEST_MAX_OPERANDS], result = so_far;
  for (int i = 0; i < s->nest->num_operands; ++i) {
    o3_gpu_element_t element = O3_GPU_F32;
    o3_kernel_site_element(s->nest->operands[i].value, &element);
    if (s->operands[i] == UNUSED) {
      arguments[i] = o3_kt_value(t, "arith.constant 0.0 : %s", o3_gpu_element_info(element)->mlir);
    } else {
      arguments[i] = s->operands[i] == SO_FAR ? so_far : extras[s->operands[i]];
    }
  }
  if (!r->status) r->status = o3_body_write(t, s->nest, arguments, &result);
  return result;
}

/* A start of zero, which adds nothing. */
static bool starts_at_zero(const side_t *s) {
  MlirOperation end = mlirBlockGetTerminator(s->nest->body);
  MlirOperation def = o3_value_def(mlirOperationGetOperand(end, 0));
  return !mlirOperationIsNull(def) && o3_op_is(def, "arith.constant") &&
         o3_op_float(def, "value", 1.0) == 0.0;
}

static int write_epilogue(o3_kernel_text_t *t, void *context, int sum, const int *extras) {
  reader_t *r = context;
  int start = -1;
  for (int i = 0; i < r->num_before; ++i) start = write_side(r, t, &r->sides[i], start, extras);
  if (r->num_before && !(r->num_before == 1 && starts_at_zero(&r->sides[0])))
    sum = o3_kt_value(t, "arith.addf %%v%d, %%v%d : f32", sum, start);
  for (int i = 0; i < r->num_after; ++i) sum = write_side(r, t, &r->sides[r->num_before + i], sum, extras);
  return sum;
}

/* ---- The kernel ---- */

/* The kernel numbers its buffers A, B, extras, D; the site's are its arguments. */
static void number_arguments(const reader_t *r, o3_gpu_kernel_t *kernel) {
  int extras = r->gemm.num_extras;
  for (int i = 0; i < kernel->num_arguments; ++i) {
    int *buffer = &kernel->arguments[i].buffer;
    MlirValue value = *buffer == 0 ? r->a->value : *buffer == 1 ? r->b->value : r->so_far[r->num_so_far - 1];
    *buffer = *buffer >= 2 && *buffer < 2 + extras ? r->extra_arguments[*buffer - 2]
                                                   : o3_kernel_site_argument(r->site, value);
  }
}

/* o3.schedule of the product, when it has been chosen before: consumers, columns, stages, split, group_rows,
 * store_by_tensor. */
static o3_gemm_schedule_t choose_schedule(const reader_t *r) {
  int64_t given[6];
  if (o3_op_ints(r->product->op, "o3.schedule", given, 6) != 6)
    return o3_gemm_schedule(&r->gemm, r->site->multiprocessors, r->site->shared_bytes);
  return (o3_gemm_schedule_t){.consumers = (int)given[0],
                              .columns = (int)given[1],
                              .stages = (int)given[2],
                              .split = (int)given[3],
                              .blocks = 1,
                              .group_rows = (int)given[4],
                              .store_by_tensor = given[5] != 0};
}

static const char *read_all(reader_t *r) {
  const char *why = read_ops(r);
  if (!why) why = read_output(r);
  return why ? why : o3_gemm_refuse(&r->gemm);
}

static reader_t *create_reader(const o3_kernel_site_t *site) {
  reader_t *r = O3_ARENA_NEW(site->arena, reader_t);
  if (!r) return NULL;
  *r = (reader_t){.site = site,
                  .product = O3_ARENA_NEW(site->arena, o3_nest_t),
                  .whole = O3_ARENA_NEW(site->arena, o3_nest_t)};
  return r->product && r->whole ? r : NULL;
}

const char *o3_gemm_refuse_ops(o3_arena_t *arena, int num_ops, const MlirOperation *ops) {
  const o3_kernel_site_t site = {.arena = arena, .num_ops = num_ops, .ops = ops, .num_arguments = -1};
  reader_t *r = create_reader(&site);
  return r ? read_all(r) : "memory is out";
}

o3_status_t o3_gemm_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not) {
  reader_t *r = create_reader(site);
  O3_TRY_ALLOC(r);
  *kernel = (o3_gpu_kernel_t){0};
  *why_not = read_all(r);
  if (*why_not) return NULL;
  r->gemm.epilogue = write_epilogue;
  r->gemm.epilogue_context = r;
  if (r->num_after == 0 && r->gemm.out == O3_GPU_F32 && r->num_before == 0) r->gemm.epilogue = NULL;
  o3_gemm_schedule_t schedule = choose_schedule(r);
  O3_TRY(o3_gemm_build(&r->gemm, &schedule, site->multiprocessors, kernel));
  number_arguments(r, kernel);
  return r->status;
}
