/* The limits of the rows are sums of what is stored before them: where a share of all of it begins is found
 * by bisection, so that there need be no table for each number of parts, nor a number that fits all threads.
 * A row costs something without entries, too: its results are stored. */
#include "target/cpu/sparse_share.h"

#include "base/check.h"

typedef struct search {
  const o3_sparse_share_t *share;
  MlirValue target;
} search_t;

static MlirValue binary(o3_builder_t *b, const char *op, MlirValue x, int64_t constant) {
  return o3_build2(b, op, x, o3_build_index(b, constant));
}

static int64_t num_groups(const o3_sparse_share_t *share) {
  return (share->num_rows + share->group - 1) / share->group;
}

int64_t o3_sparse_share_parts(const o3_sparse_share_t *share, int64_t entries, int64_t least, int64_t most) {
  int64_t parts = (entries + share->row_cost * share->num_rows) / (least > 0 ? least : 1);
  if (parts > most) parts = most;
  if (parts > num_groups(share)) parts = num_groups(share);
  return parts > 0 ? parts : 1;
}

/* Work before the row |row|. */
static MlirValue work_before(const o3_sparse_share_t *share, o3_builder_t *b, MlirValue row) {
  MlirValue at = o3_build2(b, "arith.addi", row, share->rows->offset);
  MlirValue limit =
      o3_build1(b, "memref.load", mlirIntegerTypeGet(b->context, 32), O3_VALUES(share->rows->flat, at));
  MlirValue entries = o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(limit));
  return o3_build2(b, "arith.addi", entries, binary(b, "arith.muli", row, share->row_cost));
}

/* Halves |carried| (low, high): the first group with at least the wanted work before it is one of low to
 * high. */
static o3_status_t halve(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                         MlirValue *next) {
  const search_t *search = context;
  const o3_sparse_share_t *share = search->share;
  (void)index;
  MlirValue middle = binary(b, "arith.divui", o3_build2(b, "arith.addi", carried[0], carried[1]), 2);
  MlirValue row = binary(b, "arith.minui", binary(b, "arith.muli", middle, share->group), share->num_rows);
  MlirValue enough = o3_build_cmpi(b, O3_CMPI_UGE, work_before(share, b, row), search->target);
  next[0] = o3_build_select(b, enough, carried[0], binary(b, "arith.addi", middle, 1));
  next[1] = o3_build_select(b, enough, middle, carried[1]);
  return NULL;
}

MlirValue o3_sparse_share_start(const o3_sparse_share_t *share, o3_builder_t *b, MlirValue part) {
  if (share->parts == 1) return binary(b, "arith.muli", part, num_groups(share) * share->group);
  MlirValue all = work_before(share, b, o3_build_index(b, share->num_rows));
  search_t search = {share, binary(b, "arith.divui", o3_build2(b, "arith.muli", all, part), share->parts)};
  MlirValue limits[2] = {o3_build_index(b, 0), o3_build_index(b, num_groups(share))};
  int64_t turns = 1;
  while (INT64_C(1) << turns <= num_groups(share)) ++turns;
  o3_for_t loop = {.lower = o3_build_index(b, 0),
                   .upper = o3_build_index(b, turns),
                   .step = o3_build_index(b, 1),
                   .num_carried = 2,
                   .inits = limits,
                   .body = halve,
                   .context = &search};
  o3_status_t status = o3_build_for(b, &loop, limits);
  O3_ASSERT(!status, "no body of the loop fails");
  return binary(b, "arith.muli", limits[1], share->group);
}
