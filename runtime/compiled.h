/* The contract between a compiled model and the runtime that is linked into it.
 *
 * The compiler emits one o3rt_model_t (a constant, see src/package) and a function that runs the
 * model; the runtime offers the functions at the end of this file to that code. Nothing here is
 * seen by users: their side is include/o3/model.h.
 *
 * <prefix>_model returns a constant o3_model_t {&o3rt_api, &the o3rt_model_t}; o3rt_api is the runtime's
 * table, a hidden o3_model_api_t.
 *
 * Everything is C data with natural alignment, so that the compiler can lay it out itself.
 */
#ifndef O3_RUNTIME_COMPILED_H
#define O3_RUNTIME_COMPILED_H

#include <stddef.h>
#include <stdint.h>

#define O3RT_FORMAT 3u /* bumped whenever a struct below changes */

/* One dimension: |size| >= 0 is static; -1 is symbolic, and |symbol| is then the index of its name
 * in o3rt_model_t.symbols, or -1 when the size is known only after a run. An input's dimension with
 * a symbol binds it (first occurrence) or must equal it (later ones). An output's dimension with
 * symbol -1 is read from the result. */
typedef struct o3rt_dim {
  int64_t size;
  int32_t symbol;
  int32_t reserved;
} o3rt_dim_t;

typedef struct o3rt_tensor {
  const char *name;       /* as in the model file */
  const o3rt_dim_t *dims; /* |rank| of them */
  int32_t rank;
  int32_t dtype; /* o3_dtype_t of include/o3/model.h, the numbers of src/base/dtype.def's ONNX column */
} o3rt_tensor_t;

/* What MLIR passes for a memref: {allocated, aligned, offset, sizes[rank], strides[rank]}, offset and
 * strides in elements. Sized for the actual rank when allocated. Booleans are one byte each. */
typedef struct o3rt_memref {
  void *allocated;
  void *aligned;
  int64_t offset;
  int64_t sizes_and_strides[]; /* rank sizes, then rank strides */
} o3rt_memref_t;

/* A row of the table that profiles are told by; see o3_kernel_info_t of include/o3/model.h. */
typedef struct o3rt_kernel {
  const char *name, *kind;
  const char *const *nodes; /* |num_nodes| of them */
  int32_t num_nodes;
  int32_t reserved;
} o3rt_kernel_t;

typedef struct o3rt_session o3rt_session_t;

/* Runs the model. inputs[i] points to a memref descriptor with row-major contiguous data; the function
 * fills the descriptors outputs[i]; their data (row-major contiguous) lies in the session's arena or
 * scratch, in the model's constants, or in an input's buffer, and is valid until the next run. */
typedef void (*o3rt_run_fn_t)(o3rt_session_t *session, o3rt_memref_t *const *inputs,
                              o3rt_memref_t *const *outputs);

/* Checks the guards that symbolic shapes must satisfy; |symbols| holds the bound sizes. The index of
 * the first guard that does not hold, or -1. */
typedef int32_t (*o3rt_check_fn_t)(const int64_t *symbols);

/* A kind of code: the same model for processors that can do more. */
typedef struct o3rt_code {
  const char *name; /* "x86-64-v4" */
  uint64_t cpu_features;
  o3rt_run_fn_t run;
} o3rt_code_t;

/* ---- Models that run on a GPU ---- */

typedef struct o3rt_gpu_kernel {
  const char *name;  /* in the card's code */
  const char *label; /* the model's nodes in it, for messages */
} o3rt_gpu_kernel_t;

/* A weight that the card reads: it is copied to |offset| in one block of memory. */
typedef struct o3rt_gpu_weight {
  const void *data;
  int64_t bytes, offset;
} o3rt_gpu_weight_t;

typedef struct o3rt_gpu {
  const char *ptx;   /* NUL-terminated */
  const void *cubin; /* machine code; NULL when the library has none */
  int32_t sm;        /* 90: what the code was made for; cards of a later minor version run the cubin too */
  int32_t specific;  /* 1: no other card runs any of it */
  int32_t num_kernels, num_weights, num_messages;
  int32_t replayable; /* 1: what a run launches depends on shapes alone */
  const o3rt_gpu_kernel_t *kernels;
  const o3rt_gpu_weight_t *weights;
  int64_t weight_bytes;
  const char *const *messages; /* of checks in kernels: the error word holds 1 + the number of one */
  const uint8_t *host_inputs, *host_outputs; /* 1 for each that compiled code has in host memory */
} o3rt_gpu_t;

typedef struct o3rt_driver o3rt_driver_t; /* runtime/session.h */

typedef struct o3rt_model {
  uint32_t format;         /* O3RT_FORMAT */
  uint32_t opt_level;      /* 0..3 */
  const char *name;        /* the model file's base name without its ending */
  const char *target;      /* "x86-64-v3", ... */
  const char *build_id;    /* hash of model, options and compiler version, hexadecimal */
  const char *producer;    /* "o3c 0.1.0" */
  uint64_t cpu_features;   /* O3RT_CPU_* bits that the code needs */
  uint64_t constant_bytes; /* weights */
  int32_t num_inputs, num_outputs, num_symbols, num_guards;
  const o3rt_tensor_t *inputs, *outputs;
  const char *const *symbols; /* names of symbolic dimensions */
  const char *const *guards;  /* sentences that explain each guard, e.g. "node 'Add_3': N must equal M" */
  o3rt_check_fn_t check;      /* NULL when num_guards is 0 */
  o3rt_run_fn_t run;
  const o3rt_kernel_t *kernels; /* |num_kernels| of them */
  int32_t num_kernels;
  int32_t num_codes; /* 0: |run| is the only one; else a session takes the first whose features there are */
  const o3rt_code_t *codes;    /* the best first; the last is |run|, with |cpu_features| */
  const o3rt_gpu_t *gpu;       /* NULL: a model that runs on the CPU */
  const o3rt_driver_t *driver; /* NULL, or how its card is talked to */
} o3rt_model_t;

/* CPU features: F(enumerator, bit, LLVM's feature name). */
// clang-format off
#define O3RT_CPU_FEATURES(F)                                                                        \
  F(SSE3, 0, "sse3") F(SSSE3, 1, "ssse3") F(SSE41, 2, "sse4.1") F(SSE42, 3, "sse4.2")               \
  F(POPCNT, 4, "popcnt") F(AVX, 5, "avx") F(AVX2, 6, "avx2") F(FMA, 7, "fma") F(BMI, 8, "bmi")      \
  F(BMI2, 9, "bmi2") F(F16C, 10, "f16c") F(LZCNT, 11, "lzcnt") F(MOVBE, 12, "movbe")                \
  F(AVX512F, 13, "avx512f") F(AVX512BW, 14, "avx512bw") F(AVX512CD, 15, "avx512cd")                 \
  F(AVX512DQ, 16, "avx512dq") F(AVX512VL, 17, "avx512vl") F(AVX512VNNI, 18, "avx512vnni")           \
  F(AVX512BF16, 19, "avx512bf16") F(AMX_TILE, 20, "amx-tile") F(AMX_INT8, 21, "amx-int8")           \
  F(AMX_BF16, 22, "amx-bf16") F(AVX512FP16, 23, "avx512fp16")
// clang-format on
enum {
#define O3RT_CPU_ENUM(id, bit, name) O3RT_CPU_##id = bit,
  O3RT_CPU_FEATURES(O3RT_CPU_ENUM)
#undef O3RT_CPU_ENUM
};

/* ---- What compiled code may call. All are hidden symbols of the library. ---- */

/* The session's arena, grown to at least |bytes|, 64-byte aligned; called once, at the start of a run (what
 * an earlier run left there is lost when it grows). Does not return when memory is out: the run ends with an
 * error. */
void *o3rt_arena(o3rt_session_t *session, int64_t bytes);

/* Memory for a buffer whose size is known only during the run, 64-byte aligned, valid until the next
 * run. Thread-unsafe: called outside parallel bodies only. Does not return when memory is out. */
void *o3rt_alloc(o3rt_session_t *session, int64_t bytes);
/* Gives back what o3rt_alloc gave, before the run ends (loops use it). */
void o3rt_free(o3rt_session_t *session, void *memory);

/* Ends the run with an error; |message| is a constant text such as "node 'Gather_7': index out of
 * range". Does not return. Outside parallel bodies only. */
void o3rt_fail(o3rt_session_t *session, const char *message);

/* Kernel number |kernel| starts; the one before has ended (a run's end ends the last). |operations| and
 * |bytes| are what it is about to do, see o3_kernel_sample_t. Outside parallel bodies only. */
void o3rt_kernel_begin(o3rt_session_t *session, int32_t kernel, int64_t operations, int64_t bytes);

/* Calls body(context, begin, end) on disjoint ranges that cover [0, count), on the session's threads,
 * and returns when all are done. |grain| is the least number of iterations worth a thread (>= 1).
 * A nested call, or count <= grain, runs on the calling thread. */
typedef void (*o3rt_body_fn_t)(void *context, int64_t begin, int64_t end);
void o3rt_parallel_for(o3rt_session_t *session, o3rt_body_fn_t body, void *context, int64_t count,
                       int64_t grain);

/* ---- What the host's code of a GPU model may call; pointers into the card's memory are opaque to it ---- */

/* As o3rt_arena, o3rt_alloc and o3rt_free, in the card's memory; 256-byte aligned. */
void *o3rt_gpu_arena(o3rt_session_t *session, int64_t bytes);
void *o3rt_gpu_alloc(o3rt_session_t *session, int64_t bytes);
void o3rt_gpu_free(o3rt_session_t *session, void *memory);
/* The block that holds the weights. */
void *o3rt_gpu_weights(o3rt_session_t *session);
/* An int32_t on the card, 0 at the start of a run; see o3rt_gpu_t.messages. */
void *o3rt_gpu_error_word(o3rt_session_t *session);
/* At least |bytes| on the card that kernels use one after the other. It begins with O3RT_GPU_COUNTERS int32_t
 * that are 0 when a kernel begins, and that it leaves so; the rest may hold anything. */
#define O3RT_GPU_COUNTERS 4096
void *o3rt_gpu_scratch(o3rt_session_t *session, int64_t bytes);
/* Copies, in order with launches; the data is there when the call returns. */
void o3rt_gpu_to_host(o3rt_session_t *session, void *host, const void *device, int64_t bytes);
void o3rt_gpu_to_device(o3rt_session_t *session, void *device, const void *host, int64_t bytes);
/* Encodes a 128-byte tensor map over |device| at |map|. |spec|: CUtensorMapDataType, rank, bytes of swizzle,
 * 1 for a map of windows (im2col) or 0, then rank sizes (elements, contiguous one first), rank strides
 * (bytes; the first is not used), rank sizes of the box; of windows, whose rank is 4, the first two of them,
 * and then pairs for the second and third dimension: lower corner, upper corner, steps. */
void o3rt_gpu_tensor_map(o3rt_session_t *session, void *map, const void *device, const int64_t *spec);
/* Launches kernel number |kernel|. |words|: 3 sizes of the grid, 3 of a block, bytes of dynamic shared
 * memory, blocks of a cluster along x, 1 if the kernel waits for those before it by itself (programmatic
 * launch; 0 if not), 0, then |num_arguments| arguments of up to 8 bytes each; of those whose bit is set in
 * |maps| the word is the address of a tensor map, which is passed by value. A grid of 0 blocks is none. Does
 * not return on failure. */
void o3rt_gpu_launch(o3rt_session_t *session, int32_t kernel, const int64_t *words, int32_t num_arguments,
                     uint64_t maps);

#endif
