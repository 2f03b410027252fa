"""P(class) and P(value), each shrunk towards equal shares by the noise there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.posterior.evidence import Statistics
from ldp_aggregator.estimation.posterior.factors import even_factor, factor, kron, product, times
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
    """P(value) of features of one shape, shape (..., K), no value impossible.

    ``raw`` before :func:`norm_sub` is ``1 / K + gain @ (h - L (u (x) rho))``, rho being P(class, present), gain
    of shape (..., K, K C); ``effective``, shape (...), is the number of reports without noise that would tell as much.
    """

    value: Array
    raw: Array
    gain: Array
    effective: Array


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


def marginal(told: Statistics, classes: Array, present: Array) -> Marginal:
    """m: the values' shares, jointly with a small interaction that is thrown away.

    ``classes``, shape (..., C), are those of the records that hold a value, and ``present``, shape (...), says how many
    do.
    """
    size = told.linear.shape[-1] // classes.shape[-1]
    even = np.full(size, 1 / size)
    values = np.sqrt(size) * even_factor(size)
    interaction = kron(np.sqrt(_INTERACTION) * even_factor(size), factor(classes))
    design = present[..., None, None] * np.concatenate([kron(values, classes[..., None]), interaction], axis=-1)
    variance = np.linalg.inv(design.mT @ told.information @ design + np.eye(design.shape[-1]))
    gain = values @ (variance @ design.mT)[..., : size - 1, :]
    independent = present[..., None] * product(even, classes)
    raw = even + times(gain, told.linear - times(told.information, independent))
    share = norm_sub(raw, axis=-1)
    of_values = np.diagonal(variance, axis1=-2, axis2=-1)[..., : size - 1]  # The columns of ``values`` are orthonormal.
    effective = ((share * (1 - share)).sum(axis=-1) + 1 / size) / of_values.sum(axis=-1)
    reports = effective[..., None]
    value = (reports * share + PSEUDO_REPORTS / size) / (reports + PSEUDO_REPORTS)
    return Marginal(value, raw, gain, effective)
