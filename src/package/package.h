/* Package: makes the file that users get of an object and the module that it was made from. */
#ifndef O3_PACKAGE_PACKAGE_H
#define O3_PACKAGE_PACKAGE_H

#include "package/interface.h"
#include "package/link.h"
#include "target/target.h"

typedef struct o3_package {
  o3_link_t link;
  o3_workspace_t *workspace; /* beside |output| */
  const char *output;        /* an archive's header is written beside it, with ending .h */
  const char *name;          /* the model's, for users */
  const char *options;       /* text of all options that the code depends on, for the build id */
  const o3_target_t *target;
  const o3_interface_t *interface;
  int num_objects;              /* 1, or as many as target->codes, in their order */
  const o3_artifact_t *objects; /* from emit_object */
} o3_package_t;

/* lib/net.a -> lib/net.h: the header that goes with an archive; NULL without memory. */
const char *o3_package_header_path(o3_arena_t *arena, const char *output);

/* Writes |package->output| (and the header): complete, or not at all. |module| is the one that the object was
 * made from: its o3.weights tells the weights. */
o3_status_t o3_package(o3_pass_env_t *env, MlirModule module, const o3_package_t *package) O3_MUST_USE;

#endif
