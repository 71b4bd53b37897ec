#include "target/nvptx/merge_padding.h"

#include "ir/build.h"

typedef struct padding {
  MlirOperation fill, view; /* view: the subview that is copied to */
  MlirValue from, to, number;
  int rank;
  int64_t offsets[O3_IR_MAX_RANK], sizes[O3_IR_MAX_RANK];
} padding_t;

/* ---- Reading ---- */

static bool is_identity(MlirOperation op, int operand) {
  MlirAttribute maps = o3_op_attr(op, "indexing_maps");
  return mlirAffineMapIsIdentity(mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(maps, operand)));
}

static MlirOperation yield_of(MlirOperation generic) {
  return mlirBlockGetTerminator(mlirRegionGetFirstBlock(mlirOperationGetRegion(generic, 0)));
}

/* Of |count| operands, walked as they lie, whose body computes nothing. */
static bool is_plain(MlirOperation op, int count) {
  if (!o3_op_is(op, "linalg.generic") || mlirOperationGetNumOperands(op) != count) return false;
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
  if (!mlirOperationEqual(mlirBlockGetFirstOperation(body), yield_of(op))) return false;
  for (int i = 0; i < count; ++i) {
    if (!is_identity(op, i)) return false;
  }
  return true;
}

static bool read_copy(MlirOperation op, padding_t *p) {
  if (!is_plain(op, 2)) return false;
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
  if (!mlirValueEqual(mlirOperationGetOperand(yield_of(op), 0), mlirBlockGetArgument(body, 0))) return false;
  p->from = mlirOperationGetOperand(op, 0);
  p->view = o3_value_def(mlirOperationGetOperand(op, 1));
  if (mlirOperationIsNull(p->view) || !o3_op_is(p->view, "memref.subview")) return false;
  if (mlirOperationGetNumOperands(p->view) != 1) return false;
  int64_t steps[O3_IR_MAX_RANK];
  p->to = mlirOperationGetOperand(p->view, 0);
  p->rank = o3_type_rank(mlirValueGetType(p->to));
  bool whole = o3_type_rank(mlirValueGetType(mlirOperationGetOperand(op, 1))) == p->rank && p->rank > 0 &&
               o3_op_ints(p->view, "static_offsets", p->offsets, O3_IR_MAX_RANK) == p->rank &&
               o3_op_ints(p->view, "static_sizes", p->sizes, O3_IR_MAX_RANK) == p->rank &&
               o3_op_ints(p->view, "static_strides", steps, O3_IR_MAX_RANK) == p->rank;
  for (int r = 0; r < p->rank && whole; ++r) whole = steps[r] == 1 && p->offsets[r] >= 0 && p->sizes[r] > 0;
  return whole && !mlirValueEqual(p->from, p->to);
}

static bool passes_by(MlirOperation op) {
  static const char *const NAMES[] = {"memref.subview", "memref.view", "arith.constant"};
  MlirAttribute callee = o3_op_is(op, "llvm.call") ? o3_op_attr(op, "callee") : (MlirAttribute){0};
  if (!mlirAttributeIsNull(callee))
    return o3_str_equal(mlirFlatSymbolRefAttrGetValue(callee), "o3rt_kernel_begin");
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i) {
    if (o3_op_is(op, NAMES[i])) return true;
  }
  return false;
}

/* The fill that nothing but addresses and marks of kernels stand between. */
static bool read_fill(MlirOperation before, padding_t *p) {
  if (mlirOperationIsNull(before) || !is_plain(before, 1)) return false;
  p->fill = before;
  p->number = mlirOperationGetOperand(yield_of(before), 0);
  return mlirValueEqual(mlirOperationGetOperand(before, 0), p->to) && !mlirValueIsABlockArgument(p->number);
}

/* ---- Writing ---- */

static MlirValue index_of(o3_builder_t *b, int loop) {
  return o3_build1_attrs(b, "linalg.index", o3_build_index_type(b), O3_NO_VALUES,
                         O3_ATTRS({"dim", o3_attr_i64(b->context, loop)}));
}

/* The element of the copied value, or the number. */
static MlirValue read_through(const padding_t *p, o3_builder_t *b) {
  MlirType type = mlirValueGetType(p->to);
  MlirValue inside = {0}, operands[O3_IR_MAX_RANK + 1] = {p->from};
  for (int r = 0; r < p->rank; ++r) {
    MlirValue at = index_of(b, r);
    operands[r + 1] = at;
    if (o3_type_dim(type, r) == p->sizes[r]) continue;
    if (p->offsets[r]) at = o3_build2(b, "arith.subi", at, o3_build_index(b, p->offsets[r]));
    MlirValue fits = o3_build_cmpi(b, O3_CMPI_ULT, at, o3_build_index(b, p->sizes[r]));
    operands[r + 1] = o3_build_select(b, fits, at, o3_build_index(b, 0));
    inside = mlirValueIsNull(inside) ? fits : o3_build2(b, "arith.andi", inside, fits);
  }
  MlirValue value = o3_build1(b, "memref.load", o3_type_element(type), p->rank + 1, operands);
  return mlirValueIsNull(inside) ? value : o3_build_select(b, inside, value, p->number);
}

static void write_merged(const padding_t *p, MlirOperation copy) {
  o3_builder_t b = o3_builder_before(copy);
  MlirType element = o3_type_element(mlirValueGetType(p->to));
  MlirBlock body = mlirBlockCreate(1, &element, &b.location);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, body);
  o3_builder_t inner = o3_builder_at_end(body, b.location);
  MlirValue value = read_through(p, &inner);
  o3_build0(&inner, "linalg.yield", 1, &value);
  const int32_t segments[2] = {0, 1};
  const o3_op_spec_t spec = {
      .name = "linalg.generic",
      .num_operands = 1,
      .operands = &p->to,
      .num_attrs = 3,
      .attrs = (o3_attr_t[]){{"indexing_maps", o3_op_attr(p->fill, "indexing_maps")},
                             {"iterator_types", o3_op_attr(p->fill, "iterator_types")},
                             {"operandSegmentSizes", mlirDenseI32ArrayGet(b.context, 2, segments)}},
      .num_regions = 1,
      .regions = &region};
  o3_build(&b, &spec);
  mlirOperationDestroy(copy);
  mlirOperationDestroy(p->fill);
}

static void merge_block(MlirBlock block) {
  MlirOperation last = {0}, op = mlirBlockGetFirstOperation(block);
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    padding_t padding;
    if (read_copy(op, &padding) && read_fill(last, &padding)) {
      write_merged(&padding, op);
      last = (MlirOperation){0};
    } else if (!passes_by(op)) {
      last = op;
    }
    op = next;
  }
}

static o3_status_t visit(MlirOperation op, void *context) {
  (void)context;
  if (o3_op_is(op, "linalg.generic")) return NULL;
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); ++r) {
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
    for (; !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block)) merge_block(block);
  }
  return NULL;
}

o3_status_t o3_nvptx_merge_padding(MlirOperation root) {
  O3_TRY(visit(root, NULL));
  return o3_walk(root, visit, NULL);
}
