// mbarriers in shared memory, and the copies of the tensor memory accelerator that they count.
//
// A load is done either when it is issued or, the latest that is legal, when its barrier lacks nothing else
// and is waited for; a store when it is issued or when its group is waited for. Which it is, is drawn. A
// barrier's state is in its 8 bytes: arrivals that the phase lacks (bits 0 to 19), that each phase has (20 to
// 39), bytes that it lacks (40 to 60, signed), the phase (61), and whether it was initialised (62) and fenced
// (63). All of it is of the running thread's block.
#ifndef O3_TEST_HOPPER_COPIES_H
#define O3_TEST_HOPPER_COPIES_H

#include "emulator.h"

void emu_bar_init(char *barrier, uint32_t count);
// fence.mbarrier_init: copies may count for the barriers that the running thread initialised.
void emu_bar_fence(void);
// An arrival with |bytes| that the phase waits for besides.
void emu_bar_arrive(char *barrier, uint32_t bytes);
// Whether the phase of |parity| is over; others run if it is not.
bool emu_bar_try(char *barrier, uint32_t parity);

// |coordinates| of the map's rank, innermost first; |offsets|: NULL, or of the tap of a window along x and y.
void emu_copies_load(char *shared, char *barrier, const void *map, int rank, const int *coordinates,
                     const int *offsets);
void emu_copies_store(const char *shared, const void *map, int rank, const int *coordinates);
void emu_copies_commit(void);
// Until at most |groups| of the running thread's groups of stores read shared memory.
void emu_copies_wait(int groups);

// 16 bytes of shared memory that |thread| wrote itself, and the running thread's fence.proxy.async: copies
// may read then what it wrote.
void emu_copies_wrote(const char *shared, int thread);
void emu_copies_fence(void);

void emu_copies_begin(const emu_block_t *block);
void emu_copies_end(const emu_block_t *block);

#endif
