/* Upstream's canonicalization and CSE, for modules of many ops with regions. */
#ifndef O3_IR_SHARE_OPS_H
#define O3_IR_SHARE_OPS_H

#include "base/arena.h"
#include "ir/ir.h"

/* Runs "canonicalize,cse" on |module|; |scratch| is for what is known of it meanwhile. */
o3_status_t o3_ir_share_ops(o3_arena_t *scratch, MlirModule module) O3_MUST_USE;

#endif
