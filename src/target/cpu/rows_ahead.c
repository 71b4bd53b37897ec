/* The first op of a row waits for memory, the others compute on what is in the cache by then: while these
 * run, the next row is fetched. It is asked for in blocks of an op's loop, as many elements as it computes:
 * asked for at once, it would fill what the processor keeps of reads under way, and all would wait.
 *
 *     scf.for row                               scf.for row
 *       greatest of x                             greatest of x
 *       scf.for i in 0..4096                      scf.for block in 0..4096 step 256
 *         e[i] = exp(x[row, i] - greatest)          prefetch x[row + 1, block + 0, 16, ..., 240]
 *       ...                                         scf.for i in block..block + 256
 *                                                     e[i] = exp(x[row, i] - greatest)
 *                                                 ...
 *
 * The addresses behind the last row may be no memory: a prefetch reads none then.
 */
#include "target/cpu/rows_ahead.h"

#include "target/cpu/cpu_ir.h"

enum { LINE_BYTES = 64 };

/* The only dim that is left inside of a row, or -1. */
static int only_dim(const o3_nest_t *nest, const o3_loops_frame_t *frame) {
  int found = -1;
  for (int d = 0; d < nest->num_dims; ++d) {
    if (frame->fixed[d] || nest->merged_into[d] >= 0) continue;
    if (found >= 0) return -1;
    found = d;
  }
  return found;
}

/* Functions of tens of operations: beside less, a block is done before what it asked for has come. */
static int count_functions(const o3_nest_t *nest) {
  static const char *const NAMES[] = {"math.exp", "math.log", "math.tanh", "math.erf"};
  int count = 0;
  MlirOperation op = mlirBlockGetFirstOperation(nest->body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i) count += o3_op_is(op, NAMES[i]);
  }
  return count;
}

/* Of the ops after the first that compute an element for each of a row: the one with the most functions. */
static o3_status_t choose_op(const o3_rows_t *rows, o3_rows_ahead_t *ahead) {
  static _Thread_local o3_nest_t nest;
  int most = 0;
  for (int i = 1; i < rows->inlined->num_ops; ++i) {
    O3_TRY(o3_rows_read_op(rows, i, &nest));
    int dim = only_dim(&nest, &rows->frames[i]), count = count_functions(&nest);
    if (dim < 0 || nest.reduction[dim] || nest.sizes[dim] < ahead->block || count <= most) continue;
    most = count;
    ahead->op = i;
    ahead->size = nest.sizes[dim];
  }
  return NULL;
}

static bool is_known(const o3_rows_ahead_t *ahead, const MlirValue *values, MlirValue value) {
  for (int i = 0; i < ahead->count; ++i) {
    if (mlirValueEqual(values[i], value)) return true;
  }
  return false;
}

/* Whether the operand is memory from outside of the kernel that lies along the row, another for each. */
static bool is_fetched(const o3_rows_t *rows, const o3_nest_operand_t *operand, int dim, int row) {
  int64_t step;
  bool is_memory = operand->is_memref && o3_type_bits(o3_type_element(mlirValueGetType(operand->value))) >= 8;
  return is_memory && !o3_rows_find(rows, operand->value) && o3_nest_uses(operand, row) &&
         o3_nest_step(operand, dim, &step) && step == 1;
}

static o3_status_t add_operands(const o3_rows_t *rows, int index, o3_builder_t *b, MlirValue *values,
                                o3_rows_ahead_t *ahead) {
  static _Thread_local o3_nest_t nest;
  MlirValue ivs[O3_IR_MAX_RANK];
  O3_TRY(o3_rows_read_op(rows, index, &nest));
  int dim = only_dim(&nest, &rows->frames[index]), row = rows->loops[index][rows->num_rows - 1];
  if (dim < 0 || nest.sizes[dim] != ahead->size) return NULL;
  for (int d = 0; d < nest.num_dims; ++d) ivs[d] = o3_build_index(b, 0);
  for (int i = 0; i < rows->num_rows; ++i) ivs[rows->loops[index][i]] = rows->ivs[i];
  ivs[row] = o3_build2(b, "arith.addi", ivs[row], o3_build_index(b, 1));
  for (int k = 0; k < nest.num_inputs && ahead->count < O3_ROWS_AHEAD_MOST; ++k) {
    o3_nest_operand_t *operand = &nest.operands[k];
    if (!is_fetched(rows, operand, dim, row) || is_known(ahead, values, operand->value)) continue;
    o3_nest_flatten_operand(operand, b);
    values[ahead->count] = operand->value;
    ahead->flat[ahead->count] = operand->flat;
    ahead->first[ahead->count++] = o3_nest_address(&nest, operand, b, ivs);
  }
  return NULL;
}

o3_status_t o3_rows_ahead_find(const o3_rows_t *rows, const o3_schedule_rows_t *schedule, o3_builder_t *b,
                               o3_rows_ahead_t *ahead) {
  MlirValue values[O3_ROWS_AHEAD_MOST];
  *ahead = (o3_rows_ahead_t){.op = -1, .block = schedule->ahead, .level = schedule->ahead_level};
  if (!schedule->ahead || !rows->num_rows) return NULL;
  O3_TRY(choose_op(rows, ahead));
  for (int i = 0; i <= ahead->op; ++i) O3_TRY(add_operands(rows, i, b, values, ahead));
  if (!ahead->count) ahead->op = -1;
  return NULL;
}

/* ---- Blocks ---- */

typedef struct blocks {
  const o3_rows_ahead_t *ahead;
  o3_nest_t *nest;
  o3_loops_frame_t frame; /* of a block */
} blocks_t;

static void ask_for(const o3_rows_ahead_t *ahead, o3_builder_t *b, int operand, MlirValue element) {
  MlirValue at = o3_build2(b, "arith.addi", ahead->first[operand], element);
  o3_cpu_prefetch(b, ahead->flat[operand], at, ahead->level);
}

static o3_status_t block_body(o3_builder_t *b, void *context, MlirValue from, const MlirValue *carried,
                              MlirValue *next) {
  blocks_t *self = context;
  const o3_rows_ahead_t *ahead = self->ahead;
  (void)carried, (void)next;
  for (int k = 0; k < ahead->count; ++k) {
    int64_t bytes = o3_type_bits(o3_type_element(mlirValueGetType(ahead->flat[k]))) / 8;
    for (int64_t i = 0; i < ahead->block; i += LINE_BYTES / bytes)
      ask_for(ahead, b, k, o3_build2(b, "arith.addi", from, o3_build_index(b, i)));
  }
  self->frame.lower = from;
  self->frame.upper = o3_build2(b, "arith.addi", from, o3_build_index(b, ahead->block));
  return o3_loops_build(self->nest, b, &self->frame);
}

o3_status_t o3_rows_ahead_build(const o3_rows_ahead_t *ahead, o3_builder_t *b, o3_nest_t *nest,
                                const o3_loops_frame_t *frame) {
  blocks_t self = {ahead, nest, *frame};
  int64_t whole = ahead->size / ahead->block * ahead->block;
  self.frame.ranged = only_dim(nest, frame);
  o3_for_t blocks = {.lower = o3_build_index(b, 0),
                     .upper = o3_build_index(b, whole),
                     .step = o3_build_index(b, ahead->block),
                     .body = block_body,
                     .context = &self};
  O3_TRY(o3_build_for(b, &blocks, NULL));
  if (whole == ahead->size) return NULL;
  self.frame.lower = o3_build_index(b, whole);
  self.frame.upper = o3_build_index(b, ahead->size);
  return o3_loops_build(nest, b, &self.frame);
}
