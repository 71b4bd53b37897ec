/* Stream-K: the steps of all tiles, tile by tile, are shared out evenly, so that no multiprocessor is idle
 * while others multiply a last tile. Block b has the steps from b W / G on, of W steps and G blocks; a tile's
 * are those of one block, or of some neighbours.
 *
 * A block that has a part leaves its sums in memory, in the order of the registers, and counts itself; the
 * one that counts last adds all of them up, in the order of k, and stores. None waits for another one.
 * Scratch: a counter for each tile and warpgroup, then two places for each block, as it has parts of its
 * first and of its last tile alone. */
#include "target/nvptx/gemm_writer.h"

enum { VECTOR = 4, IN_FLIGHT = 32 }; /* f32; vectors that are asked for at a time */

static int64_t all_steps(const o3_gemm_writer_t *w) { return o3_gemm_count_tiles(w->g, w->s) * w->k_blocks; }

/* Where block |block| (value) begins. */
static int start_of(o3_gemm_writer_t *w, int block) {
  o3_kernel_text_t *t = w->t;
  return o3_kt_op_const(t, "divui", o3_kt_op_const(t, "muli", block, all_steps(w)), w->s->streams);
}

/* The block that has step |step| (value). */
static int block_of(o3_gemm_writer_t *w, int step) {
  o3_kernel_text_t *t = w->t;
  int next = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "addi", step, 1), w->s->streams);
  return o3_kt_op_const(t, "divui", o3_kt_op_const(t, "subi", next, 1), all_steps(w));
}

static int next_block(o3_gemm_writer_t *w) { return o3_kt_op_const(w->t, "addi", w->block, 1); }

void o3_gemm_stream_tiles(o3_gemm_writer_t *w, int range[2]) {
  o3_kernel_text_t *t = w->t;
  int last = o3_kt_op_const(t, "subi", start_of(w, next_block(w)), 1);
  range[0] = o3_kt_op_const(t, "divui", start_of(w, w->block), w->k_blocks);
  range[1] = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "divui", last, w->k_blocks), 1);
}

o3_gemm_segment_t o3_gemm_stream_segment(o3_gemm_writer_t *w, int tile) {
  o3_kernel_text_t *t = w->t;
  int steps = o3_kt_op_const(t, "muli", tile, w->k_blocks);
  int first = o3_kt_op(t, "subi", start_of(w, w->block), steps);
  int end = o3_kt_op(t, "subi", start_of(w, next_block(w)), steps);
  first = o3_kt_op_const(t, "maxsi", first, 0);
  end = o3_kt_op_const(t, "minsi", end, w->k_blocks);
  return (o3_gemm_segment_t){tile, first, o3_kt_op(t, "subi", end, first)};
}

/* ---- Memory ---- */

/* f32 of a place. */
static int64_t place_size(const o3_gemm_schedule_t *s) { return (int64_t)o3_gemm_tile_rows(s) * s->columns; }

int64_t o3_gemm_stream_bytes(const o3_gemm_schedule_t *s) { return 2 * s->streams * place_size(s) * 4; }

static int scratch_at(o3_gemm_writer_t *w, int word, const char *type) {
  o3_kernel_text_t *t = w->t;
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8",
                         3 + w->g->num_extras);
  return o3_kt_global(t, base, word, type);
}

/* Where the thread's sums of |block|'s part of |tile| begin: of a piece of 8 columns, the next is a warpgroup
 * of vectors further. */
static int place_of(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int block, int tile) {
  o3_kernel_text_t *t = w->t;
  int pieces = w->s->columns / 8;
  int before = o3_kt_cmp(t, "slt", start_of(w, block), o3_kt_op_const(t, "muli", tile, w->k_blocks));
  int place = o3_kt_op_const(t, "muli", block, 2);
  place = o3_kt_op(t, "addi", place, o3_kt_value(t, "arith.extui %%v%d : i1 to i32", before));
  int at = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "muli", c->number, pieces), O3_GEMM_WARPGROUP);
  at = o3_kt_op_const(t, "muli", o3_kt_op(t, "addi", at, c->thread), VECTOR);
  at = o3_kt_op(t, "addi", at, o3_kt_op_const(t, "muli", place, place_size(w->s)));
  return scratch_at(w, o3_kt_op_const(t, "addi", at, O3_GPU_COUNTERS), "f32");
}

static int piece_at(o3_gemm_writer_t *w, int place, int piece) {
  return o3_kt_value(w->t, "llvm.getelementptr %%v%d[%d] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32", place,
                     piece * O3_GEMM_WARPGROUP * VECTOR);
}

static void leave(o3_gemm_writer_t *w, int place, int sums) {
  o3_kernel_text_t *t = w->t;
  int count = w->s->columns / 2;
  for (int piece = 0; piece < count / VECTOR; ++piece) {
    int four[VECTOR], at = piece_at(w, place, piece);
    for (int i = 0; i < VECTOR; ++i) four[i] = o3_kt_member(t, count, sums, VECTOR * piece + i);
    int vector = o3_kt_value(t, "vector.from_elements %%v%d, %%v%d, %%v%d, %%v%d : vector<4xf32>", four[0],
                             four[1], four[2], four[3]);
    o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>", vector, at);
  }
}

/* Adds the sums of block |block| to |totals|, unless it is behind |last|. */
static void add_part(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int block, int last, int tile,
                     int *totals) {
  o3_kernel_text_t *t = w->t;
  int count = w->s->columns / 2, there = o3_kt_cmp(t, "sle", block, last);
  int zero = o3_kt_value(t, "arith.constant dense<0.0> : vector<4xf32>");
  int place = place_of(w, c, o3_kt_op(t, "minsi", block, last), tile);
  for (int piece = 0; piece < count / VECTOR; ++piece) {
    int four = o3_kt_value(t, "llvm.load %%v%d {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>",
                           piece_at(w, place, piece));
    four = o3_kt_select(t, there, four, zero, "vector<4xf32>");
    for (int i = 0; i < VECTOR; ++i) {
      int one = o3_kt_value(t, "vector.extract %%v%d[%d] : f32 from vector<4xf32>", four, i);
      int *total = &totals[VECTOR * piece + i];
      *total = o3_kt_value(t, "arith.addf %%v%d, %%v%d : f32", *total, one);
    }
  }
}

/* The sums of the blocks from |first| to |last|, as a struct. */
static int gather(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int first, int last, int tile) {
  o3_kernel_text_t *t = w->t;
  enum { MOST = O3_GEMM_MAX_COLUMNS / 2 };
  o3_kt_carried_t carried[MOST];
  int count = w->s->columns / 2, at_once = IN_FLIGHT * VECTOR / count, totals[MOST];
  int zero = o3_kt_value(t, "arith.constant 0.0 : f32");
  for (int i = 0; i < count; ++i) carried[i] = (o3_kt_carried_t){.init = zero, .type = "f32"};
  if (at_once > 4) at_once = 4;
  int block = o3_kt_for(t, first, o3_kt_op_const(t, "addi", last, 1), o3_kt_i32(t, at_once), count, carried);
  for (int i = 0; i < count; ++i) totals[i] = carried[i].value;
  for (int i = 0; i < at_once; ++i) add_part(w, c, o3_kt_op_const(t, "addi", block, i), last, tile, totals);
  o3_kt_end_for(t, count, carried, totals);
  for (int i = 0; i < count; ++i) totals[i] = carried[i].result;
  return o3_kt_struct(t, count, totals);
}

/* ---- Who comes last ---- */

/* LLVM's NVPTX back end leaves out the order of an atomic, so it is that of fences. */
static void fence(o3_gemm_writer_t *w) { o3_kt_line(w->t, "llvm.fence syncscope(\"device\") acq_rel"); }

/* How many warpgroups had left their sums of the tile before this one, for all of its threads; what they left
 * is there to be read. */
static int count_in(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int counter) {
  o3_kernel_text_t *t = w->t;
  int word = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", c->number, 4),
                            o3_gemm_shared_bytes(w->s) - O3_GEMM_STREAM_SHARED);
  int shared = o3_kt_shared(t, w->shared, word);
  fence(w);
  o3_kt_barrier(t, c->id, O3_GEMM_WARPGROUP);
  o3_kt_if(t, c->leader);
  int one = o3_kt_i32(t, 1);
  int before = o3_kt_value(
      t, "llvm.atomicrmw add %%v%d, %%v%d syncscope(\"device\") monotonic : !llvm.ptr<1>, i32", counter, one);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 4 : i64} : i32, !llvm.ptr<3>", before, shared);
  o3_kt_end(t);
  o3_kt_barrier(t, c->id, O3_GEMM_WARPGROUP);
  fence(w);
  return o3_kt_value(t, "llvm.load %%v%d {alignment = 4 : i64} : !llvm.ptr<3> -> i32", shared);
}

/* Leaves the sums; the last one gives those of the whole tile, and takes the counter back. |is_last|: a
 * condition; what others give means nothing. */
static int combine(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, int tile, int sums, int *is_last) {
  o3_kernel_text_t *t = w->t;
  int count = w->s->columns / 2, result = o3_kt_name(t);
  int steps = o3_kt_op_const(t, "muli", tile, w->k_blocks);
  int first = block_of(w, steps), last = block_of(w, o3_kt_op_const(t, "addi", steps, w->k_blocks - 1));
  int number = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", tile, w->s->consumers), c->number);
  int counter = scratch_at(w, number, "i32");
  leave(w, place_of(w, c, w->block, tile), sums);
  int before = count_in(w, c, counter);
  *is_last = o3_kt_cmp(t, "eq", before, o3_kt_op(t, "subi", last, first));
  o3_kt_line(t, "%%v%d = scf.if %%v%d -> (!sums%d) {", result, *is_last, count);
  o3_kt_if(t, c->leader);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 4 : i64} : i32, !llvm.ptr<1>", o3_kt_i32(t, 0),
             counter);
  o3_kt_end(t);
  o3_kt_line(t, "scf.yield %%v%d : !sums%d\n} else {", gather(w, c, first, last, tile), count);
  o3_kt_line(t, "scf.yield %%v%d : !sums%d\n}", sums, count);
  return result;
}

void o3_gemm_stream_finish(o3_gemm_writer_t *w, const o3_gemm_consumer_t *c, o3_gemm_stores_t *stores,
                           const o3_gemm_segment_t *segment, int sums) {
  o3_kernel_text_t *t = w->t;
  int count = w->s->columns / 2, total = o3_kt_name(t), finishes = o3_kt_name(t), is_last;
  int whole = o3_kt_cmp_const(t, "eq", segment->count, w->k_blocks);
  int yes = o3_kt_value(t, "arith.constant true");
  o3_kt_line(t, "%%v%d, %%v%d = scf.if %%v%d -> (!sums%d, i1) {", total, finishes, whole, count);
  o3_kt_line(t, "scf.yield %%v%d, %%v%d : !sums%d, i1\n} else {", sums, yes, count);
  int combined = combine(w, c, segment->tile, sums, &is_last);
  o3_kt_line(t, "scf.yield %%v%d, %%v%d : !sums%d, i1\n}", combined, is_last, count);
  o3_kt_if(t, finishes);
  o3_gemm_end_stores(w, c, stores, &total);
  o3_kt_end(t);
}
