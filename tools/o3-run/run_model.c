#include "run_model.h"

#include <dlfcn.h>
#include <string.h>

#include "tensorio/tensor.h"

static const o3_status_code_t status_codes[] = {
    [O3_ERROR_INVALID_ARGUMENT] = O3_STATUS_INVALID_ARGUMENT,
    [O3_ERROR_UNSUPPORTED] = O3_STATUS_UNSUPPORTED,
    [O3_ERROR_OUT_OF_MEMORY] = O3_STATUS_OUT_OF_MEMORY,
    [O3_ERROR_RUN] = O3_STATUS_INVALID_MODEL,
};

o3_status_t o3_run_model_failure(o3_code_t code, const char *message) {
  const size_t index = (size_t)code;
  const bool known =
      index < sizeof status_codes / sizeof *status_codes && status_codes[index] != O3_STATUS_OK;
  if (!known) {
    return o3_status_create(O3_STATUS_INVALID_MODEL, "the model failed with code %d, which is unknown: %s",
                            (int)code, message);
  }
  return o3_status_create(status_codes[index], "%s", message);
}

static o3_status_t open_library(const char *path, o3_arena_t *arena, void **library) {
  /* Without a slash dlopen would search the system's folders instead of this one. */
  const char *file = strchr(path, '/') ? path : o3_arena_printf(arena, "./%s", path);
  O3_TRY_ALLOC(file);
  *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (*library) return NULL;
  return o3_status_create(O3_STATUS_NOT_FOUND, "cannot load the model: %s", dlerror());
}

static o3_status_t find_model(const char *path, const char *prefix, o3_arena_t *arena,
                              o3_run_model_t *model) {
  const char *symbol = o3_arena_printf(arena, "%s_model", prefix);
  O3_TRY_ALLOC(symbol);
  void *address = dlsym(model->library, symbol);
  if (!address) {
    return o3_status_create(
        O3_STATUS_INVALID_MODEL,
        "'%s' has no function '%s': it is no compiled model, or one with another --symbol-prefix", path,
        symbol);
  }
  o3_model_fn_t get_model;
  memcpy(&get_model, &address, sizeof get_model); /* ISO C has no cast from data to function pointers */
  model->model = get_model();
  if (!model->model || !model->model->api) {
    return o3_status_create(O3_STATUS_INVALID_MODEL, "'%s': %s() gives no model", path, symbol);
  }
  const uint32_t abi = model->model->api->abi;
  if (abi == O3_MODEL_ABI) return NULL;
  return o3_status_create(O3_STATUS_INVALID_MODEL,
                          "'%s' has version %u of the model interface, this o3-run reads %u", path, abi,
                          O3_MODEL_ABI);
}

typedef o3_code_t (*info_fn_t)(const o3_model_t *, int32_t, o3_tensor_info_t *);

static o3_status_t read_infos(const o3_run_model_t *model, const char *what, info_fn_t get, int32_t count,
                              o3_arena_t *arena, o3_tensor_info_t **infos) {
  if (count < 0) return o3_status_create(O3_STATUS_INVALID_MODEL, "the model has %d %ss", count, what);
  *infos = O3_ARENA_ARRAY(arena, o3_tensor_info_t, count ? (size_t)count : 1);
  O3_TRY_ALLOC(*infos);
  for (int32_t i = 0; i < count; ++i) {
    const o3_tensor_info_t *info = &(*infos)[i];
    if (get(model->model, i, &(*infos)[i]) != O3_OK) {
      return o3_status_create(O3_STATUS_INVALID_MODEL, "the model does not describe its %s %d", what, i);
    }
    if (!info->name || info->rank < 0 || info->rank > O3_MAX_RANK ||
        !o3_tensorio_element_get((int32_t)info->dtype)) {
      return o3_status_create(O3_STATUS_INVALID_MODEL,
                              "the model's %s %d has no name, or a wrong type or rank", what, i);
    }
  }
  return NULL;
}

static o3_status_t describe(o3_arena_t *arena, o3_run_model_t *model) {
  const o3_model_api_t *api = model->model->api;
  o3_model_info(model->model, &model->info);
  O3_TRY(read_infos(model, "input", api->input_info, model->info.num_inputs, arena, &model->inputs));
  return read_infos(model, "output", api->output_info, model->info.num_outputs, arena, &model->outputs);
}

o3_status_t o3_run_model_open(const char *path, const char *prefix, o3_arena_t *arena,
                              o3_run_model_t *model) {
  *model = (o3_run_model_t){0};
  O3_TRY(open_library(path, arena, &model->library));
  o3_status_t status = find_model(path, prefix, arena, model);
  if (!status) status = o3_status_annotate(describe(arena, model), "'%s'", path);
  if (status) o3_run_model_close(model);
  return status;
}

void o3_run_model_close(o3_run_model_t *model) {
  if (model->library) dlclose(model->library);
  *model = (o3_run_model_t){0};
}
