/* Rows are the same for all ops: an op either walks all dimensions of the kernel, the last of them being the
 * row, or the ones before. A buffer that an op has written must be read as it was written, for then a thread
 * has the element in a register; one that none has written must be read in one way, for its elements are
 * loaded once. */
#include "target/nvptx/row_plan.h"

#include <string.h>

#include "base/arena.h"
#include "schedule/gpu.h"
#include "target/nvptx/body_text.h"

enum { WARP = O3_GPU_WARP, MAX_ELEMENTS = 64, MAX_THREADS = 1024, VECTOR_BYTES = 16, FEW_ELEMENTS = 16 };
/* Fewer than ROWS rows a multiprocessor are few. Blocks of STAGE_ROWS rows start at multiples of 16 bytes. */
enum { ROWS = 16, LINE = 64, STAGE_ROWS = 8, LEAST_PIECE = 8, SHORT = 64 };

/* ---- Shape ---- */

static int count_reductions(const o3_nest_t *nest) {
  int count = 0;
  for (int d = 0; d < nest->num_dims; ++d) count += nest->reduction[d];
  return count;
}

static const char *read_shape(o3_row_plan_t *p) {
  const o3_nest_t *first = NULL;
  for (int i = 0; i < p->num_ops && !first; ++i) {
    if (count_reductions(p->ops[i].nest)) first = p->ops[i].nest;
  }
  if (!first) return "nothing is reduced";
  p->rank = first->num_dims;
  p->column_dims = count_reductions(first);
  p->rows = p->columns = 1;
  for (int d = 0; d < p->rank; ++d) {
    if (first->sizes[d] < 0) return "a size is known only at run time";
    p->sizes[d] = first->sizes[d];
    bool column = d >= p->rank - p->column_dims;
    if (first->reduction[d] != column) return "it does not reduce the last dimensions";
    *(column ? &p->columns : &p->rows) *= p->sizes[d];
  }
  if (p->rows < 1 || p->columns < 1) return "a size is zero";
  return p->rows * p->columns > INT32_MAX ? "it has more than 2^31 elements" : NULL;
}

static const char *check_loops(const o3_row_plan_t *p, o3_row_op_t *op) {
  const o3_nest_t *nest = op->nest;
  int row_dims = p->rank - p->column_dims;
  op->whole = nest->num_dims == p->rank;
  if (!op->whole && nest->num_dims != row_dims) return "an op has other loops than the rows";
  for (int d = 0; d < nest->num_dims; ++d) {
    if (nest->sizes[d] != p->sizes[d]) return "an op has other loops than the rows";
    if (nest->reduction[d] && d < row_dims) return "an op reduces over rows";
  }
  int reduced = count_reductions(nest);
  if (reduced && reduced != p->column_dims) return "an op reduces a part of a row";
  op->combiner = reduced ? o3_body_combiner(nest) : NULL;
  return reduced && !op->combiner ? "a reduction combines in a way that fast kernels do not have" : NULL;
}

/* ---- Values ---- */

static const char *find_value(const o3_kernel_site_t *site, o3_row_plan_t *p, MlirValue buffer, int *index) {
  buffer = o3_kernel_site_base(buffer);
  for (*index = 0; *index < p->num_values; ++*index) {
    if (mlirValueEqual(p->values[*index].buffer, buffer)) return NULL;
  }
  if (p->num_values == (int)(sizeof(p->values) / sizeof(p->values[0]))) return "it has too many buffers";
  o3_row_value_t *value = &p->values[p->num_values++];
  *value = (o3_row_value_t){.buffer = buffer, .argument = o3_kernel_site_argument(site, buffer)};
  MlirOperation def = o3_value_def(buffer);
  bool own = !mlirOperationIsNull(def) && o3_op_is(def, "memref.alloc");
  if (value->argument < 0 && !own) return "it reads a view of a buffer";
  return o3_kernel_site_element(buffer, &value->element) ? NULL : "an element type is none of f16, bf16, f32";
}

static const char *read_steps(const o3_row_plan_t *p, const o3_nest_t *nest, const o3_nest_operand_t *from,
                              o3_row_operand_t *operand) {
  for (int d = 0; d < nest->num_dims; ++d) {
    if (!o3_nest_step(from, d, &operand->steps[d])) return "an operand is not linear in the loops";
  }
  int last = p->rank - 1;
  if (!o3_row_varies(p, operand)) return NULL;
  if (operand->steps[last] != 1) return "an operand is not contiguous along the row";
  for (int d = last - 1; d >= p->rank - p->column_dims; --d) {
    if (p->sizes[d] != 1 && operand->steps[d] != operand->steps[d + 1] * p->sizes[d + 1])
      return "an operand is not contiguous along the row";
  }
  return NULL;
}

bool o3_row_varies(const o3_row_plan_t *p, const o3_row_operand_t *operand) {
  for (int d = p->rank - p->column_dims; d < p->rank; ++d) {
    if (operand->steps[d]) return true;
  }
  return false;
}

bool o3_row_differs(const o3_row_plan_t *p, const o3_row_operand_t *operand) {
  for (int d = 0; d < p->rank - p->column_dims; ++d) {
    if (operand->steps[d]) return true;
  }
  return false;
}

/* Integers of an op that reads tables, from which it computes indices. */
static const char *read_index(const o3_kernel_site_t *site, const o3_row_plan_t *p,
                              const o3_nest_operand_t *from, const o3_nest_t *nest,
                              o3_row_operand_t *operand) {
  operand->value = O3_ROW_INDEX;
  operand->argument = o3_kernel_site_argument(site, from->value);
  const char *why = read_steps(p, nest, from, operand);
  if (why) return why;
  if (operand->argument < 0) return "it reads what nothing wrote";
  return o3_row_varies(p, operand) ? "an index is another for each column" : NULL;
}

static bool is_integer(const o3_nest_operand_t *operand) {
  MlirType type = o3_type_element(mlirValueGetType(operand->value));
  return mlirTypeIsAInteger(type) && (o3_type_bits(type) == 64 || o3_type_bits(type) == 32);
}

/* Loops that turn once do not tell two walks apart. */
static bool walks_alike(const o3_row_plan_t *p, const int64_t *a, const int64_t *b) {
  for (int d = 0; d < p->rank; ++d) {
    if (p->sizes[d] != 1 && a[d] != b[d]) return false;
  }
  return true;
}

static const char *read_operand(const o3_kernel_site_t *site, o3_row_plan_t *p, o3_row_op_t *op, int index) {
  o3_row_operand_t *operand = &op->operands[index];
  const o3_nest_operand_t *from = &op->nest->operands[index];
  if (op->gathers.count && is_integer(from)) return read_index(site, p, from, op->nest, operand);
  const char *why = find_value(site, p, from->value, &operand->value);
  if (!why) why = read_steps(p, op->nest, from, operand);
  if (why) return why;
  o3_row_value_t *value = &p->values[operand->value];
  operand->used = o3_nest_reads(op->nest, index);
  if (!operand->used) return NULL;
  bool first = !value->written && !value->read;
  value->read |= !value->written;
  if (!value->written && value->argument < 0) return "it reads what nothing wrote";
  if (first) memcpy(value->steps, operand->steps, sizeof(value->steps));
  return walks_alike(p, value->steps, operand->steps)
             ? NULL
             : "an op reads a value in another order than it was written, or read before";
}

/* Each element once, and for an argument in the order in which rows are stored. */
static const char *check_result(const o3_row_plan_t *p, const o3_row_op_t *op) {
  const o3_row_operand_t *out = &op->operands[op->num_operands - 1];
  bool elements = op->whole && !op->combiner;
  int last = elements ? p->rank - 1 : p->rank - p->column_dims - 1;
  int64_t step = 1;
  for (int d = last; d >= 0; --d) {
    if (out->steps[d] != step && p->sizes[d] != 1) return "a result is not in the order of the loops";
    step *= p->sizes[d];
  }
  return NULL;
}

/* Rows of a table are as long as those of the kernel. */
static const char *read_tables(const o3_kernel_site_t *site, o3_row_plan_t *p, o3_row_op_t *op) {
  const char *why = o3_row_gathers_find(op->nest, p->rank - 1, &op->gathers);
  if (!why && op->gathers.count && (p->column_dims != 1 || !op->whole || op->combiner))
    why = "rows of a table are not read element by element";
  for (int i = 0; i < op->gathers.count && !why; ++i) {
    MlirValue table = mlirOperationGetOperand(op->gathers.loads[i], 0);
    MlirType type = mlirValueGetType(table);
    int64_t rows = o3_type_dim(type, 0);
    why = find_value(site, p, table, &op->tables[i]);
    if (why) break;
    const o3_row_value_t *value = &p->values[op->tables[i]];
    bool fits = o3_type_dim(type, 1) == p->columns && rows > 0 && rows <= INT32_MAX / p->columns;
    if (!fits || value->argument < 0 || value->written) why = "a table has other rows, or is written here";
  }
  return why;
}

static const char *read_operands(const o3_kernel_site_t *site, o3_row_plan_t *p, o3_row_op_t *op) {
  const o3_nest_t *nest = op->nest;
  if (nest->num_operands > O3_ROW_MAX_OPERANDS || nest->num_operands != nest->num_inputs + 1)
    return "an op has too many operands";
  op->num_operands = nest->num_operands;
  const char *why = read_tables(site, p, op);
  for (int i = 0; i < op->num_operands && !why; ++i) why = read_operand(site, p, op, i);
  if (!why) why = check_result(p, op);
  if (why) return why;
  const o3_row_operand_t *out = &op->operands[op->num_operands - 1];
  o3_row_value_t *value = &p->values[out->value];
  value->written = true;
  value->whole = op->whole && !op->combiner;
  memcpy(value->steps, out->steps, sizeof(value->steps));
  return o3_body_refuse(nest, value->element != O3_GPU_F32, &op->gathers.bound);
}

static const char *read_ops(const o3_kernel_site_t *site, o3_row_plan_t *p) {
  for (int i = 0; i < p->num_ops; ++i) {
    o3_row_op_t *op = &p->ops[i];
    const char *why = check_loops(p, op);
    if (!why) why = read_operands(site, p, op);
    if (why) return why;
    p->num_reductions += op->combiner != NULL;
  }
  return NULL;
}

/* ---- Threads ---- */

/* A vector is one piece of what differs from row to row; what is the same for all may be several. */
static void limit_vector(o3_row_plan_t *p, const o3_row_operand_t *operand) {
  if (operand->value == O3_ROW_INDEX) return;
  const o3_row_value_t *value = &p->values[operand->value];
  if (value->argument < 0 || !o3_row_varies(p, operand)) return;
  int bytes = o3_gpu_element_info(value->element)->bytes;
  while (p->vector > 1 && p->vector * bytes > VECTOR_BYTES && bytes > 2 && o3_row_differs(p, operand))
    p->vector /= 2;
  for (int d = 0; d < p->rank - p->column_dims; ++d) {
    while (operand->steps[d] % p->vector) p->vector /= 2;
  }
}

/* Whether all rows, one behind the other, are the operand's memory. */
static bool lies_by_rows(const o3_row_plan_t *p, const o3_row_operand_t *operand) {
  int64_t step = 1;
  for (int d = p->rank - 1; d >= 0; --d) {
    if (p->sizes[d] != 1 && operand->steps[d] != step) return false;
    step *= p->sizes[d];
  }
  return true;
}

/* What is written once a row goes straight to memory, also where a row has one element. */
static void find_rows(o3_row_plan_t *p) {
  for (int v = 0; v < p->num_values; ++v) {
    o3_row_value_t *value = &p->values[v];
    value->rows = value->argument >= 0 && (value->whole || !value->written);
  }
  for (int i = 0; i < p->num_ops; ++i) {
    const o3_row_op_t *op = &p->ops[i];
    for (int k = 0; k < op->num_operands; ++k) {
      const o3_row_operand_t *operand = &op->operands[k];
      if (operand->value == O3_ROW_INDEX || (!operand->used && k < op->num_operands - 1)) continue;
      p->values[operand->value].rows &= lies_by_rows(p, operand);
    }
    for (int k = 0; k < op->gathers.count; ++k) p->values[op->tables[k]].rows = false;
  }
}

/* The widest piece of memory that a thread gets of what differs from row to row. */
static int widest_piece(const o3_row_plan_t *p) {
  int widest = 0;
  for (int v = 0; v < p->num_values; ++v) {
    int bytes = p->vector * o3_gpu_element_info(p->values[v].element)->bytes;
    if (p->values[v].argument >= 0 && p->values[v].rows && bytes > widest) widest = bytes;
  }
  return widest;
}

/* Short rows that do not start at multiples of 16 bytes lie one behind the other all the same: blocks of them
 * pass through shared memory in whole pieces, if they fit. */
static void stage_rows(o3_row_plan_t *p, int threads) {
  int rows = O3_ROW_BLOCK / threads, bytes = 0;
  for (int v = 0; v < p->num_values; ++v) {
    o3_row_value_t *value = &p->values[v];
    if (value->argument < 0 || !value->rows) continue;
    value->stage = bytes;
    bytes += (int)((rows * p->columns * o3_gpu_element_info(value->element)->bytes + 15) / 16 * 16);
  }
  p->stage_bytes = rows % STAGE_ROWS == 0 && bytes <= O3_ROW_STAGE_BYTES ? bytes : 0;
  for (int v = 0; v < p->num_values && !p->stage_bytes; ++v) p->values[v].stage = -1;
}

/* Threads of a row are as few as leave each some pieces in flight, while the card has enough of them: rows of
 * a warp are loaded together. Those that share a row read LINE bytes side by side. */
static void share_short_rows(o3_row_plan_t *p, int most, int64_t full) {
  int widest = widest_piece(p);
  bool staged = !p->few && widest && (widest < LEAST_PIECE || (widest < VECTOR_BYTES && p->columns <= SHORT));
  int neighbours = staged || !widest ? 1 : LINE / widest;
  for (p->threads = 1; p->threads < WARP && p->threads * most < p->columns;) p->threads *= 2;
  while (p->threads < WARP && p->threads * p->vector < p->columns &&
         (p->threads < neighbours || p->rows * p->threads < full)) {
    if (staged && O3_ROW_BLOCK / (2 * p->threads) < STAGE_ROWS) break;
    p->threads *= 2;
  }
  if (staged) stage_rows(p, p->threads);
}

/* More than a warp for long rows, and when there are too few rows for the card. */
static const char *share_rows(const o3_kernel_site_t *site, o3_row_plan_t *p) {
  p->vector = VECTOR_BYTES / 2;
  for (int i = 0; i < p->num_ops; ++i) {
    for (int k = 0; k < p->ops[i].num_operands; ++k) limit_vector(p, &p->ops[i].operands[k]);
  }
  while (p->columns % p->vector) p->vector /= 2;
  find_rows(p);
  for (int v = 0; v < p->num_values; ++v) p->values[v].stage = -1;
  p->few = p->rows < ROWS * site->gpu->multiprocessors;
  int most = p->few ? FEW_ELEMENTS : MAX_ELEMENTS / 2;
  share_short_rows(p, most, (int64_t)ROWS * WARP * site->gpu->multiprocessors);
  while (p->threads < MAX_THREADS && p->threads * most < p->columns) p->threads *= p->threads == WARP ? 4 : 2;
  p->chunks = (int)((p->columns + p->threads * p->vector - 1) / (p->threads * p->vector));
  return p->chunks * p->vector > MAX_ELEMENTS ? "a row is longer than the registers of a block" : NULL;
}

const char *o3_row_plan(const o3_kernel_site_t *site, o3_row_plan_t *plan) {
  *plan = (o3_row_plan_t){.num_ops = site->num_ops};
  if (site->num_ops > O3_ROW_MAX_OPS) return "it has too many ops";
  for (int i = 0; i < site->num_ops; ++i) {
    plan->ops[i].nest = O3_ARENA_NEW(site->arena, o3_nest_t);
    if (!plan->ops[i].nest) return "memory is out";
    if (!o3_nest_read(site->ops[i], plan->ops[i].nest)) return "an op is no loop nest on buffers";
  }
  const char *why = read_shape(plan);
  if (!why) why = read_ops(site, plan);
  return why ? why : share_rows(site, plan);
}
