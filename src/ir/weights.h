/* Weights: the data behind constant tensors, kept out of MLIR.
 *
 * A constant in the IR is an elements attribute. Small ones hold their data themselves; of big ones the
 * attribute is only a name, `dense_resource<name>`, and this store knows where its bytes lie: in a mapped
 * model file, or in memory that a pass made. Nothing is copied.
 */
#ifndef O3_IR_WEIGHTS_H
#define O3_IR_WEIGHTS_H

#include <stddef.h>

#include "base/file.h"
#include "ir/ir.h"

typedef struct o3_weights o3_weights_t;

/* Constants of at most this many bytes are held by the attribute itself. */
#define O3_WEIGHTS_INLINE_BYTES 1024

o3_status_t o3_weights_create(MlirContext context, o3_weights_t **weights) O3_MUST_USE;
/* From now on large memory of o3_weights_alloc lies in a file without a name in |folder|, which the system
 * may write and take the memory back, as with a model's file. At most once a store. */
o3_status_t o3_weights_spill(o3_weights_t *weights, const char *folder) O3_MUST_USE;
/* Also unmaps the files it keeps. The IR that refers to it must be gone. */
void o3_weights_destroy(o3_weights_t *weights);

/* An elements attribute of |type| (a static ranked tensor) over |bytes| bytes at |data|, row-major, one byte
 * per i1. |data| must outlive the store (it may lie in a kept file or in o3_weights_alloc memory), unless the
 * constant is small, when it is copied. |name| is made unique. */
o3_status_t o3_weights_add(o3_weights_t *weights, const char *name, MlirType type, const void *data,
                           size_t bytes, MlirAttribute *attr) O3_MUST_USE;

/* Zeroed memory that lives as long as the store, 64-byte aligned. NULL when memory is out. */
void *o3_weights_alloc(o3_weights_t *weights, size_t bytes);

/* Takes the mapping over; it is unmapped with the store. */
o3_status_t o3_weights_keep_file(o3_weights_t *weights, o3_mapped_file_t *file) O3_MUST_USE;

/* Constants that have been added so far and hold no data of their own. */
size_t o3_weights_count(const o3_weights_t *weights);

/* Constants from number |first| on are intermediate ones from now on. Frees the memory (of o3_weights_alloc)
 * of all intermediate constants that no op of |module| has as an attribute; they are unknown then. */
o3_status_t o3_weights_drop_unused(o3_weights_t *weights, MlirModule module, size_t first) O3_MUST_USE;

/* Gives back memory that is not needed at once: what lies in files (pointers stay as they are), and what was
 * freed. */
void o3_weights_trim(o3_weights_t *weights);

/* |bytes| of the store's data have been read or written; after some tens of MB what lies in files is given
 * back. o3_weights_data counts what it is asked for; who goes through many weights by pointers calls this
 * after each. */
void o3_weights_count_read(o3_weights_t *weights, size_t bytes);

/* The bytes behind an elements attribute; splats are expanded, and i1 takes one byte each. The pointer lives
 * as long as the store. NULL when |attr| is no elements attribute of the store or memory is out. */
const void *o3_weights_data(o3_weights_t *weights, MlirAttribute attr, size_t *bytes);

/* The resource's name, borrowed from the store, or NULL when the attribute holds its own data. */
const char *o3_weights_name(o3_weights_t *weights, MlirAttribute attr);

/* Saves all named weights' data beside a dump, or reads such a file so that a dump can be compiled further:
 * load after parsing the dump, because MLIR renames what is parsed under a name that is taken. */
o3_status_t o3_weights_save(const o3_weights_t *weights, const char *path) O3_MUST_USE;
o3_status_t o3_weights_load(o3_weights_t *weights, const char *path) O3_MUST_USE;

#endif
