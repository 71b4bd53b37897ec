#include "cuda_model.h"

#include <pthread.h>
#include <stdlib.h>

// Without asking, a kernel gets no more.
#define PLAIN_SHARED_BYTES (48 << 10)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static o3rt_cuda_model_t *models;

// Every step says what it was about; |code| is the driver's answer.
static bool succeed(const o3rt_cuda_model_t *model, int code, const char *what, o3rt_text_t *error) {
  if (code == CUDA_OK) return true;
  o3rt_text_printf(error, "model '%s' on GPU %d: %s: ", model->compiled->name, model->device, what);
  o3rt_cuda_print_error(model->api, code, error);
  return false;
}

// ---- Is it the right card? ----

static bool check_device(const o3rt_cuda_model_t *model, o3rt_text_t *error) {
  int count = 0;
  if (!succeed(model, model->api->device_count(&count), "counting the cards", error)) return false;
  if (model->device >= 0 && model->device < count) return true;
  o3rt_text_printf(error, "there is no GPU %d: the driver finds %d", model->device, count);
  return false;
}

static bool check_capability(const o3rt_cuda_model_t *model, int handle, int *capability,
                             o3rt_text_t *error) {
  const o3rt_gpu_t *gpu = model->compiled->gpu;
  int major = 0, minor = 0;
  char name[128] = "";
  if (!succeed(model, model->api->device_attribute(&major, CUDA_ATTRIBUTE_MAJOR, handle), "its version",
               error) ||
      !succeed(model, model->api->device_attribute(&minor, CUDA_ATTRIBUTE_MINOR, handle), "its version",
               error) ||
      !succeed(model, model->api->device_name(name, sizeof name, handle), "its name", error))
    return false;
  *capability = 10 * major + minor;
  bool runs = gpu->specific ? *capability == gpu->sm : *capability >= gpu->sm;
  if (runs) return true;
  o3rt_text_printf(
      error,
      "this model was compiled for %s and needs a GPU of compute capability %d.%d%s; GPU %d (%s) has "
      "%d.%d",
      model->compiled->target, gpu->sm / 10, gpu->sm % 10, gpu->specific ? "" : " or later", model->device,
      name, major, minor);
  return false;
}

// ---- Loading ----

static bool load_functions(o3rt_cuda_model_t *model, o3rt_text_t *error) {
  const o3rt_gpu_t *gpu = model->compiled->gpu;
  for (int32_t i = 0; i < gpu->num_kernels; ++i) {
    model->functions[i].shared_bytes = PLAIN_SHARED_BYTES;
    int code = model->api->module_function(&model->functions[i].handle, model->module, gpu->kernels[i].name);
    if (!succeed(model, code, gpu->kernels[i].name, error)) return false;
  }
  return true;
}

// Machine code runs on cards of its own major version, from its minor version on; later cards take the PTX.
static bool load_code(o3rt_cuda_model_t *model, int capability, o3rt_text_t *error) {
  const o3rt_gpu_t *gpu = model->compiled->gpu;
  bool fits = gpu->cubin && capability / 10 == gpu->sm / 10;
  int code = model->api->module_load(&model->module, fits ? gpu->cubin : gpu->ptx);
  return succeed(model, code, fits ? "loading its code" : "compiling its PTX", error) &&
         load_functions(model, error);
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

static bool load_weights(o3rt_cuda_model_t *model, o3_code_t *result, o3rt_text_t *error) {
  size_t bytes = (size_t)model->compiled->gpu->weight_bytes, available = 0, total = 0;
  if (bytes == 0) return true;
  int code = model->api->memory_alloc(&model->weights, bytes);
  if (code == CUDA_OUT_OF_MEMORY) {
    *result = O3_ERROR_OUT_OF_MEMORY;
    (void)model->api->memory_info(&available, &total);
    o3rt_text_printf(error,
                     "out of memory on GPU %d: the weights of model '%s' take %zu bytes, %zu of %zu are free",
                     model->device, model->compiled->name, bytes, available, total);
    return false;
  }
  return succeed(model, code, "memory for weights", error) &&
         succeed(model, copy_weights(model), "copying its weights", error);
}

static bool load(o3rt_cuda_model_t *model, o3_code_t *result, o3rt_text_t *error) {
  int capability = 0;
  if (!check_device(model, error)) return false;
  if (!succeed(model, model->api->device_get(&model->handle, model->device), "opening it", error) ||
      !check_capability(model, model->handle, &capability, error) ||
      !succeed(model, model->api->context_retain(&model->context, model->handle), "its context", error))
    return false;
  if (!succeed(model, model->api->context_push(model->context), "its context", error)) return false;
  cuda_context_t context;
  bool loaded = load_code(model, capability, error) && load_weights(model, result, error);
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
  if (load(model, code, error)) {
    model->next = models;
    models = model;
    return model;
  }
  unload(model);
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
