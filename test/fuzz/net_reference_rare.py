"""Rules, as in net_reference.py, for ops of detectors, deformed windows, spectra, and others that few networks have."""

import itertools

import numpy as np

from net_reference import rule


def top(x):
    return np.abs(x).max(initial=0)


# ---- Along an axis ----

def cum_prod(attrs, x, axis):
    """Each entry times all before it."""
    axis = int(axis)
    x = np.flip(x, axis) if attrs["reverse"] else x
    y = x.cumprod(axis)
    if attrs["exclusive"]:
        y = np.concatenate([np.ones_like(y.take([0], axis)), y.take(range(y.shape[axis] - 1), axis)], axis)
    return np.flip(y, axis) if attrs["reverse"] else y


def tensor_scatter(attrs, past, update, indices):
    """|update| in place of what stands behind indices[batch]; circular: around the end."""
    y, axis = past.copy(), attrs["axis"] % past.ndim
    for batch, first in enumerate(indices.tolist()):
        at = (first + np.arange(update.shape[axis])) % past.shape[axis]
        y[batch][(slice(None),) * (axis - 1) + (at,)] = update[batch]
    return y


def stft(attrs, signal, step, window):
    """Spectra of windows of real signals."""
    x, step, size = signal[..., 0], int(step), window.shape[0]
    starts = range(0, x.shape[1] - size + 1, step)
    frames = np.stack([x[:, s:s + size] * window for s in starts], 1)
    y = np.fft.rfft(frames) if attrs["onesided"] else np.fft.fft(frames)
    return np.stack([y.real, y.imag], -1)


def stft_terms(attrs, results, signal, step, window):
    """The angles are rounded, too."""
    return [np.full_like(results[0], 8 * window.shape[0] * top(signal) * top(window))]


rule("CumProd", cum_prod, lambda a, r, x, axis: [np.abs(r[0]) * x.shape[int(axis)]])
rule("TensorScatter", tensor_scatter)
rule("STFT", stft, stft_terms)


# ---- Windows ----

def max_unpool(attrs, x, places):
    sizes = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], attrs["strides"], attrs["kernel_shape"])]
    y = np.zeros((*x.shape[:2], *sizes))
    y.reshape(-1)[places.reshape(-1)] = x.reshape(-1)
    return y


def between_pixels(image, rows, columns):
    """|image| (channels, height, width) at places between its pixels; zeros around it."""
    low_row, low_column = np.floor(rows).astype(int), np.floor(columns).astype(int)
    y = 0
    for i, j in itertools.product((0, 1), (0, 1)):
        r, c = low_row + i, low_column + j
        inside = (r >= 0) & (r < image.shape[1]) & (c >= 0) & (c < image.shape[2])
        weight = (1 - np.abs(rows - r)) * (1 - np.abs(columns - c)) * inside
        y = y + image[:, r.clip(0, image.shape[1] - 1), c.clip(0, image.shape[2] - 1)] * weight
    return y


def deform_conv(attrs, x, w, offset, bias=None, mask=None):
    """A convolution each of whose taps is moved by |offset|, and weighed by |mask|, at each place of the result."""
    (kh, kw), (sh, sw), (dh, dw), pads = w.shape[2:], attrs["strides"], attrs["dilations"], attrs["pads"]
    groups, own = attrs["group"], attrs["offset_group"]
    rows, columns = offset.shape[2:]
    channels, outputs = x.shape[1] // own, w.shape[0] // groups
    offset = offset.reshape(x.shape[0], own, kh, kw, 2, rows, columns)
    mask = np.ones((x.shape[0], own, kh, kw, rows, columns)) if mask is None else mask.reshape(x.shape[0], own, kh, kw, rows, columns)
    base_row, base_column = np.mgrid[:rows, :columns]
    y = np.zeros((x.shape[0], w.shape[0], rows, columns))
    for n, i, j in itertools.product(range(x.shape[0]), range(kh), range(kw)):
        taken = np.concatenate([
            between_pixels(x[n, o * channels:(o + 1) * channels], base_row * sh - pads[0] + i * dh + offset[n, o, i, j, 0],
                           base_column * sw - pads[1] + j * dw + offset[n, o, i, j, 1]) * mask[n, o, i, j] for o in range(own)])
        for g in range(groups):
            own_outputs = slice(g * outputs, (g + 1) * outputs)
            y[n, own_outputs] += np.einsum("oc,chw->ohw", w[own_outputs, :, i, j], taken[g * w.shape[1]:(g + 1) * w.shape[1]])
    return y if bias is None else y + bias[:, None, None]


def deform_terms(attrs, results, x, w, offset, bias=None, mask=None):
    """Places are rounded, too."""
    place = max(x.shape[2:]) + top(offset) + max(attrs["dilations"]) * max(w.shape[2:])
    size = np.abs(w).sum((1, 2, 3)).max() * top(x) * (1 if mask is None else top(mask)) * place
    return [np.full_like(results[0], size + (0 if bias is None else top(bias)))]


rule("MaxUnpool", max_unpool)
rule("DeformConv", deform_conv, deform_terms)


# ---- Regions ----

def max_roi_pool(attrs, x, rois):
    """The greatest of each part of a region, whose ends are computed in float32; 0 where a part is empty."""
    y = np.zeros((len(rois), x.shape[1], *attrs["pooled_shape"]))
    for region, (batch, *ends) in enumerate(rois):
        scaled = np.float32(ends) * np.float32(attrs["spatial_scale"])
        left, up, right, down = np.trunc(scaled + np.copysign(0.5, scaled)).astype(int)
        parts = []
        for first, last, count, size in ((up, down, y.shape[2], x.shape[2]), (left, right, y.shape[3], x.shape[3])):
            step = np.float32(max(last - first + 1, 1)) / np.float32(count)
            numbers = np.arange(count, dtype=np.float32)
            begin, end = np.floor(numbers * step).astype(int) + first, np.ceil((numbers + np.float32(1)) * step).astype(int) + first
            parts.append([range(b, e) for b, e in zip(begin.clip(0, size), end.clip(0, size))])
        for i, j in itertools.product(*(range(len(p)) for p in parts)):
            window = x[int(batch)][:, parts[0][i]][:, :, parts[1][j]]
            y[region, :, i, j] = window.max((1, 2)) if window.size else 0
    return y


def roi_align(attrs, x, rois, batches):
    """Means of samples between pixels."""
    scale, count = attrs["spatial_scale"], attrs["sampling_ratio"]
    half = 0.5 if attrs.get("coordinate_transformation_mode", "half_pixel") == "half_pixel" else 0
    size = attrs["output_height"], attrs["output_width"]
    y = np.zeros((len(rois), x.shape[1], *size))
    for region, ((left, up, right, down), batch) in enumerate(zip(rois * scale - half, batches)):
        places = []
        for first, last, parts, pixels in ((up, down, size[0], x.shape[2]), (left, right, size[1], x.shape[3])):
            extent = last - first if half else max(last - first, 1)
            places.append(first + (np.arange(parts * count) + 0.5) * extent / parts / count)
        rows, columns = np.meshgrid(*places, indexing="ij")
        inside = (rows >= -1) & (rows <= x.shape[2]) & (columns >= -1) & (columns <= x.shape[3])
        taken = between_pixels(x[batch], rows.clip(0, x.shape[2] - 1), columns.clip(0, x.shape[3] - 1)) * inside
        y[region] = taken.reshape(x.shape[1], size[0], count, size[1], count).mean((2, 4))
    return y


def roi_terms(attrs, results, x, rois, batches):
    """Places are rounded, too."""
    return [np.full_like(results[0], top(x) * (top(rois) + max(x.shape[2:])))]


def overlap(a, b):
    """Of two boxes, (low, high) of rows and columns: their common part of what they cover."""
    common = np.prod([max(0, min(a[1][i], b[1][i]) - max(a[0][i], b[0][i])) for i in range(2)])
    both = sum(np.prod([box[1][i] - box[0][i] for i in range(2)]) for box in (a, b))
    return common / (both - common) if common > 0 else 0


def corners(box, is_center):
    if is_center:
        column, row, width, height = box
        return (row - height / 2, column - width / 2), (row + height / 2, column + width / 2)
    row, column, other_row, other_column = box
    return (min(row, other_row), min(column, other_column)), (max(row, other_row), max(column, other_column))


def non_max_suppression(attrs, boxes, scores, most, most_overlap, least_score):
    found = []
    for batch, category in itertools.product(range(scores.shape[0]), range(scores.shape[1])):
        own, kept = scores[batch, category], []
        for i in np.argsort(-own, kind="stable"):
            box = corners(boxes[batch, i], attrs["center_point_box"])
            if len(kept) < int(most) and own[i] > least_score and all(overlap(box, other) <= most_overlap for _, other in kept):
                kept.append((i, box))
        found += [[batch, category, i] for i, _ in kept]
    return np.array(found, np.int64).reshape(-1, 3)


rule("MaxRoiPool", max_roi_pool)
rule("RoiAlign", roi_align, roi_terms)
rule("NonMaxSuppression", non_max_suppression)
