/* Compiles a model with the compiler as a library: what o3c does, in a program of one's own.
 *
 *     cc examples/compile.c $(pkg-config --cflags --libs o3) -o compile    (after make install)
 *     ./compile models/digits/digits_sparse.onnx digits.so
 */
#include <o3/compiler.h>
#include <stdio.h>
#include <stdlib.h>

static void show_stage(void *context, const char *stage, int32_t index, int32_t count) {
  (void)context;
  printf("%d of %d: %s\n", (int)index + 1, (int)count, stage);
}

static void show_tensors(const char *what, const o3_compile_tensor_t *tensors, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    printf("%s %s: %s", what, tensors[i].name, tensors[i].dtype);
    for (int32_t d = 0; d < tensors[i].rank; ++d) {
      if (tensors[i].symbols[d])
        printf(" %s", tensors[i].symbols[d]);
      else
        printf(" %lld", (long long)tensors[i].shape[d]);
    }
    putchar('\n');
  }
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: compile MODEL.onnx OUTPUT.so\n");
    return 2;
  }
  o3_compile_options_t options = {
      .model = argv[1], .output = argv[2], .opt_level = 3, .progress = show_stage};
  o3_compile_result_t *result;
  char *error;
  int32_t code = o3_compile(&options, &result, &error);
  if (code) {
    fprintf(stderr, "compile: %s: %s\n", o3_compile_code_name(code), error ? error : "out of memory");
    free(error);
    return 1;
  }
  show_tensors("input", result->inputs, result->num_inputs);
  show_tensors("output", result->outputs, result->num_outputs);
  printf("%s for %s: %llu bytes\n", result->output, result->target, (unsigned long long)result->output_bytes);
  o3_compile_result_destroy(result);
  return 0;
}
