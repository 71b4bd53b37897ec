/* Importers: from a model file to the module of the import stage.
 *
 *     MlirModule module;
 *     O3_TRY(o3_import_onnx(context, arena, weights, "resnet50.onnx", &module));
 *
 * The module is an image of the file: one `o3.node` per node in an order in which values are defined before
 * they are read, one `o3.initializer` per constant that is read, every value of type `!o3.value`.
 * docs/design/import.md describes it.
 */
#ifndef O3_IMPORT_IMPORT_H
#define O3_IMPORT_IMPORT_H

#include <stdint.h>

#include "base/arena.h"
#include "ir/ir.h"
#include "ir/weights.h"

/* Imports the ONNX model at |path|. *|module| is the caller's to destroy, null on failure.
 *
 * Weights are not copied: the files that hold them are handed to |weights|, and what the model keeps in typed
 * fields is decoded into |arena|; both must outlive the module, and |arena| also |weights|. A weight's bytes
 * lie as the file has them, aligned to nothing.
 *
 * NOT_FOUND, IO: a file cannot be read. INVALID_MODEL: it breaks ONNX's rules. UNSUPPORTED: ONNX allows it
 * and o3c does not read it. The message names the file and the node, initializer or value at fault. */
o3_status_t o3_import_onnx(MlirContext context, o3_arena_t *arena, o3_weights_t *weights, const char *path,
                           MlirModule *module) O3_MUST_USE;

/* A model in memory. |data| must outlive |weights|. |name| stands for the file in messages and locations.
 * |folder| is where external data is looked for; NULL refuses models that have some. */
typedef struct o3_onnx_buffer {
  const uint8_t *data;
  size_t size;
  const char *name;
  const char *folder;
} o3_onnx_buffer_t;

o3_status_t o3_import_onnx_buffer(MlirContext context, o3_arena_t *arena, o3_weights_t *weights,
                                  const o3_onnx_buffer_t *buffer, MlirModule *module) O3_MUST_USE;

#endif
