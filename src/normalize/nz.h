/* The normalizer as the converters of ONNX ops see it: one node in, a few ops of the o3 dialect out.
 *
 * A converter reads its node with o3_node_*, and builds with o3_nz_*. Builders return the result value and
 * never fail by themselves: the first failure is kept in the normalizer, everything after it does nothing and
 * returns a null value, and the driver reports it once the converter is done. So expressions nest:
 *
 *     static o3_status_t convert_hard_sigmoid(o3_nz_t *nz, o3_node_t *node) {
 *       MlirValue x = node->inputs[0];
 *       MlirValue alpha = o3_nz_like(nz, x, o3_node_float(node, "alpha", 0.2));
 *       MlirValue beta = o3_nz_like(nz, x, o3_node_float(node, "beta", 0.5));
 *       MlirValue line = o3_nz_binary(nz, "o3.add", o3_nz_binary(nz, "o3.mul", x, alpha), beta);
 *       node->outputs[0] = o3_nz_clamp(nz, line, 0, 1);
 *       return NULL;
 *     }
 *
 * Facts (shape, known contents) are kept for each value; o3_nz_fact of a null value is a scalar f32.
 */
#ifndef O3_NORMALIZE_NZ_H
#define O3_NORMALIZE_NZ_H

#include "analysis/infer.h"
#include "analysis/shape.h"
#include "base/map.h"
#include "ir/build.h"
#include "ir/pass.h"

typedef struct o3_nz {
  o3_pass_env_t *env;
  MlirContext context;
  MlirModule module;
  o3_arena_t *arena;
  o3_weights_t *weights;
  o3_symbols_t *symbols;
  o3_builder_t builder; /* where new ops go */
  o3_ptr_map_t *facts;  /* new value -> o3_fact_t */
  o3_ptr_map_t *values; /* value of the import stage -> o3_binding_t */
  const char *who;      /* "node 'Conv_3' (Conv)" */
  o3_status_t failure;  /* the first one */
  int depth;            /* of nested subgraphs */
  int num_checked;      /* guards before this one are checked by ops, or hold for the whole run */
  int num_conditionals; /* open branches and loop bodies around the insertion point: see nz_region.h */
} o3_nz_t;

enum { O3_NODE_MAX_INPUTS = 256, O3_NODE_MAX_OUTPUTS = 64 };

/* One o3.node under conversion. */
typedef struct o3_node {
  MlirOperation op;
  const char *op_type; /* "Conv" */
  const char *domain;  /* "" for ONNX's own */
  const char *label;   /* its name in the model */
  int64_t opset;
  int num_inputs; /* trailing omitted inputs are cut off; an omitted input is a null value */
  MlirValue inputs[O3_NODE_MAX_INPUTS];
  int num_outputs;
  bool wanted[O3_NODE_MAX_OUTPUTS];       /* false: the model has no name for it */
  MlirValue outputs[O3_NODE_MAX_OUTPUTS]; /* to be filled in by the converter */
  int num_captures; /* outer values for subgraphs, behind the inputs in the op's operands */
} o3_node_t;

typedef o3_status_t (*o3_convert_fn_t)(o3_nz_t *nz, o3_node_t *node);

/* ---- Reading the node ---- */

/* The input, or a null value when omitted. */
MlirValue o3_node_input(const o3_node_t *node, int index);
bool o3_node_has_input(const o3_node_t *node, int index);
MlirAttribute o3_node_attr(const o3_node_t *node, const char *name);
bool o3_node_has_attr(const o3_node_t *node, const char *name);
int64_t o3_node_int(const o3_node_t *node, const char *name, int64_t fallback);
double o3_node_float(const o3_node_t *node, const char *name, double fallback);
/* The attribute's text, or |fallback|; arena memory. */
const char *o3_node_string(o3_nz_t *nz, const o3_node_t *node, const char *name, const char *fallback);
/* The count, at most |capacity| (more is an error); 0 when absent. */
int o3_node_ints(o3_nz_t *nz, const o3_node_t *node, const char *name, int64_t *values, int capacity);
int o3_node_floats(o3_nz_t *nz, const o3_node_t *node, const char *name, double *values, int capacity);
/* Axis attribute or number made non-negative for |rank|; INVALID_MODEL failure when out of range. */
int o3_nz_axis(o3_nz_t *nz, int64_t axis, int rank);

/* ---- Failing ---- */

/* "node 'Conv_3' (Conv): ..."; keep using the return value as converter status. */
o3_status_t o3_nz_invalid(o3_nz_t *nz, const char *format, ...) O3_PRINTF(2, 3) O3_MUST_USE;
o3_status_t o3_nz_unsupported(o3_nz_t *nz, const char *format, ...) O3_PRINTF(2, 3) O3_MUST_USE;
/* Keeps the failure if it is the first; takes |status|. */
void o3_nz_fail(o3_nz_t *nz, o3_status_t status);
static inline bool o3_nz_failed(const o3_nz_t *nz) { return nz->failure != NULL; }

/* ---- Facts ---- */

const o3_fact_t *o3_nz_fact(const o3_nz_t *nz, MlirValue value);
/* Notes the facts of a value that was built without o3_nz_op*; copied. */
void o3_nz_note(o3_nz_t *nz, MlirValue value, const o3_fact_t *fact);
/* Writes an o3.guard for each guard that is new, if it depends on data or stands in a branch or loop body:
 * they are checked before the next op, which may rely on them. Called by o3_nz_op*. */
void o3_nz_check_guards(o3_nz_t *nz);
int o3_nz_rank(const o3_nz_t *nz, MlirValue value);
MlirType o3_nz_element(const o3_nz_t *nz, MlirValue value);
MlirAffineExpr o3_nz_dim(const o3_nz_t *nz, MlirValue value, int dim);
/* A size that must be constant; failure naming |what| when it is symbolic. */
int64_t o3_nz_static_dim(o3_nz_t *nz, MlirValue value, int dim, const char *what);
/* Constant integer contents of a small tensor, as the parameters of many ops must be: the count, or -1 with a
 * failure naming |what| when they are not known. */
int o3_nz_const_ints(o3_nz_t *nz, MlirValue value, const char *what, int64_t *values, int capacity);
int o3_nz_const_floats(o3_nz_t *nz, MlirValue value, const char *what, double *values, int capacity);
/* Contents as expressions, symbolic ones too: the count, or -1 when unknown (no failure). */
int o3_nz_exprs(const o3_nz_t *nz, MlirValue value, MlirAffineExpr *exprs, int capacity);
/* The contents of a 1-D or scalar integer tensor as sizes, whatever it takes: expressions where they are
 * known, else data symbols bound to its elements by an o3.bind. The elements must not be negative by then:
 * converters resolve -1 and the like with ops first. The tensor's length must be static. The count, or -1
 * with a failure. */
int o3_nz_bind_sizes(o3_nz_t *nz, MlirValue value, const char *what, MlirAffineExpr *exprs, int capacity);

/* ---- Constants ---- */

MlirValue o3_nz_constant(o3_nz_t *nz, MlirAttribute elements); /* o3.constant of an elements attribute */
/* o3.constant of the importer's {values, indices, dims} of a sparse tensor, with its zeros put in. */
MlirValue o3_nz_sparse_constant(o3_nz_t *nz, MlirAttribute sparse);
MlirValue o3_nz_scalar(o3_nz_t *nz, MlirType element, double value); /* rank 0 */
MlirValue o3_nz_like(o3_nz_t *nz, MlirValue x, double value);        /* scalar of x's element type */
MlirValue o3_nz_i64s(o3_nz_t *nz, int count, const int64_t *values); /* 1-D */
/* An i64 tensor (rank 1, or 0 when |scalar|) of affine expressions: a constant when they all are. */
MlirValue o3_nz_sizes(o3_nz_t *nz, int count, const MlirAffineExpr *exprs, bool scalar);
/* |value| (rank 0) repeated to |shape|. */
MlirValue o3_nz_filled(o3_nz_t *nz, const o3_shape_t *shape, MlirType element, double value);

/* ---- Ops ---- */

/* The op |name| with results by its inference rule; the first result. Folded when its contents are known. */
MlirValue o3_nz_op(o3_nz_t *nz, const char *name, int num_operands, const MlirValue *operands, int num_attrs,
                   const o3_attr_t *attrs);
/* The same for ops with several results. */
void o3_nz_op_results(o3_nz_t *nz, const char *name, int num_operands, const MlirValue *operands,
                      int num_attrs, const o3_attr_t *attrs, int num_results, MlirValue *results);
/* The op |name| with results stated by the caller (no inference). */
void o3_nz_op_stated(o3_nz_t *nz, const char *name, int num_operands, const MlirValue *operands,
                     int num_attrs, const o3_attr_t *attrs, int num_results, const o3_fact_t *facts,
                     MlirValue *results);

MlirValue o3_nz_unary(o3_nz_t *nz, const char *name, MlirValue x);
MlirValue o3_nz_binary(o3_nz_t *nz, const char *name, MlirValue a, MlirValue b);
MlirValue o3_nz_select(o3_nz_t *nz, MlirValue condition, MlirValue a, MlirValue b);
MlirValue o3_nz_cast(o3_nz_t *nz, MlirValue x, MlirType element); /* x itself when it has the type */
/* The same; 8-bit floats that do not |saturate| give infinity or NaN beyond their largest number. */
MlirValue o3_nz_cast_float8(o3_nz_t *nz, MlirValue x, MlirType element, bool saturate);
MlirValue o3_nz_clamp(o3_nz_t *nz, MlirValue x, double low, double high);
MlirValue o3_nz_reshape(o3_nz_t *nz, MlirValue x, const o3_shape_t *shape); /* counts must agree: guarded */
MlirValue o3_nz_transpose(o3_nz_t *nz, MlirValue x, const int64_t *perm); /* x itself when perm is identity */
MlirValue o3_nz_broadcast(o3_nz_t *nz, MlirValue x, const o3_shape_t *shape); /* shape = broadcast(x, ...) */
MlirValue o3_nz_unsqueeze(o3_nz_t *nz, MlirValue x, int count,
                          const int64_t *axes); /* axes of the result, sorted */
MlirValue o3_nz_squeeze(o3_nz_t *nz, MlirValue x, int count, const int64_t *axes);
/* kind of o3.reduce, axes non-negative. */
MlirValue o3_nz_reduce(o3_nz_t *nz, MlirValue x, const char *kind, int count, const int64_t *axes,
                       bool keepdims);
MlirValue o3_nz_matmul(o3_nz_t *nz, MlirValue a, MlirValue b);
/* x[start : start + size : 1] along one axis. */
MlirValue o3_nz_slice(o3_nz_t *nz, MlirValue x, int axis, MlirAffineExpr start, MlirAffineExpr size);
MlirValue o3_nz_concat(o3_nz_t *nz, int axis, int count, const MlirValue *values); /* tensor.concat */

MlirType o3_nz_f32(const o3_nz_t *nz);
MlirType o3_nz_i64(const o3_nz_t *nz);
MlirType o3_nz_i1(const o3_nz_t *nz);
/* The element type of an ONNX TensorProto.DataType; a null type with a failure when O3 has none for it. */
MlirType o3_nz_onnx_type(o3_nz_t *nz, int64_t data_type);
MlirAttribute o3_nz_ints_attr(const o3_nz_t *nz, int count, const int64_t *values);
MlirAttribute o3_nz_string_attr(const o3_nz_t *nz, const char *text);
/* affine_map<()[symbols] -> (exprs)>; count may be 0. */
MlirAttribute o3_nz_map_attr(const o3_nz_t *nz, int count, const MlirAffineExpr *exprs);

/* ---- Subgraphs and the graph walk (normalize.c) ---- */

/* What a value of the import stage became: a tensor, or a list of them (ONNX sequences, known while
 * compiling), or nothing (an empty optional). */
typedef enum o3_binding_kind { O3_BINDING_TENSOR, O3_BINDING_SEQUENCE, O3_BINDING_NONE } o3_binding_kind_t;
typedef struct o3_binding {
  o3_binding_kind_t kind;
  MlirValue tensor;
  int count;
  const MlirValue *items;
  MlirType element; /* of a sequence's tensors, for empty ones; may be null */
} o3_binding_t;
/* Of the node's import-stage operand |index| (inputs only), or of its result. */
const o3_binding_t *o3_node_binding(const o3_nz_t *nz, const o3_node_t *node, int index);
void o3_node_bind(o3_nz_t *nz, o3_node_t *node, int output, const o3_binding_t *binding);

/* Converts the body of the subgraph in |attr| at the current insertion point: its formal inputs become
 * |inputs|, its captured values those of the node. |outputs| gets what the body's results became. */
o3_status_t o3_nz_subgraph(o3_nz_t *nz, const o3_node_t *node, const char *attr, int num_inputs,
                           const o3_binding_t *inputs, int capacity, o3_binding_t *outputs, int *num_outputs)
    O3_MUST_USE;
/* How many formal inputs and outputs a subgraph has. */
o3_status_t o3_nz_subgraph_arity(o3_nz_t *nz, const o3_node_t *node, const char *attr, int *num_inputs,
                                 int *num_outputs) O3_MUST_USE;

#endif
