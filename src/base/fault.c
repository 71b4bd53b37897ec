/* The state is one counter: allocations left until the failure, or IDLE. It starts as UNREAD so that the
 * environment is looked at once, at the first allocation, without a constructor or a lock. */
#include "base/fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"

enum { IDLE = 0, UNREAD = -1 };

static atomic_int_fast64_t left = UNREAD;
static atomic_bool failed;

static int64_t count_from_environment(void) {
  const char *text = getenv("O3_FAULT_ALLOC");
  if (!text) return IDLE;
  char *end;
  errno = 0;
  long long count = strtoll(text, &end, 10);
  if (!errno && end != text && !*end && count >= 0) return count;
  o3_log(O3_LOG_WARNING, "O3_FAULT_ALLOC is '%s', a number of allocations is needed: no fault injected",
         text);
  return IDLE;
}

void o3_fault_alloc_arm(uint64_t n) {
  atomic_store(&failed, false);
  atomic_store(&left, n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

static bool count_down(int_fast64_t now) {
  if (now == UNREAD) {
    if (atomic_compare_exchange_strong(&left, &now, count_from_environment())) now = atomic_load(&left);
  }
  while (now > 0)
    if (atomic_compare_exchange_weak(&left, &now, now - 1)) {
      if (now == 1) atomic_store(&failed, true);
      return now == 1;
    }
  return false;
}

bool o3_fault_alloc_should_fail(void) {
  int_fast64_t now = atomic_load_explicit(&left, memory_order_relaxed);
  return now != IDLE && count_down(now);
}

bool o3_fault_alloc_has_failed(void) { return atomic_load(&failed); }

void *o3_fault_malloc(size_t size) { return o3_fault_alloc_should_fail() ? NULL : malloc(size); }

void *o3_fault_calloc(size_t count, size_t size) {
  return o3_fault_alloc_should_fail() ? NULL : calloc(count, size);
}

void *o3_fault_realloc(void *memory, size_t size) {
  return o3_fault_alloc_should_fail() ? NULL : realloc(memory, size);
}
