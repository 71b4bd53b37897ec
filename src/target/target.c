#include "target/target.h"

#include <string.h>

#include "base/strbuf.h"

#define O3_TARGET(get) const o3_target_t *get(void);
#include "target/targets.def"
#undef O3_TARGET

static const o3_target_t *(*const TARGETS[])(void) = {
#define O3_TARGET(get) get,
#include "target/targets.def"
#undef O3_TARGET
};
enum { NUM_TARGETS = sizeof(TARGETS) / sizeof(TARGETS[0]) };

const o3_target_t *o3_target_at(int index) {
  return index >= 0 && index < NUM_TARGETS ? TARGETS[index]() : NULL;
}

static o3_status_t not_found(const char *name) {
  o3_strbuf_t names = O3_STRBUF_INIT;
  for (int i = 0; i < NUM_TARGETS; ++i) o3_strbuf_printf(&names, "%s%s", i ? ", " : "", TARGETS[i]()->name);
  o3_status_t status = o3_status_create(O3_STATUS_UNSUPPORTED, "target '%s' does not exist, there are: %s",
                                        name, names.failed ? "" : names.text);
  o3_strbuf_deinit(&names);
  return status;
}

o3_status_t o3_target_find(const char *name, const o3_target_t **target) {
  *target = NULL;
  for (int i = 0; i < NUM_TARGETS && !*target; ++i) {
    const o3_target_t *candidate = TARGETS[i]();
    if (strcmp(candidate->name, name) == 0) *target = candidate;
  }
  return *target ? NULL : not_found(name);
}

const char *o3_target_code_suffix(o3_arena_t *arena, const o3_target_t *code) {
  char *suffix = o3_arena_printf(arena, "_%s", code->name);
  for (char *c = suffix; c && *c; ++c) {
    if (*c == '-') *c = '_';
  }
  return suffix;
}
