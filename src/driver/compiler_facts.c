/* What compiler.h tells about the compiler itself: stages, targets, machines, versions. */
#include <llvm-c/Core.h>
#include <stdio.h>

#include "driver/compilation.h"
#include "o3/compiler.h"
#include "schedule/hardware.h"

const char *o3_compile_stage(int32_t index, const char **summary) {
  if (index < 0 || index >= O3_STAGE_COUNT) return NULL;
  *summary = o3_stage_summary((o3_stage_t)index);
  return o3_stage_name((o3_stage_t)index);
}

const char *o3_compile_target(int32_t index, const char **summary) {
  const o3_target_t *target = o3_target_at(index);
  if (!target) return NULL;
  *summary = target->summary;
  return target->name;
}

static o3_status_t describe_machine(o3_arena_t *arena, const char *name, bool measured, char **text) {
  const o3_target_t *target, *here = o3_target_at(0);
  o3_machine_t machine = {0};
  O3_TRY(o3_target_find(name ? name : here->name, &target));
  if (target->codes)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "target '%s' is no single machine, but %s and %s",
                            target->name, target->codes[0]->name, target->codes[1]->name);
  if (measured && target != here)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "target '%s' cannot be measured: only '%s', this machine's CPU, can",
                            target->name, here->name);
  O3_TRY(target->machine(arena, &machine));
  if (measured) O3_TRY(o3_hardware_measure(&machine));
  *text = o3_hardware_print(&machine);
  O3_TRY_ALLOC(*text);
  return NULL;
}

int32_t o3_compile_hardware(const char *target, int32_t measure, char **text, char **error) {
  *text = NULL;
  o3_arena_t *arena = o3_arena_create();
  o3_status_t status = arena ? describe_machine(arena, target, measure != 0, text)
                             : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  if (arena) o3_arena_destroy(arena);
  return o3_result_give(status, error);
}

const char *o3_compiler_version(void) { return O3_VERSION; }

const char *o3_compiler_llvm_version(void) {
  static _Thread_local char text[48];
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  snprintf(text, sizeof(text), "%u.%u.%u", major, minor, patch);
  return text;
}

const char *o3_compile_code_name(int32_t code) { return o3_status_code_name((o3_status_code_t)code); }
