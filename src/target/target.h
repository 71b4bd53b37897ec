/* Targets: the whole contract of a back end. src/target/targets.def lists them.
 *
 * A back end takes the lowered module (linalg on tensors, see lower.h) through passes of its own, which the
 * driver runs one by one with dumps and verification, and then emits objects.
 */
#ifndef O3_TARGET_TARGET_H
#define O3_TARGET_TARGET_H

#include "ir/pass.h"

/* A named step of the back end. */
typedef struct o3_target_pass {
  const char *stage; /* "schedule", "bufferize", "plan", "loops" or "llvm" */
  const char *name;
  o3_pass_fn_t run;
  int min_level; /* the least opt level that runs it */
  const char *summary;
} o3_target_pass_t;

/* One emitted piece: an ELF object, or text. */
typedef struct o3_artifact {
  void *data; /* malloc'ed, the caller's */
  size_t size;
} o3_artifact_t;

/* Most rows of a product that the CPU's kernel for few vectors takes, which reads the matrix as it lies: such
 * a matrix is not packed. */
enum { O3_TARGET_THIN_ROWS = 5 };

/* Most kinds of code that one library can hold. */
#define O3_TARGET_MAX_CODES 2

typedef struct o3_target o3_target_t;
struct o3_target {
  const char *name;      /* as in --target: "x86-64-v3" */
  const char *summary;   /* one line for --help */
  uint64_t cpu_features; /* O3RT_CPU_* bits (runtime/compiled.h) that its code needs */
  const o3_target_pass_t *passes;
  int num_passes;
  /* NULL; or the targets whose code the library holds, the best first, NULL at the end, and this one's
   * machine is that of the last: a session takes the first that its processor can run. They share everything
   * up to the fuse stage, weights too; from schedule on each has a module of its own. */
  const o3_target_t *const *codes;
  /* Fills in what is known of the machine. */
  o3_status_t (*machine)(o3_arena_t *arena, o3_machine_t *machine);
  /* Sets what kernels there are by the machine's figures, which a hardware file has changed; NULL: they do
   * not depend on these. */
  o3_status_t (*adapt)(o3_arena_t *arena, o3_machine_t *machine);
  /* LLVM IR text of a module in the llvm stage, optimised as for emit_object. */
  o3_status_t (*emit_llvm_ir)(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact);
  /* An ELF object of a module in the llvm stage: defines o3m_run and o3m_check (o3rt_run_fn_t,
   * o3rt_check_fn_t; hidden), refers to the weights by the symbols o3w_<name>. */
  o3_status_t (*emit_object)(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact);
  /* PTX text of the kernels of a module in the llvm stage; NULL for targets that are no NVIDIA GPU. */
  o3_status_t (*emit_ptx)(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact);
};

/* The target called |name|; UNSUPPORTED with the list of targets that exist. "cpu" is this machine. */
o3_status_t o3_target_find(const char *name, const o3_target_t **target) O3_MUST_USE;
const o3_target_t *o3_target_at(int index); /* NULL past the end */

/* "_x86_64_v4": what the entries of |code| are called after, beside others in one library; NULL when memory
 * is out. */
const char *o3_target_code_suffix(o3_arena_t *arena, const o3_target_t *code);

#endif
