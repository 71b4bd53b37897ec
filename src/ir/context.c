/* Contexts are made once a process or compilation: all of upstream's dialects are registered but loaded
 * only when met, ours is loaded from the text that ops.def yields. */
#include "ir/context.h"

#include <mlir-c/Diagnostics.h>
#include <mlir-c/Dialect/IRDL.h>
#include <mlir-c/Pass.h>
#include <mlir-c/RegisterEverything.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"

/* ---- The dialect ---- */

typedef struct op_row {
  const char *name, *operands, *results, *attrs;
} op_row_t;

static const op_row_t OPS[] = {
#define O3_OP(name, operands, results, attrs, summary) {#name, operands, results, attrs},
#include "ir/ops.def"
#undef O3_OP
};

/* Splits "a,b?,c..." and appends "a: %k, b: optional %k, ..." with a fresh constraint for each name. */
static void append_slots(o3_strbuf_t *text, const char *keyword, const char *names, int *next) {
  o3_strbuf_t constraints = O3_STRBUF_INIT, list = O3_STRBUF_INIT;
  for (const char *at = names; *at;) {
    size_t length = strcspn(at, ",");
    size_t bare = strcspn(at, ",?.");
    const char *variadicity = at[bare] == '?' ? "optional " : at[bare] == '.' ? "variadic " : "";
    o3_strbuf_printf(&constraints, "    %%%d = irdl.any\n", *next);
    o3_strbuf_printf(&list, "%s%.*s: %s%%%d", at == names ? "" : ", ", (int)bare, at, variadicity, (*next)++);
    at += length + (at[length] == ',');
  }
  if (list.length) o3_strbuf_printf(text, "%s    irdl.%s(%s)\n", constraints.text, keyword, list.text);
  text->failed |= constraints.failed || list.failed;
  o3_strbuf_deinit(&constraints);
  o3_strbuf_deinit(&list);
}

static void append_attrs(o3_strbuf_t *text, const char *names, int *next) {
  o3_strbuf_t list = O3_STRBUF_INIT;
  for (const char *at = names; *at;) {
    size_t length = strcspn(at, ",");
    o3_strbuf_printf(text, "    %%%d = irdl.any\n", *next);
    o3_strbuf_printf(&list, "%s\"%.*s\" = %%%d", at == names ? "" : ", ", (int)length, at, (*next)++);
    at += length + (at[length] == ',');
  }
  if (list.length) o3_strbuf_printf(text, "    irdl.attributes {%s}\n", list.text);
  text->failed |= list.failed;
  o3_strbuf_deinit(&list);
}

char *o3_dialect_irdl(void) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  o3_strbuf_puts(&text, "module {\nirdl.dialect @o3 {\n  irdl.type @value\n");
  for (size_t i = 0; i < sizeof(OPS) / sizeof(OPS[0]); ++i) {
    int next = 0;
    o3_strbuf_printf(&text, "  irdl.operation @%s {\n", OPS[i].name);
    append_slots(&text, "operands", OPS[i].operands, &next);
    append_slots(&text, "results", OPS[i].results, &next);
    append_attrs(&text, OPS[i].attrs, &next);
    o3_strbuf_puts(&text, "  }\n");
  }
  o3_strbuf_puts(&text, "}\n}\n");
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}

static o3_status_t load_dialect(MlirContext context) {
  char *text = o3_dialect_irdl();
  O3_TRY_ALLOC(text);
  MlirModule module;
  o3_status_t status = o3_ir_parse(context, text, strlen(text), "o3.irdl.mlir", &module);
  free(text);
  O3_TRY(status);
  bool loaded = mlirLogicalResultIsSuccess(mlirLoadIRDLDialects(module));
  mlirModuleDestroy(module);
  if (!loaded) return o3_status_create(O3_STATUS_INTERNAL, "the o3 dialect cannot be loaded");
  return NULL;
}

/* ---- Contexts ---- */

/* An op made before its dialect is loaded stays an unregistered one, and dangles once the dialect comes: what
 * the compiler builds by name is loaded first. */
static void load_dialects(MlirContext context) {
  static const char *const DIALECTS[] = {"affine", "arith", "bufferization", "cf",  "func",   "linalg",
                                         "llvm",   "math",  "memref",        "scf", "tensor", "vector"};
  for (size_t i = 0; i < sizeof(DIALECTS) / sizeof(DIALECTS[0]); ++i)
    mlirContextGetOrLoadDialect(context, O3_STR(DIALECTS[i]));
}

/* Passes are registered in a table of the process, dialects in one of each context. */
static void register_passes(void) { mlirRegisterAllPasses(); }

o3_status_t o3_context_create(MlirContext *context) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, register_passes);
  *context = mlirContextCreateWithThreading(false);
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirRegisterAllDialects(registry);
  mlirContextAppendDialectRegistry(*context, registry);
  mlirDialectRegistryDestroy(registry);
  mlirRegisterAllLLVMTranslations(*context);
  load_dialects(*context);
  o3_status_t status = load_dialect(*context);
  if (status) {
    mlirContextDestroy(*context);
    *context = (MlirContext){0};
  }
  return status;
}

void o3_context_destroy(MlirContext context) { mlirContextDestroy(context); }

/* ---- Diagnostics ---- */

struct o3_diagnostics {
  MlirContext context;
  MlirDiagnosticHandlerID id;
  o3_strbuf_t text;
};

static void append_text(MlirStringRef text, void *buffer) {
  o3_strbuf_append(buffer, text.data, text.length);
}

/* Of a model's node its name, of MLIR text the line. */
static void append_place(o3_strbuf_t *text, MlirLocation location) {
  MlirStringRef name = o3_location_name(location);
  if (name.length) {
    o3_strbuf_printf(text, "at '%.*s': ", O3_STR_ARGS(name));
  } else if (mlirLocationIsAFileLineColRange(location)) {
    o3_strbuf_printf(text, "line %d, column %d: ", mlirLocationFileLineColRangeGetStartLine(location),
                     mlirLocationFileLineColRangeGetStartColumn(location));
  }
}

static MlirLogicalResult collect(MlirDiagnostic diagnostic, void *context) {
  o3_diagnostics_t *self = context;
  if (mlirDiagnosticGetSeverity(diagnostic) != MlirDiagnosticError) return mlirLogicalResultSuccess();
  if (self->text.length) o3_strbuf_puts(&self->text, "; ");
  append_place(&self->text, mlirDiagnosticGetLocation(diagnostic));
  mlirDiagnosticPrint(diagnostic, append_text, &self->text);
  return mlirLogicalResultSuccess();
}

o3_diagnostics_t *o3_diagnostics_begin(MlirContext context) {
  o3_diagnostics_t *self = calloc(1, sizeof(*self));
  if (!self) return NULL;
  self->context = context;
  self->id = mlirContextAttachDiagnosticHandler(context, collect, self, NULL);
  return self;
}

o3_status_t o3_diagnostics_end(o3_diagnostics_t *self, bool ok, o3_status_code_t code, const char *what) {
  o3_status_t status = NULL;
  if (!ok) {
    const char *text = self && self->text.length ? self->text.text : "no diagnostic was given";
    status = o3_status_create(code, "%s: %s", what, text);
  }
  if (!self) return status;
  mlirContextDetachDiagnosticHandler(self->context, self->id);
  o3_strbuf_deinit(&self->text);
  free(self);
  return status;
}

/* ---- Whole modules ---- */

o3_status_t o3_ir_verify(MlirOperation op) {
  o3_diagnostics_t *diagnostics = o3_diagnostics_begin(mlirOperationGetContext(op));
  return o3_diagnostics_end(diagnostics, mlirOperationVerify(op), O3_STATUS_INTERNAL, "invalid IR");
}

o3_status_t o3_ir_run_pipeline(MlirModule module, const char *pipeline) {
  MlirContext context = mlirModuleGetContext(module);
  MlirPassManager manager = mlirPassManagerCreate(context);
  o3_strbuf_t errors = O3_STRBUF_INIT;
  MlirOpPassManager nested = mlirPassManagerGetAsOpPassManager(manager);
  o3_status_t status = NULL;
  mlirPassManagerEnableVerifier(manager, false); /* it took as long as the passes themselves */
  if (mlirLogicalResultIsFailure(mlirParsePassPipeline(nested, O3_STR(pipeline), append_text, &errors))) {
    status = o3_status_create(O3_STATUS_INTERNAL, "pass pipeline '%s': %s", pipeline, errors.text);
  } else {
    o3_diagnostics_t *diagnostics = o3_diagnostics_begin(context);
    MlirLogicalResult result = mlirPassManagerRunOnOp(manager, mlirModuleGetOperation(module));
    status =
        o3_diagnostics_end(diagnostics, mlirLogicalResultIsSuccess(result), O3_STATUS_INTERNAL, pipeline);
  }
  o3_strbuf_deinit(&errors);
  mlirPassManagerDestroy(manager);
  return status;
}

o3_status_t o3_ir_parse(MlirContext context, const char *text, size_t length, const char *name,
                        MlirModule *module) {
  o3_diagnostics_t *diagnostics = o3_diagnostics_begin(context);
  MlirStringRef source = mlirStringRefCreate(text, length);
  MlirOperation op = mlirOperationCreateParse(context, source, O3_STR(name));
  bool ok = !mlirOperationIsNull(op);
  O3_TRY(o3_diagnostics_end(diagnostics, ok, O3_STATUS_INVALID_MODEL, name));
  *module = mlirModuleFromOperation(op);
  if (!mlirModuleIsNull(*module)) return NULL;
  mlirOperationDestroy(op);
  return o3_status_create(O3_STATUS_INVALID_MODEL, "%s: the top-level op is no builtin.module", name);
}

char *o3_ir_print(MlirOperation op) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsElideLargeResourceString(flags, 0);
  mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
  mlirOperationPrintWithFlags(op, flags, append_text, &text);
  mlirOpPrintingFlagsDestroy(flags);
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}

char *o3_ir_print_plain(MlirOperation op) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsUseLocalScope(flags);
  mlirOpPrintingFlagsPrintGenericOpForm(flags);
  mlirOpPrintingFlagsAssumeVerified(flags);
  mlirOperationPrintWithFlags(op, flags, append_text, &text);
  mlirOpPrintingFlagsDestroy(flags);
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}
