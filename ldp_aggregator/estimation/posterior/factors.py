"""Factors of the covariance of one draw: F(m) with F F' = diag(m) - m m'.

Everything here is of one feature, or of many of one shape at once, whose axes then come first: (..., K).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def factor(shares: Array) -> Array:
    """F(m) of shape (..., K, K - 1) for probabilities m above 0, shape (..., K).

    diag(sqrt m) times the Householder reflection that takes sqrt(m) to a unit vector, without that column: the rest of
    the reflection is an orthonormal basis of what is orthogonal to sqrt(m). The columns of F add up to 0.
    """
    root = np.sqrt(shares)
    mirror = root.copy()
    mirror[..., 0] += 1.0  # All entries are positive: no cancellation.
    reflection = np.eye(root.shape[-1]) - outer(mirror, mirror) / mirror[..., :1, None]
    result: Array = root[..., None] * reflection[..., 1:]
    return result


@lru_cache(maxsize=256)
def even_factor(cells: int) -> Array:
    """F of equal shares, shape (d, d - 1)."""
    result = factor(np.full(cells, 1 / cells))
    result.flags.writeable = False
    return result


@lru_cache(maxsize=256)
def contrasts(cells: int) -> Array:
    """An orthonormal basis of what adds up to 0, shape (d, d - 1)."""
    result: Array = np.sqrt(cells) * even_factor(cells)
    result.flags.writeable = False
    return result


def kron(first: Array, second: Array) -> Array:
    """The Kronecker product of two matrices; numpy's own takes longer than the product does."""
    four = first[..., :, None, :, None] * second[..., None, :, None, :]
    *features, rows, inner_rows, columns, inner_columns = four.shape
    return four.reshape(*features, rows * inner_rows, columns * inner_columns)


def product(first: Array, second: Array) -> Array:
    """The joint shares of what is independent, shape (..., K C), index ``value * C + class``."""
    both = outer(first, second)
    return both.reshape(*both.shape[:-2], -1)


def outer(first: Array, second: Array) -> Array:
    """Every entry of the one times every entry of the other, shape (..., K, C)."""
    return first[..., :, None] * second[..., None, :]


def times(matrix: Array, vector: Array) -> Array:
    """A matrix, shape (..., r, d), times a vector, shape (..., d)."""
    result: Array = (matrix @ vector[..., None])[..., 0]
    return result
