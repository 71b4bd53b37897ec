/* A tool's command line from one table, which feeds getopt, --help and the fields of the tool's struct.
 *
 *   static const o3_option_reader_t text = {required_argument, o3_option_read_text};
 *   static const o3_option_row_t ROWS[] = {
 *       {.help = "What is written"},                                          // a heading
 *       {'o', "output", &text, offsetof(my_options_t, output), "FILE", "the result"}};
 *   static const o3_option_table_t TABLE = {ROWS, sizeof(ROWS) / sizeof(ROWS[0])};
 *   O3_TRY(o3_options_read(&TABLE, arena, argc, argv, &options));             // then argv[optind] ...
 *
 * Rows come from a .def file by an X-macro. A new kind of argument is a reader of the tool's own. */
#ifndef O3_BASE_OPTIONS_H
#define O3_BASE_OPTIONS_H

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct o3_option_row o3_option_row_t;

typedef struct o3_option_reader {
  int has_arg; /* getopt's no_argument, required_argument, optional_argument */
  /* Puts |text| (NULL: none was given) into |field|. */
  o3_status_t (*read)(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field);
} o3_option_reader_t;

struct o3_option_row {
  int letter;       /* 0: none */
  const char *name; /* NULL: a heading, whose text is |help| */
  const o3_option_reader_t *reader;
  size_t offset;               /* of the field in the tool's struct */
  const char *argument, *help; /* for --help; `\n` breaks a line */
  int64_t least;               /* for readers of numbers */
};

typedef struct o3_option_table {
  const o3_option_row_t *rows;
  int num_rows;
} o3_option_table_t;

/* For readers: a bool becomes true; text that is not empty, the command line's own; the same, put at the end
 * of an o3_ptr_vec_t. */
o3_status_t o3_option_read_flag(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field)
    O3_MUST_USE;
o3_status_t o3_option_read_text(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field)
    O3_MUST_USE;
o3_status_t o3_option_read_list(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field)
    O3_MUST_USE;

/* Reads the options into |options|; argv[optind] is then the first word that is none. INVALID_ARGUMENT names
 * the option and what is wrong. An optional argument that is a number may also stand as the next word. */
o3_status_t o3_options_read(const o3_option_table_t *table, o3_arena_t *arena, int argc, char **argv,
                            void *options) O3_MUST_USE;

/* "--block is '16', RxC is needed" */
o3_status_t o3_option_refuse(const o3_option_row_t *row, const char *text, const char *rule) O3_MUST_USE;

/* The rows for --help: descriptions begin at |column|, or in lines of their own when it is 0. */
void o3_options_print(const o3_option_table_t *table, FILE *stream, int column);

/* Tells what was wrong with the command line and disposes of |status|; the exit status: 2, or 1 when memory
 * was out. */
int o3_options_usage_error(const char *tool, o3_status_t status);

/* Ends a tool that printed text on stdout; the exit status: 0, or 1, with an error, when stdout took not all.
 */
int o3_options_text_end(const char *tool);

#endif
