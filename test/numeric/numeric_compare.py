"""When a result is right: within the tolerance of its type, or exact."""

import numpy as np

from numeric_row import DTYPES, TOLERANCES

NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def difference(got, want, factor):
    """None, or how |got| differs from |want|."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} came, {want.dtype}{list(want.shape)} was expected"
    name = NAMES[got.dtype]
    if name not in TOLERANCES:
        bad = got != want
        bound = "exact"
    else:
        rtol, atol = (value * factor for value in TOLERANCES[name])
        a, b = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= atol + rtol * np.abs(b)
        bad = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
        bound = f"rtol {rtol:g}, atol {atol:g}"
    if not bad.any():
        return None
    first = np.unravel_index(np.argmax(bad), bad.shape)
    return (f"{int(bad.sum())} of {bad.size} elements differ; at {[int(i) for i in first]} {got[first]!s} came, "
            f"{want[first]!s} was expected ({bound})")
