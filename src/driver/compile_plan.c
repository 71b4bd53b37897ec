/* All that a user may have got wrong is found here, before the first second of work. */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "driver/compilation.h"
#include "driver/sparse_format.h"
#include "package/descriptor.h"

static o3_status_t invalid(const char *text) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s", text);
}

static bool ends_with(const char *text, const char *ending) {
  size_t length = strlen(text), tail = strlen(ending);
  return length >= tail && !strcmp(text + length - tail, ending);
}

/* ---- The model ---- */

static o3_status_t plan_model(o3_arena_t *arena, o3_plan_t *plan) {
  const char *path = plan->options->model;
  if (!path || !*path) return invalid("no model is given");
  plan->model_is_mlir = ends_with(path, ".mlir");
  if (!plan->model_is_mlir && !ends_with(path, ".onnx"))
    return o3_status_create(O3_STATUS_UNSUPPORTED, "model '%s': its ending must be .onnx or .mlir", path);
  struct stat info;
  if (stat(path, &info)) return o3_status_create(O3_STATUS_NOT_FOUND, "model '%s' does not exist", path);
  const char *slash = strrchr(path, '/');
  const char *base = slash ? slash + 1 : path;
  plan->model_name = o3_arena_strndup(arena, base, (size_t)(strrchr(base, '.') - base));
  O3_TRY_ALLOC(plan->model_name);
  return NULL;
}

/* ---- Stages ---- */

static o3_status_t plan_stages(o3_plan_t *plan) {
  const o3_compile_options_t *options = plan->options;
  plan->first = O3_STAGE_IMPORT;
  plan->last = O3_STAGE_PACKAGE;
  plan->start_given = options->start_from != NULL;
  if (options->emit && options->stop_after) return invalid("emit and stop-after cannot both be given");
  const char *last = options->emit ? options->emit : options->stop_after;
  if (last) O3_TRY(o3_stage_find(last, &plan->last));
  if (plan->start_given) O3_TRY(o3_stage_find(options->start_from, &plan->first));
  if (options->emit && !o3_stage_has_module(plan->last))
    return o3_status_create(
        O3_STATUS_INVALID_ARGUMENT,
        "stage '%s' leaves no module to emit; an output that ends in .o, .a or .so holds it", last);
  if (plan->first > plan->last)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "stage '%s' to start from comes after '%s', the last to run", options->start_from,
                            last);
  if (!plan->start_given) return NULL;
  if (plan->first == O3_STAGE_PACKAGE) return invalid("packaging cannot be started from: start from object");
  if ((plan->first == O3_STAGE_IMPORT) == plan->model_is_mlir)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "stage '%s' starts from a %s file, the model is '%s'",
                            options->start_from, plan->model_is_mlir ? "model" : ".mlir", options->model);
  return NULL;
}

/* ---- The output ---- */

static const struct {
  const char *ending;
  o3_output_kind_t kind;
} OUTPUTS[] = {{".so", O3_OUTPUT_LIBRARY}, {".a", O3_OUTPUT_ARCHIVE}, {".o", O3_OUTPUT_OBJECT},
               {".ll", O3_OUTPUT_LLVM_IR}, {".ptx", O3_OUTPUT_PTX},   {".mlir", O3_OUTPUT_MLIR}};
enum { NUM_OUTPUTS = sizeof(OUTPUTS) / sizeof(OUTPUTS[0]) };

static o3_status_t kind_of(const char *output, o3_output_kind_t *kind) {
  for (int i = 0; i < NUM_OUTPUTS; ++i) {
    if (!ends_with(output, OUTPUTS[i].ending)) continue;
    *kind = OUTPUTS[i].kind;
    return NULL;
  }
  return o3_status_create(
      O3_STATUS_INVALID_ARGUMENT,
      "output '%s': its ending must be .so, .a, .o, .ll, .ptx or .mlir, which says what is written", output);
}

/* A shorter road is enough for text: nothing is made that is not asked for. */
static o3_status_t plan_text_output(o3_plan_t *plan, bool partial) {
  if (partial && plan->kind != O3_OUTPUT_MLIR)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "output '%s': the module of a stage is written as .mlir", plan->output);
  if (!o3_stage_has_module(plan->last)) plan->last = O3_STAGE_LLVM;
  if (plan->first > plan->last && plan->kind == O3_OUTPUT_MLIR)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "no stage from '%s' on leaves a module to write to '%s'",
                            plan->options->start_from, plan->output);
  return NULL;
}

/* The name within its folder, which has other spellings than |path|. */
static const char *last_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool is_folder_of(const char *path, struct stat *info) {
  char folder[PATH_MAX];
  size_t length = (size_t)(last_name(path) - path);
  if (length >= sizeof(folder)) return false;
  memcpy(folder, path, length);
  folder[length] = 0;
  return !stat(length ? folder : ".", info);
}

/* Of files that do not exist yet, the folders are compared. */
static bool is_same_file(const char *one, const char *other) {
  struct stat a, b;
  if (!strcmp(one, other)) return true;
  bool exists = !stat(one, &a), both = !stat(other, &b) && exists;
  if (both) return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  return !strcmp(last_name(one), last_name(other)) && is_folder_of(one, &a) && is_folder_of(other, &b) &&
         a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static o3_status_t check_not_model(const o3_plan_t *plan, const char *what, const char *path) {
  if (!is_same_file(path, plan->options->model)) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s '%s' is the model itself", what, path);
}

static o3_status_t check_report(const o3_plan_t *plan) {
  const char *report = plan->options->report;
  if (!report) return NULL;
  if (!strcmp(report, "-") && plan->to_stdout)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "report and output both want stdout");
  if (!strcmp(report, "-")) return NULL;
  O3_TRY(check_not_model(plan, "report", report));
  if (!plan->output || !is_same_file(report, plan->output)) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "report '%s' is the output, too", report);
}

static o3_status_t plan_output(o3_arena_t *arena, o3_plan_t *plan) {
  const o3_compile_options_t *options = plan->options;
  bool partial = options->emit || options->stop_after;
  plan->output = options->output;
  if (!plan->output) {
    if (options->stop_after && (options->dump_dir || !o3_stage_has_module(plan->last))) return NULL;
    plan->output = o3_arena_printf(arena, "%s%s", plan->model_name, partial ? ".mlir" : ".so");
    O3_TRY_ALLOC(plan->output);
  }
  plan->to_stdout = !strcmp(plan->output, "-");
  plan->kind = O3_OUTPUT_MLIR;
  if (!plan->to_stdout) O3_TRY(kind_of(plan->output, &plan->kind));
  O3_TRY(check_not_model(plan, "output", plan->output));
  if (plan->kind == O3_OUTPUT_PTX && !plan->target->emit_ptx)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "output '%s': target '%s' is no NVIDIA GPU",
                            plan->output, plan->target->name);
  bool text = plan->kind == O3_OUTPUT_MLIR || plan->kind == O3_OUTPUT_LLVM_IR || plan->kind == O3_OUTPUT_PTX;
  if (partial || text) return plan_text_output(plan, partial);
  return NULL;
}

/* ---- Everything ---- */

/* What a user asks of the choice of sparse formats, in words; NULL when nothing. */
static o3_status_t sparse_wish(o3_arena_t *arena, const o3_compile_options_t *options, const char **wish) {
  const char *format = options->sparse_format;
  *wish = options->measure         ? "measuring sparse formats"
          : options->sparse_config ? "a sparse configuration"
          : options->report        ? "a report on sparse weights"
                                   : NULL;
  bool fixed = format && strcmp(format, "auto") && !options->sparse_config;
  if (options->measure && fixed)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "measuring chooses between sparse formats, '%s' is asked for already", format);
  if (*wish || !format || !strcmp(format, "auto") || !strcmp(format, "dense")) return NULL;
  *wish = o3_arena_printf(arena, "sparse format '%s'", format);
  O3_TRY_ALLOC(*wish);
  return NULL;
}

/* On a GPU and below level 3 nobody looks at zeros: what would be ignored is refused. */
static o3_status_t check_sparse(o3_arena_t *arena, const o3_plan_t *plan) {
  const char *wish;
  O3_TRY(sparse_wish(arena, plan->options, &wish));
  if (!wish) return NULL;
  if (plan->target->emit_ptx && !plan->options->measure)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "%s: target '%s' computes sparse weights densely so far",
                            wish, plan->target->name);
  if (plan->options->opt_level < 3)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s needs opt level 3, it is %d", wish,
                            plan->options->opt_level);
  return plan->options->measure ? o3_measure_check(plan->target) : NULL;
}

static o3_status_t refuse_wish(const o3_plan_t *plan, const char *wish, const char *stages) {
  bool early = plan->last < O3_STAGE_REWRITE;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s needs %s, the %s to run is '%s'", wish, stages,
                          early ? "last" : "first", o3_stage_name(early ? plan->last : plan->first));
}

o3_status_t o3_plan_check_wishes(o3_arena_t *arena, const o3_plan_t *plan) {
  const char *wish;
  O3_TRY(sparse_wish(arena, plan->options, &wish));
  if (wish && (plan->first > O3_STAGE_REWRITE || plan->last < O3_STAGE_REWRITE))
    return refuse_wish(plan, wish, "stage 'rewrite'");
  if (plan->options->explain && (plan->first > O3_STAGE_SCHEDULE || plan->last < O3_STAGE_REWRITE))
    return refuse_wish(plan, "an explanation",
                       "a stage of 'rewrite' to 'schedule', where the choices are made");
  return NULL;
}

static o3_status_t plan_precision(o3_plan_t *plan) {
  static const struct {
    const char *name;
    o3_precision_t precision;
  } NAMES[] = {{"fp32", O3_PRECISION_FP32},
               {"tf32", O3_PRECISION_TF32},
               {"fp16", O3_PRECISION_FP16},
               {"bf16", O3_PRECISION_BF16}};
  const char *name = plan->options->precision ? plan->options->precision : "fp32";
  size_t i = 0;
  while (i < sizeof(NAMES) / sizeof(NAMES[0]) && strcmp(name, NAMES[i].name)) ++i;
  if (i == sizeof(NAMES) / sizeof(NAMES[0]))
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "precision '%s' is not one of fp32, tf32, fp16, bf16",
                            name);
  plan->precision = NAMES[i].precision;
  if (i == 0 || plan->target->emit_ptx) return NULL;
  return o3_status_create(O3_STATUS_UNSUPPORTED,
                          "precision %s: target '%s' would compute it in float32; it is for GPU targets",
                          name, plan->target->name);
}

/* A hardware file is of one CPU or GPU. */
static o3_status_t check_hardware(const o3_target_t *target) {
  if (!target->codes) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "target '%s' takes no hardware file: it is not one CPU",
                          target->name);
}

static o3_status_t plan_target(o3_plan_t *plan) {
  const o3_compile_options_t *options = plan->options;
  if (options->opt_level < 0 || options->opt_level > 3)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "opt level %d is not one of 0, 1, 2, 3",
                            options->opt_level);
  if (options->threads < 0)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%d threads: 0 or more are needed", options->threads);
  O3_TRY(o3_target_find(options->target ? options->target : o3_target_at(0)->name, &plan->target));
  O3_TRY(plan_precision(plan));
  if (options->hardware) O3_TRY(check_hardware(plan->target));
  O3_TRY(o3_sparse_format_check(options->sparse_format ? options->sparse_format : "auto"));
  plan->prefix = options->symbol_prefix ? options->symbol_prefix : "o3";
  return o3_symbol_prefix_check(plan->prefix);
}

static o3_status_t check_printed_pass(const o3_plan_t *plan, const char *name) {
  o3_pass_info_t pass;
  if (!name || !strcmp(name, "all") || o3_pass_find(plan->target, name, &pass)) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "there is no pass '%s' to print the module around; %s",
                          name, "o3-opt --list-passes tells them");
}

static o3_status_t describe_settings(o3_arena_t *arena, o3_plan_t *plan) {
  const o3_compile_options_t *options = plan->options;
  plan->settings = o3_arena_printf(
      arena, "llvm %s precision %s sparse-format %s fusion %d prefix %s", o3_compiler_llvm_version(),
      options->precision ? options->precision : "fp32",
      options->sparse_format ? options->sparse_format : "auto", !options->no_fusion, plan->prefix);
  O3_TRY_ALLOC(plan->settings);
  return NULL;
}

/* Each kind of code has modules of its own from schedule on. */
static o3_status_t check_codes(const o3_plan_t *plan) {
  const o3_target_t *target = plan->target;
  bool looks = plan->last >= O3_STAGE_SCHEDULE && plan->last <= O3_STAGE_OBJECT;
  if (!target->codes || (!looks && plan->first <= O3_STAGE_SCHEDULE)) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                          "target '%s' makes code for %s and %s: choose one of them to start from or stop at "
                          "stage '%s'",
                          target->name, target->codes[0]->name, target->codes[1]->name,
                          o3_stage_name(looks ? plan->last : plan->first));
}

o3_status_t o3_plan_make(o3_arena_t *arena, const o3_compile_options_t *options, o3_plan_t *plan) {
  *plan = (o3_plan_t){.options = options};
  O3_TRY(plan_target(plan));
  O3_TRY(check_sparse(arena, plan));
  O3_TRY(plan_model(arena, plan));
  O3_TRY(plan_stages(plan));
  O3_TRY(plan_output(arena, plan));
  O3_TRY(check_report(plan));
  O3_TRY(check_codes(plan));
  O3_TRY(check_printed_pass(plan, options->print_before));
  O3_TRY(check_printed_pass(plan, options->print_after));
  return describe_settings(arena, plan);
}
