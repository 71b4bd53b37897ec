/* Inside the emitter of blocked products: how the last block of outputs is computed. */
#ifndef O3_TARGET_CPU_BLOCKED_TILES_H
#define O3_TARGET_CPU_BLOCKED_TILES_H

#include "schedule/cpu_schedule.h"
#include "target/cpu/blocked_match.h"
#include "target/cpu/tile_text.h"

/* Lanes from |lane| on of the last block of outputs. */
typedef struct o3_tile_part {
  int lane;
  o3_tile_t tile;
} o3_tile_part_t;
enum { O3_TILE_MAX_PARTS = 2 };

/* The parts in which the last block of outputs is computed instead of by a tile like |full|, whose |lanes|,
 * |pixels| and |width| count; returns how many: 0 when it is full, or nearly so. */
int o3_blocked_parts(const o3_blocked_t *product, const o3_tile_t *full, o3_tile_part_t *parts);

/* The rows of images that have some, or -1: the dim of pixels before the run that is not that of the images,
 * which comes first in Y. */
int o3_blocked_row_dim(const o3_blocked_t *product);

/* Whether several tiles of a task, of |run| pixels in each row, take the same weights in turn, so many that
 * they ask for all of the next ones (tile_text.h: shared). */
bool o3_blocked_shares_weights(const o3_machine_t *machine, const o3_blocked_t *product,
                               const o3_schedule_tiles_t *schedule, int64_t run);

/* Tiles of a row, or an image, of |run| pixels. */
int64_t o3_blocked_tiles_of(const o3_schedule_tiles_t *schedule, int64_t run);

/* %w_ahead of a shared tile at |pixel| of its row, which has |before| tiles before it (null: there are no
 * rows); what follows is |next| elements of the weights away, of which a block has |own|. */
MlirValue o3_blocked_ask_ahead(const o3_tile_t *tile, o3_builder_t *b, MlirValue pixel, MlirValue before,
                               MlirValue next, MlirValue own);

#endif
