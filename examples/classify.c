/* Classifies handwritten digits with a compiled model and counts the right answers.
 *
 *     cc examples/classify.c digits.so -Iinclude -Wl,-rpath,'$ORIGIN' -o classify    (or digits.a)
 *     ./classify models/digits/test_images.npy models/digits/test_labels.npy
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <o3/model.h>

enum { PIXELS = 8 * 8, CLASSES = 10 };

static void fail(const char *what, const char *why) {
  fprintf(stderr, "classify: %s: %s\n", what, why);
  exit(1);
}

/* The bytes of a .npy file of uint8 (version 1.0: 10 bytes, the last two of which tell how long a text
 * follows, then the data). The caller frees them. */
static uint8_t *read_npy(const char *path, size_t *count) {
  unsigned char start[10];
  char text[65536];
  FILE *file = fopen(path, "rb");
  if (!file) fail(path, "cannot be opened");
  if (fread(start, 1, 10, file) != 10 || memcmp(start, "\x93NUMPY\x01", 7)) fail(path, "is no .npy 1.0 file");
  size_t length = start[8] + 256u * start[9];
  if (fread(text, 1, length, file) != length) fail(path, "ends too early");
  text[length] = '\0';
  if (!strstr(text, "'|u1'")) fail(path, "does not hold uint8");
  size_t room = 1 << 20; /* the samples are far smaller */
  uint8_t *bytes = malloc(room);
  if (!bytes) fail(path, "out of memory");
  *count = fread(bytes, 1, room, file);
  if (*count == room) fail(path, "is too large for this example");
  fclose(file);
  return bytes;
}

int main(int argc, char **argv) {
  if (argc != 3) fail("usage", "classify IMAGES.npy LABELS.npy");
  size_t num_pixels, num_labels, right = 0;
  uint8_t *images = read_npy(argv[1], &num_pixels), *labels = read_npy(argv[2], &num_labels);
  if (num_labels == 0 || num_pixels != num_labels * PIXELS) fail(argv[2], "does not fit the images");
  float *pixels = malloc(num_pixels * sizeof *pixels);
  if (!pixels) fail(argv[1], "out of memory");
  for (size_t i = 0; i < num_pixels; ++i) pixels[i] = images[i];

  o3_session_t *session;
  if (o3_session_create(o3_model(), NULL, &session) != O3_OK) fail("session", o3_last_error(o3_model()));
  o3_tensor_t image = {
      .data = pixels, .dtype = O3_FLOAT32, .rank = 4, .shape = {(int64_t)num_labels, 1, 8, 8}};
  o3_tensor_t logits = {.data = NULL}; /* NULL: the session's memory, valid until its next run */
  if (o3_session_run(session, &image, 1, &logits, 1) != O3_OK) fail("run", o3_session_error(session));

  for (size_t i = 0; i < num_labels; ++i) {
    const float *row = (const float *)logits.data + i * CLASSES;
    int best = 0;
    for (int k = 1; k < CLASSES; ++k)
      if (row[k] > row[best]) best = k;
    right += best == labels[i];
  }
  printf("%zu of %zu right\n", right, num_labels);
  o3_session_destroy(session);
  free(pixels);
  free(labels);
  free(images);
}
