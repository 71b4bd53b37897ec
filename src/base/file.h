/* Files: mapped for reading, written whole or not at all. */
#ifndef O3_BASE_FILE_H
#define O3_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A file mapped read-only; |data| is never NULL (an empty file has size 0 and a valid pointer). */
typedef struct o3_mapped_file {
  const uint8_t *data;
  size_t size;
} o3_mapped_file_t;

/* NOT_FOUND or IO with the path and the system's reason. Refuses what is not a regular file. */
o3_status_t o3_file_map(const char *path, o3_mapped_file_t *file) O3_MUST_USE;
void o3_file_unmap(o3_mapped_file_t *file);
/* Lets the system have the memory that holds what was read of the file; it is read again where it is needed.
 */
void o3_file_release(const o3_mapped_file_t *file);

/* Replaces |path| by |size| bytes, through a temporary file in the same folder and rename. */
o3_status_t o3_file_write(const char *path, const void *data, size_t size) O3_MUST_USE;

/* The same in two steps, for contents in pieces and for files that must appear together: prepare writes the
 * temporary file, commit renames it, discard removes it. Both take |file|; NULL is allowed to discard. */
typedef struct o3_file_piece {
  const void *data;
  size_t size;
} o3_file_piece_t;
typedef struct o3_prepared_file o3_prepared_file_t;
o3_status_t o3_file_prepare(const char *path, const o3_file_piece_t *pieces, size_t count,
                            o3_prepared_file_t **file) O3_MUST_USE;
o3_status_t o3_file_commit(o3_prepared_file_t *file) O3_MUST_USE;
void o3_file_discard(o3_prepared_file_t *file);
/* Two files that belong together, |second| names |first|: both are renamed, or, when that fails, both are as
 * they were. Takes both. */
o3_status_t o3_file_commit_pair(o3_prepared_file_t *first, o3_prepared_file_t *second) O3_MUST_USE;

/* Ends what was printed on stdout; IO when stdout did not take all of it. */
o3_status_t o3_file_stdout_end(void) O3_MUST_USE;

/* A private folder under $TMPDIR or /tmp. *|path| is malloc'ed and the caller's to free. */
o3_status_t o3_file_temp_dir_create(char **path) O3_MUST_USE;
/* Removes the folder and the plain files in it. */
void o3_file_temp_dir_remove(const char *path);

#endif
