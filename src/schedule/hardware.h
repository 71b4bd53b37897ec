/* Hardware files: the figures of a CPU or of a GPU as JSON, for schedules on another machine than the
 * target's.
 *
 *     {"kind": "cpu", "cores": 8, "vector_bytes": 32, "vector_registers": 16, "fma_ports": 2,
 *      "l1_bytes": 32768, "l2_bytes": 524288, "l3_bytes": 33554432, "memory_gbps": 60}
 *
 *     {"kind": "gpu", "matrix": ["wmma", "mma"], "sm": 75, "ptx": 65, "multiprocessors": 40, ...}
 *
 * Of a CPU, a key that is left out keeps the target's figure; of a GPU, all must be there. hardware.def and
 * hardware_gpu.def have the keys, gpu_matrix.def the names of matrix instructions. */
#ifndef O3_SCHEDULE_HARDWARE_H
#define O3_SCHEDULE_HARDWARE_H

#include "ir/pass.h"

/* Reads the file over |machine|, a target's; a GPU is a new one in |arena|. INVALID_ARGUMENT names the file,
 * the key, the value and the rule. */
o3_status_t o3_hardware_read(const char *path, o3_arena_t *arena, o3_machine_t *machine) O3_MUST_USE;

/* Replaces what is only assumed of this machine, fma_ports and memory_gbps, by what is measured with
 * |machine|'s cores; takes a second. Fails as o3_peaks_measure. */
o3_status_t o3_hardware_measure(o3_machine_t *machine) O3_MUST_USE;

/* |machine|, or the GPU that it has, as such a file, malloc'ed; NULL when memory is out. */
char *o3_hardware_print(const o3_machine_t *machine);

#endif
