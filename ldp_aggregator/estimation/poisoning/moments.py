"""How far lying devices can move the mean and the variance of a Gaussian feature.

The mean of a class is a quotient s / P of two estimates. Lies move s by at most a and P by at most h; with P > h the
quotient moves to (s + ds) / (P + dP), and

    |(s + ds) / (P + dP) - s / P| = |ds - (s / P) dP| / (P + dP) <= (a + |s / P| h) / (P - h),

reached by ds = a, dP = -h (s >= 0). With P <= h the denominator may be zero, and no bound exists: unbounded. That is so
already where lies can make the class ``insufficient``, or sufficient, whose moments come from elsewhere then. (Clipping
keeps every mean and variance in the feature's range: unbounded means anywhere in it.)

Everything beyond the one quotient, square and clip, is computed with intervals, from the intervals that
s, the sum of squares, P and their variances can lie in: with no lies they are points and give the estimate itself. A
single device that answers one question only (``answers: "one"``) has lied to the value, or to the square, or to
something else that tells P: each is computed, and the worst counts. Of more devices, and where a device answers
everything, each is taken to have lied to all of them at once, which is sound, and up to about three times too cautious
where a device answers one question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import SIGNS, Cells, QuestionEstimate
from ldp_aggregator.estimation.moments import SIGNIFICANT, Moments, finite
from ldp_aggregator.estimation.poisoning.intervals import Interval
from ldp_aggregator.estimation.poisoning.lies import Lies, Round
from ldp_aggregator.estimation.poisoning.reports import sum_range
from ldp_aggregator.estimation.poisoning.shares import PresentReach, present_reach, sum_of
from ldp_aggregator.estimation.pooling import pool_shares
from ldp_aggregator.estimation.support import support_of
from protocols.document.questions import SQUARE, VALUE
from protocols.document.schema import ContinuousFeature
from protocols.mechanisms import LaplaceVector, OneBit, PureMechanism

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MomentsReach:
    """The most that mean and variance of every class can have been moved, shape (k,), infinite where unbounded."""

    mean: Array
    variance: Array

    def to_json(self) -> dict[str, Any]:
        return {"mean_per_liar": finite(self.mean), "variance_per_liar": finite(self.variance)}


class _Sums(NamedTuple):
    """P(class) E[v | class] of value and square, with the variances of these estimates."""

    value: Interval
    value_variance: Interval
    square: Interval
    square_variance: Interval

    def where(self, chosen: NDArray[np.bool_]) -> _Sums:
        """Those of all classes together where a class is not ``chosen``."""
        return _Sums(*(cells.where(chosen, cells.sum()) for cells in self))


class _Rebuilt(NamedTuple):
    """Moments in units of t, as in ``rebuild_moments``; ``bounded`` marks the classes for which they hold."""

    mean: Interval
    mean_variance: Interval
    variance: Interval
    variance_variance: Interval
    bounded: NDArray[np.bool_]


def moments_reach(
    feature: ContinuousFeature,
    rounds: Sequence[Round],
    moments: Moments,
    shares: Cells,
    share_noise: Interval,
    lies: Sequence[Lies],
    *,
    variance_floor: float,
) -> MomentsReach:
    """How far the worst of ``lies`` moves ``moments``, which ``rounds`` and ``shares`` gave."""
    if not any(one.value.n for one in rounds) or not any(one.square.n for one in rounds):
        unbounded = np.full_like(moments.mean, np.inf)
        return MomentsReach(unbounded, unbounded)
    floor = 4 * variance_floor
    liars = max(max(lie.value, lie.square) for lie in lies)
    with np.errstate(invalid="ignore"):  # Infinite variances; what they lead to is not used.
        found = []
        for lie in lies:
            lied = [pair for one in rounds for pair in ((one.value, lie.value), (one.square, lie.square))]
            present = present_reach(lied, liars, Interval.around(shares.value, lie.share), share_noise)
            found.append(_rebuilt(rounds, lie, liars, present, floor))
    half = (float(feature.high) - float(feature.low)) / 2
    mean = reduce(Interval.hull, (one.mean for one in found))
    variance = reduce(Interval.hull, (one.variance for one in found))
    bounded = np.logical_and.reduce([one.bounded for one in found])
    centre = (moments.mean - float(feature.low)) / half - 1
    return MomentsReach(
        np.where(bounded, mean.reach(centre) * half, np.inf),
        np.where(bounded, variance.reach(moments.variance / half**2) * half**2, np.inf),
    )


def _rebuilt(rounds: Sequence[Round], lie: Lies, liars: int, present: PresentReach, floor: float) -> _Rebuilt:
    """``rebuild_moments`` of intervals."""
    sums = _Sums(*_pooled(rounds, VALUE, lie.value, liars), *_pooled(rounds, SQUARE, lie.square, liars))
    share, noise, whole, whole_noise = present
    sure = share.low > SIGNIFICANT * np.sqrt(noise.high)
    never = share.high <= SIGNIFICANT * np.sqrt(noise.low)
    known = bool(whole.low[0] > SIGNIFICANT * np.sqrt(whole_noise.high[0]))
    if not known:  # Nothing can stand in for a class, nor for all of them.
        whole, whole_noise = Interval.exactly(np.ones(1)), Interval.exactly(np.zeros(1))
    own = _moments(sums.where(sure), share.where(sure, whole), noise.where(sure, whole_noise), floor)
    return own._replace(bounded=own.bounded & (sure | (never & known)))


def _moments(sums: _Sums, share: Interval, noise: Interval, floor: float) -> _Rebuilt:
    mean = sums.value / share
    mean_variance = (sums.value_variance + mean.square() * noise) / share.square()
    ratio = sums.square / share
    second = (ratio + 1.0) * 0.5
    second_variance = (sums.square_variance + ratio.square() * noise) / (share.square() * 4.0)
    bounded = np.isfinite(mean_variance.high) & np.isfinite(second_variance.high)
    mean = mean.clip(-1.0, 1.0)
    spread_variance = second_variance + mean.square() * 4.0 * mean_variance
    spread = (second - mean.square()).clip(floor, (-mean.square() + 1.0).maximum(floor))
    return _Rebuilt(mean, mean_variance, spread, spread_variance, bounded)


def _pooled(rounds: Sequence[Round], kind: str, lied: int, liars: int) -> tuple[Interval, Interval]:
    """One question's cells over all campaigns when ``lied`` devices lied to it, and their variance when ``liars`` lied
    to everything that it depends on.
    """
    answered = [(one, *one.asked(kind)) for one in rounds if one.asked(kind)[0].n > 0]
    weights = pool_shares([e for _, e, _ in answered])
    cells = [
        Interval.around(e.cells.value, lied * reach) * w for (_, e, reach), w in zip(answered, weights, strict=True)
    ]
    variances = [_cell_variance(one, kind, liars) * w**2 for (one, _, _), w in zip(answered, weights, strict=True)]
    return sum_of(cells), sum_of(variances)


def _cell_variance(one: Round, kind: str, liars: int) -> Interval:
    """The variance of a question's cells as ``ldp_aggregator.estimation.estimators`` and ``add_record_spread``
    estimate it.
    """
    estimate, per_liar = one.asked(kind)
    mechanism, n = estimate.question.mechanism, estimate.n
    value = Interval.around(estimate.cells.value, liars * per_liar)
    if isinstance(mechanism, LaplaceVector):
        return (_record_spread(one, estimate, value, liars) + mechanism.noise_variance(0.0)) * (1 / n)
    if isinstance(mechanism, OneBit):
        gain = 2 * float(mechanism.p) - 1
        drawn = np.round(2 / (gain * per_liar))
        second = -value.square().minimum(1.0) + 1 / gain**2
        found = second / Interval(np.maximum(drawn - liars - 1, 1.0), np.maximum(drawn + liars - 1, 1.0))
        return Interval(found.low, np.where(drawn > liars, found.high, np.inf))
    if isinstance(mechanism, PureMechanism) and estimate.classes is not None:
        p, q, one_true, none_true = support_of(mechanism)
        members = SIGNS.size
        reach = liars * sum_range(estimate.question, members) / n
        here = estimate.classes.value - (0.0 if estimate.missing is None else estimate.missing.value)
        share = Interval.around(here, reach)
        both = share.clip(0.0, 1.0) * (2 * (one_true - none_true)) + members * none_true
        second = (share * (p - q) + members * q - both) * (1 / (p - q) ** 2)
        return (second - value.square()).maximum(0.5 / n) * (1 / n)
    raise TypeError(f"no bound for a value asked with {mechanism.name}")


def _record_spread(one: Round, estimate: QuestionEstimate, cells: Interval, liars: int) -> Interval:
    """``_record_spread`` of ``ldp_aggregator.estimation.moments``, of intervals."""
    share = Interval.around(one.prior.value, liars * one.prior_per_liar).clip(0.0, 1.0)
    squares = Interval.around(one.square.cells.value, liars * one.square_per_liar)
    second = ((squares + share) * 0.5).clip(0.0, share)
    if estimate.question.kind == SQUARE:
        nonzero = share.maximum(1e-12)
        values = Interval.around(one.value.cells.value, liars * one.value_per_liar)
        mean = (values / nonzero).clip(-1.0, 1.0).square()
        square = (second / nonzero).clip(0.0, 1.0)
        variance = (square - mean).maximum(0.0)
        fourth = (variance.square() * 3.0 + variance * mean * 6.0 + mean.square()).clip(square.square(), square)
        second = share * (fourth * 4.0 - square * 4.0 + 1.0)
    return (second - cells.square()).maximum(0.0)
