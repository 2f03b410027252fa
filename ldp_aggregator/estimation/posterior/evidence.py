"""What reports tell of classes and of features, as sufficient statistics that add up.

Frequencies f over d cells have, given noisy reports, about the log-likelihood -f' L f / 2 + h' f: L (d, d) is the
information, h (d,) its linear part. Both are sums over questions, mechanisms, campaigns and rounds of a study, so that
nothing has to be pooled. Of a feature d = K C, cell ``value * C + class``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.joint import marginal_of, sign_of
from ldp_aggregator.estimation.posterior.factors import contrasts
from protocols import Question
from protocols.document.questions import INDEX, MARGINAL, PAIR, SIGN, TRIPLE, XOR
from protocols.mechanisms import AnyMechanism, PureMechanism

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """L and h of one table of frequencies; ``add_cells`` and ``add_sign`` add to the arrays in place."""

    information: Array
    linear: Array

    @classmethod
    def none(cls, cells: int) -> Statistics:
        """What no report tells."""
        return cls(np.zeros((cells, cells)), np.zeros(cells))


@dataclass(frozen=True)
class Evidence:
    """Of the classes, shape (C,), and by name of every discrete feature, shape (K C,).

    ``frequencies`` are a feature's cells as far as they are known: the noise depends on them. Where there are none, all
    cells are taken to be as frequent.
    """

    classes: Statistics
    features: Mapping[str, Statistics]
    frequencies: Mapping[str, Array] = field(default_factory=dict)


Teller = Callable[[Evidence, QuestionEstimate, bool], None]
"""Adds what the reports to one question tell; with False nothing about the classes."""


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


def information_of_cells(question: Question, n: int, frequencies: Array | None = None) -> Array:
    """What n reports to a question about cells tell of them, shape (d, d), the records' own spread included; of a
    triple, of either feature's cells with the class.

    The inverse of the covariance of the unbiased estimate at these frequencies, among contrasts: that cells add up to 1
    is known without it. At equal frequencies it is (n / v) (I - J / d), v as in :func:`unit_variance`.
    """
    members = 2 if question.kind == TRIPLE else 1
    cells = question.domain_size // members
    if frequencies is None:
        return n / (members * unit_variance(question)) * (np.eye(cells) - 1 / cells)
    basis = contrasts(cells)
    inverse = np.linalg.inv(basis.T @ _covariance(question, frequencies) @ basis)
    told: Array = n * (basis @ inverse @ basis.T)
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
    """What the answers to ``questions`` tell of features (name to number of values), and those among
    ``prior_questions`` of the classes. ``frequencies``: see :class:`Evidence`.
    """
    features = {name: Statistics.none(size * classes) for name, size in sizes.items()}
    evidence = Evidence(Statistics.none(classes), features, frequencies or {})
    telling = {id(one) for one in prior_questions}
    for one in questions:
        if one.n > 0 and one.question.encoding in TELLERS:
            TELLERS[one.question.encoding](evidence, one, id(one) in telling)
    return evidence


def information_of_classes(estimate: QuestionEstimate, classes: int) -> Array:
    """What a question about cells tells of P(class): n Var of a unit contrast of class sums is that of K cells."""
    members = estimate.question.domain_size // classes
    precision = estimate.n / (members * unit_variance(estimate.question))
    told: Array = precision * (np.eye(classes) - 1 / classes)
    return told


def _covariance(question: Question, frequencies: Array) -> Array:
    """N times the covariance of the unbiased estimates of all cells, or of all sums of as many cells."""
    mechanism, diagonal = question.mechanism, np.arange(frequencies.size)
    members = question.domain_size // frequencies.size
    if not isinstance(mechanism, PureMechanism):
        spread = np.diag(frequencies) - np.outer(frequencies, frequencies)
        return spread + members * mechanism.noise_variance(0.0) * np.eye(frequencies.size)
    p, q, one_true, none_true = _support(mechanism)
    support = members * q + (p - q) * frequencies
    both = members**2 * none_true + members * (one_true - none_true) * np.add.outer(frequencies, frequencies)
    others = members * none_true + 2 * frequencies * (one_true - none_true)  # Of a sum's own cells, for each of them.
    both[diagonal, diagonal] = support + (members - 1) * others
    covariance: Array = (both - np.outer(support, support)) / (p - q) ** 2
    return covariance


@lru_cache(maxsize=1024)
def _support(mechanism: PureMechanism) -> tuple[float, float, float, float]:
    """p, q and :attr:`PureMechanism.joint_support` as doubles: fractions take their time."""
    one_true, none_true = mechanism.joint_support
    return float(mechanism.p), float(mechanism.q), float(one_true), float(none_true)


def _tell_cells(evidence: Evidence, estimate: QuestionEstimate, classes_too: bool) -> None:
    """The label, or a feature's values with the class."""
    name = estimate.question.feature
    if estimate.question.kind == PAIR and name is not None:
        statistics = evidence.features[name]
        told = information_of_cells(estimate.question, estimate.n, evidence.frequencies.get(name))
        add_cells(statistics.information, statistics.linear, estimate.cells.value, told)
    if estimate.question.kind == TRIPLE:
        for one in (estimate.question.feature, estimate.question.other):
            if one is not None:
                statistics = evidence.features[one]
                told = information_of_cells(estimate.question, estimate.n, evidence.frequencies.get(one))
                add_cells(statistics.information, statistics.linear, marginal_of(estimate, one).value, told)
    if estimate.question.kind in (XOR, MARGINAL) and name is not None:
        statistics, sign = evidence.features[name], sign_of(estimate)
        add_sign(statistics.information, statistics.linear, sign.signs, sign.n, sign.total, sign.gain)
    if classes_too:
        _tell_classes(evidence, estimate)


def _tell_bits(evidence: Evidence, estimate: QuestionEstimate, classes_too: bool) -> None:
    """A Gaussian feature's (class, bit) tells the class; what it tells of moments has its own shrinkage."""
    if classes_too:
        _tell_classes(evidence, estimate)


def _tell_classes(evidence: Evidence, estimate: QuestionEstimate) -> None:
    if estimate.classes is not None:
        value = estimate.classes.value
        told = information_of_classes(estimate, value.size)
        add_cells(evidence.classes.information, evidence.classes.linear, value, told)


TELLERS: Final[dict[str, Teller]] = {INDEX: _tell_cells, SIGN: _tell_bits}
"""What each encoding of an answer tells. Noisy sums of moments (``laplace``, ``onebit``) tell no frequencies."""
