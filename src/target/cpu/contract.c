/* cpu-contract: products become calls of a packed, register-tiled kernel (gemm_text.h).
 *
 * Needs: linalg.generic on buffers. Guarantees: a generic that computes out += a * b in f32 or f64, with all
 * index expressions linear, is a parallel loop over blocks of the output; others are left as they are.
 *
 * Matrix products, batched or not, in any transposition, and convolutions, grouped or not, are one case
 * (gemm_product.h). Left alone are products with few rows or columns (depthwise convolutions, products with
 * vectors): packing does not pay.
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
#include "target/cpu/winograd_kernel.h"

enum { MAX_SIDE_OPS = 4 };

typedef struct contract {
  o3_pass_env_t *env;
  MlirModule module;
} contract_t;

/* ---- Blocks ---- */

static o3_status_t read_schedule(const o3_machine_t *machine, const o3_gemm_product_t *p,
                                 o3_schedule_packed_t *schedule) {
  const o3_schedule_product_t product = {.bits = o3_type_bits(o3_type_element(mlirValueGetType(p->c->value))),
                                         .around = o3_gemm_count(p, &p->around, 1),
                                         .rows = p->nest->sizes[p->rows.at[0]],
                                         .columns = o3_gemm_count(p, &p->columns, -1)};
  *schedule = o3_schedule_packed(machine, &product);
  return o3_schedule_read(p->nest->op, O3_SCHEDULE_FAMILY_PACKED, schedule);
}

static int64_t block_work(const o3_gemm_product_t *p, const o3_gemm_shape_t *shape, int64_t rows) {
  double work = (double)rows * shape->columns / shape->lanes;
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
  o3_gemm_split_place(p, block->side, b, p->rows.at[0], row, &frame);
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

static o3_status_t build_product(const o3_gemm_product_t *p, o3_builder_t *b, const o3_gemm_shape_t *shape,
                                 int64_t block, sides_t *sides) {
  MlirValue sizes[O3_IR_MAX_RANK + 1], steps[O3_IR_MAX_RANK + 1], at[O3_IR_MAX_RANK + 1], ivs[O3_IR_MAX_RANK];
  char name[O3_GEMM_NAME];
  int count = p->around.count;
  MlirValue zero = o3_build_index(b, 0), one = o3_build_index(b, 1);
  MlirValue rows = o3_gemm_size(p, b, &p->rows), columns = o3_gemm_size(p, b, &p->columns);
  for (int i = 0; i < count; ++i) sizes[i] = p->nest->size_values[p->around.at[i]], steps[i] = one;
  sizes[count] = rows, steps[count] = o3_build_index(b, block);
  sizes[count + 1] = columns, steps[count + 1] = o3_build_index(b, shape->columns);
  o3_builder_t in = o3_cpu_parallel(b, count + 2, sizes, steps, block_work(p, shape, block), at);
  for (int d = 0; d < p->nest->num_dims; ++d) ivs[d] = zero;
  for (int i = 0; i < count; ++i) ivs[p->around.at[i]] = at[i];
  MlirValue operands[O3_GEMM_ARGUMENTS];
  o3_gemm_arguments(p, &in, ivs, operands);
  operands[O3_GEMM_M_LO] = at[count];
  operands[O3_GEMM_M_HI] = block_end(&in, at[count], block, rows);
  operands[O3_GEMM_N_LO] = at[count + 1];
  operands[O3_GEMM_N_HI] = block_end(&in, at[count + 1], shape->columns, columns);
  block_t whole = {.p = p,
                   .around = at,
                   .row_lower = operands[O3_GEMM_M_LO],
                   .row_upper = operands[O3_GEMM_M_HI],
                   .column_lower = operands[O3_GEMM_N_LO],
                   .column_upper = operands[O3_GEMM_N_HI]};
  bool fresh = sides->num_before == 1 && o3_nest_is_zero(&sides->before[0].nest);
  operands[O3_GEMM_FRESH] = o3_build_index(&in, fresh);
  if (!fresh) O3_TRY(build_sides(&whole, &in, sides->num_before, sides->before));
  o3_gemm_block_name(shape, name);
  o3_gemm_call(&in, name, O3_GEMM_ARGUMENTS, operands);
  return build_sides(&whole, &in, sides->num_after, sides->after);
}

/* Once for each shape. */
static o3_status_t add_kernel(contract_t *self, const o3_gemm_shape_t *shape) {
  char name[O3_GEMM_NAME];
  o3_gemm_block_name(shape, name);
  if (!mlirOperationIsNull(o3_module_func(self->module, name))) return NULL;
  char *text = o3_gemm_text(shape);
  O3_TRY_ALLOC(text);
  o3_status_t status = o3_cpu_add_functions(self->module, text, "gemm");
  free(text);
  return status;
}

static o3_status_t emit(contract_t *self, o3_gemm_product_t *product, o3_builder_t b, sides_t *sides) {
  int bits = o3_type_bits(o3_type_element(mlirValueGetType(product->c->value)));
  o3_schedule_packed_t schedule;
  O3_TRY(read_schedule(self->env->machine, product, &schedule));
  o3_gemm_shape_t shape = o3_gemm_shape(&schedule, bits);
  O3_TRY(add_kernel(self, &shape));
  o3_nest_flatten(product->nest, &b);
  for (int i = 0; i < sides->num_before; ++i) o3_nest_flatten(&sides->before[i].nest, &b);
  for (int i = 0; i < sides->num_after; ++i) o3_nest_flatten(&sides->after[i].nest, &b);
  return build_product(product, &b, &shape, schedule.row_block, sides);
}

static o3_status_t replace_product(MlirOperation op, void *context) {
  static _Thread_local o3_nest_t nest;
  static _Thread_local sides_t none;
  contract_t *self = context;
  o3_gemm_product_t product;
  bool done;
  if (!o3_nest_read(op, &nest)) return NULL;
  O3_TRY(o3_halo_emit(self->env, op, &done));
  if (done) return NULL;
  if (o3_blocked_takes(op) && !o3_blocked_needs_start(op)) {
    const o3_product_kernel_t alone = {.product = op};
    return o3_product_emit(self->env, self->module, &alone);
  }
  o3_nest_merge(&nest);
  if (!o3_gemm_match(&nest, &product)) return NULL;
  O3_TRY(emit(self, &product, o3_builder_before(op), &none));
  mlirOperationDestroy(op);
  return NULL;
}

/* ---- Kernels of the fuse stage ---- */

static bool read_product(MlirOperation op, o3_nest_t *nest, o3_gemm_product_t *product) {
  if (!o3_nest_read_any(op, nest)) return false;
  o3_nest_merge(nest);
  return o3_gemm_match(nest, product);
}

const char *o3_product_refuse(MlirOperation op) {
  static _Thread_local o3_nest_t nest;
  o3_gemm_product_t product;
  if (o3_blocked_takes(op)) return NULL;
  return read_product(op, &nest, &product) ? NULL : "the register-tiled kernel does not take this product";
}

const char *o3_product_refuse_padding(MlirOperation op, MlirOperation padding) {
  return o3_blocked_refuse_padding(op, padding);
}

const char *o3_product_refuse_epilogue(MlirOperation op, MlirOperation other) {
  static _Thread_local o3_nest_t nest;
  static _Thread_local o3_gemm_side_t side;
  o3_gemm_product_t product;
  if (o3_winograd_takes(op)) return o3_winograd_refuse_epilogue(op, other);
  if (o3_blocked_takes(op)) return o3_blocked_refuse_epilogue(op, other);
  if (!read_product(op, &nest, &product)) return "the register-tiled kernel does not take the product";
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
  o3_schedule_packed_t schedule;
  const o3_blocked_part_t alone = {.row_length = 0};
  if (o3_blocked_takes(op)) return o3_blocked_schedule(env, op, padding, &alone);
  if (!read_product(op, &nest, &product)) return NULL;
  O3_TRY(read_schedule(env->machine, &product, &schedule));
  o3_op_attr_set(op, O3_SCHEDULE_ATTR, o3_schedule_attr(env->context, O3_SCHEDULE_FAMILY_PACKED, &schedule));
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
  if (!read_product(kernel->product, &nest, &product))
    return o3_status_create(O3_STATUS_INTERNAL, "op '%.*s' is in a contraction kernel but no product",
                            O3_STR_ARGS(o3_op_label(kernel->product)));
  sides.num_before = kernel->num_before;
  sides.num_after = kernel->num_after;
  O3_TRY(read_sides(&product, kernel->num_before, kernel->before, sides.before));
  O3_TRY(read_sides(&product, kernel->num_after, kernel->after, sides.after));
  return emit(&self, &product, o3_product_builder(kernel), &sides);
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
