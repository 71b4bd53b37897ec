#include "target/nvptx/mma_unit.h"

#include <stdio.h>

/* ---- Instructions ---- */

static void operands_text(o3_kernel_text_t *t, int first, int count) {
  o3_strbuf_puts(&t->out, " {");
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s$%d", i ? ", " : "", first + i);
  o3_strbuf_puts(&t->out, "}");
}

static void values_text(o3_kernel_text_t *t, int count, const int *values) {
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%%v%d, ", values[i]);
}

/* An mma.sync with |counts| registers of A, B and the sums. It has no side effects: it may move. */
static void issue(o3_kernel_text_t *t, const char *instruction, const int counts[3], const int *a,
                  const int *b, int *sums) {
  int result = o3_kt_name(t), count = counts[2];
  o3_strbuf_printf(&t->out, "%%v%d = llvm.inline_asm \"%s", result, instruction);
  operands_text(t, 0, count);
  o3_strbuf_puts(&t->out, ",");
  operands_text(t, count, counts[0]);
  o3_strbuf_puts(&t->out, ",");
  operands_text(t, count + counts[0], counts[1]);
  o3_strbuf_puts(&t->out, ",");
  operands_text(t, 0, count);
  o3_strbuf_puts(&t->out, ";\", \"");
  for (int i = 0; i < count; ++i) o3_strbuf_puts(&t->out, "=f,");
  for (int i = 0; i < counts[0] + counts[1]; ++i) o3_strbuf_puts(&t->out, "r,");
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s%d", i ? "," : "", i);
  o3_strbuf_puts(&t->out, "\" ");
  values_text(t, counts[0], a);
  values_text(t, counts[1], b);
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s%%v%d", i ? ", " : "", sums[i]);
  o3_strbuf_puts(&t->out, " : (");
  for (int i = 0; i < counts[0] + counts[1]; ++i) o3_strbuf_puts(&t->out, "i32, ");
  for (int i = 0; i < count; ++i) o3_strbuf_puts(&t->out, i ? ", f32" : "f32");
  o3_kt_line(t, ") -> !sums%d", count);
  for (int i = 0; i < count; ++i) sums[i] = o3_kt_member(t, count, result, i);
}

/* 32 bytes of k a step: 16 halves, or 8 words. B has two registers for every 8 columns. */
static void multiply_ampere(o3_kernel_text_t *t, o3_gpu_element_t element, bool b_by_rows, const int *a,
                            const int *b, int *sums) {
  enum { STEP = 32 };
  char instruction[64];
  const o3_gpu_element_info_t *info = o3_gpu_element_info(element);
  (void)b_by_rows;
  snprintf(instruction, sizeof(instruction), "mma.sync.aligned.m16n8k%d.row.col.f32.%s.%s.f32",
           STEP / info->bytes, info->ptx, info->ptx);
  for (int i = 0; i < 2; ++i) issue(t, instruction, (int[]){4, 2, 4}, a, &b[2 * i], &sums[4 * i]);
}

/* Half a step each; the fragments are the same. */
static void multiply_1688(o3_kernel_text_t *t, o3_gpu_element_t element, bool b_by_rows, const int *a,
                          const int *b, int *sums) {
  (void)element, (void)b_by_rows;
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 2; ++i)
      issue(t, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", (int[]){2, 1, 4}, &a[2 * half],
            &b[2 * i + half], &sums[4 * i]);
  }
}

/* Four quarters of a warp multiply 8 x 8 each: 16 x 16. */
static void multiply_884(o3_kernel_text_t *t, o3_gpu_element_t element, bool b_by_rows, const int *a,
                         const int *b, int *sums) {
  const char *instruction = b_by_rows ? "mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32"
                                      : "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32";
  (void)element;
  for (int i = 0; i < 4; ++i) issue(t, instruction, (int[]){2, 2, 8}, &a[2 * i], &b[2 * i], sums);
}

/* A thread has 4 rows and 4 columns; a step is 4 of k, which are the members of A's loads, and of B's
 * by columns. */
static void multiply_scalars(o3_kernel_text_t *t, o3_gpu_element_t element, bool b_by_rows, const int *a,
                             const int *b, int *sums) {
  enum { ROWS = 4, COLUMNS = 4, DEPTH = 4 };
  (void)element;
  for (int k = 0; k < DEPTH; ++k) {
    for (int column = 0; column < COLUMNS; ++column) {
      int y = b_by_rows ? b[COLUMNS * k + column] : b[DEPTH * column + k];
      for (int row = 0; row < ROWS; ++row) {
        int *sum = &sums[2 * (ROWS * (column / 2) + row) + column % 2];
        *sum = o3_kt_value(t, "math.fma %%v%d, %%v%d, %%v%d : f32", a[DEPTH * row + k], y, *sum);
      }
    }
  }
}

/* ---- Units ---- */

#define LINES_AND_CHUNKS .num_loads = 1, .line = {{{0, 15, 0}}}, .chunk = {{{4, 1, 0}}}
/* Matrices of 8 lines and a chunk: the upper and the lower lines of a chunk, then those of the next. */
#define MATRICES_A      .load = O3_MMA_LDMATRIX, LINES_AND_CHUNKS
#define MATRICES_B_ROWS .load = O3_MMA_LDMATRIX_TRANS, LINES_AND_CHUNKS
/* Both chunks of 8 columns, then those of the next 8. */
#define MATRICES_B \
  .load = O3_MMA_LDMATRIX, .num_loads = 1, .line = {{{0, 7, 0}, {4, 1, 3}}}, .chunk = {{{3, 1, 0}}}
/* Sums of m16n8: a pair in a row of each group of 4 lanes and one 8 below it; 8 columns, then the next 8. */
#define SUMS_OF_16                                                                              \
  .num_pairs = 4, .row = {{{2, 7, 0}}}, .column = {{{0, 3, 1}}}, .pair_rows = 2, .row_step = 8, \
  .column_at = {0, 8}

static const o3_mma_unit_t AMPERE = {.name = "sm80",
                                     .rows = 16,
                                     .columns = 16,
                                     .depth = 16,
                                     SUMS_OF_16,
                                     .fragments = {{MATRICES_A}, {MATRICES_B}, {MATRICES_B_ROWS}},
                                     .multiply = multiply_ampere};

/* A matrix of halves is one of words with half as many columns. Those of B by rows are not turned: a lane
 * reads the words of its column, 4 rows apart. */
static const o3_mma_unit_t AMPERE_WORDS = {.name = "sm80",
                                           .rows = 16,
                                           .columns = 16,
                                           .depth = 8,
                                           SUMS_OF_16,
                                           .fragments = {{MATRICES_A, .rounds = true},
                                                         {MATRICES_B, .rounds = true},
                                                         {.load = O3_MMA_LDS32,
                                                          .num_loads = 4,
                                                          .line = {{{0, 3, 0}}},
                                                          .chunk = {{{4, 1, 0}}},
                                                          .byte = {{{2, 3, 2}}},
                                                          .loads = {{0, 0}, {4, 0}, {0, 2}, {4, 2}},
                                                          .order = {{{0, 3, 1}}},
                                                          .rounds = true}},
                                           .multiply = multiply_ampere};

static const o3_mma_unit_t TURING = {.name = "sm75",
                                     .rows = 16,
                                     .columns = 16,
                                     .depth = 16,
                                     SUMS_OF_16,
                                     .fragments = {{MATRICES_A}, {MATRICES_B}, {MATRICES_B_ROWS}},
                                     .multiply = multiply_1688};

/* Which rows and columns the quarters of a warp multiply is free: these let 8 lanes read 8 lines. */
static const o3_mma_unit_t VOLTA = {.name = "sm70",
                                    .rows = 16,
                                    .columns = 16,
                                    .depth = 16,
                                    .num_pairs = 4,
                                    .row = {{{0, 1, 0}, {2, 1, 2}, {4, 1, 3}}},
                                    .column = {{{1, 1, 1}, {3, 1, 2}}},
                                    .pair_rows = 2,
                                    .row_step = 2,
                                    .column_at = {0, 8},
                                    .fragments = {{.load = O3_MMA_LDS128,
                                                   .num_loads = 2,
                                                   .line = {{{0, 7, 0}, {4, 1, 3}}},
                                                   .loads = {{0, 0}, {0, 1}}},
                                                  {.load = O3_MMA_LDS128,
                                                   .num_loads = 2,
                                                   .line = {{{0, 3, 0}, {3, 1, 2}, {4, 1, 3}}},
                                                   .loads = {{0, 0}, {0, 1}}},
                                                  {.load = O3_MMA_LDS64,
                                                   .num_loads = 4,
                                                   .line = {{{0, 3, 0}}},
                                                   .chunk = {{{4, 1, 0}}},
                                                   .byte = {{{3, 1, 3}}},
                                                   .loads = {{0, 0}, {4, 0}, {8, 0}, {12, 0}}}},
                                    .staged = {.order = {{{0, 1, 0}, {2, 3, 1}}}},
                                    .multiply = multiply_884};

/* 4 x 8 lanes of 4 rows, 4 apart, and 4 columns. */
static const o3_mma_unit_t SCALARS = {.name = "fma",
                                      .rows = 16,
                                      .columns = 32,
                                      .depth = 4,
                                      .num_pairs = 8,
                                      .row = {{{3, 3, 0}}},
                                      .column = {{{0, 7, 2}}},
                                      .pair_rows = 4,
                                      .row_step = 4,
                                      .column_at = {0, 2},
                                      .fragments = {{.load = O3_MMA_LDS128,
                                                     .num_loads = 4,
                                                     .line = {{{3, 3, 0}}},
                                                     .loads = {{0, 0}, {4, 0}, {8, 0}, {12, 0}},
                                                     .as_floats = true},
                                                    {.load = O3_MMA_LDS128,
                                                     .num_loads = 4,
                                                     .line = {{{0, 7, 2}}},
                                                     .loads = {{0, 0}, {1, 0}, {2, 0}, {3, 0}},
                                                     .order = {{{2, 7, 0}}},
                                                     .as_floats = true},
                                                    {.load = O3_MMA_LDS128,
                                                     .num_loads = 4,
                                                     .chunk = {{{0, 7, 0}}},
                                                     .loads = {{0, 0}, {1, 0}, {2, 0}, {3, 0}},
                                                     .as_floats = true}},
                                      .multiply = multiply_scalars};

enum { VOLTA_CARDS = 70, TURING_CARDS = 75, AMPERE_CARDS = 80 };

const o3_mma_unit_t *o3_mma_unit(int sm, o3_gpu_element_t element) {
  if (element == O3_GPU_F32) return &SCALARS;
  if (element == O3_GPU_TF32) return sm >= AMPERE_CARDS ? &AMPERE_WORDS : NULL;
  if (element == O3_GPU_BF16) return sm >= AMPERE_CARDS ? &AMPERE : NULL;
  if (element != O3_GPU_F16) return NULL;
  return sm >= AMPERE_CARDS ? &AMPERE : sm >= TURING_CARDS ? &TURING : sm >= VOLTA_CARDS ? &VOLTA : NULL;
}

/* ---- Blocks ---- */

static int chunks_of(const o3_mma_block_t *b) { return b->line_bytes / O3_MMA_CHUNK; }

int o3_mma_block_bytes(const o3_mma_block_t *b) { return b->lines * b->line_bytes * b->panels; }

static o3_mma_bits_t order_of(const o3_mma_block_t *b) {
  static const o3_mma_bits_t LAST = {{{0, 7, 0}}};
  return b->fragment->order.parts[0].mask ? b->fragment->order : LAST;
}

/* Lines of 64 bytes share the banks by two. */
static int shared_by(const o3_mma_block_t *b) { return b->line_bytes < 8 * O3_MMA_CHUNK; }

static int shifted(o3_kernel_text_t *t, const char *op, int value, int by) {
  return by ? o3_kt_op_const(t, op, value, by) : value;
}

int o3_mma_bits(o3_kernel_text_t *t, const o3_mma_bits_t *bits, int lane) {
  int sum = -1;
  for (int i = 0; i < O3_MMA_MAX_BITS; ++i) {
    if (!bits->parts[i].mask) continue;
    int part = shifted(t, "shrui", lane, bits->parts[i].right);
    part = shifted(t, "shli", o3_kt_op_const(t, "andi", part, bits->parts[i].mask), bits->parts[i].left);
    sum = sum < 0 ? part : o3_kt_op(t, "addi", sum, part);
  }
  return sum < 0 ? o3_kt_i32(t, 0) : sum;
}

/* What the chunks of |line| are reordered by. */
static int key_of(o3_kernel_text_t *t, const o3_mma_block_t *b, int line) {
  const o3_mma_bits_t order = order_of(b);
  return shifted(t, "shrui", o3_mma_bits(t, &order, line), shared_by(b));
}

static int key_of_number(const o3_mma_block_t *b, int line) {
  const o3_mma_bits_t order = order_of(b);
  int key = 0;
  for (int i = 0; i < O3_MMA_MAX_BITS; ++i)
    key += ((line >> order.parts[i].right) & order.parts[i].mask) << order.parts[i].left;
  return key >> shared_by(b);
}

/* The byte of the line of |chunk|'s panel, without the chunk; |chunk| becomes one of the panel. */
static int line_byte(o3_kernel_text_t *t, const o3_mma_block_t *b, int line, int *chunk) {
  int at = o3_kt_op_const(t, "muli", line, b->line_bytes);
  if (b->panels == 1) return at;
  int panel = o3_kt_op_const(t, "divui", *chunk, chunks_of(b));
  *chunk = o3_kt_op_const(t, "remui", *chunk, chunks_of(b));
  return o3_kt_op(t, "addi", at, o3_kt_op_const(t, "muli", panel, (int64_t)b->lines * b->line_bytes));
}

int o3_mma_chunk_byte(o3_kernel_text_t *t, const o3_mma_block_t *b, int line, int chunk) {
  int at = line_byte(t, b, line, &chunk), place = o3_kt_op(t, "xori", chunk, key_of(t, b, line));
  return o3_kt_op(t, "addi", at, o3_kt_op_const(t, "muli", place, O3_MMA_CHUNK));
}

/* ---- Reading ---- */

/* The order is linear in the bits of the line (exclusive or), and what a lane, a warp and a step add to a
 * line or a chunk are different bits: so what a step adds only picks one of the offsets. */
o3_mma_reader_t o3_mma_reader(o3_kernel_text_t *t, const o3_mma_block_t *b, int lane, int line, int chunk) {
  o3_mma_reader_t reader = {.block = b};
  line = o3_kt_op(t, "addi", line, o3_mma_bits(t, &b->fragment->line, lane));
  chunk = o3_kt_op(t, "addi", chunk, o3_mma_bits(t, &b->fragment->chunk, lane));
  int at = o3_kt_op(t, "addi", line_byte(t, b, line, &chunk), o3_mma_bits(t, &b->fragment->byte, lane));
  int place = o3_kt_op(t, "xori", chunk, key_of(t, b, line));
  for (int i = 0; i < chunks_of(b); ++i) {
    int chosen = o3_kt_op_const(t, "muli", o3_kt_op_const(t, "xori", place, i), O3_MMA_CHUNK);
    reader.offsets[i] = o3_kt_op(t, "addi", at, chosen);
  }
  return reader;
}

static void read_matrices(o3_kernel_text_t *t, o3_mma_load_t load, int at, int values[4]) {
  int all =
      o3_kt_value(t,
                  "nvvm.ldmatrix %%v%d {num = 4 : i32, layout = #nvvm.mma_layout<%s>, shape = "
                  "#nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : "
                  "(!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>",
                  at, load == O3_MMA_LDMATRIX ? "row" : "col");
  for (int i = 0; i < 4; ++i)
    values[i] = o3_kt_value(t, "llvm.extractvalue %%v%d[%d] : !llvm.struct<(i32, i32, i32, i32)>", all, i);
}

static void read_words(o3_kernel_text_t *t, const o3_mma_fragment_t *f, int at, int count, int *values) {
  const char *type = f->as_floats ? "f32" : "i32";
  if (count == 1) {
    *values = o3_kt_value(t, "llvm.load %%v%d {alignment = 4 : i64} : !llvm.ptr<3> -> %s", at, type);
    return;
  }
  int all = o3_kt_value(t, "llvm.load %%v%d {alignment = %d : i64} : !llvm.ptr<3> -> vector<%dx%s>", at,
                        4 * count, count, type);
  for (int i = 0; i < count; ++i)
    values[i] = o3_kt_value(t, "vector.extract %%v%d[%d] : %s from vector<%dx%s>", all, i, type, count, type);
}

static int words_of(const o3_mma_fragment_t *f) {
  static const int WORDS[] = {4, 4, 1, 2, 4};
  return WORDS[f->load];
}

static void read_one(o3_kernel_text_t *t, const o3_mma_fragment_t *f, int at, int *values) {
  if (f->load == O3_MMA_LDMATRIX || f->load == O3_MMA_LDMATRIX_TRANS)
    read_matrices(t, f->load, at, values);
  else
    read_words(t, f, at, words_of(f), values);
}

/* Products would cut the rest off, towards zero. */
static void round_words(o3_kernel_text_t *t, int count, int *values) {
  for (int i = 0; i < count; ++i)
    values[i] = o3_kt_value(t, "llvm.inline_asm \"cvt.rna.tf32.f32 $0, $1;\", \"=r,r\" %%v%d : (i32) -> i32",
                            values[i]);
}

void o3_mma_read(o3_kernel_text_t *t, const o3_mma_reader_t *reader, int base, int line, int chunk,
                 int values[O3_MMA_MAX_VALUES]) {
  const o3_mma_block_t *b = reader->block;
  const o3_mma_fragment_t *f = b->fragment;
  int words = words_of(f), chunks = chunks_of(b);
  for (int i = 0; i < f->num_loads; ++i) {
    int l = line + f->loads[i].line, c = chunk + f->loads[i].chunk;
    int at = o3_kt_shared(t, base, reader->offsets[(c % chunks) ^ key_of_number(b, l)]);
    int further = l * b->line_bytes + c / chunks * b->lines * b->line_bytes;
    if (further) at = o3_kt_shared(t, at, o3_kt_i32(t, further));
    read_one(t, f, at, &values[words * i]);
  }
  if (f->rounds) round_words(t, words * f->num_loads, values);
}
