/* The command line of o3-prune. */
#ifndef O3_TOOLS_PRUNE_OPTIONS_H
#define O3_TOOLS_PRUNE_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/map.h"

typedef enum prune_kind { PRUNE_NONE, PRUNE_BLOCK, PRUNE_NM } prune_kind_t;

/* Blocks of |a| outputs x |b| inputs (single weights: 1 x 1), or |a| of |b| inputs kept. */
typedef struct prune_pattern {
  prune_kind_t kind;
  int64_t a, b;
} prune_pattern_t;

/* Bits of |ops|. */
enum { PRUNE_CONV = 1, PRUNE_GEMM = 2, PRUNE_MATMUL = 4 };

typedef struct prune_options {
  const char *model, *output, *kernel;
  prune_pattern_t pattern;
  bool has_ratio, has_seed;
  double ratio;
  uint64_t seed;
  unsigned ops;            /* 0: all */
  o3_ptr_vec_t only, skip; /* of const char * */
  bool global, skip_first, depthwise, json, help, version;
} prune_options_t;

/* INVALID_ARGUMENT says what is wrong. Texts stay those of |argv|. */
o3_status_t prune_options_parse(o3_arena_t *arena, int argc, char **argv, prune_options_t *options)
    O3_MUST_USE;

void prune_help_print(FILE *stream);

/* "16x16 blocks", "2:4", "single weights" */
char *prune_pattern_text(o3_arena_t *arena, const prune_pattern_t *pattern);

#endif
