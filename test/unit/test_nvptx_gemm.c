/* Warpgroup products as MLIR text: valid for every schedule, named by what they are, within the card's
 * limits. */
#include <stdlib.h>
#include <string.h>

#include "ir/context.h"
#include "nvptx_checks.h"
#include "schedule/gpu.h"
#include "target/nvptx/gemv_kernel.h"
#include "target/nvptx/mma_kernel.h"
#include "unit.h"

enum { MULTIPROCESSORS = 132, SHARED_BYTES = 232448 };

static const int64_t SIZES[][3] = {{1, 8, 8},          {63, 64, 72},    {64, 64, 64},      {65, 136, 1000},
                                   {128, 768, 3072},   {997, 1000, 40}, {2048, 4096, 512}, {8192, 128, 128},
                                   {4096, 4096, 4096}, {12544, 64, 576}};

static int add_and_clip(o3_kernel_text_t *t, void *context, int sum, const int *extras) {
  (void)context;
  int bias = o3_kt_value(t, "arith.extf %%v%d : f16 to f32", extras[0]);
  int biased = o3_kt_value(t, "arith.addf %%v%d, %%v%d : f32", sum, bias);
  int zero = o3_kt_value(t, "arith.constant 0.0 : f32");
  int clipped = o3_kt_value(t, "arith.maximumf %%v%d, %%v%d : f32", biased, zero);
  return o3_kt_value(t, "arith.truncf %%v%d : f32 to f16", clipped);
}

static void check_scheduled(MlirContext context, const o3_gemm_t *gemm, const o3_gemm_schedule_t *schedule,
                            char **name) {
  MlirModule module;
  o3_gpu_kernel_t kernel;
  assert_ok(o3_gemm_build(gemm, schedule, MULTIPROCESSORS, &kernel));
  assert_true(kernel.shared_bytes <= SHARED_BYTES);
  assert_true(kernel.grid[0] >= 1 && kernel.grid[0] % kernel.cluster == 0);
  assert_ok(o3_ir_parse(context, kernel.text, strlen(kernel.text), kernel.name, &module));
  assert_ok(o3_ir_verify(mlirModuleGetOperation(module)));
  bank_report_t banks;
  assert_true(bank_simulate(module, kernel.name, kernel.block, &banks));
  assert_true(banks.worst <= 1 && !banks.unknown);
  mlirModuleDestroy(module);
  if (name) *name = strdup(kernel.name);
  o3_gpu_kernel_deinit(&kernel);
}

static void check_text(MlirContext context, const o3_gemm_t *gemm, char **name) {
  assert_null(o3_gemm_refuse(gemm));
  o3_gemm_schedule_t schedule = o3_gemm_schedule(gemm, o3_gpu_find("hopper"));
  check_scheduled(context, gemm, &schedule, name);
}

static void test_texts_are_valid(void **state) {
  MlirContext context;
  (void)state;
  assert_ok(o3_context_create(&context));
  for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); ++i) {
    o3_gemm_t gemm =
        nvptx_product(SIZES[i], i % 2, i % 3 ? O3_GPU_F16 : O3_GPU_BF16, i % 4 ? O3_GPU_F16 : O3_GPU_F32);
    check_text(context, &gemm, NULL);
  }
  o3_context_destroy(context);
}

/* Warpgroups with tiles of their own, and one behind the other. */
static void test_schedules_are_valid(void **state) {
  static const int FLAGS[][5] = {/* products, columns, stages, alternate, streams */
                                 {2, 128, 6, 1, 0}, {2, 192, 4, 1, 0},   {1, 256, 4, 1, 0},
                                 {2, 128, 4, 0, 0}, {1, 256, 4, 0, 132}, {1, 64, 6, 0, 7}};
  MlirContext context;
  (void)state;
  assert_ok(o3_context_create(&context));
  for (size_t i = 0; i < sizeof(FLAGS) / sizeof(FLAGS[0]); ++i) {
    const int *f = FLAGS[i];
    const o3_gemm_schedule_t schedule = {2, f[0], f[1], f[2], 1, 1, 8, i % 2 == 0, f[3], 0, f[4], false};
    o3_gemm_t gemm = nvptx_product(SIZES[6], i % 3, O3_GPU_F16, O3_GPU_F16);
    check_scheduled(context, &gemm, &schedule, NULL);
    assert_int_equal(o3_gemm_tile_rows(&schedule), 64 * f[0] * (f[3] ? 1 : 2));
  }
  o3_context_destroy(context);
}

/* 8-bit floats: as schedules choose, with sums of stages in parts of the columns, and as the tensor cores
 * sum. */
static void test_float8_texts_are_valid(void **state) {
  static const int64_t FLOAT8_SIZES[][3] = {
      {1, 8, 16}, {300, 264, 208}, {8192, 8192, 8192}, {4096, 4096, 4096}};
  static const o3_gemm_schedule_t GIVEN[] = {{2, 1, 256, 4, 1, 1, 8, true, false, 2, 0, false},
                                             {2, 1, 192, 4, 1, 1, 8, true, false, 1, 0, false},
                                             {2, 2, 192, 4, 1, 1, 8, true, true, 0, 0, false}};
  MlirContext context;
  (void)state;
  assert_ok(o3_context_create(&context));
  for (size_t i = 0; i < sizeof(FLOAT8_SIZES) / sizeof(FLOAT8_SIZES[0]); ++i) {
    o3_gemm_t gemm = nvptx_product(FLOAT8_SIZES[i], false, i % 2 ? O3_GPU_E4M3 : O3_GPU_E5M2,
                                   i % 2 ? O3_GPU_F16 : O3_GPU_F32);
    check_text(context, &gemm, NULL);
    assert_true(o3_gemm_schedule(&gemm, o3_gpu_find("hopper")).promote > 0);
  }
  o3_gemm_t gemm = nvptx_product(FLOAT8_SIZES[1], false, O3_GPU_E4M3, O3_GPU_F16);
  for (size_t i = 0; i < sizeof(GIVEN) / sizeof(GIVEN[0]); ++i)
    check_scheduled(context, &gemm, &GIVEN[i], NULL);
  gemm.b_by_rows = true;
  assert_string_equal(o3_gemm_refuse(&gemm),
                      "the warpgroup product takes tf32 and 8-bit floats where B is column-major");
  gemm.b_by_rows = false;
  gemm.a_pitch = gemm.b_pitch = 200;
  assert_string_equal(o3_gemm_refuse(&gemm), "a row starts at an address that TMA does not take");
  o3_context_destroy(context);
}

/* With more panels than a panel's buffers, with one, and with few stages. */
static void test_late_stores_are_valid(void **state) {
  static const int TILES[][3] = {
      {2, 256, 4}, {2, 192, 2}, {1, 64, 8}, {1, 128, 3}}; /* consumers, columns, stages */
  MlirContext context;
  (void)state;
  assert_ok(o3_context_create(&context));
  for (size_t i = 0; i < sizeof(TILES) / sizeof(TILES[0]); ++i) {
    const int *f = TILES[i];
    const o3_gemm_schedule_t schedule = {f[0], 1, f[1], f[2], 1, 1, 8, true, false, 0, 0, true};
    o3_gemm_t gemm = nvptx_product(SIZES[6], i % 2, O3_GPU_F16, O3_GPU_F16);
    check_scheduled(context, &gemm, &schedule, NULL);
  }
  o3_context_destroy(context);
}

static void test_schedules_are_refused(void **state) {
  static const struct {
    o3_gemm_schedule_t schedule;
    const char *why;
  } BAD[] = {
      {{3, 1, 128, 4, 1, 1, 8, true, false, 0, 0, false},
       "it has neither one nor two warpgroups or products"},
      {{2, 2, 256, 2, 1, 1, 8, true, true, 0, 0, false}, "a thread has no registers for so many sums"},
      {{1, 2, 128, 4, 1, 1, 8, true, true, 0, 0, false}, "one warpgroup alone cannot alternate"},
      {{2, 1, 64, 4, 3, 1, 8, false, false, 0, 0, false}, "it splits k into other than 1, 2, 4, 8"},
      {{2, 1, 256, 4, 1, 1, 8, true, false, 1, 0, false},
       "a thread has no registers for sums of stages besides"},
      {{2, 2, 128, 4, 1, 1, 8, true, true, 1, 0, false},
       "sums of stages are of warpgroups that have one product alone"},
      {{2, 1, 128, 1, 1, 1, 8, true, false, 0, 0, false},
       "a stage is given back when the next one is multiplied, so one alone is not enough"},
      {{2, 1, 128, 4, 2, 1, 8, false, false, 0, 5, false},
       "blocks that share the steps of all tiles have one product of their own"},
      {{2, 1, 128, 4, 1, 1, 8, true, false, 0, 1 << 20, false},
       "blocks that share the steps of all tiles have one each, and their numbers fit into 32 bits"},
      {{2, 2, 128, 4, 1, 1, 8, true, true, 0, 0, true},
       "late stores are by TMA, of warpgroups that have one product of a tile of their block's own"},
      {{2, 1, 128, 4, 1, 1, 8, false, false, 0, 0, true},
       "late stores are by TMA, of warpgroups that have one product of a tile of their block's own"},
      {{2, 2, 128, 7, 1, 1, 8, true, true, 0, 0, false}, "its stages do not fit into the shared memory"}};
  (void)state;
  o3_gemm_t gemm = nvptx_product(SIZES[6], true, O3_GPU_F16, O3_GPU_F16);
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); ++i)
    assert_string_equal(o3_gemm_refuse_schedule(&gemm, &BAD[i].schedule, SHARED_BYTES), BAD[i].why);
  const o3_gemm_schedule_t late = {2, 1, 256, 4, 1, 1, 8, true, false, 0, 0, true};
  o3_gemm_t thin = nvptx_product((int64_t[]){4096, 4096, 256}, true, O3_GPU_F16, O3_GPU_F16);
  assert_string_equal(o3_gemm_refuse_schedule(&thin, &late, SHARED_BYTES),
                      "late stores are of more panels than there are steps");
}

/* The choices of the other two families stand their own checks, and what would not fit their arrays does not.
 */
static void test_other_schedules_are_refused(void **state) {
  const o3_mma_card_t card = {.sm = 80, .multiprocessors = 108, .shared_bytes = 163 << 10};
  const o3_gpu_t *gpu = o3_gpu_find("ampere");
  (void)state;
  for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); ++i) {
    o3_gemm_t gemm = nvptx_product(SIZES[i], i % 2, O3_GPU_F16, O3_GPU_F16);
    o3_mma_schedule_t mma = o3_mma_schedule(&gemm, &card);
    assert_null(o3_mma_refuse_schedule(&gemm, &mma, &card));
    mma.pieces[0] = 16;
    assert_non_null(o3_mma_refuse_schedule(&gemm, &mma, &card));
    o3_gemv_schedule_t gemv = o3_gemv_schedule(&gemm, gpu);
    assert_null(o3_gemv_refuse_schedule(&gemm, &gemv, gpu));
    gemv.columns = 16;
    assert_non_null(o3_gemv_refuse_schedule(&gemm, &gemv, gpu));
  }
}

/* Stores are hidden where k is short and a multiprocessor has several tiles: by warpgroups that alternate, or
 * under the next tile where there are many and the epilogue computes nothing. */
static void test_short_products_hide_stores(void **state) {
  static const struct {
    int64_t sizes[3];
    bool computes, alternate, late_stores;
  } CASES[] = {{{8192, 4096, 1024}, false, false, true},  {{8192, 4096, 1024}, true, true, false},
               {{2048, 4096, 1024}, false, true, false},  {{8192, 3072, 768}, false, false, true},
               {{1024, 1024, 1024}, false, false, false}, {{4096, 4096, 4096}, false, false, true}};
  (void)state;
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
    o3_gemm_t gemm = nvptx_product(CASES[i].sizes, true, O3_GPU_F16, O3_GPU_F16);
    gemm.epilogue_computes = CASES[i].computes;
    o3_gemm_schedule_t schedule = o3_gemm_schedule(&gemm, o3_gpu_find("hopper"));
    assert_int_equal(schedule.alternate, CASES[i].alternate);
    assert_int_equal(schedule.late_stores, CASES[i].late_stores);
  }
}

/* Blocks share k through memory where it is long and tiles are few, and kernels of no other batch run; tiles
 * of one panel are stored from registers. */
static void test_long_k_is_shared(void **state) {
  static const int64_t CASES[][4] = {/* sizes, blocks */
                                     {64, 64, 65536, 24}, {128, 128, 65536, 64}, {512, 512, 16384, 128},
                                     {128, 768, 3072, 0}, {128, 128, 8192, 0},   {2560, 2560, 8192, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
    o3_gemm_t gemm = nvptx_product(CASES[i], true, O3_GPU_F16, O3_GPU_F16);
    const o3_gpu_t *gpu = o3_gpu_find("hopper");
    const o3_gemm_schedule_t schedule = o3_gemm_schedule(&gemm, gpu);
    assert_int_equal(schedule.streams, CASES[i][3]);
    if (schedule.streams) assert_int_equal(schedule.store_by_tensor, schedule.columns > 64);
    gemm.one_of_batches = true;
    assert_int_equal(o3_gemm_schedule(&gemm, gpu).streams, 0);
  }
}

static void test_epilogue_is_part_of_the_name(void **state) {
  MlirContext context;
  char *plain, *biased, *again;
  (void)state;
  assert_ok(o3_context_create(&context));
  o3_gemm_t gemm = nvptx_product(SIZES[4], true, O3_GPU_F16, O3_GPU_F16);
  check_text(context, &gemm, &plain);
  gemm.num_extras = 1;
  gemm.extras[0] = (o3_gemm_extra_t){O3_GPU_F16, {0, 0, 0, 1}};
  gemm.epilogue = add_and_clip;
  check_text(context, &gemm, &biased);
  check_text(context, &gemm, &again);
  assert_string_not_equal(plain, biased);
  assert_string_equal(biased, again);
  free(plain);
  free(biased);
  free(again);
  o3_context_destroy(context);
}

/* Windows of taps[1] x taps[0] over images of sizes[2] x sizes[1] x sizes[0] in steps. */
static o3_gemm_window_t window(int64_t channels, const int64_t sizes[3], int64_t taps, int64_t step) {
  o3_gemm_window_t w = {.channels = channels, .strides = {channels, 0, 0}};
  for (int i = 0; i < 3; ++i) w.sizes[i] = w.outputs[i] = sizes[i];
  for (int i = 1; i < 3; ++i) w.strides[i] = w.strides[i - 1] * sizes[i - 1];
  for (int i = 0; i < 2; ++i) {
    w.taps[i] = taps, w.steps[i] = step, w.dilations[i] = 1, w.lows[i] = taps / 2;
    w.outputs[i] = (sizes[i] + 2 * (taps / 2) - taps) / step + 1;
  }
  return w;
}

static o3_gemm_t convolution(const o3_gemm_window_t *w, int64_t outputs) {
  int64_t m = w->outputs[0] * w->outputs[1] * w->outputs[2], k = w->taps[0] * w->taps[1] * w->channels;
  o3_gemm_t gemm = nvptx_product((int64_t[]){m, outputs, k}, true, O3_GPU_F16, O3_GPU_F16);
  gemm.window = w;
  return gemm;
}

static void test_windows_are_valid(void **state) {
  static const struct {
    int64_t channels, outputs, sizes[3], taps, step;
  } CONVS[] = {{8, 64, {224, 224, 2}, 7, 2}, {512, 512, {7, 7, 1}, 3, 1}, {40, 24, {13, 5, 3}, 1, 2}};
  MlirContext context;
  (void)state;
  assert_ok(o3_context_create(&context));
  for (size_t i = 0; i < sizeof(CONVS) / sizeof(CONVS[0]); ++i) {
    o3_gemm_window_t w = window(CONVS[i].channels, CONVS[i].sizes, CONVS[i].taps, CONVS[i].step);
    o3_gemm_t gemm = convolution(&w, CONVS[i].outputs);
    assert_int_equal(o3_gemm_steps(&gemm), w.taps[0] * w.taps[1] * ((w.channels + 63) / 64));
    check_text(context, &gemm, NULL);
    gemm.element = O3_GPU_TF32, gemm.out = O3_GPU_F32, gemm.b_by_rows = false; /* [y, output, x, channel] */
    gemm.b_pitch = w.taps[0] * w.channels;
    assert_int_equal(o3_gemm_steps(&gemm), w.taps[0] * w.taps[1] * ((w.channels + 31) / 32));
    check_text(context, &gemm, NULL);
  }
  o3_context_destroy(context);
}

/* The corners of an im2col map: the first tap of the first window, and of the last one seen from the end. */
static void test_windows_have_corners(void **state) {
  o3_gpu_kernel_t kernel;
  (void)state;
  o3_gemm_window_t w = window(64, (int64_t[]){9, 8, 2}, 3, 2);
  o3_gemm_t gemm = convolution(&w, 64);
  o3_gemm_schedule_t schedule = o3_gemm_schedule(&gemm, o3_gpu_find("hopper"));
  assert_ok(o3_gemm_build(&gemm, &schedule, MULTIPROCESSORS, &kernel));
  const o3_gpu_tensor_map_t *map = &kernel.arguments[0].map;
  assert_true(map->windows && !kernel.arguments[1].map.windows);
  assert_int_equal(map->lows[0], -1);
  assert_int_equal(map->highs[0], -1); /* 9 positions: windows begin at -1, 1, 3, 5, 7 */
  assert_int_equal(map->highs[1], -2); /* 8: at -1, 1, 3, 5 */
  assert_int_equal(map->steps[1], 2);
  assert_int_equal(kernel.arguments[1].map.sizes[2], 9);
  o3_gpu_kernel_deinit(&kernel);
}

static void test_refuses_windows(void **state) {
  (void)state;
  o3_gemm_window_t w = window(12, (int64_t[]){8, 8, 1}, 3, 1);
  o3_gemm_t gemm = convolution(&w, 64);
  assert_string_equal(o3_gemm_refuse(&gemm), "the channels are no multiple of 8");
  w = window(64, (int64_t[]){90, 90, 1}, 3, 9);
  gemm = convolution(&w, 64);
  assert_string_equal(o3_gemm_refuse(&gemm), "the steps or the taps of a window are too far apart");
  w = window(64, (int64_t[]){300, 300, 1}, 3, 1);
  w.outputs[0] = 10;
  gemm = convolution(&w, 64);
  assert_string_equal(o3_gemm_refuse(&gemm),
                      "the windows reach too far beyond the image, or end too far before its end");
}

static void test_refuses(void **state) {
  (void)state;
  o3_gemm_t gemm = nvptx_product((int64_t[]){64, 60, 64}, false, O3_GPU_F16, O3_GPU_F16);
  assert_string_equal(o3_gemm_refuse(&gemm), "the sizes n and k are no multiples of 8");
  gemm = nvptx_product((int64_t[]){64, 64, 64}, false, O3_GPU_F32, O3_GPU_F32);
  assert_string_equal(o3_gemm_refuse(&gemm), "the warpgroup product takes f16, bf16 and, if it may, tf32");
  gemm = nvptx_product((int64_t[]){64, 64, 64}, false, O3_GPU_F16, O3_GPU_F16);
  gemm.a_pitch = 65;
  assert_string_equal(o3_gemm_refuse(&gemm), "a row starts at an address that TMA does not take");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts_are_valid),
                                     cmocka_unit_test(test_schedules_are_valid),
                                     cmocka_unit_test(test_float8_texts_are_valid),
                                     cmocka_unit_test(test_late_stores_are_valid),
                                     cmocka_unit_test(test_schedules_are_refused),
                                     cmocka_unit_test(test_long_k_is_shared),
                                     cmocka_unit_test(test_other_schedules_are_refused),
                                     cmocka_unit_test(test_short_products_hide_stores),
                                     cmocka_unit_test(test_epilogue_is_part_of_the_name),
                                     cmocka_unit_test(test_windows_are_valid),
                                     cmocka_unit_test(test_windows_have_corners),
                                     cmocka_unit_test(test_refuses_windows),
                                     cmocka_unit_test(test_refuses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
