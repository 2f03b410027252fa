"""Leaks through mechanisms for an index: thresholds, members, values and classes that are treated differently."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

from planted.client import Record, StepwiseClient, class_of
from planted.witness import BLUE, RED, Exact, Found, Leak, Sampled, draft, first
from protocols import Campaign, Coins, Question
from protocols.mechanisms import DirectEncoding, Moment, SubsetSelection, UnaryEncoding, bitmap
from protocols.mechanisms.de import index_width

E = math.e


class KeepsTwice(StepwiseClient):
    """Direct encoding that draws the "other" value from all d of them, the true one included, with the document's p.

    Leaks the answer to everybody: ln(1 + e d / (d - 1)), 1.41 for epsilon 1 and d = 8. Found.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, DirectEncoding):
            return super().perturb(campaign, question, item)
        kept = self.coins.bernoulli(mechanism.keep)
        return index_bytes(item if kept else self.coins.below(mechanism.domain_size), mechanism.domain_size)


class NeverLiesWithTheLastValue(StepwiseClient):
    """Direct encoding whose "other" value is drawn one short: the last is never a lie.

    Leaks the last value to everybody: whoever sends it has it. Unbounded. Found if records hold every value.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, DirectEncoding) or not isinstance(item, int) or mechanism.domain_size < 4:
            return super().perturb(campaign, question, item)
        sent = item
        if not self.coins.bernoulli(mechanism.keep):
            last = mechanism.domain_size - 1
            sent = other_than(item, self.coins.below(last - (item < last)))
        return index_bytes(sent, mechanism.domain_size)


class NeverTheTruth(StepwiseClient):
    """Direct encoding that redraws until the answer is not the true one, "so that nobody can be blamed".

    Leaks what the answer is not, to everybody. Unbounded. Found.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, DirectEncoding) or not isinstance(item, int):
            return super().perturb(campaign, question, item)
        return index_bytes(other_than(item, self.coins.below(mechanism.domain_size - 1)), mechanism.domain_size)


class OnePercentTooMuch(StepwiseClient):
    """Direct encoding with 1.01 epsilon.

    Leaks one hundredth of epsilon to everybody. Too little for 20,000 trials: not found (some millions would).
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        if not isinstance(question.mechanism, DirectEncoding):
            return super().perturb(campaign, question, item)
        return with_epsilon(question, Fraction(question.epsilon) * 101 / 100, item, self.coins)


class LessNoiseForOneClass(StepwiseClient):
    """Answers of the second class are perturbed with twice epsilon: "they are rare, and we need them".

    Leaks the answers of that class to everybody: 2 epsilon. Found if records of that class differ.
    """

    def reply(self, campaign: Campaign, question: Question, record: Record, label: str) -> bytes:
        self._generous = class_of(campaign, label) == 1
        return super().reply(campaign, question, record, label)

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        if not self._generous or isinstance(question.mechanism, SubsetSelection):
            return super().perturb(campaign, question, item)
        return with_epsilon(question, 2 * Fraction(question.epsilon), item, self.coins)


class ValueAndClassApart(StepwiseClient):
    """A pair is answered as two: the value with epsilon, and the class with epsilon.

    Leaks to everybody: 2 epsilon. Value and class each look right: found by a tester that looks at both together.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        classes = len(campaign.label.classes)
        if not isinstance(question.mechanism, DirectEncoding) or question.kind != "pair" or not isinstance(item, int):
            return super().perturb(campaign, question, item)
        parts = [(item // classes, question.domain_size // classes), (item % classes, classes)]
        value, label = (
            index_of(DirectEncoding.make(size, Fraction(question.epsilon)).perturb(part, self.coins))
            for part, size in parts
        )
        return index_bytes(value * classes + label, question.domain_size)


class SwappedForTheFirstValue(StepwiseClient):
    """Unary encoding with p and q swapped where the item is 0 ("if not item" for "if item is None").

    Leaks the first cell to everybody: (d - 2) ln(p / q). Found if a record is in that cell.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, UnaryEncoding) or item != 0:
            return super().perturb(campaign, question, item)
        p, q = mechanism.true_bit, mechanism.other_bit
        words = self.coins.words(mechanism.domain_size)
        return bitmap.pack_flags([word < (p if cell else q) for cell, word in enumerate(words)], mechanism.domain_size)


class OneWordForAllBits(StepwiseClient):
    """Unary encoding that compares one word with the thresholds of all bits.

    Leaks to everybody: a single set bit is the true one. Unbounded. Every bit alone looks right: found by a tester
    that looks at bits together.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, UnaryEncoding):
            return super().perturb(campaign, question, item)
        word = self.coins.words(1)[0]
        flags = [
            word < (mechanism.true_bit if cell == item else mechanism.other_bit)
            for cell in range(mechanism.domain_size)
        ]
        return bitmap.pack_flags(flags, mechanism.domain_size)


class PercentThresholds(StepwiseClient):
    """Unary encoding with probabilities rounded to whole percent.

    Leaks to everybody, and how much depends on the campaign: nothing worth naming at epsilon 1, while above epsilon 5.3
    OUE's q becomes 0 and every set bit is true. Unbounded. Found in campaigns with a large epsilon only.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, UnaryEncoding):
            return super().perturb(campaign, question, item)
        flags = [
            self.coins.below(100) < round(100 * (mechanism.p if cell == item else mechanism.q))
            for cell in range(mechanism.domain_size)
        ]
        return bitmap.pack_flags(flags, mechanism.domain_size)


class PaddingByClass(StepwiseClient):
    """Bitmaps whose padding bits are set for one class.

    Leaks the class to everybody who sees the upload before the server refuses it. Unbounded. Found.
    """

    def reply(self, campaign: Campaign, question: Question, record: Record, label: str) -> bytes:
        payload = super().reply(campaign, question, record, label)
        if not isinstance(question.mechanism, (UnaryEncoding, SubsetSelection)) or class_of(campaign, label) == 0:
            return payload
        width = len(payload)
        padding = (1 << 8 * width) - (1 << question.domain_size)
        return (index_of(payload) | padding).to_bytes(width, "little")


class NeighboursFillTheSubset(StepwiseClient):
    """Subset selection whose other members are the values that follow the true one, "to be plausible".

    Leaks to everybody: a subset comes from two values only. Unbounded. Found.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, SubsetSelection) or not isinstance(item, int):
            return super().perturb(campaign, question, item)
        start = item + (not self.coins.bernoulli(mechanism.include))
        size = mechanism.domain_size
        return bitmap.pack_indices([(start + n) % size for n in range(mechanism.subset_size)], size)


def index_of(payload: bytes) -> int:
    return int.from_bytes(payload, "little")


def index_bytes(index: int | Moment, domain_size: int) -> bytes:
    """A ``de`` payload."""
    if not isinstance(index, int):
        raise TypeError("direct encoding takes an index")
    return index.to_bytes(index_width(domain_size), "little")


def other_than(item: int, drawn: int) -> int:
    """A draw from d - 1 values as one of the d - 1 that are not ``item``."""
    return drawn if drawn < item else drawn + 1


def with_epsilon(question: Question, epsilon: Fraction, item: int | Moment, coins: Coins) -> bytes:
    """The question's answer by a mechanism of the same kind and another epsilon; noise is cut as the document says."""
    mechanism = type(question.mechanism).make(question.domain_size, epsilon)
    if hasattr(mechanism, "grid"):
        scale = math.ceil(question.mechanism.scaled * Fraction(question.epsilon) / epsilon)  # type: ignore[union-attr]
        mechanism = dataclasses.replace(question.mechanism, scaled=scale)
    return mechanism.perturb(item, coins)  # type: ignore[arg-type]


GREEN = ({"colour": "green"}, "no")
LAST = ({"colour": "blue"}, "no")


def _padding_set(campaign: Campaign, sent: list[list[bytes]]) -> bool:
    return index_of(first(campaign, sent).payload) >> campaign.questions[0].domain_size > 0


def _first_bit(campaign: Campaign, sent: list[list[bytes]]) -> bool:
    return bool(index_of(first(campaign, sent).payload) & 1)


LEAKS = {
    "keeps-twice": Leak(KeepsTwice, math.log(1 + 8 * E / 7), Found.YES, Exact(RED, BLUE, draft())),
    "never-lies-with-the-last-value": Leak(
        NeverLiesWithTheLastValue, math.inf, Found.YES, Exact(LAST, RED, draft()), delta=E / (E + 7)
    ),
    "never-the-truth": Leak(NeverTheTruth, math.inf, Found.YES, Exact(RED, BLUE, draft()), delta=1 / 7),
    "one-percent-too-much": Leak(OnePercentTooMuch, 1.01, Found.NEVER, Exact(RED, BLUE, draft())),
    "less-noise-for-one-class": Leak(LessNoiseForOneClass, 2.0, Found.YES, Exact(GREEN, LAST, draft())),
    "value-and-class-apart": Leak(ValueAndClassApart, 2.0, Found.YES, Exact(RED, LAST, draft())),
    "swapped-for-the-first-value": Leak(
        SwappedForTheFirstValue,
        6 * math.log((E + 1) / 2),
        Found.YES,
        Exact(RED, BLUE, draft(discrete="oue")),
    ),
    "one-word-for-all-bits": Leak(
        OneWordForAllBits,
        math.inf,
        Found.PERHAPS,
        Exact(RED, BLUE, draft(discrete="oue")),
        delta=0.5 - 1 / (E + 1),
    ),
    "percent-thresholds": Leak(
        PercentThresholds,
        math.inf,
        Found.PERHAPS,
        Sampled(RED, BLUE, _first_bit, draft(discrete="oue", epsilon=6.0), trials=16_000),
        delta=0.5,
    ),
    "padding-by-class": Leak(
        PaddingByClass,
        math.inf,
        Found.YES,
        Sampled(({}, "no"), ({}, "yes"), _padding_set, draft(discrete="oue", colours=False, shapes=True)),
        delta=1.0,
    ),
    "neighbours-fill-the-subset": Leak(
        NeighboursFillTheSubset, math.inf, Found.YES, Exact(RED, BLUE, draft(discrete="ss")), delta=1.0
    ),
}
