"""Evidence of reports on classes and on features, as sufficient statistics that add up; and the algebra of shares.

Frequencies f over d cells have, given noisy reports, about the log-likelihood -f' L f / 2 + h' f: L (d, d) is the
information, h (d,) its linear part. Both are sums over questions, mechanisms, campaigns and rounds of a study, so that
nothing has to be pooled. Of a feature d = K C, cell ``value * C + class``. Of many features of one shape the axis of
the features comes first: (..., d, d) and (..., d).

P(class), P(value) and P(missing, class) are each drawn towards what is usual by the noise there is. Of a feature that
may be missing, the cells of a question are those of its values and one a class more. Where nothing is missing these
hold nothing but noise; taken at its word it would move all other cells. With mu, shape (C,), for P(missing, class) and
pi for P(class), what is believed is a mixture over t of

    mu ~ N(t pi, T_t),   T_t = t^2 diag(pi) (.9 J + .1 I) diag(pi),

a missing share of about t, much alike in all classes; t = 0 says that nothing is missing. How often features have which
t is learned from all of them together. From then on a feature's cells are those of its values alone, given mu.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.cells import Array
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Question
from ldp_protocols.mechanisms import AnyMechanism


@dataclass(frozen=True)
class Statistics:
    """`l` and `h` of one table of frequencies, or of many."""

    information: Array
    linear: Array


@dataclass(frozen=True)
class FeatureGroup:
    """Features of one shape, with the answered questions about the pairs of each, which have so many ``cells``.

    Of a feature of very many values those with the same number in ``together``, shape (values,), are taken together:
    its ``cells`` are those of the numbers.
    """

    names: Sequence[str]
    questions: Sequence[Sequence[QuestionEstimate]]
    cells: int
    missing: bool
    ordered: bool
    together: NDArray[np.int64] | None = None

    def evidence(self, frequencies: Array | None = None) -> Statistics:
        """Evidence of the answers, with the noise at these ``frequencies``, shape (features, cells), or equal ones."""
        shape = len(self.names), self.cells
        information, linear = np.zeros((*shape, self.cells)), np.zeros(shape)
        alike: dict[AnyMechanism, list[tuple[int, QuestionEstimate]]] = {}
        for place, of_feature in enumerate(self.questions):
            for one in of_feature:
                alike.setdefault(one.question.mechanism, []).append((place, one))
        for answered in alike.values():
            places, reports = [place for place, _ in answered], np.array([one.n for _, one in answered])
            question, sizes = answered[0][1].question, None
            expected = None if frequencies is None else frequencies[places]
            if self.together is not None:
                sizes = self.sums(np.ones(question.domain_size))
                expected = sizes[None] / question.domain_size if expected is None else expected
            added = information_of_cells(question, reports, expected, sizes)
            np.add.at(information, places, added)
            np.add.at(linear, places, times(added, np.stack([self.sums(one.cells.value) for _, one in answered])))
        return Statistics(information, linear)

    @property
    def even(self) -> Array | None:
        """P(value) where values are taken together and any is as frequent as any other, shape (K,); None elsewhere."""
        return None if self.together is None else np.bincount(self.together) / len(self.together)

    def sums(self, cells: Array) -> Array:
        """The sums of a question's cells over the values that are taken together, shape (cells,)."""
        if self.together is None:
            return cells
        together, of_value = self.together, cells.reshape(-1, cells.size // (len(self.together) + self.missing))
        if self.missing:
            together = np.append(together, together.max() + 1)
        found = np.zeros((together.max() + 1, of_value.shape[1]))
        np.add.at(found, together, of_value)
        return found.ravel()


def told_of_classes(telling: Sequence[QuestionEstimate], classes: int) -> Statistics:
    """Information on P(class) of each question, a row each: `n Var` of a unit contrast sums the cells of a class."""
    information, linear = np.zeros((len(telling), classes, classes)), np.zeros((len(telling), classes))
    contrast = np.eye(classes) - 1 / classes
    for place, one in enumerate(telling):
        if one.n > 0 and one.classes is not None:
            members = one.question.domain_size // classes
            precision = one.n / (members * unit_variance(one.question.mechanism))
            information[place] = precision * contrast
            linear[place] = information[place] @ one.classes.value
    return Statistics(information, linear)


def information_of_cells(
    question: Question, n: Array | int, frequencies: Array | None = None, sizes: Array | None = None
) -> Array:
    """Information of n reports on the cells of their question, (..., d, d), the records' own spread included.

    The inverse of the covariance of the unbiased estimate at these frequencies, shape (..., d), among contrasts: that
    cells add up to 1 is known without it. At equal frequencies it is (n / v) (I - J / d), v as in
    :func:`unit_variance`. ``n`` has the shape (...) of questions asked alike. Or on sums of so many cells each
    (``sizes``, shape (d,)), at the sums' frequencies.
    """
    cells, reports = question.domain_size, np.asarray(n)[..., None, None]
    if frequencies is None:
        return reports / unit_variance(question.mechanism) * (np.eye(cells) - 1 / cells)
    basis = contrasts(frequencies.shape[-1])
    inverse = np.linalg.inv(basis.T @ covariance_of_cells(question, frequencies, sizes) @ basis)
    return reports * (basis @ inverse @ basis.T)


@lru_cache(maxsize=1024)
def unit_variance(mechanism: AnyMechanism) -> float:
    """`n Var` of a unit contrast of cells that are equally frequent, the records' own spread included."""
    share = 1 / mechanism.domain_size
    return mechanism.contrast_variance(share, share) / 2 + share


def covariance_of_cells(question: Question, frequencies: Array, sizes: Array | None = None) -> Array:
    """n times the covariance of the unbiased estimates of all cells, (..., d, d), at these frequencies; or of
    sums of so many cells each (``sizes``, shape (d,)).
    """
    diagonal, n = np.arange(frequencies.shape[-1]), np.ones(frequencies.shape[-1]) if sizes is None else sizes
    p, q, one_true, none_true, noise = analysis_of(question.mechanism).support
    support = q * n + (p - q) * frequencies
    crossed = n[:, None] * frequencies[..., None, :]
    both = none_true * np.outer(n, n) + (one_true - none_true) * (crossed + crossed.mT)
    both[..., diagonal, diagonal] += support - none_true * n - 2 * (one_true - none_true) * frequencies
    covariance: Array = (both - support[..., :, None] * support[..., None, :]) / (p - q) ** 2
    covariance[..., diagonal, diagonal] += noise * n
    return covariance


def factor(shares: Array) -> Array:
    """F(m), a factor of the covariance of one draw, shape (..., K, K - 1): F F' = diag(m) - m m'.

    ``shares`` m are above 0, shape (..., K). diag(sqrt m) times the Householder reflection that takes sqrt(m) to a unit
    vector, without that column: the rest of the reflection is an orthonormal basis of what is orthogonal to sqrt(m).
    The columns of F add up to 0.
    """
    root = np.sqrt(shares)
    mirror = root.copy()
    mirror[..., 0] += 1.0  # All entries are positive: no cancellation.
    reflection = np.eye(root.shape[-1]) - mirror[..., :, None] * mirror[..., None, :] / mirror[..., :1, None]
    return root[..., None] * reflection[..., 1:]


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
    return (matrix @ vector[..., None])[..., 0]


_STEPS: Final = 50
_PSEUDO_FEATURES: Final = 2.0
"""Two features of usual scales keep it off zero, where a likelihood alone would take it."""

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
    """P(class), shape (..., C), all possible; ``raw`` before :func:`norm_sub`, with its ``covariance`` (..., C, C)."""

    value: Array
    raw: Array
    covariance: Array


def believed_classes(information: Array, linear: Array, reports: Array | int) -> ClassShares:
    """P(class) as told under a prior as wide as that of uniform shares, with one pseudo-report a class."""
    classes = linear.shape[-1]
    even = np.full(classes, 1 / classes)
    scale = factor(even) / np.sqrt(classes + 1)
    variance = np.linalg.inv(scale.T @ information @ scale + np.eye(classes - 1))
    covariance = scale @ variance @ scale.T
    raw = even + times(covariance, linear - information @ even)
    n = np.asarray(reports)[..., None]
    return ClassShares((n * norm_sub(raw, axis=-1) + 1) / (n + classes), raw, covariance)


def marginal(evidence: Statistics, present: Array, classes: Array, even: Array | None = None) -> tuple[Array, Array]:
    """P(value) of features of one shape, shape (..., K), no value impossible, estimated jointly with a small
    interaction that is thrown away; and how many reports without noise would tell as much, shape (...).

    ``present``, shape (..., 1), is the share of records that hold a value, ``classes``, shape (..., C), P(class) of
    these; ``even``, shape (K,), P(value) before the reports where that is not 1 / K.
    """
    size = evidence.linear.shape[-1] // classes.shape[-1]
    values, even = contrasts(size), np.full(size, 1 / size) if even is None else even
    interaction = kron(np.sqrt(_INTERACTION) * factor(even), factor(classes))
    design = present[..., None] * np.concatenate([kron(values, classes[..., None]), interaction], axis=-1)
    variance = np.linalg.inv(design.mT @ evidence.information @ design + np.eye(design.shape[-1]))
    gain = values @ (variance @ design.mT)[..., : size - 1, :]
    raw = even + times(gain, evidence.linear - times(evidence.information, present * product(even, classes)))
    share = norm_sub(raw, axis=-1)
    of_values = np.diagonal(variance, axis1=-2, axis2=-1)[..., : size - 1]  # The columns of ``values`` are orthonormal.
    effective = ((share * (1 - share)).sum(axis=-1) + 1 / size) / of_values.sum(axis=-1)
    reports = effective[..., None]
    return (reports * share + PSEUDO_REPORTS * even) / (reports + PSEUDO_REPORTS), effective


def shared_scales(logarithms: Sequence[Array], usual: Array) -> list[Array]:
    """The posterior of every feature's scale, shape (features, scales) for those of each shape, given the
    ``logarithms`` of its likelihoods; the weights of the scales are shared by all features (expectation maximisation),
    two pseudo-features among them that have ``usual`` ones.
    """
    if not logarithms:
        return []
    every = np.concatenate(logarithms)
    likelihood, weights = np.exp(every - every.max(axis=1, keepdims=True)), usual
    for _ in range(_STEPS):
        posterior = likelihood * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = (posterior.sum(axis=0) + _PSEUDO_FEATURES * usual) / (len(every) + _PSEUDO_FEATURES)
    found = likelihood * weights
    found /= found.sum(axis=1, keepdims=True)
    return np.split(found, np.cumsum([len(one) for one in logarithms])[:-1])


def absences(evidence: Sequence[Statistics], classes: Array) -> list[Array]:
    """P(missing, class), shape (features, C), at most 98 % of P(class), from the last C cells of the ``evidence``."""
    variances = (
        MISSING[:, None, None] ** 2 * np.outer(classes, classes) * (_ALIKE + (1 - _ALIKE) * np.eye(classes.size))
    )
    means = np.outer(MISSING, classes)
    logarithms, believed = [], []
    for one in evidence:
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
