/* Ops that move data without changing it. */
#include "analysis/infer.h"

/* Row-major strides of a static shape. */
static void strides_of(const o3_shape_t *shape, int64_t *strides) {
  int64_t stride = 1;
  for (int i = shape->rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= mlirAffineConstantExprGetValue(shape->dims[i]);
  }
}

static void permute_elements(o3_infer_t *in, const int64_t *perm) {
  const o3_fact_t *x = in->operands[0];
  o3_fact_t *y = &in->results[0];
  int64_t from[O3_IR_MAX_RANK], to[O3_IR_MAX_RANK];
  o3_element_t *elements = o3_infer_elements(in->arena, x->num_elements);
  if (!elements) return;
  strides_of(&x->shape, from);
  strides_of(&y->shape, to);
  for (int64_t i = 0; i < x->num_elements; ++i) {
    int64_t source = 0;
    for (int d = 0; d < y->shape.rank; ++d)
      source += i / to[d] % mlirAffineConstantExprGetValue(y->shape.dims[d]) * from[perm[d]];
    elements[i] = x->elements[source];
  }
  y->elements = elements;
  y->num_elements = x->num_elements;
}

o3_status_t o3_infer_transpose(o3_infer_t *in) {
  const o3_fact_t *x = in->operands[0];
  int64_t perm[O3_IR_MAX_RANK];
  int count = o3_infer_ints(in, "perm", perm, O3_IR_MAX_RANK);
  bool seen[O3_IR_MAX_RANK] = {false};
  if (count != x->shape.rank)
    return o3_infer_error(in, "permutation of %d dimensions for a tensor of rank %d", count, x->shape.rank);
  in->num_results = 1;
  in->results[0] = (o3_fact_t){.element = x->element, .shape.rank = count};
  for (int i = 0; i < count; ++i) {
    if (perm[i] < 0 || perm[i] >= count || seen[perm[i]])
      return o3_infer_error(in, "perm is no permutation: entry %d is %lld", i, (long long)perm[i]);
    seen[perm[i]] = true;
    in->results[0].shape.dims[i] = x->shape.dims[perm[i]];
  }
  if (x->elements) permute_elements(in, perm);
  return NULL;
}

o3_status_t o3_infer_reverse(o3_infer_t *in) {
  const o3_fact_t *x = in->operands[0];
  in->num_results = 1;
  in->results[0] = (o3_fact_t){.element = x->element, .shape = x->shape};
  return NULL;
}

static o3_status_t data_size(o3_infer_t *in, MlirAffineExpr *size) {
  *size = o3_symbols_data(in->symbols, in->who);
  if (size->ptr) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "%s: out of memory", in->who);
}

/* One row for each dimension, one column for each element that is not zero. */
o3_status_t o3_infer_nonzero(o3_infer_t *in) {
  o3_shape_t shape = {.rank = 2, .dims = {o3_expr_const(in->context, in->operands[0]->shape.rank)}};
  O3_TRY(data_size(in, &shape.dims[1]));
  in->num_results = 1;
  in->results[0] = (o3_fact_t){.element = mlirIntegerTypeGet(in->context, 64), .shape = shape};
  return NULL;
}

/* Of n rows: the first row of each group of equal ones, the group of each row, the size of each group. */
o3_status_t o3_infer_unique(o3_infer_t *in) {
  const o3_shape_t *x = &in->operands[0]->shape;
  MlirAffineExpr groups;
  if (x->rank != 2) return o3_infer_error(in, "unique rows of a tensor of rank %d, 2 expected", x->rank);
  O3_TRY(data_size(in, &groups));
  in->num_results = 3;
  for (int i = 0; i < 3; ++i)
    in->results[i] = (o3_fact_t){.element = mlirIntegerTypeGet(in->context, 64),
                                 .shape = {.rank = 1, .dims = {i == 1 ? x->dims[0] : groups}}};
  return NULL;
}
