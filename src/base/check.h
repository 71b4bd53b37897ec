/* Assertions: what only we can cause. What a user, a file or a device can cause is an o3_status_t. */
#ifndef O3_BASE_CHECK_H
#define O3_BASE_CHECK_H

/* Prints the place, the condition and the rule (which may be ""), then aborts. */
_Noreturn void o3_check_fail(const char *file, int line, const char *condition, const char *rule);

/* Always compiled in: O3_ASSERT(index < count) or O3_ASSERT(index < count, "operands are counted once").
 * The rule is a literal. */
#define O3_ASSERT(condition, ...)                                                                         \
  do {                                                                                                    \
    if (__builtin_expect(!(condition), 0)) o3_check_fail(__FILE__, __LINE__, #condition, "" __VA_ARGS__); \
  } while (0)

/* A place that cannot be reached, such as the end of a switch over all enumerators. */
#define O3_UNREACHABLE(rule) o3_check_fail(__FILE__, __LINE__, "unreachable", (rule))

#endif
