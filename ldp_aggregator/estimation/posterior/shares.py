"""P(class) and P(value), each shrunk towards equal shares by the noise there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.posterior.evidence import Statistics
from ldp_aggregator.estimation.posterior.factors import even_factor, factor, kron, product
from ldp_aggregator.estimation.simplex import norm_sub

Array = NDArray[np.float64]

PSEUDO_REPORTS: Final = 4.0
"""Of a marginal, in all: none per value, which would destroy features with many values."""

_INTERACTION: Final = 0.1
"""Prior scale of what is not in the marginal, while the marginal is estimated."""


@dataclass(frozen=True)
class ClassShares:
    """P(class), shape (C,), no class impossible, and how it follows from h.

    ``raw = start + gain @ h`` before :func:`norm_sub`; ``covariance`` of that, shape (C, C); ``reports`` N.
    """

    value: Array
    raw: Array
    gain: Array
    covariance: Array
    reports: int


@dataclass(frozen=True)
class Marginal:
    """P(value) of a feature, shape (K,), no value impossible.

    ``raw`` before :func:`norm_sub` is ``1 / K + gain @ (h - L (u (x) rho))``, rho being P(class, present), gain
    of shape (K, K C); ``effective`` is the number of reports without noise that would tell as much.
    """

    value: Array
    raw: Array
    gain: Array
    effective: float


def class_shares(told: Statistics, reports: int) -> ClassShares:
    """pi: the posterior mean under a prior as wide as that of uniform shares, and one pseudo-report a class."""
    classes = told.linear.size
    even = np.full(classes, 1 / classes)
    scale = even_factor(classes) / np.sqrt(classes + 1)
    variance = np.linalg.inv(scale.T @ told.information @ scale + np.eye(classes - 1))
    covariance = scale @ variance @ scale.T
    raw = even + covariance @ (told.linear - told.information @ even)
    value = (reports * norm_sub(raw) + 1) / (reports + classes)
    return ClassShares(value, raw, covariance, covariance, reports)


def marginal(told: Statistics, classes: Array, present: float = 1.0) -> Marginal:
    """m: the values' shares, jointly with a small interaction that is thrown away.

    ``classes`` are those of the records that hold a value, and ``present`` is how many do.
    """
    size = told.linear.size // classes.size
    even = np.full(size, 1 / size)
    values = np.sqrt(size) * even_factor(size)
    interaction = kron(np.sqrt(_INTERACTION) * even_factor(size), factor(classes))
    design = present * np.concatenate([kron(values, classes[:, None]), interaction], axis=1)
    variance = np.linalg.inv(design.T @ told.information @ design + np.eye(design.shape[1]))
    gain = values @ (variance @ design.T)[: size - 1]
    raw = even + gain @ (told.linear - told.information @ (present * product(even, classes)))
    share = norm_sub(raw)
    spread = np.trace(variance[: size - 1, : size - 1])  # The columns of ``values`` are orthonormal.
    effective = float(((share * (1 - share)).sum() + 1 / size) / spread)
    value = (effective * share + PSEUDO_REPORTS / size) / (effective + PSEUDO_REPORTS)
    return Marginal(value, raw, gain, effective)
