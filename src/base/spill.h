/* Spill: memory with a file behind it, for data that is made once, large, and read seldom.
 *
 * The system may write such memory to the file and take its pages, where it would have to keep those of
 * malloc; o3_spill_release asks for that.
 */
#ifndef O3_BASE_SPILL_H
#define O3_BASE_SPILL_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct o3_spill o3_spill_t;

/* A part of the file in memory; |data| is page-aligned and may be written to. */
typedef struct o3_spill_part {
  void *data;
  size_t bytes;
  int64_t offset;
} o3_spill_part_t;

/* The file lies in |folder| and has no name: it is gone with the process, however that ends. */
o3_status_t o3_spill_create(const char *folder, o3_spill_t **spill) O3_MUST_USE;
/* All parts must have been freed. NULL is fine. */
void o3_spill_destroy(o3_spill_t *spill);

/* |bytes| (at least 1) zeroed bytes, |part->data| is NULL when the file system has no room for them or cannot
 * promise it: a full disk is known here, not when the memory is written to. */
void o3_spill_alloc(o3_spill_t *spill, size_t bytes, o3_spill_part_t *part);
void o3_spill_free(const o3_spill_t *spill, o3_spill_part_t *part);

/* Lets the system have the memory of what was read or written; it comes back where it is needed. */
void o3_spill_release(const o3_spill_part_t *part);

#endif
