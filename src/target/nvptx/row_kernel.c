/* The bodies of the ops are functions that are called for each element; the values of a buffer are registers
 * from the op that writes it on. */
#include "target/nvptx/row_kernel.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "schedule/gpu.h"
#include "target/nvptx/body_text.h"
#include "target/nvptx/row_plan.h"
#include "target/nvptx/row_stage.h"

/* So many threads hide the time that memory takes, and leave 64 (a warp a row) or 72 registers to each,
 * enough for 32 elements. */
enum { WARP = O3_GPU_WARP, WORD = 4, WARP_THREADS = 1024, BLOCK_THREADS = 896 };

typedef struct writer {
  o3_kernel_text_t *t;
  const o3_kernel_site_t *site;
  const o3_row_plan_t *p;
  const o3_gpu_kernel_t *kernel;
  o3_status_t status;
  int row;              /* number of the row */
  int inside;           /* whether there is a row, which threads without one compute again; -1: all have */
  int local;            /* number of the row in the block */
  int lane;             /* of the row's threads */
  int thread;           /* of the block */
  int shared;           /* pointer */
  int count;            /* elements of a thread */
  int *columns, *masks; /* for each chunk: first column, condition that it is in the row (or NULL) */
  int *registers[O3_ROW_MAX_OPS * 2]; /* for each value: |count| values, or one */
  int reductions;
} writer_t;

static const char *type_of(const o3_row_value_t *value) { return o3_gpu_element_info(value->element)->mlir; }

/* ---- Bodies ---- */

/* Those of a body's function: its operands, then what it reads of tables. */
enum { MAX_PARAMETERS = O3_ROW_MAX_OPERANDS + O3_ROW_MAX_GATHERS };

static o3_body_function_t function_of(const writer_t *w, int index, const char *types[MAX_PARAMETERS]) {
  const o3_row_op_t *op = &w->p->ops[index];
  int count = 0;
  for (int i = 0; i < op->num_operands; ++i) {
    int value = op->operands[i].value;
    types[count++] = value == O3_ROW_INDEX ? "i64" : type_of(&w->p->values[value]);
  }
  for (int i = 0; i < op->gathers.count; ++i) types[count++] = type_of(&w->p->values[op->tables[i]]);
  return (o3_body_function_t){w->kernel->name, index, count, types,
                              type_of(&w->p->values[op->operands[op->num_operands - 1].value])};
}

static void write_function(writer_t *w, int index) {
  o3_kernel_text_t *t = w->t;
  const o3_row_op_t *op = &w->p->ops[index];
  const char *types[MAX_PARAMETERS];
  const o3_body_function_t function = function_of(w, index, types);
  int arguments[MAX_PARAMETERS], given[O3_BODY_MAX_BOUND], result = 0;
  o3_body_begin_function(t, &function, arguments);
  for (int i = 0; i < op->num_operands; ++i) /* ops that compute no index see an integer as it is */
    if (op->operands[i].value == O3_ROW_INDEX &&
        o3_type_bits(o3_type_element(mlirValueGetType(op->nest->operands[i].value))) == 32)
      arguments[i] = o3_kt_value(t, "arith.trunci %%v%d : i64 to i32", arguments[i]);
  for (int i = 0, load = 0; i < op->gathers.bound.count; ++i)
    given[i] = op->gathers.bound.given[i] ? arguments[op->num_operands + load++] : -1;
  if (!w->status) w->status = o3_body_write(t, op->nest, arguments, &op->gathers.bound, given, &result);
  o3_body_end_function(t, &function, result);
}

static int call(writer_t *w, int index, const int *arguments) {
  const char *types[MAX_PARAMETERS];
  const o3_body_function_t function = function_of(w, index, types);
  return o3_body_call_function(w->t, &function, arguments);
}

/* ---- Memory ---- */

/* Elements from the start of a buffer to this row. */
static int row_offset(writer_t *w, const int64_t *steps) {
  o3_kernel_text_t *t = w->t;
  const o3_row_plan_t *p = w->p;
  int dims = p->rank - p->column_dims, offset = o3_kt_i32(t, 0), left = w->row;
  bool as_one = true;
  for (int d = 0; d + 1 < dims; ++d) as_one &= steps[d] == steps[d + 1] * p->sizes[d + 1];
  if (dims && as_one) return o3_kt_op_const(t, "muli", w->row, steps[dims - 1]);
  for (int d = dims - 1; d >= 0; --d) {
    int at = d ? o3_kt_op_const(t, "remui", left, p->sizes[d]) : left;
    offset = o3_kt_op(t, "addi", offset, o3_kt_op_const(t, "muli", at, steps[d]));
    left = o3_kt_op_const(t, "divui", left, p->sizes[d]);
  }
  return offset;
}

static int element_pointer(writer_t *w, int argument, int index, const char *type) {
  o3_kernel_text_t *t = w->t;
  int base = o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8", argument);
  return o3_kt_global(t, base, index, type);
}

static int argument_pointer(writer_t *w, const o3_row_value_t *value, int index) {
  return element_pointer(w, value->argument, index, type_of(value));
}

static int alignment(const writer_t *w, const o3_row_value_t *value) {
  int bytes = w->p->vector * o3_gpu_element_info(value->element)->bytes;
  return bytes < 16 ? bytes : 16;
}

/* The first element of a chunk, in shared memory where the value passes through it. */
static int chunk_pointer(writer_t *w, const o3_row_value_t *value, int offset, int chunk) {
  o3_kernel_text_t *t = w->t;
  if (value->stage < 0) return argument_pointer(w, value, o3_kt_op(t, "addi", offset, w->columns[chunk]));
  int first = o3_kt_op_const(t, "muli", w->local, w->p->columns);
  int bytes = o3_kt_op_const(t, "muli", o3_kt_op(t, "addi", first, w->columns[chunk]),
                             o3_gpu_element_info(value->element)->bytes);
  return o3_kt_shared(t, w->shared, o3_kt_op_const(t, "addi", bytes, value->stage));
}

static int space_of(const o3_row_value_t *value) { return value->stage < 0 ? 1 : 3; }

/* A vector of the buffer; zeros where the row has ended. */
static int load_vector(writer_t *w, const o3_row_value_t *value, int offset, int chunk) {
  o3_kernel_text_t *t = w->t;
  int at = chunk_pointer(w, value, offset, chunk), result = -1;
  if (w->masks) {
    result = o3_kt_name(t);
    o3_kt_line(t, "%%v%d = scf.if %%v%d -> (vector<%dx%s>) {", result, w->masks[chunk], w->p->vector,
               type_of(value));
  }
  int loaded = o3_kt_value(t, "llvm.load %%v%d {alignment = %d : i64} : !llvm.ptr<%d> -> vector<%dx%s>", at,
                           alignment(w, value), space_of(value), w->p->vector, type_of(value));
  if (!w->masks) return loaded;
  o3_kt_line(t, "scf.yield %%v%d : vector<%dx%s>\n} else {", loaded, w->p->vector, type_of(value));
  int zero = o3_kt_value(t, "arith.constant dense<0.0> : vector<%dx%s>", w->p->vector, type_of(value));
  o3_kt_line(t, "scf.yield %%v%d : vector<%dx%s>\n}", zero, w->p->vector, type_of(value));
  return result;
}

/* Those of a row that this thread has, from |offset| on. */
static void load_row(writer_t *w, const o3_row_value_t *value, int offset, int *elements) {
  o3_kernel_text_t *t = w->t;
  int vectors[64];
  for (int c = 0; c < w->p->chunks; ++c) vectors[c] = load_vector(w, value, offset, c);
  for (int i = 0; i < w->count; ++i)
    elements[i] =
        o3_kt_value(t, "vector.extract %%v%d[%d] : %s from vector<%dx%s>", vectors[i / w->p->vector],
                    i % w->p->vector, type_of(value), w->p->vector, type_of(value));
}

/* The elements of an argument that this thread needs: all, or the row's only one. */
static void load_argument(writer_t *w, const o3_row_operand_t *operand, int *elements) {
  o3_kernel_text_t *t = w->t;
  const o3_row_value_t *value = &w->p->values[operand->value];
  int offset = row_offset(w, operand->steps);
  if (!o3_row_varies(w->p, operand)) {
    int at = argument_pointer(w, value, offset);
    elements[0] = o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<1> -> %s", at, type_of(value));
    return;
  }
  load_row(w, value, offset, elements);
}

/* An integer of the row that makes an index, as i64. */
static int load_index(writer_t *w, const o3_nest_operand_t *from, const o3_row_operand_t *operand) {
  o3_kernel_text_t *t = w->t;
  int bits = o3_type_bits(o3_type_element(mlirValueGetType(from->value)));
  const char *type = bits == 64 ? "i64" : "i32";
  int at = element_pointer(w, operand->argument, row_offset(w, operand->steps), type);
  int number =
      o3_kt_value(t, "llvm.load %%v%d {alignment = %d : i64} : !llvm.ptr<1> -> %s", at, bits / 8, type);
  return bits == 64 ? number : o3_kt_value(t, "arith.extsi %%v%d : i32 to i64", number);
}

static void store_vector(writer_t *w, const o3_row_value_t *value, int offset, int chunk,
                         const int *elements) {
  o3_kernel_text_t *t = w->t;
  int vector = o3_kt_name(t), at;
  o3_strbuf_printf(&t->out, "%%v%d = vector.from_elements ", vector);
  for (int i = 0; i < w->p->vector; ++i) o3_strbuf_printf(&t->out, "%s%%v%d", i ? ", " : "", elements[i]);
  o3_kt_line(t, " : vector<%dx%s>", w->p->vector, type_of(value));
  at = chunk_pointer(w, value, offset, chunk);
  bool guarded = w->inside >= 0 && value->stage < 0;
  if (guarded) o3_kt_if(t, w->inside);
  if (w->masks) o3_kt_if(t, w->masks[chunk]);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = %d : i64} : vector<%dx%s>, !llvm.ptr<%d>", vector, at,
             alignment(w, value), w->p->vector, type_of(value), space_of(value));
  if (w->masks) o3_kt_end(t);
  if (guarded) o3_kt_end(t);
}

static void store_value(writer_t *w, int index) {
  o3_kernel_text_t *t = w->t;
  const o3_row_value_t *value = &w->p->values[index];
  int offset = row_offset(w, value->steps);
  if (value->whole) {
    for (int c = 0; c < w->p->chunks; ++c)
      store_vector(w, value, offset, c, &w->registers[index][c * w->p->vector]);
    return;
  }
  int at = argument_pointer(w, value, offset), first = o3_kt_cmp_const(t, "eq", w->lane, 0);
  if (w->inside >= 0) first = o3_kt_value(t, "arith.andi %%v%d, %%v%d : i1", first, w->inside);
  o3_kt_if(t, first);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d : %s, !llvm.ptr<1>", w->registers[index][0], at, type_of(value));
  o3_kt_end(t);
}

/* ---- Reductions ---- */

static int combine(writer_t *w, const char *combiner, int a, int b) {
  return o3_kt_value(w->t, "%s %%v%d, %%v%d : f32", combiner, a, b);
}

/* Over |lanes| lanes, a power of 2; all of them get the result. */
static int combine_lanes(writer_t *w, const char *combiner, int value, int lanes) {
  o3_kernel_text_t *t = w->t;
  for (int far = lanes / 2; far; far /= 2) {
    int all = o3_kt_i32(t, -1), distance = o3_kt_i32(t, far), last = o3_kt_i32(t, 31);
    int other = o3_kt_value(t, "nvvm.shfl.sync bfly %%v%d, %%v%d, %%v%d, %%v%d : f32 -> f32", all, value,
                            distance, last);
    value = combine(w, combiner, value, other);
  }
  return value;
}

/* Over the warps of the block; every reduction has words of its own, so one barrier is enough. */
static int combine_warps(writer_t *w, const char *combiner, int value) {
  o3_kernel_text_t *t = w->t;
  int warps = w->p->threads / WARP, base = w->reductions++ * WARP * WORD;
  int lane = o3_kt_op_const(t, "andi", w->thread, WARP - 1), warp = o3_kt_op_const(t, "shrui", w->thread, 5);
  int mine =
      o3_kt_shared(t, w->shared, o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", warp, WORD), base));
  o3_kt_if(t, o3_kt_cmp_const(t, "eq", lane, 0));
  o3_kt_line(t, "llvm.store %%v%d, %%v%d : f32, !llvm.ptr<3>", value, mine);
  o3_kt_end(t);
  o3_kt_line(t, "nvvm.barrier0");
  int from = o3_kt_op_const(t, "andi", lane, warps - 1);
  int at = o3_kt_shared(t, w->shared, o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", from, WORD), base));
  return combine_lanes(w, combiner, o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<3> -> f32", at), warps);
}

/* ---- Ops ---- */

static void load_operand(writer_t *w, const o3_row_operand_t *operand, o3_arena_t *arena) {
  int *loaded = O3_ARENA_ARRAY(arena, int, (size_t)w->count);
  w->t->out.failed |= !loaded;
  if (!loaded) return;
  load_argument(w, operand, loaded);
  w->registers[operand->value] = loaded;
}

/* The rows of tables that the op reads, behind its operands; and the integers that tell which. */
static void get_tables(writer_t *w, const o3_row_op_t *op, const int **elements, int *integers,
                       o3_arena_t *arena) {
  o3_kernel_text_t *t = w->t;
  int rows[O3_ROW_MAX_GATHERS];
  for (int k = 0; k < op->num_operands; ++k)
    if (op->operands[k].value == O3_ROW_INDEX)
      integers[k] = load_index(w, &op->nest->operands[k], &op->operands[k]);
  o3_row_gathers_write(t, &op->gathers, integers, rows);
  for (int i = 0; i < op->gathers.count; ++i) {
    int *loaded = O3_ARENA_ARRAY(arena, int, (size_t)w->count);
    t->out.failed |= !loaded;
    if (!loaded) return;
    load_row(w, &w->p->values[op->tables[i]], o3_kt_op_const(t, "muli", rows[i], w->p->columns), loaded);
    elements[op->num_operands + i] = loaded;
  }
}

/* The registers of each operand; arguments that no op has written are loaded once. */
static void get_operands(writer_t *w, const o3_row_op_t *op, const int **elements, o3_arena_t *arena) {
  for (int k = 0; k < op->num_operands; ++k) {
    const o3_row_operand_t *operand = &op->operands[k];
    if (operand->value == O3_ROW_INDEX) continue;
    elements[k] = operand->used ? w->registers[operand->value] : NULL;
    if (!operand->used || elements[k]) continue;
    load_operand(w, operand, arena);
    elements[k] = w->registers[operand->value];
  }
}

static void arguments_of(writer_t *w, const o3_row_op_t *op, const int **elements, int i, int *arguments) {
  for (int k = 0; k < op->num_operands; ++k) {
    const o3_row_operand_t *operand = &op->operands[k];
    if (operand->value == O3_ROW_INDEX) continue;
    const o3_row_value_t *value = &w->p->values[operand->value];
    if (elements[k]) {
      arguments[k] = elements[k][o3_row_varies(w->p, operand) ? i : 0];
    } else {
      arguments[k] = o3_kt_value(w->t, "arith.constant 0.0 : %s", type_of(value));
    }
  }
  for (int k = op->num_operands; k < op->num_operands + op->gathers.count; ++k) arguments[k] = elements[k][i];
}

static int reduce(writer_t *w, int index, const int **elements) {
  o3_kernel_text_t *t = w->t;
  const o3_row_op_t *op = &w->p->ops[index];
  int last = op->num_operands - 1, arguments[O3_ROW_MAX_OPERANDS];
  int sum = o3_kt_value(t, "arith.constant %s : f32", o3_body_neutral(op->combiner));
  for (int i = 0; i < w->count; ++i) {
    arguments_of(w, op, elements, i, arguments);
    arguments[last] = sum;
    int next = call(w, index, arguments);
    sum = w->masks ? o3_kt_select(t, w->masks[i / w->p->vector], next, sum, "f32") : next;
  }
  sum = combine_lanes(w, op->combiner, sum, w->p->threads < WARP ? w->p->threads : WARP);
  if (w->p->threads > WARP) sum = combine_warps(w, op->combiner, sum);
  return combine(w, op->combiner, elements[last][0], sum);
}

static void write_op(writer_t *w, int index, o3_arena_t *arena) {
  const o3_row_op_t *op = &w->p->ops[index];
  const int *elements[MAX_PARAMETERS];
  int arguments[MAX_PARAMETERS];
  bool each = op->whole && !op->combiner;
  int *results = O3_ARENA_ARRAY(arena, int, (size_t)w->count);
  get_operands(w, op, elements, arena);
  if (op->gathers.count) get_tables(w, op, elements, arguments, arena);
  w->t->out.failed |= !results;
  if (w->t->out.failed) return;
  if (op->combiner) results[0] = reduce(w, index, elements);
  for (int i = 0; i < (each ? w->count : 1) && !op->combiner; ++i) {
    arguments_of(w, op, elements, i, arguments);
    results[i] = call(w, index, arguments);
  }
  w->registers[op->operands[op->num_operands - 1].value] = results;
}

/* ---- The kernel ---- */

static void init_columns(writer_t *w, o3_arena_t *arena) {
  o3_kernel_text_t *t = w->t;
  const o3_row_plan_t *p = w->p;
  bool ragged = p->columns % ((int64_t)p->threads * p->vector) != 0;
  w->columns = O3_ARENA_ARRAY(arena, int, (size_t)p->chunks);
  w->masks = ragged ? O3_ARENA_ARRAY(arena, int, (size_t)p->chunks) : NULL;
  t->out.failed |= !w->columns || (ragged && !w->masks);
  for (int c = 0; c < p->chunks && !t->out.failed; ++c) {
    int at = o3_kt_op_const(t, "addi", w->lane, (int64_t)c * p->threads);
    w->columns[c] = o3_kt_op_const(t, "muli", at, p->vector);
    if (ragged) w->masks[c] = o3_kt_cmp_const(t, "slt", w->columns[c], p->columns);
  }
}

/* Loads what is the same for all rows and no kernel writes, before the kernels before this one have ended. */
static void load_early(writer_t *w, o3_arena_t *arena) {
  const o3_row_plan_t *p = w->p;
  for (int i = 0; i < p->num_ops && p->few; ++i) {
    for (int k = 0; k < p->ops[i].num_operands; ++k) {
      const o3_row_operand_t *operand = &p->ops[i].operands[k];
      bool early = operand->value != O3_ROW_INDEX && operand->used && !w->registers[operand->value] &&
                   o3_row_varies(p, operand) && !o3_row_differs(p, operand) &&
                   o3_kernel_site_is_constant(w->site, p->values[operand->value].argument);
      if (early) load_operand(w, operand, arena);
    }
  }
}

static void write_row(writer_t *w, o3_arena_t *arena) {
  const o3_row_plan_t *p = w->p;
  w->reductions = 0;
  for (int i = 0; i < p->num_ops && !w->t->out.failed; ++i) write_op(w, i, arena);
  for (int v = 0; v < p->num_values && !w->t->out.failed; ++v) {
    if (p->values[v].written && p->values[v].argument >= 0) store_value(w, v);
  }
}

static int log2_of(int power) { return __builtin_ctz((unsigned)power); }

/* The thread's row and its place there. Lanes of a warp with several rows go on together to the end. */
static void find_row(writer_t *w, int block, int per_block) {
  o3_kernel_text_t *t = w->t;
  int threads = w->p->threads;
  w->inside = -1;
  w->row = block;
  w->lane = w->thread;
  if (per_block == 1) return;
  w->lane = o3_kt_op_const(t, "andi", w->thread, threads - 1);
  w->local = o3_kt_op_const(t, "shrui", w->thread, log2_of(threads));
  w->row = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", block, per_block), w->local);
  if (threads == WARP || w->p->rows % per_block == 0) return;
  w->inside = o3_kt_cmp_const(t, "slt", w->row, w->p->rows);
  w->row = o3_kt_op_const(t, "minsi", w->row, w->p->rows - 1);
}

static void write_kernel(writer_t *w, o3_arena_t *arena) {
  o3_kernel_text_t *t = w->t;
  int per_block = w->kernel->block / w->p->threads;
  w->shared = o3_kt_value(t, "llvm.mlir.addressof @o3_shared : !llvm.ptr<3>");
  if (w->kernel->overlaps) o3_kt_start_next(t);
  w->thread = o3_kt_thread(t);
  o3_row_stage_t stage = {t, w->p, w->shared, w->thread, o3_kt_block(t)};
  find_row(w, stage.block, per_block);
  memset(w->registers, 0, sizeof(w->registers));
  init_columns(w, arena);
  load_early(w, arena);
  if (w->kernel->overlaps) o3_kt_wait_for_others(t);
  bool ragged = w->p->threads == WARP && w->p->rows % per_block != 0;
  if (w->p->stage_bytes) o3_row_stage_load(&stage);
  if (ragged) o3_kt_if(t, o3_kt_cmp_const(t, "slt", w->row, w->p->rows));
  write_row(w, arena);
  if (ragged) o3_kt_end(t);
  if (w->p->stage_bytes) o3_row_stage_store(&stage);
}

static void write_module(o3_kernel_text_t *t, void *context) {
  writer_t *w = context;
  o3_arena_t *arena = o3_arena_create();
  w->t = t;
  t->out.failed |= !arena;
  o3_kt_begin_module(t);
  for (int i = 0; i < w->p->num_ops; ++i) write_function(w, i);
  o3_kt_begin_kernel(
      t, w->kernel,
      o3_gpu_resident_blocks(w->site->gpu, w->p->threads <= WARP ? WARP_THREADS : BLOCK_THREADS,
                             w->kernel->block, w->kernel->shared_bytes));
  if (arena) write_kernel(w, arena);
  o3_kt_end_kernel(t);
  o3_arena_destroy(arena);
}

static void set_launch(const o3_kernel_site_t *site, const o3_row_plan_t *p, o3_gpu_kernel_t *kernel) {
  kernel->block = p->threads > WARP ? p->threads : O3_ROW_BLOCK;
  int per_block = kernel->block / p->threads;
  kernel->grid[0] = (int)((p->rows + per_block - 1) / per_block);
  kernel->grid[1] = kernel->grid[2] = kernel->cluster = 1;
  kernel->overlaps = site->sm >= 90;
  kernel->shared_bytes = p->threads > WARP ? p->num_reductions * WARP * WORD : p->stage_bytes;
  for (int i = 0; i < site->num_arguments; ++i) o3_gpu_kernel_add_pointer(kernel, i);
}

o3_status_t o3_row_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not) {
  o3_row_plan_t *plan = O3_ARENA_NEW(site->arena, o3_row_plan_t);
  char stem[64];
  O3_TRY_ALLOC(plan);
  *kernel = (o3_gpu_kernel_t){0};
  *why_not =
      site->num_arguments > O3_GPU_MAX_ARGUMENTS ? "it has too many arguments" : o3_row_plan(site, plan);
  if (*why_not) return NULL;
  set_launch(site, plan, kernel);
  writer_t w = {.site = site, .p = plan, .kernel = kernel, .count = plan->chunks * plan->vector};
  const o3_row_value_t *last = &plan->values[plan->num_values - 1];
  O3_GPU_KERNEL_NOTE(kernel, {"threads", plan->threads}, {"vector", plan->vector}, {"chunks", plan->chunks});
  snprintf(stem, sizeof(stem), "o3k_%s_rows_%lldx%d__sm70", type_of(last), (long long)plan->columns,
           plan->threads);
  O3_TRY(o3_kt_write(kernel, stem, write_module, &w));
  return w.status;
}
