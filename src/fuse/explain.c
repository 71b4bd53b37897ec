/* The table is read from the attributes of the kernels, so that a dump of the stage explains itself too. */
#include "base/strbuf.h"
#include "fuse/fuse.h"
#include "fuse/outline_kernel.h"

static MlirStringRef string_at(MlirAttribute list, intptr_t index) {
  return mlirStringAttrGetValue(mlirArrayAttrGetElement(list, index));
}

/* What passes of the rewrite stage have noted of the node's product: a way that was chosen, weights that
 * went. */
static void explain_choices(o3_strbuf_t *text, MlirAttribute choices, MlirStringRef node) {
  intptr_t count = mlirAttributeIsNull(choices) ? 0 : mlirArrayAttrGetNumElements(choices);
  for (intptr_t i = 0; i < count; ++i) {
    MlirAttribute pair = mlirArrayAttrGetElement(choices, i);
    if (mlirStringRefEqual(string_at(pair, 0), node))
      o3_strbuf_printf(text, "  %-28.*s %.*s\n", O3_STR_ARGS(node), O3_STR_ARGS(string_at(pair, 1)));
  }
}

static bool has_product(MlirOperation kernel) {
  MlirStringRef kind = o3_op_string(kernel, O3_KERNEL_KIND);
  return o3_str_equal(kind, "contraction") || o3_str_equal(kind, "winograd") || o3_str_equal(kind, "chain");
}

static bool has_schedule(MlirOperation op) {
  MlirAttribute schedule = o3_op_attr(op, "o3.schedule");
  return !mlirAttributeIsNull(schedule) && mlirAttributeIsADictionary(schedule);
}

/* A schedule's fields, the family's name first. */
static void print_schedule(o3_strbuf_t *text, MlirStringRef title, MlirOperation op) {
  MlirAttribute schedule = o3_op_attr(op, "o3.schedule");
  MlirAttribute family = mlirDictionaryAttrGetElementByName(schedule, O3_STR("family"));
  o3_strbuf_printf(text, "  %-28.*s %.*s:", O3_STR_ARGS(title), O3_STR_ARGS(mlirStringAttrGetValue(family)));
  for (intptr_t i = 0, shown = 0; i < mlirDictionaryAttrGetNumElements(schedule); ++i) {
    MlirNamedAttribute field = mlirDictionaryAttrGetElement(schedule, i);
    if (!mlirAttributeIsAInteger(field.attribute)) continue;
    o3_strbuf_printf(text, "%s %.*s %lld", shown++ ? "," : "", O3_STR_ARGS(mlirIdentifierStr(field.name)),
                     (long long)mlirIntegerAttrGetValueInt(field.attribute));
  }
  o3_strbuf_puts(text, "\n");
}

/* What the schedule stage has written on the op that the kernel is about. */
static o3_status_t explain_schedule(MlirOperation op, void *context) {
  if (has_schedule(op)) print_schedule(context, O3_STR("(schedule)"), op);
  return NULL;
}

static o3_status_t explain_kernel(o3_strbuf_t *text, MlirAttribute choices, MlirOperation kernel) {
  MlirAttribute nodes = o3_op_attr(kernel, O3_KERNEL_NODES), reasons = o3_op_attr(kernel, O3_KERNEL_REASONS);
  o3_strbuf_printf(text, "%.*s\n", O3_STR_ARGS(o3_op_string(kernel, "sym_name")));
  if (mlirAttributeIsNull(nodes) || mlirAttributeIsNull(reasons)) return NULL;
  for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(nodes); ++i) {
    MlirStringRef node = string_at(nodes, i), reason = string_at(reasons, i);
    bool again = i > 0 && mlirStringRefEqual(node, string_at(nodes, i - 1));
    if (has_product(kernel) && !again) explain_choices(text, choices, node);
    o3_strbuf_printf(text, "  %-28.*s %.*s\n", O3_STR_ARGS(node), O3_STR_ARGS(reason));
  }
  MlirStringRef stop = o3_op_string(kernel, O3_KERNEL_STOP);
  o3_strbuf_printf(text, "  %-28s %.*s\n", "(end)", O3_STR_ARGS(stop));
  return o3_walk(kernel, explain_schedule, text);
}

o3_status_t o3_fuse_explain(MlirModule module, char **explanation) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  MlirAttribute choices = o3_op_attr(mlirModuleGetOperation(module), "o3.choices");
  o3_status_t status = NULL;
  o3_strbuf_puts(&text, "");
  for (; !status && !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    if (!mlirAttributeIsNull(o3_op_attr(op, O3_KERNEL_KIND))) status = explain_kernel(&text, choices, op);
  }
  if (!status && text.failed) status = o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  if (status) o3_strbuf_deinit(&text);
  *explanation = text.text;
  return status;
}

static o3_status_t explain_launch(MlirOperation op, void *context) {
  if (o3_op_is(op, "llvm.call") && has_schedule(op))
    print_schedule(context, o3_op_string(op, "o3.label"), op);
  return NULL;
}

o3_status_t o3_fuse_explain_launches(MlirModule module, char **explanation) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  o3_strbuf_puts(&text, "launches\n");
  o3_status_t status = o3_walk(mlirModuleGetOperation(module), explain_launch, &text);
  if (!status && text.failed) status = o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  if (status) o3_strbuf_deinit(&text);
  *explanation = text.text;
  return status;
}
