/* Hardware files: a CPU's figures as JSON, for schedules on another machine than this one.
 *
 *     {"kind": "cpu", "cores": 8, "vector_bytes": 32, "vector_registers": 16, "fma_ports": 2,
 *      "l1_bytes": 32768, "l2_bytes": 524288, "l3_bytes": 33554432, "memory_gbps": 60}
 *
 * A key that is left out keeps the target's figure. hardware.def has the keys. */
#ifndef O3_SCHEDULE_HARDWARE_H
#define O3_SCHEDULE_HARDWARE_H

#include "ir/pass.h"

/* Reads the file over |machine|, a target's. INVALID_ARGUMENT names the file, the key, the value and the
 * rule. */
o3_status_t o3_hardware_read(const char *path, o3_machine_t *machine) O3_MUST_USE;

/* Replaces what is only assumed of this machine, fma_ports and memory_gbps, by what is measured with
 * |machine|'s cores; takes a second. Fails as o3_peaks_measure. */
o3_status_t o3_hardware_measure(o3_machine_t *machine) O3_MUST_USE;

/* |machine| as such a file, malloc'ed; NULL when memory is out. */
char *o3_hardware_print(const o3_machine_t *machine);

#endif
