/* What unit tests of the card's fast kernels share. */
#ifndef O3_TEST_UNIT_NVPTX_CHECKS_H
#define O3_TEST_UNIT_NVPTX_CHECKS_H

#include "bank_simulator.h"
#include "target/nvptx/gemm_kernel.h"

/* |size|: m, n and k of one product without gaps. */
o3_gemm_t nvptx_product(const int64_t size[3], bool by_rows, o3_gpu_element_t element, o3_gpu_element_t out);

/* |kernel| of the module |text|, by |threads|. */
bank_report_t nvptx_simulate(const char *text, const char *kernel, int threads);

/* Fails where a bank is asked for two words at once or an access is not known; frees |kernel|. How many
 * accesses there are. */
int nvptx_check_banks(o3_gpu_kernel_t *kernel);

#endif
