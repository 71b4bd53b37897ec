/* Nest: what a linalg.generic on buffers computes, in the form that loops are made from. */
#ifndef O3_TARGET_CPU_NEST_H
#define O3_TARGET_CPU_NEST_H

#include "base/map.h"
#include "ir/build.h"

enum { O3_NEST_MAX_OPERANDS = 64 };

/* A memref seen as a flat array: the element of iteration i is flat[offset + sum of expr_r(i) * stride_r]. */
typedef struct o3_nest_operand {
  MlirValue value; /* as in the op */
  bool is_memref;
  bool is_contiguous;                       /* row-major without gaps: the layout is the identity */
  int num_terms;                            /* index expressions, one for each dimension of the memref */
  MlirAffineExpr exprs[O3_IR_MAX_RANK];     /* in the iteration's dims; null when merged away */
  MlirAffineExpr all_exprs[O3_IR_MAX_RANK]; /* as in the op */
  int64_t strides[O3_IR_MAX_RANK];          /* elements; -1 when known only at run time */
  int64_t sizes[O3_IR_MAX_RANK];            /* of the memref; -1 at run time */
  /* Set by o3_nest_flatten: */
  MlirValue flat;   /* memref<?xT>, strided<[1]> */
  MlirValue offset; /* index */
  MlirValue stride_values[O3_IR_MAX_RANK];
} o3_nest_operand_t;

typedef struct o3_nest {
  MlirOperation op;
  int num_dims;
  bool reduction[O3_IR_MAX_RANK];
  int merged_into[O3_IR_MAX_RANK];       /* the dim that this one has become a part of, or -1 */
  int64_t sizes[O3_IR_MAX_RANK];         /* iterations; -1 when known only at run time */
  MlirValue size_values[O3_IR_MAX_RANK]; /* set by o3_nest_flatten */
  int num_inputs, num_operands;
  o3_nest_operand_t operands[O3_NEST_MAX_OPERANDS];
  MlirBlock body;
  bool is_opaque; /* set by readers who never clone the body: it may read positions though dims merge */
} o3_nest_t;

/* Reads |op|; false when it is no linalg.generic on buffers of a form that fits. */
bool o3_nest_read(MlirOperation op, o3_nest_t *nest);

/* The same for one on tensors too, as it will be with row-major buffers. */
bool o3_nest_read_any(MlirOperation op, o3_nest_t *nest);

/* One value as an operand that is walked by |map|; false when the map is none of its dimensions. */
bool o3_nest_read_operand(MlirValue value, MlirAffineMap map, o3_nest_operand_t *operand);

/* Sums over one turn add nothing to the positions they are part of: h + i is h when i is 0 only. */
void o3_nest_drop_single_turns(o3_nest_t *nest);

/* Merges neighbouring dims that every operand walks as one: fewer, longer loops. */
void o3_nest_merge(o3_nest_t *nest);
/* The same, but dims in |fixed| stay alone. */
void o3_nest_merge_around(o3_nest_t *nest, const bool *fixed);
/* Merges |count| dims, outermost first, into the last of them; false when some operand does not walk them as
 * one. */
bool o3_nest_merge_dims(o3_nest_t *nest, int count, const int *dims);

/* Builds the flat memrefs, offsets, strides and sizes. */
void o3_nest_flatten(o3_nest_t *nest, o3_builder_t *builder);
/* The same for one operand, a memref. */
void o3_nest_flatten_operand(o3_nest_operand_t *operand, o3_builder_t *builder);

/* The iterations of |dim| (index), before anything was merged. */
MlirValue o3_nest_own_size(const o3_nest_t *nest, int dim, o3_builder_t *builder);

/* The address (index) of |operand|'s element for the iteration |ivs|. */
MlirValue o3_nest_address(const o3_nest_t *nest, const o3_nest_operand_t *operand, o3_builder_t *builder,
                          const MlirValue *ivs);

/* The coefficient of |dim| in a linear expression; false when it is not linear in it. */
bool o3_nest_coefficient(MlirAffineExpr expr, int dim, int64_t *value);
/* How far the address moves when |dim| grows by one: true and the number of elements when that is a constant.
 */
bool o3_nest_step(const o3_nest_operand_t *operand, int dim, int64_t *step);
/* Whether the address is linear in |dim|, and how far it moves as a value (index). */
bool o3_nest_is_linear(const o3_nest_operand_t *operand, int dim);
MlirValue o3_nest_step_value(const o3_nest_operand_t *operand, int dim, o3_builder_t *builder);
/* Whether the operand sees the loops |outer| and |inner| as one loop with |inner|'s step. */
bool o3_nest_walks_as_one(const o3_nest_operand_t *operand, int outer, int inner);
/* Whether the operand's address depends on |dim|. */
bool o3_nest_uses(const o3_nest_operand_t *operand, int dim);
/* Whether the body reads the operand of this number. */
bool o3_nest_reads(const o3_nest_t *nest, int operand);

/* Whether the body yields zero, whatever it reads. */
bool o3_nest_is_zero(const o3_nest_t *nest);

/* Clones the body with |arguments| for its block arguments and |ivs| for linalg.index; gives what it yields.
 */
o3_status_t o3_nest_clone_body(const o3_nest_t *nest, o3_builder_t *builder, const MlirValue *arguments,
                               const MlirValue *ivs, MlirValue *yields) O3_MUST_USE;

/* The same, one op of the body after the other: |map| (MlirValue.ptr to MlirValue.ptr) has what the arguments
 * and the ops before have become, o3_nest_cloned asks it and o3_nest_clone_value adds to it. */
typedef struct o3_nest_cloner {
  o3_ptr_map_t *map;
  const MlirValue *ivs; /* for linalg.index */
} o3_nest_cloner_t;
MlirValue o3_nest_cloned(const o3_nest_cloner_t *cloner, MlirValue value);
o3_status_t o3_nest_clone_value(o3_nest_cloner_t *cloner, MlirValue from, MlirValue to) O3_MUST_USE;
o3_status_t o3_nest_clone_op(o3_nest_cloner_t *cloner, o3_builder_t *builder, MlirOperation op) O3_MUST_USE;

#endif
