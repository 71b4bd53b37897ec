#include <string.h>

#include "driver/overrides.h"
#include "driver/sparse_format.h"
#include "driver/stage.h"
#include "unit.h"

static int set_up(void **state) {
  static MlirContext context;
  assert_ok(o3_context_create(&context));
  *state = &context;
  return 0;
}

static int tear_down(void **state) {
  o3_context_destroy(*(MlirContext *)*state);
  return 0;
}

static o3_status_t check(void **state, o3_stage_t stage, const char *text) {
  MlirModule module = mlirModuleCreateParse(*(MlirContext *)*state, O3_STR(text));
  assert_false(mlirModuleIsNull(module));
  o3_status_t status = o3_stage_verify(stage, module);
  mlirModuleDestroy(module);
  return status;
}

static const char CONSTANT[] = "func.func @main() -> i32 { %c = arith.constant 1 : i32 return %c : i32 }";
static const char NODE[] =
    "func.func @main() { \"o3.initializer\"() {name = \"w\", value = 1 : i32} : () -> !o3.value return }";

static void legal_ops_pass(void **state) {
  assert_ok(check(state, O3_STAGE_LOWER, CONSTANT));
  assert_ok(check(state, O3_STAGE_NORMALIZE, CONSTANT));
  assert_ok(check(state, O3_STAGE_IMPORT, NODE));
  assert_ok(check(state, O3_STAGE_LLVM, "llvm.func @main() { llvm.return }"));
  assert_ok(check(state, O3_STAGE_LLVM, ""));
}

static void illegal_ops_are_named(void **state) {
  assert_fails(check(state, O3_STAGE_IMPORT, CONSTANT), O3_STATUS_INTERNAL,
               "op 'arith.constant' (of 'arith.constant') is not legal after stage import");
  assert_fails(check(state, O3_STAGE_LLVM, "func.func private @f()"), O3_STATUS_INTERNAL, "op 'func.func'");
}

/* "!op" wins over the dialect that follows it. */
static void excluded_ops_are_illegal(void **state) {
  assert_fails(check(state, O3_STAGE_NORMALIZE, NODE), O3_STATUS_INTERNAL, "op 'o3.initializer'");
}

/* cf.assert is legal after lowering, cf.br is not. */
static void single_ops_do_not_allow_their_dialect(void **state) {
  assert_fails(check(state, O3_STAGE_LOWER, "func.func @main() { cf.br ^a ^a: return }"), O3_STATUS_INTERNAL,
               "op 'cf.br'");
}

static void stages_are_found_by_name(void **state) {
  (void)state;
  for (int i = 0; i < O3_STAGE_COUNT; ++i) {
    o3_stage_t stage;
    assert_ok(o3_stage_find(o3_stage_name((o3_stage_t)i), &stage));
    assert_int_equal(stage, i);
    assert_true(strlen(o3_stage_summary(stage)) > 0);
  }
  o3_stage_t stage;
  assert_fails(o3_stage_find("nope", &stage), O3_STATUS_INVALID_ARGUMENT,
               "there is no stage 'nope'; stages: import, normalize,");
}

static void sparse_formats_are_known_by_pattern(void **state) {
  static const char *const NOW[] = {"auto",    "dense",  "csr",    "bsr-16x16",
                                    "bsr-1x8", "nm-2:4", "hybrid", "hybrid-8x8"};
  static const char *const UNKNOWN[] = {
      "", "bsr", "bsr-16", "bsr-x8", "nm-2:", "hybrid-8", "CSR", "dense ", "auto1"};
  (void)state;
  for (size_t i = 0; i < sizeof(NOW) / sizeof(NOW[0]); ++i) assert_ok(o3_sparse_format_check(NOW[i]));
  for (size_t i = 0; i < sizeof(UNKNOWN) / sizeof(UNKNOWN[0]); ++i)
    assert_fails(o3_sparse_format_check(UNKNOWN[i]), O3_STATUS_INVALID_ARGUMENT,
                 "is unknown; supported: auto, dense");
}

static void overrides_are_parsed(void **state) {
  (void)state;
  o3_arena_t *arena = o3_arena_create();
  o3_compile_options_t options = {0};
  assert_ok(o3_overrides_add_dim(arena, "batch=8", &options));
  assert_ok(o3_overrides_add_dim(arena, "a=b=0", &options));
  assert_ok(o3_overrides_add_shape(arena, "input:0:1x?x224", &options));
  assert_ok(o3_overrides_add_shape(arena, "s:7", &options));
  o3_pass_env_t env = {0};
  assert_ok(o3_overrides_apply(arena, &options, &env));
  assert_int_equal(env.num_dims, 2);
  assert_string_equal(env.dims[0].name, "batch");
  assert_int_equal(env.dims[0].size, 8);
  assert_string_equal(env.dims[1].name, "a=b");
  assert_int_equal(env.dims[1].size, 0);
  assert_int_equal(env.num_shapes, 2);
  assert_string_equal(env.shapes[0].input, "input:0");
  assert_int_equal(env.shapes[0].rank, 3);
  assert_int_equal(env.shapes[0].sizes[1], -1);
  assert_int_equal(env.shapes[0].sizes[2], 224);
  assert_int_equal(env.shapes[1].rank, 1);
  o3_arena_destroy(arena);
}

static void malformed_overrides_are_refused(void **state) {
  static const char *const DIMS[] = {"", "N", "N=", "=3", "N=-1", "N=3x", "N= 3"};
  static const char *const SHAPES[] = {"",
                                       "x",
                                       "x:",
                                       ":1",
                                       "x:1x",
                                       "x:x1",
                                       "x:1x-2",
                                       "x:1xx2",
                                       "x:??",
                                       "x:1,2",
                                       "x:1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1"};
  (void)state;
  o3_arena_t *arena = o3_arena_create();
  o3_compile_options_t options = {0};
  for (size_t i = 0; i < sizeof(DIMS) / sizeof(DIMS[0]); ++i)
    assert_fails(o3_overrides_add_dim(arena, DIMS[i], &options), O3_STATUS_INVALID_ARGUMENT,
                 "is not of the form NAME=SIZE");
  for (size_t i = 0; i < sizeof(SHAPES) / sizeof(SHAPES[0]); ++i)
    assert_fails(o3_overrides_add_shape(arena, SHAPES[i], &options), O3_STATUS_INVALID_ARGUMENT,
                 "is not of the form NAME:1x3x224x224");
  assert_fails(o3_overrides_add_dim(arena, "N=99999999999999999999", &options), O3_STATUS_INVALID_ARGUMENT,
               "dimension 'N=99999999999999999999' has a number beyond 9223372036854775807");
  assert_fails(o3_overrides_add_shape(arena, "x:1x9223372036854775808x?", &options),
               O3_STATUS_INVALID_ARGUMENT, "has a number beyond 9223372036854775807");
  assert_int_equal(options.num_dims, 0);
  assert_int_equal(options.num_shapes, 0);
  o3_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
      TEST(legal_ops_pass),
      TEST(illegal_ops_are_named),
      TEST(excluded_ops_are_illegal),
      TEST(single_ops_do_not_allow_their_dialect),
      cmocka_unit_test(stages_are_found_by_name),
      cmocka_unit_test(sparse_formats_are_known_by_pattern),
      cmocka_unit_test(overrides_are_parsed),
      cmocka_unit_test(malformed_overrides_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
