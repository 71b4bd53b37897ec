#!/usr/bin/env python3
"""Writes tensor files for tests, with the standard library alone, by the formats' own rules.

    make_tensor.py FILE.npy DTYPE SHAPE VALUE...            make_tensor.py x.npy float32 2,3 1 2 3 4 5 6
    make_tensor.py FILE.npz NAME DTYPE SHAPE VALUE... [-- NAME DTYPE SHAPE VALUE...]...
    make_tensor.py FILE.pb  NAME DTYPE SHAPE VALUE...       raw_data; with NAME typed:NAME the typed field

SHAPE is "" for a scalar; one VALUE stands for all elements."""
import math
import struct
import sys
import zipfile

# name: (ONNX number, NumPy descr, struct letter, ONNX typed field and its struct letter or varint)
TYPES = {
    "float32": (1, "<f4", "f", 4), "uint8": (2, "|u1", "B", 5), "int8": (3, "|i1", "b", 5),
    "uint16": (4, "<u2", "H", 5), "int16": (5, "<i2", "h", 5), "int32": (6, "<i4", "i", 5),
    "int64": (7, "<i8", "q", 7), "bool": (9, "|b1", "B", 5), "float16": (10, "<f2", "e", 5),
    "float64": (11, "<f8", "d", 10), "uint32": (12, "<u4", "I", 11), "uint64": (13, "<u8", "Q", 11),
}


def parse(dtype, shape, *values):
    dims = [int(d) for d in shape.split(",") if d]
    number = float if dtype.startswith("float") else int
    values = [number(v) for v in values] or [number(0)]
    count = math.prod(dims)
    return TYPES[dtype], dims, values * count if len(values) == 1 else values


def npy(args):
    (_, descr, letter, _), dims, values = parse(*args)
    shape = "(" + "".join(f"{d}, " for d in dims) + ")"
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{letter}", *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def pb(name, *args):
    (onnx, _, letter, typed), dims, values = parse(*args)
    out = b"".join(varint(1 << 3) + varint(d) for d in dims) + varint(2 << 3) + varint(onnx)
    if name.startswith("typed:"):
        if typed in (4, 10):
            payload = struct.pack(f"<{len(values)}{letter}", *values)
        elif letter == "e":
            payload = b"".join(varint(struct.unpack("<H", struct.pack("<e", v))[0]) for v in values)
        else:
            payload = b"".join(varint(v) for v in values)
        return out + field(8, name[6:].encode()) + field(typed, payload)
    return out + field(8, name.encode()) + field(9, struct.pack(f"<{len(values)}{letter}", *values))


def main():
    path, *args = sys.argv[1:]
    if path.endswith(".npz"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            while args:
                end = args.index("--") if "--" in args else len(args)
                archive.writestr(args[0] + ".npy", npy(args[1:end]))
                args = args[end + 1:]
        return
    with open(path, "wb") as file:
        file.write(pb(*args) if path.endswith(".pb") else npy(args))


main()
