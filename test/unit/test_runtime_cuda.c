// The CUDA driver of the runtime, against a stand-in for libcuda.so.1: hand-written models, kernels as C
// functions.
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <o3/model.h>

#include "runtime/session.h"

#define FAKE_CUDA_TYPES
#include "test/fakes/fake_cuda.h"

static struct {
#define FIELD(name, result, arguments) name##_fn name;
  FAKE_CUDA_CONTROLS(FIELD)
#undef FIELD
} fake;

static int open_fake(void **state) {
  (void)state;
  void *library = dlopen(O3_BINARY_DIR "/lib/fakes/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
#define LOOK_UP(name, result, arguments)          \
  do {                                            \
    void *address = dlsym(library, #name);        \
    memcpy(&fake.name, &address, sizeof address); \
    assert_non_null(address);                     \
  } while (0);
  FAKE_CUDA_CONTROLS(LOOK_UP)
#undef LOOK_UP
  return 0;
}

// ---- The model: y[4] = x[4] + w[4] on the card, in the arena ----

static void *pointer(int64_t word) { return (void *)(uintptr_t)word; }

static void add_weight(const int64_t *arguments) {
  static const float kWeight[] = {10, 20, 30, 40};
  const float *x = pointer(arguments[0]);
  float *y = pointer(arguments[1]);
  for (int i = 0; i < 4; ++i) y[i] = x[i] + kWeight[i];
}

static int32_t next_error;
static void *error_word;
static void set_error(const int64_t *arguments) {
  (void)arguments;
  *(int32_t *)error_word = next_error;
}

// Counters are 0 at first, after a failure too, and stay where they are when there is memory enough.
static bool wants_scratch;
static void check_scratch(o3rt_session_t *session) {
  static const int32_t kZeros[O3RT_GPU_COUNTERS];
  int32_t *scratch = o3rt_gpu_scratch(session, sizeof kZeros);
  assert_memory_equal(scratch, kZeros, sizeof kZeros);
  assert_ptr_equal(o3rt_gpu_scratch(session, 16), scratch);
}

static int64_t shared_bytes, grid = 3, cluster = 1, overlaps;

static void run_add(o3rt_session_t *session, o3rt_memref_t *const *inputs, o3rt_memref_t *const *outputs) {
  char *arena = o3rt_gpu_arena(session, 512);
  error_word = o3rt_gpu_error_word(session);
  if (wants_scratch) check_scratch(session);
  assert_memory_equal(o3rt_gpu_weights(session), ((float[]){1, 2}), 8);
  int64_t words[12] = {grid, 1, 1, 256, 1, 1, shared_bytes, cluster, overlaps, 0};
  words[10] = (int64_t)(uintptr_t)inputs[0]->aligned;
  words[11] = (int64_t)(uintptr_t)(arena + 256);
  o3rt_kernel_begin(session, 0, 4, 32);
  o3rt_gpu_launch(session, 0, words, 2, 0);
  o3rt_gpu_launch(session, 1, words, 2, 0);
  outputs[0]->allocated = outputs[0]->aligned = arena;
  outputs[0]->offset = 64;
  outputs[0]->sizes_and_strides[0] = 4;
  outputs[0]->sizes_and_strides[1] = 1;
}

static const o3rt_dim_t kFour[] = {{4, -1, 0}};
static const o3rt_tensor_t kIn[] = {{"x", kFour, 1, O3_FLOAT32}};
static const o3rt_tensor_t kOut[] = {{"y", kFour, 1, O3_FLOAT32}, {"same", kFour, 1, O3_FLOAT32}};
static const o3rt_gpu_kernel_t kKernels[] = {{"k_add", "Add_1, Relu_2"}, {"k_check", "Gather_3"}};
static const float kWeights[] = {1, 2};
static const o3rt_gpu_weight_t kWeightList[] = {{kWeights, 8, 0}};
static const char *const kMessages[] = {"node 'Gather_3': index out of range"};
static const uint8_t kOnCard[] = {0, 0};
static o3rt_gpu_t gpu = {.ptx = ".version 8.0",
                         .cubin = "\177ELF",
                         .sm = 90,
                         .num_kernels = 2,
                         .num_weights = 1,
                         .num_messages = 1,
                         .replayable = 1,
                         .kernels = kKernels,
                         .weights = kWeightList,
                         .weight_bytes = 8,
                         .messages = kMessages,
                         .host_inputs = kOnCard,
                         .host_outputs = kOnCard};
static const char *const kNodes[] = {"Add_1"};
static const o3rt_kernel_t kProfiled[] = {
    {.name = "k0", .kind = "elementwise", .num_nodes = 1, .nodes = kNodes}};
static const o3rt_model_t kCompiled = {.format = O3RT_FORMAT,
                                       .name = "add",
                                       .target = "hopper",
                                       .build_id = "",
                                       .producer = "hand",
                                       .num_inputs = 1,
                                       .num_outputs = 1,
                                       .inputs = kIn,
                                       .outputs = kOut,
                                       .run = run_add,
                                       .kernels = kProfiled,
                                       .num_kernels = 1,
                                       .gpu = &gpu,
                                       .driver = &o3rt_cuda_driver};
static const o3_model_t kModel = {&o3rt_api, &kCompiled};

// The same, and x itself as a second result.
static void run_passing(o3rt_session_t *session, o3rt_memref_t *const *inputs,
                        o3rt_memref_t *const *outputs) {
  run_add(session, inputs, outputs);
  *outputs[1] = *inputs[0];
  outputs[1]->sizes_and_strides[0] = 4;
  outputs[1]->sizes_and_strides[1] = 1;
}
static o3rt_model_t passing; /* kCompiled, but for two results */
static const o3_model_t kPassing = {&o3rt_api, &passing};

static int reset(void **state) {
  (void)state;
  fake.fake_cuda_reset();
  fake.fake_cuda_kernel("k_add", add_weight);
  fake.fake_cuda_kernel("k_check", set_error);
  next_error = 0;
  shared_bytes = 0;
  grid = 3;
  cluster = 1;
  overlaps = 0;
  gpu.cubin = "\177ELF";
  gpu.specific = 0;
  passing = kCompiled;
  passing.name = "passing";
  passing.num_outputs = 2;
  passing.run = run_passing;
  return 0;
}

// Whatever happened, nothing is left on the card, nor of what the host shares with it.
static int check_clean(void **state) {
  (void)state;
  assert_int_equal(fake.fake_cuda_live_blocks(), 0);
  assert_int_equal(fake.fake_cuda_live_host_blocks(), 0);
  assert_int_equal(fake.fake_cuda_contexts(), 0);
  return 0;
}

static o3_session_t *create(void) {
  o3_session_t *session;
  assert_int_equal(o3_session_create(&kModel, NULL, &session), O3_OK);
  return session;
}

static void expect_no_session(const o3_session_options_t *options, o3_code_t code, const char *message) {
  o3_session_t *session;
  assert_int_equal(o3_session_create(&kModel, options, &session), code);
  assert_string_equal(o3_last_error(&kModel), message);
  assert_null(session);
}

static o3_tensor_t four(void *data, o3_place_t place) {
  return (o3_tensor_t){.data = data, .dtype = O3_FLOAT32, .rank = 1, .shape = {4}, .place = place};
}

static int count(const char *what) {
  int found = 0;
  for (const char *at = fake.fake_cuda_log(); (at = strstr(at, what)); at += strlen(what)) ++found;
  return found;
}

// ---- Tests ----

static void test_runs(void **state) {
  (void)state;
  o3_session_t *session = create();
  for (int run = 0; run < 5; ++run) {
    float x[] = {1, 2, 3, (float)run};
    o3_tensor_t in = four(x, O3_HOST), out = {0};
    fake.fake_cuda_log_clear();
    assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
    assert_float_equal(((float *)out.data)[0], 11, 0);
    assert_float_equal(((float *)out.data)[3], 40 + (float)run, 0);
    // As written, recorded, then replayed.
    assert_int_equal(count("cuLaunchKernel k_add 3x1x1 256x1x1 0\n"), run < 2);
    assert_int_equal(count("cuStreamBeginCapture"), run == 1);
    assert_int_equal(count("cuGraphLaunch"), run >= 1);
  }
  assert_true(o3_session_memory(session) >= 512);
  o3_session_destroy(session);
}

static void test_scratch(void **state) {
  (void)state;
  o3_session_t *session = create();
  float x[] = {1, 2, 3, 4};
  o3_tensor_t in = four(x, O3_HOST), out = {0}, again = {0};
  wants_scratch = true;
  fake.fake_cuda_fail("cuMemcpyHtoDAsync_v2", 2, 999);  // the first copies x
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_ERROR_RUN);
  assert_string_equal(o3_session_error(session),
                      "GPU 0: clearing the kernels' counters: an unknown error (999)");
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
  assert_int_equal(o3_session_run(session, &in, 1, &again, 1), O3_OK);
  wants_scratch = false;
  o3_session_destroy(session);
}

static void test_places(void **state) {
  (void)state;
  o3_session_t *session = create();
  _Alignas(16) float x[] = {1, 2, 3, 4};
  float y[4] = {0};
  o3_tensor_t in = four(x, O3_DEVICE), out = {.place = O3_DEVICE};
  fake.fake_cuda_log_clear();
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
  assert_int_equal(count("cuMemcpyHtoD"), 0);
  assert_int_equal(count("cuMemcpyDtoH"), 0);
  assert_float_equal(((float *)out.data)[3], 44, 0);
  o3_tensor_t again = four(out.data, O3_DEVICE), result = four(y, O3_DEVICE);
  assert_int_equal(o3_session_run(session, &again, 1, &result, 1), O3_ERROR_INVALID_ARGUMENT);
  assert_string_equal(o3_session_error(session),
                      "input 'x' lies in the session's own memory, which this run reuses: copy it first");
  assert_int_equal(o3_session_run(session, &in, 1, &again, 1), O3_ERROR_INVALID_ARGUMENT);
  assert_string_equal(o3_session_error(session),
                      "output 'y' lies in the session's own memory, which this run reuses: copy it first");
  assert_int_equal(o3_session_run(session, &in, 1, &result, 1), O3_OK);
  assert_float_equal(y[2], 33, 0);
  o3_session_destroy(session);
}

// Kernels read 16 bytes at once: other places are copied first.
static void test_unaligned_input(void **state) {
  (void)state;
  o3_session_t *session = create();
  _Alignas(16) float x[] = {0, 1, 2, 3, 4};
  for (int run = 0; run < 3; ++run) {
    o3_tensor_t in = four(x + 1, O3_DEVICE), out = {0};
    x[1] = (float)run;
    fake.fake_cuda_log_clear();
    assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
    assert_int_equal(count("cuMemcpyDtoDAsync_v2 16\n"), 1);
    assert_float_equal(((float *)out.data)[0], 10 + (float)run, 0);
  }
  o3_session_destroy(session);
}

// An output in an input's place, beside one that is that input.
static void test_in_place(void **state) {
  (void)state;
  o3_session_t *session;
  assert_int_equal(o3_session_create(&kPassing, NULL, &session), O3_OK);
  for (int run = 0; run < 3; ++run) {
    _Alignas(16) float x[] = {1, 2, 3, 4}, same[4];
    o3_tensor_t in = four(x, O3_DEVICE), out[] = {four(x, O3_DEVICE), four(same, O3_DEVICE)};
    assert_int_equal(o3_session_run(session, &in, 1, out, 2), O3_OK);
    assert_float_equal(x[3], 44, 0);
    assert_float_equal(same[3], 4, 0);
    o3_tensor_t results[] = {{.place = O3_DEVICE}, {.place = O3_DEVICE}};
    assert_int_equal(o3_session_run(session, &in, 1, results, 2), O3_OK);
    assert_float_equal(((float *)results[1].data)[3], 44, 0);
    assert_int_equal(o3_session_run(session, &results[1], 1, out, 2), O3_ERROR_INVALID_ARGUMENT);
  }
  o3_session_destroy(session);
}

// A stream that cannot be recorded, say because its owner records it: runs are as they are written, until it
// can.
static void test_stream_without_recording(void **state) {
  (void)state;
  static const char *const kSteps[] = {"cuStreamBeginCapture_v2", "cuStreamEndCapture",
                                       "cuGraphInstantiateWithFlags"};
  for (size_t step = 0; step < 3; ++step) {
    o3_session_t *session = create();
    float x[4] = {0};
    fake.fake_cuda_log_clear();
    fake.fake_cuda_fail(kSteps[step], 1, 901);
    for (int run = 0; run < 8; ++run) {
      o3_tensor_t in = four(x, O3_HOST), out = {0};
      assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
      assert_string_equal(o3_session_error(session), "");
      assert_float_equal(((float *)out.data)[3], 40, 0);
      // Seen, not recorded, four runs as they are written, then recorded.
      assert_int_equal(count("cuStreamBeginCapture"), run == 0 ? 0 : run < 6 ? 1 : 2);
      assert_int_equal(count("cuGraphLaunch"), run < 6 ? 0 : run - 5);
    }
    o3_session_destroy(session);
  }
}

static void test_sessions_share(void **state) {
  (void)state;
  o3_session_t *first = create(), *second = create();
  assert_int_equal(count("cuModuleLoadData cubin\n"), 1);
  assert_int_equal(count("cuMemcpyHtoDAsync_v2 8\n"), 1);
  o3_session_destroy(first);
  float x[4] = {0};
  o3_tensor_t in = four(x, O3_HOST), out = {0};
  assert_int_equal(o3_session_run(second, &in, 1, &out, 1), O3_OK);
  o3_session_destroy(second);
}

static void test_shared_memory(void **state) {
  (void)state;
  o3_session_t *session = create();
  float x[4] = {0};
  o3_tensor_t in = four(x, O3_HOST), out = {0};
  shared_bytes = 100000;
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
  assert_int_equal(count("cuFuncSetAttribute 8 100000\n"), 2);
  o3_session_destroy(session);
}

static void test_extended_launches(void **state) {
  (void)state;
  o3_session_t *session = create();
  float x[4] = {0};
  o3_tensor_t in = four(x, O3_HOST), out = {0};
  overlaps = 1;
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
  assert_int_equal(count("cuLaunchKernelEx k_add 3 256 6:1\n"), 1);
  cluster = 2;
  out = (o3_tensor_t){0};
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
  assert_int_equal(count("cuLaunchKernelEx k_add 3 256 4:2 6:1\n"), 1);
  o3_session_destroy(session);
}

static void test_empty_grid(void **state) {
  (void)state;
  o3_session_t *session = create();
  float x[4] = {0};
  o3_tensor_t in = four(x, O3_HOST), out = {0};
  grid = 0;
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
  assert_int_equal(count("cuLaunchKernel"), 0);
  o3_session_destroy(session);
}

static void test_kernel_checks(void **state) {
  (void)state;
  o3_session_t *session = create();
  float x[4] = {0};
  for (int run = 0; run < 4; ++run) {
    o3_tensor_t in = four(x, O3_HOST), out = {0};
    next_error = run % 2;
    assert_int_equal(o3_session_run(session, &in, 1, &out, 1), run % 2 ? O3_ERROR_RUN : O3_OK);
    assert_string_equal(o3_session_error(session), run % 2 ? kMessages[0] : "");
    assert_int_equal(out.data == NULL, run % 2);
  }
  o3_session_destroy(session);
}

// Each interval between events is a quarter of a millisecond; nothing is replayed while the session measures.
static void test_profile(void **state) {
  (void)state;
  o3_session_t *session = create();
  float x[4] = {0};
  assert_int_equal(o3_session_profile(session, 1), O3_OK);
  for (int run = 0; run < 3; ++run) {
    o3_tensor_t in = four(x, O3_HOST), out = {0};
    o3_kernel_sample_t sample;
    fake.fake_cuda_log_clear();
    assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
    assert_int_equal(count("cuGraphLaunch"), 0);
    assert_int_equal(count("cuEventRecord"), 4);
    assert_int_equal(o3_session_kernel(session, 0, &sample), O3_OK);
    assert_int_equal(sample.nanoseconds, 250000);
    assert_int_equal(sample.calls, 1);
    assert_int_equal(o3_session_kernel(session, O3_NO_KERNEL, &sample), O3_OK);
    assert_int_equal(sample.nanoseconds, 500000);
  }
  o3_session_destroy(session);
}

static void test_code(void **state) {
  (void)state;
  fake.fake_cuda_capability(10, 0);
  o3_session_destroy(create());
  assert_int_equal(count("cuModuleLoadData ptx\n"), 1);
  fake.fake_cuda_capability(8, 6);
  expect_no_session(
      NULL, O3_ERROR_UNSUPPORTED,
      "this model was compiled for hopper and needs a GPU of compute capability 9.0 or later; GPU 0 "
      "(Fake GPU) has 8.6");
  gpu.specific = 1;
  fake.fake_cuda_capability(10, 0);
  expect_no_session(
      NULL, O3_ERROR_UNSUPPORTED,
      "this model was compiled for hopper and needs a GPU of compute capability 9.0; GPU 0 (Fake GPU) "
      "has 10.0");
}

// A driver that does not take the machine code may still compile the PTX.
static void test_code_of_another_driver(void **state) {
  (void)state;
  fake.fake_cuda_fail("cuModuleLoadData", 1, 209);
  o3_session_destroy(create());
  assert_int_equal(count("cuModuleLoadData cubin\ncuModuleLoadData ptx\n"), 1);
  gpu.cubin = NULL;
  fake.fake_cuda_fail("cuModuleLoadData", 1, 218);
  expect_no_session(NULL, O3_ERROR_UNSUPPORTED,
                    "model 'add' on GPU 0: compiling its PTX: an unknown error (218)");
  fake.fake_cuda_fail("cuDevicePrimaryCtxRetain", 1, 2);
  expect_no_session(NULL, O3_ERROR_OUT_OF_MEMORY,
                    "model 'add' on GPU 0: its context: CUDA_ERROR_OUT_OF_MEMORY (2)");
  fake.fake_cuda_fail("cuDevicePrimaryCtxRetain", 1, 700);
  expect_no_session(NULL, O3_ERROR_RUN,
                    "model 'add' on GPU 0: its context: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
}

static void test_no_card(void **state) {
  (void)state;
  fake.fake_cuda_devices(0);
  expect_no_session(NULL, O3_ERROR_UNSUPPORTED, "there is no GPU 0: the driver finds 0");
  fake.fake_cuda_devices(2);
  const o3_session_options_t options = {.device = 7};
  expect_no_session(&options, O3_ERROR_UNSUPPORTED, "there is no GPU 7: the driver finds 2");
}

static void test_memory(void **state) {
  (void)state;
  fake.fake_cuda_memory(4);
  expect_no_session(
      NULL, O3_ERROR_OUT_OF_MEMORY,
      "out of memory on GPU 0: the weights of model 'add' take 8 bytes, 4 of 1099511627776 are free");
  fake.fake_cuda_memory(300);
  o3_session_t *session = create();
  float x[4] = {0};
  o3_tensor_t in = four(x, O3_HOST), out = {0};
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_ERROR_OUT_OF_MEMORY);
  assert_string_equal(
      o3_session_error(session),
      "out of memory on GPU 0: the model's arena takes 512 bytes, 300 of 1099511627776 are free");
  o3_session_destroy(session);
}

static void test_launch_failure(void **state) {
  (void)state;
  o3_session_t *session = create();
  float x[4] = {0};
  o3_tensor_t in = four(x, O3_HOST), out = {0};
  fake.fake_cuda_fail("cuLaunchKernel", 1, 701);
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_ERROR_RUN);
  assert_string_equal(
      o3_session_error(session),
      "GPU 0: kernel 'k_add' (Add_1, Relu_2), grid 3x1x1, block 256x1x1, 0 bytes of shared memory: "
      "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)");
  assert_null(out.data);
  // What runs already has ended before the caller has its memory back.
  assert_string_equal(strstr(fake.fake_cuda_log(), "cuLaunchKernel"),
                      "cuLaunchKernel k_add 3x1x1 256x1x1 0\ncuStreamSynchronize\ncuCtxPopCurrent_v2\n");
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
  o3_session_destroy(session);
}

// Whichever call of the driver fails: a status, no leak, and the next session works.
static void test_every_call_fails(void **state) {
  (void)state;
  bool all_passed = false;
  for (int call = 1; !all_passed; ++call) {
    o3_session_t *session;
    float x[4] = {0};
    bool failed = false;
    fake.fake_cuda_fail(NULL, call, 999);
    if (o3_session_create(&kModel, NULL, &session) != O3_OK) {
      assert_true(strlen(o3_last_error(&kModel)) > 0);
      failed = true;
    }
    for (int run = 0; session && run < 3; ++run) {
      o3_tensor_t in = four(x, O3_HOST), out = {0};
      if (o3_session_run(session, &in, 1, &out, 1) == O3_OK) continue;
      assert_true(strlen(o3_session_error(session)) > 0);
      assert_null(out.data);
      failed = true;
    }
    if (session) o3_session_destroy(session);
    all_passed = !failed && call > 60;
    assert_true(call < 200);
    (void)check_clean(NULL);
  }
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, reset, check_clean)
  const struct CMUnitTest tests[] = {TEST(test_runs),
                                     TEST(test_places),
                                     TEST(test_scratch),
                                     TEST(test_unaligned_input),
                                     TEST(test_in_place),
                                     TEST(test_stream_without_recording),
                                     TEST(test_sessions_share),
                                     TEST(test_shared_memory),
                                     TEST(test_extended_launches),
                                     TEST(test_empty_grid),
                                     TEST(test_kernel_checks),
                                     TEST(test_code),
                                     TEST(test_code_of_another_driver),
                                     TEST(test_profile),
                                     TEST(test_no_card),
                                     TEST(test_memory),
                                     TEST(test_launch_failure),
                                     TEST(test_every_call_fails)};
  return cmocka_run_group_tests(tests, open_fake, NULL);
}
