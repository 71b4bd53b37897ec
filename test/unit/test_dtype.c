#include "base/dtype.h"
#include "o3/model.h"
#include "unit.h"

static void rows_are_found(void **state) {
  (void)state;
  for (int i = 0; i < O3_DTYPE_COUNT; ++i) {
    const o3_dtype_info_t *info = o3_dtype_info((o3_dtype_id_t)i);
    o3_dtype_id_t found;
    assert_true(o3_dtype_from_onnx(info->onnx, &found));
    assert_int_equal(found, i);
    assert_true(o3_dtype_from_mlir(info->mlir, &found));
    assert_int_equal(found, i);
  }
}

static void unknown_types_are_refused(void **state) {
  (void)state;
  o3_dtype_id_t found = O3_DTYPE_F32;
  assert_false(o3_dtype_from_onnx(0, &found)); /* UNDEFINED */
  assert_false(o3_dtype_from_onnx(8, &found)); /* STRING */
  assert_false(o3_dtype_from_onnx(-1, &found));
  assert_false(o3_dtype_from_mlir("i128", &found));
  assert_int_equal(found, O3_DTYPE_F32);
}

/* The users' header writes the numbers out; they must be the table's. */
static void public_numbers_agree(void **state) {
  (void)state;
  assert_int_equal(O3_FLOAT32, o3_dtype_info(O3_DTYPE_F32)->onnx);
  assert_int_equal(O3_UINT8, o3_dtype_info(O3_DTYPE_U8)->onnx);
  assert_int_equal(O3_INT8, o3_dtype_info(O3_DTYPE_I8)->onnx);
  assert_int_equal(O3_UINT16, o3_dtype_info(O3_DTYPE_U16)->onnx);
  assert_int_equal(O3_INT16, o3_dtype_info(O3_DTYPE_I16)->onnx);
  assert_int_equal(O3_INT32, o3_dtype_info(O3_DTYPE_I32)->onnx);
  assert_int_equal(O3_INT64, o3_dtype_info(O3_DTYPE_I64)->onnx);
  assert_int_equal(O3_BOOL, o3_dtype_info(O3_DTYPE_BOOL)->onnx);
  assert_int_equal(O3_FLOAT16, o3_dtype_info(O3_DTYPE_F16)->onnx);
  assert_int_equal(O3_FLOAT64, o3_dtype_info(O3_DTYPE_F64)->onnx);
  assert_int_equal(O3_UINT32, o3_dtype_info(O3_DTYPE_U32)->onnx);
  assert_int_equal(O3_UINT64, o3_dtype_info(O3_DTYPE_U64)->onnx);
  assert_int_equal(O3_BFLOAT16, o3_dtype_info(O3_DTYPE_BF16)->onnx);
  assert_int_equal(O3_FLOAT8E4M3FN, o3_dtype_info(O3_DTYPE_F8E4M3FN)->onnx);
  assert_int_equal(O3_FLOAT8E4M3FNUZ, o3_dtype_info(O3_DTYPE_F8E4M3FNUZ)->onnx);
  assert_int_equal(O3_FLOAT8E5M2, o3_dtype_info(O3_DTYPE_F8E5M2)->onnx);
  assert_int_equal(O3_FLOAT8E5M2FNUZ, o3_dtype_info(O3_DTYPE_F8E5M2FNUZ)->onnx);
}

int main(void) {
  const struct CMUnitTest dtype_tests[] = {
      cmocka_unit_test(rows_are_found),
      cmocka_unit_test(unknown_types_are_refused),
      cmocka_unit_test(public_numbers_agree),
  };
  return cmocka_run_group_tests(dtype_tests, NULL, NULL);
}
