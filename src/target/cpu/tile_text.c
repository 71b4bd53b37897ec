/* The accumulators stay in registers while three loops and k run; steps between pixels are constants, so that
 * all pixels are addressed from one pointer. Lanewise tiles compute a vector of their lanes at a time: what
 * pixels share are inputs, which no two vectors do. Functions are not inlined: a layer only has loops that
 * call them, and layers that differ in sizes alone share them, which keeps compile time flat. */
#include "target/cpu/tile_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

typedef struct writer {
  o3_strbuf_t *text;
  const o3_tile_t *tile;
  int vectors; /* of a pixel */
  int next;    /* number of the next name */
  int *summed; /* for each sum: the turn that it has come to */
} writer_t;

static int per_block(const o3_tile_t *tile) { return tile->split ? 1 : tile->used / tile->lanes; }

int o3_tile_stored(const o3_tile_t *tile) { return tile->split ? tile->used : tile->lanes; }

int o3_tile_last_lanes(int lanes, int outputs) {
  int unit = lanes < O3_BLOCK_LANES / 2 ? lanes : O3_BLOCK_LANES / 2, last = outputs % O3_BLOCK_LANES;
  return last ? (last + unit - 1) / unit * unit : O3_BLOCK_LANES;
}

char *o3_tile_name(const o3_tile_t *tile) {
  o3_strbuf_t name = O3_STRBUF_INIT;
  o3_strbuf_printf(&name, "o3k_f32_%s%s_%dx%d",
                   tile->parts      ? tile->tail ? "nm_tail" : "nm"
                   : tile->depth    ? "sparse"
                   : tile->lanewise ? "lanes"
                                    : "tile",
                   tile->masked ? "_masked" : "", tile->pixels, tile->blocks * tile->width);
  if (tile->ahead) o3_strbuf_puts(&name, "_ahead");
  if (tile->shared) o3_strbuf_puts(&name, "_shared");
  if (tile->used < tile->width)
    o3_strbuf_printf(&name, "_h%d%s", tile->split ? tile->split : tile->used, tile->zeros ? "z" : "");
  if (tile->depth) o3_strbuf_printf(&name, "_d%d", tile->depth);
  if (tile->parts) o3_strbuf_printf(&name, "_p%d", tile->parts);
  o3_strbuf_printf(&name, "_s%lld_u%d", (long long)tile->x_step, tile->unroll);
  if (tile->taps)
    o3_strbuf_printf(&name, "_t%lld_%lldto%lld%s", (long long)tile->tap_step, (long long)tile->first,
                     (long long)tile->end, tile->late ? "late" : "");
  if (tile->after) o3_strbuf_printf(&name, "_a%llx", (unsigned long long)tile->after);
  if (name.failed) o3_strbuf_deinit(&name);
  return name.text;
}

/* ---- Pieces ---- */

static int count(const writer_t *w) { return w->tile->pixels * w->vectors; }

static void list_types(writer_t *w) {
  for (int i = 0; i < count(w); ++i)
    o3_strbuf_printf(w->text, "%svector<%dxf32>", i ? ", " : "", w->tile->lanes);
}

static void list_values(writer_t *w, const char *prefix) {
  for (int i = 0; i < count(w); ++i) o3_strbuf_printf(w->text, "%s%%%s%d", i ? ", " : "", prefix, i);
}

static void yield(writer_t *w, const char *prefix) {
  o3_strbuf_puts(w->text, "scf.yield ");
  list_values(w, prefix);
  o3_strbuf_puts(w->text, " : ");
  list_types(w);
  o3_strbuf_puts(w->text, "\n");
}

/* %<result> = %<base> + |offset|, under a number of its own: returns it. */
static int add_constant(writer_t *w, const char *base, int64_t offset) {
  int id = w->next++;
  o3_strbuf_printf(w->text, "%%k%d = arith.constant %lld : index\n%%t%d = arith.addi %%%s, %%k%d : index\n",
                   id, (long long)offset, id, base, id);
  return id;
}

/* The lanes that exist of vector |v|. */
static void mask(writer_t *w, const char *name, int v) {
  int id = w->next++;
  o3_strbuf_printf(w->text,
                   "%%k%d = arith.constant %d : index\n%%t%d = arith.subi %%cols, %%k%d : index\n"
                   "%%%s = vector.create_mask %%t%d : vector<%dxi1>\n",
                   id, v * w->tile->lanes, id, id, name, id, w->tile->lanes);
}

static void load(writer_t *w, const char *result, const char *memref, int at, int v) {
  int lanes = w->tile->lanes;
  if (!w->tile->masked) {
    o3_strbuf_printf(w->text, "%%%s = vector.load %%%s[%%t%d] : memref<?xf32>, vector<%dxf32>\n", result,
                     memref, at, lanes);
    return;
  }
  char name[32];
  snprintf(name, sizeof(name), "m%d", w->next++);
  mask(w, name, v);
  o3_strbuf_printf(w->text,
                   "%%%s = vector.maskedload %%%s[%%t%d], %%%s, %%zero : memref<?xf32>, vector<%dxi1>, "
                   "vector<%dxf32> into vector<%dxf32>\n",
                   result, memref, at, name, lanes, lanes, lanes);
}

/* ---- What the sums start at ---- */

/* %y<p>_<j>: where pixel p and block j lie in Y. */
static void y_addresses(writer_t *w) {
  o3_strbuf_puts(w->text, "%y0_0 = arith.addi %y, %c0 : index\n");
  for (int p = 0; p < w->tile->pixels; ++p) {
    if (p) o3_strbuf_printf(w->text, "%%y%d_0 = arith.addi %%y%d_0, %%y_step : index\n", p, p - 1);
    for (int j = 1; j < w->tile->blocks; ++j)
      o3_strbuf_printf(w->text, "%%y%d_%d = arith.addi %%y%d_%d, %%y_next : index\n", p, j, p, j - 1);
  }
}

static int y_address(writer_t *w, int p, int v) {
  char base[32];
  snprintf(base, sizeof(base), "y%d_%d", p, v / per_block(w->tile));
  return add_constant(w, base, v % per_block(w->tile) * w->tile->lanes);
}

/* %<name>: the vector of sums whose first ones are the outputs at %t<at> of |memref|, and the others zeros.
 */
static void load_split(writer_t *w, const char *name, const char *memref, int at) {
  int outputs = w->tile->split, lanes = w->tile->lanes, id = w->next++;
  o3_strbuf_printf(w->text,
                   "%%l%d = vector.load %%%s[%%t%d] : memref<?xf32>, vector<%dxf32>\n"
                   "%%z%d = arith.constant dense<0.0> : vector<%dxf32>\n%%%s = vector.shuffle %%l%d, %%z%d [",
                   id, memref, at, outputs, id, outputs, name, id, id);
  for (int l = 0; l < lanes; ++l)
    o3_strbuf_printf(w->text, "%s%d", l ? ", " : "", l % w->tile->unroll ? outputs : l / w->tile->unroll);
  o3_strbuf_printf(w->text, "] : vector<%dxf32>, vector<%dxf32>\n", outputs, outputs);
}

static void load_old(writer_t *w) {
  for (int i = 0; i < count(w); ++i) {
    char name[32];
    int at = y_address(w, i / w->vectors, i % w->vectors);
    snprintf(name, sizeof(name), "old%d", i);
    if (w->tile->split)
      load_split(w, name, "Y", at);
    else
      load(w, name, "Y", at, i % w->vectors);
  }
}

static void load_bias(writer_t *w) {
  for (int v = 0; v < w->vectors; ++v) {
    char name[32];
    int at = add_constant(w, "b", v * w->tile->lanes);
    snprintf(name, sizeof(name), "bias%d", v);
    if (w->tile->split)
      load_split(w, name, "B", at);
    else
      load(w, name, "B", at, v);
  }
}

/* The same |v| vectors for each pixel. */
static void yield_vectors(writer_t *w, const char *prefix, bool numbered) {
  o3_strbuf_puts(w->text, "scf.yield ");
  for (int i = 0; i < count(w); ++i) {
    o3_strbuf_printf(w->text, "%s%%%s", i ? ", " : "", prefix);
    if (numbered) o3_strbuf_printf(w->text, "%d", i % w->vectors);
  }
  o3_strbuf_puts(w->text, " : ");
  list_types(w);
  o3_strbuf_puts(w->text, "\n");
}

static void start(writer_t *w) {
  o3_strbuf_printf(w->text,
                   "%%c1 = arith.constant %d : index\n%%c2 = arith.constant %d : index\n"
                   "%%is_old = arith.cmpi eq, %%start, %%c2 : index\n"
                   "%%is_bias = arith.cmpi eq, %%start, %%c1 : index\n%%init:%d = scf.if %%is_old -> (",
                   O3_TILE_BIAS, O3_TILE_OLD, count(w));
  list_types(w);
  o3_strbuf_puts(w->text, ") {\n");
  load_old(w);
  yield(w, "old");
  o3_strbuf_printf(w->text, "} else {\n%%new:%d = scf.if %%is_bias -> (", count(w));
  list_types(w);
  o3_strbuf_puts(w->text, ") {\n");
  load_bias(w);
  yield_vectors(w, "bias", true);
  o3_strbuf_puts(w->text, "} else {\n");
  yield_vectors(w, "zero", false);
  o3_strbuf_puts(w->text, "}\n");
  yield(w, "new#");
  o3_strbuf_puts(w->text, "}\n");
}

/* ---- The loops ---- */

/* Opens the loop |name| from 0 to %|limit|, which carries the sums %|from|* as %<name>_*. */
static void open_loop(writer_t *w, const char *name, const char *limit, const char *step, const char *from) {
  const char *start = strcmp(name, "e") ? "c0" : "n2"; /* entries begin anywhere */
  o3_strbuf_printf(w->text, "%%r_%s:%d = scf.for %%%s = %%%s to %%%s step %%%s iter_args(", name, count(w),
                   name, start, limit, step);
  for (int i = 0; i < count(w); ++i)
    o3_strbuf_printf(w->text, "%s%%%s_%d = %%%s%d", i ? ", " : "", name, i, from, i);
  o3_strbuf_puts(w->text, ") -> (");
  list_types(w);
  o3_strbuf_puts(w->text, ") {\n");
}

/* %w<j>: block j's weights of this turn. */
static void weight_pointers(writer_t *w) {
  o3_strbuf_puts(w->text, "%wk = arith.muli %k, %width : index\n%wp0 = arith.addi %w_turn, %wk : index\n");
  for (int j = 1; j < w->tile->blocks; ++j)
    o3_strbuf_printf(w->text, "%%wp%d = arith.addi %%wp%d, %%w_next : index\n", j, j - 1);
}

/* Weights are read once a run and in order, but the processor's own prefetching ends with each page: of what
 * lies %ahead one cache line, which is a block's lanes, is asked for with each turn of k. That is a page, or
 * what the next blocks have in the same place where all of it is near: the first page of each of several
 * short blocks would be asked for by none. Where tiles share weights the first of them would wait for memory
 * and the others for none: each asks for its part of what comes after all of them, a line after the other,
 * which the processor's prefetching follows into the next cache. With every unroll-th line for each of them
 * it does not, and all come through the few buffers that loads of the tile wait for, too. */
static void weights_ahead(writer_t *w) {
  enum { PAGE = 4096 / sizeof(float), NEAR = 16 * PAGE };
  o3_strbuf_printf(w->text, "%%page = arith.constant %d : index\n", PAGE);
  if (w->tile->blocks == 1 || w->tile->shared) {
    o3_strbuf_printf(w->text, "%%ahead = arith.addi %%%s, %%c0 : index\n",
                     w->tile->shared ? "w_ahead" : "page");
    return;
  }
  o3_strbuf_printf(
      w->text,
      "%%group = arith.constant %d : index\n%%next_group = arith.muli %%w_next, %%group : index\n"
      "%%near = arith.constant %d : index\n"
      "%%is_near = arith.cmpi ule, %%next_group, %%near : index\n"
      "%%ahead = arith.select %%is_near, %%next_group, %%page : index\n",
      w->tile->blocks, NEAR);
}

/* Of the part that a shared tile asks for the turn's line, of block |j|. */
static void prefetch_part(writer_t *w, int j) {
  if (!j)
    o3_strbuf_puts(
        w->text,
        "%w_done = arith.subi %wp0, %w : index\n%turn_line = arith.divui %w_done, %unroll : index\n"
        "%part = arith.addi %w, %ahead : index\n%line0 = arith.addi %part, %turn_line : index\n");
  if (j) o3_strbuf_printf(w->text, "%%line%d = arith.addi %%line%d, %%w_next : index\n", j, j - 1);
  o3_strbuf_printf(w->text, "memref.prefetch %%W[%%line%d], read, locality<2>, data : memref<?xf32>\n", j);
}

static void prefetch_weights(writer_t *w, const char *base, int u) {
  int at = add_constant(w, base, (int64_t)u * w->tile->width);
  o3_strbuf_printf(w->text,
                   "%%p%d = arith.addi %%t%d, %%ahead : index\n"
                   "memref.prefetch %%W[%%p%d], read, locality<2>, data : memref<?xf32>\n",
                   at, at, at);
}

static void load_weights(writer_t *w, int u) {
  for (int v = 0; v < w->vectors; ++v) {
    char base[32];
    snprintf(base, sizeof(base), "wp%d", v / per_block(w->tile));
    bool first = v % per_block(w->tile) == 0;
    if (first && w->tile->shared && !u) prefetch_part(w, v / per_block(w->tile));
    if (first && !w->tile->shared && !w->tile->lanewise && !w->tile->depth) prefetch_weights(w, base, u);
    int at = add_constant(w, base, (int64_t)u * w->tile->width + v % per_block(w->tile) * w->tile->lanes);
    o3_strbuf_printf(w->text, "%%wv%d_%d = vector.load %%W[%%t%d] : memref<?xf32>, vector<%dxf32>\n", u, v,
                     at, w->tile->lanes);
  }
}

/* Where turn |u| of pixel |p| reads in X. */
static int64_t x_offset(const writer_t *w, int u, int p) {
  return p * w->tile->x_step + u * (w->tile->taps ? w->tile->tap_step : 1);
}

static bool is_outside(const writer_t *w, int u, int p) {
  int64_t at = x_offset(w, u, p);
  return w->tile->taps && (at < w->tile->first || (at >= w->tile->end && !w->tile->late));
}

/* Whether what turn |u| of pixel |p| reads exists is known at run time only: %there<u>_<p>. */
static bool is_late(writer_t *w, int u, int p) {
  if (!w->tile->late || x_offset(w, u, p) < w->tile->end) return false;
  o3_strbuf_printf(w->text,
                   "%%late%d_%d = arith.constant %lld : index\n"
                   "%%there%d_%d = arith.cmpi slt, %%late%d_%d, %%s0 : index\n",
                   u, p, (long long)x_offset(w, u, p), u, p, u, p);
  return true;
}

/* %xv<u>_<p> for lanes that may be outside of the row: zeros then. */
static void load_late_lanes(writer_t *w, int u, int p) {
  int lanes = w->tile->lanes;
  o3_strbuf_printf(w->text, "%%here%d_%d = vector.broadcast %%there%d_%d : i1 to vector<%dxi1>\n", u, p, u, p,
                   lanes);
  int at = add_constant(w, "xk", x_offset(w, u, p));
  o3_strbuf_printf(w->text,
                   "%%xv%d_%d = vector.maskedload %%X[%%t%d], %%here%d_%d, %%zero : memref<?xf32>, "
                   "vector<%dxi1>, vector<%dxf32> into vector<%dxf32>\n",
                   u, p, at, u, p, lanes, lanes, lanes);
}

/* %xs<u>_<p>, a number, likewise. */
static void load_number(writer_t *w, int u, int p) {
  bool late = is_late(w, u, p);
  if (late) o3_strbuf_printf(w->text, "%%xs%d_%d = scf.if %%there%d_%d -> (f32) {\n", u, p, u, p);
  int at = add_constant(w, "xk", x_offset(w, u, p));
  o3_strbuf_printf(w->text, "%%%s%d_%d = memref.load %%X[%%t%d] : memref<?xf32>\n", late ? "xl" : "xs", u, p,
                   at);
  if (late)
    o3_strbuf_printf(w->text,
                     "scf.yield %%xl%d_%d : f32\n} else {\n%%xz%d_%d = arith.constant 0.0 : f32\n"
                     "scf.yield %%xz%d_%d : f32\n}\n",
                     u, p, u, p, u, p);
}

/* %xv<u>_<p>: what is multiplied by the weights; lanes of a block, whose tiles have one vector of it at a
 * time, or a number for all. */
static void load_pixel(writer_t *w, int u, int p) {
  int lanes = w->tile->lanes;
  if (w->tile->lanewise && is_late(w, u, p)) {
    load_late_lanes(w, u, p);
    return;
  }
  if (w->tile->lanewise) {
    int at = add_constant(w, "xk", x_offset(w, u, p));
    o3_strbuf_printf(w->text, "%%xv%d_%d = vector.load %%X[%%t%d] : memref<?xf32>, vector<%dxf32>\n", u, p,
                     at, lanes);
    return;
  }
  load_number(w, u, p);
  o3_strbuf_printf(w->text, "%%xv%d_%d = vector.broadcast %%xs%d_%d : f32 to vector<%dxf32>\n", u, p, u, p,
                   lanes);
}

/* Sum |i| after as many turns as it has taken part in. */
static void name_sum(writer_t *w, int i) {
  if (w->summed[i]) o3_strbuf_printf(w->text, "%%s%d_%d", w->summed[i], i);
  if (!w->summed[i]) o3_strbuf_printf(w->text, "%%k_%d", i);
}

static void yield_sums(writer_t *w) {
  o3_strbuf_puts(w->text, "scf.yield ");
  for (int i = 0; i < count(w); ++i) {
    if (i) o3_strbuf_puts(w->text, ", ");
    name_sum(w, i);
  }
  o3_strbuf_puts(w->text, " : ");
  list_types(w);
  o3_strbuf_puts(w->text, "\n");
}

static void multiply(writer_t *w, int u, int p) {
  if (is_outside(w, u, p)) return;
  load_pixel(w, u, p);
  for (int v = 0; v < w->vectors; ++v) {
    int i = p * w->vectors + v;
    o3_strbuf_printf(w->text, "%%s%d_%d = vector.fma %%xv%d_%d", u + 1, i, u, p);
    o3_strbuf_printf(w->text, ", %%wv%d_%d, ", u, v);
    name_sum(w, i);
    o3_strbuf_printf(w->text, " : vector<%dxf32>\n", w->tile->lanes);
    w->summed[i] = u + 1;
  }
}

/* All turns in the order of what they read, which pixels whose windows overlap share: LLVM loads it once. In
 * any other order it would keep all of it for later turns, for which there are no registers. */
static void multiply_shared(writer_t *w) {
  int64_t last = x_offset(w, w->tile->unroll - 1, w->tile->pixels - 1);
  for (int u = 0; u < w->tile->unroll; ++u) load_weights(w, u);
  for (int64_t at = 0; at <= last; ++at) {
    for (int p = 0; p < w->tile->pixels; ++p) {
      for (int u = 0; u < w->tile->unroll; ++u) {
        if (x_offset(w, u, p) == at) multiply(w, u, p);
      }
    }
  }
}

/* ---- Split tiles ---- */

/* vector.shuffle of %<a> and %<b>, |lanes| each, up to the list of places. */
static void open_shuffle(writer_t *w, const char *result, const char *a, const char *b) {
  o3_strbuf_printf(w->text, "%%%s = vector.shuffle %%%s, %%%s [", result, a, b);
}

static void close_shuffle(writer_t *w, int lanes) {
  o3_strbuf_printf(w->text, "] : vector<%dxf32>, vector<%dxf32>\n", lanes, lanes);
}

static void put_place(writer_t *w, int i, int place) {
  o3_strbuf_printf(w->text, "%s%d", i ? ", " : "", place);
}

/* %wv: of |unroll| rows of the weights the outputs, output by output. */
static void load_split_weights(writer_t *w) {
  int outputs = w->tile->split, steps = w->tile->unroll, lanes = w->tile->lanes;
  char name[3][32];
  for (int k = 0; k < steps; ++k) {
    int at = add_constant(w, "wp0", (int64_t)k * w->tile->width);
    o3_strbuf_printf(w->text, "%%r%d_%d = vector.load %%W[%%t%d] : memref<?xf32>, vector<%dxf32>\n", steps, k,
                     at, outputs);
  }
  for (int rows = steps / 2; rows; rows /= 2) {
    for (int k = 0; k < rows; ++k) {
      snprintf(name[0], sizeof(name[0]), "r%d_%d", rows, k);
      for (int i = 0; i < 2; ++i) snprintf(name[1 + i], sizeof(name[1 + i]), "r%d_%d", 2 * rows, 2 * k + i);
      open_shuffle(w, name[0], name[1], name[2]);
      for (int l = 0; l < lanes / rows; ++l) put_place(w, l, l);
      close_shuffle(w, lanes / rows / 2);
    }
  }
  open_shuffle(w, "wv", "r1_0", "r1_0");
  for (int l = 0; l < lanes; ++l) put_place(w, l, l % steps * outputs + l / steps);
  close_shuffle(w, lanes);
}

static void multiply_split(writer_t *w) {
  int steps = w->tile->unroll, lanes = w->tile->lanes;
  char name[2][32];
  load_split_weights(w);
  for (int p = 0; p < w->tile->pixels; ++p) {
    int at = add_constant(w, "xk", x_offset(w, 0, p));
    o3_strbuf_printf(w->text, "%%xs%d = vector.load %%X[%%t%d] : memref<?xf32>, vector<%dxf32>\n", p, at,
                     steps);
    snprintf(name[0], sizeof(name[0]), "xv%d", p);
    snprintf(name[1], sizeof(name[1]), "xs%d", p);
    open_shuffle(w, name[0], name[1], name[1]);
    for (int l = 0; l < lanes; ++l) put_place(w, l, l % steps);
    close_shuffle(w, steps);
    o3_strbuf_printf(w->text, "%%s1_%d = vector.fma %%xv%d, %%wv, %%k_%d : vector<%dxf32>\n", p, p, p, lanes);
    w->summed[p] = 1;
  }
}

/* %<result> = the sums of %<a> and %<b>, which are |parts| each for pixels that are not the same, in half as
 * many parts: of each output first the pixels of a. */
static void join_sums(writer_t *w, const char *result, const char *a, const char *b, int parts) {
  int steps = w->tile->unroll, lanes = w->tile->lanes;
  for (int half = 0; half < 2; ++half) {
    char name[64];
    snprintf(name, sizeof(name), "%s_%c", result, half ? 'h' : 'l');
    open_shuffle(w, name, a, b);
    for (int l = 0; l < lanes; ++l) {
      int sum = l % steps * 2 / parts, pixels = steps / parts, part = l % (parts / 2);
      int place = l / steps * steps + sum % pixels * parts + part + half * (parts / 2);
      put_place(w, l, place + (sum < pixels ? 0 : lanes));
    }
    close_shuffle(w, lanes);
  }
  o3_strbuf_printf(w->text, "%%%s = arith.addf %%%s_l, %%%s_h : vector<%dxf32>\n", result, result, result,
                   lanes);
}

/* %q_<p>: the sums of the pixels from |p| on, a whole one for each in the place of the parts; the last pixel
 * again for those that there are none of. */
static void join_pixels(writer_t *w, const char *results, int p) {
  int steps = w->tile->unroll, level = 0;
  char name[3][48];
  for (int parts = steps; parts > 1; parts /= 2, ++level) {
    for (int i = 0; i < parts / 2; ++i) {
      if (parts == 2)
        snprintf(name[0], sizeof(name[0]), "q_%d", p);
      else
        snprintf(name[0], sizeof(name[0]), "q%d_%d_%d", level, p, i);
      for (int j = 0; j < 2; ++j) {
        int pixel = p + 2 * i + j, last = w->tile->pixels - 1;
        if (level)
          snprintf(name[1 + j], sizeof(name[1 + j]), "q%d_%d_%d", level - 1, p, 2 * i + j);
        else
          snprintf(name[1 + j], sizeof(name[1 + j]), "%s#%d", results, pixel < last ? pixel : last);
      }
      join_sums(w, name[0], name[1], name[2], parts);
    }
  }
}

static void store_split(writer_t *w, const char *results) {
  int steps = w->tile->unroll, lanes = w->tile->lanes;
  char name[2][32];
  for (int p = 0; p < w->tile->pixels; ++p) {
    int first = p - p % steps, at = y_address(w, p, 0);
    if (p == first) join_pixels(w, results, first);
    snprintf(name[0], sizeof(name[0]), "o%d", p);
    snprintf(name[1], sizeof(name[1]), "q_%d", first);
    open_shuffle(w, name[0], name[1], "zero");
    for (int l = 0; l < w->tile->used; ++l)
      put_place(w, l, l < w->tile->split ? l * steps + p - first : lanes);
    close_shuffle(w, lanes);
    o3_strbuf_printf(w->text, "vector.store %%o%d, %%Y[%%t%d] : memref<?xf32>, vector<%dxf32>\n", p, at,
                     w->tile->used);
  }
}

static void multiply_turns(writer_t *w) {
  if (w->tile->split) {
    multiply_split(w);
    return;
  }
  if (w->tile->x_step < x_offset(w, w->tile->unroll, 0)) {
    multiply_shared(w);
    return;
  }
  for (int u = 0; u < w->tile->unroll; ++u) {
    load_weights(w, u);
    for (int p = 0; p < w->tile->pixels; ++p) multiply(w, u, p);
  }
}

/* Of the next tile's pixels: each turn of k its share of them. */
static void prefetch_pixels(writer_t *w) {
  const o3_tile_t *tile = w->tile;
  int turns = O3_BLOCK_LANES / tile->unroll, pixels = (tile->pixels + turns - 1) / turns;
  o3_strbuf_printf(w->text,
                   "%%share = arith.constant %lld : index\n%%passed = arith.muli %%k, %%share : index\n"
                   "%%xa = arith.addi %%x0, %%passed : index\n",
                   (long long)(pixels * tile->x_step / tile->unroll));
  for (int p = 0; p < pixels; ++p) {
    int id = add_constant(w, "xa", (tile->pixels + p) * tile->x_step);
    o3_strbuf_printf(w->text, "memref.prefetch %%X[%%t%d], read, locality<2>, data : memref<?xf32>\n", id);
  }
}

static void loops(writer_t *w) {
  open_loop(w, "i2", "n2", "c1", "init#");
  o3_strbuf_puts(w->text,
                 "%x2m = arith.muli %i2, %s2 : index\n%x2 = arith.addi %x, %x2m : index\n"
                 "%i2n = arith.addi %i2, %c1 : index\n%is_last = arith.cmpi eq, %i2n, %n2 : index\n"
                 "%c_now = arith.select %is_last, %c_last, %c : index\n");
  open_loop(w, "i1", "n1", "c1", "i2_");
  o3_strbuf_puts(w->text,
                 "%x1m = arith.muli %i1, %s1 : index\n%x1 = arith.addi %x2, %x1m : index\n"
                 "%q2 = arith.muli %i2, %n1 : index\n%q1 = arith.addi %q2, %i1 : index\n");
  open_loop(w, "i0", "n0", "c1", "i1_");
  o3_strbuf_puts(w->text,
                 "%x0m = arith.muli %i0, %s0 : index\n%x0 = arith.addi %x1, %x0m : index\n"
                 "%q0m = arith.muli %q1, %n0 : index\n%q0 = arith.addi %q0m, %i0 : index\n"
                 "%qk = arith.muli %q0, %c : index\n%qw = arith.muli %qk, %width : index\n"
                 "%w_turn = arith.addi %w, %qw : index\n");
  open_loop(w, "k", "c_now", "unroll", "i0_");
  o3_strbuf_puts(w->text, "%xk = arith.addi %x0, %k : index\n");
  weight_pointers(w);
  if (w->tile->ahead) prefetch_pixels(w);
  multiply_turns(w);
  yield_sums(w);
  o3_strbuf_puts(w->text, "}\n");
  static const char *const RESULTS[] = {"r_k#", "r_i0#", "r_i1#"};
  for (int i = 0; i < 3; ++i) {
    yield(w, RESULTS[i]);
    o3_strbuf_puts(w->text, "}\n");
  }
}

/* Of the row as many below as the window has rows: no part of the image was read before where the next row of
 * tiles begins to, and the processor's own prefetching follows only what it sees. */
static void prefetch_rows(writer_t *w) {
  enum { LINE = 64 / sizeof(float) };
  int64_t end = x_offset(w, w->tile->unroll - 1, w->tile->pixels - 1);
  o3_strbuf_puts(w->text, "%below = arith.muli %n0, %s1 : index\n%xb = arith.addi %xk, %below : index\n");
  for (int64_t at = 0; at < end + LINE; at += LINE) {
    int id = add_constant(w, "xb", at);
    o3_strbuf_printf(w->text, "memref.prefetch %%X[%%t%d], read, locality<3>, data : memref<?xf32>\n", id);
  }
}

/* Over the channels, unless each lane has its own, and the window's rows of which |n1| are inside of n0; a
 * row of the weights are its taps. */
static void row_loops(writer_t *w) {
  open_loop(w, "i2", "n2", "c1", "init#");
  open_loop(w, "k", "n1", "c1", "i2_");
  o3_strbuf_puts(w->text,
                 "%x2m = arith.muli %i2, %s2 : index\n%x2 = arith.addi %x, %x2m : index\n"
                 "%x1m = arith.muli %k, %s1 : index\n%xk = arith.addi %x2, %x1m : index\n"
                 "%q2 = arith.muli %i2, %n0 : index\n%q1 = arith.addi %q2, %k : index\n"
                 "%q0 = arith.muli %q1, %c : index\n%qk = arith.subi %q0, %k : index\n"
                 "%qw = arith.muli %qk, %width : index\n%w_turn = arith.addi %w, %qw : index\n");
  weight_pointers(w);
  if (!w->tile->lanewise) prefetch_rows(w);
  multiply_turns(w);
  yield_sums(w);
  o3_strbuf_puts(w->text, "}\n");
  yield(w, "r_k#");
  o3_strbuf_puts(w->text, "}\n");
}

/* ---- N:M ----
 *
 * A permutation takes, for each lane, the input that its number is of from the 16 of the entry: each entry's
 * inputs are loaded once, and each number stored costs a permutation and a multiply-add for each pixel. AVX2
 * permutes eight numbers; where a number may be of any of the 16, both halves are permuted, and the place's
 * highest bit selects.
 */

enum { SPAN = O3_BLOCK_LANES, PLACE_BITS = 4 };

/* The part of the 16 inputs that number |u| of the depth is of, -1 for all. */
static int half_of(const o3_tile_t *tile, int u) {
  return tile->lanes == SPAN || tile->parts == 1 ? -1 : u / (tile->depth / tile->parts);
}

/* %shift<v>: by which the words of a number have the places of vector v in their lowest bits. */
static void place_shifts(writer_t *w) {
  int lanes = w->tile->lanes;
  for (int v = 0; v < w->vectors; ++v) {
    o3_strbuf_printf(w->text, "%%shift%d = arith.constant dense<[", v);
    for (int l = 0; l < lanes; ++l)
      o3_strbuf_printf(w->text, "%s%d", l ? ", " : "", (v * lanes + l) / 2 * PLACE_BITS);
    o3_strbuf_printf(w->text, "]> : vector<%dxi32>\n", lanes);
  }
  o3_strbuf_printf(w->text,
                   "%%high = arith.constant dense<8> : vector<%dxi32>\n"
                   "%%none = arith.constant dense<0> : vector<%dxi32>\n",
                   lanes, lanes);
}

/* %place<u>_<v>, of which a permutation looks at the lowest bits only, and %upper<u>_<v> where it needs one
 * more. */
static void load_places(writer_t *w, int u) {
  int lanes = w->tile->lanes, at = add_constant(w, "places", 2 * u);
  o3_strbuf_printf(w->text,
                   "%%pair%d = vector.load %%table[%%t%d] : memref<?xi32>, vector<2xi32>\n"
                   "%%both%d = vector.bitcast %%pair%d : vector<2xi32> to vector<1xi64>\n"
                   "%%word%d = vector.extract %%both%d[0] : i64 from vector<1xi64>\n"
                   "%%words%d = vector.broadcast %%word%d : i64 to vector<%dxi64>\n"
                   "%%all%d = vector.bitcast %%words%d : vector<%dxi64> to vector<%dxi32>\n",
                   u, at, u, u, u, u, u, u, lanes / 2, u, u, lanes / 2, lanes);
  for (int v = 0; v < w->vectors; ++v) {
    o3_strbuf_printf(w->text, "%%place%d_%d = arith.shrui %%all%d, %%shift%d : vector<%dxi32>\n", u, v, u, v,
                     lanes);
    if (half_of(w->tile, u) >= 0 || lanes == SPAN) continue;
    o3_strbuf_printf(w->text,
                     "%%bit%d_%d = arith.andi %%place%d_%d, %%high : vector<%dxi32>\n"
                     "%%upper%d_%d = arith.cmpi ne, %%bit%d_%d, %%none : vector<%dxi32>\n",
                     u, v, u, v, lanes, u, v, u, v, lanes);
  }
}

/* %in<p>_<h>: the entry's inputs of each pixel. */
static void load_inputs(writer_t *w) {
  int lanes = w->tile->lanes;
  for (int p = 0; p < w->tile->pixels; ++p) {
    for (int h = 0; h < SPAN / lanes; ++h) {
      int at = add_constant(w, "x0", p * w->tile->x_step + h * lanes);
      o3_strbuf_printf(w->text, "%%in%d_%d = vector.%s %%X[%%t%d]", p, h,
                       w->tile->tail ? "maskedload" : "load", at);
      if (w->tile->tail) o3_strbuf_printf(w->text, ", %%exist%d, %%zero", h);
      o3_strbuf_puts(w->text, " : memref<?xf32>, ");
      if (w->tile->tail) o3_strbuf_printf(w->text, "vector<%dxi1>, vector<%dxf32> into ", lanes, lanes);
      o3_strbuf_printf(w->text, "vector<%dxf32>\n", lanes);
    }
  }
}

static void permute(writer_t *w, const char *result, int p, int h, int u, int v) {
  int lanes = w->tile->lanes;
  o3_strbuf_printf(w->text,
                   "%%%s%d_%d_%d = llvm.call_intrinsic \"%s\"(%%in%d_%d, %%place%d_%d) : (vector<%dxf32>, "
                   "vector<%dxi32>) -> vector<%dxf32>\n",
                   result, u, p, v, lanes == SPAN ? "llvm.x86.avx512.permvar.sf.512" : "llvm.x86.avx2.permps",
                   p, h, u, v, lanes, lanes, lanes);
}

/* %xv<u>_<p>_<v>: what each lane of vector v is multiplied by. */
static void choose_inputs(writer_t *w, int u, int p, int v) {
  int half = half_of(w->tile, u), lanes = w->tile->lanes;
  if (half >= 0 || lanes == SPAN) {
    permute(w, "xv", p, half > 0 ? half : 0, u, v);
    return;
  }
  permute(w, "xl", p, 0, u, v);
  permute(w, "xh", p, 1, u, v);
  o3_strbuf_printf(w->text,
                   "%%xv%d_%d_%d = arith.select %%upper%d_%d, %%xh%d_%d_%d, %%xl%d_%d_%d : vector<%dxi1>, "
                   "vector<%dxf32>\n",
                   u, p, v, u, v, u, p, v, u, p, v, lanes, lanes);
}

/* Which inputs of the entry there are. */
static void tail_masks(writer_t *w) {
  int lanes = w->tile->lanes;
  o3_strbuf_puts(
      w->text,
      "%begin = arith.index_castui %channel : i32 to index\n%left = arith.subi %c, %begin : index\n");
  for (int h = 0; h < SPAN / lanes; ++h) {
    int at = add_constant(w, "left", -h * lanes);
    o3_strbuf_printf(w->text, "%%exist%d = vector.create_mask %%t%d : vector<%dxi1>\n", h, at, lanes);
  }
}

static void multiply_groups(writer_t *w) {
  if (w->tile->tail) tail_masks(w);
  o3_strbuf_puts(w->text, "%places = arith.addi %ec, %c1 : index\n%wp0 = arith.addi %w_turn, %c0 : index\n");
  load_inputs(w);
  for (int u = 0; u < w->tile->depth; ++u) {
    load_places(w, u);
    load_weights(w, u);
    for (int i = 0; i < count(w); ++i) {
      int p = i / w->vectors, v = i % w->vectors;
      choose_inputs(w, u, p, v);
      o3_strbuf_printf(w->text, "%%s%d_%d = vector.fma %%xv%d_%d_%d, %%wv%d_%d, ", u + 1, i, u, p, v, u, v);
      if (u) o3_strbuf_printf(w->text, "%%s%d_%d", u, i);
      if (!u) o3_strbuf_printf(w->text, "%%e_%d", i);
      o3_strbuf_printf(w->text, " : vector<%dxf32>\n", w->tile->lanes);
      w->summed[i] = u + 1;
    }
  }
  yield_sums(w);
}

/* Over the entries; the loop over an entry's inputs is the dense tiles'. */
static void sparse_loops(writer_t *w) {
  if (w->tile->parts) place_shifts(w);
  open_loop(w, "e", "n1", "c1", "init#");
  o3_strbuf_printf(w->text, "%%stride = arith.constant %d : index\n%%ec = arith.muli %%e, %%stride : index\n",
                   w->tile->parts ? 1 + 2 * w->tile->depth : 1);
  o3_strbuf_puts(w->text,
                 "%column = memref.load %table[%ec] : memref<?xi32>\n"
                 "%low16 = arith.constant 65535 : i32\n%low8 = arith.constant 255 : i32\n"
                 "%low4 = arith.constant 15 : i32\n%by4 = arith.constant 4 : i32\n"
                 "%by16 = arith.constant 16 : i32\n%by24 = arith.constant 24 : i32\n"
                 "%channel = arith.andi %column, %low16 : i32\n%block = arith.shrui %channel, %by4 : i32\n"
                 "%first = arith.andi %channel, %low4 : i32\n%above = arith.shrui %column, %by16 : i32\n"
                 "%row = arith.andi %above, %low8 : i32\n%place = arith.shrui %column, %by24 : i32\n"
                 "%i2 = arith.index_castui %block : i32 to index\n"
                 "%i1 = arith.index_castui %row : i32 to index\n"
                 "%i0 = arith.index_castui %place : i32 to index\n"
                 "%xf = arith.index_castui %first : i32 to index\n"
                 "%x2m = arith.muli %i2, %s2 : index\n%x1m = arith.muli %i1, %s1 : index\n"
                 "%x0m = arith.muli %i0, %s0 : index\n%x3 = arith.addi %x, %xf : index\n"
                 "%x2 = arith.addi %x3, %x2m : index\n%x1 = arith.addi %x2, %x1m : index\n"
                 "%x0 = arith.addi %x1, %x0m : index\n");
  o3_strbuf_printf(w->text,
                   "%%entry = arith.constant %d : index\n%%we = arith.muli %%e, %%entry : index\n"
                   "%%w_turn = arith.addi %%w, %%we : index\n%%depth = arith.constant %d : index\n",
                   w->tile->depth * w->tile->width, w->tile->depth);
  if (w->tile->parts) {
    multiply_groups(w);
    o3_strbuf_puts(w->text, "}\n");
    return;
  }
  open_loop(w, "k", "depth", "unroll", "e_");
  o3_strbuf_puts(w->text, "%xk = arith.addi %x0, %k : index\n");
  weight_pointers(w);
  multiply_turns(w);
  yield_sums(w);
  o3_strbuf_puts(w->text, "}\n");
  yield(w, "r_k#");
  o3_strbuf_puts(w->text, "}\n");
}

/* Lanes that are not computed. */
static void store_zeros(writer_t *w) {
  const o3_tile_t *tile = w->tile;
  int lanes = o3_tile_stored(tile);
  if (tile->zeros) o3_strbuf_printf(w->text, "%%none = arith.constant dense<0.0> : vector<%dxf32>\n", lanes);
  for (int i = 0; i < tile->pixels * tile->blocks; ++i) {
    for (int lane = tile->used; lane < tile->used + tile->zeros; lane += lanes) {
      char base[32];
      snprintf(base, sizeof(base), "y%d_%d", i / tile->blocks, i % tile->blocks);
      int at = add_constant(w, base, lane);
      o3_strbuf_printf(w->text, "vector.store %%none, %%Y[%%t%d] : memref<?xf32>, vector<%dxf32>\n", at,
                       lanes);
    }
  }
}

static void store(writer_t *w, const char *results) {
  int lanes = w->tile->lanes;
  for (int i = 0; i < count(w); ++i) {
    int at = y_address(w, i / w->vectors, i % w->vectors);
    if (!w->tile->masked) {
      o3_strbuf_printf(w->text, "vector.store %%%s#%d, %%Y[%%t%d] : memref<?xf32>, vector<%dxf32>\n", results,
                       i, at, lanes);
      continue;
    }
    char name[32];
    snprintf(name, sizeof(name), "m%d", w->next++);
    mask(w, name, i % w->vectors);
    o3_strbuf_printf(w->text,
                     "vector.maskedstore %%Y[%%t%d], %%%s, %%%s#%d : memref<?xf32>, vector<%dxi1>, "
                     "vector<%dxf32>\n",
                     at, name, results, i, lanes, lanes);
  }
}

static void sums(writer_t *w) {
  const o3_tile_t *tile = w->tile;
  if (!w->tile->lanewise && !w->tile->depth) weights_ahead(w);
  y_addresses(w);
  start(w);
  if (tile->depth) {
    sparse_loops(w);
  } else if (tile->taps) {
    row_loops(w);
  } else {
    loops(w);
  }
  if (tile->split)
    store_split(w, "r_i2");
  else
    store(w, tile->depth ? "r_e" : "r_i2");
}

static bool has_turns(const o3_tile_t *tile) { return tile->lanewise && per_block(tile) > 1; }

/* A vector of the lanes at a time. */
static void sums_in_turns(writer_t *w) {
  o3_strbuf_printf(w->text,
                   "%%lanes = arith.constant %d : index\n%%used = arith.constant %d : index\n"
                   "scf.for %%lane = %%c0 to %%used step %%lanes {\n",
                   w->tile->lanes, w->tile->used);
  for (const char *at = "xwyb"; *at; ++at)
    o3_strbuf_printf(w->text, "%%%c = arith.addi %%%c_all, %%lane : index\n", *at, *at);
  sums(w);
  o3_strbuf_puts(w->text, "}\n");
  if (!w->tile->zeros) return;
  o3_strbuf_puts(w->text, "%y = arith.addi %y_all, %c0 : index\n");
  y_addresses(w);
}

char *o3_tile_text(const o3_tile_t *tile) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  int vectors = has_turns(tile) ? 1 : tile->blocks * per_block(tile);
  const char *all = has_turns(tile) ? "_all" : "";
  char *name = o3_tile_name(tile);
  int *summed = calloc((size_t)(tile->pixels * vectors), sizeof(*summed));
  writer_t w = {.text = &text, .tile = tile, .vectors = vectors, .summed = summed};
  if (!name || !summed) {
    free(name);
    free(summed);
    return NULL;
  }
  o3_strbuf_printf(
      &text,
      "module {\nfunc.func private @%s(%%X: memref<?xf32>, %%x%s: index, %%W: memref<?xf32>, %%w%s: index,\n"
      "%%w_next: index, %%w_ahead: index, %%Y: memref<?xf32>, %%y%s: index, %%y_step: index, %%y_next: "
      "index,\n"
      "%%B: memref<?xf32>, %%b%s: index, %%start: index, %%n2: index, %%s2: index, %%n1: index,\n"
      "%%s1: index, %%n0: index, %%s0: index, %%c: index, %%c_last: index, %%cols: index%s)\n"
      "attributes {passthrough = [\"noinline\"]} {\n%%c0 = arith.constant 0 : index\n"
      "%%width = arith.constant %d : index\n%%unroll = arith.constant %d : index\n"
      "%%zero = arith.constant dense<0.0> : vector<%dxf32>\n",
      name, all, all, all, all, tile->depth ? ", %table: memref<?xi32>" : "", tile->width, tile->unroll,
      tile->lanes);
  free(name);
  if (has_turns(tile))
    sums_in_turns(&w);
  else
    sums(&w);
  free(summed);
  store_zeros(&w);
  o3_strbuf_puts(&text, "return\n}\n}\n");
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}
