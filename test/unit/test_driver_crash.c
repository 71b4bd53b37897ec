/* Processes that end in the middle of a compilation: what they print, how they end, what they leave. */
#include <dirent.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "o3/compiler.h"
#include "package/workspace.h"
#include "unit.h"

/* X86 has no such instruction: LLVM gives up by report_fatal_error. */
static const char UNSELECTABLE[] =
    "target triple = \"x86_64-unknown-linux-gnu\"\n"
    "declare void @llvm.nvvm.barrier0()\n"
    "define void @f() {\n  call void @llvm.nvvm.barrier0()\n  ret void\n}\n";

static void make_llvm_give_up(void) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMModuleRef module;
  LLVMTargetRef target;
  char *message;
  LLVMMemoryBufferRef bytes,
      text = LLVMCreateMemoryBufferWithMemoryRangeCopy(UNSELECTABLE, sizeof(UNSELECTABLE) - 1, "x");
  if (LLVMParseIRInContext(LLVMContextCreate(), text, &module, &message)) _exit(90);
  if (LLVMGetTargetFromTriple("x86_64-unknown-linux-gnu", &target, &message)) _exit(91);
  LLVMTargetMachineRef machine =
      LLVMCreateTargetMachine(target, "x86_64-unknown-linux-gnu", "x86-64", "", LLVMCodeGenLevelDefault,
                              LLVMRelocPIC, LLVMCodeModelSmall);
  LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &bytes);
  _exit(92);
}

static void raise_term(void) { raise(SIGTERM); }
static void raise_segv(void) { raise(SIGSEGV); }
static void ignored_hup(void) {
  raise(SIGHUP);
  o3_workspaces_abandon();
  _exit(7);
}

typedef struct ending {
  int status; /* of waitpid */
  char text[1024];
  int left; /* files in the folder */
} ending_t;

static void live(const char *folder, void (*act)(void)) {
  char output[256];
  o3_workspace_t *workspace;
  snprintf(output, sizeof(output), "%s/net.so", folder);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  if (act == ignored_hup) signal(SIGHUP, SIG_IGN);
  o3_compiler_install_handlers("tool");
  if (o3_workspace_create(output, &workspace)) _exit(93);
  if (o3_workspace_write(workspace, O3_WORK_FILE_MODEL, "x", 1)) _exit(94);
  act();
  _exit(95);
}

static int count_files(const char *folder) {
  int count = -2; /* . and .. */
  DIR *dir = opendir(folder);
  while (readdir(dir)) ++count;
  closedir(dir);
  return count;
}

static ending_t end_by(void (*act)(void)) {
  ending_t ending = {0};
  char *folder;
  int ends[2];
  assert_ok(o3_file_temp_dir_create(&folder));
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    live(folder, act);
  }
  close(ends[1]);
  size_t length = 0;
  for (ssize_t count; (count = read(ends[0], ending.text + length, sizeof(ending.text) - 1 - length)) > 0;)
    length += (size_t)count;
  close(ends[0]);
  assert_int_equal(waitpid(child, &ending.status, 0), child);
  ending.left = count_files(folder);
  o3_file_temp_dir_remove(folder);
  free(folder);
  return ending;
}

static void llvm_giving_up_is_one_line(void **state) {
  (void)state;
  ending_t ending = end_by(make_llvm_give_up);
  assert_true(WIFEXITED(ending.status));
  assert_int_equal(WEXITSTATUS(ending.status), 1);
  unit_assert_contains(ending.text, "tool: error: internal error: LLVM: ");
  assert_int_equal(ending.left, 0);
}

static void termination_ends_as_it_would_have(void **state) {
  (void)state;
  ending_t ending = end_by(raise_term);
  assert_true(WIFSIGNALED(ending.status));
  assert_int_equal(WTERMSIG(ending.status), SIGTERM);
  assert_string_equal(ending.text, "");
  assert_int_equal(ending.left, 0);
}

static void crashes_are_told(void **state) {
  (void)state;
  ending_t ending = end_by(raise_segv);
  assert_true(WIFSIGNALED(ending.status));
  assert_int_equal(WTERMSIG(ending.status), SIGSEGV);
  assert_string_equal(ending.text, "tool: error: internal error: the compiler crashed: SIGSEGV\n");
  assert_int_equal(ending.left, 0);
}

static void what_is_ignored_stays_ignored(void **state) {
  (void)state;
  ending_t ending = end_by(ignored_hup);
  assert_true(WIFEXITED(ending.status));
  assert_int_equal(WEXITSTATUS(ending.status), 7);
  assert_int_equal(ending.left, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(llvm_giving_up_is_one_line),
      cmocka_unit_test(termination_ends_as_it_would_have),
      cmocka_unit_test(crashes_are_told),
      cmocka_unit_test(what_is_ignored_stays_ignored),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
