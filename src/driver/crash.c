/* What happens when the process ends in the middle of a compilation. Everything below the handlers is
 * async-signal-safe. */
#include <llvm-c/ErrorHandling.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "driver/pass_run.h"
#include "o3/compiler.h"
#include "package/workspace.h"

static const char *program_name = "o3c";

static void say(const char *text) {
  ssize_t written = write(STDERR_FILENO, text, strlen(text));
  (void)written; /* there is nobody left to tell */
}

static void report(const char *what, const char *detail) {
  const char *pass = o3_pass_current();
  say(program_name);
  say(": error: internal error: ");
  say(what);
  say(detail);
  if (pass) {
    say(" (in pass '");
    say(pass);
    say("')");
  }
  say("\n");
}

static void llvm_gave_up(const char *reason) {
  report("LLVM: ", reason);
  o3_workspaces_abandon();
  _exit(1);
}

/* SA_RESETHAND has put the default action back: the second raise ends the process as its parent expects. */
static void end(int number) {
  o3_workspaces_abandon();
  raise(number);
}

static void crash(int number) {
  const char *name = sigabbrev_np(number);
  report("the compiler crashed: SIG", name ? name : "?");
  end(number);
}

static void handle(int number, void (*handler)(int)) {
  struct sigaction old, action = {.sa_handler = handler, .sa_flags = SA_RESETHAND | SA_ONSTACK | SA_NODEFER};
  sigfillset(&action.sa_mask);
  sigdelset(&action.sa_mask, number);
  /* What is ignored stays ignored: nohup. */
  if (sigaction(number, NULL, &old) || old.sa_handler == SIG_IGN) return;
  sigaction(number, &action, NULL);
}

void o3_compiler_install_handlers(const char *program) {
  static const int ENDS[] = {SIGINT, SIGTERM, SIGHUP}, CRASHES[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
  static char stack[64 * 1024]; /* for the handler when the thread's own stack is what ran out */
  program_name = program;
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
  for (size_t i = 0; i < sizeof(ENDS) / sizeof(ENDS[0]); ++i) handle(ENDS[i], end);
  for (size_t i = 0; i < sizeof(CRASHES) / sizeof(CRASHES[0]); ++i) handle(CRASHES[i], crash);
  LLVMInstallFatalErrorHandler(llvm_gave_up);
}
