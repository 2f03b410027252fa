"""What every planted client is made of: an honest device whose steps can be replaced one by one.

The promise they break or keep: whatever leaves the device (ids, header, lengths, order, number of uploads, retries)
changes the odds between any two records by at most exp(epsilon).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from ldp_client.answering import encode, perturb
from protocols import SYSTEM_COINS, Campaign, Coins, Question, Report, encode_upload
from protocols.mechanisms import Moment
from protocols.wire import SECRET_BYTES, report_id

Record = Mapping[str, object]
Person = tuple[Record, str]
"""A record and its label."""

Sent = list[list[bytes]]
"""The uploads of each person's device, in the order of the people."""


class PlantedClient:
    """An honest client of many devices. A call is one process: each person in it is a fresh device.

    ``coins`` randomise answers, ``entropy`` gives that many bytes for secrets, ``now`` tells the time; the defaults
    are the operating system's, anything else is for tests that must repeat.
    """

    def __init__(
        self,
        coins: Coins = SYSTEM_COINS,
        entropy: Callable[[int], bytes] = os.urandom,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self.coins, self.entropy, self.now = coins, entropy, now
        self._sent: Sent = []

    def __call__(self, document: str | bytes, people: Sequence[Person]) -> Sent:
        """What every person's device sends."""
        campaign = Campaign.parse(document.encode() if isinstance(document, str) else document)
        self._sent = self.answer(campaign, people)
        return [list(uploads) for uploads in self._sent]

    def restart(self) -> Sent:
        """What every device of the last call sends after a restart, no acknowledgement having come: the same bytes."""
        return [list(uploads) for uploads in self._sent]

    def answer(self, campaign: Campaign, people: Sequence[Person]) -> Sent:
        """The uploads of every person, one after the other."""
        return [self.uploads(campaign, record, label) for record, label in people]

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        """The uploads of one person."""
        return [encode_upload(self.reports(campaign, record, label))]

    def reports(self, campaign: Campaign, record: Record, label: str) -> tuple[Report, ...]:
        """The honest reports, under the ids of :meth:`report_id`."""
        honest = perturb(campaign, record, label, secret=self.entropy(SECRET_BYTES), coins=self.coins)
        return tuple(replace(report, id=self.report_id(report, campaign, record, label)) for report in honest)

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        """The id under which an honest report is sent."""
        return report.id


class StepwiseClient(PlantedClient):
    """The honest device again, its steps apart: draw, encode, perturb."""

    def reports(self, campaign: Campaign, record: Record, label: str) -> tuple[Report, ...]:
        secret = self.entropy(SECRET_BYTES)
        return tuple(
            Report(question.index, report_id(secret, campaign, question), self.reply(campaign, question, record, label))
            for question in self.questions(campaign, record, label)
        )

    def questions(self, campaign: Campaign, record: Record, label: str) -> list[Question]:
        """The questions that the device answers."""
        if campaign.privacy.answers == "all":
            return [self.draw(group) for group in campaign.groups]
        return [self.draw(campaign.questions)]

    def draw(self, questions: Sequence[Question], weights: Sequence[int] | None = None) -> Question:
        """One question, with probability proportional to its weight."""
        shares = [question.weight for question in questions] if weights is None else weights
        ticket = self.coins.below(sum(shares))
        for question, share in zip(questions, shares, strict=True):
            ticket -= share
            if ticket < 0:
                return question
        raise AssertionError("a ticket is below the sum of the weights")

    def reply(self, campaign: Campaign, question: Question, record: Record, label: str) -> bytes:
        """The payload that answers a question."""
        item = encode(campaign, question, record, class_of(campaign, label), self.coins)
        return self.perturb(campaign, question, item)

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        """The payload for an item."""
        return question.perturb(item, self.coins)


def read(record: Record, name: str) -> object:
    """A value of the record; None where it is missing or cannot be read."""
    try:
        return record.get(name)
    except RuntimeError:
        return None


def class_of(campaign: Campaign, label: str) -> int:
    """The index of a declared label."""
    index = campaign.label.index_of(label)
    if index is None:
        raise ValueError(f"label {label!r} is not declared")
    return index
