/* A thread writes 8 channels of one position, 16 bytes of half precision. What is outside of the image is
 * read at its first element and not used. */
#include "target/nvptx/image_kernel.h"

#include <stdio.h>

#include "target/nvptx/kernel_text.h"

enum { LANES = 8, THREADS = 256 };

/* Along y, then x. */
typedef struct image {
  o3_gpu_element_t from, to;
  int64_t images, channels, lanes; /* channels of x; those of y, a multiple of 8 */
  int64_t sizes[2], outputs[2];
  int64_t steps[2], lows[2];
  int x, y; /* arguments */
} image_t;

typedef struct writer {
  o3_kernel_text_t *t;
  const image_t *i;
  const o3_gpu_kernel_t *kernel;
} writer_t;

/* ---- Reading ---- */

static const char *read_window(MlirOperation op, image_t *image) {
  int64_t w[8];
  if (o3_op_ints(op, "o3.window", w, 8) != 8) return "its window is not known";
  for (int i = 0; i < 2; ++i) {
    image->steps[i] = w[2 + i];
    image->lows[i] = w[6 + i];
  }
  return NULL;
}

static const char *read_shapes(MlirType x, MlirType y, image_t *image) {
  if (o3_type_rank(y) != 5 || o3_type_rank(x) != 4) return "its images have another rank";
  if (!o3_type_is_static(x) || !o3_type_is_static(y)) return "a size is known only at run time";
  image->images = o3_type_dim(y, 0);
  image->lanes = o3_type_dim(y, 4);
  image->channels = o3_type_dim(x, 1);
  for (int i = 0; i < 2; ++i) {
    image->sizes[i] = o3_type_dim(x, 2 + i);
    image->outputs[i] = o3_type_dim(y, 2 + i);
  }
  int64_t positions = image->images * image->outputs[0] * image->outputs[1];
  if (image->lanes % LANES || positions < 1 || image->lanes < 1) return "the channels are no multiple of 8";
  if (positions * image->lanes > INT32_MAX || o3_type_count(x) > INT32_MAX || o3_type_count(x) < 1)
    return "an image has none, or more than 2^31 elements";
  return NULL;
}

static const char *read_site(const o3_kernel_site_t *site, image_t *image) {
  MlirOperation op = site->ops[0];
  *image = (image_t){0};
  if (site->num_ops != 1) return "it is no single op";
  if (!o3_str_equal(o3_op_string(op, "o3.kernel"), "pack_last")) return "it is no conversion of images";
  MlirValue x = o3_kernel_site_loaded(op), y = mlirOperationGetOperand(op, 0);
  if (mlirOperationGetNumOperands(op) != 1 || mlirValueIsNull(x)) return "it reads several buffers";
  image->x = o3_kernel_site_argument(site, x);
  image->y = o3_kernel_site_argument(site, y);
  if (image->x < 0 || image->y < 0) return "an image is no argument";
  if (!o3_kernel_site_element(x, &image->from) || !o3_kernel_site_element(y, &image->to))
    return "an element type is none of f16, bf16, f32";
  const char *why = read_window(op, image);
  return why ? why : read_shapes(mlirValueGetType(x), mlirValueGetType(y), image);
}

/* ---- Writing ---- */

static const char *type_of(o3_gpu_element_t element) { return o3_gpu_element_info(element)->mlir; }

/* Where a thread writes: of 8 lanes, then x, y and image. */
typedef struct place {
  int lanes, at[2], image;
} place_t;

static place_t thread_place(writer_t *w, int index) {
  place_t p;
  int rest = index;
  p.lanes = o3_kt_split(w->t, &rest, w->i->lanes / LANES);
  p.at[1] = o3_kt_split(w->t, &rest, w->i->outputs[1]);
  p.at[0] = o3_kt_split(w->t, &rest, w->i->outputs[0]);
  p.image = rest;
  return p;
}

/* The position of x that the place is, and whether it is inside; 0 where it is not. */
static int position_of(writer_t *w, const place_t *p, int *inside) {
  o3_kernel_text_t *t = w->t;
  const image_t *i = w->i;
  int at[2], fits[2];
  for (int a = 0; a < 2; ++a) {
    at[a] = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", p->at[a], i->steps[a]), -i->lows[a]);
    fits[a] = o3_kt_cmp_const(t, "ult", at[a], i->sizes[a]);
  }
  *inside = o3_kt_value(t, "arith.andi %%v%d, %%v%d : i1", fits[0], fits[1]);
  int linear = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", at[0], i->sizes[1]), at[1]);
  return o3_kt_select(t, *inside, linear, o3_kt_i32(t, 0), "i32");
}

static int load(writer_t *w, int index) {
  o3_kernel_text_t *t = w->t;
  int base = o3_kt_value(t, "llvm.getelementptr %%arg0[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8");
  const char *type = type_of(w->i->from);
  return o3_kt_value(t, "llvm.load %%v%d : !llvm.ptr<1> -> %s", o3_kt_global(t, base, index, type), type);
}

static int convert(writer_t *w, int value) {
  o3_gpu_element_t from = w->i->from, to = w->i->to;
  const char *wide = "f32";
  if (from == to) return value;
  if (from != O3_GPU_F32)
    value = o3_kt_value(w->t, "arith.extf %%v%d : %s to %s", value, type_of(from), wide);
  if (to == O3_GPU_F32) return value;
  return o3_kt_value(w->t, "arith.truncf %%v%d : %s to %s", value, wide, type_of(to));
}

/* The element of channel |lane| behind the thread's first; |zero| in channels that x does not have. */
static int packed_element(writer_t *w, const place_t *p, int lane, int plane, int inside, int zero) {
  o3_kernel_text_t *t = w->t;
  const image_t *i = w->i;
  if (i->lanes == LANES && lane >= i->channels) return zero;
  int channel = o3_kt_op_const(t, "addi", o3_kt_op_const(t, "muli", p->lanes, LANES), lane);
  int there = inside;
  if (i->channels % LANES && i->lanes > LANES) {
    there = o3_kt_value(t, "arith.andi %%v%d, %%v%d : i1", inside,
                        o3_kt_cmp_const(t, "slt", channel, i->channels));
    channel = o3_kt_op_const(t, "minsi", channel, i->channels - 1);
  }
  int first = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", p->image, i->channels), channel);
  int index = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", first, i->sizes[0] * i->sizes[1]), plane);
  int value = convert(w, load(w, index));
  return o3_kt_select(t, there, value, zero, type_of(i->to));
}

static int write_pack(writer_t *w, const place_t *p, const char *vector) {
  o3_kernel_text_t *t = w->t;
  int inside, values[LANES], position = position_of(w, p, &inside);
  int zero = o3_kt_value(t, "arith.constant 0.0 : %s", type_of(w->i->to));
  for (int lane = 0; lane < LANES; ++lane) values[lane] = packed_element(w, p, lane, position, inside, zero);
  return o3_kt_value(t, "vector.from_elements %%v%d, %%v%d, %%v%d, %%v%d, %%v%d, %%v%d, %%v%d, %%v%d : %s",
                     values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7],
                     vector);
}

static void write_thread(writer_t *w, int index) {
  o3_kernel_text_t *t = w->t;
  char vector[24];
  snprintf(vector, sizeof(vector), "vector<%dx%s>", LANES, type_of(w->i->to));
  place_t p = thread_place(w, index);
  int value = write_pack(w, &p, vector);
  int base = o3_kt_value(t, "llvm.getelementptr %%arg1[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8");
  int at = o3_kt_global(t, base, o3_kt_op_const(t, "muli", index, LANES), type_of(w->i->to));
  o3_kt_line(t, "llvm.store %%v%d, %%v%d {alignment = 16 : i64} : %s, !llvm.ptr<1>", value, at, vector);
}

static int64_t count_threads(const image_t *i) {
  return i->images * i->outputs[0] * i->outputs[1] * (i->lanes / LANES);
}

static void write_module(o3_kernel_text_t *t, void *context) {
  writer_t *w = context;
  int64_t threads = count_threads(w->i);
  w->t = t;
  o3_kt_begin_module(t);
  o3_kt_begin_kernel(t, w->kernel, 1);
  if (w->kernel->overlaps) {
    o3_kt_start_next(t);
    o3_kt_wait_for_others(t);
  }
  int index = o3_kt_op(t, "addi", o3_kt_op_const(t, "muli", o3_kt_block(t), THREADS), o3_kt_thread(t));
  bool ragged = threads % THREADS != 0;
  if (ragged) o3_kt_if(t, o3_kt_cmp_const(t, "ult", index, threads));
  write_thread(w, index);
  if (ragged) o3_kt_end(t);
  o3_kt_end_kernel(t);
}

o3_status_t o3_image_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not) {
  image_t image;
  char stem[64];
  *kernel = (o3_gpu_kernel_t){0};
  *why_not = read_site(site, &image);
  if (*why_not) return NULL;
  kernel->grid[0] = (int)((count_threads(&image) + THREADS - 1) / THREADS);
  kernel->grid[1] = kernel->grid[2] = kernel->cluster = 1;
  kernel->block = THREADS;
  kernel->overlaps = site->sm >= 90;
  o3_gpu_kernel_add_pointer(kernel, image.x);
  o3_gpu_kernel_add_pointer(kernel, image.y);
  O3_GPU_KERNEL_NOTE(kernel, {"vector", LANES});
  writer_t w = {.i = &image, .kernel = kernel};
  snprintf(stem, sizeof(stem), "o3k_%s_pack__sm80", type_of(image.to));
  return o3_kt_write(kernel, stem, write_module, &w);
}
