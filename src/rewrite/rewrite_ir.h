/* What the passes of this folder need to know of ops. */
#ifndef O3_REWRITE_REWRITE_IR_H
#define O3_REWRITE_REWRITE_IR_H

#include "base/map.h"
#include "ir/build.h"

/* Computes its results from its operands and does nothing else: may be removed, merged, moved and computed
 * ahead. */
bool o3_op_is_pure(MlirOperation op);

/* Whether an attribute has a size in it that only a run knows, as the place that a slice in a loop starts at.
 */
bool o3_op_reads_sizes(MlirOperation op);

bool o3_value_has_uses(MlirValue value);
/* The op that is the only reader of |value|, once; null when there are more or none. */
MlirOperation o3_value_single_user(MlirValue value);

/* All ops inside |root|, an op after those in its regions. */
o3_status_t o3_collect_ops(MlirOperation root, o3_ptr_vec_t *ops) O3_MUST_USE;

/* Puts a function @main with the body |block|, which is taken, into the empty |module|: |results| of |block|
 * are what it returns, the block's arguments its inputs. */
o3_status_t o3_main_build(o3_arena_t *arena, MlirModule module, MlirBlock block, int count,
                          const MlirValue *results) O3_MUST_USE;

/* Notes how the product of node |op| is computed and why, or what has become of its weights, for o3c
 * --explain: in the module's o3.choices, of which a node may have several. */
o3_status_t o3_choice_note(o3_arena_t *arena, MlirModule module, MlirOperation op, const char *text)
    O3_MUST_USE;

/* Appends the pairs [node, text] of |list| to them. */
o3_status_t o3_choices_append(o3_arena_t *arena, MlirModule module, intptr_t count, const MlirAttribute *list)
    O3_MUST_USE;

/* |type| and the sizes of o3.shape, of one value or null, with another size |size| of dimension |dim|. */
MlirType o3_type_with_dim(MlirType type, int dim, int64_t size);
MlirAttribute o3_sizes_with(MlirAttribute sizes, int dim, int64_t size);

/* |count| entries of |value| along |axis|, from |start| on. */
MlirValue o3_value_slice(o3_builder_t *b, MlirValue value, int axis, int64_t start, int64_t count);

/* |value| with elements of type |element|, from its o3.cast. */
MlirValue o3_value_cast(o3_builder_t *b, MlirValue value, MlirType element);

/* All users of |value| but |except| read |other| instead. */
void o3_value_replace_except(MlirValue value, MlirValue other, MlirOperation except);

/* Replaces all results of |op| by |values| and erases it. */
void o3_op_replace(MlirOperation op, int count, const MlirValue *values);

#endif
