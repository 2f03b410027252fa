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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.posterior.evidence import Statistics
from ldp_aggregator.estimation.posterior.factors import contrasts
from ldp_aggregator.estimation.posterior.scale import shared_scales

Array = NDArray[np.float64]

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
    """P(missing, class) of a feature, shape (C,), at most 98 % of each class, and how it follows from the reports.

    Before that limit it is ``gain @ (h - L / d) + start + pull @ pi``: gain of shape (C, d), pull of shape (C, C).
    """

    value: Array
    gain: Array
    pull: Array

    @property
    def share(self) -> float:
        """P(missing)."""
        return float(self.value.sum())


def absences(told: Mapping[str, Statistics], classes: Array) -> dict[str, Absence]:
    """By name of every feature in ``told``, each of whose last C cells say that the value is missing."""
    read = {name: _read(one, classes.size) for name, one in told.items()}
    variances = SHARES[:, None, None] ** 2 * np.outer(classes, classes) * (_ALIKE + (1 - _ALIKE) * np.eye(classes.size))
    means = np.outer(SHARES, classes)
    logarithms = np.array([_logarithms(value - means, noise + variances) for value, _, noise in read.values()])
    weights = shared_scales(logarithms.reshape(-1, SHARES.size), _USUAL)
    found = {}
    for (name, (value, gain, noise)), weight in zip(read.items(), weights, strict=True):
        kept = variances @ np.linalg.inv(noise + variances)
        pull = np.einsum("t,tij->ij", weight * SHARES, np.eye(classes.size) - kept)
        believed = np.einsum("t,tij->ij", weight, kept)
        missing = np.clip(believed @ value + pull @ classes, 0.0, MOST * classes)
        found[name] = Absence(missing, believed @ gain, pull)
    return found


def given_presence(told: Statistics, absence: Absence) -> Statistics:
    """What all reports about a feature tell of the cells of its values, given who holds none."""
    here = told.linear.size - absence.value.size
    linear = told.linear[:here] - told.information[:here, here:] @ absence.value
    return Statistics(told.information[:here, :here], linear)


def _read(told: Statistics, classes: int) -> tuple[Array, Array, Array]:
    """P(missing, class) as the reports say it, the matrix that gives it of h - L / d, and its covariance."""
    cells = told.linear.size
    basis = np.sqrt(_WIDE) * contrasts(cells)
    covariance = basis @ np.linalg.inv(basis.T @ told.information @ basis + np.eye(cells - 1)) @ basis.T
    gain = covariance[cells - classes :]
    value = 1 / cells + gain @ (told.linear - told.information.sum(axis=1) / cells)
    return value, gain, gain[:, cells - classes :]


def _logarithms(distances: Array, variances: Array) -> Array:
    """Log densities of normal distributions at these distances from their means, up to a constant."""
    _, volumes = np.linalg.slogdet(variances)
    squares = np.einsum("ti,tij,tj->t", distances, np.linalg.inv(variances), distances)
    logarithms: Array = -0.5 * (squares + volumes)
    return logarithms
