/* Tensors whose elements follow from their positions. */
#include "target/ref/lowering.h"

typedef struct progression {
  int axis;
  MlirType old_element;
  MlirValue start, delta; /* scalars; null for 0 and 1 */
} progression_t;

/* Half precision counts in f32: not every position is a half. */
static MlirType counting_type(MlirType old_element) {
  bool half = o3_type_is_float(old_element) && o3_type_bits(old_element) < 32;
  return half ? mlirF32TypeGet(mlirTypeGetContext(old_element)) : old_element;
}

/* start + delta * position, in the counting type. */
static void progression_body(const o3_body_args_t *in) {
  const progression_t *p = in->context;
  o3_builder_t *b = in->builder;
  MlirType i64 = mlirIntegerTypeGet(b->context, 64), type = counting_type(p->old_element);
  MlirValue index = o3_lw_index(b, p->axis);
  MlirValue wide = o3_build1(b, "arith.index_cast", i64, O3_VALUES(index));
  MlirValue value = o3_lw_convert(b, wide, i64, type);
  bool is_float = o3_type_is_float(type);
  if (!mlirValueIsNull(p->delta)) {
    value = o3_build2(b, is_float ? "arith.mulf" : "arith.muli", value,
                      o3_lw_convert(b, p->delta, p->old_element, type));
    value = o3_build2(b, is_float ? "arith.addf" : "arith.addi", value,
                      o3_lw_convert(b, p->start, p->old_element, type));
  }
  in->results[0] = o3_lw_convert(b, value, type, p->old_element);
}

o3_status_t o3_lower_iota(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  (void)operands;
  o3_shape_t shape;
  o3_lw_result_shape(lw, op, 0, &shape);
  progression_t p = {.axis = (int)o3_op_int(op, "axis", 0), .old_element = o3_lw_result_element(op, 0)};
  results[0] = o3_lw_generate(lw, &shape, o3_lw_new_element(op, 0), progression_body, &p);
  return NULL;
}

o3_status_t o3_lower_range(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  o3_shape_t shape;
  MlirValue none = {0};
  o3_lw_result_shape(lw, op, 0, &shape);
  progression_t p = {.old_element = o3_lw_result_element(op, 0),
                     .start = o3_lw_extract(&lw->builder, operands[0], 0, &none),
                     .delta = o3_lw_extract(&lw->builder, operands[1], 0, &none)};
  results[0] = o3_lw_generate(lw, &shape, o3_lw_new_element(op, 0), progression_body, &p);
  return NULL;
}
