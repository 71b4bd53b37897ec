#include "package/kernel_table.h"

static o3_status_t malformed(void) {
  return o3_status_create(O3_STATUS_INTERNAL, "o3.kernels holds an entry without name, kind and nodes");
}

static MlirAttribute field(MlirAttribute row, const char *key) {
  bool is_dict = !mlirAttributeIsNull(row) && mlirAttributeIsADictionary(row);
  return is_dict ? mlirDictionaryAttrGetElementByName(row, O3_STR(key)) : (MlirAttribute){0};
}

static o3_status_t read_text(o3_arena_t *arena, MlirAttribute attr, const char **text) {
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAString(attr)) return malformed();
  MlirStringRef value = mlirStringAttrGetValue(attr);
  *text = o3_arena_strndup(arena, value.data, value.length);
  O3_TRY_ALLOC(*text);
  return NULL;
}

static o3_status_t read_row(o3_arena_t *arena, MlirAttribute attr, o3_kernel_row_t *row) {
  O3_TRY(read_text(arena, field(attr, "name"), &row->name));
  O3_TRY(read_text(arena, field(attr, "kind"), &row->kind));
  MlirAttribute nodes = field(attr, "nodes");
  if (mlirAttributeIsNull(nodes) || !mlirAttributeIsAArray(nodes)) return malformed();
  row->num_nodes = (int)mlirArrayAttrGetNumElements(nodes);
  const char **names = O3_ARENA_ARRAY(arena, const char *, (size_t)row->num_nodes + 1);
  O3_TRY_ALLOC(names);
  for (int i = 0; i < row->num_nodes; ++i)
    O3_TRY(read_text(arena, mlirArrayAttrGetElement(nodes, i), &names[i]));
  row->nodes = names;
  return NULL;
}

o3_status_t o3_kernel_table_read(o3_arena_t *arena, MlirModule module, o3_kernel_table_t *table) {
  *table = (o3_kernel_table_t){0};
  MlirAttribute list = o3_op_attr(mlirModuleGetOperation(module), "o3.kernels");
  if (mlirAttributeIsNull(list)) return NULL;
  if (!mlirAttributeIsAArray(list)) return malformed();
  int count = (int)mlirArrayAttrGetNumElements(list);
  o3_kernel_row_t *rows = O3_ARENA_ARRAY(arena, o3_kernel_row_t, (size_t)count + 1);
  O3_TRY_ALLOC(rows);
  for (int i = 0; i < count; ++i) O3_TRY(read_row(arena, mlirArrayAttrGetElement(list, i), &rows[i]));
  *table = (o3_kernel_table_t){count, rows};
  return NULL;
}
