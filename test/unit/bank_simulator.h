/* Bank conflicts of a kernel's accesses to shared memory, found by running the integer part of its text.
 *
 *     bank_report_t report;
 *     bank_simulate(module, "o3k_...", 384, &report);    // every warp of a block of 384 threads
 *     assert_int_equal(report.worst, 1);                 // the most words of one bank that one turn asks for
 *
 * Shared memory has 32 banks of 4 bytes, which give a word each in a turn. A warp's access is one turn for 4
 * bytes a lane, two for 8 and four for 16; ldmatrix and stmatrix have a turn for each matrix of 8 rows of 16
 * bytes. Lanes that ask for the same word share it. What is not known (values from memory, other blocks)
 * makes an access that depends on it one that is not judged; report.judged and .unknown count both. Loops run
 * twice, branches on what is not known both ways. For kernels of the llvm, nvvm, arith and scf dialects. */
#ifndef O3_TEST_UNIT_BANK_SIMULATOR_H
#define O3_TEST_UNIT_BANK_SIMULATOR_H

#include "ir/ir.h"

typedef struct bank_report {
  int judged, unknown;
  int worst;      /* 1: no conflict */
  char what[160]; /* the op with the worst */
} bank_report_t;

/* |kernel|: a function of |module|, run by |threads| of block 0. False when memory is out or there is none.
 */
bool bank_simulate(MlirModule module, const char *kernel, int threads, bank_report_t *report);

#endif
