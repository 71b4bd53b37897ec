/* Zero masks and what is counted of them, against counting one by one. */
#include <stdlib.h>
#include <string.h>

#include "analysis/sparsity.h"
#include "ir/context.h"
#include "unit.h"

typedef struct fixture {
  o3_arena_t *arena;
  uint64_t state;
} fixture_t;

static int set_up(void **state) {
  fixture_t *f = calloc(1, sizeof(*f));
  f->arena = o3_arena_create();
  f->state = 88172645463325252u;
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture_t *f = *state;
  o3_arena_destroy(f->arena);
  free(f);
  return 0;
}

static uint64_t random_number(fixture_t *f) {
  f->state ^= f->state << 13;
  f->state ^= f->state >> 7;
  return f->state ^= f->state << 17;
}

static int64_t below(fixture_t *f, int64_t bound) { return (int64_t)(random_number(f) % (uint64_t)bound); }

static o3_zero_mask_t random_mask(fixture_t *f, int64_t density) {
  o3_zero_mask_t mask = {1 + below(f, 3), 1 + below(f, 9), 1 + below(f, 90), 1 + below(f, 90), NULL};
  int64_t count = mask.groups * mask.positions * mask.outputs * mask.inputs;
  uint8_t *nonzero = O3_ARENA_ARRAY(f->arena, uint8_t, (size_t)count);
  for (int64_t i = 0; i < count; ++i) nonzero[i] = below(f, 100) < density;
  mask.nonzero = nonzero;
  return mask;
}

static int at(const o3_zero_mask_t *mask, int64_t matrix, int64_t output, int64_t input) {
  if (output >= mask->outputs || input >= mask->inputs) return 0;
  return mask->nonzero[(matrix * mask->outputs + output) * mask->inputs + input];
}

static int64_t count_plainly(const o3_zero_mask_t *mask, int64_t height, int64_t width) {
  int64_t stored = 0;
  for (int64_t m = 0; m < mask->groups * mask->positions; ++m)
    for (int64_t o = 0; o < mask->outputs; o += height)
      for (int64_t i = 0; i < mask->inputs; i += width) {
        int set = 0;
        for (int64_t k = 0; k < height * width; ++k) set |= at(mask, m, o + k / width, i + k % width);
        stored += set;
      }
  return stored;
}

static int64_t most_plainly(const o3_zero_mask_t *mask, int64_t height, int64_t width) {
  int64_t most = 0;
  for (int64_t m = 0; m < mask->groups * mask->positions; ++m)
    for (int64_t o = 0; o < mask->outputs; o += height)
      for (int64_t i = 0; i < mask->inputs; i += width) {
        int64_t set = 0;
        for (int64_t k = 0; k < height * width; ++k) set += at(mask, m, o + k / width, i + k % width);
        if (set > most) most = set;
      }
  return most;
}

static void blocks_are_counted(void **state) {
  static const int64_t DENSITIES[] = {0, 1, 3, 20, 50, 100};
  fixture_t *f = *state;
  for (int round = 0; round < 60; ++round) {
    o3_zero_mask_t mask = random_mask(f, DENSITIES[round % 6]);
    o3_sparsity_t sparsity;
    assert_ok(o3_sparsity_count(f->arena, &mask, &sparsity));
    for (int s = 0; s < O3_SPARSITY_NUM_SHAPES; ++s) {
      int64_t height = O3_SPARSITY_SHAPES[s].outputs, width = O3_SPARSITY_SHAPES[s].inputs;
      assert_int_equal(sparsity.stored[s], count_plainly(&mask, height, width));
      assert_int_equal(sparsity.blocks[s], mask.groups * mask.positions *
                                               ((mask.outputs + height - 1) / height) *
                                               ((mask.inputs + width - 1) / width));
    }
    assert_int_equal(o3_sparsity_count_blocks(&mask, 5, 7), count_plainly(&mask, 5, 7));
    assert_int_equal(sparsity.zeros, sparsity.elements - count_plainly(&mask, 1, 1));
    for (int m = 0; m < O3_SPARSITY_NUM_GROUPS; ++m) {
      assert_int_equal(sparsity.inputs.most_of[m], most_plainly(&mask, 1, O3_SPARSITY_GROUPS[m]));
      assert_int_equal(sparsity.outputs.most_of[m], most_plainly(&mask, O3_SPARSITY_GROUPS[m], 1));
    }
  }
}

static void axes_are_counted(void **state) {
  static const uint8_t NONZERO[] = {1, 0, 1, 0, 0, 0, /* position 0: 2 outputs x 3 inputs */
                                    0, 0, 1, 0, 0, 0};
  fixture_t *f = *state;
  o3_zero_mask_t mask = {1, 2, 2, 3, NONZERO};
  o3_sparsity_t sparsity;
  assert_ok(o3_sparsity_count(f->arena, &mask, &sparsity));
  assert_int_equal(sparsity.outputs.count, 2);
  assert_int_equal(sparsity.outputs.dead, 1);
  assert_int_equal(sparsity.outputs.most, 3);
  assert_int_equal(sparsity.outputs.least, 0);
  assert_true(sparsity.outputs.mean == 1.5 && sparsity.outputs.deviation == 1.5);
  assert_int_equal(sparsity.inputs.dead, 1);
  assert_int_equal(sparsity.inputs.most, 2);
}

static void full_axes_are_counted(void **state) {
  static const uint8_t NONZERO[24] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  fixture_t *f = *state;
  o3_zero_mask_t mask = {2, 2, 2, 3, NONZERO};
  o3_sparsity_t sparsity;
  assert_ok(o3_sparsity_count(f->arena, &mask, &sparsity));
  assert_true(sparsity.outputs.count == 4 && sparsity.outputs.dead == 0);
  assert_true(sparsity.outputs.least == 6 && sparsity.outputs.most == 6 && sparsity.outputs.mean == 6);
  assert_true(sparsity.inputs.count == 6 && sparsity.inputs.dead == 0);
  assert_true(sparsity.inputs.least == 4 && sparsity.inputs.most == 4 && sparsity.inputs.deviation == 0);
  assert_int_equal(sparsity.zeros, 0);
}

static void nothing_is_no_trouble(void **state) {
  fixture_t *f = *state;
  o3_zero_mask_t mask = {1, 1, 0, 5, (const uint8_t *)""};
  o3_sparsity_t sparsity;
  assert_ok(o3_sparsity_count(f->arena, &mask, &sparsity));
  assert_int_equal(sparsity.elements, 0);
  assert_true(o3_sparsity_occupancy(&sparsity, O3_SPARSITY_16x16) == 0);
  assert_int_equal(sparsity.inputs.dead, 5);
}

static const char TEXT[] =
    "module {\nfunc.func @main(%x: tensor<1x4x5x5xf32>, %v: tensor<3x2xf16>) {\n"
    "  %w = \"o3.constant\"() {value = dense<[[[[1.0, 0.0]], [[0.0, 0.0]]], [[[0.0, -0.0]], [[2.0, 3.0]]]]> "
    ": "
    "tensor<2x2x1x2xf32>} : () -> tensor<2x2x1x2xf32>\n"
    "  %y = \"o3.conv\"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: "
    "0, 0, "
    "0, 0>, group = 2 : i64} : (tensor<1x4x5x5xf32>, tensor<2x2x1x2xf32>) -> tensor<1x2x5x4xf32>\n"
    "  %m = \"o3.constant\"() {value = dense<[[1.0, 0.0, -0.0], [0.0, 0.0, 5.0]]> : tensor<2x3xf16>} : () -> "
    "tensor<2x3xf16>\n"
    "  %z = \"o3.matmul\"(%v, %m) : (tensor<3x2xf16>, tensor<2x3xf16>) -> tensor<3x3xf16>\n"
    "  %n = \"o3.neg\"(%z) : (tensor<3x3xf16>) -> tensor<3x3xf16>\n"
    "  return\n}\n}\n";

static void products_have_masks(void **state) {
  static const uint8_t CONV[] = {1, 0, 0, 0, 0, 1, 0, 1}, MATRIX[] = {1, 0, 0, 0, 0, 1};
  fixture_t *f = *state;
  MlirContext context;
  MlirModule module;
  o3_weights_t *weights;
  o3_zero_mask_t mask;
  assert_ok(o3_context_create(&context));
  assert_ok(o3_weights_create(context, &weights));
  assert_ok(o3_ir_parse(context, TEXT, strlen(TEXT), "test", &module));
  MlirOperation op = mlirBlockGetFirstOperation(o3_func_body(o3_module_func(module, "main")));
  op = mlirOperationGetNextInBlock(op);
  assert_ok(o3_zero_mask_of_product(f->arena, weights, op, &mask));
  assert_true(mask.groups == 2 && mask.positions == 2 && mask.outputs == 1 && mask.inputs == 2);
  assert_memory_equal(mask.nonzero, CONV, sizeof(CONV));
  op = mlirOperationGetNextInBlock(mlirOperationGetNextInBlock(op));
  assert_ok(o3_zero_mask_of_product(f->arena, weights, op, &mask));
  assert_true(mask.groups == 1 && mask.positions == 1 && mask.outputs == 3 && mask.inputs == 2);
  assert_memory_equal(mask.nonzero, MATRIX, sizeof(MATRIX));
  assert_ok(o3_zero_mask_of_product(f->arena, weights, mlirOperationGetNextInBlock(op), &mask));
  assert_null(mask.nonzero);
  mlirModuleDestroy(module);
  o3_weights_destroy(weights);
  o3_context_destroy(context);
}

/* Expects |mask| of the weights (of |element|, a row of four) that a product has. */
static void expect_mask(fixture_t *f, MlirContext context, const char *element, const char *weights,
                        const char *expected) {
  o3_weights_t *store;
  MlirModule module;
  o3_zero_mask_t mask;
  const char *text = o3_arena_printf(
      f->arena,
      "module {\nfunc.func @main(%%v: tensor<2x1x%s>) {\n"
      "  %%w = \"o3.constant\"() {value = dense<[[%s]]> : tensor<1x4x%s>} : () -> tensor<1x4x%s>\n"
      "  %%y = \"o3.matmul\"(%%v, %%w) : (tensor<2x1x%s>, tensor<1x4x%s>) -> tensor<2x4x%s>\n"
      "  return\n}\n}\n",
      element, weights, element, element, element, element, element);
  assert_ok(o3_weights_create(context, &store));
  assert_ok(o3_ir_parse(context, text, strlen(text), "test", &module));
  MlirOperation op = mlirBlockGetFirstOperation(o3_func_body(o3_module_func(module, "main")));
  assert_ok(o3_zero_mask_of_product(f->arena, store, mlirOperationGetNextInBlock(op), &mask));
  assert_non_null(mask.nonzero);
  assert_memory_equal(mask.nonzero, expected, 4);
  mlirModuleDestroy(module);
  o3_weights_destroy(store);
}

static void signs_and_types(void **state) {
  MlirContext context;
  assert_ok(o3_context_create(&context));
  expect_mask(*state, context, "f16", "0x0000, 0x8000, 0x0001, 0x3c00", "\0\0\1\1");
  expect_mask(*state, context, "f64", "-0.0, 0.0, 1.0e-320, -2.0", "\0\0\1\1");
  expect_mask(*state, context, "i8", "0, -128, 1, 0", "\0\1\1\0");
  o3_context_destroy(context);
}

#define SPARSITY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      SPARSITY_TEST(blocks_are_counted),    SPARSITY_TEST(axes_are_counted),
      SPARSITY_TEST(full_axes_are_counted), SPARSITY_TEST(nothing_is_no_trouble),
      SPARSITY_TEST(products_have_masks),   SPARSITY_TEST(signs_and_types),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
