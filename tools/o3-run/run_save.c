#include "run_save.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensorio/tensor.h"

static o3_status_t save_archive(const char *path, const o3_run_slots_t *outputs, o3_arena_t *arena) {
  o3_named_tensor_t *items =
      O3_ARENA_ARRAY(arena, o3_named_tensor_t, outputs->count ? (size_t)outputs->count : 1);
  O3_TRY_ALLOC(items);
  for (int32_t i = 0; i < outputs->count; ++i) {
    items[i].name = o3_arena_strdup(arena, outputs->infos[i].name);
    O3_TRY_ALLOC(items[i].name);
    items[i].tensor = outputs->tensors[i];
  }
  return o3_tensorio_npz_write(path, items, (size_t)outputs->count);
}

/* A name that is safe as a file name: the model's may hold slashes or anything. */
static char *file_stem(const char *name, o3_arena_t *arena) {
  static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  char *stem = o3_arena_strdup(arena, *name ? name : "_");
  if (!stem) return NULL;
  for (char *c = stem; *c; ++c) {
    if (!strchr(safe, *c)) *c = '_';
  }
  if (*stem == '.') *stem = '_';
  return stem;
}

static o3_status_t save_files(const char *path, const o3_run_slots_t *outputs, o3_arena_t *arena) {
  o3_str_map_t *used = o3_str_map_create(arena);
  O3_TRY_ALLOC(used);
  for (int32_t i = 0; i < outputs->count; ++i) {
    char *stem = file_stem(outputs->infos[i].name, arena);
    O3_TRY_ALLOC(stem);
    while (o3_str_map_get(used, stem, strlen(stem))) {
      stem = o3_arena_printf(arena, "%s_%d", stem, i);
      O3_TRY_ALLOC(stem);
    }
    if (!o3_str_map_put(used, stem, strlen(stem), stem))
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
    const char *file = o3_arena_printf(arena, "%s/%s.npy", path, stem);
    O3_TRY_ALLOC(file);
    O3_TRY(o3_tensorio_npy_write(file, &outputs->tensors[i]));
  }
  return NULL;
}

/* A folder that was made and could not be filled is not left. */
static o3_status_t save_folder(const char *path, const o3_run_slots_t *outputs, o3_arena_t *arena) {
  bool made = mkdir(path, 0777) == 0;
  if (!made && errno != EEXIST)
    return o3_status_create(O3_STATUS_IO, "cannot make the folder '%s': %s", path, strerror(errno));
  o3_status_t status = save_files(path, outputs, arena);
  if (status && made) rmdir(path); /* fails where files were written: they stay */
  return status;
}

o3_status_t o3_run_save(const char *path, const o3_run_slots_t *outputs, o3_arena_t *arena) {
  const char *ending = strrchr(path, '.');
  return ending && !strcmp(ending, ".npz") ? save_archive(path, outputs, arena)
                                           : save_folder(path, outputs, arena);
}
