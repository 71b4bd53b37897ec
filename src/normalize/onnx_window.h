/* What ONNX's convolutions and pools have in common: kernel_shape, strides, dilations, pads and auto_pad. */
#ifndef O3_NORMALIZE_ONNX_WINDOW_H
#define O3_NORMALIZE_ONNX_WINDOW_H

#include "normalize/nz.h"

/* A window over the spatial dimensions, those behind N and C. */
typedef struct o3_window {
  int rank;
  int64_t kernel[O3_IR_MAX_RANK], strides[O3_IR_MAX_RANK], dilations[O3_IR_MAX_RANK];
  int64_t pads[2 * O3_IR_MAX_RANK];                           /* begins then ends */
  MlirAffineExpr lows[O3_IR_MAX_RANK], highs[O3_IR_MAX_RANK]; /* the same as expressions */
  bool symbolic; /* some pad is no constant, or negative: pads are zero and lows, highs say it all */
} o3_window_t;

/* Reads the node's window for the input |x|. The kernel is that of the weights |w|, or kernel_shape when |w|
 * is null. Pads are those of auto_pad when it is set. */
o3_status_t o3_window_read(o3_nz_t *nz, const o3_node_t *node, MlirValue x, MlirValue w, o3_window_t *window)
    O3_MUST_USE;
/* The same without pads: only kernel, strides and dilations. */
o3_status_t o3_window_read_sizes(o3_nz_t *nz, const o3_node_t *node, MlirValue x, MlirValue w,
                                 o3_window_t *window) O3_MUST_USE;

/* |x| with its spatial dimensions padded by |value| where the window's pads are symbolic, else |x| itself. */
MlirValue o3_window_pad(o3_nz_t *nz, const o3_window_t *window, MlirValue x, double value);

/* x with lows[i] and highs[i] (may be negative) elements of |value| around each dimension: o3.pad, constant.
 */
MlirValue o3_nz_pad(o3_nz_t *nz, MlirValue x, const MlirAffineExpr *lows, const MlirAffineExpr *highs,
                    MlirValue value);

/* The convolution of operands x, w and, when |count| is 3, bias, with the node's window and group. |acc|:
 * element type of the sum and result, null for that of x. */
o3_status_t o3_nz_conv(o3_nz_t *nz, const o3_node_t *node, int count, const MlirValue *operands, MlirType acc,
                       MlirValue *result) O3_MUST_USE;

#endif
