/* Products of warps: for every card and element, B in both orders and windows of an image, no access to
 * shared memory asks a bank for two words at once, and schedules are checked. */
#include <stdio.h>
#include <string.h>

#include "bank_simulator.h"
#include "ir/context.h"
#include "schedule/gpu.h"
#include "target/nvptx/mma_kernel.h"
#include "unit.h"

static o3_mma_card_t card_of(const char *name) {
  const o3_gpu_t *gpu = o3_gpu_find(name);
  assert_non_null(gpu);
  return (o3_mma_card_t){
      .sm = gpu->sm, .multiprocessors = gpu->multiprocessors, .shared_bytes = (int)gpu->shared_per_block};
}

static o3_gemm_t product(int64_t m, int64_t n, int64_t k, bool by_rows, o3_gpu_element_t element) {
  return (o3_gemm_t){.batch = {1, 1},
                     .m = m,
                     .n = n,
                     .k = k,
                     .element = element,
                     .out = element,
                     .b_by_rows = by_rows,
                     .a_pitch = k,
                     .b_pitch = by_rows ? n : k,
                     .d_pitch = n};
}

static void check_banks(const o3_gemm_t *gemm, const o3_mma_card_t *card) {
  MlirContext context;
  MlirModule module;
  bank_report_t report;
  o3_gpu_kernel_t kernel;
  o3_mma_schedule_t s = o3_mma_schedule(gemm, card);
  assert_null(o3_mma_refuse(gemm, card->sm));
  assert_null(o3_mma_refuse_schedule(gemm, &s, card));
  assert_ok(o3_mma_build(gemm, &s, card, &kernel));
  assert_ok(o3_context_create(&context));
  assert_ok(o3_ir_parse(context, kernel.text, strlen(kernel.text), kernel.name, &module));
  assert_true(bank_simulate(module, kernel.name, kernel.block, &report));
  if (report.worst > 1 || report.unknown || !report.judged)
    fail_msg("%s on %d: %d words of a bank at once (%s), %d accesses judged, %d not", kernel.name, card->sm,
             report.worst, report.what, report.judged, report.unknown);
  mlirModuleDestroy(module);
  o3_context_destroy(context);
  o3_gpu_kernel_deinit(&kernel);
}

static const char *const CARDS[] = {"volta", "turing", "ampere", "sm_86"};
enum { CARD_COUNT = sizeof(CARDS) / sizeof(CARDS[0]) };

/* Large tiles, small ones, and slices. */
static void test_products(void **state) {
  static const int64_t SIZES[][3] = {{2048, 2048, 512}, {300, 256, 256}, {49, 64, 1024}};
  (void)state;
  for (int i = 0; i < CARD_COUNT * 3 * 2; ++i) {
    const int64_t *size = SIZES[i / CARD_COUNT % 3];
    o3_mma_card_t card = card_of(CARDS[i % CARD_COUNT]);
    bool by_rows = i / CARD_COUNT / 3;
    o3_gemm_t half = product(size[0], size[1], size[2], by_rows, O3_GPU_F16);
    check_banks(&half, &card);
    o3_gemm_t words = product(size[0], size[1], size[2], by_rows, O3_GPU_F32);
    check_banks(&words, &card);
    if (card.sm < 80) continue;
    o3_gemm_t rounded = product(size[0], size[1], size[2], by_rows, O3_GPU_TF32);
    rounded.out = O3_GPU_F32;
    check_banks(&rounded, &card);
  }
}

/* 3x3 over 14 x 14 with a border. */
static void test_windows(void **state) {
  const o3_gemm_window_t window = {.channels = 64,
                                   .sizes = {14, 14, 2},
                                   .strides = {64, 14 * 64, 14 * 14 * 64},
                                   .outputs = {14, 14, 2},
                                   .taps = {3, 3},
                                   .steps = {1, 1},
                                   .dilations = {1, 1},
                                   .lows = {1, 1}};
  (void)state;
  for (int i = 0; i < CARD_COUNT; ++i) {
    o3_mma_card_t card = card_of(CARDS[i]);
    for (int words = 0; words < 2; ++words) {
      o3_gemm_t gemm = product(2 * 14 * 14, 72, 9 * 64, true, words ? O3_GPU_F32 : O3_GPU_F16);
      gemm.window = &window;
      check_banks(&gemm, &card);
    }
  }
}

static void test_types(void **state) {
  (void)state;
  o3_gemm_t gemm = product(64, 64, 64, true, O3_GPU_BF16);
  assert_string_equal(o3_mma_refuse(&gemm, 75), "the card multiplies no numbers of the type");
  assert_null(o3_mma_refuse(&gemm, 80));
  gemm.element = O3_GPU_E4M3;
  assert_string_equal(o3_mma_refuse(&gemm, 80), "the card multiplies no numbers of the type");
  gemm.element = O3_GPU_F16;
  gemm.k = 0;
  assert_string_equal(o3_mma_refuse(&gemm, 80), "a size is zero");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_windows),
                                     cmocka_unit_test(test_types)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
