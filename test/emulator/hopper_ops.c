#include "hopper_ops.h"

#include <stdio.h>
#include <string.h>

#include "hopper_copies.h"
#include "hopper_groups.h"

// ---- Barriers in memory, and the copies that they count ----

void emu_mbarrier_init(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread, (void)results;
  emu_bar_init(operands[0].pointer, operands[1].u32);
}

void emu_mbarrier_arrive(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread;
  emu_bar_arrive(operands[0].pointer, 0);
  results[0].u64 = 0;  // a state, for the waits that take one
}

void emu_mbarrier_expect(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread;
  emu_bar_arrive(operands[0].pointer, operands[1].u32);
  results[0].u64 = 0;
}

void emu_mbarrier_try(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread;
  results[0].u64 = emu_bar_try(operands[0].pointer, operands[1].u32);
}

void emu_mbarrier_fence(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread, (void)operands, (void)results;
  emu_bar_fence();
}

enum { RANK = 4 };

static void coordinates(const emu_word_t *operands, int at[RANK]) {
  for (int i = 0; i < RANK; ++i) at[i] = operands[i].i32;
}

// to, barrier, map, coordinates, then |offsets|, a mask and a hint with flags whether they are there.
static void begin_load(const emu_word_t *operands, int num_offsets) {
  int at[RANK], offsets[2];
  const emu_word_t *more = operands + 3 + RANK;
  coordinates(operands + 3, at);
  for (int i = 0; i < num_offsets; ++i) offsets[i] = (int)(more[i].u64 & UINT16_MAX);
  if (more[num_offsets + 2].u64 & 1) emu_fail("a tensor copy to several blocks is not emulated");
  emu_copies_load(operands[0].pointer, operands[1].pointer, operands[2].pointer, RANK, at,
                  num_offsets ? offsets : NULL);
}

void emu_tensor_load(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread, (void)results;
  begin_load(operands, 0);
}

void emu_tensor_load_windows(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread, (void)results;
  begin_load(operands, 2);
}

void emu_tensor_store(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  int at[RANK];
  (void)thread, (void)results;
  coordinates(operands + 2, at);
  emu_copies_store(operands[0].pointer, operands[1].pointer, RANK, at);
}

void emu_tensor_commit(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread, (void)operands, (void)results;
  emu_copies_commit();
}

void emu_tensor_wait(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread, (void)results;
  emu_copies_wait(operands[0].i32);
}

void emu_proxy_fence(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread, (void)operands, (void)results;
  emu_copies_fence();
}

// ---- Products ----

void emu_products_wait(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread, (void)results;
  emu_wgmma_wait(operands[0].i32);
}

// "wgmma.wait_group.sync.aligned 0;" with the sums as operands that are results, too.
void emu_products_finish(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  uint32_t sums[EMU_PRODUCT_COLUMNS / 2];
  const emu_site_t *site = thread->site;
  int count = (int)site->num_results, groups = 0;
  if (count > EMU_PRODUCT_COLUMNS / 2 || sscanf(strchr(site->name, ' '), "%d", &groups) != 1)
    emu_fail("%s of %d sums is not emulated", site->name, count);
  emu_wgmma_wait(groups);
  for (int i = 0; i < count; ++i) sums[i] = operands[i].u32;
  emu_wgmma_collect(sums, count);
  for (int i = 0; i < count; ++i) results[i].u64 = sums[i];
}

// ---- Clusters ----

static struct {
  int arrived;
  uint64_t phase;
  uint64_t waits[EMU_MAX_CLUSTER][EMU_MAX_THREADS];  // the phase that each thread arrived in, and one
} cluster;

static int alive(void) {
  int count = 0;
  for (unsigned rank = 0; rank < emu_current()->cluster; ++rank) count += emu_cluster_block(rank)->alive;
  return count;
}

static void complete(void) {
  if (!cluster.arrived || cluster.arrived < alive()) return;
  cluster.arrived = 0;
  ++cluster.phase;
  emu_progress();
}

static uint64_t *wait_of(const emu_thread_t *thread) {
  return &cluster.waits[thread->warp->block->rank][thread->number];
}

void emu_cluster_arrive(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)operands, (void)results;
  if (*wait_of(thread)) emu_fail("a thread arrives at the cluster's barrier twice");
  *wait_of(thread) = cluster.phase + 1;
  ++cluster.arrived;
  complete();
}

// Threads that end do not come to it any more.
void emu_cluster_wait(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)operands, (void)results;
  if (!*wait_of(thread)) emu_fail("a thread waits at the cluster's barrier without having arrived");
  for (; cluster.phase < *wait_of(thread); complete()) emu_yield();
  *wait_of(thread) = 0;
}

void emu_map_address(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  uint32_t rank = operands[1].u32;
  if (rank >= emu_current()->cluster)
    emu_fail("mapa: block %u of a cluster of %u", rank, emu_current()->cluster);
  ptrdiff_t place = (const char *)operands[0].pointer - thread->warp->block->shared;
  results[0].pointer = emu_cluster_block(rank)->shared + place;
}

// ---- Blocks ----

void emu_hopper_begin(const emu_block_t *block) {
  emu_copies_begin(block);
  emu_groups_begin(block);
  if (block->rank) return;
  memset(&cluster, 0, sizeof cluster);
}

void emu_hopper_end(const emu_block_t *block) { emu_copies_end(block); }

void emu_hopper_wrote(const char *shared, int thread) { emu_copies_wrote(shared, thread); }
