#include "target/ref/lower_nest.h"

#include <string.h>

enum { MAX_STATE = 8 };

typedef struct level {
  const o3_nest_t *nest;
  int depth;
  MlirValue position[O3_IR_MAX_RANK];
} level_t;

static o3_status_t build_level(o3_builder_t *b, const level_t *level, MlirValue *state);

static o3_status_t level_body(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                              MlirValue *next) {
  level_t inner = *(const level_t *)context;
  size_t bytes = (size_t)inner.nest->num_state * sizeof(MlirValue);
  inner.position[inner.depth++] = index;
  memcpy(next, carried, bytes);
  return build_level(b, &inner, next);
}

static o3_status_t build_level(o3_builder_t *b, const level_t *level, MlirValue *state) {
  const o3_nest_t *nest = level->nest;
  MlirValue results[MAX_STATE];
  if (level->depth == nest->rank) return nest->body(b, nest->context, level->position, state);
  o3_for_t loop = {.lower = o3_build_index(b, 0),
                   .upper = nest->sizes[level->depth],
                   .step = o3_build_index(b, 1),
                   .num_carried = nest->num_state,
                   .inits = state,
                   .body = level_body,
                   .context = (void *)(uintptr_t)level};
  O3_TRY(o3_build_for(b, &loop, results));
  memcpy(state, results, (size_t)nest->num_state * sizeof(MlirValue));
  return NULL;
}

o3_status_t o3_lw_nest(o3_builder_t *b, const o3_nest_t *nest, MlirValue *state) {
  level_t level = {.nest = nest};
  return build_level(b, &level, state);
}

MlirValue o3_lw_insert(o3_builder_t *b, MlirValue scalar, MlirValue tensor, int rank,
                       const MlirValue *position) {
  MlirValue operands[O3_IR_MAX_RANK + 2] = {scalar, tensor};
  for (int i = 0; i < rank; ++i) operands[i + 2] = position[i];
  return o3_build1(b, "tensor.insert", mlirValueGetType(tensor), rank + 2, operands);
}

MlirValue o3_lw_first(o3_builder_t *b, MlirValue tensor, int axis, MlirValue size) {
  MlirType type = mlirValueGetType(tensor);
  int rank = o3_type_rank(type), dynamic = 1;
  int64_t offsets[O3_IR_MAX_RANK] = {0}, sizes[O3_IR_MAX_RANK], strides[O3_IR_MAX_RANK],
          shape[O3_IR_MAX_RANK];
  MlirValue operands[O3_IR_MAX_RANK + 1] = {tensor};
  for (int i = 0; i < rank; ++i) {
    strides[i] = 1;
    shape[i] = i == axis ? -1 : o3_type_dim(type, i);
    sizes[i] = shape[i] < 0 ? mlirShapedTypeGetDynamicSize() : shape[i];
    if (shape[i] >= 0) continue;
    MlirValue dim = o3_build_index(b, i);
    operands[dynamic++] =
        i == axis ? size : o3_build1(b, "tensor.dim", o3_build_index_type(b), O3_VALUES(tensor, dim));
  }
  int32_t segments[4] = {1, 0, dynamic - 1, 0};
  return o3_build1_attrs(b, "tensor.extract_slice", o3_tensor_type(rank, shape, o3_type_element(type)),
                         dynamic, operands,
                         O3_ATTRS({"static_offsets", o3_attr_ints(b->context, rank, offsets)},
                                  {"static_sizes", o3_attr_ints(b->context, rank, sizes)},
                                  {"static_strides", o3_attr_ints(b->context, rank, strides)},
                                  {"operandSegmentSizes", mlirDenseI32ArrayGet(b->context, 4, segments)}));
}
