/* A row of a block is short: a loop that LLVM makes vectors of spends more on its checks and ends than on the
 * scores, and the softmax would read the row once more for the greatest of them.
 *
 *     greatest = scf.for keys by vectors iter_args(-inf)   whole ones, then one with a mask
 *       x = body(scores, masks, ...); store x; max
 */
#include "target/cpu/softmax_side.h"

#include <math.h>

#include "target/cpu/loops.h"
#include "target/cpu/vector_body.h"

static bool is_f32(const o3_nest_operand_t *operand) {
  MlirType type = mlirValueGetType(operand->value);
  return mlirTypeIsAF32(operand->is_memref ? o3_type_element(type) : type);
}

bool o3_softmax_side_fits(const o3_gemm_product_t *scores, const o3_gemm_side_t *op) {
  const o3_nest_t *nest = &op->nest;
  int keys = op->dims[scores->columns.at[0]];
  if (nest->num_operands != nest->num_inputs + 1 || !o3_vector_body_fits(nest)) return false;
  for (int i = 0; i < nest->num_operands; ++i) {
    int64_t step = 0;
    const o3_nest_operand_t *operand = &nest->operands[i];
    if (!is_f32(operand) || (operand->is_memref && !o3_nest_step(operand, keys, &step))) return false;
    if (step != 1 && (step != 0 || i >= nest->num_inputs)) return false;
  }
  return true;
}

typedef struct row {
  const o3_nest_t *nest;
  int keys; /* the op's dim */
  const o3_softmax_side_row_t *at;
  MlirValue mask; /* of a vector that is no whole one, or null */
  MlirValue none; /* a vector of -inf */
} row_t;

static MlirValue load(const row_t *self, o3_builder_t *b, const o3_nest_operand_t *operand,
                      MlirValue address) {
  int64_t step = 0;
  int lanes = self->at->lanes;
  if (!operand->is_memref) return o3_vector_broadcast(b, lanes, operand->value);
  MlirType element = o3_type_element(mlirValueGetType(operand->flat)), type = o3_vector_type(lanes, element);
  if (!o3_nest_step(operand, self->keys, &step) || step == 0)
    return o3_vector_broadcast(b, lanes,
                               o3_build1(b, "memref.load", element, O3_VALUES(operand->flat, address)));
  if (mlirValueIsNull(self->mask))
    return o3_build1(b, "vector.load", type, O3_VALUES(operand->flat, address));
  return o3_build1(b, "vector.maskedload", type, O3_VALUES(operand->flat, address, self->mask, self->none));
}

static void store(const row_t *self, o3_builder_t *b, MlirValue address, MlirValue value) {
  const o3_nest_operand_t *out = &self->nest->operands[self->nest->num_inputs];
  if (mlirValueIsNull(self->mask))
    o3_build0(b, "vector.store", O3_VALUES(value, out->flat, address));
  else
    o3_build0(b, "vector.maskedstore", O3_VALUES(out->flat, address, self->mask, value));
}

static o3_status_t vector_body(o3_builder_t *b, void *context, MlirValue key, const MlirValue *carried,
                               MlirValue *next) {
  const row_t *self = context;
  const o3_nest_t *nest = self->nest;
  MlirValue ivs[O3_IR_MAX_RANK], arguments[O3_NEST_MAX_OPERANDS], address = {0}, score;
  for (int d = 0; d < nest->num_dims; ++d) ivs[d] = self->at->ivs[d];
  ivs[self->keys] = key;
  for (int i = 0; i < nest->num_operands; ++i) {
    const o3_nest_operand_t *operand = &nest->operands[i];
    if (operand->is_memref) address = o3_nest_address(nest, operand, b, ivs);
    arguments[i] = load(self, b, operand, address);
  }
  O3_TRY(o3_vector_body_build(nest, b, self->at->lanes, arguments, &score));
  store(self, b, address, score);
  if (!mlirValueIsNull(self->mask)) score = o3_build_select(b, self->mask, score, self->none);
  MlirType i1s = o3_vector_type(self->at->lanes, mlirIntegerTypeGet(b->context, 1));
  MlirValue more = o3_build1_attrs(b, "arith.cmpf", i1s, O3_VALUES(score, carried[0]),
                                   O3_ATTRS({"predicate", o3_attr_i64(b->context, O3_CMPF_OGT)}));
  next[0] = o3_build_select(b, more, score, carried[0]);
  return NULL;
}

static o3_status_t build_vectors(row_t *self, o3_builder_t *b, MlirValue lower, MlirValue upper,
                                 MlirValue *most) {
  o3_for_t loop = {.lower = lower,
                   .upper = upper,
                   .step = o3_build_index(b, self->at->lanes),
                   .num_carried = 1,
                   .inits = most,
                   .body = vector_body,
                   .context = self};
  return o3_build_for(b, &loop, most);
}

o3_status_t o3_softmax_side_build(const o3_gemm_product_t *scores, const o3_gemm_side_t *op, o3_builder_t *b,
                                  const o3_softmax_side_row_t *at) {
  row_t self = {.nest = &op->nest, .keys = op->dims[scores->columns.at[0]], .at = at};
  MlirType f32 = mlirF32TypeGet(b->context), i1 = mlirIntegerTypeGet(b->context, 1);
  MlirValue lanes = o3_build_index(b, at->lanes);
  O3_TRY(o3_walk(op->nest.op, o3_loops_relax, (void *)&op->nest));
  MlirValue most = self.none = o3_vector_broadcast(b, at->lanes, o3_build_float(b, f32, -INFINITY));
  MlirValue rest = o3_build2(b, "arith.remui", o3_build2(b, "arith.subi", at->upper, at->lower), lanes);
  MlirValue whole = o3_build2(b, "arith.subi", at->upper, rest);
  O3_TRY(build_vectors(&self, b, at->lower, whole, &most));
  self.mask = o3_build1(b, "vector.create_mask", o3_vector_type(at->lanes, i1), O3_VALUES(rest));
  O3_TRY(build_vectors(&self, b, whole, at->upper, &most));
  MlirAttribute kind = o3_attr_parse(b->context, "#vector.kind<maxnumf>"),
                flags = o3_attr_parse(b->context, "#arith.fastmath<nnan>");
  MlirValue greatest = o3_build1_attrs(b, "vector.reduction", f32, O3_VALUES(most),
                                       O3_ATTRS({"kind", kind}, {"fastmath", flags}));
  o3_build0(b, "memref.store", O3_VALUES(greatest, at->greatest, at->place));
  return NULL;
}
