"""Draws, as in net_draw_wide.py, of the ops of net_reference_rare.py."""

import numpy as np

from net_draw import affordable, image
from net_draw_wide import draw, least
from net_graph import Unfit


@draw(rows=1, small=2)
def cum_prod(d):
    least(d, 26)
    x, r = d.pick(range(1, 5), where=lambda v: 0 not in d.shape(v)), d.random
    near_one = d.emit("Add", [d.emit("Mul", [d.emit("Tanh", [x]), d.floats(0.125)]), d.floats(1.0)])
    axis = d.constant(np.int64(r.randint(-len(d.shape(x)), len(d.shape(x)) - 1)))
    d.keep(d.emit("CumProd", [near_one, axis], exclusive=r.randint(0, 1), reverse=r.randint(0, 1)))


@draw(rows=2, small=1)
def tensor_scatter(d):
    least(d, 24)
    x, r = d.pick(range(3, 5), where=lambda v: d.known(v) and 0 not in d.shape(v)), d.random
    shape = list(d.shape(x))
    axis, mode = r.randrange(1, len(shape)), r.choice(["linear", "circular"])
    size, shape[axis] = shape[axis], r.randint(1, shape[axis])
    last = size - shape[axis] if mode == "linear" else size - 1
    first = d.numbers.integers(0, last + 1, shape[0])
    first = d.constant(first) if r.random() < 0.5 else d.input([shape[0]], "i64", lambda _: first)
    d.keep(d.emit("TensorScatter", [x, d.input(shape), first], mode=mode, axis=r.choice([axis, axis - len(shape)])))


@draw(rows=2)
def stft(d):
    least(d, 17)
    x, r = d.pick(2, where=lambda v: d.size(v, 0) and d.size(v, 1)), d.random
    length = d.size(x, 1)
    size = r.choice([n for n in (2, 3, 5, 8, 16, 31, 64) if n <= length] or [0])
    if not size:
        raise Unfit("shorter than a window")
    signal, step = d.emit("Unsqueeze", [x, d.ints(-1)]), r.choice([1, 2, 5, size])
    window = d.positive((size,))
    d.keep(d.emit("STFT", [signal, d.constant(np.int64(step)), window], onesided=r.randint(0, 1)))


@draw(image=1)
def max_unpool(d):
    x, r = d.pick(4, where=lambda v: d.known(v) and 0 not in d.shape(v)), d.random
    step = [r.choice([1, 2, 3]) for _ in range(2)]
    kernel = [max(s, r.choice([1, 2, 3])) for s in step]
    plane = np.prod([(n - 1) * s + k for n, s, k in zip(d.shape(x)[2:], step, kernel)])
    count = np.prod(d.shape(x)[2:])
    places = np.stack([d.numbers.permutation(plane)[:count] + i * plane for i in range(np.prod(d.shape(x)[:2]))])
    d.keep(d.emit("MaxUnpool", [x, d.constant(places.reshape(d.shape(x)).astype(np.int64))], kernel_shape=kernel, strides=step))


def regions(d, x, count):
    """Left, up, right, down: some of them beyond the image."""
    size = np.array(d.shape(x)[:1:-1])
    ends = np.sort(d.numbers.uniform(-0.2, 1.2, (count, 2, 2)) * size, 1)
    return ends.reshape(count, 4)


def numbers_of_images(d, x, count):
    return d.numbers.integers(0, d.shape(x)[0], count)


@draw(image=1)
def max_roi_pool(d):
    x, r = d.pick(4, where=lambda v: d.known(v) and 0 not in d.shape(v)), d.random
    if d.net.kind != "f32":
        raise Unfit("float32 alone")
    count = r.randint(1, 3)
    rois = np.concatenate([numbers_of_images(d, x, count)[:, None], np.round(regions(d, x, count))], 1)
    d.keep(d.emit("MaxRoiPool", [x, d.floats(rois)], pooled_shape=[r.randint(1, 3), r.randint(1, 4)], spatial_scale=r.choice([1.0, 0.5])))


@draw(image=2)
def roi_align(d):
    x, r = d.pick(4, where=lambda v: d.known(v) and 0 not in d.shape(v)), d.random
    least(d, 16)
    count = r.randint(1, 4)
    attrs = {"output_height": r.randint(1, 4), "output_width": r.randint(1, 4), "sampling_ratio": r.randint(1, 3),
             "spatial_scale": r.choice([1.0, 0.5]), "mode": "avg"}
    attrs |= r.choice([{}, {"coordinate_transformation_mode": "output_half_pixel"}, {"coordinate_transformation_mode": "half_pixel"}])
    d.keep(d.emit("RoiAlign", [x, d.floats(regions(d, x, count)), d.constant(numbers_of_images(d, x, count).astype(np.int64))], **attrs))


@draw(image=3)
def deform_conv(d):
    least(d, 19)
    x, r = image(d), d.random
    if len(d.shape(x)) != 4 or not d.known(x):
        raise Unfit("of rank 4, with an image")
    batch, channels, *size = d.shape(x)
    group, own = (r.choice([g for g in (1, 1, 2, 3, channels) if channels % g == 0]) for _ in range(2))
    kernel, pads = [r.choice([1, 2, 3]) for _ in range(2)], [r.randint(0, 2) for _ in range(4)]
    attrs = {"kernel_shape": kernel, "strides": [r.choice([1, 2]) for _ in range(2)], "dilations": [r.choice([1, 2]) for _ in range(2)],
             "pads": pads, "group": group, "offset_group": own}
    sizes = [(n + pads[i] + pads[i + 2] - attrs["dilations"][i] * (kernel[i] - 1) - 1) // attrs["strides"][i] + 1 for i, n in enumerate(size)]
    outputs, taps = group * r.choice([1, 2, 5]), kernel[0] * kernel[1]
    if min(sizes) < 1:
        raise Unfit("no result")
    affordable(outputs, channels, taps, np.prod(sizes), batch, 8)
    inputs = [x, d.weight((outputs, channels // group, *kernel), channels * taps // group),
              d.input([batch, 2 * own * taps, *sizes], data=lambda shape: d.numbers.uniform(-2, 2, shape))]
    inputs.append(d.normal((outputs,)) if r.random() < 0.5 else "")
    inputs += [d.input([batch, own * taps, *sizes])] if r.random() < 0.5 else []
    d.keep(d.emit("DeformConv", inputs, **attrs))


@draw(image=1, small=1)
def non_max_suppression(d):
    r = d.random
    if d.net.kind != "f32":
        raise Unfit("float32 alone")
    batch, categories, boxes = r.choice([1, 2]), r.choice([1, 3]), d.symbol(r.choice([1, 5, 16, 40]), 0.3)
    inputs = [d.input([batch, boxes, 4], data=lambda shape: d.numbers.uniform(0.1, 2, shape)),
              d.input([batch, categories, boxes], data=d.numbers.random)]
    limits = [d.ints(r.choice([0, 1, 3, 100])), d.floats([r.choice([0.1, 0.3, 0.6])]), d.floats([r.choice([0.0, 0.4])])]
    d.keep(d.emit("NonMaxSuppression", inputs + limits, center_point_box=r.randint(0, 1)))
