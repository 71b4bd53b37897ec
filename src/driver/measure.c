/* Variants take turns, each time another one first, and the lower quartile of their times counts: what else
 * the machine does makes runs longer, never shorter. Each has a store of its own for what compiling makes of
 * the weights; the op's constants are the model's.
 *
 * In a network larger than the caches a layer's weights come from memory each time it runs, its input does
 * not: before a cold run other data is read, then the input. */
#include "driver/measure.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "driver/loaded_code.h"
#include "driver/pass_run.h"
#include "package/kernel_table.h"
#include "package/weights_object.h"
#include "rewrite/rewrite_ir.h"
#include "tensorio/tensor.h"

enum { LEAST_ROUNDS = 5, MOST_ROUNDS = 101, CACHE_LINE = 64, MAX_VARIANTS = 8 };

/* ---- What this machine can run ---- */

static uint64_t host_features(void) {
  const o3_target_t *host;
  o3_status_t status = o3_target_find("cpu", &host);
  uint64_t features = status ? 0 : host->cpu_features;
  o3_status_destroy(status);
  return features;
}

/* The code that a session would take here; NULL: there is none. */
static const o3_target_t *usable_code(const o3_target_t *target) {
  const o3_target_t *const single[] = {target, NULL}, *const *codes = target->codes ? target->codes : single;
  uint64_t host = host_features();
  while (*codes && ((*codes)->cpu_features & ~host)) ++codes;
  return *codes;
}

o3_status_t o3_measure_check(const o3_target_t *target) {
  if (target->emit_ptx)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "target '%s' is a GPU: measuring is for CPUs so far",
                            target->name);
  if (usable_code(target)) return NULL;
  uint64_t missing = target->cpu_features & ~host_features();
  const char *first = "none";
#define FEATURE(id, bit, name) \
  if (missing & (UINT64_C(1) << (bit)) & (~missing + 1)) first = name;
  O3RT_CPU_FEATURES(FEATURE)
#undef FEATURE
  return o3_status_create(O3_STATUS_UNSUPPORTED,
                          "code for target '%s' cannot be measured on this machine, which lacks %s",
                          target->name, first);
}

/* ---- The op as a model ---- */

/* A variant that can run. */
typedef struct variant {
  o3_pass_env_t env; /* with a store of its own */
  MlirModule module;
  o3_loaded_code_t code;
  o3_weight_list_t weights;
  o3rt_model_t compiled;
  o3_model_t model;
  o3_session_t *session;
  double *total, *moved; /* microseconds of each round */
} variant_t;

typedef struct measuring {
  const o3_pass_env_t *env; /* the model's */
  const o3_measure_t *request;
  o3_arena_t *arena;
  const o3_target_t *code;
  o3_machine_t machine;
  o3rt_tensor_t input, output;
  o3_tensor_t data;
  variant_t variants[MAX_VARIANTS];
} measuring_t;

static o3_status_t copy_constant(const measuring_t *self, const variant_t *variant, MlirOperation constant,
                                 o3_builder_t *builder, MlirValue *copy) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(constant, 0));
  MlirAttribute attr;
  size_t bytes;
  const void *data = o3_weights_data(self->env->weights, o3_op_attr(constant, "value"), &bytes);
  O3_TRY_ALLOC(data);
  O3_TRY(o3_weights_add(variant->env.weights, "weight", type, data, bytes, &attr));
  *copy = o3_build1_attrs(builder, "o3.constant", type, O3_NO_VALUES, O3_ATTRS({"value", attr}));
  return NULL;
}

static o3_status_t fill_block(const measuring_t *self, const variant_t *variant, MlirAttribute value,
                              MlirBlock block, MlirValue *result) {
  MlirOperation op = self->request->op, copy = mlirOperationClone(op);
  o3_builder_t builder = o3_builder_at_end(block, mlirOperationGetLocation(op));
  o3_status_t status = NULL;
  mlirOperationSetOperand(copy, 0, mlirBlockGetArgument(block, 0));
  for (intptr_t i = 1; !status && i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue constant = {0};
    status = copy_constant(self, variant, o3_value_def(mlirOperationGetOperand(op, i)), &builder, &constant);
    if (!status) mlirOperationSetOperand(copy, i, constant);
  }
  if (!mlirAttributeIsNull(value)) o3_op_attr_set(copy, self->request->attr, value);
  mlirBlockAppendOwnedOperation(block, copy);
  *result = mlirOperationGetResult(copy, 0);
  return status;
}

static o3_status_t build_module(const measuring_t *self, variant_t *variant, MlirAttribute value) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(self->request->op, 0));
  MlirLocation location = mlirOperationGetLocation(self->request->op);
  MlirBlock block = mlirBlockCreate(1, &type, &location);
  MlirValue result;
  o3_status_t status = fill_block(self, variant, value, block, &result);
  if (status) {
    mlirBlockDestroy(block);
    return status;
  }
  variant->module = mlirModuleCreateEmpty(location);
  return o3_main_build(self->arena, variant->module, block, 1, &result);
}

static o3_status_t compile(const measuring_t *self, variant_t *variant, o3_artifact_t *object) {
  const o3_pass_runner_t runner = {.env = &variant->env, .target = self->code};
  o3_pass_info_t pass;
  int at = 0;
  bool after = false;
  for (; o3_pass_at(self->code, at, &pass) && !after; ++at) after = !strcmp(pass.name, self->request->after);
  for (; o3_pass_at(self->code, at, &pass); ++at) {
    if (pass.stage == O3_STAGE_BUFFERIZE) variant->env.machine = &self->machine;
    if (pass.min_level <= variant->env.opt_level) O3_TRY(o3_pass_run(&runner, &pass, variant->module, false));
  }
  return self->code->emit_object(&variant->env, variant->module, object);
}

static o3_status_t read_kernels(variant_t *variant) {
  o3_arena_t *arena = variant->env.arena;
  o3_kernel_table_t table;
  O3_TRY(o3_kernel_table_read(arena, variant->module, &table));
  o3rt_kernel_t *kernels = O3_ARENA_ARRAY(arena, o3rt_kernel_t, (size_t)table.count + 1);
  O3_TRY_ALLOC(kernels);
  for (int i = 0; i < table.count; ++i)
    kernels[i] = (o3rt_kernel_t){.name = table.rows[i].name,
                                 .kind = table.rows[i].kind,
                                 .nodes = table.rows[i].nodes,
                                 .num_nodes = table.rows[i].num_nodes};
  variant->compiled.kernels = kernels;
  variant->compiled.num_kernels = table.count;
  return NULL;
}

static o3_status_t create_session(const measuring_t *self, variant_t *variant) {
  o3_session_options_t options = {.threads = self->env->measurer->threads};
  variant->compiled.run = variant->code.run;
  variant->model = (o3_model_t){.api = &o3rt_api, .compiled = &variant->compiled};
  if (o3_session_create(&variant->model, &options, &variant->session) == O3_OK &&
      o3_session_profile(variant->session, 1) == O3_OK)
    return NULL;
  return o3_status_create(O3_STATUS_UNSUPPORTED, "%s", o3_last_error(&variant->model));
}

static o3_status_t make_variant(measuring_t *self, variant_t *variant, MlirAttribute value) {
  o3_artifact_t object = {0};
  variant->env = *self->env;
  variant->env.arena = self->arena;
  variant->env.weights = NULL;
  variant->compiled = (o3rt_model_t){.format = O3RT_FORMAT,
                                     .name = "measured",
                                     .target = self->code->name,
                                     .build_id = "",
                                     .producer = "o3c",
                                     .cpu_features = self->code->cpu_features,
                                     .num_inputs = 1,
                                     .inputs = &self->input,
                                     .num_outputs = 1,
                                     .outputs = &self->output};
  variant->total = O3_ARENA_ARRAY(self->arena, double, MOST_ROUNDS);
  variant->moved = O3_ARENA_ARRAY(self->arena, double, MOST_ROUNDS);
  O3_TRY_ALLOC(variant->total);
  O3_TRY_ALLOC(variant->moved);
  O3_TRY(o3_weights_create(variant->env.context, &variant->env.weights));
  O3_TRY(build_module(self, variant, value));
  O3_TRY(compile(self, variant, &object));
  o3_status_t status = read_kernels(variant);
  if (!status)
    status = o3_weight_list_read(self->arena, variant->module, variant->env.weights, &variant->weights);
  if (!status) status = o3_loaded_code_open(&variant->env, variant->module, &object, &variant->code);
  free(object.data);
  return status ? status : create_session(self, variant);
}

static o3_status_t destroy_variant(variant_t *variant) {
  o3_session_destroy(variant->session);
  o3_status_t status = variant->code.jit ? o3_loaded_code_close(&variant->code) : NULL;
  if (!mlirModuleIsNull(variant->module)) mlirModuleDestroy(variant->module);
  o3_weights_destroy(variant->env.weights);
  return status;
}

/* ---- Runs ---- */

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Out of all caches. Measured code is x86-64's, so that no other machine gets here. */
static void evict(const o3_weight_list_t *weights) {
#ifdef __x86_64__
  for (size_t i = 0; i < weights->count; ++i) {
    const char *data = weights->items[i].data;
    for (size_t at = 0; at < weights->items[i].bytes; at += CACHE_LINE) __builtin_ia32_clflush(data + at);
  }
#else
  (void)weights;
  O3_UNREACHABLE("o3_measure_check has refused this machine");
#endif
}

static o3_status_t run(const measuring_t *self, variant_t *variant) {
  o3_tensor_t result = {0};
  if (self->request->cold) evict(&variant->weights);
  if (o3_session_run(variant->session, &self->data, 1, &result, 1) == O3_OK) return NULL;
  return o3_status_create(O3_STATUS_INTERNAL, "%s", o3_session_error(variant->session));
}

static void read_sample(const variant_t *variant, int round) {
  int64_t total = 0, moved = 0;
  for (int32_t i = O3_NO_KERNEL; i < variant->compiled.num_kernels; ++i) {
    o3_kernel_sample_t sample = {0};
    o3_session_kernel(variant->session, i, &sample);
    total += sample.nanoseconds;
    if (i >= 0 && !strcmp(variant->compiled.kernels[i].kind, "movement")) moved += sample.nanoseconds;
  }
  variant->total[round] = (double)total * 1e-3;
  variant->moved[round] = (double)moved * 1e-3;
}

/* Of warm runs the second counts: other variants' threads are asleep and its own awake. */
static o3_status_t run_rounds(measuring_t *self, int *rounds) {
  int count = self->request->count;
  double end = now_ms() + (double)O3_MEASURE_MS * count;
  for (*rounds = 0; *rounds < LEAST_ROUNDS || (*rounds < MOST_ROUNDS && now_ms() < end); ++*rounds) {
    for (int i = 0; i < count; ++i) {
      variant_t *variant = &self->variants[(i + *rounds) % count];
      if (!self->request->cold) O3_TRY(run(self, variant));
      O3_TRY(run(self, variant));
      read_sample(variant, *rounds);
    }
  }
  return NULL;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double lower_quartile(double *values, int count) {
  qsort(values, (size_t)count, sizeof(*values), compare);
  return values[count / 4];
}

/* ---- A request ---- */

static o3_status_t make_data(measuring_t *self) {
  MlirType type = mlirValueGetType(mlirOperationGetOperand(self->request->op, 0)),
           result = mlirValueGetType(mlirOperationGetResult(self->request->op, 0));
  size_t bytes;
  O3_TRY(o3_loaded_tensor_describe(self->arena, "x", type, &self->input));
  O3_TRY(o3_loaded_tensor_describe(self->arena, "y", result, &self->output));
  self->data = (o3_tensor_t){.dtype = (o3_dtype_t)self->input.dtype, .rank = self->input.rank};
  for (int i = 0; i < self->input.rank; ++i) self->data.shape[i] = self->input.dims[i].size;
  O3_TRY(o3_tensorio_measure(&self->data, NULL, &bytes));
  self->data.data = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE) / CACHE_LINE * CACHE_LINE);
  O3_TRY_ALLOC(self->data.data);
  o3_tensorio_random_fill(&self->data, 1, -1, 1);
  return NULL;
}

static o3_status_t measure(measuring_t *self) {
  int rounds;
  O3_TRY(self->code->machine(self->arena, &self->machine));
  if (!self->env->measurer->target->codes) self->machine = *self->env->machine;
  O3_TRY(make_data(self));
  for (int i = 0; i < self->request->count; ++i)
    O3_TRY(make_variant(self, &self->variants[i], self->request->values[i]));
  O3_TRY(run_rounds(self, &rounds));
  for (int i = 0; i < self->request->count; ++i)
    self->request->times[i] = (o3_measured_t){.total = lower_quartile(self->variants[i].total, rounds),
                                              .moved = lower_quartile(self->variants[i].moved, rounds)};
  return NULL;
}

o3_status_t o3_measure(o3_pass_env_t *env, const o3_measure_t *request) {
  const o3_measurer_t *measurer = env->measurer;
  measuring_t self = {
      .env = env, .request = request, .arena = o3_arena_create(), .code = usable_code(measurer->target)};
  O3_TRY_ALLOC(self.arena);
  O3_ASSERT(self.code && request->count <= MAX_VARIANTS,
            "the target and the number of variants were checked");
  if (measurer->progress) measurer->progress(measurer->context, request->what);
  o3_status_t status = measure(&self);
  for (int i = 0; i < request->count; ++i)
    status = o3_status_join(status, destroy_variant(&self.variants[i]));
  free(self.data.data);
  o3_arena_destroy(self.arena);
  MlirStringRef label = o3_op_label(request->op);
  return status ? o3_status_annotate(status, "measuring node '%.*s'", O3_STR_ARGS(label)) : NULL;
}
