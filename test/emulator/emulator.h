// A card on the CPU, for tests of GPU kernels where there is none: the library
// build/lib/emulator/libcuda.so.1.
//
// Code. `gpu_emulator IN.ll OUT.o` (emu_translate.c) makes x86 code of what `o3c -t CARD -o IN.ll` writes:
// the kernels' optimised LLVM IR. Whatever is an instruction of the card there, a call of an intrinsic
// llvm.nvvm.* or inline PTX, becomes a call of emu_call() with a site, which has its name, and arrays of its
// operands and results, a word each. The object ends in a table of the kernels.
//
// Dispatch. A name is looked up in emu_ops.def (the first pattern of fnmatch that fits): the function behind
// it gets the operands. Operations of a thread run as soon as it comes to them; those of a warp once all of
// its lanes that take part have come to the same one, for all of them together. For inline PTX the name is
// its text up to its operands, or the whole text where that begins with a brace; operands are the inputs in
// their order, tied ones included, results the outputs. A kernel with a name that nothing fits is no kernel
// of this card: cuModuleGetFunction says so, and the reason is printed.
//
// Running. The threads of a block, and of all blocks of a cluster, are coroutines on one thread of the CPU.
// The order of blocks, of warps, of lanes within them and how far each runs ahead follow from O3_SEED.
//
// Memory. Shared memory lies below 4 GiB, as kernels have its addresses in 32 bits, and is full of NaNs when
// a block begins; the card's memory is full of NaNs when it is allocated. Blocks of memory and shared memory
// end at pages that cannot be read, and what is left up to there is looked at after each launch.
//
// All of it runs in one thread: state is global.
#ifndef O3_TEST_EMULATOR_H
#define O3_TEST_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  EMU_WARP = 32,
  EMU_MAX_THREADS = 1024,
  EMU_MAX_WARPS = EMU_MAX_THREADS / EMU_WARP,
  EMU_BARRIERS = 16,
  EMU_MAX_CLUSTER = 16,
  EMU_SHARED_WINDOW = 256 << 10  // of a block; its address is a multiple of this
};

// An operand or a result: a number of up to 64 bits, a pointer, or a vector of up to 8 bytes.
typedef union emu_word {
  uint64_t u64;
  uint32_t u32;
  int32_t i32;
  float f32;
  void *pointer;
} emu_word_t;

// ---- What the translated code has; the translator writes these records ----

typedef struct emu_op emu_op_t;

typedef struct emu_site {
  const char *name;
  int64_t num_operands, num_results;
  const emu_op_t *op;  // once it is looked up
  void *read;          // what the operation keeps of the name
} emu_site_t;

typedef struct emu_kernel {
  const char *name;
  void (*enter)(void *const *arguments);  // pointers to the parameters
  int64_t num_parameters;
  const size_t *parameters;  // their bytes
  int64_t num_sites;
  emu_site_t *const *sites;  // of the kernel
} emu_kernel_t;

// Ends at a name of NULL.
#define EMU_KERNELS "emu_kernels"

__attribute__((visibility("default"))) void emu_call(emu_site_t *site, const emu_word_t *operands,
                                                     emu_word_t *results);
__attribute__((visibility("default"))) void *emu_shared(void);  // of the running thread's block

// ---- Threads ----

typedef struct emu_block emu_block_t;
typedef struct emu_warp emu_warp_t;

typedef enum emu_state { EMU_READY, EMU_AT_WARP, EMU_AT_BARRIER, EMU_DONE } emu_state_t;

// A copy by cp.async that nobody has waited for.
typedef struct emu_copy {
  void *to;
  const void *from;
  uint32_t bytes, given;  // the rest is zeros
  uint32_t group;
} emu_copy_t;

typedef struct emu_thread {
  void *stack, *stack_pointer;
  emu_warp_t *warp;
  int number;  // in its block
  int lane;
  emu_state_t state;
  // Where it is or waits:
  emu_site_t *site;
  const emu_word_t *operands;
  emu_word_t *results;
  uint32_t mask;
  int barrier;
  // cp.async:
  emu_copy_t *copies;
  size_t num_copies, room;
  uint32_t group;
} emu_thread_t;

struct emu_warp {
  emu_block_t *block;
  int number;
  uint32_t alive;
  emu_thread_t *threads;  // EMU_WARP of them, the last ones may be missing
};

typedef struct emu_barrier {
  int arrived, expected;  // threads; 0: all of the block
} emu_barrier_t;

struct emu_block {
  unsigned index[3];  // in the grid
  unsigned rank;      // in the cluster
  int num_threads, alive;
  char *shared;
  emu_barrier_t barriers[EMU_BARRIERS];
  emu_warp_t warps[EMU_MAX_WARPS];
  emu_thread_t threads[EMU_MAX_THREADS];
};

typedef struct emu_launch {
  const emu_kernel_t *kernel;
  void *const *arguments;
  unsigned grid[3], block[3], cluster, shared;
} emu_launch_t;

// The thread that runs, and the launch.
emu_thread_t *emu_self(void);
const emu_launch_t *emu_current(void);
emu_block_t *emu_cluster_block(unsigned rank);

// ---- For operations ----

// |lanes|: a bit for each thread of |warp| that takes part; their operands and results are in the threads.
typedef void emu_warp_fn_t(emu_warp_t *warp, uint32_t lanes);
typedef void emu_thread_fn_t(emu_thread_t *thread, const emu_word_t *operands, emu_word_t *results);

struct emu_op {
  const char *pattern;
  emu_thread_fn_t *thread;  // or
  emu_warp_fn_t *warp;
  bool masked;  // the first operand says which lanes take part; else all do
};

const emu_op_t *emu_op_find(const char *name);  // NULL: unknown

// Lets others run; the thread goes on later. For loops that poll.
void emu_yield(void);
// Waits at barrier |id| for |count| threads, 0: all of the block; or only arrives there.
void emu_barrier_wait(emu_thread_t *thread, int id, int count);
void emu_barrier_arrive(emu_thread_t *thread, int id, int count);
// Something happened that a thread which polls may be waiting for.
void emu_progress(void);
_Noreturn void emu_thread_exit(void);
// Ends the launch with CUDA_ERROR_LAUNCH_FAILED (719); the message is printed with kernel, block and thread.
_Noreturn void emu_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// ---- Parts of the card ----

int emu_run(const emu_launch_t *launch);  // CUresult; waits for its end

void *emu_memory_alloc(size_t bytes);
void emu_memory_free(void *memory);
// NULL, or what is wrong: a write beyond the end of a block of memory.
const char *emu_memory_check(void);
char *emu_shared_window(unsigned rank);
void emu_shared_begin(char *window, size_t bytes);
bool emu_shared_intact(const char *window, size_t bytes);

uint64_t emu_random(void);
uint64_t emu_below(uint64_t limit);

#endif
