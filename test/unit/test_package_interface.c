#include <string.h>

#include "package/interface.h"
#include "unit.h"

typedef struct fixture {
  MlirContext context;
  o3_arena_t *arena;
  MlirModule module;
} fixture_t;

static int set_up(void **state) {
  static fixture_t fixture;
  fixture = (fixture_t){.arena = o3_arena_create()};
  assert_ok(o3_context_create(&fixture.context));
  *state = &fixture;
  return 0;
}

static int tear_down(void **state) {
  fixture_t *fixture = *state;
  if (!mlirModuleIsNull(fixture->module)) mlirModuleDestroy(fixture->module);
  o3_context_destroy(fixture->context);
  o3_arena_destroy(fixture->arena);
  return 0;
}

static void parse(fixture_t *fixture, const char *text) {
  fixture->module = mlirModuleCreateParse(fixture->context, O3_STR(text));
  assert_false(mlirModuleIsNull(fixture->module));
}

static o3_status_t record_and_read(fixture_t *fixture, o3_interface_t *interface) {
  o3_pass_env_t env = {.context = fixture->context, .arena = fixture->arena};
  O3_TRY(o3_interface_record(&env, fixture->module));
  return o3_interface_read(fixture->arena, fixture->module, interface);
}

static void names_types_and_symbols_are_read(void **state) {
  o3_interface_t interface;
  parse(*state,
        "func.func @main(%a: tensor<?x3xf32> {o3.name = \"x\", o3.shape = affine_map<()[s0, s1] -> (s1, 3)>},"
        "                %b: tensor<2xui8> {o3.name = \"mask\"}, %c: tensor<i1> {o3.name = \"flag\"})"
        "    -> (tensor<?x?xf32> {o3.name = \"y\", o3.shape = affine_map<()[s0, s1] -> (s1, s1 * 2)>})"
        "    attributes {o3.symbols = [{name = \"M\"}, {name = \"N\"}], o3.guards = [{text = \"N must equal "
        "M\"}]} {"
        "  %y = tensor.empty() : tensor<2x4xf32> %z = tensor.cast %y : tensor<2x4xf32> to tensor<?x?xf32>"
        "  return %z : tensor<?x?xf32> }");
  assert_ok(record_and_read(*state, &interface));
  assert_int_equal(interface.num_inputs, 3);
  assert_int_equal(interface.num_outputs, 1);
  assert_int_equal(interface.num_symbols, 2);
  assert_string_equal(interface.symbols[0], "M");
  assert_string_equal(interface.symbols[1], "N");
  assert_int_equal(interface.num_guards, 1);
  assert_string_equal(interface.guards[0], "N must equal M");
  const o3_interface_tensor_t *x = &interface.inputs[0], *y = &interface.outputs[0];
  assert_string_equal(x->name, "x");
  assert_int_equal(x->dtype, O3_DTYPE_F32);
  assert_int_equal(x->rank, 2);
  assert_int_equal(x->dims[0].size, -1);
  assert_int_equal(x->dims[0].symbol, 1);
  assert_int_equal(x->dims[1].size, 3);
  assert_int_equal(interface.inputs[1].dtype, O3_DTYPE_U8);
  assert_int_equal(interface.inputs[2].dtype, O3_DTYPE_BOOL);
  assert_int_equal(interface.inputs[2].rank, 0);
  assert_int_equal(y->dims[0].symbol, 1);
  assert_int_equal(y->dims[1].size, -1);
  assert_int_equal(y->dims[1].symbol, -1); /* an expression: known after the run */
}

/* A symbol that no input binds tells a caller nothing. */
static void symbols_of_the_run_are_left_out(void **state) {
  o3_interface_t interface;
  parse(*state,
        "func.func private @main(tensor<4xf32> {o3.name = \"x\"})"
        "    -> (tensor<?xi64> {o3.name = \"i\", o3.shape = affine_map<()[s0] -> (s0)>})"
        "    attributes {o3.symbols = [{name = \"count\"}]}");
  assert_ok(record_and_read(*state, &interface));
  assert_int_equal(interface.num_symbols, 1);
  assert_int_equal(interface.outputs[0].dims[0].symbol, -1);
}

static void unnamed_tensors_get_names(void **state) {
  o3_interface_t interface;
  parse(*state, "func.func private @main(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>");
  assert_ok(record_and_read(*state, &interface));
  assert_string_equal(interface.inputs[1].name, "input1");
  assert_string_equal(interface.outputs[0].name, "output0");
}

static void inputs_without_a_size_are_refused(void **state) {
  o3_interface_t interface;
  parse(*state, "func.func private @main(tensor<?xf32> {o3.name = \"x\"})");
  assert_fails(record_and_read(*state, &interface), O3_STATUS_INVALID_MODEL,
               "input 'x': dimension 0 is neither a size nor one of the 0 symbols");
}

static void inputs_that_are_no_tensors_are_refused(void **state) {
  o3_interface_t interface;
  parse(*state, "func.func private @main(index {o3.name = \"x\"})");
  assert_fails(record_and_read(*state, &interface), O3_STATUS_INVALID_MODEL,
               "'x' is no tensor of a rank up to 16");
}

static void element_types_without_a_number_are_refused(void **state) {
  o3_interface_t interface;
  parse(*state, "func.func private @main() -> (tensor<2xcomplex<f32>> {o3.name = \"y\"})");
  assert_fails(record_and_read(*state, &interface), O3_STATUS_UNSUPPORTED,
               "output: 'y': element type complex<f32> cannot leave a model");
}

static void modules_without_main_are_refused(void **state) {
  o3_interface_t interface;
  parse(*state, "func.func private @other()");
  assert_fails(record_and_read(*state, &interface), O3_STATUS_INVALID_MODEL,
               "the module has no function @main");
}

static void an_interface_that_was_not_recorded_is_missed(void **state) {
  fixture_t *fixture = *state;
  o3_interface_t interface;
  parse(fixture, "func.func private @main()");
  assert_false(o3_interface_is_recorded(fixture->module));
  assert_fails(o3_interface_read(fixture->arena, fixture->module, &interface), O3_STATUS_INVALID_MODEL,
               "no attribute o3.interface");
}

/* Dumps are edited by hand: whatever stands in the attribute, reading it ends well. */
static void nonsense_is_refused(void **state) {
  static const char *const TEXTS[] = {
      "{}",
      "1 : i64",
      "{inputs = [1]}",
      "{inputs = [{name = 1}]}",
      "{inputs = [{name = \"x\"}]}",
      "{inputs = [{name = \"x\", type = i32}]}",
      "{outputs = [{name = \"x\", type = tensor<*xf32>}]}",
      "{symbols = [3]}",
      "{guards = [{}]}",
      "{inputs = [{name = \"x\", type = tensor<?xf32>, shape = affine_map<()[s0] -> (s0)>}]}",
      "{inputs = [{name = \"x\", type = tensor<?xf32>, shape = affine_map<() -> ()>}], symbols = [\"N\"]}"};
  fixture_t *fixture = *state;
  parse(fixture, "func.func private @main()");
  for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); ++i) {
    o3_interface_t interface;
    o3_op_attr_set(mlirModuleGetOperation(fixture->module), "o3.interface",
                   o3_attr_parse(fixture->context, TEXTS[i]));
    o3_status_t status = o3_interface_read(fixture->arena, fixture->module, &interface);
    if (i >= 2) assert_int_equal(o3_status_code(status), O3_STATUS_INVALID_MODEL);
    o3_status_destroy(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
      TEST(names_types_and_symbols_are_read),
      TEST(symbols_of_the_run_are_left_out),
      TEST(unnamed_tensors_get_names),
      TEST(inputs_without_a_size_are_refused),
      TEST(inputs_that_are_no_tensors_are_refused),
      TEST(element_types_without_a_number_are_refused),
      TEST(modules_without_main_are_refused),
      TEST(an_interface_that_was_not_recorded_is_missed),
      TEST(nonsense_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
