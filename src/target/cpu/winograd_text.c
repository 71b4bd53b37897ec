/* A transform M d M^T is M applied to the columns of d, then to the rows of what came out; one application is
 * a short program of z = k * x + y on vectors (winograd_steps.def), in which the two-fold symmetry of the
 * points 1, -1 and 2, -2 is used. All values of a tile are SSA values: LLVM decides which of the 36 spill. */
#include "target/cpu/winograd_text.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/strbuf.h"
#include "target/cpu/tile_text.h"

enum { MAX_POINTS = 6, MAX_TILE = 4 };
/* Places of a program: its inputs, outputs and temporary values. */
enum { IN = 0, OUT = MAX_POINTS, TEMP = 2 * MAX_POINTS, PLACES = TEMP + 6 };

typedef struct step {
  int tile;
  bool output;
  int to, x, y;
  int factor;
} step_t;

#define D(i) (IN + i)
#define T(i) (OUT + i)
#define S(i) (TEMP + i)
static const step_t STEPS[] = {
#define O3_WINOGRAD_INPUT(tile, to, factor, x, y)  {tile, false, to, x, y, factor},
#define O3_WINOGRAD_OUTPUT(tile, to, factor, x, y) {tile, true, to, x, y, factor},
#include "target/cpu/winograd_steps.def"
#undef O3_WINOGRAD_INPUT
#undef O3_WINOGRAD_OUTPUT
};
#undef D
#undef T
#undef S

static const int FACTORS[] = {-8, -5, -4, -2, 2, 4, 5, 8};

typedef struct writer {
  o3_strbuf_t *text;
  const o3_winograd_function_t *function;
  int points;
  int next; /* number of the next value %v<n> */
} writer_t;

char *o3_winograd_function_name(const o3_winograd_function_t *function) {
  static const char *const STARTS[] = {[O3_TILE_ZERO] = "", [O3_TILE_BIAS] = "_bias", [O3_TILE_OLD] = "_old"};
  o3_strbuf_t name = O3_STRBUF_INIT;
  o3_strbuf_printf(&name, "o3k_f32_winograd%d_%s%s", function->tile, function->output ? "output" : "input",
                   function->output ? STARTS[function->start] : "");
  if (name.failed) o3_strbuf_deinit(&name);
  return name.text;
}

/* ---- Programs ---- */

static int next_vector(writer_t *w) { return w->next++; }

static void write_step(writer_t *w, int to, int factor, int x, int y) {
  int lanes = w->function->lanes;
  if (factor == 1 || factor == -1) {
    o3_strbuf_printf(w->text, "%%v%d = arith.%s %%v%d, %%v%d : vector<%dxf32>\n", to,
                     factor == 1 ? "addf" : "subf", y, x, lanes);
  } else {
    o3_strbuf_printf(w->text, "%%v%d = vector.fma %%f%s%d, %%v%d, %%v%d : vector<%dxf32>\n", to,
                     factor < 0 ? "m" : "p", factor < 0 ? -factor : factor, x, y, lanes);
  }
}

/* |values|: numbers of the inputs; becomes those of the outputs. */
static void apply(writer_t *w, int *values) {
  int places[PLACES];
  for (int i = 0; i < w->points; ++i) places[IN + i] = values[i];
  for (size_t i = 0; i < sizeof(STEPS) / sizeof(STEPS[0]); ++i) {
    const step_t *step = &STEPS[i];
    if (step->tile != w->function->tile || step->output != w->function->output) continue;
    int to = next_vector(w);
    write_step(w, to, step->factor, places[step->x], places[step->y]);
    places[step->to] = to;
  }
  int count = w->function->output ? w->function->tile : w->points;
  for (int i = 0; i < count; ++i) values[i] = places[OUT + i];
}

/* Columns, then rows: |values|[i * MAX_POINTS + j]. */
static void transform(writer_t *w, int *values) {
  int rows = w->function->output ? w->function->tile : w->points;
  for (int j = 0; j < w->points; ++j) {
    int column[MAX_POINTS];
    for (int i = 0; i < w->points; ++i) column[i] = values[i * MAX_POINTS + j];
    apply(w, column);
    for (int i = 0; i < rows; ++i) values[i * MAX_POINTS + j] = column[i];
  }
  for (int i = 0; i < rows; ++i) apply(w, values + (ptrdiff_t)i * MAX_POINTS);
}

static void write_factors(writer_t *w) {
  for (size_t i = 0; i < sizeof(FACTORS) / sizeof(FACTORS[0]); ++i)
    o3_strbuf_printf(w->text, "%%f%s%d = arith.constant dense<%d.0> : vector<%dxf32>\n",
                     FACTORS[i] < 0 ? "m" : "p", FACTORS[i] < 0 ? -FACTORS[i] : FACTORS[i], FACTORS[i],
                     w->function->lanes);
}

/* %i<n> = %|base| + n * %|step|, from n = 0 on. */
static void write_multiples(writer_t *w, const char *result, const char *base, const char *step, int count) {
  o3_strbuf_printf(w->text, "%%%s0 = arith.addi %%%s, %%c0 : index\n", result, base);
  for (int i = 1; i < count; ++i)
    o3_strbuf_printf(w->text, "%%%s%d = arith.addi %%%s%d, %%%s : index\n", result, i, result, i - 1, step);
}

/* ---- Input ---- */

/* A patch that reaches beyond the image is copied, with zeros, into %patch. */
static void write_patch_copy(writer_t *w) {
  int p = w->points, lanes = w->function->lanes;
  o3_strbuf_printf(w->text,
                   "scf.for %%i = %%c0 to %%points step %%c1 {\nscf.for %%j = %%c0 to %%points step %%c1 {\n"
                   "%%r = arith.addi %%top, %%i : index\n%%c = arith.addi %%left, %%j : index\n"
                   "%%r_in = arith.cmpi ult, %%r, %%h : index\n%%c_in = arith.cmpi ult, %%c, %%w : index\n"
                   "%%in = arith.andi %%r_in, %%c_in : i1\n"
                   "%%rm = arith.muli %%r, %%x_row : index\n%%cm = arith.muli %%c, %%width : index\n"
                   "%%from0 = arith.addi %%x, %%rm : index\n%%from = arith.addi %%from0, %%cm : index\n"
                   "%%im = arith.muli %%i, %%patch_row : index\n%%jm = arith.muli %%j, %%width : index\n"
                   "%%to = arith.addi %%im, %%jm : index\n"
                   "scf.for %%l = %%c0 to %%width step %%lanes {\n"
                   "%%froml = arith.addi %%from, %%l : index\n%%tol = arith.addi %%to, %%l : index\n"
                   "%%value = scf.if %%in -> vector<%dxf32> {\n"
                   "%%loaded = vector.load %%X[%%froml] : memref<?xf32>, vector<%dxf32>\n"
                   "scf.yield %%loaded : vector<%dxf32>\n} else {\nscf.yield %%zero : vector<%dxf32>\n}\n"
                   "vector.store %%value, %%patch0[%%tol] : memref<%dxf32>, vector<%dxf32>\n}\n}\n}\n",
                   lanes, lanes, lanes, lanes, p * p * O3_BLOCK_LANES, lanes);
}

static void write_inside_test(writer_t *w) {
  o3_strbuf_puts(w->text,
                 "%bottom = arith.addi %top, %points : index\n%right = arith.addi %left, %points : index\n"
                 "%in0 = arith.cmpi sge, %top, %c0 : index\n%in1 = arith.cmpi sge, %left, %c0 : index\n"
                 "%in2 = arith.cmpi sle, %bottom, %h : index\n%in3 = arith.cmpi sle, %right, %w : index\n"
                 "%in4 = arith.andi %in0, %in1 : i1\n%in5 = arith.andi %in2, %in3 : i1\n"
                 "%inside = arith.andi %in4, %in5 : i1\n");
}

/* %D, %d, %d_row: where the patch is. */
static void write_patch(writer_t *w) {
  o3_strbuf_puts(w->text,
                 "%D, %d, %d_row = scf.if %inside -> (memref<?xf32>, index, index) {\n"
                 "%tm = arith.muli %top, %x_row : index\n%lm = arith.muli %left, %width : index\n"
                 "%at0 = arith.addi %x, %tm : index\n%at = arith.addi %at0, %lm : index\n"
                 "scf.yield %X, %at, %x_row : memref<?xf32>, index, index\n} else {\n");
  write_patch_copy(w);
  o3_strbuf_puts(w->text, "scf.yield %patch, %c0, %patch_row : memref<?xf32>, index, index\n}\n");
}

static void write_input_tile(writer_t *w) {
  int values[MAX_POINTS * MAX_POINTS], p = w->points, lanes = w->function->lanes;
  o3_strbuf_puts(w->text, "%dl = arith.addi %d, %l0 : index\n");
  write_multiples(w, "row", "dl", "d_row", p);
  for (int i = 0; i < p; ++i) {
    for (int j = 0; j < p; ++j) {
      int id = values[i * MAX_POINTS + j] = next_vector(w);
      o3_strbuf_printf(w->text,
                       "%%o%d = arith.constant %d : index\n%%a%d = arith.addi %%row%d, %%o%d : index\n"
                       "%%v%d = vector.load %%D[%%a%d] : memref<?xf32>, vector<%dxf32>\n",
                       id, j * O3_BLOCK_LANES, id, i, id, id, id, lanes);
    }
  }
  transform(w, values);
  o3_strbuf_puts(w->text, "%vl = arith.addi %v, %l0 : index\n");
  write_multiples(w, "point", "vl", "v_point", p * p);
  for (int i = 0; i < p * p; ++i)
    o3_strbuf_printf(w->text, "vector.store %%v%d, %%V[%%point%d] : memref<?xf32>, vector<%dxf32>\n",
                     values[i / p * MAX_POINTS + i % p], i, lanes);
}

static void write_input(writer_t *w) {
  int p = w->points;
  o3_strbuf_printf(w->text,
                   "%%points = arith.constant %d : index\n%%patch_row = arith.constant %d : index\n"
                   "%%zero = arith.constant dense<0.0> : vector<%dxf32>\n"
                   "%%patch0 = memref.alloca() {alignment = 64 : i64} : memref<%dxf32>\n"
                   "%%patch = memref.cast %%patch0 : memref<%dxf32> to memref<?xf32>\n",
                   p, p * O3_BLOCK_LANES, w->function->lanes, p * p * O3_BLOCK_LANES, p * p * O3_BLOCK_LANES);
  write_inside_test(w);
  write_patch(w);
  o3_strbuf_puts(w->text, "scf.for %l0 = %c0 to %width step %lanes {\n");
  write_input_tile(w);
  o3_strbuf_puts(w->text, "}\n");
}

/* ---- Output ---- */

/* %s: what is added to each output, unless that is Y's own old value. */
static void write_start(writer_t *w) {
  int lanes = w->function->lanes;
  if (w->function->start != O3_TILE_BIAS) return;
  o3_strbuf_printf(w->text,
                   "%%bl = arith.addi %%b, %%l0 : index\n"
                   "%%s = vector.load %%B[%%bl] : memref<?xf32>, vector<%dxf32>\n",
                   lanes);
}

static void write_pixel(writer_t *w, int u, int v, int value) {
  int lanes = w->function->lanes, id = next_vector(w);
  o3_strbuf_printf(w->text, "%%o%d = arith.constant %d : index\n%%a%d = arith.addi %%yr%d, %%o%d : index\n",
                   id, v * O3_BLOCK_LANES, id, u, id);
  if (w->function->start == O3_TILE_OLD)
    o3_strbuf_printf(w->text, "%%s%d = vector.load %%Y[%%a%d] : memref<?xf32>, vector<%dxf32>\n", id, id,
                     lanes);
  if (w->function->start == O3_TILE_OLD)
    o3_strbuf_printf(w->text, "%%v%d = arith.addf %%v%d, %%s%d : vector<%dxf32>\n", id, value, id, lanes);
  if (w->function->start == O3_TILE_BIAS)
    o3_strbuf_printf(w->text, "%%v%d = arith.addf %%v%d, %%s : vector<%dxf32>\n", id, value, lanes);
  o3_strbuf_printf(w->text, "vector.store %%v%d, %%Y[%%a%d] : memref<?xf32>, vector<%dxf32>\n",
                   w->function->start == O3_TILE_ZERO ? value : id, id, lanes);
}

static void write_pixels(writer_t *w, const int *values) {
  int m = w->function->tile;
  for (int u = 0; u < m; ++u) {
    o3_strbuf_printf(w->text, "scf.if %%row_in%d {\n", u);
    for (int v = 0; v < m; ++v) {
      o3_strbuf_printf(w->text, "scf.if %%column_in%d {\n", v);
      write_pixel(w, u, v, values[u * MAX_POINTS + v]);
      o3_strbuf_puts(w->text, "}\n");
    }
    o3_strbuf_puts(w->text, "}\n");
  }
}

static void write_output(writer_t *w) {
  int values[MAX_POINTS * MAX_POINTS], p = w->points, m = w->function->tile;
  for (int i = 0; i < m; ++i)
    o3_strbuf_printf(w->text,
                     "%%i%d = arith.constant %d : index\n%%row_in%d = arith.cmpi slt, %%i%d, %%rows : index\n"
                     "%%column_in%d = arith.cmpi slt, %%i%d, %%columns : index\n",
                     i, i, i, i, i, i);
  o3_strbuf_puts(w->text,
                 "scf.for %l0 = %c0 to %width step %lanes {\n%pl = arith.addi %p, %l0 : index\n"
                 "%yl = arith.addi %y, %l0 : index\n");
  write_multiples(w, "point", "pl", "p_point", p * p);
  write_multiples(w, "yr", "yl", "y_row", m);
  for (int i = 0; i < p * p; ++i) {
    int id = values[i / p * MAX_POINTS + i % p] = next_vector(w);
    o3_strbuf_printf(w->text, "%%v%d = vector.load %%P[%%point%d] : memref<?xf32>, vector<%dxf32>\n", id, i,
                     w->function->lanes);
  }
  transform(w, values);
  write_start(w);
  write_pixels(w, values);
  o3_strbuf_puts(w->text, "}\n");
}

/* ---- Functions ---- */

static const char INPUT_ARGUMENTS[] =
    "%X: memref<?xf32>, %x: index, %x_row: index, %h: index, %w: index, %top: index, %left: index,\n"
    "%V: memref<?xf32>, %v: index, %v_point: index";
static const char OUTPUT_ARGUMENTS[] =
    "%P: memref<?xf32>, %p: index, %p_point: index, %Y: memref<?xf32>, %y: index, %y_row: index,\n"
    "%B: memref<?xf32>, %b: index, %rows: index, %columns: index";

char *o3_winograd_function_text(const o3_winograd_function_t *function) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  writer_t w = {.text = &text, .function = function, .points = function->tile + 2};
  O3_ASSERT(w.points <= MAX_POINTS, "the tiles of analysis/winograd.h");
  char *name = o3_winograd_function_name(function);
  if (!name) return NULL;
  o3_strbuf_printf(&text,
                   "module {\nfunc.func private @%s(%s)\nattributes {passthrough = [\"noinline\"]} {\n"
                   "%%c0 = arith.constant 0 : index\n%%c1 = arith.constant 1 : index\n"
                   "%%width = arith.constant %d : index\n%%lanes = arith.constant %d : index\n",
                   name, function->output ? OUTPUT_ARGUMENTS : INPUT_ARGUMENTS, O3_BLOCK_LANES,
                   function->lanes);
  free(name);
  write_factors(&w);
  if (function->output) {
    write_output(&w);
  } else {
    write_input(&w);
  }
  o3_strbuf_puts(&text, "return\n}\n}\n");
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}
