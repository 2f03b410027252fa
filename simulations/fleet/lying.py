"""Devices that lie: valid reports that no honest answer stands behind.

The server cannot tell them apart: every report here is one that an honest device could have sent. What they can do to a
model is limited by their number alone, and this is how to find out what that limit is.
"""

from __future__ import annotations

import os
from typing import Final

from ldp_aggregator.mechanisms import analysis_of
from protocols import SYSTEM_COINS, Campaign, Coins, Question, Report
from protocols.document.questions import INDEX, MOMENT, PRODUCT, signs_of
from protocols.mechanisms import Moment
from protocols.wire import ID_BYTES
from simulations.fidelities.items import UNIT

RANDOM: Final = "random"
"""The perturbed answer of a person who does not exist, all items being equally likely."""
TARGET: Final = "target"
"""The report that moves the estimates furthest towards one class."""
LIES: Final = (RANDOM, TARGET)


def lying_reports(
    campaign: Campaign, questions: tuple[Question, ...], lie: str, target: int, coins: Coins = SYSTEM_COINS
) -> tuple[Report, ...]:
    """One report to each of ``questions``, under a fresh id; ``target`` is the class that a ``target`` lie promotes."""
    reports = []
    for question in questions:
        if lie == TARGET:
            payload = poison(question, target, len(campaign.label.classes), coins)
        else:
            payload = _random_answer(question, coins)
        reports.append(Report(question.index, os.urandom(ID_BYTES), payload))
    return tuple(reports)


def poison(question: Question, target: int, classes: int, coins: Coins) -> bytes:
    """The valid payload that speaks loudest for the cells of class ``target``.

    Unary encodings let one device support every such cell at once; a subset holds as many of them as it has places; an
    index is one of them; noisy cells go to the end of what the mechanism allows.
    """
    wanted = _cells_of(question, target, classes)
    first = coins.below(len(wanted)) if question.encoding == INDEX else 0
    every = range(question.domain_size)
    return analysis_of(question.mechanism).loudest([*wanted[first:], *wanted[:first]], against=every)


def _cells_of(question: Question, target: int, classes: int) -> list[int]:
    """The cells of a class; a sign question's are ``signs * class + bit`` (``signs``: two bits), a product has none."""
    if question.kind == PRODUCT:
        return [min(question.domain_size - 1, 1)]
    if question.encoding == INDEX:
        return list(range(target, question.domain_size, classes))
    if question.encoding == MOMENT:
        return [target]
    each = signs_of(question, classes)
    bits = each - each % 2  # The last of an odd number says that there is no value.
    return [each * target + end for end in (*reversed(range(bits)), *range(bits, each))]


def _random_answer(question: Question, coins: Coins) -> bytes:
    if question.encoding != MOMENT:
        return question.perturb(coins.below(question.domain_size), coins)
    value = coins.below(2 * UNIT + 1) - UNIT
    return question.perturb(Moment(coins.below(question.domain_size), value), coins)
