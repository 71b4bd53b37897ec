/* Code of @main that moves into a function of its own, which is called where the code was.
 *
 *     o3_piece_t piece;
 *     O3_TRY(o3_piece_begin(arena, is_remade, &piece));
 *     O3_TRY(o3_piece_take(&piece, op));                       any number of them, in their order
 *     O3_TRY(o3_piece_finish(&piece, module, name, &builder)); the function, and its call at |builder|
 */
#ifndef O3_TARGET_CPU_PIECE_H
#define O3_TARGET_CPU_PIECE_H

#include "base/map.h"
#include "ir/build.h"
#include "ir/ir.h"

typedef struct o3_piece {
  MlirBlock block;                      /* body of the function */
  bool (*is_remade)(MlirOperation def); /* whether a copy of the op may stand for it in the function */
  o3_ptr_map_t *inside;                 /* what stands in the function for a value of around it */
  o3_ptr_vec_t operands;                /* MlirValue.ptr, of the call */
  o3_arena_t *arena;
} o3_piece_t;

o3_status_t o3_piece_begin(o3_arena_t *arena, bool (*is_remade)(MlirOperation def), o3_piece_t *piece)
    O3_MUST_USE;
/* |op| has no results that others use. It moves to the end of the function; what it uses is made anew there,
 * or becomes an argument. */
o3_status_t o3_piece_take(o3_piece_t *piece, MlirOperation op) O3_MUST_USE;
/* The piece is done with. The function is private, and never inlined. */
o3_status_t o3_piece_finish(o3_piece_t *piece, MlirModule module, const char *name, o3_builder_t *caller)
    O3_MUST_USE;

#endif
