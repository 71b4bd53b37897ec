/* Aliases: which values may be the same memory as a buffer, and who uses them. */
#ifndef O3_TARGET_CPU_ALIAS_H
#define O3_TARGET_CPU_ALIAS_H

#include "base/map.h"
#include "ir/ir.h"

typedef struct o3_aliases {
  o3_ptr_vec_t values; /* MlirValue.ptr: the buffer, its views, what yields and branches make of them */
  o3_ptr_vec_t users;  /* MlirOperation.ptr of every op with such an operand; some twice */
  bool escapes;        /* an op uses it that is not understood: it may live on anywhere */
  bool returned;       /* by the function */
  bool carried;        /* to a later iteration of a loop that it is made in */
} o3_aliases_t;

/* Follows |buffer|, a memref, forward. The vectors live in |arena|. */
o3_status_t o3_aliases_of(o3_arena_t *arena, MlirValue buffer, o3_aliases_t *aliases) O3_MUST_USE;

/* Whether the buffer can be seen after the end of |block|, which makes it. */
bool o3_aliases_leave_block(const o3_aliases_t *aliases, MlirBlock block);

#endif
