/* The x86-64 targets: this machine, and the two levels of the psABI that have wide vectors. */
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "runtime/compiled.h"
#include "schedule/peaks.h"
#include "target/cpu/attention.h"
#include "target/cpu/blocked_chain.h"
#include "target/cpu/cpu.h"
#include "target/cpu/product.h"
#include "target/cpu/winograd_kernel.h"

static const o3_target_pass_t PASSES[] = {
#define O3_CPU_PASS(stage, name, function, level, summary) {#stage, name, function, level, summary},
#include "target/cpu/cpu_passes.def"
#undef O3_CPU_PASS
};

#define BIT(name) (UINT64_C(1) << O3RT_CPU_##name)
#define V3_FEATURES                                                                                   \
  (BIT(SSE3) | BIT(SSSE3) | BIT(SSE41) | BIT(SSE42) | BIT(POPCNT) | BIT(AVX) | BIT(AVX2) | BIT(FMA) | \
   BIT(BMI) | BIT(BMI2) | BIT(F16C) | BIT(LZCNT) | BIT(MOVBE))
#define V4_FEATURES \
  (V3_FEATURES | BIT(AVX512F) | BIT(AVX512BW) | BIT(AVX512CD) | BIT(AVX512DQ) | BIT(AVX512VL))

/* Row values live beside the loops in the first-level cache. */
static const o3_kernel_support_t KERNELS = {.widens_halves = true,
                                            .row_bytes = 64 << 10,
                                            .refuse_contraction = o3_product_refuse,
                                            .refuse_epilogue = o3_product_refuse_epilogue,
                                            .winograd = o3_winograd_members,
                                            .channel_blocks = true,
                                            .refuse_attention = o3_attention_refuse,
                                            .refuse_padding = o3_product_refuse_padding,
                                            .refuse_chain = o3_chain_refuse};

/* What a core of a server gets from memory while others read, too, and what all of them get at most: assumed,
 * like the caches; a hardware file tells better. */
enum { CORE_GBPS = 10, MOST_GBPS = 200 };

/* Caches of a usual server core, and the fewest cores that share work: more are told by a hardware file. */
static o3_status_t machine_v3(o3_arena_t *arena, o3_machine_t *machine) {
  (void)arena;
  *machine = (o3_machine_t){.llvm_cpu = "x86-64-v3",
                            .llvm_features = "",
                            .vector_bytes = 32,
                            .vector_registers = 16,
                            .fma_ports = 2,
                            .cores = 2,
                            .memory_gbps = 2 * CORE_GBPS,
                            .l1_bytes = 32 << 10,
                            .l2_bytes = 512 << 10,
                            .l3_bytes = 32 << 20,
                            .kernels = &KERNELS};
  return NULL;
}

static o3_status_t machine_v4(o3_arena_t *arena, o3_machine_t *machine) {
  O3_TRY(machine_v3(arena, machine));
  machine->llvm_cpu = "x86-64-v4";
  machine->vector_bytes = 64;
  machine->vector_registers = 32;
  machine->fma_ports = 1; /* as Zen 4, whose wide vectors take both */
  machine->l2_bytes = 1 << 20;
  return NULL;
}

/* ---- This machine ---- */

static int64_t cache_bytes(int name, int64_t fallback) {
  long bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

/* Whether LLVM's feature text has "+name". */
static bool has_feature(const char *features, const char *name) {
  size_t length = strlen(name);
  for (const char *at = features; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    if (at[0] == '+' && strncmp(at + 1, name, length) == 0 && (at[length + 1] == ',' || !at[length + 1]))
      return true;
  }
  return false;
}

/* By LLVM's name of the processor: the same machine gets the same code every time, which measuring would not
 * give. */
static int fma_ports(const char *cpu, int vector_bytes) {
  static const struct {
    const char *cpu;
    int vector_bytes, ports;
  } EXCEPTIONS[] = {
#define O3_FMA_PORTS(cpu, vector_bytes, ports) {cpu, vector_bytes, ports},
#include "target/cpu/fma_ports.def"
#undef O3_FMA_PORTS
  };
  for (size_t i = 0; i < sizeof(EXCEPTIONS) / sizeof(EXCEPTIONS[0]); ++i)
    if (EXCEPTIONS[i].vector_bytes == vector_bytes && !strcmp(EXCEPTIONS[i].cpu, cpu))
      return EXCEPTIONS[i].ports;
  return vector_bytes > 32 ? 1 : 2;
}

static o3_status_t machine_host(o3_arena_t *arena, o3_machine_t *machine) {
  O3_TRY(machine_v3(arena, machine));
  char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
  bool avx512 = has_feature(features, "avx512f") && has_feature(features, "avx512vl");
  bool avx2 = has_feature(features, "avx2") && has_feature(features, "fma");
  machine->llvm_cpu = o3_arena_strdup(arena, cpu);
  machine->llvm_features = o3_arena_strdup(arena, features);
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(features);
  O3_TRY_ALLOC(machine->llvm_cpu);
  O3_TRY_ALLOC(machine->llvm_features);
  machine->vector_bytes = avx512 ? 64 : avx2 ? 32 : 16;
  machine->vector_registers = avx512 ? 32 : 16;
  machine->fma_ports = fma_ports(machine->llvm_cpu, machine->vector_bytes);
  machine->cores = o3_peaks_cpu_count();
  machine->memory_gbps = machine->cores < MOST_GBPS / CORE_GBPS ? machine->cores * CORE_GBPS : MOST_GBPS;
  machine->l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, machine->l1_bytes);
  machine->l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, machine->l2_bytes);
  machine->l3_bytes = o3_peaks_shared_cache_bytes(machine->l3_bytes);
  return NULL;
}

static uint64_t host_features(void) {
  uint64_t bits = 0;
  char *features = LLVMGetHostCPUFeatures();
#define FEATURE(id, bit, name) bits |= has_feature(features, name) ? UINT64_C(1) << bit : 0;
  O3RT_CPU_FEATURES(FEATURE)
#undef FEATURE
  LLVMDisposeMessage(features);
  return bits;
}

/* ---- The targets ---- */

#define COMMON                                                                                             \
  .passes = PASSES, .num_passes = sizeof(PASSES) / sizeof(PASSES[0]), .emit_llvm_ir = o3_cpu_emit_llvm_ir, \
  .emit_object = o3_cpu_emit_object

static o3_target_t host_target = {
    .name = "cpu", .summary = "this machine's x86-64 processor", .machine = machine_host, COMMON};
static const o3_target_t v3_target = {.name = "x86-64-v3",
                                      .summary = "x86-64 with AVX2 and FMA (2013 and later)",
                                      .cpu_features = V3_FEATURES,
                                      .machine = machine_v3,
                                      COMMON};
static const o3_target_t v4_target = {.name = "x86-64-v4",
                                      .summary = "x86-64 with AVX-512 (2017 and later)",
                                      .cpu_features = V4_FEATURES,
                                      .machine = machine_v4,
                                      COMMON};

static const o3_target_t *const X86_64_CODES[] = {&v4_target, &v3_target, NULL};
static const o3_target_t x86_64_target = {
    .name = "x86-64",
    .summary = "x86-64-v4 and x86-64-v3 in one library, picked when it is used",
    .cpu_features = V3_FEATURES,
    .machine = machine_v3,
    .codes = X86_64_CODES,
    COMMON};

static void fill_host_target(void) { host_target.cpu_features = host_features(); }

#define O3_TARGET(get) const o3_target_t *get(void);
#include "target/targets.def"
#undef O3_TARGET

const o3_target_t *o3_target_cpu(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fill_host_target);
  return &host_target;
}
const o3_target_t *o3_target_x86_64(void) { return &x86_64_target; }
const o3_target_t *o3_target_x86_64_v3(void) { return &v3_target; }
const o3_target_t *o3_target_x86_64_v4(void) { return &v4_target; }
