/* The CPU back end, run: modules become objects, are linked with a small runtime and compared with plain C.
 *
 * Sizes are awkward on purpose (0, 1, primes, tile and tile +- 1); data is random, from O3_TEST_SEED.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "runtime/compiled.h"
#include "target/target.h"
#include "unit.h"

/* One thread; memory from malloc, given back by test_end; a failure jumps out. */
static const char RUNTIME[] =
    "#include <setjmp.h>\n#include <stdint.h>\n#include <stdlib.h>\n"
    "typedef struct { jmp_buf out; const char *message; void *blocks; } "
    "session_t;\n"
    "static void *get(session_t *s, int64_t n) {\n"
    "  if (n > (INT64_C(1) << 40)) { s->message = \"out of memory\"; longjmp(s->out, 1); }\n"
    "  void **block = aligned_alloc(64, (size_t)(n + 127) / 64 * 64 + 64);\n"
    "  *block = s->blocks; s->blocks = block; return (char *)block + 64; }\n"
    "void *o3rt_arena(session_t *s, int64_t n) { return get(s, n); }\n"
    "void *o3rt_alloc(session_t *s, int64_t n) { return get(s, n); }\n"
    "void o3rt_free(session_t *s, void *p) { (void)s, (void)p; }\n"
    "void o3rt_fail(session_t *s, const char *m) { s->message = m; longjmp(s->out, 1); }\n"
    "void o3rt_kernel_begin(session_t *s, int32_t k, int64_t o, int64_t b) { (void)s, (void)k, (void)o, "
    "(void)b; "
    "}\n"
    "void o3rt_parallel_for(session_t *s, void (*f)(void *, int64_t, int64_t), void *c, int64_t n, int64_t "
    "g) {\n"
    "  (void)s, (void)g; if (n > 1) { f(c, n / 2, n); f(c, 0, n / 2); } else f(c, 0, n); }\n"
    "void o3m_run(session_t *, void **, void **);\n"
    "int32_t o3m_check(const int64_t *);\n"
    "__attribute__((visibility(\"default\"))) const char *test_run(session_t *s, void **in, void **out) {\n"
    "  s->message = 0; if (!setjmp(s->out)) o3m_run(s, in, out); return s->message; }\n"
    "__attribute__((visibility(\"default\"))) void test_end(session_t *s) {\n"
    "  while (s->blocks) { void **next = *(void **)s->blocks; free(s->blocks); s->blocks = next; } free(s); "
    "}\n"
    "__attribute__((visibility(\"default\"))) int32_t test_check(const int64_t *p) { return o3m_check(p); "
    "}\n";

enum { MAX_RANK = 4, SESSION_BYTES = 4096 };

typedef struct descriptor {
  void *allocated, *aligned;
  int64_t offset, sizes_and_strides[2 * MAX_RANK];
} descriptor_t;

typedef struct library {
  char *folder;
  void *handle;
  const char *(*run)(void *session, void **inputs, void **outputs);
  int32_t (*check)(const int64_t *symbols);
  void (*end)(void *session);
} library_t;

static o3_status_t run_passes(const o3_target_t *target, o3_pass_env_t *env, MlirModule module) {
  for (int i = 0; i < target->num_passes; ++i) {
    const o3_target_pass_t *pass = &target->passes[i];
    if (env->opt_level < pass->min_level) continue;
    O3_TRY_CONTEXT(pass->run(env, module), "%s", pass->name);
    O3_TRY_CONTEXT(o3_ir_verify(mlirModuleGetOperation(module)), "after %s", pass->name);
  }
  return NULL;
}

static void make_object(const char *text, const char *target_name, int level, o3_artifact_t *object) {
  MlirContext context;
  MlirModule module;
  const o3_target_t *target;
  o3_machine_t machine;
  o3_arena_t *arena = o3_arena_create();
  assert_ok(o3_context_create(&context));
  assert_ok(o3_ir_parse(context, text, strlen(text), "test", &module));
  assert_ok(o3_target_find(target_name, &target));
  assert_ok(target->machine(arena, &machine));
  o3_pass_env_t env = {.context = context, .arena = arena, .opt_level = level, .machine = &machine};
  assert_ok(run_passes(target, &env, module));
  assert_ok(target->emit_object(&env, module, object));
  mlirModuleDestroy(module);
  o3_context_destroy(context);
  o3_arena_destroy(arena);
}

static void write_in(const char *folder, const char *name, const void *data, size_t size) {
  char path[512];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  assert_ok(o3_file_write(path, data, size));
}

/* Only libc and libm: a call of anything else (compiler-rt) does not link. */
static library_t compile(const char *text, const char *target, int level) {
  library_t library;
  o3_artifact_t object;
  char command[2048], path[512];
  make_object(text, target, level, &object);
  assert_ok(o3_file_temp_dir_create(&library.folder));
  write_in(library.folder, "m.o", object.data, object.size);
  write_in(library.folder, "r.c", RUNTIME, sizeof(RUNTIME) - 1);
  free(object.data);
  snprintf(
      command, sizeof(command),
      "cd '%s' && cc -O1 -w -fPIC -fvisibility=hidden -shared -nostdlib -o m.so r.c m.o -lm -lc -Wl,-z,defs",
      library.folder);
  assert_int_equal(system(command), 0);
  snprintf(path, sizeof(path), "%s/m.so", library.folder);
  library.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library.handle);
  *(void **)&library.run = dlsym(library.handle, "test_run");
  *(void **)&library.check = dlsym(library.handle, "test_check");
  *(void **)&library.end = dlsym(library.handle, "test_end");
  return library;
}

static void unload(library_t *library) {
  dlclose(library->handle);
  o3_file_temp_dir_remove(library->folder);
  free(library->folder);
}

static descriptor_t describe(void *data, int rank, const int64_t *sizes) {
  descriptor_t it = {.allocated = data, .aligned = data};
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    it.sizes_and_strides[i] = sizes[i];
    it.sizes_and_strides[rank + i] = stride;
    if (i) stride *= sizes[i]; /* a test gives a first size that no memory could have */
  }
  return it;
}

static void *new_session(void) {
  void *session = aligned_alloc(64, SESSION_BYTES);
  memset(session, 0, SESSION_BYTES);
  return session;
}

static float *random_floats(int64_t count) {
  float *data = malloc((size_t)(count ? count : 1) * sizeof(float));
  for (int64_t i = 0; i < count; ++i) data[i] = (float)rand() / (float)RAND_MAX * 2 - 1;
  return data;
}

/* ---- Products ---- */

typedef struct product_case {
  int m, n, k;
  bool a_transposed, b_transposed, dynamic;
} product_case_t;

static void product_text(const product_case_t *it, o3_strbuf_t *text) {
  char sizes[3][16], a[64], b[64], c[64];
  int numbers[3] = {it->m, it->n, it->k};
  for (int i = 0; i < 3; ++i) snprintf(sizes[i], sizeof(sizes[i]), it->dynamic ? "?" : "%d", numbers[i]);
  const char *m = sizes[0], *n = sizes[1], *k = sizes[2];
  snprintf(a, sizeof(a), "tensor<%sx%sxf32>", it->a_transposed ? k : m, it->a_transposed ? m : k);
  snprintf(b, sizeof(b), "tensor<%sx%sxf32>", it->b_transposed ? n : k, it->b_transposed ? k : n);
  snprintf(c, sizeof(c), "tensor<%sx%sxf32>", m, n);
  o3_strbuf_printf(
      text,
      "module {\nfunc.func @main(%%a: %s, %%b: %s, %%c: %s) -> %s {\n"
      "  %%r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (%s)>, affine_map<(m, n, k) -> "
      "(%s)>,\n"
      "      affine_map<(m, n, k) -> (m, n)>], iterator_types = [\"parallel\", \"parallel\", "
      "\"reduction\"]}\n"
      "      ins(%%a, %%b : %s, %s) outs(%%c : %s) {\n"
      "  ^bb0(%%p: f32, %%q: f32, %%o: f32):\n"
      "    %%x = arith.mulf %%p, %%q : f32\n    %%y = arith.addf %%o, %%x : f32\n    linalg.yield %%y : f32\n"
      "  } -> %s\n  return %%r : %s\n}\n}\n",
      a, b, c, c, it->a_transposed ? "k, m" : "m, k", it->b_transposed ? "n, k" : "k, n", a, b, c, c, c);
}

static void check_product(const product_case_t *it, const float *a, const float *b, const float *c,
                          const float *r) {
  for (int i = 0; i < it->m; ++i) {
    for (int j = 0; j < it->n; ++j) {
      double sum = c[i * it->n + j];
      for (int l = 0; l < it->k; ++l) {
        double x = it->a_transposed ? a[l * it->m + i] : a[i * it->k + l];
        sum += x * (it->b_transposed ? b[j * it->k + l] : b[l * it->n + j]);
      }
      if (fabs(r[i * it->n + j] - sum) > 1e-5 * (it->k + 1)) {
        print_error("m %d n %d k %d at %d %d: %g, %g expected\n", it->m, it->n, it->k, i, j, r[i * it->n + j],
                    sum);
        fail();
      }
    }
  }
}

static void run_product(const product_case_t *it, const char *target, int level) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  product_text(it, &text);
  library_t library = compile(text.text, target, level);
  float *data[3] = {random_floats((int64_t)it->m * it->k), random_floats((int64_t)it->k * it->n),
                    random_floats((int64_t)it->m * it->n)};
  int64_t m = it->m, n = it->n, k = it->k;
  descriptor_t a = describe(data[0], 2, it->a_transposed ? (int64_t[]){k, m} : (int64_t[]){m, k});
  descriptor_t b = describe(data[1], 2, it->b_transposed ? (int64_t[]){n, k} : (int64_t[]){k, n});
  descriptor_t c = describe(data[2], 2, (int64_t[]){m, n}), r;
  void *session = new_session();
  assert_null(library.run(session, (void *[]){&a, &b, &c}, (void *[]){&r}));
  assert_int_equal(r.sizes_and_strides[0], m);
  assert_int_equal(r.sizes_and_strides[1], n);
  check_product(it, data[0], data[1], data[2], r.aligned);
  for (int i = 0; i < 3; ++i) free(data[i]);
  library.end(session);
  unload(&library);
  o3_strbuf_deinit(&text);
}

static void test_products(void **state) {
  static const product_case_t CASES[] = {
      {4, 4, 2, false, false, false},  {7, 33, 5, true, false, false},     {17, 31, 257, false, true, false},
      {64, 16, 64, true, true, false}, {65, 129, 300, false, false, true}, {1, 100, 13, false, false, true},
      {0, 8, 8, false, false, true},   {8, 8, 0, false, false, true},      {13, 1, 9, false, true, true},
  };
  (void)state;
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); ++i) {
    run_product(&CASES[i], i % 2 ? "cpu" : "x86-64-v3", i % 4 ? 1 : 0);
  }
  if (__builtin_cpu_supports("avx512vl")) run_product(&CASES[4], "x86-64-v4", 1);
}

/* ---- Math functions ---- */

static void check_math(const char *name, double (*reference)(double), double limit) {
  enum { COUNT = 100000 };
  char text[1024];
  snprintf(text, sizeof(text),
           "module {\nfunc.func @main(%%x: tensor<?xf32>, %%y: tensor<?xf32>) -> tensor<?xf32> {\n"
           "  %%r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],\n"
           "      iterator_types = [\"parallel\"]} ins(%%x : tensor<?xf32>) outs(%%y : tensor<?xf32>) {\n"
           "  ^bb0(%%p: f32, %%o: f32):\n    %%q = math.%s %%p : f32\n    linalg.yield %%q : f32\n"
           "  } -> tensor<?xf32>\n  return %%r : tensor<?xf32>\n}\n}\n",
           name);
  library_t library = compile(text, "x86-64-v3", 1);
  float *data = random_floats(COUNT);
  for (int i = 0; i < COUNT; ++i) {
    uint32_t bits = ((uint32_t)rand() << 16) ^ (uint32_t)rand();
    if (i % 2) memcpy(&data[i], &bits, sizeof(bits));
    if (i % 4 == 2) data[i] *= 20;
  }
  const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, 3e38f, 88.7228f, -103.97f};
  memcpy(data, special, sizeof(special));
  descriptor_t x = describe(data, 1, (int64_t[]){COUNT}), r;
  void *session = new_session();
  assert_null(library.run(session, (void *[]){&x, &x}, (void *[]){&r}));
  for (int i = 0; i < COUNT; ++i) {
    float got = ((float *)r.aligned)[i];
    double want = reference((double)data[i]);
    if (isnan(want) || isinf((float)want)) {
      assert_true(isnan(want) ? isnan(got) : got == (float)want);
      continue;
    }
    double ulp = fmax(fabs(nextafterf(fabsf((float)want), INFINITY) - (double)fabsf((float)want)), 0x1p-149);
    if (!(fabs(got - want) <= limit * ulp)) {
      print_error("%s(%a): %a, %a expected\n", name, data[i], got, want);
      fail();
    }
  }
  free(data);
  library.end(session);
  unload(&library);
}

static void test_math(void **state) {
  (void)state;
  check_math("exp", exp, 1);
  check_math("log", log, 1);
  check_math("tanh", tanh, 5);
  check_math("erf", erf, 1.1);
}

/* ---- Failures ---- */

static const char CHECKED[] =
    "module {\nfunc.func @main(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32> {\n"
    "  %c0 = arith.constant 0 : index\n  %c7 = arith.constant 7 : index\n"
    "  %d = tensor.dim %x, %c0 : tensor<?x1024xf32>\n"
    "  %ok = arith.cmpi ne, %d, %c7 : index\n"
    "  cf.assert %ok, \"node 'A': seven\"\n"
    "  %one = arith.constant 1.0 : f32\n"
    "  %e = tensor.empty(%d) : tensor<?x1024xf32>\n"
    "  %f = linalg.fill ins(%one : f32) outs(%e : tensor<?x1024xf32>) -> tensor<?x1024xf32>\n"
    "  return %f : tensor<?x1024xf32>\n}\n"
    "func.func private @check(%n: index, %m: index) -> i32 {\n"
    "  %r = arith.cmpi eq, %n, %m : index\n  %ok = arith.constant -1 : i32\n  %bad = arith.constant 3 : i32\n"
    "  %s = arith.select %r, %ok, %bad : i32\n  return %s : i32\n}\n}\n";

static void test_failures(void **state) {
  (void)state;
  for (int level = 0; level < 2; ++level) {
    library_t library = compile(CHECKED, "x86-64-v3", level);
    float cell = 0;
    descriptor_t r;
    void *session = new_session();
    descriptor_t x = describe(&cell, 2, (int64_t[]){7, 1024});
    assert_string_equal(library.run(session, (void *[]){&x}, (void *[]){&r}), "node 'A': seven");
    x = describe(&cell, 2, (int64_t[]){INT64_C(1) << 60, 1024});
    assert_string_equal(library.run(session, (void *[]){&x}, (void *[]){&r}), "out of memory");
    x = describe(&cell, 2, (int64_t[]){2, 1024});
    assert_null(library.run(session, (void *[]){&x}, (void *[]){&r}));
    assert_true(((float *)r.aligned)[2047] == 1.0f);
    assert_int_equal(library.check((int64_t[]){4, 4}), -1);
    assert_int_equal(library.check((int64_t[]){4, 5}), 3);
    library.end(session);
    unload(&library);
  }
}

static void test_targets(void **state) {
  const o3_target_t *target;
  (void)state;
  assert_fails(o3_target_find("pdp11", &target), O3_STATUS_UNSUPPORTED, "target 'pdp11' does not exist");
  assert_null(target);
  assert_ok(o3_target_find("x86-64-v3", &target));
  assert_true(target->cpu_features & (UINT64_C(1) << O3RT_CPU_AVX2));
  assert_string_equal(o3_target_at(0)->name, "cpu");
  assert_null(o3_target_at(-1));
  assert_null(o3_target_at(1000));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_math),
                                     cmocka_unit_test(test_failures), cmocka_unit_test(test_targets)};
  const char *given = getenv("O3_TEST_SEED");
  unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)getpid();
  printf("O3_TEST_SEED=%u\n", seed);
  srand(seed);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
