/* Hoisting of size computations to the start of @main. */
#ifndef O3_TARGET_CPU_HOIST_H
#define O3_TARGET_CPU_HOIST_H

#include "ir/ir.h"

/* Whether |op| has no effect and cannot fail, whatever the sizes are: it may run earlier than written, or
 * twice. */
bool o3_hoist_is_total(MlirOperation op);

/* Whether |value|, an index, depends only on constants and on the sizes of the arguments of |func|. */
bool o3_hoist_is_possible(MlirValue value, MlirOperation func);

/* Moves the ops that compute |value| before |anchor|, an op of the entry block; those before it stay. */
void o3_hoist(MlirValue value, MlirOperation anchor);

#endif
