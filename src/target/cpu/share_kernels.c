/* cpu-share-kernels: loops of equal code share one function.
 *
 * Needs: cpu-outline. Guarantees: no two functions o3k_... have the same text but for their names. Networks
 * repeat their blocks; what differs between the repetitions, the buffers and weights, is in the context.
 */
#include <string.h>

#include "base/map.h"
#include "base/strbuf.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"

typedef struct share {
  o3_str_map_t *by_text; /* to the name of the first function of the text */
  o3_str_map_t *shared;  /* name to name, for those that are erased */
  MlirContext context;
  o3_arena_t *arena;
} share_t;

static void append(MlirStringRef text, void *buffer) { o3_strbuf_append(buffer, text.data, text.length); }

static bool is_kernel(MlirOperation op) {
  MlirStringRef name = o3_op_string(op, "sym_name");
  return o3_op_is(op, "func.func") && name.length > 4 && strncmp(name.data, "o3k_", 4) == 0;
}

/* Erases the function if there was one like it. The text is compared from the parameters on. */
static o3_status_t share(share_t *self, MlirOperation func) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  o3_status_t status = NULL;
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsUseLocalScope(flags); /* else all of the module is numbered each time */
  mlirOperationPrintWithFlags(func, flags, append, &text);
  mlirOpPrintingFlagsDestroy(flags);
  const char *from = text.failed ? NULL : strchr(text.text, '(');
  MlirStringRef name = o3_op_string(func, "sym_name");
  char *copy = o3_arena_strndup(self->arena, name.data, name.length);
  const char *first = from && copy ? o3_str_map_get(self->by_text, from, strlen(from)) : NULL;
  bool ok = from && copy &&
            (first ? o3_str_map_put(self->shared, copy, name.length, (void *)(uintptr_t)first)
                   : o3_str_map_put(self->by_text, from, strlen(from), copy));
  if (!ok) status = o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  o3_strbuf_deinit(&text);
  if (first) mlirOperationDestroy(func);
  return status;
}

static o3_status_t rename_use(MlirOperation op, void *context) {
  share_t *self = context;
  const char *attr = o3_op_is(op, "func.constant") ? "value" : o3_op_is(op, "func.call") ? "callee" : NULL;
  if (!attr) return NULL;
  MlirStringRef name = mlirFlatSymbolRefAttrGetValue(o3_op_attr(op, attr));
  const char *to = o3_str_map_get(self->shared, name.data, name.length);
  if (to) o3_op_attr_set(op, attr, mlirFlatSymbolRefAttrGet(self->context, O3_STR(to)));
  return NULL;
}

o3_status_t o3_cpu_share_kernels(o3_pass_env_t *env, MlirModule module) {
  share_t self = {.by_text = o3_str_map_create(env->arena),
                  .shared = o3_str_map_create(env->arena),
                  .context = env->context,
                  .arena = env->arena};
  O3_TRY_ALLOC(self.by_text);
  O3_TRY_ALLOC(self.shared);
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    if (is_kernel(op)) O3_TRY(share(&self, op));
    op = next;
  }
  return o3_walk(mlirModuleGetOperation(module), rename_use, &self);
}
