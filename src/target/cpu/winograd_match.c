/* The three generics are marked by their lowering; what is read of them are the sizes of their operands. */
#include <string.h>

#include "target/cpu/halo.h"
#include "target/cpu/winograd_parts.h"

enum { INPUT_RANK = 5, PRODUCT_RANK = 7, WEIGHT_RANK = 6 };

static bool is_marked(MlirOperation op, const char *mark) {
  return !mlirOperationIsNull(op) && o3_op_is(op, "linalg.generic") &&
         o3_str_equal(o3_op_string(op, "o3.kernel"), mark);
}

static bool has_rank(MlirOperation op, int operand, int rank) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(op, operand));
  return mlirTypeIsAShaped(type) && mlirShapedTypeHasRank(type) && o3_type_rank(type) == rank;
}

bool o3_winograd_takes(MlirOperation op) {
  return is_marked(op, "winograd_output") && mlirOperationGetNumOperands(op) == 4 &&
         has_rank(op, 0, PRODUCT_RANK) && has_rank(op, 3, INPUT_RANK);
}

static bool fits_chain(MlirOperation input, MlirOperation product) {
  return is_marked(input, "winograd_input") && is_marked(product, "winograd_product") &&
         mlirOperationGetNumOperands(input) == 4 && mlirOperationGetNumOperands(product) == 3 &&
         has_rank(input, 0, INPUT_RANK) && has_rank(product, 0, PRODUCT_RANK) &&
         has_rank(product, 1, WEIGHT_RANK) &&
         o3_type_is_static(mlirValueGetType(mlirOperationGetOperand(product, 1)));
}

/* A border is a halo in rows and columns, and read by the kernel alone. */
static bool is_border(MlirOperation op, o3_halo_t *halo) {
  if (mlirOperationIsNull(op) || !o3_halo_read(op, halo) || halo->rank != INPUT_RANK) return false;
  return halo->lows[0] == 0 && halo->lows[1] == 0 && halo->lows[4] == 0;
}

static bool has_one_use(MlirOperation op) {
  MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, 0));
  return !mlirOpOperandIsNull(use) && mlirOpOperandIsNull(mlirOpOperandGetNextUse(use));
}

int o3_winograd_members(MlirOperation output, MlirOperation members[O3_KERNEL_MAX_CHAIN]) {
  o3_halo_t halo;
  int count = 0;
  if (!o3_winograd_takes(output)) return 0;
  MlirOperation product = o3_value_def(mlirOperationGetOperand(output, 0));
  if (mlirOperationIsNull(product) || !is_marked(product, "winograd_product")) return 0;
  MlirOperation input = o3_value_def(mlirOperationGetOperand(product, 0));
  if (!fits_chain(input, product)) return 0;
  MlirOperation border = o3_value_def(mlirOperationGetOperand(input, 0));
  if (is_border(border, &halo) && has_one_use(border)) members[count++] = border;
  members[count++] = input;
  members[count++] = product;
  return count;
}

/* ---- The output as a product in blocks ---- */

/* Of which only the result is left: what the transform reads is memory of the kernel's own. */
bool o3_winograd_read_output(MlirOperation output, o3_blocked_t *p) {
  enum { N, M, OH, OW, L };
  memset(p, 0, sizeof(*p));
  if (!o3_winograd_takes(output) || !o3_nest_read_any(output, &p->nest)) return false;
  p->nest.operands[0] = p->nest.operands[3];
  p->nest.num_operands = 1;
  p->nest.num_inputs = 0;
  p->nest.num_dims = L + 1;
  p->y = &p->nest.operands[0];
  p->block = M;
  p->lane = L;
  p->columns = -1;
  for (int d = N; d <= L; ++d) {
    MlirAffineExpr expr = p->y->all_exprs[d];
    if (!mlirAffineExprIsADim(expr) || mlirAffineDimExprGetPosition(expr) != d) return false;
  }
  return true;
}

const char *o3_winograd_refuse_epilogue(MlirOperation output, MlirOperation op) {
  static _Thread_local o3_blocked_t p;
  static _Thread_local o3_blocked_side_t side;
  if (!o3_winograd_read_output(output, &p)) return "its access maps are not those of a winograd convolution";
  return o3_blocked_read_side(&p, op, &side);
}

/* ---- A kernel's ops ---- */

static MlirValue written(MlirOperation op) {
  return mlirOperationGetOperand(op, mlirOperationGetNumOperands(op) - 1);
}

static bool is_own_buffer(MlirValue buffer) {
  MlirOperation def = o3_value_def(buffer);
  return !mlirOperationIsNull(def) && o3_op_is(def, "memref.alloc");
}

static bool add_side(o3_winograd_kernel_t *kernel, MlirOperation op) {
  bool after = !mlirOperationIsNull(kernel->output);
  int *count = after ? &kernel->num_after : &kernel->num_before;
  if (*count == O3_WINOGRAD_MAX_SIDES) return false;
  (after ? kernel->after : kernel->before)[(*count)++] = op;
  return true;
}

bool o3_winograd_read(int count, const MlirOperation *ops, o3_winograd_kernel_t *kernel) {
  o3_halo_t halo;
  MlirOperation output = {0};
  *kernel = (o3_winograd_kernel_t){.num_before = 0};
  for (int i = 0; i < count; ++i) {
    if (is_marked(ops[i], "winograd_input")) kernel->input = ops[i];
    if (is_marked(ops[i], "winograd_product")) kernel->product = ops[i];
    if (o3_winograd_takes(ops[i])) output = ops[i];
  }
  if (mlirOperationIsNull(output) || !fits_chain(kernel->input, kernel->product)) return false;
  MlirValue x = mlirOperationGetOperand(kernel->input, 0), y = written(output);
  for (int i = 0; i < count; ++i) {
    bool own = mlirOperationEqual(ops[i], kernel->input) || mlirOperationEqual(ops[i], kernel->product);
    if (mlirOperationEqual(ops[i], output)) {
      kernel->output = output;
    } else if (mlirValueEqual(written(ops[i]), y)) {
      if (!add_side(kernel, ops[i])) return false;
    } else if (mlirValueEqual(written(ops[i]), x)) {
      if (!is_border(ops[i], &halo)) return false;
      kernel->border = ops[i];
    } else if (!own && !is_own_buffer(written(ops[i]))) {
      return false; /* what else there is are zeros that the sums start at */
    }
  }
  return true;
}
