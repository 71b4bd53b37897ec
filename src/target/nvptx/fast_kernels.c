#include "target/nvptx/fast_kernels.h"

#include "base/strbuf.h"
#include "schedule/gpu.h"
#include "target/nvptx/attention_site.h"
#include "target/nvptx/column_kernel.h"
#include "target/nvptx/gemm_site.h"
#include "target/nvptx/image_kernel.h"
#include "target/nvptx/pool_kernel.h"
#include "target/nvptx/row_kernel.h"

/* A row of fast_kernels.def. */
typedef struct family {
  const char *name;
  int least;       /* compute capability: 90 is 9.0 */
  unsigned matrix; /* instructions that it needs: O3_GPU_WGMMA, ... */
  o3_kernel_make_fn_t make;
} family_t;

static const family_t FAMILIES[] = {
#define O3_FAST_FAMILY(name, make, least, matrix, summary) {name, least, matrix, make},
#include "target/nvptx/fast_kernels.def"
#undef O3_FAST_FAMILY
};

/* Why the kernel would not run on a card that gives less than the family counts on. */
static const char *misfit(const o3_gpu_t *gpu, const o3_gpu_kernel_t *kernel) {
  if (kernel->shared_bytes > gpu->shared_per_block)
    return "a block of it takes more shared memory than the card gives";
  return kernel->cluster > gpu->cluster ? "its clusters have more blocks than the card's" : NULL;
}

/* A kernel of one batch is only taken when it can run for all. */
static o3_status_t try_family(const o3_kernel_site_t *site, const family_t *family, o3_gpu_kernel_t *kernel,
                              o3_batch_units_t *units, const char **why_not) {
  O3_TRY_CONTEXT(family->make(site, kernel, why_not), "family '%s'", family->name);
  if (*why_not) return NULL;
  kernel->family = family->name;
  *why_not = misfit(site->gpu, kernel);
  if (site->batch && !*why_not) O3_TRY(o3_batch_launch_prepare(site, site->batch, kernel, units, why_not));
  if (*why_not) o3_gpu_kernel_deinit(kernel);
  return NULL;
}

static o3_status_t try_families(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel,
                                o3_batch_units_t *units, o3_strbuf_t *reasons, bool *taken) {
  for (size_t i = 0; !*taken && i < sizeof(FAMILIES) / sizeof(FAMILIES[0]); ++i) {
    const family_t *family = &FAMILIES[i];
    const char *why_not = NULL;
    if (site->gpu->sm < family->least || family->matrix & ~site->gpu->matrix) continue;
    O3_TRY(try_family(site, family, kernel, units, &why_not));
    *taken = !why_not;
    if (why_not) o3_strbuf_printf(reasons, "%s%s: %s", reasons->length ? "; " : "", family->name, why_not);
  }
  return NULL;
}

o3_status_t o3_fast_kernel_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel,
                                o3_batch_units_t *units) {
  o3_strbuf_t reasons = O3_STRBUF_INIT;
  bool taken = false;
  o3_status_t status = try_families(site, kernel, units, &reasons, &taken);
  if (!status && !taken)
    status = o3_status_create(O3_STATUS_UNSUPPORTED, "no fast kernel: %s",
                              reasons.length ? reasons.text : "there is no family for this card");
  o3_strbuf_deinit(&reasons);
  return status;
}
