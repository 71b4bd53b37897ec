/* What multiplies in kernels of products that warps write: instructions of the cards before and beside
 * Hopper, as tables. A unit says how the parts of its operands (fragments) lie in shared memory and in
 * registers, and where its sums are.
 *
 * Shared memory holds lines of 64 or 128 bytes in chunks of 16, whose order within a line depends on the line
 * so that the threads that read at a time meet no bank twice. A line of A, and of B by columns, is along k;
 * one of B by rows is along the columns, in panels of a line each.
 */
#ifndef O3_TARGET_NVPTX_MMA_UNIT_H
#define O3_TARGET_NVPTX_MMA_UNIT_H

#include "target/nvptx/kernel_text.h"

enum { O3_MMA_CHUNK = 16, O3_MMA_MAX_LOADS = 8, O3_MMA_MAX_VALUES = 32 };

/* A number made of bits of another: the sum of ((lane >> right) & mask) << left. */
enum { O3_MMA_MAX_BITS = 3 };
typedef struct o3_mma_bits {
  struct {
    int right, mask, left;
  } parts[O3_MMA_MAX_BITS];
} o3_mma_bits_t;

typedef enum o3_mma_load {
  O3_MMA_LDMATRIX,
  O3_MMA_LDMATRIX_TRANS,
  O3_MMA_LDS32,
  O3_MMA_LDS64,
  O3_MMA_LDS128
} o3_mma_load_t;

/* What a thread reads for a piece and a step of k: each load at the line, chunk and byte that its lane says,
 * and further lines and chunks. */
typedef struct o3_mma_fragment {
  o3_mma_load_t load;
  o3_mma_bits_t line, chunk, byte;
  int num_loads;
  struct {
    int line, chunk;
  } loads[O3_MMA_MAX_LOADS];
  /* Where the chunks of a line are: chunk c of one of 128 bytes is at c ^ order(line), of one of 64 bytes at
   * c ^ (order(line) >> 1). All zero: the line's last three bits. */
  o3_mma_bits_t order;
  bool as_floats; /* values are f32, each of its own */
  bool rounds;    /* values are f32 that are rounded to tf32 */
} o3_mma_fragment_t;

enum { O3_MMA_A, O3_MMA_B_BY_COLUMNS, O3_MMA_B_BY_ROWS, O3_MMA_OPERANDS };

typedef struct o3_mma_unit {
  const char *name;          /* as it stands in kernels' names */
  int rows, columns, depth;  /* of a piece of the result; elements of k of a step */
  int num_pairs;             /* of neighbouring sums that a thread has of a piece */
  o3_mma_bits_t row, column; /* of a lane's first pair */
  int pair_rows, row_step;   /* pair p is (p % pair_rows) * row_step rows and ... */
  int column_at[4];          /* ... column_at[p / pair_rows] columns further */
  o3_mma_fragment_t fragments[O3_MMA_OPERANDS];
  o3_mma_fragment_t staged; /* of D in shared memory: its order */
  /* Adds the product of fragments to the 2 * num_pairs sums of a piece. */
  void (*multiply)(o3_kernel_text_t *t, o3_gpu_element_t element, bool b_by_rows, const int *a, const int *b,
                   int *sums);
} o3_mma_unit_t;

/* An operand in shared memory. */
typedef struct o3_mma_block {
  const o3_mma_fragment_t *fragment;
  o3_gpu_element_t element;
  int lines, line_bytes, panels;
} o3_mma_block_t;

int o3_mma_block_bytes(const o3_mma_block_t *block);

/* The byte of |chunk| (of all panels) of |line|, both values. */
int o3_mma_chunk_byte(o3_kernel_text_t *t, const o3_mma_block_t *block, int line, int chunk);

/* A number made of bits of |lane|. */
int o3_mma_bits(o3_kernel_text_t *t, const o3_mma_bits_t *bits, int lane);

/* Where a warp reads a block: what does not change from step to step. |line| and |chunk| are values: the
 * first of the warp, multiples of what it reads. */
typedef struct o3_mma_reader {
  const o3_mma_block_t *block;
  int offsets[8]; /* by the order of chunks */
} o3_mma_reader_t;
o3_mma_reader_t o3_mma_reader(o3_kernel_text_t *t, const o3_mma_block_t *block, int lane, int line,
                              int chunk);

/* Reads the fragment that lies |line| lines and |chunk| chunks (numbers) behind the warp's first, of the
 * block at |base|. Gives values: of words, i32; of f32 units, f32. */
void o3_mma_read(o3_kernel_text_t *t, const o3_mma_reader_t *reader, int base, int line, int chunk,
                 int values[O3_MMA_MAX_VALUES]);

/* Of the tensor cores, for f16, and from 8.0 on for bf16 and tf32; of the cores, for f32. NULL when a card of
 * compute capability |sm| has none for the element. */
const o3_mma_unit_t *o3_mma_unit(int sm, o3_gpu_element_t element);

#endif
