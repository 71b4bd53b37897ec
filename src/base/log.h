/* Messages to the person who runs the compiler, on stderr: "o3c: warning: ...".
 *
 * Failures travel as o3_status_t and are printed once, by the tool that got them; libraries log what does
 * not stop them. The level and the program's name are process-wide; any thread may log, messages do
 * not mix.
 */
#ifndef O3_BASE_LOG_H
#define O3_BASE_LOG_H

#include "base/status.h"

typedef enum o3_log_level {
#define O3_LOG_LEVEL(id, text) O3_LOG_##id,
#include "base/log_levels.def"
#undef O3_LOG_LEVEL
} o3_log_level_t;

/* Messages beyond |level| are dropped. The start is O3_LOG_WARNING. */
void o3_log_level_set(o3_log_level_t level);

/* What stands before every message; |name| must live as long as the process (argv[0]'s base name, a
 * literal). The start is "o3". */
void o3_log_program_set(const char *name);

/* One message of |level|; a newline is added. */
void o3_log(o3_log_level_t level, const char *format, ...) O3_PRINTF(2, 3);

/* Prints a failure as an error with its code's name and destroys it. */
void o3_log_status(o3_status_t status);

#endif
