/* The caller never waits for a worker that has not begun: a job is a gate that workers pass while it is
 * open. The caller opens it, works through the chunks like everyone else, closes it and waits for those
 * inside only. So a worker that wakes late (100 us after a long sleep, milliseconds on a busy machine) finds
 * the gate closed and costs nothing, and after fork(), where no worker is left, a run still ends.
 *
 * gate   bit 31: open; bit 30: the caller sleeps until the last one leaves; the rest: workers inside
 * epoch  counts jobs; workers wait for it to change, spinning first, then on a futex
 *
 * Each thread has a share of neighbouring chunks, the same part of the range in each job, and takes chunks
 * off the ends of others' shares when its own is done. So what a thread has written in one job is in its own
 * cache when it comes to the same part of the next: lines that another core has written can cost 50 ns each.
 *
 * A worker may pass the gate of a later job than the one whose epoch it saw, or pass one gate twice: it takes
 * what is left of the shares that are there, so neither matters.
 */
#include "thread_pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define GATE_OPEN          (UINT32_C(1) << 31)
#define GATE_CALLER_SLEEPS (UINT32_C(1) << 30)
#define CACHE_LINE         64
#define CHUNKS_PER_THREAD  4 /* evens out chunks of unequal cost and threads that lose their CPU */
#define PAUSES_PER_CLOCK   16
#define MAX_KNOWN_CPUS     (1 << 16)
#define NO_CPU             (-1) /* also sched_getcpu's answer when it cannot tell */

typedef struct job {
  o3rt_body_fn_t body;
  void *context;
  int64_t chunks;
  int64_t chunk_size; /* of |longer| chunks one more */
  int64_t longer;
} job_t;

// Chunks that nobody has taken: the first of them, and above it the end. Their owner takes the first, others
// the last.
typedef struct share {
  alignas(CACHE_LINE) _Atomic uint64_t left;
} share_t;

typedef struct worker {
  struct o3rt_pool *pool;
  int32_t share;
  pthread_t thread;
} worker_t;

struct o3rt_pool {
  int32_t threads; /* the caller included */
  int32_t started; /* workers */
  int64_t spin_ns;
  cpu_set_t allowed; /* CPUs of the thread that created the pool */
  int avoided_cpu;   /* the one that workers are kept off */
  bool busy;         /* a job is under way: a call is a nested one */
  atomic_bool stop;
  job_t job; /* written while the gate is closed and nobody is inside */
  alignas(CACHE_LINE) _Atomic uint32_t gate;
  alignas(CACHE_LINE) _Atomic uint32_t epoch;
  _Atomic uint32_t sleepers;
  worker_t *workers;
  share_t shares[]; /* one a thread; the caller's first */
};

// Every return is a reason to look at *word again: woken, a signal, or it had changed already.
static void futex_wait(_Atomic uint32_t *word, uint32_t value) {
  (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int64_t waiters) {
  (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, (int)waiters, NULL, NULL, 0);
}

static int64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);  // cannot fail: the clock exists on every Linux
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Returns what *word holds once it differs from |value|, or |value| when that took too long.
static uint32_t spin_while_equal(_Atomic uint32_t *word, uint32_t value, int64_t spin_ns) {
  uint32_t found = atomic_load_explicit(word, memory_order_acquire);
  if (found != value || spin_ns == 0) return found;
  int64_t end = now_ns() + spin_ns;
  do {
    for (int i = 0; i < PAUSES_PER_CLOCK && found == value; ++i) {
      __builtin_ia32_pause();
      found = atomic_load_explicit(word, memory_order_acquire);
    }
  } while (found == value && now_ns() < end);
  return found;
}

#define END_BITS 32 /* a share's end is in the upper half */

// Hands out the chunks in shares that differ by one at most.
static void fill_shares(o3rt_pool_t *pool, int64_t chunks) {
  for (int32_t i = 0; i < pool->threads; ++i) {
    uint64_t first = (uint64_t)(chunks * i / pool->threads);
    uint64_t end = (uint64_t)(chunks * (i + 1) / pool->threads);
    atomic_store_explicit(&pool->shares[i].left, end << END_BITS | first, memory_order_relaxed);
  }
}

// A chunk of the share, or -1.
static int64_t take_chunk(share_t *share, bool own) {
  uint64_t left = atomic_load_explicit(&share->left, memory_order_relaxed);
  for (;;) {
    uint64_t first = left & UINT32_MAX, end = left >> END_BITS;
    if (first >= end) return -1;
    uint64_t rest = own ? left + 1 : left - (UINT64_C(1) << END_BITS);
    if (atomic_compare_exchange_weak_explicit(&share->left, &left, rest, memory_order_relaxed,
                                              memory_order_relaxed))
      return (int64_t)(own ? first : end - 1);
  }
}

// The longer ones lie spread, so that shares have equal parts of the range.
static int64_t chunk_begin(const job_t *job, int64_t chunk) {
  return chunk * job->chunk_size + chunk * job->longer / job->chunks;
}

static void work(o3rt_pool_t *pool, int32_t own) {
  const job_t *job = &pool->job;
  for (int32_t i = 0; i < pool->threads; ++i) {
    share_t *share = &pool->shares[(own + i) % pool->threads];
    for (int64_t chunk; (chunk = take_chunk(share, i == 0)) >= 0;) {
      job->body(job->context, chunk_begin(job, chunk), chunk_begin(job, chunk + 1));
    }
  }
}

static bool gate_enter(o3rt_pool_t *pool) {
  uint32_t gate = atomic_load_explicit(&pool->gate, memory_order_relaxed);
  while (gate & GATE_OPEN) {
    if (atomic_compare_exchange_weak_explicit(&pool->gate, &gate, gate + 1, memory_order_acquire,
                                              memory_order_relaxed))
      return true;
  }
  return false;
}

static void gate_leave(o3rt_pool_t *pool) {
  uint32_t before = atomic_fetch_sub_explicit(&pool->gate, 1, memory_order_release);
  if (before == (GATE_CALLER_SLEEPS | 1)) futex_wake(&pool->gate, 1);
}

// In a virtual machine Linux takes a halted CPU for one that its host preempted, and wakes a worker on its
// caller's CPU while all others idle: it then sits out the whole job behind the caller, wake after wake. So
// workers are kept off the CPU that wakes them, until the caller sleeps and leaves it to them. Where the
// system refuses, they are only slower.
static void keep_workers_off(o3rt_pool_t *pool, int cpu) {
  if (cpu == pool->avoided_cpu) return;
  pool->avoided_cpu = cpu;
  cpu_set_t others = pool->allowed;
  if (cpu != NO_CPU) CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0) return;
  for (int32_t i = 0; i < pool->started; ++i)
    (void)pthread_setaffinity_np(pool->workers[i].thread, sizeof others, &others);
}

static void gate_sleep(o3rt_pool_t *pool, uint32_t gate) {
  uint32_t sleeping = gate | GATE_CALLER_SLEEPS;
  keep_workers_off(pool, NO_CPU);
  if (atomic_compare_exchange_strong_explicit(&pool->gate, &gate, sleeping, memory_order_relaxed,
                                              memory_order_relaxed))
    futex_wait(&pool->gate, sleeping);
}

static void gate_close(o3rt_pool_t *pool) {
  uint32_t gate = atomic_fetch_and_explicit(&pool->gate, ~GATE_OPEN, memory_order_acq_rel) & ~GATE_OPEN;
  while (gate & ~GATE_CALLER_SLEEPS) {
    uint32_t found = spin_while_equal(&pool->gate, gate, pool->spin_ns);
    if (found == gate) {
      gate_sleep(pool, gate);
      found = atomic_load_explicit(&pool->gate, memory_order_acquire);
    }
    gate = found;
  }
}

// Sequentially consistent on both sides: a worker counts itself before the kernel compares the epoch, the
// caller changes the epoch before it reads the count, so one of them sees the other. Workers that spin move,
// too, when the caller has come to where they are allowed: they would take turns on one CPU.
static void announce_job(o3rt_pool_t *pool, int64_t helpers) {
  atomic_fetch_add(&pool->epoch, 1);
  keep_workers_off(pool, sched_getcpu());
  if (atomic_load(&pool->sleepers)) futex_wake(&pool->epoch, helpers);
}

static uint32_t await_job(o3rt_pool_t *pool, uint32_t seen) {
  for (;;) {
    uint32_t epoch = spin_while_equal(&pool->epoch, seen, pool->spin_ns);
    if (epoch != seen) return epoch;
    atomic_fetch_add(&pool->sleepers, 1);
    futex_wait(&pool->epoch, seen);
    atomic_fetch_sub(&pool->sleepers, 1);
  }
}

static void *worker_main(void *argument) {
  const worker_t *worker = argument;
  o3rt_pool_t *pool = worker->pool;
  uint32_t epoch = 0;
  for (;;) {
    epoch = await_job(pool, epoch);
    if (atomic_load_explicit(&pool->stop, memory_order_relaxed)) return NULL;
    if (gate_enter(pool)) {
      work(pool, worker->share);
      gate_leave(pool);
    }
  }
}

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

void o3rt_pool_run(o3rt_pool_t *pool, o3rt_body_fn_t body, void *context, int64_t count, int64_t grain) {
  if (count <= 0) return;
  int64_t worthwhile = count / (grain > 1 ? grain : 1);  // threads that get at least |grain| iterations
  if (worthwhile < 2 || pool->started == 0 || pool->busy) {
    body(context, 0, count);
    return;
  }
  int64_t chunks = min_i64(worthwhile, (int64_t)pool->threads * CHUNKS_PER_THREAD);
  pool->job = (job_t){body, context, chunks, count / chunks, count % chunks};
  pool->busy = true;
  fill_shares(pool, chunks);
  atomic_store_explicit(&pool->gate, GATE_OPEN, memory_order_release);
  announce_job(pool, min_i64(pool->started, chunks - 1));
  work(pool, 0);
  gate_close(pool);
  pool->busy = false;
}

int32_t o3rt_cpu_count(void) {
  // The kernel refuses a set that is smaller than its own, so the size is found by trying.
  for (int cpus = CPU_SETSIZE; cpus <= MAX_KNOWN_CPUS; cpus *= 2) {
    cpu_set_t *set = CPU_ALLOC(cpus);
    if (!set) return 0;
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count < O3RT_MAX_THREADS ? count : O3RT_MAX_THREADS;
  }
  return 0;
}

// Signals stay with the program's own threads.
static int start_workers(o3rt_pool_t *pool) {
  sigset_t all, before;
  (void)sigfillset(&all);
  int error = pthread_sigmask(SIG_SETMASK, &all, &before);
  if (error) return error;
  while (!error && pool->started < pool->threads - 1) {
    worker_t *worker = &pool->workers[pool->started];
    *worker = (worker_t){.pool = pool, .share = pool->started + 1};
    error = pthread_create(&worker->thread, NULL, worker_main, worker);
    if (!error) ++pool->started;
  }
  int restored = pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error ? error : restored;
}

int o3rt_pool_create(int32_t threads, int32_t spin_us, o3rt_pool_t **pool) {
  *pool = NULL;
  size_t shares = sizeof(o3rt_pool_t) + (size_t)threads * sizeof(share_t);
  void *memory;
  int error = posix_memalign(&memory, CACHE_LINE, shares + (size_t)(threads - 1) * sizeof(worker_t));
  if (error) return error;
  o3rt_pool_t *created = memory;
  created->workers = (worker_t *)((char *)memory + shares);
  created->threads = threads;
  created->started = 0;
  created->spin_ns = (int64_t)spin_us * 1000;
  created->avoided_cpu = NO_CPU;
  CPU_ZERO(&created->allowed);
  // Fails on machines of more CPUs than cpu_set_t holds: workers are then left where Linux puts them.
  if (sched_getaffinity(0, sizeof created->allowed, &created->allowed) != 0) CPU_ZERO(&created->allowed);
  created->busy = false;
  atomic_init(&created->stop, false);
  atomic_init(&created->gate, 0);
  atomic_init(&created->epoch, 0);
  atomic_init(&created->sleepers, 0);
  for (int32_t i = 0; i < threads; ++i) atomic_init(&created->shares[i].left, 0);
  error = start_workers(created);
  if (error) {
    o3rt_pool_destroy(created);
    return error;
  }
  *pool = created;
  return 0;
}

void o3rt_pool_destroy(o3rt_pool_t *pool) {
  if (!pool) return;
  atomic_store_explicit(&pool->stop, true, memory_order_relaxed);
  announce_job(pool, pool->started);
  for (int32_t i = 0; i < pool->started; ++i) (void)pthread_join(pool->workers[i].thread, NULL);
  free(pool);
}
