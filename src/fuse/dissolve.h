/* Kernels that are none: their ops go back to where they are called. */
#ifndef O3_FUSE_DISSOLVE_H
#define O3_FUSE_DISSOLVE_H

#include "ir/pass.h"

/* A kernel whose result canonicalization has found elsewhere (an argument, a constant, a view of either) is
 * erased, and what it is made of stands at its calls. */
o3_status_t o3_fuse_dissolve(o3_arena_t *arena, MlirModule module) O3_MUST_USE;

#endif
