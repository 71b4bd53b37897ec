/* Non-maximum suppression: for each image and class, the best box still alive is taken, and those that it
 * covers die, until none is left or enough are taken. */
#include "target/ref/body_math.h"
#include "target/ref/lower_nest.h"

typedef struct nms {
  o3_lw_t *lw;
  bool centered;              /* boxes are x_center y_center width height, else y1 x1 y2 x2 */
  MlirType box, score;        /* element types */
  MlirValue boxes, scores;    /* images x boxes x 4; images x classes x boxes */
  MlirValue num_boxes, limit; /* index; limit: boxes to take of a class at most */
  MlirValue overlap, least;   /* thresholds, scalars of the boxes' and scores' types */
  MlirValue image, class;     /* loop positions */
  MlirValue alive, best;      /* of the step that is being built */
} nms_t;

/* ---- Overlap ---- */

typedef struct rectangle {
  MlirValue low[2], high[2];
} rectangle_t;

static MlirValue coordinate(o3_builder_t *b, const nms_t *nms, MlirValue box, int column) {
  const MlirValue positions[3] = {nms->image, box, o3_build_index(b, column)};
  return o3_lw_extract(b, nms->boxes, 3, positions);
}

static rectangle_t rectangle(o3_builder_t *b, const nms_t *nms, MlirValue box) {
  rectangle_t r;
  for (int i = 0; i < 2; ++i) {
    MlirValue first = coordinate(b, nms, box, i), second = coordinate(b, nms, box, 2 + i);
    MlirValue half = o3_mulf_number(b, second, 0.5);
    r.low[i] = nms->centered ? o3_subf(b, first, half) : o3_minf(b, first, second);
    r.high[i] = nms->centered ? o3_addf(b, first, half) : o3_maxf(b, first, second);
  }
  return r;
}

static MlirValue area(o3_builder_t *b, const rectangle_t *r) {
  return o3_mulf(b, o3_subf(b, r->high[0], r->low[0]), o3_subf(b, r->high[1], r->low[1]));
}

/* i1: the boxes' intersection is more than |overlap| of their union; boxes without area cover nothing. */
static MlirValue covers(o3_builder_t *b, const nms_t *nms, const rectangle_t *p, const rectangle_t *q) {
  rectangle_t inner;
  MlirValue yes = o3_build_int(b, mlirIntegerTypeGet(b->context, 1), 1);
  for (int i = 0; i < 2; ++i) {
    inner.low[i] = o3_maxf(b, p->low[i], q->low[i]);
    inner.high[i] = o3_minf(b, p->high[i], q->high[i]);
    yes = o3_both(b, yes, o3_build_cmpf(b, O3_CMPF_OGT, inner.high[i], inner.low[i]));
  }
  MlirValue shared = area(b, &inner), p_area = area(b, p), q_area = area(b, q);
  MlirValue both = o3_subf(b, o3_addf(b, p_area, q_area), shared), zero = o3_number_like(b, shared, 0);
  const MlirValue areas[4] = {shared, p_area, q_area, both};
  for (int i = 0; i < 4; ++i) yes = o3_both(b, yes, o3_build_cmpf(b, O3_CMPF_OGT, areas[i], zero));
  return o3_both(b, yes, o3_build_cmpf(b, O3_CMPF_OGT, o3_divf(b, shared, both), nms->overlap));
}

/* ---- One step ---- */

static MlirValue score_of(o3_builder_t *b, const nms_t *nms, MlirValue box) {
  const MlirValue positions[3] = {nms->image, nms->class, box};
  return o3_lw_extract(b, nms->scores, 3, positions);
}

/* Carries: found, its score, its number. Of equal scores the first box wins. */
static o3_status_t search_body(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                               MlirValue *next) {
  const nms_t *nms = context;
  MlirValue score = score_of(b, nms, index), alive = o3_lw_extract(b, nms->alive, 1, &index);
  MlirValue none = o3_build_cmpi(b, O3_CMPI_EQ, carried[0], o3_build_int(b, mlirValueGetType(carried[0]), 0));
  MlirValue better = o3_either(b, none, o3_build_cmpf(b, O3_CMPF_OGT, score, carried[1]));
  MlirValue taken = o3_both(b, alive, better);
  next[0] = o3_either(b, carried[0], alive);
  next[1] = o3_build_select(b, taken, score, carried[1]);
  next[2] = o3_build_select(b, taken, index, carried[2]);
  return NULL;
}

static o3_status_t search(o3_builder_t *b, nms_t *nms, MlirValue *found) {
  MlirValue zero = o3_build_index(b, 0);
  const MlirValue inits[3] = {o3_build_int(b, mlirIntegerTypeGet(b->context, 1), 0),
                              o3_build_float(b, nms->score, 0), zero};
  o3_for_t loop = {.lower = zero,
                   .upper = nms->num_boxes,
                   .step = o3_build_index(b, 1),
                   .num_carried = 3,
                   .inits = inits,
                   .body = search_body,
                   .context = nms};
  return o3_build_for(b, &loop, found);
}

static o3_status_t suppress_body(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                                 MlirValue *next) {
  const nms_t *nms = context;
  rectangle_t best = rectangle(b, nms, nms->best), other = rectangle(b, nms, index);
  MlirValue itself = o3_build_cmpi(b, O3_CMPI_EQ, index, nms->best);
  MlirValue dies = o3_either(b, itself, covers(b, nms, &best, &other));
  MlirValue no = o3_build_int(b, mlirIntegerTypeGet(b->context, 1), 0);
  MlirValue alive = o3_build_select(b, dies, no, o3_lw_extract(b, carried[0], 1, &index));
  next[0] = o3_lw_insert(b, alive, carried[0], 1, &index);
  return NULL;
}

/* Kills the box that was taken and what it covers: of no boxes where none was |found|. */
static o3_status_t kill_covered(o3_builder_t *b, nms_t *nms, MlirValue found, MlirValue *alive) {
  MlirValue zero = o3_build_index(b, 0);
  o3_for_t loop = {.lower = zero,
                   .upper = o3_build_select(b, found, nms->num_boxes, zero),
                   .step = o3_build_index(b, 1),
                   .num_carried = 1,
                   .inits = &nms->alive,
                   .body = suppress_body,
                   .context = nms};
  return o3_build_for(b, &loop, alive);
}

/* |list| with image, class and box at |count|: also when there is no such box, for then |count| stays. A step
 * begins with fewer entries than there is room for. Nothing is written in a branch: where a single step is
 * left and the sizes are known, bufferization would find a conflict. */
static MlirValue listed(o3_builder_t *b, const nms_t *nms, MlirValue list, MlirValue count) {
  const MlirValue numbers[3] = {nms->image, nms->class, nms->best};
  for (int i = 0; i < 3; ++i) {
    const MlirValue positions[2] = {count, o3_build_index(b, i)};
    MlirValue number =
        o3_build1(b, "arith.index_cast", mlirIntegerTypeGet(b->context, 64), O3_VALUES(numbers[i]));
    list = o3_lw_insert(b, number, list, 2, positions);
  }
  return list;
}

/* Carries: alive, list, count. */
static o3_status_t step_body(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                             MlirValue *next) {
  nms_t *nms = context;
  MlirValue found[3];
  (void)index;
  nms->alive = carried[0];
  O3_TRY(search(b, nms, found));
  nms->best = found[2];
  O3_TRY(kill_covered(b, nms, found[0], &next[0]));
  next[1] = listed(b, nms, carried[1], carried[2]);
  MlirValue more = o3_build2(b, "arith.addi", carried[2], o3_build_index(b, 1));
  next[2] = o3_build_select(b, found[0], more, carried[2]);
  return NULL;
}

/* ---- One class of one image ---- */

static o3_status_t alive_body(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                              MlirValue *next) {
  const nms_t *nms = context;
  MlirValue alive = o3_build_cmpf(b, O3_CMPF_OGT, score_of(b, nms, index), nms->least);
  next[0] = o3_lw_insert(b, alive, carried[0], 1, &index);
  return NULL;
}

/* State: alive, list, count. */
static o3_status_t class_body(o3_builder_t *b, void *context, const MlirValue *position, MlirValue *state) {
  nms_t *nms = context;
  MlirValue zero = o3_build_index(b, 0), one = o3_build_index(b, 1), results[3];
  nms->image = position[0];
  nms->class = position[1];
  o3_for_t fill = {.lower = zero,
                   .upper = nms->num_boxes,
                   .step = one,
                   .num_carried = 1,
                   .inits = state,
                   .body = alive_body,
                   .context = nms};
  O3_TRY(o3_build_for(b, &fill, &results[0]));
  state[0] = results[0];
  o3_for_t steps = {.lower = zero,
                    .upper = nms->limit,
                    .step = one,
                    .num_carried = 3,
                    .inits = state,
                    .body = step_body,
                    .context = nms};
  O3_TRY(o3_build_for(b, &steps, results));
  for (int i = 0; i < 3; ++i) state[i] = results[i];
  return NULL;
}

/* ---- The op ---- */

static MlirValue scalar(o3_builder_t *b, MlirValue tensor) {
  MlirValue none = {0};
  return o3_lw_extract(b, tensor, 0, &none);
}

/* min(max(wanted, 0), boxes) */
static MlirValue limit_of(o3_builder_t *b, MlirValue wanted, MlirValue num_boxes) {
  MlirValue index = o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(scalar(b, wanted)));
  MlirValue positive = o3_build2(b, "arith.maxsi", index, o3_build_index(b, 0));
  return o3_build2(b, "arith.minsi", positive, num_boxes);
}

/* Operands: boxes, scores, the most boxes of a class, overlap and score thresholds (scalars). */
o3_status_t o3_lower_nms(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  o3_shape_t scores;
  o3_builder_t *b = &lw->builder;
  o3_lw_operand_shape(lw, op, 1, &scores);
  nms_t nms = {.lw = lw,
               .centered = o3_op_bool(op, "centered", false),
               .box = o3_lw_old_element(op, 0),
               .score = o3_lw_old_element(op, 1),
               .boxes = operands[0],
               .scores = operands[1],
               .num_boxes = o3_lw_size(lw, scores.dims[2]),
               .overlap = scalar(b, operands[3]),
               .least = scalar(b, operands[4])};
  nms.limit = limit_of(b, operands[2], nms.num_boxes);
  const MlirValue sizes[2] = {o3_lw_size(lw, scores.dims[0]), o3_lw_size(lw, scores.dims[1])};
  MlirValue groups = o3_build2(b, "arith.muli", sizes[0], sizes[1]);
  MlirValue capacity = o3_build2(b, "arith.muli", groups, nms.limit);
  o3_shape_t boxes = {.rank = 1, .dims = {scores.dims[2]}};
  MlirType list = o3_tensor_type(2, (int64_t[]){-1, 3}, mlirIntegerTypeGet(lw->context, 64));
  MlirValue state[3] = {o3_lw_empty(lw, &boxes, mlirIntegerTypeGet(lw->context, 1)),
                        o3_build1(b, "tensor.empty", list, O3_VALUES(capacity)), o3_build_index(b, 0)};
  o3_nest_t nest = {.rank = 2, .sizes = sizes, .num_state = 3, .body = class_body, .context = &nms};
  O3_TRY(o3_lw_nest(b, &nest, state));
  results[0] = o3_lw_first(b, state[1], 0, state[2]);
  return NULL;
}
