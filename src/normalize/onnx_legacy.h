/* Rules of old opsets that several ops share. Opset 7 made broadcasting what it is today; before, an
 * attribute had to ask for it. */
#ifndef O3_NORMALIZE_ONNX_LEGACY_H
#define O3_NORMALIZE_ONNX_LEGACY_H

#include "normalize/nz.h"

/* |b| so that today's broadcasting of it to |a| is what |node| asks for: |b| itself from opset 7 on; before,
 * with broadcast=1, |b| with dimensions of 1 behind its last so that its first is a's dimension `axis`
 * (without the attribute its last is a's last). It must not be larger than |a| in any dimension. Without
 * broadcast=1 the shapes must be equal. INVALID_MODEL when they cannot be; sizes that only the run knows are
 * guarded. */
o3_status_t o3_onnx_legacy_broadcast(o3_nz_t *nz, const o3_node_t *node, MlirValue a, MlirValue b,
                                     MlirValue *aligned) O3_MUST_USE;

/* Requires that all inputs of |node| have the shape of the first. */
o3_status_t o3_onnx_legacy_same_shapes(o3_nz_t *nz, const o3_node_t *node) O3_MUST_USE;

/* |x| with |count| dimensions of 1 behind its last. */
MlirValue o3_onnx_legacy_extend(o3_nz_t *nz, MlirValue x, int count);

/* All sizes are known to be 1. */
bool o3_onnx_legacy_is_single(const o3_nz_t *nz, MlirValue x);

/* UNSUPPORTED when |node| is of an opset before |since|: what the op was then is not implemented. */
o3_status_t o3_onnx_legacy_since(o3_nz_t *nz, const o3_node_t *node, int64_t since) O3_MUST_USE;

#endif
