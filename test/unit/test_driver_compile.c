/* o3_compile as a library, on modules written by hand. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "o3/compiler.h"
#include "unit.h"

static const char MODEL[] =
    "func.func @main(%x: tensor<?x3xf32> {o3.name = \"x\", o3.shape = affine_map<()[s0] -> (s0, 3)>})\n"
    "    -> (tensor<?x3xf32> {o3.name = \"y\", o3.shape = affine_map<()[s0] -> (s0, 3)>})\n"
    "    attributes {o3.symbols = [{name = \"N\"}]} {\n"
    "  %c0 = arith.constant 0 : index\n"
    "  %n = tensor.dim %x, %c0 : tensor<?x3xf32>\n"
    "  %e = tensor.empty(%n) : tensor<?x3xf32>\n"
    "  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],\n"
    "      iterator_types = [\"parallel\", \"parallel\"]} ins(%x : tensor<?x3xf32>) outs(%e : "
    "tensor<?x3xf32>) {\n"
    "  ^bb0(%a: f32, %o: f32):\n"
    "    %s = arith.addf %a, %a : f32\n"
    "    linalg.yield %s : f32\n"
    "  } -> tensor<?x3xf32>\n"
    "  return %y : tensor<?x3xf32>\n"
    "}\n";

typedef struct fixture {
  char *folder;
  char model[256], output[256], dumps[256];
} fixture_t;

static void join(char path[256], const char *folder, const char *name) {
  assert_true(snprintf(path, 256, "%s/%s", folder, name) < 256);
}

static int set_up(void **state) {
  static fixture_t f;
  f = (fixture_t){0};
  assert_ok(o3_file_temp_dir_create(&f.folder));
  join(f.model, f.folder, "twice.mlir");
  join(f.output, f.folder, "twice.so");
  join(f.dumps, f.folder, "dumps");
  assert_ok(o3_file_write(f.model, MODEL, sizeof(MODEL) - 1));
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture_t *f = *state;
  o3_file_temp_dir_remove(f->dumps);
  o3_file_temp_dir_remove(f->folder);
  free(f->folder);
  return 0;
}

static bool has_file(const char *folder, const char *name) {
  char path[256];
  join(path, folder, name);
  return !access(path, F_OK);
}

static int count_files(const char *folder) {
  int count = -2; /* . and .. */
  DIR *dir = opendir(folder);
  while (readdir(dir)) ++count;
  closedir(dir);
  return count;
}

static o3_compile_result_t *compiled(const o3_compile_options_t *options) {
  o3_compile_result_t *result;
  char *error;
  if (o3_compile(options, &result, &error)) fail_msg("%s", error);
  assert_null(error);
  return result;
}

static void assert_refused(const o3_compile_options_t *options, int32_t code, const char *text) {
  o3_compile_result_t *result;
  char *error;
  assert_int_equal(o3_compile(options, &result, &error), code);
  assert_null(result);
  unit_assert_contains(error, text);
  free(error);
}

static void the_result_tells_what_was_done(void **state) {
  fixture_t *f = *state;
  o3_compile_options_t options = {.model = f->model, .output = f->output, .opt_level = 0};
  o3_compile_result_t *result = compiled(&options);
  assert_string_equal(result->output, f->output);
  assert_true(result->output_bytes > 1000);
  assert_int_equal(result->num_inputs, 1);
  assert_string_equal(result->inputs[0].name, "x");
  assert_string_equal(result->inputs[0].dtype, "float32");
  assert_int_equal(result->inputs[0].shape[0], -1);
  assert_string_equal(result->inputs[0].symbols[0], "N");
  assert_int_equal(result->outputs[0].shape[1], 3);
  assert_string_equal(result->stages[0].name, "fuse");
  assert_string_equal(result->stages[result->num_stages - 1].name, "package");
  assert_true(result->peak_rss > 0 && result->milliseconds > 0);
  o3_compile_result_destroy(result);
  assert_int_equal(count_files(f->folder), 2);
}

static void dumps_can_be_gone_on_from(void **state) {
  fixture_t *f = *state;
  static const struct {
    const char *stage, *dump;
  } STARTS[] = {{"plan", "07-bufferize.mlir"}, {"llvm", "09-loops.mlir"}, {"object", "10-llvm.mlir"}};
  char again[256], dump[256];
  join(again, f->folder, "again.so");
  o3_compile_options_t options = {.model = f->model, .output = f->output, .dump_dir = f->dumps};
  o3_compile_result_destroy(compiled(&options));
  assert_true(has_file(f->dumps, "11-object.o"));
  assert_true(has_file(f->dumps, "weights.o3w"));
  for (size_t i = 0; i < sizeof(STARTS) / sizeof(STARTS[0]); ++i) {
    join(dump, f->dumps, STARTS[i].dump);
    o3_compile_options_t rest = {.model = dump, .output = again, .start_from = STARTS[i].stage};
    o3_compile_result_destroy(compiled(&rest));
    o3_mapped_file_t whole, pieces;
    assert_ok(o3_file_map(f->output, &whole));
    assert_ok(o3_file_map(again, &pieces));
    assert_int_equal(whole.size, pieces.size);
    assert_memory_equal(whole.data, pieces.data, whole.size);
    o3_file_unmap(&whole);
    o3_file_unmap(&pieces);
  }
}

static void stopping_writes_no_more_than_asked_for(void **state) {
  fixture_t *f = *state;
  o3_compile_options_t options = {.model = f->model, .dump_dir = f->dumps, .stop_after = "plan"};
  o3_compile_result_t *result = compiled(&options);
  assert_null(result->output);
  o3_compile_result_destroy(result);
  assert_int_equal(count_files(f->dumps), 5); /* four stages and the weights */
  assert_false(has_file(f->folder, "twice.so"));
}

static void modules_can_be_emitted(void **state) {
  fixture_t *f = *state;
  char path[256];
  o3_mapped_file_t file;
  join(path, f->folder, "out.mlir");
  o3_compile_options_t options = {.model = f->model, .output = path, .emit = "bufferize"};
  o3_compile_result_destroy(compiled(&options));
  assert_ok(o3_file_map(path, &file));
  assert_non_null(memmem(file.data, file.size, "memref<", 7));
  o3_file_unmap(&file);
}

static void wrong_options_are_refused(void **state) {
  fixture_t *f = *state;
  char missing[256];
  join(missing, f->folder, "missing.onnx");
  const int32_t invalid = O3_STATUS_INVALID_ARGUMENT, unsupported = O3_STATUS_UNSUPPORTED;
  const struct {
    o3_compile_options_t options;
    int32_t code;
    const char *text;
  } ROWS[] = {
      {{.model = NULL}, invalid, "no model is given"},
      {{.model = missing}, O3_STATUS_NOT_FOUND, "missing.onnx' does not exist"},
      {{.model = "net.pt"}, unsupported, "model 'net.pt': its ending must be .onnx or .mlir"},
      {{.model = f->model, .target = "pascal"}, unsupported, "pascal"},
      {{.model = f->model, .opt_level = 4}, invalid, "opt level 4 is not one of 0, 1, 2, 3"},
      {{.model = f->model, .threads = -1}, invalid, "-1 threads"},
      {{.model = f->model, .opt_level = 3, .sparse_format = "hybrid-8"},
       invalid,
       "sparse format 'hybrid-8' is unknown; supported: auto, dense"},
      {{.model = f->model, .symbol_prefix = "a-b"}, invalid, "symbol prefix 'a-b' is no C identifier"},
      {{.model = f->model, .output = "x.dll"}, invalid, "output 'x.dll': its ending must be"},
      {{.model = f->model, .output = f->model}, invalid, "is the model itself"},
      {{.model = f->model, .emit = "nope"}, invalid, "there is no stage 'nope'"},
      {{.model = f->model, .emit = "object"}, invalid, "leaves no module to emit"},
      {{.model = f->model, .emit = "lower", .stop_after = "lower"}, invalid, "cannot both be given"},
      {{.model = f->model, .emit = "lower", .output = "x.so"}, invalid, "is written as .mlir"},
      {{.model = f->model, .start_from = "llvm", .stop_after = "plan"}, invalid, "comes after 'plan'"},
      {{.model = f->model, .start_from = "package"}, invalid, "packaging cannot be started from"},
      {{.model = f->model, .start_from = "import"}, invalid, "stage 'import' starts from a model file"},
      {{.model = f->model, .start_from = "llvm", .output = f->output},
       invalid,
       "cannot start stage 'llvm': op 'tensor.dim'"},
      {{.model = f->model, .print_before = "nope"}, invalid, "there is no pass 'nope'"},
      {{.model = f->model, .output = "/no/such/folder/x.so"}, O3_STATUS_NOT_FOUND, "/no/such/folder/"},
      {{.model = f->model, .dump_dir = f->model}, O3_STATUS_IO, "cannot make the folder"},
  };
  for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); ++i)
    assert_refused(&ROWS[i].options, ROWS[i].code, ROWS[i].text);
  assert_int_equal(count_files(f->folder), 1);
}

static void broken_modules_are_refused(void **state) {
  static const char TEXT[] = "func.func @main() {\n  nonsense\n}\n";
  fixture_t *f = *state;
  assert_ok(o3_file_write(f->model, TEXT, sizeof(TEXT) - 1));
  o3_compile_options_t options = {.model = f->model, .output = f->output};
  assert_refused(&options, O3_STATUS_INVALID_MODEL,
                 "twice.mlir: line 2, column 3: custom op 'nonsense' is unknown");
  assert_int_equal(count_files(f->folder), 1);
}

typedef struct progress {
  o3_strbuf_t text;
} progress_t;

static void note(void *context, const char *stage, int32_t index, int32_t count) {
  o3_strbuf_printf(&((progress_t *)context)->text, "%d/%d %s,", index, count, stage);
}

static void progress_is_told(void **state) {
  fixture_t *f = *state;
  progress_t progress = {O3_STRBUF_INIT};
  o3_compile_options_t options = {
      .model = f->model, .output = f->output, .progress = note, .progress_context = &progress};
  o3_compile_result_destroy(compiled(&options));
  assert_string_equal(
      progress.text.text,
      "0/8 fuse,1/8 schedule,2/8 bufferize,3/8 plan,4/8 loops,5/8 llvm,6/8 object,7/8 package,");
  o3_strbuf_deinit(&progress.text);
}

static void *compile_in_thread(void *output) {
  const fixture_t *f = ((void **)output)[0];
  o3_compile_options_t options = {.model = f->model, .output = ((void **)output)[1]};
  o3_compile_result_destroy(compiled(&options));
  return NULL;
}

static void threads_compile_at_the_same_time(void **state) {
  fixture_t *f = *state;
  enum { THREADS = 3 };
  char outputs[THREADS][256];
  pthread_t threads[THREADS];
  void *arguments[THREADS][2];
  for (int i = 0; i < THREADS; ++i) {
    snprintf(outputs[i], sizeof(outputs[i]), "%s/t%d.so", f->folder, i);
    arguments[i][0] = f;
    arguments[i][1] = outputs[i];
    assert_int_equal(pthread_create(&threads[i], NULL, compile_in_thread, arguments[i]), 0);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  assert_int_equal(count_files(f->folder), 1 + THREADS);
}

static void tables_end(void **state) {
  const char *summary;
  (void)state;
  assert_string_equal(o3_compile_stage(0, &summary), "import");
  assert_null(o3_compile_stage(100, &summary));
  assert_non_null(o3_compile_target(0, &summary));
  assert_null(o3_compile_target(100, &summary));
  assert_string_equal(o3_compile_sparse_format(1, &summary), "dense");
  assert_null(o3_compile_sparse_format(100, &summary));
  assert_string_equal(o3_compile_code_name(O3_STATUS_UNSUPPORTED), "unsupported");
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
      TEST(the_result_tells_what_was_done),
      TEST(dumps_can_be_gone_on_from),
      TEST(stopping_writes_no_more_than_asked_for),
      TEST(modules_can_be_emitted),
      TEST(wrong_options_are_refused),
      TEST(broken_modules_are_refused),
      TEST(progress_is_told),
      TEST(threads_compile_at_the_same_time),
      TEST(tables_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
