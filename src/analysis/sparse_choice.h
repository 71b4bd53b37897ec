/* Which format each weight got, and why: what the choose-sparse pass tells people. */
#ifndef O3_ANALYSIS_SPARSE_CHOICE_H
#define O3_ANALYSIS_SPARSE_CHOICE_H

#include "analysis/sparse_hybrid.h"
#include "base/map.h"

/* One format of one weight. */
typedef struct o3_sparse_option {
  const char *format;  /* "bsr-16x16" */
  const char *refused; /* why there is no kernel, or NULL */
  double occupancy;    /* share of the blocks that are stored; of a hybrid, of the numbers */
  const char *parts;   /* of a hybrid: "12 blocks of 16x16 + 345 entries"; NULL for other formats */
  double predicted;    /* microseconds on one thread */
  double measured;     /* the same, or 0 */
  int64_t bytes;
} o3_sparse_option_t;

typedef struct o3_sparse_choice {
  const char *node, *op, *shape; /* "Conv_3", "conv", "256x64x1x1" */
  o3_sparse_layer_t layer;
  o3_sparsity_t sparsity;
  const char *format; /* "dense" or one of the options */
  const char *why;    /* a sentence without its full stop */
  bool forced;
  double dense_predicted, dense_measured;
  int64_t dense_bytes;
  int num_options;
  o3_sparse_option_t *options;
  const o3_sparse_option_t *chosen; /* NULL for dense */
} o3_sparse_choice_t;

/* Of a compilation; |rows| of o3_sparse_choice_t *. */
typedef struct o3_sparse_report {
  o3_ptr_vec_t rows;
} o3_sparse_report_t;

#endif
