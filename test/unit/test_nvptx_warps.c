/* Products of warps: for every card and element, B in both orders and windows of an image, no access to
 * shared memory asks a bank for two words at once, and schedules are checked. */
#include <stdio.h>
#include <string.h>

#include "nvptx_checks.h"
#include "schedule/gpu.h"
#include "target/nvptx/mma_kernel.h"
#include "unit.h"

static o3_mma_card_t card_of(const char *name) {
  const o3_gpu_t *gpu = o3_gpu_find(name);
  assert_non_null(gpu);
  return (o3_mma_card_t){
      .sm = gpu->sm, .multiprocessors = gpu->multiprocessors, .shared_bytes = (int)gpu->shared_per_block};
}

static void check_banks(const o3_gemm_t *gemm, const o3_mma_card_t *card) {
  o3_gpu_kernel_t kernel;
  o3_mma_schedule_t s = o3_mma_schedule(gemm, card);
  assert_null(o3_mma_refuse(gemm, card->sm));
  assert_null(o3_mma_refuse_schedule(gemm, &s, card));
  assert_ok(o3_mma_build(gemm, &s, card, &kernel));
  assert_true(nvptx_check_banks(&kernel) > 0);
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
    o3_gemm_t half = nvptx_product(size, by_rows, O3_GPU_F16, O3_GPU_F16);
    check_banks(&half, &card);
    o3_gemm_t words = nvptx_product(size, by_rows, O3_GPU_F32, O3_GPU_F32);
    check_banks(&words, &card);
    if (card.sm < 80) continue;
    o3_gemm_t rounded = nvptx_product(size, by_rows, O3_GPU_TF32, O3_GPU_TF32);
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
      o3_gpu_element_t element = words ? O3_GPU_F32 : O3_GPU_F16;
      o3_gemm_t gemm = nvptx_product((int64_t[]){2 * 14 * 14, 72, 9 * 64}, true, element, element);
      gemm.window = &window;
      check_banks(&gemm, &card);
    }
  }
}

static void test_types(void **state) {
  (void)state;
  o3_gemm_t gemm = nvptx_product((int64_t[]){64, 64, 64}, true, O3_GPU_BF16, O3_GPU_BF16);
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
