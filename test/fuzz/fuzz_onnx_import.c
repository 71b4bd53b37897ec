/* Any bytes are a model or a status; what is imported passes MLIR's verifier. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/import.h"
#include "ir/context.h"

/* MLIR keeps all types and attributes until its context goes: a new one now and then bounds the memory. */
enum { RUNS_PER_CONTEXT = 4096 };

static void require(o3_status_t status) {
  if (!status) return;
  fprintf(stderr, "fuzz_onnx_import: %s\n", o3_status_message(status));
  abort();
}

static MlirContext fresh_context(void) {
  static MlirContext context;
  static unsigned runs;
  if (runs++ % RUNS_PER_CONTEXT) return context;
  if (context.ptr) o3_context_destroy(context);
  require(o3_context_create(&context));
  return context;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MlirContext context = fresh_context();
  o3_arena_t *arena = o3_arena_create();
  o3_weights_t *weights;
  MlirModule module;
  if (!arena) abort();
  require(o3_weights_create(context, &weights));
  o3_onnx_buffer_t buffer = {.data = data, .size = size, .name = "fuzz.onnx"};
  o3_status_t status = o3_import_onnx_buffer(context, arena, weights, &buffer, &module);
  if (!status) {
    require(o3_ir_verify(mlirModuleGetOperation(module)));
    mlirModuleDestroy(module);
  } else if (!*o3_status_message(status)) {
    abort();
  }
  o3_status_destroy(status);
  o3_weights_destroy(weights);
  o3_arena_destroy(arena);
  return 0;
}
