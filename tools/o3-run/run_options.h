/* The command line of o3-run. */
#ifndef O3_RUN_OPTIONS_H
#define O3_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/status.h"
#include "tensorio/compare.h"

/* An option whose argument may be left out; |value| is then 0. */
typedef struct o3_run_optional {
  bool given;
  int64_t value;
} o3_run_optional_t;

typedef struct o3_run_range {
  int64_t low, high;
} o3_run_range_t;

/* One set of inputs and what is expected of it; NULL: no folder. */
typedef struct o3_run_set {
  const char *inputs_dir, *expect_dir;
} o3_run_set_t;

/* Texts are the command line's; vectors hold const char *, in the order given. */
typedef struct o3_run_options {
  const char *model, *symbol_prefix, *save;
  o3_ptr_vec_t inputs, inputs_dirs, dims, expects, expect_dirs, test_dirs;
  o3_run_optional_t random, bench, profile;
  o3_run_range_t int_range;
  o3_tolerance_t tolerance;
  int64_t int_atol, warmup, repeat, threads, spin_us, device; /* warmup, -1: by time */
  bool json, verbose, help, version;
  o3_run_set_t *sets; /* num_sets >= 1 */
  size_t num_sets;
} o3_run_options_t;

/* Reads the command line; vectors and sets live in |arena|. INVALID_ARGUMENT names the option, what came
 * and what was expected. With --help or --version nothing else is required. */
o3_status_t o3_run_options_parse(int argc, char **argv, o3_arena_t *arena, o3_run_options_t *options)
    O3_MUST_USE;

/* Whether the model is to be run, rather than described. */
bool o3_run_options_want_run(const o3_run_options_t *options);

void o3_run_options_print_help(FILE *stream);

#endif
