/* All arithmetic of indices is in i64, whatever integers they come from. */
#include "target/nvptx/row_gather.h"

#include <stdio.h>

static const char *const INDEX_OPS[] = {"arith.index_cast", "arith.extsi",  "arith.addi",
                                        "arith.subi",       "arith.muli",   "arith.minsi",
                                        "arith.maxsi",      "arith.select", "arith.cmpi"};
enum { NUM_INDEX_OPS = sizeof(INDEX_OPS) / sizeof(INDEX_OPS[0]) };

static bool is_index_op(MlirOperation op) {
  for (int i = 0; i < NUM_INDEX_OPS; ++i) {
    if (o3_op_is(op, INDEX_OPS[i])) return true;
  }
  return false;
}

static bool is_column(MlirValue value, int column) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_op_is(def, "linalg.index") && o3_op_int(def, "dim", -1) == column;
}

/* ---- Finding ---- */

static bool reads(MlirOperation user, MlirOperation def) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(user); ++i) {
    MlirOperation from = o3_value_def(mlirOperationGetOperand(user, i));
    if (!mlirOperationIsNull(from) && mlirOperationEqual(from, def)) return true;
  }
  return false;
}

/* Whether one of the bound ops, which come behind it, reads |op|. */
static bool is_read(const o3_body_bound_t *bound, MlirOperation op) {
  for (int i = 0; i < bound->count; ++i) {
    if (reads(bound->ops[i], op)) return true;
  }
  return false;
}

static const char *add_load(o3_row_gathers_t *g, MlirOperation op, int column) {
  if (g->count == O3_ROW_MAX_GATHERS) return "its body reads too many tables";
  if (mlirOperationGetNumOperands(op) != 3 || !is_column(mlirOperationGetOperand(op, 2), column))
    return "its body reads memory other than a row of a table";
  g->loads[g->count++] = op;
  return NULL;
}

/* From the last op to the first: what the loads and their indices need. */
static const char *collect(const o3_nest_t *nest, int column, o3_row_gathers_t *g) {
  MlirOperation ops[2 * O3_BODY_MAX_BOUND];
  int count = 0;
  MlirOperation op = mlirBlockGetFirstOperation(nest->body), end = mlirBlockGetTerminator(nest->body);
  for (; !mlirOperationEqual(op, end); op = mlirOperationGetNextInBlock(op)) {
    if (count == 2 * O3_BODY_MAX_BOUND) return "its body reads memory and has too many ops";
    ops[count++] = op;
  }
  for (int i = count - 1; i >= 0; --i) {
    bool load = o3_op_is(ops[i], "memref.load"), index = o3_op_is(ops[i], "linalg.index");
    if (!load && !index && !is_read(&g->bound, ops[i])) continue;
    bool constant = o3_op_is(ops[i], "arith.constant");
    if (!load && !index && !constant && !is_index_op(ops[i]))
      return "an index is computed in a way that rows do not have";
    const char *why = load ? add_load(g, ops[i], column) : NULL;
    if (why) return why;
    if (g->bound.count == O3_BODY_MAX_BOUND) return "an index is computed from too many ops";
    g->bound.given[g->bound.count] = load;
    g->bound.ops[g->bound.count++] = ops[i];
  }
  return NULL;
}

static bool is_row_index(const o3_row_gathers_t *g, MlirValue value) {
  MlirOperation def = o3_value_def(value);
  return mlirOperationIsNull(def) ||
         (o3_op_is(def, "arith.constant") || (o3_body_bound_number(&g->bound, def) >= 0 && is_index_op(def)));
}

/* Columns are no part of an index, and the loads' results are elements. */
static const char *check_indices(const o3_row_gathers_t *g) {
  for (int i = 0; i < g->bound.count; ++i) {
    MlirOperation op = g->bound.ops[i];
    bool load = o3_op_is(op, "memref.load");
    intptr_t first = load ? 1 : 0, count = load ? 2 : mlirOperationGetNumOperands(op);
    for (intptr_t k = first; k < count; ++k)
      if (!is_row_index(g, mlirOperationGetOperand(op, k)))
        return "an index is computed in a way that rows do not have";
  }
  return NULL;
}

static bool has_loads(const o3_nest_t *nest) {
  MlirOperation op = mlirBlockGetFirstOperation(nest->body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (o3_op_is(op, "memref.load")) return true;
  }
  return false;
}

const char *o3_row_gathers_find(const o3_nest_t *nest, int column, o3_row_gathers_t *gathers) {
  *gathers = (o3_row_gathers_t){0};
  if (!has_loads(nest)) return NULL;
  const char *why = collect(nest, column, gathers);
  return why ? why : check_indices(gathers);
}

/* ---- Writing ---- */

typedef struct indices {
  o3_kernel_text_t *t;
  const o3_row_gathers_t *gathers;
  const int *arguments;
  int numbers[O3_BODY_MAX_BOUND];
} indices_t;

static int number_of(indices_t *it, MlirValue value) {
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def)) return it->arguments[mlirBlockArgumentGetArgNumber(value)];
  if (o3_op_is(def, "arith.constant"))
    return o3_kt_value(it->t, "arith.constant %lld : i64", (long long)o3_op_int(def, "value", 0));
  return it->numbers[o3_body_bound_number(&it->gathers->bound, def)];
}

static int write_op(indices_t *it, MlirOperation op) {
  o3_kernel_text_t *t = it->t;
  int n[3] = {0};
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i)
    n[i] = number_of(it, mlirOperationGetOperand(op, i));
  if (o3_op_is(op, "arith.index_cast") || o3_op_is(op, "arith.extsi")) return n[0];
  if (o3_op_is(op, "arith.select")) return o3_kt_select(t, n[0], n[1], n[2], "i64");
  if (o3_op_is(op, "arith.cmpi"))
    return o3_kt_value(t, "\"arith.cmpi\"(%%v%d, %%v%d) {predicate = %lld : i64} : (i64, i64) -> i1", n[0],
                       n[1], (long long)o3_op_int(op, "predicate", 0));
  char name[32];
  snprintf(name, sizeof(name), "%.*s", O3_STR_ARGS(o3_op_name(op)));
  return o3_kt_value(t, "%s %%v%d, %%v%d : i64", name, n[0], n[1]);
}

void o3_row_gathers_write(o3_kernel_text_t *t, const o3_row_gathers_t *gathers, const int *arguments,
                          int rows[O3_ROW_MAX_GATHERS]) {
  indices_t it = {.t = t, .gathers = gathers, .arguments = arguments};
  for (int i = gathers->bound.count - 1; i >= 0; --i) {
    MlirOperation op = gathers->bound.ops[i];
    if (is_index_op(op)) it.numbers[i] = write_op(&it, op);
  }
  for (int i = 0; i < gathers->count; ++i)
    rows[i] = o3_kt_value(t, "arith.trunci %%v%d : i64 to i32",
                          number_of(&it, mlirOperationGetOperand(gathers->loads[i], 1)));
}
