/* Hash maps from strings or pointers to pointers, and a growing vector. */
#ifndef O3_BASE_MAP_H
#define O3_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Keys are copied into the arena. Zero value is not valid: use create. */
typedef struct o3_str_map o3_str_map_t;
o3_str_map_t *o3_str_map_create(o3_arena_t *arena);
/* False when memory is out. Replaces an older value. */
bool o3_str_map_put(o3_str_map_t *map, const char *key, size_t key_length, void *value);
/* NULL when absent. */
void *o3_str_map_get(const o3_str_map_t *map, const char *key, size_t key_length);
size_t o3_str_map_count(const o3_str_map_t *map);

/* Keys are compared by address. */
typedef struct o3_ptr_map o3_ptr_map_t;
o3_ptr_map_t *o3_ptr_map_create(o3_arena_t *arena);
bool o3_ptr_map_put(o3_ptr_map_t *map, const void *key, void *value);
void *o3_ptr_map_get(const o3_ptr_map_t *map, const void *key);

/* Vector of pointers. */
typedef struct o3_ptr_vec {
  void **items;
  size_t count, capacity;
  o3_arena_t *arena;
} o3_ptr_vec_t;
static inline o3_ptr_vec_t o3_ptr_vec(o3_arena_t *arena) { return (o3_ptr_vec_t){.arena = arena}; }
bool o3_ptr_vec_push(o3_ptr_vec_t *vec, void *item);

#endif
