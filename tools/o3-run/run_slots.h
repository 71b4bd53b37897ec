/* The tensors of a set of inputs, or of expected outputs: one slot for each of the model's. */
#ifndef O3_RUN_SLOTS_H
#define O3_RUN_SLOTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/status.h"
#include "o3/model.h"
#include "run_options.h"

typedef struct o3_run_slots {
  const char *what; /* "input" or "output" */
  const o3_tensor_info_t *infos;
  int32_t count;
  o3_tensor_t *tensors; /* |count|; data NULL: not given; owned */
} o3_run_slots_t;

/* Empty slots for |count| tensors, which |infos| describes. End with o3_run_slots_deinit. */
o3_status_t o3_run_slots_init(const char *what, const o3_tensor_info_t *infos, int32_t count,
                              o3_arena_t *arena, o3_run_slots_t *slots) O3_MUST_USE;
void o3_run_slots_deinit(o3_run_slots_t *slots);

/* Fills slots from "[NAME=]FILE" texts, in order. Errors name the file; NOT_FOUND for a name that the
 * model does not have, INVALID_ARGUMENT for a tensor given twice. */
o3_status_t o3_run_slots_add_files(o3_run_slots_t *slots, const o3_ptr_vec_t *files) O3_MUST_USE;

/* Fills the slots that are still empty from |folder|'s input_0.pb, ... (output_0.pb, ...), where such
 * files are; |folder| may be NULL. A file beyond the model's last tensor, and a folder that gives
 * nothing, is an error. */
o3_status_t o3_run_slots_add_folder(o3_run_slots_t *slots, const char *folder, o3_arena_t *arena) O3_MUST_USE;

/* Fills the inputs still empty with random values: shapes from the given inputs' symbols, --dim, or 1. */
o3_status_t o3_run_slots_add_random(o3_run_slots_t *slots, const o3_run_options_t *options) O3_MUST_USE;

/* Checks each "NAME=SIZE" of |dims|: the model must have a symbolic dimension of that name, and inputs that
 * are given none of another size. */
o3_status_t o3_run_slots_check_dims(const o3_run_slots_t *slots, const o3_ptr_vec_t *dims) O3_MUST_USE;

/* INVALID_ARGUMENT naming the first empty slot, and |rule|: what would fill it. */
o3_status_t o3_run_slots_check_full(const o3_run_slots_t *slots, const char *rule) O3_MUST_USE;

#endif
