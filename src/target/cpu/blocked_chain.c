/* A part of the second product's rows for each core, and a few rows of it at a time:
 *
 *     scf.parallel (parts)
 *       for the part's rows, |rows| of them at a time
 *         for blocks of channels
 *           the last rows of the image between go to the front of its memory: windows share them
 *           the first product: the rows that are missing
 *           the second product: its rows
 *
 * Blocks are outside of neither product's rows alone, so the first one's input, a few rows, is read again for
 * each block from the cache, and the image between is neither written to memory nor read from it. The first
 * window of a part shares rows with the part before it, which both compute: they are few. */
#include "target/cpu/blocked_chain.h"

#include "schedule/cpu_schedule.h"
#include "target/cpu/blocked.h"
#include "target/cpu/blocked_match.h"
#include "target/cpu/blocked_row.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/halo.h"
#include "target/cpu/tile_text.h"
#include "target/cpu/vector_body.h"

enum { IMAGE_RANK = 5, BLOCKS = O3_BLOCKED_BLOCKS, ROWS = 2, COLUMNS = 3, MAX_SIDES = 4 };

typedef struct chain {
  o3_product_kernel_t first, second;
  o3_blocked_part_t first_part, second_part;
  int64_t blocks, rows, width;        /* of the image between */
  int64_t out_rows;                   /* of the result */
  int64_t stride, taps, low;          /* of the window, along rows; rows before the image */
  int64_t at_a_time, parts, per_part; /* of the result's rows */
} chain_t;

/* ---- Recognition ---- */

static bool writes(MlirOperation op, MlirValue value) {
  MlirValue written = mlirOperationGetNumResults(op)
                          ? mlirOperationGetResult(op, 0)
                          : mlirOperationGetOperand(op, mlirOperationGetNumOperands(op) - 1);
  return mlirValueEqual(written, value);
}

/* The ops of one product, without its padding. */
static const char *sort_ops(int count, const MlirOperation *ops, o3_product_kernel_t *kernel) {
  for (int i = 0; i < count; ++i) {
    bool found = !mlirOperationIsNull(kernel->product);
    if (mlirOperationEqual(ops[i], kernel->padding)) continue;
    if ((found ? kernel->num_after : kernel->num_before) == MAX_SIDES) return "too many ops are around it";
    if (!found && o3_blocked_takes(ops[i]))
      kernel->product = ops[i];
    else if (found)
      kernel->after[kernel->num_after++] = ops[i];
    else
      kernel->before[kernel->num_before++] = ops[i];
  }
  return mlirOperationIsNull(kernel->product) ? "the product before it is not in channel blocks" : NULL;
}

/* The border that the second product reads parts the ops; one before it is the first product's. */
static const char *split_ops(int count, const MlirOperation *ops, chain_t *c) {
  o3_halo_t halo, other;
  int padding = count - 1, end = 0;
  while (padding >= 0 && !o3_halo_read(ops[padding], &halo)) --padding;
  if (padding < 0) return "its input is no image with a border of zeros";
  for (int i = 0; i < padding; ++i) {
    if (writes(ops[i], halo.from)) end = i + 1;
    if (o3_halo_read(ops[i], &other)) c->first.padding = ops[i];
  }
  c->first_part.moved = c->second_part.moved = halo.from;
  c->second.padding = ops[padding];
  const char *why = sort_ops(end, ops, &c->first);
  return why ? why : sort_ops(count - end, ops + end, &c->second);
}

static bool is_known_image(const o3_nest_operand_t *image) {
  bool known = image->num_terms == IMAGE_RANK && image->sizes[0] == 1 && image->is_contiguous;
  for (int r = 0; r < IMAGE_RANK; ++r) known = known && image->sizes[r] > 0;
  return known;
}

static const char *read_sizes(const o3_blocked_t *first, const o3_blocked_t *second, chain_t *c) {
  if (o3_sparse_is_rows(&first->sparse)) return "the product before it is in compressed rows";
  if (!is_known_image(first->y) || !is_known_image(second->y))
    return "its sizes are known at run time only, or there are several images";
  if ((first->inside && !o3_blocked_row_is_known(first)) || !o3_blocked_row_is_known(second))
    return "the length of its rows is known at run time only";
  c->blocks = first->y->sizes[BLOCKS];
  c->rows = first->y->sizes[ROWS];
  c->width = c->first_part.row_length = first->y->sizes[COLUMNS];
  c->out_rows = second->y->sizes[ROWS];
  c->taps = second->depth[0].size;
  c->stride = second->rows.exists ? second->rows.stride : 0;
  c->low = second->rows.low;
  if (!second->rows.exists || c->stride > c->taps) return "its windows do not share rows, or have no border";
  return NULL;
}

static bool match_first(const chain_t *c, o3_blocked_t *first) {
  const o3_product_kernel_t *kernel = &c->first;
  if (mlirOperationIsNull(kernel->padding)) return o3_blocked_match(kernel->product, first);
  return !o3_blocked_match_inside(kernel->product, kernel->padding, first);
}

static const char *read_chain(const o3_machine_t *machine, int count, const MlirOperation *ops, chain_t *c) {
  static _Thread_local o3_blocked_t first, second;
  *c = (chain_t){.blocks = 0};
  const char *why = split_ops(count, ops, c);
  if (why) return why;
  why = o3_blocked_match_inside(c->second.product, c->second.padding, &second);
  if (why) return why;
  if (!second.lanewise) return "the second product is not depthwise";
  if (!match_first(c, &first)) return "the product before it is not in channel blocks";
  why = read_sizes(&first, &second, c);
  if (!why) why = o3_blocked_refuse_part(&first, &c->first);
  if (why) return why;
  int64_t row_bytes = c->blocks * c->width * O3_BLOCK_LANES * (int64_t)sizeof(float);
  const o3_schedule_chain_t sizes = {.row_bytes = row_bytes,
                                     .image_bytes = row_bytes * c->rows,
                                     .rows = c->out_rows,
                                     .stride = c->stride,
                                     .taps = c->taps};
  why = o3_schedule_chain(machine, &sizes, &c->at_a_time, &c->parts);
  c->per_part = (c->out_rows + c->parts - 1) / c->parts;
  c->second_part.chain_rows = c->at_a_time;
  return why;
}

const char *o3_chain_refuse(const o3_machine_t *machine, int count, const MlirOperation *ops) {
  static _Thread_local chain_t chain;
  return read_chain(machine, count, ops, &chain);
}

/* The rows at a time may have been set by hand since the kernel was made. */
static o3_status_t read_kernel(const o3_machine_t *machine, int count, const MlirOperation *ops, chain_t *c) {
  o3_schedule_tiles_t tiles = {.strip_rows = 0};
  const char *why = read_chain(machine, count, ops, c);
  if (why)
    return o3_status_create(O3_STATUS_INTERNAL, "op '%.*s' is in a chain: %s",
                            O3_STR_ARGS(o3_op_label(ops[count - 1])), why);
  MlirAttribute given = o3_op_attr(c->second.product, O3_SCHEDULE_ATTR);
  if (mlirAttributeIsNull(given)) return NULL;
  tiles.strip_rows = c->at_a_time;
  tiles.lanes = 1;
  O3_TRY(o3_schedule_read(c->second.product, O3_SCHEDULE_FAMILY_TILES, &tiles));
  if (tiles.strip_rows < 1 || tiles.strip_rows > c->per_part)
    return o3_schedule_refuse(c->second.product, "strip_rows", tiles.strip_rows,
                              "at least 1, and at most a core's part of the rows");
  c->at_a_time = tiles.strip_rows;
  return NULL;
}

/* ---- Schedule and memory ---- */

o3_status_t o3_chain_schedule(o3_pass_env_t *env, int count, const MlirOperation *ops) {
  static _Thread_local chain_t chain;
  O3_TRY(read_kernel(env->machine, count, ops, &chain));
  O3_TRY(o3_blocked_schedule(env, chain.first.product, chain.first.padding, &chain.first_part));
  return o3_blocked_schedule(env, chain.second.product, chain.second.padding, &chain.second_part);
}

static int64_t shared_rows(const chain_t *c) { return c->taps - c->stride; }
static int64_t row_floats(const chain_t *c) { return c->width * O3_BLOCK_LANES; }
/* Of one block: rows of the image between. */
static int64_t block_floats(const chain_t *c) {
  return (c->at_a_time * c->stride + shared_rows(c)) * row_floats(c);
}

o3_status_t o3_chain_scratch(const o3_machine_t *machine, int count, const MlirOperation *ops,
                             int64_t *floats) {
  static _Thread_local chain_t chain;
  *floats = 0;
  O3_TRY(read_kernel(machine, count, ops, &chain));
  *floats = chain.parts * chain.blocks * block_floats(&chain);
  return NULL;
}

/* ---- Emission ---- */

typedef struct emitter {
  const chain_t *chain;
  o3_blocked_emitter_t *first, *second;
  MlirValue memory;                 /* flat */
  MlirValue part_at;                /* the part's memory in it */
  MlirValue part_from, part_to;     /* its rows of the result */
  MlirValue from, to;               /* those of this time */
  MlirValue image0;                 /* row of the image between that is first in memory, perhaps outside */
  MlirValue missing_from, image_to; /* rows of it that the first product makes */
  MlirValue block;
} emitter_t;

static MlirValue add(o3_builder_t *b, MlirValue x, MlirValue y) { return o3_build2(b, "arith.addi", x, y); }
static MlirValue sub(o3_builder_t *b, MlirValue x, MlirValue y) { return o3_build2(b, "arith.subi", x, y); }
static MlirValue times(o3_builder_t *b, MlirValue x, int64_t factor) {
  return o3_build2(b, "arith.muli", x, o3_build_index(b, factor));
}
static MlirValue least(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.minsi", x, y);
}

static o3_status_t first_row(o3_builder_t *b, void *context, MlirValue row, const MlirValue *carried,
                             MlirValue *next) {
  emitter_t *self = context;
  (void)carried, (void)next;
  return o3_blocked_build_row(self->first, b, row, self->block);
}

static o3_status_t second_row(o3_builder_t *b, void *context, MlirValue row, const MlirValue *carried,
                              MlirValue *next) {
  emitter_t *self = context;
  (void)carried, (void)next;
  return o3_blocked_build_row(self->second, b, row, self->block);
}

static o3_status_t build_rows(emitter_t *self, o3_builder_t *b, MlirValue from, MlirValue to,
                              o3_for_body_fn_t body) {
  o3_for_t rows = {.lower = from, .upper = to, .step = o3_build_index(b, 1), .body = body, .context = self};
  return o3_build_for(b, &rows, NULL);
}

typedef struct copy {
  MlirValue memory, to;
  int64_t distance;
} copy_t;

static o3_status_t copy_lanes(o3_builder_t *b, void *context, MlirValue at, const MlirValue *carried,
                              MlirValue *next) {
  const copy_t *copy = context;
  MlirType lanes = o3_vector_type(O3_BLOCK_LANES, mlirF32TypeGet(b->context));
  MlirValue to = add(b, copy->to, at), from = add(b, to, o3_build_index(b, copy->distance));
  (void)carried, (void)next;
  MlirValue value = o3_build1(b, "vector.load", lanes, O3_VALUES(copy->memory, from));
  o3_build0(b, "vector.store", O3_VALUES(value, copy->memory, to));
  return NULL;
}

/* Where nothing was computed before, these are numbers that nobody reads. */
static o3_status_t keep_shared_rows(emitter_t *self, o3_builder_t *b, MlirValue block_at) {
  const chain_t *c = self->chain;
  copy_t copy = {self->memory, block_at, c->at_a_time * c->stride * row_floats(c)};
  o3_for_t loop = {.lower = o3_build_index(b, 0),
                   .upper = o3_build_index(b, shared_rows(c) * row_floats(c)),
                   .step = o3_build_index(b, O3_BLOCK_LANES),
                   .body = copy_lanes,
                   .context = &copy};
  return shared_rows(c) ? o3_build_for(b, &loop, NULL) : NULL;
}

static o3_status_t build_block(o3_builder_t *b, void *context, MlirValue block, const MlirValue *carried,
                               MlirValue *next) {
  emitter_t *self = context;
  const chain_t *c = self->chain;
  (void)carried, (void)next;
  MlirValue at = add(b, self->part_at, times(b, block, block_floats(c)));
  MlirValue row0 = sub(b, at, times(b, self->image0, row_floats(c)));
  self->block = block;
  O3_TRY(keep_shared_rows(self, b, at));
  o3_blocked_move(self->first, b, &c->first_part, self->memory, row0);
  o3_blocked_move(self->second, b, &c->second_part, self->memory, row0);
  O3_TRY(build_rows(self, b, self->missing_from, self->image_to, first_row));
  return build_rows(self, b, self->from, self->to, second_row);
}

/* The rows of the image between that the windows see and that are not there yet. */
static void find_rows(emitter_t *self, o3_builder_t *b) {
  const chain_t *c = self->chain;
  MlirValue low = o3_build_index(b, c->low), taps = o3_build_index(b, c->taps), one = o3_build_index(b, 1);
  self->image0 = sub(b, times(b, self->from, c->stride), low);
  MlirValue is_first = o3_build_cmpi(b, O3_CMPI_EQ, self->from, self->part_from);
  MlirValue after_shared = add(b, self->image0, o3_build_index(b, shared_rows(c)));
  MlirValue missing = o3_build_select(b, is_first, self->image0, after_shared);
  MlirValue last = sub(b, times(b, sub(b, self->to, one), c->stride), low);
  self->missing_from = o3_build2(b, "arith.maxsi", missing, o3_build_index(b, 0));
  self->image_to = least(b, add(b, last, taps), o3_build_index(b, c->rows));
}

static o3_status_t build_time(o3_builder_t *b, void *context, MlirValue from, const MlirValue *carried,
                              MlirValue *next) {
  emitter_t *self = context;
  const chain_t *c = self->chain;
  (void)carried, (void)next;
  self->from = from;
  self->to = least(b, add(b, from, o3_build_index(b, c->at_a_time)), self->part_to);
  find_rows(self, b);
  o3_for_t blocks = {.lower = o3_build_index(b, 0),
                     .upper = o3_build_index(b, c->blocks),
                     .step = o3_build_index(b, 1),
                     .body = build_block,
                     .context = self};
  return o3_build_for(b, &blocks, NULL);
}

/* The parts' rows; the work of one is that of a window over all of its image at least. */
static o3_status_t build(emitter_t *self, o3_builder_t *b, MlirValue at) {
  const chain_t *c = self->chain;
  MlirValue parts = o3_build_index(b, c->parts), one = o3_build_index(b, 1), part;
  int64_t work = c->per_part * c->stride * c->blocks * row_floats(c);
  o3_builder_t in = o3_cpu_parallel(b, 1, &parts, &one, work, &part);
  self->part_at = add(&in, at, times(&in, part, c->blocks * block_floats(c)));
  self->part_from = times(&in, part, c->per_part);
  self->part_to = least(&in, add(&in, self->part_from, o3_build_index(&in, c->per_part)),
                        o3_build_index(&in, c->out_rows));
  o3_for_t times_of_part = {.lower = self->part_from,
                            .upper = self->part_to,
                            .step = o3_build_index(&in, c->at_a_time),
                            .body = build_time,
                            .context = self};
  return o3_build_for(&in, &times_of_part, NULL);
}

o3_status_t o3_chain_emit(o3_pass_env_t *env, MlirModule module, int count, const MlirOperation *ops,
                          MlirValue scratch) {
  static _Thread_local chain_t chain;
  o3_nest_operand_t memory;
  emitter_t self = {.chain = &chain};
  O3_TRY(read_kernel(env->machine, count, ops, &chain));
  o3_builder_t b = o3_builder_before(ops[count - 1]);
  o3_nest_read_operand(scratch, mlirAffineMapMultiDimIdentityGet(env->context, 1), &memory);
  o3_nest_flatten_operand(&memory, &b);
  self.memory = memory.flat;
  O3_TRY(o3_blocked_open(env, module, &chain.first, &chain.first_part, &b, &self.first));
  O3_TRY(o3_blocked_open(env, module, &chain.second, &chain.second_part, &b, &self.second));
  return build(&self, &b, memory.offset);
}
