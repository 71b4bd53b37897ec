/* Stages of the compiler: stages.def as code. */
#ifndef O3_DRIVER_STAGE_H
#define O3_DRIVER_STAGE_H

#include "ir/context.h"

typedef enum o3_stage {
#define O3_STAGE(id, name, legal, summary) O3_STAGE_##id,
#include "driver/stages.def"
#undef O3_STAGE
  O3_STAGE_COUNT
} o3_stage_t;

const char *o3_stage_name(o3_stage_t stage);
const char *o3_stage_summary(o3_stage_t stage);
/* Whether a module is what the stage leaves, and not bytes. */
bool o3_stage_has_module(o3_stage_t stage);

/* INVALID_ARGUMENT with the list of stages when there is no |name|. */
o3_status_t o3_stage_find(const char *name, o3_stage_t *stage) O3_MUST_USE;

/* INTERNAL with the op's name and label when the module holds an op that is illegal after |stage|. */
o3_status_t o3_stage_check_legal(o3_stage_t stage, MlirModule module) O3_MUST_USE;

/* MLIR's verifier and o3_stage_check_legal. */
o3_status_t o3_stage_verify(o3_stage_t stage, MlirModule module) O3_MUST_USE;

#endif
