/* layout: convolutions and what surrounds them move to channel-blocked layout, constant matrices to panels.
 *
 * Needs: a normalized module; runs before constants are folded, which packs the weights. Guarantees: the same
 * results; f32 convolutions over one or two dimensions with constant weights are o3.conv_blocked or
 * o3.depthwise_blocked (from O3 on some are o3.winograd_blocked), products with constant matrices
 * o3.matmul_packed; ops between them follow the layout, and conversions are left only where a plain value is
 * needed. Of what is inside of loops and branches only products with constant matrices change, as the one of
 * a recurrent layer's state, and not those with few rows: the CPU's kernel for these reads the matrix as it
 * lies.
 *
 * On targets with channels last, convolutions in half precision (and f32, where the target says so) are
 * o3.conv_last or o3.depthwise_last, and products stay as they are.
 *
 *     %y = "o3.conv"(%x, %w)         %p = pad, reshape, transpose of %x      (not for an %x that is blocked)
 *     %z = "o3.max"(%y, %zero)  =>   %b = "o3.conv_blocked"(%p, %w')
 *                                    %c = "o3.max"(%b, %zero)
 *                                    %z = transpose, reshape, slice of %c    (not if nobody reads it plain)
 */
#include "rewrite/layout.h"

#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"
#include "target/target.h"

static const struct {
  const char *op;
  MlirValue (*rule)(o3_layout_t *self, MlirOperation op);
} RULES[] = {
#define O3_LAYOUT_RULE(op, rule) {op, o3_layout_##rule},
#include "rewrite/layout_rules.def"
#undef O3_LAYOUT_RULE
};

static MlirValue rewrite(o3_layout_t *self, MlirOperation op) {
  for (size_t i = 0; i < sizeof(RULES) / sizeof(RULES[0]); ++i) {
    if (o3_op_is(op, RULES[i].op)) return RULES[i].rule(self, op);
  }
  return (MlirValue){0};
}

static o3_status_t replace(o3_layout_t *self, MlirOperation op) {
  self->builder = o3_builder_before(op);
  MlirValue made = rewrite(self, op);
  if (!mlirValueIsNull(made)) o3_op_replace(op, 1, &made);
  if (self->failed) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  return self->status;
}

static bool has_few_rows(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  int64_t rows = 1;
  for (int64_t i = 0; i + 1 < mlirShapedTypeGetRank(type); ++i) {
    if (mlirShapedTypeIsDynamicDim(type, i)) return false;
    rows *= mlirShapedTypeGetDimSize(type, i);
  }
  return rows <= O3_TARGET_THIN_ROWS;
}

static o3_status_t visit_inner(MlirOperation op, void *context) {
  if (!o3_op_is(op, "o3.matmul") || has_few_rows(mlirOperationGetResult(op, 0))) return NULL;
  return replace(context, op);
}

static int count_symbols(MlirOperation main) {
  MlirAttribute symbols = o3_op_attr(main, "o3.symbols");
  return mlirAttributeIsNull(symbols) ? 0 : (int)mlirArrayAttrGetNumElements(symbols);
}

/* For o3c --explain. */
static o3_status_t record_choices(const o3_layout_t *self, MlirModule module) {
  intptr_t count = (intptr_t)self->choices.count;
  MlirAttribute *list = O3_ARENA_ARRAY(self->env->arena, MlirAttribute, (size_t)count + 1);
  O3_TRY_ALLOC(list);
  for (intptr_t i = 0; i < count; ++i) list[i].ptr = self->choices.items[i];
  return o3_choices_append(self->env->arena, module, count, list);
}

o3_status_t o3_rewrite_layout(o3_pass_env_t *env, MlirModule module) {
  MlirOperation main = o3_module_func(module, "main");
  if (mlirOperationIsNull(main))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "the module has no function @main");
  const o3_kernel_support_t *kernels = env->machine->kernels;
  if (!kernels->channel_blocks && !kernels->channels_last) return NULL;
  o3_layout_t self = {.env = env,
                      .context = env->context,
                      .num_symbols = count_symbols(main),
                      .last = kernels->channels_last,
                      .f32_last = kernels->f32_channels_last,
                      .tf32_last = kernels->tf32_windows && env->precision == O3_PRECISION_TF32,
                      .blocked = o3_ptr_map_create(env->arena),
                      .choices = o3_ptr_vec(env->arena)};
  O3_TRY_ALLOC(self.blocked);
  MlirOperation op = mlirBlockGetFirstOperation(o3_func_body(main));
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    O3_TRY(o3_walk(op, visit_inner, &self));
    O3_TRY(replace(&self, op));
    op = next;
  }
  return record_choices(&self, module);
}
