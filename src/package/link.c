/* The library carries no soname and no path: the same model gives the same bytes whatever the output is
 * called and wherever it lies. A program linked with it finds it by the name that it was given to the linker.
 *
 * Archives and objects must hide the runtime, too: two models in one program bring it twice. `ld -r` joins
 * the pieces, then objcopy makes every symbol but one local. */
#include "package/link.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "package/process.h"

extern const unsigned char o3_embedded_runtime_begin[], o3_embedded_runtime_end[];

#define MAX_ARGUMENTS 40

typedef struct command {
  const char *items[MAX_ARGUMENTS + 1];
  int count;
} command_t;

static void add(command_t *command, const char *argument) { command->items[command->count++] = argument; }

static void add_pieces(command_t *command, const o3_workspace_t *workspace, const o3_link_t *link) {
  add(command, o3_workspace_path(workspace, O3_WORK_FILE_DESCRIPTOR));
  add(command, o3_workspace_path(workspace, O3_WORK_FILE_MODEL));
  if (link->num_objects > 1) add(command, o3_workspace_path(workspace, O3_WORK_FILE_MODEL_2));
  add(command, o3_workspace_path(workspace, O3_WORK_FILE_WEIGHTS));
  add(command, o3_workspace_path(workspace, O3_WORK_FILE_RUNTIME));
}

static o3_status_t add_threads(command_t *command, o3_arena_t *arena, int threads) {
  if (threads <= 0) return NULL;
  const char *argument = o3_arena_printf(arena, "--threads=%d", threads);
  O3_TRY_ALLOC(argument);
  add(command, argument);
  return NULL;
}

/* The system's own libc, libm and dynamic linker, found through the libc that this process runs on: a linker
 * script such as libc.so is there only where development packages are installed. */
static o3_status_t add_system_libraries(command_t *command, o3_arena_t *arena) {
  Dl_info info;
  if (!dladdr((void *)(uintptr_t)gnu_get_libc_version, &info) || !info.dli_fname ||
      !strchr(info.dli_fname, '/'))
    return o3_status_create(O3_STATUS_NOT_FOUND, "the system's libc.so.6 cannot be found");
  int folder = (int)(strrchr(info.dli_fname, '/') - info.dli_fname);
  const char *libc = o3_arena_printf(arena, "%.*s/libc.so.6", folder, info.dli_fname);
  const char *libm = o3_arena_printf(arena, "%.*s/libm.so.6", folder, info.dli_fname);
  O3_TRY_ALLOC(libc && libm);
  add(command, "--as-needed");
  add(command, libc);
  add(command, libm);
  add(command, "/lib64/ld-linux-x86-64.so.2");
  return NULL;
}

static o3_status_t write_exports(const o3_workspace_t *workspace, o3_arena_t *arena, const char *prefix) {
  const char *text = o3_arena_printf(arena, "{ global: %s_model; local: *; };\n", prefix);
  O3_TRY_ALLOC(text);
  return o3_workspace_write(workspace, O3_WORK_FILE_EXPORTS, text, strlen(text));
}

static o3_status_t link_library(o3_workspace_t *workspace, o3_arena_t *arena, const o3_link_t *link) {
  static const char *const OPTIONS[] = {"-m",
                                        "elf_x86_64",
                                        "-shared",
                                        "-O1",
                                        "--gc-sections",
                                        "-z",
                                        "noexecstack",
                                        "-z",
                                        "relro",
                                        "-z",
                                        "now",
                                        "-z",
                                        "defs",
                                        "--hash-style=gnu",
                                        "--version-script"};
  O3_TRY(write_exports(workspace, arena, link->prefix));
  command_t command = {{"ld.lld"}, 1};
  for (size_t i = 0; i < sizeof(OPTIONS) / sizeof(OPTIONS[0]); ++i) add(&command, OPTIONS[i]);
  add(&command, o3_workspace_path(workspace, O3_WORK_FILE_EXPORTS));
  const char *note = o3_arena_printf(arena, "--build-id=0x%s", link->build_id);
  O3_TRY_ALLOC(note);
  add(&command, note);
  O3_TRY(add_threads(&command, arena, link->threads));
  add(&command, "-o");
  add(&command, o3_workspace_path(workspace, O3_WORK_FILE_LINKED));
  add_pieces(&command, workspace, link);
  O3_TRY(add_system_libraries(&command, arena));
  return o3_process_run(workspace, command.items);
}

/* One object in |file| whose only global definition is <prefix>_model. */
static o3_status_t join(o3_workspace_t *workspace, o3_arena_t *arena, const o3_link_t *link,
                        o3_work_file_t file) {
  const char *joined = o3_workspace_path(workspace, O3_WORK_FILE_JOINED);
  command_t linker = {{"ld.lld", "-m", "elf_x86_64", "-r", "-o", joined}, 6};
  O3_TRY(add_threads(&linker, arena, link->threads));
  add_pieces(&linker, workspace, link);
  O3_TRY(o3_process_run(workspace, linker.items));
  const char *keep = o3_arena_printf(arena, "--keep-global-symbol=%s_model", link->prefix);
  O3_TRY_ALLOC(keep);
  const char *const objcopy[] = {"llvm-objcopy", keep, joined, o3_workspace_path(workspace, file), NULL};
  return o3_process_run(workspace, objcopy);
}

/* The member's name is the workspace's fixed name for it, dates and owners are zero: D. */
static o3_status_t archive(o3_workspace_t *workspace, o3_arena_t *arena, const o3_link_t *link) {
  O3_TRY(join(workspace, arena, link, O3_WORK_FILE_OBJECT));
  const char *const ar[] = {"llvm-ar", "rcsD", o3_workspace_path(workspace, O3_WORK_FILE_RESULT),
                            o3_workspace_path(workspace, O3_WORK_FILE_OBJECT), NULL};
  return o3_process_run(workspace, ar);
}

o3_status_t o3_link(o3_workspace_t *workspace, o3_arena_t *arena, const o3_link_t *link) {
  size_t size = (size_t)(o3_embedded_runtime_end - o3_embedded_runtime_begin);
  O3_TRY(o3_workspace_write(workspace, O3_WORK_FILE_RUNTIME, o3_embedded_runtime_begin, size));
  switch (link->kind) {
    case O3_PACKAGE_LIBRARY:
      return o3_status_annotate(link_library(workspace, arena, link), "linking");
    case O3_PACKAGE_ARCHIVE:
      return o3_status_annotate(archive(workspace, arena, link), "archiving");
    case O3_PACKAGE_OBJECT:
      return o3_status_annotate(join(workspace, arena, link, O3_WORK_FILE_RESULT), "joining objects");
  }
  O3_UNREACHABLE("all kinds are above");
}
