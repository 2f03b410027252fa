"""Two questions in one answer: where that may be, which are made one, and what an author hears who asks for others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from protocols.document.privacy import Privacy
from protocols.document.questions import PAIR, SIGNS, SQUARE, TRIPLE, VALUE, is_gaussian
from protocols.document.schema import Feature
from protocols.drafting.asked import Asked
from protocols.drafting.choice import AUTO, LEAST_JOINT_EPSILON, SIGN
from protocols.errors import DraftError

_VALUES: Final = 2
"""Of each feature of a triple."""


def may_join(privacy: Privacy, epsilon: float) -> bool:
    """Whether two questions may be asked as one, at ``epsilon`` for each. Raises DraftError where that is asked for and
    cannot be.
    """
    if privacy.joint and epsilon < LEAST_JOINT_EPSILON:
        raise DraftError(
            "privacy.joint",
            f"asks two questions as one, which pays from an epsilon of {LEAST_JOINT_EPSILON} a question on; here it is "
            f"{epsilon:g}. Leave it out, or say false",
        )
    if privacy.joint and privacy.continuous not in (AUTO, SIGN):
        raise DraftError(
            "privacy.joint", f"asks for value and square as two bits, and continuous is {privacy.continuous}; say sign"
        )
    return privacy.joint is not False and epsilon >= LEAST_JOINT_EPSILON


def as_triples(asked: Sequence[Asked], cells: int) -> list[Asked]:
    """The same, of pairs of ``cells`` cells (two values each) every two of one weight made one question, in the place
    of the first.
    """
    joined: list[Asked] = []
    waiting: dict[int, int] = {}
    for one in asked:
        binary = one.kind == PAIR and one.cells == cells
        place = waiting.pop(one.weight, None) if binary else None
        if place is not None:
            first = joined[place]
            joined[place] = replace(first, kind=TRIPLE, other=one.feature, weight=2 * one.weight, cells=2 * cells)
            continue
        if binary:
            waiting[one.weight] = len(joined)
        joined.append(one)
    return joined


def as_signs(asked: Sequence[Asked], features: Collection[str | None]) -> list[Asked]:
    """The same, value and square of each of ``features`` asked at once by the devices of both."""
    return [
        replace(one, kind=SIGNS, weight=2 * one.weight) if one.kind == VALUE and one.feature in features else one
        for one in asked
        if one.kind != SQUARE or one.feature not in features
    ]


def check_joined(asked: Sequence[Asked], features: Sequence[Feature], *, everything: bool) -> None:
    """Refuse what an author asked to be joined (``"joint": true``) and ``asked`` has not: a feature of two values that
    may be missing, and features of which nothing is asked at once. Raises DraftError, which names them. With
    ``everything`` a device answers one question of every feature, and no triple.
    """
    if not everything:
        for feature in features:
            if not is_gaussian(feature) and feature.size == _VALUES and feature.missing:
                raise DraftError(
                    "privacy.joint",
                    f"asks two features at once, and {feature.name}, of two values, may be missing, which such a "
                    f'question cannot tell; declare {feature.name} "missing": false, or leave joint out: numbers are '
                    "asked at once without it where that pays",
                )
    if not any(one.kind in (SIGNS, TRIPLE) for one in asked):
        shown = ", ".join(feature.name for feature in features[:3]) + (", ..." if len(features) > 3 else "")
        two = "" if everything else ", or two features of one weight and of two values each, never missing"
        raise DraftError(
            "privacy.joint",
            f"asks two questions as one, and none can be made of {shown}: it takes a number without bins{two}. Leave "
            "it out, or say false",
        )
