#include "base/options.h"

#include <stdbool.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"

#define FIRST_OPTION 256 /* getopt's values for rows: beyond all letters */

/* ---- Readers ---- */

o3_status_t o3_option_refuse(const o3_option_row_t *row, const char *text, const char *rule) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--%s is '%s', %s is needed", row->name, text, rule);
}

o3_status_t o3_option_read_flag(o3_arena_t *arena, const o3_option_row_t *row, const char *text,
                                void *field) {
  (void)arena, (void)row, (void)text;
  *(bool *)field = true;
  return NULL;
}

o3_status_t o3_option_read_text(o3_arena_t *arena, const o3_option_row_t *row, const char *text,
                                void *field) {
  (void)arena;
  if (!*text) return o3_option_refuse(row, text, row->argument);
  *(const char **)field = text;
  return NULL;
}

o3_status_t o3_option_read_list(o3_arena_t *arena, const o3_option_row_t *row, const char *text,
                                void *field) {
  (void)arena;
  if (!*text) return o3_option_refuse(row, text, row->argument);
  O3_TRY_ALLOC(o3_ptr_vec_push(field, (void *)(uintptr_t)text));
  return NULL;
}

/* ---- The command line ---- */

static void fill_getopt(const o3_option_table_t *table, struct option *longs, char *letters) {
  *letters++ = ':'; /* tells a missing argument from an unknown option */
  for (int i = 0; i < table->num_rows; ++i) {
    const o3_option_row_t *row = &table->rows[i];
    if (!row->name) continue;
    *longs++ = (struct option){row->name, row->reader->has_arg, NULL, FIRST_OPTION + i};
    if (!row->letter) continue;
    *letters++ = (char)row->letter;
    for (int colons = 0; colons < row->reader->has_arg; ++colons) *letters++ = ':';
  }
  *longs = (struct option){0};
  *letters = '\0';
}

static const o3_option_row_t *find_row(const o3_option_table_t *table, int value) {
  if (value >= FIRST_OPTION) return &table->rows[value - FIRST_OPTION];
  for (int i = 0; i < table->num_rows; ++i)
    if (table->rows[i].name && table->rows[i].letter == value) return &table->rows[i];
  return NULL;
}

/* An option that getopt did not take: '?' or ':' (its argument is missing). */
static o3_status_t reject(int value, char **argv) {
  const char *word = argv[optind - 1];
  bool letter = optopt && optopt < FIRST_OPTION; /* below 0: a byte that is no ASCII */
  if (value == ':' && letter)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "option '-%c' needs an argument", optopt);
  if (value == ':')
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "option '%s' needs an argument", word);
  if (letter && optopt < 0)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "unknown option with byte 0x%02x", optopt & 0xff);
  if (letter) return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "unknown option '-%c'", optopt);
  if (optopt) return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "option '%s' takes no argument", word);
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "unknown or ambiguous option '%s'", word);
}

static bool is_number(const char *text) {
  return text && *text && strspn(text, "0123456789") == strlen(text);
}

/* getopt wants an optional argument attached (--bench=5); `--bench 5` is taken as well. */
static const char *take_argument(const o3_option_row_t *row, char **argv) {
  bool next = !optarg && row->reader->has_arg == optional_argument && is_number(argv[optind]);
  return next ? argv[optind++] : optarg;
}

o3_status_t o3_options_read(const o3_option_table_t *table, o3_arena_t *arena, int argc, char **argv,
                            void *options) {
  size_t rows = (size_t)table->num_rows;
  struct option *longs = O3_ARENA_ARRAY(arena, struct option, rows + 1);
  char *letters = O3_ARENA_ARRAY(arena, char, 3 * rows + 2);
  O3_TRY_ALLOC(longs && letters);
  fill_getopt(table, longs, letters);
  opterr = 0;
  for (int value; (value = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
    const o3_option_row_t *row = value == '?' || value == ':' ? NULL : find_row(table, value);
    if (!row) return reject(value, argv);
    O3_TRY(row->reader->read(arena, row, take_argument(row, argv), (char *)options + row->offset));
  }
  return NULL;
}

/* ---- --help ---- */

/* The lines of |text|, those after the first behind |margin| spaces. */
static void print_lines(FILE *stream, const char *text, int margin) {
  for (; *text; ++text) {
    fputc(*text, stream);
    if (*text == '\n') fprintf(stream, "%*s", margin, "");
  }
  fputc('\n', stream);
}

static void print_row(FILE *stream, const o3_option_row_t *row, int column) {
  static const char *const BRACKETS[][2] = {
      [no_argument] = {"", ""}, [required_argument] = {" ", ""}, [optional_argument] = {"[=", "]"}};
  char left[96], letter[8] = "";
  const char *const *brackets = BRACKETS[row->reader->has_arg];
  if (row->letter) snprintf(letter, sizeof(letter), "-%c, ", row->letter);
  int length = snprintf(left, sizeof(left), "  %4s--%s%s%s%s", letter, row->name, brackets[0], row->argument,
                        brackets[1]);
  fprintf(stream, "%-*s", column, left);
  if (length >= column) fprintf(stream, "\n%*s", column ? column : 10, "");
  print_lines(stream, row->help, column ? column : 10);
}

void o3_options_print(const o3_option_table_t *table, FILE *stream, int column) {
  for (int i = 0; i < table->num_rows; ++i) {
    if (table->rows[i].name)
      print_row(stream, &table->rows[i], column);
    else
      fprintf(stream, "\n%s:\n", table->rows[i].help);
  }
}

int o3_options_usage_error(const char *tool, o3_status_t status) {
  bool usage = o3_status_code(status) != O3_STATUS_OUT_OF_MEMORY;
  fprintf(stderr, "%s: error: %s", tool, o3_status_message(status));
  if (usage) fprintf(stderr, "; %s --help tells more", tool);
  fputc('\n', stderr);
  o3_status_destroy(status);
  return usage ? 2 : 1;
}

int o3_options_text_end(const char *tool) {
  o3_status_t status = o3_file_stdout_end();
  if (!status) return 0;
  fprintf(stderr, "%s: error: %s\n", tool, o3_status_message(status));
  o3_status_destroy(status);
  return 1;
}
