/* o3-run: loads a compiled model and describes, runs, checks or times it. */
#include <signal.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/options.h"
#include "run_execute.h"
#include "run_model.h"
#include "run_options.h"
#include "run_report.h"
#include "run_result.h"
#include "run_save.h"
#include "run_slots.h"
#include "tensorio/tensor.h"

enum { EXIT_OK = 0, EXIT_FAILURE_OR_DIFFERENCE = 1 };

/* What lives as long as one set of inputs. */
typedef struct set_run {
  o3_run_slots_t inputs, expected,
      results; /* results: our copy of the outputs, the session's are overwritten */
  o3_tensor_t *outputs;
  o3_run_result_t result;
} set_run_t;

/* The whole program's state. */
typedef struct run {
  o3_run_options_t options;
  o3_run_model_t model;
  o3_session_t *session;
  o3_arena_t *arena;
  o3_strbuf_t out;
  size_t num_failed; /* sets with an output that differs */
} run_t;

/* Text goes out at once, JSON when it is whole. */
static o3_status_t flush_out(run_t *run) {
  if (run->out.failed) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory for the report");
  if (run->out.length) fwrite(run->out.text, 1, run->out.length, stdout);
  o3_strbuf_deinit(&run->out);
  return o3_file_stdout_end();
}

static o3_status_t load_inputs(run_t *run, const o3_run_set_t *set, o3_run_slots_t *inputs) {
  O3_TRY(o3_run_slots_add_files(inputs, &run->options.inputs));
  O3_TRY(o3_run_slots_add_folder(inputs, set->inputs_dir, run->arena));
  O3_TRY(o3_run_slots_check_dims(inputs, &run->options.dims));
  if (run->options.random.given) O3_TRY(o3_run_slots_add_random(inputs, &run->options));
  return o3_run_slots_check_full(inputs, "use --input, --inputs-dir or --random");
}

static o3_status_t load_expected(run_t *run, const o3_run_set_t *set, o3_run_slots_t *expected) {
  O3_TRY(o3_run_slots_add_files(expected, &run->options.expects));
  O3_TRY(o3_run_slots_add_folder(expected, set->expect_dir, run->arena));
  if (!set->expect_dir) return NULL;
  return o3_run_slots_check_full(expected, "the folder of expected outputs must hold a file for each");
}

/* Copies the session's outputs, which the next run would overwrite. */
static o3_status_t keep_outputs(const o3_tensor_t *outputs, o3_run_slots_t *results) {
  for (int32_t i = 0; i < results->count; ++i) {
    size_t bytes;
    o3_tensor_t copy = outputs[i];
    O3_TRY_CONTEXT(o3_tensorio_measure(&copy, NULL, &bytes), "output '%s'", results->infos[i].name);
    if (bytes && !outputs[i].data) {
      return o3_status_create(O3_STATUS_INVALID_MODEL, "output '%s' came without data",
                              results->infos[i].name);
    }
    O3_TRY_CONTEXT(o3_tensorio_tensor_init(&copy), "output '%s'", results->infos[i].name);
    if (bytes) memcpy(copy.data, outputs[i].data, bytes);
    results->tensors[i] = copy;
  }
  return NULL;
}

static o3_status_t assess_output(const run_t *run, set_run_t *set, int32_t index) {
  o3_run_output_t *output = &set->result.outputs[index];
  *output = (o3_run_output_t){.name = run->model.outputs[index].name, .tensor = &set->results.tensors[index]};
  O3_TRY(o3_run_summary_init(output->tensor, &output->summary));
  if (!set->expected.tensors[index].data) return NULL;
  output->compared = true;
  output->expected = &set->expected.tensors[index];
  O3_TRY(o3_tensorio_compare(output->tensor, output->expected, &run->options.tolerance, &output->comparison));
  ++set->result.num_compared;
  set->result.num_failed += !output->comparison.ok;
  return NULL;
}

static o3_status_t assess(const run_t *run, set_run_t *set) {
  for (int32_t i = 0; i < set->results.count; ++i) {
    O3_TRY_CONTEXT(assess_output(run, set, i), "output '%s'", run->model.outputs[i].name);
  }
  return NULL;
}

static o3_status_t init_set(run_t *run, set_run_t *set) {
  const o3_run_model_t *model = &run->model;
  const int32_t num_outputs = model->info.num_outputs;
  O3_TRY(o3_run_slots_init("input", model->inputs, model->info.num_inputs, run->arena, &set->inputs));
  O3_TRY(o3_run_slots_init("output", model->outputs, num_outputs, run->arena, &set->expected));
  O3_TRY(o3_run_slots_init("output", model->outputs, num_outputs, run->arena, &set->results));
  set->outputs = O3_ARENA_ARRAY(run->arena, o3_tensor_t, num_outputs ? (size_t)num_outputs : 1);
  O3_TRY_ALLOC(set->outputs);
  set->result.num_outputs = num_outputs;
  set->result.outputs = O3_ARENA_ARRAY(run->arena, o3_run_output_t, num_outputs ? (size_t)num_outputs : 1);
  O3_TRY_ALLOC(set->result.outputs);
  return NULL;
}

static o3_status_t execute_set(run_t *run, const o3_run_set_t *where, set_run_t *set) {
  const o3_run_options_t *options = &run->options;
  O3_TRY(init_set(run, set));
  set->result.inputs_dir = where->inputs_dir;
  O3_TRY(load_inputs(run, where, &set->inputs));
  O3_TRY(load_expected(run, where, &set->expected));
  const o3_run_binding_t binding = {run->session, &set->inputs, set->outputs, set->results.count};
  O3_TRY(o3_run_execute_once(&binding));
  O3_TRY(keep_outputs(set->outputs, &set->results));
  O3_TRY(o3_run_execute_repeat(&binding, &set->results, options->repeat - 1));
  O3_TRY(assess(run, set));
  if (options->save) O3_TRY(o3_run_save(options->save, &set->results, run->arena));
  set->result.timed = options->bench.given;
  if (set->result.timed) O3_TRY(o3_run_execute_bench(&binding, options, &set->result.times));
  if (!options->profile.given) return NULL;
  set->result.profile = O3_ARENA_ARRAY(run->arena, o3_run_profile_t, 1);
  O3_TRY_ALLOC(set->result.profile);
  return o3_run_profile_make(&run->model, &binding, options, run->arena, set->result.profile);
}

static o3_status_t run_set(run_t *run, size_t index) {
  const o3_run_set_t *where = &run->options.sets[index];
  set_run_t set = {0};
  o3_status_t status = execute_set(run, where, &set);
  if (!status && run->options.json) {
    if (index) o3_strbuf_puts(&run->out, ", ");
    o3_run_json_result(&run->out, &set.result, &run->options);
  } else if (!status) {
    o3_run_text_result(&run->out, &set.result, &run->options);
    status = flush_out(run);
  }
  run->num_failed += set.result.num_failed > 0;
  o3_run_slots_deinit(&set.inputs);
  o3_run_slots_deinit(&set.expected);
  o3_run_slots_deinit(&set.results);
  return where->inputs_dir ? o3_status_annotate(status, "set '%s'", where->inputs_dir) : status;
}

static o3_status_t run_sets(run_t *run) {
  const o3_run_options_t *options = &run->options;
  const o3_session_options_t session = {.threads = (int32_t)options->threads,
                                        .spin_us = (int32_t)options->spin_us,
                                        .device = (int32_t)options->device};
  const o3_code_t code = o3_session_create(run->model.model, &session, &run->session);
  if (code != O3_OK) return o3_run_model_failure(code, o3_last_error(run->model.model));
  if (options->json) {
    o3_strbuf_puts(&run->out, "{\"model\": ");
    o3_run_json_model(&run->out, &run->model);
    o3_strbuf_puts(&run->out, ", \"sets\": [");
  }
  for (size_t i = 0; i < options->num_sets; ++i) O3_TRY(run_set(run, i));
  o3_log(O3_LOG_NOTE, "the session runs the code for %s", o3_session_code(run->session));
  o3_log(O3_LOG_NOTE, "the session holds %zu bytes", o3_session_memory(run->session));
  if (options->json) {
    o3_strbuf_printf(&run->out, "], \"ok\": %s}\n", run->num_failed ? "false" : "true");
  } else if (options->num_sets > 1) {
    o3_strbuf_printf(&run->out, "sets: %zu run, %zu differ\n", options->num_sets, run->num_failed);
  }
  return flush_out(run);
}

/* --dim has nothing to do where no inputs are made, but its names are wrong all the same. */
static o3_status_t check_dims(run_t *run) {
  o3_run_slots_t inputs = {0};
  O3_TRY(o3_run_slots_init("input", run->model.inputs, run->model.info.num_inputs, run->arena, &inputs));
  o3_status_t status = o3_run_slots_check_dims(&inputs, &run->options.dims);
  o3_run_slots_deinit(&inputs);
  return status;
}

static o3_status_t describe(run_t *run) {
  O3_TRY(check_dims(run));
  if (run->options.json) {
    o3_strbuf_puts(&run->out, "{\"model\": ");
    o3_run_json_model(&run->out, &run->model);
    o3_strbuf_puts(&run->out, "}\n");
  } else {
    o3_run_text_model(&run->out, &run->model);
  }
  return flush_out(run);
}

static o3_status_t run_model(run_t *run) {
  const o3_run_options_t *options = &run->options;
  if (options->verbose) o3_log_level_set(O3_LOG_NOTE);
  O3_TRY(o3_run_model_open(options->model, options->symbol_prefix, run->arena, &run->model));
  o3_log(O3_LOG_NOTE, "loaded '%s': model '%s' for %s", options->model, run->model.info.name,
         run->model.info.target);
  o3_status_t status = o3_run_options_want_run(options) ? run_sets(run) : describe(run);
  o3_session_destroy(run->session);
  o3_run_model_close(&run->model);
  return status;
}

static int run_program(run_t *run, int argc, char **argv) {
  o3_status_t status = o3_run_options_parse(argc, argv, run->arena, &run->options);
  if (status) return o3_options_usage_error("o3-run", status);
  if (run->options.help) {
    o3_run_options_print_help(stdout);
    status = flush_out(run);
  } else if (run->options.version) {
    puts("o3-run " O3_VERSION);
    status = flush_out(run);
  } else {
    status = run_model(run);
  }
  const bool failed = status != NULL || run->num_failed > 0;
  o3_log_status(status);
  return failed ? EXIT_FAILURE_OR_DIFFERENCE : EXIT_OK;
}

int main(int argc, char **argv) {
  signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error of the write, which cleans up */
  run_t run = {.arena = o3_arena_create()};
  o3_log_program_set("o3-run");
  if (!run.arena) {
    o3_log(O3_LOG_ERROR, "out of memory");
    return EXIT_FAILURE_OR_DIFFERENCE;
  }
  const int code = run_program(&run, argc, argv);
  o3_strbuf_deinit(&run.out);
  o3_arena_destroy(run.arena);
  return code;
}
