/* Models that break ONNX's rules, or that ask for what a reader must not do: each is refused with a message
 * that says what is wrong and where. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "import/import.h"
#include "ir/context.h"
#include "test_onnx_writer.h"
#include "unit.h"

static MlirContext context;

static o3_status_t import_bytes(const void *data, size_t size) {
  o3_arena_t *arena = o3_arena_create();
  o3_weights_t *weights;
  MlirModule module;
  assert_non_null(arena);
  assert_ok(o3_weights_create(context, &weights));
  o3_onnx_buffer_t buffer = {data, size, "bad.onnx", NULL};
  o3_status_t status = o3_import_onnx_buffer(context, arena, weights, &buffer, &module);
  if (!status) {
    assert_ok(o3_ir_verify(mlirModuleGetOperation(module)));
    mlirModuleDestroy(module);
  } else {
    assert_true(mlirModuleIsNull(module));
  }
  o3_weights_destroy(weights);
  o3_arena_destroy(arena);
  return status;
}

static o3_status_t import_file(const char *path) {
  o3_arena_t *arena = o3_arena_create();
  o3_weights_t *weights;
  MlirModule module;
  assert_non_null(arena);
  assert_ok(o3_weights_create(context, &weights));
  o3_status_t status = o3_import_onnx(context, arena, weights, path, &module);
  if (!status) mlirModuleDestroy(module);
  o3_weights_destroy(weights);
  o3_arena_destroy(arena);
  return status;
}

/* ---- One rule broken each ---- */

/* x -> Neg -> y, which is a valid model; the writers below add to it. */
static msg_t good_graph(void) {
  msg_t graph = MSG;
  add_value(&graph, GRAPH_INPUT, "x", TYPE_FLOAT, "N");
  add_value(&graph, GRAPH_OUTPUT, "y", TYPE_FLOAT, "N");
  add_node(&graph, "neg", "Neg", "x", "y");
  return graph;
}

static msg_t finish(msg_t graph) { return make_model(&graph); }

/* A model whose node 'use' reads the initializer |tensor|, "w". */
static msg_t tensor_model(msg_t tensor) {
  msg_t graph = good_graph();
  msg_take(&graph, GRAPH_INITIALIZER, &tensor);
  add_node(&graph, "use", "Neg", "w", "z");
  return finish(graph);
}

static msg_t empty(void) { return MSG; }

static msg_t garbage(void) {
  msg_t model = MSG;
  o3_strbuf_puts(&model, "This is a text, not a model.\n");
  return model;
}

static msg_t other_message(void) {
  msg_t model = MSG;
  msg_int(&model, 99, 1);
  return model;
}

static msg_t no_graph(void) {
  msg_t model = MSG;
  msg_int(&model, MODEL_IR, 8);
  return model;
}

static msg_t old_ir(void) {
  msg_t model = finish(good_graph());
  msg_int(&model, MODEL_IR, 2);
  return model;
}

static msg_t future_opset(void) {
  msg_t graph = good_graph(), model = MSG;
  msg_int(&model, MODEL_IR, 8);
  add_opset(&model, MODEL_OPSET, "ai.onnx", 29);
  msg_take(&model, MODEL_GRAPH, &graph);
  return model;
}

static msg_t no_opset(void) {
  msg_t graph = good_graph(), model = MSG;
  msg_int(&model, MODEL_IR, 8);
  msg_take(&model, MODEL_GRAPH, &graph);
  return model;
}

static msg_t opset_twice(void) {
  msg_t model = finish(good_graph());
  add_opset(&model, MODEL_OPSET, "ai.onnx", 18);
  return model;
}

static msg_t foreign_domain(void) {
  msg_t graph = good_graph(), node = make_node("odd", "Odd", "x", "z");
  msg_text(&node, NODE_DOMAIN, "com.example");
  msg_take(&graph, GRAPH_NODE, &node);
  return finish(graph);
}

static msg_t no_outputs(void) {
  msg_t graph = MSG;
  add_node(&graph, "neg", "Neg", "x", "y");
  return finish(graph);
}

static msg_t output_undefined(void) {
  msg_t graph = good_graph();
  add_value(&graph, GRAPH_OUTPUT, "nowhere", TYPE_FLOAT, "N");
  return finish(graph);
}

static msg_t input_undefined(void) {
  msg_t graph = good_graph();
  add_node(&graph, "Add_2", "Add", "x ghost", "z");
  return finish(graph);
}

static msg_t cycle(void) {
  msg_t graph = good_graph();
  add_node(&graph, "A", "Add", "x b", "a");
  add_node(&graph, "B", "Neg", "a", "b");
  return finish(graph);
}

static msg_t self_cycle(void) {
  msg_t graph = good_graph();
  add_node(&graph, "A", "Add", "x a", "a");
  return finish(graph);
}

static msg_t defined_twice(void) {
  msg_t graph = good_graph();
  add_node(&graph, "again", "Exp", "x", "y");
  return finish(graph);
}

static msg_t input_twice(void) {
  msg_t graph = good_graph();
  add_value(&graph, GRAPH_INPUT, "x", TYPE_FLOAT, "N");
  return finish(graph);
}

static msg_t no_op_type(void) {
  msg_t graph = good_graph();
  add_node(&graph, "blank", "", "x", "z");
  return finish(graph);
}

static msg_t negative_input_dim(void) {
  msg_t graph = good_graph();
  add_value(&graph, GRAPH_INPUT, "in", TYPE_FLOAT, "2 -7");
  return finish(graph);
}

static msg_t huge_input_dims(void) {
  msg_t graph = good_graph();
  add_value(&graph, GRAPH_INPUT, "in", TYPE_FLOAT, "4294967296 4294967296");
  return finish(graph);
}

static msg_t unknown_input_type(void) {
  msg_t graph = good_graph();
  add_value(&graph, GRAPH_INPUT, "in", 77, "2");
  return finish(graph);
}

static msg_t high_rank(void) {
  msg_t graph = good_graph();
  add_value(&graph, GRAPH_INPUT, "in", TYPE_FLOAT, "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1");
  return finish(graph);
}

static msg_t negative_dim(void) {
  return tensor_model(make_tensor("w", TYPE_FLOAT, 1, (const int64_t[]){-3}));
}

static msg_t overflowing_dims(void) {
  return tensor_model(make_tensor("w", TYPE_FLOAT, 3, (const int64_t[]){INT64_MAX, 0, 2}));
}

static msg_t overflowing_bytes(void) {
  return tensor_model(make_tensor("w", TYPE_FLOAT, 1, (const int64_t[]){INT64_MAX / 2}));
}

static msg_t short_raw_data(void) {
  msg_t tensor = make_tensor("w", TYPE_FLOAT, 1, (const int64_t[]){4});
  msg_bytes(&tensor, TENSOR_RAW, "0123456", 7);
  return tensor_model(tensor);
}

static msg_t short_typed_data(void) {
  msg_t tensor = make_tensor("w", TYPE_INT64, 1, (const int64_t[]){4});
  msg_int(&tensor, TENSOR_INT64, 1);
  return tensor_model(tensor);
}

static msg_t wide_typed_data(void) {
  msg_t tensor = make_tensor("w", TYPE_UINT8, 1, (const int64_t[]){1});
  msg_int(&tensor, TENSOR_INT32, 256);
  return tensor_model(tensor);
}

static msg_t odd_bool(void) {
  msg_t tensor = make_tensor("w", TYPE_BOOL, 1, (const int64_t[]){2});
  msg_bytes(&tensor, TENSOR_RAW, "\1\2", 2);
  return tensor_model(tensor);
}

static msg_t int4_tensor(void) { return tensor_model(make_tensor("w", TYPE_INT4, 1, (const int64_t[]){2})); }

static msg_t string_tensor(void) {
  return tensor_model(make_tensor("w", TYPE_STRING, 1, (const int64_t[]){2}));
}

static msg_t unknown_tensor_type(void) { return tensor_model(make_tensor("w", 99, 1, (const int64_t[]){2})); }

/* The fields by which the skeleton says where raw_data lies are not for files to set. */
static msg_t forged_mapping(void) {
  msg_t tensor = make_tensor("w", TYPE_FLOAT, 1, (const int64_t[]){4});
  msg_int(&tensor, 1000, INT64_MAX);
  msg_int(&tensor, 1001, 16);
  return tensor_model(tensor);
}

static msg_t external_in_memory(void) {
  msg_t tensor = make_tensor("w", TYPE_FLOAT, 1, (const int64_t[]){4});
  msg_int(&tensor, TENSOR_LOCATION, 1);
  return tensor_model(tensor);
}

/* A sparse initializer of 4x4 with two values and the given indices, of shape [2] or [2, 2]. */
static msg_t sparse_model(int rank, int count, const int64_t *indices) {
  msg_t sparse = MSG, graph = good_graph();
  msg_t values = make_tensor("w", TYPE_FLOAT, 1, (const int64_t[]){2});
  msg_bytes(&values, TENSOR_RAW, "12345678", 8);
  msg_t index = make_tensor("", TYPE_INT64, rank, (const int64_t[]){count / rank, rank});
  for (int i = 0; i < count; ++i) msg_int(&index, TENSOR_INT64, indices[i]);
  msg_take(&sparse, 1, &values);
  msg_take(&sparse, 2, &index);
  msg_int(&sparse, 3, 4);
  msg_int(&sparse, 3, 4);
  msg_take(&graph, GRAPH_SPARSE, &sparse);
  add_node(&graph, "use", "Neg", "w", "z");
  return finish(graph);
}

static msg_t sparse_outside(void) { return sparse_model(1, 2, (const int64_t[]){3, 16}); }
static msg_t sparse_outside_row(void) { return sparse_model(2, 4, (const int64_t[]){0, 4, 1, 0}); }
static msg_t sparse_unordered(void) { return sparse_model(2, 4, (const int64_t[]){1, 0, 0, 3}); }
static msg_t sparse_miscounted(void) { return sparse_model(1, 3, (const int64_t[]){1, 2, 3}); }

static msg_t attribute_model(msg_t attribute) {
  msg_t graph = good_graph(), node = make_node("n", "Op", "x", "z");
  msg_take(&node, NODE_ATTRIBUTE, &attribute);
  msg_take(&graph, GRAPH_NODE, &node);
  return finish(graph);
}

static msg_t untyped_attribute(void) { return attribute_model(make_attribute("a", 0)); }
static msg_t unknown_attribute(void) { return attribute_model(make_attribute("a", 15)); }
static msg_t nameless_attribute(void) { return attribute_model(make_attribute("", 2)); }
static msg_t missing_tensor(void) { return attribute_model(make_attribute("a", 4)); }

static msg_t stray_reference(void) {
  msg_t attribute = make_attribute("a", 2);
  msg_text(&attribute, ATTR_REF, "p");
  return attribute_model(attribute);
}

static msg_t attribute_twice(void) {
  msg_t graph = good_graph(), node = make_node("n", "Op", "x", "z");
  add_int(&node, "a", 1);
  add_int(&node, "a", 2);
  msg_take(&graph, GRAPH_NODE, &node);
  return finish(graph);
}

static msg_t capture_undefined(void) {
  msg_t graph = good_graph(), node = make_node("if", "If", "x", "z"), body = MSG;
  add_node(&body, "", "Neg", "ghost", "t");
  add_value(&body, GRAPH_OUTPUT, "t", TYPE_FLOAT, NULL);
  add_graph(&node, "then_branch", &body);
  msg_take(&graph, GRAPH_NODE, &node);
  return finish(graph);
}

static msg_t nul_in_name(void) {
  msg_t graph = good_graph(), node = make_node("", "Neg", "x", "z");
  msg_bytes(&node, NODE_NAME, "a\0b", 3);
  msg_take(&graph, GRAPH_NODE, &node);
  return finish(graph);
}

/* Graphs in attributes of nodes in graphs, 40 deep: three messages a level. */
static msg_t deep_messages(void) {
  msg_t graph = good_graph();
  for (int i = 0; i < 40; ++i) {
    msg_t outer = good_graph(), node = make_node("if", "If", "x", "z");
    add_graph(&node, "body", &graph);
    msg_take(&outer, GRAPH_NODE, &node);
    graph = outer;
  }
  return finish(graph);
}

/* ---- Functions ---- */

/* A function |name| of domain "my" that calls |callee| |count| times, one after the other; "" calls nothing.
 */
static void add_function(msg_t *model, const char *name, const char *callee, int count) {
  msg_t function = MSG;
  char in[16] = "a", out[16];
  msg_text(&function, FUNCTION_NAME, name);
  msg_text(&function, FUNCTION_DOMAIN, "my");
  msg_text(&function, FUNCTION_INPUT, "a");
  add_opset(&function, FUNCTION_OPSET, "", 17);
  for (int i = 0; i < count; ++i) {
    snprintf(out, sizeof(out), "t%d", i);
    msg_t node = make_node("", *callee ? callee : "Neg", in, out);
    if (*callee) msg_text(&node, NODE_DOMAIN, "my");
    msg_take(&function, FUNCTION_NODE, &node);
    strcpy(in, out);
  }
  msg_text(&function, FUNCTION_OUTPUT, in);
  msg_take(model, MODEL_FUNCTION, &function);
}

static msg_t calling_model(const char *inputs, const char *outputs) {
  msg_t graph = MSG, node = make_node("call", "F0", inputs, outputs);
  msg_text(&node, NODE_DOMAIN, "my");
  add_value(&graph, GRAPH_INPUT, "x", TYPE_FLOAT, "N");
  add_value(&graph, GRAPH_OUTPUT, "y", TYPE_FLOAT, "N");
  msg_take(&graph, GRAPH_NODE, &node);
  return finish(graph);
}

/* F0 calls F1, which calls F2, ... |count| times each. */
static msg_t function_chain(int length, int count) {
  msg_t model = calling_model("x", "y");
  char name[16], callee[16];
  for (int i = 0; i < length; ++i) {
    snprintf(name, sizeof(name), "F%d", i);
    snprintf(callee, sizeof(callee), "F%d", i + 1);
    add_function(&model, name, i + 1 < length ? callee : "", count);
  }
  return model;
}

static msg_t deep_functions(void) { return function_chain(70, 1); }
static msg_t many_functions(void) { return function_chain(30, 2); }

static msg_t recursion(void) {
  msg_t model = calling_model("x", "y");
  add_function(&model, "F0", "F1", 1);
  add_function(&model, "F1", "F0", 1);
  return model;
}

static msg_t function_twice(void) {
  msg_t model = function_chain(1, 1);
  add_function(&model, "F0", "", 1);
  return model;
}

static msg_t surplus_input(void) {
  msg_t model = calling_model("x x", "y");
  add_function(&model, "F0", "", 1);
  return model;
}

static msg_t surplus_output(void) {
  msg_t model = calling_model("x", "y z");
  add_function(&model, "F0", "", 1);
  return model;
}

typedef struct hostile {
  msg_t (*make)(void);
  o3_status_code_t code;
  const char *message; /* the whole of it, but for numbers of bytes that would tie it to the writer */
} hostile_t;

static const hostile_t CASES[] = {
    {empty, O3_STATUS_INVALID_MODEL, "'bad.onnx' is empty"},
    {garbage, O3_STATUS_INVALID_MODEL,
     "'bad.onnx' is not an ONNX model: field 10 of ModelProto at byte 0 has a wire type"},
    {other_message, O3_STATUS_INVALID_MODEL,
     "'bad.onnx' is not an ONNX model: it has neither IR version nor graph"},
    {no_graph, O3_STATUS_INVALID_MODEL, "'bad.onnx': it has no graph"},
    {old_ir, O3_STATUS_UNSUPPORTED, "'bad.onnx': it has IR version 2, 3 to 14 are supported"},
    {future_opset, O3_STATUS_UNSUPPORTED, "'bad.onnx': opset 29 of domain 'ai.onnx', 1 to 28 are supported"},
    {no_opset, O3_STATUS_INVALID_MODEL,
     "node 'neg' (Neg): it is of domain 'ai.onnx', of which no opset is imported"},
    {opset_twice, O3_STATUS_INVALID_MODEL, "opset domain 'ai.onnx' is imported twice: 17 and 18"},
    {foreign_domain, O3_STATUS_INVALID_MODEL,
     "node 'odd' (Odd): it is of domain 'com.example', of which no opset"},
    {no_outputs, O3_STATUS_INVALID_MODEL, "graph '' has no outputs"},
    {output_undefined, O3_STATUS_INVALID_MODEL, "graph output 'nowhere' is defined by nothing"},
    {input_undefined, O3_STATUS_INVALID_MODEL,
     "node 'Add_2' (Add): it reads 'ghost', which nothing defines before it"},
    {cycle, O3_STATUS_INVALID_MODEL,
     "the graph has a cycle: node 'B' (Neg) reads a result of node 'A' (Add)"},
    {self_cycle, O3_STATUS_INVALID_MODEL,
     "the graph has a cycle: node 'A' (Add) reads a result of node 'A' (Add)"},
    {defined_twice, O3_STATUS_INVALID_MODEL, "node 'again' (Exp): 'y' is defined twice"},
    {input_twice, O3_STATUS_INVALID_MODEL, "graph input: 'x' is defined twice"},
    {no_op_type, O3_STATUS_INVALID_MODEL, "node 'blank' (): it has no op_type"},
    {negative_input_dim, O3_STATUS_INVALID_MODEL, "graph input: 'in': dimension 1 is -7, which is negative"},
    {huge_input_dims, O3_STATUS_INVALID_MODEL, "'in': the product of the dimensions overflows 64 bits"},
    {unknown_input_type, O3_STATUS_INVALID_MODEL, "'in': element type 77 is none that ONNX defines"},
    {high_rank, O3_STATUS_UNSUPPORTED, "'in': rank is 17, at most 16 is supported"},
    {negative_dim, O3_STATUS_INVALID_MODEL, "initializer 'w': its dimension 0 is -3, which is negative"},
    {overflowing_dims, O3_STATUS_INVALID_MODEL, "initializer 'w': the product of its dims overflows 64 bits"},
    {overflowing_bytes, O3_STATUS_INVALID_MODEL, "initializer 'w': its size in bytes overflows 64 bits"},
    {short_raw_data, O3_STATUS_INVALID_MODEL, "'w': it has 7 bytes of raw_data, its type and dims need 16"},
    {short_typed_data, O3_STATUS_INVALID_MODEL, "'w': it has 1 elements in int64_data, its dims need 4"},
    {wide_typed_data, O3_STATUS_INVALID_MODEL,
     "'w': element 0 of its int32_data is 256, which does not fit 8 bits"},
    {odd_bool, O3_STATUS_INVALID_MODEL, "'w': element 1 of a bool tensor is the byte 2, 0 or 1 is expected"},
    {int4_tensor, O3_STATUS_UNSUPPORTED,
     "initializer 'w': it has element type int4, which o3c does not read"},
    {string_tensor, O3_STATUS_UNSUPPORTED,
     "initializer 'w': it has element type string, which o3c does not read"},
    {unknown_tensor_type, O3_STATUS_INVALID_MODEL, "it has element type 99, which ONNX does not define"},
    {forged_mapping, O3_STATUS_INVALID_MODEL,
     "initializer 'w': it has 0 elements in float_data, its dims need 4"},
    {external_in_memory, O3_STATUS_INVALID_MODEL, "external data is not allowed in a model that is no file"},
    {sparse_outside, O3_STATUS_INVALID_MODEL, "initializer 'w': its index 1 lies outside of its dims"},
    {sparse_outside_row, O3_STATUS_INVALID_MODEL, "initializer 'w': its index 0 lies outside of its dims"},
    {sparse_unordered, O3_STATUS_INVALID_MODEL, "'w': its index 1 is not larger than the one before"},
    {sparse_miscounted, O3_STATUS_INVALID_MODEL, "initializer 'w': it has 2 values and 3 indices"},
    {untyped_attribute, O3_STATUS_INVALID_MODEL, "node 'n' (Op): attribute 'a': it has attribute type 0"},
    {unknown_attribute, O3_STATUS_INVALID_MODEL,
     "attribute 'a': it has attribute type 15, which ONNX does not define"},
    {nameless_attribute, O3_STATUS_INVALID_MODEL, "node 'n' (Op): attribute 0 has no name"},
    {missing_tensor, O3_STATUS_INVALID_MODEL, "attribute 'a': it is a tensor attribute without one"},
    {stray_reference, O3_STATUS_INVALID_MODEL, "attribute 'a' refers to parameter 'p' outside of a function"},
    {attribute_twice, O3_STATUS_INVALID_MODEL, "attribute 'a' is given twice"},
    {capture_undefined, O3_STATUS_INVALID_MODEL,
     "node 'if' (If): it reads 'ghost', which nothing defines before it"},
    {nul_in_name, O3_STATUS_INVALID_MODEL, "is a string with a NUL byte in it"},
    {deep_messages, O3_STATUS_INVALID_MODEL, "is nested deeper than 100 messages"},
    {deep_functions, O3_STATUS_UNSUPPORTED, "graphs and functions are nested deeper than 64"},
    {many_functions, O3_STATUS_UNSUPPORTED, "inlining the model's functions makes more than 250000 nodes"},
    {recursion, O3_STATUS_INVALID_MODEL, "function 'F0' of domain 'my' calls itself"},
    {function_twice, O3_STATUS_INVALID_MODEL, "function 'F0' of domain 'my': it is defined twice"},
    {surplus_input, O3_STATUS_INVALID_MODEL, "node 'call' (F0): it has 2 inputs, function 'F0' takes 1"},
    {surplus_output, O3_STATUS_INVALID_MODEL, "node 'call' (F0): it has 2 outputs, function 'F0' gives 1"},
};

static void test_broken_rules(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
    msg_t model = CASES[i].make();
    assert_fails(import_bytes(model.text ? model.text : "", model.length), CASES[i].code, CASES[i].message);
    o3_strbuf_deinit(&model);
  }
}

/* ---- Every cut and many flips of a model with a bit of everything ---- */

static const char CORPUS[] = O3_SOURCE_DIR "/test/fuzz/corpus/fuzz_onnx_import";

typedef void (*visit_fn_t)(const char *path);

static void for_each_seed(visit_fn_t visit) {
  DIR *folder = opendir(CORPUS);
  assert_non_null(folder);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(folder));) {
    char path[512];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof(path), "%s/%s", CORPUS, entry->d_name);
    visit(path);
    ++count;
  }
  closedir(folder);
  assert_true(count > 0);
}

/* Each is valid; one has its weights in a file that is not there. */
static void import_seed(const char *path) {
  o3_status_t status = import_file(path);
  bool external = strstr(path, "external");
  if (external) {
    assert_int_equal(o3_status_code(status), O3_STATUS_NOT_FOUND);
    unit_assert_contains(o3_status_message(status),
                         "initializer 'w': external data file 'w.bin': No such file");
  } else if (status) {
    fail_msg("%s", o3_status_message(status));
  }
  o3_status_destroy(status);
}

static void test_seeds(void **state) {
  (void)state;
  for_each_seed(import_seed);
}

static void cut_seed(const char *path) {
  o3_mapped_file_t file;
  assert_ok(o3_file_map(path, &file));
  for (size_t size = 0; size < file.size; ++size) {
    uint8_t *copy = malloc(size ? size : 1); /* of the exact size, so that a sanitizer sees a read past it */
    assert_non_null(copy);
    memcpy(copy, file.data, size);
    o3_status_destroy(import_bytes(copy, size));
    free(copy);
  }
  o3_file_unmap(&file);
}

static void test_cut_short(void **state) {
  (void)state;
  for_each_seed(cut_seed);
}

/* One bit of each byte; the fuzzer flips the others. */
static void flip_seed(const char *path) {
  o3_mapped_file_t file;
  assert_ok(o3_file_map(path, &file));
  uint8_t *copy = malloc(file.size);
  assert_non_null(copy);
  memcpy(copy, file.data, file.size);
  for (size_t i = 0; i < file.size; ++i) {
    copy[i] ^= (uint8_t)(1 << i % 8);
    o3_status_destroy(import_bytes(copy, file.size));
    copy[i] = file.data[i];
  }
  free(copy);
  o3_file_unmap(&file);
}

static void test_flipped_bits(void **state) {
  (void)state;
  for_each_seed(flip_seed);
}

/* ---- Files ---- */

static char *folder;

static char *in_folder(const char *name) {
  static char path[512];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  return path;
}

/* Writes model.onnx with weights of 4 floats in |location|. A NULL |offset| or |length| is left out. */
static void write_external(const char *location, const char *offset, const char *length) {
  msg_t tensor = make_tensor("w", TYPE_FLOAT, 1, (const int64_t[]){4});
  const char *const entries[][2] = {{"location", location}, {"offset", offset}, {"length", length}};
  msg_int(&tensor, TENSOR_LOCATION, 1);
  for (int i = 0; i < 3; ++i) {
    msg_t entry = MSG;
    if (!entries[i][1]) continue;
    msg_text(&entry, 1, entries[i][0]);
    msg_text(&entry, 2, entries[i][1]);
    msg_take(&tensor, TENSOR_EXTERNAL, &entry);
  }
  msg_t model = tensor_model(tensor);
  assert_ok(o3_file_write(in_folder("model.onnx"), model.text, model.length));
  o3_strbuf_deinit(&model);
}

static o3_status_t import_external(const char *location, const char *offset, const char *length) {
  write_external(location, offset, length);
  return import_file(in_folder("model.onnx"));
}

static void test_external_data(void **state) {
  (void)state;
  char bytes[32] = {0};
  assert_ok(o3_file_write(in_folder("w.bin"), bytes, sizeof(bytes)));
  assert_ok(import_external("w.bin", "16", "16"));
  assert_ok(import_external("w.bin", "16", NULL));
  assert_ok(import_external("w.bin", NULL, "16"));
  assert_ok(import_external("./w.bin", "0", "16"));
  const o3_status_code_t invalid = O3_STATUS_INVALID_MODEL;
  assert_fails(import_external("w.bin", NULL, NULL), invalid,
               "external data has 32 bytes, type and dims need 16");
  assert_fails(import_external("w.bin", "0", "8"), invalid,
               "external data has 8 bytes, type and dims need 16");
  assert_fails(import_external("w.bin", "24", "16"), invalid,
               "'w.bin' has 32 bytes, the tensor needs 16 from 24 on");
  assert_fails(import_external("w.bin", "33", "16"), invalid,
               "'w.bin' has 32 bytes, the tensor starts at 33");
  assert_fails(import_external("w.bin", "18446744073709551615", "16"), invalid, "the tensor starts at");
  assert_fails(import_external("w.bin", "99999999999999999999", "16"), invalid,
               "a number of bytes is expected");
  assert_fails(import_external("w.bin", "-1", "16"), invalid,
               "external data has offset '-1', a number of bytes");
  assert_fails(import_external("", "0", "16"), invalid, "external data has no location");
  assert_fails(import_external("gone.bin", "0", "16"), O3_STATUS_NOT_FOUND,
               "'gone.bin': No such file or directory");
}

static void test_external_data_outside(void **state) {
  (void)state;
  const o3_status_code_t invalid = O3_STATUS_INVALID_MODEL;
  assert_fails(import_external("/etc/passwd", NULL, NULL), invalid,
               "'/etc/passwd' is not inside the model's folder");
  assert_fails(import_external("../w.bin", NULL, NULL), invalid, "is not inside the model's folder");
  assert_fails(import_external("a/../../w.bin", NULL, NULL), invalid,
               "a relative path without '..' is expected");
  assert_fails(import_external("..\\w.bin", NULL, NULL), invalid, "is not inside the model's folder");
  assert_int_equal(symlink("/etc/passwd", in_folder("link.bin")), 0);
  assert_fails(import_external("link.bin", NULL, NULL), invalid,
               "'link.bin' leads out of the model's folder");
  assert_int_equal(symlink("w.bin", in_folder("inner.bin")), 0);
  char bytes[16] = {0};
  assert_ok(o3_file_write(in_folder("w.bin"), bytes, sizeof(bytes)));
  assert_ok(import_external("inner.bin", "0", "16"));
  assert_fails(import_external(".", NULL, NULL), invalid, "'.' leads out of the model's folder");
}

static void test_no_model_file(void **state) {
  (void)state;
  assert_fails(import_file(in_folder("none.onnx")), O3_STATUS_NOT_FOUND,
               "none.onnx': No such file or directory");
  assert_fails(import_file(folder), O3_STATUS_IO, "it is a directory, a regular file is needed");
  assert_ok(o3_file_write(in_folder("empty.onnx"), "", 0));
  assert_fails(import_file(in_folder("empty.onnx")), O3_STATUS_INVALID_MODEL, "empty.onnx' is empty");
}

static int set_up(void **state) {
  (void)state;
  assert_ok(o3_file_temp_dir_create(&folder));
  return o3_context_create(&context) ? -1 : 0;
}

static int tear_down(void **state) {
  (void)state;
  unlink(in_folder("link.bin"));
  unlink(in_folder("inner.bin"));
  o3_file_temp_dir_remove(folder);
  free(folder);
  o3_context_destroy(context);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_broken_rules),  cmocka_unit_test(test_seeds),
      cmocka_unit_test(test_cut_short),     cmocka_unit_test(test_flipped_bits),
      cmocka_unit_test(test_external_data), cmocka_unit_test(test_external_data_outside),
      cmocka_unit_test(test_no_model_file),
  };
  return cmocka_run_group_tests_name("onnx_hostile", tests, set_up, tear_down);
}
