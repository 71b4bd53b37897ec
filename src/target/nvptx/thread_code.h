/* Code of threads that generic kernels are made of. */
#ifndef O3_TARGET_NVPTX_THREAD_CODE_H
#define O3_TARGET_NVPTX_THREAD_CODE_H

#include "ir/build.h"
#include "target/cpu/nest.h"

/* Some loops as one, the last fastest. |total| is known when |count_known| >= 0. */
typedef struct o3_flat_dims {
  int count;
  int dims[O3_IR_MAX_RANK];        /* whatever the caller numbers */
  MlirValue sizes[O3_IR_MAX_RANK]; /* index */
  int64_t known;                   /* the product of the sizes; -1 when known only at run time */
  MlirValue total;                 /* index; made by o3_flat_dims_finish */
} o3_flat_dims_t;

void o3_flat_dims_add(o3_flat_dims_t *flat, int dim, MlirValue size, int64_t known);
/* Multiplies the sizes. */
void o3_flat_dims_finish(o3_flat_dims_t *flat, o3_builder_t *builder);
/* The place |linear| (index) as one index for each dim, ivs[dims[i]]. 32-bit arithmetic where it is enough:
 * 64-bit division is a long function on a GPU. */
void o3_flat_dims_split(const o3_flat_dims_t *flat, o3_builder_t *builder, MlirValue linear, MlirValue *ivs);

/* How partial results of a reduction are put together: the body is yield(combine(out, f(ins))). */
typedef struct o3_combiner {
  const char *op;     /* "arith.addf" */
  MlirValue identity; /* made by o3_combiner_find */
} o3_combiner_t;

/* False when the reduction of |nest|, of one output, is no such. */
bool o3_combiner_fits(const o3_nest_t *nest, const char **op);
MlirValue o3_combiner_identity(o3_builder_t *builder, const char *op, MlirType type);

#endif
