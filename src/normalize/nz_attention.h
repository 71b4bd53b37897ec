/* Pieces of attention that several ops share. Tensors of heads are B N S D: batch, heads, sequence, head
 * size. */
#ifndef O3_NORMALIZE_NZ_ATTENTION_H
#define O3_NORMALIZE_NZ_ATTENTION_H

#include "normalize/nz.h"

/* B S N*D -> B N S D; |heads| must divide the last size. */
MlirValue o3_nz_split_heads(o3_nz_t *nz, MlirValue x, int64_t heads);
/* B N S D -> B S N*D. */
MlirValue o3_nz_join_heads(o3_nz_t *nz, MlirValue x);
/* a (B N M K) times b (B G K L): B N M L, where each of b's G heads serves N/G heads of a, in order. Failure
 * when G does not divide N; both must be static. */
MlirValue o3_nz_grouped_matmul(o3_nz_t *nz, MlirValue a, MlirValue b);
/* The scores of q (B N M K) and k (B G L K), q times k transposed: B G N/G M L with the heads that share one
 * of k's as a dimension of their own, or B N M L when N is G. */
MlirValue o3_nz_grouped_scores(o3_nz_t *nz, MlirValue q, MlirValue k);
/* The third dimension from the end counts heads, of which there are one or a multiple of |groups|: it becomes
 * two. Tensors of lower rank stay as they are. And B G N/G M L -> B N M L; others stay. */
MlirValue o3_nz_group_heads(o3_nz_t *nz, MlirValue x, int64_t groups);
MlirValue o3_nz_ungroup_heads(o3_nz_t *nz, MlirValue x);
/* f32 for narrower floats, else |element| itself. */
MlirType o3_nz_compute_type(o3_nz_t *nz, MlirType element);
/* An i64 tensor of |rank| whose axis |axis| counts from 0 to size - 1; its other sizes are 1. */
MlirValue o3_nz_positions(o3_nz_t *nz, int rank, int axis, MlirAffineExpr size);
/* Scores where |allowed| (i1, broadcast) holds, else -inf. */
MlirValue o3_nz_mask_scores(o3_nz_t *nz, MlirValue scores, MlirValue allowed);
/* Query i, after |past| earlier positions, sees keys 0 .. past + i: true where it does; scores end with
 * S T. */
MlirValue o3_nz_causal_mask(o3_nz_t *nz, MlirValue scores, MlirAffineExpr past);
MlirValue o3_nz_softmax(o3_nz_t *nz, MlirValue x, int axis);
/* 1 / sqrt(D) unless |node| has attribute |name| (and it is not 0). */
double o3_nz_attention_scale(o3_nz_t *nz, const o3_node_t *node, const char *name, MlirValue q);

#endif
