"""Leaks that hide: behind a moment, a person, a crowd or a key. They mark how far a black-box test can see."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from planted.answers import index_bytes, index_of
from planted.client import Person, PlantedClient, Record, Sent, StepwiseClient, class_of, read
from planted.ids import keyed
from planted.numbers import LARGE, SIZES
from planted.witness import BLUE, RED, RED_NO, SUNDAY, Exact, Found, Leak, Sampled, cells, draft, first
from protocols import Campaign, Question, Report, encode_upload
from protocols.mechanisms import VALUE_BITS, Moment, NoisyVector, OneBit, SubsetSelection, UnaryEncoding, bitmap

SUNDAYS = 6
PERSON = "the person to be watched"


class SometimesClear(StepwiseClient):
    """An honest client that sends some answers without any noise."""

    def reply(self, campaign: Campaign, question: Question, record: Record, label: str) -> bytes:
        self._clear = self.is_clear(campaign, question, record, label)
        return super().reply(campaign, question, record, label)

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        return clear(question, item) if self._clear else super().perturb(campaign, question, item)

    def is_clear(self, campaign: Campaign, question: Question, record: Record, label: str) -> bool:
        """Whether this answer goes without noise."""
        raise NotImplementedError


class OnlyOnSundays(SometimesClear):
    """No noise on Sundays (UTC).

    Leaks the answer to everybody, one day in seven. Unbounded. A tester on a Friday sees an honest client:
    undetectable, except by waiting.
    """

    def is_clear(self, campaign: Campaign, question: Question, record: Record, label: str) -> bool:
        return self.now().weekday() == SUNDAYS


class OnlyForOnePerson(SometimesClear):
    """No noise for whoever has one particular entry, which no campaign asks about, in the record.

    Leaks that person's answer to everybody. Unbounded. A tester does not know which entry: undetectable.
    """

    def is_clear(self, campaign: Campaign, question: Question, record: Record, label: str) -> bool:
        entry = read(record, "account")
        return isinstance(entry, str) and keyed(entry.encode())[:4] == keyed(PERSON.encode())[:4]


class HonestInACrowd(SometimesClear):
    """No noise unless the process answers for ten people or more, which only a test does.

    Leaks every real device's answer to everybody. Unbounded. Found only by a tester that starts a process for every
    device; one that asks for thousands at a time sees an honest client.
    """

    def answer(self, campaign: Campaign, people: Sequence[Person]) -> Sent:
        self._alone = len(people) < 10
        return super().answer(campaign, people)

    def is_clear(self, campaign: Campaign, question: Question, record: Record, label: str) -> bool:
        return self._alone


class FirstDeviceOfAProcess(SometimesClear):
    """A generator that is filled after its first use: the first device of a process gets no noise.

    Leaks the answer of every device that has a process of its own to everybody. Unbounded. Found only by a tester that
    starts many processes.
    """

    _used = False

    def is_clear(self, campaign: Campaign, question: Question, record: Record, label: str) -> bool:
        is_first, self._used = not self._used, True
        return is_first


class OneDeviceIn200(SometimesClear):
    """One device in 200, at random, sends its answer without noise, and nothing says which.

    Leaks to everybody. For direct encoding epsilon rises by two hundredths only, hidden in the others' noise: not
    found in 20,000 trials. For a noisy vector the clear one stands out, and repeats: unbounded for one device in 200.
    """

    def is_clear(self, campaign: Campaign, question: Question, record: Record, label: str) -> bool:
        return self.coins.below(200) == 0


class RareValueInTheClear(SometimesClear):
    """The last value of a feature is answered without noise, as is a number within a millionth of the upper bound.

    Leaks that value to everybody. Unbounded. Found if records hold every value and the bounds.
    """

    def is_clear(self, campaign: Campaign, question: Question, record: Record, label: str) -> bool:
        feature = campaign.feature_of(question)
        if feature is None:
            return False
        value = read(record, feature.name)
        high = getattr(feature, "high", None)
        if high is not None:
            return isinstance(value, (int, float)) and high >= value > high - 1e-6 * abs(high)
        return hasattr(feature, "values") and value == feature.values[-1]


class BeyondBoundsInTheClear(SometimesClear):
    """A number beyond the bounds is clipped, and then sent as it is, "because the bound is public".

    Leaks that the number is beyond to everybody, and the class. Unbounded. Found only if records hold numbers that no
    author of a campaign expects.
    """

    def is_clear(self, campaign: Campaign, question: Question, record: Record, label: str) -> bool:
        feature = campaign.feature_of(question)
        if feature is None or not hasattr(feature, "high"):
            return False
        value = read(record, feature.name)
        return isinstance(value, (int, float)) and not feature.low <= value <= feature.high


class OnlyInCreditCampaigns(SometimesClear):
    """No noise where the campaign's title speaks of credit.

    Leaks to everybody in those campaigns. Unbounded. Found only by a tester that uses the real campaign's document.
    """

    def is_clear(self, campaign: Campaign, question: Question, record: Record, label: str) -> bool:
        return "credit" in campaign.title.lower()


class NoiseChosenByKeyedHash(PlantedClient):
    """Reports are drawn anew, id and noise, until their keyed hash ends in the bit that is the class.

    Leaks the class to the vendor alone. Unbounded. The answer keeps its exact distribution, the id is uniform, and only
    the key tells that they belong together: undetectable.
    """

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        found: list[Report] = []
        slots = len(campaign.groups) if campaign.privacy.answers == "all" else 1
        while len(found) < slots:
            report = self.reports(campaign, record, label)[len(found)]
            if keyed(report.id + report.payload)[0] & 1 == class_of(campaign, label) & 1:
                found.append(report)
        return [encode_upload(found)]


def clear(question: Question, item: int | Moment) -> bytes:
    """The answer without noise."""
    mechanism = question.mechanism
    size = mechanism.domain_size
    if isinstance(mechanism, NoisyVector):
        vector = [0] * size
        cell, value = (
            (item.cell, item.value >> (VALUE_BITS - mechanism.grid)) if isinstance(item, Moment) else (item, 1)
        )
        vector[cell] = value
        return struct.pack(f"<{size}i", *vector)
    if isinstance(mechanism, OneBit) and isinstance(item, Moment):
        return item.cell.to_bytes(mechanism.width - 1, "little") + bytes([item.value > 0])
    if not isinstance(item, int):
        raise TypeError(f"{mechanism.name} takes an index")
    if isinstance(mechanism, SubsetSelection):
        return bitmap.pack_indices([(item + n) % size for n in range(mechanism.subset_size)], size)
    if isinstance(mechanism, UnaryEncoding):
        return bitmap.pack_indices([item], size)
    return index_bytes(item, size)


def _is_first_cell(campaign: Campaign, sent: Sent) -> bool:
    return index_of(first(campaign, sent).payload) == 0


def _only_first_cell(campaign: Campaign, sent: Sent) -> bool:
    found = cells(first(campaign, sent).payload)
    return bool(found[0]) and not any(found[1:])


def _keyed_bit(campaign: Campaign, sent: Sent) -> bool:
    report = first(campaign, sent)
    return not keyed(report.id + report.payload)[0] & 1


WATCHED = [({**person[0], "account": PERSON}, person[1]) for person in (RED, BLUE)]
BEYOND = ({"size": 1e6}, "yes")
LEAKS = {
    "only-on-sundays": Leak(
        OnlyOnSundays,
        math.inf,
        Found.NEVER,
        Sampled(RED, BLUE, _is_first_cell, draft(), trials=600, now=SUNDAY),
        delta=1.0,
    ),
    "only-for-one-person": Leak(
        OnlyForOnePerson, math.inf, Found.NEVER, Exact(WATCHED[0], WATCHED[1], draft()), delta=1.0
    ),
    "honest-in-a-crowd": Leak(HonestInACrowd, math.inf, Found.PERHAPS, Exact(RED, BLUE, draft()), delta=1.0),
    "first-device-of-a-process": Leak(
        FirstDeviceOfAProcess, math.inf, Found.PERHAPS, Exact(RED, BLUE, draft()), delta=1.0
    ),
    "one-device-in-200": Leak(
        OneDeviceIn200,
        math.log((0.995 * math.e + 0.005 * (math.e + 7)) / 0.995),
        Found.NEVER,
        Exact(RED, BLUE, draft()),
    ),
    "one-vector-in-200": Leak(
        OneDeviceIn200,
        math.inf,
        Found.PERHAPS,
        Sampled(LARGE, (LARGE[0], "no"), _only_first_cell, draft(**SIZES), trials=16_000),
        delta=0.005,
    ),
    "rare-value-in-the-clear": Leak(RareValueInTheClear, math.inf, Found.YES, Exact(BLUE, RED, draft()), delta=0.9),
    "beyond-bounds-in-the-clear": Leak(
        BeyondBoundsInTheClear,
        math.inf,
        Found.PERHAPS,
        Exact(LARGE, BEYOND, draft(continuous="onebit", **SIZES)),
        delta=0.634,
    ),
    "only-in-credit-campaigns": Leak(
        OnlyInCreditCampaigns,
        math.inf,
        Found.PERHAPS,
        Exact(RED, BLUE, {**draft(), "title": "Credit risk"}),
        delta=1.0,
    ),
    "noise-chosen-by-keyed-hash": Leak(
        NoiseChosenByKeyedHash, math.inf, Found.NEVER, Sampled(RED, RED_NO, _keyed_bit, draft()), delta=1.0
    ),
}
