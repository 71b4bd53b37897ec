/* One weight is multiplied by all vectors of the tile, which come straight from memory, as in rows_text.c.
 * The sums of a column are neighbours here and far apart in Y: those of 16 columns are collected on the
 * stack, and squares of them are transposed in registers on their way to Y. */
#include "target/cpu/panel_text.h"

#include <stdlib.h>

#include "base/strbuf.h"

typedef struct writer {
  o3_strbuf_t *text;
  const o3_panel_tile_t *tile;
} writer_t;

enum { COLUMNS = O3_PANEL_COLUMNS };

char *o3_panel_name(const o3_panel_tile_t *tile) {
  o3_strbuf_t name = O3_STRBUF_INIT;
  o3_strbuf_printf(&name, "o3k_f32_panel_%dx%d_p%d", tile->vectors, tile->lanes, tile->panel);
  if (name.failed) o3_strbuf_deinit(&name);
  return name.text;
}

/* ---- Sums ---- */

static void list(writer_t *w, const char *prefix) {
  for (int v = 0; v < w->tile->vectors; ++v) o3_strbuf_printf(w->text, "%s%%%s%d", v ? ", " : "", prefix, v);
}

static void list_types(writer_t *w) {
  for (int v = 0; v < w->tile->vectors; ++v)
    o3_strbuf_printf(w->text, "%svector<%dxf32>", v ? ", " : "", w->tile->lanes);
}

static void multiply(writer_t *w) {
  int lanes = w->tile->lanes;
  for (int v = 0; v < w->tile->vectors; ++v)
    o3_strbuf_printf(w->text,
                     "%%o%d = arith.constant %d : index\n%%a%d = arith.addi %%at, %%o%d : index\n"
                     "%%x%d = vector.load %%X[%%a%d] : memref<?xf32>, vector<%dxf32>\n"
                     "%%n%d = vector.fma %%x%d, %%wv, %%s%d : vector<%dxf32>\n",
                     v, v * lanes, v, v, v, v, lanes, v, v, v, lanes);
}

/* Over the entries of column %j, whose limits are neighbours in %ends. */
static void entries(writer_t *w) {
  int lanes = w->tile->lanes;
  o3_strbuf_printf(w->text, "%%r:%d = scf.for %%e = %%from to %%to step %%c1 iter_args(", w->tile->vectors);
  for (int v = 0; v < w->tile->vectors; ++v) o3_strbuf_printf(w->text, "%s%%s%d = %%zero", v ? ", " : "", v);
  o3_strbuf_puts(w->text, ") -> (");
  list_types(w);
  o3_strbuf_printf(w->text,
                   ") {\n%%channel = memref.load %%table[%%e] : memref<?xi32>\n"
                   "%%ic = arith.index_castui %%channel : i32 to index\n"
                   "%%above = arith.muli %%ic, %%panel : index\n%%at = arith.addi %%x, %%above : index\n"
                   "%%ws = memref.load %%W[%%e] : memref<?xf32>\n"
                   "%%wv = vector.broadcast %%ws : f32 to vector<%dxf32>\n",
                   lanes);
  multiply(w);
  o3_strbuf_puts(w->text, "scf.yield ");
  list(w, "n");
  o3_strbuf_puts(w->text, " : ");
  list_types(w);
  o3_strbuf_puts(w->text, "\n}\n");
}

static void sums(writer_t *w) {
  int lanes = w->tile->lanes, size = w->tile->vectors * lanes;
  o3_strbuf_puts(w->text,
                 "scf.for %j = %c0 to %cols step %c1 {\n%e0 = arith.addi %ends_at, %j : index\n"
                 "%e1 = arith.addi %e0, %c1 : index\n%f0 = memref.load %ends[%e0] : memref<?xi32>\n"
                 "%f1 = memref.load %ends[%e1] : memref<?xi32>\n"
                 "%from = arith.index_cast %f0 : i32 to index\n%to = arith.index_cast %f1 : i32 to index\n");
  entries(w);
  o3_strbuf_puts(w->text, "%row = arith.muli %j, %size : index\n");
  for (int v = 0; v < w->tile->vectors; ++v)
    o3_strbuf_printf(w->text,
                     "%%p%d = arith.constant %d : index\n%%q%d = arith.addi %%row, %%p%d : index\n"
                     "vector.store %%r#%d, %%S[%%q%d] : memref<%dxf32>, vector<%dxf32>\n",
                     v, v * lanes, v, v, v, v, size * COLUMNS, lanes);
  o3_strbuf_puts(w->text, "}\n");
}

/* ---- Transposition ---- */

/* %<a><number> of one stage is the lower or upper halves of two rows of the stage before, element by element;
 * as many stages as a row's number has bits exchange rows and columns. */
static void interleave(writer_t *w, int square, int stage, int row) {
  int lanes = w->tile->lanes, half = lanes / 2, from = row % 2 * half;
  o3_strbuf_printf(w->text, "%%t%d_%d_%d = vector.shuffle %%t%d_%d_%d, %%t%d_%d_%d [", square, stage + 1, row,
                   square, stage, row / 2, square, stage, row / 2 + half);
  for (int i = 0; i < half; ++i)
    o3_strbuf_printf(w->text, "%s%d, %d", i ? ", " : "", from + i, from + i + lanes);
  o3_strbuf_printf(w->text, "] : vector<%dxf32>, vector<%dxf32>\n", lanes, lanes);
}

/* Rows |square| * lanes and on of vector %v of the sums; returns the last stage. */
static int transpose(writer_t *w, int square) {
  int lanes = w->tile->lanes, size = w->tile->vectors * lanes, stage = 0;
  for (int j = 0; j < lanes; ++j) {
    int id = square * lanes + j;
    o3_strbuf_printf(w->text,
                     "%%l%d = arith.constant %d : index\n%%m%d = arith.addi %%first, %%l%d : index\n"
                     "%%t%d_0_%d = vector.load %%S[%%m%d] : memref<%dxf32>, vector<%dxf32>\n",
                     id, id * size, id, id, square, j, id, size * COLUMNS, lanes);
  }
  for (; 1 << stage < lanes; ++stage) {
    for (int row = 0; row < lanes; ++row) interleave(w, square, stage, row);
  }
  return stage;
}

static void store_whole(writer_t *w, int squares, int stage) {
  int lanes = w->tile->lanes;
  for (int i = 0; i < lanes; ++i) {
    if (i == 0) o3_strbuf_puts(w->text, "%y0 = arith.addi %y_first, %c0 : index\n");
    if (i) o3_strbuf_printf(w->text, "%%y%d = arith.addi %%y%d, %%y_step : index\n", i, i - 1);
    for (int s = 0; s < squares; ++s)
      o3_strbuf_printf(w->text,
                       "%%k%d_%d = arith.constant %d : index\n%%z%d_%d = arith.addi %%y%d, %%k%d_%d : index\n"
                       "vector.store %%t%d_%d_%d, %%Y[%%z%d_%d] : memref<?xf32>, vector<%dxf32>\n",
                       s, i, s * lanes, s, i, i, s, i, s, stage, i, s, i, lanes);
  }
}

/* Rows by way of the stack, as many as there are, and of each the columns that exist. */
static void store_part(writer_t *w, int squares, int stage) {
  int lanes = w->tile->lanes, size = lanes * COLUMNS;
  for (int i = 0; i < lanes; ++i) {
    for (int s = 0; s < squares; ++s)
      o3_strbuf_printf(w->text,
                       "%%b%d_%d = arith.constant %d : index\n"
                       "vector.store %%t%d_%d_%d, %%T[%%b%d_%d] : memref<%dxf32>, vector<%dxf32>\n",
                       s, i, i * COLUMNS + s * lanes, s, stage, i, s, i, size, lanes);
  }
  o3_strbuf_puts(w->text,
                 "%some = arith.minui %rest, %lanes : index\nscf.for %i = %c0 to %some step %c1 {\n"
                 "%im = arith.muli %i, %c16 : index\n%iy = arith.muli %i, %y_step : index\n"
                 "%yi = arith.addi %y_first, %iy : index\n");
  for (int s = 0; s < squares; ++s)
    o3_strbuf_printf(w->text,
                     "%%d%d = arith.constant %d : index\n%%left%d = arith.subi %%cols, %%d%d : index\n"
                     "%%mask%d = vector.create_mask %%left%d : vector<%dxi1>\n"
                     "%%g%d = arith.addi %%im, %%d%d : index\n%%h%d = arith.addi %%yi, %%d%d : index\n"
                     "%%value%d = vector.load %%T[%%g%d] : memref<%dxf32>, vector<%dxf32>\n"
                     "vector.maskedstore %%Y[%%h%d], %%mask%d, %%value%d : memref<?xf32>, vector<%dxi1>, "
                     "vector<%dxf32>\n",
                     s, s * lanes, s, s, s, s, lanes, s, s, s, s, s, s, size, lanes, s, s, s, lanes, lanes);
  o3_strbuf_puts(w->text, "}\n");
}

static void store(writer_t *w) {
  int squares = COLUMNS / w->tile->lanes, stage = 0;
  o3_strbuf_puts(w->text,
                 "scf.for %v = %c0 to %vectors step %c1 {\n%first = arith.muli %v, %lanes : index\n"
                 "%rest = arith.subi %count, %first : index\n%yv = arith.muli %first, %y_step : index\n"
                 "%y_first = arith.addi %y, %yv : index\n");
  for (int s = 0; s < squares; ++s) stage = transpose(w, s);
  o3_strbuf_puts(w->text,
                 "%all_rows = arith.cmpi uge, %rest, %lanes : index\n"
                 "%all_columns = arith.cmpi uge, %cols, %c16 : index\n"
                 "%whole = arith.andi %all_rows, %all_columns : i1\nscf.if %whole {\n");
  store_whole(w, squares, stage);
  o3_strbuf_puts(w->text, "} else {\n");
  store_part(w, squares, stage);
  o3_strbuf_puts(w->text, "}\n}\n");
}

/* ---- The function ---- */

static void prologue(writer_t *w, const char *name) {
  int lanes = w->tile->lanes, vectors = w->tile->vectors;
  o3_strbuf_printf(
      w->text,
      "module {\nfunc.func private @%s(%%X: memref<?xf32>, %%x: index, %%W: memref<?xf32>, %%table: "
      "memref<?xi32>,\n"
      "%%ends: memref<?xi32>, %%ends_at: index, %%Y: memref<?xf32>, %%y: index, %%y_step: index, %%count: "
      "index,\n"
      "%%cols: index) attributes {passthrough = [\"noinline\"]} {\n%%c0 = arith.constant 0 : index\n"
      "%%c1 = arith.constant 1 : index\n%%c16 = arith.constant %d : index\n%%lanes = arith.constant %d : "
      "index\n"
      "%%vectors = arith.constant %d : index\n%%size = arith.constant %d : index\n"
      "%%panel = arith.constant %d : index\n%%zero = arith.constant dense<0.0> : vector<%dxf32>\n"
      "%%S = memref.alloca() {alignment = 64 : i64} : memref<%dxf32>\n"
      "%%T = memref.alloca() {alignment = 64 : i64} : memref<%dxf32>\n",
      name, COLUMNS, lanes, vectors, vectors * lanes, w->tile->panel, lanes, vectors * lanes * COLUMNS,
      lanes * COLUMNS);
}

char *o3_panel_text(const o3_panel_tile_t *tile) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  writer_t w = {&text, tile};
  char *name = o3_panel_name(tile);
  if (!name) return NULL;
  prologue(&w, name);
  free(name);
  sums(&w);
  store(&w);
  o3_strbuf_puts(&text, "return\n}\n}\n");
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}
