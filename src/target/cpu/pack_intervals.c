#include "target/cpu/pack_intervals.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef o3_interval_t *item_t;

static int by_size(const void *a, const void *b) {
  const o3_interval_t *x = *(const item_t *)a, *y = *(const item_t *)b;
  if (x->size != y->size) return x->size > y->size ? -1 : 1;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return (x > y) - (x < y);
}

static int by_time(const void *a, const void *b) {
  const o3_interval_t *x = *(const item_t *)a, *y = *(const item_t *)b;
  return x->first != y->first ? (x->first < y->first ? -1 : 1) : by_size(a, b);
}

static int by_offset(const void *a, const void *b) {
  const o3_interval_t *x = *(const item_t *)a, *y = *(const item_t *)b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool overlaps(const o3_interval_t *a, const o3_interval_t *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* The smallest gap that fits among the placed ones that live at the same time, which are sorted by offset. */
static int64_t best_gap(const item_t *placed, int count, const o3_interval_t *item) {
  int64_t end = 0, best = -1, best_size = INT64_MAX;
  for (int i = 0; i < count; ++i) {
    if (!overlaps(placed[i], item)) continue;
    int64_t gap = placed[i]->offset - end;
    if (gap >= item->size && gap < best_size) best = end, best_size = gap;
    if (placed[i]->offset + placed[i]->size > end) end = placed[i]->offset + placed[i]->size;
  }
  return best >= 0 ? best : end;
}

static int64_t place_all(item_t *order, item_t *placed, int count) {
  int64_t total = 0;
  for (int i = 0; i < count; ++i) {
    order[i]->offset = best_gap(placed, i, order[i]);
    if (order[i]->offset + order[i]->size > total) total = order[i]->offset + order[i]->size;
    int at = i;
    for (; at > 0 && by_offset(&placed[at - 1], &order[i]) > 0; --at) placed[at] = placed[at - 1];
    placed[at] = order[i];
  }
  return total;
}

o3_status_t o3_intervals_pack(o3_arena_t *arena, o3_interval_t *intervals, int count, int64_t *total) {
  item_t *order = O3_ARENA_ARRAY(arena, item_t, (size_t)count + 1);
  item_t *placed = O3_ARENA_ARRAY(arena, item_t, (size_t)count + 1);
  O3_TRY_ALLOC(order);
  O3_TRY_ALLOC(placed);
  for (int i = 0; i < count; ++i) order[i] = &intervals[i];
  qsort(order, (size_t)count, sizeof(item_t), by_time);
  int64_t timed = place_all(order, placed, count);
  qsort(order, (size_t)count, sizeof(item_t), by_size);
  *total = place_all(order, placed, count);
  if (timed >= *total) return NULL;
  qsort(order, (size_t)count, sizeof(item_t), by_time);
  *total = place_all(order, placed, count);
  return NULL;
}

int64_t o3_intervals_live_max(const o3_interval_t *intervals, int count) {
  int64_t most = 0;
  for (int i = 0; i < count; ++i) {
    int64_t live = 0;
    for (int j = 0; j < count; ++j) {
      bool alive = intervals[j].first <= intervals[i].first && intervals[i].first <= intervals[j].last;
      live += alive ? intervals[j].size : 0;
    }
    if (live > most) most = live;
  }
  return most;
}
