"""The audit itself: ask, observe, bound, and say what was found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ldp_aggregator.audit.black_box import Client, Person
from ldp_aggregator.audit.bounds import CONFIDENCE
from ldp_aggregator.audit.events import Event, guesses, key_of, searched, tight
from ldp_aggregator.audit.observations import Observations, observe
from ldp_aggregator.audit.people import Document, pairs

LOSS: Final = "loss-above-claim"
IMPOSSIBLE: Final = "impossible-report"
RETRY: Final = "retry-differs"
LENGTH: Final = "length-tells"

DEVICES: Final = 32
"""Devices that are asked again."""

_TIMES: Final = 3

_SHARES: Final = (1 / 2, 1 / 4, 1 / 4)
"""Of the probability to be wrong: for guesses, which prove the most of a sound client, tight and searched events."""


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
    people = list({key_of(person): person for pair in compared for person in pair}.values())
    uploads = client(document, [person for person in people for _ in range(trials)])
    seen = {key_of(p): observe(uploads[i * trials : (i + 1) * trials]) for i, p in enumerate(people)}
    ordered = [pair for one, other in compared for pair in ((one, other), (other, one))]
    kinds = (
        [event for one, other in compared for event in guesses(value, one, other, seen)],
        [event for one, other in ordered for event in tight(value, one, other, seen)],
        [event for one, other in ordered for event in searched(one, other, seen)],
    )
    alpha = 1 - CONFIDENCE
    events = [
        event.bounded(share * alpha / len(kind)) for share, kind in zip(_SHARES, kinds, strict=True) for event in kind
    ]
    events.sort(key=lambda event: -event.bound)
    findings = [*_loss_findings(claim, events), *_length_findings(seen), *_retry_findings(document, client, people)]
    return Audit(claim, trials, tuple(events), tuple(findings))


def _loss_findings(claim: float, events: list[Event]) -> Iterator[Finding]:
    for event in events:
        if event.bound > claim:
            code = LOSS if event.others else IMPOSSIBLE
            yield Finding(code, f"{event}; the loss is at least {event.bound:.4g}, above {claim:g}")


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
