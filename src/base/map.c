/* Both maps are open addressing with linear probing over a power-of-two table, at most 3/4 full. There is
 * no removal, so no tombstones. A table that grows leaves the old one in the arena: growth doubles, so
 * that costs at most as much again. */
#include "base/map.h"

#include <string.h>

enum { FIRST_CAPACITY = 16 };

/* A slot is free when |key| is NULL. */
typedef struct slot {
  const void *key;
  size_t length; /* of a string; BY_ADDRESS for the keys of a pointer map */
  uint64_t hash;
  void *value;
} slot_t;

#define BY_ADDRESS SIZE_MAX

typedef struct table {
  o3_arena_t *arena;
  slot_t *slots;
  size_t capacity, count;
} table_t;

struct o3_str_map {
  table_t table;
};

struct o3_ptr_map {
  table_t table;
};

/* Stands for the key NULL in a pointer map. */
static const char null_key;

/* FNV-1a, 64 bits: keys are short names, and a compiler needs no defence against chosen collisions beyond
 * staying correct. */
static uint64_t hash_bytes(const char *bytes, size_t length) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; ++i) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
  return hash;
}

/* The finaliser of splitmix64: addresses differ in a few middle bits. */
static uint64_t hash_pointer(const void *pointer) {
  uint64_t hash = (uintptr_t)pointer;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

static bool table_init(table_t *table, o3_arena_t *arena) {
  *table = (table_t){arena, O3_ARENA_ARRAY(arena, slot_t, FIRST_CAPACITY), FIRST_CAPACITY, 0};
  return table->slots != NULL;
}

static bool slot_matches(const slot_t *slot, const slot_t *wanted) {
  if (slot->hash != wanted->hash || slot->length != wanted->length) return false;
  if (wanted->length == BY_ADDRESS) return slot->key == wanted->key;
  return wanted->length == 0 || !memcmp(slot->key, wanted->key, wanted->length);
}

/* The slot that holds |wanted|'s key, or the free one where it belongs. */
static slot_t *table_find(const table_t *table, const slot_t *wanted) {
  size_t mask = table->capacity - 1;
  for (size_t i = (size_t)wanted->hash & mask;; i = (i + 1) & mask) {
    slot_t *slot = &table->slots[i];
    if (!slot->key || slot_matches(slot, wanted)) return slot;
  }
}

static bool table_grow(table_t *table) {
  table_t bigger = *table;
  if (__builtin_mul_overflow(table->capacity, (size_t)2, &bigger.capacity)) return false;
  bigger.slots = O3_ARENA_ARRAY(table->arena, slot_t, bigger.capacity);
  if (!bigger.slots) return false;
  for (size_t i = 0; i < table->capacity; ++i)
    if (table->slots[i].key) *table_find(&bigger, &table->slots[i]) = table->slots[i];
  *table = bigger;
  return true;
}

/* Puts |entry|, whose string key is still the caller's: only a new key is copied. */
static bool table_put(table_t *table, slot_t entry) {
  slot_t *slot = table_find(table, &entry);
  if (slot->key) {
    slot->value = entry.value;
    return true;
  }
  if (entry.length != BY_ADDRESS) {
    entry.key = o3_arena_strndup(table->arena, entry.key, entry.length);
    if (!entry.key) return false;
  }
  if (table->count + 1 > table->capacity / 4 * 3) {
    if (!table_grow(table)) return false;
    slot = table_find(table, &entry);
  }
  *slot = entry;
  ++table->count;
  return true;
}

static slot_t string_entry(const char *key, size_t length, void *value) {
  return (slot_t){key, length, hash_bytes(key, length), value};
}

static slot_t pointer_entry(const void *key, void *value) {
  return (slot_t){key ? key : &null_key, BY_ADDRESS, hash_pointer(key), value};
}

o3_str_map_t *o3_str_map_create(o3_arena_t *arena) {
  o3_str_map_t *map = O3_ARENA_NEW(arena, o3_str_map_t);
  return map && table_init(&map->table, arena) ? map : NULL;
}

bool o3_str_map_put(o3_str_map_t *map, const char *key, size_t key_length, void *value) {
  return table_put(&map->table, string_entry(key, key_length, value));
}

void *o3_str_map_get(const o3_str_map_t *map, const char *key, size_t key_length) {
  slot_t wanted = string_entry(key, key_length, NULL);
  return table_find(&map->table, &wanted)->value; /* a free slot's is NULL */
}

size_t o3_str_map_count(const o3_str_map_t *map) { return map->table.count; }

o3_ptr_map_t *o3_ptr_map_create(o3_arena_t *arena) {
  o3_ptr_map_t *map = O3_ARENA_NEW(arena, o3_ptr_map_t);
  return map && table_init(&map->table, arena) ? map : NULL;
}

bool o3_ptr_map_put(o3_ptr_map_t *map, const void *key, void *value) {
  return table_put(&map->table, pointer_entry(key, value));
}

void *o3_ptr_map_get(const o3_ptr_map_t *map, const void *key) {
  slot_t wanted = pointer_entry(key, NULL);
  return table_find(&map->table, &wanted)->value;
}

/* Growth leaves the old items in the arena, as the tables do. */
static bool vec_grow(o3_ptr_vec_t *vec) {
  size_t capacity;
  if (__builtin_mul_overflow(vec->capacity ? vec->capacity : FIRST_CAPACITY / 2, (size_t)2, &capacity))
    return false;
  void **items = O3_ARENA_ARRAY(vec->arena, void *, capacity);
  if (!items) return false;
  if (vec->count) memcpy(items, vec->items, vec->count * sizeof *items);
  vec->items = items;
  vec->capacity = capacity;
  return true;
}

bool o3_ptr_vec_push(o3_ptr_vec_t *vec, void *item) {
  if (vec->count == vec->capacity && !vec_grow(vec)) return false;
  vec->items[vec->count++] = item;
  return true;
}
