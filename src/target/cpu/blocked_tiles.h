/* Inside the emitter of blocked products: how the last block of outputs is computed. */
#ifndef O3_TARGET_CPU_BLOCKED_TILES_H
#define O3_TARGET_CPU_BLOCKED_TILES_H

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

#endif
