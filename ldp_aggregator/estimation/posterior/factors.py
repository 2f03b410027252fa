"""Factors of the covariance of one draw: F(m) with F F' = diag(m) - m m'."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def factor(shares: Array) -> Array:
    """F(m) of shape (K, K - 1) for probabilities m above 0, shape (K,).

    diag(sqrt m) times the Householder reflection that takes sqrt(m) to a unit vector, without that column: the rest of
    the reflection is an orthonormal basis of what is orthogonal to sqrt(m). The columns of F add up to 0.
    """
    root = np.sqrt(shares)
    mirror = root.copy()
    mirror[0] += 1.0  # All entries are positive: no cancellation.
    reflection = np.eye(root.size) - np.outer(mirror, mirror) / (1.0 + root[0])
    result: Array = root[:, None] * reflection[:, 1:]
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
    rows, columns = first.shape[0] * second.shape[0], first.shape[1] * second.shape[1]
    return (first[:, None, :, None] * second[None, :, None, :]).reshape(rows, columns)


def product(first: Array, second: Array) -> Array:
    """The joint shares of what is independent, shape (K C,), index ``value * C + class``."""
    result: Array = np.multiply.outer(first, second).ravel()
    return result
