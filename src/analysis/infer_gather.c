/* Gathers and scatters: result shapes, and the entries that a gather takes from a small tensor with known
 * contents: shape[i] is the most common arithmetic on shapes. */
#include "analysis/infer.h"

#include <string.h>

static o3_status_t check_indices(o3_infer_t *in) {
  MlirType element = in->operands[1]->element;
  if (o3_type_is_integer(element) && !o3_type_is_unsigned(element)) return NULL;
  return o3_infer_error(in, "its indices are not signed integers");
}

static o3_status_t check_axis(o3_infer_t *in, int *axis) {
  int rank = in->operands[0]->shape.rank;
  *axis = (int)o3_infer_int(in, "axis", 0);
  if (*axis >= 0 && *axis < rank) return NULL;
  return o3_infer_error(in, "axis %d is out of range for rank %d", *axis, rank);
}

static void append_dims(o3_shape_t *to, const o3_shape_t *from, int first, int last) {
  for (int i = first; i < last; ++i) to->dims[to->rank++] = from->dims[i];
}

static o3_status_t check_rank(o3_infer_t *in, int rank) {
  if (rank >= 0 && rank <= O3_IR_MAX_RANK) return NULL;
  return o3_infer_error(in, "its result has rank %d, at most %d is supported", rank, O3_IR_MAX_RANK);
}

/* ---- gather ---- */

static bool const_index(const o3_element_t *element, int64_t size, int64_t *index) {
  if (element->kind != O3_ELEMENT_EXPR || !o3_expr_is_const(element->expr, index)) return false;
  if (*index < 0) *index += size;
  return *index >= 0 && *index < size;
}

static int64_t static_product(const o3_shape_t *shape, int first, int last) {
  int64_t product = 1;
  for (int i = first; i < last; ++i) product *= mlirAffineConstantExprGetValue(shape->dims[i]);
  return product;
}

/* Tracked tensors are small and static; an index that is not known, or out of range, leaves its entries
 * unknown. */
static void gather_known(o3_infer_t *in, int axis) {
  const o3_fact_t *x = in->operands[0], *indices = in->operands[1];
  o3_fact_t *y = &in->results[0];
  int64_t count = o3_infer_small_count(&y->shape);
  o3_element_t *elements = x->elements && indices->elements ? o3_infer_elements(in->arena, count) : NULL;
  if (!elements) return;
  int64_t inner = static_product(&x->shape, axis + 1, x->shape.rank);
  int64_t size = static_product(&x->shape, axis, axis + 1);
  for (int64_t i = 0; i < count; ++i) {
    int64_t index, which = i / inner % indices->num_elements, outer = i / inner / indices->num_elements;
    if (const_index(&indices->elements[which], size, &index))
      elements[i] = x->elements[(outer * size + index) * inner + i % inner];
  }
  y->elements = elements;
  y->num_elements = (int)count;
}

o3_status_t o3_infer_gather(o3_infer_t *in) {
  const o3_shape_t *x = &in->operands[0]->shape, *indices = &in->operands[1]->shape;
  o3_shape_t *y = &in->results[0].shape;
  int axis;
  O3_TRY(check_indices(in));
  O3_TRY(check_axis(in, &axis));
  O3_TRY(check_rank(in, x->rank - 1 + indices->rank));
  in->num_results = 1;
  in->results[0].element = in->operands[0]->element;
  append_dims(y, x, 0, axis);
  append_dims(y, indices, 0, indices->rank);
  append_dims(y, x, axis + 1, x->rank);
  gather_known(in, axis);
  return NULL;
}

/* ---- gather_elements and scatter_elements ---- */

/* Both read x at positions of the indices' shape, but for the axis. */
static o3_status_t check_inside(o3_infer_t *in, int axis) {
  const o3_shape_t *x = &in->operands[0]->shape, *indices = &in->operands[1]->shape;
  if (x->rank != indices->rank)
    return o3_infer_error(in, "indices of rank %d for data of rank %d, the same is expected", indices->rank,
                          x->rank);
  for (int i = 0; i < x->rank; ++i) {
    if (i == axis) continue;
    if (!o3_symbols_require_nonnegative(in->symbols, o3_expr_sub(x->dims[i], indices->dims[i]), in->who))
      return o3_infer_error(in, "dimension %d of the indices is larger than that of the data", i);
  }
  return NULL;
}

o3_status_t o3_infer_gather_elements(o3_infer_t *in) {
  int axis;
  O3_TRY(check_indices(in));
  O3_TRY(check_axis(in, &axis));
  O3_TRY(check_inside(in, axis));
  in->num_results = 1;
  in->results[0] = (o3_fact_t){.element = in->operands[0]->element, .shape = in->operands[1]->shape};
  return NULL;
}

static o3_status_t require_same(o3_infer_t *in, const o3_shape_t *a, const o3_shape_t *b) {
  if (a->rank != b->rank) return o3_infer_error(in, "updates of rank %d, %d is expected", b->rank, a->rank);
  for (int i = 0; i < a->rank; ++i) {
    if (!o3_symbols_require_equal(in->symbols, a->dims[i], b->dims[i], in->who))
      return o3_infer_error(in, "dimension %d of the updates does not fit data and indices", i);
  }
  return NULL;
}

static o3_status_t check_updates(o3_infer_t *in) {
  if (mlirTypeEqual(in->operands[0]->element, in->operands[2]->element)) return NULL;
  return o3_infer_error(in, "data and updates have different element types");
}

o3_status_t o3_infer_scatter_elements(o3_infer_t *in) {
  int axis;
  O3_TRY(check_indices(in));
  O3_TRY(check_axis(in, &axis));
  O3_TRY(check_inside(in, axis));
  O3_TRY(check_updates(in));
  O3_TRY(require_same(in, &in->operands[1]->shape, &in->operands[2]->shape));
  in->num_results = 1;
  in->results[0] = (o3_fact_t){.element = in->operands[0]->element, .shape = in->operands[0]->shape};
  return NULL;
}

/* ---- gather_nd and scatter_nd ---- */

/* How many dimensions of the data an index tuple covers: the last size of the indices. */
static o3_status_t tuple_size(o3_infer_t *in, int batch, int *size) {
  const o3_shape_t *x = &in->operands[0]->shape, *indices = &in->operands[1]->shape;
  int64_t last;
  if (indices->rank < 1 || x->rank < 1)
    return o3_infer_error(in, "data and indices must have at least rank 1");
  if (!o3_expr_is_const(indices->dims[indices->rank - 1], &last))
    return o3_status_create(O3_STATUS_UNSUPPORTED,
                            "%s: the last size of the indices must be known while compiling", in->who);
  if (batch < 0 || batch >= indices->rank || last < 0 || batch + last > x->rank)
    return o3_infer_error(in, "indices of %lld numbers after %d batch dimensions for data of rank %d",
                          (long long)last, batch, x->rank);
  *size = (int)last;
  return NULL;
}

o3_status_t o3_infer_gather_nd(o3_infer_t *in) {
  const o3_shape_t *x = &in->operands[0]->shape, *indices = &in->operands[1]->shape;
  o3_shape_t *y = &in->results[0].shape;
  int batch = (int)o3_infer_int(in, "batch_dims", 0), tuple;
  O3_TRY(check_indices(in));
  O3_TRY(tuple_size(in, batch, &tuple));
  O3_TRY(check_rank(in, indices->rank - 1 + x->rank - batch - tuple));
  for (int i = 0; i < batch; ++i) {
    if (!o3_symbols_require_equal(in->symbols, x->dims[i], indices->dims[i], in->who))
      return o3_infer_error(in, "batch dimension %d of data and indices differs", i);
  }
  in->num_results = 1;
  in->results[0].element = in->operands[0]->element;
  append_dims(y, indices, 0, indices->rank - 1);
  append_dims(y, x, batch + tuple, x->rank);
  return NULL;
}

o3_status_t o3_infer_scatter_nd(o3_infer_t *in) {
  const o3_shape_t *x = &in->operands[0]->shape, *indices = &in->operands[1]->shape;
  o3_shape_t updates = {0};
  int tuple;
  O3_TRY(check_indices(in));
  O3_TRY(tuple_size(in, 0, &tuple));
  O3_TRY(check_rank(in, indices->rank - 1 + x->rank - tuple));
  O3_TRY(check_updates(in));
  append_dims(&updates, indices, 0, indices->rank - 1);
  append_dims(&updates, x, tuple, x->rank);
  O3_TRY(require_same(in, &updates, &in->operands[2]->shape));
  in->num_results = 1;
  in->results[0] = (o3_fact_t){.element = in->operands[0]->element, .shape = *x};
  return NULL;
}
