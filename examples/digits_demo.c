/* Reads handwritten digits with a compiled model and tells how well and how fast.
 *
 *     o3c models/digits/digits_sparse.onnx -o digits.so
 *     cc -O2 -Iinclude examples/digits_demo.c ./digits.so -o digits_demo
 *     ./digits_demo models/digits/test_images.npy models/digits/test_labels.npy [--show]
 *
 * Prints "CORRECT TOTAL MICROSECONDS": the time of one image, the fastest of several rounds over the test
 * set.
 * --show draws one image of each digit first, with the model's answer. */
#include <o3/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10, ROUNDS = 20, INK_MAX = 16 };

static void die(const char *what, const char *why) {
  fprintf(stderr, "digits_demo: error: %s: %s\n", what, why);
  exit(1);
}

/* The bytes of a one-byte .npy file after its header, and their number. */
static unsigned char *read_npy(const char *path, size_t *count) {
  FILE *file = fopen(path, "rb");
  if (!file) die(path, "it cannot be opened");
  unsigned char head[10];
  if (fread(head, sizeof(head), 1, file) != 1 || memcmp(head, "\x93NUMPY\x01", 7) != 0)
    die(path, "it is no .npy file");
  long start = (long)sizeof(head) + head[8] + 256L * head[9];
  fseek(file, 0, SEEK_END);
  *count = (size_t)(ftell(file) - start);
  unsigned char *bytes = malloc(*count);
  if (!bytes || fseek(file, start, SEEK_SET) || fread(bytes, *count, 1, file) != 1)
    die(path, "it cannot be read");
  fclose(file);
  return bytes;
}

static int classify(o3_session_t *session, const unsigned char *pixels) {
  float image[PIXELS];
  for (int i = 0; i < PIXELS; ++i) image[i] = pixels[i];
  o3_tensor_t in = {.data = image, .dtype = O3_FLOAT32, .rank = 4, .shape = {1, 1, SIDE, SIDE}};
  o3_tensor_t out = {0};
  if (o3_session_run(session, &in, 1, &out, 1) != O3_OK) die("run", o3_session_error(session));
  const float *scores = out.data;
  int best = 0;
  for (int i = 1; i < CLASSES; ++i)
    if (scores[i] > scores[best]) best = i;
  return best;
}

/* Two pixels, one above the other, as one character: in grey on a terminal, else in black and white. */
static void draw_pair(int upper, int lower) {
  if (isatty(STDOUT_FILENO)) {
    printf("\033[38;5;%d;48;5;%dm\u2580\033[0m", 232 + upper * 23 / INK_MAX, 232 + lower * 23 / INK_MAX);
  } else {
    static const char *const BLOCKS[] = {" ", "\u2584", "\u2580", "\u2588"};
    fputs(BLOCKS[2 * (upper > INK_MAX / 3) + (lower > INK_MAX / 3)], stdout);
  }
}

static void show(o3_session_t *session, const unsigned char *images, const unsigned char *labels,
                 size_t count) {
  const unsigned char *chosen[CLASSES] = {NULL};
  for (size_t i = 0; i < count; ++i) chosen[labels[i] % CLASSES] = images + i * PIXELS;
  for (int row = 0; row < SIDE; row += 2) {
    for (int digit = 0; digit < CLASSES; ++digit)
      for (int column = 0; chosen[digit] && column < SIDE; ++column)
        draw_pair(chosen[digit][row * SIDE + column], chosen[digit][(row + 1) * SIDE + column]);
    putchar('\n');
  }
  for (int digit = 0; digit < CLASSES; ++digit)
    if (chosen[digit]) printf("   %d    ", classify(session, chosen[digit]));
  putchar('\n');
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The fastest of the rounds: what else runs on the machine only makes a round slower. */
static double measure(o3_session_t *session, const unsigned char *images, size_t count) {
  double best = 1e30;
  for (int round = 0; round < ROUNDS; ++round) {
    double start = seconds();
    for (size_t i = 0; i < count; ++i) classify(session, images + i * PIXELS);
    double time = seconds() - start;
    if (time < best) best = time;
  }
  return best / (double)count * 1e6;
}

int main(int argc, char **argv) {
  if (argc < 3) die("usage", "digits_demo IMAGES.npy LABELS.npy [--show]");
  size_t bytes, count;
  unsigned char *images = read_npy(argv[1], &bytes);
  unsigned char *labels = read_npy(argv[2], &count);
  if (bytes != count * PIXELS) die(argv[1], "it does not hold one 8 x 8 image for each label");

  const o3_model_t *model = o3_model();
  o3_session_options_t options = {.threads = 1};
  o3_session_t *session;
  if (o3_session_create(model, &options, &session) != O3_OK) die("session", o3_last_error(model));
  if (argc > 3 && !strcmp(argv[3], "--show")) show(session, images, labels, count);
  int correct = 0;
  for (size_t i = 0; i < count; ++i) correct += classify(session, images + i * PIXELS) == labels[i];
  printf("%d %zu %.1f\n", correct, count, measure(session, images, count));
  o3_session_destroy(session);
  free(images);
  free(labels);
  return 0;
}
