/* Arena: memory that lives and dies together. One per compilation, a scratch one per pass.
 *
 * All allocation functions are checked: sizes that overflow or memory that is out give NULL, which
 * callers turn into O3_STATUS_OUT_OF_MEMORY with O3_TRY_ALLOC.
 */
#ifndef O3_BASE_ARENA_H
#define O3_BASE_ARENA_H

#include <stddef.h>

#include "base/status.h"

typedef struct o3_arena o3_arena_t;

/* NULL when memory is out. */
o3_arena_t *o3_arena_create(void);
void o3_arena_destroy(o3_arena_t *arena);

/* Zeroed memory, 16-byte aligned, for |count| items of |size| bytes. Owned by the arena. */
void *o3_arena_alloc(o3_arena_t *arena, size_t count, size_t size);

/* A NUL-terminated copy of |length| bytes. */
char *o3_arena_strndup(o3_arena_t *arena, const char *text, size_t length);
char *o3_arena_strdup(o3_arena_t *arena, const char *text);
char *o3_arena_printf(o3_arena_t *arena, const char *format, ...) O3_PRINTF(2, 3);

#define O3_ARENA_NEW(arena, type)          ((type *)o3_arena_alloc((arena), 1, sizeof(type)))
#define O3_ARENA_ARRAY(arena, type, count) ((type *)o3_arena_alloc((arena), (count), sizeof(type)))

/* Leaves the function with an out-of-memory failure when |pointer| is NULL. */
#define O3_TRY_ALLOC(pointer)                                                          \
  do {                                                                                 \
    if (!(pointer)) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory"); \
  } while (0)

#endif
