/* Inference: types, shapes and known contents of an op's results from those of its operands.
 *
 * Each op of ir/ops.def whose result follows from its operands has a row in infer.def. Ops whose result shape
 * is given from outside (reshape, broadcast, slice, pad, resize, range, ...) have none: their builders state
 * it.
 */
#ifndef O3_ANALYSIS_INFER_H
#define O3_ANALYSIS_INFER_H

#include "analysis/shape.h"
#include "ir/build.h"

enum { O3_INFER_MAX_RESULTS = 4 };

/* One op about to be made. */
typedef struct o3_infer {
  MlirContext context;
  o3_arena_t *arena; /* for element lists; lives as long as the facts */
  o3_symbols_t *symbols;
  const char *op;  /* "o3.conv" */
  const char *who; /* "node 'Conv_3' (Conv)": for guards and errors */
  int num_operands;
  const o3_fact_t *const *operands;
  int num_attrs;
  const o3_attr_t *attrs;
  int num_results;
  o3_fact_t results[O3_INFER_MAX_RESULTS]; /* to be filled; zeroed on entry */
} o3_infer_t;

typedef o3_status_t (*o3_infer_fn_t)(o3_infer_t *in);

/* The rule for |op| ("o3.conv"), or NULL. */
o3_infer_fn_t o3_infer_find(const char *op);

/* Attributes of the op about to be made. */
MlirAttribute o3_infer_attr(const o3_infer_t *in, const char *name);
int64_t o3_infer_int(const o3_infer_t *in, const char *name, int64_t fallback);
bool o3_infer_bool(const o3_infer_t *in, const char *name, bool fallback);
bool o3_infer_string_is(const o3_infer_t *in, const char *name, const char *text);
/* The count, at most |capacity|; 0 when absent. */
int o3_infer_ints(const o3_infer_t *in, const char *name, int64_t *values, int capacity);

/* The NumPy broadcast of two shapes, with guards where two symbols meet. INVALID_MODEL when they clash. */
o3_status_t o3_infer_broadcast(o3_symbols_t *symbols, const char *who, const o3_shape_t *a,
                               const o3_shape_t *b, o3_shape_t *result) O3_MUST_USE;

/* An element list of |count| unknown elements, or NULL if |count| is too large to track (or memory is out).
 */
o3_element_t *o3_infer_elements(o3_arena_t *arena, int64_t count);
/* Static number of elements of a shape when it is at most O3_FACT_MAX_ELEMENTS, else -1. */
int64_t o3_infer_small_count(const o3_shape_t *shape);

/* INVALID_MODEL: "|who|: ...". */
o3_status_t o3_infer_error(const o3_infer_t *in, const char *format, ...) O3_PRINTF(2, 3) O3_MUST_USE;

#endif
