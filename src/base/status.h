/* Status: how every fallible function of the compiler reports.
 *
 * A status is a pointer; NULL is success. A failure carries a code, a message and the context that
 * callers added on the way up. Whoever receives a status owns it: return it, destroy it, or join it.
 *
 *     O3_TRY(o3_file_map(path, &file));
 *     if (rank < 3)
 *       return o3_status_create(O3_STATUS_INVALID_MODEL, "input has rank %d, at least 3 expected", rank);
 */
#ifndef O3_BASE_STATUS_H
#define O3_BASE_STATUS_H

#include <stdarg.h>

typedef enum o3_status_code {
  O3_STATUS_OK = 0,
#define O3_STATUS_CODE(id, text) O3_STATUS_##id,
#include "base/status_codes.def"
#undef O3_STATUS_CODE
} o3_status_code_t;

typedef struct o3_status *o3_status_t;

#define O3_MUST_USE          __attribute__((warn_unused_result))
#define O3_NEVER_NULL        __attribute__((returns_nonnull))
#define O3_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* A new failure. Never returns NULL: when memory is out, a static out-of-memory status comes back. */
o3_status_t o3_status_create(o3_status_code_t code, const char *format, ...) O3_PRINTF(2, 3) O3_MUST_USE
O3_NEVER_NULL;

/* Puts "context: " before the message of |status|, which it takes and returns. NULL stays NULL. */
o3_status_t o3_status_annotate(o3_status_t status, const char *format, ...) O3_PRINTF(2, 3) O3_MUST_USE;

/* One status for two: the first failure stays, the second's message is appended. Takes both. */
o3_status_t o3_status_join(o3_status_t first, o3_status_t second) O3_MUST_USE;

o3_status_code_t o3_status_code(o3_status_t status);

/* The whole message, context first, without the code's name. Borrowed; "" for NULL. */
const char *o3_status_message(o3_status_t status);

/* "invalid model", "unsupported", ... Static. */
const char *o3_status_code_name(o3_status_code_t code);

void o3_status_destroy(o3_status_t status);

/* Leaves the function with the failure of |expr|, if it failed. */
#define O3_TRY(expr)              \
  do {                            \
    o3_status_t o3_try_ = (expr); \
    if (o3_try_) return o3_try_;  \
  } while (0)

/* The same, with context: O3_TRY_CONTEXT(expr, "node '%s'", name). */
#define O3_TRY_CONTEXT(expr, ...)                                 \
  do {                                                            \
    o3_status_t o3_try_ = (expr);                                 \
    if (o3_try_) return o3_status_annotate(o3_try_, __VA_ARGS__); \
  } while (0)

#endif
