/* The MLIR C API, and the small vocabulary over it that all of the compiler uses.
 *
 * This folder is the only one that includes mlir-c; the others include this header.
 */
#ifndef O3_IR_IR_H
#define O3_IR_IR_H

#include <mlir-c/AffineExpr.h>
#include <mlir-c/AffineMap.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/IR.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/float8.h"
#include "base/status.h"
#include "ir/block_lanes.h"

/* The largest rank that the compiler takes (and the runtime, O3_MAX_RANK). */
#define O3_IR_MAX_RANK 16

#define O3_STR(text) mlirStringRefCreateFromCString(text)

/* "%.*s" arguments of a string reference. */
#define O3_STR_ARGS(ref) (int)(ref).length, (ref).data

static inline bool o3_str_equal(MlirStringRef ref, const char *text) {
  return mlirStringRefEqual(ref, mlirStringRefCreateFromCString(text));
}

/* ---- Operations ---- */

/* The op's full name, e.g. "o3.conv". Borrowed from the context. */
MlirStringRef o3_op_name(MlirOperation op);
bool o3_op_is(MlirOperation op, const char *name);
bool o3_op_is_one_of(MlirOperation op, const char *const *names, size_t count);
/* Whether |op|, which may be null, is of the dialect, e.g. "linalg". */
bool o3_op_is_of(MlirOperation op, const char *dialect);

/* The text of the name in the op's location ("Conv_3"), or the op's own name when it has none. */
MlirStringRef o3_op_label(MlirOperation op);
MlirStringRef o3_location_name(MlirLocation location);

/* Attributes by name; NULL attribute when absent. */
MlirAttribute o3_op_attr(MlirOperation op, const char *name);
void o3_op_attr_set(MlirOperation op, const char *name, MlirAttribute attr);
int64_t o3_op_int(MlirOperation op, const char *name, int64_t fallback);
double o3_op_float(MlirOperation op, const char *name, double fallback);
bool o3_op_bool(MlirOperation op, const char *name, bool fallback);
/* Empty (length 0, data NULL) when absent. */
MlirStringRef o3_op_string(MlirOperation op, const char *name);
/* Copies the integers of a DenseI64Array; their count, or -1 when it is absent or has more than |capacity|: a
 * module written by hand may have any number. */
int o3_op_ints(MlirOperation op, const char *name, int64_t *values, int capacity);

/* The op that defines |value|; NULL op for a block argument. */
MlirOperation o3_value_def(MlirValue value);

/* The function `name` of the module; NULL op when absent. */
MlirOperation o3_module_func(MlirModule module, const char *name);
MlirBlock o3_func_body(MlirOperation func);

/* Calls |visit| on all ops inside |root| (not itself), in program order, an op after those in its regions;
 * visit may erase the op it is given. Stops at the first failure. */
typedef o3_status_t (*o3_visit_fn_t)(MlirOperation op, void *context);
o3_status_t o3_walk(MlirOperation root, o3_visit_fn_t visit, void *context) O3_MUST_USE;

/* ---- Types ---- */

/* A ranked tensor; sizes of -1 are dynamic. */
MlirType o3_tensor_type(int rank, const int64_t *sizes, MlirType element);
MlirType o3_memref_type(int rank, const int64_t *sizes, MlirType element);
/* Rank and sizes (-1: dynamic) of a ranked shaped type. */
int o3_type_rank(MlirType type);
int64_t o3_type_dim(MlirType type, int dim);
MlirType o3_type_element(MlirType type);
MlirType o3_type_with_element(MlirType tensor, MlirType element); /* the same sizes */
bool o3_type_is_static(MlirType type);
/* Number of elements of a static shape; -1 when dynamic or too large for int64_t. */
int64_t o3_type_count(MlirType type);

bool o3_type_is_float(MlirType element);    /* f16, bf16, f32, f64, and 8-bit ones */
bool o3_type_is_integer(MlirType element);  /* any width, i1 too */
bool o3_type_is_bool(MlirType element);     /* i1 */
bool o3_type_is_unsigned(MlirType element); /* ui8 ... ui64, and i1 */
/* The format of an 8-bit float of base/float8.def; NULL for other types. Static. */
const o3_float8_t *o3_type_float8(MlirType element);
/* Bits of an element in memory: i1 takes 8. 0 for types that are no numbers. */
int o3_type_bits(MlirType element);

/* printf-able text of a type, attribute or op, malloc'ed. */
char *o3_type_text(MlirType type);
char *o3_attr_text(MlirAttribute attr);

/* ---- Attributes ---- */
MlirAttribute o3_attr_i64(MlirContext context, int64_t value);
MlirAttribute o3_attr_i32(MlirContext context, int32_t value);
MlirAttribute o3_attr_bool(MlirContext context, bool value);
MlirAttribute o3_attr_f32(MlirContext context, double value);
MlirAttribute o3_attr_float(MlirType type, double value);
MlirAttribute o3_attr_string(MlirContext context, const char *text);
MlirAttribute o3_attr_ints(MlirContext context, int count, const int64_t *values); /* DenseI64Array */
MlirAttribute o3_attr_type(MlirType type);
/* Parses MLIR text that the compiler itself wrote; asserts that it is well-formed. */
MlirAttribute o3_attr_parse(MlirContext context, const char *text);
MlirType o3_type_parse(MlirContext context, const char *text);

#endif
