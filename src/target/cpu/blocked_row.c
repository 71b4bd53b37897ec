/* Of known sizes each tile is made for its place. Of sizes that the run knows a row has
 *
 *     a tile that is cut off on the left, where the border is known
 *     whole ones
 *     one or two that end with the row: taps of their last pixel, or pixels, are read if they are inside
 *
 * of as many pixels as waste least, of a few numbers that are tried. Tiles that end with the row begin where
 * that needs them to, and compute some pixels again. Rows that are too short for that are made pixel by
 * pixel.
 */
#include "target/cpu/blocked_row.h"

enum { MAX_CHOICES = 3 };

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static MlirValue binary(o3_builder_t *b, const char *op, MlirValue x, int64_t constant) {
  return o3_build2(b, op, x, o3_build_index(b, constant));
}

static int run_of(const o3_blocked_t *p) { return p->pixels.at[p->pixels.count - 1]; }

bool o3_blocked_row_is_known(const o3_blocked_t *p) {
  return p->nest.sizes[run_of(p)] >= 0 && (!p->run_edge.exists || p->run_edge.size >= 0);
}

/* Elements of X from one position of its row to the next. */
static int64_t position_step(const o3_blocked_t *p) { return p->x_step / p->run_edge.stride; }

/* Positions from the first to the last tap. */
static int64_t span_of(const o3_blocked_t *p) {
  return (p->depth[p->num_depth - 1].size - 1) * p->depth[p->num_depth - 1].step / position_step(p);
}

static MlirValue edge_size(const o3_blocked_t *p, const o3_blocked_edge_t *edge, o3_builder_t *b) {
  if (edge->size >= 0) return o3_build_index(b, edge->size);
  return o3_build1(b, "memref.dim", o3_build_index_type(b),
                   O3_VALUES(p->x->value, o3_build_index(b, edge->dim)));
}

/* ---- Rows of the window ---- */

static MlirValue taps_before(o3_builder_t *b, MlirValue position, int64_t distance) {
  MlirValue inside = binary(b, "arith.maxsi", position, 0);
  return distance == 1 ? inside : binary(b, "arith.ceildivui", inside, distance);
}

/* Taps lie at position - low + distance * tap. */
void o3_blocked_row_cut(const o3_blocked_t *p, o3_builder_t *b, const MlirValue *ivs, MlirValue *first,
                        MlirValue *count) {
  const o3_blocked_edge_t *edge = &p->rows;
  MlirValue taps = o3_build_index(b, p->depth[p->num_depth - 2].size);
  *first = o3_build_index(b, 0);
  *count = taps;
  if (!edge->exists) return;
  MlirValue at = binary(b, "arith.muli", ivs[edge->pixel], edge->stride);
  MlirValue above = o3_build2(b, "arith.subi", o3_build_index(b, edge->low), at);
  MlirValue below = o3_build2(b, "arith.addi", above, edge_size(p, edge, b));
  *first = taps_before(b, above, edge->distance);
  MlirValue end = o3_build2(b, "arith.minsi", taps_before(b, below, edge->distance), taps);
  *count = binary(b, "arith.maxsi", o3_build2(b, "arith.subi", end, *first), 0);
}

/* ---- Tiles ---- */

/* Tiles at |from| and each next one before |to|. */
typedef struct repeat {
  const o3_blocked_row_t *row;
  const o3_tile_t *tile;
  MlirValue last; /* no tile begins after it; null: no matter */
} repeat_t;

static o3_status_t repeat_body(o3_builder_t *b, void *context, MlirValue pixel, const MlirValue *carried,
                               MlirValue *next) {
  const repeat_t *self = context;
  (void)carried, (void)next;
  if (!mlirValueIsNull(self->last)) pixel = o3_build2(b, "arith.minsi", pixel, self->last);
  return self->row->call(b, self->row->context, self->tile, pixel);
}

static o3_status_t repeat(const o3_blocked_row_t *row, o3_builder_t *b, const o3_tile_t *tile, MlirValue from,
                          MlirValue to, MlirValue last) {
  repeat_t context = {row, tile, last};
  o3_for_t loop = {.lower = from,
                   .upper = to,
                   .step = o3_build_index(b, tile->pixels),
                   .body = repeat_body,
                   .context = &context};
  return o3_build_for(b, &loop, NULL);
}

/* |pixels| whose windows are whole. */
static o3_tile_t whole_tile(const o3_blocked_row_t *row, int pixels) {
  o3_tile_t tile = row->tile;
  tile.pixels = pixels;
  tile.x_step = pixels == 1 ? 0 : row->product->x_step;
  tile.first = 0;
  tile.end = (pixels - 1) * tile.x_step + (tile.taps - 1) * tile.tap_step + 1;
  return tile;
}

/* ---- Known sizes ---- */

/* The tile at |from|: some positions of X's row that it reads may be outside of it. */
static o3_tile_t cut_tile(const o3_blocked_row_t *row, int64_t from, int pixels) {
  const o3_blocked_t *p = row->product;
  const o3_blocked_edge_t *edge = &p->run_edge;
  o3_tile_t tile = whole_tile(row, pixels);
  if (!edge->exists) return tile;
  int64_t position = position_step(p), at = from * edge->stride - edge->low;
  if (at < 0) tile.first = -at * position;
  if ((edge->size - at) * position < tile.end) tile.end = (edge->size - at) * position;
  return tile;
}

static bool is_cut_alike(const o3_tile_t *a, const o3_tile_t *b) {
  return a->pixels == b->pixels && a->first == b->first && a->end == b->end;
}

/* Tiles of two sizes that differ by one; equal ones are one loop. */
static o3_status_t build_known(const o3_blocked_row_t *row, o3_builder_t *b) {
  int64_t run = row->product->nest.sizes[run_of(row->product)], at = 0;
  int64_t count = divide_up(run, row->tile.pixels);
  int size = (int)(run / count), larger = (int)(run % count);
  for (int64_t i = 0; i < count;) {
    MlirValue from = o3_build_index(b, at);
    o3_tile_t tile = cut_tile(row, at, size + (i < larger)), next = tile;
    while (i < count && is_cut_alike(&tile, &next)) {
      at += size + (i++ < larger);
      next = cut_tile(row, at, size + (i < larger));
    }
    O3_TRY(repeat(row, b, &tile, from, o3_build_index(b, at), (MlirValue){0}));
  }
  return NULL;
}

/* ---- Sizes that the run knows ---- */

/* How many pixels a tile may have: all that fit, and less for rows that would leave much of the last one.
 * More choices would gain little, and each is three more functions to compile. */
static int list_sizes(int pixels, int *sizes) {
  const int wanted[MAX_CHOICES] = {pixels, pixels / 2, (pixels + 2) / 4};
  int count = 0;
  for (int i = 0; i < MAX_CHOICES; ++i) {
    if (wanted[i] > 1 && (!count || wanted[i] < sizes[count - 1])) sizes[count++] = wanted[i];
  }
  return count;
}

/* Pixels at the row's beginning whose windows are cut off. */
static int64_t left_pixels(const o3_blocked_t *p) {
  return p->run_edge.exists ? divide_up(p->run_edge.low, p->run_edge.stride) : 0;
}

/* Pixels at its end whose windows may be, if the last one's first tap is inside. */
static int64_t right_pixels(const o3_blocked_t *p) {
  return p->run_edge.exists ? divide_up(span_of(p), p->run_edge.stride) : 0;
}

/* Whether a row can be made of tiles of |pixels|: the first is cut off on the left alone, the last on the
 * right. */
static MlirValue can_have(const o3_blocked_t *p, o3_builder_t *b, int pixels) {
  const o3_blocked_edge_t *edge = &p->run_edge;
  MlirValue run = p->nest.size_values[run_of(p)];
  int64_t left = left_pixels(p);
  if (left > pixels) return o3_build_int(b, mlirIntegerTypeGet(b->context, 1), 0);
  MlirValue fits = o3_build_cmpi(b, O3_CMPI_SGE, run, o3_build_index(b, pixels + left));
  if (!edge->exists) return fits;
  MlirValue size = edge_size(p, edge, b);
  int64_t end_of_first = (pixels - 1) * edge->stride + span_of(p) - edge->low;
  MlirValue first = o3_build_cmpi(b, O3_CMPI_SGT, size, o3_build_index(b, end_of_first));
  MlirValue last_at = binary(b, "arith.muli", binary(b, "arith.subi", run, 1), edge->stride);
  MlirValue last = o3_build_cmpi(b, O3_CMPI_SGT, binary(b, "arith.addi", size, edge->low), last_at);
  return o3_build2(b, "arith.andi", fits, o3_build2(b, "arith.andi", first, last));
}

/* The number of the tile's size in the list, or the list's length: pixel by pixel. */
MlirValue o3_blocked_row_choose(const o3_blocked_t *p, int pixels, o3_builder_t *b) {
  int sizes[MAX_CHOICES], count = list_sizes(pixels, sizes);
  MlirValue run = p->nest.size_values[run_of(p)];
  MlirValue choice = o3_build_index(b, count), best = o3_build_index(b, INT64_MAX);
  for (int i = 0; i < count; ++i) {
    /* A call costs about a pixel. */
    MlirValue tiles = binary(b, "arith.ceildivui", run, sizes[i]);
    MlirValue cost = binary(b, "arith.muli", tiles, sizes[i] + 1);
    MlirValue less = o3_build_cmpi(b, O3_CMPI_SLT, cost, best);
    MlirValue takes = o3_build2(b, "arith.andi", less, can_have(p, b, sizes[i]));
    choice = o3_build_select(b, takes, o3_build_index(b, i), choice);
    best = o3_build_select(b, takes, cost, best);
  }
  return choice;
}

/* (size + low - stride * pixel) positions. */
MlirValue o3_blocked_row_limit(const o3_blocked_t *p, o3_builder_t *b, MlirValue pixel) {
  const o3_blocked_edge_t *edge = &p->run_edge;
  MlirValue at = binary(b, "arith.muli", pixel, edge->stride);
  MlirValue all = binary(b, "arith.addi", edge_size(p, edge, b), edge->low);
  return binary(b, "arith.muli", o3_build2(b, "arith.subi", all, at), position_step(p));
}

typedef struct choices {
  const o3_blocked_row_t *row;
  int at, count;
  int sizes[MAX_CHOICES];
} choices_t;

/* A tile whose positions from |end| on are read where there are such. */
static o3_tile_t late_tile(const o3_blocked_row_t *row, int pixels, int64_t end) {
  o3_tile_t tile = whole_tile(row, pixels);
  if (!row->product->run_edge.exists) return tile;
  tile.late = true;
  tile.end = end;
  return tile;
}

static o3_status_t build_tiles(const o3_blocked_row_t *row, o3_builder_t *b, int pixels) {
  const o3_blocked_t *p = row->product;
  MlirValue run = p->nest.size_values[run_of(p)], size = o3_build_index(b, pixels);
  o3_tile_t left = whole_tile(row, pixels), whole = left;
  if (p->run_edge.exists) left.first = p->run_edge.low * position_step(p);
  O3_TRY(row->call(b, row->context, &left, o3_build_index(b, 0)));
  MlirValue between = binary(b, "arith.subi", run, pixels + right_pixels(p));
  MlirValue count = o3_build2(b, "arith.divui", binary(b, "arith.maxsi", between, 0), size);
  MlirValue end = o3_build2(b, "arith.addi", size, o3_build2(b, "arith.muli", count, size));
  O3_TRY(repeat(row, b, &whole, size, end, (MlirValue){0}));
  int step = row->adds ? 1 : pixels;
  const o3_tile_t right = late_tile(row, step, (step - 1) * p->x_step + 1);
  return repeat(row, b, &right, end, run, binary(b, "arith.subi", run, step));
}

typedef struct pixel {
  const o3_blocked_row_t *row;
  o3_tile_t tile;
  MlirValue at;
} pixel_t;

static o3_status_t pixel_body(o3_builder_t *b, void *context, MlirValue *yields) {
  const pixel_t *self = context;
  (void)yields;
  return self->row->call(b, self->row->context, &self->tile, self->at);
}

static o3_status_t build_pixels(const o3_blocked_row_t *row, o3_builder_t *b) {
  const o3_blocked_t *p = row->product;
  MlirValue run = p->nest.size_values[run_of(p)];
  int64_t left = left_pixels(p);
  for (int64_t i = 0; i < left; ++i) {
    pixel_t pixel = {row, late_tile(row, 1, 0), o3_build_index(b, i)};
    pixel.tile.first = (p->run_edge.low - i * p->run_edge.stride) * position_step(p);
    if (pixel.tile.first > pixel.tile.end) pixel.tile.end = pixel.tile.first;
    o3_if_t exists = {.condition = o3_build_cmpi(b, O3_CMPI_SLT, pixel.at, run),
                      .then_body = pixel_body,
                      .context = &pixel};
    O3_TRY(o3_build_if(b, &exists, NULL));
  }
  const o3_tile_t tile = late_tile(row, 1, 0);
  return repeat(row, b, &tile, o3_build_index(b, left), run, (MlirValue){0});
}

static o3_status_t build_choice(o3_builder_t *b, void *context, MlirValue *yields) {
  const choices_t *self = context;
  (void)yields;
  return build_tiles(self->row, b, self->sizes[self->at]);
}

static o3_status_t build_others(o3_builder_t *b, void *context, MlirValue *yields);

static o3_status_t build_choices(o3_builder_t *b, choices_t *self) {
  if (self->at == self->count) return build_pixels(self->row, b);
  o3_if_t branch = {.condition = o3_build_cmpi(b, O3_CMPI_EQ, self->row->choice, o3_build_index(b, self->at)),
                    .then_body = build_choice,
                    .else_body = build_others,
                    .context = self};
  return o3_build_if(b, &branch, NULL);
}

static o3_status_t build_others(o3_builder_t *b, void *context, MlirValue *yields) {
  choices_t *self = context;
  (void)yields;
  ++self->at;
  return build_choices(b, self);
}

o3_status_t o3_blocked_row_build(const o3_blocked_row_t *row, o3_builder_t *b) {
  if (mlirValueIsNull(row->choice)) return build_known(row, b);
  choices_t choices = {.row = row};
  choices.count = list_sizes(row->tile.pixels, choices.sizes);
  return build_choices(b, &choices);
}
