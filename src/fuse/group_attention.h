/* The attention round of the grouping: product, softmax of its rows, product. */
#ifndef O3_FUSE_GROUP_ATTENTION_H
#define O3_FUSE_GROUP_ATTENTION_H

#include "fuse/group.h"

/* Makes a group of kind ATTENTION of the product |seed| and what follows it, when that is
 *
 *     scores = elementwise ops on seed        (scale, masks)
 *     y = softmax(scores along the last dimension) * v,   a product whose sum is along that dimension
 *
 * and nothing else reads a value on the way. When the ops are those of a softmax but something is in the way,
 * |stopped| is the op and |why| the reason; NULL otherwise. */
o3_status_t o3_group_attention(o3_groups_t *groups, o3_dep_node_t *seed, const o3_dep_node_t **stopped,
                               const char **why) O3_MUST_USE;

#endif
