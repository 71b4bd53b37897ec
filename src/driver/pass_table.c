#include "driver/pass_table.h"

#include <string.h>

#include "base/check.h"
#include "fuse/fuse.h"
#include "normalize/normalize.h"
#include "package/interface.h"
#include "rewrite/passes.h"
#include "target/lower.h"

static const o3_pass_info_t PASSES[] = {
#define O3_PASS(stage, name, function, min_level, summary) \
  {O3_STAGE_##stage, name, function, min_level, summary},
#include "driver/passes.def"
#undef O3_PASS
};
enum { NUM_PASSES = sizeof(PASSES) / sizeof(PASSES[0]) };

static o3_stage_t target_stage(const o3_target_pass_t *pass) {
  o3_stage_t stage;
  o3_status_t status = o3_stage_find(pass->stage, &stage);
  O3_ASSERT(!status, "a target's pass names a stage of stages.def");
  return stage;
}

bool o3_pass_at(const o3_target_t *target, int index, o3_pass_info_t *pass) {
  if (index < NUM_PASSES) {
    *pass = PASSES[index];
    return true;
  }
  index -= NUM_PASSES;
  if (index >= target->num_passes) return false;
  const o3_target_pass_t *row = &target->passes[index];
  *pass = (o3_pass_info_t){target_stage(row), row->name, row->run, row->min_level, row->summary};
  return true;
}

bool o3_pass_find(const o3_target_t *target, const char *name, o3_pass_info_t *pass) {
  for (int i = 0; o3_pass_at(target, i, pass); ++i)
    if (!strcmp(pass->name, name)) return true;
  return false;
}
