/* The dependence graph of a small function: kinds, users, producers and maps. */
#include <stdlib.h>
#include <string.h>

#include "analysis/dependence.h"
#include "ir/context.h"
#include "unit.h"

static const char TEXT[] =
    "#id = affine_map<(i, j) -> (i, j)>\n"
    "#row = affine_map<(i, j) -> (i)>\n"
    "#t = affine_map<(i, j) -> (j, i)>\n"
    "module {\nfunc.func @main(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>) -> (tensor<4x8xf32>, "
    "tensor<6x4xf32>) {\n"
    "  %zero = arith.constant 0.0 : f32\n"
    "  %e = tensor.empty() : tensor<4x8xf32>\n"
    "  %fill = linalg.generic {indexing_maps = [#id], iterator_types = [\"parallel\", \"parallel\"]}\n"
    "      outs(%e : tensor<4x8xf32>) { ^bb0(%o: f32): linalg.yield %zero : f32 } -> tensor<4x8xf32>\n"
    "  %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, "
    "j)>,\n"
    "      affine_map<(i, j, k) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}\n"
    "      ins(%x, %w : tensor<4x6xf32>, tensor<6x8xf32>) outs(%fill : tensor<4x8xf32>) {\n"
    "  ^bb0(%l: f32, %r: f32, %o: f32):\n"
    "    %m = arith.mulf %l, %r : f32\n    %s = arith.addf %o, %m : f32\n    linalg.yield %s : f32\n"
    "  } -> tensor<4x8xf32>\n"
    "  %re = tensor.empty() : tensor<4xf32>\n"
    "  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = [\"parallel\", \"reduction\"]}\n"
    "      ins(%p : tensor<4x8xf32>) outs(%re : tensor<4xf32>) {\n"
    "  ^bb0(%l: f32, %o: f32):\n    %s = arith.addf %l, %o : f32\n    linalg.yield %s : f32\n"
    "  } -> tensor<4xf32>\n"
    "  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = [\"parallel\", "
    "\"parallel\"]}\n"
    "      ins(%p, %sum : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {\n"
    "  ^bb0(%l: f32, %r: f32, %o: f32):\n    %s = arith.divf %l, %r : f32\n    linalg.yield %s : f32\n"
    "  } -> tensor<4x8xf32>\n"
    "  %te = tensor.empty() : tensor<6x4xf32>\n"
    "  %z = linalg.generic {indexing_maps = [#t, #id], iterator_types = [\"parallel\", \"parallel\"]}\n"
    "      ins(%x : tensor<4x6xf32>) outs(%te : tensor<6x4xf32>) {\n"
    "  ^bb0(%l: f32, %o: f32):\n    linalg.yield %l : f32\n  } -> tensor<6x4xf32>\n"
    "  return %y, %z : tensor<4x8xf32>, tensor<6x4xf32>\n"
    "}\n}\n";

/* Places of the ops in the text. */
enum { ZERO, EMPTY, FILL, PRODUCT, ROW_EMPTY, SUM, QUOTIENT, TURNED_EMPTY, TURNED, RETURN, COUNT };

typedef struct fixture {
  MlirContext context;
  MlirModule module;
  o3_arena_t *arena;
  o3_dep_graph_t *graph;
} fixture_t;

static int set_up(void **state) {
  fixture_t *f = calloc(1, sizeof(*f));
  assert_ok(o3_context_create(&f->context));
  assert_ok(o3_ir_parse(f->context, TEXT, strlen(TEXT), "test", &f->module));
  f->arena = o3_arena_create();
  assert_ok(o3_dep_graph_create(f->arena, o3_func_body(o3_module_func(f->module, "main")), &f->graph));
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture_t *f = *state;
  o3_arena_destroy(f->arena);
  mlirModuleDestroy(f->module);
  o3_context_destroy(f->context);
  free(f);
  return 0;
}

static void test_kinds(void **state) {
  static const o3_dep_kind_t KINDS[COUNT] = {
      O3_DEP_CONSTANT,  O3_DEP_EMPTY, O3_DEP_FILL,  O3_DEP_CONTRACTION, O3_DEP_EMPTY,
      O3_DEP_REDUCTION, O3_DEP_MAP,   O3_DEP_EMPTY, O3_DEP_MAP,         O3_DEP_OTHER};
  const fixture_t *f = *state;
  assert_int_equal(f->graph->count, COUNT);
  for (int i = 0; i < COUNT; ++i) assert_int_equal(f->graph->nodes[i].kind, KINDS[i]);
}

static void test_users(void **state) {
  const fixture_t *f = *state;
  const o3_dep_node_t *nodes = f->graph->nodes, *product = &nodes[PRODUCT];
  assert_int_equal(product->num_users, 2);
  assert_ptr_equal(product->users[0], &nodes[SUM]);
  assert_ptr_equal(product->users[1], &nodes[QUOTIENT]);
  assert_false(product->captured);
  assert_true(nodes[ZERO].captured);
  assert_int_equal(nodes[QUOTIENT].num_users, 1);
  assert_ptr_equal(nodes[QUOTIENT].users[0], &nodes[RETURN]);
}

static void test_producers(void **state) {
  const fixture_t *f = *state;
  const o3_dep_node_t *nodes = f->graph->nodes;
  assert_ptr_equal(o3_dep_producer(f->graph, mlirOperationGetOperand(nodes[QUOTIENT].op, 1)), &nodes[SUM]);
  assert_null(o3_dep_producer(f->graph, mlirOperationGetOperand(nodes[PRODUCT].op, 0)));
}

static void test_positions(void **state) {
  const fixture_t *f = *state;
  const o3_dep_generic_t *product = f->graph->nodes[PRODUCT].generic,
                         *turned = f->graph->nodes[TURNED].generic;
  assert_int_equal(o3_dep_position(product->maps[1], 2), 0);
  assert_int_equal(o3_dep_position(product->maps[1], 0), -1);
  assert_int_equal(o3_dep_loop(turned->maps[0], 0), 1);
  assert_true(o3_dep_uses(product->maps[0], 2));
  assert_false(o3_dep_uses(product->maps[0], 1));
}

static void test_compose(void **state) {
  const fixture_t *f = *state;
  const o3_dep_node_t *nodes = f->graph->nodes;
  MlirAffineMap map;
  assert_true(o3_dep_compose(nodes[FILL].generic, nodes[PRODUCT].generic, 2, &map));
  assert_int_equal(mlirAffineMapGetNumDims(map), 3);
  assert_int_equal(o3_dep_loop(map, 1), 1);
  /* The result of a sum does not tell what was summed. */
  assert_false(o3_dep_compose(nodes[SUM].generic, nodes[QUOTIENT].generic, 1, &map));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_kinds, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_users, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_producers, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_positions, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_compose, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
