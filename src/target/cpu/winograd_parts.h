/* Inside the emitter of Winograd convolutions. */
#ifndef O3_TARGET_CPU_WINOGRAD_PARTS_H
#define O3_TARGET_CPU_WINOGRAD_PARTS_H

#include "target/cpu/blocked_match.h"
#include "target/cpu/winograd_kernel.h"

/* The output transform as far as ops on its result are concerned: n, m, oh, ow and lane are its dims 0 to 4.
 */
bool o3_winograd_read_output(MlirOperation output, o3_blocked_t *product);

#endif
