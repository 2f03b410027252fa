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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import QuestionEstimate
from ldp_aggregator.estimation.pooling import class_shares
from ldp_aggregator.estimation.support import support_of
from protocols import Question
from protocols.document.questions import INDEX, SIGN
from protocols.mechanisms import DirectEncoding, NoisyVector, OneBit, PureMechanism, SubsetSelection

Array = NDArray[np.float64]


def per_liar(question: Question, n: int, counts: NDArray[np.int64], cells: int) -> Array:
    """The most that one made-up report moves each of the ``cells`` values of a question; infinite without reports."""
    mechanism = question.mechanism
    if isinstance(mechanism, OneBit):
        return _onebit(mechanism, counts)
    if n == 0:
        return np.full(cells, np.inf)
    if isinstance(mechanism, PureMechanism):
        # A frequency adds 0 or 1, a sum of two signs from -1 to 1.
        ends = 2 if question.encoding == SIGN else 1
        p, q, *_ = support_of(mechanism)
        return np.full(cells, ends / (p - q) / n)
    if isinstance(mechanism, NoisyVector):
        return np.full(cells, 2 * mechanism.bound / (n << mechanism.grid))
    raise TypeError(f"no bound for mechanism {mechanism.name}")


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
    mechanism: Any = question.mechanism
    if isinstance(mechanism, OneBit):
        added = np.zeros(2 * mechanism.domain_size, dtype=np.int64)
        added[item] = 1
        return added
    added = np.zeros(mechanism.domain_size, dtype=np.int64)
    if isinstance(mechanism, NoisyVector):
        cell, sign = (item, 1) if question.encoding == INDEX else (item // 2, 2 * (item % 2) - 1)
        added[cell] = sign * mechanism.bound
        return added
    added[item] = 1
    if isinstance(mechanism, SubsetSelection):
        others = np.delete(np.arange(mechanism.domain_size), item)
        added[others[: mechanism.subset_size - 1]] = 1
    return added


def sum_range(question: Question, members: int) -> float:
    """The range of what a report adds to the share of so many cells together."""
    mechanism = question.mechanism
    if isinstance(mechanism, NoisyVector):
        return 2 * members * mechanism.bound / (1 << mechanism.grid)
    if not isinstance(mechanism, PureMechanism):
        raise TypeError(f"mechanism {mechanism.name} tells no frequencies")
    supported = members
    if isinstance(mechanism, DirectEncoding):
        supported = 1
    elif isinstance(mechanism, SubsetSelection):
        size, others = mechanism.subset_size, mechanism.domain_size - members
        supported = min(size, members) - max(0, size - others)
    p, q, *_ = support_of(mechanism)
    return supported / (p - q)


def _onebit(mechanism: OneBit, counts: NDArray[np.int64]) -> Array:
    """A mean over the D reports that drew the cell, each -1 or 1 over the gain. A liar turns one of them round, adds
    one or, drawing elsewhere, takes one away. The last moves a mean of S / D to (S + 1) / (D - 1), by
    (D + S) / (D (D - 1)); a report of -1 was there, so S <= D - 2, and that is at most 2 / D, as for the others.
    """
    drawn = counts.reshape(-1, 2).sum(axis=1)
    gain = 2 * float(mechanism.p) - 1
    return np.where(drawn > 0, 2 / (gain * np.maximum(drawn, 1)), np.inf)
