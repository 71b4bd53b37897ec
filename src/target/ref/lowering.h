/* The lowering as the rules of single ops see it: one op of the o3 dialect in, linalg, tensor, arith, math
 * and scf on tensors out. Rules are rows of lower.def.
 *
 *     o3_status_t o3_lower_relu(o3_lw_t *lw, MlirOperation op, const MlirValue *x, MlirValue *y) {
 *       y[0] = o3_lw_map(lw, op, 0, 1, x, relu_body, NULL);
 *       return NULL;
 *     }
 *
 * The op given is the old one: its operands' types still tell unsigned integers, its attributes and o3.shape
 * are there. |operands| are the new values, whose integers are signless.
 */
#ifndef O3_TARGET_REF_LOWERING_H
#define O3_TARGET_REF_LOWERING_H

#include "analysis/shape.h"
#include "base/map.h"
#include "ir/build.h"
#include "ir/pass.h"

typedef struct o3_lw {
  o3_pass_env_t *env;
  MlirContext context;
  o3_arena_t *arena;
  o3_symbols_t *symbols;
  o3_builder_t builder;     /* where new ops go */
  o3_ptr_map_t *values;     /* old value -> new value's pointer */
  MlirValue *symbol_values; /* for each symbol its index value, null until it is known */
  bool *used;               /* room of o3_lw_size, for each symbol: whether the expression has it */
  MlirValue *operands;      /* likewise: its value or zero */
} o3_lw_t;

typedef o3_status_t (*o3_lower_fn_t)(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                     MlirValue *results);

/* ---- Types and shapes ---- */

/* Signless integers for unsigned ones, i8 for 8-bit floats, also inside tensors. */
MlirType o3_lw_type(MlirType type);
/* Old operand's element type: tells unsigned. */
MlirType o3_lw_old_element(MlirOperation op, int operand);
/* Element type of the old result, and the same made signless. */
MlirType o3_lw_result_element(MlirOperation op, int result);
MlirType o3_lw_new_element(MlirOperation op, int result);
/* Shapes with symbols: of @main's arguments by o3.shape in arg_attrs, of results by o3.shape on the op (one
 * map a result), of block arguments by o3.arg_shapes on the op around the block (one map an argument; see
 * docs/design/ir.md). Values without are of static type. */
void o3_lw_result_shape(const o3_lw_t *lw, MlirOperation op, int result, o3_shape_t *shape);
void o3_lw_operand_shape(const o3_lw_t *lw, MlirOperation op, int operand, o3_shape_t *shape);

/* ---- Values ---- */

/* A size as an index value. */
MlirValue o3_lw_size(o3_lw_t *lw, MlirAffineExpr expr);
/* Gives data symbol |symbol| its value. */
void o3_lw_bind_symbol(o3_lw_t *lw, int symbol, MlirValue index);
/* tensor.empty of the op's result, or of any shape. */
MlirValue o3_lw_empty(o3_lw_t *lw, const o3_shape_t *shape, MlirType element);
/* A tensor full of the scalar value |scalar|. */
MlirValue o3_lw_fill(o3_lw_t *lw, const o3_shape_t *shape, MlirValue scalar);
/* tensor.cast to exactly |type| where the static sizes differ. */
MlirValue o3_lw_cast(o3_lw_t *lw, MlirValue value, MlirType type);
/* Runtime check: cf.assert |condition| (i1), "message" with the op's node name in front. */
void o3_lw_assert(o3_lw_t *lw, MlirOperation op, MlirValue condition, const char *message);

/* ---- linalg.generic ---- */

/* The scalar computation: |args| are the elements of the inputs, then of the outputs' initial values; writes
 * one value for each output to |results|. May call o3_lw_index. */
typedef struct o3_body_args {
  o3_builder_t *builder;
  void *context; /* the rule's own */
  MlirOperation op;
  const MlirValue *args;
  MlirValue *results;
} o3_body_args_t;
typedef void (*o3_body_fn_t)(const o3_body_args_t *in);

enum { O3_GENERIC_MAX_OPERANDS = 16 };

typedef struct o3_generic {
  MlirOperation op;      /* old op: location; may be null */
  const char *iterators; /* a letter for each loop: 'p' parallel, 'r' reduction */
  int num_inputs;
  MlirValue inputs[O3_GENERIC_MAX_OPERANDS];
  int num_outputs;
  MlirValue outputs[2];                        /* initial values: o3_lw_empty when they are not read */
  MlirAffineMap maps[O3_GENERIC_MAX_OPERANDS]; /* inputs' then outputs', from the loops */
  o3_body_fn_t body;
  void *context;
  const char *kernel; /* o3.kernel: "matmul", "conv" for the back end to recognise; or NULL */
} o3_generic_t;
void o3_lw_generic(o3_lw_t *lw, const o3_generic_t *generic, MlirValue *results);

/* The common case: result |index| of |op|, all loops parallel over its dimensions, inputs broadcast to it (by
 * o3.shape: sizes of 1 are repeated, missing leading dimensions too). The operands' shapes are those of the
 * op's first |count| operands. */
MlirValue o3_lw_map(o3_lw_t *lw, MlirOperation op, int index, int count, const MlirValue *inputs,
                    o3_body_fn_t body, void *context);
/* The same with everything explicit: a result of |shape| and |element|; input i has shape shapes[i]. */
MlirValue o3_lw_map_shaped(o3_lw_t *lw, const o3_shape_t *shape, MlirType element, int count,
                           const MlirValue *inputs, const o3_shape_t *shapes, o3_body_fn_t body,
                           void *context);
/* No inputs: each element computed from its position alone (through o3_lw_index and tensor.extract of values
 * from outside, which linalg allows). The road of all gathers. */
MlirValue o3_lw_generate(o3_lw_t *lw, const o3_shape_t *shape, MlirType element, o3_body_fn_t body,
                         void *context);

/* Inside a body: the loop's position as index, and elements of any tensor at index positions. */
MlirValue o3_lw_index(o3_builder_t *builder, int loop);
MlirValue o3_lw_extract(o3_builder_t *builder, MlirValue tensor, int rank, const MlirValue *position);

/* Maps. */
MlirAffineMap o3_lw_identity(const o3_lw_t *lw, int rank);
/* (d0, ..., d<loops-1>) -> (d<list[0]>, ...) */
MlirAffineMap o3_lw_projection(const o3_lw_t *lw, int loops, int count, const int64_t *list);
/* From |loops| dimensions that stand for |to|, to an operand of shape |from| that broadcasts to it. */
MlirAffineMap o3_lw_broadcast_map(const o3_lw_t *lw, const o3_shape_t *from, const o3_shape_t *to);

/* ---- Reshaping ---- */
MlirValue o3_lw_reshape(o3_lw_t *lw, MlirValue value, const o3_shape_t *from, const o3_shape_t *to);

/* ---- Scalars ---- */
/* arith: the identity of a reduction kind ("sum", "prod", "max", "min", ...) in |element|. */
MlirValue o3_lw_scalar(o3_builder_t *builder, MlirType element, double value);
/* Whether elements of this old type are floats, signed or unsigned integers (i1 is unsigned). */
typedef enum o3_number_kind { O3_NUMBER_FLOAT, O3_NUMBER_SIGNED, O3_NUMBER_UNSIGNED } o3_number_kind_t;
o3_number_kind_t o3_number_kind(MlirType old_element);
/* Converts one scalar: |from| and |to| are old types (ui8 ...). Floats to integers towards zero, saturating
 * as the range demands; to i1 is != 0. */
MlirValue o3_lw_convert(o3_builder_t *builder, MlirValue x, MlirType from, MlirType to);
/* The same, but what is beyond the largest number of an 8-bit float becomes infinity, or NaN where the format
 * has none, instead of that number. */
MlirValue o3_lw_convert_beyond(o3_builder_t *builder, MlirValue x, MlirType from, MlirType to);

/* On a contraction of f32 whose factors may be rounded to tf32. */
#define O3_LW_TF32 "o3.tf32"

/* On an arith.truncf to half precision that is a Cast of the model, which no back end leaves out. */
#define O3_LW_ROUNDS "o3.rounds"

/* On the op that ends a conversion of an 8-bit float to f32: its type. */
#define O3_LW_FLOAT8 "o3.float8"

/* |node| name of the op for messages, arena memory. */
const char *o3_lw_who(o3_lw_t *lw, MlirOperation op);

#endif
