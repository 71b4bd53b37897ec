/* Any bytes are tensors or a status. The first byte picks the format. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/float8.h"
#include "tensorio/tensor.h"

static o3_status_t parse(uint8_t format, const uint8_t *data, size_t size, o3_tensor_list_t *list) {
  *list = (o3_tensor_list_t){0};
  if (format == 'z') return o3_tensorio_npz_parse(data, size, list);
  list->items = calloc(1, sizeof *list->items);
  if (!list->items) abort();
  list->count = 1;
  if (format == 'n') return o3_tensorio_npy_parse(data, size, &list->items[0].tensor);
  return o3_tensorio_onnx_parse(data, size, &list->items[0]);
}

/* What was read can be written, and reads back the same; .npy has 8-bit floats as uint8. */
static void round_trip(const o3_tensor_t *tensor) {
  uint8_t *data;
  size_t size, bytes;
  o3_tensor_t back;
  if (o3_tensorio_measure(tensor, NULL, &bytes) || o3_tensorio_npy_print(tensor, &data, &size) ||
      o3_tensorio_npy_parse(data, size, &back)) {
    abort();
  }
  o3_dtype_id_t id;
  const bool is_float8 = o3_dtype_from_onnx((int32_t)tensor->dtype, &id) && o3_float8(id);
  const o3_dtype_t stored = is_float8 ? O3_UINT8 : tensor->dtype;
  const bool same = back.dtype == stored && back.rank == tensor->rank &&
                    !memcmp(back.shape, tensor->shape, sizeof back.shape) &&
                    !memcmp(back.data, tensor->data, bytes);
  if (!same) abort();
  free(data);
  o3_tensorio_tensor_deinit(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  o3_tensor_list_t list;
  if (!size) return 0;
  o3_status_t status = parse(data[0], data + 1, size - 1, &list);
  if (status && !*o3_status_message(status)) abort();
  for (size_t i = 0; !status && i < list.count; ++i) round_trip(&list.items[i].tensor);
  o3_status_destroy(status);
  o3_tensorio_list_deinit(&list);
  return 0;
}
