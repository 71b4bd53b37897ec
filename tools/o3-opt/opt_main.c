/* o3-opt: any pass on any module. Exit status 0: done; 1: a pass failed; 2: wrong usage. */
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/options.h"
#include "driver/dump.h"
#include "driver/evaluate.h"
#include "driver/overrides.h"
#include "driver/pass_run.h"
#include "opt_equal.h"
#include "opt_options.h"

enum { EXIT_FAILED = 1 };

typedef struct session {
  const opt_options_t *options;
  o3_arena_t *arena;
  MlirContext context;
  o3_weights_t *weights;
  MlirModule module, first; /* |first|: a copy of what was read, for the comparison */
  o3_machine_t machine;
  o3_pass_env_t env;
} session_t;

static o3_status_t set_up(session_t *session) {
  const opt_options_t *options = session->options;
  O3_TRY(o3_context_create(&session->context));
  O3_TRY(o3_weights_create(session->context, &session->weights));
  O3_TRY(options->target->machine(session->arena, &session->machine));
  session->env = (o3_pass_env_t){.context = session->context,
                                 .arena = session->arena,
                                 .weights = session->weights,
                                 .opt_level = options->compile.opt_level,
                                 .machine = &session->machine,
                                 .no_fusion = options->compile.no_fusion != 0,
                                 .evaluate = o3_evaluate};
  O3_TRY(o3_overrides_apply(session->arena, &options->compile, &session->env));
  return o3_dump_read(session->context, session->weights, options->input, &session->module);
}

static void tear_down(session_t *session) {
  if (!mlirModuleIsNull(session->module)) mlirModuleDestroy(session->module);
  if (!mlirModuleIsNull(session->first)) mlirModuleDestroy(session->first);
  o3_weights_destroy(session->weights);
  if (!mlirContextIsNull(session->context)) o3_context_destroy(session->context);
}

static o3_status_t run_step(session_t *session, const opt_step_t *step) {
  const o3_pass_runner_t runner = {.env = &session->env, .target = session->options->target};
  switch (step->kind) {
    case OPT_STEP_PASS:
      return o3_pass_run(&runner, &step->pass, session->module, false);
    case OPT_STEP_PIPELINE:
      return o3_ir_run_pipeline(session->module, step->pipeline);
    case OPT_STEP_VERIFY:
      return o3_stage_verify(step->stage, session->module);
  }
  return NULL;
}

static void print_piece(MlirStringRef text, void *stream) { fwrite(text.data, 1, text.length, stream); }

static o3_status_t print_module(const session_t *session) {
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsElideLargeResourceString(flags, 0);
  if (session->options->locations) mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
  mlirOperationPrintWithFlags(mlirModuleGetOperation(session->module), flags, print_piece, stdout);
  mlirOpPrintingFlagsDestroy(flags);
  return o3_file_stdout_end();
}

static o3_status_t work(session_t *session) {
  O3_TRY(set_up(session));
  bool compares = session->options->check_equal;
  if (compares)
    session->first = mlirModuleFromOperation(mlirOperationClone(mlirModuleGetOperation(session->module)));
  for (int i = 0; i < session->options->num_steps; ++i)
    O3_TRY(run_step(session, &session->options->steps[i]));
  if (compares)
    O3_TRY(opt_equal_check(&session->env, session->first, session->module, session->options->seed));
  return print_module(session);
}

static int optimise(const opt_options_t *options, o3_arena_t *arena) {
  o3_compiler_install_handlers("o3-opt");
  session_t session = {.options = options, .arena = arena};
  o3_status_t status = work(&session);
  tear_down(&session);
  if (!status) return EXIT_SUCCESS;
  o3_log_status(status);
  return EXIT_FAILED;
}

static int list_passes(const o3_target_t *target) {
  o3_pass_info_t pass;
  for (int i = 0; o3_pass_at(target, i, &pass); ++i)
    printf("%-10s %-22s O%d  %s\n", o3_stage_name(pass.stage), pass.name, pass.min_level, pass.summary);
  return o3_options_text_end("o3-opt");
}

static int print_dialect(void) {
  char *text = o3_dialect_irdl();
  bool made = text != NULL;
  if (made)
    fputs(text, stdout);
  else
    o3_log(O3_LOG_ERROR, "out of memory");
  free(text);
  return made ? o3_options_text_end("o3-opt") : EXIT_FAILED;
}

static int run(const opt_options_t *options, o3_arena_t *arena) {
  if (options->list_passes) return list_passes(options->target);
  if (options->dialect) return print_dialect();
  if (options->input && !options->help && !options->version) return optimise(options, arena);
  if (options->help)
    opt_help_print(stdout);
  else
    printf("o3-opt %s (LLVM %s)\n", o3_compiler_version(), o3_compiler_llvm_version());
  return o3_options_text_end("o3-opt");
}

int main(int argc, char **argv) {
  o3_log_program_set("o3-opt");
  o3_arena_t *arena = o3_arena_create();
  opt_options_t options;
  o3_status_t status = arena ? opt_options_parse(arena, argc, argv, &options)
                             : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  int code = status ? o3_options_usage_error("o3-opt", status) : run(&options, arena);
  if (arena) o3_arena_destroy(arena);
  return code;
}
