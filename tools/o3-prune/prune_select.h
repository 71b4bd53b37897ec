/* Which weights become zero. */
#ifndef O3_TOOLS_PRUNE_SELECT_H
#define O3_TOOLS_PRUNE_SELECT_H

#include "prune_model.h"

/* Sets the weights of all layers that are not skipped to zero as |options| asks, and fills their counts. */
o3_status_t prune_select(const prune_options_t *options, prune_model_t *model) O3_MUST_USE;

#endif
