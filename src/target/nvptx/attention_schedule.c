/* Measured on an H200 at 1,024 to 16,384 rows, f16 (docs/design/gpu-kernels.md says what decides). The time
 * of a kernel is that of its rounds of tiles, as long as columns are many: so what counts is how much of the
 * last round and of the last tile of a head are empty. */
#include <stddef.h>

#include "target/nvptx/attention_kernel.h"

/* A schedule, for which kernels it is, the widest heads of them, and how long its 64 rows take in proportion
 * to those of the others. */
typedef struct choice {
  int width;
  bool causal, masked;
  double time;
  o3_attention_schedule_t schedule;
} choice_t;

static const choice_t CHOICES[] = {
#define O3_ATTENTION_CHOICE(width, causal, masked, time, ...) {width, causal, masked, time, {__VA_ARGS__}},
#include "target/nvptx/attention_schedules.def"
#undef O3_ATTENTION_CHOICE
};
enum { NUM_CHOICES = sizeof(CHOICES) / sizeof(CHOICES[0]) };

/* Of all rounds, in rows of the slowest multiprocessor. */
static double time_of(const o3_gpu_attention_t *a, const choice_t *choice) {
  int rows = choice->schedule.consumers * O3_ATTENTION_ROWS;
  int64_t tiles = (a->rows + rows - 1) / rows * a->heads * a->batch;
  int64_t room = (int64_t)a->multiprocessors * choice->schedule.resident;
  return choice->time * rows * (double)((tiles + room - 1) / room);
}

void o3_gpu_attention_join_rows(o3_gpu_attention_t *a) {
  int64_t members = a->heads / a->kv_heads;
  int64_t *const strides[] = {a->q_strides, a->o_strides, a->mask_strides};
  if (a->rows != 1 || members == 1) return;
  a->causal = false; /* there is one column */
  a->rows = members;
  a->heads = a->kv_heads;
  for (int i = 0; i < 3; ++i) {
    strides[i][2] = strides[i][1];
    strides[i][1] *= members;
  }
}

static bool is_for(const choice_t *choice, const o3_gpu_attention_t *a) {
  int widest = a->width > a->value_width ? a->width : a->value_width;
  return choice->width >= widest && choice->causal == a->causal && choice->masked == a->masked;
}

/* Of the rows for the narrowest heads that are wide enough. */
void o3_gpu_attention_schedule(o3_gpu_attention_t *a) {
  const choice_t *best = NULL;
  for (int i = 0; i < NUM_CHOICES; ++i) {
    const choice_t *choice = &CHOICES[i];
    if (!is_for(choice, a) || (best && choice->width > best->width)) continue;
    bool narrower = !best || choice->width < best->width;
    if (narrower || time_of(a, choice) < time_of(a, best)) best = choice;
  }
  a->schedule = best->schedule;
}
