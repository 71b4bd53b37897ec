#include "target/ref/body_math.h"

MlirValue o3_index_to_float(o3_builder_t *b, MlirValue index, MlirType type) {
  MlirValue wide = o3_build1(b, "arith.index_cast", mlirIntegerTypeGet(b->context, 64), O3_VALUES(index));
  return o3_build1(b, "arith.sitofp", type, O3_VALUES(wide));
}

MlirValue o3_float_to_index(o3_builder_t *b, MlirValue x) {
  MlirValue wide = o3_lw_convert(b, x, mlirValueGetType(x), mlirIntegerTypeGet(b->context, 64));
  return o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(wide));
}

MlirValue o3_index_clamp(o3_builder_t *b, MlirValue index, MlirValue size) {
  MlirValue last = o3_build2(b, "arith.subi", size, o3_build_index(b, 1));
  MlirValue below = o3_build2(b, "arith.minsi", index, last);
  return o3_build2(b, "arith.maxsi", below, o3_build_index(b, 0));
}
