// Operations of single threads, and those of warps that only move words.
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "emu_element.h"
#include "emu_ops.h"

const emu_op_t *emu_op_find(const char *name) {
  static const emu_op_t kOps[] = {
#define EMU_THREAD(pattern, function)          {pattern, function, NULL, false},
#define EMU_WARP_OP(pattern, function, masked) {pattern, NULL, function, masked},
#include "emu_ops.def"
#undef EMU_THREAD
#undef EMU_WARP_OP
  };
  for (size_t i = 0; i < sizeof kOps / sizeof kOps[0]; ++i)
    if (fnmatch(kOps[i].pattern, name, 0) == 0) return &kOps[i];
  return NULL;
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), wanted = strlen(end);
  return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

// ---- Where a thread is ----

static unsigned thread_index(const emu_thread_t *thread, int dimension) {
  const unsigned *sizes = emu_current()->block;
  unsigned number = (unsigned)thread->number;
  for (int i = 0; i < dimension; ++i) number /= sizes[i];
  return dimension < 2 ? number % sizes[dimension] : number;
}

// tid.x, ntid.y, ctaid.z, nctaid.x
void emu_read_register(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  static const char kBefore[] = "llvm.nvvm.read.ptx.sreg.";
  const char *name = thread->site->name + strlen(kBefore);
  int dimension = name[strlen(name) - 1] - 'x';
  (void)operands;
  if (strncmp(name, "tid.", 4) == 0)
    results->u32 = thread_index(thread, dimension);
  else if (strncmp(name, "ntid.", 5) == 0)
    results->u32 = emu_current()->block[dimension];
  else if (strncmp(name, "ctaid.", 6) == 0)
    results->u32 = thread->warp->block->index[dimension];
  else if (strncmp(name, "nctaid.", 7) == 0)
    results->u32 = emu_current()->grid[dimension];
  else
    emu_fail("register %s is not known", name);
}

void emu_exit(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread, (void)operands, (void)results;
  emu_thread_exit();
}

void emu_nothing(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread, (void)operands, (void)results;
}

// ---- Barriers ----

// .all has the barrier's number, .count the threads too.
void emu_barrier_sync(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)results;
  emu_barrier_wait(thread, operands[0].i32, ends_with(thread->site->name, ".count") ? operands[1].i32 : 0);
}

void emu_barrier_sign(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)results;
  emu_barrier_arrive(thread, operands[0].i32, operands[1].i32);
}

// That all lanes have come is enough.
void emu_warp_sync(emu_warp_t *warp, uint32_t lanes) { (void)warp, (void)lanes; }

// ---- Words of other lanes ----

// The lane that |lane| reads; itself, where the other one is outside of its segment.
static int source_lane(const char *name, int lane, uint32_t by, uint32_t limits) {
  int segment = (int)(limits >> 8 & 31), lowest = lane & segment;
  int last = lowest | ((int)(limits & 31) & ~segment), at;
  if (strstr(name, ".up.")) return lane - (int)(by & 31) >= last ? lane - (int)(by & 31) : lane;
  if (strstr(name, ".down."))
    at = lane + (int)(by & 31);
  else if (strstr(name, ".bfly."))
    at = lane ^ (int)(by & 31);
  else
    at = lowest | ((int)(by & 31) & ~segment);
  return at <= last ? at : lane;
}

void emu_shuffle(emu_warp_t *warp, uint32_t lanes) {
  EMU_EACH(thread, warp, lanes) {
    const emu_word_t *given = thread->operands;  // mask, value, lane, limits
    int from = source_lane(thread->site->name, thread->lane, given[2].u32, given[3].u32);
    if (!(lanes >> from & 1)) emu_fail("lane %d reads lane %d, which takes no part", thread->lane, from);
    thread->results->u32 = warp->threads[from].operands[1].u32;
  }
}

void emu_vote_any(emu_warp_t *warp, uint32_t lanes) {
  uint32_t any = 0;
  EMU_EACH(thread, warp, lanes) any |= thread->operands[0].u32;
  EMU_EACH(thread, warp, lanes) thread->results->u32 = any != 0;
}

// ---- Functions ----

static float flushed(float x) { return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x; }

// Those with ftz in their name take and give no denormal numbers.
static void apply(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results,
                  double (*function)(double)) {
  bool flushes = strstr(thread->site->name, ".ftz") != NULL;
  float x = flushes ? flushed(operands->f32) : operands->f32, y = (float)function(x);
  results->f32 = flushes ? flushed(y) : y;
}

static double rsqrt(double x) { return 1 / sqrt(x); }

#define FUNCTION(name, of)                                                           \
  void name(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) { \
    apply(thread, operands, results, of);                                            \
  }
FUNCTION(emu_exp2, exp2)
FUNCTION(emu_log2, log2)
FUNCTION(emu_sqrt, sqrt)
FUNCTION(emu_rsqrt, rsqrt)
#undef FUNCTION

// NaN becomes 0.
void emu_fma_sat(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread;
  float sum = fmaf(operands[0].f32, operands[1].f32, operands[2].f32);
  results->f32 = sum > 0 ? fminf(sum, 1) : 0;
}

void emu_round_tf32(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)thread;
  results->u32 = emu_tf32_rounded(operands->u32);
}
