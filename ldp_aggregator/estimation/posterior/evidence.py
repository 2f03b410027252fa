"""What reports tell of classes and of features, as sufficient statistics that add up.

Frequencies f over d cells have, given noisy reports, about the log-likelihood -f' L f / 2 + h' f: L (d, d) is the
information, h (d,) its linear part. Both are sums over questions, mechanisms, campaigns and rounds of a study, so that
nothing has to be pooled. Of a feature d = K C, cell ``value * C + class``. Of many features of one shape the axis of
the features comes first: (..., d, d) and (..., d).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.posterior.factors import contrasts, outer
from ldp_aggregator.estimation.posterior.groups import parts
from ldp_aggregator.mechanisms import facts_of
from protocols import Question
from protocols.document.questions import PAIR
from protocols.mechanisms import AnyMechanism

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """L and h of one table of frequencies, or of many; ``add_cells`` adds to the arrays in place."""

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


def add_cells(information: Array, linear: Array, values: Array, told: Array) -> None:
    """Add unbiased ``values`` of all cells with the information ``told`` about them (:func:`information_of_cells`)."""
    information += told
    linear += told @ values


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
    """What n reports to a question about cells tell of them, shape (..., d, d), the records' own spread included.

    The inverse of the covariance of the unbiased estimate at these frequencies, shape (..., d), among contrasts: that
    cells add up to 1 is known without it. At equal frequencies it is (n / v) (I - J / d), v as in
    :func:`unit_variance`. ``n`` has the shape (...) of questions asked alike.
    """
    cells, reports = question.domain_size, np.asarray(n)[..., None, None]
    if frequencies is None:
        equal: Array = reports / unit_variance(question) * (np.eye(cells) - 1 / cells)
        return equal
    basis = contrasts(cells)
    inverse = np.linalg.inv(basis.T @ covariance_of_cells(question, frequencies) @ basis)
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
    return mechanism.contrast_variance(share, share) / 2 + share


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
        # Of the other questions some tell the classes alone, and noisy sums of moments (``laplace``, ``onebit``) no
        # frequencies; what they tell of moments has its own shrinkage.
        if alike[0].question.kind == PAIR:
            _tell_pairs(evidence, alike)
    for one in prior_questions:
        if one.n > 0 and one.classes is not None:
            value, its = one.classes.value, information_of_classes(one, classes)
            add_cells(evidence.classes.information, evidence.classes.linear, value, its)
    return evidence


def covariance_of_cells(question: Question, frequencies: Array) -> Array:
    """Return n times the covariance of the unbiased estimates of all cells, (..., d, d), at these frequencies."""
    diagonal = np.arange(frequencies.shape[-1])
    p, q, one_true, none_true, noise = facts_of(question.mechanism).support
    support = q + (p - q) * frequencies
    both = none_true + (one_true - none_true) * (frequencies[..., :, None] + frequencies[..., None, :])
    both[..., diagonal, diagonal] = support
    covariance: Array = (both - outer(support, support)) / (p - q) ** 2
    covariance[..., diagonal, diagonal] += noise
    return covariance


def _tell_pairs(evidence: Evidence, alike: Sequence[QuestionEstimate]) -> None:
    """Add the answers to questions about features' values with the class, which were asked alike."""
    names, reports, known = [str(one.question.feature) for one in alike], np.array([one.n for one in alike]), None
    if evidence.frequencies:
        known = np.stack([evidence.frequencies[name] for name in names])
    told = information_of_cells(alike[0].question, reports, known)
    for one, name, its in zip(alike, names, told, strict=True):
        add_cells(evidence.features[name].information, evidence.features[name].linear, one.cells.value, its)
