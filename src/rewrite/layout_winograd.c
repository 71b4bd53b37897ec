/* Weights of Winograd convolutions, and which convolutions they are for. */
#include "analysis/winograd.h"
#include "rewrite/layout.h"

/* ---- Weights ---- */

MlirValue o3_layout_winograd_weights(o3_layout_t *self, MlirValue w, int tile) {
  enum { LANES = O3_BLOCK_LANES };
  const o3_winograd_t *form = o3_winograd_find(tile);
  o3_shape_t shape, from;
  if (!form || !o3_layout_shape(w, &from)) return (MlirValue){0};
  const int64_t sizes[] = {
      o3_layout_round_up(o3_layout_size(&from, 0), LANES) / LANES, form->points, form->points,
      o3_layout_round_up(o3_layout_size(&from, 1), LANES) / LANES, LANES,        LANES};
  shape.rank = sizeof(sizes) / sizeof(sizes[0]);
  for (int i = 0; i < shape.rank; ++i) shape.dims[i] = o3_expr_const(self->context, sizes[i]);
  return o3_layout_op(self, "o3.winograd_weights", &shape, mlirF32TypeGet(self->context), 1, &w,
                      O3_ATTRS({"tile", o3_attr_i64(self->context, tile)}));
}

/* ---- The choice ---- */

static bool note_choice(o3_layout_t *self, MlirOperation op, const char *reason) {
  MlirAttribute pair[2] = {mlirStringAttrGet(self->context, o3_op_label(op)),
                           o3_attr_string(self->context, reason)};
  MlirAttribute both = mlirArrayAttrGet(self->context, 2, pair);
  return o3_ptr_vec_push(&self->choices, (void *)(uintptr_t)both.ptr);
}

int o3_layout_winograd_tile(o3_layout_t *self, MlirOperation op, const o3_winograd_layer_t *layer) {
  o3_winograd_choice_t choice;
  const o3_kernel_support_t *kernels = self->env->machine->kernels;
  if (self->env->opt_level < 3 || !kernels || !kernels->winograd) return 0;
  o3_winograd_choose(layer, self->env->machine, &choice);
  if (!note_choice(self, op, choice.reason)) self->failed = true;
  return choice.tile;
}
