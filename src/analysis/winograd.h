/* Winograd's minimal filtering for 3x3 convolutions of stride 1: m x m outputs from (m+2) x (m+2) inputs with
 * (m+2)^2 multiplications a channel instead of 9 m^2.
 *
 *     Y = A [ (G g G^T) .* (B d B^T) ] A^T      d: patch, g: weights; sums over channels inside of [ ]
 *
 * Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (arXiv:1509.09308), interpolation
 * points 0, 1, -1, (2, -2,) infinity. */
#ifndef O3_ANALYSIS_WINOGRAD_H
#define O3_ANALYSIS_WINOGRAD_H

#include "ir/pass.h"

enum { O3_WINOGRAD_TAPS = 3, O3_WINOGRAD_MAX_POINTS = 6, O3_WINOGRAD_REASON = 160 };

typedef struct o3_winograd {
  int tile;        /* m: outputs in each direction */
  int points;      /* m + 2 */
  const double *g; /* points x 3 */
  const double *b; /* points x points; small integers */
  const double *a; /* m x points; small integers */
} o3_winograd_t;

/* The form of |tile| outputs, 2 or 4; NULL for others. */
const o3_winograd_t *o3_winograd_find(int64_t tile);

/* A convolution with 3x3 windows of stride 1; sizes of -1 are known only at run time. */
typedef struct o3_winograd_layer {
  int64_t images, height, width; /* of the output */
  int64_t channels, outputs;
  int64_t model_bytes; /* o3_winograd_model_bytes */
} o3_winograd_layer_t;

/* Bytes of all constants of the module that |op| is in. */
int64_t o3_winograd_model_bytes(MlirOperation op);

typedef struct o3_winograd_choice {
  int tile;           /* 0: the direct convolution is faster */
  double gain;        /* time of the direct convolution over that of this one; at least 1 */
  double likely_gain; /* the same without the care that |gain| is estimated with: what others have to beat */
  char reason[O3_WINOGRAD_REASON];
} o3_winograd_choice_t;

/* The fastest way to compute |layer| by the model in winograd_cost.c, and why. */
void o3_winograd_choose(const o3_winograd_layer_t *layer, const o3_machine_t *machine,
                        o3_winograd_choice_t *choice);

#endif
