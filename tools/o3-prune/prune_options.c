/* One table (prune_options.def) feeds getopt, --help and the fields. */
#include "prune_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"

/* ---- Readers ---- */

static prune_options_t *options_of(const o3_option_row_t *row, void *field) {
  return (void *)((char *)field - row->offset);
}

static o3_status_t set_pattern(prune_pattern_t *field, prune_pattern_t pattern) {
  if (field->kind != PRUNE_NONE)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "--block, --nm and --unstructured exclude each other: give one, once");
  *field = pattern;
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

static o3_status_t read_block(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)arena;
  int64_t pair[2];
  if (!scan_pair(text, 'x', pair)) return o3_option_refuse(row, text, "RxC, such as 16x16,");
  return set_pattern(field, (prune_pattern_t){PRUNE_BLOCK, pair[0], pair[1]});
}

static o3_status_t read_nm(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)arena;
  int64_t pair[2];
  if (!scan_pair(text, ':', pair) || pair[0] >= pair[1])
    return o3_option_refuse(row, text, "N:M with N below M, such as 2:4,");
  return set_pattern(field, (prune_pattern_t){PRUNE_NM, pair[0], pair[1]});
}

static o3_status_t read_unstructured(o3_arena_t *arena, const o3_option_row_t *row, const char *text,
                                     void *field) {
  (void)arena, (void)row, (void)text;
  return set_pattern(field, (prune_pattern_t){PRUNE_BLOCK, 1, 1});
}

static o3_status_t read_ratio(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)arena;
  prune_options_t *options = options_of(row, field);
  char *end;
  options->ratio = strtod(text, &end);
  options->has_ratio = true;
  if (end == text || *end || !(options->ratio >= 0 && options->ratio <= 1))
    return o3_option_refuse(row, text, "a number from 0 to 1, such as 0.6,");
  return NULL;
}

static o3_status_t read_seed(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)arena;
  prune_options_t *options = options_of(row, field);
  char *end;
  errno = 0;
  options->seed = strtoull(text, &end, 10);
  options->has_seed = true;
  if (errno || *text < '0' || *text > '9' || *end) return o3_option_refuse(row, text, "a whole number");
  return NULL;
}

static o3_status_t read_ops(o3_arena_t *arena, const o3_option_row_t *row, const char *text, void *field) {
  (void)arena;
  static const char *const NAMES[] = {"conv", "gemm", "matmul"};
  for (const char *at = text;; ++at) {
    size_t length = strcspn(at, ","), i = 0;
    while (i < 3 && (strlen(NAMES[i]) != length || strncmp(NAMES[i], at, length))) ++i;
    if (i == 3) return o3_option_refuse(row, text, "a list of conv, gemm and matmul");
    *(unsigned *)field |= 1u << i;
    at += length;
    if (!*at) return NULL;
  }
}

/* ---- The table ---- */

static const o3_option_reader_t flag = {no_argument, o3_option_read_flag},
                                text = {required_argument, o3_option_read_text},
                                list = {required_argument, o3_option_read_list},
                                block = {required_argument, read_block}, nm = {required_argument, read_nm},
                                unstructured = {no_argument, read_unstructured},
                                ratio = {required_argument, read_ratio},
                                seed = {required_argument, read_seed}, ops = {required_argument, read_ops};

static const o3_option_row_t ROWS[] = {
#define PRUNE_OPTION(letter, name, reader, field, argument, help) \
  {letter, name, &reader, offsetof(prune_options_t, field), argument, help, 0},
#define PRUNE_HEADING(title) {.help = title},
#include "prune_options.def"
#undef PRUNE_OPTION
#undef PRUNE_HEADING
};
static const o3_option_table_t TABLE = {ROWS, sizeof(ROWS) / sizeof(ROWS[0])};

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
  *options = (prune_options_t){.only = o3_ptr_vec(arena), .skip = o3_ptr_vec(arena)};
  O3_TRY(o3_options_read(&TABLE, arena, argc, argv, options));
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

void prune_help_print(FILE *stream) {
  fputs("usage: o3-prune [options] MODEL.onnx\n\nSets the smallest weights of a model to zero.\n", stream);
  o3_options_print(&TABLE, stream, 25);
  fputs(
      "\nExamples:\n"
      "  o3-prune net.onnx --block 16x16 --ratio 0.6 --skip-first -o sparse.onnx\n"
      "  o3-prune net.onnx --nm 2:4 --ops matmul,gemm --skip '*classifier*' -o sparse.onnx\n"
      "  o3-prune net.onnx --unstructured --ratio 0.9 --global --json\n"
      "\nThe model computes something else afterwards: train it further before it is used.\n",
      stream);
}
