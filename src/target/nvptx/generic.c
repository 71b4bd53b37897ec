#include "target/nvptx/generic.h"

#include <string.h>

#include "fuse/kernel_body.h"
#include "schedule/gpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/nvptx/lane_kernel.h"
#include "target/nvptx/nvptx_ir.h"
#include "target/nvptx/thread_code.h"
#include "target/nvptx/tile_kernel.h"

/* Fewer elements than this for each multiprocessor do not fill a card with a thread each: with sums of at
 * least LONG_SUM terms each gets a block. */
enum { FEW_ELEMENTS = 128, LONG_SUM = 128 };

typedef struct generic {
  o3_pass_env_t *env;
  const char *label;
  int num_ops;
  MlirOperation ops[O3_KERNEL_MAX_OPS];
  int positions[O3_KERNEL_MAX_OPS][O3_IR_MAX_RANK]; /* for each op, its dim that walks the result's dimension
                                                       r; -1 for one that is no part of |rows| */
  o3_flat_dims_t rows;     /* dimensions of the result, of which each thread or block has one place */
  const o3_rows_t *values; /* kind rows: buffers of a row in shared memory; or NULL */
  MlirValue threads;       /* index: of a block */
} generic_t;

static void set_label(const generic_t *self, MlirOperation launch, int64_t elements) {
  o3_op_attr_set(launch, O3_NVPTX_ELEMENTS_ATTR, o3_attr_i64(mlirOperationGetContext(launch), elements));
  if (self->label)
    o3_op_attr_set(launch, "o3.label", o3_attr_string(mlirOperationGetContext(launch), self->label));
}

static o3_status_t read(const generic_t *self, int index, o3_nest_t *nest) {
  if (o3_nest_read(self->ops[index], nest)) return NULL;
  return o3_status_create(O3_STATUS_UNSUPPORTED,
                          "node '%.*s': its loops have no form that a GPU kernel takes",
                          O3_STR_ARGS(o3_op_label(self->ops[index])));
}

/* ---- The place of a thread or block ---- */

/* Which dims of op |index| have a place, by the dimensions of its result. */
static void fix_dims(const generic_t *self, int index, const MlirValue *places, o3_loops_frame_t *frame) {
  *frame = (o3_loops_frame_t){.ranged = -1};
  for (int i = 0; i < self->rows.count; ++i) {
    int dim = self->positions[index][self->rows.dims[i]];
    if (dim < 0) continue;
    frame->fixed[dim] = true;
    frame->ivs[dim] = places[self->rows.dims[i]];
  }
}

/* The dim that walks dimension |r| of the op's result alone; -1 when there is none. */
static int walking_dim(const o3_nest_t *nest, int r) {
  const o3_nest_operand_t *out = &nest->operands[nest->num_inputs];
  if (r >= out->num_terms || !mlirAffineExprIsADim(out->all_exprs[r])) return -1;
  return (int)mlirAffineDimExprGetPosition(out->all_exprs[r]);
}

/* ---- A thread an element ---- */

typedef struct element {
  generic_t *self;
  o3_nest_t *nests;
  MlirValue linear;
} element_t;

static o3_status_t element_code(o3_builder_t *b, void *context, MlirValue *yields) {
  element_t *it = context;
  MlirValue places[O3_IR_MAX_RANK];
  (void)yields;
  o3_flat_dims_split(&it->self->rows, b, it->linear, places);
  for (int i = 0; i < it->self->num_ops; ++i) {
    o3_loops_frame_t frame;
    fix_dims(it->self, i, places, &frame);
    O3_TRY(o3_loops_build(&it->nests[i], b, &frame));
  }
  return NULL;
}

/* block * threads + thread, as index. */
static MlirValue linear_thread(o3_builder_t *b) {
  MlirValue block = o3_nvptx_to_index(b, o3_nvptx_block(b)),
            thread = o3_nvptx_to_index(b, o3_nvptx_thread(b));
  return o3_build2(b, "arith.addi",
                   o3_build2(b, "arith.muli", block, o3_build_index(b, O3_GPU_BLOCK_THREADS)), thread);
}

static o3_status_t emit_elements(generic_t *self, o3_builder_t *b, o3_nest_t *nests) {
  MlirValue threads = o3_build_index(b, O3_GPU_BLOCK_THREADS);
  MlirValue grid = o3_build2(b, "arith.ceildivsi", self->rows.total, threads);
  o3_nvptx_region_t region = o3_nvptx_open(b, grid, O3_GPU_BLOCK_THREADS, 0);
  element_t it = {self, nests, linear_thread(&region.inside)};
  set_label(self, region.launch, O3_GPU_BLOCK_THREADS);
  o3_if_t guard = {.condition = o3_build_cmpi(&region.inside, O3_CMPI_ULT, it.linear, self->rows.total),
                   .then_body = element_code,
                   .context = &it};
  return o3_build_if(&region.inside, &guard, NULL);
}

/* ---- A block a row ---- */

typedef struct block_op {
  generic_t *self;
  o3_nest_t *nest;
  o3_loops_frame_t frame;
  o3_flat_dims_t
      shared;          /* what the threads of the block share out: parallel dims, or those of the reduction */
  const char *combine; /* NULL: each element by one thread */
  MlirValue thread, partials;
  MlirType type;
} block_op_t;

static o3_status_t strided_element(o3_builder_t *b, void *context, MlirValue at, const MlirValue *carried,
                                   MlirValue *next) {
  const block_op_t *it = context;
  o3_loops_frame_t frame = it->frame;
  (void)carried, (void)next;
  for (int i = 0; i < it->shared.count; ++i) frame.fixed[it->shared.dims[i]] = true;
  o3_flat_dims_split(&it->shared, b, at, frame.ivs);
  return o3_loops_build(it->nest, b, &frame);
}

static MlirValue load_operand(const o3_nest_t *nest, const o3_nest_operand_t *operand, o3_builder_t *b,
                              const MlirValue *ivs) {
  if (!operand->is_memref) return operand->value;
  return o3_build1(b, "memref.load", o3_type_element(mlirValueGetType(operand->flat)),
                   O3_VALUES(operand->flat, o3_nest_address(nest, operand, b, ivs)));
}

/* Ivs of the dims that have a place; merged dims have none and nothing asks for them. */
static void start_ivs(const block_op_t *it, MlirValue *ivs) {
  for (int d = 0; d < it->nest->num_dims; ++d)
    ivs[d] = it->frame.fixed[d] ? it->frame.ivs[d] : it->nest->size_values[d];
}

static o3_status_t partial_term(o3_builder_t *b, void *context, MlirValue at, const MlirValue *carried,
                                MlirValue *next) {
  const block_op_t *it = context;
  MlirValue ivs[O3_IR_MAX_RANK], arguments[O3_NEST_MAX_OPERANDS], yields[O3_NEST_MAX_OPERANDS];
  start_ivs(it, ivs);
  o3_flat_dims_split(&it->shared, b, at, ivs);
  for (int i = 0; i < it->nest->num_inputs; ++i)
    arguments[i] = load_operand(it->nest, &it->nest->operands[i], b, ivs);
  arguments[it->nest->num_inputs] = carried[0];
  O3_TRY(o3_nest_clone_body(it->nest, b, arguments, ivs, yields));
  next[0] = yields[0];
  return NULL;
}

/* for at = thread; at < total; at += threads */
static o3_status_t strided_loop(o3_builder_t *b, block_op_t *it, o3_for_body_fn_t body, int num_carried,
                                const MlirValue *inits, MlirValue *results) {
  o3_for_t loop = {.lower = it->thread,
                   .upper = it->shared.total,
                   .step = it->self->threads,
                   .num_carried = num_carried,
                   .inits = inits,
                   .body = body,
                   .context = it};
  return o3_build_for(b, &loop, results);
}

typedef struct halving {
  const block_op_t *op;
  int64_t distance;
} halving_t;

static MlirValue partial_at(o3_builder_t *b, const block_op_t *it, MlirValue index) {
  return o3_build1(b, "memref.load", it->type, O3_VALUES(it->partials, index));
}

static o3_status_t halve(o3_builder_t *b, void *context, MlirValue *yields) {
  const halving_t *it = context;
  (void)yields;
  MlirValue other = o3_build2(b, "arith.addi", it->op->thread, o3_build_index(b, it->distance));
  MlirValue sum =
      o3_build2(b, it->op->combine, partial_at(b, it->op, it->op->thread), partial_at(b, it->op, other));
  o3_build0(b, "memref.store", O3_VALUES(sum, it->op->partials, it->op->thread));
  return NULL;
}

static o3_status_t finish_sum(o3_builder_t *b, void *context, MlirValue *yields) {
  const block_op_t *it = context;
  const o3_nest_operand_t *out = &it->nest->operands[it->nest->num_inputs];
  MlirValue ivs[O3_IR_MAX_RANK];
  (void)yields;
  start_ivs(it, ivs);
  MlirValue address = o3_nest_address(it->nest, out, b, ivs);
  MlirValue old = o3_build1(b, "memref.load", it->type, O3_VALUES(out->flat, address));
  MlirValue sum = o3_build2(b, it->combine, old, partial_at(b, it, o3_build_index(b, 0)));
  o3_build0(b, "memref.store", O3_VALUES(sum, out->flat, address));
  return NULL;
}

static o3_status_t if_thread_below(o3_builder_t *b, const block_op_t *it, int64_t limit, o3_if_body_fn_t body,
                                   void *context) {
  o3_if_t branch = {.condition = o3_build_cmpi(b, O3_CMPI_ULT, it->thread, o3_build_index(b, limit)),
                    .then_body = body,
                    .context = context};
  return o3_build_if(b, &branch, NULL);
}

/* Each thread sums its part, then halves of the threads add the others' sums. */
static o3_status_t emit_block_sum(o3_builder_t *b, block_op_t *it) {
  MlirValue identity = o3_combiner_identity(b, it->combine, it->type), sum;
  O3_TRY(strided_loop(b, it, partial_term, 1, &identity, &sum));
  o3_build0(b, "memref.store", O3_VALUES(sum, it->partials, it->thread));
  o3_nvptx_barrier(b);
  for (int64_t distance = O3_GPU_BLOCK_THREADS / 2; distance; distance /= 2) {
    halving_t step = {it, distance};
    O3_TRY(if_thread_below(b, it, distance, halve, &step));
    o3_nvptx_barrier(b);
  }
  return if_thread_below(b, it, 1, finish_sum, it);
}

static void share_dims(block_op_t *it, bool reductions) {
  it->shared = (o3_flat_dims_t){0};
  for (int d = 0; d < it->nest->num_dims; ++d) {
    bool taken = it->nest->merged_into[d] >= 0 || it->frame.fixed[d];
    if (!taken && it->nest->reduction[d] == reductions)
      o3_flat_dims_add(&it->shared, d, it->nest->size_values[d], it->nest->sizes[d]);
  }
}

/* Values of a row: the dimensions that count rows have no extent in shared memory. The first of the buffers
 * is the result, which has. */
static void stay_in_row(const generic_t *self, o3_nest_t *nest) {
  for (int k = 0; self->values && k < nest->num_operands; ++k) {
    o3_nest_operand_t *operand = &nest->operands[k];
    const o3_row_dims_t *dims = o3_rows_find(self->values, operand->value);
    if (!dims || dims == &self->values->known[0]) continue;
    operand->is_contiguous = false;
    for (int i = 0; i < self->values->num_rows; ++i) operand->strides[dims->at[i]] = 0;
  }
}

/* Loops of one iteration are none to share. */
static void fix_single_iterations(o3_builder_t *b, block_op_t *it) {
  for (int d = 0; d < it->nest->num_dims; ++d) {
    if (it->nest->reduction[d] || it->frame.fixed[d] || it->nest->sizes[d] != 1) continue;
    it->frame.fixed[d] = true;
    it->frame.ivs[d] = o3_build_index(b, 0);
  }
}

static o3_status_t emit_block_op(o3_builder_t *b, block_op_t *it) {
  stay_in_row(it->self, it->nest);
  fix_single_iterations(b, it);
  o3_nest_merge_around(it->nest, it->frame.fixed);
  o3_nest_flatten(it->nest, b);
  bool sums = o3_combiner_fits(it->nest, &it->combine);
  share_dims(it, false);
  bool single = !it->shared.count;
  if (single) share_dims(it, true);
  bool split = single && sums && it->shared.count;
  if (single && !split) it->shared = (o3_flat_dims_t){0};
  o3_flat_dims_finish(&it->shared, b);
  if (!split) return strided_loop(b, it, strided_element, 0, NULL, NULL);
  it->type = o3_type_element(mlirValueGetType(it->nest->operands[it->nest->num_inputs].value));
  it->partials =
      o3_nvptx_shared_view(b, o3_nvptx_shared(b), 0, 1, (int64_t[]){O3_GPU_BLOCK_THREADS}, it->type);
  O3_TRY(o3_walk(it->nest->op, o3_loops_relax, it->nest));
  return emit_block_sum(b, it);
}

static int64_t round_up(int64_t bytes) { return (bytes + 15) / 16 * 16; }

/* A row's values: memref<8x12x128xf32>, rows 0 and 1: memref<1x1x128xf32, 3>. */
static o3_status_t place_values(o3_rows_t *rows, o3_builder_t *b, int64_t *bytes) {
  *bytes = O3_NVPTX_PARTIAL_BYTES;
  for (int k = 1; k < rows->num_known; ++k) {
    o3_row_dims_t *buffer = &rows->known[k];
    MlirType type = mlirValueGetType(buffer->buffer);
    int64_t sizes[O3_IR_MAX_RANK], count = 1;
    int rank = o3_type_rank(type);
    for (int r = 0; r < rank; ++r) sizes[r] = o3_type_dim(type, r);
    for (int i = 0; i < rows->num_rows; ++i) sizes[buffer->at[i]] = 1;
    for (int r = 0; r < rank; ++r) {
      if (sizes[r] < 0)
        return o3_kernel_internal(rows->inlined, "a row of unknown length cannot be in shared memory");
      count *= sizes[r];
    }
    MlirValue view = o3_nvptx_shared_view(b, o3_nvptx_shared(b), *bytes, rank, sizes, o3_type_element(type));
    mlirValueReplaceAllUsesOfWith(buffer->buffer, view);
    buffer->buffer = view;
    *bytes += round_up(count * (o3_type_bits(o3_type_element(type)) / 8));
  }
  return NULL;
}

static o3_status_t emit_blocks(generic_t *self, o3_builder_t *b, o3_rows_t *rows) {
  static _Thread_local o3_nest_t nest;
  int64_t bytes = O3_NVPTX_PARTIAL_BYTES;
  o3_nvptx_region_t region = o3_nvptx_open(b, self->rows.total, O3_GPU_BLOCK_THREADS, 0);
  o3_builder_t *in = &region.inside;
  MlirValue places[O3_IR_MAX_RANK];
  set_label(self, region.launch, 1);
  block_op_t it = {.self = self, .nest = &nest, .thread = o3_nvptx_to_index(in, o3_nvptx_thread(in))};
  MlirValue block = o3_nvptx_to_index(in, o3_nvptx_block(in));
  self->threads = o3_build_index(in, O3_GPU_BLOCK_THREADS);
  o3_flat_dims_split(&self->rows, in, block, places);
  if (rows) O3_TRY(place_values(rows, in, &bytes));
  for (int i = 0; i < self->num_ops; ++i) {
    if (i) o3_nvptx_barrier(in);
    O3_TRY(read(self, i, &nest));
    fix_dims(self, i, places, &it.frame);
    O3_TRY(emit_block_op(in, &it));
  }
  o3_builder_t before = o3_builder_before(region.launch);
  mlirOperationSetOperand(region.launch, 6, o3_build_int(&before, mlirIntegerTypeGet(b->context, 32), bytes));
  return NULL;
}

/* ---- Choosing ---- */

static void destroy_ops(generic_t *self) {
  for (int i = self->num_ops - 1; i >= 0; --i) mlirOperationDestroy(self->ops[i]);
}

/* The number of terms of each element's sum; 0 when it is known only at run time. */
static int64_t terms_of(const o3_nest_t *nest) {
  int64_t terms = 1;
  for (int d = 0; d < nest->num_dims; ++d) {
    if (!nest->reduction[d]) continue;
    if (nest->sizes[d] < 0 || __builtin_mul_overflow(terms, nest->sizes[d], &terms)) return 0;
  }
  return terms;
}

static bool wants_blocks(const generic_t *self, const o3_nest_t *nest) {
  const char *op;
  int64_t terms = terms_of(nest);
  bool is_long = terms == 0 || terms >= LONG_SUM;
  int64_t most = (int64_t)self->env->machine->gpu->multiprocessors * FEW_ELEMENTS;
  bool few = self->rows.known >= 0 && self->rows.known <= most;
  return few && is_long && terms != 1 && o3_combiner_fits(nest, &op);
}

/* Several elements a thread, where sizes are known; blocks where threads would be few, but not where those
 * can share the sums of neighbouring results. */
static o3_status_t emit_places(generic_t *self, o3_builder_t *b, o3_nest_t *nests, const o3_nest_t *product,
                               bool *wants) {
  o3_lane_ops_t ops = {self->num_ops, nests, self->positions, &self->rows};
  o3_lane_plan_t plan = {.parts = 1};
  MlirOperation launch;
  const char *why_not;
  O3_TRY(o3_lanes_plan(&ops, self->env->machine->gpu->multiprocessors, &plan, &why_not));
  *wants = (why_not || plan.parts == 1) && wants_blocks(self, product);
  if (*wants) return NULL;
  if (why_not) return emit_elements(self, b, nests);
  O3_TRY(o3_lanes_build(&ops, &plan, b, &launch));
  set_label(self, launch, o3_lanes_a_block(&plan));
  return NULL;
}

/* Places are counted by dims themselves: positions are the identity. */
static void count_by_dims(generic_t *self, o3_nest_t *nest, o3_builder_t *b) {
  for (int d = 0; d < nest->num_dims; ++d) {
    bool counted = nest->merged_into[d] < 0 && !nest->reduction[d];
    self->positions[0][d] = counted ? d : -1;
    if (counted) o3_flat_dims_add(&self->rows, d, nest->size_values[d], nest->sizes[d]);
  }
  o3_flat_dims_finish(&self->rows, b);
}

static o3_status_t emit_tiles(generic_t *self, o3_builder_t *b, o3_nest_t *nest, bool *taken) {
  o3_tile_plan_t plan;
  MlirOperation launch;
  *taken = !o3_tile_plan(nest, &plan);
  if (!*taken) return NULL;
  O3_TRY(o3_tile_build(nest, &plan, b, &launch));
  set_label(self, launch, O3_TILE_ELEMENTS);
  return NULL;
}

static o3_status_t emit_single(generic_t *self) {
  static _Thread_local o3_nest_t nest;
  bool taken, blocks;
  o3_builder_t b = o3_builder_before(self->ops[0]);
  O3_TRY(read(self, 0, &nest));
  o3_nest_merge(&nest);
  o3_nest_flatten(&nest, &b);
  O3_TRY(emit_tiles(self, &b, &nest, &taken));
  if (taken) {
    destroy_ops(self);
    return NULL;
  }
  count_by_dims(self, &nest, &b);
  O3_TRY(emit_places(self, &b, &nest, &nest, &blocks));
  if (blocks) {
    self->rows = (o3_flat_dims_t){0};
    O3_TRY(read(self, 0, &nest));
    o3_nest_flatten(&nest, &b);
    count_by_dims(self, &nest, &b);
    O3_TRY(emit_blocks(self, &b, NULL));
  }
  destroy_ops(self);
  return NULL;
}

o3_status_t o3_nvptx_generic_op(o3_pass_env_t *env, MlirOperation op) {
  static _Thread_local generic_t self;
  self = (generic_t){.env = env, .num_ops = 1, .ops = {op}};
  return emit_single(&self);
}

/* Whether no body reads or writes the kernel's own buffers: they tell the shapes of windows. */
static bool tell_shapes(const o3_inlined_t *kernel) {
  for (int i = 0; i < kernel->num_buffers; ++i) {
    MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(kernel->buffers[i], 0));
    for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
      MlirOperation op = mlirOpOperandGetOwner(use);
      if (!o3_op_is(op, "linalg.generic")) return false;
      MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
      MlirValue argument = mlirBlockGetArgument(body, mlirOpOperandGetOperandNumber(use));
      if (!mlirOpOperandIsNull(mlirValueGetFirstUse(argument))) return false;
    }
  }
  return true;
}

/* Every op walks every dimension of the one result by a dim of its own. */
static o3_status_t count_by_result(generic_t *self, const o3_inlined_t *kernel, o3_nest_t *nests,
                                   bool *fits) {
  MlirValue out = mlirOperationGetOperand(kernel->call, mlirOperationGetNumOperands(kernel->call) - 1);
  int rank = o3_type_rank(mlirValueGetType(out));
  *fits = tell_shapes(kernel);
  for (int i = 0; *fits && i < self->num_ops; ++i) {
    O3_TRY(read(self, i, &nests[i]));
    const o3_nest_operand_t *written = &nests[i].operands[nests[i].num_inputs];
    *fits = nests[i].num_operands == nests[i].num_inputs + 1 && mlirValueEqual(written->value, out);
    for (int r = 0; *fits && r < rank; ++r) {
      self->positions[i][r] = walking_dim(&nests[i], r);
      *fits = self->positions[i][r] >= 0;
    }
  }
  return NULL;
}

static const o3_nest_t *find_product(const generic_t *self, const o3_nest_t *nests) {
  for (int i = 0; i < self->num_ops; ++i)
    if (terms_of(&nests[i]) != 1) return &nests[i];
  return &nests[0];
}

static o3_status_t emit_one_by_one(generic_t *all) {
  static _Thread_local generic_t one;
  for (int i = 0; i < all->num_ops; ++i) {
    one = (generic_t){.env = all->env, .label = all->label, .num_ops = 1, .ops = {all->ops[i]}};
    O3_TRY(emit_single(&one));
  }
  return NULL;
}

enum { MAX_JOINED = 16 };

static o3_status_t emit_contraction(generic_t *self, o3_inlined_t *kernel) {
  static _Thread_local o3_nest_t nests[MAX_JOINED];
  bool fits = self->num_ops <= MAX_JOINED;
  o3_builder_t b = o3_builder_before(kernel->call);
  if (fits) O3_TRY(count_by_result(self, kernel, nests, &fits));
  if (!fits && kernel->num_buffers > 0 && !tell_shapes(kernel))
    return o3_kernel_internal(kernel, "a buffer of its own would lie in the host's memory");
  if (!fits) return emit_one_by_one(self);
  for (int i = 0; i < self->num_ops; ++i) o3_nest_flatten(&nests[i], &b);
  const o3_nest_t *product = find_product(self, nests);
  const int *positions = self->positions[product - nests];
  int rank = product->operands[product->num_inputs].num_terms;
  for (int r = 0; r < rank; ++r)
    o3_flat_dims_add(&self->rows, r, product->size_values[positions[r]], product->sizes[positions[r]]);
  o3_flat_dims_finish(&self->rows, &b);
  bool blocks;
  O3_TRY(emit_places(self, &b, nests, product, &blocks));
  if (blocks) O3_TRY(emit_blocks(self, &b, NULL));
  destroy_ops(self);
  return NULL;
}

static o3_status_t emit_rows(generic_t *self, o3_inlined_t *kernel) {
  static _Thread_local o3_rows_t rows;
  o3_builder_t b = o3_builder_before(kernel->call);
  MlirValue out = mlirOperationGetOperand(kernel->call, mlirOperationGetNumOperands(kernel->call) - 1);
  MlirType type = mlirValueGetType(out);
  rows = (o3_rows_t){.inlined = kernel};
  O3_TRY(o3_rows_trace(&rows, out));
  self->values = &rows;
  for (int i = 0; i < rows.num_rows; ++i) {
    int r = rows.known[0].at[i];
    int64_t known = o3_type_dim(type, r);
    MlirValue size = known >= 0 ? o3_build_index(&b, known)
                                : o3_build1(&b, "memref.dim", o3_build_index_type(&b),
                                            O3_VALUES(out, o3_build_index(&b, r)));
    o3_flat_dims_add(&self->rows, i, size, known);
    for (int k = 0; k < self->num_ops; ++k) self->positions[k][i] = rows.loops[k][i];
  }
  o3_flat_dims_finish(&self->rows, &b);
  O3_TRY(emit_blocks(self, &b, &rows));
  destroy_ops(self);
  for (int i = 0; i < kernel->num_buffers; ++i) mlirOperationDestroy(kernel->buffers[i]);
  return NULL;
}

o3_status_t o3_nvptx_generic_kernel(o3_inlined_t *kernel, const char *label) {
  static _Thread_local generic_t self;
  MlirStringRef kind = o3_op_string(kernel->kernel, O3_KERNEL_KIND);
  self = (generic_t){.env = kernel->env, .label = label, .num_ops = kernel->num_ops};
  memcpy(self.ops, kernel->ops, sizeof(self.ops));
  if (o3_str_equal(kind, "contraction")) return emit_contraction(&self, kernel);
  if (o3_str_equal(kind, "rows")) return emit_rows(&self, kernel);
  bool single = kernel->num_ops == 1 && kernel->num_buffers == 0;
  return single ? emit_single(&self) : o3_kernel_internal(kernel, "its ops did not become one");
}
