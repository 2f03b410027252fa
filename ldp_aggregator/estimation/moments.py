"""Rebuilding a Gaussian per class from noisy moments.

The questions of a Gaussian feature estimate P(c) E[t | c] and P(c) E[2 t^2 - 1 | c], with t in [-1, 1] the scaled
value. Dividing by the estimated P(c) gives the moments of the class (Yilmaz et al. 2019, section 4.2); where values may
be missing everything is of the records that hold one, and P(c) is P(c, present). A class whose share cannot be told
from zero is ``insufficient``: nothing is divided there, and the moments of all classes together stand in.

For use in a model noisy moments are shrunk towards those of all classes (:func:`shrink_moments`), by the known variance
of their noise. A class mean differs from the common mean by about the spread of the feature, and a class variance from
the common variance by about half of it: with these as the prior, the posterior mean keeps the share tau^2 / (tau^2 +
noise variance) of the difference. With many reports nothing changes; with few a class is not given a confident shape
that is only noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.cells import Z_95, Array, Cells
from ldp_aggregator.estimation.estimators import QuestionEstimate, pool_shares, weighted
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols.document.questions import PRODUCT, SQUARE, VALUE
from ldp_protocols.features import NumericFeature

DEFAULT_VARIANCE_FLOOR: Final = 1e-3
"""Least variance, relative to (high - low)^2: a standard deviation of about 3 % of the range."""

SIGNIFICANT: Final = 2.0
"""A class counts as seen when its share is at least this many standard errors above zero."""

_UNIFORM_VARIANCE: Final = 1 / 3
"""Variance of a value spread evenly over [-1, 1]: what is assumed where nothing is known."""


@dataclass(frozen=True)
class Moments:
    """Mean and variance per class, shape (k,), in the feature's own units, with the variances of these estimates.

    ``insufficient`` marks the classes whose moments are those of all classes together.
    """

    mean: Array
    mean_variance: Array
    variance: Array
    variance_variance: Array
    insufficient: NDArray[np.bool_]

    @property
    def deviation(self) -> Cells:
        """Standard deviation per class; its interval is that of the variance."""
        value, reach = np.sqrt(self.variance), Z_95 * np.sqrt(self.variance_variance)
        low, high = (np.sqrt(np.maximum(self.variance + end, 0.0)) for end in (-reach, reach))
        return Cells(value, self.variance_variance / (4 * self.variance), low, high)

    def to_json(self) -> dict[str, Any]:
        return {
            "mean": self.mean.tolist(),
            "mean_variance": finite(self.mean_variance),
            "variance": self.variance.tolist(),
            "variance_variance": finite(self.variance_variance),
            "insufficient": self.insufficient.tolist(),
        }


@dataclass(frozen=True)
class Present:
    """P(class, present), shape (k,), and P(present), shape (1,): of records that hold a feature's value."""

    of_class: Cells
    whole: Cells


def present_shares(prior: Cells, questions: Sequence[QuestionEstimate]) -> Present:
    """The shares of the records that hold a feature's value, from the questions about it in all campaigns.

    P(class) less P(missing, class), which the value and the square both tell; the two as if they were independent,
    which is right but for the little that a question adds to the pooled P(class).
    """
    answered = [(one, one.missing, one.missing_share) for one in questions if one.n > 0]
    if not answered or any(missing is None for _, missing, _ in answered):
        return Present(prior, Cells.normal(np.ones(1), np.zeros(1)))
    weights = pool_shares([one for one, _, _ in answered])
    of_class = weighted([missing for _, missing, _ in answered if missing is not None], weights)
    whole = weighted([share for _, _, share in answered if share is not None], weights)
    return Present(
        Cells.normal(prior.value - of_class.value, prior.variance + of_class.variance),
        Cells.normal(1 - whole.value, whole.variance),
    )


def rebuild_moments(
    feature: NumericFeature,
    value: Cells,
    square: Cells,
    present: Present,
    *,
    variance_floor: float = DEFAULT_VARIANCE_FLOOR,
) -> Moments:
    """Moments of every class from the sums of values and squares and from the shares they are of, all unbiased, shape
    (k,).

    The mean is clipped to the bounds, the variance to [floor, (1 - mean^2)]; variances of the estimates are first order
    (delta method; class shares, values and squares are taken to be answered by different devices or questions).
    """
    own, whole = present.of_class, present.whole
    insufficient = ~(own.value > SIGNIFICANT * np.sqrt(own.variance))
    whole_known = bool(whole.value[0] > SIGNIFICANT * np.sqrt(whole.variance[0]))
    share = np.where(insufficient, whole.value if whole_known else 1.0, own.value)
    share_variance = np.where(insufficient, whole.variance if whole_known else 0.0, own.variance)
    value_sum, value_noise, square_sum, square_noise = (
        np.where(insufficient, one.sum(), one) for one in (value.value, value.variance, square.value, square.variance)
    )
    mean = value_sum / share
    mean_variance = (value_noise + mean**2 * share_variance) / share**2
    second = (square_sum / share + 1) / 2
    second_variance = (square_noise + (2 * second - 1) ** 2 * share_variance) / (4 * share**2)

    usable = np.isfinite(mean_variance) & np.isfinite(second_variance) & (whole_known | ~insufficient)
    mean = np.where(usable, np.clip(mean, -1.0, 1.0), 0.0)
    spread = np.where(usable, second - mean**2, _UNIFORM_VARIANCE)
    spread_variance = np.full_like(mean, np.inf)
    spread_variance[usable] = second_variance[usable] + 4 * mean[usable] ** 2 * mean_variance[usable]
    floor = 4 * variance_floor
    spread = np.clip(spread, floor, np.maximum(1 - mean**2, floor))
    half_range = (float(feature.high) - float(feature.low)) / 2
    return Moments(
        mean=float(feature.low) + (mean + 1) * half_range,
        mean_variance=mean_variance * half_range**2,
        variance=spread * half_range**2,
        variance_variance=spread_variance * half_range**4,
        insufficient=insufficient | ~usable,
    )


def add_record_spread(estimates: Sequence[QuestionEstimate], prior: Cells) -> tuple[QuestionEstimate, ...]:
    """Add the records' own spread to the variance of noisy-vector moments.

    A Laplace vector's sum says nothing about the spread of the values it adds up. That of ``value`` takes E[t^2 | c],
    which the square question of the feature tells; that of ``square`` takes E[t^4 | c], for which a Gaussian's fourth
    moment stands in, kept within what any distribution on [-1, 1] allows. Other mechanisms' estimates pass unchanged.
    """
    sums = {(e.question.kind, e.question.feature, e.question.other): e.cells.value for e in estimates if e.n > 0}
    return tuple(
        replace(e, cells=Cells.normal(e.cells.value, e.cells.variance + _record_spread(e, sums, prior) / e.n))
        if e.n > 0 and not analysis_of(e.question.mechanism).moments_hold_spread
        else e
        for e in estimates
    )


_Sums = Mapping[tuple[str, str | None, str | None], Array]


def _record_spread(estimate: QuestionEstimate, sums: _Sums, prior: Cells) -> Array:
    """Variance over records of the one-cell vector: `E[1_c v^2] - (E[1_c v])^2`; a product is of all classes."""
    feature, kind = estimate.question.feature, estimate.question.kind
    if kind == PRODUCT:
        return np.maximum(_product_square(feature, estimate.question.other, sums) - estimate.cells.value**2, 0.0)
    share = np.clip(prior.value, 0.0, 1.0)
    squares = sums.get((SQUARE, feature, None), np.zeros_like(share))
    second = np.clip((squares + share) / 2, 0.0, share)
    if kind == SQUARE:
        nonzero = np.maximum(share, 1e-12)
        mean = np.clip(sums.get((VALUE, feature, None), np.zeros_like(share)) / nonzero, -1.0, 1.0)
        second = share * _square_square(mean, second / nonzero)
    return np.maximum(second - estimate.cells.value**2, 0.0)


def _square_square(mean: Array, square: Array) -> Array:
    """`E[(2 t^2 - 1)^2]` of a number in [-1, 1] with this mean and `E[t^2]`."""
    variance = np.maximum(square - mean**2, 0.0)
    fourth = np.clip(3 * variance**2 + 6 * variance * mean**2 + mean**4, square**2, square)
    return 4 * fourth - 4 * square + 1


def _product_square(feature: str | None, other: str | None, sums: _Sums) -> Array:
    """`E[v^2]` of a product in [-1, 1]: `2 t^2 - 1` of a feature with itself; of two features the smaller of their
    squares, which it cannot exceed. A square that nobody was asked for is taken to be 1.
    """
    first, second = (
        np.clip((sums.get((PRODUCT, name, name), np.ones(1)) + 1) / 2, 0.0, 1.0) for name in (feature, other)
    )
    if feature != other:
        return np.minimum(first, second)
    mean = np.clip(sums.get((VALUE, feature, None), np.zeros(1)).sum(keepdims=True), -1.0, 1.0)
    return _square_square(mean, first)


def finite(values: Array) -> list[float | None]:
    """For JSON, which knows no infinity: None stands for it."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


VARIANCE_PRIOR: Final = 0.5
"""Standard deviation of a class variance around the common one, relative to it.

Chosen with the rest of the rule among six variants, by held-out accuracy on five public tables (diabetes, australian,
skin, accelerometer, seeds). It was better on most of their settings, worse on a few, and was not tried on others.
"""


def shrink_moments(
    moments: Moments, feature: NumericFeature, value: Cells, square: Cells, present: Present, *, variance_floor: float
) -> Moments:
    """``moments`` as rebuilt from ``value`` and ``square`` of those ``present``, shrunk towards the common ones."""
    of_all = Present(present.whole, present.whole)
    value, square = (
        Cells.normal(one.value.sum(keepdims=True), one.variance.sum(keepdims=True)) for one in (value, square)
    )
    common = rebuild_moments(feature, value, square, of_all, variance_floor=variance_floor)
    least = variance_floor * (float(feature.high) - float(feature.low)) ** 2
    variance = shrink(
        moments.variance, moments.variance_variance, common.variance, (VARIANCE_PRIOR * common.variance) ** 2
    )
    return replace(
        moments,
        mean=shrink(moments.mean, moments.mean_variance, common.mean, common.variance),
        variance=np.maximum(variance, least),
    )


def shrink(values: Array, noise: Array, common: Array | float, prior: Array | float) -> Array:
    """The posterior mean of values around ``common`` with variance ``prior``; infinite ``noise`` gives ``common``."""
    weight = prior / (prior + noise)
    return common + weight * (values - common)
