"""Leaks through the coins: answers of the right distribution, whose randomness somebody else knows or shares."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence
from functools import lru_cache

from ldp_client.answering import perturb
from planted.client import Person, PlantedClient, Record, Sent, StepwiseClient
from planted.ids import record_hash
from planted.randomness import HashCoins, TwisterCoins
from planted.witness import BLUE, FRIDAY, RED, Found, Leak, Sampled, draft, first
from protocols import Campaign, Coins, Question, Report
from protocols.mechanisms import Moment
from protocols.wire import SECRET_BYTES

_TWISTER_WORDS = 624
_IDS_THAT_TELL = _TWISTER_WORDS // 4


class RecoverableTwister(PlantedClient):
    """One Mersenne Twister of the process, well seeded, gives first the ids of a batch and then its coins.

    Leaks every answer to whoever sees 156 ids in order: they are 624 outputs, and those are the state. Unbounded. No
    statistic of uploads shows it; a tester finds it who tries this very attack.
    """

    def answer(self, campaign: Campaign, people: Sequence[Person]) -> Sent:
        twister = random.Random(self.entropy(32))
        self._ids = [twister.getrandbits(128).to_bytes(16, "little") for _ in people]
        self._ids.reverse()
        self.coins = TwisterCoins(twister)
        return super().answer(campaign, people)

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        self._id = self._ids.pop()
        return super().uploads(campaign, record, label)

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        return bytes(a ^ b for a, b in zip(self._id, report.question.to_bytes(16, "little"), strict=True))


class SeededByTheSecond(PlantedClient):
    """Coins are seeded with the time in seconds.

    Leaks the answer to whoever knows when it was given. Unbounded. Devices of one second answer alike: easily found.
    """

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        self.coins = TwisterCoins(random.Random(int(self.now().timestamp())))
        return super().uploads(campaign, record, label)


class SeededWith32Bits(PlantedClient):
    """Id and coins of a device come from a generator with a seed of 32 bits.

    Leaks the answer to whoever tries the 2^32 seeds until one gives the id: an evening on a laptop. Unbounded. Ids
    repeat after some 77,000 devices: 20,000 trials of each person ask several hundred thousand and find it, 1,000 do
    not.
    """

    seed_bits = 32

    def reports(self, campaign: Campaign, record: Record, label: str) -> tuple[Report, ...]:
        twister = random.Random(int.from_bytes(self.entropy(8), "big") >> (64 - self.seed_bits))
        self._id = twister.getrandbits(128).to_bytes(16, "little")
        self.coins = TwisterCoins(twister)
        return super().reports(campaign, record, label)

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        return bytes(a ^ b for a, b in zip(self._id, report.question.to_bytes(16, "little"), strict=True))


class SeededWith15Bits(SeededWith32Bits):
    """The seed is C's rand(), which has 15 bits on some platforms.

    Leaks the answer to whoever tries 32,768 seeds. Unbounded. Ids repeat within some 200 devices: found by a tester
    that counts repeated ids.
    """

    seed_bits = 15


class SeededWith12Bits(SeededWith32Bits):
    """The flaw of 32 bits where the search ends within a test."""

    seed_bits = 12


class SeededByTheRecord(PlantedClient):
    """Coins are seeded with a hash of the record, "so that a retry gives the same answer".

    Leaks the record to whoever can list the possible ones: the answer is a function of it. Unbounded. Devices with
    equal records answer alike: easily found.
    """

    def reports(self, campaign: Campaign, record: Record, label: str) -> tuple[Report, ...]:
        self.coins = HashCoins(record_hash(record, label))
        return super().reports(campaign, record, label)


class CoinsSharedByNeighbours(PlantedClient):
    """Every second device of the process gets the coins of the one before, as two forks of one buffer do.

    Leaks to a neighbour who knows its own record and answer. Unbounded. Each upload alone is exactly epsilon-LDP: found
    only by a tester that compares neighbours.
    """

    def answer(self, campaign: Campaign, people: Sequence[Person]) -> Sent:
        sent: Sent = []
        seed = b""
        for position, (record, label) in enumerate(people):
            if position % 2 == 0:
                seed = self.entropy(32)
            self.coins = HashCoins(seed)
            sent.append(self.uploads(campaign, record, label))
        return sent


class MemoisedByValue(StepwiseClient):
    """A cache of perturbed answers by question and true item, shared by all devices of the process.

    Leaks to whoever sees two devices give one answer that is too long to agree by chance: their records are equal.
    Unbounded. Each upload alone is exactly epsilon-LDP; a tester that repeats a record in a process finds it.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._memo: dict[tuple[int, int | Moment], bytes] = {}

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        key = (question.index, item)
        if key not in self._memo:
            self._memo[key] = super().perturb(campaign, question, item)
        return self._memo[key]


def _replayed(campaign: Campaign, sent: Sent, coins: Sequence[Coins], device: int = 0) -> bool:
    """Whether the answer is what the first record gives with these coins (two copies), and the second does not: of a
    campaign's only question, which any secret draws.
    """
    ours, theirs = (
        perturb(campaign, *person, secret=bytes(SECRET_BYTES), coins=copy)[0].payload
        for person, copy in zip((RED, BLUE), coins, strict=True)
    )
    return first(campaign, sent, device).payload == ours != theirs


def _twister_cloned(campaign: Campaign, sent: Sent) -> bool:
    outputs: list[int] = []
    for device in range(_IDS_THAT_TELL):
        outputs += struct.unpack("<4I", first(campaign, sent, device).id)
    state = (3, (*map(_untemper, outputs), _TWISTER_WORDS), None)
    copies = []
    for _ in range(2):
        twister = random.Random()
        twister.setstate(state)
        for _ in sent[_IDS_THAT_TELL:]:
            twister.getrandbits(128)
        copies.append(TwisterCoins(twister))
    return _replayed(campaign, sent, copies)


def _untemper(output: int) -> int:
    """The word of the state behind an output (Matsumoto and Nishimura 1998, the tempering undone)."""
    word = output ^ output >> 18
    word ^= word << 15 & 0xEFC60000
    undone = word
    for _ in range(5):
        undone = word ^ undone << 7 & 0x9D2C5680
    word = undone
    for _ in range(3):
        undone = word ^ undone >> 11
    return undone & 0xFFFFFFFF


@lru_cache(maxsize=2)
def _seeds_by_id(bits: int) -> dict[bytes, int]:
    return {random.Random(seed).getrandbits(128).to_bytes(16, "little"): seed for seed in range(1 << bits)}


def _seed_searched(campaign: Campaign, sent: Sent, bits: int) -> bool:
    copies = []
    for _ in range(2):
        twister = random.Random(_seeds_by_id(bits)[first(campaign, sent).id])
        twister.getrandbits(128)
        copies.append(TwisterCoins(twister))
    return _replayed(campaign, sent, copies)


def _second_known(campaign: Campaign, sent: Sent) -> bool:
    second = int(FRIDAY.timestamp())
    return _replayed(campaign, sent, [TwisterCoins(random.Random(second)) for _ in range(2)])


def _alike(campaign: Campaign, sent: Sent) -> bool:
    return first(campaign, sent, 0).payload == first(campaign, sent, 1).payload


def _long_answers() -> dict[str, object]:
    return draft(discrete="she", epsilon=0.1)


LEAKS = {
    "recoverable-twister": Leak(
        RecoverableTwister,
        math.inf,
        Found.NEVER,
        Sampled(RED, BLUE, _twister_cloned, draft(discrete="she"), scene=lambda person: [person] + [RED] * 157),
        delta=1.0,
    ),
    "seeded-by-the-second": Leak(
        SeededByTheSecond, math.inf, Found.YES, Sampled(RED, BLUE, _second_known, draft(discrete="she")), delta=1.0
    ),
    "seeded-with-32-bits": Leak(
        SeededWith32Bits,
        math.inf,
        Found.NEVER,
        Sampled(
            RED,
            BLUE,
            lambda campaign, sent: _seed_searched(campaign, sent, 12),
            draft(discrete="she"),
            stand_in=SeededWith12Bits,
        ),
        delta=1.0,
    ),
    "seeded-with-15-bits": Leak(
        SeededWith15Bits,
        math.inf,
        Found.PERHAPS,
        Sampled(RED, BLUE, lambda campaign, sent: _seed_searched(campaign, sent, 15), draft(discrete="she")),
        delta=1.0,
    ),
    "seeded-by-the-record": Leak(
        SeededByTheRecord,
        math.inf,
        Found.YES,
        Sampled(
            RED,
            BLUE,
            lambda campaign, sent: _replayed(
                campaign, sent, [HashCoins(record_hash(*RED)), HashCoins(record_hash(*BLUE))]
            ),
            draft(discrete="she"),
        ),
        delta=1.0,
    ),
    "coins-shared-by-neighbours": Leak(
        CoinsSharedByNeighbours,
        math.inf,
        Found.PERHAPS,
        Sampled(RED, BLUE, _alike, draft(discrete="she"), scene=lambda person: [person, RED]),
        delta=1.0,
    ),
    "memoised-by-value": Leak(
        MemoisedByValue,
        math.inf,
        Found.PERHAPS,
        Sampled(RED, BLUE, _alike, _long_answers(), scene=lambda person: [person, RED]),
        delta=1.0,
    ),
}
