/* A mean of a product's result and what is multiplied with it (squeeze and excitation) both work in f32: the
 * cast has two readers, so it ends the product's group and is in none of theirs.
 *
 *     %w = extf %x                      %m = mean (extf %x)
 *     %m = mean %w         becomes      ...
 *     %y = %w * f(%m)                   %y = (extf %x) * f(%m)
 */
#include "fuse/share_casts.h"

/* Whether the node computes nothing but a wider type of each element. */
static bool widens(const o3_dep_node_t *node) {
  const o3_dep_generic_t *generic = node->generic;
  if (node->kind != O3_DEP_MAP || generic->num_inputs != 1) return false;
  if (!mlirAffineMapEqual(generic->maps[0], o3_dep_result_map(generic))) return false;
  MlirOperation cast = mlirBlockGetFirstOperation(generic->body);
  MlirOperation last = mlirBlockGetTerminator(generic->body);
  return o3_op_is(cast, "arith.extf") && mlirOperationEqual(mlirOperationGetNextInBlock(cast), last) &&
         mlirValueEqual(mlirOperationGetOperand(last, 0), mlirOperationGetResult(cast, 0));
}

/* Whether |user| may take what it reads of |node| into its kernel. */
static bool takes_operands(const o3_dep_node_t *node, const o3_dep_node_t *user) {
  if (user->kind != O3_DEP_MAP && user->kind != O3_DEP_REDUCTION) return false;
  MlirValue initial = mlirOperationGetOperand(user->op, user->generic->num_inputs);
  return !mlirValueEqual(initial, mlirOperationGetResult(node->op, 0));
}

static void clone_for(const o3_dep_node_t *node, const o3_dep_node_t *user) {
  MlirOperation own = mlirOperationClone(node->op);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(user->op), user->op, own);
  for (int i = 0; i < user->generic->num_inputs; ++i) {
    if (mlirValueEqual(mlirOperationGetOperand(user->op, i), mlirOperationGetResult(node->op, 0)))
      mlirOperationSetOperand(user->op, i, mlirOperationGetResult(own, 0));
  }
}

/* The last reader keeps the cast itself, unless one that takes no operands does. */
static bool share(const o3_dep_node_t *node) {
  int takers = 0;
  for (int u = 0; u < node->num_users; ++u) takers += takes_operands(node, node->users[u]);
  int cloned = takers < node->num_users ? takers : takers - 1;
  for (int u = 0, left = cloned; u < node->num_users && left > 0; ++u) {
    if (!takes_operands(node, node->users[u])) continue;
    clone_for(node, node->users[u]);
    --left;
  }
  return cloned > 0;
}

void o3_fuse_share_casts(const o3_groups_t *groups, bool *changed) {
  *changed = false;
  for (size_t i = 0; i < groups->list.count; ++i) {
    const o3_group_t *group = groups->list.items[i];
    bool alone = group->kind == O3_GROUP_ELEMENTWISE && group->members.count == 1 && !group->root->captured;
    if (alone && widens(group->root)) *changed |= share(group->root);
  }
}
