/* One weight is multiplied by all vectors of the tile, which come straight from memory: an entry costs its
 * decoding and one FMA for each vector. */
#include "target/cpu/rows_text.h"

#include <stdlib.h>

#include "base/strbuf.h"

typedef struct writer {
  o3_strbuf_t *text;
  const o3_rows_tile_t *tile;
} writer_t;

char *o3_rows_name(const o3_rows_tile_t *tile) {
  o3_strbuf_t name = O3_STRBUF_INIT;
  o3_strbuf_printf(&name, "o3k_f32_rows_%dx%d%s", tile->vectors, tile->lanes, tile->direct ? "_direct" : "");
  if (name.failed) o3_strbuf_deinit(&name);
  return name.text;
}

static void list(writer_t *w, const char *prefix, bool numbered) {
  for (int v = 0; v < w->tile->vectors; ++v) {
    o3_strbuf_printf(w->text, "%s%%%s", v ? ", " : "", prefix);
    if (numbered) o3_strbuf_printf(w->text, "%d", v);
  }
}

static void list_types(writer_t *w) {
  for (int v = 0; v < w->tile->vectors; ++v)
    o3_strbuf_printf(w->text, "%svector<%dxf32>", v ? ", " : "", w->tile->lanes);
}

/* Of the last vector only what belongs to the plane is read: behind it memory may end. */
static void load(writer_t *w, int v) {
  int lanes = w->tile->lanes;
  o3_strbuf_printf(w->text, "%%o%d = arith.constant %d : index\n%%a%d = arith.addi %%at, %%o%d : index\n", v,
                   v * lanes, v, v);
  if (v + 1 < w->tile->vectors) {
    o3_strbuf_printf(w->text, "%%x%d = vector.load %%X[%%a%d] : memref<?xf32>, vector<%dxf32>\n", v, v,
                     lanes);
    return;
  }
  o3_strbuf_printf(w->text,
                   "%%x%d = vector.maskedload %%X[%%a%d], %%last, %%zero : memref<?xf32>, vector<%dxi1>, "
                   "vector<%dxf32> into vector<%dxf32>\n",
                   v, v, lanes, lanes, lanes);
}

static void entries(writer_t *w) {
  int lanes = w->tile->lanes;
  o3_strbuf_printf(w->text, "%%r:%d = scf.for %%e = %%from to %%to step %%c1 iter_args(", w->tile->vectors);
  for (int v = 0; v < w->tile->vectors; ++v) o3_strbuf_printf(w->text, "%s%%s%d = %%start", v ? ", " : "", v);
  o3_strbuf_puts(w->text, ") -> (");
  list_types(w);
  o3_strbuf_puts(w->text,
                 ") {\n%column = memref.load %table[%e] : memref<?xi32>\n"
                 "%channel = arith.andi %column, %low16 : i32\n%above = arith.shrui %column, %by16 : i32\n"
                 "%row = arith.andi %above, %low8 : i32\n%place = arith.shrui %column, %by24 : i32\n"
                 "%ic = arith.index_castui %channel : i32 to index\n"
                 "%ir = arith.index_castui %row : i32 to index\n"
                 "%ip = arith.index_castui %place : i32 to index\n"
                 "%mc = arith.muli %ic, %x_channel : index\n%mr = arith.muli %ir, %x_row : index\n"
                 "%t1 = arith.addi %mc, %mr : index\n%t2 = arith.addi %t1, %ip : index\n"
                 "%at = arith.addi %first, %t2 : index\n%ws = memref.load %W[%e] : memref<?xf32>\n");
  o3_strbuf_printf(w->text, "%%wv = vector.broadcast %%ws : f32 to vector<%dxf32>\n", lanes);
  for (int v = 0; v < w->tile->vectors; ++v) {
    load(w, v);
    o3_strbuf_printf(w->text, "%%n%d = vector.fma %%x%d, %%wv, %%s%d : vector<%dxf32>\n", v, v, v, lanes);
  }
  o3_strbuf_puts(w->text, "scf.yield ");
  list(w, "n", true);
  o3_strbuf_puts(w->text, " : ");
  list_types(w);
  o3_strbuf_puts(w->text, "\n}\n");
}

static void store_direct(writer_t *w) {
  int lanes = w->tile->lanes;
  o3_strbuf_puts(w->text, "%to_y = arith.addi %y, %position : index\n");
  for (int v = 0; v < w->tile->vectors; ++v) {
    o3_strbuf_printf(w->text, "%%p%d = arith.constant %d : index\n%%b%d = arith.addi %%to_y, %%p%d : index\n",
                     v, v * lanes, v, v);
    if (v + 1 < w->tile->vectors) {
      o3_strbuf_printf(w->text, "vector.store %%r#%d, %%Y[%%b%d] : memref<?xf32>, vector<%dxf32>\n", v, v,
                       lanes);
    } else {
      o3_strbuf_printf(w->text,
                       "vector.maskedstore %%Y[%%b%d], %%last, %%r#%d : memref<?xf32>, vector<%dxi1>, "
                       "vector<%dxf32>\n",
                       v, v, lanes, lanes);
    }
  }
}

/* By way of the stack, from where the pieces of rows go to their places. */
static void store_rows(writer_t *w) {
  int lanes = w->tile->lanes, size = w->tile->vectors * lanes;
  for (int v = 0; v < w->tile->vectors; ++v)
    o3_strbuf_printf(w->text,
                     "%%p%d = arith.constant %d : index\nvector.store %%r#%d, %%S[%%p%d] : memref<%dxf32>, "
                     "vector<%dxf32>\n",
                     v, v * lanes, v, v, size + lanes, lanes);
  o3_strbuf_printf(
      w->text,
      "%%size = arith.constant %d : index\n%%some = arith.minui %%count, %%size : index\n"
      "%%end = arith.addi %%position, %%some : index\n%%final = arith.subi %%end, %%c1 : index\n"
      "%%row0 = arith.divui %%position, %%x_row : index\n%%row1 = arith.divui %%final, %%x_row : index\n"
      "%%row2 = arith.addi %%row1, %%c1 : index\nscf.for %%row = %%row0 to %%row2 step %%c1 {\n"
      "%%begin = arith.muli %%row, %%x_row : index\n%%stop = arith.addi %%begin, %%width : index\n"
      "%%low = arith.maxui %%position, %%begin : index\n%%high = arith.minui %%end, %%stop : index\n"
      "%%ym = arith.muli %%row, %%width : index\n%%yr = arith.addi %%y, %%ym : index\n"
      "scf.for %%c = %%low to %%high step %%lanes {\n%%left = arith.subi %%high, %%c : index\n"
      "%%mask = vector.create_mask %%left : vector<%dxi1>\n%%ps = arith.subi %%c, %%position : index\n"
      "%%value = vector.load %%S[%%ps] : memref<%dxf32>, vector<%dxf32>\n"
      "%%py = arith.subi %%c, %%begin : index\n%%ya = arith.addi %%yr, %%py : index\n"
      "vector.maskedstore %%Y[%%ya], %%mask, %%value : memref<?xf32>, vector<%dxi1>, vector<%dxf32>\n}\n}\n",
      size, lanes, size + lanes, lanes, lanes, lanes);
}

static void prologue(writer_t *w, const char *name) {
  int lanes = w->tile->lanes, vectors = w->tile->vectors;
  o3_strbuf_printf(
      w->text,
      "module {\nfunc.func private @%s(%%X: memref<?xf32>, %%x: index, %%x_channel: index, %%x_row: index,\n"
      "%%W: memref<?xf32>, %%table: memref<?xi32>, %%from: index, %%to: index, %%bias: f32,\n"
      "%%Y: memref<?xf32>, %%y: index, %%width: index, %%position: index, %%count: index)\n"
      "attributes {passthrough = [\"noinline\"]} {\n%%c1 = arith.constant 1 : index\n"
      "%%low16 = arith.constant 65535 : i32\n%%low8 = arith.constant 255 : i32\n"
      "%%by16 = arith.constant 16 : i32\n%%by24 = arith.constant 24 : i32\n"
      "%%lanes = arith.constant %d : index\n%%zero = arith.constant dense<0.0> : vector<%dxf32>\n"
      "%%whole = arith.constant %d : index\n%%rest = arith.subi %%count, %%whole : index\n"
      "%%last = vector.create_mask %%rest : vector<%dxi1>\n"
      "%%first = arith.addi %%x, %%position : index\n"
      "%%start = vector.broadcast %%bias : f32 to vector<%dxf32>\n",
      name, lanes, lanes, (vectors - 1) * lanes, lanes, lanes);
  if (!w->tile->direct)
    o3_strbuf_printf(w->text, "%%S = memref.alloca() : memref<%dxf32>\n", (vectors + 1) * lanes);
}

char *o3_rows_text(const o3_rows_tile_t *tile) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  writer_t w = {&text, tile};
  char *name = o3_rows_name(tile);
  if (!name) return NULL;
  prologue(&w, name);
  free(name);
  entries(&w);
  if (tile->direct) {
    store_direct(&w);
  } else {
    store_rows(&w);
  }
  o3_strbuf_puts(&text, "return\n}\n}\n");
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}
