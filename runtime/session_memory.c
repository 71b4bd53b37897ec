/* Scratch blocks are kept from run to run: runs of one model ask for the same sizes in the same order, so
 * the first spare block almost always fits, and the system's page faults are paid once. What a whole run
 * did not use is given back, so a single large input does not hold its memory for ever. */
#include "session_memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE    ((size_t)2 << 20)
#define HEADER_BYTES ((size_t)O3RT_ALIGNMENT) /* keeps the block's memory aligned */

_Static_assert(sizeof(o3rt_block_t) <= HEADER_BYTES, "a block's header fits before its memory");

// What huge pages take of |bytes|: a last one that would be more than half full, too.
static size_t huge_part(size_t bytes) {
  size_t rest = bytes % HUGE_PAGE;
  return bytes - rest + (rest > HUGE_PAGE / 2 ? HUGE_PAGE : 0);
}

static void *aligned_allocate(size_t bytes) {
  size_t huge = huge_part(bytes);
  void *memory;
  if (posix_memalign(&memory, huge ? HUGE_PAGE : O3RT_ALIGNMENT, huge > bytes ? huge : bytes) != 0)
    return NULL;
  // Fewer TLB misses where the kernel grants it; a refusal changes nothing else.
  if (huge) (void)madvise(memory, huge, MADV_HUGEPAGE);
  return memory;
}

static void list_init(o3rt_block_t *head) { head->next = head->previous = head; }

static void list_append(o3rt_block_t *head, o3rt_block_t *block) {
  block->next = head;
  block->previous = head->previous;
  head->previous->next = block;
  head->previous = block;
}

static void list_remove(o3rt_block_t *block) {
  block->previous->next = block->next;
  block->next->previous = block->previous;
}

static void list_free(o3rt_memory_t *memory, o3rt_block_t *head) {
  for (o3rt_block_t *block = head->next, *next; block != head; block = next) {
    next = block->next;
    memory->scratch_bytes -= block->bytes;
    free(block);
  }
  list_init(head);
}

static void *block_data(const o3rt_block_t *block) { return (void *)((uintptr_t)block + HEADER_BYTES); }

void o3rt_memory_init(o3rt_memory_t *memory) {
  memory->arena = NULL;
  memory->arena_bytes = 0;
  memory->scratch_bytes = 0;
  list_init(&memory->live);
  list_init(&memory->spare);
}

void o3rt_memory_deinit(o3rt_memory_t *memory) {
  list_free(memory, &memory->live);
  list_free(memory, &memory->spare);
  free(memory->arena);
}

void o3rt_memory_recycle(o3rt_memory_t *memory) {
  list_free(memory, &memory->spare);
  while (memory->live.next != &memory->live) {
    o3rt_block_t *block = memory->live.next;
    list_remove(block);
    list_append(&memory->spare, block);
  }
}

void *o3rt_memory_arena(o3rt_memory_t *memory, int64_t bytes) {
  if (bytes < 0) return NULL;
  size_t wanted = bytes > 0 ? (size_t)bytes : 1;
  if (wanted <= memory->arena_bytes) return memory->arena;
  free(memory->arena);
  memory->arena = aligned_allocate(wanted);
  memory->arena_bytes = memory->arena ? wanted : 0;
  return memory->arena;
}

// The first spare block that is large enough and wastes at most half.
static o3rt_block_t *find_spare(o3rt_memory_t *memory, size_t bytes) {
  for (o3rt_block_t *block = memory->spare.next; block != &memory->spare; block = block->next)
    if (block->bytes >= bytes && block->bytes / 2 <= bytes) return block;
  return NULL;
}

void *o3rt_memory_alloc(o3rt_memory_t *memory, int64_t bytes) {
  if (bytes < 0) return NULL;
  o3rt_block_t *block = find_spare(memory, (size_t)bytes);
  if (block) {
    list_remove(block);
  } else {
    block = aligned_allocate(HEADER_BYTES + (size_t)bytes);
    if (!block) return NULL;
    block->bytes = (size_t)bytes;
    memory->scratch_bytes += block->bytes;
  }
  list_append(&memory->live, block);
  return block_data(block);
}

void o3rt_memory_free(o3rt_memory_t *memory, void *data) {
  if (!data) return;
  void *header = (char *)data - HEADER_BYTES;
  o3rt_block_t *block = header;
  list_remove(block);
  list_append(&memory->spare, block);
}

bool o3rt_ranges_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
  uintptr_t a_begin = (uintptr_t)a, b_begin = (uintptr_t)b;
  return a_begin < b_begin ? b_begin - a_begin < (a_bytes ? a_bytes : 1)
                           : a_begin - b_begin < (b_bytes ? b_bytes : 1);
}

static bool list_overlaps(const o3rt_block_t *head, const void *data, size_t bytes) {
  for (const o3rt_block_t *block = head->next; block != head; block = block->next)
    if (o3rt_ranges_overlap(block_data(block), block->bytes, data, bytes)) return true;
  return false;
}

bool o3rt_memory_overlaps(const o3rt_memory_t *memory, const void *data, size_t bytes) {
  if (memory->arena_bytes && o3rt_ranges_overlap(memory->arena, memory->arena_bytes, data, bytes))
    return true;
  return list_overlaps(&memory->live, data, bytes) || list_overlaps(&memory->spare, data, bytes);
}

size_t o3rt_memory_bytes(const o3rt_memory_t *memory) { return memory->arena_bytes + memory->scratch_bytes; }
