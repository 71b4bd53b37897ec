/* Five rounds over the block: Winograd convolutions; attention (group_attention.h); contractions take what is
 * done with their results; reductions along rows take the ops that share the rows; elementwise ops that are
 * left take their producers.
 *
 * A round grows a set of candidates forward from a seed, op by op in program order, by a rule that reads
 * maps; then it looks for the latest root: a candidate whose group, all candidates that it depends on, is
 * read by nobody else. So branches that join again (x * sigmoid(x)) are inside, and a result that two kernels
 * read ends its group. As only the root leaves a group, no path leads out of it and back in: calling the
 * kernel where the root stood is always in order. Last, elementwise producers that only the group reads are
 * taken in.
 */
#include "fuse/group.h"

#include <string.h>

#include "fuse/group_attention.h"
#include "fuse/merge.h"

/* Recomputing so many plain scalar ops for each element of a broadcast is cheaper than a pass over memory. */
enum { CHEAP_OPS = 4 };

/* Why a product with a softmax behind it is no attention. */
typedef struct no_attention {
  const o3_dep_node_t *stopped;
  const char *why;
} no_attention_t;

/* Most inputs of a group's ops, counted for each op. An op that is merged of them has no more, and the time
 * of LLVM grows with the square of a function; a cut costs one more pass over memory in so many ops. */
enum { MAX_READS = O3_DEP_MAX_OPERANDS - 2 };

/* Most ops of a product whose result is of another type, and of columns. */
enum { MAX_CONVERTED = 16 };

typedef struct grower {
  o3_groups_t *groups;
  o3_dep_node_t *seed;
  bool *inside;                 /* for each node: candidate, then member */
  const char **reasons;         /* for each node: why it is inside, or why not */
  no_attention_t *no_attention; /* for each node */
  bool *repeated;               /* elementwise round: its elements are computed several times */
  bool columns;                 /* rows round: what is reduced is not the last dimension */
  int num_reads;                /* inputs of all that is inside */
  int num_rows;
  int (*rows)[O3_IR_MAX_RANK]; /* for each node inside, the loops that count the rows */
} grower_t;

typedef bool (*join_fn_t)(grower_t *self, const o3_dep_node_t *node);

const char *o3_group_kind_name(o3_group_kind_t kind) {
  static const char *const NAMES[] = {
#define O3_GROUP_KIND(id, name) name,
#include "fuse/group_kinds.def"
#undef O3_GROUP_KIND
  };
  return NAMES[kind];
}

/* ---- Helpers ---- */

static bool refuse(grower_t *self, const o3_dep_node_t *node, const char *why) {
  self->reasons[node->index] = why;
  return false;
}

static bool accept(grower_t *self, const o3_dep_node_t *node, const char *why) {
  self->reasons[node->index] = why;
  return true;
}

/* The node inside that makes operand |index| of |node|; NULL when none does. */
static o3_dep_node_t *inner_producer(const grower_t *self, const o3_dep_node_t *node, int index) {
  o3_dep_node_t *producer = o3_dep_producer(self->groups->graph, mlirOperationGetOperand(node->op, index));
  return producer && self->inside[producer->index] ? producer : NULL;
}

/* Whether the user lets the two be in one kernel. */
static bool may_join(const grower_t *self, const o3_dep_node_t *a, const o3_dep_node_t *b) {
  return !self->groups->one_node || mlirStringRefEqual(o3_op_label(a->op), o3_op_label(b->op));
}

static bool reads_inside(const grower_t *self, const o3_dep_node_t *node) {
  for (int i = 0; i < (int)mlirOperationGetNumOperands(node->op); ++i) {
    if (inner_producer(self, node, i)) return true;
  }
  return false;
}

static MlirType result_type(const o3_dep_node_t *node) {
  return mlirValueGetType(mlirOperationGetResult(node->op, 0));
}

static int count_ops(MlirBlock body, bool *expensive) {
  int count = -1; /* the terminator */
  MlirOperation op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op), ++count)
    *expensive |= o3_dep_is_expensive(op);
  return count;
}

static int count_body(const o3_dep_node_t *node) {
  bool expensive = false;
  return count_ops(node->generic->body, &expensive);
}

static bool is_copy(const o3_dep_node_t *node) {
  return node->kind == O3_DEP_MAP && node->generic->num_inputs == 1 && !count_body(node);
}

/* ---- Candidates ---- */

static o3_status_t init_grower(grower_t *self, o3_groups_t *groups) {
  size_t count = (size_t)groups->graph->count + 1;
  *self = (grower_t){.groups = groups,
                     .inside = O3_ARENA_ARRAY(groups->arena, bool, count),
                     .reasons = O3_ARENA_ARRAY(groups->arena, const char *, count),
                     .repeated = O3_ARENA_ARRAY(groups->arena, bool, count),
                     .no_attention = O3_ARENA_ARRAY(groups->arena, no_attention_t, count),
                     .rows = o3_arena_alloc(groups->arena, count, sizeof(int[O3_IR_MAX_RANK]))};
  O3_TRY_ALLOC(self->inside);
  O3_TRY_ALLOC(self->reasons);
  O3_TRY_ALLOC(self->repeated);
  O3_TRY_ALLOC(self->no_attention);
  O3_TRY_ALLOC(self->rows);
  return NULL;
}

static int read_count(const o3_dep_node_t *node) { return node->generic ? node->generic->num_inputs : 0; }

static bool join(grower_t *self, const o3_dep_node_t *node, join_fn_t joins) {
  if (self->num_reads + read_count(node) > MAX_READS)
    return refuse(self, node, "the kernel reads as many inputs as one may");
  bool joined = joins(self, node);
  if (joined) self->num_reads += read_count(node);
  return joined;
}

/* Number of the last node that reads |node|, or of |node|. */
static int last_reader(const o3_dep_node_t *node) {
  return node->num_users ? node->users[node->num_users - 1]->index : node->index;
}

/* Nodes behind the last reader of a candidate are not looked at, so that a graph takes a time of its length.
 */
static void grow_forward(grower_t *self, o3_dep_node_t *seed, const char *why, join_fn_t joins) {
  const o3_dep_graph_t *graph = self->groups->graph;
  int last = last_reader(seed);
  memset(self->inside, 0, (size_t)graph->count * sizeof(bool));
  memset(self->reasons, 0, (size_t)graph->count * sizeof(char *));
  self->seed = seed;
  self->num_reads = seed->generic->num_inputs;
  self->inside[seed->index] = true;
  self->reasons[seed->index] = why;
  for (int i = seed->index + 1; i <= last; ++i) {
    const o3_dep_node_t *node = &graph->nodes[i];
    if (!reads_inside(self, node)) continue;
    if (self->groups->owner[i]) {
      self->reasons[i] = "it is in another kernel";
    } else if (!may_join(self, seed, node)) {
      self->reasons[i] = "it is another node: --no-fusion";
    } else {
      self->inside[i] = join(self, node, joins);
    }
    if (self->inside[i] && last_reader(node) > last) last = last_reader(node);
  }
}

/* Marks what |root| depends on among the candidates; false when something outside reads some of it. */
static bool is_closed(const grower_t *self, const o3_dep_node_t *root, bool *needed) {
  memset(needed, 0, (size_t)self->groups->graph->count * sizeof(bool));
  needed[root->index] = true;
  for (int i = root->index; i >= self->seed->index; --i) {
    const o3_dep_node_t *node = &self->groups->graph->nodes[i];
    if (!needed[i]) continue;
    if (node->captured && node != root) return false;
    for (int u = 0; u < node->num_users && node != root; ++u) {
      if (!needed[node->users[u]->index]) return false;
    }
    for (int k = 0; k < (int)mlirOperationGetNumOperands(node->op); ++k) {
      const o3_dep_node_t *producer = inner_producer(self, node, k);
      if (producer) needed[producer->index] = true;
    }
  }
  return needed[self->seed->index];
}

typedef const char *(*root_fn_t)(grower_t *self, const o3_dep_node_t *root, const bool *needed);

/* Keeps the group of the latest root that |refusal| has nothing against; the seed itself as the last resort.
 */
static o3_status_t choose_root(grower_t *self, root_fn_t refusal, o3_dep_node_t **root) {
  const o3_dep_graph_t *graph = self->groups->graph;
  bool *needed = O3_ARENA_ARRAY(self->groups->arena, bool, (size_t)graph->count + 1);
  O3_TRY_ALLOC(needed);
  *root = NULL;
  for (int i = graph->count - 1; i >= self->seed->index && !*root; --i) {
    if (!self->inside[i]) continue;
    const char *why = is_closed(self, &graph->nodes[i], needed)
                          ? refusal(self, &graph->nodes[i], needed)
                          : "another kernel reads a value on the way to it";
    if (!why) *root = &graph->nodes[i];
    if (why) self->reasons[i] = why;
  }
  if (*root) memcpy(self->inside, needed, (size_t)graph->count * sizeof(bool));
  return NULL;
}

/* A producer that the group may take in: only the group reads it, and by its operands. */
static bool is_inner_operand(const grower_t *self, const o3_dep_node_t *node) {
  bool fits = !self->inside[node->index] && node->kind == O3_DEP_MAP && !self->groups->owner[node->index] &&
              node->num_users > 0 && !node->captured;
  for (int u = 0; u < node->num_users && fits; ++u) {
    const o3_dep_node_t *user = node->users[u];
    fits = self->inside[user->index] &&
           !mlirValueEqual(mlirOperationGetOperand(user->op, user->generic->num_inputs),
                           mlirOperationGetResult(node->op, 0));
  }
  return fits;
}

/* The least of |first| and the numbers of what member |node| reads that is or may become a member. */
static int first_read(const grower_t *self, const o3_dep_node_t *node, int first) {
  for (int i = 0; i < (int)mlirOperationGetNumOperands(node->op); ++i) {
    const o3_dep_node_t *from = o3_dep_producer(self->groups->graph, mlirOperationGetOperand(node->op, i));
    bool counts = from && (self->inside[from->index] ||
                           (from->kind == O3_DEP_MAP && !self->groups->owner[from->index]));
    if (counts && from->index < first) first = from->index;
  }
  return first;
}

/* Takes in producers that only the group reads, from the last to the first. |refusal|, unless NULL, is asked
 * what it has against the group with each of them. */
static void grow_backward(grower_t *self, const o3_dep_node_t *root, join_fn_t joins, root_fn_t refusal) {
  int first = root->index;
  self->num_reads = 0; /* the root is not what was counted on the way forward */
  for (int i = 0; i <= root->index; ++i) {
    if (self->inside[i]) self->num_reads += read_count(&self->groups->graph->nodes[i]);
  }
  for (int i = root->index; i >= first; --i) {
    const o3_dep_node_t *node = &self->groups->graph->nodes[i];
    if (is_inner_operand(self, node) && may_join(self, root, node)) {
      self->inside[i] = join(self, node, joins);
      const char *why = self->inside[i] && refusal ? refusal(self, root, self->inside) : NULL;
      if (why) {
        self->num_reads -= read_count(node);
        self->inside[i] = refuse(self, node, why);
      }
    }
    if (self->inside[i]) first = first_read(self, node, first);
  }
}

/* ---- The finished group ---- */

static const char *stop_reason(const grower_t *self, const o3_dep_node_t *root) {
  if (root->num_users == 0) return "nothing reads the result";
  if (mlirOperationIsNull(mlirOperationGetNextInBlock(root->users[0]->op))) return "the result is an output";
  const char *why = self->reasons[root->users[0]->index];
  if (root->num_users > 1 && !why) why = "several ops read the result";
  MlirStringRef label = o3_op_label(root->users[0]->op);
  const no_attention_t *no = &self->no_attention[self->seed->index];
  if (no->why)
    return o3_arena_printf(self->groups->arena, "%.*s: no attention because of %.*s: %s", O3_STR_ARGS(label),
                           O3_STR_ARGS(o3_op_label(no->stopped->op)), no->why);
  return o3_arena_printf(self->groups->arena, "%.*s: %s", O3_STR_ARGS(label),
                         why ? why : "no elementwise op or row reduction");
}

static o3_status_t finish(grower_t *self, o3_group_kind_t kind, o3_dep_node_t *root) {
  o3_groups_t *groups = self->groups;
  o3_group_t *group = O3_ARENA_NEW(groups->arena, o3_group_t);
  O3_TRY_ALLOC(group);
  *group = (o3_group_t){.kind = kind,
                        .root = root,
                        .members = o3_ptr_vec(groups->arena),
                        .reasons = o3_ptr_vec(groups->arena),
                        .stop = stop_reason(self, root)};
  O3_TRY_ALLOC(group->stop);
  for (int i = 0; i <= root->index; ++i) {
    if (!self->inside[i]) continue;
    groups->owner[i] = group;
    bool ok = o3_ptr_vec_push(&group->members, &groups->graph->nodes[i]) &&
              o3_ptr_vec_push(&group->reasons, (void *)(uintptr_t)(self->reasons[i] ? self->reasons[i] : ""));
    if (!ok) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  if (kind == O3_GROUP_ROWS) {
    MlirAffineMap map = o3_dep_result_map(root->generic);
    group->num_rows = self->num_rows;
    for (int i = 0; i < self->num_rows; ++i)
      group->rows[i] = o3_dep_position(map, self->rows[root->index][i]);
  }
  return o3_ptr_vec_push(&groups->list, group) ? NULL
                                               : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* ---- Contractions ---- */

/* Each element that the op reads of the group is the one that it writes. */
static bool is_aligned(const grower_t *self, const o3_dep_node_t *node) {
  for (int i = 0; i < node->generic->num_inputs; ++i) {
    if (!inner_producer(self, node, i)) continue;
    if (!mlirAffineMapEqual(node->generic->maps[i], o3_dep_result_map(node->generic))) return false;
  }
  return !inner_producer(self, node, node->generic->num_inputs);
}

static bool joins_contraction(grower_t *self, const o3_dep_node_t *node) {
  if (node->kind != O3_DEP_MAP) return refuse(self, node, "it is not elementwise");
  if (!is_aligned(self, node))
    return refuse(self, node, "it reads the product in another order than it writes");
  const char *why = self->groups->machine->kernels->refuse_epilogue(self->seed->op, node->op);
  if (why) return refuse(self, node, why);
  return accept(self, node, "elementwise on the finished product");
}

static bool has_type_of_seed(const grower_t *self, const o3_dep_node_t *root) {
  return mlirTypeEqual(result_type(root), result_type(self->seed));
}

/* The ops from what the sums start at to |root|, of those from number |first|. */
static const char *refuse_conversion(grower_t *self, int first, const o3_dep_node_t *root,
                                     const bool *needed) {
  const o3_machine_t *machine = self->groups->machine;
  const o3_dep_graph_t *graph = self->groups->graph;
  MlirOperation ops[MAX_CONVERTED];
  int count = 0;
  if (!machine->kernels->refuse_conversion) return "its element type is not the product's";
  const o3_dep_generic_t *product = self->seed->generic;
  const o3_dep_node_t *start =
      o3_dep_producer(graph, mlirOperationGetOperand(product->op, product->num_inputs));
  if (start && start->kind != O3_DEP_EMPTY) ops[count++] = start->op;
  for (int i = first; i <= root->index; ++i) {
    if (!needed[i] || &graph->nodes[i] == start) continue;
    if (count == MAX_CONVERTED) return "too many ops follow the product";
    ops[count++] = graph->nodes[i].op;
  }
  return machine->kernels->refuse_conversion(machine->gpu, count, ops);
}

/* The op of the group that gives all of |root|'s result in a narrower type; NULL when none does. */
static const o3_dep_node_t *narrower(const grower_t *self, const o3_dep_node_t *root) {
  MlirOperation only = mlirBlockGetFirstOperation(root->generic->body);
  if (root->kind != O3_DEP_MAP || root->generic->num_inputs != 1 || !o3_op_is(only, "arith.extf"))
    return NULL;
  const o3_dep_node_t *from = inner_producer(self, root, 0);
  bool whole = mlirAffineMapEqual(root->generic->maps[0], o3_dep_result_map(root->generic));
  return from && from != self->seed && whole && count_body(root) == 1 ? from : NULL;
}

/* Another kernel can read what this one gives in the narrower type. */
static bool is_widened_later(grower_t *self, const o3_dep_node_t *root, const bool *needed) {
  const o3_dep_node_t *from = narrower(self, root);
  bool read =
      from && root->num_users > 0 && !mlirOperationIsNull(mlirOperationGetNextInBlock(root->users[0]->op));
  return read && self->groups->machine->kernels->refuse_conversion &&
         !refuse_conversion(self, self->seed->index, from, needed);
}

/* The product lies in the result's memory until it is finished, unless a kernel keeps its sums elsewhere. */
static const char *refuse_contraction_root(grower_t *self, const o3_dep_node_t *root, const bool *needed) {
  if (is_widened_later(self, root, needed))
    return "it widens the result, of which the narrower is less to store";
  return has_type_of_seed(self, root) ? NULL : refuse_conversion(self, self->seed->index, root, needed);
}

/* What a product's kernel gives in a narrower type is less to read than the product itself. */
static bool narrows_product(const grower_t *self, const o3_dep_node_t *node) {
  if (node->generic->num_inputs != 1) return false;
  const o3_dep_node_t *from = o3_dep_producer(self->groups->graph, mlirOperationGetOperand(node->op, 0));
  MlirType to = o3_type_element(result_type(node));
  return from && from->kind == O3_DEP_CONTRACTION &&
         o3_type_bits(to) < o3_type_bits(o3_type_element(result_type(from)));
}

static bool joins_as_operand(grower_t *self, const o3_dep_node_t *node) {
  if (narrows_product(self, node))
    return refuse(self, node, "its product's kernel gives it, which is less to read");
  for (int u = 0; u < node->num_users; ++u) {
    const o3_dep_node_t *user = node->users[u];
    if (user == self->seed) return refuse(self, node, "the product reads its input several times");
    for (int i = 0; i < user->generic->num_inputs; ++i) {
      if (o3_dep_producer(self->groups->graph, mlirOperationGetOperand(user->op, i)) != node) continue;
      if (!mlirAffineMapEqual(user->generic->maps[i], o3_dep_result_map(user->generic)))
        return refuse(self, node, "it would be computed again for each element of a broadcast");
    }
  }
  const char *why = self->groups->machine->kernels->refuse_epilogue(self->seed->op, node->op);
  return why ? refuse(self, node, why) : accept(self, node, "elementwise input of the epilogue");
}

/* The sums must start inside the kernel: at a fill, or at a map that nothing else reads. */
static bool take_initial_value(grower_t *self) {
  const o3_dep_generic_t *product = self->seed->generic;
  MlirValue initial = mlirOperationGetOperand(product->op, product->num_inputs);
  o3_dep_node_t *node = o3_dep_producer(self->groups->graph, initial);
  if (!node) return false;
  if (node->kind == O3_DEP_FILL || node->kind == O3_DEP_EMPTY) return true;
  bool fits = node->kind == O3_DEP_MAP && node->num_users == 1 && !self->groups->owner[node->index] &&
              !self->groups->machine->kernels->refuse_epilogue(self->seed->op, node->op);
  if (fits) self->inside[node->index] = accept(self, node, "what the sums start at");
  return fits;
}

/* Whether a kernel that keeps sums elsewhere takes the group as it is. */
static bool has_own_sums(grower_t *self, const o3_dep_node_t *root) {
  return self->groups->machine->kernels->refuse_conversion && !refuse_conversion(self, 0, root, self->inside);
}

/* An input with a border that only the product reads is not made: the kernel knows where the image ends. */
static void take_padding(grower_t *self, const o3_dep_node_t *root) {
  const o3_kernel_support_t *kernels = self->groups->machine->kernels;
  o3_dep_node_t *node = o3_dep_producer(self->groups->graph, mlirOperationGetOperand(self->seed->op, 0));
  /* Operand 0 of a product that reads its inputs in its body is what the sums start at, which is inside. */
  bool taken = !kernels->refuse_conversion || has_own_sums(self, root);
  bool fits = node && taken && kernels->refuse_padding && node->kind == O3_DEP_MAP && node->num_users == 1 &&
              !node->captured && !self->groups->owner[node->index] && !self->inside[node->index];
  if (!fits) return;
  const char *why = kernels->refuse_padding(self->groups->machine->gpu, self->seed->op, node->op);
  self->inside[node->index] =
      why ? refuse(self, node, why) : accept(self, node, "border of the input, which is not copied");
}

static const char *refuse_converted(grower_t *self, const o3_dep_node_t *root, const bool *inside) {
  return refuse_conversion(self, 0, root, inside);
}

/* Elementwise inputs, of which a kernel that keeps sums elsewhere is asked for each. */
static void grow_operands(grower_t *self, const o3_dep_node_t *root) {
  grow_backward(self, root, joins_as_operand, has_own_sums(self, root) ? refuse_converted : NULL);
}

static o3_status_t group_contraction(grower_t *self, o3_dep_node_t *seed) {
  o3_dep_node_t *root;
  if (self->groups->machine->kernels->refuse_contraction(seed->op)) return NULL;
  grow_forward(self, seed, "product", joins_contraction);
  O3_TRY(choose_root(self, refuse_contraction_root, &root));
  if (!root || !take_initial_value(self)) return NULL;
  take_padding(self, root);
  grow_operands(self, root);
  return finish(self, O3_GROUP_CONTRACTION, root);
}

/* ---- Winograd convolutions ---- */

/* All members are read inside of the kernel only. */
static bool find_chain(const grower_t *self, const o3_dep_node_t *seed, int *count, o3_dep_node_t **chain) {
  MlirOperation members[O3_KERNEL_MAX_CHAIN];
  const o3_kernel_support_t *kernels = self->groups->machine->kernels;
  *count = kernels->winograd ? kernels->winograd(seed->op, members) : 0;
  for (int i = 0; i < *count; ++i) {
    chain[i] = o3_dep_node_of(self->groups->graph, members[i]);
    if (!chain[i] || !chain[i]->generic || chain[i]->captured || chain[i]->num_users != 1 ||
        self->groups->owner[chain[i]->index])
      return false;
  }
  return *count > 0;
}

static o3_status_t group_winograd(grower_t *self, o3_dep_node_t *seed) {
  o3_dep_node_t *root, *chain[O3_KERNEL_MAX_CHAIN];
  int count;
  if (!find_chain(self, seed, &count, chain)) return NULL;
  grow_forward(self, seed, "transform of the products", joins_contraction);
  O3_TRY(choose_root(self, refuse_contraction_root, &root));
  if (!root || !take_initial_value(self)) return NULL;
  for (int i = 0; i < count; ++i) {
    bool product = chain[i]->kind == O3_DEP_CONTRACTION;
    self->inside[chain[i]->index] = accept(self, chain[i],
                                           product                         ? "product of each point"
                                           : chain[i]->generic->num_inputs ? "transform of the input"
                                                                           : "border of the input");
  }
  grow_backward(self, root, joins_as_operand, NULL);
  return finish(self, O3_GROUP_WINOGRAD, root);
}

/* ---- Rows ---- */

/* The loops of |to| that count the rows, through operand |operand| which |from| makes; -1 where there is
 * none. */
static void rows_forward(const grower_t *self, const o3_dep_node_t *from, const o3_dep_node_t *to,
                         int operand, int *rows) {
  for (int i = 0; i < self->num_rows; ++i) {
    int position = o3_dep_position(o3_dep_result_map(from->generic), self->rows[from->index][i]);
    rows[i] = position < 0 ? -1 : o3_dep_loop(to->generic->maps[operand], position);
    if (rows[i] >= 0 && to->generic->reduction[rows[i]]) rows[i] = -1;
  }
}

/* The same for |from|, which makes operand |operand| of |to|. */
static void rows_backward(const grower_t *self, const o3_dep_node_t *from, const o3_dep_node_t *to,
                          int operand, int *rows) {
  for (int i = 0; i < self->num_rows; ++i) {
    int position = o3_dep_position(to->generic->maps[operand], self->rows[to->index][i]);
    rows[i] = position < 0 ? -1 : o3_dep_loop(o3_dep_result_map(from->generic), position);
  }
}

static bool are_rows(const grower_t *self, const int *rows) {
  for (int i = 0; i < self->num_rows; ++i) {
    if (rows[i] < 0) return false;
  }
  return true;
}

/* A sum's initial value has to be made in the kernel: the kernel's result takes its place. */
static bool starts_inside(const grower_t *self, const o3_dep_node_t *node) {
  MlirValue initial = mlirOperationGetOperand(node->op, node->generic->num_inputs);
  const o3_dep_node_t *from = o3_dep_producer(self->groups->graph, initial);
  return from && (from->kind == O3_DEP_FILL || from->kind == O3_DEP_EMPTY);
}

static bool joins_rows(grower_t *self, const o3_dep_node_t *node) {
  int *rows = self->rows[node->index];
  bool first = true;
  if (node->kind != O3_DEP_MAP && node->kind != O3_DEP_REDUCTION)
    return refuse(self, node, "it is neither elementwise nor a reduction");
  if (node->kind == O3_DEP_REDUCTION && !starts_inside(self, node))
    return refuse(self, node, "its sums start at what was there before");
  for (int i = 0; i < node->generic->num_operands; ++i) {
    const o3_dep_node_t *producer = inner_producer(self, node, i);
    int found[O3_IR_MAX_RANK];
    if (!producer) continue;
    rows_forward(self, producer, node, i, first ? rows : found);
    if (!are_rows(self, first ? rows : found)) return refuse(self, node, "it reads across rows");
    if (!first && memcmp(rows, found, (size_t)self->num_rows * sizeof(int)) != 0)
      return refuse(self, node, "it reads from two different rows");
    first = false;
  }
  return accept(self, node, node->kind == O3_DEP_MAP ? "elementwise within the row" : "reduces the same row");
}

/* Bytes of a row of the node's result; -1: known only at run time. */
static int64_t row_bytes(const grower_t *self, const o3_dep_node_t *node) {
  MlirType type = result_type(node);
  int64_t bytes = o3_type_bits(o3_type_element(type)) / 8;
  for (int r = 0; r < o3_type_rank(type); ++r) {
    int loop = o3_dep_loop(o3_dep_result_map(node->generic), r);
    bool counts_rows = false;
    for (int i = 0; i < self->num_rows; ++i) counts_rows |= self->rows[node->index][i] == loop;
    if (counts_rows) continue;
    int64_t size = o3_type_dim(type, r);
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return -1;
  }
  return bytes;
}

static bool root_overwrites(const o3_dep_node_t *root, const o3_dep_node_t *node) {
  if (!mlirTypeEqual(result_type(root), result_type(node))) return false;
  for (int i = 0; i < root->generic->num_inputs; ++i) {
    bool reads = mlirValueEqual(mlirOperationGetOperand(root->op, i), mlirOperationGetResult(node->op, 0));
    if (reads && mlirAffineMapEqual(root->generic->maps[i], o3_dep_result_map(root->generic))) return true;
  }
  return false;
}

/* Whether an input of |node| that is not |besides| tells how long loop |dim| is. One that is made of
 * positions alone, as gathered elements are, may be merged and then tells nothing. */
static bool tells_loop(const grower_t *self, const o3_dep_node_t *node, const o3_dep_node_t *besides,
                       int dim) {
  const o3_dep_generic_t *generic = node->generic;
  for (int i = 0; i < generic->num_inputs; ++i) {
    const o3_dep_node_t *producer =
        o3_dep_producer(self->groups->graph, mlirOperationGetOperand(generic->op, i));
    bool is_silent = producer && producer->kind == O3_DEP_MAP && !producer->generic->num_inputs;
    if ((besides && producer == besides) || is_silent) continue;
    for (int p = 0; p < (int)mlirAffineMapGetNumResults(generic->maps[i]); ++p) {
      if (o3_dep_loop(generic->maps[i], p) == dim) return true;
    }
  }
  return false;
}

static bool tells_loops(const grower_t *self, const o3_dep_node_t *node, const o3_dep_node_t *besides,
                        bool reductions) {
  for (int d = 0; d < node->generic->num_dims; ++d) {
    if (node->generic->reduction[d] == reductions && !tells_loop(self, node, besides, d)) return false;
  }
  return true;
}

/* Merging leaves a reduction no operand that tells its loops when they are known from the node's result
 * alone, as those over gathered elements are, whatever is done with each of these on the way. */
static bool is_merged(const grower_t *self, const o3_dep_node_t *node) {
  const o3_dep_node_t *last = node;
  if (node->num_users != 1 || !node->users[0]->generic) return false;
  if (node->kind == O3_DEP_MAP && !o3_fuse_merges(node->generic, node->users[0]->generic)) return false;
  if (tells_loops(self, node, NULL, false) && tells_loops(self, node, NULL, true)) return true;
  for (; last->num_users == 1 && last->users[0]->generic; last = last->users[0]) {
    const o3_dep_node_t *user = last->users[0];
    if (user->kind != O3_DEP_MAP) return tells_loops(self, user, last, true);
    if (tells_loops(self, user, last, false)) return true;
  }
  return true;
}

/* Values of a row that several ops read are kept beside it: one in the result's own row, others on the stack.
 */
static const char *refuse_row_memory(const grower_t *self, const o3_dep_node_t *root, const bool *needed) {
  int64_t total = 0;
  bool overwritten = false;
  for (int i = 0; i < root->index; ++i) {
    const o3_dep_node_t *node = &self->groups->graph->nodes[i];
    if (!needed[i] || is_merged(self, node)) continue;
    int64_t bytes = row_bytes(self, node);
    if (bytes < 0 && (overwritten || !root_overwrites(root, node)))
      return "a row of unknown length has no place on the stack";
    overwritten |= bytes < 0;
    total += bytes < 0 ? 0 : bytes;
  }
  return total <= self->groups->machine->kernels->row_bytes ? NULL
                                                            : "the values of a row do not fit on the stack";
}

/* Rows that lie across memory are columns, which only a kernel of their own is fast for. */
static const char *refuse_columns(const grower_t *self, const o3_dep_node_t *root, const bool *needed) {
  const o3_machine_t *machine = self->groups->machine;
  MlirOperation ops[MAX_CONVERTED];
  int count = 0;
  for (int i = 0; i <= root->index && self->columns; ++i) {
    if (!needed[i]) continue;
    if (count == MAX_CONVERTED) return "a kernel of columns has fewer ops";
    ops[count++] = self->groups->graph->nodes[i].op;
  }
  return self->columns ? machine->kernels->refuse_columns(machine->gpu, count, ops) : NULL;
}

static const char *refuse_rows_root(grower_t *self, const o3_dep_node_t *root, const bool *needed) {
  const char *why = refuse_row_memory(self, root, needed);
  return why ? why : refuse_columns(self, root, needed);
}

static bool joins_rows_as_operand(grower_t *self, const o3_dep_node_t *node) {
  int *rows = self->rows[node->index], found[O3_IR_MAX_RANK];
  bool first = true;
  for (int u = 0; u < node->num_users; ++u) {
    const o3_dep_node_t *user = node->users[u];
    for (int i = 0; i < user->generic->num_operands; ++i) {
      if (o3_dep_producer(self->groups->graph, mlirOperationGetOperand(user->op, i)) != node) continue;
      rows_backward(self, node, user, i, first ? rows : found);
      if (!are_rows(self, first ? rows : found)) return refuse(self, node, "all rows read it");
      if (!first && memcmp(rows, found, (size_t)self->num_rows * sizeof(int)) != 0)
        return refuse(self, node, "two different rows read it");
      first = false;
    }
  }
  return accept(self, node, "elementwise input of the row");
}

/* Whether rows are contiguous: the reduction walks the last dimension. */
static bool reduces_rows(const o3_dep_node_t *node) {
  bool found = false;
  for (int i = 0; i < node->generic->num_inputs; ++i) {
    MlirAffineMap map = node->generic->maps[i];
    int rank = (int)mlirAffineMapGetNumResults(map);
    int last = rank ? o3_dep_loop(map, rank - 1) : -1;
    found |= last >= 0 && node->generic->reduction[last];
  }
  for (int i = 0; i < node->generic->num_inputs; ++i) {
    for (int r = 0; r < (int)mlirAffineMapGetNumResults(node->generic->maps[i]); ++r)
      found &= o3_dep_loop(node->generic->maps[i], r) >= 0 ||
               mlirAffineExprIsAConstant(mlirAffineMapGetResult(node->generic->maps[i], r));
  }
  return found;
}

static void read_seed_rows(grower_t *self, const o3_dep_node_t *seed) {
  MlirAffineMap map = o3_dep_result_map(seed->generic);
  self->num_rows = (int)mlirAffineMapGetNumResults(map);
  for (int i = 0; i < self->num_rows; ++i) self->rows[seed->index][i] = o3_dep_loop(map, i);
}

static o3_status_t group_rows(grower_t *self, o3_dep_node_t *seed) {
  o3_dep_node_t *root;
  self->columns = !reduces_rows(seed);
  if (self->columns && !self->groups->machine->kernels->refuse_columns) return NULL;
  if (!starts_inside(self, seed)) return NULL;
  read_seed_rows(self, seed);
  grow_forward(self, seed, "reduces a row", joins_rows);
  O3_TRY(choose_root(self, refuse_rows_root, &root));
  if (!root) return NULL;
  grow_backward(self, root, joins_rows_as_operand, refuse_rows_root);
  return finish(self, O3_GROUP_ROWS, root);
}

/* ---- Elementwise ---- */

static bool joins_elementwise(grower_t *self, const o3_dep_node_t *node) {
  bool expensive = false, broadcast = false;
  int ops = count_ops(node->generic->body, &expensive);
  for (int u = 0; u < node->num_users; ++u) {
    const o3_dep_generic_t *user = node->users[u]->generic;
    broadcast |= self->repeated[node->users[u]->index];
    for (int i = 0; i < user->num_inputs; ++i) {
      if (o3_dep_producer(self->groups->graph, mlirOperationGetOperand(user->op, i)) != node) continue;
      if (mlirAffineMapEqual(user->maps[i], o3_dep_result_map(user))) continue;
      if (mlirAffineMapGetNumResults(user->maps[i]) == user->num_dims)
        return refuse(self, node, "its result is read in another order");
      broadcast = true;
    }
  }
  if (broadcast && (expensive || ops > CHEAP_OPS))
    return refuse(self, node, "it would be computed again for each element of a broadcast");
  self->repeated[node->index] = broadcast;
  return accept(self, node,
                broadcast ? "cheap enough to compute again" : "elementwise, read by this kernel only");
}

static o3_status_t group_elementwise(grower_t *self, o3_dep_node_t *root) {
  int count = self->groups->graph->count;
  memset(self->inside, 0, (size_t)count * sizeof(bool));
  memset(self->reasons, 0, (size_t)count * sizeof(char *));
  self->inside[root->index] = true;
  self->repeated[root->index] = false;
  self->reasons[root->index] = is_copy(root) ? "moves data" : "elementwise";
  self->seed = root;
  if (!is_copy(root)) grow_backward(self, root, joins_elementwise, NULL);
  return finish(self, is_copy(root) ? O3_GROUP_MOVEMENT : O3_GROUP_ELEMENTWISE, root);
}

/* ---- All ---- */

static o3_status_t group_all(grower_t *self) {
  o3_groups_t *groups = self->groups;
  int count = groups->graph->count;
  for (int i = 0; i < count; ++i) {
    o3_dep_node_t *node = &groups->graph->nodes[i];
    if (!groups->owner[i] && node->kind == O3_DEP_REDUCTION) O3_TRY(group_winograd(self, node));
  }
  for (int i = 0; i < count; ++i) {
    o3_dep_node_t *node = &groups->graph->nodes[i];
    if (groups->owner[i] || node->kind != O3_DEP_CONTRACTION) continue;
    O3_TRY(o3_group_attention(groups, node, &self->no_attention[i].stopped, &self->no_attention[i].why));
  }
  for (int i = 0; i < count; ++i) {
    o3_dep_node_t *node = &groups->graph->nodes[i];
    if (!groups->owner[i] && node->kind == O3_DEP_CONTRACTION) O3_TRY(group_contraction(self, node));
  }
  for (int i = 0; i < count; ++i) {
    o3_dep_node_t *node = &groups->graph->nodes[i];
    if (!groups->owner[i] && node->kind == O3_DEP_REDUCTION) O3_TRY(group_rows(self, node));
  }
  for (int i = count - 1; i >= 0; --i) {
    o3_dep_node_t *node = &groups->graph->nodes[i];
    if (!groups->owner[i] && node->kind == O3_DEP_MAP) O3_TRY(group_elementwise(self, node));
  }
  return NULL;
}

o3_status_t o3_groups_create(o3_arena_t *arena, const o3_dep_graph_t *graph, const o3_machine_t *machine,
                             bool one_node, o3_groups_t **result) {
  o3_groups_t *groups = O3_ARENA_NEW(arena, o3_groups_t);
  grower_t grower;
  *result = NULL;
  O3_TRY_ALLOC(groups);
  *groups = (o3_groups_t){.arena = arena,
                          .graph = graph,
                          .machine = machine,
                          .one_node = one_node,
                          .owner = O3_ARENA_ARRAY(arena, o3_group_t *, (size_t)graph->count + 1),
                          .list = o3_ptr_vec(arena)};
  O3_TRY_ALLOC(groups->owner);
  O3_TRY(init_grower(&grower, groups));
  O3_TRY(group_all(&grower));
  *result = groups;
  return NULL;
}
