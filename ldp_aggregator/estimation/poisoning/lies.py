"""What a campaign tells of a Gaussian feature, and how many lies can have gone where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import Cells, QuestionEstimate
from ldp_aggregator.estimation.poisoning.reports import share_moves
from protocols.document.questions import SQUARE, VALUE

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Round:
    """What one campaign tells about a Gaussian feature, and what one lie moves of it."""

    value: QuestionEstimate
    square: QuestionEstimate
    value_per_liar: Array
    square_per_liar: Array
    prior: Cells
    prior_per_liar: float

    def asked(self, kind: str) -> tuple[QuestionEstimate, Array]:
        """The estimate of ``value`` or ``square``, and what one lie moves of its cells."""
        return (self.square, self.square_per_liar) if kind == SQUARE else (self.value, self.value_per_liar)


class Lies(NamedTuple):
    """How many lied to the value, and to the square, and how far they and others moved the pooled shares."""

    value: int
    square: int
    share: float


def lies_of_one_answer(estimates: Sequence[QuestionEstimate], feature: str, classes: int) -> tuple[Lies, ...]:
    """Return the ways in which one device can have lied that answers one question; P(class) is pooled from
    ``estimates``.
    """
    moves = share_moves(estimates, classes)
    asked = [(e.question.feature, e.question.kind) for e in estimates]

    def moved(kind: str) -> float:
        return max((move for ask, move in zip(asked, moves, strict=True) if ask == (feature, kind)), default=0.0)

    of_both = [(feature, kind) for kind in (VALUE, SQUARE)]
    others = (move for ask, move in zip(asked, moves, strict=True) if ask not in of_both)
    elsewhere = Lies(0, 0, max(others, default=0.0))
    return Lies(1, 0, moved(VALUE)), Lies(0, 1, moved(SQUARE)), elsewhere
