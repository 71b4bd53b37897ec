/* One table (run_options.def) feeds getopt, --help and the fields. */
#include "run_options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"

/* A whole decimal number that ends at |end|. */
static bool scan_integer(const char *text, char end, int64_t *value, const char **next) {
  char *stop;
  errno = 0;
  const long long number = strtoll(text, &stop, 10);
  if (errno || stop == text || *stop != end) return false;
  *value = number;
  *next = stop;
  return true;
}

static o3_status_t read_integer(o3_arena_t *arena, const o3_option_row_t *row, const char *text,
                                void *field) {
  (void)arena;
  const char *next;
  char rule[64];
  int64_t value;
  snprintf(rule, sizeof rule, "an integer from %" PRId64 " to %d", row->least, INT32_MAX);
  if (!scan_integer(text, '\0', &value, &next) || value < row->least || value > INT32_MAX) {
    return o3_option_refuse(row, text, rule);
  }
  *(int64_t *)field = value;
  return NULL;
}

static o3_status_t read_optional(o3_arena_t *arena, const o3_option_row_t *row, const char *text,
                                 void *field) {
  o3_run_optional_t *optional = field;
  optional->given = true;
  return text ? read_integer(arena, row, text, &optional->value) : NULL;
}

static o3_status_t read_real(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)arena;
  char *stop;
  const double value = strtod(text, &stop);
  if (stop == text || *stop || !isfinite(value) || value < 0)
    return o3_option_refuse(row, text, "a number of at least 0");
  *(double *)field = value;
  return NULL;
}

static o3_status_t read_range(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)arena;
  o3_run_range_t *range = field;
  const char *next;
  if (!scan_integer(text, ':', &range->low, &next) || !scan_integer(next + 1, '\0', &range->high, &next) ||
      range->low > range->high) {
    return o3_option_refuse(row, text, "LOW:HIGH with LOW <= HIGH");
  }
  return NULL;
}

static const o3_option_reader_t flag = {no_argument, o3_option_read_flag},
                                text = {required_argument, o3_option_read_text},
                                list = {required_argument, o3_option_read_list},
                                integer = {required_argument, read_integer},
                                optional = {optional_argument, read_optional},
                                real = {required_argument, read_real},
                                range = {required_argument, read_range};

static const o3_option_row_t ROWS[] = {
#define O3_RUN_HEADING(title) {.help = title},
#define O3_RUN_OPTION(letter, name, field, reader, least, argument, help) \
  {letter, name, &reader, offsetof(o3_run_options_t, field), argument, help, least},
#include "run_options.def"
#undef O3_RUN_OPTION
#undef O3_RUN_HEADING
};
static const o3_option_table_t TABLE = {ROWS, sizeof(ROWS) / sizeof(ROWS[0])};

static o3_status_t parse_words(o3_arena_t *arena, int argc, char **argv, o3_run_options_t *options) {
  O3_TRY(o3_options_read(&TABLE, arena, argc, argv, options));
  if (optind < argc) options->model = argv[optind++];
  if (optind < argc) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "'%s' is one model too many: '%s' came before",
                            argv[optind], options->model);
  }
  return NULL;
}

/* The sets: pairs of --inputs-dir and --expect-dir, then those of --test-dir; at least one. */
static o3_status_t pair_sets(o3_arena_t *arena, o3_run_options_t *options) {
  const size_t inputs = options->inputs_dirs.count, expects = options->expect_dirs.count;
  const size_t tests = options->test_dirs.count;
  if (expects > inputs && !(expects == 1 && tests == 0)) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "--expect-dir is given %zu times and --inputs-dir %zu times: each goes with one",
                            expects, inputs);
  }
  const size_t pairs = inputs > expects ? inputs : expects;
  options->num_sets = pairs + tests ? pairs + tests : 1;
  options->sets = O3_ARENA_ARRAY(arena, o3_run_set_t, options->num_sets);
  O3_TRY_ALLOC(options->sets);
  for (size_t i = 0; i < pairs; ++i) {
    if (i < inputs) options->sets[i].inputs_dir = options->inputs_dirs.items[i];
    if (i < expects) options->sets[i].expect_dir = options->expect_dirs.items[i];
  }
  for (size_t i = 0; i < tests; ++i) {
    options->sets[pairs + i] = (o3_run_set_t){options->test_dirs.items[i], options->test_dirs.items[i]};
  }
  if (options->save && options->num_sets > 1) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--save takes one set of inputs, %zu are given",
                            options->num_sets);
  }
  return NULL;
}

/* Whether the model has the dimension is seen where its inputs are made. */
static o3_status_t check_dims(o3_arena_t *arena, const o3_run_options_t *options) {
  o3_str_map_t *names = o3_str_map_create(arena);
  O3_TRY_ALLOC(names);
  for (size_t i = 0; i < options->dims.count; ++i) {
    char *text = options->dims.items[i], *equals = strrchr(text, '=');
    if (!equals || equals == text || !equals[1] || equals[1 + strspn(equals + 1, "0123456789")])
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "dimension '%s' is not of the form NAME=SIZE",
                              text);
    const char *end;
    int64_t size;
    if (!scan_integer(equals + 1, '\0', &size, &end))
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "dimension '%s': the size is above %" PRId64, text,
                              INT64_MAX);
    size_t length = (size_t)(equals - text);
    if (o3_str_map_get(names, text, length))
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "dimension '%.*s' is given twice", (int)length,
                              text);
    if (!o3_str_map_put(names, text, length, text))
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  return NULL;
}

o3_status_t o3_run_options_parse(int argc, char **argv, o3_arena_t *arena, o3_run_options_t *options) {
  const o3_ptr_vec_t empty = o3_ptr_vec(arena);
  *options = (o3_run_options_t){.symbol_prefix = "o3",
                                .inputs = empty,
                                .inputs_dirs = empty,
                                .dims = empty,
                                .expects = empty,
                                .expect_dirs = empty,
                                .test_dirs = empty,
                                .int_range = {0, 9},
                                .tolerance = O3_TOLERANCE_INIT,
                                .warmup = -1,
                                .repeat = 1};
  O3_TRY(parse_words(arena, argc, argv, options));
  options->tolerance.int_atol = (uint64_t)options->int_atol;
  if (options->help || options->version) return NULL;
  if (!options->model) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "no model is given");
  }
  O3_TRY(check_dims(arena, options));
  return pair_sets(arena, options);
}

bool o3_run_options_want_run(const o3_run_options_t *options) {
  const size_t files = options->inputs.count + options->inputs_dirs.count + options->expects.count +
                       options->expect_dirs.count + options->test_dirs.count;
  return files || options->random.given || options->bench.given || options->profile.given || options->save ||
         options->repeat > 1;
}

void o3_run_options_print_help(FILE *stream) {
  fputs(
      "Usage: o3-run MODEL.so [options]\n"
      "\n"
      "Loads a model that o3c compiled. Without options it describes the model: its inputs, outputs and\n"
      "target. With inputs it runs the model and sums up, saves, checks or times the outputs.\n"
      "\n"
      "Examples:\n"
      "  o3-run net.so                                  what the model wants and gives\n"
      "  o3-run net.so --random --dim N=4               run it on random inputs, batch of 4\n"
      "  o3-run net.so -i x=x.npy -i mask.npy -s out    run it on files, write out/NAME.npy\n"
      "  o3-run net.so -i x.npy -e y=y.npy --rtol 1e-4  compare with an expected output\n"
      "  o3-run net.so -t test_data_set_0               ONNX test data: input_0.pb, output_0.pb, ...\n"
      "  o3-run net.so --random 7 --bench --threads 1   time it on one thread\n"
      "  o3-run net.so --random 7 --profile -j1         what each kernel takes\n",
      stream);
  o3_options_print(&TABLE, stream, 0);
  fputs(
      "\nExit status: 0 fine; 1 an error, or outputs that differ from the expected ones; 2 a wrong command "
      "line.\n",
      stream);
}
