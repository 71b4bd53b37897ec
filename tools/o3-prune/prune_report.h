/* What o3-prune tells about its work. */
#ifndef O3_TOOLS_PRUNE_REPORT_H
#define O3_TOOLS_PRUNE_REPORT_H

#include "prune_model.h"

/* A row a layer and a total, as text or as one JSON object; false when |stream| cannot be written to. */
bool prune_report_text(FILE *stream, const prune_options_t *options, const prune_model_t *model);
bool prune_report_json(FILE *stream, const prune_options_t *options, const prune_model_t *model);

#endif
