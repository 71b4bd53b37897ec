/* Names are made unique here, because MLIR's resource blobs live in a table of the context, and a blob that
 * came second under a taken name would be renamed behind our back. */
#include "ir/weights.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/map.h"
#include "base/spill.h"
#include "base/strbuf.h"

/* Allocations from here on lie in the spill file; smaller ones are not worth a mapping. */
#define SPILL_BYTES ((size_t)1 << 20)
/* So much is read before memory is given back. */
#define PACE_BYTES ((size_t)32 << 20)

typedef struct entry {
  const char *name;
  MlirType type;
  const void *data;
  size_t bytes;
  MlirAttribute attr;
  bool intermediate, used; /* see o3_weights_drop_unused */
} entry_t;

/* Memory of o3_weights_alloc, malloc'ed unless it is a part of the spill file. */
typedef struct block {
  void *data;
  o3_spill_part_t part;
} block_t;

struct o3_weights {
  MlirContext context;
  o3_arena_t *arena;
  o3_str_map_t *by_name;  /* entry_t */
  o3_ptr_map_t *expanded; /* attribute -> expanded_t, for attributes that hold their own data */
  o3_ptr_vec_t entries;
  o3_ptr_vec_t files;    /* o3_mapped_file_t */
  o3_ptr_vec_t blocks;   /* block_t, freed at the end */
  o3_ptr_map_t *by_data; /* data -> block_t */
  o3_spill_t *spill;     /* NULL: all blocks are malloc'ed */
  size_t read;           /* bytes since memory was given back */
};

typedef struct expanded {
  const void *data;
  size_t bytes;
} expanded_t;

o3_status_t o3_weights_create(MlirContext context, o3_weights_t **out) {
  *out = NULL;
  o3_arena_t *arena = o3_arena_create();
  O3_TRY_ALLOC(arena);
  o3_weights_t *self = O3_ARENA_NEW(arena, o3_weights_t);
  if (self) {
    *self = (o3_weights_t){.context = context,
                           .arena = arena,
                           .by_name = o3_str_map_create(arena),
                           .expanded = o3_ptr_map_create(arena),
                           .by_data = o3_ptr_map_create(arena),
                           .entries = o3_ptr_vec(arena),
                           .files = o3_ptr_vec(arena),
                           .blocks = o3_ptr_vec(arena)};
  }
  if (!self || !self->by_name || !self->expanded || !self->by_data) {
    o3_arena_destroy(arena);
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  *out = self;
  return NULL;
}

static void free_block(const o3_weights_t *self, block_t *block) {
  if (block->part.data)
    o3_spill_free(self->spill, &block->part);
  else
    free(block->data);
  block->data = NULL; /* twice is nothing: constants may share data */
}

o3_status_t o3_weights_spill(o3_weights_t *self, const char *folder) {
  O3_ASSERT(!self->spill, "a store has one spill file");
  return o3_spill_create(folder, &self->spill);
}

void o3_weights_destroy(o3_weights_t *self) {
  if (!self) return;
  for (size_t i = 0; i < self->files.count; ++i) o3_file_unmap(self->files.items[i]);
  for (size_t i = 0; i < self->blocks.count; ++i) free_block(self, self->blocks.items[i]);
  o3_spill_destroy(self->spill);
  o3_arena_destroy(self->arena);
}

/* Resource names are identifiers in MLIR's text: what is none of [A-Za-z0-9_.] becomes '_'. */
static const char *unique_name(o3_weights_t *self, const char *name) {
  char *base = o3_arena_strdup(self->arena, name && name[0] ? name : "weight");
  if (!base) return NULL;
  for (char *c = base; *c; ++c) {
    bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                 *c == '_' || *c == '.';
    if (!plain) *c = '_';
  }
  if (base[0] >= '0' && base[0] <= '9') base = o3_arena_printf(self->arena, "w%s", base);
  const char *result = base;
  for (size_t i = self->entries.count; result && o3_str_map_get(self->by_name, result, strlen(result)); ++i)
    result = o3_arena_printf(self->arena, "%s_%zu", base, i);
  return result;
}

static o3_status_t add_inline(MlirType type, const void *data, size_t bytes, MlirAttribute *attr) {
  *attr = mlirDenseElementsAttrRawBufferGet(type, bytes, data);
  if (!mlirAttributeIsNull(*attr)) return NULL;
  return o3_status_create(O3_STATUS_INTERNAL, "a constant of %zu bytes does not fit its type", bytes);
}

/* MLIR wants i1 constants bit-packed in resources and byte by byte in its boolean interface. */
static o3_status_t add_bools(MlirType type, const uint8_t *data, size_t bytes, MlirAttribute *attr) {
  int *values = malloc((bytes ? bytes : 1) * sizeof(int));
  O3_TRY_ALLOC(values);
  for (size_t i = 0; i < bytes; ++i) values[i] = data[i] != 0;
  *attr = mlirDenseElementsAttrBoolGet(type, (intptr_t)bytes, values);
  free(values);
  return NULL;
}

/* The C API has no way to ask a resource attribute for its name, but prints it: dense_resource<NAME> : type.
 * NULL for other attributes; the name lies in *|text|, to be free()'d. */
static const char *resource_name(MlirAttribute attr, char **text, size_t *length) {
  static const char PREFIX[] = "dense_resource<";
  *text = o3_attr_text(attr);
  if (!*text || strncmp(*text, PREFIX, sizeof(PREFIX) - 1) != 0) return NULL;
  const char *name = *text + sizeof(PREFIX) - 1;
  *length = strcspn(name, ">");
  if (*length > 1 && name[0] == '"') ++name, *length -= 2;
  return name;
}

/* A module that was parsed before its weights were loaded has taken their names in MLIR's table, so that the
 * attribute made here gets another: an entry is found by both. */
static o3_status_t enter(o3_weights_t *self, entry_t *entry) {
  char *text;
  size_t length = 0;
  const char *name = resource_name(entry->attr, &text, &length);
  bool entered = name && o3_str_map_put(self->by_name, entry->name, strlen(entry->name), entry) &&
                 o3_str_map_put(self->by_name, name, length, entry) && o3_ptr_vec_push(&self->entries, entry);
  free(text);
  return entered ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

o3_status_t o3_weights_add(o3_weights_t *self, const char *name, MlirType type, const void *data,
                           size_t bytes, MlirAttribute *attr) {
  MlirType element = o3_type_element(type);
  O3_ASSERT(
      o3_type_count(type) >= 0 && (size_t)o3_type_count(type) * (size_t)(o3_type_bits(element) / 8) == bytes,
      "the data fits the type");
  if (o3_type_is_bool(element)) return add_bools(type, data, bytes, attr);
  if (bytes <= O3_WEIGHTS_INLINE_BYTES) return add_inline(type, data, bytes, attr);
  entry_t *entry = O3_ARENA_NEW(self->arena, entry_t);
  O3_TRY_ALLOC(entry);
  *entry = (entry_t){.name = unique_name(self, name), .type = type, .data = data, .bytes = bytes};
  O3_TRY_ALLOC(entry->name);
  /* MLIR only keeps the pointer; const is restored by its immutable flag. */
  entry->attr =
      mlirUnmanagedDenseResourceElementsAttrGet(type, O3_STR(entry->name), (void *)(uintptr_t)data, bytes,
                                                (size_t)(o3_type_bits(element) / 8), false, NULL, NULL);
  if (mlirAttributeIsNull(entry->attr))
    return o3_status_create(O3_STATUS_INTERNAL, "weight '%s' was refused by MLIR", entry->name);
  O3_TRY(enter(self, entry));
  *attr = entry->attr;
  return NULL;
}

/* Zeroed: a part of a file comes so. */
static void alloc_block(const o3_weights_t *self, size_t bytes, block_t *block) {
  if (self->spill && bytes >= SPILL_BYTES) o3_spill_alloc(self->spill, bytes, &block->part);
  block->data = block->part.data;
  size_t rounded;
  if (block->data || __builtin_add_overflow(bytes, (size_t)127, &rounded)) return;
  block->data = aligned_alloc(64, rounded / 64 * 64);
  if (block->data) memset(block->data, 0, bytes);
}

void *o3_weights_alloc(o3_weights_t *self, size_t bytes) {
  block_t *block = O3_ARENA_NEW(self->arena, block_t);
  if (!block) return NULL;
  *block = (block_t){0};
  alloc_block(self, bytes, block);
  bool noted = block->data && o3_ptr_map_put(self->by_data, block->data, block) &&
               o3_ptr_vec_push(&self->blocks, block);
  if (block->data && !noted) free_block(self, block);
  return block->data;
}

o3_status_t o3_weights_keep_file(o3_weights_t *self, o3_mapped_file_t *file) {
  o3_mapped_file_t *copy = O3_ARENA_NEW(self->arena, o3_mapped_file_t);
  if (!copy || !o3_ptr_vec_push(&self->files, copy)) {
    o3_file_unmap(file);
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  *copy = *file;
  *file = (o3_mapped_file_t){0};
  return NULL;
}

static void release(o3_weights_t *self) {
  self->read = 0;
  for (size_t i = 0; i < self->files.count; ++i) o3_file_release(self->files.items[i]);
  for (size_t i = 0; i < self->blocks.count; ++i) {
    const block_t *block = self->blocks.items[i];
    if (block->part.data) o3_spill_release(&block->part);
  }
}

void o3_weights_trim(o3_weights_t *self) {
  release(self);
  malloc_trim(0);
}

void o3_weights_count_read(o3_weights_t *self, size_t bytes) {
  self->read += bytes;
  if (self->read >= PACE_BYTES) release(self);
}

/* ---- Reading ---- */

static entry_t *find_entry(const o3_weights_t *self, MlirAttribute attr) {
  char *text;
  size_t length;
  const char *name = resource_name(attr, &text, &length);
  entry_t *entry = name ? o3_str_map_get(self->by_name, name, length) : NULL;
  free(text);
  return entry;
}

/* Only resources are worth printing to learn their name; dense attributes answer by themselves. */
static bool holds_own_data(MlirAttribute attr) { return mlirAttributeIsADenseElements(attr); }

/* ---- Dropping ---- */

size_t o3_weights_count(const o3_weights_t *self) { return self->entries.count; }

static o3_status_t mark_used(MlirOperation op, void *context) {
  const o3_weights_t *self = context;
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); ++i) {
    MlirAttribute attr = mlirOperationGetAttribute(op, i).attribute;
    entry_t *entry = mlirAttributeIsAElements(attr) && !holds_own_data(attr) ? find_entry(self, attr) : NULL;
    if (entry) entry->used = true;
  }
  return NULL;
}

/* An address that was freed may come again, its newest block is found. */
static void free_data(o3_weights_t *self, const void *data) {
  block_t *block = o3_ptr_map_get(self->by_data, data);
  if (block) free_block(self, block);
}

static void forget_freed(o3_weights_t *self) {
  size_t kept = 0;
  for (size_t i = 0; i < self->blocks.count; ++i) {
    block_t *block = self->blocks.items[i];
    if (block->data) self->blocks.items[kept++] = block;
  }
  self->blocks.count = kept;
}

o3_status_t o3_weights_drop_unused(o3_weights_t *self, MlirModule module, size_t first) {
  size_t kept = 0;
  for (size_t i = 0; i < self->entries.count; ++i) {
    entry_t *entry = self->entries.items[i];
    entry->intermediate |= i >= first;
    entry->used = false;
  }
  O3_TRY(o3_walk(mlirModuleGetOperation(module), mark_used, self));
  for (size_t i = 0; i < self->entries.count; ++i) {
    entry_t *entry = self->entries.items[i];
    if (entry->used || !entry->intermediate) {
      self->entries.items[kept++] = entry;
    } else {
      free_data(self, entry->data);
      entry->data = NULL;
    }
  }
  self->entries.count = kept;
  forget_freed(self);
  return NULL;
}

const char *o3_weights_name(o3_weights_t *self, MlirAttribute attr) {
  if (holds_own_data(attr)) return NULL;
  entry_t *entry = find_entry(self, attr);
  return entry ? entry->name : NULL;
}

static void copy_elements(MlirAttribute attr, size_t count, size_t width, bool is_bool, uint8_t *out) {
  bool splat = mlirDenseElementsAttrIsSplat(attr);
  if (is_bool) {
    for (size_t i = 0; i < count; ++i)
      out[i] = splat ? mlirDenseElementsAttrGetBoolSplatValue(attr)
                     : mlirDenseElementsAttrGetBoolValue(attr, (intptr_t)i);
    return;
  }
  const void *raw = mlirDenseElementsAttrGetRawData(attr);
  if (!splat) {
    memcpy(out, raw, count * width);
  } else {
    for (size_t i = 0; i < count; ++i) memcpy(out + i * width, raw, width);
  }
}

/* Expansions are remembered by attribute: a splat of a million zeros is written out once. */
static const expanded_t *expand(o3_weights_t *self, MlirAttribute attr) {
  const expanded_t *known = o3_ptr_map_get(self->expanded, attr.ptr);
  if (known) return known;
  MlirType element = o3_type_element(mlirAttributeGetType(attr));
  size_t count = (size_t)mlirElementsAttrGetNumElements(attr);
  size_t width = (size_t)o3_type_bits(element) / 8;
  size_t bytes;
  expanded_t *made = O3_ARENA_NEW(self->arena, expanded_t);
  if (!made || __builtin_mul_overflow(count, width, &bytes)) return NULL;
  uint8_t *data = bytes <= O3_WEIGHTS_INLINE_BYTES ? o3_arena_alloc(self->arena, bytes ? bytes : 1, 1)
                                                   : o3_weights_alloc(self, bytes);
  if (!data) return NULL;
  if (count) copy_elements(attr, count, width, o3_type_is_bool(element), data);
  *made = (expanded_t){.data = data, .bytes = bytes};
  return o3_ptr_map_put(self->expanded, attr.ptr, made) ? made : NULL;
}

const void *o3_weights_data(o3_weights_t *self, MlirAttribute attr, size_t *bytes) {
  if (holds_own_data(attr)) {
    const expanded_t *made = expand(self, attr);
    if (made && bytes) *bytes = made->bytes;
    return made ? made->data : NULL;
  }
  const entry_t *entry = find_entry(self, attr);
  if (!entry) return NULL;
  o3_weights_count_read(self, entry->bytes);
  if (bytes) *bytes = entry->bytes;
  return entry->data;
}

/* ---- Beside a dump ----
 * "o3w1" then for each weight: u32 name length, name, u32 type length, type text, u64 bytes, data. */

static const char MAGIC[4] = {'o', '3', 'w', '1'};

static bool save_entry(FILE *file, const entry_t *entry) {
  char *type = o3_type_text(entry->type);
  if (!type) return false;
  uint32_t name_length = (uint32_t)strlen(entry->name), type_length = (uint32_t)strlen(type);
  uint64_t bytes = entry->bytes;
  bool ok = fwrite(&name_length, sizeof(name_length), 1, file) == 1 &&
            fwrite(entry->name, 1, name_length, file) == name_length &&
            fwrite(&type_length, sizeof(type_length), 1, file) == 1 &&
            fwrite(type, 1, type_length, file) == type_length &&
            fwrite(&bytes, sizeof(bytes), 1, file) == 1 &&
            fwrite(entry->data, 1, entry->bytes, file) == entry->bytes;
  free(type);
  return ok;
}

o3_status_t o3_weights_save(const o3_weights_t *self, const char *path) {
  FILE *file = fopen(path, "wb");
  bool ok = file && fwrite(MAGIC, sizeof(MAGIC), 1, file) == 1;
  for (size_t i = 0; ok && i < self->entries.count; ++i) ok = save_entry(file, self->entries.items[i]);
  if (file && fclose(file) != 0) ok = false;
  if (!ok) return o3_status_create(O3_STATUS_IO, "'%s' cannot be written", path);
  return NULL;
}

typedef struct reader {
  const uint8_t *at, *end;
} reader_t;

static const void *read_bytes(reader_t *reader, uint64_t count) {
  if ((uint64_t)(reader->end - reader->at) < count) return NULL;
  const void *at = reader->at;
  reader->at += count;
  return at;
}

static const char *read_text(o3_weights_t *self, reader_t *reader) {
  uint32_t length;
  const void *at = read_bytes(reader, sizeof(length));
  if (!at) return NULL;
  memcpy(&length, at, sizeof(length));
  const char *text = read_bytes(reader, length);
  return text ? o3_arena_strndup(self->arena, text, length) : NULL;
}

static o3_status_t load_entry(o3_weights_t *self, reader_t *reader) {
  uint64_t bytes = 0;
  const char *name = read_text(self, reader);
  const char *type_text = name ? read_text(self, reader) : NULL;
  const void *size = type_text ? read_bytes(reader, sizeof(bytes)) : NULL;
  if (size) memcpy(&bytes, size, sizeof(bytes));
  const void *data = size ? read_bytes(reader, bytes) : NULL;
  MlirType type = data ? mlirTypeParseGet(self->context, O3_STR(type_text)) : (MlirType){0};
  bool fits = !mlirTypeIsNull(type) && mlirTypeIsARankedTensor(type) && o3_type_count(type) >= 0 &&
              (uint64_t)o3_type_count(type) * (uint64_t)(o3_type_bits(o3_type_element(type)) / 8) == bytes;
  if (!fits) return o3_status_create(O3_STATUS_INVALID_MODEL, "it is damaged");
  MlirAttribute attr;
  return o3_weights_add(self, name, type, data, (size_t)bytes, &attr);
}

o3_status_t o3_weights_load(o3_weights_t *self, const char *path) {
  o3_mapped_file_t file;
  O3_TRY(o3_file_map(path, &file));
  reader_t reader = {.at = file.data, .end = file.data + file.size};
  O3_TRY(o3_weights_keep_file(self, &file));
  const void *magic = read_bytes(&reader, sizeof(MAGIC));
  if (!magic || memcmp(magic, MAGIC, sizeof(MAGIC)) != 0)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "'%s' is no file of weights", path);
  while (reader.at < reader.end) O3_TRY_CONTEXT(load_entry(self, &reader), "'%s'", path);
  return NULL;
}
