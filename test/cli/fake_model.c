/* A model made by hand for the tests of o3-run: it fills the public interface without the compiler.
 *
 *     x: float32 [N,3], mask: bool [N], ids/0: int32 [N]  ->  y/1: float32 [N,3] = x + 1, sum: int64 [] =
 * sum(ids/0), yes: bool [N] = mask
 *
 * Macros change it: FAKE_PREFIX (symbol prefix), FAKE_ABI, FAKE_FLAKY (y counts its runs), FAKE_NO_SESSION
 * (needs a CPU feature that is missing), FAKE_LOST (an output without data), FAKE_KERNELS (two
 * kernels to profile). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "o3/model.h"

#ifndef FAKE_PREFIX
#define FAKE_PREFIX o3
#endif
#ifndef FAKE_ABI
#define FAKE_ABI O3_MODEL_ABI
#endif
#ifdef FAKE_KERNELS
#define NUM_KERNELS 2
#else
#define NUM_KERNELS 0
#endif
#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

typedef struct fake_session {
  o3_session_t base;
  float *y;
  uint8_t *yes;
  int64_t sum;
  int runs;
  char error[256];
} fake_session_t;

static const o3_tensor_info_t inputs[] = {{"x", O3_FLOAT32, 2, {-1, 3}, {"N"}},
                                          {"mask", O3_BOOL, 1, {-1}, {"N"}},
                                          {"ids/0", O3_INT32, 1, {-1}, {"N"}}};
static const o3_tensor_info_t outputs[] = {{"y/1", O3_FLOAT32, 2, {-1, 3}, {"N"}},
                                           {"sum", O3_INT64, 0, {0}, {NULL}},
                                           {"yes", O3_BOOL, 1, {-1}, {"N"}}};

static void model_info(const o3_model_t *model, o3_model_info_t *info) {
  (void)model;
  *info = (o3_model_info_t){"fake", "x86-64", "0123abcd", "hand", 2, 3, 3, 1234, NUM_KERNELS};
}

static o3_code_t input_info(const o3_model_t *model, int32_t index, o3_tensor_info_t *info) {
  (void)model;
  if (index < 0 || index >= 3) return O3_ERROR_INVALID_ARGUMENT;
  *info = inputs[index];
  return O3_OK;
}

static o3_code_t output_info(const o3_model_t *model, int32_t index, o3_tensor_info_t *info) {
  (void)model;
  if (index < 0 || index >= 3) return O3_ERROR_INVALID_ARGUMENT;
  *info = outputs[index];
  return O3_OK;
}

static o3_code_t session_create(const o3_model_t *model, const o3_session_options_t *options,
                                o3_session_t **out) {
  (void)options;
  *out = NULL;
#ifdef FAKE_NO_SESSION
  (void)model;
  return O3_ERROR_UNSUPPORTED;
#else
  fake_session_t *session = calloc(1, sizeof *session);
  if (!session) return O3_ERROR_OUT_OF_MEMORY;
  session->base.api = model->api;
  *out = &session->base;
  return O3_OK;
#endif
}

static o3_code_t check(fake_session_t *session, const o3_tensor_t *in) {
  for (int i = 0; i < 3; ++i) {
    const int ok =
        in[i].dtype == inputs[i].dtype && in[i].rank == inputs[i].rank && in[i].shape[0] == in[0].shape[0];
    if (ok && (i || in[i].shape[1] == 3)) continue;
    snprintf(session->error, sizeof session->error, "input '%s' has a wrong type or shape", inputs[i].name);
    return O3_ERROR_INVALID_ARGUMENT;
  }
  return O3_OK;
}

static o3_code_t session_run(o3_session_t *base, const o3_tensor_t *in, int32_t num_in, o3_tensor_t *out,
                             int32_t num_out) {
  fake_session_t *session = (fake_session_t *)base;
  session->error[0] = '\0';
  if (num_in != 3 || num_out != 3) return O3_ERROR_INVALID_ARGUMENT;
  if (check(session, in) != O3_OK) return O3_ERROR_INVALID_ARGUMENT;
  const int64_t n = in[0].shape[0];
  session->y = realloc(session->y, (size_t)(n * 3 + 1) * sizeof *session->y);
  session->yes = realloc(session->yes, (size_t)n + 1);
  if (!session->y || !session->yes) return O3_ERROR_OUT_OF_MEMORY;
  for (int64_t i = 0; i < n * 3; ++i) session->y[i] = ((const float *)in[0].data)[i] + 1;
  memcpy(session->yes, in[1].data, (size_t)n);
  session->sum = 0;
  for (int64_t i = 0; i < n; ++i) session->sum += ((const int32_t *)in[2].data)[i];
#ifdef FAKE_FLAKY
  session->y[0] = (float)session->runs;
#endif
  ++session->runs;
  out[0] = (o3_tensor_t){.data = session->y, .dtype = O3_FLOAT32, .rank = 2, .shape = {n, 3}};
  out[1] = (o3_tensor_t){.data = &session->sum, .dtype = O3_INT64};
  out[2] = (o3_tensor_t){.data = session->yes, .dtype = O3_BOOL, .rank = 1, .shape = {n}};
#ifdef FAKE_LOST
  out[2].data = NULL;
#endif
  return O3_OK;
}

static const char *session_error(const o3_session_t *session) {
  return ((const fake_session_t *)session)->error;
}

static size_t session_memory(const o3_session_t *session) {
  (void)session;
  return 4096;
}

static void session_destroy(o3_session_t *base) {
  fake_session_t *session = (fake_session_t *)base;
  free(session->y);
  free(session->yes);
  free(session);
}

static const char *last_error(void) {
  return "the model needs the CPU feature avx99, which this machine lacks";
}

static const char *const nodes[] = {"MatMul_0", "Add_1", "Softmax_2"};

static o3_code_t kernel_info(const o3_model_t *m, int32_t index, o3_kernel_info_t *info) {
  (void)m;
  if (index < 0 || index >= NUM_KERNELS) return O3_ERROR_INVALID_ARGUMENT;
  *info = index ? (o3_kernel_info_t){"k1_rows_Softmax_2", "rows", 1, nodes + 2}
                : (o3_kernel_info_t){"k0_contraction_MatMul_0", "contraction", 2, nodes};
  return O3_OK;
}

static const char *session_code(const o3_session_t *session) {
  (void)session;
  return "x86-64";
}

static o3_code_t session_profile(o3_session_t *session, int32_t on) {
  (void)session, (void)on;
  return O3_OK;
}

/* Always the same figures: kernel 0 takes 3 ms, kernel 1 takes 1 ms in two calls. */
static o3_code_t session_kernel(const o3_session_t *session, int32_t index, o3_kernel_sample_t *sample) {
  (void)session;
  *sample = index == 0   ? (o3_kernel_sample_t){1, 3000000, 6e6, 3e6}
            : index == 1 ? (o3_kernel_sample_t){2, 1000000, 0, 1e6}
                         : (o3_kernel_sample_t){1, 0, 0, 0};
  return O3_OK;
}

static const o3_model_api_t api = {
    FAKE_ABI,       model_info,      input_info, output_info, session_create,  session_run,    session_error,
    session_memory, session_destroy, last_error, kernel_info, session_profile, session_kernel, session_code};
static const o3_model_t model = {&api, NULL};

const o3_model_t *JOIN(FAKE_PREFIX, _model)(void);
const o3_model_t *JOIN(FAKE_PREFIX, _model)(void) { return &model; }
