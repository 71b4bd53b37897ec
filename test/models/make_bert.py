"""BERT-base (Devlin et al. 2019): the encoder and the pooler, in the form that PyTorch's exporter gives it."""

import numpy as np

from model_builder import Builder

VOCABULARY, POSITIONS, TYPES = 30522, 512, 2
HIDDEN, HEADS, LAYERS, INNER = 768, 12, 12, 3072
HEAD = HIDDEN // HEADS


def layer_norm(net, x):
    scale, bias = net.uniform(HIDDEN, 0.8, 1.2, "ln_scale"), net.uniform(HIDDEN, -0.1, 0.1, "ln_bias")
    return net.op("LayerNormalization", [x, scale, bias], axis=-1, epsilon=1e-12)


def dense(net, x, inputs, outputs):
    weight = net.normal((inputs, outputs), (1 / inputs) ** 0.5, "weight")
    return net.op("Add", [net.uniform(outputs, -0.1, 0.1, "bias"), net.op("MatMul", [x, weight])])


def ints(net, *values):
    return net.constant(np.array(values, np.int64), "ints")


def size_of(net, x, axis):
    """The size of a dimension, as a vector of one."""
    shape = net.op("Shape", [x])
    return net.op("Unsqueeze", [net.op("Gather", [shape, net.constant(np.int64(axis), "axis")], axis=0), ints(net, 0)])


def heads(net, x):
    """[N, S, 768] as [N, 12, S, 64]."""
    shape = net.op("Concat", [size_of(net, x, 0), size_of(net, x, 1), ints(net, HEADS), ints(net, HEAD)], axis=0)
    return net.op("Transpose", [net.op("Reshape", [x, shape])], perm=[0, 2, 1, 3])


def attention(net, x, mask):
    query, key, value = (heads(net, dense(net, x, HIDDEN, HIDDEN)) for _ in range(3))
    scores = net.op("MatMul", [query, net.op("Transpose", [key], perm=[0, 1, 3, 2])])
    scores = net.op("Div", [scores, net.constant(np.float32(HEAD**0.5), "scale")])
    weights = net.op("Softmax", [net.op("Add", [scores, mask])], axis=-1)
    mixed = net.op("Transpose", [net.op("MatMul", [weights, value])], perm=[0, 2, 1, 3])
    shape = net.op("Concat", [size_of(net, mixed, 0), size_of(net, mixed, 1), ints(net, HIDDEN)], axis=0)
    return dense(net, net.op("Reshape", [mixed, shape]), HIDDEN, HIDDEN)


def gelu(net, x):
    half = net.op("Div", [x, net.constant(np.float32(2**0.5), "sqrt2")])
    tail = net.op("Add", [net.op("Erf", [half]), net.constant(np.float32(1), "one")])
    return net.op("Mul", [net.op("Mul", [x, tail]), net.constant(np.float32(0.5), "half")])


def embeddings(net, ids, types):
    words = net.op("Gather", [net.normal((VOCABULARY, HIDDEN), 0.5, "words"), ids], axis=0)
    kinds = net.op("Gather", [net.normal((TYPES, HIDDEN), 0.5, "types"), types], axis=0)
    numbers = net.constant(np.arange(POSITIONS, dtype=np.int64)[None], "positions")
    places = net.op("Slice", [numbers, ints(net, 0), size_of(net, ids, 1), ints(net, 1), ints(net, 1)])
    places = net.op("Gather", [net.normal((POSITIONS, HIDDEN), 0.5, "places"), places], axis=0)
    return layer_norm(net, net.op("Add", [net.op("Add", [words, kinds]), places]))


def additive_mask(net, mask):
    """0 where the mask is 1, the least float32 where it is 0, as [N, 1, 1, S]."""
    wide = net.op("Cast", [net.op("Unsqueeze", [mask, ints(net, 1, 2)])], to=1)
    off = net.op("Sub", [net.constant(np.float32(1), "one"), wide])
    return net.op("Mul", [off, net.constant(np.finfo(np.float32).min, "least")])


def build():
    net = Builder("bert_base", seed=12)
    ids = net.input("input_ids", "int64", ["N", "S"])
    mask = net.input("attention_mask", "int64", ["N", "S"])
    types = net.input("token_type_ids", "int64", ["N", "S"])
    x, mask = embeddings(net, ids, types), additive_mask(net, mask)
    for _ in range(LAYERS):
        x = layer_norm(net, net.op("Add", [attention(net, x, mask), x]))
        inner = gelu(net, dense(net, x, HIDDEN, INNER))
        x = layer_norm(net, net.op("Add", [dense(net, inner, INNER, HIDDEN), x]))
    first = net.op("Gather", [x, net.constant(np.int64(0), "first")], axis=1)
    pooled = net.op("Tanh", [net.linear(first, HIDDEN, HIDDEN)])
    net.output(x, "last_hidden_state", shape=["N", "S", HIDDEN])
    net.output(pooled, "pooler_output", shape=["N", HIDDEN])
    return net
