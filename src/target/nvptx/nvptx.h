/* Inside the GPU back end: its passes (nvptx_passes.def), and what they say to each other in the module. */
#ifndef O3_TARGET_NVPTX_NVPTX_H
#define O3_TARGET_NVPTX_NVPTX_H

#include "target/target.h"

#define O3_NVPTX_PASS(stage, name, function, level, summary) \
  o3_status_t function(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;
#define O3_NVPTX_SHARED(stage, name, function, level, summary) \
  O3_NVPTX_PASS(stage, name, function, level, summary)
#include "target/nvptx/nvptx_passes.def"
#undef O3_NVPTX_PASS
#undef O3_NVPTX_SHARED

/* See o3_target_t. The object holds the host's code, and the kernels as data. */
o3_status_t o3_nvptx_emit_llvm_ir(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact) O3_MUST_USE;
o3_status_t o3_nvptx_emit_object(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact) O3_MUST_USE;

o3_status_t o3_nvptx_emit_ptx(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact) O3_MUST_USE;

/* On a memref.alloc or memref.get_global whose memory lies in host memory; others lie in the card's. */
#define O3_NVPTX_HOST_ATTR "o3.host"
/* On a memref.copy between the two. */
#define O3_NVPTX_TO_HOST_ATTR   "o3.to_host"
#define O3_NVPTX_TO_DEVICE_ATTR "o3.to_device"
/* On the module, DenseI64Arrays: 1 for each argument and result of @main that lies in host memory. */
#define O3_NVPTX_HOST_ARGUMENTS_ATTR "o3.host_arguments"
#define O3_NVPTX_HOST_RESULTS_ATTR   "o3.host_results"
/* On the module, a unit: what the host does depends on sizes alone, so that launches can be recorded and
 * replayed. */
#define O3_NVPTX_REPLAYABLE_ATTR "o3.replayable"
/* On the module: array of {name, label}, the kernels by number; texts of device asserts by number. */
#define O3_NVPTX_KERNELS_ATTR  "o3.gpu_kernels"
#define O3_NVPTX_MESSAGES_ATTR "o3.gpu_messages"
/* On the module: array of {bytes, offset, symbol}, the weights that are uploaded, in one block of memory. */
#define O3_NVPTX_WEIGHTS_ATTR "o3.gpu_weights"
/* On the device module, a unit: it uses instructions of one architecture alone. */
#define O3_NVPTX_SPECIFIC_ATTR "o3.specific"

#endif
