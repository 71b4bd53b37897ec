/* o3c: the compiler's command line. Exit status 0: compiled; 1: it failed; 2: wrong usage. */
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options.h"
#include "o3c_options.h"
#include "o3c_report.h"

enum { EXIT_FAILED = 1 };

typedef struct progress {
  bool lines, bar; /* a line a stage (-v), or one line that is written over */
} progress_t;

static void show_stage(void *context, const char *stage, int32_t index, int32_t count) {
  const progress_t *progress = context;
  if (progress->lines) fprintf(stderr, "o3c: [%d/%d] %s\n", index + 1, count, stage);
  if (progress->bar) fprintf(stderr, "\r\033[K[%d/%d] %s", index + 1, count, stage);
}

static void clear_bar(const progress_t *progress) {
  if (progress->bar) fputs("\r\033[K", stderr);
}

/* Messages of LLVM and the linker have several lines; ours has one. */
static void print_error(int32_t code, const char *message) {
  fprintf(stderr, "o3c: error: %s", code == O3_STATUS_INTERNAL ? "internal error: " : "");
  for (const char *at = message; *at; ++at) {
    if (*at == '\n')
      fputs("; ", stderr);
    else
      fputc(*at, stderr);
  }
  fputc('\n', stderr);
}

static int fail(const o3c_options_t *options, int32_t code, const char *message) {
  const char *text = message ? message : "out of memory";
  if (!options->json)
    print_error(code, text);
  else if (!o3c_report_json_error(stdout, code, text))
    print_error(code, "the JSON object cannot be written");
  return EXIT_FAILED;
}

/* What links lead to, as that was written; the links stay. */
static void remove_file(const char *path) {
  char *target = path ? realpath(path, NULL) : NULL;
  if (target) unlink(target);
  free(target);
}

static int report(const o3c_options_t *options, const o3_compile_result_t *result) {
  if (options->timing) o3c_report_timing(stderr, result);
  if (result->output && strcmp(result->output, "-") && !options->quiet &&
      (options->verbose || isatty(STDERR_FILENO))) {
    char size[32];
    o3c_report_bytes(size, sizeof(size), result->output_bytes);
    fprintf(stderr, "o3c: wrote %s (%s) in %.2f s\n", result->output, size, result->milliseconds / 1e3);
  }
  if (!options->json || o3c_report_json(stdout, result)) return EXIT_SUCCESS;
  /* What fails leaves nothing that looks like its result. */
  remove_file(result->output);
  remove_file(result->header);
  return fail(options, 0, "the JSON object cannot be written");
}

static int compile(o3c_options_t *options) {
  progress_t progress = {.lines = options->verbose,
                         .bar = !options->verbose && !options->quiet && isatty(STDERR_FILENO)};
  options->compile.progress = show_stage;
  options->compile.progress_context = &progress;
  o3_compiler_install_handlers("o3c");
  o3_compile_result_t *result;
  char *error;
  int32_t code = o3_compile(&options->compile, &result, &error);
  clear_bar(&progress);
  int status = code ? fail(options, code, error) : report(options, result);
  free(error);
  o3_compile_result_destroy(result);
  return status;
}

static int print_version(void) {
  printf("o3c %s (LLVM %s)\n", o3_compiler_version(), o3_compiler_llvm_version());
  return o3_options_text_end("o3c");
}

static int print_hardware(const o3c_options_t *options) {
  char *text, *error;
  int32_t code = o3_compile_hardware(options->compile.target, options->compile.measure, &text, &error);
  if (!code) fputs(text, stdout);
  int status = code ? fail(options, code, error) : o3_options_text_end("o3c");
  free(text);
  free(error);
  return status;
}

static int run(o3c_options_t *options) {
  if (options->version) return print_version();
  if (options->print_hardware) return print_hardware(options);
  if (!options->help) return compile(options);
  o3c_help_print(stdout);
  return o3_options_text_end("o3c");
}

// Freed memory goes back at once: glibc would raise its thresholds with the size of the blocks that are
// freed, and hold weights and modules of stages that are done beside those of the stage that follows.
static void return_freed_memory(void) { mallopt(M_TRIM_THRESHOLD, 128 * 1024); }

int main(int argc, char **argv) {
  return_freed_memory();
  signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error of the write, which cleans up */
  o3_log_program_set("o3c");
  o3_arena_t *arena = o3_arena_create();
  o3c_options_t options = {0};
  o3_status_t status = arena ? o3c_options_parse(arena, argc, argv, &options)
                             : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  o3_log_level_set(options.verbose ? O3_LOG_DEBUG : options.quiet ? O3_LOG_ERROR : O3_LOG_NOTE);
  int code = status ? o3_options_usage_error("o3c", status) : run(&options);
  if (arena) o3_arena_destroy(arena);
  return code;
}
