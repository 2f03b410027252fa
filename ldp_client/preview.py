"""Everything that a device would say of a record: for each question the truth, and how likely each answer is.

For an app's tests and debug builds, and for people who want to see. Nothing is drawn, stored or sent; what it returns
shows values of the record, and must not be sent anywhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from ldp_client.answering import item_of, quantity_of, value_in
from ldp_client.problems import Problem, record_problems
from ldp_client.words import added, asked, cell_of, end_of, plain, truth_of
from ldp_protocols import Campaign, Coins, Question
from ldp_protocols.document.questions import INDEX, MOMENT, PRODUCT, signs_of
from ldp_protocols.exact import ONE
from ldp_protocols.mechanisms import VALUE_BITS
from ldp_protocols.values import number_of

_MOST_SHOWN: Final = 8
_UNIT: Final = 1 << VALUE_BITS


@dataclass(frozen=True)
class PreviewedQuestion:
    """One question of a campaign, and what would be said to it.

    ``chance`` is the probability that this device is asked it: what is drawn by lot has less than 1. ``truth`` is what
    is true of the record, None where no label is given, and where the record has no usable value of a feature that is
    complete: a random one is answered then. ``said`` are what can be said and how likely an answer names it, none
    without a truth: what says one thing adds up to 1, a set names several, and of noisy numbers all that is sure is
    what is added to them.
    """

    asked: str
    chance: float
    truth: str | None
    said: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Preview:
    """The ``problems`` of a record, as :func:`ldp_client.problems.record_problems` finds them, and every question of
    the campaign, in its order. ``str()`` is a table of it.
    """

    problems: tuple[Problem, ...]
    questions: tuple[PreviewedQuestion, ...]

    def __str__(self) -> str:
        lines = [f"! {plain(str(problem))}" for problem in self.problems]
        for one in self.questions:
            truth = "what is true is not known" if one.truth is None else f"what is true is {plain(one.truth)}"
            lines.append(f"{plain(one.asked)}, asked with probability {one.chance:.3f}: {truth}")
            rows = sorted(one.said, key=lambda row: -row[1])[:_MOST_SHOWN]
            lines += [f"  {chance:.3f}  {plain(words)}" for words, chance in rows]
            if len(one.said) > _MOST_SHOWN:
                lines.append(f"         and {len(one.said) - _MOST_SHOWN} more")
        return "\n".join(lines)


def preview_of(campaign: Campaign, record: Mapping[str, object], label: object = None) -> Preview:
    """Preview a record of a class, None where it is not known. Raises nothing, whatever the record holds."""
    given = () if label is None else (label,)
    class_index = campaign.label.index_of(label)
    chances = {
        question.index: question.weight / sum(other.weight for other in pool)
        for pool in campaign.pools
        for question in pool
    }
    questions = []
    for question in campaign.questions:
        truth: str | None = None
        said: list[tuple[str, Fraction]] = []
        if class_index is not None and isinstance(record, Mapping):
            # Where a value is drawn for the one that is not there, nothing is known.
            with contextlib.suppress(_DrawnError):
                truth, said = _said(campaign, question, record, class_index)
        rows = tuple((words, float(chance)) for words, chance in said)
        questions.append(PreviewedQuestion(asked(campaign, question), chances[question.index], truth, rows))
    return Preview(record_problems(campaign, record, *given), tuple(questions))


class _DrawnError(Exception):
    """A coin was asked for, so that there is no one truth."""


class _NoCoins(Coins):
    def words(self, count: int) -> Any:
        raise _DrawnError


_NONE: Final = _NoCoins()


def _said(
    campaign: Campaign, question: Question, record: Mapping[str, object], class_index: int
) -> tuple[str, list[tuple[str, Fraction]]]:
    """The truth in words, and what can be said with its probability."""
    mechanism: Any = question.mechanism
    if question.encoding == INDEX:
        item: Any = item_of(campaign, question, record, class_index, _NONE)
        truth, law = cell_of(campaign, question, item), {item: Fraction(1)}
        if not hasattr(mechanism, "support"):
            return truth, [(added(campaign, question, item, 1.0), Fraction(1))]
        return truth, _cells(campaign, question, law)
    names = [name for name in (question.feature, question.other) if name is not None]
    features = [campaign.feature(name).number for name in names]
    found = [(one, number_of(value_in(campaign, one, record, _NONE))) for one in features if one is not None]
    quantity = quantity_of(campaign, question, record, _NONE)
    numbers = [None if number is None else one.clip(number) for one, number in found]
    truth = truth_of(campaign, question, class_index, numbers)
    cell = 0 if question.kind == PRODUCT else class_index
    fixed = 0 if quantity is None else int(quantity * _UNIT)
    if question.encoding != MOMENT:
        first = signs_of(question, len(campaign.label.classes)) * cell
        upper = Fraction(fixed + _UNIT, 2 * _UNIT)
        law = {first + 2: Fraction(1)} if quantity is None else {first: 1 - upper, first + 1: upper}
        return truth, _cells(campaign, question, law)
    if not hasattr(mechanism, "threshold"):
        return truth, [(added(campaign, question, cell, fixed / _UNIT), Fraction(1))]
    said = []
    for one in range(question.domain_size):
        upper = Fraction(mechanism.threshold(fixed if one == cell else 0), ONE)
        chances = ((1 - upper) / question.domain_size, upper / question.domain_size)
        said += [(end_of(campaign, question, one, end), chance) for end, chance in enumerate(chances)]
    return truth, said


def _cells(campaign: Campaign, question: Question, law: Mapping[int, Fraction]) -> list[tuple[str, Fraction]]:
    """Every cell, with the probability that an answer marks it, for a true one that is drawn by ``law``."""
    mechanism: Any = question.mechanism
    p, q = mechanism.p, mechanism.q
    return [
        (cell_of(campaign, question, cell), q + (p - q) * law[cell] if cell in law else q)
        for cell in range(question.domain_size)
    ]
