/* The memory of one session: an arena whose layout the compiler planned, and scratch blocks for
 * buffers whose sizes are known only during a run. Used by one thread at a time. */
#ifndef O3_RUNTIME_SESSION_MEMORY_H
#define O3_RUNTIME_SESSION_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define O3RT_ALIGNMENT 64 /* bytes: a cache line, and the widest vector */

/* The header of a scratch block; its memory follows. */
typedef struct o3rt_block {
  struct o3rt_block *next, *previous;
  size_t bytes;
} o3rt_block_t;

typedef struct o3rt_memory {
  void *arena;
  size_t arena_bytes;
  o3rt_block_t live;  /* list heads: blocks of this run, */
  o3rt_block_t spare; /* and blocks kept for reuse */
  size_t scratch_bytes;
} o3rt_memory_t;

void o3rt_memory_init(o3rt_memory_t *memory);
void o3rt_memory_deinit(o3rt_memory_t *memory);

/* Starts a run: every scratch block of the last one may be handed out again. */
void o3rt_memory_recycle(o3rt_memory_t *memory);

/* The arena, at least |bytes| long; when it has to grow, what was in it is lost. NULL when memory is out or
 * |bytes| is negative. */
void *o3rt_memory_arena(o3rt_memory_t *memory, int64_t bytes);

/* A scratch block, valid until it is freed or recycled. NULL when memory is out or |bytes| is negative. */
void *o3rt_memory_alloc(o3rt_memory_t *memory, int64_t bytes);

/* |data| came from o3rt_memory_alloc, or is NULL. */
void o3rt_memory_free(o3rt_memory_t *memory, void *data);

/* Whether any of [data, data + bytes) lies in the arena or in a scratch block; with 0 bytes, whether |data|
 * points into one. */
bool o3rt_memory_overlaps(const o3rt_memory_t *memory, const void *data, size_t bytes);

/* Bytes of arena and scratch, spare blocks included. */
size_t o3rt_memory_bytes(const o3rt_memory_t *memory);

/* Whether [a, a + a_bytes) and [b, b + b_bytes) share a byte; an empty range counts as one byte long. */
bool o3rt_ranges_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes);

#endif
