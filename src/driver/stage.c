#include "driver/stage.h"

#include <string.h>

#include "base/check.h"
#include "base/strbuf.h"

typedef struct stage_row {
  const char *name, *legal, *summary;
} stage_row_t;

static const stage_row_t STAGES[] = {
#define O3_STAGE(id, name, legal, summary) {name, legal, summary},
#include "driver/stages.def"
#undef O3_STAGE
};

static const stage_row_t *row(o3_stage_t stage) {
  O3_ASSERT((unsigned)stage < O3_STAGE_COUNT);
  return &STAGES[stage];
}

const char *o3_stage_name(o3_stage_t stage) { return row(stage)->name; }
const char *o3_stage_summary(o3_stage_t stage) { return row(stage)->summary; }
bool o3_stage_has_module(o3_stage_t stage) { return row(stage)->legal[0] != '\0'; }

o3_status_t o3_stage_find(const char *name, o3_stage_t *stage) {
  o3_strbuf_t list = O3_STRBUF_INIT;
  for (int i = 0; i < O3_STAGE_COUNT; ++i) {
    if (!strcmp(name, STAGES[i].name)) {
      o3_strbuf_deinit(&list);
      *stage = (o3_stage_t)i;
      return NULL;
    }
    o3_strbuf_printf(&list, "%s%s", i ? ", " : "", STAGES[i].name);
  }
  o3_status_t status =
      o3_status_create(O3_STATUS_INVALID_ARGUMENT, "there is no stage '%s'; stages: %s", name, list.text);
  o3_strbuf_deinit(&list);
  return status;
}

/* Whether |entry|, a dialect or an op, covers the op called |name|. */
static bool covers(const char *entry, size_t length, MlirStringRef name) {
  if (name.length < length || memcmp(entry, name.data, length) != 0) return false;
  return name.length == length || (name.data[length] == '.' && !memchr(entry, '.', length));
}

static bool is_legal(const char *legal, MlirStringRef name) {
  for (const char *at = legal; *at;) {
    size_t length = strcspn(at, ",");
    bool excludes = *at == '!';
    if (covers(at + excludes, length - excludes, name)) return !excludes;
    at += length + (at[length] == ',');
  }
  return false;
}

static o3_status_t check_op(MlirOperation op, void *context) {
  const stage_row_t *stage = context;
  MlirStringRef name = o3_op_name(op);
  if (is_legal(stage->legal, name)) return NULL;
  return o3_status_create(O3_STATUS_INTERNAL,
                          "op '%.*s' (of '%.*s') is not legal after stage %s, which leaves %s",
                          O3_STR_ARGS(name), O3_STR_ARGS(o3_op_label(op)), stage->name, stage->legal);
}

o3_status_t o3_stage_check_legal(o3_stage_t stage, MlirModule module) {
  O3_ASSERT(o3_stage_has_module(stage));
  return o3_walk(mlirModuleGetOperation(module), check_op, (void *)(uintptr_t)row(stage));
}

o3_status_t o3_stage_verify(o3_stage_t stage, MlirModule module) {
  O3_TRY(o3_ir_verify(mlirModuleGetOperation(module)));
  return o3_stage_check_legal(stage, module);
}
