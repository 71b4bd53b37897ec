#include "target/nvptx/product_text.h"

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

const char *o3_gemm_type(o3_gpu_element_t element) { return o3_gpu_element_info(element)->mlir; }

/* ---- Tiles ---- */

int o3_gemm_told(o3_kernel_text_t *t, const o3_gemm_t *g) {
  return o3_kt_value(t, "llvm.bitcast %%arg%d : i32 to i32", 3 + g->num_extras);
}

int o3_gemm_told_tiles(o3_kernel_text_t *t, int told, int rows) {
  return o3_kt_op_const(t, "divui", o3_kt_op_const(t, "addi", told, rows - 1), rows);
}

int64_t o3_gemm_tiles(const o3_gemm_t *g, const o3_gemm_tiling_t *tiling) {
  return (g->rows_at_run_time ? 1 : ceil_div(g->m, tiling->rows)) * ceil_div(g->n, tiling->columns) *
         g->batch[0] * g->batch[1];
}

/* Where tile |at| of a batch lies, which is |row_tiles| (value) tiles high. */
static o3_gemm_place_t place_in_batch(o3_kernel_text_t *t, const o3_gemm_t *g, const o3_gemm_tiling_t *tiling,
                                      int row_tiles, int at) {
  int64_t group = tiling->group_rows * ceil_div(g->n, tiling->columns);
  int first = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "divui", at, group), tiling->group_rows);
  int left = o3_kt_op(t, "subi", row_tiles, first);
  int rows = o3_kt_op_const(t, "minsi", left, tiling->group_rows);
  int in = o3_kt_op_const(t, "remui", at, group);
  int row = o3_kt_op(t, "addi", first, o3_kt_op(t, "remui", in, rows));
  return (o3_gemm_place_t){
      .row = o3_kt_op_const(t, "muli", row, tiling->rows),
      .column = o3_kt_op_const(t, "muli", o3_kt_op(t, "divui", in, rows), tiling->columns)};
}

static o3_gemm_place_t place_of_rows(o3_kernel_text_t *t, const o3_gemm_t *g, const o3_gemm_tiling_t *tiling,
                                     int tile) {
  int rows = o3_gemm_told(t, g), zero = o3_kt_i32(t, 0);
  int tiles = o3_gemm_told_tiles(t, rows, tiling->rows);
  o3_gemm_place_t place = place_in_batch(t, g, tiling, tiles, tile);
  place.batch[0] = place.batch[1] = zero;
  place.rows = rows;
  return place;
}

o3_gemm_place_t o3_gemm_tile_place(o3_kernel_text_t *t, const o3_gemm_t *g, const o3_gemm_tiling_t *tiling,
                                   int tile) {
  if (g->rows_at_run_time) return place_of_rows(t, g, tiling, tile);
  int64_t row_tiles = ceil_div(g->m, tiling->rows), column_tiles = ceil_div(g->n, tiling->columns);
  int64_t per_batch = row_tiles * column_tiles;
  int batch = o3_kt_op_const(t, "divui", tile, per_batch), at = o3_kt_op_const(t, "remui", tile, per_batch);
  o3_gemm_place_t place = place_in_batch(t, g, tiling, o3_kt_i32(t, row_tiles), at);
  place.batch[0] = o3_kt_op_const(t, "divui", batch, g->batch[1]);
  place.batch[1] = o3_kt_op_const(t, "remui", batch, g->batch[1]);
  return place;
}

int o3_gemm_element_index(o3_kernel_text_t *t, const int64_t *strides, const int at[O3_GEMM_DIMS]) {
  int index = o3_kt_op_const(t, "muli", at[O3_GEMM_COLUMN], strides[O3_GEMM_COLUMN]);
  for (int i = 0; i < O3_GEMM_COLUMN; ++i) {
    if (strides[i]) index = o3_kt_op(t, "addi", index, o3_kt_op_const(t, "muli", at[i], strides[i]));
  }
  return index;
}

/* ---- The epilogue ---- */

static bool reads_pairs(const o3_gemm_t *g, const o3_gemm_extra_t *e) {
  bool even = g->n % 2 == 0;
  for (int i = 0; i < O3_GEMM_COLUMN; ++i) even &= e->strides[i] % 2 == 0;
  return even && e->strides[O3_GEMM_COLUMN] == 1;
}

static void load_pair(o3_kernel_text_t *t, const o3_gemm_extra_t *e, int at, int values[2]) {
  const char *type = o3_gemm_type(e->element);
  int pair = o3_kt_value(t, "llvm.load %%v%d {alignment = %d : i64} : !llvm.ptr<1> -> vector<2x%s>", at,
                         2 * o3_gpu_element_info(e->element)->bytes, type);
  for (int i = 0; i < 2; ++i)
    values[i] = o3_kt_value(t, "vector.extract %%v%d[%d] : %s from vector<2x%s>", pair, i, type, type);
}

/* Of an odd number of columns the last has no next one, and is read twice. */
static int next_index(o3_kernel_text_t *t, const o3_gemm_t *g, const o3_gemm_extra_t *e, int index,
                      int column) {
  int64_t step = e->strides[O3_GEMM_COLUMN];
  if (g->n % 2 == 0) return o3_kt_op_const(t, "addi", index, step);
  int more = o3_kt_cmp_const(t, "slt", column, g->n - 1);
  int by = o3_kt_select(t, more, o3_kt_i32(t, step), o3_kt_i32(t, 0), "i32");
  return o3_kt_op(t, "addi", index, by);
}

static void load_extra(o3_kernel_text_t *t, const o3_gemm_t *g, int number, const int at[O3_GEMM_DIMS],
                       int values[2]) {
  const o3_gemm_extra_t *e = &g->extras[number];
  const char *type = o3_gemm_type(e->element);
  int index = o3_gemm_element_index(t, e->strides, at);
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8", 2 + number);
  int first = o3_kt_global(t, base, index, type);
  if (reads_pairs(g, e)) {
    load_pair(t, e, first, values);
    return;
  }
  values[0] = values[1] = o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<1> -> %s", first, type);
  if (!e->strides[O3_GEMM_COLUMN]) return;
  int next = o3_kt_global(t, base, next_index(t, g, e, index, at[O3_GEMM_COLUMN]), type);
  values[1] = o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<1> -> %s", next, type);
}

void o3_gemm_load_extras(o3_kernel_text_t *t, const o3_gemm_t *g, const int at[O3_GEMM_DIMS],
                         o3_gemm_pair_extras_t *extras) {
  for (int i = 0; i < g->num_extras; ++i) load_extra(t, g, i, at, extras->values[i]);
}

int o3_gemm_finish(o3_kernel_text_t *t, const o3_gemm_t *g, const char *kernel, int sum,
                   const o3_gemm_pair_extras_t *extras, int which) {
  int result = o3_kt_name(t);
  o3_strbuf_printf(&t->out, "%%v%d = llvm.call @%s_epilogue(%%v%d", result, kernel, sum);
  for (int i = 0; i < g->num_extras; ++i) o3_strbuf_printf(&t->out, ", %%v%d", extras->values[i][which]);
  o3_strbuf_puts(&t->out, ") : (f32");
  for (int i = 0; i < g->num_extras; ++i)
    o3_strbuf_printf(&t->out, ", %s", o3_gemm_type(g->extras[i].element));
  o3_kt_line(t, ") -> %s", o3_gemm_type(g->out));
  return result;
}

void o3_gemm_finish_pair(o3_kernel_text_t *t, const o3_gemm_t *g, const char *kernel, const int sums[2],
                         const o3_gemm_pair_extras_t *extras, int results[2]) {
  for (int i = 0; i < 2; ++i) results[i] = o3_gemm_finish(t, g, kernel, sums[i], extras, i);
}

void o3_gemm_write_epilogue(o3_kernel_text_t *t, const o3_gemm_t *g, const char *kernel) {
  const char *out = o3_gemm_type(g->out);
  int sum = o3_kt_name(t), extras[O3_GEMM_MAX_EXTRAS], result = sum;
  o3_strbuf_printf(&t->out, "llvm.func internal @%s_epilogue(%%v%d: f32", kernel, sum);
  for (int i = 0; i < g->num_extras; ++i) {
    extras[i] = o3_kt_name(t);
    o3_strbuf_printf(&t->out, ", %%v%d: %s", extras[i], o3_gemm_type(g->extras[i].element));
  }
  o3_kt_line(t, ") -> %s attributes {always_inline} {", out);
  if (g->epilogue) {
    result = g->epilogue(t, g->epilogue_context, sum, extras);
  } else if (g->out != O3_GPU_F32) {
    result = o3_kt_value(t, "arith.truncf %%v%d : f32 to %s", sum, out);
  }
  o3_kt_line(t, "llvm.return %%v%d : %s\n}", result, out);
}
