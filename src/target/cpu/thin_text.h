/* Products of a matrix with few vectors as MLIR functions: what they cost is reading the matrix once. */
#ifndef O3_TARGET_CPU_THIN_TEXT_H
#define O3_TARGET_CPU_THIN_TEXT_H

#include <stdbool.h>

typedef struct o3_thin {
  const char *type; /* "f32", "f64" */
  int lanes;        /* elements of a vector register */
  int few;          /* vectors */
  int steps;        /* rows of the matrix that are read at a time */
  int span;         /* most results of a call for each vector */
  bool is_dots;     /* the matrix is contiguous along the sum; else along the results, as these are */
} o3_thin_t;

/* Arguments, all index but the memrefs, memref<?xT>: for i < few and lower <= n < upper
 *     C[c + i * c_few + n * c_many] (=|+=) sum over k < depth of
 *         F[f + i * f_few + k * f_depth] * R[r + n * r_many + k * r_depth]
 * r_depth is 1 where the matrix is contiguous along the sum, r_many and c_many are 1 where it is not. */
typedef enum o3_thin_argument {
  O3_THIN_F,
  O3_THIN_F_AT,
  O3_THIN_F_FEW,
  O3_THIN_F_DEPTH,
  O3_THIN_R,
  O3_THIN_R_AT,
  O3_THIN_R_MANY,
  O3_THIN_R_DEPTH,
  O3_THIN_C,
  O3_THIN_C_AT,
  O3_THIN_C_FEW,
  O3_THIN_C_MANY,
  O3_THIN_LOWER,
  O3_THIN_UPPER,
  O3_THIN_DEPTH,
  O3_THIN_FRESH, /* 1: the sums start at zero, whatever C has; 0: they are added to it */
  O3_THIN_ARGUMENTS
} o3_thin_argument_t;

/* The function's name, e.g. "o3k_f32_thin_dots_1x4x16" or "o3k_f32_thin_sums_3x4x16_n1024". */
enum { O3_THIN_NAME = 64 };
void o3_thin_name(const o3_thin_t *thin, char name[O3_THIN_NAME]);

/* A module with the function; malloc'ed; NULL when memory is out. */
char *o3_thin_text(const o3_thin_t *thin);

#endif
