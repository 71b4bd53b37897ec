// The functions of hopper_ops.def, and what the core calls for them.
#ifndef O3_TEST_HOPPER_OPS_H
#define O3_TEST_HOPPER_OPS_H

#include "emu_ops.h"

// A block begins, all of a cluster before they run; and all of them have ended: no copy may be left.
void emu_hopper_begin(const emu_block_t *block);
void emu_hopper_end(const emu_block_t *block);
// |thread| wrote 16 bytes of shared memory itself, which are not yet for copies to read.
void emu_hopper_wrote(const char *shared, int thread);

#endif
