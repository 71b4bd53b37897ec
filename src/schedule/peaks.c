/* All threads start at one signal and work for a fixed time, each on its own data; a rate is the sum of
 * theirs. The best of a few tries counts: other programs can only make it less. */
#include "schedule/peaks.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { TRIES = 4, CHAINS = 12, BLOCK = 4096 };
static const double FMA_SECONDS = 0.02, COPY_SECONDS = 0.06, SCALE_SECONDS = 0.02;
static const size_t COPY_BYTES = (size_t)128 << 20, LEAST_COPY_BYTES = (size_t)8 << 20;

typedef struct worker worker_t;
typedef double (*rate_fn_t)(worker_t *worker);
struct worker {
  atomic_int *signal;
  rate_fn_t rate;
  char *from, *to;
  size_t bytes;
  double result; /* units a second */
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- What is measured ---- */

/* One block: BLOCK turns of independent FMAs, CHAINS or one; gives the floating-point operations. The chains
 * are named variables, so that they are registers at any optimisation; |sink| keeps the work from being
 * dropped.
 */
typedef double (*fma_block_fn_t)(volatile float *sink);

#define EACH_CHAIN(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)
#define ONE_CHAIN(F)  F(0)
#define DECLARE(i)    c##i = SET((float)i),
#define STEP(i)       c##i = FMA(c##i, factor, factor);
#define SUM(i)        all = FMA(c##i, factor, all);
#define FMA_BLOCK(name, isa, type, lanes, first, chains, count) \
  isa static double name(volatile float *sink) {                \
    type chains(DECLARE) all = SET(0), factor = SET(*sink);     \
    for (int n = 0; n < BLOCK; ++n) {                           \
      chains(STEP)                                              \
    }                                                           \
    chains(SUM) *sink = first(all) > 1 ? 0.25f : 0.5f;          \
    return 2.0 * (lanes) * (count) * BLOCK;                     \
  }

#define SET(x)       (x)
#define FMA(a, b, c) ((a) * (b) + (c))
FMA_BLOCK(fma_block_plain, , float, 1, , EACH_CHAIN, CHAINS)
#undef SET
#undef FMA
#if defined(__x86_64__)
#define SET  _mm256_set1_ps
#define FMA  _mm256_fmadd_ps
#define AVX2 __attribute__((target("avx2,fma")))
FMA_BLOCK(fma_block_avx2, AVX2, __m256, 8, _mm256_cvtss_f32, EACH_CHAIN, CHAINS)
FMA_BLOCK(fma_chain_avx2, AVX2, __m256, 8, _mm256_cvtss_f32, ONE_CHAIN, 1)
#undef SET
#undef FMA
#define SET    _mm512_set1_ps
#define FMA    _mm512_fmadd_ps
#define AVX512 __attribute__((target("avx512f")))
FMA_BLOCK(fma_block_avx512, AVX512, __m512, 16, _mm512_cvtss_f32, EACH_CHAIN, CHAINS)
FMA_BLOCK(fma_chain_avx512, AVX512, __m512, 16, _mm512_cvtss_f32, ONE_CHAIN, 1)
#undef SET
#undef FMA
#endif

/* to = from * factor: unlike a copy it never goes past the caches, whatever the size. */
typedef void (*scale_fn_t)(float *to, const float *from, size_t count, float factor);

static void scale_plain(float *to, const float *from, size_t count, float factor) {
  for (size_t i = 0; i < count; ++i) to[i] = from[i] * factor;
}

#if defined(__x86_64__)
enum { AVX2_LANES = 8 };

AVX2 static void scale_avx2(float *to, const float *from, size_t count, float factor) {
  __m256 factors = _mm256_set1_ps(factor);
  for (size_t i = 0; i + AVX2_LANES <= count; i += AVX2_LANES)
    _mm256_storeu_ps(to + i, _mm256_mul_ps(_mm256_loadu_ps(from + i), factors));
}
#endif

static double rate_of_blocks(fma_block_fn_t block) {
  volatile float sink = 0.5f;
  double start = now(), end = start, operations = 0;
  for (; end - start < FMA_SECONDS; end = now()) operations += block(&sink);
  return operations / (end - start);
}

static double rate_fma(worker_t *worker) {
  (void)worker;
  double best = rate_of_blocks(fma_block_plain);
#if defined(__x86_64__)
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  double wide = avx2 ? rate_of_blocks(fma_block_avx2) : 0;
  if (wide > best) best = wide;
  double widest = __builtin_cpu_supports("avx512f") ? rate_of_blocks(fma_block_avx512) : 0;
  if (widest > best) best = widest;
#endif
  return best;
}

static scale_fn_t widest_scale(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return scale_avx2;
#endif
  return scale_plain;
}

static double rate_scale(worker_t *worker) {
  scale_fn_t scale = widest_scale();
  double start = now(), end = start, bytes = 0;
  for (; end - start < SCALE_SECONDS; end = now()) {
    scale((float *)worker->to, (const float *)worker->from, worker->bytes / sizeof(float), 1);
    bytes += 2.0 * (double)worker->bytes;
  }
  return bytes / (end - start);
}

static double rate_copy(worker_t *worker) {
  double start = now(), end = start, bytes = 0;
  for (; end - start < COPY_SECONDS; end = now()) {
    memcpy(worker->to, worker->from, worker->bytes);
    bytes += 2.0 * (double)worker->bytes;
    char *swap = worker->from;
    worker->from = worker->to;
    worker->to = swap;
  }
  return bytes / (end - start);
}

/* ---- Threads ---- */

enum { WAIT, GO, LEAVE };

static void *work(void *context) {
  worker_t *worker = context;
  while (atomic_load(worker->signal) == WAIT) sched_yield();
  if (atomic_load(worker->signal) == GO) worker->result = worker->rate(worker);
  return NULL;
}

static o3_status_t run_all(worker_t *workers, int32_t count, rate_fn_t rate, double *sum) {
  pthread_t *threads = calloc((size_t)count, sizeof *threads);
  atomic_int signal = WAIT;
  int32_t started = 0;
  O3_TRY_ALLOC(threads);
  for (; started < count; ++started) {
    workers[started].signal = &signal;
    workers[started].rate = rate;
    if (pthread_create(&threads[started], NULL, work, &workers[started])) break;
  }
  atomic_store(&signal, started == count ? GO : LEAVE);
  *sum = 0;
  for (int32_t i = 0; i < started; ++i) {
    pthread_join(threads[i], NULL);
    *sum += workers[i].result;
  }
  free(threads);
  if (started == count) return NULL;
  return o3_status_create(O3_STATUS_UNSUPPORTED, "cannot start %d threads to measure with", count);
}

static o3_status_t best_of(worker_t *workers, int32_t count, rate_fn_t rate, double *best) {
  *best = 0;
  for (int i = 0; i < TRIES; ++i) {
    double sum = 0;
    O3_TRY(run_all(workers, count, rate, &sum));
    if (sum > *best) *best = sum;
  }
  return NULL;
}

/* Each core has a second-level cache of its own; of the third level all share one. Between
 * buffers that fill half of it. */
static o3_status_t measure_caches(worker_t *workers, int32_t count, size_t most, o3_peaks_t *peaks) {
  const int64_t sizes[O3_PEAKS_CACHES] = {sysconf(_SC_LEVEL2_CACHE_SIZE) * (int64_t)count,
                                          o3_peaks_shared_cache_bytes(0)};
  for (int i = 0; i < O3_PEAKS_CACHES; ++i) {
    enum { HALF = 2, BUFFERS = 2 };
    o3_peaks_cache_t *cache = &peaks->caches[i];
    *cache = (o3_peaks_cache_t){.bytes = sizes[i] > 0 ? sizes[i] : 0};
    size_t each = (size_t)(cache->bytes / count / HALF / BUFFERS);
    if (!each || each > most) cache->bytes = 0;
    for (int32_t t = 0; t < count; ++t) workers[t].bytes = each;
    if (cache->bytes) O3_TRY(best_of(workers, count, rate_scale, &cache->copy_bytes));
  }
  return NULL;
}

/* One block of memory for all: each thread has its two buffers of |bytes| in it. */
static o3_status_t measure(worker_t *workers, int32_t count, char *memory, size_t bytes, o3_peaks_t *peaks) {
  for (int32_t i = 0; i < count; ++i) {
    char *own = memory + 2 * (size_t)i * bytes;
    memset(own, i, 2 * bytes);
    workers[i] = (worker_t){.from = own, .to = own + bytes};
  }
  O3_TRY(best_of(workers, count, rate_fma, &peaks->fma_flops));
  O3_TRY(measure_caches(workers, count, bytes, peaks));
  for (int32_t i = 0; i < count; ++i) workers[i].bytes = bytes;
  return best_of(workers, count, rate_copy, &peaks->copy_bytes);
}

o3_status_t o3_peaks_measure(int32_t threads, o3_peaks_t *peaks) {
  size_t count = (size_t)threads, bytes = COPY_BYTES / count;
  if (bytes < LEAST_COPY_BYTES) bytes = LEAST_COPY_BYTES;
  worker_t *workers = calloc(count, sizeof *workers);
  char *memory = malloc(2 * count * bytes);
  o3_status_t status =
      workers && memory ? measure(workers, threads, memory, bytes, peaks)
                        : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory to measure copying with");
  free(workers);
  free(memory);
  return status;
}

/* A chain starts an FMA when the one before is done, 4 cycles later (5 on Haswell and Zen 1): independent
 * ones are 4 times as fast with one port, 8 times with two. */
int o3_peaks_fma_ports(int vector_bytes) {
  static const double LATENCY = 4.5;
  double chain = 0, block = 0;
#if defined(__x86_64__)
  bool wide = vector_bytes > 32 && __builtin_cpu_supports("avx512f");
  bool avx2 = vector_bytes == 32 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  for (int i = 0; (wide || avx2) && i < TRIES; ++i) {
    double one = rate_of_blocks(wide ? fma_chain_avx512 : fma_chain_avx2);
    double all = rate_of_blocks(wide ? fma_block_avx512 : fma_block_avx2);
    chain = one > chain ? one : chain;
    block = all > block ? all : block;
  }
#endif
  return chain > 0 && block / chain > 1.5 * LATENCY ? 2 : 1;
}

int32_t o3_peaks_cpu_count(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

/* sysconf knows what a socket has together; what the cores here share is told by the system alone. */
int64_t o3_peaks_shared_cache_bytes(int64_t fallback) {
  long long kilobytes = 0;
  FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
  if (file && fscanf(file, "%lldK", &kilobytes) != 1) kilobytes = 0;
  if (file) fclose(file);
  return kilobytes > 0 ? kilobytes * 1024 : fallback;
}
