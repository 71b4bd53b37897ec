/* A product with few rows or columns waits for memory: its matrix is read once, and packing it would read and
 * write it once more. The matrix has to be contiguous along the sum, or along the results where these are. */
#include "target/cpu/thin_product.h"

#include "target/cpu/cpu_ir.h"
#include "target/target.h"

enum { LEAST_MANY = 8, LEAST_DEPTH = 16 };

static int64_t size_of(const o3_gemm_product_t *p, const o3_gemm_dims_t *dims) {
  return dims->count ? p->nest->sizes[dims->at[0]] : 1;
}

static bool is_contiguous(const o3_nest_operand_t *operand, int dim) {
  int64_t step;
  return o3_nest_step(operand, dim, &step) && step == 1;
}

static bool is_dots(const o3_gemm_product_t *p) { return is_contiguous(p->b, p->depth.at[0]); }

static bool is_sums(const o3_gemm_product_t *p) {
  return is_contiguous(p->b, p->columns.at[0]) && is_contiguous(p->c, p->columns.at[0]);
}

/* |dims| but for |kept| are around. */
static void keep(o3_gemm_product_t *p, o3_gemm_dims_t *dims, int kept) {
  for (int i = 0; i < dims->count; ++i) {
    if (i != kept) p->around.at[p->around.count++] = dims->at[i];
  }
  dims->at[0] = dims->at[kept];
  dims->count = 1;
}

static int largest(const o3_gemm_product_t *p, const o3_gemm_dims_t *dims) {
  int best = 0;
  for (int i = 1; i < dims->count; ++i) {
    int64_t size = p->nest->sizes[dims->at[i]], most = p->nest->sizes[dims->at[best]];
    if (most >= 0 && (size < 0 || size > most)) best = i;
  }
  return best;
}

static bool match(o3_nest_t *nest, int vectors, o3_gemm_product_t *p) {
  if (!o3_gemm_sort(nest, vectors, p) || p->depth.count != 1 || !p->columns.count) return false;
  int64_t few = o3_gemm_count(p, &p->rows, -1), depth = nest->sizes[p->depth.at[0]];
  if (few < 1 || few > O3_TARGET_THIN_ROWS || (depth >= 0 && depth < LEAST_DEPTH)) return false;
  if (p->rows.count) keep(p, &p->rows, largest(p, &p->rows));
  if (size_of(p, &p->rows) != few) return false;
  keep(p, &p->columns, largest(p, &p->columns));
  int64_t many = nest->sizes[p->columns.at[0]];
  return (many < 0 || many >= LEAST_MANY) && (is_dots(p) || is_sums(p));
}

bool o3_thin_match(o3_nest_t *nest, o3_gemm_product_t *p) { return match(nest, 0, p) || match(nest, 1, p); }

o3_status_t o3_thin_schedule(const o3_machine_t *machine, const o3_gemm_product_t *p,
                             o3_schedule_thin_t *schedule) {
  const o3_schedule_vectors_t product = {.bits = o3_type_bits(o3_type_element(mlirValueGetType(p->c->value))),
                                         .around = o3_gemm_count(p, &p->around, 1),
                                         .few = size_of(p, &p->rows),
                                         .many = size_of(p, &p->columns),
                                         .is_dots = is_dots(p)};
  *schedule = o3_schedule_thin(machine, &product);
  return o3_schedule_read(p->nest->op, O3_SCHEDULE_FAMILY_THIN, schedule);
}

o3_thin_t o3_thin_function(const o3_gemm_product_t *p, const o3_schedule_thin_t *schedule) {
  MlirType element = o3_type_element(mlirValueGetType(p->c->value));
  return (o3_thin_t){.type = mlirTypeIsAF64(element) ? "f64" : "f32",
                     .lanes = (int)schedule->lanes,
                     .few = (int)size_of(p, &p->rows),
                     .steps = (int)schedule->steps,
                     .span = (int)schedule->span,
                     .is_dots = is_dots(p)};
}

static MlirValue step(o3_builder_t *b, const o3_nest_operand_t *operand, const o3_gemm_dims_t *dims) {
  return dims->count ? o3_nest_step_value(operand, dims->at[0], b) : o3_build_index(b, 0);
}

void o3_thin_call(const o3_gemm_product_t *p, const o3_thin_t *thin, o3_builder_t *b, const MlirValue *ivs,
                  MlirValue lower, MlirValue upper, bool fresh) {
  char name[O3_THIN_NAME];
  const MlirValue arguments[] = {[O3_THIN_F] = p->a->flat,
                                 [O3_THIN_F_AT] = o3_nest_address(p->nest, p->a, b, ivs),
                                 [O3_THIN_F_FEW] = step(b, p->a, &p->rows),
                                 [O3_THIN_F_DEPTH] = step(b, p->a, &p->depth),
                                 [O3_THIN_R] = p->b->flat,
                                 [O3_THIN_R_AT] = o3_nest_address(p->nest, p->b, b, ivs),
                                 [O3_THIN_R_MANY] = step(b, p->b, &p->columns),
                                 [O3_THIN_R_DEPTH] = step(b, p->b, &p->depth),
                                 [O3_THIN_C] = p->c->flat,
                                 [O3_THIN_C_AT] = o3_nest_address(p->nest, p->c, b, ivs),
                                 [O3_THIN_C_FEW] = step(b, p->c, &p->rows),
                                 [O3_THIN_C_MANY] = step(b, p->c, &p->columns),
                                 [O3_THIN_LOWER] = lower,
                                 [O3_THIN_UPPER] = upper,
                                 [O3_THIN_DEPTH] = p->nest->size_values[p->depth.at[0]],
                                 [O3_THIN_FRESH] = o3_build_index(b, fresh)};
  o3_thin_name(thin, name);
  o3_cpu_call(b, name, O3_THIN_ARGUMENTS, arguments);
}
