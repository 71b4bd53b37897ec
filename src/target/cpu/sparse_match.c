/* The op has no operands but its result: its body loops over entries and reads the rest from outside. What is
 * read there is told apart by type and by who indexes it. */
#include "target/cpu/sparse_match.h"

#include <string.h>

typedef struct reader {
  MlirValue entry; /* the outer loop's variable */
  MlirValue found[O3_SPARSE_OPERANDS];
} reader_t;

static int place_of(const reader_t *self, MlirOperation load) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(load, 0));
  bool by_entry =
      mlirOperationGetNumOperands(load) > 1 && mlirValueEqual(mlirOperationGetOperand(load, 1), self->entry);
  if (mlirTypeIsAF32(o3_type_element(type))) return by_entry ? O3_SPARSE_VALUES : O3_SPARSE_X;
  return by_entry ? O3_SPARSE_COLUMNS : O3_SPARSE_ROWS;
}

static o3_status_t read_load(MlirOperation op, void *context) {
  reader_t *self = context;
  bool loads = o3_op_is(op, "tensor.extract") || o3_op_is(op, "memref.load");
  if (loads) self->found[place_of(self, op)] = mlirOperationGetOperand(op, 0);
  return NULL;
}

static bool read_body(MlirOperation op, MlirBlock body, reader_t *self) {
  MlirOperation loop = mlirBlockGetFirstOperation(body);
  while (!mlirOperationIsNull(loop) && !o3_op_is(loop, "scf.for")) loop = mlirOperationGetNextInBlock(loop);
  if (mlirOperationIsNull(loop)) return false;
  self->entry = mlirBlockGetArgument(mlirRegionGetFirstBlock(mlirOperationGetRegion(loop, 0)), 0);
  o3_status_t status = o3_walk(op, read_load, self);
  o3_status_destroy(status);
  for (int i = 0; i < O3_SPARSE_Y; ++i) {
    if (mlirValueIsNull(self->found[i])) return false;
  }
  return !status;
}

/* n, h and w of the result are n, h * stride and w * stride of X, whose blocks and lanes are the entry's. */
static MlirAffineMap x_map(MlirContext context, const o3_sparse_form_t *form, int rank) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK], zero = mlirAffineConstantExprGet(context, 0);
  for (int r = 0; r < rank; ++r) exprs[r] = mlirAffineDimExprGet(context, r);
  if (form->is_matmul) {
    exprs[rank - 1] = zero;
    return mlirAffineMapGet(context, rank, 0, rank, exprs);
  }
  exprs[1] = zero;
  if (rank == 4) exprs[2] = exprs[3] = zero; /* compressed rows walk planes by themselves */
  if (rank == 4) return mlirAffineMapGet(context, rank, 0, rank, exprs);
  exprs[4] = zero;
  for (int i = 0; i < 2; ++i)
    exprs[2 + i] = mlirAffineMulExprGet(exprs[2 + i], mlirAffineConstantExprGet(context, form->strides[i]));
  return mlirAffineMapGet(context, rank, 0, rank, exprs);
}

static MlirAffineMap start_map(MlirContext context, int num_dims, MlirType type) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK];
  for (int r = 0; r < o3_type_rank(type); ++r) exprs[r] = mlirAffineConstantExprGet(context, 0);
  return mlirAffineMapGet(context, num_dims, 0, o3_type_rank(type), exprs);
}

static bool read_form(MlirOperation op, o3_sparse_form_t *form) {
  int64_t numbers[8];
  if (!o3_str_equal(o3_op_string(op, "o3.kernel"), "sparse")) return false;
  if (o3_op_ints(op, "o3.sparse", numbers, 8) != 8) return false;
  *form = (o3_sparse_form_t){.is_matmul = numbers[2] == 0,
                             .lanes = numbers[0],
                             .depth = numbers[1],
                             .strides = {numbers[2], numbers[3]},
                             .dilations = {numbers[4], numbers[5]},
                             .is_pointwise = numbers[6] != 0,
                             .parts = numbers[7]};
  return true;
}

MlirValue o3_sparse_part_start(const o3_nest_t *nest, const o3_sparse_form_t *form, o3_builder_t *b,
                               MlirValue part) {
  const o3_nest_operand_t *rows = &nest->operands[O3_SPARSE_ROWS];
  MlirValue first = o3_build2(b, "arith.addi", rows->offset, o3_build_index(b, form->num_rows + 1));
  MlirValue at = o3_build2(b, "arith.addi", first, part);
  MlirValue start =
      o3_build1(b, "memref.load", mlirIntegerTypeGet(b->context, 32), O3_VALUES(rows->flat, at));
  return o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(start));
}

/* How many outputs there are is the result's to tell, blocks of them in whole 16. */
static bool read_parts(const o3_nest_t *nest, o3_sparse_form_t *form) {
  enum { LANES = O3_BLOCK_LANES };
  int64_t outputs = nest->sizes[form->is_matmul ? nest->num_dims - 1 : 1];
  int64_t size = nest->operands[O3_SPARSE_ROWS].sizes[0];
  if (!form->is_matmul && form->lanes > 1) outputs *= LANES;
  form->num_rows = form->lanes > 1 ? (outputs + LANES - 1) / LANES * LANES / form->lanes : outputs;
  form->num_parts = size - form->num_rows - 2;
  return outputs > 0 && form->num_parts > 0;
}

bool o3_sparse_match(MlirOperation op, o3_nest_t *nest, o3_sparse_form_t *form) {
  reader_t reader = {0};
  if (!read_form(op, form) || !o3_nest_read_any(op, nest) || nest->num_operands != 1) return false;
  if (!read_body(op, nest->body, &reader)) return false;
  MlirContext context = mlirOperationGetContext(op);
  int rank = nest->num_dims;
  nest->operands[O3_SPARSE_Y] = nest->operands[0];
  nest->num_inputs = O3_SPARSE_Y;
  nest->num_operands = O3_SPARSE_OPERANDS;
  nest->is_opaque = true;
  for (int i = 0; i < O3_SPARSE_Y; ++i) {
    MlirType type = mlirValueGetType(reader.found[i]);
    bool walked =
        i == O3_SPARSE_X && !(form->is_matmul && o3_sparse_is_rows(form)); /* panels are walked by tiles */
    MlirAffineMap map = walked ? x_map(context, form, rank) : start_map(context, rank, type);
    if (!o3_nest_read_operand(reader.found[i], map, &nest->operands[i])) return false;
  }
  if (!read_parts(nest, form)) return false;
  /* How many iterations there are is the result's to tell: X may be larger. */
  o3_nest_operand_t *x = &nest->operands[O3_SPARSE_X];
  for (int r = 0; r < x->num_terms; ++r) x->all_exprs[r] = mlirAffineConstantExprGet(context, 0);
  return true;
}
