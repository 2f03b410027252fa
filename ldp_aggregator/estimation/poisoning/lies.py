"""What a campaign tells of a Gaussian feature, and how many lies can have gone where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.estimation.estimators import Cells, QuestionEstimate
from ldp_aggregator.estimation.poisoning.reports import share_moves
from protocols.document.questions import SIGNS, SQUARE, VALUE

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

    @property
    def at_once(self) -> bool:
        """Whether one question told value and square."""
        return SIGNS in (self.value.question.kind, self.square.question.kind)


class Lies(NamedTuple):
    """How many lied to the value, and to the square, and how far they and others moved the pooled shares."""

    value: int
    square: int
    share: float


def lies_of_one_answer(
    estimates: Sequence[QuestionEstimate], feature: str, classes: int, *, at_once: bool
) -> tuple[Lies, ...]:
    """What one device can have lied to that answers one question; P(class) is pooled from ``estimates``. ``at_once``
    says that value and square are one question (``signs``).
    """
    moves = share_moves(estimates, classes)
    asked = [(e.question.feature, e.question.kind) for e in estimates]

    def moved(*kinds: str) -> float:
        about = [(feature, kind) for kind in kinds]
        return max((move for ask, move in zip(asked, moves, strict=True) if ask in about), default=0.0)

    of_both = [(feature, kind) for kind in (VALUE, SQUARE, SIGNS)]
    others = (move for ask, move in zip(asked, moves, strict=True) if ask not in of_both)
    elsewhere = Lies(0, 0, max(others, default=0.0))
    if at_once:
        return Lies(1, 1, moved(VALUE, SQUARE, SIGNS)), elsewhere
    return Lies(1, 0, moved(VALUE)), Lies(0, 1, moved(SQUARE)), elsewhere
