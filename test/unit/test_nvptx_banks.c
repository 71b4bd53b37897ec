/* No access to shared memory of a fast kernel asks a bank for two words at once. */
#include <stdio.h>
#include <string.h>

#include "nvptx_checks.h"
#include "schedule/gpu.h"
#include "target/nvptx/attention_mma.h"
#include "target/nvptx/gemv_kernel.h"
#include "unit.h"

enum { MULTIPROCESSORS = 132 };

/* ---- The simulator ---- */

/* Lane * |stride| bytes, as |type|. */
static bank_report_t strided(int stride, const char *type) {
  char text[1024];
  snprintf(text, sizeof(text),
           "module { llvm.mlir.global external @s() {addr_space = 3 : i32} : !llvm.array<0 x i8>\n"
           "llvm.func @k(%%v: %s) attributes {nvvm.kernel} {\n"
           "%%b = llvm.mlir.addressof @s : !llvm.ptr<3>\n%%t = nvvm.read.ptx.sreg.tid.x : i32\n"
           "%%c = arith.constant %d : i32\n%%o = arith.muli %%t, %%c : i32\n"
           "%%p = llvm.getelementptr %%b[%%o] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8\n"
           "llvm.store %%v, %%p : %s, !llvm.ptr<3>\nllvm.return } }",
           type, stride, type);
  return nvptx_simulate(text, "k", 64);
}

static void test_conflicts_are_found(void **state) {
  (void)state;
  assert_int_equal(strided(4, "f32").worst, 1);
  assert_int_equal(strided(2, "f16").worst, 1);
  assert_int_equal(strided(8, "f32").worst, 2);
  assert_int_equal(strided(36, "f32").worst, 1);
  assert_int_equal(strided(128, "f32").worst, 32);
  assert_int_equal(strided(8, "vector<2xf32>").worst, 1);
  assert_int_equal(strided(16, "vector<4xf32>").worst, 1);
  assert_int_equal(strided(32, "vector<4xf32>").worst, 2);
  assert_int_equal(strided(144, "vector<4xf32>").worst, 1);
  assert_int_equal(strided(0, "f32").worst, 1);
  assert_int_equal(strided(4, "f32").judged, 2);
}

/* ---- Families ---- */

/* Staged results, and sums that the blocks of a cluster exchange. */
static void test_products(void **state) {
  static const o3_gemm_schedule_t SCHEDULES[] = {
      {.consumers = 2,
       .products = 1,
       .columns = 256,
       .stages = 4,
       .split = 1,
       .blocks = 1,
       .group_rows = 8,
       .store_by_tensor = true},
      {.consumers = 1,
       .products = 1,
       .columns = 64,
       .stages = 4,
       .split = 1,
       .blocks = 1,
       .group_rows = 8,
       .store_by_tensor = true},
      {.consumers = 1, .products = 1, .columns = 64, .stages = 4, .split = 4, .blocks = 1, .group_rows = 8},
      {.consumers = 2,
       .products = 1,
       .columns = 256,
       .stages = 4,
       .split = 1,
       .blocks = 1,
       .group_rows = 8,
       .store_by_tensor = true,
       .late_stores = true},
      {.consumers = 2,
       .products = 2,
       .columns = 128,
       .stages = 4,
       .split = 1,
       .blocks = 1,
       .group_rows = 8,
       .store_by_tensor = true,
       .alternate = true}};
  (void)state;
  for (size_t i = 0; i < sizeof(SCHEDULES) / sizeof(SCHEDULES[0]); ++i) {
    o3_gpu_kernel_t kernel;
    o3_gemm_t gemm = nvptx_product((int64_t[]){1024, 1024, 512}, i % 2, O3_GPU_F16, O3_GPU_F16);
    assert_ok(o3_gemm_build(&gemm, &SCHEDULES[i], MULTIPROCESSORS, &kernel));
    assert_true(nvptx_check_banks(&kernel) > 0);
  }
}

static void test_few_rows(void **state) {
  static const int64_t SIZES[][3] = {
      {1, 1000, 2048}, {1, 11008, 4096}, {8, 4096, 4096}, {3, 77, 130}, {1, 40000, 768}};
  (void)state;
  for (int i = 0; i < 5 * 4; ++i) {
    const int64_t *size = SIZES[i / 4];
    o3_gpu_kernel_t kernel;
    o3_gpu_element_t element = i / 2 % 2 ? O3_GPU_F32 : O3_GPU_F16;
    o3_gemm_t gemm = nvptx_product(size, i % 2, element, element);
    o3_gemv_schedule_t schedule = o3_gemv_schedule(&gemm, o3_gpu_find("hopper"));
    assert_ok(o3_gemv_build(&gemm, &schedule, true, &kernel));
    assert_true(kernel.shared_bytes <= O3_GPU_PLAIN_SHARED);
    assert_true(nvptx_check_banks(&kernel) > 0);
  }
}

/* Two batches and heads of 300 rows and columns. */
static o3_gpu_attention_t attention(int width, int value_width, o3_gpu_element_t element, bool causal) {
  enum { HEADS = 2, ROWS = 300 };
  const int64_t q[3] = {HEADS * ROWS * width, ROWS * width, width};
  const int64_t v[3] = {HEADS * ROWS * value_width, ROWS * value_width, value_width};
  o3_gpu_attention_t a = {.element = element,
                          .batch = 2,
                          .heads = HEADS,
                          .kv_heads = HEADS,
                          .rows = ROWS,
                          .columns = ROWS,
                          .width = width,
                          .value_width = value_width,
                          .scale = 0.125,
                          .causal = causal,
                          .multiprocessors = MULTIPROCESSORS};
  memcpy(a.q_strides, q, sizeof(q));
  memcpy(a.k_strides, q, sizeof(q));
  memcpy(a.v_strides, v, sizeof(v));
  memcpy(a.o_strides, v, sizeof(v));
  return a;
}

static void test_attention(void **state) {
  static const int WIDTHS[][2] = {{64, 64}, {128, 128}, {80, 80}, {24, 104}, {192, 128}, {256, 256}};
  (void)state;
  for (int i = 0; i < 2 * 6; ++i) {
    const int *widths = WIDTHS[i / 2];
    o3_gpu_kernel_t kernel;
    o3_gpu_attention_t a = attention(widths[0], widths[1], i % 4 < 2 ? O3_GPU_F16 : O3_GPU_BF16, i % 2 == 1);
    assert_null(o3_gpu_attention_refuse(&a));
    o3_gpu_attention_schedule(&a);
    assert_ok(o3_gpu_attention_build(&a, &kernel));
    assert_true(kernel.shared_bytes <= o3_gpu_find("hopper")->shared_per_block);
    assert_true(nvptx_check_banks(&kernel) > 0);
  }
}

static void test_attention_on_warps(void **state) {
  static const struct {
    const char *card;
    int width, value_width;
    o3_attention_warps_t warps;
  } CASES[] = {{"ampere", 64, 64, {4, 32, 64, 1, 2, 1, 1}},  {"ampere", 128, 128, {4, 16, 64, 1, 2, 1, 1}},
               {"ampere", 72, 24, {2, 16, 32, 2, 3, 1, 1}},  {"volta", 64, 64, {4, 32, 32, 1, 1, 1, 1}},
               {"volta", 128, 40, {4, 16, 64, 1, 1, 1, 1}},  {"turing", 96, 96, {4, 16, 64, 1, 1, 1, 1}},
               {"turing", 32, 256, {4, 16, 16, 1, 1, 1, 1}}, {"hopper", 128, 128, {1, 16, 32, 4, 2, 4, 1}},
               {"hopper", 80, 80, {2, 32, 16, 2, 4, 8, 1}}};
  (void)state;
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
    const o3_gpu_t *gpu = o3_gpu_find(CASES[i].card);
    o3_gpu_kernel_t kernel;
    o3_gpu_attention_t a = attention(CASES[i].width, CASES[i].value_width, O3_GPU_F16, i % 2 == 1);
    assert_null(o3_gpu_attention_mma_refuse(&a, gpu));
    assert_ok(o3_gpu_attention_mma_build(&a, &CASES[i].warps, gpu, &kernel));
    assert_true(nvptx_check_banks(&kernel) > 0);
  }
}

/* What is chosen fits, whatever the card and the sizes. */
static void test_attention_schedules(void **state) {
  static const char *const CARDS[] = {"turing", "sm_86", "blackwell"};
  static const int ROWS[] = {1, 40, 300}, WIDTHS[] = {64, 256};
  (void)state;
  for (int i = 0; i < 3 * 3 * 2; ++i) {
    const o3_gpu_t *gpu = o3_gpu_find(CARDS[i / 6]);
    o3_gpu_kernel_t kernel;
    o3_gpu_attention_t a = attention(WIDTHS[i % 2], WIDTHS[i % 2], O3_GPU_F16, false);
    a.rows = ROWS[i / 2 % 3];
    const o3_attention_warps_t warps = o3_gpu_attention_mma_schedule(&a, gpu);
    assert_null(o3_gpu_attention_mma_refuse(&a, gpu));
    assert_ok(o3_gpu_attention_mma_build(&a, &warps, gpu, &kernel));
    assert_true(kernel.shared_bytes <= gpu->shared_per_block && kernel.cluster <= gpu->cluster);
    assert_true(nvptx_check_banks(&kernel) > 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_conflicts_are_found),
                                     cmocka_unit_test(test_products),
                                     cmocka_unit_test(test_few_rows),
                                     cmocka_unit_test(test_attention),
                                     cmocka_unit_test(test_attention_on_warps),
                                     cmocka_unit_test(test_attention_schedules)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
