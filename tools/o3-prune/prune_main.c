/* o3-prune: sets the smallest weights of an ONNX model to zero. Exit status 0: done; 1: it failed; 2: wrong
 * usage. */
#include <signal.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/options.h"
#include "o3/compiler.h"
#include "prune_report.h"
#include "prune_select.h"
#include "prune_write.h"

enum { EXIT_FAILED = 1 };

static o3_status_t work(const prune_options_t *options, prune_model_t *model, o3_arena_t *arena) {
  O3_TRY(prune_model_open(options, arena, model));
  O3_TRY(prune_select(options, model));
  if (options->output) O3_TRY(prune_write(model, options->model, options->output));
  bool made =
      options->json ? prune_report_json(stdout, options, model) : prune_report_text(stdout, options, model);
  O3_TRY(o3_file_stdout_end());
  O3_TRY_ALLOC(made);
  return NULL;
}

static int prune(const prune_options_t *options, o3_arena_t *arena) {
  prune_model_t model = {0};
  o3_status_t status = work(options, &model, arena);
  prune_model_close(&model);
  if (!status) return EXIT_SUCCESS;
  o3_log_status(status);
  return EXIT_FAILED;
}

static int run(const prune_options_t *options, o3_arena_t *arena) {
  if (options->help)
    prune_help_print(stdout);
  else if (options->version)
    printf("o3-prune %s\n", o3_compiler_version());
  else
    return prune(options, arena);
  return o3_options_text_end("o3-prune");
}

int main(int argc, char **argv) {
  signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error of the write, which cleans up */
  o3_log_program_set("o3-prune");
  o3_arena_t *arena = o3_arena_create();
  prune_options_t options;
  o3_status_t status = arena ? prune_options_parse(arena, argc, argv, &options)
                             : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  int code = status ? o3_options_usage_error("o3-prune", status) : run(&options, arena);
  if (arena) o3_arena_destroy(arena);
  return code;
}
