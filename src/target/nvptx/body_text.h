/* The scalar body of a linalg.generic as text of a kernel: arith ops as they are, math by the GPU's special
 * functions, so that no library is needed.
 *
 * Rounding to half precision and back between two ops of a body is left out, but for a Cast of the model;
 * sums of products may contract to FMA. exp, log, sqrt and quotients are within a few ULP of f32; erf and
 * tanh have an absolute error below 3e-5, which is for results in half precision only; erf of NaN is -1
 * there. GELU by erf is recognised: its error is at most a quarter of f16's last place, for small results
 * too, and NaN stays.
 */
#ifndef O3_TARGET_NVPTX_BODY_TEXT_H
#define O3_TARGET_NVPTX_BODY_TEXT_H

#include "target/cpu/nest.h"
#include "target/nvptx/kernel_text.h"

/* Ops of a body that are left out of it. */
enum { O3_BODY_MAX_BOUND = 32 };
typedef struct o3_body_bound {
  int count;
  MlirOperation ops[O3_BODY_MAX_BOUND];
  bool given[O3_BODY_MAX_BOUND]; /* the body's other ops may use the result, which the caller has */
} o3_body_bound_t;

/* The number of |op| among the bound ones, or -1; |bound|: NULL for none. */
int o3_body_bound_number(const o3_body_bound_t *bound, MlirOperation op);

/* Why the body cannot be written, a static text; NULL when it can. |half|: its results are in half precision.
 * |bound|: NULL for none. */
const char *o3_body_refuse(const o3_nest_t *nest, bool half, const o3_body_bound_t *bound);

/* Writes the body for |arguments|, values of the types of its block arguments; gives the value of its only
 * result. |bound|: NULL for none; |given|: for each of its ops, the result where it is given. */
o3_status_t o3_body_write(o3_kernel_text_t *t, const o3_nest_t *nest, const int *arguments,
                          const o3_body_bound_t *bound, const int *given, int *result) O3_MUST_USE;

/* A function of one body, for the module of a kernel; it is put in the place of each call. */
typedef struct o3_body_function {
  const char *kernel; /* name */
  int number;         /* of the kernel's functions */
  int count;          /* parameters */
  const char *const *types;
  const char *result; /* its type */
} o3_body_function_t;

/* Opens the function, gives its |arguments|; closes it, which returns |result|; calls it. */
void o3_body_begin_function(o3_kernel_text_t *t, const o3_body_function_t *function, int *arguments);
void o3_body_end_function(o3_kernel_text_t *t, const o3_body_function_t *function, int result);
int o3_body_call_function(o3_kernel_text_t *t, const o3_body_function_t *function, const int *arguments);

/* The combining op of a reduction's body ("arith.addf" ...): the body is op(the result so far, what does not
 * depend on it). NULL when it has another form. Static. */
const char *o3_body_combiner(const o3_nest_t *nest);

/* The value that the combiner leaves as it is, as MLIR text of f32. */
const char *o3_body_neutral(const char *combiner);

#endif
