#include "profile.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct o3rt_profile {
  int32_t num_kernels, current; /* current: index in samples */
  int64_t since;
  o3_kernel_sample_t samples[]; /* what is outside of kernels, then the kernels */
};

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

o3rt_profile_t *o3rt_profile_create(int32_t num_kernels) {
  o3rt_profile_t *profile =
      calloc(1, sizeof *profile + ((size_t)num_kernels + 1) * sizeof(o3_kernel_sample_t));
  if (profile) profile->num_kernels = num_kernels;
  return profile;
}

void o3rt_profile_destroy(o3rt_profile_t *profile) { free(profile); }

static void change_to(o3rt_profile_t *profile, int32_t next) {
  int64_t time = now();
  profile->samples[profile->current].nanoseconds += time - profile->since;
  profile->current = next;
  profile->since = time;
}

void o3rt_profile_start(o3rt_profile_t *profile) {
  memset(profile->samples, 0, ((size_t)profile->num_kernels + 1) * sizeof *profile->samples);
  profile->current = 0;
  profile->samples[0].calls = 1;
  profile->since = now();
}

void o3rt_profile_begin(o3rt_profile_t *profile, int32_t kernel, int64_t operations, int64_t bytes) {
  change_to(profile, kernel + 1);
  o3_kernel_sample_t *sample = &profile->samples[kernel + 1];
  ++sample->calls;
  sample->operations += (double)operations;
  sample->bytes += (double)bytes;
}

void o3rt_profile_end(o3rt_profile_t *profile) { change_to(profile, 0); }

void o3rt_profile_add(o3rt_profile_t *profile, int32_t kernel, int64_t nanoseconds) {
  profile->samples[kernel + 1].nanoseconds += nanoseconds;
}

void o3rt_profile_clear_times(o3rt_profile_t *profile) {
  for (int32_t i = 0; i <= profile->num_kernels; ++i) profile->samples[i].nanoseconds = 0;
}

const o3_kernel_sample_t *o3rt_profile_sample(const o3rt_profile_t *profile, int32_t kernel) {
  return &profile->samples[kernel + 1];
}
