/* Interface: what a model takes and gives, as its users see it.
 *
 * The normalized module tells it by attributes of @main, which later stages rewrite. The pass
 * o3_interface_record, the last of the normalize stage, keeps it as an attribute of the module that all later
 * stages leave alone:
 *
 *     module attributes {o3.interface = {
 *         inputs = [{name = "x", type = tensor<?x64xf32>, shape = affine_map<()[s0] -> (s0, 64)>}],
 *         outputs = [{name = "y", type = tensor<?x10xf32>, shape = affine_map<()[s0] -> (s0, 10)>}],
 *         symbols = ["N"], guards = []}}
 */
#ifndef O3_PACKAGE_INTERFACE_H
#define O3_PACKAGE_INTERFACE_H

#include "base/dtype.h"
#include "ir/pass.h"

/* |size| >= 0 is static. Else it is -1, and |symbol| the index of the symbol that it equals, or -1 when it is
 * known only after a run (outputs only). */
typedef struct o3_interface_dim {
  int64_t size;
  int32_t symbol;
} o3_interface_dim_t;

typedef struct o3_interface_tensor {
  const char *name;
  o3_dtype_id_t dtype;
  int rank;
  o3_interface_dim_t dims[O3_IR_MAX_RANK];
} o3_interface_tensor_t;

typedef struct o3_interface {
  int num_inputs, num_outputs, num_symbols, num_guards;
  const o3_interface_tensor_t *inputs, *outputs;
  const char *const *symbols; /* names */
  const char *const *guards;  /* sentences */
} o3_interface_t;

/* A pass: @main's attributes -> the module's attribute o3.interface. */
o3_status_t o3_interface_record(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

bool o3_interface_is_recorded(MlirModule module);

/* Reads o3.interface; everything is allocated in |arena|. INVALID_MODEL when the attribute is absent or says
 * what no model can have. */
o3_status_t o3_interface_read(o3_arena_t *arena, MlirModule module, o3_interface_t *interface) O3_MUST_USE;

#endif
