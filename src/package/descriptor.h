/* Descriptor: the object that tells the runtime what the model is. */
#ifndef O3_PACKAGE_DESCRIPTOR_H
#define O3_PACKAGE_DESCRIPTOR_H

#include "package/interface.h"
#include "package/kernel_table.h"

/* A kind of code that the model has; see o3rt_code_t (runtime/compiled.h). */
typedef struct o3_code_row {
  const char *name, *suffix; /* o3m_run<suffix> is its entry, o3m_check<suffix> its check */
  uint64_t cpu_features;
} o3_code_row_t;

typedef struct o3_descriptor {
  const o3_interface_t *interface;
  const o3_kernel_table_t *kernels;
  const char *prefix; /* a C identifier: the exported function is <prefix>_model */
  const char *name, *target, *build_id, *producer;
  int opt_level;
  uint64_t cpu_features; /* O3RT_CPU_* bits */
  uint64_t constant_bytes;
  int num_codes; /* 0: one kind of code, whose entries have no suffix */
  const o3_code_row_t *codes;
  bool on_gpu; /* refers to o3m_gpu (o3rt_gpu_t), which the code's object defines, and to o3rt_cuda_driver */
} o3_descriptor_t;

/* INVALID_ARGUMENT unless |prefix| is a C identifier. */
o3_status_t o3_symbol_prefix_check(const char *prefix) O3_MUST_USE;

/* Writes an x86-64 ELF object to |path|: hidden o3rt_compiled_model (an o3rt_model_t, runtime/compiled.h), an
 * o3_model_t of o3rt_api and it, and the function `const o3_model_t *<prefix>_model(void)`. Refers to
 * o3m_run (or to those of the codes), to o3m_check if there are guards, and to o3rt_api. */
o3_status_t o3_descriptor_write(const char *path, const o3_descriptor_t *descriptor) O3_MUST_USE;

#endif
