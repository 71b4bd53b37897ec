/* Rows of an image that is read without its border: windows are cut off where the row ends. */
#ifndef O3_TARGET_CPU_BLOCKED_ROW_H
#define O3_TARGET_CPU_BLOCKED_ROW_H

#include "target/cpu/blocked_match.h"
#include "target/cpu/tile_text.h"

/* Builds a call of |tile|, whose pixel 0 is |pixel| of the row. */
typedef o3_status_t (*o3_blocked_row_tile_fn_t)(o3_builder_t *builder, void *context, const o3_tile_t *tile,
                                                MlirValue pixel);

typedef struct o3_blocked_row {
  const o3_blocked_t *product; /* |inside| */
  o3_tile_t tile;              /* the full one */
  bool adds;                   /* a pixel must not be computed twice */
  MlirValue choice;            /* by o3_blocked_row_choose; null where all sizes are known */
  o3_blocked_row_tile_fn_t call;
  void *context;
} o3_blocked_row_t;

/* Whether tiles can be made for the row's ends: its length, and the image's, are known. */
bool o3_blocked_row_is_known(const o3_blocked_t *product);
/* Of a row whose length is known at run time only: which tiles it gets, from full ones of |pixels|. */
MlirValue o3_blocked_row_choose(const o3_blocked_t *product, int pixels, o3_builder_t *builder);
/* All tiles of one row. */
o3_status_t o3_blocked_row_build(const o3_blocked_row_t *row, o3_builder_t *builder) O3_MUST_USE;
/* Elements of X from tap 0 of |pixel| to the end of its row. */
MlirValue o3_blocked_row_limit(const o3_blocked_t *product, o3_builder_t *builder, MlirValue pixel);

/* Of the window's rows, for the rows of the result at |ivs|: the first that is inside of the image, and how
 * many are. */
void o3_blocked_row_cut(const o3_blocked_t *product, o3_builder_t *builder, const MlirValue *ivs,
                        MlirValue *first, MlirValue *count);

#endif
