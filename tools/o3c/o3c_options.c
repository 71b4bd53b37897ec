/* One table (o3c_options.def) feeds getopt, --help and the fields. */
#include "o3c_options.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "driver/overrides.h"

/* ---- Reading arguments ---- */

static o3_status_t read_switch(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)arena, (void)row, (void)text;
  *(int32_t *)field = 1;
  return NULL;
}

static o3_status_t read_all(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)arena, (void)row, (void)text;
  *(const char **)field = "all";
  return NULL;
}

static o3_status_t read_pass(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  return text ? o3_option_read_text(arena, row, text, field) : read_all(arena, row, text, field);
}

static o3_status_t read_level(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)arena;
  const char *digit = text + (*text == 'O');
  if (*digit < '0' || *digit > '3' || digit[1]) return o3_option_refuse(row, text, "one of 0, 1, 2, 3");
  *(int32_t *)field = *digit - '0';
  return NULL;
}

static o3_status_t read_threads(o3_arena_t *arena, const o3_option_row_t *row, const char *text,
                                void *field) {
  (void)arena;
  char *end;
  long value = strtol(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || value > 1024)
    return o3_option_refuse(row, text, "a number up to 1024");
  *(int32_t *)field = (int32_t)value;
  return NULL;
}

static o3_status_t read_dim(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)row;
  return o3_overrides_add_dim(arena, text, field);
}

static o3_status_t read_shape(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)row;
  return o3_overrides_add_shape(arena, text, field);
}

static o3_status_t read_value(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)row;
  return o3_overrides_add_value(arena, text, field);
}

/* ---- The table ---- */

static const o3_option_reader_t flag = {no_argument, o3_option_read_flag},
                                text = {required_argument, o3_option_read_text},
                                all = {no_argument, read_all}, switch_on = {no_argument, read_switch},
                                pass = {optional_argument, read_pass},
                                level = {required_argument, read_level},
                                threads = {required_argument, read_threads},
                                dim = {required_argument, read_dim}, value = {required_argument, read_value},
                                shape = {required_argument, read_shape};

static const o3_option_row_t ROWS[] = {
#define O3C_OPTION(letter, name, reader, field, argument, help) \
  {letter, name, &reader, offsetof(o3c_options_t, field), argument, help, 0},
#define O3C_HEADING(title) {.help = title},
#include "o3c_options.def"
#undef O3C_OPTION
#undef O3C_HEADING
};
static const o3_option_table_t TABLE = {ROWS, sizeof(ROWS) / sizeof(ROWS[0])};

static o3_status_t take_positional(o3c_options_t *options, int argc, char **argv) {
  for (int i = optind; i < argc; ++i) {
    if (options->compile.model)
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                              "there are two models, '%s' and '%s': one is compiled", options->compile.model,
                              argv[i]);
    options->compile.model = argv[i];
  }
  if (options->print_hardware && options->compile.model)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--print-hardware takes no model, '%s' is given",
                            options->compile.model);
  bool asks = options->help || options->version || options->print_hardware;
  if (!asks && !options->compile.model)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "no model is given");
  return NULL;
}

o3_status_t o3c_options_parse(o3_arena_t *arena, int argc, char **argv, o3c_options_t *options) {
  *options = (o3c_options_t){.compile = {.opt_level = 1}};
  O3_TRY(o3_options_read(&TABLE, arena, argc, argv, options));
  O3_TRY(take_positional(options, argc, argv));
  if (options->json && options->compile.output && !strcmp(options->compile.output, "-"))
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--json and --output - both want stdout");
  if (options->json && options->compile.report && !strcmp(options->compile.report, "-"))
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--json and --report - both want stdout");
  return NULL;
}

/* ---- --help ---- */

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
  o3_options_print(&TABLE, stream, 35);
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
