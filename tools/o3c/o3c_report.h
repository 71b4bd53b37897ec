/* What o3c prints about a compilation. */
#ifndef O3_TOOLS_O3C_REPORT_H
#define O3_TOOLS_O3C_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "o3/compiler.h"

/* One JSON object and a newline; false when it could not be made or written. */
bool o3c_report_json(FILE *stream, const o3_compile_result_t *result);
bool o3c_report_json_error(FILE *stream, int32_t code, const char *message);

/* A table of stages, milliseconds and peak memory. */
void o3c_report_timing(FILE *stream, const o3_compile_result_t *result);

/* "1.4 MB" */
void o3c_report_bytes(char *text, size_t size, uint64_t bytes);

#endif
