/* Ops around a blocked product: what its sums start at, and what follows at vector width. */
#include "target/cpu/blocked_match.h"
#include "target/cpu/product.h"
#include "target/cpu/tile_text.h"
#include "target/cpu/vector_body.h"

/* ---- The start of the sums ---- */

static bool is_bias(const o3_blocked_t *p, const o3_nest_operand_t *input, const int *dims) {
  int64_t lane = 0, block = O3_BLOCK_LANES;
  bool fits = o3_nest_step(input, dims[p->columns >= 0 ? p->columns : p->lane], &lane) && lane == 1;
  if (p->block >= 0) fits = fits && o3_nest_step(input, dims[p->block], &block) && block == O3_BLOCK_LANES;
  for (int i = 0; i < p->pixels.count; ++i) fits = fits && !o3_nest_uses(input, dims[p->pixels.at[i]]);
  return fits;
}

o3_status_t o3_blocked_read_sides(const o3_blocked_t *p, int count, const MlirOperation *ops,
                                  o3_blocked_side_t *sides) {
  for (int i = 0; i < count; ++i) {
    const char *why = o3_blocked_read_side(p, ops[i], &sides[i]);
    if (why) return o3_product_cannot_take(ops[i], why);
  }
  return NULL;
}

int o3_blocked_read_start(const o3_blocked_t *p, int count, const o3_blocked_side_t *before,
                          const o3_nest_operand_t **bias) {
  *bias = NULL;
  if (count != 1) return O3_TILE_OLD;
  const o3_nest_t *nest = &before[0].nest;
  MlirValue yielded = mlirOperationGetOperand(mlirBlockGetTerminator(nest->body), 0);
  if (o3_nest_is_zero(nest)) return O3_TILE_ZERO;
  bool copy = nest->num_inputs == 1 && mlirValueEqual(yielded, mlirBlockGetArgument(nest->body, 0));
  if (!copy || !is_bias(p, &nest->operands[0], before[0].dims)) return O3_TILE_OLD;
  *bias = &nest->operands[0];
  return O3_TILE_BIAS;
}

/* ---- Vectors ---- */

static MlirValue load_lanes(const o3_blocked_side_t *side, o3_builder_t *b, int dim, int lanes, int index,
                            MlirValue address) {
  const o3_nest_operand_t *operand = &side->nest.operands[index];
  MlirType element = o3_type_element(mlirValueGetType(operand->flat));
  int64_t step;
  if (!o3_nest_step(operand, dim, &step) || step == 0)
    return o3_vector_broadcast(b, lanes,
                               o3_build1(b, "memref.load", element, O3_VALUES(operand->flat, address)));
  return o3_build1(b, "vector.load", o3_vector_type(lanes, element), O3_VALUES(operand->flat, address));
}

o3_status_t o3_blocked_side_vectors(const o3_blocked_side_t *side, o3_builder_t *b, int lane, int lanes,
                                    MlirValue *ivs) {
  const o3_nest_t *nest = &side->nest;
  MlirValue arguments[O3_NEST_MAX_OPERANDS], yields[O3_NEST_MAX_OPERANDS], address = {0};
  int dim = side->dims[lane];
  for (int at = 0; at < O3_BLOCK_LANES; at += lanes) {
    ivs[dim] = o3_build_index(b, at);
    for (int i = 0; i < nest->num_operands; ++i) {
      const o3_nest_operand_t *operand = &nest->operands[i];
      if (operand->is_memref) address = o3_nest_address(nest, operand, b, ivs);
      arguments[i] = operand->is_memref ? load_lanes(side, b, dim, lanes, i, address)
                                        : o3_vector_broadcast(b, lanes, operand->value);
    }
    O3_TRY(o3_vector_body_build(nest, b, lanes, arguments, yields));
    o3_build0(b, "vector.store", O3_VALUES(yields[0], nest->operands[nest->num_inputs].flat, address));
  }
  return NULL;
}
