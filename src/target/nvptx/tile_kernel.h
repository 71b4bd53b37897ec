/* Generic kernels of elementwise ops that read an operand across their result: transpositions. A block moves
 * a tile through shared memory, so that both sides are walked along their fastest dimension, 16 bytes a
 * thread where sizes allow. */
#ifndef O3_TARGET_NVPTX_TILE_KERNEL_H
#define O3_TARGET_NVPTX_TILE_KERNEL_H

#include "target/nvptx/thread_code.h"

/* What is crossed: the operand's neighbours lie along the dim |along|, the result's along |across|. */
typedef struct o3_tile_plan {
  int operand, along, across;
  int vector; /* elements of 16 bytes */
  bool loads_vectors, stores_vectors;
} o3_tile_plan_t;

/* Why |nest|, read, merged and flattened, is none that tiles pay for; NULL with |plan| when it is. Static
 * text. */
const char *o3_tile_plan(const o3_nest_t *nest, o3_tile_plan_t *plan);

/* Builds the launch; gives it. Blocks have O3_GPU_BLOCK_THREADS threads. */
o3_status_t o3_tile_build(o3_nest_t *nest, const o3_tile_plan_t *plan, o3_builder_t *builder,
                          MlirOperation *launch) O3_MUST_USE;

/* Elements of a result that a block makes at most. */
enum { O3_TILE_ELEMENTS = 64 * 64 };

#endif
