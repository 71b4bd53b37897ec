/* A value with a border in one pass: a fill of a buffer and the copy into a part of it behind it become one
 * op, which reads the copied value through the border.
 *
 *     fill %y; copy %x to %y[1, 1] [56, 56]  ->  %y[i, j] = i - 1 < 56 and j - 1 < 56 ? %x[i - 1, j - 1] :
 * number
 */
#ifndef O3_TARGET_NVPTX_MERGE_PADDING_H
#define O3_TARGET_NVPTX_MERGE_PADDING_H

#include "ir/ir.h"

/* In the blocks of |root|, on buffers. */
o3_status_t o3_nvptx_merge_padding(MlirOperation root) O3_MUST_USE;

#endif
