#include "nvptx_checks.h"

#include <string.h>

#include "ir/context.h"
#include "unit.h"

o3_gemm_t nvptx_product(const int64_t size[3], bool by_rows, o3_gpu_element_t element, o3_gpu_element_t out) {
  return (o3_gemm_t){.batch = {1, 1},
                     .m = size[0],
                     .n = size[1],
                     .k = size[2],
                     .element = element,
                     .out = out,
                     .b_by_rows = by_rows,
                     .a_pitch = size[2],
                     .b_pitch = by_rows ? size[1] : size[2],
                     .d_pitch = size[1]};
}

bank_report_t nvptx_simulate(const char *text, const char *kernel, int threads) {
  MlirContext context;
  MlirModule module;
  bank_report_t report;
  assert_ok(o3_context_create(&context));
  assert_ok(o3_ir_parse(context, text, strlen(text), kernel, &module));
  assert_true(bank_simulate(module, kernel, threads, &report));
  mlirModuleDestroy(module);
  o3_context_destroy(context);
  return report;
}

int nvptx_check_banks(o3_gpu_kernel_t *kernel) {
  bank_report_t report = nvptx_simulate(kernel->text, kernel->name, kernel->block);
  if (report.worst > 1 || report.unknown)
    fail_msg("%s: %d words of a bank at once (%s), %d accesses judged, %d not", kernel->name, report.worst,
             report.what, report.judged, report.unknown);
  o3_gpu_kernel_deinit(kernel);
  return report.judged;
}
