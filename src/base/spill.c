/* Room in the file is reserved before it is mapped, because a page that the disk has no block for ends the
 * process by a signal. Freed parts are punched out of the file and their addresses in it not used again. */
#include "base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/strbuf.h"

struct o3_spill {
  int fd;
  int64_t end; /* of the file, a multiple of the page size */
};

/* Not every file system makes files without a name. */
static int open_unnamed(const char *folder) {
  int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  o3_strbuf_t name = O3_STRBUF_INIT;
  o3_strbuf_printf(&name, "%s/spill-XXXXXX", folder);
  errno = ENOMEM;
  if (!name.failed && (fd = mkostemp(name.text, O_CLOEXEC)) >= 0) unlink(name.text);
  o3_strbuf_deinit(&name);
  return fd;
}

o3_status_t o3_spill_create(const char *folder, o3_spill_t **spill) {
  *spill = NULL;
  o3_spill_t *self = o3_fault_calloc(1, sizeof(*self));
  if (!self) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  self->fd = open_unnamed(folder);
  if (self->fd < 0) {
    int error = errno;
    free(self);
    return o3_status_create(O3_STATUS_IO, "cannot make a file in '%s': %s", folder, strerror(error));
  }
  *spill = self;
  return NULL;
}

void o3_spill_destroy(o3_spill_t *self) {
  if (!self) return;
  close(self->fd);
  free(self);
}

static void punch(const o3_spill_t *self, const o3_spill_part_t *part) {
  /* Advice: without it the disk has the room back at the end. */
  (void)fallocate(self->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, part->offset, (off_t)part->bytes);
}

void o3_spill_alloc(o3_spill_t *self, size_t bytes, o3_spill_part_t *part) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), rounded;
  *part = (o3_spill_part_t){0};
  if (__builtin_add_overflow(bytes, page - 1, &rounded) || rounded > (size_t)(INT64_MAX - self->end)) return;
  o3_spill_part_t made = {.bytes = rounded / page * page, .offset = self->end};
  if (fallocate(self->fd, 0, made.offset, (off_t)made.bytes)) {
    punch(self, &made); /* a part of it may have been reserved */
    return;
  }
  self->end += (int64_t)made.bytes;
  made.data = mmap(NULL, made.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, made.offset);
  if (made.data == MAP_FAILED)
    punch(self, &made);
  else
    *part = made;
}

void o3_spill_free(const o3_spill_t *self, o3_spill_part_t *part) {
  munmap(part->data, part->bytes);
  punch(self, part);
  *part = (o3_spill_part_t){0};
}

void o3_spill_release(const o3_spill_part_t *part) {
  (void)madvise(part->data, part->bytes,
                MADV_DONTNEED); /* advice; a shared page's data stays with the file */
}
