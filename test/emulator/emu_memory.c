// Memory that tells what is wrong with its users: it is NaNs at first, and ends at pages without access. The
// start has to be aligned, so up to a last page there may be bytes that belong to nobody: they have a
// pattern.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulator.h"

#define WINDOWS ((char *)UINT64_C(0x20000000))

enum { ALIGNMENT = 256, NOT_A_NUMBER = 0xff, BEYOND = 0xa5 };

typedef struct block {
  char *mapping, *start;
  size_t mapped, bytes;
  struct block *next;
} block_t;

static block_t *blocks;

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

void *emu_memory_alloc(size_t bytes) {
  size_t kept = round_up(bytes ? bytes : 1, ALIGNMENT), middle = round_up(kept, page());
  block_t *block = malloc(sizeof *block);
  if (!block) return NULL;
  *block = (block_t){.mapped = middle + 2 * page(), .bytes = bytes, .next = blocks};
  block->mapping =
      mmap(NULL, block->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block->mapping == MAP_FAILED) {
    free(block);
    return NULL;
  }
  char *end = block->mapping + page() + middle;
  block->start = end - kept;
  mprotect(block->mapping, page(), PROT_NONE);
  mprotect(end, page(), PROT_NONE);
  memset(block->start, NOT_A_NUMBER, bytes);
  memset(block->start + bytes, BEYOND, kept - bytes);
  blocks = block;
  return block->start;
}

void emu_memory_free(void *memory) {
  block_t **place = &blocks;
  while (*place && (*place)->start != memory) place = &(*place)->next;
  block_t *block = *place;
  if (!block) return;
  *place = block->next;
  munmap(block->mapping, block->mapped);
  free(block);
}

static bool intact(const char *from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    if ((unsigned char)from[i] != BEYOND) return false;
  return true;
}

const char *emu_memory_check(void) {
  static char message[96];
  for (const block_t *block = blocks; block; block = block->next) {
    size_t kept = round_up(block->bytes ? block->bytes : 1, ALIGNMENT);
    if (intact(block->start + block->bytes, kept - block->bytes)) continue;
    snprintf(message, sizeof message, "it has written beyond the end of %zu bytes of memory", block->bytes);
    return message;
  }
  return NULL;
}

// ---- Shared memory ----

// A window each, of which a launch gets the first pages.
char *emu_shared_window(unsigned rank) {
  static bool mapped;
  if (!mapped) {
    void *at = mmap(WINDOWS, (size_t)EMU_MAX_CLUSTER * EMU_SHARED_WINDOW, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != WINDOWS) return NULL;
    mapped = true;
  }
  return WINDOWS + (size_t)rank * EMU_SHARED_WINDOW;
}

void emu_shared_begin(char *window, size_t bytes) {
  size_t middle = round_up(bytes, page());
  mprotect(window, middle, PROT_READ | PROT_WRITE);
  mprotect(window + middle, EMU_SHARED_WINDOW - middle, PROT_NONE);
  memset(window, NOT_A_NUMBER, bytes);
  memset(window + bytes, BEYOND, middle - bytes);
}

bool emu_shared_intact(const char *window, size_t bytes) {
  return intact(window + bytes, round_up(bytes, page()) - bytes);
}
