"""All rows of the tables rows_*.py, as points, and the levels at which each is tried.

O0 is the reference lowering, O1 a kernel an op, O2 joins kernels and lays them out, and O3 chooses formats, Winograd and
schedules besides. Static shapes and symbolic ones are different code at each of them. What is tried:

    static     O3 at each size, O1 at the first and at half of the others; O0 at the first, for it builds the same loops at the others
    symbolic   O0 and O3, at all sizes of the row; O2 where O3 does something else: for products and convolutions

A row without a symbolic form is tried at O0 at each of its sizes.
"""

import collections
import importlib
import zlib

import onnx

import numeric_row

FAMILIES = ("elementwise", "product", "window", "movement", "network", "control", "vision", "legacy")
LEVELS = (0, 1, 2, 3)
DIFFERENT_AT_O3 = {"Conv", "ConvTranspose", "MatMul", "Gemm", "Attention", "MultiHeadAttention", "FusedMatMul"}


def all_points():
    for family in FAMILIES:
        start = len(numeric_row.TABLE)
        importlib.import_module(f"rows_{family}")
        for row in numeric_row.TABLE[start:]:
            row.source = family
    points = [point for row in numeric_row.TABLE for point in numeric_row.points_of(row)]
    twice = [label for label, count in collections.Counter(point.label() for point in points).items() if count > 1]
    if twice:
        raise ValueError(f"rows that say the same: {sorted(set(label.rsplit(' ', 1)[0] for label in twice))}")
    return points


def op_types(nodes):
    """The op types of the nodes, those in branches and loops too."""
    found = set()
    for node in nodes:
        found.add(node.op_type)
        for attribute in node.attribute:
            found |= op_types(attribute.g.node)
    return found


def ops_of(row):
    if "=" not in row.op:
        return {row.op}
    return op_types(onnx.parser.parse_graph(f"g () => () {{ {row.op} }}").node)


def levels_of(point):
    row = point.row
    if point.symbolic:
        return (0, 2, 3) if ops_of(row) & DIFFERENT_AT_O3 else (0, 3)
    has_symbolic = row.symbols() and row.option("symbolic", True)
    if not has_symbolic or point.sizes[0] == row.sizes[0]:
        return 0, 1, 3
    return (1, 3) if zlib.crc32(point.label().encode()) % 2 else (3,)


def ops_at(level):
    """The ops that some row has at |level|."""
    return set().union(*(ops_of(point.row) for point in all_points() if level in levels_of(point)))
