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

/* The name of the block function, e.g. "o3k_f32_gemm_block_6x16_k256_n128"; its arguments, all index but the
 * memrefs: A: memref<?xT>, a_offset, a_row, a_depth      A[m, k] = A[a_offset + m * a_row + k * a_depth] B:
 * memref<?xT>, b_offset                      B[k, n] = B[b_offset + k's offset + n's offset] C: memref<?xT>,
 * c_offset, c_row               C[m, n] = C[c_offset + m * c_row + n] m_lo, m_hi, n_lo, n_hi the block k1, k0
 * sizes; kb2, kb1, kb0 steps in B        k = (i2 * k1 + i1) * k0 + i0 n0 size; nb1, nb0 steps in B n = i1 *
 * n0 + i0 depth                                         number of k n_hi - n_lo must be at most |columns|.
 * fresh: 1 where the sums start at zero, whatever C has, 0 where they are added to it. */
enum { O3_GEMM_NAME = 96 };
void o3_gemm_block_name(const o3_gemm_shape_t *shape, char name[O3_GEMM_NAME]);

/* A module with the functions; malloc'ed; NULL when memory is out. */
char *o3_gemm_text(const o3_gemm_shape_t *shape);

#endif
