// Threads as coroutines. On a card, what runs between two points where threads meet may come in any order:
// here some order is drawn, a different one for each block, so that a barrier that is missing shows now and
// then.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emulator.h"
#include "hopper_ops.h"

enum { STACK_BYTES = 64 << 10, IDLE_ROUNDS = 1000, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };

static struct {
  const emu_launch_t *launch;
  emu_block_t *blocks[EMU_MAX_CLUSTER];
  emu_thread_t *self;  // NULL: the scheduler
  void *scheduler;     // its stack pointer
  sigjmp_buf failed;
  uint64_t progress;
  uint64_t random;
} card;

emu_thread_t *emu_self(void) { return card.self; }
const emu_launch_t *emu_current(void) { return card.launch; }
emu_block_t *emu_cluster_block(unsigned rank) { return card.blocks[rank]; }
void emu_progress(void) { ++card.progress; }

// ---- Chance ----

uint64_t emu_random(void) {
  if (!card.random) {
    const char *seed = getenv("O3_SEED");
    card.random = (seed ? strtoull(seed, NULL, 10) : 0) * UINT64_C(0x9e3779b97f4a7c15) + 1;
  }
  card.random ^= card.random << 13;
  card.random ^= card.random >> 7;
  card.random ^= card.random << 17;
  return card.random;
}

uint64_t emu_below(uint64_t limit) { return (emu_random() >> 11) % limit; }

static uint64_t common_divisor(uint64_t a, uint64_t b) { return b ? common_divisor(b, a % b) : a; }

// All numbers below |count|, each once: (start + i * step) % count.
typedef struct order {
  uint64_t start, step, count;
} order_t;

static order_t draw_order(uint64_t count) {
  order_t order = {.start = emu_below(count), .step = 1, .count = count};
  do order.step = 1 + emu_below(count);
  while (common_divisor(order.step, count) != 1);
  return order;
}

static uint64_t at(const order_t *order, uint64_t i) {
  return (order->start + i * order->step) % order->count;
}

// ---- Failures ----

// Where the running thread is, for messages.
static void print_place(void) {
  fprintf(stderr, "emulator: %s", card.launch->kernel->name);
  if (!card.self) return;
  const emu_block_t *block = card.self->warp->block;
  fprintf(stderr, ", block %u,%u,%u, thread %d", block->index[0], block->index[1], block->index[2],
          card.self->number);
}

void emu_fail(const char *format, ...) {
  va_list arguments;
  print_place();
  fprintf(stderr, ": ");
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, "\n");
  siglongjmp(card.failed, LAUNCH_FAILED);
}

// In code of a kernel, or of an operation for one.
static void on_fault(int number, siginfo_t *info, void *context) {
  (void)context;
  if (!card.self) {
    signal(number, SIG_DFL);
    return;
  }
  print_place();
  fprintf(stderr, ": nothing is at address %p\n", info->si_addr);
  siglongjmp(card.failed, ILLEGAL_ADDRESS);
}

static void catch_faults(struct sigaction old[2]) {
  static char stack[32 << 10];
  const stack_t given = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigaltstack(&given, NULL);
  sigaction(SIGSEGV, &action, &old[0]);
  sigaction(SIGBUS, &action, &old[1]);
}

static void release_faults(const struct sigaction old[2]) {
  sigaction(SIGSEGV, &old[0], NULL);
  sigaction(SIGBUS, &old[1], NULL);
}

// ---- Coroutines ----

// Leaves the stack pointer at |*from| and goes on at |to|. The C library's swapcontext asks the kernel for
// signal masks, which takes longer than most of what runs between two switches.
void emu_switch(void **from, void *to);
__asm__(
    ".text\n"
    ".type emu_switch, @function\n"
    "emu_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size emu_switch, .-emu_switch\n");

static void leave(emu_state_t state) {
  emu_thread_t *thread = card.self;
  thread->state = state;
  emu_switch(&thread->stack_pointer, card.scheduler);
}

static void resume(emu_thread_t *thread) {
  card.self = thread;
  emu_switch(&card.scheduler, thread->stack_pointer);
  card.self = NULL;
}

static void begin(void) {
  card.launch->kernel->enter(card.launch->arguments);
  emu_thread_exit();
}

// As if it had been left just before |begin|, which returns to nobody.
static void prepare_stack(emu_thread_t *thread) {
  enum { SAVED = 6 };
  void **top = (void **)((char *)thread->stack + STACK_BYTES) - 1;
  *--top = (void *)(uintptr_t)begin;
  for (int i = 0; i < SAVED; ++i) *--top = NULL;
  thread->stack_pointer = top;
}

void emu_yield(void) { leave(EMU_READY); }

// ---- Barriers ----

static emu_barrier_t *barrier_of(emu_thread_t *thread, int id) {
  if (id < 0 || id >= EMU_BARRIERS) emu_fail("there is no barrier %d", id);
  return &thread->warp->block->barriers[id];
}

static bool waits(const emu_thread_t *thread, int id) {
  return thread->state == EMU_AT_BARRIER && thread->barrier == id;
}

// Warps come to a barrier as a whole, in one place of the code.
static void check_warp(const emu_warp_t *warp, int id) {
  uint32_t here = 0;
  const emu_site_t *site = NULL;
  for (int lane = 0; lane < EMU_WARP; ++lane) {
    const emu_thread_t *thread = &warp->threads[lane];
    if (!(warp->alive >> lane & 1) || !waits(thread, id)) continue;
    if (site && thread->site != site)
      emu_fail("of warp %d lanes at barrier %d came from two places", warp->number, id);
    site = thread->site;
    here |= 1U << lane;
  }
  if (here && here != warp->alive)
    emu_fail("of warp %d lanes %08x of %08x are at barrier %d", warp->number, here, warp->alive, id);
}

static void check_warps(const emu_block_t *block, int id) {
  for (int i = 0; i < (block->num_threads + EMU_WARP - 1) / EMU_WARP; ++i) check_warp(&block->warps[i], id);
}

static void release_if_full(emu_block_t *block, int id) {
  emu_barrier_t *barrier = &block->barriers[id];
  if (!barrier->arrived || barrier->arrived < (barrier->expected ? barrier->expected : block->alive)) return;
  check_warps(block, id);
  *barrier = (emu_barrier_t){0};
  for (int i = 0; i < block->num_threads; ++i)
    if (waits(&block->threads[i], id)) block->threads[i].state = EMU_READY;
  emu_progress();
}

static void arrive(emu_thread_t *thread, int id, int count) {
  emu_barrier_t *barrier = barrier_of(thread, id);
  if (barrier->arrived && barrier->expected != count)
    emu_fail("barrier %d is for %d threads here, for %d elsewhere", id, count, barrier->expected);
  barrier->expected = count;
  ++barrier->arrived;
  thread->barrier = id;
}

void emu_barrier_wait(emu_thread_t *thread, int id, int count) {
  arrive(thread, id, count);
  thread->state = EMU_AT_BARRIER;
  release_if_full(thread->warp->block, id);
  if (thread->state == EMU_AT_BARRIER) leave(EMU_AT_BARRIER);
}

void emu_barrier_arrive(emu_thread_t *thread, int id, int count) {
  arrive(thread, id, count);
  release_if_full(thread->warp->block, id);
}

// ---- Operations of warps ----

static bool is_ready(const emu_thread_t *thread, const emu_thread_t *first) {
  return thread->state == EMU_AT_WARP && thread->mask == first->mask;
}

// Once all of |self|'s fellows are there, too.
static void meet(emu_thread_t *self) {
  emu_warp_t *warp = self->warp;
  uint32_t lanes = self->mask & warp->alive;
  for (int lane = 0; lane < EMU_WARP; ++lane) {
    const emu_thread_t *thread = &warp->threads[lane];
    if (!(lanes >> lane & 1)) continue;
    if (!is_ready(thread, self)) return;
    if (thread->site->op != self->site->op)
      emu_fail("lane %d is at %s, lane %d at %s", self->lane, self->site->name, lane, thread->site->name);
  }
  self->site->op->warp(warp, lanes);
  for (int lane = 0; lane < EMU_WARP; ++lane)
    if (lanes >> lane & 1) warp->threads[lane].state = EMU_READY;
  emu_progress();
}

void emu_call(emu_site_t *site, const emu_word_t *operands, emu_word_t *results) {
  emu_thread_t *self = card.self;
  const emu_op_t *op = site->op;
  self->site = site;
  if (op->thread) {
    op->thread(self, operands, results);
    return;
  }
  self->operands = operands;
  self->results = results;
  self->mask = op->masked ? operands[0].u32 : UINT32_MAX;
  if (!(self->mask >> self->lane & 1)) emu_fail("%s does not name the lane that it runs in", site->name);
  self->state = EMU_AT_WARP;
  meet(self);
  if (self->state == EMU_AT_WARP) leave(EMU_AT_WARP);
}

void *emu_shared(void) { return card.self->warp->block->shared; }

// ---- Ends ----

// Those who wait for a thread that ends do not wait any longer.
void emu_thread_exit(void) {
  emu_thread_t *self = card.self;
  emu_warp_t *warp = self->warp;
  self->state = EMU_DONE;
  warp->alive &= ~(1U << self->lane);
  --warp->block->alive;
  emu_progress();
  for (int lane = 0; lane < EMU_WARP; ++lane) {
    if (warp->alive >> lane & 1 && warp->threads[lane].state == EMU_AT_WARP) meet(&warp->threads[lane]);
  }
  for (int id = 0; id < EMU_BARRIERS; ++id) release_if_full(warp->block, id);
  leave(EMU_DONE);
  abort();
}

static void describe(const emu_thread_t *thread, char *text, size_t size) {
  if (thread->state == EMU_AT_BARRIER)
    snprintf(text, size, "at barrier %d", thread->barrier);
  else if (thread->state == EMU_AT_WARP)
    snprintf(text, size, "at %s", thread->site->name);
  else
    snprintf(text, size, "polling");
}

static _Noreturn void fail_stuck(unsigned num_blocks) {
  char first[160] = "", last[160] = "";
  int count = 0;
  for (unsigned b = 0; b < num_blocks; ++b) {
    for (int i = 0; i < card.blocks[b]->num_threads; ++i) {
      const emu_thread_t *thread = &card.blocks[b]->threads[i];
      if (thread->state == EMU_DONE) continue;
      describe(thread, count ? last : first, sizeof first);
      ++count;
    }
  }
  emu_fail("nobody goes on: %d threads wait, the first %s, the last %s", count, first, last);
}

// ---- Scheduling ----

static void begin_block(emu_block_t *block, unsigned rank, const unsigned index[3]) {
  const emu_launch_t *launch = card.launch;
  memcpy(block->index, index, sizeof block->index);
  block->rank = rank;
  block->num_threads = block->alive = (int)(launch->block[0] * launch->block[1] * launch->block[2]);
  block->shared = emu_shared_window(rank);
  if (!block->shared) emu_fail("there is no memory below 4 GiB");
  emu_shared_begin(block->shared, launch->shared);
  memset(block->barriers, 0, sizeof block->barriers);
  for (int i = 0; i < block->num_threads; ++i) {
    emu_thread_t *thread = &block->threads[i];
    emu_warp_t *warp = &block->warps[i / EMU_WARP];
    if (i % EMU_WARP == 0) *warp = (emu_warp_t){.block = block, .number = i / EMU_WARP, .threads = thread};
    warp->alive |= 1U << i % EMU_WARP;
    *thread = (emu_thread_t){.stack = thread->stack,
                             .copies = thread->copies,
                             .room = thread->room,
                             .warp = warp,
                             .number = i,
                             .lane = i % EMU_WARP};
    prepare_stack(thread);
  }
  emu_hopper_begin(block);
}

static void end_block(const emu_block_t *block) {
  emu_hopper_end(block);
  if (!emu_shared_intact(block->shared, card.launch->shared))
    emu_fail("block %u,%u,%u has written beyond its %u bytes of shared memory", block->index[0],
             block->index[1], block->index[2], card.launch->shared);
  for (int id = 0; id < EMU_BARRIERS; ++id)
    if (block->barriers[id].arrived) emu_fail("threads have arrived at barrier %d that nobody waited at", id);
}

// Each lane that can go on, once; whether there was one.
static bool step_warp(emu_warp_t *warp) {
  const order_t order = draw_order(EMU_WARP);
  bool any = false;
  for (int i = 0; i < EMU_WARP; ++i) {
    uint64_t lane = at(&order, (uint64_t)i);
    if (!(warp->alive >> lane & 1) || warp->threads[lane].state != EMU_READY) continue;
    resume(&warp->threads[lane]);
    any = true;
  }
  return any;
}

// How far a warp runs before another one does: a step, some, or until it has to wait.
static int draw_burst(void) {
  static const int kBursts[] = {1, 4, 64, 4096};
  return kBursts[emu_below(sizeof kBursts / sizeof kBursts[0])];
}

static bool step_blocks(unsigned num_blocks, unsigned num_warps) {
  const order_t order = draw_order((uint64_t)num_blocks * num_warps);
  bool any = false;
  for (uint64_t i = 0; i < order.count; ++i) {
    uint64_t number = at(&order, i);
    emu_warp_t *warp = &card.blocks[number / num_warps]->warps[number % num_warps];
    for (int burst = draw_burst(); burst && warp->alive; --burst) {
      uint64_t before = card.progress;
      if (!step_warp(warp)) break;
      any = true;
      if (card.progress == before) break;  // all that go on poll
    }
  }
  return any;
}

static void run_together(unsigned num_blocks) {
  unsigned num_warps = (unsigned)(card.blocks[0]->num_threads + EMU_WARP - 1) / EMU_WARP;
  uint64_t seen = card.progress;
  for (int idle = 0;;) {
    int alive = 0;
    for (unsigned b = 0; b < num_blocks; ++b) alive += card.blocks[b]->alive;
    if (!alive) break;
    bool any = step_blocks(num_blocks, num_warps);
    idle = seen == card.progress ? idle + 1 : 0;
    seen = card.progress;
    if (!any || idle == IDLE_ROUNDS) fail_stuck(num_blocks);
  }
  for (unsigned b = 0; b < num_blocks; ++b) end_block(card.blocks[b]);
}

static void run_grid(void) {
  const emu_launch_t *launch = card.launch;
  unsigned clusters = launch->grid[0] / launch->cluster;
  const order_t order = draw_order((uint64_t)clusters * launch->grid[1] * launch->grid[2]);
  for (uint64_t i = 0; i < order.count; ++i) {
    uint64_t number = at(&order, i);
    unsigned row = (unsigned)(number / clusters);
    for (unsigned rank = 0; rank < launch->cluster; ++rank) {
      const unsigned index[] = {(unsigned)(number % clusters) * launch->cluster + rank, row % launch->grid[1],
                                row / launch->grid[1]};
      begin_block(card.blocks[rank], rank, index);
    }
    run_together(launch->cluster);
  }
}

// ---- Launches ----

static emu_block_t *make_block(void) {
  emu_block_t *block = calloc(1, sizeof *block);
  char *stacks = mmap(NULL, (size_t)EMU_MAX_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!block || stacks == MAP_FAILED) return NULL;
  for (int i = 0; i < EMU_MAX_THREADS; ++i) block->threads[i].stack = stacks + (size_t)i * STACK_BYTES;
  return block;
}

static void check_launch(const emu_launch_t *launch) {
  uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
  if (!threads || threads > EMU_MAX_THREADS) emu_fail("a block of %llu threads", (unsigned long long)threads);
  if (!launch->grid[0] || !launch->grid[1] || !launch->grid[2]) emu_fail("a grid of no blocks");
  if (!launch->cluster || launch->cluster > EMU_MAX_CLUSTER || launch->grid[0] % launch->cluster)
    emu_fail("clusters of %u in a grid of %u", launch->cluster, launch->grid[0]);
  if (launch->shared > EMU_SHARED_WINDOW) emu_fail("%u bytes of shared memory", launch->shared);
  for (unsigned rank = 0; rank < launch->cluster; ++rank) {
    if (!card.blocks[rank]) card.blocks[rank] = make_block();
    if (!card.blocks[rank]) emu_fail("out of memory");
  }
}

int emu_run(const emu_launch_t *launch) {
  struct sigaction old[2];
  card.launch = launch;
  catch_faults(old);
  int code = sigsetjmp(card.failed, 1);
  if (!code) {
    check_launch(launch);
    run_grid();
    const char *wrong = emu_memory_check();
    if (wrong) emu_fail("%s", wrong);
  }
  card.self = NULL;
  release_faults(old);
  return code;
}
