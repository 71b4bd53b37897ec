/* The pieces of a block are shared out among its threads, neighbouring pieces to neighbouring threads; all of
 * a thread are in flight at once, for which what lies behind the end is read at the last piece instead. Less
 * than a piece at the very end goes element by element. */
#include "target/nvptx/row_stage.h"

enum { PIECE = 16 };
#define PIECE_TYPE "vector<4xi32>"

/* Of one value: pieces of a block and of all, elements behind the last piece. */
typedef struct tile {
  const o3_row_value_t *value;
  const o3_gpu_element_info_t *element;
  int64_t pieces, whole, tail;
  int blocks;
} tile_t;

static tile_t tile_of(const o3_row_plan_t *p, const o3_row_value_t *value) {
  tile_t tile = {.value = value, .element = o3_gpu_element_info(value->element)};
  int64_t rows = O3_ROW_BLOCK / p->threads, bytes = p->rows * p->columns * tile.element->bytes;
  tile.pieces = rows * p->columns * tile.element->bytes / PIECE;
  tile.whole = bytes / PIECE;
  tile.tail = bytes % PIECE / tile.element->bytes;
  tile.blocks = (int)((p->rows + rows - 1) / rows);
  return tile;
}

static int shared_place(const o3_row_stage_t *s, const tile_t *tile, int bytes) {
  return o3_kt_shared(s->t, s->shared, o3_kt_op_const(s->t, "addi", bytes, tile->value->stage));
}

static int global_place(const o3_row_stage_t *s, const tile_t *tile, int index, const char *type) {
  int base = o3_kt_value(s->t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8",
                         tile->value->argument);
  return o3_kt_global(s->t, base, index, type);
}

/* The number, in the block, of the thread's piece |turn|. */
static int piece_of(const o3_row_stage_t *s, int turn) {
  return o3_kt_op_const(s->t, "addi", s->thread, (int64_t)turn * O3_ROW_BLOCK);
}

static int turns(const tile_t *tile) { return (int)((tile->pieces + O3_ROW_BLOCK - 1) / O3_ROW_BLOCK); }

static int first_piece(const o3_row_stage_t *s, const tile_t *tile) {
  return o3_kt_op_const(s->t, "muli", s->block, tile->pieces);
}

static void load_pieces(const o3_row_stage_t *s, const tile_t *tile) {
  o3_kernel_text_t *t = s->t;
  int places[O3_ROW_STAGE_PIECES], loaded[O3_ROW_STAGE_PIECES], first = first_piece(s, tile);
  for (int i = 0; i < turns(tile); ++i) {
    places[i] = o3_kt_op_const(t, "minui", piece_of(s, i), tile->pieces - 1);
    int piece = o3_kt_op_const(t, "minui", o3_kt_op(t, "addi", first, places[i]), tile->whole - 1);
    loaded[i] = o3_kt_value(t, "llvm.load %%v%d {alignment = 16 : i64} : !llvm.ptr<1> -> " PIECE_TYPE,
                            global_place(s, tile, piece, PIECE_TYPE));
  }
  for (int i = 0; i < turns(tile); ++i)
    o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 16 : i64} : " PIECE_TYPE ", !llvm.ptr<3>", loaded[i],
               shared_place(s, tile, o3_kt_op_const(t, "muli", places[i], PIECE)));
}

static void store_pieces(const o3_row_stage_t *s, const tile_t *tile) {
  o3_kernel_text_t *t = s->t;
  int first = first_piece(s, tile);
  bool ends = tile->blocks * tile->pieces > tile->whole;
  for (int i = 0; i < turns(tile); ++i) {
    int place = piece_of(s, i), piece = o3_kt_op(t, "addi", first, place);
    bool ragged = (i + 1) * O3_ROW_BLOCK > tile->pieces;
    if (ragged) o3_kt_if(t, o3_kt_cmp_const(t, "ult", place, tile->pieces));
    if (ends) o3_kt_if(t, o3_kt_cmp_const(t, "ult", piece, tile->whole));
    int from = shared_place(s, tile, o3_kt_op_const(t, "muli", place, PIECE));
    int value = o3_kt_value(t, "llvm.load %%v%d {alignment = 16 : i64} : !llvm.ptr<3> -> " PIECE_TYPE, from);
    o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 16 : i64} : " PIECE_TYPE ", !llvm.ptr<1>", value,
               global_place(s, tile, piece, PIECE_TYPE));
    if (ends) o3_kt_end(t);
    if (ragged) o3_kt_end(t);
  }
}

/* The elements behind the last piece, which the last block has. */
static void move_tail(const o3_row_stage_t *s, const tile_t *tile, bool to_shared) {
  o3_kernel_text_t *t = s->t;
  const char *type = tile->element->mlir;
  int64_t end = tile->whole * PIECE - (tile->blocks - 1) * tile->pieces * PIECE;
  int last = o3_kt_cmp_const(t, "eq", s->block, tile->blocks - 1);
  int own = o3_kt_cmp_const(t, "ult", s->thread, tile->tail);
  o3_kt_if(t, o3_kt_value(t, "arith.andi %%v%d, %%v%d : i1", last, own));
  int bytes = o3_kt_op_const(t, "muli", s->thread, tile->element->bytes);
  int here = shared_place(s, tile, o3_kt_op_const(t, "addi", bytes, end));
  int index = o3_kt_op_const(t, "addi", s->thread, tile->whole * (PIECE / tile->element->bytes));
  int there = global_place(s, tile, index, type);
  int value = o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<%d> -> %s", to_shared ? there : here,
                          to_shared ? 1 : 3, type);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d : %s, !llvm.ptr<%d>", value, to_shared ? here : there, type,
             to_shared ? 3 : 1);
  o3_kt_end(t);
}

/* What load_pieces puts where the tail belongs has to be there before. */
void o3_row_stage_load(const o3_row_stage_t *s) {
  bool tails = false;
  for (int pass = 0; pass < 2; ++pass) {
    for (int v = 0; v < s->plan->num_values; ++v) {
      const o3_row_value_t *value = &s->plan->values[v];
      if (value->stage < 0 || !value->read) continue;
      tile_t tile = tile_of(s->plan, value);
      if (!pass) load_pieces(s, &tile);
      if (pass && tile.tail) move_tail(s, &tile, true);
      tails |= tile.tail != 0;
    }
    if (!pass || tails) o3_kt_line(s->t, "nvvm.barrier0");
  }
}

void o3_row_stage_store(const o3_row_stage_t *s) {
  bool synchronized = false;
  for (int v = 0; v < s->plan->num_values; ++v) {
    const o3_row_value_t *value = &s->plan->values[v];
    if (value->stage < 0 || !value->written) continue;
    if (!synchronized) o3_kt_line(s->t, "nvvm.barrier0");
    synchronized = true;
    tile_t tile = tile_of(s->plan, value);
    store_pieces(s, &tile);
    if (tile.tail) move_tail(s, &tile, false);
  }
}
