/* Linking: from the pieces in a workspace to a library, an archive or an object. */
#ifndef O3_PACKAGE_LINK_H
#define O3_PACKAGE_LINK_H

#include "base/arena.h"
#include "package/workspace.h"

/* What is made: O3_PACKAGE_*. */
typedef enum o3_package_kind {
  O3_PACKAGE_LIBRARY, /* .so: a shared library that needs libc, and libm if it calls it */
  O3_PACKAGE_ARCHIVE, /* .a: the object below in an archive */
  O3_PACKAGE_OBJECT   /* .o: code, weights and runtime in one object */
} o3_package_kind_t;

typedef struct o3_link {
  o3_package_kind_t kind;
  const char *prefix;   /* <prefix>_model is the only symbol that others see */
  int threads;          /* of the linker; 0: its own choice */
  int num_objects;      /* of model code, 1 or 2 */
  const char *build_id; /* hexadecimal, of everything: the library's note */
} o3_link_t;

/* Joins MODEL, DESCRIPTOR and WEIGHTS of the workspace with the runtime: a library into its LINKED, others
 * into its RESULT. */
o3_status_t o3_link(o3_workspace_t *workspace, o3_arena_t *arena, const o3_link_t *link) O3_MUST_USE;

#endif
