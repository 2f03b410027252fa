"""The audit itself: ask, observe, bound, and say what was found."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ldp_aggregator.audit.black_box import Client, Person
from ldp_aggregator.audit.bounds import CONFIDENCE, loss_bound
from ldp_aggregator.audit.observations import Observations, Shape, observe
from ldp_aggregator.audit.people import Document, pairs
from ldp_aggregator.audit.search import find_events
from ldp_aggregator.audit.tight_events import tight_event

LOSS: Final = "loss-above-claim"
IMPOSSIBLE: Final = "impossible-report"
RETRY: Final = "retry-differs"
LENGTH: Final = "length-tells"

DEVICES: Final = 32
"""Devices that are asked again."""

_TIMES: Final = 3


@dataclass(frozen=True)
class Event:
    """One event under a pair of people: how often it was seen, and the loss that this proves."""

    name: str
    questions: tuple[int, ...]
    one: Person
    other: Person
    ones: int
    one_trials: int
    others: int
    other_trials: int
    bound: float

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


@dataclass(frozen=True)
class Finding:
    """What is wrong, by a stable code."""

    code: str
    text: str


@dataclass(frozen=True)
class Audit:
    """``lower_bound`` of the true loss holds with a confidence of 99 %; ``events`` are sorted by their bounds."""

    claim: float
    trials: int
    events: tuple[Event, ...]
    findings: tuple[Finding, ...]

    @property
    def lower_bound(self) -> float:
        return max(0.0, *(event.bound for event in self.events))

    @property
    def passed(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "claim": self.claim,
            "lower_bound": self.lower_bound,
            "confidence": CONFIDENCE,
            "trials": self.trials,
            "findings": [{"code": finding.code, "text": finding.text} for finding in self.findings],
            "events": [event.to_json() for event in self.events],
        }


def audit(document: str, client: Client, trials: int) -> Audit:
    """Ask ``client`` for ``trials`` uploads of every person, and compare what it tells with what the document claims.

    Sound for any client: a correct one fails with probability at most 1 %. How much is found depends on the trials.
    """
    value: Document = json.loads(document)
    claim = float(value["privacy"]["epsilon"])
    compared = pairs(value)
    people = list({_key(person): person for pair in compared for person in pair}.values())
    uploads = client(document, [person for person in people for _ in range(trials)])
    seen = {_key(p): observe(uploads[i * trials : (i + 1) * trials]) for i, p in enumerate(people)}
    ordered = [pair for one, other in compared for pair in ((one, other), (other, one))]
    counted = [
        counts
        for one, other in ordered
        for counts in (
            *_tight(value, one, other, seen[_key(one)], seen[_key(other)]),
            *_searched(one, other, seen[_key(one)], seen[_key(other)]),
        )
    ]
    alpha = (1 - CONFIDENCE) / max(1, len(counted))
    events = sorted(
        (
            Event(
                **counts,
                bound=float(
                    loss_bound(counts["ones"], counts["one_trials"], counts["others"], counts["other_trials"], alpha)
                ),
            )
            for counts in counted
        ),
        key=lambda event: -event.bound,
    )
    findings = [*_loss_findings(claim, events), *_length_findings(seen), *_retry_findings(document, client, people)]
    return Audit(claim, trials, tuple(events), tuple(findings))


def _key(person: Person) -> str:
    return json.dumps(person.to_json(), sort_keys=True)


def _tight(
    document: Document, one: Person, other: Person, mine: Observations, theirs: Observations
) -> Iterator[dict[str, Any]]:
    """The tight event of every question that is answered alone, on all trials."""
    for shape in dict.fromkeys((*mine.shapes, *theirs.shapes)):
        if len(shape) != 1 or not _as_documented(document, shape):
            continue
        flags = [tight_event(document, shape[0][0], one, other, seen.rows(shape, None)) for seen in (mine, theirs)]
        if flags[0] is not None and flags[1] is not None:
            yield {
                "name": "tight event",
                "questions": (shape[0][0],),
                "one": one,
                "other": other,
                "ones": int(flags[0].sum()),
                "one_trials": mine.trials,
                "others": int(flags[1].sum()),
                "other_trials": theirs.trials,
            }


def _as_documented(document: Document, shape: Shape) -> bool:
    """Whether the question exists and its payload has the width that its mechanism has."""
    ((question, size),) = shape
    if not 0 <= question < len(document["questions"]):
        return False
    asked = document["questions"][question]
    d = asked["domain_size"]
    index = 1 if d <= 1 << 8 else 2 if d <= 1 << 16 else 4
    widths = {"de": index, "onebit": index + 1, "she": 4 * d, "laplace": 4 * d}
    return bool(size == widths.get(asked["mechanism"], -(-d // 8)))


def _searched(one: Person, other: Person, mine: Observations, theirs: Observations) -> Iterator[dict[str, Any]]:
    for event in find_events(mine, theirs):
        yield {
            "name": event.name,
            "questions": tuple(question for question, _ in event.shape),
            "one": one,
            "other": other,
            "ones": event.count(mine, 1),
            "one_trials": mine.half_trials(1),
            "others": event.count(theirs, 1),
            "other_trials": theirs.half_trials(1),
        }


def _loss_findings(claim: float, events: list[Event]) -> Iterator[Finding]:
    for event in events:
        if event.bound > claim:
            code = LOSS if event.others else IMPOSSIBLE
            yield Finding(
                code,
                f"{event.name} of questions {list(event.questions)}: seen {event.ones} times in {event.one_trials} "
                f"under {_key(event.one)} and {event.others} times in {event.other_trials} under {_key(event.other)}; "
                f"the loss is at least {event.bound:.4g}, above {claim:g}",
            )


def _length_findings(seen: Mapping[str, Observations]) -> Iterator[Finding]:
    """An upload's length may depend on the questions only."""
    lengths: dict[tuple[int, ...], set[int]] = {}
    for observations in seen.values():
        for number, shape in enumerate(observations.shapes):
            questions = tuple(question for question, _ in shape)
            lengths.setdefault(questions, set()).update(observations.lengths[observations.shape == number].tolist())
    for questions, found in lengths.items():
        if len(found) > 1:
            yield Finding(
                LENGTH, f"answers to questions {list(questions)} have {sorted(found)} bytes; one length is right"
            )


def _retry_findings(document: str, client: Client, people: list[Person]) -> Iterator[Finding]:
    """A device that is asked again sends the same bytes: fresh noise would average out. So does one whose record has
    changed since.
    """
    devices = [f"device {number}" for number in range(DEVICES)]
    asked = [
        Person(people[(number + turn) % len(people)].record, people[(number + turn) % len(people)].label, name)
        for turn in range(_TIMES)
        for number, name in enumerate(devices)
    ]
    uploads = client(document, asked)
    turns = [uploads[turn * DEVICES : (turn + 1) * DEVICES] for turn in range(_TIMES)]
    different = sum(len(set(sent)) > 1 for sent in zip(*turns, strict=True))
    if different:
        yield Finding(RETRY, f"{different} of {DEVICES} devices sent other bytes when they were asked again")
