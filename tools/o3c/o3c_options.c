/* One table (o3c_options.def) feeds getopt, --help and the fields. */
#include "o3c_options.h"

#include <getopt.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "driver/overrides.h"

#define FIRST_OPTION 256 /* getopt's values for rows: beyond all letters */

typedef struct option_row option_row_t;
typedef struct reader {
  int has_arg;
  o3_status_t (*read)(o3_arena_t *arena, const option_row_t *row, const char *text, void *field);
} reader_t;
struct option_row {
  int letter;
  const char *name; /* NULL: a heading, whose text is |help| */
  const reader_t *reader;
  size_t offset;
  const char *argument, *help;
};

/* ---- Reading arguments ---- */

static o3_status_t refuse(const option_row_t *row, const char *text, const char *rule) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--%s is '%s', %s is needed", row->name, text, rule);
}

static o3_status_t read_flag(o3_arena_t *arena, const option_row_t *row, const char *text, void *field) {
  (void)arena, (void)row, (void)text;
  *(bool *)field = true;
  return NULL;
}

static o3_status_t read_switch(o3_arena_t *arena, const option_row_t *row, const char *text, void *field) {
  (void)arena, (void)row, (void)text;
  *(int32_t *)field = 1;
  return NULL;
}

static o3_status_t read_text(o3_arena_t *arena, const option_row_t *row, const char *text, void *field) {
  (void)arena;
  if (!*text) return refuse(row, text, row->argument);
  *(const char **)field = text;
  return NULL;
}

static o3_status_t read_all(o3_arena_t *arena, const option_row_t *row, const char *text, void *field) {
  (void)arena, (void)row, (void)text;
  *(const char **)field = "all";
  return NULL;
}

static o3_status_t read_pass(o3_arena_t *arena, const option_row_t *row, const char *text, void *field) {
  return text ? read_text(arena, row, text, field) : read_all(arena, row, text, field);
}

static o3_status_t read_level(o3_arena_t *arena, const option_row_t *row, const char *text, void *field) {
  (void)arena;
  const char *digit = text + (*text == 'O');
  if (*digit < '0' || *digit > '3' || digit[1]) return refuse(row, text, "one of 0, 1, 2, 3");
  *(int32_t *)field = *digit - '0';
  return NULL;
}

static o3_status_t read_threads(o3_arena_t *arena, const option_row_t *row, const char *text, void *field) {
  (void)arena;
  char *end;
  long value = strtol(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || value > 1024) return refuse(row, text, "a number up to 1024");
  *(int32_t *)field = (int32_t)value;
  return NULL;
}

static o3_status_t read_dim(o3_arena_t *arena, const option_row_t *row, const char *text, void *field) {
  (void)row;
  return o3_overrides_add_dim(arena, text, field);
}

static o3_status_t read_shape(o3_arena_t *arena, const option_row_t *row, const char *text, void *field) {
  (void)row;
  return o3_overrides_add_shape(arena, text, field);
}

/* ---- The table ---- */

static const reader_t flag = {no_argument, read_flag}, text = {required_argument, read_text},
                      all = {no_argument, read_all}, switch_on = {no_argument, read_switch},
                      pass = {optional_argument, read_pass}, level = {required_argument, read_level},
                      threads = {required_argument, read_threads}, dim = {required_argument, read_dim},
                      shape = {required_argument, read_shape};

static const option_row_t ROWS[] = {
#define O3C_OPTION(letter, name, reader, field, argument, help) \
  {letter, name, &reader, offsetof(o3c_options_t, field), argument, help},
#define O3C_HEADING(title) {0, NULL, NULL, 0, NULL, title},
#include "o3c_options.def"
#undef O3C_OPTION
#undef O3C_HEADING
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

static o3_status_t take_positional(o3c_options_t *options, int argc, char **argv) {
  for (int i = optind; i < argc; ++i) {
    if (options->compile.model)
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                              "there are two models, '%s' and '%s': one is compiled", options->compile.model,
                              argv[i]);
    options->compile.model = argv[i];
  }
  bool asks = options->help || options->version || options->print_hardware;
  if (!asks && !options->compile.model)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "no model is given");
  return NULL;
}

/* An option that getopt did not take: '?' or ':' (its argument is missing). */
static o3_status_t reject(int value, char **argv) {
  const char *problem = value == ':' ? "needs an argument" : "is unknown, ambiguous, or takes no argument";
  if (optopt > 0 && optopt < FIRST_OPTION)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "option -%c %s", optopt, problem);
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "option %s %s", argv[optind - 1], problem);
}

o3_status_t o3c_options_parse(o3_arena_t *arena, int argc, char **argv, o3c_options_t *options) {
  struct option longs[NUM_ROWS + 1] = {0};
  char letters[2 * NUM_ROWS + 2];
  fill_getopt(longs, letters);
  *options = (o3c_options_t){.compile = {.opt_level = 1}};
  opterr = 0;
  for (int value; (value = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
    const option_row_t *row = find_row(value);
    if (value == '?' || value == ':' || !row) return reject(value, argv);
    O3_TRY(row->reader->read(arena, row, optarg, (char *)options + row->offset));
  }
  O3_TRY(take_positional(options, argc, argv));
  if (options->json && options->compile.output && !strcmp(options->compile.output, "-"))
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--json and --output - both want stdout");
  return NULL;
}

/* ---- --help ---- */

#define HELP_COLUMN 34

static void print_row(FILE *stream, const option_row_t *row) {
  if (!row->name) {
    fprintf(stream, "\n%s:\n", row->help);
    return;
  }
  char left[80], letter[8] = "";
  if (row->letter) snprintf(letter, sizeof(letter), "-%c, ", row->letter);
  bool optional = row->reader->has_arg == optional_argument;
  const char *separator = !*row->argument ? "" : optional ? "=" : " ";
  snprintf(left, sizeof(left), "  %4s--%s%s%s", letter, row->name, separator, row->argument);
  fprintf(stream, "%-*s ", HELP_COLUMN, left);
  if (strlen(left) > HELP_COLUMN) fprintf(stream, "\n%*s ", HELP_COLUMN, "");
  for (const char *at = row->help; *at; ++at) {
    fputc(*at, stream);
    if (*at == '\n') fprintf(stream, "%*s ", HELP_COLUMN, "");
  }
  fputc('\n', stream);
}

static void print_list(FILE *stream, const char *title, const char *(*at)(int32_t, const char **)) {
  const char *name, *summary;
  fprintf(stream, "\n%s:\n", title);
  for (int32_t i = 0; (name = at(i, &summary)); ++i) fprintf(stream, "  %-14s %s\n", name, summary);
}

void o3c_help_print(FILE *stream) {
  fputs(
      "usage: o3c [options] MODEL\n\nCompiles a neural network to a library that runs it and needs nothing "
      "else.\n",
      stream);
  for (int i = 0; i < NUM_ROWS; ++i) print_row(stream, &ROWS[i]);
  print_list(stream, "Targets", o3_compile_target);
  print_list(stream, "Sparse formats", o3_compile_sparse_format);
  print_list(stream, "Stages", o3_compile_stage);
  fputs(
      "\nExamples:\n"
      "  o3c resnet50.onnx                            resnet50.so for this machine\n"
      "  o3c resnet50.onnx --dim batch=1 -o net.a     archive and header, batch size fixed\n"
      "  o3c resnet50.onnx --emit normalize -o -      what the model looks like inside\n"
      "  o3c resnet50.onnx --dump-dir d --timing      every stage's module, time and memory\n"
      "  o3c --start-from lower d/03-rewrite.mlir     go on from a dump\n"
      "\nThe library's interface is <o3/model.h>; o3-run runs a library from the command line.\n",
      stream);
}
