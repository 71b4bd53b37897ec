/* A warp's scores lie in its registers as the warpgroup's do: pairs of columns of two rows, every 8 columns.
 * So its softmax is the same text (attention_softmax.c), and probabilities become the A of the product with V
 * where they are; on 7.0, where each lane needs a row of its own, through shared memory. What differs is that
 * no step is the first: references begin at the lowest score.
 *
 * Shared memory: [rows of Q, later those of the result][probabilities of each warp, on 7.0][K, V of each
 * stage]; where columns are shared, partial results lie where the stages were. */
#include "target/nvptx/attention_mma.h"

#include <stdio.h>

#include "schedule/gpu.h"
#include "target/nvptx/attention_text.h"
#include "target/nvptx/mma_copy.h"

enum { WARP = O3_GPU_WARP, ASYNC_CARDS = 80, TENSOR_CARDS = 70 };
enum { PIECE = 16, CHUNK_COLUMNS = 8, QUAD = 4, QUAD_BYTES = 16 };
enum { MAX_GROUPS = 2, MAX_COPIES = 2048, MAX_PARTS = 8 };
enum { Q, K, V, SOURCES };
enum { RESULT = SOURCES, WEIGHTS, BLOCKS }; /* of the result; of a warp's probabilities */

typedef o3_attention_state_t state_t;
typedef o3_attention_consumer_t consumer_t;

typedef struct writer {
  o3_attention_writer_t w; /* as the softmax reads it */
  const o3_attention_warps_t *p;
  const o3_mma_unit_t *u;
  o3_attention_schedule_t schedule;
  bool async;
  o3_gemm_t sources[SOURCES]; /* as copies read them */
  o3_mma_block_t blocks[BLOCKS];
  o3_mma_copy_t copies[SOURCES];
  o3_mma_reader_t readers[SOURCES], weights;
  /* Values: of the block of threads, the stages that it has, the first and the one behind the last. */
  int lane, warp, slice, rank, lower, upper, own_weights;
  consumer_t groups[MAX_GROUPS];
} writer_t;

/* What goes from stage to stage, of 16 rows each. */
typedef struct walk {
  state_t state[MAX_GROUPS];
  int output[MAX_GROUPS];
} walk_t;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int larger(int a, int b) { return a > b ? a : b; }

/* ---- Sizes ---- */

static int tile_rows(const o3_attention_warps_t *p) { return p->warps * p->rows; }
static int stage_columns(const o3_attention_warps_t *p) { return p->slices * p->columns; }
static int threads(const o3_attention_warps_t *p) { return WARP * p->warps * p->slices; }
static int count_groups(const o3_attention_warps_t *p) { return p->rows / PIECE; }
static int count_parts(const o3_attention_warps_t *p) { return p->slices * p->split; }

static int outputs(const o3_gpu_attention_t *a) { return (int)ceil_div(a->value_width, PIECE) * PIECE / 2; }
static int quads(const o3_gpu_attention_t *a) { return outputs(a) / QUAD; }

static int64_t row_blocks(const o3_gpu_attention_t *a, const o3_attention_warps_t *p) {
  return ceil_div(a->rows, tile_rows(p));
}
static int64_t count_stages(const o3_gpu_attention_t *a, const o3_attention_warps_t *p) {
  return ceil_div(a->columns, stage_columns(p));
}

/* Lines are of a power of two, so that threads have a chunk of each as many lines apart. */
static o3_mma_block_t block_of(o3_gpu_element_t element, const o3_mma_fragment_t *fragment, int width,
                               int lines) {
  enum { LEAST = 64, MOST = 128 };
  int bytes = LEAST;
  while (bytes < width * o3_gpu_element_info(element)->bytes) bytes *= 2;
  return (o3_mma_block_t){.fragment = fragment,
                          .element = element,
                          .lines = lines,
                          .line_bytes = bytes < MOST ? bytes : MOST,
                          .panels = larger(bytes / MOST, 1)};
}

static void fill_blocks(const o3_gpu_attention_t *a, const o3_attention_warps_t *p, const o3_mma_unit_t *u,
                        o3_mma_block_t blocks[BLOCKS]) {
  static const o3_mma_fragment_t PLAIN;
  blocks[Q] = block_of(a->element, &u->fragments[O3_MMA_A], a->width, tile_rows(p));
  blocks[K] = block_of(a->element, &u->fragments[O3_MMA_B_BY_COLUMNS], a->width, stage_columns(p));
  blocks[V] = block_of(a->element, &u->fragments[O3_MMA_B_BY_ROWS], a->value_width, stage_columns(p));
  blocks[RESULT] = block_of(a->element, &PLAIN, a->value_width, tile_rows(p));
  blocks[WEIGHTS] = block_of(a->element, &u->fragments[O3_MMA_A], p->columns, p->rows);
}

/* Whether sums are where a product has them as its A. */
static bool stays(const o3_mma_unit_t *u) { return u->fragments[O3_MMA_A].load == O3_MMA_LDMATRIX; }

/* Of the rows of Q and the result, and with the probabilities. */
static int tile_bytes(const o3_mma_block_t blocks[BLOCKS]) {
  return larger(o3_mma_block_bytes(&blocks[Q]), o3_mma_block_bytes(&blocks[RESULT]));
}
static int first_bytes(const o3_mma_block_t blocks[BLOCKS], const o3_attention_warps_t *p,
                       const o3_mma_unit_t *u) {
  int weights = p->warps * p->slices * o3_mma_block_bytes(&blocks[WEIGHTS]);
  return tile_bytes(blocks) + (stays(u) ? 0 : weights);
}

static int part_bytes(const o3_gpu_attention_t *a) { return (quads(a) + 1) * WARP * QUAD_BYTES; }

int o3_gpu_attention_mma_shared_bytes(const o3_gpu_attention_t *a, const o3_attention_warps_t *p,
                                      const o3_gpu_t *gpu) {
  o3_mma_block_t blocks[BLOCKS];
  fill_blocks(a, p, o3_mma_unit(gpu->sm, a->element), blocks);
  int stages = p->stages * (o3_mma_block_bytes(&blocks[K]) + o3_mma_block_bytes(&blocks[V]));
  int slots = count_parts(p) == 1 ? 0 : p->slices + (p->slices > 1 && p->split > 1);
  int parts = slots * p->warps * count_groups(p) * part_bytes(a);
  return first_bytes(blocks, p, o3_mma_unit(gpu->sm, a->element)) + larger(stages, parts);
}

static int stage_at(writer_t *w, int number) {
  int bytes = o3_mma_block_bytes(&w->blocks[K]) + o3_mma_block_bytes(&w->blocks[V]);
  int q = first_bytes(w->blocks, w->p, w->u);
  int at = o3_kt_op_const(w->w.t, "muli", o3_kt_op_const(w->w.t, "remui", number, w->p->stages), bytes);
  return o3_kt_shared(w->w.t, w->w.shared, o3_kt_op_const(w->w.t, "addi", at, q));
}

static int v_of_stage(writer_t *w, int stage) {
  return o3_kt_shared(w->w.t, stage, o3_kt_i32(w->w.t, o3_mma_block_bytes(&w->blocks[K])));
}

/* ---- Sources ---- */

/* Q as an A, K and V as rows of a B. */
static o3_gemm_t source_of(const o3_gpu_attention_t *a, int which) {
  const int64_t *const strides[SOURCES] = {a->q_strides, a->k_strides, a->v_strides}, *s = strides[which];
  o3_gemm_t g = {.batch = {a->batch, a->heads}, .element = a->element, .out = a->element};
  if (which == Q) {
    g.m = a->rows, g.k = a->width;
    g.a_pitch = s[2], g.a_batch[0] = s[0], g.a_batch[1] = s[1];
    return g;
  }
  g.b_by_rows = true;
  g.k = a->columns, g.n = which == K ? a->width : a->value_width;
  g.b_pitch = s[2], g.b_batch[0] = s[0], g.b_batch[1] = s[1];
  return g;
}

/* Elements of the largest piece that all copies of a source can have. */
static int access_of(const o3_gpu_attention_t *a, int which) {
  const o3_gemm_t g = source_of(a, which);
  int access = o3_mma_copy_access(&g, which == Q);
  while (a->offsets[which] % access) access /= 2;
  return access;
}

bool o3_gpu_attention_mma_is_async(const o3_gpu_attention_t *a, int sm) {
  bool all = sm >= ASYNC_CARDS;
  for (int i = 0; i < SOURCES; ++i) all &= access_of(a, i) >= 2;
  return all;
}

static void begin_copies(writer_t *w, int row) {
  o3_kernel_text_t *t = w->w.t;
  const o3_gpu_attention_t *a = w->w.a;
  int64_t members = a->heads / a->kv_heads;
  int kv_head = members > 1 ? o3_kt_op_const(t, "divui", w->w.head, members) : w->w.head;
  for (int i = 0; i < SOURCES; ++i) {
    const o3_gemm_place_t place = {.batch = {w->w.batch, i == Q ? w->w.head : kv_head}};
    w->copies[i] = (o3_mma_copy_t){
        .gemm = &w->sources[i],
        .is_a = i == Q,
        .by_rows = i != Q,
        .skipped = i == V,
        .block = w->blocks[i],
        .depth = i == Q ? w->blocks[Q].line_bytes * w->blocks[Q].panels / 2 : stage_columns(w->p),
        .first = i == Q ? row : o3_kt_i32(t, 0),
        .threads = threads(w->p),
        .access = access_of(a, i)};
    o3_mma_copy_begin(t, &w->copies[i], w->w.thread, &place);
    if (a->offsets[i])
      w->copies[i].position = o3_kt_op_const(t, "addi", w->copies[i].position, a->offsets[i]);
  }
}

static void fetch(writer_t *w, int which, int k, int base) {
  int values[MAX_COPIES];
  if (w->async) {
    o3_mma_copy_issue(w->w.t, &w->copies[which], k, base);
    return;
  }
  o3_mma_copy_fetch(w->w.t, &w->copies[which], k, values);
  o3_mma_copy_deposit(w->w.t, &w->copies[which], base, values);
}

/* Turn |turn| of the walk, which goes from the last stage to the first. */
static int stage_of_turn(writer_t *w, int turn) {
  return o3_kt_op(w->w.t, "subi", o3_kt_op_const(w->w.t, "addi", w->upper, -1), turn);
}

static void fetch_stage(writer_t *w, int turn) {
  o3_kernel_text_t *t = w->w.t;
  int at = stage_at(w, turn), k = o3_kt_op_const(t, "muli", stage_of_turn(w, turn), stage_columns(w->p));
  fetch(w, K, k, at);
  fetch(w, V, k, v_of_stage(w, at));
}

/* ---- Products ---- */

/* Q K^T of the warp's rows and its columns of the stage. */
static void multiply_scores(writer_t *w, int stage, walk_t *walk) {
  o3_kernel_text_t *t = w->w.t;
  int groups = count_groups(w->p), zero = o3_attention_number(t, 0), b[O3_MMA_MAX_VALUES];
  int a[MAX_GROUPS][O3_MMA_MAX_VALUES];
  for (int g = 0; g < groups; ++g) {
    for (int i = 0; i < w->p->columns / 2; ++i) walk->state[g].scores[i] = zero;
  }
  for (int depth = 0; depth < w->w.a->width; depth += PIECE) {
    for (int g = 0; g < groups; ++g)
      o3_mma_read(t, &w->readers[Q], w->w.shared, g * PIECE, depth / CHUNK_COLUMNS, a[g]);
    for (int column = 0; column < w->p->columns; column += PIECE) {
      o3_mma_read(t, &w->readers[K], stage, column, depth / CHUNK_COLUMNS, b);
      for (int g = 0; g < groups; ++g)
        w->u->multiply(t, w->w.a->element, false, a[g], b, &walk->state[g].scores[column / 2]);
    }
  }
}

static int pack_pair(writer_t *w, const int *probabilities) {
  return o3_attention_pack(&w->w, probabilities[0], probabilities[1]);
}

/* Rows of a block in shared memory that take a lane's pairs. */
typedef struct target {
  const o3_mma_block_t *block;
  int base, lines[2]; /* values */
} target_t;

/* Pairs of a chunk's columns, of both rows. On 7.0 a lane's rows are 2 apart, and lanes 8 rows apart would
 * meet in a bank: half of them begin with the lower row. */
static void store_pairs(writer_t *w, const target_t *to, int chunk, const int pairs[2]) {
  o3_kernel_text_t *t = w->w.t;
  enum { EIGHT_ROWS = 16 };
  int within = o3_kt_op_const(t, "muli", w->groups[0].pair, 2), swapped = -1;
  if (!stays(w->u)) swapped = o3_kt_cmp_const(t, "ne", o3_kt_op_const(t, "andi", w->lane, EIGHT_ROWS), 0);
  for (int i = 0; i < 2; ++i) {
    int line = to->lines[i], pair = pairs[i];
    if (swapped >= 0) {
      line = o3_kt_select(t, swapped, to->lines[1 - i], line, "i32");
      pair = o3_kt_select(t, swapped, pairs[1 - i], pair, "i32");
    }
    int at = o3_kt_op(t, "addi", o3_mma_chunk_byte(t, to->block, line, o3_kt_i32(t, chunk)), within);
    o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 4 : i64} : i32, !llvm.ptr<3>", pair,
               o3_kt_shared(t, to->base, at));
  }
}

static target_t target_of(writer_t *w, const o3_mma_block_t *block, int base, int first, int g) {
  target_t to = {.block = block, .base = base};
  int row = o3_kt_op(w->w.t, "addi", first, o3_mma_bits(w->w.t, &w->u->row, w->lane));
  for (int i = 0; i < 2; ++i)
    to.lines[i] = o3_kt_op_const(w->w.t, "addi", row, g * PIECE + i * w->u->row_step);
  return to;
}

/* A warp's probabilities, for its lanes to read as an A. */
static void store_weights(writer_t *w, const walk_t *walk) {
  o3_kernel_text_t *t = w->w.t;
  o3_kt_line(t, "nvvm.bar.warp.sync %%v%d : i32", o3_kt_i32(t, -1));
  for (int g = 0; g < count_groups(w->p); ++g) {
    const target_t to = target_of(w, &w->blocks[WEIGHTS], w->own_weights, o3_kt_i32(t, 0), g);
    const int *scores = walk->state[g].scores;
    for (int i = 0; i < w->p->columns / 8; ++i) {
      const int pairs[2] = {pack_pair(w, &scores[QUAD * i]), pack_pair(w, &scores[QUAD * i + 2])};
      store_pairs(w, &to, i, pairs);
    }
  }
  o3_kt_line(t, "nvvm.bar.warp.sync %%v%d : i32", o3_kt_i32(t, -1));
}

static void take_weights(writer_t *w, const walk_t *walk, int g, int depth, int a[O3_MMA_MAX_VALUES]) {
  if (!stays(w->u)) {
    o3_mma_read(w->w.t, &w->weights, w->own_weights, g * PIECE, depth / CHUNK_COLUMNS, a);
    return;
  }
  for (int i = 0; i < 4; ++i) a[i] = pack_pair(w, &walk->state[g].scores[depth / 2 + 2 * i]);
}

/* Adds P V. */
static void multiply_values(writer_t *w, int stage, const walk_t *walk,
                            int sums[MAX_GROUPS][O3_ATTENTION_MAX_SCORES]) {
  o3_kernel_text_t *t = w->w.t;
  int groups = count_groups(w->p), a[MAX_GROUPS][O3_MMA_MAX_VALUES], b[O3_MMA_MAX_VALUES];
  if (!stays(w->u)) store_weights(w, walk);
  for (int depth = 0; depth < w->p->columns; depth += PIECE) {
    for (int g = 0; g < groups; ++g) take_weights(w, walk, g, depth, a[g]);
    for (int column = 0; column < 2 * outputs(w->w.a); column += PIECE) {
      o3_mma_read(t, &w->readers[V], stage, depth, column / CHUNK_COLUMNS, b);
      for (int g = 0; g < groups; ++g)
        w->u->multiply(t, w->w.a->element, true, a[g], b, &sums[g][column / 2]);
    }
  }
}

static void step(writer_t *w, int turn, bool cuts, walk_t *walk) {
  o3_kernel_text_t *t = w->w.t;
  int stage = stage_at(w, turn), groups = count_groups(w->p), count = outputs(w->w.a);
  int block = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", stage_of_turn(w, turn), w->p->slices), w->slice);
  int from_last = o3_kt_op(t, "subi", o3_kt_op_const(t, "addi", w->w.steps, -1), block);
  int sums[MAX_GROUPS][O3_ATTENTION_MAX_SCORES];
  multiply_scores(w, stage, walk);
  for (int g = 0; g < groups; ++g) {
    state_t *s = &walk->state[g];
    o3_attention_limit(&w->w, &w->groups[g], from_last, cuts, s->scores);
    o3_attention_softmax(&w->w, &w->groups[g], false, s);
    walk->output[g] = o3_attention_rescale(&w->w, count, walk->output[g], s);
    o3_attention_members(t, count, walk->output[g], sums[g]);
  }
  multiply_values(w, v_of_stage(w, stage), walk, sums);
  for (int g = 0; g < groups; ++g) walk->output[g] = o3_kt_struct(t, count, sums[g]);
}

/* ---- The walk ---- */

enum { CARRIED = 5 };

static void list_carried(walk_t *walk, int groups, int *values[MAX_GROUPS * CARRIED]) {
  for (int g = 0; g < groups; ++g) {
    state_t *s = &walk->state[g];
    int *const all[CARRIED] = {&walk->output[g], &s->reference[0], &s->reference[1], &s->total[0],
                               &s->total[1]};
    for (int i = 0; i < CARRIED; ++i) values[g * CARRIED + i] = all[i];
  }
}

/* A stage is free when all warps are behind the barrier after its products. */
static void turn_ring(writer_t *w, int turn, int count) {
  o3_kernel_text_t *t = w->w.t;
  if (!w->async) {
    o3_kt_line(t, "nvvm.barrier0");
    fetch_stage(w, turn);
    o3_kt_line(t, "nvvm.barrier0");
    return;
  }
  int ahead = w->p->stages - 1, coming = o3_kt_op_const(t, "addi", turn, ahead);
  o3_kt_line(t, "nvvm.cp.async.wait.group %d\nnvvm.barrier0", ahead - 1);
  o3_kt_if(t, o3_kt_cmp(t, "slt", coming, count));
  fetch_stage(w, coming);
  o3_kt_end(t);
  o3_kt_line(t, "nvvm.cp.async.commit.group");
}

/* Turns |from| up to |to| of |count|. */
static void walk_turns(writer_t *w, int from, int to, int count, bool cuts, walk_t *walk) {
  o3_kernel_text_t *t = w->w.t;
  o3_kt_carried_t carried[MAX_GROUPS * CARRIED];
  int *values[MAX_GROUPS * CARRIED], next[MAX_GROUPS * CARRIED], num = CARRIED * count_groups(w->p);
  char sums[20];
  snprintf(sums, sizeof(sums), "!sums%d", outputs(w->w.a));
  list_carried(walk, count_groups(w->p), values);
  for (int i = 0; i < num; ++i)
    carried[i] = (o3_kt_carried_t){.init = *values[i], .type = i % CARRIED ? "f32" : sums};
  int turn = o3_kt_for(t, from, to, o3_kt_i32(t, 1), num, carried);
  for (int i = 0; i < num; ++i) *values[i] = carried[i].value;
  turn_ring(w, turn, count);
  step(w, turn, cuts, walk);
  for (int i = 0; i < num; ++i) next[i] = *values[i];
  o3_kt_end_for(t, num, carried, next);
  for (int i = 0; i < num; ++i) *values[i] = carried[i].result;
}

/* How many turns have scores to cut, at the start. */
static int count_cuts(writer_t *w, int row, int count) {
  o3_kernel_text_t *t = w->w.t;
  if (!w->w.a->causal) return o3_kt_op_const(t, "minsi", count, 1);
  int below = o3_kt_op_const(t, "divui", row, stage_columns(w->p));
  return o3_kt_op(t, "subi", count, below);
}

static void begin_ring(writer_t *w, int count) {
  o3_kernel_text_t *t = w->w.t;
  fetch(w, Q, o3_kt_i32(t, 0), w->w.shared);
  for (int i = 0; w->async && i < w->p->stages - 1; ++i) {
    o3_kt_if(t, o3_kt_cmp_const(t, "sgt", count, i));
    fetch_stage(w, o3_kt_i32(t, i));
    o3_kt_end(t);
    o3_kt_line(t, "nvvm.cp.async.commit.group");
  }
}

static void walk_all(writer_t *w, int row, walk_t *walk) {
  o3_kernel_text_t *t = w->w.t;
  bool cuts = w->w.a->causal || w->w.a->columns % stage_columns(w->p), shared = count_parts(w->p) > 1;
  int zero = o3_kt_i32(t, 0), count = o3_kt_op(t, "subi", w->upper, w->lower);
  for (int g = 0; g < count_groups(w->p); ++g) {
    o3_attention_begin(&w->w, &walk->state[g]);
    walk->output[g] = o3_attention_zeros(t, outputs(w->w.a));
  }
  begin_ring(w, count);
  if (!cuts || shared) {
    walk_turns(w, zero, count, count, cuts, walk);
  } else {
    int first = count_cuts(w, row, count);
    walk_turns(w, zero, first, count, true, walk);
    walk_turns(w, first, count, count, false, walk);
  }
  if (w->async) o3_kt_line(t, "nvvm.cp.async.wait.group 0");
}

/* ---- The result ---- */

/* Elements of a piece of the result that is stored at a time. */
static int store_access(const o3_gpu_attention_t *a) {
  int access = CHUNK_COLUMNS;
  const int64_t all[] = {a->value_width, a->o_strides[0], a->o_strides[1], a->o_strides[2]};
  for (int i = 0; i < 4; ++i) {
    while (all[i] % access) access /= 2;
  }
  return access;
}

/* The element of the result at (row, column). */
static int result_at(writer_t *w, int row, int column) {
  o3_kernel_text_t *t = w->w.t;
  const int64_t *strides = w->w.a->o_strides;
  const int at[3] = {w->w.batch, w->w.head, row};
  for (int i = 0; i < 3; ++i)
    column = o3_kt_op(t, "addi", column, o3_kt_op_const(t, "muli", at[i], strides[i]));
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8",
                         w->w.kernel->num_arguments - 1);
  return o3_kt_global(t, base, column, o3_gemm_type(w->w.a->element));
}

static void begin_inside(writer_t *w, int row, int column) {
  o3_kernel_text_t *t = w->w.t;
  int in_row = o3_kt_cmp_const(t, "slt", row, w->w.a->rows);
  int in_column = o3_kt_cmp_const(t, "slt", column, w->w.a->value_width);
  o3_kt_if(t, o3_kt_value(t, "arith.andi %%v%d, %%v%d : i1", in_row, in_column));
}

static int inverse_of(o3_kernel_text_t *t, int total) {
  return o3_attention_binary(t, "divf", o3_attention_number(t, 1), total);
}

/* Into the lines of the tile. */
static void stage_group(writer_t *w, int g, const walk_t *walk) {
  o3_kernel_text_t *t = w->w.t;
  int values[O3_ATTENTION_MAX_SCORES], inverse[2], pairs[2];
  int first = o3_kt_op_const(t, "muli", w->warp, w->p->rows);
  const target_t to = target_of(w, &w->blocks[RESULT], w->w.shared, first, g);
  o3_attention_members(t, outputs(w->w.a), walk->output[g], values);
  for (int i = 0; i < 2; ++i)
    inverse[i] = inverse_of(t, o3_attention_over_row(&w->w, "addf", walk->state[g].total[i]));
  for (int i = 0; i < outputs(w->w.a); ++i)
    values[i] = o3_attention_binary(t, "mulf", values[i], inverse[i % QUAD / 2]);
  for (int quad = 0; quad < quads(w->w.a); ++quad) {
    for (int i = 0; i < 2; ++i) pairs[i] = pack_pair(w, &values[QUAD * quad + 2 * i]);
    store_pairs(w, &to, quad, pairs);
  }
}

/* A line's chunks by threads side by side. */
static void store_lines(writer_t *w, int row) {
  o3_kernel_text_t *t = w->w.t;
  const char *type = o3_gemm_type(w->w.a->element);
  int chunks = w->blocks[RESULT].line_bytes * w->blocks[RESULT].panels / O3_MMA_CHUNK,
      apart = threads(w->p) / chunks;
  int chunk = o3_kt_op_const(t, "remui", w->w.thread, chunks),
      first = o3_kt_op_const(t, "divui", w->w.thread, chunks);
  int access = store_access(w->w.a);
  for (int i = 0; i < ceil_div(w->blocks[RESULT].lines, apart); ++i) {
    int line = o3_kt_op_const(t, "addi", first, (int64_t)i * apart),
        at = o3_mma_chunk_byte(t, &w->blocks[RESULT], line, chunk);
    bool part = (i + 1) * apart > w->blocks[RESULT].lines;
    if (part) o3_kt_if(t, o3_kt_cmp_const(t, "slt", line, w->blocks[RESULT].lines));
    for (int piece = 0; piece < CHUNK_COLUMNS; piece += access) {
      int column = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", chunk, CHUNK_COLUMNS), piece);
      int to_row = o3_kt_op(t, "addi", row, line);
      int from = o3_kt_shared(t, w->w.shared, o3_kt_op_const(t, "addi", at, 2 * piece));
      begin_inside(w, to_row, column);
      int value = o3_kt_value(t, "llvm.load %%v%d {alignment = %d : i64} : !llvm.ptr<3> -> vector<%dx%s>",
                              from, 2 * access, access, type);
      o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = %d : i64} : vector<%dx%s>, !llvm.ptr<1>", value,
                 result_at(w, to_row, column), 2 * access, access, type);
      o3_kt_end(t);
    }
    if (part) o3_kt_end(t);
  }
}

static void store_tile(writer_t *w, int row, const walk_t *walk) {
  o3_kt_line(w->w.t, "nvvm.barrier0");
  for (int g = 0; g < count_groups(w->p); ++g) stage_group(w, g, walk);
  o3_kt_line(w->w.t, "nvvm.barrier0");
  store_lines(w, row);
}

/* ---- Shared columns ---- */

/* Parts of a result are left in shared memory, [slot][warp][group][quad][lane] of four numbers: of each
 * slice, and behind them what the block has put together of these, for the other blocks of the cluster. */
typedef struct parts {
  int count;
  bool of_blocks; /* of the cluster's, else of the block's slices */
} parts_t;

/* The place of a lane's four numbers: quad |quad| (number) of group |g| in |slot| (value), of this thread's
 * rows; behind the last quad: references and totals. */
static int part_at(writer_t *w, int slot, int g, int quad) {
  o3_kernel_text_t *t = w->w.t;
  int number = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", slot, w->p->warps), w->warp);
  number = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", number, count_groups(w->p)), g);
  int at = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", number, part_bytes(w->w.a)),
                    o3_kt_op_const(t, "muli", w->lane, QUAD_BYTES));
  return o3_kt_shared(t, stage_at(w, o3_kt_i32(t, 0)),
                      o3_kt_op_const(t, "addi", at, (int64_t)quad * WARP * QUAD_BYTES));
}

static int slot_of_block(writer_t *w) { return o3_kt_i32(w->w.t, w->p->slices > 1 ? w->p->slices : 0); }

static void leave_quad(writer_t *w, int at, const int four[QUAD]) {
  o3_kernel_text_t *t = w->w.t;
  int vector = o3_kt_value(t, "vector.from_elements %%v%d, %%v%d, %%v%d, %%v%d : vector<4xf32>", four[0],
                           four[1], four[2], four[3]);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>", vector, at);
}

static void leave_parts(writer_t *w, const walk_t *walk) {
  o3_kernel_text_t *t = w->w.t;
  int values[O3_ATTENTION_MAX_SCORES];
  for (int g = 0; g < count_groups(w->p); ++g) {
    const state_t *s = &walk->state[g];
    o3_attention_members(t, outputs(w->w.a), walk->output[g], values);
    for (int i = 0; i < quads(w->w.a); ++i) leave_quad(w, part_at(w, w->slice, g, i), &values[QUAD * i]);
    int state[QUAD] = {s->reference[0], s->reference[1]};
    for (int i = 0; i < 2; ++i) state[2 + i] = o3_attention_over_row(&w->w, "addf", s->total[i]);
    leave_quad(w, part_at(w, w->slice, g, quads(w->w.a)), state);
  }
}

static void take(writer_t *w, const parts_t *parts, int part, int g, int quad, int four[QUAD]) {
  o3_kernel_text_t *t = w->w.t;
  int at = part_at(w, parts->of_blocks ? slot_of_block(w) : o3_kt_i32(t, part), g, quad);
  if (parts->of_blocks)
    at = o3_kt_value(t, "nvvm.mapa %%v%d, %%v%d : !llvm.ptr<3> -> !llvm.ptr<7>", at, o3_kt_i32(t, part));
  int all = o3_kt_value(t, "llvm.load %%v%d {alignment = 16 : i64} : !llvm.ptr<%d> -> vector<4xf32>", at,
                        parts->of_blocks ? 7 : 3);
  for (int i = 0; i < QUAD; ++i)
    four[i] = o3_kt_value(t, "vector.extract %%v%d[%d] : f32 from vector<4xf32>", all, i);
}

/* What each part's sums are to be multiplied with, of both rows; |state|: references and totals of all. */
static void weigh_parts(writer_t *w, const parts_t *parts, int g, int weights[MAX_PARTS][2],
                        int state[QUAD]) {
  o3_kernel_text_t *t = w->w.t;
  int states[MAX_PARTS][QUAD];
  for (int i = 0; i < parts->count; ++i) take(w, parts, i, g, quads(w->w.a), states[i]);
  for (int row = 0; row < 2; ++row) {
    int *reference = &state[row], *total = &state[2 + row];
    *reference = states[0][row];
    for (int i = 1; i < parts->count; ++i)
      *reference = o3_attention_larger(&w->w, *reference, states[i][row]);
    for (int i = 0; i < parts->count; ++i) {
      weights[i][row] = o3_attention_moved(&w->w, &w->groups[g], states[i][row], *reference);
      int part = o3_attention_binary(t, "mulf", weights[i][row], states[i][2 + row]);
      *total = i ? o3_attention_binary(t, "addf", *total, part) : part;
    }
  }
}

static void sum_parts(writer_t *w, const parts_t *parts, int g, int quad, int weights[MAX_PARTS][2],
                      int sums[QUAD]) {
  o3_kernel_text_t *t = w->w.t;
  int four[QUAD];
  for (int i = 0; i < parts->count; ++i) {
    take(w, parts, i, g, quad, four);
    for (int k = 0; k < QUAD; ++k) {
      int part = o3_attention_binary(t, "mulf", four[k], weights[i][k / 2]);
      sums[k] = i ? o3_attention_binary(t, "addf", sums[k], part) : part;
    }
  }
}

static void store_quad(writer_t *w, const consumer_t *c, int quad, const int four[QUAD]) {
  o3_kernel_text_t *t = w->w.t;
  const char *type = o3_gemm_type(w->w.a->element);
  for (int i = 0; i < QUAD; ++i) {
    int row = o3_kt_op_const(t, "addi", c->row, i / 2 * w->u->row_step);
    int column = o3_kt_op_const(t, "addi", c->pair, quad * CHUNK_COLUMNS + i % 2);
    int half = o3_kt_value(t, "arith.truncf %%v%d : f32 to %s", four[i], type);
    begin_inside(w, row, column);
    o3_kt_line(t, "llvm.store %%v%d, %%v%d : %s, !llvm.ptr<1>", half, result_at(w, row, column), type);
    o3_kt_end(t);
  }
}

/* Each has some quads: |mine| says which of |sharing|. |last|: they are the result, else the block's part. */
static void join_parts(writer_t *w, const parts_t *parts, int g, int mine, int sharing, bool last) {
  o3_kernel_text_t *t = w->w.t;
  int weights[MAX_PARTS][2], state[QUAD], sums[QUAD], inverse[2] = {-1, -1};
  weigh_parts(w, parts, g, weights, state);
  for (int row = 0; last && row < 2; ++row) inverse[row] = inverse_of(t, state[2 + row]);
  for (int first = 0; first < sharing && first < quads(w->w.a); ++first) {
    o3_kt_if(t, o3_kt_cmp_const(t, "eq", mine, first));
    for (int quad = first; quad < quads(w->w.a); quad += sharing) {
      sum_parts(w, parts, g, quad, weights, sums);
      for (int k = 0; last && k < QUAD; ++k)
        sums[k] = o3_attention_binary(t, "mulf", sums[k], inverse[k / 2]);
      if (last)
        store_quad(w, &w->groups[g], quad, sums);
      else
        leave_quad(w, part_at(w, slot_of_block(w), g, quad), sums);
    }
    if (!last && !first) leave_quad(w, part_at(w, slot_of_block(w), g, quads(w->w.a)), state);
    o3_kt_end(t);
  }
}

/* A cluster's barrier counts warps, so each comes to it as a whole. */
static void cluster_barrier(writer_t *w) {
  o3_kernel_text_t *t = w->w.t;
  o3_kt_line(t, "nvvm.bar.warp.sync %%v%d : i32", o3_kt_i32(t, -1));
  o3_kt_line(t, "nvvm.cluster.arrive {aligned}\nnvvm.cluster.wait {aligned}");
}

static void join_blocks(writer_t *w) {
  o3_kernel_text_t *t = w->w.t;
  const parts_t blocks = {.count = w->p->split, .of_blocks = true};
  int mine = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", w->rank, w->p->slices), w->slice);
  cluster_barrier(w);
  for (int g = 0; g < count_groups(w->p); ++g)
    join_parts(w, &blocks, g, mine, w->p->split * w->p->slices, true);
  cluster_barrier(w);
}

static void store_parts(writer_t *w, const walk_t *walk) {
  o3_kernel_text_t *t = w->w.t;
  const parts_t slices = {.count = w->p->slices};
  o3_kt_line(t, "nvvm.barrier0");
  leave_parts(w, walk);
  if (w->p->slices > 1) {
    o3_kt_line(t, "nvvm.barrier0");
    for (int g = 0; g < count_groups(w->p); ++g)
      join_parts(w, &slices, g, w->slice, w->p->slices, w->p->split == 1);
  }
  if (w->p->split > 1) join_blocks(w);
}

/* ---- The kernel ---- */

/* Causal tiles in the order of their length, the longest first. */
static int find_place(writer_t *w) {
  o3_kernel_text_t *t = w->w.t;
  const o3_gpu_attention_t *a = w->w.a;
  int64_t blocks = row_blocks(a, w->p);
  int rest = w->w.block_of_threads;
  w->rank = o3_kt_split(t, &rest, w->p->split);
  w->w.block = o3_kt_split(t, &rest, blocks);
  if (a->causal) w->w.block = o3_kt_op(t, "subi", o3_kt_i32(t, blocks - 1), w->w.block);
  w->w.head = o3_kt_split(t, &rest, a->heads);
  w->w.batch = rest;
  return o3_kt_op_const(t, "muli", w->w.block, tile_rows(w->p));
}

/* The stages of this block of threads. */
static void find_stages(writer_t *w, int row) {
  o3_kernel_text_t *t = w->w.t;
  int all = o3_kt_i32(t, count_stages(w->w.a, w->p)), columns = stage_columns(w->p);
  if (w->w.a->causal) {
    int end = o3_kt_op_const(t, "minsi", o3_kt_op_const(t, "addi", row, tile_rows(w->p)), w->w.a->rows);
    all = o3_kt_op_const(t, "divui", o3_kt_op_const(t, "addi", end, columns - 1), columns);
  }
  w->w.steps = o3_kt_op_const(t, "muli", all, w->p->slices);
  w->lower = o3_kt_op_const(t, "divui", o3_kt_op(t, "muli", all, w->rank), w->p->split);
  int next = o3_kt_op(t, "muli", all, o3_kt_op_const(t, "addi", w->rank, 1));
  w->upper = o3_kt_op_const(t, "divui", next, w->p->split);
}

static void begin_warps(writer_t *w, int row) {
  o3_kernel_text_t *t = w->w.t;
  const double factor = (w->w.a->masked ? 1 : w->w.a->scale) * 1.4426950408889634;
  int warp = o3_kt_uniform(t, o3_kt_op_const(t, "shrui", w->w.thread, 5)), zero = o3_kt_i32(t, 0);
  w->lane = o3_kt_op_const(t, "andi", w->w.thread, WARP - 1);
  w->slice = o3_kt_op_const(t, "divui", warp, w->p->warps);
  w->warp = o3_kt_op_const(t, "remui", warp, w->p->warps);
  int first = o3_kt_op_const(t, "muli", w->warp, w->p->rows);
  int columns = o3_kt_op_const(t, "muli", w->slice, w->p->columns);
  w->readers[Q] = o3_mma_reader(t, &w->blocks[Q], w->lane, first, zero);
  w->readers[K] = o3_mma_reader(t, &w->blocks[K], w->lane, columns, zero);
  if (!stays(w->u)) {
    int before = o3_kt_op_const(t, "muli", warp, o3_mma_block_bytes(&w->blocks[WEIGHTS]));
    w->own_weights = o3_kt_shared(t, w->w.shared, o3_kt_op_const(t, "addi", before, tile_bytes(w->blocks)));
    w->weights = o3_mma_reader(t, &w->blocks[WEIGHTS], w->lane, zero, zero);
  }
  w->readers[V] = o3_mma_reader(t, &w->blocks[V], w->lane, columns, zero);
  int own = o3_kt_op(t, "addi", o3_kt_op(t, "addi", row, first), o3_mma_bits(t, &w->u->row, w->lane));
  int pair = o3_mma_bits(t, &w->u->column, w->lane);
  for (int g = 0; g < count_groups(w->p); ++g)
    w->groups[g] = (consumer_t){.row = o3_kt_op_const(t, "addi", own, g * PIECE),
                                .pair = pair,
                                .factor = o3_attention_number(t, factor),
                                .opposed = o3_attention_number(t, -factor)};
}

static void write_module(o3_kernel_text_t *t, void *context) {
  writer_t *w = context;
  walk_t walk;
  w->w.t = t;
  o3_kt_begin_module(t);
  o3_kt_begin_kernel(t, w->w.kernel, w->p->resident);
  w->w.shared = o3_kt_value(t, "llvm.mlir.addressof @o3_shared : !llvm.ptr<3>");
  w->w.thread = o3_kt_thread(t);
  w->w.block_of_threads = o3_kt_block(t);
  int row = find_place(w);
  find_stages(w, row);
  begin_warps(w, row);
  begin_copies(w, row);
  walk_all(w, row, &walk);
  if (count_parts(w->p) > 1)
    store_parts(w, &walk);
  else
    store_tile(w, row, &walk);
  o3_kt_end_kernel(t);
}

/* ---- Choices ---- */

static int64_t extent(int64_t batches, int64_t heads, int64_t rows, int64_t width, const int64_t strides[3]) {
  return (batches - 1) * strides[0] + (heads - 1) * strides[1] + (rows - 1) * strides[2] + width;
}

const char *o3_gpu_attention_mma_refuse(const o3_gpu_attention_t *a, const o3_gpu_t *gpu) {
  const char *why = o3_gpu_attention_refuse_shape(a);
  if (why) return why;
  if (gpu->sm < TENSOR_CARDS || !o3_mma_unit(gpu->sm, a->element))
    return "the card's warps multiply no numbers of the type";
  const int64_t extents[] = {
      a->offsets[Q] + extent(a->batch, a->heads, a->rows, a->width, a->q_strides),
      a->offsets[K] + extent(a->batch, a->kv_heads, a->columns, a->width, a->k_strides),
      a->offsets[V] + extent(a->batch, a->kv_heads, a->columns, a->value_width, a->v_strides)};
  for (int i = 0; i < SOURCES; ++i) {
    if (extents[i] > INT32_MAX) return "Q, K or V has more than 2^31 elements";
  }
  return o3_gpu_attention_mma_schedule(a, gpu).columns ? NULL : "no tile fits into the card's shared memory";
}

/* The bits of a lane's number that say its columns. */
static void find_row_lanes(const o3_mma_unit_t *u, int lanes[2]) {
  int count = 0;
  for (int i = 0; i < O3_MMA_MAX_BITS; ++i) {
    for (int bit = 1; bit <= u->column.parts[i].mask && count < 2; bit *= 2)
      lanes[count++] = bit << u->column.parts[i].right;
  }
}

o3_status_t o3_gpu_attention_mma_build(const o3_gpu_attention_t *a, const o3_attention_warps_t *p,
                                       const o3_gpu_t *gpu, o3_gpu_kernel_t *kernel) {
  char stem[96];
  writer_t w = {.p = p,
                .u = o3_mma_unit(gpu->sm, a->element),
                .async = o3_gpu_attention_mma_is_async(a, gpu->sm),
                .schedule = {.columns = p->columns}};
  *kernel = (o3_gpu_kernel_t){.block = threads(p), .cluster = p->split};
  kernel->grid[0] = (int)(row_blocks(a, p) * a->heads * a->batch * p->split);
  kernel->grid[1] = kernel->grid[2] = 1;
  kernel->shared_bytes = o3_gpu_attention_mma_shared_bytes(a, p, gpu);
  for (int i = 0; i < 4 + a->masked; ++i) o3_gpu_kernel_add_pointer(kernel, i);
  w.w = (o3_attention_writer_t){.a = a, .s = &w.schedule, .kernel = kernel, .row_step = w.u->row_step};
  find_row_lanes(w.u, w.w.row_lanes);
  fill_blocks(a, p, w.u, w.blocks);
  for (int i = 0; i < SOURCES; ++i) w.sources[i] = source_of(a, i);
  snprintf(stem, sizeof(stem), "o3k_%s_attention_%dx%dx%d__%s%s", o3_gemm_type(a->element), tile_rows(p),
           stage_columns(p), 2 * outputs(a), w.u->name, a->causal ? "_causal" : "");
  return o3_kt_write(kernel, stem, write_module, &w);
}
