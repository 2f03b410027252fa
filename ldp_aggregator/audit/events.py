"""The events that an audit counts, under pairs of people: guesses, tight events, and what a search found."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldp_aggregator.audit.black_box import Person
from ldp_aggregator.audit.bounds import fair_rounds, guess_bound, loss_bound
from ldp_aggregator.audit.observations import Observations, Shape
from ldp_aggregator.audit.people import Document
from ldp_aggregator.audit.search import find_events
from ldp_aggregator.audit.tight_events import tight_event

Seen = Mapping[str, Observations]
"""What was seen of every person, by :func:`key_of`."""


def key_of(person: Person) -> str:
    return json.dumps(person.to_json(), sort_keys=True)


@dataclass(frozen=True)
class Event:
    """One event under a pair of people: how often it was seen, and the loss that this proves.

    Of guesses (``guessed``), ``ones`` and ``others`` count the right and the wrong ones, each in all rounds.
    """

    name: str
    questions: tuple[int, ...]
    one: Person
    other: Person
    ones: int
    one_trials: int
    others: int
    other_trials: int
    guessed: bool = False
    bound: float = -math.inf

    def bounded(self, alpha: float) -> Event:
        """The event with its bound, wrong with probability at most ``alpha``."""
        if self.guessed:
            return replace(self, bound=guess_bound(self.ones, self.others, alpha))
        bound = loss_bound(self.ones, self.one_trials, self.others, self.other_trials, alpha)
        return replace(self, bound=float(bound))

    def __str__(self) -> str:
        one, other = key_of(self.one), key_of(self.other)
        if self.guessed:
            seen = f"{self.ones} right and {self.others} wrong in {self.one_trials} rounds of either {one} or {other}"
        else:
            seen = (
                f"seen {self.ones} times in {self.one_trials} under {one} and {self.others} times in "
                f"{self.other_trials} under {other}"
            )
        return f"{self.name} of questions {list(self.questions)}: {seen}"

    def to_json(self) -> dict[str, Any]:
        return {
            "event": self.name,
            "questions": list(self.questions),
            "one": self.one.to_json(),
            "other": self.other.to_json(),
            "seen": [self.ones, self.others],
            "trials": [self.one_trials, self.other_trials],
            "bound": self.bound if math.isfinite(self.bound) else None,
        }


def guesses(document: Document, one: Person, other: Person, seen: Seen) -> Iterator[Event]:
    """Who of the two sent an upload? Guessed by the tight events of both, for every question that is answered alone."""
    authors = seen[key_of(one)], seen[key_of(other)]
    rounds = fair_rounds(authors[0].trials, np.random.default_rng())
    if rounds is None:
        return
    for shape in _answered_alone(document, *authors):
        right = wrong = 0
        for author, taken, mine, theirs in zip(authors, rounds, (one, other), (other, one), strict=True):
            rows = author.first_rows(shape, taken)
            says_mine = tight_event(document, shape[0][0], mine, theirs, rows)
            says_theirs = tight_event(document, shape[0][0], theirs, mine, rows)
            if says_mine is None or says_theirs is None:
                break
            right += int((says_mine & ~says_theirs).sum())
            wrong += int((says_theirs & ~says_mine).sum())
        else:
            yield Event(
                "guesses by the tight event", (shape[0][0],), one, other, right, sum(rounds), wrong, sum(rounds), True
            )


def tight(document: Document, one: Person, other: Person, seen: Seen) -> Iterator[Event]:
    """The tight event of every question that is answered alone, on all trials."""
    mine, theirs = seen[key_of(one)], seen[key_of(other)]
    for shape in _answered_alone(document, mine, theirs):
        flags = [tight_event(document, shape[0][0], one, other, them.rows(shape, None)) for them in (mine, theirs)]
        if flags[0] is not None and flags[1] is not None:
            counts = int(flags[0].sum()), mine.trials, int(flags[1].sum()), theirs.trials
            yield Event("tight event", (shape[0][0],), one, other, *counts)


def searched(one: Person, other: Person, seen: Seen) -> Iterator[Event]:
    """The events that half of the trials chose, counted in the other half."""
    mine, theirs = seen[key_of(one)], seen[key_of(other)]
    for event in find_events(mine, theirs):
        questions = tuple(question for question, _ in event.shape)
        counts = event.count(mine, 1), mine.half_trials(1), event.count(theirs, 1), theirs.half_trials(1)
        yield Event(event.name, questions, one, other, *counts)


def _answered_alone(document: Document, mine: Observations, theirs: Observations) -> Iterator[Shape]:
    """Shapes of one question of the document, with a payload as wide as its mechanism's."""
    for shape in dict.fromkeys((*mine.shapes, *theirs.shapes)):
        if len(shape) == 1 and _as_documented(document, shape):
            yield shape


def _as_documented(document: Document, shape: Shape) -> bool:
    ((question, size),) = shape
    if not 0 <= question < len(document["questions"]):
        return False
    asked = document["questions"][question]
    d = asked["domain_size"]
    index = 1 if d <= 1 << 8 else 2 if d <= 1 << 16 else 4
    widths = {"de": index, "onebit": index + 1, "she": 4 * d, "laplace": 4 * d}
    return bool(size == widths.get(asked["mechanism"], -(-d // 8)))
