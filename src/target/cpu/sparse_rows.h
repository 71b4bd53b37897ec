/* Products with weights in compressed rows, on plain images. */
#ifndef O3_TARGET_CPU_SPARSE_ROWS_H
#define O3_TARGET_CPU_SPARSE_ROWS_H

#include "schedule/cpu_schedule.h"
#include "target/cpu/blocked_match.h"
#include "target/cpu/product.h"

/* As o3_product_schedule, for a |product| of the form o3_sparse_is_rows, on images or a matrix. */
o3_status_t o3_sparse_rows_schedule(o3_pass_env_t *env, const o3_blocked_t *product) O3_MUST_USE;
/* What that writes, or what |product|'s op says. */
o3_status_t o3_sparse_rows_read_schedule(const o3_machine_t *machine, const o3_blocked_t *product,
                                         o3_schedule_csr_t *schedule) O3_MUST_USE;
/* As o3_product_emit, for a |product| of the form o3_sparse_is_rows. */
o3_status_t o3_sparse_rows_emit(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel,
                                o3_blocked_t *product) O3_MUST_USE;

#endif
