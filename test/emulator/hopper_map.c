#include "hopper_map.h"

#include <stdio.h>
#include <string.h>

#include "emu_element.h"

enum { MAGIC = 0x6f336d70, LINE = 16, MAX_BOX = 256, MAX_PIXELS = 1024, MAX_STEP = 8, TYPES = 13 };

// CUtensorMapDataType: bytes of an element; 0 for what is not emulated. TFLOAT32 is rounded on its way.
enum { TFLOAT32 = 11 };
static const uint8_t kBytes[TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 0, 4, 0};

typedef struct map {
  uint32_t magic;
  uint8_t type, rank, swizzle, windows;
  uint64_t address;
  uint64_t strides[EMU_MAP_RANK];  // bytes
  uint32_t sizes[EMU_MAP_RANK];
  uint16_t box[EMU_MAP_RANK];  // of windows: channels, positions
  int16_t lows[2], highs[2];
  uint8_t steps[2];  // of windows, along x and y
} map_t;
_Static_assert(sizeof(map_t) <= EMU_MAP_BYTES, "a map is opaque to the code, but has its size");

static map_t map_at(const void *map) {
  map_t m;
  memcpy(&m, map, sizeof m);
  return m;
}

static int refuse(const char *why, long long value) {
  fprintf(stderr, "emulator: a tensor map is refused: %s (%lld)\n", why, value);
  return 1;
}

// ---- Encoding ----

static int refuse_tensor(const void *map, const fake_cuda_map_t *g) {
  if ((uintptr_t)map % 64)
    return refuse("the map's own address is no multiple of 64", (long long)(uintptr_t)map);
  if (g->type < 0 || g->type >= TYPES || !kBytes[g->type]) return refuse("the type", g->type);
  if (g->rank < 1 || g->rank > EMU_MAP_RANK) return refuse("the rank", g->rank);
  if ((uintptr_t)g->address % LINE)
    return refuse("the address is no multiple of 16", (long long)(uintptr_t)g->address);
  for (unsigned i = 0; i < g->rank; ++i) {
    if (g->sizes[i] < 1 || g->sizes[i] > UINT32_MAX) return refuse("a size", (long long)g->sizes[i]);
    if (i && (g->strides[i - 1] % LINE || g->strides[i - 1] >> 40))
      return refuse("a stride", (long long)g->strides[i - 1]);
  }
  return 0;
}

static int refuse_line(const map_t *m, const fake_cuda_map_t *g) {
  int bytes = m->box[0] * kBytes[m->type];
  if (g->interleave || g->fill)
    return refuse("interleaving and filling with NaN are not emulated", g->interleave);
  if (g->swizzle < EMU_SWIZZLE_NONE || g->swizzle > EMU_SWIZZLE_128) return refuse("the swizzle", g->swizzle);
  if (bytes % LINE) return refuse("bytes of a box's line are no multiple of 16", bytes);
  if (g->swizzle && bytes > LINE << g->swizzle)
    return refuse("a box's line is longer than the swizzle", bytes);
  return 0;
}

static int encode_box(map_t *m, const fake_cuda_map_t *g) {
  for (unsigned i = 0; i < g->rank; ++i) {
    if (g->box[i] < 1 || g->box[i] > MAX_BOX) return refuse("a size of the box", g->box[i]);
    if (g->steps[i] != 1) return refuse("steps of boxes are not emulated", g->steps[i]);
    m->box[i] = (uint16_t)g->box[i];
  }
  return 0;
}

// Of two spatial dimensions; the box is some channels of some positions.
static int encode_windows(map_t *m, const fake_cuda_map_t *g) {
  enum { RANK = 4, CORNER = 128 };
  if (g->rank != RANK) return refuse("windows of a rank that is not emulated", g->rank);
  if (g->box[0] < 1 || g->box[0] > MAX_BOX) return refuse("channels", g->box[0]);
  if (g->box[1] < 1 || g->box[1] > MAX_PIXELS) return refuse("positions", g->box[1]);
  if (g->steps[0] != 1 || g->steps[3] != 1)
    return refuse("steps of channels and images are not emulated", g->steps[0]);
  for (int i = 0; i < 2; ++i) {
    if (g->lower[i] < -CORNER || g->lower[i] >= CORNER) return refuse("a lower corner", g->lower[i]);
    if (g->upper[i] < -CORNER || g->upper[i] >= CORNER) return refuse("an upper corner", g->upper[i]);
    if (g->steps[1 + i] < 1 || g->steps[1 + i] > MAX_STEP) return refuse("a step", g->steps[1 + i]);
    m->lows[i] = (int16_t)g->lower[i];
    m->highs[i] = (int16_t)g->upper[i];
    m->steps[i] = (uint8_t)g->steps[1 + i];
  }
  m->windows = 1;
  for (int i = 0; i < RANK; ++i) m->box[i] = (uint16_t)(i < 2 ? g->box[i] : 1);
  return 0;
}

int emu_map_encode(void *map, const fake_cuda_map_t *g) {
  int code = refuse_tensor(map, g);
  if (code) return code;
  map_t m = {.magic = MAGIC,
             .type = (uint8_t)g->type,
             .rank = (uint8_t)g->rank,
             .swizzle = (uint8_t)g->swizzle,
             .address = (uintptr_t)g->address};
  for (unsigned i = 0; i < g->rank; ++i) {
    m.sizes[i] = (uint32_t)g->sizes[i];
    m.strides[i] = i ? g->strides[i - 1] : kBytes[g->type];
  }
  code = g->lower ? encode_windows(&m, g) : encode_box(&m, g);
  if (!code) code = refuse_line(&m, g);
  if (code) return code;
  memset(map, 0, EMU_MAP_BYTES);
  memcpy(map, &m, sizeof m);
  return 0;
}

const char *emu_map_refuse(const void *map, bool windows, int rank) {
  const map_t m = map_at(map);
  if (m.magic != MAGIC) return "the tensor map was not encoded";
  if (m.windows != windows)
    return windows ? "the tensor map is not of windows" : "the tensor map is of windows";
  if (m.rank != rank) return "the tensor map has another rank";
  return NULL;
}

static size_t elements(const map_t *m) {
  size_t count = 1;
  for (int i = 0; i < m->rank; ++i) count *= m->box[i];
  return count;
}

size_t emu_map_bytes(const void *map) {
  const map_t m = map_at(map);
  return elements(&m) * kBytes[m.type];
}

// ---- Copies: a line of a box at a time, in pieces of 16 bytes ----

enum { MAX_LINE = MAX_BOX * 8 };

static int line_bytes(const map_t *m) { return m->box[0] * kBytes[m->type]; }
static size_t lines(const map_t *m) { return elements(m) / m->box[0]; }

// Where the line of |at| begins in global memory, for its coordinate 0; NULL outside of the tensor.
static char *line_at(const map_t *m, const int *at) {
  uint64_t address = m->address;
  for (int i = 1; i < m->rank; ++i) {
    if (at[i] < 0 || (uint32_t)at[i] >= m->sizes[i]) return NULL;
    address += (uint64_t)at[i] * m->strides[i];
  }
  return (char *)(uintptr_t)address;
}

// Elements of a line from coordinate |start| that are in the tensor: from range[0] up to range[1].
static void inside(const map_t *m, int start, int64_t range[2]) {
  int64_t behind = (int64_t)m->sizes[0] - start;
  range[0] = start < 0 ? -(int64_t)start : 0;
  range[1] = behind < m->box[0] ? behind : m->box[0];
  if (range[1] < range[0]) range[1] = range[0];
}

static char *piece_at(const map_t *m, const char *shared, size_t line, int byte) {
  uintptr_t address = (uintptr_t)shared + line * (size_t)line_bytes(m) + (size_t)byte;
  return (char *)emu_swizzled(address, (emu_swizzle_t)m->swizzle);
}

static void round_to_tf32(char *at) {
  uint32_t bits;
  memcpy(&bits, at, sizeof bits);
  bits = emu_tf32_rounded(bits);
  memcpy(at, &bits, sizeof bits);
}

static void load_line(const map_t *m, char *shared, size_t line, const int *at) {
  char values[MAX_LINE] = {0};
  const char *from = line_at(m, at);
  int64_t range[2], bytes = kBytes[m->type];
  inside(m, at[0], range);
  if (from)
    memcpy(values + range[0] * bytes, from + (at[0] + range[0]) * bytes,
           (size_t)((range[1] - range[0]) * bytes));
  for (int i = 0; m->type == TFLOAT32 && i < line_bytes(m); i += 4) round_to_tf32(values + i);
  for (int i = 0; i < line_bytes(m); i += LINE) memcpy(piece_at(m, shared, line, i), values + i, LINE);
}

static void store_line(const map_t *m, const char *shared, size_t line, const int *at) {
  char values[MAX_LINE], *to = line_at(m, at);
  int64_t range[2], bytes = kBytes[m->type];
  inside(m, at[0], range);
  for (int i = 0; i < line_bytes(m); i += LINE) memcpy(values + i, piece_at(m, shared, line, i), LINE);
  if (to)
    memcpy(to + (at[0] + range[0]) * bytes, values + range[0] * bytes,
           (size_t)((range[1] - range[0]) * bytes));
}

// Coordinates of the box's line |number|.
static void coordinates(const map_t *m, const int *start, size_t number, int *at) {
  at[0] = start[0];
  for (int i = 1; i < m->rank; ++i) {
    at[i] = start[i] + (int)(number % m->box[i]);
    number /= m->box[i];
  }
}

void emu_map_load(const void *map, char *shared, const int *start) {
  const map_t m = map_at(map);
  int at[EMU_MAP_RANK];
  for (size_t i = 0; i < lines(&m); ++i) {
    coordinates(&m, start, i, at);
    load_line(&m, shared, i, at);
  }
}

void emu_map_store(const void *map, const char *shared, const int *start) {
  const map_t m = map_at(map);
  int at[EMU_MAP_RANK];
  for (size_t i = 0; i < lines(&m); ++i) {
    coordinates(&m, start, i, at);
    store_line(&m, shared, i, at);
  }
}

// The next first position of a window: along x, then y, then the images.
static void next_window(const map_t *m, int *at) {
  for (int i = 0; i < 2; ++i) {
    at[1 + i] += m->steps[i];
    if (at[1 + i] <= (int)m->sizes[1 + i] - 1 + m->highs[i]) return;
    at[1 + i] = m->lows[i];
  }
  ++at[3];
}

void emu_map_load_windows(const void *map, char *shared, const int *start, const int *offsets) {
  const map_t m = map_at(map);
  int window[4];
  memcpy(window, start, sizeof window);
  for (size_t p = 0; p < m.box[1]; ++p, next_window(&m, window)) {
    int at[4] = {start[0], window[1] + offsets[0], window[2] + offsets[1], window[3]};
    load_line(&m, shared, p, at);
  }
}
