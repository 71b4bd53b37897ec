/* The pruned model as a file. */
#ifndef O3_TOOLS_PRUNE_WRITE_H
#define O3_TOOLS_PRUNE_WRITE_H

#include "prune_model.h"

/* Writes the model to |path|, and what it keeps in files of their own to |path|.data: both or none. All that
 * is not a pruned weight's data stays as it is, byte by byte. Refuses to overwrite what it reads. */
o3_status_t prune_write(prune_model_t *model, const char *source, const char *path) O3_MUST_USE;

#endif
