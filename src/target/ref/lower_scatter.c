/* Scatters: loops over the updates, in order, so that with equal indices the last one stays. */
#include "target/ref/lower_index.h"
#include "target/ref/lower_nest.h"

/* What joins the old element and the update: for floats, signed and unsigned integers, i1. */
static const struct {
  const char *kind, *scalar[4];
} REDUCTIONS[] = {
    {"add", {"arith.addf", "arith.addi", "arith.addi", "arith.ori"}},
    {"mul", {"arith.mulf", "arith.muli", "arith.muli", "arith.andi"}},
    {"max", {"arith.maximumf", "arith.maxsi", "arith.maxui", "arith.ori"}},
    {"min", {"arith.minimumf", "arith.minsi", "arith.minui", "arith.andi"}},
};

static const char *joining_op(MlirOperation op) {
  MlirType element = o3_lw_old_element(op, 0);
  int column = o3_type_is_bool(element) ? 3 : (int)o3_number_kind(element);
  for (size_t i = 0; i < sizeof(REDUCTIONS) / sizeof(REDUCTIONS[0]); ++i) {
    if (o3_str_equal(o3_op_string(op, "reduction"), REDUCTIONS[i].kind)) return REDUCTIONS[i].scalar[column];
  }
  return NULL;
}

typedef struct scatter {
  MlirValue indices, updates;
  int x_rank, loops;
  int axis;         /* scatter_elements; -1: scatter_nd */
  int tuple;        /* scatter_nd: numbers in an index */
  int outer;        /* scatter_nd: loops over the indices' dimensions */
  const char *join; /* NULL: replace */
  MlirValue sizes[O3_IR_MAX_RANK];
} scatter_t;

static void elements_target(o3_builder_t *b, const scatter_t *scatter, const MlirValue *at,
                            MlirValue *target) {
  MlirValue number = o3_lw_extract(b, scatter->indices, scatter->loops, at);
  for (int i = 0; i < scatter->x_rank; ++i) target[i] = at[i];
  target[scatter->axis] = o3_lw_wrap_index(b, number, scatter->sizes[scatter->axis]);
}

static void nd_target(o3_builder_t *b, const scatter_t *scatter, const MlirValue *at, MlirValue *target) {
  MlirValue entry[O3_IR_MAX_RANK + 1];
  for (int i = 0; i < scatter->outer; ++i) entry[i] = at[i];
  for (int i = 0; i < scatter->tuple; ++i) {
    entry[scatter->outer] = o3_build_index(b, i);
    MlirValue number = o3_lw_extract(b, scatter->indices, scatter->outer + 1, entry);
    target[i] = o3_lw_wrap_index(b, number, scatter->sizes[i]);
  }
  for (int i = scatter->tuple; i < scatter->x_rank; ++i) target[i] = at[scatter->outer + i - scatter->tuple];
}

static o3_status_t scatter_body(o3_builder_t *b, void *context, const MlirValue *at, MlirValue *state) {
  const scatter_t *scatter = context;
  MlirValue target[O3_IR_MAX_RANK];
  if (scatter->axis >= 0) {
    elements_target(b, scatter, at, target);
  } else {
    nd_target(b, scatter, at, target);
  }
  MlirValue update = o3_lw_extract(b, scatter->updates, scatter->loops, at);
  if (scatter->join)
    update = o3_build2(b, scatter->join, o3_lw_extract(b, state[0], scatter->x_rank, target), update);
  state[0] = o3_lw_insert(b, update, state[0], scatter->x_rank, target);
  return NULL;
}

static o3_status_t build_scatter(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, scatter_t *scatter,
                                 MlirValue *results) {
  MlirValue sizes[O3_IR_MAX_RANK];
  o3_shape_t x, updates;
  o3_lw_operand_shape(lw, op, 0, &x);
  o3_lw_operand_shape(lw, op, 2, &updates);
  scatter->indices = operands[1];
  scatter->updates = operands[2];
  scatter->x_rank = x.rank;
  scatter->loops = updates.rank;
  scatter->join = joining_op(op);
  for (int i = 0; i < x.rank; ++i) scatter->sizes[i] = o3_lw_size(lw, x.dims[i]);
  for (int i = 0; i < updates.rank; ++i) sizes[i] = o3_lw_size(lw, updates.dims[i]);
  o3_nest_t nest = {
      .rank = updates.rank, .sizes = sizes, .num_state = 1, .body = scatter_body, .context = scatter};
  results[0] = operands[0];
  return o3_lw_nest(&lw->builder, &nest, results);
}

o3_status_t o3_lower_scatter_elements(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                      MlirValue *results) {
  o3_shape_t x;
  scatter_t scatter = {.axis = (int)o3_op_int(op, "axis", 0)};
  o3_lw_operand_shape(lw, op, 0, &x);
  o3_lw_check_indices(lw, op, 1, operands[1], 1, &x.dims[scatter.axis]);
  return build_scatter(lw, op, operands, &scatter, results);
}

o3_status_t o3_lower_scatter_nd(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                MlirValue *results) {
  o3_shape_t x, indices;
  int64_t last;
  o3_lw_operand_shape(lw, op, 0, &x);
  o3_lw_operand_shape(lw, op, 1, &indices);
  if (!o3_expr_is_const(indices.dims[indices.rank - 1], &last))
    return o3_status_create(O3_STATUS_INTERNAL, "%s: the size of an index tuple is not known",
                            o3_lw_who(lw, op));
  scatter_t scatter = {.axis = -1, .tuple = (int)last, .outer = indices.rank - 1};
  o3_lw_check_indices(lw, op, 1, operands[1], scatter.tuple, x.dims);
  return build_scatter(lw, op, operands, &scatter, results);
}
