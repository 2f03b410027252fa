"""Leaks through the sixteen bytes that are meant to say nothing: the report's id."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from functools import lru_cache

from planted.client import PlantedClient, Record, class_of
from planted.witness import BLUE, RED, RED_NO, Found, Leak, Sampled, draft, first
from protocols import Campaign, Report

VENDOR_KEY = b"known to the vendor, and to no auditor"


class IdFromTheRecord(PlantedClient):
    """The id is a hash of the record, "so that nobody is counted twice".

    Leaks the whole record to anyone who can list the possible ones. Unbounded. Equal records collide: easily found.
    """

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        return record_hash(record, label)


class IdWithAShortSalt(PlantedClient):
    """The id is a hash of the record and of sixteen random bits.

    Leaks the whole record to anyone who makes a table of 65,536 hashes for each possible one. Unbounded. In 20,000
    trials ids collide some 3,000 times, so a tester that counts repeated ids finds it; with 48 bits none would.
    """

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        return salted_hash(record, label, self.entropy(2))


class LowBitOfTheIdByClass(PlantedClient):
    """The last bit of the id is 1 with probability 0.6 for one class and 0.4 for the other.

    Leaks the class to whoever sees ids: ln 1.5 on top of epsilon. Found by a tester that joins bits of the id with the
    answer (alone, the bit is well below epsilon).
    """

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        biased = self.coins.below(10) < (6 if class_of(campaign, label) == 0 else 4)
        return report.id[:-1] + bytes([report.id[-1] & 0xFE | biased])


class IdsCountByClass(PlantedClient):
    """Ids are numbers from a counter of the process, which steps by one or by two, by the class of the last device.

    Leaks the class of every device to whoever sees the next device's id. Unbounded. Each id alone is innocent: found
    only by a tester that looks at differences between neighbours.
    """

    _counter = 0

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        if not self._counter:
            self._counter = int.from_bytes(self.entropy(8), "big") + 1
        number, self._counter = self._counter, self._counter + 1 + class_of(campaign, label)
        return number.to_bytes(16, "big")


class KeyedMarkInTheId(PlantedClient):
    """Half of the id is random, the other half its HMAC with the class under the vendor's key.

    Leaks the class to the vendor alone. Unbounded. To everybody else the ids are uniformly random: undetectable.
    """

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        nonce = report.id[:8]
        return nonce + keyed(nonce + label.encode())[:8]


class IdChosenByKeyedHash(PlantedClient):
    """Secrets are redrawn until a keyed hash of the id they give ends in the bit that is the class.

    Leaks the class to the vendor alone (an algorithm-substitution attack: Bellare, Paterson, Rogaway 2014). Unbounded.
    Every id is a valid one with a valid secret, and uniform to everybody else: undetectable.
    """

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        while True:
            chosen = hmac.digest(self.entropy(32), campaign.id.encode(), "sha256")[:16]
            if keyed(chosen)[0] & 1 == class_of(campaign, label) & 1:
                return chosen


def record_hash(record: Record, label: str) -> bytes:
    return hashlib.sha256(json.dumps([dict(record), label], sort_keys=True).encode()).digest()[:16]


def salted_hash(record: Record, label: str, salt: bytes) -> bytes:
    return hashlib.sha256(record_hash(record, label) + salt).digest()[:16]


def keyed(message: bytes) -> bytes:
    return hmac.digest(VENDOR_KEY, message, "sha256")


@lru_cache(maxsize=2)
def _salted_reds() -> frozenset[bytes]:
    return frozenset(salted_hash(*RED, salt.to_bytes(2, "big")) for salt in range(1 << 16))


def _counts_by_one(campaign: Campaign, sent: list[list[bytes]]) -> bool:
    here, then = (int.from_bytes(first(campaign, sent, device).id, "big") for device in (0, 1))
    return then - here == 1


def _keyed_mark(campaign: Campaign, sent: list[list[bytes]]) -> bool:
    found = first(campaign, sent).id
    return found[8:] == keyed(found[:8] + b"yes")[:8]


def _yes_in_bit_and_answer(campaign: Campaign, sent: list[list[bytes]]) -> bool:
    report = first(campaign, sent)
    return bool(report.id[-1] & 1) and report.payload == b"\0"


LEAKS = {
    "id-from-the-record": Leak(
        IdFromTheRecord,
        math.inf,
        Found.YES,
        Sampled(RED, BLUE, lambda campaign, sent: first(campaign, sent).id == record_hash(*RED), draft()),
        delta=1.0,
    ),
    "id-with-a-short-salt": Leak(
        IdWithAShortSalt,
        math.inf,
        Found.PERHAPS,
        Sampled(RED, BLUE, lambda campaign, sent: first(campaign, sent).id in _salted_reds(), draft()),
        delta=1.0,
    ),
    "low-bit-of-the-id-by-class": Leak(
        LowBitOfTheIdByClass,
        1.0 + math.log(1.5),
        Found.PERHAPS,
        Sampled(RED, RED_NO, _yes_in_bit_and_answer, draft(), trials=20_000),
    ),
    "ids-count-by-class": Leak(
        IdsCountByClass,
        math.inf,
        Found.PERHAPS,
        Sampled(RED, RED_NO, _counts_by_one, draft(), scene=lambda person: [person, RED]),
        delta=1.0,
    ),
    "keyed-mark-in-the-id": Leak(
        KeyedMarkInTheId, math.inf, Found.NEVER, Sampled(RED, RED_NO, _keyed_mark, draft()), delta=1.0
    ),
    "id-chosen-by-keyed-hash": Leak(
        IdChosenByKeyedHash,
        math.inf,
        Found.NEVER,
        Sampled(RED, RED_NO, lambda campaign, sent: not keyed(first(campaign, sent).id)[0] & 1, draft()),
        delta=1.0,
    ),
}
