// How a test steers the stand-in for libcuda.so.1. A test opens the library by its path first: the runtime's
// dlopen of "libcuda.so.1" then finds it by that name. Functions are looked up with dlsym.
#ifndef O3_TEST_FAKE_CUDA_H
#define O3_TEST_FAKE_CUDA_H

#include <stdint.h>

// Gets the first two arguments of a launch, as 64-bit words.
typedef void fake_cuda_kernel_t(const int64_t *arguments);

// F(name, result, arguments)
#define FAKE_CUDA_CONTROLS(F)                                                                                \
  F(fake_cuda_reset, void, (void)) /* one card of 9.0, no kernels, nothing fails */                          \
  F(fake_cuda_fail, void, (const char *function, int call, int code)) /* call number |call| of it, of any */ \
  F(fake_cuda_capability, void, (int major, int minor))                                                      \
  F(fake_cuda_devices, void, (int count))                                                                    \
  F(fake_cuda_memory, void, (int64_t bytes)) /* larger requests fail */                                      \
  F(fake_cuda_live_blocks, int64_t, (void))                                                                  \
  F(fake_cuda_live_host_blocks, int64_t, (void))                                                             \
  F(fake_cuda_contexts, int64_t, (void))                                                                     \
  F(fake_cuda_log, const char *, (void)) /* "cuInit\ncuMemAlloc_v2 512\n..." */                              \
  F(fake_cuda_log_clear, void, (void))                                                                       \
  F(fake_cuda_kernel, void, (const char *name, fake_cuda_kernel_t *function))

#ifdef FAKE_CUDA_TYPES
#define FAKE_CUDA_TYPE(name, result, arguments) typedef result(*name##_fn) arguments;
FAKE_CUDA_CONTROLS(FAKE_CUDA_TYPE)
#undef FAKE_CUDA_TYPE
#endif

#endif
