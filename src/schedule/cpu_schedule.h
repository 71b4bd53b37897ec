/* Schedules of CPU kernels: how large the pieces are that a kernel works on. They are chosen from the
 * machine's figures and the kernel's sizes alone, here; cpu-schedule (src/target/cpu) writes them on the op
 * that the kernel is about, and the emitters read them there:
 *
 *     linalg.generic {...} attrs = {o3.schedule = {family = "packed", lanes = 8, rows = 6, ...}}
 *
 * cpu_schedules.def says what the fields are. An op without the attribute gets what would be chosen for it;
 * one that has it already keeps it, and fields that it leaves out are chosen. Sizes of -1 are known only at
 * run time. */
#ifndef O3_SCHEDULE_CPU_SCHEDULE_H
#define O3_SCHEDULE_CPU_SCHEDULE_H

#include "ir/ir.h"
#include "ir/pass.h"

#define O3_SCHEDULE_ATTR "o3.schedule"

#define O3_SCHEDULE_FIELD(field, least, most, what) int64_t field;
#define O3_SCHEDULE_FAMILY(id, name, ...) \
  typedef struct o3_schedule_##name {     \
    __VA_ARGS__                           \
  } o3_schedule_##name##_t;
#include "schedule/cpu_schedules.def"
#undef O3_SCHEDULE_FAMILY
#undef O3_SCHEDULE_FIELD

#define O3_SCHEDULE_FAMILY(id, ...) O3_SCHEDULE_FAMILY_##id,
typedef enum o3_schedule_family {
#include "schedule/cpu_schedules.def"
} o3_schedule_family_t;
#undef O3_SCHEDULE_FAMILY

/* ---- The attribute; |schedule| is the family's struct ---- */

MlirAttribute o3_schedule_attr(MlirContext context, o3_schedule_family_t family, const void *schedule);
/* The fields that |op|'s attribute has, over |schedule|. INVALID_ARGUMENT names the op, the field and the
 * rule. */
o3_status_t o3_schedule_read(MlirOperation op, o3_schedule_family_t family, void *schedule) O3_MUST_USE;
/* INVALID_ARGUMENT: field |name| of |op|'s schedule is |value| and must be |rule|. */
o3_status_t o3_schedule_refuse(MlirOperation op, const char *name, int64_t value, const char *rule)
    O3_MUST_USE;

/* ---- The choices ---- */

typedef struct o3_schedule_product {
  int bits;                      /* of an element: 32 or 64 */
  int64_t around, rows, columns; /* products; of each */
} o3_schedule_product_t;
o3_schedule_packed_t o3_schedule_packed(const o3_machine_t *machine, const o3_schedule_product_t *product);

typedef struct o3_schedule_vectors {
  int bits;
  int64_t around, few, many; /* products; vectors; results for each */
  bool is_dots;              /* the matrix is contiguous along the sum */
} o3_schedule_vectors_t;
o3_schedule_thin_t o3_schedule_thin(const o3_machine_t *machine, const o3_schedule_vectors_t *product);

/* Of f32 products; |width| of a value. */
typedef struct o3_schedule_heads {
  int64_t around, queries, keys, width;
} o3_schedule_heads_t;
o3_schedule_attention_t o3_schedule_attention(const o3_machine_t *machine, const o3_schedule_heads_t *heads);

typedef struct o3_schedule_blocks {
  int64_t run, blocks; /* pixels that follow one another, or rows of a matrix; full blocks of outputs */
  int64_t steps;       /* of the innermost sum */
  int64_t last_steps;  /* of the last block of inputs, which is not full; 0: it is */
  int64_t pixel_turns; /* steps from a pixel's first input to the next one's; 0: they share none */
  bool is_matrix, is_lanewise;
  bool inside;          /* windows are cut off at the image's edge: |steps| are the taps of a row */
  int64_t entry_lanes;  /* of a sparse weight's entries; 0: dense */
  bool is_groups;       /* entries are N:M */
  int64_t weight_bytes; /* of all entries, or of all dense weights */
  int64_t rows;         /* of runs in an image; 0: an image is one run */
  int64_t image_bytes;  /* of inputs; below 0: known at run time only */
  int64_t reads;        /* of each input, if one block of outputs is computed at a time */
  int64_t streams;      /* blocks of channels that a tile reads, if there is no window; else 0 */
  bool is_row;          /* the run is a row of an image that a chain makes block by block */
  bool is_joined;       /* few outputs of a last block are computed after other ones of the same pixels */
  int64_t chain_rows;   /* of the result that a chain makes at a time; 0: it is no chain's */
} o3_schedule_blocks_t;
o3_schedule_tiles_t o3_schedule_tiles(const o3_machine_t *machine, const o3_schedule_blocks_t *product);

/* |tiles| of all images; |points| of a tile; |blocks| of 16 input channels, and |outputs| such blocks. */
o3_schedule_winograd_t o3_schedule_winograd(const o3_machine_t *machine, int64_t tiles, int64_t points,
                                            int64_t blocks, int64_t outputs);

/* Two products of which the second, with a window of rows, takes the first's result while a cache holds it.
 */
typedef struct o3_schedule_chain {
  int64_t row_bytes, image_bytes; /* of the image between, all of its blocks */
  int64_t rows;                   /* of the result */
  int64_t stride, taps;           /* of the window, along rows; stride <= taps */
} o3_schedule_chain_t;
/* Rows of the result at a time, and into how many equal parts cores share them; NULL, or why a chain does not
 * pay. */
const char *o3_schedule_chain(const o3_machine_t *machine, const o3_schedule_chain_t *chain, int64_t *rows,
                              int64_t *parts);

/* |panel|: rows of a panel of a matrix, of which all but the last are full; 0: images. |rows| of the matrix,
 * or positions of an image. */
o3_schedule_csr_t o3_schedule_csr(const o3_machine_t *machine, int64_t panel, int64_t rows);

typedef struct o3_schedule_nest {
  int64_t inner, around; /* iterations of the innermost loop; of all parallel ones around it */
  int bits;              /* of the widest element */
  int64_t jump; /* bytes of a turn of the innermost loop in the operand that is contiguous across it; 0: known
                   at run time only */
  bool is_reduced; /* sums go around a parallel innermost loop */
  bool is_sum;     /* the innermost loop is one itself */
} o3_schedule_nest_t;
/* Sets |block| and |across_block| of loops whose dims are chosen. */
void o3_schedule_loops(const o3_machine_t *machine, const o3_schedule_nest_t *nest,
                       o3_schedule_loops_t *schedule);

/* Rows of |work| operations, roughly, of which none asks for the next one. */
o3_schedule_rows_t o3_schedule_rows(int64_t work);
/* Sets |ahead| for rows of |row_bytes|, all of them |bytes|; -1: known at run time. */
void o3_schedule_rows_ahead(const o3_machine_t *machine, int64_t row_bytes, int64_t bytes,
                            o3_schedule_rows_t *schedule);

/* Pixels of |width| elements of |bits|. */
o3_schedule_border_t o3_schedule_border(const o3_machine_t *machine, int64_t width, int bits);

#endif
