/* Fault injection: makes the n-th allocation of the process fail, so that tests can walk through every
 * out-of-memory path. Always compiled in; one relaxed atomic load when unused.
 *
 * Allocations of src/base go through o3_fault_malloc and o3_fault_realloc; code elsewhere that
 * allocates by itself does the same. The environment variable O3_FAULT_ALLOC=n arms a whole program.
 */
#ifndef O3_BASE_FAULT_H
#define O3_BASE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Arms the counter: the |n|-th allocation from now fails (1: the next), those before and after it
 * succeed. 0 disarms. Overrides O3_FAULT_ALLOC. */
void o3_fault_alloc_arm(uint64_t n);

/* True when this allocation must fail. Counts: call once per allocation. */
bool o3_fault_alloc_should_fail(void);

/* Whether the armed failure has happened: a test that raises n stops when it has not. */
bool o3_fault_alloc_has_failed(void);

/* malloc, calloc and realloc that obey the above. The results are free()'s. */
void *o3_fault_malloc(size_t size);
void *o3_fault_calloc(size_t count, size_t size);
void *o3_fault_realloc(void *memory, size_t size);

#endif
