/* How far a result is from the expected one. */
#ifndef O3_TENSORIO_COMPARE_H
#define O3_TENSORIO_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "o3/model.h"

/* Floats agree when |got - expected| <= atol + rtol * |expected|, in float64; NaN equals NaN, an
 * infinity itself. Integers agree when they differ by at most |int_atol|, booleans when they are equal. */
typedef struct o3_tolerance {
  double rtol, atol;
  uint64_t int_atol;
} o3_tolerance_t;

/* |rtol| and |atol| of the ONNX backend tests; integers exact. */
#define O3_TOLERANCE_INIT ((o3_tolerance_t){.rtol = 1e-3, .atol = 1e-7})

typedef struct o3_comparison {
  bool ok;                    /* type and shape agree, and no element is outside the tolerance */
  bool same_type, same_shape; /* when one is false, nothing below is set */
  int64_t count, outside;     /* elements, and how many of them disagree */
  double max_abs;             /* largest |got - expected|; infinite where only one is NaN or infinite */
  double max_rel;             /* largest |got - expected| / |expected| over expected != 0 */
  uint64_t max_ulp;           /* most representable values between the two in the type (integers: the
                                 difference), over pairs without NaN */
  int64_t worst;              /* row-major index of the element furthest outside (or nearest to being
                                 so) its tolerance; -1 when all are equal */
  double worst_got, worst_expected;
} o3_comparison_t;

/* Compares two tensors; INVALID_ARGUMENT when either has no valid type and shape. */
o3_status_t o3_tensorio_compare(const o3_tensor_t *got, const o3_tensor_t *expected,
                                const o3_tolerance_t *tolerance, o3_comparison_t *comparison) O3_MUST_USE;

#endif
