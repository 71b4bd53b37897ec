/* nvptx-place: which memory each buffer lies in, and the copies between the two.
 *
 * Needs: a bufferized module. Guarantees: each alloc, get_global, dealloc of host memory has the attribute
 * o3.host; ops that the host runs touch host memory only; what moves is a memref.copy with o3.to_host or
 * o3.to_device.
 *
 * linalg ops and kernels run on the card, all else on the host. Buffers that may be the same memory (views,
 * what branches and loops make of them) form a class; a class that the card touches lies there, the rest on
 * the host. Neighbouring ops of the host that touch a class of the card are a host region: before it the
 * buffer is copied into one of the host, which stands for it inside, and after it back if it was written:
 *
 *     linalg.generic outs(%c)                        linalg.generic outs(%c)
 *     %x = memref.load %c[]                  ->      %m = memref.alloc() {o3.host}
 *                                                    memref.copy %c, %m {o3.to_host}
 *                                                    %x = memref.load %m[]
 */
#include <string.h>

#include "base/map.h"
#include "fuse/kernel_body.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/nvptx/nvptx.h"
#include "target/nvptx/nvptx_ir.h"

/* A set of memref values that may be the same memory; union-find. */
typedef struct class {
  struct class *parent;
  bool on_card;
} class_t;

typedef struct place {
  o3_pass_env_t *env;
  MlirModule module;
  MlirOperation main;
  o3_str_map_t *kernels;
  o3_ptr_map_t *classes; /* MlirValue.ptr -> class_t */
  bool depends_on_data;  /* the host reads or writes contents */
} place_t;

/* ---- Classes ---- */

static bool is_memref(MlirValue value) { return mlirTypeIsAMemRef(mlirValueGetType(value)); }

static class_t *find(class_t *it) {
  while (it->parent != it) it = it->parent = it->parent->parent;
  return it;
}

/* NULL when memory is out. */
static class_t *class_of(place_t *self, MlirValue value) {
  class_t *it = o3_ptr_map_get(self->classes, value.ptr);
  if (it) return find(it);
  it = O3_ARENA_ARRAY(self->env->arena, class_t, 1);
  if (!it) return NULL;
  *it = (class_t){.parent = it};
  return o3_ptr_map_put(self->classes, value.ptr, it) ? it : NULL;
}

static o3_status_t join(place_t *self, MlirValue a, MlirValue b) {
  if (!is_memref(a) || !is_memref(b)) return NULL;
  class_t *x = class_of(self, a), *y = class_of(self, b);
  O3_TRY_ALLOC(x);
  O3_TRY_ALLOC(y);
  y->parent = x;
  x->on_card |= y->on_card;
  return NULL;
}

static const char *const VIEWS[] = {"memref.subview",          "memref.cast",
                                    "memref.reinterpret_cast", "memref.expand_shape",
                                    "memref.collapse_shape",   "memref.reshape",
                                    "memref.transpose",        "memref.view",
                                    "memref.assume_alignment", "memref.extract_strided_metadata"};

static bool is_view(MlirOperation op) {
  for (size_t i = 0; !mlirOperationIsNull(op) && i < sizeof(VIEWS) / sizeof(VIEWS[0]); ++i)
    if (o3_op_is(op, VIEWS[i])) return true;
  return false;
}

static MlirBlock block_in(MlirOperation op, int region) {
  return mlirRegionGetFirstBlock(mlirOperationGetRegion(op, region));
}

/* Joins operands |from| ... of |op| with the values that |get| gives for 0, 1, ... */
typedef MlirValue (*value_at_fn_t)(MlirOperation op, intptr_t index);
static MlirValue result_at(MlirOperation op, intptr_t i) { return mlirOperationGetResult(op, i); }
static MlirValue first_argument_at(MlirOperation op, intptr_t i) {
  return mlirBlockGetArgument(block_in(op, 0), i);
}
static MlirValue loop_argument_at(MlirOperation op, intptr_t i) {
  return mlirBlockGetArgument(block_in(op, 0), i + 1);
}
static MlirValue second_argument_at(MlirOperation op, intptr_t i) {
  return mlirBlockGetArgument(block_in(op, 1), i);
}
static MlirValue selected(MlirOperation op, intptr_t i) {
  (void)i;
  return mlirOperationGetResult(op, 0);
}
static o3_status_t join_operands(place_t *self, MlirOperation op, intptr_t from, MlirOperation owner,
                                 value_at_fn_t at) {
  for (intptr_t i = from; i < mlirOperationGetNumOperands(op); ++i)
    O3_TRY(join(self, mlirOperationGetOperand(op, i), at(owner, i - from)));
  return NULL;
}

static o3_status_t join_yield(place_t *self, MlirOperation yield) {
  MlirOperation parent = mlirOperationGetParentOperation(yield);
  if (o3_op_is(parent, "scf.while")) return join_operands(self, yield, 0, parent, first_argument_at);
  if (o3_op_is(parent, "scf.for")) O3_TRY(join_operands(self, yield, 0, parent, loop_argument_at));
  return mlirOperationGetNumResults(parent) ? join_operands(self, yield, 0, parent, result_at) : NULL;
}

/* Calls of other functions than kernels (upstream's deallocation has a helper) are the host's. */
static bool runs_on_card(const place_t *self, MlirOperation op) {
  if (o3_op_is(op, "linalg.generic")) return true;
  return !mlirOperationIsNull(o3_fuse_called_kernel(self->kernels, op));
}

static o3_status_t mark_operands(MlirOperation op, void *context) {
  place_t *self = context;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    if (!is_memref(operand)) continue;
    class_t *it = class_of(self, operand);
    O3_TRY_ALLOC(it);
    it->on_card = true;
  }
  return NULL;
}

static o3_status_t classify(MlirOperation op, void *context) {
  place_t *self = context;
  if (runs_on_card(self, op)) {
    O3_TRY(mark_operands(op, self));
    return o3_walk(op, mark_operands, self);
  }
  if (is_view(op)) return join(self, mlirOperationGetOperand(op, 0), mlirOperationGetResult(op, 0));
  if (o3_op_is(op, "arith.select")) return join_operands(self, op, 1, op, selected);
  if (o3_op_is(op, "scf.for")) {
    O3_TRY(join_operands(self, op, 3, op, loop_argument_at));
    return join_operands(self, op, 3, op, result_at);
  }
  if (o3_op_is(op, "scf.while")) return join_operands(self, op, 0, op, first_argument_at);
  if (o3_op_is(op, "scf.condition")) {
    MlirOperation loop = mlirOperationGetParentOperation(op);
    O3_TRY(join_operands(self, op, 1, loop, second_argument_at));
    return join_operands(self, op, 1, loop, result_at);
  }
  return o3_op_is(op, "scf.yield") ? join_yield(self, op) : NULL;
}

static bool is_on_card(place_t *self, MlirValue value) {
  class_t *it = o3_ptr_map_get(self->classes, value.ptr);
  return it && find(it)->on_card;
}

/* ---- What the host touches ---- */

/* Ops that look at sizes and places, not at contents; they run on the host whatever the memory is. */
static const char *const NEUTRAL[] = {"memref.dim",     "memref.rank",
                                      "memref.alloc",   "memref.alloca",
                                      "memref.dealloc", "memref.get_global",
                                      "func.return",    "scf.yield",
                                      "scf.condition",  "memref.extract_aligned_pointer_as_index",
                                      "arith.select"};

static bool is_neutral(MlirOperation op) {
  for (size_t i = 0; i < sizeof(NEUTRAL) / sizeof(NEUTRAL[0]); ++i)
    if (o3_op_is(op, NEUTRAL[i])) return true;
  return is_view(op);
}

typedef struct card_op {
  const place_t *place;
  bool found;
} card_op_t;

static o3_status_t find_card_op(MlirOperation op, void *context) {
  card_op_t *it = context;
  it->found |= runs_on_card(it->place, op);
  return NULL;
}

static bool has_memref_result(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i)
    if (is_memref(mlirOperationGetResult(op, i))) return true;
  return false;
}

/* Whether parts of |op| must be looked at by themselves: some run on the card, or memory comes out of it. */
static o3_status_t is_mixed(const place_t *self, MlirOperation op, bool *mixed) {
  card_op_t card_op = {.place = self};
  *mixed = false;
  if (!mlirOperationGetNumRegions(op)) return NULL;
  O3_TRY(o3_walk(op, find_card_op, &card_op));
  *mixed = card_op.found || has_memref_result(op);
  return NULL;
}

/* ---- Host regions ---- */

/* A buffer of the card that a host region touches. */
typedef struct mirror {
  MlirValue device, host;
  bool written;
} mirror_t;

enum { MAX_MIRRORS = 64 };
typedef struct region {
  place_t *place;
  MlirOperation first, last; /* of one block; null: none yet */
  MlirOperation current;
  int num_mirrors;
  mirror_t mirrors[MAX_MIRRORS];
} region_t;

static MlirValue base_of(MlirValue value) {
  while (is_view(o3_value_def(value)) && mlirOpResultGetResultNumber(value) == 0)
    value = mlirOperationGetOperand(o3_value_def(value), 0);
  return value;
}

static o3_status_t refuse(const region_t *self, const char *why) {
  return o3_status_create(O3_STATUS_UNSUPPORTED, "node '%.*s': on a GPU the host cannot run it: %s",
                          O3_STR_ARGS(o3_op_label(self->current)), why);
}

static mirror_t *find_mirror(region_t *self, MlirValue device) {
  for (int i = 0; i < self->num_mirrors; ++i)
    if (mlirValueEqual(self->mirrors[i].device, device)) return &self->mirrors[i];
  return NULL;
}

/* memref.alloc of |device|'s shape, of host memory, before |before|. */
static MlirValue alloc_host(o3_builder_t *b, MlirValue device) {
  MlirType type = mlirValueGetType(device);
  MlirValue sizes[O3_IR_MAX_RANK];
  int count = 0;
  for (int i = 0; i < o3_type_rank(type); ++i) {
    if (o3_type_dim(type, i) >= 0) continue;
    sizes[count++] =
        o3_build1(b, "memref.dim", o3_build_index_type(b), O3_VALUES(device, o3_build_index(b, i)));
  }
  const int32_t segments[2] = {count, 0};
  return o3_build1_attrs(b, "memref.alloc", type, count, sizes,
                         O3_ATTRS({"alignment", o3_attr_i64(b->context, O3_CPU_ALIGNMENT)},
                                  {"operandSegmentSizes", mlirDenseI32ArrayGet(b->context, 2, segments)},
                                  {O3_NVPTX_HOST_ATTR, mlirUnitAttrGet(b->context)}));
}

static void copy(o3_builder_t *b, MlirValue from, MlirValue to, const char *direction) {
  o3_op_spec_t spec = {.name = "memref.copy",
                       .num_operands = 2,
                       .operands = (MlirValue[]){from, to},
                       .num_attrs = 1,
                       .attrs = (o3_attr_t[]){{direction, mlirUnitAttrGet(b->context)}}};
  o3_build(b, &spec);
}

static bool is_before(MlirOperation a, MlirOperation b) {
  for (a = mlirOperationGetNextInBlock(a); !mlirOperationIsNull(a); a = mlirOperationGetNextInBlock(a))
    if (mlirOperationEqual(a, b)) return true;
  return false;
}

/* Copies at the start of the region, or as soon as the buffer is there. */
static o3_status_t add_mirror(region_t *self, MlirValue device, mirror_t **made) {
  if (self->num_mirrors == MAX_MIRRORS) return refuse(self, "it touches too many buffers of the card");
  if (!mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(mlirValueGetType(device))))
    return refuse(self, "it touches a part of a buffer of the card");
  for (int i = 0; i < self->num_mirrors; ++i)
    if (class_of(self->place, self->mirrors[i].device) == class_of(self->place, device))
      return refuse(self, "it touches one buffer of the card under two names");
  MlirOperation def = o3_value_def(device);
  bool late = !mlirOperationIsNull(def) &&
              mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(self->first)) &&
              is_before(self->first, def);
  o3_builder_t b = late ? o3_builder_after(def) : o3_builder_before(self->first);
  mirror_t *mirror = &self->mirrors[self->num_mirrors++];
  *mirror = (mirror_t){.device = device, .host = alloc_host(&b, device)};
  class_t *host = class_of(self->place, mirror->host);
  O3_TRY_ALLOC(host);
  copy(&b, device, mirror->host, O3_NVPTX_TO_HOST_ATTR);
  *made = mirror;
  return NULL;
}

/* The host's stand-in for |value|: of a view, the same view of the stand-in. */
static o3_status_t stand_in(region_t *self, MlirValue value, MlirValue *made) {
  MlirOperation def = o3_value_def(value);
  if (is_view(def) && mlirOpResultGetResultNumber(value) == 0) {
    MlirValue inner;
    O3_TRY(stand_in(self, mlirOperationGetOperand(def, 0), &inner));
    MlirOperation view = mlirOperationClone(def);
    mlirOperationSetOperand(view, 0, inner);
    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(self->current), self->current, view);
    *made = mlirOperationGetResult(view, 0);
    return NULL;
  }
  mirror_t *mirror = find_mirror(self, value);
  if (!mirror) O3_TRY(add_mirror(self, value, &mirror));
  *made = mirror->host;
  return NULL;
}

static bool is_defined_inside(MlirValue value, MlirOperation op) {
  MlirBlock block = mlirValueIsABlockArgument(value) ? mlirBlockArgumentGetOwner(value)
                                                     : mlirOperationGetBlock(mlirOpResultGetOwner(value));
  return o3_cpu_is_inside(mlirBlockGetParentOperation(block), op);
}

/* |op| is the region's current op or inside of it. */
static o3_status_t use_stand_ins(MlirOperation op, void *context) {
  region_t *self = context;
  bool metadata = is_neutral(op) && !is_view(op);
  for (intptr_t i = 0; !metadata && i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue operand = mlirOperationGetOperand(op, i), host;
    if (!is_memref(operand) || !is_on_card(self->place, operand)) continue;
    if (is_defined_inside(operand, self->current) && !mlirOperationEqual(op, self->current)) continue;
    O3_TRY(stand_in(self, operand, &host));
    bool reads = o3_op_is(op, "memref.load");
    mirror_t *mirror = find_mirror(self, base_of(operand));
    if (mirror && !reads) mirror->written = true;
    mlirOperationSetOperand(op, i, host);
  }
  return NULL;
}

static void close_region(region_t *self) {
  for (int i = 0; i < self->num_mirrors; ++i) {
    o3_builder_t b = o3_builder_after(self->last);
    if (self->mirrors[i].written)
      copy(&b, self->mirrors[i].host, self->mirrors[i].device, O3_NVPTX_TO_DEVICE_ATTR);
    o3_build0(&b, "memref.dealloc", O3_VALUES(self->mirrors[i].host));
  }
  self->first = self->last = (MlirOperation){0};
  self->num_mirrors = 0;
}

typedef struct touch {
  place_t *place;
  bool contents, card;
} touch_t;

static o3_status_t note_touch(MlirOperation op, void *context) {
  touch_t *touch = context;
  if (is_neutral(op)) return NULL;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    if (!is_memref(operand)) continue;
    touch->contents |= !mlirOperationGetNumRegions(op);
    touch->card |= is_on_card(touch->place, operand);
  }
  return NULL;
}

static o3_status_t place_block(place_t *self, MlirBlock block);

static o3_status_t place_regions(place_t *self, MlirOperation op) {
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); ++r) {
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
    for (; !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block)) O3_TRY(place_block(self, block));
  }
  return NULL;
}

static o3_status_t place_op(place_t *self, region_t *region, MlirOperation op) {
  touch_t touch = {.place = self};
  bool mixed;
  if (runs_on_card(self, op)) {
    close_region(region);
    return NULL;
  }
  O3_TRY(is_mixed(self, op, &mixed));
  if (mixed) {
    close_region(region);
    return place_regions(self, op);
  }
  O3_TRY(note_touch(op, &touch));
  O3_TRY(o3_walk(op, note_touch, &touch));
  self->depends_on_data |= touch.contents;
  if (!touch.card) return NULL;
  if (mlirOperationIsNull(region->first)) region->first = op;
  region->last = region->current = op;
  O3_TRY(use_stand_ins(op, region));
  return o3_walk(op, use_stand_ins, region);
}

static o3_status_t place_block(place_t *self, MlirBlock block) {
  region_t *region = O3_ARENA_ARRAY(self->env->arena, region_t, 1);
  O3_TRY_ALLOC(region);
  *region = (region_t){.place = self};
  MlirOperation op = mlirBlockGetFirstOperation(block), last = mlirBlockGetTerminator(block);
  for (MlirOperation next; !mlirOperationIsNull(op) && !mlirOperationEqual(op, last); op = next) {
    next = mlirOperationGetNextInBlock(op);
    O3_TRY(place_op(self, region, op));
  }
  close_region(region);
  return NULL;
}

/* ---- What is left on the host ---- */

static o3_status_t mark_host(MlirOperation op, void *context) {
  place_t *self = context;
  bool dealloc = o3_op_is(op, "memref.dealloc");
  if (!dealloc && !o3_op_is(op, "memref.alloc") && !o3_op_is(op, "memref.get_global")) return NULL;
  MlirValue memory = dealloc ? mlirOperationGetOperand(op, 0) : mlirOperationGetResult(op, 0);
  if (!is_on_card(self, memory)) o3_op_attr_set(op, O3_NVPTX_HOST_ATTR, mlirUnitAttrGet(self->env->context));
  return NULL;
}

static o3_status_t mark_interface(place_t *self, const char *name, intptr_t count, value_at_fn_t at,
                                  MlirOperation of, bool *any) {
  int64_t *host = O3_ARENA_ARRAY(self->env->arena, int64_t, (size_t)count + 1);
  O3_TRY_ALLOC(host);
  for (intptr_t i = 0; i < count; ++i) {
    host[i] = !is_on_card(self, at(of, i));
    *any |= host[i];
  }
  o3_op_attr_set(mlirModuleGetOperation(self->module), name,
                 o3_attr_ints(self->env->context, (int)count, host));
  return NULL;
}

static MlirValue operand_at(MlirOperation op, intptr_t i) { return mlirOperationGetOperand(op, i); }

o3_status_t o3_nvptx_place(o3_pass_env_t *env, MlirModule module) {
  place_t self = {.env = env,
                  .module = module,
                  .main = o3_module_func(module, "main"),
                  .classes = o3_ptr_map_create(env->arena)};
  o3_nvptx_load_dialects(env->context);
  O3_TRY_ALLOC(self.classes);
  O3_TRY(o3_fuse_list_kernels(env->arena, module, &self.kernels));
  O3_TRY(o3_walk(self.main, classify, &self));
  MlirBlock body = o3_func_body(self.main);
  MlirOperation end = mlirBlockGetTerminator(body);
  bool host_arguments = false, host_results = false;
  O3_TRY(place_block(&self, body));
  O3_TRY(o3_walk(self.main, mark_host, &self));
  O3_TRY(mark_interface(&self, O3_NVPTX_HOST_ARGUMENTS_ATTR, mlirBlockGetNumArguments(body),
                        first_argument_at, self.main, &host_arguments));
  O3_TRY(mark_interface(&self, O3_NVPTX_HOST_RESULTS_ATTR, mlirOperationGetNumOperands(end), operand_at, end,
                        &host_results));
  if (!self.depends_on_data)
    o3_op_attr_set(mlirModuleGetOperation(module), O3_NVPTX_REPLAYABLE_ATTR, mlirUnitAttrGet(env->context));
  return NULL;
}
