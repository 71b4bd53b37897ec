/* One compilation: what its options ask for, and its state. Private to the driver. */
#ifndef O3_DRIVER_COMPILATION_H
#define O3_DRIVER_COMPILATION_H

#include "analysis/sparse_choice.h"
#include "driver/measure.h"
#include "driver/pass_run.h"
#include "o3/compiler.h"
#include "package/package.h"

/* What is written to the output. */
typedef enum o3_output_kind {
  O3_OUTPUT_NONE, /* dumps only */
  O3_OUTPUT_LIBRARY,
  O3_OUTPUT_ARCHIVE,
  O3_OUTPUT_OBJECT,
  O3_OUTPUT_LLVM_IR,
  O3_OUTPUT_PTX,
  O3_OUTPUT_MLIR
} o3_output_kind_t;

/* The options with defaults filled in, names resolved and everything checked. */
typedef struct o3_plan {
  const o3_compile_options_t *options;
  const o3_target_t *target;
  const char *model_name; /* the model file's base name without its ending */
  bool model_is_mlir;
  o3_output_kind_t kind;
  const char *output; /* NULL for NONE */
  bool to_stdout;
  o3_precision_t precision;
  const char *prefix;
  bool start_given;
  o3_stage_t first,
      last; /* stages to run; |first| of a .mlir file without start_from is set after reading it */
  const char *settings; /* text of what the code depends on, for the build id */
} o3_plan_t;

/* Checks everything that can be known before the work starts; allocates in |arena|. */
o3_status_t o3_plan_make(o3_arena_t *arena, const o3_compile_options_t *options, o3_plan_t *plan) O3_MUST_USE;
/* What needs the first stage: that nothing is asked for which the stages to run would ignore. */
o3_status_t o3_plan_check_wishes(o3_arena_t *arena, const o3_plan_t *plan) O3_MUST_USE;

typedef struct o3_compilation {
  o3_plan_t plan;
  o3_arena_t *arena;
  o3_weights_t *weights;
  MlirContext context;
  MlirModule module;
  o3_machine_t machine;
  o3_pass_env_t env;
  o3_measurer_t measurer;
  o3_pass_runner_t runner;
  o3_sparse_report_t sparse_report; /* filled by the rewrite stage */
  o3_interface_t interface;         /* empty until it is known */
  o3_workspace_t *workspace;
  int num_objects;
  o3_artifact_t objects[O3_TARGET_MAX_CODES];
  o3_compile_stage_t stages[O3_STAGE_COUNT];
  int num_stages;
} o3_compilation_t;

/* What the compilation did, on its own memory. */
o3_status_t o3_result_make(const o3_compilation_t *compilation, double milliseconds,
                           o3_compile_result_t **result) O3_MUST_USE;

/* How functions of compiler.h return: the code of |status|, which is consumed, and its message in *error,
 * malloc'ed; NULL without one, or when memory is out. */
int32_t o3_result_give(o3_status_t status, char **error);

/* Milliseconds of a steady clock, and the process's (or a larger child's) largest resident set in bytes. */
double o3_clock_ms(void);
uint64_t o3_peak_rss(void);

#endif
