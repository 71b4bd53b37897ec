/* Writes GPU kernels as MLIR text: values are numbered, %v<n>, and every function that makes one returns its
 * number.
 *
 *     int row = o3_kt_op(t, "addi", warp_row, lane_row);
 *     int p = o3_kt_value(t, "llvm.getelementptr %%v%d[%%v%d] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16", x,
 * row);
 *
 * Integers are i32 unless a name says otherwise. Barriers, copies and products are those of sm_90; each
 * function says what it needs.
 */
#ifndef O3_TARGET_NVPTX_KERNEL_TEXT_H
#define O3_TARGET_NVPTX_KERNEL_TEXT_H

#include "base/strbuf.h"
#include "target/nvptx/kernel_launch.h"

typedef struct o3_kernel_text {
  o3_strbuf_t out;
  int next;
} o3_kernel_text_t;

/* "%v<n> = ...\n": the number. */
int o3_kt_value(o3_kernel_text_t *t, const char *format, ...) O3_PRINTF(2, 3);
/* A line without a result. */
void o3_kt_line(o3_kernel_text_t *t, const char *format, ...) O3_PRINTF(2, 3);
/* A number for a name that the caller writes itself (block arguments, several results). */
int o3_kt_name(o3_kernel_text_t *t);

/* ---- Integers and conditions ---- */
int o3_kt_i32(o3_kernel_text_t *t, int64_t value);
int o3_kt_op(o3_kernel_text_t *t, const char *op, int a, int b);           /* arith.<op>: addi, muli, shrui */
int o3_kt_op_const(o3_kernel_text_t *t, const char *op, int a, int64_t b); /* the same with a constant */
/* The remainder of |*rest| by |size|; |*rest| becomes the quotient: one index of a flat one, innermost first.
 */
int o3_kt_split(o3_kernel_text_t *t, int *rest, int64_t size);
int o3_kt_cmp(o3_kernel_text_t *t, const char *predicate, int a, int b); /* arith.cmpi: slt, eq ... */
int o3_kt_cmp_const(o3_kernel_text_t *t, const char *predicate, int a, int64_t b);
int o3_kt_select(o3_kernel_text_t *t, int condition, int a, int b, const char *type);
void o3_kt_if(o3_kernel_text_t *t, int condition); /* opens scf.if; close with o3_kt_end */
void o3_kt_else(o3_kernel_text_t *t);
void o3_kt_end(o3_kernel_text_t *t);

/* ---- Loops ---- */

/* A value that a loop carries: what it starts at, its type; in the loop and behind it: its number there. */
typedef struct o3_kt_carried {
  int init;
  const char *type;
  int value, result;
} o3_kt_carried_t;

/* Opens scf.for and gives its counter; close it with o3_kt_end_for, which takes the next values. */
int o3_kt_for(o3_kernel_text_t *t, int lower, int upper, int step, int count, o3_kt_carried_t *carried);
void o3_kt_end_for(o3_kernel_text_t *t, int count, const o3_kt_carried_t *carried, const int *next);

/* ---- Places ---- */
int o3_kt_thread(o3_kernel_text_t *t);
int o3_kt_block(o3_kernel_text_t *t);
/* The value of lane 0 for the whole warp. */
int o3_kt_uniform(o3_kernel_text_t *t, int value);
/* |base| + |bytes|, in shared memory. */
int o3_kt_shared(o3_kernel_text_t *t, int base, int bytes);
/* The element |index| (i32, elements) of a buffer in global memory; 64-bit arithmetic. */
int o3_kt_global(o3_kernel_text_t *t, int base, int index, const char *element);
/* The 32-bit address of a pointer to shared memory. */
int o3_kt_address(o3_kernel_text_t *t, int shared);

/* Stores 4 matrices of 8 x 8 halves, (upper, lower half) x (piece, next piece) of the warp's 16 rows of 128
 * bytes at |staging|, their 16-byte pieces swizzled as tensor maps do; |words|: what the lane holds of each.
 * sm_90. */
void o3_kt_store_matrices(o3_kernel_text_t *t, int staging, int warp, int lane, int piece,
                          const int words[4]);

/* ---- Barriers ---- */
void o3_kt_mbarrier_init(o3_kernel_text_t *t, int barrier, int count);
void o3_kt_mbarrier_wait(o3_kernel_text_t *t, int barrier, int parity);
void o3_kt_mbarrier_arrive(o3_kernel_text_t *t, int barrier);
void o3_kt_mbarrier_expect(o3_kernel_text_t *t, int barrier, int bytes);
/* Of |threads| threads that name |id| (1 to 15). */
void o3_kt_barrier(o3_kernel_text_t *t, int id, int threads);
/* Counts as having come to it, and goes on. */
void o3_kt_barrier_arrive(o3_kernel_text_t *t, int id, int threads);

/* ---- Kernels of a stream that overlap (o3_gpu_kernel_t.overlaps, sm_90) ---- */
/* Lets the next kernel start, which waits by itself: what every kernel does first. */
void o3_kt_start_next(o3_kernel_text_t *t);
/* Waits until all kernels before this one have ended: before it, only what no kernel writes may be read. */
void o3_kt_wait_for_others(o3_kernel_text_t *t);

/* ---- Tensor copies (sm_90): |coordinates| innermost first ---- */
void o3_kt_tensor_load(o3_kernel_text_t *t, int shared, const char *map, int barrier, int rank,
                       const int *coordinates);
/* Asks for a map that a copy will read. */
void o3_kt_prefetch_map(o3_kernel_text_t *t, int map);
/* From a map of windows: channel, x, y and image of the first position, and how far the tap is from it, i16.
 */
void o3_kt_window_load(o3_kernel_text_t *t, int shared, const char *map, int barrier,
                       const int coordinates[4], const int offsets[2]);
void o3_kt_tensor_store(o3_kernel_text_t *t, const char *map, int shared, int rank, const int *coordinates);

/* ---- Warpgroup products (sm_90a) ---- */

/* D[64, n] (+)= A[64, 16 * steps] B[16 * steps, n], both from shared memory (f16, bf16; tf32 with
 * 8 * steps instead of 16), as one group that is committed. Addresses are shifted right by 4. Tiles have
 * 128-byte swizzle: rows of 64 elements along K, or for |b_by_rows| panels of 64 columns, each with one row
 * of 128 bytes a k. */
typedef struct o3_wgmma {
  o3_gpu_element_t element;
  int n, steps;
  bool b_by_rows;
  int b_panel; /* bytes from a panel of 64 columns to the next */
  bool accumulate;
  const int *a_registers; /* NULL, or for each step 4 values of i32 that hold A; then |a| is not used */
  bool open;              /* the group goes on with the next product: it is not committed */
} o3_wgmma_t;
/* Gives the n / 2 sums of a thread as a !sums<n / 2>; |sums| is such a struct, or -1 if not accumulating. */
int o3_kt_wgmma(o3_kernel_text_t *t, const o3_wgmma_t *m, int a, int b, int sums);
/* Waits until at most |groups| groups run. */
void o3_kt_wgmma_wait(o3_kernel_text_t *t, int groups);
/* Waits until at most |groups| run, and gives the |count| sums as values that exist only then. |pinned|:
 * registers that must live until then. */
typedef struct o3_wgmma_finish {
  int groups, count, num_pinned;
  const int *pinned;
} o3_wgmma_finish_t;
int o3_kt_wgmma_finish(o3_kernel_text_t *t, const o3_wgmma_finish_t *finish, int sums);
/* The member |index| of a struct of |count| f32. */
int o3_kt_member(o3_kernel_text_t *t, int count, int sums, int index);
/* Such a struct of |values|. */
int o3_kt_struct(o3_kernel_text_t *t, int count, const int *values);

/* The module's start: shared memory (@o3_shared), and types: !sums<n> is a struct of n f32, n = 4, 8, ...
 * 128. */
void o3_kt_begin_module(o3_kernel_text_t *t);

/* Opens the function of |kernel| with its arguments: tensor maps are %map<i>, others %arg<i>. |blocks| are
 * to fit on a multiprocessor, which bounds the registers of a thread; 0: the assembler weighs both. */
void o3_kt_begin_kernel(o3_kernel_text_t *t, const o3_gpu_kernel_t *kernel, int blocks);
void o3_kt_end_kernel(o3_kernel_text_t *t);

/* Writes the module of |kernel| with |write| and names it <stem>_<digits>, which differ with what is written:
 * kernels of one name are equal. Sets name and text. */
typedef void (*o3_kt_write_fn_t)(o3_kernel_text_t *t, void *context);
o3_status_t o3_kt_write(o3_gpu_kernel_t *kernel, const char *stem, o3_kt_write_fn_t write, void *context)
    O3_MUST_USE;

#endif
