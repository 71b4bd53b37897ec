/* A product of matrices has its loops sorted by who walks them: both inputs and the result (batch), A and the
 * result (rows), B and the result (columns), A and B (k); window_site.h reads convolutions. The ops before it
 * give what the sums start at, those behind it are the epilogue: each is a function of the result's element
 * so far and of other operands, addressed by the same loops. */
#include "target/nvptx/gemm_site.h"

#include <string.h>

#include "schedule/gpu.h"
#include "target/cpu/nest.h"
#include "target/nvptx/body_text.h"
#include "target/nvptx/depthwise_kernel.h"
#include "target/nvptx/gemm_kernel.h"
#include "target/nvptx/gemv_kernel.h"
#include "target/nvptx/mma_kernel.h"
#include "target/nvptx/open_batch.h"
#include "target/nvptx/window_site.h"
#include "target/ref/lowering.h"

/* Groups of loops; the first are O3_GEMM_OUTER to O3_GEMM_COLUMN. */
enum { OUTER, INNER, ROWS, COLUMNS, DEPTH, GROUPS };
enum { MAX_SIDES = 14 }; /* GELU as an exporter writes it: nine */

/* An op besides the product, with its operands: numbers of extras, or RESULTS and the number of the op that
 * computes them, which for the product is PRODUCT. */
enum { UNUSED = -1, RESULTS = O3_GEMM_MAX_EXTRAS, PRODUCT = MAX_SIDES };
typedef struct side {
  o3_nest_t *nest;
  int operands[O3_NEST_MAX_OPERANDS];
} side_t;

/* What an op of the kernel wrote, a buffer or tensor. */
typedef struct written {
  MlirValue value;
  int op;
} written_t;

typedef struct reader {
  const o3_kernel_site_t *site;
  o3_nest_t *product, *whole; /* dims merged; as they are in the op */
  const o3_nest_operand_t *a, *b, *c;
  int dims[GROUPS];           /* of matrices; -1: of size 1 */
  int groups[O3_IR_MAX_RANK]; /* of each loop as it is in the op; -1: of size 1 */
  bool tensor_cores;          /* the family multiplies f32 on them as tf32 if it may, and 8-bit floats */
  bool has_halo;              /* A is |halo|.from with a border, which the kernel does not make */
  o3_halo_t halo;
  o3_gemm_window_t window;
  int num_before, num_after;
  side_t sides[MAX_SIDES]; /* before, then after */
  int start;               /* the one that sums start at the result of */
  int num_written;
  written_t written[MAX_SIDES + 1];
  int extra_arguments[O3_GEMM_MAX_EXTRAS];
  o3_status_t status; /* of the epilogue */
  o3_gemm_t gemm;
} reader_t;

/* Ops on tensors are read as they will be on buffers: every operand is an argument then but parts of others,
 * which are cut out in the kernel. */
static bool on_tensors(const reader_t *r) { return r->site->num_arguments < 0; }

static bool read_nest(const reader_t *r, MlirOperation op, o3_nest_t *nest) {
  return on_tensors(r) ? o3_nest_read_any(op, nest) : o3_nest_read(op, nest);
}

static bool is_part(MlirValue tensor) {
  static const char *const VIEWS[] = {"tensor.extract_slice", "tensor.expand_shape", "tensor.collapse_shape",
                                      "tensor.cast"};
  MlirOperation def = o3_value_def(tensor);
  for (int i = 0; i < 4 && !mlirOperationIsNull(def); ++i) {
    if (o3_op_is(def, VIEWS[i])) return i == 0 || is_part(mlirOperationGetOperand(def, 0));
  }
  return false;
}

static bool is_argument(const reader_t *r, MlirValue value) {
  return on_tensors(r) ? !is_part(value) : o3_kernel_site_argument(r->site, value) >= 0;
}

/* Constants of one number are made in the kernel (outline_kernel.c); those an epilogue reads end in its body.
 */
static bool is_splat(MlirValue tensor) {
  MlirOperation def = o3_value_def(tensor);
  if (mlirOperationIsNull(def) || !o3_op_is(def, "arith.constant")) return false;
  MlirAttribute value = o3_op_attr(def, "value");
  return mlirAttributeIsADenseElements(value) && mlirDenseElementsAttrIsSplat(value);
}

static bool is_given(const reader_t *r, MlirValue value) {
  return is_argument(r, value) && !(on_tensors(r) && is_splat(value));
}

static bool is_constant(const reader_t *r, MlirValue value) {
  return !on_tensors(r) && o3_kernel_site_is_constant(r->site, o3_kernel_site_argument(r->site, value));
}

static MlirValue written_by(const reader_t *r, const o3_nest_t *nest) {
  return on_tensors(r) ? mlirOperationGetResult(nest->op, 0)
                       : o3_kernel_site_base(nest->operands[nest->num_operands - 1].value);
}

static void add_written(reader_t *r, const o3_nest_t *nest, int op) {
  r->written[r->num_written++] = (written_t){written_by(r, nest), op};
}

/* The op that has written |value| last; -1 when none of the kernel has. */
static int writer_of(const reader_t *r, MlirValue value) {
  if (!on_tensors(r)) value = o3_kernel_site_base(value);
  for (int i = r->num_written - 1; i >= 0; --i) {
    if (mlirValueEqual(r->written[i].value, value)) return r->written[i].op;
  }
  return -1;
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
    int group = group_of(r, d);
    if (group == GROUPS) return "a loop is neither of rows, columns, depth nor batch";
    if (r->product->sizes[d] < 0 && group != ROWS)
      return group == COLUMNS ? "its columns are known only at run time"
             : group == DEPTH ? "the length of its sums is known only at run time"
                              : "its batches are known only at run time";
    if (group == INNER && r->dims[INNER] >= 0 && r->dims[OUTER] < 0)
      r->dims[OUTER] = r->dims[INNER];
    else if (r->dims[group] >= 0)
      return "rows, columns, depth or batches are too many loops";
    r->dims[group] = d;
  }
  return NULL;
}

static void note_groups(reader_t *r) {
  for (int d = 0; d < r->whole->num_dims; ++d) {
    int root = d;
    while (r->product->merged_into[root] >= 0) root = r->product->merged_into[root];
    r->groups[d] = -1;
    for (int g = 0; g < GROUPS; ++g) {
      if (r->dims[g] == root) r->groups[d] = g;
    }
  }
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

/* The arguments of the body that |value| is computed from, as bits; all bits when there are others. */
static unsigned sources_of(const o3_nest_t *nest, MlirValue value) {
  MlirOperation def = o3_value_def(value);
  unsigned sources = 0;
  if (mlirOperationIsNull(def) && !mlirBlockEqual(mlirBlockArgumentGetOwner(value), nest->body)) return ~0u;
  if (mlirOperationIsNull(def)) return 1u << mlirBlockArgumentGetArgNumber(value);
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(def); ++i)
    sources |= sources_of(nest, mlirOperationGetOperand(def, i));
  return sources;
}

/* |value| is the argument |index| of the body, an 8-bit float, as f32: what ends such a conversion says so
 * (O3_LW_FLOAT8). */
static bool is_float8(const o3_nest_t *nest, MlirValue value, int index, o3_gpu_element_t *element) {
  MlirOperation def = o3_value_def(value);
  MlirAttribute type = mlirOperationIsNull(def) ? (MlirAttribute){0} : o3_op_attr(def, O3_LW_FLOAT8);
  if (mlirAttributeIsNull(type) || sources_of(nest, value) != 1u << index) return false;
  const o3_float8_t *format = o3_type_float8(mlirTypeAttrGetValue(type));
  *element = format->dtype == O3_DTYPE_F8E5M2 ? O3_GPU_E5M2 : O3_GPU_E4M3;
  return !format->single;
}

/* The factor of so_far + x * y that argument |index| gives. */
static MlirValue factor_of(const o3_nest_t *nest, int index) {
  MlirOperation add = o3_value_def(mlirOperationGetOperand(mlirBlockGetTerminator(nest->body), 0));
  bool left = mlirValueEqual(mlirOperationGetOperand(add, 0), mlirBlockGetArgument(nest->body, 2));
  MlirOperation mul = o3_value_def(mlirOperationGetOperand(add, left));
  bool second = sources_of(nest, mlirOperationGetOperand(mul, 0)) != 1u << index;
  return mlirOperationGetOperand(mul, second);
}

/* Of an operand of the product. */
static bool read_factor(const reader_t *r, const o3_nest_operand_t *factor, o3_gpu_element_t *element) {
  int index = (int)(factor - r->product->operands);
  if (o3_kernel_site_element(factor->value, element)) return true;
  return r->tensor_cores && is_float8(r->product, factor_of(r->product, index), index, element);
}

static const char *read_types(reader_t *r) {
  o3_gpu_element_t other;
  if (!read_factor(r, r->a, &r->gemm.element) || !read_factor(r, r->b, &other) || other != r->gemm.element)
    return "the factors are not of one of the types that the family multiplies";
  bool rounds = r->site->rounds_to_tf32 || !mlirAttributeIsNull(o3_op_attr(r->product->op, O3_LW_TF32));
  if (r->gemm.element == O3_GPU_F32 && rounds && r->tensor_cores) r->gemm.element = O3_GPU_TF32;
  bool sums = mlirTypeIsAF32(o3_type_element(mlirValueGetType(r->c->value)));
  return sums ? NULL : "the sums are not in f32";
}

static const char *read_operands(reader_t *r) {
  o3_gemm_t *g = &r->gemm;
  for (int i = OUTER; i <= INNER; ++i) g->batch[i] = size_of(r, i);
  g->m = size_of(r, ROWS), g->n = size_of(r, COLUMNS), g->k = size_of(r, DEPTH);
  g->rows_at_run_time = g->m < 0;
  g->one_of_batches = r->site->batch != NULL;
  if (g->rows_at_run_time) g->m = O3_GEMM_USUAL_ROWS;
  const char *why = read_types(r);
  if (why) return why;
  g->b_is_constant = is_constant(r, r->b->value);
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

/* |value| is the argument |index| of the body: f32 itself, or extended to it. */
static bool is_factor(const o3_nest_t *nest, MlirValue value, int index) {
  o3_gpu_element_t element;
  return mlirValueEqual(value, mlirBlockGetArgument(nest->body, index)) || is_extended(nest, value, index) ||
         is_float8(nest, value, index, &element);
}

typedef bool (*factor_fn_t)(const o3_nest_t *nest, MlirValue value, int index);

/* Whether the body is so_far + x * y, in any order, where |factor| says what x and y are. */
static bool multiplies(const o3_nest_t *nest, factor_fn_t factor) {
  MlirValue so_far = mlirBlockGetArgument(nest->body, 2);
  MlirOperation add = o3_value_def(mlirOperationGetOperand(mlirBlockGetTerminator(nest->body), 0));
  if (mlirOperationIsNull(add) || !o3_op_is(add, "arith.addf")) return false;
  bool left = mlirValueEqual(mlirOperationGetOperand(add, 0), so_far);
  if (!left && !mlirValueEqual(mlirOperationGetOperand(add, 1), so_far)) return false;
  MlirOperation mul = o3_value_def(mlirOperationGetOperand(add, left));
  if (mlirOperationIsNull(mul) || !o3_op_is(mul, "arith.mulf")) return false;
  MlirValue x = mlirOperationGetOperand(mul, 0), y = mlirOperationGetOperand(mul, 1);
  return (factor(nest, x, 0) && factor(nest, y, 1)) || (factor(nest, x, 1) && factor(nest, y, 0));
}

bool o3_gemm_multiplies_halves(const o3_nest_t *nest) { return multiplies(nest, is_extended); }

static const char *read_matrices(reader_t *r) {
  const char *why = NULL;
  for (int swapped = 0; swapped < 2; ++swapped) {
    r->a = &r->product->operands[swapped];
    r->b = &r->product->operands[!swapped];
    r->c = &r->product->operands[2];
    why = sort_dims(r);
    if (!why) why = read_operands(r);
    if (!why) break;
  }
  if (!why) note_groups(r);
  return why;
}

static const char *read_windows(reader_t *r) {
  r->a = &r->product->operands[0];
  r->b = &r->product->operands[1];
  r->c = &r->product->operands[2];
  r->gemm = (o3_gemm_t){0};
  const char *why = read_types(r);
  r->gemm.b_is_constant = is_constant(r, r->b->value);
  if (!why)
    why = o3_window_site_read(r->whole, r->has_halo ? &r->halo : NULL, &r->gemm, &r->window, r->groups);
  if (why) return why;
  return r->gemm.b_by_rows || r->tensor_cores ? NULL : "the weights of its windows lie by columns";
}

static bool walks_windows(const o3_nest_t *nest) {
  return o3_str_equal(o3_op_string(nest->op, "o3.kernel"), "conv");
}

/* Where A is, besides its border. */
static MlirValue factor_a(const reader_t *r) { return r->has_halo ? r->halo.from : r->a->value; }

static const char *read_product(reader_t *r, MlirOperation op) {
  if (!read_nest(r, op, r->product) || !read_nest(r, op, r->whole)) return "an op is no loop nest on buffers";
  o3_nest_drop_single_turns(r->product);
  o3_nest_merge(r->product);
  if (r->product->num_inputs != 2 || r->product->num_operands != 3 || !multiplies(r->product, is_factor))
    return "it is no product of two factors";
  const char *why = r->has_halo ? "it has a border" : read_matrices(r);
  if (why && (r->has_halo || walks_windows(r->whole))) why = read_windows(r);
  if (why) return why;
  return is_given(r, factor_a(r)) && is_given(r, r->b->value) ? NULL : "a factor is computed in the kernel";
}

/* ---- Other ops ---- */

static int dim_at(const o3_nest_operand_t *operand, int position) {
  MlirAffineExpr expr = operand->all_exprs[position];
  return mlirAffineExprIsADim(expr) ? (int)mlirAffineDimExprGetPosition(expr) : -1;
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
  int inner = -1;
  *step = 0;
  for (int d = r->whole->num_dims - 1; d >= 0; --d) {
    int64_t own;
    if (r->groups[d] != group || r->whole->sizes[d] == 1) continue;
    int loop = loop_of(r, result, d);
    if (loop < 0) return false;
    bool told = inner >= 0 && covered < 0;
    if (told && !o3_nest_walks_as_one(operand, loop, inner)) return false;
    if (!told && !o3_nest_step(operand, loop, &own)) return false;
    if (inner < 0) *step = own;
    if (inner >= 0 && !told && own != *step * covered) return false;
    covered = r->whole->sizes[d] < 0 ? -1 : covered * r->whole->sizes[d];
    inner = loop;
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
    if (dim_at(out, p) < 0) return "the result is written in another order than row by row";
    bool known = step > 0 && o3_nest_step(out, dim_at(out, p), &own);
    if (known ? own != step : !out->is_contiguous)
      return "the result is written in another order than row by row";
    step = step < 0 || out->sizes[p] < 0 ? -1 : step * out->sizes[p];
  }
  return NULL;
}

/* What the kernel gives is rounded to half precision, whatever the types on the way; functions of half
 * precision are also exact enough for sums of tf32, and of halves that f32 was rounded to. */
static bool ends_in_half(const reader_t *r) {
  if (r->gemm.element == O3_GPU_TF32) return true;
  if (r->site->rounds_to_half && r->gemm.element != O3_GPU_F32) return true;
  MlirOperation last = r->site->ops[r->site->num_ops - 1];
  o3_gpu_element_t element = O3_GPU_F32;
  o3_kernel_site_element(mlirOperationGetOperand(last, mlirOperationGetNumOperands(last) - 1), &element);
  return element != O3_GPU_F32;
}

static const char *read_side(reader_t *r, MlirOperation op, bool before) {
  int number = r->num_before + r->num_after;
  if (number == MAX_SIDES) return "it has too many ops";
  side_t *s = &r->sides[number];
  s->nest = O3_ARENA_NEW(r->site->arena, o3_nest_t);
  if (!s->nest) return "memory is out";
  if (!read_nest(r, op, s->nest) || s->nest->num_operands != s->nest->num_inputs + 1 || reduces(s->nest))
    return "an op of the epilogue is no elementwise op";
  const char *why = NULL;
  for (int i = 0; i < s->nest->num_operands && !why; ++i) {
    s->operands[i] = UNUSED;
    if (!is_used(s->nest, i)) continue;
    int writer = writer_of(r, s->nest->operands[i].value);
    if (writer >= 0)
      s->operands[i] = RESULTS + writer;
    else
      why = read_extra(r, s, i);
  }
  if (!why) why = read_result(r, s);
  add_written(r, s->nest, number);
  if (!why) why = o3_body_refuse(s->nest, ends_in_half(r), NULL);
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

/* Whether |op| makes the product's first factor, which its border is then no part of. */
static bool take_halo(reader_t *r, MlirOperation op, MlirOperation product) {
  o3_halo_t halo;
  if (r->has_halo || !o3_halo_read(op, &halo)) return false;
  MlirValue to = mlirOperationGetOperand(op, mlirOperationGetNumOperands(op) - 1);
  MlirValue from = mlirOperationGetOperand(product, 0);
  bool made = on_tensors(r) ? mlirValueEqual(from, mlirOperationGetResult(op, 0))
                            : mlirValueEqual(o3_kernel_site_base(from), o3_kernel_site_base(to));
  if (!made) return false;
  r->has_halo = true;
  r->halo = halo;
  return true;
}

/* The product must start at what the ops before it wrote. */
static const char *read_start(reader_t *r) {
  r->start = writer_of(r, r->c->value);
  return r->start >= 0 ? NULL : "the sums start at something from outside of the kernel";
}

static const char *read_ops(reader_t *r) {
  int product, halo = -1;
  const char *why = find_product(r, &product);
  for (int i = 0; i < product && !why; ++i) {
    if (take_halo(r, r->site->ops[i], r->site->ops[product])) halo = i;
  }
  if (!why) why = read_product(r, r->site->ops[product]);
  for (int i = 0; i < product && !why; ++i) {
    if (i != halo) why = read_side(r, r->site->ops[i], true);
  }
  if (!why) why = read_start(r);
  if (why) return why;
  add_written(r, r->whole, PRODUCT);
  for (int i = product + 1; i < r->site->num_ops && !why; ++i) why = read_side(r, r->site->ops[i], false);
  return why;
}

static MlirValue output_of(const reader_t *r) { return r->written[r->num_written - 1].value; }

static const char *read_output(reader_t *r) {
  MlirValue out = output_of(r);
  if (!is_argument(r, out)) return "its result is no argument";
  if (o3_kernel_site_element(out, &r->gemm.out)) return NULL;
  bool bytes = r->tensor_cores && o3_type_bits(o3_type_element(mlirValueGetType(out))) == 8;
  r->gemm.out = O3_GPU_BYTE;
  return bytes ? NULL : "the result's type is none of f16, bf16, f32";
}

/* ---- The epilogue ---- */

/* |values|: of the extras, then of ops. */
static int write_side(reader_t *r, o3_kernel_text_t *t, const side_t *s, const int *values) {
  int arguments[O3_NEST_MAX_OPERANDS], result = -1;
  for (int i = 0; i < s->nest->num_operands; ++i) {
    o3_gpu_element_t element = O3_GPU_F32;
    o3_kernel_site_element(s->nest->operands[i].value, &element);
    if (s->operands[i] == UNUSED) {
      arguments[i] = o3_kt_value(t, "arith.constant 0.0 : %s", o3_gpu_element_info(element)->mlir);
    } else {
      arguments[i] = values[s->operands[i]];
    }
  }
  if (!r->status) r->status = o3_body_write(t, s->nest, arguments, NULL, NULL, &result);
  return result;
}

/* A start of zero, which adds nothing. */
static bool starts_at_zero(const side_t *s) {
  MlirOperation end = mlirBlockGetTerminator(s->nest->body);
  MlirOperation def = o3_value_def(mlirOperationGetOperand(end, 0));
  return !mlirOperationIsNull(def) && o3_op_is(def, "arith.constant") &&
         o3_op_float(def, "value", 1.0) == 0.0;
}

/* Whether the op gives what it reads, perhaps as another type. */
static bool only_casts(const side_t *s) {
  MlirOperation end = mlirBlockGetTerminator(s->nest->body),
                def = o3_value_def(mlirOperationGetOperand(end, 0));
  if (mlirOperationIsNull(def)) return true;
  bool cast = o3_op_is(def, "arith.truncf") || o3_op_is(def, "arith.extf");
  return cast && mlirOperationIsNull(o3_value_def(mlirOperationGetOperand(def, 0)));
}

static bool epilogue_computes(const reader_t *r) {
  bool computes = r->gemm.num_extras > 0 || !starts_at_zero(&r->sides[r->start]);
  for (int i = r->num_before; i < r->num_before + r->num_after; ++i) computes |= !only_casts(&r->sides[i]);
  return computes;
}

static int write_epilogue(o3_kernel_text_t *t, void *context, int sum, const int *extras) {
  reader_t *r = context;
  int values[RESULTS + PRODUCT + 1], *results = values + RESULTS;
  for (int i = 0; i < r->gemm.num_extras; ++i) values[i] = extras[i];
  for (int i = 0; i < r->num_before; ++i) results[i] = write_side(r, t, &r->sides[i], values);
  results[PRODUCT] = starts_at_zero(&r->sides[r->start])
                         ? sum
                         : o3_kt_value(t, "arith.addf %%v%d, %%v%d : f32", sum, results[r->start]);
  int last = PRODUCT;
  for (int i = r->num_before; i < r->num_before + r->num_after; ++i) {
    results[i] = write_side(r, t, &r->sides[i], values);
    last = i;
  }
  return results[last];
}

/* ---- The kernel ---- */

/* The kernel numbers its buffers A, B, extras, D; the site's are its arguments. */
static void number_arguments(const reader_t *r, o3_gpu_kernel_t *kernel) {
  int extras = r->gemm.num_extras;
  for (int i = 0; i < kernel->num_arguments; ++i) {
    int *buffer = &kernel->arguments[i].buffer;
    if (kernel->arguments[i].kind == O3_GPU_ARG_SCRATCH) continue;
    MlirValue value = *buffer == 0 ? factor_a(r) : *buffer == 1 ? r->b->value : output_of(r);
    *buffer = *buffer >= 2 && *buffer < 2 + extras ? r->extra_arguments[*buffer - 2]
                                                   : o3_kernel_site_argument(r->site, value);
  }
}

/* As below: warps, lanes, columns, depth, sharing, vector (gemv_kernel.h). */
static o3_gemv_schedule_t choose_gemv_schedule(const reader_t *r) {
  int64_t given[6];
  if (o3_op_ints(r->product->op, "o3.schedule", given, 6) != 6)
    return o3_gemv_schedule(&r->gemm, r->site->gpu);
  return (o3_gemv_schedule_t){.warps = (int)given[0],
                              .lanes = (int)given[1],
                              .columns = (int)given[2],
                              .depth = (int)given[3],
                              .sharing = (int)given[4],
                              .vector = (int)given[5]};
}

/* o3.schedule of the product, when it has been chosen before: consumers, products, columns, stages, split,
 * group_rows, store_by_tensor, alternate, and perhaps promote, then streams, then late_stores. */
static o3_gemm_schedule_t choose_schedule(const reader_t *r) {
  enum { FIELDS = 11, OPTIONAL = 3 };
  int64_t given[FIELDS] = {0};
  if (o3_op_ints(r->product->op, "o3.schedule", given, FIELDS) < FIELDS - OPTIONAL) {
    const o3_gpu_t *gpu = r->gemm.rows_of_batch ? r->site->card : r->site->gpu;
    o3_gemm_schedules_t *taken = r->site->taken;
    return taken ? o3_gemm_schedule_again(&r->gemm, gpu, taken) : o3_gemm_schedule(&r->gemm, gpu);
  }
  return (o3_gemm_schedule_t){.consumers = (int)given[0],
                              .products = (int)given[1],
                              .columns = (int)given[2],
                              .stages = (int)given[3],
                              .split = (int)given[4],
                              .blocks = 1,
                              .group_rows = (int)given[5],
                              .store_by_tensor = given[6] != 0,
                              .alternate = given[7] != 0,
                              .promote = (int)given[8],
                              .streams = (int)given[9],
                              .late_stores = given[10] != 0};
}

static const char *read_site(reader_t *r) {
  const char *why = read_ops(r);
  return why ? why : read_output(r);
}

/* o3.schedule of a depthwise one: outputs of a thread. */
static int choose_run(const reader_t *r) {
  int64_t given;
  if (o3_op_ints(r->product->op, "o3.schedule", &given, 1) == 1) return (int)given;
  return o3_depthwise_run(&r->gemm, r->site->gpu->multiprocessors);
}

static bool is_depthwise(const reader_t *r) { return r->gemm.window && r->gemm.window->depthwise; }

static const char *refuse_mma(const reader_t *r) { return o3_mma_refuse(&r->gemm, r->site->sm); }

static const char *refuse(const reader_t *r) {
  bool wgmma = r->site->gpu->matrix & O3_GPU_WGMMA;
  bool bytes = o3_gpu_element_info(r->gemm.element)->bytes == 1 || r->gemm.out == O3_GPU_BYTE;
  if (bytes && (!wgmma || is_depthwise(r))) return "8-bit floats are for warpgroup products alone";
  if (bytes || (r->gemm.element == O3_GPU_TF32 && !r->gemm.rows_at_run_time)) return o3_gemm_refuse(&r->gemm);
  if (is_depthwise(r)) return o3_depthwise_refuse(&r->gemm);
  return wgmma && !o3_gemm_refuse(&r->gemm) ? NULL : refuse_mma(r);
}

static const char *read_all(reader_t *r) {
  const char *why = read_site(r);
  return why ? why : refuse(r);
}

static reader_t *create_reader(const o3_kernel_site_t *site) {
  reader_t *r = O3_ARENA_NEW(site->arena, reader_t);
  if (!r) return NULL;
  *r = (reader_t){.site = site,
                  .product = O3_ARENA_NEW(site->arena, o3_nest_t),
                  .whole = O3_ARENA_NEW(site->arena, o3_nest_t)};
  return r->product && r->whole ? r : NULL;
}

/* Of ops on tensors. */
static o3_kernel_site_t tensor_site(o3_arena_t *arena, const o3_gpu_t *gpu, int num_ops,
                                    const MlirOperation *ops) {
  return (o3_kernel_site_t){
      .arena = arena, .gpu = gpu, .sm = gpu->sm, .num_ops = num_ops, .ops = ops, .num_arguments = -1};
}

const char *o3_gemm_refuse_ops(o3_arena_t *arena, const o3_gpu_t *gpu, int num_ops,
                               const MlirOperation *ops) {
  const o3_kernel_site_t site = tensor_site(arena, gpu, num_ops, ops);
  reader_t *r = create_reader(&site);
  if (r) r->tensor_cores = true;
  return r ? read_all(r) : "memory is out";
}

const char *o3_gemm_refuse_padding(o3_arena_t *arena, const o3_gpu_t *gpu, MlirOperation product,
                                   MlirOperation padding) {
  const o3_kernel_site_t site = tensor_site(arena, gpu, 0, NULL);
  reader_t *r = create_reader(&site);
  if (!r) return "memory is out";
  if (!o3_halo_read(padding, &r->halo)) return "it is no border of zeros";
  r->has_halo = r->tensor_cores = true;
  const char *why = read_product(r, product);
  return why ? why : refuse(r);
}

/* ---- Families ---- */

/* |why_not|: what only the choice of a schedule shows. */
typedef struct family {
  const char *(*refuse)(const reader_t *r);
  o3_status_t (*build)(reader_t *r, o3_gpu_kernel_t *kernel, const char **why_not);
  bool tensor_cores; /* it multiplies f32 as tf32 if it may, and 8-bit floats */
} family_t;

static o3_status_t make(const o3_kernel_site_t *site, const family_t *family, o3_gpu_kernel_t *kernel,
                        const char **why_not) {
  reader_t *r = create_reader(site);
  O3_TRY_ALLOC(r);
  r->tensor_cores = family->tensor_cores && site->gpu->matrix & O3_GPU_MMA_BF16;
  *kernel = (o3_gpu_kernel_t){0};
  *why_not = read_site(r);
  if (!*why_not) *why_not = family->refuse(r);
  if (*why_not) return NULL;
  r->gemm.epilogue = write_epilogue;
  r->gemm.epilogue_context = r;
  r->gemm.epilogue_computes = epilogue_computes(r);
  O3_TRY(family->build(r, kernel, why_not));
  if (!*why_not) number_arguments(r, kernel);
  return r->status;
}

static const char *refuse_gemm(const reader_t *r) {
  return is_depthwise(r) ? "its windows are of one channel each" : o3_gemm_refuse(&r->gemm);
}

static o3_status_t check_schedule(const char *refused) {
  return refused ? o3_status_create(O3_STATUS_INVALID_MODEL, "o3.schedule of a product: %s", refused) : NULL;
}

static int64_t unit_of(const reader_t *r, int argument) {
  return argument < 0 ? 0 : o3_open_batch_unit(r->site->batch, r->site->arguments[argument]);
}

static bool joins_extra(const reader_t *r, int extra) {
  int64_t unit = unit_of(r, r->extra_arguments[extra]), pitch = r->gemm.extras[extra].strides[O3_GEMM_ROW];
  return pitch ? unit == r->gemm.m * pitch : !unit;
}

enum { ROOM = 2 }; /* a kernel for some batches is for up to twice the usual ones */

/* Where the rows of all batches lie one behind the other they are those of one product, which is told how
 * many: tiles then reach from one batch into the next. It is scheduled as the whole of the usual batches. */
static void tell_rows(reader_t *r) {
  o3_gemm_t *g = &r->gemm;
  if (!r->site->batch || o3_gemm_batches(g) > 1) return;
  int64_t a = unit_of(r, o3_kernel_site_argument(r->site, factor_a(r)));
  bool joins = (g->window || a == g->m * g->a_pitch) && a &&
               !unit_of(r, o3_kernel_site_argument(r->site, r->b->value)) &&
               unit_of(r, o3_kernel_site_argument(r->site, output_of(r))) == g->m * g->d_pitch;
  for (int i = 0; i < g->num_extras; ++i) joins &= joins_extra(r, i);
  o3_gemm_t told = *g;
  told.rows_of_batch = g->m;
  told.m *= r->site->usual_batches;
  told.rows_at_run_time = true;
  told.any_rows = r->site->any_batches;
  if (!joins || told.m * g->n > INT32_MAX || o3_gemm_most_told(&told) < ROOM * told.m) return;
  *g = told;
}

/* Otherwise a kernel of one batch that is to run for all may be told how many there are: its blocks then go
 * on from one to the next. */
static void tell_batches(reader_t *r, const o3_gemm_schedule_t *schedule) {
  if (!r->site->batch || r->gemm.rows_at_run_time || schedule->split > 1 || r->gemm.batch[0] > 1) return;
  o3_gemm_t told = r->gemm;
  told.batches_at_run_time = true;
  told.a_batch[0] = unit_of(r, o3_kernel_site_argument(r->site, factor_a(r)));
  told.b_batch[0] = unit_of(r, o3_kernel_site_argument(r->site, r->b->value));
  told.d_batch[0] = unit_of(r, o3_kernel_site_argument(r->site, output_of(r)));
  for (int i = 0; i < told.num_extras; ++i)
    told.extras[i].strides[O3_GEMM_OUTER] = unit_of(r, r->extra_arguments[i]);
  if (!told.d_batch[0] || o3_gemm_refuse(&told)) return;
  if (o3_gemm_most_told(&told) >= ROOM * r->site->usual_batches) r->gemm = told;
}

enum { MMA_FIELDS = 10 };

/* As above: warps, pieces, slices, line_bytes, stages, blocks, group_rows, staged (mma_kernel.h). */
static o3_mma_schedule_t choose_mma_schedule(const reader_t *r, const o3_mma_card_t *card) {
  int64_t given[MMA_FIELDS];
  if (o3_op_ints(r->product->op, "o3.schedule", given, MMA_FIELDS) != MMA_FIELDS)
    return o3_mma_schedule(&r->gemm, card);
  return (o3_mma_schedule_t){.warps = {(int)given[0], (int)given[1]},
                             .pieces = {(int)given[2], (int)given[3]},
                             .slices = (int)given[4],
                             .line_bytes = (int)given[5],
                             .stages = (int)given[6],
                             .blocks = (int)given[7],
                             .group_rows = (int)given[8],
                             .staged = given[9] != 0};
}

static o3_mma_card_t mma_card(const reader_t *r) {
  return (o3_mma_card_t){.sm = r->site->sm,
                         .multiprocessors = r->site->gpu->multiprocessors,
                         .shared_bytes = r->site->shared_bytes};
}

/* A product with an open batch is offered to warpgroups, and to warps: o3.schedule says for which it is. */
static bool has_mma_schedule(const reader_t *r) {
  int64_t given[MMA_FIELDS];
  if (!r->site->batch || refuse_mma(r) ||
      o3_op_ints(r->product->op, "o3.schedule", given, MMA_FIELDS) != MMA_FIELDS)
    return false;
  const o3_mma_card_t card = mma_card(r);
  const o3_mma_schedule_t s = choose_mma_schedule(r, &card);
  return !o3_mma_refuse_schedule(&r->gemm, &s, &card);
}

static o3_status_t build_gemm(reader_t *r, o3_gpu_kernel_t *kernel, const char **why_not) {
  bool of_warps = has_mma_schedule(r); /* of one batch, as warps would be offered it */
  tell_rows(r);
  o3_gemm_schedule_t schedule = choose_schedule(r);
  if (!schedule.columns) {
    *why_not = "the stages of no tile fit into the card's shared memory";
    return NULL;
  }
  const char *refused = o3_gemm_refuse_schedule(&r->gemm, &schedule, r->site->shared_bytes);
  if (refused && of_warps) {
    *why_not = "its o3.schedule is one of warps";
    return NULL;
  }
  O3_TRY(check_schedule(refused));
  tell_batches(r, &schedule);
  O3_TRY(o3_gemm_build(&r->gemm, &schedule, r->site->multiprocessors, kernel));
  O3_GPU_KERNEL_NOTE(kernel, {"consumers", schedule.consumers}, {"products", schedule.products},
                     {"columns", schedule.columns}, {"stages", schedule.stages}, {"split", schedule.split},
                     {"group_rows", schedule.group_rows}, {"store_by_tensor", schedule.store_by_tensor},
                     {"alternate", schedule.alternate}, {"promote", schedule.promote},
                     {"streams", schedule.streams}, {"late_stores", schedule.late_stores});
  return NULL;
}

o3_status_t o3_gemm_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not) {
  return make(site, &(family_t){refuse_gemm, build_gemm, true}, kernel, why_not);
}

static const char *refuse_depthwise(const reader_t *r) {
  return is_depthwise(r) ? o3_depthwise_refuse(&r->gemm) : "it has no windows of one channel each";
}

static o3_status_t build_depthwise(reader_t *r, o3_gpu_kernel_t *kernel, const char **why_not) {
  (void)why_not;
  int run = choose_run(r);
  O3_TRY(check_schedule(o3_depthwise_refuse_run(&r->gemm, run)));
  return o3_depthwise_build(&r->gemm, run, r->site->gpu, kernel);
}

o3_status_t o3_depthwise_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not) {
  return make(site, &(family_t){refuse_depthwise, build_depthwise, false}, kernel, why_not);
}

static o3_status_t build_mma(reader_t *r, o3_gpu_kernel_t *kernel, const char **why_not) {
  const o3_mma_card_t card = mma_card(r);
  o3_mma_schedule_t s = choose_mma_schedule(r, &card);
  if (!s.blocks) {
    *why_not = "the stages of no tile fit into the card's shared memory";
    return NULL;
  }
  O3_TRY(check_schedule(o3_mma_refuse_schedule(&r->gemm, &s, &card)));
  O3_TRY(o3_mma_build(&r->gemm, &s, &card, kernel));
  O3_GPU_KERNEL_NOTE(kernel, {"warp_rows", s.warps[0]}, {"warp_columns", s.warps[1]},
                     {"piece_rows", s.pieces[0]}, {"piece_columns", s.pieces[1]}, {"slices", s.slices},
                     {"stages", s.stages}, {"group_rows", s.group_rows}, {"staged", s.staged});
  return NULL;
}

o3_status_t o3_mma_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not) {
  return make(site, &(family_t){refuse_mma, build_mma, true}, kernel, why_not);
}

/* Where warpgroups multiply halves, more rows than these take as long or longer. */
static bool is_for_warpgroups(const reader_t *r) {
  int64_t most = r->gemm.b_by_rows ? 2 : 4;
  bool wgmma = (r->site->gpu->matrix & O3_GPU_WGMMA) != 0;
  return wgmma && r->gemm.m > most && !o3_gemm_refuse(&r->gemm);
}

static const char *refuse_gemv(const reader_t *r) {
  const char *why = o3_gemv_refuse(&r->gemm);
  if (why) return why;
  return is_for_warpgroups(r) ? "it has as many rows as warpgroups multiply as quickly" : NULL;
}

static o3_status_t build_gemv(reader_t *r, o3_gpu_kernel_t *kernel, const char **why_not) {
  (void)why_not;
  o3_gemv_schedule_t s = choose_gemv_schedule(r);
  O3_TRY(check_schedule(o3_gemv_refuse_schedule(&r->gemm, &s, r->site->gpu)));
  O3_TRY(o3_gemv_build(&r->gemm, &s, r->site->gpu->sm >= 90, kernel));
  O3_GPU_KERNEL_NOTE(kernel, {"warps", s.warps}, {"lanes", s.lanes}, {"columns", s.columns},
                     {"depth", s.depth}, {"sharing", s.sharing}, {"vector", s.vector});
  return NULL;
}

o3_status_t o3_gemv_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not) {
  return make(site, &(family_t){refuse_gemv, build_gemv, false}, kernel, why_not);
}
