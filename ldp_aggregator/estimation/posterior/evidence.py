"""Evidence of reports on classes and on features, as sufficient statistics that add up; and the algebra of shares.

Frequencies f over d cells have, given noisy reports, about the log-likelihood -f' L f / 2 + h' f: L (d, d) is the
information, h (d,) its linear part. Both are sums over questions, mechanisms, campaigns and rounds of a study, so that
nothing has to be pooled. Of a feature d = K C, cell ``value * C + class``. Of many features of one shape the axis of
the features comes first: (..., d, d) and (..., d).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.mechanisms import analysis_of
from protocols import Question
from protocols.mechanisms import AnyMechanism

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """L and h of one table of frequencies, or of many."""

    information: Array
    linear: Array


@dataclass(frozen=True)
class FeatureGroup:
    """Features of one shape, with the answered questions about the pairs of each, which have so many ``cells``."""

    names: Sequence[str]
    asked: Sequence[Sequence[QuestionEstimate]]
    cells: int
    missing: bool
    ordered: bool

    def told(self, frequencies: Array | None = None) -> Statistics:
        """Return what the answers tell, with the noise that ``frequencies`` of the cells make, shape (features, cells),
        or equal ones.
        """
        shape = len(self.names), self.cells
        information, linear = np.zeros((*shape, self.cells)), np.zeros(shape)
        alike: dict[AnyMechanism, list[tuple[int, QuestionEstimate]]] = {}
        for place, of_feature in enumerate(self.asked):
            for one in of_feature:
                alike.setdefault(one.question.mechanism, []).append((place, one))
        for answered in alike.values():
            places, reports = [place for place, _ in answered], np.array([one.n for _, one in answered])
            known = None if frequencies is None else frequencies[places]
            told = information_of_cells(answered[0][1].question, reports, known)
            np.add.at(information, places, told)
            np.add.at(linear, places, times(told, np.stack([one.cells.value for _, one in answered])))
        return Statistics(information, linear)


def told_of_classes(telling: Sequence[QuestionEstimate], classes: int) -> Statistics:
    """Return what each of these questions tells of P(class), a row for each.

    n Var of a unit contrast of class sums is that of as many cells as are in a class.
    """
    information, linear = np.zeros((len(telling), classes, classes)), np.zeros((len(telling), classes))
    contrast = np.eye(classes) - 1 / classes
    for place, one in enumerate(telling):
        if one.n > 0 and one.classes is not None:
            members = one.question.domain_size // classes
            precision = one.n / (members * unit_variance(one.question.mechanism))
            information[place] = precision * contrast
            linear[place] = information[place] @ one.classes.value
    return Statistics(information, linear)


def information_of_cells(question: Question, n: Array | int, frequencies: Array | None = None) -> Array:
    """Return what n reports to a question about cells tell of them, (..., d, d), the records' own spread included.

    The inverse of the covariance of the unbiased estimate at these frequencies, shape (..., d), among contrasts: that
    cells add up to 1 is known without it. At equal frequencies it is (n / v) (I - J / d), v as in
    :func:`unit_variance`. ``n`` has the shape (...) of questions asked alike.
    """
    cells, reports = question.domain_size, np.asarray(n)[..., None, None]
    if frequencies is None:
        equal: Array = reports / unit_variance(question.mechanism) * (np.eye(cells) - 1 / cells)
        return equal
    basis = contrasts(cells)
    inverse = np.linalg.inv(basis.T @ covariance_of_cells(question, frequencies) @ basis)
    told: Array = reports * (basis @ inverse @ basis.T)
    return told


@lru_cache(maxsize=1024)
def unit_variance(mechanism: AnyMechanism) -> float:
    """N Var of a unit contrast of cells that are equally frequent, the records' own spread included."""
    share = 1 / mechanism.domain_size
    return mechanism.contrast_variance(share, share) / 2 + share


def covariance_of_cells(question: Question, frequencies: Array) -> Array:
    """Return n times the covariance of the unbiased estimates of all cells, (..., d, d), at these frequencies."""
    diagonal = np.arange(frequencies.shape[-1])
    p, q, one_true, none_true, noise = analysis_of(question.mechanism).support
    support = q + (p - q) * frequencies
    both = none_true + (one_true - none_true) * (frequencies[..., :, None] + frequencies[..., None, :])
    both[..., diagonal, diagonal] = support
    covariance: Array = (both - support[..., :, None] * support[..., None, :]) / (p - q) ** 2
    covariance[..., diagonal, diagonal] += noise
    return covariance


def factor(shares: Array) -> Array:
    """Return F(m), a factor of the covariance of one draw, shape (..., K, K - 1): F F' = diag(m) - m m'.

    ``shares`` m are above 0, shape (..., K). diag(sqrt m) times the Householder reflection that takes sqrt(m) to a unit
    vector, without that column: the rest of the reflection is an orthonormal basis of what is orthogonal to sqrt(m).
    The columns of F add up to 0.
    """
    root = np.sqrt(shares)
    mirror = root.copy()
    mirror[..., 0] += 1.0  # All entries are positive: no cancellation.
    reflection = np.eye(root.shape[-1]) - mirror[..., :, None] * mirror[..., None, :] / mirror[..., :1, None]
    result: Array = root[..., None] * reflection[..., 1:]
    return result


@lru_cache(maxsize=256)
def contrasts(cells: int) -> Array:
    """An orthonormal basis of what adds up to 0, shape (d, d - 1): the factor of equal shares times sqrt(d)."""
    result: Array = np.sqrt(cells) * factor(np.full(cells, 1 / cells))
    result.flags.writeable = False
    return result


def kron(first: Array, second: Array) -> Array:
    """The Kronecker product of the last two axes; numpy's own takes longer than the product does."""
    four = first[..., :, None, :, None] * second[..., None, :, None, :]
    *features, rows, inner_rows, columns, inner_columns = four.shape
    return four.reshape(*features, rows * inner_rows, columns * inner_columns)


def product(first: Array, second: Array) -> Array:
    """The joint shares of what is independent, shape (..., K C), index ``value * C + class``."""
    both = first[..., :, None] * second[..., None, :]
    return both.reshape(*both.shape[:-2], -1)


def times(matrix: Array, vector: Array) -> Array:
    """A matrix, shape (..., r, d), times a vector, shape (..., d)."""
    result: Array = (matrix @ vector[..., None])[..., 0]
    return result
