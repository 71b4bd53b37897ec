/* Matrix products by NumPy's rules. */
#ifndef O3_NORMALIZE_ONNX_MATMUL_H
#define O3_NORMALIZE_ONNX_MATMUL_H

#include "normalize/nz.h"

/* a times b; a vector a gets a leading, a vector b a trailing dimension of 1 that the result loses again.
 * |acc|: element type of the sum and result, null for that of a. Scalars are a failure. */
MlirValue o3_nz_product(o3_nz_t *nz, MlirValue a, MlirValue b, MlirType acc);

#endif
