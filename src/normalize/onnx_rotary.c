/* RotaryEmbedding: pairs of a head's entries are turned by the angle of their position. ONNX's own (opset 23)
 * and com.microsoft's, which differ in the order of inputs and in their defaults. */
#include "normalize/nz_attention.h"
#include "normalize/nz_math.h"

typedef struct rotary {
  MlirValue x;        /* B S N D, or B N S D */
  bool heads_first;   /* the latter */
  MlirValue cos, sin; /* per position: B S D'/2, of the element type that is computed in */
  bool interleaved;   /* pairs are neighbours, else halves */
  int64_t width;      /* D', how much of D is turned; 0: all */
} rotary_t;

static MlirAffineExpr number(const o3_nz_t *nz, int64_t value) { return o3_expr_const(nz->context, value); }

/* The first or second members of all pairs. */
static MlirValue members(o3_nz_t *nz, const rotary_t *r, MlirValue x, int64_t width, int which) {
  MlirAffineExpr half = number(nz, width / 2);
  if (!r->interleaved) return o3_nz_slice(nz, x, 3, which ? half : number(nz, 0), half);
  o3_shape_t pairs = o3_nz_fact(nz, x)->shape;
  pairs.rank = 5;
  pairs.dims[3] = half;
  pairs.dims[4] = number(nz, 2);
  MlirValue member = o3_nz_slice(nz, o3_nz_reshape(nz, x, &pairs), 4, number(nz, which), number(nz, 1));
  return o3_nz_squeeze(nz, member, 1, (int64_t[]){4});
}

static MlirValue joined(o3_nz_t *nz, const rotary_t *r, MlirValue x, MlirValue first, MlirValue second) {
  MlirValue parts[2] = {first, second};
  if (!r->interleaved) return o3_nz_concat(nz, 3, 2, parts);
  for (int i = 0; i < 2; ++i) parts[i] = o3_nz_unsqueeze(nz, parts[i], 1, (int64_t[]){4});
  return o3_nz_reshape(nz, o3_nz_concat(nz, 4, 2, parts), &o3_nz_fact(nz, x)->shape);
}

static MlirValue turned(o3_nz_t *nz, const rotary_t *r, MlirValue x, int64_t width) {
  int64_t axis = r->heads_first ? 1 : 2;
  MlirValue cos = o3_nz_unsqueeze(nz, r->cos, 1, &axis), sin = o3_nz_unsqueeze(nz, r->sin, 1, &axis);
  MlirValue a = members(nz, r, x, width, 0), b = members(nz, r, x, width, 1);
  MlirValue real = o3_nz_sub(nz, o3_nz_mul(nz, cos, a), o3_nz_mul(nz, sin, b));
  MlirValue imaginary = o3_nz_add(nz, o3_nz_mul(nz, sin, a), o3_nz_mul(nz, cos, b));
  return joined(nz, r, x, real, imaginary);
}

/* The tail of each head beyond |width| stays as it is. */
static o3_status_t rotate(o3_nz_t *nz, const rotary_t *r, MlirValue *y) {
  MlirType element = o3_nz_element(nz, r->x), compute = o3_nz_compute_type(nz, element);
  int64_t size = o3_nz_static_dim(nz, r->x, 3, "the head size"), width = r->width ? r->width : size;
  if (o3_nz_failed(nz)) return NULL;
  if (width < 2 || width > size || width % 2)
    return o3_nz_invalid(nz, "%lld of a head's %lld entries are to be turned in pairs", (long long)width,
                         (long long)size);
  MlirValue x = o3_nz_cast(nz, r->x, compute);
  MlirValue head = width == size ? x : o3_nz_slice(nz, x, 3, number(nz, 0), number(nz, width));
  MlirValue parts[2] = {o3_nz_cast(nz, turned(nz, r, head, width), element), {0}};
  if (width < size) parts[1] = o3_nz_slice(nz, r->x, 3, number(nz, width), number(nz, size - width));
  *y = o3_nz_concat(nz, 3, width < size ? 2 : 1, parts);
  return NULL;
}

/* B S N*D as B S N D; 4-D inputs are B N S D. */
static o3_status_t read_input(o3_nz_t *nz, MlirValue x, int64_t heads, rotary_t *r) {
  int rank = o3_nz_rank(nz, x);
  r->x = x;
  r->heads_first = rank == 4;
  if (rank == 4) return NULL;
  if (rank != 3) return o3_nz_invalid(nz, "an input of rank %d, 3 or 4 expected", rank);
  int64_t hidden = o3_nz_static_dim(nz, x, 2, "the hidden size");
  if (heads < 1 || hidden % heads != 0)
    return o3_nz_invalid(nz, "%lld heads cannot share a hidden size of %lld", (long long)heads,
                         (long long)hidden);
  o3_shape_t shape = {
      .rank = 4,
      .dims = {o3_nz_dim(nz, x, 0), o3_nz_dim(nz, x, 1), number(nz, heads), number(nz, hidden / heads)}};
  r->x = o3_nz_reshape(nz, x, &shape);
  return NULL;
}

/* Rows of a cache (positions, D'/2) for each of |positions|; a cache of rank 3 is given per position already.
 */
static MlirValue chosen(o3_nz_t *nz, MlirValue cache, MlirValue positions) {
  MlirType compute = o3_nz_compute_type(nz, o3_nz_element(nz, cache));
  MlirValue rows = cache;
  if (!mlirValueIsNull(positions))
    rows = o3_nz_op(nz, "o3.gather", O3_VALUES(cache, positions),
                    O3_ATTRS({"axis", o3_attr_i64(nz->context, 0)}));
  return o3_nz_cast(nz, rows, compute);
}

static o3_status_t finish(o3_nz_t *nz, o3_node_t *node, const rotary_t *r) {
  MlirValue y;
  O3_TRY(rotate(nz, r, &y));
  if (o3_nz_failed(nz)) return NULL;
  node->outputs[0] = o3_nz_reshape(nz, y, &o3_nz_fact(nz, node->inputs[0])->shape);
  return NULL;
}

o3_status_t o3_onnx_rotary_embedding(o3_nz_t *nz, o3_node_t *node) {
  rotary_t r = {.interleaved = o3_node_int(node, "interleaved", 0) != 0,
                .width = o3_node_int(node, "rotary_embedding_dim", 0)};
  O3_TRY(read_input(nz, o3_node_input(node, 0), o3_node_int(node, "num_heads", 0), &r));
  r.cos = chosen(nz, o3_node_input(node, 1), o3_node_input(node, 3));
  r.sin = chosen(nz, o3_node_input(node, 2), o3_node_input(node, 3));
  return finish(nz, node, &r);
}

/* Position ids are B S, or the position of the first entry alone. */
static MlirValue microsoft_positions(o3_nz_t *nz, MlirValue ids, MlirAffineExpr length) {
  if (o3_nz_rank(nz, ids) == 2) return ids;
  MlirValue first = o3_nz_reshape(nz, o3_nz_cast(nz, ids, o3_nz_i64(nz)), &(o3_shape_t){.rank = 0});
  return o3_nz_add(nz, o3_nz_positions(nz, 2, 1, length), first);
}

o3_status_t o3_onnx_microsoft_rotary_embedding(o3_nz_t *nz, o3_node_t *node) {
  rotary_t r = {.interleaved = o3_node_int(node, "interleaved", 0) != 0,
                .width = o3_node_int(node, "rotary_embedding_dim", 0)};
  MlirValue x = o3_node_input(node, 0), cos = o3_node_input(node, 2), sin = o3_node_input(node, 3);
  int64_t heads = o3_node_int(node, "num_heads", 0);
  if (o3_node_int(node, "is_packed_batching", 0))
    return o3_nz_unsupported(nz, "packed batches of position ids are not supported");
  if (o3_node_float(node, "scale", 1) != 1)
    return o3_nz_unsupported(nz, "a scale other than 1 is not supported");
  if (!heads && o3_nz_rank(nz, x) == 3) { /* the caches tell the head size */
    int64_t half = o3_nz_static_dim(nz, cos, 1, "the width of the caches");
    heads = half ? o3_nz_static_dim(nz, x, 2, "the hidden size") / (2 * half) : 0;
  }
  O3_TRY(read_input(nz, x, heads, &r));
  MlirValue positions =
      microsoft_positions(nz, o3_node_input(node, 1), o3_nz_dim(nz, r.x, r.heads_first ? 2 : 1));
  r.cos = chosen(nz, cos, positions);
  r.sin = chosen(nz, sin, positions);
  return finish(nz, node, &r);
}
