/* The cost model: what must hold whatever it was calibrated to. */
#include <string.h>

#include "analysis/sparse_hybrid.h"
#include "unit.h"

static o3_sparse_layer_t layer_of(int64_t outputs, int64_t inputs, int64_t columns) {
  return (o3_sparse_layer_t){.weight = {.is_matmul = true,
                                        .is_f32 = true,
                                        .outputs = outputs,
                                        .channels = inputs,
                                        .group = 1,
                                        .window = {1, 1}},
                             .columns = columns,
                             .columns_known = true,
                             .dense_gain = 1,
                             .moved = 4 * columns * (outputs + inputs)};
}

static void fewer_entries_cost_less(void **state) {
  static const int64_t COLUMNS[] = {1, 7, 49, 128, 3136};
  const o3_sparse_block_t block = {.lanes = 16, .depth = 16};
  (void)state;
  for (size_t i = 0; i < sizeof(COLUMNS) / sizeof(COLUMNS[0]); ++i) {
    o3_sparse_layer_t layer = layer_of(256, 512, COLUMNS[i]);
    double before = 0;
    for (int64_t entries = 1; entries <= 16 * 32; entries *= 2) {
      double cost = o3_sparse_cost(&layer, &block, entries);
      assert_true(cost > before);
      before = cost;
    }
    /* A full matrix gains nothing by being stored in blocks; a fifth of it does. */
    assert_true(o3_sparse_cost(&layer, &block, 16 * 32) >= o3_sparse_cost_dense(&layer));
    assert_true(o3_sparse_cost(&layer, &block, 16 * 32 / 5) < o3_sparse_cost_dense(&layer));
  }
}

static void smaller_blocks_cost_more(void **state) {
  o3_sparse_layer_t layer = layer_of(256, 256, 196);
  const o3_sparse_block_t whole = {.lanes = 16, .depth = 16}, column = {.lanes = 16, .depth = 1},
                          small = {.lanes = 4, .depth = 4}, odd = {.lanes = 16, .depth = 4};
  (void)state;
  double cost = o3_sparse_cost(&layer, &whole, 100);
  assert_true(o3_sparse_cost(&layer, &column, 1600) > cost);
  assert_true(o3_sparse_cost(&layer, &small, 1600) > o3_sparse_cost(&layer, &column, 1600));
  /* A block that is not in the table has the rate of one that fits into it. */
  assert_true(o3_sparse_cost(&layer, &odd, 400) >= cost);
}

static void bytes_are_those_of_the_arrays(void **state) {
  o3_sparse_layer_t layer = layer_of(40, 32, 10);
  const o3_sparse_block_t block = {.lanes = 16, .depth = 16}, single = {.lanes = 1, .depth = 1};
  (void)state;
  assert_int_equal(o3_sparse_bytes_dense(&layer), 40 * 32 * 4);
  assert_int_equal(o3_sparse_bytes(&layer, &block, 3), 3 * (16 * 16 * 4 + 4) + (4 + 4) * 4);
  assert_int_equal(o3_sparse_bytes(&layer, &single, 7), 7 * 8 + (41 + 2) * 4);
}

/* The first 16 outputs of 128 have all weights, the others one for each 16. */
static void parts_have_equal_work(void **state) {
  enum { OUTPUTS = 128, INPUTS = 64, BLOCKS = OUTPUTS / 16 };
  static float data[OUTPUTS * INPUTS], values[OUTPUTS * INPUTS];
  static int32_t rows[2 * (BLOCKS + 1)], columns[BLOCKS * INPUTS + 1];
  o3_sparse_layer_t layer = layer_of(OUTPUTS, INPUTS, 1);
  const o3_sparse_block_t block = {.lanes = 16, .depth = 1};
  o3_sparse_packed_t packed = {.rows = rows, .columns = columns, .values = values};
  (void)state;
  for (int m = 0; m < OUTPUTS; ++m)
    for (int c = 0; c < INPUTS; ++c) data[m * INPUTS + c] = m < 16 || c == 0;
  layer.weight.data = data;
  layer.weight.strides[0] = INPUTS;
  layer.weight.strides[1] = 1;
  assert_int_equal(o3_sparse_rows_size(&layer.weight, &block), 2 * (BLOCKS + 1));
  o3_sparse_pack(&layer.weight, &block, &packed);
  const int32_t *starts = rows + BLOCKS + 1;
  assert_int_equal(packed.num_entries, INPUTS + BLOCKS - 1);
  assert_int_equal(starts[0], 0);
  assert_int_equal(starts[1], 1);
  assert_int_equal(starts[5], 1); /* the parts behind the full block are empty */
  assert_int_equal(starts[BLOCKS], BLOCKS);
  for (int p = 0; p < BLOCKS; ++p) assert_true(starts[p] <= starts[p + 1]);
}

/* A block in the middle, and numbers too few to make one. */
static void hybrids_cost_what_their_parts_do(void **state) {
  enum { OUTPUTS = 48, INPUTS = 33, FULL = 120 };
  static uint8_t nonzero[OUTPUTS * INPUTS], part[OUTPUTS * INPUTS];
  const o3_zero_mask_t mask = {1, 1, OUTPUTS, INPUTS, nonzero};
  const o3_sparse_block_t block = {.lanes = 16, .depth = 16}, rows = {.lanes = 1, .depth = 1};
  o3_sparse_layer_t layer = layer_of(OUTPUTS, INPUTS, 100);
  o3_sparse_split_t split;
  (void)state;
  for (int i = 0; i < FULL; ++i) nonzero[(16 + i % 16) * INPUTS + 16 + i / 16] = 1;
  nonzero[0] = nonzero[OUTPUTS * INPUTS - 1] = 1;
  o3_sparse_hybrid_split(&mask, &block, part, &split);
  assert_int_equal(split.blocks, 1);
  assert_int_equal(split.entries, 2);
  assert_int_equal(part[16 * INPUTS + 16], 1);
  assert_int_equal(part[31 * INPUTS + 31], 1); /* a zero of the block */
  assert_int_equal(part[0] + part[16 * INPUTS + 15] + part[OUTPUTS * INPUTS - 1], 0);
  assert_int_equal(o3_sparse_hybrid_bytes(&layer, &block, &split),
                   o3_sparse_bytes(&layer, &block, 1) + o3_sparse_bytes(&layer, &rows, 2));
  assert_true(o3_sparse_hybrid_cost(&layer, &block, &split) >
              o3_sparse_cost(&layer, &block, 1) + o3_sparse_cost(&layer, &rows, 2));
  split.entries = 0;
  assert_true(o3_sparse_hybrid_cost(&layer, &block, &split) == o3_sparse_cost(&layer, &block, 1));
}

static void candidates_are_formats(void **state) {
  const char *format;
  int count = 0;
  (void)state;
  for (; o3_sparse_candidate(count, &format); ++count) {
    o3_sparse_format_t parsed;
    assert_ok(o3_sparse_format_parse(format, &parsed));
    assert_true(parsed.kind != O3_SPARSE_AUTO && parsed.kind != O3_SPARSE_DENSE);
  }
  assert_true(count > 3);
  assert_false(o3_sparse_candidate(-1, &format));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fewer_entries_cost_less),          cmocka_unit_test(smaller_blocks_cost_more),
      cmocka_unit_test(bytes_are_those_of_the_arrays),    cmocka_unit_test(parts_have_equal_work),
      cmocka_unit_test(hybrids_cost_what_their_parts_do), cmocka_unit_test(candidates_are_formats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
