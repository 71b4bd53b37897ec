/* Passes: every step of the compiler after import is a function of this type, and a row of
 * src/driver/passes.def. */
#ifndef O3_IR_PASS_H
#define O3_IR_PASS_H

#include "base/arena.h"
#include "ir/context.h"
#include "ir/machine.h"
#include "ir/weights.h"

/* --dim NAME=SIZE and --shape NAME:1x3x224x224. */
typedef struct o3_dim_override {
  const char *name;
  int64_t size;
} o3_dim_override_t;
typedef struct o3_shape_override {
  const char *input;
  int rank;
  int64_t sizes[O3_IR_MAX_RANK]; /* -1 leaves the dimension as it is */
} o3_shape_override_t;

/* --value NAME=NUMBER */
typedef struct o3_value_override {
  const char *input;
  int64_t value;
} o3_value_override_t;

/* A line of --sparse-config: the sparse format of the nodes whose names match a shell pattern. */
typedef struct o3_sparse_override {
  const char *glob, *format;
} o3_sparse_override_t;

/* --precision: what an fp32 model is computed in. */
typedef enum o3_precision {
  O3_PRECISION_FP32,
  O3_PRECISION_TF32, /* fp32 in memory; products may take 10 bits of each factor behind the point */
  O3_PRECISION_FP16,
  O3_PRECISION_BF16
} o3_precision_t;

/* A normalized module whose @main is run |num_runs| times, each time with other inputs and results: elements
 * attributes of the types of @main's. The results' data is the weights store's. */
typedef struct o3_evaluation {
  MlirModule module; /* its contents are taken apart */
  int num_runs, num_inputs, num_results;
  const MlirAttribute *inputs; /* |num_runs| x |num_inputs| */
  MlirAttribute *results;      /* |num_runs| x |num_results|, the answer */
} o3_evaluation_t;
typedef struct o3_pass_env o3_pass_env_t;
typedef o3_status_t (*o3_evaluate_fn_t)(o3_pass_env_t *env, const o3_evaluation_t *evaluation);

/* An op of @main that is to be measured: in how many ways it is compiled, and what each takes. Its type is
 * static, its operands are constants but for the first. */
typedef struct o3_measured {
  double total, moved; /* microseconds of all its kernels; of those that move data only, for layouts */
} o3_measured_t;
typedef struct o3_measure {
  MlirOperation op;
  const char *what;  /* for people who wait */
  const char *after; /* the pass that the op's module comes from: compiling goes on after it */
  bool cold;         /* weights come from memory, as in a network that caches do not hold */
  const char *attr;  /* the op gets this attribute, */
  int count;
  const MlirAttribute *values; /* of these values in turn, and none where it is null */
  o3_measured_t *times;        /* |count|, the answer */
} o3_measure_t;
typedef o3_status_t (*o3_measure_fn_t)(o3_pass_env_t *env, const o3_measure_t *request);

/* Everything that a pass may read, and where it may allocate. */
struct o3_pass_env {
  MlirContext context;
  o3_arena_t *arena; /* the compilation's */
  o3_weights_t *weights;
  int opt_level; /* 0..3 */
  const o3_machine_t *machine;
  const char
      *code_suffix; /* after o3m_run and o3m_check, where a library holds several kinds of code; or NULL */
  bool no_fusion;   /* kernels are made of one node's ops */
  int num_dims;
  const o3_dim_override_t *dims;
  int num_shapes;
  const o3_shape_override_t *shapes;
  int num_values;
  const o3_value_override_t *values;
  const char *sparse_format; /* of --sparse-format; NULL: auto */
  o3_precision_t precision;
  int num_sparse_overrides;
  const o3_sparse_override_t *sparse_overrides;
  struct o3_sparse_report
      *sparse_report;                 /* analysis/sparse_choice.h: where choices are noted; NULL: nowhere */
  o3_evaluate_fn_t evaluate;          /* how constants are folded; NULL leaves them */
  o3_measure_fn_t measure;            /* how ops are timed on this machine; NULL: nothing is measured */
  const struct o3_measurer *measurer; /* driver/measure.h: what |measure| needs */
};

typedef o3_status_t (*o3_pass_fn_t)(o3_pass_env_t *env, MlirModule module);

#endif
