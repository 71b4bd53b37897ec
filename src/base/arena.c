/* Blocks in a list, filled from the front. A block doubles the last one's size up to a limit, so that a
 * small compilation stays small and a large one makes few blocks. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

enum { ALIGNMENT = 16, FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

typedef struct block {
  struct block *next;
  size_t size; /* of |data| */
  alignas(ALIGNMENT) unsigned char data[];
} block_t;

struct o3_arena {
  block_t *blocks; /* the newest first: allocations come from it */
  size_t used;     /* of the newest block */
  size_t next_size;
};

o3_arena_t *o3_arena_create(void) {
  o3_arena_t *arena = o3_fault_calloc(1, sizeof *arena);
  if (arena) arena->next_size = FIRST_BLOCK;
  return arena;
}

void o3_arena_destroy(o3_arena_t *arena) {
  if (!arena) return;
  for (block_t *block = arena->blocks, *next; block; block = next) {
    next = block->next;
    free(block);
  }
  free(arena);
}

/* Zeroed, so that o3_arena_alloc need not: calloc of large blocks gets pages that are zero already. */
static block_t *block_create(size_t size) {
  if (size > SIZE_MAX - sizeof(block_t)) return NULL;
  block_t *block = o3_fault_calloc(1, sizeof *block + size);
  if (block) block->size = size;
  return block;
}

/* A block of its own for a large request, behind the newest so that the room left there is kept. */
static void *alloc_large(o3_arena_t *arena, size_t bytes) {
  block_t *block = block_create(bytes);
  if (!block) return NULL;
  if (arena->blocks) {
    block->next = arena->blocks->next;
    arena->blocks->next = block;
  } else {
    arena->blocks = block;
    arena->used = bytes;
  }
  return block->data;
}

static bool push_block(o3_arena_t *arena) {
  block_t *block = block_create(arena->next_size);
  if (!block) return false;
  if (arena->next_size < LARGEST_BLOCK) arena->next_size *= 2;
  block->next = arena->blocks;
  arena->blocks = block;
  arena->used = 0;
  return true;
}

static void *alloc_bytes(o3_arena_t *arena, size_t bytes) {
  /* Distinct addresses even for nothing: a pointer map may use them as keys. */
  if (bytes == 0) bytes = 1;
  if (bytes > SIZE_MAX - ALIGNMENT) return NULL;
  bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  if (!arena->blocks || bytes > arena->blocks->size - arena->used) {
    if (bytes > arena->next_size / 4) return alloc_large(arena, bytes);
    if (!push_block(arena)) return NULL;
  }
  void *memory = arena->blocks->data + arena->used;
  arena->used += bytes;
  return memory;
}

void *o3_arena_alloc(o3_arena_t *arena, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  return alloc_bytes(arena, bytes);
}

char *o3_arena_strndup(o3_arena_t *arena, const char *text, size_t length) {
  if (length == SIZE_MAX) return NULL;
  char *copy = alloc_bytes(arena, length + 1);
  if (copy && length) memcpy(copy, text, length);
  return copy;
}

char *o3_arena_strdup(o3_arena_t *arena, const char *text) {
  return o3_arena_strndup(arena, text, strlen(text));
}

char *o3_arena_printf(o3_arena_t *arena, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = length < 0 ? NULL : alloc_bytes(arena, (size_t)length + 1);
  if (text) vsnprintf(text, (size_t)length + 1, format, args);
  va_end(args);
  return text;
}
