/* Determinants by elimination with row exchanges: for each matrix, n steps that each make a new matrix. */
#include "target/ref/body_math.h"

typedef struct det {
  o3_lw_t *lw;
  MlirType from, real;        /* old element type, type of the computation */
  o3_shape_t square, x_shape; /* n x n; batch x n x n */
  MlirValue x, n, one;        /* n: index; one: the step of loops */
  MlirValue batch;            /* number of the matrix */
  MlirValue matrix;           /* this step's: the one before, */
  MlirValue step, row;        /* its number, and the row with the largest element */
  MlirValue pivot;            /* that element, or 1 for 0 */
} det_t;

/* o3_lw_generate builds where lw stands: inside of a loop that is |b|. */
static MlirValue generate(o3_builder_t *b, det_t *det, o3_body_fn_t body) {
  o3_builder_t outer = det->lw->builder;
  det->lw->builder = *b;
  MlirValue result = o3_lw_generate(det->lw, &det->square, det->real, body, det);
  *b = det->lw->builder;
  det->lw->builder = outer;
  return result;
}

static void load_body(const o3_body_args_t *in) {
  const det_t *det = in->context;
  const MlirValue positions[3] = {det->batch, o3_lw_index(in->builder, 0), o3_lw_index(in->builder, 1)};
  MlirValue x = o3_lw_extract(in->builder, det->x, 3, positions);
  in->results[0] = o3_lw_convert(in->builder, x, det->from, det->real);
}

static MlirValue at(o3_builder_t *b, MlirValue matrix, MlirValue row, MlirValue column) {
  const MlirValue positions[2] = {row, column};
  return o3_lw_extract(b, matrix, 2, positions);
}

/* ---- One step ---- */

/* Keeps the row whose element in this step's column is largest in magnitude. */
static o3_status_t search_body(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                               MlirValue *next) {
  const det_t *det = context;
  MlirValue size = o3_build_unary(b, "math.absf", at(b, det->matrix, index, det->step));
  MlirValue larger = o3_build_cmpf(b, O3_CMPF_OGT, size, carried[0]);
  next[0] = o3_build_select(b, larger, size, carried[0]);
  next[1] = o3_build_select(b, larger, index, carried[1]);
  return NULL;
}

/* Rows exchanged, and the pivot's multiple taken from those below. */
static void eliminate_body(const o3_body_args_t *in) {
  const det_t *det = in->context;
  o3_builder_t *b = in->builder;
  MlirValue i = o3_lw_index(b, 0), j = o3_lw_index(b, 1);
  MlirValue is_step = o3_build_cmpi(b, O3_CMPI_EQ, i, det->step),
            is_row = o3_build_cmpi(b, O3_CMPI_EQ, i, det->row);
  MlirValue from = o3_build_select(b, is_step, det->row, o3_build_select(b, is_row, det->step, i));
  MlirValue own = at(b, det->matrix, from, j), top = at(b, det->matrix, det->row, j);
  MlirValue factor = o3_divf(b, at(b, det->matrix, from, det->step), det->pivot);
  MlirValue reduced = o3_subf(b, own, o3_mulf(b, factor, top));
  in->results[0] = o3_build_select(b, o3_build_cmpi(b, O3_CMPI_UGT, i, det->step), reduced, own);
}

static o3_status_t step_body(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                             MlirValue *next) {
  det_t *det = context;
  MlirValue found[2];
  const MlirValue inits[2] = {o3_build_float(b, det->real, -1), index};
  det->matrix = carried[0];
  det->step = index;
  o3_for_t search = {.lower = index,
                     .upper = det->n,
                     .step = det->one,
                     .num_carried = 2,
                     .inits = inits,
                     .body = search_body,
                     .context = det};
  O3_TRY(o3_build_for(b, &search, found));
  det->row = found[1];
  MlirValue pivot = at(b, det->matrix, det->row, index);
  MlirValue zero = o3_build_cmpf(b, O3_CMPF_OEQ, pivot, o3_number_like(b, pivot, 0));
  det->pivot = o3_build_select(b, zero, o3_number_like(b, pivot, 1), pivot);
  MlirValue exchanged = o3_build_cmpi(b, O3_CMPI_NE, det->row, index);
  MlirValue negative = o3_build_unary(b, "arith.negf", pivot);
  next[1] = o3_mulf(b, carried[1], o3_build_select(b, exchanged, negative, pivot));
  next[0] = generate(b, det, eliminate_body);
  return NULL;
}

/* ---- All matrices ---- */

static o3_status_t batch_body(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                              MlirValue *next) {
  det_t *det = context;
  MlirValue results[2];
  det->batch = index;
  const MlirValue inits[2] = {generate(b, det, load_body), o3_build_float(b, det->real, 1)};
  o3_for_t steps = {.lower = o3_build_index(b, 0),
                    .upper = det->n,
                    .step = det->one,
                    .num_carried = 2,
                    .inits = inits,
                    .body = step_body,
                    .context = det};
  O3_TRY(o3_build_for(b, &steps, results));
  MlirValue y = o3_lw_convert(b, results[1], det->real, det->from);
  const MlirValue operands[3] = {y, carried[0], index};
  next[0] = o3_build1(b, "tensor.insert", mlirValueGetType(carried[0]), 3, operands);
  return NULL;
}

o3_status_t o3_lower_det(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  o3_shape_t x, y;
  o3_lw_operand_shape(lw, op, 0, &x);
  o3_lw_result_shape(lw, op, 0, &y);
  MlirAffineExpr n = x.dims[x.rank - 1], count = o3_shape_product(lw->context, &x, 0, x.rank - 2);
  det_t det = {.lw = lw, .from = o3_lw_old_element(op, 0), .n = o3_lw_size(lw, n)};
  det.real = mlirTypeIsAF64(det.from) ? det.from : mlirF32TypeGet(lw->context);
  det.one = o3_build_index(&lw->builder, 1);
  det.square = (o3_shape_t){.rank = 2, .dims = {n, n}};
  det.x_shape = (o3_shape_t){.rank = 3, .dims = {count, n, n}};
  det.x = o3_lw_reshape(lw, operands[0], &x, &det.x_shape);
  o3_shape_t flat = {.rank = 1, .dims = {count}};
  MlirValue init = o3_lw_empty(lw, &flat, o3_lw_new_element(op, 0)), all;
  o3_for_t loop = {.lower = o3_build_index(&lw->builder, 0),
                   .upper = o3_lw_size(lw, count),
                   .step = det.one,
                   .num_carried = 1,
                   .inits = &init,
                   .body = batch_body,
                   .context = &det};
  O3_TRY(o3_build_for(&lw->builder, &loop, &all));
  results[0] = o3_lw_reshape(lw, all, &flat, &y);
  return NULL;
}
