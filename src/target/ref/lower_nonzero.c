/* nonzero in two passes over x: how many there are, which is the size of the result, and where. */
#include "target/ref/lower_nest.h"

typedef struct nonzero {
  MlirValue x;
  int rank;
} nonzero_t;

static MlirValue is_set(o3_builder_t *b, const nonzero_t *self, const MlirValue *at) {
  MlirValue element = o3_lw_extract(b, self->x, self->rank, at);
  MlirValue zero = o3_build_number(b, mlirValueGetType(element), 0);
  return o3_type_is_float(mlirValueGetType(element)) ? o3_build_cmpf(b, O3_CMPF_UNE, element, zero)
                                                     : o3_build_cmpi(b, O3_CMPI_NE, element, zero);
}

static MlirValue plus_one(o3_builder_t *b, MlirValue x) {
  return o3_build2(b, "arith.addi", x, o3_build_index(b, 1));
}

static o3_status_t count_body(o3_builder_t *b, void *context, const MlirValue *at, MlirValue *state) {
  state[0] = o3_build_select(b, is_set(b, context, at), plus_one(b, state[0]), state[0]);
  return NULL;
}

typedef struct found {
  int rank;
  const MlirValue *at, *state;
} found_t;

static o3_status_t note_position(o3_builder_t *b, void *context, MlirValue *yields) {
  const found_t *found = context;
  MlirType i64 = mlirIntegerTypeGet(b->context, 64);
  MlirValue tensor = found->state[0];
  for (int i = 0; i < found->rank; ++i) {
    MlirValue place[2] = {o3_build_index(b, i), found->state[1]};
    tensor =
        o3_lw_insert(b, o3_build1(b, "arith.index_cast", i64, O3_VALUES(found->at[i])), tensor, 2, place);
  }
  yields[0] = tensor;
  yields[1] = plus_one(b, found->state[1]);
  return NULL;
}

static o3_status_t keep_state(o3_builder_t *b, void *context, MlirValue *yields) {
  (void)b;
  const found_t *found = context;
  yields[0] = found->state[0];
  yields[1] = found->state[1];
  return NULL;
}

static o3_status_t place_body(o3_builder_t *b, void *context, const MlirValue *at, MlirValue *state) {
  const nonzero_t *self = context;
  MlirValue before[2] = {state[0], state[1]};
  MlirType types[2] = {mlirValueGetType(state[0]), mlirValueGetType(state[1])};
  found_t found = {.rank = self->rank, .at = at, .state = before};
  o3_if_t branch = {.condition = is_set(b, self, at),
                    .num_results = 2,
                    .types = types,
                    .then_body = note_position,
                    .else_body = keep_state,
                    .context = &found};
  return o3_build_if(b, &branch, state);
}

o3_status_t o3_lower_nonzero(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  o3_shape_t x;
  MlirValue sizes[O3_IR_MAX_RANK];
  o3_lw_operand_shape(lw, op, 0, &x);
  nonzero_t self = {.x = operands[0], .rank = x.rank};
  for (int i = 0; i < x.rank; ++i) sizes[i] = o3_lw_size(lw, x.dims[i]);
  o3_nest_t nest = {.rank = x.rank, .sizes = sizes, .num_state = 1, .body = count_body, .context = &self};
  MlirValue count = o3_build_index(&lw->builder, 0);
  O3_TRY(o3_lw_nest(&lw->builder, &nest, &count));
  int64_t shape[2] = {x.rank, -1};
  MlirType type = o3_tensor_type(2, shape, mlirIntegerTypeGet(lw->context, 64));
  MlirValue state[2] = {o3_build1(&lw->builder, "tensor.empty", type, O3_VALUES(count)),
                        o3_build_index(&lw->builder, 0)};
  nest.num_state = 2;
  nest.body = place_body;
  O3_TRY(o3_lw_nest(&lw->builder, &nest, state));
  results[0] = state[0];
  return NULL;
}
