"""How many hold no value of a feature, and the frequencies among those who hold one.

Of the cells E_i of a pair question and the share M of its last cells, which say that the value is missing,
r_i = E_i / (1 - M) is P(value, class | present), and to first order

    Var r_i = (Var E_i + r_i^2 Var M + 2 r_i Cov(E_i, M)) / (1 - M)^2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import Cells, QuestionEstimate
from ldp_aggregator.estimation.poisoning.quotients import quotient_reach
from ldp_aggregator.estimation.poisoning.reports import sum_range
from ldp_aggregator.estimation.pooling import pool_shares, weighted
from ldp_aggregator.mechanisms import facts_of
from protocols import Campaign

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """Estimated shares, and the most that one made-up report moves each; infinite where there is no bound."""

    cells: Cells
    per_liar: Array


def missing_shares(campaign: Campaign, questions: Sequence[QuestionEstimate]) -> Mapping[str, Part]:
    """P(missing), shape (1,), by name of every asked feature that may be missing; unbiased, from all questions about
    the feature alone.
    """
    classes = len(campaign.label.classes)
    found = {}
    for feature in campaign.asked:
        about = [one for one in questions if (one.question.feature, one.question.other) == (feature.name, None)]
        told = [(one, one.missing_share) for one in about if one.missing_share is not None]
        if not told:
            continue
        answered = [(one, share) for one, share in told if one.n > 0]
        if not answered:
            found[feature.name] = Part(told[0][1], np.full(1, np.inf))
            continue
        weights = pool_shares([one for one, _ in answered])
        moved = [sum_range(one.question, classes) / one.n for one, _ in answered]
        reach = (weights * moved).max()  # A device answers one question about a feature at most.
        found[feature.name] = Part(weighted([share for _, share in answered], weights), np.full(1, reach))
    return found


def among_present(pair: QuestionEstimate, per_liar: Array, classes: int) -> Part:
    """P(value, class | present), shape (values * k,), as a pair question tells it whose values may be missing."""
    missing = pair.missing_share
    if missing is None:
        raise TypeError(f"question {pair.question.index} is about a feature that is complete")
    here = slice(0, pair.cells.value.size - classes)
    present = 1 - float(missing.value[0])
    size = here.stop
    if not np.isfinite(missing.variance[0]) or present <= 0:
        # Nobody who holds a value is known of.
        low, high = np.zeros(size), np.ones(size)
        return Part(Cells(np.full(size, 1 / size), np.full(size, np.inf), low, high), np.full(size, np.inf))
    value = pair.cells.value[here] / present
    both = _covariance_with_missing(pair, missing, classes)[here]
    spread = pair.cells.variance[here] + value**2 * missing.variance[0] + 2 * value * both
    reach = quotient_reach(value, per_liar[here], np.full(size, present), sum_range(pair.question, classes) / pair.n)
    return Part(Cells.normal(value, np.maximum(spread, 0.0) / present**2), reach)


def _covariance_with_missing(pair: QuestionEstimate, missing: Cells, classes: int) -> Array:
    """The covariance of every cell with the sum of the last ``classes`` ones, for cells that are not among them."""
    cells = np.clip(pair.cells.value, 0.0, 1.0)
    absent = float(np.clip(missing.value[0], 0.0, 1.0))
    p, q, one_true, none_true, _ = facts_of(pair.question.mechanism).support
    together = classes * none_true + (one_true - none_true) * (classes * cells + absent)
    apart = (q + (p - q) * cells) * (classes * q + (p - q) * absent)
    both: Array = (together - apart) / (p - q) ** 2 / pair.n
    return both
