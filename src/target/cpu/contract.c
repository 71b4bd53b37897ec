/* cpu-contract: products become calls of a packed, register-tiled kernel (gemm_text.h).
 *
 * Needs: linalg.generic on buffers. Guarantees: a generic that computes out += a * b in f32 or f64, with all
 * index expressions linear, is a parallel loop over blocks of the output; others are left as they are.
 *
 * Matrix products, batched or not, in any transposition, and convolutions, grouped or not, are one case
 * (gemm_product.h). A matrix times few vectors is not packed (thin_product.h). Left alone are other products
 * with few rows or columns, depthwise convolutions among them.
 *
 * In a contraction kernel of the fuse stage a task also runs, on its block of the output and while that is in
 * the cache, what the sums start at and what is done with them: other generics whose dims correspond to those
 * of the product through the dimensions of the output.
 */
#include <stdlib.h>

#include "target/cpu/blocked.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/gemm_product.h"
#include "target/cpu/gemm_text.h"
#include "target/cpu/halo.h"
#include "target/cpu/loops.h"
#include "target/cpu/product.h"
#include "target/cpu/thin_product.h"
#include "target/cpu/winograd_kernel.h"

enum { MAX_SIDE_OPS = 4 };

typedef struct contract {
  o3_pass_env_t *env;
  MlirModule module;
} contract_t;

/* ---- Blocks ---- */

/* How a product is computed: by packed blocks or, with few vectors, without packing. */
typedef struct kernel {
  bool is_thin;
  o3_schedule_packed_t packed;
  o3_schedule_thin_t thin;
  o3_gemm_shape_t shape;
  o3_thin_t function;
  int64_t rows, columns; /* of a task */
} kernel_t;

/* The product that |nest| is, thin or packed. */
static bool match(o3_nest_t *nest, o3_gemm_product_t *product, bool *is_thin) {
  *is_thin = o3_thin_match(nest, product);
  return *is_thin || o3_gemm_match(nest, product);
}

static o3_status_t read_schedule(const o3_machine_t *machine, const o3_gemm_product_t *p,
                                 o3_schedule_packed_t *schedule) {
  const o3_schedule_product_t product = {.bits = o3_type_bits(o3_type_element(mlirValueGetType(p->c->value))),
                                         .around = o3_gemm_count(p, &p->around, 1),
                                         .rows = p->nest->sizes[p->rows.at[0]],
                                         .columns = o3_gemm_count(p, &p->columns, -1)};
  *schedule = o3_schedule_packed(machine, &product);
  return o3_schedule_read(p->nest->op, O3_SCHEDULE_FAMILY_PACKED, schedule);
}

static o3_status_t read_kernel(const o3_machine_t *machine, const o3_gemm_product_t *p, bool is_thin,
                               kernel_t *kernel) {
  kernel->is_thin = is_thin;
  if (is_thin) {
    O3_TRY(o3_thin_schedule(machine, p, &kernel->thin));
    kernel->function = o3_thin_function(p, &kernel->thin);
    kernel->rows = kernel->function.few;
    kernel->columns = kernel->thin.span;
    return NULL;
  }
  O3_TRY(read_schedule(machine, p, &kernel->packed));
  kernel->shape =
      o3_gemm_shape(&kernel->packed, o3_type_bits(o3_type_element(mlirValueGetType(p->c->value))));
  kernel->rows = kernel->packed.row_block;
  kernel->columns = kernel->shape.columns;
  return NULL;
}

static int64_t block_work(const o3_gemm_product_t *p, const kernel_t *kernel) {
  int lanes = kernel->is_thin ? kernel->function.lanes : kernel->shape.lanes;
  double work = (double)kernel->rows * (double)kernel->columns / lanes;
  for (int i = 0; i < p->depth.count; ++i) {
    int64_t size = p->nest->sizes[p->depth.at[i]];
    work *= size < 0 ? 64 : (double)size;
  }
  return work < 1 ? 1 : work > 1e15 ? (int64_t)1e15 : (int64_t)work;
}

static MlirValue block_end(o3_builder_t *b, MlirValue start, int64_t size, MlirValue total) {
  return o3_build2(b, "arith.minsi", o3_build2(b, "arith.addi", start, o3_build_index(b, size)), total);
}

/* ---- Other ops on a block ---- */

/* A block: the places around it, and its ends. */
typedef struct block {
  const o3_gemm_product_t *p;
  const MlirValue *around;
  MlirValue row_lower, row_upper, column_lower, column_upper;
  o3_gemm_side_t *side;
} block_t;

static o3_status_t side_row(o3_builder_t *b, void *context, MlirValue row, const MlirValue *carried,
                            MlirValue *next) {
  const block_t *block = context;
  const o3_gemm_product_t *p = block->p;
  o3_gemm_dims_t columns;
  (void)carried, (void)next;
  o3_gemm_list_columns(p, &columns);
  o3_loops_frame_t frame = {.ranged = block->side->dims[columns.at[columns.count - 1]],
                            .lower = block->column_lower,
                            .upper = block->column_upper};
  for (int i = 0; i < p->around.count; ++i)
    o3_gemm_split_place(p, block->side, b, p->around.at[i], block->around[i], &frame);
  if (p->rows.count) o3_gemm_split_place(p, block->side, b, p->rows.at[0], row, &frame);
  return o3_loops_build(&block->side->nest, b, &frame);
}

static o3_status_t build_side(block_t *block, o3_builder_t *b, o3_gemm_side_t *side) {
  block->side = side;
  o3_for_t rows = {.lower = block->row_lower,
                   .upper = block->row_upper,
                   .step = o3_build_index(b, 1),
                   .body = side_row,
                   .context = block};
  return o3_build_for(b, &rows, NULL);
}

static o3_status_t build_sides(block_t *block, o3_builder_t *b, int count, o3_gemm_side_t *sides) {
  for (int i = 0; i < count; ++i) O3_TRY(build_side(block, b, &sides[i]));
  return NULL;
}

typedef struct sides {
  int num_before, num_after;
  o3_gemm_side_t before[MAX_SIDE_OPS], after[MAX_SIDE_OPS];
} sides_t;

static void call_kernel(const kernel_t *kernel, const block_t *block, o3_builder_t *b, const MlirValue *ivs,
                        bool fresh) {
  const o3_gemm_product_t *p = block->p;
  MlirValue operands[O3_GEMM_ARGUMENTS];
  char name[O3_GEMM_NAME];
  if (kernel->is_thin) {
    o3_thin_call(p, &kernel->function, b, ivs, block->column_lower, block->column_upper, fresh);
    return;
  }
  o3_gemm_arguments(p, b, ivs, operands);
  operands[O3_GEMM_M_LO] = block->row_lower;
  operands[O3_GEMM_M_HI] = block->row_upper;
  operands[O3_GEMM_N_LO] = block->column_lower;
  operands[O3_GEMM_N_HI] = block->column_upper;
  operands[O3_GEMM_FRESH] = o3_build_index(b, fresh);
  o3_gemm_block_name(&kernel->shape, name);
  o3_cpu_call(b, name, O3_GEMM_ARGUMENTS, operands);
}

static o3_status_t build_product(const o3_gemm_product_t *p, o3_builder_t *b, const kernel_t *kernel,
                                 sides_t *sides) {
  MlirValue sizes[O3_IR_MAX_RANK + 1], steps[O3_IR_MAX_RANK + 1], at[O3_IR_MAX_RANK + 1], ivs[O3_IR_MAX_RANK];
  int count = p->around.count;
  MlirValue zero = o3_build_index(b, 0), one = o3_build_index(b, 1);
  MlirValue rows = p->rows.count ? o3_gemm_size(p, b, &p->rows) : one,
            columns = o3_gemm_size(p, b, &p->columns);
  for (int i = 0; i < count; ++i) sizes[i] = p->nest->size_values[p->around.at[i]], steps[i] = one;
  sizes[count] = rows, steps[count] = o3_build_index(b, kernel->rows);
  sizes[count + 1] = columns, steps[count + 1] = o3_build_index(b, kernel->columns);
  o3_builder_t in = o3_cpu_parallel(b, count + 2, sizes, steps, block_work(p, kernel), at);
  for (int d = 0; d < p->nest->num_dims; ++d) ivs[d] = zero;
  for (int i = 0; i < count; ++i) ivs[p->around.at[i]] = at[i];
  block_t whole = {.p = p,
                   .around = at,
                   .row_lower = at[count],
                   .row_upper = block_end(&in, at[count], kernel->rows, rows),
                   .column_lower = at[count + 1],
                   .column_upper = block_end(&in, at[count + 1], kernel->columns, columns)};
  bool fresh = sides->num_before == 1 && o3_nest_is_zero(&sides->before[0].nest);
  if (!fresh) O3_TRY(build_sides(&whole, &in, sides->num_before, sides->before));
  call_kernel(kernel, &whole, &in, ivs, fresh);
  return build_sides(&whole, &in, sides->num_after, sides->after);
}

/* Once for each function. */
static o3_status_t add_kernel(contract_t *self, const kernel_t *kernel) {
  char name[O3_GEMM_NAME];
  if (kernel->is_thin)
    o3_thin_name(&kernel->function, name);
  else
    o3_gemm_block_name(&kernel->shape, name);
  if (!mlirOperationIsNull(o3_module_func(self->module, name))) return NULL;
  char *text = kernel->is_thin ? o3_thin_text(&kernel->function) : o3_gemm_text(&kernel->shape);
  O3_TRY_ALLOC(text);
  o3_status_t status = o3_cpu_add_functions(self->module, text, kernel->is_thin ? "thin" : "gemm");
  free(text);
  return status;
}

static o3_status_t emit(contract_t *self, o3_gemm_product_t *product, bool is_thin, o3_builder_t b,
                        sides_t *sides) {
  kernel_t kernel = {0};
  O3_TRY(read_kernel(self->env->machine, product, is_thin, &kernel));
  O3_TRY(add_kernel(self, &kernel));
  o3_nest_flatten(product->nest, &b);
  for (int i = 0; i < sides->num_before; ++i) o3_nest_flatten(&sides->before[i].nest, &b);
  for (int i = 0; i < sides->num_after; ++i) o3_nest_flatten(&sides->after[i].nest, &b);
  return build_product(product, &b, &kernel, sides);
}

static o3_status_t replace_product(MlirOperation op, void *context) {
  static _Thread_local o3_nest_t nest;
  static _Thread_local sides_t none;
  contract_t *self = context;
  o3_gemm_product_t product;
  bool done, is_thin;
  if (!o3_nest_read(op, &nest)) return NULL;
  O3_TRY(o3_halo_emit(self->env, op, &done));
  if (done) return NULL;
  if (o3_blocked_takes(op) && !o3_blocked_needs_start(op)) {
    const o3_product_kernel_t alone = {.product = op};
    return o3_product_emit(self->env, self->module, &alone);
  }
  o3_nest_merge(&nest);
  if (!match(&nest, &product, &is_thin)) return NULL;
  O3_TRY(emit(self, &product, is_thin, o3_builder_before(op), &none));
  mlirOperationDestroy(op);
  return NULL;
}

/* ---- Kernels of the fuse stage ---- */

static bool read_product(MlirOperation op, o3_nest_t *nest, o3_gemm_product_t *product, bool *is_thin) {
  if (!o3_nest_read_any(op, nest)) return false;
  o3_nest_merge(nest);
  return match(nest, product, is_thin);
}

const char *o3_product_refuse(MlirOperation op) {
  static _Thread_local o3_nest_t nest;
  o3_gemm_product_t product;
  bool is_thin;
  if (o3_blocked_takes(op)) return NULL;
  return read_product(op, &nest, &product, &is_thin) ? NULL
                                                     : "the register-tiled kernel does not take this product";
}

const char *o3_product_refuse_padding(const struct o3_gpu *gpu, MlirOperation op, MlirOperation padding) {
  (void)gpu;
  return o3_blocked_refuse_padding(op, padding);
}

const char *o3_product_refuse_epilogue(MlirOperation op, MlirOperation other) {
  static _Thread_local o3_nest_t nest;
  static _Thread_local o3_gemm_side_t side;
  o3_gemm_product_t product;
  bool is_thin;
  if (o3_winograd_takes(op)) return o3_winograd_refuse_epilogue(op, other);
  if (o3_blocked_takes(op)) return o3_blocked_refuse_epilogue(op, other);
  if (!read_product(op, &nest, &product, &is_thin))
    return "the register-tiled kernel does not take the product";
  if (!o3_gemm_read_side(&product, other, &side))
    return "its access maps are not those of loops over the result";
  return o3_gemm_merge_columns(&product, &side);
}

o3_status_t o3_product_cannot_take(MlirOperation op, const char *why) {
  return o3_status_create(O3_STATUS_INTERNAL,
                          "op '%.*s' is in the kernel of a product that cannot take it: %s",
                          O3_STR_ARGS(o3_op_label(op)), why);
}

static o3_status_t read_sides(const o3_gemm_product_t *product, int count, const MlirOperation *ops,
                              o3_gemm_side_t *sides) {
  for (int i = 0; i < count; ++i) {
    const char *why = o3_gemm_read_side(product, ops[i], &sides[i])
                          ? o3_gemm_merge_columns(product, &sides[i])
                          : "other loops";
    if (why) return o3_product_cannot_take(ops[i], why);
  }
  return NULL;
}

o3_status_t o3_product_schedule(o3_pass_env_t *env, MlirOperation op, MlirOperation padding) {
  static _Thread_local o3_nest_t nest;
  o3_gemm_product_t product;
  kernel_t kernel = {0};
  bool is_thin;
  const o3_blocked_part_t alone = {.row_length = 0};
  if (o3_blocked_takes(op)) return o3_blocked_schedule(env, op, padding, &alone);
  if (!read_product(op, &nest, &product, &is_thin)) return NULL;
  O3_TRY(read_kernel(env->machine, &product, is_thin, &kernel));
  MlirAttribute attr = is_thin ? o3_schedule_attr(env->context, O3_SCHEDULE_FAMILY_THIN, &kernel.thin)
                               : o3_schedule_attr(env->context, O3_SCHEDULE_FAMILY_PACKED, &kernel.packed);
  o3_op_attr_set(op, O3_SCHEDULE_ATTR, attr);
  return NULL;
}

o3_builder_t o3_product_builder(const o3_product_kernel_t *kernel) {
  return o3_builder_before(kernel->num_after ? kernel->after[kernel->num_after - 1] : kernel->product);
}

static o3_status_t emit_packed(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel) {
  static _Thread_local o3_nest_t nest;
  static _Thread_local sides_t sides;
  contract_t self = {env, module};
  o3_gemm_product_t product;
  bool is_thin;
  if (!read_product(kernel->product, &nest, &product, &is_thin))
    return o3_status_create(O3_STATUS_INTERNAL, "op '%.*s' is in a contraction kernel but no product",
                            O3_STR_ARGS(o3_op_label(kernel->product)));
  sides.num_before = kernel->num_before;
  sides.num_after = kernel->num_after;
  O3_TRY(read_sides(&product, kernel->num_before, kernel->before, sides.before));
  O3_TRY(read_sides(&product, kernel->num_after, kernel->after, sides.after));
  return emit(&self, &product, is_thin, o3_product_builder(kernel), &sides);
}

o3_status_t o3_product_emit(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel) {
  bool blocked = o3_blocked_takes(kernel->product);
  O3_TRY(blocked ? o3_blocked_emit(env, module, kernel) : emit_packed(env, module, kernel));
  mlirOperationDestroy(kernel->product);
  if (!mlirOperationIsNull(kernel->padding)) mlirOperationDestroy(kernel->padding);
  for (int i = 0; i < kernel->num_before; ++i) mlirOperationDestroy(kernel->before[i]);
  for (int i = 0; i < kernel->num_after; ++i) mlirOperationDestroy(kernel->after[i]);
  return NULL;
}

o3_status_t o3_cpu_contract(o3_pass_env_t *env, MlirModule module) {
  contract_t self = {env, module};
  o3_cpu_load_dialects(env->context);
  return o3_walk(o3_module_func(module, "main"), replace_product, &self);
}
