"""Kernels of the families at awkward sizes and with schedules of all kinds, drawn for a card: cases of test/gpu/kernel_cases.py.

    draw_case(random.Random(seed), "hopper")
"""
import kernel_cases
from kernel_cases import Conv, attention, conv, depthwise, embedding, gemm, heads, layernorm, softmax

AROUND = (1, 2, 7, 8, 9, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 191, 192, 193, 200, 255, 257)
EIGHTS = (8, 16, 24, 40, 56, 64, 72, 88, 120, 128, 136, 184, 192, 200, 248, 256, 264, 328)
MOST_PRODUCTS = 6e6
SHARED_BYTES = 232448  # of a block


def tile_rows(consumers, products, alternate):
    return 64 * products * (1 if alternate else consumers)


def shared_bytes(schedule):
    consumers, products, columns, stages, split, _, by_tensor, alternate = schedule[:8]
    rows = tile_rows(consumers, products, alternate)
    ring, partial = stages * (rows + columns) * 128, rows * columns * 4 if split > 1 else 0
    return max(ring, partial) + 16384 * consumers * by_tensor + 16 * stages


def product_schedule(draw, kind, out, by_rows, steps):
    """One that the family can build (o3_gemm_refuse_schedule), or None, which lets it choose."""
    if draw.random() < 0.4:
        return None
    while True:
        consumers, products, alternate = draw.choice([(1, 1, 0), (2, 1, 0), (1, 2, 0), (2, 2, 0), (2, 1, 1), (2, 2, 1)])
        by_tensor = int(draw.random() < 0.5)
        panel = 64 if by_rows or by_tensor else 16
        columns, split = panel * draw.randint(1, 256 // panel), draw.choice([1, 1, 2, 4, 8])
        schedule = (consumers, products, columns, draw.randint(1, 6), split, draw.choice([1, 2, 8]), by_tensor, alternate)
        if by_tensor and out == "f32" or products * columns > 384 or shared_bytes(schedule) > SHARED_BYTES:
            continue
        if split > 1 and (alternate or products > 1 or by_tensor or columns // split % 8 or split > steps):
            continue
        promote = draw.randint(0, 2) if kind in kernel_cases.FLOAT8 else 0
        if schedule[3] == 1 and not promote and -(-steps // split) > 1:
            continue
        if promote and (products > 1 or alternate or split > 1 or columns % (16 * promote) or columns + columns // promote > 384):
            continue
        alone = split == 1 and products == 1 and not alternate and not promote
        if alone and by_tensor and steps > columns // 64 and draw.random() < 0.4:
            return schedule + (0, 0, 1)
        if alone and draw.random() < 0.3:
            return schedule + (0, draw.randint(1, steps))
        return schedule + (promote,) if promote else schedule


def draw_gemm(draw, card):
    on_warpgroups = card == "hopper" and draw.random() < 0.8
    brain = ["bf16"] if card in ("hopper", "ampere") else []
    small = ["e4m3", "e5m2", "tf32"] if on_warpgroups else ["f32"]
    kind = draw.choice(["f16", "f16", *brain, *small])
    tf32, of_bytes = kind == "tf32", kind in kernel_cases.FLOAT8
    by_rows = not tf32 and not of_bytes and draw.random() < 0.5
    batch = draw.choice([0, 0, 2, 3])
    while True:
        m, n, k = draw.choice(AROUND), draw.choice(EIGHTS if on_warpgroups else AROUND), draw.choice(EIGHTS if on_warpgroups else AROUND)
        k *= draw.choice([1, 1, 1, 5])
        if m * n * k * max(batch, 1) <= MOST_PRODUCTS and not (of_bytes and k % 16):
            break
    out = draw.choice(["f16", "f32"]) if of_bytes else draw.choice([None, None, "f32"])
    exact = (out or kind) == "f32"  # no family has an erf for it
    epilogue = draw.choice([name for name in kernel_cases.EPILOGUES if not exact or name != "biasgelu"])
    each = 32 if tf32 else 128 if of_bytes else 64
    kind = "f32" if tf32 else kind
    schedule = product_schedule(draw, kind, out or kind, by_rows, -(-k // each)) if on_warpgroups and m > 8 else None
    return gemm(m, n, k, epilogue, kind, by_rows, batch, out, schedule, tf32)


def draw_conv(draw, card):
    eights = card == "hopper" and draw.random() < 0.8
    kind = draw.choice(["f16", "f16", *(["bf16"] if card in ("hopper", "ampere") else []), *(["tf32"] if eights else ["f32"])])
    while True:
        taps = tuple(draw.choice([1, 1, 2, 3, 3, 5]) for _ in "yx")
        c = Conv((draw.choice([1, 2, 3]), draw.randint(1, 21), draw.randint(1, 21)), draw.choice(EIGHTS[:10] if eights else AROUND[1:12]),
                 draw.choice(EIGHTS[:12] if eights else AROUND[1:12]), taps, tuple(draw.choice([1, 1, 2, 3]) for _ in "yx"),
                 tuple(draw.randint(0, taps[i % 2] - 1) for i in range(4)), tuple(draw.choice([1, 1, 2]) for _ in "yx"), kind,
                 residual=draw.random() < 0.3, activation=draw.choice(["relu", "relu", "swish"]))
        places = c.positions()
        if min(places) < 1 or max(c.pads) and min(c.size[1:]) < 2:
            continue
        if c.size[0] * places[0] * places[1] * c.channels * c.outputs * taps[0] * taps[1] <= MOST_PRODUCTS:
            return conv(c)


def draw_depthwise(draw, card):
    kind = draw.choice(["f16", "f32", *(["bf16"] if card in ("hopper", "ampere") else [])])
    taps = draw.choice([3, 5])
    more = {"kind": kind, "residual": draw.random() < 0.3, "activation": draw.choice(["relu", "swish"])}
    return conv(depthwise((draw.randint(1, 3), draw.randint(taps, 23), draw.randint(taps, 23)), draw.choice(EIGHTS[:10]), taps,
                          draw.choice([1, 1, 2]), draw.randint(0, taps // 2), more))


def draw_attention(draw, card):
    kind = draw.choice(["f16", *(["bf16"] if card in ("hopper", "ampere") else [])])
    heads_of_kv, group = draw.randint(1, 2), draw.choice([1, 1, 2, 3])
    rows, columns = draw.choice(AROUND + (300,)), draw.choice(AROUND + (300, 333))
    causal, masked = draw.choice([(False, False), (True, False), (False, True)])
    width = draw.choice([8, 16, 32, 40, 64, 64, 72, 80, 96, 128, 128, 136, 192, 256])
    values = draw.choice([None, None, 16, 64, 72, 128])
    return attention(draw.randint(1, 2), heads_of_kv * group, heads_of_kv, rows, rows if causal else columns, width, causal, masked,
                     kind, None, values if values != width else None)


def draw_heads(draw, card):
    kind = draw.choice(["f16", *(["bf16"] if card in ("hopper", "ampere") else [])])
    return heads(draw.randint(1, 3), draw.randint(1, 5), draw.choice(AROUND), draw.choice(EIGHTS), draw.choice(EIGHTS), draw.random() < 0.5, kind)


def draw_rows(draw, card):
    del card
    rows, columns = draw.choice(AROUND), draw.choice(AROUND + EIGHTS + (500, 768, 1000, 1024, 2049))
    which = draw.randrange(4)
    if which == 0:
        return embedding(draw.choice((1, 7, 100)), rows, columns, "f16", draw.choice(["i64", "i32"]))
    if which == 1:
        return softmax(rows, columns, draw.choice(["f16", "f32"]))
    return layernorm(rows, columns, which == 2, "f16" if which == 2 else draw.choice(["f16", "f32"]))


# Kernels of hopper that were wrong once, and their multiprocessors: warpgroups skip blocks of keys, in several tiles of a block.
KEPT = ((attention(2, 2, 2, 300, 300, 64, True, False, "f16"), 2),)

DRAWS = (draw_gemm, draw_gemm, draw_gemm, draw_conv, draw_conv, draw_attention, draw_attention, draw_heads, draw_depthwise, draw_rows)


def draw_case(draw, card):
    return draw.choice(DRAWS)(draw, card)
