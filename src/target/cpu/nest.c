#include "target/cpu/nest.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/map.h"
#include "target/cpu/cpu_ir.h"

/* ---- Reading ---- */

static void read_layout(o3_nest_operand_t *operand) {
  MlirType type = mlirValueGetType(operand->value);
  int rank = o3_type_rank(type);
  int64_t offset;
  operand->is_contiguous = mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(type));
  int64_t strides[O3_IR_MAX_RANK];
  bool strided = mlirLogicalResultIsSuccess(mlirMemRefTypeGetStridesAndOffset(type, strides, &offset));
  for (int r = rank - 1; r >= 0; --r) {
    operand->sizes[r] = o3_type_dim(type, r);
    bool known = strided && !mlirShapedTypeIsDynamicStrideOrOffset(strides[r]);
    operand->strides[r] = known ? strides[r] : -1;
  }
}

static void row_major_strides(MlirType type, int64_t *strides) {
  int64_t stride = 1;
  for (int r = o3_type_rank(type) - 1; r >= 0; --r) {
    int64_t size = o3_type_dim(type, r);
    strides[r] = stride;
    if (size < 0 || stride < 0 || __builtin_mul_overflow(stride, size, &stride)) stride = -1;
  }
}

/* The stride of dimensions that become one: that of the innermost with more than one place; -1 where those
 * around it do not follow it without gaps, as far as is known. */
static int64_t joined_stride(MlirType type, const int64_t *strides, int first, int count) {
  int64_t stride = strides[first + count - 1], follows = 0;
  bool found = false;
  for (int r = first + count - 1; r >= first; --r) {
    int64_t size = o3_type_dim(type, r);
    if (size == 1) continue;
    if (found && (follows < 0 || strides[r] != follows)) return -1;
    if (!found) stride = strides[r];
    follows = strides[r] < 0 || size < 0 ? -1 : strides[r] * size;
    found = true;
  }
  return stride;
}

/* Those of a reshaped slice, whose groups of dimensions become one each, or the other way round. */
static void regroup(MlirOperation reshape, bool collapses, const int64_t *around, int64_t *strides) {
  MlirAttribute groups = o3_op_attr(reshape, "reassociation");
  MlirType from = mlirValueGetType(mlirOperationGetOperand(reshape, 0));
  MlirType to = mlirValueGetType(mlirOperationGetResult(reshape, 0));
  int first = 0;
  for (int g = 0; g < mlirArrayAttrGetNumElements(groups); ++g) {
    int count = (int)mlirArrayAttrGetNumElements(mlirArrayAttrGetElement(groups, g));
    int64_t stride = collapses ? joined_stride(from, around, first, count) : around[g];
    if (collapses) strides[g] = stride;
    for (int r = first + count - 1; r >= first && !collapses; --r) {
      int64_t size = o3_type_dim(to, r);
      strides[r] = stride;
      stride = stride < 0 || size < 0 ? -1 : stride * size;
    }
    first += count;
  }
}

/* Of dimensions that a slice drops, one has a single place. */
static void slice_strides(MlirOperation slice, const int64_t *around, int64_t *strides) {
  MlirType to = mlirValueGetType(mlirOperationGetResult(slice, 0));
  int rank = o3_type_rank(to), r = 0;
  int64_t steps[O3_IR_MAX_RANK], sizes[O3_IR_MAX_RANK];
  int count = o3_op_ints(slice, "static_strides", steps, O3_IR_MAX_RANK);
  o3_op_ints(slice, "static_sizes", sizes, O3_IR_MAX_RANK);
  int dropped = count - rank;
  for (int d = 0; d < count && r < rank; ++d) {
    if (dropped && sizes[d] == 1 && o3_type_dim(to, r) != 1) {
      --dropped;
    } else {
      strides[r++] = around[d] >= 0 && steps[d] > 0 ? around[d] * steps[d] : -1;
    }
  }
}

/* A tensor's buffer will be row-major, but a slice lies in that of its source. False: it is a slice. */
static bool tensor_strides(MlirValue tensor, int64_t *strides) {
  MlirType type = mlirValueGetType(tensor);
  MlirOperation op = o3_value_def(tensor);
  bool is_slice = o3_op_is(op, "tensor.extract_slice"), collapses = o3_op_is(op, "tensor.collapse_shape");
  bool is_view = is_slice || collapses || o3_op_is(op, "tensor.expand_shape");
  int64_t around[O3_IR_MAX_RANK];
  if (!is_view || (tensor_strides(mlirOperationGetOperand(op, 0), around) && !is_slice)) {
    row_major_strides(type, strides);
    return true;
  }
  if (is_slice) {
    slice_strides(op, around, strides);
  } else {
    regroup(op, collapses, around, strides);
  }
  return false;
}

static void read_tensor_layout(o3_nest_operand_t *operand) {
  MlirType type = mlirValueGetType(operand->value);
  operand->is_contiguous = tensor_strides(operand->value, operand->strides);
  for (int r = o3_type_rank(type) - 1; r >= 0; --r) operand->sizes[r] = o3_type_dim(type, r);
}

bool o3_nest_read_operand(MlirValue value, MlirAffineMap map, o3_nest_operand_t *operand) {
  *operand = (o3_nest_operand_t){.value = value};
  MlirType type = mlirValueGetType(operand->value);
  bool is_tensor = mlirTypeIsARankedTensor(type);
  operand->is_memref = mlirTypeIsAMemRef(type) || is_tensor;
  if (!operand->is_memref) return true;
  operand->num_terms = (int)mlirAffineMapGetNumResults(map);
  if (operand->num_terms != o3_type_rank(type) || mlirAffineMapGetNumSymbols(map)) return false;
  for (int r = 0; r < operand->num_terms; ++r)
    operand->exprs[r] = operand->all_exprs[r] = mlirAffineMapGetResult(map, r);
  if (is_tensor) {
    read_tensor_layout(operand);
  } else {
    read_layout(operand);
  }
  return true;
}

/* A dim's size is that of any memref dimension indexed by the dim alone. */
static void read_sizes(o3_nest_t *nest) {
  for (int d = 0; d < nest->num_dims; ++d) nest->sizes[d] = -1;
  for (int i = 0; i < nest->num_operands; ++i) {
    const o3_nest_operand_t *operand = &nest->operands[i];
    for (int r = 0; r < operand->num_terms; ++r) {
      if (!mlirAffineExprIsADim(operand->exprs[r]) || operand->sizes[r] < 0) continue;
      nest->sizes[mlirAffineDimExprGetPosition(operand->exprs[r])] = operand->sizes[r];
    }
  }
}

static bool is_reduction(MlirAttribute iterator) {
  char *text = o3_attr_text(iterator);
  bool result = text && strstr(text, "reduction") != NULL;
  free(text);
  return result;
}

bool o3_nest_read(MlirOperation op, o3_nest_t *nest) {
  return mlirOperationGetNumResults(op) == 0 && o3_nest_read_any(op, nest);
}

bool o3_nest_read_any(MlirOperation op, o3_nest_t *nest) {
  if (!o3_op_is(op, "linalg.generic")) return false;
  MlirAttribute maps = o3_op_attr(op, "indexing_maps"), iterators = o3_op_attr(op, "iterator_types");
  *nest = (o3_nest_t){.op = op,
                      .num_dims = (int)mlirArrayAttrGetNumElements(iterators),
                      .num_operands = (int)mlirOperationGetNumOperands(op),
                      .body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0))};
  if (nest->num_dims > O3_IR_MAX_RANK || nest->num_operands > O3_NEST_MAX_OPERANDS) return false;
  nest->num_inputs =
      nest->num_operands - (int)mlirOperationGetNumOperands(mlirBlockGetTerminator(nest->body));
  for (int d = 0; d < nest->num_dims; ++d) nest->merged_into[d] = -1;
  for (int d = 0; d < nest->num_dims; ++d)
    nest->reduction[d] = is_reduction(mlirArrayAttrGetElement(iterators, d));
  for (int i = 0; i < nest->num_operands; ++i) {
    MlirAffineMap map = mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(maps, i));
    if (!o3_nest_read_operand(mlirOperationGetOperand(op, i), map, &nest->operands[i])) return false;
  }
  read_sizes(nest);
  return true;
}

/* ---- Merging ---- */

static bool uses(MlirAffineExpr expr, int dim) {
  return expr.ptr && mlirAffineExprIsFunctionOfDim(expr, dim);
}

bool o3_nest_uses(const o3_nest_operand_t *operand, int dim) {
  for (int r = 0; r < operand->num_terms; ++r) {
    if (uses(operand->exprs[r], dim)) return true;
  }
  return false;
}

/* The only term that uses |dim|, when it is the dim alone; -1 otherwise. */
static int plain_term(const o3_nest_operand_t *operand, int dim) {
  int found = -1;
  for (int r = 0; r < operand->num_terms; ++r) {
    if (!uses(operand->exprs[r], dim)) continue;
    if (found >= 0 || !mlirAffineExprIsADim(operand->exprs[r])) return -1;
    found = r;
  }
  return found;
}

/* In an operand with gaps the stride of |outer| must be the extent of all between it and |inner|, included.
 */
static bool is_gapless(const o3_nest_operand_t *operand, int outer, int inner) {
  int64_t extent = operand->strides[inner];
  for (int r = outer + 1; r <= inner; ++r) {
    bool known = extent >= 0 && operand->sizes[r] >= 0;
    if (!known || __builtin_mul_overflow(extent, operand->sizes[r], &extent)) return false;
  }
  return operand->strides[outer] == extent;
}

bool o3_nest_walks_as_one(const o3_nest_operand_t *operand, int outer, int inner) {
  if (!operand->is_memref) return true;
  if (!o3_nest_uses(operand, outer) && !o3_nest_uses(operand, inner)) return true;
  int o = plain_term(operand, outer), i = plain_term(operand, inner);
  if (o < 0 || i <= o) return false;
  for (int r = o + 1; r < i; ++r) {
    if (operand->exprs[r].ptr) return false;
  }
  return operand->is_contiguous || is_gapless(operand, o, i);
}

static bool has_index_ops(MlirBlock body) {
  MlirOperation op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (o3_op_is(op, "linalg.index") || mlirOperationGetNumRegions(op)) return true;
  }
  return false;
}

/* |outer| becomes part of |inner|; the memref dimension that it indexed needs no term any more. */
static void merge(o3_nest_t *nest, int outer, int inner) {
  int64_t size = -1;
  bool known = nest->sizes[outer] >= 0 && nest->sizes[inner] >= 0;
  if (known && __builtin_mul_overflow(nest->sizes[outer], nest->sizes[inner], &size)) size = -1;
  nest->sizes[inner] = size;
  nest->merged_into[outer] = inner;
  for (int i = 0; i < nest->num_operands; ++i) {
    int r = nest->operands[i].is_memref ? plain_term(&nest->operands[i], outer) : -1;
    if (r >= 0) nest->operands[i].exprs[r] = (MlirAffineExpr){0};
  }
}

static bool all_walk_as_one(const o3_nest_t *nest, int outer, int inner) {
  for (int i = 0; i < nest->num_operands; ++i) {
    if (!o3_nest_walks_as_one(&nest->operands[i], outer, inner)) return false;
  }
  return true;
}

void o3_nest_drop_single_turns(o3_nest_t *nest) {
  MlirContext context = mlirOperationGetContext(nest->op);
  MlirAffineExpr dims[O3_IR_MAX_RANK];
  for (int d = 0; d < nest->num_dims; ++d) {
    bool single = nest->reduction[d] && nest->sizes[d] == 1;
    dims[d] = single ? mlirAffineConstantExprGet(context, 0) : mlirAffineDimExprGet(context, d);
  }
  MlirAffineMap map = mlirAffineMapGet(context, nest->num_dims, 0, nest->num_dims, dims);
  for (int i = 0; i < nest->num_operands; ++i) {
    o3_nest_operand_t *operand = &nest->operands[i];
    for (int r = 0; r < operand->num_terms; ++r) {
      if (mlirAffineExprIsADim(operand->exprs[r])) continue;
      operand->exprs[r] = operand->all_exprs[r] = mlirAffineExprCompose(operand->exprs[r], map);
    }
  }
}

void o3_nest_merge(o3_nest_t *nest) {
  const bool fixed[O3_IR_MAX_RANK] = {0};
  o3_nest_merge_around(nest, fixed);
}

bool o3_nest_merge_dims(o3_nest_t *nest, int count, const int *dims) {
  int inner = count ? dims[count - 1] : -1;
  if (count > 1 && !nest->is_opaque && has_index_ops(nest->body)) return false;
  for (int i = count - 2; i >= 0; --i) {
    if (!all_walk_as_one(nest, dims[i], inner)) return false;
    merge(nest, dims[i], inner);
  }
  return true;
}

void o3_nest_merge_around(o3_nest_t *nest, const bool *fixed) {
  if (has_index_ops(nest->body)) return;
  int inner = nest->num_dims - 1;
  for (int outer = inner - 1; outer >= 0; --outer) {
    bool fits = nest->reduction[outer] == nest->reduction[inner] && !fixed[outer] && !fixed[inner] &&
                all_walk_as_one(nest, outer, inner);
    if (fits) {
      merge(nest, outer, inner);
    } else {
      inner = outer;
    }
  }
}

/* ---- Values ---- */

static MlirValue dim_of(o3_builder_t *b, const o3_nest_operand_t *operand, int dimension) {
  if (operand->sizes[dimension] >= 0) return o3_build_index(b, operand->sizes[dimension]);
  return o3_build1(b, "memref.dim", o3_build_index_type(b),
                   O3_VALUES(operand->value, o3_build_index(b, dimension)));
}

void o3_nest_flatten_operand(o3_nest_operand_t *operand, o3_builder_t *b) {
  int rank = o3_type_rank(mlirValueGetType(operand->value));
  MlirOperation metadata = o3_cpu_metadata(b, operand->value);
  operand->offset = mlirOperationGetResult(metadata, 1);
  for (int r = 0; r < rank; ++r) {
    operand->stride_values[r] = operand->strides[r] >= 0 ? o3_build_index(b, operand->strides[r])
                                                         : mlirOperationGetResult(metadata, 2 + rank + r);
  }
  /* The extent only has to be one that no address exceeds. */
  operand->flat = o3_cpu_flat(b, mlirOperationGetResult(metadata, 0));
}

MlirValue o3_nest_own_size(const o3_nest_t *nest, int dim, o3_builder_t *b) {
  for (int i = 0; i < nest->num_operands; ++i) {
    const o3_nest_operand_t *operand = &nest->operands[i];
    for (int r = 0; r < operand->num_terms; ++r) {
      MlirAffineExpr expr = operand->all_exprs[r];
      if (mlirAffineExprIsADim(expr) && mlirAffineDimExprGetPosition(expr) == dim)
        return dim_of(b, operand, r);
    }
  }
  O3_UNREACHABLE("linalg verifies that each dim indexes some operand alone");
}

void o3_nest_flatten(o3_nest_t *nest, o3_builder_t *b) {
  for (int i = 0; i < nest->num_operands; ++i) {
    if (nest->operands[i].is_memref) o3_nest_flatten_operand(&nest->operands[i], b);
  }
  for (int d = 0; d < nest->num_dims; ++d) nest->size_values[d] = o3_nest_own_size(nest, d, b);
  for (int d = 0; d < nest->num_dims; ++d) {
    if (nest->merged_into[d] < 0) continue;
    int inner = nest->merged_into[d];
    nest->size_values[inner] = o3_build2(b, "arith.muli", nest->size_values[inner], nest->size_values[d]);
  }
}

/* An expression of dims as one of symbols, which is what the builder evaluates. */
static MlirValue evaluate(const o3_nest_t *nest, o3_builder_t *b, MlirAffineExpr expr, const MlirValue *ivs) {
  if (mlirAffineExprIsADim(expr)) return ivs[mlirAffineDimExprGetPosition(expr)];
  MlirAffineExpr symbols[O3_IR_MAX_RANK];
  for (int d = 0; d < nest->num_dims; ++d) symbols[d] = mlirAffineSymbolExprGet(b->context, d);
  MlirAffineMap to_symbols = mlirAffineMapGet(b->context, 0, nest->num_dims, nest->num_dims, symbols);
  return o3_build_affine(b, mlirAffineExprCompose(expr, to_symbols), nest->num_dims, ivs);
}

MlirValue o3_nest_address(const o3_nest_t *nest, const o3_nest_operand_t *operand, o3_builder_t *b,
                          const MlirValue *ivs) {
  MlirValue address = operand->offset;
  for (int r = 0; r < operand->num_terms; ++r) {
    if (!operand->exprs[r].ptr) continue;
    MlirValue index = evaluate(nest, b, operand->exprs[r], ivs);
    address =
        o3_build2(b, "arith.addi", address, o3_build2(b, "arith.muli", index, operand->stride_values[r]));
  }
  return address;
}

/* ---- Steps ---- */

bool o3_nest_coefficient(MlirAffineExpr expr, int dim, int64_t *value) {
  *value = 0;
  if (!uses(expr, dim)) return true;
  if (mlirAffineExprIsADim(expr)) {
    *value = 1;
    return true;
  }
  bool add = mlirAffineExprIsAAdd(expr), mul = mlirAffineExprIsAMul(expr);
  if (!add && !mul) return false;
  MlirAffineExpr lhs = mlirAffineBinaryOpExprGetLHS(expr), rhs = mlirAffineBinaryOpExprGetRHS(expr);
  int64_t l, r;
  if (add) {
    bool linear = o3_nest_coefficient(lhs, dim, &l) && o3_nest_coefficient(rhs, dim, &r);
    if (linear) *value = l + r;
    return linear;
  }
  if (!mlirAffineExprIsAConstant(rhs) || !o3_nest_coefficient(lhs, dim, &l)) return false;
  return !__builtin_mul_overflow(l, mlirAffineConstantExprGetValue(rhs), value);
}

bool o3_nest_step(const o3_nest_operand_t *operand, int dim, int64_t *step) {
  *step = 0;
  for (int r = 0; r < operand->num_terms; ++r) {
    int64_t factor, part;
    if (!uses(operand->exprs[r], dim)) continue;
    if (!o3_nest_coefficient(operand->exprs[r], dim, &factor) || operand->strides[r] < 0) return false;
    if (__builtin_mul_overflow(factor, operand->strides[r], &part)) return false;
    *step += part;
  }
  return true;
}

bool o3_nest_is_linear(const o3_nest_operand_t *operand, int dim) {
  int64_t factor;
  for (int r = 0; r < operand->num_terms; ++r) {
    if (operand->exprs[r].ptr && !o3_nest_coefficient(operand->exprs[r], dim, &factor)) return false;
  }
  return true;
}

MlirValue o3_nest_step_value(const o3_nest_operand_t *operand, int dim, o3_builder_t *b) {
  MlirValue step = o3_build_index(b, 0);
  for (int r = 0; r < operand->num_terms; ++r) {
    int64_t factor;
    if (!uses(operand->exprs[r], dim) || !o3_nest_coefficient(operand->exprs[r], dim, &factor)) continue;
    MlirValue part = o3_build2(b, "arith.muli", o3_build_index(b, factor), operand->stride_values[r]);
    step = o3_build2(b, "arith.addi", step, part);
  }
  return step;
}

/* ---- The body ---- */

bool o3_nest_reads(const o3_nest_t *nest, int operand) {
  return !mlirOpOperandIsNull(mlirValueGetFirstUse(mlirBlockGetArgument(nest->body, operand)));
}

bool o3_nest_is_zero(const o3_nest_t *nest) {
  MlirOperation def = o3_value_def(mlirOperationGetOperand(mlirBlockGetTerminator(nest->body), 0));
  return !mlirOperationIsNull(def) && o3_op_is(def, "arith.constant") &&
         mlirFloatAttrGetValueDouble(o3_op_attr(def, "value")) == 0;
}

MlirValue o3_nest_cloned(const o3_nest_cloner_t *self, MlirValue value) {
  const void *to = o3_ptr_map_get(self->map, value.ptr);
  return to ? (MlirValue){to} : value;
}

o3_status_t o3_nest_clone_value(o3_nest_cloner_t *self, MlirValue from, MlirValue to) {
  bool ok = o3_ptr_map_put(self->map, from.ptr, (void *)(uintptr_t)to.ptr);
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static o3_status_t map_operands(MlirOperation op, void *context) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
    mlirOperationSetOperand(op, i, o3_nest_cloned(context, mlirOperationGetOperand(op, i)));
  if (o3_op_is(op, "linalg.index")) {
    const o3_nest_cloner_t *self = context;
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), self->ivs[o3_op_int(op, "dim", 0)]);
    mlirOperationDestroy(op);
  }
  return NULL;
}

o3_status_t o3_nest_clone_op(o3_nest_cloner_t *self, o3_builder_t *b, MlirOperation op) {
  if (o3_op_is(op, "linalg.index"))
    return o3_nest_clone_value(self, mlirOperationGetResult(op, 0), self->ivs[o3_op_int(op, "dim", 0)]);
  MlirOperation copy = mlirOperationClone(op);
  if (mlirOperationIsNull(b->before)) {
    mlirBlockAppendOwnedOperation(b->block, copy);
  } else {
    mlirBlockInsertOwnedOperationBefore(b->block, b->before, copy);
  }
  O3_TRY(map_operands(copy, self));
  O3_TRY(o3_walk(copy, map_operands, self));
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    O3_TRY(o3_nest_clone_value(self, mlirOperationGetResult(op, i), mlirOperationGetResult(copy, i)));
  return NULL;
}

static o3_status_t clone_ops(const o3_nest_t *nest, o3_nest_cloner_t *self, o3_builder_t *b,
                             const MlirValue *arguments, MlirValue *yields) {
  O3_TRY_ALLOC(self->map);
  for (int i = 0; i < nest->num_operands; ++i)
    O3_TRY(o3_nest_clone_value(self, mlirBlockGetArgument(nest->body, i), arguments[i]));
  MlirOperation op = mlirBlockGetFirstOperation(nest->body), terminator = mlirBlockGetTerminator(nest->body);
  for (; !mlirOperationEqual(op, terminator); op = mlirOperationGetNextInBlock(op))
    O3_TRY(o3_nest_clone_op(self, b, op));
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(terminator); ++i)
    yields[i] = o3_nest_cloned(self, mlirOperationGetOperand(terminator, i));
  return NULL;
}

o3_status_t o3_nest_clone_body(const o3_nest_t *nest, o3_builder_t *b, const MlirValue *arguments,
                               const MlirValue *ivs, MlirValue *yields) {
  o3_arena_t *scratch = o3_arena_create();
  O3_TRY_ALLOC(scratch);
  o3_nest_cloner_t self = {.map = o3_ptr_map_create(scratch), .ivs = ivs};
  o3_status_t status = clone_ops(nest, &self, b, arguments, yields);
  o3_arena_destroy(scratch);
  return status;
}
