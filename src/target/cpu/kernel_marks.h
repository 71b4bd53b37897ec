/* Marks: where in @main each kernel starts, and what it is about to do, for profiles (runtime/compiled.h). */
#ifndef O3_TARGET_CPU_KERNEL_MARKS_H
#define O3_TARGET_CPU_KERNEL_MARKS_H

#include "ir/build.h"

/* The number that cpu-kernel-marks gives a call of a kernel. */
#define O3_CPU_KERNEL_NUMBER "o3.kernel"

/* What a kernel works on: |ops| are linalg.generic on buffers, |values| what they read and write from outside
 * (others than memrefs count nothing). */
typedef struct o3_kernel_work {
  int num_ops;
  const MlirOperation *ops;
  int num_values;
  const MlirValue *values;
} o3_kernel_work_t;

/* o3rt_kernel_begin(session, number, operations, bytes). All operands of the ops are defined at |b|. */
void o3_cpu_kernel_begin(o3_builder_t *b, MlirModule module, int64_t number, const o3_kernel_work_t *work);

#endif
