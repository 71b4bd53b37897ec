/* Outlining: a group of ops becomes a private function that @main calls. */
#ifndef O3_FUSE_OUTLINE_KERNEL_H
#define O3_FUSE_OUTLINE_KERNEL_H

#include "fuse/group.h"
#include "fuse/kernel_body.h"

/* Unit, on a fill: a product reads it as an operand, so that no kernel makes it. */
#define O3_FILLED_OPERAND "o3.filled_operand"

/* Makes kernel number |index| in |module| of the group and replaces the group's ops by a call:
 *
 *     func.func private @k0_rows_Softmax_3(%x: tensor<8x9xf32>, %out: tensor<8x9xf32>) -> tensor<8x9xf32>
 *
 * The arguments are what the ops read, sizes too, then the tensor to write into. */
o3_status_t o3_fuse_outline(const o3_groups_t *groups, const o3_group_t *group, int index, MlirModule module)
    O3_MUST_USE;

#endif
