/* cpu-schedule: writes on each kernel of the fuse stage how it will be computed.
 *
 * Needs: kernels, as functions on tensors. Guarantees: the same module; the op that a kernel is about has an
 * attribute o3.schedule (schedule/cpu_schedule.h), which its emitter will read. A kernel of rows has it on
 * its last op.
 *
 *     linalg.generic {...} attrs = {o3.kernel = "winograd_product",
 *                                   o3.schedule = {family = "winograd", chunk = 28, panel = 56, ...}}
 */
#include "fuse/kernel_body.h"
#include "schedule/cpu_schedule.h"
#include "target/cpu/attention.h"
#include "target/cpu/blocked_chain.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/halo.h"
#include "target/cpu/kernel_call.h"
#include "target/cpu/loop_schedule.h"
#include "target/cpu/product.h"
#include "target/cpu/winograd_kernel.h"

typedef struct body {
  MlirOperation kernel;
  int count;
  MlirOperation ops[O3_KERNEL_MAX_OPS]; /* linalg.generic, in order */
} body_t;

static o3_status_t collect(MlirOperation op, void *context) {
  body_t *body = context;
  if (!o3_op_is(op, "linalg.generic")) return NULL;
  if (body->count == O3_KERNEL_MAX_OPS)
    return o3_status_create(O3_STATUS_INTERNAL, "kernel '%.*s': it has more than %d ops",
                            O3_STR_ARGS(o3_op_string(body->kernel, "sym_name")), O3_KERNEL_MAX_OPS);
  body->ops[body->count++] = op;
  return NULL;
}

/* The op before the product that makes its first input, when the kernel does without that; or null. */
static MlirOperation padding_of(MlirOperation product) {
  MlirOperation def = o3_value_def(mlirOperationGetOperand(product, 0));
  bool made = !mlirOperationIsNull(def) && !o3_product_refuse_padding(NULL, product, def);
  return made ? def : (MlirOperation){0};
}

static o3_status_t schedule_contraction(o3_pass_env_t *env, const body_t *body) {
  for (int i = 0; i < body->count; ++i) {
    if (o3_product_refuse(body->ops[i])) continue;
    return o3_product_schedule(env, body->ops[i], padding_of(body->ops[i]));
  }
  return NULL;
}

static o3_status_t schedule_winograd(o3_pass_env_t *env, const body_t *body) {
  for (int i = 0; i < body->count; ++i) {
    if (o3_str_equal(o3_op_string(body->ops[i], "o3.kernel"), "winograd_product"))
      return o3_winograd_schedule(env, body->ops[i]);
  }
  return NULL;
}

static o3_status_t schedule_chain(o3_pass_env_t *env, const body_t *body) {
  return o3_chain_schedule(env, body->count, body->ops);
}

static o3_status_t schedule_attention(o3_pass_env_t *env, const body_t *body) {
  return o3_attention_schedule(env, body->count, body->ops);
}

static o3_status_t schedule_single(o3_pass_env_t *env, const body_t *body) {
  bool is_border;
  for (int i = 0; i < body->count; ++i) {
    O3_TRY(o3_halo_schedule(env, body->ops[i], &is_border));
    if (!is_border) O3_TRY(o3_loop_schedule_write(env, body->ops[i]));
  }
  return NULL;
}

static MlirType result_type(const body_t *body) {
  MlirBlock block = o3_func_body(body->kernel);
  return mlirValueGetType(mlirBlockGetArgument(block, mlirBlockGetNumArguments(block) - 1));
}

/* How many rows the kernel's result has; sizes that the run knows count as 64, as they do in o3_loops_work.
 */
static double count_rows(const body_t *body) {
  enum { UNKNOWN = 64 };
  int64_t at[O3_IR_MAX_RANK];
  int num_rows = o3_op_ints(body->kernel, O3_KERNEL_ROWS, at, O3_IR_MAX_RANK);
  MlirType out = result_type(body);
  double rows = 1;
  for (int i = 0; i < num_rows; ++i) {
    int64_t size = o3_type_dim(out, (int)at[i]);
    rows *= size < 0 ? UNKNOWN : size ? (double)size : 1;
  }
  return rows;
}

static int64_t byte_count(int64_t count, MlirType type) {
  int bytes = o3_type_bits(o3_type_element(type)) / 8;
  return count < 0 || count > INT64_MAX / 8 ? -1 : count * bytes;
}

/* Of the largest of the operands and the result, the last dim and all of it; -1: known at run time. The
 * result may be far less than what is read for it. Of several as large, the one of most dims, or with the
 * longest row. */
static void row_bytes(const body_t *body, int64_t *row, int64_t *all) {
  MlirBlock block = o3_func_body(body->kernel);
  int most_dims = 0;
  *row = *all = 0;
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(block); ++i) {
    MlirType type = mlirValueGetType(mlirBlockGetArgument(block, i));
    int rank = mlirTypeIsAShaped(type) ? o3_type_rank(type) : 0;
    if (!rank) continue;
    int64_t part = byte_count(o3_type_dim(type, rank - 1), type),
            bytes = byte_count(o3_type_count(type), type);
    bool is_equal = bytes == *all && rank == most_dims;
    /* As unsigned numbers, -1 is the greatest. */
    bool is_more = bytes == *all ? rank > most_dims : (uint64_t)bytes > (uint64_t)*all;
    if (is_more || (is_equal && (uint64_t)part > (uint64_t)*row)) *row = part;
    if (!is_more) continue;
    *all = bytes;
    most_dims = rank;
  }
}

static o3_status_t schedule_rows(o3_pass_env_t *env, const body_t *body) {
  static _Thread_local o3_nest_t nest;
  const bool none[O3_IR_MAX_RANK] = {false};
  double work = 0;
  for (int i = 0; i < body->count; ++i) {
    if (o3_nest_read_any(body->ops[i], &nest)) work += (double)o3_loops_work(&nest, none);
  }
  if (!body->count) return NULL;
  MlirOperation last = body->ops[body->count - 1];
  o3_schedule_rows_t schedule = o3_schedule_rows((int64_t)(work / count_rows(body)));
  int64_t row, all;
  row_bytes(body, &row, &all);
  o3_schedule_rows_ahead(env->machine, row, all, &schedule);
  O3_TRY(o3_schedule_read(last, O3_SCHEDULE_FAMILY_ROWS, &schedule));
  o3_op_attr_set(last, O3_SCHEDULE_ATTR, o3_schedule_attr(env->context, O3_SCHEDULE_FAMILY_ROWS, &schedule));
  return NULL;
}

static const struct {
  const char *kind;
  o3_status_t (*schedule)(o3_pass_env_t *env, const body_t *body);
} KINDS[] = {{"contraction", schedule_contraction},
             {"winograd", schedule_winograd},
             {"chain", schedule_chain},
             {"attention", schedule_attention},
             {"elementwise", schedule_single},
             {"movement", schedule_single},
             {"rows", schedule_rows}};

o3_status_t o3_cpu_schedule(o3_pass_env_t *env, MlirModule module) {
  static _Thread_local body_t body;
  o3_cpu_load_dialects(env->context);
  MlirOperation func = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(func); func = mlirOperationGetNextInBlock(func)) {
    MlirStringRef kind = o3_op_string(func, O3_KERNEL_KIND);
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); ++i) {
      if (!o3_str_equal(kind, KINDS[i].kind)) continue;
      body = (body_t){.kernel = func};
      O3_TRY(o3_walk(func, collect, &body));
      O3_TRY(KINDS[i].schedule(env, &body));
    }
  }
  return NULL;
}
