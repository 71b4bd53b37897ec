#include "target/ref/lower_index.h"

#include <string.h>

/* ---- At compile time ---- */

static int64_t load(const uint8_t *at, size_t width) {
  int64_t value = 0;
  memcpy(&value, at, width);
  int unused = 64 - 8 * (int)width;
  return (int64_t)((uint64_t)value << unused) >> unused;
}

static bool constants_fit(o3_lw_t *lw, MlirOperation op, int operand, int num_sizes,
                          const MlirAffineExpr *sizes) {
  MlirOperation def = o3_value_def(mlirOperationGetOperand(op, operand));
  size_t bytes, width = (size_t)o3_type_bits(o3_lw_old_element(op, operand)) / 8;
  if (mlirOperationIsNull(def) || !o3_op_is(def, "o3.constant")) return false;
  const uint8_t *data = o3_weights_data(lw->env->weights, o3_op_attr(def, "value"), &bytes);
  if (!data) return false;
  for (size_t i = 0; i < bytes / width; ++i) {
    int64_t size, index = load(data + i * width, width);
    if (!o3_expr_is_const(sizes[i % (size_t)num_sizes], &size) || index < -size || index >= size)
      return false;
  }
  return true;
}

/* ---- At run time ---- */

typedef struct bounds {
  int rank, num_sizes;
  const MlirValue *sizes;
} bounds_t;

static MlirValue size_here(const o3_body_args_t *in, const bounds_t *bounds) {
  MlirValue size = bounds->sizes[0];
  if (bounds->num_sizes == 1) return size;
  MlirValue at = o3_lw_index(in->builder, bounds->rank - 1);
  for (int k = 1; k < bounds->num_sizes; ++k) {
    MlirValue here = o3_build_cmpi(in->builder, O3_CMPI_EQ, at, o3_build_index(in->builder, k));
    size = o3_build_select(in->builder, here, bounds->sizes[k], size);
  }
  return size;
}

static MlirValue as_index(o3_builder_t *b, MlirValue number) {
  return o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(number));
}

/* fits and -size <= i and i < size */
static void fits_body(const o3_body_args_t *in) {
  o3_builder_t *b = in->builder;
  MlirValue size = size_here(in, in->context);
  MlirValue index = as_index(b, in->args[0]);
  MlirValue low = o3_build2(b, "arith.subi", o3_build_index(b, 0), size);
  MlirValue above = o3_build_cmpi(b, O3_CMPI_SGE, index, low),
            below = o3_build_cmpi(b, O3_CMPI_SLT, index, size);
  in->results[0] = o3_build2(b, "arith.andi", in->args[1], o3_build2(b, "arith.andi", above, below));
}

static MlirValue all_fit(o3_lw_t *lw, MlirValue indices, bounds_t *bounds) {
  o3_shape_t scalar = {0};
  MlirType i1 = mlirIntegerTypeGet(lw->context, 1);
  int rank = o3_type_rank(mlirValueGetType(indices));
  bounds->rank = rank;
  o3_generic_t generic = {.iterators = &"rrrrrrrrrrrrrrrr"[O3_IR_MAX_RANK - rank],
                          .num_inputs = 1,
                          .inputs = {indices},
                          .num_outputs = 1,
                          .outputs = {o3_lw_fill(lw, &scalar, o3_build_int(&lw->builder, i1, 1))},
                          .maps = {o3_lw_identity(lw, rank), o3_lw_projection(lw, rank, 0, NULL)},
                          .body = fits_body,
                          .context = bounds};
  MlirValue result, position = {0};
  o3_lw_generic(lw, &generic, &result);
  return o3_lw_extract(&lw->builder, result, 0, &position);
}

void o3_lw_check_indices(o3_lw_t *lw, MlirOperation op, int operand, MlirValue indices, int num_sizes,
                         const MlirAffineExpr *sizes) {
  MlirValue values[O3_IR_MAX_RANK];
  if (num_sizes == 0 || constants_fit(lw, op, operand, num_sizes, sizes)) return;
  for (int i = 0; i < num_sizes; ++i) values[i] = o3_lw_size(lw, sizes[i]);
  bounds_t bounds = {.num_sizes = num_sizes, .sizes = values};
  o3_lw_assert(lw, op, all_fit(lw, indices, &bounds), "an index is out of range");
}

MlirValue o3_lw_wrap_index(o3_builder_t *b, MlirValue number, MlirValue size) {
  MlirValue zero = o3_build_index(b, 0), index = as_index(b, number);
  MlirValue negative = o3_build_cmpi(b, O3_CMPI_SLT, index, zero);
  MlirValue wrapped = o3_build_select(b, negative, o3_build2(b, "arith.addi", index, size), index);
  MlirValue last = o3_build2(b, "arith.subi", size, o3_build_index(b, 1));
  return o3_build2(b, "arith.maxsi", o3_build2(b, "arith.minsi", wrapped, last), zero);
}
