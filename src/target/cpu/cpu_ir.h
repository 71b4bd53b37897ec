/* What the passes of the CPU back end build again and again: calls of the runtime, descriptors, casts. */
#ifndef O3_TARGET_CPU_CPU_IR_H
#define O3_TARGET_CPU_CPU_IR_H

#include "ir/build.h"

/* Every buffer starts at a multiple of this many bytes. */
#define O3_CPU_ALIGNMENT 64

/* Unit attribute of a math.exp whose operand is 0, below, or NaN; results below 2e-38 may be 0. */
#define O3_CPU_NOT_POSITIVE "o3.not_positive"

/* Of an scf.parallel: the iterations that a thread gets at least; without it what is worth a thread's start
 * (o3.work). */
#define O3_CPU_GRAIN "o3.grain"

/* Loads the dialects that the back end builds ops of; each pass that does calls it first. */
void o3_cpu_load_dialects(MlirContext context);

MlirType o3_cpu_ptr_type(MlirContext context);
MlirType o3_cpu_i64_type(MlirContext context);

/* The struct that stands for a memref in the llvm dialect: {ptr, ptr, offset[, sizes, strides]}. */
MlirType o3_cpu_descriptor_type(MlirType memref);

/* The type that carries a value of |type| in the llvm dialect; a null type when there is none. */
MlirType o3_cpu_llvm_type(MlirType type);

/* builtin.unrealized_conversion_cast, |value| itself when it has the type already. */
MlirValue o3_cpu_cast(o3_builder_t *builder, MlirValue value, MlirType type);

/* An index as i64 and back. */
MlirValue o3_cpu_to_i64(o3_builder_t *builder, MlirValue index);
MlirValue o3_cpu_to_index(o3_builder_t *builder, MlirValue integer);

/* A call of a runtime function (runtime/compiled.h), which is declared in |module| when it is not yet. The
 * result's value, or a null value for those that have none. */
typedef enum o3_cpu_rt {
  O3_CPU_RT_ARENA, /* (session, bytes) -> ptr */
  O3_CPU_RT_ALLOC, /* (session, bytes) -> ptr */
  O3_CPU_RT_FREE,  /* (session, ptr) */
  O3_CPU_RT_FAIL,  /* (session, message) */
  /* The same in the memory of the card, for GPU targets. */
  O3_CPU_RT_GPU_ARENA,
  O3_CPU_RT_GPU_ALLOC,
  O3_CPU_RT_GPU_FREE,
  O3_CPU_RT_PARALLEL_FOR, /* (session, function, context, count, grain) */
  O3_CPU_RT_KERNEL_BEGIN, /* (session, kernel: i32, operations, bytes) */
  O3_CPU_RT_COUNT
} o3_cpu_rt_t;
MlirValue o3_cpu_call_runtime(o3_builder_t *builder, MlirModule module, o3_cpu_rt_t function,
                              int num_operands, const MlirValue *operands);

/* Declares a function of the runtime by its llvm.func text when it is not; calls one, whose result, if it has
 * one, is a pointer. */
void o3_cpu_declare(MlirModule module, const char *name, const char *declaration);
MlirValue o3_cpu_call_declared(o3_builder_t *builder, const char *name, bool has_result, int num_operands,
                               const MlirValue *operands);
/* The same, which gives the call itself. */
MlirOperation o3_cpu_build_call(o3_builder_t *builder, const char *name, bool has_result, int num_operands,
                                const MlirValue *operands);

/* A func.call of a function without results, which may be made later. */
void o3_cpu_call(o3_builder_t *builder, const char *callee, int num_operands, const MlirValue *operands);

/* memref<?xi8> over |bytes| (index) bytes at |pointer|. */
MlirValue o3_cpu_bytes_at(o3_builder_t *builder, MlirValue pointer, MlirValue bytes);

/* memref.extract_strided_metadata of |memref|: its results are the memory, of rank 0 at the offset 0, then
 * the offset, the sizes and the strides. */
MlirOperation o3_cpu_metadata(o3_builder_t *builder, MlirValue memref);

/* The memory of |memref|, of rank 0 at the offset 0, as a memref<?xT> that no index exceeds. */
MlirValue o3_cpu_flat(o3_builder_t *builder, MlirValue memref);

/* The address of a constant text, NUL-terminated, as a pointer; the global is made in |module|. */
MlirValue o3_cpu_text(o3_builder_t *builder, MlirModule module, MlirStringRef text);

/* scf.parallel over |count| dims from 0 to |sizes| by |steps|, without reductions. Gives a builder inside and
 * the |ivs|. |work| is the rough number of operations of one iteration (attribute o3.work). A dim that is
 * known to have one iteration is no dim of the loop: its iv is a constant zero. */
o3_builder_t o3_cpu_parallel(o3_builder_t *builder, int count, const MlirValue *sizes, const MlirValue *steps,
                             int64_t work, MlirValue *ivs);

/* The session, @main's first argument once the memory is planned. */
MlirValue o3_cpu_session(MlirModule module);

/* "o3k_<label of op>_<number>", the label cut to 63 characters of which others than letters and digits are
 * '_'; "loop" without one. */
void o3_cpu_kernel_name(MlirOperation op, int number, char *name, size_t size);

/* Functions of the module. Before cpu-share-kernels takes some away, as many numbers, from 0 on, may be in
 * the names of its kernels. */
int o3_cpu_count_functions(MlirModule module);

/* Makes the minima and maxima of floats under |root| intrinsics. |any_zero|: which zero is given is open
 * where one operand is a constant. */
o3_status_t o3_cpu_use_intrinsics(MlirOperation root, bool any_zero) O3_MUST_USE;

/* Whether |op| lies inside |ancestor|, at any depth (or is it). */
bool o3_cpu_is_inside(MlirOperation op, MlirOperation ancestor);

/* Parses |text|, a module of functions, and moves those whose names |module| has not yet into it. */
o3_status_t o3_cpu_add_functions(MlirModule module, const char *text, const char *what) O3_MUST_USE;

/* Asks for the cache line of element |at| of |memref|, to be read from the cache of |level|, 1 or 2. */
void o3_cpu_prefetch(o3_builder_t *builder, MlirValue memref, MlirValue at, int level);

#endif
