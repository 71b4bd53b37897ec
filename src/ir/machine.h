/* What a target tells passes: the machine's figures, and which kernels its emitters can make. */
#ifndef O3_IR_MACHINE_H
#define O3_IR_MACHINE_H

#include "ir/ir.h"

struct o3_gpu; /* schedule/gpu.h */
struct o3_machine;
struct o3_pass_env;

/* What kernels a target has emitters for: passes ask before they make what needs one. Ops are linalg.generic
 * on tensors; |gpu| is the machine's. A function `refuse_...` gives the reason why not, a static text, or
 * NULL; a target that leaves one out has no such kernels, unless it says otherwise. */
enum { O3_KERNEL_MAX_CHAIN = 4 };
typedef struct o3_kernel_support {
  /* ---- Asked by the rewrite stage: layouts and types ---- */

  bool widens_halves;  /* whether f16 and bf16 are computed in f32, whose products are as fast or faster */
  bool channel_blocks; /* whether products run on channels in blocks, which the layout pass makes */
  bool channels_last;  /* whether convolutions in half precision do on channels last, which it makes too, */
  bool f32_channels_last; /* and those in f32; */
  bool tf32_windows;      /* whether these have weights by columns when their products may be those of tf32 */
  /* Whether attention in half precision, of heads so wide, reads queries, keys and values that are parts of
   * one value in place, as join-products makes them. NULL: never. */
  bool (*reads_attention_parts)(int64_t width);
  /* Products of 8-bit floats of one format, E4M3FN or E5M2, with so many columns and so long sums, B by
   * columns. */
  const char *(*refuse_float8)(const struct o3_gpu *gpu, int64_t columns, int64_t depth);

  /* ---- By the lower stage ---- */

  bool pools_in_place; /* whether pools read images without a border of memory, target/ref/lower_image.h */

  /* ---- By the fuse stage: which ops become one kernel ---- */

  /* Changes the module for the target before ops are grouped; NULL: nothing to do. */
  o3_status_t (*prepare)(struct o3_pass_env *env, MlirModule module);
  /* Most bytes that the values of one row, besides its result, may take on the stack. */
  int64_t row_bytes;
  const char *(*refuse_contraction)(MlirOperation product);
  /* |op| computes each element of the product's result from itself and others, or its initial value. */
  const char *(*refuse_epilogue)(MlirOperation product, MlirOperation op);
  /* The ops before |output|, in order, that make a Winograd convolution of it (target/ref/lower_winograd.c)
   * and run in its kernel; their number, 0 when it is none. Epilogues of |output| are asked for as of
   * products. NULL: the target has no such kernel. */
  int (*winograd)(MlirOperation output, MlirOperation members[O3_KERNEL_MAX_CHAIN]);
  /* |op| makes the product's first input from another value, with a border: the kernel reads that one.
   * |gpu| is NULL on CPUs. */
  const char *(*refuse_padding)(const struct o3_gpu *gpu, MlirOperation product, MlirOperation op);
  /* Of a product with what its sums start at and an epilogue, whose result is of another type than the sums.
   * Left out where sums always lie in the result's memory. */
  const char *(*refuse_conversion)(const struct o3_gpu *gpu, int num_ops, const MlirOperation *ops);
  /* Reductions along other dimensions than the last, and elementwise ops around them, in order, of which the
   * last gives the result. */
  const char *(*refuse_columns)(const struct o3_gpu *gpu, int num_ops, const MlirOperation *ops);
  /* |mixed| is the product of the softmax of |scores|' rows, after the elementwise ops |sides| on them. */
  const char *(*refuse_attention)(MlirOperation scores, MlirOperation mixed, int num_sides,
                                  const MlirOperation *sides);
  /* The same, asked with all ops of the kernel, in order: the softmax's, then perhaps a rounding of the
   * probabilities, the product, and roundings and a transposition of its result. Left out where the
   * scores' ops are of one type and the product ends the kernel. */
  const char *(*refuse_attention_ops)(const struct o3_gpu *gpu, int num_ops, const MlirOperation *ops);
  /* The ops of two products' kernels, in order, of which the second reads the first's result, which nothing
   * else does, through a border: whether one kernel is right and faster on the machine. */
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

#endif
