// The thread pool, alone and below sessions: coverage of ranges, nesting, wake-ups, many at once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include <o3/model.h>

#include "runtime/session.h"

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof((array)[0])))

static o3rt_pool_t *create_pool(int32_t threads, int32_t spin_us) {
  o3rt_pool_t *pool;
  assert_int_equal(o3rt_pool_create(threads, spin_us, &pool), 0);
  return pool;
}

static void nap(int64_t microseconds) {
  const struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
  (void)nanosleep(&time, NULL);
}

// Counts visits: one a cell, so that gaps and overlaps show.
typedef struct visits {
  uint8_t *cells;
  atomic_llong calls, shortest, total;
} visits_t;

static void visit(void *context, int64_t begin, int64_t end) {
  visits_t *visits = context;
  for (int64_t i = begin; visits->cells && i < end; ++i) ++visits->cells[i];
  atomic_fetch_add(&visits->calls, 1);
  atomic_fetch_add(&visits->total, end - begin);
  long long shortest = atomic_load(&visits->shortest);
  while (end - begin < shortest && !atomic_compare_exchange_weak(&visits->shortest, &shortest, end - begin)) {
  }
}

static void check_coverage(o3rt_pool_t *pool, int64_t count, int64_t grain) {
  visits_t visits = {.cells = calloc((size_t)count + 1, 1), .shortest = INT64_MAX};
  o3rt_pool_run(pool, visit, &visits, count, grain);
  for (int64_t i = 0; i < count; ++i) assert_int_equal(visits.cells[i], 1);
  assert_int_equal(visits.cells[count], 0);
  if (count == 0) assert_int_equal(visits.calls, 0);
  if (count > 0 && count <= grain) assert_int_equal(visits.calls, 1);
  if (count > grain) assert_true(visits.shortest >= grain);
  free(visits.cells);
}

static void test_coverage(void **state) {
  (void)state;
  static const int64_t kCounts[] = {0, 1, 2, 3, 5, 7, 13, 64, 97, 101, 997, 7919, 1 << 17};
  static const int64_t kGrains[] = {1, 2, 7, 64, 1000};
  for (int32_t threads = 1; threads <= 5; ++threads) {
    o3rt_pool_t *pool = create_pool(threads, threads % 2 ? 20 : 0);
    for (int32_t c = 0; c < COUNT(kCounts); ++c)
      for (int32_t g = 0; g < COUNT(kGrains); ++g) check_coverage(pool, kCounts[c], kGrains[g]);
    o3rt_pool_destroy(pool);
  }
}

static void test_huge_count(void **state) {
  (void)state;
  o3rt_pool_t *pool = create_pool(3, 0);
  visits_t visits = {.shortest = INT64_MAX};
  o3rt_pool_run(pool, visit, &visits, INT64_MAX, 1);
  assert_true(visits.total == INT64_MAX);
  assert_true(visits.calls > 1);
  o3rt_pool_run(pool, visit, &visits, -5, 1);
  assert_true(visits.total == INT64_MAX);
  o3rt_pool_destroy(pool);
}

// ---- Nested calls ----

typedef struct nested {
  o3rt_pool_t *pool;
  atomic_llong total;
  pthread_t outer[64];
} nested_t;

typedef struct inner {
  nested_t *nested;
  pthread_t caller;
} inner_t;

static void inner_body(void *context, int64_t begin, int64_t end) {
  inner_t *inner = context;
  assert_true(pthread_equal(inner->caller, pthread_self()));
  atomic_fetch_add(&inner->nested->total, end - begin);
}

static void outer_body(void *context, int64_t begin, int64_t end) {
  nested_t *nested = context;
  inner_t inner = {nested, pthread_self()};
  for (int64_t i = begin; i < end; ++i) o3rt_pool_run(nested->pool, inner_body, &inner, 10, 1);
}

static void test_nested(void **state) {
  (void)state;
  nested_t nested = {.pool = create_pool(4, 0)};
  for (int i = 0; i < 50; ++i) o3rt_pool_run(nested.pool, outer_body, &nested, 64, 1);
  assert_int_equal(nested.total, 50 * 64 * 10);
  o3rt_pool_destroy(nested.pool);
}

// ---- Workers take part, awake and after sleep ----

typedef struct meeting {
  atomic_int present;
  int expected;
} meeting_t;

// Returns once as many threads are inside as were expected: hangs unless workers wake up.
static void meet(void *context, int64_t begin, int64_t end) {
  meeting_t *meeting = context;
  (void)begin;
  (void)end;
  atomic_fetch_add(&meeting->present, 1);
  while (atomic_load(&meeting->present) < meeting->expected) nap(50);
}

static void check_wake_ups(int32_t threads, int32_t spin_us, int64_t pause_us, int rounds) {
  o3rt_pool_t *pool = create_pool(threads, spin_us);
  for (int i = 0; i < rounds; ++i) {
    meeting_t meeting = {.expected = threads};
    o3rt_pool_run(pool, meet, &meeting, threads, 1);
    assert_int_equal(meeting.present, threads);
    if (pause_us) nap(pause_us);
  }
  o3rt_pool_destroy(pool);
}

static void test_wake_ups(void **state) {
  (void)state;
  check_wake_ups(2, 1000, 0, 200);   // awake
  check_wake_ups(3, 50, 50, 200);    // on the edge of sleep
  check_wake_ups(4, 0, 0, 200);      // never spinning
  check_wake_ups(2, 50, 20000, 10);  // asleep
}

// The caller sleeps until a slow worker is done.
static void slow_on_workers(void *context, int64_t begin, int64_t end) {
  (void)begin;
  (void)end;
  visits_t *visits = context;
  nap(300);
  atomic_fetch_add(&visits->calls, 1);
}

static void test_caller_waits(void **state) {
  (void)state;
  o3rt_pool_t *pool = create_pool(3, 0);
  for (int i = 0; i < 100; ++i) {
    visits_t visits = {.shortest = INT64_MAX};
    o3rt_pool_run(pool, slow_on_workers, &visits, 4, 1);
    assert_int_equal(visits.calls, 4);
  }
  o3rt_pool_destroy(pool);
}

static void test_create_and_destroy(void **state) {
  (void)state;
  assert_true(o3rt_cpu_count() >= 1);
  for (int i = 0; i < 100; ++i) o3rt_pool_destroy(create_pool(1 + i % 8, i % 3 * 10));
  o3rt_pool_destroy(NULL);
}

// With one CPU a worker runs only while the caller sleeps or is preempted.
static void test_one_cpu(void **state) {
  (void)state;
  cpu_set_t before, one;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  assert_int_equal(o3rt_cpu_count(), 1);
  o3rt_pool_t *pool = create_pool(3, 0);
  for (int64_t count = 0; count < 50; ++count) check_coverage(pool, count, 1);
  o3rt_pool_destroy(pool);
  check_wake_ups(3, 20, 100, 20);
  assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

// The caller moves to a CPU that workers were allowed on, which are then kept off it.
static void test_caller_moves(void **state) {
  (void)state;
  cpu_set_t before, one;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  o3rt_pool_t *pool = create_pool(3, 0);
  for (int round = 0; round < 40; ++round) {
    int cpu = round % CPU_COUNT(&before);
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one,
                            &one);  // fails where the process may not use that CPU: no move then
    meeting_t meeting = {.expected = 3};
    o3rt_pool_run(pool, meet, &meeting, 3, 1);
    assert_int_equal(meeting.present, 3);
    nap(200);
  }
  assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
  o3rt_pool_destroy(pool);
}

// ---- Sessions: y[N] = x[N] * x[N], in parallel, twice over ----

typedef struct square {
  const float *x;
  float *y;
} square_t;

static void square_body(void *context, int64_t begin, int64_t end) {
  const square_t *square = context;
  for (int64_t i = begin; i < end; ++i) square->y[i] = square->x[i] * square->x[i];
}

static void run_square(o3rt_session_t *session, o3rt_memref_t *const *inputs, o3rt_memref_t *const *outputs) {
  int64_t n = inputs[0]->sizes_and_strides[0];
  float *arena = o3rt_arena(session, 2 * n * (int64_t)sizeof *arena);
  square_t first = {inputs[0]->aligned, arena}, second = {arena, arena + n};
  o3rt_parallel_for(session, square_body, &first, n, 16);
  o3rt_parallel_for(session, square_body, &second, n, 16);
  *outputs[0] = (o3rt_memref_t){.allocated = arena, .aligned = arena, .offset = n};
  outputs[0]->sizes_and_strides[0] = n;
  outputs[0]->sizes_and_strides[1] = 1;
}

static const o3rt_dim_t kN[] = {{-1, 0, 0}};
static const char *const kSymbols[] = {"N"};
static const o3rt_tensor_t kInput[] = {{"x", kN, 1, O3_FLOAT32}}, kOutput[] = {{"y", kN, 1, O3_FLOAT32}};
static const o3rt_model_t kSquareCompiled = {.format = O3RT_FORMAT,
                                             .name = "square",
                                             .target = "x86-64",
                                             .num_inputs = 1,
                                             .num_outputs = 1,
                                             .num_symbols = 1,
                                             .inputs = kInput,
                                             .outputs = kOutput,
                                             .symbols = kSymbols,
                                             .run = run_square};
static const o3_model_t kSquare = {&o3rt_api, &kSquareCompiled};

// Plain checks: cmocka's assertions belong to the main thread. Returns what went wrong, or NULL.
static const char *use_session(int32_t threads, int rounds) {
  const o3_session_options_t options = {.threads = threads, .spin_us = threads % 2 ? 10 : -1};
  o3_session_t *session;
  if (o3_session_create(&kSquare, &options, &session) != O3_OK) return "create";
  const char *wrong = NULL;
  float x[500];
  for (int round = 0; round < rounds && !wrong; ++round) {
    int64_t n = 1 + round * 37 % 500;
    for (int64_t i = 0; i < n; ++i) x[i] = (float)((i + round) % 11);
    o3_tensor_t in = {.data = x, .dtype = O3_FLOAT32, .rank = 1, .shape = {n}}, out = {0};
    if (o3_session_run(session, &in, 1, &out, 1) != O3_OK) wrong = "run";
    for (int64_t i = 0; i < n && !wrong; ++i)
      if (((float *)out.data)[i] != x[i] * x[i] * x[i] * x[i]) wrong = "value";
    in.dtype = O3_INT8;
    if (!wrong && o3_session_run(session, &in, 1, &out, 1) != O3_ERROR_INVALID_ARGUMENT) wrong = "check";
  }
  o3_session_destroy(session);
  return wrong;
}

static void *session_thread(void *argument) {
  int32_t index = (int32_t)(intptr_t)argument;
  o3_tensor_info_t info;
  if (o3_input_info(&kSquare, 7 + index, &info) != O3_ERROR_INVALID_ARGUMENT) return (void *)"info";
  if (atoi(o3_last_error(&kSquare) + sizeof "there is no input") != 7 + index) return (void *)"last error";
  return (void *)(uintptr_t)use_session(1 + index % 4, 100);
}

static void test_many_sessions(void **state) {
  (void)state;
  pthread_t threads[8];
  for (int i = 0; i < COUNT(threads); ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, session_thread, (void *)(intptr_t)i), 0);
  for (int i = 0; i < COUNT(threads); ++i) {
    void *wrong;
    assert_int_equal(pthread_join(threads[i], &wrong), 0);
    assert_null(wrong);
  }
}

static void test_default_threads(void **state) {
  (void)state;
  assert_null(use_session(0, 50));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_coverage),      cmocka_unit_test(test_huge_count),
      cmocka_unit_test(test_nested),        cmocka_unit_test(test_wake_ups),
      cmocka_unit_test(test_caller_waits),  cmocka_unit_test(test_create_and_destroy),
      cmocka_unit_test(test_one_cpu),       cmocka_unit_test(test_caller_moves),
      cmocka_unit_test(test_many_sessions), cmocka_unit_test(test_default_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
