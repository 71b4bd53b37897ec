/* cpu-schedule: writes on each kernel of the fuse stage how it will be computed.
 *
 * Needs: kernels, as functions on tensors. Guarantees: the same module; the op that a kernel is about has an
 * attribute o3.schedule (schedule/cpu_schedule.h), which its emitter will read. Kinds without a choice (rows,
 * elementwise, movement) have none.
 *
 *     linalg.generic {...} attrs = {o3.kernel = "winograd_product",
 *                                   o3.schedule = {family = "winograd", chunk = 28, panel = 56, ...}}
 */
#include "schedule/cpu_schedule.h"
#include "target/cpu/attention.h"
#include "target/cpu/blocked_chain.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/kernel_call.h"
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
  bool made = !mlirOperationIsNull(def) && !o3_product_refuse_padding(product, def);
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

static const struct {
  const char *kind;
  o3_status_t (*schedule)(o3_pass_env_t *env, const body_t *body);
} KINDS[] = {{"contraction", schedule_contraction},
             {"winograd", schedule_winograd},
             {"chain", schedule_chain},
             {"attention", schedule_attention}};

o3_status_t o3_cpu_schedule(o3_pass_env_t *env, MlirModule module) {
  static _Thread_local body_t body;
  o3_cpu_load_dialects(env->context);
  MlirOperation func = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(func); func = mlirOperationGetNextInBlock(func)) {
    MlirStringRef kind = o3_op_string(func, "o3.kernel_kind");
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); ++i) {
      if (!o3_str_equal(kind, KINDS[i].kind)) continue;
      body = (body_t){.kernel = func};
      O3_TRY(o3_walk(func, collect, &body));
      O3_TRY(KINDS[i].schedule(env, &body));
    }
  }
  return NULL;
}
