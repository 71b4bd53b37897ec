/* Channel-blocked layouts: what the rules of the layout pass share.
 *
 * A plain image N x C x H x W becomes N x C/16 x H x W x 16, its channels padded with zeros to a multiple of
 * 16; inputs of convolutions with fewer than 16 channels stay as they are, in blocks of one. Lanes beyond C
 * hold finite numbers that no result depends on. Nothing is undone later: a rule builds the blocked value and
 * the plain one from it, and whoever reads the plain value asks for the blocked one first; plain values that
 * nobody reads are removed by simplify.
 *
 * For targets with channels last (o3_kernel_support_t) the only block has all channels, as many as the next
 * multiple of 8: N x 1 x H x W x C.
 */
#ifndef O3_REWRITE_LAYOUT_H
#define O3_REWRITE_LAYOUT_H

#include "analysis/shape.h"
#include "analysis/winograd.h"
#include "base/map.h"
#include "ir/build.h"
#include "ir/pass.h"

enum { O3_LAYOUT_LAST_UNIT = 8 };

typedef struct o3_layout {
  o3_pass_env_t *env;
  MlirContext context;
  int num_symbols;
  o3_builder_t builder;  /* before the op that is rewritten */
  o3_ptr_map_t *blocked; /* plain value -> blocked value, of 16 lanes */
  o3_ptr_vec_t choices;  /* attributes [node, how its convolution is computed and why] */
  bool last;             /* channels last: one block of all channels, their number a multiple of 8 */
  bool f32_last;         /* convolutions in f32 do, too */
  bool tf32_last;        /* which may be those of tf32, with weights by columns */
  bool failed;           /* memory ran out */
  o3_status_t status;    /* why a rule failed; NULL when none did */
} o3_layout_t;

/* ---- Values and ops ---- */

/* The shape of a value of @main; false when nothing tells it. */
bool o3_layout_shape(MlirValue value, o3_shape_t *shape);
/* An op with one result. */
MlirValue o3_layout_op(o3_layout_t *self, const char *name, const o3_shape_t *shape, MlirType element,
                       int num_operands, const MlirValue *operands, int num_attrs, const o3_attr_t *attrs);
MlirValue o3_layout_reshape(o3_layout_t *self, MlirValue value, const o3_shape_t *shape);
MlirValue o3_layout_transpose(o3_layout_t *self, MlirValue value, const int64_t *perm);
/* |extra| elements of |fill| behind those of |axis|; |value| itself for none. */
MlirValue o3_layout_pad(o3_layout_t *self, MlirValue value, int axis, int64_t extra, double fill);
/* The same with elements before them, too. */
MlirValue o3_layout_pad_ends(o3_layout_t *self, MlirValue value, int axis, int64_t before, int64_t behind,
                             double fill);
/* Splits |axis| into a multiple of |inner| and |inner|; it must divide. */
MlirValue o3_layout_split(o3_layout_t *self, MlirValue value, int axis, int64_t inner);
/* The first |size| elements behind |start| of |axis|; |value| itself when these are all. */
MlirValue o3_layout_cut(o3_layout_t *self, MlirValue value, int axis, int64_t start, MlirAffineExpr size);
/* Whether the value is made of constants alone: what folding computes. */
bool o3_layout_is_constant(MlirValue value);
bool o3_layout_is_f32(MlirValue value);
/* Whether products on blocks take elements of the type: f32; half precision for channels last, and f32 where
 * the target has kernels for it. */
bool o3_layout_has_products(const o3_layout_t *self, MlirValue value);
/* Whether values of the type may be blocked: the same, and f32. */
bool o3_layout_has_blocks(const o3_layout_t *self, MlirValue value);
/* A size that is constant, or -1. */
int64_t o3_layout_size(const o3_shape_t *shape, int dim);
static inline int64_t o3_layout_round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

/* ---- Blocked values ---- */

/* The blocked value of a plain one that has one already, or null. */
MlirValue o3_layout_find(const o3_layout_t *self, MlirValue plain);
/* Of rank 4 with a constant number of channels, packed if need be. |narrow|: fewer channels than lanes may
 * stay where they are, as blocks of one. */
MlirValue o3_layout_pack(o3_layout_t *self, MlirValue plain, bool narrow);
/* An operand of an elementwise op whose result has |channels|: blocked so that it broadcasts as the plain one
 * does to a plain result; constants are padded with |fill|. Null when that is not possible. */
MlirValue o3_layout_pack_operand(o3_layout_t *self, MlirValue plain, int64_t channels, double fill);
/* The plain value, of |shape|, that |blocked| stands for; noted as such. */
MlirValue o3_layout_unpack(o3_layout_t *self, MlirValue blocked, const o3_shape_t *shape);
/* The blocked shape of a plain one. */
void o3_layout_blocked_shape(const o3_layout_t *self, const o3_shape_t *plain, o3_shape_t *blocked);
/* Of the blocks that |channels| are in. */
int64_t o3_layout_lanes(const o3_layout_t *self, int64_t channels);
/* Channels last: |plain| packed with a border of |pads|, begins then ends, for one reader; null when it is
 * blocked already. */
MlirValue o3_layout_pack_padded(o3_layout_t *self, MlirValue plain, const int64_t pads[4]);

/* ---- Winograd ---- */

/* The tile that the convolution |op| is computed in, 0 for a direct one; the reason is noted. */
int o3_layout_winograd_tile(o3_layout_t *self, MlirOperation op, const o3_winograd_layer_t *layer);
/* M C 3 3 to M/16 p p C/16 16 16, transformed. */
MlirValue o3_layout_winograd_weights(o3_layout_t *self, MlirValue w, int tile);

/* ---- Rules: the op's plain result built anew, or null when the rule does not apply ---- */

MlirValue o3_layout_conv(o3_layout_t *self, MlirOperation op);
MlirValue o3_layout_conv_transpose(o3_layout_t *self, MlirOperation op);
MlirValue o3_layout_matmul(o3_layout_t *self, MlirOperation op);
MlirValue o3_layout_pool(o3_layout_t *self, MlirOperation op);
MlirValue o3_layout_cast(o3_layout_t *self, MlirOperation op);
MlirValue o3_layout_elementwise(o3_layout_t *self, MlirOperation op);
MlirValue o3_layout_divide(o3_layout_t *self, MlirOperation op);
MlirValue o3_layout_reduce(o3_layout_t *self, MlirOperation op);
MlirValue o3_layout_concat(o3_layout_t *self, MlirOperation op);
MlirValue o3_layout_slice(o3_layout_t *self, MlirOperation op);
MlirValue o3_layout_resize(o3_layout_t *self, MlirOperation op);
MlirValue o3_layout_pad_image(o3_layout_t *self, MlirOperation op);

#endif
