/* Ops around a blocked product: what its sums start at, and what follows at vector width. */
#include "target/cpu/blocked_match.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/product.h"
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

/* ---- Places ---- */

int o3_blocked_run_dim(const o3_blocked_t *p) {
  return p->pixels.count ? p->pixels.at[p->pixels.count - 1] : -1;
}

/* The parts of a merged dim are one dim of the op, too. */
void o3_blocked_side_ivs(const o3_blocked_t *p, const o3_blocked_side_t *side, o3_builder_t *b,
                         const o3_blocked_place_t *place, MlirValue *ivs) {
  MlirValue zero = o3_build_index(b, 0);
  int run = o3_blocked_run_dim(p);
  for (int d = 0; d < side->nest.num_dims; ++d) ivs[d] = zero;
  for (int d = 0; d < p->nest.num_dims; ++d) {
    if (side->dims[d] < 0 || p->nest.merged_into[d] >= 0) continue;
    MlirValue at = d == run        ? place->pixel
                   : d == p->block ? place->block
                   : d == p->lane  ? zero
                                   : place->ivs[d];
    if (d == p->columns) at = o3_build2(b, "arith.muli", place->block, o3_build_index(b, O3_BLOCK_LANES));
    ivs[side->dims[d]] = at;
  }
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

/* ---- Ahead ---- */

/* Another buffer than the op's result, of which each pixel has lanes of its own. */
static bool is_image(const o3_blocked_side_t *side, int index, int run, int64_t *step) {
  const o3_nest_operand_t *operand = &side->nest.operands[index];
  const o3_nest_operand_t *out = &side->nest.operands[side->nest.num_inputs];
  return operand->is_memref && !mlirValueEqual(operand->value, out->value) &&
         o3_nest_step(operand, side->dims[run], step) && *step > 0;
}

void o3_blocked_side_ask(const o3_blocked_t *p, const o3_blocked_side_t *side, o3_builder_t *b,
                         const o3_blocked_place_t *at, const o3_tile_t *tile) {
  MlirValue ivs[O3_IR_MAX_RANK];
  int run = o3_blocked_run_dim(p);
  int64_t step;
  if (!side->vectors || p->columns >= 0 || run < 0 || tile->used < O3_BLOCK_LANES) return;
  for (int i = 0; i < side->nest.num_inputs * tile->blocks; ++i) {
    const o3_nest_operand_t *operand = &side->nest.operands[i / tile->blocks];
    if (!is_image(side, i / tile->blocks, run, &step)) continue;
    o3_blocked_place_t place = *at;
    place.block = o3_build2(b, "arith.addi", at->block, o3_build_index(b, i % tile->blocks));
    o3_blocked_side_ivs(p, side, b, &place, ivs);
    MlirValue first = o3_nest_address(&side->nest, operand, b, ivs);
    for (int pixel = 0; pixel < tile->pixels; ++pixel)
      o3_cpu_prefetch(b, operand->flat, o3_build2(b, "arith.addi", first, o3_build_index(b, pixel * step)),
                      2);
  }
}
