/* All passes: those of passes.def, then the targets' own. */
#ifndef O3_DRIVER_PASS_TABLE_H
#define O3_DRIVER_PASS_TABLE_H

#include "driver/stage.h"
#include "target/target.h"

typedef struct o3_pass_info {
  o3_stage_t stage;
  const char *name; /* unique within a compilation */
  o3_pass_fn_t run;
  int min_level; /* the least opt level that runs it */
  const char *summary;
} o3_pass_info_t;

/* The |index|-th pass of a compilation for |target|; false past the end. */
bool o3_pass_at(const o3_target_t *target, int index, o3_pass_info_t *pass);

/* The pass called |name|; false when there is none. */
bool o3_pass_find(const o3_target_t *target, const char *name, o3_pass_info_t *pass);

#endif
