"""A campaign with windows, asked through whole lives: every device in every window, with the record that it has then.

The promise is about any two lives. So people whose records change between windows are asked beside those whose records
stand still, and all that a device sends in its life, with the window in which it sends it, is one observation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ldp_aggregator.audit.asking.black_box import Answer, Client, Person
from ldp_aggregator.audit.asking.people import Document

WINDOWS: Final = 4
"""Windows of an audit, whatever the campaign has: a life of so many windows has every kind of change in it."""

_FROM: Final = "2027-01-01T00:00:00Z"
_NOON: Final = "2027-01-{:02d}T12:00:00Z"
"""Windows are days, and devices are asked at noon."""


@dataclass(frozen=True)
class Lives:
    """A series as an audit asks it.

    ``document`` is what clients get, the campaign's with windows of a day; in ``told`` the questions of every window
    stand one after the other, as reports number them, each with its window.
    """

    document: str
    told: Document

    @classmethod
    def of(cls, document: str) -> Lives | None:
        """The lives in a document's campaign; None where it has no windows."""
        value: dict[str, Any] = json.loads(document)
        if value.get("windows") is None:
            return None
        value["windows"] = {"from": _FROM, "length": "P1D", "count": WINDOWS}
        questions = [{**asked, "window": window} for window in range(WINDOWS) for asked in value["questions"]]
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return cls(text, {**value, "questions": questions})

    def people(self, people: Sequence[Person]) -> tuple[Person, ...]:
        """Return the people, and some of them who become each other from one window to the next."""
        first, *others = people[:4]
        changing: list[Person] = []
        for other in others:
            lives = ((other,) * 3, (first, other, other), (first, first, other), (other, first, other))
            changing += [replace(first, later=later) for later in lives]
            changing.append(replace(other, later=(first, other, first)))
        return (*people, *changing)

    def client(self, client: Client) -> Client:
        """Return the client as one that is asked for lives.

        The answer of a fresh device has an entry for every window, empty where it sends nothing new. With a storage,
        where devices are asked again at any time, it is what the device sends, once each.
        """

        def ask(document: str, people: Sequence[Person], storage: Path | None = None, /) -> list[Answer]:
            asked = [
                replace(
                    person.in_window(window), device=person.device or f"life {number}", now=_NOON.format(window + 1)
                )
                for window in range(WINDOWS)
                for number, person in enumerate(people)
            ]
            answers = client(document, asked, storage)
            return [tuple(_life(answers[number :: len(people)], storage is None)) for number in range(len(people))]

        return ask


def _life(answers: Sequence[Answer], in_windows: bool) -> Iterator[bytes]:
    """Give what a device sent, less what it had sent before: a retry of what never arrived."""
    sent: set[bytes] = set()
    for answer in answers:
        new = [upload for upload in dict.fromkeys(answer) if upload not in sent]
        sent.update(new)
        yield from new or ([b""] if in_windows else [])


def answers_twice(answers: Sequence[Answer]) -> str | None:
    """Find devices that send more than once in their life. None where there is none."""
    twice = sum(sum(map(bool, answer)) > 1 for answer in answers)
    return f"{twice} of {len(answers)} devices sent more than one answer in their life" if twice else None
