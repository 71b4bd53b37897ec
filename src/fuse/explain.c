/* The table is read from the attributes of the kernels, so that a dump of the stage explains itself too. */
#include "base/strbuf.h"
#include "fuse/fuse.h"
#include "fuse/outline_kernel.h"

static MlirStringRef string_at(MlirAttribute list, intptr_t index) {
  return mlirStringAttrGetValue(mlirArrayAttrGetElement(list, index));
}

static void explain_kernel(o3_strbuf_t *text, MlirOperation kernel) {
  MlirAttribute nodes = o3_op_attr(kernel, O3_KERNEL_NODES), reasons = o3_op_attr(kernel, O3_KERNEL_REASONS);
  o3_strbuf_printf(text, "%.*s\n", O3_STR_ARGS(o3_op_string(kernel, "sym_name")));
  if (mlirAttributeIsNull(nodes) || mlirAttributeIsNull(reasons)) return;
  for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(nodes); ++i) {
    MlirStringRef node = string_at(nodes, i), reason = string_at(reasons, i);
    o3_strbuf_printf(text, "  %-28.*s %.*s\n", O3_STR_ARGS(node), O3_STR_ARGS(reason));
  }
  MlirStringRef stop = o3_op_string(kernel, O3_KERNEL_STOP);
  o3_strbuf_printf(text, "  %-28s %.*s\n", "(end)", O3_STR_ARGS(stop));
}

char *o3_fuse_explain(MlirModule module) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  o3_strbuf_puts(&text, "");
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (!mlirAttributeIsNull(o3_op_attr(op, O3_KERNEL_KIND))) explain_kernel(&text, op);
  }
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}
