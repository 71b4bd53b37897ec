#include "bank_simulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"

enum { BANK_LANES = 32, BANK_COUNT = 32, BANK_WORD = 4 };

/* A number a lane, of 32 bits or a pointer. */
typedef struct bank_value {
  uint32_t lane[BANK_LANES];
} bank_value_t;

typedef struct bank_machine {
  o3_arena_t *arena;
  o3_ptr_map_t *values; /* MlirValue.ptr -> bank_value_t; none: not known */
  uint32_t first_thread;
  bank_report_t *report;
} bank_machine_t;

/* ---- Values ---- */

static const bank_value_t *bank_get(const bank_machine_t *m, MlirValue value) {
  return o3_ptr_map_get(m->values, value.ptr);
}

static void bank_put(bank_machine_t *m, MlirValue value, const bank_value_t *number) {
  bank_value_t *copy = number ? O3_ARENA_NEW(m->arena, bank_value_t) : NULL;
  if (copy) *copy = *number;
  (void)!o3_ptr_map_put(m->values, value.ptr, copy);
}

static const bank_value_t *bank_operand(const bank_machine_t *m, MlirOperation op, int index) {
  return bank_get(m, mlirOperationGetOperand(op, index));
}

/* ---- Accesses ---- */

/* The most words of one bank among |count| pieces of |bytes| at |addresses|. */
static int bank_turn(int count, const uint32_t *addresses, int bytes) {
  uint32_t words[BANK_LANES * 4];
  int num_words = 0, used[BANK_COUNT] = {0}, most = 0;
  for (int i = 0; i < count; ++i) {
    uint32_t first = addresses[i] / BANK_WORD, last = (addresses[i] + (uint32_t)bytes - 1) / BANK_WORD;
    for (uint32_t word = first; word <= last; ++word) {
      int k = 0;
      while (k < num_words && words[k] != word) ++k;
      if (k < num_words) continue;
      words[num_words++] = word;
      int bank = ++used[word % BANK_COUNT];
      if (bank > most) most = bank;
    }
  }
  return most;
}

/* |lanes| a turn. */
static void bank_access(bank_machine_t *m, MlirOperation op, const bank_value_t *address, uint32_t active,
                        int bytes, int lanes, int all) {
  if (!address) {
    ++m->report->unknown;
    return;
  }
  ++m->report->judged;
  for (int first = 0; first < all; first += lanes) {
    uint32_t addresses[BANK_LANES];
    int count = 0;
    for (int i = first; i < first + lanes; ++i)
      if (active >> i & 1) addresses[count++] = address->lane[i];
    int words = bank_turn(count, addresses, bytes);
    if (words <= m->report->worst) continue;
    m->report->worst = words;
    snprintf(m->report->what, sizeof(m->report->what), "%.*s of %d bytes, warp %u",
             O3_STR_ARGS(o3_op_name(op)), bytes, m->first_thread / BANK_LANES);
  }
}

/* Bytes of vector<4xf32>, f16, i32, ...; 0 for what is no number. */
static int bank_bytes(MlirType type) {
  if (!mlirTypeIsAVector(type)) return o3_type_bits(type) / 8;
  return (int)mlirShapedTypeGetDimSize(type, 0) * o3_type_bits(mlirShapedTypeGetElementType(type)) / 8;
}

static bool bank_is_shared(MlirValue pointer) {
  char *text = o3_type_text(mlirValueGetType(pointer));
  bool shared = text && !strcmp(text, "!llvm.ptr<3>");
  free(text);
  return shared;
}

static void bank_memory_op(bank_machine_t *m, MlirOperation op, uint32_t active) {
  bool store = o3_op_is(op, "llvm.store");
  MlirValue pointer = mlirOperationGetOperand(op, store);
  if (!bank_is_shared(pointer)) return;
  int bytes =
      bank_bytes(mlirValueGetType(store ? mlirOperationGetOperand(op, 0) : mlirOperationGetResult(op, 0)));
  int lanes = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  bank_access(m, op, bank_get(m, pointer), active, bytes, lanes, BANK_LANES);
}

/* Each matrix's rows are the addresses of eight lanes. */
static void bank_matrix_op(bank_machine_t *m, MlirOperation op) {
  int matrices =
      o3_op_is(op, "nvvm.ldmatrix") ? (int)o3_op_int(op, "num", 1) : (int)mlirOperationGetNumOperands(op) - 1;
  bank_access(m, op, bank_operand(m, op, 0), UINT32_MAX, 16, 8, 8 * matrices);
}

/* ---- Arithmetic ---- */

static bool bank_compare(int64_t predicate, uint32_t a, uint32_t b) {
  int32_t x = (int32_t)a, y = (int32_t)b;
  const bool results[] = {a == b, a != b, x<y, x <= y, x> y, x >= y, a<b, a <= b, a> b, a >= b};
  return results[predicate];
}

static bool bank_compute(MlirOperation op, uint32_t a, uint32_t b, uint32_t *y) {
  static const char *const NAMES[] = {"addi", "subi",  "muli",  "andi",  "ori",   "xori",  "shrui",
                                      "shli", "divui", "remui", "minsi", "maxsi", "minui", "maxui"};
  MlirStringRef name = o3_op_name(op);
  int i = 0;
  while (i < 14 && !o3_str_equal((MlirStringRef){name.data + 6, name.length - 6}, NAMES[i])) ++i;
  bool divides = i == 8 || i == 9;
  if (i == 14 || (divides && !b)) return false;
  int32_t x = (int32_t)a, z = (int32_t)b;
  const uint32_t results[] = {a + b,
                              a - b,
                              a * b,
                              a & b,
                              a | b,
                              a ^ b,
                              b < 32 ? a >> b : 0,
                              b < 32 ? a << b : 0,
                              divides ? a / b : 0,
                              divides ? a % b : 0,
                              x < z ? a : b,
                              x > z ? a : b,
                              a < b ? a : b,
                              a > b ? a : b};
  *y = results[i];
  return true;
}

static bool bank_arith(const bank_machine_t *m, MlirOperation op, bank_value_t *y) {
  if (o3_op_is(op, "arith.constant")) {
    MlirAttribute value = o3_op_attr(op, "value");
    bool number = mlirAttributeIsAInteger(value) || mlirAttributeIsABool(value);
    for (int i = 0; number && i < BANK_LANES; ++i)
      y->lane[i] = mlirAttributeIsABool(value) ? mlirBoolAttrGetValue(value)
                                               : (uint32_t)mlirIntegerAttrGetValueInt(value);
    return number;
  }
  const bank_value_t *in[3] = {NULL};
  intptr_t count = mlirOperationGetNumOperands(op);
  for (int i = 0; i < count && i < 3; ++i)
    if (!(in[i] = bank_operand(m, op, i))) return false;
  for (int i = 0; i < BANK_LANES; ++i) {
    if (o3_op_is(op, "arith.select")) {
      y->lane[i] = in[0]->lane[i] ? in[1]->lane[i] : in[2]->lane[i];
    } else if (o3_op_is(op, "arith.cmpi")) {
      y->lane[i] = bank_compare(o3_op_int(op, "predicate", 0), in[0]->lane[i], in[1]->lane[i]);
    } else if (count == 1) {
      y->lane[i] = in[0]->lane[i]; /* other widths */
    } else if (!bank_compute(op, in[0]->lane[i], in[1]->lane[i], &y->lane[i])) {
      return false;
    }
  }
  return true;
}

/* base + index * size of the element */
static bool bank_address(const bank_machine_t *m, MlirOperation op, bank_value_t *y) {
  const bank_value_t *base = bank_operand(m, op, 0);
  bool dynamic = mlirOperationGetNumOperands(op) == 2;
  const bank_value_t *index = dynamic ? bank_operand(m, op, 1) : NULL;
  MlirAttribute constants = o3_op_attr(op, "rawConstantIndices");
  int size = bank_bytes(mlirTypeAttrGetValue(o3_op_attr(op, "elem_type")));
  if (!base || (dynamic && !index) || mlirDenseArrayGetNumElements(constants) != 1) return false;
  uint32_t constant = dynamic ? 0 : (uint32_t)mlirDenseI32ArrayGetElement(constants, 0);
  for (int i = 0; i < BANK_LANES; ++i)
    y->lane[i] = base->lane[i] + (index ? index->lane[i] : constant) * (uint32_t)size;
  return true;
}

/* A value of another lane: idx alone, which makes values of a warp from those of its first lane. */
static bool bank_shuffle(const bank_machine_t *m, MlirOperation op, bank_value_t *y) {
  char *kind = o3_attr_text(o3_op_attr(op, "kind"));
  const bank_value_t *from = bank_operand(m, op, 1), *lane = bank_operand(m, op, 2);
  bool known = kind && strstr(kind, "idx") && from && lane;
  free(kind);
  for (int i = 0; known && i < BANK_LANES; ++i) y->lane[i] = from->lane[lane->lane[i] % BANK_LANES];
  return known;
}

static bool bank_evaluate(const bank_machine_t *m, MlirOperation op, bank_value_t *y) {
  MlirStringRef name = o3_op_name(op);
  *y = (bank_value_t){{0}};
  if (name.length > 6 && !strncmp(name.data, "arith.", 6)) return bank_arith(m, op, y);
  if (o3_op_is(op, "nvvm.read.ptx.sreg.tid.x")) {
    for (uint32_t i = 0; i < BANK_LANES; ++i) y->lane[i] = m->first_thread + i;
    return true;
  }
  if (o3_op_is(op, "llvm.mlir.addressof") || o3_op_is(op, "nvvm.read.ptx.sreg.ctaid.x")) return true;
  if (o3_op_is(op, "llvm.getelementptr")) return bank_address(m, op, y);
  if (o3_op_is(op, "nvvm.shfl.sync")) return bank_shuffle(m, op, y);
  bool same =
      o3_op_is(op, "llvm.ptrtoint") || o3_op_is(op, "llvm.addrspacecast") || o3_op_is(op, "llvm.inttoptr");
  const bank_value_t *from = same ? bank_operand(m, op, 0) : NULL;
  if (from) *y = *from;
  return from != NULL;
}

/* ---- Control flow ---- */

static MlirOperation bank_run(bank_machine_t *m, MlirBlock block, uint32_t active);

static uint32_t bank_mask(const bank_value_t *condition, bool wanted) {
  uint32_t mask = 0;
  for (int i = 0; condition && i < BANK_LANES; ++i)
    mask |= (uint32_t)((condition->lane[i] != 0) == wanted) << i;
  return condition ? mask : UINT32_MAX;
}

static void bank_if(bank_machine_t *m, MlirOperation op, uint32_t active) {
  const bank_value_t *condition = bank_operand(m, op, 0);
  for (int i = 0; i < 2; ++i) {
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, i));
    uint32_t taken = active & bank_mask(condition, i == 0);
    if (mlirBlockIsNull(block) || !taken) continue;
    MlirOperation end = bank_run(m, block, taken);
    for (int r = 0; r < mlirOperationGetNumResults(op); ++r)
      bank_put(m, mlirOperationGetResult(op, r), taken == active ? bank_operand(m, end, r) : NULL);
  }
}

static void bank_for(bank_machine_t *m, MlirOperation op, uint32_t active) {
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
  const bank_value_t *at = bank_operand(m, op, 0), *upper = bank_operand(m, op, 1),
                     *step = bank_operand(m, op, 2);
  intptr_t carried = mlirOperationGetNumResults(op);
  for (int i = 0; i < carried; ++i)
    bank_put(m, mlirBlockGetArgument(body, 1 + i), bank_operand(m, op, 3 + i));
  for (int turn = 0; turn < 2; ++turn) {
    uint32_t running = active;
    for (int i = 0; at && upper && i < BANK_LANES; ++i)
      if ((int32_t)at->lane[i] >= (int32_t)upper->lane[i]) running &= ~(1u << i);
    bank_put(m, mlirBlockGetArgument(body, 0), at);
    if (!running) break;
    MlirOperation end = bank_run(m, body, running);
    for (int i = 0; i < carried; ++i) bank_put(m, mlirBlockGetArgument(body, 1 + i), bank_operand(m, end, i));
    bank_value_t next = {{0}};
    for (int i = 0; at && step && i < BANK_LANES; ++i) next.lane[i] = at->lane[i] + step->lane[i];
    bank_put(m, mlirBlockGetArgument(body, 0), at && step ? &next : NULL);
    at = bank_get(m, mlirBlockGetArgument(body, 0));
  }
  for (int i = 0; i < carried; ++i)
    bank_put(m, mlirOperationGetResult(op, i), bank_get(m, mlirBlockGetArgument(body, 1 + i)));
}

static void bank_step(bank_machine_t *m, MlirOperation op, uint32_t active) {
  bank_value_t y;
  if (o3_op_is(op, "scf.if")) {
    bank_if(m, op, active);
  } else if (o3_op_is(op, "scf.for")) {
    bank_for(m, op, active);
  } else if (o3_op_is(op, "llvm.load") || o3_op_is(op, "llvm.store")) {
    bank_memory_op(m, op, active);
  } else if (o3_op_is(op, "nvvm.ldmatrix") || o3_op_is(op, "nvvm.stmatrix")) {
    bank_matrix_op(m, op);
  } else if (mlirOperationGetNumResults(op) == 1) {
    bank_put(m, mlirOperationGetResult(op, 0), bank_evaluate(m, op, &y) ? &y : NULL);
  }
}

/* The block's last op. */
static MlirOperation bank_run(bank_machine_t *m, MlirBlock block, uint32_t active) {
  MlirOperation op = mlirBlockGetFirstOperation(block), last = op;
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    bank_step(m, op, active);
    last = op;
  }
  return last;
}

bool bank_simulate(MlirModule module, const char *kernel, int threads, bank_report_t *report) {
  MlirOperation func = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  while (!mlirOperationIsNull(func) && !o3_str_equal(o3_op_string(func, "sym_name"), kernel))
    func = mlirOperationGetNextInBlock(func);
  *report = (bank_report_t){.worst = 0};
  if (mlirOperationIsNull(func)) return false;
  for (int first = 0; first < threads; first += BANK_LANES) {
    bank_machine_t m = {.arena = o3_arena_create(), .first_thread = (uint32_t)first, .report = report};
    if (!m.arena || !(m.values = o3_ptr_map_create(m.arena))) return false;
    bank_run(&m, o3_func_body(func), UINT32_MAX);
    o3_arena_destroy(m.arena);
  }
  return true;
}
