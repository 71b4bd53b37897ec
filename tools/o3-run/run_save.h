/* Writes outputs to files. */
#ifndef O3_RUN_SAVE_H
#define O3_RUN_SAVE_H

#include "base/arena.h"
#include "base/status.h"
#include "run_slots.h"

/* Writes all of |outputs|: into one file when |path| ends in .npz, otherwise as NAME.npy into the folder
 * |path|, which is made if it is not there. Characters of NAME outside A-Z a-z 0-9 _ . - become '_'; an
 * output whose name then falls together with an earlier one's gets "_" and its index appended. */
o3_status_t o3_run_save(const char *path, const o3_run_slots_t *outputs, o3_arena_t *arena) O3_MUST_USE;

#endif
