"""A row of the plan in words: what is asked, how, and why so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from protocols.document.questions import LABEL, PAIR, RIGHT, SCORE

BY: Final = " by "
"""``sign`` is an encoding; the mechanism that carries it stands behind it."""

SAME: Final = 0.005
"""Mechanisms whose variances differ by less than this share are as good as each other (``ss`` of size 1 is ``de``)."""


def subject_of(question: Mapping[str, Any]) -> str:
    """Say what a row of the plan is about."""
    asked: str = " and ".join(filter(None, (question["feature"], question.get("other"))))
    return asked if question["kind"] in (LABEL, PAIR, RIGHT, SCORE) else f"{asked} ({question['kind']})"


def reason_of(question: Mapping[str, Any]) -> str:
    """Say how much more noise the next best mechanism would add, or how much less the best one."""
    table = question["noise_variance"]
    if len(table) == 1:
        return "nothing else tells that a value is missing"
    chosen = question["mechanism"].split(BY)[0]
    ratios = {name: variance / table[chosen] for name, variance in table.items()}
    best = min(ratios, key=lambda name: ratios[name])
    if ratios[best] < 1 - SAME:
        return f"{best} would have {1 - ratios[best]:.0%} less noise; the draft wants {chosen}"
    worse = {name: ratio for name, ratio in ratios.items() if ratio > 1 + SAME}
    if not worse:
        return "every other mechanism has the same noise"
    following = min(worse, key=lambda name: worse[name])
    return f"least noise; {following} would have {worse[following]:.2f} times as much"
