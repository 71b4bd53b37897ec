/* A last block of few outputs would be computed with lanes whose results nobody wants. Half a block are
 * vectors of half a block, of which a processor with larger ones computes as many more. Of 1 to 4 outputs a
 * vector holds partial sums (split tiles): these cost as much less, but for joining them at the end. */
#include "target/cpu/blocked_tiles.h"

enum { HALF = O3_BLOCK_LANES / 2 };

static int64_t depth_of(const o3_blocked_t *p) {
  int64_t depth = 1;
  for (int i = 0; i < p->num_depth; ++i) depth *= p->depth[i].size;
  return depth;
}

/* Of 1 to 4 outputs: those of a split tile; 0 where that would gain nothing. After half a block it is a
 * second tile, for which sums must be long. */
static int split_of(const o3_blocked_t *p, int lanes, int outputs, bool is_second) {
  enum { FEW = 2, MOST = 4 };
  int split = outputs <= FEW ? FEW : MOST, least_depth = is_second ? 64 : 32;
  bool in_order = !p->inside && !p->lanewise && o3_blocked_innermost_steps(p) % O3_BLOCK_LANES == 0;
  return in_order && outputs && outputs <= MOST && lanes >= HALF && depth_of(p) >= least_depth ? split : 0;
}

/* Where vectors of half a block are the machine's own, there are registers for twice the pixels. */
static void use_lanes(o3_tile_t *tile, int used) {
  tile->blocks = 1;
  tile->used = used;
  if (tile->lanes > used)
    tile->lanes = used;
  else
    tile->pixels *= tile->width / used;
}

static void use_split(o3_tile_t *tile, int split) {
  tile->pixels *= tile->width / tile->lanes;
  tile->blocks = 1;
  tile->used = HALF;
  tile->split = split;
  tile->unroll = tile->lanes / split;
  tile->ahead = tile->shared = false;
}

int o3_blocked_row_dim(const o3_blocked_t *p) {
  int dim = p->pixels.count < 2 ? -1 : p->pixels.at[p->pixels.count - 2];
  MlirAffineExpr first = p->y->all_exprs[0];
  bool images = dim >= 0 && mlirAffineExprIsADim(first) && mlirAffineDimExprGetPosition(first) == dim;
  return images ? -1 : dim;
}

/* Weights are taken by all tiles of a strip or, where blocks go before pieces, of the image. Tiles of several
 * blocks take them faster than memory gives them, but also weights that stay in the cache are asked for by
 * fewer instructions then; those and as many that come next would push what is multiplied by them out of the
 * cache if they took more than two thirds of it. */
bool o3_blocked_shares_weights(const o3_machine_t *machine, const o3_blocked_t *p,
                               const o3_schedule_tiles_t *s, int64_t run) {
  if (p->sparse.lanes || p->lanewise || p->inside || run < 1) return false;
  int64_t bytes = s->blocks * depth_of(p) * O3_BLOCK_LANES * (int64_t)sizeof(float);
  if (s->blocks == 1 ? s->piece_first || run > s->piece : 2 * bytes > machine->l2_bytes * 2 / 3) return false;
  int row = o3_blocked_row_dim(p);
  int64_t rows = row < 0 ? 1 : s->piece_first ? s->strip_rows : p->nest.sizes[row];
  if (s->piece_first && row < 0 && run > s->strip_pixels) run = s->strip_pixels;
  return o3_blocked_tiles_of(s, run) * rows >= s->unroll;
}

int64_t o3_blocked_tiles_of(const o3_schedule_tiles_t *s, int64_t run) {
  return (run + s->pixels - 1) / s->pixels;
}

MlirValue o3_blocked_ask_ahead(const o3_tile_t *tile, o3_builder_t *b, MlirValue pixel, MlirValue before,
                               MlirValue next, MlirValue own) {
  MlirValue number = o3_build2(b, "arith.divui", pixel, o3_build_index(b, tile->pixels));
  if (!mlirValueIsNull(before)) number = o3_build2(b, "arith.addi", number, before);
  MlirValue parts = o3_build_index(b, tile->unroll), part = o3_build2(b, "arith.remui", number, parts);
  MlirValue size = o3_build2(b, "arith.divui", own, parts);
  return o3_build2(b, "arith.addi", next, o3_build2(b, "arith.muli", part, size));
}

int o3_blocked_parts(const o3_blocked_t *p, const o3_tile_t *full, o3_tile_part_t *parts) {
  int outputs = p->outputs % O3_BLOCK_LANES, whole = outputs / HALF * HALF, count = 0;
  int split = split_of(p, full->lanes, outputs - whole, whole),
      used = o3_tile_last_lanes(full->lanes, outputs);
  if (p->sparse.lanes || p->columns >= 0 || (!split && used == O3_BLOCK_LANES)) return 0;
  if (!split || whole) {
    parts[count] = (o3_tile_part_t){.tile = *full};
    use_lanes(&parts[count].tile, split ? whole : used);
    parts[count++].tile.zeros = split ? 0 : O3_BLOCK_LANES - used;
  }
  if (split) {
    parts[count] = (o3_tile_part_t){.lane = whole, .tile = *full};
    use_split(&parts[count].tile, split);
    parts[count++].tile.zeros = O3_BLOCK_LANES - HALF - whole;
  }
  return count;
}
