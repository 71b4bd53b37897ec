#include "ir/build.h"

#include <string.h>

#include "base/check.h"

o3_builder_t o3_builder_at_end(MlirBlock block, MlirLocation location) {
  return (o3_builder_t){.context = mlirLocationGetContext(location), .location = location, .block = block};
}

o3_builder_t o3_builder_before(MlirOperation op) {
  return (o3_builder_t){.context = mlirOperationGetContext(op),
                        .location = mlirOperationGetLocation(op),
                        .block = mlirOperationGetBlock(op),
                        .before = op};
}

o3_builder_t o3_builder_after(MlirOperation op) {
  o3_builder_t builder = o3_builder_before(op);
  builder.before = mlirOperationGetNextInBlock(op);
  return builder;
}

/* Most ops have few attributes; the array lives on the stack. */
enum { MAX_ATTRS = 32 };

static int name_attrs(const o3_builder_t *builder, int count, const o3_attr_t *attrs,
                      MlirNamedAttribute *named) {
  int n = 0;
  O3_ASSERT(count <= MAX_ATTRS, "ops have few attributes");
  for (int i = 0; i < count; ++i) {
    if (mlirAttributeIsNull(attrs[i].value)) continue;
    MlirIdentifier name = mlirIdentifierGet(builder->context, O3_STR(attrs[i].name));
    named[n++] = mlirNamedAttributeGet(name, attrs[i].value);
  }
  return n;
}

MlirOperation o3_build(o3_builder_t *builder, const o3_op_spec_t *spec) {
  MlirNamedAttribute named[MAX_ATTRS];
  MlirOperationState state = mlirOperationStateGet(O3_STR(spec->name), builder->location);
  int num_attrs = name_attrs(builder, spec->num_attrs, spec->attrs, named);
  mlirOperationStateAddOperands(&state, spec->num_operands, spec->operands);
  mlirOperationStateAddResults(&state, spec->num_results, spec->results);
  mlirOperationStateAddAttributes(&state, num_attrs, named);
  mlirOperationStateAddOwnedRegions(&state, spec->num_regions, spec->regions);
  MlirOperation op = mlirOperationCreate(&state);
  O3_ASSERT(!mlirOperationIsNull(op), "the op's name is registered and its properties are right");
  if (mlirOperationIsNull(builder->before)) {
    mlirBlockAppendOwnedOperation(builder->block, op);
  } else {
    mlirBlockInsertOwnedOperationBefore(builder->block, builder->before, op);
  }
  return op;
}

MlirValue o3_build1_attrs(o3_builder_t *builder, const char *name, MlirType result, int num_operands,
                          const MlirValue *operands, int num_attrs, const o3_attr_t *attrs) {
  o3_op_spec_t spec = {.name = name,
                       .num_operands = num_operands,
                       .operands = operands,
                       .num_results = 1,
                       .results = &result,
                       .num_attrs = num_attrs,
                       .attrs = attrs};
  return mlirOperationGetResult(o3_build(builder, &spec), 0);
}

MlirValue o3_build1(o3_builder_t *builder, const char *name, MlirType result, int num_operands,
                    const MlirValue *operands) {
  return o3_build1_attrs(builder, name, result, num_operands, operands, 0, NULL);
}

MlirOperation o3_build0(o3_builder_t *builder, const char *name, int num_operands,
                        const MlirValue *operands) {
  o3_op_spec_t spec = {.name = name, .num_operands = num_operands, .operands = operands};
  return o3_build(builder, &spec);
}

/* ---- Scalars ---- */

MlirType o3_build_index_type(const o3_builder_t *builder) { return mlirIndexTypeGet(builder->context); }

MlirValue o3_build_int(o3_builder_t *builder, MlirType type, int64_t value) {
  return o3_build1_attrs(builder, "arith.constant", type, O3_NO_VALUES,
                         O3_ATTRS({"value", mlirIntegerAttrGet(type, value)}));
}

MlirValue o3_build_index(o3_builder_t *builder, int64_t value) {
  return o3_build_int(builder, o3_build_index_type(builder), value);
}

MlirValue o3_build_float(o3_builder_t *builder, MlirType type, double value) {
  return o3_build1_attrs(builder, "arith.constant", type, O3_NO_VALUES,
                         O3_ATTRS({"value", o3_attr_float(type, value)}));
}

MlirValue o3_build_number(o3_builder_t *builder, MlirType type, double value) {
  return o3_type_is_float(type) ? o3_build_float(builder, type, value)
                                : o3_build_int(builder, type, (int64_t)value);
}

MlirValue o3_build_cmpi(o3_builder_t *builder, o3_cmpi_t predicate, MlirValue a, MlirValue b) {
  return o3_build1_attrs(builder, "arith.cmpi", mlirIntegerTypeGet(builder->context, 1), O3_VALUES(a, b),
                         O3_ATTRS({"predicate", o3_attr_i64(builder->context, predicate)}));
}

MlirValue o3_build_cmpf(o3_builder_t *builder, o3_cmpf_t predicate, MlirValue a, MlirValue b) {
  return o3_build1_attrs(builder, "arith.cmpf", mlirIntegerTypeGet(builder->context, 1), O3_VALUES(a, b),
                         O3_ATTRS({"predicate", o3_attr_i64(builder->context, predicate)}));
}

MlirValue o3_build_select(o3_builder_t *builder, MlirValue condition, MlirValue a, MlirValue b) {
  return o3_build1(builder, "arith.select", mlirValueGetType(a), O3_VALUES(condition, a, b));
}

MlirValue o3_build2(o3_builder_t *builder, const char *name, MlirValue a, MlirValue b) {
  return o3_build1(builder, name, mlirValueGetType(a), O3_VALUES(a, b));
}

MlirValue o3_build_unary(o3_builder_t *builder, const char *name, MlirValue a) {
  return o3_build1(builder, name, mlirValueGetType(a), O3_VALUES(a));
}

MlirValue o3_build_affine(o3_builder_t *builder, MlirAffineExpr expr, int num_symbols,
                          const MlirValue *symbols) {
  if (mlirAffineExprIsAConstant(expr)) return o3_build_index(builder, mlirAffineConstantExprGetValue(expr));
  if (mlirAffineExprIsASymbol(expr)) return symbols[mlirAffineSymbolExprGetPosition(expr)];
  MlirAffineMap map = mlirAffineMapGet(builder->context, 0, num_symbols, 1, &expr);
  return o3_build1_attrs(builder, "affine.apply", o3_build_index_type(builder), num_symbols, symbols,
                         O3_ATTRS({"map", mlirAffineMapAttrGet(map)}));
}

/* ---- Structured control flow ---- */

enum { MAX_CARRIED = 64 };

o3_status_t o3_build_for(o3_builder_t *builder, const o3_for_t *loop, MlirValue *results) {
  MlirType types[MAX_CARRIED + 1];
  MlirLocation locations[MAX_CARRIED + 1];
  MlirValue operands[MAX_CARRIED + 3] = {loop->lower, loop->upper, loop->step};
  MlirValue carried[MAX_CARRIED], next[MAX_CARRIED];
  O3_ASSERT(loop->num_carried <= MAX_CARRIED, "loops carry few values");
  types[0] = o3_build_index_type(builder);
  locations[0] = builder->location;
  for (int i = 0; i < loop->num_carried; ++i) {
    types[i + 1] = mlirValueGetType(loop->inits[i]);
    locations[i + 1] = builder->location;
    operands[i + 3] = loop->inits[i];
  }
  MlirBlock block = mlirBlockCreate(loop->num_carried + 1, types, locations);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, block);
  o3_op_spec_t spec = {.name = "scf.for",
                       .num_operands = loop->num_carried + 3,
                       .operands = operands,
                       .num_results = loop->num_carried,
                       .results = types + 1,
                       .num_regions = 1,
                       .regions = &region};
  MlirOperation op = o3_build(builder, &spec);
  for (int i = 0; i < loop->num_carried; ++i) {
    carried[i] = next[i] = mlirBlockGetArgument(block, i + 1);
    results[i] = mlirOperationGetResult(op, i);
  }
  o3_builder_t inner = o3_builder_at_end(block, builder->location);
  O3_TRY(loop->body(&inner, loop->context, mlirBlockGetArgument(block, 0), carried, next));
  o3_build0(&inner, "scf.yield", loop->num_carried, next);
  return NULL;
}

static o3_status_t build_branch(o3_builder_t *builder, MlirRegion region, const o3_if_t *branch,
                                o3_if_body_fn_t body) {
  MlirValue yields[MAX_CARRIED];
  if (!body) return NULL;
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  mlirRegionAppendOwnedBlock(region, block);
  o3_builder_t inner = o3_builder_at_end(block, builder->location);
  O3_TRY(body(&inner, branch->context, yields));
  o3_build0(&inner, "scf.yield", branch->num_results, yields);
  return NULL;
}

o3_status_t o3_build_if(o3_builder_t *builder, const o3_if_t *branch, MlirValue *results) {
  MlirRegion regions[2] = {mlirRegionCreate(), mlirRegionCreate()};
  o3_op_spec_t spec = {.name = "scf.if",
                       .num_operands = 1,
                       .operands = &branch->condition,
                       .num_results = branch->num_results,
                       .results = branch->types,
                       .num_regions = 2,
                       .regions = regions};
  O3_ASSERT(branch->num_results <= MAX_CARRIED, "branches yield few values");
  MlirOperation op = o3_build(builder, &spec);
  O3_TRY(build_branch(builder, mlirOperationGetRegion(op, 0), branch, branch->then_body));
  O3_TRY(build_branch(builder, mlirOperationGetRegion(op, 1), branch, branch->else_body));
  for (int i = 0; i < branch->num_results; ++i) results[i] = mlirOperationGetResult(op, i);
  return NULL;
}
