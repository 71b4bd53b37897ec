/* Workspace: a hidden folder beside the output in which it is put together.
 *
 * The output appears under its own name only when it is complete, by a rename. Whatever ends a compilation,
 * a failure, a signal or LLVM giving up, nothing of the workspace is left.
 */
#ifndef O3_PACKAGE_WORKSPACE_H
#define O3_PACKAGE_WORKSPACE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/status.h"

typedef enum o3_work_file {
#define O3_WORK_FILE(id, name) O3_WORK_FILE_##id,
#include "package/work_files.def"
#undef O3_WORK_FILE
  O3_WORK_FILE_COUNT
} o3_work_file_t;

typedef struct o3_workspace o3_workspace_t;

/* The most compilations that one process may run at a time. */
#define O3_WORKSPACE_MAX 64

/* A workspace beside |output|. IO or NOT_FOUND when its folder does not exist or cannot be written to, or
 * when |output| is there and is no regular file. */
o3_status_t o3_workspace_create(const char *output, o3_workspace_t **workspace) O3_MUST_USE;
/* Removes the folder with all that is in it. NULL is fine. */
void o3_workspace_destroy(o3_workspace_t *workspace);

/* The folder's path. Borrowed from the workspace. */
const char *o3_workspace_folder(const o3_workspace_t *workspace);

/* The file's path; it need not exist. Borrowed from the workspace. */
const char *o3_workspace_path(const o3_workspace_t *workspace, o3_work_file_t file);

/* Makes |file| of |size| bytes. */
o3_status_t o3_workspace_write(const o3_workspace_t *workspace, o3_work_file_t file, const void *data,
                               size_t size) O3_MUST_USE;

/* Renames |file| to |output|, which must lie in the folder that the workspace was made beside. */
o3_status_t o3_workspace_publish(const o3_workspace_t *workspace, o3_work_file_t file, const char *output)
    O3_MUST_USE;

/* The process that works in the workspace now; 0 when it is gone. */
void o3_workspace_set_child(o3_workspace_t *workspace, pid_t child);

/* Ends all workspaces of the process: their children are terminated and waited for, their files removed. For
 * signal handlers (async-signal-safe); the process must end after it. */
void o3_workspaces_abandon(void);

#endif
