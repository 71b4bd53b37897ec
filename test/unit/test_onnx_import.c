/* What the ONNX importer makes of models: the printed module, and where the weights lie. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "import/import.h"
#include "ir/context.h"
#include "test_onnx_writer.h"
#include "unit.h"

static MlirContext context;

typedef struct imported {
  o3_arena_t *arena;
  o3_weights_t *weights;
  MlirModule module;
  char *text; /* without locations */
} imported_t;

/* The character after the location that starts at |at|, " loc(" to its closing bracket. */
static const char *skip_location(const char *at) {
  int depth = 0;
  for (at += strlen(" loc"); depth += (*at == '(') - (*at == ')'), ++at, depth > 0;) continue;
  return at;
}

static char *print(MlirModule module) {
  o3_strbuf_t buffer = O3_STRBUF_INIT;
  char *text = o3_ir_print(mlirModuleGetOperation(module));
  assert_non_null(text);
  for (const char *at = text; *at;) {
    if (strncmp(at, " loc(", 5) == 0) {
      at = skip_location(at);
    } else {
      o3_strbuf_append(&buffer, at++, 1);
    }
  }
  free(text);
  return buffer.text;
}

/* Imports the model and frees its message, whose bytes stay until close_model. */
static imported_t open_model(msg_t *model) {
  imported_t result = {.arena = o3_arena_create()};
  assert_ok(o3_weights_create(context, &result.weights));
  o3_onnx_buffer_t buffer = {(const uint8_t *)model->text, model->length, "dir/net.onnx", NULL};
  assert_ok(o3_import_onnx_buffer(context, result.arena, result.weights, &buffer, &result.module));
  assert_ok(o3_ir_verify(mlirModuleGetOperation(result.module)));
  result.text = print(result.module);
  return result;
}

static void close_model(imported_t *result, msg_t *model) {
  free(result->text);
  mlirModuleDestroy(result->module);
  o3_weights_destroy(result->weights);
  o3_arena_destroy(result->arena);
  o3_strbuf_deinit(model);
}

static void expect(const imported_t *result, const char *text) { unit_assert_contains(result->text, text); }

/* The texts come in this order. */
static void expect_order(const imported_t *result, const char *const *texts) {
  const char *at = result->text;
  for (; *texts; ++texts) {
    const char *found = strstr(at, *texts);
    if (!found) fail_msg("missing or out of order:\n%s\nin:\n%s", *texts, result->text);
    at = found + strlen(*texts);
  }
}

/* ---- Graphs ---- */

static msg_t add_model(void) {
  msg_t graph = MSG;
  msg_text(&graph, GRAPH_NAME, "g");
  add_value(&graph, GRAPH_INPUT, "data", TYPE_FLOAT, "N 4 - -1");
  add_value(&graph, GRAPH_OUTPUT, "out", TYPE_FLOAT, "N 4");
  add_node(&graph, "first", "Relu", "data", "t");
  add_node(&graph, "", "Add", "t data", "out");
  return make_model(&graph);
}

static void test_graph(void **state) {
  (void)state;
  msg_t model = add_model();
  add_opset(&model, MODEL_OPSET, "ai.onnx", 17); /* again, as merged models do */
  imported_t result = open_model(&model);
  expect(
      &result,
      "o3.ir_version = 8 : i64, o3.model = \"net\", o3.opset = {ai.onnx = 17 : i64}, o3.stage = \"import\"");
  expect(&result,
         "@main(%arg0: !o3.value {o3.dims = [\"N\", \"\", \"data.d2\", \"data.d3\"], o3.name = \"data\", "
         "o3.type = tensor<?x4x?x?xf32>})");
  expect(&result, "(!o3.value {o3.dims = [\"N\", \"\"], o3.name = \"out\", o3.type = tensor<?x4xf32>})");
  expect(&result,
         "%0 = \"o3.node\"(%arg0) {attrs = {}, domain = \"\", name = \"first\", op = \"Relu\", opset = 17 "
         ": i64, outputs = [\"t\"]} : (!o3.value) -> !o3.value");
  expect(&result, "%1 = \"o3.node\"(%0, %arg0) {attrs = {}, domain = \"\", name = \"Add#1\"");
  expect(&result, "return %1 : !o3.value");
  close_model(&result, &model);
}

static void test_locations(void **state) {
  (void)state;
  msg_t model = add_model();
  imported_t result = open_model(&model);
  MlirBlock body = o3_func_body(o3_module_func(result.module, "main"));
  MlirOperation relu = mlirBlockGetFirstOperation(body), add = mlirOperationGetNextInBlock(relu);
  assert_true(o3_str_equal(o3_op_label(relu), "first"));
  assert_true(o3_str_equal(o3_op_label(add), "Add#1"));
  char *text = o3_ir_print(mlirModuleGetOperation(result.module));
  assert_non_null(strstr(text, "loc(\"net.onnx\":2:0)"));
  free(text);
  close_model(&result, &model);
}

static void test_omitted_values(void **state) {
  (void)state;
  msg_t graph = MSG;
  add_value(&graph, GRAPH_INPUT, "x", TYPE_FLOAT, NULL);
  add_value(&graph, GRAPH_OUTPUT, "z", TYPE_FLOAT, NULL);
  add_node(&graph, "clip", "Clip", "x - x", "y");
  add_node(&graph, "split", "Split", "y -", "- z");
  msg_t model = make_model(&graph);
  imported_t result = open_model(&model);
  expect(&result, "@main(%arg0: !o3.value {o3.name = \"x\"}) -> (!o3.value {o3.name = \"z\"})");
  expect(&result, "\"o3.node\"(%arg0, %arg0)");
  expect(&result, "outputs = [\"y\"], present = [true, false, true]}");
  expect(&result, "%1:2 = \"o3.node\"(%0)");
  expect(&result, "outputs = [\"\", \"z\"], present = [true, false]}");
  close_model(&result, &model);
}

static void test_sorting(void **state) {
  (void)state;
  msg_t graph = MSG;
  add_value(&graph, GRAPH_INPUT, "x", TYPE_FLOAT, NULL);
  add_value(&graph, GRAPH_OUTPUT, "d", TYPE_FLOAT, NULL);
  add_node(&graph, "D", "Add", "c a", "d");
  add_node(&graph, "A", "Neg", "x", "a");
  add_node(&graph, "C", "Add", "b a", "c");
  add_node(&graph, "B", "Exp", "a", "b");
  msg_t model = make_model(&graph);
  imported_t result = open_model(&model);
  expect_order(&result, (const char *const[]){"\"A\"", "\"B\"", "\"C\"", "\"D\"", NULL});
  close_model(&result, &model);
}

/* A chain as long as a model must not exhaust the stack when it is sorted backwards. */
static void test_long_chain(void **state) {
  (void)state;
  enum { LENGTH = 50000 };
  msg_t graph = MSG;
  char in[16], out[16] = "x";
  add_value(&graph, GRAPH_INPUT, "v0", TYPE_FLOAT, NULL);
  for (int i = LENGTH; i > 0; --i) {
    snprintf(out, sizeof(out), "v%d", i);
    snprintf(in, sizeof(in), "v%d", i - 1);
    add_node(&graph, "", "Neg", in, out);
  }
  snprintf(out, sizeof(out), "v%d", LENGTH);
  add_value(&graph, GRAPH_OUTPUT, out, TYPE_FLOAT, NULL);
  msg_t model = make_model(&graph);
  imported_t result = open_model(&model);
  expect_order(&result, (const char *const[]){"\"Neg#49999\"", "\"Neg#0\"", NULL});
  close_model(&result, &model);
}

/* ---- Weights ---- */

static void test_initializers(void **state) {
  (void)state;
  float big[400];
  for (int i = 0; i < 400; ++i) big[i] = (float)i;
  msg_t graph = MSG;
  add_value(&graph, GRAPH_INPUT, "x", TYPE_FLOAT, "400");
  add_value(&graph, GRAPH_INPUT, "small", TYPE_FLOAT, "1");
  add_value(&graph, GRAPH_OUTPUT, "y", TYPE_FLOAT, "400");
  add_floats(&graph, "small", 1, (const float[]){2});
  add_floats(&graph, "unread", 1, (const float[]){3});
  add_floats(&graph, "big", 400, big);
  add_node(&graph, "a", "Add", "x big", "t");
  add_node(&graph, "b", "Mul", "t small", "y");
  msg_t model = make_model(&graph);
  imported_t result = open_model(&model);
  expect_order(&result,
               (const char *const[]){"@main(%arg0: !o3.value {o3.dims = [\"\"], o3.name = \"x\", o3.type = "
                                     "tensor<400xf32>}) ->",
                                     "{name = \"big\", value = dense_resource<big> : tensor<400xf32>}",
                                     "{name = \"small\", value = dense<2.000000e+00> : tensor<1xf32>}",
                                     "\"a\"", NULL});
  assert_null(strstr(result.text, "unread"));
  /* The bytes were not copied: they are the model's own. */
  MlirBlock body = o3_func_body(o3_module_func(result.module, "main"));
  size_t bytes;
  MlirAttribute value = o3_op_attr(mlirBlockGetFirstOperation(body), "value");
  const char *data = o3_weights_data(result.weights, value, &bytes);
  assert_int_equal(bytes, sizeof(big));
  assert_memory_equal(data, big, sizeof(big));
  assert_true(data > model.text && data + bytes < model.text + model.length);
  close_model(&result, &model);
}

static void test_typed_data(void **state) {
  (void)state;
  msg_t graph = MSG;
  msg_t u8 = make_tensor("u8", TYPE_UINT8, 1, (const int64_t[]){2});
  msg_int(&u8, TENSOR_INT32, 255);
  msg_int(&u8, TENSOR_INT32, 7);
  msg_t f16 = make_tensor("f16", TYPE_FLOAT16, 1, (const int64_t[]){2});
  msg_int(&f16, TENSOR_INT32, 0x3c00);
  msg_int(&f16, TENSOR_INT32, 0xbc00);
  msg_t u32 = make_tensor("u32", TYPE_UINT32, 1, (const int64_t[]){2});
  msg_int(&u32, TENSOR_UINT64, 4294967295);
  msg_int(&u32, TENSOR_UINT64, 1);
  msg_t i64 = make_tensor("i64", TYPE_INT64, 0, NULL);
  msg_int(&i64, TENSOR_INT64, -5);
  msg_t truth = make_tensor("truth", TYPE_BOOL, 1, (const int64_t[]){3});
  msg_bytes(&truth, TENSOR_RAW, "\1\0\1", 3);
  msg_t none = make_tensor("none", TYPE_FLOAT, 2, (const int64_t[]){0, 4});
  msg_t *tensors[] = {&u8, &f16, &u32, &i64, &truth, &none};
  for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); ++i)
    msg_take(&graph, GRAPH_INITIALIZER, tensors[i]);
  add_node(&graph, "n", "Join", "u8 f16 u32 i64 truth none", "y");
  add_value(&graph, GRAPH_OUTPUT, "y", TYPE_FLOAT, NULL);
  msg_t model = make_model(&graph);
  imported_t result = open_model(&model);
  expect(&result, "dense<[255, 7]> : tensor<2xui8>");
  expect(&result, "dense<[1.000000e+00, -1.000000e+00]> : tensor<2xf16>");
  expect(&result, "dense<[4294967295, 1]> : tensor<2xui32>");
  expect(&result, "dense<-5> : tensor<i64>");
  expect(&result, "dense<[true, false, true]> : tensor<3xi1>");
  expect(&result, "dense<> : tensor<0x4xf32>");
  close_model(&result, &model);
}

/* ---- Attributes and graphs in them ---- */

static void test_attributes(void **state) {
  (void)state;
  msg_t graph = MSG, node = make_node("c", "Thing", "", "y");
  add_int(&node, "axis", -1);
  msg_t ints = make_attribute("pads", 7);
  msg_int(&ints, ATTR_INTS, 1);
  msg_int(&ints, ATTR_INTS, 2);
  msg_take(&node, NODE_ATTRIBUTE, &ints);
  msg_t value = make_attribute("value", 4), tensor = make_tensor("", TYPE_INT64, 1, (const int64_t[]){1});
  msg_int(&tensor, TENSOR_INT64, 9);
  msg_take(&value, ATTR_TENSOR, &tensor);
  msg_take(&node, NODE_ATTRIBUTE, &value);
  msg_take(&graph, GRAPH_NODE, &node);
  add_value(&graph, GRAPH_OUTPUT, "y", TYPE_FLOAT, NULL);
  msg_t model = make_model(&graph);
  imported_t result = open_model(&model);
  expect(&result, "attrs = {axis = -1 : i64, pads = array<i64: 1, 2>, value = dense<9> : tensor<1xi64>}");
  close_model(&result, &model);
}

static msg_t branch(const char *inputs, const char *output) {
  msg_t graph = MSG;
  add_node(&graph, "", "Add", inputs, output);
  add_value(&graph, GRAPH_OUTPUT, output, TYPE_FLOAT, NULL);
  return graph;
}

static void test_captures(void **state) {
  (void)state;
  msg_t graph = MSG, node = make_node("choose", "If", "c", "y");
  msg_t then_branch = branch("x w", "t"), else_branch = branch("x x", "e");
  add_graph(&node, "then_branch", &then_branch);
  add_graph(&node, "else_branch", &else_branch);
  add_value(&graph, GRAPH_INPUT, "c", TYPE_BOOL, "");
  add_value(&graph, GRAPH_INPUT, "x", TYPE_FLOAT, "2");
  add_value(&graph, GRAPH_OUTPUT, "y", TYPE_FLOAT, "2");
  add_floats(&graph, "w", 1, (const float[]){1});
  msg_take(&graph, GRAPH_NODE, &node);
  msg_t model = make_model(&graph);
  imported_t result = open_model(&model);
  expect(&result,
         "\"o3.node\"(%arg0, %arg1, %0) {attrs = {else_branch = @choose.else_branch, then_branch = "
         "@choose.then_branch}, captures = 2 : i64");
  expect(&result,
         "func.func private @choose.then_branch(%arg0: !o3.value {o3.name = \"x\"}, %arg1: !o3.value "
         "{o3.name = \"w\"}) -> (!o3.value {o3.name = \"t\"})");
  expect(&result, "name = \"choose/then_branch/Add#0\"");
  close_model(&result, &model);
}

/* ---- Functions ---- */

static msg_t make_function(const char *name, const char *inputs, const char *outputs) {
  msg_t function = MSG;
  msg_text(&function, FUNCTION_NAME, name);
  msg_text(&function, FUNCTION_DOMAIN, "my");
  msg_names(&function, FUNCTION_INPUT, inputs);
  msg_names(&function, FUNCTION_OUTPUT, outputs);
  add_opset(&function, FUNCTION_OPSET, "", 15);
  add_opset(&function, FUNCTION_OPSET, "my", 1);
  return function;
}

static msg_t call_model(const char *name, const char *inputs) {
  msg_t graph = MSG, call = make_node("call", name, inputs, "y");
  msg_text(&call, NODE_DOMAIN, "my");
  add_int(&call, "axis", 3);
  msg_take(&graph, GRAPH_NODE, &call);
  add_value(&graph, GRAPH_INPUT, "x", TYPE_FLOAT, "2");
  add_value(&graph, GRAPH_OUTPUT, "y", TYPE_FLOAT, "2");
  msg_t model = make_model(&graph);
  add_opset(&model, MODEL_OPSET, "my", 1);
  return model;
}

static void test_functions(void **state) {
  (void)state;
  msg_t model = call_model("Outer", "x");
  msg_t outer = make_function("Outer", "a b", "r"), inner = make_function("Inner", "a b", "r");
  msg_text(&outer, FUNCTION_ATTRIBUTE, "axis");
  msg_text(&inner, FUNCTION_ATTRIBUTE, "dim");
  msg_text(&inner, FUNCTION_ATTRIBUTE, "left_out");
  msg_t node = make_node("in", "Inner", "a b", "r"), passed = make_attribute("dim", 2);
  msg_text(&node, NODE_DOMAIN, "my");
  msg_text(&passed, ATTR_REF, "axis");
  msg_take(&node, NODE_ATTRIBUTE, &passed);
  msg_take(&outer, FUNCTION_NODE, &node);
  node = make_node("", "Op", "a b", "r");
  msg_t used = make_attribute("axis", 2), absent = make_attribute("keep", 2);
  msg_text(&used, ATTR_REF, "dim");
  msg_text(&absent, ATTR_REF, "left_out");
  msg_take(&node, NODE_ATTRIBUTE, &used);
  msg_take(&node, NODE_ATTRIBUTE, &absent);
  msg_take(&inner, FUNCTION_NODE, &node);
  msg_take(&model, MODEL_FUNCTION, &outer);
  msg_take(&model, MODEL_FUNCTION, &inner);
  imported_t result = open_model(&model);
  expect(&result,
         "\"o3.node\"(%arg0) {attrs = {axis = 3 : i64}, domain = \"\", name = \"call/in/Op#0\", op = \"Op\", "
         "opset = 15 : i64, outputs = [\"r\"], present = [true, false]}");
  close_model(&result, &model);
}

/* ---- Out of memory ---- */

/* Imports with the |n|-th allocation failing; false when there were fewer. */
static bool import_with_fault(const o3_onnx_buffer_t *buffer, uint64_t n) {
  o3_weights_t *weights;
  MlirModule module;
  assert_ok(o3_weights_create(context, &weights));
  o3_arena_t *arena = o3_arena_create();
  assert_non_null(arena);
  o3_fault_alloc_arm(n);
  o3_status_t status = o3_import_onnx_buffer(context, arena, weights, buffer, &module);
  bool failed = o3_fault_alloc_has_failed();
  o3_fault_alloc_arm(0);
  assert_int_equal(o3_status_code(status), failed ? O3_STATUS_OUT_OF_MEMORY : O3_STATUS_OK);
  if (!status) mlirModuleDestroy(module);
  o3_status_destroy(status);
  o3_weights_destroy(weights);
  o3_arena_destroy(arena);
  return failed;
}

/* Each allocation fails once: each time the import ends with that status, and nothing leaks. */
static void test_out_of_memory(void **state) {
  (void)state;
  static const char *const SEEDS[] = {"branches", "functions", "omitted", "sparse_weights", "typed_weights"};
  for (size_t i = 0; i < sizeof(SEEDS) / sizeof(SEEDS[0]); ++i) {
    char path[512];
    o3_mapped_file_t file;
    snprintf(path, sizeof(path), "%s/test/fuzz/corpus/fuzz_onnx_import/%s.onnx", O3_SOURCE_DIR, SEEDS[i]);
    assert_ok(o3_file_map(path, &file));
    o3_onnx_buffer_t buffer = {file.data, file.size, "net.onnx", NULL};
    uint64_t n = 1;
    while (import_with_fault(&buffer, n)) ++n;
    assert_true(n > 5);
    o3_file_unmap(&file);
  }
}

static int create_context(void **state) {
  (void)state;
  return o3_context_create(&context) ? -1 : 0;
}

static int destroy_context(void **state) {
  (void)state;
  o3_context_destroy(context);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_graph),          cmocka_unit_test(test_locations),
      cmocka_unit_test(test_omitted_values), cmocka_unit_test(test_sorting),
      cmocka_unit_test(test_long_chain),     cmocka_unit_test(test_initializers),
      cmocka_unit_test(test_typed_data),     cmocka_unit_test(test_attributes),
      cmocka_unit_test(test_captures),       cmocka_unit_test(test_functions),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests_name("onnx_import", tests, create_context, destroy_context);
}
