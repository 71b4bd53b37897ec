#include "unit.h"

#include <stdio.h>
#include <string.h>

const char *unit_take_message(o3_status_t status) {
  static char message[4096];
  snprintf(message, sizeof message, "%s", o3_status_message(status));
  o3_status_destroy(status);
  return message;
}

void unit_assert_contains(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("'%s' lacks '%s'", text, part);
}
