/* What a product is called with, and which ones TMA takes. */
#include "target/nvptx/gemm_writer.h"

/* ---- Arguments ---- */

/* Where the last window begins, from the last position of the image. */
static int64_t last_corner(const o3_gemm_window_t *w, int i) {
  return (w->outputs[i] - 1) * w->steps[i] - w->lows[i] - (w->sizes[i] - 1);
}

static o3_gpu_tensor_map_t matrix_map(const o3_gemm_t *g, o3_gpu_element_t element, const int64_t sizes[2],
                                      int64_t pitch, const int64_t batch[2]) {
  int64_t bytes = o3_gpu_element_info(element)->bytes;
  o3_gpu_tensor_map_t map = {
      .element = element,
      .rank = 4,
      .sizes = {sizes[0], sizes[1], 1, 1},
      .strides = {0, pitch * bytes, sizes[1] * pitch * bytes, sizes[1] * pitch * bytes},
      .swizzle = O3_GEMM_ROW_BYTES};
  for (int i = 0; i < 2; ++i) {
    if (!batch[i]) continue;
    map.sizes[3 - i] = g->batch[i];
    map.strides[3 - i] = batch[i] * bytes;
  }
  return map;
}

/* Of rows by |columns| elements, A or D. */
static o3_gpu_tensor_map_t row_map(const o3_gemm_t *g, o3_gpu_element_t element, int64_t columns,
                                   int64_t pitch, const int64_t batch[2]) {
  enum { ROWS = 1 };
  bool told = g->rows_at_run_time;
  int64_t rows = told ? g->rows_of_batch : g->m;
  o3_gpu_tensor_map_t map = matrix_map(g, element, (int64_t[]){columns, rows}, pitch, batch);
  if (told) map.told = ROWS;
  return map;
}

static void add_map(o3_gpu_kernel_t *kernel, int buffer, o3_gpu_tensor_map_t map, int columns, int rows) {
  map.box[0] = columns;
  map.box[1] = rows;
  map.box[2] = map.box[3] = 1;
  o3_gpu_kernel_add_map(kernel, buffer, &map);
}

/* Of a tap: by rows of outputs for each channel, in panels; or by columns, those of a row of taps side by
 * side. */
static void add_window_weights(const o3_gemm_t *g, const o3_gemm_schedule_t *s, o3_gpu_kernel_t *kernel) {
  const o3_gemm_window_t *w = g->window;
  int64_t bytes = o3_gpu_element_info(g->element)->bytes;
  if (g->b_by_rows) {
    const int64_t taps[2] = {0, w->channels * g->b_pitch};
    o3_gpu_tensor_map_t weights = matrix_map(g, g->element, (int64_t[]){g->n, w->channels}, g->b_pitch, taps);
    weights.sizes[2] = w->taps[0] * w->taps[1];
    add_map(kernel, 1, weights, 64, O3_GEMM_BLOCK_K);
    return;
  }
  const o3_gpu_tensor_map_t weights = {
      .element = g->element,
      .rank = 4,
      .sizes = {w->channels, g->n, w->taps[0], w->taps[1]},
      .strides = {0, g->b_pitch * bytes, w->channels * bytes, g->n * g->b_pitch * bytes},
      .swizzle = O3_GEMM_ROW_BYTES};
  add_map(kernel, 1, weights, o3_gemm_block_k(g), s->columns);
}

static void add_windows(const o3_gemm_t *g, const o3_gemm_schedule_t *s, o3_gpu_kernel_t *kernel) {
  const o3_gemm_window_t *w = g->window;
  int64_t bytes = o3_gpu_element_info(g->element)->bytes;
  o3_gpu_tensor_map_t map = {.element = g->element,
                             .rank = 4,
                             .sizes = {w->channels},
                             .box = {o3_gemm_block_k(g), o3_gemm_tile_rows(s)},
                             .swizzle = O3_GEMM_ROW_BYTES,
                             .windows = true};
  for (int i = 0; i < 3; ++i) {
    map.sizes[1 + i] = w->sizes[i];
    map.strides[1 + i] = w->strides[i] * bytes;
  }
  for (int i = 0; i < 2; ++i) {
    map.lows[i] = (int32_t)-w->lows[i];
    map.highs[i] = (int32_t)last_corner(w, i);
    map.steps[i] = (int32_t)w->steps[i];
  }
  o3_gpu_kernel_add_map(kernel, 0, &map);
  add_window_weights(g, s, kernel);
}

static void add_factors(const o3_gemm_t *g, const o3_gemm_schedule_t *s, o3_gpu_kernel_t *kernel) {
  if (g->window) {
    add_windows(g, s, kernel);
    return;
  }
  add_map(kernel, 0, row_map(g, g->element, g->k, g->a_pitch, g->a_batch), o3_gemm_block_k(g),
          o3_gemm_tile_rows(s));
  if (g->b_by_rows) {
    add_map(kernel, 1, matrix_map(g, g->element, (int64_t[]){g->n, g->k}, g->b_pitch, g->b_batch), 64,
            O3_GEMM_BLOCK_K);
  } else {
    add_map(kernel, 1, matrix_map(g, g->element, (int64_t[]){g->k, g->n}, g->b_pitch, g->b_batch),
            o3_gemm_block_k(g), s->columns);
  }
}

void o3_gemm_add_arguments(const o3_gemm_t *g, const o3_gemm_schedule_t *s, o3_gpu_kernel_t *kernel) {
  int out = 2 + g->num_extras;
  add_factors(g, s, kernel);
  for (int i = 0; i < g->num_extras; ++i) o3_gpu_kernel_add_pointer(kernel, 2 + i);
  if (s->store_by_tensor) {
    add_map(kernel, out, row_map(g, g->out, g->n, g->d_pitch, g->d_batch), 64, O3_GEMM_ROWS);
  } else {
    o3_gpu_kernel_add_pointer(kernel, out);
  }
  if (s->streams) o3_gpu_kernel_add_scratch(kernel, o3_gemm_stream_bytes(s));
  if (g->batches_at_run_time) o3_gpu_kernel_add_rows(kernel, out, g->d_batch[0]);
  if (g->rows_at_run_time) o3_gpu_kernel_add_rows(kernel, out, g->d_pitch);
}

/* Numbers of tiles and places of elements have 32 bits. */
int64_t o3_gemm_most_told(const o3_gemm_t *g) {
  enum { TILE = 2 * O3_GEMM_ROWS }; /* places are computed of whole tiles */
  int dim = g->rows_at_run_time ? O3_GEMM_ROW : O3_GEMM_OUTER;
  int64_t largest = g->rows_at_run_time ? g->d_pitch : g->d_batch[0];
  for (int i = 0; i < g->num_extras; ++i)
    if (g->extras[i].strides[dim] > largest) largest = g->extras[i].strides[dim];
  return INT32_MAX / largest - (g->rows_at_run_time ? TILE : 1);
}

/* ---- What is refused ---- */

enum { ALIGNMENT = 8 }; /* elements of two bytes or more */

/* The limits of im2col maps of two spatial dimensions. */
static const char *refuse_window(const o3_gemm_window_t *w) {
  enum { CORNER = 127, STEP = 8, OFFSET = 255 };
  if (w->channels % ALIGNMENT) return "the channels are no multiple of 8";
  for (int i = 0; i < 3; ++i) {
    if (w->strides[i] % ALIGNMENT || w->strides[i] < 1)
      return "a position of the image is at an address that TMA does not take";
  }
  for (int i = 0; i < 2; ++i) {
    int64_t last = last_corner(w, i);
    if (w->lows[i] < 0 || w->lows[i] > CORNER || last > CORNER || last < -CORNER)
      return "the windows reach too far beyond the image, or end too far before its end";
    if (w->steps[i] > STEP || (w->taps[i] - 1) * w->dilations[i] > OFFSET)
      return "the steps or the taps of a window are too far apart";
  }
  return NULL;
}

/* Of A and B. */
static const char *refuse_addresses(const o3_gemm_t *g) {
  int64_t alignment = o3_gpu_element_info(g->element)->bytes == 1 ? 16 : ALIGNMENT;
  if ((!g->window && g->a_pitch % alignment) || g->b_pitch % alignment)
    return "a row starts at an address that TMA does not take";
  for (int i = 0; i < 2; ++i) {
    if (g->a_batch[i] % alignment || g->b_batch[i] % alignment)
      return "a matrix starts at an address that TMA does not take";
  }
  return NULL;
}

const char *o3_gemm_refuse(const o3_gemm_t *g) {
  const char *why = g->window ? refuse_window(g->window) : NULL;
  if (why) return why;
  if (g->rows_at_run_time) return "its rows are known only at run time";
  if (g->element == O3_GPU_F32) return "the warpgroup product takes f16, bf16 and, if it may, tf32";
  if (o3_gpu_element_info(g->element)->bytes != 2 && g->b_by_rows)
    return "the warpgroup product takes tf32 and 8-bit floats where B is column-major";
  if (o3_gpu_element_info(g->element)->bytes == 1 && g->window) return "windows are not of 8-bit floats";
  if (g->n % ALIGNMENT || g->k % ALIGNMENT) return "the sizes n and k are no multiples of 8";
  why = refuse_addresses(g);
  if (why) return why;
  if (g->d_pitch % ALIGNMENT || g->d_batch[0] % ALIGNMENT || g->d_batch[1] % ALIGNMENT)
    return "a row of the result starts at an address that TMA does not take";
  if (g->m < 1 || g->n < 1 || g->k < 1 || o3_gemm_batches(g) < 1) return "a size is zero";
  if (o3_gemm_batches(g) * g->m * g->n > INT32_MAX) return "the result has more than 2^31 elements";
  return NULL;
}
