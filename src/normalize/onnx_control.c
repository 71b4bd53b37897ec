/* If, Loop and Scan. Sequences and optionals exist only while compiling: a branch that is taken at run time
 * must give the same number of tensors either way, and a loop that carries sequences is unrolled. */
#include <string.h>

#include "normalize/nz_region.h"

enum { MAX_VALUES = O3_NZ_MAX_CARRIED, MAX_UNROLLED = 4096 };

static o3_binding_t tensor_binding(MlirValue tensor) {
  return (o3_binding_t){.kind = O3_BINDING_TENSOR, .tensor = tensor};
}

/* ---- If ---- */

typedef struct branches {
  const o3_node_t *node;
  int count;
  o3_binding_t outputs[2][MAX_VALUES]; /* else, then */
} branches_t;

static const char *branch_attr(bool taken) { return taken ? "then_branch" : "else_branch"; }

static o3_status_t flatten(o3_nz_t *nz, const o3_binding_t *binding, MlirValue *results, int *count) {
  int items = binding->kind == O3_BINDING_TENSOR ? 1 : binding->count;
  if (*count + items > MAX_VALUES)
    return o3_nz_unsupported(nz, "branches with more than %d tensors", MAX_VALUES);
  for (int i = 0; i < items; ++i)
    results[(*count)++] = binding->kind == O3_BINDING_TENSOR ? binding->tensor : binding->items[i];
  return NULL;
}

static o3_status_t convert_branch(o3_nz_t *nz, void *context, bool taken, MlirValue *results, int *count) {
  branches_t *branches = context;
  o3_binding_t *outputs = branches->outputs[taken];
  O3_TRY(
      o3_nz_subgraph(nz, branches->node, branch_attr(taken), 0, NULL, MAX_VALUES, outputs, &branches->count));
  *count = 0;
  for (int i = 0; i < branches->count; ++i) {
    const o3_binding_t *other = &branches->outputs[1][i];
    if (outputs[i].kind != other->kind || outputs[i].count != other->count)
      return o3_nz_unsupported(nz, "output %d is a sequence or optional that differs between the branches",
                               i);
    O3_TRY(flatten(nz, &outputs[i], results, count));
  }
  return NULL;
}

static o3_status_t bind_chosen(o3_nz_t *nz, o3_node_t *node, const branches_t *branches,
                               const MlirValue *results) {
  for (int i = 0; i < node->num_outputs; ++i) {
    o3_binding_t binding = branches->outputs[1][i];
    const o3_binding_t *other = &branches->outputs[0][i];
    if (binding.kind != other->kind || binding.count != other->count)
      return o3_nz_unsupported(nz, "output %d is a sequence or optional that differs between the branches",
                               i);
    if (binding.kind == O3_BINDING_TENSOR) {
      binding.tensor = *results++;
    } else if (binding.kind == O3_BINDING_SEQUENCE) {
      MlirValue *items = O3_ARENA_ARRAY(nz->arena, MlirValue, (size_t)binding.count + 1);
      O3_TRY_ALLOC(items);
      for (int k = 0; k < binding.count; ++k) items[k] = *results++;
      binding.items = items;
    }
    o3_node_bind(nz, node, i, &binding);
  }
  return NULL;
}

static o3_status_t check_outputs(o3_nz_t *nz, const o3_node_t *node, const char *attr, int count) {
  if (count == node->num_outputs) return NULL;
  return o3_nz_invalid(nz, "it has %d outputs, its %s gives %d", node->num_outputs, attr, count);
}

o3_status_t o3_onnx_if(o3_nz_t *nz, o3_node_t *node) {
  MlirValue condition = o3_node_input(node, 0), results[MAX_VALUES];
  branches_t *branches = O3_ARENA_NEW(nz->arena, branches_t);
  bool known;
  int count, inputs;
  O3_TRY_ALLOC(branches);
  branches->node = node;
  if (o3_nz_is_known_bool(nz, condition, &known)) {
    o3_binding_t *outputs = branches->outputs[0];
    O3_TRY(o3_nz_subgraph(nz, node, branch_attr(known), 0, NULL, MAX_VALUES, outputs, &count));
    O3_TRY(check_outputs(nz, node, branch_attr(known), count));
    for (int i = 0; i < count; ++i) o3_node_bind(nz, node, i, &outputs[i]);
    return NULL;
  }
  for (int i = 0; i < 2; ++i) {
    O3_TRY(o3_nz_subgraph_arity(nz, node, branch_attr(i), &inputs, &count));
    O3_TRY(check_outputs(nz, node, branch_attr(i), count));
  }
  O3_TRY(o3_nz_branch(nz, condition, convert_branch, branches, results, &count));
  return bind_chosen(nz, node, branches, results);
}

/* ---- Loop ---- */

typedef struct onnx_loop {
  const o3_node_t *node;
  int num_carried, num_scans;
  MlirAffineExpr trip; /* null: no bound */
  o3_binding_t inputs[MAX_VALUES + 2], outputs[MAX_VALUES + 2];
} onnx_loop_t;

static MlirValue iteration_number(o3_nz_t *nz, MlirAffineExpr number) {
  return o3_nz_sizes(nz, 1, &number, true);
}

static o3_status_t iterate(o3_nz_t *nz, void *context, o3_nz_iteration_t *iteration) {
  onnx_loop_t *loop = context;
  int count, total = 1 + loop->num_carried + loop->num_scans;
  loop->inputs[0] = tensor_binding(iteration_number(nz, iteration->number));
  loop->inputs[1] = tensor_binding(iteration->condition);
  for (int i = 0; i < loop->num_carried; ++i) loop->inputs[i + 2] = tensor_binding(iteration->carried[i]);
  O3_TRY(o3_nz_subgraph(nz, loop->node, "body", loop->num_carried + 2, loop->inputs, MAX_VALUES + 2,
                        loop->outputs, &count));
  for (int i = 0; i < total; ++i) {
    if (loop->outputs[i].kind == O3_BINDING_TENSOR) continue;
    return o3_nz_unsupported(nz, "output %d of the body is no tensor", i);
  }
  iteration->next_condition = loop->outputs[0].tensor;
  for (int i = 0; i < loop->num_carried; ++i) iteration->next[i] = loop->outputs[i + 1].tensor;
  for (int i = 0; i < loop->num_scans; ++i)
    iteration->scans[i] = loop->outputs[i + 1 + loop->num_carried].tensor;
  return NULL;
}

/* A trip count that only the run knows is a data symbol; negative ones mean no iteration. */
static o3_status_t read_trip(o3_nz_t *nz, MlirValue trip, MlirAffineExpr *expr) {
  int64_t constant;
  expr->ptr = NULL;
  if (mlirValueIsNull(trip)) return NULL;
  if (o3_nz_exprs(nz, trip, expr, 1) != 1) {
    MlirValue positive = o3_nz_binary(nz, "o3.max", trip, o3_nz_like(nz, trip, 0));
    (void)o3_nz_bind_sizes(nz, positive, "the trip count", expr, 1);
  } else if (o3_expr_is_const(*expr, &constant) && constant < 0) {
    *expr = o3_expr_const(nz->context, 0);
  } else {
    *expr = o3_symbols_max(nz->symbols, *expr, o3_expr_const(nz->context, 0));
  }
  return NULL;
}

static o3_status_t loop_on_tensors(o3_nz_t *nz, o3_node_t *node, onnx_loop_t *loop) {
  MlirValue inits[MAX_VALUES], results[2 * MAX_VALUES];
  o3_nz_scan_t scans[MAX_VALUES] = {{0}};
  for (int i = 0; i < loop->num_carried; ++i) inits[i] = loop->inputs[i + 2].tensor;
  o3_nz_loop_t spec = {.trip = loop->trip,
                       .condition = o3_node_input(node, 1),
                       .num_carried = loop->num_carried,
                       .inits = inits,
                       .num_scans = loop->num_scans,
                       .scans = scans,
                       .body = iterate,
                       .context = loop};
  O3_TRY(o3_nz_loop(nz, &spec, results));
  for (int i = 0; i < node->num_outputs; ++i) node->outputs[i] = results[i];
  return NULL;
}

/* ---- Loops over sequences, unrolled ---- */

/* The slices of one scan output, iteration by iteration. */
typedef struct slices {
  MlirValue items[MAX_UNROLLED];
} slices_t;

static o3_status_t unroll_once(o3_nz_t *nz, onnx_loop_t *loop, int64_t number, slices_t *slices,
                               bool *goes_on) {
  int count;
  loop->inputs[0] = tensor_binding(o3_nz_scalar(nz, o3_nz_i64(nz), (double)number));
  loop->inputs[1] = tensor_binding(o3_nz_scalar(nz, o3_nz_i1(nz), 1));
  O3_TRY(o3_nz_subgraph(nz, loop->node, "body", loop->num_carried + 2, loop->inputs, MAX_VALUES + 2,
                        loop->outputs, &count));
  for (int i = 0; i < loop->num_carried; ++i) loop->inputs[i + 2] = loop->outputs[i + 1];
  for (int i = 0; i < loop->num_scans; ++i) {
    const o3_binding_t *scan = &loop->outputs[i + 1 + loop->num_carried];
    if (scan->kind != O3_BINDING_TENSOR) return o3_nz_invalid(nz, "scan output %d is no tensor", i);
    slices[i].items[number] = o3_nz_unsqueeze(nz, scan->tensor, 1, (int64_t[]){0});
  }
  if (o3_nz_is_known_bool(nz, loop->outputs[0].tensor, goes_on)) return NULL;
  return o3_nz_unsupported(nz, "a loop over sequences that ends by a condition which only the run knows");
}

static o3_status_t unroll(o3_nz_t *nz, o3_node_t *node, onnx_loop_t *loop) {
  int64_t trip = MAX_UNROLLED, number = 0;
  bool goes_on = true;
  MlirValue condition = o3_node_input(node, 1);
  if (loop->trip.ptr && !o3_expr_is_const(loop->trip, &trip))
    return o3_nz_unsupported(nz, "a loop over sequences whose trip count only the run knows");
  if (!mlirValueIsNull(condition) && !o3_nz_is_known_bool(nz, condition, &goes_on))
    return o3_nz_unsupported(nz, "a loop over sequences that only the run knows to start");
  slices_t *slices = O3_ARENA_ARRAY(nz->arena, slices_t, (size_t)loop->num_scans + 1);
  O3_TRY_ALLOC(slices);
  for (; number < trip && goes_on; ++number) {
    if (number == MAX_UNROLLED)
      return o3_nz_unsupported(nz, "a loop over sequences of more than %d iterations", MAX_UNROLLED);
    O3_TRY(unroll_once(nz, loop, number, slices, &goes_on));
  }
  for (int i = 0; i < loop->num_carried; ++i) o3_node_bind(nz, node, i, &loop->inputs[i + 2]);
  for (int i = 0; i < loop->num_scans; ++i) {
    if (!number)
      return o3_nz_unsupported(nz, "scan output %d of a loop over sequences without iterations", i);
    node->outputs[loop->num_carried + i] = o3_nz_concat(nz, 0, (int)number, slices[i].items);
  }
  return NULL;
}

static o3_status_t read_carried(o3_nz_t *nz, const o3_node_t *node, onnx_loop_t *loop, bool *all_tensors) {
  *all_tensors = true;
  for (int i = 0; i < loop->num_carried; ++i) {
    const o3_binding_t *binding = o3_node_binding(nz, node, i + 2);
    if (!binding) return o3_nz_invalid(nz, "carried value %d has no initial value", i);
    loop->inputs[i + 2] = *binding;
    *all_tensors = *all_tensors && binding->kind == O3_BINDING_TENSOR;
  }
  return NULL;
}

o3_status_t o3_onnx_loop(o3_nz_t *nz, o3_node_t *node) {
  onnx_loop_t *loop = O3_ARENA_NEW(nz->arena, onnx_loop_t);
  int num_inputs, num_outputs;
  bool all_tensors;
  O3_TRY_ALLOC(loop);
  O3_TRY(o3_nz_subgraph_arity(nz, node, "body", &num_inputs, &num_outputs));
  loop->node = node;
  loop->num_carried = num_inputs - 2;
  loop->num_scans = num_outputs - 1 - loop->num_carried;
  if (loop->num_carried < 0 || loop->num_scans < 0)
    return o3_nz_invalid(nz, "a body of %d inputs and %d outputs", num_inputs, num_outputs);
  if (loop->num_carried > MAX_VALUES || loop->num_scans > MAX_VALUES)
    return o3_nz_unsupported(nz, "a body with more than %d values", MAX_VALUES);
  O3_TRY(check_outputs(nz, node, "body", num_outputs - 1));
  O3_TRY(read_carried(nz, node, loop, &all_tensors));
  O3_TRY(read_trip(nz, o3_node_input(node, 0), &loop->trip));
  return all_tensors ? loop_on_tensors(nz, node, loop) : unroll(nz, node, loop);
}

/* ---- Scan ---- */

typedef struct onnx_scan {
  const o3_node_t *node;
  int num_states, num_inputs, num_outputs;
  MlirValue inputs[MAX_VALUES];
  int input_axes[MAX_VALUES];
  bool input_reversed[MAX_VALUES];
  o3_nz_scan_t outputs[MAX_VALUES];
  MlirAffineExpr length;
} onnx_scan_t;

/* Slice |number| of scan input |index|, without its axis. */
static MlirValue scanned(o3_nz_t *nz, const onnx_scan_t *scan, int index, MlirAffineExpr number) {
  MlirAffineExpr one = o3_expr_const(nz->context, 1);
  int64_t axes[1] = {scan->input_axes[index]};
  MlirAffineExpr start =
      scan->input_reversed[index] ? o3_expr_sub(o3_expr_sub(scan->length, one), number) : number;
  MlirValue slice = o3_nz_slice(nz, scan->inputs[index], scan->input_axes[index], start, one);
  return o3_nz_squeeze(nz, slice, 1, axes);
}

static o3_status_t scan_step(o3_nz_t *nz, void *context, o3_nz_iteration_t *iteration) {
  const onnx_scan_t *scan = context;
  o3_binding_t inputs[2 * MAX_VALUES], outputs[2 * MAX_VALUES];
  int count, states = scan->num_states;
  for (int i = 0; i < states; ++i) inputs[i] = tensor_binding(iteration->carried[i]);
  for (int i = 0; i < scan->num_inputs; ++i)
    inputs[states + i] = tensor_binding(scanned(nz, scan, i, iteration->number));
  O3_TRY(o3_nz_subgraph(nz, scan->node, "body", states + scan->num_inputs, inputs, 2 * MAX_VALUES, outputs,
                        &count));
  for (int i = 0; i < count; ++i) {
    if (outputs[i].kind != O3_BINDING_TENSOR)
      return o3_nz_invalid(nz, "output %d of the body is no tensor", i);
    *(i < states ? &iteration->next[i] : &iteration->scans[i - states]) = outputs[i].tensor;
  }
  return NULL;
}

static o3_status_t run_scan(o3_nz_t *nz, onnx_scan_t *scan, const MlirValue *states, MlirValue *results) {
  for (int i = 0; i < scan->num_inputs; ++i) {
    MlirAffineExpr length = o3_nz_dim(nz, scan->inputs[i], scan->input_axes[i]);
    if (i == 0) {
      scan->length = length;
    } else if (!o3_symbols_require_equal(nz->symbols, scan->length, length, nz->who)) {
      return o3_nz_invalid(nz, "scan inputs 0 and %d have different lengths", i);
    }
  }
  o3_nz_loop_t spec = {.trip = scan->length,
                       .num_carried = scan->num_states,
                       .inits = states,
                       .num_scans = scan->num_outputs,
                       .scans = scan->outputs,
                       .body = scan_step,
                       .context = scan};
  return o3_nz_loop(nz, &spec, results);
}

static o3_status_t read_flags(o3_nz_t *nz, const o3_node_t *node, const char *name, int count, bool *flags) {
  int64_t values[MAX_VALUES] = {0};
  int given = o3_node_ints(nz, node, name, values, MAX_VALUES);
  if (given && given != count) return o3_nz_invalid(nz, "%s has %d entries, %d expected", name, given, count);
  for (int i = 0; i < count; ++i) flags[i] = values[i] != 0;
  return NULL;
}

/* Opset 8 has directions for the inputs only, and a batch axis before all others. */
static o3_status_t read_directions(o3_nz_t *nz, const o3_node_t *node, onnx_scan_t *scan) {
  bool reversed[MAX_VALUES];
  bool old = node->opset < 9;
  O3_TRY(read_flags(nz, node, old ? "directions" : "scan_input_directions", scan->num_inputs,
                    scan->input_reversed));
  O3_TRY(read_flags(nz, node, "scan_output_directions", scan->num_outputs, reversed));
  for (int i = 0; i < scan->num_outputs; ++i) scan->outputs[i].reverse = reversed[i];
  return NULL;
}

static o3_status_t read_input_axes(o3_nz_t *nz, const o3_node_t *node, onnx_scan_t *scan) {
  int64_t axes[MAX_VALUES] = {0};
  (void)o3_node_ints(nz, node, "scan_input_axes", axes, MAX_VALUES);
  for (int i = 0; i < scan->num_inputs; ++i)
    scan->input_axes[i] = o3_nz_axis(nz, axes[i], o3_nz_rank(nz, scan->inputs[i]));
  return NULL;
}

/* A negative output axis counts from the end of the result, whose rank the body tells. */
static o3_status_t read_output_axes(o3_nz_t *nz, const o3_node_t *node, onnx_scan_t *scan) {
  int64_t axes[MAX_VALUES] = {0};
  (void)o3_node_ints(nz, node, "scan_output_axes", axes, MAX_VALUES);
  for (int i = 0; i < scan->num_outputs; ++i) {
    if (axes[i] > O3_IR_MAX_RANK || axes[i] < -O3_IR_MAX_RANK)
      return o3_nz_invalid(nz, "scan output axis %lld is out of range", (long long)axes[i]);
    scan->outputs[i].axis = (int)axes[i];
  }
  return NULL;
}

/* ---- Scan of opset 8: one scan for each member of the batch ---- */

typedef struct batch {
  onnx_scan_t *scan;
  MlirValue states[MAX_VALUES], inputs[MAX_VALUES]; /* of the whole batch */
} batch_t;

static MlirValue member(o3_nz_t *nz, MlirValue whole, MlirAffineExpr number) {
  MlirValue slice = o3_nz_slice(nz, whole, 0, number, o3_expr_const(nz->context, 1));
  return o3_nz_squeeze(nz, slice, 1, (int64_t[]){0});
}

static o3_status_t scan_member(o3_nz_t *nz, void *context, o3_nz_iteration_t *iteration) {
  const batch_t *batch = context;
  MlirValue states[MAX_VALUES];
  for (int i = 0; i < batch->scan->num_states; ++i)
    states[i] = member(nz, batch->states[i], iteration->number);
  for (int i = 0; i < batch->scan->num_inputs; ++i)
    batch->scan->inputs[i] = member(nz, batch->inputs[i], iteration->number);
  return run_scan(nz, batch->scan, states, iteration->scans);
}

static o3_status_t scan_batch(o3_nz_t *nz, o3_node_t *node, onnx_scan_t *scan) {
  batch_t *batch = O3_ARENA_NEW(nz->arena, batch_t);
  o3_nz_scan_t gathered[2 * MAX_VALUES] = {{0}};
  O3_TRY_ALLOC(batch);
  if (o3_node_has_input(node, 0))
    return o3_nz_unsupported(nz, "sequence lengths of a scan are not supported");
  batch->scan = scan;
  for (int i = 0; i < scan->num_states; ++i) batch->states[i] = o3_node_input(node, 1 + i);
  for (int i = 0; i < scan->num_inputs; ++i) batch->inputs[i] = o3_node_input(node, 1 + scan->num_states + i);
  MlirAffineExpr size = o3_nz_dim(nz, o3_node_input(node, 1), 0);
  for (int i = 2; i < 1 + scan->num_states + scan->num_inputs; ++i) {
    if (!o3_symbols_require_equal(nz->symbols, size, o3_nz_dim(nz, o3_node_input(node, i), 0), nz->who))
      return o3_nz_invalid(nz, "inputs 1 and %d have different batch sizes", i);
  }
  o3_nz_loop_t spec = {.trip = size,
                       .num_scans = scan->num_states + scan->num_outputs,
                       .scans = gathered,
                       .body = scan_member,
                       .context = batch};
  return o3_nz_loop(nz, &spec, node->outputs);
}

o3_status_t o3_onnx_scan(o3_nz_t *nz, o3_node_t *node) {
  onnx_scan_t *scan = O3_ARENA_NEW(nz->arena, onnx_scan_t);
  int body_inputs, body_outputs, first = node->opset < 9 ? 1 : 0;
  O3_TRY_ALLOC(scan);
  O3_TRY(o3_nz_subgraph_arity(nz, node, "body", &body_inputs, &body_outputs));
  scan->node = node;
  scan->num_inputs = (int)o3_node_int(node, "num_scan_inputs", 0);
  scan->num_states = body_inputs - scan->num_inputs;
  scan->num_outputs = body_outputs - scan->num_states;
  if (scan->num_inputs < 1 || scan->num_inputs > MAX_VALUES || scan->num_states < 0 ||
      scan->num_outputs < 0 || scan->num_states > MAX_VALUES || scan->num_outputs > MAX_VALUES ||
      node->num_inputs != body_inputs + first)
    return o3_nz_invalid(nz, "%d scan inputs for a node of %d inputs and a body of %d", scan->num_inputs,
                         node->num_inputs - first, body_inputs);
  O3_TRY(check_outputs(nz, node, "body", body_outputs));
  O3_TRY(read_directions(nz, node, scan));
  O3_TRY(read_output_axes(nz, node, scan));
  if (first) return scan_batch(nz, node, scan);
  for (int i = 0; i < scan->num_inputs; ++i) scan->inputs[i] = node->inputs[scan->num_states + i];
  O3_TRY(read_input_axes(nz, node, scan));
  return run_scan(nz, scan, node->inputs, node->outputs);
}
