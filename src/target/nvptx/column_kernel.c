/* A thread has some neighbouring columns and every |parts|th element of each, which are loaded before
 * anything is computed; of sums of long columns alone in several turns. What a reduction makes of a thread's
 * elements goes through shared memory, in two places in turn, so that one barrier is enough: who writes a
 * place again has passed the barrier of the reduction between, to which everyone comes after having read it.
 * All threads of a column join all parts in the same order and go on with the same number. The bodies of the
 * ops are functions that are called for each element.
 */
#include "target/nvptx/column_kernel.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "schedule/gpu.h"
#include "target/nvptx/body_text.h"
#include "target/nvptx/column_plan.h"
#include "target/nvptx/kernel_text.h"

/* So many threads hide the time that memory takes, and leave 64 registers to each. */
enum { RESIDENT = 1024, WORD = 4 };
/* Most parts that every thread adds up itself. */
enum { IN_TURN = 8 };
enum { OUTER = O3_COLUMN_OUTER, ALONG = O3_COLUMN_ALONG, INNER = O3_COLUMN_INNER };

/* Elements of a buffer in registers, as they were loaded or written. */
typedef struct held {
  int elements[O3_COLUMN_MAX_ELEMENTS];
  int64_t steps[O3_COLUMN_AXES];
  bool there, made; /* made: by an op */
} held_t;

typedef struct writer {
  o3_kernel_text_t *t;
  const o3_column_plan_t *p;
  const o3_gpu_kernel_t *kernel;
  const o3_gpu_t *gpu;
  o3_status_t status;
  int outer, inner; /* the columns' places; |inner|: of the first */
  int valid;        /* whether there are such columns, which are else computed and not stored; -1: always */
  int lane, part;
  int along[O3_COLUMN_MAX_ELEMENTS],
      masks[O3_COLUMN_MAX_ELEMENTS]; /* of each chunk: place, whether it is one or -1 */
  int shared, reductions;
  held_t held[O3_COLUMN_MAX_OPS * 2]; /* for each value */
} writer_t;

static const char *type_of(const o3_column_value_t *value) {
  return o3_gpu_element_info(value->element)->mlir;
}

static const o3_column_operand_t *result_of(const o3_column_op_t *op) {
  return &op->operands[op->num_operands - 1];
}

/* ---- Bodies ---- */

static o3_body_function_t function_of(const writer_t *w, int index,
                                      const char *types[O3_COLUMN_MAX_OPERANDS]) {
  const o3_column_op_t *op = &w->p->ops[index];
  for (int i = 0; i < op->num_operands; ++i) types[i] = type_of(&w->p->values[op->operands[i].value]);
  return (o3_body_function_t){w->kernel->name, index, op->num_operands, types,
                              type_of(&w->p->values[result_of(op)->value])};
}

static void write_function(writer_t *w, int index) {
  const char *types[O3_COLUMN_MAX_OPERANDS];
  const o3_body_function_t function = function_of(w, index, types);
  int arguments[O3_COLUMN_MAX_OPERANDS], result = 0;
  o3_body_begin_function(w->t, &function, arguments);
  if (!w->status) w->status = o3_body_write(w->t, w->p->ops[index].nest, arguments, NULL, NULL, &result);
  o3_body_end_function(w->t, &function, result);
}

static int call(writer_t *w, int index, const int *arguments) {
  const char *types[O3_COLUMN_MAX_OPERANDS];
  const o3_body_function_t function = function_of(w, index, types);
  return o3_body_call_function(w->t, &function, arguments);
}

/* ---- Memory ---- */

/* The first element of a chunk, or of what is the same for all. */
static int pointer(writer_t *w, const o3_column_value_t *value, const int64_t *steps, int chunk) {
  o3_kernel_text_t *t = w->t;
  int at = o3_kt_op_const(t, "muli", w->outer, steps[OUTER]);
  if (steps[ALONG]) at = o3_kt_op(t, "addi", at, o3_kt_op_const(t, "muli", w->along[chunk], steps[ALONG]));
  if (steps[INNER]) at = o3_kt_op(t, "addi", at, w->inner);
  int base =
      o3_kt_value(t, "llvm.getelementptr %%arg%d[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8", value->argument);
  return o3_kt_global(t, base, at, type_of(value));
}

static void load_chunk(writer_t *w, const o3_column_value_t *value, const int64_t *steps, int chunk,
                       int *elements) {
  o3_kernel_text_t *t = w->t;
  const char *type = type_of(value);
  int vector = w->p->vector, at = pointer(w, value, steps, chunk);
  bool single = !steps[INNER];
  int loaded = single
                   ? o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<1> -> %s", at, type)
                   : o3_kt_value(t, "llvm.load %%v%d {alignment = %d : i64} : !llvm.ptr<1> -> vector<%dx%s>",
                                 at, vector * o3_gpu_element_info(value->element)->bytes, vector, type);
  for (int i = 0; i < vector; ++i)
    elements[i] = single ? loaded
                         : o3_kt_value(t, "vector.extract %%v%d[%d] : %s from vector<%dx%s>", loaded, i, type,
                                       vector, type);
}

/* The operand's elements; those of an argument that no op has written are loaded once, and again where they
 * are walked otherwise, in place of what was there. */
static const held_t *get_operand(writer_t *w, const o3_column_operand_t *operand) {
  const o3_column_value_t *value = &w->p->values[operand->value];
  held_t *held = &w->held[operand->value];
  int vector = w->p->vector, chunks = operand->steps[ALONG] ? w->p->chunks : 1;
  if (held->made || (held->there && !memcmp(held->steps, operand->steps, sizeof(held->steps)))) return held;
  for (int c = 0; c < chunks; ++c) load_chunk(w, value, operand->steps, c, held->elements + c * vector);
  memcpy(held->steps, operand->steps, sizeof(held->steps));
  held->there = true;
  return held;
}

static int element_of(const writer_t *w, const o3_column_operand_t *operand, const held_t *held, int i) {
  return held->elements[operand->steps[ALONG] ? i : i % w->p->vector];
}

static void store_chunk(writer_t *w, const o3_column_value_t *value, int chunk, const int *elements) {
  o3_kernel_text_t *t = w->t;
  int vector = o3_kt_name(t), mask = value->whole ? w->masks[chunk] : -1;
  o3_strbuf_printf(&t->out, "%%v%d = vector.from_elements ", vector);
  for (int i = 0; i < w->p->vector; ++i) o3_strbuf_printf(&t->out, "%s%%v%d", i ? ", " : "", elements[i]);
  o3_kt_line(t, " : vector<%dx%s>", w->p->vector, type_of(value));
  if (mask >= 0) o3_kt_if(t, mask);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = %d : i64} : vector<%dx%s>, !llvm.ptr<1>", vector,
             pointer(w, value, value->steps, chunk),
             w->p->vector * o3_gpu_element_info(value->element)->bytes, w->p->vector, type_of(value));
  if (mask >= 0) o3_kt_end(t);
}

/* Of single columns the first part stores. */
static void store_value(writer_t *w, int index) {
  o3_kernel_text_t *t = w->t;
  const o3_column_value_t *value = &w->p->values[index];
  bool shared = !value->whole && w->p->parts > 1;
  if (w->valid >= 0) o3_kt_if(t, w->valid);
  if (shared) o3_kt_if(t, o3_kt_cmp_const(t, "eq", w->part, 0));
  for (int c = 0; c < (value->whole ? w->p->chunks : 1); ++c)
    store_chunk(w, value, c, w->held[index].elements + c * w->p->vector);
  if (shared) o3_kt_end(t);
  if (w->valid >= 0) o3_kt_end(t);
}

/* ---- Reductions ---- */

/* The thread's chunks of the columns from place |base|, a value, on; -1: from the start. The last of them may
 * lie behind the end. */
static void find_chunks(writer_t *w, int base) {
  o3_kernel_text_t *t = w->t;
  const o3_column_plan_t *p = w->p;
  int64_t before = (int64_t)(p->turns - 1) * p->chunks * p->parts;
  int first = base < 0 ? w->part : o3_kt_op(t, "addi", base, w->part);
  for (int c = 0; c < p->chunks; ++c) {
    int at = o3_kt_op_const(t, "addi", first, (int64_t)c * p->parts);
    bool ragged = before + (int64_t)(c + 1) * p->parts > p->sizes[ALONG];
    w->masks[c] = ragged ? o3_kt_cmp_const(t, "slt", at, p->sizes[ALONG]) : -1;
    w->along[c] = ragged ? o3_kt_op_const(t, "minsi", at, p->sizes[ALONG] - 1) : at;
  }
}

static int combine(writer_t *w, const char *combiner, int a, int b) {
  return o3_kt_value(w->t, "%s %%v%d, %%v%d : f32", combiner, a, b);
}

/* Where part |part| (a value) of the thread's columns lies. */
static int part_pointer(writer_t *w, int part) {
  o3_kernel_text_t *t = w->t;
  const o3_column_plan_t *p = w->p;
  int bytes = p->vector * WORD, base = w->reductions % 2 * p->parts * p->lanes * bytes;
  int thread = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", part, p->lanes), w->lane);
  return o3_kt_shared(t, w->shared,
                      o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", thread, bytes), base));
}

static void store_part(writer_t *w, const int *sums) {
  o3_kernel_text_t *t = w->t;
  int vector = o3_kt_name(t), count = w->p->vector;
  o3_strbuf_printf(&t->out, "%%v%d = vector.from_elements ", vector);
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s%%v%d", i ? ", " : "", sums[i]);
  o3_kt_line(t, " : vector<%dxf32>", count);
  o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = %d : i64} : vector<%dxf32>, !llvm.ptr<3>", vector,
             part_pointer(w, w->part), count * WORD, count);
}

/* What part |part| (a value) has stored. */
static void load_part(writer_t *w, int part, int *sums) {
  int count = w->p->vector;
  int vector = o3_kt_value(w->t, "llvm.load %%v%d {alignment = %d : i64} : !llvm.ptr<3> -> vector<%dxf32>",
                           part_pointer(w, part), count * WORD, count);
  for (int i = 0; i < count; ++i)
    sums[i] = o3_kt_value(w->t, "vector.extract %%v%d[%d] : f32 from vector<%dxf32>", vector, i, count);
}

/* |sums| in one turn after the other, by every thread. */
static void join_in_turn(writer_t *w, const char *combiner, int *sums) {
  o3_kernel_text_t *t = w->t;
  o3_kt_carried_t carried[O3_COLUMN_MAX_ELEMENTS];
  int next[O3_COLUMN_MAX_ELEMENTS], count = w->p->vector;
  int none = o3_kt_value(t, "arith.constant %s : f32", o3_body_neutral(combiner));
  for (int i = 0; i < count; ++i) carried[i] = (o3_kt_carried_t){.init = none, .type = "f32"};
  int at = o3_kt_for(t, o3_kt_i32(t, 0), o3_kt_i32(t, w->p->parts), o3_kt_i32(t, 1), count, carried);
  load_part(w, at, next);
  for (int i = 0; i < count; ++i) next[i] = combine(w, combiner, carried[i].value, next[i]);
  o3_kt_end_for(t, count, carried, next);
  for (int i = 0; i < count; ++i) sums[i] = carried[i].result;
}

/* The lower half of the parts adds the upper one's, until one is left: its place is that of part 0. */
static void join_by_halves(writer_t *w, const char *combiner, int *sums) {
  o3_kernel_text_t *t = w->t;
  int mine[O3_COLUMN_MAX_ELEMENTS], other[O3_COLUMN_MAX_ELEMENTS];
  for (int half = w->p->parts / 2; half; half /= 2) {
    o3_kt_if(t, o3_kt_cmp_const(t, "slt", w->part, half));
    load_part(w, w->part, mine);
    load_part(w, o3_kt_op_const(t, "addi", w->part, half), other);
    for (int i = 0; i < w->p->vector; ++i) mine[i] = combine(w, combiner, mine[i], other[i]);
    store_part(w, mine);
    o3_kt_end(t);
    o3_kt_line(t, "nvvm.barrier0");
  }
  load_part(w, o3_kt_i32(t, 0), sums);
}

/* All parts of the columns, joined to |sums|. Halving takes barriers, and all of them before a place is
 * written again. */
static void join_parts(writer_t *w, const char *combiner, int *sums) {
  store_part(w, sums);
  o3_kt_line(w->t, "nvvm.barrier0");
  bool many = w->p->num_reductions == 1 && w->p->parts > IN_TURN;
  (many ? join_by_halves : join_in_turn)(w, combiner, sums);
}

/* ---- Ops ---- */

static void arguments_of(writer_t *w, const o3_column_op_t *op, const held_t **held, int i, int *arguments) {
  for (int k = 0; k < op->num_operands; ++k) {
    const o3_column_operand_t *operand = &op->operands[k];
    const char *type = type_of(&w->p->values[operand->value]);
    arguments[k] =
        held[k] ? element_of(w, operand, held[k], i) : o3_kt_value(w->t, "arith.constant 0.0 : %s", type);
  }
}

/* What the thread's chunks add to |sums|. */
static void add_chunks(writer_t *w, int index, const held_t **held, int *sums) {
  const o3_column_op_t *op = &w->p->ops[index];
  int last = op->num_operands - 1, vector = w->p->vector, arguments[O3_COLUMN_MAX_OPERANDS];
  for (int i = 0; i < w->p->chunks * vector; ++i) {
    int *sum = &sums[i % vector], mask = w->masks[i / vector];
    arguments_of(w, op, held, i, arguments);
    arguments[last] = *sum;
    int next = call(w, index, arguments);
    *sum = mask >= 0 ? o3_kt_select(w->t, mask, next, *sum, "f32") : next;
  }
}

/* |held|: each operand that the op reads, copied to |own|, for two operands may be one buffer, walked in two
 * ways; of the others NULL. */
static void get_operands(writer_t *w, int index, held_t *own, const held_t **held) {
  const o3_column_op_t *op = &w->p->ops[index];
  for (int k = 0; k < op->num_operands; ++k) {
    held[k] = NULL;
    if (!op->operands[k].used) continue;
    own[k] = *get_operand(w, &op->operands[k]);
    held[k] = &own[k];
  }
}

static void write_map(writer_t *w, int index);

/* The sums of all turns. What a turn loads is not there behind the loop. */
static void add_turns(writer_t *w, int index, int *sums) {
  o3_kernel_text_t *t = w->t;
  const o3_column_plan_t *p = w->p;
  held_t outside[O3_COLUMN_MAX_OPS * 2], own[O3_COLUMN_MAX_OPERANDS];
  const held_t *held[O3_COLUMN_MAX_OPERANDS];
  o3_kt_carried_t carried[O3_COLUMN_MAX_ELEMENTS];
  for (int i = 0; i < p->vector; ++i) carried[i] = (o3_kt_carried_t){.init = sums[i], .type = "f32"};
  memcpy(outside, w->held, sizeof(outside));
  int turn = o3_kt_for(t, o3_kt_i32(t, 0), o3_kt_i32(t, p->turns), o3_kt_i32(t, 1), p->vector, carried);
  for (int i = 0; i < p->vector; ++i) sums[i] = carried[i].value;
  find_chunks(w, o3_kt_op_const(t, "muli", turn, (int64_t)p->chunks * p->parts));
  for (int i = 0; i < index; ++i)
    if (p->ops[i].whole) write_map(w, i);
  get_operands(w, index, own, held);
  add_chunks(w, index, held, sums);
  o3_kt_end_for(t, p->vector, carried, sums);
  for (int i = 0; i < p->vector; ++i) sums[i] = carried[i].result;
  memcpy(w->held, outside, sizeof(outside));
}

static void write_reduction(writer_t *w, int index) {
  o3_kernel_text_t *t = w->t;
  const o3_column_op_t *op = &w->p->ops[index];
  int vector = w->p->vector, sums[O3_COLUMN_MAX_ELEMENTS];
  int none = o3_kt_value(t, "arith.constant %s : f32", o3_body_neutral(op->combiner));
  const held_t *start = get_operand(w, result_of(op));
  held_t own[O3_COLUMN_MAX_OPERANDS], *out = &w->held[result_of(op)->value];
  const held_t *held[O3_COLUMN_MAX_OPERANDS];
  for (int i = 0; i < vector; ++i) sums[i] = none;
  if (w->p->turns > 1) {
    add_turns(w, index, sums);
  } else {
    get_operands(w, index, own, held);
    add_chunks(w, index, held, sums);
  }
  if (w->p->parts > 1) join_parts(w, op->combiner, sums);
  ++w->reductions;
  for (int i = 0; i < vector; ++i) out->elements[i] = combine(w, op->combiner, start->elements[i], sums[i]);
  out->made = true;
}

static void write_map(writer_t *w, int index) {
  const o3_column_op_t *op = &w->p->ops[index];
  held_t own[O3_COLUMN_MAX_OPERANDS], *out = &w->held[result_of(op)->value];
  const held_t *held[O3_COLUMN_MAX_OPERANDS];
  int arguments[O3_COLUMN_MAX_OPERANDS], results[O3_COLUMN_MAX_ELEMENTS], vector = w->p->vector;
  int count = op->whole ? w->p->chunks * vector : vector;
  get_operands(w, index, own, held);
  for (int i = 0; i < count; ++i) {
    arguments_of(w, op, held, i, arguments);
    results[i] = call(w, index, arguments);
  }
  memcpy(out->elements, results, (size_t)count * sizeof(int));
  out->made = true;
}

/* Ops on whole columns before a sum of several turns run in each of these. */
static void write_op(writer_t *w, int index) {
  const o3_column_op_t *op = &w->p->ops[index];
  if (op->combiner) {
    write_reduction(w, index);
  } else if (!op->whole || w->p->turns == 1) {
    write_map(w, index);
  }
}

/* ---- The kernel ---- */

static int64_t tiles_of(const o3_column_plan_t *p) {
  return (p->sizes[INNER] / p->vector + p->lanes - 1) / p->lanes;
}

static void find_columns(writer_t *w) {
  o3_kernel_text_t *t = w->t;
  const o3_column_plan_t *p = w->p;
  int64_t vectors = p->sizes[INNER] / p->vector;
  int thread = o3_kt_thread(t), block = o3_kt_block(t);
  w->lane = o3_kt_split(t, &thread, p->lanes);
  w->part = thread;
  int tile = o3_kt_split(t, &block, tiles_of(p));
  w->outer = block;
  int vector = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", tile, p->lanes), w->lane);
  w->valid = vectors % p->lanes ? o3_kt_cmp_const(t, "slt", vector, vectors) : -1;
  if (w->valid >= 0) vector = o3_kt_op_const(t, "minsi", vector, vectors - 1);
  w->inner = o3_kt_op_const(t, "muli", vector, p->vector);
  if (p->turns == 1) find_chunks(w, -1);
}

static void write_module(o3_kernel_text_t *t, void *context) {
  writer_t *w = context;
  const o3_column_plan_t *p = w->p;
  w->t = t;
  w->reductions = 0;
  memset(w->held, 0, sizeof(w->held));
  o3_kt_begin_module(t);
  for (int i = 0; i < p->num_ops; ++i) write_function(w, i);
  o3_kt_begin_kernel(t, w->kernel,
                     o3_gpu_resident_blocks(w->gpu, RESIDENT, w->kernel->block, w->kernel->shared_bytes));
  w->shared = o3_kt_value(t, "llvm.mlir.addressof @o3_shared : !llvm.ptr<3>");
  if (w->kernel->overlaps) o3_kt_start_next(t);
  find_columns(w);
  if (w->kernel->overlaps) o3_kt_wait_for_others(t);
  for (int i = 0; i < p->num_ops; ++i) write_op(w, i);
  for (int v = 0; v < p->num_values; ++v)
    if (p->values[v].written && p->values[v].argument >= 0) store_value(w, v);
  o3_kt_end_kernel(t);
}

static int shared_bytes(const o3_column_plan_t *p) {
  int places = p->num_reductions < 2 ? p->num_reductions : 2;
  return p->parts > 1 ? places * p->lanes * p->parts * p->vector * WORD : 0;
}

static void set_launch(const o3_kernel_site_t *site, const o3_column_plan_t *p, o3_gpu_kernel_t *kernel) {
  kernel->block = p->lanes * p->parts;
  kernel->grid[0] = (int)(p->sizes[OUTER] * tiles_of(p));
  kernel->grid[1] = kernel->grid[2] = kernel->cluster = 1;
  kernel->overlaps = site->sm >= 90;
  kernel->shared_bytes = shared_bytes(p);
  for (int i = 0; i < site->num_arguments; ++i) o3_gpu_kernel_add_pointer(kernel, i);
  O3_GPU_KERNEL_NOTE(kernel, {"vector", p->vector}, {"lanes", p->lanes}, {"parts", p->parts},
                     {"chunks", p->chunks}, {"turns", p->turns});
}

o3_status_t o3_column_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not) {
  o3_column_plan_t *plan = O3_ARENA_NEW(site->arena, o3_column_plan_t);
  writer_t *w = O3_ARENA_NEW(site->arena, writer_t);
  char stem[64];
  O3_TRY_ALLOC(plan);
  O3_TRY_ALLOC(w);
  *kernel = (o3_gpu_kernel_t){0};
  *why_not =
      site->num_arguments > O3_GPU_MAX_ARGUMENTS
          ? "it has too many arguments"
          : o3_column_plan(site->arena, site->num_ops, site->ops, site, site->gpu->multiprocessors, plan);
  if (*why_not) return NULL;
  set_launch(site, plan, kernel);
  *w = (writer_t){.p = plan, .kernel = kernel, .gpu = site->gpu};
  const o3_column_op_t *last = &plan->ops[plan->num_ops - 1];
  snprintf(stem, sizeof(stem), "o3k_%s_columns_%lldx%d__sm70", type_of(&plan->values[result_of(last)->value]),
           (long long)plan->sizes[ALONG], plan->parts);
  O3_TRY(o3_kt_write(kernel, stem, write_module, w));
  return w->status;
}

const char *o3_column_refuse_ops(o3_arena_t *arena, const o3_gpu_t *gpu, int num_ops,
                                 const MlirOperation *ops) {
  o3_column_plan_t *plan = O3_ARENA_NEW(arena, o3_column_plan_t);
  const char *why =
      plan ? o3_column_plan(arena, num_ops, ops, NULL, gpu->multiprocessors, plan) : "memory is out";
  if (!why && shared_bytes(plan) > gpu->shared_per_block)
    why = "a block of it takes more shared memory than the card gives";
  return why;
}
