#include <stdlib.h>

#include "analysis/infer.h"

/* ...xMxK times ...xKxN; leading dimensions broadcast. */
o3_status_t o3_infer_matmul(o3_infer_t *in) {
  const o3_shape_t *a = &in->operands[0]->shape, *b = &in->operands[1]->shape;
  o3_shape_t a_lead = *a, b_lead = *b, *y = &in->results[0].shape;
  if (a->rank < 2 || b->rank < 2)
    return o3_infer_error(in, "matrix product of ranks %d and %d, at least 2 expected", a->rank, b->rank);
  a_lead.rank -= 2;
  b_lead.rank -= 2;
  MlirAffineExpr a_k = a->dims[a->rank - 1], b_k = b->dims[b->rank - 2];
  if (!o3_symbols_require_equal(in->symbols, a_k, b_k, in->who)) {
    char *a_text = o3_shape_text(in->symbols, a), *b_text = o3_shape_text(in->symbols, b);
    o3_status_t status =
        o3_infer_error(in, "matrix product of %s and %s: inner sizes differ", a_text, b_text);
    free(a_text);
    free(b_text);
    return status;
  }
  O3_TRY(o3_infer_broadcast(in->symbols, in->who, &a_lead, &b_lead, y));
  y->dims[y->rank++] = a->dims[a->rank - 2];
  y->dims[y->rank++] = b->dims[b->rank - 1];
  MlirAttribute acc = o3_infer_attr(in, "acc");
  in->results[0].element = mlirAttributeIsNull(acc) ? in->operands[0]->element : mlirTypeAttrGetValue(acc);
  in->num_results = 1;
  return NULL;
}
