"""Combining independent estimates of the same thing by inverse variance.

The weights come from the *predicted* variances (number of reports and mechanism only), not from the estimated ones, so
that a weight never depends on the noise it weighs and the pooled estimate stays unbiased.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import SIGNS, Cells, QuestionEstimate, uninformed
from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.mechanisms.analysis import noise_variance, sum_variance
from protocols import Question
from protocols.document.questions import MOMENT, SIGN

Array = NDArray[np.float64]


def pool(estimates: Sequence[QuestionEstimate]) -> Cells:
    """The cells of the same question asked in several campaigns, as one."""
    if len(estimates) == 1:
        return estimates[0].cells
    answered = [e for e in estimates if e.n > 0]
    if not answered:
        return estimates[0].cells
    return weighted([e.cells for e in answered], pool_shares(answered))


def pool_shares(estimates: Sequence[QuestionEstimate]) -> Array:
    """The share that each campaign's estimate of the same question has in the pooled one."""
    weights = np.array([e.n / cell_variance(e) for e in estimates])
    shares: Array = weights / weights.sum()
    return shares


def pool_classes(estimates: Sequence[QuestionEstimate], classes: int, *, shared_records: bool) -> Cells:
    """P(class), shape (k,), from every question that carries the class.

    ``shared_records`` says that the same devices answered all questions (``answers: "all"``): then the records' own
    spread is in every estimate alike and is not reduced by pooling.
    """
    telling = [(e, e.classes) for e in estimates if e.classes is not None and e.n > 0]
    if not telling:
        return uninformed(classes, frequencies=True)
    shares = class_shares([e for e, _ in telling], classes)
    pooled = weighted([c for _, c in telling], shares)
    if not shared_records:
        return pooled
    inside = np.clip(pooled.value, 0.0, 1.0)
    spread = inside * (1 - inside)
    largest = max(e.n for e, _ in telling)
    noise_only = weighted(
        [Cells.normal(c.value, np.maximum(c.variance - spread / e.n, 0.0)) for e, c in telling], shares
    )
    return Cells.normal(pooled.value, noise_only.variance + spread / largest)


def class_shares(estimates: Sequence[QuestionEstimate], classes: int) -> Array:
    """The share that each of these questions, all of which carry the class, has in the pooled P(class)."""
    weights = np.array([e.n / class_variance(e, classes) for e in estimates])
    shares: Array = weights / weights.sum()
    return shares


def weighted(parts: Sequence[Cells], shares: Array) -> Cells:
    """The sum of independent estimates, each times its share."""
    column = shares[:, None]
    value = (column * [part.value for part in parts]).sum(axis=0)
    variance = (column**2 * [part.variance for part in parts]).sum(axis=0)
    return Cells.normal(value, variance)


def cell_variance(estimate: QuestionEstimate) -> float:
    """Predicted n Var of one cell, at equal frequencies."""
    question = estimate.question
    if question.encoding == SIGN:
        members = SIGNS.size
        share = members / question.domain_size
        return question.mechanism.signs_variance(members, share) + share
    return noise_variance(question.mechanism, 1 / question.domain_size) + 1 / question.domain_size


def class_variance(estimate: QuestionEstimate, classes: int) -> float:
    """Predicted n Var of one class's share, at equal classes; or of whatever else as many cells add up to."""
    question = estimate.question
    members = question.domain_size // classes
    spread = (1 - 1 / classes) / classes
    if question.encoding == MOMENT:
        raise ValueError(f"question {question.index} does not carry the class")
    return sum_variance(question.mechanism, members, 1 / classes) + spread


def covariance_with_sum(question: Question, frequencies: Array, total: Array, members: int, *, inside: bool) -> Array:
    """Return n times the covariance of cells at these frequencies with the sum of ``members`` cells, which are together
    as frequent as ``total``; ``inside`` where the cell is one of them.
    """
    p, q, one_true, none_true, noise = analysis_of(question.mechanism).support
    supported, others = q + (p - q) * frequencies, members - inside
    either = (others - inside) * frequencies + total
    together = others * none_true + (one_true - none_true) * either + inside * supported
    covariance: Array = (together - supported * (members * q + (p - q) * total)) / (p - q) ** 2 + inside * noise
    return covariance
