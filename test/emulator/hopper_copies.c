#include "hopper_copies.h"

#include <stdlib.h>
#include <string.h>

#include "hopper_map.h"

enum { MAX_LOADS = 256, MAX_STORES = 64, MAX_BARRIERS = 128, PIECE = 16, WINDOW = EMU_SHARED_WINDOW };

typedef struct copy {
  char *shared, *barrier;
  const void *map;
  int coordinates[EMU_MAP_RANK], offsets[2];
  bool windows, done;
  int thread;
  uint64_t group;  // of the thread's stores
} copy_t;

// A barrier that was initialised without a fence behind it.
typedef struct started {
  char *at;
  int thread;
} started_t;

typedef struct copies {
  started_t barriers[MAX_BARRIERS];
  int num_barriers;
  copy_t loads[MAX_LOADS], stores[MAX_STORES];
  int num_loads, num_stores;
  uint64_t groups[EMU_MAX_THREADS];  // that each thread committed
  uint16_t writers[WINDOW / PIECE];  // thread + 1 that wrote there without a fence behind it
  int unfenced[EMU_MAX_THREADS];     // pieces of each thread
} copies_t;

static copies_t *blocks[EMU_MAX_CLUSTER];

static copies_t *running(void) { return blocks[emu_self()->warp->block->rank]; }

void emu_copies_begin(const emu_block_t *block) {
  free(blocks[block->rank]);
  blocks[block->rank] = calloc(1, sizeof(copies_t));
  if (!blocks[block->rank]) emu_fail("out of memory");
}

void emu_copies_end(const emu_block_t *block) {
  const copies_t *copies = blocks[block->rank];
  if (copies->num_loads)
    emu_fail("block %u ends while %d tensor loads run", block->index[0], copies->num_loads);
  if (copies->num_stores)
    emu_fail("block %u ends while %d tensor stores read its memory", block->index[0], copies->num_stores);
}

// ---- Barriers ----

typedef struct barrier {
  int64_t lacking, each, bytes;
  int phase, ready, fenced;
} barrier_t;

enum { COUNT_BITS = 20, BYTES_BITS = 21 };
#define MASK(bits) ((UINT64_C(1) << (bits)) - 1)

static barrier_t unpack(const char *at) {
  uint64_t word;
  memcpy(&word, at, sizeof word);
  barrier_t b = {.lacking = (int64_t)(word & MASK(COUNT_BITS)),
                 .each = (int64_t)(word >> COUNT_BITS & MASK(COUNT_BITS)),
                 .bytes = (int64_t)(word >> 2 * COUNT_BITS & MASK(BYTES_BITS)),
                 .phase = (int)(word >> 61 & 1),
                 .ready = (int)(word >> 62 & 1),
                 .fenced = (int)(word >> 63)};
  if (b.bytes >> (BYTES_BITS - 1)) b.bytes -= INT64_C(1) << BYTES_BITS;
  return b;
}

static void pack(char *at, const barrier_t *b) {
  uint64_t word = (uint64_t)b->lacking | (uint64_t)b->each << COUNT_BITS |
                  ((uint64_t)b->bytes & MASK(BYTES_BITS)) << 2 * COUNT_BITS | (uint64_t)b->phase << 61 |
                  (uint64_t)b->ready << 62 | (uint64_t)b->fenced << 63;
  memcpy(at, &word, sizeof word);
}

static barrier_t read_barrier(const char *at, const char *what) {
  barrier_t b = unpack(at);
  if ((uintptr_t)at % 8) emu_fail("%s: a barrier is at no multiple of 8", what);
  if (!b.ready || b.each == 0 || b.lacking > b.each) emu_fail("%s: what is there is no barrier", what);
  return b;
}

void emu_bar_init(char *at, uint32_t count) {
  copies_t *copies = running();
  if (count < 1 || count > MASK(COUNT_BITS)) emu_fail("mbarrier.init: a count of %u", count);
  if (copies->num_barriers == MAX_BARRIERS) emu_fail("more than %d barriers", MAX_BARRIERS);
  const barrier_t b = {.lacking = count, .each = count, .ready = 1};
  pack(at, &b);
  copies->barriers[copies->num_barriers++] = (started_t){at, emu_self()->number};
}

void emu_bar_fence(void) {
  copies_t *copies = running();
  int left = 0;
  for (int i = 0; i < copies->num_barriers; ++i) {
    if (copies->barriers[i].thread != emu_self()->number) {
      copies->barriers[left++] = copies->barriers[i];
      continue;
    }
    barrier_t b = read_barrier(copies->barriers[i].at, "fence.mbarrier_init");
    b.fenced = 1;
    pack(copies->barriers[i].at, &b);
  }
  copies->num_barriers = left;
}

static void settle(char *at, barrier_t *b) {
  if (b->lacking == 0 && b->bytes == 0) {
    b->phase ^= 1;
    b->lacking = b->each;
  }
  pack(at, b);
  emu_progress();
}

void emu_bar_arrive(char *at, uint32_t bytes) {
  barrier_t b = read_barrier(at, "mbarrier.arrive");
  if (b.lacking == 0) emu_fail("mbarrier.arrive: the phase of the barrier lacks no arrival");
  b.bytes += bytes;
  if (b.bytes >= INT64_C(1) << (BYTES_BITS - 1))
    emu_fail("mbarrier: a phase of %lld bytes", (long long)b.bytes);
  --b.lacking;
  settle(at, &b);
}

static void load(const copy_t *c) {
  barrier_t b = read_barrier(c->barrier, "cp.async.bulk.tensor");
  if (c->windows)
    emu_map_load_windows(c->map, c->shared, c->coordinates, c->offsets);
  else
    emu_map_load(c->map, c->shared, c->coordinates);
  b.bytes -= (int64_t)emu_map_bytes(c->map);
  settle(c->barrier, &b);
}

// All that |barrier| counts.
static void load_late(const char *barrier) {
  copies_t *copies = running();
  int left = 0;
  for (int i = 0; i < copies->num_loads; ++i) {
    if (copies->loads[i].barrier == barrier)
      load(&copies->loads[i]);
    else
      copies->loads[left++] = copies->loads[i];
  }
  copies->num_loads = left;
}

bool emu_bar_try(char *at, uint32_t parity) {
  barrier_t b = read_barrier(at, "mbarrier.try_wait");
  if (b.phase != (int)parity) return true;
  if (b.lacking == 0) load_late(at);
  if (unpack(at).phase != (int)parity) return true;
  emu_yield();
  return false;
}

// ---- What threads wrote themselves ----

static size_t piece_of(const char *shared) { return (uintptr_t)shared % WINDOW / PIECE; }

void emu_copies_wrote(const char *shared, int thread) {
  copies_t *copies = running();
  uint16_t *writer = &copies->writers[piece_of(shared)];
  if (*writer) --copies->unfenced[*writer - 1];
  *writer = (uint16_t)(thread + 1);
  ++copies->unfenced[thread];
}

void emu_copies_fence(void) {
  copies_t *copies = running();
  int thread = emu_self()->number;
  for (size_t i = 0; i < WINDOW / PIECE && copies->unfenced[thread]; ++i) {
    if (copies->writers[i] != thread + 1) continue;
    copies->writers[i] = 0;
    --copies->unfenced[thread];
  }
}

static void check_fences(const char *shared, int bytes, const char *reader) {
  const copies_t *copies = running();
  for (int i = 0; i < bytes; i += PIECE) {
    int writer = copies->writers[piece_of(shared + i)];
    if (writer)
      emu_fail("%s reads shared memory that thread %d wrote without fence.proxy.async", reader, writer - 1);
  }
}

// ---- Copies ----

static copy_t copy_of(char *shared, const void *map, int rank, const int *coordinates, const int *offsets) {
  enum { ALIGNMENT = 128 };
  copy_t c = {.shared = shared, .map = map, .thread = emu_self()->number, .windows = offsets != NULL};
  const char *why = emu_map_refuse(map, c.windows, rank);
  if (why) emu_fail("cp.async.bulk.tensor: %s", why);
  if ((uintptr_t)shared % ALIGNMENT) emu_fail("cp.async.bulk.tensor: shared memory at no multiple of 128");
  memcpy(c.coordinates, coordinates, (size_t)rank * sizeof *coordinates);
  if (offsets) memcpy(c.offsets, offsets, sizeof c.offsets);
  return c;
}

void emu_copies_load(char *shared, char *barrier, const void *map, int rank, const int *coordinates,
                     const int *offsets) {
  copies_t *copies = running();
  copy_t c = copy_of(shared, map, rank, coordinates, offsets);
  c.barrier = barrier;
  if (!read_barrier(barrier, "cp.async.bulk.tensor").fenced)
    emu_fail("cp.async.bulk.tensor: its barrier was initialised without fence.mbarrier_init");
  if (copies->num_loads == MAX_LOADS) emu_fail("more than %d loads run", MAX_LOADS);
  if (emu_random() % 2)
    load(&c);
  else
    copies->loads[copies->num_loads++] = c;
}

static void store(const copy_t *c) { emu_map_store(c->map, c->shared, c->coordinates); }

void emu_copies_store(const char *shared, const void *map, int rank, const int *coordinates) {
  copies_t *copies = running();
  copy_t c = copy_of((char *)(uintptr_t)shared, map, rank, coordinates, NULL);
  check_fences(shared, (int)emu_map_bytes(map), "cp.async.bulk.tensor");
  if (copies->num_stores == MAX_STORES) emu_fail("more than %d stores run", MAX_STORES);
  c.group = copies->groups[c.thread];
  if (emu_random() % 2)
    store(&c);
  else
    copies->stores[copies->num_stores++] = c;
}

void emu_copies_commit(void) { ++running()->groups[emu_self()->number]; }

void emu_copies_wait(int groups) {
  copies_t *copies = running();
  int thread = emu_self()->number, left = 0;
  for (int i = 0; i < copies->num_stores; ++i) {
    const copy_t *c = &copies->stores[i];
    if (c->thread == thread && c->group + (uint64_t)groups < copies->groups[thread])
      store(c);
    else
      copies->stores[left++] = *c;
  }
  copies->num_stores = left;
}
