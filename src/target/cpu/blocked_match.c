/* Recognition goes by the access maps alone: a dim is lanes, a block, a pixel, around all or part of the
 * depth by the operands that it appears in. Pixels that X and Y walk as one are merged into one run. */
#include "target/cpu/blocked_match.h"

#include <string.h>

#include "target/cpu/blocked_row.h"
#include "target/cpu/halo.h"
#include "target/cpu/product.h"
#include "target/cpu/tile_text.h"
#include "target/cpu/vector_body.h"

static void push(o3_blocked_dims_t *dims, int dim) { dims->at[dims->count++] = dim; }

static bool is_f32(const o3_nest_t *nest) {
  for (int i = 0; i < nest->num_operands; ++i) {
    MlirType type = mlirValueGetType(nest->operands[i].value);
    if (!nest->operands[i].is_memref || !mlirTypeIsAF32(o3_type_element(type))) return false;
  }
  return true;
}

/* ---- Weights ---- */

static int64_t step_of(const o3_nest_operand_t *operand, int dim) {
  int64_t step;
  return o3_nest_step(operand, dim, &step) ? step : -1;
}

/* The dim of (n floordiv 16, k, n mod 16), or -1. */
static int packed_columns(const o3_nest_operand_t *w) {
  if (w->num_terms != 3 || w->sizes[2] != O3_BLOCK_LANES || !w->is_contiguous) return -1;
  MlirAffineExpr block = w->all_exprs[0], lane = w->all_exprs[2];
  if (!mlirAffineExprIsAFloorDiv(block) || !mlirAffineExprIsAMod(lane)) return -1;
  MlirAffineExpr n = mlirAffineBinaryOpExprGetLHS(block);
  bool same = mlirAffineExprIsADim(n) && mlirAffineExprEqual(n, mlirAffineBinaryOpExprGetLHS(lane)) &&
              mlirAffineExprEqual(mlirAffineBinaryOpExprGetRHS(block), mlirAffineBinaryOpExprGetRHS(lane));
  MlirAffineExpr by = mlirAffineBinaryOpExprGetRHS(block);
  if (!same || !mlirAffineExprIsAConstant(by) || mlirAffineConstantExprGetValue(by) != O3_BLOCK_LANES)
    return -1;
  return (int)mlirAffineDimExprGetPosition(n);
}

/* ---- Dims ---- */

static bool is_lane(const o3_blocked_t *p, int d) {
  return p->nest.sizes[d] == O3_BLOCK_LANES && step_of(p->w, d) == 1 && step_of(p->y, d) == 1;
}

static bool sort_parallel(o3_blocked_t *p, int d, bool x, bool w) {
  if (d == p->columns) return !x && step_of(p->y, d) == 1;
  if (w && p->columns < 0 && p->lane < 0 && is_lane(p, d) && (!x || step_of(p->x, d) == 1)) {
    p->lane = d;
    p->lanewise = x;
  } else if (x && w) {
    push(&p->around, d);
  } else if (x) {
    push(&p->pixels, d);
  } else if (!w || p->nest.sizes[d] < 0) { /* blocks are counted while compiling */
    return false;
  } else if (p->block < 0) {
    p->block = d;
  } else {
    push(&p->around, d);
  }
  return true;
}

static bool add_depth(o3_blocked_t *p, int d) {
  o3_blocked_depth_t part = {.size = p->nest.sizes[d], .dim = d};
  part.is_known = o3_nest_step(p->x, d, &part.step);
  if (part.size < 1 || p->num_depth == O3_BLOCKED_MAX_DEPTH) return false;
  p->depth[p->num_depth++] = part;
  return true;
}

static bool sort_dims(o3_blocked_t *p) {
  for (int d = 0; d < p->nest.num_dims; ++d) {
    bool x = o3_nest_uses(p->x, d), w = o3_nest_uses(p->w, d), y = o3_nest_uses(p->y, d);
    bool linear = o3_nest_is_linear(p->x, d) && o3_nest_is_linear(p->y, d) &&
                  (d == p->columns || step_of(p->w, d) >= 0);
    if (!linear || p->nest.reduction[d] == y) return false;
    bool fits = y ? sort_parallel(p, d, x, w) : w && add_depth(p, d);
    if (!fits) return false;
  }
  return p->num_depth && (p->columns >= 0 || p->lane >= 0);
}

/* ---- Depth ---- */

/* Weights are walked in order: each loop's step is what is inside of it. */
static bool is_contiguous(const o3_blocked_t *p) {
  int64_t inside = O3_BLOCK_LANES;
  for (int i = p->num_depth - 1; i >= 0; --i) {
    if (step_of(p->w, p->depth[i].dim) != inside) return false;
    inside *= p->depth[i].size;
  }
  return true;
}

/* A last block of few channels is summed over these alone. */
static void read_channels(o3_blocked_t *p) {
  int64_t channels[2];
  const o3_blocked_depth_t *lanes = &p->depth[p->num_depth - 1];
  if (o3_op_ints(p->nest.op, "o3.channels", channels, 2) != 2) return;
  p->outputs = (int)(channels[1] % O3_BLOCK_LANES ? channels[1] : 0);
  int64_t blocks = (channels[0] + O3_BLOCK_LANES - 1) / O3_BLOCK_LANES;
  bool fits = lanes->size == O3_BLOCK_LANES && (blocks == 1 || p->depth[0].size == blocks);
  p->outer_is_blocks = blocks > 1;
  if (fits && channels[0] % O3_BLOCK_LANES) p->last_inputs = (int)(channels[0] % O3_BLOCK_LANES);
}

/* Loops over which X is contiguous too become one: the last of the window and the channels, mostly. Those of
 * one turn are gone. */
static void merge_depth(o3_blocked_t *p) {
  if (p->last_inputs) return; /* blocks and lanes stay loops of their own */
  for (int i = p->num_depth - 2; i >= 0; --i) {
    o3_blocked_depth_t *outer = &p->depth[i], *inner = &p->depth[i + 1];
    bool one = outer->is_known && inner->is_known && outer->step == inner->step * inner->size;
    if (!one && outer->size != 1) continue;
    inner->size *= outer->size;
    memmove(outer, inner, (size_t)(p->num_depth - i - 1) * sizeof(*outer));
    --p->num_depth;
  }
}

/* A tile has three loops around the channels; lanewise ones have no channels. */
static bool fits_tile(const o3_blocked_t *p) {
  const o3_blocked_depth_t *last = &p->depth[p->num_depth - 1];
  return p->lanewise ? p->num_depth < O3_BLOCKED_MAX_DEPTH : last->is_known && last->step == 1;
}

/* ---- Pixels ---- */

static bool merge_run(o3_blocked_t *p) {
  o3_blocked_dims_t *pixels = &p->pixels;
  while (pixels->count > 1) {
    const int pair[2] = {pixels->at[pixels->count - 2], pixels->at[pixels->count - 1]};
    if (!o3_nest_merge_dims(&p->nest, 2, pair)) break;
    pixels->at[--pixels->count - 1] = pair[1];
  }
  return !pixels->count || o3_nest_step(p->x, pixels->at[pixels->count - 1], &p->x_step);
}

static bool merge_run_of_planes(o3_blocked_t *p) {
  const int plane[2] = {2, 3};
  bool merged = o3_nest_merge_dims(&p->nest, 2, plane);
  p->pixels = (o3_blocked_dims_t){.count = 3, .at = {0, 1, 3}};
  return merged;
}

/* Images and planes may be anywhere, as those of a slice are. */
static bool has_whole_planes(const o3_nest_operand_t *x) {
  return x->is_contiguous || (x->strides[3] == 1 && x->strides[2] >= 0 && x->strides[2] == x->sizes[3]);
}

/* n, m, and the positions of a plane as one run. */
static bool match_rows(o3_blocked_t *p) {
  return p->nest.num_dims == 4 && p->y->is_contiguous && has_whole_planes(p->x) && merge_run_of_planes(p);
}

/* Rows and columns of the result; X is in panels. */
static bool match_matrix(o3_blocked_t *p) {
  p->pixels = (o3_blocked_dims_t){.count = 1, .at = {0}};
  p->columns = 1;
  return p->nest.num_dims == 2 && p->x->num_terms == 3 && p->x->is_contiguous && p->x->sizes[2] > 0 &&
         p->nest.sizes[1] > 0 && step_of(p->y, 1) == 1;
}

/* The result's dims are all there is: n, block, h, w, lane or those of the matrix. */
static bool match_sparse(o3_blocked_t *p) {
  int rank = p->nest.num_dims;
  p->x = &p->nest.operands[O3_SPARSE_X], p->w = &p->nest.operands[O3_SPARSE_VALUES];
  p->y = &p->nest.operands[O3_SPARSE_Y];
  p->lane = p->block = p->columns = -1;
  if (o3_sparse_is_rows(&p->sparse)) return p->sparse.is_matmul ? match_matrix(p) : match_rows(p);
  if (p->sparse.is_matmul) {
    p->columns = rank - 1;
  } else {
    p->block = 1;
    p->lane = 4;
  }
  for (int d = 0; d < rank; ++d) {
    if (d != p->columns && d != p->block && d != p->lane) push(&p->pixels, d);
  }
  if (step_of(p->y, rank - 1) != 1) return false;
  int run = o3_blocked_run_dim(p);
  return p->sparse.is_pointwise ? merge_run(p) : run < 0 || o3_nest_step(p->x, run, &p->x_step);
}

/* All but the joining of loops. */
static bool match_product(MlirOperation op, o3_blocked_t *p) {
  memset(p, 0, sizeof(*p));
  if (!o3_nest_read_any(op, &p->nest)) return false;
  const o3_nest_t *nest = &p->nest;
  if (nest->num_inputs != 2 || nest->num_operands != 3 || !o3_product_is_multiply_add(nest) || !is_f32(nest))
    return false;
  p->x = &nest->operands[0], p->w = &nest->operands[1], p->y = &nest->operands[2];
  p->lane = p->block = -1;
  p->columns = packed_columns(p->w);
  o3_nest_drop_single_turns(&p->nest);
  return sort_dims(p) && is_contiguous(p);
}

bool o3_blocked_match(MlirOperation op, o3_blocked_t *p) {
  memset(p, 0, sizeof(*p));
  if (o3_sparse_match(op, &p->nest, &p->sparse)) return match_sparse(p);
  if (!match_product(op, p)) return false;
  read_channels(p);
  merge_depth(p);
  return fits_tile(p) && merge_run(p);
}

const char *o3_blocked_read_side_of_copy(o3_blocked_t *p, MlirOperation op, o3_blocked_side_t *side) {
  MlirOperation def = o3_value_def(p->x->value);
  bool comes_along = o3_op_is(def, "tensor.extract_slice") &&
                     mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(p->nest.op));
  if (p->x->is_contiguous || comes_along || (p->sparse.depth && !p->sparse.is_pointwise)) return NULL;
  o3_nest_operand_t *x = &p->nest.operands[p->x - p->nest.operands];
  int64_t stride = 1;
  for (int r = x->num_terms - 1; r >= 0; --r) {
    x->strides[r] = stride;
    stride = stride < 0 || x->sizes[r] < 0 ? -1 : stride * x->sizes[r];
  }
  x->is_contiguous = true;
  return merge_run(p) ? o3_blocked_read_side(p, op, side) : NULL;
}

/* ---- Images without their border ---- */

/* More taps would be a tile of many instructions. */
enum { MAX_TAPS = 16 };

/* X as what the padding reads: position p - low of it for position p of the padded image. */
static bool read_source(o3_blocked_t *p, const o3_halo_t *halo) {
  MlirContext context = mlirOperationGetContext(p->nest.op);
  MlirAffineExpr exprs[O3_IR_MAX_RANK];
  for (int r = 0; r < halo->rank; ++r) {
    MlirAffineExpr low = mlirAffineConstantExprGet(context, -halo->lows[r]);
    exprs[r] = mlirAffineAddExprGet(p->x->all_exprs[r], low);
  }
  MlirAffineMap map = mlirAffineMapGet(context, p->nest.num_dims, 0, halo->rank, exprs);
  return o3_nest_read_operand(halo->from, map, &p->nest.operands[0]);
}

static int dims_used(const int *dims, int count, MlirAffineExpr expr, int *found) {
  int used = 0;
  for (int i = 0; i < count; ++i) {
    if (!mlirAffineExprIsFunctionOfDim(expr, dims[i])) continue;
    *found = dims[i];
    ++used;
  }
  return used;
}

/* Dimension |r| of the source, which ends |tap|'s window. */
static bool read_edge(const o3_blocked_t *p, const o3_halo_t *halo, int r, int tap, o3_blocked_edge_t *edge) {
  MlirAffineExpr expr = p->x->all_exprs[r];
  *edge = (o3_blocked_edge_t){.exists = true, .dim = r, .low = halo->lows[r], .size = p->x->sizes[r]};
  return dims_used(p->pixels.at, p->pixels.count, expr, &edge->pixel) == 1 && edge->size != 0 &&
         o3_nest_coefficient(expr, edge->pixel, &edge->stride) && edge->stride > 0 &&
         o3_nest_coefficient(expr, tap, &edge->distance) && edge->distance > 0;
}

static bool read_edges(o3_blocked_t *p, const o3_halo_t *halo) {
  for (int r = 0; r < halo->rank; ++r) {
    int rows = p->num_depth - 2, taps[2] = {p->depth[rows].dim, p->depth[rows + 1].dim}, tap = -1;
    if (!halo->clamped[r]) continue;
    if (dims_used(taps, 2, p->x->all_exprs[r], &tap) != 1) return false;
    if (!read_edge(p, halo, r, tap, tap == taps[0] ? &p->rows : &p->run_edge)) return false;
  }
  int run = p->pixels.at[p->pixels.count - 1];
  return (!p->rows.exists || p->rows.pixel != run) && (!p->run_edge.exists || p->run_edge.pixel == run);
}

/* Where only the run knows how long a row is, there are tiles for each pixel of its border on the left. */
static const char *refuse_late_ends(const o3_blocked_t *p) {
  const o3_blocked_edge_t *edge = &p->run_edge;
  if (o3_blocked_row_is_known(p) || !edge->exists || edge->low <= MAX_TAPS) return NULL;
  return "its border is wide, and the length of its rows is known at run time only";
}

const char *o3_blocked_match_inside(MlirOperation op, MlirOperation padding, o3_blocked_t *p) {
  o3_halo_t halo;
  if (!match_product(op, p) || p->columns >= 0) return "the product is no convolution in blocks";
  if (!o3_halo_read(padding, &halo)) return "its input is no image with a border of zeros";
  if (!p->lanewise && p->depth[p->num_depth - 1].size == 1) --p->num_depth; /* blocks of one channel */
  bool windows =
      p->num_depth == (p->lanewise ? 2 : 3) && p->pixels.count && p->depth[p->num_depth - 1].size <= MAX_TAPS;
  if (!windows || !read_source(p, &halo) || !read_edges(p, &halo)) return "its window is none of rows";
  int run = p->pixels.at[p->pixels.count - 1];
  if (p->nest.sizes[run] == 0) return "its rows are empty";
  for (int i = 0; i < p->num_depth; ++i)
    p->depth[i].is_known = o3_nest_step(p->x, p->depth[i].dim, &p->depth[i].step);
  p->inside = true;
  read_channels(p);
  if (!o3_nest_step(p->x, run, &p->x_step) || !p->depth[p->num_depth - 1].is_known)
    return "the pixels of its rows lie apart by what is known at run time only";
  return refuse_late_ends(p);
}

/* ---- What tiles ask ---- */

int64_t o3_blocked_innermost_steps(const o3_blocked_t *p) {
  if (p->inside) return p->depth[p->num_depth - 1].size;
  if (p->sparse.parts) return 1;
  if (p->sparse.lanes) return p->sparse.depth;
  return p->lanewise ? 1 : p->depth[p->num_depth - 1].size;
}

int64_t o3_blocked_pixel_turns(const o3_blocked_t *p) {
  if (p->num_depth == 0 || p->sparse.lanes) return 0;
  const o3_blocked_depth_t *last = &p->depth[p->num_depth - 1];
  bool shares = last->is_known && last->step > 0;
  return shares ? (p->x_step + last->step - 1) / last->step : 0;
}

int64_t o3_blocked_streams(const o3_blocked_t *p) {
  bool is_blocks = p->num_depth == 2 && !p->lanewise && !p->inside && p->columns < 0;
  return is_blocks && p->depth[1].size == O3_BLOCK_LANES ? p->depth[0].size : 0;
}

int o3_blocked_depth_at(const o3_blocked_t *p, int i) {
  int count = p->lanewise ? p->num_depth : p->num_depth - 1, missing = 3 - count;
  if (p->last_inputs && p->outer_is_blocks) return i == 0 ? 0 : i <= missing ? -1 : i - missing;
  return i < missing ? -1 : i - missing;
}

/* ---- Ops around it ---- */

static int position_of(const o3_nest_operand_t *operand, int dim) {
  for (int r = 0; r < operand->num_terms; ++r) {
    MlirAffineExpr expr = operand->all_exprs[r];
    if (mlirAffineExprIsADim(expr) && mlirAffineDimExprGetPosition(expr) == dim) return r;
  }
  return -1;
}

/* The dims that the run was merged from must be one for the op, too. */
static bool merge_side_run(const o3_blocked_t *p, o3_blocked_side_t *side) {
  int run = o3_blocked_run_dim(p), parts[O3_IR_MAX_RANK], count = 0;
  for (int d = 0; d < p->nest.num_dims; ++d) {
    if (run >= 0 && (d == run || p->nest.merged_into[d] == run)) parts[count++] = side->dims[d];
  }
  return o3_nest_merge_dims(&side->nest, count, parts);
}

static bool takes_vectors(const o3_blocked_t *p, const o3_blocked_side_t *side) {
  if (p->lane < 0 || !o3_vector_body_fits(&side->nest)) return false;
  for (int i = 0; i < side->nest.num_operands; ++i) {
    const o3_nest_operand_t *operand = &side->nest.operands[i];
    int64_t step = operand->is_memref ? step_of(operand, side->dims[p->lane]) : 0;
    if (step != 0 && step != 1) return false;
  }
  return true;
}

/* Scalar loops should be long. */
static bool merge_lanes(const o3_blocked_t *p, o3_blocked_side_t *side) {
  if (p->lane < 0 || !p->pixels.count) return false;
  const int pair[2] = {side->dims[p->pixels.at[p->pixels.count - 1]], side->dims[p->lane]};
  return o3_nest_merge_dims(&side->nest, 2, pair);
}

const char *o3_blocked_read_side(const o3_blocked_t *p, MlirOperation op, o3_blocked_side_t *side) {
  if (!o3_nest_read_any(op, &side->nest)) return "its access maps are not those of loops over the result";
  const o3_nest_operand_t *out = &side->nest.operands[side->nest.num_inputs];
  for (int d = 0; d < p->nest.num_dims; ++d) {
    int position = position_of(p->y, d);
    MlirAffineExpr expr = position < 0 ? (MlirAffineExpr){0} : out->all_exprs[position];
    side->dims[d] = expr.ptr && mlirAffineExprIsADim(expr) ? (int)mlirAffineDimExprGetPosition(expr) : -1;
    if (position >= 0 && side->dims[d] < 0) return "it does not walk the result as the product does";
  }
  if (p->columns >= 0) {
    for (int i = 0; i < side->nest.num_operands; ++i) {
      if (!o3_nest_is_linear(&side->nest.operands[i], side->dims[p->columns]))
        return "an input is not linear in the columns";
    }
  }
  if (!merge_side_run(p, side)) return "an input does not run along the pixels as the result does";
  side->vectors = takes_vectors(p, side);
  side->merged = !side->vectors && merge_lanes(p, side);
  return NULL;
}
