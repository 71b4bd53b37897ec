/* O3: the C interface of a compiled model.
 *
 * A compiled model is a library (.so, or .a with this header) that exports one function,
 * `<prefix>_model`, where the prefix is "o3" unless it was compiled with --symbol-prefix. Everything
 * else goes through the table that it returns, so any number of models fit into one process.
 *
 *     #include <o3/model.h>
 *
 *     const o3_model_t *model = o3_model();               // constant, shared by all threads
 *     o3_session_t *session;
 *     if (o3_session_create(model, NULL, &session) != O3_OK) { puts(o3_last_error(model)); ... }
 *     o3_tensor_t in = {.data = pixels, .dtype = O3_FLOAT32, .rank = 4, .shape = {1, 3, 224, 224}};
 *     o3_tensor_t out = {.data = NULL};
 *     if (o3_session_run(session, &in, 1, &out, 1) != O3_OK) { puts(o3_session_error(session)); ... }
 *     // out.data holds the result until the next run of this session
 *     o3_session_destroy(session);
 *
 * Threads: a model may be used by any number of threads; a session by one at a time.
 */
#ifndef O3_MODEL_H
#define O3_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define O3_MODEL_ABI 3u
#define O3_MAX_RANK  16

typedef enum o3_code {
  O3_OK = 0,
  O3_ERROR_INVALID_ARGUMENT = 1, /* a shape, type, name or count that the model does not take */
  O3_ERROR_UNSUPPORTED = 2,      /* this machine lacks a CPU feature (or device) that the model needs */
  O3_ERROR_OUT_OF_MEMORY = 3,
  O3_ERROR_RUN = 4 /* the model itself failed, e.g. an index out of range */
} o3_code_t;

/* Element types; the numbers are ONNX's. Booleans take one byte, which is 0 or 1: a run checks those in host
 * memory; on a card, where looking at them would stop the stream, the caller sees to it. */
typedef enum o3_dtype {
  O3_FLOAT32 = 1,
  O3_UINT8 = 2,
  O3_INT8 = 3,
  O3_UINT16 = 4,
  O3_INT16 = 5,
  O3_INT32 = 6,
  O3_INT64 = 7,
  O3_BOOL = 9,
  O3_FLOAT16 = 10,
  O3_FLOAT64 = 11,
  O3_UINT32 = 12,
  O3_UINT64 = 13,
  O3_BFLOAT16 = 16,
  O3_FLOAT8E4M3FN = 17,
  O3_FLOAT8E4M3FNUZ = 18,
  O3_FLOAT8E5M2 = 19,
  O3_FLOAT8E5M2FNUZ = 20
} o3_dtype_t;

typedef struct o3_model o3_model_t;
typedef struct o3_session o3_session_t;

/* Whose memory a tensor lies in. */
typedef enum o3_place { O3_HOST = 0, O3_DEVICE = 1 /* the GPU's, in GPU models */ } o3_place_t;

/* A tensor in memory: row-major, contiguous, the first element at |data|, whose address is a multiple of the
 * element's size. |data| may be NULL when a dimension is 0. Rank 0 is a scalar, one element. */
typedef struct o3_tensor {
  void *data;
  o3_dtype_t dtype;
  int32_t rank;
  int64_t shape[O3_MAX_RANK]; /* sizes of the first |rank| dimensions */
  o3_place_t place;           /* of |data|; of an output without, where the caller wants it */
} o3_tensor_t;

/* What the model expects or gives. */
typedef struct o3_tensor_info {
  const char *name;
  o3_dtype_t dtype;
  int32_t rank;
  int64_t shape[O3_MAX_RANK];       /* -1: any size */
  const char *symbols[O3_MAX_RANK]; /* names of symbolic dimensions, or NULL; equal names mean equal sizes */
} o3_tensor_info_t;

typedef struct o3_model_info {
  const char *name, *target, *build_id, *producer;
  int32_t opt_level;
  int32_t num_inputs, num_outputs;
  uint64_t constant_bytes; /* weights */
  int32_t num_kernels;
} o3_model_info_t;

/* A kernel: what the model does in one piece, made of nodes of the model file. */
typedef struct o3_kernel_info {
  const char *name; /* "k3_contraction_Conv_5" */
  const char *kind; /* "contraction", "winograd", "attention", "rows", "elementwise", "movement"; unfused:
                       "reduction", "loop" */
  int32_t num_nodes;
  const char *const *nodes; /* names in the model file */
} o3_kernel_info_t;

/* What a kernel did in a run. */
typedef struct o3_kernel_sample {
  int64_t calls;       /* 0: not reached */
  int64_t nanoseconds; /* of all calls */
  double operations;   /* arithmetic ones; a multiplication and an addition are two, an exponential is one */
  double bytes;        /* of what it reads and of what it writes, each counted once a call */
} o3_kernel_sample_t;

/* For o3_session_kernel: the part of a run outside of all kernels. */
#define O3_NO_KERNEL (-1)

typedef struct o3_session_options {
  int32_t threads; /* the caller included; 0: one for each CPU that the process may use; at most 1024. What a
                      GPU model does on the host, shape arithmetic and such, one thread does */
  int32_t spin_us; /* how long an idle thread spins before it sleeps, in microseconds; 0: 50; -1: never */
  int32_t device;  /* GPU models: which card, 0 being the driver's first; a CPU model takes no other */
  void *stream; /* GPU models: a CUstream of that card's primary context, in which runs happen; NULL: one of
                   the session's own. In a stream of the caller's a run whose outputs all stay on the card
                   returns before they are ready */
} o3_session_options_t;

/* The table behind a model. Use the functions below. |abi| is O3_MODEL_ABI of the header that the model was
 * compiled with: a program that finds models with dlopen compares it with its own first. */
typedef struct o3_model_api {
  uint32_t abi;
  void (*model_info)(const o3_model_t *, o3_model_info_t *);
  o3_code_t (*input_info)(const o3_model_t *, int32_t, o3_tensor_info_t *);
  o3_code_t (*output_info)(const o3_model_t *, int32_t, o3_tensor_info_t *);
  o3_code_t (*session_create)(const o3_model_t *, const o3_session_options_t *, o3_session_t **);
  o3_code_t (*session_run)(o3_session_t *, const o3_tensor_t *, int32_t, o3_tensor_t *, int32_t);
  const char *(*session_error)(const o3_session_t *);
  size_t (*session_memory)(const o3_session_t *);
  void (*session_destroy)(o3_session_t *);
  const char *(*last_error)(void);
  o3_code_t (*kernel_info)(const o3_model_t *, int32_t, o3_kernel_info_t *);
  o3_code_t (*session_profile)(o3_session_t *, int32_t);
  o3_code_t (*session_kernel)(const o3_session_t *, int32_t, o3_kernel_sample_t *);
  const char *(*session_code)(const o3_session_t *);
} o3_model_api_t;

struct o3_model {
  const o3_model_api_t *api;
  const void *compiled;
};
struct o3_session {
  const o3_model_api_t *api;
};

/* The model of a library compiled with the default prefix. For `--symbol-prefix net` declare
 * O3_DECLARE_MODEL(net) and call net_model(). With dlopen look the symbol "<prefix>_model" up. */
#define O3_DECLARE_MODEL(prefix) const o3_model_t *prefix##_model(void)
O3_DECLARE_MODEL(o3);
typedef const o3_model_t *(*o3_model_fn_t)(void);

/* Strings are the model's own, here and below. */
static inline void o3_model_info(const o3_model_t *model, o3_model_info_t *info) {
  model->api->model_info(model, info);
}

/* INVALID_ARGUMENT when |index| is out of range. */
static inline o3_code_t o3_input_info(const o3_model_t *model, int32_t index, o3_tensor_info_t *info) {
  return model->api->input_info(model, index, info);
}
static inline o3_code_t o3_output_info(const o3_model_t *model, int32_t index, o3_tensor_info_t *info) {
  return model->api->output_info(model, index, info);
}

/* A session owns scratch memory and threads, and belongs to the process that created it (not to a child after
 * fork). |options| may be NULL. On failure *session is NULL and o3_last_error tells why (UNSUPPORTED names
 * the CPU features that are missing). The caller destroys the session. */
static inline o3_code_t o3_session_create(const o3_model_t *model, const o3_session_options_t *options,
                                          o3_session_t **session) {
  return model->api->session_create(model, options, session);
}

/* Runs the model: |inputs| and |outputs| in the model's order, all of them.
 * An output whose |data| is NULL on entry is filled in with the session's own memory, valid until the
 * session's next run or its end. One whose |data| is set on entry, with |dtype|, |rank| and |shape|,
 * receives a copy there; its shape must equal the result's. It may be the place of an input, but not overlap
 * another output. Memory that an earlier run of the session gave is no input or output: that run's results
 * are gone now. Wrong counts, types or shapes give INVALID_ARGUMENT and a text that names the input, what
 * came and what was expected. After a failure |outputs| is as before. */
static inline o3_code_t o3_session_run(o3_session_t *session, const o3_tensor_t *inputs, int32_t num_inputs,
                                       o3_tensor_t *outputs, int32_t num_outputs) {
  return session->api->session_run(session, inputs, num_inputs, outputs, num_outputs);
}

/* Why the session's last run failed; "" when it did not. Valid until its next run. */
static inline const char *o3_session_error(const o3_session_t *session) {
  return session->api->session_error(session);
}

/* Which code the session runs: the model's target, or, of a model with code for several processors, the one
 * that was picked when the session was created: the best that this processor can run, or what the environment
 * variable O3_CPU_CODE names. */
static inline const char *o3_session_code(const o3_session_t *session) {
  return session->api->session_code(session);
}

/* Bytes of arena and scratch that the session holds now. */
static inline size_t o3_session_memory(const o3_session_t *session) {
  return session->api->session_memory(session);
}

static inline void o3_session_destroy(o3_session_t *session) {
  if (session) session->api->session_destroy(session);
}

/* Kernel |index| of the model's num_kernels, in the order of a run. INVALID_ARGUMENT when it is out of range.
 */
static inline o3_code_t o3_kernel_info(const o3_model_t *model, int32_t index, o3_kernel_info_t *info) {
  return model->api->kernel_info(model, index, info);
}

/* Whether the session's next runs measure each kernel (|on| not 0; off at first). Costs a reading of the
 * clock a kernel; while off, a call and a test. OUT_OF_MEMORY leaves it as it was. */
static inline o3_code_t o3_session_profile(o3_session_t *session, int32_t on) {
  return session->api->session_profile(session, on);
}

/* What kernel |index|, or O3_NO_KERNEL, did in the session's last run. INVALID_ARGUMENT when |index| is out
 * of range or the session does not measure. */
static inline o3_code_t o3_session_kernel(const o3_session_t *session, int32_t index,
                                          o3_kernel_sample_t *sample) {
  return session->api->session_kernel(session, index, sample);
}

/* Why this thread's last o3_session_create, o3_input_info, o3_output_info, o3_kernel_info, o3_session_profile
 * or o3_session_kernel failed; "" when it did not. Valid until its next such call. */
static inline const char *o3_last_error(const o3_model_t *model) { return model->api->last_error(); }

#ifdef __cplusplus
}
#endif
#endif
