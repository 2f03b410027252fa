"""Clients that the audit asks: an honest device, one of whose steps a planted flaw takes the place of.

And how thorough the tests of the audit are: a few clients and few trials in every run, all of them at length.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from exact_coins import SeededCoins

from ldp_aggregator.audit import Answer, Person
from ldp_client.answering import item_of, perturb
from ldp_client.draw import draw_questions
from ldp_protocols import Campaign, Coins, Question, Report, encode_upload
from ldp_protocols.mechanisms import Moment
from ldp_protocols.values import held
from ldp_protocols.wire import report_id

AT_LENGTH: Final = 20_000
"""Trials of each person, the command's default."""

_LARGE: Final = 1 << 100
"""Seeds are above it: an audit tries small numbers as seeds."""


def cases(every: Iterable[Any], few: Mapping[Any, int], at_length: int = AT_LENGTH) -> list[Any]:
    """Return whom a test asks, and how often: ``few`` in every run, everybody so often ``at_length``."""
    every = list(every)
    unknown = set(few) - set(every)
    if unknown:
        raise ValueError(f"there is no {', '.join(sorted(map(str, unknown)))}")
    return [*few.items(), *(pytest.param(one, at_length, marks=pytest.mark.long) for one in every)]


class Process:
    """One life of a process, on a Friday: its coins, its entropy, the people it answers, and its memory."""

    def __init__(self, seed: int, people: Sequence[Person]) -> None:
        self.coins: Coins = SeededCoins(_LARGE + seed)
        self.entropy = np.random.default_rng(_LARGE + seed).bytes
        self.people, self.now = people, datetime(2026, 3, 13, 12, tzinfo=timezone.utc)
        self.memory: dict[Any, Any] = {}


class Device:
    """An honest device, its steps apart: every method may be replaced by a function that takes the device first."""

    def __init__(self, process: Process, campaign: Campaign, person: Person) -> None:
        self.process, self.campaign, self.person = process, campaign, person
        self.coins, self.entropy = process.coins, process.entropy
        self.secret = self.entropy(32)

    @property
    def class_index(self) -> int:
        return self.campaign.label.classes.index(self.person.label)

    def held(self, name: str | None) -> Any:
        """A value of the record; None where it is missing or cannot be read."""
        return None if name is None else held(self.person.record, name)

    def perturbed(self, campaign: Campaign | None = None, coins: Coins | None = None) -> Sequence[Report]:
        """The reports of the distribution's own client."""
        record, label = self.person.record, self.person.label
        return perturb(campaign or self.campaign, record, label, secret=self.secret, coins=coins or self.coins)

    def study(self) -> str | None:
        return self.campaign.study

    def send(self) -> Answer:
        return (encode_upload(self.reports(), self.campaign),)

    def again(self, sent: Answer) -> Answer:
        """Send what was ``sent`` before the process ended, no acknowledgement having come."""
        return sent

    def reports(self) -> Sequence[Report]:
        return [Report(asked.index, self.report_id(asked), self.reply(asked)) for asked in self.questions()]

    def questions(self) -> Sequence[Question]:
        return draw_questions(self.campaign, self.secret)

    def report_id(self, asked: Question) -> bytes:
        return report_id(self.secret, self.campaign, asked)

    def reply(self, asked: Question) -> bytes:
        return self.perturb(asked, self.item(asked))

    def item(self, asked: Question) -> Any:
        """The index, or the moment, that answers a question before it is perturbed."""
        return item_of(self.campaign, asked, self.person.record, self.class_index, self.coins)

    def perturb(self, asked: Question, item: int | Moment) -> bytes:
        return asked.perturb(item, self.coins)


class Client:
    """A client as the audit asks it: every call is a process, and devices of a storage are asked again.

    Without a flaw it is the client of this distribution.
    """

    def __init__(self, seed: int = 0, step: str = "reports", flaw: Callable[..., Any] = Device.perturbed) -> None:
        self._seed, self._step, self._flaw = 1000 * seed, step, flaw
        self._stored: dict[tuple[object, ...], tuple[Device, Answer]] = {}
        self._studies: dict[tuple[object, ...], str] = {}

    def __call__(self, document: str, people: Sequence[Person], storage: Path | None = None, /) -> list[Answer]:
        campaign = Campaign.parse(document.encode())
        self._seed += 1
        process = Process(self._seed, people)
        answers = []
        for person in people:
            device = Device(process, campaign, person)
            setattr(device, self._step, partial(self._flaw, device))
            answers.append(device.send() if storage is None else self._kept(device, storage))
        return answers

    def _kept(self, device: Device, storage: Path) -> Answer:
        name, study, document = device.person.device, device.study(), device.campaign.id
        if study is not None and self._studies.setdefault((storage, name, study), document) != document:
            return ()
        key = storage, name, document
        if key not in self._stored:
            self._stored[key] = device, device.send()
            return self._stored[key][1]
        first, sent = self._stored[key]
        return first.again(sent)


@dataclass(frozen=True)
class Planted:
    """A function that takes the place of a device's ``step``, in a campaign where it shows.

    ``code`` is that of the finding, None where there is none; ``trials`` are enough to find it.
    """

    flaw: Callable[..., Any]
    step: str
    document: str
    code: str | None
    trials: int

    def client(self) -> Client:
        return Client(step=self.step, flaw=self.flaw)


def planted_in(table: dict[str, Planted]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return two decorators that enter a function into ``table``: under its own name, or under ``name`` with the
    ``arguments`` that follow the step's own; and for each row of a name, a code, a document, trials, and a ``how``.
    """

    def plant(
        code: str | None, document: str, step: str, *, name: str | None = None, trials: int = 1000, **arguments: Any
    ) -> Callable[..., Any]:
        def enter(flaw: Callable[..., Any]) -> Callable[..., Any]:
            called = name or flaw.__name__.replace("_", "-")
            if called in table:
                raise ValueError(f"there are two clients {called}")
            table[called] = Planted(partial(flaw, **arguments), step, document, code, trials)
            return flaw

        return enter

    def plant_each(*rows: tuple[str, str | None, str, int, Any], step: str) -> Callable[..., Any]:
        def enter(flaw: Callable[..., Any]) -> Callable[..., Any]:
            for name, code, document, trials, how in rows:
                plant(code, document, step, name=name, trials=trials, how=how)(flaw)
            return flaw

        return enter

    return plant, plant_each
