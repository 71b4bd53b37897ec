/* Products with sparse weights as the emitter of blocked products sees them. */
#ifndef O3_TARGET_CPU_SPARSE_MATCH_H
#define O3_TARGET_CPU_SPARSE_MATCH_H

#include "target/cpu/nest.h"

/* Places of what the body reads among the nest's operands, which are these and then the result. */
enum { O3_SPARSE_X, O3_SPARSE_VALUES, O3_SPARSE_ROWS, O3_SPARSE_COLUMNS, O3_SPARSE_Y, O3_SPARSE_OPERANDS };

/* The form of a product (analysis/sparse_storage.h). */
typedef struct o3_sparse_form {
  bool is_matmul;
  int64_t lanes, depth; /* of an entry; 0: the product is not sparse */
  int64_t parts;        /* N:M: of the depth; 0 for other formats */
  int64_t num_rows;     /* of entries */
  int64_t num_parts;    /* of equal work, which end the rows */
  int64_t strides[2], dilations[2];
  bool is_pointwise; /* X has the result's height and width */
} o3_sparse_form_t;

/* Reads a linalg.generic that the lowering made of a sparse product, on tensors or buffers; |nest| becomes
 * one of the five operands. False for any other op. */
bool o3_sparse_match(MlirOperation op, o3_nest_t *nest, o3_sparse_form_t *form);

/* Where part |part| (index) begins, in blocks of 16 outputs, or outputs for compressed rows. The nest is
 * flattened. */
MlirValue o3_sparse_part_start(const o3_nest_t *nest, const o3_sparse_form_t *form, o3_builder_t *builder,
                               MlirValue part);

/* Compressed rows: entries of one number. */
static inline bool o3_sparse_is_rows(const o3_sparse_form_t *form) { return form->lanes * form->depth == 1; }

#endif
