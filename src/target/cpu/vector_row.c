/* A row is short: a loop that LLVM makes vectors of spends more on its checks and ends than on the elements,
 * and a softmax would read the row once more for the greatest of them.
 *
 *     greatest = scf.for |dim| by vectors iter_args(-inf)   whole ones, then one with a mask
 *       x = body(...); store x; max
 */
#include "target/cpu/vector_row.h"

#include <math.h>

#include "target/cpu/loops.h"
#include "target/cpu/vector_body.h"

static bool is_f32(const o3_nest_operand_t *operand) {
  MlirType type = mlirValueGetType(operand->value);
  return mlirTypeIsAF32(operand->is_memref ? o3_type_element(type) : type);
}

bool o3_vector_row_fits(const o3_nest_t *nest, int dim) {
  if (nest->num_operands != nest->num_inputs + 1 || !o3_vector_body_fits(nest)) return false;
  for (int i = 0; i < nest->num_operands; ++i) {
    int64_t step = 0;
    const o3_nest_operand_t *operand = &nest->operands[i];
    if (!is_f32(operand) || (operand->is_memref && !o3_nest_step(operand, dim, &step))) return false;
    if (step != 1 && (step != 0 || i >= nest->num_inputs)) return false;
  }
  return true;
}

typedef struct writer {
  const o3_vector_row_t *row;
  bool has_greatest;
  MlirValue mask; /* of a vector that is no whole one, or null */
  MlirValue none; /* a vector of -inf */
} writer_t;

static MlirValue load(const writer_t *self, o3_builder_t *b, const o3_nest_operand_t *operand,
                      MlirValue address) {
  int64_t step = 0;
  int lanes = self->row->lanes;
  if (!operand->is_memref) return o3_vector_broadcast(b, lanes, operand->value);
  MlirType element = o3_type_element(mlirValueGetType(operand->flat)), type = o3_vector_type(lanes, element);
  if (!o3_nest_step(operand, self->row->dim, &step) || step == 0)
    return o3_vector_broadcast(b, lanes,
                               o3_build1(b, "memref.load", element, O3_VALUES(operand->flat, address)));
  if (mlirValueIsNull(self->mask))
    return o3_build1(b, "vector.load", type, O3_VALUES(operand->flat, address));
  return o3_build1(b, "vector.maskedload", type, O3_VALUES(operand->flat, address, self->mask, self->none));
}

static void store(const writer_t *self, o3_builder_t *b, MlirValue address, MlirValue value) {
  const o3_nest_operand_t *out = &self->row->nest->operands[self->row->nest->num_inputs];
  if (mlirValueIsNull(self->mask))
    o3_build0(b, "vector.store", O3_VALUES(value, out->flat, address));
  else
    o3_build0(b, "vector.maskedstore", O3_VALUES(out->flat, address, self->mask, value));
}

static MlirValue greater(const writer_t *self, o3_builder_t *b, MlirValue value, MlirValue before) {
  MlirType i1s = o3_vector_type(self->row->lanes, mlirIntegerTypeGet(b->context, 1));
  if (!mlirValueIsNull(self->mask)) value = o3_build_select(b, self->mask, value, self->none);
  MlirValue more = o3_build1_attrs(b, "arith.cmpf", i1s, O3_VALUES(value, before),
                                   O3_ATTRS({"predicate", o3_attr_i64(b->context, O3_CMPF_OGT)}));
  return o3_build_select(b, more, value, before);
}

static o3_status_t vector_body(o3_builder_t *b, void *context, MlirValue at, const MlirValue *carried,
                               MlirValue *next) {
  const writer_t *self = context;
  const o3_nest_t *nest = self->row->nest;
  MlirValue ivs[O3_IR_MAX_RANK], arguments[O3_NEST_MAX_OPERANDS], address = {0}, value;
  for (int d = 0; d < nest->num_dims; ++d) ivs[d] = self->row->ivs[d];
  ivs[self->row->dim] = at;
  for (int i = 0; i < nest->num_operands; ++i) {
    const o3_nest_operand_t *operand = &nest->operands[i];
    if (operand->is_memref) address = o3_nest_address(nest, operand, b, ivs);
    arguments[i] = load(self, b, operand, address);
  }
  O3_TRY(o3_vector_body_build(nest, b, self->row->lanes, arguments, &value));
  store(self, b, address, value);
  if (self->has_greatest) next[0] = greater(self, b, value, carried[0]);
  return NULL;
}

static o3_status_t build_vectors(writer_t *self, o3_builder_t *b, MlirValue lower, MlirValue upper,
                                 MlirValue *most) {
  o3_for_t loop = {.lower = lower,
                   .upper = upper,
                   .step = o3_build_index(b, self->row->lanes),
                   .num_carried = self->has_greatest,
                   .inits = most,
                   .body = vector_body,
                   .context = self};
  return o3_build_for(b, &loop, most);
}

o3_status_t o3_vector_row_build(const o3_vector_row_t *row, o3_builder_t *b, MlirValue *greatest) {
  writer_t self = {.row = row, .has_greatest = greatest != NULL};
  MlirType f32 = mlirF32TypeGet(b->context), i1 = mlirIntegerTypeGet(b->context, 1);
  MlirValue lanes = o3_build_index(b, row->lanes);
  O3_TRY(o3_walk(row->nest->op, o3_loops_relax, (void *)(uintptr_t)row->nest));
  MlirValue most = self.none = o3_vector_broadcast(b, row->lanes, o3_build_float(b, f32, -INFINITY));
  MlirValue rest = o3_build2(b, "arith.remui", o3_build2(b, "arith.subi", row->upper, row->lower), lanes);
  MlirValue whole = o3_build2(b, "arith.subi", row->upper, rest);
  O3_TRY(build_vectors(&self, b, row->lower, whole, &most));
  self.mask = o3_build1(b, "vector.create_mask", o3_vector_type(row->lanes, i1), O3_VALUES(rest));
  O3_TRY(build_vectors(&self, b, whole, row->upper, &most));
  if (!greatest) return NULL;
  MlirAttribute kind = o3_attr_parse(b->context, "#vector.kind<maxnumf>"),
                flags = o3_attr_parse(b->context, "#arith.fastmath<nnan>");
  *greatest = o3_build1_attrs(b, "vector.reduction", f32, O3_VALUES(most),
                              O3_ATTRS({"kind", kind}, {"fastmath", flags}));
  return NULL;
}
