#include "hopper_groups.h"

#include <stdlib.h>
#include <string.h>

enum { RING = 64, SETS = 8, COMMITS = 8, INDEX_BITS = 7, SET_BITS = 3, SERIAL_BITS = 12 };

typedef struct product {
  emu_wgmma_t what;
  int set, threads;
  bool fresh;  // its sums begin with it
  uint32_t registers[EMU_WARPGROUP][4];
  uint8_t a[EMU_PRODUCT_ROWS][EMU_PRODUCT_K],
      b[EMU_PRODUCT_COLUMNS][EMU_PRODUCT_K];  // when all had issued it
} product_t;

// Sums of some products, one after the other.
typedef struct sums {
  bool used;
  uint32_t serial;
  int running, taken;  // products; threads that have their sums
  float values[EMU_PRODUCT_ROWS][EMU_PRODUCT_COLUMNS];
} sums_t;

typedef struct group {
  uint64_t first;  // of those that have not run
  uint64_t issued[EMU_WARPGROUP], commits[EMU_WARPGROUP], ends[EMU_WARPGROUP][COMMITS];
  uint32_t serial;
  product_t ring[RING];
  sums_t sets[SETS];
} group_t;

enum { MAX_GROUPS = EMU_MAX_THREADS / EMU_WARPGROUP };
static group_t *groups[EMU_MAX_CLUSTER][MAX_GROUPS];

void emu_groups_begin(const emu_block_t *block) {
  for (int i = 0; i < MAX_GROUPS; ++i) {
    free(groups[block->rank][i]);
    groups[block->rank][i] = NULL;
  }
}

static group_t *running_group(void) {
  const emu_thread_t *thread = emu_self();
  group_t **place = &groups[thread->warp->block->rank][thread->number / EMU_WARPGROUP];
  if (!*place) *place = calloc(1, sizeof **place);
  if (!*place) emu_fail("out of memory");
  return *place;
}

static int member(void) { return emu_self()->number % EMU_WARPGROUP; }

static const char *window(void) { return emu_self()->warp->block->shared; }

// ---- Names of sums: signalling NaNs ----

static uint32_t name_of(const group_t *group, int set, int index) {
  uint32_t serial = group->sets[set].serial;
  return 0x7f800000u | serial << (SET_BITS + INDEX_BITS) | (uint32_t)set << INDEX_BITS | (uint32_t)index;
}

// The set that |name| is of as sum |index|, or -1.
static int set_of(const group_t *group, uint32_t name, int index) {
  int set = (int)(name >> INDEX_BITS & (SETS - 1));
  return group->sets[set].used && name == name_of(group, set, index) ? set : -1;
}

static int new_set(group_t *group) {
  for (int i = 0; i < SETS; ++i) {
    if (group->sets[i].used) continue;
    group->serial = group->serial % ((1u << SERIAL_BITS) - 1) + 1;
    group->sets[i].used = true;
    group->sets[i].serial = group->serial;
    group->sets[i].running = group->sets[i].taken = 0;
    return i;
  }
  emu_fail("sums of %d products are not read by all threads of a warpgroup", SETS);
}

// ---- Issuing ----

static bool is_same(const emu_wgmma_t *x, const emu_wgmma_t *y) {
  return x->element == y->element && x->columns == y->columns && x->accumulate == y->accumulate &&
         x->a_in_registers == y->a_in_registers && x->a_by_k == y->a_by_k && x->b_by_k == y->b_by_k &&
         x->b == y->b && (x->a_in_registers || x->a == y->a);
}

static void begin(group_t *group, product_t *p, const emu_wgmma_t *what, int set) {
  *p = (product_t){.what = *what, .set = set < 0 ? new_set(group) : set, .fresh = set < 0};
  ++group->sets[p->set].running;
}

static void read_operands(const product_t *p, uint8_t (*a)[EMU_PRODUCT_K], uint8_t (*b)[EMU_PRODUCT_K]) {
  const emu_wgmma_t *w = &p->what;
  const emu_operand_t right = {w->element, w->columns, w->b, w->b_by_k};
  const emu_operand_t left = {w->element, EMU_PRODUCT_ROWS, w->a, w->a_by_k};
  const char *why = emu_operand_refuse(&right);
  if (!why && !w->a_in_registers) why = emu_operand_refuse(&left);
  if (why)
    emu_fail("wgmma: %s (A %016llx, B %016llx)", why, (unsigned long long)w->a, (unsigned long long)w->b);
  emu_operand_read(&right, window(), b);
  if (!w->a_in_registers) {
    emu_operand_read(&left, window(), a);
    return;
  }
  for (int t = 0; t < EMU_WARPGROUP; ++t) {
    for (int i = 0; i < 4; ++i) {
      int row, byte;
      emu_product_a_place(t, i, &row, &byte);
      memcpy(&a[row][byte], &p->registers[t][i], 4);
    }
  }
}

static void give_sums(group_t *group, const product_t *p, int thread, uint32_t *sums) {
  sums_t *set = &group->sets[p->set];
  for (int i = 0; i < p->what.columns / 2; ++i) {
    int row, column;
    emu_product_sum_place(thread, i, &row, &column);
    if (p->fresh && p->what.accumulate) memcpy(&set->values[row][column], &sums[i], 4);
    sums[i] = name_of(group, p->set, i);
  }
}

void emu_wgmma_issue(const emu_wgmma_t *what, uint32_t *sums, const uint32_t *a) {
  group_t *group = running_group();
  int thread = member(), set = set_of(group, sums[0], 0);
  uint64_t number = group->issued[thread]++;
  product_t *p = &group->ring[number % RING];
  if (number - group->first >= RING) emu_fail("wgmma: more than %d products run", RING);
  if (p->threads == 0) begin(group, p, what, set);
  if (!is_same(&p->what, what)) emu_fail("wgmma: the threads of a warpgroup issue different products");
  if (p->fresh ? set >= 0 : set != p->set)
    emu_fail("wgmma: the threads of a warpgroup add to different sums");
  if (a) memcpy(p->registers[thread], a, sizeof p->registers[thread]);
  give_sums(group, p, thread, sums);
  if (++p->threads < EMU_WARPGROUP) return;
  read_operands(p, p->a, p->b);
  emu_progress();
}

void emu_wgmma_commit(void) {
  group_t *group = running_group();
  int thread = member();
  group->ends[thread][group->commits[thread]++ % COMMITS] = group->issued[thread];
}

// ---- Running ----

static void run(group_t *group, product_t *p) {
  static uint8_t a[EMU_PRODUCT_ROWS][EMU_PRODUCT_K], b[EMU_PRODUCT_COLUMNS][EMU_PRODUCT_K];
  sums_t *set = &group->sets[p->set];
  read_operands(p, a, b);
  if (memcmp(a, p->a, sizeof a) != 0 || memcmp(b, p->b, (size_t)p->what.columns * EMU_PRODUCT_K) != 0)
    emu_fail("wgmma: shared memory that a product reads was written while it ran (A %016llx, B %016llx)",
             (unsigned long long)p->what.a, (unsigned long long)p->what.b);
  if (!p->what.accumulate) memset(set->values, 0, sizeof set->values);
  emu_product(p->what.element, p->what.columns, a, b, set->values);
  --set->running;
  p->threads = 0;
}

void emu_wgmma_wait(int groups) {
  group_t *group = running_group();
  int thread = member();
  uint64_t commits = group->commits[thread];
  if (groups >= COMMITS) emu_fail("wgmma: waiting for all but %d groups is not emulated", groups);
  if (commits <= (uint64_t)groups) return;
  uint64_t end = group->ends[thread][(commits - 1 - (uint64_t)groups) % COMMITS];
  while (group->first < end) {
    product_t *p = &group->ring[group->first % RING];
    if (p->threads < EMU_WARPGROUP) {
      emu_yield();
      continue;
    }
    run(group, p);
    ++group->first;
    emu_progress();
  }
}

void emu_wgmma_collect(uint32_t *registers, int count) {
  group_t *group = running_group();
  for (int i = 0, set = -1; i < count; ++i) {
    if (i == 0) set = set_of(group, registers[0], 0);
    if (set < 0 || set_of(group, registers[i], i) != set || group->sets[set].running) return;
    int row, column;
    emu_product_sum_place(member(), i, &row, &column);
    memcpy(&registers[i], &group->sets[set].values[row][column], 4);
    if (i == count - 1 && ++group->sets[set].taken == EMU_WARPGROUP) group->sets[set].used = false;
  }
}
