/* One table (prune_options.def) feeds getopt, --help and the fields. */
#include "prune_options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_OPTION 256 /* getopt's values for rows: beyond all letters */

typedef struct option_row option_row_t;
typedef struct reader {
  int has_arg;
  o3_status_t (*read)(const option_row_t *row, const char *text, prune_options_t *options);
} reader_t;
struct option_row {
  int letter;
  const char *name; /* NULL: a heading, whose text is |help| */
  const reader_t *reader;
  size_t offset;
  const char *argument, *help;
};

static o3_status_t refuse(const option_row_t *row, const char *text, const char *rule) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--%s is '%s', %s is needed", row->name, text, rule);
}

static void *field_of(const option_row_t *row, prune_options_t *options) {
  return (char *)options + row->offset;
}

/* ---- Readers ---- */

static o3_status_t read_flag(const option_row_t *row, const char *text, prune_options_t *options) {
  (void)text;
  *(bool *)field_of(row, options) = true;
  return NULL;
}

static o3_status_t read_text(const option_row_t *row, const char *text, prune_options_t *options) {
  if (!*text) return refuse(row, text, row->argument);
  *(const char **)field_of(row, options) = text;
  return NULL;
}

static o3_status_t read_list(const option_row_t *row, const char *text, prune_options_t *options) {
  if (!*text) return refuse(row, text, row->argument);
  O3_TRY_ALLOC(o3_ptr_vec_push(field_of(row, options), (void *)(uintptr_t)text));
  return NULL;
}

static o3_status_t set_pattern(prune_options_t *options, prune_pattern_t pattern) {
  if (options->pattern.kind != PRUNE_NONE)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "--block, --nm and --unstructured exclude each other: give one, once");
  options->pattern = pattern;
  return NULL;
}

/* Two numbers from 1 to 65536 with |between| between them. */
static bool scan_pair(const char *text, char between, int64_t pair[2]) {
  for (int i = 0; i < 2; ++i) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    pair[i] = strtol(text, &end, 10);
    if (pair[i] < 1 || pair[i] > 65536 || *end != (i ? '\0' : between)) return false;
    text = end + 1;
  }
  return true;
}

static o3_status_t read_block(const option_row_t *row, const char *text, prune_options_t *options) {
  int64_t pair[2];
  if (!scan_pair(text, 'x', pair)) return refuse(row, text, "RxC, such as 16x16,");
  return set_pattern(options, (prune_pattern_t){PRUNE_BLOCK, pair[0], pair[1]});
}

static o3_status_t read_nm(const option_row_t *row, const char *text, prune_options_t *options) {
  int64_t pair[2];
  if (!scan_pair(text, ':', pair) || pair[0] >= pair[1])
    return refuse(row, text, "N:M with N below M, such as 2:4,");
  return set_pattern(options, (prune_pattern_t){PRUNE_NM, pair[0], pair[1]});
}

static o3_status_t read_unstructured(const option_row_t *row, const char *text, prune_options_t *options) {
  (void)row, (void)text;
  return set_pattern(options, (prune_pattern_t){PRUNE_BLOCK, 1, 1});
}

static o3_status_t read_ratio(const option_row_t *row, const char *text, prune_options_t *options) {
  char *end;
  options->ratio = strtod(text, &end);
  options->has_ratio = true;
  if (end == text || *end || !(options->ratio >= 0 && options->ratio <= 1))
    return refuse(row, text, "a number from 0 to 1, such as 0.6,");
  return NULL;
}

static o3_status_t read_seed(const option_row_t *row, const char *text, prune_options_t *options) {
  char *end;
  errno = 0;
  options->seed = strtoull(text, &end, 10);
  options->has_seed = true;
  if (errno || *text < '0' || *text > '9' || *end) return refuse(row, text, "a whole number");
  return NULL;
}

static o3_status_t read_ops(const option_row_t *row, const char *text, prune_options_t *options) {
  static const char *const NAMES[] = {"conv", "gemm", "matmul"};
  for (const char *at = text;; ++at) {
    size_t length = strcspn(at, ","), i = 0;
    while (i < 3 && (strlen(NAMES[i]) != length || strncmp(NAMES[i], at, length))) ++i;
    if (i == 3) return refuse(row, text, "a list of conv, gemm and matmul");
    options->ops |= 1u << i;
    at += length;
    if (!*at) return NULL;
  }
}

/* ---- The table ---- */

static const reader_t flag = {no_argument, read_flag}, text = {required_argument, read_text},
                      list = {required_argument, read_list}, block = {required_argument, read_block},
                      nm = {required_argument, read_nm}, unstructured = {no_argument, read_unstructured},
                      ratio = {required_argument, read_ratio}, seed = {required_argument, read_seed},
                      ops = {required_argument, read_ops};

static const option_row_t ROWS[] = {
#define PRUNE_OPTION(letter, name, reader, field, argument, help) \
  {letter, name, &reader, offsetof(prune_options_t, field), argument, help},
#define PRUNE_HEADING(title) {0, NULL, NULL, 0, NULL, title},
#include "prune_options.def"
#undef PRUNE_OPTION
#undef PRUNE_HEADING
};
enum { NUM_ROWS = sizeof(ROWS) / sizeof(ROWS[0]) };

static void fill_getopt(struct option *longs, char *letters) {
  int count = 0;
  *letters++ = ':'; /* tells a missing argument from an unknown option */
  for (int i = 0; i < NUM_ROWS; ++i) {
    if (!ROWS[i].name) continue;
    longs[count++] = (struct option){ROWS[i].name, ROWS[i].reader->has_arg, NULL, FIRST_OPTION + i};
    if (!ROWS[i].letter) continue;
    *letters++ = (char)ROWS[i].letter;
    if (ROWS[i].reader->has_arg == required_argument) *letters++ = ':';
  }
  *letters = '\0';
}

static const option_row_t *find_row(int value) {
  if (value >= FIRST_OPTION) return &ROWS[value - FIRST_OPTION];
  for (int i = 0; i < NUM_ROWS; ++i)
    if (ROWS[i].name && ROWS[i].letter == value) return &ROWS[i];
  return NULL;
}

static o3_status_t reject(int value, char **argv) {
  const char *problem = value == ':' ? "needs an argument" : "is unknown, ambiguous, or takes no argument";
  if (optopt > 0 && optopt < FIRST_OPTION)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "option -%c %s", optopt, problem);
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "option %s %s", argv[optind - 1], problem);
}

static o3_status_t invalid(const char *message) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s", message);
}

static o3_status_t check(const prune_options_t *options) {
  if (!options->model) return invalid("no model is given");
  if (options->pattern.kind == PRUNE_NONE)
    return invalid("one of --block, --nm and --unstructured is needed");
  if (options->pattern.kind == PRUNE_NM && (options->has_ratio || options->global))
    return invalid("--nm says how much is set to zero: neither --ratio nor --global goes with it");
  if (options->pattern.kind == PRUNE_BLOCK && !options->has_ratio) return invalid("--ratio is needed");
  return NULL;
}

o3_status_t prune_options_parse(o3_arena_t *arena, int argc, char **argv, prune_options_t *options) {
  struct option longs[NUM_ROWS + 1] = {0};
  char letters[2 * NUM_ROWS + 2];
  fill_getopt(longs, letters);
  *options = (prune_options_t){.only = o3_ptr_vec(arena), .skip = o3_ptr_vec(arena)};
  opterr = 0;
  for (int value; (value = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
    const option_row_t *row = find_row(value);
    if (value == '?' || value == ':' || !row) return reject(value, argv);
    O3_TRY(row->reader->read(row, optarg, options));
  }
  if (options->help || options->version) return NULL;
  options->model = argv[optind];
  if (argc - optind > 1)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "there are two models, '%s' and '%s': one is pruned",
                            argv[optind], argv[optind + 1]);
  return check(options);
}

char *prune_pattern_text(o3_arena_t *arena, const prune_pattern_t *pattern) {
  if (pattern->kind == PRUNE_NM)
    return o3_arena_printf(arena, "%" PRId64 ":%" PRId64, pattern->a, pattern->b);
  if (pattern->a == 1 && pattern->b == 1) return o3_arena_strdup(arena, "single weights");
  return o3_arena_printf(arena, "%" PRId64 "x%" PRId64 " blocks", pattern->a, pattern->b);
}

/* ---- --help ---- */

#define HELP_COLUMN 24

static void print_row(FILE *stream, const option_row_t *row) {
  if (!row->name) {
    fprintf(stream, "\n%s:\n", row->help);
    return;
  }
  char left[80], letter[8] = "";
  if (row->letter) snprintf(letter, sizeof(letter), "-%c, ", row->letter);
  snprintf(left, sizeof(left), "  %4s--%s%s%s", letter, row->name, *row->argument ? " " : "", row->argument);
  fprintf(stream, "%-*s ", HELP_COLUMN, left);
  for (const char *at = row->help; *at; ++at) {
    fputc(*at, stream);
    if (*at == '\n') fprintf(stream, "%*s ", HELP_COLUMN, "");
  }
  fputc('\n', stream);
}

void prune_help_print(FILE *stream) {
  fputs("usage: o3-prune [options] MODEL.onnx\n\nSets the smallest weights of a model to zero.\n", stream);
  for (int i = 0; i < NUM_ROWS; ++i) print_row(stream, &ROWS[i]);
  fputs(
      "\nExamples:\n"
      "  o3-prune net.onnx --block 16x16 --ratio 0.6 --skip-first -o sparse.onnx\n"
      "  o3-prune net.onnx --nm 2:4 --ops matmul,gemm --skip '*classifier*' -o sparse.onnx\n"
      "  o3-prune net.onnx --unstructured --ratio 0.9 --global --json\n"
      "\nThe model computes something else afterwards: train it further before it is used.\n",
      stream);
}
