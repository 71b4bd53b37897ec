/* Everything that a caller can get wrong about tensors is found here, before compiled code sees it, and told
 * with the tensor's name, what came and what was expected. */
#include "session.h"

typedef struct dtype {
  int32_t code;
  int32_t bits;
  const char *name;
} dtype_t;

static const dtype_t kDtypes[] = {
#define O3_DTYPE(id, name, code, bits, mlir) {code, bits, name},
#include "../src/base/dtype.def"
#undef O3_DTYPE
};

// One tensor under check: what the caller gave, and what the model says of it.
typedef struct subject {
  o3rt_session_t *session;
  bool is_input;
  const o3rt_tensor_t *spec;
  const o3_tensor_t *given;
} subject_t;

static const dtype_t *find_dtype(int32_t code) {
  for (size_t i = 0; i < sizeof kDtypes / sizeof kDtypes[0]; ++i)
    if (kDtypes[i].code == code) return &kDtypes[i];
  return NULL;
}

size_t o3rt_dtype_bytes(int32_t code) {
  const dtype_t *dtype = find_dtype(code);
  return dtype ? (size_t)dtype->bits / 8 : 0;
}

size_t o3rt_memref_bytes(const o3rt_memref_t *memref, const o3rt_tensor_t *spec) {
  size_t bytes = o3rt_dtype_bytes(spec->dtype);
  for (int32_t i = 0; i < spec->rank; ++i) bytes *= (size_t)memref->sizes_and_strides[i];
  return bytes;
}

// ---- Texts ----

static void print_dtype(o3rt_text_t *text, int32_t code) {
  const dtype_t *dtype = find_dtype(code);
  if (dtype)
    o3rt_text_printf(text, "%s", dtype->name);
  else
    o3rt_text_printf(text, "%d, which is no element type", code);
}

static void print_shape(o3rt_text_t *text, const int64_t *shape, int32_t rank) {
  if (rank == 0) o3rt_text_printf(text, "scalar");
  for (int32_t i = 0; i < rank; ++i) o3rt_text_printf(text, "%s%lld", i ? "x" : "", (long long)shape[i]);
}

static void print_expected(o3rt_text_t *text, const o3rt_model_t *compiled, const o3rt_tensor_t *spec) {
  if (spec->rank == 0) o3rt_text_printf(text, "scalar");
  for (int32_t i = 0; i < spec->rank; ++i) {
    const o3rt_dim_t *dim = &spec->dims[i];
    if (i) o3rt_text_printf(text, "x");
    if (dim->size >= 0)
      o3rt_text_printf(text, "%lld", (long long)dim->size);
    else
      o3rt_text_printf(text, "%s", dim->symbol >= 0 ? compiled->symbols[dim->symbol] : "?");
  }
}

static const char *kind(const subject_t *subject) { return subject->is_input ? "input" : "output"; }

// "input 'data'"
static o3rt_text_t *begin_error(const subject_t *subject) {
  o3rt_text_t *error = &subject->session->error;
  o3rt_text_printf(error, "%s '%s'", kind(subject), subject->spec->name);
  return error;
}

// "input 'data' has shape 1x3x200x224, the model expects Nx3x224x224 (": the caller goes on.
static o3rt_text_t *begin_shape_error(const subject_t *subject) {
  o3rt_text_t *error = begin_error(subject);
  o3rt_text_printf(error, " has shape ");
  print_shape(error, subject->given->shape, subject->given->rank);
  o3rt_text_printf(error, ", the model %s ", subject->is_input ? "expects" : "gives");
  print_expected(error, subject->session->compiled, subject->spec);
  o3rt_text_printf(error, " (");
  return error;
}

// The input that a symbol got its size from: the first one that has it.
static const char *symbol_source(const o3rt_model_t *compiled, int32_t symbol) {
  for (const o3rt_tensor_t *input = compiled->inputs;; ++input)
    for (int32_t i = 0; i < input->rank; ++i)
      if (input->dims[i].size < 0 && input->dims[i].symbol == symbol) return input->name;
}

static bool fail_dim(const subject_t *subject, int32_t index, int64_t expected) {
  const o3rt_model_t *compiled = subject->session->compiled;
  const o3rt_dim_t *dim = &subject->spec->dims[index];
  o3rt_text_t *error = begin_shape_error(subject);
  o3rt_text_printf(error, "dimension %d is %lld, ", index, (long long)subject->given->shape[index]);
  if (dim->size >= 0)
    o3rt_text_printf(error, "expected %lld)", (long long)expected);
  else
    o3rt_text_printf(error, "but %s is %lld in input '%s')", compiled->symbols[dim->symbol],
                     (long long)expected, symbol_source(compiled, dim->symbol));
  return false;
}

// ---- Checks ----

static bool check_count(o3rt_session_t *session, const char *kind, const void *given, int32_t count,
                        int32_t expected) {
  if (count != expected) {
    o3rt_text_printf(&session->error, "%d %s%s given, the model has %d", count, kind,
                     count == 1 ? " was" : "s were", expected);
    return false;
  }
  if (!given && expected > 0) {
    o3rt_text_printf(&session->error, "the array of %ss is NULL", kind);
    return false;
  }
  return true;
}

static bool check_dtype(const subject_t *subject) {
  if ((int32_t)subject->given->dtype == subject->spec->dtype) return true;
  o3rt_text_t *error = begin_error(subject);
  o3rt_text_printf(error, " has type ");
  print_dtype(error, (int32_t)subject->given->dtype);
  o3rt_text_printf(error, ", the model %s ", subject->is_input ? "expects" : "gives");
  print_dtype(error, subject->spec->dtype);
  return false;
}

static bool check_rank(const subject_t *subject) {
  int32_t rank = subject->given->rank, expected = subject->spec->rank;
  if (rank == expected) return true;
  if (rank < 0 || rank > O3_MAX_RANK) {
    o3rt_text_printf(begin_error(subject), " has rank %d, ranks are 0 to %d", rank, O3_MAX_RANK);
    return false;
  }
  o3rt_text_printf(begin_shape_error(subject), "rank %d, expected %d)", rank, expected);
  return false;
}

// Sizes are compared with what is known; an input's unknown ones become known.
static bool check_dims(const subject_t *subject) {
  for (int32_t i = 0; i < subject->spec->rank; ++i) {
    const o3rt_dim_t *dim = &subject->spec->dims[i];
    int64_t size = subject->given->shape[i];
    int64_t *symbol = dim->size < 0 && dim->symbol >= 0 ? &subject->session->symbols[dim->symbol] : NULL;
    int64_t expected = symbol ? *symbol : dim->size;
    if (size < 0) {
      o3rt_text_printf(begin_shape_error(subject), "dimension %d is %lld, sizes are 0 or more)", i,
                       (long long)size);
      return false;
    }
    if (expected >= 0 && size != expected) return fail_dim(subject, i, expected);
    if (symbol && subject->is_input) *symbol = size;
  }
  return true;
}

static bool measure(const subject_t *subject, size_t *bytes) {
  int64_t total = (int64_t)o3rt_dtype_bytes(subject->spec->dtype);
  bool empty = false, overflow = false;
  for (int32_t i = 0; i < subject->spec->rank; ++i) {
    if (subject->given->shape[i] == 0) empty = true;
    if (!overflow) overflow = __builtin_mul_overflow(total, subject->given->shape[i], &total);
  }
  *bytes = empty ? 0 : (size_t)total;
  if (empty || !overflow) return true;
  o3rt_text_printf(begin_shape_error(subject), "more than 2^63 bytes)");
  return false;
}

static bool check_place(const subject_t *subject, size_t bytes) {
  if (bytes == 0) return true;
  if (!o3rt_memory_overlaps(&subject->session->memory, subject->given->data, bytes)) return true;
  o3rt_text_printf(begin_error(subject),
                   " lies in the session's own memory, which this run reuses: copy it first");
  return false;
}

// Memory of a card is the driver's to judge; a model of the CPU reaches none.
static bool check_kind_of_place(const subject_t *subject) {
  const o3rt_model_t *compiled = subject->session->compiled;
  int32_t place = (int32_t)subject->given->place;
  if (place == O3_HOST || (place == O3_DEVICE && compiled->driver)) return true;
  o3rt_text_t *error = begin_error(subject);
  if (place == O3_DEVICE)
    o3rt_text_printf(error, " lies on a device, the model runs on the CPU (%s)", compiled->target);
  else
    o3rt_text_printf(error, " has place %d, places are 0 (host) and 1 (device)", place);
  return false;
}

static bool check_data(const subject_t *subject, size_t bytes) {
  size_t element = o3rt_dtype_bytes(subject->spec->dtype);
  if (bytes > 0 && !subject->given->data) {
    o3rt_text_printf(begin_error(subject), " has no data (NULL), expected %zu bytes", bytes);
    return false;
  }
  if (bytes > 0 && ((uintptr_t)subject->given->data & (element - 1)) != 0) {
    o3rt_text_printf(begin_error(subject), " is at address %p, which is no multiple of its element size, %zu",
                     subject->given->data, element);
    return false;
  }
  return check_place(subject, bytes);
}

// Compiled code reads a boolean as one bit of its byte.
static bool check_booleans(const subject_t *subject, size_t bytes) {
  if (subject->spec->dtype != O3_BOOL || subject->given->place != O3_HOST) return true;
  const uint8_t *values = subject->given->data;
  uint8_t bits = 0;
  for (size_t i = 0; i < bytes; ++i) bits |= values[i];
  if (bits <= 1) return true;
  size_t bad = 0;
  while (values[bad] <= 1) ++bad;
  o3rt_text_printf(begin_error(subject), " holds %d at element %zu, booleans are 0 or 1", values[bad], bad);
  return false;
}

static void fill_memref(const subject_t *subject, o3rt_memref_t *memref) {
  int32_t rank = subject->spec->rank;
  int64_t *sizes = memref->sizes_and_strides, *strides = sizes + rank;
  memref->allocated = memref->aligned = subject->given->data;
  memref->offset = 0;
  int64_t stride = 1;
  for (int32_t i = rank - 1; i >= 0; --i) {
    sizes[i] = subject->given->shape[i];
    strides[i] = stride;
    // Only an empty tensor can overflow here, and no stride of an empty tensor is ever used.
    if (__builtin_mul_overflow(stride, sizes[i], &stride)) stride = 0;
  }
}

bool o3rt_inputs_bind(o3rt_session_t *session, const o3_tensor_t *inputs, int32_t num_inputs) {
  const o3rt_model_t *compiled = session->compiled;
  if (!check_count(session, "input", inputs, num_inputs, compiled->num_inputs)) return false;
  for (int32_t i = 0; i < compiled->num_symbols; ++i) session->symbols[i] = -1;
  for (int32_t i = 0; i < num_inputs; ++i) {
    const subject_t subject = {session, true, &compiled->inputs[i], &inputs[i]};
    size_t bytes;
    if (!check_kind_of_place(&subject) || !check_dtype(&subject) || !check_rank(&subject) ||
        !check_dims(&subject) || !measure(&subject, &bytes) || !check_data(&subject, bytes) ||
        !check_booleans(&subject, bytes))
      return false;
    fill_memref(&subject, session->inputs[i]);
  }
  return true;
}

// Of two outputs in one place one would be lost.
static bool check_apart(const subject_t *subject, const o3_tensor_t *outputs, size_t bytes) {
  const o3rt_model_t *compiled = subject->session->compiled;
  for (const o3_tensor_t *other = outputs; bytes > 0 && other != subject->given; ++other) {
    const o3rt_tensor_t *spec = &compiled->outputs[other - outputs];
    const subject_t earlier = {subject->session, false, spec, other};
    size_t other_bytes;
    if (!other->data || !measure(&earlier, &other_bytes) || other_bytes == 0) continue;
    if (!o3rt_ranges_overlap(subject->given->data, bytes, other->data, other_bytes)) continue;
    o3rt_text_printf(begin_error(subject), " overlaps output '%s' in memory", spec->name);
    return false;
  }
  return true;
}

bool o3rt_outputs_check(o3rt_session_t *session, const o3_tensor_t *outputs, int32_t num_outputs) {
  const o3rt_model_t *compiled = session->compiled;
  if (!check_count(session, "output", outputs, num_outputs, compiled->num_outputs)) return false;
  for (int32_t i = 0; i < num_outputs; ++i) {
    const subject_t subject = {session, false, &compiled->outputs[i], &outputs[i]};
    size_t bytes;
    if (!check_kind_of_place(&subject)) return false;
    if (!outputs[i].data) continue;
    if (!check_dtype(&subject) || !check_rank(&subject) || !check_dims(&subject) ||
        !measure(&subject, &bytes) || !check_place(&subject, bytes) || !check_apart(&subject, outputs, bytes))
      return false;
  }
  return true;
}

static bool fail_result(const subject_t *subject, const int64_t *sizes, int32_t index) {
  o3rt_text_t *error = begin_error(subject);
  o3rt_text_printf(error, " has shape ");
  print_shape(error, subject->given->shape, subject->given->rank);
  o3rt_text_printf(error, ", the result has ");
  print_shape(error, sizes, subject->spec->rank);
  o3rt_text_printf(error, " (dimension %d is %lld, expected %lld)", index,
                   (long long)subject->given->shape[index], (long long)sizes[index]);
  return false;
}

bool o3rt_results_check(o3rt_session_t *session, const o3_tensor_t *outputs) {
  for (int32_t i = 0; i < session->compiled->num_outputs; ++i) {
    const subject_t subject = {session, false, &session->compiled->outputs[i], &outputs[i]};
    const int64_t *sizes = session->outputs[i]->sizes_and_strides;
    if (!outputs[i].data) continue;
    for (int32_t k = 0; k < subject.spec->rank; ++k)
      if (outputs[i].shape[k] != sizes[k]) return fail_result(&subject, sizes, k);
  }
  return true;
}
