// cp.async at its most unpleasant: nothing is copied before somebody waits for it, and until then the place
// has NaNs. What reads too early, or has its source overwritten, gets a wrong result.
#include <stdlib.h>
#include <string.h>

#include "emu_ops.h"

enum { NOT_A_NUMBER = 0xff };

static void begin(emu_thread_t *thread, void *to, const void *from, uint32_t bytes, uint32_t given) {
  if ((uintptr_t)to % bytes || (given && (uintptr_t)from % bytes))
    emu_fail("cp.async of %u bytes from %p to %p: not aligned", bytes, from, to);
  if (given > bytes) emu_fail("cp.async of %u bytes of %u", given, bytes);
  if (thread->num_copies == thread->room) {
    size_t room = thread->room ? 2 * thread->room : 64;
    emu_copy_t *copies = realloc(thread->copies, room * sizeof *copies);
    if (!copies) emu_fail("out of memory");
    thread->copies = copies;
    thread->room = room;
  }
  memset(to, NOT_A_NUMBER, bytes);
  thread->copies[thread->num_copies++] =
      (emu_copy_t){.to = to, .from = from, .bytes = bytes, .given = given, .group = thread->group};
}

// Until at most |left| groups are on their way.
static void wait_for(emu_thread_t *thread, uint32_t left) {
  size_t done = 0;
  for (; done < thread->num_copies; ++done) {
    const emu_copy_t *copy = &thread->copies[done];
    if (copy->group + left >= thread->group) break;
    memcpy(copy->to, copy->from, copy->given);
    memset((char *)copy->to + copy->given, 0, copy->bytes - copy->given);
  }
  thread->num_copies -= done;
  memmove(thread->copies, thread->copies + done, thread->num_copies * sizeof *thread->copies);
}

// llvm.nvvm.cp.async.ca.shared.global.16(to, from); with .s at the end (to, from, bytes given)
void emu_copy_async(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  char *end;
  uint32_t bytes = (uint32_t)strtoul(strstr(thread->site->name, ".global.") + strlen(".global."), &end, 10);
  (void)results;
  begin(thread, operands[0].pointer, operands[1].pointer, bytes, *end ? operands[2].u32 : bytes);
}

void emu_copy_group(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)operands, (void)results;
  ++thread->group;
}

void emu_copy_await(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results) {
  (void)results;
  wait_for(thread, operands[0].u32);
}
