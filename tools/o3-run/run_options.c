/* One table (run_options.def) feeds getopt, --help and the fields. */
#include "run_options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_OPTION 256 /* getopt's values for rows: beyond all letters */

typedef struct option_row option_row_t;
typedef struct option_parser {
  int has_arg;
  o3_status_t (*parse)(const option_row_t *row, const char *text, void *field);
} option_parser_t;
struct option_row {
  int letter;
  const char *name; /* NULL: a heading, whose text is |help| */
  size_t offset;
  const option_parser_t *parser;
  int64_t least;
  const char *argument, *help;
};

static o3_status_t refuse(const option_row_t *row, const char *text, const char *rule) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--%s is '%s', %s expected", row->name, text, rule);
}

static o3_status_t parse_flag(const option_row_t *row, const char *text, void *field) {
  (void)row, (void)text;
  *(bool *)field = true;
  return NULL;
}

static o3_status_t parse_text(const option_row_t *row, const char *text, void *field) {
  if (!*text) return refuse(row, text, "a text");
  *(const char **)field = text;
  return NULL;
}

static o3_status_t parse_list(const option_row_t *row, const char *text, void *field) {
  if (!*text) return refuse(row, text, row->argument);
  if (o3_ptr_vec_push(field, (void *)(uintptr_t)text)) return NULL;
  return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

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

static o3_status_t parse_integer(const option_row_t *row, const char *text, void *field) {
  const char *next;
  char rule[64];
  int64_t value;
  snprintf(rule, sizeof rule, "an integer from %" PRId64 " to %d", row->least, INT32_MAX);
  if (!scan_integer(text, '\0', &value, &next) || value < row->least || value > INT32_MAX) {
    return refuse(row, text, rule);
  }
  *(int64_t *)field = value;
  return NULL;
}

static o3_status_t parse_optional(const option_row_t *row, const char *text, void *field) {
  o3_run_optional_t *optional = field;
  optional->given = true;
  return text ? parse_integer(row, text, &optional->value) : NULL;
}

static o3_status_t parse_real(const option_row_t *row, const char *text, void *field) {
  char *stop;
  const double value = strtod(text, &stop);
  if (stop == text || *stop || !isfinite(value) || value < 0)
    return refuse(row, text, "a number of at least 0");
  *(double *)field = value;
  return NULL;
}

static o3_status_t parse_range(const option_row_t *row, const char *text, void *field) {
  o3_run_range_t *range = field;
  const char *next;
  if (!scan_integer(text, ':', &range->low, &next) || !scan_integer(next + 1, '\0', &range->high, &next) ||
      range->low > range->high) {
    return refuse(row, text, "LOW:HIGH with LOW <= HIGH");
  }
  return NULL;
}

static const option_parser_t parser_flag = {no_argument, parse_flag};
static const option_parser_t parser_text = {required_argument, parse_text};
static const option_parser_t parser_list = {required_argument, parse_list};
static const option_parser_t parser_integer = {required_argument, parse_integer};
static const option_parser_t parser_optional = {optional_argument, parse_optional};
static const option_parser_t parser_real = {required_argument, parse_real};
static const option_parser_t parser_range = {required_argument, parse_range};

static const option_row_t rows[] = {
#define O3_RUN_HEADING(text) {.help = text},
#define O3_RUN_OPTION(letter, name, field, parser, least, argument, help) \
  {letter, name, offsetof(o3_run_options_t, field), &parser_##parser, least, argument, help},
#include "run_options.def"
#undef O3_RUN_OPTION
#undef O3_RUN_HEADING
};
#define NUM_ROWS (sizeof rows / sizeof *rows)

typedef struct getopt_tables {
  struct option longs[NUM_ROWS + 1];
  char letters[3 * NUM_ROWS + 2];
} getopt_tables_t;

static void fill_getopt_tables(getopt_tables_t *tables) {
  struct option *option = tables->longs;
  char *letter = tables->letters;
  *letter++ = ':'; /* a missing argument is told apart */
  for (size_t i = 0; i < NUM_ROWS; ++i) {
    if (!rows[i].name) continue;
    *option++ = (struct option){rows[i].name, rows[i].parser->has_arg, NULL, FIRST_OPTION + (int)i};
    if (!rows[i].letter) continue;
    *letter++ = (char)rows[i].letter;
    for (int colons = 0; colons < rows[i].parser->has_arg; ++colons) *letter++ = ':';
  }
  *option = (struct option){0};
  *letter = '\0';
}

static const option_row_t *find_row(int value) {
  if (value >= FIRST_OPTION) return &rows[value - FIRST_OPTION];
  for (size_t i = 0; i < NUM_ROWS; ++i) {
    if (rows[i].letter == value) return &rows[i];
  }
  return NULL;
}

static bool is_number(const char *text) {
  return text && *text && strspn(text, "0123456789") == strlen(text);
}

/* getopt wants an optional argument attached (--bench=5); `--bench 5` is taken as well. */
static const char *take_argument(const option_row_t *row, char **argv) {
  if (!optarg && row->parser->has_arg == optional_argument && is_number(argv[optind])) return argv[optind++];
  return optarg;
}

static o3_status_t parse_failure(int value, char **argv) {
  const char *word = argv[optind - 1];
  if (value == ':')
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "option '%s' wants an argument", word);
  if (optopt && optopt < FIRST_OPTION) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "unknown option '-%c'; o3-run --help lists them",
                            optopt);
  }
  if (optopt) return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "option '%s' takes no argument", word);
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                          "unknown or ambiguous option '%s'; o3-run --help lists them", word);
}

static o3_status_t parse_words(int argc, char **argv, o3_run_options_t *options) {
  getopt_tables_t tables;
  int value;
  fill_getopt_tables(&tables);
  opterr = 0;
  while ((value = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
    const option_row_t *row = value == '?' || value == ':' ? NULL : find_row(value);
    if (!row) return parse_failure(value, argv);
    O3_TRY(row->parser->parse(row, take_argument(row, argv), (char *)options + row->offset));
  }
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
  O3_TRY(parse_words(argc, argv, options));
  options->tolerance.int_atol = (uint64_t)options->int_atol;
  if (options->help || options->version) return NULL;
  if (!options->model) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "no model given: o3-run MODEL.so; o3-run --help tells more");
  }
  return pair_sets(arena, options);
}

bool o3_run_options_want_run(const o3_run_options_t *options) {
  const size_t files = options->inputs.count + options->inputs_dirs.count + options->expects.count +
                       options->expect_dirs.count + options->test_dirs.count;
  return files || options->random.given || options->bench.given || options->profile.given || options->save ||
         options->repeat > 1;
}

static void print_option(FILE *stream, const option_row_t *row) {
  static const char *const brackets[][2] = {
      [no_argument] = {"", ""}, [required_argument] = {" ", ""}, [optional_argument] = {"[=", "]"}};
  if (row->letter) {
    fprintf(stream, "  -%c, ", row->letter);
  } else {
    fputs("      ", stream);
  }
  fprintf(stream, "--%s%s%s%s\n", row->name, brackets[row->parser->has_arg][0], row->argument,
          brackets[row->parser->has_arg][1]);
  for (const char *line = row->help; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    fprintf(stream, "          %.*s\n", (int)strcspn(line, "\n"), line);
  }
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
  for (size_t i = 0; i < NUM_ROWS; ++i) {
    if (rows[i].name) {
      print_option(stream, &rows[i]);
    } else {
      fprintf(stream, "\n%s:\n", rows[i].help);
    }
  }
  fputs(
      "\nExit status: 0 fine; 1 an error, or outputs that differ from the expected ones; 2 a wrong command "
      "line.\n",
      stream);
}
