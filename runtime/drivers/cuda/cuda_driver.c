/* The CUDA driver of the runtime: sessions and runs.
 *
 * A run stages its inputs (those in host memory are copied to the card), does the model's work, and hands its
 * results out. The work of a model whose launches depend on shapes alone is recorded when its shapes come a
 * second time, and replayed from the third time on; a key of shapes and places tells what a record is for.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda_session.h"

#define VECTOR_BYTES 16 /* kernels read as much at once, and tensor maps start at multiples of it */

// ---- Failing ----

o3_code_t o3rt_cuda_fail(o3rt_session_t *session, int code, const char *what) {
  o3rt_text_printf(&session->error, "GPU %d: %s", o3rt_cuda_session(session)->model->device, what);
  if (code == CUDA_OK) return O3_ERROR_UNSUPPORTED;
  o3rt_text_printf(&session->error, ": ");
  o3rt_cuda_print_error(o3rt_cuda_session(session)->model->api, code, &session->error);
  return o3rt_cuda_code(code);
}

// ---- Memory ----

int o3rt_cuda_buffer_grow(const o3rt_cuda_session_t *cuda, o3rt_cuda_buffer_t *buffer, size_t bytes) {
  const o3rt_cuda_api_t *api = cuda->model->api;
  if (bytes <= buffer->bytes) return CUDA_OK;
  if (buffer->address) {
    int code = api->stream_wait(cuda->stream);
    if (code == CUDA_OK) code = api->memory_free(buffer->address);
    if (code != CUDA_OK) return code;
  }
  *buffer = (o3rt_cuda_buffer_t){0};
  int code = api->memory_alloc(&buffer->address, bytes);
  if (code == CUDA_OK)
    buffer->bytes = bytes;
  else
    buffer->address = 0;
  return code;
}

static o3rt_cuda_block_t **find_spare(o3rt_cuda_session_t *cuda, size_t bytes) {
  o3rt_cuda_block_t **place = &cuda->spare;
  while (*place && ((*place)->memory.bytes < bytes || (*place)->memory.bytes / 2 > bytes))
    place = &(*place)->next;
  return place;
}

o3rt_cuda_block_t *o3rt_cuda_block_take(o3rt_cuda_session_t *cuda, size_t bytes, int *code) {
  o3rt_cuda_block_t **place = find_spare(cuda, bytes), *block = *place;
  *code = CUDA_OK;
  if (block) {
    *place = block->next;
  } else {
    block = calloc(1, sizeof *block);
    if (!block) return NULL;
    *code = o3rt_cuda_buffer_grow(cuda, &block->memory, bytes ? bytes : 1);
    if (*code != CUDA_OK) {
      free(block);
      return NULL;
    }
  }
  block->next = cuda->live;
  cuda->live = block;
  return block;
}

static void free_blocks(const o3rt_cuda_session_t *cuda, o3rt_cuda_block_t *block) {
  for (o3rt_cuda_block_t *next; block; block = next) {
    next = block->next;
    (void)cuda->model->api->memory_free(block->memory.address);
    free(block);
  }
}

// What a whole run did not use is given back.
static void recycle(o3rt_cuda_session_t *cuda) {
  free_blocks(cuda, cuda->spare);
  cuda->spare = cuda->live;
  cuda->live = NULL;
}

static size_t memory(const o3rt_session_t *session) {
  const o3rt_cuda_session_t *cuda = session->device;
  size_t bytes = cuda->arena.bytes + cuda->scratch.bytes;
  for (int32_t i = 0; i < session->compiled->num_inputs; ++i) bytes += cuda->inputs[i].bytes;
  for (const o3rt_cuda_block_t *block = cuda->live; block; block = block->next) bytes += block->memory.bytes;
  for (const o3rt_cuda_block_t *block = cuda->spare; block; block = block->next) bytes += block->memory.bytes;
  return bytes;
}

// ---- Open and close ----

static int open_stream(o3rt_cuda_session_t *cuda, const o3_session_options_t *options) {
  cuda->owns_stream = options->stream == NULL;
  cuda->stream = options->stream;
  if (!cuda->owns_stream) return CUDA_OK;
  int code = cuda->model->api->stream_create(&cuda->stream, CUDA_STREAM_NON_BLOCKING);
  if (code != CUDA_OK) cuda->stream = NULL;
  return code;
}

// The card writes over the bus when a check fails, and else never: a run has nothing to clear or copy for it.
static int make_error_word(const o3rt_session_t *session) {
  o3rt_cuda_session_t *cuda = session->device;
  if (session->compiled->gpu->num_messages == 0) return CUDA_OK;
  return cuda->model->api->host_alloc((void **)&cuda->error_word, sizeof *cuda->error_word,
                                      CUDA_HOST_ALLOC_DEVICE_MAP);
}

static o3_code_t set_up(o3rt_session_t *session, const o3_session_options_t *options, o3rt_text_t *error) {
  o3rt_cuda_session_t *cuda = session->device;
  size_t inputs = (size_t)session->compiled->num_inputs + 1;
  const char *check = getenv("O3_GPU_CHECK");
  cuda->checks_launches = check && *check && strcmp(check, "0") != 0;
  cuda->inputs = calloc(inputs, sizeof *cuda->inputs);
  if (!cuda->inputs) {
    o3rt_text_printf(error, "out of memory");
    return O3_ERROR_OUT_OF_MEMORY;
  }
  int code = cuda->model->api->context_push(cuda->model->context);
  if (code == CUDA_OK) {
    cuda_context_t context;
    code = open_stream(cuda, options);
    if (code == CUDA_OK) code = make_error_word(session);
    (void)cuda->model->api->context_pop(&context);
  }
  if (code == CUDA_OK) return O3_OK;
  o3rt_text_printf(error, "GPU %d: a stream and memory for a session: ", cuda->model->device);
  o3rt_cuda_print_error(cuda->model->api, code, error);
  return o3rt_cuda_code(code);
}

// At the process's end the driver may be gone already: what fails then has nothing to give back.
static void close_session(o3rt_session_t *session) {
  o3rt_cuda_session_t *cuda = session->device;
  if (!cuda) return;
  const o3rt_cuda_api_t *api = cuda->model->api;
  cuda_context_t context;
  bool entered = api->context_push(cuda->model->context) == CUDA_OK;
  if (cuda->stream || !cuda->owns_stream) (void)api->stream_wait(cuda->stream);
  o3rt_cuda_graphs_clear(&cuda->graphs, api);
  o3rt_cuda_marks_free(&cuda->marks, api);
  free_blocks(cuda, cuda->live);
  free_blocks(cuda, cuda->spare);
  for (int32_t i = 0; cuda->inputs && i < session->compiled->num_inputs; ++i)
    if (cuda->inputs[i].address) (void)api->memory_free(cuda->inputs[i].address);
  if (cuda->arena.address) (void)api->memory_free(cuda->arena.address);
  if (cuda->scratch.address) (void)api->memory_free(cuda->scratch.address);
  if (cuda->error_word) (void)api->host_free(cuda->error_word);
  if (cuda->owns_stream && cuda->stream) (void)api->stream_destroy(cuda->stream);
  if (entered) (void)api->context_pop(&context);
  o3rt_cuda_model_release(cuda->model);
  free(cuda->inputs);
  free(cuda);
  session->device = NULL;
}

static o3_code_t open_session(o3rt_session_t *session, const o3_session_options_t *options,
                              o3rt_text_t *error) {
  o3_code_t code;
  o3rt_cuda_session_t *cuda = calloc(1, sizeof *cuda);
  if (!cuda) {
    o3rt_text_printf(error, "out of memory");
    return O3_ERROR_OUT_OF_MEMORY;
  }
  cuda->model = o3rt_cuda_model_retain(session->compiled, options->device, &code, error);
  if (!cuda->model) {
    free(cuda);
    return code;
  }
  session->device = cuda;
  return set_up(session, options, error);
}

// ---- Inputs ----

static bool overlaps(const o3rt_cuda_buffer_t *buffer, cuda_address_t address, size_t bytes) {
  return address < buffer->address + buffer->bytes && buffer->address < address + bytes;
}

static bool is_in_blocks(const o3rt_cuda_block_t *block, cuda_address_t address, size_t bytes) {
  while (block && !overlaps(&block->memory, address, bytes)) block = block->next;
  return block != NULL;
}

static bool is_own(const o3rt_session_t *session, cuda_address_t address, size_t bytes) {
  const o3rt_cuda_session_t *cuda = session->device;
  bool own = overlaps(&cuda->arena, address, bytes) || overlaps(&cuda->scratch, address, bytes);
  for (int32_t i = 0; !own && i < session->compiled->num_inputs; ++i)
    own = overlaps(&cuda->inputs[i], address, bytes);
  return own || is_in_blocks(cuda->live, address, bytes) || is_in_blocks(cuda->spare, address, bytes);
}

// Checked shapes: nothing overflows.
static size_t given_bytes(const o3_tensor_t *given) {
  size_t bytes = o3rt_dtype_bytes((int32_t)given->dtype);
  for (int32_t i = 0; i < given->rank; ++i) bytes *= (size_t)given->shape[i];
  return bytes;
}

static bool check_place(o3rt_session_t *session, const char *kind, const char *name,
                        const o3_tensor_t *given) {
  size_t bytes = given->data && given->place == O3_DEVICE ? given_bytes(given) : 0;
  if (bytes == 0 || !is_own(session, (cuda_address_t)(uintptr_t)given->data, bytes)) return true;
  o3rt_text_printf(&session->error,
                   "%s '%s' lies in the session's own memory, which this run reuses: copy it first", kind,
                   name);
  return false;
}

// Before anything of the last run is given up.
static bool check_places(o3rt_session_t *session, const o3_tensor_t *inputs, const o3_tensor_t *outputs) {
  const o3rt_model_t *compiled = session->compiled;
  bool apart = true;
  for (int32_t i = 0; apart && i < compiled->num_inputs; ++i)
    apart = check_place(session, "input", compiled->inputs[i].name, &inputs[i]);
  for (int32_t i = 0; apart && i < compiled->num_outputs; ++i)
    apart = check_place(session, "output", compiled->outputs[i].name, &outputs[i]);
  return apart;
}

// Compiled code has this one in host memory.
static o3_code_t bind_host(o3rt_session_t *session, const o3_tensor_t *input, o3rt_memref_t *memref,
                           size_t bytes) {
  const o3rt_cuda_session_t *cuda = session->device;
  if (input->place == O3_HOST || bytes == 0) return O3_OK;
  void *copy = o3rt_memory_alloc(&session->memory, (int64_t)bytes);
  if (!copy) {
    o3rt_text_printf(&session->error, "out of memory");
    return O3_ERROR_OUT_OF_MEMORY;
  }
  int code =
      cuda->model->api->copy_to_host(copy, (cuda_address_t)(uintptr_t)input->data, bytes, cuda->stream);
  if (code == CUDA_OK) code = cuda->model->api->stream_wait(cuda->stream);
  if (code != CUDA_OK) return o3rt_cuda_fail(session, code, "copying an input to the host");
  memref->allocated = memref->aligned = copy;
  return O3_OK;
}

// Copies grow; recorded runs read them at their place. What lies on the card is read there, unless the caller
// placed it where kernels cannot read it in vectors.
static o3_code_t bind_card(o3rt_session_t *session, int32_t index, const o3_tensor_t *input,
                           o3rt_memref_t *memref, size_t bytes) {
  o3rt_cuda_session_t *cuda = session->device;
  o3rt_cuda_buffer_t *copy = &cuda->inputs[index];
  if (bytes == 0) return O3_OK;
  bool on_card = input->place == O3_DEVICE;
  if (on_card && (uintptr_t)input->data % VECTOR_BYTES == 0) return O3_OK;
  if (bytes > copy->bytes) o3rt_cuda_graphs_clear(&cuda->graphs, cuda->model->api);
  int code = o3rt_cuda_buffer_grow(cuda, copy, bytes);
  if (code == CUDA_OK && on_card)
    code = cuda->model->api->copy_inside(copy->address, (cuda_address_t)(uintptr_t)input->data, bytes,
                                         cuda->stream);
  else if (code == CUDA_OK)
    code = cuda->model->api->copy_to_device(copy->address, input->data, bytes, cuda->stream);
  if (code != CUDA_OK) return o3rt_cuda_fail(session, code, "copying an input to the card");
  memref->allocated = memref->aligned = (void *)(uintptr_t)copy->address;
  return O3_OK;
}

static o3_code_t bind_inputs(o3rt_session_t *session, const o3_tensor_t *inputs) {
  const o3rt_model_t *compiled = session->compiled;
  for (int32_t i = 0; i < compiled->num_inputs; ++i) {
    size_t bytes = o3rt_memref_bytes(session->inputs[i], &compiled->inputs[i]);
    o3_code_t code = compiled->gpu->host_inputs[i]
                         ? bind_host(session, &inputs[i], session->inputs[i], bytes)
                         : bind_card(session, i, &inputs[i], session->inputs[i], bytes);
    if (code != O3_OK) return code;
  }
  return O3_OK;
}

// ---- The work ----

static o3_code_t run_compiled(o3rt_session_t *session) {
  if (setjmp(session->escape) != 0) return session->failure;
  session->compiled->run(session, session->inputs, session->outputs);
  return O3_OK;
}

static size_t memref_words(const o3rt_tensor_t *spec) {
  return sizeof(o3rt_memref_t) / sizeof(int64_t) + 2 * (size_t)spec->rank;
}

static size_t all_words(const o3rt_tensor_t *specs, int32_t count) {
  size_t words = 1;
  for (int32_t i = 0; i < count; ++i) words += memref_words(&specs[i]);
  return words;
}

static void save_memrefs(o3rt_memref_t *const *memrefs, const o3rt_tensor_t *specs, int32_t count,
                         int64_t *words) {
  for (int32_t i = 0; i < count; ++i) {
    memcpy(words, memrefs[i], memref_words(&specs[i]) * sizeof *words);
    words += memref_words(&specs[i]);
  }
}

static void restore_memrefs(o3rt_memref_t *const *memrefs, const o3rt_tensor_t *specs, int32_t count,
                            const int64_t *words) {
  for (int32_t i = 0; i < count; ++i) {
    memcpy(memrefs[i], words, memref_words(&specs[i]) * sizeof *words);
    words += memref_words(&specs[i]);
  }
}

// Runs the host's code while the stream records. NULL when that does not come to a graph: the stream is the
// legacy one or is being recorded by the caller, or the code fails.
static cuda_graph_t capture(o3rt_session_t *session) {
  const o3rt_cuda_session_t *cuda = session->device;
  cuda_graph_t graph = NULL;
  if (cuda->model->api->capture_begin(cuda->stream, CUDA_CAPTURE_THREAD_LOCAL) != CUDA_OK) return NULL;
  o3_code_t result = run_compiled(session);
  int code = cuda->model->api->capture_end(cuda->stream, &graph);
  if (result == O3_OK && code == CUDA_OK) return graph;
  if (graph) (void)cuda->model->api->graph_destroy(graph);
  return NULL;
}

static bool record(o3rt_session_t *session, o3rt_cuda_recorded_t *item) {
  const o3rt_cuda_session_t *cuda = session->device;
  const o3rt_model_t *compiled = session->compiled;
  cuda_graph_t graph = capture(session);
  if (!graph) return false;
  int code = cuda->model->api->graph_instantiate(&item->exec, graph, 0);
  (void)cuda->model->api->graph_destroy(graph);
  if (code == CUDA_OK)
    save_memrefs(session->outputs, compiled->outputs, compiled->num_outputs, item->results);
  if (code != CUDA_OK) item->exec = NULL;
  return code == CUDA_OK;
}

static o3_code_t replay(o3rt_session_t *session, const o3rt_cuda_recorded_t *item) {
  const o3rt_cuda_session_t *cuda = session->device;
  const o3rt_model_t *compiled = session->compiled;
  int code = cuda->model->api->graph_launch(item->exec, cuda->stream);
  if (code != CUDA_OK) return o3rt_cuda_fail(session, code, "replaying a recorded run");
  restore_memrefs(session->outputs, compiled->outputs, compiled->num_outputs, item->results);
  return O3_OK;
}

// What cannot be recorded is done as it is written, now and in the next runs, more of them each time: what
// was in the way may be gone (another thread's use of the card, a lack of memory), and a run that fails by
// itself then tells why.
static o3_code_t record_or_run(o3rt_session_t *session, o3rt_cuda_recorded_t *item) {
  const o3rt_model_t *compiled = session->compiled;
  enum { FIRST_WAITS = 4, MOST_WAITS = 4096 };
  if (item->waits > 0) {
    --item->waits;
    return run_compiled(session);
  }
  if (!item->results)
    item->results = malloc(all_words(compiled->outputs, compiled->num_outputs) * sizeof(int64_t));
  if (!item->results) {
    o3rt_text_printf(&session->error, "out of memory");
    return O3_ERROR_OUT_OF_MEMORY;
  }
  if (record(session, item)) return replay(session, item);
  o3rt_text_clear(&session->error);
  item->waits = item->next_waits ? item->next_waits : FIRST_WAITS;
  item->next_waits = item->waits < MOST_WAITS ? 2 * item->waits : MOST_WAITS;
  return run_compiled(session);
}

// The first run of some shapes is done as it is written, which also makes the arena; most shapes of a model
// with changing ones come only once. Its key is noted after it: a growing arena forgets all keys.
static o3_code_t run_first(o3rt_session_t *session, int64_t *key) {
  o3rt_cuda_session_t *cuda = session->device;
  o3_code_t code = run_compiled(session);
  if (code == O3_OK)
    o3rt_cuda_graphs_note(&cuda->graphs, cuda->model->api, key);
  else
    free(key);
  return code;
}

static o3_code_t work(o3rt_session_t *session) {
  o3rt_cuda_session_t *cuda = session->device;
  const o3rt_model_t *compiled = session->compiled;
  if (!compiled->gpu->replayable || cuda->never_replays || cuda->checks_launches || session->profile)
    return run_compiled(session);
  size_t words = all_words(compiled->inputs, compiled->num_inputs);
  int64_t *key = calloc(words, sizeof *key);
  if (!key) {
    o3rt_text_printf(&session->error, "out of memory");
    return O3_ERROR_OUT_OF_MEMORY;
  }
  save_memrefs(session->inputs, compiled->inputs, compiled->num_inputs, key);
  o3rt_cuda_recorded_t *item = o3rt_cuda_graphs_find(&cuda->graphs, key, words);
  if (!item) return run_first(session, key);
  free(key);
  return item->exec ? replay(session, item) : record_or_run(session, item);
}

// ---- Results ----

typedef struct result {
  const void *data;
  size_t bytes;
  bool on_card;
} result_t;

static result_t result_of(o3rt_session_t *session, int32_t index) {
  const o3rt_memref_t *memref = session->outputs[index];
  const o3rt_tensor_t *spec = &session->compiled->outputs[index];
  size_t offset = (size_t)memref->offset * o3rt_dtype_bytes(spec->dtype);
  return (result_t){.data = (const char *)memref->aligned + offset,
                    .bytes = o3rt_memref_bytes(memref, spec),
                    .on_card = !session->compiled->gpu->host_outputs[index]};
}

static int copy_result(const o3rt_cuda_session_t *cuda, const result_t *result, void *to, bool to_card) {
  const o3rt_cuda_api_t *api = cuda->model->api;
  cuda_address_t from = (cuda_address_t)(uintptr_t)result->data, place = (cuda_address_t)(uintptr_t)to;
  if (result->bytes == 0) return CUDA_OK;
  if (result->on_card)
    return to_card ? api->copy_inside(place, from, result->bytes, cuda->stream)
                   : api->copy_to_host(to, from, result->bytes, cuda->stream);
  if (to_card) return api->copy_to_device(place, result->data, result->bytes, cuda->stream);
  memcpy(to, result->data, result->bytes);
  return CUDA_OK;
}

static o3_code_t take_memory(o3rt_session_t *session, bool on_card, size_t bytes, void **memory) {
  int code = CUDA_OK;
  if (on_card) {
    o3rt_cuda_block_t *block = o3rt_cuda_block_take(session->device, bytes, &code);
    *memory = block ? (void *)(uintptr_t)block->memory.address : NULL;
  } else {
    *memory = o3rt_memory_alloc(&session->memory, (int64_t)bytes);
  }
  if (*memory) return O3_OK;
  if (code != CUDA_OK && code != CUDA_OUT_OF_MEMORY)
    return o3rt_cuda_fail(session, code, "memory for an output");
  o3rt_text_printf(&session->error, "out of memory: an output takes %zu bytes", bytes);
  return O3_ERROR_OUT_OF_MEMORY;
}

// Memory of the session for a result that the caller has no place for; a result in the session's own memory
// stays where it is.
static o3_code_t make_place(o3rt_session_t *session, const result_t *result, o3_place_t wanted,
                            void **place) {
  const o3rt_cuda_session_t *cuda = session->device;
  cuda_address_t address = (cuda_address_t)(uintptr_t)result->data;
  bool on_card = wanted == O3_DEVICE;
  if (on_card && result->on_card &&
      (overlaps(&cuda->arena, address, 1) || is_in_blocks(cuda->live, address, 1))) {
    *place = (void *)(uintptr_t)result->data;
    return O3_OK;
  }
  return take_memory(session, on_card, result->bytes, place);
}

// Whether copying the results out writes where result |index| lies: an input's memory that is an output's
// place, too.
static bool is_overwritten(o3rt_session_t *session, int32_t index, const result_t *result,
                           const o3_tensor_t *outputs) {
  bool overwritten = false;
  for (int32_t i = 0; i < session->compiled->num_outputs; ++i) {
    size_t bytes = result_of(session, i).bytes;
    bool same_memory = outputs[i].data && (outputs[i].place == O3_DEVICE) == result->on_card;
    bool stays = i == index && outputs[i].data == result->data;
    if (bytes == 0 || result->bytes == 0 || !same_memory || stays) continue;
    overwritten |= o3rt_ranges_overlap(result->data, result->bytes, outputs[i].data, bytes);
  }
  return overwritten;
}

static o3_code_t save_result(o3rt_session_t *session, int32_t index, const result_t *result) {
  o3rt_memref_t *memref = session->outputs[index];
  void *memory;
  o3_code_t taken = take_memory(session, result->on_card, result->bytes, &memory);
  if (taken != O3_OK) return taken;
  int code = copy_result(session->device, result, memory, result->on_card);
  if (code != CUDA_OK) return o3rt_cuda_fail(session, code, "saving a result");
  memref->allocated = memref->aligned = memory;
  memref->offset = 0;
  return O3_OK;
}

// Nothing of the caller's is written yet.
static o3_code_t find_places(o3rt_session_t *session, const o3_tensor_t *outputs, void **places) {
  o3_code_t code = O3_OK;
  for (int32_t i = 0; code == O3_OK && i < session->compiled->num_outputs; ++i) {
    result_t result = result_of(session, i);
    if (is_overwritten(session, i, &result, outputs)) code = save_result(session, i, &result);
    result = result_of(session, i);
    places[i] = outputs[i].data;
    if (code == O3_OK && !places[i]) code = make_place(session, &result, outputs[i].place, &places[i]);
  }
  return code;
}

static o3_code_t copy_results(o3rt_session_t *session, const o3_tensor_t *outputs, void **places) {
  o3_code_t found = find_places(session, outputs, places);
  if (found != O3_OK) return found;
  for (int32_t i = 0; i < session->compiled->num_outputs; ++i) {
    result_t result = result_of(session, i);
    if (places[i] == result.data) continue;
    int code = copy_result(session->device, &result, places[i], outputs[i].place == O3_DEVICE);
    if (code != CUDA_OK) return o3rt_cuda_fail(session, code, "copying a result");
  }
  return O3_OK;
}

static void hand_out(o3rt_session_t *session, o3_tensor_t *outputs, void *const *places) {
  for (int32_t i = 0; i < session->compiled->num_outputs; ++i) {
    const o3rt_tensor_t *spec = &session->compiled->outputs[i];
    outputs[i].data = places[i];
    outputs[i].dtype = (o3_dtype_t)spec->dtype;
    outputs[i].rank = spec->rank;
    for (int32_t k = 0; k < spec->rank; ++k) outputs[i].shape[k] = session->outputs[i]->sizes_and_strides[k];
  }
}

// ---- A run ----

static o3_code_t wait(o3rt_session_t *session, const char *what) {
  const o3rt_cuda_session_t *cuda = session->device;
  int code = cuda->model->api->stream_wait(cuda->stream);
  return code == CUDA_OK ? O3_OK : o3rt_cuda_fail(session, code, what);
}

// A check in a kernel may have failed: then what came after it means nothing.
static o3_code_t check_error_word(o3rt_session_t *session) {
  const o3rt_cuda_session_t *cuda = session->device;
  const o3rt_gpu_t *gpu = session->compiled->gpu;
  o3_code_t result = wait(session, "running the model (O3_GPU_CHECK=1 names the kernel)");
  int32_t number = *cuda->error_word;
  if (result != O3_OK || number == 0) return result;
  bool known = number > 0 && number <= gpu->num_messages;
  o3rt_text_printf(&session->error, "%s",
                   known ? gpu->messages[number - 1] : "the kernels' error word is broken");
  return O3_ERROR_RUN;
}

// In the caller's own stream, results on the card are ready when the stream is.
static bool must_wait(const o3rt_session_t *session, const o3_tensor_t *outputs) {
  const o3rt_cuda_session_t *cuda = session->device;
  bool wait_for = cuda->owns_stream;
  for (int32_t i = 0; i < session->compiled->num_outputs; ++i) wait_for |= outputs[i].place == O3_HOST;
  return wait_for;
}

static void mark(o3rt_session_t *session, int32_t kernel) {
  o3rt_cuda_session_t *cuda = session->device;
  o3rt_cuda_marks_add(&cuda->marks, cuda->model->api, cuda->stream, kernel);
}

static void start_marks(o3rt_session_t *session) {
  o3rt_cuda_session_t *cuda = session->device;
  o3rt_cuda_marks_start(&cuda->marks);
  mark(session, O3_NO_KERNEL);
}

static o3_code_t read_marks(o3rt_session_t *session) {
  const o3rt_cuda_session_t *cuda = session->device;
  int code = o3rt_cuda_marks_read(&cuda->marks, cuda->model->api, session->profile);
  return code == CUDA_OK ? O3_OK : o3rt_cuda_fail(session, code, "measuring kernels");
}

static o3_code_t run_in_context(o3rt_session_t *session, const o3_tensor_t *inputs, o3_tensor_t *outputs,
                                void **places) {
  const o3rt_cuda_session_t *cuda = session->device;
  if (!check_places(session, inputs, outputs)) return O3_ERROR_INVALID_ARGUMENT;
  recycle(session->device);
  if (session->profile) start_marks(session);
  if (cuda->error_word) *cuda->error_word = 0;
  o3_code_t code = bind_inputs(session, inputs);
  if (code == O3_OK) code = work(session);
  if (session->profile) mark(session, O3_NO_KERNEL);
  if (code == O3_OK && cuda->error_word) code = check_error_word(session);
  if (code != O3_OK) return code;
  if (!o3rt_results_check(session, outputs)) return O3_ERROR_INVALID_ARGUMENT;
  code = copy_results(session, outputs, places);
  if (session->profile) mark(session, O3_NO_KERNEL);
  if (code == O3_OK && (session->profile || must_wait(session, outputs)))
    code = wait(session, "running the model (O3_GPU_CHECK=1 names the kernel)");
  if (code == O3_OK && session->profile) code = read_marks(session);
  if (code == O3_OK) hand_out(session, outputs, places);
  return code;
}

static o3_code_t run(o3rt_session_t *session, const o3_tensor_t *inputs, o3_tensor_t *outputs) {
  o3rt_cuda_session_t *cuda = session->device;
  cuda_context_t context;
  void **places = calloc((size_t)session->compiled->num_outputs + 1, sizeof *places);
  if (!places) {
    o3rt_text_printf(&session->error, "out of memory");
    return O3_ERROR_OUT_OF_MEMORY;
  }
  int entered = cuda->model->api->context_push(cuda->model->context);
  o3_code_t code = entered == CUDA_OK ? run_in_context(session, inputs, outputs, places)
                                      : o3rt_cuda_fail(session, entered, "entering its context");
  // What was launched before a failure still reads and writes memory that the caller has back now.
  if (entered == CUDA_OK && code != O3_OK) (void)cuda->model->api->stream_wait(cuda->stream);
  if (entered == CUDA_OK) (void)cuda->model->api->context_pop(&context);
  free(places);
  return code;
}

const o3rt_driver_t o3rt_cuda_driver = {
    .open = open_session, .close = close_session, .run = run, .memory = memory, .mark = mark};
