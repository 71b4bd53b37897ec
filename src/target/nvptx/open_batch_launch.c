/* Block b of the launch is block b % blocks of batch b / blocks, so that clusters stay together. Pointers are
 * moved once, in 64 bits: places within a batch are numbers of 32. */
#include "target/nvptx/open_batch_launch.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "ir/build.h"
#include "target/nvptx/nvptx_ir.h"

enum { MAP_ALIGNMENT = 16 };

/* ---- Preparing ---- */

/* Of an argument, which may be a size. */
static int64_t bytes_of(const o3_open_batch_t *batch, MlirValue argument) {
  int64_t unit = o3_open_batch_unit(batch, argument);
  return unit ? unit * o3_type_bits(o3_type_element(mlirValueGetType(argument))) / 8 : 0;
}

/* The last dimension of a map is the batch's, if the kernel of one batch has no other use for it. */
static const char *add_batches(o3_gpu_tensor_map_t *map, int64_t bytes) {
  int last = map->rank - 1;
  if (map->sizes[last] != 1) return "a tensor map has no dimension left for batches known only at run time";
  if (bytes % MAP_ALIGNMENT) return "a batch starts at an address that TMA does not take";
  map->strides[last] = bytes;
  map->told = last;
  return NULL;
}

/* Kernels of one name are equal: what is the same for all batches may differ. */
static o3_status_t rename_kernel(o3_gpu_kernel_t *kernel, const o3_batch_units_t *units) {
  o3_strbuf_t name = O3_STRBUF_INIT;
  o3_strbuf_printf(&name, "%s_each", kernel->name);
  for (int i = 0; i < kernel->num_arguments; ++i)
    o3_strbuf_printf(&name, "_%" PRIx64, (uint64_t)units->bytes[i]);
  if (name.failed) o3_strbuf_deinit(&name);
  O3_TRY_ALLOC(name.text);
  free(kernel->name);
  kernel->name = name.text;
  return NULL;
}

o3_status_t o3_batch_launch_prepare(const o3_kernel_site_t *site, const o3_open_batch_t *batch,
                                    o3_gpu_kernel_t *kernel, o3_batch_units_t *units, const char **why_not) {
  *why_not = NULL;
  for (int i = 0; i < kernel->num_arguments && !*why_not; ++i) {
    o3_gpu_argument_t *argument = &kernel->arguments[i];
    if (argument->kind == O3_GPU_ARG_SCRATCH) {
      *why_not = "its blocks count in memory that batches would share";
      break;
    }
    units->bytes[i] = bytes_of(batch, site->arguments[argument->buffer]);
    if (units->bytes[i] && argument->kind == O3_GPU_ARG_TENSOR_MAP && !argument->map.told)
      *why_not = add_batches(&argument->map, units->bytes[i]);
  }
  return *why_not || kernel->rows.tile ? NULL : rename_kernel(kernel, units);
}

/* ---- Code ---- */

typedef struct code {
  MlirValue batch, block; /* i32 */
  MlirOperation own;      /* reads the number of the launch's block */
  MlirValue map;
  int rank; /* of the map */
} code_t;

static MlirValue constant(o3_builder_t *b, MlirType type, int64_t value) {
  return o3_build1_attrs(b, "llvm.mlir.constant", type, O3_NO_VALUES,
                         O3_ATTRS({"value", mlirIntegerAttrGet(type, value)}));
}

static o3_status_t number_block(MlirOperation op, void *context) {
  const code_t *code = context;
  if (!o3_op_is(op, "nvvm.read.ptx.sreg.ctaid.x") || mlirOperationEqual(op, code->own)) return NULL;
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), code->block);
  mlirOperationDestroy(op);
  return NULL;
}

/* Coordinates stand behind the two operands that tell from where and to where. */
static o3_status_t place_copy(MlirOperation op, void *context) {
  enum { FIRST = 2 };
  const code_t *code = context;
  bool load = o3_op_is(op, "nvvm.cp.async.bulk.tensor.shared.cluster.global");
  if (!load && !o3_op_is(op, "nvvm.cp.async.bulk.tensor.global.shared.cta")) return NULL;
  if (!mlirValueEqual(mlirOperationGetOperand(op, load), code->map)) return NULL;
  o3_builder_t b = o3_builder_before(op);
  intptr_t at = FIRST + code->rank - 1;
  MlirValue last = mlirOperationGetOperand(op, at);
  mlirOperationSetOperand(op, at, o3_build2(&b, "llvm.add", last, code->batch));
  return NULL;
}

static void move_pointer(o3_builder_t *b, MlirValue pointer, MlirValue batch, int64_t bytes) {
  MlirType i64 = mlirIntegerTypeGet(b->context, 64);
  MlirValue offset = o3_build2(b, "llvm.mul", batch, constant(b, i64, bytes));
  MlirValue moved = o3_build1_attrs(
      b, "llvm.getelementptr", mlirValueGetType(pointer), O3_VALUES(pointer, offset),
      O3_ATTRS({"rawConstantIndices", mlirDenseI32ArrayGet(b->context, 1, (int32_t[]){INT32_MIN})},
               {"elem_type", o3_attr_type(mlirIntegerTypeGet(b->context, 8))}));
  MlirOperation own = o3_value_def(moved);
  mlirValueReplaceAllUsesExcept(pointer, moved, 1, &own);
}

o3_status_t o3_batch_launch_code(MlirOperation function, const o3_gpu_kernel_t *kernel,
                                 const o3_batch_units_t *units) {
  MlirBlock entry = o3_func_body(function);
  o3_op_attr_set(function, "sym_name", o3_attr_string(mlirOperationGetContext(function), kernel->name));
  o3_builder_t b = o3_builder_before(mlirBlockGetFirstOperation(entry));
  MlirType i32 = mlirIntegerTypeGet(b.context, 32), i64 = mlirIntegerTypeGet(b.context, 64);
  MlirValue number = o3_nvptx_block(&b), blocks = constant(&b, i32, kernel->grid[0]);
  code_t code = {.batch = o3_build2(&b, "llvm.udiv", number, blocks),
                 .block = o3_build2(&b, "llvm.urem", number, blocks),
                 .own = o3_value_def(number)};
  MlirValue wide = o3_build1(&b, "llvm.zext", i64, O3_VALUES(code.batch));
  for (int i = 0; i < kernel->num_arguments; ++i) {
    code.map = mlirBlockGetArgument(entry, i);
    code.rank = kernel->arguments[i].map.rank;
    if (!units->bytes[i]) continue;
    if (kernel->arguments[i].kind == O3_GPU_ARG_TENSOR_MAP)
      O3_TRY(o3_walk(function, place_copy, &code));
    else
      move_pointer(&b, code.map, wide, units->bytes[i]);
  }
  return o3_walk(function, number_block, &code); /* last: it destroys what |b| may stand before */
}
