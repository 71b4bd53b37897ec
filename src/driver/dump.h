/* Dumps: modules as files. The data of big constants lies beside them in weights.o3w. */
#ifndef O3_DRIVER_DUMP_H
#define O3_DRIVER_DUMP_H

#include "driver/stage.h"
#include "ir/weights.h"

#define O3_DUMP_WEIGHTS "weights.o3w"

/* The module's text after |heading| (may be "") as the file |path|. */
o3_status_t o3_dump_module(MlirModule module, const char *heading, const char *path) O3_MUST_USE;
o3_status_t o3_dump_bytes(const void *data, size_t size, const char *path) O3_MUST_USE;

/* The data of all named weights, as the file |path|. */
o3_status_t o3_dump_weights(const o3_weights_t *weights, const char *path) O3_MUST_USE;

/* Reads the module at |path| ("-": stdin), then the weights beside it: NAME.o3w for NAME.mlir if that
 * is there, else weights.o3w in the same folder if that is there. */
o3_status_t o3_dump_read(MlirContext context, o3_weights_t *weights, const char *path, MlirModule *module)
    O3_MUST_USE;

#endif
