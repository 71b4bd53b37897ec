/* Shapes and dimensions that users fix: from command lines to the passes' environment. */
#ifndef O3_DRIVER_OVERRIDES_H
#define O3_DRIVER_OVERRIDES_H

#include "ir/pass.h"
#include "o3/compiler.h"

/* Adds "NAME=SIZE" to options->dims, "NAME:1x3x?x224" to options->shapes, "NAME=NUMBER" to options->values;
 * the arrays and names are allocated in |arena|. INVALID_ARGUMENT when |text| is not of that form. */
o3_status_t o3_overrides_add_dim(o3_arena_t *arena, const char *text, o3_compile_options_t *options)
    O3_MUST_USE;
o3_status_t o3_overrides_add_shape(o3_arena_t *arena, const char *text, o3_compile_options_t *options)
    O3_MUST_USE;
o3_status_t o3_overrides_add_value(o3_arena_t *arena, const char *text, o3_compile_options_t *options)
    O3_MUST_USE;

/* Hands them to |env|; INVALID_ARGUMENT for sizes and ranks that cannot be. Names stay borrowed. */
o3_status_t o3_overrides_apply(o3_arena_t *arena, const o3_compile_options_t *options, o3_pass_env_t *env)
    O3_MUST_USE;

#endif
