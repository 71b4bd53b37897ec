/* Errors are written into storage that exists already (the session's, the thread's): telling that
 * memory is out must not need memory. */
#include "error_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void o3rt_text_clear(o3rt_text_t *text) {
  text->length = 0;
  text->text[0] = '\0';
}

void o3rt_text_printf(o3rt_text_t *text, const char *format, ...) {
  size_t room = O3RT_TEXT_SIZE - text->length;
  va_list arguments;
  va_start(arguments, format);
  int written = vsnprintf(text->text + text->length, room, format, arguments);
  va_end(arguments);
  if (written >= 0 && (size_t)written < room) {
    text->length += (size_t)written;
    return;
  }
  text->length = O3RT_TEXT_SIZE - 1;
  memcpy(text->text + O3RT_TEXT_SIZE - sizeof "...", "...", sizeof "...");
}
