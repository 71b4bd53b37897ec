// wgmma as a warpgroup runs it: products are issued, committed as groups, and waited for.
//
// A product runs when the first of the 128 threads waits for it, the latest that is legal; what it reads of
// shared memory is compared with what was there when the last of them had issued it. Until then its sums are
// NaNs that name them, so a result that is used too early is wrong.
#ifndef O3_TEST_HOPPER_GROUPS_H
#define O3_TEST_HOPPER_GROUPS_H

#include "emulator.h"
#include "hopper_product.h"

typedef struct emu_wgmma {
  emu_element_t element;
  int columns;
  bool accumulate, a_in_registers;
  bool a_by_k, b_by_k;
  uint64_t a, b;  // descriptors
} emu_wgmma_t;

// For the running thread. |sums|: n / 2 registers, before and behind; |a|: four, or NULL.
void emu_wgmma_issue(const emu_wgmma_t *product, uint32_t *sums, const uint32_t *a);
void emu_wgmma_commit(void);
// Until at most |groups| run.
void emu_wgmma_wait(int groups);
// The sums that |registers| name, of products that were waited for.
void emu_wgmma_collect(uint32_t *registers, int count);

// A block begins: none of its products run.
void emu_groups_begin(const emu_block_t *block);

#endif
