/* Entries of a row are in the order of channels, then of the window: neighbours read the same input. */
#include "analysis/sparse_storage.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "ir/block_lanes.h"

enum { LANES = O3_BLOCK_LANES, LEAST_LANES = 4 };
enum { MAX_CHANNELS = 1 << 16, MAX_WINDOW = 1 << 7, MAX_GROUP = 32 };

/* ---- Formats ---- */

static bool parse_pair(const char *text, const char *pattern, int64_t *a, int64_t *b) {
  int length = 0;
  long long x, y;
  if (sscanf(text, pattern, &x, &y, &length) != 2 || !length || text[length] || x < 1 || y < 1) return false;
  *a = x;
  *b = y;
  return true;
}

o3_status_t o3_sparse_format_parse(const char *text, o3_sparse_format_t *format) {
  static const struct {
    const char *text;
    o3_sparse_kind_t kind;
  } NAMES[] = {{"auto", O3_SPARSE_AUTO},
               {"dense", O3_SPARSE_DENSE},
               {"csr", O3_SPARSE_CSR},
               {"hybrid", O3_SPARSE_HYBRID}};
  *format = (o3_sparse_format_t){.rows = LANES, .columns = LANES};
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i) {
    if (strcmp(text, NAMES[i].text)) continue;
    format->kind = NAMES[i].kind;
    return NULL;
  }
  format->kind = O3_SPARSE_BSR;
  if (parse_pair(text, "bsr-%lldx%lld%n", &format->rows, &format->columns)) return NULL;
  format->kind = O3_SPARSE_NM;
  bool is_nm = parse_pair(text, "nm-%lld:%lld%n", &format->rows, &format->columns);
  if (is_nm && format->rows <= format->columns) return NULL;
  format->kind = O3_SPARSE_HYBRID;
  if (parse_pair(text, "hybrid-%lldx%lld%n", &format->rows, &format->columns)) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "'%s' is no sparse format", text);
}

/* ---- What there is ---- */

static o3_status_t unsupported(const char *why) { return o3_status_create(O3_STATUS_UNSUPPORTED, "%s", why); }

static int64_t at_least_one(int64_t value) { return value > 0 ? value : 1; }

/* Steps of windows of 1 x 1 leave out what they do not read. */
static int64_t step_of(const o3_sparse_weight_t *w, int i) {
  return w->window[0] * w->window[1] == 1 ? 1 : at_least_one(w->steps[i]);
}

/* The largest power of two up to 16 that divides all three. */
static int64_t common(int64_t a, int64_t b, int64_t c) {
  int64_t size = LANES;
  while (a % size || b % size || c % size) size /= 2;
  return size;
}

static o3_status_t check_weight(const o3_sparse_weight_t *weight) {
  if (!weight->is_f32) return unsupported("sparse kernels compute in f32 only");
  if (weight->channels * weight->group > MAX_CHANNELS)
    return unsupported("sparse kernels take at most 65536 input channels");
  if (weight->window[0] > MAX_WINDOW || weight->window[1] > MAX_WINDOW)
    return unsupported("sparse kernels take windows of at most 128 x 128");
  if (weight->channels == 1 && weight->group > 1)
    return unsupported(
        "a depthwise convolution has one input for each output: nothing is saved by skipping it");
  return NULL;
}

static o3_status_t block_rows(const o3_sparse_weight_t *weight, const o3_sparse_format_t *format,
                              o3_sparse_block_t *block) {
  int64_t group = weight->group, outputs = group > 1 ? weight->outputs / group : LANES;
  int64_t channels = weight->is_matmul || group > 1 ? weight->channels : LANES;
  *block = (o3_sparse_block_t){.lanes = common(format->rows, outputs, LANES),
                               .depth = common(format->columns, channels, LANES)};
  if (block->lanes < LEAST_LANES && group == 1) block->lanes = LANES;
  return block->lanes < LEAST_LANES ? unsupported("outputs of a group are no multiple of 4") : NULL;
}

static o3_status_t csr_rows(const o3_sparse_weight_t *weight, o3_sparse_block_t *block) {
  *block = (o3_sparse_block_t){.lanes = 1, .depth = 1};
  int64_t channels = weight->channels * weight->group;
  for (int i = 0; i < 2; ++i) {
    if ((weight->window[i] - 1) * at_least_one(weight->dilations[i]) > MAX_WINDOW)
      return unsupported("windows of compressed rows reach over at most 128 x 128");
    channels *= step_of(weight, i);
  }
  return channels > MAX_CHANNELS ? unsupported("its steps make more than 65536 channels") : NULL;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* How many of |span| inputs from |first| on may be other than zero. */
static int64_t most_kept(const o3_sparse_block_t *block, int64_t first, int64_t span) {
  int64_t kept = 0, end = first + span;
  for (int64_t at = first; at < end;) {
    int64_t next = least((at / block->of + 1) * block->of, end);
    kept += least(next - at, block->kept);
    at = next;
  }
  return kept;
}

static o3_status_t group_rows(const o3_sparse_weight_t *weight, const o3_sparse_format_t *format,
                              o3_sparse_block_t *block) {
  if (format->rows >= format->columns || format->columns > MAX_GROUP)
    return unsupported("N:M kernels take N below M and M of at most 32");
  if (weight->group > 1 && (weight->channels % LANES || weight->outputs / weight->group % LANES))
    return unsupported("channels of a group are no multiple of 16, which N:M kernels take at once");
  bool halves = LANES / 2 % format->columns == 0;
  *block = (o3_sparse_block_t){
      .lanes = LANES, .span = LANES, .parts = halves ? 2 : 1, .kept = format->rows, .of = format->columns};
  for (int64_t c = 0; c < weight->channels; c += LANES) {
    int64_t kept = most_kept(block, c, LANES);
    if (kept > block->depth) block->depth = kept;
  }
  return NULL;
}

int64_t o3_sparse_columns_of_entry(const o3_sparse_block_t *block) {
  return block->span ? 1 + 2 * block->depth : 1;
}

o3_status_t o3_sparse_supported(const o3_sparse_weight_t *weight, const o3_sparse_format_t *format,
                                o3_sparse_block_t *block) {
  o3_sparse_block_t ignored;
  block = block ? block : &ignored;
  O3_TRY(check_weight(weight));
  if (format->kind == O3_SPARSE_BSR) return block_rows(weight, format, block);
  if (format->kind == O3_SPARSE_CSR) return csr_rows(weight, block);
  if (format->kind == O3_SPARSE_NM) return group_rows(weight, format, block);
  if (format->kind == O3_SPARSE_HYBRID) {
    O3_TRY(csr_rows(weight, block));
    return block_rows(weight, format, block);
  }
  return unsupported("there is no kernel for this format");
}

/* ---- Packing ---- */

typedef struct packer {
  const o3_sparse_weight_t *weight;
  o3_sparse_block_t block;
  o3_sparse_packed_t *packed; /* NULL: entries are counted only */
  int64_t count;
} packer_t;

static float element(const o3_sparse_weight_t *w, int64_t m, int64_t c, int64_t i, int64_t k) {
  return w->data[m * w->strides[0] + c * w->strides[1] + i * w->strides[2] + k * w->strides[3]];
}

/* Inputs of an entry. */
static int64_t span_of(const o3_sparse_block_t *block) { return block->span ? block->span : block->depth; }

static int32_t column(const packer_t *self, int64_t channel, const int64_t *at) {
  int64_t place[2] = {at[0], at[1]};
  bool is_row = self->block.lanes * self->block.depth == 1;
  for (int i = 0; i < 2 && is_row; ++i) {
    int64_t step = step_of(self->weight, i), position = at[i] * at_least_one(self->weight->dilations[i]);
    channel = channel * step + position % step;
    place[i] = position / step;
  }
  return (int32_t)(channel | place[0] << 16 | place[1] << 24);
}

/* The numbers of one output, and their places in |words|, of which each of them has two. */
static void fill_lane(const packer_t *self, int64_t m, int64_t c, const int64_t *at, float *values,
                      int32_t *words) {
  const o3_sparse_block_t *block = &self->block;
  int64_t in_part = block->depth / block->parts, used[2] = {0}, lane = m % block->lanes;
  int64_t num_c = least(block->span, self->weight->channels - c);
  for (int64_t k = 0; k < num_c; ++k) {
    float value = element(self->weight, m, c + k, at[0], at[1]);
    int64_t part = k * block->parts / block->span;
    if (value == 0) continue;
    O3_ASSERT(used[part] < in_part, "o3_sparse_check has counted them");
    int64_t place = part * in_part + used[part]++;
    values[place * block->lanes + lane] = value;
    words[2 * place + lane % 2] |= (int32_t)((uint32_t)k << 4 * (lane / 2));
  }
}

static void fill_entry(const packer_t *self, int64_t m, int64_t c, const int64_t *at) {
  const o3_sparse_weight_t *w = self->weight;
  int64_t lanes = self->block.lanes, depth = self->block.depth;
  float *values = self->packed->values + self->count * depth * lanes;
  int32_t *columns = self->packed->columns + self->count * o3_sparse_columns_of_entry(&self->block);
  int64_t num_m = least(lanes, w->outputs - m), num_c = least(depth, w->channels - c);
  int64_t channel = m / (w->outputs / w->group) * w->channels + c;
  *columns = column(self, channel, at);
  for (int64_t l = 0; l < num_m && self->block.span; ++l) fill_lane(self, m + l, c, at, values, columns + 1);
  for (int64_t k = 0; k < num_c && !self->block.span; ++k) {
    for (int64_t l = 0; l < num_m; ++l) values[k * lanes + l] = element(w, m + l, c + k, at[0], at[1]);
  }
}

static bool is_zero(const packer_t *self, int64_t m, int64_t c, const int64_t *at) {
  const o3_sparse_weight_t *w = self->weight;
  int64_t num_m = least(self->block.lanes, w->outputs - m);
  int64_t num_c = least(span_of(&self->block), w->channels - c);
  for (int64_t l = 0; l < num_m; ++l) {
    for (int64_t k = 0; k < num_c; ++k) {
      if (element(w, m + l, c + k, at[0], at[1]) != 0) return false;
    }
  }
  return true;
}

static void visit_entry(packer_t *self, int64_t m, int64_t c, const int64_t *at) {
  if (is_zero(self, m, c, at)) return;
  if (self->packed) fill_entry(self, m, c, at);
  ++self->count;
}

static void visit_row(packer_t *self, int64_t m) {
  const o3_sparse_weight_t *w = self->weight;
  for (int64_t c = 0; c < w->channels; c += span_of(&self->block)) {
    for (int64_t i = 0; i < w->window[0]; ++i) {
      for (int64_t k = 0; k < w->window[1]; ++k) visit_entry(self, m, c, (int64_t[]){i, k});
    }
  }
}

/* Blocks of outputs: those of convolutions and matrices are padded to whole 16, compressed rows are not. */
static int64_t count_rows(const o3_sparse_weight_t *weight, const o3_sparse_block_t *block) {
  if (block->lanes == 1) return weight->outputs;
  return (weight->outputs + LANES - 1) / LANES * LANES / block->lanes;
}

static int64_t visit(packer_t *self) {
  int64_t rows = count_rows(self->weight, &self->block);
  for (int64_t r = 0; r < rows; ++r) {
    if (self->packed) self->packed->rows[r] = (int32_t)self->count;
    int64_t m = r * self->block.lanes;
    if (m < self->weight->outputs) visit_row(self, m);
  }
  if (self->packed) self->packed->rows[rows] = (int32_t)self->count;
  return self->count ? self->count : 1;
}

int64_t o3_sparse_count(const o3_sparse_weight_t *weight, const o3_sparse_block_t *block) {
  packer_t self = {.weight = weight, .block = *block};
  return visit(&self);
}

/* ---- Parts ---- */

/* Outputs of a matrix that a tile of compressed rows takes at once, and that a part has. */
enum { MATRIX_OUTPUTS = LANES, MATRIX_PART = 4 * LANES };

/* Rows that no part divides. */
static int64_t rows_of_unit(const o3_sparse_weight_t *weight, const o3_sparse_block_t *block) {
  return block->lanes > 1 ? LANES / block->lanes : weight->is_matmul ? MATRIX_OUTPUTS : 1;
}

static int64_t count_parts(const o3_sparse_weight_t *weight, const o3_sparse_block_t *block) {
  int64_t rows = count_rows(weight, block);
  if (block->lanes > 1) return rows * block->lanes / LANES;
  return weight->is_matmul ? (rows + MATRIX_PART - 1) / MATRIX_PART : rows;
}

int64_t o3_sparse_rows_size(const o3_sparse_weight_t *weight, const o3_sparse_block_t *block) {
  return count_rows(weight, block) + 1 + count_parts(weight, block) + 1;
}

/* Vectors multiplied for each position up to row |row|; outputs are stored whether they have entries or not.
 */
static int64_t work_before(const o3_sparse_packed_t *packed, const o3_sparse_block_t *block, int64_t row) {
  enum { STORE = 3 };
  int64_t entry = block->lanes > 1 ? block->depth * block->lanes : 1,
          lanes = block->lanes > 1 ? block->lanes : 1;
  return packed->rows[row] * entry + row * lanes * STORE;
}

/* A part begins where its share of all work does, at the next whole unit. */
static void fill_parts(const o3_sparse_weight_t *weight, const o3_sparse_block_t *block,
                       o3_sparse_packed_t *packed) {
  int64_t unit = rows_of_unit(weight, block), parts = count_parts(weight, block), at = 0;
  double all = (double)work_before(packed, block, packed->num_rows);
  int32_t *starts = packed->rows + packed->num_rows + 1;
  for (int64_t p = 0; p <= parts; ++p) {
    double share = all * (double)p / (double)parts;
    while (at < packed->num_rows && (double)work_before(packed, block, at) < share)
      at = least(at + unit, packed->num_rows);
    starts[p] = (int32_t)(p == parts ? packed->num_rows : at);
    if (block->lanes > 1) starts[p] /= (int32_t)unit;
  }
}

/* ---- Checks ---- */

/* Numbers other than zero of output |m| in the group of inputs from |c| on. */
static int64_t count_kept(const o3_sparse_weight_t *w, int64_t of, int64_t m, int64_t c, const int64_t *at) {
  int64_t count = 0;
  for (int64_t k = c; k < least(c + of, w->channels); ++k) count += element(w, m, k, at[0], at[1]) != 0;
  return count;
}

static o3_status_t check_groups(const o3_sparse_weight_t *w, const o3_sparse_block_t *block,
                                const int64_t *at) {
  for (int64_t m = 0; m < w->outputs; ++m) {
    for (int64_t c = 0; c < w->channels; c += block->of) {
      int64_t kept = count_kept(w, block->of, m, c, at);
      if (kept <= block->kept) continue;
      return o3_status_create(
          O3_STATUS_UNSUPPORTED,
          "output %lld has %lld numbers other than zero among the %lld inputs from %lld on, at most "
          "%lld are stored",
          (long long)m, (long long)kept, (long long)block->of, (long long)c, (long long)block->kept);
    }
  }
  return NULL;
}

o3_status_t o3_sparse_check(const o3_sparse_weight_t *weight, const o3_sparse_block_t *block) {
  for (int64_t i = 0; block->span && i < weight->window[0]; ++i) {
    for (int64_t k = 0; k < weight->window[1]; ++k) O3_TRY(check_groups(weight, block, (int64_t[]){i, k}));
  }
  return NULL;
}

void o3_sparse_pack(const o3_sparse_weight_t *weight, const o3_sparse_block_t *block,
                    o3_sparse_packed_t *packed) {
  packer_t self = {.weight = weight, .block = *block, .packed = packed};
  packed->columns[0] = 0;
  packed->num_rows = count_rows(weight, block);
  packed->num_entries = visit(&self);
  int64_t size = o3_sparse_columns_of_entry(block), last = packed->num_entries * size;
  packed->columns[last] = packed->columns[last - size] ^ 1;
  fill_parts(weight, block, packed);
}
