/* Attention in one pass over the keys.
 *
 *     scf.parallel (batch, heads, queries by 128)   sizes are the schedule's
 *       tile: 128 queries x 128 keys of scores, on the stack
 *       scf.for keys by 128, those blocks of which a mask hides all left out (attention_mask.h)
 *         tile = Q K^T                           o3k_f32_gemm_block
 *         scale, masks                           the loops of the ops, on the tile
 *         greatest of the rows                   with the last of these ops, or o3k_f32_softmax_greatest
 *         tile = exp(tile - greatest), ...       o3k_f32_softmax_block
 *         Y += tile V                            o3k_f32_gemm_block
 *       Y /= sums
 *
 * The products are those of contract.c on other memory: the buffers of scores and probabilities become the
 * tile, whose steps along batch and heads are 0 and whose origin is the task's first query and the block's
 * first key. The softmax is done by what softmax_text.h says; that the ops are one, the fuse stage has found
 * (fuse/group_attention.h).
 */
#include "target/cpu/attention.h"

#include <stdlib.h>
#include <string.h>

#include "target/cpu/attention_mask.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/gemm_product.h"
#include "target/cpu/gemm_text.h"
#include "target/cpu/softmax_text.h"
#include "target/cpu/thin_product.h"
#include "target/cpu/vector_row.h"

enum { MAX_SIDES = 4, UNKNOWN_KEYS = 256, UNKNOWN_WIDTH = 64 };

typedef struct attention {
  o3_pass_env_t *env;
  MlirModule module;
  o3_gemm_shape_t shape, value_shape; /* of the two products */
  char block[O3_GEMM_NAME], value_block[O3_GEMM_NAME];
  o3_nest_t score_nest, mixed_nest;
  o3_gemm_product_t scores, mixed;
  int to_mixed[O3_IR_MAX_RANK]; /* dim of the first product -> of the second, -1: none */
  int num_sides;
  o3_gemm_side_t sides[MAX_SIDES];
  bool is_masked; /* the last side is a mask */
  o3_attention_mask_t mask;
  int64_t queries; /* of a task */
  /* A task's: */
  MlirValue tile, greatest, sums, here; /* memref on the stack; flat ones, the last the block's greatest */
  MlirValue around[O3_IR_MAX_RANK], row_lower, row_upper, keys, width;
  /* A block's: */
  MlirValue key_lower, key_upper;
} attention_t;

/* ---- Recognition ---- */

static int dim_at(const o3_nest_operand_t *operand, int position) {
  MlirAffineExpr expr = operand->all_exprs[position];
  return expr.ptr && mlirAffineExprIsADim(expr) ? (int)mlirAffineDimExprGetPosition(expr) : -1;
}

static bool is_zero(MlirAffineExpr expr) {
  return expr.ptr && mlirAffineExprIsAConstant(expr) && mlirAffineConstantExprGetValue(expr) == 0;
}

static bool has_dim(const o3_gemm_dims_t *dims, int dim) {
  for (int i = 0; i < dims->count; ++i) {
    if (dims->at[i] == dim) return true;
  }
  return false;
}

/* What is around one product is around the other, or has one turn. */
static bool match_around(const attention_t *self) {
  const o3_gemm_product_t *s = &self->scores, *m = &self->mixed;
  bool partner[O3_IR_MAX_RANK] = {0};
  for (int i = 0; i < s->around.count; ++i) {
    int to = self->to_mixed[s->around.at[i]];
    if (to < 0 && s->nest->sizes[s->around.at[i]] != 1) return false;
    if (to >= 0 && !has_dim(&m->around, to)) return false;
    if (to >= 0) partner[to] = true;
  }
  for (int i = 0; i < m->around.count; ++i) {
    if (!partner[m->around.at[i]] && m->nest->sizes[m->around.at[i]] != 1) return false;
  }
  return true;
}

/* The left operand of the second product is walked as the first one's result; each dim has its part in both,
 * but for a batch of one, which may be the place 0 there. */
static bool match_dims(attention_t *self) {
  const o3_gemm_product_t *s = &self->scores, *m = &self->mixed;
  if (s->c->num_terms != m->a->num_terms) return false;
  for (int d = 0; d < s->nest->num_dims; ++d) self->to_mixed[d] = -1;
  for (int r = 0; r < s->c->num_terms; ++r) {
    int from = dim_at(s->c, r), to = dim_at(m->a, r);
    if (from < 0 || (to < 0 && !(is_zero(m->a->all_exprs[r]) && s->nest->sizes[from] == 1))) return false;
    self->to_mixed[from] = to;
  }
  return match_around(self) && self->to_mixed[s->rows.at[0]] == m->rows.at[0] &&
         self->to_mixed[s->columns.at[0]] == m->depth.at[0];
}

static const char *read_products(attention_t *self, MlirOperation scores, MlirOperation mixed) {
  if (!o3_nest_read_any(scores, &self->score_nest) || !o3_gemm_match(&self->score_nest, &self->scores))
    return "the register-tiled kernel does not take the scores' product";
  if (!o3_nest_read_any(mixed, &self->mixed_nest) || !o3_gemm_match(&self->mixed_nest, &self->mixed))
    return "the register-tiled kernel does not take this product";
  if (!mlirTypeIsAF32(o3_type_element(mlirValueGetType(self->scores.c->value))))
    return "the kernel computes in f32 only";
  if (self->scores.columns.count != 1 || self->mixed.columns.count != 1 || self->mixed.depth.count != 1)
    return "keys or values have more than one dimension that the kernel's loops walk";
  return match_dims(self) ? NULL : "it does not walk the probabilities as the scores were made";
}

static const char *read_sides(attention_t *self, int count, const MlirOperation *ops) {
  if (count > MAX_SIDES) return "too many ops on the scores";
  for (int i = 0; i < count; ++i) {
    o3_gemm_side_t *side = &self->sides[i];
    if (!o3_gemm_read_side(&self->scores, ops[i], side))
      return "an op on the scores has other loops than they";
    const char *why = o3_gemm_merge_columns(&self->scores, side);
    if (why) return why;
  }
  self->num_sides = count;
  self->is_masked = count && o3_attention_mask_read(&self->scores, &self->sides[count - 1], &self->mask);
  return NULL;
}

/* Few vectors are multiplied as they lie: keys and values are read once, where packing them writes them and
 * reads them once more, for few queries. */
static bool has_few_queries(attention_t *self) {
  o3_gemm_product_t scores, mixed;
  return o3_thin_match(&self->score_nest, &scores) && o3_thin_match(&self->mixed_nest, &mixed);
}

const char *o3_attention_refuse(MlirOperation scores, MlirOperation mixed, int num_sides,
                                const MlirOperation *sides) {
  static _Thread_local attention_t self;
  memset(&self, 0, sizeof(self));
  const char *why = read_products(&self, scores, mixed);
  if (!why && has_few_queries(&self)) why = "its queries are few: packing keys and values takes longer";
  return why ? why : read_sides(&self, num_sides, sides);
}

/* ---- The tile ---- */

static MlirValue alloca_of(o3_builder_t *b, int rank, const int64_t *sizes) {
  int32_t none[2] = {0, 0};
  MlirType f32 = mlirF32TypeGet(b->context);
  return o3_build1_attrs(b, "memref.alloca", o3_memref_type(rank, sizes, f32), O3_NO_VALUES,
                         O3_ATTRS({"alignment", o3_attr_i64(b->context, O3_CPU_ALIGNMENT)},
                                  {"operandSegmentSizes", mlirDenseI32ArrayGet(b->context, 2, none)}));
}

static MlirValue flat_of(o3_builder_t *b, MlirValue memref) {
  return o3_cpu_flat(b, mlirOperationGetResult(o3_cpu_metadata(b, memref), 0));
}

/* Scores and probabilities are the tile from now on. */
static void build_tile(attention_t *self, o3_builder_t *b, int num_buffers, const MlirOperation *buffers) {
  int64_t sizes[O3_IR_MAX_RANK];
  const o3_nest_operand_t *c = self->scores.c;
  for (int r = 0; r < c->num_terms; ++r) {
    int dim = dim_at(c, r);
    sizes[r] = dim == self->scores.rows.at[0]      ? self->queries
               : dim == self->scores.columns.at[0] ? self->shape.columns
                                                   : 1;
  }
  self->tile = alloca_of(b, c->num_terms, sizes);
  self->greatest = flat_of(b, alloca_of(b, 1, &self->queries));
  self->sums = flat_of(b, alloca_of(b, 1, &self->queries));
  self->here = flat_of(b, alloca_of(b, 1, &self->queries));
  for (int i = 0; i < num_buffers; ++i)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(buffers[i], 0), self->tile);
}

/* |operand| of the op that |nest| reads, if it is the tile: its steps. */
static void use_tile(const attention_t *self, o3_nest_t *nest) {
  const o3_nest_operand_t *c = self->scores.c;
  for (int i = 0; i < nest->num_operands; ++i) {
    o3_nest_operand_t *operand = &nest->operands[i];
    operand->value = mlirOperationGetOperand(nest->op, i);
    if (!mlirValueEqual(operand->value, self->tile)) continue;
    operand->is_contiguous = false;
    for (int r = 0; r < operand->num_terms; ++r) {
      int dim = dim_at(c, r);
      operand->strides[r] = dim == self->scores.rows.at[0]      ? self->shape.columns
                            : dim == self->scores.columns.at[0] ? 1
                                                                : 0;
    }
  }
}

/* The tile's element for query |row| and key |key| is at |row| * columns + |key| - this. */
static MlirValue origin(const attention_t *self, o3_builder_t *b, MlirValue key) {
  MlirValue columns = o3_build_index(b, self->shape.columns);
  MlirValue at = o3_build2(b, "arith.addi", o3_build2(b, "arith.muli", self->row_lower, columns), key);
  return o3_build2(b, "arith.subi", o3_build_index(b, 0), at);
}

static void move_tile(const attention_t *self, o3_nest_t *nest, MlirValue offset) {
  for (int i = 0; i < nest->num_operands; ++i) {
    if (mlirValueEqual(nest->operands[i].value, self->tile)) nest->operands[i].offset = offset;
  }
}

/* ---- A block of keys ---- */

/* While the rows of one product are computed, the next task's keys or values are fetched to the second-level
 * cache: |rows| of them along the dim |row|, from the place |ivs| in this task on, contiguous along |line|.
 */
static void fetch_next(const o3_gemm_product_t *p, o3_builder_t *b, MlirValue *ivs, int row, int line,
                       MlirValue rows, MlirValue *a) {
  int64_t step;
  if (!p->around.count || !o3_nest_step(p->b, line, &step) || step != 1) return;
  int next = p->around.at[p->around.count - 1];
  ivs[next] = o3_build2(b, "arith.addi", ivs[next], o3_build_index(b, 1));
  a[O3_GEMM_FETCH_AT] = o3_nest_address(p->nest, p->b, b, ivs);
  a[O3_GEMM_FETCH_ROW] = o3_nest_step_value(p->b, row, b);
  a[O3_GEMM_FETCH_ROWS] = rows;
  a[O3_GEMM_FETCH_COUNT] = p->nest->size_values[line];
}

static void build_scores(attention_t *self, o3_builder_t *b) {
  MlirValue a[O3_GEMM_ARGUMENTS], ivs[O3_IR_MAX_RANK], zero = o3_build_index(b, 0);
  for (int d = 0; d < self->score_nest.num_dims; ++d) ivs[d] = zero;
  for (int i = 0; i < self->scores.around.count; ++i) ivs[self->scores.around.at[i]] = self->around[i];
  o3_gemm_arguments(&self->scores, b, ivs, a);
  a[O3_GEMM_M_LO] = self->row_lower;
  a[O3_GEMM_M_HI] = self->row_upper;
  a[O3_GEMM_N_LO] = self->key_lower;
  a[O3_GEMM_N_HI] = self->key_upper;
  a[O3_GEMM_FRESH] = o3_build_index(b, 1);
  ivs[self->scores.columns.at[0]] = self->key_lower;
  fetch_next(&self->scores, b, ivs, self->scores.columns.at[0], self->scores.depth.at[0],
             o3_build2(b, "arith.subi", self->key_upper, self->key_lower), a);
  o3_cpu_call(b, self->block, O3_GEMM_ARGUMENTS, a);
}

typedef struct side_loop {
  attention_t *self;
  o3_gemm_side_t *side;
  bool is_last; /* with the greatest of each row */
} side_loop_t;

/* The side's dims at |row| of the task. */
static void place_side(const attention_t *self, o3_builder_t *b, const o3_gemm_side_t *side, MlirValue row,
                       o3_loops_frame_t *frame) {
  const o3_gemm_product_t *p = &self->scores;
  for (int i = 0; i < p->around.count; ++i)
    o3_gemm_split_place(p, side, b, p->around.at[i], self->around[i], frame);
  o3_gemm_split_place(p, side, b, p->rows.at[0], row, frame);
}

static o3_status_t side_row(o3_builder_t *b, void *context, MlirValue row, const MlirValue *carried,
                            MlirValue *next) {
  const side_loop_t *loop = context;
  const attention_t *self = loop->self;
  const o3_gemm_product_t *p = &self->scores;
  (void)carried, (void)next;
  o3_loops_frame_t frame = {
      .ranged = loop->side->dims[p->columns.at[0]], .lower = self->key_lower, .upper = self->key_upper};
  place_side(self, b, loop->side, row, &frame);
  if (!loop->is_last) return o3_loops_build(&loop->side->nest, b, &frame);
  const o3_vector_row_t at = {.nest = &loop->side->nest,
                              .dim = loop->side->dims[p->columns.at[0]],
                              .lanes = self->shape.lanes,
                              .ivs = frame.ivs,
                              .lower = self->key_lower,
                              .upper = self->key_upper};
  MlirValue greatest, place = o3_build2(b, "arith.subi", row, self->row_lower);
  O3_TRY(o3_vector_row_build(&at, b, &greatest));
  o3_build0(b, "memref.store", O3_VALUES(greatest, self->here, place));
  return NULL;
}

static o3_status_t build_side(attention_t *self, o3_builder_t *b, o3_gemm_side_t *side, MlirValue offset,
                              bool is_last) {
  side_loop_t context = {self, side, is_last};
  move_tile(self, &side->nest, offset);
  o3_for_t rows = {.lower = self->row_lower,
                   .upper = self->row_upper,
                   .step = o3_build_index(b, 1),
                   .body = side_row,
                   .context = &context};
  return o3_build_for(b, &rows, NULL);
}

/* The task's places around the second product; 0 for its other dims. */
static void mixed_around(const attention_t *self, o3_builder_t *b, MlirValue *ivs) {
  for (int d = 0; d < self->mixed.nest->num_dims; ++d) ivs[d] = o3_build_index(b, 0);
  for (int i = 0; i < self->scores.around.count; ++i) {
    int to = self->to_mixed[self->scores.around.at[i]];
    if (to >= 0) ivs[to] = self->around[i];
  }
}

/* The first result of the task's first row, and from one row to the next. */
static void result_place(const attention_t *self, o3_builder_t *b, MlirValue *at, MlirValue *row) {
  const o3_gemm_product_t *m = &self->mixed;
  MlirValue ivs[O3_IR_MAX_RANK];
  mixed_around(self, b, ivs);
  ivs[m->rows.at[0]] = self->row_lower;
  *at = o3_nest_address(m->nest, m->c, b, ivs);
  *row = o3_nest_step_value(m->c, m->rows.at[0], b);
}

static MlirValue row_count(const attention_t *self, o3_builder_t *b) {
  return o3_build2(b, "arith.subi", self->row_upper, self->row_lower);
}

static void build_softmax(const attention_t *self, o3_builder_t *b, MlirValue columns, bool has_greatest) {
  MlirValue at, row, zero = o3_build_index(b, 0), step = o3_build_index(b, self->shape.columns);
  MlirValue tile = self->scores.c->flat, rows = row_count(self, b);
  result_place(self, b, &at, &row);
  if (!has_greatest)
    o3_cpu_call(b, O3_SOFTMAX_GREATEST, O3_VALUES(tile, zero, step, self->here, zero, rows, columns));
  o3_cpu_call(b, O3_SOFTMAX_BLOCK,
              O3_VALUES(tile, zero, step, self->here, zero, self->greatest, zero, self->sums, zero,
                        self->mixed.c->flat, at, row, rows, columns, self->width));
}

/* Whose result is that of the task so far. */
static MlirValue is_first_block(const attention_t *self, o3_builder_t *b) {
  return o3_build_cmpi(b, O3_CMPI_EQ, self->key_lower, o3_build_index(b, 0));
}

typedef struct mixed_loop {
  attention_t *self;
  MlirValue keys; /* of this block */
} mixed_loop_t;

/* The columns of the result from |column| on that one call takes. */
static o3_status_t mixed_columns(o3_builder_t *b, void *context, MlirValue column, const MlirValue *carried,
                                 MlirValue *next) {
  const mixed_loop_t *loop = context;
  attention_t *self = loop->self;
  const o3_gemm_product_t *m = &self->mixed;
  MlirValue a[O3_GEMM_ARGUMENTS], ivs[O3_IR_MAX_RANK];
  (void)carried, (void)next;
  mixed_around(self, b, ivs);
  ivs[m->depth.at[0]] = self->key_lower;
  move_tile(self, &self->mixed_nest, origin(self, b, self->key_lower));
  o3_gemm_arguments(m, b, ivs, a);
  MlirValue end = o3_build2(b, "arith.addi", column, o3_build_index(b, self->value_shape.columns));
  a[O3_GEMM_M_LO] = self->row_lower;
  a[O3_GEMM_M_HI] = self->row_upper;
  a[O3_GEMM_N_LO] = column;
  a[O3_GEMM_N_HI] = o3_build2(b, "arith.minsi", end, self->width);
  a[O3_GEMM_K0] = a[O3_GEMM_DEPTH] = loop->keys;
  a[O3_GEMM_FRESH] =
      o3_build1(b, "arith.index_castui", o3_build_index_type(b), O3_VALUES(is_first_block(self, b)));
  fetch_next(m, b, ivs, m->depth.at[0], m->columns.at[0], loop->keys, a);
  o3_cpu_call(b, self->value_block, O3_GEMM_ARGUMENTS, a);
  return NULL;
}

/* What the block adds. */
static o3_status_t build_seen(o3_builder_t *b, void *context, MlirValue *yields) {
  attention_t *self = context;
  MlirValue key = self->key_lower, offset = origin(self, b, key);
  MlirValue count = o3_build2(b, "arith.subi", self->key_upper, key);
  (void)yields;
  move_tile(self, &self->score_nest, offset);
  build_scores(self, b);
  const o3_gemm_side_t *last = self->num_sides ? &self->sides[self->num_sides - 1] : NULL;
  bool has_greatest = last && o3_vector_row_fits(&last->nest, last->dims[self->scores.columns.at[0]]);
  for (int i = 0; i < self->num_sides; ++i)
    O3_TRY(build_side(self, b, &self->sides[i], offset, has_greatest && i + 1 == self->num_sides));
  build_softmax(self, b, count, has_greatest);
  mixed_loop_t loop = {self, count};
  o3_for_t columns = {.lower = o3_build_index(b, 0),
                      .upper = self->width,
                      .step = o3_build_index(b, self->value_shape.columns),
                      .body = mixed_columns,
                      .context = &loop};
  return o3_build_for(b, &columns, NULL);
}

static MlirValue build_is_seen(const attention_t *self, o3_builder_t *b) {
  const o3_gemm_side_t *side = &self->sides[self->num_sides - 1];
  o3_loops_frame_t frame = {.ranged = -1};
  place_side(self, b, side, self->row_lower, &frame);
  frame.ivs[side->dims[self->scores.columns.at[0]]] = self->key_lower;
  o3_attention_block_t block = {.ivs = frame.ivs,
                                .rows = row_count(self, b),
                                .columns = o3_build2(b, "arith.subi", self->key_upper, self->key_lower),
                                .greatest = self->greatest};
  return o3_attention_mask_build(&self->scores, side, &self->mask, b, &block);
}

static o3_status_t build_clear(o3_builder_t *b, void *context, MlirValue *yields) {
  const attention_t *self = context;
  MlirValue at, row;
  (void)yields;
  result_place(self, b, &at, &row);
  o3_cpu_call(b, O3_SOFTMAX_CLEAR, O3_VALUES(self->mixed.c->flat, at, row, row_count(self, b), self->width));
  return NULL;
}

/* What a block does of which all is hidden. */
static o3_status_t build_hidden(o3_builder_t *b, void *context, MlirValue *yields) {
  o3_if_t first = {.condition = is_first_block(context, b), .then_body = build_clear, .context = context};
  (void)yields;
  return o3_build_if(b, &first, NULL);
}

static o3_status_t build_block(o3_builder_t *b, void *context, MlirValue key, const MlirValue *carried,
                               MlirValue *next) {
  attention_t *self = context;
  MlirValue end = o3_build2(b, "arith.addi", key, o3_build_index(b, self->shape.columns));
  (void)carried, (void)next;
  self->key_lower = key;
  self->key_upper = o3_build2(b, "arith.minsi", end, self->keys);
  if (!self->is_masked) return build_seen(b, self, NULL);
  o3_if_t seen = {.condition = build_is_seen(self, b),
                  .then_body = build_seen,
                  .else_body = build_hidden,
                  .context = self};
  return o3_build_if(b, &seen, NULL);
}

/* ---- A task ---- */

static void flatten(attention_t *self, o3_builder_t *b) {
  use_tile(self, &self->score_nest);
  use_tile(self, &self->mixed_nest);
  o3_nest_flatten(&self->score_nest, b);
  o3_nest_flatten(&self->mixed_nest, b);
  for (int i = 0; i < self->num_sides; ++i) {
    use_tile(self, &self->sides[i].nest);
    o3_nest_flatten(&self->sides[i].nest, b);
  }
  if (self->is_masked) {
    const o3_nest_t *last = &self->sides[self->num_sides - 1].nest;
    self->is_masked = !mlirValueEqual(last->operands[self->mask.operand].value, self->tile);
  }
}

static o3_status_t build_end(o3_builder_t *b, void *context, MlirValue *yields) {
  const attention_t *self = context;
  MlirValue at, row;
  (void)yields;
  result_place(self, b, &at, &row);
  o3_cpu_call(b, O3_SOFTMAX_END,
              O3_VALUES(self->sums, o3_build_index(b, 0), self->mixed.c->flat, at, row, row_count(self, b),
                        self->width));
  return NULL;
}

/* Without keys the result is the empty sum, as it is without fusion, and not divided by one. */
static o3_status_t build_task(attention_t *self, o3_builder_t *b) {
  MlirValue zero = o3_build_index(b, 0);
  flatten(self, b);
  o3_cpu_call(b, O3_SOFTMAX_BEGIN, O3_VALUES(self->greatest, zero, self->sums, zero, row_count(self, b)));
  o3_for_t keys = {.lower = zero,
                   .upper = self->keys,
                   .step = o3_build_index(b, self->shape.columns),
                   .body = build_block,
                   .context = self};
  O3_TRY(o3_build_for(b, &keys, NULL));
  o3_if_t any = {.condition = o3_build_cmpi(b, O3_CMPI_UGT, self->keys, zero),
                 .then_body = build_end,
                 .else_body = build_clear,
                 .context = self};
  return o3_build_if(b, &any, NULL);
}

static int64_t task_work(const attention_t *self) {
  int64_t keys = self->score_nest.sizes[self->scores.columns.at[0]], depth = 1;
  int64_t width = self->mixed_nest.sizes[self->mixed.columns.at[0]];
  for (int i = 0; i < self->scores.depth.count; ++i) {
    int64_t size = self->score_nest.sizes[self->scores.depth.at[i]];
    depth *= size < 0 ? UNKNOWN_WIDTH : size;
  }
  double work = (double)self->queries * (double)(keys < 0 ? UNKNOWN_KEYS : keys) *
                (double)(depth + (width < 0 ? UNKNOWN_WIDTH : width)) / self->shape.lanes;
  return work < 1 ? 1 : work > 1e15 ? (int64_t)1e15 : (int64_t)work;
}

static o3_status_t build(attention_t *self, o3_builder_t *b, int num_buffers, const MlirOperation *buffers) {
  MlirValue sizes[O3_IR_MAX_RANK + 1], steps[O3_IR_MAX_RANK + 1], at[O3_IR_MAX_RANK + 1];
  int count = self->scores.around.count;
  for (int i = 0; i < count; ++i) {
    sizes[i] = o3_nest_own_size(&self->score_nest, self->scores.around.at[i], b);
    steps[i] = o3_build_index(b, 1);
  }
  MlirValue rows = o3_nest_own_size(&self->score_nest, self->scores.rows.at[0], b);
  sizes[count] = rows;
  steps[count] = o3_build_index(b, self->queries);
  self->keys = o3_nest_own_size(&self->score_nest, self->scores.columns.at[0], b);
  self->width = o3_nest_own_size(&self->mixed_nest, self->mixed.columns.at[0], b);
  o3_builder_t in = o3_cpu_parallel(b, count + 1, sizes, steps, task_work(self), at);
  for (int i = 0; i < count; ++i) self->around[i] = at[i];
  self->row_lower = at[count];
  MlirValue end = o3_build2(&in, "arith.addi", at[count], o3_build_index(&in, self->queries));
  self->row_upper = o3_build2(&in, "arith.minsi", end, rows);
  build_tile(self, &in, num_buffers, buffers);
  return build_task(self, &in);
}

/* ---- The kernel ---- */

static o3_status_t add_text(MlirModule module, char *text, const char *what) {
  O3_TRY_ALLOC(text);
  o3_status_t status = o3_cpu_add_functions(module, text, what);
  free(text);
  return status;
}

static bool reduces(const o3_nest_t *nest) {
  for (int d = 0; d < nest->num_dims; ++d) {
    if (nest->reduction[d]) return true;
  }
  return false;
}

/* The first op that reduces is the product; what has inputs and comes before the next one is done to the
 * scores.
 */
static int list_sides(int num_ops, const MlirOperation *ops, MlirOperation *scores, MlirOperation *sides) {
  static _Thread_local o3_nest_t nest;
  int count = 0;
  *scores = (MlirOperation){0};
  for (int i = 0; i < num_ops; ++i) {
    bool read = o3_nest_read_any(ops[i], &nest);
    if (read && reduces(&nest)) {
      if (!mlirOperationIsNull(*scores)) break;
      *scores = ops[i];
    } else if (!mlirOperationIsNull(*scores) && (!read || nest.num_inputs) && count <= MAX_SIDES) {
      sides[count++] = ops[i];
    }
  }
  return count;
}

static o3_status_t read(attention_t *self, int num_ops, const MlirOperation *ops) {
  MlirOperation sides[MAX_SIDES + 1], scores;
  int num_sides = list_sides(num_ops, ops, &scores, sides);
  const char *why =
      mlirOperationIsNull(scores) ? "there is no product" : read_products(self, scores, ops[num_ops - 1]);
  if (!why) why = read_sides(self, num_sides, sides);
  if (!why) return NULL;
  return o3_status_create(O3_STATUS_INTERNAL, "op '%.*s' is in a kernel of attention that cannot be: %s",
                          O3_STR_ARGS(o3_op_label(ops[num_ops - 1])), why);
}

static bool is_kept(const attention_t *self, MlirOperation op) {
  bool kept = mlirOperationEqual(op, self->score_nest.op) || mlirOperationEqual(op, self->mixed_nest.op);
  for (int i = 0; i < self->num_sides; ++i) kept |= mlirOperationEqual(op, self->sides[i].nest.op);
  return kept;
}

/* Those of the softmax; the others are read until their loops are there. */
static void destroy_ops(const attention_t *self, int num_ops, const MlirOperation *ops, bool kept) {
  for (int i = 0; i < num_ops; ++i) {
    if (is_kept(self, ops[i]) == kept) mlirOperationDestroy(ops[i]);
  }
}

/* The schedule of the first product tells the packed kernels of both. */
static o3_status_t read_schedule(const attention_t *self, o3_schedule_attention_t *schedule) {
  const o3_gemm_product_t *s = &self->scores;
  const o3_schedule_heads_t heads = {.around = o3_gemm_count(s, &s->around, 1),
                                     .queries = s->nest->sizes[s->rows.at[0]],
                                     .keys = s->nest->sizes[s->columns.at[0]],
                                     .width = self->mixed_nest.sizes[self->mixed.columns.at[0]]};
  *schedule = o3_schedule_attention(self->env->machine, &heads);
  return o3_schedule_read(s->nest->op, O3_SCHEDULE_FAMILY_ATTENTION, schedule);
}

o3_status_t o3_attention_schedule(o3_pass_env_t *env, int num_ops, const MlirOperation *ops) {
  static _Thread_local attention_t self;
  o3_schedule_attention_t schedule;
  memset(&self, 0, sizeof(self));
  self.env = env;
  O3_TRY(read(&self, num_ops, ops));
  O3_TRY(read_schedule(&self, &schedule));
  o3_op_attr_set(self.score_nest.op, O3_SCHEDULE_ATTR,
                 o3_schedule_attr(env->context, O3_SCHEDULE_FAMILY_ATTENTION, &schedule));
  return NULL;
}

static o3_status_t use_schedule(attention_t *self) {
  o3_schedule_attention_t s;
  O3_TRY(read_schedule(self, &s));
  o3_schedule_packed_t packed = {
      .lanes = s.lanes, .rows = s.rows, .columns = s.columns, .k_block = s.k_block, .panel = s.keys};
  self->shape = o3_gemm_shape(&packed, 32);
  packed.columns = s.value_columns;
  packed.panel = s.values;
  self->value_shape = o3_gemm_shape(&packed, 32);
  self->queries = s.queries;
  o3_gemm_block_name(&self->shape, self->block);
  o3_gemm_block_name(&self->value_shape, self->value_block);
  return NULL;
}

o3_status_t o3_attention_emit(o3_pass_env_t *env, MlirModule module, int num_ops, const MlirOperation *ops,
                              int num_buffers, const MlirOperation *buffers) {
  static _Thread_local attention_t self;
  memset(&self, 0, sizeof(self));
  self.env = env;
  self.module = module;
  O3_TRY(read(&self, num_ops, ops));
  O3_TRY(use_schedule(&self));
  O3_TRY(add_text(module, o3_gemm_text(&self.shape), "gemm"));
  O3_TRY(add_text(module, o3_gemm_text(&self.value_shape), "gemm"));
  O3_TRY(add_text(module, o3_softmax_text(self.shape.lanes), "softmax"));
  o3_builder_t b = o3_builder_before(ops[num_ops - 1]);
  destroy_ops(&self, num_ops, ops, false);
  O3_TRY(build(&self, &b, num_buffers, buffers));
  destroy_ops(&self, num_ops, ops, true);
  for (int i = 0; i < num_buffers; ++i) mlirOperationDestroy(buffers[i]);
  return NULL;
}
