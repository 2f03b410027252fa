"""Bounds of what a lying device does to an estimate: a report can be made up, and no server can tell.

``per_liar`` is the most that one made-up report, among the n that were counted, moves a value. It is the range of what
one report adds to the estimator, divided by n: 1 / ((p - q) n) for a frequency. What the server refuses
(``Mechanism.check``) bounds the range of sums.

m liars move a mean over n reports by at most m times as much, whatever they send, and whatever honest people would
have done in their place: sent another report, or none, or (the liars having taken the place of a honest answer to
another question, which they left out) one more. Proof: let h reports be common to both worlds, b of the n = h + b
counted ones be made up, and a honest ones stand in their place, a, b <= m. Contributions lie in an interval of length
r. The mean of the one world is (h M + b Y) / (h + b), of the other (h M + a X) / (h + a). Their difference is linear in
M, X and Y, so largest at ends of the interval, and there at most max(a, b) / (h + max(a, b)) r. With b >= a that is
b r / n; with a > b it is a r / (h + a) <= m r / n.

Pooled shares of classes and everything computed from several questions are bounded for the number of reports to each
question as it is: the same reports, with another content.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.tally import count, payload_rows
from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.pooling import class_shares
from ldp_aggregator.mechanisms import analysis_of
from protocols import Question
from protocols.document.questions import MOMENT, SIGN

Array = NDArray[np.float64]


def per_liar(question: Question, n: int, counts: NDArray[np.int64], cells: int) -> Array:
    """The most that one made-up report moves each of the ``cells`` values of a question; infinite without reports."""
    analysis = analysis_of(question.mechanism)
    if question.encoding == MOMENT:
        return analysis.moment_reach(n, counts) if n else np.full(cells, np.inf)
    # A frequency adds from 0 to 1, a sum of two signs from -1 to 1.
    ends = 2 if question.encoding == SIGN else 1
    return np.full(cells, ends * analysis.reach(1) / n if n else np.inf)


def class_prior_per_liar(estimates: Sequence[QuestionEstimate], classes: int, *, answers_all: bool) -> float:
    """The most that one lying device moves the pooled share of a class: it lies to one question, or with
    ``answers_all`` to all.
    """
    moved = share_moves(estimates, classes)
    return float(moved.sum() if answers_all else moved.max())


def share_moves(estimates: Sequence[QuestionEstimate], classes: int) -> Array:
    """The most that one lie to each of these questions moves the share of a class that is pooled from all of them.

    The weight of a question depends on the number of its reports, not on what is reported, so that pooling is linear.
    Infinite where nothing tells shares.
    """
    place = [i for i, e in enumerate(estimates) if e.classes is not None and e.n > 0]
    if not place:
        return np.full(len(estimates), np.inf)
    telling = [estimates[i] for i in place]
    result = np.zeros(len(estimates))
    result[place] = class_shares(telling, classes) * [class_range(e.question, classes) / e.n for e in telling]
    return result


def class_range(question: Question, classes: int) -> float:
    """The range of what a report adds to the share of a class."""
    return sum_range(question, question.domain_size // classes)


def report_that_names(question: Question, item: int) -> NDArray[np.int64]:
    """Return what one made-up report adds to a question's counts that speaks for an item as loudly as the server lets
    it: of an index the cell, of a sign the class and its bit, of any other value twice the class, and 1 for the highest
    value, 0 for the lowest.
    """
    analysis = analysis_of(question.mechanism)
    moment = question.encoding == MOMENT
    payload = analysis.loudest([item // 2], high=item % 2 == 1) if moment else analysis.loudest([item])
    return count(question, payload_rows(question, payload))


def sum_range(question: Question, members: int) -> float:
    """The range of what a report adds to the share of so many cells together."""
    return analysis_of(question.mechanism).reach(members)
