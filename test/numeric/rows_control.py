"""Branches, loops, recurrent layers with all that they may have, attention, and linear models."""

import numpy as np

from numeric_row import F32, FLOATS, HALVES, NONE, C, R, T, W

PAIR = [(3, 5), (1, 1), (7, 64)]
BOOL = T("", "normal", "bool")


# ---- Branches and loops; what they capture comes from outside ----
def branch(yes, no):
    return f"y0 = If <then_branch = yes () => (t) {{ {yes} }}, else_branch = no () => (e) {{ {no} }}> (x0)"


def loop(step, scans="", inputs="x0, , x1", outputs="y0"):
    """Carries v to vo; |scans|: names of what each iteration adds to further outputs."""
    return (f"{outputs} = Loop <body = step (i, c, v) => (co, vo{scans}) {{ co = Identity(c) {step} }}> ({inputs})")


def scan(step, attributes):
    return (f"y0, y1 = Scan <num_scan_inputs = 1{attributes}, body = step (v, a) => (vo, s) {{ {step} }}> (x0, x1)")


def repeated(step, count):
    """What a loop leaves: step(v, w, i) applied count times; scans, if step gives them, in a stack."""
    def run(_, v, w):
        scans = []
        for i in range(count):
            v, *scan = step(v, w, i)
            scans += scan
        return [v, np.stack(scans)] if scans else v

    return run


R(branch("t = Add(x1, x2)", "e = Mul(x1, x2)"), [BOOL, "A,B", "A,B"], PAIR, F32 + HALVES,
  lambda c, x, y: x + y if c else x * y)
R(branch("t = Concat<axis=0>(x1, x1)", "e = Neg(x1)"), [BOOL, "A,B"], PAIR, F32,
  lambda c, x: np.concatenate([x, x]) if c else -x)
R(loop("vo = Add(v, x2)"), [C(4), "A,B", "A,B"], PAIR, ["f32", "f16", "i32", "i64"],
  repeated(lambda v, w, i: [v + w], 4), _tol=16)
R(loop("vo = Mul(v, x2) s = Sub(vo, x2)", ", s", outputs="y0, y1"), [C(3), T("A,B", "unit"), T("A,B", "unit")], PAIR,
  F32, repeated(lambda v, w, i: [v * w, v * w - w], 3), _outputs=2, _tol=16)
R(loop("vo = Concat<axis=0>(v, x2)"), [C(3), "A,B", "A,B"], PAIR, F32,
  repeated(lambda v, w, i: [np.concatenate([v, w])], 3))
R(loop("r = Gather<axis=0>(x2, i) vo = Add(v, r)"), [C(3), "B", "3,B"], [(5,), (64,), (1,)], F32,
  repeated(lambda v, w, i: [v + w[i]], 3), _tol=8)
R(scan("vo = Add(v, a) s = Mul(v, a)", ""), ["B", "A,B"], PAIR, F32, _outputs=2, _tol=64)
R(scan("vo = Add(v, a) s = Mul(v, a)", ""), ["5", W("3,5")], [()], F32, _outputs=2, _tol=64)  # rows of a constant
R(scan("vo = Add(v, a) s = Mul(v, a)", ", scan_input_directions=[1], scan_output_axes=[1]"), ["B", "A,B"], PAIR, F32,
  _outputs=2, _tol=64)

# ---- Recurrent layers: time, batch ----
STEPS = [(4, 3), (1, 1)]
LENGTHS = C([4, 2, 3], "i32")
for op, gates, functions in [("LSTM", 4, ["HardSigmoid", "Softsign", "Relu"]), ("GRU", 3, ["HardSigmoid", "Elu"]),
                             ("RNN", 1, ["LeakyRelu"])]:
    outputs = 3 if op == "LSTM" else 2
    states = ["1,B,6"] * (outputs - 1)
    weights = [W(f"1,{gates * 6},5"), W(f"1,{gates * 6},6"), W(f"1,{gates * 12}")]
    more = dict(hidden_size=6, _outputs=outputs, _tol=64)
    R(op, ["S,B,5", *weights, NONE, *states], STEPS, F32, **more)
    R(op, ["S,B,5", *weights], STEPS, F32, activations=functions, activation_alpha=[0.3], activation_beta=[0.4], **more)
    R(op, ["S,B,5", *weights], STEPS, F32, clip=0.5, **more)
    R(op, ["4,3,5", *weights, LENGTHS, *["1,3,6"] * (outputs - 1)], [()], F32, direction="reverse", **more)
R("LSTM", ["S,B,5", W("1,24,5"), W("1,24,6"), W("1,48"), NONE, "1,B,6", "1,B,6", W("1,18")], STEPS, F32, hidden_size=6,
  _outputs=3, _tol=64)
R("LSTM", ["S,B,5", W("1,24,5"), W("1,24,6"), W("1,48")], STEPS, F32, hidden_size=6, input_forget=1, _outputs=3, _tol=64)

# A value at the middle of two steps may be rounded either way: the next state is then off by a step of 1/255.
def quantized(inputs, **attrs):
    text = ", ".join(f'{key}="{value}"' if isinstance(value, str) else f"{key}={value}" for key, value in attrs.items())
    casts = " ".join(f"y{i} = Cast<to=1>(v{i})" for i in range(3))  # whose type ONNX's shape inference knows
    return f"v0, v1, v2 = com.microsoft.DynamicQuantizeLSTM<{text}>({inputs}) {casts}"


for direction, count in [("forward", 1), ("reverse", 1), ("bidirectional", 2)]:
    R(quantized("x0, x1, x2, x3, , , , , x4, x5, x4, x5", hidden_size=6, direction=direction),
      ["S,B,5", W(f"{count},5,24", "extremes", "i8"), W(f"{count},6,24", "extremes", "i8"), W(f"{count},48"),
       C([0.002, 0.004][:count], "f32"), C([0] * count, "i8")], STEPS, F32, _outputs=3, _tol=2000)
R(quantized("x0, x1, x2, x3, , x4, x4, x5, x6, x7, x6, x7", hidden_size=6),
  ["S,B,5", W("1,5,24", "extremes", "u8"), W("1,6,24", "extremes", "u8"), W("1,48"), "1,B,6", W("1,18"),
   C([[0.001, 0.003, 0.002] * 8], "f32"), C([[130] * 24], "u8")], STEPS, F32, _outputs=3, _tol=2000)
# No sequence reaches the last steps, whose larger numbers say nothing of the others' range.
for direction in ["forward", "reverse"]:
    R("last = Mul(x0, x7) steps = Concat<axis=0>(x0, last) " +
      quantized("steps, x1, x2, x3, x4, , , , x5, x6, x5, x6", hidden_size=6, direction=direction),
      ["4,3,5", W("1,5,24", "extremes", "i8"), W("1,6,24", "extremes", "i8"), W("1,48"), LENGTHS, C([0.002], "f32"),
       C([0], "i8"), C([50], "f32")], [()], F32, _outputs=3, _tol=2000)
# Enough rows and columns for the kernels of whole panels, an open number of rows, and a loop.
R("LSTM", ["S,B,40", W("1,160,40"), W("1,160,40"), W("1,320")], [(3, 7), (2, 1), (4, 17)], F32, hidden_size=40, _outputs=3,
  _tol=64, _terms=lambda S, B: 40)


# ---- Attention: batch, queries, keys ----
def attention(q, k, v, mask=None, causal=False):
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat(groups, 1), v.repeat(groups, 1)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    y = np.exp(scores - scores.max(-1, keepdims=True))
    return y / y.sum(-1, keepdims=True) @ v


QUERIES = [(2, 7, 9), (1, 1, 1), (1, 33, 33), (1, 130, 257)]
R("Attention", ["B,4,S,8", "B,4,T,8", "B,4,T,6"], QUERIES, FLOATS, attention, _opset=23, _tol=64)
R("Attention", ["B,6,S,8", "B,2,T,8", "B,2,T,8", "S,T"], QUERIES, F32, attention, _opset=23, _tol=64)
R("Attention", ["B,6,S,8", "B,2,T,8", "B,2,T,8", "B,6,S,T"], QUERIES, F32, attention, _opset=23, _tol=64)
R("Attention", ["B,4,S,8", "B,4,T,8", "B,4,T,8"], QUERIES, F32, lambda *x: attention(*x, causal=True), _opset=23,
  is_causal=1, _tol=64)
