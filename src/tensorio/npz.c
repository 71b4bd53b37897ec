/* NumPy's .npz format: a zip archive with one .npy file an array, stored or deflated. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "base/fault.h"
#include "tensorio/tensor.h"

/* Deflate cannot expand a byte to more (RFC 1951: 258 bytes from two bits, and a block's header). An
 * entry that claims more lies, and we do not ask for its memory. */
#define DEFLATE_MAX_RATIO 1032u
#define DEFLATE_SLACK     1024u

static o3_status_t zip_failure(const char *what, zip_error_t *error) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s: %s", what, zip_error_strerror(error));
}

/* What the directory says about entry |index|, once it is believable: |limit| is the archive's size. */
static o3_status_t stat_entry(zip_t *archive, zip_uint64_t index, size_t limit, zip_stat_t *stat) {
  const zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(archive, index, 0, stat)) return zip_failure("unreadable entry", zip_get_error(archive));
  if ((stat->valid & needed) != needed) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "entry %" PRIu64 " of the archive has no name or size", index);
  }
  if (stat->comp_method != ZIP_CM_STORE && stat->comp_method != ZIP_CM_DEFLATE) {
    return o3_status_create(O3_STATUS_UNSUPPORTED,
                            "array '%s' is compressed by method %u, stored or deflate expected", stat->name,
                            stat->comp_method);
  }
  const zip_uint64_t ratio = stat->comp_method == ZIP_CM_DEFLATE ? DEFLATE_MAX_RATIO : 1;
  if (stat->comp_size > limit || stat->size > stat->comp_size * ratio + DEFLATE_SLACK) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "array '%s' claims %" PRIu64 " bytes, which %" PRIu64
                            " compressed ones in a file of %zu cannot hold",
                            stat->name, stat->size, stat->comp_size, limit);
  }
  return NULL;
}

/* Reads an entry whole, the checksum included, into |data| of |size| bytes. */
static o3_status_t read_bytes(zip_t *archive, zip_uint64_t index, uint8_t *data, zip_uint64_t size) {
  zip_file_t *file = zip_fopen_index(archive, index, 0);
  if (!file) return zip_failure("unreadable entry", zip_get_error(archive));
  o3_status_t status = NULL;
  uint8_t beyond;
  const zip_int64_t got = zip_fread(file, data, size);
  /* The checksum is compared only when the end is reached. */
  if (got < 0 || zip_fread(file, &beyond, 1) < 0) {
    status = zip_failure("unreadable entry", zip_file_get_error(file));
  } else if ((zip_uint64_t)got != size) {
    status = o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                              "the entry ends after %" PRId64 " of %" PRIu64 " bytes", got, size);
  }
  const int error = zip_fclose(file);
  if (error && !status) {
    status = o3_status_create(O3_STATUS_INVALID_ARGUMENT, "unreadable entry: libzip error %d", error);
  }
  return status;
}

static o3_status_t read_entry(zip_t *archive, zip_uint64_t index, const zip_stat_t *stat,
                              o3_named_tensor_t *item) {
  const size_t length = strlen(stat->name), ending = strlen(".npy");
  if (length < ending || strcmp(stat->name + length - ending, ".npy") != 0) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "not an array: the name does not end in .npy");
  }
  item->name = o3_fault_malloc(length - ending + 1);
  uint8_t *data = o3_fault_malloc(stat->size ? stat->size : 1);
  o3_status_t status = NULL;
  if (!item->name || !data) {
    status = o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory for %" PRIu64 " bytes", stat->size);
  } else {
    memcpy(item->name, stat->name, length - ending);
    item->name[length - ending] = '\0';
    status = read_bytes(archive, index, data, stat->size);
    if (!status) status = o3_tensorio_npy_parse(data, stat->size, &item->tensor);
  }
  free(data);
  return status;
}

static o3_status_t read_archive(zip_t *archive, size_t size, o3_tensor_list_t *list) {
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  list->items = o3_fault_calloc(count > 0 ? (size_t)count : 1, sizeof *list->items);
  if (!list->items) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    O3_TRY(stat_entry(archive, (zip_uint64_t)i, size, &stat));
    list->count = (size_t)i + 1;
    O3_TRY_CONTEXT(read_entry(archive, (zip_uint64_t)i, &stat, &list->items[i]), "array '%s'", stat.name);
  }
  return NULL;
}

o3_status_t o3_tensorio_npz_parse(const uint8_t *data, size_t size, o3_tensor_list_t *list) {
  zip_error_t error;
  *list = (o3_tensor_list_t){0};
  /* libzip takes nothing at all for an archive without entries. */
  if (size == 0) return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "not a .npz file: it is empty");
  zip_error_init(&error);
  zip_source_t *source = zip_source_buffer_create(data, size, 0, &error);
  zip_t *archive = source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error) : NULL;
  if (!archive) {
    o3_status_t status = zip_failure("not a .npz file", &error);
    zip_source_free(source);
    zip_error_fini(&error);
    return status;
  }
  zip_error_fini(&error);
  o3_status_t status = read_archive(archive, size, list);
  zip_discard(archive);
  if (status) o3_tensorio_list_deinit(list);
  return status;
}

/* Adds |data| as "NAME.npy", stored; takes |data|. */
static o3_status_t add_bytes(zip_t *archive, const char *name, uint8_t *data, size_t size) {
  zip_source_t *source = zip_source_buffer(archive, data, size, 1); /* takes |data| */
  if (!source) {
    free(data);
    return zip_failure("cannot add to the archive", zip_get_error(archive));
  }
  const zip_int64_t index = zip_file_add(archive, name, source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return zip_failure("cannot add to the archive", zip_get_error(archive));
  }
  if (zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_STORE, 0)) {
    return zip_failure("cannot add to the archive", zip_get_error(archive));
  }
  return NULL;
}

static o3_status_t add_entry(zip_t *archive, const o3_named_tensor_t *item) {
  uint8_t *data;
  size_t size;
  o3_strbuf_t name = O3_STRBUF_INIT;
  o3_status_t status;
  o3_strbuf_printf(&name, "%s.npy", item->name);
  if (name.failed) {
    status = o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  } else {
    status = o3_tensorio_npy_print(&item->tensor, &data, &size);
    if (!status) status = add_bytes(archive, name.text, data, size);
  }
  o3_strbuf_deinit(&name);
  return status;
}

static o3_status_t open_for_writing(const char *path, zip_t **archive) {
  int code;
  *archive = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (*archive) return NULL;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  o3_status_t status =
      o3_status_create(O3_STATUS_IO, "cannot create '%s': %s", path, zip_error_strerror(&error));
  zip_error_fini(&error);
  return status;
}

o3_status_t o3_tensorio_npz_write(const char *path, const o3_named_tensor_t *items, size_t count) {
  zip_t *archive;
  O3_TRY(open_for_writing(path, &archive));
  o3_status_t status = NULL;
  for (size_t i = 0; i < count && !status; ++i) {
    status = o3_status_annotate(add_entry(archive, &items[i]), "'%s': array '%s'", path, items[i].name);
  }
  /* zip_close writes to a temporary file and renames it. */
  if (!status && zip_close(archive) == 0) return NULL;
  if (!status) status = o3_status_create(O3_STATUS_IO, "cannot write '%s': %s", path, zip_strerror(archive));
  zip_discard(archive);
  return status;
}
