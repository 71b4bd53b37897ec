/* The marked op's weights become three constants; what they say of the dense weights stands beside them as an
 * encoding, so that a reader of the IR need not know this compiler's formats. */
#include "rewrite/layout_sparse.h"

#include <stdio.h>

bool o3_layout_is_sparse(MlirOperation op) {
  MlirStringRef format = o3_op_string(op, O3_SPARSE_FORMAT_ATTR);
  return format.data && !o3_str_equal(format, "dense");
}

/* ---- Encodings ---- */

/* "..., c floordiv 4 : dense, c mod 4 : structured[2, 4]" */
static MlirAttribute group_encoding(MlirContext context, const o3_sparse_weight_t *weight,
                                    const o3_sparse_block_t *block) {
  char text[256];
  long long n = block->kept, m = block->of;
  snprintf(text, sizeof(text),
           "#sparse_tensor.encoding<{map = (%s) -> (m : dense, %sc floordiv %lld : dense, c mod %lld : "
           "structured[%lld, "
           "%lld]), crdWidth = 32}>",
           weight->is_matmul ? "c, m" : "m, c, h, w", weight->is_matmul ? "" : "h : dense, w : dense, ", m, m,
           n, m);
  return o3_attr_parse(context, text);
}

/* "m floordiv 16 : dense, c : compressed, ..., m mod 16 : dense": a block of one is no block. */
static MlirAttribute encoding(MlirContext context, const o3_sparse_weight_t *weight,
                              const o3_sparse_block_t *block) {
  char text[512], row[32] = "m", column[32] = "c", inner[64] = "", outer[64] = "";
  long long lanes = block->lanes, depth = block->depth;
  if (block->span) return group_encoding(context, weight, block);
  if (lanes > 1) {
    snprintf(row, sizeof(row), "m floordiv %lld", lanes);
    snprintf(outer, sizeof(outer), ", m mod %lld : dense", lanes);
  }
  if (depth > 1) {
    snprintf(column, sizeof(column), "c floordiv %lld", depth);
    snprintf(inner, sizeof(inner), ", c mod %lld : dense", depth);
  }
  snprintf(
      text, sizeof(text),
      "#sparse_tensor.encoding<{map = (%s) -> (%s : dense, %s : compressed%s%s%s), posWidth = 32, crdWidth "
      "= 32}>",
      weight->is_matmul ? "c, m" : "m, c, h, w", row, column,
      weight->is_matmul ? "" : "(nonunique), h : singleton(nonunique), w : singleton", inner, outer);
  return o3_attr_parse(context, text);
}

/* ---- Constants ---- */

static MlirValue constant(o3_layout_t *self, const char *name, MlirType type, const void *data,
                          int64_t bytes) {
  MlirAttribute value;
  self->status = o3_weights_add(self->env->weights, name, type, data, (size_t)bytes, &value);
  if (self->status) return (MlirValue){0};
  return o3_build1_attrs(&self->builder, "o3.constant", type, O3_NO_VALUES, O3_ATTRS({"value", value}));
}

static int64_t at_least_one(int64_t value) { return value > 0 ? value : 1; }

static MlirType values_type(MlirContext context, const o3_sparse_packed_t *packed,
                            const o3_sparse_block_t *block) {
  const int64_t sizes[] = {packed->num_entries, block->depth, block->lanes};
  const int64_t groups[] = {packed->num_entries, block->parts, block->depth / at_least_one(block->parts),
                            block->lanes};
  if (block->span) return o3_tensor_type(4, groups, mlirF32TypeGet(context));
  return o3_tensor_type(block->depth * block->lanes == 1 ? 1 : 3, sizes, mlirF32TypeGet(context));
}

static bool build_constants(o3_layout_t *self, const char *name, const o3_sparse_packed_t *packed,
                            const o3_sparse_block_t *block, o3_layout_sparse_t *sparse) {
  MlirType i32 = mlirIntegerTypeGet(self->context, 32);
  const int64_t rows = sparse->rows_size, entries = packed->num_entries;
  const int64_t columns[] = {entries + 1, o3_sparse_columns_of_entry(block)};
  sparse->values = constant(self, name, values_type(self->context, packed, block), packed->values,
                            entries * block->depth * block->lanes * 4);
  if (!self->status)
    sparse->rows = constant(self, name, o3_tensor_type(1, &rows, i32), packed->rows, rows * 4);
  if (!self->status)
    sparse->columns = constant(self, name, o3_tensor_type(block->span ? 2 : 1, columns, i32), packed->columns,
                               columns[0] * columns[1] * 4);
  return !self->status;
}

static o3_status_t allocate(o3_layout_t *self, const o3_sparse_weight_t *weight,
                            const o3_sparse_block_t *block, o3_sparse_packed_t *packed) {
  o3_weights_t *weights = self->env->weights;
  int64_t entries = o3_sparse_count(weight, block), rows = o3_sparse_rows_size(weight, block);
  if (entries > INT32_MAX)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "sparse weights of %lld entries: at most 2^31 - 1 fit",
                            (long long)entries);
  packed->rows = o3_weights_alloc(weights, (size_t)rows * 4);
  packed->columns =
      o3_weights_alloc(weights, (size_t)((entries + 1) * o3_sparse_columns_of_entry(block)) * 4);
  packed->values = o3_weights_alloc(weights, (size_t)(entries * block->depth * block->lanes) * 4);
  O3_TRY_ALLOC(packed->rows);
  O3_TRY_ALLOC(packed->columns);
  O3_TRY_ALLOC(packed->values);
  return NULL;
}

/* ---- Storing ---- */

static o3_status_t read_format(MlirOperation op, o3_sparse_weight_t *weight, o3_sparse_block_t *block) {
  char text[64];
  o3_sparse_format_t format;
  snprintf(text, sizeof(text), "%.*s", O3_STR_ARGS(o3_op_string(op, O3_SPARSE_FORMAT_ATTR)));
  O3_TRY(o3_sparse_format_parse(text, &format));
  return o3_sparse_supported(weight, &format, block);
}

static o3_status_t store(o3_layout_t *self, MlirOperation op, o3_sparse_weight_t *weight,
                         o3_layout_sparse_t *sparse) {
  o3_sparse_block_t block;
  o3_sparse_packed_t packed;
  size_t bytes;
  MlirOperation def = o3_value_def(mlirOperationGetOperand(op, 1));
  if (mlirOperationIsNull(def) || !o3_op_is(def, "o3.constant"))
    return o3_status_create(O3_STATUS_UNSUPPORTED, "its weights are no constant");
  MlirAttribute value = o3_op_attr(def, "value");
  O3_TRY(read_format(op, weight, &block));
  weight->data = o3_weights_data(self->env->weights, value, &bytes);
  O3_TRY_ALLOC(weight->data);
  O3_TRY(o3_sparse_check(weight, &block));
  O3_TRY(allocate(self, weight, &block, &packed));
  o3_sparse_pack(weight, &block, &packed);
  const char *name = o3_weights_name(self->env->weights, value);
  sparse->rows_size = o3_sparse_rows_size(weight, &block);
  sparse->is_plain = block.lanes * block.depth == 1;
  sparse->encoding = encoding(self->context, weight, &block);
  build_constants(self, name ? name : "sparse", &packed, &block, sparse);
  return self->status;
}

bool o3_layout_store_sparse(o3_layout_t *self, MlirOperation op, o3_sparse_weight_t *weight,
                            o3_layout_sparse_t *sparse) {
  o3_status_t status = store(self, op, weight, sparse);
  if (status)
    self->status = o3_status_annotate(status, "op '%.*s', sparse format '%.*s'", O3_STR_ARGS(o3_op_label(op)),
                                      O3_STR_ARGS(o3_op_string(op, O3_SPARSE_FORMAT_ATTR)));
  return !status;
}

/* ---- What compressed rows read ---- */

static MlirValue pad_to(o3_layout_t *self, MlirValue x, const o3_shape_t *lows, const o3_shape_t *highs,
                        const o3_shape_t *shape) {
  MlirType element = o3_type_element(mlirValueGetType(x)), scalar = o3_tensor_type(0, NULL, element);
  MlirAttribute zero = mlirDenseElementsAttrSplatGet(scalar, o3_attr_float(element, 0));
  MlirValue fill =
      o3_build1_attrs(&self->builder, "o3.constant", scalar, O3_NO_VALUES, O3_ATTRS({"value", zero}));
  MlirValue operands[2] = {x, fill};
  return o3_layout_op(self, "o3.pad", shape, element, 2, operands,
                      O3_ATTRS({"lows", o3_shape_attr(self->context, lows, self->num_symbols)},
                               {"highs", o3_shape_attr(self->context, highs, self->num_symbols)},
                               {"mode", o3_attr_string(self->context, "constant")}));
}

/* How many of |rows| are a panel: all of few ones, in whole vectors. */
static int64_t panel_of(MlirAffineExpr rows) {
  int64_t count;
  if (!o3_expr_is_const(rows, &count) || count >= O3_SPARSE_PANEL) return O3_SPARSE_PANEL;
  return count > 0 ? o3_layout_round_up(count, O3_BLOCK_LANES) : O3_BLOCK_LANES;
}

MlirValue o3_layout_row_panels(o3_layout_t *self, MlirValue a, o3_shape_t *flat) {
  o3_shape_t shape, lows = {.rank = 2}, highs = {.rank = 2};
  MlirAffineExpr zero = o3_expr_const(self->context, 0);
  if (!o3_layout_shape(a, &shape)) return a;
  *flat = (o3_shape_t){.rank = 2, .dims = {o3_expr_const(self->context, 1), shape.dims[shape.rank - 1]}};
  for (int i = 0; i + 1 < shape.rank; ++i) flat->dims[0] = o3_expr_mul(flat->dims[0], shape.dims[i]);
  if (shape.rank != 2) a = o3_layout_reshape(self, a, flat);
  int64_t panel = panel_of(flat->dims[0]);
  MlirAffineExpr size = o3_expr_const(self->context, panel), *rows = flat->dims;
  shape = *flat;
  shape.dims[0] = o3_expr_mul(o3_expr_ceil_div(*rows, size), size);
  lows.dims[0] = lows.dims[1] = highs.dims[1] = zero;
  highs.dims[0] = o3_expr_sub(shape.dims[0], *rows);
  if (!o3_expr_equal(shape.dims[0], *rows)) a = pad_to(self, a, &lows, &highs, &shape);
  return o3_layout_transpose(self, o3_layout_split(self, a, 0, panel), (int64_t[]){0, 2, 1});
}

/* The border, and what makes the sizes multiples of the steps. */
static MlirValue surround(o3_layout_t *self, MlirValue x, const o3_layout_steps_t *steps, o3_shape_t *shape) {
  o3_shape_t lows = {.rank = 4}, highs = {.rank = 4};
  MlirAffineExpr zero = o3_expr_const(self->context, 0);
  bool same = true;
  for (int i = 0; i < 4; ++i) lows.dims[i] = highs.dims[i] = zero;
  for (int i = 0; i < 2; ++i) {
    MlirAffineExpr *dim = &shape->dims[2 + i], step = o3_expr_const(self->context, steps->strides[i]);
    MlirAffineExpr padded =
        o3_expr_add(*dim, o3_expr_const(self->context, steps->pads[i] + steps->pads[2 + i]));
    MlirAffineExpr whole = o3_expr_mul(o3_expr_ceil_div(padded, step), step);
    lows.dims[2 + i] = o3_expr_const(self->context, steps->pads[i]);
    highs.dims[2 + i] = o3_expr_sub(o3_expr_sub(whole, *dim), lows.dims[2 + i]);
    same = same && o3_expr_equal(whole, *dim);
    *dim = whole;
  }
  return same ? x : pad_to(self, x, &lows, &highs, shape);
}

MlirValue o3_layout_without_steps(o3_layout_t *self, MlirValue x, const o3_layout_steps_t *steps) {
  o3_shape_t shape;
  if (!o3_layout_shape(x, &shape)) return x;
  x = surround(self, x, steps, &shape);
  x = o3_layout_split(self, o3_layout_split(self, x, 2, steps->strides[0]), 4, steps->strides[1]);
  x = o3_layout_transpose(self, x, (int64_t[]){0, 1, 3, 5, 2, 4});
  MlirAffineExpr phases = o3_expr_const(self->context, steps->strides[0] * steps->strides[1]);
  shape.dims[1] = o3_expr_mul(shape.dims[1], phases);
  for (int i = 0; i < 2; ++i)
    shape.dims[2 + i] = o3_expr_ceil_div(shape.dims[2 + i], o3_expr_const(self->context, steps->strides[i]));
  return o3_layout_reshape(self, x, &shape);
}
