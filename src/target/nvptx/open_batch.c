/* Types are changed in place: all readers of ops (nests, windows, attention) then see known sizes, on tensors
 * and on buffers, and nothing is built that would have to be taken away again. */
#include "target/nvptx/open_batch.h"

#include <string.h>

#include "target/cpu/nest.h"

/* The first |lead| dimensions are open; |view|: what a batch has of each. */
typedef struct o3_open_batch_value {
  MlirValue value;
  MlirType type;
  int lead;
  int64_t view[O3_IR_MAX_RANK];
} value_t;

/* ---- Values ---- */

static bool is_shaped(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  return mlirTypeIsARankedTensor(type) || mlirTypeIsAMemRef(type);
}

static value_t *find(const o3_open_batch_t *self, MlirValue value) {
  for (int i = 0; i < self->num_values; ++i) {
    if (mlirValueEqual(self->values[i].value, value)) return &self->values[i];
  }
  return NULL;
}

static bool is_cut(MlirOperation op) {
  return !mlirOperationIsNull(op) && (o3_op_is(op, "memref.subview") || o3_op_is(op, "tensor.extract_slice"));
}

static int count_leading(MlirType type) {
  int lead = 0;
  while (lead < o3_type_rank(type) && o3_type_dim(type, lead) < 0) ++lead;
  return lead;
}

/* A part of a buffer, of each batch the same: batch b of it is of the buffer's batch b. With a second open
 * dimension it would have to be whole, which sizes do not tell. What has no batches is no part of what has.
 */
static bool is_part(const value_t *v) {
  int64_t at[O3_IR_MAX_RANK], steps[O3_IR_MAX_RANK];
  MlirOperation def = o3_value_def(v->value);
  int rank = o3_type_rank(v->type);
  bool fits = o3_op_ints(def, "static_offsets", at, O3_IR_MAX_RANK) == rank &&
              o3_op_ints(def, "static_strides", steps, O3_IR_MAX_RANK) == rank;
  int lead = count_leading(mlirValueGetType(mlirOperationGetOperand(def, 0)));
  if (!v->lead && !lead) return true;
  return fits && v->lead == 1 && lead == 1 && at[0] == 0 && steps[0] == 1;
}

/* Only leading dimensions are open, and the memory is row by row, or a part of what is. Tensors are asked as
 * the buffers that they become. */
static bool read_value(value_t *v) {
  int rank = o3_type_rank(v->type);
  v->lead = count_leading(v->type);
  for (int p = 0; p < v->lead; ++p) v->view[p] = 1;
  for (int p = v->lead; p < rank; ++p) {
    v->view[p] = o3_type_dim(v->type, p);
    if (v->view[p] < 0) return false;
  }
  if (is_cut(o3_value_def(v->value))) return is_part(v);
  return !v->lead || !mlirTypeIsAMemRef(v->type) ||
         mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(v->type));
}

static bool is_reshape(MlirOperation op) {
  static const char *const NAMES[] = {"memref.expand_shape", "tensor.expand_shape", "memref.collapse_shape",
                                      "tensor.collapse_shape"};
  for (int i = 0; i < 4 && !mlirOperationIsNull(op); ++i) {
    if (o3_op_is(op, NAMES[i])) return true;
  }
  return false;
}

static bool is_view(MlirOperation op) { return is_reshape(op) || is_cut(op); }

static bool is_cast(MlirOperation op) {
  return !mlirOperationIsNull(op) && (o3_op_is(op, "memref.cast") || o3_op_is(op, "tensor.cast"));
}

/* With what it is a reshape or a part of, which stands before it. */
static bool add_value(o3_open_batch_t *self, MlirValue value) {
  if (!is_shaped(value) || find(self, value)) return true;
  MlirOperation def = o3_value_def(value);
  if (is_cast(def)) return false;
  if (is_view(def) && !add_value(self, mlirOperationGetOperand(def, 0))) return false;
  if (self->num_values == self->capacity) return false;
  value_t *v = &self->values[self->num_values++];
  *v = (value_t){.value = value, .type = mlirValueGetType(value)};
  return read_value(v);
}

static bool is_load(MlirOperation op) {
  return o3_op_is(op, "memref.load") || o3_op_is(op, "tensor.extract");
}

static MlirOperation first_of_body(MlirOperation generic) {
  return mlirBlockGetFirstOperation(mlirRegionGetFirstBlock(mlirOperationGetRegion(generic, 0)));
}

static bool add_values(o3_open_batch_t *self, MlirOperation generic) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(generic); ++i)
    if (!add_value(self, mlirOperationGetOperand(generic, i))) return false;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(generic); ++i)
    if (!add_value(self, mlirOperationGetResult(generic, i))) return false;
  MlirOperation op = first_of_body(generic);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op))
    if (is_load(op) && !add_value(self, mlirOperationGetOperand(op, 0))) return false;
  return true;
}

/* ---- Reshapes ---- */

/* What a batch has of the dimensions of |many| that |reshape| joins into one. */
static void join(MlirOperation reshape, const value_t *many, int64_t *joined) {
  MlirAttribute groups = o3_op_attr(reshape, "reassociation");
  int at = 0;
  for (int g = 0; g < mlirArrayAttrGetNumElements(groups); ++g) {
    joined[g] = 1;
    for (intptr_t i = mlirArrayAttrGetNumElements(mlirArrayAttrGetElement(groups, g)); i > 0; --i)
      joined[g] *= many->view[at++];
  }
}

/* A joined dimension that is opened up says what a batch has of it; sources stand before their reshapes. */
static void open_joined(o3_open_batch_t *self) {
  for (int i = self->num_values - 1; i >= 0; --i) {
    const value_t *to = &self->values[i];
    MlirOperation def = o3_value_def(to->value);
    value_t *from = is_reshape(def) ? find(self, mlirOperationGetOperand(def, 0)) : NULL;
    if (from && o3_type_rank(from->type) < o3_type_rank(to->type)) join(def, to, from->view);
  }
}

static bool close_joined(o3_open_batch_t *self) {
  for (int i = 0; i < self->num_values; ++i) {
    value_t *to = &self->values[i];
    MlirOperation def = o3_value_def(to->value);
    const value_t *from = is_reshape(def) ? find(self, mlirOperationGetOperand(def, 0)) : NULL;
    if (!from) continue;
    int64_t joined[O3_IR_MAX_RANK];
    bool collapses = o3_type_rank(from->type) > o3_type_rank(to->type);
    join(def, collapses ? from : to, joined);
    if (collapses) memcpy(to->view, joined, sizeof(int64_t) * (size_t)to->lead);
    const value_t *few = collapses ? to : from;
    for (int p = 0; p < o3_type_rank(few->type); ++p)
      if (few->view[p] != joined[p]) return false;
  }
  return true;
}

/* ---- Loops ---- */

/* The loops over batches of an op, outermost first, and how often they turn in one. */
typedef struct batch_loops {
  int count, loops[O3_IR_MAX_RANK];
  int64_t sizes[O3_IR_MAX_RANK];
} batch_loops_t;

static bool is_batch_loop(const batch_loops_t *b, int dim) {
  for (int i = 0; i < b->count; ++i) {
    if (b->loops[i] == dim) return true;
  }
  return false;
}

static bool read_loops(const o3_nest_t *nest, const o3_nest_operand_t *operand, const value_t *v,
                       batch_loops_t *b) {
  bool first = !b->count;
  if (!first && b->count != v->lead) return false;
  b->count = v->lead;
  for (int p = 0; p < v->lead; ++p) {
    if (!mlirAffineExprIsADim(operand->all_exprs[p])) return false;
    int loop = (int)mlirAffineDimExprGetPosition(operand->all_exprs[p]);
    if (first) b->loops[p] = loop, b->sizes[p] = v->view[p];
    if (b->loops[p] != loop || b->sizes[p] != v->view[p] || nest->reduction[loop]) return false;
  }
  return true;
}

static bool leaves_alone(const batch_loops_t *b, const o3_nest_operand_t *operand, int lead) {
  for (int p = lead; p < operand->num_terms; ++p) {
    for (int i = 0; i < b->count; ++i)
      if (mlirAffineExprIsFunctionOfDim(operand->all_exprs[p], b->loops[i])) return false;
  }
  return true;
}

static bool check_operands(const o3_open_batch_t *self, const o3_nest_t *nest, batch_loops_t *b) {
  for (int i = 0; i < nest->num_operands; ++i) {
    const value_t *v = find(self, nest->operands[i].value);
    if (v && v->lead && !read_loops(nest, &nest->operands[i], v, b)) return false;
    if (i >= nest->num_inputs && !(v && v->lead)) return false;
  }
  for (int i = 0; i < nest->num_operands; ++i) {
    const value_t *v = find(self, nest->operands[i].value);
    if (!leaves_alone(b, &nest->operands[i], v ? v->lead : 0)) return false;
  }
  return true;
}

/* ---- Positions in bodies ---- */

/* The loop that |value| is the position of; -1: of none. */
static int position_of(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_op_is(def, "linalg.index") ? (int)o3_op_int(def, "dim", -1) : -1;
}

static bool check_load(const o3_open_batch_t *self, const batch_loops_t *b, MlirOperation load) {
  const value_t *v = find(self, mlirOperationGetOperand(load, 0));
  if (!v->lead) return true;
  if (v->lead != b->count) return false;
  for (int p = 0; p < v->lead; ++p) {
    if (position_of(mlirOperationGetOperand(load, 1 + p)) != b->loops[p] || v->view[p] != b->sizes[p])
      return false;
  }
  return true;
}

/* A batch's position serves only to load what is the batch's. */
static bool check_position(const o3_open_batch_t *self, const batch_loops_t *b, MlirOperation index) {
  MlirValue position = mlirOperationGetResult(index, 0);
  if (!is_batch_loop(b, position_of(position))) return true;
  MlirOpOperand use = mlirValueGetFirstUse(position);
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    const value_t *v = is_load(user) ? find(self, mlirOperationGetOperand(user, 0)) : NULL;
    int place = (int)mlirOpOperandGetOperandNumber(use) - 1;
    if (!v || place >= v->lead) return false;
  }
  return true;
}

static bool check_body(const o3_open_batch_t *self, const batch_loops_t *b, MlirOperation generic) {
  MlirOperation op = first_of_body(generic);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (mlirOperationGetNumRegions(op)) return false;
    if (is_load(op) && !check_load(self, b, op)) return false;
    if (o3_op_is(op, "linalg.index") && !check_position(self, b, op)) return false;
  }
  return true;
}

static bool check_op(const o3_open_batch_t *self, MlirOperation op) {
  o3_nest_t *nest = O3_ARENA_NEW(self->arena, o3_nest_t);
  batch_loops_t loops = {0};
  return nest && o3_nest_read_any(op, nest) && check_operands(self, nest, &loops) &&
         check_body(self, &loops, op);
}

/* ---- Types ---- */

static MlirType batch_type(const value_t *v) {
  int rank = o3_type_rank(v->type);
  MlirType element = o3_type_element(v->type);
  if (mlirTypeIsAMemRef(v->type))
    return mlirMemRefTypeGet(element, rank, v->view, mlirMemRefTypeGetLayout(v->type),
                             mlirMemRefTypeGetMemorySpace(v->type));
  return mlirRankedTensorTypeGet(rank, v->view, element, mlirRankedTensorTypeGetEncoding(v->type));
}

static bool read_all(o3_open_batch_t *self, int num_ops, const MlirOperation *ops) {
  bool open = false;
  for (int i = 0; i < num_ops; ++i)
    if (!add_values(self, ops[i])) return false;
  open_joined(self);
  if (!close_joined(self)) return false;
  for (int i = 0; i < self->num_values; ++i) open |= self->values[i].lead > 0;
  for (int i = 0; i < num_ops && open; ++i)
    if (!check_op(self, ops[i])) return false;
  return open;
}

bool o3_open_batch_begin(o3_open_batch_t *self, o3_arena_t *arena, int num_ops, const MlirOperation *ops) {
  enum { VALUES = 256 };
  *self = (o3_open_batch_t){.arena = arena, .capacity = VALUES};
  self->values = O3_ARENA_ARRAY(arena, value_t, VALUES);
  if (!self->values || !read_all(self, num_ops, ops)) return false;
  for (int i = 0; i < self->num_values; ++i) {
    const value_t *v = &self->values[i];
    if (v->lead) mlirValueSetType(v->value, batch_type(v));
  }
  return true;
}

int64_t o3_open_batch_unit(const o3_open_batch_t *self, MlirValue value) {
  const value_t *v = find(self, value);
  int64_t count = v && v->lead ? 1 : 0;
  for (int p = 0; v && p < o3_type_rank(v->type); ++p) count *= v->view[p];
  return count;
}

void o3_open_batch_end(o3_open_batch_t *self) {
  for (int i = 0; i < self->num_values; ++i) mlirValueSetType(self->values[i].value, self->values[i].type);
}
