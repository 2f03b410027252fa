"""P(class), P(value) and P(missing, class), each drawn towards what is usual by the noise there is.

Of a feature that may be missing, the cells of a question are those of its values and one a class more. Where nothing is
missing these hold nothing but noise; taken at its word it would move all other cells. With mu, shape (C,), for
P(missing, class) and pi for P(class), what is believed is a mixture over t of

    mu ~ N(t pi, T_t),   T_t = t^2 diag(pi) (.9 J + .1 I) diag(pi),

a missing share of about t, much alike in all classes; t = 0 says that nothing is missing. How often features have which
t is learned from all of them together. From then on a feature's cells are those of its values alone, given mu.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.posterior.effects import shared_scales
from ldp_aggregator.estimation.posterior.evidence import Statistics, contrasts, factor, kron, product, times
from ldp_aggregator.estimation.simplex import norm_sub

Array = NDArray[np.float64]

PSEUDO_REPORTS: Final = 4.0
"""For a marginal in all, not per value, which would destroy features with many values."""

_INTERACTION: Final = 0.1
"""Prior scale of what is not in the marginal, while the marginal is estimated."""

MISSING: Final[Array] = np.array([0.0, 0.01, 0.03, 0.1, 0.3, 0.6])
"""The missing shares t that a feature may have, roughly."""

_USUALLY_MISSING: Final[Array] = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
"""The shares of features that have each, before any report: half of them are complete."""

_ALIKE: Final = 0.9
"""Correlation of the classes in what is missing."""

_WIDE: Final = 100.0
"""Prior variance of a cell, with which nothing is shrunk while the cells are read off the reports."""

MOST_MISSING: Final = 0.98
"""The most of a class that is believed to be missing: somebody is taken to hold a value."""


@dataclass(frozen=True)
class ClassShares:
    """P(class), shape (..., C), no class impossible; ``raw`` before :func:`norm_sub`, with the ``covariance`` of it,
    shape (..., C, C).
    """

    value: Array
    raw: Array
    covariance: Array


def believed_classes(information: Array, linear: Array, reports: Array | int) -> ClassShares:
    """Return P(class) as told under a prior as wide as that of uniform shares, with one pseudo-report a class."""
    classes = linear.shape[-1]
    even = np.full(classes, 1 / classes)
    scale = factor(even) / np.sqrt(classes + 1)
    variance = np.linalg.inv(scale.T @ information @ scale + np.eye(classes - 1))
    covariance = scale @ variance @ scale.T
    raw = even + times(covariance, linear - information @ even)
    n = np.asarray(reports)[..., None]
    return ClassShares((n * norm_sub(raw, axis=-1) + 1) / (n + classes), raw, covariance)


def marginal(told: Statistics, present: Array, classes: Array) -> tuple[Array, Array]:
    """Return P(value) of features of one shape, shape (..., K), no value impossible, estimated jointly with a small
    interaction that is thrown away; and how many reports without noise would tell as much, shape (...).

    ``present``, shape (..., 1), is the share of records that hold a value, ``classes``, shape (..., C), P(class) of
    these.
    """
    size = told.linear.shape[-1] // classes.shape[-1]
    even, values = np.full(size, 1 / size), contrasts(size)
    interaction = kron(np.sqrt(_INTERACTION) * factor(even), factor(classes))
    design = present[..., None] * np.concatenate([kron(values, classes[..., None]), interaction], axis=-1)
    variance = np.linalg.inv(design.mT @ told.information @ design + np.eye(design.shape[-1]))
    gain = values @ (variance @ design.mT)[..., : size - 1, :]
    raw = even + times(gain, told.linear - times(told.information, present * product(even, classes)))
    share = norm_sub(raw, axis=-1)
    of_values = np.diagonal(variance, axis1=-2, axis2=-1)[..., : size - 1]  # The columns of ``values`` are orthonormal.
    effective = ((share * (1 - share)).sum(axis=-1) + 1 / size) / of_values.sum(axis=-1)
    reports = effective[..., None]
    return (reports * share + PSEUDO_REPORTS / size) / (reports + PSEUDO_REPORTS), effective


def absences(told: Sequence[Statistics], classes: Array) -> list[Array]:
    """Return P(missing, class) of features, shape (features, C) for those of each shape, at most 98 % of each class.

    Of all cells in ``told`` the last C say that the value is missing; ``classes`` are P(class).
    """
    variances = (
        MISSING[:, None, None] ** 2 * np.outer(classes, classes) * (_ALIKE + (1 - _ALIKE) * np.eye(classes.size))
    )
    means = np.outer(MISSING, classes)
    logarithms, believed = [], []
    for one in told:
        cells = one.linear.shape[-1]
        basis, absent = np.sqrt(_WIDE) * contrasts(cells), slice(cells - classes.size, cells)
        covariance = basis @ np.linalg.inv(basis.T @ one.information @ basis + np.eye(cells - 1)) @ basis.T
        read = 1 / cells + times(covariance, one.linear - one.information.sum(axis=-1) / cells)[..., absent]
        spread = covariance[..., None, absent, absent] + variances  # (features, t, C, C)
        distances = read[..., None, :] - means
        weighed = np.linalg.solve(spread, distances[..., None])[..., 0]
        logarithms.append(-((distances * weighed).sum(axis=-1) + np.linalg.slogdet(spread)[1]) / 2)
        believed.append(means + times(variances, weighed))
    return [
        np.clip((weight[..., None] * mu).sum(axis=-2), 0.0, MOST_MISSING * classes)
        for weight, mu in zip(shared_scales(logarithms, _USUALLY_MISSING), believed, strict=True)
    ]
