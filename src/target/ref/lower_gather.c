/* Gathers: each element of the result computes where it comes from. */
#include "target/ref/lower_index.h"

typedef struct gather {
  MlirValue x;
  int x_rank, axis, num_indices; /* dimensions of the indices (gather), or numbers in a tuple (gather_nd) */
  int batch;
  MlirValue indices, sizes[O3_IR_MAX_RANK]; /* of x */
} gather_t;

/* Loops: x's dimensions before the axis, the indices', x's behind the axis. */
static void gather_body(const o3_body_args_t *in) {
  const gather_t *gather = in->context;
  MlirValue position[O3_IR_MAX_RANK];
  for (int i = 0; i < gather->x_rank; ++i) {
    if (i == gather->axis) continue;
    position[i] = o3_lw_index(in->builder, i < gather->axis ? i : i - 1 + gather->num_indices);
  }
  position[gather->axis] = o3_lw_wrap_index(in->builder, in->args[0], gather->sizes[gather->axis]);
  in->results[0] = o3_lw_extract(in->builder, gather->x, gather->x_rank, position);
}

static MlirValue build_gather(o3_lw_t *lw, MlirOperation op, MlirValue indices, MlirAffineMap map,
                              o3_body_fn_t body, gather_t *gather) {
  o3_shape_t y;
  MlirValue result;
  o3_lw_result_shape(lw, op, 0, &y);
  o3_generic_t generic = {.op = op,
                          .iterators = &"pppppppppppppppp"[O3_IR_MAX_RANK - y.rank],
                          .num_inputs = 1,
                          .inputs = {indices},
                          .num_outputs = 1,
                          .outputs = {o3_lw_empty(lw, &y, o3_lw_new_element(op, 0))},
                          .maps = {map, o3_lw_identity(lw, y.rank)},
                          .body = body,
                          .context = gather,
                          .kernel = "gather"};
  o3_lw_generic(lw, &generic, &result);
  return result;
}

o3_status_t o3_lower_gather(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  o3_shape_t x, indices;
  int64_t list[O3_IR_MAX_RANK];
  o3_lw_operand_shape(lw, op, 0, &x);
  o3_lw_operand_shape(lw, op, 1, &indices);
  gather_t gather = {
      .x = operands[0], .x_rank = x.rank, .axis = (int)o3_op_int(op, "axis", 0), .num_indices = indices.rank};
  o3_lw_check_indices(lw, op, 1, operands[1], 1, &x.dims[gather.axis]);
  gather.sizes[gather.axis] = o3_lw_size(lw, x.dims[gather.axis]);
  for (int i = 0; i < indices.rank; ++i) list[i] = gather.axis + i;
  MlirAffineMap map = o3_lw_projection(lw, x.rank - 1 + indices.rank, indices.rank, list);
  results[0] = build_gather(lw, op, operands[1], map, gather_body, &gather);
  return NULL;
}

static void gather_elements_body(const o3_body_args_t *in) {
  const gather_t *gather = in->context;
  MlirValue position[O3_IR_MAX_RANK];
  for (int i = 0; i < gather->x_rank; ++i) position[i] = o3_lw_index(in->builder, i);
  position[gather->axis] = o3_lw_wrap_index(in->builder, in->args[0], gather->sizes[gather->axis]);
  in->results[0] = o3_lw_extract(in->builder, gather->x, gather->x_rank, position);
}

o3_status_t o3_lower_gather_elements(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                     MlirValue *results) {
  o3_shape_t x;
  o3_lw_operand_shape(lw, op, 0, &x);
  gather_t gather = {.x = operands[0], .x_rank = x.rank, .axis = (int)o3_op_int(op, "axis", 0)};
  o3_lw_check_indices(lw, op, 1, operands[1], 1, &x.dims[gather.axis]);
  gather.sizes[gather.axis] = o3_lw_size(lw, x.dims[gather.axis]);
  results[0] = build_gather(lw, op, operands[1], o3_lw_identity(lw, x.rank), gather_elements_body, &gather);
  return NULL;
}

/* Loops: the indices' dimensions but the last, then x's behind batch and tuple. */
static void gather_nd_body(const o3_body_args_t *in) {
  const gather_t *gather = in->context;
  MlirValue position[O3_IR_MAX_RANK], tuple[O3_IR_MAX_RANK];
  int loops = o3_type_rank(mlirValueGetType(gather->indices)) - 1,
      taken = gather->batch + gather->num_indices;
  for (int i = 0; i < loops; ++i) tuple[i] = o3_lw_index(in->builder, i);
  for (int i = 0; i < gather->batch; ++i) position[i] = tuple[i];
  for (int i = gather->batch; i < taken; ++i) {
    tuple[loops] = o3_build_index(in->builder, i - gather->batch);
    MlirValue number = o3_lw_extract(in->builder, gather->indices, loops + 1, tuple);
    position[i] = o3_lw_wrap_index(in->builder, number, gather->sizes[i]);
  }
  for (int i = taken; i < gather->x_rank; ++i) position[i] = o3_lw_index(in->builder, loops + i - taken);
  in->results[0] = o3_lw_extract(in->builder, gather->x, gather->x_rank, position);
}

o3_status_t o3_lower_gather_nd(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  o3_shape_t x, y, indices;
  int64_t last;
  o3_lw_operand_shape(lw, op, 0, &x);
  o3_lw_operand_shape(lw, op, 1, &indices);
  o3_lw_result_shape(lw, op, 0, &y);
  if (!o3_expr_is_const(indices.dims[indices.rank - 1], &last))
    return o3_status_create(O3_STATUS_INTERNAL, "%s: the size of an index tuple is not known",
                            o3_lw_who(lw, op));
  gather_t gather = {.x = operands[0],
                     .x_rank = x.rank,
                     .num_indices = (int)last,
                     .batch = (int)o3_op_int(op, "batch_dims", 0),
                     .indices = operands[1]};
  o3_lw_check_indices(lw, op, 1, operands[1], gather.num_indices, &x.dims[gather.batch]);
  for (int i = 0; i < x.rank; ++i) gather.sizes[i] = o3_lw_size(lw, x.dims[i]);
  results[0] = o3_lw_generate(lw, &y, o3_lw_new_element(op, 0), gather_nd_body, &gather);
  return NULL;
}
