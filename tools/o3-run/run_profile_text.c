/* The table of --profile for people: the slowest kernel first, then sums by kind. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "run_report.h"

enum { NUMBERS_WIDTH = 61, LEAST_NAME_WIDTH = 24 };

/* 0: as wide as it gets. */
static int terminal_width(void) {
  struct winsize size;
  bool known = isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col > 0;
  return known ? size.ws_col : 0;
}

static int compare_times(const void *a, const void *b) {
  const o3_run_kernel_t *x = *(o3_run_kernel_t *const *)a, *y = *(o3_run_kernel_t *const *)b;
  return (x->ms < y->ms) - (x->ms > y->ms);
}

/* "contraction Conv_3, Relu_4", cut to |width| characters when that is not 0. */
static void print_names(o3_strbuf_t *text, const o3_run_kernel_t *kernel, int width) {
  size_t start = text->length;
  const o3_kernel_info_t *info = &kernel->info;
  o3_strbuf_puts(text, *info->kind ? info->kind : info->name);
  for (int32_t i = 0; i < info->num_nodes; ++i)
    o3_strbuf_printf(text, "%s%s", i ? ", " : " ", info->nodes[i]);
  if (!width || text->failed || text->length - start <= (size_t)width) return;
  memcpy(text->text + start + width - 3, "...", 3);
  text->length = start + (size_t)width;
  text->text[text->length] = '\0';
}

/* A rate and its part of |peak|; blank when there is none. */
static void print_rate(o3_strbuf_t *text, double rate, double peak) {
  if (rate > 0) {
    o3_strbuf_printf(text, " %9.1f %4.0f%%", rate * 1e-9, rate / peak * 100);
  } else {
    o3_strbuf_printf(text, " %9s %5s", "", "");
  }
}

static void print_kernel(o3_strbuf_t *text, const o3_run_profile_t *profile, const o3_run_kernel_t *kernel,
                         int width) {
  o3_strbuf_printf(text, "%10.4f %5.1f%% %8lld", kernel->ms, kernel->share * 100,
                   (long long)kernel->sample.calls);
  print_rate(text, kernel->flops, profile->peaks.fma_flops);
  print_rate(text, kernel->bytes, profile->peaks.copy_bytes);
  o3_strbuf_puts(text, "  ");
  print_names(text, kernel, width);
  o3_strbuf_puts(text, "\n");
}

/* What all kernels of the kind of |first| take together, if |first| is the first of its kind. */
static void print_kind(o3_strbuf_t *text, const o3_run_profile_t *profile, int32_t first) {
  const char *kind = profile->kernels[first].info.kind;
  o3_run_kernel_t sum = {.info = {.name = kind, .kind = kind}};
  for (int32_t i = 0; i < profile->num_kernels; ++i) {
    const o3_run_kernel_t *kernel = &profile->kernels[i];
    if (strcmp(kernel->info.kind, kind) != 0) continue;
    if (i < first) return;
    sum.ms += kernel->ms;
    sum.share += kernel->share;
    sum.sample.calls += kernel->sample.calls;
    sum.sample.operations += kernel->sample.operations;
    sum.sample.bytes += kernel->sample.bytes;
  }
  sum.flops = sum.ms > 0 ? sum.sample.operations / sum.ms * 1e3 : 0;
  sum.bytes = sum.ms > 0 ? sum.sample.bytes / sum.ms * 1e3 : 0;
  print_kernel(text, profile, &sum, 0);
}

static void print_title(o3_strbuf_t *text, const o3_run_profile_t *profile) {
  double gflops = profile->peaks.fma_flops * 1e-9, gbytes = profile->peaks.copy_bytes * 1e-9;
  if (profile->gpu) {
    o3_strbuf_printf(
        text,
        "profile of %lld runs on the card, by its events: median %.4g ms; %s, by the vendor: %.0f "
        "GFLOP/s (fp32), %.0f GB/s\n",
        (long long)profile->runs, profile->run_ms, profile->gpu->name, gflops, gbytes);
    return;
  }
  o3_strbuf_printf(
      text,
      "profile of %lld runs, %d thread%s: median %.4g ms; this machine, measured: %.1f GFLOP/s, %.1f GB/s\n",
      (long long)profile->runs, profile->threads, profile->threads == 1 ? "" : "s", profile->run_ms, gflops,
      gbytes);
}

void o3_run_text_profile(o3_strbuf_t *text, const o3_run_profile_t *profile) {
  int32_t count = profile->num_kernels + 1;
  int columns = terminal_width(), width = columns ? columns - NUMBERS_WIDTH : 0;
  const o3_run_kernel_t **order = malloc((size_t)count * sizeof *order);
  if (columns && width < LEAST_NAME_WIDTH) width = LEAST_NAME_WIDTH;
  text->failed |= !order;
  if (!order) return;
  for (int32_t i = 0; i < count; ++i) order[i] = &profile->kernels[i];
  qsort(order, (size_t)count, sizeof *order, compare_times);
  print_title(text, profile);
  static const char HEAD[] = "%10s %6s %8s %9s %5s %9s %5s  %s\n";
  o3_strbuf_printf(text, HEAD, "ms", "share", "calls", "GFLOP/s", "peak", "GB/s", "copy", "kernel");
  for (int32_t i = 0; i < count; ++i) {
    if (order[i]->sample.calls) print_kernel(text, profile, order[i], width);
  }
  o3_strbuf_printf(text, HEAD, "ms", "share", "calls", "GFLOP/s", "peak", "GB/s", "copy", "kind");
  for (int32_t i = 0; i < profile->num_kernels; ++i) print_kind(text, profile, i);
  free(order);
}
