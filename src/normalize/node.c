/* Reading the attributes and inputs of one o3.node. */
#include <string.h>

#include "normalize/nz.h"

MlirValue o3_node_input(const o3_node_t *node, int index) {
  return index < node->num_inputs ? node->inputs[index] : (MlirValue){0};
}

bool o3_node_has_input(const o3_node_t *node, int index) {
  return !mlirValueIsNull(o3_node_input(node, index));
}

MlirAttribute o3_node_attr(const o3_node_t *node, const char *name) {
  return mlirDictionaryAttrGetElementByName(o3_op_attr(node->op, "attrs"), O3_STR(name));
}

bool o3_node_has_attr(const o3_node_t *node, const char *name) {
  return !mlirAttributeIsNull(o3_node_attr(node, name));
}

int64_t o3_node_int(const o3_node_t *node, const char *name, int64_t fallback) {
  MlirAttribute attr = o3_node_attr(node, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAInteger(attr)) return fallback;
  return mlirIntegerAttrGetValueInt(attr);
}

double o3_node_float(const o3_node_t *node, const char *name, double fallback) {
  MlirAttribute attr = o3_node_attr(node, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAFloat(attr))
    return (double)(float)fallback; /* as ONNX states its defaults */
  return mlirFloatAttrGetValueDouble(attr);
}

const char *o3_node_string(o3_nz_t *nz, const o3_node_t *node, const char *name, const char *fallback) {
  MlirAttribute attr = o3_node_attr(node, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAString(attr)) return fallback;
  MlirStringRef text = mlirStringAttrGetValue(attr);
  const char *copy = o3_arena_strndup(nz->arena, text.data, text.length);
  return copy ? copy : fallback;
}

static int checked_count(o3_nz_t *nz, const char *name, intptr_t count, int capacity) {
  if (count <= capacity) return (int)count;
  o3_nz_fail(nz, o3_nz_invalid(nz, "attribute %s has %ld entries, at most %d expected", name, (long)count,
                               capacity));
  return 0;
}

int o3_node_ints(o3_nz_t *nz, const o3_node_t *node, const char *name, int64_t *values, int capacity) {
  MlirAttribute attr = o3_node_attr(node, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsADenseI64Array(attr)) return 0;
  int count = checked_count(nz, name, mlirDenseArrayGetNumElements(attr), capacity);
  for (int i = 0; i < count; ++i) values[i] = mlirDenseI64ArrayGetElement(attr, i);
  return count;
}

int o3_node_floats(o3_nz_t *nz, const o3_node_t *node, const char *name, double *values, int capacity) {
  MlirAttribute attr = o3_node_attr(node, name);
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsADenseF32Array(attr)) return 0;
  int count = checked_count(nz, name, mlirDenseArrayGetNumElements(attr), capacity);
  for (int i = 0; i < count; ++i) values[i] = (double)mlirDenseF32ArrayGetElement(attr, i);
  return count;
}

int o3_nz_axis(o3_nz_t *nz, int64_t axis, int rank) {
  int64_t positive = axis < 0 ? axis + rank : axis;
  if (positive >= 0 && positive < rank) return (int)positive;
  o3_nz_fail(nz, o3_nz_invalid(nz, "axis %lld is out of range for rank %d", (long long)axis, rank));
  return 0;
}
