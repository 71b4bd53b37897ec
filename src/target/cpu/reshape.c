#include "target/cpu/reshape.h"

#include "target/cpu/cpu_ir.h"

/* Sizes and strides as values; those that the result's type knows are left out of the new op's operands. */
typedef struct view {
  int rank;
  MlirValue base, offset, sizes[O3_IR_MAX_RANK], strides[O3_IR_MAX_RANK];
} view_t;

static void read_source(o3_builder_t *b, MlirValue memref, view_t *view) {
  MlirOperation metadata = o3_cpu_metadata(b, memref);
  view->rank = o3_type_rank(mlirValueGetType(memref));
  view->base = mlirOperationGetResult(metadata, 0);
  view->offset = mlirOperationGetResult(metadata, 1);
  for (int i = 0; i < view->rank; ++i) {
    view->sizes[i] = mlirOperationGetResult(metadata, 2 + i);
    view->strides[i] = mlirOperationGetResult(metadata, 2 + view->rank + i);
  }
}

/* The dims of group |index|: [first, first + count). */
static int group_of(MlirOperation op, int index, int *first) {
  MlirAttribute group = mlirArrayAttrGetElement(o3_op_attr(op, "reassociation"), index);
  int count = (int)mlirArrayAttrGetNumElements(group);
  *first = count ? (int)mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(group, 0)) : 0;
  return count;
}

/* A group's step is that of its innermost dim; the step of a dim of size 1 says nothing, if another is there.
 */
static void collapse(o3_builder_t *b, MlirOperation op, const view_t *from, view_t *to) {
  MlirType source = mlirValueGetType(mlirOperationGetOperand(op, 0));
  for (int i = 0; i < to->rank; ++i) {
    int first, count = group_of(op, i, &first);
    int inner = first + count - 1;
    while (inner > first && o3_type_dim(source, inner) == 1) --inner;
    to->strides[i] = count ? from->strides[inner] : o3_build_index(b, 1);
    to->sizes[i] = o3_build_index(b, 1);
    for (int d = first; d < first + count; ++d)
      to->sizes[i] = o3_build2(b, "arith.muli", to->sizes[i], from->sizes[d]);
  }
}

static MlirValue output_size(o3_builder_t *b, MlirOperation op, int dim) {
  MlirAttribute sizes = o3_op_attr(op, "static_output_shape");
  int operand = 1;
  for (int i = 0; i < dim; ++i) operand += mlirDenseI64ArrayGetElement(sizes, i) == INT64_MIN;
  int64_t size = mlirDenseI64ArrayGetElement(sizes, dim);
  return size == INT64_MIN ? mlirOperationGetOperand(op, operand) : o3_build_index(b, size);
}

static void expand(o3_builder_t *b, MlirOperation op, const view_t *from, view_t *to) {
  for (int d = 0; d < to->rank; ++d) {
    to->sizes[d] = output_size(b, op, d);
    to->strides[d] = o3_build_index(b, 1);
  }
  for (int i = 0; i < from->rank; ++i) {
    int first, count = group_of(op, i, &first);
    MlirValue stride = from->strides[i];
    for (int d = first + count - 1; d >= first; --d) {
      to->strides[d] = stride;
      stride = o3_build2(b, "arith.muli", stride, to->sizes[d]);
    }
  }
}

typedef struct cast {
  int num_operands;
  MlirValue operands[2 + 2 * O3_IR_MAX_RANK];
  int32_t segments[4];
} cast_t;

static int64_t keep(cast_t *cast, int segment, bool known, int64_t number, MlirValue value) {
  if (known) return number;
  cast->operands[cast->num_operands++] = value;
  ++cast->segments[segment];
  return INT64_MIN;
}

static MlirValue build_cast(o3_builder_t *b, const view_t *view, MlirType type) {
  cast_t cast = {.num_operands = 1, .operands = {view->base}, .segments = {1, 0, 0, 0}};
  int64_t sizes[O3_IR_MAX_RANK], strides[O3_IR_MAX_RANK], known[O3_IR_MAX_RANK], offset;
  bool strided = mlirLogicalResultIsSuccess(mlirMemRefTypeGetStridesAndOffset(type, known, &offset));
  offset = keep(&cast, 1, strided && !mlirShapedTypeIsDynamicStrideOrOffset(offset), offset, view->offset);
  for (int i = 0; i < view->rank; ++i) {
    int64_t size = o3_type_dim(type, i);
    sizes[i] = keep(&cast, 2, size >= 0, size, view->sizes[i]);
  }
  for (int i = 0; i < view->rank; ++i) {
    bool fixed = strided && !mlirShapedTypeIsDynamicStrideOrOffset(known[i]);
    strides[i] = keep(&cast, 3, fixed, known[i], view->strides[i]);
  }
  return o3_build1_attrs(
      b, "memref.reinterpret_cast", type, cast.num_operands, cast.operands,
      O3_ATTRS({"static_offsets", o3_attr_ints(b->context, 1, &offset)},
               {"static_sizes", o3_attr_ints(b->context, view->rank, sizes)},
               {"static_strides", o3_attr_ints(b->context, view->rank, strides)},
               {"operandSegmentSizes", mlirDenseI32ArrayGet(b->context, 4, cast.segments)}));
}

static o3_status_t replace_reshape(MlirOperation op, void *context) {
  (void)context;
  bool collapses = o3_op_is(op, "memref.collapse_shape");
  if (!collapses && !o3_op_is(op, "memref.expand_shape")) return NULL;
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  view_t from, to = {.rank = o3_type_rank(type)};
  o3_builder_t b = o3_builder_before(op);
  read_source(&b, mlirOperationGetOperand(op, 0), &from);
  to.base = from.base;
  to.offset = from.offset;
  if (collapses) {
    collapse(&b, op, &from, &to);
  } else {
    expand(&b, op, &from, &to);
  }
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), build_cast(&b, &to, type));
  mlirOperationDestroy(op);
  return NULL;
}

o3_status_t o3_cpu_replace_reshapes(MlirOperation root) { return o3_walk(root, replace_reshape, NULL); }
