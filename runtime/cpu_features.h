/* What this CPU, with this operating system, can run. Features are masks of 1 << O3RT_CPU_*. */
#ifndef O3_RUNTIME_CPU_FEATURES_H
#define O3_RUNTIME_CPU_FEATURES_H

#include <stdint.h>

#include "error_text.h"

/* Usable features among |wanted|. Asking for an AMX feature asks the kernel to let the process use it. */
uint64_t o3rt_cpu_features_usable(uint64_t wanted);

/* Appends the features' LLVM names, separated by ", ". */
void o3rt_cpu_features_print(uint64_t features, o3rt_text_t *text);

#endif
