/* Intermediate constants: gone when the module does not use them, and no others. */
#include <stdlib.h>
#include <string.h>

#include "ir/context.h"
#include "ir/weights.h"
#include "unit.h"

enum { COUNT = 1000 };

typedef struct fixture {
  MlirContext context;
  o3_weights_t *weights;
  MlirType type;
} fixture_t;

static int set_up(void **state) {
  static fixture_t f;
  assert_ok(o3_context_create(&f.context));
  assert_ok(o3_weights_create(f.context, &f.weights));
  f.type = o3_tensor_type(1, (int64_t[]){COUNT}, mlirF32TypeGet(f.context));
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture_t *f = *state;
  o3_weights_destroy(f->weights);
  o3_context_destroy(f->context);
  return 0;
}

static MlirAttribute add(fixture_t *f, float value) {
  MlirAttribute attr;
  float *data = o3_weights_alloc(f->weights, COUNT * sizeof(float));
  assert_non_null(data);
  data[COUNT - 1] = value;
  assert_ok(o3_weights_add(f->weights, "w", f->type, data, COUNT * sizeof(float), &attr));
  return attr;
}

static void expect(fixture_t *f, MlirAttribute attr, float value) {
  size_t bytes = 0;
  const float *data = o3_weights_data(f->weights, attr, &bytes);
  assert_non_null(data);
  assert_int_equal(bytes, COUNT * sizeof(float));
  assert_true(data[COUNT - 1] == value);
}

static void drop_unused(void **state) {
  fixture_t *f = *state;
  MlirAttribute model = add(f, 1);
  size_t first = o3_weights_count(f->weights);
  assert_int_equal(first, 1);
  MlirAttribute used = add(f, 2), unused = add(f, 3);
  MlirModule module = mlirModuleCreateEmpty(mlirLocationUnknownGet(f->context));
  o3_op_attr_set(mlirModuleGetOperation(module), "o3.test", used);
  /* An attribute of the module itself is no use: ops inside are looked at. */
  MlirModule inside = mlirModuleCreateEmpty(mlirLocationUnknownGet(f->context));
  mlirBlockAppendOwnedOperation(mlirModuleGetBody(inside), mlirModuleGetOperation(module));
  assert_ok(o3_weights_drop_unused(f->weights, inside, first));
  assert_int_equal(o3_weights_count(f->weights), 2);
  expect(f, model, 1);
  expect(f, used, 2);
  assert_null(o3_weights_data(f->weights, unused, NULL));
  /* What was intermediate stays so, and names are not given twice. */
  MlirAttribute later = add(f, 4);
  mlirOperationRemoveAttributeByName(mlirModuleGetOperation(module), O3_STR("o3.test"));
  assert_ok(o3_weights_drop_unused(f->weights, inside, o3_weights_count(f->weights)));
  assert_null(o3_weights_data(f->weights, used, NULL));
  expect(f, later, 4);
  expect(f, model, 1);
  assert_string_not_equal(o3_weights_name(f->weights, later), o3_weights_name(f->weights, model));
  mlirModuleDestroy(inside);
}

/* Large memory lies in a file then, which shows in nothing but where it starts. */
static void spilled_data_stays(void **state) {
  enum { LARGE = 3 << 20 };
  fixture_t *f = *state;
  char *folder;
  assert_ok(o3_file_temp_dir_create(&folder));
  assert_ok(o3_weights_spill(f->weights, folder));
  uint8_t *first = o3_weights_alloc(f->weights, LARGE), *second = o3_weights_alloc(f->weights, LARGE);
  assert_true(first && second);
  assert_int_equal(first[LARGE - 1], 0);
  memset(first, 1, LARGE);
  memset(second, 2, LARGE);
  MlirType type = o3_tensor_type(1, (int64_t[]){LARGE / 4}, mlirF32TypeGet(f->context));
  MlirAttribute attr;
  assert_ok(o3_weights_add(f->weights, "large", type, second, LARGE, &attr));
  for (int i = 0; i < 20; ++i) assert_ptr_equal(o3_weights_data(f->weights, attr, NULL), second);
  o3_weights_trim(f->weights);
  assert_int_equal(first[LARGE - 1], 1);
  assert_int_equal(second[0], 2);
  expect(f, add(f, 5), 5); /* of memory that is not large */
  MlirModule empty = mlirModuleCreateEmpty(mlirLocationUnknownGet(f->context));
  assert_ok(o3_weights_drop_unused(f->weights, empty, 0));
  assert_null(o3_weights_data(f->weights, attr, NULL));
  assert_int_equal(first[0], 1);
  mlirModuleDestroy(empty);
  o3_file_temp_dir_remove(folder);
  free(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(drop_unused, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(spilled_data_stays, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
