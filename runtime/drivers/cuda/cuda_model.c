#include "cuda_model.h"

#include <pthread.h>
#include <stdlib.h>

// Without asking, a kernel gets no more.
#define PLAIN_SHARED_BYTES (48 << 10)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static o3rt_cuda_model_t *models;

typedef struct loading {
  o3rt_cuda_model_t *model;
  o3_code_t code; /* for the user, once a step failed */
  o3rt_text_t *error;
} loading_t;

o3_code_t o3rt_cuda_code(int code) {
  return code == CUDA_OUT_OF_MEMORY ? O3_ERROR_OUT_OF_MEMORY : O3_ERROR_RUN;
}

// "model 'net' on GPU 0: "
static void begin_error(loading_t *loading, o3_code_t code) {
  loading->code = code;
  o3rt_text_printf(loading->error, "model '%s' on GPU %d: ", loading->model->compiled->name,
                   loading->model->device);
}

static void print_step(loading_t *loading, const char *what, int code) {
  o3rt_text_printf(loading->error, "%s: ", what);
  o3rt_cuda_print_error(loading->model->api, code, loading->error);
}

// Every step says what it was about; |code| is the driver's answer.
static bool succeed(loading_t *loading, int code, const char *what) {
  if (code == CUDA_OK) return true;
  begin_error(loading, o3rt_cuda_code(code));
  print_step(loading, what, code);
  return false;
}

// ---- Is it the right card? ----

static bool check_device(loading_t *loading) {
  const o3rt_cuda_model_t *model = loading->model;
  int count = 0;
  if (!succeed(loading, model->api->device_count(&count), "counting the cards")) return false;
  if (model->device >= 0 && model->device < count) return true;
  loading->code = O3_ERROR_UNSUPPORTED;
  o3rt_text_printf(loading->error, "there is no GPU %d: the driver finds %d", model->device, count);
  return false;
}

static bool check_capability(loading_t *loading, int *capability) {
  const o3rt_cuda_model_t *model = loading->model;
  const o3rt_gpu_t *gpu = model->compiled->gpu;
  int major = 0, minor = 0, handle = model->handle;
  char name[128] = "";
  if (!succeed(loading, model->api->device_attribute(&major, CUDA_ATTRIBUTE_MAJOR, handle), "its version") ||
      !succeed(loading, model->api->device_attribute(&minor, CUDA_ATTRIBUTE_MINOR, handle), "its version") ||
      !succeed(loading, model->api->device_name(name, sizeof name, handle), "its name"))
    return false;
  *capability = 10 * major + minor;
  bool runs = gpu->specific ? *capability == gpu->sm : *capability >= gpu->sm;
  if (runs) return true;
  loading->code = O3_ERROR_UNSUPPORTED;
  o3rt_text_printf(
      loading->error,
      "this model was compiled for %s and needs a GPU of compute capability %d.%d%s; GPU %d (%s) has "
      "%d.%d",
      model->compiled->target, gpu->sm / 10, gpu->sm % 10, gpu->specific ? "" : " or later", model->device,
      name, major, minor);
  return false;
}

// ---- Loading ----

static bool load_functions(loading_t *loading) {
  o3rt_cuda_model_t *model = loading->model;
  const o3rt_gpu_t *gpu = model->compiled->gpu;
  for (int32_t i = 0; i < gpu->num_kernels; ++i) {
    model->functions[i].shared_bytes = PLAIN_SHARED_BYTES;
    int code = model->api->module_function(&model->functions[i].handle, model->module, gpu->kernels[i].name);
    if (!succeed(loading, code, gpu->kernels[i].name)) return false;
  }
  return true;
}

// Machine code runs on cards of its own major version, from its minor version on; later cards take the PTX,
// and so does a driver that knows the card but not the machine code.
static bool load_code(loading_t *loading, int capability) {
  o3rt_cuda_model_t *model = loading->model;
  const o3rt_gpu_t *gpu = model->compiled->gpu;
  bool fits = gpu->cubin && capability / 10 == gpu->sm / 10;
  int code = fits ? model->api->module_load(&model->module, gpu->cubin) : CUDA_OK;
  if (fits && code == CUDA_OK) return load_functions(loading);
  if (code == CUDA_OUT_OF_MEMORY) return succeed(loading, code, "loading its machine code");
  int compiled = model->api->module_load(&model->module, gpu->ptx);
  if (compiled == CUDA_OK) return load_functions(loading);
  begin_error(loading, compiled == CUDA_OUT_OF_MEMORY ? O3_ERROR_OUT_OF_MEMORY : O3_ERROR_UNSUPPORTED);
  if (fits) print_step(loading, "loading its machine code", code);
  print_step(loading, fits ? "; compiling its PTX" : "compiling its PTX", compiled);
  return false;
}

// From the library's read-only memory; the copies are in order with each other, and done at the end.
static int copy_weights(o3rt_cuda_model_t *model) {
  const o3rt_gpu_t *gpu = model->compiled->gpu;
  cuda_stream_t stream;
  int code = model->api->stream_create(&stream, CUDA_STREAM_NON_BLOCKING);
  if (code != CUDA_OK) return code;
  for (int32_t i = 0; code == CUDA_OK && i < gpu->num_weights; ++i) {
    const o3rt_gpu_weight_t *weight = &gpu->weights[i];
    if (weight->bytes > 0)
      code = model->api->copy_to_device(model->weights + (cuda_address_t)weight->offset, weight->data,
                                        (size_t)weight->bytes, stream);
  }
  if (code == CUDA_OK) code = model->api->stream_wait(stream);
  int destroyed = model->api->stream_destroy(stream);
  return code != CUDA_OK ? code : destroyed;
}

static bool load_weights(loading_t *loading) {
  o3rt_cuda_model_t *model = loading->model;
  size_t bytes = (size_t)model->compiled->gpu->weight_bytes, available = 0, total = 0;
  if (bytes == 0) return true;
  int code = model->api->memory_alloc(&model->weights, bytes);
  if (code == CUDA_OUT_OF_MEMORY) {
    loading->code = O3_ERROR_OUT_OF_MEMORY;
    (void)model->api->memory_info(&available, &total);
    o3rt_text_printf(loading->error,
                     "out of memory on GPU %d: the weights of model '%s' take %zu bytes, %zu of %zu are free",
                     model->device, model->compiled->name, bytes, available, total);
    return false;
  }
  return succeed(loading, code, "memory for weights") &&
         succeed(loading, copy_weights(model), "copying its weights");
}

static bool load(loading_t *loading) {
  o3rt_cuda_model_t *model = loading->model;
  int capability = 0;
  if (!check_device(loading)) return false;
  if (!succeed(loading, model->api->device_get(&model->handle, model->device), "opening it") ||
      !check_capability(loading, &capability) ||
      !succeed(loading, model->api->context_retain(&model->context, model->handle), "its context") ||
      !succeed(loading, model->api->context_push(model->context), "its context"))
    return false;
  cuda_context_t context;
  bool loaded = load_code(loading, capability) && load_weights(loading);
  (void)model->api->context_pop(&context);
  return loaded;
}

// What a failed load has got so far, too. At the process's end the driver may be gone: nothing is left to do
// then.
static void unload(o3rt_cuda_model_t *model) {
  cuda_context_t context;
  bool entered = model->context && model->api->context_push(model->context) == CUDA_OK;
  if (model->weights) (void)model->api->memory_free(model->weights);
  if (model->module) (void)model->api->module_unload(model->module);
  if (entered) (void)model->api->context_pop(&context);
  if (model->context) (void)model->api->context_release(model->handle);
  free(model);
}

// ---- Sharing ----

static o3rt_cuda_model_t *find(const o3rt_model_t *compiled, int device) {
  o3rt_cuda_model_t *model = models;
  while (model && (model->compiled != compiled || model->device != device)) model = model->next;
  return model;
}

static o3rt_cuda_model_t *create(const o3rt_model_t *compiled, int device, o3_code_t *code,
                                 o3rt_text_t *error) {
  const o3rt_cuda_api_t *api = o3rt_cuda_api(error);
  if (!api) return NULL;
  size_t functions = (size_t)compiled->gpu->num_kernels * sizeof(o3rt_cuda_function_t);
  o3rt_cuda_model_t *model = calloc(1, sizeof *model + functions);
  if (!model) {
    *code = O3_ERROR_OUT_OF_MEMORY;
    o3rt_text_printf(error, "out of memory");
    return NULL;
  }
  model->compiled = compiled;
  model->api = api;
  model->device = device;
  loading_t loading = {.model = model, .error = error};
  if (load(&loading)) {
    model->next = models;
    models = model;
    return model;
  }
  unload(model);
  *code = loading.code;
  return NULL;
}

o3rt_cuda_model_t *o3rt_cuda_model_retain(const o3rt_model_t *compiled, int device, o3_code_t *code,
                                          o3rt_text_t *error) {
  *code = O3_ERROR_UNSUPPORTED;
  (void)pthread_mutex_lock(&lock);
  o3rt_cuda_model_t *model = find(compiled, device);
  if (!model) model = create(compiled, device, code, error);
  if (model) ++model->references;
  (void)pthread_mutex_unlock(&lock);
  return model;
}

void o3rt_cuda_model_release(o3rt_cuda_model_t *model) {
  (void)pthread_mutex_lock(&lock);
  if (--model->references == 0) {
    o3rt_cuda_model_t **place = &models;
    while (*place != model) place = &(*place)->next;
    *place = model->next;
    unload(model);
  }
  (void)pthread_mutex_unlock(&lock);
}

int o3rt_cuda_model_allow_shared(o3rt_cuda_model_t *model, int32_t kernel, int64_t bytes) {
  o3rt_cuda_function_t *function = &model->functions[kernel];
  int code = CUDA_OK;
  (void)pthread_mutex_lock(&lock);
  if (bytes > function->shared_bytes) {
    code = model->api->function_set(function->handle, CUDA_FUNCTION_SHARED_BYTES, (int)bytes);
    if (code == CUDA_OK) function->shared_bytes = bytes;
  }
  (void)pthread_mutex_unlock(&lock);
  return code;
}
