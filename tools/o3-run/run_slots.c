#include "run_slots.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "tensorio/tensor.h"

o3_status_t o3_run_slots_init(const char *what, const o3_tensor_info_t *infos, int32_t count,
                              o3_arena_t *arena, o3_run_slots_t *slots) {
  *slots = (o3_run_slots_t){.what = what, .infos = infos, .count = count};
  slots->tensors = O3_ARENA_ARRAY(arena, o3_tensor_t, count ? (size_t)count : 1);
  O3_TRY_ALLOC(slots->tensors);
  return NULL;
}

void o3_run_slots_deinit(o3_run_slots_t *slots) {
  for (int32_t i = 0; slots->tensors && i < slots->count; ++i) o3_tensorio_tensor_deinit(&slots->tensors[i]);
}

static int32_t find_slot(const o3_run_slots_t *slots, const char *name, size_t length) {
  for (int32_t i = 0; i < slots->count; ++i) {
    if (strlen(slots->infos[i].name) == length && !memcmp(slots->infos[i].name, name, length)) return i;
  }
  return -1;
}

static int32_t find_empty_slot(const o3_run_slots_t *slots) {
  int32_t i = 0;
  while (i < slots->count && slots->tensors[i].data) ++i;
  return i;
}

static o3_status_t unknown_name(const o3_run_slots_t *slots, const char *name) {
  o3_strbuf_t names = O3_STRBUF_INIT;
  for (int32_t i = 0; i < slots->count; ++i) {
    o3_strbuf_printf(&names, "%s'%s'", i ? ", " : "", slots->infos[i].name);
  }
  o3_status_t status = o3_status_create(O3_STATUS_NOT_FOUND, "the model has no %s '%s', it has: %s",
                                        slots->what, name, slots->count ? names.text : "none");
  o3_strbuf_deinit(&names);
  return status;
}

/* Moves |tensor| into slot |index|. */
static o3_status_t fill_slot(o3_run_slots_t *slots, int32_t index, o3_tensor_t *tensor) {
  if (slots->tensors[index].data) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s '%s' is given twice", slots->what,
                            slots->infos[index].name);
  }
  slots->tensors[index] = *tensor;
  o3_tensorio_relabel(&slots->tensors[index], slots->infos[index].dtype);
  tensor->data = NULL;
  return NULL;
}

static o3_status_t fill_by_names(o3_run_slots_t *slots, o3_tensor_list_t *list) {
  for (size_t i = 0; i < list->count; ++i) {
    const int32_t index = find_slot(slots, list->items[i].name, strlen(list->items[i].name));
    if (index < 0) return unknown_name(slots, list->items[i].name);
    O3_TRY(fill_slot(slots, index, &list->items[i].tensor));
  }
  return NULL;
}

static bool ends_with(const char *text, const char *ending) {
  const size_t length = strlen(text), tail = strlen(ending);
  return length >= tail && !strcmp(text + length - tail, ending);
}

/* |index| -1: no name was given. */
static o3_status_t fill_from_list(o3_run_slots_t *slots, int32_t index, bool archive,
                                  o3_tensor_list_t *list) {
  if (index < 0 && archive) return fill_by_names(slots, list);
  if (list->count != 1) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "it has %zu arrays, one expected for %s '%s'",
                            list->count, slots->what, slots->infos[index].name);
  }
  if (index < 0) index = find_empty_slot(slots);
  if (index == slots->count) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "one file too many: the model has %d %s%s",
                            slots->count, slots->what, slots->count == 1 ? "" : "s");
  }
  return fill_slot(slots, index, &list->items[0].tensor);
}

static o3_status_t add_file(o3_run_slots_t *slots, int32_t index, const char *path) {
  o3_tensor_list_t list;
  O3_TRY(o3_tensorio_file_read(path, &list));
  o3_status_t status = fill_from_list(slots, index, ends_with(path, ".npz"), &list);
  o3_tensorio_list_deinit(&list);
  return o3_status_annotate(status, "'%s'", path);
}

/* Names and paths may both hold '=': the longest name that the model has wins. */
static o3_status_t add_argument(o3_run_slots_t *slots, const char *text) {
  for (const char *equal = strrchr(text, '='); equal; equal = memrchr(text, '=', (size_t)(equal - text))) {
    const int32_t index = find_slot(slots, text, (size_t)(equal - text));
    if (index >= 0) return add_file(slots, index, equal + 1);
  }
  const char *equal = strchr(text, '=');
  if (!equal || access(text, F_OK) == 0) return add_file(slots, -1, text);
  o3_strbuf_t name = O3_STRBUF_INIT;
  o3_strbuf_append(&name, text, (size_t)(equal - text));
  o3_status_t status = unknown_name(slots, name.text ? name.text : "");
  o3_strbuf_deinit(&name);
  return status;
}

o3_status_t o3_run_slots_add_files(o3_run_slots_t *slots, const o3_ptr_vec_t *files) {
  for (size_t i = 0; i < files->count; ++i) O3_TRY(add_argument(slots, files->items[i]));
  return NULL;
}

/* The file of slot |index| in |folder|; *|path| is NULL when there is none. */
static o3_status_t find_file(const o3_run_slots_t *slots, const char *folder, int32_t index,
                             o3_arena_t *arena, const char **path) {
  static const char *const endings[] = {"pb", "npy"};
  *path = NULL;
  for (size_t i = 0; i < sizeof endings / sizeof *endings; ++i) {
    const char *candidate = o3_arena_printf(arena, "%s/%s_%d.%s", folder, slots->what, index, endings[i]);
    O3_TRY_ALLOC(candidate);
    if (access(candidate, F_OK) == 0) {
      *path = candidate;
      return NULL;
    }
    if (errno != ENOENT && errno != ENOTDIR) {
      return o3_status_create(O3_STATUS_IO, "'%s': %s", candidate, strerror(errno));
    }
  }
  return NULL;
}

o3_status_t o3_run_slots_add_folder(o3_run_slots_t *slots, const char *folder, o3_arena_t *arena) {
  const char *path;
  int32_t found = 0;
  if (!folder) return NULL;
  for (int32_t i = 0; i < slots->count; ++i) {
    O3_TRY(find_file(slots, folder, i, arena, &path));
    found += path != NULL;
    if (path && !slots->tensors[i].data) O3_TRY(add_file(slots, i, path));
  }
  O3_TRY(find_file(slots, folder, slots->count, arena, &path));
  if (path) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "'%s' is one file too many: the model has %d %s%s",
                            path, slots->count, slots->what, slots->count == 1 ? "" : "s");
  }
  if (found || slots->count == 0) return NULL;
  return o3_status_create(O3_STATUS_NOT_FOUND, "'%s' has no %s_0.pb or %s_0.npy", folder, slots->what,
                          slots->what);
}

/* The size that a given input gives to |symbol|, or -1. */
static int64_t given_size(const o3_run_slots_t *slots, const char *symbol) {
  for (int32_t i = 0; i < slots->count; ++i) {
    const o3_tensor_info_t *info = &slots->infos[i];
    if (!slots->tensors[i].data || slots->tensors[i].rank != info->rank) continue;
    for (int32_t d = 0; d < info->rank; ++d) {
      if (info->symbols[d] && !strcmp(info->symbols[d], symbol)) return slots->tensors[i].shape[d];
    }
  }
  return -1;
}

/* Whether |text| is "|symbol|=SIZE"; sets *|size|. */
static bool match_dim(const char *text, const char *symbol, int64_t *size) {
  const size_t length = strlen(symbol);
  if (strncmp(text, symbol, length) != 0 || text[length] != '=') return false;
  char *end;
  errno = 0;
  *size = strtoll(text + length + 1, &end, 10);
  return !errno && end != text + length + 1 && !*end && *size >= 0;
}

static int64_t random_size(const o3_run_slots_t *slots, const o3_ptr_vec_t *dims, const char *symbol) {
  if (!symbol) return 1;
  int64_t size = given_size(slots, symbol);
  for (size_t i = 0; i < dims->count && size < 0; ++i) {
    if (!match_dim(dims->items[i], symbol, &size)) size = -1;
  }
  return size < 0 ? 1 : size;
}

o3_status_t o3_run_slots_add_random(o3_run_slots_t *slots, const o3_run_options_t *options) {
  for (int32_t i = 0; i < slots->count; ++i) {
    const o3_tensor_info_t *info = &slots->infos[i];
    if (slots->tensors[i].data) continue;
    o3_tensor_t tensor = {.dtype = info->dtype, .rank = info->rank};
    for (int32_t d = 0; d < info->rank; ++d) {
      tensor.shape[d] =
          info->shape[d] >= 0 ? info->shape[d] : random_size(slots, &options->dims, info->symbols[d]);
    }
    O3_TRY_CONTEXT(o3_tensorio_tensor_init(&tensor), "input '%s'", info->name);
    /* A stream of its own for each input: giving one from a file leaves the others as they were. */
    o3_tensorio_random_fill(&tensor, ((uint64_t)options->random.value << 32) + (uint64_t)i,
                            options->int_range.low, options->int_range.high);
    slots->tensors[i] = tensor;
  }
  return NULL;
}

/* The symbol that |text| gives a *|size|, or NULL. */
static const char *find_symbol(const o3_run_slots_t *slots, const char *text, int64_t *size) {
  for (int32_t i = 0; i < slots->count; ++i) {
    for (int32_t d = 0; d < slots->infos[i].rank; ++d) {
      const char *symbol = slots->infos[i].symbols[d];
      if (symbol && match_dim(text, symbol, size)) return symbol;
    }
  }
  return NULL;
}

o3_status_t o3_run_slots_check_dims(const o3_run_slots_t *slots, const o3_ptr_vec_t *dims) {
  for (size_t i = 0; i < dims->count; ++i) {
    int64_t size;
    const char *symbol = find_symbol(slots, dims->items[i], &size);
    if (!symbol)
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                              "--dim '%s' is not NAME=SIZE for a symbolic dimension of the model's inputs",
                              (const char *)dims->items[i]);
    int64_t given = given_size(slots, symbol);
    if (given >= 0 && given != size)
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--dim '%s': the given inputs have %" PRId64,
                              (const char *)dims->items[i], given);
  }
  return NULL;
}

o3_status_t o3_run_slots_check_full(const o3_run_slots_t *slots, const char *rule) {
  const int32_t empty = find_empty_slot(slots);
  if (empty == slots->count) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s '%s' is not given: %s", slots->what,
                          slots->infos[empty].name, rule);
}
