/* O3: the C interface of the compiler. The tool o3c is a command line over it.
 *
 *     #include <o3/compiler.h>
 *
 *     o3_compile_options_t options = {.model = "resnet50.onnx", .output = "resnet50.so", .opt_level = 1};
 *     o3_compile_result_t *result;
 *     char *error;
 *     if (o3_compile(&options, &result, &error)) { fprintf(stderr, "%s\n", error); free(error); ... }
 *     printf("%s: %llu bytes\n", result->output, (unsigned long long)result->output_bytes);
 *     o3_compile_result_destroy(result);
 *
 * `pkg-config --cflags --libs o3` tells what to link. A compilation uses the calling thread; several may run
 * at a time, each on its own.
 */
#ifndef O3_COMPILER_H
#define O3_COMPILER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define O3_COMPILE_MAX_RANK 16

/* Fixes the symbolic dimension |name| to |size| (>= 0). */
typedef struct o3_compile_dim {
  const char *name;
  int64_t size;
} o3_compile_dim_t;

/* Fixes the shape of an input; a size of -1 leaves that dimension as it is. */
typedef struct o3_compile_shape {
  const char *input;
  int32_t rank;
  int64_t sizes[O3_COMPILE_MAX_RANK];
} o3_compile_shape_t;

/* Fixes what the integer |input| of one element holds, to |value| (>= 0). The library takes it still, and
 * refuses other values when it runs. */
typedef struct o3_compile_value {
  const char *input;
  int64_t value;
} o3_compile_value_t;

/* All pointers are borrowed for the time of the call. Zero and NULL mean the default. */
typedef struct o3_compile_options {
  const char *model;  /* path: .onnx, or .mlir (a dump of a stage, or hand-written) */
  const char *output; /* path: .so, .a (a .h is written beside it), .o, .ll, .ptx or .mlir; "-" is stdout for
                         the latter two. Default: the model's base name in the current folder, with the ending
                         that fits what is asked for: .so, or .mlir for |emit| and |stop_after| */
  const char *target; /* "cpu", the default, is this machine; see o3_compile_target */
  const char
      *hardware; /* path of a hardware file, o3_compile_hardware shows one: the CPU or GPU to schedule for */
  int32_t opt_level;     /* 0..3 */
  const char *precision; /* "fp32" (default), or for GPU targets "tf32": matrix products take 10 bits of each
                            factor behind the point; or "fp16" or "bf16": products and data in memory
                            in that type, sensitive ops and all arithmetic between in float32 */
  const char
      *sparse_format; /* "auto" (default), "dense", ...; see o3_compile_sparse_format. Heeded at level 3 */
  const char *sparse_config; /* a file of lines "GLOB FORMAT": formats of the nodes whose names match */
  int32_t measure; /* not 0: where sparse_format is auto, time the formats that look best, and dense, on this
                      machine, and take the fastest. At level 3, for CPU targets that this machine can run */
  int32_t no_fusion;         /* not 0: ops of different nodes of the model file do not become one kernel */
  const char *symbol_prefix; /* "o3": the library's function is o3_model; a C identifier */
  int32_t num_dims;
  const o3_compile_dim_t *dims;
  int32_t num_shapes;
  const o3_compile_shape_t *shapes;
  int32_t num_values;
  const o3_compile_value_t *values;
  int32_t threads; /* that linking may use, and that run what is measured; 0: one a core */

  /* Looking inside. Stages are named as in o3_compile_stage. */
  const char *emit; /* write the module after this stage as .mlir, and go no further */
  const char
      *start_from; /* the first stage to run; the model is a .mlir file as the stage before leaves it */
  const char
      *stop_after; /* the last stage to run; like |emit|, but without |output| nothing but dumps is written */
  const char *dump_dir;     /* write NN-stage.mlir after every stage, and weights.o3w; made when absent */
  const char *print_before; /* a pass's name or "all": print the module to stderr before it */
  const char *print_after;  /* the same, after it */
  int32_t explain; /* not 0: print to stderr which weights are sparse, what the kernels are made of, why
                      they end where they do, and how they will be computed */
  const char
      *report; /* write which format each weight got, and why, to this file as JSON, "-" is stdout; level 3 */

  /* Called when a stage starts, and when it goes on to another op to measure, which |stage| then names too;
   * |index| counts from 0, |count| is the number of stages that will run. */
  void (*progress)(void *context, const char *stage, int32_t index, int32_t count);
  void *progress_context;
} o3_compile_options_t;

typedef struct o3_compile_stage {
  const char *name;
  double milliseconds;
  uint64_t peak_rss; /* of the process since its start, bytes, when the stage ended */
} o3_compile_stage_t;

typedef struct o3_compile_tensor {
  const char *name;
  const char *dtype; /* "float32", ... */
  int32_t rank;
  int64_t shape[O3_COMPILE_MAX_RANK];       /* -1: symbolic */
  const char *symbols[O3_COMPILE_MAX_RANK]; /* its name, or NULL */
} o3_compile_tensor_t;

/* What a compilation did. */
typedef struct o3_compile_result {
  const char *output;    /* NULL when nothing but dumps was asked for */
  uint64_t output_bytes; /* size of the file */
  const char *target;    /* its name */
  int32_t opt_level;
  int32_t num_inputs, num_outputs; /* 0 when it stopped before the normalize stage was through */
  const o3_compile_tensor_t *inputs, *outputs;
  int32_t num_stages;
  const o3_compile_stage_t *stages;
  double milliseconds;
  uint64_t peak_rss;
  const char *header; /* written beside an archive, else NULL */
} o3_compile_result_t;

/* Compiles. 0, or a code that o3_compile_code_name names; *error is then a message for the user, to be
 * free()'d (NULL when there was no memory for it), *result is NULL, and no output file was written or
 * changed. */
int32_t o3_compile(const o3_compile_options_t *options, o3_compile_result_t **result, char **error);
void o3_compile_result_destroy(o3_compile_result_t *result);

/* "invalid model", "unsupported", ... */
const char *o3_compile_code_name(int32_t code);

/* Names and one-line descriptions, in order; NULL past the end. */
const char *o3_compile_stage(int32_t index, const char **summary);
const char *o3_compile_target(int32_t index, const char **summary);
const char *o3_compile_sparse_format(int32_t index, const char **summary);

/* What is known of the machine of |target| (NULL: "cpu"), as a hardware file (JSON) in *text, to be free()'d.
 * |measure|, for "cpu" alone: not 0 measures fma_ports and memory_gbps, which are otherwise known by the
 * processor's name or assumed, in about a second. 0, or a code with *error as for o3_compile; *text is NULL
 * then. */
int32_t o3_compile_hardware(const char *target, int32_t measure, char **text, char **error);

const char *o3_compiler_version(void); /* "0.1.0" */
const char *o3_compiler_llvm_version(void);

/* For programs that only compile: on SIGINT, SIGTERM, SIGHUP and crashes remove what compilations have on
 * disk, then end as the signal would have ended the process; when LLVM gives up, print "<program>: error:
 * ..." too and exit with 1. |program| must live as long as the process. */
void o3_compiler_install_handlers(const char *program);

#ifdef __cplusplus
}
#endif
#endif
