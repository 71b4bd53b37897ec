/* The table of --sparse-format. */
#ifndef O3_DRIVER_SPARSE_FORMAT_H
#define O3_DRIVER_SPARSE_FORMAT_H

#include "base/status.h"

/* NULL for a supported format; UNSUPPORTED or INVALID_ARGUMENT with the list of those that are. */
o3_status_t o3_sparse_format_check(const char *format) O3_MUST_USE;

#endif
