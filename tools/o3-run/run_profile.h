/* --profile: what each kernel of a model takes. */
#ifndef O3_RUN_PROFILE_H
#define O3_RUN_PROFILE_H

#include "run_execute.h"
#include "run_model.h"
#include "schedule/gpu.h"
#include "schedule/peaks.h"

typedef struct o3_run_kernel {
  o3_kernel_info_t info;
  o3_kernel_sample_t sample; /* of the last run; |nanoseconds| is not used */
  double ms;                 /* median over the runs */
  double share;              /* of the sum of all |ms|, 0..1 */
  double flops, bytes;       /* a second; 0 when nothing was counted */
} o3_run_kernel_t;

typedef struct o3_run_profile {
  int64_t runs;
  int32_t threads;
  double run_ms; /* median of whole runs */
  o3_peaks_t peaks;
  const o3_gpu_t *gpu; /* whose peaks those are, by its vendor; NULL: measured on this machine's CPU */
  int32_t num_kernels;
  o3_run_kernel_t *kernels; /* in the order of a run; one more than |num_kernels|: what is outside of them */
} o3_run_profile_t;

/* Warms up, then measures as --profile and --warmup say; allocates in |arena|. */
o3_status_t o3_run_profile_make(const o3_run_model_t *model, const o3_run_binding_t *binding,
                                const o3_run_options_t *options, o3_arena_t *arena, o3_run_profile_t *profile)
    O3_MUST_USE;

#endif
