"""What reports tell of classes and of features, as sufficient statistics that add up.

Frequencies f over d cells have, given noisy reports, about the log-likelihood -f' L f / 2 + h' f: L (d, d) is the
information, h (d,) its linear part. Both are sums over questions, mechanisms, campaigns and rounds of a study, so that
nothing has to be pooled. Of a feature d = K C, cell ``value * C + class``. Of many features of one shape the axis of
the features comes first: (..., d, d) and (..., d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.joint import marginal_of, sign_of
from ldp_aggregator.estimation.posterior.factors import contrasts, outer
from ldp_aggregator.estimation.posterior.groups import parts
from ldp_aggregator.estimation.support import noise_variance, support_of
from protocols import Question
from protocols.document.questions import MARGINAL, PAIR, TRIPLE, XOR
from protocols.mechanisms import AnyMechanism, PureMechanism

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """L and h of one table of frequencies, or of many; ``add_cells`` and ``add_sign`` add to the arrays in place."""

    information: Array
    linear: Array

    @classmethod
    def none(cls, cells: int) -> Statistics:
        """What no report tells."""
        return cls(np.zeros((cells, cells)), np.zeros(cells))

    @classmethod
    def stacked(cls, tables: Sequence[Statistics]) -> Statistics:
        """Those of tables of one shape, as one with an axis for them."""
        return cls(np.stack([one.information for one in tables]), np.stack([one.linear for one in tables]))


@dataclass(frozen=True)
class Evidence:
    """Of the classes, shape (C,), and by name of every discrete feature, shape (K C,).

    ``frequencies`` are a feature's cells as far as they are known: the noise depends on them. Where there are none, all
    cells of all features are taken to be as frequent.
    """

    classes: Statistics
    features: Mapping[str, Statistics]
    frequencies: Mapping[str, Array] = field(default_factory=dict)


Teller = Callable[[Evidence, Sequence[QuestionEstimate]], None]
"""Adds what the reports to questions that were asked alike (:func:`asked_alike`) tell of features."""


def add_cells(information: Array, linear: Array, values: Array, told: Array) -> None:
    """Add unbiased ``values`` of all cells with the information ``told`` about them (:func:`information_of_cells`)."""
    information += told
    linear += told @ values


def add_sign(information: Array, linear: Array, signs: Array, n: int, total: float, gain: float) -> None:
    """Add n randomised bits about a sign: ``signs`` a has +-1 for every cell, ``total`` S is the sum of the reported
    signs, and ``gain`` t = tanh(epsilon / 2) what a report keeps of the true one.

    L += n t^2 a a', h += t S a, for E[S / n] = t a' f and a reported sign's variance of about 1.
    """
    information += n * gain**2 * np.outer(signs, signs)
    linear += gain * total * signs


def asked_alike(questions: Iterable[QuestionEstimate]) -> list[Sequence[QuestionEstimate]]:
    """The questions that anybody answered, those of one kind and mechanism together: reports to them are alike. Where
    they have many cells, not all of them at once.
    """
    found: dict[tuple[str, AnyMechanism], list[QuestionEstimate]] = {}
    for one in questions:
        if one.n > 0:
            found.setdefault((one.question.kind, one.question.mechanism), []).append(one)
    return [some for alike in found.values() for some in parts(alike, alike[0].question.domain_size)]


def information_of_cells(question: Question, n: Array | int, frequencies: Array | None = None) -> Array:
    """What n reports to a question about cells tell of them, shape (..., d, d), the records' own spread included; of a
    triple, of either feature's cells with the class.

    The inverse of the covariance of the unbiased estimate at these frequencies, shape (..., d), among contrasts: that
    cells add up to 1 is known without it. At equal frequencies it is (n / v) (I - J / d), v as in
    :func:`unit_variance`. ``n`` has the shape (...) of questions asked alike.
    """
    members = 2 if question.kind == TRIPLE else 1
    cells, reports = question.domain_size // members, np.asarray(n)[..., None, None]
    if frequencies is None:
        equal: Array = reports / (members * unit_variance(question)) * (np.eye(cells) - 1 / cells)
        return equal
    basis = contrasts(cells)
    inverse = np.linalg.inv(basis.T @ _covariance(question, frequencies) @ basis)
    told: Array = reports * (basis @ inverse @ basis.T)
    return told


def information_of_classes(estimate: QuestionEstimate, classes: int) -> Array:
    """What a question about cells tells of P(class): n Var of a unit contrast of class sums is that of K cells."""
    members = estimate.question.domain_size // classes
    precision = estimate.n / (members * unit_variance(estimate.question))
    told: Array = precision * (np.eye(classes) - 1 / classes)
    return told


def unit_variance(question: Question) -> float:
    """N Var of a unit contrast of a question's cells where all are as frequent, the records' own spread included."""
    return _unit_variance(question.mechanism)


@lru_cache(maxsize=1024)
def _unit_variance(mechanism: AnyMechanism) -> float:
    share = 1 / mechanism.domain_size
    if isinstance(mechanism, PureMechanism):
        return mechanism.contrast_variance(share, share) / 2 + share
    noise: float = mechanism.noise_variance(share)
    return noise + share


def gather(
    questions: Iterable[QuestionEstimate],
    prior_questions: Iterable[QuestionEstimate],
    classes: int,
    sizes: Mapping[str, int],
    frequencies: Mapping[str, Array] | None = None,
) -> Evidence:
    """What the answers to ``questions`` tell of features (name to number of values), and those to ``prior_questions``
    of the classes. ``frequencies``: see :class:`Evidence`.
    """
    features = {name: Statistics.none(size * classes) for name, size in sizes.items()}
    evidence = Evidence(Statistics.none(classes), features, frequencies or {})
    for alike in asked_alike(questions):
        if alike[0].question.kind in TELLERS:
            TELLERS[alike[0].question.kind](evidence, alike)
    for one in prior_questions:
        if one.n > 0 and one.classes is not None:
            value, its = one.classes.value, information_of_classes(one, classes)
            add_cells(evidence.classes.information, evidence.classes.linear, value, its)
    return evidence


def _covariance(question: Question, frequencies: Array) -> Array:
    """N times the covariance of the unbiased estimates of all cells, or of all sums of as many cells, (..., d, d)."""
    mechanism, cells = question.mechanism, frequencies.shape[-1]
    members, every, diagonal = question.domain_size // cells, np.eye(cells), np.arange(cells)
    if not isinstance(mechanism, PureMechanism):
        spread = frequencies[..., None] * every - outer(frequencies, frequencies)
        noisy: Array = spread + members * noise_variance(mechanism, 0.0) * every
        return noisy
    p, q, one_true, none_true = support_of(mechanism)
    support = members * q + (p - q) * frequencies
    pairs = frequencies[..., :, None] + frequencies[..., None, :]
    both = members**2 * none_true + members * (one_true - none_true) * pairs
    others = members * none_true + 2 * frequencies * (one_true - none_true)  # Of a sum's own cells, for each of them.
    both[..., diagonal, diagonal] = support + (members - 1) * others
    covariance: Array = (both - outer(support, support)) / (p - q) ** 2
    return covariance


def _tell_pairs(evidence: Evidence, alike: Sequence[QuestionEstimate]) -> None:
    """A feature's values with the class."""
    _tell_tables(evidence, [(one, str(one.question.feature), one.cells.value) for one in alike])


def _tell_triples(evidence: Evidence, alike: Sequence[QuestionEstimate]) -> None:
    """The values of either feature with the class."""
    members = [(one, str(name)) for one in alike for name in (one.question.feature, one.question.other)]
    _tell_tables(evidence, [(one, name, marginal_of(one, name).value) for one, name in members])


def _tell_tables(evidence: Evidence, tables: Sequence[tuple[QuestionEstimate, str, Array]]) -> None:
    """Unbiased cells of features' tables, by the estimate they are of, and the feature."""
    reports, known = np.array([one.n for one, _, _ in tables]), None
    if evidence.frequencies:
        known = np.stack([evidence.frequencies[name] for _, name, _ in tables])
    told = information_of_cells(tables[0][0].question, reports, known)
    for (_, name, value), its in zip(tables, told, strict=True):
        add_cells(evidence.features[name].information, evidence.features[name].linear, value, its)


def _tell_signs(evidence: Evidence, alike: Sequence[QuestionEstimate]) -> None:
    """A bit about the values and the class."""
    for one in alike:
        statistics, sign = evidence.features[str(one.question.feature)], sign_of(one)
        add_sign(statistics.information, statistics.linear, sign.signs, sign.n, sign.total, sign.gain)


TELLERS: Final[Mapping[str, Teller]] = {
    PAIR: _tell_pairs,
    TRIPLE: _tell_triples,
    XOR: _tell_signs,
    MARGINAL: _tell_signs,
}
"""What each kind of question tells of discrete features. Others tell the classes alone, or, as noisy sums of moments
(``laplace``, ``onebit``), no frequencies; what they tell of moments has its own shrinkage.
"""
