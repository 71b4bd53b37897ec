// Sessions of hand-written models: C functions stand for the compiled code.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <o3/model.h>

#include "runtime/cpu_features.h"
#include "runtime/session.h"

#define COUNT(array)  ((int32_t)(sizeof(array) / sizeof((array)[0])))
#define FIXED(n)      {n, -1, 0}
#define SYMBOL(index) {-1, index, 0}
#define UNKNOWN       {-1, -1, 0}

// Sanitizers end a process that asks for too much; here it is to be told.
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

static o3_session_t *create_session(const o3_model_t *model, int32_t threads) {
  const o3_session_options_t options = {.threads = threads};
  o3_session_t *session;
  assert_int_equal(o3_session_create(model, &options, &session), O3_OK);
  assert_string_equal(o3_last_error(model), "");
  return session;
}

static void *data_of(const o3rt_memref_t *memref, size_t element) {
  return (char *)memref->aligned + (size_t)memref->offset * element;
}

static void set_memref(o3rt_memref_t *memref, void *data, int32_t rank, const int64_t *sizes) {
  memref->allocated = memref->aligned = data;
  memref->offset = 0;
  int64_t stride = 1;
  for (int32_t i = rank - 1; i >= 0; --i) {
    memref->sizes_and_strides[i] = sizes[i];
    memref->sizes_and_strides[rank + i] = stride;
    stride *= sizes[i];
  }
}

static void expect_error(o3_session_t *session, const o3_tensor_t *inputs, int32_t num_inputs,
                         o3_tensor_t *outputs, int32_t num_outputs, const char *message) {
  o3_code_t code = o3_session_run(session, inputs, num_inputs, outputs, num_outputs);
  assert_string_equal(o3_session_error(session), message);
  assert_int_equal(code, O3_ERROR_INVALID_ARGUMENT);
}

// ---- double: y[2,3] = 2 * x[2,3], in the arena at an offset ----

static void run_double(o3rt_session_t *session, o3rt_memref_t *const *inputs, o3rt_memref_t *const *outputs) {
  const float *x = data_of(inputs[0], sizeof *x);
  float *arena = o3rt_arena(session, 4096);
  assert_int_equal((uintptr_t)arena % 64, 0);
  set_memref(outputs[0], arena, 2, (int64_t[]){2, 3});
  outputs[0]->offset = 16;
  for (int i = 0; i < 6; ++i) arena[16 + i] = 2 * x[i];
}

static const o3rt_dim_t kTwoByThree[] = {FIXED(2), FIXED(3)};
static const o3rt_tensor_t kDoubleInput[] = {{"x", kTwoByThree, 2, O3_FLOAT32}};
static const o3rt_tensor_t kDoubleOutput[] = {{"y", kTwoByThree, 2, O3_FLOAT32}};
static const o3rt_model_t kDoubleCompiled = {.format = O3RT_FORMAT,
                                             .opt_level = 2,
                                             .name = "double",
                                             .target = "x86-64",
                                             .build_id = "0123abcd",
                                             .producer = "hand",
                                             .constant_bytes = 12,
                                             .num_inputs = 1,
                                             .num_outputs = 1,
                                             .inputs = kDoubleInput,
                                             .outputs = kDoubleOutput,
                                             .run = run_double};
static const o3_model_t kDouble = {&o3rt_api, &kDoubleCompiled};

static o3_tensor_t tensor_2x3(void *data) {
  return (o3_tensor_t){.data = data, .dtype = O3_FLOAT32, .rank = 2, .shape = {2, 3}};
}

static void test_model_info(void **state) {
  (void)state;
  o3_model_info_t info;
  o3_model_info(&kDouble, &info);
  assert_string_equal(info.name, "double");
  assert_string_equal(info.target, "x86-64");
  assert_string_equal(info.build_id, "0123abcd");
  assert_string_equal(info.producer, "hand");
  assert_int_equal(info.opt_level, 2);
  assert_int_equal(info.num_inputs, 1);
  assert_int_equal(info.num_outputs, 1);
  assert_int_equal(info.constant_bytes, 12);
  assert_int_equal(kDouble.api->abi, O3_MODEL_ABI);

  o3_tensor_info_t tensor;
  assert_int_equal(o3_output_info(&kDouble, 0, &tensor), O3_OK);
  assert_string_equal(tensor.name, "y");
  assert_int_equal(tensor.rank, 2);
  assert_int_equal(tensor.shape[1], 3);
  assert_null(tensor.symbols[1]);
  assert_int_equal(o3_input_info(&kDouble, 1, &tensor), O3_ERROR_INVALID_ARGUMENT);
  assert_string_equal(o3_last_error(&kDouble), "there is no input 1: the model has 1");
  assert_int_equal(o3_output_info(&kDouble, -1, &tensor), O3_ERROR_INVALID_ARGUMENT);
  assert_string_equal(o3_last_error(&kDouble), "there is no output -1: the model has 1");
}

static void test_static_run(void **state) {
  (void)state;
  o3_session_t *session = create_session(&kDouble, 1);
  assert_int_equal(o3_session_memory(session), 0);
  float x[6] = {1, 2, 3, 4, 5, 6}, mine[6] = {0};
  o3_tensor_t in = tensor_2x3(x), out = {0};
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
  assert_string_equal(o3_session_error(session), "");
  assert_int_equal(out.rank, 2);
  assert_int_equal(out.dtype, O3_FLOAT32);
  assert_int_equal(out.shape[0], 2);
  assert_int_equal(out.shape[1], 3);
  for (int i = 0; i < 6; ++i) assert_float_equal(((float *)out.data)[i], 2 * x[i], 0);
  assert_int_equal(o3_session_memory(session), 4096);

  o3_tensor_t bound = tensor_2x3(mine);
  assert_int_equal(o3_session_run(session, &in, 1, &bound, 1), O3_OK);
  assert_ptr_equal(bound.data, mine);
  for (int i = 0; i < 6; ++i) assert_float_equal(mine[i], 2 * x[i], 0);

  o3_tensor_t in_place = tensor_2x3(x);
  assert_int_equal(o3_session_run(session, &in, 1, &in_place, 1), O3_OK);
  assert_float_equal(x[5], 12, 0);
  o3_session_destroy(session);
}

static void test_input_errors(void **state) {
  (void)state;
  o3_session_t *session = create_session(&kDouble, 1);
  float x[6] = {0};
  char bytes[32] = {0};
  o3_tensor_t good = tensor_2x3(x), out = {0}, bad = good;
  expect_error(session, NULL, 0, &out, 1, "0 inputs were given, the model has 1");
  expect_error(session, &good, 1, &out, 2, "2 outputs were given, the model has 1");
  expect_error(session, NULL, 1, &out, 1, "the array of inputs is NULL");
  expect_error(session, &good, 1, NULL, 1, "the array of outputs is NULL");
  bad.dtype = O3_FLOAT64;
  expect_error(session, &bad, 1, &out, 1, "input 'x' has type float64, the model expects float32");
  bad.dtype = (o3_dtype_t)99;
  expect_error(session, &bad, 1, &out, 1,
               "input 'x' has type 99, which is no element type, the model expects float32");
  bad = good;
  bad.rank = 3;
  bad.shape[2] = 1;
  expect_error(session, &bad, 1, &out, 1,
               "input 'x' has shape 2x3x1, the model expects 2x3 (rank 3, expected 2)");
  bad.rank = 0;
  expect_error(session, &bad, 1, &out, 1,
               "input 'x' has shape scalar, the model expects 2x3 (rank 0, expected 2)");
  bad.rank = 17;
  expect_error(session, &bad, 1, &out, 1, "input 'x' has rank 17, ranks are 0 to 16");
  bad = good;
  bad.shape[1] = 4;
  expect_error(session, &bad, 1, &out, 1,
               "input 'x' has shape 2x4, the model expects 2x3 (dimension 1 is 4, expected 3)");
  bad.shape[1] = -3;
  expect_error(session, &bad, 1, &out, 1,
               "input 'x' has shape 2x-3, the model expects 2x3 (dimension 1 is -3, sizes are 0 or more)");
  bad = good;
  bad.data = NULL;
  expect_error(session, &bad, 1, &out, 1, "input 'x' has no data (NULL), expected 24 bytes");
  bad.data = bytes + ((uintptr_t)bytes % 4 == 0 ? 1 : 0);
  assert_int_equal(o3_session_run(session, &bad, 1, &out, 1), O3_ERROR_INVALID_ARGUMENT);
  assert_non_null(strstr(o3_session_error(session), "which is no multiple of its element size, 4"));
  assert_null(out.data);
  assert_int_equal(o3_session_run(session, &good, 1, &out, 1), O3_OK);
  assert_string_equal(o3_session_error(session), "");
  o3_session_destroy(session);
}

static void test_output_errors(void **state) {
  (void)state;
  o3_session_t *session = create_session(&kDouble, 1);
  float x[6] = {0}, y[8] = {0};
  o3_tensor_t in = tensor_2x3(x), out = tensor_2x3(y);
  out.dtype = O3_INT32;
  expect_error(session, &in, 1, &out, 1, "output 'y' has type int32, the model gives float32");
  out = tensor_2x3(y);
  out.rank = 1;
  expect_error(session, &in, 1, &out, 1, "output 'y' has shape 2, the model gives 2x3 (rank 1, expected 2)");
  out = tensor_2x3(y);
  out.shape[1] = 4;
  expect_error(session, &in, 1, &out, 1,
               "output 'y' has shape 2x4, the model gives 2x3 (dimension 1 is 4, expected 3)");
  o3_session_destroy(session);
}

static void test_session_memory_as_input(void **state) {
  (void)state;
  o3_session_t *session = create_session(&kDouble, 1);
  float x[6] = {0};
  o3_tensor_t in = tensor_2x3(x), out = {0};
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
  o3_tensor_t again = out, bound = out;
  o3_tensor_t fresh = {0};
  expect_error(session, &again, 1, &fresh, 1,
               "input 'x' lies in the session's own memory, which this run reuses: copy it first");
  expect_error(session, &in, 1, &bound, 1,
               "output 'y' lies in the session's own memory, which this run reuses: copy it first");
  o3_session_destroy(session);
}

// ---- pair: a[N,M], b[M,N] -> a unchanged (aliases the input), c[N] = row sums of a, a constant ----

static const float kConstant[2] = {7, 8};

static void run_pair(o3rt_session_t *session, o3rt_memref_t *const *inputs, o3rt_memref_t *const *outputs) {
  int64_t n = inputs[0]->sizes_and_strides[0], m = inputs[0]->sizes_and_strides[1];
  assert_int_equal(inputs[0]->sizes_and_strides[2], m);
  assert_int_equal(inputs[0]->sizes_and_strides[3], 1);
  float *a = data_of(inputs[0], sizeof *a);
  float *sums = o3rt_alloc(session, n * (int64_t)sizeof *sums);
  for (int64_t i = 0; i < n; ++i) {
    sums[i] = 0;
    for (int64_t k = 0; k < m; ++k) sums[i] += a[i * m + k];
  }
  set_memref(outputs[0], a, 2, (int64_t[]){n, m});
  set_memref(outputs[1], sums, 1, &n);
  set_memref(outputs[2], (void *)(uintptr_t)kConstant, 1, (int64_t[]){2});
}

static int32_t check_pair(const int64_t *symbols) { return symbols[0] % 5 == 4 ? 1 : -1; }

static const o3rt_dim_t kNM[] = {SYMBOL(0), SYMBOL(1)}, kMN[] = {SYMBOL(1), SYMBOL(0)}, kN[] = {SYMBOL(0)},
                        kTwo[] = {FIXED(2)};
static const o3rt_tensor_t kPairInputs[] = {{"a", kNM, 2, O3_FLOAT32}, {"b", kMN, 2, O3_INT64}};
static const o3rt_tensor_t kPairOutputs[] = {
    {"same", kNM, 2, O3_FLOAT32}, {"sums", kN, 1, O3_FLOAT32}, {"seven", kTwo, 1, O3_FLOAT32}};
static const char *const kPairSymbols[] = {"N", "M"};
static const char *const kPairGuards[] = {"never", "node 'Mod_1': N must not be 4 modulo 5"};
static const o3rt_model_t kPairCompiled = {.format = O3RT_FORMAT,
                                           .name = "pair",
                                           .target = "x86-64",
                                           .num_inputs = 2,
                                           .num_outputs = 3,
                                           .num_symbols = 2,
                                           .num_guards = 2,
                                           .inputs = kPairInputs,
                                           .outputs = kPairOutputs,
                                           .symbols = kPairSymbols,
                                           .guards = kPairGuards,
                                           .check = check_pair,
                                           .run = run_pair};
static const o3_model_t kPair = {&o3rt_api, &kPairCompiled};

static void pair_inputs(o3_tensor_t inputs[2], float *a, int64_t *b, int64_t n, int64_t m) {
  inputs[0] = (o3_tensor_t){.data = a, .dtype = O3_FLOAT32, .rank = 2, .shape = {n, m}};
  inputs[1] = (o3_tensor_t){.data = b, .dtype = O3_INT64, .rank = 2, .shape = {m, n}};
}

static void test_symbolic_run(void **state) {
  (void)state;
  o3_session_t *session = create_session(&kPair, 1);
  float *a = malloc(6 * sizeof *a);
  int64_t b[6] = {0};
  for (int i = 0; i < 6; ++i) a[i] = (float)i;
  o3_tensor_t inputs[2], outputs[3] = {0};
  pair_inputs(inputs, a, b, 2, 3);
  assert_int_equal(o3_session_run(session, inputs, 2, outputs, 3), O3_OK);
  free(a);  // results stay
  assert_ptr_not_equal(outputs[0].data, a);
  for (int i = 0; i < 6; ++i) assert_float_equal(((float *)outputs[0].data)[i], i, 0);
  assert_int_equal(outputs[1].shape[0], 2);
  assert_float_equal(((float *)outputs[1].data)[1], 12, 0);
  assert_ptr_not_equal(outputs[2].data, kConstant);
  assert_float_equal(((float *)outputs[2].data)[1], 8, 0);
  assert_int_equal(o3_session_memory(session), 8 + 24 + 8);

  o3_tensor_info_t info;
  assert_int_equal(o3_input_info(&kPair, 1, &info), O3_OK);
  assert_int_equal(info.shape[0], -1);
  assert_string_equal(info.symbols[0], "M");
  o3_session_destroy(session);
}

static void test_symbol_errors(void **state) {
  (void)state;
  o3_session_t *session = create_session(&kPair, 1);
  float a[16] = {0}, y[16];
  int64_t b[16] = {0};
  o3_tensor_t inputs[2], outputs[3] = {0};
  pair_inputs(inputs, a, b, 2, 3);
  inputs[1].shape[1] = 5;
  expect_error(session, inputs, 2, outputs, 3,
               "input 'b' has shape 3x5, the model expects MxN (dimension 1 is 5, but N is 2 in input 'a')");
  pair_inputs(inputs, a, b, INT64_MAX / 2, 3);
  expect_error(session, inputs, 2, outputs, 3,
               "input 'a' has shape 4611686018427387903x3, the model expects NxM (more than 2^63 bytes)");
  pair_inputs(inputs, a, b, 4, 3);
  expect_error(session, inputs, 2, outputs, 3,
               "the inputs' shapes do not fit together: node 'Mod_1': N must not be 4 modulo 5");
  pair_inputs(inputs, a, b, 2, 3);
  outputs[1] = (o3_tensor_t){.data = y, .dtype = O3_FLOAT32, .rank = 1, .shape = {3}};
  expect_error(session, inputs, 2, outputs, 3,
               "output 'sums' has shape 3, the model gives N (dimension 0 is 3, but N is 2 in input 'a')");
  outputs[0] = (o3_tensor_t){.data = y, .dtype = O3_FLOAT32, .rank = 2, .shape = {2, 3}};
  outputs[1] = (o3_tensor_t){.data = y + 5, .dtype = O3_FLOAT32, .rank = 1, .shape = {2}};
  expect_error(session, inputs, 2, outputs, 3, "output 'sums' overlaps output 'same' in memory");
  o3_session_destroy(session);
}

static void test_zero_size(void **state) {
  (void)state;
  o3_session_t *session = create_session(&kPair, 1);
  o3_tensor_t inputs[2], outputs[3] = {0};
  pair_inputs(inputs, NULL, NULL, 0, 3);
  assert_int_equal(o3_session_run(session, inputs, 2, outputs, 3), O3_OK);
  assert_int_equal(outputs[0].shape[0], 0);
  assert_int_equal(outputs[0].shape[1], 3);
  assert_non_null(outputs[0].data);
  assert_int_equal(outputs[1].shape[0], 0);
  memset(outputs, 0, sizeof outputs);
  pair_inputs(inputs, NULL, NULL, 0, INT64_MAX);
  assert_int_equal(o3_session_run(session, inputs, 2, outputs, 3), O3_OK);
  assert_int_equal(outputs[0].shape[1], INT64_MAX);
  o3_session_destroy(session);
}

// Output "sums" goes where input "a" lies, of which output "same" is still to be read.
static void test_output_over_aliased_input(void **state) {
  (void)state;
  o3_session_t *session = create_session(&kPair, 1);
  float a[4] = {1, 2, 3, 4}, same[4] = {0};
  int64_t b[4] = {0};
  o3_tensor_t inputs[2], outputs[3] = {0};
  pair_inputs(inputs, a, b, 2, 2);
  outputs[0] = (o3_tensor_t){.data = same, .dtype = O3_FLOAT32, .rank = 2, .shape = {2, 2}};
  outputs[1] = (o3_tensor_t){.data = a, .dtype = O3_FLOAT32, .rank = 1, .shape = {2}};
  assert_int_equal(o3_session_run(session, inputs, 2, outputs, 3), O3_OK);
  assert_float_equal(a[0], 3, 0);
  assert_float_equal(a[1], 7, 0);
  for (int i = 0; i < 4; ++i) assert_float_equal(same[i], i + 1, 0);
  o3_session_destroy(session);
}

// ---- pick: mask[N] booleans -> indices of the true ones, a size known only after the run; fails on none
// ----

static void run_pick(o3rt_session_t *session, o3rt_memref_t *const *inputs, o3rt_memref_t *const *outputs) {
  int64_t n = inputs[0]->sizes_and_strides[0], found = 0;
  const uint8_t *mask = data_of(inputs[0], 1);
  void *temporary = o3rt_alloc(session, 100);
  int64_t *picked = o3rt_alloc(session, n * (int64_t)sizeof *picked);
  o3rt_free(session, temporary);
  o3rt_free(session, NULL);
  for (int64_t i = 0; i < n; ++i)
    if (mask[i]) picked[found++] = i;
  if (found == 0) o3rt_fail(session, "node 'NonZero_1': nothing is set");
  set_memref(outputs[0], picked, 1, &found);
}

static const o3rt_dim_t kAny[] = {UNKNOWN};
static const o3rt_tensor_t kPickInput[] = {{"mask", kAny, 1, O3_BOOL}};
static const o3rt_tensor_t kPickOutput[] = {{"picked", kAny, 1, O3_INT64}};
static const o3rt_model_t kPickCompiled = {.format = O3RT_FORMAT,
                                           .name = "pick",
                                           .target = "x86-64",
                                           .num_inputs = 1,
                                           .num_outputs = 1,
                                           .inputs = kPickInput,
                                           .outputs = kPickOutput,
                                           .run = run_pick};
static const o3_model_t kPick = {&o3rt_api, &kPickCompiled};

static void test_result_shapes(void **state) {
  (void)state;
  o3_session_t *session = create_session(&kPick, 1);
  uint8_t mask[4] = {0, 1, 0, 1};
  int64_t mine[3] = {-1, -1, -1};
  o3_tensor_t in = {.data = mask, .dtype = O3_BOOL, .rank = 1, .shape = {4}}, out = {0};
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
  assert_int_equal(out.shape[0], 2);
  assert_int_equal(((int64_t *)out.data)[1], 3);
  o3_tensor_t bound = {.data = mine, .dtype = O3_INT64, .rank = 1, .shape = {3}};
  expect_error(session, &in, 1, &bound, 1,
               "output 'picked' has shape 3, the result has 2 (dimension 0 is 3, expected 2)");
  assert_int_equal(mine[0], -1);
  bound.shape[0] = 2;
  assert_int_equal(o3_session_run(session, &in, 1, &bound, 1), O3_OK);
  assert_int_equal(mine[0], 1);
  mask[2] = 200;
  expect_error(session, &in, 1, &bound, 1, "input 'mask' holds 200 at element 2, booleans are 0 or 1");
  o3_session_destroy(session);
}

static void test_failing_run(void **state) {
  (void)state;
  o3_session_t *session = create_session(&kPick, 1);
  uint8_t mask[2] = {0, 0};
  o3_tensor_t in = {.data = mask, .dtype = O3_BOOL, .rank = 1, .shape = {2}}, out = {0};
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_ERROR_RUN);
  assert_string_equal(o3_session_error(session), "node 'NonZero_1': nothing is set");
  assert_null(out.data);
  mask[1] = 1;
  assert_int_equal(o3_session_run(session, &in, 1, &out, 1), O3_OK);
  assert_string_equal(o3_session_error(session), "");
  assert_int_equal(*(int64_t *)out.data, 1);
  o3_session_destroy(session);
}

// ---- hungry: asks for as many bytes as its scalar input says, in the arena or in scratch ----

static void run_hungry(o3rt_session_t *session, o3rt_memref_t *const *inputs, o3rt_memref_t *const *outputs) {
  int64_t bytes = *(int64_t *)data_of(inputs[0], 8);
  bool use_arena = *(uint8_t *)data_of(inputs[1], 1);
  char *memory = use_arena ? o3rt_arena(session, bytes) : o3rt_alloc(session, bytes);
  assert_int_equal((uintptr_t)memory % 64, 0);
  if (bytes > 0) memory[0] = memory[bytes - 1] = 1;
  set_memref(outputs[0], memory, 1, &bytes);
}

static const o3rt_tensor_t kHungryInputs[] = {{"bytes", NULL, 0, O3_INT64}, {"arena", NULL, 0, O3_BOOL}};
static const o3rt_tensor_t kHungryOutput[] = {{"memory", kAny, 1, O3_INT8}};
static const o3rt_model_t kHungryCompiled = {.format = O3RT_FORMAT,
                                             .name = "hungry",
                                             .target = "x86-64",
                                             .num_inputs = 2,
                                             .num_outputs = 1,
                                             .inputs = kHungryInputs,
                                             .outputs = kHungryOutput,
                                             .run = run_hungry};
static const o3_model_t kHungry = {&o3rt_api, &kHungryCompiled};

static o3_code_t feed(o3_session_t *session, int64_t bytes, uint8_t arena) {
  o3_tensor_t inputs[2] = {{.data = &bytes, .dtype = O3_INT64}, {.data = &arena, .dtype = O3_BOOL}};
  o3_tensor_t out = {0};
  return o3_session_run(session, inputs, 2, &out, 1);
}

static void test_memory_grows_and_is_kept(void **state) {
  (void)state;
  o3_session_t *session = create_session(&kHungry, 1);
  assert_int_equal(feed(session, 1000, 1), O3_OK);
  assert_int_equal(o3_session_memory(session), 1000);
  assert_int_equal(feed(session, 10, 1), O3_OK);
  assert_int_equal(o3_session_memory(session), 1000);
  assert_int_equal(feed(session, 5 << 20, 1), O3_OK);
  assert_int_equal(o3_session_memory(session), 5 << 20);
  for (int i = 0; i < 3; ++i) {
    assert_int_equal(feed(session, 3 << 20, 0), O3_OK);
    assert_int_equal(o3_session_memory(session), 8 << 20);
  }
  assert_int_equal(feed(session, 64, 0), O3_OK);  // the large block is spare now,
  assert_int_equal(feed(session, 64, 0), O3_OK);  // and given back: a whole run did not need it
  assert_int_equal(o3_session_memory(session), (5 << 20) + 64);
  assert_int_equal(feed(session, 0, 0), O3_OK);
  o3_session_destroy(session);
}

static void test_out_of_memory(void **state) {
  (void)state;
  o3_session_t *session = create_session(&kHungry, 1);
  assert_int_equal(feed(session, INT64_C(1) << 60, 1), O3_ERROR_OUT_OF_MEMORY);
  assert_string_equal(o3_session_error(session),
                      "out of memory: the model's arena takes 1152921504606846976 bytes");
  assert_int_equal(feed(session, INT64_C(1) << 60, 0), O3_ERROR_OUT_OF_MEMORY);
  assert_string_equal(o3_session_error(session),
                      "out of memory: a buffer of the model takes 1152921504606846976 bytes");
  assert_int_equal(feed(session, -8, 0), O3_ERROR_OUT_OF_MEMORY);
  assert_string_equal(o3_session_error(session), "a buffer of the model would take more than 2^63 bytes");
  assert_int_equal(o3_session_memory(session), 0);
  assert_int_equal(feed(session, 100, 1), O3_OK);
  o3_session_destroy(session);
}

// ---- What keeps a session from being created ----

static void expect_refused(const o3rt_model_t *compiled, const o3_session_options_t *options, o3_code_t code,
                           const char *message) {
  const o3_model_t model = {&o3rt_api, compiled};
  o3_session_t *session = (o3_session_t *)(uintptr_t)1;
  assert_int_equal(o3_session_create(&model, options, &session), code);
  assert_null(session);
  assert_string_equal(o3_last_error(&model), message);
}

static void test_create_errors(void **state) {
  (void)state;
  expect_refused(&kDoubleCompiled, &(o3_session_options_t){.threads = -1}, O3_ERROR_INVALID_ARGUMENT,
                 "threads is -1, expected 0 (all) to 1024");
  expect_refused(&kDoubleCompiled, &(o3_session_options_t){.threads = 1025}, O3_ERROR_INVALID_ARGUMENT,
                 "threads is 1025, expected 0 (all) to 1024");
  expect_refused(&kDoubleCompiled, &(o3_session_options_t){.spin_us = -2}, O3_ERROR_INVALID_ARGUMENT,
                 "spin_us is -2, expected -1 (never) or more");
  expect_refused(&kDoubleCompiled, &(o3_session_options_t){.device = 1}, O3_ERROR_INVALID_ARGUMENT,
                 "device is 1, but model 'double' is for CPUs");
  o3rt_model_t other = kDoubleCompiled;
  other.format = 77;
  expect_refused(&other, NULL, O3_ERROR_UNSUPPORTED,
                 "model 'double' has format 77, the runtime linked into it has 3: models of two compiler "
                 "versions were mixed in one static link");
}

static void test_cpu_features(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int bit;
  } kProbes[] = {{"avx2", O3RT_CPU_AVX2}, {"fma", O3RT_CPU_FMA}, {"sse4.2", O3RT_CPU_SSE42}};
  const bool has[] = {__builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"),
                      __builtin_cpu_supports("sse4.2")};
  for (int32_t i = 0; i < COUNT(kProbes); ++i) {
    uint64_t mask = UINT64_C(1) << kProbes[i].bit;
    assert_int_equal(o3rt_cpu_features_usable(mask), has[i] ? mask : 0);
    o3rt_text_t text = {0};
    o3rt_cpu_features_print(mask, &text);
    assert_string_equal(text.text, kProbes[i].name);
  }
  uint64_t avx512 = UINT64_C(1) << O3RT_CPU_AVX512F;
  assert_int_equal(o3rt_cpu_features_usable(avx512), __builtin_cpu_supports("avx512f") ? avx512 : 0);
  assert_int_equal(o3rt_cpu_features_usable(0), 0);

  // A feature from the future is lacking on every machine.
  o3rt_model_t future = kDoubleCompiled;
  future.target = "x86-64-v9";
  future.cpu_features = UINT64_C(1) << 63 | UINT64_C(1) << O3RT_CPU_SSE3;
  expect_refused(
      &future, NULL, O3_ERROR_UNSUPPORTED,
      "this model was compiled for x86-64-v9 and needs sse3, feature 63; this CPU lacks feature 63");
}

// ---- busy: two kernels, the second called twice, the first slow ----

static void run_busy(o3rt_session_t *session, o3rt_memref_t *const *inputs, o3rt_memref_t *const *outputs) {
  (void)inputs, (void)outputs;
  o3rt_kernel_begin(session, 0, 1000, 64);
  nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
  o3rt_kernel_begin(session, 1, 10, 1);
  o3rt_kernel_begin(session, 1, 20, 2);
}

static const char *const kBusyNodes[] = {"Conv_0", "Relu_1"};
static const o3rt_kernel_t kBusyKernels[] = {
    {.name = "k0", .kind = "contraction", .nodes = kBusyNodes, .num_nodes = 2},
    {.name = "k1", .kind = "rows"}};
static const o3rt_model_t kBusyCompiled = {
    .format = O3RT_FORMAT, .name = "busy", .run = run_busy, .kernels = kBusyKernels, .num_kernels = 2};
static const o3_model_t kBusy = {&o3rt_api, &kBusyCompiled};

static void expect_work(const o3_session_t *session, int32_t kernel, int64_t calls, double operations,
                        double bytes) {
  o3_kernel_sample_t sample;
  assert_int_equal(o3_session_kernel(session, kernel, &sample), O3_OK);
  assert_int_equal(sample.calls, calls);
  assert_true(sample.operations == operations && sample.bytes == bytes);
  assert_true(sample.nanoseconds >= 0);
}

static void test_profile(void **state) {
  (void)state;
  o3_kernel_info_t info;
  o3_kernel_sample_t sample;
  o3_session_t *session = create_session(&kBusy, 1);
  assert_int_equal(o3_kernel_info(&kBusy, 0, &info), O3_OK);
  assert_string_equal(info.kind, "contraction");
  assert_string_equal(info.nodes[1], "Relu_1");
  assert_int_equal(o3_kernel_info(&kBusy, 2, &info), O3_ERROR_INVALID_ARGUMENT);
  assert_string_equal(o3_last_error(&kBusy), "there is no kernel 2: the model has 2");
  assert_int_equal(o3_session_run(session, NULL, 0, NULL, 0), O3_OK);
  assert_int_equal(o3_session_kernel(session, 0, &sample), O3_ERROR_INVALID_ARGUMENT);
  assert_string_equal(o3_last_error(&kBusy), "the session does not measure kernels: o3_session_profile");
  assert_int_equal(o3_session_profile(session, 1), O3_OK);
  for (int run = 0; run < 2; ++run) {
    assert_int_equal(o3_session_run(session, NULL, 0, NULL, 0), O3_OK);
    expect_work(session, 0, 1, 1000, 64);
    expect_work(session, 1, 2, 30, 3);
    expect_work(session, O3_NO_KERNEL, 1, 0, 0);
  }
  assert_int_equal(o3_session_kernel(session, 0, &sample), O3_OK);
  assert_true(sample.nanoseconds >= 3000000);
  assert_int_equal(o3_session_kernel(session, 2, &sample), O3_ERROR_INVALID_ARGUMENT);
  assert_int_equal(o3_session_profile(session, 0), O3_OK);
  assert_int_equal(o3_session_kernel(session, 0, &sample), O3_ERROR_INVALID_ARGUMENT);
  o3_session_destroy(session);
}

// ---- Code for several processors ----

static int kRan;
static void run_best(o3rt_session_t *session, o3rt_memref_t *const *inputs, o3rt_memref_t *const *outputs) {
  (void)session, (void)inputs, (void)outputs;
  kRan = 1;
}
static void run_plain(o3rt_session_t *session, o3rt_memref_t *const *inputs, o3rt_memref_t *const *outputs) {
  (void)session, (void)inputs, (void)outputs;
  kRan = 2;
}

static void expect_code(const o3_model_t *model, const char *name, int ran) {
  o3_session_t *session = create_session(model, 1);
  assert_string_equal(o3_session_code(session), name);
  assert_int_equal(o3_session_run(session, NULL, 0, NULL, 0), O3_OK);
  assert_int_equal(kRan, ran);
  o3_session_destroy(session);
}

static void test_codes(void **state) {
  (void)state;
  o3rt_code_t codes[] = {{"best", 0, run_best}, {"plain", 0, run_plain}};
  o3rt_model_t compiled = {.format = O3RT_FORMAT,
                           .name = "two",
                           .target = "any",
                           .run = run_plain,
                           .num_codes = 2,
                           .codes = codes};
  const o3_model_t model = {&o3rt_api, &compiled};
  expect_code(&model, "best", 1);
  setenv("O3_CPU_CODE", "plain", 1);
  expect_code(&model, "plain", 2);
  setenv("O3_CPU_CODE", "", 1);
  expect_code(&model, "best", 1);
  setenv("O3_CPU_CODE", "better", 1);
  expect_refused(&compiled, NULL, O3_ERROR_UNSUPPORTED,
                 "O3_CPU_CODE is 'better', model 'two' has code for best and plain");

  // A feature from the future is lacking on every machine.
  codes[0].cpu_features = UINT64_C(1) << 63;
  setenv("O3_CPU_CODE", "best", 1);
  expect_refused(&compiled, NULL, O3_ERROR_UNSUPPORTED,
                 "this model was compiled for best and needs feature 63; this CPU lacks feature 63");
  unsetenv("O3_CPU_CODE");
  expect_code(&model, "plain", 2);
  codes[1].cpu_features = compiled.cpu_features = UINT64_C(1) << 62;
  expect_refused(&compiled, NULL, O3_ERROR_UNSUPPORTED,
                 "this model was compiled for any and needs feature 62; this CPU lacks feature 62");
}

static void test_dtypes(void **state) {
  (void)state;
  static const struct {
    o3_dtype_t dtype;
    size_t bytes;
  } kSizes[] = {{O3_FLOAT32, 4}, {O3_UINT8, 1},  {O3_INT8, 1},     {O3_UINT16, 2},      {O3_INT16, 2},
                {O3_INT32, 4},   {O3_INT64, 8},  {O3_BOOL, 1},     {O3_FLOAT16, 2},     {O3_FLOAT64, 8},
                {O3_UINT32, 4},  {O3_UINT64, 8}, {O3_BFLOAT16, 2}, {O3_FLOAT8E4M3FN, 1}};
  for (int32_t i = 0; i < COUNT(kSizes); ++i)
    assert_int_equal(o3rt_dtype_bytes((int32_t)kSizes[i].dtype), kSizes[i].bytes);
  assert_int_equal(o3rt_dtype_bytes(0), 0);
}

static void test_long_text_is_cut(void **state) {
  (void)state;
  o3rt_text_t text;
  o3rt_text_clear(&text);
  for (int i = 0; i < 200; ++i) o3rt_text_printf(&text, "%08d", i);
  assert_int_equal(strlen(text.text), O3RT_TEXT_SIZE - 1);
  assert_string_equal(text.text + O3RT_TEXT_SIZE - 4, "...");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_model_info),
      cmocka_unit_test(test_static_run),
      cmocka_unit_test(test_input_errors),
      cmocka_unit_test(test_output_errors),
      cmocka_unit_test(test_session_memory_as_input),
      cmocka_unit_test(test_symbolic_run),
      cmocka_unit_test(test_symbol_errors),
      cmocka_unit_test(test_zero_size),
      cmocka_unit_test(test_output_over_aliased_input),
      cmocka_unit_test(test_result_shapes),
      cmocka_unit_test(test_failing_run),
      cmocka_unit_test(test_memory_grows_and_is_kept),
      cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_create_errors),
      cmocka_unit_test(test_cpu_features),
      cmocka_unit_test(test_profile),
      cmocka_unit_test(test_codes),
      cmocka_unit_test(test_dtypes),
      cmocka_unit_test(test_long_text_is_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
