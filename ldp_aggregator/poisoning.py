"""How far a lying device can move an estimate: a report can be made up, and no server can tell.

``per_liar`` is the most that one made-up report, among the n that were counted, moves a value. It is the range of what
one report adds to the estimator, divided by n: 1 / ((p - q) n) for a frequency. m liars move a value by at most m times
as much, whatever they send and whatever honest people would have sent in their place; a report that is added to honest
ones, instead of replacing one, moves it less. What the server refuses (``Mechanism.check``) bounds the range of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimators import Cells, QuestionEstimate
from ldp_aggregator.pooling import pool_classes
from protocols import Question
from protocols.mechanisms import DirectEncoding, NoisyVector, OneBit, PureMechanism, SubsetSelection
from protocols.questions import SIGN

Array = NDArray[np.float64]


def per_liar(question: Question, n: int, counts: NDArray[np.int64], cells: int) -> Array:
    """The most that one made-up report moves each of the ``cells`` values of a question; infinite without reports."""
    mechanism = question.mechanism
    if isinstance(mechanism, OneBit):
        return _onebit(mechanism, counts)
    if n == 0:
        return np.full(cells, np.inf)
    if isinstance(mechanism, PureMechanism):
        ends = 2 if question.encoding == SIGN else 1  # A contrast adds -1, 0 or 1, a frequency 0 or 1.
        return np.full(cells, ends / (float(mechanism.p) - float(mechanism.q)) / n)
    if isinstance(mechanism, NoisyVector):
        return np.full(cells, 2 * mechanism.bound / (n << mechanism.grid))
    raise TypeError(f"no bound for mechanism {mechanism.name}")


def class_prior_per_liar(estimates: Sequence[QuestionEstimate], classes: int, *, answers_all: bool) -> float:
    """The most that one lying device moves the pooled share of a class.

    A device lies to one question, or with ``answers_all`` to all. The weight of a question does not depend on what is
    reported to it, so pooling is linear, and what a question moves can be read off by pooling its own bound with zeros.
    """
    telling = [estimate for estimate in estimates if estimate.classes is not None and estimate.n > 0]
    if not telling:
        return float("inf")
    moved = np.diag([_class_range(e.question, e.question.domain_size // classes) / e.n for e in telling])
    nothing = np.zeros(len(telling))
    alone = [replace(e, classes=Cells(row, nothing, nothing, nothing)) for e, row in zip(telling, moved, strict=True)]
    pooled = pool_classes(alone, classes, shared_records=False).value
    return float(pooled.sum() if answers_all else pooled.max())


def _onebit(mechanism: OneBit, counts: NDArray[np.int64]) -> Array:
    """A mean over the D reports that drew the cell, each -1 or 1 over the gain. A liar turns one of them round, adds
    one or, drawing elsewhere, takes one away. The last moves a mean of S / D to (S + 1) / (D - 1), by
    (D + S) / (D (D - 1)); a report of -1 was there, so S <= D - 2, and that is at most 2 / D, as for the others.
    """
    drawn = counts.reshape(-1, 2).sum(axis=1)
    gain = 2 * float(mechanism.p) - 1
    return np.where(drawn > 0, 2 / (gain * np.maximum(drawn, 1)), np.inf)


def _class_range(question: Question, members: int) -> float:
    """The range of what a report adds to a class that has ``members`` cells."""
    mechanism = question.mechanism
    if isinstance(mechanism, NoisyVector):
        return 2 * members * mechanism.bound / (1 << mechanism.grid)
    if not isinstance(mechanism, PureMechanism):
        raise TypeError(f"mechanism {mechanism.name} does not carry the class")
    supported = members
    if isinstance(mechanism, DirectEncoding):
        supported = 1
    elif isinstance(mechanism, SubsetSelection):
        size, others = mechanism.subset_size, mechanism.domain_size - members
        supported = min(size, members) - max(0, size - others)
    return supported / (float(mechanism.p) - float(mechanism.q))
