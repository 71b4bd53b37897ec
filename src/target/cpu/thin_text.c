/* Both walk the matrix in the order in which it lies in memory, some rows side by side, each of which is a
 * stream of its own. Contiguous along the sum, a row is multiplied by all vectors, which are packed and come
 * from the first-level cache, and the lanes are added at its end. Contiguous along the results, each row is
 * added to all results of the task, which are on the stack, for the first-level cache, where rows of C might
 * share sets with those of the matrix: the more rows at a time, the fewer times they are read and written. */
#include "target/cpu/thin_text.h"

#include <stdio.h>

#include "base/strbuf.h"

enum { PIECE = 2048 }; /* of a sum, whose vectors are packed at a time */

typedef struct writer {
  o3_strbuf_t *text;
  const o3_thin_t *thin;
} writer_t;

void o3_thin_name(const o3_thin_t *thin, char name[O3_THIN_NAME]) {
  const o3_thin_t *s = thin;
  int length = snprintf(name, O3_THIN_NAME, "o3k_%s_thin_%s_%dx%dx%d", s->type, s->is_dots ? "dots" : "sums",
                        s->few, s->steps, s->lanes);
  if (!s->is_dots) snprintf(name + length, (size_t)(O3_THIN_NAME - length), "_n%d", s->span);
}

/* ---- Text ---- */

/* Of the results, which should not share sets of the cache. */
static int pitch_of(const o3_thin_t *thin) { return (thin->span / thin->lanes + 2) * thin->lanes; }

/* $T element type, $V vector type, $M its mask, $L lanes, $F vectors, $S steps, $P piece, $A packed elements,
 * $N pitch of the results, $R all of these. */
static void put(writer_t *w, const char *text) {
  const o3_thin_t *s = w->thin;
  for (const char *at = text; *at; ++at) {
    if (*at != '$') {
      o3_strbuf_append(w->text, at, 1);
      continue;
    }
    ++at;
    if (*at == 'T') o3_strbuf_puts(w->text, s->type);
    if (*at == 'V') o3_strbuf_printf(w->text, "vector<%dx%s>", s->lanes, s->type);
    if (*at == 'M') o3_strbuf_printf(w->text, "vector<%dxi1>", s->lanes);
    if (*at == 'L') o3_strbuf_printf(w->text, "%d", s->lanes);
    if (*at == 'F') o3_strbuf_printf(w->text, "%d", s->few);
    if (*at == 'S') o3_strbuf_printf(w->text, "%d", s->steps);
    if (*at == 'N') o3_strbuf_printf(w->text, "%d", pitch_of(s));
    if (*at == 'R') o3_strbuf_printf(w->text, "%d", pitch_of(s) * s->few);
    if (*at == 'P') o3_strbuf_printf(w->text, "%d", PIECE);
    if (*at == 'A') o3_strbuf_printf(w->text, "%d", PIECE * s->few);
  }
}

/* The same for one number or two: $i, $j. */
static void put_at(writer_t *w, const char *text, int i, int j) {
  o3_strbuf_t part = O3_STRBUF_INIT;
  for (const char *at = text; *at; ++at) {
    bool number = at[0] == '$' && (at[1] == 'i' || at[1] == 'j');
    if (number)
      o3_strbuf_printf(&part, "%d", *++at == 'i' ? i : j);
    else
      o3_strbuf_append(&part, at, 1);
  }
  if (part.failed)
    w->text->failed = true;
  else
    put(w, part.text);
  o3_strbuf_deinit(&part);
}

static void prologue(writer_t *w) {
  char name[O3_THIN_NAME];
  o3_thin_name(w->thin, name);
  o3_strbuf_printf(w->text, "module {\nfunc.func private @%s", name);
  put(w,
      "(%F: memref<?x$T>, %f: index, %f_few: index, %f_depth: index, %R: memref<?x$T>,\n"
      "%r: index, %r_many: index, %r_depth: index, %C: memref<?x$T>, %c: index, %c_few: index,\n"
      "%c_many: index, %lower: index, %upper: index, %depth: index, %fresh: index)\n"
      "attributes {passthrough = [\"noinline\"]} {\n"
      "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%lanes = arith.constant $L : index\n"
      "%steps = arith.constant $S : index\n%zero = arith.constant dense<0.0> : $V\n"
      "%none = arith.constant 0.0 : $T\n%starts = arith.cmpi ne, %fresh, %c0 : index\n"
      "%count = arith.subi %upper, %lower : index\n");
}

/* ---- Contiguous along the results ---- */

/* |steps| rows times all vectors, added to the results of the whole vectors, then of the last, partial one.
 */
static void add_rows(writer_t *w, int steps, bool masked) {
  put(w, masked ? "scf.for %n = %whole to %upper step %lanes {\n"
                : "scf.for %n = %lower to %whole step %lanes {\n");
  for (int j = 0; j < steps; ++j) {
    put_at(w, "%ra$j = arith.addi %r$j, %n : index\n", 0, j);
    put_at(w,
           masked ? "%x$j = vector.maskedload %R[%ra$j], %mask, %zero : memref<?x$T>, $M, $V into $V\n"
                  : "%x$j = vector.load %R[%ra$j] : memref<?x$T>, $V\n",
           0, j);
  }
  put(w, "%done = arith.subi %n, %lower : index\n");
  for (int i = 0; i < w->thin->few; ++i) {
    put_at(w,
           "%sa$i = arith.addi %sb$i, %done : index\n"
           "%s$i_0 = vector.load %results[%sa$i] : memref<$Rx$T>, $V\n",
           i, 0);
    for (int j = 0; j < steps; ++j) {
      put_at(w, "%s$i_$j", i, j + 1);
      put_at(w, " = vector.fma %x$j, %v$i_$j, %s$i_$j : $V\n", i, j);
    }
    put_at(w, "vector.store %s$i_$j, %results[%sa$i] : memref<$Rx$T>, $V\n", i, steps);
  }
  put(w, "}\n");
}

static void rows(writer_t *w, int steps, const char *loop) {
  put(w, loop);
  for (int j = 0; j < steps; ++j)
    put_at(w,
           "%j$j = arith.constant $j : index\n%k$j = arith.addi %k, %j$j : index\n"
           "%rk$j = arith.muli %k$j, %r_depth : index\n%r$j = arith.addi %r, %rk$j : index\n"
           "%fk$j = arith.muli %k$j, %f_depth : index\n%f$j = arith.addi %f, %fk$j : index\n",
           0, j);
  for (int i = 0; i < w->thin->few; ++i) {
    for (int j = 0; j < steps; ++j)
      put_at(w,
             "%fi$i_$j = arith.addi %f$j, %fo$i : index\n"
             "%e$i_$j = memref.load %F[%fi$i_$j] : memref<?x$T>\n%v$i_$j = vector.broadcast %e$i_$j : $T to "
             "$V\n",
             i, j);
  }
  add_rows(w, steps, false);
  add_rows(w, steps, true);
  put(w, "}\n");
}

/* Results start at zero, or at what there is. */
static void begin_results(writer_t *w) {
  for (int i = 0; i < w->thin->few; ++i)
    put_at(
        w,
        "scf.for %n = %lower to %upper step %lanes {\n%left = arith.subi %upper, %n : index\n"
        "%some = vector.create_mask %left : $M\n%at = arith.addi %cb$i, %n : index\n"
        "%old = vector.maskedload %C[%at], %some, %zero : memref<?x$T>, $M, $V into $V\n"
        "%start = arith.select %starts, %zero, %old : $V\n%done = arith.subi %n, %lower : index\n"
        "%to = arith.addi %sb$i, %done : index\nvector.store %start, %results[%to] : memref<$Rx$T>, $V\n}\n",
        i, 0);
}

static void end_results(writer_t *w) {
  for (int i = 0; i < w->thin->few; ++i)
    put_at(w,
           "scf.for %n = %lower to %upper step %lanes {\n%left = arith.subi %upper, %n : index\n"
           "%some = vector.create_mask %left : $M\n%at = arith.addi %cb$i, %n : index\n"
           "%done = arith.subi %n, %lower : index\n%from = arith.addi %sb$i, %done : index\n"
           "%sum = vector.load %results[%from] : memref<$Rx$T>, $V\n"
           "vector.maskedstore %C[%at], %some, %sum : memref<?x$T>, $M, $V\n}\n",
           i, 0);
}

static void sums(writer_t *w) {
  put(w,
      "%rest = arith.remui %count, %lanes : index\n%whole = arith.subi %upper, %rest : index\n"
      "%mask = vector.create_mask %rest : $M\n"
      "%k_rest = arith.remui %depth, %steps : index\n%k_whole = arith.subi %depth, %k_rest : index\n");
  put(w,
      "%results = memref.alloca() {alignment = 64 : i64} : memref<$Rx$T>\n%pitch = arith.constant $N : "
      "index\n");
  for (int i = 0; i < w->thin->few; ++i)
    put_at(w,
           "%i$i = arith.constant $i : index\n%fo$i = arith.muli %i$i, %f_few : index\n"
           "%sb$i = arith.muli %i$i, %pitch : index\n"
           "%co$i = arith.muli %i$i, %c_few : index\n%cb$i = arith.addi %c, %co$i : index\n",
           i, 0);
  begin_results(w);
  rows(w, w->thin->steps, "scf.for %k = %c0 to %k_whole step %steps {\n");
  rows(w, 1, "scf.for %k = %k_whole to %depth step %c1 {\n");
  end_results(w);
}

/* ---- Contiguous along the sum ---- */

static void pack(writer_t *w) {
  for (int i = 0; i < w->thin->few; ++i)
    put_at(w,
           "%i$i = arith.constant $i : index\n%fo$i = arith.muli %i$i, %f_few : index\n"
           "%fi$i = arith.addi %fk, %fo$i : index\n%po$i = arith.muli %i$i, %piece : index\n"
           "scf.for %k = %c0 to %k_count step %c1 {\n%km = arith.muli %k, %f_depth : index\n"
           "%from = arith.addi %fi$i, %km : index\n%x = memref.load %F[%from] : memref<?x$T>\n"
           "%to = arith.addi %po$i, %k : index\nmemref.store %x, %packed[%to] : memref<$Ax$T>\n}\n"
           "scf.for %k = %k_count to %k_padded step %c1 {\n%to = arith.addi %po$i, %k : index\n"
           "memref.store %none, %packed[%to] : memref<$Ax$T>\n}\n",
           i, 0);
}

static void list(writer_t *w, int steps, const char *format) {
  for (int i = 0; i < w->thin->few; ++i) {
    for (int j = 0; j < steps; ++j) {
      if (i + j) put(w, ", ");
      put_at(w, format, i, j);
    }
  }
}

static void list_types(writer_t *w, int steps) { list(w, steps, "$V"); }

/* The sums of |steps| rows over whole vectors (%a) or, with a mask, the last one (%b). */
static void sum_rows(writer_t *w, int steps, bool masked) {
  o3_strbuf_printf(w->text, "%%%s:%d = scf.for %%k = %s step %%lanes iter_args(", masked ? "b" : "a",
                   steps * w->thin->few, masked ? "%k_whole to %k_count" : "%c0 to %k_whole");
  for (int i = 0; i < w->thin->few; ++i) {
    for (int j = 0; j < steps; ++j) {
      if (i + j) put(w, ", ");
      put_at(w, "%s$i_$j = ", i, j);
      if (masked)
        o3_strbuf_printf(w->text, "%%a#%d", i * steps + j);
      else
        put(w, "%zero");
    }
  }
  put(w, ") -> (");
  list_types(w, steps);
  put(w, ") {\n");
  for (int j = 0; j < steps; ++j)
    put_at(w,
           masked ? "%ra$j = arith.addi %r$j, %k : index\n"
                    "%x$j = vector.maskedload %R[%ra$j], %mask, %zero : memref<?x$T>, $M, $V into $V\n"
                  : "%ra$j = arith.addi %r$j, %k : index\n%x$j = vector.load %R[%ra$j] : memref<?x$T>, $V\n",
           0, j);
  for (int i = 0; i < w->thin->few; ++i) {
    put_at(w, "%pa$i = arith.addi %po$i, %k : index\n%v$i = vector.load %packed[%pa$i] : memref<$Ax$T>, $V\n",
           i, 0);
    for (int j = 0; j < steps; ++j) put_at(w, "%n$i_$j = vector.fma %x$j, %v$i, %s$i_$j : $V\n", i, j);
  }
  put(w, "scf.yield ");
  list(w, steps, "%n$i_$j");
  put(w, " : ");
  list_types(w, steps);
  put(w, "\n}\n");
}

static void dot_rows(writer_t *w, int steps, const char *loop) {
  put(w, loop);
  for (int j = 0; j < steps; ++j)
    put_at(w,
           "%j$j = arith.constant $j : index\n%m$j = arith.addi %n, %j$j : index\n"
           "%rm$j = arith.muli %m$j, %r_many : index\n%rn$j = arith.addi %r, %rm$j : index\n"
           "%r$j = arith.addi %rn$j, %k_lo : index\n%cm$j = arith.muli %m$j, %c_many : index\n"
           "%cn$j = arith.addi %c, %cm$j : index\n",
           0, j);
  sum_rows(w, steps, false);
  sum_rows(w, steps, true);
  for (int i = 0; i < w->thin->few; ++i) {
    for (int j = 0; j < steps; ++j) {
      o3_strbuf_printf(w->text, "%%d%d_%d = vector.reduction <add>, %%b#%d fastmath<reassoc>", i, j,
                       i * steps + j);
      put_at(
          w,
          " : $V into $T\n%co$i_$j = arith.addi %cn$j, %ci$i : index\n"
          "%h$i_$j = memref.load %C[%co$i_$j] : memref<?x$T>\n"
          "%o$i_$j = arith.select %first, %none, %h$i_$j : $T\n%t$i_$j = arith.addf %o$i_$j, %d$i_$j : $T\n"
          "memref.store %t$i_$j, %C[%co$i_$j] : memref<?x$T>\n",
          i, j);
    }
  }
  put(w, "}\n");
}

static void dots(writer_t *w) {
  put(w,
      "%piece = arith.constant $P : index\n%rest = arith.remui %count, %steps : index\n"
      "%whole = arith.subi %upper, %rest : index\n%k_end = arith.maxui %depth, %c1 : index\n"
      "%packed = memref.alloca() {alignment = 64 : i64} : memref<$Ax$T>\n"
      "scf.for %k_lo = %c0 to %k_end step %piece {\n%k_left = arith.subi %depth, %k_lo : index\n"
      "%k_count = arith.minui %k_left, %piece : index\n%k_rest = arith.remui %k_count, %lanes : index\n"
      "%k_whole = arith.subi %k_count, %k_rest : index\n%k_vectors = arith.ceildivui %k_count, %lanes : "
      "index\n"
      "%k_padded = arith.muli %k_vectors, %lanes : index\n%mask = vector.create_mask %k_rest : $M\n"
      "%k_first = arith.cmpi eq, %k_lo, %c0 : index\n%first = arith.andi %starts, %k_first : i1\n"
      "%fm = arith.muli %k_lo, %f_depth : index\n%fk = arith.addi %f, %fm : index\n");
  pack(w);
  for (int i = 0; i < w->thin->few; ++i) put_at(w, "%ci$i = arith.muli %i$i, %c_few : index\n", i, 0);
  dot_rows(w, w->thin->steps, "scf.for %n = %lower to %whole step %steps {\n");
  dot_rows(w, 1, "scf.for %n = %whole to %upper step %c1 {\n");
  put(w, "}\n");
}

char *o3_thin_text(const o3_thin_t *thin) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  writer_t w = {&text, thin};
  prologue(&w);
  if (thin->is_dots) {
    dots(&w);
  } else {
    sums(&w);
  }
  o3_strbuf_puts(&text, "return\n}\n}\n");
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}
