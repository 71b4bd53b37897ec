/* The command line of o3-opt. */
#ifndef O3_TOOLS_O3_OPT_OPTIONS_H
#define O3_TOOLS_O3_OPT_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "driver/pass_table.h"
#include "o3/compiler.h"

typedef enum opt_step_kind { OPT_STEP_PASS, OPT_STEP_PIPELINE, OPT_STEP_VERIFY } opt_step_kind_t;

/* One thing that is done to the module, in the order of the command line. */
typedef struct opt_step {
  opt_step_kind_t kind;
  o3_pass_info_t pass;
  const char *pipeline;
  o3_stage_t stage;
} opt_step_t;

typedef struct opt_options {
  o3_compile_options_t compile; /* target, level, dims and shapes */
  const o3_target_t *target;
  const char *input;
  int num_steps;
  const opt_step_t *steps;
  bool check_equal;
  uint64_t seed; /* of check_equal */
  bool locations, list_passes, dialect, help, version;
} opt_options_t;

/* INVALID_ARGUMENT or UNSUPPORTED, which are usage errors, say what is wrong. */
o3_status_t opt_options_parse(o3_arena_t *arena, int argc, char **argv, opt_options_t *options) O3_MUST_USE;

void opt_help_print(FILE *stream);

#endif
