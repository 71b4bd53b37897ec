/* The op's body clamps each position and selects; by rows, that is
 *
 *     scf.parallel (positions but the last of a row and its lanes)
 *       if the row is inside: border, copy, border; else border
 *
 * Anything that differs from the form that the lowering builds is left to the general loops.
 */
#include "target/cpu/halo.h"

#include "schedule/cpu_schedule.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/nest.h"
#include "target/cpu/vector_body.h"

typedef struct halo {
  o3_nest_t nest;
  MlirValue from, to, border; /* memrefs; a scalar */
  int rank, from_rank;        /* of |to| and |from| */
  int dims[O3_IR_MAX_RANK];   /* for each dimension of |from|: that of |to| it is read along, or -1: at 0 */
  int64_t lows[O3_IR_MAX_RANK];
  bool clamped[O3_IR_MAX_RANK];
  MlirValue offsets[O3_IR_MAX_RANK]; /* in the old body: the position before it is clamped */
  int lanes;                         /* elements of a vector; 1: scalars */
  MlirValue ivs[O3_IR_MAX_RANK];     /* of |to| */
  int64_t width;                     /* lanes of a pixel */
} halo_t;

/* ---- Recognition ---- */

static bool is_zero(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def) || !o3_op_is(def, "arith.constant")) return false;
  MlirAttribute attr = o3_op_attr(def, "value");
  return mlirAttributeIsAInteger(attr) && mlirIntegerAttrGetValueInt(attr) == 0;
}

static bool is_def(MlirValue value, const char *name, MlirOperation *def) {
  *def = o3_value_def(value);
  return !mlirOperationIsNull(*def) && o3_op_is(*def, name);
}

/* linalg.index d, or that less a constant, perhaps clamped. */
static bool read_position(halo_t *self, int r, MlirValue value) {
  MlirOperation def;
  self->dims[r] = -1;
  if (is_zero(value)) return true;
  if (is_def(value, "arith.maxsi", &def) && is_zero(mlirOperationGetOperand(def, 1))) {
    if (!is_def(mlirOperationGetOperand(def, 0), "arith.minsi", &def)) return false;
    value = mlirOperationGetOperand(def, 0);
    self->clamped[r] = true;
    self->offsets[r] = value;
  }
  if (is_def(value, "arith.subi", &def)) {
    MlirOperation low;
    if (!is_def(mlirOperationGetOperand(def, 1), "arith.constant", &low)) return false;
    self->lows[r] = mlirIntegerAttrGetValueInt(o3_op_attr(low, "value"));
    value = mlirOperationGetOperand(def, 0);
  }
  if (!is_def(value, "linalg.index", &def) || self->lows[r] < 0) return false;
  self->dims[r] = (int)o3_op_int(def, "dim", -1);
  return true;
}

/* The condition is that each clamped position is below a limit: counts those found. */
static bool read_condition(const halo_t *self, MlirValue value, int *found) {
  MlirOperation def;
  if (is_def(value, "arith.andi", &def))
    return read_condition(self, mlirOperationGetOperand(def, 0), found) &&
           read_condition(self, mlirOperationGetOperand(def, 1), found);
  if (!is_def(value, "arith.cmpi", &def) || o3_op_int(def, "predicate", -1) != O3_CMPI_ULT) return false;
  for (int r = 0; r < self->from_rank; ++r) {
    if (self->clamped[r] && mlirValueEqual(mlirOperationGetOperand(def, 0), self->offsets[r])) {
      ++*found;
      return true;
    }
  }
  return false;
}

static bool read_load(halo_t *self, MlirOperation load) {
  self->from = mlirOperationGetOperand(load, 0);
  self->from_rank = o3_type_rank(mlirValueGetType(self->from));
  for (int r = 0; r < self->from_rank; ++r) {
    if (!read_position(self, r, mlirOperationGetOperand(load, 1 + r))) return false;
  }
  int last = self->from_rank - 1;
  bool has_one_lane = self->dims[last] < 0 && o3_type_dim(mlirValueGetType(self->to), self->rank - 1) == 1;
  return self->from_rank >= 2 && (has_one_lane || self->dims[last] == self->rank - 1) &&
         !self->clamped[last] && self->dims[last - 1] == self->rank - 2;
}

static bool match(MlirOperation op, halo_t *self) {
  MlirOperation select, load, border;
  int found = 0, clamped = 0;
  if (!o3_nest_read_any(op, &self->nest) || self->nest.num_operands != 1) return false;
  self->to = self->nest.operands[0].value;
  self->rank = o3_type_rank(mlirValueGetType(self->to));
  MlirAttribute map = mlirArrayAttrGetElement(o3_op_attr(op, "indexing_maps"), 0);
  if (self->rank < 2 || !mlirAffineMapIsIdentity(mlirAffineMapAttrGetValue(map))) return false;
  if (!is_def(mlirOperationGetOperand(mlirBlockGetTerminator(self->nest.body), 0), "arith.select", &select))
    return false;
  self->border = mlirOperationGetOperand(select, 2);
  if (!is_def(self->border, "arith.constant", &border)) return false;
  MlirValue inside = mlirOperationGetOperand(select, 1);
  bool loads = is_def(inside, "memref.load", &load) || is_def(inside, "tensor.extract", &load);
  if (!loads || !read_load(self, load)) return false;
  for (int r = 0; r < self->from_rank; ++r) clamped += self->clamped[r];
  self->width = o3_type_dim(mlirValueGetType(self->to), self->rank - 1);
  return read_condition(self, mlirOperationGetOperand(select, 0), &found) && found == clamped &&
         self->width > 0;
}

bool o3_halo_read(MlirOperation op, o3_halo_t *halo) {
  static _Thread_local halo_t self;
  self = (halo_t){.rank = 0};
  if (!match(op, &self) || self.from_rank != self.rank) return false;
  *halo = (o3_halo_t){.from = self.from, .rank = self.rank};
  MlirAttribute border = o3_op_attr(o3_value_def(self.border), "value");
  for (int r = 0; r < self.rank; ++r) {
    bool same = self.dims[r] == r || (self.dims[r] < 0 && o3_type_dim(mlirValueGetType(self.to), r) == 1);
    if (!same) return false;
    halo->lows[r] = self.lows[r];
    halo->clamped[r] = self.clamped[r];
  }
  return mlirAttributeIsAFloat(border) && mlirFloatAttrGetValueDouble(border) == 0;
}

/* ---- Emission ---- */

static MlirValue dim_of(o3_builder_t *b, MlirValue memref, int dim) {
  int64_t size = o3_type_dim(mlirValueGetType(memref), dim);
  if (size >= 0) return o3_build_index(b, size);
  return o3_build1(b, "memref.dim", o3_build_index_type(b), O3_VALUES(memref, o3_build_index(b, dim)));
}

static void store(halo_t *self, o3_builder_t *b, MlirValue value, MlirValue pixel, MlirValue lane) {
  MlirValue operands[O3_IR_MAX_RANK + 2] = {value, self->to};
  for (int i = 0; i < self->rank - 2; ++i) operands[2 + i] = self->ivs[i];
  operands[self->rank] = pixel;
  operands[self->rank + 1] = lane;
  o3_build0(b, self->lanes > 1 ? "vector.store" : "memref.store", self->rank + 2, operands);
}

static MlirValue vector_or_scalar(halo_t *self, o3_builder_t *b, MlirValue scalar) {
  return self->lanes > 1 ? o3_vector_broadcast(b, self->lanes, scalar) : scalar;
}

static o3_status_t border_pixel(o3_builder_t *b, void *context, MlirValue pixel, const MlirValue *carried,
                                MlirValue *next) {
  halo_t *self = context;
  (void)carried, (void)next;
  MlirValue value = vector_or_scalar(self, b, self->border);
  for (int64_t lane = 0; lane < self->width; lane += self->lanes)
    store(self, b, value, pixel, o3_build_index(b, lane));
  return NULL;
}

/* Position in |from| along its dimension |r| for the position |at| in |to|. */
static MlirValue position(const halo_t *self, o3_builder_t *b, int r, MlirValue at) {
  return self->lows[r] ? o3_build2(b, "arith.subi", at, o3_build_index(b, self->lows[r])) : at;
}

static o3_status_t copy_pixel(o3_builder_t *b, void *context, MlirValue pixel, const MlirValue *carried,
                              MlirValue *next) {
  halo_t *self = context;
  MlirValue operands[O3_IR_MAX_RANK + 1] = {self->from}, zero = o3_build_index(b, 0);
  MlirType element = o3_type_element(mlirValueGetType(self->from));
  int last = self->from_rank - 1;
  (void)carried, (void)next;
  for (int r = 0; r < last - 1; ++r)
    operands[1 + r] = self->dims[r] < 0 ? zero : position(self, b, r, self->ivs[self->dims[r]]);
  operands[last] = position(self, b, last - 1, pixel);
  for (int64_t lane = 0; lane < self->width; lane += self->lanes) {
    operands[last + 1] = o3_build_index(b, lane);
    MlirType type = self->lanes > 1 ? o3_vector_type(self->lanes, element) : element;
    MlirValue value = o3_build1(b, self->lanes > 1 ? "vector.load" : "memref.load", type, last + 2, operands);
    store(self, b, value, pixel, operands[last + 1]);
  }
  return NULL;
}

static o3_status_t run(halo_t *self, o3_builder_t *b, MlirValue from, MlirValue to, o3_for_body_fn_t body) {
  o3_for_t loop = {.lower = from, .upper = to, .step = o3_build_index(b, 1), .body = body, .context = self};
  return o3_build_for(b, &loop, NULL);
}

static o3_status_t inside_row(o3_builder_t *b, void *context, MlirValue *yields) {
  halo_t *self = context;
  int r = self->from_rank - 2;
  MlirValue zero = o3_build_index(b, 0), width = dim_of(b, self->to, self->rank - 2);
  MlirValue start = o3_build2(b, "arith.minsi", o3_build_index(b, self->lows[r]), width);
  MlirValue end = o3_build2(b, "arith.addi", o3_build_index(b, self->lows[r]), dim_of(b, self->from, r));
  end = o3_build2(b, "arith.minsi", end, width);
  (void)yields;
  O3_TRY(run(self, b, zero, start, border_pixel));
  O3_TRY(run(self, b, start, end, copy_pixel));
  return run(self, b, end, width, border_pixel);
}

static o3_status_t outside_row(o3_builder_t *b, void *context, MlirValue *yields) {
  halo_t *self = context;
  (void)yields;
  return run(self, b, o3_build_index(b, 0), dim_of(b, self->to, self->rank - 2), border_pixel);
}

static o3_status_t build_row(halo_t *self, o3_builder_t *b) {
  MlirValue inside = {0};
  for (int r = 0; r < self->from_rank - 2; ++r) {
    if (!self->clamped[r]) continue;
    MlirValue at = position(self, b, r, self->ivs[self->dims[r]]);
    MlirValue fits = o3_build_cmpi(b, O3_CMPI_ULT, at, dim_of(b, self->from, r));
    inside = mlirValueIsNull(inside) ? fits : o3_build2(b, "arith.andi", inside, fits);
  }
  if (mlirValueIsNull(inside)) return inside_row(b, self, NULL);
  o3_if_t branch = {.condition = inside, .then_body = inside_row, .else_body = outside_row, .context = self};
  return o3_build_if(b, &branch, NULL);
}

/* ---- Schedule ---- */

static o3_status_t read_schedule(const o3_machine_t *machine, MlirOperation op, const halo_t *self,
                                 o3_schedule_border_t *schedule) {
  int bits = o3_type_bits(o3_type_element(mlirValueGetType(self->to)));
  *schedule = o3_schedule_border(machine, self->width, bits);
  O3_TRY(o3_schedule_read(op, O3_SCHEDULE_FAMILY_BORDER, schedule));
  if (self->width % schedule->lanes == 0) return NULL;
  return o3_schedule_refuse(op, "lanes", schedule->lanes, "a divisor of a pixel's elements");
}

o3_status_t o3_halo_schedule(o3_pass_env_t *env, MlirOperation op, bool *done) {
  static _Thread_local halo_t self;
  o3_schedule_border_t schedule;
  self = (halo_t){.rank = 0};
  *done = match(op, &self);
  if (!*done) return NULL;
  O3_TRY(read_schedule(env->machine, op, &self, &schedule));
  o3_op_attr_set(op, O3_SCHEDULE_ATTR, o3_schedule_attr(env->context, O3_SCHEDULE_FAMILY_BORDER, &schedule));
  return NULL;
}

o3_status_t o3_halo_emit(o3_pass_env_t *env, MlirOperation op, bool *done) {
  static _Thread_local halo_t self;
  MlirValue sizes[O3_IR_MAX_RANK], steps[O3_IR_MAX_RANK];
  self = (halo_t){.rank = 0};
  *done = mlirOperationGetNumResults(op) == 0 && match(op, &self);
  if (!*done) return NULL;
  o3_schedule_border_t schedule;
  O3_TRY(read_schedule(env->machine, op, &self, &schedule));
  self.lanes = (int)schedule.lanes;
  o3_builder_t b = o3_builder_before(op);
  /* The constant may lie in the body, which goes. */
  MlirOperation border = mlirOperationClone(o3_value_def(self.border));
  mlirBlockInsertOwnedOperationBefore(b.block, op, border);
  self.border = mlirOperationGetResult(border, 0);
  int rows = self.rank - 2;
  int64_t pixels = o3_type_dim(mlirValueGetType(self.to), rows);
  for (int i = 0; i < rows; ++i) sizes[i] = dim_of(&b, self.to, i), steps[i] = o3_build_index(&b, 1);
  int64_t work = (pixels < 0 ? 64 : pixels) * (self.width / self.lanes);
  o3_builder_t in = rows ? o3_cpu_parallel(&b, rows, sizes, steps, work, self.ivs) : b;
  O3_TRY(build_row(&self, &in));
  mlirOperationDestroy(op);
  return NULL;
}
