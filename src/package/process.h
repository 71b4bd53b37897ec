/* Runs one of LLVM's programs and waits for it. */
#ifndef O3_PACKAGE_PROCESS_H
#define O3_PACKAGE_PROCESS_H

#include "package/workspace.h"

/* Runs |arguments| (the first is the program's name, the last NULL), looked for where LLVM was installed when
 * o3c was built and then in PATH. INTERNAL with what it printed when it fails, NOT_FOUND when it is not
 * there. The workspace knows the process while it runs. */
o3_status_t o3_process_run(o3_workspace_t *workspace, const char *const *arguments) O3_MUST_USE;

#endif
