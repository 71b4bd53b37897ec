/* split-hybrid: a product whose weights have full blocks and single numbers becomes two.
 *
 * Needs: formats chosen, before the layout pass. Guarantees: no op has a hybrid format. The blocks' product
 * comes second and has what follows fused into it, so that its result has the layout of neighbours with
 * blocks, and the first one's result is an addend of its epilogue. A part without numbers is left out.
 *
 *     %y = "o3.conv"(%x, %w, %b) {o3.sparse_format = "hybrid-16x16"}
 * =>  %r = "o3.conv"(%x, %rest) {o3.sparse_format = "csr"}
 *     %s = "o3.conv"(%x, %blocks, %b) {o3.sparse_format = "bsr-16x16"}
 *     %y = "o3.add"(%r, %s)
 */
#include <stdio.h>
#include <string.h>

#include "analysis/sparse_hybrid.h"
#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

typedef struct product {
  MlirOperation op;
  o3_sparse_format_t format;
  o3_zero_mask_t mask;
  uint8_t *part;
  o3_sparse_split_t split;
} product_t;

static o3_status_t read_format(MlirOperation op, o3_sparse_format_t *format) {
  char text[64] = "dense";
  MlirStringRef attr = o3_op_string(op, O3_SPARSE_FORMAT_ATTR);
  if (attr.data) snprintf(text, sizeof(text), "%.*s", O3_STR_ARGS(attr));
  return o3_sparse_format_parse(text, format);
}

/* Neither window nor steps nor data round blocks. */
static o3_status_t round_block(const product_t *p, o3_sparse_block_t *block) {
  const o3_sparse_weight_t weight = {.is_matmul = o3_op_is(p->op, "o3.matmul"),
                                     .is_f32 = true,
                                     .outputs = p->mask.groups * p->mask.outputs,
                                     .channels = p->mask.inputs,
                                     .group = p->mask.groups,
                                     .window = {1, 1}};
  o3_sparse_format_t blocks = p->format;
  blocks.kind = O3_SPARSE_BSR;
  return o3_sparse_supported(&weight, &blocks, block);
}

/* Elements between groups, positions, outputs and inputs, the order of masks. */
static void weight_strides(const product_t *p, int64_t strides[4]) {
  const o3_zero_mask_t *mask = &p->mask;
  bool matmul = o3_op_is(p->op, "o3.matmul");
  strides[0] = mask->outputs * mask->inputs * mask->positions;
  strides[1] = 1;
  strides[2] = matmul ? 1 : mask->inputs * mask->positions;
  strides[3] = matmul ? mask->outputs : mask->positions;
}

/* |to|, of zeros, gets the weights of |from| whose |part| is |which|. */
static void copy_part(const product_t *p, uint8_t which, const float *from, float *to) {
  const o3_zero_mask_t *mask = &p->mask;
  const uint8_t *part = p->part;
  int64_t strides[4];
  weight_strides(p, strides);
  for (int64_t g = 0; g < mask->groups; ++g)
    for (int64_t i = 0; i < mask->positions; ++i)
      for (int64_t m = 0; m < mask->outputs; ++m) {
        int64_t at = g * strides[0] + i * strides[1] + m * strides[2];
        for (int64_t c = 0; c < mask->inputs; ++c, at += strides[3])
          if (*part++ == which) to[at] = from[at];
      }
}

static o3_status_t build_weights(o3_weights_t *weights, const product_t *p, uint8_t which, MlirValue *value) {
  MlirValue old = mlirOperationGetOperand(p->op, 1);
  MlirAttribute attr = o3_op_attr(o3_value_def(old), "value"), made;
  MlirType type = mlirValueGetType(old);
  size_t bytes;
  const float *from = o3_weights_data(weights, attr, &bytes);
  const char *name = o3_weights_name(weights, attr);
  float *to = o3_weights_alloc(weights, bytes);
  O3_TRY_ALLOC(from && to);
  memset(to, 0, bytes);
  copy_part(p, which, from, to);
  O3_TRY(o3_weights_add(weights, name ? name : "hybrid", type, to, bytes, &made));
  o3_builder_t builder = o3_builder_before(p->op);
  *value = o3_build1_attrs(&builder, "o3.constant", type, O3_NO_VALUES, O3_ATTRS({"value", made}));
  return NULL;
}

/* Compressed rows before |op|, which is left with the blocks; their sum is what others read. */
static o3_status_t build_products(o3_pass_env_t *env, const product_t *p) {
  MlirValue rest, blocks, result = mlirOperationGetResult(p->op, 0);
  O3_TRY(build_weights(env->weights, p, 0, &rest));
  O3_TRY(build_weights(env->weights, p, 1, &blocks));
  MlirOperation rows = mlirOperationClone(p->op), whole = mlirOperationClone(p->op);
  MlirValue operands[2] = {mlirOperationGetOperand(p->op, 0), rest};
  mlirOperationSetOperands(rows, 2, operands);
  mlirOperationSetOperand(whole, 1, blocks);
  o3_op_attr_set(rows, O3_SPARSE_FORMAT_ATTR, o3_attr_string(env->context, "csr"));
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(p->op), p->op, rows);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(p->op), p->op, whole);
  o3_builder_t builder = o3_builder_before(p->op);
  MlirValue sum =
      o3_build1_attrs(&builder, "o3.add", mlirValueGetType(result),
                      O3_VALUES(mlirOperationGetResult(rows, 0), mlirOperationGetResult(whole, 0)),
                      O3_ATTRS({"o3.shape", o3_op_attr(p->op, "o3.shape")}));
  o3_op_replace(p->op, 1, &sum);
  return NULL;
}

static o3_status_t split(o3_pass_env_t *env, o3_arena_t *scratch, product_t *p) {
  o3_sparse_block_t block;
  char blocks[64];
  O3_TRY(o3_zero_mask_of_product(scratch, env->weights, p->op, &p->mask));
  if (!p->mask.nonzero) return o3_status_create(O3_STATUS_UNSUPPORTED, "its weights are no constant");
  p->part = O3_ARENA_ARRAY(
      scratch, uint8_t, (size_t)(p->mask.groups * p->mask.positions * p->mask.outputs * p->mask.inputs) + 1);
  O3_TRY_ALLOC(p->part);
  O3_TRY(round_block(p, &block));
  o3_sparse_hybrid_split(&p->mask, &block, p->part, &p->split);
  snprintf(blocks, sizeof(blocks), "bsr-%lldx%lld", (long long)p->format.rows, (long long)p->format.columns);
  o3_op_attr_set(p->op, O3_SPARSE_FORMAT_ATTR,
                 o3_attr_string(env->context, p->split.entries && !p->split.blocks ? "csr" : blocks));
  return p->split.blocks && p->split.entries ? build_products(env, p) : NULL;
}

static o3_status_t visit(o3_pass_env_t *env, MlirOperation op) {
  product_t product = {.op = op};
  O3_TRY(read_format(op, &product.format));
  if (product.format.kind != O3_SPARSE_HYBRID) return NULL;
  o3_arena_t *scratch = o3_arena_create();
  O3_TRY_ALLOC(scratch);
  o3_status_t status = split(env, scratch, &product);
  o3_arena_destroy(scratch);
  /* A product that could not be split is still there. */
  return status ? o3_status_annotate(status, "op '%.*s', sparse format hybrid", O3_STR_ARGS(o3_op_label(op)))
                : NULL;
}

o3_status_t o3_rewrite_split_hybrid(o3_pass_env_t *env, MlirModule module) {
  MlirOperation main = o3_module_func(module, "main"), next;
  if (mlirOperationIsNull(main)) return NULL;
  for (MlirOperation op = mlirBlockGetFirstOperation(o3_func_body(main)); !mlirOperationIsNull(op);
       op = next) {
    next = mlirOperationGetNextInBlock(op);
    O3_TRY(visit(env, op));
  }
  return NULL;
}
