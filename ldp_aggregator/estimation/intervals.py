"""Values with their variances and 95 % intervals: normal ones, and Wilson's of a binomial count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

Z_95: Final = 1.959963984540054
"""The 97.5 % point of the normal distribution."""


@dataclass(frozen=True)
class Cells:
    """Unbiased values with their variance and 95 % interval; arrays of one shape."""

    value: Array
    variance: Array
    low: Array
    high: Array

    @classmethod
    def normal(cls, value: Array, variance: Array) -> Cells:
        """A normal interval around each value."""
        reach = Z_95 * np.sqrt(variance)
        return cls(value, variance, value - reach, value + reach)


def wilson(counts: Counts, n: int, z: float = Z_95) -> tuple[Array, Array]:
    """Wilson's interval of a binomial proportion, of ``z`` standard deviations: 95 % by default."""
    share, z2 = counts / n, z**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = z / (1 + z2 / n) * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return centre - reach, centre + reach
