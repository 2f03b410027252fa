"""Devices that are alone in their process, as devices are: what is done for one and not for one of a crowd."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldp_aggregator.audit.asking.black_box import Answer, Client, Person
from ldp_aggregator.audit.asking.observations import Numbers, Seen, read_tables
from ldp_aggregator.audit.asking.together import two
from ldp_aggregator.audit.searching.events import ALONE, Event
from ldp_aggregator.audit.searching.guesses import Guesser, different

LIVES: Final = 48
"""Processes that serve one device each."""


@dataclass(frozen=True)
class Alone:
    """One answer of each process; ``author`` says which of the two people was asked."""

    people: tuple[Person, Person]
    author: Numbers
    answers: list[Answer]


def ask_alone(document: str, client: Client, guesser: Guesser, rng: np.random.Generator, at_once: bool) -> Alone:
    """Ask either of two people who differ in as much as possible, by a fair coin for every process."""
    one, other = (different(guesser) or [(0, min(1, len(guesser.people) - 1))])[0]
    pair = guesser.people[one], guesser.people[other]
    author = rng.integers(0, 2, LIVES)

    def lives(half: int) -> list[Answer]:
        return [client(document, [pair[who]], None)[0] for who in author[half::2]]

    answers: list[Answer] = [()] * LIVES
    answers[0::2], answers[1::2] = two(lives, at_once)
    return Alone(pair, author, answers)


def alone_guesses(guesser: Guesser, alone: Alone) -> Iterator[Event]:
    """Guess who was asked by the tight events, as of any answer."""
    if not any(alone.answers):
        return
    of_author = [[a for a, who in zip(alone.answers, alone.author, strict=True) if who == side] for side in (0, 1)]
    right = wrong = 0
    for side, answers in enumerate(of_author):
        if not any(answers):
            continue
        seen = _seen(answers)
        votes = Guesser(guesser.document, alone.people, seen, 2).votes_of(None, 0, 1, 0)
        right += int(((1, -1)[side] * votes > 0).sum())
        wrong += int(((1, -1)[side] * votes < 0).sum())
    claim = float(guesser.document["privacy"]["epsilon"])
    yield Event(
        "guesses by the tight events, of devices that are alone in their process",
        ALONE,
        claim,
        (),
        alone.people[0],
        alone.people[1],
        right,
        LIVES,
        wrong,
        LIVES,
        guessed=True,
    )


def _seen(answers: Sequence[Answer]) -> Seen:
    zeros = np.zeros(len(answers), dtype=np.int64)
    return Seen(1, zeros, zeros, read_tables(answers))
