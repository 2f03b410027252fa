"""Post-processing of frequency estimates: from unbiased numbers to ones that can be used as probabilities.

Post-processing costs no privacy. It trades the unbiasedness for a smaller error.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FLOOR: Final = "floor"
NORM_SUB: Final = "norm_sub"
NONE: Final = "none"
MODES: Final = (FLOOR, NORM_SUB, NONE)

POSTERIOR: Final = "posterior"
"""For training only, where all questions are seen together: :mod:`ldp_aggregator.estimation.posterior`."""

TRAINING_MODES: Final = (POSTERIOR, NORM_SUB, FLOOR)


def post_process(values: Array, n: float, mode: str) -> Array:
    """Frequencies of one question (shape (d,), ``n`` reports) under ``mode``; see the three functions' names.

    ``floor``: negative counts become one count (Yilmaz et al. 2019, section 5.1), then everything adds up to 1.
    ``norm_sub``: :func:`norm_sub`. ``none``: unchanged.
    """
    if mode == FLOOR:
        return floor(values, n)
    if mode == NORM_SUB:
        return norm_sub(values)
    if mode == NONE:
        return values.copy()
    raise ValueError(f"post must be one of {', '.join(MODES)}, not {mode!r}")


def floor(values: Array, n: float) -> Array:
    """Negative (and zero) counts become 1; rescaled to a sum of 1."""
    if n <= 0:
        return np.full(values.shape, 1 / values.size)
    counts = values * n
    counts[counts <= 0] = 1.0
    return np.asarray(counts / counts.sum())


def norm_sub(values: Array, *, axis: int = 0) -> Array:
    """The nearest point (least squares) with non-negative entries that add up to 1, along an axis.

    Wang et al., NDSS 2020: subtract one constant from every entry and cut at zero, so that the sum is right. The
    constant brings the k largest to a sum of 1, for the k that needs most: it rises with k as long as the next entry is
    above it, and falls from there on.
    """
    sums = np.cumsum(-np.sort(-values, axis=axis), axis=axis)
    inner_axes = values.ndim - 1 - axis % values.ndim
    ranks = np.arange(1, values.shape[axis] + 1).reshape(-1, *[1] * inner_axes)
    constant = ((sums - 1) / ranks).max(axis=axis, keepdims=True)
    return np.asarray(np.maximum(values - constant, 0.0))
