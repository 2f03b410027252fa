"""Leaks over time: retries, restarts, and what one device of a process leaves behind for the next."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planted.client import Person, PlantedClient, Record, Sent, class_of
from planted.witness import BLUE, RED, RED_NO, Event, Found, Leak, Sampled, draft, reports
from protocols import Campaign, Report, encode_upload


class ForgetfulClient(PlantedClient):
    """A client that keeps the people, to do something else than sending the same bytes after a restart."""

    def answer(self, campaign: Campaign, people: Sequence[Person]) -> Sent:
        self._campaign, self._people = campaign, list(people)
        return super().answer(campaign, people)

    def restart(self) -> Sent:
        self._sent = [
            self.again(self._campaign, person, before) for person, before in zip(self._people, self._sent, strict=True)
        ]
        return [list(uploads) for uploads in self._sent]

    def again(self, campaign: Campaign, person: Person, before: list[bytes]) -> list[bytes]:
        """What a device sends now, that sent ``before`` and remembers nothing of it."""
        return self.uploads(campaign, *person)


class FreshAnswerUnderANewId(ForgetfulClient):
    """Nothing is stored before it is sent: after a restart the device draws, perturbs and names its report anew.

    Leaks to the server: epsilon more with every restart, and every answer is counted. Found by a tester that restarts.
    """


class FreshNoiseUnderTheSameId(ForgetfulClient):
    """The secret is stored, the report is not: after a restart another answer goes out under the same id.

    Leaks to everybody who keeps both: epsilon more with every restart. Found by a tester that restarts.
    """

    def again(self, campaign: Campaign, person: Person, before: list[bytes]) -> list[bytes]:
        ids = [report.id for upload in before for report in reports(campaign, upload)]
        anew = self.reports(campaign, *person)
        return [encode_upload([Report(r.question, i, r.payload) for r, i in zip(anew, ids, strict=True)])]


class StoredForOneClass(ForgetfulClient):
    """The outbox is written for one class only (for the other the write fails unnoticed): a restart loses the report.

    Leaks the class to everybody who sees retries. Unbounded with a restart. Found by a tester that restarts.
    """

    def again(self, campaign: Campaign, person: Person, before: list[bytes]) -> list[bytes]:
        return before if class_of(campaign, person[1]) == 0 else []


class RetriesByClass(ForgetfulClient):
    """After a restart one class sends its report again twice, having queued it in two places.

    Leaks the class to everybody who counts retries. Unbounded with a restart; nothing before it. Found by a tester that
    restarts and counts.
    """

    def again(self, campaign: Campaign, person: Person, before: list[bytes]) -> list[bytes]:
        return before * (1 + class_of(campaign, person[1]))


class PreviousRecordFillsGaps(PlantedClient):
    """One dictionary serves all devices of the process: what a record lacks, it gets from the one before.

    Leaks a record to everybody, epsilon for every later device that lacks the value: the loss grows without end. Found
    only by a tester whose people lack values after others had them.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._record: dict[str, object] = {}

    def reports(self, campaign: Campaign, record: Record, label: str) -> tuple[Report, ...]:
        self._record.update(record)
        return super().reports(campaign, self._record, label)


class PreviousUploadSentAgain(PlantedClient):
    """A buffer is not emptied between devices: a device of one class sends the previous device's upload as well.

    Leaks the class to everybody who counts, if somebody was there before. Unbounded. A tester with one device a process
    never sees it.
    """

    def answer(self, campaign: Campaign, people: Sequence[Person]) -> Sent:
        sent: Sent = []
        for record, label in people:
            left_over = sent[-1][-1:] if sent and class_of(campaign, label) else []
            sent.append(left_over + self.uploads(campaign, record, label))
        return sent


def _first_cell_twice(campaign: Campaign, sent: Sent) -> bool:
    """Both answers say the first cell."""
    return [report.payload for upload in sent[0] for report in reports(campaign, upload)] == [b"\0", b"\0"]


def _often_first(campaign: Campaign, sent: Sent) -> bool:
    """Six of the nineteen later devices say the first cell."""
    later = [report.payload for uploads in sent[1:] for report in reports(campaign, uploads[0])]
    return later.count(b"\0") >= 6


def _uploads(count: int, device: int = 0) -> Event:
    return lambda campaign, sent: len(sent[device]) == count


LEAKS = {
    "fresh-answer-under-a-new-id": Leak(
        FreshAnswerUnderANewId,
        2.0,
        Found.PERHAPS,
        Sampled(RED, BLUE, _first_cell_twice, draft(), restarts=1, trials=12_000),
    ),
    "fresh-noise-under-the-same-id": Leak(
        FreshNoiseUnderTheSameId,
        2.0,
        Found.PERHAPS,
        Sampled(RED, BLUE, _first_cell_twice, draft(), restarts=1, trials=12_000),
    ),
    "stored-for-one-class": Leak(
        StoredForOneClass, math.inf, Found.PERHAPS, Sampled(RED, RED_NO, _uploads(2), draft(), restarts=1), delta=1.0
    ),
    "retries-by-class": Leak(
        RetriesByClass, math.inf, Found.PERHAPS, Sampled(RED_NO, RED, _uploads(3), draft(), restarts=1), delta=1.0
    ),
    "previous-record-fills-gaps": Leak(
        PreviousRecordFillsGaps,
        20.0,
        Found.PERHAPS,
        Sampled(RED, BLUE, _often_first, draft(), scene=lambda person: [person] + [({}, "yes")] * 19, trials=600),
    ),
    "previous-upload-sent-again": Leak(
        PreviousUploadSentAgain,
        math.inf,
        Found.PERHAPS,
        Sampled(RED_NO, RED, _uploads(2, 1), draft(), scene=lambda person: [RED, person]),
        delta=1.0,
    ),
}
