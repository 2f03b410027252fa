"""Clients that look odd and keep the promise: an auditor that reports one of them is wrong.

Each says what is odd and why it is sound.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from planted.answers import index_bytes, with_epsilon
from planted.client import Person, PlantedClient, Record, Sent, StepwiseClient, read
from planted.numbers import VectorClient
from planted.randomness import HashCoins

from protocols import Campaign, Coins, Question, Report, encode_upload
from protocols.exact import discrete_laplace
from protocols.exact.coins import ONE, WORD_BITS
from protocols.mechanisms import DirectEncoding, Moment, NoisyVector, SubsetSelection, UnaryEncoding, bitmap

_BUFFERED_WORDS = 512


class RandomIds(PlantedClient):
    """Ids are sixteen random bytes, and no HMAC of a secret. Sound: they do not depend on the record."""

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        return self.entropy(16)


class Uuid4Ids(PlantedClient):
    """Ids are UUIDs of version 4: six of their bits never change. Sound: the others are random."""

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        given = bytearray(self.entropy(16))
        given[6] = given[6] & 0x0F | 0x40
        given[8] = given[8] & 0x3F | 0x80
        return bytes(given)


class CountingIds(PlantedClient):
    """Ids are a random number of the process and a counter. They link the devices of a process, which is rude, but the
    counter steps by one whatever the record is. Sound.
    """

    _counter = 0
    _prefix = b""

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        self._prefix = self._prefix or self.entropy(8)
        self._counter += 1
        return self._prefix + self._counter.to_bytes(8, "big")


class TimeOrderedIds(PlantedClient):
    """Ids begin with the time in milliseconds, as UUIDs of version 7 do. They tell when, not what. Sound."""

    def report_id(self, report: Report, campaign: Campaign, record: Record, label: str) -> bytes:
        milliseconds = int(self.now().timestamp() * 1000)
        return milliseconds.to_bytes(6, "big") + self.entropy(10)


class BufferedCoins(Coins):
    """Takes words from ``source`` 512 at a time."""

    def __init__(self, source: Coins) -> None:
        self._source, self._buffer = source, list[int]()

    def words(self, count: int) -> Sequence[int]:
        while len(self._buffer) < count:
            self._buffer.extend(self._source.words(_BUFFERED_WORDS))
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken


class BufferedRandomness(PlantedClient):
    """Coins come from a buffer of the process. Sound: no word is used twice, and nothing forks."""

    def answer(self, campaign: Campaign, people: Sequence[Person]) -> Sent:
        self.coins = BufferedCoins(self.coins)
        return super().answer(campaign, people)


class HashedCoins(PlantedClient):
    """Coins are SHA-256 of a counter and 32 fresh bytes for every device. Sound, as far as SHA-256 is."""

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        self.coins = HashCoins(self.entropy(32))
        return super().uploads(campaign, record, label)


class LazyCoins(Coins):
    """A Bernoulli coin is compared with its threshold bit by bit, and as few bits are drawn as decide it."""

    def __init__(self, source: Coins) -> None:
        self._source = source

    def words(self, count: int) -> Sequence[int]:
        return self._source.words(count)

    def below(self, bound: int) -> int:
        return self._source.below(bound)

    def bernoulli(self, probability: int) -> bool:
        for place in reversed(range(WORD_BITS)):
            wanted, drawn = probability >> place & 1, self._source.below(2)
            if wanted != drawn:
                return wanted > drawn
        return False


class BitByBit(PlantedClient):
    """Coins that are decided bit by bit. Sound: the probabilities are the same integers over 2^64."""

    def answer(self, campaign: Campaign, people: Sequence[Person]) -> Sent:
        self.coins = LazyCoins(self.coins)
        return super().answer(campaign, people)


class LastBitFirst(StepwiseClient):
    """Bits and noise are drawn from the last cell to the first. Sound: the coins are independent."""

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, UnaryEncoding):
            return super().perturb(campaign, question, item)
        words = self.coins.words(mechanism.domain_size)[::-1]
        flags = [
            word < (mechanism.true_bit if cell == item else mechanism.other_bit) for cell, word in enumerate(words)
        ]
        return bitmap.pack_flags(flags, mechanism.domain_size)


class TruthOrAnyValue(StepwiseClient):
    """Direct encoding as a mixture: the truth, or else any of the d values, the true one included.

    Sound, unlike the client that does so with the document's p: the truth has the share p - q here, cut to 2^-64.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, DirectEncoding):
            return super().perturb(campaign, question, item)
        kept = self.coins.bernoulli(math.floor((mechanism.p - mechanism.q) * ONE))
        return index_bytes(item if kept else self.coins.below(mechanism.domain_size), mechanism.domain_size)


class AnyAnswerForMissing(StepwiseClient):
    """Direct encoding of a missing value: any of the d answers, evenly, without a coin for the class.

    Sound: an even answer is within epsilon of every other, p d <= e and 1 / (q d) <= e.
    """

    def reply(self, campaign: Campaign, question: Question, record: Record, label: str) -> bytes:
        missing = question.feature is not None and read(record, question.feature) is None
        if not missing or not isinstance(question.mechanism, DirectEncoding):
            return super().reply(campaign, question, record, label)
        return index_bytes(self.coins.below(question.domain_size), question.domain_size)


class HalfTheBudget(StepwiseClient):
    """Half of epsilon is used ("to be on the safe side"), which spoils the estimates. Sound."""

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        if isinstance(question.mechanism, (SubsetSelection, NoisyVector)):
            return super().perturb(campaign, question, item)
        return with_epsilon(question, Fraction(question.epsilon) / 2, item, self.coins)


class NarrowerClamp(VectorClient):
    """Noisy cells are clamped to two scales, below the bound of the document.

    It biases the estimates, and is sound: what is cut is the noisy cell, at the same place for all records.
    """

    def noisy(self, mechanism: NoisyVector, vector: Sequence[int]) -> list[int]:
        longest = math.ceil(2 * mechanism.scale)
        return [max(-longest, min(longest, cell)) for cell in super().noisy(mechanism, vector)]


class SumOfTwoNoises(VectorClient):
    """Noise is drawn twice and added up, and the cells last to first. Sound: the second draw is post-processing."""

    def noisy(self, mechanism: NoisyVector, vector: Sequence[int]) -> list[int]:
        again = dataclasses.replace(mechanism, scaled=max(1, mechanism.scaled // 4))
        twice = [
            cell
            + discrete_laplace.sample(mechanism.scale, self.coins)
            + discrete_laplace.sample(again.scale, self.coins)
            for cell in reversed(vector)
        ]
        return twice[::-1]


class AnswersAllAndSendsOne(StepwiseClient):
    """Every question is answered; which answer is sent is drawn afterwards, and the others are forgotten.

    Sound: the draw does not look at the answers.
    """

    def reports(self, campaign: Campaign, record: Record, label: str) -> tuple[Report, ...]:
        if campaign.privacy.answers == "all":
            return super().reports(campaign, record, label)
        answers = [self.reply(campaign, question, record, label) for question in campaign.questions]
        drawn = self.draw(campaign.questions)
        return (Report(drawn.index, self.entropy(16), answers[drawn.index]),)


class DealsQuestions(StepwiseClient):
    """Questions are dealt from a shuffled deck that holds each by its weight, so that a process asks all of them alike.

    Sound: the deck knows no record. (A device of the same process learns what the others were not asked.)
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._deck: list[Question] = []

    def questions(self, campaign: Campaign, record: Record, label: str) -> list[Question]:
        if campaign.privacy.answers == "all":
            return super().questions(campaign, record, label)
        if not self._deck:
            left = [question for question in campaign.questions for _ in range(question.weight)]
            while left:
                self._deck.append(left.pop(self.coins.below(len(left))))
        return [self._deck.pop()]


class OneByOneShuffled(PlantedClient):
    """With ``answers: "all"`` every answer is an upload of its own, in an order drawn by lot. Sound."""

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        left = list(self.reports(campaign, record, label))
        sent = []
        while left:
            sent.append(encode_upload([left.pop(self.coins.below(len(left)))]))
        return sent


class EverythingTwice(PlantedClient):
    """Every upload goes out twice, the same bytes. Sound: so it does for every record."""

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        return super().uploads(campaign, record, label) * 2


class SomeRetriesByLot(PlantedClient):
    """An upload goes out one to three times, by lot, as on a bad network. Sound: the lot knows no record."""

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        return super().uploads(campaign, record, label) * (1 + self.coins.below(3))


class SilentByLot(PlantedClient):
    """One device in ten never gets to send. Sound: which one is drawn before its record is read."""

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        return [] if self.coins.below(10) == 0 else super().uploads(campaign, record, label)


class LastPersonFirst(PlantedClient):
    """The process works on a batch from the end. Sound: the devices are independent."""

    def answer(self, campaign: Campaign, people: Sequence[Person]) -> Sent:
        return super().answer(campaign, people[::-1])[::-1]


SOUND: dict[str, Callable[..., PlantedClient]] = {
    "honest": PlantedClient,
    "honest-step-by-step": StepwiseClient,
    "random-ids": RandomIds,
    "uuid-4-ids": Uuid4Ids,
    "counting-ids": CountingIds,
    "time-ordered-ids": TimeOrderedIds,
    "buffered-randomness": BufferedRandomness,
    "hashed-coins": HashedCoins,
    "bit-by-bit": BitByBit,
    "last-bit-first": LastBitFirst,
    "truth-or-any-value": TruthOrAnyValue,
    "any-answer-for-missing": AnyAnswerForMissing,
    "half-the-budget": HalfTheBudget,
    "narrower-clamp": NarrowerClamp,
    "sum-of-two-noises": SumOfTwoNoises,
    "answers-all-and-sends-one": AnswersAllAndSendsOne,
    "deals-questions": DealsQuestions,
    "one-by-one-shuffled": OneByOneShuffled,
    "everything-twice": EverythingTwice,
    "some-retries-by-lot": SomeRetriesByLot,
    "silent-by-lot": SilentByLot,
    "last-person-first": LastPersonFirst,
}
"""Classes of sound clients by name; each call of one is a new process."""
