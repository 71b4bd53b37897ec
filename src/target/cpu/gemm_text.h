/* The packed matrix product as MLIR functions: a block of C += A * B, for one element type and machine. */
#ifndef O3_TARGET_CPU_GEMM_TEXT_H
#define O3_TARGET_CPU_GEMM_TEXT_H

#include "base/status.h"
#include "schedule/cpu_schedule.h"

typedef struct o3_gemm_shape {
  const char *type;  /* "f32", "f64" */
  int lanes;         /* elements of a vector register */
  int rows, vectors; /* the register tile: rows x (vectors * lanes) */
  int depth;         /* K is cut into pieces of at most so many */
  int columns;       /* a task's columns, a multiple of vectors * lanes; its packed B has depth * columns */
} o3_gemm_shape_t;

/* The functions' shape by a schedule, for elements of |bits| bits, 32 or 64. */
o3_gemm_shape_t o3_gemm_shape(const o3_schedule_packed_t *schedule, int bits);

/* The name of the block function, e.g. "o3k_f32_gemm_block_6x16_k256_n128". Its arguments are
 * o3_gemm_argument_t (gemm_product.h), all index but the memrefs, memref<?xT>:
 *
 * - A, a_offset, a_row, a_depth: A[m, k] is at a_offset + m * a_row + k * a_depth
 * - B, b_offset; k1, k0, kb2, kb1, kb0, n0, nb1, nb0: B[k, n] is at b_offset + i2 * kb2 + i1 * kb1 + i0 * kb0
 * + j1 * nb1 + j0 * nb0, where k = (i2 * k1 + i1) * k0 + i0 and n = j1 * n0 + j0
 * - C, c_offset, c_row: C[m, n] is at c_offset + m * c_row + n
 * - m_lo, m_hi, n_lo, n_hi: the block; n_hi - n_lo is at most |columns|
 * - depth: number of k
 * - fresh: 1 where the sums start at zero, whatever C has, 0 where they are added to it
 * - P, p_offset, p_row, p_rows, p_count: the elements at p_offset + r * p_row + i, r < p_rows, i < p_count,
 * are fetched to the second-level cache while row m_lo + r of the block is computed; they need not exist */
enum { O3_GEMM_NAME = 96 };
void o3_gemm_block_name(const o3_gemm_shape_t *shape, char name[O3_GEMM_NAME]);

/* A module with the functions; malloc'ed; NULL when memory is out. */
char *o3_gemm_text(const o3_gemm_shape_t *shape);

#endif
