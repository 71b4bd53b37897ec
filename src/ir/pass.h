/* Passes: every step of the compiler after import is a function of this type, and a row of
 * src/driver/passes.def. */
#ifndef O3_IR_PASS_H
#define O3_IR_PASS_H

#include "base/arena.h"
#include "ir/context.h"
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

/* What kernels a target has emitters for; the fuse stage asks before it makes one. The ops are linalg.generic
 * on tensors; the answer is the reason why not, a static text, or NULL. */
enum { O3_KERNEL_MAX_CHAIN = 4 };
struct o3_gpu; /* schedule/gpu.h */
struct o3_machine;
struct o3_pass_env;
typedef struct o3_kernel_support {
  /* Changes the module for the target before ops are grouped; NULL: nothing to do. */
  o3_status_t (*prepare)(struct o3_pass_env *env, MlirModule module);
  bool widens_halves; /* whether f16 and bf16 are computed in f32, whose products are as fast or faster */
  /* Most bytes that the values of one row, besides its result, may take on the stack. */
  int64_t row_bytes;
  const char *(*refuse_contraction)(MlirOperation product);
  /* |op| computes each element of the product's result from itself and others, or its initial value. */
  const char *(*refuse_epilogue)(MlirOperation product, MlirOperation op);
  /* The ops before |output|, in order, that make a Winograd convolution of it (target/ref/lower_winograd.c)
   * and run in its kernel; their number, 0 when it is none. Epilogues of |output| are asked for as of
   * products. NULL: the target has no such kernel. */
  int (*winograd)(MlirOperation output, MlirOperation members[O3_KERNEL_MAX_CHAIN]);
  bool channel_blocks;    /* whether products run on channels in blocks, which the layout pass makes */
  bool channels_last;     /* whether convolutions in half precision do on channels last, which it makes too */
  bool f32_channels_last; /* those in f32, too */
  bool pools_in_place;    /* whether pools read images without a border of memory, target/ref/lower_image.h */
  bool tf32_windows;      /* whether they then have weights by columns when products may be those of tf32 */
  /* Whether attention in half precision, of heads so wide, reads queries, keys and values that are parts of
   * one value in place, as join-products makes them. NULL: never. */
  bool (*reads_attention_parts)(int64_t width);
  /* |mixed| is the product of the softmax of |scores|' rows, after the elementwise ops |sides| on them. NULL:
   * the target has no such kernel. */
  const char *(*refuse_attention)(MlirOperation scores, MlirOperation mixed, int num_sides,
                                  const MlirOperation *sides);
  /* The same, asked with all ops of the kernel, in order: the softmax's, then perhaps a rounding of the
   * probabilities, the product, and roundings and a transposition of its result. |gpu|: the machine's. NULL:
   * the scores' ops are of one type, and the product ends the kernel. */
  const char *(*refuse_attention_ops)(const struct o3_gpu *gpu, int num_ops, const MlirOperation *ops);
  /* Of a product with what its sums start at and an epilogue, whose result is of another type than the sums;
   * NULL where sums always lie in the result's memory. |gpu|: the machine's. */
  const char *(*refuse_conversion)(const struct o3_gpu *gpu, int num_ops, const MlirOperation *ops);
  /* Reductions along other dimensions than the last, and elementwise ops around them, in order, of which the
   * last gives the result. NULL: a target that has no kernels of columns. */
  const char *(*refuse_columns)(const struct o3_gpu *gpu, int num_ops, const MlirOperation *ops);
  /* |op| makes the product's first input from another value, with a border: the kernel reads that one.
   * |gpu|: the machine's, which is NULL on CPUs. NULL: a target that has no such kernels. */
  const char *(*refuse_padding)(const struct o3_gpu *gpu, MlirOperation product, MlirOperation op);
  /* Products of 8-bit floats of one format, E4M3FN or E5M2, with so many columns and so long sums, B by
   * columns. |gpu|: the machine's. NULL: a target that has no such kernels. */
  const char *(*refuse_float8)(const struct o3_gpu *gpu, int64_t columns, int64_t depth);
  /* The ops of two products' kernels, in order, of which the second reads the first's result, which nothing
   * else does, through a border: whether one kernel is right and faster on the machine. NULL: a target that
   * has no such kernels. */
  const char *(*refuse_chain)(const struct o3_machine *machine, int num_ops, const MlirOperation *ops);
} o3_kernel_support_t;

/* What a target tells passes about the machine; bytes. See src/target/target.h for where it comes from. */
typedef struct o3_machine {
  const char *llvm_cpu;      /* "x86-64-v3" */
  const char *llvm_features; /* "+avx2,+fma,..." */
  int vector_bytes;          /* widest vector register that code should use: 16, 32 or 64 */
  int vector_registers;
  int fma_ports;   /* multiply-adds on whole vectors that a core starts in a cycle */
  int cores;       /* that run a session's threads */
  int memory_gbps; /* rate of memory for all cores together, GB/s */
  int64_t l1_bytes, l2_bytes, l3_bytes;
  const o3_kernel_support_t *kernels;
  const struct o3_gpu *gpu; /* schedule/gpu.h: the card that kernels run on, the rest is its host; or NULL */
} o3_machine_t;

/* --precision: what an fp32 model is computed in. */
typedef enum o3_precision {
  O3_PRECISION_FP32,
  O3_PRECISION_TF32, /* fp32 in memory; products may take 10 bits of each factor behind the point */
  O3_PRECISION_FP16,
  O3_PRECISION_BF16
} o3_precision_t;

/* Runs a normalized module whose @main has no arguments and gives its results as elements attributes of the
 * types that @main returns; their data is the weights store's. Takes the module's contents apart. */
typedef struct o3_pass_env o3_pass_env_t;
typedef o3_status_t (*o3_evaluate_fn_t)(o3_pass_env_t *env, MlirModule module, int num_results,
                                        MlirAttribute *results);

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
