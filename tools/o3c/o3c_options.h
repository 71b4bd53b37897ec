/* The command line of o3c. */
#ifndef O3_TOOLS_O3C_OPTIONS_H
#define O3_TOOLS_O3C_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "o3/compiler.h"

typedef struct o3c_options {
  o3_compile_options_t compile; /* points into argv and the arena */
  bool timing, json, verbose, quiet, help, version, print_hardware;
} o3c_options_t;

/* INVALID_ARGUMENT, which is a usage error, says what is wrong. */
o3_status_t o3c_options_parse(o3_arena_t *arena, int argc, char **argv, o3c_options_t *options) O3_MUST_USE;

void o3c_help_print(FILE *stream);

#endif
