/* Products are inline assembly: the nvvm op has neither A in registers nor a committed group of several
 * steps, and adding to the descriptors inside the assembly keeps LLVM from holding dozens of sums in
 * registers. */
#include "target/nvptx/kernel_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

int o3_kt_name(o3_kernel_text_t *t) { return t->next++; }

static void append(o3_kernel_text_t *t, const char *format, va_list args) {
  char line[1024];
  int length = vsnprintf(line, sizeof(line), format, args);
  t->out.failed |= length < 0 || length >= (int)sizeof(line);
  o3_strbuf_puts(&t->out, line);
  o3_strbuf_puts(&t->out, "\n");
}

int o3_kt_value(o3_kernel_text_t *t, const char *format, ...) {
  va_list args;
  int name = o3_kt_name(t);
  o3_strbuf_printf(&t->out, "%%v%d = ", name);
  va_start(args, format);
  append(t, format, args);
  va_end(args);
  return name;
}

void o3_kt_line(o3_kernel_text_t *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  append(t, format, args);
  va_end(args);
}

/* ---- Integers and conditions ---- */

int o3_kt_i32(o3_kernel_text_t *t, int64_t value) {
  return o3_kt_value(t, "arith.constant %lld : i32", (long long)value);
}

int o3_kt_op(o3_kernel_text_t *t, const char *op, int a, int b) {
  return o3_kt_value(t, "arith.%s %%v%d, %%v%d : i32", op, a, b);
}

int o3_kt_op_const(o3_kernel_text_t *t, const char *op, int a, int64_t b) {
  return o3_kt_op(t, op, a, o3_kt_i32(t, b));
}

int o3_kt_split(o3_kernel_text_t *t, int *rest, int64_t size) {
  int at = o3_kt_op_const(t, "remui", *rest, size);
  *rest = o3_kt_op_const(t, "divui", *rest, size);
  return at;
}

int o3_kt_cmp(o3_kernel_text_t *t, const char *predicate, int a, int b) {
  return o3_kt_value(t, "arith.cmpi %s, %%v%d, %%v%d : i32", predicate, a, b);
}

int o3_kt_cmp_const(o3_kernel_text_t *t, const char *predicate, int a, int64_t b) {
  return o3_kt_cmp(t, predicate, a, o3_kt_i32(t, b));
}

int o3_kt_select(o3_kernel_text_t *t, int condition, int a, int b, const char *type) {
  return o3_kt_value(t, "arith.select %%v%d, %%v%d, %%v%d : %s", condition, a, b, type);
}

void o3_kt_if(o3_kernel_text_t *t, int condition) { o3_kt_line(t, "scf.if %%v%d {", condition); }
void o3_kt_else(o3_kernel_text_t *t) { o3_kt_line(t, "} else {"); }
void o3_kt_end(o3_kernel_text_t *t) { o3_kt_line(t, "}"); }

/* ---- Loops ---- */

static void open_carried(o3_kernel_text_t *t, int count, o3_kt_carried_t *carried) {
  o3_strbuf_puts(&t->out, " iter_args(");
  for (int i = 0; i < count; ++i) {
    carried[i].value = o3_kt_name(t);
    o3_strbuf_printf(&t->out, "%s%%v%d = %%v%d", i ? ", " : "", carried[i].value, carried[i].init);
  }
  o3_strbuf_puts(&t->out, ") -> (");
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s%s", i ? ", " : "", carried[i].type);
  o3_strbuf_puts(&t->out, ")");
}

int o3_kt_for(o3_kernel_text_t *t, int lower, int upper, int step, int count, o3_kt_carried_t *carried) {
  for (int i = 0; i < count; ++i) {
    carried[i].result = o3_kt_name(t);
    o3_strbuf_printf(&t->out, "%s%%v%d%s", i ? ", " : "", carried[i].result, i == count - 1 ? " = " : "");
  }
  int counter = o3_kt_name(t);
  o3_strbuf_printf(&t->out, "scf.for %%v%d = %%v%d to %%v%d step %%v%d", counter, lower, upper, step);
  if (count) open_carried(t, count, carried);
  o3_kt_line(t, " : i32 {");
  return counter;
}

void o3_kt_end_for(o3_kernel_text_t *t, int count, const o3_kt_carried_t *carried, const int *next) {
  if (count) o3_strbuf_puts(&t->out, "scf.yield ");
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s%%v%d", i ? ", " : "", next[i]);
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s%s", i ? ", " : " : ", carried[i].type);
  o3_kt_line(t, "\n}");
}

/* ---- Places ---- */

int o3_kt_thread(o3_kernel_text_t *t) { return o3_kt_value(t, "nvvm.read.ptx.sreg.tid.x : i32"); }
int o3_kt_block(o3_kernel_text_t *t) { return o3_kt_value(t, "nvvm.read.ptx.sreg.ctaid.x : i32"); }

int o3_kt_uniform(o3_kernel_text_t *t, int value) {
  int all = o3_kt_i32(t, -1), zero = o3_kt_i32(t, 0), last = o3_kt_i32(t, 31);
  return o3_kt_value(t, "nvvm.shfl.sync idx %%v%d, %%v%d, %%v%d, %%v%d : i32 -> i32", all, value, zero, last);
}

int o3_kt_shared(o3_kernel_text_t *t, int base, int bytes) {
  return o3_kt_value(t, "llvm.getelementptr %%v%d[%%v%d] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8", base,
                     bytes);
}

int o3_kt_global(o3_kernel_text_t *t, int base, int index, const char *element) {
  return o3_kt_value(t, "llvm.getelementptr %%v%d[%%v%d] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, %s", base,
                     index, element);
}

int o3_kt_address(o3_kernel_text_t *t, int shared) {
  return o3_kt_value(t, "llvm.ptrtoint %%v%d : !llvm.ptr<3> to i32", shared);
}

/* Where the row of this lane lies. */
static int matrix_row(o3_kernel_text_t *t, int staging, int warp, int lane, int piece) {
  int row = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", warp, 16), o3_kt_op_const(t, "andi", lane, 15));
  int chunk = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "shrui", lane, 4), piece);
  int swizzled = o3_kt_op(t, "xori", chunk, o3_kt_op_const(t, "andi", lane, 7));
  int at = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", row, 128), o3_kt_op_const(t, "muli", swizzled, 16));
  return o3_kt_shared(t, staging, at);
}

void o3_kt_store_matrices(o3_kernel_text_t *t, int staging, int warp, int lane, int piece,
                          const int words[4]) {
  o3_kt_line(t,
             "nvvm.stmatrix %%v%d, %%v%d, %%v%d, %%v%d, %%v%d {layout = #nvvm.mma_layout<row>, eltType = "
             "#nvvm.ld_st_matrix_elt_type<b16>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : "
             "!llvm.ptr<3>, i32, i32, i32, i32",
             matrix_row(t, staging, warp, lane, piece), words[0], words[1], words[2], words[3]);
}

/* ---- Barriers ---- */

void o3_kt_mbarrier_init(o3_kernel_text_t *t, int barrier, int count) {
  o3_kt_line(t, "nvvm.mbarrier.init %%v%d, %%v%d : !llvm.ptr<3>, i32", barrier, o3_kt_i32(t, count));
}

void o3_kt_mbarrier_wait(o3_kernel_text_t *t, int barrier, int parity) {
  o3_kt_line(t, "scf.while : () -> () {");
  int done = o3_kt_value(t, "nvvm.mbarrier.try_wait %%v%d, %%v%d : !llvm.ptr<3>, i32 -> i1", barrier, parity);
  int yes = o3_kt_value(t, "arith.constant true");
  int again = o3_kt_value(t, "arith.xori %%v%d, %%v%d : i1", done, yes);
  o3_kt_line(t, "scf.condition(%%v%d)\n} do {\nscf.yield\n}", again);
}

void o3_kt_mbarrier_arrive(o3_kernel_text_t *t, int barrier) {
  o3_kt_value(t, "nvvm.mbarrier.arrive %%v%d : !llvm.ptr<3> -> i64", barrier);
}

void o3_kt_mbarrier_expect(o3_kernel_text_t *t, int barrier, int bytes) {
  o3_kt_line(t, "nvvm.mbarrier.arrive.expect_tx %%v%d, %%v%d : !llvm.ptr<3>, i32", barrier,
             o3_kt_i32(t, bytes));
}

void o3_kt_barrier(o3_kernel_text_t *t, int id, int threads) {
  o3_kt_line(t, "nvvm.barrier id = %%v%d number_of_threads = %%v%d", id, o3_kt_i32(t, threads));
}

void o3_kt_barrier_arrive(o3_kernel_text_t *t, int id, int threads) {
  o3_kt_line(t, "nvvm.barrier.arrive id = %%v%d number_of_threads = %%v%d", id, o3_kt_i32(t, threads));
}

/* ---- Tensor copies ---- */

static void coordinates_text(o3_kernel_text_t *t, const char *name, int rank, const int *coordinates) {
  o3_strbuf_printf(&t->out, "%s[", name);
  for (int i = 0; i < rank; ++i) o3_strbuf_printf(&t->out, "%s%%v%d", i ? ", " : "", coordinates[i]);
  o3_strbuf_puts(&t->out, "] ");
}

static void begin_load(o3_kernel_text_t *t, int shared, const char *map, int barrier, int rank,
                       const int *coordinates) {
  int to = o3_kt_value(t, "llvm.addrspacecast %%v%d : !llvm.ptr<3> to !llvm.ptr<7>", shared);
  o3_strbuf_printf(&t->out, "nvvm.cp.async.bulk.tensor.shared.cluster.global %%v%d, %s, %%v%d, ", to, map,
                   barrier);
  coordinates_text(t, "box", rank, coordinates);
}

void o3_kt_tensor_load(o3_kernel_text_t *t, int shared, const char *map, int barrier, int rank,
                       const int *coordinates) {
  begin_load(t, shared, map, barrier, rank, coordinates);
  o3_strbuf_puts(&t->out, ": !llvm.ptr<7>, !llvm.ptr\n");
}

void o3_kt_start_next(o3_kernel_text_t *t) { o3_kt_line(t, "nvvm.griddepcontrol launch_dependents"); }

void o3_kt_wait_for_others(o3_kernel_text_t *t) { o3_kt_line(t, "nvvm.griddepcontrol wait"); }

void o3_kt_prefetch_map(o3_kernel_text_t *t, int map) {
  o3_kt_line(
      t, "llvm.inline_asm has_side_effects \"prefetch.tensormap [$0];\", \"l\" %%map%d : (!llvm.ptr) -> ()",
      map);
}

void o3_kt_window_load(o3_kernel_text_t *t, int shared, const char *map, int barrier,
                       const int coordinates[4], const int offsets[2]) {
  begin_load(t, shared, map, barrier, 4, coordinates);
  coordinates_text(t, "im2col", 2, offsets);
  o3_strbuf_puts(&t->out, "{mode = #nvvm.tma_load_mode<im2col>} : !llvm.ptr<7>, !llvm.ptr\n");
}

void o3_kt_tensor_store(o3_kernel_text_t *t, const char *map, int shared, int rank, const int *coordinates) {
  o3_strbuf_printf(&t->out, "nvvm.cp.async.bulk.tensor.global.shared.cta %s, %%v%d, ", map, shared);
  coordinates_text(t, "box", rank, coordinates);
  o3_strbuf_puts(&t->out, ": !llvm.ptr, !llvm.ptr<3>\n");
}

/* ---- Warpgroup products ---- */

enum { SWIZZLE_GROUP_BYTES = 1024, K_BYTES = 32 };

int o3_kt_member(o3_kernel_text_t *t, int count, int sums, int index) {
  return o3_kt_value(t, "llvm.extractvalue %%v%d[%d] : !sums%d", sums, index, count);
}

int o3_kt_struct(o3_kernel_text_t *t, int count, const int *values) {
  int sums = o3_kt_value(t, "llvm.mlir.undef : !sums%d", count);
  for (int i = 0; i < count; ++i)
    sums = o3_kt_value(t, "llvm.insertvalue %%v%d, %%v%d[%d] : !sums%d", values[i], sums, i, count);
  return sums;
}

/* The values of a struct's members: the number of the first; the others follow. */
static int extract_all(o3_kernel_text_t *t, int count, int sums) {
  int first = t->next;
  for (int i = 0; i < count; ++i) o3_kt_member(t, count, sums, i);
  return first;
}

static void list(o3_kernel_text_t *t, int count, const char *item) {
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s%s", i ? ", " : "", item);
}

static void registers(o3_kernel_text_t *t, int first, int count) {
  o3_strbuf_puts(&t->out, "{");
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s$%d", i ? ", " : "", first + i);
  o3_strbuf_puts(&t->out, "}");
}

/* One wgmma of the assembly; |a|: the operand's number of the first A register. */
static void wgmma_step(o3_kernel_text_t *t, const o3_wgmma_t *m, int step, int a) {
  const o3_gpu_element_info_t *type = o3_gpu_element_info(m->element);
  o3_strbuf_printf(&t->out, " wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s ", m->n, K_BYTES / type->bytes,
                   type->ptx, type->ptx);
  registers(t, 0, m->n / 2);
  if (m->a_registers) {
    o3_strbuf_puts(&t->out, ", ");
    registers(t, a + 4 * step, 4);
  } else {
    o3_strbuf_puts(&t->out, ", da");
  }
  o3_strbuf_printf(&t->out, ", db, %s, 1, 1", step || m->accumulate ? "yes" : "no");
  bool halves = type->bytes == 2; /* others are never transposed, and do not say so */
  if (halves && !m->a_registers) o3_strbuf_puts(&t->out, ", 0");
  if (halves) o3_strbuf_printf(&t->out, ", %d", m->b_by_rows);
  o3_strbuf_puts(&t->out, ";");
}

/* Upper and lower halves of B's descriptor besides the address. */
static uint32_t b_upper(void) { return 0x40000000u | SWIZZLE_GROUP_BYTES / 16; }
static uint32_t b_lower(const o3_wgmma_t *m) { return (m->b_by_rows ? (uint32_t)m->b_panel / 16 : 1u) << 16; }

static void wgmma_assembly(o3_kernel_text_t *t, const o3_wgmma_t *m, int a, int b) {
  int b_step = m->b_by_rows ? 16 * 128 / 16 : K_BYTES / 16;
  o3_strbuf_printf(
      &t->out,
      "{ .reg .pred yes, no; .reg .b64 da, db; .reg .b32 one, la, lb; mov.b32 one, 1; "
      "setp.ne.b32 yes, one, 0; setp.eq.b32 no, one, 0; or.b32 lb, $%d, %u; mov.b64 db, {lb, %u};",
      b, b_lower(m), b_upper());
  if (!m->a_registers)
    o3_strbuf_printf(&t->out, " or.b32 la, $%d, 65536; mov.b64 da, {la, %u};", a, b_upper());
  o3_strbuf_puts(&t->out, " wgmma.fence.sync.aligned;");
  for (int s = 0; s < m->steps; ++s) {
    if (s) o3_strbuf_printf(&t->out, " add.s64 db, db, %d;", b_step);
    if (s && !m->a_registers) o3_strbuf_printf(&t->out, " add.s64 da, da, %d;", K_BYTES / 16);
    wgmma_step(t, m, s, a);
  }
  o3_strbuf_puts(&t->out, m->open ? " }" : " wgmma.commit_group.sync.aligned; }");
}

static void wgmma_constraints(o3_kernel_text_t *t, int count, bool tied, int inputs) {
  for (int i = 0; i < count; ++i) o3_strbuf_printf(&t->out, "%s=f", i ? "," : "");
  for (int i = 0; tied && i < count; ++i) o3_strbuf_printf(&t->out, ",%d", i);
  for (int i = 0; i < inputs; ++i) o3_strbuf_puts(&t->out, ",r");
}

static void asm_types(o3_kernel_text_t *t, int count, bool tied, int inputs) {
  o3_strbuf_puts(&t->out, " : (");
  if (tied) list(t, count, "f32");
  for (int i = 0; i < inputs; ++i) o3_strbuf_puts(&t->out, tied || i ? ", i32" : "i32");
  o3_kt_line(t, ") -> !sums%d", count);
}

static void asm_operands(o3_kernel_text_t *t, int count, int sums, int inputs, const int *values) {
  o3_strbuf_puts(&t->out, " ");
  for (int i = 0; sums >= 0 && i < count; ++i) o3_strbuf_printf(&t->out, "%s%%v%d", i ? ", " : "", sums + i);
  for (int i = 0; i < inputs; ++i)
    o3_strbuf_printf(&t->out, "%s%%v%d", sums >= 0 || i ? ", " : "", values[i]);
}

int o3_kt_wgmma(o3_kernel_text_t *t, const o3_wgmma_t *m, int a, int b, int sums) {
  enum { MAX_INPUTS = 64 };
  int count = m->n / 2, tied = m->accumulate ? count : 0, inputs = 0, values[MAX_INPUTS];
  int first = m->accumulate ? extract_all(t, count, sums) : -1;
  values[inputs++] = b;
  if (!m->a_registers) values[inputs++] = a;
  for (int i = 0; m->a_registers && i < 4 * m->steps; ++i) values[inputs++] = m->a_registers[i];
  int result = o3_kt_name(t);
  o3_strbuf_printf(&t->out, "%%v%d = llvm.inline_asm has_side_effects \"", result);
  wgmma_assembly(t, m, count + tied + 1, count + tied);
  o3_strbuf_puts(&t->out, "\", \"");
  wgmma_constraints(t, count, m->accumulate, inputs);
  o3_strbuf_puts(&t->out, "\"");
  asm_operands(t, count, first, inputs, values);
  asm_types(t, count, m->accumulate, inputs);
  return result;
}

void o3_kt_wgmma_wait(o3_kernel_text_t *t, int groups) {
  o3_kt_line(t, "nvvm.wgmma.wait.group.sync.aligned %d", groups);
}

int o3_kt_wgmma_finish(o3_kernel_text_t *t, const o3_wgmma_finish_t *f, int sums) {
  int first = extract_all(t, f->count, sums), result = o3_kt_name(t);
  o3_strbuf_printf(&t->out,
                   "%%v%d = llvm.inline_asm has_side_effects \"wgmma.wait_group.sync.aligned %d;\", \"",
                   result, f->groups);
  wgmma_constraints(t, f->count, true, f->num_pinned);
  o3_strbuf_puts(&t->out, "\"");
  asm_operands(t, f->count, first, f->num_pinned, f->pinned);
  asm_types(t, f->count, true, f->num_pinned);
  return result;
}

/* ---- Modules ---- */

static void sums_type(o3_kernel_text_t *t, int count) {
  o3_strbuf_printf(&t->out, "!sums%d = !llvm.struct<(", count);
  for (int i = 0; i < count; ++i) o3_strbuf_puts(&t->out, i ? ", f32" : "f32");
  o3_kt_line(t, ")>");
}

void o3_kt_begin_module(o3_kernel_text_t *t) {
  for (int count = 4; count <= 128; count += 4) sums_type(t, count);
  o3_kt_line(
      t,
      "module {\nllvm.mlir.global external @o3_shared() {addr_space = 3 : i32, alignment = 1024 : i64} "
      ": !llvm.array<0 x i8>");
}

void o3_kt_begin_kernel(o3_kernel_text_t *t, const o3_gpu_kernel_t *kernel, int blocks) {
  o3_strbuf_printf(&t->out, "llvm.func @%s(", kernel->name);
  for (int i = 0; i < kernel->num_arguments; ++i) {
    if (i) o3_strbuf_puts(&t->out, ", ");
    if (kernel->arguments[i].kind == O3_GPU_ARG_TENSOR_MAP) {
      o3_strbuf_printf(&t->out,
                       "%%map%d: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, "
                       "nvvm.grid_constant}",
                       i);
    } else {
      bool rows = kernel->arguments[i].kind == O3_GPU_ARG_ROWS;
      o3_strbuf_printf(&t->out, "%%arg%d: %s", i, rows ? "i32" : "!llvm.ptr<1>");
    }
  }
  o3_strbuf_printf(&t->out, ") attributes {nvvm.kernel, nvvm.reqntid = array<i32: %d>", kernel->block);
  if (blocks) o3_strbuf_printf(&t->out, ", nvvm.minctasm = %d : i32", blocks);
  if (kernel->cluster > 1)
    o3_strbuf_printf(&t->out, ", nvvm.cluster_dim = array<i32: %d, 1, 1>", kernel->cluster);
  o3_kt_line(t, "} {");
}

void o3_kt_end_kernel(o3_kernel_text_t *t) { o3_kt_line(t, "llvm.return\n}"); }

static char *write_text(o3_kt_write_fn_t write, void *context) {
  o3_kernel_text_t t = {0};
  write(&t, context);
  o3_kt_line(&t, "}");
  if (t.out.failed) o3_strbuf_deinit(&t.out);
  return t.out.text;
}

/* FNV-1a. */
static uint64_t hash(const char *text) {
  uint64_t value = UINT64_C(0xcbf29ce484222325);
  for (; *text; ++text) value = (value ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return value;
}

/* The name is in the text, so the text is written twice. */
o3_status_t o3_kt_write(o3_gpu_kernel_t *kernel, const char *stem, o3_kt_write_fn_t write, void *context) {
  o3_strbuf_t name = O3_STRBUF_INIT;
  kernel->name = (char *)(uintptr_t)stem;
  char *draft = write_text(write, context);
  kernel->name = NULL;
  O3_TRY_ALLOC(draft);
  o3_strbuf_printf(&name, "%s_%016llx", stem, (unsigned long long)hash(draft));
  free(draft);
  if (name.failed) o3_strbuf_deinit(&name);
  kernel->name = name.text;
  O3_TRY_ALLOC(kernel->name);
  kernel->text = write_text(write, context);
  O3_TRY_ALLOC(kernel->text);
  return NULL;
}
