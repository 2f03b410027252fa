"""What shares of classes, and of those who hold a value, can become when devices lie; and the variances of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import Cells, QuestionEstimate
from ldp_aggregator.estimation.poisoning.intervals import Interval
from ldp_aggregator.estimation.poisoning.reports import class_range, sum_range
from ldp_aggregator.estimation.pooling import class_shares, pool_shares
from ldp_aggregator.estimation.support import sum_variance
from protocols.mechanisms import PureMechanism

Array = NDArray[np.float64]


class PresentReach(NamedTuple):
    """P(class, present) and P(present), with the variances of these estimates."""

    share: Interval
    noise: Interval
    whole: Interval
    whole_noise: Interval


def share_variance(
    estimates: Sequence[QuestionEstimate], shares: Cells, classes: int, liars: int, *, shared_records: bool
) -> Interval:
    """What the variance of the pooled P(class) can become when ``liars`` lie to every question (``pool_classes``)."""
    telling = [(e, e.classes) for e in estimates if e.classes is not None and e.n > 0]
    if not telling:
        return Interval.exactly(shares.variance)
    weights = class_shares([e for e, _ in telling], classes)
    moved = [Interval.around(c.value, liars * class_range(e.question, classes) / e.n) for e, c in telling]
    inside = [one.clip(0.0, 1.0) for one in moved]
    variances = [
        (_class_noise(e, classes, f) + spread_of(f) + 0.5 / e.n) * (1 / e.n)
        for (e, _), f in zip(telling, inside, strict=True)
    ]
    if not shared_records:
        return sum_of(v * w**2 for v, w in zip(variances, weights, strict=True))
    pooled = sum_of(one * w for one, w in zip(moved, weights, strict=True))
    spread = spread_of(pooled.clip(0.0, 1.0))
    noise = [
        (v - spread * (1 / e.n)).maximum(0.0) * w**2 for (e, _), v, w in zip(telling, variances, weights, strict=True)
    ]
    return sum_of(noise) + spread * (1 / max(e.n for e, _ in telling))


def present_reach(
    lied: Sequence[tuple[QuestionEstimate, int]], liars: int, share: Interval, noise: Interval
) -> PresentReach:
    """``present_shares`` of intervals, from the questions about a feature and how many lied to each; ``share`` and
    ``noise`` are those of P(class), and variances are those when ``liars`` lied.
    """
    told = [(one, lies) for one, lies in lied if one.n > 0]
    of_class = [(one.missing, lies, one) for one, lies in told if one.missing is not None]
    whole = [(one.missing_share, lies, one) for one, lies in told if one.missing_share is not None]
    if not of_class:
        return PresentReach(share, noise, Interval.exactly(np.ones(1)), Interval.exactly(np.zeros(1)))
    weights = pool_shares([one for one, _ in told])
    missing, missing_noise = _pooled_sums(of_class, weights, 1, liars)
    absent, absent_noise = _pooled_sums(whole, weights, share.low.size, liars)
    return PresentReach(share - missing, noise + missing_noise, -absent + 1.0, absent_noise)


def _pooled_sums(
    told: Sequence[tuple[Cells, int, QuestionEstimate]], weights: Array, members: int, liars: int
) -> tuple[Interval, Interval]:
    """Shares of so many cells together, and their variances."""
    parts, variances = [], []
    for (cells, lies, one), weight in zip(told, weights, strict=True):
        moved = sum_range(one.question, members) / one.n
        parts.append(Interval.around(cells.value, lies * moved) * weight)
        inside = Interval.around(cells.value, liars * moved).clip(0.0, 1.0)
        noise = _sum_noise(one, members, inside) + spread_of(inside) + 0.5 / one.n
        variances.append(noise * (weight**2 / one.n))
    return sum_of(parts), sum_of(variances)


def _class_noise(estimate: QuestionEstimate, classes: int, share: Interval) -> Interval:
    """N times the noise variance of a class's share."""
    return _sum_noise(estimate, estimate.question.domain_size // classes, share)


def _sum_noise(estimate: QuestionEstimate, members: int, share: Interval) -> Interval:
    """N times the noise variance of the share of so many cells together, which is affine in the share."""
    mechanism = estimate.question.mechanism
    if isinstance(mechanism, PureMechanism):
        none, every = (sum_variance(mechanism, members, f) for f in (0.0, 1.0))
        return share * (every - none) + none
    noise: Any = mechanism.noise_variance(0.0)
    return Interval.exactly(np.full_like(share.low, members * noise))


def sum_of(parts: Iterable[Interval]) -> Interval:
    return reduce(lambda one, other: one + other, parts)


def spread_of(share: Interval) -> Interval:
    """F (1 - f): largest at 1/2, least at an end."""
    ends = share.low * (1 - share.low), share.high * (1 - share.high)
    middle = (share.low < 0.5) & (share.high > 0.5)
    return Interval(np.minimum(*ends), np.where(middle, 0.25, np.maximum(*ends)))
