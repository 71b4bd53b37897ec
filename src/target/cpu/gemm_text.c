/* The functions are written as text: they are made once for a module, and this is how one reads them.
 *
 * The micro-kernel keeps rows x vectors accumulators in registers and runs over k: for each k it loads a row
 * of the packed B (contiguous) and broadcasts one element of A for each row, straight from memory. A is not
 * packed: its rows are walked along k by as many pointers as the tile has rows. Tails in both directions use
 * the same kernel: rows beyond the end repeat the last one and are not stored, columns are masked.
 *
 * The next rows of A are fetched while a row of tiles is computed, and what the caller will pack next.
 *
 * The block function packs B by offset tables of k and n, so that a convolution's windows (im2col) and a
 * transposed matrix are the same code (the tables are counted up, as a division takes longer than a row of a
 * short product): where the offsets of a vector's lanes are consecutive, a vector is
 * loaded; where those of k are, a square of vectors is loaded and transposed; else elements go one by one.
 * What is less than a vector at the ends of both is loaded with a mask.
 */
#include "target/cpu/gemm_text.h"

#include <stdio.h>

#include "base/strbuf.h"

o3_gemm_shape_t o3_gemm_shape(const o3_schedule_packed_t *schedule, int bits) {
  return (o3_gemm_shape_t){.type = bits == 32 ? "f32" : "f64",
                           .lanes = (int)schedule->lanes,
                           .rows = (int)schedule->rows,
                           .vectors = (int)(schedule->columns / schedule->lanes),
                           .depth = (int)schedule->k_block,
                           .columns = (int)schedule->panel};
}

/* A function's name: what |what| it is, and how it differs from others of the type. */
static void name_function(const o3_gemm_shape_t *s, const char *what, char name[O3_GEMM_NAME]) {
  snprintf(name, O3_GEMM_NAME, "o3k_%s_gemm_%s_%dx%d_k%d_n%d", s->type, what, s->rows, s->vectors * s->lanes,
           s->depth, s->columns);
}

void o3_gemm_block_name(const o3_gemm_shape_t *shape, char name[O3_GEMM_NAME]) {
  name_function(shape, "block", name);
}

/* ---- The micro-kernel ---- */

static void list_types(o3_strbuf_t *t, const o3_gemm_shape_t *s) {
  for (int i = 0; i < s->rows * s->vectors; ++i)
    o3_strbuf_printf(t, "%svector<%dx%s>", i ? ", " : "", s->lanes, s->type);
}

static void list_values(o3_strbuf_t *t, const o3_gemm_shape_t *s, const char *prefix) {
  for (int i = 0; i < s->rows * s->vectors; ++i) o3_strbuf_printf(t, "%s%%%s_%d", i ? ", " : "", prefix, i);
}

/* Row i reads row min(i, rows - 1) of A, and writes row i of C. */
static void kernel_rows(o3_strbuf_t *t, const o3_gemm_shape_t *s) {
  o3_strbuf_puts(t, "  %last = arith.subi %rows, %c1 : index\n");
  for (int i = 0; i < s->rows; ++i) {
    o3_strbuf_printf(t,
                     "  %%i%d = arith.constant %d : index\n"
                     "  %%mi%d = arith.minui %%i%d, %%last : index\n"
                     "  %%am%d = arith.muli %%mi%d, %%a_row : index\n"
                     "  %%a%d = arith.addi %%a_offset, %%am%d : index\n"
                     "  %%cm%d = arith.muli %%mi%d, %%c_row : index\n"
                     "  %%cr%d = arith.addi %%c_offset, %%cm%d : index\n"
                     "  %%in%d = arith.cmpi ult, %%i%d, %%rows : index\n",
                     i, i, i, i, i, i, i, i, i, i, i, i, i, i);
  }
}

/* %<prefix>m<j>: which columns of vector j there are. */
static void kernel_masks(o3_strbuf_t *t, const o3_gemm_shape_t *s, const char *prefix) {
  for (int j = 0; j < s->vectors; ++j)
    o3_strbuf_printf(t,
                     "    %%%sj%d = arith.constant %d : index\n"
                     "    %%%sl%d = arith.subi %%cols, %%%sj%d : index\n"
                     "    %%%sm%d = vector.create_mask %%%sl%d : vector<%dxi1>\n",
                     prefix, j, j * s->lanes, prefix, j, prefix, j, prefix, j, prefix, j, s->lanes);
}

/* One access of C for each accumulator; |format| gets: index, index, row, vector offset. */
static void kernel_load(o3_strbuf_t *t, const o3_gemm_shape_t *s, bool masked) {
  for (int at = 0; at < s->rows * s->vectors; ++at) {
    int i = at / s->vectors, j = at % s->vectors;
    const char *p = masked ? "t" : "f";
    o3_strbuf_printf(
        t, "    %%%so%d = arith.constant %d : index\n    %%%sx%d = arith.addi %%cr%d, %%%so%d : index\n", p,
        at, j * s->lanes, p, at, i, p, at);
    if (masked) {
      o3_strbuf_printf(t,
                       "    %%t_%d = vector.maskedload %%C[%%tx%d], %%lm%d, %%zero : memref<?x%s>, "
                       "vector<%dxi1>, vector<%dx%s> into vector<%dx%s>\n",
                       at, at, j, s->type, s->lanes, s->lanes, s->type, s->lanes, s->type);
    } else {
      o3_strbuf_printf(t, "    %%f_%d = vector.load %%C[%%fx%d] : memref<?x%s>, vector<%dx%s>\n", at, at,
                       s->type, s->lanes, s->type);
    }
  }
}

static void yield_start(o3_strbuf_t *t, const o3_gemm_shape_t *s, const char *prefix) {
  o3_strbuf_puts(t, "    scf.yield ");
  list_values(t, s, prefix);
  o3_strbuf_puts(t, " : ");
  list_types(t, s);
  o3_strbuf_puts(t, "\n");
}

static void open_start(o3_strbuf_t *t, const o3_gemm_shape_t *s, const char *name, const char *condition) {
  o3_strbuf_printf(t, "  %%%s:%d = scf.if %%%s -> (", name, s->rows * s->vectors, condition);
  list_types(t, s);
  o3_strbuf_puts(t, ") {\n");
}

/* %init: what the sums start at. */
static void kernel_start(o3_strbuf_t *t, const o3_gemm_shape_t *s) {
  int count = s->rows * s->vectors;
  open_start(t, s, "init", "fresh");
  for (int i = 0; i < count; ++i)
    o3_strbuf_printf(t, "    %%z_%d = arith.constant dense<0.0> : vector<%dx%s>\n", i, s->lanes, s->type);
  yield_start(t, s, "z");
  o3_strbuf_puts(t, "  } else {\n");
  open_start(t, s, "old", "full");
  kernel_load(t, s, false);
  yield_start(t, s, "f");
  o3_strbuf_puts(t, "  } else {\n");
  kernel_masks(t, s, "l");
  kernel_load(t, s, true);
  yield_start(t, s, "t");
  o3_strbuf_puts(t, "  }\n    scf.yield ");
  for (int i = 0; i < count; ++i) o3_strbuf_printf(t, "%s%%old#%d", i ? ", " : "", i);
  o3_strbuf_puts(t, " : ");
  list_types(t, s);
  o3_strbuf_puts(t, "\n  }\n");
}

static void kernel_store(o3_strbuf_t *t, const o3_gemm_shape_t *s, bool masked) {
  for (int at = 0; at < s->rows * s->vectors; ++at) {
    int i = at / s->vectors, j = at % s->vectors;
    const char *p = masked ? "u" : "g";
    if (masked && j == 0) o3_strbuf_printf(t, "    scf.if %%in%d {\n", i);
    o3_strbuf_printf(
        t, "    %%%so%d = arith.constant %d : index\n    %%%sx%d = arith.addi %%cr%d, %%%so%d : index\n", p,
        at, j * s->lanes, p, at, i, p, at);
    if (masked) {
      o3_strbuf_printf(
          t,
          "    vector.maskedstore %%C[%%ux%d], %%sm%d, %%r#%d : memref<?x%s>, vector<%dxi1>, vector<%dx%s>\n",
          at, j, at, s->type, s->lanes, s->lanes, s->type);
      if (j + 1 == s->vectors) o3_strbuf_puts(t, "    }\n");
    } else {
      o3_strbuf_printf(t, "    vector.store %%r#%d, %%C[%%gx%d] : memref<?x%s>, vector<%dx%s>\n", at, at,
                       s->type, s->lanes, s->type);
    }
  }
}

static void kernel_loop(o3_strbuf_t *t, const o3_gemm_shape_t *s) {
  o3_strbuf_printf(t, "  %%r:%d = scf.for %%k = %%c0 to %%depth step %%c1 iter_args(", s->rows * s->vectors);
  for (int i = 0; i < s->rows * s->vectors; ++i)
    o3_strbuf_printf(t, "%s%%s_%d = %%init#%d", i ? ", " : "", i, i);
  o3_strbuf_puts(t, ") -> (");
  list_types(t, s);
  o3_strbuf_puts(t, ") {\n");
  o3_strbuf_printf(t,
                   "    %%width = arith.constant %d : index\n"
                   "    %%bk = arith.muli %%k, %%width : index\n"
                   "    %%b_0_at = arith.addi %%b_offset, %%bk : index\n"
                   "    %%ak = arith.muli %%k, %%a_depth : index\n",
                   s->lanes * s->vectors);
  for (int j = 0; j < s->vectors; ++j) {
    if (j)
      o3_strbuf_printf(
          t, "    %%bo%d = arith.constant %d : index\n    %%b_%d_at = arith.addi %%b_0_at, %%bo%d : index\n",
          j, j * s->lanes, j, j);
    o3_strbuf_printf(t, "    %%b_%d = vector.load %%B[%%b_%d_at] : memref<?x%s>, vector<%dx%s>\n", j, j,
                     s->type, s->lanes, s->type);
  }
  for (int i = 0; i < s->rows; ++i) {
    o3_strbuf_printf(t,
                     "    %%aa%d = arith.addi %%a%d, %%ak : index\n"
                     "    %%as%d = memref.load %%A[%%aa%d] : memref<?x%s>\n"
                     "    %%av%d = vector.broadcast %%as%d : %s to vector<%dx%s>\n",
                     i, i, i, i, s->type, i, i, s->type, s->lanes, s->type);
    for (int j = 0; j < s->vectors; ++j) {
      int at = i * s->vectors + j;
      o3_strbuf_printf(t, "    %%n_%d = vector.fma %%av%d, %%b_%d, %%s_%d : vector<%dx%s>\n", at, i, j, at,
                       s->lanes, s->type);
    }
  }
  o3_strbuf_puts(t, "    scf.yield ");
  list_values(t, s, "n");
  o3_strbuf_puts(t, " : ");
  list_types(t, s);
  o3_strbuf_puts(t, "\n  }\n");
}

static void kernel(o3_strbuf_t *t, const o3_gemm_shape_t *s, const char *name, bool unit_depth) {
  o3_strbuf_printf(
      t,
      "func.func private @%s(%%A: memref<?x%s>, %%a_offset: index, %%a_row: index, %%a_step: index,\n"
      "    %%B: memref<?x%s>, %%b_offset: index, %%C: memref<?x%s>, %%c_offset: index, %%c_row: index,\n"
      "    %%depth: index, %%rows: index, %%cols: index, %%fresh: i1) attributes {passthrough = "
      "[\"alwaysinline\"]} {\n"
      "  %%c0 = arith.constant 0 : index\n  %%c1 = arith.constant 1 : index\n"
      "  %%a_depth = %s\n"
      "  %%zero = arith.constant dense<0.0> : vector<%dx%s>\n"
      "  %%all_rows = arith.constant %d : index\n  %%all_cols = arith.constant %d : index\n"
      "  %%rf = arith.cmpi eq, %%rows, %%all_rows : index\n"
      "  %%cf = arith.cmpi eq, %%cols, %%all_cols : index\n"
      "  %%full = arith.andi %%rf, %%cf : i1\n",
      name, s->type, s->type, s->type,
      unit_depth ? "arith.constant 1 : index" : "arith.addi %a_step, %c0 : index", s->lanes, s->type, s->rows,
      s->lanes * s->vectors);
  kernel_rows(t, s);
  kernel_start(t, s);
  kernel_loop(t, s);
  o3_strbuf_puts(t, "  scf.if %full {\n");
  kernel_store(t, s, false);
  o3_strbuf_puts(t, "  } else {\n");
  kernel_masks(t, s, "s");
  kernel_store(t, s, true);
  o3_strbuf_puts(t, "  }\n  return\n}\n");
}

/* ---- The block ---- */

/* Columns are packed by vectors where L of them, or those that there are, are consecutive in B. They are when
 * they ascend and the last lies as far behind the first. $T element type, $L lanes, $W width of a
 * panel, $R rows, $K depth, $N columns, $P packed elements, $S L - 1, $Q a line of the cache; $F this
 * function, $G and $H the tiles. */
static const char BLOCK[] =
    "func.func private @$F(%A: memref<?x$T>, %a_offset: index, %a_row: index, %a_depth: "
    "index,\n"
    "    %B: memref<?x$T>, %b_offset: index, %C: memref<?x$T>, %c_offset: index, %c_row: index,\n"
    "    %m_lo: index, %m_hi: index, %n_lo: index, %n_hi: index,\n"
    "    %k1: index, %k0: index, %kb2: index, %kb1: index, %kb0: index,\n"
    "    %n0: index, %nb1: index, %nb0: index, %depth: index, %fresh: index,\n"
    "    %P: memref<?x$T>, %p_offset: index, %p_row: index, %p_rows: index, %p_count: index)\n"
    "    attributes {passthrough = [\"noinline\"]} {\n"
    "  %c0 = arith.constant 0 : index\n"
    "  %c1 = arith.constant 1 : index\n"
    "  %L = arith.constant $L : index\n"
    "  %W = arith.constant $W : index\n"
    "  %R = arith.constant $R : index\n"
    "  %K = arith.constant $K : index\n"
    "  %span = arith.constant $S : index\n"
    "  %Q = arith.constant $Q : index\n"
    "  %zeros = arith.constant dense<0.0> : vector<$Lx$T>\n"
    "  %packed = memref.alloca() {alignment = 64 : i64} : memref<$Px$T>\n"
    "  %pack = memref.cast %packed : memref<$Px$T> to memref<?x$T>\n"
    "  %k_table = memref.alloca() {alignment = 64 : i64} : memref<$Kxindex>\n"
    "  %n_table = memref.alloca() {alignment = 64 : i64} : memref<$Nxindex>\n"
    "  %n_count = arith.subi %n_hi, %n_lo : index\n"
    "  %panels = arith.ceildivui %n_count, %W : index\n"
    "  %n_padded = arith.muli %panels, %W : index\n"
    "  %n_last = arith.subi %n_hi, %c1 : index\n"
    "  %unit_step = arith.cmpi eq, %nb0, %c1 : index\n"
    "  %one_line = arith.cmpi ule, %n_hi, %n0 : index\n"
    "  %lines_apart = arith.cmpi uge, %nb1, %n0 : index\n"
    "  %any_lines = arith.ori %one_line, %lines_apart : i1\n"
    "  %ascending = arith.andi %unit_step, %any_lines : i1\n"
    "  %k_unit = arith.cmpi eq, %kb0, %c1 : index\n"
    "  %k_line = arith.cmpi ule, %depth, %k0 : index\n"
    "  %starts = arith.cmpi ne, %fresh, %c0 : index\n"
    "  %k_end = arith.maxui %depth, %c1 : index\n"
    "  %k0_some = arith.maxui %k0, %c1 : index\n"
    "  %k1_some = arith.maxui %k1, %c1 : index\n"
    "  %k_consecutive = arith.andi %k_unit, %k_line : i1\n"
    "  %n_i1 = arith.divui %n_lo, %n0 : index\n"
    "  %n_i0 = arith.remui %n_lo, %n0 : index\n"
    "  scf.for %j = %c0 to %n_padded step %c1 iter_args(%i1 = %n_i1, %i0 = %n_i0) -> (index, index) {\n"
    "    %o1 = arith.muli %i1, %nb1 : index\n"
    "    %o0 = arith.muli %i0, %nb0 : index\n"
    "    %o = arith.addi %o1, %o0 : index\n"
    "    %ob = arith.addi %o, %b_offset : index\n"
    "    memref.store %ob, %n_table[%j] : memref<$Nxindex>\n"
    "    %n = arith.addi %n_lo, %j : index\n"
    "    %more = arith.cmpi ult, %n, %n_last : index\n"
    "    %j0 = arith.addi %i0, %c1 : index\n"
    "    %j1 = arith.addi %i1, %c1 : index\n"
    "    %wraps = arith.cmpi eq, %j0, %n0 : index\n"
    "    %w1 = arith.select %wraps, %j1, %i1 : index\n"
    "    %w0 = arith.select %wraps, %c0, %j0 : index\n"
    "    %x1 = arith.select %more, %w1, %i1 : index\n"
    "    %x0 = arith.select %more, %w0, %i0 : index\n"
    "    scf.yield %x1, %x0 : index, index\n"
    "  }\n"
    "  scf.for %k_lo = %c0 to %k_end step %K {\n"
    "    %k_first = arith.cmpi eq, %k_lo, %c0 : index\n"
    "    %new = arith.andi %starts, %k_first : i1\n"
    "    %k_left = arith.subi %depth, %k_lo : index\n"
    "    %k_count = arith.minui %k_left, %K : index\n"
    "    %k_q = arith.divui %k_lo, %k0_some : index\n"
    "    %k_i0 = arith.remui %k_lo, %k0_some : index\n"
    "    %k_i2 = arith.divui %k_q, %k1_some : index\n"
    "    %k_i1 = arith.remui %k_q, %k1_some : index\n"
    "    scf.for %j = %c0 to %k_count step %c1 iter_args(%i2 = %k_i2, %i1 = %k_i1, %i0 = %k_i0)\n"
    "        -> (index, index, index) {\n"
    "      %o2 = arith.muli %i2, %kb2 : index\n"
    "      %o1 = arith.muli %i1, %kb1 : index\n"
    "      %o0 = arith.muli %i0, %kb0 : index\n"
    "      %o21 = arith.addi %o2, %o1 : index\n"
    "      %o = arith.addi %o21, %o0 : index\n"
    "      memref.store %o, %k_table[%j] : memref<$Kxindex>\n"
    "      %j0 = arith.addi %i0, %c1 : index\n"
    "      %j1 = arith.addi %i1, %c1 : index\n"
    "      %j2 = arith.addi %i2, %c1 : index\n"
    "      %wraps0 = arith.cmpi eq, %j0, %k0 : index\n"
    "      %x0 = arith.select %wraps0, %c0, %j0 : index\n"
    "      %y1 = arith.select %wraps0, %j1, %i1 : index\n"
    "      %wraps1 = arith.cmpi eq, %y1, %k1 : index\n"
    "      %x1 = arith.select %wraps1, %c0, %y1 : index\n"
    "      %x2 = arith.select %wraps1, %j2, %i2 : index\n"
    "      scf.yield %x2, %x1, %x0 : index, index, index\n"
    "    }\n"
    "    %k_rest = arith.remui %k_count, %L : index\n"
    "    %k_whole = arith.subi %k_count, %k_rest : index\n"
    "    %k_vectors = arith.select %k_consecutive, %k_whole, %c0 : index\n"
    "    %k_rests = arith.cmpi ne, %k_rest, %c0 : index\n"
    "    %k_tail = arith.andi %k_consecutive, %k_rests : i1\n"
    "    %k_mask = vector.create_mask %k_rest : vector<$Lxi1>\n"
    "    scf.for %v = %c0 to %n_padded step %L {\n"
    "      %v_end = arith.addi %v, %span : index\n"
    "      %first = memref.load %n_table[%v] : memref<$Nxindex>\n"
    "      %final = memref.load %n_table[%v_end] : memref<$Nxindex>\n"
    "      %reach = arith.subi %final, %first : index\n"
    "      %after = arith.subi %n_count, %v : index\n"
    "      %not_past = arith.maxsi %after, %c0 : index\n"
    "      %exist = arith.minui %not_past, %L : index\n"
    "      %exist_some = arith.maxui %exist, %c1 : index\n"
    "      %last_lane = arith.subi %exist_some, %c1 : index\n"
    "      %reaches_span = arith.cmpi eq, %reach, %last_lane : index\n"
    "      %consecutive = arith.andi %reaches_span, %ascending : i1\n"
    "      %is_whole = arith.cmpi eq, %exist, %L : index\n"
    "      %panel = arith.divui %v, %W : index\n"
    "      %inside = arith.remui %v, %W : index\n"
    "      %panel_size = arith.muli %k_count, %W : index\n"
    "      %panel_at = arith.muli %panel, %panel_size : index\n"
    "      %to = arith.addi %panel_at, %inside : index\n"
    "      scf.if %consecutive {\n"
    "        scf.if %is_whole {\n"
    "          scf.for %j = %c0 to %k_count step %c1 {\n"
    "            %o = memref.load %k_table[%j] : memref<$Kxindex>\n"
    "            %from = arith.addi %first, %o : index\n"
    "            %x = vector.load %B[%from] : memref<?x$T>, vector<$Lx$T>\n"
    "            %jw = arith.muli %j, %W : index\n"
    "            %at = arith.addi %to, %jw : index\n"
    "            vector.store %x, %pack[%at] : memref<?x$T>, vector<$Lx$T>\n"
    "          }\n"
    "        } else {\n"
    "          %some = vector.create_mask %exist : vector<$Lxi1>\n"
    "          scf.for %j = %c0 to %k_count step %c1 {\n"
    "            %o = memref.load %k_table[%j] : memref<$Kxindex>\n"
    "            %from = arith.addi %first, %o : index\n"
    "            %x = vector.maskedload %B[%from], %some, %zeros : memref<?x$T>, vector<$Lxi1>, "
    "vector<$Lx$T> into vector<$Lx$T>\n"
    "            %jw = arith.muli %j, %W : index\n"
    "            %at = arith.addi %to, %jw : index\n"
    "            vector.store %x, %pack[%at] : memref<?x$T>, vector<$Lx$T>\n"
    "          }\n"
    "        }\n"
    "      } else {\n"
    "        scf.for %j = %c0 to %k_vectors step %L {\n"
    "          %o = memref.load %k_table[%j] : memref<$Kxindex>\n"
    "          %jw = arith.muli %j, %W : index\n"
    "          %at = arith.addi %to, %jw : index\n"
    "$X"
    "        }\n"
    "        scf.if %k_tail {\n"
    "          %o = memref.load %k_table[%k_whole] : memref<$Kxindex>\n"
    "          %jw = arith.muli %k_whole, %W : index\n"
    "          %at = arith.addi %to, %jw : index\n"
    "$Y"
    "        } else {\n"
    "          scf.for %j = %k_vectors to %k_count step %c1 {\n"
    "            %o = memref.load %k_table[%j] : memref<$Kxindex>\n"
    "            %jw = arith.muli %j, %W : index\n"
    "            %at = arith.addi %to, %jw : index\n"
    "            scf.for %l = %c0 to %L step %c1 {\n"
    "              %vl = arith.addi %v, %l : index\n"
    "              %no = memref.load %n_table[%vl] : memref<$Nxindex>\n"
    "              %from = arith.addi %no, %o : index\n"
    "              %x = memref.load %B[%from] : memref<?x$T>\n"
    "              %al = arith.addi %at, %l : index\n"
    "              memref.store %x, %pack[%al] : memref<?x$T>\n"
    "            }\n"
    "          }\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "    %ak = arith.muli %k_lo, %a_depth : index\n"
    "    %a_at = arith.addi %a_offset, %ak : index\n"
    "    %unit = arith.cmpi eq, %a_depth, %c1 : index\n"
    "    scf.for %m = %m_lo to %m_hi step %R {\n"
    "      %m_left = arith.subi %m_hi, %m : index\n"
    "      %rows = arith.minui %m_left, %R : index\n"
    "      %am = arith.muli %m, %a_row : index\n"
    "      %a_tile = arith.addi %a_at, %am : index\n"
    "      %cm = arith.muli %m, %c_row : index\n"
    "      %c_line = arith.addi %c_offset, %cm : index\n"
    "      %m_done = arith.subi %m, %m_lo : index\n"
    "      %m_next = arith.addi %m, %R : index\n"
    "      %m_later = arith.addi %m_next, %R : index\n"
    "      %m_end = arith.minui %m_later, %m_hi : index\n"
    "      scf.if %unit {\n"
    "        scf.for %i = %m_next to %m_end step %c1 {\n"
    "          %im = arith.muli %i, %a_row : index\n"
    "          %ia = arith.addi %a_at, %im : index\n"
    "          scf.for %j = %c0 to %k_count step %Q {\n"
    "            %at = arith.addi %ia, %j : index\n"
    "            memref.prefetch %A[%at], read, locality<3>, data : memref<?x$T>\n"
    "          }\n"
    "        }\n"
    "      }\n"
    "      %p_more = arith.addi %m_done, %R : index\n"
    "      %p_end = arith.minui %p_more, %p_rows : index\n"
    "      scf.for %i = %m_done to %p_end step %c1 {\n"
    "        %im = arith.muli %i, %p_row : index\n"
    "        %ip = arith.addi %p_offset, %im : index\n"
    "        scf.for %j = %c0 to %p_count step %Q {\n"
    "          %at = arith.addi %ip, %j : index\n"
    "          memref.prefetch %P[%at], read, locality<2>, data : memref<?x$T>\n"
    "        }\n"
    "      }\n"
    "      scf.for %n = %n_lo to %n_hi step %W {\n"
    "        %n_left = arith.subi %n_hi, %n : index\n"
    "        %cols = arith.minui %n_left, %W : index\n"
    "        %done = arith.subi %n, %n_lo : index\n"
    "        %b_tile = arith.muli %done, %k_count : index\n"
    "        %c_tile = arith.addi %c_line, %n : index\n"
    "        scf.if %unit {\n"
    "          func.call @$G(%A, %a_tile, %a_row, %a_depth, %pack, %b_tile, %C, %c_tile, "
    "%c_row,\n"
    "              %k_count, %rows, %cols, %new) : ($A) -> ()\n"
    "        } else {\n"
    "          func.call @$H(%A, %a_tile, %a_row, %a_depth, %pack, %b_tile, %C, "
    "%c_tile,\n"
    "              %c_row, %k_count, %rows, %cols, %new) : ($A) -> ()\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "  return\n"
    "}\n";

static void put_argument_types(o3_strbuf_t *t, const o3_gemm_shape_t *s) {
  o3_strbuf_printf(t,
                   "memref<?x%s>, index, index, index, memref<?x%s>, index, memref<?x%s>, index, index, "
                   "index, index, index, i1",
                   s->type, s->type, s->type);
}

/* L columns of B, each a vector along k, as L rows of the packed B: log2(L) rounds that exchange the halves
 * of ever larger squares between pairs of vectors. Rows beyond the end of k, where |masked| vectors are not
 * read, come to lie where the next panel is packed later, or behind the last one. */
static void put_transposition(o3_strbuf_t *t, const o3_gemm_shape_t *s, bool masked) {
  int lanes = s->lanes, round = 0;
  for (int l = 0; l < lanes; ++l) {
    o3_strbuf_printf(t,
                     "%%xl%d = arith.constant %d : index\n%%xv%d = arith.addi %%v, %%xl%d : index\n"
                     "%%xn%d = memref.load %%n_table[%%xv%d] : memref<%dxindex>\n"
                     "%%xf%d = arith.addi %%xn%d, %%o : index\n%%x0_%d = vector.%s %%B[%%xf%d]",
                     l, l, l, l, l, l, s->columns, l, l, l, masked ? "maskedload" : "load", l);
    if (masked) o3_strbuf_puts(t, ", %k_mask, %zeros");
    o3_strbuf_printf(t, " : memref<?x%s>, ", s->type);
    if (masked) o3_strbuf_printf(t, "vector<%dxi1>, vector<%dx%s> into ", lanes, lanes, s->type);
    o3_strbuf_printf(t, "vector<%dx%s>\n", lanes, s->type);
  }
  for (int step = 1; step < lanes; step *= 2, ++round) {
    for (int l = 0; l < lanes; ++l) {
      bool high = l & step;
      o3_strbuf_printf(t, "%%x%d_%d = vector.shuffle %%x%d_%d, %%x%d_%d [", round + 1, l, round, l & ~step,
                       round, l | step);
      for (int x = 0; x < lanes; ++x) {
        int from_first = high ? x + step : x, from_second = lanes + (high ? x : x - step);
        o3_strbuf_printf(t, "%s%d", x ? ", " : "", x & step ? from_second : from_first);
      }
      o3_strbuf_printf(t, "] : vector<%dx%s>, vector<%dx%s>\n", lanes, s->type, lanes, s->type);
    }
  }
  for (int l = 0; l < lanes; ++l)
    o3_strbuf_printf(t,
                     "%%xo%d = arith.constant %d : index\n%%xt%d = arith.addi %%at, %%xo%d : index\n"
                     "vector.store %%x%d_%d, %%pack[%%xt%d] : memref<?x%s>, vector<%dx%s>\n",
                     l, l * lanes * s->vectors, l, l, round, l, l, s->type, lanes, s->type);
}

static const char *const FUNCTIONS[] = {"block", "tile", "tile_strided"}; /* $F, $G, $H */

static void put_name(o3_strbuf_t *t, const o3_gemm_shape_t *s, char variable) {
  char name[O3_GEMM_NAME];
  name_function(s, FUNCTIONS[variable - 'F'], name);
  o3_strbuf_puts(t, name);
}

static void put_variable(o3_strbuf_t *t, const o3_gemm_shape_t *s, char variable) {
  int line = s->type[1] == '3' ? 16 : 8; /* elements of 64 bytes */
  const struct {
    char name;
    int value;
  } numbers[] = {{'L', s->lanes},     {'W', s->lanes * s->vectors},
                 {'R', s->rows},      {'K', s->depth},
                 {'N', s->columns},   {'P', (s->depth + s->lanes - 1) / s->lanes * s->lanes * s->columns},
                 {'S', s->lanes - 1}, {'Q', line}};
  if (variable == 'T') o3_strbuf_puts(t, s->type);
  if (variable >= 'F' && variable <= 'H') put_name(t, s, variable);
  if (variable == 'A') put_argument_types(t, s);
  if (variable == 'X' || variable == 'Y') put_transposition(t, s, variable == 'Y');
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
    if (numbers[i].name == variable) o3_strbuf_printf(t, "%d", numbers[i].value);
  }
}

char *o3_gemm_text(const o3_gemm_shape_t *shape) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  char name[O3_GEMM_NAME];
  o3_strbuf_puts(&text, "module {\n");
  name_function(shape, "tile", name);
  kernel(&text, shape, name, true);
  name_function(shape, "tile_strided", name);
  kernel(&text, shape, name, false);
  for (const char *at = BLOCK; *at; ++at) {
    if (*at == '$') {
      put_variable(&text, shape, *++at);
    } else {
      o3_strbuf_append(&text, at, 1);
    }
  }
  o3_strbuf_puts(&text, "}\n");
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}
