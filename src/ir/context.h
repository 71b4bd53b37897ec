/* The MLIR context of a compilation: all dialects, ours included, and diagnostics caught as statuses. */
#ifndef O3_IR_CONTEXT_H
#define O3_IR_CONTEXT_H

#include "ir/ir.h"

/* A context with upstream's dialects and the o3 dialect loaded. */
o3_status_t o3_context_create(MlirContext *context) O3_MUST_USE;
void o3_context_destroy(MlirContext context);

/* The o3 dialect as IRDL text, made from ops.def; malloc'ed. */
char *o3_dialect_irdl(void);

/* Between begin and end, MLIR's error diagnostics are collected instead of printed. */
typedef struct o3_diagnostics o3_diagnostics_t;
o3_diagnostics_t *o3_diagnostics_begin(MlirContext context);
/* INTERNAL (or |code|) with the collected text, or NULL if |ok|. Ends the collection. */
o3_status_t o3_diagnostics_end(o3_diagnostics_t *diagnostics, bool ok, o3_status_code_t code,
                               const char *what) O3_MUST_USE;

/* Runs MLIR's verifier on |op|. */
o3_status_t o3_ir_verify(MlirOperation op) O3_MUST_USE;

/* Runs a textual pass pipeline, e.g. "builtin.module(canonicalize,cse)". */
o3_status_t o3_ir_run_pipeline(MlirModule module, const char *pipeline) O3_MUST_USE;

/* Reads a module from MLIR text, with locations in |name|. */
o3_status_t o3_ir_parse(MlirContext context, const char *text, size_t length, const char *name,
                        MlirModule *module) O3_MUST_USE;

/* The module's text, locations included, data of big constants left out; malloc'ed. */
char *o3_ir_print(MlirOperation op);

/* The op's text in generic form without locations, whether it is in a module or not; malloc'ed. Ops of the
 * same text do the same. */
char *o3_ir_print_plain(MlirOperation op);

#endif
