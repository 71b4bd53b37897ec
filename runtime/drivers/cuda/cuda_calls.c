/* What the host's code of a GPU model calls. All of it runs in one stream, so order in the code is order on
 * the card. */
#include <string.h>

#include "cuda_session.h"

static _Noreturn void fail(o3rt_session_t *session, int code, const char *what) {
  o3rt_session_escape(session, o3rt_cuda_fail(session, code, what));
}

static _Noreturn void fail_memory(o3rt_session_t *session, int code, const char *what, int64_t bytes) {
  const o3rt_cuda_session_t *cuda = o3rt_cuda_session(session);
  size_t available = 0, total = 0;
  if (code != CUDA_OUT_OF_MEMORY && code != CUDA_OK) fail(session, code, what);
  (void)cuda->model->api->memory_info(&available, &total);
  o3rt_text_printf(&session->error, "out of memory on GPU %d: %s takes %lld bytes, %zu of %zu are free",
                   cuda->model->device, what, (long long)bytes, available, total);
  o3rt_session_escape(session, O3_ERROR_OUT_OF_MEMORY);
}

static void *pointer(cuda_address_t address) { return (void *)(uintptr_t)address; }
static cuda_address_t address(const void *device) { return (cuda_address_t)(uintptr_t)device; }

// ---- Memory ----

// Recorded runs count on the arena's place.
void *o3rt_gpu_arena(o3rt_session_t *session, int64_t bytes) {
  o3rt_cuda_session_t *cuda = o3rt_cuda_session(session);
  if (bytes < 0) fail_memory(session, CUDA_OK, "the model's arena", INT64_MAX);
  if ((size_t)bytes > cuda->arena.bytes) {
    o3rt_cuda_graphs_clear(&cuda->graphs, cuda->model->api);
    int code = o3rt_cuda_buffer_grow(cuda, &cuda->arena, (size_t)bytes);
    if (code != CUDA_OK) fail_memory(session, code, "the model's arena", bytes);
  }
  return pointer(cuda->arena.address);
}

void *o3rt_gpu_alloc(o3rt_session_t *session, int64_t bytes) {
  o3rt_cuda_session_t *cuda = o3rt_cuda_session(session);
  int code = CUDA_OK;
  cuda->never_replays = true;
  if (bytes < 0) fail_memory(session, CUDA_OK, "a buffer of the model", INT64_MAX);
  o3rt_cuda_block_t *block = o3rt_cuda_block_take(cuda, (size_t)bytes, &code);
  if (!block) fail_memory(session, code, "a buffer of the model", bytes);
  return pointer(block->memory.address);
}

// Its next user comes later in the same stream.
void o3rt_gpu_free(o3rt_session_t *session, void *memory) {
  o3rt_cuda_session_t *cuda = o3rt_cuda_session(session);
  o3rt_cuda_block_t **place = &cuda->live;
  while (*place && (*place)->memory.address != address(memory)) place = &(*place)->next;
  o3rt_cuda_block_t *block = *place;
  if (!block) return;
  *place = block->next;
  block->next = cuda->spare;
  cuda->spare = block;
}

void *o3rt_gpu_weights(o3rt_session_t *session) {
  return pointer(o3rt_cuda_session(session)->model->weights);
}

void *o3rt_gpu_error_word(o3rt_session_t *session) { return o3rt_cuda_session(session)->error_word; }

// Grows in runs that are not recorded, as the arena.
void *o3rt_gpu_scratch(o3rt_session_t *session, int64_t bytes) {
  static const int32_t kZeros[O3RT_GPU_COUNTERS];
  o3rt_cuda_session_t *cuda = o3rt_cuda_session(session);
  if (bytes < 0) fail_memory(session, CUDA_OK, "what the kernels' blocks share", INT64_MAX);
  if ((size_t)bytes <= cuda->scratch.bytes) return pointer(cuda->scratch.address);
  o3rt_cuda_graphs_clear(&cuda->graphs, cuda->model->api);
  int code = o3rt_cuda_buffer_grow(cuda, &cuda->scratch, (size_t)bytes);
  if (code != CUDA_OK) fail_memory(session, code, "what the kernels' blocks share", bytes);
  code = cuda->model->api->copy_to_device(cuda->scratch.address, kZeros, sizeof kZeros, cuda->stream);
  if (code != CUDA_OK) {
    cuda->scratch.bytes = 0;  // the next run clears them
    fail(session, code, "clearing the kernels' counters");
  }
  return pointer(cuda->scratch.address);
}

// ---- Copies ----

void o3rt_gpu_to_host(o3rt_session_t *session, void *host, const void *device, int64_t bytes) {
  const o3rt_cuda_session_t *cuda = o3rt_cuda_session(session);
  if (bytes == 0) return;
  int code = cuda->model->api->copy_to_host(host, address(device), (size_t)bytes, cuda->stream);
  if (code == CUDA_OK) code = cuda->model->api->stream_wait(cuda->stream);
  if (code != CUDA_OK) fail(session, code, "copying a value to the host");
}

// From pageable memory the driver has taken the bytes when it returns.
void o3rt_gpu_to_device(o3rt_session_t *session, void *device, const void *host, int64_t bytes) {
  const o3rt_cuda_session_t *cuda = o3rt_cuda_session(session);
  if (bytes == 0) return;
  int code = cuda->model->api->copy_to_device(address(device), host, (size_t)bytes, cuda->stream);
  if (code != CUDA_OK) fail(session, code, "copying a value to the card");
}

// ---- Launches ----

enum { GRID, BLOCK = 3, SHARED = 6, CLUSTER = 7, OVERLAPS = 8, FIRST_ARGUMENT = 10, MAX_ARGUMENTS = 256 };

enum { MAX_MAP_RANK = 5, WINDOWS = 3, MAP_SIZES = 4, PROMOTE_128 = 2 };

typedef struct map_spec {
  int type, rank, swizzle;
  uint64_t sizes[MAX_MAP_RANK], strides[MAX_MAP_RANK];
  uint32_t box[MAX_MAP_RANK];
} map_spec_t;

static map_spec_t read_map(const int64_t *spec) {
  map_spec_t m = {.type = (int)spec[0], .rank = (int)spec[1]};
  for (int64_t bytes = spec[2]; bytes > 16; bytes /= 2) ++m.swizzle;  // 32, 64, 128: 1, 2, 3
  for (int i = 0; i < m.rank; ++i) {
    m.sizes[i] = (uint64_t)spec[MAP_SIZES + i];
    m.strides[i] = (uint64_t)spec[MAP_SIZES + m.rank + i];
    m.box[i] = (uint32_t)spec[MAP_SIZES + 2 * m.rank + i];
  }
  return m;
}

static int encode_boxes(const o3rt_cuda_session_t *cuda, void *map, void *memory, const map_spec_t *m) {
  static const uint32_t kSteps[MAX_MAP_RANK] = {1, 1, 1, 1, 1};
  return cuda->model->api->tensor_map(map, m->type, (unsigned)m->rank, memory, m->sizes, m->strides + 1,
                                      m->box, kSteps, 0, m->swizzle, PROMOTE_128, 0);
}

static int encode_windows(const o3rt_cuda_session_t *cuda, void *map, void *memory, const map_spec_t *m,
                          const int64_t *pairs) {
  const int low[2] = {(int)pairs[0], (int)pairs[1]}, high[2] = {(int)pairs[2], (int)pairs[3]};
  const uint32_t steps[4] = {1, (uint32_t)pairs[4], (uint32_t)pairs[5], 1};
  return cuda->model->api->window_map(map, m->type, (unsigned)m->rank, memory, m->sizes, m->strides + 1, low,
                                      high, m->box[0], m->box[1], steps, 0, m->swizzle, PROMOTE_128, 0);
}

void o3rt_gpu_tensor_map(o3rt_session_t *session, void *map, const void *device, const int64_t *spec) {
  const o3rt_cuda_session_t *cuda = o3rt_cuda_session(session);
  const map_spec_t m = read_map(spec);
  void *memory = pointer(address(device));
  for (int i = 0; i < m.rank; ++i)
    if (m.sizes[i] == 0) return;  // of no batches: nothing is launched
  if (!cuda->model->api->tensor_map || !cuda->model->api->window_map)
    fail(session, 0, "the NVIDIA driver is older than CUDA 12: no tensor maps");
  int code = spec[WINDOWS] ? encode_windows(cuda, map, memory, &m, spec + MAP_SIZES + 3 * m.rank)
                           : encode_boxes(cuda, map, memory, &m);
  if (code != CUDA_OK) fail(session, code, "encoding a tensor map");
}

static int launch_plain(const o3rt_cuda_session_t *cuda, cuda_function_t function, const int64_t *w,
                        void **arguments) {
  return cuda->model->api->launch(function, (unsigned)w[GRID], (unsigned)w[GRID + 1], (unsigned)w[GRID + 2],
                                  (unsigned)w[BLOCK], (unsigned)w[BLOCK + 1], (unsigned)w[BLOCK + 2],
                                  (unsigned)w[SHARED], cuda->stream, arguments, NULL);
}

static bool is_extended(const int64_t *w) { return w[CLUSTER] > 1 || w[OVERLAPS]; }

static int launch_extended(o3rt_session_t *session, cuda_function_t function, const int64_t *w,
                           void **arguments) {
  const o3rt_cuda_session_t *cuda = o3rt_cuda_session(session);
  cuda_launch_attribute_t attributes[2] = {0};
  cuda_launch_t launch = {
      .shared_bytes = (unsigned)w[SHARED], .stream = cuda->stream, .attributes = attributes};
  if (w[CLUSTER] > 1) {
    cuda_launch_attribute_t *cluster = &attributes[launch.num_attributes++];
    cluster->id = CUDA_LAUNCH_CLUSTER;
    cluster->value.cluster.x = (unsigned)w[CLUSTER];
    cluster->value.cluster.y = cluster->value.cluster.z = 1;
  }
  if (w[OVERLAPS]) {
    cuda_launch_attribute_t *overlap = &attributes[launch.num_attributes++];
    overlap->id = CUDA_LAUNCH_PROGRAMMATIC;
    overlap->value.programmatic = 1;
  }
  for (int i = 0; i < 3; ++i)
    launch.grid[i] = (unsigned)w[GRID + i], launch.block[i] = (unsigned)w[BLOCK + i];
  if (!cuda->model->api->launch_extended)
    fail(session, 0, "the NVIDIA driver is older than CUDA 11.8: no clusters, no programmatic launches");
  return cuda->model->api->launch_extended(&launch, function, arguments, NULL);
}

// "kernel 'o3k_add_0' (Conv_3, Relu_4), grid 12x1x1, block 256x1x1"
static _Noreturn void fail_launch(o3rt_session_t *session, int code, int32_t kernel, const int64_t *w) {
  const o3rt_gpu_kernel_t *info = &session->compiled->gpu->kernels[kernel];
  o3rt_text_t what;
  o3rt_text_clear(&what);
  o3rt_text_printf(
      &what, "kernel '%s' (%.200s), grid %lldx%lldx%lld, block %lldx%lldx%lld, %lld bytes of shared memory",
      info->name, info->label, (long long)w[GRID], (long long)w[GRID + 1], (long long)w[GRID + 2],
      (long long)w[BLOCK], (long long)w[BLOCK + 1], (long long)w[BLOCK + 2], (long long)w[SHARED]);
  fail(session, code, what.text);
}

static bool is_too_large(const int64_t *w) {
  return w[GRID] > INT32_MAX || w[GRID + 1] > UINT16_MAX || w[GRID + 2] > UINT16_MAX;
}

void o3rt_gpu_launch(o3rt_session_t *session, int32_t kernel, const int64_t *words, int32_t num_arguments,
                     uint64_t maps) {
  o3rt_cuda_session_t *cuda = o3rt_cuda_session(session);
  o3rt_cuda_function_t *function = &cuda->model->functions[kernel];
  void *arguments[MAX_ARGUMENTS + 1];
  if (words[GRID] == 0 || words[GRID + 1] == 0 || words[GRID + 2] == 0) return;
  enum { CUDA_INVALID_VALUE = 1 };
  if (is_too_large(words)) fail_launch(session, CUDA_INVALID_VALUE, kernel, words);
  for (int32_t i = 0; i < num_arguments; ++i) {
    const int64_t *word = &words[FIRST_ARGUMENT + i];
    bool is_map = i < 64 && (maps >> i & 1);
    arguments[i] = is_map ? (void *)(uintptr_t)*word : (void *)(uintptr_t)word;
  }
  int code = o3rt_cuda_model_allow_shared(cuda->model, kernel, words[SHARED]);
  if (code == CUDA_OK)
    code = is_extended(words) ? launch_extended(session, function->handle, words, arguments)
                              : launch_plain(cuda, function->handle, words, arguments);
  if (code == CUDA_OK && cuda->checks_launches) code = cuda->model->api->stream_wait(cuda->stream);
  if (code != CUDA_OK) fail_launch(session, code, kernel, words);
}
