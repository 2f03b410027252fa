"""The joint law of score and class, as the answers of a round tell it: cells E, unbiased, with a known covariance V.

Every share that is a sum of cells is linear in them; what is divided by a share has Fieller's interval (1954), as
P(value | class) has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.cells import Array, Cells
from ldp_aggregator.estimation.estimators import QuestionEstimate, covariance_of_sums
from ldp_aggregator.estimation.evidence import covariance_of_cells
from ldp_aggregator.estimation.ratios import ratio_of
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_protocols import Question
from ldp_protocols.document.authored import Evaluation

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ScoreTable:
    """The joint law of places and classes, shape (places, k), as so many reports ``n`` tell it, with the covariance of
    its cells.
    """

    value: Array
    covariance: Array
    question: Question
    n: float

    @classmethod
    def of(cls, score: QuestionEstimate, evaluation: Evaluation) -> ScoreTable:
        """The table of the answers to a question about scores."""
        covariance = covariance_of_cells(score.question, norm_sub(score.cells.value)) / score.n
        return cls(score.cells.value.reshape(evaluation.places, -1), covariance, score.question, score.n)

    def share(self, cells: Mask) -> Cells:
        """The share of all these cells together; of several sets, shape (sets, places, k), an entry each."""
        chosen = cells.reshape(-1, self.value.size).astype(np.float64)
        return Cells.normal(chosen @ self.value.ravel(), np.maximum(self._across(chosen, chosen), 0.0))

    def ratio(self, cells: Mask, whole: Mask) -> Cells:
        """The share of cells among those of ``whole``, which are in it."""
        first, second = (one.reshape(-1, self.value.size).astype(np.float64) for one in (cells, whole))
        first, second = np.broadcast_arrays(first, second)
        inside, others = first.sum(axis=1), (second - first).sum(axis=1)
        wholes = self.share(whole)

        def variance_at(ratio: float) -> Array:
            """Variance of (1 - R) J less R times the rest, whose shares are R pi and (1 - R) pi."""
            total = np.clip(wholes.value, 0.0, 1.0)
            covariance = covariance_of_sums(self.question, (inside, ratio * total), (others, (1 - ratio) * total))
            own, across, rest = (one / self.n for one in covariance)
            return np.asarray((1 - ratio) ** 2 * own - 2 * ratio * (1 - ratio) * across + ratio**2 * rest)

        return ratio_of(self.share(cells), wholes, variance_at, 0.5)

    def _across(self, first: Array, second: Array) -> Array:
        return np.asarray(((first @ self.covariance) * second).sum(axis=-1))

    def area(self) -> Cells:
        """The area under the ROC curve: how often a record of the second class has the higher score than one of
        the first, ties counting half. Numerator and denominator are quadratic in the cells.
        """
        places, cells = len(self.value), self.value.ravel()
        pairs = np.zeros((2, cells.size, cells.size))
        pairs[0, 1::2, ::2] = np.tri(places, k=-1) + np.eye(places) / 2
        pairs[1, 1::2, ::2] = 1.0
        pairs = (pairs + pairs.mT) / 2
        # The expectation of a product of estimates is that of the shares, and their covariance.
        values = (pairs @ cells) @ cells - (pairs * self.covariance).sum(axis=(1, 2))
        slopes = 2 * pairs @ cells
        spread = slopes @ self.covariance @ slopes.T
        above, all_pairs = (Cells.normal(values[[i]], np.maximum(spread[[i], [i]], 0.0)) for i in range(2))
        across = spread[0, [1]]
        return ratio_of(
            above, all_pairs, lambda ratio: above.variance - 2 * ratio * across + ratio**2 * all_pairs.variance, 0.5
        )


def class_cells(evaluation: Evaluation) -> Mask:
    """The cells of every class, shape (k, places, k)."""
    classes = len(evaluation.model.classes)
    return np.broadcast_to(np.eye(classes, dtype=bool)[:, None, :], (classes, evaluation.places, classes))


def saying_cells(evaluation: Evaluation, threshold: float = 0.0) -> Mask:
    """The cells in which the model says every class, shape (k, places, k)."""
    classes = len(evaluation.model.classes)
    said = np.arange(classes)
    if evaluation.edges is not None:
        said = (np.arange(evaluation.places) > evaluation.edges.index(threshold)).astype(np.int64)
    return np.broadcast_to((said == np.arange(classes)[:, None])[:, :, None], (classes, evaluation.places, classes))


def right_cells(evaluation: Evaluation, threshold: float = 0.0) -> Mask:
    """The cells in which the model says the class of the record, shape (places, k)."""
    return np.asarray((saying_cells(evaluation, threshold) & class_cells(evaluation)).any(axis=0))
