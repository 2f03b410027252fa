"""Bounds of what lying devices do to a quotient of two estimates: a share of a share, and the mean of a class.

Lies move s by at most a and P by at most h. With P > h the quotient moves to (s + ds) / (P + dP), and

    |(s + ds) / (P + dP) - s / P| = |ds - (s / P) dP| / (P + dP) <= (a + |s / P| h) / (P - h),

reached by ds = a, dP = -h (s >= 0). With P <= h the denominator may be zero, and no bound exists. A quotient of linear
functions of (a, h) is largest at a corner: devices that answer one question each move the mean furthest where all of
them lie to the same one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import Cells, QuestionEstimate, sums_of_cells
from ldp_aggregator.estimation.moments import SIGNIFICANT, present_shares
from ldp_aggregator.estimation.poisoning.report_bounds import share_moves, sum_range
from ldp_aggregator.estimation.pooling import pool_classes, pool_shares
from protocols.document.questions import SQUARE, VALUE
from protocols.document.schema import ContinuousFeature

if TYPE_CHECKING:
    from ldp_aggregator.estimation.estimates import Estimates

Array = NDArray[np.float64]


def quotient_reach(quotient: Array, moved: Array, whole: Array, of_whole: float) -> Array:
    """Return the most that a quotient moves when its numerator moves by ``moved`` and its denominator ``whole`` by
    ``of_whole`` at most; infinite where nothing bounds it.
    """
    bounded, reach = whole > of_whole, np.full(quotient.shape, np.inf)
    reach[bounded] = (moved[bounded] + np.abs(quotient[bounded]) * of_whole) / (whole[bounded] - of_whole)
    return reach


def mean_reach(found: Estimates, feature: ContinuousFeature, liars: int) -> Array:
    """Return the most that so many liars, one at least, move a Gaussian feature's mean in every class, shape (k,).

    Unbounded where the class is insufficient, or where lies can make it so: its mean is that of all classes then. (A
    mean stays in the feature's range: unbounded means anywhere in it.)
    """
    asked = [found.asking(feature.name, kind) for kind in (VALUE, SQUARE)]
    of_value, of_square = (liars * found.per_liar[one.question.index] for one in asked)
    share = present_shares(found.class_prior, asked).of_class.value
    noise = _highest_noise(found, liars)
    moves = liars * share_moves(found.questions, share.size)
    answered = [one for one in asked if one.n > 0]
    for one, weight in zip(answered, pool_shares(answered), strict=True):
        if one.missing is not None:
            moves[one.question.index] += weight * liars * sum_range(one.question, 1) / one.n
            noise = noise + weight**2 * _highest_variance(one, one.missing, 1, liars)
    sums, worst = asked[0].cells, float(moves.max())
    ways = [(of_value, float(moves[asked[0].question.index])), (np.zeros_like(share), worst)]
    if found.campaign.privacy.answers == "all":
        worst = float(moves.sum())
        ways = [(of_value, worst)]
    # Lies that move a square by its whole range leave nothing of it: no moments are told then.
    told = np.isfinite(sums.variance) & np.isfinite(asked[1].cells.variance) & (of_square < 2)
    sure = told & (share - worst > SIGNIFICANT * np.sqrt(noise))
    ends = []
    with np.errstate(divide="ignore", invalid="ignore"):  # Of classes that are not sure.
        for a, h in ways:
            low, high = sums.value - a, sums.value + a
            ends += [low / (share + np.sign(low) * h), high / (share - np.sign(high) * h)]
        reach = np.abs(np.clip(ends, -1.0, 1.0) - np.clip(sums.value / share, -1.0, 1.0)).max(axis=0)
    return np.where(sure, reach, np.inf) * (float(feature.high) - float(feature.low)) / 2


def _highest_noise(found: Estimates, liars: int) -> Array:
    """Return the most that the variance of the pooled P(class) can become: every question's the highest, and shares as
    near to one half as lies can bring them, where the records' own spread is the largest.
    """
    classes, moved = found.class_prior.value.size, liars * found.class_prior_per_liar
    middle = np.clip(0.5, *(np.clip(found.class_prior.value + end, 0.0, 1.0) for end in (-moved, moved)))
    lied = []
    for one in found.questions:
        if one.classes is not None and one.n > 0:
            variance = _highest_variance(one, one.classes, one.question.domain_size // classes, liars)
            lied.append(replace(one, classes=Cells.normal(middle, variance)))
    return pool_classes(lied, classes, shared_records=found.campaign.privacy.answers == "all").variance


def _highest_variance(one: QuestionEstimate, cells: Cells, members: int, liars: int) -> Array:
    """Return the most that the variances of the sums of ``members`` cells of a question can become.

    Within what lies make of a sum f: n Var is v + b f + f (1 - f), largest at f = (1 + b) / 2.
    """
    moved = liars * sum_range(one.question, members) / one.n
    none, every = (one.n * sums_of_cells(one.question, one.n, np.full(1, f), members).variance for f in (0.0, 1.0))
    low, high = (np.clip(cells.value + end, 0.0, 1.0) for end in (-moved, moved))
    return sums_of_cells(one.question, one.n, np.clip((1 + every - none) / 2, low, high), members).variance
