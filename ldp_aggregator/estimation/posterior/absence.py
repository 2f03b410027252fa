"""Who holds no value of a feature: P(missing, class), drawn towards nothing as far as the reports cannot tell.

Of a feature that may be missing, the cells of a question are those of its values and one a class more. Where nothing is
missing these hold nothing but noise; taken at its word it would move all other cells. With mu, shape (C,), for
P(missing, class) and pi for P(class), what is believed is a mixture over t of

    mu ~ N(t pi, T_t),   T_t = t^2 diag(pi) (.9 J + .1 I) diag(pi),

a missing share of about t, much alike in all classes; t = 0 says that nothing is missing. How often features have which
t is learned from all of them together. From then on a feature's cells are those of its values alone, given mu:
L and h of all cells become L_pp and h_p - L_pm mu, of frequencies that add up to 1 less the missing share.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.posterior.evidence import Statistics
from ldp_aggregator.estimation.posterior.factors import contrasts, outer, times
from ldp_aggregator.estimation.posterior.scale import shared_scales

Array = NDArray[np.float64]

Group = TypeVar("Group", bound=Hashable)
"""Names features of one shape."""

SHARES: Final[Array] = np.array([0.0, 0.01, 0.03, 0.1, 0.3, 0.6])
"""The missing shares t that a feature may have, roughly."""

_USUAL: Final[Array] = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
"""How many features have each, before any report: half of them are complete."""

_ALIKE: Final = 0.9
"""How far the classes go together."""

_WIDE: Final = 100.0
"""Prior variance of a cell, with which nothing is shrunk while the cells are read off the reports."""

MOST: Final = 0.98
"""Of a class: somebody is taken to hold a value."""


@dataclass(frozen=True)
class Absence:
    """P(missing, class) of features of one shape, shape (..., C), at most 98 % of each class, and how it follows from
    the reports.

    Before that limit it is ``gain @ (h - L / d) + start + pull @ pi``: gain of shape (..., C, d), pull (..., C, C).
    """

    value: Array
    gain: Array
    pull: Array

    @property
    def share(self) -> Array:
        """P(missing), shape (...)."""
        total: Array = self.value.sum(axis=-1)
        return total


def absences(told: Mapping[Group, Statistics], classes: Array) -> dict[Group, Absence]:
    """Of every group of features in ``told``, the last C of whose cells say that the value is missing."""
    if not told:
        return {}
    variances = SHARES[:, None, None] ** 2 * outer(classes, classes) * (_ALIKE + (1 - _ALIKE) * np.eye(classes.size))
    means = outer(SHARES, classes)
    read = [_read(one, classes.size) for one in told.values()]
    spreads = [noise[..., None, :, :] + variances for _, _, noise in read]  # (..., t, C, C)
    distances = [value[..., None, :] - means for value, _, _ in read]
    logarithms = [_logarithms(*of).reshape(-1, SHARES.size) for of in zip(distances, spreads, strict=True)]
    weights = shared_scales(np.concatenate(logarithms), _USUAL)
    found = {}
    for group, (value, gain, _), spread, own in zip(told, read, spreads, logarithms, strict=True):
        weight, weights = weights[: len(own)].reshape(*spread.shape[:-2], 1, 1), weights[len(own) :]
        kept = variances @ np.linalg.inv(spread)
        pull = (weight * SHARES[:, None, None] * (np.eye(classes.size) - kept)).sum(axis=-3)
        believed = (weight * kept).sum(axis=-3)
        missing = np.clip(times(believed, value) + times(pull, classes), 0.0, MOST * classes)
        found[group] = Absence(missing, believed @ gain, pull)
    return found


def given_presence(told: Statistics, absence: Absence) -> Statistics:
    """What all reports about features tell of the cells of their values, given who holds none."""
    here = told.linear.shape[-1] - absence.value.shape[-1]
    linear = told.linear[..., :here] - times(told.information[..., :here, here:], absence.value)
    return Statistics(told.information[..., :here, :here], linear)


def _read(told: Statistics, classes: int) -> tuple[Array, Array, Array]:
    """P(missing, class) as the reports say it, the matrix that gives it of h - L / d, and its covariance."""
    cells = told.linear.shape[-1]
    basis = np.sqrt(_WIDE) * contrasts(cells)
    covariance = basis @ np.linalg.inv(basis.T @ told.information @ basis + np.eye(cells - 1)) @ basis.T
    gain = covariance[..., cells - classes :, :]
    value = 1 / cells + times(gain, told.linear - told.information.sum(axis=-1) / cells)
    return value, gain, gain[..., cells - classes :]


def _logarithms(distances: Array, variances: Array) -> Array:
    """Log densities of normal distributions at these distances from their means, up to a constant."""
    _, volumes = np.linalg.slogdet(variances)
    squares = np.einsum("...i,...ij,...j->...", distances, np.linalg.inv(variances), distances)
    logarithms: Array = -0.5 * (squares + volumes)
    return logarithms
