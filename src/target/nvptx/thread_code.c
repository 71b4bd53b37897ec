#include "target/nvptx/thread_code.h"

#include <math.h>
#include <string.h>

#include "target/cpu/cpu_ir.h"

void o3_flat_dims_add(o3_flat_dims_t *flat, int dim, MlirValue size, int64_t known) {
  if (!flat->count) flat->known = 1;
  flat->dims[flat->count] = dim;
  flat->sizes[flat->count++] = size;
  bool both = known >= 0 && flat->known >= 0;
  if (!both || __builtin_mul_overflow(flat->known, known, &flat->known)) flat->known = -1;
}

void o3_flat_dims_finish(o3_flat_dims_t *flat, o3_builder_t *b) {
  if (!flat->count) flat->known = 1;
  flat->total = o3_build_index(b, 1);
  for (int i = 0; i < flat->count; ++i)
    flat->total = i ? o3_build2(b, "arith.muli", flat->total, flat->sizes[i]) : flat->sizes[i];
}

static bool is_short(const o3_flat_dims_t *flat) { return flat->known >= 0 && flat->known < INT32_MAX; }

static MlirValue narrowed(o3_builder_t *b, MlirValue value, bool narrow) {
  if (!narrow) return value;
  return o3_build1(b, "arith.index_cast", mlirIntegerTypeGet(b->context, 32), O3_VALUES(value));
}

void o3_flat_dims_split(const o3_flat_dims_t *flat, o3_builder_t *b, MlirValue linear, MlirValue *ivs) {
  bool narrow = is_short(flat);
  MlirType index = o3_build_index_type(b);
  MlirValue rest = narrowed(b, linear, narrow);
  for (int i = flat->count - 1; i >= 0; --i) {
    MlirValue size = narrowed(b, flat->sizes[i], narrow);
    MlirValue at = i ? o3_build2(b, "arith.remui", rest, size) : rest;
    if (i) rest = o3_build2(b, "arith.divui", rest, size);
    ivs[flat->dims[i]] = narrow ? o3_build1(b, "arith.index_castui", index, O3_VALUES(at)) : at;
  }
}

/* ---- Reductions ---- */

enum identity { ZERO, MINUS_ZERO, ONE, LOWEST, HIGHEST, ALL_ONES };

static const struct {
  const char *op;
  enum identity identity;
  bool is_unsigned;
} COMBINERS[] = {
    {"arith.addf", MINUS_ZERO, false},  {"arith.mulf", ONE, false},       {"arith.maximumf", LOWEST, false},
    {"arith.minimumf", HIGHEST, false}, {"arith.maxnumf", LOWEST, false}, {"arith.minnumf", HIGHEST, false},
    {"arith.addi", ZERO, false},        {"arith.muli", ONE, false},       {"arith.maxsi", LOWEST, false},
    {"arith.minsi", HIGHEST, false},    {"arith.maxui", LOWEST, true},    {"arith.minui", HIGHEST, true},
    {"arith.andi", ALL_ONES, false},    {"arith.ori", ZERO, false},       {"arith.xori", ZERO, false}};
enum { NUM_COMBINERS = sizeof(COMBINERS) / sizeof(COMBINERS[0]) };

static int find_combiner(const char *op) {
  int i = 0;
  while (strcmp(COMBINERS[i].op, op)) ++i;
  return i;
}

static int count_uses(MlirValue value) {
  int count = 0;
  MlirOpOperand use = mlirValueGetFirstUse(value);
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) ++count;
  return count;
}

static bool moves_along_reduction(const o3_nest_t *nest) {
  for (int d = 0; d < nest->num_dims; ++d)
    if (nest->reduction[d] && o3_nest_uses(&nest->operands[nest->num_inputs], d)) return true;
  return false;
}

bool o3_combiner_fits(const o3_nest_t *nest, const char **op) {
  if (nest->num_operands - nest->num_inputs != 1 || moves_along_reduction(nest)) return false;
  MlirValue yielded = mlirOperationGetOperand(mlirBlockGetTerminator(nest->body), 0);
  MlirValue out = mlirBlockGetArgument(nest->body, nest->num_inputs);
  MlirOperation def = o3_value_def(yielded);
  if (mlirOperationIsNull(def) || !mlirBlockEqual(mlirOperationGetBlock(def), nest->body)) return false;
  for (int i = 0; i < NUM_COMBINERS; ++i) {
    if (!o3_op_is(def, COMBINERS[i].op)) continue;
    *op = COMBINERS[i].op;
    bool first = mlirValueEqual(mlirOperationGetOperand(def, 0), out);
    bool second = mlirValueEqual(mlirOperationGetOperand(def, 1), out);
    return first != second && count_uses(out) == 1;
  }
  return false;
}

static int64_t integer_identity(enum identity identity, bool is_unsigned, int bits) {
  int64_t highest = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1;
  switch (identity) {
    case ONE:
      return 1;
    case ALL_ONES:
      return -1;
    case LOWEST:
      return is_unsigned ? 0 : -highest - 1;
    case HIGHEST:
      return is_unsigned ? -1 : highest;
    default:
      return 0;
  }
}

MlirValue o3_combiner_identity(o3_builder_t *b, const char *op, MlirType type) {
  int row = find_combiner(op);
  enum identity identity = COMBINERS[row].identity;
  if (!o3_type_is_float(type)) {
    int bits = o3_type_is_bool(type) ? 1 : o3_type_bits(type);
    return o3_build_int(b, type, integer_identity(identity, COMBINERS[row].is_unsigned, bits));
  }
  double value = identity == ONE       ? 1
                 : identity == LOWEST  ? -(double)INFINITY
                 : identity == HIGHEST ? (double)INFINITY
                                       : -0.0;
  return o3_build_float(b, type, value);
}
