/* Normalisations: the result is like x. */
#include <stdlib.h>

#include "analysis/infer.h"

static o3_status_t check_float(const o3_infer_t *in, const o3_fact_t *fact) {
  if (o3_type_is_float(fact->element)) return NULL;
  char *text = o3_type_text(fact->element);
  o3_status_t status = o3_infer_error(in, "elements of type %s, a floating-point type expected", text);
  free(text);
  return status;
}

static o3_status_t like_x(o3_infer_t *in) {
  const o3_fact_t *x = in->operands[0];
  int64_t axis = o3_infer_int(in, "axis", 0);
  if (axis < 0 || axis >= x->shape.rank)
    return o3_infer_error(in, "axis %lld is out of range for rank %d", (long long)axis, x->shape.rank);
  O3_TRY(check_float(in, x));
  in->num_results = 1;
  in->results[0] = (o3_fact_t){.element = x->element, .shape = x->shape};
  return NULL;
}

o3_status_t o3_infer_softmax(o3_infer_t *in) { return like_x(in); }

/* Scale and bias may have another floating-point type, but they may not make the result larger. */
o3_status_t o3_infer_layer_norm(o3_infer_t *in) {
  const o3_shape_t *x = &in->operands[0]->shape;
  O3_TRY(like_x(in));
  for (int i = 1; i < in->num_operands; ++i) {
    const o3_shape_t *parameter = &in->operands[i]->shape;
    o3_shape_t shape;
    O3_TRY(check_float(in, in->operands[i]));
    O3_TRY(o3_infer_broadcast(in->symbols, in->who, x, parameter, &shape));
    bool same = shape.rank == x->rank;
    for (int d = 0; same && d < shape.rank; ++d) {
      MlirAffineExpr size = o3_symbols_resolve(in->symbols, x->dims[d]);
      same = o3_symbols_require_equal(in->symbols, shape.dims[d], size, in->who);
    }
    if (same) continue;
    char *a = o3_shape_text(in->symbols, parameter), *b = o3_shape_text(in->symbols, x);
    o3_status_t status = o3_infer_error(in, "scale or bias of shape %s does not broadcast to %s", a, b);
    free(a);
    free(b);
    return status;
  }
  return NULL;
}
