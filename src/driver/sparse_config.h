/* The file of --sparse-config: sparse formats of single nodes.
 *
 *     # node names are shell patterns; the last line that matches a node holds
 *     *             auto
 *     layer4.*      bsr-16x16
 *     "fc 1"        dense
 */
#ifndef O3_DRIVER_SPARSE_CONFIG_H
#define O3_DRIVER_SPARSE_CONFIG_H

#include "ir/pass.h"

/* Reads |path| into env->sparse_overrides, in env->arena. NOT_FOUND, IO, or INVALID_ARGUMENT and UNSUPPORTED
 * with the file and the line. */
o3_status_t o3_sparse_config_read(const char *path, o3_pass_env_t *env) O3_MUST_USE;

#endif
