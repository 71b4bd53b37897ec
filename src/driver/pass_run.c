/* The module is cloned before every pass so that a failure can be handed on with what led to it; a clone is
 * of the IR alone, weights are not copied. */
#include "driver/pass_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "driver/dump.h"

static _Thread_local const char *current_pass;

const char *o3_pass_current(void) { return current_pass; }

/* Prints the module to stderr if |selected|, "all" or a pass's name, covers |name|. */
static void print_module(const char *selected, const char *when, const char *name, MlirModule module) {
  if (!selected || (strcmp(selected, "all") != 0 && strcmp(selected, name) != 0)) return;
  char *text = o3_ir_print(mlirModuleGetOperation(module));
  fprintf(stderr, "// ----- IR %s %s -----\n%s\n", when, name, text ? text : "// out of memory");
  free(text);
}

/* The command that runs the pass on the reproducer: "// o3-opt --lower --level 1 ...". */
static void append_command(o3_strbuf_t *text, const o3_pass_runner_t *runner, const o3_pass_info_t *pass,
                           const char *file) {
  const o3_pass_env_t *env = runner->env;
  o3_strbuf_printf(text, "// o3-opt --%s --level %d --target %s", pass->name, env->opt_level,
                   runner->target->name);
  for (int i = 0; i < env->num_dims; ++i)
    o3_strbuf_printf(text, " --dim %s=%lld", env->dims[i].name, (long long)env->dims[i].size);
  for (int i = 0; i < env->num_shapes; ++i) {
    o3_strbuf_printf(text, " --shape %s:", env->shapes[i].input);
    for (int d = 0; d < env->shapes[i].rank; ++d) {
      if (d) o3_strbuf_puts(text, "x");
      if (env->shapes[i].sizes[d] < 0)
        o3_strbuf_puts(text, "?");
      else
        o3_strbuf_printf(text, "%lld", (long long)env->shapes[i].sizes[d]);
    }
  }
  for (int i = 0; i < env->num_values; ++i)
    o3_strbuf_printf(text, " --value %s=%lld", env->values[i].input, (long long)env->values[i].value);
  o3_strbuf_printf(text, " %s\n", file);
}

static o3_status_t write_reproducer(const o3_pass_runner_t *runner, const o3_pass_info_t *pass,
                                    MlirModule before, const char **path) {
  o3_arena_t *arena = runner->env->arena;
  *path = o3_arena_printf(arena, "%s/o3-reproducer-%s.mlir", runner->reproducer_folder, pass->name);
  const char *weights =
      o3_arena_printf(arena, "%s/o3-reproducer-%s.o3w", runner->reproducer_folder, pass->name);
  O3_TRY_ALLOC(*path && weights);
  o3_strbuf_t heading = O3_STRBUF_INIT;
  append_command(&heading, runner, pass, strrchr(*path, '/') + 1);
  o3_status_t status = heading.failed ? o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory")
                                      : o3_dump_module(before, heading.text, *path);
  o3_strbuf_deinit(&heading);
  return status ? status : o3_dump_weights(runner->env->weights, weights);
}

/* |status| with the pass's name and the reproducer. Takes it. */
static o3_status_t explain(const o3_pass_runner_t *runner, const o3_pass_info_t *pass, MlirModule before,
                           o3_status_t status) {
  if (o3_status_code(status) != O3_STATUS_INTERNAL) return status;
  status = o3_status_annotate(status, "pass '%s'", pass->name);
  if (!runner->reproducer_folder) return status;
  const char *path;
  o3_status_t written = write_reproducer(runner, pass, before, &path);
  if (written) return o3_status_join(status, o3_status_annotate(written, "no reproducer"));
  return o3_status_join(status, o3_status_create(O3_STATUS_INTERNAL, "reproducer: '%s'", path));
}

/* Of the processor, for -v: a machine that is busy with other things does not change it. */
static double processor_ms(void) { return (double)clock() * 1e3 / CLOCKS_PER_SEC; }

o3_status_t o3_pass_run(const o3_pass_runner_t *runner, const o3_pass_info_t *pass, MlirModule module,
                        bool last) {
  double start = processor_ms();
  print_module(runner->print_before, "before", pass->name, module);
  MlirModule before = mlirModuleFromOperation(mlirOperationClone(mlirModuleGetOperation(module)));
  current_pass = pass->name;
  o3_status_t status = pass->run(runner->env, module);
  if (!status) status = o3_ir_verify(mlirModuleGetOperation(module));
  if (!status && last) status = o3_stage_check_legal(pass->stage, module);
  current_pass = NULL;
  if (status) status = explain(runner, pass, before, status);
  mlirModuleDestroy(before);
  o3_log(O3_LOG_DEBUG, "pass %s: %.1f ms of processor time", pass->name, processor_ms() - start);
  if (!status) print_module(runner->print_after, "after", pass->name, module);
  return status;
}
