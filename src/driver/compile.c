/* The compiler, from a model file to a library: compile() below is the whole road. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "driver/compilation.h"
#include "driver/dump.h"
#include "driver/evaluate.h"
#include "driver/overrides.h"
#include "driver/sparse_config.h"
#include "driver/sparse_report.h"
#include "fuse/fuse.h"
#include "import/import.h"
#include "schedule/gpu.h"
#include "schedule/hardware.h"

typedef o3_compilation_t compilation_t;

/* ---- Progress ---- */

static void report_progress(const compilation_t *c, o3_stage_t stage, const char *text) {
  const o3_compile_options_t *options = c->plan.options;
  if (!options->progress) return;
  o3_stage_t first = c->plan.model_is_mlir ? c->plan.first : O3_STAGE_IMPORT;
  options->progress(options->progress_context, text, (int)(stage - first), (int)(c->plan.last - first) + 1);
}

static void report_measuring(void *compilation, const char *what) {
  report_progress(compilation, O3_STAGE_REWRITE, what);
}

/* ---- Setting up ---- */

static o3_status_t reproducer_folder(compilation_t *c, const char **folder) {
  const o3_plan_t *plan = &c->plan;
  const char *slash = plan->output && !plan->to_stdout ? strrchr(plan->output, '/') : NULL;
  *folder = plan->options->dump_dir ? plan->options->dump_dir : ".";
  if (!plan->options->dump_dir && slash)
    *folder =
        o3_arena_strndup(c->arena, plan->output, (size_t)(slash - plan->output) + (slash == plan->output));
  O3_TRY_ALLOC(*folder);
  return NULL;
}

static o3_status_t make_dump_dir(const char *path) {
  struct stat info;
  if (!path || !mkdir(path, 0777) || (errno == EEXIST && !stat(path, &info) && S_ISDIR(info.st_mode)))
    return NULL;
  return o3_status_create(O3_STATUS_IO, "cannot make the folder '%s' for dumps: %s", path, strerror(errno));
}

static o3_status_t read_hardware(compilation_t *c) {
  const o3_target_t *target = c->plan.target;
  O3_TRY(o3_hardware_read(c->plan.options->hardware, c->arena, &c->machine));
  return target->adapt ? target->adapt(c->arena, &c->machine) : NULL;
}

static o3_status_t check_precision(const compilation_t *c) {
  bool can = !c->machine.gpu || (c->machine.gpu->matrix & O3_GPU_MMA_BF16);
  if (c->plan.precision != O3_PRECISION_TF32 || can) return NULL;
  return o3_status_create(O3_STATUS_UNSUPPORTED,
                          "precision tf32: target '%s' has no instructions for it, from sm_80 on there are",
                          c->machine.gpu->name);
}

static o3_status_t set_up(compilation_t *c, const o3_compile_options_t *options) {
  O3_TRY(o3_plan_make(c->arena, options, &c->plan));
  O3_TRY(make_dump_dir(options->dump_dir));
  if (c->plan.output && !c->plan.to_stdout) O3_TRY(o3_workspace_create(c->plan.output, &c->workspace));
  O3_TRY(o3_context_create(&c->context));
  O3_TRY(o3_weights_create(c->context, &c->weights));
  if (c->workspace) O3_TRY(o3_weights_spill(c->weights, o3_workspace_folder(c->workspace)));
  O3_TRY(c->plan.target->machine(c->arena, &c->machine));
  if (options->hardware) O3_TRY(read_hardware(c));
  O3_TRY(check_precision(c));
  c->env = (o3_pass_env_t){.context = c->context,
                           .arena = c->arena,
                           .weights = c->weights,
                           .opt_level = options->opt_level,
                           .machine = &c->machine,
                           .sparse_format = options->sparse_format,
                           .precision = c->plan.precision,
                           .sparse_report = &c->sparse_report,
                           .no_fusion = options->no_fusion != 0,
                           .evaluate = o3_evaluate,
                           .measure = options->measure ? o3_measure : NULL,
                           .measurer = &c->measurer};
  c->measurer = (o3_measurer_t){.target = c->plan.target,
                                .threads = options->threads ? options->threads : c->machine.cores,
                                .progress = report_measuring,
                                .context = c};
  c->sparse_report.rows = o3_ptr_vec(c->arena);
  O3_TRY(o3_overrides_apply(c->arena, options, &c->env));
  if (options->sparse_config) O3_TRY(o3_sparse_config_read(options->sparse_config, &c->env));
  c->runner = (o3_pass_runner_t){.env = &c->env,
                                 .target = c->plan.target,
                                 .print_before = options->print_before,
                                 .print_after = options->print_after};
  return reproducer_folder(c, &c->runner.reproducer_folder);
}

static void tear_down(compilation_t *c) {
  o3_workspace_destroy(c->workspace);
  for (int i = 0; i < c->num_objects; ++i) free(c->objects[i].data);
  if (!mlirModuleIsNull(c->module)) mlirModuleDestroy(c->module);
  o3_weights_destroy(c->weights);
  if (!mlirContextIsNull(c->context)) o3_context_destroy(c->context);
  o3_arena_destroy(c->arena);
}

/* ---- Stages ---- */

/* A stage that runs for several kinds of code is one. */
static void record_time(compilation_t *c, o3_stage_t stage, double start) {
  int at = 0;
  while (at < c->num_stages && c->stages[at].name != o3_stage_name(stage)) ++at;
  if (at == c->num_stages) c->stages[c->num_stages++] = (o3_compile_stage_t){.name = o3_stage_name(stage)};
  c->stages[at].milliseconds += o3_clock_ms() - start;
  c->stages[at].peak_rss = o3_peak_rss();
}

/* A .mlir model without start_from: the stage that may have left it, of those that a person would write. */
static o3_status_t guess_stage(compilation_t *c) {
  static const o3_stage_t WRITTEN[] = {O3_STAGE_IMPORT, O3_STAGE_NORMALIZE, O3_STAGE_LOWER};
  o3_status_t status = NULL;
  for (size_t i = 0; i < sizeof(WRITTEN) / sizeof(WRITTEN[0]); ++i) {
    o3_status_destroy(status);
    status = o3_stage_check_legal(WRITTEN[i], c->module);
    if (status) continue;
    c->plan.first = (o3_stage_t)(WRITTEN[i] + 1);
    return NULL;
  }
  o3_status_t why =
      o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                       "'%s' is no module of stage import, normalize or lower (%s); for dumps of later "
                       "stages say which stage to start from",
                       c->plan.options->model, o3_status_message(status));
  o3_status_destroy(status);
  return why;
}

static o3_status_t read_mlir(compilation_t *c) {
  const o3_plan_t *plan = &c->plan;
  O3_TRY(o3_dump_read(c->context, c->weights, plan->options->model, &c->module));
  if (!plan->start_given) {
    O3_TRY(guess_stage(c));
  } else {
    o3_status_t legal = o3_stage_check_legal((o3_stage_t)(plan->first - 1), c->module);
    if (legal) {
      o3_status_t status =
          o3_status_create(O3_STATUS_INVALID_ARGUMENT, "'%s' cannot start stage '%s': %s",
                           plan->options->model, o3_stage_name(plan->first), o3_status_message(legal));
      o3_status_destroy(legal);
      return status;
    }
  }
  /* A module written by hand has its interface on @main still. */
  bool needs_interface = plan->first > O3_STAGE_NORMALIZE && !o3_interface_is_recorded(c->module);
  return needs_interface ? o3_interface_record(&c->env, c->module) : NULL;
}

static o3_status_t read_model(compilation_t *c) {
  const char *path = c->plan.options->model;
  double start = o3_clock_ms();
  if (c->plan.model_is_mlir) {
    O3_TRY(read_mlir(c));
  } else {
    report_progress(c, O3_STAGE_IMPORT, o3_stage_name(O3_STAGE_IMPORT));
    O3_TRY(o3_import_onnx(c->context, c->arena, c->weights, path, &c->module));
    O3_TRY_CONTEXT(o3_stage_verify(O3_STAGE_IMPORT, c->module), "'%s'", path);
    c->plan.first = O3_STAGE_NORMALIZE;
  }
  MlirOperation module = mlirModuleGetOperation(c->module);
  if (!o3_op_string(module, "o3.model").data)
    o3_op_attr_set(module, "o3.model", o3_attr_string(c->context, c->plan.model_name));
  if (!c->plan.model_is_mlir) record_time(c, O3_STAGE_IMPORT, start);
  return NULL;
}

/* NN-stage.ending in the folder for dumps; NULL without one. */
static o3_status_t dump_path(const compilation_t *c, o3_stage_t stage, const char *ending,
                             const char **path) {
  const char *folder = c->plan.options->dump_dir, *suffix = c->env.code_suffix ? c->env.code_suffix : "";
  *path = NULL;
  if (!folder) return NULL;
  *path = o3_arena_printf(c->arena, "%s/%02d-%s%s.%s", folder, (int)stage + 1, o3_stage_name(stage), suffix,
                          ending);
  O3_TRY_ALLOC(*path);
  return NULL;
}

static o3_status_t dump_module(const compilation_t *c, o3_stage_t stage) {
  const char *path;
  O3_TRY(dump_path(c, stage, "mlir", &path));
  return path ? o3_dump_module(c->module, "", path) : NULL;
}

/* The next pass of |stage| that the opt level runs, from place |*at| of the table on; false when there is
 * none. */
static bool next_pass(const compilation_t *c, o3_stage_t stage, int *at, o3_pass_info_t *pass) {
  while (o3_pass_at(c->runner.target, (*at)++, pass))
    if (pass->stage == stage && c->env.opt_level >= pass->min_level) return true;
  return false;
}

static o3_status_t run_passes(compilation_t *c, o3_stage_t stage) {
  int at = 0;
  o3_pass_info_t pass, next;
  bool more = next_pass(c, stage, &at, &pass);
  if (!more) return o3_stage_check_legal(stage, c->module);
  for (; more; pass = next) {
    more = next_pass(c, stage, &at, &next);
    O3_TRY(o3_pass_run(&c->runner, &pass, c->module, !more));
  }
  return NULL;
}

static o3_status_t emit_object(compilation_t *c) {
  o3_artifact_t *object = &c->objects[c->num_objects];
  o3_weights_trim(c->weights); /* LLVM's work comes on top of what earlier stages have freed */
  O3_TRY(c->runner.target->emit_object(&c->env, c->module, object));
  ++c->num_objects;
  const char *path;
  O3_TRY(dump_path(c, O3_STAGE_OBJECT, "o", &path));
  return path ? o3_dump_bytes(object->data, object->size, path) : NULL;
}

static o3_status_t package(compilation_t *c) {
  static const o3_package_kind_t KINDS[] = {[O3_OUTPUT_LIBRARY] = O3_PACKAGE_LIBRARY,
                                            [O3_OUTPUT_ARCHIVE] = O3_PACKAGE_ARCHIVE,
                                            [O3_OUTPUT_OBJECT] = O3_PACKAGE_OBJECT};
  MlirStringRef name = o3_op_string(mlirModuleGetOperation(c->module), "o3.model");
  o3_package_t request = {
      .link = {.kind = KINDS[c->plan.kind], .prefix = c->plan.prefix, .threads = c->plan.options->threads},
      .workspace = c->workspace,
      .output = c->plan.output,
      .name = o3_arena_strndup(c->arena, name.data, name.length),
      .options = c->plan.settings,
      .target = c->plan.target,
      .interface = &c->interface,
      .num_objects = c->num_objects,
      .objects = c->objects};
  O3_TRY_ALLOC(request.name);
  return o3_package(&c->env, c->module, &request);
}

/* When all is decided on kernels; code for several processors differs in that. */
static bool explains_after(const compilation_t *c, o3_stage_t stage) {
  return c->plan.options->explain &&
         stage == (c->plan.last < O3_STAGE_SCHEDULE ? O3_STAGE_FUSE : O3_STAGE_SCHEDULE);
}

static o3_status_t explain_kernels(const compilation_t *c) {
  char *text;
  O3_TRY(o3_fuse_explain(c->module, &text));
  if (c->plan.target->codes) fprintf(stderr, "code for %s:\n", c->runner.target->name);
  fputs(*text ? text : "no kernels: ops are joined at -O2 and higher\n", stderr);
  free(text);
  return NULL;
}

/* How the card is given each kernel, which the loops stage decides. */
static o3_status_t explain_launches(const compilation_t *c) {
  char *text;
  O3_TRY(o3_fuse_explain_launches(c->module, &text));
  fputs(text, stderr);
  free(text);
  return NULL;
}

/* The plan stage's arena, and the largest part of it that holds values at the same time. */
static void explain_memory(const compilation_t *c) {
  MlirOperation func = o3_module_func(c->module, "main");
  int64_t arena = o3_op_int(func, "o3.arena_bytes", 0), live = o3_op_int(func, "o3.live_bytes", 0);
  if (c->plan.target->codes) fprintf(stderr, "code for %s: ", c->runner.target->name);
  if (!arena) {
    fputs("memory: no arena is needed\n", stderr);
    return;
  }
  fprintf(stderr, "memory: an arena of %.3f MB, %.2f times what lives at the same time%s\n",
          (double)arena * 1e-6, (double)arena / (double)(live ? live : 1),
          c->interface.num_symbols ? ", with each size that is known only at run time as 1" : "");
}

/* What the rewrite stage has decided on weights. */
static o3_status_t report_weights(const compilation_t *c) {
  const o3_compile_options_t *options = c->plan.options;
  if (options->opt_level < 3) return NULL;
  if (options->explain) o3_sparse_report_print(stderr, &c->sparse_report);
  return options->report ? o3_sparse_report_write(options->report, c->plan.model_name, &c->sparse_report)
                         : NULL;
}

static o3_status_t run_stage(compilation_t *c, o3_stage_t stage) {
  double start = o3_clock_ms();
  report_progress(c, stage, o3_stage_name(stage));
  if (stage == O3_STAGE_OBJECT) {
    O3_TRY(emit_object(c));
  } else if (stage == O3_STAGE_PACKAGE) {
    O3_TRY(package(c));
  } else {
    O3_TRY(run_passes(c, stage));
    if (stage == O3_STAGE_REWRITE) O3_TRY(report_weights(c));
    if (explains_after(c, stage)) O3_TRY(explain_kernels(c));
    if (stage == O3_STAGE_PLAN && c->plan.options->explain) explain_memory(c);
    if (stage == O3_STAGE_LOOPS && c->plan.options->explain && c->machine.gpu) O3_TRY(explain_launches(c));
    O3_TRY(dump_module(c, stage));
  }
  record_time(c, stage, start);
  return NULL;
}

/* ---- Text outputs ---- */

static o3_status_t write_text(const compilation_t *c, const void *data, size_t size) {
  if (!c->plan.to_stdout) {
    O3_TRY(o3_workspace_write(c->workspace, O3_WORK_FILE_RESULT, data, size));
    return o3_workspace_publish(c->workspace, O3_WORK_FILE_RESULT, c->plan.output);
  }
  fwrite(data, 1, size, stdout);
  return o3_file_stdout_end();
}

static o3_status_t write_module(const compilation_t *c) {
  char *text = o3_ir_print(mlirModuleGetOperation(c->module));
  O3_TRY_ALLOC(text);
  o3_status_t status = write_text(c, text, strlen(text));
  free(text);
  return status;
}

static o3_status_t write_code_text(compilation_t *c,
                                   o3_status_t (*emit)(o3_pass_env_t *, MlirModule, o3_artifact_t *)) {
  o3_artifact_t text = {0};
  O3_TRY(emit(&c->env, c->module, &text));
  o3_status_t status = write_text(c, text.data, text.size);
  free(text.data);
  return status;
}

/* ---- The road ---- */

static o3_status_t save_weights(compilation_t *c, o3_status_t status) {
  const char *folder = c->plan.options->dump_dir;
  if (!folder || !c->weights) return status;
  const char *path = o3_arena_printf(c->arena, "%s/" O3_DUMP_WEIGHTS, folder);
  o3_status_t saved =
      path ? o3_dump_weights(c->weights, path) : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  return o3_status_join(status, saved);
}

/* ---- Code for several processors ---- */

static MlirModule clone_module(MlirModule module) {
  return mlirModuleFromOperation(mlirOperationClone(mlirModuleGetOperation(module)));
}

/* The stages from schedule to object for one kind of code; |weights| are those of the kind before. */
static o3_status_t run_code(compilation_t *c, const o3_target_t *code, MlirAttribute *weights) {
  o3_machine_t machine;
  O3_TRY(code->machine(c->arena, &machine));
  c->env.machine = &machine;
  c->env.code_suffix = o3_target_code_suffix(c->arena, code);
  O3_TRY_ALLOC(c->env.code_suffix);
  c->runner.target = code;
  for (o3_stage_t stage = O3_STAGE_SCHEDULE; stage <= O3_STAGE_OBJECT; ++stage) O3_TRY(run_stage(c, stage));
  MlirAttribute found = o3_op_attr(mlirModuleGetOperation(c->module), "o3.weights");
  bool agree = mlirAttributeIsNull(*weights) || mlirAttributeEqual(*weights, found);
  *weights = found;
  if (agree) return NULL;
  return o3_status_create(O3_STATUS_INTERNAL, "the code for %s wants other weights than that before it",
                          code->name);
}

/* Each kind starts from the module that the fuse stage has left; that of the last stays, for its weights. */
static o3_status_t run_codes(compilation_t *c) {
  MlirModule fused = c->module;
  MlirAttribute weights = {0};
  o3_status_t status = NULL;
  for (int i = 0; c->plan.target->codes[i] && !status; ++i) {
    if (i) mlirModuleDestroy(c->module);
    c->module = clone_module(fused);
    status = run_code(c, c->plan.target->codes[i], &weights);
  }
  mlirModuleDestroy(fused);
  c->env.machine = &c->machine;
  c->env.code_suffix = NULL;
  c->runner.target = c->plan.target;
  return status;
}

static o3_status_t run_stages(compilation_t *c) {
  O3_TRY(read_model(c));
  O3_TRY(o3_plan_check_wishes(c->arena, &c->plan));
  if (!c->plan.model_is_mlir) O3_TRY(dump_module(c, O3_STAGE_IMPORT));
  for (o3_stage_t stage = c->plan.first; stage <= c->plan.last; ++stage) {
    if (o3_interface_is_recorded(c->module) && !c->interface.symbols)
      O3_TRY(o3_interface_read(c->arena, c->module, &c->interface));
    if (stage == O3_STAGE_SCHEDULE && c->plan.target->codes) {
      O3_TRY(run_codes(c));
      stage = O3_STAGE_OBJECT;
    } else {
      O3_TRY(run_stage(c, stage));
    }
  }
  if (o3_interface_is_recorded(c->module) && !c->interface.symbols)
    O3_TRY(o3_interface_read(c->arena, c->module, &c->interface));
  if (c->plan.kind == O3_OUTPUT_MLIR) return write_module(c);
  if (c->plan.kind == O3_OUTPUT_LLVM_IR) return write_code_text(c, c->plan.target->emit_llvm_ir);
  if (c->plan.kind == O3_OUTPUT_PTX) return write_code_text(c, c->plan.target->emit_ptx);
  return NULL;
}

static o3_status_t compile(compilation_t *c, const o3_compile_options_t *options,
                           o3_compile_result_t **result) {
  double start = o3_clock_ms();
  O3_TRY(set_up(c, options));
  O3_TRY(save_weights(c, run_stages(c)));
  return o3_result_make(c, o3_clock_ms() - start, result);
}

int32_t o3_compile(const o3_compile_options_t *options, o3_compile_result_t **result, char **error) {
  *result = NULL;
  compilation_t c = {.arena = o3_arena_create()};
  o3_status_t status =
      c.arena ? compile(&c, options, result) : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  if (c.arena) tear_down(&c);
  return o3_result_give(status, error);
}
