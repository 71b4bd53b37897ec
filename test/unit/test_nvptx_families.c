/* Families of fast kernels read the ops of a kernel: what they take becomes valid text with its buffers
 * numbered as the arguments, what they do not take is refused with a reason. */
#include <stdio.h>
#include <string.h>

#include "bank_simulator.h"
#include "ir/context.h"
#include "schedule/gpu.h"
#include "target/nvptx/attention_kernel.h"
#include "target/nvptx/fast_kernels.h"
#include "unit.h"

enum { MAX_OPS = 16, MAX_ARGUMENTS = 8 };

#define MAPS                                                                     \
  "#ij = affine_map<(i, j) -> (i, j)>\n#j = affine_map<(i, j) -> (j)>\n"         \
  "#i = affine_map<(i, j) -> (i)>\n#one = affine_map<(i) -> (i)>\n"              \
  "#a = affine_map<(i, j, k) -> (i, k)>\n#b = affine_map<(i, j, k) -> (k, j)>\n" \
  "#c = affine_map<(i, j, k) -> (i, j)>\n"

#define FILL(map, iterators, out, type, value)                                                        \
  "linalg.generic {indexing_maps = [" map "], iterator_types = [" iterators "]} outs(" out " : " type \
  ") {\n^bb0(%o: f32):\n%z = arith.constant " value " : f32\nlinalg.yield %z : f32\n}\n"

#define PRODUCT(b, types)                                                \
  "linalg.generic {indexing_maps = [#a, " b                              \
  ", #c], iterator_types = [\"parallel\", "                              \
  "\"parallel\", \"reduction\"]} ins(%x, %w : " types                    \
  ") outs(%s : memref<96x64xf32>) {\n"                                   \
  "^bb0(%l: f16, %r: f16, %o: f32):\n%lf = arith.extf %l : f16 to f32\n" \
  "%rf = arith.extf %r : f16 to f32\n%m = arith.mulf %lf, %rf : f32\n"   \
  "%y = arith.addf %m, %o : f32\nlinalg.yield %y : f32\n}\n"

#define BIAS(out_map)                                                                               \
  "linalg.generic {indexing_maps = [#ij, #j, " out_map                                              \
  "], iterator_types = [\"parallel\", "                                                             \
  "\"parallel\"]} ins(%s, %v : memref<96x64xf32>, memref<64xf16>) outs(%d : memref<96x64xf16>) {\n" \
  "^bb0(%l: f32, %r: f16, %o: f16):\n%rf = arith.extf %r : f16 to f32\n"                            \
  "%y = arith.addf %l, %rf : f32\n%t = math.tanh %y : f32\n%h = arith.truncf %t : f32 to f16\n"     \
  "linalg.yield %h : f16\n}\n"

static const char GEMM[] = MAPS
    "module {\nfunc.func @k(%w: memref<128x64xf16>, %v: memref<64xf16>, %x: memref<96x128xf16>, %d: "
    "memref<96x64xf16>) "
    "{\n"
    "%s = memref.alloc() : memref<96x64xf32>\n" FILL("#ij", "\"parallel\", \"parallel\"", "%s",
                                                     "memref<96x64xf32>", "0.0")
        PRODUCT("#b", "memref<96x128xf16>, memref<128x64xf16>") BIAS("#ij") "return\n}\n}\n";

/* The sums and what the kernel makes of another argument meet in one op. */
static const char BOTH[] = MAPS
    "module {\nfunc.func @k(%w: memref<128x64xf16>, %v: memref<96x64xf16>, %x: memref<96x128xf16>, %d: "
    "memref<96x64xf16>) {\n"
    "%s = memref.alloc() : memref<96x64xf32>\n%t = memref.alloc() : memref<96x64xf32>\n" FILL(
        "#ij", "\"parallel\", \"parallel\"", "%s", "memref<96x64xf32>", "0.0")
        PRODUCT("#b", "memref<96x128xf16>, memref<128x64xf16>")
    "linalg.generic {indexing_maps = [#ij, #ij], iterator_types = [\"parallel\", \"parallel\"]} ins(%v : "
    "memref<96x64xf16>) outs(%t : memref<96x64xf32>) {\n^bb0(%l: f16, %o: f32):\n"
    "%lf = arith.extf %l : f16 to f32\nlinalg.yield %lf : f32\n}\n"
    "linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = [\"parallel\", \"parallel\"]} ins(%s, %t : "
    "memref<96x64xf32>, memref<96x64xf32>) outs(%d : memref<96x64xf16>) {\n^bb0(%l: f32, %r: f32, %o: f16):\n"
    "%y = arith.subf %l, %r : f32\n%h = arith.truncf %y : f32 to f16\nlinalg.yield %h : f16\n}\nreturn\n}\n}\n";

static const char POOL[] =
    "module {\nfunc.func @k(%x: memref<2x1x9x9x24xf16>, %y: memref<2x1x5x5x24xf16>) {\n"
    "linalg.generic {indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>], iterator_types = "
    "[\"parallel\", "
    "\"parallel\", \"parallel\", \"parallel\", \"parallel\"]} outs(%y : memref<2x1x5x5x24xf16>) attrs = "
    "{o3.kernel = "
    "\"pool\", o3.window = array<i64: 3, 3, 2, 2, 1, 1, 1, 1>, o3.pool = array<i64: 0, 0, 0, 9, 9>} "
    "{\n^bb0(%o: f16):\n"
    "%a = linalg.index 0 : index\n%v = memref.load %x[%a, %a, %a, %a, %a] : memref<2x1x9x9x24xf16>\n"
    "linalg.yield %v : f16\n}\nreturn\n}\n}\n";

/* Less the maximum over the second of three dimensions. */
static const char COLUMNS[] =
    "#id = affine_map<(i, j, k) -> (i, j, k)>\n#column = affine_map<(i, j, k) -> (i, k)>\n"
    "#all = affine_map<(i, j) -> (i, j)>\n"
    "module {\nfunc.func @k(%x: memref<3x19x100xf16>, %d: memref<3x19x100xf16>) {\n"
    "%s = memref.alloc() : memref<3x100xf32>\n" FILL("#all", "\"parallel\", \"parallel\"", "%s",
                                                     "memref<3x100xf32>", "0xFF800000")
    "linalg.generic {indexing_maps = [#id, #column], iterator_types = [\"parallel\", \"reduction\", \"parallel\"]} "
    "ins(%x : memref<3x19x100xf16>) outs(%s : memref<3x100xf32>) {\n^bb0(%l: f16, %o: f32):\n"
    "%lf = arith.extf %l : f16 to f32\n%y = arith.maximumf %lf, %o : f32\nlinalg.yield %y : f32\n}\n"
    "linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = [\"parallel\", \"parallel\", "
    "\"parallel\"]} "
    "ins(%x, %s : memref<3x19x100xf16>, memref<3x100xf32>) outs(%d : memref<3x19x100xf16>) {\n"
    "^bb0(%l: f16, %r: f32, %o: f16):\n%lf = arith.extf %l : f16 to f32\n%m = arith.subf %lf, %r : f32\n"
    "%h = arith.truncf %m : f32 to f16\nlinalg.yield %h : f16\n}\nreturn\n}\n}\n";

/* Means over the second of three dimensions: each thread sums in several turns, of which the last is not
 * full. */
static const char COLUMN_SUMS[] =
    "#id = affine_map<(i, j, k) -> (i, j, k)>\n#column = affine_map<(i, j, k) -> (i, k)>\n"
    "#all = affine_map<(i, j) -> (i, j)>\n"
    "module {\nfunc.func @k(%x: memref<3x1900x24xf16>, %d: memref<3x24xf16>) {\n"
    "%s = memref.alloc() : memref<3x24xf32>\n" FILL("#all", "\"parallel\", \"parallel\"", "%s",
                                                    "memref<3x24xf32>", "0.0")
    "linalg.generic {indexing_maps = [#id, #column], iterator_types = [\"parallel\", \"reduction\", \"parallel\"]} "
    "ins(%x : memref<3x1900x24xf16>) outs(%s : memref<3x24xf32>) {\n^bb0(%l: f16, %o: f32):\n"
    "%lf = arith.extf %l : f16 to f32\n%y = arith.addf %lf, %o : f32\nlinalg.yield %y : f32\n}\n"
    "%n = arith.constant 1900.0 : f32\n"
    "linalg.generic {indexing_maps = [#all, #all], iterator_types = [\"parallel\", \"parallel\"]} "
    "ins(%s : memref<3x24xf32>) outs(%d : memref<3x24xf16>) {\n"
    "^bb0(%l: f32, %o: f16):\n%m = arith.divf %l, %n : f32\n"
    "%h = arith.truncf %m : f32 to f16\nlinalg.yield %h : f16\n}\nreturn\n}\n}\n";

static const char OUTSIDE_START[] = MAPS
    "module {\nfunc.func @k(%w: memref<128x64xf16>, %x: memref<96x128xf16>, %s: memref<96x64xf32>) "
    "{\n" PRODUCT("#b", "memref<96x128xf16>, memref<128x64xf16>") "return\n}\n}\n";

#define ROWS_OF(rows, columns, combine, body) \
  MAPS "module {\nfunc.func @k(%x: memref<" rows "x" columns "xf16>, %d: memref<" rows "x" columns "xf16>) {\n"                        \
       "%s = memref.alloc() : memref<" rows "xf32>\n" FILL("#one", "\"parallel\"", "%s", "memref<" rows "xf32>", "0xFF800000") \
       "linalg.generic {indexing_maps = [#ij, #i], iterator_types = [\"parallel\", \"reduction\"]} ins(%x : "    \
       "memref<" rows "x" columns "xf16>) outs(%s : memref<" rows "xf32>) {\n^bb0(%l: f16, %o: f32):\n"             \
       "%lf = arith.extf %l : f16 to f32\n" combine "linalg.yield %y : f32\n}\n"                 \
       "linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = [\"parallel\", \"parallel\"]} ins(%x, %s : " \
       "memref<" rows "x" columns "xf16>, memref<" rows "xf32>) outs(%d : memref<" rows "x" columns "xf16>) {\n^bb0(%l: f16, %r: f32, %o: f16):\n" \
       "%lf = arith.extf %l : f16 to f32\n%m = arith.subf %lf, %r : f32\n" body \
       "%h = arith.truncf %e : f32 to f16\nlinalg.yield %h : f16\n}\nreturn\n}\n}\n"

#define ROWS(combine, body) ROWS_OF("300", "72", combine, body)

#define SUM  "%y = arith.addf %lf, %o : f32\n"
#define EXP  "%e = math.exp %m : f32\n"
#define HALF "%half = arith.constant 0.5 : f32\n%one = arith.constant 1.0 : f32\n"

static const char SOFT_ROWS[] = ROWS("%y = arith.maximumf %lf, %o : f32\n", EXP);
static const char SHORT_ROWS[] = ROWS_OF("40009", "49", "%y = arith.maximumf %lf, %o : f32\n", EXP);
static const char ODD_ROWS[] = ROWS("%q = arith.mulf %o, %lf : f32\n%y = arith.addf %q, %lf : f32\n", EXP);

/* GELU as the Gelu op is read, as exporters write it in half precision, and with another scale in erf. */
static const char *const GELU_ROWS[] = {
    ROWS(SUM, HALF
         "%r2 = arith.constant 0.70710678 : f32\n%a = arith.mulf %m, %r2 : f32\n%b = math.erf %a : f32\n"
         "%c = arith.addf %b, %one : f32\n%f = arith.mulf %m, %half : f32\n%e = arith.mulf %f, %c : f32\n"),
    ROWS(SUM, HALF
         "%r2 = arith.constant 1.4140625 : f32\n%a = arith.divf %m, %r2 : f32\n%b = math.erf %a : f32\n"
         "%bh = arith.truncf %b : f32 to f16\n%bf = arith.extf %bh : f16 to f32\n"
         "%c = arith.addf %one, %bf : f32\n%f = arith.mulf %c, %m : f32\n%fh = arith.truncf %f : f32 to f16\n"
         "%ff = arith.extf %fh : f16 to f32\n%e = arith.mulf %half, %ff : f32\n"),
    ROWS(SUM, HALF "%b = math.erf %m : f32\n%c = arith.addf %b, %one : f32\n%f = arith.mulf %m, %half : f32\n"
                   "%e = arith.mulf %f, %c : f32\n")};

/* Rows of a table, whose number |index| computes from %i of type |integer| and the column %c, and their sums
 * after |value|, which has them as %h. */
#define TABLE_ROWS(integer, index, value) \
  MAPS "module {\nfunc.func @k(%t: memref<9x72xf16>, %n: memref<300x" integer ">, %d: memref<300xf32>) {\n" \
       "%s = memref.alloc() : memref<300x72xf32>\n" \
       "linalg.generic {indexing_maps = [#i, #ij], iterator_types = [\"parallel\", \"parallel\"]} ins(%n : " \
       "memref<300x" integer ">) outs(%s : memref<300x72xf32>) {\n^bb0(%i: " integer ", %o: f32):\n%c = linalg.index 1 : index\n" index \
       "%v = memref.load %t[%r, %c] : memref<9x72xf16>\n%h = arith.extf %v : f16 to f32\n" value "linalg.yield %f : f32\n}\n" \
       FILL("#one", "\"parallel\"", "%d", "memref<300xf32>", "0.0") \
       "linalg.generic {indexing_maps = [#ij, #i], iterator_types = [\"parallel\", \"reduction\"]} ins(%s : " \
       "memref<300x72xf32>) outs(%d : memref<300xf32>) {\n^bb0(%l: f32, %o: f32):\n" \
       "%y = arith.addf %o, %l : f32\nlinalg.yield %y : f32\n}\nreturn\n}\n}\n"

#define LAST "%e = arith.constant 8 : index\n"

#define SAME "%f = arith.addf %h, %h : f32\n"

static const char *const OWN_ROWS[] = {
    TABLE_ROWS("i64", LAST "%x = arith.index_cast %i : i64 to index\n%r = arith.minsi %x, %e : index\n",
               SAME),
    TABLE_ROWS("i32", LAST "%x = arith.index_cast %i : i32 to index\n%r = arith.minsi %x, %e : index\n",
               "%g = arith.sitofp %i : i32 to f32\n%f = arith.addf %g, %h : f32\n")};
static const char ROWS_BY_COLUMN[] = TABLE_ROWS("i64", LAST "%r = arith.minsi %c, %e : index\n", SAME);

typedef struct fixture {
  MlirContext context;
  MlirModule module;
  o3_arena_t *arena;
  MlirOperation ops[MAX_OPS];
  MlirValue arguments[MAX_ARGUMENTS];
  o3_kernel_site_t site;
} fixture_t;

static void open_site(fixture_t *f, const char *text) {
  *f = (fixture_t){.arena = o3_arena_create()};
  assert_ok(o3_context_create(&f->context));
  assert_ok(o3_ir_parse(f->context, text, strlen(text), "test", &f->module));
  MlirBlock body = o3_func_body(o3_module_func(f->module, "k"));
  f->site = (o3_kernel_site_t){.arena = f->arena,
                               .gpu = o3_gpu_find("hopper"),
                               .sm = 90,
                               .multiprocessors = 132,
                               .shared_bytes = 232448,
                               .ops = f->ops,
                               .num_arguments = (int)mlirBlockGetNumArguments(body),
                               .arguments = f->arguments};
  for (int i = 0; i < f->site.num_arguments; ++i) f->arguments[i] = mlirBlockGetArgument(body, i);
  MlirOperation op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (o3_op_is(op, "linalg.generic")) f->ops[f->site.num_ops++] = op;
  }
}

static void close_site(fixture_t *f) {
  mlirModuleDestroy(f->module);
  o3_context_destroy(f->context);
  o3_arena_destroy(f->arena);
}

static void check_text(fixture_t *f, const o3_gpu_kernel_t *kernel) {
  MlirModule module;
  assert_ok(o3_ir_parse(f->context, kernel->text, strlen(kernel->text), kernel->name, &module));
  assert_ok(o3_ir_verify(mlirModuleGetOperation(module)));
  bank_report_t banks;
  assert_true(bank_simulate(module, kernel->name, kernel->block, &banks));
  assert_true(banks.worst <= 1 && !banks.unknown);
  mlirModuleDestroy(module);
}

static void test_product_with_epilogue(void **state) {
  fixture_t f;
  o3_gpu_kernel_t kernel;
  (void)state;
  open_site(&f, GEMM);
  assert_ok(o3_fast_kernel_make(&f.site, &kernel, NULL));
  unit_assert_contains(kernel.name, "o3k_f16_gemm_");
  check_text(&f, &kernel);
  assert_int_equal(kernel.num_arguments, 4);
  static const int BUFFERS[] = {2, 0, 1, 3}; /* A, B, bias, D */
  for (int i = 0; i < 4; ++i) assert_int_equal(kernel.arguments[i].buffer, BUFFERS[i]);
  assert_int_equal(kernel.arguments[0].map.sizes[0], 128);
  assert_int_equal(kernel.arguments[0].map.sizes[1], 96);
  o3_gpu_kernel_deinit(&kernel);
  close_site(&f);
}

static void test_product_with_two_values(void **state) {
  fixture_t f;
  o3_gpu_kernel_t kernel;
  int left, right;
  (void)state;
  open_site(&f, BOTH);
  assert_ok(o3_fast_kernel_make(&f.site, &kernel, NULL));
  check_text(&f, &kernel);
  const char *difference = strstr(kernel.text, "\"arith.subf\"(");
  assert_non_null(difference);
  assert_int_equal(sscanf(difference, "\"arith.subf\"(%%v%d, %%v%d)", &left, &right), 2);
  assert_int_not_equal(left, right);
  o3_gpu_kernel_deinit(&kernel);
  close_site(&f);
}

static void test_image(void **state) {
  fixture_t f;
  o3_gpu_kernel_t kernel;
  (void)state;
  open_site(&f, POOL);
  assert_ok(o3_fast_kernel_make(&f.site, &kernel, NULL));
  unit_assert_contains(kernel.name, "o3k_f16_maxpool_3x3__sm80_");
  assert_int_equal(kernel.grid[0], 6); /* tiles of 3 vectors, 5 x 2 outputs */
  check_text(&f, &kernel);
  o3_gpu_kernel_deinit(&kernel);
  close_site(&f);
}

static void test_rows(void **state) {
  fixture_t f;
  o3_gpu_kernel_t kernel;
  (void)state;
  open_site(&f, SOFT_ROWS);
  assert_ok(o3_fast_kernel_make(&f.site, &kernel, NULL));
  unit_assert_contains(kernel.name, "o3k_f16_rows_72x16__sm70_");
  assert_int_equal(kernel.grid[0], 38);
  assert_int_equal(kernel.block, 128);
  check_text(&f, &kernel);
  o3_gpu_kernel_deinit(&kernel);
  close_site(&f);
}

/* Rows of 98 bytes: 64 of them are 392 pieces of shared memory, read and written without conflicts. */
static void test_short_rows(void **state) {
  fixture_t f;
  o3_gpu_kernel_t kernel;
  (void)state;
  open_site(&f, SHORT_ROWS);
  assert_ok(o3_fast_kernel_make(&f.site, &kernel, NULL));
  unit_assert_contains(kernel.name, "o3k_f16_rows_49x2__sm70_");
  assert_int_equal(kernel.grid[0], 626);
  assert_int_equal(kernel.shared_bytes, 2 * 64 * 98);
  check_text(&f, &kernel);
  o3_gpu_kernel_deinit(&kernel);
  close_site(&f);
}

/* As many blocks as shared memory has room for: 4 of 12 KiB and a quarter, and 1 KiB of the card's for each.
 */
static void test_resident_rows(void **state) {
  fixture_t f;
  o3_gpu_kernel_t kernel;
  (void)state;
  open_site(&f, SHORT_ROWS);
  f.site.gpu = o3_gpu_find("turing");
  assert_ok(o3_fast_kernel_make(&f.site, &kernel, NULL));
  unit_assert_contains(kernel.text, "nvvm.minctasm = 4 : i32");
  o3_gpu_kernel_deinit(&kernel);
  close_site(&f);
}

/* A kernel of columns in |grid| blocks of |threads|, which leave 16 bytes each for others. */
static void check_columns(const char *source, const char *name, int grid, int threads) {
  fixture_t f;
  o3_gpu_kernel_t kernel;
  open_site(&f, source);
  assert_ok(o3_fast_kernel_make(&f.site, &kernel, NULL));
  unit_assert_contains(kernel.name, name);
  assert_int_equal(kernel.grid[0], grid);
  assert_int_equal(kernel.block, threads);
  assert_int_equal(kernel.shared_bytes, threads * 16);
  check_text(&f, &kernel);
  o3_gpu_kernel_deinit(&kernel);
  close_site(&f);
}

/* 25 vectors of columns take a warp beside each other; 8 threads have 3 elements of each, the last one fewer.
 */
static void test_columns(void **state) {
  (void)state;
  check_columns(COLUMNS, "o3k_f16_columns_19x8__sm70_", 3, 256);
}

/* 6 vectors of columns are 8 threads beside each other; 128 of them go along a column, 4 elements a turn. */
static void test_column_sums(void **state) {
  (void)state;
  check_columns(COLUMN_SUMS, "o3k_f16_columns_1900x128__sm70_", 3, 1024);
}

/* An integer may be an index and a number. */
static void test_rows_of_tables(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(OWN_ROWS) / sizeof(OWN_ROWS[0]); ++i) {
    fixture_t f;
    o3_gpu_kernel_t kernel;
    open_site(&f, OWN_ROWS[i]);
    assert_ok(o3_fast_kernel_make(&f.site, &kernel, NULL));
    unit_assert_contains(kernel.name, "o3k_f32_rows_72x16__sm70_");
    check_text(&f, &kernel);
    o3_gpu_kernel_deinit(&kernel);
    close_site(&f);
  }
}

static void test_gelu_is_recognised(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(GELU_ROWS) / sizeof(GELU_ROWS[0]); ++i) {
    fixture_t f;
    o3_gpu_kernel_t kernel;
    open_site(&f, GELU_ROWS[i]);
    assert_ok(o3_fast_kernel_make(&f.site, &kernel, NULL));
    assert_int_equal(strstr(kernel.text, "arith.maxnumf") != NULL, i < 2);
    check_text(&f, &kernel);
    o3_gpu_kernel_deinit(&kernel);
    close_site(&f);
  }
}

/* Without a loop of batches it is the heads that reach farthest. */
static void test_attention_is_below_2_31(void **state) {
  const int64_t rows = 1 << 15, heads = 1 << 10;
  o3_gpu_attention_t a = {.element = O3_GPU_F16,
                          .batch = 1,
                          .heads = heads,
                          .kv_heads = heads,
                          .rows = rows,
                          .columns = 64,
                          .width = 64,
                          .value_width = 64,
                          .scale = 1,
                          .q_strides = {64, rows * 64, 64},
                          .k_strides = {64, 64 * 64, 64},
                          .v_strides = {64, 64 * 64, 64},
                          .o_strides = {64, rows * 64, 64}};
  (void)state;
  assert_string_equal(o3_gpu_attention_refuse(&a), "the result has more than 2^31 elements");
  a.heads = a.kv_heads = heads - 1;
  assert_null(o3_gpu_attention_refuse(&a));
}

static void check_refused(const char *text, int sm, const char *reason) {
  fixture_t f;
  o3_gpu_kernel_t kernel = {0};
  open_site(&f, text);
  o3_gpu_t card = *o3_gpu_of_capability(sm < 70 ? 70 : sm);
  card.sm = sm;
  f.site.gpu = &card;
  assert_fails(o3_fast_kernel_make(&f.site, &kernel, NULL), O3_STATUS_UNSUPPORTED, reason);
  o3_gpu_kernel_deinit(&kernel);
  close_site(&f);
}

static void test_refusals(void **state) {
  (void)state;
  check_refused(OUTSIDE_START, 90, "gemm: the sums start at something from outside of the kernel");
  check_refused(ODD_ROWS, 90, "rows: a reduction combines in a way that fast kernels do not have");
  check_refused(ROWS_BY_COLUMN, 90, "rows: an index is computed in a way that rows do not have");
  check_refused(OUTSIDE_START, 80, "mma: the sums start at something from outside of the kernel");
  check_refused(SOFT_ROWS, 60, "there is no family for this card");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_product_with_epilogue),
                                     cmocka_unit_test(test_product_with_two_values),
                                     cmocka_unit_test(test_image),
                                     cmocka_unit_test(test_rows),
                                     cmocka_unit_test(test_short_rows),
                                     cmocka_unit_test(test_resident_rows),
                                     cmocka_unit_test(test_columns),
                                     cmocka_unit_test(test_column_sums),
                                     cmocka_unit_test(test_rows_of_tables),
                                     cmocka_unit_test(test_gelu_is_recognised),
                                     cmocka_unit_test(test_attention_is_below_2_31),
                                     cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
