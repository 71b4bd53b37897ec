/* An op of the body becomes one op where its operands are the same for a group, and one for each element
 * elsewhere. Ops are taken one by one and not elements, so the loads of all elements stand together and are
 * in flight at once. */
#include "target/nvptx/lane_body.h"

#include "base/arena.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/loops.h"

/* ---- Memory ---- */

static int64_t bytes_of(MlirType element, int count) { return (int64_t)count * (o3_type_bits(element) / 8); }

/* At most a load's 16 bytes. */
static MlirAttribute alignment(o3_builder_t *b, MlirType element, int count) {
  int64_t bytes = bytes_of(element, count);
  return o3_attr_i64(b->context, bytes < 16 ? bytes : 16);
}

/* Whether |count| elements from a multiple of |count| on can be loaded at once from a buffer of |type| whose
 * last index they follow. */
static bool are_aligned(MlirType type, int count) {
  int64_t strides[O3_IR_MAX_RANK], offset;
  int rank = o3_type_rank(type);
  if (o3_type_bits(o3_type_element(type)) < 8 || !rank) return false;
  if (!mlirLogicalResultIsSuccess(mlirMemRefTypeGetStridesAndOffset(type, strides, &offset))) return false;
  if (mlirShapedTypeIsDynamicStrideOrOffset(offset) || offset % count || strides[rank - 1] != 1) return false;
  for (int i = 0; i + 1 < rank; ++i) {
    bool known = !mlirShapedTypeIsDynamicStrideOrOffset(strides[i]);
    if (o3_type_dim(type, i) != 1 && (!known || strides[i] % count)) return false;
  }
  return true;
}

static MlirType vector_of(MlirType element, int count) {
  return mlirVectorTypeGet(1, (int64_t[]){count}, element);
}

/* Booleans have a byte each; a vector of them would have bits in memory. */
static MlirValue as_bytes(o3_builder_t *b, MlirValue memref) {
  int64_t sizes[O3_IR_MAX_RANK];
  MlirType type = mlirValueGetType(memref);
  if (!o3_type_is_bool(o3_type_element(type))) return memref;
  int rank = o3_type_rank(type);
  for (int i = 0; i < rank; ++i) sizes[i] = mlirShapedTypeGetDimSize(type, i);
  MlirType bytes = mlirMemRefTypeGet(mlirIntegerTypeGet(b->context, 8), rank, sizes,
                                     mlirMemRefTypeGetLayout(type), mlirMemRefTypeGetMemorySpace(type));
  return o3_build1(b, "builtin.unrealized_conversion_cast", bytes, O3_VALUES(memref));
}

MlirValue o3_lanes_load(o3_builder_t *b, MlirValue memref, int num_indices, const MlirValue *indices,
                        int count) {
  MlirType wanted = o3_type_element(mlirValueGetType(memref));
  MlirValue operands[1 + O3_IR_MAX_RANK] = {as_bytes(b, memref)};
  MlirType element = o3_type_element(mlirValueGetType(operands[0]));
  for (int i = 0; i < num_indices; ++i) operands[1 + i] = indices[i];
  MlirValue loaded = o3_build1_attrs(b, "vector.load", vector_of(element, count), 1 + num_indices, operands,
                                     O3_ATTRS({"alignment", alignment(b, element, count)}));
  if (mlirTypeEqual(element, wanted)) return loaded;
  return o3_build1(b, "arith.trunci", vector_of(wanted, count), O3_VALUES(loaded));
}

void o3_lanes_split(o3_builder_t *b, MlirValue vector, int count, MlirValue *elements) {
  MlirType element = o3_type_element(mlirValueGetType(vector));
  for (int64_t i = 0; i < count; ++i)
    elements[i] = o3_build1_attrs(b, "vector.extract", element, O3_VALUES(vector),
                                  O3_ATTRS({"static_position", o3_attr_ints(b->context, 1, &i)}));
}

void o3_lanes_store(o3_builder_t *b, MlirValue memref, MlirValue index, int count,
                    const MlirValue *elements) {
  if (count == 1) {
    o3_build0(b, "memref.store", O3_VALUES(elements[0], memref, index));
    return;
  }
  MlirType given = o3_type_element(mlirValueGetType(memref));
  MlirValue vector = o3_build1(b, "vector.from_elements", vector_of(given, count), count, elements);
  memref = as_bytes(b, memref);
  MlirType element = o3_type_element(mlirValueGetType(memref));
  if (!mlirTypeEqual(element, given))
    vector = o3_build1(b, "arith.extui", vector_of(element, count), O3_VALUES(vector));
  const o3_op_spec_t spec = {.name = "vector.store",
                             .num_operands = 3,
                             .operands = (MlirValue[]){vector, memref, index},
                             .num_attrs = 1,
                             .attrs = (o3_attr_t[]){{"alignment", alignment(b, element, count)}}};
  o3_build(b, &spec);
}

/* ---- Fast instructions ---- */

static bool yields_f16(const o3_nest_t *nest) {
  for (int i = nest->num_inputs; i < nest->num_operands; ++i) {
    if (!mlirTypeIsAF16(mlirValueGetType(mlirBlockGetArgument(nest->body, i)))) return false;
  }
  return true;
}

/* Rounding to f16 takes 2^-11 of a value; these err by 2^-21, of bodies without jumps and differences, which
 * would show it. */
static o3_status_t use_fast(MlirOperation op, void *context) {
  (void)context;
  if (!mlirOperationGetNumResults(op)) return NULL;
  MlirValue result = mlirOperationGetResult(op, 0);
  MlirType type = mlirValueGetType(result);
  if (!mlirTypeIsAF32(type)) return NULL;
  if (o3_op_is(op, "arith.divf"))
    o3_op_attr_set(op, "fastmath",
                   o3_attr_parse(mlirOperationGetContext(op), "#arith.fastmath<contract,arcp,afn>"));
  if (!o3_op_is(op, "math.exp")) return NULL;
  o3_builder_t b = o3_builder_before(op);
  MlirValue power = o3_build2(&b, "arith.mulf", mlirOperationGetOperand(op, 0),
                              o3_build_float(&b, type, 1.4426950408889634));
  MlirValue fast =
      o3_build1_attrs(&b, "llvm.inline_asm", type, O3_VALUES(power),
                      O3_ATTRS({"asm_string", o3_attr_string(b.context, "ex2.approx.ftz.f32 $0, $1;")},
                               {"constraints", o3_attr_string(b.context, "=f,f")}));
  mlirValueReplaceAllUsesOfWith(result, fast);
  mlirOperationDestroy(op);
  return NULL;
}

/* Positions are numbers too, and have to be exact; a jump or a difference makes an error larger. */
static o3_status_t find_exact(MlirOperation op, void *found) {
  static const char *const NAMES[] = {"linalg.index",   "math.floor", "math.ceil",    "math.round",
                                      "math.roundeven", "math.trunc", "arith.fptosi", "arith.fptoui",
                                      "arith.remf",     "arith.cmpf", "arith.subf"};
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i) *(bool *)found |= o3_op_is(op, NAMES[i]);
  return NULL;
}

o3_status_t o3_lanes_relax(const o3_nest_t *nest) {
  bool is_exact = false;
  O3_TRY(o3_walk(nest->op, o3_loops_relax, (void *)(uintptr_t)nest));
  O3_TRY(o3_walk(nest->op, find_exact, &is_exact));
  return yields_f16(nest) && !is_exact ? o3_walk(nest->op, use_fast, NULL) : NULL;
}

/* ---- Which loads are scattered ---- */

static bool is_index(MlirValue value, int dim) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_op_is(def, "linalg.index") && o3_op_int(def, "dim", -1) == dim;
}

typedef struct scatter {
  const o3_nest_t *nest;
  int dim, count;
  o3_ptr_map_t *moving; /* values of the body that may differ between elements along the dim */
  bool found;
} scatter_t;

static bool is_moving_argument(const scatter_t *self, MlirValue value) {
  const o3_nest_operand_t *operand = &self->nest->operands[mlirBlockArgumentGetArgNumber(value)];
  return operand->is_memref && o3_nest_uses(operand, self->dim);
}

static bool is_moving(const scatter_t *self, MlirValue value) {
  bool argument = mlirValueIsABlockArgument(value);
  MlirBlock block = argument ? mlirBlockArgumentGetOwner(value) : mlirOperationGetBlock(o3_value_def(value));
  if (argument && mlirBlockEqual(block, self->nest->body)) return is_moving_argument(self, value);
  if (mlirBlockEqual(block, self->nest->body)) return o3_ptr_map_get(self->moving, value.ptr) != NULL;
  return o3_cpu_is_inside(mlirBlockGetParentOperation(block), self->nest->op);
}

/* Ops of the body in order; what lies in regions of theirs may be anything. */
static o3_status_t find_moving(scatter_t *self) {
  MlirOperation op = mlirBlockGetFirstOperation(self->nest->body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    bool moves = mlirOperationGetNumRegions(op) > 0 ||
                 (o3_op_is(op, "linalg.index") && o3_op_int(op, "dim", -1) == self->dim);
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && !moves; ++i)
      moves = is_moving(self, mlirOperationGetOperand(op, i));
    for (intptr_t i = 0; i < mlirOperationGetNumResults(op) && moves; ++i) {
      if (!o3_ptr_map_put(self->moving, mlirOperationGetResult(op, i).ptr, self))
        return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
    }
  }
  return NULL;
}

static o3_status_t find_scatter(MlirOperation op, void *context) {
  scatter_t *self = context;
  int last = (int)mlirOperationGetNumOperands(op) - 1;
  if (!o3_op_is(op, "memref.load") || last < 1) return NULL;
  MlirValue index = mlirOperationGetOperand(op, last);
  bool outer = false;
  for (int i = 0; i < last; ++i) outer |= is_moving(self, mlirOperationGetOperand(op, i));
  bool neighbours = is_index(index, self->dim) &&
                    are_aligned(mlirValueGetType(mlirOperationGetOperand(op, 0)), self->count);
  self->found |= outer || (is_moving(self, index) && !neighbours);
  return NULL;
}

o3_status_t o3_lanes_scatter(const o3_nest_t *nest, int dim, int count, bool *scattered) {
  o3_arena_t *scratch = o3_arena_create();
  O3_TRY_ALLOC(scratch);
  scatter_t self = {.nest = nest, .dim = dim, .count = count, .moving = o3_ptr_map_create(scratch)};
  o3_status_t status =
      self.moving ? find_moving(&self) : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  if (!status) status = o3_walk(nest->op, find_scatter, &self);
  *scattered = self.found;
  o3_arena_destroy(scratch);
  return status;
}

/* ---- Loads behind loads ---- */

typedef struct followed {
  const o3_nest_t *nest;
  o3_ptr_map_t *loaded; /* values of the body that come from memory */
  bool found;
} followed_t;

static bool is_loaded(const followed_t *self, MlirValue value) {
  if (mlirValueIsABlockArgument(value)) return true;
  return o3_ptr_map_get(self->loaded, value.ptr) != NULL;
}

static o3_status_t find_loads(followed_t *self) {
  MlirOperation op = mlirBlockGetFirstOperation(self->nest->body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    bool load = o3_op_is(op, "memref.load"), moved = load;
    for (intptr_t i = load; i < mlirOperationGetNumOperands(op); ++i) {
      bool loaded = is_loaded(self, mlirOperationGetOperand(op, i));
      self->found |= load && loaded;
      moved |= loaded;
    }
    for (intptr_t i = 0; i < mlirOperationGetNumResults(op) && moved; ++i) {
      if (!o3_ptr_map_put(self->loaded, mlirOperationGetResult(op, i).ptr, self))
        return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
    }
  }
  return NULL;
}

o3_status_t o3_lanes_follow(const o3_nest_t *nest, bool *follows) {
  o3_arena_t *scratch = o3_arena_create();
  O3_TRY_ALLOC(scratch);
  followed_t self = {.nest = nest, .loaded = o3_ptr_map_create(scratch)};
  o3_status_t status =
      self.loaded ? find_loads(&self) : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  *follows = self.found;
  o3_arena_destroy(scratch);
  return status;
}

/* ---- Ops ---- */

typedef struct clones {
  const o3_lanes_t *lanes;
  o3_builder_t *b;
  o3_nest_cloner_t each[O3_LANES_MOST];
} clones_t;

static bool same_operand(const clones_t *self, int group, MlirValue operand) {
  MlirValue first = o3_nest_cloned(&self->each[group], operand);
  for (int l = 1; l < self->lanes->vector; ++l) {
    if (!mlirValueEqual(first, o3_nest_cloned(&self->each[group + l], operand))) return false;
  }
  return true;
}

/* Whether the first |count| operands are the same for the group. */
static bool is_uniform(const clones_t *self, int group, MlirOperation op, int count) {
  for (int i = 0; i < count; ++i) {
    if (!same_operand(self, group, mlirOperationGetOperand(op, i))) return false;
  }
  return true;
}

static o3_status_t clone_once(clones_t *self, int group, MlirOperation op) {
  O3_TRY(o3_nest_clone_op(&self->each[group], self->b, op));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i) {
    MlirValue result = mlirOperationGetResult(op, i), made = o3_nest_cloned(&self->each[group], result);
    for (int l = 1; l < self->lanes->vector; ++l)
      O3_TRY(o3_nest_clone_value(&self->each[group + l], result, made));
  }
  return NULL;
}

/* A load whose last index alone moves, by one from element to element. */
static bool is_vector_load(const clones_t *self, int group, MlirOperation op) {
  int last = (int)mlirOperationGetNumOperands(op) - 1;
  if (!o3_op_is(op, "memref.load") || last < 1 ||
      !is_index(mlirOperationGetOperand(op, last), self->lanes->dim))
    return false;
  return is_uniform(self, group, op, last) &&
         are_aligned(mlirValueGetType(mlirOperationGetOperand(op, 0)), self->lanes->vector);
}

static o3_status_t load_vector(clones_t *self, int group, MlirOperation op) {
  MlirValue operands[1 + O3_IR_MAX_RANK], elements[O3_LANES_MOST];
  int count = (int)mlirOperationGetNumOperands(op), vector = self->lanes->vector;
  for (int i = 0; i < count; ++i)
    operands[i] = o3_nest_cloned(&self->each[group], mlirOperationGetOperand(op, i));
  MlirValue loaded = o3_lanes_load(self->b, operands[0], count - 1, operands + 1, vector);
  o3_lanes_split(self->b, loaded, vector, elements);
  for (int l = 0; l < vector; ++l)
    O3_TRY(o3_nest_clone_value(&self->each[group + l], mlirOperationGetResult(op, 0), elements[l]));
  return NULL;
}

static o3_status_t clone_group(clones_t *self, int group, MlirOperation op) {
  int operands = (int)mlirOperationGetNumOperands(op), vector = self->lanes->vector;
  bool plain = !mlirOperationGetNumRegions(op) && !o3_op_is(op, "linalg.index");
  if (vector > 1 && plain && is_uniform(self, group, op, operands)) return clone_once(self, group, op);
  if (vector > 1 && is_vector_load(self, group, op)) return load_vector(self, group, op);
  for (int l = 0; l < vector; ++l) O3_TRY(o3_nest_clone_op(&self->each[group + l], self->b, op));
  return NULL;
}

static o3_status_t clone_ops(clones_t *self, MlirValue (*arguments)[O3_LANES_MOST], MlirValue *yields) {
  const o3_nest_t *nest = self->lanes->nest;
  int count = self->lanes->count;
  for (int i = 0; i < nest->num_operands * count; ++i) {
    MlirValue argument = arguments[i / count][i % count];
    if (!mlirValueIsNull(argument))
      O3_TRY(
          o3_nest_clone_value(&self->each[i % count], mlirBlockGetArgument(nest->body, i / count), argument));
  }
  MlirOperation op = mlirBlockGetFirstOperation(nest->body), end = mlirBlockGetTerminator(nest->body);
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op)) {
    for (int group = 0; group < count; group += self->lanes->vector) O3_TRY(clone_group(self, group, op));
  }
  for (int l = 0; l < count; ++l) yields[l] = o3_nest_cloned(&self->each[l], mlirOperationGetOperand(end, 0));
  return NULL;
}

o3_status_t o3_lanes_clone(const o3_lanes_t *lanes, o3_builder_t *b, MlirValue (*arguments)[O3_LANES_MOST],
                           MlirValue *yields) {
  o3_arena_t *scratch = o3_arena_create();
  O3_TRY_ALLOC(scratch);
  clones_t self = {.lanes = lanes, .b = b};
  o3_status_t status = NULL;
  for (int l = 0; l < lanes->count && !status; ++l) {
    self.each[l] = (o3_nest_cloner_t){.map = o3_ptr_map_create(scratch), .ivs = lanes->ivs[l]};
    if (!self.each[l].map) status = o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  if (!status) status = clone_ops(&self, arguments, yields);
  o3_arena_destroy(scratch);
  return status;
}
