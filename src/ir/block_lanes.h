/* Lanes of a block of the dialect's blocked ops (ops.def): channels of an image, columns of packed weights.
 * Without MLIR, for what writes text or computes costs. */
#ifndef O3_IR_BLOCK_LANES_H
#define O3_IR_BLOCK_LANES_H

enum { O3_BLOCK_LANES = 16 };

#endif
