/* A bounded text that is built up piece by piece; what does not fit is cut and marked with "...". */
#ifndef O3_RUNTIME_ERROR_TEXT_H
#define O3_RUNTIME_ERROR_TEXT_H

#include <stddef.h>

#define O3RT_TEXT_SIZE 1024

typedef struct o3rt_text {
  size_t length; /* without the NUL */
  char text[O3RT_TEXT_SIZE];
} o3rt_text_t;

void o3rt_text_clear(o3rt_text_t *text);

/* Appends. */
void o3rt_text_printf(o3rt_text_t *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
