"""Variances of estimates before anyone is asked, at given frequencies or at even ones.

The noise of the mechanism at the frequency of the cell, the spread of the records themselves (devices are a sample),
and the chance in how many of them draw a question. A cell is a joint probability, P(value, class), before any
post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldp_aggregator.estimation.estimators import SIGNS
from ldp_aggregator.estimation.intervals import Array
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Campaign, Question
from ldp_protocols.document.questions import INDEX, PAIR, PRODUCT, SIGN, VALUE


@dataclass(frozen=True)
class Expectation:
    """First and second moment, per estimated cell, of what one record adds to it before the noise."""

    mean: Array
    second: Array


def even_expectation(campaign: Campaign, question: Question) -> Expectation:
    """Equal classes and values, none of them missing; a quantity is t or 2 t^2 - 1 with t uniform on [-1, 1]."""
    if question.encoding == INDEX:
        feature = campaign.feature_of(question)
        missing = (
            len(campaign.label.classes) if question.kind == PAIR and feature is not None and feature.missing else 0
        )
        present = question.domain_size - missing
        share = np.concatenate([np.full(present, 1 / present), np.zeros(missing)])
        return Expectation(share, share)
    k = 1 if question.kind == PRODUCT else len(campaign.label.classes)
    if question.kind == VALUE:
        mean, second = 0.0, 1 / 3
    elif question.kind == PRODUCT and question.other != question.feature:
        mean, second = 0.0, 1 / 9
    else:
        mean, second = -1 / 3, 7 / 15
    return expectation_of(question, np.full(k, mean / k), np.full(k, second / k), np.full(k, 1 / k))


def expectation_of(question: Question, mean: Array, second: Array, share: Array) -> Expectation:
    """With ``sign`` the value travels as a bit of +1 or -1, whose square is 1 wherever there is one."""
    return Expectation(mean, share if question.encoding == SIGN else second)


def variance_per_answer(question: Question, expected: Expectation) -> Array:
    """N times the variance of each estimated cell of a question with n answers."""
    analysis, mean, second = analysis_of(question.mechanism), expected.mean, expected.second
    if question.encoding == INDEX:
        p, q, *_, noise = analysis.support
        supported = q + (p - q) * mean
        return supported * (1 - supported) / (p - q) ** 2 + noise
    if question.encoding == SIGN:
        signs = np.array([question.mechanism.signs_variance(SIGNS.size, share) for share in second.tolist()])
        return signs + second - mean**2
    return analysis.moment_variance(mean, second)


def answers(campaign: Campaign, devices: int) -> list[float]:
    """Return the number of answers that each question can expect."""
    totals = {question.index: sum(one.weight for one in pool) for pool in campaign.pools for question in pool}
    return [devices * question.weight / totals[question.index] for question in campaign.questions]


def even_variances(campaign: Campaign) -> list[Array]:
    """:func:`variance_per_answer` of every question, every value and class being as likely as any other."""
    return [variance_per_answer(one, even_expectation(campaign, one)) for one in campaign.questions]


def expected_errors(campaign: Campaign, devices: int, variances: Sequence[Array]) -> list[Array]:
    """The standard error of every estimated cell of every question when ``devices`` >= 1 answer, from the variances of
    one answer to each.
    """
    return [
        np.sqrt(variance / number * chance_of_number(question, number, devices))
        for question, variance, number in zip(campaign.questions, variances, answers(campaign, devices), strict=True)
    ]


def chance_of_number(question: Question, number: float, devices: int) -> float:
    """Return E[1 / n] E[n], the number n of reports about a cell being binomial."""
    about = number * analysis_of(question.mechanism).cell_share
    return 1 + (1 - about / devices) / about
