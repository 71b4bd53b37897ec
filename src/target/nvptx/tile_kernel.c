/* A tile is SIDE rows, along the result's fastest dim, of SIDE elements along the operand's. It is written to
 * shared memory in rows, a piece of 16 bytes a thread, and read in columns, a word of 4 bytes a thread. Piece
 * |c| of row |d| lies in the place c ^ (d / vector) % 8: then neither way has conflicts of banks. Places
 * outside of the operand are read at its edge and not stored. */
#include "target/nvptx/tile_kernel.h"

#include "schedule/gpu.h"
#include "target/nvptx/lane_body.h"
#include "target/nvptx/nvptx_ir.h"

enum { SIDE = 64, PIECE = 16, WORD = 4, WARP = O3_GPU_WARP, LANES_ALONG = 8, LANES_WORDS = 4, LEAST = 16 };

/* ---- Plan ---- */

static int bytes_of(const o3_nest_operand_t *operand) {
  int bits = o3_type_bits(o3_type_element(mlirValueGetType(operand->value)));
  return bits % 8 ? 0 : bits / 8;
}

/* The dim along which the operand's neighbours lie; -1 when there is none. */
static int fastest_dim(const o3_nest_t *nest, const o3_nest_operand_t *operand) {
  int64_t step;
  for (int d = 0; operand->is_memref && d < nest->num_dims; ++d) {
    if (nest->merged_into[d] < 0 && nest->sizes[d] != 1 && o3_nest_step(operand, d, &step) && step == 1)
      return d;
  }
  return -1;
}

/* Whether rows along |dim| and all else start at multiples of |count|. */
static bool starts_aligned(const o3_nest_t *nest, const o3_nest_operand_t *operand, int dim, int count) {
  int64_t strides[O3_IR_MAX_RANK], offset, step;
  MlirType type = mlirValueGetType(operand->value);
  if (!mlirLogicalResultIsSuccess(mlirMemRefTypeGetStridesAndOffset(type, strides, &offset))) return false;
  if (mlirShapedTypeIsDynamicStrideOrOffset(offset) || offset % count || nest->sizes[dim] % count)
    return false;
  for (int d = 0; d < nest->num_dims; ++d) {
    if (nest->merged_into[d] >= 0 || nest->sizes[d] == 1 || d == dim) continue;
    if (!o3_nest_step(operand, d, &step) || step % count) return false;
  }
  return true;
}

static const char *check_dims(const o3_nest_t *nest) {
  if (nest->num_operands != nest->num_inputs + 1) return "it has several results";
  for (int d = 0; d < nest->num_dims; ++d) {
    if (nest->reduction[d]) return "it sums";
    if (nest->sizes[d] < 0) return "a size is known only at run time";
  }
  return NULL;
}

const char *o3_tile_plan(const o3_nest_t *nest, o3_tile_plan_t *plan) {
  const char *why = check_dims(nest);
  if (why) return why;
  const o3_nest_operand_t *out = &nest->operands[nest->num_inputs];
  *plan = (o3_tile_plan_t){.operand = -1, .across = fastest_dim(nest, out)};
  if (plan->across < 0 || o3_nest_reads(nest, nest->num_inputs))
    return "its result is not walked along a dim";
  for (int k = 0; k < nest->num_inputs; ++k) {
    int along = o3_nest_reads(nest, k) ? fastest_dim(nest, &nest->operands[k]) : plan->across;
    if (along < 0 || along == plan->across || !o3_nest_uses(&nest->operands[k], plan->across)) continue;
    if (plan->operand >= 0) return "two operands are crossed";
    plan->operand = k;
    plan->along = along;
  }
  if (plan->operand < 0) return "no operand is crossed";
  int bytes = bytes_of(&nest->operands[plan->operand]);
  if (bytes != 2 && bytes != 4) return "its elements have neither 2 nor 4 bytes";
  if (nest->sizes[plan->along] < LEAST || nest->sizes[plan->across] < LEAST) return "a side is short";
  plan->vector = PIECE / bytes;
  plan->loads_vectors = starts_aligned(nest, &nest->operands[plan->operand], plan->along, plan->vector);
  plan->stores_vectors = bytes_of(out) && starts_aligned(nest, out, plan->across, plan->vector);
  return NULL;
}

/* ---- Code ---- */

typedef struct tile {
  o3_nest_t *nest;
  const o3_tile_plan_t *plan;
  o3_builder_t *b;
  MlirType element;
  MlirValue thread, shared;
  MlirValue ivs[O3_IR_MAX_RANK]; /* of the tile's first element */
} tile_t;

static MlirValue plus(tile_t *t, MlirValue a, MlirValue b) { return o3_build2(t->b, "arith.addi", a, b); }

static MlirValue by(tile_t *t, const char *op, MlirValue a, int64_t b) {
  return o3_build2(t->b, op, a, o3_build_index(t->b, b));
}

/* The first element's indices. */
static void find_tile(tile_t *t) {
  const o3_nest_t *nest = t->nest;
  o3_flat_dims_t tiles = {0};
  for (int d = 0; d < nest->num_dims; ++d) {
    t->ivs[d] = nest->size_values[d];
    if (nest->merged_into[d] >= 0) continue;
    bool side = d == t->plan->along || d == t->plan->across;
    int64_t size = side ? (nest->sizes[d] + SIDE - 1) / SIDE : nest->sizes[d];
    o3_flat_dims_add(&tiles, d, o3_build_index(t->b, size), size);
  }
  o3_flat_dims_split(&tiles, t->b, o3_nvptx_to_index(t->b, o3_nvptx_block(t->b)), t->ivs);
  t->ivs[t->plan->along] = by(t, "arith.muli", t->ivs[t->plan->along], SIDE);
  t->ivs[t->plan->across] = by(t, "arith.muli", t->ivs[t->plan->across], SIDE);
}

static int64_t count_tiles(const o3_nest_t *nest, const o3_tile_plan_t *plan) {
  int64_t count = 1;
  for (int d = 0; d < nest->num_dims; ++d) {
    bool side = d == plan->along || d == plan->across;
    if (nest->merged_into[d] < 0) count *= side ? (nest->sizes[d] + SIDE - 1) / SIDE : nest->sizes[d];
  }
  return count;
}

/* Element of shared memory where piece |piece| of row |row| starts. */
static MlirValue piece_place(tile_t *t, MlirValue row, MlirValue piece) {
  MlirValue turn = by(t, "arith.remui", by(t, "arith.divui", row, t->plan->vector), LANES_ALONG);
  MlirValue place = by(t, "arith.muli", o3_build2(t->b, "arith.xori", piece, turn), t->plan->vector);
  return plus(t, by(t, "arith.muli", row, SIDE), place);
}

/* A piece of the operand that starts at |ivs|, which are inside. */
static void load_piece(tile_t *t, MlirValue *ivs, MlirValue *elements) {
  const o3_nest_operand_t *operand = &t->nest->operands[t->plan->operand];
  int along = t->plan->along, vector = t->plan->vector;
  int64_t size = t->nest->sizes[along];
  MlirValue start = ivs[along];
  if (t->plan->loads_vectors) {
    MlirValue address = o3_nest_address(t->nest, operand, t->b, ivs);
    o3_lanes_split(t->b, o3_lanes_load(t->b, operand->flat, 1, &address, vector), vector, elements);
    return;
  }
  for (int l = 0; l < vector; ++l) {
    ivs[along] = by(t, "arith.minui", by(t, "arith.addi", start, l), size - 1);
    elements[l] = o3_build1(t->b, "memref.load", t->element,
                            O3_VALUES(operand->flat, o3_nest_address(t->nest, operand, t->b, ivs)));
  }
}

/* All pieces are asked for before the first is stored. */
static void fill_tile(tile_t *t) {
  enum { MOST = SIDE * SIDE * 4 / PIECE / O3_GPU_BLOCK_THREADS };
  int vector = t->plan->vector, pieces = SIDE / vector, turns = SIDE * pieces / O3_GPU_BLOCK_THREADS;
  int along = t->plan->along, across = t->plan->across;
  MlirValue elements[MOST][PIECE / 2], places[MOST];
  for (int i = 0; i < turns; ++i) {
    MlirValue ivs[O3_IR_MAX_RANK], at = by(t, "arith.addi", t->thread, (int64_t)i * O3_GPU_BLOCK_THREADS);
    MlirValue row = by(t, "arith.divui", at, pieces), piece = by(t, "arith.remui", at, pieces);
    for (int d = 0; d < t->nest->num_dims; ++d) ivs[d] = t->ivs[d];
    int64_t last = t->nest->sizes[along] - (t->plan->loads_vectors ? vector : 1);
    ivs[along] = by(t, "arith.minui", plus(t, ivs[along], by(t, "arith.muli", piece, vector)), last);
    ivs[across] = by(t, "arith.minui", plus(t, ivs[across], row), t->nest->sizes[across] - 1);
    load_piece(t, ivs, elements[i]);
    places[i] = piece_place(t, row, piece);
  }
  for (int i = 0; i < turns; ++i) o3_lanes_store(t->b, t->shared, places[i], vector, elements[i]);
  o3_nvptx_barrier(t->b);
}

/* Elements of the result along |across|, at one place along |along|. */
typedef struct column {
  tile_t *t;
  MlirValue ivs[PIECE / 2][O3_IR_MAX_RANK], crossed[PIECE / 2], results[PIECE / 2];
  MlirValue across[PIECE / 2]; /* places along |across|; |ivs| have the last one for those outside */
  int first, count;            /* to store */
} column_t;

static void load_other(column_t *it, int operand, MlirValue *values) {
  tile_t *t = it->t;
  const o3_nest_operand_t *from = &t->nest->operands[operand];
  for (int l = 0; l < t->plan->vector; ++l) {
    if (!from->is_memref || (l && !o3_nest_uses(from, t->plan->across))) {
      values[l] = from->is_memref ? values[0] : from->value;
    } else {
      MlirValue address = o3_nest_address(t->nest, from, t->b, it->ivs[l]);
      values[l] = o3_build1(t->b, "memref.load", o3_type_element(mlirValueGetType(from->flat)),
                            O3_VALUES(from->flat, address));
    }
  }
}

static o3_status_t store_column(o3_builder_t *b, void *context, MlirValue *yields) {
  const column_t *it = context;
  const o3_nest_t *nest = it->t->nest;
  const o3_nest_operand_t *out = &nest->operands[nest->num_inputs];
  (void)yields;
  MlirValue address = o3_nest_address(nest, out, b, it->ivs[it->first]);
  o3_lanes_store(b, out->flat, address, it->count, it->results + it->first);
  return NULL;
}

static o3_status_t compute_column(o3_builder_t *b, void *context, MlirValue *yields) {
  column_t *it = context;
  tile_t *t = it->t;
  const o3_nest_t *nest = t->nest;
  MlirValue arguments[O3_NEST_MAX_OPERANDS][O3_LANES_MOST] = {0};
  int vector = t->plan->vector, across = t->plan->across;
  (void)yields;
  o3_builder_t outside = *t->b;
  *t->b = *b;
  for (int k = 0; k < nest->num_inputs; ++k) {
    if (k == t->plan->operand) {
      for (int l = 0; l < vector; ++l) arguments[k][l] = it->crossed[l];
    } else if (o3_nest_reads(nest, k)) {
      load_other(it, k, arguments[k]);
    }
  }
  int together = t->plan->stores_vectors ? vector : 1;
  o3_lanes_t lanes = {.nest = nest, .count = vector, .vector = together, .dim = across, .ivs = it->ivs};
  o3_status_t status = o3_lanes_clone(&lanes, b, arguments, it->results);
  *t->b = outside;
  return status;
}

static o3_status_t write_column(o3_builder_t *b, void *context, MlirValue *yields) {
  column_t *it = context;
  const o3_tile_plan_t *plan = it->t->plan;
  O3_TRY(compute_column(b, context, yields));
  it->first = 0;
  it->count = plan->vector;
  if (plan->stores_vectors) return store_column(b, it, yields);
  it->count = 1;
  for (it->first = 0; it->first < plan->vector; ++it->first) {
    MlirValue size = o3_build_index(b, it->t->nest->sizes[plan->across]);
    o3_if_t inside = {.condition = o3_build_cmpi(b, O3_CMPI_ULT, it->across[it->first], size),
                      .then_body = store_column,
                      .context = it};
    O3_TRY(o3_build_if(b, &inside, NULL));
  }
  return NULL;
}

/* The columns of one word: |row| is the first of the rows, a vector of them. */
static o3_status_t write_word(tile_t *t, MlirValue row, MlirValue word) {
  int vector = t->plan->vector, words = WORD * vector / PIECE;
  int along = t->plan->along, across = t->plan->across;
  MlirValue parts[PIECE / 2][2];
  MlirValue piece = by(t, "arith.divui", word, PIECE / WORD),
            within = by(t, "arith.remui", word, PIECE / WORD);
  for (int l = 0; l < vector; ++l) {
    MlirValue place =
        plus(t, piece_place(t, by(t, "arith.addi", row, l), piece), by(t, "arith.muli", within, words));
    o3_lanes_split(t->b, o3_lanes_load(t->b, t->shared, 1, &place, words), words, parts[l]);
  }
  for (int e = 0; e < words; ++e) {
    column_t it = {.t = t};
    MlirValue start = plus(t, t->ivs[across], row);
    MlirValue at = by(t, "arith.addi", plus(t, t->ivs[along], by(t, "arith.muli", word, words)), e);
    for (int l = 0; l < vector; ++l) {
      for (int d = 0; d < t->nest->num_dims; ++d) it.ivs[l][d] = t->ivs[d];
      it.ivs[l][along] = at;
      it.across[l] = by(t, "arith.addi", start, l);
      it.ivs[l][across] = t->plan->stores_vectors
                              ? it.across[l]
                              : by(t, "arith.minui", it.across[l], t->nest->sizes[across] - 1);
      it.crossed[l] = parts[l][e];
    }
    MlirValue below = o3_build_cmpi(t->b, O3_CMPI_ULT, at, o3_build_index(t->b, t->nest->sizes[along]));
    MlirValue left = o3_build_cmpi(t->b, O3_CMPI_ULT, start, o3_build_index(t->b, t->nest->sizes[across]));
    o3_if_t inside = {
        .condition = o3_build2(t->b, "arith.andi", below, left), .then_body = write_column, .context = &it};
    O3_TRY(o3_build_if(t->b, &inside, NULL));
  }
  return NULL;
}

/* Lanes of a warp: LANES_ALONG vectors of rows, LANES_WORDS words. */
static o3_status_t empty_tile(tile_t *t) {
  int vector = t->plan->vector, words = SIDE * (PIECE / vector) / WORD, rows = LANES_ALONG * vector;
  int a_turn = LANES_WORDS * O3_GPU_BLOCK_THREADS / WARP;
  MlirValue lane = by(t, "arith.remui", t->thread, WARP), warp = by(t, "arith.divui", t->thread, WARP);
  MlirValue row = by(t, "arith.muli", by(t, "arith.remui", lane, LANES_ALONG), vector);
  MlirValue word = plus(t, by(t, "arith.divui", lane, LANES_ALONG), by(t, "arith.muli", warp, LANES_WORDS));
  for (int r = 0; r < SIDE; r += rows) {
    for (int w = 0; w < words; w += a_turn)
      O3_TRY(write_word(t, by(t, "arith.addi", row, r), by(t, "arith.addi", word, w)));
  }
  return NULL;
}

o3_status_t o3_tile_build(o3_nest_t *nest, const o3_tile_plan_t *plan, o3_builder_t *b,
                          MlirOperation *launch) {
  MlirType element = o3_type_element(mlirValueGetType(nest->operands[plan->operand].value));
  int64_t bytes = (int64_t)SIDE * SIDE * (PIECE / plan->vector);
  O3_TRY(o3_lanes_relax(nest));
  o3_nvptx_region_t region =
      o3_nvptx_open(b, o3_build_index(b, count_tiles(nest, plan)), O3_GPU_BLOCK_THREADS, bytes);
  o3_builder_t *in = &region.inside;
  *launch = region.launch;
  tile_t tile = {.nest = nest, .plan = plan, .b = in, .element = element};
  tile.thread = o3_nvptx_to_index(in, o3_nvptx_thread(in));
  tile.shared = o3_nvptx_shared_view(in, o3_nvptx_shared(in), 0, 1, (int64_t[]){SIDE * SIDE}, element);
  find_tile(&tile);
  fill_tile(&tile);
  return empty_tile(&tile);
}
