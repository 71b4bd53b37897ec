// The functions of emu_ops.def.
#ifndef O3_TEST_EMU_OPS_H
#define O3_TEST_EMU_OPS_H

#include "emulator.h"

#define EMU_THREAD(pattern, function)          emu_thread_fn_t function;
#define EMU_WARP_OP(pattern, function, masked) emu_warp_fn_t function;
#include "emu_ops.def"
#undef EMU_THREAD
#undef EMU_WARP_OP

// The threads of |lanes|, lowest first: EMU_EACH(thread, warp, lanes) { ... }
#define EMU_EACH(thread, warp, lanes)                                                         \
  for (emu_thread_t *thread = (warp)->threads; thread < (warp)->threads + EMU_WARP; ++thread) \
    if ((lanes) >> (thread - (warp)->threads) & 1)

// Operations of the tensor cores are for whole warps.
static inline void emu_check_whole(const emu_warp_t *warp, uint32_t lanes) {
  if (lanes != UINT32_MAX) emu_fail("lanes %08x of warp %d are not a whole warp", lanes, warp->number);
}

#endif
