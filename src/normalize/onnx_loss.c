/* Losses: what models that were exported with their training head end in. */
#include <string.h>

#include "normalize/nz_math.h"

/* ---- Weights of the targets ---- */

typedef struct loss {
  MlirValue target;  /* i64, ignored ones replaced by class 0 */
  MlirValue ignored; /* i1, or null when there is no ignore_index */
  MlirValue weight;  /* of each target, 0 for ignored ones; null: 1 for all */
} loss_t;

/* What |target| is made of does not matter where it is ignored, even if it is no class. */
static void read_targets(o3_nz_t *nz, const o3_node_t *node, MlirType element, loss_t *loss) {
  *loss = (loss_t){.target = o3_nz_cast(nz, o3_node_input(node, 1), o3_nz_i64(nz))};
  if (o3_node_has_attr(node, "ignore_index")) {
    MlirValue index = o3_nz_like(nz, loss->target, (double)o3_node_int(node, "ignore_index", 0));
    loss->ignored = o3_nz_equal(nz, loss->target, index);
    loss->target = o3_nz_select(nz, loss->ignored, o3_nz_like(nz, loss->target, 0), loss->target);
  }
  if (o3_node_has_input(node, 2))
    loss->weight = o3_nz_op(nz, "o3.gather", O3_VALUES(o3_node_input(node, 2), loss->target),
                            O3_ATTRS({"axis", o3_attr_i64(nz->context, 0)}));
  if (mlirValueIsNull(loss->ignored)) return;
  MlirValue zero = o3_nz_scalar(nz, element, 0), weight = loss->weight;
  if (mlirValueIsNull(weight)) weight = o3_nz_scalar(nz, element, 1);
  loss->weight = o3_nz_select(nz, loss->ignored, zero, weight);
}

static MlirValue sum_all(o3_nz_t *nz, MlirValue x, const char *kind) {
  int64_t axes[O3_IR_MAX_RANK];
  int rank = o3_nz_rank(nz, x);
  for (int i = 0; i < rank; ++i) axes[i] = i;
  return o3_nz_reduce(nz, x, kind, rank, axes, false);
}

/* -weight * log_probability[target], reduced. The mean is that of the weights. */
static o3_status_t negative_log_likelihood(o3_nz_t *nz, const o3_node_t *node, MlirValue log,
                                           MlirValue *out) {
  const char *reduction = o3_node_string(nz, node, "reduction", "mean");
  int64_t axis = 1;
  loss_t loss;
  read_targets(nz, node, o3_nz_element(nz, log), &loss);
  MlirValue chosen =
      o3_nz_op(nz, "o3.gather_elements", O3_VALUES(log, o3_nz_unsqueeze(nz, loss.target, 1, &axis)),
               O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)}));
  MlirValue each = o3_nz_unary(nz, "o3.neg", o3_nz_squeeze(nz, chosen, 1, &axis));
  bool weighted = !mlirValueIsNull(loss.weight);
  if (weighted) each = o3_nz_mul(nz, each, loss.weight);
  if (strcmp(reduction, "none") == 0) {
    *out = each;
  } else if (strcmp(reduction, "sum") == 0) {
    *out = sum_all(nz, each, "sum");
  } else if (strcmp(reduction, "mean") != 0) {
    return o3_nz_invalid(nz, "reduction is '%s', none, sum or mean expected", reduction);
  } else if (weighted) {
    *out = o3_nz_div(nz, sum_all(nz, each, "sum"), sum_all(nz, loss.weight, "sum"));
  } else {
    *out = sum_all(nz, each, "mean");
  }
  return NULL;
}

o3_status_t o3_onnx_nll_loss(o3_nz_t *nz, o3_node_t *node) {
  return negative_log_likelihood(nz, node, o3_node_input(node, 0), &node->outputs[0]);
}

o3_status_t o3_onnx_softmax_cross_entropy_loss(o3_nz_t *nz, o3_node_t *node) {
  MlirValue log =
      o3_nz_op(nz, "o3.softmax", O3_VALUES(o3_node_input(node, 0)),
               O3_ATTRS({"axis", o3_attr_i64(nz->context, 1)}, {"log", o3_attr_bool(nz->context, true)}));
  if (node->num_outputs > 1) node->outputs[1] = log;
  return negative_log_likelihood(nz, node, log, &node->outputs[0]);
}
