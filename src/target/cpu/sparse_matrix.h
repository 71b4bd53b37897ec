/* Matrix products with weights in compressed rows, on panels of the left matrix. */
#ifndef O3_TARGET_CPU_SPARSE_MATRIX_H
#define O3_TARGET_CPU_SPARSE_MATRIX_H

#include "target/cpu/blocked_match.h"
#include "target/cpu/product.h"

/* As o3_product_emit, for a |product| of the form o3_sparse_is_rows that is a matrix's. */
o3_status_t o3_sparse_matrix_emit(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel,
                                  o3_blocked_t *product) O3_MUST_USE;

#endif
