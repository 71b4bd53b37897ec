/* Quantisation of what is only known when it is there. */
#ifndef O3_NORMALIZE_ONNX_QUANTIZE_H
#define O3_NORMALIZE_ONNX_QUANTIZE_H

#include "normalize/nz.h"

typedef struct o3_nz_quantized {
  MlirValue bytes;      /* ui8, of x's shape: round(x / scale) + zero_point */
  MlirValue scale;      /* rank 0, of x's element type */
  MlirValue zero_point; /* rank 0, ui8 */
} o3_nz_quantized_t;

/* The range of the float tensor x and 0 on 0..255; a range of one point takes the scale 1. */
o3_nz_quantized_t o3_nz_dynamic_quantize(o3_nz_t *nz, MlirValue x);

#endif
