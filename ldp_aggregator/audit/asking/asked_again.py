"""Devices that are asked again: in another process at the same time, after a kill, with another record, by a campaign
of another study, and by a second campaign of the same study.

Devices that are alone in their process, as devices are: what is done for one and not for one of a crowd.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ldp_aggregator.audit.asking.black_box import Answer, Client, Person, all_refused, two
from ldp_aggregator.audit.asking.observations import Numbers, Seen, read_tables
from ldp_aggregator.audit.asking.people import Document
from ldp_aggregator.audit.searching.events import ALONE, Event
from ldp_aggregator.audit.searching.guesses import Guesser, different

DEVICES: Final = 64
"""Devices of the first two people that are asked again, by turns; everybody else has one."""

_TURNS: Final = 4
_TURNED: Final = 16
"""Times that one process asks devices again, each time with another person's record; after the first time so many."""

_STUDY_DEVICES: Final = 16
"""Devices that are asked by two campaigns of one study."""


@dataclass(frozen=True)
class Again:
    """Answers of devices: the ``first``, each one given ``again`` and after what, and the ``other_campaign``'s."""

    people: tuple[Person, ...]
    first: list[Answer]
    again: tuple[tuple[str, list[Answer]], ...]
    other_campaign: list[Answer]

    def refusals(self) -> Iterator[str]:
        """Occasions on which nobody answered."""
        occasions = (
            ("devices with a storage", self.first),
            *self.again,
            ("devices of another campaign", self.other_campaign),
        )
        yield from (text for what, answers in occasions if (text := all_refused(what, answers)) is not None)

    def differences(self) -> list[str]:
        """List devices that, asked again, send other bytes: fresh noise would average out."""
        found = []
        for occasion, answers in self.again:
            different = sum(one != other for one, other in zip(self.first, answers, strict=False))
            if different:
                found.append(
                    f"{different} of {len(answers)} devices sent other bytes when they were asked again {occasion}"
                )
        return found


def ask_again(document: str, client: Client, people: Sequence[Person], at_once: bool) -> Again:
    """Ask devices of all ``people``, most of the first two, and the same devices with the records of others."""
    owners = [*(number % min(2, len(people)) for number in range(DEVICES)), *range(2, len(people))]
    devices, *changed = (_devices(people, owners, turn) for turn in range(1 + _TURNS))
    with tempfile.TemporaryDirectory() as folder:
        storage = Path(folder)
        first, second = two(lambda _: client(document, [*devices, *devices[:_TURNED]], storage), at_once)
        turns = [changed[0], *(turn[:_TURNED] for turn in changed[1:])]
        restarted = client(document, [person for turn in turns for person in turn], storage)
        other = client(another(document), devices, storage)
    count = len(devices)
    again = (
        ("by the same process", first[count:]),
        ("by another process of the same storage", second[:count]),
        ("by that other process again", second[count:]),
        ("with another record after its process had been killed", restarted[:count]),
        *(
            (f"by that process once more, with record number {turn + 2}", restarted[start:][:_TURNED])
            for turn, start in enumerate(range(count, len(restarted), _TURNED))
        ),
    )
    return Again(tuple(devices), first[:count], again, other)


@dataclass(frozen=True)
class Studied:
    """Devices that answered two campaigns of one study, as a finding, and those campaigns where nobody did."""

    twice: str | None
    refused: str | None


def answers_to_one_study(document: str, client: Client, people: Sequence[Person], at_once: bool) -> Studied:
    """Ask devices by two campaigns of one study, at once in two processes and in turn."""
    value: Document = json.loads(document)
    campaigns = [_renamed(value, title, value.get("study") or "one study") for title in ("The first", "The second")]
    devices = _devices(people, [number % min(2, len(people)) for number in range(_STUDY_DEVICES)], 0)
    with tempfile.TemporaryDirectory() as folder:
        storage = Path(folder)
        lives = [*two(lambda number: client(campaigns[number], devices, storage), at_once)]
        lives += [client(campaign, devices, storage) for campaign in campaigns]
    both = sum(
        any(answers[device] for answers in lives[0::2]) and any(answers[device] for answers in lives[1::2])
        for device in range(_STUDY_DEVICES)
    )
    refused = all_refused("two campaigns of one study", [answer for answers in lives for answer in answers])
    twice = f"{both} of {_STUDY_DEVICES} devices answered two campaigns of one study" if both else None
    return Studied(twice, refused)


def another(document: str) -> str:
    """A campaign of another study that asks the same questions of the same people. Some campaigns must name one."""
    value: Document = json.loads(document)
    study = next(name for name in ("another study", "a third study") if name != value.get("study"))
    return _renamed(value, "Another campaign", study)


def _renamed(value: Document, title: str, study: str) -> str:
    return json.dumps({**value, "title": title, "study": study}, ensure_ascii=False, separators=(",", ":"))


def _devices(people: Sequence[Person], owners: Sequence[int], turn: int) -> list[Person]:
    """The devices of their owners, and at later turns the same devices with the records of others."""
    found = []
    for number, owner in enumerate(owners):
        person = people[(number + turn) % len(people) if turn else owner]
        found.append(Person(person.record, person.label, f"device {number}"))
    return found


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
        zeros = np.zeros(len(answers), dtype=np.int64)
        seen = Seen(1, zeros, zeros, read_tables(answers))
        votes = Guesser(guesser.document, alone.people, seen, 2).votes_of(None, 0, 1, 0)
        right += int(((1, -1)[side] * votes > 0).sum())
        wrong += int(((1, -1)[side] * votes < 0).sum())
    name = "guesses by the tight events, of devices that are alone in their process"
    yield Event(name, ALONE, guesser.claim(), (), *alone.people, right, LIVES, wrong, LIVES, guessed=True)
