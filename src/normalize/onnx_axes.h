/* What ops that move data share: their axes, and parameters that are vectors of integers. */
#ifndef O3_NORMALIZE_ONNX_AXES_H
#define O3_NORMALIZE_ONNX_AXES_H

#include "normalize/nz.h"

/* Where an op's list of integers stands: in input |input| from opset |since| on, in attribute |attr| before.
 */
typedef struct o3_onnx_list {
  const char *attr;
  int input;
  int64_t since;
} o3_onnx_list_t;

/* The list as an i64 vector, or a null value when the node has none. */
MlirValue o3_onnx_list_read(o3_nz_t *nz, const o3_node_t *node, o3_onnx_list_t list);

/* Constant axes of |vector| made non-negative for |rank| and checked to be different; the count, or -1
 * (without a failure) when they are not constant. */
int o3_onnx_axes_const(o3_nz_t *nz, MlirValue vector, int rank, int64_t *axes);

/* A vector of |rank| numbers: values[i] at position axes[i], |others| (a vector of |rank| or a scalar)
 * elsewhere. All are i64 tensors that may be known only at run time, but for the number of axes. */
MlirValue o3_onnx_axes_spread(o3_nz_t *nz, MlirValue axes, MlirValue values, MlirValue others, int rank);

/* Entry |index| of a vector: a scalar. */
MlirValue o3_onnx_entry(o3_nz_t *nz, MlirValue vector, int index);
/* |x| + |size| where x is negative, else x. */
MlirValue o3_onnx_from_end(o3_nz_t *nz, MlirValue x, MlirValue size);
/* The number |value| as an i64 scalar. */
MlirValue o3_onnx_i64(o3_nz_t *nz, int64_t value);
/* The sizes of |x| as a vector. */
MlirValue o3_onnx_dims(o3_nz_t *nz, MlirValue x);

#endif
