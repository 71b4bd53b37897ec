/* Products of a matrix with up to five vectors (thin_text.h). */
#ifndef O3_TARGET_CPU_THIN_PRODUCT_H
#define O3_TARGET_CPU_THIN_PRODUCT_H

#include "ir/pass.h"
#include "schedule/cpu_schedule.h"
#include "target/cpu/gemm_product.h"
#include "target/cpu/thin_text.h"

/* False when |nest|, whose dims may have been merged, is no such product in f32 or f64. Of |product| a is the
 * vectors and b the matrix: there is at most one row dim, of five turns at most, one column dim and one of
 * the depth, and c need not be contiguous along the columns. */
bool o3_thin_match(o3_nest_t *nest, o3_gemm_product_t *product);

/* The schedule of |product|, by its op where that has one. */
o3_status_t o3_thin_schedule(const o3_machine_t *machine, const o3_gemm_product_t *product,
                             o3_schedule_thin_t *schedule) O3_MUST_USE;

/* The function for |product|, whose nest is flattened. */
o3_thin_t o3_thin_function(const o3_gemm_product_t *product, const o3_schedule_thin_t *schedule);

/* Calls it for the columns |lower| to |upper| and the places |ivs| around (0 for the other dims); |fresh|:
 * the sums start at zero. */
void o3_thin_call(const o3_gemm_product_t *product, const o3_thin_t *thin, o3_builder_t *builder,
                  const MlirValue *ivs, MlirValue lower, MlirValue upper, bool fresh);

#endif
