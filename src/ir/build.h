/* Builder: makes operations at an insertion point.
 *
 *     o3_builder_t b = o3_builder_at_end(block, loc);
 *     MlirValue sum = o3_build1(&b, "arith.addf", f32, O3_VALUES(x, y));
 *     MlirValue t = o3_build1_attrs(&b, "o3.transpose", type, O3_VALUES(x), O3_ATTRS({"perm", perm}));
 */
#ifndef O3_IR_BUILD_H
#define O3_IR_BUILD_H

#include "ir/ir.h"

/* An insertion point: before |before|, or at the end of |block| when |before| is null. */
typedef struct o3_builder {
  MlirContext context;
  MlirLocation location;
  MlirBlock block;
  MlirOperation before;
} o3_builder_t;

typedef struct o3_attr {
  const char *name;
  MlirAttribute value; /* a null attribute is left out */
} o3_attr_t;

/* Everything about a new operation. */
typedef struct o3_op_spec {
  const char *name;
  int num_operands;
  const MlirValue *operands;
  int num_results;
  const MlirType *results;
  int num_attrs;
  const o3_attr_t *attrs;
  int num_regions;
  const MlirRegion *regions; /* taken */
} o3_op_spec_t;

/* A count and an array from a list of values, or of attributes. */
#define O3_VALUES(...) \
  (int)(sizeof((MlirValue[]){__VA_ARGS__}) / sizeof(MlirValue)), (const MlirValue[]) { __VA_ARGS__ }
#define O3_ATTRS(...) \
  (int)(sizeof((o3_attr_t[]){__VA_ARGS__}) / sizeof(o3_attr_t)), (const o3_attr_t[]) { __VA_ARGS__ }
#define O3_NO_VALUES 0, NULL

o3_builder_t o3_builder_at_end(MlirBlock block, MlirLocation location);
o3_builder_t o3_builder_before(MlirOperation op); /* takes the op's location */
o3_builder_t o3_builder_after(MlirOperation op);

MlirOperation o3_build(o3_builder_t *builder, const o3_op_spec_t *spec);

/* One result, no regions. */
MlirValue o3_build1(o3_builder_t *builder, const char *name, MlirType result, int num_operands,
                    const MlirValue *operands);
MlirValue o3_build1_attrs(o3_builder_t *builder, const char *name, MlirType result, int num_operands,
                          const MlirValue *operands, int num_attrs, const o3_attr_t *attrs);
/* No result. */
MlirOperation o3_build0(o3_builder_t *builder, const char *name, int num_operands, const MlirValue *operands);

/* ---- Scalars ---- */
MlirType o3_build_index_type(const o3_builder_t *builder);
MlirValue o3_build_index(o3_builder_t *builder, int64_t value);
/* arith.constant of a signless integer, index or float type. */
MlirValue o3_build_int(o3_builder_t *builder, MlirType type, int64_t value);
MlirValue o3_build_float(o3_builder_t *builder, MlirType type, double value);
/* The number |value| in |type|, integer or float. */
MlirValue o3_build_number(o3_builder_t *builder, MlirType type, double value);
/* arith.cmpi / arith.cmpf with MLIR's predicate numbers. */
typedef enum o3_cmpi {
  O3_CMPI_EQ,
  O3_CMPI_NE,
  O3_CMPI_SLT,
  O3_CMPI_SLE,
  O3_CMPI_SGT,
  O3_CMPI_SGE,
  O3_CMPI_ULT,
  O3_CMPI_ULE,
  O3_CMPI_UGT,
  O3_CMPI_UGE
} o3_cmpi_t;
typedef enum o3_cmpf {
  O3_CMPF_FALSE,
  O3_CMPF_OEQ,
  O3_CMPF_OGT,
  O3_CMPF_OGE,
  O3_CMPF_OLT,
  O3_CMPF_OLE,
  O3_CMPF_ONE,
  O3_CMPF_ORD,
  O3_CMPF_UEQ,
  O3_CMPF_UGT,
  O3_CMPF_UGE,
  O3_CMPF_ULT,
  O3_CMPF_ULE,
  O3_CMPF_UNE,
  O3_CMPF_UNO
} o3_cmpf_t;
MlirValue o3_build_cmpi(o3_builder_t *builder, o3_cmpi_t predicate, MlirValue a, MlirValue b);
MlirValue o3_build_cmpf(o3_builder_t *builder, o3_cmpf_t predicate, MlirValue a, MlirValue b);
MlirValue o3_build_select(o3_builder_t *builder, MlirValue condition, MlirValue a, MlirValue b);
/* Same-type binary op: o3_build2(b, "arith.addi", x, y). Result type is x's. */
MlirValue o3_build2(o3_builder_t *builder, const char *name, MlirValue a, MlirValue b);
MlirValue o3_build_unary(o3_builder_t *builder, const char *name, MlirValue a);
/* The affine expression |expr| over symbols only, as an index value; |symbols| are index values. */
MlirValue o3_build_affine(o3_builder_t *builder, MlirAffineExpr expr, int num_symbols,
                          const MlirValue *symbols);

/* ---- Structured control flow ---- */

/* scf.for from |lower| to |upper| by |step| carrying |inits|; |body| gets the builder inside the loop, the
 * induction variable and the carried values, and writes the next values to |next|. */
typedef o3_status_t (*o3_for_body_fn_t)(o3_builder_t *builder, void *context, MlirValue index,
                                        const MlirValue *carried, MlirValue *next);
typedef struct o3_for {
  MlirValue lower, upper, step; /* index */
  int num_carried;
  const MlirValue *inits;
  o3_for_body_fn_t body;
  void *context;
} o3_for_t;
o3_status_t o3_build_for(o3_builder_t *builder, const o3_for_t *loop, MlirValue *results) O3_MUST_USE;

/* scf.if with results of |types|; each branch writes its values to |yields|. */
typedef o3_status_t (*o3_if_body_fn_t)(o3_builder_t *builder, void *context, MlirValue *yields);
typedef struct o3_if {
  MlirValue condition; /* i1 */
  int num_results;
  const MlirType *types;
  o3_if_body_fn_t then_body, else_body; /* else_body may be NULL without results */
  void *context;
} o3_if_t;
o3_status_t o3_build_if(o3_builder_t *builder, const o3_if_t *branch, MlirValue *results) O3_MUST_USE;

#endif
