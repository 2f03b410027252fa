"""Bounds of what a lying device does to an estimate: a report can be made up, and no server can tell.

``per_liar`` is the most that one made-up report, among the n that were counted, moves a value. It is the range of what
one report adds to the estimator, divided by n: 1 / ((p - q) n) for a frequency. What the server refuses
(``Mechanism.check``) bounds the range of sums. Of a campaign with an issuer a liar is a person, and ``per_liar`` is
what all of the person's answers move: ``Campaign.answers_of_a_person`` times as much.

m liars move a mean over n reports by at most m times as much, whatever they send, and whatever honest people would have
done in their place: sent another report, or none, or (the liars having taken the place of a honest answer to another
question, which they left out) one more. Proof: let h reports be common to both worlds, b of the n = h + b counted ones
be made up, and a honest ones stand in their place, a, b <= m. Contributions lie in an interval of length r. The mean of
the one world is (h M + b Y) / (h + b), of the other (h M + a X) / (h + a). Their difference is linear in M, X and Y, so
largest at ends of the interval, and there at most max(a, b) / (h + max(a, b)) r. With b >= a that is b r / n; with a >
b it is a r / (h + a) <= m r / n.

Pooled shares of classes and everything computed from several questions are bounded for the number of reports to each
question as it is: the same reports, with another content.

Of a quotient s / P of two estimates, a share of a share or the mean of a class, lies move s by at most a and P by at
most h. With P > h the quotient moves to (s + ds) / (P + dP), and

    |(s + ds) / (P + dP) - s / P| = |ds - (s / P) dP| / (P + dP) <= (a + |s / P| h) / (P - h),

reached by ds = a, dP = -h (s >= 0). With P <= h the denominator may be zero, and no bound exists. A quotient of linear
functions of (a, h) is largest at a corner: devices that answer one question each move the mean furthest where all of
them lie to the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.payloads import count, payload_rows
from ldp_aggregator.estimation import estimators
from ldp_aggregator.estimation.cells import Array, Cells
from ldp_aggregator.estimation.estimators import CampaignEstimates, QuestionEstimate
from ldp_aggregator.estimation.moments import SIGNIFICANT, present_shares
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Question
from ldp_protocols.document.questions import MOMENT, SIGN, SQUARE, VALUE
from ldp_protocols.features import NumericFeature


def per_liar(question: Question, n: int, counts: NDArray[np.int64], cells: int) -> Array:
    """The most that one made-up report moves each of the ``cells`` values of a question; infinite without reports."""
    analysis = analysis_of(question.mechanism)
    if question.encoding == MOMENT:
        return analysis.moment_reach(n, counts) if n else np.full(cells, np.inf)
    # A frequency adds from 0 to 1, a sum of two signs from -1 to 1.
    ends = 2 if question.encoding == SIGN else 1
    return np.full(cells, ends * analysis.reach(1) / n if n else np.inf)


def class_prior_per_liar(estimates: Sequence[QuestionEstimate], classes: int, *, answers_all: bool) -> float:
    """The most that one liar moves a class's pooled share, lying to one question, or with ``answers_all`` to all."""
    moved = share_moves(estimates, classes)
    return float(moved.sum() if answers_all else moved.max())


def share_moves(estimates: Sequence[QuestionEstimate], classes: int) -> Array:
    """The most that one lie to each question moves the share of a class; infinite where nothing tells shares.

    Pooling is linear: a question's weight depends on the number of its reports, not on their contents. The share of an
    only class nobody moves.
    """
    if classes == 1:
        return np.zeros(len(estimates))
    place = [i for i, e in enumerate(estimates) if e.classes is not None and e.n > 0]
    if not place:
        return np.full(len(estimates), np.inf)
    telling = [estimates[i] for i in place]
    ranges = [sum_range(e.question, e.question.domain_size // classes) / e.n for e in telling]
    result = np.zeros(len(estimates))
    result[place] = estimators.class_shares(telling, classes) * ranges
    return result


def report_that_names(question: Question, item: int) -> NDArray[np.int64]:
    """Counts of one report that speaks for an item as loudly as the server lets it: of an index the cell, of a sign the
    class and its bit, of any other value twice the class, and 1 for the highest value, 0 for the lowest.
    """
    analysis = analysis_of(question.mechanism)
    moment = question.encoding == MOMENT
    payload = analysis.loudest([item // 2], high=item % 2 == 1) if moment else analysis.loudest([item])
    return count(question, payload_rows(question, payload))


def sum_range(question: Question, members: int) -> float:
    """The range of what a report adds to the share of so many cells together."""
    return analysis_of(question.mechanism).reach(members)


def quotient_reach(quotient: Array, moved: Array, whole: Array, of_whole: float) -> Array:
    """The most that a quotient moves with its numerator (``moved``) and ``whole`` (``of_whole``); may be infinite."""
    bounded, reach = whole > of_whole, np.full(quotient.shape, np.inf)
    reach[bounded] = (moved[bounded] + np.abs(quotient[bounded]) * of_whole) / (whole[bounded] - of_whole)
    return reach


def mean_reach(found: CampaignEstimates, feature: NumericFeature, liars: int) -> Array:
    """The most that ``liars``, one at least, move a Gaussian feature's mean in every class, shape (k,).
    Infinite, which is anywhere in its range, where the class is insufficient or lies can make it so.
    """
    parts = [found.asking(feature.name, kind) for kind in (VALUE, SQUARE)]
    of_value, of_square = (liars * found.per_liar[one.question.index] for one in parts)
    share = present_shares(found.class_prior, parts).of_class.value
    noise = _highest_noise(found, liars)
    lies = liars * found.campaign.answers_of_a_person
    moves = lies * share_moves(found.questions, share.size)
    answered = [one for one in parts if one.n > 0]
    for one, weight in zip(answered, estimators.pool_shares(answered), strict=True):
        if one.missing is not None:
            moves[one.question.index] += weight * lies * sum_range(one.question, 1) / one.n
            noise = noise + weight**2 * _highest_variance(one, one.missing, 1, lies)
    sums, worst = parts[0].cells, float(moves.max())
    ways = [(of_value, float(moves[parts[0].question.index])), (np.zeros_like(share), worst)]
    if found.campaign.privacy.answers == "all":
        worst = float(moves.sum())
        ways = [(of_value, worst)]
    # Lies that move a square by its whole range leave nothing of it: no moments are told then.
    usable = np.isfinite(sums.variance) & np.isfinite(parts[1].cells.variance) & (of_square < 2)
    sure = usable & (share - worst > SIGNIFICANT * np.sqrt(noise))
    ends = []
    with np.errstate(divide="ignore", invalid="ignore"):  # Of classes that are not sure.
        for a, h in ways:
            low, high = sums.value - a, sums.value + a
            ends += [low / (share + np.sign(low) * h), high / (share - np.sign(high) * h)]
        reach = np.abs(np.clip(ends, -1.0, 1.0) - np.clip(sums.value / share, -1.0, 1.0)).max(axis=0)
    return np.where(sure, reach, np.inf) * (float(feature.high) - float(feature.low)) / 2


def _highest_noise(found: CampaignEstimates, liars: int) -> Array:
    """The highest variance of the pooled P(class): every question's highest, at the shares nearest to 1/2."""
    classes, moved = found.class_prior.value.size, liars * found.class_prior_per_liar
    middle = np.clip(0.5, *(np.clip(found.class_prior.value + end, 0.0, 1.0) for end in (-moved, moved)))
    lies, lied = liars * found.campaign.answers_of_a_person, []
    for one in found.questions:
        if one.classes is not None and one.n > 0:
            variance = _highest_variance(one, one.classes, one.question.domain_size // classes, lies)
            lied.append(replace(one, classes=Cells.normal(middle, variance)))
    return estimators.pool_classes(lied, classes, shared_records=found.campaign.privacy.answers == "all").variance


def _highest_variance(one: QuestionEstimate, cells: Cells, members: int, lies: int) -> Array:
    """Highest variances of sums of ``members`` cells: `n Var = v + b f + f (1 - f)`, largest at `f = (1 + b) / 2`."""
    moved = lies * sum_range(one.question, members) / one.n
    none, every = (
        one.n * estimators.sums_of_cells(one.question, one.n, np.full(1, f), members).variance for f in (0.0, 1.0)
    )
    low, high = (np.clip(cells.value + end, 0.0, 1.0) for end in (-moved, moved))
    return estimators.sums_of_cells(one.question, one.n, np.clip((1 + every - none) / 2, low, high), members).variance
