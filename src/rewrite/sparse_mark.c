/* sparse-mark: the format that the user forces stands on every product that has a kernel for it.
 *
 * Needs: constants folded. Guarantees: with --sparse-format, o3.conv and o3.matmul with f32 constant weights
 * that have a zero carry O3_SPARSE_FORMAT_ATTR, unless o3_sparse_supported says no or the attribute is there
 * already.
 */
#include "rewrite/layout_sparse.h"
#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

typedef struct marker {
  o3_pass_env_t *env;
  o3_sparse_format_t format;
} marker_t;

static bool has_zero(o3_pass_env_t *env, MlirAttribute value) {
  size_t bytes;
  const float *data = o3_weights_data(env->weights, value, &bytes);
  for (size_t i = 0; data && i < bytes / sizeof(float); ++i) {
    if (data[i] == 0) return true;
  }
  return false;
}

static bool read_weight(MlirOperation op, o3_sparse_weight_t *weight, MlirAttribute *value) {
  bool conv = o3_op_is(op, "o3.conv");
  if (!conv && !o3_op_is(op, "o3.matmul")) return false;
  MlirOperation def = o3_value_def(mlirOperationGetOperand(op, 1));
  if (mlirOperationIsNull(def) || !o3_op_is(def, "o3.constant")) return false;
  MlirType type = mlirValueGetType(mlirOperationGetResult(def, 0));
  int rank = o3_type_rank(type);
  if (!mlirTypeIsAF32(o3_type_element(type)) || o3_type_count(type) <= 0) return false;
  if (conv ? rank < 3 || rank > 4 : rank != 2) return false;
  *value = o3_op_attr(def, "value");
  *weight = (o3_sparse_weight_t){
      .is_matmul = !conv,
      .is_f32 = true,
      .outputs = o3_type_dim(type, conv ? 0 : 1),
      .channels = o3_type_dim(type, conv ? 1 : 0),
      .group = conv ? o3_op_int(op, "group", 1) : 1,
      .window = {rank > 3 ? o3_type_dim(type, 2) : 1, conv ? o3_type_dim(type, rank - 1) : 1}};
  return true;
}

static o3_status_t mark(MlirOperation op, void *context) {
  marker_t *self = context;
  o3_sparse_weight_t weight;
  MlirAttribute value;
  if (!read_weight(op, &weight, &value) || o3_op_string(op, O3_SPARSE_FORMAT_ATTR).data) return NULL;
  o3_status_t refusal = o3_sparse_supported(&weight, &self->format, NULL);
  bool marked = !refusal && has_zero(self->env, value);
  o3_status_destroy(refusal);
  if (marked)
    o3_op_attr_set(op, O3_SPARSE_FORMAT_ATTR, o3_attr_string(self->env->context, self->env->sparse_format));
  return NULL;
}

o3_status_t o3_rewrite_sparse_mark(o3_pass_env_t *env, MlirModule module) {
  marker_t self = {.env = env};
  MlirOperation main = o3_module_func(module, "main");
  if (!env->sparse_format || mlirOperationIsNull(main)) return NULL;
  O3_TRY(o3_sparse_format_parse(env->sparse_format, &self.format));
  bool forced = self.format.kind != O3_SPARSE_AUTO && self.format.kind != O3_SPARSE_DENSE;
  return forced ? o3_walk(main, mark, &self) : NULL;
}
