/* A feature is usable when the CPU reports it and the kernel saves the registers that it needs (XCR0). AMX
 * also needs the kernel's permission, which a process has to ask for. */
#include "cpu_features.h"

#include <cpuid.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiled.h"

#define OSXSAVE_BIT         (1u << 27) /* leaf 1, ECX */
#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_TILE_DATA  18

// The registers of CPUID's answers that hold features.
typedef enum cpuid_word {
  LEAF1_ECX,
  LEAF7_EBX,
  LEAF7_ECX,
  LEAF7_EDX,
  LEAF7_1_EAX,
  EXT1_ECX,
  NUM_WORDS
} cpuid_word_t;

// Register state, as bits of XCR0: XMM and YMM; opmask and ZMM; tile configuration and data.
typedef enum state { STATE_NONE = 0, STATE_YMM = 0x06, STATE_ZMM = 0xe6, STATE_TILE = 0x60000 } state_t;

typedef struct feature {
  cpuid_word_t word;
  int bit;
  state_t state;
} feature_t;

static const feature_t kFeatures[] = {
    [O3RT_CPU_SSE3] = {LEAF1_ECX, 0, STATE_NONE},       [O3RT_CPU_SSSE3] = {LEAF1_ECX, 9, STATE_NONE},
    [O3RT_CPU_SSE41] = {LEAF1_ECX, 19, STATE_NONE},     [O3RT_CPU_SSE42] = {LEAF1_ECX, 20, STATE_NONE},
    [O3RT_CPU_POPCNT] = {LEAF1_ECX, 23, STATE_NONE},    [O3RT_CPU_AVX] = {LEAF1_ECX, 28, STATE_YMM},
    [O3RT_CPU_AVX2] = {LEAF7_EBX, 5, STATE_YMM},        [O3RT_CPU_FMA] = {LEAF1_ECX, 12, STATE_YMM},
    [O3RT_CPU_BMI] = {LEAF7_EBX, 3, STATE_NONE},        [O3RT_CPU_BMI2] = {LEAF7_EBX, 8, STATE_NONE},
    [O3RT_CPU_F16C] = {LEAF1_ECX, 29, STATE_YMM},       [O3RT_CPU_LZCNT] = {EXT1_ECX, 5, STATE_NONE},
    [O3RT_CPU_MOVBE] = {LEAF1_ECX, 22, STATE_NONE},     [O3RT_CPU_AVX512F] = {LEAF7_EBX, 16, STATE_ZMM},
    [O3RT_CPU_AVX512BW] = {LEAF7_EBX, 30, STATE_ZMM},   [O3RT_CPU_AVX512CD] = {LEAF7_EBX, 28, STATE_ZMM},
    [O3RT_CPU_AVX512DQ] = {LEAF7_EBX, 17, STATE_ZMM},   [O3RT_CPU_AVX512VL] = {LEAF7_EBX, 31, STATE_ZMM},
    [O3RT_CPU_AVX512VNNI] = {LEAF7_ECX, 11, STATE_ZMM}, [O3RT_CPU_AVX512BF16] = {LEAF7_1_EAX, 5, STATE_ZMM},
    [O3RT_CPU_AMX_TILE] = {LEAF7_EDX, 24, STATE_TILE},  [O3RT_CPU_AMX_INT8] = {LEAF7_EDX, 25, STATE_TILE},
    [O3RT_CPU_AMX_BF16] = {LEAF7_EDX, 22, STATE_TILE},  [O3RT_CPU_AVX512FP16] = {LEAF7_EDX, 23, STATE_ZMM},
};

static const char *const kNames[] = {
#define NAME(id, bit, name) [bit] = name,
    O3RT_CPU_FEATURES(NAME)
#undef NAME
};

#define NUM_FEATURES (sizeof kFeatures / sizeof kFeatures[0])
_Static_assert(NUM_FEATURES == sizeof kNames / sizeof kNames[0], "each CPU feature has a CPUID bit");

static void read_cpuid(uint32_t words[NUM_WORDS]) {
  uint32_t eax, ebx, ecx, edx;
  if (__get_cpuid_count(1, 0, &eax, &ebx, &ecx, &edx)) words[LEAF1_ECX] = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
    words[LEAF7_EBX] = ebx;
    words[LEAF7_ECX] = ecx;
    words[LEAF7_EDX] = edx;
    if (eax >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) words[LEAF7_1_EAX] = eax;
  }
  if (__get_cpuid_count(0x80000001, 0, &eax, &ebx, &ecx, &edx)) words[EXT1_ECX] = ecx;
}

static uint64_t read_saved_state(uint32_t leaf1_ecx) {
  if (!(leaf1_ecx & OSXSAVE_BIT)) return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static bool permit_tiles(void) {
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILE_DATA) == 0;
}

uint64_t o3rt_cpu_features_usable(uint64_t wanted) {
  uint32_t words[NUM_WORDS] = {0};
  read_cpuid(words);
  uint64_t saved = read_saved_state(words[LEAF1_ECX]), usable = 0;
  for (size_t i = 0; i < NUM_FEATURES; ++i) {
    const feature_t *feature = &kFeatures[i];
    bool reported = words[feature->word] >> feature->bit & 1;
    if (!(wanted >> i & 1) || !reported || (saved & feature->state) != feature->state) continue;
    if (feature->state == STATE_TILE && !permit_tiles()) continue;
    usable |= UINT64_C(1) << i;
  }
  return usable;
}

void o3rt_cpu_features_print(uint64_t features, o3rt_text_t *text) {
  const char *separator = "";
  for (size_t i = 0; i < 64; ++i) {
    if (!(features >> i & 1)) continue;
    if (i < NUM_FEATURES)
      o3rt_text_printf(text, "%s%s", separator, kNames[i]);
    else
      o3rt_text_printf(text, "%sfeature %zu", separator, i);
    separator = ", ";
  }
}
