/* The one place in the libraries that ends the process: a broken invariant of our own has no caller who
 * could do better, and going on would risk a wrong answer. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void o3_check_fail(const char *file, int line, const char *condition, const char *rule) {
  fprintf(stderr, "%s:%d: internal error: assertion '%s' failed%s%s\n", file, line, condition,
          *rule ? ": " : "", rule);
  abort();
}
