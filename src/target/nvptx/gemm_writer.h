/* Inside the writers of products: what gemm_kernel.c (roles, copies, products), gemm_epilogue.c (what becomes
 * of sums) and gemm_launch.c (arguments) share. Numbers are values of the text. */
#ifndef O3_TARGET_NVPTX_GEMM_WRITER_H
#define O3_TARGET_NVPTX_GEMM_WRITER_H

#include "target/nvptx/product_text.h"

enum {
  O3_GEMM_BLOCK_K = 64,    /* halves of k a stage: rows of 128 bytes, the widest swizzle */
  O3_GEMM_WARPGROUP = 128, /* threads */
  O3_GEMM_ROWS = 64,       /* of a product */
  O3_GEMM_ROW_BYTES = 128, /* of a swizzled row */
  O3_GEMM_STEP_BYTES = 32, /* of it that an instruction takes */
  O3_GEMM_STAGING_BYTES = O3_GEMM_ROWS * O3_GEMM_ROW_BYTES,
  O3_GEMM_STAGING_BUFFERS = 2, /* of a consumer */
  O3_GEMM_MAX_COLUMNS = 256,
  O3_GEMM_MAX_PRODUCTS = 2,
  O3_GEMM_PANEL_PAIRS = 16 /* of a thread in 64 columns: 8 pieces of 8 columns, two halves */
};

/* Elements of k a stage. */
static inline int o3_gemm_block_k(const o3_gemm_t *g) {
  return O3_GEMM_ROW_BYTES / o3_gpu_element_info(g->element)->bytes;
}

typedef struct o3_gemm_writer {
  o3_kernel_text_t *t;
  const o3_gemm_t *g;
  const o3_gemm_schedule_t *s;
  const o3_gpu_kernel_t *kernel;
  int a_bytes, b_bytes; /* of a stage */
  int k_blocks;
  int shared, full, empty; /* pointers */
  int thread, block, rank; /* rank: in the cluster */
} o3_gemm_writer_t;

/* What a block multiplies of a tile: values. */
typedef struct o3_gemm_segment {
  int tile, first, count; /* steps of k */
} o3_gemm_segment_t;

typedef struct o3_gemm_consumer {
  int number;          /* of the warpgroup among the consumers */
  int thread;          /* in the warpgroup */
  int first;           /* of the tile's rows: the warpgroup's */
  int row, pair;       /* of a tile's rows: that of the thread's first sums; of 8 columns: that of its pair */
  int leader;          /* condition: thread 0 */
  int id;              /* of the warpgroup's barrier */
  int staging;         /* pointer */
  int stage_addresses; /* of A's first stage for this warpgroup, shifted by 4 */
  int b_addresses;
} o3_gemm_consumer_t;

/* What the epilogue works on: a product's |pieces| of 8 columns from |column|, the sums of each 4 values: the
 * thread's pair in its row, then that 8 rows below. |at| is moved down to the product; |first_panel|: the
 * panels of 64 columns of the products above. */
typedef struct o3_gemm_part {
  o3_gemm_place_t at;
  int column; /* value: the first, of D */
  int pieces, first_panel;
  const int *sums;
} o3_gemm_part_t;

/* A tile of a consumer on its way to D. */
typedef struct o3_gemm_stores {
  o3_gemm_part_t parts[O3_GEMM_MAX_PRODUCTS];
  int values[O3_GEMM_MAX_PRODUCTS][O3_GEMM_MAX_COLUMNS / 2];
  o3_gemm_pair_extras_t extras[O3_GEMM_PANEL_PAIRS]; /* of the first panel */
  bool early;                                        /* they were asked for before the products */
} o3_gemm_stores_t;

/* Results of a consumer's tile that are still to be stored: of each panel, the words of the thread's pairs.
 */
typedef struct o3_gemm_late {
  int tile; /* value: its number; below 0: there is none */
  int words[O3_GEMM_MAX_COLUMNS / 64 * O3_GEMM_PANEL_PAIRS];
} o3_gemm_late_t;

/* ---- gemm_epilogue.c ---- */

/* Before the products of the tile |at|, and behind them: |sums|, a struct for each product, go to D. */
void o3_gemm_begin_stores(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_place_t *at,
                          o3_gemm_stores_t *stores);
void o3_gemm_end_stores(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, o3_gemm_stores_t *stores,
                        const int *sums);

/* The same when stores are late: results stay in |words|, O3_GEMM_PANEL_PAIRS for each panel of 64 columns,
 * and go to D panel by panel. |at|: where their tile lies. */
int o3_gemm_panels(const o3_gemm_schedule_t *s);
void o3_gemm_keep_results(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, o3_gemm_stores_t *stores,
                          int sums, int *words);
void o3_gemm_store_late(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_place_t *at,
                        const o3_gemm_late_t *late, int panel);
/* All panels of the last tile, behind the products. */
void o3_gemm_store_last(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, const o3_gemm_place_t *at,
                        const o3_gemm_late_t *late);

/* Behind the products of a cluster that shares the sums: each block finishes a part of the columns. All
 * threads of the cluster's blocks that are no consumers are to come to two cluster barriers for it. */
void o3_gemm_finish_shared(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, o3_gemm_stores_t *stores,
                           int sums);
void o3_gemm_cluster_barrier(o3_gemm_writer_t *w);

/* ---- gemm_stream.c: blocks that share the steps of all tiles ---- */

/* The block's tiles: from range[0] to before range[1]; what it has of one. */
void o3_gemm_stream_tiles(o3_gemm_writer_t *w, int range[2]);
o3_gemm_segment_t o3_gemm_stream_segment(o3_gemm_writer_t *w, int tile);

/* Sums of a segment go to D, by the block that comes last of those that have a part of the tile. */
void o3_gemm_stream_finish(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, o3_gemm_stores_t *stores,
                           const o3_gemm_segment_t *segment, int sums);

/* Bytes of scratch; of shared memory. */
int64_t o3_gemm_stream_bytes(const o3_gemm_schedule_t *s);
enum { O3_GEMM_STREAM_SHARED = 16 };

/* ---- gemm_schedule.c, gemm_launch.c ---- */

/* Tiles of the whole result. */
int64_t o3_gemm_count_tiles(const o3_gemm_t *g, const o3_gemm_schedule_t *s);

/* Of shared memory, where the stages are, or the sums that a cluster shares. */
int o3_gemm_ring_bytes(const o3_gemm_schedule_t *s);
int o3_gemm_barrier_offset(const o3_gemm_schedule_t *s);

void o3_gemm_add_arguments(const o3_gemm_t *g, const o3_gemm_schedule_t *s, o3_gpu_kernel_t *kernel);

#endif
