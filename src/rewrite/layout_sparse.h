/* Sparse weights in the layout pass. */
#ifndef O3_REWRITE_LAYOUT_SPARSE_H
#define O3_REWRITE_LAYOUT_SPARSE_H

#include "analysis/sparse_storage.h"
#include "rewrite/layout.h"

typedef struct o3_layout_sparse {
  MlirValue values, rows, columns; /* o3.constant */
  int64_t rows_size;
  MlirAttribute encoding;
  bool is_plain; /* compressed rows: the product reads and writes plain images */
} o3_layout_sparse_t;

/* Whether |op| is marked with a sparse format. */
bool o3_layout_is_sparse(MlirOperation op);
/* The stored weights of |op|, which is marked; |weight| is their form, its data are operand 1's, f32. False
 * when self->status says why not. */
bool o3_layout_store_sparse(o3_layout_t *self, MlirOperation op, o3_sparse_weight_t *weight,
                            o3_layout_sparse_t *sparse);

/* How a convolution walks its input, a plain image of rank 4. */
typedef struct o3_layout_steps {
  int64_t strides[2], pads[4];
} o3_layout_steps_t;

/* |x| as compressed rows read it: with its border, steps as channels. */
MlirValue o3_layout_without_steps(o3_layout_t *self, MlirValue x, const o3_layout_steps_t *steps);

/* The rows of |a|, a matrix or a batch of them, as compressed rows read them: in panels, P / rows x K x P.
 * |flat| becomes rows x K. */
MlirValue o3_layout_row_panels(o3_layout_t *self, MlirValue a, o3_shape_t *flat);

#endif
