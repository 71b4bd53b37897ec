#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/strbuf.h"

MlirStringRef o3_op_name(MlirOperation op) { return mlirIdentifierStr(mlirOperationGetName(op)); }

bool o3_op_is(MlirOperation op, const char *name) {
  return !mlirOperationIsNull(op) && o3_str_equal(o3_op_name(op), name);
}

bool o3_op_is_one_of(MlirOperation op, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (o3_op_is(op, names[i])) return true;
  }
  return false;
}

bool o3_op_is_of(MlirOperation op, const char *dialect) {
  if (mlirOperationIsNull(op)) return false;
  MlirStringRef name = o3_op_name(op);
  size_t length = strlen(dialect);
  return name.length > length && name.data[length] == '.' && memcmp(name.data, dialect, length) == 0;
}

MlirStringRef o3_location_name(MlirLocation location) {
  if (mlirLocationIsAName(location)) return mlirIdentifierStr(mlirLocationNameGetName(location));
  return (MlirStringRef){.data = "", .length = 0};
}

MlirStringRef o3_op_label(MlirOperation op) {
  MlirStringRef name = o3_location_name(mlirOperationGetLocation(op));
  return name.length ? name : o3_op_name(op);
}

MlirAttribute o3_op_attr(MlirOperation op, const char *name) {
  return mlirOperationGetAttributeByName(op, O3_STR(name));
}

void o3_op_attr_set(MlirOperation op, const char *name, MlirAttribute attr) {
  mlirOperationSetAttributeByName(op, O3_STR(name), attr);
}

int64_t o3_op_int(MlirOperation op, const char *name, int64_t fallback) {
  MlirAttribute attr = o3_op_attr(op, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAInteger(attr)) return fallback;
  return mlirIntegerAttrGetValueInt(attr);
}

double o3_op_float(MlirOperation op, const char *name, double fallback) {
  MlirAttribute attr = o3_op_attr(op, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAFloat(attr)) return fallback;
  return mlirFloatAttrGetValueDouble(attr);
}

bool o3_op_bool(MlirOperation op, const char *name, bool fallback) {
  MlirAttribute attr = o3_op_attr(op, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsABool(attr)) return fallback;
  return mlirBoolAttrGetValue(attr);
}

MlirStringRef o3_op_string(MlirOperation op, const char *name) {
  MlirAttribute attr = o3_op_attr(op, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAString(attr)) return (MlirStringRef){0};
  return mlirStringAttrGetValue(attr);
}

int o3_op_ints(MlirOperation op, const char *name, int64_t *values, int capacity) {
  MlirAttribute attr = o3_op_attr(op, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsADenseI64Array(attr)) return -1;
  intptr_t count = mlirDenseArrayGetNumElements(attr);
  if (count > capacity) return -1;
  for (intptr_t i = 0; i < count; ++i) values[i] = mlirDenseI64ArrayGetElement(attr, i);
  return (int)count;
}

MlirOperation o3_value_def(MlirValue value) {
  return mlirValueIsAOpResult(value) ? mlirOpResultGetOwner(value) : (MlirOperation){0};
}

MlirBlock o3_func_body(MlirOperation func) {
  return mlirRegionGetFirstBlock(mlirOperationGetRegion(func, 0));
}

MlirOperation o3_module_func(MlirModule module, const char *name) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (o3_op_is(op, "func.func") && o3_str_equal(o3_op_string(op, "sym_name"), name)) return op;
  }
  return (MlirOperation){0};
}

o3_status_t o3_walk(MlirOperation root, o3_visit_fn_t visit, void *context) {
  intptr_t num_regions = mlirOperationGetNumRegions(root);
  for (intptr_t r = 0; r < num_regions; ++r) {
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(root, r));
    for (; !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block)) {
      MlirOperation op = mlirBlockGetFirstOperation(block);
      while (!mlirOperationIsNull(op)) {
        MlirOperation next = mlirOperationGetNextInBlock(op);
        O3_TRY(o3_walk(op, visit, context));
        O3_TRY(visit(op, context));
        op = next;
      }
    }
  }
  return NULL;
}

/* ---- Types ---- */

static void to_mlir_sizes(int rank, const int64_t *sizes, int64_t *out) {
  for (int i = 0; i < rank; ++i) out[i] = sizes[i] < 0 ? mlirShapedTypeGetDynamicSize() : sizes[i];
}

MlirType o3_tensor_type(int rank, const int64_t *sizes, MlirType element) {
  int64_t dims[O3_IR_MAX_RANK];
  O3_ASSERT(rank <= O3_IR_MAX_RANK, "ranks are checked on import");
  to_mlir_sizes(rank, sizes, dims);
  return mlirRankedTensorTypeGet(rank, dims, element, mlirAttributeGetNull());
}

MlirType o3_memref_type(int rank, const int64_t *sizes, MlirType element) {
  int64_t dims[O3_IR_MAX_RANK];
  O3_ASSERT(rank <= O3_IR_MAX_RANK, "ranks are checked on import");
  to_mlir_sizes(rank, sizes, dims);
  return mlirMemRefTypeContiguousGet(element, rank, dims, mlirAttributeGetNull());
}

int o3_type_rank(MlirType type) { return (int)mlirShapedTypeGetRank(type); }

int64_t o3_type_dim(MlirType type, int dim) {
  return mlirShapedTypeIsDynamicDim(type, dim) ? -1 : mlirShapedTypeGetDimSize(type, dim);
}

MlirType o3_type_element(MlirType type) { return mlirShapedTypeGetElementType(type); }

bool o3_type_is_static(MlirType type) {
  return mlirShapedTypeHasRank(type) && mlirShapedTypeHasStaticShape(type);
}

MlirType o3_type_with_element(MlirType tensor, MlirType element) {
  int64_t sizes[O3_IR_MAX_RANK];
  int rank = o3_type_rank(tensor);
  for (int i = 0; i < rank; ++i) sizes[i] = o3_type_dim(tensor, i);
  return o3_tensor_type(rank, sizes, element);
}

int64_t o3_type_count(MlirType type) {
  if (!o3_type_is_static(type)) return -1;
  int64_t count = 1;
  for (int i = 0; i < o3_type_rank(type); ++i) {
    if (__builtin_mul_overflow(count, o3_type_dim(type, i), &count)) return -1;
  }
  return count;
}

bool o3_type_is_float(MlirType element) { return mlirTypeIsAFloat(element); }
bool o3_type_is_integer(MlirType element) { return mlirTypeIsAInteger(element); }
bool o3_type_is_bool(MlirType element) {
  return mlirTypeIsAInteger(element) && mlirIntegerTypeGetWidth(element) == 1;
}
bool o3_type_is_unsigned(MlirType element) {
  return mlirTypeIsAInteger(element) && (mlirIntegerTypeIsUnsigned(element) || o3_type_is_bool(element));
}

const o3_float8_t *o3_type_float8(MlirType element) {
  if (mlirTypeIsAFloat8E4M3FN(element)) return o3_float8(O3_DTYPE_F8E4M3FN);
  if (mlirTypeIsAFloat8E4M3FNUZ(element)) return o3_float8(O3_DTYPE_F8E4M3FNUZ);
  if (mlirTypeIsAFloat8E5M2(element)) return o3_float8(O3_DTYPE_F8E5M2);
  return mlirTypeIsAFloat8E5M2FNUZ(element) ? o3_float8(O3_DTYPE_F8E5M2FNUZ) : NULL;
}

int o3_type_bits(MlirType element) {
  if (o3_type_is_bool(element)) return 8;
  if (mlirTypeIsAInteger(element)) return (int)mlirIntegerTypeGetWidth(element);
  if (mlirTypeIsAFloat(element)) return (int)mlirFloatTypeGetWidth(element);
  return mlirTypeIsAIndex(element) ? 64 : 0;
}

static void print_to_strbuf(MlirStringRef text, void *buffer) {
  o3_strbuf_append(buffer, text.data, text.length);
}

char *o3_type_text(MlirType type) {
  o3_strbuf_t buffer = O3_STRBUF_INIT;
  mlirTypePrint(type, print_to_strbuf, &buffer);
  return buffer.text;
}

char *o3_attr_text(MlirAttribute attr) {
  o3_strbuf_t buffer = O3_STRBUF_INIT;
  mlirAttributePrint(attr, print_to_strbuf, &buffer);
  return buffer.text;
}

/* ---- Attributes ---- */

MlirAttribute o3_attr_i64(MlirContext context, int64_t value) {
  return mlirIntegerAttrGet(mlirIntegerTypeGet(context, 64), value);
}
MlirAttribute o3_attr_i32(MlirContext context, int32_t value) {
  return mlirIntegerAttrGet(mlirIntegerTypeGet(context, 32), value);
}
MlirAttribute o3_attr_bool(MlirContext context, bool value) { return mlirBoolAttrGet(context, value); }
MlirAttribute o3_attr_f32(MlirContext context, double value) {
  return o3_attr_float(mlirF32TypeGet(context), value);
}
MlirAttribute o3_attr_float(MlirType type, double value) {
  return mlirFloatAttrDoubleGet(mlirTypeGetContext(type), type, value);
}
MlirAttribute o3_attr_string(MlirContext context, const char *text) {
  return mlirStringAttrGet(context, O3_STR(text));
}
MlirAttribute o3_attr_ints(MlirContext context, int count, const int64_t *values) {
  return mlirDenseI64ArrayGet(context, count, values);
}
MlirAttribute o3_attr_type(MlirType type) { return mlirTypeAttrGet(type); }

MlirAttribute o3_attr_parse(MlirContext context, const char *text) {
  MlirAttribute attr = mlirAttributeParseGet(context, O3_STR(text));
  O3_ASSERT(!mlirAttributeIsNull(attr), "the text is the compiler's own");
  return attr;
}

MlirType o3_type_parse(MlirContext context, const char *text) {
  MlirType type = mlirTypeParseGet(context, O3_STR(text));
  O3_ASSERT(!mlirTypeIsNull(type), "the text is the compiler's own");
  return type;
}
