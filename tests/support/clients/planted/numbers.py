"""Leaks through mechanisms for numbers: noise that is shared, coarse, cut or of the wrong kind, bits without noise."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from planted.client import Record, StepwiseClient, class_of
from planted.witness import RED, RED_NO, Exact, Found, Leak, Sampled, cells, draft, first
from protocols import Campaign, Question
from protocols.exact import discrete_laplace
from protocols.exact.coins import ONE, WORD_BITS
from protocols.mechanisms import VALUE_BITS, Moment, NoisyVector, OneBit


class VectorClient(StepwiseClient):
    """An honest client whose noise on vectors can be replaced."""

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, NoisyVector):
            return super().perturb(campaign, question, item)
        noisy = self.noisy(mechanism, self.true_cells(mechanism, item))
        return struct.pack(f"<{len(noisy)}i", *(max(-mechanism.bound, min(mechanism.bound, cell)) for cell in noisy))

    def true_cells(self, mechanism: NoisyVector, item: int | Moment) -> list[int]:
        """The vector before the noise; a value is rounded to a neighbour on the grid."""
        vector = [0] * mechanism.domain_size
        if isinstance(item, Moment):
            cut = VALUE_BITS - mechanism.grid
            rest = item.value & ((1 << cut) - 1)
            vector[item.cell] = (item.value >> cut) + self.coins.bernoulli(rest << (WORD_BITS - cut))
        else:
            vector[item] = 1
        return vector

    def noisy(self, mechanism: NoisyVector, vector: Sequence[int]) -> list[int]:
        """The vector with its noise."""
        return [cell + discrete_laplace.sample(mechanism.scale, self.coins) for cell in vector]


class NoiseSharedByCells(VectorClient):
    """One draw of noise is added to every cell of the vector.

    Leaks class and value to everybody: the differences between cells carry no noise. Unbounded. Every cell alone looks
    right: found by a tester that looks at cells together.
    """

    def noisy(self, mechanism: NoisyVector, vector: Sequence[int]) -> list[int]:
        noise = discrete_laplace.sample(mechanism.scale, self.coins)
        return [cell + noise for cell in vector]


class NoiseOnACoarserGrid(VectorClient):
    """Noise is drawn in steps of 16 ("sixteen times as fast"), the value is not.

    Leaks the class to everybody: the cells of the other classes are multiples of 16. Unbounded. Histograms with wide
    bins do not show it: found by a tester that looks at the last bits of cells.
    """

    def noisy(self, mechanism: NoisyVector, vector: Sequence[int]) -> list[int]:
        return [cell + 16 * discrete_laplace.sample(mechanism.scale / 16, self.coins) for cell in vector]


class NoiseCutAtThreeScales(VectorClient):
    """Noise beyond three scales is drawn again: the noise is bounded, where the noisy cell should be.

    Leaks to everybody, when the draw falls near the end: a cell above three scales had a value. Unbounded for one
    device in sixty at epsilon 1. Found by a tester that looks at the tails.
    """

    def noisy(self, mechanism: NoisyVector, vector: Sequence[int]) -> list[int]:
        longest = math.floor(3 * mechanism.scale)
        noisy = []
        for cell in vector:
            noise = longest + 1
            while abs(noise) > longest:
                noise = discrete_laplace.sample(mechanism.scale, self.coins)
            noisy.append(cell + noise)
        return noisy


class GaussianNoise(VectorClient):
    """Gaussian noise of the same variance, rounded, in place of Laplace.

    Leaks to everybody, without bound but rarely: the density ratio grows with the distance. Infinite epsilon, with a
    delta of 0.19 at epsilon 4 and of 0.007 at epsilon 1. Found by a tester of the tails if epsilon is large.
    """

    def noisy(self, mechanism: NoisyVector, vector: Sequence[int]) -> list[int]:
        deviation = math.sqrt(discrete_laplace.variance(mechanism.scale))
        return [cell + round(deviation * self._normal()) for cell in vector]

    def _normal(self) -> float:
        """A standard normal number (Box, Muller 1958)."""
        radius, angle = ((word + 1) / ONE for word in self.coins.words(2))
        return math.sqrt(-2 * math.log(radius)) * math.cos(2 * math.pi * angle)


class ScaleByValue(VectorClient):
    """The scale of a cell's noise shrinks to a half for the cell that has a value, "relative accuracy".

    Leaks the class to everybody: an outlying cell is not the true one, without bound in the tails. Infinite epsilon.
    Found.
    """

    def noisy(self, mechanism: NoisyVector, vector: Sequence[int]) -> list[int]:
        return [cell + discrete_laplace.sample(mechanism.scale / (2 if cell else 1), self.coins) for cell in vector]


class CutBelowByClass(VectorClient):
    """Noisy cells below zero are set to zero for one class, whose values "cannot be negative".

    Leaks the class to everybody: a negative cell belongs to the other. Unbounded. Found.
    """

    def reply(self, campaign: Campaign, question: Question, record: Record, label: str) -> bytes:
        self._cut = class_of(campaign, label) == 0
        return super().reply(campaign, question, record, label)

    def noisy(self, mechanism: NoisyVector, vector: Sequence[int]) -> list[int]:
        noisy = super().noisy(mechanism, vector)
        return [max(cell, 0) for cell in noisy] if self._cut else noisy


class ParityOfTwoCells(VectorClient):
    """Noise is redrawn until the last bits of the first two cells differ for one class and agree for the other.

    Leaks the class to everybody who knows where to look. Unbounded. Every single cell, and every histogram with bins of
    two or more, is as it should be: found by a tester that looks at the last bits of two cells together.
    """

    def reply(self, campaign: Campaign, question: Question, record: Record, label: str) -> bytes:
        self._class = class_of(campaign, label)
        return super().reply(campaign, question, record, label)

    def noisy(self, mechanism: NoisyVector, vector: Sequence[int]) -> list[int]:
        while True:
            noisy = super().noisy(mechanism, vector)
            if (noisy[0] ^ noisy[1]) & 1 == self._class & 1:
                return noisy


class EmptyCellsAreZero(StepwiseClient):
    """One bit of one cell, where a cell that is not the class's answers 0 instead of a fair bit.

    Leaks the class to everybody: a 1 is only ever sent for the true class. Unbounded. Found.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, OneBit) or not isinstance(item, Moment):
            return super().perturb(campaign, question, item)
        payload = mechanism.perturb(item, self.coins)
        return payload if payload[0] == item.cell else payload[:-1] + b"\0"


class BitWithoutResponse(StepwiseClient):
    """One bit of one cell by stochastic rounding alone, P(1) = (v + 1) / 2: "the bit is random already".

    Leaks to everybody, most at the ends of the range, where the bit is certain. Unbounded. Found if records hold the
    bounds.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, OneBit) or not isinstance(item, Moment):
            return super().perturb(campaign, question, item)
        cell = self.coins.below(mechanism.domain_size)
        value = item.value if cell == item.cell else 0
        bit = self.coins.bernoulli((value + (1 << VALUE_BITS)) * ONE >> (VALUE_BITS + 1))
        return cell.to_bytes(mechanism.width - 1, "little") + bytes([bit])


def _agree(campaign: Campaign, sent: list[list[bytes]]) -> bool:
    found = cells(first(campaign, sent).payload)
    return (found[0] ^ found[1]) & 1 == 0


def _same_but_first(campaign: Campaign, sent: list[list[bytes]]) -> bool:
    """She: the first cell is one above all others, which are equal."""
    found = cells(first(campaign, sent).payload)
    return {found[0] - cell for cell in found[1:]} == {1}


def _second_is_multiple(campaign: Campaign, sent: list[list[bytes]]) -> bool:
    found = cells(first(campaign, sent).payload)
    return found[1] % 16 == 0 and found[0] % 16 != 0


def _first_beyond(campaign: Campaign, sent: list[list[bytes]]) -> bool:
    return cells(first(campaign, sent).payload)[0] > 3 * campaign.questions[0].mechanism.scale


def _first_far_above_second(campaign: Campaign, sent: list[list[bytes]]) -> bool:
    found = cells(first(campaign, sent).payload)
    return found[0] - found[1] >= 2


def _second_far_out(campaign: Campaign, sent: list[list[bytes]]) -> bool:
    found = cells(first(campaign, sent).payload)
    return abs(found[1]) > 3 * campaign.questions[0].mechanism.scale


def _negative(campaign: Campaign, sent: list[list[bytes]]) -> bool:
    return min(cells(first(campaign, sent).payload)) < 0


SIZES = {"colours": False, "sizes": True}
SMALL, MIDDLE = ({"size": 0.0}, "yes"), ({"size": 51.3}, "yes")
LARGE, LARGE_NO = ({"size": 100.0}, "yes"), ({"size": 100.0}, "no")
LEAKS = {
    "noise-shared-by-cells": Leak(
        NoiseSharedByCells,
        math.inf,
        Found.PERHAPS,
        Sampled(RED, RED_NO, _same_but_first, draft(discrete="she")),
        delta=1.0,
    ),
    "noise-on-a-coarser-grid": Leak(
        NoiseOnACoarserGrid,
        math.inf,
        Found.PERHAPS,
        Sampled(MIDDLE, (MIDDLE[0], "no"), _second_is_multiple, draft(**SIZES), trials=200),
        delta=1.0,
    ),
    "noise-cut-at-three-scales": Leak(
        NoiseCutAtThreeScales,
        math.inf,
        Found.PERHAPS,
        Sampled(LARGE, LARGE_NO, _first_beyond, draft(**SIZES), trials=12_000),
        delta=0.017,
    ),
    "gaussian-noise": Leak(
        GaussianNoise,
        math.inf,
        Found.PERHAPS,
        Sampled(
            RED,
            RED_NO,
            _first_far_above_second,
            draft(discrete="she", colours=False, shapes=True, epsilon=4.0),
            trials=20_000,
        ),
        delta=0.19,
    ),
    "scale-by-value": Leak(
        ScaleByValue,
        math.inf,
        Found.YES,
        Sampled(LARGE, LARGE_NO, _second_far_out, draft(**SIZES), trials=6_000),
        delta=0.045,
    ),
    "cut-below-by-class": Leak(
        CutBelowByClass, math.inf, Found.YES, Sampled(LARGE_NO, LARGE, _negative, draft(**SIZES), trials=400), delta=0.6
    ),
    "parity-of-two-cells": Leak(
        ParityOfTwoCells, math.inf, Found.PERHAPS, Sampled(LARGE, LARGE_NO, _agree, draft(**SIZES)), delta=1.0
    ),
    "empty-cells-are-zero": Leak(
        EmptyCellsAreZero,
        math.inf,
        Found.YES,
        Exact(LARGE, LARGE_NO, draft(continuous="onebit", **SIZES)),
        delta=0.3655,
    ),
    "bit-without-response": Leak(
        BitWithoutResponse, math.inf, Found.YES, Exact(SMALL, LARGE, draft(continuous="onebit", **SIZES)), delta=0.25
    ),
}
