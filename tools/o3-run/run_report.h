/* What o3-run says on stdout, as text or as JSON. All append to a buffer; a buffer that failed for want of
 * memory is told by its |failed|. */
#ifndef O3_RUN_REPORT_H
#define O3_RUN_REPORT_H

#include "base/strbuf.h"
#include "run_model.h"
#include "run_options.h"
#include "run_profile.h"
#include "run_result.h"

/* For people. */
void o3_run_text_model(o3_strbuf_t *text, const o3_run_model_t *model);
void o3_run_text_result(o3_strbuf_t *text, const o3_run_result_t *result, const o3_run_options_t *options);
void o3_run_text_profile(o3_strbuf_t *text, const o3_run_profile_t *profile);

/* For programs. Numbers that JSON lacks are the strings "NaN", "Infinity" and "-Infinity". */
void o3_run_json_model(o3_strbuf_t *text, const o3_run_model_t *model);
void o3_run_json_result(o3_strbuf_t *text, const o3_run_result_t *result, const o3_run_options_t *options);

/* Appends element |index| of |tensor|: integers exactly, floats with |digits| significant digits. */
void o3_run_print_element(o3_strbuf_t *text, const o3_tensor_t *tensor, int64_t index, int digits);

/* Appends the row-major |index| of a tensor as "[0,17]". */
void o3_run_print_index(o3_strbuf_t *text, const o3_tensor_t *tensor, int64_t index);

#endif
